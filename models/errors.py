"""Errors of the model layer: transient, terminal, and "this answer was refused"."""

from __future__ import annotations


class ModelError(Exception):
    """Base of the model layer's errors. ``reason`` is a short stable word that is counted."""

    transient = False
    halts = False
    """Whether the next calls must fail alike, so that going on with other items is useless."""

    def __init__(self, message: str, *, reason: str = "model") -> None:
        super().__init__(message)
        self.reason = reason


class ModelUnavailable(ModelError):
    """Timeouts, resets, 429, 5xx after all retries: the next run tries again."""

    transient = True


class EndpointDown(ModelUnavailable):
    """Several calls in a row failed for good: the endpoint is left alone for a while."""

    halts = True


SETTING_REASONS = frozenset(
    {"authentication", "quota", "not_found", "settings", "tokenizer", "dimension", "no_echo", "not_supported"}
)
"""Refusals that a person ends with a setting, a key or money; they say nothing of the item asked about."""


class ModelRefused(ModelError):
    """The endpoint says no: authentication, unknown model, bad request.

    Where the set-up is at fault (``SETTING_REASONS``) the run halts and the items
    stay to be done; otherwise the refusal belongs to the item.
    """

    def __init__(self, message: str, *, reason: str = "model") -> None:
        super().__init__(message, reason=reason)
        self.transient = self.halts = reason in SETTING_REASONS


class BudgetExhausted(ModelError):
    """The next call could cost more than is left; nothing was sent. Resumable."""

    transient = True
    halts = True


class AnswerDeferred(ModelError):
    """The question waits for a batch job (``transport = "batch"``): ask again when it is collected."""

    transient = True

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="deferred")


class AnswerRejected(ModelError):
    """The model's answer failed the skill's check after one repeat; never served again."""


class OfflineUnavailable(ModelError):
    """The skill has no honest rule-based answer, and no model is configured for it."""

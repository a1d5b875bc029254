"""Errors of the model layer: transient, terminal, and "this answer was refused"."""

from __future__ import annotations


class ModelError(Exception):
    """Base of the model layer's errors. ``reason`` is a short stable word that is counted."""

    transient = False

    def __init__(self, message: str, *, reason: str = "model") -> None:
        super().__init__(message)
        self.reason = reason


class ModelUnavailable(ModelError):
    """Timeouts, resets, 429, 5xx after all retries: the next run tries again."""

    transient = True


class ModelRefused(ModelError):
    """The endpoint says no for good: authentication, unknown model, bad request."""


class BudgetExhausted(ModelError):
    """The next call could cost more than is left; nothing was sent. Resumable."""

    transient = True


class AnswerRejected(ModelError):
    """The model's answer failed the skill's check after one repeat; never served again."""


class OfflineUnavailable(ModelError):
    """The skill has no honest rule-based answer, and no model is configured for it."""

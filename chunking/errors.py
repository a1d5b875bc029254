"""Errors of the chunking package."""

from __future__ import annotations

from typing import NoReturn

from corpus.errors import TerminalError
from models.errors import OfflineUnavailable


class PartitionError(TerminalError):
    """Spans that do not tile their text, or a partition that a figure is not defined for."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="partition")


class MethodError(TerminalError):
    """An unknown chunking method, or one that this set-up cannot run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="method")


def no_rule(method: str, skill: str) -> NoReturn:
    """Raise OfflineUnavailable: the method asks a model by this skill, and none is set."""
    raise OfflineUnavailable(
        f"{method} needs a model for {skill}, and no rule stands for it: set model (and base_url) under "
        f"[models.skills.{skill}], or models.model (HCHEM_MODELS__MODEL) for all skills",
        reason="offline",
    )

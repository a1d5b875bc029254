"""Errors of the chunking package."""

from __future__ import annotations

from corpus.errors import TerminalError


class PartitionError(TerminalError):
    """Spans that do not tile their text, or a partition that a figure is not defined for."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="partition")


class MethodError(TerminalError):
    """An unknown chunking method, or one that this set-up cannot run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="method")

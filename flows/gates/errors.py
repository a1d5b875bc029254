"""How a gate holds a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus.errors import PlatformError, TerminalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus.catalogue.tables import Check


class GateError(TerminalError):
    """A blocking gate failed and nobody said to go on. What is done stays."""

    def __init__(self, message: str, *, step: str = "") -> None:
        super().__init__(message, reason="gate", step=step)


class AwaitingDecision(PlatformError):
    """A blocking gate failed in a run that asks; the run is suspended until somebody decides."""

    def __init__(self, run_id: str, stage: str, checks: Sequence[Check]) -> None:
        super().__init__(
            f"waiting for a decision after {stage}: " + "; ".join(check.message for check in checks),
            reason="gate",
        )
        self.run_id = run_id
        self.stage = stage
        self.checks = tuple(checks)

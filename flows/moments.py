"""Moments of runs that stay in order when the clock of the machine is set.

Runs are shown, compared and counted in the order of ``started_at``. They follow
one another (each holds the lease), so a run never begins before the one before
it, whatever the clock says; and how long it took is measured on the monotonic
clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Run, now

_NEXT = timedelta(milliseconds=1)


@dataclass
class RunClock:
    """The clock of one run: begins when it is made. ``resumed``: the run began in an earlier process."""

    resumed: bool = False
    _began: float = field(default_factory=time.monotonic)

    def start(self, db: Session) -> datetime:
        """When the run begins: now, or just after the last run where the clock says that this is earlier."""
        last = db.scalar(select(func.max(Run.started_at)))
        return now() if last is None else max(now(), last + _NEXT)

    def end(self, row: Run) -> datetime:
        """When it ends: as much after its start as the monotonic clock says, a resumed run by the wall clock."""
        if self.resumed:
            return max(row.started_at, now())
        return row.started_at + timedelta(seconds=time.monotonic() - self._began)

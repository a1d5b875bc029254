"""What people decide of failed gates, and the history of checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session as DbSession

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Check, Run, now
from corpus.errors import SettingsError
from flows.gates.judging import ACCEPT, CONTINUE, STOP
from flows.operation_settings import GATES, GateSettings, period


@dataclass(frozen=True)
class Decision:
    """Go on or stop; whether the value is the new baseline; who says so, and why."""

    go_on: bool
    accept: bool
    by: str
    why: str

    @property
    def word(self) -> str:
        """As the catalogue keeps it."""
        return (ACCEPT if self.accept else CONTINUE) if self.go_on else STOP


def known(name: str) -> str:
    """The gate of that name. Raises SettingsError naming those that there are."""
    if name not in GATES:
        raise SettingsError(f"no gate {name!r}; gates: {', '.join(GATES)}")
    return name


def open_checks(db: DbSession, name: str, scope: str | None = None) -> list[Check]:
    """Failed blocking checks of a gate in the newest run that it holds; of a source or relation alone, if named."""
    query = (
        select(Check)
        .join(Run, Run.run_id == Check.run_id)
        .where(
            Check.name == name, Check.state == "failed", Check.severity == "block", Run.state != "completed"
        )
        .order_by(Run.started_at.desc(), Check.run_id.desc(), Check.scope)
    )
    if scope is not None:
        query = query.where(Check.scope == scope)
    rows = list(db.scalars(query))
    return [row for row in rows if row.run_id == rows[0].run_id]


def record(catalogue: Catalogue, check_ids: Sequence[str], decision: Decision) -> list[Check]:
    """Write a decision down for these checks; a later one replaces it."""
    with catalogue.writing() as db:
        rows = [db.get_one(Check, check_id) for check_id in sorted(check_ids)]
        for row in rows:
            row.decision, row.decided_by, row.why = decision.word, decision.by[:64], decision.why
            row.decided_at = now()
        db.flush()
    return rows


def held_by(db: DbSession, run_id: str) -> list[Check]:
    """The checks that a suspended run waits for."""
    return [row for row in _failed(db, run_id) if not row.decision]


def decidable(db: DbSession, run_id: str, stage: str) -> list[Check]:
    """The checks of a stage that a decision on the run is about: all but those that an earlier decision covers."""
    return [
        row
        for row in _failed(db, run_id)
        if row.stage == stage and (not row.decided_at or row.decided_at >= row.at)
    ]


def _failed(db: DbSession, run_id: str) -> list[Check]:
    query = select(Check).where(Check.run_id == run_id, Check.state == "failed", Check.severity == "block")
    return sorted(db.scalars(query), key=lambda row: (row.name, row.scope))


def latest(db: DbSession) -> list[Check]:
    """Of every gate and scope the check of the newest run that judged it, in the order of the stages."""
    query = (
        select(Check).join(Run, Run.run_id == Check.run_id).order_by(Run.started_at.desc(), Run.run_id.desc())
    )
    found: dict[tuple[str, str], Check] = {}
    newest: dict[str, str] = {}  # gate -> run
    for row in db.scalars(query):
        if row.name in GATES and newest.setdefault(row.name, row.run_id) == row.run_id:
            found[row.name, row.scope] = row
    return sorted(found.values(), key=lambda row: (list(GATES).index(row.name), row.scope))


def history(db: DbSession, name: str, scope: str | None, limit: int) -> list[Check]:
    """The newest checks of a gate, newest first."""
    query = (
        select(Check)
        .join(Run, Run.run_id == Check.run_id)
        .where(Check.name == name)
        .order_by(Run.started_at.desc(), Check.scope)
        .limit(limit)
    )
    if scope is not None:
        query = query.where(Check.scope == scope)
    return list(db.scalars(query))


def close_expired(catalogue: Catalogue, settings: GateSettings) -> None:
    """Suspended runs on which nobody decided in time have failed; Prefect says the same of theirs."""
    with catalogue.writing() as db:
        for row in db.scalars(select(Run).where(Run.state == "suspended")):
            if row.finished_at is not None and row.finished_at + period(settings.wait) < now():
                row.state, row.message = (
                    "failed",
                    f"nobody decided within {settings.wait}; {row.message}"[:2000],
                )

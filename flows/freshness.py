"""How long ago each source was last visited to its end, and which are stale. Computed from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as DbSession

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Check, LedgerRow, Run, now
from corpus.errors import SettingsError
from crawlers.sources import enabled_names, load_sources
from flows.operation_settings import period
from flows.parameters import RESTRICTIONS, STAGES, StageParameters
from flows.settings import Settings

STALE_EXIT = 3
"""Exit code of ``hchem status --check`` where a source is stale."""

_CRAWL = "acquire.crawl"


@dataclass(frozen=True)
class Age:
    """A source, when its last whole crawl ended (None: never), and how old that may be."""

    source: str
    visited_at: datetime | None
    limit: timedelta
    at: datetime

    @property
    def age(self) -> timedelta | None:
        """None where it was never visited; never negative, since clocks are set back."""
        return None if self.visited_at is None else max(self.at - self.visited_at, timedelta(0))

    @property
    def stale(self) -> bool:
        """Whether the limit is passed; a source that was never visited is stale."""
        age = self.age
        return age is None or age > self.limit

    def line(self) -> str:
        """In words."""
        state = "stale" if self.stale else "fresh"
        if self.visited_at is None or self.age is None:
            return f"{self.source}: {state}, never visited (limit {shown(self.limit)})"
        return (
            f"{self.source}: {state}, visited {shown(self.age)} ago "
            f"({self.visited_at:%Y-%m-%d %H:%M} UTC, limit {shown(self.limit)})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data; ages in seconds."""
        return {
            "source": self.source,
            "state": "stale" if self.stale else "fresh",
            "visited_at": self.visited_at.isoformat() if self.visited_at else None,
            "age_s": round(self.age.total_seconds()) if self.age is not None else None,
            "limit_s": round(self.limit.total_seconds()),
        }


def shown(span: timedelta) -> str:
    """A length of time in its two largest units: "8 d", "3 d 4 h", "12 min"."""
    minutes = int(span.total_seconds() // 60)
    days, hours, rest = minutes // 1440, minutes % 1440 // 60, minutes % 60
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (rest, "min")) if n]
    return " ".join(parts[:2]) or f"{int(span.total_seconds())} s"


def ages(catalogue: Catalogue, settings: Settings) -> list[Age]:
    """Every enabled source with its age, by name.

    A crawl of a few chemicals is no visit of its source. Raises SettingsError where
    ``freshness.sources`` names a source that does not exist.
    """
    sources = load_sources(settings.crawl)
    unknown = sorted(set(settings.freshness.sources) - set(sources))
    if unknown:
        raise SettingsError(
            f"freshness.sources names unknown source {', '.join(unknown)}; known: {', '.join(sorted(sources))}"
        )
    at = now()
    with catalogue.reading() as db:
        visits = {name: _visited(db, name) for name in enabled_names(settings.crawl, sources)}
    limits = settings.freshness
    return [
        Age(name, visited, period(limits.sources.get(name, limits.max_age)), at)
        for name, visited in visits.items()
    ]


def _visited(db: DbSession, source: str) -> datetime | None:
    """The end of the last whole crawl: what the ledger says, or, where a later crawl failed, what checks remember."""
    query = select(Check.at, Run.parameters).join(Run, Run.run_id == Check.run_id)
    passed = query.where(Check.name == "crawl_empty", Check.scope == source[:64], Check.value > 0)
    found = [at for at, parameters in db.execute(passed.order_by(Check.at.desc())) if _whole(parameters)][:1]
    row = db.get(LedgerRow, (_CRAWL, source))
    if row is not None and row.state == "kept":
        run = db.get(Run, row.run_id)
        if run is None or _whole(run.parameters):
            found.append(row.updated_at)
    return max(found, default=None)


def _whole(parameters: dict[str, Any]) -> bool:
    """Whether a run crawled its sources in full."""
    return not (parameters.get("chemicals") or parameters.get("since"))


def needless(
    catalogue: Catalogue, settings: Settings, parameters: StageParameters, scheduled: datetime
) -> str:
    """Why a scheduled refresh has nothing to do ("" where it has): the guard against runs that pile up.

    After downtime each missed run still comes. One that finds a whole refresh that
    began after its own scheduled time and was completed ends at once; so does one
    whose sources were all visited within ``flows.skip_if_fresher``.
    """
    asked = parameters.model_dump(mode="json")
    if any(asked.get(name) for name in (*RESTRICTIONS, "force")) or not _everything(asked):
        return ""
    with catalogue.reading() as db:
        query = select(Run).where(Run.flow == "refresh", Run.state == "completed", Run.started_at > scheduled)
        for row in db.scalars(query.order_by(Run.started_at.desc())):
            if _everything(row.parameters) and not any(row.parameters.get(name) for name in RESTRICTIONS):
                return f"already fresh: run {row.run_id} began after {scheduled:%Y-%m-%d %H:%M:%S} UTC and was completed"
    span = period(settings.flows.skip_if_fresher)
    if span:
        known = ages(catalogue, settings)
        if known and all(one.age is not None and one.age < span for one in known):
            return f"already fresh: every source was visited within {shown(span)}"
    return ""


def _everything(parameters: dict[str, Any]) -> bool:
    first, last = parameters.get("from_stage", STAGES[0]), parameters.get("to_stage", STAGES[-1])
    return bool(first == STAGES[0] and last == STAGES[-1])

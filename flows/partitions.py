"""Partitions of the corpus, and how each stands.

A partition is a source × the period in which the present content of its pages was transferred
(UTC); a page that changes moves to the newer period. Acquisition is divided by source × group
of substances instead, since a crawl asks for substances: a group is a bucket of the key's hash,
so that a substance stays in its group whatever is added to the repository.

How a partition stands is computed, never stored: each divided step plans its items with the
present code and settings, and the ledger says which of them are missing, differ, or failed. The
table ``source_periods`` only keeps what backfills did.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, LedgerRow, Page, QueryLink, SourcePeriod, now
from corpus.curating.pages import chosen_pages
from corpus.curating.records import CLEAN, PROFILE
from corpus.errors import SettingsError
from corpus.restriction import EPOCH, MOMENT, unknown_chemicals
from corpus.stages import Item, StageContext, Step, needs_work
from corpus.urls import canonical_url
from flows.parameters import BackfillParameters, StageParameters
from flows.partition_settings import Unit
from flows.runtime import Runtime

PENDING, RUNNING, OK, FAILED, STALE = "pending", "running", "ok", "failed", "stale"

_DIVIDED = frozenset({PROFILE, CLEAN, "curate.decided", "curate.score", "curate.refine", "graph.extract"})
_PERIOD = re.compile(r"([0-9]{4})(?:-(?:([0-9]{2})(?:-([0-9]{2}))?|W([0-9]{2})))?")


def is_divided(step: str) -> bool:
    """Whether a step works on one page or document at a time, so that it may be run for some of them.

    The others look at everything at once (barriers), or follow from a barrier (reference data).
    """
    return step in _DIVIDED or step.startswith("chunks.")


# --- periods ----------------------------------------------------------------------------------


def period_of(moment: datetime, unit: Unit) -> str:
    """The period of a moment: ``2026-11``, ``2026-W48``, ``2026-11-30`` (UTC)."""
    moment = moment.astimezone(UTC)
    if unit == "week":
        year, week, _ = moment.isocalendar()
        return f"{year:04}-W{week:02}"
    return f"{moment:%Y-%m}" if unit == "month" else f"{moment:%Y-%m-%d}"


def span_of(period: str) -> tuple[datetime, datetime]:
    """First moment of a year, month, ISO week or day (UTC), and the one after its last.

    Raises SettingsError for anything else, also for a month or day that does not exist.
    """
    found = _PERIOD.fullmatch(period.strip())
    if found is not None:
        year, month, day, week = (int(part) if part else 0 for part in found.groups())
        with suppress(ValueError, OverflowError):
            if found[4]:
                begin = datetime.fromisocalendar(year, week, 1).replace(tzinfo=UTC)
                return begin, begin + timedelta(days=7)
            begin = datetime(year, month if found[2] else 1, day if found[3] else 1, tzinfo=UTC)
            if found[3]:
                return begin, begin + timedelta(days=1)
            later = (year, month + 1) if found[2] and month < 12 else (year + 1, 1)
            return begin, datetime(*later, 1, tzinfo=UTC)
    raise SettingsError(
        f"{period!r} is no period: give a month that exists, such as 2026-01 (also 2026, 2026-W05, 2026-01-31)"
    )


def window(first: str | None, last: str | None) -> tuple[datetime, datetime]:
    """The span from a period to another, both included. Raises SettingsError where they are turned round."""
    begin = span_of(first)[0] if first else datetime.min.replace(tzinfo=UTC)
    end = span_of(last)[1] if last else datetime.max.replace(tzinfo=UTC)
    if begin >= end:
        raise SettingsError(f"--from {first} comes after --to {last}")
    return begin, end


# --- partitions --------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Partition:
    """What a backfill works on at once: pages of a source of a period."""

    source: str
    period: str

    @property
    def label(self) -> str:
        """Its name, in one word."""
        return f"{self.source}/{self.period}"

    def narrow(self, ctx: StageContext) -> StageContext:
        """The context of a run that works on this partition only."""
        since, until = span_of(self.period)
        return replace(ctx, sources=(self.source,), since=since, until=until)

    def overlaps(self, span: tuple[datetime, datetime]) -> bool:
        """Whether some of its period is in a span of time."""
        begin, end = span_of(self.period)
        return begin < span[1] and span[0] < end


def pages_by_partition(session: Db, unit: Unit) -> dict[str, Partition]:
    """The partition of every page, by page id."""
    query = select(Page.page_id, Page.source, MOMENT.label("moment"))
    return {row.page_id: Partition(row.source, period_of(row.moment, unit)) for row in session.execute(query)}


class Places:
    """In which partition an item of a divided step lies."""

    def __init__(self, session: Db, unit: Unit) -> None:
        self._pages = pages_by_partition(session, unit)
        self._cleaned = {
            document: self._pages[page.page_id] for document, page in chosen_pages(session).items()
        }
        without = period_of(EPOCH, unit)
        query = select(Document.document_id, Document.page_id, Document.source)
        self._documents = {
            row.document_id: self._pages.get(row.page_id) or Partition(row.source, without)
            for row in session.execute(query)
        }

    def of(self, step: str, item_id: str) -> Partition:
        """The partition of an item; cleaning has the page in view that it will make the document of."""
        places: dict[str, Partition] = {PROFILE: self._pages, CLEAN: self._cleaned}.get(step, self._documents)
        return places[item_id]


# --- how they stand ------------------------------------------------------------------------------


@dataclass
class Counts:
    """Items of one step in a partition: all, never processed, with another fingerprint, failed; and what there is to do."""

    items: int = 0
    missing: int = 0
    stale: int = 0
    failed: int = 0
    todo: list[Item] = field(default_factory=list)

    def add(self, row: LedgerRow | None, item: Item, ctx: StageContext) -> None:
        """Count an item by its row of the ledger."""
        self.items += 1
        self.missing += row is None
        self.stale += row is not None and row.fingerprint != item.fingerprint
        self.failed += row is not None and row.fingerprint == item.fingerprint and row.state == "failed"
        if needs_work(row, item, ctx):
            self.todo.append(item)


@dataclass
class Standing:
    """How a partition stands under the present code and settings."""

    partition: Partition
    pages: int = 0
    steps: dict[str, Counts] = field(default_factory=dict)

    def total(self, what: str) -> int:
        """A count over all steps."""
        return sum(getattr(counts, what) for counts in self.steps.values())

    @property
    def todo(self) -> int:
        """Items of all steps that the planned run would work on."""
        return sum(len(counts.todo) for counts in self.steps.values())

    @property
    def state(self) -> str:
        """pending: something was never processed; stale: fingerprints differ; failed: some items failed; else ok."""
        for state, what in ((PENDING, "missing"), (STALE, "stale"), (FAILED, "failed")):
            if self.total(what):
                return state
        return OK

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        steps = {
            name: {
                "items": c.items,
                "missing": c.missing,
                "stale": c.stale,
                "failed": c.failed,
                "todo": len(c.todo),
            }
            for name, c in self.steps.items()
        }
        return {"source": self.partition.source, "period": self.partition.period, "pages": self.pages,
                "state": self.state, "todo": self.todo, "steps": steps}  # fmt: skip


def standings(ctx: StageContext, steps: Sequence[Step], unit: Unit) -> dict[Partition, Standing]:
    """Every partition, by source and period, and what the divided steps among ``steps`` find in it.

    Reads only. What a step will find once the steps before it have run is not among its items.
    """
    with ctx.catalogue.reading() as session:
        places = Places(session, unit)
        pages = chosen_pages(session)
    found: dict[Partition, Standing] = {}
    for document in pages:
        place = places.of(CLEAN, document)
        found.setdefault(place, Standing(place)).pages += 1
    for step in steps:
        if not is_divided(step.name):
            continue
        with ctx.catalogue.reading() as session:
            query = select(LedgerRow).where(LedgerRow.step == step.name)
            rows = {row.item_id: row for row in session.scalars(query)}
        for item in step.plan(ctx):
            place = places.of(step.name, item.id)
            standing = found.setdefault(place, Standing(place))
            standing.steps.setdefault(step.name, Counts()).add(rows.get(item.id), item, ctx)
    return dict(sorted(found.items()))


def known_sources(runtime: Runtime) -> set[str]:
    """Names of sources: those that can be crawled, and those that pages came from."""
    from crawlers.sources import load_sources

    with runtime.catalogue.reading() as session:
        present = set(session.scalars(select(Page.source).distinct()))
        present |= set(session.scalars(select(Document.source).distinct()))
    return present | set(load_sources(runtime.settings.crawl))


def check_selection(runtime: Runtime, parameters: StageParameters) -> None:
    """Raise SettingsError for a source or substance that is not known."""
    known = known_sources(runtime) if parameters.sources else set()
    if unknown := sorted(set(parameters.sources) - known):
        raise SettingsError(f"unknown source {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    if isinstance(parameters, BackfillParameters) and parameters.from_stage == "acquire":
        return  # names are loaded by the run
    with runtime.catalogue.reading() as session:
        missing = unknown_chemicals(session, parameters.chemicals)
    if missing:
        raise SettingsError(f"unknown chemical {', '.join(missing)}; see `hchem chemicals`")


# --- groups of substances, for acquisition ----------------------------------------------------------


def group_of(key: str, groups: int) -> int:
    """The group of a substance: a bucket of its key's hash, the same on every machine."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8], "big") % groups


def group_name(group: int, groups: int) -> str:
    """How a group stands in the place of a period."""
    return f"group {group}/{groups}"


def groups_from(text: str | None, groups: int) -> list[int]:
    """The groups that ``0-7`` or ``0,3,5-6`` names; None: all. Raises SettingsError for one that does not exist."""
    if not text:
        return list(range(groups))
    chosen: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,3})(?:\s*-\s*([0-9]{1,3}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last or last >= groups:
            raise SettingsError(
                f"{text!r} names no groups of substances: give numbers of 0 to {groups - 1}, such as 0-7 "
                "(--chemical-groups; flows.chemical_groups says how many there are)"
            )
        chosen.update(range(first, last + 1))
    return sorted(chosen)


@dataclass
class GroupStanding:
    """How the query links of a source stand for a group of substances."""

    source: str
    group: int | None
    groups: int
    chemicals: list[str] = field(default_factory=list)
    links: int = 0
    missing: int = 0
    failed: int = 0

    @property
    def name(self) -> str:
        """What stands in the place of a period; a source that is not asked for substances is crawled whole."""
        return "whole" if self.group is None else group_name(self.group, self.groups)

    @property
    def label(self) -> str:
        """Its name beside others."""
        return f"{self.source}/{self.name}"

    @property
    def state(self) -> str:
        """pending: links that were never asked; failed: links whose last visit failed; else ok."""
        return PENDING if self.missing else FAILED if self.failed else OK


def group_standings(
    catalogue: Catalogue, sources: Collection[str], groups: int, only: Collection[str] = ()
) -> list[GroupStanding]:
    """Every source × group that has query links, as the catalogue records them. ``only``: keys of substances."""
    with catalogue.reading() as session:
        links = session.execute(
            select(QueryLink.source, QueryLink.url, QueryLink.chemical).where(
                QueryLink.source.in_(list(sources))
            )
        ).all()
        query = select(Page.source, Page.url, Page.state, Page.visited_at).where(
            Page.source.in_(list(sources)), Page.role != "sitemap"
        )
        seen = {(row.source, row.url): (row.state, row.visited_at) for row in session.execute(query)}
    found: dict[tuple[str, int], GroupStanding] = {}
    for source, url, chemical in links:
        if only and chemical not in only:
            continue
        group = group_of(chemical, groups)
        standing = found.setdefault((source, group), GroupStanding(source, group, groups))
        standing.chemicals.append(chemical)
        state, visited = seen.get((source, canonical_url(url)), ("", None))
        standing.links += 1
        standing.missing += state in ("", "queued", "claimed") and visited is None
        standing.failed += state == "failed"
    for standing in found.values():
        standing.chemicals = sorted(set(standing.chemicals))
    return [found[key] for key in sorted(found)]


# --- what backfills did -------------------------------------------------------------------------------


def history(catalogue: Catalogue) -> dict[tuple[str, str], SourcePeriod]:
    """What the last backfill of each partition did."""
    with catalogue.reading() as session:
        return {(row.source, row.period): row for row in session.scalars(select(SourcePeriod))}


def record_start(catalogue: Catalogue, places: Iterable[tuple[str, str]], run_id: str) -> None:
    """Note that a backfill begins to work on partitions."""
    with catalogue.writing() as session:
        for source, period in places:
            row = SourcePeriod(source=source, period=period, state=RUNNING, run_id=run_id, counts={})
            row.message, row.started_at, row.finished_at = "", now(), None
            session.merge(row)


def record_end(
    catalogue: Catalogue, place: tuple[str, str], state: str, counts: dict[str, Any], message: str = ""
) -> None:
    """Note how a partition stood when a backfill left it."""
    with catalogue.writing() as session:
        row = session.get(SourcePeriod, place)
        if row is not None:
            row.state, row.counts, row.message, row.finished_at = state, counts, message[:2000], now()

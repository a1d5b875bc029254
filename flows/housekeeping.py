"""Garbage collection: what is old and nothing refers to any more, found first and then removed.

Evidence stays traceable: what a page, a document or a kept version of the data set rests
on is never collected. Nothing outside the data directory and the catalogue is touched.
A collection that is killed leaves catalogue and files in agreement; the next one completes it.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, func, not_, or_, select
from sqlalchemy.orm import Session

from corpus import archive_collection
from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import (
    Base,
    Document,
    Embedding,
    ModelBatchLine,
    ModelCall,
    Page,
    PageProfile,
    Run,
    WorkBatch,
    now,
)
from flows.runtime import Runtime
from kg import versions

Progress = Callable[[str, int, int], None]
_ABANDONED = timedelta(days=1)  # half-written things of this age have no writer any more
_AT_ONCE = 1000  # rows of a transaction


@dataclass(frozen=True)
class Line:
    """One kind of thing that goes: how many, how many bytes on disk (0: rows), and why it may go."""

    what: str
    count: int
    bytes: int
    why: str


@dataclass
class Plan:
    """What would go. ``rows``: table and condition; ``paths``: files and folders below the data directory."""

    lines: list[Line] = field(default_factory=list)
    archive: archive_collection.ArchivePlan = field(default_factory=archive_collection.ArchivePlan)
    rows: list[tuple[type[Base], ColumnElement[bool]]] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)


def survey(runtime: Runtime, *, keep_days: int | None = None) -> Plan:
    """Find what may go; nothing is changed."""
    settings = runtime.settings.housekeeping
    days = settings.keep_days if keep_days is None else keep_days
    before = now() - timedelta(days=days)
    moments = _moments(runtime)
    plan = Plan()
    plan.archive = archive_collection.survey(
        runtime.catalogue, runtime.data_dir, before=before, moments=moments, waste_share=settings.waste_share
    )
    removed = sum(1 for file in plan.archive.files if not file.keep)
    rewritten = len(plan.archive.files) - removed
    why = f"no page, document or kept version rests on it, older than {days} days"
    plan.lines.append(Line("archive files rewritten", rewritten, _waste(plan, whole=False), why))
    plan.lines.append(Line("archive files removed", removed, _waste(plan, whole=True), why))
    gone = _gone(runtime.catalogue, before, moments)
    plan.rows.extend(
        (Page, Page.page_id.in_(gone[at : at + _AT_ONCE])) for at in range(0, len(gone), _AT_ONCE)
    )
    plan.lines.append(Line("pages that are gone", len(gone), 0, f"last asked for {days} days ago or more"))
    for what, table, condition, because in (
        (
            "model answers",
            ModelCall,
            _superseded(before),
            f"of skill versions that are no more, older than {days} days",
        ),
        ("vectors", Embedding, _of_other_models(runtime), "of embedding models that are not set any more"),
        ("shared batches", WorkBatch, _left_over(), "their run has ended"),
    ):
        plan.rows.append((table, condition))
        plan.lines.append(Line(what, _count(runtime.catalogue, table, condition), 0, because))
    reports, left = _old_reports(runtime.data_dir, before), _left_behind(runtime.data_dir)
    plan.paths = [*reports, *left]
    plan.lines.append(
        Line("reports of single pages", len(reports), sum(map(_bytes, reports)), f"older than {days} days")
    )
    plan.lines.append(
        Line("half-written files", len(left), sum(map(_bytes, left)), "their writer was killed")
    )
    return plan


def collect(runtime: Runtime, progress: Progress, *, keep_days: int | None = None) -> Plan:
    """Find what may go and remove it, while no run, backup or restore is on; returns what went.

    Raises CatalogueBusyError where one is, TerminalError where the disk is full (what was done stays done).
    """
    with leases.held(runtime.catalogue, "run"), leases.held(runtime.catalogue, "archive"):
        plan = survey(runtime, keep_days=keep_days)
        archive_collection.collect(
            runtime.catalogue,
            runtime.data_dir,
            plan.archive,
            progress=lambda done, total: progress("archive files", done, total),
        )
        for table, condition in plan.rows:
            _delete(runtime.catalogue, table, condition)
        for path in plan.paths:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return plan


def _waste(plan: Plan, *, whole: bool) -> int:
    return sum(file.waste for file in plan.archive.files if whole is not bool(file.keep))


def _moments(runtime: Runtime) -> dict[str, list[datetime]]:
    """Identity → moments at which its content must stay: of each kept version, and of now where curation is behind."""
    found: dict[str, list[datetime]] = defaultdict(list)
    folder = versions.folder_of(runtime.data_dir)
    for version in versions.versions(folder):
        taken = datetime.fromisoformat(version.taken_at) + timedelta(seconds=1)  # written without fractions
        for row in versions.rows(folder / version.id, "corpus"):
            found[str(row["url"])].append(taken)
    query = (
        select(Page.identity)
        .join(PageProfile, PageProfile.page_id == Page.page_id)
        .where(PageProfile.payload_sha256 != Page.payload_sha256)
    )
    with runtime.catalogue.reading() as db:
        for identity in db.scalars(query):
            found[identity].append(now())
    return found


def _gone(catalogue: Catalogue, before: datetime, versioned: Collection[str]) -> list[str]:
    """Tombstones that nobody needs: no document rests on them, no kept version holds them."""
    last = func.coalesce(Page.visited_at, Page.fetched_at, Page.first_seen)
    used = exists().where(Document.page_id == Page.page_id)
    query = select(Page.page_id, Page.identity).where(Page.state == "gone", last < before, not_(used))
    with catalogue.reading() as db:
        return sorted(page for page, identity in db.execute(query) if identity not in versioned)


def _superseded(before: datetime) -> ColumnElement[bool]:
    """Answers that can never be served again: their key holds a version of the skill that is no more."""
    from flows.skills import PLACES, skill_of

    present = [
        and_(ModelCall.skill == name, ModelCall.skill_version == skill_of(name).version) for name in PLACES
    ]
    asked = exists().where(ModelBatchLine.key == ModelCall.key)
    return and_(ModelCall.at < before, not_(or_(*present)), not_(asked))


def _of_other_models(runtime: Runtime) -> ColumnElement[bool]:
    with runtime.catalogue.reading() as db:
        known = set(db.scalars(select(Embedding.model).distinct()))
    if not known:
        return false()
    present = {runtime.models.embedder(purpose).name for purpose in ("cohesion", "index")}
    return Embedding.model.in_(sorted(known - present))


def _left_over() -> ColumnElement[bool]:
    return not_(exists().where(Run.run_id == WorkBatch.run_id, Run.state == "running"))


def _count(catalogue: Catalogue, table: type[Base], condition: ColumnElement[bool]) -> int:
    with catalogue.reading() as db:
        return int(db.scalar(select(func.count()).select_from(table).where(condition)) or 0)


def _delete(catalogue: Catalogue, table: type[Base], condition: ColumnElement[bool]) -> None:
    """In parts, so that no transaction is long."""
    while True:
        with catalogue.writing() as db:
            if not _delete_some(db, table, condition):
                return


def _delete_some(db: Session, table: type[Base], condition: ColumnElement[bool]) -> int:
    rows: list[Any] = list(db.scalars(select(table).where(condition).limit(_AT_ONCE)))
    for row in rows:
        db.delete(row)
    return len(rows)


def _old_reports(data_dir: Path, before: datetime) -> list[Path]:
    found = (data_dir / "reports").glob("inspect-*.html")
    return sorted(path for path in found if path.stat().st_mtime < before.timestamp())


def _left_behind(data_dir: Path) -> list[Path]:
    """What killed processes left half-written; restores keep a lock of their own, so that none is at work."""
    patterns = (".restoring-*", ".replaced-*", ".write-check-*", "reports/.report*-*", "datasets/.partial-*")
    limit = (now() - _ABANDONED).timestamp()
    found = [path for pattern in patterns for path in data_dir.glob(pattern)]
    return sorted(path for path in found if path.stat().st_mtime < limit)


def _bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(inner.stat().st_size for inner in path.rglob("*") if inner.is_file())

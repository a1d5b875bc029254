"""Stages and steps: what runs, what is skipped, and where each item ends.

A stage is a list of steps. A step plans *all* its present items with their
fingerprints; the ledger decides which of them need work; what vanished is
retired. ``process`` computes without holding a transaction and returns an
outcome whose ``write`` stores the records; the runner commits records and
ledger row together, so a kill loses at most the items in flight.

Nothing here knows Prefect: flows call ``pending`` and ``run_batch``.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

import structlog
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Failure, LedgerRow, now
from corpus.errors import DeferredError, DiskError, PlatformError, TransientError, disk_error
from corpus.ids import digest
from corpus.restriction import is_restricted

log = structlog.get_logger("hchem.stages")

_STORE_ATTEMPTS = 3
_STORE_PAUSE_S = 0.5
State = Literal["kept", "rejected", "duplicate", "review", "failed"]


@dataclass(frozen=True)
class Item:
    """One unit of a step's work: an id and the fingerprint of everything it rests on."""

    id: str
    fingerprint: str


@dataclass
class Outcome:
    """What became of an item. ``write`` stores its records in the runner's transaction.

    ``counts`` are added up over the step and shown (assertions, chunks, reasons …).
    """

    state: State = "kept"
    reason: str = ""
    detail: str = ""
    write: Callable[[Session], None] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


class Halt:
    """Set by the first error that makes going on useless (``PlatformError.halts``); batches then do no more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: PlatformError | None = None

    def set(self, error: PlatformError) -> None:
        """Keep the first error."""
        with self._lock:
            self._error = self._error or error

    @property
    def error(self) -> PlatformError | None:
        """What stopped the step, if anything did."""
        return self._error


@dataclass
class StageContext:
    """What every step receives. ``run_id`` is a fact about the run, never part of a result.

    ``only_failed``: what failed before, terminal failures included; ``only_missing``: what was never
    processed; both: either. Only some ``sources``, ``chemicals`` (names, CAS numbers or keys), or contents that were
    transferred in a span of time: ``corpus.restriction`` makes queries of them.
    """

    catalogue: Catalogue
    run_id: str
    force: bool = False
    only_failed: bool = False
    only_missing: bool = False
    limit: int | None = None
    sources: tuple[str, ...] = ()
    chemicals: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    progress: Callable[[str, int, int], None] = lambda step, done, total: None
    cancelled: Callable[[], bool] = lambda: False
    halt: Halt = field(default_factory=Halt)


class Step(Protocol):
    """A step of a stage. ``batch_size`` None marks a barrier (its items run one after another).

    ``concurrency``: items of a batch that are processed at once; above 1 where
    ``process`` mostly waits (for a model). ``process`` must then be thread-safe.
    """

    name: str  # "<stage>.<step>", at most 64 characters
    version: str
    batch_size: int | None

    @property
    def concurrency(self) -> int:
        """Items of a batch at once."""
        ...

    def plan(self, ctx: StageContext) -> list[Item]:
        """All present items with fingerprints, ordered by id. Reads only."""
        ...

    def prepare(self, ctx: StageContext, items: Sequence[Item]) -> None:
        """Warm what the batch shares (embeddings, model caches). May do nothing."""
        ...

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Work on one item. Raises PlatformError for a failure that is to be recorded."""
        ...

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Remove the records of items that are no longer planned."""
        ...


@dataclass
class BaseStep:
    """Defaults for steps: nothing to prepare, nothing to retire."""

    name: str = ""
    version: str = "1"
    batch_size: int | None = 50

    @property
    def concurrency(self) -> int:
        """One item after another by default."""
        return 1

    def prepare(self, ctx: StageContext, items: Sequence[Item]) -> None:
        """Nothing is shared by default."""

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Nothing to remove by default."""


@dataclass
class Stage:
    """A named list of steps; ``close`` releases what the stage holds (servers, models)."""

    name: str
    steps: list[Step]
    close: Callable[[], None] = lambda: None


@dataclass
class BatchReport:
    """Counts of a batch: items by state, reasons, the steps' own counters."""

    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, other: BatchReport) -> None:
        """Add another batch's counts to this one."""
        self.states.update(other.states)
        self.reasons.update(other.reasons)
        self.counts.update(other.counts)
        self.seconds += other.seconds

    def count(self, state: str, reason: str, counts: Mapping[str, int]) -> None:
        """Count an item that ended so."""
        self.states[state] += 1
        if reason:
            self.reasons[f"{state}: {reason}"] += 1
        self.counts.update(counts)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> BatchReport:
        """The report whose plain data these are."""
        return cls(
            Counter(data["states"]), Counter(data["reasons"]), Counter(data["counts"]), data["seconds"]
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for tables and JSON."""
        return {
            "states": dict(self.states),
            "reasons": dict(self.reasons),
            "counts": dict(self.counts),
            "seconds": round(self.seconds, 3),
        }


def pending(step: Step, ctx: StageContext) -> list[Item]:
    """Items of the step that need work; retires the vanished ones first.

    Skipped: same fingerprint and a settled state, or a terminal failure (unless
    ``force`` or ``only_failed`` ask for it). Vanished items are kept when the
    run is restricted (``corpus.restriction``), since then the plan is partial.
    """
    items = step.plan(ctx)
    with ctx.catalogue.reading() as session:
        rows = {
            row.item_id: row for row in session.scalars(select(LedgerRow).where(LedgerRow.step == step.name))
        }
    if not is_restricted(ctx):
        _retire(step, ctx, sorted(set(rows) - {item.id for item in items}))
    chosen = [item for item in items if needs_work(rows.get(item.id), item, ctx)]
    return chosen[: ctx.limit] if ctx.limit else chosen


def settle(step: Step, ctx: StageContext) -> None:
    """Retire the step's vanished items, without looking at the others. ``ctx`` must not be restricted."""
    with ctx.catalogue.reading() as session:
        known = set(session.scalars(select(LedgerRow.item_id).where(LedgerRow.step == step.name)))
    if known:
        _retire(step, ctx, sorted(known - {item.id for item in step.plan(ctx)}))


def _retire(step: Step, ctx: StageContext, vanished: Sequence[str]) -> None:
    if not vanished:
        return
    with ctx.catalogue.writing() as session:
        step.retire(session, vanished)
        for item_id in vanished:
            session.execute(
                delete(LedgerRow).where(LedgerRow.step == step.name, LedgerRow.item_id == item_id)
            )
    log.info("retired", step=step.name, items=len(vanished))


def needs_work(row: LedgerRow | None, item: Item, ctx: StageContext) -> bool:
    """Whether the ledger's row of an item leaves it to be done."""
    if ctx.only_failed or ctx.only_missing:
        return ctx.only_missing if row is None else ctx.only_failed and row.state == "failed"
    if row is None or ctx.force or row.fingerprint != item.fingerprint:
        return True
    return failed_for_now(row)


def failed_for_now(row: LedgerRow) -> bool:
    """Whether an item failed in a way that may pass."""
    return row.state == "failed" and row.detail.startswith("transient")


def run_batch(step: Step, ctx: StageContext, items: Sequence[Item]) -> BatchReport:
    """Process a batch's items; a failing item is recorded and the rest goes on.

    Errors that are not PlatformErrors are recorded as terminal with their type,
    since one bad page must not stop a batch. After an error that halts the step,
    and once the run is cancelled, the remaining items are left as they were, to be
    done by the next run.
    """
    report = BatchReport()
    began = time.monotonic()
    if ctx.halt.error is None and not ctx.cancelled():
        try:
            step.prepare(ctx, items)
        except (PlatformError, OSError) as raised:
            error = of_platform(raised)
            if error.halts:
                ctx.halt.set(error)
                items = items[:1]
            for item in items if not ctx.cancelled() else ():
                _record_failure(step, ctx, item, error, report)
        else:
            _run_items(step, ctx, items, report)
    report.seconds = time.monotonic() - began
    return report


def _run_items(step: Step, ctx: StageContext, items: Sequence[Item], report: BatchReport) -> None:
    lock = threading.Lock()

    def run(item: Item) -> None:
        if ctx.cancelled() or ctx.halt.error is not None:
            return
        own = BatchReport()
        _run_item(step, ctx, item, own)
        with lock:
            report.add(own)

    width = min(step.concurrency, len(items))
    if width <= 1:
        for item in items:
            run(item)
        return
    with ThreadPoolExecutor(max_workers=width) as pool:
        for _ in pool.map(run, items):
            pass


def _run_item(step: Step, ctx: StageContext, item: Item, report: BatchReport) -> None:
    try:
        outcome = step.process(ctx, item)
        _store(step, ctx, item, outcome)
    except DeferredError:
        report.states["waiting"] += 1
        return
    except PlatformError as error:
        if ctx.cancelled():  # what is being stopped fails in its own ways; the next run does the item
            return
        if error.halts:
            ctx.halt.set(error)
        _record_failure(step, ctx, item, error, report)
        return
    except Exception as error:  # a bug on one item is recorded, the batch goes on
        if ctx.cancelled():
            return
        wrapped = of_platform(error)
        if wrapped.halts:
            ctx.halt.set(wrapped)
        else:
            log.exception("item failed", step=step.name, item=item.id)
        _record_failure(step, ctx, item, wrapped, report)
        return
    report.count(outcome.state, outcome.reason, outcome.counts)


def of_platform(error: Exception) -> PlatformError:
    """An error as one of ours: what the disk refuses halts the step, a bug is recorded with its type."""
    if isinstance(error, PlatformError):
        return error
    of_disk = disk_error(error) if isinstance(error, OSError) else None
    return of_disk or PlatformError(f"{type(error).__name__}: {error}", reason="unexpected")


def _store(step: Step, ctx: StageContext, item: Item, outcome: Outcome) -> None:
    """Store records and ledger row; again where the database went away in the middle of it.

    What was computed is not lost to a restart of the database. A commit whose answer was
    lost is stored twice, which changes nothing: an item's records replace what it had.
    """
    for attempt in range(1, _STORE_ATTEMPTS + 1):
        try:
            with ctx.catalogue.writing() as session:
                if outcome.write is not None:
                    outcome.write(session)
                _record(session, step, ctx, item, outcome)
            return
        except TransientError as error:
            if error.halts or attempt == _STORE_ATTEMPTS or ctx.cancelled():
                raise
            log.warning("repeating", step=step.name, item=item.id, why=str(error))
            time.sleep(_STORE_PAUSE_S)


def _record(session: Session, step: Step, ctx: StageContext, item: Item, outcome: Outcome) -> None:
    session.merge(
        LedgerRow(
            step=step.name,
            item_id=item.id,
            fingerprint=item.fingerprint,
            state=outcome.state,
            reason=outcome.reason[:64],
            detail=outcome.detail,
            counts=dict(outcome.counts),
            run_id=ctx.run_id,
            updated_at=now(),
        )
    )
    if outcome.state != "failed":
        session.execute(
            update(Failure)
            .where(Failure.step == step.name, Failure.item_id == item.id, Failure.resolved_run.is_(None))
            .values(resolved_run=ctx.run_id)
        )


def _record_failure(
    step: Step, ctx: StageContext, item: Item, error: PlatformError, report: BatchReport
) -> None:
    if isinstance(error, DiskError):  # nothing can be stored; the item stays to be done
        return
    kind = "transient" if error.transient else "terminal"
    message = str(error)[:4000]
    log.warning("failed", step=step.name, item=item.id, kind=kind, reason=error.reason, message=message)
    with ctx.catalogue.writing() as session:
        outcome = Outcome(state="failed", reason=error.reason, detail=f"{kind}: {message}")
        _record(session, step, ctx, item, outcome)
        session.merge(
            Failure(
                failure_id=digest("failure", step.name, item.id, ctx.run_id, error.reason),
                step=step.name,
                item_id=item.id,
                kind=kind,
                reason=error.reason[:64],
                message=message,
                run_id=ctx.run_id,
                at=now(),
            )
        )
    report.states["failed"] += 1
    report.reasons[f"failed: {error.reason}"] += 1


def batches(step: Step, items: Sequence[Item]) -> Iterable[list[Item]]:
    """Cut the items into the step's batches; a barrier is one batch."""
    size = step.batch_size or max(len(items), 1)
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def run_step(step: Step, ctx: StageContext) -> BatchReport:
    """Plan and run a step in this process, batch after batch (the ``--direct`` form)."""
    items = pending(step, ctx)
    total = BatchReport()
    done = 0
    ctx.progress(step.name, 0, len(items))
    for batch in batches(step, items):
        total.add(run_batch(step, ctx, batch))
        done += len(batch)
        ctx.progress(step.name, done, len(items))
    return total

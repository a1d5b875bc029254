"""Batches that the processes on one catalogue share: what the leading run does, and how one batch is done.

The leading run decides what there is to do, does the barriers, and puts the batches
of a per-item step on the board (``corpus.catalogue.work``); assistants
(``flows.assist``) help with them. Whoever claims a batch first asks the ledger which
of its items this run has done already, since the one before may have been killed in
the middle: these are counted and not done again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import select
from sqlalchemy.engine import make_url

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import LedgerRow, Run
from corpus.catalogue.work import HALT, Claim, ClaimLostError, WorkBoard
from corpus.errors import SettingsError
from corpus.stages import BatchReport, Item, StageContext, Step, failed_for_now, run_batch
from flows import elsewhere
from flows.runtime import Runtime
from flows.settings import Settings

log = structlog.get_logger("hchem.run")

SHARING = "sharing"
"""Key of a run's settings under which assistants find what they must know of it."""

POLL_S = 0.3  # between looks at the board while others finish their batches
_LEADS_HERE = (
    "leading-run"  # in the data directory: the run that leads; who finds it there has the same files
)
_TOLD = (
    "force",
    "only_failed",
    "limit",
    "sources",
    "chemicals",
    "since",
    "until",
)  # of the context, to assistants
_MOMENTS = ("since", "until")

Runner = Callable[[Step, StageContext, Sequence[Item]], BatchReport]


def is_shared(settings: Settings) -> bool:
    """Whether a run with these settings shares its batches.

    Unless set: where the catalogue is a server, and no question waits for a batch
    API. Raises SettingsError where both are set.
    """
    asked = settings.flows.share_batches
    skills = [name for name, model in settings.models.configured().items() if model.transport == "batch"]
    if asked and skills:  # the queue of the batch transport lives in the process whose steps fill it
        raise SettingsError(
            f"transport = 'batch' ({', '.join(skills)}) cannot be shared: set flows.share_batches = false or another "
            "transport (HCHEM_FLOWS__SHARE_BATCHES, HCHEM_MODELS__TRANSPORT)"
        )
    if asked is not None:
        return asked
    return not skills and make_url(settings.catalogue_url()).get_backend_name() != "sqlite"


# --- the leading run --------------------------------------------------------------------------------------------


@dataclass
class Share:
    """A step whose batches are on the board."""

    board: WorkBoard
    runtime: Runtime
    context: StageContext
    step: Step
    by: dict[str, int] = field(default_factory=dict)  # process → items

    def reports(self) -> Iterator[BatchReport]:
        """Reports of the batches that were done since they were last asked for, whoever did them."""
        for told in self.board.collect(self.context.run_id, self.step.name):
            elsewhere.take_halt(told, self.context.halt)
            report = BatchReport.of(told)
            self.by[told["by"]] = self.by.get(told["by"], 0) + sum(report.states.values())
            yield report

    def left(self) -> int:
        """Batches that are not done."""
        return self.board.left(self.context.run_id, self.step.name)

    def free(self) -> int:
        """Batches that can be claimed: open ones, and those of a process that is gone."""
        return self.board.free(self.context.run_id)[1]

    def waited(self) -> Iterator[BatchReport]:
        """Reports that come in until a batch is free or none is left."""
        while not self.context.cancelled():
            yield from self.reports()
            if self.free() or not self.left():
                return
            time.sleep(POLL_S)

    def work_off(self, workers: int) -> Iterator[BatchReport]:
        """Do batches on threads until none is left, and report as they are done."""
        closing = threading.Event()

        def through() -> None:
            while not closing.is_set() and not self.context.cancelled():
                if do_next(self.board, self.runtime, self.context, self.step, closing.is_set) is not None:
                    continue
                if not self.left():
                    return
                closing.wait(POLL_S)  # others are at work on what is left

        with ThreadPoolExecutor(max_workers=workers) as pool:
            try:
                running = {pool.submit(through) for _ in range(workers)}
                while running:
                    ended, running = wait(running, timeout=POLL_S, return_when=FIRST_EXCEPTION)
                    for future in ended:
                        future.result()
                    yield from self.reports()
            finally:
                closing.set()
        yield from self.reports()


@dataclass
class Sharing:
    """What the leading run holds while its batches can be shared."""

    board: WorkBoard
    runtime: Runtime
    context: StageContext
    _shares: dict[str, Share] = field(default_factory=dict)
    _posting: threading.Lock = field(default_factory=threading.Lock)  # a step is on the board once at a time

    @contextmanager
    def posted(self, step: Step, work: Sequence[Sequence[Item]]) -> Iterator[None]:
        """Have a step's batches on the board for a block. A step that stays here, or one batch, is not posted."""
        if elsewhere.stays_here(step) or len(work) < 2:
            yield
            return
        with self._posting:
            run_id = self.context.run_id
            self.board.post(
                run_id, step.name, [[(item.id, item.fingerprint) for item in batch] for batch in work]
            )
            share = self._shares[step.name] = Share(self.board, self.runtime, self.context, step)
            try:
                yield
            except BaseException:
                with suppress(Exception):  # the next run clears the board too
                    self.board.clear(run_id, step.name)
                raise
            finally:
                del self._shares[step.name]
            self.board.clear(run_id, step.name)
            if len(share.by) > 1:
                log.info("shared", step=step.name, processes=len(share.by), items=sorted(share.by.values()))

    def of(self, step: Step) -> Share | None:
        """The share of a step that is on the board."""
        return self._shares.get(step.name)


@contextmanager
def leading(runtime: Runtime, context: StageContext) -> Iterator[Sharing | None]:
    """What the leading run shares for a block; None where it shares nothing.

    What a killed run left on the board goes in any case: whoever still works on it
    writes nothing more, and what it wrote so far the run sees.
    """
    board = board_of(runtime, context)
    board.clear()
    leases.forget_dead(runtime.catalogue, ASSISTANT)
    if not is_shared(runtime.settings):
        yield None
        return
    _publish(runtime, context)
    with board.beating():
        try:
            yield Sharing(board, runtime, context)
        finally:
            with suppress(OSError):
                (runtime.data_dir / _LEADS_HERE).unlink()


def posted(sharing: Sharing | None, step: Step, work: Sequence[Sequence[Item]]) -> Any:
    """``Sharing.posted``; nothing happens where nothing is shared."""
    return nullcontext() if sharing is None else sharing.posted(step, work)


def of(sharing: Sharing | None, step: Step) -> Share | None:
    """``Sharing.of``; None where nothing is shared."""
    return None if sharing is None else sharing.of(step)


def _publish(runtime: Runtime, context: StageContext) -> None:
    """Tell assistants what they must know of the run."""
    told = {name: getattr(context, name) for name in _TOLD}
    for name in _MOMENTS:
        told[name] = told[name].isoformat() if told[name] else None
    (runtime.data_dir / _LEADS_HERE).write_text(context.run_id, encoding="utf-8")
    with runtime.catalogue.writing() as db:
        row = db.get_one(Run, context.run_id)
        marks = elsewhere.settings_marks(runtime.settings)
        row.settings = {**row.settings, SHARING: {"marks": marks, "context": told}}


# --- one batch --------------------------------------------------------------------------------------------------


def board_of(runtime: Runtime, context: StageContext) -> WorkBoard:
    """This process's view of the board; a halt that another process recorded halts the context."""

    def on_halt(message: str, reason: str) -> None:
        elsewhere.take_halt({HALT: [message, reason]}, context.halt)

    return WorkBoard(runtime.catalogue, seconds=runtime.settings.flows.lease_s, on_halt=on_halt)


def do_next(
    board: WorkBoard,
    runtime: Runtime,
    context: StageContext,
    step: Step,
    leaving: Callable[[], bool] = lambda: False,
    *,
    run: Runner = run_batch,
) -> BatchReport | None:
    """Claim the first free batch of a step and do it; its counts, None where none is free."""
    if not board.free(context.run_id)[1]:
        return None
    claim = board.claim(context.run_id, step.name)
    return None if claim is None else do(board, runtime, context, claim, leaving, run=run)


def do(
    board: WorkBoard,
    runtime: Runtime,
    context: StageContext,
    claim: Claim,
    leaving: Callable[[], bool] = lambda: False,
    *,
    run: Runner = run_batch,
) -> BatchReport:
    """Do what a claimed batch has left, and hand its report in; a batch that was not finished is given back."""
    step = runtime.step(claim.step)
    own = replace(
        context,
        catalogue=board.fenced(claim),
        cancelled=lambda: context.cancelled() or leaving() or board.is_lost(claim),
    )
    try:
        left, report = _split(runtime.catalogue, claim)
        if left:
            report.add(run(step, own, left))
    except ClaimLostError:  # recording a failure found the claim lost
        board.give_back(claim)
        return BatchReport()
    except BaseException:
        with suppress(Exception):
            board.give_back(claim)
        raise
    error = context.halt.error
    told: dict[str, Any] = report.as_dict() | {"by": board.holder}
    if error is not None:
        board.halt(claim.run_id, claim.step, str(error), error.reason)
        told[HALT] = [str(error), error.reason]
    complete = sum(report.states.values()) - report.states["waiting"] >= len(claim.items)
    if not complete and error is None:
        board.give_back(claim)
        return BatchReport()
    return report if board.finish(claim, told) else BatchReport()


def _split(catalogue: Catalogue, claim: Claim) -> tuple[list[Item], BatchReport]:
    """What is left of a batch, and the counts of what the run has done of it, as the ledger has them."""
    fingerprints = dict(claim.items)
    query = select(LedgerRow).where(
        LedgerRow.step == claim.step,
        LedgerRow.run_id == claim.run_id,
        LedgerRow.item_id.in_(list(fingerprints)),
    )
    with catalogue.reading() as db:
        rows = {row.item_id: row for row in db.scalars(query) if row.fingerprint == fingerprints[row.item_id]}
    report = BatchReport()
    left = []
    for item_id, fingerprint in claim.items:
        row = rows.get(item_id)
        if row is None or failed_for_now(row):
            left.append(Item(item_id, fingerprint))
        else:
            report.count(row.state, row.reason, row.counts)
    return left, report


# --- what assistants ask ----------------------------------------------------------------------------------------

ASSISTANT = "assist "
"""Beginning of the names of the leases that assistants hold, by which they are counted."""


def context_of(catalogue: Catalogue, run: Run, cancelled: Callable[[], bool]) -> StageContext:
    """The context of a leading run for an assistant."""
    told: dict[str, Any] = dict(run.settings[SHARING]["context"])
    for name in _MOMENTS:
        told[name] = datetime.fromisoformat(told[name]) if told[name] else None
    for name in ("sources", "chemicals"):
        told[name] = tuple(told[name])
    return StageContext(catalogue=catalogue, run_id=run.run_id, cancelled=cancelled, **told)


def has_its_files(data_dir: Path, run_id: str) -> bool:
    """Whether this data directory is the one that the leading run archives its pages in."""
    try:
        return (data_dir / _LEADS_HERE).read_text(encoding="utf-8") == run_id
    except OSError:
        return False

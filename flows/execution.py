"""Running stages: the part that knows nothing of Prefect.

``Session`` is one run: its row in the catalogue, the lease on it, the context
that steps receive. How a batch is executed is handed in, so that the direct
form, tests and Prefect's tasks run the same stage functions.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from typing import Any

import structlog
from sqlalchemy import select

from corpus.asking import translated
from corpus.catalogue import leases
from corpus.catalogue.tables import LedgerRow, Run, now
from corpus.errors import CatalogueBusyError, PlatformError, SettingsError, TerminalError, TransientError
from corpus.stages import BatchReport, Item, StageContext, Step, batches, pending, run_batch
from flows import accounting, moments, sharing, stopping, watchdog, webhook
from flows.console import err
from flows.gates import decisions, judging
from flows.gates.errors import AwaitingDecision
from flows.parameters import StageName, StageParameters
from flows.runtime import Runtime
from flows.settings import Settings
from kg import versions
from kg.versions import Version
from models.errors import ModelError

log = structlog.get_logger("hchem.run")
run_page = logging.getLogger("hchem")

BatchExecutor = Callable[["Session", Step, list[list[Item]]], Iterable[BatchReport]]
Progress = Callable[[str, int, int], None]
_WAIT_STEP_S = 2.0
_FEW_ITEMS = 5  # below this a share of failures says nothing


@dataclass
class StepReport:
    """One step of a run: how many items there were to do and what became of them."""

    step: str
    pending: int
    batches: BatchReport
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the run row."""
        return {**self.batches.as_dict(), "pending": self.pending, "wall_seconds": round(self.seconds, 2)}


def _silent(_step: str, _done: int, _total: int) -> None:
    return


class _Growing:
    """Lets a step that reports finer than its items (a crawl: pages, not sources) have the say."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._largest: dict[str, int] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        if total >= self._largest.get(step, 0):
            self._largest[step] = total
            self._progress(step, done, total)

    def beside(self, label: str) -> _Growing:
        """One that shows the steps of a part of the run, named by ``label``, beside those of the others."""
        return _Growing(lambda step, done, total: self._progress(f"{step} {label}", done, total))

    def finish(self, step: str) -> None:
        """Show a step as done, whatever it counted."""
        total = self._largest.get(step, 0)
        self._progress(step, total, total)


@dataclass
class Session:
    """One run: what it was asked for, what its steps receive, how its stages went."""

    runtime: Runtime
    context: StageContext
    flow: str
    parameters: StageParameters
    stop: threading.Event
    flow_run_id: str = ""  # Prefect's
    clock: moments.RunClock = field(default_factory=moments.RunClock)
    watch: stopping.Watch = field(default_factory=lambda: stopping.Watch(threading.Event()))
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    progress: _Growing = field(default_factory=lambda: _Growing(_silent))
    accounts: dict[str, accounting.Account] = field(default_factory=dict)
    sharing: sharing.Sharing | None = None  # of the batches, with assistants
    gates: judging.GateRun = field(default_factory=judging.GateRun)


@contextmanager
def session(
    runtime: Runtime,
    flow: str,
    parameters: StageParameters,
    *,
    progress: Progress = _silent,
    flow_run_id: str = "",
    deployed: bool = False,
) -> Iterator[Session]:
    """Hold the lease and the run row for a block; the row ends with how the block ended.

    A suspended run whose id the runtime has goes on. ``deployed``: a deployment
    started it, so that it can be suspended.
    Answers that an earlier run left at a batch API are collected first. Raises
    CatalogueBusyError when another run holds the catalogue (unless asked to wait
    for it), SettingsError where the batch transport is set with a task runner
    whose workers are other processes.
    """
    _check_transport(runtime.settings)
    with _lease(runtime, parameters.wait) as holder:
        _close_abandoned(runtime)
        decisions.close_expired(runtime.catalogue, runtime.settings.gates)
        stop = threading.Event()
        growing = _Growing(progress)
        context = StageContext(
            catalogue=runtime.catalogue,
            run_id=runtime.run_id or new_run_id(),
            **parameters.chosen(),
            progress=growing,
            cancelled=stop.is_set,
        )
        watch = stopping.Watch(stop, tell=_tell)
        current = Session(
            runtime, context, flow, parameters, stop, flow_run_id, watch=watch, progress=growing
        )
        watch.last_words.append(lambda: _let_go(current, holder))
        current.gates.policy = judging.policy_of(parameters.on_gate, deployed=deployed)
        _begin(current)
        try:
            with (
                watch.armed(),
                _questions_taken(runtime),
                sharing.leading(runtime, context) as current.sharing,
            ):
                yield current
        except BaseException as error:
            stop.set()
            state = "cancelled" if watch.asked else _state_after(error)
            with suppress(PlatformError):  # where nothing can be written, what stopped the run is what to say
                _finish(
                    current,
                    state,
                    "stopped on request" if watch.asked else f"{type(error).__name__}: {error}",
                )
            webhook.run_ended(current, state, error)
            raise
        _finish(current, "completed", "")
        webhook.watch_sources(current)


def _state_after(error: BaseException) -> str:
    """How a run ended: a step that halted is "stopped", since nothing is wrong with what it did."""
    if isinstance(error, PlatformError) and error.halts:
        return "stopped"
    if isinstance(error, AwaitingDecision):
        return "suspended"
    return "failed" if isinstance(error, Exception) else "cancelled"


def _check_transport(settings: Settings) -> None:
    """The queue of the batch transport lives in this process, and so must the steps that fill it."""
    runner = settings.flows.task_runner
    skills = [name for name, model in settings.models.configured().items() if model.transport == "batch"]
    if skills and runner != "thread":
        raise SettingsError(
            f"transport = 'batch' ({', '.join(skills)}) needs flows.task_runner = 'thread', not {runner!r}: "
            "set one of them otherwise (HCHEM_MODELS__TRANSPORT, HCHEM_FLOWS__TASK_RUNNER)"
        )
    sharing.is_shared(settings)


@contextmanager
def _questions_taken(runtime: Runtime) -> Iterator[None]:
    queue = runtime.models.batches
    if queue is None:
        yield
        return
    with queue.taking(_tell):
        yield


def _tell(line: str) -> None:
    """Say how a batch job goes, on the terminal at any verbosity (it may take hours) and on the page of the run."""
    run_page.info(line)
    err.print(line, markup=False, soft_wrap=True)


def new_run_id() -> str:
    """A run's name: the moment and a random part, so that runs sort by time."""
    return f"{now():%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


@contextmanager
def _lease(runtime: Runtime, wait: bool) -> Iterator[str]:
    seconds = runtime.settings.flows.lease_s
    told = False
    while True:
        try:
            with leases.held(runtime.catalogue, "run", seconds=seconds) as holder:
                yield holder
            return
        except CatalogueBusyError as error:
            if not wait:
                raise
            if not told:
                log.warning("waiting", why=str(error))
                told = True
            time.sleep(_WAIT_STEP_S)


def _close_abandoned(runtime: Runtime) -> None:
    """Runs still marked running have no process any more, since we hold the lease."""
    watchdog.close(runtime.catalogue, watchdog.running(runtime.catalogue))


def _begin(current: Session) -> None:
    shown = accounting.shown_settings(current.runtime.settings)
    version = metadata.version("hchemsafety")
    with current.runtime.catalogue.writing() as db:
        row = db.get(Run, current.context.run_id)
        if row is not None and row.state == "suspended":
            row.state, row.message, row.finished_at = "running", "", None
            current.clock.resumed = True
            current.stages.update(row.stages)
            return
        db.add(
            Run(
                run_id=current.context.run_id,
                flow=current.flow,
                parameters=current.parameters.model_dump(mode="json"),
                settings=shown,
                flow_run_id=current.flow_run_id,
                code_version=version,
                started_at=current.clock.start(db),
            )
        )


def _finish(current: Session, state: str, message: str) -> None:
    with current.runtime.catalogue.writing() as db:
        row = db.get(Run, current.context.run_id)
        if row is not None:
            row.state, row.message, row.finished_at = state, message[:2000], current.clock.end(row)
            row.stages = dict(current.stages)


def _let_go(current: Session, holder: str) -> None:
    """Last words of a run that is given up."""
    _finish(current, "cancelled", "stopped in the middle of an item; the next run goes on where it stopped")
    leases.release(current.runtime.catalogue, "run", holder)


def run_stage(current: Session, name: StageName, execute: BatchExecutor) -> dict[str, Any]:
    """Run the steps of a stage in order; returns {step: counts}.

    Raises TerminalError when more than ``flows.max_failed_share`` of a step's
    items failed, TransientError when a step halted (budget spent, endpoint down,
    key refused): what is done stays, the next run goes on with the rest. Raises
    GateError where a blocking quality gate fails the run; where it is to ask,
    ``current.gates.held`` is set.
    """
    began = time.monotonic()
    reports: dict[str, Any] = {}
    current.accounts[name] = accounting.begin(current.runtime, current.context, name)
    stage = current.runtime.stage(name)
    for step in stage.steps:
        report = _run_step(current, step, execute)
        reports[step.name] = report.as_dict()
        _save(current, name, reports, began)
        _stop_if_halted(current, report)
        _gate(current, report)
    judging.after_stage(current, name)
    return reports


def run_steps(
    current: Session, name: StageName, steps: Iterable[Step], execute: BatchExecutor
) -> dict[str, Any]:
    """Run some steps of a stage for what the session's context is restricted to; returns {step: counts}.

    The counts are added to those of the stage in the run. Raises as ``run_stage``.
    """
    before = current.stages.get(name, {"seconds": 0.0, "steps": {}})
    began = time.monotonic() - before["seconds"]
    all_steps: dict[str, Any] = dict(before["steps"])
    made: dict[str, Any] = {}
    for step in steps:
        report = _run_step(current, step, execute)
        made[step.name] = report.as_dict()
        all_steps[step.name] = _added(all_steps.get(step.name, {}), made[step.name])
        _save(current, name, all_steps, began)
        _stop_if_halted(current, report)
        _gate(current, report)
    return made


def _added(before: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two reports of a step as one."""
    found: dict[str, Any] = {}
    for name, value in more.items():
        if isinstance(value, dict):
            earlier = before.get(name, {})
            found[name] = {key: earlier.get(key, 0) + value.get(key, 0) for key in [*earlier, *value]}
        else:
            found[name] = round(before.get(name, 0) + value, 3)
    return found


def take_version(current: Session) -> Version | None:
    """Keep what a run that made questions left as a version of the data set, and let old ones go.

    None where none is kept, by setting or since the questions were not looked at.
    """
    keep = current.runtime.settings.flows.keep_versions
    if not keep or "questions" not in current.stages:
        return None
    folder = versions.folder_of(current.runtime.data_dir)
    version, new = versions.take(current.runtime.catalogue, folder, run_id=current.context.run_id)
    gone = versions.collect(folder, keep)
    if new:
        webhook.version_taken(current, version)
    _tell(
        f"data set version {version.id}{'' if new else ', unchanged'}"
        + (f"; {len(gone)} old versions removed" if gone else "")
    )
    return version


def _save(current: Session, name: str, reports: dict[str, Any], began: float) -> None:
    current.runtime.models.flush()
    seconds = round(time.monotonic() - began, 2)
    models = current.accounts[name].as_dict(current.runtime.models)
    current.stages[name] = {"seconds": seconds, "steps": dict(reports), "models": models}
    with current.runtime.catalogue.writing() as db:
        row = db.get(Run, current.context.run_id)
        if row is not None:
            row.stages = dict(current.stages)


def _run_step(current: Session, step: Step, execute: BatchExecutor) -> StepReport:
    """Run a step; items that failed transiently get further passes."""
    settings = current.runtime.settings.flows
    began = time.monotonic()
    current.watch.check()
    items = pending(step, current.context)
    total = _execute_all(current, step, items, execute)
    for number in range(1, settings.passes):
        if current.stop.is_set() or current.context.halt.error or not total.states["failed"]:
            break
        again = _transient(current, step, {item.id for item in items})
        if not again:
            break
        time.sleep(settings.retry_delay_s * number)
        log.info("repeating", step=step.name, items=len(again))
        repeated = _execute_all(current, step, again, execute)
        total.states["failed"] -= len(again)
        total.add(repeated)
    if current.context.halt.error is None:
        current.progress.finish(step.name)
    return StepReport(step.name, len(items), total, time.monotonic() - began)


def _transient(current: Session, step: Step, ids: set[str]) -> list[Item]:
    with current.runtime.catalogue.reading() as db:
        rows = db.scalars(
            select(LedgerRow).where(
                LedgerRow.step == step.name,
                LedgerRow.state == "failed",
                LedgerRow.detail.startswith("transient"),
                LedgerRow.run_id == current.context.run_id,
            )
        )
        return sorted(
            (Item(row.item_id, row.fingerprint) for row in rows if row.item_id in ids),
            key=lambda item: item.id,
        )


def _execute_all(current: Session, step: Step, items: list[Item], execute: BatchExecutor) -> BatchReport:
    """Run the items, and those that wait for a batch job again when it is answered, until none waits.

    Each time they ask what they could not ask before: the repeat of an answer that
    failed its check, the second stage of a document. An error of the queue halts
    the step; items that wait then stay to be done.
    """
    before = _recorded(current, step)  # by an earlier pass, as failed
    total = _execute(current, step, items, execute, len(items))
    while total.states["waiting"] and current.context.halt.error is None:
        _work_off(current)
        if current.context.halt.error is None:
            after = _recorded(current, step)
            waiting = [item for item in items if after.get(item.id) == before.get(item.id)]
            del total.states["waiting"]
            total.add(_execute(current, step, waiting, execute, len(items)))
    return total


def _work_off(current: Session) -> None:
    queue = current.runtime.models.batches
    if queue is None:
        raise TerminalError("items wait for a batch job, and there is no queue", reason="no_queue")
    try:
        queue.work_off(_tell, current.stop.wait)
    except ModelError as error:
        fault = translated(error)
        fault.halts = True
        current.context.halt.set(fault)
    finally:
        if current.stop.is_set():  # the jobs go on at the endpoint without us
            for job in queue.jobs():
                _tell(
                    f"batch job {job.job_id[:8]} stays open: the next run, or hchem models batches collect, "
                    "fetches it"
                )


def _recorded(current: Session, step: Step) -> dict[str, datetime]:
    """The items that this run has brought to an end, and when."""
    query = select(LedgerRow.item_id, LedgerRow.updated_at).where(
        LedgerRow.step == step.name, LedgerRow.run_id == current.context.run_id
    )
    with current.runtime.catalogue.reading() as db:
        return {row.item_id: row.updated_at for row in db.execute(query)}


def _execute(current: Session, step: Step, items: list[Item], execute: BatchExecutor, of: int) -> BatchReport:
    """Run items; the progress counts them as the last of ``of`` items, those that wait as not done."""
    total = BatchReport()
    if not items:
        current.progress(step.name, 0, 0)
        return total
    work = list(batches(step, items))
    done = of - len(items)
    current.progress(step.name, done, of)
    with sharing.posted(current.sharing, step, work):
        for report in execute(current, step, work):
            total.add(report)
            done += sum(report.states.values()) - report.states["waiting"]
            current.progress(step.name, done, of)
    current.watch.check()
    return total


def _stop_if_halted(current: Session, report: StepReport) -> None:
    error = current.context.halt.error
    if error is None:
        return
    states = report.batches.states
    left = report.pending - sum(states.values()) + states["failed"] + states["waiting"]
    stopped = TransientError(
        f"{report.step} stopped: {error} ({report.pending - left} of {report.pending} items are done and kept; "
        f"the same command goes on with the other {left})",
        reason=error.reason,
        step=report.step,
    )
    stopped.halts = True
    raise stopped


def _gate(current: Session, report: StepReport) -> None:
    limit = current.runtime.settings.flows.max_failed_share
    failed = report.batches.states["failed"]
    alone = report.pending < _FEW_ITEMS and failed == report.pending
    if failed and (alone or (report.pending >= _FEW_ITEMS and failed / report.pending > limit)):
        reasons = ", ".join(f"{reason} ×{n}" for reason, n in report.batches.reasons.most_common(3))
        raise TerminalError(
            f"{report.step}: {failed} of {report.pending} items failed ({reasons}); see `hchem runs show`",
            reason="too_many_failures",
            step=report.step,
        )


def direct(current: Session, step: Step, work: list[list[Item]]) -> Iterator[BatchReport]:
    """Run batches on threads of this process, without Prefect; reports come in batch order."""
    workers = current.runtime.settings.flows.workers
    if (share := sharing.of(current.sharing, step)) is not None:
        yield from share.work_off(workers)
        return
    if step.batch_size is None or len(work) == 1 or workers == 1:
        for batch in work:
            yield run_batch(step, current.context, batch)
        return
    with ThreadPoolExecutor(max_workers=workers) as pool:
        yield from pool.map(lambda batch: run_batch(step, current.context, batch), work)

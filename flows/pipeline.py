"""The Prefect flows: when a stage runs, and how it went. Thin and synchronous.

One task is one batch; ids go between tasks, never payloads; Prefect's result
storage holds nothing of ours. Import this module only once the environment
points at a server (``flows.prefect_server.ensure``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from prefect import Flow, flow, get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.events import emit_event
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.work import WorkBoard
from corpus.errors import PlatformError, SettingsError
from corpus.stages import BatchReport, Item, StageContext, Step, run_batch
from flows import (
    artifacts,
    assist_flow,
    cancelling,
    elsewhere,
    execution,
    guards,
    report,
    run_names,
    secrets,
    sharing,
    slots,
)
from flows.execution import Session
from flows.gates import waiting
from flows.parameters import STAGES, RefreshParameters, StageName, StageParameters
from flows.runtime import Runtime, open_runtime
from flows.settings import FlowSettings, load_settings

_active: list[Session] = []  # the run of this process; the lease allows one
_watchers: list[Callable[[str, int, int], None]] = []  # the command line's progress display
flow_runs: list[str] = []  # flow runs of this process, in the order in which they began
_submitted = 0


def watch(progress: Callable[[str, int, int], None]) -> None:
    """Send progress of the flows of this process to ``progress`` too."""
    _watchers.append(progress)


def _is_transient(_task: Any, _run: Any, state: Any) -> bool:
    """Repeat a task only for errors that may pass."""
    result = state.result(raise_on_failure=False)
    return isinstance(result, PlatformError) and result.transient and result.reason != slots.LOST


@task(
    name="batch",
    task_run_name="{step} {number}",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=_is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def batch_task(step: str, number: int, items: list[tuple[str, str]], run: dict[str, Any]) -> dict[str, Any]:
    """Run one batch of a step; returns its counts. Without ``items``: the first batch that is free (``_shared``)."""
    return _batch(step, items, run)


def _batch(step: str, items: list[tuple[str, str]], run: dict[str, Any]) -> dict[str, Any]:
    """The task's work. Dask and Ray pickle the task's function with all it names, this one by its name alone."""
    work = [Item(*item) for item in items]
    current = next((s for s in _active if s.context.run_id == run["run_id"]), None)
    if current is not None:
        board = current.sharing.board if current.sharing is not None and not items else None
        return _run_batch(current.runtime, current.context, step, work, board)

    def run_here(runtime: Runtime, context: StageContext, batch: list[Item]) -> dict[str, Any]:
        if batch:
            return _run_batch(runtime, context, step, batch)
        board = sharing.board_of(runtime, context)
        with board.beating():
            return _run_batch(runtime, context, step, batch, board)

    return elsewhere.run(work, run, run_here)


def _run_batch(
    runtime: Runtime, context: StageContext, name: str, work: list[Item], board: WorkBoard | None = None
) -> dict[str, Any]:
    """Run a batch, with a board the first free one; where it waits for a model it holds a slot over all processes."""
    step = runtime.step(name)

    def run() -> BatchReport:
        if board is None:
            return run_batch(step, context, work)
        return sharing.do_next(board, runtime, context, step) or BatchReport()

    if step.concurrency <= 1:
        return run().as_dict()

    def needless() -> bool:
        return context.cancelled() or context.halt.error is not None

    with slots.slots_for(runtime.settings.models.limits).hold(needless):
        report = BatchReport() if needless() else run()
    return report.as_dict()


def _submit(current: Session, step: Step, work: list[list[Item]]) -> Iterator[BatchReport]:
    """Hand batches to the flow's task runner; reports come in batch order."""
    global _submitted  # noqa: PLW0603 - one run per process, counted for the final check
    context = current.context
    run = {
        "run_id": context.run_id,
        "force": context.force,
        "only_failed": context.only_failed,
        "limit": context.limit,
        "sources": list(context.sources),
        "chemicals": list(context.chemicals),
        "since": context.since,
        "until": context.until,
        "archive": current.parameters.archive,
        "preset": current.parameters.preset,
        "settings": elsewhere.settings_marks(current.runtime.settings),
    }
    share = sharing.of(current.sharing, step)
    with _runner_of(current, step) as runner:
        if share is not None:
            yield from _shared(
                share, len(work), lambda n: runner({"step": step.name, "number": n, "items": [], "run": run})
            )
            return
        futures: list[PrefectFuture[dict[str, Any]]] = []
        for number, batch in enumerate(work, start=1):
            given = {"step": step.name, "number": number, "run": run}
            given["items"] = [(item.id, item.fingerprint) for item in batch]
            futures.append(runner(given))
            _submitted += 1
        for future in futures:
            report = future.result()
            elsewhere.take_halt(report, context.halt)
            yield BatchReport.of(report)


def _shared(
    share: sharing.Share, count: int, submit: Callable[[int], PrefectFuture[dict[str, Any]]]
) -> Iterator[BatchReport]:
    """Batches that assistants take too: as many tasks as there are batches, each does the first that is free.

    A task is not bound to its number, so that none waits for a batch that an assistant
    has while others are open: the run takes from the front and assistants from the
    back, hence numbers and batches agree until they meet, and the tasks after that end
    at once. Further tasks do what comes back from assistants that went away.
    """
    global _submitted  # noqa: PLW0603 - see _submit
    while count:
        futures = [submit(number) for number in range(1, count + 1)]
        _submitted += count
        for future in futures:
            elsewhere.take_halt(future.result(), share.context.halt)
            yield from share.reports()
        yield from share.waited()
        count = share.free()
    yield from share.reports()


@contextmanager
def _runner_of(current: Session, step: Step) -> Iterator[Callable[[dict[str, Any]], PrefectFuture[Any]]]:
    """Where a step's batches go: to the flow's runner, or to threads of this process where they must stay here."""
    settings = current.runtime.settings.flows
    if settings.task_runner == "thread" or not elsewhere.stays_here(step):
        yield lambda given: batch_task.submit(**given)
        return
    here: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=settings.workers)
    with here:
        yield lambda given: here.submit(batch_task, given)


def task_runner(settings: FlowSettings) -> TaskRunner[Any]:
    """Threads, or an existing Dask or Ray scheduler, by setting."""
    if settings.task_runner == "thread":
        return ThreadPoolTaskRunner(max_workers=settings.workers)
    try:
        if settings.task_runner == "dask":
            from prefect_dask.task_runners import DaskTaskRunner

            return DaskTaskRunner(address=settings.task_runner_address)
        from prefect_ray import RayTaskRunner

        return RayTaskRunner(address=settings.task_runner_address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise SettingsError(
            f"flows.task_runner is {settings.task_runner!r}, but its package is missing: "
            f"pip install 'hchemsafety[{settings.task_runner}]'"
        ) from error


class _ProgressArtifacts:
    """One progress artifact per step, updated as batches end; a server that went away costs the display alone."""

    def __init__(self) -> None:
        self._ids: dict[str, Any] = {}
        self._gone = False

    def __call__(self, step: str, done: int, total: int) -> None:
        for watcher in _watchers:
            watcher(step, done, total)
        if not total or self._gone:
            return
        try:
            self._show(step, round(100.0 * done / total, 1), total)
        except httpx.HTTPError as error:  # after the client's own repetitions, about a minute
            self._gone = True
            execution.log.warning("progress is no longer shown in the Prefect UI", why=type(error).__name__)

    def _show(self, step: str, share: float, total: int) -> None:
        if step not in self._ids:
            key = re.sub(r"[^a-z0-9]+", "-", step.lower())  # it may name a partition
            self._ids[step] = create_progress_artifact(
                progress=share, key=f"progress-{key}", description=f"{step}: {total} items"
            )
        else:
            update_progress_artifact(self._ids[step], progress=share)


@contextmanager
def _session(name: str, parameters: StageParameters) -> Iterator[tuple[Session, bool]]:
    """The run of this process: the outer flow's, or a new one (then True)."""
    if _active:
        with _active[0].watch.handling():  # Prefect has put its own handlers back for this flow
            yield _active[0], False
        return
    run_id = guards.suspended_run(parameters) or execution.new_run_id()
    with open_runtime(parameters.overrides(), run_id=run_id, archive=parameters.archive) as runtime:
        _prove_ready(runtime)
        with execution.session(
            runtime,
            name,
            parameters,
            progress=_ProgressArtifacts(),
            flow_run_id=str(flow_run.id),
            deployed=guards.deployed(),
        ) as current:
            cancelling.prepare(current.watch, flow_runs, served=not _watchers)
            run_names.rename(str(flow_run.id), run_names.called(name, run_id))
            _active.append(current)
            try:
                yield current, True
            finally:
                _active.clear()


def _prove_ready(runtime: Runtime) -> None:
    """See to what needs the server before a run is recorded: keys in blocks, the limit over processes."""
    secrets.prove(runtime.settings)
    slots.ensure_limit(runtime.settings.models.limits, tell=get_run_logger().info)


def _run(name: str, stages: tuple[StageName, ...], parameters: StageParameters) -> dict[str, Any]:
    flow_runs.append(str(flow_run.id))
    global _submitted  # noqa: PLW0603 - see _submit
    with _session(name, parameters) as (current, outermost):
        resumed = tuple(current.stages) if outermost else ()  # after a gate: these are done
        for stage in [stage for stage in stages if stage not in resumed]:
            if outermost and len(stages) > 1:
                _submitted += 1  # the server shows a subflow as a task run of its parent
                STAGE_FLOWS[stage](parameters.common())
            else:
                _stage_artifacts(current.runtime.catalogue, stage, _gated(current, stage))
            if outermost:
                current.gates.raise_if_held()
        if outermost:
            _run_artifacts(current)
        return {"run_id": current.context.run_id, "stages": current.stages}


def _gated(current: Session, stage: StageName) -> dict[str, Any]:
    """Run a stage; its quality gates are shown however they ended."""
    try:
        return execution.run_stage(current, stage, _submit)
    finally:
        waiting.show(current.gates.found.get(stage, []), stage)


def _stage_artifacts(catalogue: Catalogue, stage: str, reports: dict[str, Any]) -> None:
    logger = get_run_logger()
    for step, counts in reports.items():
        states = ", ".join(f"{state} {n}" for state, n in sorted(counts["states"].items())) or "nothing to do"
        logger.info("%s: %s (%.1f s)", step, states, counts["wall_seconds"])
    artifacts.publish_stage(catalogue, stage, reports)


def _run_artifacts(current: Session) -> None:
    current.runtime.models.flush()  # the report counts what is in the catalogue
    version = execution.take_version(current)
    if version is not None:
        emit_event(
            event="hchem.dataset.version",
            resource={
                "prefect.resource.id": f"hchem.dataset.{version.id}",
                "hchem.run": current.context.run_id,
            },
            payload={"rows": version.rows, "tags": list(version.tags)},
        )
    path = report.write(current.runtime, current.context.run_id, current.stages)
    artifacts.publish_run(current, version, path)
    guards.show_freshness(current)


def _called(name: str) -> str:
    """The name of a flow's run; of one that a run of this process started it has that run's id."""
    return run_names.called(name, _active[0].context.run_id if _active else "")


def _make(name: StageName) -> Flow[[StageParameters], dict[str, Any]]:
    def stage(parameters: StageParameters = StageParameters()) -> dict[str, Any]:  # noqa: B008 - Prefect's form
        return guards.guarded(parameters, lambda: _run(name, (name,), parameters))

    # Prefect tells stages apart by this: after a resume curate would take the run of acquire for its own
    stage.__name__ = stage.__qualname__ = name
    stage.__doc__ = f"The stage {name!r} of the pipeline."
    options = flow(
        name=name, flow_run_name=lambda: _called(name), persist_result=False, task_runner=_runner()
    )
    return options(stage)


def _runner() -> TaskRunner[Any]:
    return task_runner(load_settings().flows)


STAGE_FLOWS: dict[str, Flow[[StageParameters], dict[str, Any]]] = {name: _make(name) for name in STAGES}
acquire, curate, graph, questions, chunks, evaluate = (STAGE_FLOWS[name] for name in STAGES)


@flow(
    name="refresh",
    flow_run_name=lambda: _called("refresh"),
    persist_result=False,
    task_runner=_runner(),
)
def refresh(parameters: RefreshParameters = RefreshParameters()) -> dict[str, Any]:  # noqa: B008 - Prefect's form
    """From chemical names to an evaluated knowledge base; only what changed is redone."""
    return guards.guarded(parameters, lambda: _run("refresh", parameters.stages(), parameters))


assist = assist_flow.assist


def recorded_by_server(timeout_s: float = 60.0) -> tuple[int, int]:
    """Wait until the server has recorded every task run of this process; (recorded, submitted)."""
    import time

    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    deadline = time.monotonic() + timeout_s
    ids: list[Any] = list(flow_runs)
    seen = 0
    with get_client(sync_client=True) as client:
        while True:
            found = 0
            offset = 0
            while True:
                page = client.read_task_runs(
                    flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=ids)), limit=200, offset=offset
                )
                found += sum(1 for run in page if run.state is not None and run.state.is_final())
                offset += len(page)
                if len(page) < 200:
                    break
            seen = found
            if seen >= _submitted or time.monotonic() > deadline:
                return seen, _submitted
            time.sleep(0.5)

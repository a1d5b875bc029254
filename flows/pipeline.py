"""The Prefect flows: when a stage runs, and how it went. Thin and synchronous.

One task is one batch; ids go between tasks, never payloads; Prefect's result
storage holds nothing of ours. Import this module only once the environment
points at a server (``flows.prefect_server.ensure``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefect import Flow, flow, get_run_logger, task
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.events import emit_event
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from corpus.errors import PlatformError, SettingsError
from corpus.stages import BatchReport, Item, StageContext, Step, run_batch
from flows import execution, report, secrets, slots, summary
from flows.execution import Session
from flows.parameters import STAGES, RefreshParameters, StageName, StageParameters
from flows.runtime import Runtime, open_runtime
from flows.settings import FlowSettings, load_settings

_active: list[Session] = []  # the run of this process; the lease allows one
_watchers: list[Callable[[str, int, int], None]] = []  # the command line's progress display
_recorded: list[str] = []  # flow runs of this process, for `wait_until_recorded`
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
    """Run one batch of a step; returns its counts."""
    work = [Item(*item) for item in items]
    current = next((s for s in _active if s.context.run_id == run["run_id"]), None)
    if current is not None:
        return _run_batch(current.runtime, current.context, step, work)
    given = {name: value for name, value in run.items() if name not in ("archive", "preset")}
    overrides = {"preset": run["preset"]} if run["preset"] else None
    # a Dask or Ray worker reads settings of its own
    with open_runtime(overrides, run_id=run["run_id"], archive=run["archive"]) as runtime:
        context = StageContext(catalogue=runtime.catalogue, **given)
        return _run_batch(runtime, context, step, work)


def _run_batch(runtime: Runtime, context: StageContext, name: str, work: list[Item]) -> dict[str, Any]:
    """Run a batch; where it waits for a model it holds a slot over all processes."""
    step = runtime.step(name)
    if step.concurrency <= 1:
        return run_batch(step, context, work).as_dict()

    def needless() -> bool:
        return context.cancelled() or context.halt.error is not None

    with slots.slots_for(runtime.settings.models.limits).hold(needless):
        report = BatchReport() if needless() else run_batch(step, context, work)
    return report.as_dict()


def _as_report(data: dict[str, Any]) -> BatchReport:
    result = BatchReport(seconds=data["seconds"])
    result.states.update(data["states"])
    result.reasons.update(data["reasons"])
    result.counts.update(data["counts"])
    return result


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
        "archive": current.parameters.archive,
        "preset": current.parameters.preset,
    }
    futures: list[PrefectFuture[dict[str, Any]]] = []
    for number, batch in enumerate(work, start=1):
        futures.append(batch_task.submit(step.name, number, [(i.id, i.fingerprint) for i in batch], run))
        _submitted += 1
    for future in futures:
        yield _as_report(future.result())


def task_runner(settings: FlowSettings) -> TaskRunner[Any]:
    """Threads, or an existing Dask or Ray scheduler, by setting."""
    if settings.task_runner == "thread":
        return ThreadPoolTaskRunner(max_workers=settings.workers)
    try:
        if settings.task_runner == "dask":
            from prefect_dask import DaskTaskRunner

            return DaskTaskRunner(address=settings.task_runner_address)  # type: ignore[no-any-return]
        from prefect_ray import RayTaskRunner

        return RayTaskRunner(address=settings.task_runner_address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise SettingsError(
            f"flows.task_runner is {settings.task_runner!r}, but its package is missing: "
            f"pip install 'hchemsafety[{settings.task_runner}]'"
        ) from error


class _ProgressArtifacts:
    """One progress artifact per step, updated as batches end."""

    def __init__(self) -> None:
        self._ids: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        for watcher in _watchers:
            watcher(step, done, total)
        if not total:
            return
        share = round(100.0 * done / total, 1)
        if step not in self._ids:
            key = step.replace(".", "-").replace("_", "-")
            self._ids[step] = create_progress_artifact(
                progress=share, key=f"progress-{key}", description=f"{step}: {total} items"
            )
        else:
            update_progress_artifact(self._ids[step], progress=share)


@contextmanager
def _session(name: str, parameters: StageParameters) -> Iterator[tuple[Session, bool]]:
    """The run of this process: the outer flow's, or a new one (then True)."""
    if _active:
        yield _active[0], False
        return
    run_id = execution.new_run_id()
    with open_runtime(parameters.overrides(), run_id=run_id, archive=parameters.archive) as runtime:
        _prove_ready(runtime)
        with execution.session(
            runtime, name, parameters, progress=_ProgressArtifacts(), flow_run_id=str(flow_run.id)
        ) as current:
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
    _recorded.append(str(flow_run.id))
    global _submitted  # noqa: PLW0603 - see _submit
    with _session(name, parameters) as (current, outermost):
        for stage in stages:
            if outermost and len(stages) > 1:
                _submitted += 1  # the server shows a subflow as a task run of its parent
                STAGE_FLOWS[stage](parameters.common())
            else:
                _stage_artifacts(stage, execution.run_stage(current, stage, _submit))
        if outermost:
            _run_artifacts(current)
        return {"run_id": current.context.run_id, "stages": current.stages}


def _stage_artifacts(stage: str, reports: dict[str, Any]) -> None:
    logger = get_run_logger()
    for step, counts in reports.items():
        states = ", ".join(f"{state} {n}" for state, n in sorted(counts["states"].items())) or "nothing to do"
        logger.info("%s: %s (%.1f s)", step, states, counts["wall_seconds"])
    rows = [
        {
            "step": step,
            "to do": counts["pending"],
            **{
                state: counts["states"].get(state, 0)
                for state in ("kept", "rejected", "duplicate", "review", "failed")
            },
            "reasons": ", ".join(f"{reason} {n}" for reason, n in sorted(counts["reasons"].items())),
            "made": ", ".join(f"{what} {n}" for what, n in sorted(counts["counts"].items())),
            "seconds": counts["wall_seconds"],
        }
        for step, counts in reports.items()
    ]
    create_table_artifact(table=rows, key=f"stage-{stage}", description=f"Stage {stage}")


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
    status = summary.status(current.runtime.catalogue)
    create_markdown_artifact(
        summary.markdown(status, current.stages),
        key="run-summary",
        description="What is in the knowledge base",
    )
    create_link_artifact(link=path.as_uri(), link_text=str(path), key="run-report", description="HTML report")


def _make(name: StageName) -> Flow[[StageParameters], dict[str, Any]]:
    def stage(parameters: StageParameters = StageParameters()) -> dict[str, Any]:  # noqa: B008 - Prefect's form
        return _run(name, (name,), parameters)

    stage.__name__ = name
    stage.__doc__ = f"The stage {name!r} of the pipeline."
    return flow(name=name, persist_result=False, task_runner=_runner())(stage)


def _runner() -> TaskRunner[Any]:
    return task_runner(load_settings().flows)


STAGE_FLOWS: dict[str, Flow[[StageParameters], dict[str, Any]]] = {name: _make(name) for name in STAGES}
acquire, curate, graph, questions, chunks, evaluate = (STAGE_FLOWS[name] for name in STAGES)


@flow(name="refresh", persist_result=False, task_runner=_runner())
def refresh(parameters: RefreshParameters = RefreshParameters()) -> dict[str, Any]:  # noqa: B008 - Prefect's form
    """From chemical names to an evaluated knowledge base; only what changed is redone."""
    return _run("refresh", parameters.stages(), parameters)


def recorded_by_server(timeout_s: float = 60.0) -> tuple[int, int]:
    """Wait until the server has recorded every task run of this process; (recorded, submitted)."""
    import time

    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    deadline = time.monotonic() + timeout_s
    ids: list[Any] = list(_recorded)
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

"""The Prefect flow ``backfill``: each partition a subflow, its batches tasks. Import as ``flows.pipeline``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact
from prefect.runtime import flow_run

from flows import backfill as logic
from flows import cancelling, partitions, pipeline, report
from flows.parameters import BackfillParameters

_works: list[Callable[[], Any]] = []  # what the partition at work does; one at a time


@flow(name="partition", flow_run_name="{name}", persist_result=False, task_runner=pipeline._runner())
def partition(name: str) -> dict[str, Any]:
    """The work on one partition of a backfill; it is started by one."""
    return cancelling.stoppable(_work)  # type: ignore[no-any-return]


def _work() -> Any:
    pipeline.flow_runs.append(str(flow_run.id))
    with pipeline._active[0].watch.handling():  # Prefect has put its own handlers back for this flow
        return _works[-1]()


def _within(name: str, work: Callable[[], Any]) -> Any:
    pipeline._submitted += 1  # the server shows a subflow as a task run of its parent
    _works.append(work)
    try:
        return partition(name)
    finally:
        _works.pop()


@flow(
    name="backfill",
    flow_run_name=lambda: pipeline._called("backfill"),
    persist_result=False,
    task_runner=pipeline._runner(),
)
def backfill(parameters: BackfillParameters = BackfillParameters()) -> dict[str, Any]:  # noqa: B008 - Prefect's form
    """Partitions (source × period) that are not up to date, one after the other, then what rests on all of them."""
    return cancelling.stoppable(lambda: _backfill(parameters))  # type: ignore[no-any-return]


def _backfill(parameters: BackfillParameters) -> dict[str, Any]:
    pipeline.flow_runs.append(str(flow_run.id))
    with pipeline._session("backfill", parameters) as (current, _):
        runtime = current.runtime
        partitions.check_selection(runtime, parameters)
        if not parameters.yes:
            choice = logic.choose(runtime, current.context, parameters)
            logic.require_consent(logic.cost(runtime, current.context, parameters, choice))
        with logic.assistants(parameters.parallel):
            done = logic.run(current, parameters, pipeline._submit, _within)
        create_table_artifact(
            table=[
                {"partition": label, "state": state, "message": done.failed.get(label, "")}
                for label, state in sorted(done.partitions.items())
            ],
            key="backfill",
            description="Partitions that the backfill worked on",
        )
        if done.stopped:
            report.write(runtime, current.context.run_id, current.stages)
        else:
            pipeline._run_artifacts(current)
        done.raise_if_failed()
        return {"run_id": current.context.run_id, "stages": current.stages, **done.as_dict()}

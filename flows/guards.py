"""What surrounds a flow's run: a schedule that has nothing to do ends, a gate suspends it, a decision takes it up again.

Needs Prefect; the logic stands in ``flows.freshness`` and ``flows.gates``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.context import FlowRunContext
from prefect.runtime import deployment, flow_run
from prefect.states import Completed
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Run
from flows import cancelling, freshness
from flows.execution import Session
from flows.gates import waiting
from flows.gates.errors import AwaitingDecision
from flows.parameters import StageParameters
from flows.settings import load_settings


def deployed() -> bool:
    """Whether a deployment started this run, so that Prefect can suspend it."""
    return bool(deployment.id)


def guarded(parameters: StageParameters, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of ``run``, or a completed state where a scheduled refresh is not needed.

    Suspends the flow run (Prefect's ``Pause``) where a quality gate asks for a decision.
    """
    scheduled = _scheduled_for()
    if scheduled is not None:
        settings = load_settings(parameters.overrides())
        with closing(Catalogue.open(settings.catalogue_url())) as catalogue:
            again = _has_begun(catalogue)  # it goes on after a decision, or is tried again
            why = "" if again else freshness.needless(catalogue, settings, parameters, scheduled)
        if why:
            return Completed(message=why)  # type: ignore[return-value] # Prefect takes a state for the flow's end
    try:
        return cancelling.stoppable(run)  # type: ignore[no-any-return]
    except AwaitingDecision as held:
        waiting.suspend(held, load_settings(parameters.overrides()))


def _scheduled_for() -> datetime | None:
    """When a schedule wanted this run to begin; None for a run that somebody started."""
    context = FlowRunContext.get()
    row = context.flow_run if context is not None else None
    if row is None or row.parent_task_run_id or not row.auto_scheduled:
        return None
    found: datetime | None = row.expected_start_time
    return found


def _has_begun(catalogue: Catalogue) -> bool:
    with catalogue.reading() as db:
        return db.scalar(select(Run.run_id).where(Run.flow_run_id == str(flow_run.id)).limit(1)) is not None


def show_freshness(current: Session) -> None:
    """The ages of the sources as a table, under the stable key ``freshness``."""
    rows = [
        {
            "source": one.source,
            "state": "stale" if one.stale else "fresh",
            "last visit (UTC)": f"{one.visited_at:%Y-%m-%d %H:%M}" if one.visited_at else "never",
            "age": freshness.shown(one.age) if one.age is not None else "–",
            "limit": freshness.shown(one.limit),
        }
        for one in freshness.ages(current.runtime.catalogue, current.runtime.settings)
    ]
    if rows:
        create_table_artifact(table=rows, key="freshness", description="Age of the sources")


def suspended_run(parameters: StageParameters) -> str:
    """The id of our run that this flow run goes on with after a decision; "" in every other case.

    Raises GateError where the decision is to stop.
    """
    if not deployed():  # Prefect does not count the resumed run as another one
        return ""
    settings = load_settings(parameters.overrides())
    with closing(Catalogue.open(settings.catalogue_url())) as catalogue:
        return waiting.take_up(catalogue, str(flow_run.id), settings)

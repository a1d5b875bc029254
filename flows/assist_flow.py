"""The flow ``assist``: help the run that leads, from a worker of a Prefect server."""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows import cancelling, run_names, secrets, slots
from flows.assist import assisting
from flows.settings import load_settings


class AssistParameters(BaseModel):
    """How long to assist."""

    model_config = ConfigDict(extra="forbid")

    until_idle: bool = Field(
        default=True, description="End with the run that is helped, or when none has begun within a minute"
    )
    minutes: float | None = Field(default=None, gt=0, description="End after this time in any case")


@flow(name="assist", flow_run_name=lambda: run_names.called("assist"), persist_result=False)
def assist(parameters: AssistParameters = AssistParameters()) -> dict[str, Any]:  # noqa: B008 - Prefect's form
    """Do batches of the run that leads in this process too; start as many as there are workers to spare."""
    return cancelling.stoppable(lambda: _assist(parameters))  # type: ignore[no-any-return]


def _assist(parameters: AssistParameters) -> dict[str, Any]:
    tell = get_run_logger().info
    settings = load_settings()
    secrets.prove(settings)
    slots.ensure_limit(settings.models.limits, tell=tell)
    seconds = None if parameters.minutes is None else parameters.minutes * 60
    with assisting(tell=tell, until_idle=parameters.until_idle, seconds=seconds) as assistant:
        cancelling.prepare(assistant.watch, [str(flow_run.id)], served=True)
        done = assistant.work(settings)
        assistant.watch.check()
    return done.as_dict()

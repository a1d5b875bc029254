"""Deployments: the weekly refresh, and each stage for ad-hoc runs."""

from __future__ import annotations

from typing import Any

from prefect import serve
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy

from flows import pipeline, slots
from flows.console import err
from flows.parameters import RefreshParameters, StageParameters
from flows.settings import FlowSettings, load_settings


def serve_all(settings: FlowSettings) -> None:
    """Register the deployments and run what is due, until interrupted.

    A second refresh queues behind the first; schedules are not paused when this
    process ends, so that a restart changes nothing.
    """
    slots.ensure_limit(load_settings().models.limits, tell=err.print)
    one = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    weekly: Any = pipeline.refresh.to_deployment(
        name="weekly",
        cron=settings.schedule,
        concurrency_limit=one,
        parameters={"parameters": RefreshParameters().model_dump(mode="json")},
        description="The whole pipeline; only what changed is redone.",
        tags=["hchem"],
    )
    stages: list[Any] = [
        flow.to_deployment(
            name="ad-hoc",
            concurrency_limit=one,
            parameters={"parameters": StageParameters(wait=True).model_dump(mode="json")},
            description=f"The stage {name} alone.",
            tags=["hchem"],
        )
        for name, flow in pipeline.STAGE_FLOWS.items()
    ]
    serve(weekly, *stages, pause_on_shutdown=False, print_starting_message=False, limit=1)

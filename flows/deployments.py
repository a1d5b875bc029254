"""Deployments: the weekly refresh, and each stage for ad-hoc runs."""

from __future__ import annotations

import os
import signal
from typing import Any

from prefect import serve
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy

from flows import backfill_flow, pipeline, schedules, sharing, slots
from flows.assist_flow import AssistParameters
from flows.console import err
from flows.parameters import BackfillParameters, RefreshParameters, StageParameters
from flows.settings import FlowSettings, load_settings


def serve_all(settings: FlowSettings) -> None:
    """Register the deployments and run what is due, until interrupted.

    A second refresh queues behind the first; schedules are not paused when this
    process ends, so that a restart changes nothing. Runs that were missed meanwhile
    are skipped but the newest. Ctrl-C ends runs as SIGTERM does: cancelled, not crashed.
    """
    slots.ensure_limit(load_settings().models.limits, tell=err.print)
    served = definitions(settings)
    with get_client(sync_client=True) as client:
        schedules.keep_paused(served, schedules.deployments(client))
    schedules.tidy(err.print)
    signal.signal(signal.SIGINT, lambda _number, _frame: os.kill(os.getpid(), signal.SIGTERM))
    # one run leads, and where batches are shared one more process helps it
    helpers = sum(one.flow_name == pipeline.assist.name for one in served)
    serve(*served, pause_on_shutdown=False, print_starting_message=False, limit=1 + helpers)


def definitions(settings: FlowSettings) -> list[Any]:
    """The deployments: the scheduled refresh, each stage for ad-hoc runs, help where batches are shared."""
    one = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    helping: list[Any] = []
    if sharing.is_shared(load_settings()):
        found: Any = pipeline.assist.to_deployment(
            name="ad-hoc",
            parameters={"parameters": AssistParameters().model_dump(mode="json")},
            description="Help the run that leads with its batches.",
            tags=[schedules.TAG],
        )
        helping.append(found)
    weekly: Any = pipeline.refresh.to_deployment(
        name=schedules.WEEKLY,
        **schedules.options(settings.schedule),
        concurrency_limit=one,
        parameters={"parameters": RefreshParameters(wait=bool(helping)).model_dump(mode="json")},
        description="The whole pipeline; only what changed is redone.",
        tags=[schedules.TAG],
    )
    stages: list[Any] = [
        flow.to_deployment(
            name="ad-hoc",
            concurrency_limit=one,
            parameters={"parameters": StageParameters(wait=True).model_dump(mode="json")},
            description=f"The stage {name} alone.",
            tags=[schedules.TAG],
        )
        for name, flow in pipeline.STAGE_FLOWS.items()
    ]
    filling: Any = backfill_flow.backfill.to_deployment(
        name="ad-hoc",
        concurrency_limit=one,
        parameters={"parameters": BackfillParameters(wait=True).model_dump(mode="json", exclude_unset=True)},
        description="Partitions (source × period) that are not up to date.",
        tags=[schedules.TAG],
    )
    return [weekly, *stages, filling, *helping]

"""The flow that trains. Import it only once the environment points at a Prefect server."""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from flows.training.trainer import Job, Progress, fit

_active: list[tuple[Job, Progress, bool]] = []  # the training of this process


@task(name="fit", cache_policy=NO_CACHE, persist_result=False)
def fit_task(what: dict[str, Any]) -> dict[str, Any]:
    """Train the model of the flow that runs in this process."""
    job, progress, afresh = _active[0]
    return fit(job, progress, afresh=afresh)


@flow(name="train", persist_result=False)
def train(what: dict[str, Any]) -> dict[str, Any]:
    """Fine-tune one model on the records of one task."""
    figures = fit_task(what)
    get_run_logger().info("trained: %s", figures)
    rows = "\n".join(f"| {name} | {value} |" for name, value in {**what, **figures}.items())
    create_markdown_artifact(
        f"| | |\n| --- | --- |\n{rows}\n", key="training", description="Recipe and figures"
    )
    return figures


def train_with_prefect(job: Job, progress: Progress, *, afresh: bool) -> dict[str, Any]:
    """Run the flow for a job of this process."""
    _active.append((job, progress, afresh))
    try:
        return train({"task": job.task, "base": job.base, **job.recipe.values()})
    finally:
        _active.clear()

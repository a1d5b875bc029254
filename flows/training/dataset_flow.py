"""The flow that builds training records. Import it only once the environment points at a Prefect server."""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from chunking.training.build import Progress, TrainingBuilder
from chunking.training.card import card

_BATCH = 50
_RUNNER: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=2)
_active: list[tuple[TrainingBuilder, Progress]] = []  # the build of this process


@task(
    name="training examples",
    task_run_name="training examples {number}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
def make_examples(number: int, names: list[str]) -> int:
    """Make and keep the examples of a batch of documents; returns how many."""
    builder, _ = _active[0]
    return sum(builder.work(name) for name in names)


@flow(name="training-data", persist_result=False, task_runner=_RUNNER)
def training_data(options: dict[str, Any]) -> dict[str, Any]:
    """Make the examples of all documents that have none yet, then choose and write."""
    builder, progress = _active[0]
    pending = builder.pending()
    batches = [pending[start : start + _BATCH] for start in range(0, len(pending), _BATCH)]
    futures = [make_examples.submit(number, names) for number, names in enumerate(batches, start=1)]
    done = builder.taken
    for names, future in zip(batches, futures, strict=True):
        future.result()
        done += len(names)
        progress("training examples", done, builder.total)
    figures = builder.finish().as_dict()
    get_run_logger().info("records: %s", figures["records"])
    create_markdown_artifact(card(figures), key="training-data", description="Card of the training data")
    return figures


def build_with_prefect(builder: TrainingBuilder, progress: Progress) -> dict[str, Any]:
    """Run the flow for a builder of this process; the figures of its report."""
    _active.append((builder, progress))
    try:
        return training_data(builder.describe())
    finally:
        _active.clear()

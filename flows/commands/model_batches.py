"""``hchem models batches``: jobs at an endpoint's batch API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.table import Table

from corpus.catalogue import leases
from corpus.errors import SettingsError
from flows.console import err, out, whole
from flows.runtime import Runtime, open_runtime
from models.client.batch import BatchQueue
from models.protocols import BatchJob

app = typer.Typer()

_SHORT = 8  # characters of an id that are shown and suffice to name it
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_jobs(
    as_json: AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help="Finished jobs too.")] = False,
) -> None:
    """List jobs that are not finished, as they were when last looked at. Example: hchem models batches list --all"""
    with open_runtime() as runtime:
        jobs = _queue(runtime).jobs(ended=everything)
    if as_json:
        typer.echo(json.dumps([_row(job) for job in jobs], ensure_ascii=False, indent=2))
        return
    if not jobs:
        out.print("no batch jobs" if everything else "no open batch jobs (--all shows finished ones)")
        return
    table = Table(title="Batch jobs", title_justify="left")
    for column in ("job", "state", "answered", "since (UTC)", "model", "detail"):
        table.add_column(column, overflow="fold")
    for job in jobs:
        state = f"{job.state} ({job.status})" if job.status else job.state
        answered, since = f"{job.answered:,} of {job.total:,}", f"{job.created_at:%m-%d %H:%M}"
        table.add_row(job.job_id[:_SHORT], state, answered, since, job.model, job.detail)
    out.print(whole(table, "job"))


@app.command()
def collect() -> None:
    """Look at all open jobs once and store the answers of those that are over; the next run finds them.

    Example: hchem models batches collect
    """
    with open_runtime() as runtime, _alone(runtime):
        jobs = _queue(runtime).collect(_tell)
    ended = sum(job.ended for job in jobs)
    out.print(f"{ended} of {len(jobs)} open jobs finished" if jobs else "no open batch jobs")


@app.command()
def cancel(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job, or the beginning of its id.")],
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Give the job up without asking its endpoint; answers may be paid again."
        ),
    ] = False,
) -> None:
    """Cancel a job at its endpoint. What it has answered is kept; a run that waits for the rest goes without it.

    Example: hchem models batches cancel 3f2a90c1
    """
    with open_runtime() as runtime:
        queue = _queue(runtime)
        job = _named(queue, job_id)
        if not forget:
            queue.cancel(job.job_id, _tell)
            return
        with _alone(runtime):
            queue.give_up(job.job_id)
    out.print(
        f"batch job {job.job_id[:_SHORT]} is forgotten, its {job.total:,} questions are free to be asked again"
    )


def _tell(line: str) -> None:
    err.print(line, markup=False, soft_wrap=True)


def _queue(runtime: Runtime) -> BatchQueue:
    queue = runtime.models.batches
    if queue is None:
        raise SettingsError("the runtime was opened without a store for batch jobs")
    return queue


@contextmanager
def _alone(runtime: Runtime) -> Iterator[None]:
    """While no run is on: a run collects by itself and is sending perhaps. Raises CatalogueBusyError."""
    with leases.held(runtime.catalogue, "run", seconds=runtime.settings.flows.lease_s):
        yield


def _named(queue: BatchQueue, wanted: str) -> BatchJob:
    found = [job for job in queue.jobs(ended=True) if job.job_id.startswith(wanted)]
    open_ones = [job for job in found if not job.ended]
    if len(open_ones) == 1 or len(found) == 1:
        return (open_ones or found)[0]
    what = "names several" if found else "names no"
    raise SettingsError(f"{wanted!r} {what} batch job; see: hchem models batches list --all")


def _row(job: BatchJob) -> dict[str, object]:
    return {**vars(job), "created_at": job.created_at.isoformat()}

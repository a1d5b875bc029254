"""``hchem assist``: help the run that leads with its batches."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from corpus.errors import SettingsError
from flows.assist import assisting
from flows.console import err, out
from flows.operation_settings import period
from flows.settings import load_settings

app = typer.Typer()


@app.command()
def assist(
    until_idle: Annotated[
        bool,
        typer.Option(
            "--until-idle", help="End with the run that is helped, or when none has begun within a minute."
        ),
    ] = False,
    for_time: Annotated[
        str | None, typer.Option("--for", help="End after this time: 90s, 30m, 8h.", metavar="TIME")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as one JSON object.")] = False,
) -> None:
    """Help the run that leads: do batches that it shares, here, until it ends; then wait for the next.

    Start it beside a run or on another machine, with the same code, settings and
    catalogue (docs/scaling.md). Ctrl-C or SIGTERM gives back what is not done.

    Examples: hchem assist | hchem assist --until-idle | hchem assist --for 8h
    """
    seconds = None if for_time is None else _seconds(for_time)
    settings = load_settings()
    if settings.models.limits.processes_slot is not None:
        from flows import prefect_server
        from flows.runtime import prepare_data_dir

        prefect_server.ensure(prepare_data_dir(settings.data_dir), settings.prefect, tell=err.print)
    with assisting(tell=_tell, until_idle=until_idle, seconds=seconds) as assistant:
        done = assistant.work(settings)
    if as_json:
        typer.echo(json.dumps(done.as_dict(), ensure_ascii=False))
    else:
        out.print(f"{done.items} items in {done.batches} batches of {done.runs} runs were done here")


def _tell(line: str) -> None:
    err.print(line, markup=False, soft_wrap=True)


def _seconds(text: str) -> float:
    try:
        return period(text).total_seconds()
    except ValueError as error:
        raise SettingsError(f"--for: {error}") from error

"""``hchem status`` and ``hchem report``: what there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.console import out, show_summary
from flows.runtime import open_runtime

if TYPE_CHECKING:
    from flows.prefect_server import Server

app = typer.Typer()


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Freshness of the sources alone; exit code 3 where one is stale.")
    ] = False,
    notify: Annotated[
        bool, typer.Option("--notify", help="Post stale sources to the webhook (flows.webhook).")
    ] = False,
) -> None:
    """Show what is in the knowledge base and how the last run went.

    Examples: hchem status --json | hchem status --check
    """
    from corpus.catalogue import leases
    from corpus.catalogue.tables import Run
    from flows import freshness, prefect_server, summary, watchdog
    from flows.sharing import ASSISTANT

    if check:
        raise typer.Exit(_check(as_json, notify))

    with open_runtime() as runtime:
        settings = runtime.settings.model_dump(mode="json")
        figures = summary.status(runtime.catalogue, settings)
        server = prefect_server.running(runtime.data_dir)
        assistants = len(leases.living(runtime.catalogue, ASSISTANT))
        if as_json:
            figures["assistants"] = assistants
            figures["prefect"] = server.ui_url if server else None
            figures["freshness"] = [
                age.as_dict() for age in freshness.ages(runtime.catalogue, runtime.settings)
            ]
            typer.echo(json.dumps(figures, ensure_ascii=False, indent=2))
            return
        last = figures["last_run"]
        if last is None and not figures["pages"]:
            out.print(f"Nothing has run yet in {runtime.data_dir}.", markup=False)
            out.print(
                "hchem refresh runs the whole pipeline on the sample site; the first run takes minutes."
            )
            out.print(_server_line(server))
            return
        stages = {}
        if last:
            with runtime.catalogue.reading() as db:
                row = db.get(Run, last["run_id"])
                stages = row.stages if row else {}
        show_summary(runtime.catalogue, stages, settings)
        if last:
            out.print(
                f"last run {last['run_id']} ({last['flow']}): {last['state']} {last['message']}".rstrip()
            )
        if assistants:
            out.print(f"{assistants} assisting (hchem assist)")
        for age in freshness.ages(runtime.catalogue, runtime.settings):
            if age.stale:
                out.print(age.line(), markup=False)
        for line in watchdog.lines(runtime.catalogue, server.url if server else ""):
            out.print(line, markup=False)
        out.print(_server_line(server))


def _server_line(server: Server | None) -> str:
    return f"Prefect: {server.ui_url if server else 'not running (hchem up)'}"


def _check(as_json: bool, notify: bool) -> int:
    """Print each source's age; 0 where all are fresh."""
    from flows import freshness, webhook

    with open_runtime() as runtime:
        ages = freshness.ages(runtime.catalogue, runtime.settings)
        stale = [age for age in ages if age.stale]
        if as_json:
            typer.echo(
                json.dumps({"freshness": [age.as_dict() for age in ages]}, ensure_ascii=False, indent=2)
            )
        else:
            for age in ages:
                out.print(age.line(), markup=False)
        if notify:
            webhook.sources_stale(runtime.settings.flows, stale)
    return freshness.STALE_EXIT if stale else 0


@app.command()
def report(
    out_file: Annotated[Path | None, typer.Option("--out", help="Where to write it.")] = None,
) -> None:
    """Write the HTML report from the catalogue and print its path.

    Example: hchem report --out report.html
    """
    from corpus.catalogue.tables import Run
    from flows import report as report_module

    with open_runtime() as runtime:
        with runtime.catalogue.reading() as db:
            last = db.query(Run).order_by(Run.started_at.desc()).first()
        path = report_module.write(
            runtime, last.run_id if last else "", last.stages if last else {}, path=out_file
        )
        typer.echo(str(path))

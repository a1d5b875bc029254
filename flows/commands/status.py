"""``hchem status`` and ``hchem report``: what there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.console import out, show_summary
from flows.runtime import open_runtime

app = typer.Typer()


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Show what is in the knowledge base and how the last run went.

    Example: hchem status --json
    """
    from corpus.catalogue.tables import Run
    from flows import prefect_server, summary

    with open_runtime() as runtime:
        settings = runtime.settings.model_dump(mode="json")
        figures = summary.status(runtime.catalogue, settings)
        server = prefect_server.running(runtime.data_dir)
        if as_json:
            figures["prefect"] = server.ui_url if server else None
            typer.echo(json.dumps(figures, ensure_ascii=False, indent=2))
            return
        last = figures["last_run"]
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
        out.print(f"Prefect: {server.ui_url if server else 'not running (hchem up)'}")


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

"""``hchem runs``: what was run, and how it went."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from sqlalchemy import select

from corpus.catalogue.tables import Failure, Run
from corpus.errors import SettingsError
from flows import accounting
from flows.console import out
from flows.runtime import open_runtime

app = typer.Typer()


@app.command("list")
def list_runs(limit: Annotated[int, typer.Option(min=1, help="How many of the newest.")] = 20) -> None:
    """List the newest runs. Example: hchem runs list --limit 5"""
    table = Table()
    for column in ("run", "flow", "state", "started (UTC)", "seconds", "message"):
        table.add_column(column)
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        for row in db.scalars(select(Run).order_by(Run.started_at.desc()).limit(limit)):
            seconds = f"{(row.finished_at - row.started_at).total_seconds():.0f}" if row.finished_at else "–"
            table.add_row(
                row.run_id,
                row.flow,
                row.state,
                f"{row.started_at:%Y-%m-%d %H:%M:%S}",
                seconds,
                row.message[:80],
            )
    out.print(table)


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="A run's id, or 'last'.")] = "last",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a run: steps, reasons, failures. Example: hchem runs show last"""
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        query = select(Run).order_by(Run.started_at.desc())
        row = db.scalar(query.limit(1)) if run_id == "last" else db.get(Run, run_id)
        if row is None:
            raise SettingsError(f"no run {run_id!r}; see: hchem runs list")
        failures = list(
            db.scalars(select(Failure).where(Failure.run_id == row.run_id).order_by(Failure.step))
        )
        if as_json:
            typer.echo(
                json.dumps(
                    {
                        "run_id": row.run_id,
                        "state": row.state,
                        "stages": row.stages,
                        "preset": row.settings.get("preset"),
                        "preset_notes": row.settings.get("preset_notes", []),
                        "failures": [
                            {"step": f.step, "item": f.item_id, "reason": f.reason, "message": f.message}
                            for f in failures
                        ],
                    },
                    ensure_ascii=False,
                )
            )
            return
        table = Table(title=f"run {row.run_id} ({row.flow}): {row.state} {row.message}", title_justify="left")
        for column in ("step", "to do", "states", "reasons", "made", "seconds"):
            table.add_column(column)
        for stage in row.stages.values():
            for step, counts in stage["steps"].items():
                cells = [
                    ", ".join(f"{k} {v}" for k, v in counts[name].items())
                    for name in ("states", "reasons", "counts")
                ]
                table.add_row(step, str(counts["pending"]), *cells, f"{counts['wall_seconds']:.1f}")
        out.print(table)
        if asked := accounting.table(row.stages):
            out.print(asked)
        for note in row.settings.get("preset_notes", []):
            out.print(note, markup=False)
        for failure in failures:
            out.print(
                f"{failure.step} {failure.item_id}: {failure.kind} {failure.reason}: {failure.message}",
                markup=False,
            )

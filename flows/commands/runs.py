"""``hchem runs``: what was run, and how it went."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from sqlalchemy import select

from corpus.catalogue.tables import Failure, Run
from corpus.errors import SettingsError
from flows import accounting, comparison
from flows.comparison import Comparison
from flows.console import out, whole
from flows.runtime import open_runtime
from flows.words import visible

app = typer.Typer()
_SHOWN = 15  # differences of a group before the rest is only counted
_CHECK_FIGURES = (
    "stage", "name", "scope", "severity", "state", "value", "limit", "baseline", "message", "decision", "decided_by", "why",
)  # fmt: skip


@app.command("list")
def list_runs(limit: Annotated[int, typer.Option(min=1, help="How many of the newest.")] = 20) -> None:
    """List the newest runs. Example: hchem runs list --limit 5"""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("run", "flow", "state", "started (UTC)", "seconds", "message"):
        table.add_column(column, justify="right" if column == "seconds" else "left")
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
    out.print(whole(table, "run", "flow", "state"))


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="A run's id, or 'last'.")] = "last",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a run: steps, reasons, failures. Example: hchem runs show last"""
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        row = comparison.find(db, run_id)
        checks = comparison.checks_of(db, row.run_id)
        compared = comparison.against_previous(db, row.run_id)
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
                        "code_version": row.code_version,
                        "flow_run_id": row.flow_run_id,
                        "checks": [
                            {
                                **{key: getattr(c, key) for key in _CHECK_FIGURES},
                                "at": c.at.isoformat(timespec="seconds"),
                            }
                            for c in checks
                        ],
                        "compared_with": compared.old["run_id"] if compared else None,
                        "largest_changes": [comparison.line(entry) for entry in compared.brief()]
                        if compared
                        else [],
                        "failures": [
                            {"step": f.step, "item": f.item_id, "reason": f.reason, "message": f.message}
                            for f in failures
                        ],
                    },
                    ensure_ascii=False,
                )
            )
            return
        title = f"run {row.run_id} ({row.flow}): {row.state} {row.message}"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in ("step", "to do", "states", "reasons", "made", "seconds"):
            table.add_column(column)
        for stage in row.stages.values():
            for step, counts in stage["steps"].items():
                cells = [
                    ", ".join(f"{k} {v}" for k, v in counts[name].items())
                    for name in ("states", "reasons", "counts")
                ]
                table.add_row(step, str(counts["pending"]), *cells, f"{counts['wall_seconds']:.1f}")
        out.print(whole(table, "step"))
        if asked := accounting.table(row.stages):
            out.print(asked)
        for note in row.settings.get("preset_notes", []):
            out.print(note, markup=False)
        if checks:
            out.print(visible(f"checks: {comparison.checks_brief(checks)}"), markup=False, soft_wrap=True)
        if compared:
            told = "; ".join(map(comparison.line, compared.brief())) or "the same items, reasons and calls"
            out.print(
                visible(f"against {compared.old['run_id']}: {told} (more: hchem runs diff)"),
                markup=False,
                soft_wrap=True,
            )
        for failure in failures:
            out.print(
                f"{failure.step} {failure.item_id}: {failure.kind} {failure.reason}: {failure.message}",
                markup=False,
            )


@app.command()
def diff(
    old: Annotated[
        str, typer.Argument(help="A run's id or its beginning; left out: the comparable run before.")
    ] = "",
    new: Annotated[str, typer.Argument(help="A run's id or its beginning, or 'last'.")] = "last",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare two runs: items, reasons, seconds, model calls, failures, checks.

    Comparable is the last completed run of the same flow with the same restriction.
    Example: hchem runs diff
    """
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        first: Run | None
        if old:
            first, second = comparison.find_both(db, old, new)
        else:
            second = comparison.find(db, new)
            first = comparison.previous(db, second)
        if first is None:
            raise SettingsError(
                f"no completed run before {second.run_id} has its flow ({second.flow}) and its restriction; "
                "name one: hchem runs diff OLD NEW"
            )
        found = comparison.compare(db, first, second)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    _print(found)


def _print(found: Comparison) -> None:
    for name, head in (("old", found.old), ("new", found.new)):
        limits = json.dumps(head["restriction"], ensure_ascii=False) if head["restriction"] else ""
        told = f"{name}: {head['run_id']} ({head['flow']}, {head['state']}, code {head['code_version'] or '?'}) {limits}"
        out.print(visible(told.rstrip()), markup=False, soft_wrap=True)
    for check in found.checks:
        if check.new != "failed" and check.old in (check.new, ""):
            continue
        told = f"check {check.stage} {check.name} {check.scope}: {check.old or '–'} → {check.new} ({check.severity})"
        out.print(visible(f"{told} {check.message}".rstrip()), markup=False, soft_wrap=True)
    for group in comparison.GROUPS:
        rows = found.of(group)
        if not rows:
            continue
        table = Table(title=group, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in ("where", "what"):
            table.add_column(column)
        for column in ("old", "new", "change"):
            table.add_column(column, justify="right")
        for row in rows[:_SHOWN]:
            figures = (comparison.number(row.old), comparison.number(row.new), comparison.signed(row.change))
            table.add_row(visible(row.place), visible(row.what), *figures)
        out.print(whole(table, "where"))
        if len(rows) > _SHOWN:
            out.print(f"… and {len(rows) - _SHOWN} more (--json shows all)", markup=False)
    out.print(f"{found.same} figures are the same.", markup=False)

"""``hchem models presets``: the papers' settings and how far the present ones are from them."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from flows import presets
from flows.console import out
from flows.settings import load_settings

app = typer.Typer()


@app.command("presets")
def show(
    name: Annotated[str | None, typer.Argument(help="A preset's name; all are listed without.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List presets, or show one: each value of the paper beside what it would be here.

    Examples: hchem models presets | hchem models presets qchunker-paper
    """
    if name is None:
        _list(as_json=as_json)
        return
    preset = presets.load(name)
    settings = load_settings({"preset": name})
    found = presets.findings(preset, settings)
    if as_json:
        typer.echo(json.dumps(presets.as_dict(preset, found), ensure_ascii=False, indent=2))
        return
    out.print(f"{preset.name}: {preset.title}", markup=False)
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("setting", no_wrap=True)
    for column in ("here", "paper", ""):
        table.add_column(column, overflow="fold")
    for row in found:
        mark = f"= {row.source}" if row.same else "differs"
        table.add_row(f"{row.subject} {row.name}", presets.shown(row.here), row.paper, mark)
    out.print(table)
    for row in found:
        if row.remark:
            out.print(f"- {row.subject} {row.name}: {row.remark}", markup=False)
    out.print("Not applied:")
    for missing in preset.not_applied:
        out.print(f"- {missing.what}: {missing.paper}", markup=False)


def _list(*, as_json: bool) -> None:
    every = [presets.load(name) for name in presets.names()]
    if as_json:
        typer.echo(json.dumps({p.name: p.title for p in every}, ensure_ascii=False, indent=2))
        return
    for preset in every:
        out.print(f"{preset.name}: {preset.title}", markup=False)

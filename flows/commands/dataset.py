"""``hchem dataset``: export of the data set, a check of its files, and its versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.commands import dataset_versions
from flows.commands.training import training

app = typer.Typer(help="The data set: exports, versions, and records to train models on.")
app.command("training")(training)
dataset_versions.register(app)


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write to.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print rows and checksums as JSON.")] = False,
    version: Annotated[
        str, typer.Option("--version", help="A kept version (tag, id, current) instead of what is there now.")
    ] = "",
) -> None:
    """Write documents, questions and triples as JSON lines and Parquet, with a card and checksums.

    The same snapshot gives the same bytes. Examples: hchem dataset export --out dataset |
    hchem dataset export --out dataset --version release-1
    """
    from flows.runtime import open_runtime
    from kg import versions
    from kg.dataset import export as write

    if version:
        with open_runtime() as runtime:
            kept = versions.copy(versions.folder_of(runtime.data_dir), version, out)
        typer.echo(json.dumps({"version": kept.id, "rows": kept.rows}) if as_json else f"version {kept.id}")
        return

    with open_runtime() as runtime:
        done = write(runtime.catalogue, out)
    if as_json:
        typer.echo(json.dumps({"rows": done.rows, "checksums": done.checksums}, ensure_ascii=False))
        return
    for name, rows in done.rows.items():
        typer.echo(f"{rows:>9}  {name}")


@app.command()
def verify(
    directory: Annotated[Path, typer.Argument(help="Directory of an export.")],
) -> None:
    """Compare an export's files with its checksums. Exit code 1 where one differs.

    Example: hchem dataset verify dataset
    """
    from kg.dataset import differences

    found = differences(directory)
    for line in found:
        typer.echo(line)
    if found:
        raise typer.Exit(1)
    typer.echo("all files are as they were written")

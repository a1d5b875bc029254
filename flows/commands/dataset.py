"""``hchem dataset``: export of the data set, and a check of its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.training import training

app = typer.Typer(help="Exports: the data set, and records to train models on.")
app.command("training")(training)


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write to.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print rows and checksums as JSON.")] = False,
) -> None:
    """Write documents, questions and triples as JSON lines and Parquet, with a card and checksums.

    The same snapshot gives the same bytes. Example: hchem dataset export --out dataset
    """
    from flows.runtime import open_runtime
    from kg.dataset import export as write

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

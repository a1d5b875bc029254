"""``hchem dataset``: export of the data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Export of the data set.")


@app.callback()
def _group() -> None:
    """Keep ``export`` a command of its own although it is the only one."""


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write to.")],
) -> None:
    """Write documents, questions and triples as JSON lines and Parquet, with a card and checksums."""
    from flows.runtime import open_runtime
    from kg.dataset import export as write

    with open_runtime() as runtime:
        done = write(runtime.catalogue, out)
    for name, rows in done.rows.items():
        typer.echo(f"{rows:>9}  {name}")

"""``hchem graph``: counts, comparison with the catalogue, rebuild."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer

from flows.words import counted

app = typer.Typer(help="The graph over Bolt.")


@app.command()
def stats(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Nodes by label and relationships by type, as the server counts them. Example: hchem graph stats --json"""
    from flows.runtime import open_runtime
    from kg.store import GraphStore

    with open_runtime() as runtime, GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store:
        found = store.stats()
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    for what, counts in found.items():
        typer.echo(f"{what}: {sum(counts.values())}")
        for name, n in counts.items():
            typer.echo(f"  {name:<24}{n:>9}")


@app.command()
def verify(
    limit: Annotated[int, typer.Option(min=0, help="Differences to show; 0: all of them.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the graph with the catalogue in both directions, row by row. Exit code 1 where they differ.

    Example: hchem graph verify
    """
    from flows.console import ProgressDisplay
    from flows.runtime import open_runtime
    from kg.store import GraphStore
    from kg.verify import Difference, differences

    counts: Counter[str] = Counter()
    shown: list[Difference] = []
    with (
        open_runtime() as runtime,
        GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store,
        ProgressDisplay() as display,
    ):
        for difference in differences(runtime.catalogue, store, progress=display):
            counts[difference.kind] += 1
            if not limit or len(shown) < limit:
                shown.append(difference)
    if as_json:
        found = {"agree": not counts, "counts": dict(counts), "differences": [asdict(d) for d in shown]}
        typer.echo(json.dumps(found, ensure_ascii=False))
    elif not counts:
        typer.echo("graph and catalogue agree")
    else:
        said = ", ".join(f"{n} {kind}" for kind, n in counts.items())
        typer.echo(
            f"{counted(counts.total(), 'difference')} ({said}); `hchem graph rebuild` loads the graph anew"
        )
        if counts["foreign"]:
            typer.echo(
                "what is foreign was put there by somebody else: rebuild leaves it, a database of its own helps"
            )
        for difference in shown:
            typer.echo(f"  {difference}")
        if len(shown) < counts.total():
            typer.echo(f"  … and {counts.total() - len(shown)} more (--limit 0 shows all)")
    if counts:
        raise typer.Exit(1)


@app.command()
def rebuild() -> None:
    """Drop the graph and load all of it from the catalogue. Example: hchem graph rebuild"""
    from flows import projections
    from flows.runtime import open_runtime
    from kg.store import GraphStore
    from kg.sync import rebuild as load

    with open_runtime() as runtime, GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store:
        done = load(runtime.catalogue, store)
        snapshot, _ = store.content_hash()
        projections.mark_loaded(runtime.data_dir)
    typer.echo(
        f"{done.nodes_created} nodes and {done.relationships_created} relationships, snapshot {snapshot}"
    )

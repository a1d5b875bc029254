"""``hchem graph``: counts, comparison with the catalogue, rebuild."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(help="The graph over Bolt.")


@app.command()
def stats(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Nodes by label and relationships by type, as the server counts them."""
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
    limit: Annotated[int, typer.Option(min=1, help="Differences to show.")] = 20,
) -> None:
    """Compare the graph with the catalogue, row by row. Exit code 1 where they differ."""
    from flows.runtime import open_runtime
    from kg.store import GraphStore
    from kg.sync import verify_graph

    with open_runtime() as runtime, GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store:
        problems = verify_graph(runtime.catalogue, store)
    if not problems:
        typer.echo("graph and catalogue agree")
        return
    typer.echo(f"{len(problems)} differences; `hchem graph rebuild` loads the graph anew")
    for problem in problems[:limit]:
        typer.echo(f"  {problem}")
    raise typer.Exit(1)


@app.command()
def rebuild() -> None:
    """Drop the graph and load all of it from the catalogue."""
    from flows.runtime import open_runtime
    from kg.store import GraphStore
    from kg.sync import rebuild as load

    with open_runtime() as runtime, GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store:
        done = load(runtime.catalogue, store)
        snapshot, _ = store.content_hash()
    typer.echo(
        f"{done.nodes_created} nodes and {done.relationships_created} relationships, snapshot {snapshot}"
    )

"""``hchem review``: the local web page on which people decide what the rules left open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.runtime import open_runtime

app = typer.Typer()


@app.command()
def review(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; unset: 4280 or, when taken, a free one; 0: a free one."),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything, record nothing.")] = False,
    by: Annotated[
        str, typer.Option(help="Who decides, unless the form says so; the login name where left out.")
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback needs --auth-file.")
    ] = "127.0.0.1",
    auth_file: Annotated[
        Path | None, typer.Option(help="File (mode 600) with user:password, asked of every visitor.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Name under which a proxy or other machines reach the page; may be repeated.",
        ),
    ] = None,
) -> None:
    """Decide in the browser: documents held back, pairs of names, values that disagree, stale questions.

    Example: hchem review --open
    """
    from flows.commands.entities import decider
    from flows.review.server import read_auth, serve

    auth = read_auth(auth_file) if auth_file else ""
    with open_runtime() as runtime:
        serve(
            runtime.catalogue, runtime.settings.extraction, host=host, port=port, by=decider(by), auth=auth,
            names=name or (), read_only=read_only, open_browser=open_browser, tell=typer.echo,
        )  # fmt: skip

"""``hchem sources``: where pages come from."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from flows.console import out
from flows.settings import load_settings

app = typer.Typer()


@app.command("list")
def list_sources(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the known sources and whether they are crawled. Example: hchem sources list"""
    from crawlers.sources import load_sources

    settings = load_settings().crawl
    sources = load_sources(settings)
    chosen = settings.enabled
    enabled = {
        name for name, source in sources.items() if (name in chosen if chosen is not None else source.enabled)
    }
    if as_json:
        rows = [
            {**source.model_dump(mode="json"), "enabled": name in enabled} for name, source in sources.items()
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    table = Table(title_justify="left")
    for heading in ("name", "kind", "languages", "enabled", "licence and note"):
        table.add_column(heading, overflow="fold")
    for name, source in sorted(sources.items()):
        about = f"{source.licence}\n{source.note}".strip()
        table.add_row(name, source.kind, " ".join(source.languages), "yes" if name in enabled else "", about)
    out.print(table)


@app.command("check")
def check_sources(
    names: Annotated[list[str] | None, typer.Argument(help="Sources; default: the enabled ones.")] = None,
) -> None:
    """Ask each source for its robots.txt and see whether it may be crawled.

    Example: hchem sources check pubchem
    """
    from corpus.errors import SettingsError
    from crawlers.check import check_source
    from crawlers.sources import load_sources

    settings = load_settings().crawl
    sources = load_sources(settings)
    wanted = names or settings.enabled or [name for name, source in sources.items() if source.enabled]
    unknown = sorted(set(wanted) - set(sources))
    if unknown:
        raise SettingsError(f"unknown source {', '.join(unknown)}; known: {', '.join(sorted(sources))}")
    checks = [check_source(sources[name], settings) for name in sorted(wanted)]
    for check in checks:
        out.print(f"{'ok ' if check.ok else 'no '} {check.name}: {check.detail}", markup=False)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)

"""``hchem pages``: what was fetched, and what became of every URL."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.table import Table
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Page
from corpus.errors import SettingsError
from flows.console import out
from flows.runtime import open_runtime

app = typer.Typer()
_STATES = ("queued", "claimed", "kept", "failed", "excluded", "gone")


@app.command("list")
def list_pages(
    source: Annotated[str, typer.Option(help="Only this source.")] = "",
    state: Annotated[str, typer.Option(help=f"One of {', '.join(_STATES)}.")] = "",
    reason: Annotated[str, typer.Option(help="Only this reason (robots, http_404, too_large …).")] = "",
    chemical: Annotated[str, typer.Option(help="Only pages found for this chemical's key (CAS).")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """List URLs with state and reason. Example: hchem pages list --state excluded"""
    if state and state not in _STATES:
        raise SettingsError(f"unknown state {state!r}; one of {', '.join(_STATES)}")
    query = select(Page)
    for column, value in ((Page.source, source), (Page.state, state), (Page.reason, reason)):
        if value:
            query = query.where(column == value)
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        rows = list(session.scalars(query.order_by(Page.source, Page.url)))
    rows = [row for row in rows if not chemical or chemical in row.chemicals]
    if as_json:
        for row in rows[:limit]:
            typer.echo(json.dumps(_plain(row), ensure_ascii=False))
        return
    table = Table(title_justify="left", caption=f"{min(limit, len(rows))} of {len(rows)} pages")
    for heading in ("id", "state", "reason", "role", "url"):
        table.add_column(heading, overflow="fold")
    for row in rows[:limit]:
        table.add_row(row.page_id[:12], row.state, row.reason, row.role, row.url)
    out.print(table)


@app.command("show")
def show_page(
    page: Annotated[str, typer.Argument(help="Page id (or its beginning), URL or identity.")],
    payload: Annotated[bool, typer.Option("--payload", help="Write the page's bytes instead.")] = False,
) -> None:
    """Show everything known of a page, or its bytes. Example: hchem pages show sample:/ --payload"""
    from corpus.archive import read_payload

    with open_runtime() as runtime:
        with runtime.catalogue.reading() as session:
            row = _find(session, page)
        if not payload:
            typer.echo(json.dumps(_plain(row), ensure_ascii=False, indent=2))
            return
        if not row.warc_file:
            raise SettingsError(f"page {row.url} has no content: {row.state} {row.reason}")
        sys.stdout.buffer.write(read_payload(runtime.data_dir, row.warc_file, row.warc_offset))


def _find(session: Session, wanted: str) -> Page:
    same = or_(
        Page.url == wanted,
        Page.identity == wanted,
        func.substr(Page.page_id, 1, len(wanted)) == wanted,
        Page.document_id == wanted,
    )
    rows = list(session.scalars(select(Page).where(same).order_by(Page.page_id).limit(3)))
    if len(rows) == 1:
        return rows[0]
    raise SettingsError(
        f"{'no page' if not rows else 'more than one page'} is {wanted!r}; see `hchem pages list`"
    )


def _plain(row: Page) -> dict[str, Any]:
    values = {column.name: getattr(row, column.name) for column in Page.__table__.columns}
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in values.items()
    }

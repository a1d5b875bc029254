"""``hchem pages``: what was fetched, and what became of every URL."""

from __future__ import annotations

import json
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document, Page
from corpus.errors import SettingsError
from flows.console import out, whole
from flows.runtime import open_runtime
from flows.settings import load_settings

if TYPE_CHECKING:
    from crawlers.settings import CrawlSettings

app = typer.Typer()
_STATES = ("queued", "claimed", "kept", "failed", "excluded", "gone")


@app.command("list")
def list_pages(
    source: Annotated[str, typer.Option(help="Only this source.")] = "",
    state: Annotated[str, typer.Option(help=f"One of {', '.join(_STATES)}.")] = "",
    reason: Annotated[str, typer.Option(help="Only this reason (robots, http_404, too_large …).")] = "",
    chemical: Annotated[str, typer.Option(help="Only pages found for this chemical: CAS, key or name.")] = "",
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
        if source:
            _check_source(session, source, runtime.settings.crawl)
        keys = _keys_of(session, chemical) if chemical else set()
        rows = list(session.scalars(query.order_by(Page.source, Page.url)))
    rows = [row for row in rows if not chemical or keys.intersection(row.chemicals)]
    if as_json:
        for row in rows[:limit]:
            typer.echo(json.dumps(_plain(row), ensure_ascii=False))
        return
    table = Table(title_justify="left", caption=f"{min(limit, len(rows))} of {len(rows)} pages")
    for heading in ("id", "state", "reason", "role", "url"):
        table.add_column(heading, overflow="fold")
    for row in rows[:limit]:
        table.add_row(row.page_id[:12], row.state, row.reason, row.role, Text(row.url))
    out.print(whole(table, "id", "state", "role"))


def _check_source(session: Session, source: str, settings: CrawlSettings) -> None:
    from crawlers.sources import load_sources

    known = set(load_sources(settings)) | set(session.scalars(select(Page.source).distinct()))
    if source not in known:
        raise SettingsError(f"unknown source {source!r}; known: {', '.join(sorted(known))}")


def _keys_of(session: Session, chemical: str) -> set[str]:
    """Keys of the substances of that name; a key that only pages name is one too."""
    from corpus.chemicals import find_chemicals

    keys = set(find_chemicals(session, chemical))
    if not keys and any(chemical in found for found in session.scalars(select(Page.chemicals))):
        keys = {chemical}
    if not keys:
        raise SettingsError(f"no chemical is called {chemical!r}; see `hchem chemicals list`")
    return keys


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


@app.command("inspect")
def inspect_page(
    page: Annotated[
        str,
        typer.Argument(help="Page id (or its beginning), URL or identity; or a file (HTML, PDF, XML, text)."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--out", "--output", help="File to write. Default: in the data directory's reports."),
    ] = None,
    url: Annotated[str, typer.Option(help="Of a file: the address it came from.")] = "",
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that the cleaning may take.")] = 120.0,
) -> None:
    """Write what each cleaning removed from a page, stage by stage, as one HTML file. Example: hchem pages inspect page.html --open"""
    from flows.inspection import render, write_page

    name, found, facts, target = (
        _inspect_file(Path(page), url, timeout) if Path(page).is_file() else _inspect_known(page, timeout)
    )
    path = write_page(render(found, name=name, facts=facts), output or target)
    typer.echo(str(path))
    if open_it:
        webbrowser.open(path.as_uri())


_Inspected = tuple[str, dict[str, Any], dict[str, Any], Path]


def _inspect_file(path: Path, url: str, timeout: float) -> _Inspected:
    from flows.inspection import inspect_in_child, report_of_file

    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from error
    found = inspect_in_child(data, url=url or path.name, timeout_s=timeout)
    facts = {"source": f"file {path.name}", "template": "none: the file is not of the catalogue"}
    return url or path.name, found, facts, report_of_file(load_settings().data_dir / "reports", path)


def _inspect_known(wanted: str, timeout: float) -> _Inspected:
    """A page of the catalogue, cleaned with the limits and the template with which curation cleans it."""
    from corpus.archive import read_payload
    from corpus.cleaning import Limits
    from flows.inspection import inspect_in_child
    from flows.inspection.clusters import template_of

    with open_runtime() as runtime:
        with runtime.catalogue.reading() as session:
            row = _find(session, wanted)
            cluster, template = template_of(session, row.page_id)
            document = session.get(Document, row.document_id)
        if not row.warc_file:
            raise SettingsError(f"page {row.url} has no content: {row.state} {row.reason}")
        found = inspect_in_child(
            read_payload(runtime.data_dir, row.warc_file, row.warc_offset),
            url=row.url,
            content_type=row.content_type,
            header_charset=row.charset,
            template=template,
            limits=Limits(max_bytes=runtime.settings.corpus.cleaning.max_bytes),
            timeout_s=timeout,
        )
        target = runtime.data_dir / "reports" / f"inspect-{row.page_id[:12]}.html"
    facts = {
        "source": row.source,
        "state": f"{row.state} {row.reason}".strip(),
        "document": f"{document.state} {document.reason}".strip() if document is not None else "none yet",
        "content type": row.content_type or "not said",
        "cluster": f"{cluster.pattern} ({cluster.size} pages, {cluster.cluster_id[:12]})"
        if cluster
        else "none yet",
        "template": f"{len(template.blocks)} repeated blocks" if template else "none",
    }
    return row.url, found, facts, target


@app.command("patterns")
def list_patterns(
    source: Annotated[str, typer.Option(help="Only clusters with pages of this source.")] = "",
    cluster: Annotated[
        str, typer.Option(help="Show one cluster in full: its id or the beginning of it.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most, the largest first.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """List clusters of URLs of one form and what was removed as their template. Example: hchem pages patterns --cluster 3f2a"""
    from flows.inspection.clusters import (
        SAMPLES_OF_ALL,
        SAMPLES_OF_ONE,
        describe,
        find_cluster,
        list_clusters,
    )

    with open_runtime() as runtime:
        with runtime.catalogue.reading() as session:
            if source:
                _check_source(session, source, runtime.settings.crawl)
            rows = [find_cluster(session, cluster)] if cluster else list_clusters(session, source)
        pages = SAMPLES_OF_ONE if cluster else SAMPLES_OF_ALL
        found = describe(runtime, rows[:limit], pages=pages)
    if as_json:
        for entry in found:
            typer.echo(json.dumps(entry, ensure_ascii=False))
    elif cluster:
        _show_cluster(found[0])
    elif found:
        _show_clusters(found, len(rows))
    else:
        out.print("0 of 0 clusters: pages that were fetched are grouped by `hchem run curate`", markup=False)


def _show_clusters(found: list[dict[str, Any]], total: int) -> None:
    table = Table(title_justify="left", caption=f"{len(found)} of {total} clusters", caption_justify="left")
    for heading in ("id", "pattern", "pages", "languages", "removed as template", "for instance", "example"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "pages" else "left")
    for entry in found:
        first = entry["removed"][0]["text"] if entry["removed"] else ""
        count = entry["removed_elements"]
        table.add_row(
            entry["cluster_id"][:12],
            Text(entry["pattern"]),
            str(entry["size"]),
            _languages(entry),
            f"{count} elements, {_share(entry['removed_share'])}" if count else "nothing",
            Text(first if len(first) <= _INSTANCE else first[:_INSTANCE] + "…"),
            Text(entry["examples"][0] if entry["examples"] else ""),
        )
    out.print(whole(table, "id"))


_INSTANCE = 60


def _show_cluster(entry: dict[str, Any]) -> None:
    facts = {
        "id": entry["cluster_id"],
        "pattern": entry["pattern"],
        "pages": f"{entry['size']} of {', '.join(entry['sources'])}",
        "languages": _languages(entry),
        "template": f"{entry['template_blocks']} blocks that repeat on most pages",
        "removed": f"{entry['removed_elements']} elements from {entry['documents']} documents; "
        f"{_share(entry['removed_share'])} of the text of {entry['sampled']} sampled pages",
    }
    for label, value in facts.items():
        out.print(f"{label}: {value}", markup=False)
    out.print("examples:")
    for example in entry["examples"]:
        out.print(f"  {example}", markup=False)
    if not entry["removed"]:
        out.print("nothing was removed as template")
        return
    table = Table(title=f"Removed as template (of {entry['sampled']} sampled pages)", title_justify="left")
    for heading in ("pages", "characters", "element", "text"):
        table.add_column(
            heading, overflow="fold", justify="right" if heading in ("pages", "characters") else "left"
        )
    for block in entry["removed"]:
        table.add_row(str(block["pages"]), str(block["characters"]), block["tag"], Text(block["text"]))
    out.print(table)
    if entry["removed_left"]:
        out.print(f"{entry['removed_left']} more texts are not listed")


def _languages(entry: dict[str, Any]) -> str:
    return " ".join(f"{language or 'unknown'} {count}" for language, count in entry["languages"].items())


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


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

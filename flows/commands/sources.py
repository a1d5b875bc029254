"""``hchem sources``: where pages come from."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from flows.console import out, whole
from flows.settings import Settings, load_settings

if TYPE_CHECKING:
    from datetime import datetime

    from corpus.catalogue import Catalogue
    from crawlers.sources import Link, Source

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
        if source.tls_exceptions:
            about += f"\ncertificates not checked: {', '.join(source.tls_exceptions)}"
        table.add_row(name, source.kind, " ".join(source.languages), "yes" if name in enabled else "", about)
    out.print(whole(table, "name"))


@app.command("check")
def check_sources(
    names: Annotated[list[str] | None, typer.Argument(help="Sources; default: the enabled ones.")] = None,
    page: Annotated[
        Path | None, typer.Option(help="A saved page: say what the source makes of it, without network.")
    ] = None,
    url: Annotated[str, typer.Option(help="The saved page's address.")] = "",
    content_type: Annotated[
        str, typer.Option(help="Content-Type it was sent with; default: by the file's ending.")
    ] = "",
    archive: Annotated[
        Path | None, typer.Option(help="A WARC file: the same for all of its pages, without network.")
    ] = None,
    chemical: Annotated[
        list[str] | None,
        typer.Option(
            help="Also the query links of this substance (key, CAS number or name); may be repeated."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows shown of a table.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask each source for its robots.txt and see whether it may be crawled.

    With --page, --archive or --chemical nothing is asked: the source is tried on what is there.

    Example: hchem sources check cameo --page benzene.html --url https://cameochemicals.noaa.gov/chemical/2577
    """
    from corpus.errors import SettingsError
    from crawlers.sources import load_sources

    settings = load_settings()
    sources = load_sources(settings.crawl)
    enabled = settings.crawl.enabled
    wanted = names or enabled or [name for name, source in sources.items() if source.enabled]
    unknown = sorted(set(wanted) - set(sources))
    if unknown:
        raise SettingsError(f"unknown source {', '.join(unknown)}; known: {', '.join(sorted(sources))}")
    if page is None and archive is None and not chemical:
        if url or content_type:
            raise SettingsError("--url and --content-type belong to --page FILE")
        _ask([sources[name] for name in sorted(wanted)], settings, as_json=as_json)
        return
    if not names or len(names) != 1:
        raise SettingsError("--page, --archive and --chemical are about one source: name it")
    if page is not None and archive is not None:
        raise SettingsError("--page or --archive, not both")
    if (page is None) != (not url):
        raise SettingsError("--page FILE and --url URL belong together: what a page is, its address says")
    source = sources[names[0]]
    report: dict[str, Any] = {"source": source.name}
    links = _query_links(source, settings, chemical or [])
    addresses = {link.url for link in links}
    if chemical:
        from crawlers.dry_run import plan_queries

        report["queries"] = plan_queries(source, links, chemical)
    if page is not None:
        from crawlers.dry_run import check_page, content_type_of

        kind = content_type or content_type_of(page)
        check = check_page(source, settings.crawl, url, _read(page), kind, query=addresses)
        report["page"] = check.as_dict()
    if archive is not None:
        from crawlers.dry_run import check_archive

        if not archive.is_file():
            raise SettingsError(f"archive {archive} not found (--archive)")
        found = check_archive(source, settings.crawl, archive, query=addresses)
        report["archive"] = {
            "records": found.records,
            "summary": found.summary(),
            "pages": [checked.as_dict() for checked in found.pages],
        }
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False, indent=2))
        return
    _show(report, limit)


def _ask(sources: list[Source], settings: Settings, *, as_json: bool) -> None:
    from crawlers.check import check_source

    until = _paused(sources, settings)
    checks = [check_source(source, settings.crawl, paused_until=until.get(source.name)) for source in sources]
    if as_json:
        rows = [{"source": check.name, "ok": check.ok, "detail": check.detail} for check in checks]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for check in checks:
            out.print(f"{'ok ' if check.ok else 'no '} {check.name}: {check.detail}", markup=False)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _paused(sources: list[Source], settings: Settings) -> dict[str, datetime]:
    """Until when sources' hosts are to be left alone, where a catalogue is there to know it."""
    from corpus.catalogue import Catalogue
    from crawlers.pauses import paused

    if not _has_catalogue(settings):
        return {}
    catalogue = Catalogue.open(settings.catalogue_url())
    found = {source.name: paused(catalogue, source.base) for source in sources}
    catalogue.close()
    return {name: until for name, until in found.items() if until is not None}


def _has_catalogue(settings: Settings) -> bool:
    from sqlalchemy.engine import make_url

    url = make_url(settings.catalogue_url())
    return url.get_backend_name() != "sqlite" or Path(url.database or "").is_file()


def _read(path: Path) -> bytes:
    from corpus.errors import SettingsError

    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"page {path} cannot be read: {error.strerror or error} (--page)") from error


def _query_links(source: Source, settings: Settings, words: list[str]) -> list[Link]:
    """Query links of the substances, by the catalogue's names, or the built-in ones where there are none."""
    from crawlers.sources import query_links
    from crawlers.stage import named_chemicals

    if not words:
        return []
    with _names(settings, source) as catalogue:
        return query_links(source, named_chemicals(catalogue, source, settings.crawl, only=words))


@contextmanager
def _names(settings: Settings, source: Source) -> Iterator[Catalogue]:
    from sqlalchemy import func, select

    from corpus.catalogue import Catalogue
    from corpus.catalogue.tables import Chemical
    from corpus.chemicals import import_list, load_chemicals

    if _has_catalogue(settings):
        catalogue = Catalogue.open(settings.catalogue_url())
        with catalogue.reading() as session:
            filled = bool(session.scalar(select(func.count()).select_from(Chemical)))
        if filled or source.chemicals == "sample":
            yield catalogue
            catalogue.close()
            return
        catalogue.close()
    with tempfile.TemporaryDirectory(prefix="hchem-names-") as folder:
        catalogue = Catalogue.open(f"sqlite:///{folder}/names.db")
        if source.chemicals != "sample":
            load_chemicals(catalogue, settings.corpus.chemicals)
            for path in settings.crawl.chemical_lists:
                import_list(catalogue, path)
        yield catalogue
        catalogue.close()


def _show(report: dict[str, Any], limit: int) -> None:
    from crawlers.dry_run import ROBOTS_UNKNOWN

    if "queries" in report:
        queries = report["queries"]["links"]
        _table(
            f"Query links of {', '.join(report['queries']['chemicals'])}",
            ("chemical", "leads to", "url"),
            [(link["chemical"], link["role"], link["url"]) for link in queries],
            limit,
            "no query link: the source has no template for these names",
        )
    if "page" in report:
        _show_page(report["page"], limit)
    if "archive" in report:
        found = report["archive"]
        for name, counts in found["summary"].items():
            counted = ", ".join(f"{key} {count}" for key, count in counts.items()) or "none"
            out.print(f"{name:<10} {counted}", markup=False)
        rows = [
            (page["role"], _outcome(page), str(sum(link["followed"] for link in page["links"])), page["url"])
            for page in found["pages"]
        ]
        _table("Pages of the archive", ("role", "outcome", "follows", "url"), rows, limit, "no page")
    out.print(ROBOTS_UNKNOWN, markup=False)


def _show_page(page: dict[str, Any], limit: int) -> None:
    claim = page["canonical_claim"]
    if not claim:
        canonical = "no claim"
    else:
        believed = "plausible" if page["canonical"] == claim else "not believed"
        canonical = f"claims {claim}: {believed}; recorded, the identity stays the page's own address"
    lines = {
        "url": page["url"],
        "role": f"{page['role']} ({page['rule']})",
        "outcome": _outcome(page),
        "identity": page["identity"],
        "document": page["document_id"],
        "canonical": canonical,
        "type": f"{page['content_type'] or 'not said'} {page['encoding']}".strip(),
    }
    for label, text in lines.items():
        if text:
            out.print(f"{label:<10} {text}", markup=False)
    if page["role"] != "none":
        rows = [
            ("yes" if link["followed"] else f"no: {link['reason']}", link["role"], link["rule"], link["url"])
            for link in page["links"]
        ]
        _table("Links", ("followed", "role", "rule", "url"), rows, limit, "no link is read from it")


def _outcome(page: dict[str, Any]) -> str:
    if page["indexed"]:
        return "indexed"
    if page["state"] == "kept":
        return "kept for its links, not indexed"
    detail = f" ({page['detail']})" if page["detail"] else ""
    return f"{page['state']}: {page['reason']}{detail}"


def _table(
    title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]], limit: int, empty: str
) -> None:
    if not rows:
        out.print(f"{title}: {empty}", markup=False)
        return
    table = Table(title=title, title_justify="left", caption=f"{min(limit, len(rows))} of {len(rows)}")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows[:limit]:
        table.add_row(*map(escape, row))
    out.print(table)

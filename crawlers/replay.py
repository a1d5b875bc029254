"""Pages from an archive instead of the network: any WARC file becomes pages of the catalogue."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from corpus.archive import ArchiveWriter, Exchange, Location, Record, iterate_records
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Page, now
from corpus.errors import TerminalError
from corpus.ids import document_id
from corpus.urls import canonical_url
from crawlers.frontier import page_key
from crawlers.headers import charset_of, media_type
from crawlers.patterns import SlowPattern
from crawlers.settings import CrawlSettings
from crawlers.sources import Source, load_sources

ARCHIVE_SOURCE = "archive"


@dataclass
class ImportReport:
    """What an archive brought: new, changed and unchanged pages, and what was left out and why."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, int]:
        """Plain counts."""
        left = {f"left_out: {reason}": count for reason, count in sorted(self.left_out.items())}
        return {"added": self.added, "changed": self.changed, "unchanged": self.unchanged, **left}


def import_archive(
    catalogue: Catalogue,
    data_dir: Path,
    warc_path: Path,
    *,
    settings: CrawlSettings | None = None,
    run_id: str = "archive",
) -> ImportReport:
    """Store the pages of a WARC file as if they had been crawled, and keep a copy of their records.

    Pages of a known source keep its identities; others belong to the source
    ``archive``. Of several answers of one page the last counts.

    Raises TerminalError for a file that is no WARC file or holds no page.
    """
    own = settings or CrawlSettings()
    sources = load_sources(own)
    report = ImportReport()
    writer = ArchiveWriter(
        data_dir, f"import-{_digest(warc_path)[:16]}", {"description": f"from {warc_path.name}"}
    )
    try:
        for record in _last_answers(warc_path, own, report).values():
            try:
                _import(catalogue, writer, record, sources, own, run_id, report)
            except SlowPattern as error:
                report.left_out[error.reason] += 1
    finally:
        writer.close()
    if not (report.added or report.changed or report.unchanged):
        raise TerminalError(f"{warc_path} holds no page ({dict(report.left_out)})", reason="empty_archive")
    return report


def _last_answers(path: Path, settings: CrawlSettings, report: ImportReport) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for record in iterate_records(path):
        reason = _unfit(record, settings)
        if reason:
            report.left_out[reason] += 1
            continue
        url = canonical_url(record.url)
        report.left_out["older"] += url in found
        found[url] = record
    report.left_out += Counter()  # forget zero counts
    return dict(sorted(found.items()))


def _unfit(record: Record, settings: CrawlSettings) -> str:
    media = media_type(record.header("Content-Type"))
    if record.type == "revisit":
        return "revisit"
    if record.status not in (200, 203):
        return f"http_{record.status}"
    path = urlsplit(record.url).path
    if path == "/robots.txt" or path.startswith("/.well-known/"):
        return "not_a_page"
    if media and media not in settings.content_types and not _is_pdf(media, record.payload):
        return "type"
    if not record.payload:
        return "empty"
    if len(record.payload) > settings.max_bytes:
        return "too_large"
    try:
        canonical_url(record.url)
    except ValueError:
        return "url"
    return ""


def _is_pdf(media: str, payload: bytes) -> bool:
    return media in ("application/octet-stream", "application/x-pdf") and b"%PDF-" in payload[:1024]


def _opted_out(record: Record, url: str, source: Source | None, settings: CrawlSettings) -> str:
    """The reason why a page asks to be left out; pages of no known source are asked too."""
    from crawlers.reading import Answer, hints_of, opted_out  # loads Scrapy's sitemap reader: not at import

    rules = source or _ANY_SOURCE
    answer = Answer(
        url,
        record.payload,
        record.header("Content-Type"),
        record.all_headers("X-Robots-Tag"),
        record.all_headers("tdm-reservation"),
    )
    agent = settings.agent_name()
    role = rules.role(url)
    fate = opted_out(
        rules, answer, role, hints_of(rules, answer, role, links=False, agent=agent), agent=agent
    )
    return fate.reason if fate else ""


_ANY_SOURCE = Source(
    name=ARCHIVE_SOURCE,
    title="Archive",
    kind="site",
    languages=("en", "zh"),
    licence="",
    base="http://archive.invalid",
    start=("/",),
)


def _import(
    catalogue: Catalogue,
    writer: ArchiveWriter,
    record: Record,
    sources: dict[str, Source],
    settings: CrawlSettings,
    run_id: str,
    report: ImportReport,
) -> None:
    url = canonical_url(record.url)
    source = next((one for _, one in sorted(sources.items()) if one.belongs(url)), None)
    out = _opted_out(record, url, source, settings)
    if out:
        report.left_out[out] += 1
        return
    name = source.name if source else ARCHIVE_SOURCE
    identity = source.page_identity(url) if source else url
    sha = hashlib.sha256(record.payload).hexdigest()
    with catalogue.reading() as session:
        row = session.get(Page, page_key(name, identity))
    if row is not None and row.state == "kept" and row.payload_sha256 == sha:
        report.unchanged += 1
        return
    place = writer.write_response(_exchange(record, url))
    with catalogue.writing() as session:
        page = session.get(Page, page_key(name, identity))
        if page is None:
            page = _new(session, name, url, identity, source)
            report.added += 1
        else:
            report.changed += 1
        _fill(page, record, place, sha, run_id)


def _new(session: Session, name: str, url: str, identity: str, source: Source | None) -> Page:
    page = Page(
        page_id=page_key(name, identity),
        document_id=document_id(identity),
        source=name,
        url=url,
        identity=identity,
        role=source.role(url) if source else "content",
        licence=source.licence if source else "",
        chemicals=[],
        first_seen=now(),
    )
    session.add(page)
    return page


def _fill(page: Page, record: Record, place: Location, sha: str, run_id: str) -> None:
    content_type = record.header("Content-Type")
    page.state, page.reason, page.detail = "kept", "", ""
    page.status, page.final_url = record.status, page.url
    page.content_type = content_type
    page.charset = charset_of(content_type)
    page.etag, page.last_modified = record.header("ETag"), record.header("Last-Modified")
    page.payload_sha256, page.payload_bytes = sha, len(record.payload)
    page.warc_file, page.warc_offset = place.warc_file, place.offset
    page.fetched_at = page.visited_at = _moment(record.date)
    page.missed, page.lease_holder, page.run_id = 0, "", run_id


def _exchange(record: Record, url: str) -> Exchange:
    """The record without its encodings: what was decoded once need not be decoded again."""
    undone = {"content-encoding", "transfer-encoding", "content-length"}
    headers = [pair for pair in record.headers if pair[0].lower() not in undone]
    return Exchange(
        url=url,
        request_headers=[],
        status=record.status,
        reason="OK",
        response_headers=headers,
        body=record.payload,
        decoded=record.payload,
        date=record.date,
        address=record.warc_headers.get("WARC-IP-Address", ""),
    )


def _moment(date: str) -> datetime:
    try:
        return datetime.fromisoformat(date)
    except ValueError:
        return now()


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise TerminalError(
            f"archive {path} cannot be read: {error.strerror or error}", reason="archive"
        ) from error

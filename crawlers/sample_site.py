"""The sample site: real and made-up pages served on loopback, with what a site has.

Index, search page, robots.txt with one closed path, sitemap, validators and
conditional answers. Pages are read from disk at every request, so an edited or
removed page shows at once.
"""

from __future__ import annotations

import hashlib
import html
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit

from corpus.errors import SettingsError

LAST_MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"
_DATE = "2025-01-01"
_CLOSED = "/private/"


@dataclass(frozen=True)
class SamplePage:
    """A line of the manifest, as far as serving needs it."""

    path: str  # percent-encoded
    file: Path
    title: str
    content_type: str
    licence: str
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What is sent: status, headers beside length and validators, body."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def read_manifest(folder: Path) -> list[SamplePage]:
    """The pages of the sample site. Raises SettingsError with file and line for a bad manifest."""
    path = folder / "manifest.jsonl"
    pages = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"sample site: {path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                entry = json.loads(line)
                pages.append(_page(folder, entry))
            except (ValueError, KeyError, TypeError) as error:
                raise SettingsError(f"{path}, line {number}: {type(error).__name__}: {error}") from error
    return pages


def _page(folder: Path, entry: dict[str, object]) -> SamplePage:
    file = _file(folder, str(entry["file"]))
    return SamplePage(
        path=str(entry["url_path"]),
        file=file,
        title=str(entry.get("title") or file.stem),
        content_type=str(entry.get("content_type") or ""),
        licence=str(entry["licence"]),
        terms=tuple(str(term) for term in entry.get("search_terms") or ()),  # type: ignore[attr-defined]
    )


def _file(folder: Path, name: str) -> Path:
    file = (folder / "pages" / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"{name} is outside the sample folder")
    return file


class SampleSite:
    """Serves a sample folder on a free port of loopback while the block runs; ``base`` is its address.

    ``public`` is the address that robots.txt and the sitemap name: the same in
    every run, so that they do not change with the port.
    """

    def __init__(self, folder: Path, public: str = "") -> None:
        self._folder = folder
        self._public = public.rstrip("/")
        self.base = ""

    def __enter__(self) -> SampleSite:
        content = SiteContent(read_manifest(self._folder), self._public)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, content))
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class SiteContent:
    """What the site answers, without the network."""

    def __init__(self, pages: Sequence[SamplePage], public: str = "") -> None:
        self._public = public
        self._pages = sorted(pages, key=lambda page: page.path)
        self._by_path = {unquote(page.path): page for page in self._pages}

    def answer(self, target: str, base: str) -> Answer:
        """The answer to a path with query; ``base`` is the address the client used."""
        base = self._public or base
        parts = urlsplit(target)
        path = unquote(parts.path)
        match path:
            case "/":
                return _html(
                    "Sample site", _links(self._present()) + f'<p><a href="{_CLOSED}">closed</a></p>'
                )
            case "/robots.txt":
                rules = f"User-agent: *\nDisallow: {_CLOSED}\n\nSitemap: {base}/sitemap.xml\n"
                return Answer(200, "text/plain; charset=utf-8", rules.encode())
            case "/sitemap.xml":
                return Answer(200, "application/xml", self._sitemap(base))
            case "/search":
                return self._search(parse_qs(parts.query).get("q", [""])[0])
        if path.startswith(_CLOSED):
            return _html("closed", "<p>robots.txt closes this path.</p>")
        page = self._by_path.get(path)
        if page is None or not page.file.is_file():
            return _html("not found", "<p>not found</p>", status=404)
        return Answer(200, page.content_type, page.file.read_bytes())

    def _present(self) -> Iterator[SamplePage]:
        return (page for page in self._pages if page.file.is_file())

    def _sitemap(self, base: str) -> bytes:
        urls = "".join(
            f"<url><loc>{html.escape(base + page.path)}</loc><lastmod>{_DATE}</lastmod></url>\n"
            for page in self._present()
        )
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        return f"{head}{urls}</urlset>\n".encode()

    def _search(self, query: str) -> Answer:
        wanted = _fold(query)
        hits = [page for page in self._present() if wanted and _matches(page, wanted)]
        shown = html.escape(query)
        body = f"<p>{len(hits)} results / 条结果: {shown}</p>" + _links(hits)
        answer = _html(f"搜索 Search: {shown}", body)
        return Answer(answer.status, answer.content_type, answer.body, (("X-Robots-Tag", "noindex"),))


def _matches(page: SamplePage, wanted: str) -> bool:
    return wanted in {_fold(term) for term in page.terms}


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _links(pages: Iterator[SamplePage] | Sequence[SamplePage]) -> str:
    rows = [f'<li><a href="{html.escape(page.path)}">{html.escape(page.title)}</a></li>' for page in pages]
    return "<ul>\n" + "\n".join(rows) + "\n</ul>"


def _html(title: str, body: str, status: int = 200) -> Answer:
    text = f'<!doctype html><html><head><meta charset="utf-8"><title>{title}</title></head><body>{body}</body></html>'
    return Answer(status, "text/html; charset=utf-8", text.encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "SampleSite"
    sys_version = ""
    timeout = 30

    def __init__(self, content: SiteContent, *arguments: object) -> None:
        self._content = content
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer, with 304 where the client has the same bytes already."""
        base = f"http://{self.headers.get('Host', '')}"
        answer = self._content.answer(self.path, base)
        tag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
        unchanged = answer.status == 200 and self._has(tag)
        self.send_response(304 if unchanged else answer.status)
        if answer.status == 200:
            self.send_header("ETag", tag)
            self.send_header("Last-Modified", LAST_MODIFIED)
        for name, value in answer.headers:
            self.send_header(name, value)
        if not unchanged:
            if answer.content_type:
                self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if not unchanged:
            self.wfile.write(answer.body)

    def _has(self, tag: str) -> bool:
        """If-None-Match decides where it is given (RFC 9110, 13.1.3)."""
        match = self.headers.get("If-None-Match")
        if match is not None:
            return tag in {part.strip().removeprefix("W/") for part in match.split(",")}
        return self.headers.get("If-Modified-Since") == LAST_MODIFIED

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet: the crawl records what was asked for."""

"""One entry for all kinds of content: bytes in, cleaned page or profile out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from corpus.cleaning.decoding import Decoded, decode, head_text
from corpus.cleaning.measure import Measures, visible_text
from corpus.cleaning.page import CleanedPage
from corpus.cleaning.parsing import LIMITS, Limits, check_size, parse_html, resolve
from corpus.cleaning.plaintext import clean_text
from corpus.cleaning.template import PageProfile, Template, block_hashes, skeleton_of
from corpus.cleaning.tracing import Trace
from corpus.cleaning.webpage import clean_html
from corpus.cleaning.xml_text import clean_xml, is_xml
from corpus.errors import TerminalError
from corpus.url_patterns import url_pattern
from corpus.urls import canonical_url

_REPLACED_SHARE = 0.001  # of the characters; above it the encoding was not understood
_PDF = b"%PDF-"
_BINARY = (
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\xd0\xcf\x11\xe0",
    b"RIFF",
    b"\x7fELF",
)
_TEXT_SUFFIXES = (".txt", ".md", ".markdown", ".text", ".rst", ".log", ".csv", ".tsv")
_MARKUP_START = (
    "<!doctype html",
    "<html",
    "<head",
    "<body",
    "<!--",
    "<div",
    "<table",
    "<p",
    "<h",
    "<article",
    "<main",
)

#: Raised with every change of the rules: part of fingerprints.
RULES_VERSION = "7"


def clean_page(
    data: bytes,
    *,
    url: str = "",
    content_type: str = "",
    header_charset: str = "",
    template: Template | None = None,
    kept_classes: Collection[str] = (),
    limits: Limits = LIMITS,
    trace: Trace | None = None,
) -> CleanedPage:
    """Clean a page, PDF, XML document or text as received. A pure function of its arguments.

    The kind comes from the bytes first, then from ``content_type`` and the ending of
    ``url``. A ``trace`` is told what each cleaning of an HTML page removed. Raises TerminalError with a reason: ``empty``, ``too_large``,
    ``too_many_elements``, ``unparseable``, ``unsupported_type``, ``malformed_xml``,
    ``malformed_pdf``, ``encrypted_pdf``, ``scanned_pdf``, ``too_many_pages``.
    """
    check_size(data, limits)
    kind = kind_of(data, url=url, content_type=content_type)
    if kind == "pdf":
        from corpus.cleaning.pdf_text import clean_pdf

        page = clean_pdf(data)
        page.canonical_url = _canonical(url, "")
        return page
    decoded = decode(data, header_charset=header_charset, content_type=content_type)
    if not decoded.text.strip():
        raise TerminalError("nothing but blanks", reason="empty")
    page = _clean_decoded(decoded, kind, url, content_type, template, kept_classes, limits, trace)
    page.encoding = decoded.decision()
    if decoded.replaced > _REPLACED_SHARE * len(decoded.text):
        page.reasons = (*page.reasons, "replacement_characters")
        page.verdict = "review" if page.verdict == "ok" else page.verdict
    return page


def _clean_decoded(
    decoded: Decoded,
    kind: str,
    url: str,
    content_type: str,
    template: Template | None,
    kept_classes: Collection[str],
    limits: Limits,
    trace: Trace | None,
) -> CleanedPage:
    if kind == "xml" or (kind == "page" and is_xml(decoded.text)):
        page = clean_xml(decoded.text, limits)
        page.canonical_url = _canonical(url, "")
    elif kind == "text":
        page = clean_text(decoded.text)
        page.canonical_url = _canonical(url, "")
    else:
        page = clean_html(
            decoded.text, template=template, kept_classes=kept_classes, limits=limits, trace=trace
        )
        page.canonical_url = _canonical(url, _declared_canonical(page.html))
    return page


def kind_of(data: bytes, *, url: str = "", content_type: str = "") -> str:
    """``pdf``, ``xml``, ``text`` or ``page``. Raises TerminalError for other binary content."""
    head_bytes = data[:1024]
    if _PDF in head_bytes and b"<" not in head_bytes[: head_bytes.index(_PDF)]:
        return "pdf"  # not a page that only speaks of PDF files
    if data.startswith(_BINARY):
        raise TerminalError("binary content that is no PDF", reason="unsupported_type")
    mime = content_type.split(";", maxsplit=1)[0].strip().lower()
    path = url.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0].lower()
    head = head_text(data[:4096]).lstrip("\ufeff \t\r\n").lower()
    if head.startswith("<?xml") or head.startswith(("<!doctype", "<html")):
        return "xml" if is_xml(head) and "html" not in mime else "page"
    if mime in {"text/html", "application/xhtml+xml"}:
        return "page"
    if mime in {"text/plain", "text/markdown", "text/x-markdown"} or path.endswith(_TEXT_SUFFIXES):
        return "text"
    if mime.endswith("/xml") or mime.endswith("+xml"):
        return "xml"
    if head.startswith(_MARKUP_START) or path.endswith(
        (".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx")
    ):
        return "page"
    return "page" if "</" in head or "<p>" in head or "<br" in head else "text"


def profile_page(
    data: bytes,
    *,
    url: str = "",
    content_type: str = "",
    header_charset: str = "",
    limits: Limits = LIMITS,
) -> PageProfile:
    """What clustering needs of a page: URL pattern, DOM skeleton, block hashes, encoding decision.

    Content other than HTML has a pattern and no blocks. Raises as ``clean_page``.
    """
    check_size(data, limits)
    pattern = url_pattern(url) if url else ""
    kind = kind_of(data, url=url, content_type=content_type)
    if kind != "page":
        return PageProfile(pattern, "", "", (), {"kind": kind})
    decoded = decode(data, header_charset=header_charset, content_type=content_type)
    root, _ = parse_html(decoded.text, limits)
    body = root.find("body")
    if body is None:
        return PageProfile(pattern, "", "", (), dict(decoded.decision()))
    skeleton, skin = skeleton_of(body)
    blocks = block_hashes(body, Measures(root))
    return PageProfile(pattern, skeleton, skin, blocks, dict(decoded.decision()))


def page_words(
    data: bytes, path: str, *, content_type: str = "", header_charset: str = "", limits: Limits = LIMITS
) -> str:
    """The page's own words at a block's DOM path, for showing evidence; empty where there are none."""
    decoded = decode(data, header_charset=header_charset, content_type=content_type)
    if not path.startswith(("/", "(")) or not decoded.text.strip():
        return ""
    element = resolve(parse_html(decoded.text, limits)[0], path)
    return visible_text(element) if element is not None else ""


def _declared_canonical(html: str) -> str:
    marker = '<link rel="canonical" href="'
    start = html.find(marker, 0, 20_000)
    if start < 0:
        return ""
    from html import unescape

    return unescape(html[start + len(marker) : html.find('"', start + len(marker))])


def _canonical(url: str, declared: str) -> str:
    """The canonical URL; the page's claim alone where no URL is known; empty for what is no URL."""
    for given, claim in ((url, declared), (declared, None)):
        if given:
            try:
                return canonical_url(given, claim)
            except ValueError:
                continue
    return ""


def summary(page: CleanedPage) -> dict[str, Any]:
    """A page without its HTML: what ``--format json`` prints."""
    value = page.to_json()
    value.pop("html")
    return value

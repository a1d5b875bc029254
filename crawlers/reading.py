"""What an answer is for its source: whether it is taken, what it says of itself, where it leads.

Pure functions, used by the spider and by the dry run of ``hchem sources check``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import brotli  # type: ignore[import-untyped]

from corpus.cleaning.decoding import decode
from crawlers.fates import Fate
from crawlers.headers import charset_of, media_type, reservation, robots_tags
from crawlers.links import Hints, listed_results, looks_like_html, read_html
from crawlers.sources import Source

HTML = ("text/html", "application/xhtml+xml")
ARCHIVES = frozenset({"application/gzip", "application/x-gzip"})  # compressed sitemaps
_UNNAMED = frozenset({"application/octet-stream", "binary/octet-stream", "application/x-pdf"})
_CODINGS = frozenset({  # IANA HTTP Content Coding Registry
    "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-compress", "x-gzip", "zstd",
})  # fmt: skip
_PDF_MAGIC = b"%PDF-"
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Answer:
    """Body and headers of an answer, without content encoding. Header values by lower-case name."""

    url: str
    body: bytes
    content_type: str
    robots: Sequence[str] = ()
    reservation: Sequence[str] = ()

    @property
    def media(self) -> str:
        """The media type, lower case."""
        return media_type(self.content_type)

    @property
    def charset(self) -> str:
        """The charset of the header."""
        return charset_of(self.content_type)


def takes(media: str, url: str, taken: Sequence[str]) -> bool:
    """Whether the header lets the body be loaded: a type of the list, none, or a PDF without its own type."""
    return not media or media in taken or media in ARCHIVES or _unnamed_pdf(media, url)


def _unnamed_pdf(media: str, url: str) -> bool:
    return media in _UNNAMED and urlsplit(url).path.lower().endswith(".pdf")


def type_fault(answer: Answer, taken: Sequence[str], role: str) -> str:
    """Why a loaded body is not what its header promised; empty where it is."""
    media = answer.media
    if not takes(media, answer.url, taken):
        return media
    if media in _UNNAMED and _PDF_MAGIC not in answer.body[:1024]:
        return f"{media} that is no PDF"
    if media in ARCHIVES and role != "sitemap":
        return media
    return ""


def unknown_coding(left: Sequence[str]) -> str:
    """A registered content coding that is still on; names that are none (``utf-8``, ``none``) mean nothing."""
    names = [name.strip().lower() for value in left for name in value.split(",")]
    return next((name for name in names if name in _CODINGS), "")


def unfinished(encodings: Sequence[str], body: bytes) -> bool:
    """Whether a compressed body ends before its stream does (a torn answer without a length)."""
    names = [name.strip().lower() for value in encodings for name in value.split(",") if name.strip()]
    if len(names) != 1 or names[0] == "identity":
        return False
    try:
        if names[0] == "br":
            stream = brotli.Decompressor()
            stream.process(body)
            return not stream.is_finished()
        if names[0] in ("gzip", "x-gzip"):
            return not _reaches_end(body, zlib.MAX_WBITS | 16)
        if names[0] == "deflate":
            return not (_reaches_end(body, zlib.MAX_WBITS) or _reaches_end(body, -zlib.MAX_WBITS))
    except brotli.error:
        return False
    return False


def _reaches_end(body: bytes, window: int) -> bool:
    """Whether the first stream of the body ends. Its output is thrown away block by block."""
    stream = zlib.decompressobj(window)
    data = body
    try:
        while data and not stream.eof:
            stream.decompress(data, _BLOCK)
            data = stream.unconsumed_tail
        while not stream.eof and stream.decompress(b"", _BLOCK):
            pass
    except zlib.error:
        return False
    return stream.eof


def hints_of(source: Source, answer: Answer, role: str, *, links: bool, agent: str) -> Hints:
    """What an HTML page says of itself; nothing for other types and for sitemaps."""
    media = answer.media
    if role == "sitemap" or not (media in HTML or (not media and looks_like_html(answer.body))):
        return Hints()
    listing = role == "search"
    css = source.results_css if listing else ""
    wanted = links and (listing or bool(source.follow_content))
    return read_html(answer.body, answer.url, answer.charset, css, links=wanted, agent=agent)


def addresses(source: Source, answer: Answer, role: str, hints: Hints, *, agent: str) -> list[str]:
    """The addresses that the answer names and lets be followed, before the source's rules.

    A listing is read for its links whatever its robots tags say.
    """
    listing = role == "search"
    nofollow = hints.nofollow or robots_tags(answer.robots, agent)[1]
    found = list(hints.links) if listing or not (nofollow and source.obey_noindex) else []
    if listing and source.results_pattern:
        text = decode(answer.body, header_charset=answer.charset).text
        results = listed_results(text, source.results_pattern, source.results_template)
        found += [urljoin(source.base, address) for address in results]
    return list(dict.fromkeys(found))


def opted_out(source: Source, answer: Answer, role: str, hints: Hints, *, agent: str) -> Fate | None:
    """The fate of a content page that asks to be left out, by robots tags or TDM reservation."""
    if role != "content":
        return None
    if source.obey_noindex and (hints.noindex or robots_tags(answer.robots, agent)[0]):
        return Fate("excluded", "noindex", "its robots tags say so")
    said = hints.reserved if hints.reserved is not None else reservation(answer.reservation)
    if source.obey_tdm and said:
        place = "meta element" if hints.reserved is not None else "header"
        return Fate("excluded", "tdm_reserved", f"its tdm-reservation {place} says so")
    return None

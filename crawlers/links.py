"""What a page leads to: links, sitemap entries, robots tags, rel=canonical. Pure functions on bytes.

Pages are decoded by the cleaner's rules, so that links of pages with a missing or
lying declaration come out right. As browsers do, the query of a link is encoded
like its page, the path in UTF-8 (WHATWG URL Standard).
"""

from __future__ import annotations

import gzip
import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urljoin

import lxml.etree
import lxml.html
from scrapy.utils.sitemap import Sitemap
from w3lib.url import safe_url_string

from corpus.cleaning.decoding import decode
from corpus.urls import canonical_url
from crawlers.headers import reservation, says
from crawlers.patterns import matches

MAX_SITEMAP_BYTES = 50 * 1024 * 1024  # the protocol's limits
MAX_SITEMAP_URLS = 50_000
MAX_LINKS_READ = 20_000
"""Different links read from one page: what a flood has beyond that would only cost time."""
_LATEST = timedelta(days=1, hours=12)  # the end of a day in the westernmost time zone
_CLOSERS = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
_MARKUP = re.compile(rb"<(?:!doctype|html|head|body|title|meta|a|p|div|table|\?xml)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Hints:
    """What an HTML page says about itself and where it leads.

    ``unfollowed``: links with rel=nofollow. ``reserved``: what ``tdm-reservation`` says.
    """

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False
    nofollow: bool = False
    reserved: bool | None = None
    unfollowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class SitemapEntry:
    """An address of a sitemap; ``lastmod`` in UTC where it is given and readable.

    A date without a time is some moment of that day somewhere: the latest is taken.
    """

    url: str
    lastmod: datetime | None = None


def looks_like_html(body: bytes) -> bool:
    """Whether bytes without a declared type are markup."""
    return _MARKUP.search(body[:4096]) is not None


def read_html(
    body: bytes, url: str, charset: str = "", css: str = "", *, links: bool = True, agent: str = ""
) -> Hints:
    """Links (canonical, in page order, without nofollow ones), rel=canonical, robots tags, reservation.

    ``charset`` is the HTTP header's; ``css`` restricts the links to a region;
    ``links`` False leaves them out (they are most of the work); ``agent`` is the
    name under which meta elements may address this crawler. A page that cannot be
    parsed has none.
    """
    decoded = decode(body, header_charset=charset)
    root = _parse(decoded.text)
    if root is None:
        return Hints()
    base = _joined(url, next(iter(root.xpath("//base/@href")), ""))
    tags = ",".join(_meta(root, "robots") + (_meta(root, agent.lower()) if agent else [])).lower()
    claimed = next(iter(root.xpath("//link[translate(@rel,'CANOIL','canoil')='canonical']/@href")), "")
    found, unfollowed = _anchors(root, base, css, decoded.encoding) if links else ((), ())
    return Hints(
        links=found,
        canonical=_address(base, claimed, decoded.encoding),
        noindex=says(tags, "noindex"),
        nofollow=says(tags, "nofollow"),
        reserved=reservation(_meta(root, "tdm-reservation")),
        unfollowed=unfollowed,
    )


def read_sitemap(body: bytes, url: str) -> tuple[bool, list[SitemapEntry]]:
    """Entries of a sitemap or a sitemap index (first value True), also gzipped or plain text.

    Raises ValueError for what is neither.
    """
    if body[:2] == b"\x1f\x8b":
        body = _gunzip(body)
    if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = [line.strip() for line in body.decode("utf-8", "replace").splitlines()]
        addresses = [_address(url, line) for line in lines if line.startswith("http")]
        return False, [SitemapEntry(address) for address in addresses if address][:MAX_SITEMAP_URLS]
    try:
        sitemap = Sitemap(body)
        entries = [
            SitemapEntry(address, _moment(str(entry.get("lastmod", ""))))
            for entry, _ in zip(sitemap, range(MAX_SITEMAP_URLS), strict=False)
            if (address := _address(url, str(entry.get("loc", ""))))
        ]
    except (lxml.etree.LxmlError, StopIteration, TypeError) as error:
        raise ValueError(f"not a sitemap: {error}") from error
    if sitemap.type not in ("urlset", "sitemapindex"):
        raise ValueError(f"not a sitemap but <{sitemap.type}>")
    return sitemap.type == "sitemapindex", entries


def listed_results(text: str, pattern: str, template: str) -> list[str]:
    """Addresses made from a listing that is not HTML: the template filled with each match's groups.

    As many as links are read from a page. Raises SlowPattern.
    """
    found: dict[str, None] = {}
    for groups in matches(pattern, text):
        if len(found) >= MAX_LINKS_READ:
            break
        address = template
        for number, value in enumerate(groups, start=1):
            address = address.replace(f"{{{number}}}", value or "")
        found.setdefault(address)
    return list(found)


def _anchors(
    root: lxml.html.HtmlElement, base: str, css: str, encoding: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Links that may be followed and those with rel=nofollow; rel=next of the head is a link like others."""
    found: dict[str, None] = {}
    unfollowed: dict[str, None] = {}
    read: set[tuple[str, bool]] = set()
    for region in root.cssselect(css) if css else [root]:
        for anchor in region.iter("a", "area"):
            href = anchor.get("href")
            nofollow = "nofollow" in (anchor.get("rel") or "").lower()
            if not href or (href, nofollow) in read or len(read) >= MAX_LINKS_READ:
                continue
            read.add((href, nofollow))
            address = _address(base, href, encoding)
            if address:
                (unfollowed if nofollow else found).setdefault(address)
    for href in root.xpath("//link[translate(@rel,'NEXT','next')='next']/@href"):
        address = _address(base, href, encoding)
        if address:
            found.setdefault(address)
    return tuple(found), tuple(unfollowed)


def _meta(root: lxml.html.HtmlElement, name: str) -> list[str]:
    return [
        element.get("content") or ""
        for element in root.iter("meta")
        if (element.get("name") or "").strip().lower() == name
    ]


def _parse(text: str) -> lxml.html.HtmlElement | None:
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True, recover=True)
    try:
        # libxml2 2.14 drops what follows these end tags; browsers read it as part of the body
        data = _CLOSERS.sub("", text.replace("\x00", "")).encode("utf-8", "replace")
        return lxml.html.document_fromstring(data, parser=parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        return None


def _joined(base: str, href: str) -> str:
    try:
        return urljoin(base, href.strip())
    except ValueError:
        return base


def _address(base: str, href: str | None, encoding: str = "utf-8") -> str:
    if not href or not href.strip() or href.strip().startswith("#"):
        return ""
    try:
        joined = urljoin(base, href.strip())
        if not joined.isascii() and not encoding.startswith("utf"):
            joined = _like_its_page(joined, encoding)
        return canonical_url(joined)
    except ValueError:
        return ""


def _like_its_page(url: str, encoding: str) -> str:
    try:
        return str(safe_url_string(url, encoding=encoding))
    except (UnicodeEncodeError, LookupError):
        return url


def _moment(text: str) -> datetime | None:
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
        if len(text) <= len("2024-05-06"):
            return moment.replace(tzinfo=UTC) + _LATEST
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _gunzip(body: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            plain = stream.read(MAX_SITEMAP_BYTES + 1)
    except (OSError, EOFError) as error:
        raise ValueError(f"not a gzip file: {error}") from error
    if len(plain) > MAX_SITEMAP_BYTES:
        raise ValueError("a sitemap over 50 MiB")
    return plain

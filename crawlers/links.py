"""What a page leads to: links, sitemap entries, robots tags, rel=canonical. Pure functions on bytes."""

from __future__ import annotations

import gzip
import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urljoin

import lxml.etree
import lxml.html
from scrapy.utils.sitemap import Sitemap

from corpus.urls import canonical_url

MAX_SITEMAP_BYTES = 50 * 1024 * 1024  # the protocol's limits
MAX_SITEMAP_URLS = 50_000
_MARKUP = re.compile(rb"<(?:!doctype|html|head|body|title|meta|a|p|div|table|\?xml)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Hints:
    """What an HTML page says about itself and where it leads."""

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False
    nofollow: bool = False


@dataclass(frozen=True)
class SitemapEntry:
    """An address of a sitemap; ``lastmod`` in UTC where it is given and readable."""

    url: str
    lastmod: datetime | None = None


def looks_like_html(body: bytes) -> bool:
    """Whether bytes without a declared type are markup."""
    return _MARKUP.search(body[:4096]) is not None


def read_html(body: bytes, url: str, charset: str = "", css: str = "", *, links: bool = True) -> Hints:
    """Links (canonical, in page order, without nofollow ones), rel=canonical and robots tags.

    ``css`` restricts the links to a region; ``links`` False leaves them out (they
    are most of the work). A page that cannot be parsed has none.
    """
    root = _parse(body, charset)
    if root is None:
        return Hints()
    base = urljoin(url, next(iter(root.xpath("//base/@href")), ""))
    tags = " ".join(root.xpath("//meta[translate(@name,'ROBTS','robts')='robots']/@content")).lower()
    claimed = next(iter(root.xpath("//link[translate(@rel,'CANOIL','canoil')='canonical']/@href")), "")
    return Hints(
        links=_anchors(root, base, css) if links else (),
        canonical=_address(base, claimed),
        noindex=_says(tags, "noindex"),
        nofollow=_says(tags, "nofollow"),
    )


def robots_header(value: str) -> tuple[bool, bool]:
    """noindex and nofollow of an X-Robots-Tag header that is meant for everybody."""
    general = ",".join(part for part in value.lower().split(",") if ":" not in part)
    return _says(general, "noindex"), _says(general, "nofollow")


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
    """Addresses made from a listing that is not HTML: the template filled with each match's groups."""
    found: dict[str, None] = {}
    for match in re.finditer(pattern, text):
        address = template
        for number, value in enumerate(match.groups(), start=1):
            address = address.replace(f"{{{number}}}", value or "")
        found.setdefault(address)
    return list(found)


def _anchors(root: lxml.html.HtmlElement, base: str, css: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for region in root.cssselect(css) if css else [root]:
        for anchor in region.iter("a", "area"):
            if "nofollow" not in (anchor.get("rel") or "").lower():
                address = _address(base, anchor.get("href"))
                if address:
                    found.setdefault(address)
    return tuple(found)


def _parse(body: bytes, charset: str) -> lxml.html.HtmlElement | None:
    try:
        parser = lxml.html.HTMLParser(encoding=charset or None, huge_tree=True, recover=True)
    except LookupError:
        parser = lxml.html.HTMLParser(huge_tree=True, recover=True)
    try:
        return lxml.html.document_fromstring(body.replace(b"\x00", b""), parser=parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        return None


def _address(base: str, href: str | None) -> str:
    if not href or not href.strip() or href.strip().startswith("#"):
        return ""
    try:
        return canonical_url(urljoin(base, href.strip()))
    except ValueError:
        return ""


def _says(tags: str, word: str) -> bool:
    words = set(re.split(r"[\s,]+", tags))
    return word in words or "none" in words


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _gunzip(body: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            plain = stream.read(MAX_SITEMAP_BYTES + 1)
    except (OSError, EOFError) as error:
        raise ValueError(f"not a gzip file: {error}") from error
    if len(plain) > MAX_SITEMAP_BYTES:
        raise ValueError("a sitemap over 50 MiB")
    return plain

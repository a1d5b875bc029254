"""URLs by format pattern: pages of one form are cleaned alike (QChunker, section 3.5).

A pattern is the host, the path with its variable segments as typed slots, and the
names of the query keys: ``https://x.cn/item/苯/123`` and ``…/item/甲苯/9`` are both
``x.cn/item/{cjk}/{number}``. A cluster is a pattern and a skin (hash of the page's
uppermost DOM levels): two skins of one site are two clusters. Both are properties
of the page alone, so ids stay when URLs are added. Groups of fewer than three pages
join a larger group of their host whose DOM skeleton agrees, else the host's default.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from corpus.ids import digest

_SLOTS = (
    ("cas", re.compile(r"(?:cas[-_]?)?\d{2,7}-\d{2}-\d", re.IGNORECASE)),
    ("date", re.compile(r"(?:19|20)\d{2}[-_/.]?(?:0[1-9]|1[0-2])(?:[-_/.]?(?:0[1-9]|[12]\d|3[01]))?")),
    ("number", re.compile(r"\d+")),
    ("uuid", re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)),
    ("hash", re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{8,}", re.IGNORECASE)),
    ("id", re.compile(r"[a-z]{1,6}[-_]?\d{2,}(?:[-_]\d+)*", re.IGNORECASE)),
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_EXTENSION = re.compile(r"\.(html?|php|aspx?|jsp|shtml|xhtml|pdf|xml|txt|md|json)$", re.IGNORECASE)
_MIXED = re.compile(r"(?=.*[a-z])(?=.*\d)", re.IGNORECASE)
_INDEX = frozenset({"index", "default", "home", "main"})
_FEW = 3
_AGREE = 0.6


@dataclass(frozen=True)
class PageForm:
    """What clustering looks at: the page's id, URL, skeleton and skin (from its profile)."""

    page_id: str
    url: str
    skeleton: str = ""
    skin: str = ""


@dataclass(frozen=True)
class UrlCluster:
    """A group of pages of one form. ``pages`` are ids in order; ``examples`` up to five URLs."""

    cluster_id: str
    pattern: str
    pages: tuple[str, ...]
    examples: tuple[str, ...]


def url_pattern(url: str) -> str:
    """Pattern of a URL: host, typed path segments, sorted query keys. Scheme and fragment do not count."""
    parts = urlsplit(url.strip())
    segments = [segment for segment in parts.path.split("/") if segment]
    shown = [_slot(segment, last=number == len(segments) - 1) for number, segment in enumerate(segments)]
    trailing = "/" if parts.path.endswith("/") and segments else ""
    keys = sorted({pair.split("=", 1)[0].lower() for pair in parts.query.split("&") if pair})
    query = "?" + "&".join(keys) if keys else ""
    return f"{_host(url)}/{'/'.join(shown)}{trailing}{query}"


def _host(url: str) -> str:
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = None
    host = (parts.hostname or "").removeprefix("www.")
    return host if port in (None, 80, 443) else f"{host}:{port}"


def _slot(segment: str, last: bool) -> str:
    text = unquote(segment, errors="replace")
    extension = ""
    if last and (found := _EXTENSION.search(text)):
        text, extension = text[: found.start()], found[0].lower()
    return _typed(text, last) + extension


def _typed(text: str, last: bool) -> str:
    for name, form in _SLOTS:
        if form.fullmatch(text):
            return f"{{{name}}}"
    if _CJK.search(text):
        return "{cjk}"
    if last and text.lower() in _INDEX:
        return text.lower()
    if last or _is_name(text):  # the last segment names the page, whatever it is called
        return "{name}"
    return text.lower()


def _is_name(text: str) -> bool:
    """Slugs and chemical names: several words, blanks, brackets, commas, capitals after the first."""
    if len(re.findall(r"[-_+ ]", text)) >= 2 or re.search(r"[ (),'%;]", text):
        return True
    if len(text) > 24:
        return True
    return bool(text[:1].isupper() and len(text) > 3) or bool(_MIXED.match(text) and len(text) > 6)


def cluster(pages: Iterable[PageForm]) -> list[UrlCluster]:
    """Group pages by pattern and skin; ordered by cluster id. Every page is in exactly one cluster."""
    groups: dict[tuple[str, str], list[PageForm]] = defaultdict(list)
    for page in sorted(pages, key=lambda page: page.page_id):
        groups[url_pattern(page.url), page.skin].append(page)
    large = {key: group for key, group in groups.items() if len(group) >= _FEW}
    joined: dict[tuple[str, str], list[PageForm]] = {key: list(group) for key, group in large.items()}
    for key in sorted(groups.keys() - large.keys()):
        for page in groups[key]:
            joined.setdefault(_home(page, large), []).append(page)
    return sorted(
        (_cluster(pattern, skin, members) for (pattern, skin), members in joined.items()),
        key=lambda found: found.cluster_id,
    )


def _home(page: PageForm, large: dict[tuple[str, str], list[PageForm]]) -> tuple[str, str]:
    """Where a page of a rare form goes: the most alike large group of its host, else the host's default."""
    host = _host(page.url)
    best: tuple[float, str, str] = (0.0, "", "")
    for (pattern, skin), members in sorted(large.items()):
        if pattern.split("/", 1)[0] == host and page.skeleton:
            best = max(best, (_likeness(page.skeleton, members[0].skeleton), pattern, skin))
    return (best[1], best[2]) if best[0] >= _AGREE else (f"{host}/*", "")


def _cluster(pattern: str, skin: str, members: list[PageForm]) -> UrlCluster:
    ordered = sorted(members, key=lambda page: page.page_id)
    examples = tuple(sorted(page.url for page in ordered)[:5])
    return UrlCluster(cluster_id(pattern, skin), pattern, tuple(page.page_id for page in ordered), examples)


def cluster_id(pattern: str, skin: str = "") -> str:
    """Id of the cluster of a pattern and skin."""
    return digest("cluster", pattern, skin)


def _likeness(one: str, other: str) -> float:
    a, b = set(one.split()), set(other.split())
    return len(a & b) / len(a | b) if a and b else 0.0

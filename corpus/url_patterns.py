"""URLs by format pattern: pages of one form are cleaned alike (QChunker, section 3.5).

A pattern is the host, the path with its variable segments as typed slots, and the
names of the query keys: ``https://x.cn/item/苯/123`` and ``…/item/甲苯/9`` are both
``x.cn/item/{cjk}/{number}``. A cluster is a pattern and a skin (hash of the page's
uppermost DOM levels): two skins of one site are two clusters. Both are properties
of the page alone, so ids stay when URLs are added. Groups of fewer than three pages
join a larger group of their host whose DOM skeleton agrees, else the host's default.

A slot's type must not depend on chance: a bare run of digits is a number even where it
could be a date (``201912`` among the ids 201900 to 202000), and ids of one digit
and of more are one type wherever a separator shows that they are ids.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from corpus.ids import digest
from corpus.names import normalise_name, valid_cas

_CAS = re.compile(r"(?:cas[-_]?)?(\d{2,7}-\d{2}-\d)", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d{2}([-_/.])(?:0?[1-9]|1[0-2])(?:\1(?:0?[1-9]|[12]\d|3[01]))?")
_SLOTS = (
    ("number", re.compile(r"\d+(?:[-_.]\d+)*")),
    ("uuid", re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)),
    ("hash", re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{8,}", re.IGNORECASE)),
    ("id", re.compile(r"[a-z]{1,6}(?:[-_]\d+|\d{2,})(?:[-_]\d+)*", re.IGNORECASE)),
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_EXTENSION = re.compile(r"\.(html?|php|aspx?|jsp|shtml|xhtml|pdf|xml|txt|md|json)$", re.IGNORECASE)
_MIXED = re.compile(r"(?=.*[a-z])(?=.*\d)", re.IGNORECASE)
_INDEX = frozenset({"index", "default", "home", "main"})
_FEW = 3
_AGREE = 0.6
_COMPARED = 5  # members of a group that a rare page is compared with


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
    keys = sorted({_key(pair) for pair in parts.query.split("&") if pair})
    query = "?" + "&".join(keys) if keys else ""
    return f"{_host(url)}/{'/'.join(shown)}{trailing}{query}"


def _key(pair: str) -> str:
    """A query key; what stands without a value (``?123``) is a value itself, and typed as one."""
    key, equals, _ = pair.partition("=")
    return _text(key).lower() if equals else _typed(_text(key), last=False)


def _text(escaped: str) -> str:
    """A segment without its percent escapes, which are GB18030 on older Chinese sites."""
    data = unquote_to_bytes(escaped)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("gb18030", "replace")
    if _doubtful(text):
        try:
            return data.decode("gb18030")
        except UnicodeDecodeError:
            return text
    return text


def _doubtful(text: str) -> bool:
    """Whether text read as UTF-8 is no word of any language: ``%C7%A6`` is Ǧ there, and 铅 in GB18030."""
    foreign = [character for character in text if character > "\x7f"]
    if not foreign or len(foreign) < len(text) or max(foreign) > "\u07ff":
        return False
    return len(foreign) == 1 or max(foreign) < "\u0370"


def _host(url: str) -> str:
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = None
    host = (parts.hostname or "").removeprefix("www.")
    return host if port in (None, 80, 443) else f"{host}:{port}"


def _slot(segment: str, last: bool) -> str:
    text = _text(segment)
    extension = ""
    if last and (found := _EXTENSION.search(text)):
        text, extension = text[: found.start()], found[0].lower()
    return _typed(text, last) + extension


def _typed(text: str, last: bool) -> str:
    number, date = _CAS.fullmatch(text), _DATE.fullmatch(text)
    if number and (not date or valid_cas(number[1])):  # 2010-12-5 has the form of both
        return "{cas}"
    if date:
        return "{date}"
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
    if len(text) > 24 or normalise_name(re.sub(r"[-_+]", " ", text)) in _chemicals():
        return True
    return bool(text[:1].isupper() and len(text) > 3) or bool(_MIXED.match(text) and len(text) > 6)


@lru_cache(maxsize=1)
def _chemicals() -> frozenset[str]:
    """Names of common hazardous substances: ``/benzene/properties`` and ``/toluene/properties`` are one form."""
    with (Path(__file__).parent / "data" / "hazardous_zh.csv").open(encoding="utf-8", newline="") as stream:
        return frozenset(
            normalise_name(name.replace("-", " "))
            for row in csv.DictReader(stream)
            for name in (row["name_en"], *row["aliases_en"].split("|"))
            if name.isascii() and len(name) > 3
        )


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
            alike = max(_likeness(page.skeleton, member.skeleton) for member in members[:_COMPARED])
            best = max(best, (alike, pattern, skin))
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

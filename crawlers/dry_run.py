"""What a source would make of a saved page or an archive, without the network.

The same rules as in a crawl, read from the same functions; what only the host
can tell (robots.txt, redirects, other answers) is said to be unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from corpus.archive import Record, iterate_records
from corpus.cleaning.decoding import decode
from corpus.errors import SettingsError
from corpus.ids import document_id
from corpus.urls import canonical_url
from crawlers.fates import Fate, of_status
from crawlers.guards import Guard
from crawlers.links import read_sitemap
from crawlers.outcomes import Refused
from crawlers.reading import HTML, Answer, addresses, hints_of, opted_out, type_fault
from crawlers.settings import CrawlSettings
from crawlers.sources import Link, Source, Verdict, first_match

Role = Literal["content", "listing", "sitemap", "none"]
_CRAWL_ROLE = {"listing": "search"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
TYPES = {
    ".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".xml": "application/xml",
    ".md": "text/markdown", ".txt": "text/plain", ".pdf": "application/pdf", ".json": "application/json",
}  # fmt: skip
ROBOTS_UNKNOWN = "robots.txt and tdmrep.json are not known here; a crawl asks for them first"


@dataclass(frozen=True)
class LinkCheck:
    """A link of the page: whether it is followed, why not, and the rule that decided.

    ``reason`` is one of host, denied, pattern, depth, limit, nofollow, query_link, itself.
    """

    url: str
    followed: bool
    reason: str
    rule: str
    role: str


@dataclass(frozen=True)
class PageCheck:
    """A page as the source sees it. ``state`` and ``reason`` are what a crawl would record."""

    url: str
    role: Role
    rule: str
    identity: str = ""
    document_id: str = ""
    state: str = ""
    reason: str = ""
    detail: str = ""
    indexed: bool = False
    content_type: str = ""
    encoding: str = ""
    canonical_claim: str = ""
    canonical: str = ""
    size: int = 0
    links: tuple[LinkCheck, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass
class ArchiveCheck:
    """The pages of an archive; of several answers of one page the last counts."""

    pages: list[PageCheck] = field(default_factory=list)
    records: int = 0

    def summary(self) -> dict[str, dict[str, int]]:
        """Counts by role, by outcome, and of links by verdict."""
        outcomes = Counter(
            "indexed" if page.indexed else f"{page.state}: {page.reason}".rstrip(": ") for page in self.pages
        )
        links = Counter(
            "followed" if link.followed else link.reason for page in self.pages for link in page.links
        )
        roles: Counter[str] = Counter(page.role for page in self.pages)
        counts = {"roles": roles, "outcomes": outcomes, "links": links}
        return {name: dict(sorted(count.items())) for name, count in counts.items()}


def content_type_of(path: Path) -> str:
    """The media type that a saved file's ending stands for; empty where it says nothing."""
    return TYPES.get(path.suffix.lower(), "")


def check_page(
    source: Source,
    settings: CrawlSettings,
    url: str,
    body: bytes,
    content_type: str,
    *,
    robots: Sequence[str] = (),
    reservation: Sequence[str] = (),
    query: Collection[str] = (),
    role: str = "",
) -> PageCheck:
    """What the source would make of an answer of ``url``.

    ``query``: addresses that query links lead to anyway. ``role``: where it is
    not told by the address alone. Raises SettingsError where ``url`` is no URL.
    """
    address = _canonical(url)
    kind, rule = role_of(source, address, query, role)
    if kind == "none":
        return PageCheck(address, kind, rule, state="excluded", reason="offsite", detail=rule)
    try:
        Guard(source.private_hosts, max_url_length=settings.max_url_length).check_form(address)
    except Refused as error:
        return PageCheck(address, kind, rule, state="excluded", reason=error.reason, detail=error.detail)
    answer = Answer(address, body, content_type, robots, reservation)
    crawl_role = _CRAWL_ROLE.get(kind, kind)
    agent = settings.agent_name()
    hints = hints_of(source, answer, crawl_role, links=True, agent=agent)
    fate = _fate(answer, settings, crawl_role) or opted_out(source, answer, crawl_role, hints, agent=agent)
    if fate is None or fate.reason in (
        "noindex",
        "tdm_reserved",
    ):  # such pages are still read for their links
        links = _links(source, settings, answer, crawl_role, query)
    else:
        links = ()
    fate = fate or Fate("kept")
    identity = source.page_identity(address)
    return PageCheck(
        url=address,
        role=kind,
        rule=rule,
        identity=identity,
        document_id=document_id(identity),
        state=fate.state,
        reason=fate.reason,
        detail=fate.detail,
        indexed=fate.state == "kept" and kind == "content",
        content_type=content_type,
        encoding=decode(body, header_charset=answer.charset).encoding if answer.media in HTML else "",
        canonical_claim=hints.canonical,
        canonical=canonical_url(address, hints.canonical or None),
        size=len(body),
        links=links,
    )


def check_archive(
    source: Source, settings: CrawlSettings, path: Path, *, query: Collection[str] = ()
) -> ArchiveCheck:
    """What the source would make of every answer of a WARC file. Raises TerminalError for other files."""
    check = ArchiveCheck()
    pages: dict[str, PageCheck] = {}
    for record in iterate_records(path):
        check.records += 1
        found = _check_record(source, settings, record, query)
        if found is not None:
            pages[found.url] = found
    check.pages = [pages[url] for url in sorted(pages)]
    return check


def plan_queries(source: Source, links: Iterable[Link], names: Sequence[str]) -> dict[str, Any]:
    """The query links of the given substances, and what becomes of them."""
    planned = [
        {
            "url": link.url,
            "chemical": link.chemical,
            "template": link.template,
            "role": role_of(source, link.url, (), str(source.query_role))[0],
        }
        for link in links
    ]
    return {"chemicals": list(names), "links": planned, "limit": source.max_pages_per_chemical}


def role_of(source: Source, url: str, query: Collection[str], known: str = "") -> tuple[Role, str]:
    """listing, content, sitemap or none, and the rule that says so."""
    if not source.on_host(url):
        return "none", "host: not on " + ", ".join(sorted(source.allowed_hosts))
    denied = first_match(source.deny, url)
    if denied:
        return "none", f"deny {denied}"
    if url in {_canonical(source.absolute(address)) for address in source.sitemaps}:
        return "sitemap", "sitemaps"
    pattern = first_match(source.listing, url)
    if pattern:
        return "listing", f"listing {pattern}"
    if known or url in query:
        kind = known or str(source.query_role)
        return ("listing" if kind == "search" else "content"), f"query_role {source.query_role}"
    return "content", "no listing pattern matches"


def _check_record(
    source: Source, settings: CrawlSettings, record: Record, query: Collection[str]
) -> PageCheck | None:
    """None for what repeats a page that the archive holds already."""
    if record.type == "revisit":
        return None
    try:
        url = canonical_url(record.url)
    except ValueError:
        return None
    kind, rule = role_of(source, url, query)
    if kind == "none":
        return PageCheck(url, kind, rule, state="excluded", reason="offsite", detail=rule)
    if record.status in _REDIRECTS:
        target = record.header("Location")
        return PageCheck(url, kind, rule, state="excluded", reason="redirect", detail=f"to {target}"[:500])
    if record.status not in (200, 203):
        fate = of_status(record.status)
        return PageCheck(url, kind, rule, state=fate.state, reason=fate.reason)
    return check_page(
        source,
        settings,
        url,
        record.payload,
        record.header("Content-Type"),
        robots=record.all_headers("X-Robots-Tag"),
        reservation=record.all_headers("tdm-reservation"),
        query=query,
    )


def _fate(answer: Answer, settings: CrawlSettings, role: str) -> Fate | None:
    if len(answer.body) > settings.max_bytes:
        return Fate("excluded", "too_large", f"{len(answer.body)} bytes")
    fault = type_fault(answer, settings.content_types, role)
    if fault:
        return Fate("excluded", "type", fault)
    return None if answer.body else Fate("failed", "empty")


def _links(
    source: Source, settings: CrawlSettings, answer: Answer, role: str, query: Collection[str]
) -> tuple[LinkCheck, ...]:
    agent = settings.agent_name()
    if role == "sitemap":
        return _sitemap_links(source, answer)
    listing = role == "search"
    everything = source.model_copy(update={"follow_content": (".*",)})  # to see what is not followed
    hints = hints_of(everything, answer, role, links=True, agent=agent)
    named = addresses(source, answer, role, hints, agent=agent)
    checks: list[LinkCheck] = []
    followed = 0
    for url in map(_spelled, named):
        verdict = _verdict(source, url, answer.url, query, listing=listing)
        if verdict.followed:
            followed += 1
            if followed > settings.max_links_per_page:
                verdict = Verdict(False, "limit", f"crawl.max_links_per_page {settings.max_links_per_page}")
        checks.append(_checked(source, url, verdict))
    read = set(named)
    said = [url for url in hints.links if url not in read]
    tags = Verdict(False, "nofollow", "robots tags of the page")
    checks += [_checked(source, url, tags) for url in said]
    relation = Verdict(False, "nofollow", "rel=nofollow")
    checks += [_checked(source, url, relation) for url in hints.unfollowed]
    return tuple(checks)


def _sitemap_links(source: Source, answer: Answer) -> tuple[LinkCheck, ...]:
    try:
        is_index, entries = read_sitemap(answer.body, answer.url)
    except ValueError as error:
        raise SettingsError(f"{answer.url}: {error}") from error
    checks = []
    for entry in entries:
        verdict = source.verdict(entry.url, listing=True)
        if is_index:
            on = source.belongs(entry.url)
            verdict = Verdict(on, "" if on else "host", "sitemap index")
        checks.append(_checked(source, entry.url, verdict))
    return tuple(checks)


def _verdict(source: Source, url: str, page: str, query: Collection[str], *, listing: bool) -> Verdict:
    verdict = source.verdict(url, listing=listing)
    if not verdict.followed:
        return verdict
    if url == page:
        return Verdict(False, "itself", verdict.rule)
    if url in query:
        return Verdict(False, "query_link", "a query link leads there already")
    if source.depth == 0:
        return Verdict(False, "depth", "depth 0: no link is followed")
    return verdict


def _checked(source: Source, url: str, verdict: Verdict) -> LinkCheck:
    role = role_of(source, url, ())[0]
    return LinkCheck(url, verdict.followed, verdict.reason, verdict.rule, role)


def _spelled(url: str) -> str:
    try:
        return canonical_url(url)
    except ValueError:
        return url


def _canonical(url: str) -> str:
    try:
        return canonical_url(url)
    except ValueError as error:
        raise SettingsError(f"{error}; give the page's address, such as https://example.org/page") from error

"""Sources as data: where pages come from, how politely, and which links are followed.

Definitions ship in ``crawlers/data/sources.toml``; a file of the user's own
adds to them or replaces them by name. Which of them are crawled is the user's
choice: only the sample site is enabled by default.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from corpus.errors import SettingsError
from corpus.ids import digest
from corpus.urls import canonical_url
from crawlers.patterns import fault_of, found, groups_of
from crawlers.settings import CrawlSettings

Kind = Literal["platform", "encyclopedia", "database", "regulation", "site"]
Role = Literal["content", "search", "sitemap"]
_FIELDS = ("name", "cas", "name_zh")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class Source(BaseModel):
    """One source. Patterns are regular expressions searched in path and query of a URL."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,40}$",
        description="Short stable name: lower-case letters, digits, hyphens",
    )
    title: str = Field(description="Name for people")
    kind: Kind = Field(description="What the source is")
    languages: tuple[str, ...] = Field(min_length=1, description="Languages of the pages, ISO 639-1")
    licence: str = Field(description="Licence of the content and terms of use, as far as known")
    enabled: bool = Field(default=False, description="Crawled without being asked for by name")
    base: str = Field(description="Address that relative templates and start addresses are joined to")
    hosts: tuple[str, ...] = Field(
        default=(), description="Allowed hosts (host or host:port); default: the base's"
    )
    private_hosts: tuple[str, ...] = Field(
        default=(), description="Hosts (host or host:port) that may be private or loopback addresses"
    )
    tls_exceptions: tuple[str, ...] = Field(
        default=(),
        description="Hosts (host or host:port) of the source whose certificate errors are tolerated",
    )
    query_links: tuple[str, ...] = Field(
        default=(),
        description="Templates with {name}, {cas} or {name_zh}, one page asked per chemical and name",
    )
    query_role: Role = Field(
        default="search", description="What a query link leads to: a result page or the content"
    )
    charset: str = Field(default="utf-8", description="Encoding of the names in query links")
    start: tuple[str, ...] = Field(default=(), description="Addresses to begin with, beside query links")
    sitemaps: tuple[str, ...] = Field(default=(), description="Sitemaps, beside those that robots.txt names")
    use_sitemaps: bool = Field(default=False, description="Also read the sitemaps that robots.txt names")
    listing: tuple[str, ...] = Field(
        default=(), description="Pages that only lead to content (search, index)"
    )
    follow_listing: tuple[str, ...] = Field(
        default=(), description="Links of listing pages and sitemaps that are followed"
    )
    follow_content: tuple[str, ...] = Field(
        default=(), description="Links of content pages that are followed"
    )
    deny: tuple[str, ...] = Field(default=(), description="Addresses that are never asked for")
    results_css: str = Field(
        default="", description="CSS selector of the region of a listing whose links count"
    )
    results_pattern: str = Field(
        default="",
        description="Regular expression found in a listing's text; its groups fill `results_template`",
    )
    results_template: str = Field(default="", description="Address with {1}, {2} … for the groups of a match")
    obey_noindex: bool = Field(default=True, description="Leave out pages whose robots tags say noindex")
    identity: str = Field(
        default="", description="Prefix that replaces the base in document identities (stable across hosts)"
    )
    complete: bool = Field(
        default=False,
        description="Links and sitemaps name every page, so a page that is not linked any more is gone",
    )
    obey_tdm: bool = Field(
        default=True,
        description="Leave out pages whose text and data mining is reserved (TDMRep: file, header, meta)",
    )
    trust_lastmod: bool = Field(
        default=False,
        description="Do not ask for pages again whose sitemap lastmod is before our last visit",
    )
    tombstone_after: int = Field(
        default=3, ge=1, description="Refreshes in a row without a page until it is gone"
    )
    delay_s: float = Field(default=1.0, ge=0, description="Least pause between requests to one host")
    per_host: int = Field(default=1, ge=1, le=16, description="Requests at once to one host")
    autothrottle: bool = Field(default=True, description="Adapt the pause to the server's answers")
    depth: int = Field(default=2, ge=0, description="Links followed from a start address or query link")
    max_pages: int = Field(default=2000, ge=1, description="Pages asked for in one run")
    max_total_bytes: int = Field(
        default=2_000_000_000, ge=1, description="Bytes received in one run, as sent"
    )
    max_pages_per_chemical: int = Field(
        default=20, ge=1, description="Pages asked for per chemical in one run"
    )
    max_chemicals: int = Field(default=200, ge=1, description="Chemicals that query links are made for")
    chemicals: Literal["all", "sample"] = Field(
        default="all", description="Names to ask for: the whole repository or the sample site's list"
    )
    served: bool = Field(
        default=False, description="Served on loopback by the platform from its sample folder"
    )
    note: str = Field(default="", description="What one should know before enabling it")

    @field_validator("listing", "follow_listing", "follow_content", "deny", "results_pattern")
    @classmethod
    def _patterns(cls, values: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for value in (values,) if isinstance(values, str) else values:
            if fault := fault_of(value):
                raise ValueError(f"{value[:100]!r} {fault}")
        return values

    @field_validator("results_css")
    @classmethod
    def _selector(cls, value: str) -> str:
        from cssselect import HTMLTranslator, SelectorError

        if value:
            try:
                HTMLTranslator().css_to_xpath(value)
            except SelectorError as error:
                raise ValueError(f"{value!r} is not a CSS selector: {error}") from error
        return value

    @field_validator("query_links")
    @classmethod
    def _templates(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            names = _PLACEHOLDER.findall(value)
            if not names or set(names) - set(_FIELDS) or set("{}") & set(_PLACEHOLDER.sub("", value)):
                raise ValueError(
                    f"template {value!r} needs one of {', '.join('{' + f + '}' for f in _FIELDS)}"
                )
        return values

    @field_validator("charset")
    @classmethod
    def _known_charset(cls, value: str) -> str:
        try:
            "".encode(value)
        except LookupError as error:
            raise ValueError(f"unknown charset {value!r}") from error
        return value

    @model_validator(mode="after")
    def _has_a_beginning(self) -> Source:
        if urlsplit(self.base).scheme not in ("http", "https") or not urlsplit(self.base).hostname:
            raise ValueError(f"base {self.base!r} is not an http(s) URL")
        if bool(self.results_pattern) != bool(self.results_template):
            raise ValueError("results_pattern and results_template belong together")
        groups = groups_of(self.results_pattern)
        unknown = [
            number for number in re.findall(r"\{(\d+)\}", self.results_template) if int(number) > groups
        ]
        if unknown:
            raise ValueError(f"results_template asks for group {unknown[0]}, results_pattern has {groups}")
        if not (self.query_links or self.start or self.sitemaps or self.use_sitemaps):
            raise ValueError("a source needs query_links, start or sitemaps")
        own = {host for authority in self.allowed_hosts for host in (authority, _host(authority))}
        foreign = [host for host in self.tls_exceptions if _authority(host) not in own]
        if foreign:
            raise ValueError(
                f"tls_exceptions names {foreign[0]!r}, which is no host of the source "
                f"({', '.join(sorted(self.allowed_hosts))}); write host or host:port"
            )
        return self

    @cached_property
    def allowed_hosts(self) -> frozenset[str]:
        """Hosts whose pages belong to the source, as in canonical URLs (IDNA, default ports left out)."""
        return frozenset(_authority(host) for host in (self.hosts or (urlsplit(self.base).netloc,)))

    def tolerates(self, host: str, port: int | None) -> bool:
        """Whether certificate errors of the host are tolerated (``tls_exceptions``)."""
        tolerated = {_authority(one) for one in self.tls_exceptions}
        named = f"[{host}]" if ":" in host else host
        return bool(tolerated & {_authority(named), _authority(f"{named}:{port or 443}")})

    def belongs(self, url: str) -> bool:
        """Whether the URL is on one of the source's hosts and not denied."""
        return self.on_host(url) and not _matches(self.deny, url)

    def on_host(self, url: str) -> bool:
        """Whether the URL is on one of the source's hosts."""
        return _authority(urlsplit(url).netloc) in self.allowed_hosts

    def role(self, url: str) -> Role:
        """What the URL is by its address alone."""
        return "search" if _matches(self.listing, url) else "content"

    def follows(self, url: str, *, listing: bool) -> bool:
        """Whether a link to ``url`` found on a listing (or content) page is followed."""
        return self.verdict(url, listing=listing).followed

    def verdict(self, url: str, *, listing: bool) -> Verdict:
        """Whether a link found on a listing (or content) page is followed, and by which rule."""
        if not self.on_host(url):
            return Verdict(False, "host", "not on " + ", ".join(sorted(self.allowed_hosts)))
        denied = first_match(self.deny, url)
        if denied:
            return Verdict(False, "denied", f"deny {denied}")
        field = "follow_listing" if listing else "follow_content"
        patterns = self.follow_listing if listing else self.follow_content
        matching = first_match(patterns, url)
        if matching:
            return Verdict(True, "", f"{field} {matching}")
        return Verdict(False, "pattern", f"matches none of {field}" if patterns else f"{field} is empty")

    def page_identity(self, url: str) -> str:
        """What a page's document id hangs on: the canonical URL, or what the source maps it to."""
        canonical = canonical_url(url)
        base = canonical_url(self.base).rstrip("/")
        if self.identity and (canonical == base or canonical.startswith(base + "/")):
            return self.identity + (canonical[len(base) :] or "/")
        return canonical

    def absolute(self, address: str) -> str:
        """A template or start address joined to the base."""
        if urlsplit(address).scheme:
            return address
        return self.base.rstrip("/") + "/" + address.lstrip("/")


@dataclass(frozen=True)
class Verdict:
    """Whether a link is followed: ``reason`` is host, denied or pattern where it is not; ``rule`` says more."""

    followed: bool
    reason: str
    rule: str


@dataclass(frozen=True)
class Named:
    """A chemical with the names that query links are made from."""

    key: str
    cas: str | None
    names: tuple[tuple[str, str], ...]  # (name, language)


@dataclass(frozen=True)
class Link:
    """A query link: canonical URL, the chemical it asks for, the template it came from."""

    link_id: str
    url: str
    chemical: str
    template: str


def load_sources(settings: CrawlSettings) -> dict[str, Source]:
    """All sources by name, the user's replacing the shipped ones.

    Raises SettingsError for a missing file, wrong TOML, a wrong or unknown source.
    """
    shipped = resources.files("crawlers").joinpath("data/sources.toml").read_text(encoding="utf-8")
    sources = _parse(shipped, "the shipped sources.toml")
    if settings.sources_file is not None:
        try:
            text = settings.sources_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"sources file {settings.sources_file} cannot be read: {error}") from error
        sources |= _parse(text, str(settings.sources_file))
    unknown = sorted(set(settings.enabled or ()) - set(sources))
    if unknown:
        raise SettingsError(f"unknown source {', '.join(unknown)}; known: {', '.join(sorted(sources))}")
    return sources


def enabled_names(settings: CrawlSettings, sources: Mapping[str, Source]) -> list[str]:
    """Names of the sources that are enabled, in order."""
    wanted = settings.enabled
    return sorted(
        name for name, source in sources.items() if (name in wanted if wanted is not None else source.enabled)
    )


def enabled_sources(settings: CrawlSettings, only: Sequence[str] = ()) -> list[Source]:
    """The sources to crawl, by name: those asked for, else the enabled ones.

    Raises SettingsError for an unknown name and where a source beyond loopback
    is to be crawled without a contact address.
    """
    sources = load_sources(settings)
    unknown = sorted(set(only) - set(sources))
    if unknown:
        raise SettingsError(f"unknown source {', '.join(unknown)}; known: {', '.join(sorted(sources))}")
    chosen = [sources[name] for name in (sorted(only) or enabled_names(settings, sources))]
    public = [source.name for source in chosen if not source.private_hosts]
    if public and not settings.contact:
        raise SettingsError(
            f"source {', '.join(public)} is public: set crawl.contact (HCHEM_CRAWL__CONTACT) to an address "
            "the site's operator can write to"
        )
    return chosen


def query_links(source: Source, chemicals: Iterable[Named]) -> list[Link]:
    """Chemicals x names x templates, deduplicated by canonical URL, ordered by chemical and URL.

    A name that the source's charset cannot express is left out for that source.
    """
    found: dict[tuple[str, str], Link] = {}
    for chemical in sorted(chemicals, key=lambda named: named.key)[: source.max_chemicals]:
        for template in source.query_links:
            for url in _fill(source, template, chemical):
                link = Link(digest("query-link", source.name, chemical.key, url), url, chemical.key, template)
                found.setdefault((chemical.key, url), link)
    return [found[key] for key in sorted(found)]


def _fill(source: Source, template: str, chemical: Named) -> list[str]:
    wanted = set(_PLACEHOLDER.findall(template))
    urls = []
    for values in _values(source, chemical, wanted):
        try:
            quoted = {key: quote(value, safe="", encoding=source.charset) for key, value in values.items()}
        except UnicodeEncodeError:
            continue
        urls.append(canonical_url(source.absolute(template.format_map(quoted))))
    return urls


def _values(source: Source, chemical: Named, wanted: set[str]) -> list[dict[str, str]]:
    if "cas" in wanted and chemical.cas is None:
        return []
    fixed = {"cas": chemical.cas} if "cas" in wanted and chemical.cas else {}
    if not wanted & {"name", "name_zh"}:
        return [fixed]
    slot = "name_zh" if "name_zh" in wanted else "name"
    languages = {"zh"} if slot == "name_zh" else set(source.languages)
    names = [name for name, language in chemical.names if language in languages]
    return [{**fixed, slot: name} for name in dict.fromkeys(names)]


def _matches(patterns: Sequence[str], url: str) -> bool:
    return bool(first_match(patterns, url))


def first_match(patterns: Sequence[str], url: str) -> str:
    """The first pattern that is found in path and query of the URL, or an empty string. Raises SlowPattern."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return next((pattern for pattern in patterns if found(pattern, target)), "")


@lru_cache(maxsize=4096)
def _authority(netloc: str) -> str:
    try:
        return urlsplit(canonical_url(f"http://{netloc}/")).netloc.removesuffix(":443")
    except ValueError:
        return netloc.lower()


def _host(authority: str) -> str:
    """An authority without its port."""
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() else authority


def _parse(text: str, place: str) -> dict[str, Source]:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{place} is not valid TOML: {error}") from error
    tables = data.get("source", [])
    if not isinstance(tables, list) or set(data) - {"source"}:
        raise SettingsError(f"{place}: sources are [[source]] tables and nothing else")
    sources: dict[str, Source] = {}
    for number, table in enumerate(tables, start=1):
        try:
            source = Source.model_validate(table)
        except ValidationError as error:
            name = table.get("name", f"number {number}") if isinstance(table, dict) else f"number {number}"
            problems = "; ".join(_problem(item["type"], item["loc"], item["msg"]) for item in error.errors())
            raise SettingsError(f"{place}: source {name}: {problems}") from error
        if source.name in sources:
            raise SettingsError(f"{place}: source {source.name} is defined twice")
        sources[source.name] = source
    return sources


def _problem(kind: str, location: tuple[int | str, ...], message: str) -> str:
    field = ".".join(map(str, location)) or "source"
    known = Source.model_fields
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(field, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"{field} is not a field of a source; {hint}fields: {', '.join(known)}"
    about = known[str(location[0])].description if location and str(location[0]) in known else None
    if kind == "missing":
        return f"{field} is missing" + (f" ({about})" if about else "")
    if kind == "string_pattern_mismatch":
        return f"{field}: {message} (lower-case letters, digits and hyphens)"
    return f"{field}: {message}"


def sample_folder(settings: CrawlSettings) -> Path:
    """The sample site's folder. Raises SettingsError where it is not there (an installed wheel has none)."""
    folder = settings.sample_dir or Path(__file__).resolve().parent.parent / "samples"
    if not (folder / "manifest.jsonl").is_file():
        raise SettingsError(
            f"sample site not found: {folder / 'manifest.jsonl'} is missing; run from a checkout of the repository "
            "or set crawl.sample_dir (HCHEM_CRAWL__SAMPLE_DIR)"
        )
    return folder

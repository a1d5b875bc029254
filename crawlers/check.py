"""Whether a source still answers, and what its robots.txt says, without crawling it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

import httpx

from corpus.errors import SettingsError
from crawlers.guards import Guard
from crawlers.outcomes import Refused
from crawlers.robots import MAX_BYTES, read_rules
from crawlers.sample_site import read_manifest
from crawlers.settings import CrawlSettings
from crawlers.sources import Named, Source, query_links, sample_folder

_EXAMPLE = Named("71-43-2", "71-43-2", (("benzene", "en"), ("苯", "zh")))
_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class SourceCheck:
    """What a check found. ``ok`` False: the source cannot be crawled as it stands."""

    name: str
    ok: bool
    detail: str


def check_source(
    source: Source, settings: CrawlSettings, *, paused_until: datetime | None = None
) -> SourceCheck:
    """Ask the source's host for robots.txt (one request) and see whether the first addresses are allowed.

    ``paused_until``: the host has asked to be left alone until then, so it is not asked.
    """
    if source.served:
        return _check_sample(source, settings)
    if paused_until is not None:
        return SourceCheck(
            source.name,
            False,
            f"the host is not to be asked before {paused_until:%Y-%m-%d %H:%M} UTC (Retry-After)",
        )
    if not settings.contact and not source.private_hosts:
        return SourceCheck(source.name, False, "crawl.contact (HCHEM_CRAWL__CONTACT) is not set")
    guard = Guard(source.private_hosts, max_url_length=settings.max_url_length)
    try:
        asyncio.run(guard.check(source.base))
        status, body = _robots(source, settings)
    except Refused as error:
        return SourceCheck(source.name, False, f"{error.reason}: {error.detail}")
    except httpx.HTTPError as error:
        text = str(error) or type(error).__name__
        if "certificate" in text.lower():
            return SourceCheck(source.name, False, f"certificate: {text}; tls_exceptions may name the host")
        return SourceCheck(source.name, False, f"does not answer: {text}")
    rules = read_rules(status, body)
    agent = settings.agent_name()
    if rules.parsed is None and not rules.allows_all:
        return SourceCheck(source.name, False, rules.detail)
    closed = [url for url in _addresses(source) if not rules.allowed(url, agent)]
    if closed:
        return SourceCheck(source.name, False, f"robots.txt ({status}) closes {closed[0]}")
    delay = rules.delay(agent)
    detail = f"robots.txt {status}" + (f", crawl delay {delay:g} s" if delay else "")
    if source.tls_exceptions:
        detail += f"; warning: certificate errors of {', '.join(source.tls_exceptions)} are tolerated"
    return SourceCheck(source.name, True, detail)


def _check_sample(source: Source, settings: CrawlSettings) -> SourceCheck:
    try:
        pages = read_manifest(sample_folder(settings))
    except SettingsError as error:
        return SourceCheck(source.name, False, str(error))
    missing = [page.path for page in pages if not page.file.is_file()]
    detail = f"{len(pages) - len(missing)} pages" + (f", {len(missing)} files missing" if missing else "")
    return SourceCheck(source.name, bool(pages) and len(missing) < len(pages), detail)


def _robots(source: Source, settings: CrawlSettings) -> tuple[int, bytes]:
    parts = urlsplit(source.base)
    address = f"{parts.scheme}://{parts.netloc}/robots.txt"
    headers = {"User-Agent": settings.agent()}
    with (
        httpx.Client(
            timeout=_TIMEOUT_S,
            follow_redirects=False,
            trust_env=False,
            verify=not source.tolerates(parts.hostname or "", parts.port),
        ) as client,
        client.stream("GET", address, headers=headers) as response,
    ):
        body = b""
        for block in response.iter_bytes():
            body += block
            if len(body) > MAX_BYTES:
                break
        return response.status_code, body


def _addresses(source: Source) -> list[str]:
    """The first addresses a crawl would ask for."""
    links = [link.url for link in query_links(source, [_EXAMPLE])]
    return [*links, *map(source.absolute, source.start), *map(source.absolute, source.sitemaps)]

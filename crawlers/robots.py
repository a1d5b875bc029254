"""robots.txt after RFC 9309: no rules on 4xx, nothing allowed on 5xx or no answer.

Scrapy's own middleware reads error pages as rules and allows everything when
the file cannot be had; it also does not act on Crawl-delay.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from protego import Protego
from scrapy import Request
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.sitemap import sitemap_urls_from_robots
from w3lib.url import safe_url_string

from crawlers.outcomes import RETRY_AFTER, Refused, of_error

MAX_BYTES = 512 * 1024  # RFC 9309, 2.5: at least 500 KiB are read
_REDIRECTS = 5
_LONGEST_DELAY_S = 300.0


@dataclass(frozen=True)
class Rules:
    """What one host's robots.txt came to. ``text`` is empty where there are no rules."""

    allows_all: bool
    detail: str
    text: bytes = b""
    parsed: Protego | None = None
    reason: str = "robots_unavailable"  # why nothing is allowed, where there are no rules

    def allowed(self, url: str, agent: str) -> bool:
        """Whether the URL may be asked for."""
        return self.parsed.can_fetch(url, agent) if self.parsed is not None else self.allows_all

    def delay(self, agent: str) -> float:
        """Crawl-delay in seconds: not in the RFC, taken as a lower bound."""
        wanted = self.parsed.crawl_delay(agent) if self.parsed is not None else None
        return min(float(wanted or 0.0), _LONGEST_DELAY_S)

    def sitemaps(self, base: str) -> list[str]:
        """Addresses of the sitemaps that the file names."""
        return list(sitemap_urls_from_robots(self.text, base_url=base))


def read_rules(status: int, body: bytes) -> Rules:
    """The rules of an answer (RFC 9309, 2.3.1). 429 counts as "not now", like 5xx."""
    if 200 <= status < 300:
        text = body[:MAX_BYTES]
        return Rules(True, "rules", text, Protego.parse(text.decode("utf-8-sig", "replace")))
    if 400 <= status < 500 and status != 429:
        return Rules(True, f"robots.txt answers {status}: no rules")
    return Rules(False, f"robots.txt answers {status}: nothing is allowed for now")


async def fetch_host_file(crawler: Any, address: str) -> tuple[int, bytes]:
    """Status and body of a file that speaks for its host, over up to five redirects.

    After more redirects the status is 404: there is no such file (RFC 9309, 2.3.1.2).
    Raises what the download raises.
    """
    for _ in range(_REDIRECTS + 1):
        request = Request(address, meta={"robots_exempt": True}, callback=NO_CALLBACK, dont_filter=True)
        response = await crawler.engine.download_async(request)
        location = response.headers.get("Location")
        if not (300 <= response.status < 400 and location):
            return response.status, response.body
        address = urljoin(address, safe_url_string(location))
    return 404, b""


class RobotsMiddleware:
    """Downloader middleware: fetches each host's robots.txt once and refuses what it forbids."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler
        self._agent = crawler.settings["HCHEM_ROBOTS_AGENT"]
        self._rules: dict[str, asyncio.Future[Rules]] = {}

    @classmethod
    def from_crawler(cls, crawler: Any) -> RobotsMiddleware:
        """Scrapy's way of building the middleware."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Raise Refused for a URL that robots.txt forbids."""
        if request.meta.get("robots_exempt"):
            return
        rules = await self.rules(request.url)
        if not rules.allowed(request.url, self._agent):
            if rules.parsed is None:
                raise Refused(rules.reason, rules.detail, transient=True)
            raise Refused("robots", "robots.txt forbids it")

    async def rules(self, url: str) -> Rules:
        """The rules of the URL's host (scheme and port included)."""
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._rules:
            coming = self._rules[site] = asyncio.get_running_loop().create_future()
            rules = await self._fetch(site)
            self._keep_delay(parts.hostname or "", rules.delay(self._agent))
            if rules.reason == RETRY_AFTER:  # not an answer: asked for again when the pause is over
                del self._rules[site]
            coming.set_result(rules)
            return rules
        return await self._rules[site]

    async def _fetch(self, site: str) -> Rules:
        try:
            status, body = await fetch_host_file(self._crawler, f"{site}/robots.txt")
            return read_rules(status, body)
        except Exception as error:  # noqa: BLE001 - whatever keeps the file away, nothing is allowed then
            fate = of_error(error)
            reason = fate.reason if fate.reason in ("certificate", RETRY_AFTER) else "robots_unavailable"
            return Rules(False, f"robots.txt cannot be had: {fate.detail}", reason=reason)

    def _keep_delay(self, host: str, delay: float) -> None:
        """Make Crawl-delay the least pause, for AutoThrottle too."""
        if delay <= 0:
            return
        downloader = self._crawler.engine.downloader
        downloader.per_slot_settings[host] = {**downloader.per_slot_settings.get(host, {}), "delay": delay}
        slot = downloader.slots.get(host)
        if slot is not None:
            slot.delay = max(slot.delay, delay)
        self._crawler.spider.raise_least_delay(delay)

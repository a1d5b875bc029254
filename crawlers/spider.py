"""The spider: turns claimed pages into requests and answers into records.

One spider serves every source; what differs between sources is data. The
scheduler is the frontier (``CatalogueScheduler``), so nothing that matters
lives in Scrapy's memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import deque
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import DontCloseSpider, StopDownload
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from w3lib.url import safe_url_string

from corpus.archive import ArchiveWriter, Exchange, Location, read_record
from corpus.errors import PlatformError, TerminalError
from crawlers.fates import Fate, of_status
from crawlers.frontier import Found, Frontier, Task, Visit
from crawlers.guards import Guard
from crawlers.headers import charset_of, media_type
from crawlers.job import PROGRESS_MARK, CrawlStats, Job, to_dial, to_public
from crawlers.links import (
    MAX_SITEMAP_URLS,
    Hints,
    listed_results,
    looks_like_html,
    read_html,
    read_sitemap,
    robots_header,
)
from crawlers.outcomes import Refused, of_error
from crawlers.robots import RobotsMiddleware

_PROGRESS_EVERY_S = 0.5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HTML = ("text/html", "application/xhtml+xml")
_HOP_HEADERS = frozenset({"connection", "keep-alive", "proxy-connection", "upgrade"})


class CatalogueScheduler(BaseScheduler):
    """Scrapy's scheduler interface on the frontier; only repeats wait in memory."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler
        self._again: deque[Request] = deque()

    @classmethod
    def from_crawler(cls, crawler: Any) -> CatalogueScheduler:
        """Scrapy's way of building the scheduler."""
        return cls(crawler)

    def has_pending_requests(self) -> bool:
        """Whether something waits."""
        return bool(self._again) or self._crawler.spider.frontier.pending()

    def enqueue_request(self, request: Request) -> bool:
        """Take back a request that a middleware wants repeated."""
        self._again.append(request)
        return True

    def next_request(self) -> Request | None:
        """A repeat, or the next page of the frontier."""
        if self._again:
            return self._again.popleft()
        request: Request | None = self._crawler.spider.next_request()
        return request


class PageSpider(Spider):
    """Crawls one source as its job says."""

    name = "pages"

    def __init__(self, job: Job, frontier: Frontier, archive: ArchiveWriter, guard: Guard) -> None:
        super().__init__()
        self.job = job
        self.source = job.source
        self.frontier = frontier
        self.archive = archive
        self.guard = guard
        self.stats = CrawlStats(resumed=frontier.resumed)
        self.fatal: BaseException | None = None
        self._reported = 0.0
        self._payloads: dict[str, Location] = {}

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> PageSpider:
        """Connect the spider to the crawl's events."""
        spider: PageSpider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_idle, signals.spider_idle)
        crawler.signals.connect(spider.on_headers, signals.headers_received)
        return spider

    async def start(self) -> Any:
        """Ask robots.txt for sitemaps; everything else comes from the frontier."""
        if self.source.use_sitemaps and not self.job.restricted:
            await self._announce_sitemaps()
        return
        yield  # an asynchronous generator, as Scrapy asks for

    async def _announce_sitemaps(self) -> None:
        robots = self.crawler.get_downloader_middleware(RobotsMiddleware)
        assert robots is not None
        base = to_dial(self.source.base, self.job.dial)
        rules = await robots.rules(base)
        named = [to_public(url, self.job.dial) for url in rules.sitemaps(base)]
        self.frontier.add([Found(url, 0, role="sitemap") for url in named if self.source.belongs(url)])

    # --- requests --------------------------------------------------------------

    def next_request(self) -> Request | None:
        """The request for the next page of the frontier, conditional where it was seen before."""
        if self.fatal is not None:
            return None
        task = self.frontier.claim()
        if task is None:
            return None
        self.stats.requests += 1
        headers = self._validators(task)
        return Request(
            to_dial(task.url, self.job.dial),
            headers=headers,
            meta={"task": task, "conditional": bool(headers)},
            callback=self.parse,
            errback=self.failed,
            dont_filter=True,
        )

    def _validators(self, task: Task) -> dict[str, str]:
        if task.payload is None or not (self.job.data_dir / task.payload.warc_file).is_file():
            return {}
        pairs = {"If-None-Match": task.etag, "If-Modified-Since": task.last_modified}
        return {name: value for name, value in pairs.items() if value}

    def raise_least_delay(self, delay: float) -> None:
        """Never go below robots.txt's Crawl-delay, whatever AutoThrottle measures."""
        throttle = self.crawler.get_extension(AutoThrottle)
        if throttle is not None:
            throttle.mindelay = max(getattr(throttle, "mindelay", 0.0), delay)

    # --- events ----------------------------------------------------------------

    def on_idle(self) -> None:
        """All known pages are done: look at those that nothing leads to any more."""
        if self.fatal is None and self.frontier.begin_probes():
            raise DontCloseSpider

    def on_headers(self, headers: Any, request: Request, **_: Any) -> None:
        """Do not load bodies of types that are not taken."""
        if "task" in request.meta and not self._takes(_media_type(headers)):
            raise StopDownload(fail=False)

    def failed(self, failure: Any) -> None:
        """A request that brought no answer."""
        self._settle(failure.request.meta["task"], Visit(of_error(failure.value)))

    def parse(self, response: Response) -> None:
        """An answer: record it. Errors here are the page's, unless the platform itself fails."""
        task: Task = response.meta["task"]
        try:
            visit = self._visit(task, response)
        except Refused as error:
            visit = Visit(of_error(error), status=response.status)
        except TerminalError as error:
            visit = Visit(Fate("failed", error.reason, str(error)), status=response.status)
        except PlatformError as error:
            self._stop(error)
            return
        except OSError as error:  # the archive cannot be written: no page can be stored
            self._stop(error)
            return
        except Exception as error:  # a page that our own code cannot take must not end the crawl
            self.logger.exception("page %s", task.url)
            visit = Visit(
                Fate("failed", "unexpected", f"{type(error).__name__}: {error}"), status=response.status
            )
        self._settle(task, visit)

    def _settle(self, task: Task, visit: Visit) -> None:
        if self._orphaned():
            self._stop(TerminalError("the run that started this crawl is gone", reason="orphaned"))
            return
        try:
            self.frontier.store(task, visit)
        except Exception as error:  # noqa: BLE001 - whatever it is: a result that is not stored ends the crawl
            self._stop(error)
            return
        self.report()

    def _orphaned(self) -> bool:
        return self.job.parent_pid != 0 and os.getppid() != self.job.parent_pid

    def _stop(self, error: BaseException) -> None:
        if self.fatal is None:
            self.fatal = error
            self.crawler.engine.pause()
            deferred_from_coro(self.crawler.stop_async())

    def report(self, *, last: bool = False) -> None:
        """Say how far the crawl is, not more often than twice a second."""
        moment = time.monotonic()
        if last or moment - self._reported >= _PROGRESS_EVERY_S:
            self._reported = moment
            counts = json.dumps([self.frontier.done, self.frontier.known])
            print(f"{PROGRESS_MARK}{counts}", file=sys.stderr, flush=True)

    # --- answers ---------------------------------------------------------------

    def _visit(self, task: Task, response: Response) -> Visit:
        status = response.status
        if status == 304 and response.meta["conditional"]:
            return self._not_modified(task, response)
        if status in _REDIRECTS:
            return self._redirected(task, response)
        if not 200 <= status < 300:
            return Visit(of_status(status), status=status)
        media = _media_type(response.headers)
        if not self._takes(media):
            return Visit(Fate("excluded", "type", media), status=status, facts={"content_type": media})
        if not response.body:
            return Visit(Fate("failed", "empty"), status=status)
        return self._content(task, response, media)

    def _takes(self, media: str) -> bool:
        return not media or media in self.job.settings.content_types or media in _ARCHIVES

    def _redirected(self, task: Task, response: Response) -> Visit:
        location = (response.headers.get("Location") or b"").decode("latin-1")
        target = to_public(safe_url_string(urljoin(response.url, location)), self.job.dial)
        if not location:
            return Visit(Fate("failed", "bad_redirect", "without a Location"), status=response.status)
        if task.redirects >= self.job.settings.max_redirects:
            return Visit(Fate("failed", "redirects", f"more than {task.redirects}"), status=response.status)
        facts = {"final_url": target}
        if urlsplit(target).scheme in ("http", "https") and not self.source.belongs(target):
            return Visit(Fate("excluded", "offsite", f"redirects to {target}"), response.status, facts)
        self.guard.check_form(to_dial(target, self.job.dial))
        link = Found(target, task.depth, task.url, task.chemicals, task.role)
        return Visit(Fate("excluded", "redirect", f"to {target}"), response.status, facts, (link,))

    def _not_modified(self, task: Task, response: Response) -> Visit:
        assert task.payload is not None
        record = read_record(self.job.data_dir, task.payload.warc_file, task.payload.offset)
        self.archive.write_revisit(_exchange(response, task.url), record, not_modified=True)
        self.stats.unchanged += 1
        media = media_type(record.header("Content-Type"))
        hints = self._hints(task, record.payload, media, charset_of(record.header("Content-Type")))
        facts = {"etag": _header(response, "ETag") or task.etag}
        links = self._links(task, record.payload, media, hints)
        return Visit(self._fate(task, hints, record.header("X-Robots-Tag")), 304, facts, links)

    def _content(self, task: Task, response: Response, media: str) -> Visit:
        body: bytes = response.body
        declared = _header(response, "Content-Type")
        hints = self._hints(task, body, media, charset_of(declared))
        links = self._links(task, body, media, hints)
        fate = self._fate(task, hints, _header(response, "X-Robots-Tag"))
        facts: dict[str, Any] = {
            "final_url": task.url,
            "canonical_url": to_public(hints.canonical, self.job.dial),
            "content_type": declared[:255],
            "charset": charset_of(declared),
            "etag": _header(response, "ETag"),
            "last_modified": _header(response, "Last-Modified"),
        }
        if fate.state == "kept":
            facts |= self._store_payload(task, response, body)
        self.stats.bytes_received += len(response.meta["received"].body)
        return Visit(fate, response.status, facts, links, transferred=True)

    def _store_payload(self, task: Task, response: Response, body: bytes) -> dict[str, Any]:
        """Archive the answer; equal bytes are stored once and pointed at."""
        sha = hashlib.sha256(body).hexdigest()
        exchange = _exchange(response, task.url, body)
        known = task.payload if task.payload_sha256 == sha else self._payloads.get(sha)
        place = self._archive_again(exchange, known) if known else None
        if place is None:
            place = self.archive.write_response(exchange)
            self.stats.fetched += 1
        else:
            self.stats.unchanged += task.payload_sha256 == sha
        self._payloads[sha] = place
        return {
            "payload_sha256": sha,
            "payload_bytes": len(body),
            "warc_file": place.warc_file,
            "warc_offset": place.offset,
        }

    def _archive_again(self, exchange: Exchange, known: Location) -> Location | None:
        """Write a revisit record of what ``known`` holds; None where that record is not readable any more."""
        try:
            record = read_record(self.job.data_dir, known.warc_file, known.offset)
        except TerminalError:
            return None
        self.archive.write_revisit(exchange, record, not_modified=False)
        return known

    def _fate(self, task: Task, hints: Hints, header: str) -> Fate:
        """Pages that ask not to be indexed are left out (listings are only read for their links)."""
        noindex = hints.noindex or robots_header(header)[0]
        if task.role == "content" and noindex and self.source.obey_noindex:
            return Fate("excluded", "noindex", "its robots tags say so")
        return Fate("kept")

    def _hints(self, task: Task, body: bytes, media: str, charset: str) -> Hints:
        if task.role == "sitemap" or not (media in _HTML or (not media and looks_like_html(body))):
            return Hints()
        listing = task.role == "search"
        wanted = (
            not task.probe
            and task.depth < self.source.depth
            and (listing or bool(self.source.follow_content))
        )
        css = self.source.results_css if listing else ""
        return read_html(body, task.url, charset, css, links=wanted)

    def _links(self, task: Task, body: bytes, media: str, hints: Hints) -> list[Found]:
        if task.probe:
            return []
        if task.role == "sitemap":
            return self._sitemap_links(task, body)
        listing = task.role == "search"
        addresses = (
            list(hints.links) if not (hints.nofollow and self.source.obey_noindex and not listing) else []
        )
        if listing and self.source.results_pattern:
            found = listed_results(
                body.decode("utf-8", "replace"), self.source.results_pattern, self.source.results_template
            )
            addresses += [urljoin(self.source.base, address) for address in found]
        if task.depth >= self.source.depth:
            return []
        wanted = [url for url in addresses if self.source.follows(url, listing=listing)]
        limit = self.job.settings.max_links_per_page
        self.stats.links_over_limit += max(0, len(wanted) - limit)
        chemicals = task.chemicals if listing else ()
        return [
            Found(url, task.depth + 1, task.url, chemicals, self.source.role(url)) for url in wanted[:limit]
        ]

    def _sitemap_links(self, task: Task, body: bytes) -> list[Found]:
        try:
            is_index, entries = read_sitemap(body, task.url)
        except ValueError as error:
            raise TerminalError(str(error), reason="sitemap") from error
        urls = [to_public(entry.url, self.job.dial) for entry in entries]
        if is_index:
            if task.depth >= _SITEMAP_LEVELS:
                raise TerminalError("sitemap indexes inside indexes", reason="sitemap")
            return [
                Found(url, task.depth + 1, task.url, (), "sitemap")
                for url in urls
                if self.source.belongs(url)
            ]
        wanted = [url for url in urls if self.source.follows(url, listing=True)]
        self.stats.links_over_limit += max(0, len(wanted) - MAX_SITEMAP_URLS)
        return [
            Found(url, task.depth + 1, task.url, (), self.source.role(url))
            for url in wanted[:MAX_SITEMAP_URLS]
        ]


_ARCHIVES = frozenset({"application/gzip", "application/x-gzip"})  # compressed sitemaps
_SITEMAP_LEVELS = 2


def _media_type(headers: Any) -> str:
    return media_type((headers.get("Content-Type") or b"").decode("latin-1"))


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1").strip()


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in headers.items()
        for value in values
        if name.decode("latin-1").lower() not in _HOP_HEADERS
    ]


def _exchange(response: Response, url: str, decoded: bytes = b"") -> Exchange:
    """The exchange as received, under the page's public address."""
    raw: Response = response.meta.get("received", response)
    moment: datetime = response.meta.get("received_at", datetime.now(UTC))
    known = raw.status in HTTPStatus._value2member_map_
    host = [("Host", urlsplit(url).netloc)]
    return Exchange(
        url=url,
        request_headers=[*host, *_pairs(response.request.headers if response.request else {})],
        status=raw.status,
        reason=HTTPStatus(raw.status).phrase if known else "",
        response_headers=_pairs(raw.headers),
        body=raw.body,
        decoded=decoded,
        date=moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        address=str(raw.ip_address or ""),
        protocol=raw.protocol or "HTTP/1.1",
    )

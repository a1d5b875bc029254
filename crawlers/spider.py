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
from collections.abc import Callable, Iterable
from dataclasses import replace
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

from corpus.archive import ArchiveWriter, Exchange, Location, Record, read_record
from corpus.errors import PlatformError, TerminalError
from corpus.urls import canonical_url
from crawlers.fates import Fate, of_status
from crawlers.frontier import Found, Frontier, Task, Visit
from crawlers.guards import Guard
from crawlers.headers import clean_value
from crawlers.job import PROGRESS_MARK, CrawlStats, Job, to_dial, to_public
from crawlers.links import MAX_SITEMAP_URLS, Hints, read_sitemap
from crawlers.outcomes import Refused, of_error
from crawlers.patterns import SlowPattern
from crawlers.pauses import Pauses
from crawlers.reading import (
    Answer,
    addresses,
    hints_of,
    opted_out,
    takes,
    type_fault,
    unfinished,
    unknown_coding,
)
from crawlers.robots import RobotsMiddleware
from crawlers.sources import Role

_PROGRESS_EVERY_S = 0.5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
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

    def __init__(
        self, job: Job, frontier: Frontier, archive: ArchiveWriter, guard: Guard, pauses: Pauses
    ) -> None:
        super().__init__()
        self.job = job
        self.source = job.source
        self.frontier = frontier
        self.archive = archive
        self.guard = guard
        self.pauses = pauses
        self.stats = CrawlStats(resumed=frontier.resumed)
        self.fatal: BaseException | None = None
        self._reported = 0.0
        self._payloads: dict[str, Location] = {}
        self._agent = job.settings.agent_name()

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> PageSpider:
        """Connect the spider to the crawl's events."""
        spider: PageSpider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_idle, signals.spider_idle)
        crawler.signals.connect(spider.on_headers, signals.headers_received)
        crawler.signals.connect(spider.on_bytes, signals.bytes_received)
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
        self.frontier.add([Found(url, 0, role="sitemap") for url in self._chosen(named, self.source.belongs)])

    # --- requests --------------------------------------------------------------

    def next_request(self) -> Request | None:
        """The request for the next page of the frontier, conditional where it was seen before."""
        if self.fatal is not None:
            return None
        if self.frontier.bytes_received >= self.source.max_total_bytes:
            self.frontier.spend(f"over {self.source.max_total_bytes} bytes")
        task = self.frontier.claim()
        if task is None:
            return None
        unmoved = task.unmoved and self._archived(task)
        self.stats.requests += not unmoved
        headers = {} if unmoved else self._validators(task)
        return Request(
            to_dial(task.url, self.job.dial),
            headers=headers,
            meta={"task": task, "conditional": bool(headers), "unmoved": unmoved},
            callback=self.parse,
            errback=self.failed,
            dont_filter=True,
        )

    def _validators(self, task: Task) -> dict[str, str]:
        if not self._archived(task):
            return {}
        pairs = {"If-None-Match": task.etag, "If-Modified-Since": task.last_modified}
        return {name: value for name, value in pairs.items() if value}

    def _archived(self, task: Task) -> bool:
        return task.payload is not None and (self.job.data_dir / task.payload.warc_file).is_file()

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
        if "task" in request.meta:
            media = clean_value((headers.get("Content-Type") or b"").decode("latin-1"))
            answer = Answer(request.url, b"", media)
            if not takes(answer.media, request.url, self.job.settings.content_types):
                raise StopDownload(fail=False)

    def on_bytes(self, data: bytes, **_: Any) -> None:
        """Count what comes, also of answers that are not taken or asked for again."""
        try:
            self.frontier.received(len(data))
        except PlatformError as error:
            self.stop(error)

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
            self.stop(error)
            return
        except OSError as error:  # the archive cannot be written: no page can be stored
            self.stop(error)
            return
        except Exception as error:  # a page that our own code cannot take must not end the crawl
            self.logger.exception("page %s", task.url)
            visit = Visit(
                Fate("failed", "unexpected", f"{type(error).__name__}: {error}"), status=response.status
            )
        self._settle(task, visit)

    def _settle(self, task: Task, visit: Visit) -> None:
        if self._orphaned():
            self.stop(TerminalError("the run that started this crawl is gone", reason="orphaned"))
            return
        try:
            self.frontier.store(task, visit)
        except Exception as error:  # noqa: BLE001 - whatever it is: a result that is not stored ends the crawl
            self.stop(error)
            return
        self.report()

    def _orphaned(self) -> bool:
        return self.job.parent_pid != 0 and os.getppid() != self.job.parent_pid

    def stop(self, error: BaseException) -> None:
        """End the crawl: the platform itself fails. What is in flight stays to be done."""
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
        if response.meta["unmoved"]:
            return self._unmoved(task)
        if status == 304 and response.meta["conditional"]:
            return self._not_modified(task, response)
        if status in _REDIRECTS:
            return self._redirected(task, response)
        if status not in (200, 203):
            return Visit(of_status(status), status=status)
        answer = _answer(task.url, response)
        fault = type_fault(answer, self.job.settings.content_types, task.role)
        if fault:
            facts = {"content_type": answer.content_type[:255]}
            return Visit(Fate("excluded", "type", fault[:500]), status=status, facts=facts)
        left = unknown_coding(_values(response, "Content-Encoding"))
        if left:
            return Visit(Fate("failed", "encoding", f"content encoding {left}"), status=status)
        raw: Response = response.meta["received"]
        if unfinished(_values(raw, "Content-Encoding"), raw.body):
            return Visit(Fate("failed", "cut_short", "its compressed stream has no end", True), status=status)
        if not response.body:
            return Visit(Fate("failed", "empty"), status=status)
        return self._content(task, response, answer)

    def _redirected(self, task: Task, response: Response) -> Visit:
        location = (response.headers.get("Location") or b"").strip()
        if not location:
            return Visit(Fate("failed", "bad_redirect", "without a Location"), status=response.status)
        try:  # raw UTF-8 is read as such, other bytes stay as they are
            named = to_public(urljoin(response.url, safe_url_string(location)), self.job.dial)
            web = urlsplit(named).scheme in ("http", "https")
            target = canonical_url(named) if web else named
        except ValueError as error:
            return Visit(Fate("failed", "bad_redirect", str(error)[:500]), status=response.status)
        if task.redirects >= self.job.settings.max_redirects:
            return Visit(Fate("failed", "redirects", f"more than {task.redirects}"), status=response.status)
        facts = {"final_url": target}
        if web and not self.source.belongs(target):
            return Visit(Fate("excluded", "offsite", f"redirects to {target}"), response.status, facts)
        self.guard.check_form(to_dial(named, self.job.dial))  # not the canonical one: it has lost credentials
        link = Found(target, task.depth, task.url, task.chemicals, task.role)
        return Visit(Fate("excluded", "redirect", f"to {target}"), response.status, facts, (link,))

    def _not_modified(self, task: Task, response: Response) -> Visit:
        assert task.payload is not None
        record = read_record(self.job.data_dir, task.payload.warc_file, task.payload.offset)
        self.archive.write_revisit(_exchange(response, task.url), record, not_modified=True)
        facts = {"etag": _header(response, "ETag") or task.etag}
        modified = _header(response, "Last-Modified")
        return self._as_before(task, record, facts | ({"last_modified": modified} if modified else {}))

    def _unmoved(self, task: Task) -> Visit:
        """The page as it was on its last visit: a trusted sitemap says that it did not change."""
        assert task.payload is not None
        record = read_record(self.job.data_dir, task.payload.warc_file, task.payload.offset)
        return replace(self._as_before(task, record, {}), asked=False)

    def _as_before(self, task: Task, record: Record, facts: dict[str, Any]) -> Visit:
        self.stats.unchanged += 1
        answer = Answer(
            task.url,
            record.payload,
            clean_value(record.header("Content-Type")),
            record.all_headers("X-Robots-Tag"),
            record.all_headers("tdm-reservation"),
        )
        hints = self._hints(task, answer)
        return Visit(self._fate(task, answer, hints), 304, facts, self._links(task, answer, hints))

    def _content(self, task: Task, response: Response, answer: Answer) -> Visit:
        hints = self._hints(task, answer)
        links = self._links(task, answer, hints)
        fate = self._fate(task, answer, hints)
        facts: dict[str, Any] = {
            "final_url": task.url,
            "canonical_url": to_public(hints.canonical, self.job.dial),
            "content_type": answer.content_type[:255],
            "charset": answer.charset,
            "etag": _header(response, "ETag"),
            "last_modified": _header(response, "Last-Modified"),
        }
        if fate.state == "kept":
            facts |= self._store_payload(task, response, answer.body)
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

    def _fate(self, task: Task, answer: Answer, hints: Hints) -> Fate:
        """Pages that ask to be left out are (listings are only read for their links)."""
        out = opted_out(self.source, answer, task.role, hints, agent=self._agent)
        return out or Fate("kept")

    def _hints(self, task: Task, answer: Answer) -> Hints:
        wanted = not task.probe and task.depth < self.source.depth
        return hints_of(self.source, answer, task.role, links=wanted, agent=self._agent)

    def _links(self, task: Task, answer: Answer, hints: Hints) -> list[Found]:
        if task.probe:
            return []
        if task.role == "sitemap":
            return self._sitemap_links(task, answer.body)
        if task.depth >= self.source.depth:
            return []
        listing = task.role == "search"
        named = addresses(self.source, answer, task.role, hints, agent=self._agent)
        wanted = self._followed(named, self.job.settings.max_links_per_page, listing=listing)
        chemicals = task.chemicals if listing else ()
        return [Found(url, task.depth + 1, task.url, chemicals, role) for url, role in wanted.items()]

    def _followed(self, urls: Iterable[str], limit: int, *, listing: bool) -> dict[str, Role]:
        """The addresses that are followed and what they lead to; beyond ``limit`` they are counted only."""
        roles: dict[str, Role] = {}

        def follows(url: str) -> bool:
            followed = self.source.follows(url, listing=listing)
            if followed and len(roles) < limit:
                roles[url] = self.source.role(url)
            return followed

        self.stats.links_over_limit += max(0, len(self._chosen(urls, follows)) - limit)
        return roles

    def _chosen(self, urls: Iterable[str], wanted: Callable[[str], bool]) -> list[str]:
        """The addresses that are wanted. One on which a pattern takes too long is not; after a few nothing is."""
        chosen: list[str] = []
        slow = 0
        for url in urls:
            if slow >= _MOST_SLOW:
                self.stats.links_too_slow += 1
                continue
            try:
                if wanted(url):
                    chosen.append(url)
            except SlowPattern as error:
                slow += 1
                self.stats.links_too_slow += 1
                self.logger.warning("%s", error)
        return chosen

    def _sitemap_links(self, task: Task, body: bytes) -> list[Found]:
        try:
            is_index, entries = read_sitemap(body, task.url)
        except ValueError as error:
            raise TerminalError(str(error), reason="sitemap") from error
        changed = {to_public(entry.url, self.job.dial): entry.lastmod for entry in entries}
        if is_index:
            if task.depth >= _SITEMAP_LEVELS:
                raise TerminalError("sitemap indexes inside indexes", reason="sitemap")
            own = self._chosen(changed, self.source.belongs)
            return [Found(url, task.depth + 1, task.url, (), "sitemap") for url in own]
        wanted = self._followed(changed, MAX_SITEMAP_URLS, listing=True)
        return [Found(url, task.depth + 1, task.url, (), role, changed[url]) for url, role in wanted.items()]


_SITEMAP_LEVELS = 2
_MOST_SLOW = 20  # addresses of one page that may use up a pattern's time


def _header(response: Response, name: str) -> str:
    return clean_value((response.headers.get(name) or b"").decode("latin-1"))


def _values(response: Response, name: str) -> list[str]:
    return [clean_value(value.decode("latin-1")) for value in response.headers.getlist(name)]


def _answer(url: str, response: Response) -> Answer:
    return Answer(
        url,
        response.body,
        _header(response, "Content-Type"),
        _values(response, "X-Robots-Tag"),
        _values(response, "tdm-reservation"),
    )


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

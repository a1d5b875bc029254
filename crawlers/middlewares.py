"""Downloader middlewares: guard, pauses of hosts, patience with struggling ones, the answer as received."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest
from scrapy.http import Response

from corpus.errors import PlatformError
from crawlers.job import to_public
from crawlers.outcomes import RETRY_AFTER, Refused
from crawlers.patterns import SlowPattern
from crawlers.pauses import LONGEST_S, host_of

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 522, 524})
_HOST_WIDE = frozenset({429, 503})


class GuardMiddleware:
    """No request leaves before its URL and its host's addresses are checked."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Any) -> GuardMiddleware:
        """Scrapy's way of building the middleware."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Raise Refused for what must not be asked for."""
        task = request.meta.get("task")
        try:
            if task is not None and not self._crawler.spider.source.belongs(task.url):
                raise Refused("offsite", "not on a host of the source, or denied by it")
        except SlowPattern as error:
            raise Refused(error.reason, str(error)) from error
        await self._crawler.spider.guard.check(request.url)


class PauseMiddleware:
    """Refuses what is on a host that asked to be left alone for longer than a request waits.

    Before robots.txt, which is not asked for then either. A page that is answered
    from the archive needs no request.
    """

    def __init__(self, crawler: Any) -> None:
        self._spider = crawler.spider

    @classmethod
    def from_crawler(cls, crawler: Any) -> PauseMiddleware:
        """Scrapy's way of building the middleware."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Raise Refused while the host's pause is longer than ``retry_after_max_s``."""
        if not request.meta.get("unmoved"):
            pause_left(self._spider, request)


def pause_left(spider: Any, request: Request) -> float:
    """Seconds until the request's host may be asked. Raises Refused where they are too many to wait for."""
    address = to_public(request.url, spider.job.dial)
    left: float = spider.pauses.left(address)
    if left > spider.job.settings.retry_after_max_s:
        until = datetime.now(UTC) + timedelta(seconds=left)
        shown = spider.stats.paused[host_of(address)] = f"{until:%Y-%m-%d %H:%M} UTC"
        raise Refused(RETRY_AFTER, f"the host is not to be asked before {shown}", transient=True)
    return left


class ArchivedMiddleware:
    """Answers from the archive where a trusted sitemap says that the page has not moved.

    Sits behind robots.txt and reservations, which hold for such pages too.
    """

    def process_request(self, request: Request) -> Response | None:
        """An answer like "not modified", without the network."""
        return Response(request.url, status=304) if request.meta.get("unmoved") else None


class PatienceMiddleware:
    """Repeats transient failures, waits as long as Retry-After says, leaves a failing host alone.

    A wait after 429 or 503, and any that a host asks for, holds for the whole host;
    what it asks for also in later runs. After ``breaker`` errors in
    a row no more requests go to the host in this crawl.
    """

    def __init__(self, crawler: Any) -> None:
        self._spider = crawler.spider
        settings = self._spider.job.settings
        self._retries: int = settings.retries
        self._breaker: int = settings.breaker
        self._backoff: float = settings.backoff_s
        self._errors: Counter[str] = Counter()

    @classmethod
    def from_crawler(cls, crawler: Any) -> PatienceMiddleware:
        """Scrapy's way of building the middleware."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Wait for the host; raise Refused where it has failed too often."""
        host = urlsplit(request.url).netloc
        if self._errors[host] >= self._breaker:
            raise Refused("host_down", f"{self._errors[host]} errors in a row", transient=True)
        while (wait := self._wait_left(request)) > 0:  # the host may ask for more while we wait
            await asyncio.sleep(wait)

    def _wait_left(self, request: Request) -> float:
        own: float = request.meta.get("not_before", 0.0) - time.monotonic()
        return max(own, pause_left(self._spider, request))

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Repeat the request after a transient status."""
        host = urlsplit(request.url).netloc
        if response.status not in _TRANSIENT:
            self._errors[host] = 0
            return response
        self._errors[host] += 1
        wanted = retry_after((response.headers.get("Retry-After") or b"").decode("latin-1"))
        wait = (
            self._backoff * 2 ** request.meta.get("attempt", 0) if wanted is None else min(wanted, LONGEST_S)
        )
        self._pause(request, response.status, wait, asked=wanted is not None)
        return self._again(request, wait) or response

    def _pause(self, request: Request, status: int, wait: float, *, asked: bool) -> None:
        """Leave the host alone; raises Refused where that is longer than we wait."""
        address = to_public(request.url, self._spider.job.dial)
        if asked:
            try:
                self._spider.pauses.asked(address, wait)
            except PlatformError as error:
                self._spider.stop(error)
        elif status in _HOST_WIDE:
            self._spider.pauses.wait(address, wait)
        pause_left(self._spider, request)

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Repeat the request after a failure of the connection."""
        if isinstance(exception, IgnoreRequest | DownloadCancelledError) or not isinstance(
            exception, Exception
        ):
            return None
        self._errors[urlsplit(request.url).netloc] += 1
        return self._again(request, self._backoff * 2 ** request.meta.get("attempt", 0))

    def _again(self, request: Request, wait: float) -> Request | None:
        attempt = request.meta.get("attempt", 0) + 1
        if attempt > self._retries or self._errors[urlsplit(request.url).netloc] >= self._breaker:
            return None
        again = request.copy()
        again.meta.update(attempt=attempt, not_before=time.monotonic() + wait)
        return again


class AsReceivedMiddleware:
    """Keeps the answer as it came, before decompression, for the archive; sits next to the network."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Remember the raw answer and the moment."""
        request.meta["received"] = response.copy()  # decompression changes the headers in place
        request.meta["received_at"] = datetime.now(UTC)
        return response


def retry_after(value: str) -> float | None:
    """Seconds of a Retry-After header: a number or an HTTP date; None where it says nothing."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None

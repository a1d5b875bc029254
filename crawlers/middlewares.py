"""Downloader middlewares: guard, patience with struggling hosts, the answer as received."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest
from scrapy.http import Response

from crawlers.outcomes import Refused
from crawlers.patterns import SlowPattern

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


class ArchivedMiddleware:
    """Answers from the archive where a trusted sitemap says that the page has not moved.

    Sits behind robots.txt and reservations, which hold for such pages too.
    """

    def process_request(self, request: Request) -> Response | None:
        """An answer like "not modified", without the network."""
        return Response(request.url, status=304) if request.meta.get("unmoved") else None


class PatienceMiddleware:
    """Repeats transient failures, waits as long as Retry-After says, leaves a failing host alone.

    A wait after 429 or 503 holds for the whole host. After ``breaker`` errors in
    a row no more requests go to the host in this crawl.
    """

    def __init__(self, crawler: Any) -> None:
        settings = crawler.spider.job.settings
        self._retries: int = settings.retries
        self._breaker: int = settings.breaker
        self._longest: float = settings.retry_after_max_s
        self._backoff: float = settings.backoff_s
        self._not_before: dict[str, float] = {}
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
        wait = max(self._not_before.get(host, 0.0), request.meta.get("not_before", 0.0)) - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Repeat the request after a transient status."""
        host = urlsplit(request.url).netloc
        if response.status not in _TRANSIENT:
            self._errors[host] = 0
            return response
        self._errors[host] += 1
        wait = self._wait(request, response)
        if wait > self._longest:
            raise Refused("retry_after", f"asked to come back after {wait:.0f} s", transient=True)
        if response.status in _HOST_WIDE:
            self._not_before[host] = max(self._not_before.get(host, 0.0), time.monotonic() + wait)
        return self._again(request, wait) or response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Repeat the request after a failure of the connection."""
        if isinstance(exception, IgnoreRequest | DownloadCancelledError) or not isinstance(
            exception, Exception
        ):
            return None
        self._errors[urlsplit(request.url).netloc] += 1
        return self._again(request, self._backoff * 2 ** request.meta.get("attempt", 0))

    def _wait(self, request: Request, response: Response) -> float:
        wanted = retry_after((response.headers.get("Retry-After") or b"").decode("latin-1"))
        backoff: float = self._backoff * 2 ** request.meta.get("attempt", 0)
        return backoff if wanted is None else wanted

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

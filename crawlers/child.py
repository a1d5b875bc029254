"""The crawl's own process: ``python -m crawlers.child JOB.json``.

A reactor cannot be started twice, so every crawl has an interpreter of its own.
Progress goes to standard error, the result into the job's stats file. SIGTERM
or SIGINT stop the crawl: what is in flight is finished and stored, the rest
waits in the catalogue.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from corpus.archive import ArchiveWriter, mend_archives
from corpus.catalogue import Catalogue
from corpus.errors import DiskError, PlatformError, TerminalError, disk_error
from corpus.urls import canonical_url
from crawlers.frontier import Found, Frontier
from crawlers.guards import Guard, PinnedResolver, limit_headers
from crawlers.job import PASSWORD_VARIABLE, CrawlStats, Job, join_password
from crawlers.pauses import Pauses
from crawlers.sources import Source

EXIT_FAILED = 3
_PARENT_POLL_S = 0.5
_ORPHAN_GRACE_S = 3.0


def scrapy_settings(job: Job) -> dict[str, Any]:
    """Scrapy's settings for a job: polite, bounded, nothing but http and https."""
    own = job.settings
    throttle = job.source.autothrottle
    return {
        "BOT_NAME": "hchemsafety",
        "USER_AGENT": own.agent(),
        "HCHEM_ROBOTS_AGENT": own.agent_name(),
        "SCHEDULER": "crawlers.spider.CatalogueScheduler",
        "TWISTED_DNS_RESOLVER": "crawlers.guards.PinnedResolver",
        "DOWNLOAD_HANDLERS": {"data": None, "file": None, "ftp": None, "s3": None},
        "DOWNLOADER_MIDDLEWARES": {
            "crawlers.middlewares.GuardMiddleware": 50,
            "crawlers.middlewares.PauseMiddleware": 60,
            "crawlers.robots.RobotsMiddleware": 100,
            "crawlers.tdm.TdmMiddleware": 150,
            "crawlers.middlewares.ArchivedMiddleware": 160,
            "crawlers.middlewares.PatienceMiddleware": 200,
            "crawlers.middlewares.AsReceivedMiddleware": 840,
            "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
            "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
            "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
            "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
            "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
            "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
            "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": None,
        },
        "SPIDER_MIDDLEWARES": {
            "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
            "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        },
        "EXTENSIONS": {
            "scrapy.extensions.telnet.TelnetConsole": None,
            "scrapy.extensions.feedexport.FeedExporter": None,
            "scrapy.extensions.remote_control.RemoteControl": None,
            "scrapy.extensions.spiderstate.SpiderState": None,
        },
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "HTTPERROR_ALLOW_ALL": True,
        "COOKIES_ENABLED": False,
        "DEFAULT_REQUEST_HEADERS": {
            "Accept": "text/html,application/xhtml+xml,application/pdf,application/xml;q=0.9,text/*;q=0.8,*/*;q=0.1",
            "Accept-Language": ",".join(job.source.languages),
            "Accept-Encoding": "gzip, deflate",
        },
        "DOWNLOAD_MAXSIZE": own.max_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_TIMEOUT": own.timeout_s,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        **(
            {"DOWNLOADER_CLIENTCONTEXTFACTORY": "crawlers.tls.ContextFactory"}
            if job.source.tls_exceptions
            else {}
        ),
        "DOWNLOAD_DELAY": job.source.delay_s,
        "CONCURRENT_REQUESTS": own.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": job.source.per_host,
        "AUTOTHROTTLE_ENABLED": throttle,
        "AUTOTHROTTLE_START_DELAY": job.source.delay_s,
        "AUTOTHROTTLE_TARGET_CONCURRENCY": 1.0,
        "CLOSESPIDER_TIMEOUT": own.crawl_timeout_s,
        "LOG_LEVEL": "WARNING",
        "STATS_DUMP": False,
        "CONCURRENT_ITEMS": 1,  # no items are made; each would cost a task per answer
        "WARN_ON_GENERATOR_RETURN_VALUE": False,  # reads the callbacks' source for every request
        "URLLENGTH_LIMIT": 0,
    }


def run(job: Job) -> CrawlStats:
    """Crawl as the job says, in this process (which can do so once). Raises PlatformError."""
    from scrapy.crawler import AsyncCrawlerProcess

    from crawlers.spider import PageSpider

    began = time.monotonic()
    url = join_password(job.catalogue_url, os.environ.pop(PASSWORD_VARIABLE, ""))
    catalogue = Catalogue.open(url, migrate=False)
    frontier = Frontier(
        catalogue,
        job.source,
        job.run_id,
        lease_s=job.settings.lease_s,
        licences=job.licences,
        restricted=job.restricted,
        since=job.since,
    )
    frontier.open(
        [Found(_canonical(address), 0, "", tuple(chemicals), role) for address, role, chemicals in job.seeds]
    )
    if frontier.resumed:
        mend_archives(job.data_dir, f"{job.source.name}-", frontier.began)
    archive = ArchiveWriter(
        job.data_dir,
        f"{job.source.name}-{job.run_id}",
        {
            "robots": "classic",
            "http-header-user-agent": job.settings.agent(),
            "operator": job.settings.contact,
            "description": _about(job.source),
        },
        job.settings.archive_roll_bytes,
    )
    guard = Guard(_private(job), max_url_length=job.settings.max_url_length)
    PinnedResolver.guard = guard
    limit_headers()
    pauses = Pauses(catalogue)
    process = AsyncCrawlerProcess(scrapy_settings(job))
    crawler = process.create_crawler(PageSpider)
    crawling = process.crawl(crawler, job=job, frontier=frontier, archive=archive, guard=guard, pauses=pauses)
    try:
        process.start()
    finally:
        archive.close()
        frontier.release()
    if crawling.done() and not crawling.cancelled() and crawling.exception() is not None:
        raise PlatformError(f"the crawler could not run: {crawling.exception()}") from crawling.exception()
    return _result(crawler, frontier, began)


def _result(crawler: Any, frontier: Frontier, began: float) -> CrawlStats:
    spider = crawler.spider
    stats: CrawlStats = spider.stats
    spider.report(last=True)
    reason = str(crawler.stats.get_value("finish_reason") or "crashed")
    stats.seconds = round(time.monotonic() - began, 3)
    if isinstance(spider.fatal, PlatformError | OSError):
        raise spider.fatal
    if spider.fatal is not None:
        raise PlatformError(
            f"{type(spider.fatal).__name__}: {spider.fatal}", reason="unexpected"
        ) from spider.fatal
    stats.finished = reason == "finished"
    stats.stopped = "" if stats.finished else reason
    stats.outcomes = dict(sorted((frontier.finish() if stats.finished else frontier.outcomes()).items()))
    stats.gone = stats.total("gone")
    stats.bytes_received = frontier.bytes_received
    return stats


def _about(source: Source) -> str:
    """What the archive's first record says of its pages."""
    unchecked = (
        f"; certificates not checked: {', '.join(source.tls_exceptions)}" if source.tls_exceptions else ""
    )
    return f"{source.title}; licence: {source.licence}{unchecked}"


def _canonical(address: str) -> str:
    """Seeds are asked for under the one spelling that links get too."""
    try:
        return canonical_url(address)
    except ValueError as error:
        raise TerminalError(f"start address {address!r}: {error}", reason="settings") from error


def _private(job: Job) -> list[str]:
    """Hosts that may be private: those the source names and those that stand in for its base."""
    return [*job.source.private_hosts, *(urlsplit(real).netloc for real in job.dial.values())]


def _end_with(parent: int) -> None:
    """End this process after its parent, also where no page comes that the spider would notice it at."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    time.sleep(_ORPHAN_GRACE_S)  # for the spider's own stop, which is cleaner
    print("crawl failed: the run that started this crawl is gone", file=sys.stderr, flush=True)
    os._exit(EXIT_FAILED)


def main(arguments: list[str]) -> int:
    """Entry point: 0 with a stats file, 3 with the error on standard error and in the stats file."""
    try:
        job = Job.model_validate_json(Path(arguments[0]).read_text(encoding="utf-8"))
    except (IndexError, OSError, ValidationError) as error:
        print(f"crawl job cannot be read: {error}", file=sys.stderr)
        return EXIT_FAILED
    if job.parent_pid:
        Thread(target=_end_with, args=(job.parent_pid,), daemon=True).start()
    try:
        stats, code = run(job), 0
    except (PlatformError, OSError) as error:
        told = (disk_error(error) if isinstance(error, OSError) else None) or error
        print(f"crawl failed: {told}", file=sys.stderr)
        stats, code = CrawlStats(error=str(told), disk=isinstance(told, DiskError)), EXIT_FAILED
    job.stats_path.write_text(stats.model_dump_json(), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

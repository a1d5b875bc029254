"""Crawls of loopback sites in the real child process, and their rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Page
from crawlers.job import CrawlStats, Job
from crawlers.runner import run_crawl
from crawlers.settings import CrawlSettings
from crawlers.sources import Source
from tests.servers.site import Site

QUICK = {
    "max_bytes": 200_000,
    "timeout_s": 30.0,
    "retries": 1,
    "backoff_s": 0.05,
    "retry_after_max_s": 3.0,
    "breaker": 1000,
    "concurrency": 16,
}


def source(site: Site, **changes: Any) -> Source:
    """A source on the site that follows everything on it."""
    fields: dict[str, Any] = {
        "name": "test",
        "title": "Test",
        "kind": "site",
        "languages": ["en"],
        "licence": "made up",
        "base": site.base,
        "private_hosts": [site.netloc],
        "start": ["/"],
        "listing": ["^/$"],
        "follow_listing": [".*"],
        "follow_content": [".*"],
        "delay_s": 0.0,
        "per_host": 16,
        "autothrottle": False,
        "depth": 3,
        "tombstone_after": 1,
    }
    return Source.model_validate(fields | changes)


@dataclass
class Ground:
    """A data directory with a catalogue, and crawls into it."""

    folder: Path
    catalogue: Catalogue
    url: str

    @classmethod
    def at(cls, folder: Path) -> Ground:
        """A fresh one."""
        url = f"sqlite:///{folder}/catalogue.db"
        return cls(folder, Catalogue.open(url), url)

    def job(self, origin: Source, run_id: str = "run-1", **changes: Any) -> Job:
        """The job of a crawl."""
        settings = CrawlSettings.model_validate(QUICK | changes.pop("settings", {}))
        seeds = [
            (origin.absolute(address), str(origin.role(origin.absolute(address))), [])
            for address in origin.start
        ]
        fields: dict[str, Any] = {
            "source": origin,
            "settings": settings,
            "run_id": run_id,
            "catalogue_url": self.url,
            "data_dir": self.folder,
            "stats_path": self.folder / "stats.json",
            "parent_pid": os.getpid(),
            "seeds": seeds + [(origin.absolute(address), "sitemap", []) for address in origin.sitemaps],
        }
        return Job.model_validate(fields | changes)

    def crawl(self, origin: Source, run_id: str = "run-1", **changes: Any) -> CrawlStats:
        """Crawl in a child process."""
        return run_crawl(self.job(origin, run_id, **changes))

    def pages(self) -> dict[str, Page]:
        """Rows by path and query (or whole URL where it is another site's)."""
        with self.catalogue.reading() as session:
            rows = list(session.scalars(select(Page)))
        return {"/" + row.identity.split("/", 3)[-1]: row for row in rows}

    def fates(self) -> dict[str, tuple[str, str]]:
        """State and reason by path."""
        return {path: (row.state, row.reason) for path, row in self.pages().items()}

"""The job file of a crawl: what the child process is told, and what it answers.

The catalogue's password is not in the file: it travels in the environment.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import make_url

from crawlers.settings import CrawlSettings
from crawlers.sources import Source

PASSWORD_VARIABLE = "HCHEM_CRAWL_CHILD_PASSWORD"  # noqa: S105 - a variable's name
PROGRESS_MARK = "@progress "


class Job(BaseModel):
    """One crawl of one source."""

    model_config = ConfigDict(extra="forbid")

    source: Source
    settings: CrawlSettings
    run_id: str
    catalogue_url: str = Field(description="Without the password")
    data_dir: Path
    stats_path: Path
    parent_pid: int = Field(description="The crawl stops when this process is gone; 0: never")
    seeds: list[tuple[str, str, list[str]]] = Field(
        default_factory=list, description="(URL, role, chemical keys) that the crawl begins with"
    )
    dial: dict[str, str] = Field(
        default_factory=dict, description="Base of public addresses -> base that is really connected to"
    )
    licences: dict[str, str] = Field(
        default_factory=dict, description="Identity -> licence, where it is per page"
    )
    since: datetime | None = Field(
        default=None, description="Pages that a sitemap says are unchanged since then are not asked for again"
    )
    restricted: bool = Field(default=False, description="Only some chemicals: nothing is probed or retired")


class CrawlStats(BaseModel):
    """What a crawl came to. ``outcomes`` counts all pages of the round by state and reason,
    ``bytes_received`` the bytes of all its parts.
    """

    finished: bool = False
    stopped: str = ""
    requests: int = 0
    resumed: bool = False
    outcomes: dict[str, int] = Field(default_factory=dict)
    unchanged: int = 0
    fetched: int = 0
    gone: int = 0
    links_over_limit: int = 0
    links_too_slow: int = 0
    bytes_received: int = 0
    paused: dict[str, str] = Field(
        default_factory=dict, description="Host -> moment before which it is not to be asked (Retry-After)"
    )
    seconds: float = 0.0
    error: str = ""
    disk: bool = Field(default=False, description="Whether the error is one of the disk: full, read-only")

    def total(self, *states: str) -> int:
        """Pages of the round that ended in one of the states."""
        return sum(count for key, count in self.outcomes.items() if key.split(":")[0] in states)


def split_password(url: str) -> tuple[str, str]:
    """A database URL without its password, and the password."""
    parsed = make_url(url)
    if not parsed.password:
        return url, ""
    bare = parsed._replace(password=None)  # URL.set() takes None for "leave it"
    return bare.render_as_string(hide_password=False), str(parsed.password)


def join_password(url: str, password: str) -> str:
    """The opposite of ``split_password``."""
    return make_url(url).set(password=password).render_as_string(hide_password=False) if password else url


def to_dial(url: str, dial: dict[str, str]) -> str:
    """The address that is connected to for a public address."""
    return _swap(url, dial)


def to_public(url: str, dial: dict[str, str]) -> str:
    """The public address of one that was connected to."""
    return _swap(url, {real: public for public, real in dial.items()})


def _swap(url: str, bases: dict[str, str]) -> str:
    for old, new in bases.items():
        if url == old or url.startswith((old + "/", old + "?", old + "#")):
            return new + url[len(old) :]
    return url

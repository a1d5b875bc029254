"""Settings of the crawlers: who we say we are, how gently we ask, what we never take."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from corpus.archive import ROLL_BYTES

CONTENT_TYPES = (
    "text/html",
    "application/xhtml+xml",
    "text/plain",
    "text/markdown",
    "text/x-markdown",
    "application/xml",
    "text/xml",
    "application/pdf",
    "application/json",
)
"""What a page may be: HTML, XHTML, plain text, Markdown, XML, PDF; JSON for documented APIs."""


_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")


class CrawlSettings(BaseModel):
    """Section ``[crawl]``. Every time is a finite number of seconds."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    enabled: tuple[str, ...] | None = Field(
        default=None,
        description="Names of the sources to crawl; unset: those that are enabled in the sources file.",
    )
    sources_file: Path | None = Field(
        default=None, description="A TOML file of sources read after the shipped one; same names replace."
    )
    sample_dir: Path | None = Field(
        default=None, description="Folder of the sample site; unset: `samples/` of the repository."
    )
    chemical_lists: tuple[Path, ...] = Field(
        default=(),
        description="CSV or JSON lists of chemicals loaded at every acquire (name, cas, aliases, name_zh).",
    )
    user_agent: str = Field(
        default="HChemSafety/0.1 (chemical safety knowledge base; contact: {contact})",
        description="User agent; `{contact}` is replaced by the contact address.",
    )
    contact: str = Field(
        default="", description="Address or URL of the operator; required for sources beyond loopback."
    )
    max_bytes: int = Field(
        default=10 * 1024 * 1024,
        gt=0,
        description="Largest response in bytes, before and after decompression.",
    )
    timeout_s: float = Field(default=30.0, gt=0, description="Longest time for one response, body included.")
    crawl_timeout_s: float = Field(
        default=6 * 3600.0,
        gt=0,
        description="Longest time for the crawl of one source; the rest waits for the next run.",
    )
    max_redirects: int = Field(default=5, ge=0, description="Longest chain of redirects.")
    max_url_length: int = Field(default=2000, ge=100, description="Longest URL in characters.")
    max_links_per_page: int = Field(
        default=2000, ge=1, description="Links recorded from one page; the rest is counted only."
    )
    retries: int = Field(default=2, ge=0, description="Repeated requests after a transient error.")
    retry_after_max_s: float = Field(
        default=120.0,
        ge=0,
        description="Longest `Retry-After` that is waited for; above it the host's pages fail until then.",
    )
    backoff_s: float = Field(
        default=1.0, ge=0, description="Wait before the first repeat; doubles with each."
    )
    breaker: int = Field(
        default=10, ge=1, description="Errors in a row after which a host is left alone for this run."
    )
    concurrency: int = Field(default=8, ge=1, le=64, description="Requests at once, all hosts together.")
    content_types: tuple[str, ...] = Field(default=CONTENT_TYPES, description="Media types that are taken.")
    lease_s: float = Field(
        default=300.0, ge=10, description="Age after which a dead crawl's claims come back."
    )
    stop_grace_s: float = Field(
        default=3.0, ge=0, description="Time for a clean stop before the crawl is killed."
    )
    archive_roll_bytes: int = Field(
        default=ROLL_BYTES, ge=1_000_000, description="Size at which a new WARC file is begun."
    )

    @field_validator("user_agent")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.strip() or not _goes_into_a_header(value):
            raise ValueError("the user agent is one line of ASCII text")
        return value

    @field_validator("contact")
    @classmethod
    def _contact(cls, value: str) -> str:
        value = value.strip()
        if not _goes_into_a_header(value):
            raise ValueError("the contact goes into the user agent and is one line of ASCII text")
        return value

    @field_validator("content_types")
    @classmethod
    def _media_types(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if not values:
            raise ValueError("no content type is left, so that no page would be taken; leave it out for all")
        values = tuple(value.strip().lower() for value in values)  # as responses are compared
        wrong = [value for value in values if not _MEDIA_TYPE.fullmatch(value)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no media type such as text/html")
        return values

    def agent(self) -> str:
        """The user agent with the contact address filled in."""
        return self.user_agent.replace("{contact}", self.contact or "local use only")

    def agent_name(self) -> str:
        """The product name in the user agent: what robots.txt and robots tags call us."""
        return self.agent().split("/")[0].split(" ")[0]


def _goes_into_a_header(value: str) -> bool:
    return value.isascii() and value.isprintable()

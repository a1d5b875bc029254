"""Opt-outs from text and data mining: the TDM Reservation Protocol (TDMRep).

W3C Community Group final report of 10 May 2024. Three places are read: the file
``/.well-known/tdmrep.json`` of a host, the header ``tdm-reservation`` and the meta
element of that name; header and meta go before the file. A page that the file
reserves is not asked for at all, so that a header which would free it is not seen.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from protego import Protego
from scrapy import Request

from crawlers.headers import reservation
from crawlers.outcomes import RETRY_AFTER, Refused
from crawlers.robots import RobotsMiddleware, fetch_host_file

WELL_KNOWN = "/.well-known/tdmrep.json"
_MAX_BYTES = 512 * 1024
_MAX_RULES = 2000


@dataclass(frozen=True)
class Reservations:
    """The rules of a host's file in their order: a matcher and whether rights are reserved."""

    rules: tuple[tuple[Protego, bool], ...] = ()

    def reserved(self, url: str) -> bool | None:
        """What the first rule that matches the URL says; None where none does."""
        for matcher, value in self.rules:
            if not matcher.can_fetch(url, "tdm"):
                return value
        return None


def read_reservations(status: int, body: bytes) -> Reservations:
    """The rules of an answer. No file, an error or what cannot be read reserves nothing."""
    if not 200 <= status < 300 or len(body) > _MAX_BYTES:
        return Reservations()
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError):
        return Reservations()
    if isinstance(entries, dict):  # the brackets are mandatory and often forgotten
        entries = [entries]
    if not isinstance(entries, list):
        return Reservations()
    found = [_rule(entry) for entry in entries[:_MAX_RULES] if isinstance(entry, dict)]
    return Reservations(tuple(rule for rule in found if rule is not None))


def _rule(entry: dict[str, Any]) -> tuple[Protego, bool] | None:
    """Locations are written like paths in robots.txt, so its parser matches them."""
    location, value = entry.get("location"), reservation([str(entry.get("tdm-reservation", ""))])
    if not isinstance(location, str) or not location.startswith(("/", "*")) or value is None:
        return None
    if not location.isprintable() or "#" in location:
        return None
    return Protego.parse(f"User-agent: *\nDisallow: {location}\n"), value


class TdmMiddleware:
    """Downloader middleware: reads each host's file once and refuses what it reserves."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler
        self._agent: str = crawler.settings["HCHEM_ROBOTS_AGENT"]
        self._hosts: dict[str, asyncio.Future[Reservations]] = {}

    @classmethod
    def from_crawler(cls, crawler: Any) -> TdmMiddleware:
        """Scrapy's way of building the middleware."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Raise Refused for a content page whose mining is reserved."""
        task = request.meta.get("task")
        if task is None or task.role != "content" or not self._crawler.spider.source.obey_tdm:
            return
        reservations = await self._reservations(request.url)
        if reservations.reserved(request.url):
            raise Refused("tdm_reserved", f"{WELL_KNOWN} reserves it")

    async def _reservations(self, url: str) -> Reservations:
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._hosts:
            coming = self._hosts[site] = asyncio.get_running_loop().create_future()
            found = await self._fetch(site + WELL_KNOWN)
            if found is None:
                del self._hosts[site]
            coming.set_result(found or Reservations())
            return found or Reservations()
        return await self._hosts[site]

    async def _fetch(self, address: str) -> Reservations | None:
        """The host's reservations; None where it asked to be left alone for now (as for the page itself)."""
        robots = self._crawler.get_downloader_middleware(RobotsMiddleware)
        try:
            if robots is not None and not (await robots.rules(address)).allowed(address, self._agent):
                return Reservations()
            return read_reservations(*await fetch_host_file(self._crawler, address))
        except Refused as error:
            return None if error.reason == RETRY_AFTER else Reservations()
        except Exception:  # noqa: BLE001 - an opt-out that cannot be had is none; headers still count
            return Reservations()

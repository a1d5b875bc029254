"""Hosts that asked to be left alone for a while (``Retry-After``, RFC 9110, 10.2.3).

What a host asked for holds for all that is asked of it, also after a crash, in
the next run and for another source on the same host: it is in the catalogue.
Within a process waits are measured on the monotonic clock.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from sqlalchemy import delete, select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import HostPause, now

LONGEST_S = 7 * 86_400.0  # a host that says more is asked again after this


class Pauses:
    """Until when hosts (with their ports) are left alone, by their public addresses."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._until: dict[str, float] = {}
        moment, clock = now(), time.monotonic()
        with catalogue.writing() as session:
            session.execute(delete(HostPause).where(HostPause.until <= moment))
            for row in session.scalars(select(HostPause)):
                self._until[row.host] = clock + (row.until - moment).total_seconds()

    def left(self, url: str) -> float:
        """Seconds until the URL's host may be asked; 0 where it may be asked now."""
        return max(0.0, self._until.get(host_of(url), 0.0) - time.monotonic())

    def wait(self, url: str, seconds: float) -> None:
        """Leave the URL's host alone for so long, in this process."""
        host = host_of(url)
        self._until[host] = max(self._until.get(host, 0.0), time.monotonic() + seconds)

    def asked(self, url: str, seconds: float) -> None:
        """The URL's host itself asked for the wait: also later runs keep to it. A shorter wait changes nothing.

        Raises TransientError or TerminalError where the catalogue cannot be written.
        """
        seconds = min(seconds, LONGEST_S)
        self.wait(url, seconds)
        until = now() + timedelta(seconds=seconds)
        with self._catalogue.writing() as session:
            row = session.get(HostPause, host_of(url))
            if row is None:
                session.add(HostPause(host=host_of(url), until=until))
            else:
                row.until = max(row.until, until)


def paused(catalogue: Catalogue, url: str) -> datetime | None:
    """Until when the URL's host is left alone; None where it may be asked now. Changes nothing."""
    with catalogue.reading() as session:
        row = session.get(HostPause, host_of(url))
    return row.until if row is not None and row.until > now() else None


def host_of(url: str) -> str:
    """Host and port as the URL writes them."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()[:255]

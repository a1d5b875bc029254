"""Leases: one writing run at a time, and a dead one never blocks the next."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psutil

from corpus.catalogue.database import Catalogue
from corpus.catalogue.tables import Lease, now
from corpus.errors import CatalogueBusyError, PlatformError


def holder_name() -> str:
    """Names this process: host, process id, start time, and a random part."""
    started = int(psutil.Process().create_time())
    return f"{socket.gethostname()}|{os.getpid()}|{started}|{uuid.uuid4().hex[:8]}"


def is_dead(holder: str) -> bool:
    """True where the holder was a process of this host that no longer runs."""
    host, pid, started, *_ = [*holder.split("|"), "", "", ""]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        return int(psutil.Process(int(pid)).create_time()) != int(started)
    except (psutil.NoSuchProcess, ValueError):
        return True


def take(catalogue: Catalogue, resource: str, holder: str, seconds: float) -> None:
    """Take or renew a lease. Raises CatalogueBusyError naming who holds it until when."""
    with catalogue.writing() as session:
        row = session.get(Lease, resource, with_for_update=True)
        if row is not None and row.holder != holder and row.expires_at > now() and not is_dead(row.holder):
            host, pid, *_ = row.holder.split("|")
            raise CatalogueBusyError(
                f"another run holds the catalogue (process {pid} on {host}, until "
                f"{row.expires_at:%H:%M:%S} UTC unless renewed); wait for it or use --wait",
                reason="busy",
            )
        session.merge(Lease(resource=resource, holder=holder, expires_at=now() + timedelta(seconds=seconds)))


def release(catalogue: Catalogue, resource: str, holder: str) -> None:
    """Give the lease back; somebody else's is left alone."""
    with catalogue.writing() as session:
        row = session.get(Lease, resource)
        if row is not None and row.holder == holder:
            session.delete(row)


@contextmanager
def held(catalogue: Catalogue, resource: str, *, seconds: float = 120.0) -> Iterator[str]:
    """Hold a lease for a block, renewed by a thread; yields the holder's name."""
    holder = holder_name()
    take(catalogue, resource, holder, seconds)
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(seconds / 4):
            try:
                take(catalogue, resource, holder, seconds)
            except PlatformError:
                continue  # a busy database: the next beat tries again, long before expiry

    thread = threading.Thread(target=renew, name=f"lease-{resource}", daemon=True)
    thread.start()
    try:
        yield holder
    finally:
        stop.set()
        thread.join(timeout=5)
        release(catalogue, resource, holder)

"""Leases: one writing run at a time, and a dead one never blocks the next."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import psutil
from sqlalchemy import DateTime, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from corpus.catalogue.database import Catalogue
from corpus.catalogue.tables import Lease, now
from corpus.errors import CatalogueBusyError, PlatformError


def holder_name() -> str:
    """Names this process: host, process id, start, and a random part."""
    return f"{socket.gethostname()}|{os.getpid()}|{started(os.getpid())[0]}|{uuid.uuid4().hex[:8]}"


def is_dead(holder: str) -> bool:
    """True where the holder was a process of this host that no longer runs."""
    host, pid, start, *_ = [*holder.split("|"), "", "", ""]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return start not in started(int(pid))


def started(pid: int) -> tuple[str, ...]:
    """What tells a process from a later one of the same id; empty where none runs (a zombie does not).

    Linux counts a start from the boot: unlike the time of the start it stays when the
    clock is set. That time is the other name, which processes of older versions have.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ()
        at = str(int(process.create_time()))
        if not _PROC.is_dir():
            return (at,)
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (f"{_boot()[:8]}.{fields[19]}", at)
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return ()


_PROC = Path("/proc")


@cache
def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # a sandbox that shows no boot: the count since it tells processes apart all the same
        return ""


def moment(session: Session) -> datetime:
    """The present moment by the clock that all who share the catalogue have: the server's, where there is one."""
    if session.get_bind().dialect.name != "postgresql":
        return now()
    return session.scalars(select(func.clock_timestamp(type_=DateTime(timezone=True)))).one()


def take(catalogue: Catalogue, resource: str, holder: str, seconds: float) -> None:
    """Take or renew a lease. Raises CatalogueBusyError naming who holds it until when."""
    try:
        _take(catalogue, resource, holder, seconds)
    except IntegrityError:  # nobody held it, and another took it in the same moment
        _take(catalogue, resource, holder, seconds)


def _holds(row: Lease, present: datetime) -> bool:
    """Whether a lease is in force: a process of this host is seen to live, of others only the time tells."""
    if is_dead(row.holder):
        return False
    host, pid, *_ = row.holder.split("|")
    living = host == socket.gethostname() and pid != str(os.getpid())  # however the clock was set meanwhile
    return living or row.expires_at > present


def _take(catalogue: Catalogue, resource: str, holder: str, seconds: float) -> None:
    with catalogue.writing() as session:
        row = session.get(Lease, resource, with_for_update=True)
        present = moment(session)
        if row is not None and row.holder != holder and _holds(row, present):
            host, pid, *_ = row.holder.split("|")
            raise CatalogueBusyError(
                f"another run holds the catalogue (process {pid} on {host}, until "
                f"{row.expires_at:%H:%M:%S} UTC unless renewed); wait for it or use --wait",
                reason="busy",
            )
        session.merge(
            Lease(resource=resource, holder=holder, expires_at=present + timedelta(seconds=seconds))
        )


def living(catalogue: Catalogue, prefix: str) -> dict[str, str]:
    """Holders of the leases whose resource begins so and that are in force, by resource."""
    with catalogue.reading() as session:
        rows = session.scalars(select(Lease).where(Lease.resource.startswith(prefix, autoescape=True))).all()
        present = moment(session) if rows else now()
    return {row.resource: row.holder for row in rows if _holds(row, present)}


def forget_dead(catalogue: Catalogue, prefix: str) -> None:
    """Remove the leases whose resource begins so and that are no longer in force."""
    with catalogue.reading() as session:
        known = set(
            session.scalars(select(Lease.resource).where(Lease.resource.startswith(prefix, autoescape=True)))
        )
    gone = known - set(living(catalogue, prefix))
    if gone:
        with catalogue.writing() as session:
            session.execute(delete(Lease).where(Lease.resource.in_(sorted(gone))))


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
        with suppress(
            PlatformError
        ):  # a full disk, a database that is away: a dead holder's lease is free anyway
            release(catalogue, resource, holder)

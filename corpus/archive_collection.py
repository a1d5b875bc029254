"""Removing what nothing refers to from the page archive, so that catalogue and archive agree at every moment.

A file that holds too much of no use is rewritten: what stays is copied byte for byte into a
new file, the pages are pointed there in one transaction, then the old file is removed.
Killed anywhere in between, both files are there and the pages point at one of them; the
next collection knows records by their WARC-Record-ID and removes the copies.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed
from warcio.warcwriter import WARCWriter

from corpus.archive import FOLDER, Location, locked, read_record, sync_folder, whole_members
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Page
from corpus.errors import PlatformError, TerminalError

PARTIAL = ".partial"
_BEFORE = 2  # contents kept of a page in a version: the one in force and, since curation follows later, the one before
_NUMBERED = re.compile(r"(?P<name>.*)-(?P<number>\d{5})\.warc\.gz")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Stored:
    """A record of a file: where it stands, how long it is, what it is and belongs to."""

    place: Location
    length: int
    type: str
    url: str
    date: datetime | None
    id: str
    answers: str = ""  # of a request: the record that it belongs to
    refers_to: tuple[str, str] = ("", "")  # of a revisit: address and date of what it repeats


@dataclass
class FilePlan:
    """What becomes of a file: the records that stay (none: it is removed) and the bytes that go."""

    file: str
    keep: list[Stored]
    bytes: int
    waste: int


@dataclass
class ArchivePlan:
    """Files that are rewritten or removed; ``skipped`` names those that are left alone, with the reason."""

    files: list[FilePlan] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def waste(self) -> int:
        """Bytes that go."""
        return sum(plan.waste for plan in self.files)


def survey(
    catalogue: Catalogue,
    data_dir: Path,
    *,
    before: datetime,
    moments: Mapping[str, Sequence[datetime]],
    waste_share: float,
) -> ArchivePlan:
    """What could go: records older than ``before`` that no page points at and that no moment needs.

    ``moments``: page identity → when a version of the data set that holds it was taken. A file
    is taken up where nothing of it stays, or at least ``waste_share`` of its bytes would go.
    """
    plan = ArchivePlan()
    by_file: dict[str, list[Stored]] = {}
    for path in sorted((data_dir / FOLDER).glob("*.warc.gz")):
        name = f"{FOLDER}/{path.name}"
        try:
            by_file[name] = _records(path, name)
        except (OSError, ArchiveLoadFailed, EOFError, ValueError) as error:
            plan.skipped[name] = f"cannot be read: {error}"
    pointed, addresses = _pointed(catalogue)
    kept = _wanted(by_file, pointed, _needed(addresses, moments), before)
    known = {record.place for records in by_file.values() for record in records}
    for name, records in by_file.items():
        if strays := [place for place in pointed if place.warc_file == name and place not in known]:
            plan.skipped[name] = f"a page points at {strays[0].offset}, where no record begins"
            continue
        size = (data_dir / name).stat().st_size
        keep = [record for record in records if record.place in kept]
        waste = size - sum(record.length for record in keep)
        information = sum(record.length for record in records if record.type == "warcinfo")
        if not keep or (waste - information) >= waste_share * size > 0:
            plan.files.append(FilePlan(name, keep, size, waste))
    return plan


def collect(
    catalogue: Catalogue, data_dir: Path, plan: ArchivePlan, *, progress: Callable[[int, int], None]
) -> int:
    """Do what a plan says; returns the bytes that went. The caller holds the leases on runs and archive.

    Raises TerminalError where the disk is full: nothing is lost, what was done stays.
    """
    for path in (data_dir / FOLDER).glob(f".*{PARTIAL}"):
        path.unlink()  # of a collection that was killed
    gone = 0
    for number, file in enumerate(plan.files, start=1):
        path = data_dir / file.file
        try:
            with path.open("ab") as stream:
                if not locked(stream):
                    plan.skipped[file.file] = "a crawl has it open"
                    continue
                made = _rewrite(catalogue, data_dir, file) if file.keep else ""
                _remove(catalogue, path, file.file)
        except OSError as error:
            raise TerminalError(f"archive {path}: {error.strerror or error}", reason="disk") from error
        gone += file.bytes - ((data_dir / made).stat().st_size if made else 0)
        progress(number, len(plan.files))
    return gone


def _records(path: Path, name: str) -> list[Stored]:
    """All whole records of a file in order."""
    whole = whole_members(path)
    found: list[Stored] = []
    with path.open("rb") as stream:
        records = ArchiveIterator(stream)
        for record in records:
            records.read_to_end(record)
            offset, length = records.get_record_offset(), records.get_record_length()
            if offset + length > whole:
                break
            head = record.rec_headers
            found.append(
                Stored(
                    Location(name, offset),
                    length,
                    str(record.rec_type),
                    _address(head.get_header("WARC-Target-URI")),
                    _moment(head.get_header("WARC-Date")),
                    head.get_header("WARC-Record-ID") or "",
                    head.get_header("WARC-Concurrent-To") or "",
                    (_address(head.get_header("WARC-Refers-To-Target-URI")), head.get_header("WARC-Refers-To-Date") or ""),
                )
            )  # fmt: skip
    return found


def _address(value: str | None) -> str:
    return (value or "").strip("<>")


def _moment(value: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(value or "")
    except ValueError:
        return None


def _pointed(catalogue: Catalogue) -> tuple[set[Location], dict[str, set[str]]]:
    """Where pages point, and the addresses of each identity."""
    pointed: set[Location] = set()
    addresses: dict[str, set[str]] = defaultdict(set)
    columns = (Page.warc_file, Page.warc_offset, Page.identity, Page.url, Page.final_url)
    with catalogue.reading() as db:
        for file, offset, identity, url, final in db.execute(
            select(*columns).execution_options(yield_per=500)
        ):
            if file:
                pointed.add(Location(file, offset))
            addresses[identity] |= {url, final}
    return pointed, addresses


def _needed(
    addresses: Mapping[str, Collection[str]], moments: Mapping[str, Sequence[datetime]]
) -> dict[str, set[datetime]]:
    """Address → moments at which its content must stay to be found; an identity without a page is an address itself."""
    needed: dict[str, set[datetime]] = defaultdict(set)
    for identity, when in moments.items():
        for address in (*addresses.get(identity, ()), identity):
            needed[address].update(when)
    return needed


def _wanted(
    by_file: Mapping[str, Sequence[Stored]],
    pointed: set[Location],
    needed: Mapping[str, set[datetime]],
    before: datetime,
) -> set[Location]:
    """The records that stay, a copy of each only once."""
    records = [record for found in by_file.values() for record in found]
    answers = _single([r for r in records if r.type in ("response", "revisit")], pointed)
    keep = {r.place for r in answers if r.place in pointed or r.date is None or r.date >= before}
    by_address: dict[str, list[Stored]] = defaultdict(list)
    for record in answers:
        if record.date is not None:
            by_address[record.url].append(record)
    for found in by_address.values():
        found.sort(key=lambda record: (record.date, record.place.offset))
    for address, moments in needed.items():
        for moment in moments:
            earlier = [r for r in by_address.get(address, []) if r.date is not None and r.date <= moment]
            keep |= {record.place for record in _in_force(earlier, by_address)}
    for record in answers:  # a visit that stays says nothing without what it repeats
        if record.place in keep and (repeated := _repeated(record, by_address)) is not None:
            keep.add(repeated.place)
    files = {record.id: record.place.warc_file for record in answers if record.place in keep}
    requests = {r.place for r in records if r.type == "request" and files.get(r.answers) == r.place.warc_file}
    others = [r for r in records if r.type not in ("response", "revisit", "request", "warcinfo")]
    return keep | requests | {r.place for r in _single(others, pointed)}


def _single(records: Sequence[Stored], pointed: set[Location]) -> list[Stored]:
    """One of each record: of two copies the one that a page points at, else the later file's."""
    chosen: dict[str, Stored] = {}
    stay = [record for record in records if record.place in pointed]
    for record in [*records, *stay]:
        chosen[record.id or str(record.place)] = record
    return list({record.place: record for record in [*chosen.values(), *stay]}.values())


def _in_force(earlier: Sequence[Stored], by_address: Mapping[str, Sequence[Stored]]) -> list[Stored]:
    """The last contents among a page's records, with the visits since and what revisits repeat."""
    found: list[Stored] = []
    contents: set[str] = set()
    for record in reversed(earlier):
        found.append(record)
        repeated = _repeated(record, by_address)
        if repeated is not None:
            found.append(repeated)
        contents.add((repeated or record).id)
        if len(contents) == _BEFORE:
            break
    return found


def _repeated(record: Stored, by_address: Mapping[str, Sequence[Stored]]) -> Stored | None:
    if record.type != "revisit":
        return None
    address, date = record.refers_to
    wanted = _moment(date)
    same = [r for r in by_address.get(address, ()) if r.type == "response" and r.date == wanted]
    return same[0] if same else None


def _rewrite(catalogue: Catalogue, data_dir: Path, plan: FilePlan) -> str:
    """Copy what stays into a new file and point the pages there; returns its name."""
    old = data_dir / plan.file
    partial = old.with_name(f".{old.name}{PARTIAL}")
    moved: dict[int, int] = {}
    try:
        with old.open("rb") as source, partial.open("wb") as target:
            name = _next_name(old)
            _begin(target, name)
            for record in plan.keep:
                moved[record.place.offset] = target.tell()
                _copy(source, target, record)
            target.flush()
            os.fsync(target.fileno())
        os.link(partial, old.with_name(name))  # never over a file that is there
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(old.parent)
    made = f"{FOLDER}/{name}"
    try:
        _point(catalogue, data_dir, plan.file, made, moved)
    except PlatformError:
        old.with_name(name).unlink()
        raise
    return made


def _begin(target: IO[bytes], name: str) -> None:
    writer = WARCWriter(target, gzip=True, warc_version="1.1")
    info = {
        "software": "HChemSafety",
        "format": "WARC File Format 1.1",
        "description": "records kept by a collection",
    }
    writer.write_record(writer.create_warcinfo_record(name, info))


def _copy(source: IO[bytes], target: IO[bytes], record: Stored) -> None:
    source.seek(record.place.offset)
    left = record.length
    while left:
        data = source.read(min(left, _BLOCK))
        if not data:
            raise TerminalError(f"the record at {record.place.offset} is cut short", reason="archive")
        target.write(data)
        left -= len(data)


def _next_name(old: Path) -> str:
    found = _NUMBERED.fullmatch(old.name)
    name = found["name"] if found else old.name.removesuffix(".warc.gz")
    numbers = [
        int(match["number"])
        for path in old.parent.glob("*.warc.gz")
        if (match := _NUMBERED.fullmatch(path.name)) and match["name"] == name
    ]
    return f"{name}-{max(numbers, default=0) + 1:05d}.warc.gz"


def _point(catalogue: Catalogue, data_dir: Path, old: str, made: str, moved: Mapping[int, int]) -> None:
    """Point the pages at the new file in one transaction, each record read and its digest checked before."""
    with catalogue.reading() as db:
        offsets = sorted(set(db.scalars(select(Page.warc_offset).where(Page.warc_file == old))))
    for offset in offsets:
        if offset not in moved:
            raise TerminalError(f"a page points at {old}:{offset}, which would not be kept", reason="archive")
        read_record(data_dir, made, moved[offset])
    with catalogue.writing() as db:
        for offset in offsets:
            db.execute(
                update(Page)
                .where(Page.warc_file == old, Page.warc_offset == offset)
                .values(warc_file=made, warc_offset=moved[offset])
            )
        if _pages_in(db, old):
            raise TerminalError(f"pages began to point at {old} meanwhile", reason="archive")


def _pages_in(db: Session, file: str) -> int:
    return int(db.scalar(select(func.count()).select_from(Page).where(Page.warc_file == file)) or 0)


def _remove(catalogue: Catalogue, path: Path, file: str) -> None:
    with catalogue.reading() as db:
        if _pages_in(db, file):
            raise TerminalError(f"pages point at {file}", reason="archive")
    path.unlink()
    sync_folder(path.parent)

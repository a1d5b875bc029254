"""The file of a backup: a gzipped tar whose last member lists all others with their SHA-256.

Members are regular files under a few known names. Whoever reads one believes nothing:
links, devices, absolute names and names that climb are refused, sizes and sums must be
those of the list, and the list must be there, so that a file that was cut short is known.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import tarfile
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import BytesIO, RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from corpus.errors import TerminalError

FORMAT = 1
CATALOGUE = "catalogue.db"
SETTINGS = "settings/hchem.toml"
PREFECT = "prefect/prefect.db"
FOLDERS = ("warc", "datasets", "reports")
_MANIFEST = "manifest.json"
_MOST_LISTED = 256 * 1024 * 1024  # bytes of the list
_BLOCK = 1 << 20
_LONGEST_PART = 255  # bytes of a file's or folder's name
_LONGEST_NAME = 1024  # bytes of a member's name, so that there is room for the data directory's
_LEVEL = 1  # the archive is compressed already, the catalogue halves several times at any level
_FOLDER_NAME = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:/[^/\0\\]+)+")

Count = Callable[[int], None]


class Entry(BaseModel):
    """A member: its size in bytes and its SHA-256."""

    model_config = ConfigDict(extra="forbid", strict=True)

    size: int
    sha256: str


class Manifest(BaseModel):
    """What a backup holds. ``rows``: of the catalogue by table; ``left_out``: what is not in it and why."""

    model_config = ConfigDict(extra="ignore", strict=True)

    format: int
    made_at: str
    code_version: str
    schema_revision: str
    database: str
    rows: dict[str, int]
    left_out: list[str]
    members: dict[str, Entry]

    @property
    def bytes(self) -> int:
        """Size of all members."""
        return sum(entry.size for entry in self.members.values())


@dataclass
class Writer:
    """Adds members to a backup that is being written; sizes and sums are kept for the list."""

    tar: tarfile.TarFile
    count: Count
    members: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, stream: IO[bytes], size: int, mtime: float = 0.0) -> None:
        """Add ``size`` bytes of a stream. Raises OSError where it holds fewer, or nothing can be written."""
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, int(mtime), 0o644
        summing = _Summing(stream, self.count)
        self.tar.addfile(info, summing)
        self.members[name] = asdict(_Sum(size, summing.state.hexdigest()))

    def finish(self, **facts: Any) -> None:
        """Add the list."""
        data = json.dumps({"format": FORMAT, **facts, "members": self.members}, ensure_ascii=False, indent=1)
        info = tarfile.TarInfo(_MANIFEST)
        info.size = len(data.encode())
        self.tar.addfile(info, BytesIO(data.encode()))


@dataclass(frozen=True)
class _Sum:
    size: int
    sha256: str


class _Summing:
    """A stream that hashes and counts what is read from it."""

    def __init__(self, stream: IO[bytes], count: Count) -> None:
        self._stream, self._count = stream, count
        self.state = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.state.update(data)
        self._count(len(data))
        return data


@contextmanager
def writing(path: Path, count: Count) -> Iterator[Writer]:
    """Write a backup beside its place and put it there at the end of the block; on any error nothing is left.

    Raises TerminalError where it cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex[:8]}")
    try:
        with partial.open("xb") as raw:
            with (
                gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_BLOCK) as tar,
            ):
                yield Writer(tar, count)
            raw.flush()
            os.fsync(raw.fileno())
        partial.chmod(0o600)  # pages may be under licences, settings are nobody else's business
        os.replace(partial, path)
    except OSError as error:
        raise TerminalError(
            f"backup {path} cannot be written: {error.strerror or error}; nothing was left behind",
            reason="disk",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def verify(path: Path, count: Count = lambda n: None) -> Manifest:
    """Read a backup from end to end; returns its list. ``count`` is told of bytes of the file. Raises TerminalError for anything that is not as it was written."""
    found: dict[str, Entry] = {}
    manifest: Manifest | None = None
    for name, stream, size in _read(path, count):
        if manifest is not None:
            raise _broken(path, "members come after the list")
        if name == _MANIFEST:
            manifest = _manifest(path, stream, size)
            continue
        found[name] = Entry(size=size, sha256=_drain(stream, lambda data: None))
    if manifest is None:
        raise _broken(path, "its end is missing")
    for name in sorted(found.keys() | manifest.members.keys()):
        if found.get(name) != manifest.members.get(name):
            raise _broken(path, f"{name} is not as it was written")
    if CATALOGUE not in found:
        raise _broken(path, "it holds no catalogue")
    return manifest


def unpack(path: Path, manifest: Manifest, folder: Path, count: Count = lambda n: None) -> None:
    """Write the members of a verified backup below a new folder. Raises TerminalError, also where the file has changed."""
    for name, stream, size in _read(path):
        if name == _MANIFEST:
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:

            def put(data: bytes, file: IO[bytes] = file) -> None:
                file.write(data)
                count(len(data))

            entry = Entry(size=size, sha256=_drain(stream, put))
            file.flush()
            os.fsync(file.fileno())
        if entry != manifest.members.get(name):
            raise _broken(path, f"{name} has changed since it was verified")


class _Counting(RawIOBase):
    """A file that says how much of it was read."""

    def __init__(self, file: IO[bytes], count: Count) -> None:
        super().__init__()
        self._file, self._count = file, count

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._count(len(data))
        return data


_FAULTS = (tarfile.TarError, EOFError, zlib.error, UnicodeError, gzip.BadGzipFile)


class _Member:
    """A member's bytes; what is wrong with the file shows where they are read, and is raised as what it is."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path, self._stream = path, stream

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except _FAULTS as error:
            raise _broken(self._path, str(error) or type(error).__name__) from error


def _read(path: Path, count: Count = lambda n: None) -> Iterator[tuple[str, _Member, int]]:
    """Members in order, each refused unless it is a plain file of a known name."""
    seen: set[str] = set()
    folders: set[str] = set()
    try:
        with (
            path.open("rb") as raw,
            gzip.GzipFile(fileobj=_Counting(raw, count), mode="rb") as packed,
            tarfile.open(fileobj=packed, mode="r|", bufsize=_BLOCK) as tar,
        ):
            for info in tar:
                name = _checked(path, info)
                if name in seen:
                    raise _broken(path, f"it holds {name!r} twice")
                above = {str(folder) for folder in PurePosixPath(name).parents}
                if name in folders or above & seen:
                    both = name if name in folders else min(above & seen)
                    raise _broken(path, f"it holds {both!r} as a file and as a folder")
                seen.add(name)
                folders |= above
                stream = tar.extractfile(info)
                if stream is None:
                    raise _broken(path, f"{name!r} is no file")
                yield name, _Member(path, stream), info.size
    except _FAULTS as error:
        raise _broken(path, str(error) or type(error).__name__) from error
    except FileNotFoundError as error:
        if error.filename == str(path):
            raise TerminalError(f"backup {path} does not exist", reason="usage") from error
        raise


def _checked(path: Path, info: tarfile.TarInfo) -> str:
    name = info.name
    known = name in (_MANIFEST, CATALOGUE, SETTINGS, PREFECT) or _FOLDER_NAME.fullmatch(name) is not None
    climbs = any(part in ("", ".", "..") for part in name.split("/"))
    if info.type != tarfile.REGTYPE or info.issparse() or climbs or not known or info.size < 0:
        raise _broken(path, f"it holds {name!r}, which no backup has")
    longest = max(len(os.fsencode(part)) for part in name.split("/"))
    if longest > _LONGEST_PART or len(os.fsencode(name)) > _LONGEST_NAME:
        raise _broken(path, f"it holds {name[:60]!r}…, a name too long for a file system")
    try:
        tarfile.data_filter(info, "/nowhere")  # the library's own rules as well
    except tarfile.FilterError as error:
        raise _broken(path, str(error)) from error
    return name


def _manifest(path: Path, stream: _Member, size: int) -> Manifest:
    if size > _MOST_LISTED:
        raise _broken(path, "its list is too long")
    try:
        data = json.loads(stream.read())
        if isinstance(data, dict) and isinstance(data.get("format"), int) and data["format"] > FORMAT:
            raise TerminalError(
                f"backup {path} was made by a newer version (format {data['format']}, this code knows {FORMAT}): "
                "upgrade this installation",
                reason="newer",
            )
        return Manifest.model_validate(data)
    except (ValueError, RecursionError, ValidationError) as error:
        raise _broken(path, "its list cannot be read") from error


def _drain(stream: _Member, put: Callable[[bytes], None]) -> str:
    state = hashlib.sha256()
    while data := stream.read(_BLOCK):
        state.update(data)
        put(data)
    return state.hexdigest()


def _broken(path: Path, why: str) -> TerminalError:
    return TerminalError(f"{path} is not a whole backup: {why}", reason="damaged")

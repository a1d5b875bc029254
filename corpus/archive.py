"""The page archive: WARC/1.1 files, one gzip member per record, read back with ``warcio``.

An exchange is stored as it went over the wire: the request, and the response
with its content encoding (the transfer encoding is undone by the HTTP client).
A page that did not change is a ``revisit`` record, which has no body. Pages of
the catalogue point at response records by file and offset, and such a pointer
is given out only after the bytes have reached the disk. After a kill the last
record of a file may be cut short: it is removed when the file is opened again.

WARC/1.1 is ISO 28500:2017.
"""

from __future__ import annotations

import fcntl
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import brotli  # type: ignore[import-untyped]
from w3lib.url import safe_url_string
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import BufferedReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from corpus.errors import TerminalError

FOLDER = "warc"
ROLL_BYTES = 1_000_000_000
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
_BLOCK = 1 << 16
_DECODABLE = frozenset({"gzip", "deflate", "br"})  # what warcio undoes when it reads
_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_NAME = re.compile(r"[^A-Za-z0-9._-]+")

Headers = Sequence[tuple[str, str]]


class _Brotli:
    """Brotli for the readers of ``warcio`` 1.8, whose own wrapper fails with brotli 1.2."""

    unused_data = None

    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    def decompress(self, data: bytes) -> bytes:
        return bytes(self._inner.process(data))

    def flush(self) -> bytes:
        return b""


BufferedReader.DECOMPRESSORS["br"] = _Brotli


@dataclass(frozen=True)
class Location:
    """Where a record stands: file relative to the data directory, byte offset of its gzip member."""

    warc_file: str
    offset: int


@dataclass(frozen=True)
class Exchange:
    """One request and its response, as received.

    ``body`` is the entity body with its content encoding still on; ``decoded``
    is the body without it (what ``read_payload`` gives back). ``date`` is
    ISO 8601 in UTC.
    """

    url: str
    request_headers: Headers
    status: int
    reason: str
    response_headers: Headers
    body: bytes
    decoded: bytes
    date: str
    address: str = ""
    method: str = "GET"
    protocol: str = "HTTP/1.1"


@dataclass(frozen=True)
class Record:
    """A record that was read: its type, addresses, HTTP status and headers, decoded body."""

    type: str
    url: str
    date: str
    status: int
    headers: tuple[tuple[str, str], ...]
    payload: bytes
    offset: int = 0
    warc_headers: dict[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str:
        """The first HTTP header of that name, or an empty string."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    def all_headers(self, name: str) -> list[str]:
        """All HTTP headers of that name."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


class ArchiveWriter:
    """Appends exchanges to ``<data_dir>/warc/<name>-00001.warc.gz`` and rolls to a new file by size.

    One writer per file at a time: a file that a living writer has open is left
    to it, and the next number is taken. Every ``write…`` method returns after
    flush and fsync.
    """

    def __init__(
        self, data_dir: Path, name: str, info: Mapping[str, str] | None = None, roll_bytes: int = ROLL_BYTES
    ) -> None:
        self._data_dir = data_dir
        self._name = _NAME.sub("-", name).strip("-.") or "crawl"
        self._info = dict(info or {})
        self._roll_bytes = roll_bytes
        self._file: IO[bytes] | None = None
        self._relative = ""
        self._number = self._last_number() or 1

    def write_response(self, exchange: Exchange) -> Location:
        """Store request and response; the location is the response record's."""
        headers, body = _storable(exchange)
        writer = self._writer()
        response = writer.create_warc_record(
            exchange.url,
            "response",
            payload=BytesIO(body),
            length=len(body),
            warc_headers_dict=_record_headers(exchange),
            http_headers=_status(exchange, headers),
        )
        return self._append(writer, [response, _request(writer, exchange, response)])

    def write_revisit(self, exchange: Exchange, refers_to: Record, *, not_modified: bool) -> Location:
        """Record that the page was asked for and is what ``refers_to`` holds.

        ``not_modified``: the server said so (304); otherwise it sent the same bytes again.
        """
        writer = self._writer()
        digest = refers_to.warc_headers.get("WARC-Payload-Digest", "")
        if not digest:
            raise TerminalError("a revisit needs the digest of the first record", reason="archive")
        revisit = writer.create_revisit_record(
            exchange.url,
            digest,
            refers_to.url,
            refers_to.date,
            http_headers=_status(exchange, exchange.response_headers),
            warc_headers_dict=_record_headers(exchange),
        )
        if not_modified:
            revisit.rec_headers.replace_header("WARC-Profile", _NOT_MODIFIED)
        return self._append(writer, [revisit, _request(writer, exchange, revisit)])

    def close(self) -> None:
        """Close the file; the next write opens one again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, writer: WARCWriter, records: Sequence[ArcWarcRecord]) -> Location:
        assert self._file is not None
        offset = self._file.tell()
        for record in records:
            writer.write_record(record)
        self._sync()
        return Location(self._relative, offset)

    def _writer(self) -> WARCWriter:
        if self._file is not None and self._file.tell() >= self._roll_bytes:
            self.close()
            self._number += 1
        if self._file is None:
            self._open()
        return WARCWriter(self._file, gzip=True, warc_version="1.1")

    def _open(self) -> None:
        while True:
            self._relative = f"{FOLDER}/{self._name}-{self._number:05d}.warc.gz"
            path = self._data_dir / self._relative
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            if locked(self._file):
                break
            self._file.close()
            self._number += 1
        cut_torn_tail(path)
        self._file.seek(0, os.SEEK_END)
        if self._file.tell() == 0:
            writer = WARCWriter(self._file, gzip=True, warc_version="1.1")
            info = {"software": "HChemSafety", "format": "WARC File Format 1.1", **self._info}
            writer.write_record(writer.create_warcinfo_record(path.name, info))
            self._sync()
            sync_folder(path.parent)

    def _sync(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())

    def _last_number(self) -> int:
        files = (self._data_dir / FOLDER).glob(f"{self._name}-*.warc.gz")
        numbers = [path.name.removeprefix(f"{self._name}-").removesuffix(".warc.gz") for path in files]
        return max((int(number) for number in numbers if re.fullmatch(r"\d{5}", number)), default=0)


def read_record(data_dir: Path, warc_file: str, offset: int, *, max_bytes: int = MAX_PAYLOAD_BYTES) -> Record:
    """The record at ``offset`` with headers and decoded body; its digest is checked.

    Raises TerminalError (reason ``archive``) where there is no whole record, or
    its bytes are not those that were written; reason ``too_large`` where the
    decoded body is over ``max_bytes``.
    """
    path = _inside(data_dir, warc_file)
    with _reading(path, offset) as stream:
        records = ArchiveIterator(stream, check_digests="raise")
        record = next(records, None)
        if record is None:
            raise TerminalError(f"no record at {warc_file}:{offset}", reason="archive")
        return _read(record, offset, max_bytes)


def read_payload(data_dir: Path, warc_file: str, offset: int, *, max_bytes: int = MAX_PAYLOAD_BYTES) -> bytes:
    """The page's bytes: the entity body without content and transfer encoding.

    Raises TerminalError as ``read_record`` does, and where the record is not a response.
    """
    record = read_record(data_dir, warc_file, offset, max_bytes=max_bytes)
    if record.type != "response":
        raise TerminalError(f"{warc_file}:{offset} is a {record.type} record", reason="archive")
    return record.payload


def iterate_records(path: Path, *, max_bytes: int = MAX_PAYLOAD_BYTES) -> Iterator[Record]:
    """All HTTP response and revisit records of any WARC file, compressed by record or not at all.

    A cut tail ends the iteration. Raises TerminalError for what is not a WARC
    file or is one gzip stream (``warcio recompress`` mends such a file).
    """
    with _reading(path, 0) as stream:
        records = ArchiveIterator(stream)
        for record in records:
            if record.rec_type in ("response", "revisit") and record.http_headers is not None:
                read = _read(record, 0, max_bytes)
                yield replace(read, offset=records.get_record_offset())  # asking earlier would skip the body


def cut_torn_tail(path: Path) -> int:
    """Cut an incomplete last gzip member off the file; returns the number of bytes removed."""
    whole = whole_members(path)
    torn = path.stat().st_size - whole
    if torn:
        with path.open("r+b") as stream:
            stream.truncate(whole)
            os.fsync(stream.fileno())
    return torn


def whole_size(path: Path) -> int:
    """Bytes of the file; while a writer has it open, those of its complete records."""
    with path.open("ab") as stream:
        return path.stat().st_size if locked(stream) else whole_members(path)


def mend_archives(data_dir: Path, prefix: str, since: datetime) -> list[str]:
    """Cut the torn tails that killed writers left in ``<data_dir>/warc/<prefix>*``; returns those files.

    Files that were last written before ``since`` or are open in a living writer are left alone.
    """
    mended = []
    for path in sorted((data_dir / FOLDER).glob(f"{_NAME.sub('-', prefix)}*.warc.gz")):
        if path.stat().st_mtime < since.timestamp():
            continue
        with path.open("ab") as stream:
            if locked(stream) and cut_torn_tail(path):
                mended.append(f"{FOLDER}/{path.name}")
                if path.stat().st_size == 0:
                    path.unlink()  # killed within its first record
    return mended


def locked(stream: IO[bytes]) -> bool:
    """Lock the file for its writer until it is closed or the process ends; False where another has it."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def whole_members(path: Path) -> int:
    """Bytes of the file up to the end of its last complete gzip member."""
    complete = position = 0
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    with path.open("rb") as stream:
        while data := stream.read(_BLOCK):
            while data:
                try:
                    inflater.decompress(data)
                except zlib.error:
                    return complete
                position += len(data) - len(inflater.unused_data)
                data = inflater.unused_data
                if inflater.eof:
                    complete = position
                    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    return complete


@contextmanager
def _reading(path: Path, offset: int) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            yield stream
    except (OSError, ArchiveLoadFailed, EOFError, zlib.error) as error:
        raise TerminalError(f"archive {path.name} at {offset}: {error}", reason="archive") from error


def _read(record: Any, offset: int, max_bytes: int) -> Record:
    payload = _drain(record.content_stream(), max_bytes, offset)
    _drain(record.raw_stream, max_bytes, offset)  # what follows the encoded body; ends the digest check
    if getattr(record.raw_stream, "limit", 0):
        raise TerminalError(f"the record at {offset} is cut short", reason="archive")
    http = record.http_headers
    warc = {str(name): str(value) for name, value in record.rec_headers.headers}
    return Record(
        type=record.rec_type,
        url=warc.get("WARC-Target-URI", "").strip("<>"),
        date=warc.get("WARC-Date", ""),
        status=_status_code(record),
        headers=tuple((str(name), str(value)) for name, value in http.headers) if http else (),
        payload=payload,
        offset=offset,
        warc_headers=warc,
    )


def _drain(stream: Any, max_bytes: int, offset: int) -> bytes:
    """Read to the end: the readers of ``warcio`` give a block at a time."""
    parts: list[bytes] = []
    size = 0
    while data := stream.read(_BLOCK):
        size += len(data)
        if size > max_bytes:
            raise TerminalError(f"the record at {offset} is over {max_bytes} bytes", reason="too_large")
        parts.append(data)
    return b"".join(parts)


def _status_code(record: Any) -> int:
    if record.http_headers is None or record.rec_type == "request":
        return 0
    code = str(record.http_headers.get_statuscode())
    return int(code) if code.isdigit() else 0


def _inside(data_dir: Path, warc_file: str) -> Path:
    root = data_dir.resolve()
    path = (root / warc_file).resolve()
    if not path.is_relative_to(root):
        raise TerminalError(f"archive file {warc_file!r} is outside the data directory", reason="archive")
    return path


def _storable(exchange: Exchange) -> tuple[Headers, bytes]:
    """Headers and body to store: the encoded body where it can be decoded again, else the decoded one."""
    encodings = [v.strip().lower() for k, v in exchange.response_headers if k.lower() == "content-encoding"]
    if not encodings or (len(encodings) == 1 and encodings[0] in _DECODABLE):
        return exchange.response_headers, exchange.body
    kept = "X-Archive-Orig-Content-Encoding"
    renamed = [(kept if k.lower() == "content-encoding" else k, v) for k, v in exchange.response_headers]
    return renamed, exchange.decoded


def _status(exchange: Exchange, headers: Headers) -> StatusAndHeaders:
    line = f"{exchange.status} {exchange.reason}".strip()
    return StatusAndHeaders(line, list(headers), protocol=exchange.protocol)


def _record_headers(exchange: Exchange) -> dict[str, str]:
    address = {"WARC-IP-Address": exchange.address} if exchange.address else {}
    return {"WARC-Date": exchange.date, **address}


def _request(writer: WARCWriter, exchange: Exchange, answer: ArcWarcRecord) -> ArcWarcRecord:
    target = re.sub(r"^[a-z]+://[^/?#]*", "", safe_url_string(exchange.url)) or "/"
    line = StatusAndHeaders(
        f"{exchange.method} {target} {exchange.protocol}",
        list(exchange.request_headers),
        is_http_request=True,
    )
    concurrent = {"WARC-Concurrent-To": answer.rec_headers.get_header("WARC-Record-ID")}
    return writer.create_warc_record(
        exchange.url,
        "request",
        warc_headers_dict={"WARC-Date": exchange.date, **concurrent},
        http_headers=line,
    )


def sync_folder(path: Path) -> None:
    """Make the new file's name durable (needed after a power loss on POSIX)."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

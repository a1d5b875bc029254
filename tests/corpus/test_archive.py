"""The archive: what is written is read back, digests hold, a torn tail is cut."""

from __future__ import annotations

import gzip
import zlib
from io import BytesIO
from pathlib import Path

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.checker import Checker
from warcio.warcwriter import WARCWriter

from corpus.archive import ArchiveWriter, Exchange, cut_torn_tail, iterate_records, read_payload, read_record
from corpus.errors import TerminalError

DATE = "2025-01-02T03:04:05.000000Z"
PAGE = "<html><body>苯 (71-43-2) 闪点 -11 °C</body></html>".encode("gb18030")


def exchange(body: bytes = PAGE, encoding: str = "", url: str = "http://sample.test/苯?q=1") -> Exchange:
    packed = {
        "": lambda data: data,
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli.compress,
        "x-gzip": gzip.compress,
    }[encoding](body)
    headers = [("Content-Type", "text/html; charset=gb2312"), ("ETag", '"e1"')]
    if encoding:
        headers.append(("Content-Encoding", encoding))
    return Exchange(
        url=url,
        request_headers=[("Host", "sample.test"), ("User-Agent", "HChemSafety/0")],
        status=200,
        reason="OK",
        response_headers=headers,
        body=packed,
        decoded=body,
        date=DATE,
        address="127.0.0.1",
    )


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "br", "x-gzip"])
def test_payload_comes_back_decoded(tmp_path: Path, encoding: str) -> None:
    writer = ArchiveWriter(tmp_path, "run-1/sample")
    first = writer.write_response(exchange(b"first page"))
    second = writer.write_response(exchange(PAGE * 5000, encoding))
    assert read_payload(tmp_path, second.warc_file, second.offset) == PAGE * 5000
    assert read_payload(tmp_path, first.warc_file, first.offset) == b"first page"
    record = read_record(tmp_path, second.warc_file, second.offset)
    assert (record.status, record.header("content-type"), record.date) == (
        200,
        "text/html; charset=gb2312",
        DATE,
    )


@given(bodies=st.lists(st.binary(max_size=3000), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_any_bytes_survive(bodies: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("warc")
    writer = ArchiveWriter(folder, "r")
    places = [writer.write_response(exchange(body)) for body in bodies]
    assert [read_payload(folder, place.warc_file, place.offset) for place in places] == bodies


def test_other_tools_accept_the_file(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r", {"robots": "obey", "http-header-from": "ops@example.org"})
    place = writer.write_response(exchange(encoding="gzip"))
    seen = read_record(tmp_path, place.warc_file, place.offset)
    not_modified = exchange(b"")
    writer.write_revisit(not_modified, seen, not_modified=True)
    writer.write_revisit(exchange(), seen, not_modified=False)
    writer.close()
    path = tmp_path / place.warc_file

    class Arguments:
        inputs = (str(path),)
        verbose = True

    checker = Checker(Arguments())
    checker.process_all()
    assert checker.exit_value == 0
    text = gzip.decompress(path.read_bytes()).decode("latin-1")
    assert text.startswith("WARC/1.1\r\nWARC-Type: warcinfo")
    assert "WARC-Filename: r-00001.warc.gz" in text
    assert "http-header-from: ops@example.org" in text
    assert text.count("WARC-Type: request") == 3
    assert "revisit/server-not-modified" in text
    assert "revisit/identical-payload-digest" in text
    assert "WARC-IP-Address: 127.0.0.1" in text
    assert [record.type for record in iterate_records(path)] == ["response", "revisit", "revisit"]


def test_pointer_to_a_revisit_is_no_payload(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r")
    place = writer.write_response(exchange())
    revisit = writer.write_revisit(
        exchange(), read_record(tmp_path, place.warc_file, place.offset), not_modified=False
    )
    with pytest.raises(TerminalError, match="revisit record"):
        read_payload(tmp_path, revisit.warc_file, revisit.offset)


def test_every_cut_of_the_last_record_is_repaired(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r")
    first = writer.write_response(exchange(b"one"))
    path = tmp_path / first.warc_file
    whole = path.stat().st_size
    writer.write_response(exchange(b"two" * 100))
    writer.close()
    full = path.read_bytes()
    for length in [whole + 1, whole + 9, whole + 200, len(full) - 1]:
        path.write_bytes(full[:length])
        again = ArchiveWriter(tmp_path, "r")
        place = again.write_response(exchange(b"three"))
        again.close()
        assert place.warc_file == first.warc_file
        assert [record.payload for record in iterate_records(path)][::2][:1] == [b"one"]
        assert read_payload(tmp_path, place.warc_file, place.offset) == b"three"
        assert read_payload(tmp_path, first.warc_file, first.offset) == b"one"


def test_whole_file_is_left_alone(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r")
    place = writer.write_response(exchange())
    writer.close()
    assert cut_torn_tail(tmp_path / place.warc_file) == 0


def test_torn_or_changed_record_is_refused(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r")
    place = writer.write_response(exchange(b"x" * 20 + bytes(range(256)) * 8))
    writer.close()
    path = tmp_path / place.warc_file
    data = path.read_bytes()
    path.write_bytes(data[: place.offset + 300])
    with pytest.raises(TerminalError) as torn:
        read_payload(tmp_path, place.warc_file, place.offset)
    assert torn.value.reason == "archive"
    plain = gzip.decompress(data[place.offset :]).replace(b"xxxx", b"yyyy")
    path.write_bytes(data[: place.offset] + gzip.compress(plain))
    with pytest.raises(TerminalError, match="digest"):
        read_payload(tmp_path, place.warc_file, place.offset)


def test_size_limit_and_wrong_places(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r")
    place = writer.write_response(exchange(b"0" * 100_000, "gzip"))
    with pytest.raises(TerminalError) as large:
        read_payload(tmp_path, place.warc_file, place.offset, max_bytes=99_999)
    assert large.value.reason == "too_large"
    for name, offset in [
        ("warc/none.warc.gz", 0),
        (place.warc_file, 10**9),
        (place.warc_file, place.offset + 3),
    ]:
        with pytest.raises(TerminalError):
            read_payload(tmp_path, name, offset)
    with pytest.raises(TerminalError, match="outside"):
        read_payload(tmp_path, "../../etc/passwd", 0)


def test_rolls_by_size_and_goes_on_with_the_last_file(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "r", roll_bytes=1000)
    places = [writer.write_response(exchange(bytes([n]) * 50)) for n in range(4)]
    writer.close()
    names = sorted({place.warc_file for place in places})
    assert len(names) > 1
    later = ArchiveWriter(tmp_path, "r", roll_bytes=10**6).write_response(exchange())
    assert later.warc_file == names[-1]
    for number, place in enumerate(places):
        assert read_payload(tmp_path, place.warc_file, place.offset) == bytes([number]) * 50


def test_foreign_uncompressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "foreign.warc"
    with path.open("wb") as stream:
        foreign = WARCWriter(stream, gzip=False)
        raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        payload = BytesIO(raw)
        record = foreign.create_warc_record("http://a.example/", "response", payload=payload, length=len(raw))
        foreign.write_record(record)
    assert [(record.url, record.payload) for record in iterate_records(path)] == [
        ("http://a.example/", b"hello")
    ]

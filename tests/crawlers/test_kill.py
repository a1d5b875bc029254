"""SIGKILL at several moments: nothing recorded is asked for twice, nothing is lost, the archive is valid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corpus.archive import ArchiveWriter, iterate_records, mend_archives, read_payload
from tests.crawlers.helpers import Ground, source
from tests.crawlers.test_faults import check_digests
from tests.crawlers.test_refresh import SlowSite, start, wait_for
from tests.servers.site import Site, serve


def settled(ground: Ground) -> set[str]:
    """Pages whose result is recorded in the round."""
    return {path for path, row in ground.pages().items() if row.run_id and row.lease_holder == ""}


def kill(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def asked(site: Site) -> dict[str, int]:
    counts: dict[str, int] = {}
    for hit in site.hits:
        counts[hit.path] = counts.get(hit.path, 0) + 1
    return counts


def test_three_kills_and_a_torn_tail(tmp_path: Path) -> None:
    with serve() as site:
        slow = SlowSite(site, 24, quick=0, delay=60)
        ground = Ground.at(tmp_path)
        origin = source(site, per_host=3)
        limits = {"concurrency": 3}
        for number, hits in enumerate((1, 8, 16), start=1):
            before, finished = asked(site), settled(ground)
            slow.quick = hits
            job = ground.job(origin, f"run-{number}", settings=limits)
            child = start(ground, tmp_path / "job.json", job)
            wait_for(lambda wanted=hits: len(site.hits) >= wanted)  # type: ignore[misc]
            kill(child)
            again = {path for path, count in asked(site).items() if count > before.get(path, 0)}
            assert not again & finished
        archives = sorted((tmp_path / "warc").glob("*.warc.gz"))
        assert archives
        whole = archives[-1].read_bytes()
        archives[-1].write_bytes(whole + whole[:137])  # the writer was killed within a record
        finished, before = settled(ground), asked(site)
        slow.hurry.set()

        stats = ground.crawl(origin, "run-4", settings=limits)
        assert stats.resumed
        again = {path for path, count in asked(site).items() if count > before.get(path, 0)}
        assert not again & finished
        assert {ground.fates()[name] for name in slow.names} == {("kept", "")}
        assert archives[-1].read_bytes() == whole
        files = sorted((tmp_path / "warc").glob("*.warc.gz"))
        assert check_digests(files) == 0
        records = [record for path in files for record in iterate_records(path)]
        assert {record.url for record in records} >= {row.url for row in ground.pages().values()}
        for row in ground.pages().values():
            path = row.url.removeprefix(site.base)
            assert path.encode() in read_payload(tmp_path, row.warc_file, row.warc_offset)


WRITER = """
import sys
from pathlib import Path
from corpus.archive import ArchiveWriter
from tests.corpus.test_archive import exchange
writer = ArchiveWriter(Path(sys.argv[1]), "test-run")
place = writer.write_response(exchange(b"first"))
print(place.warc_file, flush=True)
sys.stdin.read()
"""


def test_archive_of_a_living_writer_is_left_to_it(tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=1)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert writer.stdout is not None
        name = writer.stdout.readline().strip()
        path = tmp_path / name
        whole = path.read_bytes()
        with path.open("ab") as stream:
            stream.write(b"\x1f\x8b half a record")
        assert mend_archives(tmp_path, "test-", long_ago) == []
        other = ArchiveWriter(tmp_path, "test-run")
        from tests.corpus.test_archive import exchange

        assert other.write_response(exchange(b"second")).warc_file == "warc/test-run-00002.warc.gz"
        other.close()
    finally:
        writer.kill()
        writer.wait()
    assert mend_archives(tmp_path, "other-", long_ago) == []
    assert mend_archives(tmp_path, "test-", datetime.now(UTC) + timedelta(days=1)) == []
    assert mend_archives(tmp_path, "test-", long_ago) == [name]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("torn", [b"\x1f\x8b\x08", b"\x1f\x8b half"])
def test_file_that_holds_no_whole_record_goes_away(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / "warc").mkdir()
    path = tmp_path / "warc" / "test-run-00001.warc.gz"
    path.write_bytes(torn)
    assert mend_archives(tmp_path, "test-", datetime.now(UTC) - timedelta(days=1)) == [
        "warc/test-run-00001.warc.gz"
    ]
    assert not path.exists()

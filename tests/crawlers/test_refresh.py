"""Refreshes and interruptions: what is asked for again, what is kept, what is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from corpus.archive import read_payload
from corpus.catalogue.tables import CrawlRound, Page
from corpus.errors import TransientError
from crawlers.frontier import Found, Frontier
from crawlers.runner import run_crawl
from tests.crawlers.helpers import Ground, source
from tests.servers.site import Hit, Reply, Route, Site, article, links, serve

POINTERS = ("payload_sha256", "warc_file", "warc_offset", "document_id", "fetched_at")


def pointers(ground: Ground, path: str) -> tuple[object, ...]:
    row = ground.pages()[path]
    return tuple(getattr(row, name) for name in POINTERS)


def test_refresh_revisits_records_changes_and_losses(tmp_path: Path) -> None:
    with serve() as site:
        pages = ("/same", "/tagless", "/edited", "/removed", "/unlinked", "/failing")
        site.page("/", links(*pages))
        for name in pages:
            site.page(name, article(name), etag=None if name == "/tagless" else "v1")
        ground = Ground.at(tmp_path)
        origin = source(site, complete=True)
        ground.crawl(origin, "run-1")
        before = {name: pointers(ground, name) for name in pages}

        site.page("/", links("/same", "/tagless", "/edited", "/removed", "/failing", "/new"))
        site.page("/edited", article("edited again"), etag="v2")
        site.page("/new", article("/new"))
        del site.routes["/removed"]
        site.page("/failing", "", status=500)
        site.hits.clear()
        stats = ground.crawl(origin, "run-2")

        fates = ground.fates()
        assert {name: fates[name] for name in (*pages, "/new")} == {
            "/same": ("kept", ""),
            "/tagless": ("kept", ""),
            "/edited": ("kept", ""),
            "/removed": ("gone", "http_404"),
            "/unlinked": ("gone", "unlinked"),
            "/failing": ("kept", "stale"),
            "/new": ("kept", ""),
        }
        asked = {hit.path: hit.headers.get("if-none-match") for hit in site.hits}
        assert asked["/same"] == '"v1"'
        assert pointers(ground, "/same") == before["/same"]
        assert pointers(ground, "/tagless")[:4] == before["/tagless"][:4]  # the same bytes are stored once
        assert pointers(ground, "/failing") == before["/failing"]
        edited = ground.pages()["/edited"]
        assert edited.document_id == before["/edited"][3]
        assert b"edited again" in read_payload(tmp_path, edited.warc_file, edited.warc_offset)
        assert stats.unchanged == 2 + 1  # same, tagless, and unlinked on its last visit
        with ground.catalogue.reading() as session:
            assert session.get(CrawlRound, "test") is None


def test_failed_listing_retires_nothing(tmp_path: Path) -> None:
    with serve() as site:
        site.index("/list", "/a")
        site.page("/a", article("a"))
        site.page("/list", links("/b"))
        site.page("/b", article("b"))
        ground = Ground.at(tmp_path)
        origin = source(site, complete=True, listing=["^/$", "^/list"])
        ground.crawl(origin, "run-1")
        site.page("/list", "", status=500)
        ground.crawl(origin, "run-2")
        assert ground.fates()["/b"] == ("kept", "")


class SlowSite:
    """Pages that are answered at once until so many requests have come, then slowly: so a crawl is met half-way.

    A fixed delay alone would be a race between the crawl and the test that wants to stop it.
    """

    def __init__(self, site: Site, count: int, quick: int, delay: float) -> None:
        self.names = [f"/p{number:02d}" for number in range(count)]
        self.quick = quick
        self.hurry = threading.Event()
        site.index(*self.names)
        for name in self.names:
            site.routes[name] = self._route(site, article(name).encode(), delay)

    def _route(self, site: Site, body: bytes, delay: float) -> Route:
        def answer(hit: Hit) -> Reply:
            if len(site.hits) > self.quick:
                self.hurry.wait(delay)
            return Reply(body)

        return answer


def start(ground: Ground, job_path: Path, job: object) -> subprocess.Popen[bytes]:
    job_path.write_text(job.model_dump_json(), encoding="utf-8")  # type: ignore[attr-defined]
    return subprocess.Popen(
        [sys.executable, "-m", "crawlers.child", str(job_path)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for(condition: object, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def test_killed_crawl_resumes_with_what_was_in_flight(tmp_path: Path) -> None:
    with serve() as site:
        slow = SlowSite(site, 30, quick=12, delay=60)
        names = slow.names
        ground = Ground.at(tmp_path)
        origin = source(site, per_host=3)
        limits = {"concurrency": 3}
        child = start(ground, tmp_path / "job.json", ground.job(origin, "run-1", settings=limits))
        wait_for(lambda: len(site.hits) >= 12)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        slow.hurry.set()
        finished = {path for path, fate in ground.fates().items() if fate[0] == "kept"}
        assert 3 <= len(finished) < 30

        stats = ground.crawl(origin, "run-2", settings=limits)
        assert stats.resumed
        fates = ground.fates()
        assert [fates[name] for name in names] == [("kept", "")] * 30
        twice = {name for name in names if site.count(name) > 1}
        assert not twice & finished
        assert len(twice) <= 3
        assert {row.run_id for row in ground.pages().values()} == {"run-1"}
        for row in ground.pages().values():
            assert row.url.removeprefix(site.base).encode() in read_payload(
                tmp_path, row.warc_file, row.warc_offset
            )


def test_cancelled_crawl_stops_cleanly_and_goes_on_later(tmp_path: Path) -> None:
    with serve() as site:
        slow = SlowSite(site, 20, quick=7, delay=1)
        names = slow.names
        ground = Ground.at(tmp_path)
        origin = source(site, per_host=2)
        stop = threading.Event()
        threading.Thread(
            target=lambda: (wait_for(lambda: len(site.hits) >= 7), stop.set()), daemon=True
        ).start()
        seen: list[tuple[int, int]] = []
        with pytest.raises(TransientError) as caught:
            run_crawl(
                ground.job(origin, settings={"concurrency": 2}),
                cancelled=stop.is_set,
                progress=lambda done, known: seen.append((done, known)),
            )
        assert caught.value.reason == "cancelled"
        slow.hurry.set()
        rows = ground.pages().values()
        assert not [row for row in rows if row.lease_holder not in ("", "due")]
        assert any(row.state == "kept" for row in rows)
        assert any(row.lease_holder == "due" for row in rows)
        assert seen
        assert all(done <= known for done, known in seen)
        ground.crawl(origin, "run-2")
        assert [ground.fates()[name][0] for name in names] == ["kept"] * 20
        assert all(site.count(name) == 1 for name in names)


def test_orphan_and_broken_job_are_errors(tmp_path: Path) -> None:
    with serve() as site:
        site.index("/a")
        ground = Ground.at(tmp_path)
        with pytest.raises(TransientError, match="is gone"):
            run_crawl(ground.job(source(site), parent_pid=1))
        assert "kept" not in {fate[0] for fate in ground.fates().values()}
        with pytest.raises(TransientError, match=r"no such|unable to open|cannot be opened"):
            run_crawl(ground.job(source(site), catalogue_url=f"sqlite:///{tmp_path}/none/none.db"))


def test_round_of_another_living_crawl_is_not_taken(tmp_path: Path) -> None:
    """A page claimed by a living process is left to it; one claimed by a dead process comes back."""
    ground = Ground.at(tmp_path)
    with serve() as site:
        origin = source(site)
        first = Frontier(ground.catalogue, origin, "run-1")
        first.open([Found(f"{site.base}/a", 0), Found(f"{site.base}/b", 0)])
        taken = first.claim()
        assert taken is not None
        second = Frontier(ground.catalogue, origin, "run-2")
        second.open([])
        other = second.claim()
        assert other is not None
        assert other.page_id != taken.page_id
        assert second.claim() is None
        with ground.catalogue.writing() as session:
            row = session.get(Page, taken.page_id)
            assert row is not None
            row.lease_holder = (
                row.lease_holder.rpartition("/")[0] + "/1"
            )  # a process that does not live any more
        third = Frontier(ground.catalogue, origin, "run-3")
        third.open([])
        again = third.claim()
        assert again is not None
        assert again.page_id == taken.page_id


def test_lowered_robots_and_gone_pages_after_several_refreshes(tmp_path: Path) -> None:
    with serve() as site:
        site.index("/a", "/b")
        site.page("/a", article("a"))
        site.page("/b", article("b"))
        ground = Ground.at(tmp_path)
        origin = source(site, tombstone_after=2)
        ground.crawl(origin, "run-1")
        site.page("/robots.txt", "User-agent: *\nDisallow: /b\n", content_type="text/plain")
        site.routes["/a"] = lambda hit: Reply(b"", 404)
        ground.crawl(origin, "run-2")
        assert ground.fates()["/a"] == ("kept", "stale")
        assert ground.fates()["/b"] == ("excluded", "robots")
        ground.crawl(origin, "run-3")
        assert ground.fates()["/a"] == ("gone", "http_404")


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_comes_back_in_time_is_not_gone_and_counts_from_the_start(
    tmp_path: Path, status: int
) -> None:
    with serve() as site:
        name = quote("/苯")
        site.index("/a", name)
        site.page("/a", article("a"))
        ground = Ground.at(tmp_path)
        origin = source(site, tombstone_after=2)
        found = []
        for number, there in enumerate((True, False, True, False, False)):
            if there:
                site.page(name, article("苯"))
            else:
                site.page(name, "", status=status)
            ground.crawl(origin, f"run-{number}")
            found.append(ground.fates()[name])
        assert found == [
            ("kept", ""),
            ("kept", "stale"),
            ("kept", ""),
            ("kept", "stale"),
            ("gone", f"http_{status}"),
        ]
        assert ground.fates()["/a"] == ("kept", "")

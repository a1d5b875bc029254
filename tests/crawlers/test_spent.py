"""What a crawl has used up and what a host has asked for hold over SIGKILL, the next run and another source."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import delete, select

from corpus.catalogue import Catalogue, database
from corpus.catalogue.tables import CrawlRound, HostPause, Lease, now
from corpus.errors import TransientError
from crawlers.pauses import LONGEST_S, Pauses, paused
from crawlers.runner import check_result
from crawlers.tdm import WELL_KNOWN
from tests.crawlers.helpers import Ground, source
from tests.crawlers.test_kill import kill, settled
from tests.crawlers.test_refresh import SlowSite, start, wait_for
from tests.servers.site import Hit, Reply, Site, article, serve

AWAY = Reply(b"later", 429, headers={"Retry-After": "3600"})
SIZE = 20_000


def pauses(ground: Ground) -> dict[str, float]:
    """Seconds that hosts are left alone for, by the catalogue."""
    with ground.catalogue.reading() as session:
        return {row.host: (row.until - now()).total_seconds() for row in session.scalars(select(HostPause))}


def spent(ground: Ground) -> int:
    """Bytes that the open round has received, by the catalogue."""
    with ground.catalogue.reading() as session:
        return session.scalars(select(CrawlRound.bytes_received)).one()


def large(site: Site, count: int, *, quick: int) -> SlowSite:
    """A site whose pages have ``SIZE`` bytes each; beyond ``quick`` requests they are waited for."""
    slow = SlowSite(site, count, quick=quick, delay=60)
    for name in slow.names:
        small = site.routes[name]
        site.routes[name] = lambda hit, small=small: Reply(small(hit).body.ljust(SIZE))  # type: ignore[misc]
    return slow


def test_retry_after_holds_over_a_kill_and_for_another_source(tmp_path: Path) -> None:
    with serve() as site:
        hurry = threading.Event()
        site.index("/a", "/b", "/c", "/d")

        def slowly(hit: Hit) -> Reply:
            hurry.wait(60)
            return Reply(article(hit.path).encode())

        site.fallback = slowly
        site.routes["/a"] = lambda hit: AWAY
        for path in ("/robots.txt", WELL_KNOWN):
            site.page(path, "none", status=404)
        ground = Ground.at(tmp_path)
        origin = source(site)
        child = start(ground, tmp_path / "job.json", ground.job(origin))
        wait_for(lambda: pauses(ground))
        kill(child)
        hurry.set()
        assert 3000 < pauses(ground)[site.netloc] <= 3600

        site.hits.clear()
        stats = ground.crawl(origin, "run-2")
        assert site.hits == []  # not even robots.txt
        assert stats.resumed
        assert list(stats.paused) == [site.netloc]
        fates = ground.fates()
        assert fates["/"] == ("kept", "")
        assert {fates[name] for name in ("/a", "/b", "/c", "/d")} == {("failed", "retry_after")}

        other = ground.crawl(source(site, name="other"), "run-3")
        assert site.hits == []
        with pytest.raises(TransientError, match=f"{site.netloc} is not to be asked before 20") as caught:
            check_result("other", other)
        assert caught.value.reason == "unreachable"

        with ground.catalogue.writing() as session:  # an hour later
            for row in session.scalars(select(HostPause)):
                row.until = now() - timedelta(seconds=1)
        site.page("/a", article("a"))
        stats = ground.crawl(origin, "run-4")
        assert stats.paused == {}
        assert stats.outcomes == {"kept": 4, "kept::search": 1}
        assert pauses(ground) == {}


@pytest.mark.parametrize("where", ["/p00", "/robots.txt", WELL_KNOWN])
def test_long_retry_after_closes_the_host_for_the_rest_of_the_run(tmp_path: Path, where: str) -> None:
    with serve() as site:
        names = [f"/p{number:02d}" for number in range(12)]
        site.index(*names)
        for name in names:
            site.page(name, article(name))
        site.routes[where] = lambda hit: AWAY
        ground = Ground.at(tmp_path)
        ground.crawl(source(site, per_host=1), settings={"concurrency": 1})
        last = [hit.path for hit in site.hits][-1]
        assert last == where or where.startswith("/p")
        assert site.count(where) == 1
        asked = sum(site.count(name) for name in names)
        refused = [fate for fate in ground.fates().values() if fate == ("failed", "retry_after")]
        assert asked <= 12 - len(refused) + 1
        assert refused
        kept = [fate for fate in ground.fates().values() if fate == ("kept", "")]
        assert len(kept) + len(refused) == len(ground.fates())


def test_bytes_of_the_killed_part_count(tmp_path: Path) -> None:
    with serve() as site:
        slow = large(site, 24, quick=9)
        ground = Ground.at(tmp_path)
        limit, at_once = 10 * SIZE, 2
        origin = source(site, per_host=at_once, max_total_bytes=limit)
        settings = {"concurrency": at_once}
        child = start(ground, tmp_path / "job.json", ground.job(origin, settings=settings))
        wait_for(lambda: len(site.hits) > 9)
        kill(child)
        before = len(settled(ground)) - 1  # the start page is small
        assert before >= 3
        assert spent(ground) >= before * SIZE
        slow.hurry.set()

        stats = ground.crawl(origin, "run-2", settings=settings)
        assert stats.resumed
        assert limit <= stats.bytes_received < limit + (at_once + 1) * SIZE
        fates = list(ground.fates().values())
        assert fates.count(("kept", "")) <= 1 + 10 + at_once
        assert fates.count(("excluded", "budget")) >= 24 - 10 - at_once
        assert ground.crawl(origin, "run-3", settings=settings).bytes_received >= SIZE  # a budget of its own


def test_pages_of_the_killed_part_count(tmp_path: Path) -> None:
    with serve() as site:
        slow = SlowSite(site, 24, quick=8, delay=60)
        ground = Ground.at(tmp_path)
        origin = source(site, per_host=2, max_pages=10)
        child = start(ground, tmp_path / "job.json", ground.job(origin, settings={"concurrency": 2}))
        wait_for(lambda: len(site.hits) > 8)
        kill(child)
        assert 3 <= len(settled(ground)) < 10
        slow.hurry.set()
        ground.crawl(origin, "run-2", settings={"concurrency": 2})
        fates = list(ground.fates().values())
        assert (fates.count(("kept", "")), fates.count(("excluded", "budget"))) == (10, 15)


def test_bytes_of_errors_repeats_and_refused_answers_count(tmp_path: Path) -> None:
    with serve() as site:
        site.index("/error", "/large")
        site.page("/error", b"e" * SIZE, status=500)
        site.page("/large", b"l" * 300_000, length=False)
        stats = Ground.at(tmp_path).crawl(source(site))
        assert site.count("/error") == 2
        assert stats.bytes_received > 2 * SIZE + 200_000  # the large one is given up at 200,000


def test_the_longest_pause_holds_and_no_host_closes_itself_for_ever(tmp_path: Path) -> None:
    catalogue = Ground.at(tmp_path).catalogue
    first = Pauses(catalogue)
    first.asked("https://Example.org/a", 600)
    first.asked("https://example.org/b", 5)
    first.asked("https://example.org:8443/", float("inf"))
    first.wait("https://brief.example.org/", 600)  # our own patience: of this process alone
    again = Pauses(catalogue)
    assert 500 < again.left("https://example.org/c") <= 600
    assert LONGEST_S - 100 < again.left("https://example.org:8443/") <= LONGEST_S
    assert first.left("https://brief.example.org/") > 500
    assert again.left("https://brief.example.org/") == again.left("http://example.com/") == 0
    until = paused(catalogue, "https://EXAMPLE.org/")
    assert until is not None
    assert until > now()
    assert paused(catalogue, "https://brief.example.org/") is None


def test_rounds_of_earlier_versions_go_on(tmp_path: Path) -> None:
    """A round that was interrupted under the schema before is resumed; the way back keeps it too."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/catalogue.db")
    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    config.attributes["engine"] = catalogue.engine
    command.downgrade(config, "0003")
    until = now() + timedelta(days=6)
    with catalogue.writing() as session:
        session.add(Lease(resource="crawl:wikipedia-zh", holder="run-7", expires_at=until))
        session.add(Lease(resource="run", holder="a|1|1|b", expires_at=until))
    command.upgrade(config, "0004")
    with catalogue.reading() as session:
        row = session.scalars(select(CrawlRound)).one()
        assert (row.source, row.round_id, row.bytes_received) == ("wikipedia-zh", "run-7", 0)
        assert row.began_at == until - timedelta(days=7)
        assert [lease.resource for lease in session.scalars(select(Lease))] == ["run"]
    command.downgrade(config, "0003")
    with catalogue.writing() as session:
        assert session.get_one(Lease, "crawl:wikipedia-zh").expires_at == until
        session.execute(delete(Lease))
    command.upgrade(config, "head")

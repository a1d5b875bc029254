"""Whole crawls of a faulty site: every URL ends with a recorded outcome and reason."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.archive import iterate_records, read_payload
from corpus.errors import TerminalError, TransientError
from crawlers.job import CrawlStats
from crawlers.runner import check_result
from crawlers.tdm import WELL_KNOWN
from tests.crawlers.helpers import Ground, source
from tests.servers.site import Reply, Site, article, links, serve

GBK_PAGE = "<html><body><h1>苯</h1><p>闪点:-11 °C</p></body></html>".encode("gb18030")


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def build(site: Site, other: Site) -> None:
    """One site with everything that can go wrong on a page."""
    site.page(
        "/robots.txt", "User-agent: *\nDisallow: /closed\nAllow: /closed/open\n", content_type="text/plain"
    )
    for path in ("/good", "/closed/open", "/closed/secret", "/copy"):
        site.page(path, article("Methanol"))
    site.page("/gbk", GBK_PAGE, content_type="text/html; charset=GB2312")
    site.page("/plain-type", article("no type"), content_type="")
    site.page("/pdf", b"%PDF-1.4 made up", content_type="application/pdf")
    site.page("/image", b"\x89PNG" + b"0" * 50_000, content_type="image/png")
    site.page("/empty", b"")
    site.page("/zipped", gzip.compress(article("Zipped").encode()), headers={"Content-Encoding": "gzip"})
    site.page("/bomb", gzip.compress(b"<p>0</p>" * 2_000_000), headers={"Content-Encoding": "gzip"})
    site.page("/large", b"x" * 300_000)
    site.page("/large-unsaid", b"x" * 300_000, length=False)
    site.page("/drip", b"y" * 1000, drip=0.05)
    site.page("/torn", b"z" * 1000, torn=10)
    site.page("/gone", "bye", status=410)
    site.page("/forbidden", "no", status=403)
    site.series("/wobbly", Reply(b"", 500), Reply(article("Wobbly").encode()))
    site.page("/broken", "", status=500)
    site.series("/busy", Reply(b"", 503, headers={"Retry-After": "1"}), Reply(article("Busy").encode()))
    site.redirect("/moved", "/good", 301)
    site.redirect("/loop-a", "/loop-b")
    site.redirect("/loop-b", "/loop-a")
    site.redirect("/self", "/self")
    for number in range(8):
        site.redirect(f"/chain-{number}", f"/chain-{number + 1}")
    site.redirect("/to-file", "file:///etc/passwd")
    site.redirect("/to-metadata", "http://169.254.169.254/latest/meta-data/")
    site.redirect("/to-other", f"{other.base}/stolen")
    site.redirect("/nowhere", "")
    site.page("/noindex", '<html><head><meta name="robots" content="noindex"></head><body>x</body></html>')
    site.page("/header-noindex", article("x"), headers={"X-Robots-Tag": "noarchive, noindex"})
    site.page("/tracked", article("Tracked"))
    site.page("/nofollow", '<html><body><a rel="nofollow" href="/unseen">x</a></body></html>')
    site.page("/long", links("/" + "a" * 2500))
    site.index(
        *[path for path in site.routes if path not in ("/robots.txt", "/chain-7", "/tracked")],
        "/missing",
        "/tracked?utm_source=news#top",
        f"{other.base}/never",
        "mailto:someone@example.org",
        "javascript:alert(1)",
        "ftp://ftp.example.org/x",
        "http://[broken/",
    )


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ground, Site, Site, CrawlStats]]:
    with serve() as site, serve() as other:
        build(site, other)
        ground = Ground.at(tmp_path_factory.mktemp("faulty"))
        stats = ground.crawl(source(site, tombstone_after=3), settings={"timeout_s": 5.0})  # for "/drip"
        yield ground, site, other, stats


def test_every_url_has_its_outcome(crawled: tuple[Ground, Site, Site, CrawlStats]) -> None:
    ground, *_ = crawled
    fates = ground.fates()
    expected = {
        "/": ("kept", ""),
        "/good": ("kept", ""),
        "/copy": ("kept", ""),
        "/closed/open": ("kept", ""),
        "/closed/secret": ("excluded", "robots"),
        "/gbk": ("kept", ""),
        "/plain-type": ("kept", ""),
        "/pdf": ("kept", ""),
        "/image": ("excluded", "type"),
        "/empty": ("failed", "empty"),
        "/zipped": ("kept", ""),
        "/bomb": ("excluded", "too_large"),
        "/large": ("excluded", "too_large"),
        "/large-unsaid": ("excluded", "too_large"),
        "/drip": ("failed", "timeout"),
        "/torn": ("failed", "cut_short"),
        "/gone": ("gone", "http_410"),
        "/missing": ("gone", "http_404"),
        "/forbidden": ("failed", "http_403"),
        "/wobbly": ("kept", ""),
        "/broken": ("failed", "http_500"),
        "/busy": ("kept", ""),
        "/moved": ("excluded", "redirect"),
        "/self": ("failed", "redirect_loop"),
        "/to-file": ("excluded", "guard"),
        "/to-metadata": ("excluded", "offsite"),
        "/to-other": ("excluded", "offsite"),
        "/nowhere": ("failed", "bad_redirect"),
        "/noindex": ("excluded", "noindex"),
        "/header-noindex": ("excluded", "noindex"),
        "/tracked": ("kept", ""),
        "/nofollow": ("kept", ""),
        "/long": ("kept", ""),
        "/" + "a" * 2500: ("excluded", "url_too_long"),
    }
    assert {path: fates.get(path) for path in expected} == expected
    assert {fates["/loop-a"], fates["/loop-b"]} == {("excluded", "redirect"), ("failed", "redirect_loop")}
    assert fates["/chain-7"] == ("excluded", "redirect")
    assert "/unseen" not in fates
    assert not [fate for fate in fates.values() if fate[0] in ("queued", "claimed")]


def test_nothing_forbidden_was_asked_for(crawled: tuple[Ground, Site, Site, CrawlStats]) -> None:
    _, site, other, _ = crawled
    assert site.count("/closed/secret") == 0
    assert site.count("/robots.txt") == 1
    assert other.hits == []
    assert site.count("/tracked") == 1
    agents = {hit.headers["user-agent"] for hit in site.hits}
    assert agents == {"HChemSafety/0.1 (chemical safety knowledge base; contact: local use only)"}
    assert not [hit for hit in site.hits if "referer" in hit.headers or "cookie" in hit.headers]


def test_retry_after_is_waited_for(crawled: tuple[Ground, Site, Site, CrawlStats]) -> None:
    _, site, *_ = crawled
    times = [hit.at for hit in site.hits if hit.path == "/busy"]
    assert len(times) == 2
    assert times[1] - times[0] >= 1.0
    assert site.count("/broken") == 2


def test_payloads_headers_and_archive(crawled: tuple[Ground, Site, Site, CrawlStats]) -> None:
    ground, *_ = crawled
    pages = ground.pages()
    gbk = pages["/gbk"]
    assert read_payload(ground.folder, gbk.warc_file, gbk.warc_offset) == GBK_PAGE
    assert (gbk.charset, gbk.content_type, gbk.status) == ("gb2312", "text/html; charset=GB2312", 200)
    zipped = pages["/zipped"]
    assert b"Zipped" in read_payload(ground.folder, zipped.warc_file, zipped.warc_offset)
    assert zipped.payload_bytes == len(article("Zipped").encode())
    assert (pages["/good"].warc_file, pages["/good"].warc_offset) == (
        pages["/copy"].warc_file,
        pages["/copy"].warc_offset,
    )
    records = list(iterate_records(ground.folder / gbk.warc_file))
    assert sum(record.type == "revisit" for record in records) == 2  # three pages are the same bytes
    assert pages["/to-file"].warc_file == ""


def test_budgets_hold_on_floods_and_endless_calendars(tmp_path: Path) -> None:
    with serve() as site:
        site.index("/flood", "/calendar?day=0")
        site.page("/flood", links(*(f"/item/{number}" for number in range(10_000))))

        def calendar(hit: object) -> Reply:
            day = int(str(getattr(hit, "path", "")).rpartition("=")[2] or 0)
            return Reply(links(f"/calendar?day={day + 1}").encode())

        site.routes["/calendar"] = calendar
        site.fallback = lambda hit: Reply(article(hit.path).encode())
        ground = Ground.at(tmp_path)
        limits = {"max_bytes": 2_000_000, "timeout_s": 60}  # a slow machine must not ask twice
        stats = ground.crawl(source(site, depth=4, max_pages=40), settings=limits)
        rows = ground.pages()
        asked = [hit for hit in site.hits if hit.path not in ("/robots.txt", WELL_KNOWN)]
        assert len(asked) == 40
        assert stats.links_over_limit == 8000
        over = [row for row in rows.values() if row.reason == "budget"]
        assert len(over) == len(rows) - 40
        assert all(row.state == "excluded" and row.lease_holder == "" for row in over)
        assert "/calendar?day=5" not in rows


def test_first_level_decides_which_pages_fit_the_budget(tmp_path: Path) -> None:
    """Budgets cut at the same place whatever the answers' order."""
    taken = []
    for attempt in range(2):
        with serve() as site:
            names = [f"/p{number}" for number in range(30)]
            site.index(*names)
            for number, name in enumerate(names):
                delay = 0.01 * ((number * 7 + attempt * 13) % 5)
                site.page(name, article(name), delay=delay)
            (tmp_path / str(attempt)).mkdir()
            ground = Ground.at(tmp_path / str(attempt))
            origin = source(
                site, max_pages=10, base="http://flood.test", hosts=["flood.test"], private_hosts=["x"]
            )
            ground.crawl(origin, dial={"http://flood.test": site.base})
            taken.append(sorted(path for path, fate in ground.fates().items() if fate[0] == "kept"))
    assert taken[0] == taken[1]
    assert len(taken[0]) == 10


@pytest.mark.parametrize(
    ("status", "error", "reason"), [(200, TerminalError, "robots"), (503, TransientError, "unreachable")]
)
def test_blocked_crawl_is_an_error(tmp_path: Path, status: int, error: type[Exception], reason: str) -> None:
    with serve() as site:
        site.index("/a")
        site.page("/a", article("a"))
        site.page("/robots.txt", "User-agent: *\nDisallow: /\n", status=status, content_type="text/plain")
        ground = Ground.at(tmp_path)
        stats = ground.crawl(source(site))
        assert site.count("/") == 0
        with pytest.raises(error) as caught:
            check_result("test", stats)
        assert getattr(caught.value, "reason", "") == reason


def test_robots_error_page_is_no_rules_and_crawl_delay_is_kept(tmp_path: Path) -> None:
    with serve() as site, serve() as slow:
        site.page("/robots.txt", "User-agent: *\nDisallow: /\n", status=404)
        site.index("/a")
        site.page("/a", article("a"))
        (tmp_path / "one").mkdir()
        ground = Ground.at(tmp_path / "one")
        ground.crawl(source(site))
        assert ground.fates() == {"/": ("kept", ""), "/a": ("kept", "")}
        slow.page("/robots.txt", "User-agent: HChemSafety\nCrawl-delay: 0.5\n", content_type="text/plain")
        slow.index("/a", "/b", "/c")
        for name in ("/a", "/b", "/c"):
            slow.page(name, article(name))
        (tmp_path / "two").mkdir()
        Ground.at(tmp_path / "two").crawl(source(slow, autothrottle=True))
        times = [hit.at for hit in slow.hits]
        # the mean, since a busy machine may notice a single request late; half of the delay is Scrapy's least
        assert (times[-1] - times[1]) / (len(times) - 2) >= 0.24


def test_host_that_is_down_is_left_alone_and_private_names_are_refused(tmp_path: Path) -> None:
    with serve() as site:
        site.index(*(f"/e{number}" for number in range(20)))
        site.fallback = lambda hit: Reply(b"", 500)
        site.page("/robots.txt", "", status=404)
        (tmp_path / "one").mkdir()
        ground = Ground.at(tmp_path / "one")
        ground.crawl(source(site, per_host=1), settings={"breaker": 3, "concurrency": 1})
        assert len([hit for hit in site.hits if hit.path.startswith("/e")]) <= 4
        assert list(ground.fates().values()).count(("failed", "host_down")) >= 18
        (tmp_path / "two").mkdir()
        refused = Ground.at(tmp_path / "two")
        port = site.netloc.rpartition(":")[2]
        hits = len(site.hits)
        origin = source(site, base=f"http://localhost:{port}", private_hosts=["elsewhere"])
        refused.crawl(origin)
        origin = source(site, name="named", base="http://localhost", private_hosts=["elsewhere"])
        refused.crawl(origin)
        assert len(site.hits) == hits
        assert set(refused.fates().values()) == {("excluded", "guard")}


def test_unreachable_site_is_transient(tmp_path: Path) -> None:
    site = Site()
    site.netloc = f"127.0.0.1:{closed_port()}"
    site.base = f"http://{site.netloc}"
    began = time.monotonic()
    stats = Ground.at(tmp_path).crawl(source(site))
    with pytest.raises(TransientError, match="no page"):
        check_result("test", stats)
    assert time.monotonic() - began < 120

"""Sitemaps (index, gzip, lastmod), result lists with pages, budgets of bytes."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from corpus.archive import iterate_records
from crawlers.links import read_sitemap
from tests.crawlers.helpers import Ground, source
from tests.servers.site import Site, article, links, serve

OLD, FUTURE = "2020-01-02T03:04:05+00:00", "2999-01-01"


def urlset(site: Site, **paths: str) -> bytes:
    entries = "".join(
        f"<url><loc>{site.base}/{path}</loc>{f'<lastmod>{moment}</lastmod>' if moment else ''}</url>"
        for path, moment in paths.items()
    )
    head = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f"{head}{entries}</urlset>".encode()


def index(*addresses: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    head = '<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f"{head}{entries}</sitemapindex>".encode()


def build(site: Site) -> None:
    xml = {"content_type": "application/xml"}
    site.page(
        "/robots.txt",
        f"User-agent: *\nDisallow:\nSitemap: {site.base}/index.xml\n",
        content_type="text/plain",
    )
    site.page("/index.xml", index(*(f"{site.base}/{name}" for name in ("a.xml", "b.xml.gz", "bad.xml", "self.xml")), "http://elsewhere.example/c.xml"), **xml)  # fmt: skip
    site.page("/a.xml", urlset(site, old=OLD, new=FUTURE, plain="", day="2020-01-02", odd="soon"), **xml)
    packed = gzip.compress(urlset(site, packed=OLD))
    site.page("/b.xml.gz", packed, content_type="application/gzip")
    site.page("/bad.xml", "<html>this is no sitemap</html>", **xml)
    site.page("/self.xml", index(f"{site.base}/self2.xml"), **xml)
    site.page("/self2.xml", index(f"{site.base}/self3.xml"), **xml)
    for name in ("old", "new", "plain", "day", "odd", "packed", "linked"):
        site.page(f"/{name}", article(name) + '<a href="/linked">x</a>')


def test_sitemaps_and_their_lastmod(tmp_path: Path) -> None:
    with serve() as site:
        build(site)
        ground = Ground.at(tmp_path)
        hinted = source(site, start=[], use_sitemaps=True, trust_lastmod=True, complete=True)
        ground.crawl(hinted, "run-1")
        first = ground.fates()
        pages = ("/old", "/new", "/plain", "/day", "/odd", "/packed", "/linked")
        assert {first[path] for path in pages} == {("kept", "")}
        assert first["/bad.xml"] == ("failed", "sitemap")
        assert ("failed", "sitemap") in (first["/self.xml"], first["/self2.xml"])
        assert not [path for path in first if "elsewhere" in path]
        site.page("/bad.xml", urlset(site), content_type="application/xml")
        visited = {path: ground.pages()[path].visited_at for path in pages}

        site.hits.clear()
        stats = ground.crawl(hinted, "run-2")
        assert {path: site.count(path) for path in pages} == {
            "/old": 0, "/new": 1, "/plain": 1, "/day": 0, "/odd": 1, "/packed": 0, "/linked": 1,
        }  # fmt: skip
        rows = ground.pages()
        assert {ground.fates()[path] for path in pages} == {("kept", "")}
        assert {rows[path].run_id for path in pages} == {"run-2"}
        assert rows["/old"].visited_at == visited["/old"]  # it was not asked for
        assert rows["/new"].visited_at != visited["/new"]
        assert stats.unchanged >= len(pages)

        site.hits.clear()
        ground.crawl(hinted.model_copy(update={"trust_lastmod": False}), "run-3")
        assert {site.count(path) for path in pages} == {1}

        site.page("/a.xml", urlset(site, old=FUTURE, day=OLD), content_type="application/xml")
        site.page("/robots.txt", f"User-agent: *\nDisallow: /day\nSitemap: {site.base}/index.xml\n", content_type="text/plain")  # fmt: skip
        site.hits.clear()
        ground.crawl(hinted, "run-4")
        assert (site.count("/old"), site.count("/day")) == (1, 0)
        assert ground.fates()["/day"] == ("excluded", "robots")  # a hint does not go before robots.txt


def test_lastmod_of_a_day_is_its_end_everywhere() -> None:
    def lastmod(text: str) -> datetime | None:
        body = f"<urlset><url><loc>http://a.example/x</loc><lastmod>{text}</lastmod></url></urlset>".encode()
        return read_sitemap(body, "http://a.example/")[1][0].lastmod

    assert lastmod("2024-05-06") == datetime(2024, 5, 7, 12, tzinfo=UTC)
    assert lastmod(" 2024-05-06T07:08:09+08:00 ") == datetime(2024, 5, 5, 23, 8, 9, tzinfo=UTC)
    assert lastmod("2024-05-06T07:08Z") == datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
    assert [lastmod(odd) for odd in ("2024", "last week", "0001-01-01T00:00:00+14:00", "9999-12-31")] == [
        None
    ] * 4


def test_result_lists_are_followed_page_by_page(tmp_path: Path) -> None:
    """A search result of three pages; its navigation and its filters are not followed."""
    with serve() as site:
        for number in (1, 2, 3):
            hits = links(
                *(f"/chemical/{number}{digit}" for digit in range(3)), "/help", "/login?to=/chemical/1"
            )
            further = (
                f'<a class="next" href="/search?q=benzene&page={number + 1}">next</a>' if number < 3 else ""
            )
            sort = '<a href="/search?q=benzene&sort=price">cheapest</a>'
            site.page(f"/search-{number}", hits + further + sort)
        pages = {f"{number}": site.routes[f"/search-{number}"] for number in (1, 2, 3)}
        site.routes["/search"] = lambda hit: pages[parse_qs(urlsplit(hit.path).query).get("page", ["1"])[0]](
            hit
        )
        for number in (1, 2, 3):
            for digit in range(3):
                site.page(f"/chemical/{number}{digit}", article(f"{number}{digit}"))
        ground = Ground.at(tmp_path)
        origin = source(
            site,
            start=[],
            query_links=["/search?q={name}"],
            listing=[r"^/search\?"],
            follow_listing=[r"^/chemical/\d+$", r"^/search\?page=\d+&q=[^&]*$"],
            follow_content=[],
            depth=3,
        )
        seeds = [(f"{site.base}/search?q=benzene", "search", ["71-43-2"])]
        ground.crawl(origin, seeds=seeds)
        rows = ground.pages()
        content = {path for path, row in rows.items() if row.role == "content"}
        assert content == {f"/chemical/{number}{digit}" for number in (1, 2, 3) for digit in range(3)}
        assert all(rows[path].chemicals == ["71-43-2"] for path in content)
        assert {path for path, row in rows.items() if row.role == "search"} == {
            "/search?q=benzene", "/search?page=2&q=benzene", "/search?page=3&q=benzene",
        }  # fmt: skip


def test_bytes_of_a_run_are_limited(tmp_path: Path) -> None:
    with serve() as site:
        names = [f"/p{number}" for number in range(10)]
        site.index(*names)
        for name in names:
            site.page(name, article(name) + "x" * 10_000)
        ground = Ground.at(tmp_path)
        ground.crawl(source(site, max_total_bytes=25_000, per_host=1), settings={"concurrency": 1})
        fates = list(ground.fates().values())
        kept = fates.count(("kept", ""))
        assert 1 + 3 <= kept <= 1 + 4  # one more may be on its way when the limit is passed
        assert fates.count(("excluded", "budget")) == 11 - kept
        over = [row.detail for row in ground.pages().values() if row.reason == "budget"]
        assert set(over) == {"over 25000 bytes"}


def test_certificates_are_checked(tmp_path: Path) -> None:
    """A self-signed certificate is a failure with its reason, and nothing is taken."""
    with serve(tls=True) as site:
        site.index("/a")
        ground = Ground.at(tmp_path)
        ground.crawl(source(site))
        state, reason = ground.fates()["/"]
        assert (state, reason) in {("failed", "robots_unavailable"), ("failed", "certificate")}
        assert "certificate" in ground.pages()["/"].detail.lower()
        assert site.hits == []
        assert not [record for path in (tmp_path / "warc").glob("*") for record in iterate_records(path)]

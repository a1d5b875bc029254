"""The crawlers' pure parts: addresses, sources, query links, robots, sitemaps, headers."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from service_identity import VerificationError
from service_identity.exceptions import DNSMismatch
from service_identity.hazmat import DNS_ID

from corpus.errors import SettingsError
from corpus.urls import canonical_url
from crawlers.guards import Guard, is_public
from crawlers.headers import charset_of, clean_value, media_type, reservation, robots_tags
from crawlers.job import join_password, split_password, to_dial, to_public
from crawlers.links import listed_results, read_html, read_sitemap
from crawlers.middlewares import retry_after
from crawlers.outcomes import Refused, of_error
from crawlers.patterns import SlowPattern
from crawlers.reading import unfinished
from crawlers.robots import read_rules
from crawlers.sample_site import read_manifest
from crawlers.settings import CrawlSettings
from crawlers.sources import Named, Source, Verdict, enabled_sources, load_sources, query_links, sample_folder
from crawlers.tdm import read_reservations

BENZENE = Named("71-43-2", "71-43-2", (("benzene", "en"), ("苯", "zh"), ("benzene", "en")))
MINTED = Named("x-1", None, (("mystery", "en"),))


def a_source(**changes: Any) -> Source:
    fields: dict[str, Any] = {
        "name": "s", "title": "S", "kind": "site", "languages": ["en", "zh"], "licence": "x",
        "base": "https://example.org", "query_links": ["/q?name={name}"],
    }  # fmt: skip
    return Source.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1:248:1893:25c8:1946", True), ("127.0.0.1", False),
        ("10.1.2.3", False), ("172.16.0.1", False), ("192.168.1.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False), ("239.255.255.250", False),
        ("255.255.255.255", False), ("::1", False), ("::", False), ("fe80::1%eth0", False), ("fc00::1", False),
        ("ff02::1", False), ("::ffff:127.0.0.1", False), ("::ffff:10.0.0.1", False), ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False), ("2002:0a00:0001::", False), ("not an address", False),
    ],
)  # fmt: skip
def test_only_global_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "http://user:pw@example.org/",
        "http://example.org:22/", "http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://0x7f.1/",
        "http://localhost/", "http://" + "a" * 3000 + ".org/", "http:///x", "http://[bad/",
    ],
)  # fmt: skip
def test_guard_refuses(url: str) -> None:
    with pytest.raises(Refused):
        asyncio.run(Guard().check(url))


def test_guard_lets_named_hosts_through_and_pins_what_it_checked() -> None:
    guard = Guard(["127.0.0.1:8123"])
    asyncio.run(guard.check("http://127.0.0.1:8123/x"))
    assert guard.addresses("127.0.0.1") == ["127.0.0.1"]
    assert guard.addresses("example.org") == []
    with pytest.raises(Refused):
        asyncio.run(guard.check("http://127.0.0.1:8124/x"))


def test_shipped_sources_are_valid_and_only_the_sample_is_enabled() -> None:
    sources = load_sources(CrawlSettings())
    assert {"sample", "wikipedia-en", "wikipedia-zh", "pubchem", "cameo", "niosh-npg", "icsc", "echa", "europe-pmc", "chemicalbook-zh"} <= set(sources)  # fmt: skip
    assert [source.name for source in enabled_sources(CrawlSettings())] == ["sample"]
    for source in sources.values():
        assert source.licence
        links = query_links(source, [BENZENE])
        assert bool(links) == bool(source.query_links)
        assert all(source.belongs(link.url) for link in links)
        if source.query_role == "search":
            assert {source.role(link.url) for link in links} <= {"search"}


def test_results_of_documented_interfaces_become_addresses() -> None:
    pubchem = load_sources(CrawlSettings())["pubchem"]
    found = listed_results("241\n243\n", pubchem.results_pattern, pubchem.results_template)
    assert [pubchem.follows(canonical_url(pubchem.absolute(one)), listing=True) for one in found] == [
        True,
        True,
    ]


def test_query_links_are_deduplicated_encoded_and_ordered() -> None:
    links = query_links(
        a_source(query_links=["/q?name={name}", "/q?name={name}", "/c/{cas}"]), [MINTED, BENZENE]
    )
    assert [(link.chemical, link.url) for link in links] == [
        ("71-43-2", "https://example.org/c/71-43-2"),
        ("71-43-2", "https://example.org/q?name=%E8%8B%AF"),
        ("71-43-2", "https://example.org/q?name=benzene"),
        ("x-1", "https://example.org/q?name=mystery"),
    ]
    gbk = query_links(a_source(query_links=["/q?w={name_zh}"], charset="gb18030"), [BENZENE])
    assert [link.url for link in gbk] == ["https://example.org/q?w=%B1%BD"]
    latin = query_links(a_source(charset="latin-1"), [BENZENE])
    assert [link.url for link in latin] == ["https://example.org/q?name=benzene"]


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_any_name_gives_canonical_links(names: list[str]) -> None:
    named = Named("k", None, tuple((name, "zh") for name in names if name.isprintable()))
    for link in query_links(a_source(), [named]):
        assert canonical_url(link.url) == link.url


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_links": ["/x?{nonsense}"]}, "template"), ({"query_links": ["/x"]}, "template"),
        ({"query_links": ["/{name}{"]}, "template"), ({"base": "file:///x"}, "http"), ({"charset": "nope"}, "charset"),
        ({"deny": ["("]}, "regular expression"), ({"query_links": []}, "needs query_links"), ({"speed": 3}, "speed"),
        ({"results_css": "###"}, "CSS selector"), ({"results_pattern": "(x)", "results_template": "/{2}"}, "has 1"),
        ({"results_pattern": "x"}, "belong together"), ({"delay": 3}, "did you mean delay_s"),
        ({"speed": 3}, "fields: name, title"), ({"kind": "shop"}, "'platform', 'encyclopedia', 'database'"),
        ({"query_role": "list"}, "'content', 'search' or 'sitemap'"), ({"name": "Mine!"}, "lower-case letters"),
        ({"per_host": 99}, "per_host: .*less than or equal to 16"), ({"depth": "deep"}, "depth: .*integer"),
        ({"languages": []}, "languages"), ({"licence": None}, "licence is missing .Licence of the content"),
    ],
)  # fmt: skip
def test_wrong_source_is_said_with_its_place(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    import json

    fields = {"name": "mine", "title": "M", "kind": "site", "languages": ["en"], "licence": "x",
              "base": "https://example.org", "query_links": ["/{name}"]} | change  # fmt: skip
    path = tmp_path / "own.toml"
    rows = "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items() if value is not None)
    path.write_text(f"[[source]]\n{rows}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=message) as caught:
        load_sources(CrawlSettings(sources_file=path))
    assert "own.toml" in str(caught.value)
    assert str(fields["name"]) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contact": "a\nb"}, "contact goes into the user agent"), ({"contact": "a\x7f"}, "one line of ASCII"),
        ({"contact": "某人@example.org"}, "one line of ASCII"), ({"user_agent": "x\ty"}, "one line of ASCII"),
        ({"content_types": []}, "no page would be taken"), ({"content_types": ["html"]}, "'html' is no media type"),
    ],
)  # fmt: skip
def test_wrong_crawl_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CrawlSettings.model_validate(change)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_every_time_of_the_crawl_is_finite(value: str) -> None:
    names = [name for name, field in CrawlSettings.model_fields.items() if field.annotation is float]
    assert len(names) >= 5
    for name in names:
        with pytest.raises(ValidationError, match=name):
            CrawlSettings.model_validate({name: float(value)})


def test_right_crawl_settings_are_taken() -> None:
    mine = CrawlSettings(contact=" ops@example.org ", content_types=("Text/HTML", "application/xhtml+xml"))
    assert (mine.contact, mine.content_types) == ("ops@example.org", ("text/html", "application/xhtml+xml"))
    assert "contact: ops@example.org)" in mine.agent()
    assert CrawlSettings().contact == ""


def test_robots_statuses() -> None:
    forbids = b"User-agent: *\nDisallow: /\n"
    assert not read_rules(200, forbids).allowed("http://a.example/x", "HChemSafety")
    assert read_rules(404, forbids).allowed("http://a.example/x", "HChemSafety")
    assert read_rules(403, forbids).allowed("http://a.example/x", "HChemSafety")
    for status in (429, 500, 503):
        assert not read_rules(status, b"").allowed("http://a.example/x", "HChemSafety")
    rules = read_rules(
        200, b"\xef\xbb\xbfUser-agent: HChemSafety\nDisallow: /a\nAllow: /a/b\nCrawl-delay: 2\n"
    )
    assert not rules.allowed("http://a.example/a", "HChemSafety")
    assert rules.allowed("http://a.example/a/b", "HChemSafety")
    assert rules.delay("HChemSafety") == 2.0


def test_sitemaps_index_gzip_text_and_nonsense() -> None:
    urlset = (
        b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>/a</loc>'
    )
    urlset += b"<lastmod>2024-05-06</lastmod></url><url><loc>http://a.example/b#x</loc></url></urlset>"
    is_index, entries = read_sitemap(gzip.compress(urlset), "http://a.example/sitemap.xml")
    assert not is_index
    assert [entry.url for entry in entries] == ["http://a.example/a", "http://a.example/b"]
    assert entries[0].lastmod is not None
    index = b"<sitemapindex><sitemap><loc>http://a.example/1.xml</loc></sitemap></sitemapindex>"
    assert read_sitemap(index, "http://a.example/")[0]
    assert len(read_sitemap(b"http://a.example/x\nhttp://a.example/y\n", "http://a.example/")[1]) == 2
    for bad in (b"<html><body>no</body></html>", b"\x1f\x8bnot gzip", b"<"):
        with pytest.raises(ValueError):
            read_sitemap(bad, "http://a.example/")
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><url><loc>http://a.example/&b;</loc></url></urlset>'
    assert all("aaaa" not in entry.url for entry in read_sitemap(bomb, "http://a.example/")[1])


def test_html_hints() -> None:
    page = """<html><head><base href="/dir/"><meta name="ROBOTS" content="NoIndex, follow">
    <link rel="Canonical" href="/real"></head><body><div id=r><a href="a?b=1&amp;a=2#f">1</a><a href="苯">2</a></div>
    <a rel="nofollow" href="/no">3</a><a href="javascript:x()">4</a><a href="//b.example/p">5</a></body></html>"""
    hints = read_html(page.encode("gb18030"), "http://a.example/x", "gb18030")
    assert hints.links == (
        "http://a.example/dir/a?a=2&b=1",
        "http://a.example/dir/%E8%8B%AF",
        "http://b.example/p",
    )
    assert (hints.canonical, hints.noindex, hints.nofollow) == ("http://a.example/real", True, False)
    assert len(read_html(page.encode(), "http://a.example/x", "utf-8", "#r").links) == 2
    late = b"<html><body><a href=/a>x</a></body></html><a href=/b>y</a><html><body><a href=/c>z</a></body></html>"
    assert read_html(late, "http://a.example/").links == tuple(f"http://a.example/{name}" for name in "abc")
    for bad in (b"", b"\x00\x00", b"<" * 1000, b"<div>" * 5000):
        assert read_html(bad, "http://a.example/").links == ()


def test_header_values() -> None:
    assert charset_of('text/html; boundary=x; CHARSET="GB2312"') == "gb2312"
    assert charset_of("text/html") == ""
    assert media_type(" Text/HTML ; charset=x") == "text/html"
    assert robots_tags(["googlebot: noindex, nofollow"], "HChemSafety") == (False, False)
    assert robots_tags(["googlebot: noindex", "nofollow"], "HChemSafety") == (False, True)
    assert robots_tags(["hchemsafety: noindex"], "HChemSafety") == (True, False)
    assert robots_tags(["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], "HChemSafety")[0]
    assert robots_tags(["none"], "HChemSafety") == (True, True)
    assert [reservation(one) for one in (["1"], [" 0 "], [], ["x"], ["0", "1"])] == [
        True,
        False,
        None,
        None,
        True,
    ]
    assert clean_value("a\x00b\r\nc ") == "abc"
    assert clean_value("e" * 5000) == ""
    assert retry_after("120") == 120
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    for odd in ("soon", "", "²", "-5", "1.5", "Wed, 99 Oct 2015", "Mon, 01 Jan 99999 00:00:00 GMT", "\x00"):
        assert retry_after(odd) is None
    assert retry_after("9" * 400) == float("inf")


def test_addresses_are_swapped_only_at_their_base() -> None:
    dial = {"http://sample.test": "http://127.0.0.1:1"}
    assert to_dial("http://sample.test/a?b", dial) == "http://127.0.0.1:1/a?b"
    assert to_dial("http://sample.test.evil/a", dial) == "http://sample.test.evil/a"
    assert to_public("http://127.0.0.1:1", dial) == "http://sample.test"
    assert to_public("http://127.0.0.1:12/a", dial) == "http://127.0.0.1:12/a"


def test_password_is_not_in_the_job_file() -> None:
    url = "postgresql+psycopg://me:s%40cret@db.example/x"
    bare, password = split_password(url)
    assert "cret" not in bare
    assert join_password(bare, password) == url
    assert split_password("sqlite:////tmp/a b.db") == ("sqlite:////tmp/a b.db", "")


def test_sample_manifest_matches_its_files() -> None:
    folder = sample_folder(CrawlSettings())
    pages = read_manifest(folder)
    assert len(pages) >= 60
    assert not [page.path for page in pages if not page.file.is_file()]
    assert all(page.licence for page in pages)
    assert len({canonical_url("http://sample.test" + page.path) for page in pages}) == len(pages)


def test_stage_does_not_load_scrapy() -> None:
    """The flows import the stage; the crawler itself is loaded in the child process only."""
    code = (
        "import sys, crawlers.stage; sys.exit('scrapy' in sys.modules or 'twisted.internet' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_hosts_are_compared_in_one_spelling() -> None:
    own = a_source(base="http://例子.test:80", hosts=[], start=["/苯"])
    assert own.allowed_hosts == frozenset({"xn--fsqu00a.test"})
    assert own.belongs("http://xn--fsqu00a.test/x")
    assert own.belongs("http://例子.TEST./x")
    assert not own.belongs("http://例子.test:8080/x")
    assert own.verdict("http://x.example/", listing=True).reason == "host"
    denying = a_source(deny=["^/a"], follow_listing=["^/b", "^/a"])
    assert denying.verdict("https://example.org/a", listing=True).rule == "deny ^/a"
    assert denying.verdict("https://example.org/b", listing=True).rule == "follow_listing ^/b"
    assert denying.verdict("https://example.org/b", listing=False) == Verdict(
        False, "pattern", "follow_content is empty"
    )


def test_reservations_of_a_host() -> None:
    rules = read_reservations(
        200,
        b'[{"location": "/a/open", "tdm-reservation": 0}, {"location": "/a/", "tdm-reservation": 1},'
        b'{"location": "/*.pdf$", "tdm-reservation": "1"}, {"location": "/\xe8\x8b\xaf/", "tdm-reservation": 1}]',
    )
    told = {
        "/a/open/x": False, "/a/b": True, "/b": None, "/b/x.pdf": True, "/b/x.pdf?y": None, "/%E8%8B%AF/1": True,
    }  # fmt: skip
    assert {path: rules.reserved(f"https://example.org{path}") for path in told} == told
    everything = b'{"location": "/", "tdm-reservation": 1}'
    assert read_reservations(200, everything).reserved("https://example.org/x")
    for status, body in ((404, everything), (500, everything), (200, b"<html>"), (200, b"[" * 100_000), (200, b'"x"'), (200, b'[{"location": "/\\nAllow: /"}]')):  # fmt: skip
        assert read_reservations(status, body).reserved("https://example.org/x") is None


@given(
    st.binary(max_size=400),
    st.sampled_from(
        [b"", b"[{", b'[{"location": "/', b"User-agent: *\nDisallow: ", b"<a href='", b"\x1f\x8b"]
    ),
)
@settings(max_examples=150, deadline=None)
def test_no_bytes_of_a_host_raise(noise: bytes, start: bytes) -> None:
    body = start + noise
    read_reservations(200, body).reserved("https://example.org/x")
    rules = read_rules(200, body)
    assert 0 <= rules.delay("HChemSafety") <= 300
    rules.allowed("https://example.org/x", "HChemSafety")
    rules.sitemaps("https://example.org/")
    for link in read_html(body, "https://example.org/x", "gb2312").links:
        assert canonical_url(link) == link
    assert isinstance(unfinished(["gzip"], body), bool)
    assert isinstance(unfinished(["br"], body), bool)
    assert isinstance(unfinished(["deflate"], body), bool)
    text = noise.decode("latin-1")
    robots_tags([text], "HChemSafety")
    retry_after(text)
    assert "\x00" not in clean_value(text)


ENDLESS = ("^(a|aa)+$", r"^/wiki/(?:\w|\w\w)*\.html$", "(?:.*?,){30}P", r"^/物质/(?:苯|苯苯)+$")


@pytest.mark.parametrize("pattern", ENDLESS)
def test_patterns_that_never_end_are_refused_when_they_are_read(pattern: str) -> None:
    with pytest.raises(ValidationError, match="takes endless time"):
        a_source(follow_content=[pattern])
    with pytest.raises(ValidationError, match="takes endless time"):
        a_source(results_pattern=pattern, results_template="/x")


def test_other_mistakes_in_patterns_are_said() -> None:
    for pattern, said in (("(", "is not a regular expression"), ("a" * 1001, "is longer than 1000"), ("(" * 900 + ")" * 900, "is longer")):  # fmt: skip
        with pytest.raises(ValidationError, match=said):
            a_source(deny=[pattern])
    with pytest.raises(ValidationError, match="is not a regular expression"):
        a_source(deny=["(" * 490 + ")" * 490])  # nested too deeply to be compiled


def test_a_slow_pattern_is_bounded_where_it_is_used() -> None:
    """What no trial finds (it is slow on long addresses only) still ends, with the pattern's name."""
    slow = r"/q\?.*=.*=.*=.*=.*=.*;$"
    origin = a_source(deny=[slow])
    with pytest.raises(SlowPattern, match="takes more than") as caught:
        origin.belongs("https://example.org/q?" + "=" * 7000)
    assert caught.value.reason == "slow_pattern"
    assert slow in str(caught.value) or repr(slow) in str(caught.value)
    assert origin.belongs("https://example.org/q?" + "=" * 9000)  # asked for by nobody: longer than any URL
    assert not origin.follows("https://example.org/q?" + "=" * 9000, listing=False)
    assert origin.belongs("https://example.org/ordinary?x=1")


@pytest.mark.parametrize(
    ("exceptions", "fault"),
    [(["elsewhere.example"], "no host of the source"), (["https://example.org"], "no host of the source"), (["*"], "no host of the source")],
)  # fmt: skip
def test_tls_exceptions_name_hosts_of_the_source(exceptions: list[str], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        a_source(tls_exceptions=exceptions)


def test_tls_exceptions_hold_for_their_host() -> None:
    origin = a_source(hosts=["example.org", "sds.example.org:8443", "化学.example"], tls_exceptions=["SDS.example.org:8443", "化学.example"])  # fmt: skip
    assert origin.tolerates("sds.example.org", 8443)
    assert not origin.tolerates("sds.example.org", 443)
    assert not origin.tolerates("example.org", 443)
    assert origin.tolerates("xn--cjr66q.example", 443)
    assert origin.tolerates("化学.example", 443)
    assert not a_source().tolerates("example.org", 443)


def test_a_certificate_of_another_host_is_a_fault_of_the_certificate() -> None:
    error = VerificationError(errors=[DNSMismatch(mismatched_id=DNS_ID("sds.example.org"))])
    fate = of_error(RuntimeError(f"[<twisted.python.failure.Failure {error!r}>]"))  # as Twisted hands it on
    assert (fate.state, fate.reason) == ("failed", "certificate")
    assert "another host" in fate.detail

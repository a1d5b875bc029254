"""Faults of the protocol, of encodings and of addresses: one crawl of a made-up site that has them all."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import brotli
import pytest
from sqlalchemy import select
from warcio.checker import Checker

from corpus.archive import iterate_records, read_payload
from corpus.catalogue.tables import Page
from corpus.cleaning import clean_page
from corpus.ids import document_id
from crawlers.tdm import WELL_KNOWN
from tests.crawlers.helpers import Ground, source
from tests.servers.site import Site, article, links, serve

ZH = "苯的安全技术说明书:无色透明液体,闪点 -11 ℃,沸点 80.1 ℃,有毒,避免与皮肤和眼睛接触,储存于阴凉、通风的库房。"
ZH_TW = (
    "苯的安全資料表:無色透明液體,閃點 -11 度,沸點 80.1 度,有毒,避免與皮膚和眼睛接觸,儲存於陰涼、通風的倉庫。"
)
JA = "ベンゼンの安全データシート:無色透明の液体です。引火点は マイナス11度、皮膚や目に触れないようにしてください。"
LATIN = "Benzène : point d’éclair −11 °C – très inflammable, à manipuler sous hotte ; étiquette « F »."
LATIN = LATIN.replace("−", "-")

# path -> (text, bytes' encoding, Content-Type, encoding named in the page)
ENCODINGS = {
    "/e/utf8": (ZH, "utf-8", "text/html", ""),
    "/e/utf8-said-gb2312": (ZH, "utf-8", "text/html; charset=gb2312", "gb2312"),
    "/e/gb-undeclared": (ZH, "gb18030", "text/html", ""),
    "/e/gb-said-gb2312": (ZH + "镕喆㙍", "gb18030", "text/html; charset=gb2312", ""),
    "/e/gb-said-utf8": (ZH, "gb18030", "text/html; charset=utf-8", "utf-8"),
    "/e/big5": (ZH_TW, "big5", "text/html; charset=big5", ""),
    "/e/big5-undeclared": (ZH_TW, "big5", "text/html", ""),
    "/e/sjis": (JA, "shift_jis", "text/html; charset=Shift_JIS", ""),
    "/e/sjis-undeclared": (JA, "shift_jis", "text/html", ""),
    "/e/latin-said-iso": (LATIN, "cp1252", "text/html; charset=iso-8859-1", ""),
    "/e/latin-undeclared": (LATIN, "cp1252", "text/html", ""),
    "/e/utf16": (ZH, "utf-16", "text/html", ""),
}


def encoded(path: str) -> bytes:
    text, encoding, _, meta = ENCODINGS[path]
    declared = f'<meta charset="{meta}">' if meta else ""
    page = f'<html><head>{declared}</head><body><h1>{text[:6]}</h1><p>{text}</p><p><a href="/q/{text[0]}?w={text[:2]}">x</a></p></body></html>'
    return page.encode(encoding)


def protocol(site: Site) -> None:
    body = article("Acetone 丙酮").encode()
    packed = {"gzip": gzip.compress(body), "br": brotli.compress(body), "deflate": zlib.compress(body)}
    for name, data in packed.items():
        site.page(f"/{name}", data, headers={"Content-Encoding": name})
        torn = data[: len(data) // 2]
        site.page(f"/{name}-half", torn, headers={"Content-Encoding": name})
    site.page("/deflate-raw", zlib.compress(body, wbits=-15), headers={"Content-Encoding": "deflate"})
    site.page("/twice", brotli.compress(packed["gzip"]), headers={"Content-Encoding": "gzip, br"})
    site.page("/br-bomb", brotli.compress(b"<p>0</p>" * 2_000_000), headers={"Content-Encoding": "br"})
    site.page(
        "/deflate-bomb", zlib.compress(b"<p>0</p>" * 2_000_000), headers={"Content-Encoding": "deflate"}
    )
    site.page("/not-gzip", body, headers={"Content-Encoding": "gzip"})
    site.page("/zstd", body, headers={"Content-Encoding": "zstd"})
    site.page("/compress", body, headers={"Content-Encoding": "compress"})
    site.page("/coding-utf8", body, headers={"Content-Encoding": "UTF-8"})
    html = b"Content-Type: text/html; charset=utf-8"
    site.raw("/length-too-long", html, b"Content-Length: 5000", body=body)
    site.raw("/length-too-short", html, b"Content-Length: 20", body=body)
    site.raw("/length-negative", html, b"Content-Length: -5", body=body)
    site.raw("/length-twice", html, b"Content-Length: 5", b"Content-Length: 7", body=body)
    site.raw(
        "/chunks", html, b"Transfer-Encoding: chunked", body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    )
    site.raw("/chunks-garbage", html, b"Transfer-Encoding: chunked", body=b"zz\r\n" + body)
    site.raw("/chunks-torn", html, b"Transfer-Encoding: chunked", body=b"ffff\r\n" + body)
    site.raw("/header-huge", html, b"X-Filler: " + b"x" * 200_000, body=body)
    site.raw("/headers-many", html, *(b"X-%d: y" % number for number in range(3000)), body=body)
    flood = b"\r\n".join(b"X-%d: " % number + b"y" * 8000 for number in range(200))
    site.raw("/headers-flood", html, flood, body=body)
    site.page("/silent", body, delay=30.0)
    site.raw("/header-nul", html, b'ETag: "a\x00b"', b"Last-Modified: \x01\x02", body=body)
    site.raw("/header-no-colon", html, b"this is no header", body=body)
    site.raw("/etag-huge", html, b'ETag: "' + b"e" * 8000 + b'"', body=body)
    site.raw("/no-status", b"", status=b"hello", body=body)
    site.raw("/nothing", status=b"")
    site.page("/cookies", body, headers={"Set-Cookie": "session=1; Path=/"})
    for status in (201, 202, 204, 206, 300, 304, 401, 451, 508):
        site.page(f"/status-{status}", body if status not in (204, 304) else b"", status=status)


def redirects(site: Site, other: Site, refused: Site) -> None:
    port = refused.netloc.rpartition(":")[2]
    found = b"HTTP/1.1 302 Found"
    site.raw("/r/utf8", b"Location: /t/" + "苯".encode(), status=found)
    site.raw("/r/gbk", b"Location: /t/" + "苯".encode("gbk"), status=found)
    site.raw("/r/nul", b"Location: /t/a\x00b", status=found)
    site.redirect("/r/broken", "http://[broken/")
    site.redirect("/r/port", "http://example.org:99999/")
    site.redirect("/r/long", "/" + "a" * 3000)
    site.redirect("/r/script", "javascript:alert(1)")
    site.redirect("/r/data", "data:text/html,x")
    site.redirect("/r/name-of-loopback", "http://localhost/stolen")
    site.redirect("/r/port-of-loopback", f"http://localhost:{port}/stolen")
    site.redirect("/r/credentials", f"http://user:secret@{site.netloc}/t/x")
    site.redirect("/r/decimal-loopback", "http://2130706433/stolen")
    site.redirect("/r/to-second-host", f"{other.base}/there")
    site.redirect("/r/relative", "t/../../t/rel?x=1#y")
    for path in ("/t/" + quote("苯"), "/t/%B1%BD", "/t/a%00b", "/t/rel"):
        site.page(path, article(path))
    other.page("/there", article("there"))
    other.page("/robots.txt", "User-agent: *\nDisallow: /closed\n", content_type="text/plain")
    other.page("/closed", "no")


def tags(site: Site) -> None:
    def tagged(head: str, to: str) -> str:
        return f'<html><head>{head}</head><body><p>x</p><a href="{to}">y</a></body></html>'

    site.page("/m/nofollow", tagged('<meta name="Robots" content="nofollow">', "/unseen-1"))
    site.page("/m/header-nofollow", tagged("", "/unseen-2"), headers={"X-Robots-Tag": "nofollow"})
    site.page(
        "/m/other-agent", tagged("", "/seen-1"), headers={"X-Robots-Tag": "otherbot: noindex, nofollow"}
    )
    site.page("/m/our-agent", tagged('<meta name="hchemsafety" content="none">', "/unseen-3"))
    two = (b"Content-Type: text/html", b"X-Robots-Tag: noindex", b"X-Robots-Tag: noarchive")
    site.raw("/m/two-headers", *two, body=b"<p>x</p>")
    for name, lie in {"home": "/", "else": "http://elsewhere.example/x", "file": "file:///etc/passwd", "other-page": "/gzip"}.items():  # fmt: skip
        site.page(f"/m/canonical-{name}", tagged(f'<link rel="canonical" href="{lie}">', "/seen-1"))
    site.page("/seen-1", article("seen"))
    site.page("/seen-3", article("seen"))
    site.page("/m/next", tagged('<link rel="next" href="/seen-3">', "/seen-1"))
    free = '<meta name="tdm-reservation" content="0">'
    site.page("/tdm/header", tagged("", "/seen-1"), headers={"tdm-reservation": "1"})
    site.page("/tdm/meta", tagged('<meta name="TDM-Reservation" content="1">', "/seen-1"))
    site.page("/tdm/meta-frees", tagged(free, "/seen-1"), headers={"tdm-reservation": "1"})
    for path in ("/tdm/file/a.html", "/tdm/file/open.html", "/tdm/file/b.pdf"):
        site.page(path, article(path))
    rules = [
        {"location": "/tdm/file/open", "tdm-reservation": 0},
        {"location": "/tdm/file/*.html$", "tdm-reservation": 1, "tdm-policy": "https://x.example/policy"},
        {"location": 5, "tdm-reservation": 1},
        "nonsense",
    ]
    site.page(WELL_KNOWN, json.dumps(rules), content_type="application/json")


SPELLINGS = ("/s/%e8%8b%af", "/s/苯", "/s/%E8%8B%AF#top", "/x/../s/苯", "/s/苯?utm_source=x", "/s/./苯?")


def build(site: Site, other: Site, refused: Site) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /closed\n", content_type="text/plain")
    protocol(site)
    redirects(site, other, refused)
    tags(site)
    for path, (_, _, content_type, _) in ENCODINGS.items():
        site.page(path, encoded(path), content_type=content_type)
    site.page("/types/sheet.pdf", b"%PDF-1.4 x", content_type="application/octet-stream")
    site.page("/types/no.pdf", b"PK\x03\x04 x", content_type="application/octet-stream")
    site.page("/types/data.bin", b"%PDF-1.4 x", content_type="application/octet-stream")
    site.page("/types/data.json", b"{}", content_type="application/json")
    site.page("/types/archive", b"\x1f\x8b", content_type="application/gzip")
    site.page("/types/nonsense", article("x"), content_type="\x00;;=")
    site.page("/s/" + quote("苯"), article("one"))
    site.page("/o", article("order"))
    site.page("/nul%00in", article("nul"))
    started = [
        path for path in site.routes if not path.startswith(("/t/", "/seen", "/robots.txt", WELL_KNOWN))
    ]
    site.page(
        "/",
        links(*started, *SPELLINGS, "/o?b=2&a=1", "/o?a=1&b=2", "/nul\x00in/x", f"{other.base}/closed", "http://例子.test/x"),
    )  # fmt: skip


@dataclass
class Crawled:
    ground: Ground
    site: Site
    other: Site
    refused: Site

    def fates(self, host: Site | None = None) -> dict[str, tuple[str, str]]:
        base = (host or self.site).base
        return {url.removeprefix(base): fate for url, fate in self.every().items() if url.startswith(base)}

    def every(self) -> dict[str, tuple[str, str]]:
        with self.ground.catalogue.reading() as session:
            return {row.url: (row.state, row.reason) for row in session.scalars(select(Page))}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with serve() as site, serve() as other, serve() as refused:
        build(site, other, refused)
        ground = Ground.at(tmp_path_factory.mktemp("faults"))
        port = refused.netloc.rpartition(":")[2]
        hosts = [site.netloc, other.netloc, f"localhost:{port}", "localhost", "2130706433"]
        ground.crawl(
            source(site, hosts=hosts, private_hosts=[site.netloc, other.netloc]), settings={"timeout_s": 5.0}
        )
        yield Crawled(ground, site, other, refused)


def test_protocol_faults_have_their_outcome(crawled: Crawled) -> None:
    expected = {
        "/gzip": ("kept", ""), "/br": ("kept", ""), "/deflate": ("kept", ""), "/deflate-raw": ("kept", ""),
        "/twice": ("kept", ""), "/gzip-half": ("failed", "cut_short"), "/br-half": ("failed", "cut_short"),
        "/deflate-half": ("failed", "cut_short"), "/br-bomb": ("excluded", "too_large"),
        "/deflate-bomb": ("excluded", "too_large"), "/not-gzip": ("failed", "encoding"),
        "/zstd": ("failed", "encoding"), "/compress": ("failed", "encoding"), "/coding-utf8": ("kept", ""),
        "/length-too-long": ("failed", "cut_short"), "/length-too-short": ("kept", ""),
        "/length-negative": ("failed", "connection"), "/length-twice": ("failed", "connection"),
        "/chunks": ("kept", ""), "/chunks-garbage": ("failed", "cut_short"), "/chunks-torn": ("failed", "cut_short"),
        "/header-huge": ("failed", "connection"), "/headers-many": ("kept", ""),
        "/headers-flood": ("excluded", "too_large"), "/silent": ("failed", "timeout"), "/header-nul": ("kept", ""),
        "/header-no-colon": ("kept", ""), "/etag-huge": ("kept", ""),
        "/no-status": ("failed", "connection"), "/nothing": ("failed", "connection"), "/cookies": ("kept", ""),
        "/status-201": ("failed", "http_201"), "/status-202": ("failed", "http_202"), "/status-204": ("failed", "http_204"),
        "/status-206": ("failed", "http_206"), "/status-300": ("failed", "http_300"), "/status-304": ("failed", "http_304"),
        "/status-401": ("failed", "http_401"), "/status-451": ("failed", "http_451"), "/status-508": ("failed", "http_508"),
        "/types/sheet.pdf": ("kept", ""), "/types/no.pdf": ("excluded", "type"), "/types/data.bin": ("excluded", "type"),
        "/types/data.json": ("kept", ""), "/types/archive": ("excluded", "type"), "/types/nonsense": ("kept", ""),
    }  # fmt: skip
    fates = crawled.fates()
    assert {path: fates.get(path) for path in expected} == expected
    assert not [url for url, fate in crawled.every().items() if fate[0] in ("queued", "claimed")]
    rows = crawled.ground.pages()
    assert (rows["/header-nul"].etag, rows["/header-nul"].last_modified) == ('"ab"', "")
    assert rows["/etag-huge"].etag == ""
    assert not [hit for hit in crawled.site.hits if "cookie" in hit.headers]


def test_redirects_end_where_they_may(crawled: Crawled) -> None:
    expected = {
        "/r/utf8": ("excluded", "redirect"), "/t/" + quote("苯"): ("kept", ""),
        "/r/gbk": ("excluded", "redirect"), "/t/%B1%BD": ("kept", ""),
        "/r/nul": ("excluded", "redirect"), "/t/a%00b": ("kept", ""),
        "/r/broken": ("failed", "bad_redirect"), "/r/port": ("failed", "bad_redirect"),
        "/r/long": ("excluded", "url_too_long"), "/r/script": ("excluded", "guard"), "/r/data": ("excluded", "guard"),
        "/r/credentials": ("excluded", "guard"), "/r/to-second-host": ("excluded", "redirect"),
        "/r/relative": ("excluded", "redirect"), "/t/rel?x=1": ("kept", ""),
        "/r/name-of-loopback": ("excluded", "redirect"), "/r/decimal-loopback": ("excluded", "redirect"),
        "/r/port-of-loopback": ("excluded", "guard"),
    }  # fmt: skip
    fates = crawled.fates()
    assert {path: fates.get(path) for path in expected} == expected
    assert crawled.fates(crawled.other) == {"/there": ("kept", ""), "/closed": ("excluded", "robots")}
    stolen = {url: fate for url, fate in crawled.every().items() if url.endswith("/stolen")}
    assert set(stolen.values()) == {("excluded", "guard")}
    assert len(stolen) == 2
    assert crawled.refused.hits == []


def test_one_page_has_one_address_and_lies_change_none(crawled: Crawled) -> None:
    site, rows = crawled.site, crawled.ground.pages()
    assert site.count("/s/" + quote("苯")) == 1
    assert len([hit for hit in site.hits if hit.path.startswith("/s/")]) == 1
    assert len([hit for hit in site.hits if hit.path.startswith("/o?")]) == 1
    assert not [url for url in crawled.every() if "xn--" in url or "例" in url]
    for lie in ("home", "else", "file", "other-page"):
        row = rows[f"/m/canonical-{lie}"]
        assert (row.state, row.url) == ("kept", f"{site.base}/m/canonical-{lie}")
        assert row.document_id == document_id(row.url)
    assert rows["/m/canonical-file"].canonical_url == ""
    assert all("\x00" not in url for url in crawled.every())


def test_robots_tags_and_reservations(crawled: Crawled) -> None:
    fates = crawled.fates()
    expected = {
        "/m/nofollow": ("kept", ""), "/m/header-nofollow": ("kept", ""), "/m/other-agent": ("kept", ""),
        "/m/our-agent": ("excluded", "noindex"), "/m/two-headers": ("excluded", "noindex"),
        "/seen-1": ("kept", ""), "/seen-3": ("kept", ""),
        "/tdm/header": ("excluded", "tdm_reserved"), "/tdm/meta": ("excluded", "tdm_reserved"),
        "/tdm/meta-frees": ("kept", ""), "/tdm/file/a.html": ("excluded", "tdm_reserved"),
        "/tdm/file/open.html": ("kept", ""), "/tdm/file/b.pdf": ("kept", ""),
    }  # fmt: skip
    assert {path: fates.get(path) for path in expected} == expected
    assert not [path for path in fates if path.startswith("/unseen")]
    assert crawled.site.count("/tdm/file/a.html") == 0
    assert crawled.site.count(WELL_KNOWN) == 1


@pytest.mark.parametrize("path", ENCODINGS)
def test_encodings_from_the_socket_to_the_text(crawled: Crawled, path: str) -> None:
    row = crawled.ground.pages()[path]
    payload = read_payload(crawled.ground.folder, row.warc_file, row.warc_offset)
    assert payload == encoded(path)
    text, encoding, *_ = ENCODINGS[path]
    cleaned = clean_page(payload, url=row.url, content_type=row.content_type, header_charset=row.charset)
    assert text in cleaned.text
    query = quote(text[:2].encode("utf-8" if encoding == "utf-16" else encoding))
    wanted = f"/q/{quote(text[0])}?w={query}"
    assert crawled.fates()[wanted] == ("gone", "http_404")
    assert crawled.site.count(wanted) == 1


def test_archive_of_the_faults_is_valid(crawled: Crawled) -> None:
    files = sorted((crawled.ground.folder / "warc").glob("*.warc.gz"))
    assert files
    assert check_digests(files) == 0
    kept = {row.payload_sha256 for row in crawled.ground.pages().values() if row.state == "kept"}
    assert len([record for path in files for record in iterate_records(path)]) >= len(kept)


def check_digests(files: list[Path]) -> int:
    """``warcio check``: 0 where every block and payload digest holds."""

    class Arguments:
        inputs = tuple(map(str, files))
        verbose = False

    checker = Checker(Arguments())
    checker.process_all()
    return int(checker.exit_value)

"""``hchem sources check`` on saved pages and archives, without the network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from corpus.archive import ArchiveWriter, Exchange
from corpus.errors import SettingsError, TerminalError
from flows.cli import build
from tests.conftest import REPOSITORY

HOST = "https://cameochemicals.noaa.gov"
LISTING = """<html><head><title>A</title></head><body><a href="/chemical/2577">Benzene</a><a href="/chemical/2577#x">苯</a>
<a href="/about">about</a><a href="https://elsewhere.example/chemical/1">x</a><a rel="nofollow" href="/chemical/9">y</a>
<a href="/browse/A">again</a></body></html>"""
SHEET = """<html><head><link rel="canonical" href="/chemical/2577?v=2"></head><body><h1>BENZENE 苯</h1><p>71-43-2</p>
<a href="/chemical/2578">next</a></body></html>"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listing.html").write_text(LISTING, encoding="utf-8")
    (tmp_path / "sheet.html").write_bytes(SHEET.encode("gb18030"))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build(["sources"]), ["sources", "check", *arguments])


def as_json(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output or result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_listing_and_its_links() -> None:
    page = as_json("cameo", "--page", "listing.html", "--url", f"{HOST}/browse/A#top")["page"]
    assert (page["url"], page["role"], page["rule"]) == (f"{HOST}/browse/A", "listing", "listing ^/browse/")
    assert (page["state"], page["indexed"]) == ("kept", False)
    assert [(link["url"].removeprefix(HOST), link["followed"], link["reason"]) for link in page["links"]] == [
        ("/chemical/2577", True, ""),
        ("/about", False, "pattern"),
        ("https://elsewhere.example/chemical/1", False, "host"),
        ("/browse/A", False, "pattern"),
        ("/chemical/9", False, "nofollow"),
    ]
    assert page["links"][0]["rule"] == r"follow_listing ^/chemical/\d+$"
    shown = run("cameo", "--page", "listing.html", "--url", f"{HOST}/browse/A").stdout
    assert "kept for its links, not indexed" in shown
    assert "robots.txt" in shown


def test_content_page_identity_canonical_and_encoding() -> None:
    page = as_json("cameo", "--page", "sheet.html", "--url", f"{HOST}/chemical/2577")["page"]
    assert (page["role"], page["indexed"], page["encoding"]) == ("content", True, "gb18030")
    assert page["identity"] == f"{HOST}/chemical/2577"
    assert page["canonical_claim"] == f"{HOST}/chemical/2577?v=2"
    assert [(link["followed"], link["rule"]) for link in page["links"]] == [
        (False, "follow_content is empty")
    ]
    other = as_json("cameo", "--page", "sheet.html", "--url", "https://x.example/1")["page"]
    assert (other["role"], other["reason"], other["links"]) == ("none", "offsite", [])
    assert "cameochemicals.noaa.gov" in other["rule"]
    picture = ("cameo", "--page", "sheet.html", "--url", f"{HOST}/chemical/1", "--content-type", "image/png")
    assert (as_json(*picture)["page"]["state"], as_json(*picture)["page"]["reason"]) == ("excluded", "type")


def test_opt_outs_are_seen(place: Path) -> None:
    for meta, reason in (("robots", "noindex"), ("tdm-reservation", "tdm_reserved")):
        word = "noindex" if meta == "robots" else "1"
        (place / "out.html").write_text(
            f'<html><head><meta name="{meta}" content="{word}"></head><body>x</body></html>'
        )
        page = as_json("cameo", "--page", "out.html", "--url", f"{HOST}/chemical/1")["page"]
        assert (page["state"], page["reason"], page["indexed"]) == ("excluded", reason, False)


def test_query_links_of_a_substance_and_links_that_repeat_them(place: Path) -> None:
    report = as_json("wikipedia-zh", "--chemical", "71-43-2")
    assert "https://zh.wikipedia.org/wiki/%E8%8B%AF" in {link["url"] for link in report["queries"]["links"]}
    assert {link["role"] for link in report["queries"]["links"]} == {"content"}
    (place / "own.toml").write_text(
        """[[source]]
name = "mine"
title = "Mine"
kind = "site"
languages = ["en", "zh"]
licence = "made up"
base = "https://mine.example"
query_links = ["/item/{name}"]
query_role = "content"
follow_content = ["^/item/"]
""",
        encoding="utf-8",
    )
    (place / "item.html").write_text(
        '<a href="/item/benzene">a</a><a href="/item/other">b</a>', encoding="utf-8"
    )
    environment = {"HCHEM_CRAWL__SOURCES_FILE": str(place / "own.toml")}
    arguments = ["sources", "check", "mine", "--chemical", "苯", "--page", "item.html", "--url"]
    result = CliRunner().invoke(
        build(["sources"]), [*arguments, "https://mine.example/item/x", "--json"], env=environment
    )
    assert result.exit_code == 0, result.exception
    links = {link["url"].rpartition("/")[2]: link for link in json.loads(result.stdout)["page"]["links"]}
    assert (links["benzene"]["followed"], links["benzene"]["reason"]) == (False, "query_link")
    assert links["other"]["followed"] is True


def exchange(url: str, body: str, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Exchange:
    sent = [("Content-Type", "text/html; charset=utf-8"), *headers]
    data = body.encode()
    return Exchange(url, [], status, "x", sent, data, data, "2026-01-01T00:00:00Z")


def test_archive_summary_and_pages(place: Path) -> None:
    writer = ArchiveWriter(place, "mixed")
    writer.write_response(exchange(f"{HOST}/browse/A", LISTING))
    writer.write_response(exchange(f"{HOST}/chemical/2577", "old"))
    writer.write_response(exchange(f"{HOST}/chemical/2577", SHEET))
    writer.write_response(exchange(f"{HOST}/chemical/1", "x", 404))
    writer.write_response(exchange(f"{HOST}/chemical/2", "", 301, (("Location", "/chemical/3"),)))
    writer.write_response(exchange(f"{HOST}/chemical/4", "x", headers=(("tdm-reservation", "1"),)))
    writer.write_response(exchange("https://elsewhere.example/", "x"))
    place_written = writer.write_response(
        exchange(f"{HOST}/chemical/5", "x", headers=(("X-Robots-Tag", "none"),))
    )
    writer.close()
    file = str(place / place_written.warc_file)
    found = as_json("cameo", "--archive", file)["archive"]
    assert found["records"] == 8
    assert found["summary"]["roles"] == {"content": 5, "listing": 1, "none": 1}
    assert found["summary"]["outcomes"] == {
        "excluded: noindex": 1, "excluded: offsite": 1, "excluded: redirect": 1, "excluded: tdm_reserved": 1,
        "gone: http_404": 1, "indexed": 1, "kept": 1,
    }  # fmt: skip
    assert found["summary"]["links"]["followed"] == 1
    shown = run("cameo", "--archive", file).stdout
    assert "7 of 7" in shown
    (place / "no.warc.gz").write_bytes(b"no archive")
    assert isinstance(run("cameo", "--archive", str(place / "no.warc.gz")).exception, TerminalError)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "unknown source nowhere; known: cameo"),
        (("cameo", "--page", "listing.html"), "belong together"),
        (("cameo", "--url", "https://x.example/"), "belong to --page"),
        (("cameo", "--page", "none.html", "--url", "https://x.example/"), "cannot be read"),
        (("cameo", "--page", "listing.html", "--url", "no url"), "such as https://example.org/page"),
        (("cameo", "--archive", "none.warc.gz"), "not found"),
        (("cameo", "icsc", "--archive", "none.warc.gz"), "about one source"),
        (("cameo", "--chemical", "nonsense-substance"), "unknown chemical nonsense-substance"),
    ],
)
def test_mistakes_are_said(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, SettingsError)
    assert said in str(result.exception)


def test_every_field_of_a_source_is_documented() -> None:
    from crawlers.sources import Source

    page = (REPOSITORY / "docs" / "sources.md").read_text(encoding="utf-8")
    assert [name for name in Source.model_fields if f"| `{name}` |" not in page] == []
    example = page.split("```toml")[2].split("```")[0]
    import tomllib

    (source,) = tomllib.loads(example)["source"]
    assert Source.model_validate(source).name in page

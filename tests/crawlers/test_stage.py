"""The stage end to end on a small sample site: links, crawl, refresh, archive replay, errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from corpus.archive import read_payload
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import ChemicalClaim, Page, QueryLink
from corpus.chemical_claims import unclaimed
from corpus.chemicals import find_chemicals, remove_list
from corpus.errors import SettingsError, TerminalError
from corpus.ids import document_id
from corpus.stages import BatchReport, StageContext, run_step
from crawlers.settings import CrawlSettings
from crawlers.stage import acquire_stage, import_archive

BENZENE = "<html><head><title>苯</title></head><body><h1>苯</h1><p>CAS 71-43-2</p></body></html>".encode(
    "gb18030"
)


def entry(file: str, terms: list[str], **more: Any) -> dict[str, Any]:
    return {"file": file, "url_path": f"/site/{file}", "title": file, "licence": f"licence of {file}"} | {
        "content_type": "text/html", "search_terms": terms
    } | more  # fmt: skip


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "benzene.html").write_bytes(BENZENE)
    (folder / "pages" / "toluene.html").write_text("<html><body>Toluene 108-88-3</body></html>")
    (folder / "pages" / "law.md").write_text("# 条例\n\n第一条", encoding="utf-8")
    lines = [
        entry("benzene.html", ["苯", "71-43-2"], url_path="/site/%E8%8B%AF.html"),
        entry("toluene.html", ["toluene", "108-88-3"]),
        entry("law.md", [], content_type="text/markdown; charset=utf-8"),
    ]
    (folder / "manifest.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "chemicals.csv").write_text(
        "name,cas,aliases,name_zh\nbenzene,71-43-2,benzol,苯\ntoluene,108-88-3,,甲苯\n", encoding="utf-8"
    )
    return folder


def acquire(
    catalogue: Catalogue, folder: Path, sample: Path, run_id: str, **more: Any
) -> dict[str, BatchReport]:
    url = catalogue.engine.url.render_as_string(hide_password=False)
    stage = acquire_stage(CrawlSettings(sample_dir=sample), folder, url)
    ctx = StageContext(catalogue=catalogue, run_id=run_id, **more)
    return {step.name: run_step(step, ctx) for step in stage.steps if step.name != "acquire.chemicals"}


def pages(catalogue: Catalogue) -> dict[str, Page]:
    with catalogue.reading() as session:
        return {row.identity: row for row in session.scalars(select(Page))}


def facts(row: Page) -> tuple[object, ...]:
    return (
        row.page_id,
        row.state,
        row.payload_sha256,
        row.warc_file,
        row.warc_offset,
        row.chemicals,
        row.depth,
    )


def test_sample_site_is_crawled_refreshed_and_replayed(tmp_path: Path, sample: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    seen: list[tuple[str, int, int]] = []
    reports = acquire(
        catalogue,
        tmp_path,
        sample,
        "run-1",
        progress=lambda step, done, total: seen.append((step, done, total)),
    )
    assert reports["acquire.crawl"].states == {"kept": 1}
    assert any(step == "acquire.crawl" and total > 5 for step, _, total in seen)
    with catalogue.reading() as session:
        links = {row.url: row.chemical for row in session.scalars(select(QueryLink))}
    assert links["http://sample.test/search?q=%E8%8B%AF"] == "71-43-2"
    assert len(links) == 7  # benzene, benzol, 苯, toluene, 甲苯, two CAS numbers
    first = pages(catalogue)
    benzene = first["sample:/site/%E8%8B%AF.html"]
    assert benzene.document_id == document_id("sample:/site/%E8%8B%AF.html")
    assert (benzene.state, benzene.role, benzene.url) == (
        "kept",
        "content",
        "http://sample.test/site/%E8%8B%AF.html",
    )
    assert (benzene.chemicals, benzene.licence) == (["71-43-2"], "licence of benzene.html")
    assert (benzene.content_type, benzene.charset) == ("text/html", "")
    assert read_payload(tmp_path, benzene.warc_file, benzene.warc_offset) == BENZENE
    assert first["sample:/private/"].reason == "robots"
    assert first["sample:/"].role == "search"
    assert first["sample:/search?q=benzol"].role == "search"
    assert {row.identity for row in first.values() if row.role == "content" and row.state == "kept"} == {
        "sample:/site/%E8%8B%AF.html",
        "sample:/site/law.md",
        "sample:/site/toluene.html",
    }

    again = acquire(catalogue, tmp_path, sample, "run-2")
    assert again["acquire.links"].states == {}
    assert again["acquire.crawl"].counts["unchanged"] == len(first) - 1
    assert again["acquire.crawl"].counts["transferred"] == 0
    assert {key: facts(row) for key, row in pages(catalogue).items()} == {
        key: facts(row) for key, row in first.items()
    }

    (sample / "pages" / "toluene.html").unlink()
    (sample / "pages" / "law.md").write_text("# 条例\n\n第二条", encoding="utf-8")
    acquire(catalogue, tmp_path, sample, "run-3")
    third = pages(catalogue)
    assert (third["sample:/site/toluene.html"].state, third["sample:/site/toluene.html"].reason) == (
        "gone",
        "http_404",
    )
    law = third["sample:/site/law.md"]
    assert "第二条" in read_payload(tmp_path, law.warc_file, law.warc_offset).decode()
    assert facts(third["sample:/site/%E8%8B%AF.html"]) == facts(benzene)

    fresh = tmp_path / "fresh"
    fresh.mkdir()
    other = Catalogue.open(f"sqlite:///{fresh}/c.db")
    report = import_archive(other, fresh, tmp_path / benzene.warc_file)
    replayed = pages(other)
    assert report.added == len(replayed)
    copy = replayed["sample:/site/%E8%8B%AF.html"]
    assert (copy.page_id, copy.document_id, copy.payload_sha256) == (
        benzene.page_id,
        benzene.document_id,
        benzene.payload_sha256,
    )
    assert read_payload(fresh, copy.warc_file, copy.warc_offset) == BENZENE
    assert import_archive(other, fresh, tmp_path / benzene.warc_file).as_dict()["added"] == 0


def test_one_chemical_only_and_an_empty_site(tmp_path: Path, sample: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    acquire(catalogue, tmp_path, sample, "run-1", chemicals=("苯",))
    kept = {
        row.identity for row in pages(catalogue).values() if row.role == "content" and row.state == "kept"
    }
    assert kept == {"sample:/site/%E8%8B%AF.html"}
    shutil.rmtree(sample / "pages")
    reports = acquire(catalogue, tmp_path, sample, "run-2")
    assert reports["acquire.crawl"].states == {"failed": 1}
    assert reports["acquire.crawl"].reasons == {"failed: empty_crawl": 1}


def test_settings_that_cannot_work_are_said_at_once(tmp_path: Path, sample: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with pytest.raises(SettingsError, match="sample site not found"):
        acquire(catalogue, tmp_path, tmp_path / "nothing", "run-1")
    with pytest.raises(SettingsError, match="unknown source nowhere"):
        acquire(catalogue, tmp_path, sample, "run-1", sources=("nowhere",))
    with pytest.raises(SettingsError, match="contact"):
        acquire(catalogue, tmp_path, sample, "run-1", sources=("wikipedia-en",))
    (sample / "manifest.jsonl").write_text('{"file": "../x", "url_path": "/x", "licence": "y"}')
    reports = acquire(catalogue, tmp_path, sample, "run-1")
    assert reports["acquire.crawl"].states == {"failed": 1}


def test_archive_that_is_none_is_refused(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    bad = tmp_path / "bad.warc.gz"
    bad.write_bytes(b"this is not an archive")
    with pytest.raises(TerminalError):
        import_archive(catalogue, tmp_path, bad)
    stage = acquire_stage(CrawlSettings(), tmp_path, "", from_archive=tmp_path / "none.warc.gz")
    with pytest.raises(SettingsError, match="not found"):
        stage.steps[0].plan(StageContext(catalogue=catalogue, run_id="r"))


def test_lists_of_an_earlier_version_are_read_again_once(tmp_path: Path, sample: Path) -> None:
    """Catalogues from before claims do not know what the second of two lists says; the next acquire finds out."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    lists = (tmp_path / "first.csv", tmp_path / "second.csv")
    for path in lists:
        path.write_text("name,cas,name_zh\nbenzene,71-43-2,试名油\n", encoding="utf-8")
    settings = CrawlSettings(sample_dir=sample, chemical_lists=lists)

    def load() -> BatchReport:
        step = acquire_stage(settings, tmp_path, str(catalogue.engine.url)).steps[0]
        return run_step(step, StageContext(catalogue=catalogue, run_id="run"))

    assert load().states["kept"] == 4
    with catalogue.writing() as session:
        assert unclaimed(session) == []
        session.execute(delete(ChemicalClaim))  # as migration 0003 finds it
        assert len(unclaimed(session)) >= 1
    assert load().states["kept"] == 3  # the lists, not the built-in repository
    with catalogue.reading() as session:
        assert unclaimed(session) == []
    load()
    assert load().states == {}
    remove_list(catalogue, lists[0])
    with catalogue.reading() as session:
        assert find_chemicals(session, "试名油") == ["71-43-2"]
    remove_list(catalogue, lists[1])
    with catalogue.reading() as session:
        assert find_chemicals(session, "试名油") == []

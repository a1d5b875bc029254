"""The pages of QChunker's debates: what the record says is shown, hostile texts are data, a folder is whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking.settings import ChunkSettings
from chunking.stage import chunks_stage
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Partition
from corpus.errors import TerminalError
from corpus.stages import StageContext
from flows.report.debates import added_parts, write_debates
from models import Models
from models.settings import ModelSettings
from tests.flows.test_explorer import Elements

ZH = """# 甲醇（自拟示例）

## 理化特性

甲醇（CH3OH）是无色液体，沸点为 64.7 ℃，闪点（闭杯）为 11 ℃。挥发性有机物（VOC）须控制排放。

## 危险性

高度易燃。见第2节。它与氧化剂剧烈反应，吸入会中毒。VOC 浓度不得超过限值。

## 急救

该物质溅入眼睛时，用清水冲洗至少15分钟并就医。<script>alert(1)</script>
"""
EN = """# Acetone (made up for this test)

## Properties

Acetone is a colourless liquid. Its boiling point is 56.1 °C. Volatile organic compounds (VOC) are limited.

## Hazards

It is highly flammable. The VOC limit must not be exceeded. Keep away from oxidisers and from heat.

## First aid

Rinse eyes with water for 15 minutes. <img src=x onerror=alert(2)> As described above, call a doctor.
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with opened.writing() as session:
        for key, text, language in (("zh", ZH, "zh"), ("en", EN, "en"), ("empty", "", "en")):
            session.add(Document(
                document_id=key, page_id=key, version_id=f"{key}-1", identity=key, title=f"{key} <b>title</b>", text=text,
                language=language, state="kept", kind="page", url="javascript:alert(3)", source="s",
            ))  # fmt: skip
    yield opened
    opened.close()


def chunked(catalogue: Catalogue, *, completion: bool = True) -> None:
    settings = ChunkSettings(methods=["qchunker"], size=40, completion=completion, kinds=["page"])
    step = chunks_stage(settings, Models(ModelSettings(api_key=None))).steps[0]
    ctx = StageContext(catalogue=catalogue, run_id="r")
    for item in step.plan(ctx):
        outcome = step.process(ctx, item)
        assert outcome.write is not None
        with catalogue.writing() as session:
            outcome.write(session)


def test_every_part_of_the_record_is_on_the_page(catalogue: Catalogue, tmp_path: Path) -> None:
    chunked(catalogue)
    debates = write_debates(catalogue, tmp_path / "report.html")
    assert (debates.pages, debates.documents) == (2, 2)
    pages = {path.name: path.read_text("utf-8") for path in debates.folder.glob("d-*.html")}
    with catalogue.reading() as session:
        records = {row.document_id: row for row in session.query(Partition)}
    for language, said in (("zh", "64.7 ℃"), ("en", "56.1 °C")):
        page = next(text for text in pages.values() if said in text)
        record = records[language].record
        for candidate in record["segmenter"]["candidates"]:
            assert candidate["origin"] in page
            assert candidate["cuts"] == sorted(set(candidate["cuts"]))
            assert len(candidate["cuts"]) == candidate["k"] - 1
        assert page.count('class="row') == len(record["segmenter"]["candidates"])
        assert page.count("chosen · 选中") == 1
        assert page.count('class="chunk"') == len(list(record["segmenter"]["candidates"][record["segmenter"]["selected"]]["cuts"])) + 1  # fmt: skip
        assert 'class="tag offline"' in page
        items = [item for entry in record["reviewer"]["chunks"] for item in entry.get("items", ())]
        assert items, "the made-up page has something to complete"
        assert "<ins>" in page
        elements = Elements(page)
        assert not {"script", "img", "b"} & set(elements.tags)
        assert not [
            value for name, value in elements.attributes if "javascript:" in value or name.startswith("on")
        ]
    index = (debates.folder / "index.html").read_text("utf-8")
    assert all(name in index for name in pages)


def test_without_completion_the_page_says_so(catalogue: Catalogue, tmp_path: Path) -> None:
    chunked(catalogue, completion=False)
    folder = write_debates(catalogue, tmp_path / "report.html").folder
    assert all("run was without completion" in path.read_text("utf-8") for path in folder.glob("d-*.html"))


def test_unchanged_pages_stay_and_foreign_ones_are_not_touched(catalogue: Catalogue, tmp_path: Path) -> None:
    empty = write_debates(catalogue, tmp_path / "report.html")
    assert (empty.pages, empty.documents) == (0, 0)
    chunked(catalogue)
    first = write_debates(catalogue, tmp_path / "report.html")
    assert first.pages == 2
    made = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    assert write_debates(catalogue, tmp_path / "report.html") == first
    assert {path: path.stat().st_mtime_ns for path in first.folder.iterdir()} == made
    foreign = tmp_path / "other-debates"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    with pytest.raises(TerminalError, match="was not written by a report"):
        write_debates(catalogue, tmp_path / "other.html")
    assert [path.name for path in foreign.iterdir()] == ["mine.txt"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@given(st.text("ab 12,。甲乙\n", max_size=60), st.text("ab 12,。甲乙\n", max_size=60))
def test_marked_additions_lose_nothing(before: str, after: str) -> None:
    pieces = list(added_parts(before, after))
    assert "".join(text for how, text in pieces if how != "gone") == after
    assert "".join(text for how, text in pieces if how != "added") == before

"""``hchem trace``: what a question, fact or chunk rests on and nothing else of its page; the report's funnel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Chunk, Document, LedgerRow, Page, Question
from corpus.errors import SettingsError
from flows.cli import build
from flows.commands import trace as trace_command
from flows.report.data import funnel

TEXT = "甲醇的闪点为11 ℃。\n甲醇的沸点为64.7 ℃。\n禁配物：强氧化剂。\n"
FACTS = {
    "aa01": ("HAS_MEASUREMENT", "m:flash", "闪点为11 ℃"),
    "aa02": ("HAS_MEASUREMENT", "m:boil", "沸点为64.7 ℃"),
    "ab03": ("INCOMPATIBLE_WITH", "g:oxid", "强氧化剂"),
}


def _place(words: str) -> tuple[int, int]:
    start = TEXT.index(words)
    return start, start + len(words)


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = Catalogue.open(f"sqlite:///{tmp_path}/catalogue.db")
    with made.writing() as session:
        for n, role in enumerate(("content", "search", "search", "sitemap")):
            session.add(
                Page(page_id=f"fa{n}", document_id="d0c0" if not n else "", source="s", url=f"https://x/{n}",
                     identity=f"x/{n}", state="kept", role=role)
            )  # fmt: skip
        session.add(
            Document(document_id="d0c0", page_id="fa0", source="s", url="https://x/0", identity="x/0", title="甲醇",
                     language="zh", state="kept", version_id="v1", text=TEXT)
        )  # fmt: skip
        for key, (relation, target, quote) in FACTS.items():
            start, end = _place(quote)
            session.add(
                Assertion(assertion_id=key, document_id="d0c0", version_id="v1", subject="甲醇",
                          subject_key="67-56-1", relation=relation, object=quote, object_key=target,
                          object_label="Measurement", state="kept", quote=quote, start=start, end=end)
            )  # fmt: skip
        for key, n in (("c0a", 0), ("c0b", 1), ("c0c", 2)):
            line = TEXT.splitlines(keepends=True)[n]
            start, end = _place(line)
            session.add(
                Chunk(chunk_id=key, partition_id="p", document_id="d0c0", version_id="v1", method="sentence",
                      position=n, text=line, start=start, end=end, leaf=True)
            )  # fmt: skip
        for key, fact in (("e1", "aa01"), ("e2", "ab03")):
            relation, target, quote = FACTS[fact]
            start, end = _place(quote)
            reference = {"document_id": "d0c0", "version_id": "v1", "start": start, "end": end, "quote": quote,
                         "url": "https://x/0"}  # fmt: skip
            session.add(
                Question(question_id=key, kind="single_hop", language="zh", question="问？", answer="答\x1b[2J",
                         state="kept", references=[reference], triples=[["67-56-1", relation, target]])
            )  # fmt: skip
    yield made
    made.close()


def _trace(item: str) -> dict[str, Any]:
    result = CliRunner().invoke(build(["trace"]), ["trace", item, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    (found,) = json.loads(result.stdout)
    return dict(found)


def _ids(found: dict[str, Any], name: str) -> list[str]:
    return [row["id"] for row in found[name]]


def test_a_question_shows_what_its_proof_rests_on_only(catalogue: Catalogue) -> None:
    found = _trace("e1")
    assert _ids(found, "assertions") == ["aa01"]
    assert _ids(found, "chunks") == ["c0a"]
    assert [entry["quote"] for entry in found["evidence"]] == ["闪点为11 ℃"]
    assert "questions" not in found
    assert found["document"] == "d0c0"


def test_a_fact_and_a_chunk_show_what_came_of_their_place_and_a_page_everything(catalogue: Catalogue) -> None:
    fact = _trace("ab03")
    assert (_ids(fact, "assertions"), _ids(fact, "questions"), _ids(fact, "chunks")) == (
        ["ab03"],
        ["e2"],
        ["c0c"],
    )
    chunk = _trace("c0b")
    assert (_ids(chunk, "assertions"), _ids(chunk, "questions")) == (["aa02"], [])
    for item in ("d0c0", "fa0"):
        page = _trace(item)
        assert _ids(page, "assertions") == ["aa01", "aa02", "ab03"]
        assert _ids(page, "questions") == ["e1", "e2"]
        assert len(page["chunks"]) == 3


def test_an_id_may_be_cut_short_and_text_of_pages_steers_no_terminal(catalogue: Catalogue) -> None:
    assert _ids(_trace("ab"), "assertions") == ["ab03"]
    for given, said in (
        ("a", r"aa01, aa02, ab03"),
        ("zz", "no page, document, fact"),
        (
            "fa1",
            "a search or listing page of s .https://x/1., read for its links only: it never becomes a document",
        ),
        ("fa3", "a sitemap of s .*read for its links only"),
    ):
        error = CliRunner().invoke(build(["trace"]), ["trace", given]).exception
        assert isinstance(error, SettingsError)
        with pytest.raises(SettingsError, match=said):
            raise error
    shown = CliRunner().invoke(build(["trace"]), ["trace", "e1"]).output
    assert "\x1b" not in shown
    assert r"\x1b[2J" in shown


def test_what_is_shown_is_fields_and_no_data_structure(catalogue: Catalogue) -> None:
    for item in ("e1", "ab03", "c0b", "d0c0"):
        ended = CliRunner().invoke(build(["trace"]), ["trace", item])
        assert ended.exit_code == 0, (ended.output, ended.exception)
        assert not re.search(r"[{}]|\[['\"\]]|\bNone\b|\bFalse\b", ended.output), ended.output
        assert all(line.rstrip() == line and not line.endswith(":") for line in ended.output.splitlines())
    shown = CliRunner().invoke(build(["trace"]), ["trace", "e2"]).output
    start, end = _place(FACTS["ab03"][2])
    assert f"  document d0c0; at {start}–{end}; “{FACTS['ab03'][2]}”; https://x/0\n" in shown


def test_a_field_that_holds_rows_is_shown_row_by_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "f1", "method": "fixed", "value": 0.5, "low": None, "n": 3}]
    trace_command._show({"evaluation": {"asked": True, "why": "", "figures": rows}, "scored_by": None})
    assert capsys.readouterr().out.splitlines() == [
        "evaluation: asked yes",
        "evaluation, figures: 1",
        "  f1; fixed; value 0.5; n 3",
        "scored by: –",
    ]


def test_a_page_without_a_document_says_whether_there_ever_was_one(catalogue: Catalogue) -> None:
    pages = {
        "fb1": ("kept", ""),
        "fb2": ("excluded", "robots"),
        "fb3": ("kept", ""),
        "fb4": ("gone", "unlinked"),
    }
    with catalogue.writing() as session:
        for key, (state, reason) in pages.items():
            session.add(
                Page(page_id=key, document_id=f"{key}d", source="s", url=f"https://x/{key}", identity=key, state=state,
                     reason=reason, role="content")
            )  # fmt: skip
        session.add(
            LedgerRow(step="curate.profile", item_id="fb1", fingerprint="f", state="kept", run_id="r")
        )
    for key, said in (
        ("fb1", "no document any more: what it came from is gone"),
        ("fb2", r"no document \(excluded robots\)"),
        ("fb3", "not curated yet: hchem run curate"),
        ("fb4", "no document any more: what it came from is gone"),
    ):
        error = CliRunner().invoke(build(["trace"]), ["trace", key]).exception
        with pytest.raises(SettingsError, match=said):
            raise error or AssertionError(key)


SAID: dict[str, list[tuple[dict[str, Any], str]]] = {
    "zh": [
        ({"relation": "HAS_MEASUREMENT", "object": "10.0 kPa", "properties": {"property": "vapour_pressure"},
          "value": {"operator": "=", "min": 10.0, "max": 10.0, "unit": "kPa", "conditions": {"temperature": "20 ℃"}}},
         "苯 · 饱和蒸气压 · vapour pressure: 10 kPa (20 ℃)"),
        ({"relation": "HAS_TOXICITY", "object": "510 mg/m³", "properties": {"endpoint": "LC50", "species": "rat", "route": "inhalation"},
          "value": {"operator": "<", "min": None, "max": 510.0, "unit": "mg/m³",
                    "conditions": {"species": "rat", "route": "inhalation", "duration": "2 h"}}},
         "苯 · 毒性数据 LC50 · toxicity value LC50: 小于 510 mg/m³ · below 510 mg/m³ "
         "(2 h，吸入，大鼠 · 2 h, inhalation, rat)"),
        ({"relation": "NOT_EXTINGUISHED_BY", "object": "水", "properties": {"zh": "水", "en": "water"},
          "conditions": {"when": "直接冲击灭火"}},
         "苯 · 不适用的灭火剂 · unsuitable extinguishing media: 水 · water (条件：直接冲击灭火 · when: 直接冲击灭火)"),
        ({"relation": "INCOMPATIBLE_WITH", "object": "水", "polarity": "negative"},
         "苯 · 禁配物 · incompatible materials: 否定 · not 水"),
    ],
    "en": [
        ({"relation": "HAS_LIMIT", "object": "1 ppm", "properties": {"kind": "TWA", "jurisdiction": "US"},
          "value": {"operator": "<=", "min": None, "max": 1.0, "unit": "ppm", "conditions": {"duration": "8 h"}}},
         "Benzene · 接触限值 TWA US · exposure limit TWA US: 不高于 1 ppm · at most 1 ppm (8 h)"),
        ({"relation": "INCOMPATIBLE_WITH", "object": "chlorine", "modality": "may", "conditions": {"when": "in sunlight"}},
         "Benzene · 禁配物 · incompatible materials: chlorine (可能，条件：in sunlight · may, when: in sunlight)"),
        ({"relation": "CLASSIFIED_AS", "object": "Acute Tox. 3", "polarity": "negative",
          "properties": {"zh": "急性毒性", "en": "acute toxicity", "category": "3", "route": "oral"}},
         "Benzene · 危险性类别 · hazard classification: 否定 · not 急性毒性 3 · acute toxicity 3 (经口 · oral)"),
        ({"relation": "HAS_COMPONENT", "object": "toluene",
          "value": {"operator": ">", "min": 5.0, "max": None, "unit": "%"}},
         "Benzene · 组分 · component: toluene (大于 5 % · above 5 %)"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("language", sorted(SAID))
def test_a_fact_is_told_with_its_property_conditions_and_denial(catalogue: Catalogue, language: str) -> None:
    with catalogue.writing() as session:
        for n, (given, _) in enumerate(SAID[language]):
            row = {
                "polarity": "positive",
                "modality": "is",
                "conditions": {},
                "properties": {},
                "value": {},
                **given,
            }
            session.add(
                Assertion(assertion_id=f"bd{n}", document_id="d0c0", version_id="v1", state="kept", language=language,
                          subject="苯" if language == "zh" else "Benzene", subject_key="71-43-2", object_key=f"o{n}",
                          object_label="X", quote="甲醇", start=0, end=2, **row)
            )  # fmt: skip
    for n, (given, said) in enumerate(SAID[language]):
        found = _trace(f"bd{n}")
        assert found["says"] == said
        assert (found["relation"], found["polarity"]) == (
            given["relation"],
            given.get("polarity", "positive"),
        )
        assert said in {row["fact"] for row in found["assertions"]}
        shown = CliRunner().invoke(build(["trace"]), ["trace", f"bd{n}"]).output
        assert f"says: {said}\n" in shown


def test_lines_wrap_in_a_terminal_and_nowhere_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "says": "苯与水不反应，" * 20,
        "assertions": [{"id": "f1", "fact": "benzene does not react with water " * 5}],
    }
    trace_command._show(told)
    piped = capsys.readouterr().out
    assert len(piped.splitlines()) == 3
    terminal = Console(force_terminal=True, width=80, color_system=None, highlight=False)
    monkeypatch.setattr(trace_command, "out", terminal)
    trace_command._show(told)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert len(lines) > 6
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", piped)


def test_the_funnel_says_what_became_of_every_page(catalogue: Catalogue) -> None:
    steps = {step["name"]: step for step in funnel(catalogue)}
    assert steps["pages fetched"]["n"] == 4
    assert steps["documents"]["n"] == 1
    apart = dict(steps["pages fetched"]["reasons"])
    assert sum(apart.values()) == 3
    assert sorted(apart.values()) == [1, 2]
    assert any("search" in reason and n == 2 for reason, n in apart.items())
    assert any("sitemap" in reason for reason in apart)

"""Two runs side by side: which are comparable, what differs, in what order; the artifacts' tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Check, Evaluation, Failure, LedgerRow, Page, Question, Run
from corpus.errors import SettingsError
from flows import artifacts, comparison
from flows.cli import build
from kg import versions
from kg.versions import Change, Diff, Version

START = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)
HOSTILE = "a|b `x` [点我](javascript:alert(1)) <img src=x onerror=alert(1)> http://evil.test/\n# 标题\u202e"


def _step(states: dict[str, int], reasons: dict[str, int] | None = None, **counts: int) -> dict[str, Any]:
    pending = sum(states.values())
    return {"pending": pending, "states": states, "reasons": reasons or {}, "counts": counts, "seconds": 1.0,
            "wall_seconds": 1.0}  # fmt: skip


def _stages(kept: int, low: int, seconds: float, calls: int) -> dict[str, Any]:
    actual = {"calls": calls, "cached": 0, "rejected": 0, "tokens_in": 100 * calls, "tokens_cached": 0, "tokens_out": 10,
              "cost": 0.01 * calls, "seconds": 1.0}  # fmt: skip
    return {
        "curate": {
            "seconds": seconds,
            "steps": {"curate.score": _step({"kept": kept, "rejected": low}, {"rejected: low_score": low}, scored=kept + low)},
            "models": {"skills": {"score_document": {"model": "m", "estimate": None, "actual": actual, "ratio": None}}},
        }
    }  # fmt: skip


def _run(name: str, week: int, state: str = "completed", flow: str = "refresh", **more: Any) -> Run:
    stages = more.pop("stages", {})
    return Run(
        run_id=name, flow=flow, state=state, started_at=START + timedelta(weeks=week),
        finished_at=START + timedelta(weeks=week, minutes=5), parameters={"sources": [], "force": False, **more},
        stages=stages, code_version="0.9",
    )  # fmt: skip


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = Catalogue.open(f"sqlite:///{tmp_path}/catalogue.db")
    with made.writing() as db:
        db.add_all(
            [
                _run("r1", 0, stages=_stages(50, 4, 60.0, 10)),
                _run("r2-part", 1, sources=["one"], stages=_stages(5, 1, 5.0, 0)),
                _run("r3-crashed", 2, state="crashed"),
                _run("r4-stage", 3, flow="curate"),
                _run("r5", 4, stages=_stages(31, 9, 60.02, 25)),
            ]
        )
        db.add(
            Failure(
                failure_id="f1",
                step="curate.score",
                item_id="d1",
                kind="transient",
                reason="timeout",
                message="",
                run_id="r5",
            )
        )
        for key, run, state, severity in (
            ("c1", "r1", "passed", "warn"),
            ("c2", "r5", "failed", "warn"),
            ("c3", "r5", "passed", "block"),
        ):
            name = "kept_share" if key != "c3" else "empty_crawl"
            db.add(Check(check_id=key, run_id=run, stage="curate", name=name, severity=severity, state=state, value=0.775,
                         limit=0.8, message=HOSTILE if key == "c2" else ""))  # fmt: skip
    yield made
    made.close()


def test_a_run_is_laid_beside_the_completed_one_of_its_flow_and_restriction(catalogue: Catalogue) -> None:
    with catalogue.reading() as db:
        found = comparison.against_previous(db, "r5")
        assert found is not None
        assert (found.old["run_id"], found.new["run_id"]) == ("r1", "r5")
        assert comparison.against_previous(db, "r2-part") is None
        assert comparison.against_previous(db, "r1") is None
        assert comparison.against_previous(db, "no such run") is None


def test_differences_have_signs_and_the_largest_come_first(catalogue: Catalogue) -> None:
    with catalogue.reading() as db:
        found = comparison.against_previous(db, "r5")
    assert found is not None
    assert [(e.what, e.change) for e in found.of("items")] == [("kept", -19), ("in", -14), ("rejected", 5)]
    assert [(e.what, e.change) for e in found.of("dropped")] == [("rejected: low_score", 5)]
    assert [(e.place, e.what, e.change) for e in found.of("failures")] == [("curate.score", "timeout", 1)]
    figures = {e.what: e.change for e in found.of("models")}
    assert figures == {"tokens_in": 1500, "calls": 15, "cost": pytest.approx(0.15)}
    assert found.of("seconds") == []  # 0.02 s is no difference
    assert found.brief()[0].what == "timeout"  # a failure before any larger change
    assert comparison.line(found.of("items")[0]) == "curate.score kept 50 → 31 (−19)"
    assert [(c.name, c.old, c.new) for c in found.checks] == [
        ("kept_share", "passed", "failed"),
        ("empty_crawl", "", "passed"),
    ]


def test_the_command_compares_and_says_what_it_cannot(catalogue: Catalogue) -> None:
    runner, app = CliRunner(), build(["runs"])
    result = runner.invoke(app, ["runs", "diff", "--json"])
    assert result.exit_code == 0, result.exception
    told = json.loads(result.stdout)
    assert (told["old"]["run_id"], told["new"]["run_id"]) == ("r1", "r5")
    assert {(d["group"], d["what"], d["change"]) for d in told["differences"]} >= {("items", "kept", -19)}
    text = runner.invoke(app, ["runs", "diff", "r1", "r5"])
    assert text.exit_code == 0, text.exception
    assert "−19" in text.output
    assert "kept_share" in text.output
    assert "\u202e" not in text.output
    shown = runner.invoke(app, ["runs", "show", "r5"]).output
    assert "1 passed, 1 failed: kept_share (curate, warn)" in shown
    assert "against r1: curate.score timeout" in shown
    asked = json.loads(runner.invoke(app, ["runs", "show", "--json"]).stdout)
    assert asked["compared_with"] == "r1"
    assert [c["name"] for c in asked["checks"]] == ["kept_share", "empty_crawl"]
    both = "no run 'zz'; no run 'qq'; see: hchem runs list"
    refused = ((["r1"], None), (["r", "r5"], "beginning of"), (["zz"], "no run"), (["zz", "qq"], both))
    for given, said in refused:
        error = runner.invoke(app, ["runs", "diff", *given]).exception
        assert (error is None) == (said is None), given
        if said is not None:
            assert isinstance(error, SettingsError)
            assert said in str(error)
    alone = runner.invoke(app, ["runs", "diff", "", "r2-part"]).exception
    assert isinstance(alone, SettingsError)
    assert "name one" in str(alone)


# --- the tables of the artifacts ---------------------------------------------------


def _cells(markdown: str) -> list[list[str]]:
    """Rows of all tables of a Markdown text, split where a reader of it would."""
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[part.strip() for part in row.replace("\\|", "¦").strip("|").split("|")] for row in rows]


def test_text_in_a_cell_is_neither_markup_nor_a_column() -> None:
    told = artifacts.table(("名称", "n"), [("甲醇（CH₃OH）", 3), (HOSTILE, 12)], most=5)
    rows = _cells(told)
    assert rows[2] == ["甲醇（CH₃OH）", "3"]
    assert [len(row) for row in rows] == [2, 2, 2, 2]
    assert "](" not in told.replace("\\](", "")
    assert "<img" not in told.replace("\\<img", "")
    assert "http://" not in told
    assert "\u202e" not in told
    assert artifacts.table(("x",), [[str(n)] for n in range(9)], most=5).rstrip().endswith("… and 4 more.")
    assert artifacts.table(("x",), []) == "Nothing yet.\n"


def test_the_comparison_is_told_in_markdown(catalogue: Catalogue) -> None:
    with catalogue.reading() as db:
        told = artifacts.run_comparison(comparison.against_previous(db, "r5"))
    assert ["curate.score", "kept", "50", "31", "−19"] in _cells(told)
    assert any(row[:5] == ["curate", "kept\\_share", "warn", "passed", "failed"] for row in _cells(told))
    assert "no earlier completed run" in artifacts.run_comparison(None)
    summary = artifacts.run_summary(catalogue, {}, "r5")
    assert "Against run r1" in summary
    assert "1 failed: kept" in summary


def test_the_tables_of_stages(catalogue: Catalogue) -> None:
    with catalogue.writing() as db:
        db.add_all(
            Page(page_id=f"p{n}", document_id="", source="s", url=f"https://x/{n}", identity=f"x/{n}", state=state, reason=why)
            for n, (state, why) in enumerate((("kept", ""), ("kept", ""), ("excluded", "robots")))
        )  # fmt: skip
        for n, (kind, language, answer, state) in enumerate(
            (
                ("boolean", "zh", "yes", "kept"),
                ("boolean", "zh", "no", "kept"),
                ("boolean", "en", "yes", "kept"),
                ("single_hop", "en", "", "kept"),
                ("single_hop", "en", "", "rejected"),
            )
        ):
            db.add(Question(question_id=f"q{n}", kind=kind, language=language, question="问？", answer=answer, state=state,
                            answer_set=[{"key": answer}], proof={"cypher": "MATCH"} if n else {},
                            reason="shortcut" if state == "rejected" else ""))  # fmt: skip
        for method, value in (("qchunker", 0.679), ("sentence", 0.627)):
            db.add(Evaluation(evaluation_id=method, table="main", method=method, metric="evidence_recall", value=value,
                              low=value - 0.05, high=value + 0.05, n=200))  # fmt: skip
        db.add(LedgerRow(step="graph.resolve", item_id="identity", fingerprint="x", state="kept", run_id="r5",
                         counts={"reference: conflict": 26, "decision: merge": 3}))  # fmt: skip
    assert ["pages known", "3", "robots 1"] in _cells(artifacts.funnel(catalogue))
    asked = artifacts.questions(catalogue)
    assert ["boolean", "1", "2", "3"] in _cells(asked)
    assert ["zh", "1", "1", "50 %"] in _cells(asked)
    assert ["en", "1", "0", "100 %"] in _cells(asked)
    assert ["shortcut", "1"] in _cells(asked)
    assert asked.startswith("4 questions, 3 of them with the graph query")
    scored = artifacts.evaluation(catalogue)
    assert ["qchunker", "0.679 (0.629 to 0.729)"] in _cells(scored)
    assert "n = 200" in scored
    graph = artifacts.knowledge_graph(catalogue)
    assert ["conflict", "26"] in _cells(graph)
    assert ["merge", "3"] in _cells(graph)


def test_a_version_of_the_data_set_is_told_with_its_changes(catalogue: Catalogue, tmp_path: Path) -> None:
    version, new = versions.take(catalogue, versions.folder_of(tmp_path), run_id="r5", tag="第一版")
    assert new
    assert "no version before" in artifacts.dataset_version(version, None)
    diff = Diff("old", "new", [Change("fact", "changed", "f1", "甲醇 HAS_MEASUREMENT", "11 ℃", "12 ℃")])
    told = artifacts.dataset_version(Version("new", "2026-11-23T03:00:00", "r5", {"qa.jsonl": 2}), diff)
    assert ["fact", "changed", "甲醇 HAS\\_MEASUREMENT", "11 ℃", "12 ℃"] in _cells(told)
    assert ["qa.jsonl", "2"] in _cells(told)
    assert "Nothing differs" in artifacts.dataset_version(version, Diff("a", "b"))

"""Quality gates: when they fail, what they compare with, what a failed one does, what decisions do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Assertion,
    Check,
    Chunk,
    Document,
    Evaluation,
    Lease,
    Partition,
    Question,
    Run,
    now,
)
from corpus.errors import SettingsError
from flows import execution
from flows.cli import build
from flows.gates import decisions, judging
from flows.gates.errors import AwaitingDecision, GateError
from flows.operation_settings import GATES, GateSettings, period
from flows.parameters import RefreshParameters
from flows.runtime import open_runtime
from flows.settings import Settings, load_settings
from kg.versions import folder_of
from tests.flows.conftest import small_site
from tests.flows.gate_world import crawl, documents, pages, run, settings


def command(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(folder / "data"))
    return CliRunner().invoke(build(list(arguments)), list(arguments))


# --- what is compared -------------------------------------------------------------


def test_a_drop_is_judged_against_the_last_completed_run(tmp_path: Path) -> None:
    s = settings(tmp_path)
    first = run(s, "1", "curate", documents(甲=40, b=60))
    assert first["documents_drop"].state == "skipped"
    assert "no completed run of the whole to compare with" in first["documents_drop"].message
    same = run(s, "2", "curate")
    assert {row.state for row in same.checks.values()} == {"passed"}
    less = run(s, "3", "curate", documents(甲=35, b=50))  # 15 of 100, 5 of 40, 10 of 60
    assert less.error is None
    again = run(s, "4", "curate", documents(甲=35, b=30))
    assert isinstance(again.error, GateError)
    whole, own = again["documents_drop"], again["documents_drop", "b"]
    assert (whole.baseline, whole.value, whole.state) == (85, 65, "failed")
    assert (own.baseline, own.value, own.state) == (50, 30, "failed")
    assert again["documents_drop", "甲"].state == "passed"


def test_a_source_that_is_gone_entirely_is_seen(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=10, b=300))
    gone = run(s, "2", "curate", documents(b=300))
    assert gone["documents_drop"].state == "passed"  # 10 of 310
    assert (gone["documents_drop", "a"].state, gone["documents_drop", "a"].value) == ("failed", 0)


def test_few_items_more_or_less_are_no_alarm(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=6))
    assert run(s, "2", "curate", documents(a=2)).error is None  # two thirds, but four documents
    assert run(settings(tmp_path, gates={"least": 2}), "3", "curate", documents(a=0)).error is not None


def test_a_restricted_run_is_not_compared_with_a_whole_one(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    limited = run(s, "2", "curate", documents(a=50), limit=50)
    assert limited["documents_drop"].state == "skipped"
    assert '{"limit":["50"]}' in limited["documents_drop"].message
    whole = run(s, "3", "curate", documents(a=70))  # against 100, not against the 50 of the restricted run
    assert whole["documents_drop"].baseline == 100
    assert run(s, "4", "curate", documents(a=30), limit=50)["documents_drop"].baseline == 50


def test_a_failed_run_is_no_baseline(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    assert run(s, "2", "curate", documents(a=50)).error is not None
    assert run(s, "3", "curate", documents(a=50))["documents_drop"].baseline == 100


# --- each gate ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "state", "empty", "refused"),
    [
        ({"kept": 20, "failed:http_403": 5}, "kept", "passed", "passed"),
        ({"kept": 4, "kept::search": 4, "failed:http_429": 9, "excluded:robots": 1}, "kept", "passed", "failed"),
        ({"kept": 9, "excluded:offsite": 100, "excluded:budget": 50, "gone:http_404": 2}, "kept", "passed", "passed"),
        ({"kept": 1, "excluded:robots": 5}, "kept", "passed", "skipped"),  # six pages say nothing
        ({}, "failed", "failed", "skipped"),
    ],
)  # fmt: skip
def test_a_crawl_that_is_blocked_or_empty(
    tmp_path: Path, counts: dict[str, int], state: str, empty: str, refused: str
) -> None:
    reason = "" if state == "kept" else "unreachable"
    found = run(settings(tmp_path), "1", "acquire", crawl("源", "1", counts, state, reason))
    assert found["crawl_empty", "源"].state == empty
    assert found["crawl_refused", "源"].state == refused
    assert (found.error is None) == ("failed" not in (empty, refused))


def test_pages_warn_and_do_not_stop(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "acquire", pages("a", 50))
    found = run(s, "2", "acquire", pages("a", 30))
    assert (found["pages_drop"].state, found["pages_drop"].severity, found.error) == ("failed", "warn", None)
    with open_runtime(settings=s) as runtime, runtime.catalogue.reading() as db:
        assert db.get_one(Run, "2").state == "completed"
    assert run(s, "3", "acquire")["pages_drop"].baseline == 30  # told once


def test_documents_held_and_refinements_refused(tmp_path: Path) -> None:
    def hold(db: Any) -> None:
        for at, row in enumerate(db.scalars(select(Document))):
            row.state = "review" if at < 3 else "kept"
            row.flags = ["orders", "unrefined"] if at >= 8 else ["refined"]

    found = run(settings(tmp_path), "1", "curate", documents(a=10), hold)
    assert (found["documents_held"].value, found["documents_held"].state) == (0.3, "failed")
    assert found["refinements_refused"].value == pytest.approx(2 / 7)
    assert found["refinements_refused"].state == "failed"
    assert found.error is None  # warnings


def test_assertions_and_conflicts(tmp_path: Path) -> None:
    def state(n: int, apart: int) -> Any:
        """Flash points of n substances by two documents; the first ``apart`` differ widely."""

        def fill(db: Any) -> None:
            for row in db.query(Assertion):
                db.delete(row)
            db.flush()
            for name in ("甲", "b"):
                db.merge(
                    Document(
                        document_id=name, page_id=name, source="a", url="", identity=name, state="kept", version_id=name
                    )
                )  # fmt: skip
                for i in range(n):
                    value = 20 + (60 if i < apart and name == "b" else 0)
                    db.add(
                        Assertion(
                            assertion_id=f"{name} {i}", document_id=name, version_id=name, state="kept",
                            subject=f"s{i}", subject_key=f"s{i}", relation="HAS_MEASUREMENT",
                            object=f"{value} °C", object_label="Measurement", object_key=f"{name} {i}",
                            properties={"property": "flash_point"},
                            value={
                                "operator": "=", "min": str(value), "max": str(value), "unit": "degC",
                                "si": {"min": value + 273.15, "max": value + 273.15, "unit": "K"},
                            },
                            start=0, end=1, quote="q",
                        )
                    )  # fmt: skip

        return fill

    s = settings(tmp_path)
    first = run(s, "1", "graph", state(40, 10))
    assert (first["conflicts_rise"].value, first["assertions_drop"].value) == (10, 80)
    assert run(s, "2", "graph", worked=False)["conflicts_rise"].state == "skipped"
    more = run(s, "3", "graph", state(40, 16))
    assert (more["conflicts_rise"].state, more["conflicts_rise"].baseline) == ("failed", 10)
    assert more.error is None
    fewer = run(s, "4", "graph", state(20, 5))
    assert isinstance(fewer.error, GateError)
    assert (fewer["assertions_drop"].state, fewer["conflicts_rise"].state) == ("failed", "passed")


def _questions(*rows: tuple[int, str, str, str, str]) -> Any:
    def fill(db: Any) -> None:
        for row in db.query(Question):
            db.delete(row)
        db.flush()
        for number, (n, kind, path, answer, reason) in enumerate(rows):
            for i in range(n):
                db.add(
                    Question(
                        question_id=f"{number} {i}", kind=kind, language="zh", question="?", answer=answer,
                        metapath=path, state="rejected" if reason else "kept", reason=reason,
                    )
                )  # fmt: skip

    return fill


def test_questions_proofs_and_balance(tmp_path: Path) -> None:
    s = settings(tmp_path)
    hazard, alias, few = (
        "Substance-HAS_H->HazardStatement",
        "Substance-HAS_ALIAS->Alias",
        "Mixture-CAUSES->Effect",
    )
    good = run(
        s, "1", "questions",
        _questions(
            (6, "boolean", hazard, "是", ""), (3, "boolean", hazard, "No", ""), (3, "boolean", hazard, "否", ""),
            (7, "boolean", alias, "Yes", ""), (3, "boolean", alias, "否", ""), (5, "boolean", few, "Yes", ""),
            (30, "single_hop", "", "4", ""), (4, "boolean", hazard, "Yes", "unbalanced"),
        ),
    )  # fmt: skip
    assert good.error is None
    assert good["boolean_balance", "HAS_H"].value == 0.5
    assert (good["boolean_balance", "HAS_ALIAS"].value, good["boolean_balance", "HAS_ALIAS"].state) == (
        0.7,
        "failed",
    )
    assert good["boolean_balance", "CAUSES"].state == "skipped"
    assert (good["questions_drop"].value, good["proofs_failed"].state) == (57, "passed")
    bad = run(
        s, "2", "questions",
        _questions((40, "single_hop", "", "4", ""), (1, "single_hop", "", "4", "proof_gives_other_answers")),
    )  # fmt: skip
    assert isinstance(bad.error, GateError)
    assert (bad["proofs_failed"].state, bad["proofs_failed"].severity) == ("failed", "block")
    assert bad["questions_drop"].state == "failed"


@pytest.mark.parametrize(
    ("cuts", "untiled"),
    [
        ([(0, 4), (4, 8)], 0),
        ([(0, 8)], 0),
        ([(1, 4), (4, 8)], 1),
        ([(0, 4), (5, 8)], 1),
        ([(0, 5), (4, 8)], 1),
        ([(0, 4), (4, 7)], 1),
        ([], 1),
        ([(0, 4), (4, 4), (4, 8)], 0),
        ([(0, 6), (3, 5), (5, 8)], 1),  # a gap and an overlap of one size
    ],
)
def test_chunks_that_do_not_tile(tmp_path: Path, cuts: list[tuple[int, int]], untiled: int) -> None:
    def fill(db: Any) -> None:
        text = "甲醇易燃𠮷é。\n"  # eight code points, one of them beyond the first plane
        assert len(text) == 8
        db.add(
            Document(
                document_id="d",
                page_id="p",
                source="a",
                url="",
                identity="d",
                state="kept",
                version_id="v",
                text=text,
            )
        )
        db.add(Partition(partition_id="x", document_id="d", version_id="v", method="fixed"))
        db.add(Partition(partition_id="old", document_id="d", version_id="gone", method="fixed"))
        for start, end in cuts:
            db.add(
                Chunk(
                    chunk_id=f"{start} {end}", partition_id="x", document_id="d", version_id="v", method="fixed",
                    position=start, start=start, end=end, text=text[start:end],
                )
            )  # fmt: skip

    found = run(settings(tmp_path), "1", "chunks", fill)
    assert found["chunks_untiled"].value == untiled
    assert (found.error is not None) == bool(untiled)


def test_recall_is_compared_under_the_same_settings_only(tmp_path: Path) -> None:
    def figure(value: float) -> Any:
        def fill(db: Any) -> None:
            db.merge(
                Evaluation(
                    evaluation_id="x",
                    table="main",
                    method="qchunker",
                    metric="evidence_recall",
                    value=value,
                    n=200,
                )
            )

        return fill

    s = settings(tmp_path)
    run(s, "1", "evaluate", figure(0.70))
    assert run(s, "2", "evaluate", figure(0.66))["evidence_recall_fall", "qchunker"].state == "passed"
    fallen = run(s, "3", "evaluate", figure(0.60))["evidence_recall_fall", "qchunker"]
    assert (fallen.state, fallen.severity) == ("failed", "warn")
    assert "66 % → 60 % (n = 200), −6.0 points (limit −5)" in fallen.message
    other = run(settings(tmp_path, evaluation={"top_k": 32}), "4", "evaluate", figure(0.3))
    assert "other settings (evaluation) than in run 3" in other["evidence_recall_fall", "qchunker"].message


def test_both_databases_count_alike(tmp_path: Path, catalogue_url: str) -> None:
    s = settings(tmp_path, catalogue={"url": catalogue_url})

    def fill(db: Any) -> None:
        for at, row in enumerate(db.scalars(select(Document).order_by(Document.document_id))):
            row.flags = ["orders", "unrefined"] if at < 2 else []
            row.text, row.version_id = "甲醇𠮷é", row.document_id
            db.add(
                Partition(partition_id=row.document_id, document_id=row.document_id, version_id=row.document_id, method="fixed")
            )  # fmt: skip
            for start, end in ((0, 2), (2 + (at == 0), 4)):
                db.add(
                    Chunk(
                        chunk_id=f"{at} {start}", partition_id=row.document_id, document_id=row.document_id,
                        version_id=row.document_id, method="fixed", position=start, start=start, end=end, text="",
                    )
                )  # fmt: skip

    assert run(s, "1", "curate", documents(甲=20), fill)["refinements_refused"].value == 0.1
    assert run(s, "2", "curate", documents(甲=10)).error is not None
    assert run(s, "3", "chunks")["chunks_untiled"].value == 0  # their documents are gone
    torn = run(s, "4", "chunks", documents(), documents(甲=20), _texts)
    assert (torn["chunks_untiled"].value, torn.error is None) == (1, False)
    balance = run(
        s,
        "5",
        "questions",
        _questions((6, "boolean", "A-B->C", "是", ""), (4, "boolean", "A-B->C", "No", "")),
    )
    assert balance["boolean_balance", "B"].value == 0.6
    assert (
        run(s, "6", "acquire", crawl("甲", "6", {"kept": 3}), pages("甲", 3))["pages_drop", "甲"].value == 3
    )


def _texts(db: Any) -> None:
    for row in db.scalars(select(Document)):
        row.text, row.version_id = "甲醇𠮷é", row.document_id


# --- what a failed gate does -----------------------------------------------------------


def test_a_failed_gate_names_value_limit_baseline_and_the_way_on(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    failed = run(s, "2", "curate", documents(a=50))
    assert str(failed.error).startswith(
        "quality gate after curate: documents_drop: 100 → 50, −50 % (limit −20 %)"
    )
    assert "hchem gates decide documents_drop continue --why '…'" in str(failed.error)
    assert "--on-gate continue" in str(failed.error)
    with open_runtime(settings=s) as runtime, runtime.catalogue.reading() as db:
        row = db.get_one(Run, "2")
        assert (row.state, "documents_drop" in row.message) == ("failed", True)
        assert db.query(Document).count() == 50  # what was done stays


def test_going_on_by_parameter_lets_one_run_through_and_is_no_baseline(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    through = run(s, "2", "curate", documents(a=50), on_gate="continue")
    assert through.error is None
    assert (through["documents_drop"].decision, through["documents_drop"].decided_by) == (
        "continue",
        "on_gate=continue",
    )
    assert run(s, "3", "curate").error is not None  # nobody accepted the value


def test_a_run_without_a_deployment_cannot_ask(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    assert isinstance(run(s, "2", "curate", documents(a=50), on_gate="ask").error, GateError)
    assert judging.policy_of(None, deployed=True) == "ask"
    assert judging.policy_of(None, deployed=False) == "fail"
    assert judging.policy_of("fail", deployed=True) == "fail"


def _until_held(s: Settings, run_id: str) -> None:
    """A run of a deployment, as its flow is left where a gate asks."""
    with (
        open_runtime(settings=s, run_id=run_id) as runtime,
        execution.session(runtime, "refresh", RefreshParameters(), deployed=True) as current,
    ):
        current.stages["curate"] = {"seconds": 1.0, "steps": {}}
        judging.after_stage(current, "curate")  # the stage's flow ends well
        current.gates.raise_if_held()


def _suspend(s: Settings, run_id: str) -> None:
    with pytest.raises(AwaitingDecision, match="for a decision after curate: documents_drop: 100 → 50"):
        _until_held(s, run_id)


def test_a_suspended_run_frees_the_lease_and_goes_on_in_its_own_row(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    run(s, "2", "curate", documents(a=50))
    _suspend(s, "3")
    with open_runtime(settings=s, run_id="3") as runtime:
        with runtime.catalogue.reading() as db:
            row = db.get_one(Run, "3")
            assert (row.state, row.finished_at is None) == ("suspended", False)
            assert db.get(Lease, "run") is None
            held = [check.check_id for check in decisions.held_by(db, "3")]
        decisions.record(runtime.catalogue, held, decisions.Decision(True, False, "李工", "好"))
        with execution.session(runtime, "refresh", RefreshParameters(), deployed=True) as current:
            assert list(current.stages) == ["curate"]  # done: the flow goes on behind it
        with runtime.catalogue.reading() as db:
            row = db.get_one(Run, "3")
            assert (row.state, row.message, list(row.stages)) == ("completed", "", ["curate"])


def test_a_suspended_run_on_which_nobody_decides_has_failed(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    run(s, "2", "curate", documents(a=50))
    _suspend(s, "3")
    run(s, "4", "graph")
    for state, days in (("suspended", 6), ("failed", 8)):
        with open_runtime(settings=s) as runtime, runtime.catalogue.writing() as db:
            db.get_one(Run, "3").finished_at = now() - timedelta(days=days)
        run(s, f"after {days}", "graph")
        with open_runtime(settings=s) as runtime, runtime.catalogue.reading() as db:
            row = db.get_one(Run, "3")
            assert (row.state, row.message.startswith("nobody decided within 7d")) == (
                state,
                state == "failed",
            )


@pytest.mark.parametrize("baseline", [False, True])
def test_a_decision_is_honoured_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: bool
) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    run(s, "2", "curate", documents(a=50))
    extra = ["--baseline"] if baseline else []
    why = "来源关闭 / source closed"
    done = command(
        tmp_path,
        monkeypatch,
        "gates",
        "decide",
        "documents_drop",
        "continue",
        "--why",
        why,
        "--by",
        "李工",
        *extra,
    )
    assert done.exit_code == 0, done.output
    assert "Run the same command again" in done.output
    next_run = run(s, "3", "curate", documents(a=49))  # no worse, but for a little
    assert next_run.error is None
    row = next_run["documents_drop"]
    assert (row.decision, row.decided_by, row.why) == ("accept" if baseline else "continue", "李工", why)
    after = run(s, "4", "curate")
    assert (after.error is None) == baseline
    assert after["documents_drop"].baseline == (49 if baseline else 100)


def test_a_decision_does_not_cover_what_is_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    run(s, "2", "curate", documents(a=50))
    command(tmp_path, monkeypatch, "gates", "decide", "documents_drop", "continue", "--why", "x")
    assert run(s, "3", "curate", documents(a=30)).error is not None
    assert run(s, "4", "curate", documents(a=50)).error is not None  # the newest failure is undecided


def test_an_accepted_value_is_the_limit_of_a_gate_without_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = settings(tmp_path)
    blocked = {"kept": 8, "excluded:robots": 12}
    assert run(s, "1", "acquire", crawl("源", "1", blocked)).error is not None
    found = command(
        tmp_path, monkeypatch, "gates", "decide", "crawl_refused", "continue", "--baseline", "--why", "agreed"
    )
    assert found.exit_code == 0, found.output
    for number in ("2", "3"):
        assert run(s, number, "acquire", crawl("源", number, blocked)).error is None
    worse = run(s, "4", "acquire", crawl("源", "4", {"kept": 2, "excluded:robots": 18}))
    assert worse.error is not None
    assert "60 % was accepted" in worse["crawl_refused", "源"].message


def test_stop_is_kept_with_who_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = settings(tmp_path)
    run(s, "1", "curate", documents(a=100))
    run(s, "2", "curate", documents(a=50))
    stopped = command(
        tmp_path, monkeypatch, "gates", "decide", "documents_drop", "stop", "--why", "查", "--by", "Li"
    )
    assert stopped.exit_code == 0
    history = command(tmp_path, monkeypatch, "gates", "history", "documents_drop", "--scope", "")
    assert "[stop: Li: 查]" in history.output
    assert run(s, "3", "curate").error is not None


def test_commands_refuse_what_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(tmp_path)
    nothing = command(tmp_path, monkeypatch, "gates", "decide", "documents_drop", "continue", "--why", "x")
    assert "documents_drop holds no run" in str(nothing.exception)
    unknown = command(tmp_path, monkeypatch, "gates", "history", "nonsense")
    assert isinstance(unknown.exception, SettingsError)
    listed = command(tmp_path, monkeypatch, "gates", "list", "--json")
    assert all(name in listed.output for name in GATES)


# --- settings ---------------------------------------------------------------------------


def test_severity_and_limit_by_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCHEM_GATES__SEVERITY__DOCUMENTS_DROP", "off")
    monkeypatch.setenv("HCHEM_GATES__LIMIT", '{"documents_held": 0.9}')
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    s = load_settings()
    run(s, "1", "curate", documents(a=100))
    found = run(s, "2", "curate", documents(a=10))
    assert found.error is None
    assert ("documents_drop", "") not in found.checks
    assert found["documents_held"].limit == 0.9
    monkeypatch.setenv("HCHEM_GATES__LIMIT", '{"nonsense": 1}')
    with pytest.raises(SettingsError, match=r"no gate nonsense; gates: crawl_empty"):
        load_settings()


@pytest.mark.parametrize("text", ["8", "1.5d", "d", "-3d", "8 d", "", "9999999d"])
def test_lengths_of_time_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="no length of time"):
        period(text)
    with pytest.raises(ValueError, match="no length of time"):
        GateSettings(wait=text)


# --- a real run -----------------------------------------------------------------------------


@pytest.mark.slow
def test_two_runs_of_a_real_site_raise_no_alarm_and_lost_documents_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_CRAWL__SAMPLE_DIR", str(small_site(tmp_path / "site")))
    for _ in range(2):
        done = command(tmp_path, monkeypatch, "refresh", "--direct", "--to-stage", "curate")
        assert done.exit_code == 0, done.output
    catalogue = Catalogue.open(settings(tmp_path).catalogue_url())
    with catalogue.reading() as db:
        rows = list(db.scalars(select(Check)))
        last = db.scalars(select(Run.run_id).order_by(Run.started_at.desc()).limit(1)).one()
    assert [row.message for row in rows if row.state == "failed"] == []
    assert {row.name for row in rows if row.run_id == last and row.state == "passed"} >= {
        "crawl_empty", "crawl_refused", "pages_drop", "documents_drop", "documents_held", "refinements_refused"
    }  # fmt: skip

    with catalogue.writing() as db:  # made up: the run before had many more
        for row in db.scalars(select(Check).where(Check.run_id == last, Check.name == "documents_drop")):
            row.value = 500
    stopped = command(tmp_path, monkeypatch, "run", "curate", "--direct")
    assert isinstance(stopped.exception, GateError)
    assert "documents_drop: 500 → " in str(stopped.exception)
    decided = command(
        tmp_path, monkeypatch, "gates", "decide", "documents_drop", "continue", "--why", "made up"
    )
    assert decided.exit_code == 0, decided.output
    again = command(tmp_path, monkeypatch, "run", "curate", "--direct")
    assert again.exit_code == 0, again.output
    catalogue.close()


def test_a_run_that_a_gate_fails_leaves_no_version_of_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stages of ``hchem run questions``, on a graph that holds nothing."""
    s = settings(tmp_path)
    run(s, "1", "questions", _questions((50, "single_hop", "", "4", "")))
    monkeypatch.setattr(execution, "run_stage", lambda current, stage, _: _empty_stage(current, stage))
    failed = command(tmp_path, monkeypatch, "run", "questions", "--direct")
    assert isinstance(failed.exception, GateError), failed.output
    assert not folder_of(s.data_dir).exists()
    through = command(tmp_path, monkeypatch, "run", "questions", "--direct", "--on-gate", "continue")
    assert through.exit_code == 0, through.output
    assert folder_of(s.data_dir).exists()


def _empty_stage(current: execution.Session, stage: str) -> dict[str, Any]:
    """A stage that loses all questions."""
    with current.runtime.catalogue.writing() as db:
        _questions()(db)
    current.stages[stage] = {"seconds": 0.0, "steps": {}}
    judging.after_stage(current, stage)
    return {}

"""``hchem questions`` and ``hchem dataset`` on a catalogue and a graph of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, LedgerRow, Question
from corpus.errors import SettingsError
from flows.cli import build
from kg.embedded import EmbeddedGraph
from kg.graph_settings import QuestionSettings
from kg.qa.generate import generate
from kg.qa.step import ITEM, STEP, question_row
from kg.store import GraphStore
from models import Models
from tests.kg.graph_builders import fill
from tests.kg.qa_faults import FEW
from tests.kg.qa_world import World

pytestmark = pytest.mark.graph


@pytest.fixture(scope="module")
def data_dir(
    tmp_path_factory: pytest.TempPathFactory, bolt_server: EmbeddedGraph, session_store: GraphStore
) -> Path:
    """A data directory with questions, on the session's server."""
    folder = tmp_path_factory.mktemp("command")
    session_store.clear()
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db")
    fill(catalogue, FEW)
    world = World(catalogue, session_store)
    made = generate(world.facts, session_store, QuestionSettings(evaluation_share=0.5), Models.offline())
    with catalogue.writing() as session:
        session.add_all(Question(**question_row(judged, "s")) for judged in made.questions)
    catalogue.close()
    return folder


@pytest.fixture(autouse=True)
def environment(data_dir: Path, bolt_server: EmbeddedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "HCHEM_DATA_DIR": str(data_dir),
        "HCHEM_GRAPH__URI": bolt_server.uri,
        "HCHEM_GRAPH__USER": bolt_server.user,
        "HCHEM_GRAPH__PASSWORD": bolt_server.password,
        "HCHEM_GRAPH__DATABASE": bolt_server.database,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(data_dir)


def run(*arguments: str, group: str = "questions") -> Result:
    result = CliRunner().invoke(build([group]), [group, *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rows(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("list", *arguments, "--json").stdout.splitlines()]


def test_list_says_how_many_were_possible(data_dir: Path) -> None:
    assert "possible" not in run("list", "--limit", "1").stdout
    catalogue = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    with catalogue.writing() as session:
        row = LedgerRow(step=STEP, item_id=ITEM, fingerprint="f", state="kept", run_id="run")
        row.counts = {"single_hop": 3, "not made: not_drawn": 1000}
        session.add(row)
    kept = len(rows("--limit", "100000"))
    said = run("list", "--limit", "1", "--kind", "boolean").stdout
    assert f"Drawn: {kept:,} of {kept + 1000:,} possible" in said
    assert all(json.loads(line) for line in run("list", "--json", "--limit", "2").stdout.splitlines())
    with catalogue.writing() as session:
        session.delete(session.get_one(LedgerRow, (STEP, ITEM)))
    catalogue.close()


def test_list_with_filters() -> None:
    everything = rows("--limit", "100000")
    assert len(everything) > 200
    assert [row["question_id"] for row in everything] == sorted(row["question_id"] for row in everything)
    for option, name, values in (
        ("--kind", "kind", ("single_hop", "multi_hop", "aggregative", "boolean")),
        ("--language", "language", ("zh", "en")),
        ("--section", "section", (9, 10)),
        ("--split", "split", ("train", "eval")),
    ):
        for value in values:
            found = rows(option, str(value), "--limit", "100000")
            assert {row[name] for row in found} == {value}
            assert len(found) == sum(row[name] == value for row in everything)
    levels = {row["difficulty"]["level"] for row in rows("--level", "easy")}
    assert levels == {"easy"}
    curated = rows("--curated", "--limit", "100000")
    assert curated
    assert all(row["curated"] and row["split"] == "eval" for row in curated)
    for name in ("甲醇", "methanol", "67-56-1"):
        found = rows("--substance", name, "--template", "value", "--limit", "100000")
        assert found
        assert all("67-56-1" in row["substances"] and row["template"].startswith("value/") for row in found)
    assert all("闪点" in row["question"] + row["answer"] for row in rows("--text", "闪点"))
    assert rows("--text", "no such text % _") == []
    rejected = rows("--rejected")
    assert rejected
    assert all(row["state"] == "rejected" and row["reason"] for row in rejected)
    reason = rejected[0]["reason"]
    assert {row["reason"] for row in rows("--reason", reason)} == {reason}
    shown = run("list", "--limit", "3").stdout.splitlines()
    assert len(shown) == 4
    assert shown[-1] == f"3 of {len(everything)} questions"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--kind", "odd"], "single_hop"),
        (["list", "--language", "fr"], "zh"),
        (["list", "--section", "17"], "1 to 16"),
        (["list", "--substance", "nothing"], "nothing"),
        (["verify", "--level", "impossible"], "easy"),
        (["show", "zzz"], "no question"),
        (["show", ""], "give the id of a question"),
    ],
)
def test_wrong_options_say_what_is_right(arguments: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        run(*arguments)


def test_several_questions_that_begin_alike_are_named() -> None:
    ids = [row["question_id"] for row in rows("--limit", "100000", "--rejected")]
    ids += [row["question_id"] for row in rows("--limit", "100000")]
    start = next(c for c in "0123456789abcdef" if sum(key.startswith(c) for key in ids) > 1)
    with pytest.raises(
        SettingsError, match=f"more than one question has an id that begins with '{start}'"
    ) as said:
        run("show", start)
    named = sorted(key for key in ids if key.startswith(start))[:2]
    assert all(key[:12] in str(said.value) for key in named)
    assert "give more of the id" in str(said.value)


@pytest.mark.parametrize("kind", ["single_hop", "multi_hop", "aggregative", "boolean"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_show(data_dir: Path, kind: str, language: str) -> None:
    question = rows("--kind", kind, "--language", language, "--limit", "1")[0]
    text = run("show", question["question_id"][:20]).stdout
    assert text.startswith(f"{question['question']}\n→ {question['answer'].splitlines()[0]}")
    assert question["proof"]["cypher"] in text
    for reference in question["references"]:
        quote = "«" + reference["quote"].replace("\n", " ⏎ ") + "»"
        assert quote in text
        assert reference["url"] in text
    assert "licence: made up" in text
    assert "· sample ·" in text
    found = json.loads(run("show", question["question_id"], "--json").stdout)
    assert len(found["evidence"]) == len(question["references"])
    for entry in found["evidence"]:
        assert not entry["note"]
        assert entry["licence"] == "made up"
    catalogue = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    with catalogue.reading() as session:
        for entry in found["evidence"]:
            document = session.get(Document, entry["document_id"])
            assert document is not None
            assert entry["before"] + entry["quote"] + entry["after"] in document.text
    catalogue.close()


def test_verify_and_a_failure(data_dir: Path) -> None:
    result = run("verify")
    assert result.exit_code == 0
    total = len(rows("--limit", "100000"))
    assert f"{total} questions checked, 0 fail" in result.stdout
    assert "questions verified" in result.stderr
    some = json.loads(run("verify", "--kind", "boolean", "--language", "zh", "--json").stdout)
    assert some == {"checked": len(rows("--kind", "boolean", "--language", "zh", "--limit", "100000")), "failed": 0,
                    "reasons": {}, "problems": []}  # fmt: skip
    catalogue = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    with catalogue.writing() as session:
        row = session.scalars(
            select(Question).where(Question.kind == "boolean", Question.state == "kept").limit(1)
        ).one()
        key, kept = row.question_id, row.answer_set
        row.answer_set = [{"key": "no" if kept[0]["key"] == "yes" else "yes", "text": ""}]
    try:
        result = run("verify", "--limit", "1")
        assert result.exit_code == 1
        assert "1 fail" in result.stdout
        assert "proof gives other answers: 1" in result.stdout
        assert key in result.stdout
        assert json.loads(run("verify", "--json").stdout)["problems"][0]["question"] == key
        assert run("verify", "--kind", "single_hop").exit_code == 0
    finally:
        with catalogue.writing() as session:
            session.get_one(Question, key).answer_set = kept
        catalogue.close()


@pytest.mark.parametrize("command", ["list", "show", "verify"])
def test_help_has_examples(command: str) -> None:
    text = run(command, "--help").stdout
    assert "Example" in text
    assert "hchem questions" in text


def test_export(tmp_path: Path) -> None:
    result = run("export", "--out", str(tmp_path / "out"), "--json", group="dataset")
    said = json.loads(result.stdout)
    assert said["rows"]["qa.jsonl"] == len(rows("--limit", "100000"))
    assert said["rows"]["eval.jsonl"] == len(rows("--curated", "--limit", "100000"))
    assert said["checksums"].keys() == said["rows"].keys()
    assert run("verify", str(tmp_path / "out"), group="dataset").exit_code == 0
    (tmp_path / "out" / "qa.jsonl").write_bytes(b"{}\n")
    (tmp_path / "out" / "eval.parquet").unlink()
    broken = run("verify", str(tmp_path / "out"), group="dataset")
    assert broken.exit_code == 1
    assert "qa.jsonl: not as it was written" in broken.stdout
    assert "eval.parquet: missing" in broken.stdout
    assert "Example" in run("export", "--help", group="dataset").stdout

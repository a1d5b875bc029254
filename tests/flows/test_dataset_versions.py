"""``hchem dataset snapshot|versions|diff|tag|rollback|gc`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Question
from flows.commands.dataset import app
from tests.kg.test_dataset import filled


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HCHEM_CATALOGUE__URL", f"sqlite:///{tmp_path}/c.db")
    return filled(tmp_path)


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_from_snapshot_to_rollback(catalogue: Catalogue, tmp_path: Path) -> None:
    assert "no versions yet" in run("versions").output
    first = run("snapshot", "--tag", "发布-1").output.split()
    assert first[1:] == ["new", "current,", "发布-1"]
    assert run("snapshot").output.split()[:2] == [first[0], "unchanged"]
    with catalogue.writing() as session:
        row = session.scalars(select(Question).where(Question.question_id == "q001")).one()
        row.answer, row.answer_set = "否", [{"key": "no", "text": ""}]
    second = run("snapshot").output.split()[0]
    listed = json.loads(run("versions", "--json").output)
    assert [(v["id"], v["tags"]) for v in listed] == [
        (first[0], ["previous", "发布-1"]),
        (second, ["current"]),
    ]
    shown = run("diff").output
    assert "question stale: 1" in shown
    assert "是 → 否" in shown
    assert "(answer)" in shown
    told = json.loads(run("diff", "发布-1", second[:6], "--json").output)
    assert told["counts"] == {"question stale": 1}
    assert first[0] in run("rollback").output
    run("export", "--out", str(tmp_path / "out"), "--version", "current")
    assert '"answer": "是"' in (tmp_path / "out" / "qa.jsonl").read_text(encoding="utf-8").splitlines()[0]
    run("untag", "发布-1")
    assert "would remove 0" in run("gc", "--keep", "0", "--dry-run").output  # current and previous have names
    run("tag", "second", second)
    assert "Example" in run("gc", "--help").output


def test_a_name_that_leads_nowhere_is_an_error_of_one_line(catalogue: Catalogue) -> None:
    run("snapshot")
    result = CliRunner().invoke(app, ["diff", "nothing", "current"])
    assert result.exit_code != 0
    assert "nothing" in str(result.exception)

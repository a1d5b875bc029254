"""What a newcomer sees: a data directory in which nothing ran yet, and what fits a terminal of 80 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from corpus.catalogue.tables import Run
from flows import summary
from flows.cli import build
from flows.commands import backfill, pipeline
from flows.operation_settings import GATES
from flows.runtime import open_runtime


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("COLUMNS", raising=False)


def _said(*arguments: str) -> Result:
    found = CliRunner().invoke(build(list(arguments)), list(arguments))
    assert found.exit_code == 0, found.output
    return found


def test_status_of_nothing_says_what_to_run_and_alarms_nobody(tmp_path: Path) -> None:
    lines = _said("status").stdout.splitlines()
    assert lines[0] == f"Nothing has run yet in {tmp_path / 'data'}."
    assert lines[1].startswith("hchem refresh ")
    assert len(lines) == 3
    assert "stale" not in "".join(lines)
    figures = json.loads(_said("status", "--json").stdout)
    assert (figures["last_run"], figures["pages"], figures["chunks"]) == (None, 0, {})


def test_no_figure_of_the_summary_is_blank() -> None:
    with open_runtime() as runtime:
        figures = summary.status(runtime.catalogue)
    shown = dict(summary.lines(figures, {}))
    assert (shown["pages"], shown["documents not kept"], shown["chunks"]) == ("0", "0", "–")
    assert all(text.strip() for text in shown.values())


def test_the_first_run_says_that_it_takes_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    with open_runtime() as runtime:
        pipeline._say_how_long(runtime)
        assert "minutes" in capsys.readouterr().err
        with runtime.catalogue.writing() as db:
            db.add(Run(run_id="r1", flow="refresh", parameters={}, settings={}, stages={}, state="completed"))
        pipeline._say_how_long(runtime)
    assert capsys.readouterr().err == ""
    assert "minutes" in _said("refresh", "--help").stdout


def test_the_gates_fit_80_columns_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = _said("gates", "list").stdout.splitlines()
    assert max(map(cell_len, lines)) <= 80
    told = " ".join(" ".join(lines).split())
    for gate in GATES.values():
        assert gate.name in told
        assert all(word in told for word in gate.what.split())


def test_the_note_on_partitions_explains_what_is_shown_and_nothing_else() -> None:
    assert backfill._caption(["ok", "ok"], []) == "ok: nothing to do."
    told = backfill._caption(["stale", "failed", "ok"], ["extract", "chunks"])
    assert told.startswith("stale: made by other code, settings or models; failed: something failed")
    assert "pending" not in told
    assert "Under extract, chunks: items that the step has to do now" in told

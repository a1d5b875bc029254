"""What a restored directory lacks is said: the graph and the vector index are in no backup."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import GraphSnapshot, LedgerRow, Page, Run
from flows import projections
from flows.cli import build

STAGES = {"graph": {"seconds": 1.0, "steps": {"graph.sync": {"pending": 0}}}}


def _run(*argv: str) -> str:
    ended = CliRunner().invoke(build([argv[0]]), list(argv))
    assert ended.exit_code == 0, (ended.output, ended.exception)
    return ended.output


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose graph and index were made, with their files."""
    folder = tmp_path / "data"
    monkeypatch.setenv("HCHEM_DATA_DIR", str(folder))
    monkeypatch.chdir(tmp_path)
    folder.mkdir()
    made = Catalogue.open(f"sqlite:///{folder}/catalogue.db")
    with made.writing() as session:
        session.add(
            Page(page_id="p", document_id="d", source="s", url="https://x", identity="x", state="kept")
        )
        session.add(GraphSnapshot(snapshot_id="snap", nodes=3828, relationships=11019, detail={}, run_id="r"))
        for step, item, detail in (("graph.snapshot", "graph", "snap"), ("evaluate.index", "fixed", "")):
            session.add(
                LedgerRow(step=step, item_id=item, fingerprint="f", state="kept", detail=detail, run_id="r")
            )
        session.add(Run(run_id="r", flow="refresh", state="completed", stages=STAGES))
    made.close()
    schema = folder / "graph" / "databases" / "hchem" / "schema.json"
    schema.parent.mkdir(parents=True)
    schema.write_text("{}")
    (folder / "vectors").mkdir()
    return folder


def test_a_whole_directory_lacks_nothing(data: Path) -> None:
    shown = _run("status")
    assert "3828 nodes, 11019 relationships" in shown
    assert "made again" not in shown
    assert "not loaded here" not in shown
    assert "Nothing had changed since the last run" in shown
    assert json.loads(_run("status", "--json"))["absent"] == []


def test_after_a_restore_status_says_what_is_to_be_made_again(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    _run("backup", str(tmp_path / "b.tar.gz"))
    _run("restore", str(tmp_path / "b.tar.gz"), "--into", str(tmp_path / "again"))
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "again"))
    shown = _run("status")
    assert "3828 nodes, 11019 relationships when it was last loaded; not loaded here" in shown
    assert "graph: no data in this directory, make it again: hchem refresh" in shown
    assert "vector index: no data in this directory, make it again: hchem refresh" in shown
    assert "Nothing had changed" not in shown
    assert [(row["what"], row["command"]) for row in json.loads(_run("status", "--json"))["absent"]] == [
        ("graph", "hchem refresh"),
        ("vector index", "hchem refresh"),
    ]


def test_of_a_server_a_restore_is_remembered_until_the_graph_is_loaded_anew(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_GRAPH__URI", "bolt://127.0.0.1:1")  # no server is asked
    assert json.loads(_run("status", "--json"))["absent"] == []
    _run("backup", str(tmp_path / "b.tar.gz"))
    _run("restore", str(tmp_path / "b.tar.gz"), "--force")
    (data / "vectors").mkdir(exist_ok=True)
    shown = _run("status")
    assert "graph: the server may hold another state than this restored catalogue" in shown
    assert "make it again: hchem graph rebuild" in shown
    assert "Nothing had changed" not in shown
    projections.mark_loaded(data)
    assert json.loads(_run("status", "--json"))["absent"] == []

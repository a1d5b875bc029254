"""``hchem chemicals`` and ``hchem documents`` on a catalogue of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document
from corpus.errors import SettingsError
from flows import summary
from flows.commands import chemicals, documents

run = CliRunner().invoke


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_chemicals_from_import_to_show(tmp_path: Path) -> None:
    listed = tmp_path / "mine.csv"
    listed.write_text(
        "name,cas,aliases,name_zh\nmethanol,67-56-1,木精,甲醇\nbad,67-56-2,,\n", encoding="utf-8"
    )
    imported = run(chemicals.app, ["import", str(listed)])
    assert imported.exit_code == 0, imported.output
    assert "1 added" in imported.output
    assert "line 3" in imported.output
    assert run(chemicals.app, ["add", "methyl alcohol", "--cas", "67-56-1"]).output.startswith(
        "extended 67-56-1"
    )
    shown = json.loads(run(chemicals.app, ["show", "木精", "--json"]).output)
    assert shown["cas"] == "67-56-1"
    assert {n["name"] for n in shown["names"]} == {"methanol", "甲醇", "木精", "methyl alcohol"}
    assert "1 of 1 substances" in run(chemicals.app, ["list", "甲醇"]).output


def test_unknown_things_are_clear_errors() -> None:
    for app, arguments, said in (
        (chemicals.app, ["show", "nonsense"], "no chemical is called"),
        (chemicals.app, ["add", "x", "--cas", "1-2-3"], "check digit"),
        (chemicals.app, ["import", "nowhere.csv"], "cannot be read"),
        (documents.app, ["show", "zzz"], "no document has"),
        (documents.app, ["list", "--state", "odd"], "unknown state"),
    ):
        result = run(app, arguments)
        assert isinstance(result.exception, SettingsError)
        assert said in str(result.exception)


def test_documents(data_dir: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    with catalogue.writing() as session:
        for i, state in enumerate(("kept", "rejected")):
            session.add(
                Document(
                    document_id=f"{i}abc", page_id="p", source="s", url=f"https://x.example/{i}", identity=str(i),
                    state=state, reason="" if state == "kept" else "low_score", score=4.0 - i, text="甲醇有毒。",
                )
            )  # fmt: skip
        session.add(
            Document(
                document_id="ref", page_id="", source="chemicals", url="", identity="iarc", kind="reference", state="kept",
                title="IARC 71-43-2",
            )
        )  # fmt: skip
    listed = run(documents.app, ["list"]).output
    assert "2 of 2 documents, beside 1 reference entries" in listed
    assert "IARC 71-43-2" not in listed
    references = run(documents.app, ["list", "--references"]).output
    assert "1 of 1 reference entries" in references
    assert "IARC 71-43-2" in references
    figures = summary.status(catalogue)
    assert (sum(figures["documents"].values()), figures["references"]) == (2, 1)  # as the list says
    assert ("reference entries", "1 (of published lists, beside the documents)") in summary.lines(figures, {})
    assert "1 of 1 documents" in run(documents.app, ["list", "--state", "rejected"]).output
    assert run(documents.app, ["show", "0a", "--text"]).output == "甲醇有毒。\n"
    shown = json.loads(run(documents.app, ["show", "https://x.example/1", "--json"]).output)
    assert shown["state"] == "rejected low_score"

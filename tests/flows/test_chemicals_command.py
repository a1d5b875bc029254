"""``hchem chemicals``: import, dry run, review, taking back; tables that are not cut where they are piped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpus.errors import SettingsError
from flows.commands import chemicals
from flows.console import out

run = CliRunner().invoke
LONG = "1,1'-(1,2-ethenediylidene)bis[2,3,4,5,6-pentabromobenzene-of-a-very-long-made-up-name-for-this-test]"


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def test_import_review_and_taking_back(tmp_path: Path) -> None:
    listed = tmp_path / "清单.csv"
    listed.write_text(
        "name;cas;中文名\nbenzene;71-43-2;苯\ntoluene;108-88-3;苯\nbad;1-2-3;\n", encoding="utf-8-sig"
    )
    dry = run(chemicals.app, ["import", str(listed), "--dry-run"])
    assert "dry run, nothing changed: 2 added, 0 extended, 0 unchanged, 1 bad rows, 2 to review" in dry.output
    assert run(chemicals.app, ["list"]).output.strip().endswith("0 of 0 substances")
    done = run(chemicals.app, ["import", str(listed)])
    assert done.exit_code == 0
    assert "review: 清单.csv, line 3: '苯' is also a name of 71-43-2: not given to 108-88-3" in done.output
    assert "清单.csv, line 4: '1-2-3' is not a CAS number" in done.output
    assert "0 added, 0 extended, 2 unchanged" in run(chemicals.app, ["import", str(listed)]).output
    assert (
        run(chemicals.app, ["add", "benzol", "--cas", "71-43-2", "--un", "1114"]).output
        == "extended 71-43-2\n"
    )
    rows = [json.loads(line) for line in run(chemicals.app, ["list", "--json"]).output.splitlines()]
    assert [(row["key"], row["name"], row["un"]) for row in rows] == [
        ("108-88-3", "toluene", []),
        ("71-43-2", "benzene", ["1114"]),
    ]
    assert (
        "1 names and 0 substances removed"
        in run(chemicals.app, ["remove", "benzene", "--name", "benzol"]).output
    )
    assert "2 names and 2 substances removed" in run(chemicals.app, ["remove", "--list", "清单.csv"]).output
    assert "0 of 0 substances" in run(chemicals.app, ["list"]).output
    for wrong in ([], ["x", "--list", "y.csv"], ["--list", "y.csv"], ["nothing"]):
        assert isinstance(run(chemicals.app, ["remove", *wrong]).exception, SettingsError)


def test_a_piped_table_is_not_cut_and_a_narrow_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run(chemicals.app, ["add", LONG, "--cas", "71-43-2", "--zh", "很长的名字" * 12])
    piped = run(chemicals.app, ["list"]).output
    assert any(LONG in line and "很长的名字" * 12 in line for line in piped.splitlines())
    assert LONG in run(chemicals.app, ["show", "71-43-2"]).output
    monkeypatch.setattr(out, "_environ", {"COLUMNS": "60", "LINES": "20"})
    monkeypatch.setattr(out, "_width", 60)
    assert max(map(len, run(chemicals.app, ["list"]).output.splitlines())) <= 60

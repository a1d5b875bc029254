"""``hchem chemicals``: import, dry run, review, taking back; tables that are not cut where they are piped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpus.errors import SettingsError
from flows.commands import chemicals
from tests.conftest import SAMPLES

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
    assert "dry run, nothing changed: 2 added, 0 extended, 0 unchanged, 1 bad row, 2 to review" in dry.output
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
        "1 name and 0 substances removed"
        in run(chemicals.app, ["remove", "benzene", "--name", "benzol"]).output
    )
    assert "2 names and 2 substances removed" in run(chemicals.app, ["remove", "--list", "清单.csv"]).output
    assert "0 of 0 substances" in run(chemicals.app, ["list"]).output
    for wrong in ([], ["x", "--list", "y.csv"], ["--list", "y.csv"], ["nothing"]):
        assert isinstance(run(chemicals.app, ["remove", *wrong]).exception, SettingsError)


def test_removal_without_a_list_takes_back_only_what_was_added(tmp_path: Path) -> None:
    listed = tmp_path / "mine.csv"
    listed.write_text("名称,CAS号,别名,中文名,备注\nbenzene,71-43-2,安息油,苯,x\n", encoding="utf-8")
    assert "columns not used: 备注" in run(chemicals.app, ["import", str(listed), "--dry-run"]).output
    run(chemicals.app, ["import", str(listed)])
    added = run(chemicals.app, ["add", "newthing", "--zh", "苯"]).output
    assert "warning: 'newthing' extends 苯 (71-43-2) since" in added
    assert "--cas" in added
    other = run(chemicals.app, ["add", "newthing", "--zh", "苯", "--cas", "108-88-3", "--dry-run"]).output
    assert "conflict: '苯' is also a name of 71-43-2: not given to 108-88-3" in other
    for how in (["--dry-run"], []):
        removed = run(chemicals.app, ["remove", "苯", *how]).output
        assert "71-43-2: removed newthing\n" in removed
        assert "71-43-2: benzene; 安息油; 苯 stays, of list mine.csv #" in removed
        assert "1 name and 0 substances removed" in removed
    again = run(chemicals.app, ["remove", "苯"]).exception
    assert isinstance(again, SettingsError)
    assert "list mine.csv #" in str(again)


def test_show_says_all_lists_that_hold_a_name(tmp_path: Path) -> None:
    for name in ("甲表.csv", "b.csv"):
        (tmp_path / name).write_text("name,cas,中文名\nbenzene,71-43-2,苯\n", encoding="utf-8")
        run(chemicals.app, ["import", str(tmp_path / name)])
    shown = json.loads(run(chemicals.app, ["show", "苯", "--json"]).output)
    assert {
        name["name"]: ("甲表.csv" in name["source"], "b.csv" in name["source"]) for name in shown["names"]
    } == {
        "benzene": (True, True),
        "苯": (True, True),
    }
    run(chemicals.app, ["remove", "--list", "甲表.csv"])
    left = run(chemicals.app, ["show", "71-43-2"]).output
    assert "甲表.csv" not in left
    assert left.count("b.csv") >= 3  # both names and the substance


def test_the_sample_list_is_not_removed_by_its_name(tmp_path: Path) -> None:
    run(chemicals.app, ["import", str(SAMPLES / "chemicals.csv")])
    own = tmp_path / "chemicals.csv"
    for which in ("chemicals.csv", str(SAMPLES / "chemicals.csv")):
        assert "sample source" in str(run(chemicals.app, ["remove", "--list", which]).exception)
    own.write_text("name,cas,aliases\nmethanol,67-56-1,own word\n", encoding="utf-8")
    run(chemicals.app, ["import", str(own)])
    removed = run(chemicals.app, ["remove", "--list", "chemicals.csv"]).output
    assert "67-56-1: removed own word" in removed
    assert "1 name and 0 substances removed" in removed
    assert "木精" in run(chemicals.app, ["show", "methanol"]).output


def test_a_wrong_check_digit_is_said() -> None:
    for command in ("show", "remove"):
        said = str(run(chemicals.app, [command, "71-43-3"]).exception)
        assert "check digit is wrong (it would be 71-43-2)" in said


def test_a_piped_table_is_not_cut_and_a_narrow_one_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    run(chemicals.app, ["add", LONG, "--cas", "71-43-2", "--zh", "很长的名字" * 12])
    piped = run(chemicals.app, ["list"]).output
    assert any(LONG in line and "很长的名字" * 12 in line for line in piped.splitlines())
    assert LONG in run(chemicals.app, ["show", "71-43-2"]).output
    monkeypatch.setenv("COLUMNS", "60")
    table = [line for line in run(chemicals.app, ["list"]).output.splitlines() if line.strip()][:-1]
    assert table
    assert max(map(len, table)) <= 60
    listed = tmp_path / "list.csv"
    listed.write_text("name,cas\nmethanol,67-56-1\n", encoding="utf-8")
    said = run(chemicals.app, ["import", str(listed), "--dry-run"]).output
    assert "nothing changed: 1 added, 0 extended, 0 unchanged, 0 bad rows, 0 to review\n" in said

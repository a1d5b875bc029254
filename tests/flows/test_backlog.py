"""What is behind after a run of some stages only, and the command that catches up."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from corpus.archive import ArchiveWriter, Exchange
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Run, now
from flows.backlog import behind, described
from flows.cli import build
from flows.settings import load_settings

ALL = ["curate", "graph", "questions", "chunks", "evaluate"]


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def warc(folder: Path, name: str, pages: dict[str, str]) -> str:
    writer = ArchiveWriter(folder, name)
    for path, text in pages.items():
        data = f"<html><body><h1>{text}</h1><p>{text}，闪点 11 ℃，不得排入下水道。</p></body></html>".encode()
        sent = [("Content-Type", "text/html; charset=utf-8")]
        place = writer.write_response(
            Exchange(f"https://x.example/{path}", [], 200, "OK", sent, data, data, "2026-01-01T00:00:00Z")
        )
    writer.close()
    return str(folder / place.warc_file)


def command(*arguments: str) -> str:
    result = CliRunner().invoke(build([arguments[0]]), list(arguments))
    assert result.exit_code == 0, result.output or result.exception
    return " ".join(re.sub("[│┌┐└┘─]", " ", result.output).split())


def test_a_run_of_one_stage_says_what_is_behind_and_how_to_catch_up(tmp_path: Path) -> None:
    first = warc(tmp_path, "first", {"a": "甲醇", "b": "乙醇"})
    said = command("run", "acquire", "--direct", "--from-archive", first)
    assert (
        "behind curate (2 pages), graph, questions, chunks, evaluate; "
        "to catch up: hchem refresh --from-stage curate"
    ) in said
    said = command("run", "curate", "--direct")
    assert (
        "behind graph, questions, chunks, evaluate; to catch up: hchem refresh --from-stage graph"
    ) in said
    said = command("run", "acquire", "--direct", "--from-archive", warc(tmp_path, "again", {"b": "正丙醇"}))
    assert "behind curate (1 page), graph, " in said
    found = json.loads(CliRunner().invoke(build(["status"]), ["status", "--json"]).stdout)["behind"]
    assert found == {
        "stages": ALL,
        "pages": 1,
        "settings": [],
        "command": "hchem refresh --from-stage curate",
    }


def ran(catalogue: Catalogue, minute: int, stages: dict[str, int], **changes: Any) -> None:
    reports = {stage: {"steps": {f"{stage}.work": {"pending": n}}} for stage, n in stages.items()}
    reports |= changes.pop("reports", {})
    fields = {"state": "completed", "parameters": {}} | changes
    with catalogue.writing() as db:
        moment = now() + timedelta(minutes=minute)
        db.add(Run(run_id=f"r{minute:03d}", flow="x", started_at=moment, stages=reports, **fields))


def test_stages_read_from_those_that_worked_after_them(data_dir: Path) -> None:
    data_dir.mkdir()
    catalogue = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    assert described(behind(catalogue)) == ""
    everything = dict.fromkeys(["acquire", *ALL], 3)
    ran(catalogue, 1, everything)
    assert behind(catalogue)["stages"] == []
    ran(catalogue, 2, {"graph": 5})
    assert behind(catalogue)["stages"] == ["questions", "evaluate"]  # chunks are cut from documents
    ran(catalogue, 3, {"questions": 1})
    assert described(behind(catalogue)) == "evaluate; to catch up: hchem run evaluate"
    assert described(behind(catalogue), running=True) == "evaluate; a run is at work"
    ran(catalogue, 4, {"evaluate": 1}, parameters={"limit": 3})  # a part of it is not all of it
    assert behind(catalogue)["stages"] == ["evaluate"]
    ran(catalogue, 5, {"evaluate": 0})
    assert behind(catalogue)["stages"] == []
    crawl = {"acquire": {"steps": {"acquire.chemicals": {"pending": 0}, "acquire.crawl": {"pending": 1}}}}
    ran(catalogue, 6, {}, reports=crawl)  # a crawl that brought nothing
    assert behind(catalogue)["stages"] == []
    names = {"acquire": {"steps": {"acquire.chemicals": {"pending": 1}}}}
    ran(catalogue, 7, {}, reports=names)
    assert behind(catalogue)["stages"] == ["graph", "questions", "chunks", "evaluate"]
    ran(catalogue, 8, {"graph": 1, "questions": 1, "chunks": 1}, state="crashed")  # died within chunks
    assert behind(catalogue)["stages"] == ["chunks", "evaluate"]
    ran(catalogue, 9, {"chunks": 0, "evaluate": 2})
    assert behind(catalogue)["stages"] == []
    catalogue.close()


@pytest.mark.parametrize(
    ("change", "late"),
    [
        ({}, []),
        ({"questions": {"hub_degree": 7}}, ["questions", "evaluate"]),
        ({"chunks": {"size": 99}}, ["chunks", "evaluate"]),
        ({"extraction": {"window": 777}}, ["graph", "questions", "evaluate"]),
        ({"graph": {"batch_size": 5}, "flows": {"workers": 1}, "crawl": {"retries": 1}}, []),  # how, not what
        ({"models": {"model": "m"}}, ALL),
        ({"models": {"skills": {"answer_question": {"model": "m"}}}}, ["evaluate"]),
        ({"models": {"temperature": 0.7, "budget": {"calls": 1}}}, []),  # without a model nothing rests on it
    ],
)
def test_settings_that_results_rest_on_put_their_stages_behind(
    data_dir: Path, change: dict[str, dict[str, Any]], late: list[str]
) -> None:
    data_dir.mkdir()
    catalogue = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    then = load_settings().model_dump(mode="json")
    ran(catalogue, 1, dict.fromkeys(["acquire", *ALL], 3), settings=then)
    after = {name: {**then[name], **change.get(name, {})} if name in change else then[name] for name in then}
    found = behind(catalogue, after)
    assert found["stages"] == late
    assert ("other settings" in described(found)) == bool(late)
    ran(catalogue, 2, dict.fromkeys(ALL, 0), settings=after)
    assert behind(catalogue, after)["stages"] == []
    catalogue.close()

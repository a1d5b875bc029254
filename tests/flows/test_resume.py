"""Kills, edits, removals, two runs at once: on a small copy of the sample site, without Prefect."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.flows.conftest import Command, small_site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

STAGES = ("acquire", "curate", "graph", "questions", "chunks", "evaluate")


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Command, dict[str, bytes]]:
    """An uninterrupted run on the small site and its export."""
    folder = tmp_path_factory.mktemp("baseline")
    command = Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(small_site(folder / "site"))})
    command.run("refresh", "--direct")
    return command, command.export("baseline")


def _kill_at(command: Command, stage: str) -> None:
    """Start a refresh and kill its whole group -9 once a step of the stage has work under way."""
    process = command.start("refresh", "--direct", "-v")
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith(f"{stage}.") and "nothing to do" not in line:
                break
        time.sleep(0.3)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_in_the_middle_of_a_stage_resumes_to_the_same_bytes(
    stage: str, small: Command, baseline: tuple[Command, dict[str, bytes]]
) -> None:
    _kill_at(small, stage)
    small.run("refresh", "--direct")
    exported = small.export(stage)
    assert exported.keys() == baseline[1].keys()
    assert [name for name in exported if exported[name] != baseline[1][name]] == []
    assert small.status()["failures"] == 0


def test_editing_one_page_redoes_only_what_depends_on_it(small: Command) -> None:
    small.run("refresh", "--direct", "--to-stage", "chunks")
    page = next((Path(small.settings["HCHEM_CRAWL__SAMPLE_DIR"]) / "pages/hgbk.example").rglob("*.html"))
    data = page.read_bytes()
    marker = "沸点".encode()
    assert marker in data
    page.write_bytes(data.replace(b"</p>", "另有说明：应在通风处操作。</p>".encode(), 1))
    small.run("refresh", "--direct", "--to-stage", "chunks")
    changed = small.last_run()["stages"]
    steps = {name: counts for stage in changed.values() for name, counts in stage["steps"].items()}
    assert steps["curate.clean"]["pending"] == 1
    assert steps["curate.score"]["pending"] == 1
    assert steps["graph.extract"]["pending"] == 1
    assert all(
        steps[f"chunks.{m}"]["pending"] == 1 for m in ("fixed", "sentence", "semantic", "qchunker", "hichunk")
    )


def test_a_page_that_left_the_site_is_recorded_and_its_facts_retire(small: Command) -> None:
    small.run("refresh", "--direct", "--to-stage", "graph")
    before = small.status()
    site = Path(small.settings["HCHEM_CRAWL__SAMPLE_DIR"])
    manifest = site / "manifest.jsonl"
    lines = manifest.read_text(encoding="utf-8").splitlines()
    gone = next(line for line in lines if '"file": "twsds.example' in line or '"file":"twsds.example' in line)
    manifest.write_text("\n".join(line for line in lines if line != gone) + "\n", encoding="utf-8")
    next((site / "pages" / "twsds.example").rglob("*.html")).unlink()
    small.run("refresh", "--direct", "--to-stage", "graph")
    after = small.status()
    assert after["pages_by_state"].get("gone") == 1
    assert after["pages"] == before["pages"]
    assert after["documents"]["kept"] == before["documents"]["kept"] - 1
    assert after["assertions"] < before["assertions"]


def test_two_refreshes_at_once_end_with_one_clear_line(small: Command) -> None:
    first = small.start("refresh", "--direct")
    assert first.stderr is not None
    for line in first.stderr:
        if line.startswith("acquire."):
            break
    second = small.run("refresh", "--direct", code=2)
    first.communicate(timeout=600)
    assert first.returncode == 0
    lines = [line for line in second.stderr.splitlines() if line.strip()]
    assert len(lines) == 1
    assert "another run holds the catalogue" in lines[0]


def test_ctrl_c_says_how_to_go_on(small: Command) -> None:
    process = small.start("refresh", "--direct")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("curate."):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "goes on where it stopped" in err
    assert "Traceback" not in err
    left = subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    assert small.status()["last_run"]["state"] == "cancelled"

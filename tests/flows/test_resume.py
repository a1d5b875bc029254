"""Kills, edits, removals, two runs at once: on a small copy of the sample site, without Prefect."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import LedgerRow
from tests.flows.conftest import Command, small_site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

Ledger = dict[tuple[str, str], tuple[str, str]]
STAGES = ("acquire", "curate", "graph", "questions", "chunks", "evaluate")


@dataclass(frozen=True)
class Staged:
    """An uninterrupted run on the small site, kept as it stood after each stage."""

    folder: Path
    exports: dict[str, dict[str, bytes]]
    ledgers: dict[str, Ledger]

    def copy(self, stage: str, folder: Path) -> Command:
        """The command on a copy of the data as they stood after the stage ("": before the first).

        The site stays where it is, since a list of chemicals is known by its path.
        """
        if stage:
            shutil.copytree(self.folder / stage, folder / "data")
        return Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(self.folder / "site")})


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """Made once: a test begins where its stage begins instead of running all that comes before."""
    folder = tmp_path_factory.mktemp("staged")
    command = Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(small_site(folder / "site"))})
    exports, ledgers = {}, {}
    for stage in STAGES:
        command.run("refresh", "--direct", "--from-stage", stage, "--to-stage", stage)
        exports[stage], ledgers[stage] = command.export(stage), _ledger(command)
        shutil.copytree(command.data_dir, folder / stage)
    return Staged(folder, exports, ledgers)


@pytest.fixture
def editable(staged: Staged, tmp_path: Path) -> Iterator[Staged]:
    """The same for a test that changes the site: the site is put back afterwards."""
    site = staged.folder / "site"
    shutil.copytree(site, tmp_path / "site")
    yield staged
    shutil.rmtree(site)
    shutil.copytree(tmp_path / "site", site)


def _ledger(command: Command) -> Ledger:
    """What each step did with each item: on this the work of the stages that follow depends."""
    catalogue = Catalogue.open(f"sqlite:///{command.data_dir}/catalogue.db")
    with catalogue.reading() as session:
        found = {
            (row.step, row.item_id): (row.state, row.detail) for row in session.scalars(select(LedgerRow))
        }
    catalogue.close()
    return found


def _kill_at(command: Command, stage: str) -> None:
    """Start a refresh and kill its whole group -9 once a step of the stage has work under way."""
    process = command.start("refresh", "--direct", "-v", "--from-stage", stage)
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
    stage: str, staged: Staged, tmp_path: Path
) -> None:
    command = staged.copy(dict(zip(STAGES, ("", *STAGES), strict=False))[stage], tmp_path)
    _kill_at(command, stage)
    end = (
        "evaluate" if stage == "graph" else stage
    )  # once to the very end: what else was left behind would show
    command.run("refresh", "--direct", "--to-stage", end)
    exported, expected = command.export(stage), staged.exports[end]
    assert exported.keys() == expected.keys()
    assert [name for name in exported if exported[name] != expected[name]] == []
    assert _ledger(command) == staged.ledgers[end]
    assert command.status()["failures"] == 0


def test_editing_one_page_redoes_only_what_depends_on_it(editable: Staged, tmp_path: Path) -> None:
    small = editable.copy("chunks", tmp_path)
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


def test_a_page_that_left_the_site_is_recorded_and_its_facts_retire(editable: Staged, tmp_path: Path) -> None:
    small = editable.copy("graph", tmp_path)
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
    first = small.start("refresh", "--direct", "--to-stage", "acquire")
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


def test_ctrl_c_says_how_to_go_on(staged: Staged, tmp_path: Path) -> None:
    small = staged.copy("acquire", tmp_path)
    process = small.start("refresh", "--direct", "--from-stage", "curate")
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

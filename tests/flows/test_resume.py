"""Edits, removals, two runs at once, Ctrl-C: on a small copy of the sample site, without Prefect."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.conftest import Command
from tests.flows.killing import Staged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


@pytest.fixture
def editable(staged: Staged, tmp_path: Path) -> Iterator[Staged]:
    """The same for a test that changes the site: the site is put back afterwards."""
    site = staged.folder / "site"
    shutil.copytree(site, tmp_path / "site")
    yield staged
    shutil.rmtree(site)
    shutil.copytree(tmp_path / "site", site)


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

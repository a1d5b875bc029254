"""The command as a user runs it: in its own process, on its own data directory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from tests.flows.killing import Staged

AUDIT = Path(__file__).parent / "audit"
SMALL_SITE = (
    "weihua.example",
    "twsds.example",
    "chemsheets.example",
    "made-up-noise",
)
SMALL_FILES = (
    "us-code/42usc11004.md",
    "sekom.com/wo3.html",
    "hgbk.example",
    "prc-law/jiankong_huaxuepin_tiaoli.md",
)


@dataclass
class Command:
    """``hchem`` on one data directory."""

    data_dir: Path
    settings: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()  # a program that starts the command under a limit

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HCHEM_", "PREFECT_", "OPENAI_"))}
        return {
            **kept,
            "HCHEM_DATA_DIR": str(self.data_dir),
            "HCHEM_PREFECT__PORT": "0",
            "PYTHONPATH": str(AUDIT),
            "HCHEM_TEST_AUDIT_LOG": str(self.data_dir.parent / f"{self.data_dir.name}-audit.log"),
            **self.settings,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command in a process group of its own."""
        return subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "flows.cli", *arguments],
            env=self.environment(),
            cwd=next(p for p in self.data_dir.parents if p.is_dir()),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self, *arguments: str, code: int | None = 0, timeout: float = 900
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end; its exit code must be ``code`` (None: any)."""
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"{arguments} did not end within {timeout} s:\n{err[-3000:]}")
        if code is not None:
            assert process.returncode == code, (
                f"{arguments} ended with {process.returncode}:\n{out[-2000:]}\n{err[-4000:]}"
            )
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def status(self) -> dict[str, Any]:
        return json.loads(self.run("status", "--json").stdout)  # type: ignore[no-any-return]

    def last_run(self) -> dict[str, Any]:
        return json.loads(self.run("runs", "show", "last", "--json").stdout)  # type: ignore[no-any-return]

    def export(self, name: str) -> dict[str, bytes]:
        """Export the data set; returns its files."""
        folder = self.data_dir.parent / f"export-{name}"
        self.run("dataset", "export", "--out", str(folder))
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    def outside_addresses(self) -> str:
        log = Path(self.environment()["HCHEM_TEST_AUDIT_LOG"])
        return log.read_text() if log.exists() else ""


def small_site(target: Path) -> Path:
    """A part of the sample site: both languages, noise pages, a regulation; a few seconds a stage."""
    (target / "pages").mkdir(parents=True)
    rows = []
    for line in (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name = row["file"]
        if name.split("/")[0] in SMALL_SITE or any(name.startswith(part) for part in SMALL_FILES):
            rows.append(line)
            (target / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SAMPLES / "pages" / name, target / "pages" / name)
    (target / "manifest.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    shutil.copyfile(SAMPLES / "chemicals.csv", target / "chemicals.csv")
    return target


@pytest.fixture
def small(tmp_path: Path) -> Command:
    """The command on a small copy of the sample site that a test may change."""
    site = small_site(tmp_path / "site")
    return Command(tmp_path / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(site)})


@pytest.fixture(scope="session")
def whole(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Command, subprocess.CompletedProcess[str]]]:
    """The default run on the whole sample site through Prefect, once per session."""
    command = Command(tmp_path_factory.mktemp("whole") / "data")
    finished = command.run("refresh", timeout=1800)
    yield command, finished
    command.run("down", code=None)


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """Made once: a test begins where its stage begins instead of running all that comes before."""
    from tests.flows.killing import make_staged  # which takes this module's command

    return make_staged(tmp_path_factory.mktemp("staged"))

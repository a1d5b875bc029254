"""Kills at chosen moments and what must hold after them: tests and ``benchmarks/kills.py`` share this.

A kill point begins where its stage begins, on a copy of the data of an
uninterrupted run, and is followed by a run that goes on.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Lease, LedgerRow, Page, Run, WorkBatch
from tests.flows.conftest import Command, small_site

Ledger = dict[tuple[str, str], tuple[str, str]]
STAGES = ("acquire", "curate", "graph", "questions", "chunks", "evaluate")
BEFORE = dict(zip(STAGES, ("", *STAGES), strict=False))
_ORPHANS_END_S = 60.0


@dataclass(frozen=True)
class Staged:
    """An uninterrupted run on the small site, kept as it stood after each stage; ``seconds`` each one took."""

    folder: Path
    exports: dict[str, dict[str, bytes]]
    ledgers: dict[str, Ledger]
    seconds: dict[str, float] = field(default_factory=dict)

    def copy(self, stage: str, folder: Path) -> Command:
        """The command on a copy of the data as they stood after the stage ("": before the first).

        The site stays where it is, since a list of chemicals is known by its path.
        """
        if stage:
            shutil.copytree(self.folder / stage, folder / "data")
        return Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(self.folder / "site")})


def make_staged(folder: Path) -> Staged:
    """Run the stages one after another and keep what each left."""
    command = Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(small_site(folder / "site"))})
    made = Staged(folder, {}, {}, {})
    for stage in STAGES:
        began = time.monotonic()
        command.run("refresh", "--direct", "--from-stage", stage, "--to-stage", stage)
        made.seconds[stage] = time.monotonic() - began
        made.exports[stage], made.ledgers[stage] = command.export(stage), ledger(url(command))
        shutil.copytree(command.data_dir, folder / stage)
    return made


def url(command: Command) -> str:
    """The catalogue of a command."""
    return command.settings.get("HCHEM_CATALOGUE__URL", f"sqlite:///{command.data_dir}/catalogue.db")


@contextlib.contextmanager
def _opened(address: str) -> Iterator[Catalogue]:
    catalogue = Catalogue.open(address)
    try:
        yield catalogue
    finally:
        catalogue.close()


def ledger(address: str) -> Ledger:
    """What each step did with each item: on this the work of the stages that follow depends."""
    with _opened(address) as catalogue, catalogue.reading() as session:
        return {
            (row.step, row.item_id): (row.state, row.detail) for row in session.scalars(select(LedgerRow))
        }


def held(address: str) -> list[str]:
    """What a run has left in the catalogue that would hold up another: leases, claims, rows of running runs."""
    with _opened(address) as catalogue, catalogue.reading() as session:
        found = [f"lease {row.resource}" for row in session.scalars(select(Lease))]
        found += [f"run {row.run_id}" for row in session.scalars(select(Run).where(Run.state == "running"))]
        found += [f"page {row.url}" for row in session.scalars(select(Page).where(Page.state == "claimed"))]
        found += [
            f"batch {row.batch_id}"
            for row in session.scalars(select(WorkBatch).where(WorkBatch.state == "claimed"))
        ]
        return found


@dataclass(frozen=True)
class Point:
    """Where to kill: which process, how long after the stage's first line, as a share of what the stage takes."""

    number: int
    stage: str
    victim: str  # run, crawl, graph
    moment: float


def points(count: int, seed: int, victims: Sequence[str] = ("run", "crawl", "graph")) -> list[Point]:
    """Random points, every stage in turn; a victim that the stage does not have is replaced by the run itself."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        stage = STAGES[number % len(STAGES)]
        has = [v for v in victims if v not in _ONLY_IN or stage in _ONLY_IN[v]]
        found.append(Point(number, stage, chance.choice(has), round(chance.random(), 3)))
    return found


_ONLY_IN = {"crawl": ("acquire",), "graph": ("graph", "questions")}
_LOOKS_LIKE = {"crawl": "crawlers.child", "graph": "arcadedb"}


def children(pid: int) -> list[psutil.Process]:
    """All processes below one."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def alive(process: psutil.Process) -> bool:
    """Whether a process runs (a zombie does not)."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def find(pid: int, victim: str) -> psutil.Process | None:
    """The child that is to be killed: the crawl, or the graph server (Java) itself."""
    for child in children(pid):
        with contextlib.suppress(psutil.Error):
            line = " ".join(child.cmdline())
            if _LOOKS_LIKE[victim] in line and (victim != "graph" or child.name() == "java"):
                return child
    return None


def kill(command: Command, point: Point, seconds: float) -> str:
    """Run the point's stage and kill -9 in the middle; says what was hit. Waits until nothing of the run is left.

    Raises AssertionError where a child outlives the run.
    """
    process = command.start(
        "refresh", "--direct", "-v", "--from-stage", point.stage, "--to-stage", point.stage
    )
    assert process.stderr is not None
    hit = "nothing: it was over"
    below: list[psutil.Process] = []
    try:
        for line in process.stderr:
            if line.startswith(f"{point.stage}.") and "nothing to do" not in line:
                break
        ends = time.monotonic() + point.moment * seconds
        while process.poll() is None:
            below = children(process.pid) or below
            if time.monotonic() >= ends:
                target = (
                    psutil.Process(process.pid) if point.victim == "run" else find(process.pid, point.victim)
                )
                if target is not None:
                    target.kill()
                    hit = point.victim
                    break
            time.sleep(0.05)
        if hit != "run":
            process.communicate(timeout=300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    no_orphans(below)
    return hit


def no_orphans(processes: Sequence[psutil.Process]) -> None:
    """Wait until the children of a run that was killed are gone by themselves. Raises AssertionError."""
    ends = time.monotonic() + _ORPHANS_END_S
    while left := [p for p in processes if alive(p)]:
        assert time.monotonic() < ends, f"outlived their run: {left}"
        time.sleep(0.2)


def check(command: Command, staged: Staged, stage: str, name: str = "after") -> None:
    """What must hold once a run went on after a kill. Raises AssertionError."""
    exported, expected = command.export(name), staged.exports[stage]
    assert exported.keys() == expected.keys()
    assert [file for file in exported if exported[file] != expected[file]] == []
    assert ledger(url(command)) == staged.ledgers[stage]
    assert held(url(command)) == []
    assert command.status()["failures"] == 0

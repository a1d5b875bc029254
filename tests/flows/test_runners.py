"""Batches on Dask and Ray: real schedulers with two worker processes on loopback, the same bytes as on threads.

Ray stays out of the lock file for its size (200 MB installed): its test runs where the package is installed
(``pip install 'hchemsafety[ray]'``); the last result stands in docs/scaling.md.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import LedgerRow, Run
from corpus.errors import SettingsError, TransientError
from corpus.stages import Halt, StageContext
from flows import elsewhere, pipeline
from flows.runtime import Runtime
from flows.settings import load_settings
from kg.dataset import export
from tests.conftest import free_port, missing
from tests.flows.conftest import Command, small_site

CURATE = ("run", "curate", "--force")


def exported(command: Command, name: str) -> dict[str, bytes]:
    catalogue = Catalogue.open(f"sqlite:///{command.data_dir}/catalogue.db")
    export(catalogue, folder := command.data_dir.parent / name)
    catalogue.close()
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stop(*processes: subprocess.Popen[Any]) -> None:
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def dask(command: Command, folder: Path) -> Iterator[str]:
    """A scheduler and two workers; yields the address."""
    address = f"tcp://127.0.0.1:{(port := free_port())}"
    quiet: dict[str, Any] = {
        "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "start_new_session": True, "cwd": folder,
    }  # fmt: skip
    processes = []
    with (folder / "dask.log").open("wb") as log:
        head = [
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-dashboard",
        ]
        worker = [
            "distributed.cli.dask_worker",
            address,
            "--nworkers",
            "2",
            "--nthreads",
            "1",
            "--no-dashboard",
        ]
        for arguments in (head, [*worker, "--host", "127.0.0.1"]):
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", *arguments], env=command.environment(), stdout=log, **quiet
                )
            )
        try:
            yield address
        finally:
            stop(*reversed(processes))


@contextmanager
def ray(command: Command, folder: Path) -> Iterator[str]:
    """A local Ray with two processors; yields the address."""
    port = free_port()
    environment = {
        **command.environment(),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_raylet_start_wait_time_s": "120",
        "RAY_worker_niceness": "0",  # 15 by default: starved by whatever else the machine does
    }
    program = [sys.executable, "-m", "ray.scripts.scripts"]
    with (folder / "ray.log").open("wb") as log, tempfile.TemporaryDirectory(prefix="ray") as short:
        subprocess.run(
            [*program, "start", "--head", "--node-ip-address", "127.0.0.1", "--port", str(port), "--num-cpus", "2",
             "--include-dashboard=false", "--disable-usage-stats", "--object-store-memory", "100000000",
             "--temp-dir", short],  # its sockets' paths may have 107 characters
            env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=True,
        )  # fmt: skip
        try:
            yield f"127.0.0.1:{port}"
        finally:
            subprocess.run([*program, "stop"], env=environment, stdout=log, stderr=log, check=False)


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("runner", "package"), [("dask", "prefect_dask"), ("ray", "prefect_ray")])
def test_the_bytes_are_those_of_threads(runner: str, package: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(package) is None:
        if runner == "ray":
            pytest.skip("prefect-ray is not installed; opt in with pip install 'hchemsafety[ray]'")
        missing(package)
    site = small_site(tmp_path / "site")
    rows = (site / "chemicals.csv").read_text(encoding="utf-8").splitlines()
    (site / "chemicals.csv").write_text("\n".join(rows[:9]) + "\n", encoding="utf-8")
    command = Command(tmp_path / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(site)})
    command.run("refresh", "--direct", "--to-stage", "curate")
    expected = exported(command, "threads")
    try:
        with {"dask": dask, "ray": ray}[runner](command, tmp_path) as address:
            command.settings |= {
                "HCHEM_FLOWS__TASK_RUNNER": runner,
                "HCHEM_FLOWS__TASK_RUNNER_ADDRESS": address,
            }
            finished = command.run(*CURATE)
    finally:
        command.run("down", code=None)
    assert "Traceback" not in finished.stderr
    assert exported(command, runner) == expected
    catalogue = Catalogue.open(f"sqlite:///{command.data_dir}/catalogue.db")
    with catalogue.reading() as session:
        run = session.query(Run).order_by(Run.started_at.desc()).first()
        assert run is not None
        assert run.state == "completed"
        assert run.stages["curate"]["steps"]["curate.clean"]["pending"] >= 20
        assert {row.run_id for row in session.query(LedgerRow).filter(LedgerRow.step == "curate.clean")} == {
            run.run_id
        }
    catalogue.close()


# --- what a worker does with a batch ----------------------------------------------


@pytest.fixture
def leading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A run in the catalogue, and what its batches are told."""
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    catalogue = Catalogue.open(load_settings().catalogue_url())
    with catalogue.writing() as session:
        session.add(Run(run_id="r1", flow="curate", parameters={}, settings={}))
    catalogue.close()
    yield {
        "run_id": "r1", "force": False, "only_failed": False, "limit": None, "sources": [], "chemicals": ["甲苯"],
        "archive": None, "preset": None, "settings": elsewhere.settings_marks(load_settings()),
    }  # fmt: skip
    elsewhere._close()


def test_a_worker_opens_the_platform_once_for_a_run(leading: dict[str, Any]) -> None:
    seen: list[tuple[int, Any]] = []

    def work(runtime: Runtime, context: StageContext, items: list[Any]) -> dict[str, Any]:
        seen.append((id(runtime), context.chemicals))
        return {"items": len(items)}

    assert [elsewhere.run([1, 2], leading, work), elsewhere.run([3], leading, work)] == [
        {"items": 2},
        {"items": 1},
    ]
    assert seen[0] == seen[1]


def test_a_worker_with_other_settings_or_another_catalogue_refuses(
    leading: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> dict[str, Any]:
        raise AssertionError("a batch of a run that is not ours")

    monkeypatch.setenv("HCHEM_CHUNKS__SIZE", "99")
    with pytest.raises(SettingsError, match=r"differ from the run's in chunks"):
        elsewhere.run([1], leading, never)
    monkeypatch.delenv("HCHEM_CHUNKS__SIZE")
    monkeypatch.setenv("HCHEM_MODELS__LIMITS__CONCURRENCY", "3")  # a machine's own affair
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "other"))
    with pytest.raises(SettingsError, match=r"does not know the run r1"):
        elsewhere.run([1], leading, never)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    assert elsewhere.run([1], leading, lambda *_: {"ok": True}) == {"ok": True}


def test_a_halt_reaches_the_leading_process_and_an_ended_run_is_left(
    leading: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "_ASK_S", 0.0)

    def halting(runtime: Runtime, context: StageContext, items: list[Any]) -> dict[str, Any]:
        error = TransientError("预算用尽 budget spent", reason="budget")
        error.halts = True
        context.halt.set(error)
        return {"cancelled": context.cancelled()}

    report = elsewhere.run([1], leading, halting)
    assert report == {"cancelled": False, "halt": ["预算用尽 budget spent", "budget"]}
    here = Halt()
    elsewhere.take_halt(json.loads(json.dumps(report)), here)
    assert here.error is not None
    assert (str(here.error), here.error.reason, here.error.halts) == ("预算用尽 budget spent", "budget", True)
    catalogue = Catalogue.open(load_settings().catalogue_url())
    with catalogue.writing() as session:
        session.get_one(Run, "r1").state = "cancelled"
    catalogue.close()
    time.sleep(0.01)
    assert elsewhere.run([1], leading, halting)["cancelled"]


def test_the_task_is_pickled_by_names_while_a_run_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask and Ray send the task: it must not take the open platform of this process along."""
    unpicklable = SimpleNamespace(context=SimpleNamespace(run_id="r"), lock=__import__("threading").Lock())
    monkeypatch.setattr(pipeline, "_active", [unpicklable])
    assert len(cloudpickle.dumps(pipeline.batch_task)) < 20_000

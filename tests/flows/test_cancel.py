"""Stopping a run: within ten seconds whatever is at work, nothing left behind, nothing recorded that is not so."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Lease, Run, now
from flows import stopping, watchdog
from tests.flows.killing import Staged, alive, children, held, no_orphans, url
from tests.servers.model_server import ModelServer, Reply

_LIMIT_S = 10.0
_SLACK_S = 5.0  # of a machine that does other things too


def _until(process: subprocess.Popen[str], start: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(start) and "nothing to do" not in line:
            return
    pytest.fail(f"no line began with {start!r}")


def _stopped(process: subprocess.Popen[str], below: list[psutil.Process]) -> tuple[str, float]:
    """What the command said and how long it took to end, with all of its children."""
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    seconds = time.monotonic() - began
    assert process.returncode == stopping.INTERRUPTED, err
    assert "Traceback" not in err
    assert [child for child in below if alive(child)] == []
    return err, seconds


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_that_waits_for_a_model_is_given_up(staged: Staged, tmp_path: Path) -> None:
    """The answer never comes, so no item ends: what is left is to leave."""
    command = staged.copy("acquire", tmp_path)
    with ModelServer(lambda request: Reply("{}", delay_s=600)) as server:
        command.settings.update(HCHEM_MODELS__BASE_URL=server.base_url, HCHEM_MODELS__MODEL="scripted")
        process = command.start("refresh", "--direct", "-v", "--from-stage", "curate")
        while not server.requests:
            assert process.poll() is None
            time.sleep(0.1)
        below = children(process.pid)
        process.send_signal(signal.SIGTERM)
        err, seconds = _stopped(process, below)
        for line in ("stopping: ", "given up; "):
            assert line in err
        assert seconds < _LIMIT_S + _SLACK_S
        assert held(url(command)) == []
    del command.settings["HCHEM_MODELS__BASE_URL"], command.settings["HCHEM_MODELS__MODEL"]
    status = command.status()
    assert status["last_run"]["state"] == "cancelled"
    assert status["failures"] == 0
    command.run("refresh", "--direct", "--to-stage", "curate")
    assert command.status()["last_run"]["state"] == "completed"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("before", "line"),
    [("", "acquire."), ("acquire", "curate.profile"), ("curate", "graph.sync")],
)
def test_ctrl_c_ends_the_children_and_is_no_fault_of_a_page(
    before: str, line: str, staged: Staged, tmp_path: Path
) -> None:
    """A terminal sends the signal to the whole group; a cleaning worker that it ended would look like a bad page."""
    command = staged.copy(before, tmp_path)
    process = command.start("refresh", "--direct", "-v", "--from-stage", line.split(".")[0])
    _until(process, line)
    below = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    err, seconds = _stopped(process, below)
    assert "the same command goes on where it stopped" in err or "given up; " in err
    assert seconds < _LIMIT_S + _SLACK_S
    assert held(url(command)) == []
    status = command.status()
    assert status["last_run"]["state"] == "cancelled"
    assert status["failures"] == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("before", "line", "child"), [("", "acquire.", "crawlers.child"), ("curate", "graph.sync", "java")]
)
def test_children_end_with_a_run_that_is_killed(
    before: str, line: str, child: str, staged: Staged, tmp_path: Path
) -> None:
    command = staged.copy(before, tmp_path)
    process = command.start("refresh", "--direct", "-v", "--from-stage", line.split(".")[0])
    _until(process, line)
    below: list[psutil.Process] = []
    while process.poll() is None and not any(child in " ".join(p.cmdline()) for p in below if alive(p)):
        below = children(process.pid)
    process.kill()
    process.communicate()
    assert below
    no_orphans(below)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_crawl_whose_site_does_not_answer_ends_with_its_run(tmp_path: Path) -> None:
    """No page comes at which the spider would look whether its run is still there."""
    code = """
import os, subprocess, sys, time
from crawlers import child
child._ORPHAN_GRACE_S = 0.2
parent = os.getppid()  # before it can be killed
print(os.getpid(), flush=True)
child._end_with(parent)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    below = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    no_orphans([below])


def test_a_page_that_holds_the_worker_ends_it_also_without_a_parent() -> None:
    code = """
import re
from corpus.cleaning.worker import killed_after
with killed_after(1):
    re.match("(a*)*b", "a" * 40)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == -signal.SIGALRM


_RUN = """
import os, sys, threading, time
from flows import stopping
stop = threading.Event()
watch = stopping.Watch(stop, grace_s={grace}, exit_code=41, tell=lambda line: print(line, flush=True))
watch.last_words.append(lambda: print("last words", flush=True))
watch.last_words.append(lambda: 1 / 0)
watch.supervisor = {supervisor}
with watch.armed():
    print("armed", os.getpid(), flush=True)
    {body}
print(f"closed {{watch.asked}}", flush=True)
"""


def _watched(grace: float, body: str, supervisor: str = "0") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN.format(grace=grace, body=body, supervisor=supervisor)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("armed")
    return process


def test_a_run_that_ends_in_time_ends_by_itself() -> None:
    process = _watched(60, "stop.wait()")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "closed True" in out
    assert "last words" not in out


def test_a_run_that_does_not_is_given_up_with_its_children() -> None:
    spawn = "__import__('subprocess').Popen(['sleep', '600'], start_new_session=True); time.sleep(600)"
    process = _watched(0.5, spawn)
    while not (below := children(process.pid)):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 41
    assert "last words" in out  # although the words before them failed
    no_orphans(below)


def test_a_second_ctrl_c_leaves_at_once() -> None:
    process = _watched(3600, "time.sleep(600)")
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 41


def test_a_run_without_its_supervisor_stops() -> None:
    process = _watched(60, "stop.wait(); print(watch.reason, flush=True)", supervisor="os.getppid() + 1")
    out, _ = process.communicate(timeout=60)
    assert "abandoned" in out


def test_a_process_that_is_spared_outlives_the_run() -> None:
    spawn = "stopping.spare(__import__('subprocess').Popen(['sleep', '600']).pid); time.sleep(600)"
    process = _watched(0.2, spawn)
    while not (below := children(process.pid)):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 41  # its output stays open as long as the child has it
    assert alive(below[0])
    below[0].kill()


def test_without_signals_nothing_of_the_watch_remains() -> None:
    before = signal.getsignal(signal.SIGTERM)
    watch = stopping.Watch(threading.Event())
    with watch.armed():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
    assert signal.set_wakeup_fd(-1) == -1
    assert not any(thread.name == "stopping" for thread in threading.enumerate())


def test_dead_runs_are_found_and_buried(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        started = int(psutil.Process(sleeper.pid).create_time())
        holder = f"{os.uname().nodename}|{sleeper.pid}|{started}|x"
        with catalogue.writing() as db:
            later = now().replace(year=now().year + 1)
            db.add(Lease(resource="run", holder=holder, expires_at=later))
            db.add(
                Run(run_id="r", flow="refresh", parameters={}, settings={}, flow_run_id="f", code_version="1")
            )
        assert watchdog.dead(catalogue) == []
        assert watchdog.bury(catalogue) == []
        sleeper.kill()
    assert [row.run_id for row in watchdog.dead(catalogue)] == ["r"]
    assert "r is marked running" in watchdog.lines(catalogue, "")[0]
    assert watchdog.bury(catalogue) == ["f"]
    with catalogue.reading() as db:
        assert db.scalars(select(Run.state)).all() == ["crashed"]
    assert watchdog.dead(catalogue) == []
    catalogue.close()

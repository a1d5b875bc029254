"""The embedded Bolt server: starts, is private, survives what may happen to it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from corpus.errors import SettingsError, TerminalError, TransientError
from kg import embedded, watched
from kg.embedded import EmbeddedGraph
from kg.graph_settings import GraphSettings
from kg.store import GraphHandle, GraphStore

pytestmark = pytest.mark.graph


@pytest.fixture
def server(tmp_path: Path, bolt_server: EmbeddedGraph) -> EmbeddedGraph:
    """A server of its own for this test (``bolt_server`` is asked for its skip)."""
    return EmbeddedGraph(tmp_path / "data dir", heap="256m")


def test_listens_on_loopback_only_and_hides_its_password(bolt_server: EmbeddedGraph) -> None:
    process = psutil.Process(bolt_server.server_pid)
    addresses = {c.laddr.ip for c in process.net_connections(kind="inet") if c.status == psutil.CONN_LISTEN}
    assert addresses
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert bolt_server.password not in " ".join(process.cmdline())
    assert len(bolt_server.password) >= 24
    assert not (bolt_server.root / "server.args").exists()
    assert stat.S_IMODE(bolt_server.root.stat().st_mode) == 0o700
    with pytest.raises(SettingsError, match="refuses the login"):
        GraphStore(bolt_server.uri, "root", "wrong-password", bolt_server.database).verify_connection()


def test_data_and_kill_minus_nine(server: EmbeddedGraph) -> None:
    with server:
        first = server.password
        with GraphStore(server.uri, server.user, server.password, server.database) as store:
            store.write_marker("kept")
        os.kill(server.server_pid or 0, signal.SIGKILL)
    with server:
        assert server.password != first
        with GraphStore(server.uri, server.user, server.password, server.database) as store:
            assert store.read_marker() == "kept"
        pid = server.server_pid
    assert not psutil.pid_exists(pid or 0)


def test_second_owner_gets_one_clear_line(
    bolt_server: EmbeddedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_BUSY_TIMEOUT_S", 0.1)
    second = EmbeddedGraph(bolt_server.root.parent)
    with pytest.raises(TransientError, match=f"in use by process {os.getpid()}"):
        second.start()


def test_failed_start_shows_the_log(server: EmbeddedGraph) -> None:
    server.heap = "1m"  # too small for any Java virtual machine
    with pytest.raises(TerminalError, match=r"(?i)heap"):
        server.start()
    server.heap = "256m"
    with server:
        assert server.server_pid


def test_missing_package_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "package_dir", lambda: None)
    with pytest.raises(SettingsError, match="HCHEM_GRAPH__URI"):
        EmbeddedGraph(tmp_path).start()


def test_server_ends_with_its_parent_and_leftovers_are_stopped(
    tmp_path: Path, bolt_server: EmbeddedGraph
) -> None:
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from kg.embedded import EmbeddedGraph
        graph = EmbeddedGraph(Path(sys.argv[1]), heap="256m")
        graph.start()
        print(graph.server_pid, graph.process.watcher.pid, flush=True)
        time.sleep(60)
        """
    )

    def child() -> tuple[subprocess.Popen[str], int, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        java, watcher = process.stdout.readline().split()
        return process, int(java), int(watcher)

    process, java, _ = child()
    process.kill()
    process.wait()
    assert _gone(java), "the server outlived its parent"
    # parent and watcher both killed: the next start finds the server by its pid file
    process, java, watcher = child()
    os.kill(watcher, signal.SIGKILL)
    process.kill()
    process.wait()
    assert psutil.pid_exists(java)
    with EmbeddedGraph(tmp_path, heap="256m") as graph:
        assert graph.server_pid != java
    assert _gone(java)


def _gone(pid: int, timeout_s: float = 20) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def test_epoch_changes_when_the_database_is_dropped(tmp_path: Path, bolt_server: EmbeddedGraph) -> None:
    import shutil

    settings = GraphSettings(heap="256m")
    handle = GraphHandle(settings, tmp_path)
    before = handle.epoch()
    handle.store.write_marker("x")
    handle.close()
    assert GraphHandle(settings, tmp_path).epoch() == before
    shutil.rmtree(tmp_path / "graph" / "databases" / "hchem")
    assert GraphHandle(settings, tmp_path).epoch() != before
    # an empty database made by another command does not pass for the old one
    with GraphStore.connect(settings, tmp_path):
        pass
    assert GraphHandle(settings, tmp_path).epoch() != before


def test_reused_process_number_is_left_alone(tmp_path: Path) -> None:
    record = {"pid": os.getpid(), "started": "1"}
    assert watched.same_process(record) is None

"""A server of another language as a child process that surely ends with this one.

A small watcher process holds the server: when the pipe from this process
closes, however it ended, the watcher stops the server. What a dead watcher may
have left is stopped at the next start, found by process id *and* start time.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, LiteralString

import psutil
import structlog

log = structlog.get_logger("hchem.graph")

_STOP_TIMEOUT_S = 20.0
_OUTSIDE_OPTIONS = frozenset({"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"})

_WATCHER = """
import json, os, select, signal, subprocess, sys
def stop(*_):
    raise SystemExit(0)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
try:
    with open(f"/proc/{child.pid}/stat") as stat:
        started = stat.read().rsplit(")", 1)[1].split()[19]
except OSError:
    started = ""
with open(sys.argv[1] + ".new", "w") as file:
    json.dump({"pid": child.pid, "started": started}, file)
os.replace(sys.argv[1] + ".new", sys.argv[1])
try:
    while child.poll() is None:
        if select.select([0], [], [], 0.5)[0] and not os.read(0, 1):
            break
finally:
    child.terminate()
    try:
        child.wait(15)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
sys.exit(child.returncode if child.returncode is not None else 1)
"""


class WatchedServer:
    """A Java server with its working directory, ``server.pid`` and ``server.log`` in ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pid_file = root / "server.pid"
        self.log_file = root / "server.log"
        self.watcher: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the server, while it runs."""
        record = _read_json(self.pid_file)
        return int(record["pid"]) if record else None

    @property
    def exit_code(self) -> int | None:
        """How the server ended, None while it runs."""
        return self.watcher.poll() if self.watcher is not None else None

    def launch(self, command: Sequence[str]) -> None:
        """Start the command with its output in the log (written anew)."""
        with self.log_file.open("wb") as output:
            self.watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _WATCHER, str(self.pid_file), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if name not in _OUTSIDE_OPTIONS},
            )

    def stop(self) -> None:
        """Stop the server: end of its pipe, then terminate, then kill. Safe to call twice."""
        watcher, self.watcher = self.watcher, None
        if watcher is None:
            return
        if watcher.stdin is not None:
            watcher.stdin.close()
        try:
            watcher.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            watcher.kill()
            watcher.wait()
        self.stop_leftover()

    def stop_leftover(self) -> None:
        """Stop a server whose watcher was killed: its pid file names a live process of that start time."""
        record = _read_json(self.pid_file)
        if record and (process := same_process(record)) is not None:
            log.warning("stopping a left-over graph server", pid=record["pid"])
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(_STOP_TIMEOUT_S)
        self.pid_file.unlink(missing_ok=True)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of the server's output."""
        try:
            text = self.log_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on at the moment."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def bolt_answers(
    uri: str,
    user: str,
    password: str,
    database: str,
    query: LiteralString = "RETURN 1 AS one",
    **parameters: str,
) -> bool:
    """Whether a Bolt server on loopback runs the query for this login. Tried once, without waiting."""
    host, port = uri.removeprefix("bolt://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            pass
    except OSError:
        return False
    from neo4j import GraphDatabase, NotificationMinimumSeverity
    from neo4j.exceptions import DriverError, Neo4jError

    try:
        with (
            GraphDatabase.driver(
                uri,
                auth=(user, password),
                connection_timeout=5,
                notifications_min_severity=NotificationMinimumSeverity.OFF,
            ) as driver,
            driver.session(database=database) as session,
        ):
            session.run(query, parameters).consume()
    except (DriverError, Neo4jError, OSError):
        return False
    return True


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "pid" in record else None


def same_process(record: dict[str, Any]) -> psutil.Process | None:
    """The process of a pid file, unless the number belongs to another process by now."""
    try:
        process = psutil.Process(int(record["pid"]))
        with open(f"/proc/{process.pid}/stat", encoding="utf-8", errors="replace") as stat:
            started = stat.read().rsplit(")", 1)[1].split()[19]
        return process if started == record.get("started") and process.name() == "java" else None
    except (psutil.Error, OSError, ValueError, IndexError):
        return None

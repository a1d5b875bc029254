"""The Bolt server the platform starts itself: ArcadeDB's package as a subprocess on loopback.

The server runs from the package's own Java runtime and jars, never inside this
Python process (its JVM crashed at exit there). A small watcher process holds
the server: when the pipe from this process closes, however it ended, the
watcher stops the server. What a dead watcher may have left is stopped at the
next start, found by process id *and* start time.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import psutil
import structlog

from corpus.errors import SettingsError, TerminalError, TransientError

log = structlog.get_logger("hchem.graph")

DATABASE = "hchem"
USER = "root"
_ATTEMPTS = 3  # a free port can be taken between choosing and using it
_STOP_TIMEOUT_S = 20.0
_BUSY_TIMEOUT_S = 10.0
# jars of listeners that are not used; what is not there cannot listen
_UNUSED_JARS = (
    "arcadedb-mcp-",
    "arcadedb-postgresw-",
    "arcadedb-redisw-",
    "arcadedb-graphql-",
    "arcadedb-console-",
)

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

_LOGGING = """handlers=java.util.logging.ConsoleHandler
.level=INFO
java.util.logging.ConsoleHandler.level=INFO
java.util.logging.ConsoleHandler.formatter=com.arcadedb.utility.AnsiLogFormatter
"""


def package_dir() -> Path | None:
    """Where the ``arcadedb_embedded`` package lies (it is not imported: that would load a JVM)."""
    spec = importlib.util.find_spec("arcadedb_embedded")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


class EmbeddedGraph:
    """A Bolt server on loopback with data under ``<data_dir>/graph``; a context manager.

    After ``start()``: ``uri``, ``user``, ``password`` (random for every start) and
    ``database``. One process at a time: another one gets TransientError.
    Raises SettingsError where the package is missing or the directory cannot be
    written, TerminalError with the end of the server's log where it does not come up.
    """

    def __init__(
        self, data_dir: Path, *, heap: str = "1g", start_timeout_s: float = 60.0, full_jit: bool = False
    ) -> None:
        self.root = (data_dir / "graph").resolve()
        self.heap = heap
        self.full_jit = full_jit
        self.start_timeout_s = start_timeout_s
        self.user = USER
        self.database = DATABASE
        self.password = ""
        self.uri = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    @property
    def log_file(self) -> Path:
        """The server's output since its last start."""
        return self.root / "server.log"

    @property
    def server_pid(self) -> int | None:
        """Process id of the Java process, while it runs."""
        record = _read_json(self.root / "server.pid")
        return int(record["pid"]) if record else None

    def __enter__(self) -> EmbeddedGraph:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until Bolt answers with the database open."""
        package = package_dir()
        if package is None:
            raise SettingsError(
                "the embedded graph needs the package 'arcadedb-embedded'; install it, or set HCHEM_GRAPH__URI "
                "to the address of a Neo4j server"
            )
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in ("log", "databases"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            raise SettingsError(f"graph directory {self.root} cannot be written: {error}") from error
        try:
            self._stop_leftover()
            if not database_exists(self.root):
                epoch_file(self.root).unlink(missing_ok=True)
            self._launch_with_retries(package)
        except BaseException:  # an interrupt too must not leave a server behind
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server: end of its pipe, then terminate, then kill. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._stop_leftover()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- parts ---------------------------------------------------------------

    def _take_lock(self) -> None:
        lock = (self.root / "server.lock").open("a+", encoding="utf-8")
        deadline = time.monotonic() + _BUSY_TIMEOUT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    lock.seek(0)
                    holder = lock.read().strip() or "?"
                    lock.close()
                    raise TransientError(
                        f"the graph under {self.root} is in use by process {holder}", reason="graph_busy"
                    ) from None
                time.sleep(0.2)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _stop_leftover(self) -> None:
        """Stop a server whose watcher was killed: its pid file names a live process of that start time."""
        path = self.root / "server.pid"
        record = _read_json(path)
        if record and (process := _same_process(record)) is not None:
            log.warning("stopping a left-over graph server", pid=record["pid"])
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(_STOP_TIMEOUT_S)
        path.unlink(missing_ok=True)

    def _launch_with_retries(self, package: Path) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._launch(package)
                return
            except TerminalError:
                taken = "in use" in self._log_tail(200).lower()
                if attempt == _ATTEMPTS or not taken:
                    raise

    def _launch(self, package: Path) -> None:
        # the root user's hash is kept in the configuration: a new random password needs a new file
        shutil.rmtree(self.root / "config", ignore_errors=True)
        self.password = secrets.token_urlsafe(24)
        bolt, http = _free_ports(2)
        self.uri = f"bolt://127.0.0.1:{bolt}"
        arguments = self.root / "server.args"
        _write_private(arguments, "\n".join(_quoted(line) for line in self._arguments(package, bolt, http)))
        (self.root / "logging.properties").write_text(_LOGGING, encoding="utf-8")
        java = package / "jre" / "bin" / "java"
        try:
            with self.log_file.open("wb") as output:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        "-c",
                        _WATCHER,
                        str(self.root / "server.pid"),
                        str(java),
                        f"@{arguments}",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.root,
                    start_new_session=True,
                    env={
                        k: v
                        for k, v in os.environ.items()
                        if k not in {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"}
                    },
                )
            self._wait_until_ready(self._process)
        finally:
            arguments.unlink(missing_ok=True)

    def _arguments(self, package: Path, bolt: int, http: int) -> list[str]:
        jars = sorted(j for j in (package / "jars").glob("*.jar") if not j.name.startswith(_UNUSED_JARS))
        options = {
            "java.awt.headless": "true",
            "java.util.logging.config.file": str(self.root / "logging.properties"),
            "polyglot.engine.WarnInterpreterOnly": "false",
            "arcadedb.server.mode": "production",
            "arcadedb.server.rootPath": str(self.root),
            "arcadedb.server.databaseDirectory": str(self.root / "databases"),
            "arcadedb.server.rootPassword": self.password,
            "arcadedb.server.defaultDatabases": f"{DATABASE}[{USER}]",
            "arcadedb.server.httpIncomingHost": "127.0.0.1",
            "arcadedb.server.httpIncomingPort": str(http),
            "arcadedb.server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "arcadedb.serverMetrics": "false",
            "arcadedb.bolt.host": "127.0.0.1",
            "arcadedb.bolt.port": str(bolt),
            "arcadedb.bolt.defaultDatabase": DATABASE,
        }
        return [
            f"-Xmx{self.heap}",
            "-XX:+UseSerialGC",
            # a server of some seconds ends before optimised code pays for its compilation
            *(() if self.full_jit else ("-XX:TieredStopAtLevel=1",)),
            "--add-modules",
            "jdk.incubator.vector",
            "--enable-native-access=ALL-UNNAMED",
            *(f"-D{name}={value}" for name, value in options.items()),
            "-cp",
            os.pathsep.join(str(jar) for jar in jars),
            "com.arcadedb.server.ArcadeDBServer",
        ]

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise TerminalError(
                    f"the embedded graph server ended with code {process.returncode} while starting; "
                    f"end of {self.log_file}:\n{self._log_tail()}",
                    reason="graph_start",
                )
            if self._answers():
                return
            time.sleep(0.1)
        raise TerminalError(
            f"the embedded graph server did not answer within {self.start_timeout_s:g} s; "
            f"end of {self.log_file}:\n{self._log_tail()}",
            reason="graph_start",
        )

    def _answers(self) -> bool:
        host, port = self.uri.removeprefix("bolt://").split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                pass
        except OSError:
            return False
        from neo4j import GraphDatabase, NotificationMinimumSeverity
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            with GraphDatabase.driver(
                self.uri,
                auth=(self.user, self.password),
                connection_timeout=2,
                notifications_min_severity=NotificationMinimumSeverity.OFF,
            ) as driver:
                driver.execute_query("RETURN 1 AS one", database_=self.database)
        except (DriverError, Neo4jError, OSError):
            return False
        return True

    def _log_tail(self, lines: int = 15) -> str:
        try:
            text = self.log_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])


def database_exists(root: Path) -> bool:
    """Whether the embedded database has files under the graph directory."""
    return (root / "databases" / DATABASE / "schema.json").is_file()


def epoch_file(root: Path) -> Path:
    """Names the present life of the embedded database; gone with it, so that all is loaded again."""
    return root / "databases" / f"{DATABASE}.epoch"


def _quoted(line: str) -> str:
    """One line of a Java argument file: backslashes and quotes are escaped inside quotes."""
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "pid" in record else None


def _same_process(record: dict[str, Any]) -> psutil.Process | None:
    """The process of a pid file, unless the number belongs to another process by now."""
    try:
        process = psutil.Process(int(record["pid"]))
        with open(f"/proc/{process.pid}/stat", encoding="utf-8", errors="replace") as stat:
            started = stat.read().rsplit(")", 1)[1].split()[19]
        return process if started == record.get("started") and process.name() == "java" else None
    except (psutil.Error, OSError, ValueError, IndexError):
        return None

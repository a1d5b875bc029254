"""The Bolt server the platform starts itself: ArcadeDB's package as a subprocess on loopback.

The server runs from the package's own Java runtime and jars, never inside this
Python process (its JVM crashed at exit there), and ends with it, however it
ends (``kg.watched``).
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import secrets
import shutil
import time
from pathlib import Path
from types import TracebackType
from typing import IO

from corpus.errors import SettingsError, TerminalError, TransientError
from kg.watched import WatchedServer, bolt_answers, free_ports

DATABASE = "hchem"
USER = "root"
_ATTEMPTS = 3  # a free port can be taken between choosing and using it
_BUSY_TIMEOUT_S = 10.0
# jars of listeners that are not used; what is not there cannot listen
_UNUSED_JARS = (
    "arcadedb-mcp-",
    "arcadedb-postgresw-",
    "arcadedb-redisw-",
    "arcadedb-graphql-",
    "arcadedb-console-",
)

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

    kind = "arcadedb"

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
        self.process = WatchedServer(self.root)
        self._lock: IO[str] | None = None

    @property
    def log_file(self) -> Path:
        """The server's output since its last start."""
        return self.process.log_file

    @property
    def server_pid(self) -> int | None:
        """Process id of the Java process, while it runs."""
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the server was started and runs no more."""
        return self.process.exit_code is not None

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
            self.process.stop_leftover()
            if not database_exists(self.root):
                epoch_file(self.root).unlink(missing_ok=True)
            self._launch_with_retries(package)
        except BaseException:  # an interrupt too must not leave a server behind
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server and let others use its directory. Safe to call twice."""
        self.process.stop()
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

    def _launch_with_retries(self, package: Path) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._launch(package)
                return
            except TerminalError:
                taken = "in use" in self.process.log_tail(200).lower()
                if attempt == _ATTEMPTS or not taken:
                    raise

    def _launch(self, package: Path) -> None:
        # the root user's hash is kept in the configuration: a new random password needs a new file
        shutil.rmtree(self.root / "config", ignore_errors=True)
        self.password = secrets.token_urlsafe(24)
        bolt, http = free_ports(2)
        self.uri = f"bolt://127.0.0.1:{bolt}"
        arguments = self.root / "server.args"
        _write_private(arguments, "\n".join(_quoted(line) for line in self._arguments(package, bolt, http)))
        (self.root / "logging.properties").write_text(_LOGGING, encoding="utf-8")
        java = package / "jre" / "bin" / "java"
        try:
            self.process.launch([str(java), f"@{arguments}"])
            self._wait_until_ready()
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

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            if (code := self.process.exit_code) is not None:
                raise TerminalError(
                    f"the embedded graph server ended with code {code} while starting; "
                    f"end of {self.log_file}:\n{self.process.log_tail()}",
                    reason="graph_start",
                )
            if bolt_answers(self.uri, self.user, self.password, self.database):
                return
            time.sleep(0.1)
        raise TerminalError(
            f"the embedded graph server did not answer within {self.start_timeout_s:g} s; "
            f"end of {self.log_file}:\n{self.process.log_tail()}",
            reason="graph_start",
        )


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

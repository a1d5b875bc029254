"""A real Neo4j community server for the tests: the published jars in a Java process of our own, on loopback.

``make neo4j`` fetches the jars (``tests/servers/neo4j/pom.xml``); see docs/graph.md.
"""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path

from kg.watched import WatchedServer, bolt_answers, free_ports

REPOSITORY = Path(__file__).parents[2]
JARS = REPOSITORY / ".venv" / "neo4j"
_FIRST = "neo4j"  # user, database and password of a new server; the password has to be changed at once
_CONFIGURATION = """
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{bolt}
server.bolt.advertised_address=127.0.0.1:{bolt}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=64m
db.tx_log.preallocate=false
db.logs.query.enabled=OFF
dbms.usage_report.enabled=false
server.bolt.telemetry.enabled=false
"""
# tests clear and fill the graph every second: without this, plans are thrown away and made anew each time
_PLANS_STAY = "dbms.cypher.min_replan_interval=1h\n"


def java() -> str | None:
    """A Java runtime that Neo4j 5.26 supports (17 or 21)."""
    lib = Path("/usr/lib/jvm")
    homes = [home for version in ("17", "21") for home in sorted(lib.glob(f"*-{version}-*"))]
    for home in homes:
        if (home / "bin" / "java").is_file():
            return str(home / "bin" / "java")
    return shutil.which("java")


def why_missing() -> str:
    """What the server lacks on this machine; empty where it can run."""
    if java() is None:
        return "Java 17 (openjdk-17-jre-headless)"
    if not list(JARS.glob("neo4j-5.26*.jar")):
        return "Neo4j (make neo4j)"
    return ""


class Neo4jServer:
    """One server with its data under ``root``; ``start`` after a kill finds the data again.

    ``full_jit``: for benchmarks; tests are over before optimised code and fresh plans pay.

    ``uri``, ``user``, ``password`` and ``database`` are those of ``kg.store.GraphStore``. The address
    and the login stay the same for the life of the object.
    """

    kind = "neo4j"

    def __init__(
        self, root: Path, *, heap: str = "512m", start_timeout_s: float = 280.0, full_jit: bool = False
    ) -> None:
        self.root = root
        self.heap = heap
        self.full_jit = full_jit
        self.start_timeout_s = start_timeout_s
        self.user = _FIRST
        self.database = _FIRST
        self.password = secrets.token_urlsafe(16)
        self.port = free_ports(1)[0]
        self.uri = f"bolt://127.0.0.1:{self.port}"
        self.process = WatchedServer(root)
        self._password_set = False

    def __enter__(self) -> Neo4jServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server_pid(self) -> int | None:
        """Process id of the Java process."""
        return self.process.pid

    def start(self) -> None:
        """Start and wait until Bolt answers; the first time the password is changed from the default."""
        configuration = self.root / "conf" / "neo4j.conf"
        configuration.parent.mkdir(parents=True, exist_ok=True)
        text = _CONFIGURATION.format(bolt=self.port) + ("" if self.full_jit else _PLANS_STAY)
        configuration.write_text(text, encoding="utf-8")
        self.process.launch(
            [
                str(java()),
                f"-Xmx{self.heap}",
                "-XX:+UseSerialGC",
                *(() if self.full_jit else ("-XX:TieredStopAtLevel=1",)),
                "-cp",
                f"{JARS}/*",
                "org.neo4j.server.CommunityEntryPoint",
                f"--home-dir={self.root}",
                f"--config-dir={configuration.parent}",
            ]
        )
        try:
            self._wait_until_ready()
        except BaseException:  # an interrupt too must not leave a server behind
            self.stop()
            raise

    def stop(self) -> None:
        """End the server, whatever state it is in."""
        self.process.stop()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            if self.process.exit_code is not None:
                raise RuntimeError(f"Neo4j ended while starting:\n{self._log()}")
            # a new server lets its user do nothing but change the password
            if not self._password_set:
                self._password_set = bolt_answers(
                    self.uri, self.user, _FIRST, "system",
                    "ALTER CURRENT USER SET PASSWORD FROM $old TO $new", old=_FIRST, new=self.password,
                )  # fmt: skip
            elif bolt_answers(self.uri, self.user, self.password, self.database):
                return
            time.sleep(0.2)
        raise RuntimeError(f"Neo4j did not answer within {self.start_timeout_s:g} s:\n{self._log()}")

    def _log(self) -> str:
        log = self.root / "logs" / "neo4j.log"
        own = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        return "\n".join([self.process.log_tail(20), *own.splitlines()[-20:]])

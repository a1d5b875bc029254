"""Shared fixtures: services are started on loopback, a missing component skips with its reason.

Under HCHEM_TEST_REQUIRE_ALL=1 a skip for a missing component is a failure.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from corpus.catalogue import Catalogue

REPOSITORY = Path(__file__).parent.parent
SAMPLES = REPOSITORY / "samples"


def missing(what: str) -> NoReturn:
    """Skip because a component is not installed; fail where all are required."""
    if os.environ.get("HCHEM_TEST_REQUIRE_ALL") == "1":
        pytest.fail(f"{what} is required (HCHEM_TEST_REQUIRE_ALL=1)")
    pytest.skip(f"{what} is not installed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Files whose tests share what one of them makes: they go to one worker, so that it is made once.
_TOGETHER = {"tests/flows/test_report.py": "tests/flows/test_refresh.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests go first, so that no worker begins with one when the others have nothing left."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under ``-n`` a file is the unit of work: what its fixtures make is made once, and its tests keep their order."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return _TOGETHER.get(file, file)

    config.option.loadscopereorder = False  # the order of the collection is meant
    return ByFile(config, log)


# A key of the developer's, and what the shell that started the tests says of its terminal.
_OUTSIDE = {
    "OPENAI_API_KEY",
    "COLUMNS",
    "LINES",
    "FORCE_COLOR",
    "NO_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
}


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings must not reach the tests."""
    for name in list(os.environ):
        if (name.startswith("HCHEM_") and not name.startswith("HCHEM_TEST_")) or name in _OUTSIDE:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server on loopback; yields a URL without a database name."""
    binaries = (
        sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").is_dir() else []
    )
    found = shutil.which("initdb")
    home = binaries[-1] if binaries else (Path(found).parent if found else None)
    if home is None:
        missing("PostgreSQL (initdb)")
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/hchem-pg-XXXXXX"], text=True).strip())
    prefix: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "cwd": folder}
    subprocess.run(
        [
            *prefix,
            str(home / "initdb"),
            "-D",
            str(data),
            "-A",
            "trust",
            "-U",
            "hchem",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ],
        check=True,
        **quiet,
    )
    port = free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    subprocess.run(
        [
            *prefix,
            str(home / "pg_ctl"),
            "-D",
            str(data),
            "-l",
            str(folder / "log"),
            "-o",
            options,
            "-w",
            "start",
        ],
        check=True,
        **quiet,
    )
    try:
        yield f"postgresql://hchem@127.0.0.1:{port}"
    finally:
        subprocess.run(
            [*prefix, str(home / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"], check=False, **quiet
        )
        shutil.rmtree(folder, ignore_errors=True)


_databases = iter(range(1_000_000))


def new_database(server: str) -> str:
    """Create an empty database on the server; returns its URL."""
    import psycopg

    name = f"test{next(_databases)}_{int(time.time())}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{server}/{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def catalogue_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty catalogue, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalogue.db"
    return new_database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def catalogue(catalogue_url: str) -> Iterator[Catalogue]:
    """An open, migrated, empty catalogue on each database."""
    opened = Catalogue.open(catalogue_url)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated empty SQLite catalogue, to copy where many are needed."""
    path = tmp_path_factory.mktemp("template") / "c.db"
    made = Catalogue.open(f"sqlite:///{path}")
    with made.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    made.close()
    return path


@pytest.fixture
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For tests with many clients of addresses that are not encrypted: each reads the bundle of certificates, 0.1 s."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium browser."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    missing("Chromium")

"""Opening the catalogue: SQLite in WAL mode by default, PostgreSQL by URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.orm import Session

from corpus.errors import PlatformError, SettingsError, TerminalError, TransientError

_BUSY_TIMEOUT_S = 60
_MIGRATIONS = Path(__file__).parent / "migrations"


class Catalogue:
    """The database that is the state of the platform.

    ``reading()`` and ``writing()`` are the only ways in. A write transaction
    takes the lock at its start (``BEGIN IMMEDIATE`` on SQLite), so that a read
    is never upgraded into a write on stale data: compute first, then write.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str, *, migrate: bool = True) -> Catalogue:
        """Connect and bring the schema up to date.

        Raises SettingsError for a wrong URL, an unreachable server, a read-only
        or corrupt file.
        """
        try:
            engine = _engine(url)
        except (ArgumentError, ModuleNotFoundError) as error:
            raise SettingsError(f"catalogue URL {url!r} cannot be used: {error}") from error
        catalogue = cls(engine)
        try:
            with engine.connect():
                pass
            if migrate:
                catalogue.migrate()
        except (DBAPIError, OSError) as error:
            shown = make_url(url).render_as_string(hide_password=True)
            cause = getattr(error, "orig", None) or error
            raise SettingsError(f"catalogue {shown} cannot be opened: {cause}") from error
        return catalogue

    def migrate(self) -> None:
        """Run the Alembic migrations up to the newest revision."""
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["engine"] = self.engine
        command.upgrade(config, "head")

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads; nothing is committed."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session  # closing rolls back and leaves what was loaded readable

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A write transaction: committed at the end, rolled back on any error.

        Raises TransientError where the database is locked or the server went
        away, TerminalError where the disk is full or the file read-only.
        """
        with Session(self.engine, expire_on_commit=False, info={"writing": True}) as session:
            try:
                if self.engine.dialect.name == "sqlite":
                    session.connection(execution_options={"hchem_immediate": True})
                yield session
                session.commit()
            except OperationalError as error:
                session.rollback()
                raise write_error(error) from error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def write_error(error: OperationalError) -> PlatformError:
    """What a failed write means: a full or read-only disk for good, anything else for now."""
    text = str(error.orig)
    if "full" in text or "readonly" in text or "read-only" in text:
        return TerminalError(f"catalogue cannot be written: {text}", reason="disk")
    return TransientError(f"catalogue: {text}", reason="database")


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed, pool_pre_ping=True)
    engine = create_engine(parsed, connect_args={"timeout": _BUSY_TIMEOUT_S, "check_same_thread": False})
    event.listen(engine, "connect", _sqlite_connect)
    event.listen(engine, "begin", _sqlite_begin)
    return engine


def _sqlite_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver must not open transactions of its own
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _sqlite_begin(connection: Any) -> None:
    immediate = connection.get_execution_options().get("hchem_immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

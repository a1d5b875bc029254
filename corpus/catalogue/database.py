"""Opening the catalogue: SQLite in WAL mode by default, PostgreSQL by URL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.orm import Session

from corpus.errors import CatalogueBusyError, DiskError, PlatformError, SettingsError, TransientError

_BUSY_TIMEOUT_S = 60
_AWAY_S = 60.0  # how long a server that was there before may be away: it restarts
_RETRY_S = 0.5
_OF_DISK = (
    "full",
    "readonly",
    "read-only",
    "No space left",
    "disk I/O error",
    "unable to open database file",
)
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
        or corrupt file, a schema that a newer version made; CatalogueBusyError
        where the schema has to be changed while a run is on.
        """
        try:
            engine = _engine(url)
        except (ArgumentError, ModuleNotFoundError) as error:
            raise SettingsError(f"catalogue URL {url!r} cannot be used: {error}") from error
        catalogue = cls(engine)
        try:
            if migrate:
                catalogue.migrate()
            else:
                catalogue.check_schema()
        except (DBAPIError, OSError) as error:
            engine.dispose()
            shown = make_url(url).render_as_string(hide_password=True)
            cause = getattr(error, "orig", None) or error
            raise SettingsError(f"catalogue {shown} cannot be opened: {cause}") from error
        except PlatformError:
            engine.dispose()
            raise
        return catalogue

    def migrate(self) -> None:
        """Run the Alembic migrations up to the newest revision, never under a run that is on.

        Raises SettingsError for a schema that this code does not know, CatalogueBusyError
        where a run holds the catalogue and the schema is not the newest.
        """
        found, newest = self.check_schema(), newest_schema()
        if found == newest:
            return
        if not found:  # nobody can be at work in an empty database
            self._upgrade()
            return
        from corpus.catalogue import leases

        try:
            with leases.held(self, "run"):
                self._upgrade()
        except CatalogueBusyError as error:
            raise CatalogueBusyError(
                f"the catalogue's schema {found} has to become {newest}, but not under a run: "
                f"{str(error).split(';')[0]}; try again when it has ended",
                reason="busy",
            ) from error

    def check_schema(self) -> str:
        """The schema's revision ("" for an empty database). Raises SettingsError for one of a newer version."""
        with self.engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_heads()
        if unknown := sorted(revision for revision in found if not is_known_schema(revision)):
            raise SettingsError(
                f"the catalogue was made by a newer version (schema {', '.join(unknown)}, this code knows "
                f"{newest_schema()}): upgrade this installation"
            )
        return found[0] if found else ""

    def _upgrade(self) -> None:
        config = _alembic()
        config.attributes["engine"] = self.engine
        command.upgrade(config, "head")

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads; nothing is committed."""
        with Session(self.engine, expire_on_commit=False) as session:
            try:
                yield session  # closing rolls back and leaves what was loaded readable
            except OperationalError as error:
                raise write_error(error) from error

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A write transaction: committed at the end, rolled back on any error.

        Raises TransientError where the database is locked or the server went
        away, DiskError where the disk is full or the file read-only.
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


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_alembic())


def newest_schema() -> str:
    """The revision of the schema that this code reads and writes."""
    return str(_scripts().get_current_head())


def is_known_schema(revision: str) -> bool:
    """Whether this code can bring a schema of this revision up to date."""
    return revision in {script.revision for script in _scripts().walk_revisions()}


def write_error(error: OperationalError) -> PlatformError:
    """What a failed statement means: a full or read-only disk until somebody acts, anything else for now."""
    text = str(error.orig).splitlines()[0] if str(error.orig) else type(error.orig).__name__
    if any(word in text for word in _OF_DISK):
        return DiskError(f"the catalogue cannot be written: {text}")
    return TransientError(f"catalogue: {text}", reason="database")


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        engine = create_engine(parsed, pool_pre_ping=True)
        event.listen(engine, "do_connect", _Patience())
        return engine
    engine = create_engine(parsed, connect_args={"timeout": _BUSY_TIMEOUT_S, "check_same_thread": False})
    event.listen(engine, "connect", _sqlite_connect)
    event.listen(engine, "begin", _sqlite_begin)
    return engine


class _Patience:
    """Connects to a server; one that answered before and is away now is waited for, since it restarts."""

    def __init__(self) -> None:
        self._answered = False

    def __call__(self, dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
        """The connection. Raises the driver's error where the server does not come (back)."""
        deadline = time.monotonic() + _AWAY_S
        while True:
            try:
                connection = dialect.connect(*arguments, **named)
            except dialect.loaded_dbapi.OperationalError:
                if not self._answered or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
            else:
                self._answered = True
                return connection


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

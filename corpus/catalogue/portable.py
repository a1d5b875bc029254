"""The whole catalogue as one SQLite file, whichever database it lives in, and back.

A snapshot is consistent: of SQLite it is taken by the online backup in one step, of
another database in one transaction that sees one moment, while runs go on. Leases are
not part of it, since who held one then holds nothing in a copy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Table, func, insert, select
from sqlalchemy.exc import DBAPIError

from corpus.catalogue.database import Catalogue
from corpus.catalogue.tables import Base, Lease
from corpus.errors import TerminalError

_ROWS = 500  # copied at a time
_SNAPSHOT = {"postgresql": "REPEATABLE READ"}

Progress = Callable[[int, int], None]


def _silent(_done: int, _total: int) -> None:
    return


def snapshot(catalogue: Catalogue, path: Path, *, progress: Progress = _silent) -> dict[str, int]:
    """Write the catalogue, as it is at this moment, into a new SQLite file; returns rows by table.

    ``progress``: rows done and of how many (of SQLite only at the end). Raises TerminalError
    where the file cannot be written or the catalogue is damaged.
    """
    try:
        if catalogue.engine.dialect.name == "sqlite":
            copy_sqlite(Path(str(catalogue.engine.url.database)), path)
        else:
            _copy_out(catalogue, path, progress)
        with closing(sqlite3.connect(path)) as made:
            made.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            made.execute(f"DELETE FROM {Lease.__tablename__}")  # noqa: S608 - a name of ours
            made.commit()
            counts = _counts(made)
    except (sqlite3.Error, DBAPIError, OSError) as error:
        raise TerminalError(f"the catalogue cannot be copied: {error}", reason="disk") from error
    progress(sum(counts.values()), sum(counts.values()))
    return counts


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite database in use by the online backup. Raises sqlite3.Error, also for a damaged one."""
    with (
        closing(sqlite3.connect(source.as_uri() + "?mode=ro", uri=True, timeout=60)) as live,
        closing(sqlite3.connect(target)) as made,
    ):
        live.backup(made)  # one step: under a busy writer one of many steps would begin again and again
        _check(made, source)


def _check(made: sqlite3.Connection, source: Path) -> None:
    told = made.execute("PRAGMA quick_check(1)").fetchone()[0]
    if told != "ok":
        raise sqlite3.DatabaseError(f"{source} is damaged: {told}")


def load(path: Path, catalogue: Catalogue, *, progress: Progress = _silent) -> dict[str, int]:
    """Put all rows of a snapshot into a catalogue in place of what is there, in one transaction; rows by table.

    The snapshot is brought to the present schema first. On SQLite leases go with the rest. Raises TerminalError where a
    row cannot be written, SettingsError for a snapshot of a newer version.
    """
    source = Catalogue.open(f"sqlite:///{path}")
    try:
        if catalogue.engine.dialect.name != "sqlite":
            return _copy_in(source, catalogue, progress)
        source.close()
        copy_sqlite(path, Path(str(catalogue.engine.url.database)))
        with closing(sqlite3.connect(path)) as made:
            return _counts(made)
    except (sqlite3.Error, DBAPIError) as error:
        cause = getattr(error, "orig", None) or error
        raise TerminalError(f"the catalogue cannot be restored: {cause}", reason="disk") from error
    finally:
        source.close()


def content(path: Path) -> tuple[dict[str, int], str]:
    """Rows by table of a snapshot, and its schema; nothing is changed. Raises TerminalError for a damaged file."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as made:
            _check(made, path)
            known = made.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            revision = made.execute("SELECT version_num FROM alembic_version").fetchone() if known else None
            return _counts(made), str(revision[0]) if revision else ""
    except sqlite3.Error as error:
        raise TerminalError(str(error), reason="damaged") from error


def is_empty(catalogue: Catalogue) -> bool:
    """Whether no table holds a row, leases aside."""
    with catalogue.reading() as db:
        return not any(db.execute(select(table).limit(1)).first() for table in _tables())


def _tables() -> list[Table]:
    return [table for table in Base.metadata.sorted_tables if table.name != Lease.__tablename__]


def _copy_in(source: Catalogue, catalogue: Catalogue, progress: Progress) -> dict[str, int]:
    with source.engine.connect() as rows, catalogue.writing() as db:
        target = db.connection()
        for table in reversed(_tables()):
            target.execute(table.delete())
        return _copy(rows, target, progress)


def _copy_out(catalogue: Catalogue, path: Path, progress: Progress) -> None:
    made = Catalogue.open(f"sqlite:///{path}")
    try:
        level = _SNAPSHOT.get(catalogue.engine.dialect.name, "SERIALIZABLE")
        engine = catalogue.engine.execution_options(isolation_level=level)
        with engine.connect() as rows, made.writing() as db:
            _copy(rows, db.connection(), progress)
    finally:
        made.close()


def _copy(rows: Connection, target: Connection, progress: Progress) -> dict[str, int]:
    total = sum(rows.scalar(select(func.count()).select_from(table)) or 0 for table in _tables())
    done = 0
    counts: dict[str, int] = {}
    streaming = rows.execution_options(yield_per=_ROWS)
    for table in _tables():
        counts[table.name] = 0
        query = select(table).order_by(*table.primary_key.columns)
        for part in streaming.execute(query).mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part])
            counts[table.name] += len(part)
            done += len(part)
            progress(done, total)
    return counts


def _counts(made: sqlite3.Connection) -> dict[str, int]:
    present = {name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return {
        table.name: int(made.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0])  # noqa: S608 - ours
        for table in _tables()
        if table.name in present  # a snapshot may be of an older schema
    }

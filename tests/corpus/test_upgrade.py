"""Catalogues that released states of the code made, brought up to date; and two versions of the code on one.

``catalogues/*.sql.xz`` are real: ``refresh --direct`` of the code of then over four pages
of the sample site and one page of noise, with names, questions and vectors thinned out.
``0001-first`` is the first state that ran; its revision 0001 had no tables of batch jobs.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, MetaData, Table, create_engine, insert, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue import database as database_module
from corpus.catalogue.database import newest_schema
from corpus.catalogue.tables import Base
from corpus.errors import CatalogueBusyError, SettingsError
from tests.conftest import new_database
from tests.flows.conftest import Command
from tests.flows.tiny import tiny_site

FOLDER = Path(__file__).parent / "catalogues"
RELEASED = ("0001-first", "0001", "0003", "0005")
_BATCHES = ("model_batch_lines", "model_batches")

Rows = dict[str, list[dict[str, Any]]]


def _sqlite(name: str, path: Path) -> str:
    with closing(sqlite3.connect(path)) as made:
        made.executescript(lzma.decompress((FOLDER / f"{name}.sql.xz").read_bytes()).decode())
    return f"sqlite:///{path}"


def _postgresql(name: str, source: str, server: str) -> str:
    """The same rows in PostgreSQL, in the schema that the migrations of then made there."""
    url = new_database(server)
    engine = database_module._engine(url)
    config = Config()
    config.set_main_option("script_location", str(database_module._MIGRATIONS))
    config.attributes["engine"] = engine
    command.upgrade(config, name[:4])
    tables = _reflected(engine)
    old = create_engine(source)
    with old.connect() as rows, engine.begin() as target:
        if name == "0001-first":
            for name_ in _BATCHES:
                target.exec_driver_sql(f"DROP TABLE {name_}")
        for table in tables:
            if not (name == "0001-first" and table.name in _BATCHES):
                found = [dict(row) for row in rows.execute(select(table)).mappings()]
                if (
                    table.name == "evaluations"
                ):  # of then, with a unit longer than PostgreSQL took: it had no such row
                    found = [row for row in found if len(row["unit"]) <= 32]
                if found:
                    target.execute(insert(table), found)
    old.dispose()
    engine.dispose()
    return url


def _reflected(engine: Engine) -> list[Table]:
    """The tables that are there, with types that read alike on each database."""
    metadata = MetaData()
    metadata.reflect(engine)
    for table in metadata.tables.values():
        for column in table.columns:
            column.type = column.type.as_generic()
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def _before(url: str) -> Rows:
    engine = database_module._engine(url)
    with engine.connect() as connection:
        found = {
            table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in _reflected(engine)
        }
    engine.dispose()
    return found


def _key(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _plain(value: Any) -> Any:
    """One form for moments with and without a time zone."""
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


@pytest.fixture(params=RELEASED)
def released(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def old(request: pytest.FixtureRequest, released: str, tmp_path: Path) -> tuple[str, str]:
    """Name and URL of a catalogue of a released state."""
    url = _sqlite(released, tmp_path / "old.db")
    if request.param == "postgresql":
        url = _postgresql(released, url, request.getfixturevalue("postgres_server"))
    return released, url


def test_a_released_catalogue_migrates_with_every_row_readable_and_unchanged(old: tuple[str, str]) -> None:
    name, url = old
    before = _before(url)
    assert len(before["assertions"]) > 250
    assert len(before["questions"]) == 150
    assert ("model_batches" in before) == (name != "0001-first")
    catalogue = Catalogue.open(url)
    try:
        assert catalogue.check_schema() == newest_schema()
        with catalogue.engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": False})
            assert compare_metadata(context, Base.metadata) == []
        with catalogue.reading() as db:
            for mapper in Base.registry.mappers:
                _compare(db, mapper, before)
    finally:
        catalogue.close()


def _compare(db: Session, mapper: Any, before: Rows) -> None:
    """Every row is read by the mapped class and says in every column of then what it said then."""
    table = mapper.local_table
    rows = {
        tuple(getattr(row, mapper.get_property_by_column(c).key) for c in table.primary_key.columns): row
        for row in db.scalars(select(mapper.class_))
    }
    names = [column.name for column in table.primary_key.columns]
    then = {_key(row, names): row for row in before.get(table.name, [])}
    assert rows.keys() == then.keys(), table.name
    for key, row in rows.items():
        for column in table.columns:
            now = getattr(row, mapper.get_property_by_column(column).key)
            if column.name in then[key]:
                assert _plain(now) == _plain(then[key][column.name]), (table.name, key, column.name)


def test_a_catalogue_of_the_first_state_is_refreshed_by_the_present_code(tmp_path: Path) -> None:
    site = tiny_site(tmp_path / "site")
    (tmp_path / "data").mkdir()
    _sqlite("0001-first", tmp_path / "data" / "catalogue.db")
    command_ = Command(tmp_path / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(site)})
    command_.run("refresh", "--direct", "--to-stage", "curate")
    assert command_.last_run()["state"] == "completed"
    assert command_.status()["failures"] == 0


# --- two versions of the code on one catalogue ------------------------------------


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as catalogue:
        return list(catalogue.iterdump())


def test_old_code_meets_a_newer_catalogue_with_one_line_and_changes_nothing(
    template: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    path = data / "catalogue.db"
    path.write_bytes(template.read_bytes())
    with closing(sqlite3.connect(path)) as catalogue:
        catalogue.execute("UPDATE alembic_version SET version_num = '9999'")
        catalogue.commit()
    before = _dump(path)
    ended = Command(data).run("refresh", "--direct", code=2)
    assert ended.stderr.splitlines() == [
        f"hchem: the catalogue was made by a newer version (schema 9999, this code knows {newest_schema()}): "
        "upgrade this installation"
    ]
    assert _dump(path) == before


def test_what_opens_without_migrating_refuses_a_newer_schema_too(catalogue_url: str) -> None:
    made = Catalogue.open(catalogue_url)
    with made.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    made.close()
    with pytest.raises(SettingsError, match="newer version"):
        Catalogue.open(catalogue_url, migrate=False)


_HOLDER = """
import sys
from corpus.catalogue import Catalogue, leases
with leases.held(Catalogue.open(sys.argv[1], migrate=False), "run"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_new_code_does_not_migrate_under_a_run_of_old_code(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    url = _sqlite("0005", data / "catalogue.db")
    run = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdin is not None
    assert run.stdout is not None
    try:
        assert run.stdout.readline() == "held\n"
        ended = Command(data).run("status", code=2)
        assert len(ended.stderr.splitlines()) == 1
        assert (
            f"the catalogue's schema 0005 has to become {newest_schema()}, but not under a run"
            in ended.stderr
        )
        assert f"process {run.pid}" in ended.stderr
        with closing(sqlite3.connect(data / "catalogue.db")) as catalogue:
            assert catalogue.execute("SELECT version_num FROM alembic_version").fetchone() == ("0005",)
    finally:
        run.stdin.close()
        run.wait(60)
    assert json.loads(Command(data).run("status", "--json").stdout)["assertions"] > 250


def test_a_lease_on_postgresql_keeps_migrations_away(postgres_server: str, tmp_path: Path) -> None:
    from corpus.catalogue import leases

    url = _postgresql("0005", _sqlite("0005", tmp_path / "old.db"), postgres_server)
    old_code = Catalogue.open(url, migrate=False)
    with leases.held(old_code, "run"), pytest.raises(CatalogueBusyError, match="not under a run"):
        Catalogue.open(url)
    old_code.close()
    Catalogue.open(url).close()


def test_processes_that_open_an_empty_catalogue_at_once_make_it_once(tmp_path: Path) -> None:
    program = "import sys; from corpus.catalogue import Catalogue; Catalogue.open(sys.argv[1]).close()"
    url = f"sqlite:///{tmp_path}/new.db"
    started = [subprocess.Popen([sys.executable, "-c", program, url]) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]

"""Fixtures of the graph tests: one Bolt server for the session, an empty database for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.catalogue import Catalogue
from corpus.chemicals import build_repository, store_records
from kg.embedded import EmbeddedGraph, package_dir
from kg.identity import AliasTable
from kg.resolution import curated_table
from kg.store import GraphStore
from tests.conftest import missing


@pytest.fixture(scope="session")
def bolt_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedGraph]:
    """The embedded Bolt server, started once."""
    if package_dir() is None:
        missing("arcadedb-embedded")
    with EmbeddedGraph(tmp_path_factory.mktemp("bolt"), heap="512m") as server:
        yield server


@pytest.fixture(scope="session")
def session_store(bolt_server: EmbeddedGraph) -> Iterator[GraphStore]:
    """One driver for the session."""
    store = GraphStore(bolt_server.uri, bolt_server.user, bolt_server.password, bolt_server.database)
    yield store
    store.close()


@pytest.fixture
def store(session_store: GraphStore) -> GraphStore:
    """An empty graph."""
    session_store.clear()
    return session_store


@pytest.fixture
def sqlite_catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    """An empty catalogue."""
    opened = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> AliasTable:
    """The alias table of the name repository alone."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('names')}/c.db")
    with catalogue.writing() as session:
        store_records(session, build_repository())
    with catalogue.reading() as session:
        found = curated_table(session)
    catalogue.close()
    return found

"""Fixtures of the graph tests: one Bolt server of each kind for the session, an empty database for each test.

``graph_server``
    A running server of each kind in turn (``kind`` is "arcadedb" or "neo4j"), with ``uri``, ``user``,
    ``password`` and ``database``: a test that takes it runs once on each.
``graph_store``
    An open, empty GraphStore on ``graph_server``. A module whose tests take ``store`` runs on both kinds with

        @pytest.fixture
        def store(graph_store: GraphStore) -> GraphStore:
            return graph_store

``bolt_server``, ``session_store``, ``store``
    The embedded server only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
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
from tests.servers.neo4j_server import Neo4jServer, why_missing


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where servers keep their data: in memory where there is such a place, since every commit waits for the disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 2**30:
        yield tmp_path_factory.mktemp("servers")
        return
    folder = Path(tempfile.mkdtemp(prefix="hchem-test-", dir=memory))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def bolt_server(server_folder: Path) -> Iterator[EmbeddedGraph]:
    """The embedded Bolt server, started once."""
    if package_dir() is None:
        missing("arcadedb-embedded")
    with EmbeddedGraph(server_folder / "arcadedb", heap="512m") as server:
        yield server


@pytest.fixture(scope="session")
def neo4j_server(server_folder: Path) -> Iterator[Neo4jServer]:
    """A real Neo4j community server, started once."""
    if lacking := why_missing():
        missing(lacking)
    with Neo4jServer(server_folder / "neo4j") as server:
        yield server


@pytest.fixture(scope="session", params=["arcadedb", "neo4j"])
def graph_server(request: pytest.FixtureRequest) -> EmbeddedGraph | Neo4jServer:
    """Each kind of server in turn."""
    server: EmbeddedGraph | Neo4jServer = request.getfixturevalue(
        "bolt_server" if request.param == "arcadedb" else "neo4j_server"
    )
    return server


@pytest.fixture(scope="session")
def graph_session_store(graph_server: EmbeddedGraph | Neo4jServer) -> Iterator[GraphStore]:
    """One driver for the session on each kind of server; what the last test wrote is still there."""
    with GraphStore(
        graph_server.uri, graph_server.user, graph_server.password, graph_server.database
    ) as opened:
        yield opened


@pytest.fixture
def graph_store(graph_session_store: GraphStore) -> GraphStore:
    """An empty graph on each kind of server."""
    graph_session_store.clear()
    return graph_session_store


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

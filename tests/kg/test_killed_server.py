"""The server is killed (SIGKILL) in the middle of an import: the next run completes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from corpus.catalogue import Catalogue
from corpus.errors import PlatformError
from kg.embedded import EmbeddedGraph
from kg.projection import graph_documents
from kg.schema import NodeLabel
from kg.store import GraphStore
from kg.sync import remove_vanished, sync_documents
from kg.verify import verify_graph
from tests.conftest import missing
from tests.kg.graph_builders import MADE, data_sheet, fill
from tests.servers.neo4j_server import Neo4jServer, why_missing

pytestmark = [pytest.mark.graph, pytest.mark.timeout(600)]  # two starts of a server, on machines of any speed
FEW = MADE[:3]


@pytest.fixture(params=["arcadedb", "neo4j"])
def mortal(request: pytest.FixtureRequest, server_folder: Path) -> Iterator[EmbeddedGraph | Neo4jServer]:
    """A server that the test may kill and start again."""
    if request.param == "arcadedb":
        request.getfixturevalue("bolt_server")  # for its skip
        with EmbeddedGraph(server_folder / "mortal", heap="256m") as embedded:
            yield embedded
        return
    if lacking := why_missing():
        missing(lacking)
    # the session's server comes back at its address; a start of one more would take as long
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    yield server
    if server.server_pid is None or not psutil.pid_exists(server.server_pid):
        server.stop()
        server.start()


def opened(server: EmbeddedGraph | Neo4jServer) -> GraphStore:
    return GraphStore(server.uri, server.user, server.password, server.database, batch_size=5, retry_s=1.0)


def test_killed_server_is_completed_by_the_next_run(
    mortal: EmbeddedGraph | Neo4jServer, sqlite_catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_catalogue, FEW)
    with sqlite_catalogue.reading() as session:
        documents = graph_documents(session)
    with opened(mortal) as store:
        store.clear()
        sync_documents(sqlite_catalogue, store, documents[:2], "run-1")
        # one document changes, others are new: rows are created, updated and deleted in one import
        changed = data_sheet(FEW[0], "zh")
        changed.facts = changed.facts[:6]
        with sqlite_catalogue.writing() as session:
            changed.store(session)
        whole = store.sent.total()
        sync_documents(sqlite_catalogue, store, documents, "run-2")
        whole = store.sent.total() - whole
        store.clear()
        sync_documents(sqlite_catalogue, store, documents[:2], "run-1")

        sent = 0
        original = GraphStore._once

        def killing(self: GraphStore, query: str, parameters: dict[str, object]) -> tuple[int, int, int]:
            nonlocal sent
            sent += 1
            if sent == whole // 2:
                os.kill(mortal.server_pid or 0, signal.SIGKILL)
            return original(self, query, parameters)

        monkeypatch.setattr(GraphStore, "_once", killing)
        with pytest.raises(PlatformError) as caught:
            sync_documents(sqlite_catalogue, store, documents, "run-2")
        assert caught.value.transient
        monkeypatch.setattr(GraphStore, "_once", original)
    mortal.stop()
    mortal.start()
    with opened(mortal) as store:
        loaded = len(list(store.nodes(NodeLabel.ASSERTION)))
        assert verify_graph(sqlite_catalogue, store) != [], "the kill came too late to matter"
        again = sync_documents(sqlite_catalogue, store, documents, "run-3")
        remove_vanished(sqlite_catalogue, store)
        assert again.changed > 0
        assert loaded > 0, "nothing had been written before the kill"
        assert verify_graph(sqlite_catalogue, store) == []
        assert sync_documents(sqlite_catalogue, store, documents, "run-4").changed == 0

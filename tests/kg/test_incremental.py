"""Incremental sync: the work grows with what changed, not with what is there. Proved by counts, not by clocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.catalogue import Catalogue
from corpus.stages import StageContext, pending, run_step
from kg.embedded import EmbeddedGraph
from kg.graph_settings import GraphSettings
from kg.projection import Described, graph_documents
from kg.stage import GraphSync
from kg.store import GraphHandle, GraphStore
from kg.sync import expected_rows, rebuild, sync_documents
from kg.verify import verify_graph
from tests.kg.graph_builders import data_sheet, synthetic, synthetic_corpus
from tests.servers.neo4j_server import Neo4jServer

pytestmark = pytest.mark.graph


@pytest.fixture
def handle(
    graph_server: EmbeddedGraph | Neo4jServer, graph_store: GraphStore, tmp_path: Path
) -> Iterator[GraphHandle]:
    """What a run has, on an empty graph."""
    settings = GraphSettings.model_validate(
        {
            "uri": graph_server.uri,
            "user": graph_server.user,
            "password": graph_server.password,
            "database": graph_server.database,
            "documents_per_batch": 8,
        }
    )
    opened = GraphHandle(settings, tmp_path)
    yield opened
    opened.close()


def edited(catalogue: Catalogue, number: int) -> str:
    """One sheet of a substance no longer gives its first hazard statement."""
    sheet = data_sheet(synthetic(number), "en")
    sheet.url += "/0"
    sheet.facts = [fact for fact in sheet.facts if fact["object_key"] != synthetic(number).h[0]]
    with catalogue.writing() as session:
        sheet.store(session)
    return sheet.id


def test_only_what_changed_is_touched(sqlite_catalogue: Catalogue, handle: GraphHandle) -> None:
    ctx = StageContext(sqlite_catalogue, "run-1")
    costs: list[tuple[dict[str, int], int]] = []
    for first in (0, 16):  # the same change with 16 and with 32 documents
        synthetic_corpus(sqlite_catalogue, 16, first)
        sync = GraphSync(handle, handle.settings)
        new = run_step(sync, ctx)
        assert new.states["kept"] == 16, "documents that were there are not written again"
        assert pending(sync, ctx) == []
        changed = edited(sqlite_catalogue, first // 4)
        assert [item.id for item in pending(sync, ctx)] == [changed]
        before = handle.store.sent.copy()
        report = run_step(sync, ctx)
        sent = handle.store.sent - before
        assert report.states["kept"] == 1
        costs.append((dict(report.counts), sent.total()))
        assert verify_graph(sqlite_catalogue, handle.store) == []
    assert costs[0] == costs[1], "the same change costs more in a larger graph"
    counts, statements = costs[0]
    # gone: the assertion; written anew: the list it was on, with its 7 members, subject and document;
    # updated: the relationship, which the other three sheets still state
    assert counts["nodes_deleted"] == 2
    assert counts["nodes_created"] == 1
    assert counts["relationships_created"] == 9
    assert counts["relationships_updated"] == 1
    assert "nodes_updated" not in counts
    assert statements < 60


def test_shared_objects_are_read_once_in_a_load(sqlite_catalogue: Catalogue) -> None:
    """A hazard code of a thousand sheets must not be read a thousand times for each group of documents."""
    synthetic_corpus(sqlite_catalogue, 64)
    described = Described()
    with sqlite_catalogue.reading() as session:
        documents = graph_documents(session)
        groups = [expected_rows(session, documents[at : at + 8], described)[0] for at in range(0, 64, 8)]
        total = 64 * 28
        assert described.read <= total * 1.5
        whole, _ = expected_rows(session, documents, Described(remembered=0))
        alone = [expected_rows(session, [document], Described(remembered=3))[0] for document in documents]
    for parts in (groups, alone):
        for label, found in whole.nodes.items():
            assert {key: row for part in parts for key, row in part.nodes[label].items()} == found


def test_documents_given_together_or_alone_make_the_same_graph(
    sqlite_catalogue: Catalogue, store: GraphStore
) -> None:
    synthetic_corpus(sqlite_catalogue, 12)
    rebuild(sqlite_catalogue, store, bite=5)
    content = store.content_hash()
    with sqlite_catalogue.reading() as session:
        documents = graph_documents(session)
    store.clear()
    for document in documents[::-1]:
        sync_documents(sqlite_catalogue, store, [document])
    assert store.content_hash() == content

"""People's decisions in graph and questions: what they touch is retired and made anew, the rest stays."""

from __future__ import annotations

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, EntityDecision
from kg.decisions import merge, split
from kg.projection import contribution_hash, graph_documents
from kg.qa.facts import Facts, load_facts
from kg.schema import NodeLabel, Relation
from kg.store import GraphStore
from kg.sync import remove_vanished, sync_documents
from kg.verify import verify_graph
from tests.kg import sheets


def synced(catalogue: Catalogue, store: GraphStore) -> tuple[dict[str, str], set[str], Facts]:
    """Resolve, bring the graph in line, and read back: contributions, substances of the graph, facts for questions."""
    sheets.run(catalogue)
    with catalogue.reading() as session:
        documents = graph_documents(session)
        hashes = contribution_hash(session, documents)
        facts = load_facts(session)
    sync_documents(catalogue, store, documents)
    remove_vanished(catalogue, store)
    assert verify_graph(catalogue, store) == []
    return hashes, {key for key, _ in store.node_hashes(NodeLabel.SUBSTANCE)}, facts


def test_a_decision_moves_what_it_touches_and_nothing_else(
    sqlite_catalogue: Catalogue, store: GraphStore
) -> None:
    sheets.fill(sqlite_catalogue)
    first, nodes, facts = synced(sqlite_catalogue, store)
    with sqlite_catalogue.writing() as session:
        made = merge(session, "甲号油", "甲醇", "made up", "tester")
    oil = made.left.key
    assert oil in nodes
    assert {"67-56-1", oil} <= {key for _, key in facts.substances}

    second, merged, facts = synced(sqlite_catalogue, store)
    assert merged == nodes - {oil}
    assert oil not in {key for _, key in facts.substances}
    values = {f.words for f in facts.stated((NodeLabel.SUBSTANCE, "67-56-1"), Relation.HAS_MEASUREMENT)}
    assert {"64.7 ℃", "64.5 ℃", "31 ℃", "11 ℃"} <= values  # side by side, none overwritten
    changed = {document for document in first if first[document] != second[document]}
    with sqlite_catalogue.reading() as session:
        titles = {row.title for row in session.query(Document).where(Document.document_id.in_(changed))}
    assert titles == {"甲醇", "甲号油", "木醇"}  # the others' contributions are what they were

    with sqlite_catalogue.writing() as session:
        split(session, "甲醇", "甲号油", "made up", "tester")
    third, back, _ = synced(sqlite_catalogue, store)
    assert back == nodes
    assert third == first
    with sqlite_catalogue.reading() as session:
        assert session.query(EntityDecision).where(EntityDecision.decided_by == "tester").count() == 2

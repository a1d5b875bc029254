"""Bring the graph in line with the catalogue, document by document.

Only changed documents are touched. What a document no longer states is
removed, and what it had supported is recomputed from the other documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, LedgerRow
from kg import queries
from kg.projection import (
    NAMED,
    Described,
    Edge,
    GraphRows,
    Link,
    Statement,
    aliases_by_key,
    backing,
    derived_rows,
    document_rows,
    entities_by_key,
    graph_documents,
    kept_assertions,
    node_rows,
    section_key,
    statements,
)
from kg.schema import RELATIONS, NodeLabel, Polarity, Relation
from kg.store import Counters, GraphStore

_L = NodeLabel
Ends = set[tuple[NodeLabel, str]]


@dataclass
class Plan:
    """Rows to write and what to take away, for a group of documents."""

    rows: GraphRows = field(default_factory=GraphRows)
    stale_nodes: dict[NodeLabel, set[str]] = field(default_factory=lambda: defaultdict(set))
    stale_links: dict[Link, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))


def sync_documents(
    catalogue: Catalogue,
    store: GraphStore,
    documents: Sequence[str],
    run_id: str = "",
    described: Described | None = None,
) -> Counters:
    """Write the contributions of documents as the catalogue has them now (none: they are removed).

    ``described``: shared by the calls of one loading of many documents, while the catalogue stays the same.
    Old assertions are deleted last: they are how a run that was killed half-way
    finds out again which derived relationships have to be recomputed.
    """
    store.ensure_constraints()
    with catalogue.reading() as session:
        plan = _plan(session, store, documents, described or Described())
    now, after = _parted(plan)
    done = store.write(now, run_id)
    for link in sorted(plan.stale_links):
        done.add(store.delete_links(link, plan.stale_links[link]))
    for label in (_L.LISTING, _L.ASSERTION, _L.SECTION, _L.DOCUMENT):
        done.add(store.delete_nodes(label, plan.stale_nodes[label]))
    done.add(store.write(after, run_id))
    return done


def _parted(plan: Plan) -> tuple[GraphRows, GraphRows]:
    """Rows to write at once, and those whose old node has to go first (its ends changed)."""
    now, after = GraphRows(), GraphRows()
    for label, rows in plan.rows.nodes.items():
        for key, row in rows.items():
            (after if key in plan.stale_nodes[label] else now).nodes[label][key] = row
    for link, links in plan.rows.links.items():
        for ends, row in links.items():
            (after if ends[0] in plan.stale_nodes[link[1]] else now).links[link][ends] = row
    return now, after


def remove_vanished(catalogue: Catalogue, store: GraphStore, run_id: str = "", bite: int = 200) -> Counters:
    """Remove the contributions of documents that the catalogue no longer keeps, and nodes nobody speaks of."""
    store.ensure_constraints()
    with catalogue.reading() as session:
        present = set(graph_documents(session))
    gone = sorted({row["key"] for row in store.read(queries.DOCUMENT_KEYS)} - present)
    done, described = Counters(), Described()
    for at in range(0, len(gone), bite):
        done.add(sync_documents(catalogue, store, gone[at : at + bite], run_id, described))
    done.nodes_deleted += store.delete_orphans()
    return done


def rebuild(catalogue: Catalogue, store: GraphStore, run_id: str = "", bite: int = 200) -> Counters:
    """Drop the graph and load all of it from the catalogue.

    What the record says of the graph does not count until it is whole again: after a
    kill the next run writes everything anew instead of trusting a torso.
    """
    recorded = LedgerRow.step.in_(("graph.sync", "graph.snapshot"))
    with catalogue.writing() as session:
        before = {
            (r.step, r.item_id): r.fingerprint for r in session.scalars(select(LedgerRow).where(recorded))
        }
        session.execute(update(LedgerRow).where(recorded).values(fingerprint=""))
    store.clear()
    with catalogue.reading() as session:
        documents = graph_documents(session)
    done, described = Counters(), Described()
    for at in range(0, len(documents), bite):
        done.add(sync_documents(catalogue, store, documents[at : at + bite], run_id, described))
    with catalogue.writing() as session:
        for row in session.scalars(select(LedgerRow).where(recorded, LedgerRow.fingerprint == "")):
            row.fingerprint = before.get((row.step, row.item_id), "")
    return done


# --- planning -----------------------------------------------------------------


def _plan(session: Session, store: GraphStore, documents: Sequence[str], described: Described) -> Plan:
    old = store.read(queries.CONTRIBUTION, documents=list(documents)) if documents else []
    spoken_of = [(_L(row["object_label"]), str(row["object"])) for row in old]
    rows, bare = expected_rows(session, documents, described, _edges(old), spoken_of)
    plan = Plan(rows)
    _find_stale(store, plan, documents, old)
    for edge in bare:
        plan.stale_links[edge[0], edge[1], edge[3]].add((edge[2], edge[4]))
    return plan


def expected_rows(
    session: Session,
    documents: Sequence[str],
    described: Described,
    edges: Iterable[Edge] = (),
    spoken_of: Iterable[tuple[NodeLabel, str]] = (),
) -> tuple[GraphRows, list[Edge]]:
    """What the graph should hold for documents, and which of ``edges`` nothing supports any more.

    ``spoken_of``: nodes that the documents spoke of before; where others still
    do, their properties may have to change.
    """
    graph = GraphRows()
    rows = kept_assertions(session, documents)
    entities = entities_by_key(session, _keys(rows))
    found, skipped = statements(rows, entities)
    graph.skipped.update(skipped)
    _add_documents(session, graph, documents, found)
    wanted = {s.edge for s in found if s.row.polarity == Polarity.POSITIVE} | set(edges)
    ends = {(s.subject_label, s.row.subject_key) for s in found} | {
        (s.object_label, s.row.object_key) for s in found
    }
    before = {(label, key) for label, key in spoken_of if label not in NAMED}
    known = described.of(session, {end for end in ends | before if end[0] not in NAMED})
    ends |= before & set(known)
    names = [key for label, key in ends if label in NAMED]
    node_rows(graph, ends, entities, aliases_by_key(session, names), known)
    supporting = backing(session, wanted)
    support, _ = statements(supporting, entities_by_key(session, _keys(supporting)))
    return graph, derived_rows(graph, wanted, support)


def _keys(rows: Iterable[Assertion]) -> set[str]:
    return {row.subject_key for row in rows} | {row.object_key for row in rows}


def _add_documents(
    session: Session, rows: GraphRows, documents: Sequence[str], found: Sequence[Statement]
) -> None:
    groups: dict[str, list[Statement]] = defaultdict(list)
    for statement in found:
        groups[statement.row.document_id].append(statement)
    for document in session.scalars(
        select(Document).where(Document.document_id.in_(sorted(groups))).order_by(Document.document_id)
    ):
        document_rows(rows, document, groups[document.document_id])


def _edges(old: Sequence[dict[str, Any]]) -> set[Edge]:
    """Derived relationships that assertions in the graph may have supported."""
    found: set[Edge] = set()
    for row in old:
        if row["polarity"] != Polarity.POSITIVE:
            continue
        relation = Relation(row["relation"])
        start = (_L(row["subject_label"]), row["subject"])
        end = (_L(row["object_label"]), row["object"])
        if RELATIONS[relation].symmetric and start[0] == end[0] and start[1] > end[1]:
            start, end = end, start
        found.add((relation, *start, *end))
    return found


_ENDS = ("subject", "subject_label", "object", "object_label", "document", "section")


def _find_stale(
    store: GraphStore, plan: Plan, documents: Sequence[str], old: Sequence[dict[str, Any]]
) -> None:
    new = plan.rows.nodes.get(_L.ASSERTION, {})
    for row in old:
        present = new.get(row["key"])
        # an assertion whose ends changed is deleted with its links and written anew
        if present is None or any(present["props"].get(end) != row[end] for end in _ENDS):
            plan.stale_nodes[_L.ASSERTION].add(row["key"])
        if row["section"]:
            section = section_key(row["document"], row["section"])
            if section not in plan.rows.nodes.get(_L.SECTION, {}):
                plan.stale_nodes[_L.SECTION].add(section)
    listings = plan.rows.nodes.get(_L.LISTING, {})
    for row in store.read(queries.LISTINGS, documents=list(documents)):
        present = listings.get(row["key"])
        if present is None or any(present["props"].get(name) != row[name] for name in ("members", "subject")):
            plan.stale_nodes[_L.LISTING].add(row["key"])
    plan.stale_nodes[_L.DOCUMENT].update(set(documents) - set(plan.rows.nodes.get(_L.DOCUMENT, {})))

"""Questions from made-up data sheets: all kinds, both languages, proved, divided, deterministic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, GraphSnapshot, LedgerRow, Question
from corpus.stages import StageContext, pending, run_step
from kg.graph_settings import GraphSettings, QuestionSettings
from kg.projection import graph_documents
from kg.qa.facts import Facts, load_facts
from kg.qa.generate import generate
from kg.qa.records import Judged
from kg.qa.step import QuestionsStep, question_row
from kg.qa.stored import verify_stored
from kg.store import GraphHandle, GraphStore
from kg.sync import sync_documents
from models import Models
from tests.kg.graph_builders import MADE, fill

pytestmark = pytest.mark.graph
SETTINGS = QuestionSettings(seed=7, evaluation_share=0.4)


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory, session_store: GraphStore
) -> Iterator[tuple[Catalogue, Facts, list[Judged]]]:
    """Catalogue, facts and judged questions of all made-up sheets."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('qa')}/c.db")
    session_store.clear()
    fill(catalogue)
    with catalogue.reading() as session:
        documents = graph_documents(session)
    sync_documents(catalogue, session_store, documents)
    with catalogue.reading() as session:
        facts = load_facts(session)
    yield catalogue, facts, generate(facts, session_store, SETTINGS, Models.offline()).questions
    catalogue.close()


def kept(judged: list[Judged]) -> list[Judged]:
    return [q for q in judged if not q.reason]


Built = tuple[Catalogue, Facts, list[Judged]]


def test_all_kinds_in_both_languages(built: Built) -> None:
    counts = Counter((q.candidate.kind, q.candidate.language) for q in kept(built[2]))
    for kind in ("single_hop", "multi_hop", "aggregative", "boolean"):
        for language in ("zh", "en"):
            assert counts[kind, language] >= 3, (kind, language, counts)
    assert sum(counts.values()) >= 200


def test_stored_proofs_return_exactly_the_answers(
    built: Built, session_store: GraphStore, sqlite_catalogue: Catalogue
) -> None:
    catalogue, _, judged = built
    with catalogue.reading() as session:
        documents = [
            {c.key: getattr(row, c.key) for c in Document.__table__.columns}
            for row in session.scalars(select(Document))
        ]
    with sqlite_catalogue.writing() as session:
        session.add_all(Document(**row) for row in documents)
        session.add_all(Question(**question_row(q, "s")) for q in judged)
    checked, problems = verify_stored(sqlite_catalogue, session_store)
    assert checked == len(kept(judged))
    assert problems == []
    with sqlite_catalogue.writing() as session:  # and the check can fail
        row = session.scalars(select(Question).where(Question.state == "kept").limit(1)).one()
        row.answer_set = [{"key": "something else", "text": ""}]
        row.references = [{**row.references[0], "start": row.references[0]["start"] + 1}]
    assert len(verify_stored(sqlite_catalogue, session_store)[1]) == 2


def test_multi_hop_has_two_spans_and_no_repeated_node(built: Built) -> None:
    for q in kept(built[2]):
        if q.candidate.kind == "multi_hop":
            spans = {(r.document_id, r.start, r.end) for r in q.candidate.references}
            assert len(spans) >= 2
            assert len(set(q.candidate.nodes)) == len(q.candidate.nodes)
            assert q.candidate.hops >= 2


def test_yes_and_no_balance(built: Built) -> None:
    sides: dict[tuple[str, ...], Counter[Any]] = defaultdict(Counter)
    for q in kept(built[2]):
        if q.candidate.kind == "boolean":
            sides[q.candidate.template, q.candidate.relation, q.candidate.language][
                q.candidate.expected[0]
            ] += 1
    assert sides
    for counts in sides.values():
        assert counts["yes"] == counts["no"]


def test_no_substance_on_both_sides(built: Built) -> None:
    where: dict[str, set[str]] = defaultdict(set)
    for q in kept(built[2]):
        for substance in q.candidate.substances:
            where[substance].add(q.split)
    assert all(len(found) == 1 for found in where.values())
    assert {side for found in where.values() for side in found} == {"train", "eval"}
    assert all(q.split == "eval" for q in built[2] if q.curated)
    assert any(q.curated for q in built[2])


def test_known_answers(built: Built) -> None:
    by_cas = {made.cas: made for made in MADE}
    seen: Counter[str] = Counter()
    for q in kept(built[2]):
        c = q.candidate
        made = by_cas[c.substances[0]]
        if c.template == "count" and c.relation == "HAS_H":
            assert c.answer == str(len(made.h))
        elif c.template == "is_listed" and c.relation == "HAS_H":
            assert (c.expected == ("yes",)) == (c.proof.parameters["object"] in made.h)
        elif c.template == "identifier":
            assert c.answer == made.cas
        elif c.template == "value" and c.proof.parameters["property"] == "boiling_point":
            assert c.answer.startswith(f"{made.boiling:g} ")
        elif c.template == "is_higher" and c.proof.parameters["property"] == "boiling_point":
            left, right = (by_cas[c.proof.parameters[name]].boiling for name in ("subject", "other"))
            assert (c.expected == ("yes",)) == (left > right)
        else:
            continue
        seen[c.template] += 1
    assert set(seen) == {"count", "is_listed", "identifier", "value", "is_higher"}


def test_no_incompatible_class_is_denied_where_meanings_overlap(built: Built) -> None:
    for q in kept(built[2]):
        c = q.candidate
        if c.template == "is_listed" and c.relation == "INCOMPATIBLE_WITH" and c.expected == ("no",):
            name = next(m for m in MADE if m.cas == c.substances[0])
            assert c.proof.parameters["object"].partition(":")[2] not in name.incompatible


def test_texts_are_unique_and_ids_too(built: Built) -> None:
    texts = Counter((q.candidate.language, q.question) for q in kept(built[2]))
    assert max(texts.values()) == 1
    assert len({q.candidate.id for q in built[2]}) == len(built[2])


def test_deterministic(built: Built, session_store: GraphStore) -> None:
    _, facts, judged = built
    shuffled = Facts(facts.facts, dict(reversed(list(facts.nodes.items()))))
    again = generate(shuffled, session_store, SETTINGS, Models.offline())
    assert [question_row(q, "s") for q in again.questions] == [question_row(q, "s") for q in judged]


def test_step_is_keyed_on_the_snapshot(
    built: Built, session_store: GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = built[0]
    snapshot, stats = session_store.content_hash()
    ctx = StageContext(catalogue, "run")
    handle = GraphHandle(GraphSettings(), tmp_path)
    monkeypatch.setattr(GraphHandle, "store", property(lambda self: session_store))
    step = QuestionsStep(handle, SETTINGS, Models.offline())
    assert pending(step, ctx) == []  # no snapshot yet
    with catalogue.writing() as session:
        session.add(GraphSnapshot(snapshot_id=snapshot, nodes=1, relationships=1, detail=stats, run_id="run"))
        session.add(LedgerRow(step="graph.snapshot", item_id="graph", fingerprint="f", state="kept", detail=snapshot, run_id="run"))  # fmt: skip
    report = run_step(step, ctx)
    assert report.states["kept"] == 1
    assert report.counts["single_hop"] > 0
    assert pending(step, ctx) == []
    assert len(pending(QuestionsStep(handle, QuestionSettings(seed=8), Models.offline()), ctx)) == 1
    with catalogue.reading() as session:
        rows = session.scalars(select(Question)).all()
    assert {row.snapshot_id for row in rows} == {snapshot}
    assert all(row.reason for row in rows if row.state == "rejected")

"""What the report shows, read from the catalogue as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Assertion,
    Chunk,
    Document,
    Entity,
    Evaluation,
    Failure,
    ModelCall,
    Page,
    Partition,
    Question,
)
from corpus.ids import digest
from kg.stage import current_snapshot

_QUESTIONS_PER_KIND = 60
_CONTEXT = 160  # characters shown on either side of an evidence span
_SHOWN_TEXT = 6000  # characters of a document in the chunk view
_SHARED_PER_LABEL = 3  # objects of each label in the small picture
_HUB = 9  # objects of more substances would hide the rest of the picture
_PICTURED = ("ReactiveGroup", "HazardClass", "HazardStatement", "Pictogram", "TransportEntry", "Substance")


@dataclass(frozen=True)
class Evidence:
    """A reference of a question with the text around it."""

    before: str
    quote: str
    after: str
    title: str
    url: str


@dataclass(frozen=True)
class Piece:
    """A chunk as shown: the part of its text inside the view."""

    text: str
    level: int
    completed: str | None
    label: str


def funnel(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Counts from pages to questions, each with the reasons for what was left behind.

    ``unit``: what is counted; a page becomes one document but dozens of assertions, so that only
    counts of one unit can be laid beside each other. ``share``: of the unit's first count, in percent.
    """
    with catalogue.reading() as db:
        pages = dict(groups(db, Page.state))
        page_reasons = groups(db, Page.reason, Page.reason != "")
        documents = dict(groups(db, Document.state, Document.kind != "reference"))
        document_reasons = groups(
            db, Document.reason, Document.kind != "reference", Document.reason != "", Document.state != "kept"
        )
        no_documents = _without_document(db)
        assertions = dict(groups(db, Assertion.state))
        assertion_reasons = groups(db, Assertion.reason, Assertion.state == "rejected")
        questions = dict(groups(db, Question.state))
        question_reasons = groups(db, Question.reason, Question.state == "rejected")
    rows: list[tuple[str, str, int, list[tuple[str, int]]]] = [
        ("pages", "pages known", sum(pages.values()), page_reasons),
        ("pages", "pages fetched", pages.get("kept", 0), no_documents),
        ("documents", "documents", sum(documents.values()), document_reasons),
        ("documents", "documents kept", documents.get("kept", 0), []),
        ("assertions", "assertions found", sum(assertions.values()), assertion_reasons),
        ("assertions", "assertions kept", assertions.get("kept", 0), []),
        ("questions", "questions made", sum(questions.values()), question_reasons),
        ("questions", "questions kept", questions.get("kept", 0), []),
    ]
    first: dict[str, int] = {}
    for unit, _, n, _ in rows:
        first.setdefault(unit, n)
    return [
        {"unit": unit, "name": name, "n": n, "share": 100.0 * n / (first[unit] or 1), "reasons": reasons}
        for unit, name, n, reasons in rows
    ]


_ROLES = {"search": "search or listing page, read for its links", "sitemap": "sitemap, read for its links"}


def _without_document(db: Session) -> list[tuple[str, int]]:
    """Why fetched pages are no documents: what they were fetched for, or that they have not been read yet."""
    own = select(Document.document_id).where(Document.page_id == Page.page_id).exists()
    rows = groups(db, Page.role, Page.state == "kept", ~own)
    return [(_ROLES.get(role, "same as another page, or not curated yet"), n) for role, n in rows]


def groups(db: Session, column: Any, *conditions: Any) -> list[tuple[str, int]]:
    """Rows by a column's value, the largest group first."""
    rows = db.execute(select(column, func.count()).where(*conditions).group_by(column)).all()
    return sorted(((str(key), int(n)) for key, n in rows), key=lambda row: (-row[1], row[0]))


def documents(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Every document with its state, reason and score, for the filterable table."""
    with catalogue.reading() as db:
        rows = db.scalars(select(Document).where(Document.kind != "reference").order_by(Document.identity))
        return [
            {
                "id": row.document_id,
                "title": row.title or row.identity,
                "url": row.url,
                "identity": row.identity,
                "language": row.language,
                "state": row.state,
                "reason": row.reason,
                "score": row.score,
                "scored_by": row.score_source,
                "licence": row.licence,
                "coverage": row.refinement.get("coverage"),
            }
            for row in rows
        ]


def scores(catalogue: Catalogue) -> list[float]:
    """Quality scores of all scored documents."""
    with catalogue.reading() as db:
        return [s for s in db.scalars(select(Document.score).order_by(Document.document_id)) if s is not None]


def failures(catalogue: Catalogue) -> list[dict[str, str]]:
    """Failures that no later run has resolved."""
    with catalogue.reading() as db:
        rows = db.scalars(
            select(Failure).where(Failure.resolved_run.is_(None)).order_by(Failure.step, Failure.item_id)
        )
        return [
            {"step": r.step, "item": r.item_id, "kind": r.kind, "reason": r.reason, "message": r.message}
            for r in rows
        ]


def graph_statistics(catalogue: Catalogue) -> dict[str, list[tuple[str, int]]]:
    """Nodes by label, and kept assertions by relation and by who extracted them."""
    with catalogue.reading() as db:
        kept = Assertion.state == "kept"
        snapshot = current_snapshot(db)
        labels = (snapshot.detail if snapshot else {}).get("nodes", {})
        return {
            "labels": sorted(
                ((str(k), int(n)) for k, n in labels.items()), key=lambda row: (-row[1], row[0])
            ),
            "relations": groups(db, Assertion.relation, kept),
            "extractors": groups(db, Assertion.extractor, kept),
        }


def graph_edges(catalogue: Catalogue) -> tuple[list[tuple[str, str, str]], dict[str, tuple[str, str]]]:
    """Edges for the small picture, and {key: (name, label)}.

    Of each kind of object those that most substances share, so that the
    picture shows how substances hang together. Only what is stated without a condition, since
    the picture has no room for one.
    """
    with catalogue.reading() as db:
        found = db.execute(
            select(
                Assertion.subject_key,
                Assertion.relation,
                Assertion.object_key,
                Assertion.object_label,
                Assertion.object,
                Assertion.conditions,
            )
            .where(
                Assertion.state == "kept",
                Assertion.polarity == "positive",
                Assertion.subject_key != "",
                Assertion.object_key != "",
                Assertion.object_label.in_(_PICTURED),
                Assertion.modality != "may",
            )
            .execution_options(yield_per=5000)
        )
        rows = {tuple(row[:5]) for row in found if not row.conditions}
        names = {e.key: (_name(e), e.label) for e in db.scalars(select(Entity))}
    edges = sorted({(s, r, o, label) for s, r, o, label, _ in rows if s in names})
    for _, _, key, label, text in sorted(rows, key=lambda row: (row[2], len(row[4]), row[4])):
        names.setdefault(key, (text, label))
    subjects: dict[tuple[str, str], set[str]] = {}
    for s, _, o, label in edges:
        subjects.setdefault((label, o), set()).add(s)
    chosen: set[str] = set()
    for wanted in sorted({label for label, _ in subjects}):
        shared = [key for key in subjects if key[0] == wanted and 1 < len(subjects[key]) <= _HUB]
        shared.sort(key=lambda key: (-len(subjects[key]), digest(*key)))
        chosen.update(o for _, o in shared[:_SHARED_PER_LABEL])
    shown = [(s, r, o) for s, r, o, _ in edges if o in chosen]
    used = {key for s, _, o in shown for key in (s, o)}
    return shown, {key: names[key] for key in used}


def _name(entity: Entity) -> str:
    names = entity.names or {}
    return str(names.get("zh") or names.get("en") or next(iter(names.values()), entity.key))


def questions(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Kept questions with their evidence in context, at most sixty of each kind."""
    shown: Counter[str] = Counter()
    result = []
    with catalogue.reading() as db:
        texts: dict[str, Document | None] = {}
        for row in db.scalars(
            select(Question).where(Question.state == "kept").order_by(Question.question_id)
        ):
            if shown[row.kind] >= _QUESTIONS_PER_KIND:
                continue
            shown[row.kind] += 1
            result.append(
                {
                    "id": row.question_id,
                    "kind": row.kind,
                    "language": row.language,
                    "question": row.question,
                    "answer": row.answer,
                    "cypher": row.proof.get("cypher", ""),
                    "parameters": row.proof.get("parameters", {}),
                    "wording": row.wording,
                    "split": row.split,
                    "evidence": [_evidence(db, texts, reference) for reference in row.references],
                }
            )
    return result


def _evidence(db: Session, texts: dict[str, Document | None], reference: dict[str, Any]) -> Evidence:
    key = reference["document_id"]
    if key not in texts:
        texts[key] = db.get(Document, key)
    document = texts[key]
    if document is None or document.version_id != reference.get("version_id"):
        return Evidence("", reference.get("quote", ""), "", "", reference.get("url", ""))
    start, end = reference["start"], reference["end"]
    return Evidence(
        before=("…" if start > _CONTEXT else "") + document.text[max(0, start - _CONTEXT) : start],
        quote=document.text[start:end],
        after=document.text[end : end + _CONTEXT] + ("…" if end + _CONTEXT < len(document.text) else ""),
        title=document.title,
        url=document.url,
    )


def chunk_views(catalogue: Catalogue) -> list[dict[str, Any]]:
    """One document per language, cut by every method: [{"title", "methods": [{"name", "pieces", …}]}]."""
    views = []
    with catalogue.reading() as db:
        for language in ("zh", "en"):
            document = _typical(db, language)
            if document is None:
                continue
            methods = [
                _method_view(db, document, partition)
                for partition in db.scalars(
                    select(Partition)
                    .where(Partition.version_id == document.version_id)
                    .order_by(Partition.method)
                )
            ]
            if methods:
                views.append(
                    {
                        "title": document.title,
                        "language": language,
                        "shown": min(_SHOWN_TEXT, len(document.text)),
                        "length": len(document.text),
                        "methods": methods,
                    }
                )
    return views


def _typical(db: Session, language: str) -> Document | None:
    """The document with most data sheet sections, of a length that can be looked at."""
    rows = list(
        db.scalars(
            select(Document).where(
                Document.state == "kept", Document.language == language, Document.kind != "reference"
            )
        )
    )
    usable = [
        r for r in rows if r.text and db.scalar(select(Partition).where(Partition.version_id == r.version_id))
    ]
    if not usable:
        return None
    return max(
        usable, key=lambda r: (min(len(r.sections), 16), -abs(len(r.text) - _SHOWN_TEXT), r.document_id)
    )


def _method_view(db: Session, document: Document, partition: Partition) -> dict[str, Any]:
    rows = list(
        db.scalars(
            select(Chunk)
            .where(Chunk.partition_id == partition.partition_id, Chunk.leaf, Chunk.start < _SHOWN_TEXT)
            .order_by(Chunk.start)
        )
    )
    count = db.scalar(select(func.count()).where(Chunk.partition_id == partition.partition_id, Chunk.leaf))
    pieces = [
        Piece(
            document.text[row.start : min(row.end, _SHOWN_TEXT)],
            row.level,
            row.completed,
            row.outline_question,
        )
        for row in rows
    ]
    return {
        "name": partition.method,
        "count": count,
        "scores": partition.scores,
        "record": partition.record,
        "pieces": pieces,
    }


def evaluation_tables(catalogue: Catalogue) -> dict[str, list[Evaluation]]:
    """All figures by table."""
    tables: dict[str, list[Evaluation]] = {}
    with catalogue.reading() as db:
        for row in db.scalars(
            select(Evaluation).order_by(
                Evaluation.table, Evaluation.method, Evaluation.metric, Evaluation.evaluation_id
            )
        ):
            tables.setdefault(row.table, []).append(row)
    return tables


def model_calls(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Calls, tokens and money by skill and model."""
    with catalogue.reading() as db:
        rows = db.execute(
            select(
                ModelCall.skill,
                ModelCall.model,
                func.count(),
                func.sum(ModelCall.served),
                func.sum(ModelCall.tokens_in),
                func.sum(ModelCall.tokens_out),
                func.sum(ModelCall.cost),
            )
            .group_by(ModelCall.skill, ModelCall.model)
            .order_by(ModelCall.skill, ModelCall.model)
        ).all()
    keys = ("skill", "model", "calls", "served", "tokens_in", "tokens_out", "cost")
    return [dict(zip(keys, row, strict=True)) for row in rows]

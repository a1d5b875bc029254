"""What a person sees of an item before deciding: texts with the quote marked, names, numbers, sources."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import (
    Assertion,
    Document,
    Entity,
    EntityAlias,
    EntityDecision,
    Failure,
    LedgerRow,
    Question,
)
from corpus.names import valid_cas
from kg.components import Side
from kg.conflicts import Finding, Stated
from kg.decided import sides_of, solution_target, stale_questions
from kg.decisions import entity_name

_ROOM = 160  # characters shown on either side of a quote
_LONGEST = 40_000  # characters of a document that are shown
_MOST_QUOTES = 12
_MOST_NAMES = 24
_BLANK_LINES = re.compile(r"\n{2,}")
_CAS = re.compile(r"(?<!\d)\d{2,7}-\d{2}-\d(?!\d)")


@dataclass(frozen=True)
class Passage:
    """A quote in its place. ``relation``, ``label``: what it is quoted for."""

    before: str
    quote: str
    after: str
    label: str = ""
    relation: str = ""


@dataclass(frozen=True)
class Source:
    """A document as the place of a quote; ``gone`` where the catalogue has it no more, or not this version."""

    title: str
    url: str
    kind: str = ""
    gone: str = ""


@dataclass(frozen=True)
class View:
    """One side of an item, or its whole: a heading, facts about it as (label, text), quotes, sources.

    ``conditions``: of a value, as (code, text).
    """

    heading: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    source: Source | None = None
    others: list[Source] = field(default_factory=list)
    conditions: list[tuple[str, str]] = field(default_factory=list)


def passage(text: str, start: int, end: int, label: str = "", relation: str = "") -> Passage:
    """A span of a text with what stands around it."""
    before, after = max(0, start - _ROOM), min(len(text), end + _ROOM)
    return Passage(
        ("…" if before else "") + _BLANK_LINES.sub("\n", text[before:start]), text[start:end],
        _BLANK_LINES.sub("\n", text[end:after]) + ("…" if after < len(text) else ""), label, relation,
    )  # fmt: skip


def parts(text: str, wanted: set[str]) -> list[tuple[str, bool]]:
    """A text cut where one of the wanted words stands: (piece, whether it is one of them)."""
    if not wanted:
        return [(text, False)]
    found = re.split(
        "(" + "|".join(re.escape(word) for word in sorted(wanted, key=len, reverse=True)) + ")", text
    )
    return [(piece, piece in wanted) for piece in found if piece]


def source(session: Session, document_id: str) -> Source:
    """A document's title and address."""
    document = session.get(Document, document_id)
    if document is None:
        return Source(document_id[:12], "", gone="document_gone")
    gone = "" if document.state in ("kept", "duplicate") else "document_gone"
    return Source(document.title or document.url, document.url, document.kind, gone)


# --- documents ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DocumentView:
    """A document with its text cut at what the rules named in their reason."""

    document: Document
    text: list[tuple[str, bool]]
    cut: int
    steps: list[LedgerRow]
    failures: list[Failure]


def document_view(session: Session, document: Document) -> DocumentView:
    """A document as the rules left it."""
    text = document.text or document.cleaned_text
    named = set(_CAS.findall(document.detail)) & set(_CAS.findall(text))
    rows = select(LedgerRow).where(LedgerRow.item_id.in_((document.document_id, document.page_id)))
    failures = select(Failure).where(Failure.item_id == document.document_id, Failure.resolved_run.is_(None))
    return DocumentView(
        document, parts(text[:_LONGEST], named), max(0, len(text) - _LONGEST),
        list(session.scalars(rows.order_by(LedgerRow.step))), list(session.scalars(failures.order_by(Failure.step))),
    )  # fmt: skip


# --- pairs of names -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseView:
    """An entry of the review list. ``solution``: (name, key of what is dissolved) where that can be the answer."""

    row: EntityDecision
    sides: list[View]
    can_be_decided: bool
    solution: tuple[str, str] | None


def case_view(session: Session, row: EntityDecision) -> CaseView:
    """Both sides with their names, numbers and what their documents state under the name."""
    detail = row.detail or {}
    if "left" not in detail:
        return CaseView(row, [View(row.left_key), View(row.right_key)], False, None)
    sides = [Side.of(detail["left"]), Side.of(detail["right"])]
    documents = [*detail.get("documents", ()), "", ""]
    views = [_side_view(session, side, documents[at]) for at, side in enumerate(sides)]
    decidable = not detail.get("of")
    solution = solution_target(session, [(side.key, side.name) for side in sides]) if decidable else None
    return CaseView(row, views, decidable, solution)


def _side_view(session: Session, side: Side, document_id: str) -> View:
    entity = session.get(Entity, side.key) if side.key else None
    cas = side.key if valid_cas(side.key) else str((entity.properties if entity else {}).get("cas", ""))
    aliases = session.scalars(
        select(EntityAlias.text)
        .where(EntityAlias.key == side.key)
        .order_by(EntityAlias.text)
        .limit(_MOST_NAMES + 1)
    ).all()
    facts = [("cas", cas or "–")]
    if side.key and side.key != cas:
        facts.append(("key", side.key))
    if entity is not None and entity.names:
        facts.append(("called", entity_name(session, side.key)))
    shown = "; ".join(aliases[:_MOST_NAMES]) + (" …" if len(aliases) > _MOST_NAMES else "")
    if aliases:
        facts.append(("names", shown))
    place = document_id or side.document or _any_document(session, side)
    passages: list[Passage] = []
    document = session.get(Document, place) if place else None
    if document is not None:
        rows = session.scalars(
            select(Assertion)
            .where(Assertion.document_id == place, Assertion.subject == side.name, Assertion.state == "kept")
            .order_by(Assertion.start, Assertion.assertion_id)
        )
        seen: set[tuple[int, int]] = set()
        for stated in rows:
            if (stated.start, stated.end) not in seen and len(passages) < _MOST_QUOTES:
                seen.add((stated.start, stated.end))
                passages.append(_quoted(document, stated))
    return View(side.name, facts, passages, source(session, place) if place else None)


def _any_document(session: Session, side: Side) -> str:
    """A document that states something of a side whose own document is not on record; "" for none."""
    query = select(Assertion.document_id).where(
        Assertion.subject_key == side.key, Assertion.subject == side.name, Assertion.state == "kept"
    )
    return session.scalar(query.order_by(Assertion.document_id).limit(1)) or "" if side.key else ""


def _quoted(document: Document, stated: Assertion) -> Passage:
    label, relation = stated.object, stated.relation
    if document.version_id == stated.version_id:
        return passage(document.text, stated.start, stated.end, label, relation)
    return Passage("", stated.quote, "", label, relation)


# --- disagreements ---------------------------------------------------------------------------------


def conflict_views(session: Session, finding: Finding) -> dict[str, View]:
    """Both values with units, conditions, sources and the words of each source."""
    return {side: _value_view(session, stated) for side, stated in sides_of(finding).items()}


def _value_view(session: Session, side: Stated) -> View:
    facts = [("si", side.in_si)] if side.in_si else []
    if side.page_quote and side.page_quote != side.quote:
        facts.append(("page_quote", side.page_quote))
    document = session.get(Document, side.document)
    stated = session.get(Assertion, side.assertion)
    shown = [_quoted(document, stated)] if document is not None and stated is not None else []
    passages = [Passage(p.before, p.quote, p.after) for p in shown] or [Passage("", side.quote, "")]
    others = [source(session, other) for other in side.others[:_MOST_QUOTES]]
    conditions = [(name, str(text)) for name, text in sorted(side.conditions.items())]
    place = Source(side.title or side.url, side.url, side.kind)
    return View(side.words, facts, passages, place, others, conditions)


# --- questions ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionView:
    """A question, what is wrong with it (reason, particulars), and what it rested on."""

    question: Question
    problems: list[tuple[str, str]]
    evidence: list[View]


def question_view(session: Session, question: Question) -> QuestionView:
    """A question with the passages that it rested on, in their place where that is still there."""
    found = next(iter(stale_questions(session, [question.question_id])), None)
    problems = []
    for reason, particulars in found.problems if found is not None else ():
        named = session.get(Document, particulars) if reason.startswith("document") else None
        problems.append((reason, f"{named.title or named.url}" if named is not None else particulars))
    evidence = []
    for reference in question.references:
        document = session.get(Document, reference["document_id"])
        present = document is not None and document.version_id == reference["version_id"]
        shown = (
            passage(document.text, reference["start"], reference["end"])
            if document is not None and present
            else Passage("", str(reference["quote"]), "")
        )
        place = source(session, reference["document_id"])
        gone = place.gone or ("" if present else "document_changed")
        evidence.append(
            View(
                "",
                [],
                [shown],
                Source(place.title, place.url or str(reference.get("url", "")), place.kind, gone),
            )
        )
    return QuestionView(question, problems, evidence)

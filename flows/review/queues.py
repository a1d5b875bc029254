"""What waits for a person, by queue: documents, pairs of names, disagreements, stale questions, failed steps.

Lists are queries with a limit, or are computed once for a state of the catalogue and
kept: every row of the ledger that a run writes makes another state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Select, String, and_, case, cast, func, or_, select
from sqlalchemy.orm import Session

from corpus import reviews
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, LedgerRow, Question, ReviewDecision
from corpus.curating.decided import DecidedStep
from corpus.curating.records import CLEAN, REFINE, SCORE
from corpus.stages import StageContext, Step, needs_work
from flows.parameters import STAGES
from flows.review import naming
from flows.review.words import LANGUAGES, Language
from kg.conflicts import Finding, find
from kg.decided import (
    DroppedQuestionsStep,
    OverruleStep,
    Stale,
    conflict_key,
    settled,
    slices,
    stale_questions,
)
from kg.decisions import entity_name, review_rows, waiting
from kg.settings import ExtractionSettings

PAGE_SIZE = 50
QUEUES = ("documents", "identity", "conflicts", "questions", "work")
T = TypeVar("T")
_PATIENCE = 10  # what took n seconds to compute is shown for that many times n


@dataclass(frozen=True)
class Entry:
    """A row of a list: its item's id, what it is called, what is said of it."""

    id: str
    title: str
    state: str = ""
    reason: str = ""
    said: str = ""
    source: str = ""


@dataclass(frozen=True)
class Listing:
    """A page of a list. ``kinds``: (state or reason, how many) to narrow it by."""

    rows: list[Entry]
    total: int
    page: int
    kinds: list[tuple[str, int]] = field(default_factory=list)
    seconds_old: float = 0.0

    @property
    def pages(self) -> int:
        """How many there are, at least one."""
        return max(1, -(-self.total // PAGE_SIZE))


@dataclass(frozen=True)
class Wanted:
    """What of a queue is asked for: words, a kind, which page, in which language values are told."""

    words: str = ""
    kind: str = ""
    page: int = 1
    language: Language = "en"


class Kept(Generic[T]):
    """Something computed from the catalogue, computed again when a run has written since."""

    def __init__(self, make: Callable[[Session], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._state: tuple[Any, ...] | None = None
        self._value: T | None = None
        self._made_at = self._took = 0.0

    def get(self, session: Session) -> T:
        """The value; that of an earlier state while a run writes and computing takes long."""
        state = tuple(session.execute(select(func.count(), func.max(LedgerRow.updated_at))).one())
        with self._lock:
            recent = time.monotonic() - self._made_at < _PATIENCE * self._took
            if self._value is None or (state != self._state and not recent):
                began = time.monotonic()
                self._value = self._make(session)
                self._state, self._made_at = state, time.monotonic()
                self._took = self._made_at - began
            return self._value

    @property
    def age(self) -> float:
        """Seconds since it was computed."""
        return time.monotonic() - self._made_at


# --- documents ---------------------------------------------------------------------------

_DECIDED = select(ReviewDecision.item_id).where(
    ReviewDecision.queue == "documents", ReviewDecision.state == reviews.STANDING
)
_ASKED_AGAIN = select(LedgerRow.item_id).where(
    LedgerRow.step.in_((CLEAN, SCORE, REFINE)), LedgerRow.fingerprint == ""
)
_QUARANTINED = (
    Document.state.in_(("review", "failed", "rejected")),
    Document.kind != "reference",
    Document.reason != reviews.PERSON,
    Document.document_id.not_in(_DECIDED),
    Document.document_id.not_in(_ASKED_AGAIN),
)
_ORDER = case({"review": 0, "failed": 1}, value=Document.state, else_=2)


def documents(session: Session, wanted: Wanted) -> Listing:
    """Documents that rules stopped: those for review first, then failed, then rejected ones."""
    where: list[ColumnElement[bool]] = list(_QUARANTINED)
    if wanted.words:
        columns = (Document.title, Document.url, Document.reason, Document.detail, Document.source)
        found = or_(*(column.icontains(wanted.words, autoescape=True) for column in columns))
        where.append(or_(found, Document.document_id.startswith(wanted.words, autoescape=True)))
    kinds = session.execute(
        select(Document.state, Document.reason, func.count())
        .where(*where)
        .group_by(Document.state, Document.reason)
    ).all()
    if wanted.kind:
        state, _, reason = wanted.kind.partition(":")
        where += [Document.state == state, Document.reason == reason]
    shown = (
        Document.document_id,
        Document.title,
        Document.url,
        Document.state,
        Document.reason,
        Document.detail,
    )
    query = select(*shown, Document.source).where(*where).order_by(_ORDER, Document.document_id)
    rows, total = _paged(session, query, wanted.page)
    return Listing(
        [Entry(r.document_id, r.title or r.url, r.state, r.reason, r.detail[:300], r.source) for r in rows],
        total, wanted.page, sorted((f"{state}:{reason}", n) for state, reason, n in kinds),
    )  # fmt: skip


def _paged(session: Session, query: Select[*tuple[Any, ...]], page: int) -> tuple[Sequence[Any], int]:
    total = session.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
    return session.execute(query.limit(PAGE_SIZE).offset((page - 1) * PAGE_SIZE)).all(), total


# --- pairs of names ------------------------------------------------------------------------


def identity(session: Session, wanted: Wanted) -> Listing:
    """Open entries of the review list of identity, decisions that could not be applied among them."""
    rows = review_rows(session)
    if wanted.words:
        words = wanted.words.casefold()
        rows = [r for r in rows if words in f"{r.left_key} {r.right_key} {r.why} {r.decision_id}".casefold()]
    return _cut(
        [Entry(r.decision_id, f"{r.left_key} | {r.right_key}", "", r.rule, r.why[:300]) for r in rows], wanted
    )


def _cut(rows: list[Entry], wanted: Wanted, seconds_old: float = 0.0) -> Listing:
    """A page of a list that is in memory, narrowed by kind."""
    kinds: dict[str, int] = {}
    for row in rows:
        kinds[row.reason] = kinds.get(row.reason, 0) + 1
    if wanted.kind:
        rows = [row for row in rows if row.reason == wanted.kind]
    start = (wanted.page - 1) * PAGE_SIZE
    return Listing(
        rows[start : start + PAGE_SIZE], len(rows), wanted.page, sorted(kinds.items()), seconds_old
    )


# --- disagreements and questions ---------------------------------------------------------------


class Computed:
    """The two lists that take computing: values that disagree, and questions without their evidence."""

    def __init__(self, extraction: ExtractionSettings) -> None:
        self._found = Kept(lambda session: self._find(session, extraction))
        self._stale = Kept(lambda session: list(stale_questions(session)))

    @staticmethod
    def _find(session: Session, extraction: ExtractionSettings) -> list[tuple[str, str, Finding]]:
        names: dict[str, str] = {}
        found = []
        for finding in find(session, extraction):
            if finding.subject not in names:
                names[finding.subject] = entity_name(session, finding.subject)
            found.append((conflict_key(finding), names[finding.subject], finding))
        return found

    def disagreements(self, session: Session) -> list[tuple[str, str, Finding]]:
        """(key, name of the substance, finding) of all that nobody has settled."""
        decided = {row.item_id: row for row in reviews.standing(session, "conflicts")}
        return [
            (key, name, finding)
            for key, name, finding in self._found.get(session)
            if key not in decided or not settled(session, finding, decided[key])
        ]

    def conflicts(self, session: Session, wanted: Wanted) -> Listing:
        """Two values of one property that differ beyond its tolerance."""
        rows = []
        for key, name, finding in self.disagreements(session):
            entry = Entry(
                key, f"{name}: {naming.topic(finding.what, wanted.language)}", "", finding.what.split(" ")[0],
                f"{finding.sides}  ({naming.difference(finding, wanted.language)})",
            )  # fmt: skip
            both = " ".join(naming.topic(finding.what, language) for language in LANGUAGES)
            sources = f"{finding.left.title} {finding.right.title} {finding.subject} {both}"
            if wanted.words.casefold() in f"{entry.title} {entry.said} {sources} {key}".casefold():
                rows.append(entry)
        return _cut(rows, wanted, self._found.age)

    def disagreement(self, session: Session, key: str) -> tuple[str, Finding] | None:
        """Name of the substance and finding by key, settled ones included; None where there is none any more."""
        for one, name, finding in self._found.get(session):
            if one == key:
                return name, finding
        return None

    def stale(self, session: Session) -> list[Stale]:
        """Questions without their evidence that nobody decided."""
        decided = {row.item_id for row in reviews.standing(session, "questions")}
        return [entry for entry in self._stale.get(session) if entry.question_id not in decided]

    def questions(self, session: Session, wanted: Wanted) -> Listing:
        """Kept questions whose documents went or changed, or whose facts are stated no more."""
        found = {entry.question_id: entry for entry in self.stale(session)}
        texts: dict[str, str] = {}
        for ids in slices(found):
            query = select(Question.question_id, Question.question).where(Question.question_id.in_(ids))
            texts |= {row.question_id: row.question for row in session.execute(query)}
        rows = [
            Entry(one, texts.get(one, one), "", found[one].problems[0][0], "; ".join(p for _, p in found[one].problems)[:300])
            for one in sorted(found)
        ]  # fmt: skip
        words = wanted.words.casefold()
        rows = [row for row in rows if words in f"{row.title} {row.said} {row.id}".casefold()]
        return _cut(rows, wanted, self._stale.age)


# --- failed steps ------------------------------------------------------------------------------

_FAILED = (
    LedgerRow.state == "failed",
    LedgerRow.fingerprint != "",
    or_(
        LedgerRow.step.not_in((CLEAN, SCORE, REFINE)),
        LedgerRow.item_id.not_in(select(Document.document_id).where(Document.state == "failed")),
    ),
)


def work(session: Session, wanted: Wanted) -> Listing:
    """Items of steps that failed; documents that did are in their own queue."""
    where: list[ColumnElement[bool]] = list(_FAILED)
    if wanted.words:
        columns = (LedgerRow.step, LedgerRow.item_id, LedgerRow.reason, LedgerRow.detail)
        where.append(or_(*(column.icontains(wanted.words, autoescape=True) for column in columns)))
    kinds = session.execute(select(LedgerRow.step, func.count()).where(*where).group_by(LedgerRow.step)).all()
    if wanted.kind:
        where.append(LedgerRow.step == wanted.kind)
    query = (
        select(LedgerRow.step, LedgerRow.item_id, LedgerRow.reason, LedgerRow.detail, Document.title)
        .join(Document, Document.document_id == LedgerRow.item_id, isouter=True)
        .where(*where)
        .order_by(LedgerRow.step, LedgerRow.item_id)
    )
    rows, total = _paged(session, query, wanted.page)
    return Listing(
        [Entry(f"{r.step}/{r.item_id}", r.title or r.item_id, r.step, r.reason, r.detail[:300]) for r in rows],
        total, wanted.page, sorted((step, n) for step, n in kinds),
    )  # fmt: skip


def failed_step(session: Session, step: str, item_id: str) -> LedgerRow | None:
    """The row of a failed item; None where it did not fail, or is asked for again."""
    return session.scalar(
        select(LedgerRow).where(*_FAILED, LedgerRow.step == step, LedgerRow.item_id == item_id)
    )


# --- all of them -----------------------------------------------------------------------------------


def counts(session: Session, computed: Computed) -> dict[str, int]:
    """How many items each queue holds."""
    return {
        "documents": session.scalar(select(func.count()).select_from(Document).where(and_(*_QUARANTINED)))
        or 0,
        "identity": len(review_rows(session)),
        "conflicts": len(computed.disagreements(session)),
        "questions": len(computed.stale(session)),
        "work": session.scalar(select(func.count()).select_from(LedgerRow).where(*_FAILED)) or 0,
    }


def to_apply(catalogue: Catalogue) -> list[str]:
    """Stages that have to run before what people decided is in effect, in order."""
    ctx = StageContext(catalogue, "review")
    steps: tuple[tuple[str, Step], ...] = (
        ("curate", DecidedStep()), ("graph", OverruleStep()), ("questions", DroppedQuestionsStep())
    )  # fmt: skip
    late = []
    with catalogue.reading() as session:
        if waiting(session):
            late.append("graph")
        for stage, step in steps:
            rows = {
                row.item_id: row
                for row in session.scalars(select(LedgerRow).where(LedgerRow.step == step.name))
            }
            items = step.plan(ctx)
            if set(rows) - {item.id for item in items} or any(
                needs_work(rows.get(i.id), i, ctx) for i in items
            ):
                late.append(stage)
        asked = session.scalars(
            select(cast(LedgerRow.step, String))
            .where(LedgerRow.fingerprint == "", LedgerRow.state != "")
            .distinct()
        )
        late += [step.split(".", maxsplit=1)[0] for step in asked if step != "graph.resolve"]
    return [stage for stage in STAGES if stage in late]

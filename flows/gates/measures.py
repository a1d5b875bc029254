"""What a stage left, counted from the catalogue: the values that gates judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import String, and_, cast, func, or_, select
from sqlalchemy.orm import Session as DbSession

from corpus.catalogue.tables import (
    Assertion,
    Chunk,
    Document,
    Evaluation,
    LedgerRow,
    Page,
    Partition,
    Question,
)
from flows.words import counted

if TYPE_CHECKING:
    from flows.runtime import Runtime

_REFUSED = {
    *("robots", "tdm_reserved", "guard", "retry_after"),
    *("http_202", "http_401", "http_403", "http_407", "http_429", "http_451"),  # 202: challenge pages
}
_YES = ("Yes", "是")


@dataclass(frozen=True)
class Measure:
    """A value of a gate. ``scope``: a source, a relation, a method; "": the whole. ``note``: what it rests on.

    ``skipped``: why there is nothing to judge.
    """

    gate: str
    value: float | None
    scope: str = ""
    note: str = ""
    skipped: str = ""


@dataclass(frozen=True)
class Ran:
    """The stage that is measured: of which run, and whether any of its steps had something to do."""

    runtime: Runtime
    run_id: str
    worked: bool


def measured(ran: Ran, stage: str, skip: Iterable[str] = ()) -> list[Measure]:
    """The values of a stage's gates, but those in ``skip`` (off). Reads only."""
    left = set(skip)
    with ran.runtime.catalogue.reading() as db:
        return [
            found
            for name, measure in _MEASURES.get(stage, {}).items()
            if name not in left
            for found in measure(ran, db)
        ]


# --- acquire -----------------------------------------------------------------


def _crawled(ran: Ran, db: DbSession) -> list[LedgerRow]:
    query = select(LedgerRow).where(LedgerRow.step == "acquire.crawl", LedgerRow.run_id == ran.run_id)
    return sorted(db.scalars(query), key=lambda row: row.item_id)


def _outcomes(counts: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """(state, reason) → pages, of what a crawl counted as "state:reason:role"."""
    found: Counter[tuple[str, str]] = Counter()
    for key, n in counts.items():
        state, _, rest = key.partition(":")
        if state in ("kept", "failed", "excluded", "gone"):
            found[state, rest.partition(":")[0]] += int(n)
    return found


def _crawl_empty(ran: Ran, db: DbSession) -> Iterable[Measure]:
    for row in _crawled(ran, db):
        kept = sum(n for (state, _), n in _outcomes(row.counts).items() if state == "kept")
        yield Measure("crawl_empty", kept, row.item_id, "" if row.state == "kept" else row.reason)


def _crawl_refused(ran: Ran, db: DbSession) -> Iterable[Measure]:
    least = ran.runtime.settings.gates.least_asked
    for row in _crawled(ran, db):
        outcomes = _outcomes(row.counts)
        refused = {reason: n for (_, reason), n in sorted(outcomes.items()) if reason in _REFUSED}
        asked = sum(n for (state, reason), n in outcomes.items() if state != "excluded" or reason in _REFUSED)
        if row.state != "kept":
            yield Measure("crawl_refused", None, row.item_id, skipped=f"the crawl failed: {row.reason}")
        elif asked < least:
            yield Measure(
                "crawl_refused", None, row.item_id, skipped=f"only {counted(asked, 'page')} asked for"
            )
        else:
            why = ", ".join(f"{reason} {n}" for reason, n in refused.items())
            note = f"of {counted(asked, 'page')}" + (f": {why}" if why else "")
            yield Measure("crawl_refused", sum(refused.values()) / asked, row.item_id, note)


def _pages(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    query = (
        select(Page.source, func.count())
        .where(Page.state == "kept", Page.role == "content")
        .group_by(Page.source)
    )
    return _by_source("pages_drop", db.execute(query).all())


def _by_source(gate: str, rows: Iterable[Any]) -> list[Measure]:
    by_source = {str(source): int(n) for source, n in rows}
    whole = Measure(gate, sum(by_source.values()))
    return [whole, *(Measure(gate, n, source) for source, n in sorted(by_source.items()))]


# --- curate ------------------------------------------------------------------


def _documents(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    query = (
        select(Document.source, func.count())
        .where(Document.kind != "reference", Document.state == "kept")
        .group_by(Document.source)
    )
    return _by_source("documents_drop", db.execute(query).all())


def _documents_held(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    query = select(Document.state, func.count()).where(Document.kind != "reference").group_by(Document.state)
    states = {str(state): int(n) for state, n in db.execute(query)}
    total = sum(states.values())
    held = {state: states[state] for state in ("review", "failed") if states.get(state)}
    if not total:
        return [Measure("documents_held", None, skipped="no documents")]
    note = ", ".join(f"{state} {n}" for state, n in held.items())
    return [
        Measure(
            "documents_held", sum(held.values()) / total, note=f"of {total}" + (f": {note}" if note else "")
        )
    ]


def _refinements(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    kept = (Document.kind != "reference", Document.state == "kept")
    total = int(db.scalar(select(func.count()).where(*kept)) or 0)
    if not total:
        return [Measure("refinements_refused", None, skipped="no documents kept")]
    refused = int(
        db.scalar(
            select(func.count()).where(
                *kept, cast(Document.flags, String).contains('"unrefined"', autoescape=True)
            )
        )
        or 0
    )
    return [Measure("refinements_refused", refused / total, note=f"{refused} of {total}")]


# --- graph -------------------------------------------------------------------


def _assertions(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    n = db.scalar(select(func.count()).select_from(Assertion).where(Assertion.state == "kept"))
    return [Measure("assertions_drop", int(n or 0))]


def _conflicts(ran: Ran, db: DbSession) -> Iterable[Measure]:
    from kg.conflicts import find

    if not ran.worked:  # comparing takes longer than counting
        return [Measure("conflicts_rise", None, skipped="nothing new in the graph")]
    found = sum(1 for _ in find(db, ran.runtime.settings.extraction))
    return [Measure("conflicts_rise", found)]


# --- questions -----------------------------------------------------------------


def _questions(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    n = db.scalar(select(func.count()).select_from(Question).where(Question.state == "kept"))
    return [Measure("questions_drop", int(n or 0))]


def _proofs(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    from kg.qa.verification import Reason

    failed = Question.reason == Reason.PROOF_DIFFERS.value
    return [Measure("proofs_failed", int(db.scalar(select(func.count()).where(failed)) or 0))]


def _booleans(ran: Ran, db: DbSession) -> Iterable[Measure]:
    least = ran.runtime.settings.gates.least_booleans
    query = (
        select(Question.metapath, Question.answer, func.count())
        .where(Question.kind == "boolean", Question.state == "kept")
        .group_by(Question.metapath, Question.answer)
    )
    relations: dict[str, Counter[bool]] = defaultdict(Counter)
    for metapath, answer, n in db.execute(query):
        relations[_relation(metapath)][answer in _YES] += int(n)
    for relation, answers in sorted(relations.items()):
        total = answers.total()
        if total < least:
            told = f"only {counted(total, 'Boolean question')}"
            yield Measure("boolean_balance", None, relation, skipped=told)
        else:
            note = f"{answers[True]} yes, {answers[False]} no"
            yield Measure("boolean_balance", answers[True] / total, relation, note)


def _relation(metapath: str) -> str:
    """``HAS_H`` of ``Mixture-HAS_H->HazardStatement``."""
    return metapath.partition("-")[2].partition("->")[0] or metapath[:64]


# --- chunks and evaluation -------------------------------------------------------


def _untiled(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    """Partitions of present versions whose leaves leave a gap, overlap, or do not reach both ends."""
    before = func.lag(Chunk.end).over(partition_by=Chunk.partition_id, order_by=(Chunk.start, Chunk.end))
    leaves = (
        select(
            Chunk.partition_id.label("id"),
            Chunk.start.label("start"),
            Chunk.end.label("end"),
            before.label("before"),
        )
        .where(Chunk.leaf)
        .subquery()
    )
    torn = select(leaves.c.id).where(
        or_(
            and_(leaves.c.before.is_(None), leaves.c.start != 0),
            and_(leaves.c.before.is_not(None), leaves.c.start != leaves.c.before),
        )
    )
    reach = (
        select(leaves.c.id.label("id"), func.max(leaves.c.end).label("end")).group_by(leaves.c.id).subquery()
    )
    present = (
        select(Partition.partition_id)
        .join(
            Document,
            and_(Document.document_id == Partition.document_id, Document.version_id == Partition.version_id),
        )
        .outerjoin(reach, reach.c.id == Partition.partition_id)
    )
    short = present.where(func.coalesce(reach.c.end, 0) != func.length(Document.text))
    query = select(func.count()).select_from(
        present.where(Partition.partition_id.in_(torn)).union(short).subquery()
    )
    return [Measure("chunks_untiled", int(db.scalar(query) or 0))]


def _recall(_ran: Ran, db: DbSession) -> Iterable[Measure]:
    query = select(Evaluation).where(Evaluation.table == "main", Evaluation.metric == "evidence_recall")
    rows = sorted(db.scalars(query), key=lambda row: row.method)
    return [
        Measure("evidence_recall_fall", row.value, row.method, f"n = {row.n}")
        for row in rows
        if row.value is not None
    ]


_Measuring = Callable[[Ran, DbSession], Iterable[Measure]]
_MEASURES: dict[str, dict[str, _Measuring]] = {
    "acquire": {"crawl_empty": _crawl_empty, "crawl_refused": _crawl_refused, "pages_drop": _pages},
    "curate": {
        "documents_drop": _documents,
        "documents_held": _documents_held,
        "refinements_refused": _refinements,
    },
    "graph": {"assertions_drop": _assertions, "conflicts_rise": _conflicts},
    "questions": {"questions_drop": _questions, "proofs_failed": _proofs, "boolean_balance": _booleans},
    "chunks": {"chunks_untiled": _untiled},
    "evaluate": {"evidence_recall_fall": _recall},
}

"""What people decide of values that disagree, of questions and of solutions, and the steps that hold runs to it.

A value that a person overruled is stored as rejected, so that graph, questions and exports
are made without it; the page that states it stays as it is. A decision names statements by
what they say and where, not by version: a page that changes elsewhere keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from corpus import reviews
from corpus.catalogue.tables import (
    Assertion,
    Chemical,
    ChemicalName,
    Document,
    EntityDecision,
    LedgerRow,
    Question,
    ReviewDecision,
)
from corpus.chemical_claims import NAME, Claims
from corpus.chemicals import ChemicalRecord, Name, store_records
from corpus.errors import SettingsError
from corpus.ids import canonical_json, digest, fingerprint
from corpus.name_sources import USER
from corpus.names import normalise_name
from corpus.stages import BaseStep, Item, Outcome, StageContext
from kg import decisions
from kg.conflicts import Finding, Stated
from kg.extraction.context import language_of
from kg.qa.step import ITEM as QUESTIONS_ITEM
from kg.steps import EXTRACT, REFERENCE

OVERRULE, DROP_QUESTIONS = "graph.overrule", "questions.decided"
QUESTIONS = "questions.generate"
OVERRULED = "overruled"  # the reason of an assertion
LEFT, RIGHT, BOTH, NONE = "left", "right", "both", "none"
VERDICTS = (LEFT, RIGHT, BOTH, NONE)
DROP, REMAKE = "drop", "remake"
SOLUTION = "solution_of"
_VALUE = ("operator", "min", "max", "unit", "text", "si")
_SLICE = 400
_QUESTIONS_AT_ONCE = 1000


def slices(ids: Iterable[str]) -> Iterator[list[str]]:
    """Ids in order, as many at a time as a statement takes."""
    listed = sorted(set(ids))
    for at in range(0, len(listed), _SLICE):
        yield listed[at : at + _SLICE]


# --- values that disagree ------------------------------------------------------------


def statement_key(row: Assertion) -> str:
    """What a document states, whatever version of it: its words for the subject, relation, value, conditions."""
    properties = {name: value for name, value in row.properties.items() if name != "comparison"}
    said = [properties, dict(row.value), dict(row.conditions)]
    return digest(
        "statement", row.document_id, row.subject, row.relation, row.object_label, row.polarity, canonical_json(said)
    )  # fmt: skip


def conflict_key(finding: Finding) -> str:
    """A disagreement by substance, property, conditions and the two values, whoever states them."""
    sides = sorted(canonical_json(_bare(side.value)) for side in (finding.left, finding.right))
    topic = [finding.subject, finding.what, dict(finding.detail), dict(finding.conditions)]
    return digest("disagreement", canonical_json(topic), *sides)


def _bare(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in _VALUE if name in value}


def statements(session: Session, side: Stated) -> dict[str, str]:
    """Statement key → document of all that state a side's value, the further documents included."""
    first = session.get(Assertion, side.assertion)
    if first is None:
        return {}
    found = {statement_key(first): first.document_id}
    topic = _topic(first)
    for ids in slices(side.others):
        query = select(Assertion).where(
            Assertion.document_id.in_(ids), Assertion.state == "kept", Assertion.subject_key == first.subject_key,
            Assertion.object_label == first.object_label, Assertion.polarity == first.polarity,
        )  # fmt: skip
        for row in session.scalars(query):
            if _bare(row.value) == _bare(first.value) and _topic(row) == topic:
                found[statement_key(row)] = row.document_id
    return found


def _topic(row: Assertion) -> str:
    return canonical_json({k: v for k, v in row.properties.items() if k != "comparison"})


def overruled_of(row: ReviewDecision) -> dict[str, str]:
    """Statement key → document of what a decision overrules."""
    losing = {LEFT: (RIGHT,), RIGHT: (LEFT,), NONE: (LEFT, RIGHT)}.get(row.choice, ())
    return {key: document for side in losing for key, document in row.detail[side]["statements"].items()}


def settled(session: Session, finding: Finding, row: ReviewDecision | None) -> bool:
    """Whether a standing decision covers a disagreement, all that state the losing value included."""
    if row is None or row.state != reviews.STANDING:
        return False
    if row.choice == BOTH:
        return True
    shown = sides_of(finding)
    losing = {LEFT: (RIGHT,), RIGHT: (LEFT,), NONE: (LEFT, RIGHT)}[row.choice]
    named = overruled_of(row)
    return all(set(statements(session, shown[side])) <= set(named) for side in losing)


def sides_of(finding: Finding) -> dict[str, Stated]:
    """Left and right in an order that hangs on the values alone, so that an answer means the same each time."""
    pair = sorted((finding.left, finding.right), key=lambda side: canonical_json(_bare(side.value)))
    return {LEFT: pair[0], RIGHT: pair[1]}


class ContradictionError(SettingsError):
    """A decision overrules a value that another one lets stand, or the reverse. ``rows``: those decisions."""

    def __init__(self, rows: Sequence[ReviewDecision]) -> None:
        told = "; ".join(
            f"{row.decided_by} decided {row.choice} ({row.decision_id[:12]}): {row.why}" for row in rows
        )
        super().__init__(f"this contradicts standing decisions on the same values: {told}")
        self.rows = list(rows)


def _stands(choice: str) -> tuple[str, ...]:
    return {LEFT: (LEFT,), RIGHT: (RIGHT,), BOTH: (LEFT, RIGHT)}.get(choice, ())


def contradicted(session: Session, finding: Finding, choice: str) -> list[ReviewDecision]:
    """Standing decisions on other pairs that let a value stand which a choice overrules, or the reverse, by id."""
    shown = {side: set(statements(session, stated)) for side, stated in sides_of(finding).items()}
    stand = {key for side in _stands(choice) for key in shown[side]}
    fall = {key for side, keys in shown.items() if side not in _stands(choice) for key in keys}
    own = conflict_key(finding)
    return [
        row for row in reviews.standing(session, "conflicts")
        if row.item_id != own
        and (fall & {key for side in _stands(row.choice) for key in row.detail[side]["statements"]}
             or stand & overruled_of(row).keys())
    ]  # fmt: skip


def decide_conflict(
    session: Session, finding: Finding, choice: str, *, why: str, by: str, seen: str = "", name: str = "",
    although: Iterable[str] = (),
) -> ReviewDecision:  # fmt: skip
    """Record which of two values stands: left, right, both or none.

    ``although``: ids of the decisions on other pairs with the same values that this one is known
    to contradict; they stay, and what any of them overrules stays overruled. Takes effect with
    the next ``hchem run graph``. Raises SettingsError for another answer, DecidedError where
    somebody else was first, ContradictionError for a contradiction that ``although`` does not name.
    """
    if choice not in VERDICTS:
        raise SettingsError(f"{choice!r} is no answer; one of {', '.join(VERDICTS)}")
    key = conflict_key(finding)
    last = reviews.latest(session, "conflicts", key)
    earlier = overruled_of(last) if last is not None and last.state == reviews.STANDING else {}
    detail: dict[str, Any] = {"substance": finding.subject, "name": name, "what": finding.what}
    if against := contradicted(session, finding, choice):
        if not {row.decision_id for row in against} <= set(although):
            reviews.cleaned_reason(why, by)  # what is missing is told first
            if last is not None and last.decision_id != seen:
                raise reviews.DecidedError(last)
            raise ContradictionError(against)
        detail["although"] = [row.decision_id for row in against]
    for side, stated in sides_of(finding).items():
        found = statements(session, stated)
        before = (last.detail.get(side) or {}).get("statements", {}) if last is not None and earlier else {}
        detail[side] = {
            "shown": stated.shown, "title": stated.title, "url": stated.url, "statements": {**before, **found},
        }  # fmt: skip
    return reviews.record(
        session, "conflicts", key, choice, why=why, by=by, seen=seen, mark=finding.id, detail=detail
    )


class OverruleStep(BaseStep):
    """Rejects the statements that people overruled, and takes back those that they overrule no more. A barrier."""

    def __init__(self) -> None:
        super().__init__(name=OVERRULE, version="1", batch_size=None)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item where people decided anything, keyed on that and on when the documents were last read."""
        with ctx.catalogue.reading() as session:
            wanted = _overruled(session)
            held = session.scalars(
                select(Assertion.document_id).where(
                    Assertion.state == "rejected", Assertion.reason == OVERRULED
                )
            ).all()
            if not wanted and not held:
                return []
            inputs = sorted(wanted)
            for ids in slices([*wanted.values(), *held]):
                query = select(LedgerRow.item_id, LedgerRow.step, LedgerRow.updated_at).where(
                    LedgerRow.step.in_((EXTRACT, REFERENCE)), LedgerRow.item_id.in_(ids)
                )
                inputs += sorted(
                    f"{row.item_id}|{row.updated_at.isoformat()}" for row in session.execute(query)
                )
        return [Item("values", fingerprint(self.name, self.version, inputs))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Compare the documents' statements with what people overruled."""
        with ctx.catalogue.reading() as session:
            wanted = _overruled(session)
            documents = {*wanted.values()} | set(
                session.scalars(select(Assertion.document_id).where(Assertion.reason == OVERRULED).distinct())
            )
            reject, restore = [], []
            for ids in slices(documents):
                for row in session.scalars(select(Assertion).where(Assertion.document_id.in_(ids))):
                    named = statement_key(row) in wanted
                    if named and row.state == "kept":
                        reject.append(row.assertion_id)
                    elif not named and (row.state, row.reason) == ("rejected", OVERRULED):
                        restore.append(row.assertion_id)

        def write(db: Session) -> None:
            for ids in slices(reject):
                db.execute(
                    update(Assertion)
                    .where(Assertion.assertion_id.in_(ids))
                    .values(state="rejected", reason=OVERRULED)
                )
            for ids in slices(restore):
                db.execute(
                    update(Assertion).where(Assertion.assertion_id.in_(ids)).values(state="kept", reason="")
                )

        counts = {"overruled": len(reject), "overruled no more": len(restore)}
        return Outcome(write=write, counts={name: n for name, n in counts.items() if n})


def _overruled(session: Session) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in reviews.standing(session, "conflicts", (LEFT, RIGHT, NONE)):
        found |= overruled_of(row)
    return found


# --- questions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Stale:
    """A kept question that its evidence no longer carries. ``problems``: (reason, particulars)."""

    question_id: str
    problems: tuple[tuple[str, str], ...]


def stale_questions(session: Session, ids: Sequence[str] = ()) -> Iterator[Stale]:
    """Kept questions whose documents went or changed, or whose facts nobody states any more, in id order.

    ``ids``: only these. Reads a bounded number of questions at a time.
    """
    versions = {
        row.document_id: row.version_id
        for row in session.execute(
            select(Document.document_id, Document.version_id).where(Document.state == "kept")
        )
    }
    last = ""
    while True:
        query = select(Question.question_id, Question.triples, Question.references).where(
            Question.state == "kept", Question.question_id > last
        )
        if ids:
            query = query.where(Question.question_id.in_(ids))
        rows = session.execute(query.order_by(Question.question_id).limit(_QUESTIONS_AT_ONCE)).all()
        if not rows:
            return
        last = rows[-1].question_id
        known = _known(session, {str(t[0]) for row in rows for t in row.triples}, versions)
        for row in rows:
            problems = tuple(_problems(row, versions, known))
            if problems:
                yield Stale(row.question_id, problems)


def _known(session: Session, subjects: Iterable[str], versions: Mapping[str, str]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for keys in slices(subjects):
        query = select(
            Assertion.subject_key, Assertion.relation, Assertion.object_key, Assertion.document_id, Assertion.version_id
        ).where(Assertion.state == "kept", Assertion.subject_key.in_(keys))  # fmt: skip
        found |= {
            (row.subject_key, row.relation, row.object_key)
            for row in session.execute(query)
            if versions.get(row.document_id) == row.version_id
        }
    return found


def _problems(
    row: Any, versions: Mapping[str, str], known: set[tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    for document, version in sorted({(str(r["document_id"]), str(r["version_id"])) for r in row.references}):
        if document not in versions:
            yield "document_gone", document
        elif versions[document] != version:
            yield "document_changed", document
    for triple in row.triples:
        if tuple(triple) not in known:
            yield "fact_gone", " ".join(map(str, triple))


def decide_question(
    session: Session, question_id: str, choice: str, *, why: str, by: str, seen: str = ""
) -> ReviewDecision:
    """Record that a question is dropped (it is not kept again), or is to be made anew.

    Takes effect with the next ``hchem run questions``. Raises SettingsError for a question that is
    gone or another answer, DecidedError where somebody else was first.
    """
    if choice not in (DROP, REMAKE):
        raise SettingsError(f"{choice!r} is no answer; one of {DROP}, {REMAKE}")
    question = session.get(Question, question_id)
    if question is None:
        raise SettingsError(f"question {question_id[:12]} is gone from the catalogue")
    row = reviews.record(
        session, "questions", question_id, choice, why=why, by=by, seen=seen,
        detail={"question": question.question, "answer": question.answer},
    )  # fmt: skip
    if choice == REMAKE:
        session.execute(
            update(LedgerRow)
            .where(LedgerRow.step == QUESTIONS, LedgerRow.item_id == QUESTIONS_ITEM)
            .values(fingerprint="")
        )
    return row


class DroppedQuestionsStep(BaseStep):
    """Rejects the questions that people dropped, in whatever run makes them. A barrier."""

    def __init__(self) -> None:
        super().__init__(name=DROP_QUESTIONS, version="1", batch_size=None)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item where people dropped any, keyed on that and on when questions were last made."""
        with ctx.catalogue.reading() as session:
            dropped = [row.item_id for row in reviews.standing(session, "questions", (DROP,))]
            held = session.scalar(select(Question.question_id).where(*_BY_PERSON).limit(1))
            made = session.get(LedgerRow, (QUESTIONS, QUESTIONS_ITEM))
        if not dropped and held is None:
            return []
        inputs = [*sorted(dropped), made.updated_at.isoformat() if made is not None else ""]
        return [Item("questions", fingerprint(self.name, self.version, inputs))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Only kept questions are dropped; one that people dropped no more is kept again."""
        with ctx.catalogue.reading() as session:
            dropped = {row.item_id for row in reviews.standing(session, "questions", (DROP,))}
            held = set(session.scalars(select(Question.question_id).where(*_BY_PERSON)))

        def write(db: Session) -> None:
            for ids in slices(dropped - held):
                where = (Question.question_id.in_(ids), Question.state == "kept")
                db.execute(update(Question).where(*where).values(state="rejected", reason=reviews.PERSON))
            for ids in slices(held - dropped):
                db.execute(
                    update(Question).where(Question.question_id.in_(ids)).values(state="kept", reason="")
                )

        return Outcome(write=write, counts={"dropped by people": len(dropped)})


_BY_PERSON = (Question.state == "rejected", Question.reason == reviews.PERSON)


# --- solutions ------------------------------------------------------------------------------


def solution_target(session: Session, sides: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """(name of the solution, key of what is dissolved) of two sides (key, name).

    None where not exactly one side is a substance of the name repository, or the other
    side's name is one that the repository knows already.
    """
    keys = [key if key and session.get(Chemical, key) is not None else "" for key, _ in sides]
    if bool(keys[0]) == bool(keys[1]):
        return None
    at = 0 if keys[1] else 1
    name, key = sides[at][1], keys[1 - at]
    rows = session.scalars(select(ChemicalName).where(ChemicalName.normalised == normalise_name(name)[:512]))
    return None if any(row.kind != "solution" or row.key != key for row in rows) else (name, key)


def decide_solution(session: Session, case: str, *, why: str, by: str, seen: str = "") -> ReviewDecision:
    """Answer an entry of the review list: one side is a solution of the other.

    The two are kept apart (``kg.decisions.settle``), and the name repository learns the name as
    that of a solution, so that the next resolve links the two. Raises SettingsError where the
    repository does not know what is dissolved, or ``settle`` refuses.
    """
    made = decisions.settle(session, case, why, by, accept=False)
    target = solution_target(session, [(side.key, side.name) for side in (made.left, made.right)])
    if target is None:
        raise SettingsError(
            "exactly one of the two must be a substance of the name repository, and the other's name be new to it"
        )
    name, key = target
    chemical = session.get_one(Chemical, key)
    record = ChemicalRecord(key=key, cas=chemical.cas, provenance=USER)
    record.names.append(Name(name, language_of(name), "solution", USER))
    new = session.scalar(select(ChemicalName.name_id).where(*_solution_row(name, key))) is None
    store_records(session, [record])
    return reviews.record(
        session, "identity", case, SOLUTION, why=why, by=by, seen=seen,
        detail={"solution": name, "of": key, "decision": made.id, "added": new},
    )  # fmt: skip


def undo_solution(session: Session, decision_id: str, *, why: str, by: str) -> ReviewDecision:
    """Take back that something is a solution: the name leaves the repository, the pair is open again."""
    row = reviews.undo(session, decision_id, why=why, by=by)
    detail = row.detail
    apart = session.get(EntityDecision, detail["decision"])
    if apart is not None and not apart.undone:  # else somebody took that half back already
        decisions.undo(session, apart.decision_id, why, by)
    if detail["added"]:
        key = detail["of"]
        for name in session.scalars(
            select(ChemicalName).where(*_solution_row(detail["solution"], key))
        ).all():
            Claims(session, {key}).drop(key, USER, NAME, name.name_id)
            session.execute(delete(ChemicalName).where(ChemicalName.name_id == name.name_id))
    return row


def _solution_row(name: str, key: str) -> tuple[Any, ...]:
    form = normalise_name(name)[:512]
    return (ChemicalName.normalised == form, ChemicalName.key == key, ChemicalName.kind == "solution")

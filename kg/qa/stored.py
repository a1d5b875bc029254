"""Stored questions: choosing among them, and verifying them again in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, String, cast, func, or_, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, EntityAlias, LedgerRow, Question
from corpus.errors import SettingsError, TerminalError
from corpus.names import normalise_name
from corpus.sections import SdsSection
from kg import queries
from kg.qa.difficulty import LEVELS
from kg.qa.multi_hop import run
from kg.qa.records import KINDS, LANGUAGES, Proof
from kg.store import GraphStore

_PAGE = 2000  # questions verified between two looks at the documents they rest on
_HEAD, _TAIL = queries.single("\0").split("\0")

_CHOICES = {
    "kind": KINDS,
    "language": LANGUAGES,
    "split": ("train", "eval"),
    "state": ("kept", "rejected"),
    "level": LEVELS,
}


@dataclass(frozen=True)
class Selection:
    """Which stored questions are meant; an empty field chooses nothing out.

    ``substance``: a key (CAS number) or a name; ``text``: part of question or
    answer; ``template``: its name without the version.
    """

    kind: str = ""
    language: str = ""
    section: int | None = None
    split: str = ""
    level: str = ""
    substance: str = ""
    template: str = ""
    text: str = ""
    reason: str = ""
    curated: bool = False
    state: str = "kept"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            given = getattr(self, name)
            if given and given not in allowed:
                raise SettingsError(f"unknown {name} {given!r}; one of {', '.join(allowed)}")
        if self.section is not None and self.section not in {s.value for s in SdsSection}:
            raise SettingsError(f"section {self.section} is not one of a data sheet's 1 to 16")

    def query(self, session: Session) -> Select[Question]:
        """Statement in id order. Raises SettingsError where the substance is unknown."""
        where: list[ColumnElement[bool]] = [Question.state == self.state]
        for name in ("kind", "language", "split", "section", "reason"):
            if getattr(self, name):
                where.append(getattr(Question, name) == getattr(self, name))
        if self.curated:
            where.append(Question.curated.is_(True))
        if self.level:
            where.append(Question.difficulty["level"].as_string() == self.level)
        if self.template:
            where.append(Question.template.startswith(f"{self.template}/", autoescape=True))
        if self.text:
            columns = (Question.question, Question.answer)
            where.append(or_(*(column.icontains(self.text, autoescape=True) for column in columns)))
        if self.substance:
            listed = cast(Question.substances, String)
            keys = self._keys(session)
            where.append(or_(*(listed.contains(f'"{key}"', autoescape=True) for key in keys)))
        return select(Question).where(*where).order_by(Question.question_id)

    def _keys(self, session: Session) -> list[str]:
        named = select(EntityAlias.key).where(EntityAlias.normalised == normalise_name(self.substance))
        keys = set(session.scalars(named.distinct()))
        exact = cast(Question.substances, String).contains(f'"{self.substance}"', autoescape=True)
        if session.scalar(select(Question.question_id).where(exact).limit(1)) is not None:
            keys.add(self.substance)
        if not keys:
            raise SettingsError(f"no substance is called {self.substance!r} (hchem entities list)")
        return sorted(keys)


def count(session: Session, selection: Selection) -> int:
    """Number of questions that a selection chooses."""
    chosen = selection.query(session).order_by(None).subquery()
    return session.scalar(select(func.count()).select_from(chosen)) or 0


def not_drawn(session: Session) -> int:
    """How many more questions were possible than were wanted (``questions.at_most``)."""
    from kg.qa.step import ITEM, STEP

    row = session.get(LedgerRow, (STEP, ITEM))
    return int(row.counts.get("not made: not_drawn", 0)) if row is not None else 0


@dataclass(frozen=True)
class Problem:
    """What is wrong with a stored question: a reason to count by, and the particulars."""

    question_id: str
    reason: str
    detail: str


@dataclass
class Verification:
    """Outcome of a verification: questions checked, and every problem found."""

    checked: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Number of questions with a problem."""
        return len({problem.question_id for problem in self.problems})

    @property
    def reasons(self) -> dict[str, int]:
        """Problems by reason."""
        return dict(sorted(Counter(problem.reason for problem in self.problems).items()))


def verify_stored(
    catalogue: Catalogue,
    store: GraphStore,
    selection: Selection | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Verification:
    """Run the proofs of stored questions in UNWIND batches and look up their references.

    ``progress`` is called with questions done and questions in all. Raises
    TransientError where the server is away. A proof that the server refuses is
    a problem of its question, not of the run.
    """
    found = Verification()
    with catalogue.reading() as session:
        selection = selection or Selection()
        total = count(session, selection)
        for rows in _pages(session, selection):
            texts = _texts(session, rows)
            for row, answers in zip(rows, _answers(store, rows), strict=True):
                found.problems += _problems(row, answers, texts)
            found.checked += len(rows)
            progress(found.checked, total)
            session.expunge_all()
    return found


def _pages(session: Session, selection: Selection) -> Iterator[list[Question]]:
    last = ""
    while True:
        query = selection.query(session).where(Question.question_id > last).limit(_PAGE)
        rows = list(session.scalars(query))
        if not rows:
            return
        last = rows[-1].question_id
        yield rows


def _texts(session: Session, rows: Sequence[Question]) -> dict[str, tuple[str, str]]:
    ids = sorted({str(r["document_id"]) for row in rows for r in row.references})
    found: dict[str, tuple[str, str]] = {}
    for at in range(0, len(ids), 500):
        query = select(Document.document_id, Document.version_id, Document.text)
        for document in session.execute(query.where(Document.document_id.in_(ids[at : at + 500]))):
            found[document.document_id] = (document.version_id, document.text)
    return found


Answers = tuple[Any, ...] | str


def _answers(store: GraphStore, rows: Sequence[Question]) -> list[Answers]:
    """What each proof returns now, sorted; text says why it could not be run."""
    bodies = [body_of(row.proof.get("cypher", "")) for row in rows]
    batched: dict[str, list[int]] = {}
    found: list[Answers] = [()] * len(rows)
    for at, body in enumerate(bodies):
        if body is None:
            found[at] = _alone(store, rows[at].proof)
        else:
            batched.setdefault(body, []).append(at)
    for body, members in batched.items():
        proofs = [Proof(body, rows[at].proof["parameters"]["q"]) for at in members]
        try:
            together: list[Answers] = list(run(store, proofs))
        except (TerminalError, KeyError):  # one of them is at fault: it is told from the others
            together = [_alone(store, rows[at].proof) for at in members]
        for at, answers in zip(members, together, strict=True):
            found[at] = answers
    return found


def body_of(cypher: str) -> str | None:
    """The part of a stored proof that also runs for many parameters at once; None for a query of another form."""
    if not cypher.startswith(_HEAD) or not cypher.endswith(_TAIL):
        return None
    return cypher[len(_HEAD) : -len(_TAIL)]


def _alone(store: GraphStore, proof: dict[str, Any]) -> Answers:
    try:
        return stored_answers(store, proof)
    except (TerminalError, KeyError) as error:
        return " ".join(str(error).split())


def stored_answers(store: GraphStore, proof: dict[str, Any]) -> tuple[Any, ...]:
    """What a stored proof returns when it is run alone, as written, sorted."""
    return _sorted(row["answer"] for row in store.read(proof["cypher"], **proof["parameters"]))


def _problems(row: Question, answers: Answers, texts: dict[str, tuple[str, str]]) -> Iterator[Problem]:
    stated = _sorted(item["key"] for item in row.answer_set)
    if isinstance(answers, str):
        yield Problem(row.question_id, "proof_cannot_be_run", answers)
    elif _sorted(answers) != stated:
        detail = f"the proof returns {list(answers)}, stated is {list(stated)}"
        yield Problem(row.question_id, "proof_gives_other_answers", detail)
    if not row.references:
        yield Problem(row.question_id, "no_reference", "it rests on no evidence")
    for reference in row.references:
        place = f"{reference['start']}:{reference['end']} of document {reference['document_id']}"
        document = texts.get(reference["document_id"])
        if document is None:
            yield Problem(row.question_id, "document_gone", place)
        elif document[0] != reference["version_id"]:
            yield Problem(row.question_id, "document_changed", place)
        elif document[1][reference["start"] : reference["end"]] != reference["quote"]:
            yield Problem(row.question_id, "reference_not_in_document", place)


def _sorted(answers: Any) -> tuple[Any, ...]:
    return tuple(sorted(answers, key=lambda answer: (str(type(answer)), answer)))

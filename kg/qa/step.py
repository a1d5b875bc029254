"""The step of the ``questions`` stage: a barrier over the graph's snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import GraphSnapshot, LedgerRow, Question
from corpus.errors import TerminalError
from corpus.ids import fingerprint
from corpus.stages import BaseStep, Item, Outcome, StageContext
from kg.graph_settings import QuestionSettings
from kg.qa.difficulty import features
from kg.qa.facts import load_facts
from kg.qa.generate import GENERATOR_VERSION, Generated, generate
from kg.qa.records import Judged
from kg.qa.reword import RewordQuestion
from kg.qa.wording import TEMPLATE_VERSION
from kg.store import GraphHandle
from models import Models

STEP = "questions.generate"
ITEM = "questions"
_WRITE_BATCH = 1000


class QuestionsStep(BaseStep):
    """Make and verify all questions of the present snapshot; replaces those of an earlier one."""

    def __init__(self, handle: GraphHandle, settings: QuestionSettings, models: Models) -> None:
        super().__init__(name=STEP, version=f"{GENERATOR_VERSION}.{TEMPLATE_VERSION}", batch_size=None)
        self.handle = handle
        self.settings = settings
        self.models = models

    @property
    def concurrency(self) -> int:
        """Above 1 where a model is waited for: the questions of the one item are reworded at once."""
        return self.models.concurrency(RewordQuestion.name)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item, keyed on the graph's content, templates, settings and the rewording model."""
        with ctx.catalogue.reading() as session:
            snapshot = snapshot_id(session)
        if snapshot is None:
            return []
        mark = fingerprint(
            self.name, self.version, [snapshot], self.settings.model_dump(mode="json"),
            self.models.identity(RewordQuestion()),
        )  # fmt: skip
        return [Item(ITEM, mark)]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Generate, verify, store. Raises TerminalError where the graph is not the snapshot."""
        store = self.handle.store
        with ctx.catalogue.reading() as session:
            snapshot = snapshot_id(session)
            facts = load_facts(session)
        if snapshot is None or store.content_hash()[0] != snapshot:
            raise TerminalError(
                "the graph does not hold the snapshot that the catalogue names; run `hchem run graph`",
                reason="graph_differs",
            )
        result = generate(facts, store, self.settings, self.models, ctx.cancelled)

        def write(session: Session) -> None:
            session.execute(delete(Question))
            write_questions(session, result.questions, snapshot)

        return Outcome(write=write, counts=_counts(result), detail=snapshot)

    def retire(self, session: Session, item_ids: Any) -> None:
        """No graph, no questions."""
        session.execute(delete(Question))


def _counts(result: Generated) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for judged in result.questions:
        name = judged.candidate.kind if not judged.reason else f"rejected: {judged.reason}"
        counts[name] += 1
    for reason, n in result.dropped.items():
        if n:
            counts[f"not made: {reason}"] += n
    return dict(sorted(counts.items()))


def snapshot_id(session: Session) -> str | None:
    """Id of the snapshot of the last sync, None before the first or while the graph is empty."""
    from kg.stage import SNAPSHOT_ITEM

    row = session.get(LedgerRow, ("graph.snapshot", SNAPSHOT_ITEM))
    if row is None or row.state != "kept":
        return None
    nodes = session.scalar(select(GraphSnapshot.nodes).where(GraphSnapshot.snapshot_id == row.detail))
    return row.detail if nodes else None


def write_questions(session: Session, questions: Sequence[Judged], snapshot: str) -> None:
    """Insert judged questions a part at a time: all their rows together are larger than the questions."""
    for at in range(0, len(questions), _WRITE_BATCH):
        rows = [question_row(judged, snapshot) for judged in questions[at : at + _WRITE_BATCH]]
        session.bulk_insert_mappings(Question.__mapper__, rows)


def question_row(judged: Judged, snapshot: str) -> dict[str, Any]:
    """The catalogue row of a judged question."""
    candidate = judged.candidate
    question = judged.question or candidate.question
    return {
        "question_id": candidate.id,
        "kind": candidate.kind,
        "language": candidate.language,
        "question": question,
        "answer": candidate.answer,
        "answer_set": candidate.answer_set(),
        "triples": [list(triple) for triple in candidate.triples],
        "proof": candidate.proof.as_record(),
        "references": [reference.as_record() for reference in candidate.references],
        "section": candidate.section,
        "metapath": candidate.metapath,
        "hops": candidate.hops,
        "difficulty": features(candidate, question),
        "template": f"{candidate.template}/{TEMPLATE_VERSION}",
        "wording": judged.wording,
        "snapshot_id": snapshot,
        "substances": list(candidate.substances),
        "split": judged.split,
        "curated": judged.curated,
        "state": "rejected" if judged.reason else "kept",
        "reason": str(judged.reason),
    }

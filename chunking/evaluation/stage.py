"""The stage ``evaluate``: vector index per chunk method, then the comparison of the methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from chunking.answering import AnswerQuestion
from chunking.asking import labels
from chunking.evaluation.protocol import (
    EvaluationQuestion,
    MethodResult,
    evaluate_method,
    evaluation_questions,
    setting_of,
)
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.evaluation.studies import completion_rows, lambda_rows, stored_scores, time_rows
from chunking.evaluation.tables import chunk_rows, result_rows
from chunking.index import ChunkVectors, VectorIndex, index_basis, lost_methods
from chunking.records import UNCOMPLETED, chunk_fingerprint, chunk_methods, completing_methods, load_chunks
from chunking.settings import ChunkSettings
from chunking.subjects import Subjects
from corpus.asking import translated
from corpus.catalogue.tables import Evaluation, LedgerRow, Partition
from corpus.ids import canonical_json, digest, fingerprint
from corpus.stages import BaseStep, Item, Outcome, Stage, StageContext
from models.errors import ModelError

if TYPE_CHECKING:
    from models import Models

_ALL = "all"


def evaluate_stage(
    evaluation_settings: EvaluationSettings,
    chunk_settings: ChunkSettings,
    vector_settings: VectorSettings,
    models: Models,
    data_dir: Path,
) -> Stage:
    """Steps ``evaluate.index`` (an item per chunk method) and ``evaluate.score`` (one barrier item)."""
    methods = tuple(chunk_settings.methods)
    index = IndexStep(methods, evaluation_settings, vector_settings, models, data_dir)
    score = ScoreStep(methods, evaluation_settings, vector_settings, models, data_dir)
    return Stage("evaluate", [index, score])


class _EvaluateStep(BaseStep):
    """What both steps rest on. Both are barriers: the embedded index has one user at a time."""

    def __init__(
        self,
        name: str,
        methods: Sequence[str],
        settings: EvaluationSettings,
        vector_settings: VectorSettings,
        models: Models,
        data_dir: Path,
    ) -> None:
        super().__init__(name=name, version="3", batch_size=None)
        self._methods = methods
        self._settings = settings
        self._vector_settings = vector_settings
        self._models = models
        self._data_dir = data_dir
        self._shared: ChunkVectors | None = None

    def _present(self, session: Session) -> list[str]:
        """The methods in force that have chunks, and those that complete chunks once more without that.

        Where neither index nor context reads completed texts there is nothing to tell apart.
        """
        found = [method for method in chunk_methods(session) if method in self._methods]
        if "completed" in (self._settings.index_text, self._settings.context_text):
            found += [method + UNCOMPLETED for method in completing_methods(session, found)]
        return sorted(found)

    def _vectors(self) -> ChunkVectors:
        """Shared by the methods, which have most sentences in common."""
        if self._shared is None:
            form, titles = self._settings.index_text, self._settings.index_title
            self._shared = ChunkVectors(self._models, self._vector_settings, form, titles=titles)
        return self._shared


class IndexStep(_EvaluateStep):
    """Brings the vectors of one chunk method up to date; rebuilds them when the index is gone."""

    def __init__(
        self,
        methods: Sequence[str],
        settings: EvaluationSettings,
        vector_settings: VectorSettings,
        models: Models,
        data_dir: Path,
    ) -> None:
        super().__init__("evaluate.index", methods, settings, vector_settings, models, data_dir)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item per method, keyed on its chunks and on what computes vectors."""
        vectors = self._vectors()
        basis = index_basis(vectors, self._vector_settings)
        with ctx.catalogue.reading() as session:
            present = self._present(session)
            prints = {
                m: fingerprint(self.name, self.version, [chunk_fingerprint(session, m), basis])
                for m in present
            }
            done = {
                row.item_id: row.fingerprint
                for row in session.scalars(select(LedgerRow).where(LedgerRow.step == self.name))
            }
        settled = [method for method in present if done.get(method) in _both(prints[method])]
        lost = (
            lost_methods(self._vector_settings, self._data_dir, vectors.name, settled)
            if settled
            else frozenset()
        )
        return [Item(m, _chosen(prints[m], done.get(m), lost=m in lost)) for m in present]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Embed and send what is new, remove what is gone."""
        with ctx.catalogue.reading() as session:
            chunks = load_chunks(session, item.id)
        try:
            with VectorIndex(self._vector_settings, self._data_dir) as index:
                counts = index.sync(chunks, self._vectors())
        except ModelError as error:
            raise translated(error) from error
        return Outcome(counts={name: value for name, value in counts.items() if value})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Remove the vectors of methods that are no longer there."""
        with VectorIndex(self._vector_settings, self._data_dir) as index:
            index.remove(item_ids)


def _both(base: str) -> tuple[str, str]:
    """An item's two fingerprints: a lost index is told by changing from one to the other."""
    return base, digest("again", base)


def _chosen(base: str, done: str | None, *, lost: bool) -> str:
    """The fingerprint that the ledger has (nothing to do), or the other one where the index is lost."""
    first, second = _both(base)
    if done not in (first, second):
        return first
    if not lost:
        return done or first
    return second if done == first else first


class ScoreStep(_EvaluateStep):
    """Compares the chunk methods on the evaluation questions and replaces the table ``evaluations``."""

    def __init__(
        self,
        methods: Sequence[str],
        settings: EvaluationSettings,
        vector_settings: VectorSettings,
        models: Models,
        data_dir: Path,
    ) -> None:
        super().__init__("evaluate.score", methods, settings, vector_settings, models, data_dir)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item, keyed on questions, chunks, their scores, names of substances, settings, who answers."""
        with ctx.catalogue.reading() as session:
            present = self._present(session)
            if not present:
                return []
            inputs = [f"{method}:{chunk_fingerprint(session, method)}" for method in present]
            inputs += [_scores_fingerprint(session, method) for method in _whole(present)]
            inputs += [question.fingerprint() for question in self._questions(session)]
            inputs.append(Subjects.load(session).fingerprint())
        basis = {
            "settings": self._settings.model_dump(mode="json"),
            "vectors": index_basis(self._vectors(), self._vector_settings),
            "counter": self._models.token_counter_name,
        }
        identity = self._models.identity(AnswerQuestion())
        return [Item(_ALL, fingerprint(self.name, self.version, inputs, basis, identity))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """All tables, method after method."""
        with ctx.catalogue.reading() as session:
            methods = self._present(session)
            questions = self._questions(session)
            subjects = Subjects.load(session)
            rows = chunk_rows(session, _whole(methods), self._models)
            rows += time_rows(session, _whole(methods), self._settings)
            scores = stored_scores(session, _whole(methods))
        try:
            with ctx.catalogue.reading() as session:
                rows += completion_rows(session, self._models, self._settings)
            results = self._results(ctx, methods, questions, subjects) if questions else []
        except ModelError as error:
            raise translated(error) from error
        setting = setting_of(self._settings, self._models, self._vectors().name)
        rows += result_rows(results, questions, self._settings, setting)
        answers = {result.label: result.main["rouge_l"] for result in results}
        rows += lambda_rows(scores, answers, self._settings)
        located = sum(bool(question.evidence) for question in questions)
        counts = {
            "methods": len(labels(methods)),
            "questions": len(questions),
            "located": located,
            "figures": len(rows),
        }
        counts |= _refused(results)

        def write(session: Session) -> None:
            self.retire(session, [_ALL])
            session.add_all(rows)

        if not questions:
            return Outcome(
                "rejected", "no_questions", "no kept evaluation question", write=write, counts=counts
            )
        return Outcome(write=write, counts=counts)

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Remove all figures."""
        session.execute(delete(Evaluation))

    def _questions(self, session: Session) -> list[EvaluationQuestion]:
        return evaluation_questions(session, self._settings.max_questions, self._settings.seed)

    def _results(
        self,
        ctx: StageContext,
        methods: Iterable[str],
        questions: list[EvaluationQuestion],
        subjects: Subjects,
    ) -> list[MethodResult]:
        vectors = self._vectors()
        asked = vectors.questions([question.question for question in questions])
        results: list[MethodResult] = []
        with VectorIndex(self._vector_settings, self._data_dir) as index:
            dense = {
                method: index.search(method, asked, self._settings.top_k, vectors.name) for method in methods
            }
        for done, (method, ranked) in enumerate(dense.items()):
            ctx.progress(self.name, done, len(dense))
            with ctx.catalogue.reading() as session:
                chunks = load_chunks(session, method)
            results += evaluate_method(chunks, questions, ranked, subjects, self._models, self._settings)
        return results


def _whole(methods: Iterable[str]) -> list[str]:
    """Methods that the stage ``chunks`` knows: those without completion have the same chunks."""
    return [method for method in methods if not method.endswith(UNCOMPLETED)]


def _refused(results: Iterable[MethodResult]) -> dict[str, int]:
    """Answers of all methods that failed their check, by reason."""
    total = sum((result.refused for result in results), Counter[str]())
    return {f"answers_refused_{reason}": count for reason, count in sorted(total.items())}


def _scores_fingerprint(session: Session, method: str) -> str:
    query = select(Partition.partition_id, Partition.scores).where(Partition.method == method)
    rows = session.execute(query.order_by(Partition.partition_id))
    return digest(method, *(canonical_json([partition, scores]) for partition, scores in rows))

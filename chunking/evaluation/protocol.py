"""How chunk methods are compared: same questions, ranking, token budget and answerer for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from chunking.answering import AnswerOut, AnswerQuestion
from chunking.asking import MERGED, TREE_METHODS, TitleSubjects, answer_input, build_context
from chunking.evaluation import metrics
from chunking.evaluation.metrics import Region
from chunking.evaluation.settings import EvaluationSettings
from chunking.evaluation.studies import LEVELS, limited
from chunking.hichunk.levels import MAX_LEVEL
from chunking.lexical import LexicalIndex
from chunking.records import ChunkRecord, ChunkSet
from chunking.retrieval import Context, Forest, auto_merge, ranked_by
from chunking.subjects import Subjects
from corpus.catalogue.tables import Document, Question
from corpus.ids import digest
from models.errors import AnswerRejected
from models.skills import Answer

if TYPE_CHECKING:
    from models import Models

log = structlog.get_logger("hchem.evaluation")

EVALUATION_SPLIT = "eval"
_DEPTHS = (1, 5)

Values = list[float | None]


@dataclass(frozen=True)
class EvaluationQuestion:
    """A question with its answer and located evidence (empty where none is in the present texts)."""

    question_id: str
    kind: str
    language: str
    question: str
    answer: str
    evidence: tuple[Region, ...]
    quotes: tuple[str, ...]

    def fingerprint(self) -> str:
        """Content hash of everything that figures rest on."""
        spans = [f"{document}:{start}:{end}" for document, start, end in self.evidence]
        return digest(
            self.question_id, self.kind, self.language, self.question, self.answer, *spans, "/", *self.quotes
        )


def evaluation_questions(session: Session, limit: int, seed: int) -> list[EvaluationQuestion]:
    """Kept evaluation questions (curated, or of the evaluation split), ordered by id.

    Of more than ``limit`` the first in an order by seeded hash are taken.
    References to a version that is no longer present count as not located.
    """
    versions = {
        (document, version)
        for document, version in session.execute(
            select(Document.document_id, Document.version_id).where(Document.state == "kept")
        )
    }
    rows = session.scalars(
        select(Question)
        .where(Question.state == "kept", or_(Question.curated, Question.split == EVALUATION_SPLIT))
        .order_by(Question.question_id)
    )
    found = [_question(row, versions) for row in rows]
    found.sort(key=lambda question: digest("subset", str(seed), question.question_id))
    return sorted(found[:limit], key=lambda question: question.question_id)


def _question(row: Question, versions: set[tuple[str, str]]) -> EvaluationQuestion:
    located = [ref for ref in row.references if (ref["document_id"], ref["version_id"]) in versions]
    return EvaluationQuestion(
        question_id=row.question_id,
        kind=row.kind,
        language=row.language,
        question=row.question,
        answer=row.answer,
        evidence=tuple(sorted((ref["document_id"], int(ref["start"]), int(ref["end"])) for ref in located)),
        quotes=tuple(ref["quote"] for ref in located),
    )


@dataclass
class MethodResult:
    """Values of one method's label, question by question (None: not defined for that question)."""

    label: str
    main: dict[str, Values] = field(default_factory=dict)
    budgets: dict[int, Values] = field(default_factory=dict)
    hits: dict[str, dict[int, Values]] = field(default_factory=dict)
    levels: dict[str, Values] = field(default_factory=dict)
    """Evidence recall by the deepest level that Auto-Merge may use."""
    refused: Counter[str] = field(default_factory=Counter)
    """Answers that failed their check, by reason; they count as not answered."""


def evaluate_method(
    chunks: ChunkSet,
    questions: Sequence[EvaluationQuestion],
    dense: Sequence[Sequence[str]],
    subjects: Subjects,
    models: Models,
    settings: EvaluationSettings,
) -> list[MethodResult]:
    """Figures of one chunk method, and of its Auto-Merge form where it has a tree.

    ``dense`` are the rankings of the vector index, one per question. Raises the
    errors of the model layer.
    """
    lexical = LexicalIndex(chunks, form=settings.index_text, titles=settings.index_title)
    by_words = lexical.search([question.question for question in questions], settings.top_k)
    lexical_ranks = dict(enumerate(by_words))
    dense_ranks = dict(enumerate(dense))
    rankings = {
        form: [
            ranked_by(form, lexical_ranks, dense_ranks, index, settings.dense_weight)
            for index in range(len(questions))
        ]
        for form in ("lexical", "dense", "hybrid")
    }
    forest = Forest(chunks.nodes, models.count_tokens, settings.context_text)
    answers = Answerer(lexical, forest, TitleSubjects(subjects, chunks.titles), chunks.titles, models)
    forms = [chunks.method, *([chunks.method + MERGED] if chunks.method in TREE_METHODS else [])]
    results = [
        _evaluate_label(label, questions, rankings[settings.retrieval], forest, answers, settings)
        for label in forms
    ]
    results[0].hits = {form: _hits(questions, ranked, forest) for form, ranked in rankings.items()}
    if len(results) > 1:
        results[1].levels = _by_level(chunks, questions, rankings[settings.retrieval], models, settings)
    return results


def _by_level(
    chunks: ChunkSet,
    questions: Sequence[EvaluationQuestion],
    ranked: Sequence[list[str]],
    models: Models,
    settings: EvaluationSettings,
) -> dict[str, Values]:
    """Evidence recall of the merged context under trees of limited depth; deeper than they are they are whole."""
    found: dict[str, Values] = {}
    for name, most in (*((str(level), level) for level in LEVELS), ("all", MAX_LEVEL)):
        forest = Forest(limited(chunks.nodes, most), models.count_tokens, settings.context_text)
        found[name] = [
            metrics.evidence_recall(
                question.evidence,
                auto_merge(keys, forest, settings.budget, strict=settings.strict_merge).spans(),
            )
            for question, keys in zip(questions, ranked, strict=True)
        ]
    return found


@dataclass
class Answerer:
    """Answers from a context, with all that the input needs."""

    lexical: LexicalIndex
    forest: Forest
    titles: TitleSubjects
    title_of: Mapping[str, str]
    models: Models

    def __call__(
        self, asked: Sequence[tuple[str, str]], contexts: Sequence[Context]
    ) -> list[Answer[AnswerOut] | AnswerRejected | None]:
        """Answers to (question, language) in order; None where there is no context to answer from."""
        given = [
            answer_input(question, language, context, self.forest, self.lexical, self.titles, self.title_of)
            for (question, language), context in zip(asked, contexts, strict=True)
            if context.nodes
        ]
        found = iter(self.models.run_many(AnswerQuestion(), given))
        return [next(found) if context.nodes else None for context in contexts]


def answer_text(answer: Answer[AnswerOut] | AnswerRejected | None) -> str | None:
    """What was answered; None where nothing was found, or the answer was refused."""
    return answer.value.answer if isinstance(answer, Answer) and answer.value.found else None


def _evaluate_label(
    label: str,
    questions: Sequence[EvaluationQuestion],
    ranked: Sequence[list[str]],
    forest: Forest,
    answers: Answerer,
    settings: EvaluationSettings,
) -> MethodResult:
    result = MethodResult(label)
    chosen: list[Context] = []
    for question, keys in zip(questions, ranked, strict=True):
        contexts = {
            budget: build_context(keys, forest, label, budget, strict=settings.strict_merge)
            for budget in sorted({settings.budget, *settings.budgets})
        }
        for budget in settings.budgets:
            recall = metrics.evidence_recall(question.evidence, contexts[budget].spans())
            result.budgets.setdefault(budget, []).append(recall)
        chosen.append(contexts[settings.budget])
    rows: list[dict[str, float | None]] = []
    asked = [(question.question, question.language) for question in questions]
    for question, context, answer in zip(questions, chosen, answers(asked, chosen), strict=True):
        if isinstance(answer, AnswerRejected):
            result.refused[answer.reason] += 1
            log.warning(
                "answer refused", method=label, question=question.question_id, reason=str(answer)[:400]
            )
        said = answer_text(answer)
        figures = metrics.answer_figures(said or "", (question.answer,)) | {
            "answered": float(said is not None)
        }
        rows.append(_retrieval_figures(question, context) | figures)
    result.main = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return result


def _retrieval_figures(question: EvaluationQuestion, context: Context) -> dict[str, float | None]:
    precision = metrics.span_precision(question.evidence, context.spans())
    return {
        "evidence_recall": metrics.evidence_recall(question.evidence, context.spans()),
        "substring_recall": metrics.substring_recall(question.quotes, context.text),
        "precision": precision[0] if precision else None,
        "iou": precision[1] if precision else None,
        "context_tokens": float(context.tokens),
        "context_chunks": float(len(context.nodes)),
    }


def _hits(
    questions: Sequence[EvaluationQuestion], ranked: Sequence[list[str]], forest: Forest
) -> dict[int, Values]:
    """Whether one of the first k chunks touches the evidence, for each depth."""
    found: dict[int, Values] = {depth: [] for depth in _DEPTHS}
    for question, keys in zip(questions, ranked, strict=True):
        for depth in _DEPTHS:
            top = [forest.nodes[key] for key in keys[:depth] if key in forest.nodes]
            found[depth].append(float(_touches(top, question.evidence)) if question.evidence else None)
    return found


def _touches(nodes: Iterable[ChunkRecord], evidence: Sequence[Region]) -> bool:
    return any(
        node.document_id == document and node.start < end and start < node.end
        for node in nodes
        for document, start, end in evidence
    )


def setting_of(settings: EvaluationSettings, models: Models, embedder: str) -> dict[str, Any]:
    """What stands beside every figure of the main table."""
    return {
        "budget": settings.budget,
        "counter": models.token_counter_name,
        "retrieval": settings.retrieval,
        "embedder": embedder,
        "answerer": models.identity(AnswerQuestion()),
        "index_text": settings.index_text,
        "index_title": settings.index_title,
        "context_text": settings.context_text,
        "top_k": settings.top_k,
        "confidence": settings.confidence,
    }

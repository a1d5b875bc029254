"""Rows of the table ``evaluations``: every figure with n, interval, unit and setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from chunking.evaluation.metrics import meteor_stages
from chunking.evaluation.protocol import EvaluationQuestion, MethodResult, Values
from chunking.evaluation.rows import figure_row
from chunking.evaluation.settings import EvaluationSettings
from chunking.evaluation.statistics import Bootstrap, Estimate
from chunking.evaluation.studies import level_rows
from corpus.catalogue.tables import Chunk, Document, Evaluation, Partition
from corpus.ids import canonical_json

if TYPE_CHECKING:
    from models import Models

BASELINE = "sentence"
# Metrics of the table ``main`` that a terminal has room for; the others are in the report.
HEADLINE: tuple[str, ...] = (
    "evidence_recall",
    "substring_recall",
    "rouge_l",
    "bleu_4",
    "meteor",
    "context_tokens",
)
_UNITS = {
    "evidence_recall": "share of evidence characters",
    "substring_recall": "share of evidence characters",
    "precision": "share of context characters",
    "iou": "share of characters",
    "context_tokens": "tokens per question",
    "context_chunks": "chunks per question",
    "answered": "share of questions",
    "brevity_penalty": "factor",
}
_GROUPED = ("evidence_recall", "rouge_l")
_COMPARED = ("evidence_recall", "rouge_l", "token_f1")


def result_rows(
    results: Sequence[MethodResult],
    questions: Sequence[EvaluationQuestion],
    settings: EvaluationSettings,
    setting: dict[str, Any],
) -> list[Evaluation]:
    """Tables ``main``, ``budget``, ``kinds``, ``languages``, ``retrieval``, ``levels`` and ``differences``."""
    bootstrap = Bootstrap(settings.bootstrap, settings.confidence, settings.seed)
    rows: list[Evaluation] = []
    for result in results:
        rows += _main(result, bootstrap, setting)
        rows += _budgets(result, bootstrap, setting)
        rows += _grouped("kinds", "kind", result, questions, lambda q: q.kind, bootstrap, setting)
        rows += _grouped("languages", "language", result, questions, lambda q: q.language, bootstrap, setting)
        rows += _retrieval(result, bootstrap, setting)
        rows += level_rows(result.label, result.levels, bootstrap, setting)
    return rows + _differences(results, bootstrap, setting)


def _unit(metric: str) -> str:
    return _UNITS.get(metric, "score 0-1")


def _main(result: MethodResult, bootstrap: Bootstrap, setting: dict[str, Any]) -> list[Evaluation]:
    rows = []
    for metric, values in result.main.items():
        own = setting | ({"meteor": meteor_stages()} if metric == "meteor" else {})
        own |= {"not_located": sum(value is None for value in values)} if metric in _UNITS else {}
        if metric == "answered" and result.refused:
            own |= {"refused": dict(sorted(result.refused.items()))}
        rows.append(figure_row("main", result.label, metric, bootstrap.mean(values), _unit(metric), own))
    return rows


def _budgets(result: MethodResult, bootstrap: Bootstrap, setting: dict[str, Any]) -> list[Evaluation]:
    return [
        figure_row(
            "budget",
            result.label,
            "evidence_recall",
            bootstrap.mean(values),
            _unit("evidence_recall"),
            setting | {"budget": budget},
        )
        for budget, values in sorted(result.budgets.items())
    ]


def _grouped(
    table: str,
    name: str,
    result: MethodResult,
    questions: Sequence[EvaluationQuestion],
    group: Callable[[EvaluationQuestion], str],
    bootstrap: Bootstrap,
    setting: dict[str, Any],
) -> list[Evaluation]:
    rows = []
    for value in sorted({group(question) for question in questions}):
        chosen = [index for index, question in enumerate(questions) if group(question) == value]
        for metric in _GROUPED:
            estimate = bootstrap.mean([result.main[metric][index] for index in chosen])
            rows.append(
                figure_row(table, result.label, metric, estimate, _unit(metric), setting | {name: value})
            )
    return rows


def _retrieval(result: MethodResult, bootstrap: Bootstrap, setting: dict[str, Any]) -> list[Evaluation]:
    return [
        figure_row(
            "retrieval",
            result.label,
            f"hit@{depth}",
            bootstrap.mean(values),
            "share of questions",
            setting | {"retrieval": form},
        )
        for form, depths in sorted(result.hits.items())
        for depth, values in sorted(depths.items())
    ]


def _differences(
    results: Sequence[MethodResult], bootstrap: Bootstrap, setting: dict[str, Any]
) -> list[Evaluation]:
    """Paired differences to the sentence baseline, question by question."""
    baseline = next((result for result in results if result.label == BASELINE), None)
    if baseline is None:
        return []
    return [
        figure_row(
            "differences",
            result.label,
            metric,
            bootstrap.difference(result.main[metric], baseline.main[metric]),
            _unit(metric),
            setting | {"baseline": BASELINE},
        )
        for result in results
        if result is not baseline
        for metric in _COMPARED
    ]


def chunk_rows(session: Session, methods: Iterable[str], models: Models) -> list[Evaluation]:
    """Table ``chunks``: per method how many, how long, and the mean ChunkScore of its partitions."""
    rows: list[Evaluation] = []
    for method in methods:
        rows += _size_rows(session, method, models)
        rows += _score_rows(session, method)
    return rows


def _plain(value: float | None, n: int) -> Estimate:
    return Estimate(None if value is None else round(value, 6), None, None, n)


def _size_rows(session: Session, method: str, models: Models) -> list[Evaluation]:
    join = (Document.document_id == Chunk.document_id) & (Document.version_id == Chunk.version_id)
    leaves = (
        select(Chunk.document_id, Chunk.text)
        .join(Document, join)
        .where(Chunk.method == method, Chunk.leaf, Document.state == "kept")
    )
    found = session.execute(leaves.order_by(Chunk.chunk_id)).all()
    sizes = [models.count_tokens(text) for _, text in found]
    documents = len({document for document, _ in found})
    counter = {"counter": models.token_counter_name}
    figures: list[tuple[str, float | None, int, str, dict[str, Any]]] = [
        ("count", float(len(sizes)), len(sizes), "chunks", {}),
        ("per_document", len(sizes) / documents if documents else None, documents, "chunks per document", {}),
        ("mean_size", mean(sizes) if sizes else None, len(sizes), "tokens", counter),
        ("median_size", float(median(sizes)) if sizes else None, len(sizes), "tokens", counter),
        ("max_size", float(max(sizes)) if sizes else None, len(sizes), "tokens", counter),
    ]
    return [
        figure_row("chunks", method, metric, _plain(value, n), unit, setting)
        for metric, value, n, unit, setting in figures
    ]


def _score_rows(session: Session, method: str) -> list[Evaluation]:
    """Mean LI, SD and CS; partitions scored by different backends are never averaged together."""
    query = select(Partition.scores).where(Partition.method == method).order_by(Partition.partition_id)
    groups: dict[str, list[dict[str, Any]]] = {}
    settings: dict[str, dict[str, Any]] = {}
    for scores in session.scalars(query):
        if not scores:
            continue
        setting = {
            name: value for name, value in scores.items() if name not in ("li", "sd", "cs", "k", "boundaries")
        }
        key = canonical_json(setting)
        settings[key] = setting
        groups.setdefault(key, []).append(scores)
    rows: list[Evaluation] = []
    for key in sorted(groups):
        for metric in ("li", "sd", "cs"):
            values: Values = [scores.get(metric) for scores in groups[key]]
            known = [value for value in values if value is not None]
            estimate = _plain(mean(known) if known else None, len(known))
            rows.append(figure_row("chunks", method, metric, estimate, "mean over documents", settings[key]))
    return rows

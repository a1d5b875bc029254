"""The studies beside the main table: λ sweep, perplexity before and after completion, depth of the tree, time.

QChunker's Figs. 2 and 3, HiChunk's Fig. 4 and Table 5, on the documents and
questions at hand. Each figure says its n and, where items can be drawn again, an interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from chunking.background import Backgrounds
from chunking.chunkscore import combine
from chunking.evaluation.rows import figure_row
from chunking.evaluation.settings import EvaluationSettings
from chunking.evaluation.statistics import Bootstrap, Estimate
from chunking.records import ChunkRecord
from corpus.catalogue.tables import Chunk, Document, Evaluation, Partition
from corpus.ids import canonical_json, digest

if TYPE_CHECKING:
    from models import Models

Floats = NDArray[np.float64]
Values = Sequence[float | None]

LAMBDAS = tuple(step / 100 for step in range(101))
LEVELS = (1, 2, 3, 4)
_LEAST_METHODS = 3  # two points always lie on a line
_RESAMPLES = 500
_COMPLETED = "qchunker"


# --- λ sweep (QChunker, Fig. 2) ----------------------------------------------------------------------------------


def lambda_rows(
    scores: Mapping[str, Sequence[Mapping[str, Any]]],
    answers: Mapping[str, Values],
    settings: EvaluationSettings,
) -> list[Evaluation]:
    """Table ``lambda``: Pearson's r over chunk methods between ChunkScore and ROUGE-L of the answers, by λ.

    ``scores`` are the partitions' stored scores (``li``, ``sd`` and what computed
    them) of each method, ``answers`` ROUGE-L question by question. Of
    scores of different backends those that most documents share are compared.
    The interval draws documents and questions anew; the methods stay, so that it
    says nothing of other methods. No rows with fewer than three methods.
    """
    parts = _comparable(scores)
    methods = sorted(
        method for method in parts if any(value is not None for value in answers.get(method, ()))
    )
    if len(methods) < _LEAST_METHODS:
        return []
    rouge = [np.array([value for value in answers[method] if value is not None]) for method in methods]
    pairs = [parts[method] for method in methods]
    points = np.array([[values[:, 0].mean(), values[:, 1].mean()] for values in pairs])
    goals = np.array([values.mean() for values in rouge])
    generator = np.random.default_rng([settings.seed, len(methods)])
    drawn = [
        (
            np.array([_drawn(values, generator) for values in pairs]),
            np.array([float(_drawn(values[:, None], generator)[0]) for values in rouge]),
        )
        for _ in range(_RESAMPLES)
    ]
    tail = (1 - settings.confidence) / 2
    rows = []
    for lam in LAMBDAS:
        value = _pearson(_combined(points, lam), goals)
        others = [r for p, g in drawn if (r := _pearson(_combined(p, lam), g)) is not None]
        low, high = np.quantile(others, [tail, 1 - tail]) if others else (None, None)
        setting = {"lambda": lam, "methods": methods, "confidence": settings.confidence}
        estimate = Estimate(value, _plain(low), _plain(high), len(methods))
        rows.append(
            figure_row("lambda", "all methods", "pearson_r", estimate, "Pearson's r over methods", setting)
        )
    return rows


def stored_scores(session: Session, methods: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """The scores of each method's partitions of the present versions of kept documents."""
    query = (
        select(Partition.method, Partition.scores)
        .join(Document, (Document.document_id == Partition.document_id) & (Document.version_id == Partition.version_id))
        .where(Partition.method.in_(list(methods)), Document.state == "kept")
        .order_by(Partition.partition_id)
    )  # fmt: skip
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for method, scores in session.execute(query):
        if scores:
            found[method].append(scores)
    return dict(found)


def _comparable(scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Floats]:
    """(LI, SD) of each method's documents, shape (n, 2), under the backend that most documents share."""
    groups: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for method, rows in scores.items():
        for row in rows:
            li, sd = row.get("li"), row.get("sd")
            if li is not None and sd is not None:
                backend = canonical_json([row.get(name) for name in ("perplexity", "embedding", "vectors", "reach", "variant", "alpha")])  # fmt: skip
                groups[backend][method].append((float(li), float(sd)))
    if not groups:
        return {}
    best = max(groups, key=lambda key: (sum(map(len, groups[key].values())), key))
    return {method: np.array(rows) for method, rows in groups[best].items()}


def _combined(points: Floats, lam: float) -> Floats:
    return np.array([combine(float(li), float(sd), lam) for li, sd in points])


def _drawn(values: Floats, generator: np.random.Generator) -> Floats:
    return np.asarray(values[generator.integers(0, len(values), len(values))].mean(axis=0))


def _pearson(left: Floats, right: Floats) -> float | None:
    if left.std() < 1e-12 or right.std() < 1e-12:
        return None
    return round(float(np.corrcoef(left, right)[0, 1]), 6)


# --- perplexity before and after completion (QChunker, Fig. 3) -----------------------------------------------------


def completion_rows(session: Session, models: Models, settings: EvaluationSettings) -> list[Evaluation]:
    """:func:`completion_figures` of a seeded subset of ``evaluation.completion_sample`` chunks that QChunker completed."""
    texts: dict[str, tuple[str, str, list[tuple[str, str]]]] = {}
    for document, before, after in _completed_chunks(session, settings):
        if document not in texts:
            row = session.get_one(Document, document)
            texts[document] = (row.language or "?", row.text, [])
        texts[document][2].append((before, after))
    return completion_figures([found for _, found in sorted(texts.items())], _COMPLETED, models, settings)


def completion_figures(
    documents: Iterable[tuple[str, str, Sequence[tuple[str, str]]]],
    method: str,
    models: Models,
    settings: EvaluationSettings,
) -> list[Evaluation]:
    """Table ``completion``: token losses of completed chunks before and after, their difference, perplexities.

    ``documents``: (language, text, pairs of a chunk and its completed form). The mean
    loss over chunks in nats a token, each text alone, and its exponential (a mean of
    perplexities would be that of the few strangest chunks). Losses are of the perplexity
    backend in force; languages are never averaged.
    """
    backgrounds, bootstrap = (
        Backgrounds(models),
        Bootstrap(settings.bootstrap, settings.confidence, settings.seed),
    )
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    name = ""
    for language, text, pairs in documents:
        perplexity = backgrounds.perplexity(text)
        name = name or backgrounds.perplexity("").name
        for before, after in pairs:
            losses = (perplexity.loss(before), perplexity.loss(after))
            if np.isfinite(losses).all():
                found[language].append(losses)
    rows = []
    for language, values in sorted(found.items()):
        old, new = [pair[0] for pair in values], [pair[1] for pair in values]
        setting = {"language": language, "perplexity": name, "sample": settings.completion_sample}
        before_, after_ = bootstrap.mean(old), bootstrap.mean(new)
        for metric, estimate, unit in (
            ("loss_before", before_, "nats per token"),
            ("loss_after", after_, "nats per token"),
            ("loss_difference", bootstrap.difference(new, old), "nats per token"),
            ("perplexity_before", _exponential(before_), "e^mean loss"),
            ("perplexity_after", _exponential(after_), "e^mean loss"),
        ):
            rows.append(figure_row("completion", method, metric, estimate, unit, setting))
    return rows


def _exponential(estimate: Estimate) -> Estimate:
    value, low, high = (
        None if part is None else round(float(np.exp(part)), 6)
        for part in (estimate.value, estimate.low, estimate.high)
    )
    return Estimate(value, low, high, estimate.n)


def _completed_chunks(session: Session, settings: EvaluationSettings) -> list[tuple[str, str, str]]:
    if not settings.completion_sample:
        return []
    join = (Document.document_id == Chunk.document_id) & (Document.version_id == Chunk.version_id)
    query = (
        select(Chunk.chunk_id)
        .join(Document, join)
        .where(Chunk.method == _COMPLETED, Chunk.completed.is_not(None), Document.state == "kept")
    )
    keys = sorted(session.scalars(query), key=lambda key: digest("completion", str(settings.seed), key))
    rows = [session.get_one(Chunk, key) for key in keys[: settings.completion_sample]]
    return [(row.document_id, row.text, row.completed or "") for row in rows]


# --- depth of the tree (HiChunk, Fig. 4) ---------------------------------------------------------------------------


def limited(nodes: Sequence[ChunkRecord], most: int) -> list[ChunkRecord]:
    """The tree with inner nodes of level ``most`` at the deepest; leaves stay and go to the parent that is left.

    The leaves are not cut anew, so that ranking is the same and only Auto-Merge differs.
    """
    by_id = {node.chunk_id: node for node in nodes}

    def kept(node: ChunkRecord) -> bool:
        return node.leaf or node.level <= most

    def above(node: ChunkRecord) -> str | None:
        parent = by_id.get(node.parent_id) if node.parent_id else None
        while parent is not None and not kept(parent):
            parent = by_id.get(parent.parent_id) if parent.parent_id else None
        return parent.chunk_id if parent is not None else None

    return [replace(node, parent_id=above(node)) for node in nodes if kept(node)]


def level_rows(
    label: str, recalls: Mapping[str, Values], bootstrap: Bootstrap, setting: Mapping[str, Any]
) -> list[Evaluation]:
    """Table ``levels``: evidence recall by the deepest level that Auto-Merge may use (``1`` … ``4``, ``all``)."""
    return [
        figure_row("levels", label, "evidence_recall", bootstrap.mean(values), "share of evidence characters",
             {**setting, "max_level": level})
        for level, values in recalls.items()
    ]  # fmt: skip


# --- time (HiChunk, Table 5) ---------------------------------------------------------------------------------------


def time_rows(session: Session, methods: Iterable[str], settings: EvaluationSettings) -> list[Evaluation]:
    """Seconds of wall time a document by method, as the stage ``chunks`` recorded them (vectors known or not)."""
    bootstrap = Bootstrap(settings.bootstrap, settings.confidence, settings.seed)
    rows = []
    for method in methods:
        query = (
            select(Partition.seconds)
            .join(Document, (Document.document_id == Partition.document_id) & (Document.version_id == Partition.version_id))
            .where(Partition.method == method, Document.state == "kept")
            .order_by(Partition.partition_id)
        )  # fmt: skip
        estimate = bootstrap.mean(list(session.scalars(query)))
        rows.append(
            figure_row("chunks", method, "seconds", estimate, "seconds of wall time per document", {})
        )
    return rows


def _plain(value: Any) -> float | None:
    return None if value is None else round(float(value), 6)

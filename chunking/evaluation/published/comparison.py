"""Chunk methods on a published data set: borders, evidence at token budgets, answers, counts, time, studies.

Partitions are kept in a file as they are made, so that a run that was stopped
goes on where it was.
"""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chunking.evaluation import metrics
from chunking.evaluation.published.data import Benchmark, BenchmarkDocument
from chunking.evaluation.published.questions import Asked, Asker, Asking
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.evaluation.statistics import Bootstrap, Estimate
from chunking.evaluation.studies import completion_figures, lambda_rows
from chunking.index import ChunkVectors
from chunking.partition import Node, check_tiling, node_id
from chunking.records import ChunkRecord, ChunkSet
from chunking.segment import SKILLS_OF, Segmenter, language_of
from chunking.sentences import split_sentences
from corpus.catalogue.tables import Evaluation
from corpus.ids import canonical_json, digest
from models import Models
from models.embeddings import CachedEmbedder
from models.errors import AnswerRejected

if TYPE_CHECKING:
    from chunking.partition import SegmentResult

Progress = Callable[[str, int, int], None]
Row = dict[str, Any]

WINDOW_METRICS = ("pk", "window_diff", "boundary_similarity")
_NEAR = 1  # sentences by which a border may be off in the tolerant figure


@dataclass(frozen=True)
class Cut:
    """A document's partition by a method; ``points``: (offset, level) of the borders that the method means."""

    nodes: tuple[Node, ...]
    points: tuple[tuple[int, int], ...]
    completed: Mapping[int, str] = field(default_factory=dict)
    questions: Mapping[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    refused: str = ""
    """Why the method gave nothing: the text then counts as uncut."""

    def as_dict(self) -> Row:
        """Plain data."""
        return {
            "nodes": [[n.start, n.end, n.level, n.parent, n.leaf] for n in self.nodes],
            "points": [list(point) for point in self.points],
            "completed": {str(key): text for key, text in self.completed.items()},
            "questions": {str(key): text for key, text in self.questions.items()},
            "seconds": self.seconds,
            "refused": self.refused,
        }

    @classmethod
    def from_dict(cls, row: Row) -> Cut:
        """The inverse of :meth:`as_dict`."""
        return cls(
            tuple(Node(*values) for values in row["nodes"]),
            tuple((int(at), int(level)) for at, level in row["points"]),
            {int(key): text for key, text in row["completed"].items()},
            {int(key): text for key, text in row["questions"].items()},
            float(row["seconds"]),
            str(row["refused"]),
        )


class Cuts:
    """Partitions kept in a file of JSON lines; a line that a stopped run left half written is skipped."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Row] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").split("\n"):
                try:
                    row = json.loads(line)
                    self._known[row["key"]] = row["cut"] if "cut" in row else row["score"]
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue
        self.taken = 0
        self.loaded = False
        """Whether the encoder has been loaded for what is not kept."""

    def get(self, key: str, length: int) -> Cut | None:
        """A kept partition, if it is one of a text of that length."""
        try:
            cut = Cut.from_dict(self._known[key])
            check_tiling([(node.start, node.end) for node in cut.nodes if node.leaf], length)
        except (KeyError, TypeError, ValueError, RuntimeError):
            return None
        self.taken += 1
        return cut

    def score(self, key: str) -> Row | None:
        """The kept ChunkScore of a partition."""
        row = self._known.get(key)
        return row if isinstance(row, dict) and "sd" in row else None

    def put(self, key: str, cut: Cut) -> None:
        """Keep a partition; written at once, since the next one may take long."""
        self._write({"key": key, "cut": cut.as_dict()})

    def put_score(self, key: str, score: Row) -> None:
        """Keep the ChunkScore of a partition."""
        self._write({"key": key, "score": score})

    def _write(self, row: Row) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn() + json.dumps(row, ensure_ascii=False) + "\n")

    def _torn(self) -> bool:
        if self._path is None or not self._path.exists() or self._path.stat().st_size == 0:
            return False
        with self._path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) != b"\n"


@dataclass(frozen=True)
class Comparison:
    """One row of figures a label; ``studies``: rows of the tables ``lambda`` and ``completion``, where asked for."""

    rows: list[Row]
    studies: list[Evaluation] = field(default_factory=list)


def compare(
    benchmark: Benchmark,
    methods: Sequence[str],
    segmenter: Segmenter,
    settings: EvaluationSettings,
    vectors: VectorSettings,
    *,
    cuts: Cuts | None = None,
    asking: Asking | None = None,
    studies: bool = False,
    progress: Progress = lambda step, done, total: None,
) -> Comparison:
    """One row of figures a method (and one more with Auto-Merge where it has a tree, without what it completed).

    A figure is ``{"value", "low", "high", "n"}`` with its bootstrap interval over
    documents or questions, or a plain number; what does not apply is absent.
    ``studies``: also ChunkScore of every partition and QChunker's Figs. 2 and 3.
    Raises the model layer's errors, but not for a document whose answer is refused.
    """
    cuts = cuts or Cuts(None)
    bootstrap = Bootstrap(settings.bootstrap, settings.confidence, settings.seed)
    languages = {document.id: language_of(document.text) for document in benchmark.documents}
    encoder = ChunkVectors(segmenter.models, vectors, settings.index_text, titles=settings.index_title)
    asker = Asker(benchmark, segmenter.models, settings, encoder, asking or Asking(), progress)
    rows: list[Row] = []
    scores: dict[str, list[Row]] = {}
    answers: dict[str, Sequence[float | None]] = {}
    extra: list[Evaluation] = []
    for method in methods:
        found: dict[str, Cut] = {}
        for number, document in enumerate(benchmark.documents, start=1):
            found[document.id] = _cut(document, method, languages[document.id], segmenter, cuts)
            progress(f"cut {method}", number, len(benchmark.documents))
        row: Row = {"method": method, **_counts(benchmark, found, segmenter)}
        if any(document.borders for document in benchmark.documents):
            row |= _borders(benchmark.documents, found, bootstrap, progress, method)
        rows.append(row)
        if studies:
            scores[method] = _scores(benchmark.documents, method, found, segmenter, cuts, progress)
            row |= _score_figures(scores[method], bootstrap)
            extra += _completions(benchmark.documents, method, found, languages, segmenter.models, settings)
        if benchmark.questions:
            completes = any(cut.completed for cut in found.values())
            by_label = asker.ask(method, _chunks_of(benchmark, method, found), completes=completes)
            answers |= {
                label: a.columns["rouge_l"] for label, a in by_label.items() if "rouge_l" in a.columns
            }
            row |= _question_figures(by_label.pop(method), settings, bootstrap)
            rows += [
                {"method": name, **_question_figures(a, settings, bootstrap)} for name, a in by_label.items()
            ]
    if studies:
        extra += lambda_rows(scores, answers, settings)
    return Comparison(rows, extra)


def _chunks_of(
    benchmark: Benchmark, method: str, found: Mapping[str, Cut]
) -> Callable[[str | None], ChunkSet]:
    def chunks(scope: str | None) -> ChunkSet:
        return _chunk_set([d for d in benchmark.documents if scope is None or d.id == scope], method, found)

    return chunks


def _scores(
    documents: Sequence[BenchmarkDocument],
    method: str,
    found: Mapping[str, Cut],
    segmenter: Segmenter,
    cuts: Cuts,
    progress: Progress,
) -> list[Row]:
    """ChunkScore of each partition, kept beside it."""
    rows: list[Row] = []
    perplexity = segmenter.backgrounds.perplexity("").name
    reach = segmenter.settings.chunkscore_reach
    embedding = segmenter.models.embedder("cohesion").name
    chosen = segmenter.settings
    basis = [
        perplexity,
        embedding,
        reach,
        chosen.chunkscore_lambda,
        chosen.chunkscore_alpha,
        chosen.chunkscore_variant,
    ]
    for number, document in enumerate(documents, start=1):
        spans = [(node.start, node.end) for node in found[document.id].nodes if node.leaf]
        key = digest("benchmark score", "1", document.text, canonical_json(spans), canonical_json(basis))
        row = cuts.score(key)
        if row is None:
            row = segmenter.score(document.text, spans, reach=reach).as_dict()
            cuts.put_score(key, row)
        rows.append(row)
        progress(f"ChunkScore {method}", number, len(documents))
    return rows


def _score_figures(scores: Sequence[Row], bootstrap: Bootstrap) -> Row:
    """Mean LI, SD and ChunkScore over documents."""
    names = (("li", "li"), ("sd", "sd"), ("cs", "chunkscore"))
    estimates = {head: bootstrap.mean([row.get(name) for row in scores]) for name, head in names}
    return {head: _plain(estimate) for head, estimate in estimates.items() if estimate.n}


def _completions(
    documents: Sequence[BenchmarkDocument],
    method: str,
    found: Mapping[str, Cut],
    languages: Mapping[str, str],
    models: Models,
    settings: EvaluationSettings,
) -> list[Evaluation]:
    """Perplexity of at most ``evaluation.completion_sample`` chunks before and after completion."""
    every = [
        (digest("completion", str(settings.seed), document.id, str(at)), document, at)
        for document in documents
        for at in found[document.id].completed
    ]
    chosen: dict[str, list[tuple[str, str]]] = {}
    for _, document, at in sorted(every, key=lambda row: row[0])[: settings.completion_sample]:
        cut = found[document.id]
        node = cut.nodes[at]
        chosen.setdefault(document.id, []).append((document.text[node.start : node.end], cut.completed[at]))
    given = [(languages[d.id], d.text, chosen[d.id]) for d in documents if d.id in chosen]
    return completion_figures(given, method, models, settings) if given else []


def _cut(document: BenchmarkDocument, method: str, language: str, segmenter: Segmenter, cuts: Cuts) -> Cut:
    models = segmenter.models
    basis = {
        "settings": segmenter.relevant(method),
        "skills": {skill.name: models.identity(skill) for skill in SKILLS_OF.get(method, ())},
        "embedding": models.embedder("cohesion").name,
    }
    key = digest("benchmark", "2", method, document.text, canonical_json(basis))
    known = cuts.get(key, len(document.text))
    if known is not None:
        return known
    if not cuts.loaded:
        embedder = models.embedder("cohesion")
        if isinstance(embedder, CachedEmbedder):
            embedder.load()  # no document's time
        cuts.loaded = True
    began = time.monotonic()
    try:
        result = segmenter.run(document.text, method, language)
    except AnswerRejected as error:
        seconds = round(time.monotonic() - began, 4)
        return Cut((Node(0, len(document.text)),), (), seconds=seconds, refused=str(error)[:300])
    cut = Cut(
        result.nodes,
        points_of_result(result, document.text),
        result.completed,
        result.questions,
        round(time.monotonic() - began, 4),
    )
    cuts.put(key, cut)
    return cut


def points_of_result(result: SegmentResult, text: str) -> tuple[tuple[int, int], ...]:
    """Chunk points with levels where a method has them; else its chunks at level 1."""
    levels = result.record.get("levels")
    if levels is None:
        return tuple((node.start, 1) for node in result.leaves)
    starts = [start for start, _ in split_sentences(text)]
    return tuple((starts[index], level) for index, level in levels["points"] if index < len(starts))


# --- counts -----------------------------------------------------------------------------------------------------


def _counts(benchmark: Benchmark, found: Mapping[str, Cut], segmenter: Segmenter) -> Row:
    sizes = [
        segmenter.models.count_tokens(document.text[node.start : node.end])
        for document in benchmark.documents
        for node in found[document.id].nodes
        if node.leaf
    ]
    documents = len(benchmark.documents)
    row: Row = {
        "documents": documents,
        "chunks": len(sizes),
        "chunks_per_document": round(len(sizes) / documents, 3),
        "mean_tokens": round(sum(sizes) / len(sizes), 2),
        "max_tokens": max(sizes),
        "seconds_per_document": round(sum(cut.seconds for cut in found.values()) / documents, 4),
    }
    refused = sum(bool(cut.refused) for cut in found.values())
    return row | ({"refused_documents": refused} if refused else {})


# --- borders ----------------------------------------------------------------------------------------------------


def _borders(
    documents: Sequence[BenchmarkDocument],
    found: Mapping[str, Cut],
    bootstrap: Bootstrap,
    progress: Progress,
    method: str,
) -> Row:
    """F1 of chunk points (micro over documents; by level, and at any) and window metrics (mean over documents)."""
    counts: dict[str, list[tuple[int, int, int]]] = {name: [] for name in ("any", "near", "1", "2")}
    windows: dict[str, list[float | None]] = {name: [] for name in WINDOW_METRICS}
    gold_documents = [document for document in documents if document.borders]
    for number, document in enumerate(gold_documents, start=1):
        points = {at: level for at, level in found[document.id].points if at > 0}
        figures = border_counts(points, document.borders, document.text)
        for name, column in counts.items():
            column.append(figures[name])
        for name, values in windows.items():
            values.append(figures["windows"][name])
        progress(f"borders {method}", number, len(gold_documents))
    hits, made, wanted = (sum(column) for column in zip(*counts["any"], strict=True))
    row: Row = {
        "border_documents": len(gold_documents),
        "gold_borders": wanted,
        "border_precision": round(hits / made, 6) if made else None,
        "border_recall": round(hits / wanted, 6),
    }
    for name, key in (
        ("any", "border_f1"),
        ("near", "border_f1_near"),
        ("1", "f1_level_1"),
        ("2", "f1_level_2"),
    ):
        if any(gold for _, _, gold in counts[name]):
            row[key] = _plain(bootstrap.f1(np.array(counts[name], dtype=np.float64)))
    for name, values in windows.items():
        row[name] = _plain(bootstrap.mean(values))
    return row


def border_counts(points: Mapping[int, int], gold: Mapping[int, int], text: str) -> Row:
    """Hits, predicted and wanted borders of a text: at any level, near, at levels 1 and 2; and its ``windows``.

    ``points`` and ``gold``: offset to level; the text's beginning is none of them.
    """
    starts = [start for start, _ in split_sentences(text)]
    have, want = ([bisect_left(starts, at) for at in sorted(side)] for side in (points, gold))
    row: Row = {"any": _matches(set(points), set(gold)), "near": _near(have, want)}
    for level in (1, 2):
        sides = ({at for at, deep in side.items() if deep == level} for side in (points, gold))
        row[str(level)] = _matches(*sides)
    return row | {"windows": metrics.segmentation(want, have, len(starts))}


def _matches(have: set[int], want: set[int]) -> tuple[int, int, int]:
    """Hits, predicted, wanted."""
    return len(have & want), len(have), len(want)


def _near(have: Sequence[int], want: Sequence[int]) -> tuple[int, int, int]:
    """Borders matched one to one within a sentence, from left to right."""
    hits = at = 0
    for border in want:
        while at < len(have) and have[at] < border - _NEAR:
            at += 1
        if at < len(have) and have[at] <= border + _NEAR:
            hits += 1
            at += 1
    return hits, len(have), len(want)


# --- questions --------------------------------------------------------------------------------------------------


def _chunk_set(documents: Sequence[BenchmarkDocument], method: str, found: Mapping[str, Cut]) -> ChunkSet:
    nodes: list[ChunkRecord] = []
    for document in documents:
        cut = found[document.id]
        ids = [node_id(document.id, index, node) for index, node in enumerate(cut.nodes)]
        for index, node in enumerate(cut.nodes):
            nodes.append(
                ChunkRecord(
                    chunk_id=ids[index],
                    document_id=document.id,
                    version_id=document.id,
                    method=method,
                    start=node.start,
                    end=node.end,
                    text=document.text[node.start : node.end],
                    level=node.level,
                    parent_id=None if node.parent is None else ids[node.parent],
                    leaf=node.leaf,
                    completed=cut.completed.get(index),
                    outline_question=cut.questions.get(index, ""),
                )
            )
    return ChunkSet(method, tuple(nodes), {document.id: document.title for document in documents})


_BY_SUBSET = (
    "evidence_recall",
    "answer_in_context",
    "rouge_l",
    "bleu_4",
    "meteor",
    "token_f1",
    "fact_coverage",
)


def _question_figures(asked: Asked, settings: EvaluationSettings, bootstrap: Bootstrap) -> Row:
    """Means with intervals; a figure that no question has is left out."""
    row: Row = {"questions": len(asked.subsets)}
    for name, column in asked.columns.items():
        if (estimate := bootstrap.mean(column)).n:
            row[name] = _plain(estimate)
    located = asked.columns.get(f"evidence_recall@{settings.budget}", [])
    if any(value is not None for value in located):
        row["questions_without_located_evidence"] = sum(value is None for value in located)
    if asked.refused:
        row["answers_refused"] = dict(sorted(asked.refused.items()))
    if levels := {n: _plain(e) for n, c in asked.levels.items() if (e := bootstrap.mean(c)).n}:
        row["levels"] = levels
    if len(names := sorted(set(asked.subsets))) > 1:
        row["subsets"] = {name: _of_subset(name, asked, settings, bootstrap) for name in names}
    return row


def _of_subset(name: str, asked: Asked, settings: EvaluationSettings, bootstrap: Bootstrap) -> Row:
    at = [index for index, subset in enumerate(asked.subsets) if subset == name]
    row: Row = {"questions": len(at)}
    for figure, column in asked.columns.items():
        plain, _, budget = figure.partition("@")
        if plain not in _BY_SUBSET or budget not in ("", str(settings.budget)):
            continue
        if (estimate := bootstrap.mean([column[index] for index in at])).n:
            row[plain] = _plain(estimate)
    return row


def _plain(estimate: Estimate) -> Row | None:
    if estimate.value is None or math.isnan(estimate.value):
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n}

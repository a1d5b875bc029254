"""ChunkScore: logical independence and semantic dispersion of a partition (QChunker, section 3.3).

Perplexity backends and embedders differ in scale, so a score always says what
computed it; scores of different backends do not belong in one table.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunking.errors import PartitionError
from chunking.partition import Span, check_tiling
from chunking.vectors import Floats, SentenceVectors
from models.protocols import Embedder, Perplexity

Indices = NDArray[np.intp]
Variant = Literal["ppl_ratio", "loss_ratio"]
Pooling = Literal["pooled", "whole"]

LAMBDA = 0.3
ALPHA = 1e-3


@dataclass(frozen=True)
class ChunkScore:
    """ChunkScore of one partition; None where a value is undefined (LI at K = 1, a text without tokens).

    ``boundaries`` of the K - 1 inner boundaries have a defined LI. ``perplexity``
    and ``embedding`` name what computed it, ``vectors`` how chunk vectors were
    made, ``reach`` how many characters LI read on each side (None: all that the
    backend takes).
    """

    li: float | None
    sd: float | None
    cs: float | None
    k: int
    lam: float
    alpha: float
    variant: Variant
    perplexity: str
    embedding: str
    vectors: Pooling
    reach: int | None
    boundaries: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the paper's names (``lambda``, ``alpha``)."""
        values = asdict(self)
        values["lambda"] = values.pop("lam")
        return values


def semantic_dispersion(vectors: Floats, alpha: float = ALPHA) -> float:
    """Φ_SD = (1/K) log det(ZᵀJ_dZ + αI_K) of K unit row vectors (K, d), each centred over its d features.

    Raises PartitionError for K = 0. Where K exceeds d the determinant is taken
    in d dimensions (Sylvester), which is the same number and cheaper.
    """
    k, d = int(vectors.shape[0]), int(vectors.shape[1])
    if k == 0:
        raise PartitionError("ChunkScore is not defined for a partition without chunks (K = 0)")
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    if k <= d:
        return _log_det(centred @ centred.T, alpha) / k
    return (_log_det(centred.T @ centred, alpha) + (k - d) * math.log(alpha)) / k


def _log_det(gram: Floats, alpha: float) -> float:
    """log det(G + αI) of a positive semi-definite matrix, by Cholesky; by LU where rounding made it indefinite."""
    shifted = gram + alpha * np.eye(len(gram))
    try:
        return 2.0 * float(np.log(np.diagonal(np.linalg.cholesky(shifted))).sum())
    except np.linalg.LinAlgError:
        return float(np.linalg.slogdet(shifted)[1])


def _stacked_log_dets(grams: Floats, alpha: float) -> list[float]:
    """:func:`_log_det` of each matrix of a stack, in one call where no rounding stands in the way."""
    shifted = grams + alpha * np.eye(grams.shape[-1])
    try:
        factors = np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return [_log_det(gram, alpha) for gram in grams]
    diagonals = np.ascontiguousarray(np.diagonal(factors, axis1=1, axis2=2))
    return [2.0 * float(value) for value in np.log(diagonals).sum(axis=1)]


def independence(loss_alone: float, loss_after: float, variant: Variant = "ppl_ratio") -> float:
    """LI of one boundary from mean token losses: PPL(c|p)/PPL(c), or their loss ratio; may exceed 1."""
    if variant == "ppl_ratio":
        return math.exp(min(loss_after - loss_alone, 50.0))
    return loss_after / loss_alone if loss_alone > 0 else math.nan


def read_words(text: str) -> str:
    """A text as LI reads it: without the rows and bars that frame Markdown tables.

    Every table begins with the same ones, so that sections which begin with a table would
    foretell each other, whatever they are about.
    """
    if "|" not in text:
        return text
    lines = (_row_words(line) if line.lstrip().startswith("|") else line for line in text.splitlines(True))
    return "".join(lines)


def _row_words(row: str) -> str:
    if not row.strip("|:- \t\r\n"):
        return ""  # an empty header, or the rule below it
    return " ".join(cell.strip() for cell in row.split("|") if cell.strip()) + "\n"


def logical_independence(
    chunks: Sequence[str], perplexity: Perplexity, variant: Variant = "ppl_ratio", reach: int | None = None
) -> list[float]:
    """LI(cᵢ, cᵢ₋₁) of the K - 1 inner boundaries; NaN where the backend has no loss for a text.

    Of tables the words are read (:func:`read_words`). ``reach`` limits the reading to the
    first characters of a chunk and the last of the one before it.
    """
    values = []
    for before, chunk in itertools.pairwise(map(read_words, chunks)):
        text, context = (chunk[:reach], before[-reach:]) if reach else (chunk, before)
        values.append(independence(perplexity.loss(text), perplexity.loss(text, context), variant))
    return values


def combine(li: float | None, sd: float | None, lam: float = LAMBDA) -> float | None:
    """Φ_CS = λΦ_LI + (1 - λ)Φ_SD; None where a part that counts is undefined."""
    if (li is None and lam > 0) or (sd is None and lam < 1):
        return None
    return lam * (li or 0.0) + (1 - lam) * (sd or 0.0)


def chunk_score(
    text: str,
    spans: Sequence[Span],
    perplexity: Perplexity,
    vectors: SentenceVectors,
    *,
    lam: float = LAMBDA,
    alpha: float = ALPHA,
    variant: Variant = "ppl_ratio",
    pooling: Pooling = "pooled",
    reach: int | None = None,
) -> ChunkScore:
    """Score a partition as the paper prints it.

    ``pooling`` "pooled" takes chunk vectors from sentence vectors (each
    sentence embedded once; a sentence cut by a chunk border counts for both in
    proportion), "whole" embeds each chunk. Raises PartitionError for spans that
    do not tile the text and for K = 0.
    """
    check_tiling(spans, len(text))
    if not spans:
        raise PartitionError("ChunkScore is not defined for a partition without chunks (K = 0)")
    values = logical_independence([text[start:end] for start, end in spans], perplexity, variant, reach)
    defined = [value for value in values if math.isfinite(value)]
    li = float(np.mean(defined)) if defined else None
    matrix = (
        pooled_spans(vectors, spans) if pooling == "pooled" else whole_chunks(text, spans, vectors.embedder)
    )
    sd = semantic_dispersion(matrix, alpha)
    return ChunkScore(
        li=li,
        sd=sd,
        cs=combine(li, sd, lam),
        k=len(spans),
        lam=lam,
        alpha=alpha,
        variant=variant,
        perplexity=perplexity.name,
        embedding=vectors.embedder.name,
        vectors=pooling,
        reach=reach,
        boundaries=len(defined),
    )


def whole_chunks(text: str, spans: Sequence[Span], embedder: Embedder) -> Floats:
    """Embeddings of whole chunks, the paper's form, shape (K, d)."""
    return np.asarray(embedder.passages([text[start:end] for start, end in spans]), dtype=np.float64)


def pooled_spans(vectors: SentenceVectors, spans: Sequence[Span]) -> Floats:
    """Chunk vectors pooled from sentence vectors by overlap, shape (K, d), unit length.

    Where chunk borders are sentence borders this is the pooling by prefix sums.
    """
    starts = np.array([start for start, _ in vectors.sentences])
    ends = np.array([end for _, end in vectors.sentences])
    lengths = np.maximum(ends - starts, 1)
    edges = np.array([spans[0][0], *[end for _, end in spans]])
    index = np.clip(np.searchsorted(ends, edges, side="right"), 0, len(starts) - 1)
    share = np.clip((edges - starts[index]) / lengths[index], 0.0, 1.0)
    cumulative = vectors.sums[index] + (share * vectors.weights[index])[:, None] * vectors.vectors[index]
    matrix = np.diff(cumulative, axis=0)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 1e-12))


# --- selection among candidates of different K -----------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """How a candidate stands against random partitions of its own K and lengths.

    ``z`` = λ·z(LI) + (1 - λ)·z(SD), None where the candidate cannot be selected
    (``why_not`` says why).
    """

    k: int
    li: float | None
    sd: float
    z_li: float | None
    z_sd: float | None
    z: float | None
    why_not: str = ""


@dataclass(frozen=True)
class Selection:
    """The winner's index and the standing of every candidate, in the order given."""

    best: int
    standings: tuple[Standing, ...]


_STACK = 1 << 17  # matrix entries that are worked on at a time
_CORNER_LIMIT = 4000  # sentences up to which the summed Gram matrix is kept (128 MB)


def _corner_sums(weighted: Floats) -> Floats:
    """Two-dimensional prefix sums of the sentences' Gram matrix, shape (n + 1, n + 1).

    The Gram matrix of any partition's chunk sums is four look-ups per entry, whatever the dimension.
    """
    n = len(weighted)
    corner = np.zeros((n + 1, n + 1))
    corner[1:, 1:] = weighted @ weighted.T
    np.cumsum(corner, axis=0, out=corner)
    np.cumsum(corner, axis=1, out=corner)
    return corner


class Selector:
    """Chooses among candidate partitions of one text by standardised ChunkScore.

    Raw scores are not comparable across K (QChunker design, "Selection"): each
    candidate is standardised against R seeded random contiguous partitions with
    its K and its chunk lengths in random order. LI comes from losses cached per
    sentence boundary, SD from pooled sentence vectors.
    """

    def __init__(
        self,
        vectors: SentenceVectors,
        boundary_li: Callable[[int], float],
        *,
        lam: float = LAMBDA,
        alpha: float = ALPHA,
        samples: int = 64,
        seed: int = 0,
    ) -> None:
        self.vectors = vectors
        self.lam = lam
        self.alpha = alpha
        self.samples = samples
        self.seed = seed
        self._li = np.array([boundary_li(i) for i in range(1, len(vectors))], dtype=np.float64)
        means = vectors.vectors.mean(axis=1, keepdims=True)
        weighted = (vectors.vectors - means) * vectors.weights[:, None]
        # A chunk's squared length is that of its centred vector plus d times its squared mean.
        self._means = np.concatenate([[0.0], np.cumsum(means[:, 0] * vectors.weights)])
        self._sums = np.vstack([np.zeros((1, weighted.shape[1])), np.cumsum(weighted, axis=0)])
        self._corner = _corner_sums(weighted) if len(vectors) <= _CORNER_LIMIT else None

    def choose(self, candidates: Sequence[Sequence[int]]) -> Selection:
        """Candidates are inner cuts as sentence indices. The first of equals wins.

        Where none can be selected the first candidate is taken.
        """
        standings = tuple(self.standing(cuts, number) for number, cuts in enumerate(candidates))
        scored = [(standing.z, -i) for i, standing in enumerate(standings) if standing.z is not None]
        return Selection(best=-max(scored)[1] if scored else 0, standings=standings)

    def standing(self, cuts: Sequence[int], number: int = 0) -> Standing:
        """Standardise one candidate; ``number`` only varies the seed of its random partitions."""
        k = len(cuts) + 1
        if k == 1:
            return Standing(1, None, self._sd(cuts), None, None, None, "one chunk: LI is undefined")
        rng = np.random.default_rng([self.seed, k, number])
        null = self._random_cuts(cuts, rng, self.samples)
        li, sd = self._mean_lis(np.array([cuts], dtype=np.int64))[0], self._sd(cuts)
        z_li = _z(li, self._mean_lis(null))
        z_sd = _z(sd, self._sds(null))
        shown = li if math.isfinite(li) else None
        if (z_li is None and self.lam > 0) or (z_sd is None and self.lam < 1):
            return Standing(k, shown, sd, z_li, z_sd, None, "random partitions of this size do not differ")
        z = self.lam * (z_li or 0.0) + (1 - self.lam) * (z_sd or 0.0)
        return Standing(k, shown, sd, z_li, z_sd, z)

    def _mean_lis(self, cuts: Indices) -> list[float]:
        """Mean of the defined LI of partitions of one K, given as rows of inner cuts; NaN without any."""
        values = self._li[cuts - 1]
        defined = np.isfinite(values)
        number = defined.sum(axis=1)
        sums = np.where(defined, values, 0.0).sum(axis=1)
        return [float(x) for x in np.divide(sums, number, out=np.full(len(sums), np.nan), where=number > 0)]

    def _sd(self, cuts: Sequence[int]) -> float:
        return self._sds(np.array([cuts], dtype=np.int64))[0]

    def _sds(self, cuts: Indices) -> list[float]:
        """SD of partitions of one K, given as rows of inner cuts; so many at a time as fit in the cache."""
        ends = np.full((len(cuts), 1), len(self.vectors))
        edges = np.concatenate([np.zeros_like(ends), cuts, ends], axis=1)
        k, d = edges.shape[1] - 1, int(self._sums.shape[1])
        step = max(1, _STACK // (k + 1) ** 2)
        values: list[float] = []
        for start in range(0, len(edges), step):
            part = edges[start : start + step]
            values += [value / k for value in self._log_dets(part, k, d)]
        return values

    def _log_dets(self, edges: Indices, k: int, d: int) -> list[float]:
        """log det(ZᵀJ_dZ + αI_K) of each partition."""
        offsets = d * np.diff(self._means[edges], axis=1) ** 2
        if k <= d and self._corner is not None:
            sums = self._corner.take(edges[:, :, None] * len(self._corner) + edges[:, None, :])
            rows = sums[:, 1:] - sums[:, :-1]
            gram = rows[:, :, 1:] - rows[:, :, :-1]
            norms = np.sqrt(np.maximum(np.diagonal(gram, axis1=1, axis2=2) + offsets, 1e-24))
            gram /= norms[:, :, None] * norms[:, None, :]
            return _stacked_log_dets(gram, self.alpha)
        values = []
        for row, offset in zip(edges, offsets, strict=True):
            pooled = np.diff(self._sums[row], axis=0)
            pooled /= np.sqrt(np.maximum((pooled**2).sum(axis=1) + offset, 1e-24))[:, None]
            if k <= d:
                values.append(_log_det(pooled @ pooled.T, self.alpha))
            else:
                values.append(_log_det(pooled.T @ pooled, self.alpha) + (k - d) * math.log(self.alpha))
        return values

    def _random_cuts(self, cuts: Sequence[int], rng: np.random.Generator, number: int) -> Indices:
        """Random contiguous partitions with the same K and similar lengths, shape (number, K - 1).

        The chunk lengths are put in random order and varied by up to a half, so
        that chunks of equal length have something to differ by, then snapped to
        sentence boundaries.
        """
        sums = self.vectors.weight_sums
        own = np.diff(sums[np.array([0, *cuts, len(self.vectors)])])
        lengths = np.stack([rng.permutation(own) * rng.uniform(0.5, 1.5, len(own)) for _ in range(number)])
        targets = np.cumsum(lengths, axis=1)[:, :-1] * (sums[-1] / lengths.sum(axis=1))[:, None]
        index = np.searchsorted(sums, targets)
        index -= (targets - sums[index - 1]) < (sums[np.minimum(index, len(sums) - 1)] - targets)
        return _strictly_increasing(index, len(self.vectors))


def _strictly_increasing(index: Indices, n: int) -> Indices:
    """Move the cuts of each row as little as needed so that they increase within 1…n - 1."""
    k = index.shape[1]
    order = np.arange(k)
    forward = np.maximum.accumulate(np.maximum(index, 1) - order, axis=1) + order
    return np.asarray(np.minimum(forward, n - k + order))


def _z(value: float, null: Sequence[float]) -> float | None:
    finite = np.array([x for x in null if math.isfinite(x)])
    if len(finite) < 2 or not math.isfinite(value):
        return None
    spread = float(finite.std(ddof=1))
    return (value - float(finite.mean())) / spread if spread > 1e-9 else None


NEIGHBOUR = 200  # characters before and after a boundary that its cached loss reads


def boundary_losses(
    vectors: SentenceVectors, perplexity: Perplexity, variant: Variant = "ppl_ratio"
) -> Callable[[int], float]:
    """LI of the boundary before sentence i, from the sentence and its neighbour, cut to 200 characters each.

    Frames of tables are no sentences here (:func:`read_words`): the next one with words counts.
    """
    words = [read_words(vectors.text[start:end]) for start, end in vectors.sentences]
    spoken = [i for i, sentence in enumerate(words) if sentence.strip()]

    def li(i: int) -> float:
        place = bisect_left(spoken, i)
        if place in (0, len(spoken)):
            return math.nan
        after = words[spoken[place]][:NEIGHBOUR].strip()
        before = words[spoken[place - 1]][-NEIGHBOUR:]
        return independence(perplexity.loss(after), perplexity.loss(after, before), variant)

    return li

"""Sentence vectors of one text: each sentence is embedded once, larger units are pooled.

The embedded model costs some milliseconds a text and grows with the characters it
reads: long sentences are embedded by their beginning only, equal ones once, and
runs of very short lines together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chunking.headings import display_width, heading_shape, marked_level, visible
from chunking.partition import Counter, Span
from chunking.sentences import split_sentences
from models.protocols import Embedder

Floats = NDArray[np.float64]

UNIT = 24  # display columns from which a sentence has a vector of its own (a CJK character takes two)
PARAGRAPH = 2400  # display columns up to which a paragraph is of one thing
VIEW = 400  # characters of a sentence that are embedded; more add cost, hardly meaning


class SentenceVectors:
    """Sentences of a text with token counts, unit vectors and prefix sums of both.

    ``vectors`` has shape (n, d); ``sums`` (n + 1, d) are prefix sums weighted by
    tokens, so that any run of sentences is pooled in one subtraction.
    """

    def __init__(
        self, text: str, embedder: Embedder, count: Counter, sentences: Sequence[Span] | None = None
    ) -> None:
        self.text = text
        self.embedder = embedder
        self.count = count
        self.sentences = list(split_sentences(text) if sentences is None else sentences)
        self.tokens = np.array([count(text[s:e]) for s, e in self.sentences], dtype=np.float64)
        self.weights = np.maximum(self.tokens, 1.0)
        self.token_sums = np.concatenate([[0.0], np.cumsum(self.tokens)])
        self.weight_sums = np.concatenate([[0.0], np.cumsum(self.weights)])
        self._vectors: Floats | None = None
        self._sums: Floats | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    def fits(self, low: int, high: int, size: int) -> bool:
        """Whether sentences low…high together count at most ``size`` tokens.

        Counters are not additive, by less than one token for each sentence
        joined, so close to the limit the joined text itself is counted.
        """
        total, slack = self.token_sums[high] - self.token_sums[low], high - low - 1
        if total + slack <= size:
            return True
        return bool(
            total <= size + slack
            and self.count(self.text[self.sentences[low][0] : self.sentences[high - 1][1]]) <= size
        )

    @property
    def vectors(self) -> Floats:
        """Unit vectors of the sentences, shape (n, d)."""
        if self._vectors is None:
            self._vectors = self._embed()
        return self._vectors

    @property
    def sums(self) -> Floats:
        """Prefix sums of the weighted vectors, shape (n + 1, d)."""
        if self._sums is None:
            weighted = self.vectors * self.weights[:, None]
            self._sums = np.vstack([np.zeros((1, weighted.shape[1])), np.cumsum(weighted, axis=0)])
        return self._sums

    def pooled(self, cuts: Sequence[int]) -> Floats:
        """Unit vectors of the runs between sentence indices ``cuts`` (inner ones), shape (K, d)."""
        edges = np.array([0, *cuts, len(self)])
        return _normalised(np.diff(self.sums[edges], axis=0))

    def windows(self, buffer: int) -> Floats:
        """Each sentence pooled with ``buffer`` neighbours on either side, shape (n, d)."""
        index = np.arange(len(self))
        low, high = np.maximum(index - buffer, 0), np.minimum(index + buffer + 1, len(self))
        return _normalised(self.sums[high] - self.sums[low])

    def gaps(self, reach: int = 3) -> Floats:
        """Cosine distance between the ``reach`` sentences before and after each boundary, shape (n - 1,).

        Entry i belongs to the boundary between sentences i and i + 1. Divisions begin with
        a paragraph: inside one the distance is given as 0, unless the paragraph is so long
        (a text without line ends) that it may hold several.
        """
        n = len(self)
        if n < 2:
            return np.zeros(0)
        edge = np.arange(1, n)
        before = _normalised(self.sums[edge] - self.sums[np.maximum(edge - reach, 0)])
        after = _normalised(self.sums[np.minimum(edge + reach, n)] - self.sums[edge])
        distance = 1.0 - np.einsum("ij,ij->i", before, after)
        return np.where(self._inner, 0.0, np.maximum(distance, 1e-6))

    @cached_property
    def _inner(self) -> NDArray[np.bool_]:
        """For each boundary whether it is inside a paragraph of ordinary length."""
        texts = [self.text[start:end] for start, end in self.sentences]
        ends = np.array([text[len(text.rstrip()) :].find("\n") >= 0 for text in texts[:-1]], dtype=bool)
        paragraph = np.concatenate([[0], np.cumsum(ends)])
        widths = np.bincount(paragraph, weights=[display_width(text) for text in texts])
        return np.asarray(~ends & (widths[paragraph[:-1]] <= PARAGRAPH))

    def _embed(self) -> Floats:
        units = self.units
        distinct = sorted(set(units))
        if not distinct:
            return np.zeros((0, self.embedder.dimension))
        rows = {unit: row for row, unit in enumerate(distinct)}
        embedded = np.asarray(self.embedder.passages(distinct), dtype=np.float64)
        return _normalised(embedded[[rows[unit] for unit in units]])

    @cached_property
    def units(self) -> list[str]:
        """For each sentence the text that is embedded for it.

        Very short sentences (table cells, list items) are joined with those behind
        them up to a line's width, never over the beginning of a heading.
        """
        units: list[str] = []
        run: list[str] = []
        for start, end in self.sentences:
            line = self.text[start:end]
            if run and (display_width(" ".join(run)) >= UNIT or _opens_section(line)):
                units += [" ".join(run)] * len(run)
                run = []
            run.append(" ".join(line.split())[:VIEW])
        return units + [" ".join(run)] * len(run)


def _opens_section(line: str) -> bool:
    if marked_level(line) is not None:
        return True
    shape = heading_shape(visible(line))
    return shape is not None and shape.style != "plain" and shape.strength > 0.55


def _normalised(matrix: Floats) -> Floats:
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 1e-12))

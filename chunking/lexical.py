"""BM25 over chunk texts (package ``bm25s``)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from chunking.evaluation.settings import IndexText
from chunking.records import ChunkRecord, ChunkSet
from chunking.terms import terms

# Short passages with the document's title: less saturation and length penalty than the usual 1.5 and 0.75.
_K1 = 0.9
_B = 0.4
_TITLE_REPEATS = 2


class LexicalIndex:
    """BM25 (Lucene form) over the leaves of a chunk set.

    With ``titles`` the document's title counts as part of each of its chunks: a
    chunk from the middle of a data sheet rarely names its substance.
    """

    def __init__(self, chunks: ChunkSet, *, form: IndexText = "completed", titles: bool = True) -> None:
        self.leaves: list[ChunkRecord] = chunks.leaves
        title_terms = _title_terms(chunks.titles) if titles else {}
        self._model: Any = None
        self._frequency: dict[str, int] = {}
        tokens = [
            terms(leaf.index_text(form)) + title_terms.get(leaf.document_id, []) for leaf in self.leaves
        ]
        if any(tokens):
            import bm25s

            logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
            self._model = bm25s.BM25(k1=_K1, b=_B)
            self._model.index(tokens, show_progress=False, leave_progress=False)
        for found in tokens:
            for term in set(found):
                self._frequency[term] = self._frequency.get(term, 0) + 1

    def scores(self, question: str, top_k: int | None = None) -> dict[str, float]:
        """Score by chunk id, positive ones only, best first, at most ``top_k``; ties by id."""
        wanted = [term for term in terms(question) if term in self._frequency]
        if self._model is None or not wanted:
            return {}
        values = self._model.get_scores(wanted)
        floor = 0.0
        if top_k is not None and top_k < len(values):
            floor = float(np.partition(values, -top_k)[-top_k])  # ties with the last one stay in
        kept = np.flatnonzero((values > 0) & (values >= floor))
        found = [(self.leaves[i].chunk_id, float(values[i])) for i in kept]
        return dict(sorted(found, key=lambda pair: (-pair[1], pair[0]))[:top_k])

    def search(self, questions: Sequence[str], top_k: int) -> list[list[str]]:
        """Ranked chunk ids for each question, at most ``top_k``."""
        return [list(self.scores(question, top_k)) for question in questions]

    def weights(self, found: Iterable[str]) -> dict[str, float]:
        """Inverse document frequency of terms; a term that no chunk has counts as in one."""
        total = max(len(self.leaves), 1)
        return {
            term: float(np.log(1 + (total - n + 0.5) / (n + 0.5)))
            for term in sorted(set(found))
            for n in [max(self._frequency.get(term, 0), 1)]
        }


def _title_terms(titles: Mapping[str, str]) -> dict[str, list[str]]:
    return {document: terms(title) * _TITLE_REPEATS for document, title in titles.items()}

"""A tiny deterministic embedder for property tests: hashed character pairs, no model to load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.ngrams import hashed_ngrams
from models.protocols import Vectors


class HashedEmbedder:
    name = "hashed"
    dimension = 64

    def passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([hashed_ngrams(text, self.dimension) for text in texts])

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self.passages(texts)

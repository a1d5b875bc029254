"""What the model layer needs from outside: storage and vectors, handed in as protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass
class StoredAnswer:
    """A raw answer as the endpoint gave it. ``state``: stored, accepted, refused."""

    key: str
    skill: str
    skill_version: str
    model: str
    draw: int
    raw: str
    state: str = "stored"
    reason: str = ""
    finish_reason: str = ""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    parameters: dict[str, Any] = field(default_factory=dict)


class AnswerStore(Protocol):
    """Where raw answers live (the catalogue implements it in ``corpus.catalogue.stores``)."""

    def get(self, key: str) -> StoredAnswer | None:
        """The stored answer, refused ones included."""
        ...

    def put(self, answer: StoredAnswer) -> None:
        """Store before anything is parsed; replaces a refused answer of the same key."""
        ...

    def mark(self, key: str, state: str, reason: str = "") -> None:
        """Record that the answer was accepted or refused."""
        ...

    def served(self, key: str) -> None:
        """Count that the answer was given again without a call."""
        ...


class VectorStore(Protocol):
    """Where embeddings live, by model and text hash."""

    def get(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """Known vectors by hash; unknown hashes are absent."""
        ...

    def put(self, model: str, vectors: dict[str, Vectors]) -> None:
        """Store vectors; known ones are left as they are."""
        ...


class Embedder(Protocol):
    """Text to unit vectors. Implementations cache by text hash."""

    name: str

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """L2-normalised float32 array of shape (len(texts), dimension)."""
        ...

    def queries(self, texts: Sequence[str]) -> Vectors:
        """As ``passages``, for asymmetric models the query side."""
        ...


class Perplexity(Protocol):
    """Mean token loss of a text, alone or after a context."""

    name: str

    def loss(self, text: str, context: str = "") -> float:
        """Mean negative log-likelihood per token in nats (NaN for an empty text)."""
        ...

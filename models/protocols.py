"""What the model layer needs from outside: storage and vectors, handed in as protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
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

    def flush(self) -> None:
        """Write what a store gathers in memory (verdicts, counts; never answers)."""
        ...


@dataclass
class BatchLine:
    """A question in a batch job that is not settled yet, with what its answer will be stored with.

    ``position`` orders the lines as in the job's file; ``form`` is the response
    format and the name of the output limit it was asked with; ``price`` holds the
    prices of a million tokens that apply to it.
    """

    key: str
    skill: str
    skill_version: str
    draw: int
    parameters: dict[str, Any]
    form: dict[str, str]
    price: dict[str, Any] | None = None
    position: int = 0


@dataclass
class BatchJob:
    """A file of questions at an endpoint's batch API.

    ``state``: submitting (it may or may not exist at the endpoint), open,
    cancelling (a person cancelled it), collected, given_up. ``file_id``,
    ``batch_id`` and ``status`` are the endpoint's words; ``answered`` and ``failed`` are its counts until the job is
    collected, and ours from then on.
    """

    job_id: str
    base_url: str
    model: str
    skills: list[str]
    total: int
    state: str = "submitting"
    file_id: str = ""
    batch_id: str = ""
    status: str = ""
    answered: int = 0
    failed: int = 0
    detail: str = ""
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def ended(self) -> bool:
        """Whether nothing more is expected of it."""
        return self.state in ("collected", "given_up")


class BatchStore(Protocol):
    """Where batch jobs are recorded before they are sent (``corpus.catalogue.stores`` implements it)."""

    def claim(self, job: BatchJob, lines: Sequence[BatchLine]) -> set[str]:
        """Record a job with those of the lines whose key no unfinished job holds; returns their keys.

        In one transaction, so that two processes never send the same question.
        Without any such line nothing is recorded.
        """
        ...

    def save(self, job: BatchJob) -> None:
        """Record a job's present state; a person's wish to cancel it is kept."""
        ...

    def job(self, job_id: str) -> BatchJob | None:
        """A job by its id."""
        ...

    def is_sending(self, job_id: str) -> bool:
        """Whether another process may still be sending a recorded job: it runs, or nobody can tell."""
        ...

    def jobs(self, *, ended: bool = False) -> list[BatchJob]:
        """Unfinished jobs (with ``ended`` all jobs), oldest first."""
        ...

    def lines(self, job_id: str) -> list[BatchLine]:
        """The lines of a job that are not settled, by position."""
        ...

    def holders(self, keys: Sequence[str]) -> dict[str, str]:
        """Which unfinished job holds a key, for the keys that are held."""
        ...

    def settle(self, job_id: str, keys: Sequence[str]) -> None:
        """Forget lines whose answers are stored or will not come."""
        ...


class Slots(Protocol):
    """Who may wait for a model at once, over all processes (``flows.slots`` implements it)."""

    def hold(self, needless: Callable[[], bool]) -> AbstractContextManager[None]:
        """Hold a slot for a block, waiting for one unless ``needless`` says that the block has nothing to do."""
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

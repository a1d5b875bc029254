"""What a question is made of: candidate, proof, references."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from corpus.ids import canonical_json, digest
from kg import queries

Kind = Literal["single_hop", "multi_hop", "aggregative", "boolean"]
Language = Literal["zh", "en"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True)
class Proof:
    """A query body (``kg.queries``) and its parameters; run alone or in batches."""

    body: str
    parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        # a few bodies serve hundreds of thousands of proofs: one string each
        object.__setattr__(self, "body", sys.intern(self.body))

    @property
    def cypher(self) -> str:
        """The query as stored with the question."""
        return queries.single(self.body)

    def as_record(self) -> dict[str, Any]:
        """The JSON form: run ``cypher`` with ``parameters``, it returns the answers."""
        return {"cypher": self.cypher, "parameters": {"q": dict(self.parameters)}}

    @cached_property
    def id(self) -> str:
        """Content-derived identity of query and parameters."""
        return digest("proof", self.cypher, canonical_json(dict(self.parameters)))


@dataclass(frozen=True, slots=True)
class Reference:
    """A span of a document's refined text that supports the answer."""

    document_id: str
    version_id: str
    start: int
    end: int
    quote: str
    url: str
    language: str

    def as_record(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "document_id": self.document_id,
            "version_id": self.version_id,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
            "url": self.url,
        }


@dataclass(frozen=True)
class Check:
    """A further query that must (not) give certain answers, and the reason when it fails."""

    proof: Proof
    reason: str
    expected: tuple[Any, ...] | None = None  # exactly these
    forbidden: tuple[Any, ...] | None = None  # anything but exactly these

    def holds(self, answers: tuple[Any, ...]) -> bool:
        """Whether the answers (sorted) satisfy the check."""
        if self.expected is not None and answers != self.expected:
            return False
        return self.forbidden is None or answers != self.forbidden


@dataclass(frozen=True)
class Candidate:
    """A question before verification. ``expected``: what its proof must return, sorted.

    ``surfaces``: what must not stand in the question (the answer's words);
    ``parts``: proof ids of the simpler questions it is composed of.
    """

    kind: Kind
    language: Language
    template: str
    question: str
    answer: str
    expected: tuple[Any, ...]
    surfaces: tuple[str, ...]
    proof: Proof
    references: tuple[Reference, ...]
    triples: tuple[tuple[str, str, str], ...]
    substances: tuple[str, ...]
    section: int | None = None
    relation: str = ""
    metapath: str = ""
    hops: int = 1
    nodes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    listings: tuple[str, ...] = ()
    difficulty: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def id(self) -> str:
        """Identity: kind, language, proof. A changed answer under a new snapshot keeps it."""
        return digest("question", self.kind, self.language, self.proof.id)

    def answer_set(self) -> list[dict[str, Any]]:
        """The proof's answers, each with the words the answer uses for it."""
        words = self.surfaces if len(self.surfaces) == len(self.expected) else ("",) * len(self.expected)
        return [{"key": key, "text": text} for key, text in zip(self.expected, words, strict=True)]


@dataclass(frozen=True)
class Judged:
    """A candidate with its verdict: no reason means kept."""

    candidate: Candidate
    reason: str = ""
    question: str = ""
    wording: str = "template"
    split: str = "train"
    curated: bool = False

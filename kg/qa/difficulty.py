"""Measured features of a question's difficulty, and a level made of them; no opinion of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg.qa.facts import plain
from kg.qa.records import Candidate

LEVELS = ("easy", "medium", "hard")
_DISSIMILAR = 0.3  # share of common bigrams below which a question is not found by its words


def features(candidate: Candidate, question: str) -> dict[str, Any]:
    """Hops, answers, evidence spread, how much of the question's wording the evidence shares, and the level."""
    documents = {r.document_id for r in candidate.references}
    starts = sorted(r.start for r in candidate.references)
    measured = {
        **dict(candidate.difficulty),
        "hops": candidate.hops,
        "answers": len(candidate.expected),
        "references": len(candidate.references),
        "documents": len(documents),
        "span_distance": starts[-1] - starts[0] if len(documents) == 1 else None,
        "lexical_overlap": round(_overlap(question, " ".join(r.quote for r in candidate.references)), 3),
    }
    return {**measured, "level": level(measured)}


def level(measured: Mapping[str, Any]) -> str:
    """easy, medium or hard: how many things make it harder than looking up one sentence.

    Counted: a hop more, several answers, evidence in several places, evidence in
    the other language only, arithmetic, and words that the evidence does not use.
    """
    points = sum(
        (
            measured["hops"] > 1,
            measured["answers"] > 1,
            measured["references"] > 1,
            bool(measured.get("cross_language")),
            bool(measured.get("arithmetic")),
            measured["lexical_overlap"] < _DISSIMILAR,
        )
    )
    return LEVELS[min(2, points // 2)]


def _overlap(question: str, evidence: str) -> float:
    """Share of the question's character bigrams that stand in the evidence."""
    asked, given = _bigrams(question), _bigrams(evidence)
    return len(asked & given) / len(asked) if asked else 0.0


def _bigrams(text: str) -> set[str]:
    joined = plain(text)
    return {joined[at : at + 2] for at in range(len(joined) - 1)}

"""Measured features of a question's difficulty; no opinion of a model."""

from __future__ import annotations

from typing import Any

from kg.qa.facts import plain
from kg.qa.records import Candidate


def features(candidate: Candidate, question: str) -> dict[str, Any]:
    """Hops, answers, evidence spread, and how much of the question's wording the evidence shares."""
    documents = {r.document_id for r in candidate.references}
    starts = sorted(r.start for r in candidate.references)
    return {
        **dict(candidate.difficulty),
        "hops": candidate.hops,
        "answers": len(candidate.expected),
        "references": len(candidate.references),
        "documents": len(documents),
        "span_distance": starts[-1] - starts[0] if len(documents) == 1 else None,
        "lexical_overlap": round(_overlap(question, " ".join(r.quote for r in candidate.references)), 3),
    }


def _overlap(question: str, evidence: str) -> float:
    """Share of the question's character bigrams that stand in the evidence."""
    asked, given = _bigrams(question), _bigrams(evidence)
    return len(asked & given) / len(asked) if asked else 0.0


def _bigrams(text: str) -> set[str]:
    joined = plain(text)
    return {joined[at : at + 2] for at in range(len(joined) - 1)}

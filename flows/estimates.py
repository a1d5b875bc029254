"""A rough estimate of the model calls of a run, from what is in the catalogue now.

Windows and calls per document follow the settings of each stage; prompts add a
constant. Answers already in the store are not subtracted, so the figure is an
upper guide. The unit is the token counter in force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlalchemy import func, select

from corpus.catalogue.tables import Document, Question
from flows.runtime import Runtime
from models.tokens import count_words

_PROMPT_TOKENS = 600  # instructions and schema of one call
_COMPLETED_SHARE = 0.5  # of the chunks, as the paper's reviewer flags


@dataclass(frozen=True)
class SkillEstimate:
    """Calls of one skill and their tokens; ``cost`` is None without a price."""

    skill: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None


def estimate(runtime: Runtime, todo: dict[str, int]) -> list[SkillEstimate]:
    """Estimate per skill for the items to do of each step; skills without a model are left out."""
    with runtime.catalogue.reading() as db:
        texts = db.scalars(select(Document.cleaned_text).where(Document.kind != "reference")).all()
        questions = int(db.scalar(select(func.count()).where(Question.state == "kept")) or 0)
    words = sum(count_words(text) for text in texts) / max(len(texts), 1)
    found = []
    for step, skill, calls_per_item, tokens_per_call in _plan(runtime, words, questions):
        resolved = runtime.settings.models.resolve(skill)
        if resolved is None or not todo.get(step):
            continue
        calls = math.ceil(todo[step] * calls_per_item * resolved.draws)
        tokens_in = round(calls * (tokens_per_call + _PROMPT_TOKENS))
        tokens_out = calls * resolved.max_output_tokens
        cost = resolved.price.cost(tokens_in, 0, tokens_out) if resolved.price else None
        found.append(SkillEstimate(skill, resolved.model, calls, tokens_in, tokens_out, cost))
    return found


def _plan(runtime: Runtime, words: float, questions: int) -> list[tuple[str, str, float, float]]:
    """(step, skill, calls per item, tokens of text per call) for documents of ``words`` tokens."""
    refinement = runtime.settings.corpus.refinement
    quality = runtime.settings.corpus.quality
    windows = max(1.0, words / (refinement.window - refinement.overlap))
    chunks = max(1.0, words / runtime.settings.chunks.size)
    sample = min(words, quality.sample_windows * quality.sample_tokens)
    budget = runtime.settings.evaluation.budget
    asked = min(questions, runtime.settings.evaluation.max_questions) * 6
    return [
        ("curate.score", "score_document", 1, sample),
        ("curate.refine", "refine_window", windows, min(words, refinement.window)),
        ("graph.extract", "extract_assertions", windows, min(words, refinement.window)),
        ("questions.generate", "reword_question", max(questions, 1), 100),
        ("chunks.qchunker", "question_outline", 1, words),
        ("chunks.qchunker", "segment_text", 1, words),
        ("chunks.qchunker", "review_chunk", chunks, words),
        ("chunks.qchunker", "complete_chunk", chunks * _COMPLETED_SHARE, 2 * runtime.settings.chunks.size),
        ("chunks.hichunk", "assign_levels", windows, min(words, refinement.window)),
        ("evaluate.score", "answer_question", asked, budget),
    ]

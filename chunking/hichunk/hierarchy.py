"""HiChunk over one document: visible sentences, iterative levels, tree with HC-n leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chunking.headings import visible
from chunking.hichunk.inference import infer
from chunking.hichunk.levels import (
    MAX_LEVEL,
    RULES_PROMPT,
    AssignLevels,
    LevelsIn,
    Point,
    prompt_around,
    salvage,
)
from chunking.hichunk.tree import build_tree
from chunking.partition import SegmentResult
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected
from models.languages import language_of
from models.prompts import neutral

if TYPE_CHECKING:
    from models import Models


@dataclass(frozen=True)
class HiChunkOptions:
    """Options of one run: leaf size and window in tokens, characters of a sentence that the model sees."""

    size: int = 200
    window: int = 16_384
    view: int = 100
    max_level: int = MAX_LEVEL


def hichunk(
    text: str, table: SentenceVectors, models: Models, language: str, options: HiChunkOptions
) -> SegmentResult:
    """Level tree of a text whose leaves are HC-n.

    A window whose answer is refused gives no points and is recorded; the others
    count. Raises the transient and final errors of the model layer.
    """
    skill = AssignLevels()
    views = [visible(text[start:end])[: options.view] for start, end in table.sentences]
    # The longest index that a line can carry is counted, so that renumbering never exceeds the window.
    costs = [models.count_tokens(f"{len(views)} @ {neutral(view)}\n") for view in views]
    offline = models.is_offline(skill.name)
    prompt = RULES_PROMPT[language_of(language)] if offline else models.count_tokens(prompt_around(language))
    gaps = _gaps(table) if offline else []
    problems: list[dict[str, Any]] = []

    def levels(start: int, count: int, residual: list[int]) -> list[Point]:
        shown = [*residual, *range(start, start + count)]
        given = LevelsIn(
            tuple(views[i] for i in shown),
            len(residual),
            language,
            tuple(gaps[i] for i in shown) if gaps else (),
        )
        try:
            answer = models.run(skill, given)
        except AnswerRejected as error:
            problems.append({"start": start, "refused": str(error)})
            return []
        kept, bad = salvage(answer.value.points, len(shown))
        if bad:
            problems.append({"start": start, "dropped": bad[:20], "dropped_count": len(bad)})
        return kept

    found = infer(costs, prompt, options.window, levels)
    nodes = build_tree(found.points, table, options.size, options.max_level)
    record = {
        "levels": {
            "source": models.identity(skill),
            "points": [list(point) for point in found.points],
            "windows": found.windows,
            "problems": problems,
        }
    }
    return SegmentResult(text, "hichunk", nodes, record=record)


def _gaps(table: SentenceVectors) -> list[float]:
    """Embedding distance before each sentence; 0 before the first."""
    return [0.0, *[float(gap) for gap in table.gaps()]] if len(table) else []

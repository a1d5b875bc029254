"""LumberChunker (Duarte et al. 2024): from each window the model names the first paragraph on something else."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from chunking.errors import no_rule
from chunking.headings import visible
from chunking.partition import SegmentResult
from chunking.prompted.windows import Tally, partition
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

if TYPE_CHECKING:
    from models import Models

METHOD = "lumberchunker"
_SHARE = 4  # a paragraph over a quarter of the window is shown sentence by sentence
_VIEW = 2_000  # characters of a paragraph that are shown


@dataclass(frozen=True)
class ShiftIn:
    """Paragraphs of a window without heading marks; the first one has the number ``first``."""

    paragraphs: tuple[str, ...]
    first: int
    language: str


class Shift(BaseModel):
    """The paragraph at which the content first changes."""

    id: int | None = Field(description="its number; null where the content does not change")


class FindShift(Skill[ShiftIn, Shift]):
    """Numbered paragraphs to the first one whose content differs from those before it."""

    name: ClassVar[str] = "find_shift"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Shift
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "find_shift")

    def values(self, given: ShiftIn) -> dict[str, Quoted]:
        """One line a paragraph, whatever blanks it holds."""
        lines = [
            f"ID {number}: {' '.join(paragraph.split())[:_VIEW]}"
            for number, paragraph in enumerate(given.paragraphs, start=given.first)
        ]
        return {"paragraphs": Quoted("\n".join(lines), "paragraphs")}

    def check(self, given: ShiftIn, answer: Shift) -> Verdict:
        """The number is of a paragraph shown, and not of the first one: every answer makes progress."""
        low, high = given.first + 1, given.first + len(given.paragraphs) - 1
        if answer.id is not None and not low <= answer.id <= high:
            return Verdict.ask_again(f"ID {answer.id} is not one of {low} to {high}")
        return ACCEPT

    def offline(self, given: ShiftIn) -> Shift:
        """Absent: cutting at embedding gaps is the method ``semantic``, not this one."""
        no_rule(METHOD, self.name)


def lumber(
    text: str, vectors: SentenceVectors, models: Models, language: str, size: int, window: int
) -> SegmentResult:
    """Partition a text by the model's shifts; sizes and the window in tokens.

    A window whose answer is refused is a chunk as it is. Raises OfflineUnavailable
    without a model, AnswerRejected where every answer was refused, and the other
    errors of the model layer.
    """
    if models.is_offline(FindShift.name):
        no_rule(METHOD, FindShift.name)
    firsts = _paragraphs(vectors, window)
    edges = [*firsts, len(vectors)]
    sums = vectors.token_sums[np.array(edges)]
    tally, skill = Tally(), FindShift()
    wanted: list[int] = []
    low = 0
    while low < len(firsts):
        # as published, the paragraph that passes the window is still shown
        high = min(bisect_left(sums, sums[low] + window), len(firsts))
        high = max(high, min(low + 2, len(firsts)))
        following = high
        if high - low > 1:
            tally.windows += 1
            shown = tuple(_view(vectors, edges[i], edges[i + 1]) for i in range(low, high))
            try:
                answer = models.run(skill, ShiftIn(shown, low, language))
            except AnswerRejected as error:
                tally.refuse(edges[low], edges[high], error)
            else:
                tally.source = answer.source
                following = high if answer.value.id is None else answer.value.id
        if following < len(firsts):
            wanted.append(firsts[following])
        low = following
    tally.close()
    record = {**tally.as_dict(), "paragraphs": len(firsts), "window": window}
    return partition(text, METHOD, vectors, wanted, size, record)


def _paragraphs(vectors: SentenceVectors, window: int) -> list[int]:
    """First sentences of the paragraphs: lines, and the sentences of lines that are long."""
    lines = [0]
    for index, (start, end) in enumerate(vectors.sentences[:-1]):
        sentence = vectors.text[start:end]
        if any(char in "\n\r\u2028\u2029" for char in sentence[len(sentence.rstrip()) :]):
            lines.append(index + 1)
    firsts: list[int] = []
    for low, high in zip(lines, [*lines[1:], len(vectors)], strict=True):
        long = vectors.token_sums[high] - vectors.token_sums[low] > window / _SHARE
        firsts += range(low, high) if long else [low]
    return firsts


def _view(vectors: SentenceVectors, low: int, high: int) -> str:
    return visible(vectors.text[vectors.sentences[low][0] : vectors.sentences[high - 1][1]])

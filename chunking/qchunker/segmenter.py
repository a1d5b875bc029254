"""Agent 2, the segmenter: candidate partitions along the outline, the best by ChunkScore (section 3.2.2).

Candidates come from p draws of the model (multi-path sampling) and from the
offline samplers; they compete, and each candidate's origin is recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from chunking.baselines import capped_cuts
from chunking.chunkscore import Selection, Selector
from chunking.partition import Span, spans_from_cuts
from chunking.qchunker.heads import heads_of, locate_heads
from chunking.qchunker.outline import OutlineQuestion
from chunking.qchunker.sampling import Candidate, offline_candidates
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected, ModelError
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Answer, Skill, Verdict

if TYPE_CHECKING:
    from models import Models


class Heads(BaseModel):
    """The first few words of every chunk, in document order, copied from the document."""

    heads: list[str]


@dataclass(frozen=True)
class SegmentIn:
    """A document window, its outline questions, and the largest chunk in tokens.

    ``candidates`` are what the offline samplers found (their first is the offline answer).
    """

    text: str
    language: str
    questions: tuple[str, ...]
    size: int
    candidates: tuple[tuple[Span, ...], ...] = field(default=(), repr=False)


class SegmentText(Skill[SegmentIn, Heads]):
    """Document and outline to chunk heads (the mask form). Offline: the preferred offline sampler."""

    name: ClassVar[str] = "segment_text"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = Heads
    prompts: ClassVar[Prompts] = Prompts(__package__, "segment_text")

    def values(self, given: SegmentIn) -> dict[str, int | Quoted]:
        """Document first, then outline and size."""
        outline = [
            f"{i}. {' '.join(question.split())}" for i, question in enumerate(given.questions, start=1)
        ]
        return {
            "document": Quoted(given.text),
            "questions": Quoted("\n".join(outline), "questions"),
            "size": given.size,
        }

    def check(self, given: SegmentIn, answer: Heads) -> Verdict:
        """At least half of the heads must be found in order."""
        if not answer.heads:
            return Verdict.ask_again("there is no head")
        located = locate_heads(given.text, answer.heads)
        if 2 * len(located.unresolved) > len(answer.heads):
            return Verdict.ask_again(
                f"these heads are not in the document in this order: {list(located.unresolved[:5])}"
            )
        return ACCEPT

    def offline(self, given: SegmentIn) -> Heads:
        """Heads of the preferred offline candidate."""
        spans = given.candidates[0] if given.candidates else ((0, len(given.text)),)
        return Heads(heads=heads_of(given.text, spans))


@dataclass(frozen=True)
class Segmentation:
    """All candidates with their standings, and the winner's number."""

    candidates: tuple[Candidate, ...]
    selection: Selection

    @property
    def cuts(self) -> tuple[int, ...]:
        """Inner cuts of the winner, sentence indices."""
        return self.candidates[self.selection.best].cuts

    def record(self) -> dict[str, Any]:
        """Candidates with scores, and why one won, as plain data."""
        rows = []
        for candidate, standing in zip(self.candidates, self.selection.standings, strict=True):
            rows.append(
                {
                    "origin": candidate.origin,
                    "k": standing.k,
                    "li": _rounded(standing.li),
                    "sd": _rounded(standing.sd),
                    "z_li": _rounded(standing.z_li),
                    "z_sd": _rounded(standing.z_sd),
                    "z": _rounded(standing.z),
                    "why_not": standing.why_not,
                    "heads_not_found": list(candidate.unresolved),
                    "heads_found_fuzzily": candidate.fuzzy,
                    "cut_for_size": candidate.cut_for_size,
                }
            )
        best = self.selection.standings[self.selection.best]
        why = (
            "highest standardised ChunkScore"
            if best.z is not None
            else "no candidate can be compared with random partitions: the first was taken"
        )
        return {"candidates": rows, "selected": self.selection.best, "why": why}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def model_candidates(
    vectors: SentenceVectors,
    models: Models,
    questions: Sequence[OutlineQuestion],
    anchors: Sequence[int | None],
    language: str,
    size: int,
    window: int,
) -> tuple[list[Candidate], list[str]]:
    """One candidate per draw of the model; draws whose answer was refused are told, not replaced.

    All draws open with the same window, so they are asked for together. From
    there each goes its own way, window after window, beside the others. Raises the
    model layer's transient and final errors when the draws under way have ended.
    """
    skill = SegmentText()
    draws = range(models.draws(skill.name))
    paths = [_Path(vectors, questions, anchors, language, size, window) for _ in draws]
    opening = models.run_many(skill, [paths[0].ask()], draws=draws)

    def follow(draw: int) -> ModelError | None:
        path, answer = paths[draw], opening[draw]
        try:
            while not isinstance(answer, AnswerRejected):
                path.take(answer)
                if path.ended:
                    return None
                answer = models.run(skill, path.ask(), draw=draw)
        except ModelError as error:
            return error
        return answer

    with ThreadPoolExecutor(max_workers=models.concurrency(skill.name)) as pool:
        errors = list(pool.map(follow, draws))
    for error in errors:
        if error is not None and not isinstance(error, AnswerRejected):
            raise error
    found = [path.candidate(draw) for draw, path in enumerate(paths) if errors[draw] is None]
    return found, [f"draw {draw}: {error}" for draw, error in enumerate(errors) if error is not None]


@dataclass
class _Path:
    """One draw on its way over the document: each window begins with the last chunk of the one before."""

    vectors: SentenceVectors
    questions: Sequence[OutlineQuestion]
    anchors: Sequence[int | None]
    language: str
    size: int
    window: int
    low: int = 0  # the sentence that the next window begins with
    cuts: set[int] = field(default_factory=set)
    unresolved: list[str] = field(default_factory=list)
    fuzzy: int = 0
    source: str = ""
    ended: bool = False

    def ask(self) -> SegmentIn:
        """The next window with the questions that belong to it, and those that belong nowhere."""
        high = self._high
        begin, end = self.vectors.sentences[self.low][0], self.vectors.sentences[high - 1][1]
        asked = tuple(
            question.question
            for question, at in zip(self.questions, self.anchors, strict=True)
            if at is None or self.low <= at < high
        )
        return SegmentIn(self.vectors.text[begin:end], self.language, asked, self.size)

    def take(self, answer: Answer[Heads]) -> None:
        """Add the window's cuts and go on to the next window."""
        starts = [start for start, _ in self.vectors.sentences]
        low, high, given = self.low, self._high, self.ask()
        located = locate_heads(
            given.text, answer.value.heads, [start - starts[low] for start in starts[low:high]]
        )
        self.source = answer.source
        self.unresolved += located.unresolved
        self.fuzzy += located.fuzzy
        found = {sentence_at(starts, starts[low] + at) for at in located.starts}
        inner = sorted(cut for cut in found if low < cut < high)
        self.cuts.update(inner)
        self.ended = high == len(starts)
        if not self.ended:
            self.low = inner[-1] if inner else high
            self.cuts.add(self.low)

    def candidate(self, draw: int) -> Candidate:
        """What the draw amounts to; chunks over the size are cut like everyone's."""
        cuts = capped_cuts(sorted(self.cuts), self.vectors, self.size)
        return Candidate(
            f"{self.source}, draw {draw}",
            tuple(cuts),
            tuple(self.unresolved),
            self.fuzzy,
            len(cuts) - len(self.cuts),
        )

    @property
    def _high(self) -> int:
        return window_end(self.vectors, self.low, self.window)


def sentence_windows(vectors: SentenceVectors, window: int) -> list[Span]:
    """Stretches of whole sentences within ``window`` tokens, one behind the other."""
    spans: list[Span] = []
    low = 0
    while low < len(vectors):
        high = window_end(vectors, low, window)
        spans.append((vectors.sentences[low][0], vectors.sentences[high - 1][1]))
        low = high
    return spans


def window_end(vectors: SentenceVectors, low: int, window: int) -> int:
    """First sentence behind the longest run from ``low`` within ``window`` tokens; at least one sentence."""
    limit = vectors.token_sums[low] + window
    high = bisect_left(vectors.token_sums, limit + 1e-9) - 1
    return min(max(int(high), low + 1), len(vectors))


def sentence_at(starts: Sequence[int], offset: int) -> int:
    """The sentence whose start is nearest to the offset."""
    index = bisect_left(starts, offset)
    if index == len(starts) or (index and offset - starts[index - 1] <= starts[index] - offset):
        return max(index - 1, 0)
    return index


def segment(
    vectors: SentenceVectors,
    selector: Selector,
    offline: Sequence[Candidate],
    drawn: Sequence[Candidate] = (),
) -> Segmentation:
    """Let all candidates compete by standardised ChunkScore."""
    candidates = (*drawn, *offline)
    return Segmentation(candidates, selector.choose([candidate.cuts for candidate in candidates]))


def spans_of(vectors: SentenceVectors, cuts: Sequence[int]) -> list[Span]:
    """Character spans between sentence cuts."""
    return spans_from_cuts((vectors.sentences[cut][0] for cut in cuts), len(vectors.text))


__all__ = [
    "Heads",
    "SegmentIn",
    "SegmentText",
    "Segmentation",
    "model_candidates",
    "offline_candidates",
    "segment",
    "sentence_at",
    "sentence_windows",
    "spans_of",
    "window_end",
]

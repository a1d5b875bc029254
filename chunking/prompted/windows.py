"""What the prompted chunkers share: reading window after window, and finishing a partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chunking.baselines import capped_cuts
from chunking.partition import SegmentResult, flat, spans_from_cuts
from chunking.qchunker.segmenter import window_end
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected


@dataclass(frozen=True)
class WindowIn:
    """A document (or a window of one), its language, and the largest chunk in tokens."""

    text: str
    language: str
    size: int


@dataclass
class Tally:
    """What a model was asked about one document, and what became of its answers."""

    source: str = ""
    windows: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)
    """Windows whose answer was refused, with the reason; they stay uncut but for the size."""

    def refuse(self, start: int, end: int, error: AnswerRejected) -> None:
        """Note a refused window (sentence indices)."""
        self.refused.append({"sentences": [start, end], "reason": str(error)[:400]})

    def close(self) -> None:
        """Raise AnswerRejected where no answer at all could be used: that is no partition of the model's."""
        if self.windows and len(self.refused) == self.windows:
            raise AnswerRejected(
                f"no answer of {self.windows} could be used; the last one: {self.refused[-1]['reason']}",
                reason="check",
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the record."""
        return {"source": self.source, "windows": self.windows, "refused": self.refused}


def read_windows(
    vectors: SentenceVectors, window: int, read: Callable[[int, int], Sequence[int]], tally: Tally
) -> list[int]:
    """Sentences that chunks begin at, from answers to windows of whole sentences within ``window`` tokens.

    ``read(low, high)`` gives those of one window. The last chunk of a window, whose
    end is not seen, is read again as the beginning of the next one.
    """
    cuts: list[int] = []
    low = 0
    while low < len(vectors):
        high = window_end(vectors, low, window)
        tally.windows += 1
        try:
            inner = sorted({cut for cut in read(low, high) if low < cut < high})
        except AnswerRejected as error:
            tally.refuse(low, high, error)
            inner = []
        cuts += inner
        if high == len(vectors):
            break
        low = inner[-1] if inner else high
        cuts.append(low)
    tally.close()
    return sorted(set(cuts))


def partition(
    text: str, method: str, vectors: SentenceVectors, wanted: Sequence[int], size: int, record: dict[str, Any]
) -> SegmentResult:
    """Chunks between the wanted sentence cuts, cut again where they are over ``size`` tokens."""
    cuts = capped_cuts(wanted, vectors, size)
    nodes = flat(spans_from_cuts((vectors.sentences[cut][0] for cut in cuts), len(text)))
    counts = {"chunks": len(wanted) + 1, "cut_for_size": len(cuts) - len(wanted)}
    return SegmentResult(text, method, nodes, record={"generator": {**record, **counts}})

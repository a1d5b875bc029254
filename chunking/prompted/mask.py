"""MoC's meta-chunker (Zhao et al. 2025) in its mask form: each chunk is named by its first and last words.

The published resolution takes the first place that matches anywhere. Here heads
are located in order (``chunking.qchunker.heads``); where a head is lost, the last
words of the chunk before say where it began.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, Field

from chunking.errors import no_rule
from chunking.partition import SegmentResult
from chunking.prompted.windows import Tally, WindowIn, partition, read_windows
from chunking.qchunker.heads import locate_heads
from chunking.qchunker.segmenter import sentence_at
from chunking.vectors import SentenceVectors
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

if TYPE_CHECKING:
    from models import Models

METHOD = "meta-chunker"
_MASK = re.compile(r"\s*\[\s*mask\s*\]\s*", re.IGNORECASE)
_SHORTEST_TAIL = 4  # characters; fewer are found anywhere


class Masked(BaseModel):
    """Chunks in mask form, in document order."""

    chunks: list[str] = Field(description="first words of the chunk, [MASK], its last words; copied exactly")


class MetaChunk(Skill[WindowIn, Masked]):
    """Document to chunks whose middle is masked."""

    name: ClassVar[str] = "meta_chunk"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Masked
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "meta_chunk")

    def values(self, given: WindowIn) -> dict[str, int | Quoted]:
        """The document, then the size."""
        return {"document": Quoted(given.text), "size": given.size}

    def check(self, given: WindowIn, answer: Masked) -> Verdict:
        """At least half of the chunks are found in order."""
        if not answer.chunks:
            return Verdict.ask_again("there is no chunk")
        located = locate_masks(given.text, answer.chunks)
        if 2 * len(located.lost) > len(answer.chunks):
            return Verdict.ask_again(f"not in the document in this order: {list(located.lost[:5])}")
        return ACCEPT

    def offline(self, given: WindowIn) -> Masked:
        """Absent: it would be another method under this one's name."""
        no_rule(METHOD, self.name)


@dataclass(frozen=True)
class LocatedMasks:
    """Where chunks begin (increasing offsets), the chunks that were not found, and how the others were."""

    starts: tuple[int, ...]
    lost: tuple[str, ...]
    fuzzy: int
    by_tail: int


def locate_masks(text: str, chunks: Sequence[str], snap: Sequence[int] = ()) -> LocatedMasks:
    """Find the beginnings of masked chunks in order; ``snap`` as in ``locate_heads``."""
    pairs = [_halves(chunk) for chunk in chunks]
    heads = locate_heads(text, [head for head, _ in pairs], snap)
    found = dict(zip(heads.heads, heads.starts, strict=True))
    lost: list[str] = []
    by_tail = 0
    for index, (head, tail) in enumerate(pairs):
        if index not in found:
            at = _behind(text, pairs, found, index)
            if at is None:
                lost.append((head or tail)[:120])
            else:
                found[index] = at
                by_tail += 1
    return LocatedMasks(tuple(found[index] for index in sorted(found)), tuple(lost), heads.fuzzy, by_tail)


def _halves(chunk: str) -> tuple[str, str]:
    """First and last words; a chunk without a mask is short and stands in full."""
    parts = _MASK.split(chunk.strip())
    return (parts[0], parts[-1]) if len(parts) > 1 else (chunk.strip(), "")


def _behind(text: str, pairs: Sequence[tuple[str, str]], found: dict[int, int], index: int) -> int | None:
    """Where the chunk before ends by its last words, if that is before the next chunk that was found."""
    if index - 1 not in found:
        return None
    head, tail = pairs[index - 1]
    if len(tail) < _SHORTEST_TAIL:
        return None
    start = found[index - 1]
    limit = min((at for at in found.values() if at > start), default=len(text))
    at = text.find(tail, start + min(len(head), limit - start), limit)
    end = at + len(tail)
    return end if at >= 0 and end < limit and text[end:limit].strip() else None


def meta(
    text: str, vectors: SentenceVectors, models: Models, language: str, size: int, window: int
) -> SegmentResult:
    """Partition a text by masked chunks; sizes and windows in tokens.

    A window whose answer is refused is cut for its size only. Raises
    OfflineUnavailable without a model, AnswerRejected where every answer was
    refused, and the other errors of the model layer.
    """
    if models.is_offline(MetaChunk.name):
        no_rule(METHOD, MetaChunk.name)
    tally, skill = Tally(), MetaChunk()
    starts = [start for start, _ in vectors.sentences]
    lost: list[str] = []
    counts = {"heads_found_fuzzily": 0, "found_by_tail": 0}

    def read(low: int, high: int) -> list[int]:
        begin, end = starts[low], vectors.sentences[high - 1][1]
        answer = models.run(skill, WindowIn(text[begin:end], language, size))
        snap = [start - begin for start in starts[low:high]]
        located = locate_masks(text[begin:end], answer.value.chunks, snap)
        tally.source = answer.source
        lost.extend(located.lost)
        counts["heads_found_fuzzily"] += located.fuzzy
        counts["found_by_tail"] += located.by_tail
        return [sentence_at(starts, begin + at) for at in located.starts]

    wanted = read_windows(vectors, window, read, tally)
    record = {**tally.as_dict(), "heads_not_found": lost, **counts}
    return partition(text, METHOD, vectors, wanted, size, record)

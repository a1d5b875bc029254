"""The plain request: a model copies the document chunk by chunk, and the copies say where to cut.

Published baselines take the model's text as the chunks. Here a copy is only
looked for in the document; what a model changed, invented or left out shows in
the record and never in a chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, Field

from chunking.errors import no_rule
from chunking.partition import SegmentResult
from chunking.prompted.windows import Tally, WindowIn, partition, read_windows
from chunking.qchunker.heads import FUZZY_SCORE
from chunking.qchunker.segmenter import sentence_at
from chunking.vectors import SentenceVectors
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

if TYPE_CHECKING:
    from models import Models

METHOD = "direct-llm"
LONGEST = 1.5  # times as many characters as the document, blanks apart, from which an answer is no copy
_HEAD = 40  # characters of a copy that is not verbatim by which its place is looked for
_LEAST_FUZZY = 6


class Copies(BaseModel):
    """The chunks in full, in document order."""

    chunks: list[str] = Field(description="the text of each chunk, copied exactly")


class DirectChunk(Skill[WindowIn, Copies]):
    """Document to the full texts of its chunks."""

    name: ClassVar[str] = "direct_chunk"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Copies
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "direct_chunk")

    def values(self, given: WindowIn) -> dict[str, int | Quoted]:
        """The document, then the size."""
        return {"document": Quoted(given.text), "size": given.size}

    def check(self, given: WindowIn, answer: Copies) -> Verdict:
        """Not far longer than the document, and at least half of the copies stand in it, in order."""
        if not any(chunk.strip() for chunk in answer.chunks):
            return Verdict.ask_again("there is no chunk")
        length = sum(len(_squeezed(chunk)) for chunk in answer.chunks)
        most = max(LONGEST * len(_squeezed(given.text)), 40)
        if length > most:
            return Verdict.ask_again(f"the chunks have {length} characters, the document allows {most:.0f}")
        located = locate_copies(given.text, answer.chunks)
        if 2 * len(located.lost) > len(answer.chunks):
            return Verdict.ask_again(f"not in the document in this order: {list(located.lost[:5])}")
        return ACCEPT

    def offline(self, given: WindowIn) -> Copies:
        """Absent: it would be another method under this one's name."""
        no_rule(METHOD, self.name)


@dataclass(frozen=True)
class LocatedCopies:
    """Where copies begin (increasing offsets), those that were not found, and how many were not verbatim."""

    starts: tuple[int, ...]
    lost: tuple[str, ...]
    changed: int


def locate_copies(text: str, chunks: Sequence[str]) -> LocatedCopies:
    """Find copies in order, blanks apart: whole, else by their first words, exactly and then nearly."""
    places = [index for index, char in enumerate(text) if not char.isspace()]
    plain = "".join(text[index] for index in places)
    starts: list[int] = []
    lost: list[str] = []
    cursor = changed = 0
    for chunk in chunks:
        copy = _squeezed(chunk)
        if not copy:
            continue
        at = plain.find(copy, cursor)
        if at >= 0:
            following = at + len(copy)
        else:
            at = _nearly(plain, copy[:_HEAD], cursor)
            if at < 0:
                lost.append(" ".join(chunk.split())[:120])
                continue
            changed += 1
            following = at + min(len(copy[:_HEAD]), len(plain) - at)
        starts.append(places[at])
        cursor = following
    return LocatedCopies(tuple(starts), tuple(lost), changed)


def _nearly(plain: str, head: str, cursor: int) -> int:
    """Where a head stands from the cursor on, -1 where it does not."""
    at = plain.find(head, cursor)
    if at >= 0 or len(head) < _LEAST_FUZZY:
        return at
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(head, plain[cursor:], score_cutoff=FUZZY_SCORE)
    if found is None or found.src_end - found.src_start < 0.7 * len(head):
        return -1
    return cursor + int(found.dest_start)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def direct(
    text: str, vectors: SentenceVectors, models: Models, language: str, size: int, window: int
) -> SegmentResult:
    """Partition a text by a model's copies; sizes and windows in tokens.

    A window whose answer is refused is cut for its size only. Raises
    OfflineUnavailable without a model, AnswerRejected where every answer was
    refused, and the other errors of the model layer.
    """
    if models.is_offline(DirectChunk.name):
        no_rule(METHOD, DirectChunk.name)
    tally, skill = Tally(), DirectChunk()
    starts = [start for start, _ in vectors.sentences]
    lost: list[str] = []
    changed = 0

    def read(low: int, high: int) -> list[int]:
        nonlocal changed
        begin, end = starts[low], vectors.sentences[high - 1][1]
        answer = models.run(skill, WindowIn(text[begin:end], language, size))
        located = locate_copies(text[begin:end], answer.value.chunks)
        tally.source = answer.source
        lost.extend(located.lost)
        changed += located.changed
        return [sentence_at(starts, begin + at) for at in located.starts]

    wanted = read_windows(vectors, window, read, tally)
    record = {**tally.as_dict(), "copies_not_found": lost, "copies_changed": changed}
    return partition(text, METHOD, vectors, wanted, size, record)

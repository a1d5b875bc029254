"""Chunk heads: the mask form of a partition, and finding heads in the text again.

A model names each chunk by its first few words. Heads are located with a moving
cursor, exact first, then fuzzy; chunk i reaches from head i to head i + 1, so
cover and disjointness hold whatever the model says.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from chunking.partition import Span

_SHORTEST = 8  # characters of a head, where the chunk has them
_LEAST_FUZZY = 6  # shorter heads are looked for literally only
_LONGEST = 120
FUZZY_SCORE = 85.0  # rapidfuzz partial ratio (0-100) from which a place counts as the head's


@dataclass(frozen=True)
class Located:
    """Where heads were found: increasing start offsets, and the heads that were not found."""

    starts: tuple[int, ...]
    unresolved: tuple[str, ...]
    fuzzy: int = 0
    heads: tuple[int, ...] = field(default=())  # for each start, the index of its head


def heads_of(text: str, spans: Sequence[Span]) -> list[str]:
    """The shortest heads that :func:`locate_heads` leads back to the same spans.

    Where a text repeats itself to its end (``aaaa``) no head can: the rest of the text is given.
    """
    heads = []
    cursor = 0
    for start, end in spans:
        length = min(_SHORTEST, end - start)
        while text.find(text[start : start + length], cursor) != start and start + length < len(text):
            length = min(length + max(1, length // 2), len(text) - start)
        heads.append(text[start : start + length])
        cursor = start + 1
    return heads


def locate_heads(text: str, heads: Sequence[str], snap: Sequence[int] = ()) -> Located:
    """Find heads in order, each behind the one before.

    ``snap``: sorted offsets that fuzzy finds are moved to (sentence starts), since
    an approximate place is not a boundary. A head that is not found, or only
    before the cursor, is unresolved and merges its chunk into the one before.
    """
    starts: list[int] = []
    indices: list[int] = []
    unresolved: list[str] = []
    cursor = behind = fuzzy = 0
    for index, head in enumerate(heads):
        at, exact = _find(text, head, cursor, behind)
        if at is not None and not exact:
            at = _nearest(snap, at, cursor)
            fuzzy += at is not None
        if at is None:
            unresolved.append(head[:_LONGEST])
            continue
        starts.append(at)
        indices.append(index)
        cursor = at + 1
        behind = at + min(
            len(head.strip()), _LONGEST
        )  # a repeated head is not its own next place, nearly matched
    return Located(tuple(starts), tuple(unresolved), fuzzy, tuple(indices))


def _find(text: str, head: str, cursor: int, behind: int) -> tuple[int | None, bool]:
    if not head.strip():
        return None, True
    for form in (head, head.strip()):
        at = text.find(form, cursor)
        if at >= 0:
            return at, True
    wanted = head.strip()[:_LONGEST].rstrip("…. ")
    if len(wanted) < _LEAST_FUZZY:
        return None, False
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(wanted, text[behind:], score_cutoff=FUZZY_SCORE)
    if found is None or found.src_end - found.src_start < 0.7 * len(wanted):
        return None, False
    return behind + int(found.dest_start), False


def _nearest(snap: Sequence[int], at: int, cursor: int) -> int | None:
    """The snap offset nearest to ``at`` that the cursor has not passed; ``at`` itself without snaps."""
    if not snap:
        return at
    index = bisect_left(snap, at)
    near = [offset for offset in snap[max(index - 1, 0) : index + 1] if offset >= cursor]
    return min(near, key=lambda offset: abs(offset - at), default=None)

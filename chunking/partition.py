"""Partitions: spans that tile a text, and the nodes of a level tree above them.

A partition of a document is an ordered list of disjoint spans that cover it;
joined they give the text back exactly (QChunker design, "Partition").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chunking.errors import PartitionError
from corpus.ids import digest

Span = tuple[int, int]
Counter = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a partition. Leaves tile the text; children tile their parent.

    ``level`` 0 is the document, 1 the coarsest division; ``parent`` is the index
    of the parent in the same list, None at the top.
    """

    start: int
    end: int
    level: int = 1
    parent: int | None = None
    leaf: bool = True


@dataclass(frozen=True)
class SegmentResult:
    """What a segmenter made of a text.

    ``nodes`` in pre-order (a parent before its children). ``completed`` and
    ``questions`` are by node index: the completer's text where it rewrote, and
    the outline question of a chunk. ``record`` says how it came about.
    """

    text: str
    method: str
    nodes: tuple[Node, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    completed: Mapping[int, str] = field(default_factory=dict)
    questions: Mapping[int, str] = field(default_factory=dict)

    @property
    def leaves(self) -> list[Node]:
        """The chunks, in document order."""
        return [node for node in self.nodes if node.leaf]

    @property
    def spans(self) -> list[Span]:
        """Spans of the leaves."""
        return [(node.start, node.end) for node in self.nodes if node.leaf]

    def ids(self) -> list[str]:
        """One content-derived id per node, in the order of ``nodes``."""
        base = digest("text", self.text, self.method)
        return [node_id(base, index, node) for index, node in enumerate(self.nodes)]


def node_id(partition: str, position: int, node: Node) -> str:
    """Id of a node: hash of its partition, place and span."""
    return digest("chunk", partition, str(position), str(node.start), str(node.end), str(node.level))


def flat(spans: Iterable[Span]) -> tuple[Node, ...]:
    """Nodes of a partition without hierarchy."""
    return tuple(Node(start, end) for start, end in spans)


def check_tiling(spans: Sequence[Span], length: int) -> None:
    """Raise PartitionError unless the spans are ordered, disjoint, not empty and cover 0…length."""
    position = 0
    for index, (start, end) in enumerate(spans):
        if start != position:
            what = "overlaps the one before it" if start < position else "leaves a gap before it"
            raise PartitionError(
                f"the chunks do not tile the text: chunk {index + 1} starts at {start} and {what} (expected {position})"
            )
        if end <= start:
            raise PartitionError(
                f"the chunks do not tile the text: chunk {index + 1} ({start}-{end}) is empty"
            )
        position = end
    if position != length:
        raise PartitionError(
            f"the chunks do not tile the text: they end at {position}, the text has {length} characters"
        )


def spans_from_cuts(cuts: Iterable[int], length: int) -> list[Span]:
    """Spans between inner boundaries (code points); boundaries outside 0…length are ignored."""
    if length == 0:
        return []
    points = [0, *sorted({cut for cut in cuts if 0 < cut < length}), length]
    return list(itertools.pairwise(points))


def pack(text: str, pieces: Sequence[Span], size: int, count: Counter) -> list[Span]:
    """Join neighbouring pieces while together they are at most ``size``; a longer piece stands alone.

    ``count`` need not be additive: where the sum of the pieces comes close to the
    limit, the joined text itself is counted.
    """
    packed: list[Span] = []
    total = joined = 0
    for start, end in pieces:
        own = count(text[start:end])
        if packed and _fits(text, packed[-1][0], end, total + own, joined + 1, size, count):
            packed[-1] = (packed[-1][0], end)
            total, joined = total + own, joined + 1
        else:
            packed.append((start, end))
            total, joined = own, 0
    return packed


def _fits(text: str, start: int, end: int, total: int, joined: int, size: int, count: Counter) -> bool:
    if total + joined <= size:
        return True
    return total <= size + joined and count(text[start:end]) <= size

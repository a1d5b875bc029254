"""From chunk points to the level tree with HC-n leaves (HiChunk, section 4.2).

One counter for fusing and cutting, spans instead of joined strings: leaves tile
the text, children tile their parent, the first node is the document.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from chunking.baselines import capped_cuts
from chunking.borders import cut_worth
from chunking.hichunk.levels import MAX_LEVEL, Point
from chunking.partition import Node
from chunking.vectors import Floats, SentenceVectors


@dataclass(frozen=True)
class Split:
    """Sentences low…high (exclusive) between neighbouring points, with the level at their start."""

    low: int
    high: int
    level: int


@dataclass
class _Branch:
    low: int
    high: int
    level: int
    children: list[_Branch] = field(default_factory=list)


def splits_of(points: Sequence[Point], sentences: int, max_level: int = MAX_LEVEL) -> list[Split]:
    """Text between neighbouring points; the first split has level 1, deeper ones than the limit join on.

    Of two levels on one sentence the coarser counts.
    """
    if sentences == 0:
        return []
    levels: dict[int, int] = {0: 1}
    for index, level in sorted(points):
        if 0 < index < sentences and level <= max_level:
            levels[index] = min(level, levels.get(index, level))
    starts = sorted(levels)
    ends = [*starts[1:], sentences]
    return [Split(low, high, levels[low]) for low, high in zip(starts, ends, strict=True)]


def fuse(splits: Sequence[Split], table: SentenceVectors, size: int) -> list[Split]:
    """Bottom-up, a split takes in *all* its deeper followers when together they are within ``size``."""
    fused = list(splits)
    for level in range(max((s.level for s in fused), default=1), 0, -1):
        passed: list[Split] = []
        i = 0
        while i < len(fused):
            j = i + 1
            while fused[i].level == level and j < len(fused) and fused[j].level > level:
                j += 1
            if j > i + 1 and table.fits(fused[i].low, fused[j - 1].high, size):
                passed.append(Split(fused[i].low, fused[j - 1].high, level))
                i = j
            else:
                passed.append(fused[i])
                i += 1
        fused = passed
    return fused


def build_tree(
    points: Sequence[Point], table: SentenceVectors, size: int, max_level: int = MAX_LEVEL
) -> tuple[Node, ...]:
    """Nodes in pre-order: sections by level, leaves of at most ``size`` tokens (HC-n).

    A sentence longer than the size stands alone. A node with one child of the
    same span is replaced by the child (skipped levels make no chains).
    """
    splits = fuse(splits_of(points, len(table), max_level), table, size)
    if not splits:
        return ()
    root = _Branch(0, len(table), 0)
    fit = all(table.fits(split.low, split.high, size) for split in splits)
    _grow(root, splits, table, size, None if fit else cut_worth(table))
    nodes: list[Node] = []
    _emit(_collapsed(root), None, nodes, table)
    return tuple(nodes)


def _grow(
    root: _Branch, splits: Sequence[Split], table: SentenceVectors, size: int, worth: Floats | None
) -> None:
    """Nest the splits by level; a section's own text becomes leaves before its sub-sections."""
    path = [root]
    for i, split in enumerate(splits):
        while path[-1].level >= split.level:
            path.pop()
        last = next((j for j in range(i + 1, len(splits)) if splits[j].level <= split.level), len(splits))
        section = _Branch(split.low, splits[last - 1].high, split.level)
        path[-1].children.append(section)
        pieces = _pieces(split, table, size, worth)
        if len(pieces) > 1 or last > i + 1:
            section.children = [_Branch(low, high, split.level + 1) for low, high in pieces]
        path.append(section)


def _pieces(split: Split, table: SentenceVectors, size: int, worth: Floats | None) -> list[tuple[int, int]]:
    """Parts of at most ``size`` tokens, cut where a cut is worth most: filled up, they would break paragraphs."""
    edges = [split.low, *capped_cuts([], table, size, worth, span=(split.low, split.high)), split.high]
    return list(itertools.pairwise(edges))


def _collapsed(branch: _Branch) -> _Branch:
    while len(branch.children) == 1:
        branch = branch.children[0]
    branch.children = [_collapsed(child) for child in branch.children]
    return branch


def _emit(branch: _Branch, parent: int | None, nodes: list[Node], table: SentenceVectors) -> None:
    start, end = table.sentences[branch.low][0], table.sentences[branch.high - 1][1]
    nodes.append(Node(start, end, branch.level, parent, leaf=not branch.children))
    own = len(nodes) - 1
    for child in branch.children:
        _emit(child, own, nodes, table)

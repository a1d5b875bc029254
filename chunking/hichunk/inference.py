"""Iterative inference over documents longer than the window (HiChunk, Algorithm 1)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chunking.hichunk.levels import Point

# levels(start, count, residual indices) → local points on [residual…, S[start:start+count]…], salvaged
LevelsCall = Callable[[int, int, list[int]], list[Point]]

_TRIES = ((2, 3, 20), (1, 2, 15))  # first pieces, last pieces, sentences of each


@dataclass
class Inference:
    """Global points, and what each window was and gave."""

    points: list[Point] = field(default_factory=list)
    windows: list[dict[str, Any]] = field(default_factory=list)


def infer(costs: Sequence[int], prompt: int, window: int, levels: LevelsCall) -> Inference:
    """Chunk points of N sentences with the model's view limited to ``window`` tokens.

    ``costs``: tokens of each sentence's line as the model sees it; ``prompt``: of
    the instruction. Every sentence is read at least once and each window makes
    progress; a sentence that does not fit goes alone. The first sentence gets a
    level-1 point whatever the model says.
    """
    total, start = len(costs), 0
    residual: list[int] = []
    found = Inference()
    while start < total:
        used = prompt + sum(costs[i] for i in residual)
        count = 0
        while start + count < total and used + costs[start + count] <= window:
            used += costs[start + count]
            count += 1
        count = max(count, 1)
        answer = levels(start, count, residual)
        shown = range(len(residual), len(residual) + count)  # residual lines get no points
        local = [(index - len(residual) + start, level) for index, level in answer if index in shown]
        found.windows.append(
            {"start": start, "sentences": count, "residual": len(residual), "points": len(local)}
        )
        if start + count >= total:
            found.points += local
            break
        coarse = [index for index, level in local if level == 1]
        if len(coarse) >= 2:
            cut = coarse[-1]
            found.points += [point for point in local if point[0] < cut]
            start, residual = cut, []
        else:
            found.points += local
            start += count
            residual = residual_lines(found.points, start, costs, window)
    found.points = _from_first(found.points) if total else []
    return found


def _from_first(points: list[Point]) -> list[Point]:
    """The first sentence has level 1."""
    return [(0, 1), *[point for point in points if point[0] > 0]]


def residual_lines(points: Sequence[Point], start: int, costs: Sequence[int], window: int) -> list[int]:
    """Sentences that remind the model of the level-1 segment it is in.

    That segment is cut at its level-2 points; its first two and last three pieces
    are shown, at most 20 sentences each; over half of the window (1, 2, 15) is
    tried, then none.
    """
    begin = max((index for index, level in points if level == 1), default=0)
    inner = [index for index, level in points if level == 2 and begin < index < start]
    edges = [begin, *inner, start]
    pieces = list(itertools.pairwise(edges))
    for first, last, most in _TRIES:
        chosen = pieces if len(pieces) <= first + last else [*pieces[:first], *pieces[-last:]]
        lines = [i for low, high in chosen for i in range(low, min(high, low + most))]
        if sum(costs[i] for i in lines) <= window / 2:
            return lines
    return []

"""The offline samplers: dynamic programming over sentence boundaries, and semantic breakpoints.

A chunk's cost is its token-weighted scatter around its mean vector, its distance
from the target length, and what its boundary is worth (embedding gap, paragraph,
heading, outline question). Sizes and weights vary, so that candidates differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunking.baselines import capped_cuts
from chunking.headings import heading_shape, marked_level, visible
from chunking.vectors import Floats, SentenceVectors

_WINDOW = 256  # sentences of a chunk at most, which bounds the work on texts of very short lines
_LENGTH = 0.25  # weight of the squared relative distance from the target length


@dataclass(frozen=True)
class Candidate:
    """A partition as inner cuts (sentence indices), where it came from, and what became of a model's heads.

    ``unresolved`` were not found, ``fuzzy`` nearly; ``cut_for_size`` cuts were added to chunks over the size.
    """

    origin: str
    cuts: tuple[int, ...]
    unresolved: tuple[str, ...] = ()
    fuzzy: int = 0
    cut_for_size: int = 0


def structure(vectors: SentenceVectors) -> Floats:
    """What the layout says of each inner boundary, shape (n - 1,): above 0 a good place, below a bad one."""
    text = vectors.text
    lines = [text[start:end] for start, end in vectors.sentences]
    heads = [_heading_strength(line) for line in lines]
    values = np.zeros(max(len(lines) - 1, 0))
    for i in range(len(lines) - 1):
        before, after = lines[i], lines[i + 1]
        breaks = before[len(before.rstrip()) :].count("\n")
        values[i] = 0.3 if breaks > 1 else 0.1 if breaks else -0.05
        values[i] += 0.6 * heads[i + 1]
        if heads[i] > 0.3:
            values[i] -= 0.8  # a heading stays with what it heads
        if before.lstrip().startswith("|") and after.lstrip().startswith("|"):
            values[i] -= 0.4  # rows of one table
        elif before.rstrip().endswith(("：", ":")):
            values[i] -= 0.5  # a lead-in stays with its list
    return values


def _heading_strength(line: str) -> float:
    if marked_level(line) is not None:
        return 1.0
    shape = heading_shape(visible(line))
    return shape.strength if shape else 0.0


def offline_candidates(
    vectors: SentenceVectors, size: int, outline: Sequence[int | None], *, seed: int = 0
) -> list[Candidate]:
    """Candidates of the offline samplers, the preferred one first, without repetitions."""
    n = len(vectors)
    if n < 2:
        return [Candidate("offline: one sentence", ())]
    gaps = _standardised(vectors.gaps())
    base = structure(vectors) + 0.25 * gaps
    asked = np.zeros(n - 1)
    for index in outline:
        if index:
            asked[index - 1] = 1.0
    programme = _Programme(vectors, size)
    found = [
        Candidate(
            f"offline: target {target:.2f} of size, outline {weight}",
            tuple(programme.solve(target * size, base + weight * asked)),
        )
        for target in (0.8, 0.6, 0.4)
        for weight in (0.5, 0.0)
    ]
    noise = np.random.default_rng(seed).normal(0.0, 0.2, n - 1)
    found.append(
        Candidate(
            f"offline: target 0.60 of size, seed {seed}", tuple(programme.solve(0.6 * size, base + noise))
        )
    )
    for percentile in (70, 85):
        limit = float(np.percentile(base, percentile))
        above = tuple(int(i) + 1 for i in np.flatnonzero(base > limit))
        found.append(Candidate(f"offline: boundaries above percentile {percentile}", above))
    # Every path is held to the size here, since counters are not quite additive.
    fitted = [Candidate(c.origin, tuple(capped_cuts(c.cuts, vectors, base, size))) for c in found]
    return list({candidate.cuts: candidate for candidate in reversed(fitted)}.values())[::-1]


class _Programme:
    """Optimal cuts for a boundary worth and a target length; the scatter of all runs is computed once."""

    def __init__(self, vectors: SentenceVectors, size: int) -> None:
        self.n = len(vectors)
        self._lows: list[int] = []
        self._scatter: list[Floats] = []
        self._mass: list[Floats] = []
        sums, weights, tokens = vectors.sums, vectors.weight_sums, vectors.token_sums
        for high in range(1, self.n + 1):
            low = int(np.searchsorted(tokens[:high], tokens[high] - size))
            low = max(min(low, high - 1), high - _WINDOW, 0)
            mass = weights[high] - weights[low:high]
            pooled = sums[high] - sums[low:high]
            self._lows.append(low)
            self._mass.append(mass)
            self._scatter.append(mass - np.einsum("ij,ij->i", pooled, pooled) / mass)

    def solve(self, target: float, worth: Floats) -> list[int]:
        """Inner cuts of least cost; ``worth`` has one entry per inner boundary."""
        cost = np.zeros(self.n + 1)
        previous = np.zeros(self.n + 1, dtype=np.int64)
        gain = np.concatenate([[0.0], worth]) * (0.3 * target)
        for high in range(1, self.n + 1):
            low, mass = self._lows[high - 1], self._mass[high - 1]
            total = cost[low:high] - gain[low:high] + self._scatter[high - 1]
            total = total + _LENGTH * target * (mass / target - 1.0) ** 2
            best = int(np.argmin(total))
            cost[high], previous[high] = total[best], low + best
        cuts = []
        at = int(previous[self.n])
        while at > 0:
            cuts.append(at)
            at = int(previous[at])
        return cuts[::-1]


def _standardised(values: Floats) -> Floats:
    spread = float(values.std())
    if spread < 1e-12:
        return np.zeros_like(values)
    return np.asarray(np.clip((values - values.mean()) / spread, -2.0, 2.0))

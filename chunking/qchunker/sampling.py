"""The offline samplers: dynamic programming over sentence boundaries, and the likely divisions.

A chunk's cost is its token-weighted scatter around its mean vector, its distance
from the target length, and what its boundary is worth (``chunking.borders``, and the
outline's questions). Sizes and weights vary, so that candidates differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunking.baselines import capped_cuts
from chunking.borders import cut_worth
from chunking.vectors import Floats, SentenceVectors

_WINDOW = 256  # sentences of a chunk at most, which bounds the work on texts of very short lines
_WORTH = 0.18  # weight of a boundary's worth (log-odds), relative to the target length
_NOISE = 1.0  # spread of what a seed adds to the worth of a boundary, in log-odds
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


def offline_candidates(
    vectors: SentenceVectors, size: int, outline: Sequence[int | None], *, seed: int = 0
) -> list[Candidate]:
    """Candidates of the offline samplers, the preferred one first, without repetitions."""
    n = len(vectors)
    if n < 2:
        return [Candidate("offline: one sentence", ())]
    worth = cut_worth(vectors)
    asked = np.zeros(n - 1)
    for index in outline:
        if index:
            asked[index - 1] = 1.0
    found = [
        Candidate(f"offline: cuts worth above {limit:g}", _above(worth, limit)) for limit in (0.0, 1.0, -0.75)
    ]
    programme = _Programme(vectors, size)
    found += [
        Candidate(
            f"offline: target {target:.2f} of size, outline {weight:g}",
            tuple(programme.solve(target * size, worth + weight * asked)),
        )
        for target in (0.8, 0.6)
        for weight in (1.0, 0.0)
    ]
    noise = np.random.default_rng(seed).normal(0.0, _NOISE, n - 1)
    found.append(
        Candidate(
            f"offline: target 0.60 of size, seed {seed}", tuple(programme.solve(0.6 * size, worth + noise))
        )
    )
    # Every path is held to the size here, since counters are not quite additive.
    fitted: dict[tuple[int, ...], Candidate] = {}
    for candidate in found:
        cuts = tuple(capped_cuts(candidate.cuts, vectors, size, worth))
        fitted.setdefault(cuts, Candidate(candidate.origin, cuts))
    return list(fitted.values())


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
        gain = np.concatenate([[0.0], worth]) * (_WORTH * target)
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


def _above(worth: Floats, limit: float) -> tuple[int, ...]:
    return tuple(int(i) + 1 for i in np.flatnonzero(worth > limit))

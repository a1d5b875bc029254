"""Means with paired bootstrap intervals: the same resamples for every method.

Questions on one document are not independent of each other. With ``groups`` whole
groups (documents) are drawn, and a mean is still one over questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Estimate:
    """A mean over ``n`` questions with its interval; None without values."""

    value: float | None
    low: float | None
    high: float | None
    n: int


class Bootstrap:
    """Percentile bootstrap over items. One set of resamples by seed and n, so that methods are paired."""

    def __init__(self, resamples: int, confidence: float, seed: int) -> None:
        self._resamples = resamples
        self._tail = (1 - confidence) / 2
        self._seed = seed
        self._draws: dict[int, NDArray[np.int64]] = {}

    def mean(self, values: Sequence[float | None], groups: Sequence[str] | None = None) -> Estimate:
        """Mean of the values that are not None. ``groups``: what each value's item belongs to."""
        kept = [index for index, value in enumerate(values) if value is not None]
        known = np.array([values[index] for index in kept], dtype=np.float64)
        return self._estimate(known, None if groups is None else [groups[index] for index in kept])

    def difference(
        self,
        left: Sequence[float | None],
        right: Sequence[float | None],
        groups: Sequence[str] | None = None,
    ) -> Estimate:
        """Mean of left − right over the items where both are defined."""
        pairs = zip(left, right, strict=True)
        return self.mean([None if a is None or b is None else a - b for a, b in pairs], groups)

    def f1(self, counts: NDArray[np.float64]) -> Estimate:
        """F1 of summed counts, shape (n, 3): hits, predicted, wanted of each item; items are resampled."""
        if not len(counts) or not counts[:, 1:].sum():
            return Estimate(None, None, None, 0)
        sums = counts[self._indices(len(counts))].sum(axis=1)
        drawn = 2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1)
        hits, made, wanted = counts.sum(axis=0)
        low, high = np.quantile(drawn, [self._tail, 1 - self._tail])
        value = 2 * float(hits) / float(made + wanted)
        return Estimate(_rounded(value), _rounded(float(low)), _rounded(float(high)), len(counts))

    def _estimate(self, known: NDArray[np.float64], groups: Sequence[str] | None) -> Estimate:
        if not known.size:
            return Estimate(None, None, None, 0)
        value = float(known.mean())
        if groups is None:
            means = known[self._indices(known.size)].mean(axis=1)
        else:
            means = self._of_groups(known, groups)
        low, high = np.quantile(means, [self._tail, 1 - self._tail])
        return Estimate(_rounded(value), _rounded(float(low)), _rounded(float(high)), int(known.size))

    def _of_groups(self, known: NDArray[np.float64], groups: Sequence[str]) -> NDArray[np.float64]:
        """Means over the items of as many groups as there are, drawn with replacement."""
        names = {name: at for at, name in enumerate(sorted(set(groups)))}
        where = np.array([names[name] for name in groups])
        sums = np.bincount(where, weights=known, minlength=len(names))
        counts = np.bincount(where, minlength=len(names))
        drawn = self._indices(len(names))
        return np.asarray(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))

    def _indices(self, n: int) -> NDArray[np.int64]:
        if n not in self._draws:
            generator = np.random.default_rng([self._seed, n])
            self._draws[n] = generator.integers(0, n, size=(self._resamples, n))
        return self._draws[n]


def _rounded(value: float) -> float:
    return round(value, 6)

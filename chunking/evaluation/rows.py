"""A figure as a row of the table ``evaluations``; its id is made of what tells figures apart."""

from __future__ import annotations

from typing import Any

from chunking.evaluation.statistics import Estimate
from corpus.catalogue.tables import Evaluation
from corpus.ids import canonical_json, digest


def figure_row(
    table: str, method: str, metric: str, estimate: Estimate, unit: str, setting: dict[str, Any]
) -> Evaluation:
    """A figure with its n, interval, unit and setting."""
    return Evaluation(
        evaluation_id=digest("evaluation", table, method, metric, canonical_json(setting)),
        table=table,
        method=method,
        metric=metric,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        unit=unit,
        setting=setting,
    )

"""Estimate against actual: what a stage was expected to ask of models, and what it asked.

The estimate is made when a stage starts and is stored with the run beside the
counters of the process's models (``Models.usage``). Batches on other machines
(Dask, Ray) have counters of their own, which are not in it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from rich.table import Table

from corpus.stages import StageContext
from flows import presets
from models.estimate import Estimate, summed

if TYPE_CHECKING:
    from flows.estimates import Forecast
    from flows.runtime import Runtime
    from flows.settings import Settings
    from models import Models

log = structlog.get_logger("hchem.run")

_EXPECTED = ("calls", "repeats", "stored", "tokens_in", "tokens_cached", "tokens_out", "cost", "cost_limit")
_COUNTED = ("calls", "cached", "rejected", "tokens_in", "tokens_cached", "tokens_out", "cost", "seconds")

Counters = dict[str, dict[str, float]]


def shown_settings(settings: Settings) -> dict[str, Any]:
    """The settings as a run's row keeps them, with what the preset says of them."""
    shown: dict[str, Any] = settings.model_dump(mode="json")
    notes = presets.lines(settings)
    for line in notes:
        log.info("preset", says=line)
    return {**shown, "preset_notes": notes}


@dataclass
class Account:
    """One stage's expectation (None without a model), and where its counters stood when it began."""

    before: Counters
    models: dict[str, str] = field(default_factory=dict)
    found: Forecast | None = None
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def as_dict(self, models: Models) -> dict[str, Any]:
        """Expected and actual figures by skill, as plain data for the run's row; empty where nothing was asked."""
        actual = _since(self.before, models.usage()["skills"])
        expected: dict[str, list[Estimate]] = {}
        for entry in self.found.rows if self.found is not None else ():
            expected.setdefault(entry.estimate.skill, []).append(entry.estimate)
        skills: dict[str, Any] = {}
        for name in [*expected, *sorted(set(actual) - set(expected))]:
            row = summed(expected.get(name, []))
            counted = actual.get(name, dict.fromkeys(_COUNTED, 0))
            told = None if row is None else {key: getattr(row, key) for key in (*_EXPECTED, "basis")}
            skills[name] = {
                "model": self.models.get(name, ""),
                "estimate": told,
                "actual": counted,
                "ratio": ratio(told, counted),
            }
        if not skills and not self.notes:
            return {}
        return {
            "counter": models.token_counter_name,
            "notes": self.notes,
            "estimate_seconds": round(self.seconds, 2),
            "skills": skills,
        }


def begin(runtime: Runtime, context: StageContext, stage: str) -> Account:
    """Estimate a stage that is about to run. A stage that cannot be estimated runs all the same."""
    names = {name: resolved.model for name, resolved in runtime.settings.models.configured().items()}
    account = Account(runtime.models.usage()["skills"], names)
    if not names:
        return account
    from flows.estimates import forecast  # loads every stage's package
    from flows.planning import plan_asking

    began = time.monotonic()
    try:
        account.found = forecast(runtime, context, plan_asking(runtime, context, stage))
        account.notes = account.found.notes
    except Exception as error:  # noqa: BLE001 - a run that was asked for does not end because its estimate fails
        account.notes = [f"no estimate: {type(error).__name__}: {error}"]
        log.warning("no estimate", stage=stage, why=repr(error))
    account.seconds = time.monotonic() - began
    return account


def _since(before: Counters, after: Counters) -> Counters:
    """Differences of the counters, of the skills that were asked."""
    found = {}
    for name, row in after.items():
        earlier = before.get(name, {})
        values = {key: row[key] - earlier.get(key, 0) for key in _COUNTED}
        if any(values[key] for key in ("calls", "cached", "rejected")):
            values["cost"], values["seconds"] = round(values["cost"], 6), round(values["seconds"], 2)
            found[name] = values
    return found


def ratio(expected: dict[str, Any] | None, actual: dict[str, Any]) -> float | None:
    """Actual by expected: money where it has a price, else all tokens; None where nothing was expected."""
    if expected is None:
        return None
    if expected["cost"]:
        return round(float(actual["cost"] / expected["cost"]), 3)
    tokens = expected["tokens_in"] + expected["tokens_out"]
    return round(float((actual["tokens_in"] + actual["tokens_out"]) / tokens), 3) if tokens else None


# --- shown after the run -------------------------------------------------------------------------------------


def rows_of(stages: dict[str, Any]) -> list[dict[str, Any]]:
    """Expected and actual of every stage and skill of a run, in order, as its row holds them."""
    return [
        {"stage": stage, "skill": skill, **row}
        for stage, entry in stages.items()
        for skill, row in entry.get("models", {}).get("skills", {}).items()
    ]


def table(stages: dict[str, Any]) -> Table | None:
    """Expected above actual for the terminal, by skill; None where no model was asked."""
    rows = rows_of(stages)
    if not rows:
        return None
    shown = Table(title="Model calls of this run", title_justify="left", box=None, padding=(0, 1, 0, 0))
    shown.add_column("skill", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for column in ("calls", "stored", "in", "cached", "out", "cost", "ratio", "s"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        expected, actual = row["estimate"], row["actual"]
        if expected is not None:
            asked = expected["calls"] + expected["repeats"]
            shown.add_row(row["skill"], "expected", *_cells(asked, expected["stored"], expected), "", "")
        ratio_cell = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        name = row["skill"] if expected is None else ""
        cells = _cells(actual["calls"], actual["cached"], actual)
        shown.add_row(name, "actual", *cells, ratio_cell, short(actual["seconds"]))
    return shown


def _cells(calls: float, stored: float, row: dict[str, Any]) -> list[str]:
    counts = (calls, stored, row["tokens_in"], row["tokens_cached"], row["tokens_out"])
    return [*map(short, counts), money(row["cost"])]


def short(number: float) -> str:
    """A count in at most five characters: 999, 12.3k, 4.56M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * limit:
            value = number / limit
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}{unit}"
    return f"{number:.0f}"


def money(value: float | None) -> str:
    """An amount of money; a dash where no price is set."""
    if value is None:
        return "–"
    if value >= 9999.995:
        return short(value)
    return f"{value:.4f}" if 0 < value < 0.1 else f"{value:.2f}"

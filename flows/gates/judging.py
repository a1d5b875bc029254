"""Judges what a stage left against limits and the last run, keeps the outcome, and warns or holds the run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import exists, select
from sqlalchemy.orm import Session as DbSession

from corpus.catalogue.tables import Check, Run, now
from corpus.ids import canonical_json, digest
from flows import webhook
from flows.console import err
from flows.gates.errors import AwaitingDecision, GateError
from flows.gates.measures import Measure, Ran, measured
from flows.operation_settings import GATES, GateSettings, Kind

if TYPE_CHECKING:
    from flows.execution import Session

Policy = Literal["ask", "fail", "continue"]

ACCEPT = "accept"  # go on, and the value is the new baseline
CONTINUE = "continue"
STOP = "stop"
GOES_ON = (CONTINUE, ACCEPT)
BY_PARAMETER = "on_gate=continue"

_PLAY = 0.05  # how much worse than what was decided on a value may be, as a share of it
_RUNS_BACK = 50
_COMPARED: tuple[Kind, ...] = ("drop", "rise", "fall")
_SMALLER_IS_WORSE: tuple[Kind, ...] = ("least", "drop", "fall")

run_page = logging.getLogger("hchem")


@dataclass
class GateRun:
    """The gates of one run: what a failed blocking one does, what was found, whether the run is held."""

    policy: Policy = "fail"
    found: dict[str, list[Check]] = field(default_factory=dict)
    held: AwaitingDecision | None = None

    def raise_if_held(self) -> None:
        """Raise AwaitingDecision in the outermost flow, the only one that can be suspended."""
        if self.held is not None:
            raise self.held


def policy_of(wanted: Policy | None, *, deployed: bool) -> Policy:
    """What a failed blocking gate does: as asked for, else ask in a run of a deployment, fail in any other.

    A run that no deployment started cannot be suspended, so that "ask" fails it.
    """
    if wanted is None or wanted == "ask":
        return "ask" if deployed else "fail"
    return wanted


def after_stage(current: Session, stage: str) -> None:
    """Judge a stage that has ended; its outcome stands in the catalogue whatever follows.

    Raises GateError where a blocking gate failed and the run is to fail. Where it
    is to ask, ``current.gates.held`` is set and the outermost flow suspends.
    """
    found = judge(current, stage)
    current.gates.found[stage] = found
    _store(current, found)
    _tell(found)
    blocked = [row for row in found if blocks(row)]
    if not blocked:
        return
    webhook.gates_failed(current, blocked)
    if current.gates.policy == "ask":
        current.gates.held = AwaitingDecision(current.context.run_id, stage, blocked)
        return
    raise GateError(_ended(stage, blocked), step=stage)


def blocks(row: Check) -> bool:
    """Whether a check keeps a run from going on."""
    return row.severity == "block" and row.state == "failed" and row.decision not in GOES_ON


def _ended(stage: str, blocked: Sequence[Check]) -> str:
    names = sorted({row.name for row in blocked})
    told = "; ".join(row.message for row in blocked)
    ways = " && ".join(f"hchem gates decide {name} continue --why '…'" for name in names)
    return f"quality gate after {stage}: {told}. What is done stays. To go on: {ways}, then run it again; or --on-gate continue"


# --- judging -------------------------------------------------------------------


def restriction(parameters: dict[str, Any]) -> str:
    """What a run was restricted to; only runs of one restriction are compared. Empty for a whole run."""
    parts = {name: sorted(parameters[name]) for name in ("sources", "chemicals") if parameters.get(name)}
    for name in ("limit", "archive", "since"):
        if parameters.get(name):
            parts[name] = [str(parameters[name])]
    return canonical_json(parts) if parts else ""


def judge(current: Session, stage: str) -> list[Check]:
    """The checks of a stage, not stored: what is measured beside the limits and what was before."""
    settings = current.runtime.settings.gates
    steps = current.stages.get(stage, {}).get("steps", {})
    ran = Ran(current.runtime, current.context.run_id, any(step["pending"] for step in steps.values()))
    off = [name for name in GATES if settings.severity_of(name) == "off"]
    scope = restriction(current.parameters.model_dump(mode="json"))
    values = measured(ran, stage, off)
    with current.runtime.catalogue.reading() as db:
        before = _Before(db, current.context.run_id, stage, scope)
        rows = [
            _check(current, stage, settings, before, found) for found in [*values, *before.vanished(values)]
        ]
    return sorted(rows, key=lambda row: (list(GATES).index(row.name), row.scope))


class _Before:
    """Earlier checks of a stage, in runs with the same restriction."""

    def __init__(self, db: DbSession, run_id: str, stage: str, scope: str) -> None:
        self.scope = scope
        query = (
            select(Run.run_id, Run.state, Run.parameters, Run.settings)
            .where(Run.run_id != run_id, exists().where(Check.run_id == Run.run_id, Check.stage == stage))
            .order_by(Run.started_at.desc(), Run.run_id.desc())
            .limit(_RUNS_BACK)
        )
        runs = [row for row in db.execute(query) if restriction(row.parameters) == scope]
        self._states = {row.run_id: row.state for row in runs}
        self._settings = {row.run_id: row.settings for row in runs}
        order = {row.run_id: at for at, row in enumerate(runs)}
        rows = db.scalars(select(Check).where(Check.stage == stage, Check.run_id.in_(list(order))))
        self._rows: dict[tuple[str, str], list[Check]] = {}
        for check in sorted(rows, key=lambda row: order[row.run_id]):
            self._rows.setdefault((check.name, check.scope), []).append(check)

    def baseline(self, name: str, scope: str) -> Check | None:
        """The value of the last completed run that may be compared with: not one that a gate let through on demand."""
        for row in self._rows.get((name, scope), ()):
            completed = self._states[row.run_id] == "completed"
            let_through = row.severity == "block" and row.state == "failed" and row.decision != ACCEPT
            if completed and row.value is not None and not let_through:
                return row
        return None

    def accepted(self, name: str, scope: str) -> float | None:
        """The value last accepted for a gate that is judged by its limit alone."""
        rows = self._rows.get((name, scope), ())
        return next((row.value for row in rows if row.decision == ACCEPT), None)

    def decided(self, name: str, scope: str) -> Check | None:
        """What a person decided on the last failure, unless a run was completed with it."""
        row = next(iter(self._rows.get((name, scope), ())), None)
        if row is None or row.decision not in GOES_ON or row.decided_by == BY_PARAMETER:
            return None
        return row if self._states[row.run_id] != "completed" else None

    def settings_of(self, run_id: str) -> dict[str, Any]:
        """The settings that a run was made with."""
        return self._settings[run_id] or {}

    def vanished(self, values: Iterable[Measure]) -> list[Measure]:
        """Sources of which the last run had something and this one has nothing at all."""
        measured_names = {found.gate for found in values}
        present = {(found.gate, found.scope) for found in values}
        return [
            Measure(name, 0, scope)
            for name, scope in self._rows
            if GATES[name].kind == "drop"
            and name in measured_names
            and (name, scope) not in present
            and (row := self.baseline(name, scope)) is not None
            and row.value
        ]


def _check(current: Session, stage: str, settings: GateSettings, before: _Before, found: Measure) -> Check:
    gate = GATES[found.gate]
    compared = gate.kind in _COMPARED
    row = Check(
        check_id=digest("check", current.context.run_id, stage, found.gate, found.scope),
        run_id=current.context.run_id,
        stage=stage,
        name=found.gate,
        scope=found.scope[:64],
        severity=settings.severity_of(found.gate),
        state="passed",
        value=found.value,
        limit=settings.limit_of(found.gate),
        at=now(),
        message="",
        decision="",
        decided_by="",
        why="",
    )
    earlier = before.baseline(found.gate, row.scope) if compared else None
    row.baseline = (
        earlier.value if earlier else (None if compared else before.accepted(found.gate, row.scope))
    )
    why = found.skipped or _incomparable(current, gate.kind, earlier, before)
    if why or found.value is None:
        row.state, row.message = "skipped", f"{_label(row)}: {_amount(row, row.value)}, not judged: {why}"
        return row
    if _fails(gate.kind, row, settings.least):
        row.state = "failed"
        _carry(row, before.decided(found.gate, row.scope), gate.kind)
    row.message = _message(gate.kind, row, found.note)
    return row


def _incomparable(current: Session, kind: Kind, earlier: Check | None, before: _Before) -> str:
    if kind not in _COMPARED:
        return ""
    if earlier is None:
        like = f"with the same restriction {before.scope}" if before.scope else "of the whole"
        return f"no completed run {like} to compare with"
    if kind == "fall":  # figures of an evaluation under other settings are no comparison
        now_set = current.runtime.settings.model_dump(mode="json")
        then = before.settings_of(earlier.run_id)
        other = [
            part for part in ("evaluation", "chunks", "embeddings") if now_set.get(part) != then.get(part)
        ]
        if other:
            return f"other settings ({', '.join(other)}) than in run {earlier.run_id}"
    return ""


def _fails(kind: Kind, row: Check, least: int) -> bool:
    value, limit, baseline = row.value or 0.0, row.limit or 0.0, row.baseline
    match kind:
        case "least":
            return value < limit and (baseline is None or value < baseline)
        case "most":
            return value > limit and (baseline is None or value > baseline * (1 + _PLAY))
        case "about_half":
            off = abs(value - 0.5)
            return off > limit and (baseline is None or off > abs(baseline - 0.5) * (1 + _PLAY))
    if baseline is None:
        return False
    match kind:
        case "drop":
            return baseline - value >= max(least, 1) and value < baseline * (1 - limit)
        case "rise":
            return value - baseline >= max(least, 1) and value > baseline * (1 + limit)
        case _:
            return value < baseline - limit


def _carry(row: Check, decided: Check | None, kind: Kind) -> None:
    """A decision on the last failure holds for a value that is no worse than what was decided on."""
    if decided is None or decided.value is None or row.value is None:
        return
    play = _PLAY * abs(decided.value)
    if kind == "about_half":
        worse = abs(row.value - 0.5) > abs(decided.value - 0.5) + play
    elif kind in _SMALLER_IS_WORSE:
        worse = row.value < decided.value - play
    else:
        worse = row.value > decided.value + play
    if not worse:
        row.decision, row.why = decided.decision, decided.why
        row.decided_by, row.decided_at = decided.decided_by, decided.decided_at


# --- in words --------------------------------------------------------------------


def _label(row: Check) -> str:
    return f"{row.name} ({row.scope})" if row.scope else row.name


def _amount(row: Check, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.3g} %" if GATES[row.name].share else f"{value:.10g}"


def _message(kind: Kind, row: Check, note: str) -> str:
    value, baseline, limit = row.value or 0.0, row.baseline, row.limit or 0.0
    rest = f" ({note})" if note else ""
    if kind in ("drop", "rise") and baseline is not None:
        change = f"{100 * (value - baseline) / baseline:+.0f} %" if baseline else "from nothing"
        allowed = f"{'−' if kind == 'drop' else '+'}{100 * limit:g} %"
        text = f"{_amount(row, baseline)} → {_amount(row, value)}{rest}, {change} (limit {allowed})"
    elif kind == "fall" and baseline is not None:
        points = f"{100 * (value - baseline):+.1f} points"
        text = f"{_amount(row, baseline)} → {_amount(row, value)}{rest}, {points} (limit −{100 * limit:g})"
    elif kind == "about_half":
        low, high = _amount(row, 0.5 - limit), _amount(row, 0.5 + limit)
        text = f"{_amount(row, value)}{rest} (limit {low} to {high})"
    else:
        word = "at least" if kind == "least" else "at most"
        text = f"{_amount(row, value)}{rest} (limit {word} {_amount(row, limit)})"
        if baseline is not None:
            text += f", {_amount(row, baseline)} was accepted"
    return f"{_label(row)}: {text.replace('-', '−') if kind in ('drop', 'fall') else text}"


# --- keeping and telling -----------------------------------------------------------


def _store(current: Session, found: Sequence[Check]) -> None:
    if current.gates.policy == "continue":
        for row in found:
            if blocks(row):
                row.decision, row.decided_by, row.decided_at = CONTINUE, BY_PARAMETER, now()
    with current.runtime.catalogue.writing() as db:
        for row in found:
            db.merge(row)


def _tell(found: Sequence[Check]) -> None:
    """Warnings, and what was let through, on the terminal and the page of the run; nothing of gates that passed."""
    for row in found:
        if row.state != "failed":
            continue
        ended = f"; {row.decision}: {row.decided_by}" if row.decision else ""
        line = f"quality gate {row.message}{ended}"
        run_page.warning(line)
        err.print(line, markup=False, soft_wrap=True)

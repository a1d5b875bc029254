"""What differs between two runs: items by stage, reasons, seconds, model calls, failures, checks.

Computed from the rows of the runs, so that it can be made of any two at any time.
A run counts what it worked on: a run after which nothing had changed has few items.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Check, Failure, Run
from corpus.errors import SettingsError
from flows.parameters import RESTRICTIONS

GROUPS = ("checks", "failures", "items", "dropped", "made", "models", "seconds")
_RESTRICTS = (*RESTRICTIONS, "from_stage", "to_stage")
_MODEL_FIGURES = ("calls", "cached", "rejected", "tokens_in", "tokens_out", "cost")
_BRIEF = 6
_LEAST_SECONDS = 0.05  # what a clock rounds away


@dataclass(frozen=True)
class Difference:
    """A figure of two runs. ``place``: step, stage, skill or scope; None: the run has no such figure."""

    group: str
    place: str
    what: str
    old: float | None
    new: float | None

    @property
    def change(self) -> float:
        """New less old, a missing figure being none."""
        return (self.new or 0.0) - (self.old or 0.0)


@dataclass(frozen=True)
class CheckChange:
    """A check of the new run, beside the state it had in the old one ("": not made then)."""

    stage: str
    name: str
    scope: str
    severity: str
    old: str
    new: str
    value: float | None
    limit: float | None
    message: str
    decision: str


_LISTED = "; see: hchem runs list"


@dataclass
class Comparison:
    """Two runs side by side; ``differences`` holds what differs, by group, the largest change first."""

    old: dict[str, Any]
    new: dict[str, Any]
    differences: list[Difference] = field(default_factory=list)
    same: int = 0  # figures that do not differ
    checks: list[CheckChange] = field(default_factory=list)

    def of(self, group: str) -> list[Difference]:
        """The differences of a group."""
        return [entry for entry in self.differences if entry.group == group]

    def brief(self, most: int = _BRIEF) -> list[Difference]:
        """What a summary names first: failures, then the largest changes of items, reasons and money."""
        order = {group: at for at, group in enumerate(("failures", "dropped", "items", "models"))}
        found = [e for e in self.differences if e.group in order and (e.group, e.what) != ("items", "kept")]
        found.sort(key=lambda entry: (entry.group != "failures", -abs(entry.change), order[entry.group]))
        return found[:most]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "old": self.old,
            "new": self.new,
            "same": self.same,
            "differences": [
                {**asdict(entry), "change": _rounded(entry.change)} for entry in self.differences
            ],
            "checks": [asdict(entry) for entry in self.checks],
        }


def find(db: Session, name: str) -> Run:
    """The run of an id, of its beginning, or the newest for ``last``. Raises SettingsError."""
    if name == "last":
        row = db.scalar(_newest_first().limit(1))
        found: list[Run] = [row] if row is not None else []
    else:
        found = list(db.scalars(_newest_first().where(Run.run_id.startswith(name, autoescape=True)).limit(6)))
        found = [row for row in found if row.run_id == name] or found
    if len(found) == 1 and name:
        return found[0]
    if len(found) > 1:
        raise SettingsError(
            f"{name!r} is the beginning of {', '.join(r.run_id for r in found)}: write more of it"
        )
    raise SettingsError(f"no run {name!r}{_LISTED}")


def find_both(db: Session, old: str, new: str) -> tuple[Run, Run]:
    """The runs of two ids or their beginnings, as ``find`` does. Raises SettingsError that names all that is wrong."""
    found: list[Run] = []
    wrong: dict[str, SettingsError] = {}
    for name in (old, new):
        try:
            found.append(find(db, name))
        except SettingsError as error:
            wrong[name] = error
    if wrong:
        told = [str(error).removesuffix(_LISTED) for error in wrong.values()]
        raise SettingsError("; ".join(told) + _LISTED)
    return found[0], found[1]


def _newest_first() -> Select[Run]:
    return select(Run).order_by(Run.started_at.desc(), Run.run_id.desc())


def restriction(run: Run) -> tuple[Any, ...]:
    """What a run was asked to leave out: runs are comparable where it is the same."""
    given = run.parameters or {}
    return (run.flow, *(_plain(given.get(name)) for name in _RESTRICTS))


def _plain(value: Any) -> Any:
    return tuple(sorted(map(str, value))) if isinstance(value, list) else value or None


def previous(db: Session, run: Run) -> Run | None:
    """The last completed run before one, of the same flow with the same restriction."""
    query = _newest_first().where(
        Run.flow == run.flow,
        Run.state == "completed",
        Run.started_at <= run.started_at,
        Run.run_id != run.run_id,
    )
    wanted = restriction(run)
    return next((row for row in db.scalars(query) if restriction(row) == wanted), None)


def against_previous(db: Session, run_id: str) -> Comparison | None:
    """A run against the comparable one before it; None where there is none, or no such run."""
    run = db.get(Run, run_id) if run_id else None
    before = previous(db, run) if run is not None else None
    return compare(db, before, run) if run is not None and before is not None else None


def compare(db: Session, old: Run, new: Run) -> Comparison:
    """Two runs, figure by figure."""
    before, after = _figures(db, old), _figures(db, new)
    found = Comparison(_head(old), _head(new), checks=_checks(db, old, new))
    for key in before.keys() | after.keys():
        difference = Difference(*key, before.get(key), after.get(key))
        least = _LEAST_SECONDS if difference.group == "seconds" else 1e-9
        if abs(difference.change) < least:
            found.same += 1
        else:
            found.differences.append(difference)
    found.differences.sort(
        key=lambda entry: (GROUPS.index(entry.group), -abs(entry.change), entry.place, entry.what)
    )
    return found


def _head(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "flow": run.flow,
        "state": run.state,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "code_version": run.code_version,
        "restriction": {
            name: value
            for name in _RESTRICTS
            if (value := (run.parameters or {}).get(name)) not in (None, [], False)
        },
        "force": bool((run.parameters or {}).get("force")),
    }


_Key = tuple[str, str, str]


def _figures(db: Session, run: Run) -> dict[_Key, float]:
    """Every figure of a run by group, place and name."""
    found: dict[_Key, float] = defaultdict(float)
    for stage, entry in (run.stages or {}).items():
        found["seconds", stage, "seconds"] += float(entry.get("seconds", 0.0))
        for step, counts in entry.get("steps", {}).items():
            found["items", step, "in"] += counts.get("pending", 0)
            for state, n in counts.get("states", {}).items():
                found["items", step, state] += n
            for reason, n in counts.get("reasons", {}).items():
                found["dropped", step, reason] += n
            for what, n in counts.get("counts", {}).items():
                found["made", step, what] += n
        for skill, row in (entry.get("models") or {}).get("skills", {}).items():
            for name in _MODEL_FIGURES:
                found["models", skill, name] += row.get("actual", {}).get(name, 0)
    failures = (
        select(Failure.step, Failure.reason, func.count())
        .where(Failure.run_id == run.run_id)
        .group_by(Failure.step, Failure.reason)
    )
    for step, reason, n in db.execute(failures):
        found["failures", step, reason] += int(n)
    return dict(found)


def checks_of(db: Session, run_id: str) -> list[Check]:
    """The checks of a run: failed ones first, those that block before those that warn."""
    rows = db.scalars(select(Check).where(Check.run_id == run_id))
    return sorted(
        rows, key=lambda c: (c.state != "failed", c.severity != "block", c.stage, c.name, c.scope, c.check_id)
    )


def first_checks(db: Session, run_id: str) -> list[CheckChange]:
    """The checks of a run that has none to be laid beside."""
    return _beside(checks_of(db, run_id), {})


def _checks(db: Session, old: Run, new: Run) -> list[CheckChange]:
    before = {(c.stage, c.name, c.scope): c.state for c in checks_of(db, old.run_id)}
    return _beside(checks_of(db, new.run_id), before)


def _beside(checks: Iterable[Check], before: Mapping[tuple[str, str, str], str]) -> list[CheckChange]:
    return [
        CheckChange(
            c.stage, c.name, c.scope, c.severity, before.get((c.stage, c.name, c.scope), ""), c.state, c.value, c.limit,
            c.message, c.decision,
        )
        for c in checks
    ]  # fmt: skip


# --- text -------------------------------------------------------------------------


def number(value: float | None) -> str:
    """A figure: whole numbers without decimals, a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4f}".rstrip("0").rstrip(".")


def signed(value: float) -> str:
    """A change with its sign."""
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{number(abs(_rounded(value)))}"


def _rounded(value: float) -> float:
    return round(value, 4)


def line(entry: Difference) -> str:
    """A difference in one line: ``curate.score low_score 10 → 14 (+4)``."""
    return f"{entry.place} {entry.what} {number(entry.old)} → {number(entry.new)} ({signed(entry.change)})"


def checks_brief(checks: Iterable[Check]) -> str:
    """``3 passed, 1 failed: kept_share (curate, warn)``; empty where none was made."""
    rows = list(checks)
    counts: Mapping[str, int] = Counter(row.state for row in rows)
    told = ", ".join(
        f"{counts[state]} {state}" for state in ("passed", "failed", "skipped") if counts.get(state)
    )
    failed = [
        f"{row.name}{f' {row.scope}' if row.scope else ''} ({row.stage}, {row.severity}"
        f"{f', decided: {row.decision}' if row.decision else ''})"
        for row in rows
        if row.state == "failed"
    ]
    return f"{told}: {'; '.join(failed)}" if failed else told

"""``hchem gates``: quality gates, what they found, and decisions on those that hold a run."""

from __future__ import annotations

import getpass
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from corpus.errors import SettingsError
from flows.console import err, out
from flows.runtime import Runtime, open_runtime
from flows.words import counted, visible

if TYPE_CHECKING:
    from corpus.catalogue.tables import Check

app = typer.Typer()

Scope = Annotated[str | None, typer.Option("--scope", help="Only this source, relation or method.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON list.")]


class Verdict(StrEnum):
    """What a person can decide."""

    CONTINUE = "continue"
    STOP = "stop"


@app.command("list", epilog="Examples:  hchem gates list  |  hchem gates list --json")
def list_gates(as_json: AsJson = False) -> None:
    """All gates with severity and limit in force, and what each found last."""
    from flows.gates import decisions
    from flows.operation_settings import GATES

    with open_runtime() as runtime:
        settings = runtime.settings.gates
        with runtime.catalogue.reading() as db:
            latest = decisions.latest(db)
        rows: list[dict[str, Any]] = [
            {
                "gate": gate.name,
                "stage": gate.stage,
                "severity": settings.severity_of(gate.name),
                "limit": settings.limit_of(gate.name),
                "what": gate.what,
                "last": [_row(check) for check in latest if check.name == gate.name],
            }
            for gate in GATES.values()
        ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))  # 80 columns hold it: what is judged wraps
    for column in ("gate", "severity", "limit", "last", "judges"):
        table.add_column(column, no_wrap=column == "gate")
    for row in rows:
        last, what = _summed(row["last"]), f"{row['stage']}: {row['what']}"
        table.add_row(row["gate"], row["severity"], f"{row['limit']:g}", last, what)
    out.print(table)
    for row in rows:
        for check in row["last"]:
            if check["state"] == "failed":
                out.print(_line(check), markup=False)


def _summed(checks: list[dict[str, Any]]) -> str:
    states = [check["state"] for check in checks]
    return ", ".join(f"{state} {states.count(state)}" for state in sorted(set(states))) or "–"


@app.command(
    epilog="Examples:  hchem gates history documents_drop  |  hchem gates history pages_drop --scope sample"
)
def history(
    name: Annotated[str, typer.Argument(help="The gate, as hchem gates list names it.")],
    scope: Scope = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest.")] = 20,
    as_json: AsJson = False,
) -> None:
    """What a gate found run after run, and who decided what."""
    from flows.gates import decisions

    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        rows = [_row(check) for check in decisions.history(db, decisions.known(name), scope, limit)]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        out.print(f"{row['run_id']} {row['at'][:19]} {row['state']:<7} {_line(row)}", markup=False)
    if not rows:
        out.print("No run has judged this gate yet.")


@app.command(
    epilog="Examples:  hchem gates decide documents_drop continue --why 'the source closed'  |  "
    "hchem gates decide documents_drop continue --baseline --why 'smaller from now on'  |  "
    "hchem gates decide proofs_failed stop --why 'looking into it'"
)
def decide(
    name: Annotated[str, typer.Argument(help="The gate that holds a run.")],
    verdict: Annotated[Verdict, typer.Argument(help="continue or stop.")],
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept.")],
    scope: Scope = None,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="The value is the new baseline that later runs are compared with."),
    ] = False,
    by: Annotated[str, typer.Option("--by", help="Who decides; default: the user of this session.")] = "",
) -> None:
    """Decide on the failed checks of a gate: the next run honours it; a suspended run goes on where it stopped.

    "continue" holds for values no worse than the one decided on, until a run is completed with it.
    """
    from flows.gates import decisions, resuming

    if not why.strip():
        raise SettingsError("say why: --why '…'")
    if baseline and verdict is Verdict.STOP:
        raise SettingsError("--baseline belongs to continue")
    decision = decisions.Decision(verdict is Verdict.CONTINUE, baseline, by or _user(), why.strip())
    with open_runtime() as runtime:
        with runtime.catalogue.reading() as db:
            found = decisions.open_checks(db, decisions.known(name), scope)
        if not found:
            raise SettingsError(f"{name}{f' ({scope})' if scope else ''} holds no run; see: hchem gates list")
        rows = decisions.record(runtime.catalogue, [row.check_id for row in found], decision)
        for row in rows:
            out.print(f"{decision.word}: {row.message}", markup=False)
        _next(runtime, rows[0].run_id, decision, resuming)


def _next(runtime: Runtime, run_id: str, decision: Any, resuming: Any) -> None:
    """Let a suspended run go on when nothing of it is undecided, or say what is left to do."""
    from corpus.catalogue.tables import Run
    from flows.gates import decisions

    with runtime.catalogue.reading() as db:
        run = db.get_one(Run, run_id)
        left = decisions.held_by(db, run_id)
    if left and decision.go_on:
        names = ", ".join(sorted({row.name for row in left}))
        err.print(f"{counted(len(left), 'check')} of this run still undecided: {names}", markup=False)
    elif run.state == "suspended":
        out.print(resuming.resume(runtime, run.flow_run_id, decision), markup=False)
    elif decision.go_on:
        out.print("Run the same command again: it goes on where it stopped.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _row(check: Check) -> dict[str, Any]:
    return {
        "gate": check.name,
        "scope": check.scope,
        "run_id": check.run_id,
        "at": check.at.isoformat(),
        "severity": check.severity,
        "state": check.state,
        "value": check.value,
        "limit": check.limit,
        "baseline": check.baseline,
        "message": check.message,
        "decision": check.decision,
        "decided_by": check.decided_by,
        "decided_at": check.decided_at.isoformat() if check.decided_at else None,
        "why": check.why,
    }


def _line(row: dict[str, Any]) -> str:
    decided = f" [{row['decision']}: {row['decided_by']}: {row['why']}]" if row["decision"] else ""
    return visible(f"{row['message']} ({row['severity']}){decided}")

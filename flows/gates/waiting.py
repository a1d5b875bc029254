"""Suspends a flow run at a failed gate, and takes it up again with the decision. Needs Prefect.

The outermost flow suspends itself when its session is closed: the lease is free and
the process ends. When somebody decides, Prefect starts the same flow run again from
the top; it finds its row "suspended", reads the decision and goes on after the stages
that the row has. Prefect suspends only runs that a deployment started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from prefect.artifacts import create_table_artifact
from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from pydantic import ConfigDict, Field
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Check, Run, now
from flows import webhook
from flows.gates import decisions
from flows.gates.decisions import Decision
from flows.gates.errors import AwaitingDecision, GateError
from flows.operation_settings import period
from flows.settings import Settings


class GateDecision(RunInput):
    """A quality gate failed. Go on with what there is, or stop the run."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["continue", "stop"] = Field(description="Go on with the next stage, or stop the run")
    accept_as_baseline: bool = Field(
        default=False, description="Later runs are compared with this run's value (only with continue)"
    )
    name: str = Field(min_length=1, max_length=64, description="Who decides")
    why: str = Field(min_length=1, max_length=2000, description="The reason; it is kept")

    def plain(self) -> Decision:
        """As the catalogue records it."""
        return Decision(self.decision == "continue", self.accept_as_baseline, self.name, self.why)


def suspend(held: AwaitingDecision, settings: Settings) -> NoReturn:
    """Suspend the present flow run until somebody decides; ends by Prefect's ``Pause``."""
    _ask(held.stage, settings, [check.message for check in held.checks])
    raise held  # not reached: the first call with a key always suspends


def _ask(stage: str, settings: Settings, messages: list[str]) -> GateDecision:
    told = "\n".join(f"- {message}" for message in messages)
    form: Any = GateDecision.with_initial_data(
        description=f"Quality gate after **{stage}**:\n\n{told}\n\nWhat is done stays, whatever you decide."
    )
    wait = period(settings.gates.wait).total_seconds()
    answer = suspend_flow_run(wait_for_input=form, timeout=int(wait), key=f"gate-{stage}")
    return GateDecision(**answer.model_dump())


def take_up(catalogue: Catalogue, flow_run_id: str, settings: Settings) -> str:
    """The id of the suspended run of this flow run, its decision recorded; "" where there is none.

    Raises GateError where the decision is to stop; the run's row then says so.
    """
    with catalogue.reading() as db:
        query = select(Run).where(Run.flow_run_id == flow_run_id, Run.state == "suspended")
        row = db.scalar(query.order_by(Run.started_at.desc()).limit(1))
        if row is None:
            return ""
        stage = list(row.stages)[-1]
        open_checks = decisions.decidable(db, row.run_id, stage)
    decision = _ask(stage, settings, []).plain()
    decisions.record(catalogue, [check.check_id for check in open_checks], decision)
    if decision.go_on:
        return row.run_id
    message = f"stopped after {stage} by {decision.by}: {decision.why}"
    with catalogue.writing() as db:
        stopped = db.get_one(Run, row.run_id)
        stopped.state, stopped.message, stopped.finished_at = "failed", message, now()
    run = {"run_id": row.run_id, "flow": row.flow, "state": "failed", "flow_run_id": flow_run_id}
    why = {"type": "GateError", "reason": "stopped_by_decision", "step": stage}
    webhook.announce(settings.flows, webhook.RUN_FAILED, {"run": run, "error": why}, prefect_run=flow_run_id)
    raise GateError(message, step=stage)


def show(found: Sequence[Check], stage: str) -> None:
    """The checks of a stage as a table on the page of the run."""
    if not found:
        return
    rows = [
        {
            "gate": row.name,
            "of": row.scope or "all",
            "state": row.state,
            "severity": row.severity,
            "found": row.message.partition(": ")[2],
            "decision": " ".join(filter(None, (row.decision, row.decided_by))),
        }
        for row in found
    ]
    create_table_artifact(table=rows, key=f"checks-{stage}", description=f"Quality gates after {stage}")

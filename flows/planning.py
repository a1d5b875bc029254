"""``--dry-run``: what a run would do and cost, with nothing executed."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table
from sqlalchemy import select

from corpus.catalogue.tables import LedgerRow
from corpus.stages import Item, StageContext, Step
from flows.console import out
from flows.parameters import RefreshParameters
from flows.runtime import Runtime


@dataclass(frozen=True)
class StepPlan:
    """What one step would do now: all its items and those that need work."""

    step: str
    items: int
    todo: int


def plan(runtime: Runtime, parameters: RefreshParameters) -> list[StepPlan]:
    """Ask every step of the slice what it would do. Reads only.

    Later steps count on what is in the catalogue now; what earlier steps will
    add is not known yet.
    """
    context = StageContext(
        catalogue=runtime.catalogue,
        run_id="dry-run",
        force=parameters.force,
        only_failed=parameters.only_failed,
        limit=parameters.limit,
        sources=tuple(parameters.sources),
        chemicals=tuple(parameters.chemicals),
    )
    plans = []
    for name in parameters.stages():
        for step in runtime.stage(name).steps:
            items = step.plan(context)
            plans.append(StepPlan(step.name, len(items), _todo(runtime, context, step, items)))
    return plans


def _todo(runtime: Runtime, context: StageContext, step: Step, items: list[Item]) -> int:
    from corpus.stages import needs_work

    with runtime.catalogue.reading() as db:
        rows = {row.item_id: row for row in db.scalars(select(LedgerRow).where(LedgerRow.step == step.name))}
    chosen = [item for item in items if needs_work(rows.get(item.id), item, context)]
    return min(len(chosen), context.limit or len(chosen))


def show_plan(runtime: Runtime, parameters: RefreshParameters) -> None:
    """Print the plan with the model calls it would make and their cost."""
    table = Table(title="Dry run: nothing was executed", title_justify="left")
    for column in ("step", "items", "to do"):
        table.add_column(column, justify="left" if column == "step" else "right")
    plans = plan(runtime, parameters)
    for entry in plans:
        table.add_row(entry.step, str(entry.items), str(entry.todo))
    out.print(table)
    out.print(cost_line(runtime, plans))


def cost_line(runtime: Runtime, plans: list[StepPlan]) -> str:
    """Calls and money of the plan, a line per skill; zero without a model."""
    if not runtime.settings.models.configured():
        return "model calls: 0, cost: 0 (no model is configured; rule-based answers, labelled offline)"
    from flows.estimates import estimate

    rows = estimate(runtime, {entry.step: entry.todo for entry in plans})
    if not rows:
        return "model calls: 0 for what is in the catalogue now"
    lines = [
        f"{row.skill} ({row.model}): about {row.calls} calls, {row.tokens_in} tokens in, at most "
        f"{row.tokens_out} out, {'no price set' if row.cost is None else f'at most {row.cost:.2f}'}"
        for row in rows
    ]
    unpriced = any(row.cost is None for row in rows)
    total = "unknown, set models.price" if unpriced else f"at most {sum(row.cost or 0.0 for row in rows):.2f}"
    counter = runtime.models.token_counter_name
    lines.append(
        f"model calls: about {sum(row.calls for row in rows)}, cost: {total} "
        f"(counter {counter}; answers already in the store are not subtracted)"
    )
    return "\n".join(lines)

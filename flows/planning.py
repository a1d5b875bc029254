"""``--dry-run``: what a run would do and cost, with nothing executed."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from sqlalchemy import select

from corpus.catalogue.tables import LedgerRow
from corpus.stages import StageContext, Step, needs_work
from flows.accounting import money, short
from flows.asks import SKILLS
from flows.console import err, out
from flows.estimates import Forecast, Row, StepPlan, forecast
from flows.parameters import RefreshParameters, StageParameters
from flows.runtime import Runtime
from models.estimate import Estimate, summed

NO_MODEL = "model calls: 0, cost: 0 (no model is configured; rule-based answers, labelled offline)"


def context_of(runtime: Runtime, parameters: StageParameters) -> StageContext:
    """The context that steps plan with when nothing is run."""
    return StageContext(
        catalogue=runtime.catalogue,
        run_id="dry-run",
        **parameters.chosen(),
    )


def plan(runtime: Runtime, context: StageContext, stages: Iterable[str]) -> list[StepPlan]:
    """Ask every step of the stages what it would do. Reads only.

    Later steps count on what is in the catalogue now; what earlier steps will
    add is not among their items.
    """
    return [plan_step(context, step) for name in stages for step in runtime.stage(name).steps]


def plan_asking(runtime: Runtime, context: StageContext, stage: str) -> list[StepPlan]:
    """As ``plan``, of the steps that a stage's estimate rests on; no graph server is started for the others."""
    steps = runtime.stage(stage).steps
    return [plan_step(context, step) for step in steps if step.name in SKILLS or stage == "curate"]


def plan_step(context: StageContext, step: Step) -> StepPlan:
    """What one step would do."""
    items = step.plan(context)
    with context.catalogue.reading() as db:
        rows = {row.item_id: row for row in db.scalars(select(LedgerRow).where(LedgerRow.step == step.name))}
    chosen = [item for item in items if needs_work(rows.get(item.id), item, context)]
    return StepPlan(step.name, len(items), tuple(chosen[: context.limit]))


def show_plan(runtime: Runtime, parameters: RefreshParameters) -> None:
    """Print the plan with the model calls it would make and their cost."""
    context = context_of(runtime, parameters)
    plans = plan(runtime, context, parameters.stages())
    table = Table(title="Dry run: nothing was executed", title_justify="left")
    for column in ("step", "items", "to do"):
        table.add_column(column, justify="left" if column == "step" else "right")
    for entry in plans:
        table.add_row(entry.step, str(entry.items), str(entry.todo))
    out.print(table)
    with err.status("estimating model calls"):  # nothing is shown where the output is no terminal
        found = forecast(runtime, context, plans)
    show_forecast(found)


def show_forecast(found: Forecast) -> None:
    """Print estimates, a row per skill; readable at 80 columns."""
    if found.offline:
        out.print(NO_MODEL, markup=False)
        return
    if found.rows:
        out.print(_table(found))
        out.print(_legend(found), markup=False)
    elif not found.notes:
        out.print("model calls: 0 for what is in the catalogue now", markup=False)
    for note in found.notes:
        out.print(f"- {note}", markup=False)


def _table(found: Forecast) -> Table:
    table = Table(title="Model calls to expect", title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("skill", no_wrap=True)
    for column in ("calls", "stored", "in", "cached", "out", "cost", "at most"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("basis", no_wrap=True)
    for row in found.rows:
        table.add_row(row.estimate.skill, *_cells(row.estimate), _basis(row))
    total = found.total
    if total is not None and len(found.rows) > 1:
        table.add_row("all", *_cells(total), "", style="bold")
    return table


def _cells(found: Estimate) -> list[str]:
    return [
        short(found.calls + found.repeats),
        short(found.stored),
        short(found.tokens_in),
        short(found.tokens_cached),
        short(found.tokens_out),
        money(found.cost),
        money(found.cost_limit) if found.cost_limit is not None else f"{short(found.tokens_out_limit)} t",
    ]


def _basis(row: Row) -> str:
    found = row.estimate
    if found.basis == "projected" and found.certain:
        return f"{100 * found.certain // max(found.calls, 1)}% exact"
    return found.basis


def _legend(found: Forecast) -> str:
    models = sorted({row.estimate.model for row in found.rows})
    total = summed(row.estimate for row in found.rows)
    price = (
        ""
        if total is None or total.cost is not None
        else " No price is set for all of them: set models.price."
    )
    learned = sorted({row.estimate.skill for row in found.rows if row.estimate.sized_by != "rule of thumb"})
    sized = f"by the store's own history for {', '.join(learned)}, else " if learned else ""
    repeats = (
        f" ({short(total.repeats)} of them second questions after a failed check, by the store's history)"
        if total is not None and total.repeats
        else ""
    )
    return (
        f"Models: {', '.join(models)}. Tokens in the counter {found.counter!r}. calls: questions not in the store"
        f"{repeats}. in: all input tokens; cached: those of them that repeat the "
        f"beginning of an earlier prompt. out: sized {sized}by rules of thumb. at most: nothing cached, every "
        f"question asked twice, every answer as long as allowed (t: output tokens).{price}"
    )

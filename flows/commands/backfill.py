"""``hchem backfill`` and ``hchem partitions``: the corpus by source and period."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from flows import backfill as logic
from flows import execution, partitions
from flows.commands.pipeline import (
    Chemicals,
    Direct,
    Force,
    Preset,
    Sources,
    StageChoice,
    Wait,
    checked,
    interruptible,
    prepared,
    run_on_server,
)
from flows.console import ProgressDisplay, err, out, show_summary, whole
from flows.parameters import BackfillParameters
from flows.planning import context_of, show_forecast
from flows.runtime import Runtime, open_runtime
from flows.settings import Settings
from flows.words import counted

if TYPE_CHECKING:
    from corpus.catalogue.tables import SourcePeriod
    from flows.backfill import Choice, Done
    from flows.partitions import Standing

app = typer.Typer()
_SOME_FAILED = 1

From = Annotated[
    str | None, typer.Option("--from", help="First period: 2026-01 (also 2026, 2026-W05, 2026-01-31).")
]
To = Annotated[str | None, typer.Option("--to", help="Last period, itself included.")]
FromStage = Annotated[StageChoice, typer.Option("--from-stage", help="First stage.")]
ToStage = Annotated[StageChoice, typer.Option("--to-stage", help="Last stage.")]


@app.command()
def backfill(
    source: Sources = None,
    from_period: From = None,
    to_period: To = None,
    from_stage: FromStage = StageChoice.curate,
    to_stage: ToStage = StageChoice.evaluate,
    chemical: Chemicals = None,
    chemical_groups: Annotated[
        str | None,
        typer.Option(
            "--chemical-groups", help="With --from-stage acquire: groups of substances, 0-7 or 0,3,5."
        ),
    ] = None,
    only_missing: Annotated[
        bool, typer.Option("--only-missing", help="Only what was never processed.")
    ] = False,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Only partitions with failures, terminal ones included.")
    ] = False,
    force: Force = False,
    parallel: Annotated[
        int,
        typer.Option("--parallel", min=1, max=64, help="Processes that work on batches, this one included."),
    ] = 1,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Agree to the model calls without being asked.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the partitions, what is to do and what it would cost.")
    ] = False,
    direct: Direct = False,
    preset: Preset = None,
    wait: Wait = False,
) -> None:
    """Work on the partitions (source × month of transfer) that are not up to date, one after the other.

    Partitions are not up to date when pages were never processed or failed, or when code, settings,
    prompts or models have changed since; `hchem partitions` lists them. The cost in model calls is shown
    first and must be agreed to. A call that was interrupted goes on where it stopped. Exit code 1: some
    partitions failed, the others are done.

    Examples: hchem backfill --dry-run | hchem backfill --source cameo --from 2026-01 --to 2026-06
    | hchem backfill --only-failed | hchem backfill --from-stage chunks --yes
    | hchem backfill --from-stage acquire --to-stage acquire --chemical-groups 0-7
    """
    parameters = checked(
        BackfillParameters,
        sources=source or [],
        from_period=from_period,
        to_period=to_period,
        from_stage=from_stage.value,
        to_stage=to_stage.value,
        chemicals=chemical or [],
        chemical_groups=chemical_groups,
        only_missing=only_missing,
        only_failed=only_failed,
        force=force,
        parallel=parallel,
        yes=yes,
        wait=wait,
        preset=preset,
    )
    settings = prepared(parameters)
    agreed = _show_and_ask(parameters, settings, dry_run=dry_run)
    if agreed is None:
        return
    try:
        with interruptible():
            if direct:
                _run_direct(agreed, settings)
            else:
                run_on_server(lambda: _flow(agreed), agreed, settings)
    except logic.PartitionsFailedError as error:
        err.print(f"hchem: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(_SOME_FAILED) from error


def _show_and_ask(
    parameters: BackfillParameters, settings: Settings, *, dry_run: bool
) -> BackfillParameters | None:
    """Show what there is to do and what it costs; the parameters with consent, None where nothing is to be run."""
    with open_runtime(settings=settings) as runtime:
        partitions.check_selection(runtime, parameters)
        ctx = context_of(runtime, parameters)
        choice = logic.choose(runtime, ctx, parameters)
        acquires = "acquire" in parameters.stages()
        if choice.empty and not acquires:
            _tell_nothing(choice)
            return None
        _show_choice(choice, acquires=acquires)
        with err.status("estimating model calls"):
            found = logic.cost(runtime, ctx, parameters, choice)
        show_forecast(found)
        if dry_run:
            out.print("Dry run: nothing was executed.")
            return None
    calls = logic.expected_calls(found)
    if calls != 0 and not parameters.yes:
        if not (sys.stdin.isatty() and err.is_terminal):
            logic.require_consent(found)
        told = "an unknown number of" if calls is None else f"about {calls}"
        if not typer.confirm(f"Go on with {told} model calls?", err=True):
            raise typer.Exit
    return parameters.model_copy(update={"yes": True})


def _tell_nothing(choice: Choice) -> None:
    failed = sum(bool(standing.total("failed")) for standing in choice.before.values())
    out.print("nothing to do: the chosen partitions are up to date")
    if failed:
        out.print(f"{counted(failed, 'partition')} with failures that only --only-failed tries again")


def _show_choice(choice: Choice, *, acquires: bool) -> None:
    if acquires and not choice.groups:
        out.print("no group of substances waits; query links that the run makes first may add some")
    elif acquires:
        table = Table(title="Groups of substances to acquire", title_justify="left")
        for heading in ("source", "group", "state", "substances", "links", "never asked", "failed"):
            table.add_column(heading, justify="left" if heading in ("source", "group", "state") else "right")
        for group in choice.groups:
            figures = (len(group.chemicals), group.links, group.missing, group.failed)
            table.add_row(group.source, group.name, group.state, *map(str, figures))
        out.print(whole(table, "source", "group", "state"))
        out.print(
            "Groups are chosen again when the query links are made, partitions when the pages are there."
        )
    if choice.chosen:
        out.print(_table("Partitions to work on", [choice.marked[place] for place in choice.chosen]))


def _table(
    title: str, rows: list[Standing], past: dict[tuple[str, str], SourcePeriod] | None = None
) -> Table:
    """Partitions with what is to do, a column per step that has something to do (methods of chunking as one)."""
    todo = [_todo(standing) for standing in rows]
    names = list(dict.fromkeys(name for one in todo for name in one))
    caption = None if past is None else _caption([standing.state for standing in rows], names)
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for heading in ("source", "period", "state"):
        table.add_column(heading)
    for heading in ("pages", "failed", *names):
        table.add_column(heading, justify="right")
    if past is not None:
        table.add_column("last backfill")
    for standing, one in zip(rows, todo, strict=True):
        place = standing.partition
        figures = [standing.pages, standing.total("failed"), *(one.get(name, 0) for name in names)]
        cells = [str(figure) if figure else "" for figure in figures]
        if past is not None:
            cells.append(_last(past.get((place.source, place.period))))
        table.add_row(place.source, place.period, standing.state, *cells)
    return whole(table, "source", "period", "state")


_STATES = {
    partitions.PENDING: "something was never processed",
    partitions.STALE: "made by other code, settings or models",
    partitions.FAILED: "something failed, which hchem backfill --only-failed tries again",
    partitions.OK: "nothing to do",
}


def _caption(states: Iterable[str], names: Sequence[str]) -> str:
    """What the states and columns that are shown mean."""
    told = "; ".join(f"{state}: {_STATES[state]}" for state in _STATES if state in set(states))
    if not names:
        return f"{told}."
    return (
        f"{told}. Under {', '.join(names)}: items that the step has to do now; steps without a column have none, "
        "or learn of theirs when those before them have run."
    )


def _todo(standing: Standing) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, counts in standing.steps.items():
        stage, _, step = name.partition(".")
        short = stage if stage == "chunks" else step
        if counts.todo:
            found[short] = found.get(short, 0) + len(counts.todo)
    return found


def _last(row: SourcePeriod | None) -> str:
    if row is None:
        return ""
    when = row.finished_at or row.started_at
    return f"{row.state} {when:%Y-%m-%d %H:%M}".strip() if when else row.state


def _run_direct(parameters: BackfillParameters, settings: Settings) -> None:
    from flows import report

    run_id = execution.new_run_id()
    with open_runtime(settings=settings, run_id=run_id) as runtime:
        with (
            ProgressDisplay() as display,
            execution.session(runtime, "backfill", parameters, progress=display) as current,
        ):
            with logic.assistants(parameters.parallel):
                done = logic.run(current, parameters, execution.direct, lambda _name, work: work())
            if not done.stopped:
                execution.take_version(current)
            path = report.write(runtime, run_id, current.stages)
            done.raise_if_failed()
        show_summary(runtime.catalogue, current.stages)
    _show_done(done)
    out.print(f"report: {path}", soft_wrap=True)


def _flow(parameters: BackfillParameters) -> dict[str, Any]:
    from flows import backfill_flow

    return backfill_flow.backfill(parameters)


def _show_done(done: Done) -> None:
    states = ", ".join(f"{label} {state}" for label, state in sorted(done.partitions.items()))
    out.print(
        f"{counted(len(done.partitions), 'partition')}: {states or 'none'}", markup=False, soft_wrap=True
    )
    if done.moved:
        out.print(f"brought up to date again: {', '.join(done.moved)}", markup=False, soft_wrap=True)


@app.command("partitions")
def list_partitions(
    source: Sources = None,
    from_period: From = None,
    to_period: To = None,
    from_stage: FromStage = StageChoice.curate,
    to_stage: ToStage = StageChoice.evaluate,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the partitions (source × month of transfer) with their state and what the last backfill did.

    Examples: hchem partitions | hchem partitions --source cameo --from 2026-01 --json
    """
    parameters = checked(
        BackfillParameters,
        sources=source or [],
        from_period=from_period,
        to_period=to_period,
        from_stage=from_stage.value,
        to_stage=to_stage.value,
    )
    with open_runtime() as runtime:
        partitions.check_selection(runtime, parameters)
        rows = _standings(runtime, parameters)
        past = partitions.history(runtime.catalogue)
    if as_json:
        typer.echo(json.dumps([_row(standing, past) for standing in rows], ensure_ascii=False, indent=2))
    elif rows:
        out.print(_table("Partitions", rows, past))
    else:
        out.print("no partition: the catalogue holds no page of the choice")


def _standings(runtime: Runtime, parameters: BackfillParameters) -> list[Standing]:
    span = partitions.window(parameters.from_period, parameters.to_period)
    steps = [step for _, step in logic.slice_of(runtime, parameters)]
    found = partitions.standings(context_of(runtime, parameters), steps, runtime.settings.flows.period)
    wanted = parameters.sources
    return [
        standing
        for place, standing in found.items()
        if place.overlaps(span) and (not wanted or place.source in wanted)
    ]


def _row(standing: Standing, past: dict[tuple[str, str], SourcePeriod]) -> dict[str, Any]:
    row = past.get((standing.partition.source, standing.partition.period))
    last = None
    if row is not None:
        last = {
            "state": row.state, "run_id": row.run_id, "counts": row.counts, "message": row.message,
            "started_at": _iso(row.started_at), "finished_at": _iso(row.finished_at),
        }  # fmt: skip
    return {**standing.as_dict(), "last_backfill": last}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None

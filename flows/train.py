"""``hchem train`` (``python -m flows.train`` under ``torchrun``): fine-tune M_Gen, M_Disc, M_Ref or the levels model on training records."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from corpus.errors import PlatformError, SettingsError
from flows import logging as hchem_logging
from flows.training.data import read_records
from flows.training.recipes import RECIPES, Recipe, recipe_of
from flows.training.trainer import Job, cost_of, fit, names, require
from models.errors import ModelError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="qchunker-paper or hichunk-paper.")],
    data: Annotated[Path, typer.Option("--data", help="Directory of `hchem dataset training`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory of checkpoints and of the model.")],
    task: Annotated[
        str | None,
        typer.Option(
            "--task", help="generate, discriminate or refine (qchunker-paper); levels (hichunk-paper)."
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="Base model: folder or name; default: the paper's.")
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another value of the recipe.")
    ] = None,
    allow_offline: Annotated[
        bool, typer.Option("--allow-offline", help="Also train on answers that the platform's rules made.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show recipe and cost (tokens, steps, memory); train nothing.")
    ] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="On the processor, whatever else there is.")] = False,
    direct: Annotated[
        bool, typer.Option("--direct", help="Without Prefect (always under torchrun).")
    ] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Begin again; do not go on from the last checkpoint.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fine-tune one model as a paper did. A training that was stopped goes on from its last checkpoint.

    The loss is the mean over each answer's tokens, then over the answers of a step.

    Examples:

    hchem train qchunker-paper --data records --task generate --out m-gen --dry-run

    hchem train qchunker-paper --data records --task refine --out m-ref --base Qwen2.5-3B-Instruct

    torchrun --nproc-per-node 8 -m flows.train hichunk-paper --data levels --out m-levels

    hchem train hichunk-paper --data levels --out tiny --base tiny-model --cpu --set bf16=false --set max_steps=20
    """
    chosen = recipe_of(recipe, names(change or []))
    which = _task(chosen, task)
    if base is not None and (
        not base.strip() or (base[:1] in "/.~" and not Path(base).expanduser().is_dir())
    ):
        raise SettingsError(f"--base {base!r} is no directory of a model, and no name of one")
    records = read_records(data, which, "train", allow_offline=allow_offline)
    held_out = read_records(data, which, "validation", allow_offline=allow_offline)
    job = Job(chosen, which, base or chosen.base, out, records, held_out if len(held_out) else None, cpu)
    if not len(records):
        raise SettingsError(f"there are no records of {which} in {data}")
    if dry_run:
        _show_plan(job, as_json=as_json)
        return
    require()
    figures = _run(job, direct=direct or job.devices > 1, afresh=afresh)
    if as_json:
        typer.echo(json.dumps(figures))
    elif os.environ.get("RANK", "0") == "0":
        for name, value in figures.items():
            typer.echo(f"{name.replace('_', ' ')}: {value}")


def _task(recipe: Recipe, given: str | None) -> str:
    if given is None and len(recipe.tasks) == 1:
        return recipe.tasks[0]
    if given not in recipe.tasks:
        raise SettingsError(f"--task {given!r}: {recipe.name} trains {', '.join(recipe.tasks)}")
    return given


def _show_plan(job: Job, *, as_json: bool) -> None:
    cost = cost_of(job)
    values = {**job.recipe.values(), "base": job.base, "loss": "mean over each answer's tokens"}
    sources = RECIPES[job.recipe.name].sources or {}
    if as_json:
        plan = {
            "recipe": values,
            "sources": dict(sources),
            "cost": cost.as_dict(),
            "made_by": job.records.made_by,
        }
        typer.echo(json.dumps(plan))
        return
    original = {**RECIPES[job.recipe.name].values(), "base": job.recipe.base}
    for name, value in values.items():
        changed = name in original and original[name] != value
        said = f"changed; the recipe has {original[name]}" if changed else sources.get(name, "")
        typer.echo(f"{name}: {value}" + (f"  ({said})" if said else ""))
    made = ", ".join(f"{who} {n}" for who, n in sorted(job.records.made_by.items()))
    typer.echo("\n".join([f"answers made by: {made}", *cost.lines()]))


def _run(job: Job, *, direct: bool, afresh: bool) -> dict[str, Any]:
    from flows.console import ProgressDisplay, err

    if direct:
        with ProgressDisplay() as display:
            return fit(job, display, afresh=afresh)
    from flows import prefect_server
    from flows.runtime import prepare_data_dir
    from flows.settings import load_settings

    settings = load_settings()
    prefect_server.ensure(prepare_data_dir(settings.data_dir), settings.prefect, tell=err.print)
    from flows.training.train_flow import train_with_prefect

    with ProgressDisplay() as display:
        return train_with_prefect(job, display, afresh=afresh)


def main() -> None:
    """Run the command; errors raised on purpose are one line on stderr and exit code 2."""
    hchem_logging.set_up(0, as_json=False)
    try:
        app(prog_name="python -m flows.train")
    except (PlatformError, ModelError) as error:
        message = " ".join(hchem_logging.without_secrets(str(error)).split())
        sys.stderr.write(f"flows.train: {message}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()

"""``hchem models estimate``: what the next refresh would ask of models."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from corpus.errors import SettingsError
from flows.parameters import STAGES, RefreshParameters
from flows.runtime import open_runtime

app = typer.Typer()


@app.command()
def estimate(
    stage: Annotated[str | None, typer.Option("--stage", help="Only this stage.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with exact figures.")] = False,
) -> None:
    """Estimate calls, tokens and money of the next refresh per skill; asks nobody and stores nothing.

    Examples: hchem models estimate | hchem models estimate --stage curate --json
    """
    from flows.estimates import forecast
    from flows.planning import context_of, plan, show_forecast

    if stage is not None and stage not in STAGES:
        raise SettingsError(f"unknown stage {stage!r}; stages: {', '.join(STAGES)}")
    # what a crawl would fetch is not known, so that its stage is not planned
    stages = STAGES[1:] if stage is None else (stage,)
    with open_runtime() as runtime:
        context = context_of(runtime, RefreshParameters())
        found = forecast(runtime, context, plan(runtime, context, stages))
        if as_json:
            typer.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        else:
            show_forecast(found)

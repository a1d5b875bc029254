"""``hchem models …``: which model serves which skill, does it answer, what would a run cost, batch jobs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from flows.commands import model_batches, model_estimate, model_presets, try_skill
from flows.console import err, out, whole
from flows.settings import load_settings
from flows.skills import ABSENT
from models.registry import Models
from models.settings import SKILL_NAMES, ModelSettings

app = typer.Typer()
for module in (try_skill, model_estimate, model_presets):
    app.registered_commands.extend(module.app.registered_commands)


app.add_typer(
    model_batches.app, name="batches", help="Jobs at an endpoint's batch API.", no_args_is_help=True
)


@app.command()
def show(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the model, endpoint and parameters of every skill, embedders and perplexity; keys are never shown.

    Example: hchem models show
    """
    settings = load_settings().models
    if as_json:
        typer.echo(json.dumps(describe(settings), ensure_ascii=False, indent=2))
        return
    table = Table(title="Skills", title_justify="left", box=None, padding=(0, 1), pad_edge=False)
    for column in ("skill", "model", "endpoint", "parameters", "draws", "transport", "key", "price in/out"):
        table.add_column(column)
    for row in describe(settings)["skills"]:
        parameters = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
        price = row["price"]
        shown = f"{price['input']:g}/{price['output']:g}" if price else "–"
        key = "set" if row["key"] else "–"
        cells = (
            row["skill"],
            row["model"],
            row["base_url"] or "–",
            parameters or "–",
            str(row["draws"]),
            row["transport"],
            key,
            shown,
        )
        table.add_row(*cells)
    out.print(whole(table, "skill", "model", "draws", "key"))
    for name, value in describe(settings)["others"].items():
        out.print(f"{name}: {value}", markup=False)


@app.command()
def check() -> None:
    """Ask every configured endpoint once. Exit code 2 when one does not answer.

    Example: hchem models check
    """
    from models.check import check_endpoints

    models = Models(load_settings().models)
    try:
        findings = check_endpoints(models, lambda line: err.print(line, markup=False, soft_wrap=True))
    finally:
        models.close()
    if not models.settings.configured():
        out.print("skills: offline, answered by rules (set HCHEM_MODELS__MODEL to use a model)", markup=False)
    if absent := [name for name in SKILL_NAMES if name in ABSENT and models.settings.resolve(name) is None]:
        out.print(f"absent, no rule answers: {', '.join(absent)}", markup=False, soft_wrap=True)
    for finding in findings:
        out.print(
            f"{'ok ' if finding.fine else 'bad'} {finding.name}: {finding.seen}", markup=False, soft_wrap=True
        )
    if not all(finding.fine for finding in findings):
        raise typer.Exit(2)


def describe(settings: ModelSettings) -> dict[str, Any]:
    """The configuration without secrets: a row per skill, then embedders, perplexity, limits, budget."""
    rows = []
    for name in SKILL_NAMES:
        resolved = settings.resolve(name)
        rows.append(
            {
                "skill": name,
                "model": resolved.model if resolved else "absent" if name in ABSENT else "offline",
                "base_url": resolved.base_url if resolved else None,
                "parameters": resolved.parameters() if resolved else {},
                "draws": resolved.draws if resolved else 1,
                "transport": resolved.transport if resolved else "–",
                "key": bool(resolved and resolved.api_key),
                "price": resolved.price.model_dump() if resolved and resolved.price else None,
            }
        )
    others = {
        "embeddings for cohesion": settings.embeddings.backend("cohesion"),
        "embeddings for the index": settings.embeddings.backend("index"),
        "perplexity": settings.perplexity.backend,
        "tokens": settings.tokens,
        "limits": _shown(settings.limits.model_dump()),
        "budget": _shown(settings.budget.model_dump()),
    }
    return {"skills": rows, "others": others}


def _shown(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None) or "no limit"

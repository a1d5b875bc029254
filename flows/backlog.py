"""Which stages are behind what stages before them made, and the command that catches up.

What curation has to do is counted (its first step plans by the catalogue alone). What the
stages behind it have to do is told by the record of the runs: a stage is behind when one
that it reads from worked after its own last whole run, or is behind itself, or when
settings that its results rest on are others now than they were in that run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import LedgerRow, Run
from corpus.stages import StageContext, needs_work
from flows.parameters import RESTRICTIONS, STAGES
from flows.settings import value_at
from flows.words import counted

# What each stage reads from. Names of substances (acquire) are read by the graph and by chunking as well.
_READS = {
    "acquire": (),
    "curate": ("acquire.pages",),
    "graph": ("curate", "acquire.names"),
    "questions": ("graph",),
    "chunks": ("curate", "acquire.names"),
    "evaluate": ("questions", "chunks"),
}
# Settings that a stage's results rest on. What only says how it is done (batches, limits, addresses) is none.
_RESTS_ON = {
    "curate": ("corpus.cleaning", "corpus.quality", "corpus.refinement", "corpus.duplicates"),
    "graph": ("extraction", "graph.schema_file"),
    "questions": ("questions",),
    "chunks": ("chunks", "embeddings.cohesion"),
    "evaluate": ("evaluation", "embeddings.index", "embeddings.model"),
}
_OF_MODELS = ("model", "temperature", "top_p", "extra")
_RESTRICTS = tuple(name for name in RESTRICTIONS if name != "archive")  # that is another way to acquire
_NAMES = "acquire.chemicals"
_CRAWLS = ("acquire.crawl", "acquire.from_archive", "acquire.links")


def behind(catalogue: Catalogue, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """``stages`` that are behind, in order; ``pages`` that wait for curation; the ``command`` that catches up.

    ``settings``: as they are now, as plain data; the stages that they make late stand under ``settings``.
    """
    waiting = _pages_to_curate(catalogue)
    made, ran_with = _made_since(catalogue)
    late: set[str] = {"acquire.pages"} if waiting else set()
    stages: list[str] = []
    changed = [
        stage
        for stage, before in ran_with.items()
        if settings is not None and _differ(_basis(stage, before), _basis(stage, settings))
    ]
    for stage in STAGES:
        read = any(source in late or source in made.get(stage, ()) for source in _READS[stage])
        if read or stage in changed:
            late.add(stage)
            stages.append(stage)
    return {
        "stages": stages,
        "pages": waiting,
        "settings": [stage for stage in STAGES if stage in changed],
        "command": _command(stages),
    }


def _basis(stage: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a stage's results rest on, by path; a model's where one of the stage's skills asks it."""
    from flows.asks import SKILLS  # loads every stage's package

    found = {path: value_at(settings, path) for path in _RESTS_ON.get(stage, ())}
    skills = {skill for step, names in SKILLS.items() if step.split(".")[0] == stage for skill in names}
    models = settings.get("models") or {}
    for skill in skills if found else ():
        own = (models.get("skills") or {}).get(skill) or {}
        model = {name: own.get(name, models.get(name)) for name in _OF_MODELS}
        found[f"models {skill}"] = (
            model if model["model"] else None
        )  # without a model the others mean nothing
    return found


def _differ(before: Any, now: Any) -> bool:
    """Whether two values differ; a setting that one of them does not know (an older version's run) counts for nothing."""
    if isinstance(before, dict) and isinstance(now, dict):
        return any(_differ(before[name], now[name]) for name in before.keys() & now.keys())
    return bool(before != now)


def _command(stages: list[str]) -> str:
    if not stages:
        return ""
    return f"hchem run {stages[0]}" if len(stages) == 1 else f"hchem refresh --from-stage {stages[0]}"


def _pages_to_curate(catalogue: Catalogue) -> int:
    """Pages that are new, changed or gone since curation saw them."""
    from corpus.curating.pages import ProfileStep

    step = ProfileStep()
    context = StageContext(catalogue, "backlog")
    items = step.plan(context)
    with catalogue.reading() as db:
        rows = {row.item_id: row for row in db.scalars(select(LedgerRow).where(LedgerRow.step == step.name))}
    planned = {item.id for item in items}
    return sum(needs_work(rows.get(item.id), item, context) for item in items) + len(set(rows) - planned)


def _made_since(catalogue: Catalogue) -> tuple[dict[str, set[str]], dict[str, dict[str, Any]]]:
    """Stage → what was made since its last whole run, over all runs in their order; and the settings of that run."""
    made: dict[str, set[str]] = {stage: set() for stage in STAGES}
    ran_with: dict[str, dict[str, Any]] = {}
    with catalogue.reading() as db:
        runs = db.execute(
            select(Run.flow, Run.state, Run.parameters, Run.stages, Run.settings).order_by(Run.started_at)
        ).all()
    for flow, state, parameters, ran, settings in runs:
        restricted = any(parameters.get(name) for name in _RESTRICTS)
        for position, (stage, report) in enumerate(ran.items(), start=1):
            # a backfill goes on where a partition failed: its earlier stages need not be whole
            whole = state in ("completed", "running", "suspended") or (
                position < len(ran) and flow != "backfill"
            )
            if whole and not restricted and stage in made:
                made[stage].clear()
                if settings:
                    ran_with[stage] = settings
            for product in _products(stage, report["steps"]):
                for later in STAGES[STAGES.index(stage) + 1 :] if stage in STAGES else ():
                    made[later].add(product)
    return made, ran_with


def _products(stage: str, steps: dict[str, Any]) -> Iterable[str]:
    """What a stage's steps made in a run; a crawl asks in every run, its pages are counted elsewhere."""
    for step, counts in steps.items():
        if counts["pending"] and step not in _CRAWLS:
            yield "acquire.names" if step == _NAMES else stage


def described(found: dict[str, Any], *, running: bool = False) -> str:
    """The backlog in words; empty where there is none. While a run is at work no second one is advised."""
    if not found["stages"]:
        return ""
    pages = found["pages"]
    why = dict.fromkeys(found.get("settings", ()), "other settings")
    if pages:
        why["curate"] = counted(pages, "page")
    words = [f"{stage} ({why[stage]})" if stage in why else stage for stage in found["stages"]]
    return f"{', '.join(words)}; " + ("a run is at work" if running else f"to catch up: {found['command']}")

"""Which stages are behind what stages before them made, and the command that catches up.

What curation has to do is counted (its first step plans by the catalogue alone). What the
stages behind it have to do is told by the record of the runs: a stage is behind when one
that it reads from worked after its own last whole run, or is behind itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import LedgerRow, Run
from corpus.stages import StageContext, needs_work
from flows.parameters import STAGES

# What each stage reads from. Names of substances (acquire) are read by the graph and by chunking as well.
_READS = {
    "acquire": (),
    "curate": ("acquire.pages",),
    "graph": ("curate", "acquire.names"),
    "questions": ("graph",),
    "chunks": ("curate", "acquire.names"),
    "evaluate": ("questions", "chunks"),
}
_NAMES = "acquire.chemicals"
_CRAWLS = ("acquire.crawl", "acquire.from_archive", "acquire.links")


def behind(catalogue: Catalogue) -> dict[str, Any]:
    """``stages`` that are behind, in order; ``pages`` that wait for curation; the ``command`` that catches up."""
    waiting = _pages_to_curate(catalogue)
    made = _made_since(catalogue)
    late: set[str] = {"acquire.pages"} if waiting else set()
    stages: list[str] = []
    for stage in STAGES:
        if any(source in late or source in made.get(stage, ()) for source in _READS[stage]):
            late.add(stage)
            stages.append(stage)
    return {"stages": stages, "pages": waiting, "command": _command(stages)}


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


def _made_since(catalogue: Catalogue) -> dict[str, set[str]]:
    """Stage → what was made since its last whole run, over all runs in their order."""
    made: dict[str, set[str]] = {stage: set() for stage in STAGES}
    with catalogue.reading() as db:
        runs = db.execute(select(Run.state, Run.parameters, Run.stages).order_by(Run.started_at)).all()
    for state, parameters, ran in runs:
        restricted = any(parameters.get(name) for name in ("sources", "chemicals", "only_failed", "limit"))
        for position, (stage, report) in enumerate(ran.items(), start=1):
            whole = state in ("completed", "running") or position < len(ran)
            if whole and not restricted and stage in made:
                made[stage].clear()
            for product in _products(stage, report["steps"]):
                for later in STAGES[STAGES.index(stage) + 1 :] if stage in STAGES else ():
                    made[later].add(product)
    return made


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
    words = [
        f"{stage} ({pages} page{'' if pages == 1 else 's'})" if stage == "curate" and pages else stage
        for stage in found["stages"]
    ]
    return f"{', '.join(words)}; " + ("a run is at work" if running else f"to catch up: {found['command']}")

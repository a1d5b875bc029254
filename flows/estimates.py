"""What a run would ask of models: calls, tokens and money per skill, with nobody asked.

Where the inputs of a step exist its real prompts are built (``flows.asks``), of
more than ``SAMPLE`` items a seeded sample. What rests on earlier answers is
projected: a document that is not scored yet counts for the later steps when the
rules' score passes it, and its cleaned text stands in for its refined text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import case, func, select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, ModelCall, Page
from corpus.ids import digest
from corpus.stages import Item, StageContext
from flows.asks import BY_DOCUMENT, FOLLOWING_SHARE, FOLLOWS, SKILLS, Rehearsing, Source
from flows.runtime import Runtime
from models.estimate import ENOUGH, Basis, Estimate, History, Tally, summed
from models.settings import SKILL_NAMES, Budget

SAMPLE = 200
"""Items of a step above which a seeded sample is looked at."""

WHOLE = 12
"""Documents on which a method with several agents is rehearsed to its end; the rest only to its first skill."""

_SEED = "estimate"


@dataclass(frozen=True)
class StepPlan:
    """What one step would do now: all its items, and those that need work."""

    step: str
    items: int
    chosen: tuple[Item, ...]

    @property
    def todo(self) -> int:
        """How many items need work."""
        return len(self.chosen)


@dataclass(frozen=True)
class Row:
    """The estimate of one skill in one step."""

    step: str
    estimate: Estimate

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"step": self.step, **asdict(self.estimate)}


@dataclass
class Forecast:
    """Estimates by step and skill, in the order of the run, and what cannot be known yet."""

    counter: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    offline: bool = False

    @property
    def total(self) -> Estimate | None:
        """All rows as one; None without rows."""
        return summed(row.estimate for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        total = self.total
        return {
            "counter": self.counter,
            "offline": self.offline,
            "skills": [row.as_dict() for row in self.rows],
            "total": None if total is None else _figures(total),
            "notes": self.notes,
        }


def _figures(total: Estimate) -> dict[str, Any]:
    return {k: v for k, v in asdict(total).items() if k not in ("skill", "model", "sized_by", "counter")}


@dataclass
class _Flow:
    """Documents on their way: ``ids`` to look at, ``total`` to expect."""

    ids: list[str] = field(default_factory=list)
    total: float = 0.0

    def without(self, known: Iterable[str], limit: int | None) -> _Flow:
        """What is left beside documents that a step has to do anyway."""
        held = set(known)
        ids = [i for i in self.ids if i not in held]
        total = self.total * len(ids) / len(self.ids) if self.ids else 0.0
        room = total if limit is None else max(0, limit - len(held))
        return _Flow(ids, min(total, room))

    def plus(self, other: _Flow) -> _Flow:
        """Both, each document once."""
        return _Flow(sorted({*self.ids, *other.ids}), self.total + other.total)


def forecast(runtime: Runtime, context: StageContext, plans: Sequence[StepPlan]) -> Forecast:
    """Estimate the planned steps. Reads only, and sends nothing.

    Steps whose skills are all offline are left out; without any model the forecast
    is empty and says so.
    """
    models = runtime.settings.models
    found = Forecast(runtime.models.token_counter_name, offline=not models.configured())
    asking = {
        plan.step: plan
        for plan in plans
        if any(models.resolve(name) is not None for name in SKILLS.get(plan.step, ()))
    }
    if not asking:
        return found
    runtime.models.flush()  # verdicts on answers of this process
    maker = _Maker(runtime, context, found)
    try:
        for plan in plans:
            if plan.step in asking:
                maker.step(plan)
            else:
                maker.passes(plan)
    finally:
        maker.close()
    found.notes += maker.gaps()
    _tell_unknown(runtime, plans, asking, found)
    return found


class _Maker:
    """Goes through the steps in order and carries the documents that are on their way."""

    def __init__(self, runtime: Runtime, context: StageContext, found: Forecast) -> None:
        self._runtime = runtime
        self._context = context
        self._found = found
        self._rehearsing = Rehearsing(runtime, context)
        self._history = history(runtime.catalogue)
        self._flow = _Flow()
        self._before: list[StepPlan] = []  # steps of the slice, up to the present one

    def close(self) -> None:
        """Give back what the rehearsal holds."""
        self._rehearsing.close()

    def gaps(self) -> list[str]:
        """What broke in the rehearsal, and is therefore not counted."""
        return [
            f"{step}: {len(ids)} documents that were looked at could not be estimated and are not counted"
            for step, ids in self._rehearsing.failed.items()
        ]

    def step(self, plan: StepPlan) -> None:
        """Estimate one step."""
        if plan.step in BY_DOCUMENT:
            self._by_document(plan)
        elif plan.step == "evaluate.score":
            if plan.chosen or self._moving():
                self._add(plan.step, self._rehearsing.answers(), "projected")
        else:
            self._at_once(plan)
        self._before.append(plan)

    def passes(self, plan: StepPlan) -> None:
        """A step that asks no model: its documents go on to the next ones."""
        if plan.step in ("curate.score", "curate.refine"):
            self._flow = self._flow.plus(self._passing(plan, [item.id for item in plan.chosen]))
        self._before.append(plan)

    def _by_document(self, plan: StepPlan) -> None:
        coming = _Flow() if self._context.only_failed else self._flow
        pending = set(coming.ids)
        ids = [item.id for item in plan.chosen]
        # a document whose text will change first is not certain, whatever is planned for it now
        here = [Source(i, final=i not in pending or plan.step.startswith("curate.")) for i in ids]
        tallies = self._population(plan.step, here, len(here))
        left = coming.without(ids, self._context.limit)
        later = self._population(plan.step, [Source(i, final=False) for i in left.ids], left.total)
        for name, tally in later.items():
            tallies.setdefault(name, Tally(name, tally.model)).add(tally)
        self._add(plan.step, _with_shares(tallies, self._history), _basis(len(here)))
        if plan.step.startswith("curate."):
            self._flow = self._flow.plus(self._passing(plan, ids))

    def _population(self, step: str, sources: list[Source], total: float) -> dict[str, Tally]:
        """Tallies of a step over documents, of which a sample is looked at."""
        if not sources or total <= 0:
            return {}
        several = len(SKILLS[step]) > 1
        looked = _sampled(sources, SAMPLE)
        found = self._rehearsing.documents(step, looked, first_only=several)
        scaled = _scaled(found, total / len(looked))
        if several:
            looked = _sampled(sources, WHOLE)
            whole = self._rehearsing.documents(step, looked)
            rest = {name: tally for name, tally in whole.items() if name not in scaled}
            scaled |= _scaled(rest, total / len(looked))
        return scaled

    def _passing(self, plan: StepPlan, ids: list[str]) -> _Flow:
        """Which documents go on from a curating step, by the rules where no model has spoken."""
        if plan.step == "curate.refine":
            return _Flow(ids, float(len(ids))).without(self._flow.ids, None)
        if plan.step not in self._rehearsing.passed:
            self._rehearsing.documents(plan.step, _sampled([Source(i) for i in ids], SAMPLE))
        passed = sorted(self._rehearsing.passed[plan.step])
        looked = min(len(ids), SAMPLE)
        return _Flow(passed, len(ids) * len(passed) / looked if looked else 0.0)

    def _at_once(self, plan: StepPlan) -> None:
        """Steps over the whole graph: rehearsed where nothing before them will change it."""
        moving = self._moving()
        if not plan.chosen and not moving:
            return
        tallies = None
        if plan.chosen and not moving:
            tallies = self._rehearsing.barrier(plan.step, list(plan.chosen))
        if tallies is None and plan.step == "questions.generate":
            tallies = self._rehearsing.rewordings(self._documents())
        if tallies is None:
            skills = ", ".join(SKILLS[plan.step])
            self._found.notes.append(f"{plan.step} ({skills}): known when the steps before it have run")
            return
        self._add(plan.step, tallies, "exact")

    def _moving(self) -> bool:
        """Whether a step before this one has work that can change what this one asks."""
        if self._context.only_failed:
            return False
        return bool(self._flow.total) or any(
            plan.todo for plan in self._before if plan.step.split(".")[0] != "acquire"
        )

    def _documents(self) -> float:
        """Documents that will be kept, as far as is known."""
        query = select(func.count()).where(Document.state == "kept", Document.text != "")
        with self._runtime.catalogue.reading() as session:
            kept = int(session.scalar(query) or 0)
        return max(kept, self._flow.total)

    def _add(self, step: str, tallies: dict[str, Tally], basis: Basis) -> None:
        counter = self._found.counter
        for name in sorted(tallies, key=SKILL_NAMES.index):
            tally = tallies[name]
            if tally.calls or tally.stored:
                known = self._history.get((name, tally.model.model))
                self._found.rows.append(Row(step, tally.estimate(counter, known, basis)))


def _basis(items: int) -> Basis:
    return "exact" if items <= SAMPLE else "sampled"


def _sampled(sources: Sequence[Source], size: int) -> list[Source]:
    """At most ``size`` of them, chosen by a seeded hash, in their order."""
    if len(sources) <= size:
        return list(sources)
    chosen = {s.id for s in sorted(sources, key=lambda source: digest(_SEED, source.id))[:size]}
    return [source for source in sources if source.id in chosen]


def _scaled(tallies: dict[str, Tally], factor: float) -> dict[str, Tally]:
    found = {}
    for name, tally in tallies.items():
        found[name] = Tally(name, tally.model)
        found[name].add(tally, factor)
    return found


def _with_shares(tallies: dict[str, Tally], known: dict[tuple[str, str], History]) -> dict[str, Tally]:
    """Scale skills that are asked for a share of another's answers, where those answers were stand-ins."""
    for name, leader in FOLLOWS.items():
        if name not in tallies or leader not in tallies or not tallies[leader].calls:
            continue
        tally, led = tallies[name], tallies[leader]
        before, after = known.get((leader, led.model.model)), known.get((name, tally.model.model))
        share = FOLLOWING_SHARE
        if before is not None and before.answers >= ENOUGH:
            share = min(1.0, (after.answers if after else 0) / before.answers)
        found = Tally(name, tally.model)
        found.add(tally, share * led.calls / tally.calls if tally.calls else 0.0)
        found.stored = tally.stored
        tallies[name] = found
    return tallies


def history(catalogue: Catalogue) -> dict[tuple[str, str], History]:
    """What the store knows of each skill on each model.

    A refused answer was asked again; where it was put right the second answer is
    accepted. The table does not say which answers were second ones: as many refused
    answers as possible are taken to have been put right.
    """
    query = select(
        ModelCall.skill,
        ModelCall.model,
        func.count(),
        func.avg(ModelCall.tokens_out),
        func.sum(case((ModelCall.state == "refused", 1), else_=0)),
    ).group_by(ModelCall.skill, ModelCall.model)
    found = {}
    with catalogue.reading() as session:
        for skill, model, count, mean, refused in session.execute(query):
            accepted = count - refused
            corrected = min(refused, accepted)
            second = corrected + (refused - corrected) / 2
            first = count - second
            found[skill, model] = History(int(count), float(mean), float(second / first) if first else 0.0)
    return found


def _tell_unknown(
    runtime: Runtime, plans: Sequence[StepPlan], asking: dict[str, StepPlan], found: Forecast
) -> None:
    """Say what is not in the figures."""
    with runtime.catalogue.reading() as session:
        pages = int(session.scalar(select(func.count()).where(Page.payload_sha256 != "")) or 0)
        texts = session.scalar(select(Document.document_id).where(Document.cleaned_hash != "").limit(1))
    if texts is None:
        skills = ", ".join(dict.fromkeys(name for step in asking for name in SKILLS[step]))
        state = f"{pages} pages, none of them cleaned yet" if pages else "no pages yet"
        found.rows.clear()
        found.notes[:] = [
            f"the catalogue holds {state}: what {skills} would be asked cannot be known. {_FREE}"
        ]
        return
    cleaning = max((p.todo for p in plans if p.step in ("curate.profile", "curate.clean")), default=0)
    if cleaning:
        found.notes.append(
            f"{cleaning} fetched pages wait to be cleaned; what that changes is not counted. {_FREE}"
        )
    if any(plan.step.startswith("acquire.") for plan in plans):
        found.notes.append("pages that the sources will add or change are not counted")
    found.notes += _over_budget(runtime.settings.models.budget, found.total)
    if any(row.step == "evaluate.score" for row in found.rows):
        found.notes.append(
            "answer_question: its contexts are not known yet, so stored answers are not looked up"
        )


def _over_budget(budget: Budget, total: Estimate | None) -> list[str]:
    """The limits of the run's budget that the expected figures pass."""
    if total is None:
        return []
    expected = {
        "max_calls": total.calls + total.repeats,
        "max_tokens": total.tokens_in + total.tokens_out,
        "max_cost": total.cost,
    }
    notes = []
    for name, value in expected.items():
        limit = getattr(budget, name)
        if limit is not None and value is not None and value > limit:
            notes.append(
                f"models.budget.{name} = {limit:g} is less than expected: the run will stop there and go on when run again"
            )
    return notes


_FREE = (
    "A run without a model (HCHEM_MODELS__MODEL unset) fetches and cleans them for nothing, "
    "and the estimate after it is nearly complete."
)

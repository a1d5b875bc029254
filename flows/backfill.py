"""A backfill: the partitions that are not as they should be, one after the other, to one result.

Order. The steps keep the order of a refresh. Divided steps (one page or document at a time) run
partition by partition; the others look at everything and run once, whole. What stands between
two of those is a *section*:

    profile | templates | clean decided score refine | deduplicate | extract | reference …
    snapshot, questions | chunks | index and evaluation

Per-document steps rest on two of the barriers. ``clean`` takes a page's template, which rests on
all pages of its cluster: so *every* page is profiled first, also those outside the choice
(profiling asks no model); otherwise the next partition would change the templates of this one,
and its texts would be paid for twice. ``extract`` and ``chunks`` take the documents that
``deduplicate`` left kept: so no partition goes on before all chosen ones are refined. Everything
else that looks at the whole corpus follows from the documents and comes at its end, once.

A barrier may also move documents of partitions that were not chosen (a duplicate becomes the one
that is kept). Partitions that were up to date before are brought up to date again, so that the
result of backfills in parts is the one of a whole refresh, byte for byte.

Nothing but the ledger says what is left: a second call does only that, also after a kill.
"""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from corpus.catalogue.tables import Page
from corpus.errors import PlatformError, SettingsError, TerminalError
from corpus.restriction import keys_of
from corpus.stages import StageContext, Step, settle
from flows import accounting, execution, partitions
from flows.estimates import Forecast, StepPlan, forecast
from flows.execution import BatchExecutor, Session
from flows.gates import judging
from flows.parameters import BackfillParameters, StageName
from flows.partitions import GroupStanding, Partition, Standing, is_divided, standings
from flows.planning import plan_step
from flows.runtime import Runtime
from flows.words import counted

log = structlog.get_logger("hchem.backfill")
run_page = logging.getLogger("hchem")

Within = Callable[[str, Callable[[], Any]], Any]
"""Runs the work on one partition under its name: as it is, or as a subflow."""

Section = list[tuple[StageName, Step]]
PROFILE = "curate.profile"
_ASSISTANT_END_S = 15.0


class PartitionsFailedError(TerminalError):
    """Some partitions failed; the others are done."""


@dataclass
class Choice:
    """What a backfill would work on. ``before``: every partition as a refresh finds it; ``marked``: as the flags have it."""

    before: dict[Partition, Standing]
    marked: dict[Partition, Standing]
    chosen: list[Partition]
    groups: list[GroupStanding] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.chosen and not self.groups


@dataclass
class Done:
    """How a backfill ended: partitions by name with their state, and what went wrong where."""

    partitions: dict[str, str] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    """Whether partitions were given up on the way, so that what follows from them is not whole."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the result of the flow."""
        return {"partitions": self.partitions, "moved": self.moved, "failed": self.failed}

    def raise_if_failed(self) -> None:
        """Raise PartitionsFailedError that names them, where some failed."""
        if self.failed:
            told = "; ".join(f"{label}: {why}" for label, why in sorted(self.failed.items()))
            raise PartitionsFailedError(
                f"{len(self.failed)} of {counted(len(self.partitions), 'partition')} failed: {told}. "
                "The others are done; `hchem backfill --only-failed` tries these again",
                reason="partitions_failed",
            )


# --- choosing -----------------------------------------------------------------------------------


def slice_of(runtime: Runtime, parameters: BackfillParameters) -> Section:
    """The steps of the slice in their order, acquisition aside."""
    stages = [stage for stage in parameters.stages() if stage != "acquire"]
    return [(stage, step) for stage in stages for step in runtime.stage(stage).steps]


def flagged(ctx: StageContext, parameters: BackfillParameters) -> StageContext:
    """The context of a chosen partition, not yet narrowed to it."""
    return replace(
        ctx,
        chemicals=tuple(parameters.chemicals),
        force=parameters.force,
        only_missing=parameters.only_missing or parameters.only_failed,
        only_failed=parameters.only_failed,
    )


def choose(runtime: Runtime, ctx: StageContext, parameters: BackfillParameters) -> Choice:
    """Partitions and groups of substances that a backfill works on. Reads only.

    Raises SettingsError for periods and groups that do not exist or are turned round.
    """
    span = partitions.window(parameters.from_period, parameters.to_period)
    unit = runtime.settings.flows.period
    steps = [step for _, step in slice_of(runtime, parameters)]
    before = standings(ctx, steps, unit)
    marks = flagged(ctx, parameters)
    marked = before if marks == ctx else standings(marks, steps, unit)

    def wanted(place: Partition) -> bool:
        standing = marked.get(place)
        if standing is None or not place.overlaps(span):
            return False
        if parameters.sources and place.source not in parameters.sources:
            return False
        if parameters.only_failed:
            return bool(standing.total("failed"))
        return bool(standing.todo)

    groups = _groups(runtime, parameters) if "acquire" in parameters.stages() else []
    return Choice(before, marked, [place for place in before if wanted(place)], groups)


def _groups(runtime: Runtime, parameters: BackfillParameters) -> list[GroupStanding]:
    """Groups of substances (and sources that are not asked for substances) that are not ok, or all with ``force``."""
    from crawlers.sources import enabled_sources

    total = runtime.settings.flows.chemical_groups
    numbers = partitions.groups_from(parameters.chemical_groups, total)
    sources = enabled_sources(runtime.settings.crawl, parameters.sources)
    with runtime.catalogue.reading() as session:
        only = keys_of(session, parameters.chemicals)
        visited = {
            source.name
            for source in sources
            if session.query(Page.page_id)
            .filter(Page.source == source.name, Page.visited_at.is_not(None))
            .limit(1)
            .all()
        }
    asked = [source.name for source in sources if source.query_links]
    found = [
        group
        for group in partitions.group_standings(runtime.catalogue, asked, total, only)
        if group.group in numbers
    ]
    if not only and not parameters.chemical_groups:
        found += [
            GroupStanding(source.name, None, total, links=1, missing=int(source.name not in visited))
            for source in sources
            if not source.query_links
        ]

    def wanted(group: GroupStanding) -> bool:
        if parameters.force:
            return True
        return bool(
            (group.failed if not parameters.only_missing else 0)
            or (group.missing if not parameters.only_failed else 0)
        )

    return sorted(
        (group for group in found if wanted(group)), key=lambda group: (group.source, group.group or 0)
    )


# --- what it would cost ----------------------------------------------------------------------------


def plans_of(
    runtime: Runtime, ctx: StageContext, parameters: BackfillParameters, choice: Choice
) -> list[StepPlan]:
    """What each step would do for the chosen partitions; barriers are planned whole where a model may be asked."""
    asks = bool(runtime.settings.models.configured())
    plans = []
    for _, step in slice_of(runtime, parameters):
        if is_divided(step.name):
            counts = [choice.marked[place].steps.get(step.name) for place in choice.chosen]
            present = [one for one in counts if one is not None]
            items = tuple(item for one in present for item in one.todo)
            plans.append(StepPlan(step.name, sum(one.items for one in present), items))
        elif asks:
            plans.append(plan_step(ctx, step))
    return plans


def cost(runtime: Runtime, ctx: StageContext, parameters: BackfillParameters, choice: Choice) -> Forecast:
    """The model calls to expect, with what cannot be known yet."""
    found = forecast(runtime, ctx, plans_of(runtime, ctx, parameters, choice))
    if choice.groups and not found.offline:
        found.notes.append("pages that the sources will add or change are not counted")
    return found


def expected_calls(found: Forecast) -> int | None:
    """How many calls are expected; None where that cannot be known."""
    if found.offline:
        return 0
    if found.total is None:
        return None if found.notes else 0
    return found.total.calls + found.total.repeats


def require_consent(found: Forecast) -> None:
    """Raise SettingsError where a run that nobody watches would ask a model and nobody agreed to it."""
    calls = expected_calls(found)
    if calls != 0:
        told = (
            "a number of model calls that cannot be known yet"
            if calls is None
            else f"about {calls} model calls"
        )
        raise SettingsError(
            f"the backfill would make {told}; look at `hchem backfill --dry-run`, then agree with --yes (parameter yes)"
        )


# --- running -----------------------------------------------------------------------------------------


def run(current: Session, parameters: BackfillParameters, execute: BatchExecutor, within: Within) -> Done:
    """Work on the chosen partitions, then bring everything that rests on all of them up to date.

    A partition that fails does not keep the others from going on. Raises as ``execution.run_stage``
    for what concerns the whole: a barrier that failed, a budget that is spent, a cancelled run.
    """
    return _Backfill(current, parameters, execute, within).run()


def sections(steps: Section) -> Iterator[Section]:
    """Runs of steps that are all divided, or all not."""
    for _, found in itertools.groupby(steps, key=lambda one: is_divided(one[1].name)):
        yield list(found)


class _Backfill:
    def __init__(
        self, current: Session, parameters: BackfillParameters, execute: BatchExecutor, within: Within
    ) -> None:
        self._current = current
        self._parameters = parameters
        self._execute = execute
        self._within = within
        self._unit = current.runtime.settings.flows.period
        self._steps = slice_of(current.runtime, parameters)
        self._choice = Choice({}, {}, [])
        self._moved: set[Partition] = set()
        self._failed: dict[Partition, str] = {}
        self._counts: dict[Partition, dict[str, Any]] = {}
        self._failed_groups: dict[str, str] = {}
        self._groups: dict[str, str] = {}

    def run(self) -> Done:
        self._close_interrupted()
        words = self._current.watch.last_words
        words.append(self._close_interrupted)  # a run that is given up does not come to its own record
        try:
            return self._run()
        finally:
            words.remove(self._close_interrupted)

    def _run(self) -> Done:
        if "acquire" in self._parameters.stages():
            self._acquire()
        self._choice = choose(self._current.runtime, self._current.context, self._parameters)
        self._tell(f"{counted(len(self._choice.chosen), 'partition')} to work on")
        try:
            for section in sections(self._steps):
                if is_divided(section[0][1].name):
                    self._divided(section)
                else:
                    self._whole(section)
                self._end_stages(section)
        except BaseException as error:
            if self._current.stop.is_set() or not isinstance(error, PlatformError):
                self._leave()  # there is no time to look how everything stands
            else:
                self._record()
            raise
        return self._record()

    # --- sections ---

    def _whole(self, section: Section) -> None:
        """Steps that look at everything, once."""
        for stage, steps in _by_stage(section):
            self._account(stage)
            execution.run_steps(self._current, stage, steps, self._execute)

    def _divided(self, section: Section) -> None:
        """Steps of one document at a time, partition by partition; what vanished is retired before and after."""
        steps = [step for _, step in section]
        for step in steps:
            settle(step, self._current.context)
        for stage, _ in _by_stage(section):
            self._account(stage)
        whole = self._current.context
        marks = flagged(whole, self._parameters)
        present = standings(whole, steps, self._unit)
        marked = present if marks == whole else standings(marks, steps, self._unit)
        todo = [place for place in self._choice.chosen if place in marked and marked[place].todo]
        moved = [place for place in present if self._was_moved(place, present[place])]
        self._moved.update(moved)
        work = sorted(
            [(place, marks) for place in todo] + [(place, whole) for place in moved], key=lambda one: one[0]
        )
        for number, (place, ctx) in enumerate(work, start=1):
            if place not in self._failed:
                self._tell(f"partition {number} of {len(work)}: {place.label}")
                self._partition(place, section, ctx)
        if any(step.name == PROFILE for step in steps):
            self._profile_others(section)
        for step in steps:
            settle(step, whole)

    def _was_moved(self, place: Partition, present: Standing) -> bool:
        """Whether a partition that nothing was to be done in has work now, by what a barrier decided."""
        before = self._choice.before.get(place)
        return bool(present.todo) and place not in self._choice.chosen and (before is None or not before.todo)

    def _partition(self, place: Partition, section: Section, ctx: StageContext) -> None:
        """One partition through a section. What concerns only it is noted, anything else goes on to the caller."""
        current = self._current
        catalogue = current.runtime.catalogue
        if place not in self._counts:
            partitions.record_start(catalogue, [(place.source, place.period)], current.context.run_id)
        counts = self._counts.setdefault(place, {})
        growing = current.progress.beside(place.label)
        session = replace(current, context=replace(place.narrow(ctx), progress=growing), progress=growing)

        def work() -> dict[str, Any]:
            for stage, steps in _by_stage(section):
                made = execution.run_steps(session, stage, steps, self._execute)
                counts.update({name: report["states"] for name, report in made.items() if report["pending"]})
            return counts

        names = " ".join(dict.fromkeys(stage for stage, _ in section))
        try:
            self._within(f"{names} {place.label}", work)
        except PlatformError as error:
            if self._ends_all(error):
                raise
            log.warning("partition failed", partition=place.label, why=str(error))
            self._tell(f"{place.label} failed: {error}")
            self._failed[place] = str(error)

    def _ends_all(self, error: PlatformError) -> bool:
        """Whether an error is not the affair of one partition: every further one would meet it, or the run is stopped."""
        return error.halts or self._current.stop.is_set()

    def _profile_others(self, section: Section) -> None:
        """Profile every other page, since templates rest on all of them; what fails there is its partition's affair."""
        for stage, steps in _by_stage(section):
            for step in steps:
                try:
                    execution.run_steps(self._current, stage, [step], self._execute)
                except PlatformError as error:
                    if self._ends_all(error):
                        raise
                    log.warning("pages outside the choice", step=step.name, why=str(error))

    def _end_stages(self, section: Section) -> None:
        """Judge the stages whose last step was in the section."""
        last = {stage: step.name for stage, step in self._steps}
        for stage, step in section:
            if last[stage] == step.name:
                judging.after_stage(self._current, stage)

    def _account(self, stage: StageName) -> None:
        """Begin a stage's account, with what is expected of the chosen partitions."""
        if stage in self._current.accounts:
            return
        ctx = self._current.context
        if self._choice.chosen:
            spans = [partitions.span_of(place.period) for place in self._choice.chosen]
            ctx = replace(
                flagged(ctx, self._parameters),
                sources=tuple(sorted({place.source for place in self._choice.chosen})),
                since=min(span[0] for span in spans),
                until=max(span[1] for span in spans),
                only_failed=False,
            )
        self._current.accounts[stage] = accounting.begin(self._current.runtime, ctx, stage)

    # --- acquisition ---

    def _acquire(self) -> None:
        """Names and query links, then the crawls, source by source and group by group."""
        current = self._current
        *before, crawl = current.runtime.stage("acquire").steps
        ctx = replace(current.context, sources=tuple(self._parameters.sources))
        self._account("acquire")
        execution.run_steps(replace(current, context=ctx), "acquire", before, self._execute)
        groups = _groups(current.runtime, self._parameters)
        for number, group in enumerate(groups, start=1):
            self._tell(f"group {number} of {len(groups)}: {group.label}")
            self._group(group, crawl)
        judging.after_stage(current, "acquire")

    def _group(self, group: GroupStanding, crawl: Step) -> None:
        current = self._current
        place = (group.source, group.name)
        partitions.record_start(current.runtime.catalogue, [place], current.context.run_id)
        growing = current.progress.beside(group.label)
        ctx = replace(
            current.context,
            sources=(group.source,),
            chemicals=tuple(group.chemicals),
            force=True,  # a crawl's one item is its source, which the groups before have settled
            progress=growing,
        )
        session = replace(current, context=ctx, progress=growing)

        def work() -> dict[str, Any]:
            return execution.run_steps(session, "acquire", [crawl], self._execute)

        state, counts, message = partitions.OK, {}, ""
        try:
            made = self._within(f"acquire {group.label}", work)
            counts = {name: report["counts"] for name, report in made.items()} if made else {}
        except PlatformError as error:
            state, message = partitions.FAILED, str(error)
            if self._ends_all(error):
                raise
            self._tell(f"{group.label} failed: {error}")
            self._failed_groups[group.label] = str(error)
        finally:
            if state == partitions.OK and group.group is not None:
                state = self._group_state(group)
            self._groups[group.label] = state
            partitions.record_end(current.runtime.catalogue, place, state, counts, message)

    def _group_state(self, group: GroupStanding) -> str:
        found = partitions.group_standings(
            self._current.runtime.catalogue, [group.source], group.groups, group.chemicals
        )
        return next((one.state for one in found if one.group == group.group), partitions.OK)

    # --- the record ---

    def _close_interrupted(self) -> None:
        """Partitions that a backfill left as running, a killed one or this one: we hold the lease, so nobody else works on them."""
        catalogue = self._current.runtime.catalogue
        for place, row in partitions.history(catalogue).items():
            if row.state == partitions.RUNNING:
                partitions.record_end(catalogue, place, partitions.PENDING, row.counts, "interrupted")

    def _leave(self) -> None:
        for place, counts in self._counts.items():
            with suppress(PlatformError):
                key = (place.source, place.period)
                partitions.record_end(
                    self._current.runtime.catalogue, key, partitions.PENDING, counts, "interrupted"
                )

    def _record(self) -> Done:
        """How the partitions that were worked on stand now."""
        done = Done(
            failed=dict(self._failed_groups),
            moved=sorted(place.label for place in self._moved),
            stopped=bool(self._failed or self._failed_groups),
        )
        done.partitions.update(self._groups)
        for label, state in self._groups.items():
            if state == partitions.FAILED:
                done.failed.setdefault(label, "query links failed")
        touched = sorted({*self._counts, *self._choice.chosen})
        if not touched:
            return done
        runtime = self._current.runtime
        after = standings(self._current.context, [step for _, step in self._steps], self._unit)
        for place in touched:
            standing = after.get(place)
            message = self._failed.get(place, "")
            state = partitions.FAILED if message else standing.state if standing else partitions.OK
            if state == partitions.FAILED and not message and standing is not None:
                message = _told_failures(standing)
            if state == partitions.FAILED:
                done.failed[place.label] = message
            done.partitions[place.label] = state
            with suppress(PlatformError):  # a full disk is told by what met it first
                partitions.record_end(
                    runtime.catalogue,
                    (place.source, place.period),
                    state,
                    self._counts.get(place, {}),
                    message,
                )
        return done

    def _tell(self, line: str) -> None:
        run_page.info(line)
        log.info("backfill", says=line)


def _told_failures(standing: Standing) -> str:
    return ", ".join(
        f"{name}: {counted(c.failed, 'item')} failed" for name, c in standing.steps.items() if c.failed
    )


def _by_stage(section: Section) -> Iterator[tuple[StageName, Sequence[Step]]]:
    for stage, found in itertools.groupby(section, key=lambda one: one[0]):
        yield stage, [step for _, step in found]


# --- further processes ---------------------------------------------------------------------------------


@contextmanager
def assistants(parallel: int) -> Iterator[None]:
    """Start ``parallel - 1`` further processes that take batches of the run, and end them with the block."""
    if parallel <= 1:
        yield
        return
    environment = {**os.environ, "HCHEM_FLOWS__SHARE_BATCHES": "true"}
    command = [sys.executable, "-m", "flows.cli", "assist", "--until-idle"]
    processes = [
        subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(parallel - 1)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_ASSISTANT_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

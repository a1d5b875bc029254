"""An assistant: a process that helps the leading run with the batches it shares.

It waits for a run to lead, opens the same platform (same code and settings, or it
refuses), takes batches from the back of the board until the run ends, and waits for
the next. What it works with is what the run has: preset, force, sources, chemicals.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import structlog
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.database import newest_schema
from corpus.catalogue.tables import Run
from corpus.catalogue.work import Claim, WorkBoard
from corpus.curating.records import CLEAN, PROFILE
from corpus.errors import PlatformError, SettingsError
from corpus.stages import StageContext, Step
from flows import elsewhere, sharing, stopping
from flows.runtime import Runtime, open_runtime, prepare_data_dir
from flows.settings import Settings, load_settings

log = structlog.get_logger("hchem.assist")

Tell = Callable[[str], None]

READS_ARCHIVE = frozenset({PROFILE, CLEAN})
"""Steps that read archived pages, for which an assistant needs the leading run's data directory."""

_LOOK_S = 1.0  # between looks whether a run leads
_BOARD_S = 0.5  # between looks at a board that has nothing
_GRACE_S = 5.0  # for the items under way when the assistant is to end
_TROUBLE_S = 300.0  # so long a database that does not answer is waited for
PATIENCE_S = 60.0
"""So long ``until_idle`` waits for a first run to lead."""


@dataclass
class Assisted:
    """What an assistant did."""

    runs: int = 0
    batches: int = 0
    items: int = 0
    steps: dict[str, int] = field(default_factory=dict)  # items by step

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"runs": self.runs, "batches": self.batches, "items": self.items, "steps": dict(self.steps)}


@dataclass
class Assistant:
    """One assisting process."""

    watch: stopping.Watch
    tell: Tell
    until_idle: bool = False
    seconds: float | None = None
    patience_s: float = PATIENCE_S
    done: Assisted = field(default_factory=Assisted)
    _began: float = field(default_factory=time.monotonic)
    _told: set[str] = field(default_factory=set)

    def work(self, settings: Settings) -> Assisted:
        """Help until told to stop, the time is up, or (``until_idle``) no run leads any more.

        Raises SettingsError where the run that leads has other code, settings or data.
        """
        data_dir = prepare_data_dir(settings.data_dir)
        settings.data_dir = data_dir
        catalogue = self._opened(settings)
        if catalogue is None:
            return self.done
        try:
            with leases.held(
                catalogue, f"{sharing.ASSISTANT}{uuid.uuid4().hex[:12]}", seconds=settings.flows.lease_s
            ):
                while not self._is_over():
                    run = leading_run(catalogue)
                    if run is not None and sharing.SHARING in run.settings:
                        self._help(catalogue, run)
                        continue
                    if run is not None:
                        self._tell_once(f"run {run.run_id} does not share its batches (flows.share_batches)")
                    if self.until_idle and run is None and self._is_idle():
                        break
                    self.watch.stop.wait(_LOOK_S)
        finally:
            catalogue.close()
        return self.done

    def _opened(self, settings: Settings) -> Catalogue | None:
        """The catalogue once its schema is there; an assistant changes no schema. None where it is to end before."""
        while not self._is_over():
            catalogue = Catalogue.open(settings.catalogue_url(), migrate=False)
            found = catalogue.check_schema()
            if found == newest_schema():
                return catalogue
            catalogue.close()
            self._tell_once(
                f"the catalogue {f'has the schema {found}' if found else 'is empty'}: waiting for a run to bring it to "
                f"{newest_schema()}"
            )
            if self.until_idle and self._is_idle():
                return None
            self.watch.stop.wait(_LOOK_S)
        return None

    def _is_over(self) -> bool:
        return self.watch.stop.is_set() or (
            self.seconds is not None and time.monotonic() - self._began > self.seconds
        )

    def _is_idle(self) -> bool:
        """Whether to give up waiting for a run: at once after one, else after a while."""
        self._tell_once("waiting for a run to lead (Ctrl-C ends)")
        return bool(self.done.runs) or time.monotonic() - self._began > self.patience_s

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.tell(line)

    def _help(self, catalogue: Catalogue, run: Run) -> None:
        preset = run.settings.get("preset")
        settings = load_settings({"preset": preset} if preset else None)
        prove_same(settings, run)
        before = (self.done.batches, self.done.items)
        with open_runtime(settings=settings, run_id=run.run_id) as runtime:
            helping = _Helping(self, runtime, run)
            self.tell(f"helping run {run.run_id} ({run.flow}), {settings.flows.workers} batches at once")
            helping.through(lambda: self._is_over() or not _leads(catalogue, run.run_id))
        self.done.runs += 1
        batches, items = self.done.batches - before[0], self.done.items - before[1]
        self.tell(f"run {run.run_id}: {items} items in {batches} batches were done here")


class _Helping:
    """One run being helped: threads that take batches, a board that looks after the claims."""

    def __init__(self, assistant: Assistant, runtime: Runtime, run: Run) -> None:
        self._assistant, self._runtime, self._run = assistant, runtime, run
        self._leaving = threading.Event()
        self._context = sharing.context_of(runtime.catalogue, run, self._leaving.is_set)
        self._board: WorkBoard = sharing.board_of(runtime, self._context)
        self._lock = threading.Lock()  # a stage is built, and a step's plan compared, once
        self._proved: set[str] = set()
        self._error: BaseException | None = None
        self._left: frozenset[str] = frozenset()
        if not sharing.has_its_files(runtime.data_dir, run.run_id):
            self._left = READS_ARCHIVE
            assistant.tell(
                f"{runtime.data_dir} is not the data directory of run {run.run_id}: its archived pages cannot be read "
                f"here, {' and '.join(sorted(self._left))} are left to others"
            )

    def through(self, over: Callable[[], bool]) -> None:
        """Work until it is over, then end or abandon what is under way and give it back."""
        words = self._assistant.watch.last_words
        words.append(self._give_back)
        threads = [
            threading.Thread(target=self._take_batches, name=f"assist-{n}", daemon=True)
            for n in range(self._runtime.settings.flows.workers)
        ]
        with self._board.beating():
            try:
                for thread in threads:
                    thread.start()
                while self._error is None and not over():
                    self._assistant.watch.stop.wait(_LOOK_S)
            finally:
                self._leaving.set()
                deadline = time.monotonic() + _GRACE_S
                for thread in threads:
                    thread.join(max(0.0, deadline - time.monotonic()))
        if self._give_back in words:
            words.remove(self._give_back)
        if self._error is not None:
            raise self._error

    def _give_back(self) -> None:
        self._board.give_back()

    def _take_batches(self) -> None:
        trouble: float | None = None
        while not self._leaving.is_set() and self._error is None:
            try:
                if not self._one():
                    self._leaving.wait(_BOARD_S)
                trouble = None
            except (PlatformError, DBAPIError) as error:
                lasting = isinstance(error, PlatformError) and not error.transient
                trouble = trouble or time.monotonic()
                if lasting or time.monotonic() - trouble > _TROUBLE_S:
                    self._error = error
                    return
                log.warning("trouble", why=str(error))
                self._leaving.wait(2.0)
            except BaseException as error:  # noqa: BLE001 - a fault of ours ends the assistant, not a thread of it
                self._error = error
                return

    def _one(self) -> bool:
        """Take and do one batch. False where none is free."""
        name, _ = self._board.free(self._run.run_id, but=self._left)
        if not name:
            return False
        with self._lock:
            step = self._runtime.step(name)
        with _slot(step, self._context, self._runtime.settings):
            claim = None if self._leaving.is_set() else self._board.claim(self._run.run_id, name, last=True)
            if claim is None:
                return False
            self._prove_plan(step, claim)
            report = sharing.do(self._board, self._runtime, self._context, claim)
        self._runtime.models.flush()
        done = sum(report.states.values())
        with self._lock:
            total = self._assistant.done
            total.batches += bool(done)
            total.items += done
            total.steps[name] = total.steps.get(name, 0) + done
        return True

    def _prove_plan(self, step: Step, claim: Claim) -> None:
        """Refuse a step whose items would rest on something else here.

        Settings and version cannot tell everything (a changed source tree, a model's
        files): the fingerprints that the step itself makes do.
        """
        with self._lock:
            if step.name in self._proved:
                return
            try:
                planned = {item.id: item.fingerprint for item in step.plan(self._context)}
            except BaseException:
                self._board.give_back(claim)
                raise
            known = [(planned[item], mark) for item, mark in claim.items if item in planned]
            if known and all(own != mark for own, mark in known):
                self._board.give_back(claim)
                raise SettingsError(
                    f"{step.name} would rest on something else here than in run {self._run.run_id} (the fingerprints "
                    "differ): give this process the same code, model files and settings"
                )
            self._proved.add(step.name)


def _slot(step: Step, context: StageContext, settings: Settings) -> AbstractContextManager[None]:
    """A slot over processes, where the settings name them and a model is waited for."""
    if step.concurrency <= 1 or settings.models.limits.processes_slot is None:
        return nullcontext()
    from flows import slots  # imports Prefect, which takes seconds

    return slots.slots_for(settings.models.limits).hold(
        lambda: context.cancelled() or context.halt.error is not None
    )


# --- who leads --------------------------------------------------------------------------------------------------


def leading_run(catalogue: Catalogue) -> Run | None:
    """The run that leads: the lease on the catalogue is held, and a run is recorded as running."""
    if not leases.living(catalogue, "run"):
        return None
    query = select(Run).where(Run.state == "running").order_by(Run.started_at.desc()).limit(1)
    with catalogue.reading() as db:
        return db.scalars(query).first()


def _leads(catalogue: Catalogue, run_id: str) -> bool:
    try:
        run = leading_run(catalogue)
    except (PlatformError, DBAPIError):  # the database is away: so is the leader's
        return True
    return run is not None and run.run_id == run_id


def prove_same(settings: Settings, run: Run) -> None:
    """Raises SettingsError where a run was made by other code or with other settings than this process has."""
    own = metadata.version("hchemsafety")
    if run.code_version != own:
        raise SettingsError(
            f"run {run.run_id} is made by version {run.code_version}, this is {own}: install the same version here"
        )
    marks = run.settings[sharing.SHARING]["marks"]
    mine = elsewhere.settings_marks(settings)
    other = [section for section in marks if marks[section] != mine.get(section)]
    if other:
        shown = settings.model_dump(mode="json", include=set(other))
        found = [
            line for section in other for line in _differences(section, run.settings[section], shown[section])
        ]
        raise SettingsError(
            f"the settings here differ from those of run {run.run_id}: {'; '.join(found[:5]) or ', '.join(other)}; give "
            "this process the same hchem.toml and HCHEM_… variables"
        )


def _differences(path: str, theirs: Any, ours: Any) -> Iterator[str]:
    if path in ("models.log_file", "models.limits", "models.api_key"):
        return
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(theirs.keys() | ours.keys()):
            yield from _differences(f"{path}.{name}", theirs.get(name), ours.get(name))
    elif theirs != ours:
        yield f"{path} is {theirs!r} there and {ours!r} here"


@contextmanager
def assisting(*, tell: Tell, until_idle: bool = False, seconds: float | None = None) -> Iterator[Assistant]:
    """An assistant that signals end within ten seconds."""
    watch = stopping.Watch(threading.Event(), tell=tell, exit_code=0)
    with watch.armed():
        yield Assistant(watch, tell, until_idle=until_idle, seconds=seconds)

"""Batches in other processes: what a Dask or Ray worker does with a batch that a flow elsewhere hands it.

A worker has settings of its own (environment and ``hchem.toml`` of its machine)
and opens the platform once for a run, not once for a batch: that takes seconds.
It refuses a batch whose run it cannot find in its catalogue, and one of a run
with other settings: the item's fingerprint, which the leading process made,
would then not say what the result rests on.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import DBAPIError

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Run
from corpus.errors import PlatformError, SettingsError, TransientError
from corpus.ids import canonical_json, digest
from corpus.stages import Halt, StageContext, Step
from flows.runtime import Runtime, open_runtime
from flows.settings import Settings

_SECTIONS = ("corpus", "extraction", "questions", "chunks", "models", "embeddings")  # what batches rest on
_ASK_S = 2.0  # how often a worker looks whether its run still runs
_OWN = frozenset({"archive", "preset", "settings"})  # of what a batch is told, not for the context


def settings_marks(settings: Settings) -> dict[str, str]:
    """One short hash per section that results rest on; secrets, limits and places of files are left out."""
    data = settings.model_dump(mode="json", include=set(_SECTIONS))
    for name in ("log_file", "limits", "api_key"):
        data["models"].pop(name, None)
    return {section: digest(canonical_json(data[section]))[:12] for section in _SECTIONS}


def stays_here(step: Step) -> bool:
    """Whether a step is for the leading process alone.

    Barriers and crawls hold what cannot be in two processes (the embedded graph
    and index, the served sample site) or follow a child of theirs.
    """
    return step.batch_size is None or step.name.startswith("acquire.")


@dataclass
class _Opened:
    """The platform as it was opened for a run, and how many batches use it at the moment."""

    key: tuple[str, ...]
    runtime: Runtime
    stack: ExitStack
    halt: Halt = field(default_factory=Halt)
    users: int = 0
    asked_at: float = 0.0
    ended: bool = False

    def over(self) -> bool:
        """Whether the run ended (cancelled, failed, taken for dead): nobody waits for its batches then."""
        if not self.ended and time.monotonic() - self.asked_at > _ASK_S:
            self.asked_at = time.monotonic()
            self.ended = _state(self.runtime.catalogue, self.key[0]) not in ("running", None)
        return self.ended


_lock = threading.Lock()
_current: list[_Opened] = []  # at most one


def run(
    items: list[Any], told: dict[str, Any], work: Callable[[Runtime, StageContext, list[Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Do a batch in this process; returns its counts, with ``halt`` where an error halts the step.

    ``told``: fields of the context, and ``archive``, ``preset`` and ``settings`` of the run.
    Raises SettingsError where this process has another catalogue or other settings than the run.
    """
    given = {name: value for name, value in told.items() if name not in _OWN}
    with _using(told) as opened:
        context = StageContext(
            catalogue=opened.runtime.catalogue, **given, cancelled=opened.over, halt=opened.halt
        )
        report = work(opened.runtime, context, items)
        opened.runtime.models.flush()
        error = opened.halt.error
        return report if error is None else {**report, "halt": [str(error), error.reason]}


def take_halt(report: dict[str, Any], halt: Halt) -> None:
    """Let an error that halted a step in another process halt it here too."""
    if told := report.get("halt"):
        error = TransientError(told[0], reason=told[1])
        error.halts = True
        halt.set(error)


@contextmanager
def _using(told: dict[str, Any]) -> Iterator[_Opened]:
    key = (told["run_id"], told["preset"] or "", told["archive"] or "")
    with _lock:
        opened = next((one for one in _current if one.key == key), None)
        if opened is None:
            _leave()
            opened = _open(key, told)
            _current.append(opened)
        opened.users += 1
    try:
        yield opened
    finally:
        with _lock:
            opened.users -= 1
            if opened not in _current and not opened.users:
                opened.stack.close()


def _leave() -> None:
    """Close what an earlier run opened; where one of its batches is still at work, that one does."""
    while _current:
        old = _current.pop()
        if not old.users:
            old.stack.close()


def _open(key: tuple[str, ...], told: dict[str, Any]) -> _Opened:
    stack = ExitStack()
    try:
        overrides = {"preset": told["preset"]} if told["preset"] else None
        runtime = stack.enter_context(open_runtime(overrides, run_id=key[0], archive=told["archive"]))
        _prove_same(runtime, told)
    except BaseException:
        stack.close()
        raise
    return _Opened(key, runtime, stack, asked_at=time.monotonic())


def _prove_same(runtime: Runtime, told: dict[str, Any]) -> None:
    if _state(runtime.catalogue, told["run_id"]) is None:
        where = runtime.catalogue.engine.url.render_as_string(hide_password=True)
        raise SettingsError(
            f"this worker's catalogue {where} does not know the run {told['run_id']}: give the worker the run's "
            "HCHEM_CATALOGUE__URL and HCHEM_DATA_DIR (or hchem.toml)"
        )
    own = settings_marks(runtime.settings)
    if other := sorted(section for section, mark in told["settings"].items() if own.get(section) != mark):
        raise SettingsError(
            f"this worker's settings differ from the run's in {', '.join(other)}: give the worker the same hchem.toml "
            "and HCHEM_… variables"
        )


def _state(catalogue: Catalogue, run_id: str) -> str | None:
    """The state of a run; None where it is not known, "running" where the database is away."""
    try:
        with catalogue.reading() as db:
            row = db.get(Run, run_id)
            return None if row is None else row.state
    except (PlatformError, DBAPIError):
        return "running"


@atexit.register
def _close() -> None:
    with _lock:
        _leave()

"""How a run is stopped: asked first, then given up, so that it is over within ten seconds.

SIGTERM (from ``kill``, from Prefect's cancel button) and SIGINT (Ctrl-C) set the
stop event of the run: items under way end, no other begins, and the run closes
itself. What cannot end in time (one item of a barrier may take minutes) is given
up after ``GRACE_S``: the run is recorded as cancelled, its lease goes back, its
child processes are killed and the process leaves at once. For the catalogue that
is a kill -9 at that moment, which loses the items in flight and nothing else.

A thread sees to it, woken by the interpreter's signal pipe, so that a main thread
that is busy in foreign code cannot hold it up.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

import psutil

from corpus.errors import PlatformError

GRACE_S = 5.0
"""From the signal to giving up; what is left of the ten seconds is for last words and for Prefect to notice."""

INTERRUPTED = 130
"""Exit code of a command that was stopped."""

ABANDONED = "abandoned"
"""Reason of a stop where the process that served the deployment is gone."""

_LAST_WORDS_S = 2.5  # for all of them: a locked database must not hold the end up
_SUPERVISOR_POLL_S = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_AGAIN_S = 0.5  # one Ctrl-C may reach a process twice, from the terminal and from its parent
_spared: set[int] = set()


class RunStoppedError(PlatformError):
    """The run was asked to stop; what it did is kept, the next run goes on with the rest."""


def spare(pid: int) -> None:
    """Name a child that is to outlive this process: the Prefect server that a run has started."""
    _spared.add(pid)


@dataclass
class Watch:
    """The stop of one run: its event, what is said at the end, how the process leaves.

    ``last_words`` are called when the run is given up, the last one added first;
    each may fail. ``exit_code`` is the process's then. ``supervisor`` is the process
    without which nobody could stop this run (0: none); when it is gone the run stops.
    """

    stop: threading.Event
    last_words: list[Callable[[], None]] = field(default_factory=list)
    tell: Callable[[str], None] = lambda line: None
    exit_code: int = INTERRUPTED
    supervisor: int = 0
    grace_s: float = GRACE_S
    reason: str = "cancelled"
    _asked: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def asked(self) -> bool:
        """Whether a signal, or the loss of the supervisor, asked the run to stop."""
        return self._asked.is_set()

    def check(self) -> None:
        """Raises RunStoppedError once the run was asked to stop."""
        if self.stop.is_set():
            why = (
                "the process that served this run is gone"
                if self.reason == ABANDONED
                else "the run was cancelled"
            )
            raise RunStoppedError(f"{why}; the next one goes on where it stopped", reason=self.reason)

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Watch for signals during a block. Elsewhere than in the main thread only the supervisor is watched.

        A run that was signalled stays watched until its process is over, since
        closing what it has opened must not take for ever either.
        """
        hear, speak = socket.socketpair()
        speak.setblocking(False)
        main = threading.current_thread() is threading.main_thread()
        before = signal.set_wakeup_fd(speak.fileno(), warn_on_full_buffer=False) if main else -1
        watcher = threading.Thread(target=self._watch, args=(hear,), name="stopping", daemon=True)
        watcher.start()
        try:
            with self.handling():
                yield
        finally:
            self._ended.set()
            self.last_words.clear()
            if main:
                signal.set_wakeup_fd(before)
            if not self._asked.is_set():
                with contextlib.suppress(OSError):
                    speak.send(b"\0")
                watcher.join(timeout=5)
            speak.close()

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Have signals come here for a block; within it Prefect may have put handlers of its own."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._signalled) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._ask()

    def _ask(self) -> None:
        self._asked.set()
        self.stop.set()

    def _watch(self, hear: socket.socket) -> None:
        """Wait for the first signal, then for the end of the process or for the time to be up."""
        with hear:
            while not self._asked.is_set():
                heard = _hear(hear, _SUPERVISOR_POLL_S)
                if self._ended.is_set() and not self._asked.is_set():
                    return
                if heard & set(_SIGNALS):
                    self._ask()
                elif self.supervisor and os.getppid() != self.supervisor:
                    self.reason = ABANDONED
                    self._ask()
            self.tell(f"stopping: what is under way has {self.grace_s:.0f} s to end (Ctrl-C again: none)")
            began = time.monotonic()
            while (left := began + self.grace_s - time.monotonic()) > 0:
                again = _hear(hear, min(left, _SUPERVISOR_POLL_S))
                if signal.SIGINT in again and time.monotonic() - began > _AGAIN_S:
                    break
        self.tell("given up; the next run goes on where this one stopped")
        self._give_up()

    def _give_up(self) -> NoReturn:
        late = threading.Timer(_LAST_WORDS_S, end, (self.exit_code,))
        late.daemon = True
        late.start()
        for words in reversed(self.last_words):
            with contextlib.suppress(Exception):
                words()
        end(self.exit_code)


def _hear(hear: socket.socket, seconds: float) -> set[int]:
    """The signals that came within this time; a closed pipe (the watched block is over) says none, in time."""
    if not select.select([hear], [], [], seconds)[0]:
        return set()
    heard = hear.recv(64)
    if not heard:
        time.sleep(seconds)
    return set(heard)


def end(code: int) -> NoReturn:
    """Kill the children, theirs too, and leave at once.

    No other thread of ours runs in between: it would take the death of a child
    for a fault of the page that the child was working on, and record it.
    """
    children = _children(psutil.Process())
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    sys.setswitchinterval(1000)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.kill()
    os._exit(code)


def _children(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return [
            found
            for child in process.children()
            if child.pid not in _spared
            for found in (child, *_children(child))
        ]
    return []

"""What Prefect is told of a run that was stopped: Cancelled, whoever asked and however it ended.

Left to itself Prefect calls a flow that a signal ends Crashed, unless a worker
sent the signal for it. Here the flow returns the state, so that its stages and
the run agree; a run that is given up has its state set on the server.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import CancelledRun, TerminationSignal
from prefect.states import Cancelled, Crashed

from flows.stopping import ABANDONED, RunStoppedError, Watch

_MESSAGE = "Stopped on request; what was done is kept, a retry or the next run goes on with the rest."
_SERVER_GONE = (
    "The process that served this run ended, so nobody could stop it; a retry goes on with the rest."
)
_PATIENCE_S = 1.5  # for the server's answer to last words
_watches: list[Watch] = []  # of the run of this process; the lease allows one


def prepare(watch: Watch, flow_run_ids: Sequence[str], *, served: bool) -> None:
    """See to it that the flow runs of a watched run, its stages too, end in the right state.

    ``flow_run_ids`` may grow while the run goes on. ``served``: started by ``hchem serve`` or a worker, which looks after the process
    and without which the run could not be cancelled.
    """
    _watches[:] = [watch]
    if served:
        logging.getLogger("prefect.engine").addFilter(_no_fault)
        watch.supervisor, watch.exit_code = (
            os.getppid(),
            0,
        )  # the state is told; another code would mean a crash
    watch.last_words.append(lambda: _patiently(lambda: settle(list(flow_run_ids), _state(watch))))


def _no_fault(record: logging.LogRecord) -> bool:
    """False for the traceback with which Prefect's engine tells that a flow was cancelled."""
    return not (record.exc_info and isinstance(record.exc_info[1], CancelledRun))


def stoppable(run: Callable[[], Any]) -> Any:
    """What a flow's body returns; its state where the run was asked to stop meanwhile."""
    try:
        return run()
    except Exception:
        if not any(watch.asked for watch in _watches):
            raise
        return _state(_watches[0])


@contextmanager
def at_terminal(flow_run_ids: Sequence[str]) -> Iterator[None]:
    """A flow that is called by a command, with no worker to tell the server how it ended.

    Raises RunStoppedError where it was stopped, after every flow run is settled.
    """
    try:
        yield
    except BaseException as error:
        asked = any(watch.asked for watch in _watches)
        if not asked and not isinstance(error, KeyboardInterrupt | TerminationSignal):
            raise
        settle(flow_run_ids, Cancelled(message=_MESSAGE))
        raise RunStoppedError("the run was cancelled", reason="cancelled") from error


def settle(flow_run_ids: Sequence[str], state: State[Any]) -> None:
    """Set the state of flow runs that a stop left in another one; a server that does not answer is no error."""
    with contextlib.suppress(Exception), get_client(sync_client=True) as client:
        for flow_run_id in flow_run_ids:
            known = client.read_flow_run(UUID(flow_run_id)).state
            if known is None or not (known.is_cancelled() or known.is_completed()):
                client.set_flow_run_state(UUID(flow_run_id), state, force=True)


def _state(watch: Watch) -> State[Any]:
    return Crashed(message=_SERVER_GONE) if watch.reason == ABANDONED else Cancelled(message=_MESSAGE)


def _patiently(action: Callable[[], None]) -> None:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)

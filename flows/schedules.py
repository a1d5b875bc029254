"""When the refresh is due: cron or interval; what was missed; what is paused.

Prefect keeps a scheduled run that nobody took: after a week without
``hchem serve``, or beside a run that takes longer than the interval, all of them
would start one after another. Only the newest is kept, since one refresh catches
up with everything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from flows.operation_settings import period

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

TAG = "hchem"
WEEKLY = "weekly"
_EVERY = "every "
_SHORTEST = timedelta(seconds=10)  # how often Prefect's runner looks
_TIDY_EVERY_S = 30.0
_PAGE = 100  # runs that the server is asked for at once; it gives 200 at most
_FOR_A_SLOT = "AwaitingConcurrencySlot"
_SKIPPED = "Missed, and a later one is due: one refresh catches up with everything."


def checked(text: str) -> str:
    """A schedule as it may be set: five fields of cron, or ``every 12h`` (s, m, h, d, w). Raises ValueError."""
    if text.startswith(_EVERY):
        if interval(text) < _SHORTEST:
            raise ValueError(f"the shortest interval is {_SHORTEST.seconds} s")
    elif len(text.split()) != 5:
        raise ValueError(
            "a schedule is a cron expression of five fields ('0 3 * * 1') or an interval ('every 12h')"
        )
    return text


def interval(text: str) -> timedelta:
    """The interval of ``every …``. Raises ValueError for something else."""
    if not text.startswith(_EVERY):
        raise ValueError(f"{text!r} is no interval")
    return period(text.removeprefix(_EVERY).strip())


def options(text: str) -> dict[str, Any]:
    """The schedule as ``to_deployment`` takes it."""
    return {"interval": interval(text)} if text.startswith(_EVERY) else {"cron": text}


def deployments(client: SyncPrefectClient) -> list[DeploymentResponse]:
    """The deployments of the platform."""
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags

    return client.read_deployments(deployment_filter=DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG])))


def paused(found: Iterable[DeploymentResponse]) -> list[str]:
    """Deployments that are paused or have a paused schedule, by name: they start nothing, and nobody would notice."""
    return sorted(
        one.name
        for one in found
        if one.paused or any(not schedule.active for schedule in one.schedules or ())
    )


def keep_paused(served: Iterable[Any], known: Iterable[DeploymentResponse]) -> None:
    """Leave paused what somebody paused: to register a deployment again would resume it, without a word."""
    names = set(paused(known))
    for one in served:
        if one.schedules and one.name in names:
            one.paused = True
            one.schedules = [schedule.model_copy(update={"active": False}) for schedule in one.schedules]


def skip_missed(client: SyncPrefectClient) -> int:
    """Cancel the scheduled runs that are overdue but the newest of each deployment; returns how many."""
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Cancelled

    overdue: dict[Any, list[Any]] = {}
    for run in _waiting(client, datetime.now(UTC)):
        overdue.setdefault(run.deployment_id, []).append((run.expected_start_time, run.id))
    gone = [run_id for runs in overdue.values() for _, run_id in sorted(runs)[:-1]]
    for run_id in gone:
        with suppress(ObjectNotFound):  # deleted meanwhile
            client.set_flow_run_state(run_id, Cancelled(message=_SKIPPED), force=True)
    return len(gone)


def _waiting(client: SyncPrefectClient, moment: datetime) -> list[FlowRun]:
    """Every run that a schedule wanted by now and that has not begun; one that somebody moved to later is not among them."""
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterTags,
        FlowRunFilter,
        FlowRunFilterExpectedStartTime,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.client.schemas.sorting import FlowRunSort

    due: list[FlowRun] = []
    seen = 0
    while True:
        page = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
                expected_start_time=FlowRunFilterExpectedStartTime(before_=moment),
            ),
            deployment_filter=DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG])),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=_PAGE,
            offset=seen,
        )
        due += [run for run in page if run.auto_scheduled and run.run_count == 0 and _is_due(run, moment)]
        seen += len(page)
        if len(page) < _PAGE:
            return due


def _is_due(run: FlowRun, moment: datetime) -> bool:
    """Whether a run waits for nothing but its turn.

    One that met another run of its deployment is put off by half a minute again and again, so
    that its next time never passes while it waits.
    """
    if run.state_name == _FOR_A_SLOT:
        return True
    return run.next_scheduled_start_time is None or run.next_scheduled_start_time <= moment


def tidy(tell: Callable[[str], None]) -> None:
    """``skip_missed`` now and, in the background, from time to time. Raises httpx.HTTPError at the first."""
    _skip(tell)

    def go_on() -> None:
        import httpx

        while True:
            threading.Event().wait(_TIDY_EVERY_S)
            try:
                _skip(tell)
            except httpx.HTTPError:  # the server restarts
                continue

    threading.Thread(target=go_on, name="schedules", daemon=True).start()


def _skip(tell: Callable[[str], None]) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        gone = skip_missed(client)
    if gone:
        tell(f"{gone} scheduled runs were missed; the newest one that is due catches up")

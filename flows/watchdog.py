"""Runs whose process died without a word: found by Prefect's heartbeat, and by the lease in the catalogue."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import Run, now
from corpus.errors import TransientError
from flows.schedules import TAG

if TYPE_CHECKING:
    from prefect.events.schemas.automations import AutomationCore

AUTOMATION = "hchem: runs without a heartbeat"
_LEAST_WINDOW_S = 90  # below it Prefect's own delays look like a death
_BEATS = 3  # that may be missed
_DEAD = "the process ended without a word"


def dead(catalogue: Catalogue) -> list[Run]:
    """Runs that are marked running although no living process holds their lease."""
    return [] if leases.living(catalogue, "run") else running(catalogue)


def running(catalogue: Catalogue) -> list[Run]:
    """Runs that are marked running."""
    with catalogue.reading() as db:
        return list(db.scalars(select(Run).where(Run.state == "running")))


def bury(catalogue: Catalogue) -> list[str]:
    """Record dead runs as crashed; returns Prefect's ids of those it knows."""
    rows = dead(catalogue)
    close(catalogue, rows)
    return [row.flow_run_id for row in rows if row.flow_run_id]


def close(catalogue: Catalogue, rows: Sequence[Run]) -> None:
    """Record runs as crashed that are still marked running."""
    if not rows:
        return
    with catalogue.writing() as db:
        for found in rows:
            row = db.get(Run, found.run_id)
            if row is not None and row.state == "running":
                row.state, row.finished_at, row.message = "crashed", now(), _DEAD


def bury_all(catalogue: Catalogue, tell: Callable[[str], None]) -> None:
    """``bury``, told to Prefect's server too."""
    from prefect.states import Crashed

    from flows import cancelling

    ids = bury(catalogue)
    if ids:
        cancelling.settle(ids, Crashed(message=f"{_DEAD}; a retry or the next run goes on where it stopped"))
        tell(f"{len(ids)} runs had died and are marked as crashed; the next run goes on where they stopped")


def window(heartbeat_s: int) -> timedelta:
    """How long a run may be silent."""
    return timedelta(seconds=max(_LEAST_WINDOW_S, _BEATS * heartbeat_s))


def definition(heartbeat_s: int, *, own_server: bool) -> AutomationCore:
    """Marks a flow run as crashed that has sent no heartbeat and told no end. On a team's server: runs of ours only."""
    from prefect.automations import AutomationCore
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import EventTrigger, Posture

    ends = ("Completed", "Failed", "Cancelled", "Crashed", "Cancelling", "Paused", "Suspended")
    tag: dict[str, Any] = {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{TAG}"}
    silence = window(heartbeat_s)
    return AutomationCore(
        name=AUTOMATION,
        enabled=True,  # said, since an update sends only what is
        description="A flow run whose process died would stay Running for ever. Made by hchem up and hchem serve.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *(f"prefect.flow-run.{end}" for end in ends)},
            match={"prefect.resource.id": ["prefect.flow-run.*"]},
            match_related={} if own_server else tag,
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=silence,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                name=None,
                message=f"No heartbeat for {silence.seconds} s: its process is gone. A retry goes on where it stopped.",
            )
        ],
    )


def ensure_automation(
    heartbeat_s: int, *, own_server: bool, tell: Callable[[str], None] = lambda line: None
) -> None:
    """Make the automation where the server has none, change it where the settings have, remove second ones.

    Raises httpx.HTTPError where the server does not answer.
    """
    from prefect.client.orchestration import get_client

    wanted = definition(heartbeat_s, own_server=own_server)
    with get_client(sync_client=True) as client:
        known = client.read_automations_by_name(AUTOMATION)
        for extra in known[1:]:
            client.delete_automation(extra.id)
        if not known:
            client.create_automation(wanted)
            tell(f"Prefect marks a run that is silent for {window(heartbeat_s).seconds} s as crashed")
        elif not (_same(known[0], wanted)):
            client.update_automation(known[0].id, wanted)
            tell("the automation for dead runs was brought up to date")


def _same(known: AutomationCore, wanted: AutomationCore) -> bool:
    fields = {"name", "description", "enabled", "trigger", "actions"}
    a, b = (one.model_dump(mode="json", include=fields) for one in (known, wanted))
    for one in (a, b):
        one["trigger"].pop("id", None)
        for name in ("after", "expect", "for_each"):
            one["trigger"][name] = sorted(one["trigger"][name])
    return bool(a == b)


def attend(catalogue: Catalogue, heartbeat_s: int, *, own_server: bool, tell: Callable[[str], None]) -> None:
    """What is seen to where a server is found or started: the automation, dead runs, a word on paused schedules.

    Raises TransientError where the server does not answer.
    """
    import httpx
    from prefect.client.orchestration import get_client

    from flows import schedules

    try:
        ensure_automation(heartbeat_s, own_server=own_server, tell=tell)
        bury_all(catalogue, tell)
        with get_client(sync_client=True) as client:
            for name in schedules.paused(schedules.deployments(client)):
                tell(
                    f"the schedule of {name!r} is paused: it starts nothing until it is resumed in the Prefect UI"
                )
    except httpx.HTTPError as error:
        raise TransientError(
            f"the Prefect server does not answer: {type(error).__name__}", reason="prefect"
        ) from error


def lines(catalogue: Catalogue, api_url: str) -> list[str]:
    """What ``hchem status`` says of dead runs and, where a server is up, of what is wrong there."""
    found = [
        f"run {row.run_id} is marked running, but its process is gone; the next run goes on where it stopped"
        for row in dead(catalogue)
    ]
    return found + (troubles(api_url) if api_url else [])


def troubles(api_url: str) -> list[str]:
    """What is wrong on the server: no automation for dead runs, paused schedules. Empty where it does not answer.

    Asked over HTTP, since importing Prefect takes seconds.
    """
    import httpx

    tags = {"deployments": {"tags": {"all_": [TAG]}}}
    named = {"automations": {"name": {"any_": [AUTOMATION]}}}
    try:
        with httpx.Client(base_url=api_url, timeout=5, auth=_auth()) as client:
            automations = client.post("/automations/filter", json=named).raise_for_status().json()
            found = client.post("/deployments/filter", json=tags).raise_for_status().json()
    except httpx.HTTPError:
        return []
    wrong = []
    if not any(one["enabled"] for one in automations):
        wrong.append("dead runs are not noticed: the automation is missing or off (hchem up makes it)")
    for one in found:
        if one["paused"] or any(not schedule["active"] for schedule in one["schedules"]):
            wrong.append(f"the schedule of {one['name']!r} is paused (resume it in the Prefect UI)")
    return wrong


def _auth() -> tuple[str, str] | None:
    given = os.environ.get("PREFECT_API_AUTH_STRING") or os.environ.get("HCHEM_PREFECT__AUTH", "")
    name, _, password = given.partition(":")
    return (name, password) if password else None

"""Announcements: JSON posted to the operator's webhook, and events of the Prefect server.

What is posted holds names, states and figures; no text of pages, no message of an error, no key.
A delivery that fails is a warning and never the end of a run.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import httpx
import structlog
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from corpus.catalogue.tables import now
from corpus.errors import PlatformError

if TYPE_CHECKING:
    from corpus.catalogue.tables import Check
    from flows.execution import Session
    from flows.freshness import Age
    from flows.settings import FlowSettings
    from kg.versions import Version

log = structlog.get_logger("hchem.webhook")

VERSION = "hchem.dataset.version"
RUN_FAILED = "hchem.run.failed"
RUN_SUSPENDED = "hchem.run.suspended"
GATE_FAILED = "hchem.gate.failed"
SOURCE_STALE = "hchem.source.stale"

SIGNATURE = "X-HChem-Signature-256"
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_ATTEMPTS = 3
_WHOLE_S = 45.0  # for all attempts: limits of a single read do not end an answer that drips


def announce(
    settings: FlowSettings, event: str, payload: Mapping[str, Any], *, prefect_run: str = ""
) -> None:
    """Post an event to the webhook, if there is one; in a flow run of Prefect (its id is given) emit it there too."""
    if prefect_run and event != VERSION:  # the flow itself emits that one, for every version
        _emit(event, payload, prefect_run)
    if settings.webhook is None:
        return
    body = json.dumps({"event": event, "at": now().isoformat(), **payload}, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "HChemSafety",
        "X-HChem-Event": event,
        "X-HChem-Delivery": str(uuid.uuid4()),  # the same for all attempts
    }
    if settings.webhook_secret is not None:
        headers[SIGNATURE] = signature(settings.webhook_secret.get_secret_value(), body)
    url = settings.webhook.get_secret_value()
    try:
        _within(_WHOLE_S, lambda: _deliver(url, body, headers))
    except Exception as error:  # noqa: BLE001 - whatever the other side does, the run goes on
        status = (
            error.response.status_code if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
        )
        log.warning(
            "the webhook was not reached", announced=event, why=str(status)
        )  # the address stays a secret


def signature(key: str, body: bytes) -> str:
    """``sha256=`` and the HMAC of the body in hexadecimal, as the header carries it."""
    return "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def _within(seconds: float, action: Callable[[], None]) -> None:
    """Do something that may not take longer; what it raises is raised here, TimeoutError where it goes on."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - raised by who waits
            failures.append(error)

    thread = threading.Thread(target=run, name="webhook", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if failures:
        raise failures[0]


def _deliver(url: str, body: bytes, headers: dict[str, str]) -> None:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses of requests
    attempts = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(multiplier=0.5, max=4),
        retry=retry_if_exception(_may_pass),
        reraise=True,
    )
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
        for attempt in attempts:
            # the body of the answer is nobody's business, and may have no end
            with attempt, client.stream("POST", url, content=body, headers=headers) as answer:
                answer.raise_for_status()


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 425, 429)
    return isinstance(error, httpx.TransportError)


def _emit(event: str, payload: Mapping[str, Any], prefect_run: str) -> None:
    if "prefect" not in sys.modules:
        return
    from prefect.events import emit_event

    try:
        emit_event(
            event=event,
            resource={
                "prefect.resource.id": f"hchem.run.{payload.get('run', {}).get('run_id', prefect_run)}"
            },
            related=[
                {
                    "prefect.resource.id": f"prefect.flow-run.{prefect_run}",
                    "prefect.resource.role": "flow-run",
                }
            ],
            payload=dict(payload),
        )
    except Exception as error:  # noqa: BLE001 - an event that is lost is no reason to lose a run
        log.warning("the event was not emitted", announced=event, why=type(error).__name__)


# --- what is announced -----------------------------------------------------------


def _run(current: Session, state: str) -> dict[str, Any]:
    return {
        "run_id": current.context.run_id,
        "flow": current.flow,
        "state": state,
        "stages": list(current.stages),
        "flow_run_id": current.flow_run_id,
    }


def _say(current: Session, event: str, payload: dict[str, Any]) -> None:
    announce(current.runtime.settings.flows, event, payload, prefect_run=current.flow_run_id)


def version_taken(current: Session, version: Version) -> None:
    """A new version of the data set is there."""
    payload = {"run": _run(current, "running"), "version": {"id": version.id, "rows": version.rows}}
    _say(current, VERSION, payload)


def gates_failed(current: Session, checks: Sequence[Check]) -> None:
    """Blocking gates failed and hold the run."""
    rows = [
        {
            "name": row.name,
            "scope": row.scope,
            "stage": row.stage,
            "value": row.value,
            "limit": row.limit,
            "baseline": row.baseline,
        }
        for row in checks
    ]
    _say(current, GATE_FAILED, {"run": _run(current, "running"), "gates": rows})


def run_ended(current: Session, state: str, error: BaseException) -> None:
    """A run failed, stopped or is suspended; what a person cancelled needs no announcement."""
    if state in ("failed", "stopped", "suspended"):
        reason = error.reason if isinstance(error, PlatformError) else "unexpected"
        step = error.step if isinstance(error, PlatformError) else ""
        why = {"type": type(error).__name__, "reason": reason, "step": step}
        event = RUN_SUSPENDED if state == "suspended" else RUN_FAILED
        _say(current, event, {"run": _run(current, state), "error": why})
        watch_sources(current)


def watch_sources(current: Session) -> None:
    """Announce what is stale at the end of a run that crawled."""
    from flows import freshness

    if "acquire" not in current.stages:
        return
    try:
        found = freshness.ages(current.runtime.catalogue, current.runtime.settings)
    except PlatformError as error:
        log.warning("the age of the sources is not known", why=str(error))
        return
    stale = [one for one in found if one.stale]
    sources_stale(current.runtime.settings.flows, stale, prefect_run=current.flow_run_id)


def sources_stale(settings: FlowSettings, stale: Sequence[Age], *, prefect_run: str = "") -> None:
    """Sources are older than their limit."""
    if stale:
        announce(
            settings, SOURCE_STALE, {"sources": [one.as_dict() for one in stale]}, prefect_run=prefect_run
        )

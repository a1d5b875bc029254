"""Tells the Prefect server that a suspended run may go on, with the same typed decision as the form in its UI."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import httpx

from corpus.errors import TransientError
from flows import prefect_server

if TYPE_CHECKING:
    from flows.gates.decisions import Decision
    from flows.runtime import Runtime

_TIMEOUT_S = 30.0


def answers(decision: Decision) -> dict[str, Any]:
    """The fields of the form (``flows.gates.waiting.GateDecision``)."""
    return {
        "decision": "continue" if decision.go_on else "stop",
        "accept_as_baseline": decision.accept,
        "name": decision.by,
        "why": decision.why,
    }


def resume(runtime: Runtime, flow_run_id: str, decision: Decision) -> str:
    """Resume the flow run; returns a line that says so. Raises TransientError where no server takes the decision."""
    server = prefect_server.running(runtime.data_dir)
    url = os.environ.get("PREFECT_API_URL") or (server.url if server else "")
    where = "decide there, or again here once it is up: hchem up; or run the same command again"
    if not url:
        raise TransientError(f"recorded, but the Prefect server of the suspended run is not up; {where}")
    auth = runtime.settings.prefect.auth
    pair = tuple(auth.get_secret_value().split(":", 1)) if auth is not None else None
    try:
        answer = httpx.post(
            f"{url}/flow_runs/{flow_run_id}/resume",
            json={"run_input": answers(decision)},
            auth=(pair[0], pair[1]) if pair else None,
            timeout=_TIMEOUT_S,
        )
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise TransientError(
            f"recorded, but {url} did not take it ({type(error).__name__}); {where}"
        ) from error
    said = answer.json()
    if said.get("status") != "ACCEPT":
        reason = (said.get("details") or {}).get("reason") or said.get("status")
        return f"Recorded. The suspended run does not go on ({reason}); run the same command again."
    return "The suspended run goes on (hchem serve, or a worker, takes it up within seconds)."

"""What flow runs are called on Prefect's pages: their flow and our run, which ``hchem runs`` knows by the same id.

Prefect asks for the name when a run starts, so that one that waits in a schedule still has the server's own;
a run that has no id of ours yet, since it waits for another to end, is called after the moment.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client

from corpus.catalogue.tables import now


def called(flow: str, run_id: str = "") -> str:
    """``refresh 20261201T041033-5f2c1a``; without an id the moment (UTC) alone."""
    return f"{flow} {run_id or format(now(), '%Y%m%dT%H%M%S')}"


def rename(flow_run_id: str, name: str) -> None:
    """Give a flow run that has started another name; a server that does not answer costs the name alone."""
    with suppress(httpx.HTTPError), get_client(sync_client=True) as client:
        client.set_flow_run_name(UUID(flow_run_id), name)

"""A failed gate suspends a deployed run; the decision given in the UI's way lets it go on, or stops it."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Check, Lease, Page, Run, now
from flows import prefect_server
from flows.parameters import STAGES, RefreshParameters
from tests.flows.conftest import Command, small_site

pytestmark = [pytest.mark.prefect, pytest.mark.slow, pytest.mark.timeout(900)]
_MADE_UP = 1000  # pages that the run before is said to have had


@dataclass
class Served:
    """The deployments of one data directory, served."""

    command: Command
    api: str
    catalogue: Catalogue

    def start(self, **parameters: Any) -> str:
        """Start the deployment of the refresh as the form does; the flow run's id."""
        deployment = call(f"{self.api}/deployments/name/refresh/weekly")
        body = {"parameters": {"parameters": parameters}, "state": {"type": "SCHEDULED"}}
        return str(call(f"{self.api}/deployments/{deployment['id']}/create_flow_run", body)["id"])

    def wait_for(self, flow_run: str, *states: str) -> dict[str, Any]:
        """The flow run's state, once it is one of these."""
        deadline = time.monotonic() + 400
        while time.monotonic() < deadline:
            state: dict[str, Any] = call(f"{self.api}/flow_runs/{flow_run}")["state"]
            if state["type"] in states:
                return state
            assert state["type"] not in ("CRASHED", "CANCELLED", "FAILED"), state["message"]
            time.sleep(0.5)
        pytest.fail(f"{flow_run} did not become {states}")

    def has_event(self, name: str) -> bool:
        """Whether the server has stored such an event; they arrive late."""
        wanted = {"filter": {"event": {"name": [name]}}}
        deadline = time.monotonic() + 60
        while (
            not (found := call(f"{self.api}/events/filter", wanted)["total"]) and time.monotonic() < deadline
        ):
            time.sleep(0.5)
        return bool(found)

    def row(self, flow_run: str) -> Run:
        """Our row of the flow run: there is exactly one."""
        with self.catalogue.reading() as db:
            return db.scalars(select(Run).where(Run.flow_run_id == flow_run)).one()


def call(url: str, body: dict[str, Any] | None = None) -> Any:
    """Ask the server; one whose database is busy (503) is asked again."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def make_up_a_run(catalogue: Catalogue, run_id: str, pages: int, age: timedelta) -> None:
    """A completed whole run that found so many pages."""
    parameters = RefreshParameters().model_dump(mode="json")
    at = now() - age
    with catalogue.writing() as db:
        db.add(
            Run(
                run_id=run_id,
                flow="refresh",
                state="completed",
                started_at=at,
                finished_at=at,
                parameters=parameters,
            )
        )
        db.add(
            Check(
                check_id=run_id, run_id=run_id, stage="acquire", name="pages_drop", severity="block", state="passed",
                value=pages, limit=0.2, message="made up",
            )
        )  # fmt: skip


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gate")
    settings = {
        "HCHEM_CRAWL__SAMPLE_DIR": str(small_site(folder / "site")),
        "HCHEM_GATES__SEVERITY": '{"pages_drop": "block"}',
    }
    command = Command(folder / "data", settings)
    catalogue = Catalogue.open(f"sqlite:///{_made(command.data_dir)}/catalogue.db")
    make_up_a_run(catalogue, "before", _MADE_UP, timedelta(days=7))
    serving = command.start("serve")
    deadline = time.monotonic() + 400
    try:
        while (server := prefect_server.running(command.data_dir)) is None:
            assert serving.poll() is None, serving.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.5)
        api = server.url
        while len(call(f"{api}/deployments/filter", {})) < len(STAGES) + 1:
            assert serving.poll() is None, serving.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield Served(command, api, catalogue)
    finally:
        os.killpg(serving.pid, signal.SIGKILL)
        serving.communicate()
        catalogue.close()
        command.run("down", code=None)


def test_a_run_is_suspended_and_goes_on_with_the_decision(served: Served) -> None:
    flow_run = served.start(to_stage="curate")
    state = served.wait_for(flow_run, "PAUSED")
    assert state["name"] == "Suspended"
    run = served.row(flow_run)
    assert (run.state, list(run.stages)) == ("suspended", ["acquire"])
    assert call(f"{served.api}/flow_runs/{flow_run}")["name"] == f"refresh {run.run_id}"
    assert "pages_drop: 1000 → " in run.message
    with served.catalogue.reading() as db:
        assert db.get(Lease, "run") is None  # others may run meanwhile
        crawled = db.scalar(select(func.max(Page.visited_at)))
    keys = state["state_details"]["run_input_keyset"]
    form = call(f"{served.api}/flow_runs/{flow_run}/input/{keys['schema']}")
    assert set(form["properties"]) == {"decision", "accept_as_baseline", "name", "why"}
    told = call(f"{served.api}/flow_runs/{flow_run}/input/{keys['description']}")
    assert "pages_drop: 1000 → " in told

    wrong = call(f"{served.api}/flow_runs/{flow_run}/resume", {"run_input": {"decision": "perhaps"}})
    assert wrong["status"] == "REJECT"
    answer = {"decision": "continue", "accept_as_baseline": True, "name": "李工", "why": "来源关闭 / closed"}
    taken = call(f"{served.api}/flow_runs/{flow_run}/resume", {"run_input": answer})
    assert taken["status"] == "ACCEPT", taken
    served.wait_for(flow_run, "COMPLETED")
    after = served.row(flow_run)
    assert (after.run_id, after.state, list(after.stages)) == (run.run_id, "completed", ["acquire", "curate"])
    assert after.stages["acquire"] == run.stages["acquire"]
    names = {row["name"] for row in call(f"{served.api}/flow_runs/filter", {})}
    assert names >= {f"{flow} {run.run_id}" for flow in ("refresh", "acquire", "curate")}
    with served.catalogue.reading() as db:
        assert db.scalar(select(func.max(Page.visited_at))) == crawled  # nothing was asked for again
        query = select(Check).where(Check.run_id == run.run_id, Check.name == "pages_drop", Check.scope == "")
        check = db.scalars(query).one()
    assert (check.decision, check.decided_by, check.why) == ("accept", "李工", "来源关闭 / closed")
    assert served.has_event("hchem.gate.failed")
    assert served.has_event("hchem.run.suspended")


def test_a_suspended_run_is_stopped_by_the_command(served: Served) -> None:
    make_up_a_run(served.catalogue, "between", _MADE_UP, timedelta(0))
    flow_run = served.start(to_stage="acquire")
    served.wait_for(flow_run, "PAUSED")
    served.command.run("gates", "decide", "pages_drop", "stop", "--why", "looking into it", "--by", "Li")
    state = served.wait_for(flow_run, "FAILED")
    assert "stopped after acquire by Li: looking into it" in state["message"]
    run = served.row(flow_run)
    assert (run.state, run.message) == ("failed", "stopped after acquire by Li: looking into it")

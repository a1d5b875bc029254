"""A team's services: Prefect's server on PostgreSQL with a password, prefect.yaml as it stands, two workers of a process pool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from corpus.catalogue import leases
from flows.sharing import ASSISTANT
from tests.conftest import REPOSITORY, free_port, new_database
from tests.flows.test_assist import World

pytestmark = [pytest.mark.prefect, pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(1500)]

_WAIT_S = 600.0
_CANCELLED_IN_S, _SLACK_S = 10.0, 20.0  # Prefect's worker looks for what is to be cancelled every few seconds


@dataclass
class Team:
    """Processes of ``prefect`` on one server; all of what is wanted of them goes over its API."""

    folder: Path
    database: str
    settings: dict[str, str]
    port: int = field(default_factory=free_port)

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HCHEM_", "PREFECT_", "OPENAI_"))}
        return {
            **kept,
            **self.settings,
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_API_AUTH_STRING": "team:a password",
            "PREFECT_SERVER_API_AUTH_STRING": "team:a password",
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": self.database.replace("postgresql://", "postgresql+asyncpg://"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
        }  # fmt: skip

    def command(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "prefect", *arguments],
            env=self.environment(), cwd=REPOSITORY, capture_output=True, text=True, timeout=_WAIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"

    @contextmanager
    def running(self, name: str, *arguments: str) -> Iterator[None]:
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "prefect", *arguments],
                env=self.environment(), cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def api(self, path: str, **body: Any) -> Any:
        url = f"http://127.0.0.1:{self.port}/api{path}"
        auth = ("team", "a password")
        answer = httpx.post(url, json=body, auth=auth, timeout=60) if body else httpx.get(url, auth=auth, timeout=60)  # fmt: skip
        return answer.raise_for_status().json()

    def begin(self, flow: str, name: str, parameters: dict[str, Any]) -> str:
        """Start a deployment with parameters; returns the flow run's id."""
        found = self.api(f"/deployments/name/{flow}/{name}")
        made = self.api(
            f"/deployments/{found['id']}/create_flow_run",
            parameters={"parameters": parameters},
            state={"type": "SCHEDULED"},
        )
        return str(made["id"])

    def until(self, true: Callable[[], Any], what: str) -> Any:
        ends = time.monotonic() + _WAIT_S
        while not (found := true()):
            assert time.monotonic() < ends, f"waited for {what}\n{self.said()}"
            time.sleep(0.5)
        return found

    def answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/api/health", timeout=5).is_success
        except httpx.TransportError:
            return False

    def ended(self, run_id: str) -> dict[str, Any]:
        def final() -> Any:
            run = self.api(f"/flow_runs/{run_id}")
            return run if run["state"]["type"] in ("COMPLETED", "FAILED", "CANCELLED", "CRASHED") else None

        run: dict[str, Any] = self.until(final, f"the end of {run_id}")
        return run

    def said(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))


@pytest.fixture
def world(postgres_server: str, tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "data"
    folder.mkdir()
    made = World(folder, new_database(postgres_server))
    yield made
    made.close()


@pytest.fixture
def team(world: World, postgres_server: str, tmp_path: Path) -> Iterator[Team]:
    settings = {
        "HCHEM_DATA_DIR": str(world.folder),
        "HCHEM_CATALOGUE__URL": world.url,
        "HCHEM_FLOWS__WORKERS": "1",
        "OMP_NUM_THREADS": "1",
    }
    made = Team(tmp_path, new_database(postgres_server), settings)
    with ExitStack() as running:
        running.enter_context(made.running("server", "server", "start", "--host", "127.0.0.1", "--port", str(made.port)))  # fmt: skip
        made.until(made.answers, "the server")
        made.command("work-pool", "create", "hchem", "--type", "process")
        made.command("--no-prompt", "deploy", "--all")
        for name in ("one", "two"):
            running.enter_context(made.running(name, "worker", "start", "--pool", "hchem", "--limit", "1", "--name", name))  # fmt: skip
        yield made


def test_two_workers_share_a_run_and_one_is_cancelled(team: Team, world: World) -> None:
    """The second worker helps until somebody cancels it in Prefect; every document once, whoever did it."""
    helping = team.begin("assist", "ad-hoc", {"until_idle": False})
    team.until(lambda: leases.living(world.catalogue, ASSISTANT), "an assistant")
    leading = team.begin("refresh", "weekly", {"from_stage": "curate", "to_stage": "curate"})
    done = team.ended(leading)
    assert done["state"]["type"] == "COMPLETED", team.said()
    assert team.api(f"/flow_runs/{helping}")["state"]["type"] == "RUNNING"
    team.api(f"/flow_runs/{helping}/set_state", state={"type": "CANCELLING"})
    began = time.monotonic()
    helped = team.ended(helping)
    assert helped["state"]["type"] == "CANCELLED"
    assert time.monotonic() - began < _CANCELLED_IN_S + _SLACK_S
    assert not leases.living(world.catalogue, ASSISTANT)
    assert done["infrastructure_pid"] != helped["infrastructure_pid"]
    documents = [f"doc{n:04}" for n in range(80)]
    for step in ("curate.score", "curate.refine"):
        assert {item: n for (name, item), n in world.written().items() if name == step} == dict.fromkeys(documents, 1)  # fmt: skip
    run = world.runs()[-1]
    assert run.state == "completed"
    assert run.flow_run_id == leading

"""When a refresh is due, what the deployments are, and that ``prefect.yaml`` says the same as ``hchem serve``."""

from __future__ import annotations

import importlib
import inspect
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus.catalogue import Catalogue
from corpus.errors import SettingsError
from flows import schedules, watchdog
from flows.settings import FlowSettings, load_settings
from tests.flows.conftest import Command
from tests.flows.test_gate_suspends import call, make_up_a_run
from tests.servers.prefect_api import prefect_api

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("0 3 * * 1", {"cron": "0 3 * * 1"}),
        ("every 20s", {"interval": timedelta(seconds=20)}),
        ("every 12h", {"interval": timedelta(hours=12)}),
        ("every 2w", {"interval": timedelta(weeks=2)}),
    ],
)
def test_cron_or_interval(text: str, options: dict[str, Any]) -> None:
    assert FlowSettings(schedule=text).schedule == text
    assert schedules.options(text) == options


@pytest.mark.parametrize("text", ["every 5s", "every", "every day", "0 3 * *", "daily", "", "every 0"])
def test_what_is_no_schedule_is_said(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HCHEM_FLOWS__SCHEDULE", text)
    with pytest.raises(SettingsError, match="HCHEM_FLOWS__SCHEDULE"):
        load_settings()


def test_the_heartbeat_window_leaves_room() -> None:
    assert watchdog.window(30) == timedelta(seconds=90)
    assert watchdog.window(60) == timedelta(seconds=180)


def test_a_team_server_is_asked_about_our_runs_only() -> None:
    own, shared = (watchdog.definition(30, own_server=own).trigger for own in (True, False))
    assert "prefect.tag.hchem" in str(shared.match_related)  # type: ignore[union-attr]
    assert "prefect.tag" not in str(own.match_related)  # type: ignore[union-attr]
    assert watchdog._same(watchdog.definition(30, own_server=True), watchdog.definition(30, own_server=True))
    assert not watchdog._same(
        watchdog.definition(30, own_server=True), watchdog.definition(31, own_server=True)
    )


def test_prefect_yaml_deploys_what_serve_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path))
    from prefect.utilities.schema_tools import validate

    from flows import deployments

    given = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    written = {(one["entrypoint"].split(":")[1], one["name"]): one for one in given}
    served = {(one.flow_name, one.name): one for one in deployments.definitions(FlowSettings())}
    assert set(served) <= set(written)
    assert {name for name, _ in set(written) - set(served)} <= {
        "assist"
    }  # serve offers it where batches are shared
    for key, deployed in served.items():
        one = written[key]
        kind = _parameters(one["entrypoint"])
        parameters = [
            kind(**p.get("parameters", {})) for p in (one.get("parameters", {}), deployed.parameters)
        ]
        assert parameters[0] == parameters[1], key
        validate(deployed.parameters, deployed._parameter_openapi_schema.model_dump(), raise_on_error=True)
        assert one["description"] == deployed.description
        assert one["tags"] == deployed.tags == [schedules.TAG]
        assert one["concurrency_limit"]["limit"] == deployed.concurrency_limit
        assert (
            one["concurrency_limit"]["collision_strategy"] == deployed.concurrency_options.collision_strategy
        )
        crons = [schedule.schedule.cron for schedule in deployed.schedules or ()]
        assert [schedule["cron"] for schedule in one.get("schedules", ())] == crons


def _parameters(entrypoint: str) -> Any:
    """The class of a flow's one parameter."""
    path, _, name = entrypoint.partition(":")
    flow = getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name)
    return type(inspect.signature(flow.fn).parameters["parameters"].default)


# --- what was missed ------------------------------------------------------------------------------

_SLOT = {
    "type": "SCHEDULED",
    "name": "AwaitingConcurrencySlot",
    "state_details": {"scheduled_time": "2100-01-01T00:00:00Z"},
}
_PATIENCE_S = 300.0


@contextmanager
def _served(command: Command) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Serve for a block; gives a wait for something to be there."""
    serving = command.start("serve")

    def until(found: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + _PATIENCE_S
        while not (it := found()):
            assert serving.poll() is None, serving.communicate()
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.3)
        return it

    try:
        yield until
    finally:
        with suppress(ProcessLookupError):
            os.killpg(serving.pid, signal.SIGKILL)
        serving.communicate()


@dataclass(frozen=True)
class Weekly:
    """The deployment of the refresh on a real server, served by nobody."""

    command: Command
    api: str
    deployment: str

    def miss(self, year: int, count: int) -> None:
        """Make up runs that the schedule wanted in a year long ago."""
        span = {"start_time": f"{year}-01-01T00:00:00Z", "end_time": f"{year}-12-31T00:00:00Z"}
        many = {"min_runs": count, "max_runs": count}
        call(f"{self.api}/deployments/{self.deployment}/schedule", {**span, **many})

    def missed(self) -> list[dict[str, Any]]:
        """Runs that were made up, the oldest first."""
        wanted = {
            "deployments": {"id": {"any_": [self.deployment]}},
            "flow_runs": {"expected_start_time": {"before_": "2024-12-31T00:00:00Z"}},
            "sort": "EXPECTED_START_TIME_ASC",
        }
        found: list[dict[str, Any]] = call(f"{self.api}/flow_runs/filter", wanted)
        return found


@pytest.fixture(scope="module")
def weekly(tmp_path_factory: pytest.TempPathFactory) -> Weekly:
    api = prefect_api()
    command = Command(tmp_path_factory.mktemp("weekly") / "data", {"PREFECT_API_URL": api})
    command.data_dir.mkdir()
    catalogue = Catalogue.open(f"sqlite:///{command.data_dir}/catalogue.db")
    make_up_a_run(catalogue, "made-up", 3, timedelta(0))  # so a scheduled one has nothing to do
    catalogue.close()
    name = {"deployments": {"name": {"any_": [schedules.WEEKLY]}}}
    with _served(command) as until:
        deployment = until(lambda: call(f"{api}/deployments/filter", name))[0]
    return Weekly(command, api, deployment["id"])


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_missed_runs_are_found_on_every_page_and_while_they_wait_for_a_slot(
    weekly: Weekly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that meets another run of its deployment is put off again and again, so its time never passes."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    weekly.miss(2020, 5)
    waits = weekly.missed()[1]["id"]
    call(f"{weekly.api}/flow_runs/{waits}/set_state", {"state": _SLOT, "force": True})
    monkeypatch.setattr(schedules, "_PAGE", 2)
    with temporary_settings({PREFECT_API_URL: weekly.api}), get_client(sync_client=True) as client:
        assert schedules.skip_missed(client) == 4
        assert schedules.skip_missed(client) == 0
    assert [run["state"]["type"] for run in weekly.missed()] == [*["CANCELLED"] * 4, "SCHEDULED"]


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_of_what_was_missed_only_the_newest_starts(weekly: Weekly) -> None:
    weekly.miss(2022, 4)
    before = [run["id"] for run in weekly.missed() if run["state"]["type"] == "SCHEDULED"]
    assert len(before) >= 4
    with _served(weekly.command) as until:
        until(lambda: weekly.missed()[-1]["state"]["type"] == "COMPLETED")
        after = [run for run in weekly.missed() if run["id"] in before]
    assert [run["state"]["type"] for run in after] == [*["CANCELLED"] * (len(before) - 1), "COMPLETED"]
    assert [run["id"] for run in after if run["run_count"]] == before[-1:]
    assert "already fresh" in after[-1]["state"]["message"]
    assert all("one refresh catches up" in run["state"]["message"] for run in after[:-1])

"""When a refresh is due, what the deployments are, and that ``prefect.yaml`` says the same as ``hchem serve``."""

from __future__ import annotations

import importlib
import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus.errors import SettingsError
from flows import schedules, watchdog
from flows.settings import FlowSettings, load_settings

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

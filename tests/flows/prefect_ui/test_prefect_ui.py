"""``hchem up`` and ``hchem serve`` as people use them: Prefect's pages in a real browser, schedules, cancel, retry.

One server, one ``serve`` at a time; the tests build on each other in the order in which they stand.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from flows import watchdog
from tests.flows.conftest import Command, small_site
from tests.flows.killing import alive, children, held, url
from tests.servers.model_server import ModelServer, Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1800)]
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
]
_WAIT_S = 300.0
_CANCELLED_IN_S = 10.0
_SLACK_S = 10.0  # of a machine that does other things too
CHINESE = "过氧化氢"


class Platform:
    """A data directory with its Prefect server and, when asked for, ``hchem serve``."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.told = command.run("up", timeout=600).stderr
        self.ui = re.search(r"http://127\.0\.0\.1:\d+", command.run("up", timeout=600).stdout)[0]  # type: ignore[index]
        self.serving: subprocess.Popen[str] | None = None

    def post(self, path: str, **body: Any) -> Any:
        answer = httpx.post(f"{self.ui}/api{path}", json=body, timeout=60)
        for _ in range(20):
            if answer.status_code != 503:
                break
            time.sleep(1)  # the server's database is locked; Prefect's clients ask again too
            answer = httpx.post(f"{self.ui}/api{path}", json=body, timeout=60)
        return answer.raise_for_status().json()

    def serve(self, **settings: str) -> None:
        """Serve the deployments until ``stop``; returns once they are there."""
        served = Command(self.command.data_dir, {**self.command.settings, **settings})
        self.log = (self.command.data_dir.parent / "serve.log").open("a")
        self.serving = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "serve"],
            env=served.environment(),
            cwd=self.command.data_dir.parent,
            stdout=self.log,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )
        began = time.time()
        until(lambda: self.deployment() and _moment(self.deployment()["updated"]) > began - 1, "served")

    def stop(self) -> None:
        if self.serving is not None:
            self.serving.send_signal(signal.SIGTERM)
            self.serving.wait(120)
            self.serving = None

    def said(self) -> str:
        return (self.command.data_dir.parent / "serve.log").read_text(encoding="utf-8", errors="replace")

    def deployment(self, name: str = "weekly") -> dict[str, Any]:
        found = self.post("/deployments/filter", deployments={"name": {"any_": [name]}})
        return found[0] if found else {}

    def runs(self, *types: str) -> list[dict[str, Any]]:
        """Flow runs that are no stage of another, oldest first."""
        chosen = {"state": {"type": {"any_": list(types)}}} if types else {}
        found = self.post("/flow_runs/filter", flow_runs=chosen, sort="EXPECTED_START_TIME_ASC")
        return [run for run in found if run["parent_task_run_id"] is None]

    def stages(self, run_id: str) -> list[dict[str, Any]]:
        """The flow runs below a flow run."""
        found = self.post("/flow_runs/filter", flow_runs={"parent_flow_run_id": {"any_": [run_id]}})
        assert found
        return list(found)

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.ui}/api/flow_runs/{run_id}", timeout=60).json()
        return found

    def ended(self, run_id: str) -> dict[str, Any]:
        def final() -> bool:
            return self.run(run_id)["state"]["type"] in ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")

        until(final, f"end of {run_id}", tell=self.said)
        return self.run(run_id)


def until(true: Callable[[], Any], what: str, *, tell: Callable[[], str] = str) -> None:
    ends = time.monotonic() + _WAIT_S
    while not true():
        assert time.monotonic() < ends, f"waited {_WAIT_S} s for: {what}\n{tell()[-3000:]}"
        time.sleep(0.5)


def _moment(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("served")
    settings = {"HCHEM_CRAWL__SAMPLE_DIR": str(small_site(folder / "site"))}
    settings["HCHEM_PREFECT__START_TIMEOUT_S"] = "400"
    command = Command(folder / "data", settings)
    try:
        made = Platform(command)
        yield made
        made.stop()
    finally:
        command.run("down", timeout=120, code=None)


class Person:
    """A browser; every address that it asks for is kept."""

    def __init__(self, browser: Any, ui: str, shots: Path) -> None:
        self.context = browser.new_context(locale="zh-CN", viewport={"width": 1400, "height": 2200})
        self.context.set_default_timeout(180_000)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.ui, self.shots = ui, shots

    def open(self, path: str, *shown: str) -> None:
        """Go to a page and wait until it shows these words."""
        self.page.goto(f"{self.ui}{path}")
        for words in shown:
            self.page.get_by_text(words).first.wait_for()

    def picture(self, name: str) -> None:
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=self.shots / f"{name}.png", full_page=True)


@pytest.fixture(scope="module")
def person(chromium: str, platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    from playwright.sync_api import sync_playwright

    shots = Path(os.environ.get("HCHEM_TEST_PICTURES") or tmp_path_factory.mktemp("pictures"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield Person(browser, platform.ui, shots)
        browser.close()


def test_up_makes_the_automation_once(platform: Platform) -> None:
    """``up`` ran twice; what it made is what the code says."""
    found = platform.post("/automations/filter", automations={"name": {"any_": [watchdog.AUTOMATION]}})
    assert len(found) == 1
    wanted = watchdog.definition(30, own_server=True)
    assert found[0]["enabled"]
    assert found[0]["trigger"]["within"] == 90
    assert set(found[0]["trigger"]["expect"]) == wanted.trigger.expect  # type: ignore[union-attr]
    assert found[0]["actions"][0]["state"] == "CRASHED"
    assert "silent for 90 s" in platform.told
    assert watchdog.troubles(f"{platform.ui}/api") == []
    httpx.patch(f"{platform.ui}/api/automations/{found[0]['id']}", json={"enabled": False}, timeout=60)
    assert "not noticed" in watchdog.troubles(f"{platform.ui}/api")[0]
    slower = Command(
        platform.command.data_dir, {**platform.command.settings, "HCHEM_PREFECT__HEARTBEAT_S": "60"}
    )
    slower.run("up", timeout=300)
    again = platform.post("/automations/filter", automations={"name": {"any_": [watchdog.AUTOMATION]}})
    assert [(one["id"], one["enabled"], one["trigger"]["within"]) for one in again] == [
        (found[0]["id"], True, 180)
    ]


def test_the_form_starts_a_run_with_other_parameters(platform: Platform, person: Person) -> None:
    platform.serve()
    page, deployment = person.page, platform.deployment()
    person.open(f"/deployments/deployment/{deployment['id']}/run", "From Stage")
    person.picture("form")
    _choose(page, "To Stage", "curate")
    _add(page, "Sources", "sample")
    _add(page, "Chemicals", CHINESE)
    person.picture("form-filled")
    page.get_by_role("button", name="Submit").click()
    until(lambda: platform.runs("PENDING", "RUNNING", "COMPLETED"), "run", tell=platform.said)
    run = platform.runs("PENDING", "RUNNING", "COMPLETED")[-1]
    asked = run["parameters"]["parameters"]
    assert (asked["to_stage"], asked["sources"], asked["chemicals"]) == ("curate", ["sample"], [CHINESE])
    done = platform.ended(run["id"])
    assert done["state"]["type"] == "COMPLETED", done["state"]
    person.open(f"/runs/flow-run/{run['id']}", "Completed", "Subflow Runs")
    person.picture("run")
    page.get_by_text("Subflow Runs").first.click()
    for stage in ("acquire", "curate"):
        page.get_by_text(stage, exact=True).first.wait_for()
    person.picture("run-stages")
    person.open(f"/runs/flow-run/{run['id']}?tab=Parameters", CHINESE)
    person.picture("run-parameters")


def test_the_run_left_its_artifacts(platform: Platform, person: Person) -> None:
    found = platform.post("/artifacts/latest/filter", limit=200)
    kinds = {one["key"]: one["type"] for one in found}
    for key in ("progress-curate-clean", "stage-acquire", "stage-curate", "run-summary"):
        assert key in kinds
    assert kinds["progress-curate-clean"] == "progress"
    for key in ("stage-curate", "run-summary"):
        person.open(f"/artifacts/key/{key}", key)
        person.picture(f"artifact-{key}")
    summary = next(one for one in found if one["key"] == "run-summary")
    heading = next(line.lstrip("# ") for line in summary["data"].splitlines() if line.startswith("#"))
    person.page.locator(f"a[href*='{summary['latest_id']}']").first.click()
    person.page.get_by_text(heading).first.wait_for()
    person.picture("artifact")
    assert "\ufffd" not in person.page.inner_text("body")


def test_cancel_and_retry(platform: Platform, person: Person) -> None:
    """A model that never answers holds the run up; cancelled in the page, then retried with one that is not asked."""
    platform.stop()
    with ModelServer(lambda request: Reply("{}", delay_s=600)) as server:
        platform.serve(HCHEM_MODELS__BASE_URL=server.base_url, HCHEM_MODELS__MODEL="scripted")
        parameters = {"from_stage": "acquire", "to_stage": "curate"}
        run = platform.post(
            f"/deployments/{platform.deployment()['id']}/create_flow_run",
            parameters={"parameters": parameters},
            state={"type": "SCHEDULED"},
        )
        until(lambda: server.requests, "a question to the model", tell=platform.said)
        assert platform.serving is not None
        below = children(platform.serving.pid)
        person.open(f"/runs/flow-run/{run['id']}", "Running")
        person.picture("running")
        person.page.get_by_role("button", name="Cancel", exact=True).first.click()
        person.picture("cancel")
        person.page.get_by_role("button", name="Confirm").click()
        began = time.monotonic()
        until(lambda: not any(alive(child) for child in below), "end of the children")
        state = platform.ended(run["id"])["state"]
        seconds = time.monotonic() - began
        assert state["type"] == "CANCELLED", state
        assert seconds < _CANCELLED_IN_S + _SLACK_S
        print(f"cancelled after {seconds:.1f} s")
        stages = {stage["state"]["type"] for stage in platform.stages(run["id"])}
        assert stages == {"COMPLETED", "CANCELLED"}  # none goes on in the pages
        assert "CancelledRun" not in platform.said()
        person.open(f"/runs/flow-run/{run['id']}", "Cancelled")
        person.picture("cancelled")
        assert held(url(platform.command)) == []
        assert platform.command.last_run()["state"] == "cancelled"
        platform.stop()
    platform.serve()
    platform.post(
        f"/flow_runs/{run['id']}/set_state", state={"type": "SCHEDULED", "name": "AwaitingRetry"}, force=True
    )
    until(lambda: platform.run(run["id"])["run_count"] > 1, "second attempt", tell=platform.said)
    assert platform.ended(run["id"])["state"]["type"] == "COMPLETED"
    steps = platform.command.last_run()["stages"]["curate"]["steps"]
    assert steps["curate.profile"]["pending"] == 0  # what was done before the model was asked stays done


def test_schedules_fire_do_not_pile_up_and_survive(platform: Platform) -> None:
    platform.stop()
    known = {run["id"] for run in platform.runs()}
    platform.serve(HCHEM_FLOWS__SCHEDULE="every 15s")
    until(lambda: _begun(platform, known), "a scheduled run", tell=platform.said)
    first = _begun(platform, known)[0]
    assert _moment(first["start_time"]) - _moment(first["expected_start_time"]) < 120
    platform.stop()  # the run that was on is cancelled, the schedule goes on
    missed_from = time.time()
    time.sleep(50)
    assert all(schedule["active"] for schedule in platform.deployment()["schedules"])
    missed_to = time.time()
    before = {run["id"] for run in platform.runs() if run["state"]["type"] != "SCHEDULED"}
    told = len(platform.said())  # what was said while a run took longer than the interval is not meant
    platform.serve(HCHEM_FLOWS__SCHEDULE="every 1h")
    until(lambda: "were missed" in platform.said()[told:], "what was missed", tell=platform.said)
    missed = [
        run
        for run in platform.runs()
        if missed_from < _moment(run["expected_start_time"]) < missed_to and run["id"] not in before
    ]
    assert len(missed) >= 2
    assert sum(run["state"]["type"] == "CANCELLED" for run in missed) >= len(missed) - 1


def test_a_paused_schedule_is_named(platform: Platform) -> None:
    platform.stop()
    found = platform.deployment()
    httpx.post(f"{platform.ui}/api/deployments/{found['id']}/pause_deployment", timeout=60).raise_for_status()
    platform.serve()
    until(lambda: "'weekly' is paused" in platform.said(), "a word on it", tell=platform.said)
    assert "'weekly' is paused" in platform.command.run("status").stdout


def test_no_request_left_this_machine(person: Person) -> None:
    hosts = {urlsplit(asked).hostname for asked in person.asked if not asked.startswith(("data:", "blob:"))}
    assert hosts == {"127.0.0.1"}


def _begun(platform: Platform, known: set[str]) -> list[dict[str, Any]]:
    return [run for run in platform.runs() if run["id"] not in known and run["start_time"]]


def _property(page: Any, label: str) -> Any:
    """A field of Prefect's form, by its heading."""
    heading = f".schema-form-property__label:text-is('{label} (Optional)')"
    return page.locator(f".schema-form-property:has(> .p-label__header {heading})").last


def _choose(page: Any, label: str, value: str) -> None:
    """Choose from a list; it closes when a click makes the page scroll, so it is opened by key."""
    _property(page, label).locator(".p-select-button__control").focus()
    page.keyboard.press("Space")
    page.locator(".p-select-option__text").get_by_text(value, exact=True).click()


def _add(page: Any, label: str, value: str) -> None:
    """Add a value to a list of values."""
    field = _property(page, label)
    field.get_by_role("button", name="Add item").click()
    field.locator("input, textarea").last.fill(value)

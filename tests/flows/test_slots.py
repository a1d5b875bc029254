"""Slots over processes, on a real Prefect server: who holds one, who waits, what happens when the server goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from models.settings import Limits, ModelSettings
from tests.conftest import REPOSITORY
from tests.servers.prefect_api import Doorway, prefect_api

pytestmark = [pytest.mark.prefect, pytest.mark.slow, pytest.mark.timeout(600)]

# Runs batches of a step as the flow's task does, several at once, and says when each item was worked on.
_WORKER = """
import json, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from corpus.catalogue import Catalogue
from corpus.stages import BaseStep, Item, Outcome, StageContext, pending
from flows import pipeline, slots
from models.settings import Limits

given = json.loads(sys.argv[1])
catalogue = Catalogue.open(given["catalogue"])
limits = Limits(processes_slot=given["slot"])
spans, guard = [], threading.Lock()


class Waiting(BaseStep):
    concurrency = given["concurrency"]

    def plan(self, ctx):
        return items

    def process(self, ctx, item):
        began = time.time()
        print("item", flush=True)
        time.sleep(given["seconds"])
        with guard:
            spans.append((began, time.time()))
        return Outcome()


items = [Item(f"item{n:02}", "f") for n in range(given["batches"] * 2)]
step = Waiting(name="made.up")
runtime = SimpleNamespace(
    step=lambda name: step, settings=SimpleNamespace(models=SimpleNamespace(limits=limits))
)
ends = time.time() + given["cancelled_after"]
context = StageContext(catalogue=catalogue, run_id="r", cancelled=lambda: time.time() > ends)
told = []
for size in given["ensure"]:
    slots.ensure_limit(limits.model_copy(update={"batches_at_once": size}), tell=told.append)


def work(number):
    try:
        pipeline._run_batch(runtime, context, "made.up", items[2 * number : 2 * number + 2])
        return ""
    except Exception as error:
        state = SimpleNamespace(result=lambda raise_on_failure: error)
        repeated = pipeline._is_transient(None, None, state)
        return [type(error).__name__, getattr(error, "reason", ""), str(error), repeated]


with ThreadPoolExecutor(2) as pool:
    errors = [error for error in pool.map(work, range(given["batches"])) if error]
left = [item.id for item in pending(step, context)]
print(json.dumps({"spans": spans, "errors": errors, "left": left, "told": told}), flush=True)
"""


@dataclass
class Worker:
    """A process that runs batches."""

    process: subprocess.Popen[str]

    def started(self) -> None:
        """Wait until it works on an item, so that it holds its slot."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("item")  # two threads may write one line

    def result(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=240)
        assert self.process.returncode == 0, err
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        found["stderr"] = err
        return found


def start(
    folder: Path,
    name: str,
    slot: str | None,
    *,
    api: str | None = None,
    ensure: Sequence[int] = (1,),
    **changes: Any,
) -> Worker:
    given = {
        "catalogue": f"sqlite:///{folder}/{name}.db",
        "slot": slot,
        "ensure": ensure,
        "concurrency": 4,
        "seconds": 0.2,
        "batches": 3,
        "cancelled_after": 10**6,
        **changes,
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HCHEM_", "PREFECT_"))}
    environment = {
        **kept,
        "PREFECT_API_URL": api or prefect_api(),
        "PREFECT_HOME": str(folder / name),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-c", _WORKER, json.dumps(given)]
    return Worker(
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


def most_at_once(spans: list[list[float]], size: int = 2) -> float:
    """Batches that were worked on at once, from the spans of their items (``size`` items to a batch)."""
    moments = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    now = most = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most / size


@pytest.fixture
def slot() -> str:
    return f"models-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("size", [1, 2])
def test_two_processes_never_hold_more_than_the_limit(tmp_path: Path, slot: str, size: int) -> None:
    workers = [start(tmp_path, name, slot, ensure=(size,)) for name in ("a", "b")]
    results = [worker.result() for worker in workers]
    assert [result["errors"] for result in results] == [[], []]
    spans = [span for result in results for span in result["spans"]]
    assert len(spans) == 12
    assert most_at_once(spans) <= size
    assert sum(len(result["told"]) for result in results) <= 1  # one of them made the limit
    assert all("failed to process item" not in result["stderr"] for result in results)


def test_without_the_setting_or_without_a_model_nothing_is_held(tmp_path: Path, slot: str) -> None:
    """Neither needs a server: there is none at this address."""
    nowhere = "http://127.0.0.1:1/api"
    workers = [
        start(tmp_path, "a", None, api=nowhere),
        start(tmp_path, "b", slot, api=nowhere, ensure=(), concurrency=1, seconds=0),
    ]
    for worker in workers:
        result = worker.result()
        assert (result["errors"], result["left"], len(result["spans"])) == ([], [], 6)


def test_a_missing_limit_is_named(tmp_path: Path, slot: str) -> None:
    result = start(tmp_path, "a", slot, ensure=(), batches=1).result()
    kind, reason, message, repeated = result["errors"][0]
    assert (kind, reason, repeated, result["spans"]) == ("SettingsError", "settings", False, [])
    assert f"models.limits.processes_slot = {slot!r}" in message
    assert "prefect gcl create" in message


def test_an_existing_limit_keeps_its_size_and_the_difference_is_told(tmp_path: Path, slot: str) -> None:
    made, other = start(tmp_path, "a", slot, ensure=(3, 3, 5), batches=0).result()["told"]
    assert made == f"Prefect concurrency limit {slot!r}: 3 batches at once over all processes"
    assert "has 3 slots" in other
    assert f"prefect gcl update {slot} --limit 5" in other


def test_who_waits_for_a_slot_stops_when_the_run_is_cancelled(tmp_path: Path, slot: str) -> None:
    holder = start(tmp_path, "a", slot, batches=1, seconds=200.0)
    holder.started()
    waiting = start(tmp_path, "b", slot, batches=1, cancelled_after=1.0).result()
    assert holder.process.poll() is None
    assert (waiting["spans"], waiting["errors"], len(waiting["left"])) == ([], [], 2)
    holder.process.kill()
    holder.process.communicate()


def test_a_server_that_goes_away_costs_no_work(tmp_path: Path, slot: str) -> None:
    doorway = Doorway(prefect_api())
    worker = start(tmp_path, "a", slot, api=doorway.url, batches=1, seconds=1.0)
    worker.started()
    doorway.close()
    result = worker.result()
    kind, reason, message, repeated = result["errors"][0]
    assert (kind, reason, repeated) == (
        "TransientError",
        "slot_lost",
        False,
    )  # what is done is not done again
    assert "went away while a slot" in message
    assert "the same command goes on" in message
    assert result["left"] == []  # all of the batch is done and recorded
    again = start(tmp_path, "b", slot, api=doorway.url, ensure=(), batches=1).result()
    kind, reason, message, repeated = again["errors"][0]
    assert (kind, reason, repeated, again["spans"]) == ("TransientError", "slots", True, [])
    assert "does not answer" in message


def test_settings_refuse_names_that_prefect_refuses() -> None:
    assert Limits(processes_slot="models").processes_slot == "models"
    assert ModelSettings().limits.processes_slot is None
    for name in ("", "a/b", "a%b", 'a"b'):
        with pytest.raises(ValueError, match="processes_slot"):
            Limits(processes_slot=name)

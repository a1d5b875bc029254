"""Score → refine → extract on a server that fails every fifth call: nothing lost, nothing twice, nothing paid again."""

from __future__ import annotations

import copy
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers
from corpus.catalogue.tables import Assertion, Document, Failure, LedgerRow
from corpus.stages import StageContext, pending
from models import Models
from tests.conftest import REPOSITORY
from tests.flows import faulty_corpus as made_up
from tests.servers.model_server import Fault, ModelServer, Reply, Request

_COUNT = 300  # each kind of fault comes more than a dozen times; more documents would only take longer
_SHARE = 0.2
_TRANSIENT: tuple[Fault, ...] = (
    Fault(status=429, retry_after="0"),
    Fault(status=500),
    Fault(status=503),
    Fault(kind="reset"),
    Fault(kind="cut"),
    Fault(kind="not_json"),
)


def _bad_answers(right: dict[str, Any], skill: str) -> list[Reply]:
    """What a model gets wrong, made from the right answer; each must be refused."""
    text = json.dumps(right, ensure_ascii=False)
    hallucinated = copy.deepcopy(right)
    if skill == "score_document":
        hallucinated["score"] = 7.25
    elif skill == "refine_window":
        hallucinated["pieces"][-1]["text"] = re.sub(
            r"(\d) (?=[℃°])", r"\g<1>7 ", hallucinated["pieces"][-1]["text"]
        )
    else:
        for item in hallucinated["assertions"]:
            item["object"] = re.sub(r"\d", "9", item["object"]) + "9"
            item["quote"] = item["quote"] + " 999 ℃"
    return [
        Reply(text[: len(text) // 2]),  # malformed
        Reply(""),
        Reply("I am sorry, I cannot answer in JSON."),
        Reply('{"wrong": "schema", "score": "high"}'),
        Reply(text[: len(text) // 2], finish_reason="length"),
        Reply(json.dumps(hallucinated, ensure_ascii=False)),
    ]


class Faulty:
    """Gives right answers but for a seeded share; counts what it gave, by skill and document."""

    def __init__(
        self, right: dict[tuple[str, str], dict[str, Any]], share: float, *, transient: bool
    ) -> None:
        self.right = right
        self.share = share
        self.transient = transient
        self.answered: Counter[tuple[str, str]] = Counter()
        self.asked: Counter[tuple[str, str]] = Counter()
        self._random = random.Random(7)
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply | Fault:
        key = (made_up.skill_of(request), made_up.document_of(request))
        with self._lock:
            self.asked[key] += 1
            if self._random.random() < self.share:
                bad = [] if self.transient else _bad_answers(self.right[key], key[0])
                return self._random.choice([*_TRANSIENT, *bad])
            self.answered[key] += 1
        return Reply(json.dumps(self.right[key], ensure_ascii=False))


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """The right answers: what the rules say."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('right')}/c.db")
    made_up.fill(catalogue, _COUNT)
    models = made_up.Recording()
    reports = made_up.run(catalogue, models, "right")
    assert [report.states["kept"] for report in reports.values()] == [_COUNT] * 3
    return models.right


def _models(catalogue: Catalogue, server: ModelServer, run_id: str, retries: int = 1) -> Models:
    return Models(
        made_up.settings(server.base_url, retries=retries), answers=CatalogueAnswers(catalogue, run_id)
    )


def _ledger(catalogue: Catalogue) -> dict[str, dict[str, tuple[str, str]]]:
    found: dict[str, dict[str, tuple[str, str]]] = {step: {} for step in made_up.STEPS}
    with catalogue.reading() as session:
        for row in session.scalars(select(LedgerRow)):
            found[row.step][row.item_id] = (row.state, row.detail)
    return found


def _results(catalogue: Catalogue) -> tuple[list[Any], list[Any]]:
    """Everything that the steps made, in order."""
    documents = select(
        Document.document_id, Document.score, Document.state, Document.text, Document.version_id
    ).order_by(Document.document_id)
    assertions = select(
        Assertion.assertion_id, Assertion.document_id, Assertion.state, Assertion.quote, Assertion.value
    ).order_by(Assertion.assertion_id)
    with catalogue.reading() as session:
        return [tuple(row) for row in session.execute(documents)], [
            tuple(row) for row in session.execute(assertions)
        ]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_hundreds_of_documents_on_a_server_that_fails_every_fifth_call(
    right: dict[tuple[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    made_up.fill(catalogue, _COUNT)
    script = Faulty(right, _SHARE, transient=False)
    with ModelServer(script) as server:
        reports = made_up.run(catalogue, _models(catalogue, server, "first"), "first")
        first = script.asked.total()
        needed = len(script.asked)
        assert needed > 2.8 * _COUNT
        assert first <= 1.3 * needed, f"{first} calls for {needed} questions"

        ledger = _ledger(catalogue)
        for step, report in reports.items():
            assert sum(report.states.values()) == len(ledger[step])
            assert {state for state, _ in ledger[step].values()} <= {"kept", "rejected", "failed"}
        failed = {
            (step, item): detail
            for step, items in ledger.items()
            for item, (state, detail) in items.items()
            if state == "failed"
        }
        with catalogue.reading() as session:
            recorded = {
                (row.step, row.item_id)
                for row in session.scalars(select(Failure))
                if row.resolved_run is None
            }
        assert recorded == set(failed)
        transient = {key for key, detail in failed.items() if detail.startswith("transient")}
        assert transient, "with one repeat some items must have failed for now"

        # Nothing twice: a right answer is asked for again only where its item failed before it was read.
        assert max(script.answered.values()) == 1

        # The next run asks only what failed for now, and for what could not be asked without it.
        before = Counter(script.asked)
        script.share = 0.0
        made_up.run(catalogue, _models(catalogue, server, "second"), "second")
        again = {key[1] for key in script.asked - before}
        assert again == {item.removeprefix("doc") for _, item in transient}
        assert max(script.answered.values()) == 1

        # The third has nothing to ask.
        before = Counter(script.asked)
        third = made_up.run(catalogue, _models(catalogue, server, "third"), "third")
        assert script.asked == before
        assert all(not report.states for report in third.values())

    documents, assertions = _results(catalogue)
    assert len({row[0] for row in documents}) == _COUNT
    assert len({row[0] for row in assertions}) == len(assertions)
    ledger = _ledger(catalogue)
    scored = {item for item, (state, _) in ledger["curate.score"].items() if state == "kept"}
    assert set(ledger["curate.refine"]) == scored
    for document_id, score, _, text, _ in documents:
        number = document_id.removeprefix("doc")
        if score is not None:
            assert score == right["score_document", number]["score"]
        if text:
            assert _quantities(text) == _quantities(made_up.sheet(int(number)))
    for _, document_id, state, quote, _ in assertions:
        if state == "kept":
            assert quote in made_up.sheet(int(document_id.removeprefix("doc")))


def _quantities(text: str) -> list[str]:
    return re.findall(r"-?\d+(?:\.\d+)?\s*(?:℃|°C)", text)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_killed_at_any_moment_only_calls_in_flight_are_lost(
    right: dict[tuple[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    catalogue = Catalogue.open(url)
    made_up.fill(catalogue, 200)
    script = Faulty(right, _SHARE, transient=True)
    kills = 0
    with ModelServer(script) as server:
        for goal in (30, 150, 230, 420, 560):  # calls after which the process is killed: in each of the steps
            child = _start(url, server.base_url)
            _wait(script, goal, child)
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                kills += 1
            child.wait()
        done = _start(url, server.base_url)
        assert done.wait(900) == 0
        assert kills >= 4
        twice = sum(count - 1 for count in script.answered.values())
        assert twice <= kills * made_up.CONCURRENCY
        models = _models(catalogue, server, "after")
        for step in made_up.steps(models):
            assert pending(step, StageContext(catalogue=catalogue, run_id="after")) == []
    ledger = _ledger(catalogue)
    assert all(state == "kept" for items in ledger.values() for state, _ in items.values())
    assert [len(items) for items in ledger.values()] == [200] * 3

    undisturbed = Catalogue.open(f"sqlite:///{tmp_path}/other.db")
    made_up.fill(undisturbed, 200)
    with ModelServer(Faulty(right, 0.0, transient=True)) as server:
        made_up.run(undisturbed, _models(undisturbed, server, "one"), "one")
    assert _results(catalogue) == _results(undisturbed)


def _start(url: str, base_url: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.flows.faulty_corpus", url, base_url, "8"]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait(script: Faulty, goal: int, child: subprocess.Popen[bytes]) -> None:
    """Until so many calls were made, or the process ended."""
    deadline = time.monotonic() + 600.0
    while script.asked.total() < goal and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)

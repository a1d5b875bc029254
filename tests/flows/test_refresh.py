"""The main job end to end, as a newcomer runs it."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.flows.conftest import Command

pytestmark = [pytest.mark.prefect, pytest.mark.slow, pytest.mark.timeout(2400)]

Whole = tuple[Command, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def exported(whole: Whole) -> dict[str, bytes]:
    """The data set of the default run."""
    return whole[0].export("exported")


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _task_runs(api: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while page := _post(f"{api}/task_runs/filter", {"limit": 200, "offset": len(found)}):
        found += page
    return found


def test_the_default_run_reaches_what_is_promised(whole: Whole) -> None:
    command, _ = whole
    status = command.status()
    assert status["pages"] >= 80
    assert status["documents"]["kept"] >= 25
    assert status["assertions"] >= 300
    assert min(status["graph"]["nodes"], status["graph"]["relationships"]) > 0
    assert sum(status["questions"].values()) >= 200
    assert all(
        status["questions"][kind] > 0 for kind in ("single_hop", "multi_hop", "aggregative", "boolean")
    )
    assert {"fixed", "sentence", "semantic", "qchunker", "hichunk"} <= set(status["chunks"])
    assert status["models"]["calls"] == 0
    assert status["last_run"]["state"] == "completed"


def test_single_hop_questions_in_both_languages(exported: dict[str, bytes]) -> None:
    rows = [json.loads(line) for line in exported["qa.jsonl"].splitlines()]
    for language in ("zh", "en"):
        assert sum(r["kind"] == "single_hop" and r["language"] == language for r in rows) >= 20


def test_the_terminal_shows_summary_report_and_no_traceback(whole: Whole) -> None:
    _, finished = whole
    for word in (
        "Knowledge base",
        "documents kept",
        "time per stage",
        "report:",
        "Prefect: http://127.0.0.1",
    ):
        assert word in finished.stdout
    assert "Traceback" not in finished.stdout + finished.stderr
    assert "curate.clean" in finished.stderr


def test_every_task_run_is_recorded_before_the_command_returns(whole: Whole) -> None:
    command, finished = whole
    found = re.search(r"\((\d+) of (\d+) task runs recorded\)", finished.stdout)
    assert found is not None
    assert found[1] == found[2]
    runs = _task_runs(command.status()["prefect"] + "/api")
    assert len(runs) == int(found[2])
    assert {run["state_type"] for run in runs} == {"COMPLETED"}


def test_artifacts_stand_on_the_server(whole: Whole) -> None:
    command, _ = whole
    artifacts = _post(command.status()["prefect"] + "/api/artifacts/latest/filter", {"limit": 200})
    keys = {row["key"] for row in artifacts}
    assert {"run-summary", "run-report", "stage-curate", "stage-evaluate", "progress-curate-clean"} <= keys


def test_every_sample_page_ends_with_an_outcome_that_fits(whole: Whole) -> None:
    command, _ = whole
    expected = {
        f"sample:{row['url_path']}": row["expected"]
        for row in map(json.loads, (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines())
    }
    from corpus.catalogue import Catalogue
    from corpus.catalogue.tables import Document, Page

    catalogue = Catalogue.open(f"sqlite:///{command.data_dir}/catalogue.db")
    with catalogue.reading() as db:
        pages = {row.identity: row for row in db.query(Page)}
        documents = {row.identity: row for row in db.query(Document).filter(Document.kind != "reference")}
    catalogue.close()
    wrong = []
    for identity, wanted in expected.items():
        page, document = pages.get(identity), documents.get(identity)
        if page is None:
            wrong.append(f"{identity}: never seen")
        elif document is None and page.state == "kept":
            wrong.append(f"{identity}: fetched, but no document row")
        elif document is not None and document.state != "kept" and not document.reason:
            wrong.append(f"{identity}: {document.state} without a reason")
        elif document is not None and wanted == "not-kept" and document.state == "kept":
            wrong.append(f"{identity}: kept (score {document.score})")
    assert wrong == []


def test_a_second_refresh_changes_nothing(whole: Whole, exported: dict[str, bytes]) -> None:
    command, _ = whole
    before = command.status()
    finished = command.run("refresh")
    after = command.status()
    same = ("pages", "documents", "assertions", "graph", "questions", "chunks", "models", "failures")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert set(after["last_run"]["changed"]) <= {"acquire.crawl"}
    assert "Nothing had changed" in finished.stdout
    assert command.export("after") == exported
    assert 'id="unchanged"' in (command.data_dir / "reports" / "report.html").read_text(encoding="utf-8")


def test_no_request_leaves_loopback(whole: Whole) -> None:
    command, _ = whole
    assert command.outside_addresses() == ""


def test_no_secret_and_no_absolute_path_in_the_export(whole: Whole, exported: dict[str, bytes]) -> None:
    command, _ = whole
    for name, data in exported.items():
        assert str(command.data_dir).encode() not in data, name
        assert b"127.0.0.1" not in data, name


@pytest.mark.parametrize(
    ("question", "expected"),
    [("甲苯的闪点是多少？", "4"), ("What is the flash point of acetone?", "-20|−20|-18|-17")],
)
def test_ask_answers_with_exact_citations(whole: Whole, question: str, expected: str) -> None:
    command, _ = whole
    answer = json.loads(command.run("ask", question, "--json").stdout)
    assert re.search(expected, answer["answer"])
    assert answer["citations"]
    assert all(c["quote"] and c["end"] > c["start"] for c in answer["citations"])


def test_trace_leads_from_a_question_to_its_page(whole: Whole, exported: dict[str, bytes]) -> None:
    command, _ = whole
    row = json.loads(exported["qa.jsonl"].splitlines()[0])
    traces = json.loads(command.run("trace", row["id"], "--json").stdout)
    assert all(trace["url"] and trace["archive"] and trace["assertions"] for trace in traces)

"""What is posted to the webhook, over a real connection: signature, repeats, and that it never ends a run."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corpus.catalogue.tables import Run
from corpus.errors import SettingsError, TerminalError
from flows import execution, webhook
from flows.freshness import ages
from flows.parameters import RefreshParameters
from flows.runtime import open_runtime
from flows.settings import Settings, load_settings
from tests.flows.gate_world import crawl, documents, run, settings

_KEY = "钥匙-key"


class Receiver:
    """A server that keeps what is posted and answers as told (200 when nothing is left to tell)."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((dict(self.headers.items()), body))
                status = receiver.answers.pop(0) if receiver.answers else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook?token=very-secret"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.posts]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.close()


def _with_hook(tmp_path: Path, url: str, **flows: Any) -> Settings:
    return settings(tmp_path, flows={"webhook": url, **flows})


def test_a_failed_gate_and_the_failed_run_are_posted_and_signed(tmp_path: Path, receiver: Receiver) -> None:
    s = _with_hook(tmp_path, receiver.url, webhook_secret=_KEY)
    run(s, "1", "curate", documents(甲=100))
    assert receiver.posts == []
    run(s, "2", "curate", documents(甲=50))
    gate, failed = receiver.bodies()
    assert gate["event"] == "hchem.gate.failed"
    assert gate["gates"][0] == {
        "name": "documents_drop", "scope": "", "stage": "curate", "value": 50, "limit": 0.2, "baseline": 100,
    }  # fmt: skip
    assert (failed["event"], failed["run"]["run_id"], failed["run"]["state"]) == (
        "hchem.run.failed",
        "2",
        "failed",
    )
    assert failed["error"] == {"type": "GateError", "reason": "gate", "step": "curate"}
    for headers, body in receiver.posts:
        expected = hmac.new(_KEY.encode(), body, hashlib.sha256).hexdigest()
        assert headers["X-HChem-Signature-256"] == f"sha256={expected}"
        assert headers["X-HChem-Event"] == json.loads(body)["event"]


def test_no_text_of_an_error_is_posted(tmp_path: Path, receiver: Receiver) -> None:
    s = _with_hook(tmp_path, receiver.url)
    with (
        open_runtime(settings=s, run_id="1") as runtime,
        pytest.raises(TerminalError),
        execution.session(runtime, "refresh", RefreshParameters()),
    ):
        raise TerminalError("words of a page: 闪点 sk-12345678", reason="odd", step="curate.clean")
    (headers, body), *more = receiver.posts
    assert more == []
    assert json.loads(body)["error"] == {"type": "TerminalError", "reason": "odd", "step": "curate.clean"}
    assert "X-HChem-Signature-256" not in headers
    for word in ("闪点", "sk-1234", "very-secret"):
        assert word not in body.decode()


def test_a_run_that_a_person_stops_is_not_posted(tmp_path: Path, receiver: Receiver) -> None:
    s = _with_hook(tmp_path, receiver.url)
    with (
        open_runtime(settings=s, run_id="1") as runtime,
        pytest.raises(KeyboardInterrupt),
        execution.session(runtime, "refresh", RefreshParameters()),
    ):
        raise KeyboardInterrupt
    assert receiver.posts == []


def test_stale_sources_are_posted_by_a_run_that_crawled(tmp_path: Path, receiver: Receiver) -> None:
    s = _with_hook(tmp_path, receiver.url)
    run(s, "1", "acquire", crawl("sample", "1", {}, "failed", "unreachable"))
    assert [body["event"] for body in receiver.bodies()] == [
        "hchem.gate.failed", "hchem.run.failed", "hchem.source.stale"
    ]  # fmt: skip
    assert [row["source"] for row in receiver.bodies()[-1]["sources"]] == ["sample"]
    with open_runtime(settings=s) as runtime:
        webhook.sources_stale(s.flows, [age for age in ages(runtime.catalogue, s) if not age.stale])
    assert len(receiver.posts) == 3  # nothing stale, nothing said


def test_a_new_version_of_the_data_set_is_posted_once(tmp_path: Path, receiver: Receiver) -> None:
    s = _with_hook(tmp_path, receiver.url)
    for run_id in ("1", "2"):
        with (
            open_runtime(settings=s, run_id=run_id) as runtime,
            execution.session(runtime, "refresh", RefreshParameters()) as current,
        ):
            current.stages["questions"] = {"seconds": 0.0, "steps": {}}
            version = execution.take_version(current)
    assert version is not None
    (body,) = receiver.bodies()
    assert (body["event"], body["run"]["run_id"], body["version"]["id"]) == (
        "hchem.dataset.version",
        "1",
        version.id,
    )


@pytest.mark.parametrize(
    ("answers", "posts", "warned"),
    [([503, 429], 3, False), ([500, 500, 500], 3, True), ([404], 1, True), ([302], 1, True)],
)
def test_what_may_pass_is_repeated(
    receiver: Receiver, answers: list[int], posts: int, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.answers = list(answers)
    webhook.announce(Settings(flows={"webhook": receiver.url}).flows, webhook.RUN_FAILED, {"run": {}})
    assert len(receiver.posts) == posts
    assert len({headers["X-HChem-Delivery"] for headers, _ in receiver.posts}) == 1
    said = capsys.readouterr()
    assert ("the webhook was not reached" in said.out + said.err) == warned
    assert "very-secret" not in said.out + said.err


def test_a_dead_webhook_does_not_end_a_run(tmp_path: Path, receiver: Receiver) -> None:
    receiver.close()
    s = _with_hook(tmp_path, receiver.url)
    with (
        open_runtime(settings=s, run_id="1") as runtime,
        execution.session(runtime, "refresh", RefreshParameters()) as current,
    ):
        current.stages["questions"] = {"seconds": 0.0, "steps": {}}
        assert execution.take_version(current) is not None
    with open_runtime(settings=s) as runtime, runtime.catalogue.reading() as db:
        row = db.get_one(Run, "1")
        assert row.state == "completed"
        assert "very-secret" not in json.dumps(row.settings)


def test_the_address_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCHEM_FLOWS__WEBHOOK", "ftp://user:geheim@host/x")
    with pytest.raises(SettingsError, match="http or https") as refused:
        load_settings()
    assert "geheim" not in str(refused.value)
    monkeypatch.delenv("HCHEM_FLOWS__WEBHOOK")
    file = tmp_path / "hchem.toml"
    file.write_text('[flows]\nwebhook = "http://127.0.0.1/geheim"\n', encoding="utf-8")
    monkeypatch.setenv("HCHEM_CONFIG", str(file))
    with pytest.raises(SettingsError, match="HCHEM_FLOWS__WEBHOOK") as refused:
        load_settings()
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "]
)
def test_an_answer_without_end_holds_nothing_up(
    tmp_path: Path, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_WHOLE_S", 3.0)
    stop = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while not stop.wait(0.2):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        settings = _with_hook(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}/drip")
        began = time.monotonic()
        webhook.announce(settings.flows, webhook.RUN_FAILED, {"run": {}})
        took = time.monotonic() - began
        stop.set()
    assert took < 60  # not for the 200 million seconds that the answer would take

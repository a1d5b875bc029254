"""The log of calls: what a line holds, that no secret ever stands in one, and the file it is written to."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from models import Message, Models, ModelSettings
from models.client.call import Call, Reply
from models.client.record import RecordLayer, RollingFile, lines, without_secrets
from models.errors import AnswerRejected, ModelError
from models.settings import CallLog, Limits, ResolvedModel, StoredKey
from tests.conftest import REPOSITORY, SAMPLES
from tests.models.skills import MemoryAnswers, Score, ScoreDocument
from tests.servers.model_server import Answer, Fault, ModelServer
from tests.servers.model_server import Reply as ServerReply

KEY = "sk-planted-0123456789abcdef"
ODD = 'pa"ss\\wörd 钥匙'  # a key that JSON would escape
LEVELS: tuple[CallLog, ...] = ("usage", "full")


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def kept() -> Iterator[list[str]]:
    """What the logger of calls is given."""
    handler = Kept()
    lines.addHandler(handler)
    yield handler.lines
    lines.removeHandler(handler)


def models_for(server: ModelServer, path: Path | None, level: CallLog = "usage", **changes: Any) -> Models:
    limits = Limits(retries=2, pause_s=0.01)
    values = {"base_url": server.base_url, "model": "m", "api_key": None, "limits": limits, "log": level}
    settings = ModelSettings.model_validate({**values, "log_file": path, **changes})
    return Models(settings, answers=MemoryAnswers())


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- what a line holds ------------------------------------------------------------


def test_a_line_per_call_with_its_figures(tmp_path: Path, kept: list[str]) -> None:
    path = tmp_path / "logs" / "models.jsonl"
    script = ServerReply('{"score": 4}', tokens_in=30, tokens_cached=10, tokens_out=5)
    with ModelServer(script) as server:
        models = models_for(server, path, price={"input": 1e6, "output": 1e6})
        models.run(ScoreDocument(), "苯的闪点")
        models.run(ScoreDocument(), "苯的闪点")
        models.close()
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
    first, second = rows(path)
    figures = ("skill", "model", "host", "draw", "finish_reason", "tokens_in", "tokens_cached", "tokens_out")
    assert [first[name] for name in figures] == ["score_document", "m", host, 0, "stop", 30, 10, 5]
    assert (first["cost"], first["from_store"], second["from_store"]) == (35.0, False, True)
    assert first["key"] == second["key"]
    assert first["time"] < second["time"]
    assert 0 < first["seconds"] < 60
    assert "苯" not in path.read_text(encoding="utf-8")
    assert [json.loads(line) for line in kept] == [first, second]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["苯的闪点为 -11 ℃", "The flash point of benzene is -11 °C"])
def test_full_adds_messages_and_the_raw_answer(tmp_path: Path, text: str) -> None:
    path = tmp_path / "models.jsonl"
    with ModelServer([{"score": 9}, {"score": 3}]) as server:
        models_for(server, path, "full").run(ScoreDocument(), text)
        sent = [request.messages for request in server.requests]
    found = rows(path)
    assert [row["messages"] for row in found] == sent
    assert text in found[0]["messages"][0]["content"]
    assert [row["raw"] for row in found] == ['{"score": 9}', '{"score": 3}']


def test_failures_and_repeats_stand_with_their_reason(tmp_path: Path) -> None:
    path = tmp_path / "models.jsonl"
    with ModelServer([Fault(status=503, message="overloaded"), Fault("reset"), {"score": 1}]) as server:
        models_for(server, path).run(ScoreDocument(), "abc")
    found = rows(path)
    assert [(row.get("repeat"), row.get("error")) for row in found] == [
        (True, "http_503"),
        (True, "reset"),
        (None, None),
    ]
    assert "overloaded" in found[0]["message"]
    assert len({row["key"] for row in found}) == 1
    path.unlink()
    with ModelServer(Fault(status=400, message="no such parameter")) as server, pytest.raises(ModelError):
        models_for(server, path).run(ScoreDocument(), "abc")
    assert [row["error"] for row in rows(path)] == ["bad_request"]
    path.unlink()
    with ModelServer(ServerReply(None, refusal="I cannot")) as server, pytest.raises(AnswerRejected):
        models_for(server, path).run(ScoreDocument(), "abc")
    assert rows(path)[0]["refusal"] == "I cannot"


def test_off_writes_nothing(tmp_path: Path, kept: list[str]) -> None:
    path = tmp_path / "logs" / "models.jsonl"
    with ModelServer([Fault(status=500), {"score": 1}]) as server:
        models_for(server, path, "off").run(ScoreDocument(), "abc")
    assert kept == []
    assert not path.parent.exists()


def test_lines_do_not_reach_other_logs(tmp_path: Path, kept: list[str]) -> None:
    """Prefect listens to the logger ``hchem``: prompts must not go to its server."""
    above = Kept()
    others = [logging.getLogger(name) for name in ("hchem", "hchem.models", None)]
    for logger in others:
        logger.addHandler(above)
    try:
        with ModelServer({"score": 1}) as server:
            models_for(server, tmp_path / "m.jsonl", "full").run(ScoreDocument(), "the text of a page")
    finally:
        for logger in others:
            logger.removeHandler(above)
    assert "the text of a page" in kept[0]
    assert not any("the text of a page" in line for line in above.lines)


# --- secrets ----------------------------------------------------------------------

PLANTED: dict[str, tuple[Answer, str]] = {
    "error text": (Fault(status=401, message=f"Incorrect API key provided: {KEY}."), "abc"),
    "header in an error text": (
        Fault(status=400, message=f"bad header 'Authorization: Bearer {KEY}' in request"),
        "abc",
    ),
    "error of a repeat": (
        Fault(status=503, message=f"upstream https://u:{KEY}@host/?key={KEY} failed"),
        "abc",
    ),
    "page text": ({"score": 1}, f"苯。配置文件里有 {KEY}，请勿外传。"),
    "answer": ({"score": 9, "note": f"the key is {KEY}"}, "abc"),
    "refusal": (ServerReply(None, refusal=f"I will not repeat {KEY}"), "abc"),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("place", PLANTED)
def test_no_key_in_any_line(place: str, level: CallLog, tmp_path: Path, kept: list[str]) -> None:
    script, text = PLANTED[place]
    path = tmp_path / "models.jsonl"
    with ModelServer(script) as server:
        models = models_for(server, path, level, api_key=SecretStr(KEY))
        with contextlib.suppress(ModelError):
            models.run(ScoreDocument(), text)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    written = path.read_text(encoding="utf-8") + "\n".join(kept)
    assert written.count("score_document") >= 2
    assert KEY not in written
    assert KEY[3:] not in written


@pytest.mark.parametrize("level", LEVELS)
def test_a_page_s_key_goes_even_where_it_is_not_ours(level: CallLog, tmp_path: Path) -> None:
    path = tmp_path / "models.jsonl"
    with ModelServer({"score": 1}) as server:
        models_for(server, path, level).run(ScoreDocument(), f"Set OPENAI_API_KEY to {KEY} and go on.")
    written = path.read_text(encoding="utf-8")
    assert KEY not in written
    assert ("Set OPENAI_API_KEY to *** and go on." in written) is (level == "full")


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_of_an_address_but_host_and_port(level: CallLog, tmp_path: Path) -> None:
    """Settings refuse such addresses; a layer that is given one keeps it out all the same."""
    path = tmp_path / "models.jsonl"
    url = f"https://login:{KEY}@models.example:8443/v1?api-key=query-secret-77&key=other-secret-88"
    model = ResolvedModel(url, "m", None, 0.0, None, 10, 5.0, 1, None)
    settings = ModelSettings(log=level, log_file=path, api_key=None)

    def failing(call: Call) -> Reply:
        raise ModelError(f"{call.model.base_url}: no answer", reason="timeout")

    with pytest.raises(ModelError):
        RecordLayer(failing, settings)(Call("s", "1", (Message("user", "x"),), model, Score))
    row = rows(path)[0]
    assert row["host"] == "models.example:8443"
    written = path.read_text(encoding="utf-8")
    assert not any(secret in written for secret in (KEY, "query-secret-77", "other-secret-88", "login"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("key", [ODD, "0123456789", "aa.bb/cc+dd=="])
def test_a_known_key_of_any_form_goes(level: CallLog, key: str, tmp_path: Path) -> None:
    path = tmp_path / "models.jsonl"
    settings = ModelSettings.model_validate(
        {"log": level, "log_file": path, "api_key": None, "skills": {"list_facts": {"api_key": key}}}
    )
    stored = StoredKey("block")
    stored.read = lambda block, setting: "from-a-block-4711"
    model = ResolvedModel("http://127.0.0.1:9/v1", "m", stored, 0.0, None, 10, 5.0, 1, None)
    reply = Reply(f'{{"note": "{key}"}} from-a-block-4711', refusal=f"{key} from-a-block-4711")
    layer = RecordLayer(lambda call: reply, settings)
    layer(Call("s", "1", (Message("user", f"before {key} after"),), model, Score))
    unread = rows(path)[0]  # nothing reads a block for the sake of the log
    assert "from-a-block-4711" in unread["refusal"]
    assert stored.get_secret_value() == "from-a-block-4711"
    layer(Call("s", "1", (Message("user", "x"),), model, Score))
    found = rows(path)
    for text in (found[0]["refusal"], found[1]["refusal"], json.dumps(found[1], ensure_ascii=False)):
        assert key not in text
    assert "from-a-block-4711" not in json.dumps(found[1])


around = st.text(max_size=20)


@given(around, around, st.text("abcdefABCDEF0123456789_-", min_size=8, max_size=40))
def test_a_known_key_goes_wherever_it_stands(before: str, after: str, key: str) -> None:
    assert key not in without_secrets(f"{before}{key}{after}", [key]).replace("***", " ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"key {KEY}!", "key ***!"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer ***"),
        ('{"Authorization": "Basic dXNlcjpwYXNz"}', '{"Authorization": "Basic ***"}'),
        ("api_key=abcdef123456&x=1", "api_key=***&x=1"),
        ("https://h/v1?api-key=abcdef123456", "https://h/v1?api-key=***"),
        ("https://h/v1?x=1&token=abcdef123456#y", "https://h/v1?x=1&token=***"),
        ("postgresql://me:geheim@db/x", "postgresql://***@db/x"),
        ("AIza" + "A1b2" * 9, "***"),
        ("密钥：gsk_abcdefghijklmnop1234，完", "密钥：***，完"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "***"),
    ],
)
def test_what_looks_like_a_key_goes(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_ordinary_pages_stay_as_they_are() -> None:
    """No page of the sample site holds a key, so nothing may be starred there."""
    pages = [
        path for path in sorted((SAMPLES / "pages").rglob("*")) if path.suffix in (".html", ".md", ".txt")
    ]
    assert len(pages) > 60
    for path in pages:
        text = path.read_text("utf-8", "replace")
        assert without_secrets(text) == text, path
    for text in ("a risk-based, task-oriented approach", "Basic heterocyclic compounds", "会员 sk-II 产品"):
        assert without_secrets(text) == text


# --- the file -----------------------------------------------------------------------


def test_the_file_rolls_and_keeps_four_older_ones(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    file = RollingFile(path, 0.001)
    for number in range(100):
        file.append(f"{number:03} {'x' * 96}")
    file.close()
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["m.jsonl", "m.jsonl.1", "m.jsonl.2", "m.jsonl.3", "m.jsonl.4", "m.jsonl.lock"]
    kept = [
        line for n in (".4", ".3", ".2", ".1", "") for line in Path(f"{path}{n}").read_text().splitlines()
    ]
    assert [line[:3] for line in kept] == [f"{number:03}" for number in range(100 - len(kept), 100)]
    assert all(Path(f"{path}{n}").stat().st_size <= 1000 for n in ("", ".1", ".2", ".3", ".4"))


_WRITER = """
import sys, threading
from pathlib import Path
from models.client.record import RollingFile
name, path = sys.argv[1:]
file = RollingFile(Path(path), 0.02)
def write(thread):
    for number in range(150):
        file.append(f"{name}-{thread}-{number} " + "y" * 60)
threads = [threading.Thread(target=write, args=(t,)) for t in range(2)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


def test_two_processes_write_to_one_file_and_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    command = [sys.executable, "-c", _WRITER]
    writers = [subprocess.Popen([*command, name, str(path)], cwd=REPOSITORY) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    files = [p for p in tmp_path.iterdir() if p.suffix != ".lock"]
    assert 2 <= len(files) <= 5
    found = [line.split()[0] for p in files for line in p.read_text().splitlines()]
    assert sorted(found) == sorted(f"{n}-{t}-{i}" for n in "ab" for t in range(2) for i in range(150))


def test_a_file_that_cannot_be_written_stops_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    with ModelServer({"score": 1}) as server:
        models = models_for(server, tmp_path / "logs" / "models.jsonl")
        assert [models.run(ScoreDocument(), text).value.score for text in "ab"] == [1, 1]
    assert caplog.text.count("cannot be written") == 1


def test_a_file_that_was_taken_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    file = RollingFile(path, 1)
    file.append("one")
    path.rename(tmp_path / "moved")
    file.append("two")
    assert (path.read_text(), (tmp_path / "moved").read_text()) == ("two\n", "one\n")
    path.unlink()
    threads = [threading.Thread(target=file.append, args=(f"{n}",)) for n in range(8)]
    _run_all(threads)
    assert sorted(path.read_text().split()) == sorted(map(str, range(8)))


def _run_all(threads: list[threading.Thread]) -> None:
    act: Callable[[threading.Thread], None]
    for act in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            act(thread)

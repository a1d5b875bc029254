from __future__ import annotations

import json
import os
import pty
import random
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flows.cli import build

PAGE = """<html><body><nav><a href=/>Home</a></nav><h1>Benzene</h1><p>Benzene is a colourless liquid; CAS 71-43-2,
flash point -11 °C. It is not miscible with water.</p><table><tr><td>熔点</td><td>5.5 ℃</td></tr></table></body></html>"""


def _run(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(build(["clean"]), ["clean", *arguments], input=given)


def test_formats(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(PAGE.encode("gb18030"))
    assert "熔点\t5.5 ℃" in _run(str(file)).stdout
    assert "# Benzene" in _run(str(file), "--format", "markdown").stdout
    assert "<h1>Benzene</h1>" in _run(str(file), "--format", "html").stdout
    shown = json.loads(_run(str(file), "--format", "json", "--url", "http://x.org/a").stdout)
    assert (shown["encoding"]["encoding"], shown["canonical_url"]) == ("gb18030", "http://x.org/a")
    assert "71-43-2" in _run("-", given=PAGE.encode()).stdout


def test_markdown_and_text_files(tmp_path: Path) -> None:
    file = tmp_path / "law.md"
    file.write_text("# 条例\n\n第一条　不得超量储存。\n", encoding="utf-8")
    assert "第一条" in _run(str(file)).stdout


@pytest.mark.parametrize("arguments", [("/no/such/file",), ("/",), (), ("-",), ("x", "--batch")])
def test_wrong_use_is_one_line_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert len(result.stderr.strip().split("\n")) == 1
    assert "Traceback" not in result.output


def test_batch_answers_every_line() -> None:
    lines = [
        json.dumps({"id": "a", "url": "http://x/y", "html": PAGE}),
        "garbage",
        "[]",
        json.dumps({"id": 3}),
        json.dumps({"id": 4, "html": ""}),
        json.dumps({"id": "b", "html": PAGE}),
    ]
    result = _run("--batch", given="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [answer["id"] for answer in answers] == ["a", None, None, 3, 4, "b"]
    assert "71-43-2" in answers[0]["text"] == answers[5]["text"]
    assert all(answer["error"] and answer["text"] == "" for answer in answers[1:5])


def test_binary_junk_is_an_error_and_its_verdict_can_be_recorded(tmp_path: Path) -> None:
    file = tmp_path / "random.bin"
    file.write_bytes(random.Random(1).randbytes(20_000))
    for form in ("text", "markdown", "html"):
        result = _run(str(file), "--format", form)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "binary content, no text" in result.stderr
    assert json.loads(_run(str(file), "--format", "json").stdout)["verdict"] == "review"
    kept = tmp_path / "record.json"
    result = _run(str(file), "--format", "json", "--output", str(kept))
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(kept.read_text(encoding="utf-8"))["reasons"] == ["replacement_characters"]
    assert _run(str(file), "--output", str(tmp_path / "no" / "x")).exit_code == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "iso2022_jp", "shift_jis", "gb18030", "big5"])
def test_text_in_any_encoding_is_no_junk(encoding: str) -> None:
    text = (
        "メタノールは有毒です。引火点は十一度です。\n"
        if "jp" in encoding or "jis" in encoding
        else "甲醇有毒，不得口服，遇明火高溫有危險。\n"
    )
    given = (text * 40).encode(encoding)
    result = _run("-", given=given)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, text.strip())


def test_a_terminal_gets_no_broken_characters_and_a_pipe_gets_the_text(tmp_path: Path) -> None:
    file = tmp_path / "damaged.txt"
    file.write_bytes("甲醇有毒，不得口服。\n".encode() * 60 + b"\xff\xfe\xff" * 3)
    piped = _run(str(file))
    assert piped.exit_code == 0
    assert "甲醇有毒" in piped.stdout
    assert "replacement_characters" in piped.stderr
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "flows.cli", "clean", str(file)]
    finished = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=120, check=False)
    os.set_blocking(ours, False)
    os.close(theirs)
    try:
        shown = os.read(ours, 65_536)
    except OSError:  # nothing was written to the terminal
        shown = b""
    os.close(ours)
    assert (finished.returncode, shown) == (2, b"")
    assert "the encoding is not understood: 9 characters" in finished.stderr.decode()

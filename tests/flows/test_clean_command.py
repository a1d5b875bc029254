from __future__ import annotations

import json
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

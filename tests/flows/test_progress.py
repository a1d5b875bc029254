"""What the terminal shows of steps at work and at their end."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from flows import console


def test_a_step_of_one_item_is_at_work_and_then_done(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, force_terminal=True, width=100))
    with console.ProgressDisplay() as display:
        display("graph.resolve", 0, 1)
        display("graph.extract", 2, 7)
        display._progress.refresh()
        display("graph.resolve", 1, 1)
        display("graph.extract", 7, 7)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert "0/1" not in plain
    assert re.search(r"graph\.resolve .* at work", plain)
    frame = plain[plain.rindex("graph.resolve") :]
    assert re.search(r"graph\.resolve .* done", frame)
    assert re.search(r"graph\.extract .* 7/7", frame)


def test_elsewhere_a_line_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with console.ProgressDisplay() as display:
        display("graph.resolve", 0, 1)
        display("graph.resolve", 1, 1)
        display("graph.extract", 0, 0)
    lines = capsys.readouterr().err.splitlines()
    assert [" ".join(line.split()[:3]) for line in lines[::2]] == [
        "graph.resolve at work",
        "graph.extract nothing to",
    ]
    assert "1/1" in lines[1]

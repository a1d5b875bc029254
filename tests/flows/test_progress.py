"""What the terminal shows of steps at work and at their end."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

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


def _piped(table: Table, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = io.StringIO()
    console._Console(file=shown, highlight=False).print(table)
    return shown.getvalue().splitlines()


def test_a_table_in_a_pipe_is_a_line_per_row_and_not_as_wide_as_its_widest_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(title="run 1", caption="2 of 2")
    for heading in ("step", "to do", "reasons", "seconds"):
        table.add_column(heading, justify="right" if heading == "to do" else "left")
    long = ", ".join(f"reason_{number} {number}" for number in range(60))
    table.add_row("curate.clean", "5", "质量分过低 1", "0.3")
    table.add_row("图谱", "12", long, "1.0")
    table.add_row("[bold]a[/bold]", "", Text("[kept]\nhere"), "")
    assert _piped(table, monkeypatch) == [
        "run 1",
        "step          to do  reasons                       seconds",
        "curate.clean      5  质量分过低 1                  0.3",
        f"图谱             12  {long}  1.0",
        "a                    [kept] here",
        "2 of 2",
    ]


def test_columns_ask_for_a_drawn_table_of_that_width(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("step", "reasons")
    table.add_row("curate.clean", "质量分过低 " * 20)
    shown = io.StringIO()
    monkeypatch.setenv("COLUMNS", "40")
    console._Console(file=shown, highlight=False).print(table)
    lines = shown.getvalue().splitlines()
    assert "┃" in lines[1]
    assert {cell_len(line) for line in lines} == {40}

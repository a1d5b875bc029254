"""What the terminal shows during and after a run."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from corpus.catalogue import Catalogue
from flows import summary

_PIPED_WIDTH = 4000  # what reads a pipe has no margin at which tables would have to be cut
_ALIGNED = (
    28  # cells of a column that is wider are not all padded to its widest, where no terminal shows them
)


class _Console(Console):
    """A console that breaks no sentence, and draws no table without being asked to, where no terminal shows them."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
        """As ``Console.print``; a line of text that a program reads stays one line, whatever ``COLUMNS`` says.

        A table is a line per row there, unless ``COLUMNS`` asks for one of that width.
        """
        if not self.is_terminal:
            if not _asked_width():
                objects = tuple(Text("\n".join(plain(o))) if isinstance(o, Table) else o for o in objects)
            if soft_wrap is None:
                soft_wrap = all(isinstance(shown, str | Text) for shown in objects)
        super().print(*objects, soft_wrap=soft_wrap, **how)

    @property
    def size(self) -> ConsoleDimensions:
        """Width and height in characters; ``COLUMNS`` counts everywhere."""
        known = super().size
        if width := _asked_width():
            return ConsoleDimensions(width, known.height)
        return known if self.is_terminal else ConsoleDimensions(_PIPED_WIDTH, known.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


def _asked_width() -> int:
    """Characters of a line as ``COLUMNS`` says; 0 where it says nothing."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdigit() else 0


def whole(table: Table, *headings: str) -> Table:
    """The table with these columns as wide as they are, and numbers never cut: what a person types or compares.

    Call it when the rows are in. The other columns fold where the terminal is narrow.
    """
    for column in table.columns:
        column.overflow = "fold"
        said = [_plain(cell) for cell in column.cells]
        if column.header in headings:
            parts = [line for cell in (_plain(column.header), *said) for line in cell.splitlines()]
        elif column.justify == "right":  # its heading may go over several lines
            parts = [*_plain(column.header).split(), *said]
        else:
            column.min_width = max(map(cell_len, _plain(column.header).split()), default=1)
            continue
        column.width = max(map(cell_len, parts), default=1)
    return table


def plain(table: Table) -> list[str]:
    """A table as lines without a frame: title, heads, a line per row, caption; columns are two spaces apart.

    Short columns are aligned. What is longer than a short column's width moves the rest of its own row
    only, so that one long cell does not fill every line with blanks.
    """
    heads = [_words(column.header) for column in table.columns]
    rows = [
        list(map(_words, cells)) for cells in zip(*(column.cells for column in table.columns), strict=True)
    ]
    if table.show_header and any(heads):
        rows.insert(0, heads)
    widths = [min(max(map(cell_len, cells)), _ALIGNED) for cells in zip(*rows, strict=True)]
    lines = [] if table.title is None else [_words(table.title)]
    for row in rows:
        cells = [
            " " * (width - cell_len(cell)) + cell
            if column.justify == "right"
            else cell + " " * (width - cell_len(cell))
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines if table.caption is None else [*lines, _words(table.caption)]


def _words(cell: RenderableType) -> str:
    """What a cell says, on one line."""
    return " ".join(_plain(cell).split())


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


out = _Console(highlight=False)
err = _Console(stderr=True, highlight=False)
_LINE_EVERY_S = 5.0


class _Count(MofNCompleteColumn):
    """Items done of all; a step of one item is at work or done, which "0/1" for minutes would not say."""

    def render(self, task: Task) -> Text:
        if task.total is None or task.total == 1:
            return Text("done" if task.finished else "at work", style="progress.download")
        return super().render(task)


class ProgressDisplay:
    """One bar per step on a terminal; a line per step and every five seconds elsewhere."""

    def __init__(self) -> None:
        self._live = err.is_terminal
        self._progress = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(),
            _Count(),
            TimeElapsedColumn(),
            console=err,
        )
        self._tasks: dict[str, TaskID] = {}
        self._began: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._finished: set[tuple[str, int]] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressDisplay:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` items of a step are through."""
        with self._lock:
            if self._live:
                if step not in self._tasks:
                    self._tasks[step] = self._progress.add_task(step, total=None)
                alone = total == 1 and done == 0  # without a total the bar moves
                self._progress.update(self._tasks[step], completed=done, total=None if alone else total)
                return
            if (step, total) in self._finished:
                return
            moment = time.monotonic()
            self._began.setdefault(step, moment)
            if total == 0:
                sys.stderr.write(f"{step:<24} nothing to do\n")
                self._finished.add((step, total))
            elif done >= total:
                self._finished.add((step, total))
                sys.stderr.write(f"{step:<24} {done}/{total}  {moment - self._began[step]:.1f} s\n")
            elif moment - self._last.get(step, moment - _LINE_EVERY_S) >= _LINE_EVERY_S:
                sys.stderr.write(f"{step:<24} {'at work' if total == 1 else f'{done}/{total}'}\n")
                self._last[step] = moment
            sys.stderr.flush()


def show_summary(
    catalogue: Catalogue, stages: dict[str, Any], settings: dict[str, Any] | None = None
) -> None:
    """Print the figures of the knowledge base and of this run; ``settings``: those of now, where they may have changed."""
    figures = summary.status(catalogue, settings)
    table = Table(title="Knowledge base", show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in summary.lines(figures, stages):
        table.add_row(label, text)
    out.print(table)
    show_evaluation(catalogue)
    if stages and summary.unchanged(stages) and not figures["absent"]:
        out.print("Nothing had changed since the last run; only the sources were asked again.")


def show_evaluation(catalogue: Catalogue, table_name: str = "main") -> None:
    """Print the evaluation table: one row per method, n and unit in the caption."""
    from chunking.evaluation.tables import HEADLINE

    metrics, rows = summary.evaluation_rows(catalogue, table_name)
    if not rows:
        return
    metrics = [metric for metric in HEADLINE if metric in metrics] or metrics[:6]
    n = next((row[metric].n for row in rows for metric in metrics if row[metric] is not None), 0)
    table = Table(
        title=f"Evaluation by chunking method (n = {n} questions; intervals in the report)",
        title_justify="left",
        box=None,
        padding=(0, 1),
        pad_edge=False,
    )
    table.add_column("method")
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for row in rows:
        cells = [_cell(row[metric]) for metric in metrics]
        table.add_row(row["method"], *cells)
    out.print(whole(table, "method"))


def _cell(figure: Any) -> str:
    if figure is None or figure.value is None:
        return "–"
    return f"{figure.value:.0f}" if abs(figure.value) >= 10 else f"{figure.value:.3f}"

"""Tables as grids: spans expanded, header found, empty columns out, rows as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from corpus.cleaning.layout import own_cells, own_rows
from corpus.cleaning.tags import Element, all_text

_NUMERIC = re.compile(r"^[<>≤≥~±≈]?\s*[-−–]?\d")
_MAX_COLUMNS = 1000  # as many as a cell may span (HTML standard)
_SHORT, _WHOLE = 40, 10_000
_MAX_CELLS = 2_000_000  # of one table with its spans expanded; beyond it cells stand once


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row: its cells' texts by column, and the row element."""

    cells: tuple[str, ...]
    element: Element
    header: bool


def grid(table: Element, text_of: Callable[[Element], str]) -> list[GridRow]:
    """Rows of a data table with spans expanded, without empty rows and columns.

    A cell over several rows is repeated in each, so that every row reads by itself. A
    cell over several columns is repeated where columns have names (header cells always,
    short values under a header row); elsewhere, as over the whole width (a section title
    inside the table), it stands once. ``text_of`` renders a cell.
    """
    rows = [(row, own_cells(row)) for row in own_rows(table)]
    width = max((sum(_span(cell, "colspan") for cell in cells) for _, cells in rows), default=0)
    width = min(width, _MAX_COLUMNS)
    budget = _MAX_CELLS
    hanging: dict[int, tuple[int, str]] = {}
    built: list[tuple[list[str], Element, bool]] = []
    headed = False
    rows.reverse()
    while rows:  # each let go once it is used: a large table has tens of thousands
        row, cells = rows.pop()
        if not cells and not hanging:
            continue
        header = _is_header(row, cells)
        headed = headed or (header and not built)
        repeated = _WHOLE if header else _SHORT if headed else 0
        line, hanging = _line(cells, hanging, width, text_of, repeated, spans=budget > 0)
        budget -= len(line)
        built.append((line, row, header))
    return _tidy(built)


def is_cut(main: Element) -> bool:
    """Whether a row has more cells than a grid has columns, so that the text lacks some."""
    return any(len(row) > _MAX_COLUMNS for row in main.iter("tr"))


def _line(
    cells: list[Element],
    hanging: dict[int, tuple[int, str]],
    width: int,
    text_of: Callable[[Element], str],
    repeated: int,
    *,
    spans: bool,
) -> tuple[list[str], dict[int, tuple[int, str]]]:
    line: list[str] = []
    if not spans:
        hanging = {}
    next_hanging = {column: (left - 1, text) for column, (left, text) in hanging.items() if left > 1}
    for cell in cells:
        while len(line) in hanging and len(line) < _MAX_COLUMNS:
            line.append(hanging[len(line)][1])
        if len(line) >= _MAX_COLUMNS:
            break
        text = text_of(cell)
        columns = min(_span(cell, "colspan"), _MAX_COLUMNS - len(line)) if spans else 1
        whole = len(cells) == 1 and columns >= max(2, width)
        rows = _span(cell, "rowspan") if spans else 1
        for offset in range(columns):
            shown = text if offset == 0 or (not whole and len(text) <= repeated) else ""
            if rows > 1:
                next_hanging[len(line)] = (rows - 1, shown)
            line.append(shown)
    while len(line) in hanging and len(line) < _MAX_COLUMNS:
        line.append(hanging[len(line)][1])
    return line, next_hanging


def _span(cell: Element, name: str) -> int:
    given = cell.get(name)
    if given is None:
        return 1
    value = given.strip()
    number = int(value[:6]) if value[:6].isascii() and value[:6].isdigit() else 1
    return max(1, min(number, _MAX_COLUMNS if name == "colspan" else 5000))


def _is_header(row: Element, cells: list[Element]) -> bool:
    parent = row.getparent()
    if parent is not None and parent.tag == "thead":
        return True
    filled = [cell for cell in cells if all_text(cell).strip()]
    if len(filled) < 2:
        return False
    return all(cell.tag == "th" or _all_bold(cell) for cell in filled)


def _all_bold(cell: Element) -> bool:
    """Whether all text of a cell is bold: how pages of the 1990s mark header cells."""
    if (cell.text or "").strip() or not len(cell):
        return False
    node: Element = cell
    while len(node) == 1 and not (node.text or "").strip() and not (node[0].tail or "").strip():
        node = node[0]
        if node.tag in {"b", "strong"}:
            return True
    return False


def _tidy(built: list[tuple[list[str], Element, bool]]) -> list[GridRow]:
    width = max((len(line) for line, _, _ in built), default=0)
    used = sorted({column for line, _, _ in built for column, text in enumerate(line) if text})
    if not used:
        return []
    if len(used) >= 3 and len(built) >= 3 and not built[0][2]:
        lines = [line for line, _, _ in built]
        built[0] = (*built[0][:2], _looks_like_header(lines))
    rows = []
    built.reverse()
    while built:
        line, element, header = built.pop()
        if any(line):
            padded = line + [""] * (width - len(line))
            rows.append(GridRow(tuple(padded[column] for column in used), element, header))
    return rows


def _looks_like_header(lines: list[list[str]]) -> bool:
    """Whether the first of at least three columns' rows names them: words above a column of numbers."""
    first, rest = lines[0], lines[1:]
    if not all(first) or any(_NUMERIC.match(text) or len(text) > 60 for text in first):
        return False
    for column in range(len(first)):
        values = [line[column] for line in rest if column < len(line) and line[column]]
        if len(values) >= 2 and sum(bool(_NUMERIC.match(value)) for value in values) >= 0.7 * len(values):
            return True
    return False


def pipe(cells: tuple[str, ...]) -> str:
    """A row of a Markdown table; bars inside cells are escaped."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def rule(width: int) -> str:
    """The line under a Markdown table's header."""
    return "| " + " | ".join(["---"] * width) + " |"

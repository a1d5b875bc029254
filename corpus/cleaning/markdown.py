"""A cleaned tree as Markdown and as plain text, with a map from blocks to elements.

Markdown has ``#`` headings, pipe tables with spans expanded, lists, fenced
preformatted text; emphasis and link targets are left out, since spans of this text
are quoted as evidence. Nothing recurses: pages nest hundreds of levels deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise
from typing import Any

from corpus.cleaning.cell_lines import on_a_line, settled_lines, unwrapped
from corpus.cleaning.layout import TableKinds, own_rows
from corpus.cleaning.measure import BLOCKS, HEADINGS, INVISIBLE, Outline
from corpus.cleaning.scripts import collapse, lowered, raised
from corpus.cleaning.tables import GridRow, grid, pipe, rule
from corpus.cleaning.tags import Element, all_text, name_set
from corpus.ids import normalise_text

_BREAK = "\x1e"
_MARKS = name_set("br img sub sup")
_HAZARD_ALT = re.compile(
    r"\bGHS|pictogram|corros|flamm|explos|oxidi[sz]|toxic|hazard|irritant|environment|NFPA|health|compressed gas"
    r"|腐蚀|易燃|爆炸|氧化|毒|危害|健康|环境|刺激|警告|象形|菱形",
    re.IGNORECASE,
)
# a picture of a sign is the sign: "<img alt='-'>94.7 °C" is below zero
_SIGN = {
    **{sign: sign for sign in "-−–+±≥≤<>=≈~×·°/%‰→⇌μµ"},
    "minus": "−",
    "plus": "+",
    "plus or minus": "±",
    "less than": "<",
    "greater than": ">",
    "less than or equal to": "≤",
    "greater than or equal to": "≥",
    "times": "×",
    "degree": "°",
    "负": "−",
    "小于": "<",
    "大于": ">",
    "小于等于": "≤",
    "大于等于": "≥",
}
_MATH = re.compile(r"^\{?\\(?:display|text)style\s*(.*?)\}?$", re.DOTALL)
_HEADING_LIKE_START = re.compile(r"^(#{1,6}\s)", re.MULTILINE)
_LABEL_END = re.compile(r"[:：;；=]$")
_HAN_END = re.compile(r"[\u3400-\u9fff）]$")
_ROMAN: tuple[tuple[int, str], ...] = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
)
_ROMAN += ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
_SECTION_TITLE = re.compile(
    r"^(?:第\s*[一二三四五六七八九十\d]{1,3}\s*(?:部分|章|节|節)|section\s*\d{1,2}|\d{1,2}\s*[.、．:：]\s*\D|[一二三四五六七八九十]{1,3}、)",
    re.IGNORECASE,
)
_MAX_NESTED = 3


@dataclass(slots=True)
class Piece:
    """One block: its Markdown, its plain text, its kind, where it came from.

    ``kind``: heading, paragraph, item, row, caption, definition, preformatted, quote.
    ``source`` is an element, or a path already known. ``tight``: no blank line before.
    """

    markdown: str
    plain: str
    kind: str
    source: Any
    tight: bool = False


@dataclass
class Rendered:
    """Markdown, plain text, and the blocks of the Markdown (offsets in code points)."""

    markdown: str
    plain: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    sources: list[Any] = field(default_factory=list)


def assemble(pieces: Iterable[Piece]) -> Rendered:
    """Join pieces: blank lines between blocks, none inside a table or list. NFC, LF."""
    parts, plain = StringIO(newline=""), StringIO(newline="")
    rendered = Rendered("", "")
    position = 0
    for piece in pieces:
        text = normalise_text(piece.markdown)
        gap = "" if not rendered.blocks else ("\n" if piece.tight else "\n\n")
        parts.write(gap + text)
        plain.write(gap + (text if piece.plain is piece.markdown else normalise_text(piece.plain)))
        start = position + len(gap)
        position = start + len(text)
        rendered.blocks.append({"start": start, "end": position, "path": "", "kind": piece.kind})
        rendered.sources.append(piece.source)
    # joining can compose across a border only where a block starts with a combining mark
    rendered.markdown, rendered.plain = parts.getvalue(), plain.getvalue()
    return rendered


def render(main: Element, outline: Outline | None = None) -> list[Piece]:
    """Pieces of a cleaned tree, in reading order. ``outline``: the tree's, where it is there already."""
    return _Renderer(TableKinds(), outline or Outline(main)).run(main)


def consumed(pieces: list[Piece]) -> Iterator[Piece]:
    """The pieces in order, each let go once it was used: a large page has a hundred thousand."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


def _cell_text(
    cell: Element,
    tables: TableKinds,
    outline: Outline,
    depth: int,
    nested: list[Element] | None = None,
) -> str:
    """A table cell: its lines by ``\\n``, list items and nested rows by semicolons, other blocks by blanks.

    Tables with a header inside the cell go to ``nested``, where given, to stand by themselves.
    """
    if outline.simple(cell):
        return collapse(all_text(cell))
    renderer = _Renderer(tables, outline, depth + 1)
    renderer.nested = nested
    pieces = renderer.run(cell)
    if not pieces:
        return _lone_alt(cell)
    text = _cells_on_a_line(pieces[0].plain)
    for before, piece in pairwise(pieces):
        listed = piece.kind in {"item", "row", "definition"} and before.kind == piece.kind
        text += ("; " if listed else " ") + _cells_on_a_line(piece.plain)
    return unwrapped(text) if "\n" in text else collapse(text)


def _cells_on_a_line(row: str) -> str:
    """A row inside a cell: its label, then its values."""
    label, tab, values = row.partition("\t")
    return label + (": " if tab else "") + values.replace("\t", ", ")


def _lone_alt(cell: Element) -> str:
    """Alternative texts of the pictures of a cell without text: a tick or pictogram is its content."""
    texts = [collapse(image.get("alt") or "") for image in cell.iter("img")]
    return ", ".join(text for text in texts if 0 < len(text) <= 60)


@dataclass
class _List:
    ordered: bool
    number: int
    style: str


class _Renderer:
    """Walks a tree once; text gathers in a buffer that block borders empty."""

    def __init__(self, tables: TableKinds, outline: Outline, depth: int = 0) -> None:
        self.tables = tables
        self.outline = outline
        self.depth = depth
        self.pieces: list[Piece] = []
        self.buffers: list[list[str]] = [[]]
        self.open: list[Element] = []
        self.lists: list[_List] = []
        self.marker = ""
        self.label: Piece | None = None
        self.raw = 0
        self.nested: list[Element] | None = None

    def run(self, root: Element) -> list[Piece]:
        self.open.append(root)
        self._say(root.text)
        open_nodes: list[tuple[Iterator[Element], Element]] = [(iter(root), root)]
        while open_nodes:
            children, parent = open_nodes[-1]
            for element in children:
                if not self._whole(element):
                    self._start(element)
                    if len(element):
                        open_nodes.append((iter(element), element))
                        break
                    self._end(element)
                self._say(element.tail)
            else:
                open_nodes.pop()
                if parent is not root:
                    self._end(parent)
                    self._say(parent.tail)
        self._flush()
        self._flush_label()
        return self.pieces

    def _whole(self, element: Element) -> bool:
        """Render an element inside and all, where that needs no walk through it."""
        tag = element.tag
        if tag in INVISIBLE:
            return True
        if tag == "dd" and self._is_list_value(element):
            self._flush()
            self._list_value(element)
            return True
        if tag == "table" and self._is_table(element):
            self._flush()
            self._table(element)
            return True
        if tag in _MARKS or not self.outline.simple(element):
            return False
        if tag in BLOCKS:
            self._flush()
            self.open.append(element)
            self._open_block(element)
            self._say(all_text(element))
            self._end(element)
        else:
            self._say(all_text(element))
        return True

    def _is_table(self, element: Element) -> bool:
        return self.depth < _MAX_NESTED and self.tables.is_data(element)

    def _is_list_value(self, element: Element) -> bool:
        """A value that is a list, under a label that waits for it: one unit, not label and first item."""
        if self.label is None or self.depth >= _MAX_NESTED or element.find(".//li") is None:
            return False
        return not any(
            node.tag in HEADINGS or node.tag in {"table", "dl", "pre"} for node in element.iter("*")
        )

    def _list_value(self, element: Element) -> None:
        pieces = _Renderer(self.tables, self.outline, self.depth + 1).run(element)
        items = [piece.markdown for piece in pieces]
        if len(pieces) == 1:
            self._definition([pieces[0].plain], element)
        elif items:
            self._definition(["", *items], element)

    def _say(self, text: str | None) -> None:
        if text:
            self.buffers[-1].append(text if self.raw else text.replace(_BREAK, " "))

    def _start(self, element: Element) -> None:
        tag = element.tag
        if tag == "br":
            self.buffers[-1].append("\n" if self.raw else _BREAK)
        elif tag == "img":
            self._say(self._alt(element))
        elif tag in {"sub", "sup"}:
            self.buffers.append([])
        elif tag in BLOCKS:
            self._flush()
            self.open.append(element)
            self._open_block(element)
        self._say(element.text)

    def _open_block(self, element: Element) -> None:
        tag = element.tag
        if tag in {"ul", "ol", "menu", "dir"}:
            start = element.get("start") or ""
            number = int(start) if start.isdigit() and len(start) < 7 else 1
            self.lists.append(_List(tag == "ol", number, element.get("type") or "1"))
        elif tag == "li":
            self.marker = self._marker(element)
        elif tag == "pre":
            self.raw += 1

    def _end(self, element: Element) -> None:
        tag = element.tag
        if tag in {"sub", "sup"}:
            if len(self.buffers) == 1:  # a block inside has given the script up
                return
            text = "".join(self.buffers.pop())
            text = text.replace(_BREAK, " ")
            self.buffers[-1].append(raised(text) if tag == "sup" else lowered(text))
        elif tag in BLOCKS and tag != "br":
            self._flush()
            if tag == "pre":
                self.raw -= 1
            elif tag in {"ul", "ol", "menu", "dir"} and self.lists:
                self.lists.pop()
            elif tag == "dl":
                self._flush_label()
            elif tag == "li":
                self.marker = ""
            self.open.pop()

    def _alt(self, image: Element) -> str:
        alt = image.get("alt") or ""
        if math := _MATH.match(alt.strip()):
            return f" {math[1].strip()} "
        if sign := _SIGN.get(alt.strip().lower()):
            return sign
        return f" {alt} " if 0 < len(alt) <= 120 and _HAZARD_ALT.search(alt) else ""

    def _marker(self, item: Element) -> str:
        if not self.lists:
            return "- "
        current = self.lists[-1]
        if not current.ordered:
            return "- "
        value = item.get("value") or ""
        if value.isdigit() and len(value) < 7:
            current.number = int(value)
        text = _numeral(current.number, current.style)
        current.number += 1
        return f"{text}. "

    def _flush(self) -> None:
        """Turn what has gathered into a piece of the innermost open block."""
        while len(self.buffers) > 1:  # a block inside sub or sup: give up the script, keep the text
            inner = self.buffers.pop()
            self.buffers[-1].extend(inner)
        text = "".join(self.buffers[0])
        self.buffers = [[]]
        if self.raw:
            self._preformatted(text)
            return
        if _BREAK not in text:  # nearly always
            if line := collapse(text):
                self._emit([line])
            return
        lines: list[str] = []
        for line in [collapse(part) for part in text.split(_BREAK)]:
            if line:
                lines.append(line)
            elif lines and text.count(_BREAK) > 1:
                self._emit(lines)
                lines = []
        if lines:
            self._emit(lines)

    def _preformatted(self, text: str) -> None:
        text = text.replace("\r\n", "\n").strip("\n").rstrip()
        if text.strip():
            fence = "````" if "```" in text else "```"
            self.pieces.append(Piece(f"{fence}\n{text}\n{fence}", text, "preformatted", self.open[-1]))

    def _emit(self, lines: list[str]) -> None:
        element = self.open[-1]
        if element.tag in HEADINGS:
            text = " ".join(lines)
            self.pieces.append(Piece("#" * int(element.tag[1]) + " " + text, text, "heading", element))
        elif element.tag == "dt":
            self._flush_label()
            text = " ".join(lines)
            self.label = Piece(text, text, "definition", element)
        elif self.label is not None:
            self._definition(lines, element)
        elif self.lists or self.marker:
            self._item(lines, element)
        else:
            self._paragraph("\n".join(lines), element)

    def _paragraph(self, text: str, element: Element) -> None:
        kind = "caption" if element.tag in {"caption", "figcaption"} else "paragraph"
        if element.tag == "blockquote":
            kind = "quote"
        self.pieces.append(Piece(_no_heading(text), text, kind, element))

    def _item(self, lines: list[str], element: Element) -> None:
        indent = "  " * max(0, len(self.lists) - 1)
        marker = self.marker or "  "
        text = f"\n{indent}  ".join(lines)
        shown = marker if marker.strip() not in {"-", ""} else ""
        follows = bool(self.pieces) and self.pieces[-1].kind == "item"
        tight = follows and self.pieces[-1].source is not None
        self.pieces.append(Piece(f"{indent}{marker}{text}", shown + "\n".join(lines), "item", element, tight))
        self.marker = ""

    def _definition(self, lines: list[str], element: Element) -> None:
        label = self.label
        self.label = None
        if label is None:
            return
        mark = " " if _LABEL_END.search(label.plain) else ("：" if _HAN_END.search(label.plain) else ": ")
        if not lines[0]:
            mark = mark.rstrip()
        text = label.plain + mark + "\n".join(lines)
        parent = element.getparent() if element.tag == "dd" else None
        source = parent if parent is not None and _is_second_of_two(element) else element
        tight = bool(self.pieces) and self.pieces[-1].kind == "definition"
        self.pieces.append(Piece(text, text, "definition", source, tight))

    def _flush_label(self) -> None:
        if self.label is not None:
            self.pieces.append(self.label)
            self.label = None

    def _table(self, table: Element) -> None:
        self._flush_label()
        caption = table.find("caption")
        if caption is not None:
            text = on_a_line(_cell_text(caption, self.tables, self.outline, self.depth))
            if text:
                self.pieces.append(Piece(text, text, "caption", caption))
        inside: dict[Element, list[Element]] = {}

        def text_of(cell: Element) -> str:
            row = cell.getparent()
            if self.depth or row is None or len(row) < 2:
                return _cell_text(cell, self.tables, self.outline, self.depth)
            nested: list[Element] = []
            text = _cell_text(cell, self.tables, self.outline, self.depth, nested)
            if nested:
                inside.setdefault(row, []).extend(nested)
            return text

        rows = grid(table, text_of)
        if self.nested is not None and len(rows) > 1 and rows[0].header:
            self.nested.append(table)
            return
        for first in _moved_to_shown(table, rows, inside) if inside else ():
            self._table(first)
        if rows:
            self._rows(rows, inside)

    def _rows(self, rows: list[GridRow], inside: dict[Element, list[Element]]) -> None:
        """Rows as a pipe table; after a row with a table inside, that table, then the rest."""
        width = len(rows[0].cells)
        if width == 1:
            for row in rows:
                text = row.cells[0]
                self.pieces.append(Piece(_no_heading(text), text, "paragraph", row.element))
                self._tables(inside.get(row.element))
            return
        head = pipe(("",) * width) + "\n" + rule(width) + "\n"
        fresh = True
        titles = _section_titles(rows)
        rows.reverse()
        for number in range(len(rows)):
            row = rows.pop()  # let go once it is written: a large table has tens of thousands
            if number in titles:
                self.pieces.append(Piece(f"## {titles[number]}", titles[number], "heading", row.element))
                fresh = True
                self._tables(inside.get(row.element))
                continue
            cells = settled_lines(row, "; " if self.depth == 0 else ", ")
            line = pipe(cells)
            if fresh:
                line = f"{line}\n{rule(width)}" if row.header else head + line
            plain = "\t".join(cells).strip("\t") if self.depth == 0 else _nested_row(cells)
            self.pieces.append(Piece(line, plain, "row", row.element, not fresh))
            fresh = bool(inside.get(row.element))
            self._tables(inside.get(row.element))

    def _tables(self, tables: list[Element] | None) -> None:
        for table in tables or ():
            self._table(table)


def _moved_to_shown(
    table: Element, rows: list[GridRow], inside: dict[Element, list[Element]]
) -> list[Element]:
    """Give the tables inside rows that say nothing else, and are not shown, to the row shown before; returns those before all."""
    shown = {row.element for row in rows}
    first: list[Element] = []
    before = first
    for element in own_rows(table):
        if element in shown:
            before = inside.setdefault(element, [])
        else:
            before.extend(inside.pop(element, ()))
    return first


def _is_second_of_two(element: Element) -> bool:
    """Whether an element and one before it are all that their parent holds (``len`` counts all children)."""
    first = element.getprevious()
    return first is not None and first.getprevious() is None and element.getnext() is None


def _section_titles(rows: list[GridRow]) -> dict[int, str]:
    """Row number → title, where a table holds the numbered sections of a data sheet.

    Rows over the whole width with a section number, at least three of them: headings
    of the document, not of a table's part.
    """
    titles = {
        number: on_a_line(row.cells[0])
        for number, row in enumerate(rows)
        if not any(row.cells[1:]) and len(row.cells[0]) <= 60 and _SECTION_TITLE.match(row.cells[0])
    }
    return titles if len(titles) >= 3 else {}


def _no_heading(text: str) -> str:
    """Text of which no line is read as a heading of Markdown."""
    return _HEADING_LIKE_START.sub(r"\\\1", text) if "#" in text else text


def _nested_row(cells: tuple[str, ...]) -> str:
    return "\t".join(cell for cell in cells if cell)


def _numeral(number: int, style: str) -> str:
    if style in {"a", "A"} and 0 < number <= 26:
        letter = chr(ord("a") + number - 1)
        return letter if style == "a" else letter.upper()
    if style in {"i", "I"} and 0 < number < 4000:
        text, rest = "", number
        for value, roman in _ROMAN:
            while rest >= value:
                text, rest = text + roman, rest - value
        return text if style == "i" else text.upper()
    return str(number)

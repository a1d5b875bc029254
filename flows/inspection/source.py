"""A parsed page as indented source lines, of bounded number, with what will be removed marked.

One line per element that holds blocks; an element without blocks is one line with
all it contains. A removed part is shown by its first lines, so that a menu with
thousands of links does not push the content off the pane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lxml import etree

from corpus.cleaning.measure import BLOCKS
from corpus.cleaning.parsing import MARK
from corpus.cleaning.tags import Element, name_set

MAX_LINES = 4000
REMOVED_LINES = 40
_LINE_CHARS = 1500
_TEXT_CHARS = 600
_CODE_CHARS = 200
_ATTRIBUTE_CHARS = 160
_ATTRIBUTES = 40
_SPLIT = ("head", "select", "datalist", "map")
_CODE = frozenset({"script", "style", "noscript", "template"})
_VOID = name_set(
    "area base basefont br col embed frame hr img input isindex link meta param source track wbr"
)
_UNSEEN = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: "\u2421",
    **{code: f"⟨U+{code:04X}⟩" for code in (*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F))},
    **{code: f"⟨U+{code:04X}⟩" for code in (*range(0x2066, 0x206A), 0xFEFF, *range(0xD800, 0xE000))},
}


def visible(text: str) -> str:
    """The text with control characters and marks that turn the writing direction made visible."""
    return text.translate(_UNSEEN)


@dataclass(frozen=True)
class Mark:
    """Why an element goes: ``key`` of the rule, and whether its content goes with it."""

    key: str
    whole: bool = True


@dataclass
class Line:
    """One source line. ``parts``: (class, text), of classes ``t`` tag, ``a`` attribute, ``g`` attribute that
    goes, ``k:KEY`` text or tag removed by that rule, empty for text. ``starts``: key of the rule whose
    removal starts here. ``number``: of the element that begins here, -1 for a closing tag, text or a note.
    """

    depth: int
    number: int = -1
    key: str = ""
    starts: str = ""
    note: str = ""
    parts: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Source:
    """Lines of a pane. ``home``: element number → number of the line that shows it, or
    with which the removed part begins that it is in; ``left``: elements not shown;
    ``cut``: whether the lines end before the tree does.
    """

    lines: list[Line] = field(default_factory=list)
    home: dict[int, int] = field(default_factory=dict)
    elements: int = 0
    left: int = 0
    cut: bool = False


Marker = Callable[[int, str, Mark | None], Mark | None]
"""(element number, tag, mark of the parent's content) → mark."""


def number_of(element: Element) -> int:
    """The element's document-order number; -1 for one that cleaning made itself."""
    mark = element.get(MARK, "-1")
    return int(mark) if mark.isdecimal() else -1


def source_lines(root: Element, marker: Marker, after: Mapping[int, Mapping[str, str]]) -> Source:
    """The tree as lines. ``after``: attributes of the elements in the stage they are compared with."""
    return _Writer(root, marker, after).source


class _Writer:
    def __init__(self, root: Element, marker: Marker, after: Mapping[int, Mapping[str, str]]) -> None:
        self.source = Source()
        self.marker = marker
        self.after = after
        self.holds_blocks = _holders(root)
        self._hidden = 0  # lines left out of the removed part that is being written
        self._part = -1  # number of the element with which that part begins
        self._shown = 0  # elements
        self._budget = REMOVED_LINES
        self.source.elements = sum(1 for element in root.iter("*") if number_of(element) >= 0)
        self._walk(root)
        self.source.left = self.source.elements - self._shown

    def _walk(self, root: Element) -> None:
        marks: list[Mark | None] = [None]
        skip: Element | None = None
        for event, element in etree.iterwalk(root, events=("start", "end")):
            if skip is not None:
                if element is skip and event == "end":
                    skip = None
                    self._tail(element, marks[-1], len(marks) - 1)
                continue
            if len(self.source.lines) >= MAX_LINES:
                self.source.cut = True
                break
            inherited, depth = marks[-1], len(marks) - 1
            if event == "start":
                mark = self.marker(number_of(element), str(element.tag), inherited)
                starts = mark.key if mark is not None and (inherited is None or mark != inherited) else ""
                if element not in self.holds_blocks:
                    self._inline(element, mark, starts, depth)
                    skip = element
                    if starts and inherited is None:
                        self._end_of_removed(depth)
                    continue
                line = self._line(element, mark, starts, depth)
                line.parts = self._tag(element)
                self._put(line, [line.number], content=_content(mark))
                marks.append(_content(mark))
                self._text(element.text, marks[-1], depth + 1)
            else:
                content = marks.pop()
                line = Line(len(marks) - 1, key=content.key if content is not None else "")
                line.parts = [("t", f"</{element.tag}>")]
                self._put(line, [], content=content)
                if content is not None and marks[-1] is None:
                    self._end_of_removed(len(marks) - 1)
                self._tail(element, marks[-1], len(marks) - 1)

    def _line(self, element: Element, mark: Mark | None, starts: str, depth: int) -> Line:
        return Line(depth, number_of(element), mark.key if mark is not None else "", starts)

    def _put(self, line: Line, inside: list[int], content: Mark | None) -> None:
        """Write a line that shows these elements; beyond the budget of a removed part it is only counted."""
        numbers = [number for number in inside if number >= 0 and number not in self.source.home]
        if line.number in self.source.home:  # cleaning's own "main" has the number of what it stands for
            line.number = -1
        if content is not None and not self._affords():
            self._hidden += 1
            self.source.home.update(dict.fromkeys(numbers, self._part))
            return
        if content is None or self._budget == REMOVED_LINES - 1:
            self._part = line.number
        self.source.lines.append(line)
        self.source.home.update(dict.fromkeys(numbers, line.number))
        self._shown += len(numbers)

    def _affords(self) -> bool:
        self._budget -= 1
        return self._budget >= 0

    def _end_of_removed(self, depth: int) -> None:
        if self._hidden:
            self.source.lines.append(Line(depth, note=f"… {self._hidden:,} more lines of this removed part"))
        self._hidden, self._budget = 0, REMOVED_LINES

    def _text(self, text: str | None, mark: Mark | None, depth: int) -> None:
        if text and not text.isspace():
            line = Line(depth, key=mark.key if mark is not None else "")
            line.parts = [("", _short(text, _TEXT_CHARS))]
            self._put(line, [], content=mark)

    def _tail(self, element: Element, mark: Mark | None, depth: int) -> None:
        self._text(element.tail, mark, depth)

    def _inline(self, element: Element, mark: Mark | None, starts: str, depth: int) -> None:
        """An element without blocks, with all it contains, as one line."""
        line = self._line(element, mark, starts, depth)
        marks: list[Mark | None] = []
        room = _LINE_CHARS
        inside: list[int] = []
        for event, node in etree.iterwalk(element, events=("start", "end")):
            upper = marks[-1] if marks else None
            if room < 0:
                break
            if event == "start":
                own = mark if node is element else self.marker(number_of(node), str(node.tag), upper)
                if node is not element and own is not None and own != mark and not line.starts:
                    line.starts = own.key
                inside.append(number_of(node))
                parts = _marked(self._tag(node), own, mark)
                marks.append(_content(own))
                limit = _CODE_CHARS if node.tag in _CODE else _TEXT_CHARS
                parts += _marked([("", _short(node.text, limit))], marks[-1], mark)
            else:
                marks.pop()
                parts = [] if node.tag in _VOID else _marked([("t", f"</{node.tag}>")], upper, mark)
                if node is not element:
                    parts += _marked(
                        [("", _short(node.tail, _TEXT_CHARS))], marks[-1] if marks else None, mark
                    )
            line.parts += [part for part in parts if part[1]]
            room -= sum(len(text) for _, text in parts)
        if room < 0:
            rest = sum(1 for _ in element.iter("*")) - len(inside)
            line.note = f"… cut here, {rest:,} more elements" if rest else "… cut here"
        self._put(line, inside, content=_content(mark))

    def _tag(self, element: Element) -> list[tuple[str, str]]:
        number = number_of(element)
        after = self.after.get(number)
        parts = [("t", f"<{element.tag}")]
        shown = 0
        for name, value in element.attrib.items():
            if name == MARK:
                continue
            shown += 1
            if shown > _ATTRIBUTES:
                parts.append(("a", f" … {len(element.attrib) - _ATTRIBUTES} more attributes"))
                break
            goes = after is not None and name not in after
            written = f' {_short(str(name), 60)}="{_short(str(value), _ATTRIBUTE_CHARS)}"'
            parts.append(("g" if goes else "a", written))
        parts.append(("t", ">"))
        return parts


def _content(own: Mark | None) -> Mark | None:
    """The mark of an element's content: it stays where the element stays or only its tag goes."""
    return own if own is not None and own.whole else None


def _marked(parts: list[tuple[str, str]], own: Mark | None, of_line: Mark | None) -> list[tuple[str, str]]:
    if own is None or own == of_line:
        return parts
    return [(f"k:{own.key}", text) for _, text in parts]


def _short(text: str | None, limit: int) -> str:
    squashed = visible(" ".join((text or "").split()))
    if text and text[:1].isspace() and squashed:
        squashed = " " + squashed
    if text and text[-1:].isspace() and squashed:
        squashed += " "
    return (
        squashed if len(squashed) <= limit else f"{squashed[:limit]}… (+{len(squashed) - limit:,} characters)"
    )


def _holders(root: Element) -> set[Element]:
    """Elements that are written over several lines: with a block among their descendants, and some more."""
    elements = list(root.iter("*"))
    found = {root, *root.iter(*_SPLIT)}
    for element in reversed(elements):
        parent = element.getparent()
        if parent is not None and element is not root and (element.tag in BLOCKS or element in found):
            found.add(parent)
    return found

"""Text to a tree: lxml's huge-tree parser, with byte, element and depth limits.

The default lxml parser silently drops what is nested deeper than 254 levels, the
huge-tree parser what is deeper than 2,048; deeper wrapper tags are taken out of
the text before a second parse. BeautifulSoup parses where lxml yields nothing.
"""

from __future__ import annotations

import contextlib
import html
import re
import sys
from array import array
from dataclasses import dataclass

from lxml import etree

from corpus.cleaning.tags import Element, name_set
from corpus.errors import TerminalError

_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,200}\?>", re.IGNORECASE)
# what XML cannot hold: C0 controls, surrogates, non-characters
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_CONTROL_BYTES = bytes({*range(0x20)} - {0x9, 0xA, 0xD})
_REFERENCE = re.compile(r"&#(?:([0-9]{1,8})(?![0-9])|[xX]([0-9a-fA-F]{1,8})(?![0-9a-fA-F]));?")
_ENDS = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)  # the parser drops what stands after them
_LONG_VALUE = 20_000
_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{_LONG_VALUE},}}>")
_LONG_ATTRIBUTE = re.compile(rf"""(=\s*)("[^"]{{{_LONG_VALUE},}}"|'[^']{{{_LONG_VALUE},}}')""")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
_VOID = name_set("area base br col embed hr img input link meta param source track wbr")
_DEPTH_OF_PARSER = 2000
_DEPTH_KEPT = 500


@dataclass(frozen=True)
class Limits:
    """Sizes above which a page is refused."""

    max_bytes: int = 20_000_000
    max_elements: int = 600_000


LIMITS = Limits()
MARK = "data-hchem-n"  # document-order number of an element of the raw tree, in traces


_FLOW = ("p", "div", "table", "ul", "ol", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote")


def check_size(data: bytes, limits: Limits = LIMITS) -> None:
    """Raise TerminalError(reason="too_large") for more bytes than allowed."""
    if len(data) > limits.max_bytes:
        raise TerminalError(f"{len(data)} bytes, limit {limits.max_bytes}", reason="too_large")


def _has_long_tag(text: str) -> bool:
    """Whether a tag may be too long: over 20,000 characters without another."""
    half = _LONG_VALUE // 2  # so long a stretch has a whole half of the grid in it
    if all(text.find("<", start, start + half) >= 0 for start in range(0, len(text) - half + 1, half)):
        return False
    return max(map(len, text.split("<"))) > _LONG_VALUE


def _shorter(tag: re.Match[str]) -> str:
    """A tag of more than 20,000 characters without its long values, and without what is still beyond.

    The parser compares every attribute with all before it: 100,000 of them would take minutes.
    """
    short = _LONG_ATTRIBUTE.sub(r'\1""', tag[0])
    return short if len(short) <= _LONG_VALUE else short[:_LONG_VALUE].rpartition(" ")[0] + ">"


def without_controls(text: str) -> str:
    """Take out the characters that a tree cannot hold, and the numeric references to them.

    References to 128-159 are read as windows-1252 (HTML standard, "numeric character
    reference end state"); all others stay as they are.
    """
    if _holds_controls(text):
        text = _CONTROL.sub("", text)
    return _REFERENCE.sub(_reference, text) if "&#" in text else text


def _holds_controls(text: str) -> bool:
    """Whether ``_CONTROL`` finds anything, told faster than it would."""
    try:
        data = text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return True
    return len(data.translate(None, _CONTROL_BYTES)) != len(data) or "\ufffe" in text or "\uffff" in text


def _reference(match: re.Match[str]) -> str:
    decimal, hexadecimal = match.groups()
    value = int(decimal) if decimal else int(hexadecimal, 16)
    if 0x80 <= value <= 0x9F:
        return html.unescape(match[0])
    odd = value < 0x20 and value not in {0x9, 0xA, 0xD}
    return (
        "" if odd or 0xD800 <= value <= 0xDFFF or value & 0xFFFE == 0xFFFE or value > 0x10FFFF else match[0]
    )


def parse_html(text: str, limits: Limits = LIMITS) -> tuple[Element, Numbers]:
    """Parse declaration-free text into an ``html`` element with a ``body``, and number its elements.

    Comments and processing instructions are gone. Raises TerminalError
    (``too_many_elements``, ``unparseable``, ``empty``).
    """
    if declaration := _DECLARATION.match(text):
        text = text[declaration.end() :]
    text = _ENDS.sub("", without_controls(text))
    if not text or text.isspace():
        raise TerminalError("nothing but blanks", reason="empty")
    if _has_long_tag(text):
        text = _LONG_TAG.sub(_shorter, text)
    root = _parse(text)
    numbers = Numbers(root, limits)
    parsed = root
    if numbers.depth >= _DEPTH_OF_PARSER:
        root = _parse(_flatten(text))
    if not _has_text(root):
        rebuilt = _with_beautiful_soup(text)
        root = root if rebuilt is None else rebuilt
    closed = _close_drawings(root)
    bare = root.find("body") is None
    if bare:
        root.append(etree.Element("body"))
    return root, Numbers(root, limits) if closed or bare or root is not parsed else numbers


def _close_drawings(root: Element) -> bool:
    """End a drawing where page content begins inside it, as browsers do.

    The parser leaves an unclosed ``svg`` open to the end of the page; removing it
    as a drawing would take the page along. (HTML standard, "in foreign content".)
    """
    closed = False
    for drawing in root.iter("svg"):
        if (
            next(drawing.iter(*_FLOW), None) is not None
            and next(drawing.iter("foreignObject", "foreignobject"), None) is None
        ):
            drawing.tag = "div"
            closed = True
    return closed


def _parse(text: str) -> Element:
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:  # "document is empty": no element at all
        root = None
    except (etree.LxmlError, ValueError) as error:
        raise TerminalError(f"not parseable as HTML: {error}", reason="unparseable") from error
    if root is None or root.tag != "html":
        outer = etree.Element("html")
        if root is not None:
            outer.append(root)
        return outer
    return root


def _flatten(text: str) -> str:
    """Take out the tags nested deeper than a person would write; their text stays."""
    depth = 0

    def keep(match: re.Match[str]) -> str:
        nonlocal depth
        closing, name, rest = match.groups()
        if name.lower() in _VOID or rest.endswith("/"):
            return match[0]
        inside = depth > _DEPTH_KEPT
        if closing:
            depth = max(0, depth - 1)
            return " " if inside else match[0]
        depth += 1
        return " " if inside or depth > _DEPTH_KEPT else match[0]

    return _TAG.sub(keep, text)


def _has_text(root: Element) -> bool:
    return any((text and not text.isspace()) for text in root.itertext())


def _with_beautiful_soup(text: str) -> Element | None:
    """The fallback parser. ``None`` where it finds no text either."""
    from bs4 import BeautifulSoup

    try:
        soup = BeautifulSoup(text, "html.parser")
        rebuilt = str(soup)
    except (RecursionError, AssertionError, ValueError):  # html.parser's ways of giving up
        return None
    if not soup.get_text(strip=True):
        return None
    return _parse(rebuilt)


class Numbers:
    """Document-order numbers and DOM paths of a raw tree's elements: ``/html/body/div[2]/table[1]/tr[3]``.

    Taken before anything is removed; the elements are kept alive, so that they stay
    the keys they are. ``index``: element → its place in ``elements``, which is its number
    unless cleaning has made it. Elements deeper than 60 levels get the equally valid, shorter
    ``(//*)[N]``. ``named`` (class or id), ``styled`` (style, hidden, aria-hidden) and
    ``with_role`` list the elements that rules ask about, in document order. Raises
    TerminalError(``too_many_elements``).
    """

    _DEEP = 60

    def __init__(self, root: Element, limits: Limits) -> None:
        elements = list(root.iter("*"))
        if len(elements) > limits.max_elements:
            raise TerminalError(f"more than {limits.max_elements} elements", reason="too_many_elements")
        index = dict(zip(elements, range(len(elements)), strict=True))
        parents = array("i", (index.get(element.getparent(), -1) for element in elements))  # type: ignore[arg-type]
        self.named: list[Element] = []
        self.styled: list[Element] = []
        self.with_role: list[Element] = []
        for element in elements:
            if keys := element.keys():
                if "class" in keys or "id" in keys:
                    self.named.append(element)
                if "style" in keys or "hidden" in keys or "aria-hidden" in keys:
                    self.styled.append(element)
                if "role" in keys:
                    self.with_role.append(element)
        self._tags = [
            sys.intern(str(element.tag)) for element in elements
        ]  # lxml makes a new string each time
        self._places: array[int] | None = None
        depths = array("i", bytes(4 * len(elements)))
        for number, up in enumerate(parents):
            if up >= 0:
                depths[number] = depths[up] + 1
        self.depth = max(depths, default=0) + 1
        self._depths = depths
        self._paths: dict[int, str] = {}
        self.parents = parents
        self._count = len(elements)
        self._stands_for: dict[int, int] = {}  # place of a made element → number of the raw one
        self.index = index
        self.elements = elements  # after the index: lxml frees a removed subtree in linear time only so

    def number(self, element: Element) -> int:
        """Document-order number of a raw element; -1 for one that cleaning has made."""
        place = self.index.get(element, -1)
        return place if place < self._count else self._stands_for[place]

    def adopt(self, made: Element, raw: Element | None) -> None:
        """A made element stands for a raw one, whose number it takes over, or for none."""
        self._place(made, -1 if raw is None else self.number(raw))
        if raw is not None and raw.get(MARK) is not None:
            made.set(MARK, str(raw.get(MARK)))

    def _place(self, made: Element, number: int) -> None:
        self.index[made] = place = len(self.elements)
        self.elements.append(made)
        self._stands_for[place] = number

    def mark(self) -> None:
        """Write the numbers into the elements' ``MARK``, for a trace."""
        for element in self.index:
            if (number := self.number(element)) >= 0:
                element.set(MARK, str(number))

    def rebind(self, root: Element) -> None:
        """Take over the elements of a marked tree that was written and read again."""
        for element in root.iter("*"):
            mark = element.get(MARK)
            if mark is not None:
                self._place(element, int(mark))

    def let_go(self, kept: Element) -> array[int]:
        """Forget all elements; returns the numbers of what ``kept`` holds (itself first), in document order.

        A made element without a number has that of its nearest ancestor with one (-1: none).
        Called when no rule asks any more: the objects that stand for elements, and the
        elements that were removed, take up more room than the page.
        """
        numbers = array("i", map(self._nearest, kept.iter("*")))
        self.index = {}  # before the list: lxml frees a removed subtree in linear time only from its end
        self.named = self.styled = self.with_role = []
        self.elements = []
        return numbers

    def _nearest(self, element: Element) -> int:
        """Number of the element, or of its nearest ancestor that has one."""
        node: Element | None = element
        while node is not None:
            if (number := self.number(node)) >= 0:
                return number
            node = node.getparent()
        return -1

    def of(self, element: Element) -> str:
        """Path of the raw element that ``element`` was; of its nearest raw ancestor for made-up ones."""
        return self.path(self._nearest(element))

    def path(self, number: int) -> str:
        """DOM path of an element of the raw tree. Paths of siblings share their parent's, which is kept."""
        if number < 0:
            return ""
        if self._depths[number] >= self._DEEP:
            return f"(//*)[{number + 1}]"
        pending: list[int] = []
        outer = self.parents[number]
        while outer >= 0 and outer not in self._paths:
            pending.append(outer)
            outer = self.parents[outer]
        path = self._paths[outer] if outer >= 0 else ""
        for inner in reversed(pending):
            path += self._step(inner)
            self._paths[inner] = path
        return path + self._step(number)

    def _step(self, number: int) -> str:
        tag = self._tags[number]
        if tag in {"html", "body", "head"}:
            return f"/{tag}"
        if self._places is None:
            self._places = self._positions()
        return f"/{tag}[{self._places[number]}]"

    def _positions(self) -> array[int]:
        """Position of each element among its siblings of the same tag, from 1."""
        counters: list[dict[str, int]] = [
            {} for _ in range(self.depth + 1)
        ]  # of the open element of each level
        positions = array("i")
        for tag, depth in zip(self._tags, self._depths, strict=True):
            counts = counters[depth]
            position = counts[tag] = counts.get(tag, 0) + 1
            positions.append(position)
            if inner := counters[depth + 1]:
                inner.clear()
        return positions


def reread(content: str) -> Element:
    """The tree that a parser makes of a serialised element, as a document."""
    return _parse(f"<html><body>{content}</body></html>")


def strip_marks(root: Element) -> None:
    """Remove the document-order numbers."""
    etree.strip_attributes(root, MARK)


def remove_attribute(element: Element, name: str) -> None:
    """Remove an attribute, also one whose name lxml itself would refuse (``x"=``, ``a<b``, ``{}"``)."""
    try:
        del element.attrib[name]
    except (ValueError, KeyError):  # a name that begins with a brace is taken for one with a namespace
        others = [
            (str(key), str(value))
            for key, value in element.attrib.items()
            if key != name and not str(key).startswith("{")
        ]
        element.attrib.clear()
        for key, value in others:
            with contextlib.suppress(ValueError):  # another such name: it goes as well
                element.set(key, value)


def drop(element: Element) -> None:
    """Remove an element with its content; the text after it stays."""
    parent = element.getparent()
    if parent is None:
        return
    tail = element.tail
    if tail:
        previous = element.getprevious()
        before = (previous.tail if previous is not None else parent.text) or ""
        if not tail.isspace():
            before += tail
        elif not before[-1:].isspace():
            before += " "  # long runs of removed siblings must not pile up their blanks
        if previous is not None:
            previous.tail = before
        else:
            parent.text = before
    element.tail = None
    parent.remove(element)


def resolve(root: Element, path: str) -> Element | None:
    """The element of a freshly parsed page that a block's path names, or ``None``."""
    try:
        found = root.getroottree().xpath(path)
    except etree.XPathError:
        return None
    first = found[0] if isinstance(found, list) and found else None
    return first if isinstance(first, etree._Element) else None

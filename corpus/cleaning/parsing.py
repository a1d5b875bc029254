"""Text to a tree: lxml's huge-tree parser, with byte, element and depth limits.

The default lxml parser silently drops what is nested deeper than 254 levels, the
huge-tree parser what is deeper than 2,048; deeper wrapper tags are taken out of
the text before a second parse. BeautifulSoup parses where lxml yields nothing.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

from lxml import etree

from corpus.cleaning.tags import Element, name_set
from corpus.errors import TerminalError

_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,200}\?>", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]|&#(?:0+|x0+|[xX]0*[bB]);?")
_LONG_ATTRIBUTE = re.compile(r"""(=\s*)("[^"<>]{20000,}"|'[^'<>]{20000,}')""")
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
MARK = "data-hchem-n"  # document-order number of an element of the raw tree, removed before output


_FLOW = ("p", "div", "table", "ul", "ol", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote")


def check_size(data: bytes, limits: Limits = LIMITS) -> None:
    """Raise TerminalError(reason="too_large") for more bytes than allowed."""
    if len(data) > limits.max_bytes:
        raise TerminalError(f"{len(data)} bytes, limit {limits.max_bytes}", reason="too_large")


def parse_html(text: str, limits: Limits = LIMITS) -> Element:
    """Parse declaration-free text into an ``html`` element with a ``body``.

    Comments and processing instructions are gone, every element carries its
    document-order number in ``data-hchem-n``. Raises TerminalError
    (``too_many_elements``, ``unparseable``, ``empty``).
    """
    text = _CONTROLS.sub("", _DECLARATION.sub("", text))
    if not text.strip():
        raise TerminalError("nothing but blanks", reason="empty")
    if len(text) > 20_000:
        text = _LONG_ATTRIBUTE.sub(r'\1""', text)
    root = _parse(text)
    if _depth_reached(root):
        root = _parse(_flatten(text))
    if not _has_text(root):
        rebuilt = _with_beautiful_soup(text)
        root = root if rebuilt is None else rebuilt
    _close_drawings(root)
    _number(root, limits)
    if root.find("body") is None:
        root.append(etree.Element("body"))
    return root


def _close_drawings(root: Element) -> None:
    """End a drawing where page content begins inside it, as browsers do.

    The parser leaves an unclosed ``svg`` open to the end of the page; removing it
    as a drawing would take the page along. (HTML standard, "in foreign content".)
    """
    for drawing in root.iter("svg"):
        if (
            next(drawing.iter(*_FLOW), None) is not None
            and next(drawing.iter("foreignObject", "foreignobject"), None) is None
        ):
            drawing.tag = "div"


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
        html = etree.Element("html")
        if root is not None:
            html.append(root)
        return html
    return root


def _depth_reached(root: Element) -> bool:
    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth >= _DEPTH_OF_PARSER:
            return True
    return False


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


def _number(root: Element, limits: Limits) -> None:
    for number, element in enumerate(root.iter()):
        if number >= limits.max_elements:
            raise TerminalError(f"more than {limits.max_elements} elements", reason="too_many_elements")
        element.set(MARK, str(number))


class Paths:
    """DOM paths of raw elements by their number: ``/html/body/div[2]/table[1]/tr[3]``.

    Taken before anything is removed. Elements deeper than 60 levels get the
    equally valid, shorter ``(//*)[N]``.
    """

    _DEEP = 60

    def __init__(self, root: Element) -> None:
        self._parents: list[int] = []
        self._steps: list[str] = []
        counters: list[dict[str, int]] = []
        stack: list[int] = []
        for event, element in etree.iterwalk(root, events=("start", "end")):
            if event == "end":
                stack.pop()
                counters.pop()
                continue
            tag = str(element.tag)
            position = 1
            if counters:
                position = counters[-1].get(tag, 0) + 1
                counters[-1][tag] = position
            self._parents.append(stack[-1] if stack else -1)
            self._steps.append(f"/{tag}" if tag in {"html", "body", "head"} else f"/{tag}[{position}]")
            stack.append(len(self._steps) - 1)
            counters.append({})

    def of(self, element: Element) -> str:
        """Path of the raw element that ``element`` was; of its nearest marked ancestor for made-up ones."""
        node: Element | None = element
        while node is not None and node.get(MARK) is None:
            node = node.getparent()
        if node is None:
            return ""
        number = int(node.get(MARK, "0"))
        return self.of_number(number)

    def of_number(self, number: int) -> str:
        """Path of the element with that document-order number."""
        steps: list[str] = []
        current = number
        while current >= 0:
            steps.append(self._steps[current])
            if len(steps) > self._DEEP:
                return f"(//*)[{number + 1}]"
            current = self._parents[current]
        return "".join(reversed(steps))


def strip_marks(root: Element) -> None:
    """Remove the document-order numbers."""
    etree.strip_attributes(root, MARK)


def remove_attribute(element: Element, name: str) -> None:
    """Remove an attribute, also one whose name lxml itself would refuse (``x"=``, ``a<b``)."""
    try:
        del element.attrib[name]
    except ValueError:
        others = [(str(key), str(value)) for key, value in element.attrib.items() if key != name]
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

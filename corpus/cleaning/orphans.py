"""Parts of tables and definition lists that stand without their whole.

Broken pages have them, and narrowing to a part of a layout table leaves them. A
parser would read them differently the next time, and a row without a table loses
what it says about its cells: rows get a table around them, cells in a table a row,
labels and values a list, cells without either become plain blocks. What stands
between the parts of a table is shown by browsers, but is in no cell: it gets one, or
a place beside the table. Settling what is settled changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from lxml import etree

from corpus.cleaning.measure import BLOCKS, INVISIBLE
from corpus.cleaning.parsing import drop
from corpus.cleaning.tags import Element

_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_ROWS = frozenset({"tr"}) | _SECTIONS
_CELLS = frozenset({"td", "th"})
_PARTS = _ROWS | {"caption", "colgroup", "col"}
_COLUMNS = frozenset({"col"})
_FRAMES = _SECTIONS | {"table", "colgroup"}  # what holds parts of a table, and nothing that is shown
_TAKEN_OUT, _MADE = "taken-out", "made"
_TERMS = frozenset({"dt", "dd"})
_PARENTS = {
    "caption": frozenset({"table"}),
    "colgroup": frozenset({"table"}),
    "col": frozenset({"colgroup", "table"}),
    **{name: frozenset({"table"}) for name in _SECTIONS},
    "tr": _SECTIONS | {"table"},
    "td": frozenset({"tr"}),
    "th": frozenset({"tr"}),
    "dt": frozenset({"dl", "div"}),
    "dd": frozenset({"dl", "div"}),
}


def settle_orphans(root: Element) -> bool:
    """Give orphaned parts a whole, in place. True where an element was made, renamed or moved."""
    found = _empty_forms(root)
    orphans = [element for element in root.iter(*_PARENTS) if _is_orphan(element)]
    for element in orphans:
        if not _is_orphan(element):
            continue  # taken along with the sibling before it
        tag = str(element.tag)
        if tag in _ROWS:
            _wrap(element, "table", _ROWS)
        elif tag in _TERMS:
            _wrap(element, "dl", _TERMS)
        elif tag in _CELLS and _is_frame(element.getparent()):
            _wrap(element, "tr", _CELLS)
        else:
            element.tag = "div"
    return _foster(root) or found or bool(orphans)


def _empty_forms(root: Element) -> bool:
    """Take rows and cells out of a form around them: browsers read such a form as if it ended where it begins."""
    forms = [
        form
        for form in root.iter("form")
        if len(form) and ((parent := form.getparent()) is not None) and parent.tag in _ROWS | {"table"}
    ]
    for form in forms:
        form.addprevious(etree.Element("form"))  # pages are judged by how many they have
        form.tag = _TAKEN_OUT
        form.text, form.tail = " " + (form.text or ""), " " + (form.tail or "")
    if forms:
        etree.strip_tags(root, _TAKEN_OUT)
    return bool(forms)


def _is_frame(element: Element | None) -> bool:
    return element is not None and element.tag in _FRAMES - {"colgroup"}


def _is_orphan(element: Element) -> bool:
    parent = element.getparent()
    if parent is None or parent.tag in _PARENTS[str(element.tag)]:
        if element.tag in _TERMS and parent is not None and parent.tag == "div":
            outer = parent.getparent()  # HTML allows div groups, but only within a list
            return outer is None or outer.tag != "dl"
        return False
    return True


def _foster(root: Element) -> bool:
    """Text and blocks that stand between the parts of a table: into a cell, or beside the table."""
    found = False
    for row in root.iter("tr"):
        found = bool(_gathered(row, _CELLS)) or found
    for table in list(root.iter("table")):
        found = _beside_table(table) or found
    return found


def _gathered(whole: Element, parts: frozenset[str]) -> list[Element]:
    """What is shown between the parts of a whole: in a row a cell for each stretch of it; else blocks, and paragraphs of the rest."""
    found: list[Element] = []
    apart: Container[object] = () if whole.tag == "tr" else BLOCKS
    stretch: Element | None = None
    for child in (None, *whole):
        if child is not None:
            if child.tag in parts or child.tag in apart:
                stretch = None
                if child.tag not in parts and _says(child):
                    found.append(child)
            elif stretch is not None:
                stretch.append(child)  # takes its tail along
                continue
            elif _says(child):
                stretch = _made(child.addprevious, found)
                stretch.append(child)
                continue
        text = whole.text if child is None else child.tail
        if not text or text.isspace():
            continue
        if child is None:
            whole.text = None
            stretch = _made(lambda made: whole.insert(0, made), found)
        else:
            child.tail = None
            stretch = _made(child.addnext, found)
        stretch.text = text
    for stretch in found:
        if stretch.tag == _MADE:
            blocks = next(stretch.iter(*BLOCKS), None) is not None
            stretch.tag = "td" if whole.tag == "tr" else "div" if blocks else "p"
    return found


def _made(put: Callable[[Element], None], found: list[Element]) -> Element:
    stretch = etree.Element(_MADE)
    put(stretch)
    found.append(stretch)
    return stretch


def _beside_table(table: Element) -> bool:
    """Move what is neither row nor caption out of a table: before it, as browsers do; what follows the last row, after it.

    A table that was not closed holds the rest of the page: headings must not come to stand over rows before them.
    """
    if table.getparent() is None:
        return False
    for caption in table.findall("caption")[1:]:
        if _says(caption):
            caption.tag = "div"  # only the first is shown as one
    strays: list[Element] = []
    leading = -1  # number of stretches before the last row
    made = set(_gathered(table, _PARTS))
    for child in [*table]:
        if child in made:
            strays.append(child)
        elif child.tag == "tr":
            leading = len(strays)
        elif child.tag in _FRAMES:
            inner = set(_gathered(child, _COLUMNS if child.tag == "colgroup" else _ROWS))
            for part in [*child]:
                if part in inner:
                    strays.append(part)
                elif part.tag == "tr":
                    leading = len(strays)
    leading = len(strays) if leading < 0 else leading
    for stray in strays[:leading]:
        table.addprevious(stray)
    place, tail, table.tail = table, table.tail, None
    for stray in strays[leading:]:
        place.addnext(stray)
        place = stray
    place.tail = tail
    if strays and next(table.iter("tr", "caption", "img"), None) is None:
        drop(table)
    return bool(strays)


def _says(element: Element) -> bool:
    """Whether a reader sees something of the element: text, or a picture that has a name."""
    if element.tag in INVISIBLE:
        return False
    if any(text and not text.isspace() for text in element.itertext()):
        return True
    return any(image.get("alt") for image in element.iter("img"))


def _wrap(first: Element, tag: str, members: frozenset[str]) -> None:
    """Put an element and the like siblings right after it into a new element."""
    parent = first.getparent()
    if parent is None:
        return
    whole: Element = etree.Element(tag)
    parent.insert(parent.index(first), whole)
    node: Element | None = first
    while node is not None and node.tag in members:
        following = None if node.tail and node.tail.strip() else node.getnext()
        whole.append(node)  # takes its tail along
        node = following
    if (tail := whole[-1].tail) and tail.strip():
        whole.tail, whole[-1].tail = tail, None

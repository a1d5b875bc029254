"""Parts of tables and definition lists that stand without their whole.

Broken pages have them, and narrowing to a part of a layout table leaves them. A
parser would read them differently the next time, and a row without a table loses
what it says about its cells: rows get a table around them, labels and values a
list, cells without a row become plain blocks.
"""

from __future__ import annotations

from lxml import etree

from corpus.cleaning.measure import INVISIBLE
from corpus.cleaning.tags import Element, all_text

_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_ROWS = frozenset({"tr"}) | _SECTIONS
_CELLS = frozenset({"td", "th"})
_PARTS = _ROWS | {"caption", "colgroup", "col"}
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
    """Give orphaned parts a whole, in place. True where an element was made or renamed."""
    orphans = [element for element in root.iter(*_PARENTS) if _is_orphan(element)]
    for element in orphans:
        if not _is_orphan(element):
            continue  # taken along with the sibling before it
        tag = str(element.tag)
        if tag in _ROWS:
            _wrap(element, "table", _ROWS)
        elif tag in _TERMS:
            _wrap(element, "dl", _TERMS)
        else:
            element.tag = "div"
    return _foster(root) or bool(orphans)


def _is_orphan(element: Element) -> bool:
    parent = element.getparent()
    if parent is None or parent.tag in _PARENTS[str(element.tag)]:
        if element.tag in _TERMS and parent is not None and parent.tag == "div":
            outer = parent.getparent()  # HTML allows div groups, but only within a list
            return outer is None or outer.tag != "dl"
        return False
    return True


def _foster(root: Element) -> bool:
    """Text and blocks that stand between the parts of a table: into a cell, or before the table, as browsers show them."""
    found = False
    for row in root.iter("tr"):
        for child in [*row]:
            if child.tag not in _CELLS and _says(child) and next(child.iter("td", "th", "tr"), None) is None:
                _into_cell(row, child)
                found = True
            elif child.tail and child.tail.strip():
                text = etree.Element("td")
                text.text, child.tail = child.tail, None
                child.addnext(text)
                found = True
        if row.text and row.text.strip():
            text = etree.Element("td")
            text.text, row.text = row.text, None
            row.insert(0, text)
            found = True
    for part in root.iter("table", *_SECTIONS):
        found = _before_table(part) or found
    return found


def _before_table(part: Element) -> bool:
    """Move what is neither row nor caption out of a table or a part of it."""
    table = part if part.tag == "table" else next(part.iterancestors("table"), None)
    if table is None or table.getparent() is None:
        return False
    moved: list[Element] = []
    for child in [*part]:
        stray = child.tail if child.tail and child.tail.strip() else ""
        if stray:
            text = etree.Element("p")
            text.text, child.tail = stray, None
        if child.tag not in _PARTS and _says(child) and next(child.iter("td", "th", "tr"), None) is None:
            moved.append(child)
        if stray:
            moved.append(text)
    if part.text and part.text.strip():
        text = etree.Element("p")
        text.text, part.text = part.text, None
        moved.insert(0, text)
    for element in moved:
        table.addprevious(element)
    return bool(moved)


def _says(element: Element) -> bool:
    return element.tag not in INVISIBLE and bool(all_text(element).strip())


def _into_cell(row: Element, child: Element) -> None:
    cell: Element = etree.Element("td")
    row.insert(row.index(child), cell)
    cell.append(child)
    cell.tail, child.tail = child.tail, None


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

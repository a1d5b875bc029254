"""Parts of tables and definition lists that stand without their whole.

Broken pages have them, and narrowing to a part of a layout table leaves them. A
parser would read them differently the next time, and a row without a table loses
what it says about its cells: rows get a table around them, labels and values a
list, cells without a row become plain blocks.
"""

from __future__ import annotations

from lxml import etree

from corpus.cleaning.tags import Element

_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_ROWS = frozenset({"tr"}) | _SECTIONS
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
    return bool(orphans)


def _is_orphan(element: Element) -> bool:
    parent = element.getparent()
    if parent is None or parent.tag in _PARENTS[str(element.tag)]:
        if element.tag in _TERMS and parent is not None and parent.tag == "div":
            outer = parent.getparent()  # HTML allows div groups, but only within a list
            return outer is None or outer.tag != "dl"
        return False
    return True


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

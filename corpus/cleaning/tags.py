"""Sets of names written as text, and the text of a tree."""

from __future__ import annotations

from lxml import etree

Element = etree._Element  # the type name lxml-stubs gives to nodes


def name_set(text: str) -> frozenset[str]:
    """The blank-separated names of a text as a set."""
    return frozenset(text.split())


def all_text(element: Element) -> str:
    """All text within an element, blanks as they are, scripts included."""
    if not len(element):
        return element.text or ""
    return etree.tostring(element, encoding="unicode", method="text", with_tail=False)


def folded(text: str) -> str:
    """Letters and digits alone, without case: what two spellings of one title have in common."""
    return "".join(filter(str.isalnum, text.casefold()))

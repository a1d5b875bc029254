"""Sets of names written as text, and the text of a tree."""

from __future__ import annotations

from lxml import etree

_STRETCH = 100_000
Element = etree._Element  # the type name lxml-stubs gives to nodes


def name_set(text: str) -> frozenset[str]:
    """The blank-separated names of a text as a set."""
    return frozenset(text.split())


def all_text(element: Element) -> str:
    """All text within an element, blanks as they are, scripts included."""
    if not len(element):
        return element.text or ""
    return etree.tostring(element, encoding="unicode", method="text", with_tail=False)


def squashed(text: str) -> str:
    """Runs of blanks to one, none at the ends. A long text in stretches: as words it would take ten times its room."""
    if len(text) <= _STRETCH:
        return " ".join(text.split())
    parts: list[str] = []
    apart = False
    for start in range(0, len(text), _STRETCH):
        stretch = text[start : start + _STRETCH]
        if said := " ".join(stretch.split()):
            if parts and (apart or stretch[0].isspace()):
                parts.append(" ")
            parts.append(said)
            apart = stretch[-1].isspace()
        else:
            apart = True
    return "".join(parts)


def folded(text: str) -> str:
    """Letters and digits alone, without case: what two spellings of one title have in common."""
    return "".join(filter(str.isalnum, text.casefold()))

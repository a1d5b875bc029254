"""Text, link text and prose weight of every element, in one pass over the tree.

Sizes are visible characters without blanks, a Han character counting twice (it
says about as much as two Latin letters). What scripts, styles and form controls
hold is not text.
"""

from __future__ import annotations

import re

from corpus.cleaning.tags import Element, name_set

INVISIBLE = name_set(
    """
    head script style noscript template iframe object embed applet select option optgroup textarea button
    input svg canvas audio video map datalist title meta link base frame frameset noframes
    """
)
BLOCKS = name_set(
    """
    html body main article section div p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead tbody tfoot
    tr td th pre blockquote figure figcaption header footer nav aside address details summary fieldset legend
    form center hgroup dir menu hr
    """
)
HEADINGS = name_set("h1 h2 h3 h4 h5 h6")
_CELLS = name_set("td th dt dd li caption figcaption") | HEADINGS
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FULL_PROSE = 60  # characters from which a block counts fully as prose


def size(text: str | None) -> int:
    """Characters without blanks, Han counted twice."""
    if not text or text.isspace():
        return 0
    count = len("".join(text.split()))
    return count if text.isascii() else count + len(_HAN.findall(text))


def visible_text(element: Element) -> str:
    """The element's text without scripts, styles and controls, blanks collapsed."""
    parts: list[str] = []
    skip_until: Element | None = None
    from lxml import etree

    for event, node in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            if skip_until is None and node.tag in INVISIBLE and node is not element:
                skip_until = node
            if skip_until is None:
                if node.tag in BLOCKS or node.tag == "br":
                    parts.append(" ")
                parts.append(node.text or "")
        else:
            if skip_until is node:
                skip_until = None
            if skip_until is None and node is not element:
                if node.tag in BLOCKS:
                    parts.append(" ")
                parts.append(node.tail or "")
    return " ".join("".join(parts).split())


class Measures:
    """Sizes of a tree's elements; kept right while elements are removed through ``forget``."""

    def __init__(self, root: Element) -> None:
        elements = list(root.iter("*"))
        # The list keeps the proxies, and so their identity, alive. It must be the last to let go of
        # them: lists are freed from the end, and lxml frees a removed subtree in linear time only so.
        self._index = {element: number for number, element in enumerate(elements)}
        self._elements = elements
        count = len(self._elements)
        self._text = [0] * count
        self._link = [0] * count
        self._links = [0] * count
        self._own = [0] * count
        self._own_link = [0] * count
        self._prose = [0.0] * count
        self._credit()
        self._weigh()

    def _credit(self) -> None:
        """Credit each stretch of text to its element and to its nearest block."""
        index = self._index
        block = [0] * len(self._elements)
        linked = [False] * len(self._elements)
        hidden = [False] * len(self._elements)
        for number, element in enumerate(self._elements):
            parent = element.getparent()
            up = index.get(parent, 0) if parent is not None else 0
            tag = element.tag
            inside = number > 0
            hidden[number] = (inside and hidden[up]) or tag in INVISIBLE
            is_link = tag == "a" and not (element.get("name") and element.get("href") is None)
            linked[number] = (inside and linked[up]) or is_link
            block[number] = number if tag in BLOCKS or not inside else block[up]
            if is_link and not hidden[number]:
                self._links[number] += 1
            if not hidden[number]:
                self._add(number, block[number], size(element.text), linked[number])
            if inside and not hidden[up]:
                self._add(up, block[up], size(element.tail), linked[up])

    def _add(self, number: int, block: int, amount: int, linked: bool) -> None:
        if not amount:
            return
        self._text[number] += amount
        self._own[block] += amount
        if linked:
            self._link[number] += amount
            self._own_link[block] += amount

    def _weigh(self) -> None:
        """Prose weight of each block, then all sums upward."""
        for number, element in enumerate(self._elements):
            own, link = self._own[number], self._own_link[number]
            free = own - link
            if free <= 0 or link > own * 0.5:
                continue
            share = 1.0 if free >= _FULL_PROSE else free / _FULL_PROSE
            if element.tag in _CELLS:
                share = max(share, 0.6)
            self._prose[number] = free * share
        for number in range(len(self._elements) - 1, 0, -1):
            parent = self._elements[number].getparent()
            if parent is None:
                continue
            up = self._index[parent]
            self._text[up] += self._text[number]
            self._link[up] += self._link[number]
            self._links[up] += self._links[number]
            self._prose[up] += self._prose[number]

    def text(self, element: Element) -> int:
        """Visible characters in the element."""
        return self._text[self._index[element]]

    def link(self, element: Element) -> int:
        """Of them, those in links."""
        return self._link[self._index[element]]

    def links(self, element: Element) -> int:
        """Number of links in the element."""
        return self._links[self._index[element]]

    def own(self, element: Element) -> int:
        """Characters outside links that stand in this block and in no block within it."""
        number = self._index[element]
        return self._own[number] - self._own_link[number]

    def prose(self, element: Element) -> float:
        """Weight of the element's prose and table cells; link lists weigh nothing."""
        return self._prose[self._index[element]]

    def density(self, element: Element) -> float:
        """Share of link text; 0 where there is no text."""
        number = self._index[element]
        return self._link[number] / self._text[number] if self._text[number] else 0.0

    def knows(self, element: Element) -> bool:
        """Whether the element was there when the tree was measured."""
        return element in self._index

    def forget(self, element: Element) -> None:
        """Take a removed element's sums from those of its ancestors. Call before removing it."""
        number = self._index[element]
        text, link, links, prose = (
            self._text[number],
            self._link[number],
            self._links[number],
            self._prose[number],
        )
        ancestor = element.getparent()
        while ancestor is not None:
            up = self._index[ancestor]
            self._text[up] -= text
            self._link[up] -= link
            self._links[up] -= links
            self._prose[up] -= prose
            ancestor = ancestor.getparent()

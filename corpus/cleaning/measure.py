"""Text, link text and prose weight of every element, in one pass over the tree.

Sizes are visible characters without blanks, a Han character counting twice (it
says about as much as two Latin letters). What scripts, styles and form controls
hold is not text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corpus.cleaning.parsing import Numbers
from corpus.cleaning.tags import Element, all_text, name_set

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
_SPACED = BLOCKS | {"br"}
_NOT_INLINE = _SPACED | INVISIBLE | {"img", "sub", "sup"}
_CELLS = name_set("td th dt dd li caption figcaption") | HEADINGS
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_FULL_PROSE = 60  # characters from which a block counts fully as prose


def size(text: str | None) -> int:
    """Characters without blanks, Han counted twice."""
    if not text or text.isspace():
        return 0
    count = len("".join(text.split()))
    return count if text.isascii() else count + sum(map(len, _HAN.findall(text)))


def characters(text: str) -> int:
    """Characters without blanks, each counted once: what a person is told."""
    return len("".join(text.split()))


def visible_text(element: Element) -> str:
    """The element's text without scripts, styles and controls, blanks collapsed."""
    return _shown(element, lambda node: not len(node))


def _shown(element: Element, is_whole: Callable[[Element], bool]) -> str:
    """Visible text; an element of which ``is_whole`` holds is read in one piece, with nothing hidden inside."""
    if is_whole(element):
        return " ".join(all_text(element).split())
    parts: list[str] = [element.text or ""]
    open_nodes: list[tuple[Iterator[Element], Element]] = [(iter(element), element)]
    while open_nodes:
        children, parent = open_nodes[-1]
        for child in children:
            tag = child.tag
            if tag not in INVISIBLE:
                if tag in _SPACED:
                    parts.append(" ")
                if not is_whole(child):
                    parts.append(child.text or "")
                    open_nodes.append((iter(child), child))
                    break
                parts.append(all_text(child))
                if tag in _SPACED:
                    parts.append(" ")
            parts.append(child.tail or "")
        else:
            open_nodes.pop()
            if parent is not element:
                if parent.tag in _SPACED:
                    parts.append(" ")
                parts.append(parent.tail or "")
    return " ".join("".join(parts).split())


def _prose(tags: list[str], own: list[int], own_link: list[int]) -> list[float]:
    """Prose weight of each block's own text; link lists weigh nothing."""
    prose = [0.0] * len(own)
    for number, amount in enumerate(own):
        free = amount - own_link[number]
        if free <= 0 or own_link[number] > amount * 0.5:
            continue
        share = 1.0 if free >= _FULL_PROSE else free / _FULL_PROSE
        if share < 0.6 and tags[number] in _CELLS:
            share = 0.6
        prose[number] = free * share
    return prose


class Measures:
    """Sizes of a tree's elements; kept right while elements are removed through ``forget``."""

    def __init__(self, root: Element, numbers: Numbers | None = None) -> None:
        """Measure a tree. ``numbers``: those of the same tree, if nothing in it has moved since."""
        elements = list(root.iter("*")) if numbers is None else list(numbers.elements)
        # The list keeps the proxies, and so their identity, alive. It must be the last to let go of
        # them: lists are freed from the end, and lxml frees a removed subtree in linear time only so.
        self._index = dict(zip(elements, range(len(elements)), strict=True))
        self._elements = elements
        self._measure(numbers.parents if numbers is not None else self._parents())

    def _parents(self) -> list[int]:
        index = self._index
        parents = [index.get(element.getparent(), 0) for element in self._elements]  # type: ignore[arg-type]
        parents[0] = 0
        return parents

    def _measure(self, parents: list[int]) -> None:
        """Credit each stretch of text to its element and its nearest block, weigh blocks, sum upward.

        One loop over the tree: this is most of what cleaning a page costs.
        """
        count = len(self._elements)
        text, link, own, own_link = [0] * count, [0] * count, [0] * count, [0] * count
        links, inner = [0] * count, [0] * count
        block, linked, hidden = [0] * count, [False] * count, [False] * count
        tags = [sys.intern(str(element.tag)) for element in self._elements]
        for number, element in enumerate(self._elements):
            tag = tags[number]
            if number:
                up = parents[number]
                in_link, unseen = linked[up], hidden[up]
            else:
                up, in_link, unseen = 0, False, False
            tail = element.tail
            if tail and number and not unseen and not tail.isspace():
                amount = len("".join(tail.split())) if tail.isascii() else size(tail)
                text[up] += amount
                nearest = block[up]
                own[nearest] += amount
                if in_link:
                    link[up] += amount
                    own_link[nearest] += amount
            block[number] = nearest = number if tag in BLOCKS or not number else block[up]
            unseen = unseen or tag in INVISIBLE
            if unseen:
                hidden[number] = True
            if tag == "a" and not (element.get("name") and element.get("href") is None):
                in_link = True
                if not unseen:
                    links[number] = 1
            if in_link:
                linked[number] = True
            words = element.text
            if words and not unseen and not words.isspace():
                amount = len("".join(words.split())) if words.isascii() else size(words)
                text[number] += amount
                own[nearest] += amount
                if in_link:
                    link[number] += amount
                    own_link[nearest] += amount
        prose = _prose(tags, own, own_link)
        for number in range(count - 1, 0, -1):
            up = parents[number]
            text[up] += text[number]
            link[up] += link[number]
            links[up] += links[number]
            prose[up] += prose[number]
            inner[up] += inner[number] + (tags[number] in _NOT_INLINE)
        self._inner = inner
        self._text, self._link, self._links = text, link, links
        self._own, self._own_link, self._prose = own, own_link, prose

    def simple(self, element: Element) -> bool:
        """Whether nothing but inline text stands inside: no block, break, script, picture or control."""
        number = self._index.get(element)
        return number is not None and not self._inner[number]

    def visible(self, element: Element) -> str:
        """``visible_text``, in one call of the parser's for each part in which only inline text stands."""
        return _shown(element, self.simple)

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

    def adopt(
        self, made: Element, raw: Element, heading: Element | None = None, leads: Sequence[Element] = ()
    ) -> None:
        """Measure an element that takes over another's content, led by a made heading and by other elements."""
        number = self._append(made, self._index[raw])
        for lead in leads:
            source = self._index[lead]
            self._text[number] += self._text[source]
            self._link[number] += self._link[source]
            self._links[number] += self._links[source]
            self._prose[number] += self._prose[source]
            self._inner[number] += self._inner[source]
            self._inner[number] += 1
        if heading is not None:
            amount = size(heading.text)
            top = self._append(heading, None)
            self._text[top] = self._own[top] = amount
            self._prose[top] = amount * min(1.0, max(0.6, amount / _FULL_PROSE))
            self._text[number] += amount
            self._prose[number] += self._prose[top]
            self._inner[number] += 1
        parent = made.getparent()
        if parent is not None and parent in self._index:  # it holds nothing else now
            self._copy(number, self._index[parent])
            self._inner[self._index[parent]] += 1

    def _append(self, element: Element, like: int | None) -> int:
        self._index[element] = number = len(self._text)
        self._elements.append(element)
        for values in self._lists():
            values.append(0 if like is None else values[like])
        return number

    def _copy(self, source: int, target: int) -> None:
        for values in self._lists():
            values[target] = values[source]

    def _lists(self) -> tuple[list[Any], ...]:
        return self._text, self._link, self._links, self._own, self._own_link, self._prose, self._inner

    def knows(self, element: Element) -> bool:
        """Whether the element was there when the tree was measured."""
        return element in self._index

    def forget(self, element: Element) -> None:
        """Take a removed element's sums from those of its ancestors. Call before removing it."""
        number = self._index[element]
        text, link, links = self._text[number], self._link[number], self._links[number]
        prose, inner = self._prose[number], self._inner[number] + (element.tag in _NOT_INLINE)
        ancestor = element.getparent()
        while ancestor is not None:
            up = self._index[ancestor]
            self._text[up] -= text
            self._link[up] -= link
            self._links[up] -= links
            self._prose[up] -= prose
            self._inner[up] -= inner
            ancestor = ancestor.getparent()

"""Text, link text and prose weight of every element, in one pass over the tree.

Sizes are visible characters without blanks, a Han character counting twice (it
says about as much as two Latin letters). What scripts, styles and form controls
hold is not text.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corpus.cleaning.parsing import Numbers
from corpus.cleaning.tags import Element, all_text, name_set, squashed

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
_BLOCK, _UNSEEN, _APART, _OTHER = 1, 2, 4, 8
#: Tag → what it is to a measurement, as bits: one look-up for each element instead of four.
_KINDS: dict[Any, int] = {
    tag: _BLOCK * (tag in BLOCKS) + _UNSEEN * (tag in INVISIBLE) + _APART * (tag in _SPACED) + _OTHER
    for tag in _NOT_INLINE
}
_CELLS = name_set("td th dt dd li caption figcaption") | HEADINGS
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_LONG = 100_000
_REMEMBERED, _KNOWN = 320, 5000  # length and number of the visible texts that are remembered
_MANY = 20_000  # parts of a text from which on they are joined
_FULL_PROSE = 60  # characters from which a block counts fully as prose


def size(text: str | None) -> int:
    """Characters without blanks, Han counted twice."""
    if not text or text.isspace():
        return 0
    if len(text) > _LONG:  # in stretches: as words it would take ten times its room
        return sum(size(text[start : start + _LONG]) for start in range(0, len(text), _LONG))
    count = len("".join(text.split()))
    return count if text.isascii() else count + sum(map(len, _HAN.findall(text)))


def characters(text: str) -> int:
    """Characters without blanks, each counted once: what a person is told."""
    return len("".join(text.split()))


def visible_text(element: Element) -> str:
    """The element's text without scripts, styles and controls, blanks collapsed."""
    return _shown(element, _is_leaf)


def _is_leaf(element: Element) -> bool:
    return not len(element)


def _shown(element: Element, is_whole: Callable[[Element], bool]) -> str:
    """Visible text; an element of which ``is_whole`` holds is read in one piece, with nothing hidden inside."""
    if is_whole(element):
        return squashed(all_text(element))
    parts: list[str] = [element.text or ""]  # joined now and then, for a large page's sake
    open_nodes: list[tuple[Iterator[Element], Element, bool]] = [(iter(element), element, False)]
    while open_nodes:
        children, parent, apart = open_nodes[-1]
        for child in children:
            kind = _KINDS.get(child.tag, 0)
            if not kind & _UNSEEN:
                if kind & _APART:
                    parts.append(" ")
                if not is_whole(child):
                    parts.append(child.text or "")
                    open_nodes.append((iter(child), child, bool(kind & _APART)))
                    break
                if len(parts) > _MANY:
                    parts = ["".join(parts)]
                parts.append(all_text(child))
                if kind & _APART:
                    parts.append(" ")
            if tail := child.tail:
                parts.append(tail)
        else:
            open_nodes.pop()
            if parent is not element:
                if apart:
                    parts.append(" ")
                if tail := parent.tail:
                    parts.append(tail)
    return squashed("".join(parts))


def _weight(amount: int, linked: int, tag: Any) -> float:
    """Prose weight of a block's own text, of which ``linked`` stands in links; link lists weigh nothing."""
    free = amount - linked
    if free <= 0 or linked > amount * 0.5:
        return 0.0
    share = 1.0 if free >= _FULL_PROSE else free / _FULL_PROSE
    if share < 0.6 and tag in _CELLS:
        share = 0.6
    return free * share


def is_link(element: Element) -> bool:
    """Whether an ``a`` leads somewhere; the anchors of old pages (a name, no address) do not."""
    return element.get("href") is not None or not element.get("name")


class Outline:
    """What rendering and the features of a finished tree ask: which elements hold inline text alone, and few sizes.

    Answers as ``Measures`` of the same tree would, without measuring every element.
    """

    def __init__(self, root: Element) -> None:
        self._root = root
        self._hiding = next(root.iter(*INVISIBLE), None) is not None
        self._mixed: set[Element] = {root}
        for element in root.iter(*_NOT_INLINE):
            node = element.getparent() if element is not root else None
            while node is not None and node not in self._mixed:
                self._mixed.add(node)
                node = node.getparent()

    def simple(self, element: Element) -> bool:
        """Whether nothing but inline text stands inside: no block, break, script, picture or control."""
        return element not in self._mixed

    def visible(self, element: Element) -> str:
        """``visible_text``, in one call of the parser's for each part in which only inline text stands."""
        return _shown(element, self.simple)

    def text(self, element: Element) -> int:
        """Visible characters in the element."""
        if not self._is_seen(element):
            return 0
        # sizes leave blanks out: where nothing is hidden, those that part blocks need not be put in first
        return size(self.visible(element) if self._hiding else all_text(element))

    def links(self) -> tuple[int, int]:
        """Number of links that are seen, and the visible characters in them."""
        links = [link for link in self._root.iter("a") if is_link(link) and self._is_seen(link)]
        outer = [link for link in links if not any(map(is_link, link.iterancestors("a")))]
        return len(links), size("".join(map(self.visible if self._hiding else all_text, outer)))

    def _is_seen(self, element: Element) -> bool:
        if not self._hiding:
            return True
        if element.tag in INVISIBLE:
            return False
        node = element
        while node is not self._root and (parent := node.getparent()) is not None:
            if parent.tag in INVISIBLE:
                return False
            node = parent
        return True


class Measures:
    """Sizes of a tree's elements; kept right while elements are removed through ``forget``."""

    def __init__(self, root: Element, numbers: Numbers | None = None) -> None:
        """Measure a tree. ``numbers``: those of the same tree, if nothing in it has moved since."""
        self._shown: dict[int, str] = {}
        if numbers is not None:
            # the made elements that measures adopt are those that the numbers adopt, in the same order
            self._index = numbers.index
            self._elements = numbers.elements
            self._measure(self._elements, numbers.parents)
            return
        elements = list(root.iter("*"))
        # The list keeps the proxies, and so their identity, alive. It must be the last to let go of
        # them: lists are freed from the end, and lxml frees a removed subtree in linear time only so.
        index = dict(zip(elements, range(len(elements)), strict=True))
        parents = [index.get(element.getparent(), 0) for element in elements]  # type: ignore[arg-type]
        self._index = index
        self._elements = elements
        self._measure(elements, parents)

    def _measure(self, elements: list[Element], parents: Sequence[int]) -> None:
        """Credit each stretch of text to its element and its nearest block, weigh blocks, sum upward.

        One loop over the tree: this is much of what cleaning a page costs. In arrays, since a
        list of numbers takes up to five times the memory.
        """
        count = len(elements)
        text, link, links, own, own_link, inner, block = (array("i", bytes(4 * count)) for _ in range(7))
        prose = array("d", bytes(8 * count))
        linked, hidden = bytearray(count), bytearray(count)
        tags = [element.tag for element in elements]
        kinds = bytes(_KINDS.get(tag, 0) for tag in tags)
        for number, element in enumerate(elements):
            kind = kinds[number]
            up = parents[number] if number else 0
            in_link, unseen, nearest = linked[up], hidden[up], block[up]
            if not unseen and number and (tail := element.tail) and not tail.isspace():
                amount = len("".join(tail.split())) if len(tail) < _LONG and tail.isascii() else size(tail)
                text[up] += amount
                own[nearest] += amount
                if in_link:
                    link[up] += amount
                    own_link[nearest] += amount
            if kind & _BLOCK:
                nearest = number
            block[number] = nearest
            if kind & _UNSEEN:
                unseen = 1
            hidden[number] = unseen
            if tags[number] == "a" and is_link(element):
                in_link = 1
                if not unseen:
                    links[number] = 1
            linked[number] = in_link
            if not unseen and (words := element.text) and not words.isspace():
                amount = (
                    len("".join(words.split())) if len(words) < _LONG and words.isascii() else size(words)
                )
                text[number] += amount
                own[nearest] += amount
                if in_link:
                    link[number] += amount
                    own_link[nearest] += amount
        for number, amount in enumerate(own):
            if amount:
                prose[number] = _weight(amount, own_link[number], tags[number])
        for number in range(count - 1, 0, -1):
            up = parents[number]
            if text[number]:
                text[up] += text[number]
                link[up] += link[number]
                prose[up] += prose[number]
            links[up] += links[number]
            inner[up] += inner[number] + (kinds[number] != 0)
        self._inner = inner
        self._text, self._link, self._links = text, link, links
        self._own, self._own_link, self._prose = own, own_link, prose

    def simple(self, element: Element) -> bool:
        """Whether nothing but inline text stands inside: no block, break, script, picture or control."""
        number = self._index.get(element)
        return number is not None and not self._inner[number]

    def visible(self, element: Element) -> str:
        """``visible_text``, in one call of the parser's for each part in which only inline text stands.

        Short texts are remembered until something within is removed: rules ask for them again and again.
        """
        number = self._index.get(element)
        known = self._shown.get(number) if number is not None else None
        if known is None:
            known = _shown(element, self.simple)
            if number is not None and len(known) <= _REMEMBERED and len(self._shown) < _KNOWN:
                self._shown[number] = known
        return known

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
        self._shown.clear()  # texts have moved
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
        number = len(self._text)
        if self._index.setdefault(element, number) != number:
            raise ValueError("numbers and measures adopted elements in different order")
        if len(self._elements) == number:  # else the numbers, whose list it is, have it already
            self._elements.append(element)
        for values in self._lists():
            values.append(0 if like is None else values[like])
        return number

    def _copy(self, source: int, target: int) -> None:
        for values in self._lists():
            values[target] = values[source]

    def _lists(self) -> tuple[array[Any], ...]:
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
            self._shown.pop(up, None)
            self._text[up] -= text
            self._link[up] -= link
            self._links[up] -= links
            self._prose[up] -= prose
            self._inner[up] -= inner
            ancestor = ancestor.getparent()

"""What each cleaning removed, and by which rule: for people who look into a page.

``clean_page`` reports to a ``Trace`` where one is given. Without one nothing is
noted down and nothing is slower.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from corpus.cleaning.measure import visible_text
from corpus.cleaning.parsing import MARK
from corpus.cleaning.tags import Element, squashed


@dataclass(frozen=True)
class Removal:
    """One element, or text between elements, that structural cleaning took out.

    ``number`` is its document-order number in the raw tree (-1 for text, and for an element
    that cleaning had made itself), ``tag`` is ``#text`` for text, ``text`` what was visible.
    """

    rule: str
    tag: str
    number: int
    text: str


@dataclass
class Trace:
    """Stages of one page: HTML of the body after each cleaning, removals by rule.

    ``stages``: ``raw``, ``structural``, ``functional``, ``attribute`` → HTML of the
    body; every element carries its document-order number in ``MARK``, by which what
    two stages differ in can be told.
    """

    stages: dict[str, str] = field(default_factory=dict)
    removals: list[Removal] = field(default_factory=list)

    def stage(self, name: str, root: Element) -> None:
        """Note the tree as it stands."""
        body = root.find("body")
        shown = root if body is None else body
        self.stages[name] = etree.tostring(shown, encoding="unicode", method="html", with_tail=False)

    def removal(self, rule: str, element: Element) -> None:
        """Note an element that is about to go."""
        self.removals.append(
            Removal(rule, str(element.tag), int(element.get(MARK, "-1")), visible_text(element))
        )

    def loose_text(self, rule: str, text: str) -> None:
        """Note a stretch of text between elements that is about to go."""
        self.removals.append(Removal(rule, "#text", -1, squashed(text)))

"""Structural cleaning: navigation, banners, side bars, comments and the like go.

Rules in order: hidden nodes, landmarks (tags and roles), class words, the
cluster's template, teaser cards, then the container is chosen and pruned. What
carries identifiers or quantities outside links is never removed on a word's
evidence alone, and no rule removes a large share of the page's prose.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from corpus.cleaning import vocabulary as words
from corpus.cleaning.container import choose_container, page_heading, place_container
from corpus.cleaning.layout import TableKinds
from corpus.cleaning.measure import HEADINGS, Measures, visible_text
from corpus.cleaning.parsing import Numbers, drop
from corpus.cleaning.pruning import prune
from corpus.cleaning.tags import Element, folded, name_set
from corpus.cleaning.template import Template, template_elements
from corpus.cleaning.tracing import Trace

_LANDMARK_TAGS = name_set("nav footer aside header dialog menu")
_LANDMARK_ROLES = name_set(
    """
    navigation banner contentinfo complementary search dialog alertdialog menu menubar toolbar tablist
    """
)
_WORDED_TAGS = name_set(
    """
    div section ul ol dl table p span a form center figure details h2 h3 h4 h5 h6 td iframe li small
    """
)
_SECTIONING = name_set("article main")
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CARD_TAGS = name_set("div li article section a")
_FOOTNOTES = 8
_FOLDED = 40  # text outside links from which a folded part is content
_LARGE_SHARE = 0.35
_SUBSTANTIAL = 200
_LONG_PROSE = 900  # no block of so much text goes on the evidence of a class word
_ROUNDS = 6


@dataclass
class Structural:
    """Outcome of the structural cleaning: counts by rule, the page's own heading."""

    removed: Counter[str] = field(default_factory=Counter)
    heading: str = ""
    prose_before: float = 0.0
    prose_after: float = 0.0


def clean_structure(
    root: Element,
    numbers: Numbers,
    measures: Measures,
    template: Template | None = None,
    *,
    title: str = "",
    gentle: bool = False,
    trace: Trace | None = None,
) -> Structural:
    """Reduce a parsed page to its main content, in place. The tree's body then holds one ``main``.

    ``measures`` are those of the tree as given.

    ``gentle`` leaves out class words and the choice of a container: the second
    try for a page of which the first one kept too little.
    """
    outcome = Structural()
    body = root.find("body")
    if body is None:
        return outcome
    outcome.prose_before = measures.prose(body)
    cleaner = _Cleaner(body, numbers, measures, outcome.removed, trace)
    heading = page_heading(body, measures, title)
    outcome.heading = visible_text(heading) if heading is not None else ""
    cleaner.hidden()
    cleaner.landmarks(heading)
    if template is not None:
        cleaner.template(template)
    if not gentle:
        cleaner.worded()
        cleaner.cards()
    container, leads = (body, []) if gentle else choose_container(body, measures, heading)
    place_container(
        body, container, heading, outcome.heading, numbers, measures, outcome.removed, trace, leads
    )
    _settle(body, title, numbers, measures, outcome.removed, trace, narrow=not gentle)
    outcome.prose_after = measures.prose(body)
    return outcome


def _settle(
    body: Element,
    title: str,
    numbers: Numbers,
    measures: Measures,
    removed: Counter[str],
    trace: Trace | None,
    *,
    narrow: bool,
) -> None:
    """Prune and narrow until nothing changes: a removal can leave its surroundings poor."""
    for _ in range(_ROUNDS):
        changed = prune(body[0], measures, removed, trace)
        heading = page_heading(body, measures, title)
        container, leads = choose_container(body, measures, heading) if narrow else (body, [])
        if container is not body and container is not body[0]:
            text = visible_text(heading) if heading is not None else ""
            place_container(body, container, heading, text, numbers, measures, removed, trace, leads)
        elif not changed:
            break


class _Cleaner:
    def __init__(
        self,
        body: Element,
        numbers: Numbers,
        measures: Measures,
        removed: Counter[str],
        trace: Trace | None,
    ) -> None:
        self.body = body
        self.numbers = numbers
        self.trace = trace
        self.tables = TableKinds()
        self.measures = measures
        self.removed = removed

    def remove(self, element: Element, rule: str) -> None:
        if self.trace is not None:
            self.trace.removal(rule, element)
        self.measures.forget(element)
        drop(element)
        self.removed[rule] += 1

    def _large(self, element: Element) -> bool:
        """Whether the element holds a large share of the prose that is left."""
        prose = self.measures.prose(element)
        return prose > 120 and prose > _LARGE_SHARE * self.measures.prose(self.body)

    def _protected(self, element: Element) -> bool:
        """Facts outside links, or a large share of the prose."""
        if self._large(element):
            return True
        if self.measures.text(element) < 8 or self.measures.density(element) > 0.5:
            return False
        text = self.measures.visible(element)
        if words.CAS.search(text) or words.IDENTIFIER.search(text):
            return True
        if len(words.QUANTITY.findall(text)) >= 3:
            return True
        names = words.words(f"{element.get('class', '')} {element.get('id', '')}")
        return not any(name in words.CHATTER for name in names) and words.is_statement(text)

    def hidden(self) -> None:
        """Nodes that a reader does not see; folded and tabbed content stays."""
        for element in self.numbers.styled:
            if not _is_hidden(element) or not _attached(element, self.body):
                continue
            names = words.words(f"{element.get('class', '')} {element.get('id', '')}")
            folds = any(name in words.COLLAPSED for name in names) or element.get("role") == "tabpanel"
            substantial = self.measures.text(element) - self.measures.link(element) >= _FOLDED
            if (folds and substantial) or self._protected(element) or element.tag in {"tr", "td", "th"}:
                continue
            self.remove(element, "hidden")

    def landmarks(self, heading: Element | None) -> None:
        """nav, footer, aside, header and their roles; article headers and infobox asides stay."""
        for element in self._landmarks():
            role = (element.get("role") or "").lower()
            if element.tag not in _LANDMARK_TAGS and role not in _LANDMARK_ROLES:
                continue
            if not _attached(element, self.body) or self._kept_landmark(element, role, heading):
                continue
            self.remove(element, f"landmark:{role if role in _LANDMARK_ROLES else element.tag}")

    def _landmarks(self) -> list[Element]:
        """Elements with a landmark's tag or any role, in document order."""
        found = {*self.body.iter(*_LANDMARK_TAGS), *self.numbers.with_role}
        return sorted(found, key=self.numbers.number)

    def _kept_landmark(self, element: Element, role: str, heading: Element | None) -> bool:
        if self._protected(element):
            return True
        in_article = any(ancestor.tag in _SECTIONING for ancestor in element.iterancestors())
        if element.tag == "header" and in_article:
            return self.measures.density(element) < 0.5
        if heading is not None and element.tag == "header" and element in heading.iterancestors():
            return False  # the heading is taken over by place_container
        if element.tag == "aside" or role == "complementary":
            names = words.words(f"{element.get('class', '')} {element.get('id', '')}")
            return any(name in words.INFOBOX for name in names)
        return False

    def worded(self) -> None:
        """Elements whose class or id says what they are."""
        for element in self.numbers.named:
            if element.tag not in _WORDED_TAGS:
                continue
            if not words.may_be_furniture(element.get("class", ""), element.get("id", "")):
                continue
            # a heading is judged by what it says: ``<h2 id="See_also">`` goes with the list under it
            own_id = (
                "" if element.tag in HEADINGS or self._named_after_heading(element) else element.get("id", "")
            )
            classes = words.evidence(element.get("class", ""))
            names = words.words(f"{classes} {own_id}")
            if not words.is_furniture(names) or not _attached(element, self.body):
                continue
            if (
                self._excused(element, names, f"{classes} {own_id}")
                or self._protected(element)
                or self._is_heading_text(element)
            ):
                continue
            self.remove(element, f"words:{next((n for n in names if n in words.FURNITURE), 'pair')}")

    def _named_after_heading(self, element: Element) -> bool:
        """``<section id="ad-hoc-parameters"><h2>Ad hoc parameters``: the id is a link target, no role."""
        if element.tag not in {"section", "div", "article"} or not element.get("id") or not len(element):
            return False
        heading = next(element.iter(*HEADINGS), None)
        if heading is None:
            return False
        slug = folded(element.get("id", ""))
        return len(slug) >= 4 and folded(self.measures.visible(heading)).startswith(slug)

    def _is_heading_text(self, element: Element) -> bool:
        """A heading's text: ``<h2><span id="See_also">``. Pruning judges headings by what they say."""
        parent = element.getparent()
        if parent is None or parent.tag not in HEADINGS:
            return False
        return 2 * self.measures.text(element) > self.measures.text(parent)

    def _excused(self, element: Element, names: tuple[str, ...], classes: str) -> bool:
        if any(name in words.INFOBOX for name in names):
            return True
        if element.tag == "td" and self.tables.holds(element):
            return True  # a column may be named "share" or "comments"
        density = self.measures.density(element)
        if self._in_cell(element):
            return True  # a folding frame round a label and its value leads nowhere
        if _notes_of_table(element):
            return True
        if element.tag in {"table", "td"} and density < 0.5 and self.measures.text(element) > 60:
            return True
        if any(name in words.TALKATIVE for name in names) or density >= 0.3:
            return False
        prose = self.measures.prose(element)
        # "article-content": a place of content that only mentions furniture
        return prose > _LONG_PROSE or (prose > _SUBSTANTIAL and words.says_content(classes))

    def _in_cell(self, element: Element) -> bool:
        """In a data cell (or definition) that is not mostly links: its label may be one."""
        cell = next(element.iterancestors("td", "th", "dd"), None)
        if cell is None or not self.measures.knows(cell) or self.measures.density(cell) >= 0.5:
            return False
        return cell.tag == "dd" or self.tables.holds(cell)

    def template(self, template: Template) -> None:
        """Blocks that repeat verbatim on most pages of the cluster."""
        for element in template_elements(self.body, template, self.measures):
            if _attached(element, self.body) and not self._large(element):
                self.remove(element, "template")

    def cards(self) -> None:
        """Three or more like siblings, each a linked heading or picture with a short teaser."""
        for parent in list(self.body.iter("div", "ul", "section", "main", "article", "aside")):
            children = [child for child in parent if self.measures.text(child)]
            if len(children) < 3 or not _attached(parent, self.body):
                continue
            cards = [child for child in children if self._is_card(child)]
            if len(cards) < 3 or len(cards) < 0.8 * len(children):
                continue
            total = sum(self.measures.prose(card) for card in cards)
            if total > 0.4 * self.measures.prose(self.body):
                continue
            for card in cards:
                self.remove(card, "teaser_cards")

    def _is_card(self, element: Element) -> bool:
        if element.tag not in _CARD_TAGS:
            return False
        free = self.measures.text(element) - self.measures.link(element)
        if free > 240 or not (self.measures.links(element) or element.tag == "a"):
            return False
        leads = next((node for node in element.iter("a", *HEADINGS, "img")), None)
        if leads is None:
            return False
        if not any(
            next(node.iter("a"), None) is not None or next(node.iterancestors("a"), None) is not None
            for node in element.iter(*HEADINGS)
        ) and (next(element.iter("img"), None) is None or not self._leads_on(element)):
            return False
        return not words.CAS.search(self.measures.visible(element))

    def _leads_on(self, element: Element) -> bool:
        """Whether the text begins with its link, as a teaser's does; a caption links words within a sentence."""
        if next(element.iter("figcaption"), None) is not None:
            return False
        for link in element.iter("a"):
            shown = self.measures.visible(link)
            if shown:
                return self.measures.visible(element).startswith(shown)
        return False


def _notes_of_table(element: Element) -> bool:
    """A short list of notes right under a table, with facts in plain text: the table's footnotes."""
    previous = element.getprevious()
    if previous is None or previous.tag != "table" or sum(1 for _ in element.iter("li")) > _FOOTNOTES:
        return False
    return words.has_facts(visible_text(element))


def _is_hidden(element: Element) -> bool:
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return True
    style = element.get("style")
    if style and _HIDING_STYLE.search(style):
        return True
    return element.get("aria-hidden") == "true" and element.tag not in {"body", "main", "article"}


def _attached(element: Element, body: Element) -> bool:
    """Whether the element still hangs on the body (it goes when an ancestor goes)."""
    node: Element | None = element
    while node is not None:
        if node is body:
            return True
        node = node.getparent()
    return False

"""Pruning inside the container: link lists, furniture texts and sections, citation marks, empties."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from corpus.cleaning import vocabulary as words
from corpus.cleaning.layout import TableKinds
from corpus.cleaning.measure import BLOCKS, HEADINGS, INVISIBLE, Measures
from corpus.cleaning.parsing import drop
from corpus.cleaning.tags import Element, all_text, name_set
from corpus.cleaning.tracing import Trace

_CITATION = re.compile(
    r"^\s*[\[［【]\s*(?:note|n|nb|注|註)?\s*[\d,，、;–\-\s]{1,24}\s*[\]］】]\s*$|^\s*\[[a-z]{1,2}\]\s*$"
)
_CITATION_NEEDED = re.compile(
    r"^\s*\[(?:citation needed|clarification needed|who\?|when\?|来源请求|來源請求)\]\s*$"
)
_EDIT_LINK = re.compile(
    r"^[\s\[\]【】|·]*(?:edit(?: source)?|编辑(?:本段)?|編輯|播报|收藏|讨论|¶|#|§|🔗|permalink|link)[\s\[\]【】|·]*$",
    re.IGNORECASE,
)
_HEADING_TEXT = 60
_ARTICLE = 400  # prose from which a place with several headings is an article
_NUMBER_MARK = re.compile(r"^\s*\d{1,3}\s*$")
_LINK_LISTS = name_set("ul ol dl div section p table td center nav span details h2 h3 h4 h5 h6")
_LIST_TAGS = name_set("ul ol dl table p")
_VOID_CONTENT = name_set("img br hr wbr td th tr tbody thead tfoot col colgroup caption table main body")
_SHORT_TAGS = name_set(
    "p div span li a small font center td h2 h3 h4 h5 h6 strong b section ul dd label em i"
)


def prune(main: Element, measures: Measures, removed: Counter[str], trace: Trace | None = None) -> int:
    """One round of all rules, in place. Returns how many elements went (0: stable)."""
    before = sum(removed.values())
    pruner = _Pruner(main, measures, removed, trace)
    pruner.citations()
    pruner.edit_links()
    pruner.furniture_sections()
    pruner.furniture_texts()
    pruner.link_lists()
    pruner.empties()
    return sum(removed.values()) - before


class _Pruner:
    def __init__(self, main: Element, measures: Measures, removed: Counter[str], trace: Trace | None) -> None:
        self.trace = trace
        self.main = main
        self.measures = measures
        self.removed = removed
        self._gone: set[int] = set()  # ids of elements that the measures keep alive
        self._tables = TableKinds()

    def _remove(self, element: Element, rule: str) -> None:
        if self.trace is not None:
            self.trace.removal(rule, element)
        self.measures.forget(element)
        self._gone.update(map(id, element.iter("*")))
        drop(element)
        self.removed[rule] += 1

    def citations(self) -> None:
        """``[12]``-like superscripts, and superscript numbers that link within the page."""
        for mark in list(self.main.iter("sup")):
            if id(mark) in self._gone:
                continue
            text = all_text(mark)
            link = next(mark.iter("a"), None)
            if link is None:
                link = mark.getparent()
            inner = link is not None and link.tag == "a" and (link.get("href") or "").startswith("#")
            in_page = inner and _NUMBER_MARK.match(text)
            if _CITATION.match(text) or _CITATION_NEEDED.match(text) or in_page:
                self._remove(mark, "citation_mark")

    def edit_links(self) -> None:
        """Edit, listen and anchor links that stand in headings."""
        for heading in self.main.iter(*HEADINGS):
            for link in list(heading.iter("a", "span", "small")):
                if id(link) in self._gone or link.getparent() is None:
                    continue
                if _EDIT_LINK.match(all_text(link)) and self.measures.text(heading) > self.measures.text(
                    link
                ):
                    self._remove(link, "edit_link")

    def furniture_sections(self) -> None:
        """Headings such as "Related articles", "参考资料" with the lists under them."""
        for heading in self._heading_like():
            if id(heading) in self._gone:
                continue
            if self.measures.text(heading) > 2 * _HEADING_TEXT:
                continue  # counted twice at most
            text = self.measures.visible(heading)
            if len(text) > _HEADING_TEXT or not (
                words.FURNITURE_HEADING.match(text) or words.APPEAL_HEADING.match(text)
            ):
                continue
            section = _section(heading)
            notes = bool(words.NOTES_HEADING.match(text))
            leads = bool(words.LEADS_HEADING.match(text))
            appeal = bool(words.APPEAL_HEADING.match(text))
            if any(
                not self._sheds(part, notes, leads) and not (appeal and self._is_appeal(part))
                for part in section
            ):
                continue
            for part in (*section, heading):
                self._remove(part, "furniture_section")

    def _heading_like(self) -> Iterable[Element]:
        for element in list(self.main.iter(*HEADINGS, "p", "div", "dt", "strong", "b")):
            tag = element.tag
            if tag in HEADINGS:
                if not _is_heading_wrapper(element.getparent()):
                    yield element
            elif tag == "div" and _is_heading_wrapper(element):
                yield element
            elif not len(element) and self.measures.text(element) <= 40:
                if tag == "dt" and not self._labels_links(element):
                    continue  # a label, with its value
                if tag in {"strong", "b"} and not _alone(element):
                    continue
                yield element

    def _labels_links(self, label: Element) -> bool:
        value = label.getnext()
        return value is not None and self.measures.knows(value) and self.measures.density(value) >= 0.5

    def _sheds(self, part: Element, notes: bool, leads: bool) -> bool:
        """Whether a part of a furniture section may go: links, or references, no facts in plain text."""
        measures = self.measures
        text = measures.text(part)
        if not text or measures.density(part) >= 0.5:
            return True
        if text < 30 and measures.links(part):
            said = measures.visible(part)
            return not words.has_facts(said) and not words.is_statement(said)
        items = sum(1 for _ in part.iter("li"))
        if notes and items and measures.links(part) >= 0.5 * items:
            return True
        if leads and 0 < items <= measures.links(part):
            said = measures.visible(part)
            return not words.has_facts(said) and not words.is_statement(said)
        return items > 0 and measures.links(part) >= items and measures.density(part) >= 0.3

    def _is_appeal(self, part: Element) -> bool:
        text = self.measures.visible(part)
        return self.measures.text(part) <= 300 and not words.has_facts(text) and not words.is_statement(text)

    def furniture_texts(self) -> None:
        """Short blocks that are furniture by what they say."""
        for element in list(self.main.iter(*_SHORT_TAGS)):
            if not 0 < self.measures.text(element) <= 2 * words.SHORT_TEXT or id(element) in self._gone:
                continue
            tag = element.tag
            if tag == "td" and self._is_closing_link(element):
                self._remove_row(element)
                continue
            if tag not in BLOCKS and not _alone(element):
                continue
            text = self.measures.visible(element)
            if len(text) > words.SHORT_TEXT or not (verdict := _furniture_verdict(text)):
                continue
            if tag == "td" and self._tables.holds(element):
                continue
            if verdict == "text":
                self._remove(element, "furniture_text")
            elif self.measures.density(element) >= 0.4:
                self._remove(element, "link_line")

    def _is_closing_link(self, cell: Element) -> bool:
        """The last row of a table, one cell wide, that is a link and nothing else: "Infobox references"."""
        row = cell.getparent()
        if (
            row is None
            or len(row) != 1
            or self.measures.density(cell) < 0.9
            or cell.find(".//img") is not None
        ):
            return False
        if self.measures.text(cell) > 30 or (cell.get("colspan") or "1") == "1":
            return False
        if not self._tables.holds(cell):
            return False
        if words.has_facts(said := self.measures.visible(cell)) or words.denies(said):
            return False
        return not any(self.measures.text(after) for after in row.itersiblings("tr"))

    def _remove_row(self, cell: Element) -> None:
        row = cell.getparent()
        if row is not None:
            self._remove(row, "link_line")

    def link_lists(self) -> None:
        """Blocks that are nearly all links, outside the flow of prose."""
        for element in list(self.main.iter(*_LINK_LISTS)):
            if id(element) in self._gone or not self._is_link_list(element):
                continue
            heading = _heading_before(element)
            self._remove(element, "link_list")
            if (
                heading is not None
                and id(heading) not in self._gone
                and heading.tag != "h1"
                and not _section(heading)
            ):
                self._remove(heading, "emptied_section")

    def _is_link_list(self, element: Element) -> bool:
        measures = self.measures
        density, links = measures.density(element), measures.links(element)
        if links < 2 or density < 0.7 or measures.prose(element) >= 60:
            return False
        if element.tag in HEADINGS or _is_caption(element):
            return False
        if element.tag in {"td", "table"} and self._keeps_table(element):
            return False
        if element.tag == "span" and not _alone(element):
            return False
        if links < 3 and density < 0.9:
            return False
        if (element.tag in _LIST_TAGS or _wraps_list(element)) and self._in_prose(element):
            return False
        if self._is_section_list(element):
            return False
        if any(
            ancestor.tag in {"p", "td", "dd", "li"} and self._runs_on(ancestor)
            for ancestor in element.iterancestors()
        ):
            return False
        text = self.measures.visible(element)
        return not words.CAS.search(text) and not words.IDENTIFIER.search(text)

    def _keeps_table(self, element: Element) -> bool:
        table = element if element.tag == "table" else next(element.iterancestors("table"), None)
        if table is None or not self._tables.is_data(table):
            return False
        return element.tag == "td" or self.measures.density(table) < 0.85 or table.find(".//th") is not None

    def _runs_on(self, element: Element) -> bool:
        """Whether the element is prose or a table cell that a list of links belongs to."""
        if element.tag == "td":
            return self._tables.holds(element)
        return self.measures.prose(element) >= 40

    def _is_section_list(self, element: Element) -> bool:
        """A list under its own heading, one of several of its level in an article: a section, not furniture."""
        whole = element
        outer = element.getparent()
        while outer is not None and outer is not self.main and self._same_text(outer, whole):
            whole, outer = outer, outer.getparent()
        heading, parent = _heading_before(whole), whole.getparent()
        if heading is None or parent is None or self.measures.prose(parent) < _ARTICLE:
            return False
        level = _level(heading)
        alike = sum(
            1
            for child in parent
            if (child.tag in HEADINGS or _is_heading_wrapper(child)) and _level(child) == level
        )
        text = self.measures.visible(heading)
        return alike >= 3 and not words.FURNITURE_HEADING.match(text) and not words.APPEAL_HEADING.match(text)

    def _same_text(self, outer: Element, inner: Element) -> bool:
        return self.measures.knows(outer) and self.measures.text(outer) == self.measures.text(inner)

    def _in_prose(self, element: Element) -> bool:
        """Whether a list stands beside paragraphs, as a list of an article does."""
        parent = element.getparent()
        if parent is None:
            return False
        if self.measures.own(parent) >= 80:
            return True
        for sibling in (*_near(element, -1), *_near(element, 1)):
            if self.measures.knows(sibling) and sibling.tag in BLOCKS and self.measures.own(sibling) >= 40:
                return True
        return False

    def empties(self) -> None:
        """Elements left without text or pictures."""
        for element in empty_elements(self.main):
            keep_blank(element)
            self._remove(element, "empty")


@lru_cache(maxsize=2048)  # a text is asked about by each element around it, and on page after page
def _furniture_verdict(text: str) -> str:
    """``text``: furniture by what it says; ``lead``: leads a line of links; empty: neither."""
    if words.has_facts(text) or words.is_statement(text):
        return ""
    if words.FURNITURE_TEXT.match(text):
        return "text"
    return "lead" if words.LINK_LEAD.match(text) else ""


def keep_blank(element: Element) -> None:
    """Before an empty element goes: the blank it holds parts words and numbers (``10<span> </span>20``)."""
    if element.text and element.tag not in BLOCKS:
        element.tail = " " + (element.tail or "")


def empty_elements(main: Element) -> Iterator[Element]:
    """Elements without text or pictures, inner ones first, for removal as they come.

    Table cells are none, so that rows keep their columns.
    """
    for element in reversed(list(main.iter("*"))):
        if len(element) or ((text := element.text) and not text.isspace()):
            continue
        if element is main or element.getparent() is None:
            continue
        if (tag := element.tag) not in _VOID_CONTENT and tag not in INVISIBLE:
            yield element


def _wraps_list(element: Element) -> bool:
    """A list in columns: a ``div`` around one list and nothing else."""
    return element.tag == "div" and len(element) == 1 and element[0].tag in {"ul", "ol", "dl"}


def _is_caption(element: Element) -> bool:
    """Whether an element says what a picture shows: content, however many links it has."""
    return (
        element.tag == "figcaption"
        or next(element.iterancestors("figcaption"), None) is not None
        or next(element.iter("figcaption"), None) is not None
    )


def _near(element: Element, direction: int, reach: int = 4) -> Iterable[Element]:
    node: Element | None = element
    for _ in range(reach):
        node = node.getnext() if direction > 0 else node.getprevious()  # type: ignore[union-attr]
        if node is None:
            return
        yield node


def _heading_before(element: Element) -> Element | None:
    previous = element.getprevious()
    if previous is None or (previous.tail and previous.tail.strip()):
        return None
    return previous if previous.tag in HEADINGS or _is_heading_wrapper(previous) else None


def _alone(element: Element) -> bool:
    """Whether an inline element is all there is in its line of its parent."""
    parent = element.getparent()
    if parent is None or (element.tail and element.tail.strip()):
        return False
    previous = element.getprevious()
    lead = parent.text if previous is None else previous.tail
    if lead and lead.strip():
        return False
    following = element.getnext()
    return (previous is None or previous.tag in BLOCKS or previous.tag == "br") and (
        following is None or following.tag in BLOCKS or following.tag == "br"
    )


def _is_heading_wrapper(element: Element | None) -> bool:
    """A div around one heading (and an edit link): ``<div class="mw-heading"><h2>``."""
    if element is None or element.tag != "div" or not 1 <= len(element) <= 2:
        return False
    return element[0].tag in HEADINGS and all(child.tag in {"span", "a", *HEADINGS} for child in element)


def _level(element: Element) -> int:
    tag = element[0].tag if _is_heading_wrapper(element) else element.tag
    return int(tag[1]) if tag in HEADINGS else 7


def _section(heading: Element) -> list[Element]:
    """What follows a heading up to the next one of its level or above."""
    level = _level(heading)
    parts: list[Element] = []
    node = heading.getnext()
    while node is not None:
        if (node.tag in HEADINGS or _is_heading_wrapper(node)) and _level(node) <= level:
            break
        if level == 7 and len(parts) >= 1:  # a bold line leads one list, not the rest of the page
            break
        parts.append(node)
        node = node.getnext()
    return parts

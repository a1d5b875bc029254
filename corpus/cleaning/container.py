"""Choosing the element that holds the main content, and keeping the page's heading.

From the body downward: go into the child with most prose as long as its siblings
are poor (link lists, scraps) or the child says that it is the content. Stop where
siblings carry prose, tables or facts of their own; pruning does the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from lxml import etree

from corpus.cleaning import vocabulary as words
from corpus.cleaning.layout import is_data_table
from corpus.cleaning.measure import BLOCKS, HEADINGS, Measures, Outline, size
from corpus.cleaning.parsing import Numbers, drop
from corpus.cleaning.tags import Element, folded, name_set
from corpus.cleaning.tracing import Trace

_LEAVES = name_set("p ul ol dl pre blockquote figure a span font b strong i em address") | HEADINGS
_STRONG_PROPS = ("articlebody", "maincontentofpage")
_TITLE_CUT = re.compile(r"\s*(?:[|｜_–—»·]|\s-\s|::|--)\s*")
_THIN = 0.12
_LOOSE_MOST = 40  # characters between blocks that narrowing may leave behind
_LEAD_TEXT = 80
_LEAD_LEAST, _LEAD_MOST = 40, 1500


def choose_container(
    body: Element, measures: Measures, heading: Element | None = None
) -> tuple[Element, list[Element]]:
    """The element that holds the main content (the body where nothing narrower is safe), and its leads.

    Leads are texts between the page's heading and the body of the article that stand
    outside the chosen element: a standfirst, a summary, the date a regulation was passed.
    """
    current = _declared(body, measures)
    leads = _leads_on_path(body, current, heading, measures)
    while True:
        child = _narrower(current, measures)
        if child is None:
            return current, leads
        leads += _leads(current, child, heading, measures)
        current = child


def _declared(body: Element, measures: Measures) -> Element:
    """The page's own word for it: main, role=main, articleBody, a sole article; if it holds most prose."""
    total = measures.prose(body)
    candidates = [
        element
        for element in body.iter("main", "div", "section", "article", "td")
        if element.tag == "main"
        or (element.get("role") or "").lower() == "main"
        or (element.get("itemprop") or "").lower() in _STRONG_PROPS
    ]
    articles = [element for element in body.iter("article") if measures.prose(element) > 0]
    if len(articles) == 1:
        candidates.append(articles[0])
    fitting = [element for element in candidates if measures.prose(element) >= 0.5 * total > 0]
    outermost = [
        element
        for element in fitting
        if not any(
            other in fitting for other in element.iterancestors("main", "div", "section", "article", "td")
        )
    ]
    if len(outermost) != 1:
        return body
    chosen = outermost[0]
    return body if _loses_facts(body, chosen, measures) else chosen


def _loses_facts(body: Element, chosen: Element, measures: Measures) -> bool:
    """Whether identifiers stand in plain text outside the chosen element."""
    node: Element | None = chosen
    while node is not None and node is not body:
        parent = node.getparent()
        if parent is None:
            break
        for sibling in parent:
            if sibling is not node and _carries_facts(sibling, measures):
                return True
        if _loose_facts(parent, measures):
            return True
        node = parent
    return False


def _carries_facts(element: Element, measures: Measures) -> bool:
    if not measures.text(element) or measures.density(element) > 0.5:
        return False
    return _states_facts(measures.visible(element))


def _states_facts(text: str) -> bool:
    return bool(words.CAS.search(text) or words.IDENTIFIER.search(text)) or (
        len(words.QUANTITY.findall(text)) >= 3
    )


def _loose_text(parent: Element) -> list[str]:
    """The stretches of text that stand between the children of an element, in none of them."""
    stretches = [parent.text, *(child.tail for child in parent)]
    return [text for text in stretches if text and not text.isspace()]


def _loose_facts(parent: Element, measures: Measures) -> bool:
    """Whether text that is in no child states facts: narrowing would lose it."""
    return measures.own(parent) > 0 and any(map(_states_facts, _loose_text(parent)))


def _narrower(current: Element, measures: Measures) -> Element | None:
    own = measures.own(current)
    if current.tag in _LEAVES or own > _LOOSE_MOST or own > _THIN * measures.text(current):
        return None
    if own and _loose_facts(current, measures):
        return None
    if current.tag == "table" and is_data_table(current):
        return None
    if current.tag == "tr" and _in_data_table(current):
        return None
    children = [child for child in current if measures.knows(child) and measures.text(child) > 0]
    if not children:
        return None
    best = max(children, key=measures.prose)
    prose = measures.prose(best)
    if prose <= 0 or best.tag in _LEAVES or (best.tag == "table" and is_data_table(best)):
        return None
    if not any(node.tag in BLOCKS for node in best):
        return None  # a paragraph, whatever its tag
    rich = [child for child in children if child is not best and not _poor(child, measures)]
    if not rich:
        return best
    if any(_carries_facts(child, measures) or _holds_table(child) for child in rich):
        return None
    whole = measures.prose(current)
    if _says_content(best) and prose >= 0.6 * whole:
        return best
    if prose >= 0.85 * whole and all(measures.prose(child) <= _THIN * whole for child in rich):
        return None if any(_has_inner_heading(child) for child in rich) else best
    return None


def _leads_on_path(
    body: Element, inner: Element, heading: Element | None, measures: Measures
) -> list[Element]:
    path = [inner, *inner.iterancestors()]
    path = path[: path.index(body) + 1] if body in path else [inner]
    found: list[Element] = []
    for child, parent in reversed(list(pairwise(path))):
        found += _leads(parent, child, heading, measures)
    return found


def _leads(current: Element, best: Element, heading: Element | None, measures: Measures) -> list[Element]:
    """Children of ``current`` before ``best`` that are leads, in order; those beside the heading as well."""
    found: list[Element] = []
    headed = False
    for child in current:
        if child is best:
            break
        if not measures.knows(child) or not measures.text(child):
            continue
        if heading is not None and _is_within(heading, child):
            headed = True
            node = heading
            while node is not child:
                found += [sibling for sibling in node.itersiblings() if _is_lead(sibling, measures, headed)]
                parent = node.getparent()
                node = child if parent is None else parent
        elif _is_lead(child, measures, headed):
            found.append(child)
    return found


def _is_lead(element: Element, measures: Measures, headed: bool) -> bool:
    """A lead: a paragraph of text, a block that is named so, or any text that follows the page's heading."""
    if not measures.knows(element) or element.tag in HEADINGS:
        return False
    text = measures.text(element)
    if not _LEAD_LEAST <= text <= _LEAD_MOST or measures.density(element) > 0.3:
        return False
    names = words.words(f"{element.get('class', '')} {element.get('id', '')}")
    if any(name in words.BYLINE for name in names) or element.tag in {"ul", "ol", "form", "table", "time"}:
        return False
    named = any(name in words.LEAD for name in names)
    return headed or named or (element.tag == "p" and text >= _LEAD_TEXT)


def _holds_table(element: Element) -> bool:
    """Whether an element holds a definition list or a data table."""
    if next(element.iter("th", "dl"), None) is not None:
        return True
    return any(is_data_table(table) for table in element.iter("table"))


def _in_data_table(row: Element) -> bool:
    table = next(row.iterancestors("table"), None)
    return table is not None and is_data_table(table)


def _poor(element: Element, measures: Measures) -> bool:
    """Link lists, scraps of text, forms: nothing that an article would miss."""
    if element.tag in {"h1", "h2", "h3", "p", "pre", "dl"} and measures.density(element) < 0.5:
        return element.tag == "h1" or measures.text(element) < 20
    if measures.density(element) > 0.6:
        return True
    if measures.prose(element) >= 40 or (measures.text(element) >= 20 and measures.density(element) < 0.2):
        return False
    return not _carries_facts(element, measures)


def _has_inner_heading(element: Element) -> bool:
    return element.tag in HEADINGS or next(element.iter("h2", "h3", "h4"), None) is not None


def _says_content(element: Element) -> bool:
    if element.tag in {"main", "article"}:
        return True
    names = words.words(f"{element.get('class', '')} {element.get('id', '')}")
    return any(name in words.CONTENT for name in names)


# --- the heading ------------------------------------------------------------


def title_of(head_title: str, text: str = "") -> str:
    """A page title without the site's name: the part that ``text`` mentions, else the first."""
    parts = [part for part in _TITLE_CUT.split(" ".join(head_title.split())) if part]
    if not parts:
        return ""
    named = [part for part in parts if len(parts) > 1 and part.casefold() in text.casefold()]
    if named:
        return max(named, key=size)
    first = parts[0]
    return first if size(first) >= 3 else max(parts, key=size)


def page_heading(body: Element, measures: Measures | Outline, head_title: str) -> Element | None:
    """The heading that names the page: an h1 (else h2) that agrees with the title, else the sole h1."""
    wanted = folded(head_title)

    def fitting(tag: str) -> Iterator[Element]:
        for element in body.iter(tag):
            if 0 < measures.text(element) <= 400 and not _is_site_name(element):
                yield element

    first = list(fitting("h1"))
    if wanted:
        for element in chain(first, fitting("h2")):
            text = folded(measures.visible(element))
            if len(text) >= 2 and (text in wanted or wanted in text):
                return element
    return first[0] if len(first) == 1 else None


def _is_site_name(element: Element) -> bool:
    names = words.words(f"{element.get('class', '')} {element.get('id', '')}")
    link = next(element.iter("a"), None)
    return "logo" in names or "brand" in names or (link is not None and link.get("href") in {"/", "./", "#"})


def holds_main_alone(body: Element) -> bool:
    """Whether a body holds one ``main`` and no text beside it, as cleaning leaves it."""
    return len(body) == 1 and body[0].tag == "main" and not size(body.text) and not size(body[0].tail)


def place_container(
    body: Element,
    container: Element,
    heading: Element | None,
    heading_text: str,
    numbers: Numbers,
    measures: Measures,
    removed: Counter[str],
    trace: Trace | None = None,
    leads: Sequence[Element] = (),
) -> None:
    """Make the container the body's only child, as ``main``, led by the page's heading and its leads."""
    if container is body and holds_main_alone(body):
        return  # a cleaned page
    left = [element for element in _siblings_left(body, container, measures) if element not in leads]
    loose = _loose_left(body, container)
    if left or loose:
        removed["outside_container"] += len(left) + len(loose)
        if trace is not None:
            for element in left:
                trace.removal("outside_container", element)
            for text in loose:
                trace.loose_text("outside_container", text)
    main = etree.Element("main")
    numbers.adopt(main, container)
    top: Element | None = None
    if heading_text and (heading is None or not _is_within(heading, container)):
        top = etree.Element("h1")
        top.text = heading_text
        numbers.adopt(top, heading)
        main.append(top)
    for lead in leads:
        lead.tail = None
        main.append(lead)
    if len(main):
        _append_text(main, container.text)
    else:
        main.text = container.text
    for child in list(container):
        main.append(child)
    for child in list(body):
        if child is not main:
            drop(child)
    body.text = None
    body.append(main)
    measures.adopt(main, container, top, leads)


def _append_text(main: Element, text: str | None) -> None:
    if text and text.strip():  # blanks between blocks mean nothing, and would pile up
        main[-1].tail = (main[-1].tail or "") + text


def _siblings_left(body: Element, container: Element, measures: Measures) -> list[Element]:
    """Elements with text that stand beside the path from the body to the container."""
    left: list[Element] = []
    node = container
    while node is not body:
        parent = node.getparent()
        if parent is None:
            break
        left.extend(
            child
            for child in parent
            if child is not node and measures.knows(child) and measures.text(child) > 0
        )
        node = parent
    return left


def _loose_left(body: Element, container: Element) -> list[str]:
    """Stretches of text that stand beside that path, between elements."""
    left: list[str] = []
    node: Element | None = container
    while node is not None and node is not body:
        node = node.getparent()
        if node is not None:
            left.extend(_loose_text(node))
    return left


def _is_within(element: Element, container: Element) -> bool:
    return element is container or any(ancestor is container for ancestor in element.iterancestors())

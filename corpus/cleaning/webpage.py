"""An HTML page through the three cleanings, with guards and features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from lxml import etree

from corpus.cleaning import vocabulary as words
from corpus.cleaning.attributes import clean_attributes
from corpus.cleaning.container import holds_main_alone, page_heading, title_of
from corpus.cleaning.document import GENERATOR, document
from corpus.cleaning.functional import clean_functions
from corpus.cleaning.layout import normalise_grids
from corpus.cleaning.markdown import Rendered, assemble, consumed, render
from corpus.cleaning.measure import HEADINGS, Measures, Outline, characters, size, visible_text
from corpus.cleaning.orphans import settle_orphans
from corpus.cleaning.page import CleanedPage, Features, Verdict, language_of
from corpus.cleaning.parsing import LIMITS, Limits, Numbers, drop, parse_html, reread, strip_marks
from corpus.cleaning.pruning import empty_elements, keep_blank
from corpus.cleaning.structural import Structural, clean_structure
from corpus.cleaning.tables import is_cut
from corpus.cleaning.tags import Element, all_text, name_set
from corpus.cleaning.template import Template
from corpus.cleaning.tracing import Trace

_TOO_LITTLE = 0.25  # of the page's prose: try again gently
_MIN_TEXT = 60  # characters (Han twice) below which there is no main content
_KEPT_LOW, _KEPT_HIGH = 0.05, 0.95
_MUCH = 2000
_LONG_NOTICE = 600  # characters: a request to switch scripts on is shorter
_READINGS = 4
_SHALLOW = 200  # levels below which no limit of the parser's is near
_SCRIPT_ROOTS = name_set("root app __next __nuxt main-app q-app ember-app")
_CAS_SIZE = len("50-00-0")
_MARKS = re.compile(r"(?<=\S)\s*(?:¶|🔗|#|\[edit\]|\[编辑\]|【编辑】)$", re.IGNORECASE)


def clean_html(
    text: str,
    *,
    template: Template | None = None,
    kept_classes: Collection[str] = (),
    limits: Limits = LIMITS,
    trace: Trace | None = None,
) -> CleanedPage:
    """Clean a decoded page. Raises TerminalError for what cannot be parsed within the limits."""
    root, numbers = parse_html(text, limits)
    if trace is not None:
        numbers.mark()
        trace.stage("raw", root)
    if _meta(root, "generator") == GENERATOR:
        if _is_clean(root, kept_classes):
            raw = _Raw(root, text, numbers, Measures(root, numbers))
            raw.cleaned = True
            if trace is not None:
                for name in ("structural", "functional", "attribute"):
                    trace.stage(name, root)
            found = Structural(heading=raw.heading)
            return _result(root, numbers, raw, found, Counter(), Counter(), marked=trace is not None)
        root, numbers = parse_html(text, limits)  # it only says so
        if trace is not None:
            numbers.mark()
    unwrapped = _read_without_scripts(root)
    measures = _settled(root, numbers)
    raw = _Raw(root, text, numbers, measures)
    structural = clean_structure(root, numbers, measures, template, title=raw.title, trace=trace)
    structural.removed.update({"noscript_unwrapped": unwrapped} if unwrapped else {})
    if (
        structural.prose_after < _TOO_LITTLE * structural.prose_before
        and raw.features["raw_text_chars"] > 400
    ):
        second, others = parse_html(text, limits)
        _read_without_scripts(second)
        if trace is not None:
            others.mark()
        other = None if trace is None else Trace(dict(trace.stages))
        measures = _settled(second, others)
        gentle = clean_structure(
            second, others, measures, template, title=raw.title, gentle=True, trace=other
        )
        if gentle.prose_after > structural.prose_after + 0.5 * structural.prose_before:
            root, numbers, structural = second, others, gentle
            if trace is not None and other is not None:
                trace.removals = other.removals
            structural.removed["gentle_second_try"] += 1
    del measures  # before the second tree is made: enormous pages need the room
    if trace is not None:
        trace.stage("structural", root)
    functional = clean_functions(root)
    if trace is not None:
        trace.stage("functional", root)
    attributes = clean_attributes(root, kept_classes)
    body = root.find("body")
    for element in empty_elements(body if body is not None else root):  # what held nothing but function
        keep_blank(element)
        drop(element)
        structural.removed["empty"] += 1
    root = _as_read(root, numbers, marked=trace is not None)
    if trace is not None:
        trace.stage("attribute", root)
    return _result(root, numbers, raw, structural, functional, attributes, marked=trace is not None)


def _as_read(root: Element, numbers: Numbers, *, marked: bool) -> Element:
    """The cleaned tree as a parser reads it when it is written out: the two differ where markup was torn.

    HTML does not let everything stand in everything (a table ends a paragraph); what
    cleaning returns must mean to others what it meant here.
    """
    for _ in range(_READINGS):
        settle_orphans(root)  # what was removed since may have left others loose
        body = root.find("body")
        if body is None or not len(body) or _reads_back(body[0], numbers):
            return root
        content = _written(body[0])
        again = reread(content)
        inner = again.find("body")
        if inner is not None and len(inner) == 1 and not size(inner.text) and _written(inner[0]) == content:
            return root
        if not marked:
            numbers.mark()
        root = reread(_written(body[0]))
        numbers.rebind(root)
        if not marked:
            strip_marks(root)
        _sole_main(root)
    settle_orphans(root)
    return root


def _reads_back(main: Element, numbers: Numbers) -> bool:
    """Whether a parser surely reads the written tree as it is, told without reading it: False where that is open.

    Whether the parser ends an open element at a start tag depends on these two alone, so
    that each pair of parent and child needs to be tried but once. What ends in the same
    order as it began, and is not too deep for the parser, has no other way to be misread.
    """
    if numbers.depth > _SHALLOW:
        return False
    pairs = {(element.tag, parent.tag) for parent in main.iter("*") for element in parent}
    return all(_stands_in(str(child), str(parent)) for child, parent in pairs)


@lru_cache(maxsize=4096)
def _stands_in(child: str, parent: str) -> bool:
    """Whether the parser reads an element within another, and text around it, as they are written."""
    try:
        outer = etree.Element(parent)
        inner = etree.SubElement(outer, child)
    except ValueError:  # a name that only a parser takes (``o:p``)
        return False
    outer.text = inner.text = inner.tail = "a < b & c"
    content = _written(outer)
    body = reread(content).find("body")
    return body is not None and len(body) == 1 and not body.text and _written(body[0]) == content


def _written(main: Element) -> str:
    return etree.tostring(main, encoding="unicode", method="html", with_tail=False)


def _sole_main(root: Element) -> None:
    """Put back into ``main`` what a parser moved out of it."""
    body = root.find("body")
    if body is None:
        body = etree.SubElement(root, "body")
    if holds_main_alone(body):
        return
    body.tag = "main"
    for inner in list(body.iter("main")):
        if inner is not body:
            inner.tag = "div"
    outer = etree.Element("body")
    root.replace(body, outer)
    outer.append(body)


def _read_without_scripts(root: Element) -> int:
    """Open the ``noscript`` elements of a page whose content stands nowhere else; returns how many.

    Where the page shows text of its own they repeat it, or hold counters and a notice.
    """
    body = root.find("body")
    found = [] if body is None else list(body.iter("noscript"))
    if body is None or not found:
        return 0
    texts = [all_text(node) for node in found]
    speaking = [
        node
        for node, text in zip(found, texts, strict=True)
        if size(text) >= (_LONG_NOTICE if words.SCRIPT_NOTICE.search(text[:2000]) else _MIN_TEXT)
    ]
    if not speaking or size(visible_text(body)) >= _MIN_TEXT:
        return 0
    for node in speaking:
        node.tag = "div"
    return len(speaking)


def _settled(root: Element, numbers: Numbers) -> Measures:
    """Settle what the parser left loose, and measure."""
    moved = settle_orphans(root)
    moved = normalise_grids(root, numbers) or moved
    return Measures(root, None if moved else numbers)


def _is_clean(root: Element, kept_classes: Collection[str]) -> bool:
    """Whether a page that calls itself cleaned is: one ``main``, and nothing for the other two cleanings to do.

    Its structure was judged when its class names were there; judging it again without
    them could only lose content.
    """
    body = root.find("body")
    if body is None or not holds_main_alone(body):
        return False
    return not clean_functions(body).total() and not clean_attributes(body, kept_classes).total()


def _result(
    root: Element,
    numbers: Numbers,
    raw: _Raw,
    structural: Structural,
    functional: Counter[str],
    attributes: Counter[str],
    *,
    marked: bool,
) -> CleanedPage:
    body = root.find("body")
    main = body[0] if body is not None and len(body) else etree.Element("main")
    lost_headings = raw.lost_table_headings(main, numbers)
    kept = numbers.let_go(main)
    outline = Outline(main)
    rendered = assemble(consumed(render(main, outline)))
    known = dict.fromkeys(rendered.sources, -1)
    for number, element in zip(kept, main.iter("*"), strict=True):
        if element in known:
            known[element] = number
    for block, source in zip(rendered.blocks, rendered.sources, strict=True):
        block["path"] = numbers.path(known[source])
    del known
    rendered.sources.clear()
    page = CleanedPage(kind="page", text=rendered.markdown, plain=rendered.plain, blocks=rendered.blocks)
    shown = page_heading(main, outline, raw.title)
    page.title = raw.best_title(visible_text(shown) if shown is not None else structural.heading, rendered)
    page.language = language_of(rendered.plain or page.title, raw.language)
    page.features = raw.with_kept(main, outline, rendered)
    if marked:
        strip_marks(root)
    page.html = _serialise(main, page.title, raw)
    page.removed = {
        name: dict(sorted(counts.items()))
        for name, counts in (
            ("structural", structural.removed),
            ("functional", functional),
            ("attribute", attributes),
        )
    }
    page.verdict, page.reasons = _verdict(page, raw, lost_headings=lost_headings, cut=is_cut(main))
    return page


def _verdict(
    page: CleanedPage, raw: _Raw, *, lost_headings: bool, cut: bool
) -> tuple[Verdict, tuple[str, ...]]:
    features = page.features
    kept = size(page.plain)
    if kept < _MIN_TEXT and not (features.n_table_cells and words.has_facts(page.plain)):
        if raw.wants_script():
            return "needs_browser", ("little text and a page made by script",)
        return "no_main_content", (f"{characters(page.plain)} characters of content",)
    if features.kept_link_density > 0.8 and not features.n_table_cells:
        return "no_main_content", ("nothing but links",)
    reasons = []
    share = features.kept_text_chars / max(1, features.raw_text_chars)
    if features.raw_text_chars >= _MUCH and share < _KEPT_LOW:
        reasons.append("kept_under_5_percent")
    if features.raw_text_chars >= _MUCH and share > _KEPT_HIGH and features.link_density > 0.4:
        reasons.append("kept_over_95_percent")
    if raw.cas and raw.cas - set(words.CAS.findall(page.plain)):
        reasons.append("cas_lost")
    if cut:
        reasons.append("table_columns_cut")
    if lost_headings:
        reasons.append("table_headings_lost")
    return ("review", tuple(reasons)) if reasons else ("ok", ())


def _serialise(main: Element, title: str, raw: _Raw) -> str:
    main.tail = None
    content = etree.tostring(main, encoding="unicode", method="html")
    return document(content, title, language=raw.language, canonical=raw.canonical)


class _Raw:
    """What is remembered of the raw page: titles, declarations, counts, CAS numbers, table headings."""

    def __init__(self, root: Element, source: str, numbers: Numbers, measures: Measures) -> None:
        body = root.find("body")
        self.title = _squash(root.findtext(".//title") or "")
        self.cleaned = False  # its title is the one we chose
        self.social_title = (
            _meta(root, "og:title") or _meta(root, "citation_title") or _meta(root, "dc.title")
        )
        self.language = (
            root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
        ).strip()
        self.canonical = next(
            (
                (link.get("href") or "").strip()
                for link in root.iter("link")
                if "canonical" in (link.get("rel") or "").lower().split()
            ),
            "",
        )
        plain = measures.visible(body) if body is not None else ""
        self.cas = _plain_cas(body, measures, plain)
        self.headings = self._table_headings(body, numbers) if body is not None else set()
        self.heading = ""
        if body is not None:
            found = page_heading(body, measures, self.title)
            self.heading = visible_text(found) if found is not None else ""
        script = sum(len(node.text or "") for node in root.iter("script"))
        self.notice = any(
            words.SCRIPT_NOTICE.search(all_text(node)[:2000]) for node in root.iter("noscript")
        ) or bool(len(plain) < 600 and words.SCRIPT_NOTICE.search(plain))
        self.script_root = any(
            element.get("id") in _SCRIPT_ROOTS
            and element.tag in {"div", "main", "section"}
            and measures.knows(element)
            and not measures.text(element)
            for element in numbers.named
        )
        self.scripts = sum(1 for _ in root.iter("script"))
        self.features: dict[str, Any] = {
            "link_density": round(measures.density(body), 4) if body is not None else 0.0,
            "raw_text_chars": measures.text(body) if body is not None else 0,
            "n_links": measures.links(body) if body is not None else 0,
            "n_forms": sum(1 for _ in root.iter("form")),
            "n_password_fields": sum((i.get("type") or "").lower() == "password" for i in root.iter("input")),
            "script_share": round(script / max(1, len(source)), 4),
            "has_noscript_notice": self.notice,
        }

    @staticmethod
    def _table_headings(body: Element, numbers: Numbers) -> set[int]:
        """Numbers of the tables that have header cells with text."""
        return {
            numbers.number(table)
            for table in body.iter("table")
            if any(size(all_text(cell)) for cell in table.iter("th"))
        }

    def lost_table_headings(self, main: Element, numbers: Numbers) -> bool:
        """Whether a table that was kept has lost all its header cells."""
        for table in main.iter("table"):
            if numbers.number(table) in self.headings and not any(
                size(all_text(cell)) for cell in table.iter("th")
            ):
                return True
        return False

    def wants_script(self) -> bool:
        """Evidence that the content is made in the browser."""
        share = float(self.features["script_share"])
        return bool(self.notice or self.script_root or (self.scripts and share > 0.5))

    def best_title(self, heading: str, rendered: Rendered) -> str:
        """The page's heading, else the title of its head without the site's name, else its first heading."""
        if self.title and self.cleaned:
            return self.title
        if heading or self.heading:
            return _MARKS.sub("", _squash(heading or self.heading))
        if self.social_title:
            return self.social_title
        first = next((b for b in rendered.blocks if b["kind"] == "heading"), None)
        named = rendered.markdown[first["start"] : first["end"]].lstrip("# ") if first else ""
        title = title_of(self.title, rendered.plain)
        if not title or (named and title.casefold() not in rendered.plain.casefold()):
            return named or title  # a title that the text never mentions is the site's name
        return title

    def with_kept(self, main: Element, outline: Outline, rendered: Rendered) -> Features:
        """Features of the raw page and of what was kept."""
        kinds = Counter(block["kind"] for block in rendered.blocks)
        text, (links, linked) = outline.text(main), outline.links()
        return Features(
            **self.features,
            kept_link_density=round(linked / text, 4) if text else 0.0,
            kept_text_chars=text,
            kept_links=links,
            n_headings=sum(1 for _ in main.iter(*HEADINGS)),
            n_tables=sum(1 for _ in main.iter("table")),
            n_table_cells=sum(1 for _ in main.iter("td", "th")),
            n_list_items=kinds["item"],
            n_paragraphs=kinds["paragraph"],
            n_images=sum(1 for _ in main.iter("img")),
        )


def _plain_cas(body: Element | None, measures: Measures, plain: str) -> set[str]:
    """CAS numbers that stand outside links (lists of links to other substances are navigation)."""
    if body is None or not words.CAS.search(plain):
        return set()
    linked = Counter(
        number
        for link in body.iter("a")
        if measures.text(link) >= _CAS_SIZE
        for number in words.CAS.findall(measures.visible(link))
    )
    total = Counter(words.CAS.findall(plain))
    return {number for number, count in total.items() if count > linked[number]}


def _meta(root: Element, name: str) -> str:
    for element in root.iter("meta"):
        if (element.get("property") or element.get("name") or "").lower() == name:
            return _squash(element.get("content") or "")
    return ""


def _squash(text: str) -> str:
    return " ".join(text.split())

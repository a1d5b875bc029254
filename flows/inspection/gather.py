"""What the cleanings did to one page, as plain data of bounded size.

The stages come from a trace of the very cleaning that curation runs. What went
between two stages is told by the elements' numbers: structural removals carry
their rule, functional and attribute removals follow from what is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lxml import etree

from corpus.cleaning import CleanedPage, Limits, Template, Trace, clean_page, decode
from corpus.cleaning.attributes import KEPT_ATTRIBUTES, MEANINGFUL_CLASS, PRESENTATIONAL
from corpus.cleaning.functional import FUNCTION_GROUPS, UNWRAPPED
from corpus.cleaning.measure import visible_text
from corpus.cleaning.parsing import LIMITS, MARK, Numbers, parse_html
from corpus.cleaning.tags import Element, all_text
from corpus.errors import TerminalError
from flows.inspection.source import MAX_LINES, Line, Mark, Source, number_of, source_lines, visible

MAX_ENTRIES = 100
MAX_BLOCKS = 3000
MAX_VALUES = 60
_TEXT_CHARS = 3000
_BLOCK_CHARS = 4000
_HTML_CHARS = 400_000
_FUNCTION_OF = {tag: rule for rule, tags in FUNCTION_GROUPS.items() for tag in tags}
_RANK = {rule: rank for rank, rule in enumerate(FUNCTION_GROUPS)}
_WRAPPED = re.compile(rf'(<body(?: [^<>]*)? {MARK}="(\d+)"[^<>]*>) ?<main {MARK}="\2">(.*)</main> ?</body>')
STAGES = ("raw", "structural", "functional", "attribute")


@dataclass
class Entry:
    """One removed element or attribute: tag or name, DOM path, number of its raw element, text."""

    what: str
    path: str
    number: int
    text: str
    rest: int = 0


@dataclass
class Rule:
    """What one rule removed. ``count`` is the cleaning's own count, ``elsewhere`` the part of it that is not
    listed because it stands outside the body or has no text of its own, ``chars`` the text that went.
    """

    cleaning: str
    rule: str
    count: int
    key: str
    chars: int = 0
    entries: list[Entry] = field(default_factory=list)
    more: int = 0
    elsewhere: int = 0


@dataclass
class Values:
    """Values of one kind that attribute cleaning dropped, the commonest first."""

    kind: str
    total: int
    items: list[tuple[str, int]]
    more: int


@dataclass
class Pane:
    """A stage as source lines. ``chars``: of the whole stage; ``left``: elements (or lines) that are
    not shown; ``cut``: whether the pane ends before the stage does; ``same_as``: the pane before, where
    the cleaning between them changed nothing (then there are no lines).
    """

    name: str
    lines: list[Line]
    chars: int
    elements: int
    left: int = 0
    unit: str = "elements"
    cut: bool = False
    home: dict[int, int] = field(default_factory=dict)
    same_as: str = ""


@dataclass
class Block:
    """A block of the text with its place: ``number`` of the raw line that shows it, -1 where none does."""

    kind: str
    text: str
    path: str
    number: int
    rest: int = 0


@dataclass
class Inspection:
    """All that is shown of a page. ``page``: the cleaned page without its texts."""

    size: int
    page: dict[str, Any]
    error: str = ""
    html: str = ""
    html_left: int = 0
    rules: list[Rule] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)
    panes: list[Pane] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    blocks_left: int = 0
    text_chars: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def inspect_bytes(
    data: bytes,
    *,
    url: str = "",
    content_type: str = "",
    header_charset: str = "",
    template: Template | None = None,
    limits: Limits = LIMITS,
) -> Inspection:
    """Clean a page and note what happened. A page that cleaning refuses has ``error`` and its source."""
    trace = Trace()
    try:
        page = clean_page(
            data,
            url=url,
            content_type=content_type,
            header_charset=header_charset,
            template=template,
            limits=limits,
            trace=trace,
        )
    except TerminalError as error:
        found = Inspection(len(data), {}, error=f"{error.reason}: {error}")
        found.panes = [_plain_pane(data, content_type, header_charset)]
        return found
    facts = page.to_json()
    for name in ("html", "text", "plain", "blocks"):
        facts.pop(name)
    found = Inspection(len(data), facts, text_chars=len(page.text))
    harmless = _without_pictures(page.html)
    found.html, found.html_left = harmless[:_HTML_CHARS], max(0, len(harmless) - _HTML_CHARS)
    if "raw" in trace.stages:
        text = decode(data, header_charset=header_charset, content_type=content_type).text
        _Comparison(found, page, trace, *parse_html(text, limits)).fill()
    else:
        found.rules = [
            Rule(cleaning, rule, count, f"{cleaning}/{rule}", elsewhere=count)
            for cleaning, rules in page.removed.items()
            for rule, count in rules.items()
        ]
        if page.kind != "pdf":
            found.panes = [_plain_pane(data, content_type, header_charset)]
        shown = len(found.panes[0].lines) if found.panes else 0
        places = _xml_lines(data, content_type, header_charset) if page.kind == "xml" else {}
        _blocks(found, page, lambda path: _line_number(path, places, shown))
    return found


def _line_number(path: str, places: Mapping[str, int], shown: int) -> int:
    """Source line of a block: ``line N`` of a text file, or the line of an XML element's path."""
    kind, _, number = path.partition(" ")
    line = int(number) if kind == "line" and number.isdecimal() else places.get(path, -1)
    return line if 0 < line <= shown else -1


def _xml_lines(data: bytes, content_type: str, charset: str) -> dict[str, int]:
    """Path → line of every element of an XML document."""
    text = decode(data, header_charset=charset, content_type=content_type).text
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, recover=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return {}
    found: dict[str, int] = {}
    counters: list[Counter[str]] = [Counter()]
    trail: list[str] = []
    if root is None:
        return found
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(element.tag, str):
            continue
        if event == "end":
            trail.pop()
            counters.pop()
            continue
        tag = etree.QName(element).localname
        counters[-1][tag] += 1
        trail.append(f"/{tag}[{counters[-1][tag]}]")
        counters.append(Counter())
        if element.sourceline is not None:
            found["".join(trail[-60:])] = int(element.sourceline)
    return found


def _plain_pane(data: bytes, content_type: str, charset: str) -> Pane:
    """The source as received, for what is no HTML or was refused."""
    text = decode(data[:2_000_000], header_charset=charset, content_type=content_type).text
    all_lines = text.splitlines()
    lines = [
        Line(0, number, parts=[("", visible(line[:1500]) + ("…" if len(line) > 1500 else ""))])
        for number, line in enumerate(all_lines[:MAX_LINES], start=1)
    ]
    left = max(0, len(all_lines) - MAX_LINES)
    return Pane("raw", lines, len(text), len(all_lines), left, unit="lines", cut=left > 0)


def _blocks(found: Inspection, page: CleanedPage, place: Any) -> None:
    for block in page.blocks[:MAX_BLOCKS]:
        text = page.text[block["start"] : block["end"]]
        rest = max(0, len(text) - _BLOCK_CHARS)
        path = str(block.get("path", ""))
        found.blocks.append(Block(block["kind"], visible(text[:_BLOCK_CHARS]), path, place(path), rest))
    found.blocks_left = max(0, len(page.blocks) - MAX_BLOCKS)


class _Comparison:
    """The four stages of an HTML page against each other."""

    def __init__(
        self, found: Inspection, page: CleanedPage, trace: Trace, raw: Element, numbers: Numbers
    ) -> None:
        self.found, self.page, self.trace, self.raw = found, page, trace, raw
        self.numbers = numbers
        numbers.mark()
        self.trees = {name: _parse(trace.stages[name]) for name in STAGES[1:]}
        self.stages = {name: _attributes(tree) for name, tree in self.trees.items()}
        self.traced: dict[int, str] = {}
        for removal in trace.removals:
            if removal.number >= 0:
                self.traced.setdefault(removal.number, removal.rule)

    def fill(self) -> None:
        """Rules, dropped values, panes and text blocks."""
        self._rules()
        self._panes()
        wanted = {str(block.get("path", "")) for block in self.page.blocks[:MAX_BLOCKS]}
        numbers = _numbers(self.numbers, wanted)
        home = self.found.panes[0].home
        _blocks(self.found, self.page, lambda path: home.get(numbers.get(path, -1), -1))

    # --- which rule took an element ---

    def _raw_mark(self, number: int, tag: str, inherited: Mark | None) -> Mark | None:
        stages = self.stages
        if number in stages["structural"]:
            if number not in stages["functional"]:
                return _functional_mark(tag)
            return None if number in stages["attribute"] else _attribute_mark(tag)
        if number in self.traced:
            return Mark(f"structural/{self.traced[number]}")
        if inherited is not None:
            return inherited
        if number in self.outside:
            return _functional_mark(tag) if tag in _FUNCTION_OF else None
        return Mark("structural/rearranged", whole=False)

    def _functional_next(self, number: int, tag: str, inherited: Mark | None) -> Mark | None:
        return inherited if number in self.stages["functional"] or number < 0 else _functional_mark(tag)

    def _attribute_next(self, number: int, tag: str, inherited: Mark | None) -> Mark | None:
        return inherited if number in self.stages["attribute"] or number < 0 else _attribute_mark(tag)

    def _panes(self) -> None:
        body = self.raw.find("body")
        inside = {number_of(element) for element in body.iter("*")} if body is not None else set()
        self.outside = {number_of(element) for element in self.raw.iter("*")} - inside | {
            number_of(body) if body is not None else -1
        }
        final = self.stages["attribute"]
        last: dict[int, dict[str, str]] = {}
        sources: list[Source] = [
            source_lines(self.raw, self._raw_mark, final),
            source_lines(self.trees["structural"], self._functional_next, self.stages["functional"]),
            source_lines(self.trees["functional"], self._attribute_next, final),
            source_lines(self.trees["attribute"], lambda *_: None, last),
        ]
        plain = {name: _compared(self.trace.stages[name]) for name in STAGES}
        shown = STAGES[0]  # the pane with lines to which the next ones are compared
        for name, source in zip(STAGES, sources, strict=True):
            if name != STAGES[0] and plain[name] == plain[shown]:
                if shown != STAGES[0]:  # the same tree, with the marks of what the next cleaning takes
                    last_shown = next(pane for pane in self.found.panes if pane.name == shown)
                    last_shown.lines, last_shown.home = source.lines, source.home
                folded = Pane(name, [], self.found.panes[-1].chars, source.elements, same_as=shown)
                self.found.panes.append(folded)
                continue
            shown = name
            size = len(self.trace.stages[name]) - _mark_chars(self.trace.stages[name])
            self.found.panes.append(
                Pane(name, source.lines, size, source.elements, source.left, cut=source.cut, home=source.home)
            )

    # --- what each rule took ---

    def _path(self, number: int) -> str:
        elements = self.numbers.elements
        return self.numbers.of(elements[number]) if 0 <= number < len(elements) else ""

    def _rules(self) -> None:
        entries: dict[str, list[Entry]] = {}
        chars: Counter[str] = Counter()
        listed: Counter[str] = Counter()

        def note(key: str, what: str, number: int, text: str) -> None:
            listed[key] += 1
            chars[key] += len(text)
            if len(entries.setdefault(key, [])) < MAX_ENTRIES:
                path = self._path(number)
                shown = visible(text[:_TEXT_CHARS])
                entries[key].append(Entry(what, path, number, shown, max(0, len(text) - _TEXT_CHARS)))

        for removal in self.trace.removals:
            note(f"structural/{removal.rule}", removal.tag, removal.number, removal.text)
        for key, what, number, text in self._functions():
            note(key, what, number, text)
        for key, what, number, text in self._unwrapped():
            note(key, what, number, text)
        values = self._values()
        for cleaning, rules in self.page.removed.items():
            for name, count in rules.items():
                key = f"{cleaning}/{name}"
                known = listed[key] if cleaning != "attribute" or name == "presentational_tag" else count
                rule = Rule(cleaning, name, count, key, chars[key], entries.get(key, []))
                rule.more = max(0, min(known, count) - len(rule.entries)) if rule.entries else 0
                rule.elsewhere = max(0, count - known)
                self.found.rules.append(rule)
        self.found.values = values

    def _functions(self) -> Iterable[tuple[str, str, int, str]]:
        """(rule, what, number, text) of everything functional cleaning took from the body."""
        after = self.stages["functional"]
        for element in self.trees["structural"].iter("*"):
            number, tag = number_of(element), str(element.tag)
            rule = _FUNCTION_OF.get(tag)
            if number not in after:
                if rule is not None and not _within_earlier(element, _RANK[rule]):
                    yield f"functional/{rule}", tag, number, _said(element)
                elif tag in UNWRAPPED and not _within_earlier(element, len(_RANK)):
                    yield "functional/form", tag, number, _said(element)
                continue
            for name, value in ((str(n), v) for n, v in element.attrib.items()):
                if name not in after[number]:
                    kind = "handler" if name.lower().startswith("on") else "active_url"
                    yield f"functional/{kind}", f"{tag} {name}", number, str(value)

    def _unwrapped(self) -> Iterable[tuple[str, str, int, str]]:
        after = self.stages["attribute"]
        for element in self.trees["functional"].iter("*"):
            number, tag = number_of(element), str(element.tag)
            if number >= 0 and number not in after:
                key = "attribute/presentational_tag" if tag in PRESENTATIONAL else "structural/empty"
                yield key, tag, number, visible_text(element)

    def _values(self) -> list[Values]:
        """Classes, ids, styles and other attributes that attribute cleaning dropped."""
        after = self.stages["attribute"]
        found: dict[str, Counter[str]] = {name: Counter() for name in ("class", "id", "style", "attribute")}
        for element in self.trees["functional"].iter("*"):
            kept = after.get(number_of(element))
            for raw_name, value in element.attrib.items():
                name, key = str(raw_name), str(raw_name).lower()
                if name == MARK:
                    continue
                if key == "class":
                    classes = str(value).split()
                    stay = (
                        kept.get("class", "").split()
                        if kept is not None
                        else [n for n in classes if MEANINGFUL_CLASS.match(n)]
                    )
                    found["class"].update(n for n in classes if n not in stay)
                elif (name not in kept) if kept is not None else key not in KEPT_ATTRIBUTES:
                    kind = key if key in ("id", "style") else "attribute"
                    found[kind][name if kind == "attribute" else str(value)] += 1
        return [
            Values(
                kind,
                sum(counts.values()),
                [(visible(value[:200]), count) for value, count in _commonest(counts)],
                max(0, len(counts) - MAX_VALUES),
            )
            for kind, counts in found.items()
            if counts
        ]


def _commonest(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_VALUES]


def _functional_mark(tag: str) -> Mark:
    rule = _FUNCTION_OF.get(tag)
    return Mark(f"functional/{rule}") if rule is not None else Mark("functional/form", whole=False)


def _attribute_mark(tag: str) -> Mark:
    if tag in PRESENTATIONAL:
        return Mark("attribute/presentational_tag", whole=False)
    return Mark("structural/empty")


def _within_earlier(element: Element, rank: int) -> bool:
    return any(
        _RANK[_FUNCTION_OF[str(above.tag)]] < rank
        for above in element.iterancestors()
        if above.tag in _FUNCTION_OF
    )


def _said(element: Element) -> str:
    """What a person needs to see of a functional element: its address or name, else its text."""
    for name in ("src", "href", "data", "action", "name", "type"):
        value = element.get(name)
        if value:
            return f'{name}="{value}"'
    return " ".join(all_text(element).split())


def _without_pictures(html: str) -> str:
    """The cleaned page with each picture's words in its place: the report must not ask for anything."""
    if not html:
        return ""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    for element in root.iter("*"):
        if element.tag == "img":
            element.text, element.tag = f"[{element.get('alt') or 'picture'}]", "span"
        element.attrib.pop("src", "")
    return str(etree.tostring(root, encoding="unicode", method="html"))


def _parse(html: str) -> Element:
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    body = root.find("body")
    return root if body is None else body


def _attributes(tree: Element) -> dict[int, dict[str, str]]:
    return {
        number_of(element): {str(name): str(value) for name, value in element.attrib.items()}
        for element in tree.iter("*")
        if element.get(MARK) is not None
    }


def _compared(html: str) -> str:
    """A stage without blanks' number and without the ``main`` that cleaning puts round a whole body."""
    plain = " ".join(html.split())
    wrapped = _WRAPPED.fullmatch(plain)
    return f"{wrapped[1]}{wrapped[3]}</body>" if wrapped else plain


def _mark_chars(html: str) -> int:
    """Characters that the elements' numbers take in a stage, about."""
    parts = html.split(f' {MARK}="')
    return sum(len(MARK) + 4 + part.find('"') for part in parts[1:])


def _numbers(numbers: Numbers, wanted: set[str]) -> dict[str, int]:
    """Element numbers of the wanted DOM paths."""
    found: dict[str, int] = {}
    for number, element in enumerate(numbers.elements):
        if len(found) == len(wanted):
            break
        path = numbers.of(element)
        if path in wanted:
            found[path] = number
    return found

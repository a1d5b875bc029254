"""Templates: what repeats verbatim on most pages of a cluster is furniture.

A page's profile lists its text blocks as hashes of (tag path without positions,
text). A template holds the hashes that repeat on at least 60 % of the cluster's
pages (at least three pages, all of them where there are only three). Applied to
a page, repeated blocks go where they are mostly links, or stand before the first
or after the last block that is the page's own. Repeated blocks *between* a page's
own blocks stay (standard phrases of data sheets), as do headings, table rows,
definition lists and everything with an identifier or a quantity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpus.cleaning import vocabulary as words
from corpus.cleaning.layout import TableKinds
from corpus.cleaning.measure import BLOCKS, HEADINGS, INVISIBLE, Measures, size, visible_text
from corpus.cleaning.tags import Element
from corpus.ids import canonical_json, digest

_MIN_PAGES = 3
_SHARE = 0.6
_MAX_BLOCKS = 3000
_SKELETON_DEPTH = 5
_SKELETON_FEATURES = 80
_SKIN_DEPTH = 2


@dataclass(frozen=True)
class PageProfile:
    """What clustering needs of a page.

    ``skeleton``: features of the upper DOM (tag paths with class words), blank
    separated; ``skin``: hash of the uppermost levels alone, a property of the page
    that names its skin; ``blocks``: hashes of its text blocks, sorted.
    """

    pattern: str
    skeleton: str
    skin: str
    blocks: tuple[str, ...]
    encoding: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Template:
    """Hashes of the blocks that repeat on most of ``pages`` pages."""

    blocks: frozenset[str] = frozenset()
    pages: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data, the same for equal templates."""
        return {"blocks": sorted(self.blocks), "pages": self.pages}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Template:
        """The template of ``to_json``'s data; an empty one of an empty object."""
        return cls(frozenset(value.get("blocks", ())), int(value.get("pages", 0)))

    def hash(self) -> str:
        """Hash of what the template removes (not of how many pages it was made from)."""
        return digest("template", canonical_json(sorted(self.blocks)))

    def __bool__(self) -> bool:
        return bool(self.blocks)


def build_template(profiles: Sequence[PageProfile]) -> Template:
    """The blocks that repeat on at least 60 % of the pages; empty below three pages."""
    if len(profiles) < _MIN_PAGES:
        return Template()
    counts = Counter(block for profile in profiles for block in set(profile.blocks))
    needed = max(_MIN_PAGES, -(-len(profiles) * int(_SHARE * 100) // 100))
    return Template(frozenset(block for block, count in counts.items() if count >= needed), len(profiles))


def block_hashes(body: Element, measures: Measures) -> tuple[str, ...]:
    """Hashes of the blocks of a page that may become part of a template, sorted."""
    tables = TableKinds()
    found = (
        _hash(element, text) for element, text in _units(body, measures) if not _never(element, text, tables)
    )
    return tuple(sorted(set(found)))[:_MAX_BLOCKS]


def skeleton_of(body: Element) -> tuple[str, str]:
    """Skeleton (features of the upper levels, blank separated) and skin hash of a page."""
    features: list[str] = []
    skin: list[str] = []
    frontier: list[tuple[Element, str, int]] = [(child, "", 1) for child in body]
    while frontier and len(features) < 4 * _SKELETON_FEATURES:
        element, path, depth = frontier.pop(0)
        if element.tag in INVISIBLE or element.tag not in BLOCKS:
            continue
        names = words.words(f"{element.get('id', '')} {element.get('class', '')}")
        here = f"{path}/{element.tag}{'.' + names[0] if names else ''}"
        features.append(here)
        if depth <= _SKIN_DEPTH and element.tag in {
            "div",
            "header",
            "main",
            "footer",
            "nav",
            "table",
            "section",
        }:
            skin.append(f"{depth}{element.tag}.{'.'.join(words.words(element.get('id', '')))}")
        if depth < _SKELETON_DEPTH:
            frontier.extend((child, here, depth + 1) for child in element)
    chosen = sorted({digest(feature)[:8] for feature in features})[:_SKELETON_FEATURES]
    return " ".join(chosen), digest("skin", *sorted(set(skin)))[:12]


def template_elements(body: Element, template: Template, measures: Measures) -> list[Element]:
    """The elements of a page that the template names as furniture, in document order."""
    tables = TableKinds()
    units = list(_units(body, measures))
    repeated = [_hash(element, text) in template.blocks for element, text in units]
    own = [
        number
        for number, (element, _) in enumerate(units)
        if not repeated[number] and measures.text(element) >= 20 and measures.density(element) < 0.5
    ]
    first, last = (own[0], own[-1]) if own else (len(units), -1)
    chosen = []
    for number, (element, text) in enumerate(units):
        if not repeated[number] or _never(element, text, tables):
            continue
        outside = number < first or number > last
        if outside or measures.density(element) >= 0.5:
            chosen.append(element)
    return chosen


def _units(body: Element, measures: Measures) -> Iterator[tuple[Element, str]]:
    """Blocks with text of their own: their text up to inner blocks is what may repeat."""
    for element in body.iter(*BLOCKS):
        if element.tag in {"body", "html"} or not measures.text(element):
            continue
        if any(child.tag in BLOCKS for child in element.iter("*") if child is not element):
            continue
        text = visible_text(element)
        if size(text) >= 2:
            yield element, text


def _hash(element: Element, text: str) -> str:
    path = "/".join([str(ancestor.tag) for ancestor in element.iterancestors()][:12])
    return digest(path, str(element.tag), text)[:16]


def _never(element: Element, text: str, tables: TableKinds) -> bool:
    """Content by its kind: headings, definition lists, rows of data tables, facts."""
    if element.tag in HEADINGS or element.tag in {"dt", "dd", "th", "caption"} or words.has_facts(text):
        return True
    return tables.holds(element)

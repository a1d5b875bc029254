"""Functional cleaning: nothing that runs, loads, submits or redirects is left.

Scripts, styles, frames, forms and their controls, media, ``noscript`` duplicates,
``on*`` handlers, ``javascript:``, ``vbscript:`` and ``data:`` URLs, meta refresh.
The text of labels stays; a button that is the heading of a folded section becomes
that heading's text.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from lxml import etree

from corpus.cleaning.measure import BLOCKS, HEADINGS
from corpus.cleaning.orphans import settle_orphans
from corpus.cleaning.parsing import remove_attribute
from corpus.cleaning.tags import Element

#: Rule → tags that go with all they hold, in the order in which they are taken out.
FUNCTION_GROUPS = {
    "script": ("script", "template"),
    "style": ("style",),
    "noscript": ("noscript",),
    "frame": ("iframe", "frame", "frameset", "noframes", "object", "embed", "applet", "portal", "param"),
    "control": (
        *("input", "select", "option", "optgroup", "textarea", "button", "datalist"),
        *("output", "progress", "meter", "keygen"),
    ),
    "media": ("audio", "video", "canvas", "svg", "map", "area", "source", "track"),
    "head_link": ("base",),
}
UNWRAPPED = ("form", "fieldset", "label", "marquee", "blink")
_BETWEEN_PARTS = frozenset({"table", "thead", "tbody", "tfoot", "tr", "colgroup"})
_PARTS = frozenset({"thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col"})
_BLOCK_FRAMES = ("form", "fieldset", "marquee")
_URL_ATTRIBUTES = ("href", "src", "action", "formaction", "background", "poster", "data", "srcset", "cite")
_BAD_SCHEME = re.compile(r"^[\s\x00-\x20]*(?:javascript|vbscript|data|livescript|mocha)\s*:", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:_-]*")
_BLANKS = re.compile(r"[\s\x00-\x1f]+")


def clean_functions(root: Element) -> Counter[str]:
    """Remove all function from the tree, in place; counts by rule."""
    removed: Counter[str] = Counter()
    for button in root.iter("button"):
        if any(
            ancestor.tag in HEADINGS or ancestor.tag in {"dt", "summary"}
            for ancestor in button.iterancestors()
        ):
            button.tag = "span"
    for legend in root.iter("legend"):
        legend.tag = "p"
    for rule, tags in FUNCTION_GROUPS.items():
        count = sum(1 for _ in root.iter(*tags))
        if count:
            removed[rule] += count
            etree.strip_elements(root, *tags, with_tail=False)
    for element in list(root.iter("meta")):
        if (element.get("http-equiv") or "").lower() == "refresh":
            removed["meta_refresh"] += 1
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)
    wrapped = sum(1 for _ in root.iter(*UNWRAPPED))
    if wrapped:
        removed["form"] += wrapped
        _keep_apart(root)
        etree.strip_tags(root, *UNWRAPPED)
    for element in root.iter("*"):
        if not _is_name(element.tag):  # torn markup; it would not be read back as it stands
            element.tag = "div" if any(child.tag in BLOCKS for child in element) else "span"
    for table in root.iter("table"):
        for link in list(table.iterancestors("a")):  # a parser ends a link where a table begins
            link.tag = "div"
    settle_orphans(root)
    for element in root.iter("*"):
        for name in map(str, element.keys()):
            if function := _function_of(name):
                _clean_attribute(element, name, function, removed)
    return removed


def _keep_apart(root: Element) -> None:
    """Frames that are blocks and hold text of their own become blocks: "10", "20" in a form, must not become "1020".

    Those that only hold blocks go without a trace, and so do those between the parts of a table.
    """
    for frame in list(root.iter(*_BLOCK_FRAMES)):
        parent = frame.getparent()
        if parent is None or parent.tag in _BETWEEN_PARTS or any(child.tag in _PARTS for child in frame):
            continue
        own = [frame.text, *(child.tail for child in frame)]
        if any(text and text.strip() for text in own) or any(child.tag not in BLOCKS for child in frame):
            frame.tag = "div"


@lru_cache(maxsize=1024)
def _is_name(tag: str) -> bool:
    return bool(_NAME.fullmatch(tag))


@lru_cache(maxsize=1024)
def _function_of(name: str) -> str:
    """``handler`` or ``url`` for attributes that do something or lead somewhere; empty for all others."""
    key = name.lower()
    if key.startswith("on"):
        return "handler"
    return "url" if key in _URL_ATTRIBUTES or key.endswith("href") else ""


def _clean_attribute(element: Element, name: str, function: str, removed: Counter[str]) -> None:
    if function == "handler":
        remove_attribute(element, name)
        removed["handler"] += 1
    elif ":" in (value := element.get(name, "")) and _BAD_SCHEME.match(_BLANKS.sub("", value[:64])):
        remove_attribute(element, name)
        removed["active_url"] += 1

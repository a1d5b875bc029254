"""Attribute cleaning: ids, styles and every attribute and class that means nothing later.

Kept attributes: href, src, alt, title, lang, colspan, rowspan, scope, datetime, and
the numbering of lists (start, value, type: they carry the numbers of clauses).
Kept classes: those that later stages read (infobox, table roles, ``language-*``,
GHS pictograms) and those named as meaningful for the cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from html import escape
from urllib.parse import quote

from lxml import etree

from corpus.cleaning.measure import BLOCKS
from corpus.cleaning.parsing import MARK, remove_attribute
from corpus.cleaning.tags import Element, name_set

KEPT_ATTRIBUTES = name_set(
    "href src alt title lang colspan rowspan scope datetime start value type reversed class"
)
_PLACES = {
    "start": {"ol"},
    "reversed": {"ol"},
    "type": {"ol"},
    "value": {"li"},
    "href": {"a", "link", "area"},
    "colspan": {"td", "th"},
    "rowspan": {"td", "th"},
    "scope": {"td", "th"},
}
MEANINGFUL_CLASS = re.compile(
    r"^(?:infobox|chembox|drugbox|wikitable|infobox-\w+|language-[\w+#-]{1,30}|lang-[\w-]{1,20}|ghs-?\d{0,2}"
    r"|ghs[-_]?(?:pictogram|hazard|label)s?|h-statement|p-statement|pictograms?|signal-?word|math|tex|texhtml)$",
    re.IGNORECASE,
)
_LONG_ONES = name_set("href src alt title")
_SHORT_VALUE, _LONGEST_VALUE = 200, 4000
_URL_SIGNS = "".join(map(chr, range(33, 127)))
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
PRESENTATIONAL = ("font", "center", "big", "blink", "nobr", "tt")
_TO_DIV = name_set("header footer aside nav form center hgroup")


def clean_attributes(root: Element, kept_classes: Collection[str] = ()) -> Counter[str]:
    """Drop meaningless attributes in place; counts by rule. Presentational wrappers are unwrapped."""
    removed: Counter[str] = Counter()
    dropped: set[str] = set()
    for element in root.iter(*_TO_DIV):
        element.tag = "div"
    for element in root.iter("*"):
        for name in map(str, element.keys()):
            if rule := _means_nothing(name):
                removed[rule] += 1
                dropped.add(name)
            else:
                _clean_one(element, name, kept_classes, removed)
    if dropped:
        etree.strip_attributes(root, *dropped)  # all of them in one pass of the parser's own
    for anchor in root.iter("a"):
        if anchor.get("href") is None:
            anchor.tag = "span"
    count = sum(1 for _ in root.iter(*PRESENTATIONAL))
    if count:
        removed["presentational_tag"] += count
        for element in root.iter("font", "center", "nobr", "big", "tt"):
            if any(child.tag in BLOCKS for child in element):
                element.tag = "div"
        etree.strip_tags(root, *PRESENTATIONAL)
    return removed


@lru_cache(maxsize=1024)
def _means_nothing(name: str) -> str:
    """The rule that drops an attribute wherever it stands; empty where that depends, or takes more than its name."""
    key = name.lower()
    if name == MARK or key in KEPT_ATTRIBUTES or not _PLAIN_NAME.fullmatch(name):
        return ""
    return _rule(key)


def _rule(key: str) -> str:
    return key if key in {"id", "style"} else "attribute"


@lru_cache(maxsize=4096)
def _is_meaningful(name: str) -> bool:
    return bool(MEANINGFUL_CLASS.match(name))


def _clean_one(element: Element, name: str, kept_classes: Collection[str], removed: Counter[str]) -> None:
    if name == MARK:
        return
    key = name.lower()
    if key == "class":
        _clean_class(element, kept_classes, removed)
    elif key not in KEPT_ATTRIBUTES or element.tag not in _PLACES.get(key, {element.tag}):
        remove_attribute(element, name)
        removed[_rule(key)] += 1
    elif _is_endless(key, element.get(name, "")):
        remove_attribute(element, name)
        removed["long_value"] += 1


def _is_endless(key: str, value: str) -> bool:
    """Whether a value is longer than a reader's parser takes; as it will be written, with its escapes.

    A tag has at most four such values and some short ones, so it stays below the 20,000
    characters above which ``parsing`` shortens it.
    """
    if len(value) < _SHORT_VALUE:
        return False
    if key not in _LONG_ONES:
        return True
    written = quote(value, safe=_URL_SIGNS) if key in {"href", "src"} else value
    return len(escape(written)) > _LONGEST_VALUE


def _clean_class(element: Element, kept_classes: Collection[str], removed: Counter[str]) -> None:
    names = element.get("class", "").split()
    kept = [name for name in names if _is_meaningful(name) or name in kept_classes]
    removed["class"] += len(names) - len(kept)
    if kept:
        element.set("class", " ".join(dict.fromkeys(kept)))
    else:
        del element.attrib["class"]

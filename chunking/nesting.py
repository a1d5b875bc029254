"""Which kind of heading stands above which: by how their numbers run, not by one fixed order of styles.

A numbering that begins again below each heading of another kind lies within it; one
that runs on across the headings of another kind encloses it. Where the numbers do not
say, the usual order of styles counts (``headings.STYLE_ORDER``). The sections of a data
sheet are one kind however they are numbered; a heading that is merely called like one
(「第三节 急救措施」 under a chapter, 「（一）急救措施」 under 「四、应急处置」) stays with its own numbering.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from chunking.headings import STYLE_ORDER, Heading

Kind = tuple[str, int]  # style and depth of the number

SHEET: Kind = ("section", 1)
_PLAIN: Kind = ("plain", 1)
_BOOKS = ("book", "chapter")
_ALIKE = 2  # headings of a style with a data-sheet section's own number that make it the sheet's numbering
_DIGITS = dict(zip("零〇一二三四五六七八九两", (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2), strict=True))
_ROMAN = {"I": 1, "V": 5, "X": 10}


def ranks(heads: Mapping[int, Heading]) -> dict[int, int]:
    """Rank of each heading (by its line), 0 coarsest; headings of one kind have one rank."""
    order = sorted(heads)
    kinds = _kinds([heads[i] for i in order])
    numbers = [number_of(heads[i]) for i in order]
    found = sorted(set(kinds), key=_usual)
    for last in range(1, len(found)):  # each kind moves up past those that it encloses
        at = last
        while at and _encloses(found[at], found[at - 1], kinds, numbers):
            found[at - 1], found[at] = found[at], found[at - 1]
            at -= 1
    place = {kind: rank for rank, kind in enumerate(found)}
    return {i: place[kind] for i, kind in zip(order, kinds, strict=True)}


def number_of(heading: Heading) -> int | None:
    """The number a heading carries, the last part of a decimal one; None where there is none or it cannot be read."""
    text = heading.number
    if found := re.findall(r"\d+", text):
        return int(found[-1])
    if heading.style == "circled" and text:
        return ord(text[0]) - ord("①") + 1
    if han := re.search(r"[零〇一二三四五六七八九两十百]+", text):
        return _han(han[0])
    if latin := re.search(r"\b[IVX]+\b|\b[A-Za-z]\b", text):
        letters = latin[0]
        if heading.style in ("letter", "letter_paren") or not set(letters) <= _ROMAN.keys():
            return ord(letters[0].upper()) - ord("A") + 1
        return _roman(letters)
    return None


def _han(text: str) -> int | None:
    total = digit = 0
    for char in text:
        if char in "十百":
            total += (digit or 1) * (10 if char == "十" else 100)
            digit = 0
        else:
            digit = digit * 10 + _DIGITS[char]
    return total + digit or None


def _roman(text: str) -> int:
    values = [_ROMAN[char] for char in text]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _usual(kind: Kind) -> tuple[int, int]:
    style, depth = kind
    if style == "sds":  # names of sections without a number, in a text that is no data sheet
        return STYLE_ORDER.index("section"), 1
    if style == "han_paren":  # 一、（一）1.（1）, the order of official documents (GB/T 9704)
        return STYLE_ORDER.index("han"), 2
    return (STYLE_ORDER.index(style), depth) if style in STYLE_ORDER else (len(STYLE_ORDER), depth)


def _kinds(heads: Sequence[Heading]) -> list[Kind]:
    sheet = _sheet_styles(heads)
    kinds: list[Kind] = []
    for head in heads:
        kind = (head.style, head.depth) if head.style != "plain" else _PLAIN
        named = head.sds is not None or head.style in ("han", "section")
        if head.style in sheet and head.depth == 1 and named:
            kind = SHEET
        elif head.style == "sds" and sheet:
            kind = SHEET  # one that lost its number
        kinds.append(kind)
    return kinds


def _sheet_styles(heads: Sequence[Heading]) -> set[str]:
    """Styles that number the sections of a data sheet: what is called section 4 carries a 4, mostly."""
    found = set()
    for style in {head.style for head in heads} - {*_BOOKS, "plain", "sds"}:
        named = [head for head in heads if head.style == style and head.depth == 1 and head.sds is not None]
        alike = sum(number_of(head) == head.sds for head in named)
        if alike >= _ALIKE and 2 * alike >= len(named):
            found.add(style)
    return found


def _encloses(inner: Kind, outer: Kind, kinds: Sequence[Kind], numbers: Sequence[int | None]) -> bool:
    """Whether numbers say that what usually stands below stands above.

    ``inner`` runs on by one across headings of ``outer``, and those begin again at 1 below
    each heading of ``inner`` (where they have numbers).
    """
    if _PLAIN in (inner, outer) or inner[0] == "sds" or inner[1] > 1:
        return False
    own = [at for at, kind in enumerate(kinds) if kind == inner]
    across = False
    for left, right in pairwise([*own, len(kinds)]):
        below = [at for at in range(left + 1, right) if kinds[at] == outer]
        if right < len(kinds):
            if numbers[left] is None or numbers[right] != (numbers[left] or 0) + 1:
                return False
            across = across or bool(below)
        if below and numbers[below[0]] not in (1, None):
            return False
    if own and any(kind == outer for kind in kinds[: own[0]]):
        return False  # it began below one of them
    return across

"""The figures of the fire diamond (NFPA 704) and the mark of its fourth field."""

from __future__ import annotations

import re

from corpus.quantities import is_no_data
from kg.extraction.context import Context
from kg.extraction.model import Draft
from kg.schema import NodeLabel, Relation, nfpa_key

_NFPA = {
    "health": r"(?:health|健康(?:危害|危险)?|H)\s*[:：(]?\s*([0-4])",
    "fire": r"(?:flammability|fire|可?燃(?:性|烧)?|F)\s*[:：(]?\s*([0-4])",
    "instability": r"(?:instability|reactivity|反应(?:性|活性)?|不稳定性?|R|I)\s*[:：(]?\s*([0-4])",
}


_SPECIAL = re.compile(
    r"(?<![A-Za-z])(?:special(?: hazards?| notice)?|other|white|特殊(?:危险|危害|性)?(?:标[志识])?|特别(?:危险|危害)?|其[他它])\s*[:：=(]?\s*"
    r"(?P<mark>W̶|-W-|₩|W|OXY?|SA)(?![A-Za-z])(?:\s*(?:[+,，、/&]|and|和)\s*(?P<second>W|OXY?|SA)(?![A-Za-z]))?",
    re.IGNORECASE,
)
_MARKS = {"OXY": "OX", "-W-": "W", "W̶": "W", "₩": "W"}


def _special(words: str) -> str | None:
    """The mark of the fourth field ("W", "OX", "SA"), "" where none is named, None where something else stands there."""
    found = _SPECIAL.search(words)
    if found:
        marks = [found["mark"].upper(), (found["second"] or "").upper()]
        return "+".join(_MARKS.get(mark, mark) for mark in marks if mark)
    named = re.search(
        r"(?<![A-Za-z])(?:special(?: hazards?| notice)?|特殊[一-鿿]{0,4}|特别[一-鿿]{0,2})\s*[:：=(]\s*(?P<said>[^,，;；|]*)",
        words,
        re.IGNORECASE,
    )
    said = named["said"].strip(" ()（）.。") if named else ""
    return (
        ""
        if not said or is_no_data(said) or re.fullmatch(r"(?:none|no|nil|无|-|–|—)", said, re.IGNORECASE)
        else None
    )


def nfpa(ctx: Context) -> list[Draft]:
    """RATED, only where each figure is named: the order of bare figures differs between pages."""
    drafts = []
    for entry, found in ctx.entries("hazard"):
        if found.name != "nfpa":
            continue
        words = ctx.shadow(entry.start, entry.end)
        ratings = {
            n: m[1] for n, p in _NFPA.items() if (m := re.search(rf"(?<![A-Za-z]){p}", words, re.IGNORECASE))
        }
        special = _special(words)
        if len(ratings) == 3 and special is not None:
            drafts.append(
                ctx.draft(
                    Relation.RATED, ctx.text(entry.start, entry.end), NodeLabel.NFPA_RATING, (entry.label_start, entry.end),
                    key=nfpa_key(ratings["health"], ratings["fire"], ratings["instability"], special),
                    properties={**ratings, "special": special}, section=entry.sds,
                )
            )  # fmt: skip
    return drafts

"""Which GHS category a document gives, and which other it therefore does not.

One entry may be in several categories of a class: by route or organ, by form,
by concentration, in another scheme, in another source. So a category is only
asked about where one document gives one category of a class that knows no
routes or organs, without conditions, and a list that the document gives as
complete (its H statements, or its classification) bears it out. Categories that
share an H code, or of which one contains the other (1 and 1A), cannot be told
apart by such a list and are never played against each other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from kg.extraction.vocabulary import hazard_names
from kg.qa.facts import Fact, Facts
from kg.schema import NodeLabel, Relation

_CODES: dict[str, dict[str, tuple[str, ...]]] = {
    "flammable_liquids": {"1": ("H224",), "2": ("H225",), "3": ("H226",), "4": ("H227",)},
    "flammable_gases": {"1": ("H220",), "2": ("H221",)},
    "aerosols": {"1": ("H222",), "2": ("H223",)},
    "self_heating": {"1": ("H251",), "2": ("H252",)},
    "water_reactive": {"1": ("H260",), "2": ("H261",), "3": ("H261",)},
    "oxidizing_liquids": {"1": ("H271",), "2": ("H272",), "3": ("H272",)},
    "oxidizing_solids": {"1": ("H271",), "2": ("H272",), "3": ("H272",)},
    "skin_corrosion": {"1": ("H314",), "2": ("H315",), "3": ("H316",)},
    # H314 says more than H318, which then may be left out
    "eye_damage": {"1": ("H318", "H314"), "2": ("H319", "H320")},
    "germ_cell_mutagenicity": {"1": ("H340",), "2": ("H341",)},
    "carcinogenicity": {"1": ("H350",), "2": ("H351",)},
    "reproductive_toxicity": {"1": ("H360",), "2": ("H361",)},
    "aspiration_hazard": {"1": ("H304",), "2": ("H305",)},
    # H410 to H412 say more than H400 to H402, which then may be left out
    "aquatic_acute": {"1": ("H400", "H410"), "2": ("H401", "H411"), "3": ("H402", "H412")},
    "aquatic_chronic": {"1": ("H410",), "2": ("H411",), "3": ("H412",), "4": ("H413",)},
}
"""H codes of each category (UN GHS, annex 3): by these a list of H statements tells categories apart."""


@dataclass(frozen=True)
class Case:
    """One category that a document gives, the list that bears it out, and others of the class that it excludes.

    ``own``, ``against``: what gives this category, and any of the others, away in keys.
    """

    hazard: str
    stated: Fact
    listing: str
    own: tuple[str, ...]
    against: tuple[str, ...]
    others: tuple[str, ...]


def cases(facts: Facts) -> Iterator[Case]:
    """All cases, by document, subject and class."""
    groups: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts.facts:
        if fact.relation == Relation.CLASSIFIED_AS and fact.subject_label == NodeLabel.SUBSTANCE:
            hazard = str(fact.properties.get("hazard") or fact.object.partition("/")[0])
            groups[fact.source.document_id, fact.subject, hazard].append(fact)
    lists: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, members in facts.by_listing.items():
        first = members[0]
        if (
            first.relation in {Relation.HAS_H, Relation.CLASSIFIED_AS}
            and first.source.kind != "reference"
            and len({(m.subject, m.relation, m.source.document_id) for m in members}) == 1
            and not any(m.conditions for m in members)
        ):
            lists[first.source.document_id, first.subject].append(key)
    known = sorted(key for label, key in facts.nodes if label == NodeLabel.HAZARD_CLASS)
    for document, subject, hazard in sorted(groups):
        found = groups[document, subject, hazard]
        if hazard not in _CODES or not _single(found):
            continue
        stated = min(found, key=lambda fact: (fact.start, fact.id))
        own = marks(stated.object)
        for listing in sorted(lists[document, subject]):
            members = facts.by_listing[listing]
            if members[0].section != stated.section or not _any_in(own, (m.object for m in members)):
                continue
            against = _marks_of_others(stated.object)
            if _any_in(against, _said(facts, stated, members)):
                break
            ranks = _other_ranks(stated.object)
            others = tuple(
                key
                for key in known
                if key.partition("/")[0] == hazard and key.count("/") == 1 and _rank(key) in ranks
            )
            yield Case(hazard, stated, listing, own, against, others)
            break


def _single(found: list[Fact]) -> bool:
    """One plain category of the class, said once or several times."""
    return len({fact.object for fact in found}) == 1 and all(
        fact.positive
        and not fact.conditions
        and fact.modality == "is"
        and fact.section is not None
        and not fact.properties.get("route")
        and fact.properties.get("scheme", "ghs") == "ghs"
        and fact.object.count("/") == 1
        and _rank(fact.object) in _CODES[fact.object.partition("/")[0]]
        for fact in found
    )


def _any_in(wanted: Iterable[str], keys: Iterable[str]) -> bool:
    """Whether one of the marks stands in one of the keys ("H300+H310" holds H310, "H360FD" is H360)."""
    found = list(keys)
    return any(mark in key for mark in wanted for key in found)


def _said(facts: Facts, stated: Fact, members: Sequence[Fact]) -> list[str]:
    """Categories and H codes that any source gives the subject, and those of the list."""
    return [
        fact.object
        for fact in facts.by_subject[stated.subject_label, stated.subject]
        if fact.relation in {Relation.CLASSIFIED_AS, Relation.HAS_H}
    ] + [member.object for member in members]


def _other_ranks(key: str) -> set[str]:
    """Numbers of the class's categories that a list of codes tells apart from this one."""
    hazard, own = key.partition("/")[0], set(marks(key))
    return {rank for rank in _CODES[hazard] if not own & set(marks(f"{hazard}/{rank}"))}


def _marks_of_others(key: str) -> tuple[str, ...]:
    hazard = key.partition("/")[0]
    return tuple(sorted(mark for rank in _other_ranks(key) for mark in marks(f"{hazard}/{rank}")))


def marks(key: str) -> tuple[str, ...]:
    """What gives a category away in keys: "class/number" (1 stands for 1A to 1C too) and its H codes."""
    hazard = key.partition("/")[0]
    return (f"{hazard}/{_rank(key)}", *_CODES.get(hazard, {}).get(_rank(key), ()))


def _rank(key: str) -> str:
    """Number of a category without its letter: 1A, 1B and 1C are parts of 1."""
    return key.partition("/")[2][:1]


@cache
def _pattern(hazard: str, rank: str) -> re.Pattern[str]:
    names = sorted(
        {name.spelling for name in hazard_names() if name.slug == hazard}, key=lambda n: (-len(n), n)
    )
    spelled = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in names)
    return re.compile(rf"(?:{spelled})[^。\n;；]{{0,40}}?(?<![\d.]){rank}(?![\d.]*\d)", re.IGNORECASE)


def others_in_text(stated: str, text: str) -> bool:
    """Whether a document names another category of the class after all: an H code, or the class with its number."""
    hazard = stated.partition("/")[0]
    if any(mark in text for mark in _marks_of_others(stated) if "/" not in mark):
        return True
    return any(_pattern(hazard, rank).search(text) for rank in _other_ranks(stated))

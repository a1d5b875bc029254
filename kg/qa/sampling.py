"""Seeded order, sides of the split, and caps: the same choice on every machine and server."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from corpus.ids import digest
from kg.graph_settings import QuestionSettings
from kg.qa.facts import Facts
from kg.qa.records import Candidate
from kg.schema import NodeLabel, Relation

Side = Literal["train", "eval"]
T = TypeVar("T")
_MATTER = (NodeLabel.SUBSTANCE, NodeLabel.MIXTURE)


def seeded(items: Iterable[T], seed: int, key: Callable[[T], str]) -> list[T]:
    """Items in an order that depends on the seed and each item only."""
    return sorted(items, key=lambda item: (digest("order", str(seed), key(item)), key(item)))


def components(facts: Facts) -> dict[str, str]:
    """Substance key → key of its group (the smallest member): what must stay on one side.

    Joined: decided links (a solution and what is dissolved), components of
    mixtures, substances that share a name, and forms of one substance
    (hydrates, salts and solutions named after it).
    """
    parent: dict[str, str] = {}

    def find(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    def join(left: str, right: str) -> None:
        a, b = sorted((find(left), find(right)))
        parent[b] = a

    matter = sorted(
        {key for label, key in facts.nodes if label in _MATTER}
        | {fact.subject for fact in facts.facts}
        | {fact.object for fact in facts.facts if fact.object_label in _MATTER}
    )
    for key in matter:
        find(key)
    for left, right in facts.links:
        join(left, right)
    for fact in facts.facts:
        if fact.relation == Relation.HAS_COMPONENT and fact.object_label in _MATTER:
            join(fact.subject, fact.object)
    by_name: dict[str, list[str]] = defaultdict(list)
    for label, key in sorted(facts.nodes):
        if label in _MATTER:
            for name in facts.names(label, key):
                by_name[_stem(name)].append(key)
    for keys in by_name.values():
        for key in keys[1:]:
            join(keys[0], key)
    return {key: find(key) for key in matter}


_FORMS = re.compile(
    r"[半一二三四五六七八九十]+水合?物?|水合物?|无水|结晶|水?溶液|(?:二|三)?[钠钾铵锂]盐|(?:盐酸|氢溴酸|硫酸氢|草酸)盐"
    r"|(?:hemi|mono|di|tri|tetra|penta|hexa|hepta|octa|nona|deca|dodeca)?hydrate|anhydrous|hydrochloride|hydrobromide"
    r"|(?:di|tri)?(?:sodium|potassium|ammonium)salt|aqueous|solution"
)


def _stem(name: str) -> str:
    """A normalised name without words for its form (names come without blanks)."""
    return re.sub(r"\(\)|（）", "", _FORMS.sub("", name)).strip("-,") or name


def sides(groups: Mapping[str, str], settings: QuestionSettings) -> dict[str, Side]:
    """Side of each substance: its group's hash decides, so that a group never crosses."""
    share = settings.evaluation_share

    def side(group: str) -> Side:
        drawn = int(digest("split", str(settings.seed), group)[:12], 16) / 16**12
        return "eval" if drawn < share else "train"

    return {key: side(group) for key, group in groups.items()}


def side_of(substances: Sequence[str], sides: Mapping[str, Side]) -> Side | None:
    """The one side all substances are on, or None where they are on both."""
    found = {sides.get(key, "train") for key in substances}
    return next(iter(found)) if len(found) == 1 else None


def capped(
    candidates: Sequence[Candidate], settings: QuestionSettings
) -> tuple[list[Candidate], Counter[str]]:
    """Multi-hop candidates within the caps per metapath, seed and answer; counts of what a cap cut."""
    used: Counter[tuple[str, ...]] = Counter()
    dropped: Counter[str] = Counter()
    kept: list[Candidate] = []
    for candidate in seeded(candidates, settings.seed, lambda c: c.id):
        caps = [
            (("metapath", candidate.metapath, candidate.language), settings.per_metapath),
            (("seed", candidate.metapath, candidate.language, candidate.nodes[0]), settings.per_seed),
            *(
                (("answer", candidate.metapath, candidate.language, str(answer)), settings.per_answer)
                for answer in candidate.expected
            ),
        ]
        full = next((cap for cap, limit in caps if used[cap] >= limit), None)
        if full is not None:
            dropped[f"cap_{full[0]}"] += 1
            continue
        used.update(cap for cap, _ in caps)
        kept.append(candidate)
    return kept, dropped

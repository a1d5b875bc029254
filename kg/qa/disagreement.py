"""Whether another source contradicts a statement: what rests on it alone would hide the disagreement."""

from __future__ import annotations

from kg.qa.facts import Fact, Facts
from kg.schema import Relation

_OPPOSITE = {
    Relation.EXTINGUISHED_BY: Relation.NOT_EXTINGUISHED_BY,
    Relation.NOT_EXTINGUISHED_BY: Relation.EXTINGUISHED_BY,
}
_LISTED_WHOLE = frozenset({Relation.HAS_H, Relation.SHOWS_PICTOGRAM})

_AGENTS = {
    **dict.fromkeys(("water", "water_spray", "water_jet"), frozenset({"water"})),
    **dict.fromkeys(("foam", "alcohol_resistant_foam"), frozenset({"foam"})),
    **dict.fromkeys(
        ("dry_powder", "class_d", "soda_ash", "graphite", "sand", "dry_lime"), frozenset({"powder"})
    ),
}


def agent_matter(key: str) -> frozenset[str]:
    """What an agent consists of: "water" and "water spray" are of one kind, "foam" is mostly water."""
    return _AGENTS.get(key.partition(":")[2], frozenset({key}))


def contradicted(facts: Facts, fact: Fact) -> bool:
    """Whether something that is stated of the same subject speaks against a positive statement.

    A denial; the same or a related agent as suitable and as unsuitable; another category of the
    same class, route and scheme; another transport entry; a list of H codes or pictograms that
    its source gives as complete and that does not hold it. Values have their tolerances elsewhere.
    """
    stated = facts.by_subject[fact.subject_label, fact.subject]
    if any(not other.positive and other.triple() == fact.triple() for other in stated):
        return True
    relation = fact.relation
    same = [other for other in stated if other.relation == relation and other.positive]
    if relation in _OPPOSITE:
        # whatever the condition: one source may mean the spray and the other the jet; a source may say both itself
        return any(
            other.relation == _OPPOSITE[relation]
            and other.positive
            and (
                other.object == fact.object
                or (
                    other.source.document_id != fact.source.document_id
                    and agent_matter(other.object) & agent_matter(fact.object)
                )
            )
            for other in stated
        )
    if relation == Relation.CLASSIFIED_AS:
        return any(_class(other) == _class(fact) and other.object != fact.object for other in same)
    if relation == Relation.SHIPPED_AS:
        return any(
            len({str(f.properties[name]) for f in (other, fact) if f.properties.get(name)}) > 1
            for other in same
            for name in ("un", "hazard_class", "packing_group")
        )
    if relation in _LISTED_WHOLE:
        lists: dict[str, set[str]] = {}
        for other in same:
            if other.listing and other.source.document_id != fact.source.document_id:
                lists.setdefault(other.listing, set()).add(other.object)
        return any(fact.object not in members for members in lists.values())
    return False


def _class(fact: Fact) -> tuple[str, str, str]:
    props = fact.properties
    hazard = str(props.get("hazard") or fact.object.partition("/")[0])
    return hazard, str(props.get("route") or ""), str(props.get("scheme") or "ghs")

"""What sources say of a substance, side by side, and whether they contradict each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corpus.catalogue.tables import Assertion, Document
from corpus.ids import canonical_json
from kg.qa import wording
from kg.qa.boolean import same_identifier
from kg.schema import FUNCTIONAL_ALIASES, RELATIONS, ROUTE_WORDING, Relation, Route, property_spec

_VALUES = frozenset({Relation.HAS_MEASUREMENT, Relation.HAS_LIMIT, Relation.HAS_TOXICITY})
_INSTRUCTIONS = frozenset(
    {
        Relation.FIRST_AID,
        Relation.SPILL_ACTION,
        Relation.STORE_UNDER,
        Relation.REQUIRES_PPE,
        Relation.DISPOSED_BY,
    }
)
_OPPOSITE = {
    Relation.EXTINGUISHED_BY: Relation.NOT_EXTINGUISHED_BY,
    Relation.NOT_EXTINGUISHED_BY: Relation.EXTINGUISHED_BY,
}


@dataclass(frozen=True)
class Stated:
    """One statement as shown: what its source says, and the row with the evidence."""

    words: str
    negative: bool
    modality: str
    conditions: str
    comparison: str
    row: Assertion


@dataclass
class Matter:
    """Statements on one matter, one after another by source."""

    relation: Relation
    zh: str
    en: str
    key: str
    statements: list[Stated] = field(default_factory=list)
    conflict: bool = False
    why: tuple[str, str] = ("", "")


def relation_title(relation: str) -> tuple[str, str]:
    """Heading of a relation in Chinese and English."""
    spec = RELATIONS.get(Relation(relation)) if relation in {r.value for r in RELATIONS} else None
    return (spec.zh, spec.en) if spec else (relation, relation)


def grouped(
    rows: Sequence[Assertion],
    documents: Mapping[str, Document],
    names: Mapping[str, tuple[str, str]],
    differing: Mapping[str, str],
) -> list[Matter]:
    """Statements of one substance by matter, with conflicts marked; in the order of the vocabulary.

    ``differing``: ids of assertions whose value differs from another source's, with how far (``kg.conflicts``).
    """
    matters: dict[tuple[str, str], Matter] = {}
    order = {relation.value: at for at, relation in enumerate(RELATIONS)}
    for row in rows:
        if row.relation not in order:  # of a vocabulary that a user's file had added and has no longer
            continue
        relation = Relation(row.relation)
        key = _matter_key(row, relation)
        if (row.relation, key) not in matters:
            zh, en = matter_names(row, relation, names)
            matters[row.relation, key] = Matter(relation, zh, en, key)
        matters[row.relation, key].statements.append(_stated(row, relation))
    for (name, key), matter in matters.items():
        matter.statements.sort(key=lambda s: (documents[s.row.document_id].kind == "reference", s.row.document_id, s.row.start))  # fmt: skip
        opposite = _OPPOSITE.get(Relation(name))
        against = matters.get((opposite.value, key)) if opposite else None
        matter.why = _conflict(matter, against, differing)
        matter.conflict = bool(matter.why[0])
    # names and identifiers, which every source repeats, come after what is at stake
    last = len(order)
    return sorted(
        matters.values(),
        key=lambda m: (
            last if m.relation == Relation.HAS_ALIAS else order[m.relation.value],
            m.zh or m.en,
            m.key,
        ),
    )


def _matter_key(row: Assertion, relation: Relation) -> str:
    props = row.properties
    conditions = canonical_json(row.value["conditions"]) if row.value.get("conditions") else ""
    if relation in _VALUES:
        parts = (props.get(n) for n in ("property", "kind", "jurisdiction", "endpoint", "species", "route"))
        return canonical_json([*parts, conditions, row.conditions])
    if relation in _INSTRUCTIONS:
        return str(props.get("route") or row.conditions.get("route") or "")
    if relation == Relation.CLASSIFIED_AS:
        return canonical_json([props.get(n) for n in ("hazard", "route", "scheme")])
    if relation == Relation.HAS_ALIAS:
        return str(props.get("kind") or "")
    if relation in {Relation.SHIPPED_AS, Relation.RATED}:
        return ""
    return row.object_key


def what_is_said(row: Assertion) -> tuple[str, str]:
    """What a statement tells, in Chinese and English: of a value the property, else the relation."""
    relation = next((r for r in _VALUES if r.value == row.relation), None)
    return matter_names(row, relation, {}) if relation is not None else relation_title(row.relation)


def matter_names(row: Assertion, relation: Relation, names: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """What statements of one matter have in common, in Chinese and English."""
    props, spec = row.properties, RELATIONS[relation]
    measured = property_spec(props.get("property"))
    if relation == Relation.HAS_MEASUREMENT and measured is not None:
        name = str(props["property"])
        conditions = row.value.get("conditions") or {}
        bare = f" {canonical_json(conditions)}" if conditions else ""
        return (
            wording.property_words(name, conditions, "zh") or measured.zh + bare,
            wording.property_words(name, conditions, "en") or measured.en + bare,
        )
    if relation in _VALUES:
        parts = [props.get(n) for n in ("kind", "endpoint", "jurisdiction", "species", "route")]
        said = " ".join(str(part) for part in parts if part)
        return said or spec.zh, said or spec.en
    if relation in _INSTRUCTIONS:
        route = str(props.get("route") or row.conditions.get("route") or "")
        if route in {r.value for r in Route}:
            zh, en = ROUTE_WORDING[Route(route)]
            return zh, en
        return spec.zh, spec.en
    if relation == Relation.CLASSIFIED_AS:
        route = str(props.get("route") or "")
        hazard = (str(props.get("zh") or ""), str(props.get("en") or props.get("hazard") or ""))
        return (f"{hazard[0]} {route}".strip(), f"{hazard[1]} {route}".strip())
    if relation == Relation.HAS_ALIAS:
        kind = str(props.get("kind") or "")
        return wording.KIND_WORDING.get(kind, (spec.zh, spec.en if kind == "name" else kind or spec.en))
    if relation in {Relation.SHIPPED_AS, Relation.RATED}:
        return spec.zh, spec.en
    return object_names(row, names)


def object_names(row: Assertion, names: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """The object in Chinese and English; as the source writes it where there is no name."""
    if row.object_key in names:
        return names[row.object_key]
    props = row.properties
    if row.value and "text" not in row.value:
        said = wording.value_words(row.value, "en") or row.object
        what = str(props.get("property") or props.get("kind") or props.get("endpoint") or "")
        return "", f"{what.replace('_', ' ')} {said}".strip()
    zh, en = str(props.get("zh") or ""), str(props.get("en") or "")
    if props.get("code"):
        return str(props["code"]), str(props["code"])
    if zh or en:
        return zh, en
    if props.get("un"):
        return shipped_words(row), shipped_words(row)
    return row.object, ""


def shipped_words(row: Assertion) -> str:
    """A transport entry in words: UN number, class and packing group."""
    props = row.properties
    return " · ".join(str(v) for v in (f"UN {props['un']}", props.get("hazard_class"), props.get("packing_group")) if v)  # fmt: skip


def conditions_beside(row: Assertion) -> dict[str, str]:
    """Conditions that the words of the matter do not hold: those of a measured property do, in brackets."""
    held = dict(row.conditions)
    if row.relation in _VALUES and row.relation != Relation.HAS_MEASUREMENT:
        held |= row.value.get("conditions") or {}
    return {name: str(value) for name, value in sorted(held.items())}


def _stated(row: Assertion, relation: Relation) -> Stated:
    said = [f"{name}: {value}" for name, value in conditions_beside(row).items()]
    compared = row.properties.get("comparison")
    comparison = (
        "; ".join(f"{source}: {verdict}" for source, verdict in sorted(compared.items()))
        if isinstance(compared, dict)
        else ""
    )
    return Stated(
        words=_words(row, relation),
        negative=row.polarity == "negative",
        modality=row.modality,
        conditions="; ".join(said),
        comparison=comparison,
        row=row,
    )


def _words(row: Assertion, relation: Relation) -> str:
    props = row.properties
    if relation in _VALUES or (row.value and relation == Relation.HAS_COMPONENT):
        value = wording.value_words(row.value, "en") if row.value else None
        return value or str(row.value.get("text") or row.object)
    if relation == Relation.CLASSIFIED_AS:
        return str(props.get("category") or row.object)
    if relation == Relation.SHIPPED_AS and props.get("un"):
        return shipped_words(row)
    if relation in _INSTRUCTIONS:
        return str(props.get("text") or row.object)
    return str(props.get("text") or row.object)


# --- conflicts --------------------------------------------------------------------


def _conflict(matter: Matter, against: Matter | None, differing: Mapping[str, str]) -> tuple[str, str]:
    """Why the sources contradict each other, in Chinese and English; empty where they do not."""
    positive = [s.row for s in matter.statements if not s.negative]
    denied = [s.row for s in matter.statements if s.negative]
    if matter.relation not in _INSTRUCTIONS and matter.relation != Relation.HAS_ALIAS:
        # a list of categories or entries is denied by object, not as a whole
        both = {row.object_key for row in positive} & {row.object_key for row in denied}
        if both:
            return "有的来源肯定，有的来源否定", "stated by one source and denied by another"
    if against is not None and positive and any(not s.negative for s in against.statements):
        return "既列为适用，又列为不适用", "named both as suitable and as unsuitable"
    if any(row.assertion_id in differing for row in positive):
        return "数值相差超出允许范围", "values differ by more than the tolerance"
    if matter.relation == Relation.HAS_ALIAS and matter.key in {kind.value for kind in FUNCTIONAL_ALIASES}:
        keys = sorted({row.object_key for row in positive})
        if any(not same_identifier(matter.key, keys[0], other) for other in keys[1:]):
            return "同一标识有不同的值", "more than one value of an identifier that has one"
    if matter.relation == Relation.CLASSIFIED_AS:
        by_source: dict[str, set[str]] = defaultdict(set)
        for row in positive:
            by_source[row.document_id].add(str(row.properties.get("category")))
        if len({frozenset(found) for found in by_source.values()}) > 1:
            return "各来源的类别不同", "sources give different categories"
    return "", ""

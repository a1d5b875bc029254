"""The skill ``extract_assertions``: a window of a document to assertions, by a model or by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from corpus.documents import RefinedDocument
from corpus.ids import canonical_json, digest
from corpus.names import normalise_name
from corpus.quantities import NoData, is_no_data, numbers_in, parse_quantities, parse_quantity
from kg.extension import added_relations, described
from kg.extraction.context import language_of
from kg.extraction.evidence import folded, judge, locate
from kg.extraction.model import Draft, Subject
from kg.extraction.reader import read
from kg.extraction.rules import extract
from kg.extraction.subject import find_subject
from kg.extraction.values import default_unit
from kg.extraction.vocabulary import agents, field_of, fields, group_term, shadow, word_form
from kg.schema import (
    ADDED_LABELS,
    NAME_KINDS,
    PROPERTIES,
    RELATIONS,
    SCHEMA_VERSION,
    AliasKind,
    DropReason,
    MeasureKind,
    Modality,
    NodeLabel,
    Polarity,
    Property,
    Relation,
    Route,
    added_key,
    alias_key,
    measure_key,
    regulation_key,
    use_key,
)
from models import ACCEPT, Skill, Verdict
from models.prompts import Prompts, Quoted
from models.skills import Message

RULES_VERSION = "9"
MODEL_RELATIONS = (
    Relation.HAS_ALIAS, Relation.MEMBER_OF, Relation.HAS_MEASUREMENT, Relation.INCOMPATIBLE_WITH,
    Relation.STORE_APART_FROM, Relation.DECOMPOSES_TO, Relation.BURNS_TO, Relation.EXTINGUISHED_BY,
    Relation.NOT_EXTINGUISHED_BY, Relation.FIRST_AID, Relation.SPILL_ACTION, Relation.STORE_UNDER,
    Relation.REQUIRES_PPE, Relation.DISPOSED_BY, Relation.REGULATED_BY, Relation.USED_FOR,
)  # fmt: skip
"""What a model may state. Codes, classes, limits, shares and identifiers are read by the rules alone."""


def model_relations() -> tuple[Relation, ...]:
    """What a model may state, with the relations that a user's file adds."""
    return (*MODEL_RELATIONS, *added_relations())


def _offered(schema: dict[str, Any]) -> None:
    schema["enum"] = [relation.value for relation in model_relations()]


class ExtractedAssertion(BaseModel):
    """One assertion as a model states it. ``quote`` is copied from the window, letter by letter."""

    relation: str = Field(
        description="one of the relation names listed",
        json_schema_extra=_offered,
    )
    subject: str = Field(default="", description="the substance as written; empty for the document's own")
    object: str = Field(description="the other end or the value, as written")
    property: str = Field(
        default="", description="of HAS_MEASUREMENT: which property; of HAS_ALIAS: name or trade"
    )
    polarity: Literal["positive", "negative"] = "positive"
    modality: Literal["is", "may", "must"] = "is"
    conditions: dict[str, str] = Field(default_factory=dict)
    quote: str = Field(description="the words of the window that state it, copied exactly")
    exact: SkipJsonSchema[dict[str, Any] | None] = None


class ExtractedAssertions(BaseModel):
    """All assertions of a window."""

    assertions: list[ExtractedAssertion]


@dataclass(frozen=True)
class ExtractionGiven:
    """A window ``text[start:end]`` of a document, with the document's subject.

    ``rejected_share``: how many of a model's assertions may fail before it is asked again.
    """

    document: RefinedDocument
    start: int
    end: int
    subject: Subject | None
    rejected_share: float = 0.2

    @property
    def text(self) -> str:
        """The window's text."""
        return self.document.text[self.start : self.end]

    @property
    def language(self) -> str:
        """The document's language code."""
        return self.document.language


class ExtractAssertions(Skill[ExtractionGiven, ExtractedAssertions]):
    """Assertions of a window. The offline answer is the rule set of this package."""

    name: ClassVar[str] = "extract_assertions"
    version: ClassVar[str] = f"{SCHEMA_VERSION}.{RULES_VERSION}"
    output: ClassVar[type[BaseModel]] = ExtractedAssertions
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "extract_assertions")

    def values(self, given: ExtractionGiven) -> dict[str, Quoted]:
        """The document's subject and the window; the vocabulary stands in the prompt file, the same for all."""
        subject = given.subject.name if given.subject else ""
        return {"subject": Quoted(subject, "subject"), "text": Quoted(given.text, "text")}

    def messages(self, given: ExtractionGiven) -> list[Message]:
        """The prompt's messages; what a user's file adds stands in the first, the same for all documents."""
        first, *rest = super().messages(given)
        added = described(given.language)
        if not added:
            return [first, *rest]
        title = (
            "另外的关系与性质：" if given.language.startswith("zh") else "Further relations and properties:"
        )
        return [Message(first.role, f"{first.content}\n\n{title}\n{added}"), *rest]

    def check(self, given: ExtractionGiven, answer: ExtractedAssertions) -> Verdict:
        """Ask again where too many assertions have no exact quote or a number that it does not state."""
        if not answer.assertions:
            return ACCEPT
        faults = []
        for item in answer.assertions:
            if item.exact is not None:  # the rules' own; a model's is never trusted (drafts_of)
                continue
            draft = to_draft(given, item)
            reason = draft if isinstance(draft, DropReason) else judge(draft, given.document)[0]
            if reason is not None and reason is not DropReason.NO_DATA:
                faults.append(f"{reason.value}: {item.relation} {item.object!r}, quote {item.quote[:80]!r}")
        if len(faults) > given.rejected_share * len(answer.assertions):
            return Verdict.ask_again(*faults[:20])
        return ACCEPT

    def offline(self, given: ExtractionGiven) -> ExtractedAssertions:
        """What the rules find inside the window."""
        _, drafts = extract(given.document)
        return ExtractedAssertions(
            assertions=[
                _stated(given.document, draft)
                for draft in drafts
                if given.start <= draft.start and draft.end <= given.end
            ]
        )


def _stated(document: RefinedDocument, draft: Draft) -> ExtractedAssertion:
    exact = {name: getattr(draft, name) for name in draft.__dataclass_fields__}
    return ExtractedAssertion(
        relation=draft.relation.value,
        subject=draft.subject,
        object=draft.object,
        property=str(draft.properties.get("property", "")),
        polarity=draft.polarity.value,
        modality=draft.modality.value,
        conditions=dict(draft.conditions),
        quote=document.text[draft.start : draft.end],
        exact=exact,
    )


def drafts_of(
    given: ExtractionGiven, answer: ExtractedAssertions, *, trusted: bool
) -> tuple[list[Draft], list[DropReason]]:
    """Drafts of an answer, and reasons of what cannot be one. ``trusted``: the rules' own exact drafts count."""
    drafts: list[Draft] = []
    dropped: list[DropReason] = []
    for item in answer.assertions:
        if trusted and item.exact is not None:
            drafts.append(Draft(**item.exact))
            continue
        draft = to_draft(given, item)
        if isinstance(draft, DropReason):
            dropped.append(draft)
        else:
            drafts.append(draft)
    return drafts, dropped


def coded(document: RefinedDocument) -> list[Draft]:
    """What the rules read beside a model: codes, classes, limits, shares and identifiers."""
    _, drafts = extract(document)
    return [draft for draft in drafts if not _left_to_models(draft)]


def _left_to_models(draft: Draft) -> bool:
    if draft.relation is Relation.HAS_ALIAS:
        return draft.properties.get("kind") in NAME_KINDS
    if draft.relation is Relation.REGULATED_BY and draft.value:
        return False  # a threshold, which a model does not state
    return draft.relation in model_relations()


def to_draft(given: ExtractionGiven, item: ExtractedAssertion) -> Draft | DropReason:
    """A model's assertion as a draft: labels, keys and values come from the closed vocabulary, never its text."""
    relation = next((known for known in model_relations() if known.value == item.relation), None)
    if relation is None:
        return DropReason.NOT_IN_SCHEMA
    if not item.object.strip():
        return DropReason.MISSING_VALUE
    found = locate(item.quote, given.text) if item.quote.strip() else None
    if found is None:
        return DropReason.QUOTE_NOT_FOUND
    turned = _turned(given, relation, item)
    if isinstance(turned, DropReason):
        return turned
    item, reversed_ends = turned, turned is not item
    span = (given.start + found[0], given.start + found[1])
    subject = _other_subject(given, item.subject)
    if subject is None:
        return DropReason.MISSING_SUBJECT
    unproved = _unproved_words(given, relation, item, span)
    if unproved:
        return unproved
    made = _object(relation, item, RELATIONS[relation].objects)
    if isinstance(made, DropReason):
        return made
    label, key, properties, value = made
    return Draft(
        relation, item.object, label, span[0], span[1], subject, key, properties, value,
        Polarity(item.polarity), Modality(item.modality), item.conditions, _section(given.document, span[0]), 0.8,
        turned=reversed_ends,
    )  # fmt: skip


def _turned(
    given: ExtractionGiven, relation: Relation, item: ExtractedAssertion
) -> ExtractedAssertion | DropReason:
    """The assertion with its ends in order, itself where they are.

    The document's own substance as the object is the sign. The ends are exchanged
    where that cannot change the meaning: a symmetric relation, or a "subject" that
    can only be an object (a medium, a class, a value). Between two substances
    ("CO decomposes to methanol") nobody knows which was meant: rejected.
    """
    own = given.subject
    names = {normalise_name(name) for name in (own.name, *own.names)} if own else set()
    if relation is Relation.HAS_ALIAS or normalise_name(item.object) not in names:
        return item
    other = item.subject.strip()
    if not other or normalise_name(other) in names:
        return DropReason.SELF_LOOP
    spec = RELATIONS[relation]
    swapped = item.model_copy(update={"subject": "", "object": other})
    if spec.symmetric or group_term(other) is not None or word_form(other) in agents():
        return swapped
    if relation is Relation.HAS_MEASUREMENT or not (spec.objects & {NodeLabel.SUBSTANCE, NodeLabel.MIXTURE}):
        return swapped
    return DropReason.REVERSED


def _other_subject(given: ExtractionGiven, name: str) -> str | None:
    """The substance that an assertion names, "" for the document's own, None for one that the text never names.

    A mixture's own name must come out as "": "硫酸" on the page of a 98 % solution is not the pure substance.
    """
    own = given.subject
    if not name.strip() or (
        own and normalise_name(name) in {normalise_name(known) for known in (own.name, *own.names)}
    ):
        return ""
    text = given.document.text
    return name.strip() if name.lower() in text.lower() or locate(name, text) else None


def _unproved_words(
    given: ExtractionGiven, relation: Relation, item: ExtractedAssertion, span: tuple[int, int]
) -> DropReason | None:
    """What ``evidence.judge`` does not see: words of conditions, and objects that are kept as text."""
    quote = given.document.text[slice(*span)]
    prop = _property(item) if relation is Relation.HAS_MEASUREMENT else None
    if prop is not None and _in_words(prop, item) and not _says(quote, item.object):
        return DropReason.OBJECT_NOT_IN_QUOTE
    if relation is Relation.REGULATED_BY and not _says(given.document.text, item.object):
        return DropReason.OBJECT_NOT_IN_QUOTE  # the list's name may stand above its rows
    read = [quantity.conditions for quantity in parse_quantities(quote)] if item.conditions else []
    for name, words in item.conditions.items():
        if name == "route":
            if not _route_stated(given.document, words, span):
                return DropReason.OBJECT_NOT_IN_QUOTE
        elif not _says(quote, words) and not any(known.get(name) == words for known in read):
            return DropReason.NUMBER_NOT_IN_QUOTE if numbers_in(words) else DropReason.OBJECT_NOT_IN_QUOTE
    return None


def _says(quote: str, words: str) -> bool:
    return folded(words).lower() in folded(quote).lower()


def _route_stated(document: RefinedDocument, route: str, span: tuple[int, int]) -> bool:
    """Whether the words for a route of exposure stand in the quote or in the label before it."""
    near = shadow(document.text[max(0, span[0] - 60) : span[1]]).lower()
    return route in set(Route) and any(
        label in near
        for label, known in fields().items()
        if known.family == "first_aid" and known.name == route
    )


_MEASURE_KINDS = {
    Relation.FIRST_AID: MeasureKind.FIRST_AID,
    Relation.SPILL_ACTION: MeasureKind.SPILL,
    Relation.STORE_UNDER: MeasureKind.STORAGE,
    Relation.REQUIRES_PPE: MeasureKind.PPE,
    Relation.DISPOSED_BY: MeasureKind.DISPOSAL,
}
Made = tuple[NodeLabel, str, dict[str, Any], dict[str, Any]]


def _object(relation: Relation, item: ExtractedAssertion, labels: frozenset[NodeLabel]) -> Made | DropReason:
    if relation is Relation.HAS_MEASUREMENT:
        return _measurement(item)
    if relation is Relation.HAS_ALIAS:
        kind = AliasKind.TRADE if item.property == AliasKind.TRADE else AliasKind.NAME
        if (
            item.property in set(AliasKind) - NAME_KINDS
        ):  # identifiers decide what it is: rules check their digits
            return DropReason.NOT_IN_SCHEMA
        properties = {"kind": kind.value} | ({"language": language_of(item.object)} if kind == "name" else {})
        return NodeLabel.ALIAS, alias_key(item.object, kind), properties, {}
    if NodeLabel.REACTIVE_GROUP in labels:
        term = group_term(item.object)
        if term is None:
            return (
                (NodeLabel.SUBSTANCE, "", {}, {})
                if NodeLabel.SUBSTANCE in labels
                else DropReason.BAD_ENDPOINT
            )
        names = {language: name for language, name in (("zh", term.zh), ("en", term.en)) if name}
        return NodeLabel.REACTIVE_GROUP, term.key, names, {}
    if relation in {Relation.EXTINGUISHED_BY, Relation.NOT_EXTINGUISHED_BY}:
        agent = agents().get(word_form(item.object))
        if agent is None:
            return DropReason.NOT_IN_SCHEMA
        return (
            NodeLabel.MEASURE,
            agent.key,
            {"kind": MeasureKind.AGENT.value, "zh": agent.zh, "en": agent.en},
            {},
        )
    if relation in _MEASURE_KINDS:
        measure = _MEASURE_KINDS[relation]
        properties = {"kind": measure.value, "text": item.object} | (
            {"route": item.conditions["route"]} if "route" in item.conditions else {}
        )
        return NodeLabel.MEASURE, measure_key(measure, item.object), properties, {}
    if relation is Relation.USED_FOR:
        return NodeLabel.USE, use_key(item.object), {"text": item.object}, {}
    if relation is Relation.REGULATED_BY:
        return NodeLabel.REGULATION, regulation_key(item.object), {"name": item.object}, {}
    new = next((label for label in labels if label in ADDED_LABELS), None)
    if new is not None:
        return new, added_key(new, item.object), {"text": item.object}, {}
    return DropReason.NOT_IN_SCHEMA


def _property(item: ExtractedAssertion) -> Property | None:
    """The property that a model names, by its key or by a label ("闪点")."""
    named = field_of(item.property)
    name = item.property if item.property in set(Property) else named[1].name if named else ""
    return Property(name) if name in set(Property) else None


def _measurement(item: ExtractedAssertion) -> Made | DropReason:
    prop = _property(item)
    if prop is None:
        return DropReason.NOT_IN_SCHEMA
    spec = PROPERTIES[prop]
    if _in_words(prop, item):
        return NodeLabel.MEASUREMENT, "", {"property": prop.value}, {"text": item.object}
    label = item.quote.partition(item.object)[0].rstrip(" |:：\n")
    unit = default_unit(shadow(label)) or ("g/mol" if prop is Property.MOLAR_MASS else "")
    quantity = parse_quantity(
        item.object, dimension=spec.dimension, default_unit=unit, bare=not spec.dimension
    )
    if isinstance(quantity, NoData):
        return DropReason.NO_DATA
    if quantity is None:
        return DropReason.BAD_QUANTITY
    value = quantity.as_value()
    if item.conditions:
        value["conditions"] = {**value.get("conditions", {}), **item.conditions}
    return NodeLabel.MEASUREMENT, "", {"property": prop.value}, value


def _in_words(prop: Property, item: ExtractedAssertion) -> bool:
    """Whether the value is kept as text: appearance, odour, and solubilities such as "互溶"."""
    if PROPERTIES[prop].textual:
        return True
    solubility = prop is Property.SOLUBILITY_IN_WATER and not numbers_in(item.object)
    return (
        solubility and not is_no_data(item.object) and bool(re.search(r"water|水", item.quote, re.IGNORECASE))
    )


def _section(document: RefinedDocument, position: int) -> int | None:
    inside = [s for s in document.sections if s.start <= position < s.end]
    return max(inside, key=lambda s: s.start).sds if inside else None


def windows(document: RefinedDocument, limit: int, count: Any) -> list[tuple[int, int]]:
    """Windows of whole lines that stay below ``limit`` tokens and begin at section starts where they can."""
    starts = {section.start for section in document.sections}
    spans: list[tuple[int, int]] = []
    begin = position = used = 0
    for line in document.text.splitlines(keepends=True):
        size = int(count(line))
        if used and (used + size > limit or (position in starts and used > limit // 2)):
            spans.append((begin, position))
            begin, used = position, 0
        position += len(line)
        used += size
    if position > begin:
        spans.append((begin, position))
    return spans


def subject_of(document: RefinedDocument) -> Subject | None:
    """What a document is about."""
    return find_subject(document, read(document))


def assertion_id(document: RefinedDocument, subject: str, draft: Draft) -> str:
    """Content-derived id of an assertion: document, version, statement and place."""
    return digest(
        "assertion", document.document_id, document.version_id, draft.relation.value, subject, draft.object,
        canonical_json(dict(draft.value)), canonical_json(dict(draft.properties)), draft.polarity.value,
        str(draft.start), str(draft.end),
    )  # fmt: skip


def unique(drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts without exact repeats, in order."""
    seen: set[str] = set()
    kept: list[Draft] = []
    for draft in drafts:
        mark = repr((draft.relation, draft.subject, draft.object, dict(draft.value), dict(draft.properties),
                     draft.polarity, draft.start, draft.end))  # fmt: skip
        if mark not in seen:
            seen.add(mark)
            kept.append(draft)
    return kept

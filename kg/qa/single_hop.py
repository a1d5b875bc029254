"""Single-hop questions: values with their conditions, and instructions of a section.

A question names its source unless all sources that state the matter agree, or
only one does. Reference tables support only questions that name them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kg import queries
from kg.qa import wording
from kg.qa.context import Context, agree, references, substances_of
from kg.qa.facts import Fact, Node
from kg.qa.records import Candidate, Language, Proof
from kg.schema import NodeLabel, Relation, property_spec

_L = NodeLabel
# other quantities beside a limit or a dose: values of their own, not conditions
_NEIGHBOURS = frozenset({"concentration", "pressure", "temperature"})
_SECTION_TEMPLATES = {
    Relation.STORE_UNDER: "storage",
    Relation.SPILL_ACTION: "spill",
    Relation.REQUIRES_PPE: "ppe",
    Relation.DISPOSED_BY: "disposal",
}


def candidates(ctx: Context) -> Iterator[Candidate]:
    """All single-hop candidates, subject by subject."""
    for subject in ctx.facts.substances:
        for group in _value_groups(ctx, subject):
            yield from _value_questions(ctx, subject, group)
        for group in _instruction_groups(ctx, subject):
            yield from _instruction_questions(ctx, subject, group)


# --- values -------------------------------------------------------------------


def _value_groups(ctx: Context, subject: Node) -> Iterator[list[Fact]]:
    """Facts that answer the same question: relation, what is measured, and conditions."""
    groups: dict[tuple[str, ...], list[Fact]] = defaultdict(list)
    for fact in ctx.facts.by_subject[subject]:
        key = _question_key(fact)
        if key is not None and fact.positive:
            groups[key].append(fact)
    for key in sorted(groups):
        yield groups[key]


def _question_key(fact: Fact) -> tuple[str, ...] | None:
    props = fact.properties
    base = (fact.relation.value, fact.statement_conditions)
    match fact.relation:
        case Relation.HAS_MEASUREMENT if property_spec(props.get("property")):
            return (*base, str(props["property"]), fact.value_conditions)
        case Relation.HAS_LIMIT if props.get("kind"):
            return (*base, str(props["kind"]), str(props.get("jurisdiction") or ""), fact.value_conditions)
        case Relation.HAS_TOXICITY if props.get("endpoint") and "text" not in fact.value:
            species, route = str(props.get("species") or ""), str(props.get("route") or "")
            return (*base, str(props["endpoint"]), species, route, fact.value_conditions)
        case Relation.HAS_ALIAS if props.get("kind") in wording.KIND_WORDING:
            return (*base, str(props["kind"]))
        case Relation.SHIPPED_AS | Relation.RATED:
            return base
    return None


def _filters(fact: Fact) -> tuple[tuple[str, ...], dict[str, str]]:
    """Filters of the proof and their parameters."""
    props = fact.properties
    names: tuple[str, ...] = ("conditions",)
    match fact.relation:
        case Relation.HAS_MEASUREMENT:
            names += ("property", "value_conditions")
        case Relation.HAS_LIMIT:
            names += ("kind", "jurisdiction", "value_conditions")
        case Relation.HAS_TOXICITY:
            names += ("endpoint", "species", "route", "value_conditions")
        case Relation.HAS_ALIAS:
            names += ("kind",)
    values = {
        "conditions": fact.statement_conditions,
        "value_conditions": fact.value_conditions,
        **{name: str(props.get(name) or "") for name in ("property", "kind", "jurisdiction", "endpoint", "species", "route")},
    }  # fmt: skip
    return names, {name: values[name] for name in names}


def _value_questions(ctx: Context, subject: Node, group: Sequence[Fact]) -> Iterator[Candidate]:
    if group[0].conditions:
        ctx.dropped["conditional_statement"] += 1
        return
    pages = [fact for fact in group if fact.source.kind != "reference"]
    if pages and _unanimous(ctx, subject, group):
        yield from _worded_value(ctx, subject, group, "")
        return
    for source_facts in _by_document(group):
        title = ctx.facts.title(source_facts[0].source)
        if title is None:
            ctx.dropped["source_without_own_title"] += 1
        elif _several(source_facts) or _other_conditions(ctx, subject, source_facts):
            ctx.dropped["conflict_in_source"] += 1
        else:
            yield from _worded_value(ctx, subject, source_facts, title)


def _several(facts: Sequence[Fact]) -> bool:
    if facts[0].relation == Relation.SHIPPED_AS:
        return not one_entry(facts)
    return len({fact.object for fact in facts}) > 1


def _by_document(group: Sequence[Fact]) -> list[list[Fact]]:
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in group:
        groups[fact.source.document_id].append(fact)
    return [groups[key] for key in sorted(groups)]


def _unanimous(ctx: Context, subject: Node, group: Sequence[Fact]) -> bool:
    """All sources say the same, and no value under other conditions could be meant."""
    if group[0].relation == Relation.SHIPPED_AS:
        return one_entry(group)
    if len({fact.object for fact in group}) > 1 and not (
        group[0].relation != Relation.HAS_ALIAS and agree(group, ctx.settings)
    ):
        return False
    if group[0].relation in {Relation.HAS_LIMIT, Relation.HAS_TOXICITY}:
        return len({fact.source.document_id for fact in group}) == 1 or len({f.object for f in group}) == 1
    return not _other_conditions(ctx, subject, group)


def one_entry(group: Sequence[Fact]) -> bool:
    """All sources give one UN number, and none contradicts another on class or packing group."""
    return all(
        len({str(fact.properties[name]) for fact in group if fact.properties.get(name)}) <= 1
        for name in ("un", "hazard_class", "packing_group")
    )


def _other_conditions(ctx: Context, subject: Node, group: Sequence[Fact]) -> bool:
    """A question without conditions is unclear where values with conditions differ from this one."""
    first = group[0]
    if first.relation != Relation.HAS_MEASUREMENT or first.value_conditions:
        return False
    documents = {fact.source.document_id for fact in group}
    others = [
        fact
        for fact in ctx.facts.stated(subject, first.relation)
        if fact.properties.get("property") == first.properties.get("property")
        and (fact.value_conditions or fact.conditions)
        and (len(documents) > 1 or fact.source.document_id in documents)
    ]
    return bool(others) and not agree([*group, *others], ctx.settings)


def _worded_value(ctx: Context, subject: Node, group: Sequence[Fact], title: str) -> Iterator[Candidate]:
    for language in ctx.languages:
        name, what = ctx.name(subject, language), _what(group[0], language)
        answer = _value_answer(ctx, group, language)
        if name is None or what is None or answer is None:
            ctx.dropped["no_wording"] += 1
            continue
        template = _template(group[0])
        question = wording.word(
            template,
            language,
            subject[1] + what,
            name=name,
            what=what,
            source=wording.source_words(title, language),
        )
        yield _candidate(ctx, subject, group, language, template, question, answer, title)


def _template(fact: Fact) -> str:
    if fact.relation == Relation.SHIPPED_AS:
        return "shipped"
    if fact.relation in {Relation.HAS_ALIAS, Relation.RATED}:
        return "identifier"
    return "text_value" if "text" in fact.value else "value"


def _what(fact: Fact, language: Language) -> str | None:
    props, index = fact.properties, 0 if language == "zh" else 1
    conditions = wording.conditions_of(fact)
    match fact.relation:
        case Relation.HAS_MEASUREMENT:
            return wording.property_words(str(props["property"]), conditions, language)
        case Relation.HAS_ALIAS:
            return wording.KIND_WORDING[str(props["kind"])][index]
        case Relation.RATED:
            return ("NFPA 704 等级", "NFPA 704 rating")[index]
        case Relation.SHIPPED_AS:
            return "UN"
    head = str(props.get("kind") or props.get("endpoint"))
    extra = {name: props[name] for name in ("species", "route") if props.get(name)}
    if set(conditions) & _NEIGHBOURS:
        return None
    said = wording.condition_words({**conditions, **extra}, language)
    place = str(props.get("jurisdiction") or "")
    if said is None:
        return None
    said = [*([place] if place else []), *said]
    if language == "zh":
        return head + (f"（{'，'.join(said)}）" if said else "")
    return head + (f" ({', '.join(said)})" if said else "")


def _value_answer(ctx: Context, group: Sequence[Fact], language: Language) -> tuple[str, ...] | None:
    """The words of each distinct object, in key order."""
    words: dict[str, str] = {}
    for fact in group:
        if fact.relation in {Relation.HAS_ALIAS, Relation.SHIPPED_AS, Relation.RATED}:
            said = ctx.facts.name(fact.object_label, fact.object, language)
        elif "text" in fact.value:
            said = str(fact.value["text"]) if fact.language == language else None
        else:
            said = wording.value_words(fact.value, language)
        if said is None:
            return None
        words[fact.object] = said
    return tuple(words[key] for key in sorted(words))


def _candidate(
    ctx: Context,
    subject: Node,
    group: Sequence[Fact],
    language: Language,
    template: str,
    question: str,
    answer: tuple[str, ...],
    title: str,
) -> Candidate:
    first = group[0]
    filters, parameters = _filters(first)
    parameters |= {"subject": subject[1], "relation": first.relation.value}
    if title:
        filters, parameters = (*filters, "document"), {**parameters, "document": first.source.document_id}
    distinct = sorted(set(answer))
    text = distinct[0] if len(distinct) == 1 else " / ".join(distinct)
    if first.relation == Relation.SHIPPED_AS and len(distinct) > 1:
        text = f"UN {first.properties['un']}"
    return Candidate(
        kind="single_hop",
        language=language,
        template=template,
        question=question,
        answer=text,
        expected=tuple(sorted({fact.object for fact in group})),
        surfaces=answer,
        proof=Proof(queries.stated_objects(subject[0], first.object_label, filters), parameters),
        references=references(group, language),
        triples=tuple(sorted({fact.triple() for fact in group})),
        substances=substances_of(subject),
        section=first.section or _usual_section(first),
        relation=first.relation.value,
        metapath=f"{subject[0].value}-{first.relation.value}->{first.object_label.value}",
        nodes=(subject[1], first.object),
        difficulty={"cross_language": all(fact.language != language for fact in group)},
    )


def _usual_section(fact: Fact) -> int | None:
    match fact.relation:
        case Relation.HAS_MEASUREMENT:
            return 9
        case Relation.HAS_LIMIT:
            return 8
        case Relation.HAS_TOXICITY:
            return 11
        case Relation.SHIPPED_AS:
            return 14
        case Relation.HAS_ALIAS:
            return 1
    return None


# --- instructions ---------------------------------------------------------------


def _instruction_groups(ctx: Context, subject: Node) -> Iterator[list[Fact]]:
    """Instructions of one document on one matter (and route), in the order of the text.

    A negative instruction among them ("do not induce vomiting") must not get
    lost: such a group is left out.
    """
    groups: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in ctx.facts.by_subject[subject]:
        if fact.relation in _SECTION_TEMPLATES or fact.relation == Relation.FIRST_AID:
            groups[fact.relation.value, fact.route, fact.source.document_id].append(fact)
    for key in sorted(groups):
        group = sorted(groups[key], key=lambda fact: (fact.start, fact.end, fact.id))
        if not all(fact.positive for fact in group):
            ctx.dropped["negative_instruction"] += 1
        elif any(not fact.properties.get("text") for fact in group):
            ctx.dropped["instruction_without_text"] += 1
        else:
            yield group


def _instruction_questions(ctx: Context, subject: Node, group: Sequence[Fact]) -> Iterator[Candidate]:
    first = group[0]
    language: Language = "zh" if first.language.startswith("zh") else "en"
    name = ctx.name(subject, language)
    texts = {fact.object: str(fact.properties["text"]).strip() for fact in group}
    answer = "\n".join(_instruction_words(group))
    if language not in ctx.languages or name is None:
        ctx.dropped["no_wording"] += 1
        return
    if len(answer) > ctx.settings.max_answer_characters:
        ctx.dropped["answer_too_long"] += 1
        return
    title = ""
    if _stated_elsewhere(ctx, subject, first):
        title = ctx.facts.title(first.source) or ""
        if not title:
            ctx.dropped["source_without_own_title"] += 1
            return
    template, route = _SECTION_TEMPLATES.get(first.relation, "first_aid"), ""
    if first.relation == Relation.FIRST_AID:
        said = wording.route_words(first.route, language)
        if said is None:
            ctx.dropped["first_aid_without_route"] += 1
            return
        route = said
        template = "first_aid" if first.route in {"inhalation", "ingestion"} else "first_aid_contact"
    question = wording.word(
        template, language, subject[1] + first.source.document_id, name=name, route=route,
        source=wording.source_words(title, language),
    )  # fmt: skip
    filters: tuple[str, ...] = ("stated_route",)
    parameters = {"stated_route": first.route}
    if title:
        filters, parameters = (*filters, "document"), {**parameters, "document": first.source.document_id}
    parameters |= {"subject": subject[1], "relation": first.relation.value}
    yield Candidate(
        kind="single_hop",
        language=language,
        template=template,
        question=question,
        answer=answer,
        expected=tuple(sorted({fact.object for fact in group})),
        surfaces=tuple(texts[key] for key in sorted(texts)),
        proof=Proof(queries.stated_objects(subject[0], _L.MEASURE, filters), parameters),
        references=references(group, language),
        triples=tuple(sorted({fact.triple() for fact in group})),
        substances=substances_of(subject),
        section=first.section,
        relation=first.relation.value,
        metapath=f"{subject[0].value}-{first.relation.value}->{_L.MEASURE.value}",
        nodes=(subject[1], first.object),
        difficulty={"cross_language": False},
    )


def _instruction_words(group: Sequence[Fact]) -> list[str]:
    """The sentences as they stand in the source: an item alone ("respirator") would lose its condition."""
    words: list[str] = []
    covered = -1
    for fact in sorted(group, key=lambda f: (f.start, -f.end)):
        if fact.end > covered:
            words.append(" ".join(fact.quote.split()))
            covered = fact.end
    return list(dict.fromkeys(words))


def _stated_elsewhere(ctx: Context, subject: Node, first: Fact) -> bool:
    return any(
        fact.source.document_id != first.source.document_id and fact.route == first.route
        for fact in ctx.facts.by_subject[subject]
        if fact.relation == first.relation
    )

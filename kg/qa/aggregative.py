"""Aggregative questions: count, list, intersection over complete lists; comparison of values.

The scope stands in the question: one list of one document, or substances that
are named. Nothing is concluded about the world.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from corpus.ids import digest
from kg import queries
from kg.qa import wording
from kg.qa.context import Context, agree, interval, margin, one_per_document, references, substances_of
from kg.qa.facts import Fact, Node
from kg.qa.records import Candidate, Language, Proof
from kg.qa.sampling import seeded
from kg.schema import NodeLabel, Relation

_LISTED = frozenset(
    {
        Relation.HAS_H,
        Relation.HAS_P,
        Relation.SHOWS_PICTOGRAM,
        Relation.INCOMPATIBLE_WITH,
        Relation.STORE_APART_FROM,
        Relation.EXTINGUISHED_BY,
        Relation.NOT_EXTINGUISHED_BY,
        Relation.DECOMPOSES_TO,
        Relation.BURNS_TO,
        Relation.HAS_COMPONENT,
        Relation.HAS_ALIAS,
    }
)
_GROUP_SIZES = (3, 4)


def candidates(ctx: Context) -> Iterator[Candidate]:
    """All aggregative candidates."""
    lists = complete_lists(ctx)
    for key in sorted(lists):
        yield from _list_questions(ctx, key, lists[key])
    yield from _common_questions(ctx, lists)
    yield from _value_comparisons(ctx)


def complete_lists(ctx: Context) -> dict[str, list[Fact]]:
    """Lists that may be counted: one document, one subject, one relation, unconditional, titled."""
    found: dict[str, list[Fact]] = {}
    for key, members in sorted(ctx.facts.by_listing.items()):
        first = members[0]
        if first.relation not in _LISTED:
            continue
        if len({(f.subject, f.relation, f.source.document_id) for f in members}) != 1:
            ctx.dropped["list_of_mixed_matter"] += 1
        elif any(f.conditions for f in members):
            ctx.dropped["conditional_list"] += 1
        elif ctx.facts.title(first.source) is None:
            ctx.dropped["source_without_own_title"] += 1
        elif first.source.kind == "reference":
            ctx.dropped["list_of_reference_table"] += 1
        elif _second_list(ctx, key, members):
            ctx.dropped["second_list_in_source"] += 1
        else:
            found[key] = sorted(members, key=lambda f: (f.start, f.object))
    return found


def _second_list(ctx: Context, key: str, members: Sequence[Fact]) -> bool:
    """The document states the relation outside this list too: "the list of" would be unclear."""
    first, inside = members[0], {f.object for f in members}
    return any(
        fact.source.document_id == first.source.document_id
        and fact.listing != key
        and (fact.object not in inside or fact.section == first.section)
        for fact in ctx.facts.stated((first.subject_label, first.subject), first.relation)
    )


def member_words(ctx: Context, members: Sequence[Fact], language: Language) -> dict[str, str] | None:
    """Object key → words; None where a member has none or two members share a name."""
    words: dict[str, str] = {}
    for fact in members:
        said = ctx.facts.name(fact.object_label, fact.object, language)
        if said is None and fact.language == language and fact.object_label == NodeLabel.ALIAS:
            said = fact.words.strip() or None
        if said is None:
            return None
        words[fact.object] = said
    return words if len(set(words.values())) == len(words) else None


def _list_questions(ctx: Context, key: str, members: Sequence[Fact]) -> Iterator[Candidate]:
    first = members[0]
    subject: Node = (first.subject_label, first.subject)
    for language in ctx.languages:
        name, words = ctx.name(subject, language), member_words(ctx, members, language)
        if name is None or words is None:
            ctx.dropped["no_wording"] += 1
            continue
        title = ctx.facts.title(first.source) or ""
        slots = {
            "name": name,
            "what": wording.relation_words(first.relation, language),
            "where": wording.where_words(first.section, language),
            "title": wording.quoted(title, language),
            "source": wording.source_words(title, language),
        }
        keys = tuple(sorted(words))
        surfaces = tuple(words[k] for k in keys)
        if 2 <= len(words) <= ctx.settings.list_limit:
            answer = wording.joined(list(words.values()), language)
            question = wording.word("list", language, key, **slots)
            yield _listed(
                ctx,
                "list",
                language,
                question,
                answer,
                keys,
                surfaces,
                queries.LISTED,
                {"listing": key},
                [members],
            )
        if len(words) >= 2:
            question = wording.word("count", language, key, **slots)
            yield _listed(ctx, "count", language, question, str(len(words)), (len(words),), (str(len(words)),), queries.LISTED_COUNT, {"listing": key}, [members])  # fmt: skip


def _listed(
    ctx: Context,
    template: str,
    language: Language,
    question: str,
    answer: str,
    expected: tuple[str | int, ...],
    surfaces: tuple[str, ...],
    body: str,
    parameters: dict[str, str],
    lists: Sequence[Sequence[Fact]],
) -> Candidate:
    facts = [fact for members in lists for fact in members]
    first = facts[0]
    return Candidate(
        kind="aggregative",
        language=language,
        template=template,
        question=question,
        answer=answer,
        expected=expected,
        surfaces=surfaces,
        proof=Proof(body, parameters),
        references=references(facts, language),
        triples=tuple(sorted({fact.triple() for fact in facts})),
        substances=substances_of(*((f.subject_label, f.subject) for f in facts)),
        section=first.section,
        relation=first.relation.value,
        metapath=f"Listing-LISTS->{first.object_label.value}",
        nodes=tuple(sorted({f.subject for f in facts})),
        listings=tuple(sorted({f.listing for f in facts})),
        difficulty={
            "cross_language": all(fact.language != language for fact in facts),
            "arithmetic": template == "count",
        },
    )


def _common_questions(ctx: Context, lists: dict[str, list[Fact]]) -> Iterator[Candidate]:
    """Common members of two lists on the same matter, of two substances on one side of the split."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key, members in lists.items():
        first = members[0]
        side = ctx.sides.get(first.subject, "train")
        groups[first.relation.value, first.language, side].append(key)
    for common in sorted(groups):
        ordered = seeded(groups[common], ctx.settings.seed, lambda key: key)
        for left, right in pairwise(ordered):
            yield from _common(ctx, lists[left], lists[right])


def _common(ctx: Context, left: Sequence[Fact], right: Sequence[Fact]) -> Iterator[Candidate]:
    a, b = left[0], right[0]
    common = {f.object for f in left} & {f.object for f in right}
    if a.subject == b.subject or not common or min(len(left), len(right)) < 2:
        return
    if len(common) in {len(left), len(right)}:
        return  # one list alone would answer it
    for language in ctx.languages:
        name = ctx.name((a.subject_label, a.subject), language)
        other = ctx.name((b.subject_label, b.subject), language)
        words = member_words(ctx, [f for f in left if f.object in common], language)
        if name is None or other is None or words is None:
            ctx.dropped["no_wording"] += 1
            continue
        question = wording.word(
            "both", language, a.listing + b.listing, name=name, other=other,
            title=wording.quoted(ctx.facts.title(a.source) or "", language),
            other_title=wording.quoted(ctx.facts.title(b.source) or "", language),
            what=wording.relation_words(a.relation, language),
        )  # fmt: skip
        keys = tuple(sorted(words))
        yield _listed(
            ctx, "both", language, question, wording.joined(list(words.values()), language), keys,
            tuple(words[k] for k in keys), queries.LISTED_BOTH, {"listing": a.listing, "other": b.listing},
            [left, right],
        )  # fmt: skip


# --- values -------------------------------------------------------------------


def comparable(ctx: Context) -> dict[tuple[str, str, str], dict[str, list[Fact]]]:
    """(property, conditions, side) → substance → facts that agree on one plain value.

    A value without conditions counts only where those with conditions agree
    with it, and a reference table only beside a page.
    """
    groups: dict[tuple[str, str, str], dict[str, list[Fact]]] = defaultdict(lambda: defaultdict(list))
    for subject in ctx.facts.substances:
        if subject[0] != NodeLabel.SUBSTANCE:
            continue
        for fact in ctx.facts.stated(subject, Relation.HAS_MEASUREMENT):
            key = (
                str(fact.properties.get("property")),
                fact.value_conditions,
                ctx.sides.get(subject[1], "train"),
            )
            groups[key][subject[1]].append(fact)
    found: dict[tuple[str, str, str], dict[str, list[Fact]]] = {}
    for measured in sorted(groups):
        agreed = {
            key: facts
            for key, facts in sorted(groups[measured].items())
            if _settled(ctx, key, measured[0], facts)
        }
        if len(agreed) >= 2:
            found[measured] = agreed
    return found


def _settled(ctx: Context, key: str, prop: str, facts: Sequence[Fact]) -> bool:
    if not _plain(facts) or all(fact.source.kind == "reference" for fact in facts):
        return False
    if facts[0].value_conditions:
        return agree(facts, ctx.settings)
    stated = ctx.facts.stated((NodeLabel.SUBSTANCE, key), Relation.HAS_MEASUREMENT)
    return agree([fact for fact in stated if fact.properties.get("property") == prop], ctx.settings)


def _plain(facts: Sequence[Fact]) -> bool:
    return all(
        fact.value.get("operator") == "=" and not fact.conditions and interval(fact) is not None
        for fact in facts
    )


def _value_comparisons(ctx: Context) -> Iterator[Candidate]:
    for (prop, conditions, _), values in comparable(ctx).items():
        ordered = seeded(values, ctx.settings.seed, lambda key, p=prop: p + key)  # type: ignore[misc]
        for left, right in pairwise(ordered):
            yield from _extreme(
                ctx, prop, conditions, {k: values[k] for k in sorted((left, right))}, "compare"
            )
        for size in _GROUP_SIZES:
            for at in range(0, len(ordered) - size + 1, size):
                group = {key: values[key] for key in sorted(ordered[at : at + size])}
                yield from _extreme(ctx, prop, conditions, group, "highest")
                yield from _extreme(ctx, prop, conditions, group, "lowest")


def _extreme(
    ctx: Context, prop: str, conditions: str, values: dict[str, list[Fact]], template: str
) -> Iterator[Candidate]:
    facts = [fact for group in values.values() for fact in group]
    step = margin(facts, ctx.settings)
    winner = _winner(values, step, highest=template != "lowest")
    if winner is None:
        ctx.dropped["values_too_close"] += 1
        return
    for language in ctx.languages:
        what = wording.property_words(prop, wording.conditions_of(facts[0]), language)
        names = {key: ctx.name((NodeLabel.SUBSTANCE, key), language) for key in values}
        if what is None or None in names.values():
            ctx.dropped["no_wording"] += 1
            continue
        said = {key: str(name) for key, name in names.items()}
        ordered = sorted(values, key=lambda key: digest("names", prop, key))
        question = wording.word(
            template, language, prop + "".join(values), what=what, name=said[ordered[0]], other=said[ordered[1]],
            names=wording.list_words([said[key] for key in ordered], language),
        )  # fmt: skip
        parameters = {
            "subjects": sorted(values), "property": prop, "value_conditions": conditions, "margin": step,
        }  # fmt: skip
        shown = [fact for group in values.values() for fact in one_per_document(group, language)[:1]]
        yield Candidate(
            kind="aggregative",
            language=language,
            template=template,
            question=question,
            answer=said[winner],
            expected=(winner,),
            surfaces=(said[winner],),
            proof=Proof(queries.extreme(template != "lowest"), parameters),
            references=references(shown, language),
            triples=tuple(sorted({fact.triple() for fact in facts})),
            substances=tuple(sorted(values)),
            section=9,
            relation=Relation.HAS_MEASUREMENT.value,
            metapath="Substance-HAS_MEASUREMENT->Measurement",
            nodes=tuple(sorted(values)),
            difficulty={"arithmetic": True, "cross_language": all(f.language != language for f in shown)},
        )


def _winner(values: dict[str, list[Fact]], step: float, *, highest: bool) -> str | None:
    spans = {key: _span(facts) for key, facts in values.items()}
    for key, (low, high) in spans.items():
        others = [span for other, span in spans.items() if other != key]
        if highest and all(low >= other[1] + step for other in others):
            return key
        if not highest and all(high + step <= other[0] for other in others):
            return key
    return None


def _span(facts: Sequence[Fact]) -> tuple[float, float]:
    pairs = [pair for fact in facts if (pair := interval(fact)) is not None]
    return min(low for low, _ in pairs), max(high for _, high in pairs)

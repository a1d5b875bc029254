"""Boolean questions. A "no" is only ever said where something proves it.

Sources of "no": another value of a one-valued identifier (CAS number,
molecular formula); an explicit statement against; a list its source gives as
complete; another GHS category that such a list bears out; a comparison with a clear margin over all sources. A missing edge
proves nothing: what rests on it is never asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from corpus.ids import digest
from kg import queries
from kg.qa import categories, wording
from kg.qa.aggregative import comparable, complete_lists
from kg.qa.context import Context, interval, margin, one_per_document, references, substances_of
from kg.qa.disagreement import agent_matter
from kg.qa.facts import Fact, Node
from kg.qa.records import Candidate, Language, Proof
from kg.qa.sampling import seeded
from kg.schema import FUNCTIONAL_ALIASES, NodeLabel, Relation

_LIST_RELATIONS = frozenset({Relation.HAS_H, Relation.SHOWS_PICTOGRAM, Relation.INCOMPATIBLE_WITH})

# Classes of matter that a class shares members with. Two classes whose sets meet
# are never played against each other; "*" meets everything.
_FAMILIES: dict[str, frozenset[str]] = {
    name: frozenset(families.split())
    for names, families in {
        "strong_oxidizer oxidizer peroxide organic_peroxide nitrate perchlorate chlorate permanganate hypochlorite": "oxidiser salt",
        "halogen": "halogen oxidiser",
        "strong_reducer reducer": "reducer metal",
        "strong_acid acid acid_anhydride acid_chloride": "acid oxidiser",
        "strong_base base amine": "base organic",
        "alkali_metal alkaline_earth_metal metal_powder active_metal_powder active_metal light_metal metal": "metal reducer",
        "alcohol aldehyde ketone ether ester phenols hydrocarbon halogenated_hydrocarbon heterocycle epoxide isocyanate": "organic",
        "cyanide sulfide": "salt reducer",
    }.items()
    for name in names.split()
}  # fmt: skip
_EVERYTHING = frozenset({"*"})


def candidates(ctx: Context) -> Iterator[Candidate]:
    """All Boolean candidates; ``surplus`` balances what verification leaves of them."""
    yield from _listed(ctx)
    yield from _classified(ctx)
    yield from _identifiers(ctx)
    yield from _extinguishing(ctx)
    yield from _explicit(ctx)
    yield from _higher(ctx)


def surplus(kept: Sequence[Candidate], seed: int) -> list[str]:
    """Ids to leave out so that yes and no are equally many for each relation and language.

    Otherwise the relation would give the answer away.
    """
    found: dict[tuple[str, str], dict[str, list[Candidate]]] = defaultdict(lambda: {"yes": [], "no": []})
    for candidate in kept:
        if candidate.kind == "boolean":
            matter = f"{candidate.template} {candidate.relation}"
            found[matter, candidate.language][str(candidate.expected[0])].append(candidate)
    left_out: list[str] = []
    for sides in found.values():
        size = min(len(sides["yes"]), len(sides["no"]))
        for side in sides.values():
            left_out += [c.id for c in seeded(side, seed, lambda c: c.id)[size:]]
    return left_out


def families(key: str) -> frozenset[str]:
    """Families of a class of matter; everything for what is not known."""
    prefix, _, name = key.partition(":")
    return _FAMILIES.get(name, _EVERYTHING) if prefix == "group" else _EVERYTHING


def _apart(item: str, members: Sequence[str]) -> bool:
    mine = families(item)
    return "*" not in mine and all("*" not in families(m) and not (families(m) & mine) for m in members)


# --- complete lists -----------------------------------------------------------


def _listed(ctx: Context) -> Iterator[Candidate]:
    lists = {k: m for k, m in complete_lists(ctx).items() if m[0].relation in _LIST_RELATIONS}
    pools: dict[Relation, set[Node]] = defaultdict(set)
    for members in lists.values():
        pools[members[0].relation].update((f.object_label, f.object) for f in members)
    ordered = {relation: sorted(pool) for relation, pool in pools.items()}
    for key in sorted(lists):
        members = lists[key]
        for fact in seeded(members, ctx.settings.seed, lambda f: f.id)[:2]:
            yield from _is_listed(ctx, key, members, (fact.object_label, fact.object), [fact], yes=True)
        others = [item for item in ordered[members[0].relation] if _may_be_denied(ctx, members, item)]
        for item in seeded(others, ctx.settings.seed, lambda item, k=key: k + item[1])[:2]:  # type: ignore[misc]
            yield from _is_listed(ctx, key, members, item, members, yes=False)


def _may_be_denied(ctx: Context, members: Sequence[Fact], item: Node) -> bool:
    """No overlap of meaning with any member, and no source that states it of the subject."""
    first, keys = members[0], [f.object for f in members]
    if item[1] in keys or ctx.facts.by_triple.get((first.subject, first.relation, item[1])):
        return False
    if first.relation == Relation.HAS_H:
        # H300+H310 contains H300, H360FD says more than H360: compare the bare codes
        codes = {code for key in keys for code in _codes(key)}
        return len(_codes(item[1])) == 1 and not (_codes(item[1]) & codes)
    if first.relation == Relation.SHOWS_PICTOGRAM:
        return True
    if item[0] != NodeLabel.REACTIVE_GROUP or any(
        f.object_label != NodeLabel.REACTIVE_GROUP for f in members
    ):
        return False
    return _apart(item[1], keys)


def _codes(key: str) -> set[str]:
    return {part.strip()[:4] for part in key.split("+")}


def _is_listed(
    ctx: Context, key: str, members: Sequence[Fact], item: Node, shown: Sequence[Fact], *, yes: bool
) -> Iterator[Candidate]:
    first = members[0]
    subject: Node = (first.subject_label, first.subject)
    for language in ctx.languages:
        name, words = ctx.name(subject, language), ctx.name(item, language)
        if name is None or words is None:
            ctx.dropped["no_wording"] += 1
            continue
        question = wording.word(
            "is_listed", language, key + item[1], name=name, item=words,
            title=wording.quoted(ctx.facts.title(first.source) or "", language),
            what=wording.relation_words(first.relation, language),
            where=wording.where_words(first.section, language),
        )  # fmt: skip
        body = queries.is_listed(subject[0], first.relation, item[0])
        parameters = {"listing": key, "object": item[1], "subject": subject[1]}
        yield _boolean(
            ctx, "is_listed", language, question, yes, Proof(body, parameters), shown, subject, item,
            listings=(key,) if not yes else (),
        )  # fmt: skip


def _boolean(
    ctx: Context,
    template: str,
    language: Language,
    question: str,
    yes: bool,
    proof: Proof,
    shown: Sequence[Fact],
    subject: Node,
    item: Node,
    *,
    listings: tuple[str, ...] = (),
    relation: Relation | None = None,
    others: tuple[Node, ...] = (),
) -> Candidate:
    first = shown[0]
    relation = relation or first.relation
    return Candidate(
        kind="boolean",
        language=language,
        template=template,
        question=question,
        answer=wording.yes_no(yes, language),
        expected=("yes" if yes else "no",),
        surfaces=(),
        proof=proof,
        references=references(shown, language),
        triples=tuple(sorted({fact.triple() for fact in shown})),
        substances=substances_of(subject, item, *others),
        section=first.section,
        relation=relation.value,
        metapath=f"{subject[0].value}-{relation.value}->{item[0].value}",
        nodes=(subject[1], item[1]),
        listings=listings,
        difficulty={"cross_language": all(fact.language != language for fact in shown)},
    )


# --- categories ---------------------------------------------------------------


def _classified(ctx: Context) -> Iterator[Candidate]:
    """Categories of hazard classes: the one a document gives, and another of the same class."""
    for case in categories.cases(ctx.facts):
        yield from _is_classified(ctx, case, case.stated.object)
        for other in seeded(case.others, ctx.settings.seed, lambda key, c=case: c.listing + key)[:1]:  # type: ignore[misc]
            yield from _is_classified(ctx, case, other)


def _is_classified(ctx: Context, case: categories.Case, asked: str) -> Iterator[Candidate]:
    stated, yes = case.stated, asked == case.stated.object
    subject: Node = (stated.subject_label, stated.subject)
    item: Node = (NodeLabel.HAZARD_CLASS, asked)
    title = ctx.facts.title(stated.source)
    if title is None:
        ctx.dropped["source_without_own_title"] += 1
        return
    for language in ctx.languages:
        name, words = ctx.name(subject, language), ctx.name(item, language)
        if name is None or words is None:
            ctx.dropped["no_wording"] += 1
            continue
        question = wording.word(
            "is_classified", language, case.listing + asked, name=name, item=words,
            title=wording.quoted(title, language), where=wording.where_words(stated.section, language),
        )  # fmt: skip
        parameters = {
            "listing": case.listing, "document": stated.source.document_id, "subject": stated.subject,
            "hazard": case.hazard, "stated": stated.object, "object": asked, "own": list(case.own),
            "other": list(case.against),
        }  # fmt: skip
        yield _boolean(
            ctx, "is_classified", language, question, yes, Proof(queries.is_classified(subject[0]), parameters),
            [stated] if yes else [stated, *ctx.facts.by_listing[case.listing]], subject, item,
            listings=(case.listing,), relation=stated.relation,
        )  # fmt: skip


# --- identifiers ----------------------------------------------------------------


def _identifiers(ctx: Context) -> Iterator[Candidate]:
    known: dict[str, dict[str, list[Fact]]] = defaultdict(dict)
    for subject in ctx.facts.substances:
        if subject[0] != NodeLabel.SUBSTANCE:
            continue
        for kind in sorted(k.value for k in FUNCTIONAL_ALIASES):
            facts = [
                f for f in ctx.facts.stated(subject, Relation.HAS_ALIAS) if f.properties.get("kind") == kind
            ]
            if facts and len({f.object for f in facts}) == 1 and not any(f.conditions for f in facts):
                known[kind][subject[1]] = facts
    for kind in sorted(known):
        ordered = seeded(known[kind], ctx.settings.seed, lambda key, k=kind: k + key)  # type: ignore[misc]
        for at, key in enumerate(ordered):
            # alternate, and let the wrong value be another substance's true one
            other = ordered[(at + 1) % len(ordered)]
            yes = at % 2 == 0
            value = known[kind][key if yes else other][0].object
            if not yes and same_identifier(kind, value, known[kind][key][0].object):
                continue
            yield from _is_functional(ctx, kind, key, known[kind][key], value, yes=yes)


def same_identifier(kind: str, left: str, right: str) -> bool:
    """Equal but for writing: such a pair proves nothing (C2H6O and CH3OCH3 are one composition)."""
    if _bare(left) == _bare(right):
        return True
    if kind != "formula":
        return False
    compositions = composition(_bare(left)), composition(_bare(right))
    return None in compositions or compositions[0] == compositions[1]


def _bare(key: str) -> str:
    return "".join(key.partition(":")[2].translate(str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")).split())


def composition(formula: str) -> dict[str, float] | None:
    """Atoms of a formula; None for what cannot be read with certainty."""
    from chemicals.elements import nested_formula_parser

    try:
        atoms: dict[str, float] = nested_formula_parser(formula, check=True)
    except (ValueError, KeyError, IndexError):
        return None
    return atoms or None


def _is_functional(
    ctx: Context, kind: str, key: str, facts: Sequence[Fact], value: str, *, yes: bool
) -> Iterator[Candidate]:
    subject: Node = (NodeLabel.SUBSTANCE, key)
    for language in ctx.languages:
        name, item = ctx.name(subject, language), ctx.facts.name(NodeLabel.ALIAS, value, language)
        if name is None or item is None:
            ctx.dropped["no_wording"] += 1
            continue
        what = wording.KIND_WORDING[kind][0 if language == "zh" else 1]
        question = wording.word("is_functional", language, key, name=name, item=item, what=what)
        proof = Proof(
            queries.is_functional(NodeLabel.SUBSTANCE), {"subject": key, "kind": kind, "object": value}
        )
        shown = one_per_document(facts, language)[:1]
        yield _boolean(
            ctx, "is_functional", language, question, yes, proof, shown, subject, (NodeLabel.ALIAS, value)
        )


# --- statements for and against -----------------------------------------------------


def _extinguishing(ctx: Context) -> Iterator[Candidate]:
    """Agents that all sources allow or all sources forbid."""
    for subject in ctx.facts.substances:
        groups: dict[str, list[Fact]] = defaultdict(list)
        for fact in ctx.facts.by_subject[subject]:
            if (
                fact.relation in {Relation.EXTINGUISHED_BY, Relation.NOT_EXTINGUISHED_BY}
                and not fact.conditions
            ):
                groups[fact.object].append(fact)
        verdicts_of = {
            key: {(f.relation == Relation.EXTINGUISHED_BY) == f.positive for f in facts}
            for key, facts in sorted(groups.items())
        }
        for key, verdicts in verdicts_of.items():
            kin = set().union(
                *(found for other, found in verdicts_of.items() if agent_matter(other) & agent_matter(key))
            )
            if len(kin) > 1:
                ctx.dropped["related_agent_differs"] += 1
            else:
                yield from _stated(
                    ctx, "can_extinguish", subject, groups[key], Relation.EXTINGUISHED_BY,
                    Relation.NOT_EXTINGUISHED_BY.value, yes=verdicts.pop(),
                )  # fmt: skip


def _explicit(ctx: Context) -> Iterator[Candidate]:
    """Explicit negative statements, and positive ones of the same relation beside them."""
    relations = {Relation.INCOMPATIBLE_WITH, Relation.DECOMPOSES_TO, Relation.STORE_APART_FROM}
    for subject in ctx.facts.substances:
        groups: dict[tuple[Relation, str], list[Fact]] = defaultdict(list)
        for fact in ctx.facts.by_subject[subject]:
            if fact.relation in relations and not fact.conditions and fact.modality != "may":
                groups[fact.relation, fact.object].append(fact)
        for relation, key in sorted(groups):
            facts = groups[relation, key]
            if len({f.positive for f in facts}) == 1:
                yield from _stated(ctx, "is_stated", subject, facts, relation, "", yes=facts[0].positive)


def _stated(
    ctx: Context,
    template: str,
    subject: Node,
    facts: Sequence[Fact],
    relation: Relation,
    against: str,
    *,
    yes: bool,
) -> Iterator[Candidate]:
    item: Node = (facts[0].object_label, facts[0].object)
    for language in ctx.languages:
        name, words = ctx.name(subject, language), ctx.name(item, language)
        if name is None or words is None:
            ctx.dropped["no_wording"] += 1
            continue
        question = wording.word(
            template, language, subject[1] + item[1], name=name, item=words, source="",
            what=wording.relation_words(relation, language),
        )  # fmt: skip
        parameters = {"subject": subject[1], "object": item[1], "for": relation.value, "against": against}
        shown = one_per_document(facts, language)
        yield _boolean(
            ctx, template, language, question, yes, Proof(queries.is_stated(subject[0], item[0]), parameters),
            shown, subject, item, relation=relation,
        )  # fmt: skip


# --- comparisons ------------------------------------------------------------------


def _higher(ctx: Context) -> Iterator[Candidate]:
    for (prop, conditions, _), values in comparable(ctx).items():
        ordered = seeded(values, ctx.settings.seed, lambda key, p=prop: "b" + p + key)  # type: ignore[misc]
        for left, right in pairwise(ordered):
            facts = [*values[left], *values[right]]
            step = margin(facts, ctx.settings)
            low, high = _span(values[left])
            other_low, other_high = _span(values[right])
            if low >= other_high + step or other_low >= high + step:
                upper, lower = (left, right) if low >= other_high + step else (right, left)
                # half the pairs are asked the other way round, so that yes and no balance
                yes = int(digest("direction", prop, left, right)[:2], 16) % 2 == 0
                first, second = (upper, lower) if yes else (lower, upper)
                yield from _is_higher(ctx, prop, conditions, first, second, values, step, yes=yes)
            else:
                ctx.dropped["values_too_close"] += 1


def _span(facts: Sequence[Fact]) -> tuple[float, float]:
    pairs = [pair for fact in facts if (pair := interval(fact)) is not None]
    return min(low for low, _ in pairs), max(high for _, high in pairs)


def _is_higher(
    ctx: Context, prop: str, conditions: str, first: str, second: str, values: dict[str, list[Fact]], step: float,
    *, yes: bool,
) -> Iterator[Candidate]:  # fmt: skip
    subject, other = (NodeLabel.SUBSTANCE, first), (NodeLabel.SUBSTANCE, second)
    for language in ctx.languages:
        name, other_name = ctx.name(subject, language), ctx.name(other, language)
        what = wording.property_words(prop, wording.conditions_of(values[first][0]), language)
        if name is None or other_name is None or what is None:
            ctx.dropped["no_wording"] += 1
            continue
        question = wording.word("is_higher", language, first + second, name=name, other=other_name, what=what)
        parameters = {
            "subject": first, "other": second, "property": prop, "value_conditions": conditions, "margin": step,
        }  # fmt: skip
        shown = [
            *one_per_document(values[first], language)[:1],
            *one_per_document(values[second], language)[:1],
        ]
        item: Node = (NodeLabel.MEASUREMENT, shown[0].object)
        yield _boolean(
            ctx, "is_higher", language, question, yes, Proof(queries.IS_HIGHER, parameters), shown, subject, item,
            others=(other,),
        )  # fmt: skip

"""Multi-hop questions: fixed typed metapaths, sampled by one query each.

After sampling the question's own query is run without the sampled answer and
its whole answer set is taken: one answer makes a question in the singular, up
to the list limit one in the plural, more drop it. A candidate carries the
queries of its shortcut tests; verification runs them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from corpus.ids import canonical_json
from kg import queries
from kg.qa import wording
from kg.qa.context import Context, agree, one_per_document, references, substances_of
from kg.qa.facts import Fact, Node, plain
from kg.qa.records import Candidate, Check, Language, Proof
from kg.qa.sampling import capped, seeded, side_of
from kg.qa.single_hop import one_entry
from kg.schema import PROPERTIES, NodeLabel, Relation
from kg.store import GraphStore

_L, _R = NodeLabel, Relation
_SAMPLES_PER_SEED = 60
_SEEDS_AT_ONCE = 200
_CHOICE = 10  # candidates, and questions looked at, for each that the caps let through
_LOOKED_AT = 100
_PROOFS_PER_BATCH = 500
_STORE_ASK = {"zh": "应如何储存", "en": "how should it be stored"}


@dataclass(frozen=True)
class Metapath:
    """A typed path. ``fixed``: nodes the question names beside the seed; ``answer``: the node asked for."""

    id: str
    template: str
    labels: tuple[NodeLabel, ...]
    hops: tuple[tuple[Relation, str], ...]
    answer: int
    fixed: tuple[int, ...] = ()
    field: str = ""  # a property of the answer node that the question fixes
    bridge: int = 1  # the node that must be the only one, for questions about "the substance that …"

    @property
    def text(self) -> str:
        """Readable form, "TransportEntry<-SHIPPED_AS-Substance-HAS_MEASUREMENT->Measurement"."""
        out = self.labels[0].value
        for (relation, direction), label in zip(self.hops, self.labels[1:], strict=True):
            left, right = ("<-", "-") if direction == "in" else ("-", "->" if direction == "out" else "-")
            out += f"{left}{relation.value}{right}{label.value}"
        return out

    @property
    def filters(self) -> tuple[tuple[int, str], ...]:
        """Properties of the answer node that stay fixed, with the conditions of a value."""
        if not self.field:
            return ()
        extra = ((self.answer, "value_conditions"),) if self.field == "property" else ()
        return ((self.answer, self.field), *extra)


def _entry(name: str, template: str, relation: Relation, label: NodeLabel, field: str = "") -> Metapath:
    return Metapath(
        f"entry_{name}", template, (_L.TRANSPORT_ENTRY, _L.SUBSTANCE, label),
        ((_R.SHIPPED_AS, "in"), (relation, "out")), answer=2, field=field,
    )  # fmt: skip


def _product(name: str, link: Relation, start: NodeLabel = _L.SUBSTANCE) -> Iterator[Metapath]:
    direction = "any" if link == _R.INCOMPATIBLE_WITH else "out"
    yield Metapath(
        f"{name}_value", "product_value", (start, _L.SUBSTANCE, _L.MEASUREMENT),
        ((link, direction), (_R.HAS_MEASUREMENT, "out")), answer=2, field="property",
    )  # fmt: skip
    yield Metapath(
        f"{name}_entry", "product_entry", (start, _L.SUBSTANCE, _L.TRANSPORT_ENTRY),
        ((link, direction), (_R.SHIPPED_AS, "out")), answer=2,
    )  # fmt: skip


def _shared(first: Relation, label: NodeLabel, second: Relation, other: NodeLabel) -> Metapath:
    return Metapath(
        f"shared_{first.value}_{second.value}".lower(), "shared", (_L.SUBSTANCE, label, _L.SUBSTANCE, other),
        ((first, "out"), (first, "in"), (second, "out")), answer=2, fixed=(1, 3), bridge=0,
    )  # fmt: skip


_ENDS = (
    (_R.HAS_H, _L.HAZARD_STATEMENT),
    (_R.INCOMPATIBLE_WITH, _L.REACTIVE_GROUP),
    (_R.NOT_EXTINGUISHED_BY, _L.MEASURE),
    (_R.CLASSIFIED_AS, _L.HAZARD_CLASS),
    (_R.SHOWS_PICTOGRAM, _L.PICTOGRAM),
)

METAPATHS: tuple[Metapath, ...] = (
    _entry("value", "entry_value", _R.HAS_MEASUREMENT, _L.MEASUREMENT, "property"),
    _entry("storage", "entry_text", _R.STORE_UNDER, _L.MEASURE),
    *_product("decomposition", _R.DECOMPOSES_TO),
    *_product("combustion", _R.BURNS_TO),
    *_product("incompatible", _R.INCOMPATIBLE_WITH),
    *_product("component", _R.HAS_COMPONENT, _L.MIXTURE),
    Metapath(
        "class_member", "class_member", (_L.SUBSTANCE, _L.REACTIVE_GROUP, _L.SUBSTANCE),
        ((_R.INCOMPATIBLE_WITH, "out"), (_R.MEMBER_OF, "in")), answer=2, bridge=0,
    ),
    *(
        _shared(first, label, second, other)
        for i, (first, label) in enumerate(_ENDS)
        for second, other in _ENDS[i + 1 :]
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Path:
    """A sampled path: node keys, and what the question fixes of its answer node."""

    metapath: Metapath
    keys: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...]

    def parameters(self) -> dict[str, Any]:
        """Parameters of the question's own query (the answer is not among them)."""
        nodes = {0: self.keys[0], **{at: self.keys[at] for at in self.metapath.fixed}}
        return {f"n{at}": key for at, key in nodes.items()} | dict(self.fixed)


def candidates(ctx: Context, store: GraphStore) -> tuple[list[Candidate], Counter[str]]:
    """Multi-hop candidates within the caps, and what the caps cut."""
    kept: list[Candidate] = []
    dropped: Counter[str] = Counter()
    for metapath in METAPATHS:  # caps are for each metapath: one is held whole at a time
        within, cut = capped(_made(ctx, store, metapath), ctx.settings)
        kept += within
        dropped += cut
    return kept, dropped


def _made(ctx: Context, store: GraphStore, metapath: Metapath) -> list[Candidate]:
    """Candidates of a metapath, in id order, from so many seeds that the caps have enough to choose from.

    The work depends on what is wanted, not on how large the graph is.
    """
    made: dict[str, Candidate] = {}
    enough = ctx.settings.per_metapath * len(ctx.languages)
    looked_at = 0
    for sampled in sample(ctx, store, metapath):
        paths = _questions(sampled)  # of one seed, and so of one part
        made |= {candidate.id: candidate for candidate in _worded(ctx, store, metapath, paths)}
        looked_at += len(paths)
        if len(made) >= _CHOICE * enough or looked_at >= _LOOKED_AT * enough:
            break
    return [made[key] for key in sorted(made)]


def sample(ctx: Context, store: GraphStore, metapath: Metapath) -> Iterator[list[Path]]:
    """Paths of a metapath, part by part, from seeds in seeded order; hubs are not walked."""
    relation, direction = metapath.hops[0]
    seeds = _keys(ctx, store, queries.keys_with(metapath.labels[0], relation, direction))
    query = queries.path_samples(metapath.labels, metapath.hops, metapath.filters)
    hubs = _hubs(ctx, store, metapath)
    ordered = seeded(seeds, ctx.settings.seed, lambda key: metapath.id + key)
    for at in range(0, len(ordered), _SEEDS_AT_ONCE):
        part = ordered[at : at + _SEEDS_AT_ONCE]
        yield [
            Path(
                metapath,
                tuple(row[f"k{i}"] for i in range(len(metapath.labels))),
                tuple((field, row[field]) for _, field in metapath.filters),
            )
            for row in store.read(query, seeds=part, hubs=hubs, limit=_SAMPLES_PER_SEED)
        ]


def _keys(ctx: Context, store: GraphStore, query: str) -> list[str]:
    """Keys that a query gives; many metapaths begin alike."""
    if query not in ctx.keys:
        ctx.keys[query] = [str(row["key"]) for row in store.read(query, hub=ctx.settings.hub_degree)]
    return ctx.keys[query]


def _hubs(ctx: Context, store: GraphStore, metapath: Metapath) -> list[list[str]]:
    """Keys of the hubs at each node between the ends: of the relation that leads to it, or of the one onward."""
    back = {"in": "out", "out": "in", "any": "any"}
    found: list[list[str]] = []
    for at, (relation, direction) in enumerate(metapath.hops[:-1], start=1):
        ways = dict.fromkeys(((relation, back[direction]), metapath.hops[at]))
        keys = {
            key
            for kind, way in ways
            for key in _keys(ctx, store, queries.hubs(metapath.labels[at], kind, way))
        }
        found.append(sorted(keys))
    return found


def _questions(paths: Iterable[Path]) -> list[Path]:
    """One path for each question: those that differ in the answer only are one question."""
    first: dict[tuple[Any, ...], Path] = {}
    for path in paths:
        key = tuple(sorted(path.parameters().items()))
        if key not in first or path.keys < first[key].keys:
            first[key] = path
    return [first[key] for key in sorted(first)]


def _own_query(metapath: Metapath) -> str:
    fixed = tuple((at, f"q.n{at}") for at in (0, *metapath.fixed))
    return queries.path_answers(metapath.labels, metapath.hops, fixed, metapath.answer, metapath.filters)


def _bridge_query(metapath: Metapath) -> str:
    """The bridging nodes of the question: what "the substance that …" can mean."""
    labels, hops = metapath.labels[: metapath.bridge + 1], metapath.hops[: metapath.bridge]
    return queries.path_answers(labels, hops, ((0, "q.n0"),), metapath.bridge)


def _shortcut_checks(path: Path, answers: tuple[str, ...]) -> Iterator[Check]:
    """Queries with one constraint left out must not give the same answers."""
    metapath, parameters = path.metapath, path.parameters()
    if metapath.template == "shared":
        first = queries.path_answers(metapath.labels[:3], metapath.hops[:2], ((0, "q.n0"), (1, "q.n1")), 2)
        yield Check(Proof(first, parameters), "shortcut", forbidden=answers)
        second = queries.path_answers(
            (metapath.labels[2], metapath.labels[3]), metapath.hops[2:], ((1, "q.n3"),), 0, apart="q.n0"
        )
        yield Check(Proof(second, parameters), "shortcut", forbidden=answers)
    else:
        # without the seed: all answers there are for the last hop
        tail = queries.path_answers(
            metapath.labels[1:], metapath.hops[1:], (), metapath.answer - 1,
            tuple((at - 1, field) for at, field in metapath.filters),
        )  # fmt: skip
        yield Check(Proof(tail, parameters), "shortcut", forbidden=answers)
    pair = queries.connected(metapath.labels[0], metapath.labels[metapath.answer])
    if pair is not None:
        for answer in answers:
            yield Check(Proof(pair, {"left": path.keys[0], "right": answer}), "direct_edge", expected=())


def _matter_checks(path: Path) -> Iterator[Check]:
    """A solution or another mixture that fits too is a "substance" to who reads the question: there must be none."""
    metapath = path.metapath
    at = metapath.bridge or metapath.answer
    if metapath.labels[at] != NodeLabel.SUBSTANCE:
        return
    if metapath.bridge:
        known: tuple[int, ...] = (0,)
        labels, hops = metapath.labels[: at + 1], metapath.hops[:at]
    else:
        known = (0, *metapath.fixed)
        labels, hops = metapath.labels, metapath.hops
    fixed = tuple((node, f"q.n{node}") for node in known)
    mixed = tuple(NodeLabel.MIXTURE if node == at else label for node, label in enumerate(labels))
    yield Check(
        Proof(queries.path_answers(mixed, hops, fixed, at), path.parameters()), "mixture_too", expected=()
    )


def _worded(
    ctx: Context, store: GraphStore, metapath: Metapath, paths: Sequence[Path]
) -> Iterator[Candidate]:
    own = _own_query(metapath)
    if metapath.bridge:  # asked first: of most seeds it says that there is no question
        bridges = run(store, [Proof(_bridge_query(metapath), path.parameters()) for path in paths])
        ctx.dropped["bridge_not_unique"] += sum(len(found) != 1 for found in bridges)
        paths = [path for path, found in zip(paths, bridges, strict=True) if len(found) == 1]
    answers = run(store, [Proof(own, path.parameters()) for path in paths])
    for path, found in zip(paths, answers, strict=True):
        if not found:
            ctx.dropped["own_query_empty"] += 1
        elif not metapath.bridge and len(found) > ctx.settings.list_limit:
            ctx.dropped["too_many_answers"] += 1
        elif (hops := _hop_facts(ctx, path, found)) is None:
            ctx.dropped["hop_without_plain_evidence"] += len(ctx.languages)
        else:
            for language in ctx.languages:
                candidate = _candidate(ctx, path, found, hops, language)
                if candidate is not None:
                    yield candidate


def run(store: GraphStore, proofs: Sequence[Proof]) -> list[tuple[Any, ...]]:
    """Sorted answers of proofs, run in batches grouped by query.

    What is one question to the server is asked once: the same proof of a Chinese and an
    English question, or shortcut tests that leave out the parameter they differ in.
    """
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    keys: list[tuple[str, str]] = []
    for proof in proofs:
        read = {name: proof.parameters[name] for name in _parameters_read(proof.body)}
        keys.append((proof.body, canonical_json(read)))
        groups.setdefault(proof.body, {}).setdefault(keys[-1][1], read)
    results: dict[tuple[str, str], tuple[Any, ...]] = {}
    for body, distinct in groups.items():
        members = list(distinct.items())
        for start in range(0, len(members), _PROOFS_PER_BATCH):
            part = members[start : start + _PROOFS_PER_BATCH]
            asked = [{"id": at, **read} for at, (_, read) in enumerate(part)]
            for row in store.read(queries.batched(body), qs=asked):
                results[body, part[row["id"]][0]] = tuple(sorted(row["answers"]))
    return [results.get(key, ()) for key in keys]


@cache
def _parameters_read(body: str) -> tuple[str, ...]:
    """Names of the parameters that a proof's body reads from its map ``q``."""
    return tuple(sorted(set(re.findall(r"(?<![\w.])q\.(\w+)", body))))


# --- wording ------------------------------------------------------------------


def _candidate(
    ctx: Context, path: Path, answers: tuple[str, ...], hops: list[list[Fact]], language: Language
) -> Candidate | None:
    slots = _slots(ctx, path, language, plural=len(answers) > 1)
    said = _answer_words(ctx, path, answers, hops[-1], language)
    if slots is None or said is None:
        ctx.dropped["no_wording"] += 1
        return None
    metapath = path.metapath
    if metapath.bridge and _names_its_bridge(ctx, path, language):
        ctx.dropped["seed_names_bridge"] += 1
        return None
    nodes = _nodes(path, answers, hops)
    substances = substances_of(*nodes)
    if side_of(substances, ctx.sides) is None:
        ctx.dropped["both_sides_of_split"] += 1
        return None
    variant: str | int = (
        (0 if len(answers) == 1 else 1) if metapath.template in wording.PLURAL else path.keys[0]
    )
    question = wording.word(metapath.template, language, variant, **slots)
    shown = [fact for hop in hops for fact in _shown(hop, language)]
    distinct = list(dict.fromkeys(said))
    return Candidate(
        kind="multi_hop",
        language=language,
        template=metapath.template,
        question=question,
        answer=distinct[0] if len(distinct) == 1 else wording.joined(distinct, language),
        expected=answers,
        surfaces=said,
        proof=Proof(_own_query(metapath), path.parameters()),
        references=references(shown, language),
        triples=tuple(sorted({fact.triple() for hop in hops for fact in hop})),
        substances=substances,
        section=hops[-1][0].section,
        relation=metapath.hops[-1][0].value,
        metapath=metapath.text,
        hops=len(metapath.hops),
        nodes=path.keys,
        checks=(*_shortcut_checks(path, answers), *_matter_checks(path)),
        difficulty={"cross_language": all(fact.language != language for fact in shown)},
    )


def _names_its_bridge(ctx: Context, path: Path, language: Language) -> bool:
    """ "the component of sulfuric acid (98%)": the seed's name says what the question goes by way of."""
    labels, bridge = path.metapath.labels, path.metapath.bridge
    seed = ctx.facts.name(labels[0], path.keys[0], language)
    between = ctx.facts.name(labels[bridge], path.keys[bridge], language)
    return bool(seed and between and plain(between) in plain(seed))


def _shown(hop: Sequence[Fact], language: Language) -> list[Fact]:
    """Evidence of a hop: one span for each edge that it stands for."""
    edges: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in hop:
        edges.setdefault(fact.triple(), []).append(fact)
    return [one_per_document(edges[edge], language)[0] for edge in sorted(edges)]


_CONDITIONAL = frozenset({Relation.DECOMPOSES_TO, Relation.BURNS_TO})


def _hop_facts(ctx: Context, path: Path, answers: tuple[str, ...]) -> list[list[Fact]] | None:
    """Facts behind each hop, for all answers.

    None where one rests on a condition or a "may" alone, or where another source contradicts it.
    """
    metapath = path.metapath
    hops: list[list[Fact]] = []
    for at, (relation, direction) in enumerate(metapath.hops):
        found: list[Fact] = []
        for answer in answers:
            keys = tuple(answer if i == metapath.answer else key for i, key in enumerate(path.keys))
            start, end = (keys[at + 1], keys[at]) if direction == "in" else (keys[at], keys[at + 1])
            support = ctx.facts.support(start, relation, end)
            if relation not in _CONDITIONAL:
                support = [f for f in support if f.modality != "may" and _unconditional(f)]
            if not support or ctx.facts.denied(start, relation, end):
                return None
            if any(ctx.contradicted(fact) for fact in support):
                ctx.dropped["sources_contradict"] += 1
                return None
            found += support
        hops.append(sorted({f.id: f for f in found}.values(), key=lambda f: f.id))
    return hops


def _unconditional(fact: Fact) -> bool:
    return not set(fact.conditions) - {"route"}


def _nodes(path: Path, answers: tuple[str, ...], hops: Sequence[Sequence[Fact]]) -> list[Node]:
    nodes: list[Node] = list(zip(path.metapath.labels, path.keys, strict=True))
    nodes += [(path.metapath.labels[path.metapath.answer], answer) for answer in answers]
    nodes += [(fact.subject_label, fact.subject) for hop in hops for fact in hop]
    return nodes


def _slots(ctx: Context, path: Path, language: Language, *, plural: bool) -> dict[str, str] | None:
    metapath, fixed = path.metapath, dict(path.fixed)
    seed = ctx.name((metapath.labels[0], path.keys[0]), language)
    slots: dict[str, str | None] = {"name": seed, "entry": seed}
    if metapath.field == "property":
        slots["what"] = _property(fixed, language)
    if metapath.template in {"product_value", "product_entry"}:
        slots["link"] = _link_words(metapath.hops[0][0], language)
    if metapath.template == "entry_text":
        slots["ask"] = _STORE_ASK[language]
    if metapath.template == "shared":
        for slot, at, relation in (("first", 1, metapath.hops[0][0]), ("second", 3, metapath.hops[2][0])):
            item = ctx.name((metapath.labels[at], path.keys[at]), language)
            having = wording.HAVING[relation]
            slots[slot] = (
                None
                if item is None
                else having[0 if language == "zh" else 2 if plural else 1].format(item=item)
            )
    if any(value is None for value in slots.values()):
        return None
    return {name: str(value) for name, value in slots.items()}


def _property(fixed: dict[str, str], language: Language) -> str | None:
    import json

    if fixed.get("property") not in {p.value for p in PROPERTIES}:
        return None
    conditions = json.loads(fixed["value_conditions"]) if fixed.get("value_conditions") else {}
    return wording.property_words(fixed["property"], conditions, language)


def _link_words(relation: Relation, language: Language) -> str:
    singular = {
        Relation.DECOMPOSES_TO: ("分解产物", "a decomposition product"),
        Relation.BURNS_TO: ("燃烧产物", "a combustion product"),
        Relation.INCOMPATIBLE_WITH: ("禁配物", "an incompatible material"),
        Relation.HAS_COMPONENT: ("组分", "a component"),
    }
    return singular[relation][0 if language == "zh" else 1]


def _answer_words(
    ctx: Context, path: Path, answers: tuple[str, ...], last: Sequence[Fact], language: Language
) -> tuple[str, ...] | None:
    label = path.metapath.labels[path.metapath.answer]
    if label == NodeLabel.MEASUREMENT:
        return _value_answers(ctx, answers, last, language)
    if label == NodeLabel.TRANSPORT_ENTRY and len(answers) > 1:
        return (f"UN {last[0].properties['un']}",) * len(answers) if one_entry(last) else None
    words = []
    for answer in answers:
        if label == NodeLabel.MEASURE:
            said = _text_answer(ctx, answer, answers, last, language)
        else:
            said = ctx.name((label, answer), language)
        if said is None:
            return None
        words.append(said)
    return tuple(words)


def _text_answer(
    ctx: Context, answer: str, answers: tuple[str, ...], last: Sequence[Fact], language: Language
) -> str | None:
    """The instruction, only where it is the only one and in the question's language."""
    facts = [fact for fact in last if fact.object == answer]
    texts = {str(fact.properties.get("text") or "") for fact in facts if fact.language.startswith(language)}
    return next(iter(texts)) or None if len(answers) == 1 and len(texts) == 1 else None


def _value_answers(
    ctx: Context, answers: tuple[str, ...], last: Sequence[Fact], language: Language
) -> tuple[str, ...] | None:
    """Values in words, only where all sources agree and no other condition could be meant."""
    if any("text" in fact.value for fact in last) or not agree(last, ctx.settings):
        return None
    subject: Node = (last[0].subject_label, last[0].subject)
    same = [
        fact
        for fact in ctx.facts.stated(subject, Relation.HAS_MEASUREMENT)
        if fact.properties.get("property") == last[0].properties.get("property")
    ]
    if not last[0].value_conditions and not agree(same, ctx.settings):
        return None
    words = {fact.object: wording.value_words(fact.value, language) for fact in last}
    if any(words.get(answer) is None for answer in answers):
        return None
    return tuple(str(words[answer]) for answer in answers)

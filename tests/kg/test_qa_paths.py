"""Multi-hop questions against an answer worked out in Python, from the statements alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.catalogue import Catalogue
from kg.qa.facts import Facts
from kg.qa.multi_hop import METAPATHS, Metapath
from kg.qa.records import Candidate
from kg.schema import RELATIONS, NodeLabel, Relation
from kg.store import GraphStore
from tests.kg.graph_builders import MADE, L, R, Sheet, data_sheet, entity
from tests.kg.qa_world import World

pytestmark = pytest.mark.graph
Node = tuple[NodeLabel, str]
BY_TEXT = {metapath.text: metapath for metapath in METAPATHS}


@pytest.fixture(scope="module")
def held(
    tmp_path_factory: pytest.TempPathFactory, session_store: GraphStore
) -> Iterator[tuple[World, list[Candidate]]]:
    """Data sheets with decomposition products, members of classes and a direct edge that shortens a path."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('paths')}/c.db")
    session_store.clear()
    with catalogue.writing() as session:
        for made in MADE:
            entity(session, made.cas, zh=made.zh, en=made.en)
            for language in ("zh", "en"):
                sheet = data_sheet(made, language)
                if made is MADE[1]:  # methanol gives off what has a data sheet of its own
                    name = MADE[9].zh if language == "zh" else MADE[9].en
                    line = sheet.line(
                        10, f"分解产物：{name}。" if language == "zh" else f"Decomposes to: {name}."
                    )
                    sheet.fact(made.cas, R.DECOMPOSES_TO, L.SUBSTANCE, MADE[9].cas, line, object=name)
                if made is MADE[5]:
                    line = sheet.line(10, "属于酸类。" if language == "zh" else "It is one of the acids.")
                    sheet.fact(made.cas, R.MEMBER_OF, L.REACTIVE_GROUP, "group:acids", line,
                               properties={"zh": "酸类", "en": "acids"})  # fmt: skip
                sheet.store(session)
        direct = Sheet("相容性表", "zh", url="http://sample.test/direct")
        line = direct.line(10, "乙酸乙酯与硫酸不得混放：互为禁配物。")
        direct.fact(MADE[8].cas, R.INCOMPATIBLE_WITH, L.SUBSTANCE, MADE[5].cas, line)
        direct.store(session)
    world = World(catalogue, session_store)
    candidates = [c for c in world.everything() if c.kind == "multi_hop"]
    yield world, world.held(candidates)
    catalogue.close()


def edges(facts: Facts) -> dict[tuple[str, Relation], set[Node]]:
    """Who is linked to whom by positive statements; symmetric relations both ways, "in" as "~RELATION"."""
    found: dict[tuple[str, Relation], set[Node]] = defaultdict(set)
    for fact in facts.facts:
        if fact.positive:
            found[fact.subject, fact.relation].add((fact.object_label, fact.object))
    return found


def walked(facts: Facts, candidate: Candidate, metapath: Metapath) -> set[str]:
    """Answers found by walking statements from the seed."""
    out = edges(facts)
    back: dict[tuple[str, Relation], set[Node]] = defaultdict(set)
    for (start, relation), ends in out.items():
        label = L.MIXTURE if start.startswith("mixture:") else L.SUBSTANCE
        for _, end in ends:
            back[end, relation].add((label, start))
    parameters: dict[str, Any] = dict(candidate.proof.parameters)
    paths: list[tuple[Node, ...]] = [((metapath.labels[0], parameters["n0"]),)]
    for at, (relation, direction) in enumerate(metapath.hops, start=1):
        longer = []
        for path in paths:
            ends = set()
            if direction in ("out", "any"):
                ends |= out[path[-1][1], relation]
            if direction in ("in", "any"):
                ends |= back[path[-1][1], relation]
            for node in ends:
                if node[0] != metapath.labels[at] or node in path:
                    continue
                if at in metapath.fixed and node[1] != parameters[f"n{at}"]:
                    continue
                longer.append((*path, node))
        paths = longer
    return {
        path[metapath.answer][1]
        for path in paths
        if _fits(facts, path[metapath.answer], metapath, parameters)
    }


def _fits(facts: Facts, node: Node, metapath: Metapath, parameters: dict[str, Any]) -> bool:
    props = facts.props(*node)
    return all(str(props.get(name) or "") == parameters[name] for _, name in metapath.filters)


Held = tuple[World, list[Candidate]]


def test_all_kinds_of_path_are_there(held: Held) -> None:
    templates = {c.template for c in held[1]}
    assert {"entry_value", "product_value", "product_entry", "shared"} <= templates
    assert {c.language for c in held[1]} == {"zh", "en"}


def test_answers_are_those_of_a_walk_over_the_statements(held: Held) -> None:
    world, candidates = held
    assert len(candidates) >= 40
    for candidate in candidates:
        assert walked(world.facts, candidate, BY_TEXT[candidate.metapath]) == set(candidate.expected), (
            candidate.question
        )


def without_a_hop(facts: Facts, candidate: Candidate, metapath: Metapath) -> list[set[str]]:
    """What the question would be answered with if one of its conditions, or its start, were not there."""
    out, parameters = edges(facts), candidate.proof.parameters
    seed, (relation, _) = candidate.nodes[0], metapath.hops[-1]
    if metapath.template != "shared":
        # the start left out: all there is at the end of the last hop
        every = {node for (_, kind), ends in out.items() if kind == relation for node in ends}
        return [{key for label, key in every if _fits(facts, (label, key), metapath, dict(parameters))}]
    first = {
        s
        for (s, kind), ends in out.items()
        if kind == metapath.hops[0][0]
        for _, key in ends
        if key == parameters["n1"]
    }
    second = {
        s for (s, kind), ends in out.items() if kind == relation for _, key in ends if key == parameters["n3"]
    }
    assert first & second - {seed} == set(candidate.expected)
    return [first - {seed}, second - {seed}]


def test_no_shortcut(held: Held) -> None:
    """No condition can be left out, and no statement joins question and answer directly."""
    world, candidates = held
    out = edges(world.facts)
    for candidate in candidates:
        metapath = BY_TEXT[candidate.metapath]
        for answers in without_a_hop(world.facts, candidate, metapath):
            assert answers != set(candidate.expected), candidate.question
        seed, expected = candidate.nodes[0], set(candidate.expected)
        for relation in RELATIONS:
            assert not expected & {key for _, key in out[seed, relation]}, candidate.question
            assert not [key for key in expected if seed in {k for _, k in out[str(key), relation]}], (
                candidate.question
            )


def test_the_direct_edge_costs_its_questions(held: Held) -> None:
    """Ethyl acetate and sulfuric acid are joined directly, so no path between them is asked."""
    world, candidates = held
    pair = {MADE[5].cas, MADE[8].cas}
    assert not [
        c for c in candidates if c.template == "shared" and pair <= {c.nodes[0], *map(str, c.expected)}
    ]
    assert world.facts.support(MADE[8].cas, R.INCOMPATIBLE_WITH, MADE[5].cas)


def test_nodes_and_spans(held: Held, tmp_path: Path) -> None:
    for candidate in held[1]:
        assert len(set(candidate.nodes)) == len(candidate.nodes)
        assert candidate.hops == len(BY_TEXT[candidate.metapath].hops) >= 2
        assert len({(r.document_id, r.start, r.end) for r in candidate.references}) >= 2


def test_a_solution_that_fits_too_costs_the_question(held: Held) -> None:
    """ "Which substance …" has no single answer where a mixture is meant by the same words; last, since it adds a sheet."""
    world, candidates = held
    shared = next(c for c in candidates if c.template == "shared")
    entry = next(c for c in candidates if c.template == "entry_value")
    assert world.verdict(shared) == world.verdict(entry) == ""
    solution = "mixture:硫酸溶液"
    ends = [
        (hop[0], BY_TEXT[shared.metapath].labels[at], shared.proof.parameters[f"n{at}"])
        for hop, at in zip(BY_TEXT[shared.metapath].hops[::2], (1, 3), strict=True)
    ]
    ends.append((R.SHIPPED_AS, L.TRANSPORT_ENTRY, entry.proof.parameters["n0"]))
    with world.catalogue.writing() as session:
        entity(session, solution, zh="硫酸溶液", label=L.MIXTURE)
        sheet = Sheet("硫酸溶液", "zh", url="http://sample.test/solution")
        for relation, label, key in ends:
            sheet.fact(solution, relation, label, key, sheet.line(2, f"硫酸溶液：{key}。"), object=key, properties={"zh": key})  # fmt: skip
        sheet.store(session)
    world.load()
    assert world.verdict(shared) == "mixture_too"
    assert world.verdict(entry) == "mixture_too"

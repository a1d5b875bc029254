"""Seeded faults: each kind of wrong question is put in on purpose and must be caught, with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion
from kg import queries
from kg.graph_settings import QuestionSettings
from kg.qa import aggregative, boolean, multi_hop, single_hop
from kg.qa.facts import Fact, Facts, Source
from kg.qa.lists import list_is_whole
from kg.qa.records import Proof
from kg.qa.sampling import Side
from kg.qa.verification import Reason, verify
from kg.schema import NodeLabel, Relation, value_key
from kg.store import GraphStore
from tests.kg.graph_builders import MADE, L, R, Sheet, data_sheet, entity, fill, quantity
from tests.kg.qa_faults import CHECKS, FAULTS, FEW, Bench, bench, judge, table
from tests.kg.qa_world import SETTINGS, World

pytestmark = pytest.mark.graph


@pytest.fixture
def world(sqlite_catalogue: Catalogue, store: GraphStore) -> World:
    fill(sqlite_catalogue, FEW)
    return World(sqlite_catalogue, store)


def with_quote(facts: Facts, fact: Fact, quote: str) -> Facts:
    """The same facts where the sentence of one says something else (text and span agree)."""
    text = fact.source.text.replace(fact.quote, quote)
    source = replace(fact.source, text=text)
    changed = [
        replace(f, source=source, quote=quote, start=text.index(quote), end=text.index(quote) + len(quote))
        if f.id == fact.id
        else replace(f, source=source if f.source == fact.source else f.source)
        for f in facts.facts
    ]
    return Facts(changed, facts.nodes)


def test_sound_questions_hold(world: World) -> None:
    for make, template in ((single_hop.candidates, "value"), (aggregative.candidates, "count"),
                           (boolean.candidates, "is_listed"), (multi_hop.candidates, "entry_value")):  # fmt: skip
        assert world.verdict(world.one(make, template=template)) == ""


def test_hub(world: World) -> None:
    shared = world.one(multi_hop.candidates, template="shared")
    assert world.verdict(shared, settings=QuestionSettings(hub_degree=1)) == Reason.HUB


def test_self_loop(world: World) -> None:
    shared = world.one(multi_hop.candidates, template="shared")
    assert (
        world.verdict(replace(shared, nodes=(shared.nodes[0], *shared.nodes[1:2], shared.nodes[0])))
        == Reason.SELF_LOOP
    )


def test_alias_pair(world: World) -> None:
    shared = world.one(multi_hop.candidates, template="shared")
    seed, answer = shared.nodes[0], shared.expected[0]
    nodes = dict(world.facts.nodes)
    alias = (*nodes[L.SUBSTANCE, answer].get("aliases", []), nodes[L.SUBSTANCE, seed]["name_zh"])
    nodes[L.SUBSTANCE, answer] = MappingProxyType({**nodes[L.SUBSTANCE, answer], "aliases": list(alias)})
    assert world.verdict(shared, Facts(world.facts.facts, nodes)) == Reason.ALIAS_OF_SEED


def test_ambiguous_answer_and_conflicting_sources(world: World) -> None:
    asked = world.one(single_hop.candidates, template="value", language="zh", substances=(FEW[0].cas,))
    prop = str(asked.proof.parameters["property"])
    other = Sheet("另一份丙酮资料", "zh", url="http://sample.test/other")
    line = other.line(9, "沸点：70 ℃" if prop == "boiling_point" else "闪点（闭杯）：5 ℃")
    value = quantity(70.0, "degC", 343.15, "kelvin") if prop == "boiling_point" else quantity(
        5.0, "degC", 278.15, "kelvin", method="closed cup")  # fmt: skip
    key = value_key(L.MEASUREMENT, FEW[0].cas, {"property": prop}, value)
    other.fact(
        FEW[0].cas, R.HAS_MEASUREMENT, L.MEASUREMENT, key, line, properties={"property": prop}, value=value
    )
    with world.catalogue.writing() as session:
        other.store(session)
    world.load()
    assert world.verdict(asked) == Reason.PROOF_DIFFERS
    # and the makers ask only with the source named now, and compare nothing on it
    made = [
        c for c in single_hop.candidates(world.ctx) if c.substances == (FEW[0].cas,) and c.template == "value"
    ]
    same = [c for c in made if c.proof.parameters["property"] == prop]
    assert same
    assert all(c.proof.parameters.get("document") for c in same)
    compared = [c for c in [*aggregative.candidates(world.ctx), *boolean.candidates(world.ctx)]
                if c.proof.parameters.get("property") == prop]  # fmt: skip
    assert all(FEW[0].cas not in c.substances for c in compared)


def test_missing_list_member(world: World) -> None:
    counted = world.one(aggregative.candidates, template="count", language="zh", relation="INCOMPATIBLE_WITH")
    key = counted.listings[0]
    with world.catalogue.writing() as session:
        rows = [r for r in session.scalars(select(Assertion)) if r.properties.get("listing") == key]
        session.delete(sorted(rows, key=lambda r: r.assertion_id)[0])
    world.load()
    made = [c for c in aggregative.candidates(world.ctx) if c.listings == (key,) and c.template == "count"]
    assert made, "the fault itself must get as far as verification"
    assert {world.verdict(c) for c in made} == {Reason.LIST_INCOMPLETE}


def test_every_missing_member_shows(world: World) -> None:
    lists = [m for m in world.facts.by_listing.values() if len(m) > 1]
    assert len(lists) > 20
    for members in lists:
        assert list_is_whole(members)
        for at in range(len(members)):
            assert not list_is_whole([*members[:at], *members[at + 1 :]]), members[at].words


@pytest.mark.parametrize(
    ("line", "members", "whole"),
    [
        ("| 灭火剂： | 泡沫、干粉 | 禁用灭火剂： | 直流水 |", ["泡沫", "干粉"], True),
        ("灭火剂：泡沫、干粉。不可用水灭火。", ["泡沫", "干粉"], True),
        ("应与氧化剂、酸类分开存放，切忌混储。", ["氧化剂", "酸类"], True),
        ("应与氧化剂、酸类分开存放，切忌混储。", ["酸类"], False),
        ("Incompatible materials: acids, bases and nitrobenzene.", ["acids", "bases"], False),
        ("Incompatible materials: nitrobenzene, acids, bases.", ["acids", "bases"], False),
        (
            "Incompatible materials: acids, chloroform in the presence of bases.",
            ["acids", "chloroform"],
            False,
        ),
        ("Incompatible materials: acids; bases; halogens", ["acids", "bases"], False),
        ("Incompatible materials: acids; bases; halogens", ["acids", "bases", "halogens"], True),
        ("### 10.4 Hazardous products\n\nacids; bases", ["acids", "bases"], True),
        ("### 10.4 Hazardous products\n\nmethane; acids; bases", ["acids", "bases"], False),
        ("禁配物：强氧化剂（包括硝酸）、酸类", ["强氧化剂", "酸类"], False),
    ],
)
def test_lists_in_text(line: str, members: list[str], whole: bool) -> None:
    sheet = Sheet("说明", "zh")
    sheet.line(10, line)
    text, _ = sheet.text()
    source = Source("d", "v", "t", "u", "zh", "s", "page", text)
    start = min(text.index(word) for word in members)
    end = max(text.index(word) + len(word) for word in members)
    start = text.index(line) if line.startswith("#") else start  # such a quote takes its heading in
    facts = [
        Fact(word, source, "x", L.SUBSTANCE, R.INCOMPATIBLE_WITH, word, L.REACTIVE_GROUP, word, {}, {}, "positive",
             "is", {}, start, end, text[start:end], 10, "zh")
        for word in members
    ]  # fmt: skip
    assert list_is_whole(facts) is whole


def test_missing_code(world: World) -> None:
    members = next(m for m in world.facts.by_listing.values() if m[0].relation == Relation.HAS_H)
    assert list_is_whole(members)
    assert not list_is_whole(members[1:])


def test_false_negative(world: World) -> None:
    yes = world.one(boolean.candidates, template="is_listed", expected=("yes",), relation="INCOMPATIBLE_WITH")
    listing = str(yes.proof.parameters["listing"])
    lie = replace(yes, expected=("no",), answer="否", listings=(listing,))
    assert world.verdict(lie) == Reason.DENIED_IN_LIST
    assert world.verdict(replace(lie, listings=())) == Reason.PROOF_DIFFERS


def test_missing_edge_is_never_a_no(world: World) -> None:
    no = world.one(boolean.candidates, template="is_listed", expected=("no",))
    unlisted = Proof(no.proof.body, {**no.proof.parameters, "listing": "listing:unknown"})
    assert world.verdict(replace(no, proof=unlisted, listings=())) == Reason.PROOF_DIFFERS
    # a list that is not complete proves nothing either
    world.store._write(
        "MATCH (l:Listing {key: $key}) SET l.complete = false", key=no.proof.parameters["listing"]
    )
    assert world.verdict(no) == Reason.PROOF_DIFFERS
    # nor does a substance about which nothing is said
    body = queries.is_stated(NodeLabel.SUBSTANCE, NodeLabel.REACTIVE_GROUP)
    silent = Proof(
        body, {"subject": FEW[0].cas, "object": "group:none", "for": "INCOMPATIBLE_WITH", "against": ""}
    )
    assert multi_hop.run(world.store, [silent]) == [("unknown",)]


def test_negated_sentence(world: World) -> None:
    yes = world.one(aggregative.candidates, template="list", language="en", relation="INCOMPATIBLE_WITH")
    fact = world.facts.by_listing[yes.listings[0]][0]
    lie = with_quote(world.facts, fact, "It is not incompatible with strong oxidizing agents.")
    changed = next(f for f in lie.facts if f.id == fact.id)
    forged = replace(yes, references=(changed.reference(),), listings=())
    assert world.verdict(forged, lie) == Reason.NEGATED_EVIDENCE


def test_altered_digit(world: World) -> None:
    asked = world.one(single_hop.candidates, template="value", language="en")
    fact = next(f for f in world.facts.facts if f.reference() == asked.references[0])
    digits = next(c for c in reversed(fact.quote) if c.isdigit())
    quote = (
        fact.quote[: fact.quote.rindex(digits)]
        + str((int(digits) + 1) % 10)
        + fact.quote[fact.quote.rindex(digits) + 1 :]
    )
    lie = with_quote(world.facts, fact, quote)
    changed = next(f for f in lie.facts if f.id == fact.id)
    assert (
        world.verdict(replace(asked, references=(changed.reference(),)), lie) == Reason.NUMBER_NOT_IN_EVIDENCE
    )


def test_reference_elsewhere_or_of_an_older_version(world: World) -> None:
    asked = world.one(single_hop.candidates, template="value")
    moved = replace(asked.references[0], start=asked.references[0].start + 1)
    assert world.verdict(replace(asked, references=(moved,))) == Reason.REFERENCE_NOT_FOUND
    old = replace(asked.references[0], version_id="older")
    assert world.verdict(replace(asked, references=(old,))) == Reason.STALE_REFERENCE
    assert world.verdict(replace(asked, references=())) == Reason.NO_REFERENCE
    shared = world.one(multi_hop.candidates, template="shared")
    assert world.verdict(replace(shared, references=shared.references[:1])) == Reason.FEW_REFERENCES


def test_shortcut(world: World) -> None:
    made = multi_hop.candidates(world.ctx, world.store)[0]
    verdicts = verify(made, world.facts, world.store, world.settings, world.sides)
    for candidate in made:
        if verdicts[candidate.id] == "" and candidate.template == "shared":
            # none of those kept is answered by one of its two conditions alone
            answers = multi_hop.run(world.store, [check.proof for check in candidate.checks])
            assert tuple(candidate.expected) not in answers[:2]
    assert Reason.SHORTCUT in verdicts.values()


def test_answer_given_away_and_wrong_language(world: World) -> None:
    asked = world.one(single_hop.candidates, template="value", language="zh")
    assert (
        world.verdict(replace(asked, question=f"{asked.question}是不是 {asked.answer}？"))
        == Reason.ANSWER_LEAKED
    )
    assert world.verdict(replace(asked, question="What is it?")) == Reason.WRONG_LANGUAGE


def test_second_un_number_in_the_evidence(world: World) -> None:
    asked = world.one(single_hop.candidates, template="shipped", language="en")
    fact = next(f for f in world.facts.facts if f.reference() == asked.references[0])
    lie = with_quote(world.facts, fact, fact.quote + "; UN 2209 as a solution")
    changed = next(f for f in lie.facts if f.id == fact.id)
    assert world.verdict(replace(asked, references=(changed.reference(),)), lie) == Reason.OTHER_ENTRIES


def test_both_sides_of_the_split(world: World) -> None:
    compared = world.one(aggregative.candidates, template="compare")
    other: dict[str, Side] = {
        key: ("eval" if key == compared.substances[0] else "train") for key in world.sides
    }
    found = verify([compared], world.facts, world.store, SETTINGS, other)
    assert found[compared.id] == Reason.BOTH_SIDES


# --- traps that must never become "no" ------------------------------------------


TRAPS = [
    # (what the sheet lists, what must not be denied)
    (["strong_acid"], "acid"),
    (["acid"], "strong_acid"),
    (["strong_oxidizer"], "oxidizer"),
    (["oxidizer"], "peroxide"),
    (["strong_oxidizer"], "halogen"),
    (["oxidizer"], "nitrate"),
    (["oxidizer"], "hypochlorite"),
    (["base"], "amine"),
    (["strong_base"], "base"),
    (["alkali_metal"], "metal"),
    (["metal_powder"], "active_metal"),
    (["reducer"], "alkali_metal"),
    (["combustible"], "alcohol"),
    (["organic_material"], "ketone"),
    (["flammable_material"], "hydrocarbon"),
    (["unknown_class"], "acid"),
    (["acid", "unknown_class"], "halogen"),
    (["alcohol"], "phenols"),
    (["acid"], "acid_chloride"),
    (["sulfide"], "cyanide"),
]


@pytest.mark.parametrize(("listed", "denied"), TRAPS)
def test_overlapping_classes_are_not_denied(listed: list[str], denied: str) -> None:
    assert not boolean._apart(f"group:{denied}", [f"group:{name}" for name in listed])


@pytest.mark.parametrize(
    ("listed", "denied"),
    [(["strong_oxidizer"], "acid_free"), (["strong_oxidizer"], "strong_base"), (["halogen"], "base")],
)
def test_classes_apart(listed: list[str], denied: str) -> None:
    expected = denied != "acid_free"  # a class the table does not know is never denied
    assert boolean._apart(f"group:{denied}", [f"group:{name}" for name in listed]) is expected


@pytest.mark.parametrize(
    ("left", "right"),
    [("formula:C2H6O", "formula:CH3OCH3"), ("formula:C3H6O", "formula:C₃H₆O"), ("formula:CH2O", "formula:HCHO"),
     ("formula:C2H5OH", "formula:C2H6O"), ("formula:x?y", "formula:CH4")],
)  # fmt: skip
def test_one_composition_is_no_other_formula(left: str, right: str) -> None:
    assert boolean.same_identifier("formula", left, right)


def test_hazard_codes_that_contain_each_other() -> None:
    assert boolean._codes("H300+H310") == {"H300", "H310"}
    assert boolean._codes("H360FD") == {"H360"}


def test_un_numbers_are_never_denied_nor_categories_without_a_list(world: World) -> None:
    denied = [c for c in boolean.candidates(world.ctx) if c.expected == ("no",)]
    assert not {c.relation for c in denied} & {"SHIPPED_AS", "MEMBER_OF"}
    # a category only by the closed list of the document that gives another
    assert {c.template for c in denied if c.relation == "CLASSIFIED_AS"} <= {"is_classified"}


def test_explicit_negative_statement_gives_a_no(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    sheet = data_sheet(MADE[3], "zh")
    line = sheet.line(10, "苯与水不发生反应。")
    sheet.fact(MADE[3].cas, R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:water", line, polarity="negative",
               properties={"zh": "水", "en": "water"})  # fmt: skip
    with sqlite_catalogue.writing() as session:
        entity(session, MADE[3].cas, zh="苯", en="Benzene")
        sheet.store(session)
    world = World(sqlite_catalogue, store)
    no = world.one(boolean.candidates, template="is_stated", expected=("no",), language="zh")
    assert no.answer == "否"
    assert "水" in no.question
    assert no.references[0].quote == line


# --- every kind of fault in a real graph -------------------------------------------------


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, session_store: GraphStore) -> Iterator[Bench]:
    """A sound graph with its questions, into which one fault after another is put."""
    made = bench(tmp_path_factory.mktemp("faults"), session_store)
    yield made
    made.sound.catalogue.close()


@pytest.mark.parametrize("kind", FAULTS)
def test_no_question_of_a_fault_is_kept(faulty: Bench, kind: str) -> None:
    outcome = judge(faulty, kind)
    assert outcome.wrong > 0, "the fault itself must get as far as the checks"
    assert outcome.missed == []
    assert set(outcome.caught) == set(CHECKS)
    shown = table([outcome]).splitlines()
    assert len(shown) == 3
    assert shown[-1].startswith(f"| {kind} | {outcome.wrong} |")
    assert shown[-1].endswith("| 0 |")

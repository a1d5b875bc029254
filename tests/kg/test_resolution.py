"""Identity: no wrong merge on the fixture of pairs, components checked again, decisions undone and kept."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.names import normalise_name
from kg.components import Choice, Mention, Resolution, Side, minted, resolve
from kg.identity import AliasTable, Record, blocked, contradiction, decide, one_composition, skeleton
from kg.resolution import _entities, _Row, homographs, mentions_of, with_crawled
from tests.kg.pairs import PAIRS


def test_fixture_is_large_and_half_traps() -> None:
    assert len(PAIRS) >= 120
    assert sum(pair["want"] != "merge" for pair in PAIRS) >= len(PAIRS) / 2
    assert len({json.dumps(pair, sort_keys=True) for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(
    ("want", "pairs"),
    [
        (
            "apart",
            "1,1-二氯乙烷|1,2-二氯乙烷 硫酸|亚硫酸 氯酸钾|高氯酸钾 methanol|ethanol o-xylene|m-xylene m-xylene|p-xylene 苯|苯酚 "
            "CuCl|CuCl2 硫酸铜|五水硫酸铜 苯乙烯|苯乙烯[抑制了的] 甲醛|甲醛溶液",
        ),
        ("merge", "苯酚|石炭酸 氢氧化钠|烧碱 乙醇|酒精 benzol|benzene"),
        ("link", "甲醛|福尔马林"),
    ],
)
def test_fixture_has_the_named_examples(want: str, pairs: str) -> None:
    held = {(p["a"]["name"], p["b"]["name"]) for p in PAIRS if p["want"] == want}
    assert {tuple(pair.split("|")) for pair in pairs.split()} <= held


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['a']['name']}|{pair['b']['name']}")
def test_pair(pair: dict[str, object], table: AliasTable) -> None:
    one, two = Record(**pair["a"]), Record(**pair["b"])  # type: ignore[arg-type]
    verdicts = decide(one, two, table), decide(two, one, table)
    assert {v.kind for v in verdicts} == {verdicts[0].kind}
    if pair["want"] == "apart":
        assert verdicts[0].kind != "merge", verdicts[0]
    else:
        assert verdicts[0].kind == pair["want"], verdicts[0]


@pytest.mark.parametrize(
    ("traditional", "simple", "cas"),
    [
        ("乙醯氯", "乙酰氯", "75-36-5"), ("苯甲醯氯", "苯甲酰氯", "98-88-4"), ("四氯化矽", "四氯化硅", "10026-04-7"),
        ("甲矽烷", "甲硅烷", ""), ("鹽酸", "盐酸", ""), ("氫氟酸", "氢氟酸", ""), ("鄰苯二甲醯氯", "邻苯二甲酰氯", ""),
    ],
)  # fmt: skip
def test_traditional_names_are_the_same_substance(
    traditional: str, simple: str, cas: str, table: AliasTable
) -> None:
    mentions = [Mention("a", simple, False), Mention("b", traditional, False)]
    keys = set(resolve(mentions, table).keys.values())
    assert len(keys) == 1
    assert not cas or keys == {cas}


@pytest.mark.parametrize(
    ("traditional", "simple"),
    [
        ("鄰苯二甲醯氯", "间苯二甲酰氯"),
        ("亞硝酸鈉", "硝酸钠"),
        ("矽酸鈉", "偏硅酸钠"),
        ("乙醯氯", "乙酰溴"),
        ("矽", "硒"),
    ],
)
def test_traditional_names_of_other_substances_stay_apart(
    traditional: str, simple: str, table: AliasTable
) -> None:
    mentions = [Mention("a", simple, False), Mention("b", traditional, False)]
    assert len(set(resolve(mentions, table).keys.values())) == 2


def test_pairs_as_mentions_never_share_a_key(table: AliasTable) -> None:
    for pair in PAIRS:
        mentions = [_mention(f"d{i}", pair[side]) for i, side in enumerate("ab")]
        keys = resolve(mentions, with_crawled(table, mentions)).keys
        same = keys[mentions[0].ref] == keys[mentions[1].ref]
        assert same == (pair["want"] == "merge"), (pair, keys)


def _mention(document: str, given: dict[str, str]) -> Mention:
    made = Mention(document, given["name"], bool(given.get("mixture", False)))
    for name, target in (
        ("cas", made.cas),
        ("inchikey", made.inchikeys),
        ("ec", made.ecs),
        ("formula", made.formulae),
    ):
        if given.get(name):
            target.add(given[name])
    return made


def test_component_with_two_ids_falls_apart() -> None:
    # a name without id joins two records whose ids differ: the transitive trap
    mentions = [
        Mention("a", "mystery", cas={"67-56-1"}),
        Mention("b", "mystery"),
        Mention("c", "mystery", cas={"64-17-5"}),
    ]
    for _ in range(5):
        random.shuffle(mentions)
        result = resolve(mentions, AliasTable())
        assert result.keys["a", "mystery", False] == "67-56-1"
        assert result.keys["c", "mystery", False] == "64-17-5"
        assert result.keys["b", "mystery", False].startswith("name:")
        assert "keep-apart" in {decision.kind for decision in result.decisions.values()}


def everything() -> list[Mention]:
    return [_mention(f"d{i}{side}", pair[side]) for i, pair in enumerate(PAIRS) for side in "ab"]


def told(result: Resolution) -> dict[str, Any]:
    """All that is decided, in a form that can be compared."""
    return {
        "keys": result.keys,
        "decisions": {key: (d.kind, d.left, d.right, d.why, d.sides) for key, d in result.decisions.items()},
        "open": {key: [m.ref for m in pair] for key, pair in result.open.items()},
        "names": {key: dict(names) for key, names in result.names.items()},
    }


@pytest.fixture(scope="module")
def small(table: AliasTable) -> AliasTable:
    """What the repository knows of the fixture's names: copied faster than the whole."""
    forms = {normalise_name(pair[side]["name"]) for pair in PAIRS for side in "ab"}
    return replace(table, keys={form: keys for form, keys in table.keys.items() if form in forms})


@pytest.mark.parametrize("seed", range(2))
def test_order_of_mentions_does_not_matter(table: AliasTable, seed: int) -> None:
    mentions = everything()
    wanted = told(resolve(mentions, with_crawled(table, mentions)))
    random.Random(seed).shuffle(mentions)
    assert told(resolve(mentions, with_crawled(table, mentions))) == wanted


def components(result: Resolution) -> set[frozenset[Any]]:
    groups: dict[str, set[Any]] = {}
    for ref, key in result.keys.items():
        groups.setdefault(key, set()).add(ref)
    return {frozenset(group) for group in groups.values()}


def test_no_two_names_that_must_stay_apart_meet_through_others(table: AliasTable) -> None:
    """All pairs of the fixture in one knowledge base: chains over third names join no trap."""
    mentions = [m for m in everything() if not (m.cas or m.ecs or m.inchikeys or m.formulae)]
    keys = resolve(mentions, with_crawled(table, mentions)).keys
    by_name = {ref[1:]: key for ref, key in keys.items()}
    for pair in PAIRS:
        if set(pair["a"]) | set(pair["b"]) == {"name"} and pair["a"] != pair["b"]:
            ends = [by_name[pair[side]["name"], False] for side in "ab"]
            assert (ends[0] == ends[1]) == (pair["want"] == "merge"), pair


_NAMES = sorted({pair[side]["name"] for pair in PAIRS for side in "ab"})
_MENTIONS = st.builds(
    Mention,
    st.sampled_from([f"d{i}" for i in range(6)]),
    st.sampled_from(_NAMES),
    cas=st.sets(st.sampled_from(["67-56-1", "64-17-5", "50-00-0", "75-09-2"]), max_size=2),
    ecs=st.sets(st.sampled_from(["200-659-6", "200-578-6"]), max_size=1),
    inchikeys=st.sets(st.sampled_from(["OKKJLVBELUTLKV-UHFFFAOYSA-N"]), max_size=1),
    names=st.sets(st.sampled_from(_NAMES), max_size=2),
    formulae=st.sets(st.sampled_from(["CH4O", "CH3OH", "C2H6O"]), max_size=1),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(_MENTIONS, max_size=12, unique_by=lambda m: m.ref), st.randoms(use_true_random=False))
def test_components_hold_whatever_stands_on_the_pages(
    small: AliasTable, mentions: list[Mention], shuffler: random.Random
) -> None:
    result = resolve(mentions, with_crawled(small, mentions))
    shuffled = mentions[:]
    shuffler.shuffle(shuffled)
    assert told(resolve(shuffled, with_crawled(small, shuffled))) == told(result)
    members: dict[str, list[Mention]] = {}
    for mention in mentions:
        members.setdefault(result.keys[mention.ref], []).append(mention)
    for key, group in members.items():
        for kind in ("cas", "inchikey", "ec"):
            assert len({getattr(m.record, kind) for m in group} - {""}) <= 1, (key, kind, group)
        for one in group:
            for two in group:
                if {small.lookup(one.name), small.lookup(two.name)} != {key}:
                    assert not contradiction(one.name, two.name), (key, one, two)
                assert one_composition(one.record.formula or "x", two.record.formula or "x") is not False or (
                    not (one.record.formula and two.record.formula)
                )
    # a document that shares nothing with the others changes nothing for them
    stranger = Mention("z", "完全无关的假想物", cas={"7440-18-8"}, names={"nothing in common"})
    more = resolve([*mentions, stranger], with_crawled(small, [*mentions, stranger]))
    assert {ref: key for ref, key in more.keys.items() if ref != stranger.ref} == result.keys
    assert components(more) == components(result) | {frozenset({stranger.ref})}
    assert more.decisions.keys() == result.decisions.keys()


def test_keys_do_not_hang_on_spelling_or_company() -> None:
    one = resolve([Mention("a", "Madeupium (III)  Oxide")], AliasTable()).keys[
        "a", "Madeupium (III)  Oxide", False
    ]
    both = [Mention("a", "Madeupium (III)  Oxide"), Mention("0", "madeupium(III) oxide")]
    assert set(resolve(both, AliasTable()).keys.values()) == {one}


def test_case_that_carries_meaning_makes_two_keys() -> None:
    assert minted("CoCl2") != minted("COCl2")
    assert minted("D-madeupic acid") != minted("d-madeupic acid")
    assert minted("Madeup Oil") == minted("madeup  oil")


def test_an_ambiguous_name_is_one_thing_per_document(table: AliasTable) -> None:
    """Two pages that write 二氯乙烷 may mean two isomers; their values must not meet in one entity."""
    mentions = [Mention(f"d{i}", "二氯乙烷") for i in range(4)]
    result = resolve(mentions, with_crawled(table, mentions))
    assert len(set(result.keys.values())) == 4
    assert len(result.local) == 4
    (case,) = [d for d in result.decisions.values() if d.kind == "review"]  # one entry, not one per pair
    assert [m.document for m in result.open[case.id]] == ["d0", "d1"]
    rows = [
        _Row(f"a{i}", f"d{i}", "二氯乙烷", False, "HAS_ALIAS", "x", "Alias", "", {"kind": "name"}, {}, "positive", "offline")
        for i in range(4)
    ]  # fmt: skip
    entities, aliases = _entities(rows, result, {}, table)
    assert all(e.names == {} and e.properties["written"] == "二氯乙烷" for e in entities)
    assert all(alias.ambiguous for alias in aliases if alias.text == "二氯乙烷")


def test_two_documents_of_one_un_number_stay_two(table: AliasTable) -> None:
    """UN 1987 is "alcohols, n.o.s.": a transport entry is no identifier."""
    rows = [
        _Row(f"a{i}", f"d{i}", name, False, "SHIPPED_AS", "UN 1987", "TransportEntry", "UN1987/3/II", {"un": "1987"}, {},
             "positive", "offline")
        for i, name in enumerate(("假想醇甲", "假想醇乙"))
    ]  # fmt: skip
    assert len(set(resolve(mentions_of(rows), table).keys.values())) == 2


def test_a_chain_of_names_does_not_join_isomers(table: AliasTable) -> None:
    """Only neighbours are compared; the entity is looked at as a whole afterwards."""
    mentions = [
        Mention("a", "邻假想苯", cas={"75-09-2"}),
        Mention("b", "假想溶剂", cas={"75-09-2"}),
        Mention("c", "间假想苯", cas={"75-09-2"}),
        Mention("d", "间假想苯"),
    ]
    result = resolve(mentions, with_crawled(table, mentions))
    keys = {ref[0]: key for ref, key in result.keys.items()}
    assert keys["b"] == "75-09-2"
    assert len({keys["a"], keys["b"], keys["c"]}) == 3
    assert keys["d"] != "75-09-2"
    assert any(d.rule.endswith("other_position") for d in result.decisions.values())


def test_what_the_repository_knows_stays_and_the_other_leaves() -> None:
    table = AliasTable(
        keys={"二氯甲烷": frozenset({"75-09-2"})},
        ecs={"200-838-9": "75-09-2"},
        formulae={"75-09-2": "CH2Cl2"},
    )
    mentions = [
        Mention("a", "二氯甲烷", cas={"75-09-2"}, ecs={"200-838-9"}, formulae={"CH2Cl2"}),
        Mention("b", "二氯甲烷", cas={"75-09-2"}, ecs={"200-663-8"}),
        Mention("c", "二氯甲烷", cas={"75-09-2"}, formulae={"CHCl3"}),
        Mention("d", "二氯甲烷", formulae={"Cl2CH2"}),
    ]
    keys = {ref[0]: key for ref, key in resolve(mentions, table).keys.items()}
    assert keys["a"] == keys["d"] == "75-09-2"
    assert len({keys["a"], keys["b"], keys["c"]}) == 3


def test_a_disputed_page_spreads_no_names(table: AliasTable) -> None:
    """A page on ethanol with the number of methanol: neither its number nor its other names are believed."""
    mentions = [
        Mention("a", "乙醇", cas={"67-56-1"}, names={"某牌擦拭液"}),
        Mention("b", "某牌擦拭液"),
        Mention("c", "甲醇", cas={"67-56-1"}),
        Mention("d", "乙醇"),
    ]
    result = resolve(mentions, with_crawled(table, mentions))
    keys = {ref[0]: key for ref, key in result.keys.items()}
    assert keys["c"] == "67-56-1"
    assert keys["d"] == "64-17-5"
    assert len(set(keys.values())) == 4
    assert {"id_against_name"} == {d.rule for d in result.decisions.values() if d.kind == "review"}


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ("2-丁醇", "丁醇", ""),
        ("2-丙醇", "异丙醇", ""),
        ("1,2-二甲苯", "邻二甲苯", ""),
        ("sodium bicarbonate", "sodium hydrogen carbonate", ""),
        ("硫酸二甲酯", "dimethyl sulfate", ""),
        ("氯化铁", "三氯化铁", ""),
        ("邻二甲苯", "间二甲苯", "position"),
        ("硫酸钠", "亚硫酸钠", "degree"),
        ("sodium bicarbonate", "sodium carbonate", "degree"),
        ("重铬酸钾", "铬酸钾", "degree"),
        ("三氯化磷", "五氯化磷", "count"),
        ("氯化铁(II)", "氯化铁(III)", "oxidation"),
        ("二价铁离子", "三价铁离子", "oxidation"),
        ("柠檬酸", "柠檬酸钠", "salt"),
        ("环氧溴丙烷", "环氧氯丙烷", "halogen"),
        ("epibromohydrin", "epichlorohydrin", "halogen"),
        ("溴甲烷", "甲基氯", "halogen"),
        ("methyl bromide", "chloromethane", "halogen"),
        ("溴氯甲烷", "溴甲烷", "halogen"),
        ("fluoroacetic acid", "iodoacetic acid", "halogen"),
        ("氯化钠", "氟化钠", "halogen"),
        ("氯化钠", "sodium bromide", "halogen"),
        ("三氯甲烷", "三碘甲烷", "halogen"),
        ("氯仿", "三氯甲烷", ""),
        ("溴甲烷", "甲基溴", ""),
        ("氯化钠", "sodium chloride", ""),
        ("盐酸", "氯化氢溶液", ""),
        ("hydrochloric acid", "hydrogen chloride solution", ""),
        ("氟烷", "2-溴-2-氯-1,1,1-三氟乙烷", ""),
        ("氟利昂20", "氯仿", ""),
        ("freon 20", "chloroform", ""),
        ("溴虫腈", "chlorfenapyr", ""),
        ("chlorophyll", "bromochlorophyll", ""),
        ("thiodiglycol", "chlorodiglycol", ""),
        ("芴", "fluorene", ""),
        ("苯", "氯苯", ""),
    ],
)
def test_contradictions_hold_even_under_one_number(one: str, two: str, kind: str) -> None:
    assert contradiction(one, two) == contradiction(two, one) == kind


def test_skeletons_leave_out_what_tells_neighbours_apart() -> None:
    assert skeleton("1,1-二氯乙烷") == skeleton("1,2-二氯乙烷")
    assert skeleton("o-xylene") == skeleton("p-xylene") == "xylene"
    assert skeleton("cis-2-butene") == skeleton("trans-2-butene")
    assert skeleton("甲醇") != skeleton("乙醇")


def test_homographs_lead_to_several_substances() -> None:
    assert all(len(meanings) > 1 for meanings in homographs().values())


# --- people's decisions ----------------------------------------------------------------


def choice(kind: Any, left: Side, right: Side, made_id: str = "c" * 16) -> Choice:
    return Choice(made_id, kind, left, right)


def test_a_persons_merge_joins_and_a_separation_parts() -> None:
    mentions = [
        Mention("a", "Dimethyl ketone X", ecs={"200-662-2"}),
        Mention("b", "Acetone X", ecs={"200-662-2"}),
        Mention("c", "Propanone X", ecs={"200-662-2"}),
        Mention("d", "甲号油"),
    ]
    first = resolve(mentions, AliasTable())
    assert len(set(first.keys.values())) == 2
    apart = choice("keep-apart", Side("EC:200-662-2", "Acetone X"), Side("", "Dimethyl ketone X"))
    joined = choice("merge", Side("EC:200-662-2", "Acetone X"), Side(minted("甲号油"), "甲号油"), "d" * 16)
    second = resolve(mentions, AliasTable(), [apart, joined])
    keys = {ref[0]: key for ref, key in second.keys.items()}
    assert keys["b"] == keys["c"] == keys["d"] == "EC:200-662-2"
    assert keys["a"].startswith("name:")
    assert not any(
        {d.left, d.right} == {"Acetone X", "Dimethyl ketone X"}
        for d in second.decisions.values()
        if d.kind == "merge"
    )
    assert not second.refused


def test_a_decision_finds_its_sides_again_when_their_keys_change() -> None:
    made = choice("merge", Side("67-64-1", "丙酮"), Side(minted("甲号油"), "甲号油"))
    later = [Mention("a", "丙酮", cas={"67-64-1"}), Mention("b", "甲号油", ecs={"200-662-2"})]
    assert set(resolve(later, AliasTable(), [made]).keys.values()) == {"67-64-1"}


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        (Mention("a", "甲醇", cas={"67-56-1"}), Mention("b", "乙醇", cas={"64-17-5"}), "CAS numbers differ"),
        (Mention("a", "1,1-假想烷"), Mention("b", "1,2-假想烷"), "locants"),
        (
            Mention("a", "甲号油", formulae={"CH4O"}),
            Mention("b", "乙号油", formulae={"C2H6O"}),
            "formulae differ",
        ),
        (Mention("a", "甲号油"), Mention("b", "甲号油", mixture=True), "mixture"),
    ],
)
def test_a_persons_merge_against_a_block_is_refused_and_listed(one: Mention, two: Mention, said: str) -> None:
    keys = resolve([one, two], AliasTable()).keys
    made = choice("merge", Side(keys[one.ref], one.name), Side(keys[two.ref], two.name))
    for order in ([one, two], [two, one]):
        result = resolve(order, AliasTable(), [made])
        assert len(set(result.keys.values())) == 2
        assert said in result.refused[made.id]
        (entry,) = [d for d in result.decisions.values() if d.rule == "decision_not_applied"]
        assert (entry.kind, entry.of) == ("review", made.id)


def test_contradicting_and_vanished_decisions_are_listed() -> None:
    mentions = [Mention("a", "甲号油"), Mention("b", "乙号油"), Mention("c", "丙号油")]
    sides = {name: Side(minted(name), name) for name in ("甲号油", "乙号油", "丙号油", "丁号油")}
    choices = [
        choice("merge", sides["甲号油"], sides["乙号油"], "1" * 16),
        choice("merge", sides["乙号油"], sides["丙号油"], "2" * 16),
        choice("keep-apart", sides["甲号油"], sides["丙号油"], "3" * 16),
        choice("merge", sides["甲号油"], sides["丁号油"], "4" * 16),
    ]
    result = resolve(mentions, AliasTable(), choices)
    keys = {ref[0]: key for ref, key in result.keys.items()}
    assert keys["a"] == keys["b"] != keys["c"]
    assert result.refused.keys() == {"2" * 16, "4" * 16}
    assert "333333333333 keeps" in result.refused["2" * 16]
    assert "丁号油" in result.refused["4" * 16]


def test_a_settled_pair_leaves_the_list_and_the_next_one_comes(table: AliasTable) -> None:
    mentions = [Mention(f"d{i}", "二氯乙烷") for i in range(3)]
    first = resolve(mentions, table)
    sides = [Side(first.keys[m.ref], m.name, m.document) for m in mentions]
    for made in (choice("keep-apart", sides[0], sides[1]), choice("merge", sides[0], sides[1])):
        result = resolve(mentions, table, [made])
        (pair,) = result.open.values()
        assert [m.document for m in pair] == ["d1", "d2"]
        assert len(set(result.keys.values())) == (2 if made.kind == "merge" else 3)


def test_ambiguous_crawled_name_leads_nowhere() -> None:
    mentions = [
        Mention("a", "甲", cas={"67-56-1"}, names={"王水"}),
        Mention("b", "乙", cas={"64-17-5"}, names={"王水"}),
        Mention("c", "王水"),
    ]
    table = with_crawled(AliasTable(), mentions)
    assert table.ambiguous("王水")
    assert resolve(mentions, table).keys["c", "王水", False].startswith("name:")


def test_crawled_name_does_not_override_the_table(table: AliasTable) -> None:
    mentions = [Mention("a", "某物", cas={"67-56-1"}, names={"乙醇"}), Mention("b", "乙醇")]
    assert resolve(mentions, with_crawled(table, mentions)).keys["b", "乙醇", False] == "64-17-5"


def test_wrong_check_digit_is_no_id() -> None:
    verdict = decide(Record("a", cas="67-56-2"), Record("b", cas="67-56-2"), AliasTable())
    assert verdict.kind != "merge"


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ("1,1-二氯乙烷", "1,2-二氯乙烷", "locants"),
        ("亚硫酸", "硫酸", "degree"),
        ("o-xylene", "p-xylene", "position"),
        ("五水硫酸铜", "硫酸铜", "hydrate"),
        ("copper(I) chloride", "copper(II) chloride", "oxidation"),
        ("n-butanol", "tert-butanol", "branch"),
        ("cis-2-butene", "trans-2-butene", "stereo"),
        ("甲醛溶液", "甲醛", "form"),
        ("无水氯化铝", "氯化铝", "anhydrous"),
        ("硫酸", "硫酸钠", "salt"),
    ],
)
def test_hard_blocks(one: str, two: str, kind: str) -> None:
    assert blocked(one, two) == kind
    assert blocked(two, one) == kind


def test_a_mixture_and_its_component_of_the_same_name_stay_two() -> None:
    mentions = [Mention("d", "硫酸", mixture=True), Mention("d", "硫酸", cas={"7664-93-9"})]
    keys = resolve(mentions, AliasTable()).keys
    assert keys["d", "硫酸", True].startswith("mixture:")
    assert keys["d", "硫酸", False] == "7664-93-9"


def test_a_mixture_called_like_its_component_gets_a_name_of_its_own(table: AliasTable) -> None:
    """98 % sulfuric acid that its page calls "硫酸" stays a mixture, and nobody takes it for the substance."""

    def row(
        at: int, subject: str, mixture: bool, obj: str, label: str, relation: str, **properties: str
    ) -> _Row:
        share = (
            {"operator": "=", "min": 98.0, "max": 98.0, "unit": "%"} if relation == "HAS_COMPONENT" else {}
        )
        return _Row(f"a{at}", "d1" if mixture else "d2", subject, mixture, relation, obj, label, "", properties, share,
                    "positive", "offline")  # fmt: skip

    rows = [
        row(1, "硫酸", True, "硫酸", "Substance", "HAS_COMPONENT", cas="7664-93-9"),
        row(2, "硫酸", True, "Sulfuric acid", "Alias", "HAS_ALIAS", kind="name"),
        row(3, "硫酸", False, "7664-93-9", "Alias", "HAS_ALIAS", kind="cas"),
    ]
    resolution = resolve(mentions_of(rows), table)
    entities, aliases = _entities(rows, resolution, {}, table)
    names = {entity.label: entity.names for entity in entities}
    assert names["Mixture"] == {"zh": "硫酸（98%）", "en": "Sulfuric acid (98%)"}
    assert names["Substance"]["zh"] == "硫酸"
    assert len({entity.key for entity in entities}) == 2
    assert {(alias.key.partition(":")[0], alias.ambiguous) for alias in aliases} == {
        ("mixture", True),
        ("7664-93-9", False),
    }

"""Identity: no wrong merge on the fixture of pairs, components checked again, decisions undone and kept."""

from __future__ import annotations

import random

import pytest

from kg.identity import AliasTable, Record, blocked, decide
from kg.resolution import Mention, mentions_of, resolve, with_crawled
from tests.kg.pairs import PAIRS


def test_fixture_is_large_and_half_traps() -> None:
    assert len(PAIRS) >= 60
    assert sum(pair["want"] != "merge" for pair in PAIRS) >= len(PAIRS) / 2


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['a']['name']}|{pair['b']['name']}")
def test_pair(pair: dict[str, object], table: AliasTable) -> None:
    one, two = Record(**pair["a"]), Record(**pair["b"])  # type: ignore[arg-type]
    verdicts = decide(one, two, table), decide(two, one, table)
    assert {v.kind for v in verdicts} == {verdicts[0].kind}
    if pair["want"] == "apart":
        assert verdicts[0].kind != "merge", verdicts[0]
    else:
        assert verdicts[0].kind == pair["want"], verdicts[0]


def test_pairs_as_mentions_never_share_a_key(table: AliasTable) -> None:
    for pair in PAIRS:
        mentions = [_mention(f"d{i}", pair[side]) for i, side in enumerate("ab")]
        keys = resolve(mentions, with_crawled(table, mentions)).keys
        same = keys[mentions[0].ref] == keys[mentions[1].ref]
        assert same == (pair["want"] == "merge"), (pair, keys)


def _mention(document: str, given: dict[str, str]) -> Mention:
    made = Mention(document, given["name"], bool(given.get("mixture", False)))
    for name, target in (("cas", made.cas), ("inchikey", made.inchikeys), ("ec", made.ecs)):
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


def test_order_of_mentions_does_not_matter(table: AliasTable) -> None:
    mentions = [_mention(f"d{i}{side}", pair[side]) for i, pair in enumerate(PAIRS) for side in "ab"]
    wanted = resolve(mentions, table)
    random.Random(3).shuffle(mentions)
    found = resolve(mentions, table)
    assert found.keys == wanted.keys
    assert found.decisions.keys() == wanted.decisions.keys()


def test_undone_merge_is_not_made_again() -> None:
    mentions = [
        Mention("a", "Dimethyl ketone X", ecs={"200-662-2"}),
        Mention("b", "Acetone X", ecs={"200-662-2"}),
        Mention("c", "Propanone X", ecs={"200-662-2"}),
    ]
    first = resolve(mentions, AliasTable())
    assert len(set(first.keys.values())) == 1
    undone = frozenset({("Acetone X", "Dimethyl ketone X")})
    second = resolve(mentions, AliasTable(), undone)
    assert second.keys["a", "Dimethyl ketone X", False] != second.keys["b", "Acetone X", False]
    assert second.keys["b", "Acetone X", False] == second.keys["c", "Propanone X", False]
    assert not {(d.left, d.right) for d in second.decisions.values() if d.kind == "merge"} & undone


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
    from kg.resolution import _entities, _Row

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

"""Statements that another source contradicts, and lists that go on elsewhere; everything here is made up."""

from __future__ import annotations

import pytest

from kg.qa.disagreement import contradicted
from kg.qa.facts import Fact, Facts, Source
from kg.qa.lists import list_is_whole
from kg.schema import NodeLabel, Relation

L, R = NodeLabel, Relation
_LABELS = {
    R.HAS_H: L.HAZARD_STATEMENT, R.CLASSIFIED_AS: L.HAZARD_CLASS, R.SHIPPED_AS: L.TRANSPORT_ENTRY,
    R.EXTINGUISHED_BY: L.MEASURE, R.NOT_EXTINGUISHED_BY: L.MEASURE, R.INCOMPATIBLE_WITH: L.REACTIVE_GROUP,
}  # fmt: skip


def said(document: str, relation: Relation, item: str, polarity: str = "positive", **properties: str) -> Fact:
    """What a document says of one substance."""
    source = Source(document, "v", document, "u", "zh", "s", "page", "")
    if relation == R.CLASSIFIED_AS:
        properties = {"hazard": item.partition("/")[0], "scheme": "ghs", **properties}
    return Fact(f"{document}{relation}{item}{polarity}", source, "x", L.SUBSTANCE, relation, item, _LABELS[relation], item,
                properties, {}, polarity, "is", {}, 0, 0, "", 2, "zh")  # fmt: skip


@pytest.mark.parametrize(
    ("fact", "other", "expected"),
    [
        (said("a", R.HAS_H, "H225"), said("b", R.HAS_H, "H224", listing="l"), True),
        (said("a", R.HAS_H, "H225"), said("b", R.HAS_H, "H225", listing="l"), False),
        (said("a", R.HAS_H, "H225"), said("b", R.HAS_H, "H224"), False),  # says not that these are all
        (said("a", R.HAS_H, "H225"), said("a", R.HAS_H, "H224", listing="l"), False),  # one source
        (said("a", R.CLASSIFIED_AS, "flammable_liquids/2"), said("b", R.CLASSIFIED_AS, "flammable_liquids/3"), True),
        (said("a", R.CLASSIFIED_AS, "flammable_liquids/2"), said("b", R.CLASSIFIED_AS, "eye_damage/1"), False),
        (
            said("a", R.CLASSIFIED_AS, "acute_toxicity/2/oral", route="oral"),
            said("b", R.CLASSIFIED_AS, "acute_toxicity/1/dermal", route="dermal"),
            False,
        ),
        (said("a", R.NOT_EXTINGUISHED_BY, "agent:foam"), said("b", R.EXTINGUISHED_BY, "agent:foam"), True),
        (said("a", R.NOT_EXTINGUISHED_BY, "agent:water_jet"), said("b", R.EXTINGUISHED_BY, "agent:water"), True),
        (said("a", R.NOT_EXTINGUISHED_BY, "agent:water_jet"), said("a", R.EXTINGUISHED_BY, "agent:water_spray"), False),
        (said("a", R.NOT_EXTINGUISHED_BY, "agent:foam"), said("b", R.EXTINGUISHED_BY, "agent:co2"), False),
        (said("a", R.SHIPPED_AS, "UN1/3/II", un="1", packing_group="II"), said("b", R.SHIPPED_AS, "UN2/3/II", un="2"), True),
        (said("a", R.SHIPPED_AS, "UN1/3/II", un="1", packing_group="II"), said("b", R.SHIPPED_AS, "UN1/-/-", un="1"), False),
        (said("a", R.INCOMPATIBLE_WITH, "group:x"), said("b", R.INCOMPATIBLE_WITH, "group:x", "negative"), True),
        (said("a", R.INCOMPATIBLE_WITH, "group:x"), said("b", R.INCOMPATIBLE_WITH, "group:y"), False),
    ],
)  # fmt: skip
def test_what_speaks_against_a_statement(fact: Fact, other: Fact, expected: bool) -> None:
    assert contradicted(Facts([fact, other], {}), fact) is expected


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("## 10\n\n禁配物：强酸、卤素。\n避免接触的条件：明火、高热。\n\n## 11\n\n与强碱反应。", True),
        ("## 10\n\n与强碱接触发生剧烈反应。\n禁配物：强酸、卤素。\n", False),
        ("## 10\n\n禁配物：强酸、卤素。\n遇明火、高热或与氧化剂接触，有引起燃烧爆炸的危险。\n", False),
        ("## 10\n\n禁配物：强酸、卤素。\n其蒸气与空气可形成爆炸性混合物，遇明火、高热燃烧。\n", True),
        ("## 10\n\n### 10.1\n\n此外，应避免强碱。\n\n### 10.2\n\n禁配物：强酸、卤素。\n", False),
        ("## 10\n\n禁配物：强酸、卤素。\n\n### 10.3\n\n不得与强碱共存。\n\n## 11\n", False),
        (
            "| 10 | 10.2 禁配物 | 强酸、卤素 |\n| 10 | 10.4 与水的反应 | 与水不发生反应 |\n| 11 | 与强碱反应 | 剧烈 |\n",
            True,
        ),
        (
            "| 10 | 10.2 禁配物 | 强酸、卤素 |\n| 10 | 10.3 其他 | 忌与强碱接触 |\n| 11 | 毒性 | 无资料 |\n",
            False,
        ),
        ("## 10\n\n禁配物：强酸、卤素。与水不发生反应。\n", True),
        ("## 10\n\n禁配物：强酸、卤素。Reacts violently with alkalis.\n", False),
        ("## 10\n\n禁配物：强酸、卤素。Conditions to avoid: contact with heat.\n", True),
    ],
)
def test_a_list_may_go_on_in_its_section(text: str, whole: bool) -> None:
    source = Source("d", "v", "t", "u", "zh", "s", "page", text)
    facts = [
        Fact(word, source, "x", L.SUBSTANCE, R.INCOMPATIBLE_WITH, word, L.REACTIVE_GROUP, word, {}, {}, "positive", "is", {},
             text.index("强酸"), text.index("卤素") + 2, "强酸、卤素", 10, "zh")
        for word in ("强酸", "卤素")
    ]  # fmt: skip
    assert list_is_whole(facts) is whole

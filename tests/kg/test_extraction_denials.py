"""What a page denies, prohibits, excepts or withdraws, and what it says of something else, is no fact about its subject.

All pages are made up. Each case has neighbours that must still be read, so that
leaving everything out is no way to pass.
"""

from __future__ import annotations

from typing import Any

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Polarity, Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n"


def kept(text: str, title: str = "丙酮", language: str = "zh") -> list[Draft]:
    made = document(text, title=title, language=language)
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def rows(row: str) -> list[Draft]:
    """Facts of a page of one further row ("闪点 | -18℃") or, where there is no bar, of one sentence."""
    chinese = any("一" <= char <= "鿿" for char in row)
    head = ZH if chinese else EN
    body = f"| {row} |\n" if "|" in row else f"\n{row}\n"
    return kept(head + body, *(("丙酮", "zh") if chinese else ("Acetone", "en")))


def objects(drafts: list[Draft], relation: Relation, polarity: Polarity = Polarity.POSITIVE) -> list[str]:
    return [d.object for d in drafts if d.relation is relation and d.polarity is polarity]


def values(drafts: list[Draft], prop: str) -> list[tuple[Any, Any, Any, dict[str, str]]]:
    return [
        (d.value["operator"], d.value["min"], d.value["max"], dict(d.value.get("conditions", {})))
        for d in drafts
        if d.relation is Relation.HAS_MEASUREMENT
        and d.properties["property"] == prop
        and "operator" in d.value
    ]


@pytest.mark.parametrize(
    ("sentence", "uses"),
    [
        ("丙酮禁止用于儿童玩具清洗。", []),
        ("丙酮严禁用作燃料添加剂。", []),
        ("丙酮已不再用作麻醉剂。", []),
        ("丙酮很少用于纺织。", []),
        ("丙酮曾用作麻醉剂。", []),
        ("丙酮不得用于食品。", []),
        ("丙酮避免用于密闭空间。", []),
        ("丙酮可用于溶剂，但不可用于食品。", ["溶剂"]),
        ("丙酮用作溶剂，不得用于食品。", ["溶剂"]),
        (
            "丙酮广泛用于实验室与工业生产，本页介绍其安全资料与理化性质，供操作人员参考。",
            ["实验室与工业生产"],
        ),
        ("丙酮主要用于制造树脂、医药和农药。", ["制造树脂、医药和农药"]),
        ("丙酮用于不锈钢的清洗。", ["不锈钢的清洗"]),
        ("丙酮不仅用于清洗。", ["清洗"]),
        ("Acetone is never used as a fuel.", []),
        ("Acetone is no longer used as an anaesthetic.", []),
        ("Acetone is rarely used in textiles.", []),
        ("Acetone is used as a solvent, but not in food.", ["as a solvent"]),
        ("Acetone is used as a solvent, it is kept in steel drums.", ["as a solvent"]),
        ("Acetone is used for everything except food.", ["for everything"]),
    ],
)
def test_uses_that_are_denied_or_swallow_the_next_clause(sentence: str, uses: list[str]) -> None:
    found = rows(("## 用途\n\n" if "丙" in sentence else "## Uses\n\n") + sentence)
    assert objects(found, Relation.USED_FOR) == uses


@pytest.mark.parametrize(
    ("row", "prop", "expected"),
    [
        ("丙酮在空气中含量为2.5%~12.8%时不会爆炸。", "lower_explosive_limit", []),
        ("丙酮在空气中含量为2.5%~12.8%时，混合物不爆炸。", "upper_explosive_limit", []),
        ("丙酮在空气中含量为2.5%~12.8%时会爆炸。", "lower_explosive_limit", [("=", 2.5, 2.5, {})]),
        ("闪点 | 100℃以下不闪燃", "flash_point", []),
        ("闪点 | ＞100℃不闪燃；无闪点", "flash_point", []),
        ("闪点 | 不低于100℃", "flash_point", [(">=", 100, None, {})]),
        ("自燃温度 | 不自燃（540℃以下）", "autoignition_temperature", []),
        ("闪点 | 并非-18℃", "flash_point", []),
        ("闪点 | 12℃（有误）", "flash_point", []),
        ("Flash point | does not flash below 100 °C", "flash_point", []),
        ("Flash point | no flash up to 100 °C", "flash_point", []),
        ("Flash point | not below 23 °C", "flash_point", [(">=", 23, None, {})]),
        ("Flash point | 23 °C (incorrect)", "flash_point", []),
        ("Flash point | 23 °C (closed cup)", "flash_point", [("=", 23, 23, {"method": "closed cup"})]),
        ("Autoignition temperature | 540 °C: does not ignite", "autoignition_temperature", []),
        # of another substance, of another form, in another solvent
        ("闪点 | -18℃（闭杯），丁酮为-9℃", "flash_point", [("=", -18, -18, {"method": "closed cup"})]),
        ("闪点：丙酮 -18℃，乙醇 13℃，苯 -11℃。", "flash_point", [("=", -18, -18, {})]),
        ("闪点 | 乙醇 13℃，丙酮 -18℃", "flash_point", [("=", -18, -18, {})]),
        ("闪点 | -9℃（丁酮）", "flash_point", []),
        ("闪点 | 约-18℃（闭口）", "flash_point", [("~", -18, -18, {"method": "closed cup"})]),
        ("熔点 | -94.7℃；水合物：-10℃", "melting_point", [("=", -94.7, -94.7, {})]),
        ("溶解性 | 不溶于水，溶于乙醇20g/L", "solubility_in_water", []),
        ("溶解度 | 20g/L（乙醇）", "solubility_in_water", []),
        ("水中溶解度 | 20g/L", "solubility_in_water", [("=", 20, 20, {})]),
        ("Flash point | -18 °C (closed cup); butanone -9 °C", "flash_point", [("=", -18, -18, {"method": "closed cup"})]),
        ("Flash point | butanone -9 °C, acetone -18 °C", "flash_point", [("=", -18, -18, {})]),
        ("Melting point | see Section 9 of ethanol (-114 °C)", "melting_point", []),
        ("Melting point | -95 °C; hydrate: -10 °C", "melting_point", [("=", -95, -95, {})]),
        ("Vapor density | 2.0 (air = 1), 1.9 for 2-propanol", "vapour_density", [("=", 2, 2, {})]),
        ("Solubility in water | insoluble in water; soluble in ethanol 20 g/L", "solubility_in_water", []),
        ("Solubility in water | 20 g/L in ethanol", "solubility_in_water", []),
        ("Solubility in water | 20 g/L in water", "solubility_in_water", [("=", 20, 20, {})]),
        # each value under its own circumstance
        (
            "蒸气压 | 24 kPa(20℃)，30.6kPa(25℃)",
            "vapour_pressure",
            [("=", 24, 24, {"temperature": "20 °C"}), ("=", 30.6, 30.6, {"temperature": "25 °C"})],
        ),
        (
            "Vapour pressure | 24 kPa (20 °C), 30.6 kPa (25 °C)",
            "vapour_pressure",
            [("=", 24, 24, {"temperature": "20 °C"}), ("=", 30.6, 30.6, {"temperature": "25 °C"})],
        ),
        ("密度 | 0.79（水=1，20℃），0.788 g/cm³（25℃）", "relative_density", [("=", 0.79, 0.79, {"temperature": "20 °C"})]),
        ("Density | 0.79 g/cm3, 0.785 at 25 °C", "density", [("=", 0.79, 0.79, {})]),
        ("Boiling point | 78 °C, 2 bar", "boiling_point", [("=", 78, 78, {"pressure": "2 bar"})]),
        ("蒸气压 | 0.13 10-3 kPa/20℃", "vapour_pressure", []),
    ],
)  # fmt: skip
def test_values_that_are_denied_or_of_something_else(row: str, prop: str, expected: list[Any]) -> None:
    assert values(rows(row), prop) == expected


def test_a_share_of_another_limit_is_no_condition() -> None:
    (upper,) = values(rows("爆炸上限 | 12.8%（下限2.5%）"), "upper_explosive_limit")
    assert upper[:3] == ("=", 12.8, 12.8)
    assert "concentration" not in upper[3]
    (idlh,) = (
        d for d in rows("Exposure limits | IDLH 2,500 ppm [10% LEL]") if d.relation is Relation.HAS_LIMIT
    )
    assert idlh.value["min"] == 2500
    assert "concentration" not in idlh.value.get("conditions", {})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("OSHA PEL | 1000 ppm (withdrawn)", []),
        ("OSHA PEL | 1000 ppm", [1000]),
        ("Exposure limits | vacated PEL 750 ppm; TLV-TWA 250 ppm", [250]),
        ("职业接触限值 | PC-TWA 300 mg/m³（已废止）；PC-STEL 450 mg/m³", [450]),
    ],
)
def test_withdrawn_limits(row: str, expected: list[float]) -> None:
    assert [d.value["min"] for d in rows(row) if d.relation is Relation.HAS_LIMIT] == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("急性毒性 | 家兔经皮LD50：20000mg/kg（丁酮）", []),
        ("急性毒性 | LD50：5800 mg/kg（大鼠经口）", [5800]),
        ("急性毒性 | LD50：7060 mg/kg（大鼠经口，乙醇）", []),
        ("急性毒性 | 乙醇 LD50：7060 mg/kg（大鼠经口）", []),
        ("LD50 | 乙醇 7060 mg/kg（大鼠经口）", []),
        ("LD50 | 丙酮 5800 mg/kg（大鼠经口）", [5800]),
        ("LD50 | butanone 2737 mg/kg (rat, oral)", []),
        ("LD50 | 5800 mg/kg (rat, oral); 2700 mg/kg (rat, oral, butanone)", [5800]),
        ("LD50 | Rat, oral: 5800 mg/kg; dermal rabbit: no deaths at 20 g/kg", [5800]),
    ],
)
def test_doses_of_something_else(row: str, expected: list[float]) -> None:
    assert [d.value["min"] for d in rows(row) if d.relation is Relation.HAS_TOXICITY] == expected


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        ("Hazard statements | H225, H319, H336; H302 does not apply", ["H225", "H319", "H336"]),
        ("Hazard statements | H225, H302 and H312 do not apply", []),
        ("Hazard statements | H225; H302 and H312 do not apply", ["H225"]),
        ("Hazard statements | H225, not H302", ["H225"]),
        ("Hazard statements | H225; not applicable: H302, H312", ["H225"]),
        ("Hazard statements | H225 Highly flammable liquid and vapour; H319 Causes serious eye irritation", ["H225", "H319"]),
        ("危险性说明 | H225 高度易燃；H319 造成严重眼刺激；不适用：H350", ["H225", "H319"]),
        ("危险性说明 | H225；H302、H312不适用", ["H225"]),
        ("危险性说明 | H225，H350除外", ["H225"]),
        ("Precautionary statements | P210 No smoking; P301+P310 not required.", ["P210"]),
        ("Precautionary statements | P251 Do not pierce or burn, even after use; P280", ["P251", "P280"]),
        ("Precautionary statements | P211 Do not spray on an open flame. P251 Do not pierce", ["P211", "P251"]),
    ],
)  # fmt: skip
def test_codes_that_do_not_apply(row: str, codes: list[str]) -> None:
    found = rows(row)
    assert sorted(objects(found, Relation.HAS_H) + objects(found, Relation.HAS_P)) == codes


@pytest.mark.parametrize(
    ("row", "slugs"),
    [
        ("GHS classification | Flam. Liq. 2; Not classified: Acute Tox. 4", ["flammable_liquids"]),
        (
            "GHS classification | Flam. Liq. 2; Not classified: Acute Tox. 4; Skin Corr. 1B",
            ["flammable_liquids"],
        ),
        ("GHS classification | Flam. Liq. 2; Acute Tox. 4 (not applicable)", ["flammable_liquids"]),
        ("GHS classification | Flam. Liq. 2; Eye Irrit. 2", ["eye_damage", "flammable_liquids"]),
        ("GHS危险性类别 | 易燃液体 类别2；致癌性 类别2（不适用）", ["flammable_liquids"]),
        ("GHS危险性类别 | 易燃液体 类别2；未被归类为：急性毒性-经口 类别4", ["flammable_liquids"]),
        ("GHS危险性类别 | 易燃液体，类别2；急性毒性-经口，类别4除外", ["flammable_liquids"]),
    ],
)
def test_classes_that_do_not_apply(row: str, slugs: list[str]) -> None:
    found = [d for d in rows(row) if d.relation is Relation.CLASSIFIED_AS and d.polarity is Polarity.POSITIVE]
    assert sorted(d.properties["hazard"] for d in found) == slugs


@pytest.mark.parametrize(
    ("section", "line", "relation", "expected"),
    [
        ("第8部分 接触控制/个体防护", "手防护：不需戴橡胶手套。", Relation.REQUIRES_PPE, []),
        ("第7部分 操作处置与储存", "不必与氧化剂分开存放。", Relation.STORE_APART_FROM, []),
        ("第7部分 操作处置与储存", "应与氧化剂分开存放。", Relation.STORE_APART_FROM, ["氧化剂"]),
        ("第5部分 消防措施", "并非不能用水灭火。", Relation.NOT_EXTINGUISHED_BY, []),
        ("第5部分 消防措施", "不得使用二氧化碳以外的灭火剂。", Relation.NOT_EXTINGUISHED_BY, []),
        ("第5部分 消防措施", "不得使用直流水。", Relation.NOT_EXTINGUISHED_BY, ["直流水"]),
        ("第2部分 危险性概述", "H225；H340除外", Relation.HAS_H, ["H225"]),
        ("第2部分 危险性概述", "H225；不含H340", Relation.HAS_H, ["H225"]),
        ("第2部分 危险性概述", "H225；非H350", Relation.HAS_H, ["H225"]),
    ],
)
def test_measures_and_codes_that_a_sheet_denies(
    section: str, line: str, relation: Relation, expected: list[str]
) -> None:
    assert objects(kept(f"{ZH}\n## {section}\n\n{line}\n"), relation) == expected


def test_criteria_that_are_not_met_on_a_sheet() -> None:
    zh = "\n## 第2部分 危险性概述\n\n未被归类为：易燃液体 类别2\n\n皮肤腐蚀 类别1A\n"
    assert [d.object for d in kept(ZH + zh) if d.relation is Relation.CLASSIFIED_AS] == ["皮肤腐蚀 类别1A"]
    en = "\n## SECTION 2: Hazards identification\n\nThis product does not meet the criteria for: Skin Corr. 1B (H314).\n\nFlammable liquids, Category 2 (H225).\n"
    found = kept(EN + en, "Acetone", "en")
    assert objects(found, Relation.CLASSIFIED_AS) == ["Flammable liquids, Category 2"]
    assert objects(found, Relation.HAS_H) == ["H225"]


@pytest.mark.parametrize(
    ("row", "positive", "negative"),
    [
        ("丙酮不与水剧烈反应。", [], ["水"]),
        ("丙酮不会与强酸剧烈反应。", [], ["强酸"]),
        ("丙酮并不会与强酸发生剧烈反应。", [], ["强酸"]),
        ("丙酮与三氯甲烷混合时，在碱存在下丙酮会剧烈反应。", [], []),
        ("丙酮与发烟硝酸剧烈反应。", ["发烟硝酸"], []),
        ("禁配物 | 强氧化剂、强碱；不包括：水", ["强氧化剂", "强碱"], []),
        ("禁配物 | 除强氧化剂外无禁忌", [], []),
        ("Incompatible materials | Strong oxidizers, chloroform; not: water, alcohols", ["Strong oxidizers", "chloroform"], []),
        ("Incompatible materials | None known except strong acids", [], []),
        ("Incompatible materials | Compatible with steel; avoid copper", [], []),
        ("Incompatible materials | Strong acids, strong bases", ["Strong acids", "strong bases"], []),
        ("Acetone reacts violently with chloroform, but not with dichloromethane.", ["chloroform"], ["dichloromethane"]),
        ("Acetone reacts violently with neither acids nor bases.", [], ["acids", "bases"]),
    ],
)  # fmt: skip
def test_reactions_that_are_denied_or_cut_in_the_middle(
    row: str, positive: list[str], negative: list[str]
) -> None:
    found = rows(row if "|" in row else f"## {'化学性质' if '丙' in row else 'Chemical behaviour'}\n\n{row}")
    assert sorted(objects(found, Relation.INCOMPATIBLE_WITH)) == sorted(positive)
    assert objects(found, Relation.INCOMPATIBLE_WITH, Polarity.NEGATIVE) == negative


def test_a_denied_violent_reaction_says_what_is_denied() -> None:
    (draft,) = (d for d in rows("丙酮不与水剧烈反应。") if d.relation is Relation.INCOMPATIBLE_WITH)
    assert dict(draft.conditions) == {"note": "剧烈"}


def test_a_list_with_an_exception_is_not_complete() -> None:
    for row in (
        "Incompatible materials | Strong acids, strong bases; not: water",
        "禁配物 | 强氧化剂、强碱（水除外）",
    ):
        found = [d for d in rows(row) if d.relation is Relation.INCOMPATIBLE_WITH]
        assert found
        assert not any("listing" in d.properties for d in found), row
    whole = rows("Incompatible materials | Strong acids, strong bases")
    assert all(d.properties.get("listing") for d in whole if d.relation is Relation.INCOMPATIBLE_WITH)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            "Synonyms | propanone, dimethyl ketone (not to be confused with butanone, MEK)",
            ["dimethyl ketone", "propanone"],
        ),
        ("别名 | 二甲酮（勿与丁酮、甲乙酮混淆）", ["二甲酮"]),
        ("别名 | 二甲酮、木酮", ["二甲酮", "木酮"]),
        ("丙酮别名二甲基酮，不同于丁酮，又称甲乙酮。", ["二甲基酮"]),
        ("丙酮又称二甲基酮。", ["二甲基酮"]),
    ],
)
def test_names_of_what_it_is_not(row: str, expected: list[str]) -> None:
    found = [d for d in rows(row) if d.relation is Relation.HAS_ALIAS and d.properties["kind"] == "name"]
    assert sorted(d.object for d in found) == expected


@pytest.mark.parametrize(
    ("row", "numbers"),
    [
        ("UN号 | 非危险货物（不适用UN1993）", []),
        ("UN号 | 1090", ["UN1090"]),
        ("UN number | UN 1090", ["UN1090"]),
        ("UN number | UN 1090 (not applicable)", []),
    ],
)
def test_numbers_of_transport_that_do_not_apply(row: str, numbers: list[str]) -> None:
    assert objects(rows(row), Relation.SHIPPED_AS) == numbers


@pytest.mark.parametrize(
    ("row", "prop", "expected"),
    [
        ("沸点（2.7 kPa）：30℃", "boiling_point", [("=", 30, 30, {"pressure": "2.7 kPa"})]),
        ("Boiling point (20 mmHg): -20 °C", "boiling_point", [("=", -20, -20, {"pressure": "20 mmHg"})]),
        ("闪点（开杯）：-9℃；闭杯：-18℃", "flash_point", [("=", -9, -9, {"method": "open cup"}), ("=", -18, -18, {"method": "closed cup"})]),
        ("Flash point (open cup) | -9 °C", "flash_point", [("=", -9, -9, {"method": "open cup"})]),
        ("pH（1%溶液）：7", "ph", [("=", 7, 7, {"concentration": "1%"})]),
        ("pH (1% solution): 7", "ph", [("=", 7, 7, {"concentration": "1%"})]),
        ("熔点（℃） | -94.7", "melting_point", [("=", -94.7, -94.7, {})]),
        ("熔点（六水合物） | -10℃", "melting_point", []),
        ("Flash point (hydrate) | -9 °C", "flash_point", []),
        # under a pressure that nobody states
        ("沸点 | 减压沸点50℃", "boiling_point", []),
        ("沸点 | 56℃，减压下20℃", "boiling_point", [("=", 56, 56, {})]),
        ("Boiling point: 50 °C under reduced pressure", "boiling_point", []),
        ("Boiling point | 50 °C under vacuum", "boiling_point", []),
        ("Boiling point (reduced pressure): 50 °C", "boiling_point", []),
        # a bracket with a value of its own
        ("闪点：13℃（开杯：16℃）", "flash_point", [("=", 13, 13, {})]),
        ("Flash point: 13 °C (open cup: 16 °C)", "flash_point", [("=", 13, 13, {})]),
        ("Flash point: 13 °C (open cup)", "flash_point", [("=", 13, 13, {"method": "open cup"})]),
    ],
)  # fmt: skip
def test_circumstances_that_a_label_or_a_bracket_states(
    row: str, prop: str, expected: list[tuple[Any, ...]]
) -> None:
    assert sorted(values(rows(row), prop), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("sentence", "medium", "conditions"),
    [
        ("灭火剂：干粉、二氧化碳；大火时禁止用泡沫。", "泡沫", {"when": "大火时"}),
        ("小火不可用水。", "水", {"when": "小火"}),
        ("不可用水灭火。", "水", {}),
        ("着火时不可用水灭火。", "水", {}),
        ("For large fires do not use water jet.", "water jet", {"when": "For large fires"}),
        ("In case of fire, do not use water jet.", "water jet", {}),
        ("Do not use water jet.", "water jet", {}),
    ],
)
def test_media_forbidden_under_a_circumstance(sentence: str, medium: str, conditions: dict[str, str]) -> None:
    chinese = sentence[0] > "z"
    head = ZH + "\n## 第5部分 消防措施\n\n" if chinese else EN + "\n## Section 5: Fire-fighting measures\n\n"
    found = kept(head + sentence + "\n", *(("丙酮", "zh") if chinese else ("Acetone", "en")))
    made = [d for d in found if d.relation is Relation.NOT_EXTINGUISHED_BY]
    assert [(d.object, dict(d.conditions)) for d in made] == [(medium, conditions)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("禁配物 | 强酸，尤其是强氧化剂", ["强氧化剂", "强酸"]),
        ("禁配物 | 强氧化剂，例如硝酸", ["强氧化剂", "硝酸"]),
        ("禁配物 | 强氧化剂，如硝酸", ["强氧化剂", "硝酸"]),
        ("禁配物 | 强氧化剂、强酸等", ["强氧化剂", "强酸"]),
        ("禁配物 | 强酸；另见第7部分", ["强酸"]),
        ("Incompatible materials | strong acids, especially oxidizers", ["oxidizers", "strong acids"]),
        ("Incompatible materials | oxidizers, such as nitric acid, e.g. chlorates", ["chlorates", "nitric acid", "oxidizers"]),
        ("Incompatible materials | oxidizers such as nitric acid", ["oxidizers"]),
        ("Incompatible materials | none; see also section 7.", []),
        ("Incompatible materials | oxidizers; see section 7", ["oxidizers"]),
    ],
)  # fmt: skip
def test_examples_and_references_in_a_list(row: str, expected: list[str]) -> None:
    made = [d for d in rows(row) if d.relation is Relation.INCOMPATIBLE_WITH]
    assert sorted(d.object for d in made) == expected
    assert not any("listing" in d.properties for d in made)


@pytest.mark.parametrize(
    ("section", "line", "relation", "count"),
    [
        ("第4部分 急救措施", "吸入：见食入。", Relation.FIRST_AID, 0),
        ("第4部分 急救措施", "吸入：移至空气新鲜处。", Relation.FIRST_AID, 1),
        ("Section 4: First aid measures", "Inhalation: see section 2.", Relation.FIRST_AID, 0),
        ("Section 4: First aid measures", "Inhalation: See also ingestion.", Relation.FIRST_AID, 0),
        ("Section 4: First aid measures", "Inhalation: see a doctor, keep warm.", Relation.FIRST_AID, 1),
        ("Section 11: Toxicological information", "LD50 (oral, rat) of the metabolite: 5045 mg/kg", Relation.HAS_TOXICITY, 0),
        ("Section 11: Toxicological information", "LC50 > 50 mg/L, no mortality", Relation.HAS_TOXICITY, 0),
        ("Section 11: Toxicological information", "LD50 oral rat: 5800 mg/kg (read-across)", Relation.HAS_TOXICITY, 0),
        ("Section 11: Toxicological information", "LD50 oral rat: 5800 mg/kg", Relation.HAS_TOXICITY, 1),
        ("第11部分 毒理学信息", "LC50：20000 mg/m³（豚鼠吸入，无死亡）", Relation.HAS_TOXICITY, 0),
        ("第11部分 毒理学信息", "LD50：5800 mg/kg（大鼠经口，代谢物）", Relation.HAS_TOXICITY, 0),
        ("第11部分 毒理学信息", "LD50：5800 mg/kg（大鼠经口）", Relation.HAS_TOXICITY, 1),
    ],
)  # fmt: skip
def test_references_and_doses_of_something_else(
    section: str, line: str, relation: Relation, count: int
) -> None:
    chinese = section[0] > "z"
    text = f"{ZH if chinese else EN}\n## {section}\n\n{line}\n"
    found = kept(text, *(("丙酮", "zh") if chinese else ("Acetone", "en")))
    assert len([d for d in found if d.relation is relation]) == count


@pytest.mark.parametrize(
    ("line", "jurisdictions"),
    [
        ("MAC：300 mg/m³（仅适用于前苏联）", ["SU"]),
        ("MAC：300 mg/m³（仅适用于某工厂）", []),
        ("接触限值：MAC：300 mg/m³", ["CN"]),
        ("MAC: 300 mg/m³", [""]),
        ("Russia MAC 300 mg/m³", ["RU"]),
        ("MAC: 300 mg/m³ (former USSR only)", ["SU"]),
        ("MAC: 300 mg/m³ (this plant only)", []),
    ],
)
def test_whose_limit_a_remark_says_it_is(line: str, jurisdictions: list[str]) -> None:
    made = [d for d in rows(line) if d.relation is Relation.HAS_LIMIT]
    assert [d.properties.get("jurisdiction", "") for d in made] == jurisdictions

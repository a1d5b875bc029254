"""Traps: what must not become a fact. A false fact is worse than a miss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Modality, Polarity, Relation
from tests.kg.documents import document


def kept(text: str, title: str, language: str = "zh") -> list[Draft]:
    made = document(text, title=title, language=language)
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def of(drafts: list[Draft], relation: Relation, **properties: str) -> list[Draft]:
    return [
        d
        for d in drafts
        if d.relation is relation and all(d.properties.get(k) == v for k, v in properties.items())
    ]


def measured(drafts: list[Draft], prop: str) -> list[tuple[str, float | None, Mapping[str, Any]]]:
    found = of(drafts, Relation.HAS_MEASUREMENT, property=prop)
    return [(d.subject, d.value.get("min"), d.value.get("conditions", {})) for d in found]


ZH = "# 甲醇\n\nCAS号：67-56-1\n\n"
EN = "# Methanol\n\nCAS No.: 67-56-1\n\n"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ZH + "## 比较\n\n乙醚是常用的溶剂。其闪点为-45 ℃。\n", "zh"),
        (ZH + "## 比较\n\n作为对比，乙醚的闪点为-45 ℃。\n", "zh"),
        (ZH + "## 混合物\n\n甲醇与水的混合物闪点为-45 ℃。\n", "zh"),
        (ZH + "## 衍生物\n\n甲醇钠的闪点为-45 ℃。\n", "zh"),
        (EN + "## Comparison\n\nDiethyl ether is a common solvent. Its flash point is -45 °C.\n", "en"),
        (EN + "## Comparison\n\nThe flash point of diethyl ether is -45 °C.\n", "en"),
        (
            EN
            + "## Adducts\n\nOne example is the boron trifluoride methanol complex (flash point -45 °C).\n",
            "en",
        ),
        (EN + "## Derivatives\n\nMethanol derivatives have a flash point of -45 °C.\n", "en"),
    ],
)
def test_a_property_of_something_else_is_not_the_subject_s(text: str, language: str) -> None:
    assert measured(kept(text, "甲醇" if language == "zh" else "Methanol", language), "flash_point") == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ZH + "## 性质\n\n甲醇是无色液体。其闪点为11 ℃。\n", "zh"),
        (ZH + "## 性质\n\n甲醇的闪点为11 ℃。\n", "zh"),
        (EN + "## Properties\n\nMethanol has a flash point of 11 °C.\n", "en"),
        (EN + "## Properties\n\nMethanol is a colourless liquid. Its flash point is 11 °C.\n", "en"),
        (EN + "## Properties\n\nThe flash point of methanol is 11 °C.\n", "en"),
    ],
)
def test_a_property_of_the_subject_is_read(text: str, language: str) -> None:
    found = measured(kept(text, "甲醇" if language == "zh" else "Methanol", language), "flash_point")
    assert [value for _, value, _ in found] == [11]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            "| 性质 | 25 ℃ | 100 ℃ |\n| --- | --- | --- |\n| 黏度（mPa·s） | 0.54 | 0.21 |\n| 密度（g/cm³） | 0.79 | 0.71 |\n",
            [("", 0.54, {"temperature": "25 ℃"}), ("", 0.21, {"temperature": "100 ℃"})],
        ),
        (
            "| Property | Unit | Value |\n| --- | --- | --- |\n| Viscosity | mPa·s | 0.54 |\n| Density | g/cm³ | 0.79 |\n",
            [("", 0.54, {})],
        ),
        (
            "| 项目 | 甲苯 | 二甲苯 |\n| --- | --- | --- |\n| 黏度（mPa·s） | 0.59 | 0.6 |\n| 密度（g/cm³） | 0.87 | 0.86 |\n",
            [("甲苯", 0.59, {}), ("二甲苯", 0.6, {})],  # columns that name other substances
        ),
        (
            "| 项目 | 甲醇 | 二甲苯 |\n| --- | --- | --- |\n| 黏度（mPa·s） | 0.54 | 0.6 |\n| 密度（g/cm³） | 0.79 | 0.86 |\n",
            [("", 0.54, {}), ("二甲苯", 0.6, {})],  # to each its own column
        ),
        (
            "| 物质 | 黏度（mPa·s） | 密度（g/cm³） |\n| --- | --- | --- |\n| 甲醇 | 0.54 | 0.79 |\n| 甲苯 | 0.59 | 0.87 |\n",
            [("", 0.54, {}), ("甲苯", 0.59, {})],
        ),
    ],
)
def test_tables_with_several_values_a_row(rows: str, expected: list[Any]) -> None:
    assert sorted(measured(kept(ZH + "## 数据\n\n" + rows, "甲醇"), "viscosity"), key=repr) == sorted(
        expected, key=repr
    )


def test_a_condition_of_a_column_must_stand_in_its_header() -> None:
    from dataclasses import replace

    rows = "| 性质 | 25 ℃ | 100 ℃ |\n| --- | --- | --- |\n| 黏度（mPa·s） | 0.54 | 0.21 |\n| 密度（g/cm³） | 0.79 | 0.71 |\n"
    made = document(ZH + rows, title="甲醇")
    drafts = [d for d in extract(made)[1] if d.header_span]
    assert len(drafts) == 4
    for draft in drafts:
        assert judge(draft, made)[0] is None
        wrong = {**draft.value, "conditions": {"temperature": "50 ℃"}}
        assert judge(replace(draft, value=wrong), made)[0] is not None


def test_the_numbers_of_a_sheet_s_components_are_not_the_mixture_s() -> None:
    text = """# 次氯酸钠溶液

## 第1部分 化学品及企业标识

| 产品名称 | 次氯酸钠溶液 |
| --- | --- |
| 物质类别 | 混合物 |

## 第3部分 成分/组成信息

| 组分 | CAS号 | 质量分数（%） |
| --- | --- | --- |
| 次氯酸钠 | 7681-52-9 | 8~11 |
| 氢氧化钠 | 1310-73-2 | <2 |

## 第8部分 接触控制/个体防护

| 组分 | 类型 | 数值 |
| --- | --- | --- |
| 氢氧化钠 | MAC | 2 mg/m³ |

## 第11部分 毒理学信息

急性毒性：次氯酸钠：LD50：8910 mg/kg（大鼠经口）；LD50：>10000 mg/kg（兔经皮）
"""
    drafts = kept(text, "次氯酸钠溶液")
    shares = {d.object: (d.value.get("min"), d.value.get("max")) for d in of(drafts, Relation.HAS_COMPONENT)}
    assert shares == {"次氯酸钠": (8, 11), "氢氧化钠": (None, 2)}
    assert [d.subject for d in of(drafts, Relation.HAS_LIMIT)] == ["氢氧化钠"]
    assert {d.subject for d in of(drafts, Relation.HAS_TOXICITY)} == {"次氯酸钠"}
    assert len(of(drafts, Relation.HAS_TOXICITY)) == 2


@pytest.mark.parametrize(
    ("sentence", "language", "expected"),
    [
        ("甲醇与强氧化剂剧烈反应。", "zh", [("强氧化剂", Polarity.POSITIVE, Modality.IS)]),
        ("甲醇可能与强氧化剂发生剧烈反应。", "zh", [("强氧化剂", Polarity.POSITIVE, Modality.MAY)]),
        ("甲醇与强氧化剂不发生剧烈反应。", "zh", [("强氧化剂", Polarity.NEGATIVE, Modality.IS)]),
        ("禁止与强氧化剂接触。", "zh", [("强氧化剂", Polarity.POSITIVE, Modality.MUST)]),
        ("避免与皮肤接触。", "zh", []),
        ("乙醇与强氧化剂剧烈反应。", "zh", []),
        ("甲醇与乙酸反应生成酯。", "zh", []),
        (
            "Methanol reacts violently with strong oxidants.",
            "en",
            [("strong oxidants", Polarity.POSITIVE, Modality.IS)],
        ),
        (
            "Methanol may react violently with strong oxidants.",
            "en",
            [("strong oxidants", Polarity.POSITIVE, Modality.MAY)],
        ),
        ("Methanol does not react with iron.", "en", [("iron", Polarity.NEGATIVE, Modality.IS)]),
        ("Ethanol reacts violently with strong oxidants.", "en", []),
        ("Avoid contact with skin and eyes.", "en", []),
        ("Methanol reacts with acetic acid to form an ester.", "en", []),
    ],
)
def test_negation_and_modality_of_reactions(sentence: str, language: str, expected: list[Any]) -> None:
    head, title = (ZH, "甲醇") if language == "zh" else (EN, "Methanol")
    heading = "## 化学性质\n\n" if language == "zh" else "## Chemical behaviour\n\n"
    found = of(kept(head + heading + sentence + "\n", title, language), Relation.INCOMPATIBLE_WITH)
    assert [(d.object, d.polarity, d.modality) for d in found] == expected


@pytest.mark.parametrize(
    ("line", "prop", "value"),
    [
        ("分子量：53.1 化学式：C3H3N", "molar_mass", 53.1),  # the point of a number begins no label
        ("熔点：-97.8 沸点：64.7 ℃", "boiling_point", 64.7),
        ("闪点：11 ℃ 自燃温度：464 ℃", "flash_point", 11),
    ],
)
def test_labels_side_by_side_cut_no_number(line: str, prop: str, value: float) -> None:
    assert [v for _, v, _ in measured(kept(ZH + line + "\n", "甲醇"), prop)] == [value]


@pytest.mark.parametrize(
    ("line", "jurisdictions"),
    [
        ("中国MAC：50 mg/m³", {"CN"}),
        ("前苏联MAC：5 mg/m³", {"SU"}),
        ("MAC：50 mg/m³", {"CN"}),
        ("TLVTN：OSHA 200 ppm；ACGIH 200 ppm[皮]", {"US-OSHA", "ACGIH"}),
    ],
)
def test_a_limit_is_of_the_country_that_set_it(line: str, jurisdictions: set[str]) -> None:
    found = of(kept(ZH + f"## 第八部分 接触控制\n\n{line}\n", "甲醇"), Relation.HAS_LIMIT)
    assert {d.properties.get("jurisdiction") for d in found} == jurisdictions


@pytest.mark.parametrize(
    ("sentence", "heading", "language", "uses"),
    [
        ("甲醇主要用于制造甲醛。", "用途", "zh", ["制造甲醛"]),
        ("甲醇不用于食品。", "用途", "zh", []),
        ("乙醇用作消毒剂。", "用途", "zh", []),
        ("Methanol is used as a solvent.", "Uses", "en", ["as a solvent"]),
        ("Methanol is not used as a beverage.", "Uses", "en", []),
        ("Ethanol is used as a disinfectant.", "Uses", "en", []),
        ("Methanol was used as a fuel in the 1930s.", "Uses", "en", []),
        ("Methanol reacts with acids, which is used as a test.", "Uses", "en", []),
    ],
)
def test_uses_are_present_affirmed_and_the_subject_s(
    sentence: str, heading: str, language: str, uses: list[str]
) -> None:
    head, title = (ZH, "甲醇") if language == "zh" else (EN, "Methanol")
    found = of(kept(f"{head}## {heading}\n\n{sentence}\n", title, language), Relation.USED_FOR)
    assert [d.object for d in found] == uses


def test_a_safety_card_s_columns_are_told_apart() -> None:
    card = """| 危害/接触类型 | 急性危害/症状 | 预防 | 急救/消防 |
| --- | --- | --- | --- |
| 火灾 | 高度易燃。 | 禁止明火。 | 干粉，抗溶性泡沫。 |
| # 吸入 | 咳嗽，头晕。 | 通风。 | 新鲜空气，休息。 |
| # 食入 | 腹痛，呕吐。 | 工作时不得进食。 | 漱口，不要催吐。 |
"""
    drafts = kept(ZH + "## 急救\n\n" + card, "甲醇")
    aid = {d.properties["route"]: d.object for d in of(drafts, Relation.FIRST_AID)}
    assert aid == {"inhalation": "新鲜空气，休息。", "ingestion": "漱口，不要催吐。"}
    assert {d.object_key for d in of(drafts, Relation.EXTINGUISHED_BY)} == {
        "agent:dry_powder",
        "agent:alcohol_resistant_foam",
    }


def test_joined_codes_keep_every_part() -> None:
    drafts = kept(
        EN
        + "| GHS hazard statements | H301+311+331, H370 |\n| --- | --- |\n| GHS precautionary statements | P280, P305+351+338 |\n",
        "Methanol",
        "en",
    )
    assert {d.object_key for d in of(drafts, Relation.HAS_H)} == {"H301+H311+H331", "H370"}
    assert {d.object_key for d in of(drafts, Relation.HAS_P)} == {"P280", "P305+P351+P338"}

"""What a value holds under, which density it is, and items that are none: facts with their condition, or none.

All pages are made up. Each kind has a neighbour that must still be read.
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

Value = tuple[str, float, dict[str, str]]


def kept(text: str) -> list[Draft]:
    chinese = any("一" <= char <= "鿿" for char in text)
    made = document(text, title=text.split("\n", 1)[0].strip("# "), language="zh" if chinese else "en")
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def rows(words: str, section: str = "") -> list[Draft]:
    chinese = any("一" <= char <= "鿿" for char in words + section)
    body = f"| {words} |\n" if "|" in words and not section else f"\n{words}\n"
    return kept((ZH if chinese else EN) + (f"\n## {section}\n" if section else "") + body)


def values(drafts: list[Draft]) -> list[Value]:
    return [
        (d.properties["property"], d.value["min"], dict(d.value.get("conditions", {})))
        for d in drafts
        if d.relation is Relation.HAS_MEASUREMENT and d.value.get("min") is not None
    ]


def objects(drafts: list[Draft], relation: Relation, polarity: Polarity = Polarity.POSITIVE) -> list[Any]:
    return sorted(d.object for d in drafts if d.relation is relation and d.polarity is polarity)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("相对密度（水=1） | 0.79（20/4℃）；相对蒸气密度（空气=1） 2.0", [("relative_density", 0.79), ("vapour_density", 2.0)]),
        ("相对密度 | 0.79（水=1）；2.0（空气=1）", [("relative_density", 0.79), ("vapour_density", 2.0)]),
        ("相对密度 | 水=1：0.79；空气=1：2.0", [("relative_density", 0.79), ("vapour_density", 2.0)]),
        ("相对密度（水=1） | 0.79；蒸气 2.0", [("relative_density", 0.79)]),
        ("Relative density (water = 1) | 0.79; vapour 2.0", [("relative_density", 0.79)]),
        ("Vapour density (air = 1) | 2.0; liquid 0.79", [("vapour_density", 2.0)]),
        ("丙酮的相对密度（空气=1）为2.0。", [("vapour_density", 2.0)]),
        ("丙酮的相对密度（水=1）为0.79。", [("relative_density", 0.79)]),
    ],
)  # fmt: skip
def test_each_density_is_relative_to_its_own(words: str, expected: list[tuple[str, float]]) -> None:
    assert sorted((prop, value) for prop, value, _ in values(rows(words))) == sorted(expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("爆炸极限（100 ℃） | 1.1%～9.4%", {"temperature": "100 °C"}),
        ("Explosive limits (100 °C) | 1.1–9.4 %", {"temperature": "100 °C"}),
        ("密度(g/cm³，20℃) | 0.79", {"temperature": "20 °C"}),
        ("Density (g/cm3, 20 °C) | 0.79", {"temperature": "20 °C"}),
        ("闪点（闭杯，℃） | 17", {"method": "closed cup"}),
        ("Acidity (pKa) | 17.2 (DMSO)", {"note": "DMSO"}),
        ("pH值 | 0.1（1 N）", {"note": "1 N"}),
        ("Autoignition temperature | 280 °C on glass", {"note": "on glass"}),
        ("Autoignition temperature | 465 °C in air", {}),
        ("Melting point | 17 °C (63 °F; 290 K)", {}),
        ("在氧气中，丙酮的自燃温度为300 ℃。", {"note": "在氧气中"}),
        ("Under oxygen, the autoignition temperature of acetone is 300 °C.", {"note": "Under oxygen"}),
        ("临界温度 | 279 ℃，临界压力 7.9 MPa", {}),
        ("溶解性 | 微溶于水（水中 8.7%，20℃；水在丙酮中 5.6%）", {"temperature": "20 °C"}),
    ],
)
def test_a_value_carries_what_it_holds_under(words: str, expected: dict[str, str]) -> None:
    found = values(rows(words))
    assert found
    assert all(conditions == expected for _, _, conditions in found)


@pytest.mark.parametrize(
    "words",
    [
        "沸点 | 共沸物（与水）95 ℃",
        "Boiling point | azeotrope with water 95 °C",
        "闪点 | 不燃（-44℃系氯甲烷数据）",
        "Related compounds | nitroethane, boiling point 114 °C",
        "Acetone 95 % (denatured with methanol) has a flash point of 16 °C.",
        "丙酮在空气中的含量为10%~16%时遇强火源可爆炸。",
        "密度（20 ℃） | 无资料",
    ],
)
def test_values_of_something_else_are_left_out(words: str) -> None:
    assert values(rows(words)) == []


def test_of_several_values_under_a_label_s_condition_the_first_alone_has_it() -> None:
    for words in ("密度（20 ℃） | 0.79 g/cm³；0.80 g/cm³", "Density (20 °C) | 0.79 g/cm3; 0.80 g/cm3"):
        assert values(rows(words)) == [("density", 0.79, {"temperature": "20 °C"})]


def test_about_is_not_lost() -> None:
    for words in ("丙酮的沸点约为56 ℃。", "The boiling point of acetone is about 56 °C."):
        (found,) = (d for d in rows(words) if d.relation is Relation.HAS_MEASUREMENT)
        assert found.value["operator"] == "~"


def test_a_column_s_condition_against_its_label_s() -> None:
    table = (
        "| 项目 | 25 ℃ | 100 ℃ |\n| --- | --- | --- |\n| {} | 0.78 | 0.70 |\n| 黏度（mPa·s） | 0.3 | 0.2 |\n"
    )
    head = ZH + "\n## 理化性质\n\n"
    clash = values(kept(head + table.format("密度（20 ℃，g/cm³）")))
    assert [value for value in clash if value[0] == "density"] == []
    plain = values(kept(head + table.format("密度（g/cm³）")))
    assert ("density", 0.78, {"temperature": "25 ℃"}) in plain


def test_columns_of_something_else_on_a_solution_s_sheet() -> None:
    text = (
        "# 氢氟酸（40%）\n\n| 品名 | 氢氟酸（40%） |\n| --- | --- |\n| CAS号 | 7664-39-3（氟化氢） |\n\n## 理化性质\n\n"
        "| 项目 | 40%溶液 | 无水氟化氢 |\n| --- | --- | --- |\n| 熔点/℃ | -44 | -83.6 |\n| 沸点/℃ | 112 | 19.5 |\n"
    )
    found = kept(text)
    assert sorted(value for _, value, _ in values([d for d in found if not d.subject])) == [-44, 112]
    assert {d.subject for d in found} == {"", "无水氟化氢"}  # whose column it is


@pytest.mark.parametrize(
    ("section", "line", "relation", "expected"),
    [
        ("SECTION 5: Firefighting measures", "Suitable extinguishing media: Dry chemical or carbon dioxide.",
         Relation.EXTINGUISHED_BY, ["Dry chemical", "carbon dioxide"]),
        ("第5部分 消防措施", "灭火剂：干粉或二氧化碳。", Relation.EXTINGUISHED_BY, ["二氧化碳", "干粉"]),
        ("SECTION 5: Firefighting measures", "Hazardous combustion products: carbon monoxide; in the absence of air, ketene",
         Relation.BURNS_TO, ["carbon monoxide", "ketene"]),
        ("SECTION 10: Stability", "Incompatible materials: acids, even, bases", Relation.INCOMPATIBLE_WITH, ["acids", "bases"]),
    ],
)  # fmt: skip
def test_items_of_lists(section: str, line: str, relation: Relation, expected: list[str]) -> None:
    assert objects(rows(line, section), relation) == sorted(expected)


def test_an_adverb_is_no_substance() -> None:
    found = rows("Acetone reacts violently with amines, even at 1 %.", "SECTION 10: Stability")
    assert objects(found, Relation.INCOMPATIBLE_WITH) == ["amines"]


@pytest.mark.parametrize(
    ("section", "line", "whole"),
    [
        ("第5部分 消防措施", "灭火剂：干粉、二氧化碳。雾状水也可使用。", False),
        ("SECTION 5: Firefighting measures", "Suitable extinguishing media: Dry powder. Alcohol foam may also be used.", False),
        ("第5部分 消防措施", "灭火剂：干粉、二氧化碳。", True),
        ("第10部分 稳定性", "分解产物：氨、氮氧化物（仅在空气过量时）", False),
        ("SECTION 10: Stability", "Decomposition products: ammonia, nitrogen oxides (only with excess air)", False),
        ("SECTION 10: Stability", "Decomposition products: ammonia, nitrogen oxides", True),
        ("SECTION 5: Firefighting measures", "Hazardous combustion products: carbon monoxide; in the absence of air, ketene", False),
    ],
)  # fmt: skip
def test_a_list_that_goes_on_or_depends_proves_no_absence(section: str, line: str, whole: bool) -> None:
    found = [
        d
        for d in rows(line, section)
        if d.relation in {Relation.EXTINGUISHED_BY, Relation.DECOMPOSES_TO, Relation.BURNS_TO}
    ]
    assert found
    assert all(("listing" in d.properties) is whole for d in found)


def test_an_item_carries_the_circumstance_that_leads_its_part() -> None:
    for section, line in (
        ("第5部分 消防措施", "有害燃烧产物：一氧化碳；空气不足时，甲醛"),
        ("SECTION 5: Firefighting measures", "Hazardous combustion products: carbon monoxide; in the absence of air, ketene"),
    ):  # fmt: skip
        found = {d.object: dict(d.conditions) for d in rows(line, section) if d.relation is Relation.BURNS_TO}
        assert sorted(bool(conditions) for conditions in found.values()) == [False, True]


def test_a_hedged_denial_denies_nothing() -> None:
    found = rows("与水一般不反应。与铜不反应。", "第10部分 稳定性和反应性")
    assert objects(found, Relation.INCOMPATIBLE_WITH, Polarity.NEGATIVE) == ["铜"]


@pytest.mark.parametrize(
    ("words", "special"),
    [
        ("NFPA 704 | Health 1, Fire 3, Reactivity 0, Special OX", "OX"),
        ("NFPA 704 | Health: 1; Flammability: 3; Instability: 0; Special: W", "W"),
        ("NFPA 704 | 健康：3，可燃：0，反应：2，特殊：SA", "SA"),
        ("NFPA 704 | 健康：3，可燃：0，反应：2，特殊：无", ""),
        ("NFPA 704 | H: 3, F: 0, R: 2, special hazard: W + OX", "W+OX"),
        ("NFPA 704 | Health 1, Fire 3, Reactivity 0", ""),
        ("NFPA 704 | 健康：3，可燃：0，反应：2，特殊：禁水", None),
    ],
)
def test_the_fourth_field_of_the_diamond(words: str, special: str | None) -> None:
    found = [d.properties["special"] for d in rows(words) if d.relation is Relation.RATED]
    assert found == ([] if special is None else [special])


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("P273 is recommended, P405 not.", ["P273"]),
        (
            "H225 Highly flammable liquid and vapour. H319 Causes serious eye irritation. Not H336.",
            ["H225", "H319"],
        ),
    ],
)
def test_a_code_that_is_denied_behind_it(line: str, codes: list[str]) -> None:
    found = rows(line, "SECTION 2: Hazards identification")
    assert sorted(d.object for d in found if d.relation in {Relation.HAS_H, Relation.HAS_P}) == codes


def test_a_statement_ends_where_the_next_is_led_in() -> None:
    line = "H225 Highly flammable liquid and vapour and H319; H336 可引起昏睡或眩晕（呼吸道）"
    found = {
        d.object: dict(d.properties) for d in rows(line, "第2部分 危险性概述") if d.relation is Relation.HAS_H
    }
    assert found["H336"]["text_zh"] == "可引起昏睡或眩晕（呼吸道）"
    line = "H350 May cause cancer. Not H360."
    (draft,) = (d for d in rows(line, "SECTION 2: Hazards identification") if d.relation is Relation.HAS_H)
    assert draft.properties["text_en"] == "May cause cancer."


def test_names_with_remarks_and_names_that_begin_like_or() -> None:
    text = "# 氨\n\n| 品名 | 氨；氨水（含氨≥10%） |\n| --- | --- |\n| CAS号 | 7664-41-7 |\n| 别名 | 液氨（不含水）；阿摩尼亚 |\n"
    aliases = objects(kept(text), Relation.HAS_ALIAS)
    assert "阿摩尼亚" in aliases
    assert not any("氨水" in alias or "不含" in alias for alias in aliases)
    text = (
        "# Phosphoric acid\n\n| IUPAC name | Orthophosphoric acid |\n| --- | --- |\n| CAS No. | 7664-38-2 |\n"
    )
    assert "Orthophosphoric acid" in objects(kept(text), Relation.HAS_ALIAS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("UN number: 1090. Class: 3. Packing group: II.", ["UN1090"]),
        ("Acetic acid, glacial: UN 2789, class 8", []),
        ("乙酸：UN2789", []),
    ],
)
def test_the_number_of_another_good(line: str, expected: list[str]) -> None:
    section = (
        "第14部分 运输信息" if any("一" <= c <= "鿿" for c in line) else "SECTION 14: Transport information"
    )
    assert objects(rows(line, section), Relation.SHIPPED_AS) == expected


def test_the_route_before_a_dose() -> None:
    for line in ("LD50 oral, rat: 5800 mg/kg", "LD50：5800 mg/kg（大鼠，吞食）"):
        section = "第11部分 毒理学信息" if "大鼠" in line else "SECTION 11: Toxicological information"
        (dose,) = (d for d in rows(line, section) if d.relation is Relation.HAS_TOXICITY)
        assert (dose.properties["species"], dose.properties["route"]) == ("rat", "oral")
    section = "第11部分 毒理学信息"
    assert objects(rows("LD50 > 2000 mg/kg（大鼠，经皮，5%油溶液）", section), Relation.HAS_TOXICITY) == []


def test_a_regulation_s_name_keeps_its_marks_whole() -> None:
    found = rows("适用法规：《危险化学品目录》（2015版）；《危险化学品安全管理条例》", "第15部分 法规信息")
    assert objects(found, Relation.REGULATED_BY) == ["《危险化学品目录》（2015版）", "危险化学品安全管理条例"]


def test_doses_of_what_is_named_behind_the_endpoint_or_the_stop() -> None:
    for section, line, expected in (
        ("SECTION 11: Toxicological information", "LD50 lithium chloride (oral, rat): 526 mg/kg", []),
        (
            "SECTION 11: Toxicological information",
            "LC50 26 ppm/1 h. Propionaldehyde: LD50 1410 mg/kg.",
            ["26 ppm"],
        ),
        ("SECTION 11: Toxicological information", "LD50 (oral, rat): 5800 mg/kg", ["5800 mg/kg"]),
        ("第11部分 毒理学信息", "LD50 氯化锂（大鼠经口）：526 mg/kg", []),
        ("第11部分 毒理学信息", "LD50（大鼠经口）：5800 mg/kg", ["5800 mg/kg"]),
    ):
        assert objects(rows(line, section), Relation.HAS_TOXICITY) == expected, line


def test_codes_of_a_solution_named_before_them() -> None:
    for section, line in (
        ("SECTION 2: Hazards identification", "Classification: Skin Corr. 1A (H314); 1 M solution in THF: Flam. Liq. 2 (H225), Carc. 2 (H351)"),
        ("第2部分 危险性概述", "危险性类别：皮肤腐蚀/刺激 类别1A（H314）；10%溶液：易燃液体 类别2（H225），致癌性 类别2（H351）"),
    ):  # fmt: skip
        found = rows(line, section)
        assert objects(found, Relation.HAS_H) == ["H314"]
        assert len(objects(found, Relation.CLASSIFIED_AS)) == 1


def test_a_pressure_is_not_under_the_next_one_s_pressure() -> None:
    found = values(rows("Vapour pressure | 210 mmHg @ 20 °C/ 274 mmHg @ 25 °C"))
    assert found[0] == ("vapour_pressure", 210, {"temperature": "20 °C"})
    found = values(rows("溶解性：0.7 g/100 g 水（20 ℃），在四氯化碳中8.6%"))
    assert found == [("solubility_in_water", 0.7, {"temperature": "20 °C"})]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("据1950年的手册，丙酮的自燃温度为595 ℃，新的测定值为465 ℃。", []),
        ("According to older handbooks, the flash point of acetone is -9 °C.", []),
        ("丙酮的自燃温度为465 ℃。", [465]),
    ],
)
def test_values_of_an_older_source(words: str, expected: list[float]) -> None:
    assert [value for _, value, _ in values(rows(words))] == expected


def test_media_and_partners_of_running_text_are_single() -> None:
    found = rows("Fires may be extinguished with foam, carbon dioxide or dry powder.", "Fire")
    assert objects(found, Relation.EXTINGUISHED_BY) == ["carbon dioxide", "dry powder", "foam"]
    found = [
        d for d in rows("丙酮与甲醛在酸催化下剧烈反应。", "反应") if d.relation is Relation.INCOMPATIBLE_WITH
    ]
    assert [(d.object, dict(d.conditions)) for d in found] == [("甲醛", {"when": "在酸催化下"})]

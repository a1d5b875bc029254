"""Sentences, brackets, labels and table rows that report, doubt, compare or refer, and state nothing of the subject.

All pages are made up. Beside what must be left out stand neighbours that must still
be read, so that leaving everything out is no way to pass.
"""

from __future__ import annotations

import pytest

from corpus.quantities import parse_quantities
from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n\n"


def facts(body: str) -> list[Draft]:
    """Kept facts of a page on acetone with these further words, without the identifiers of its head."""
    chinese = any("一" <= char <= "鿿" for char in body)
    made = document(
        (ZH if chinese else EN) + body + "\n",
        title="丙酮" if chinese else "Acetone",
        language="zh" if chinese else "en",
    )
    return [
        draft
        for draft in extract(made)[1]
        if judge(draft, made)[0] is None and draft.relation is not Relation.HAS_ALIAS
    ]


def shown(drafts: list[Draft]) -> list[str]:
    """Facts as "flash_point -18", "H225", "water", in text order and each once."""
    found = []
    for draft in drafts:
        prop = draft.properties.get("property", "")
        low = draft.value.get("min")
        found.append(f"{prop} {low:g}" if prop and low is not None else draft.object)
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # another property's value behind a stop or a semicolon
        ("Flash point: 255 K. Boiling point 329 K (133 degrees F)", ["flash_point 255"]),
        ("Flash point: 0 °F (-18 °C); boiling point 133 °F/56 °C", ["flash_point 0"]),
        ("闪点(℃)：-18；爆炸温度(℃)：95", ["flash_point -18"]),
        ("闪点(℃)：-18；沸点 56 ℃", ["flash_point -18"]),
        ("Flash point: -18 °C (closed cup); open cup: -9 °C", ["flash_point -18", "flash_point -9"]),
        (
            "Acetone has a viscosity of 0.32 mPa·s and thermal conductivity of 0.161 W/(m·K).",
            ["viscosity 0.32", "thermal_conductivity 0.161"],
        ),
        # comparisons
        ("Its boiling point is 31 °C lower than that of water.", []),
        ("Its density is 0.2 g/cm3 less than water's.", []),
        ("Its boiling point of 56 °C is lower than that of water.", ["boiling_point 56"]),
        ("沸点：比水低44℃", []),
        ("沸点：56℃，比水低", ["boiling_point 56"]),
        # references
        ("Vapour density: air = 1", []),
        ("Relative density: water = 1", []),
        ("相对密度：水 = 1", []),
        ("Relative density (water = 1): 0.79", ["relative_density 0.79"]),
        ("Melting point: (see water: 0 °C)", []),
        ("熔点：参见水（0℃）", []),
        ("Autoignition temperature: test method ASTM E659, 528 °C limit of apparatus", []),
        ("引燃温度：465℃", ["autoignition_temperature 465"]),
        ("pH: does not apply; H2O2 pH 3.5", []),
        ("Relative density 0.79 (water=1), 2.0 (air=1) vapour", ["relative_density 0.79", "vapour_density 2"]),
        # what is added to it, what is akin to it
        ("本品阻聚剂（对叔丁基邻苯二酚）闪点 151℃，LD50 2820 mg/kg（大鼠经口）。", []),
        ("丙酮闪点 -18℃，LD50 5800 mg/kg（大鼠经口）。", ["flash_point -18", "5800 mg/kg"]),
        ("The inhibitor has a flash point of 151 °C.", []),
        ("Acetone has a flash point of -18 °C.", ["flash_point -18"]),
        ("LD50 (oral, rat): 5800 mg/kg; dimer 5000 mg/kg.", ["5800 mg/kg"]),
        ("Acetone's ether, diisopropyl ether, has a flash point of -28 °C.", []),
        ("丙酮的醚——二异丙醚，闪点-28℃。", []),
        ("Isopropanol, a liquid with a melting point of -89 °C and flash point 12 °C, is made from acetone.", []),
        ("Cumene, whose boiling point is 152 °C, gives acetone.", []),
        ("Acetone, a liquid with a melting point of -95 °C and flash point -18 °C, is flammable.", ["flash_point -18"]),
        ("浓丙酮（37%）密度 1.19 g/cm³，沸点48℃。", []),
        # a chain of three is no range
        ("闪点：12℃～14℃～16℃", []),
        ("闪点：12℃～14℃", ["flash_point 12"]),
    ],
)  # fmt: skip
def test_values_of_the_subject_alone(body: str, expected: list[str]) -> None:
    assert shown(facts(body)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("It is a myth that acetone reacts violently with water.", []),
        ("Acetone reacts violently with chloroform.", ["chloroform"]),
        ("No evidence supports an LD50 (oral, rat) of 3 mg/kg.", []),
        ("A spokesman denied that the LD50 (oral, rat) is 50 mg/kg.", []),
        ("The LD50 (oral, rat) is 5800 mg/kg.", ["5800 mg/kg"]),
        ("如果丙酮含氯，则LD50为 50 mg/kg（大鼠经口）。", []),
        ("谣传丙酮与水剧烈反应。", []),
        ("丙酮与氯仿剧烈反应。", ["氯仿"]),
        ("丙酮与水剧烈反应的说法是错误的。", []),
        ("没有证据表明其LD50为 3 mg/kg（大鼠经口）。", []),
        ("丙酮应与碱类分开存放的说法是错误的。", []),
        ("丙酮应与碱类分开存放。", ["碱类"]),
    ],
)
def test_reports_rumours_and_suppositions(body: str, expected: list[str]) -> None:
    assert shown(facts(body)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("H225, H319; H334 was proposed but rejected.", ["H225", "H319"]),
        ("H225 and H336 remain. H412 is under discussion.", ["H225", "H336"]),
        ("H225，H319；不再使用H351。", ["H225", "H319"]),
        ("H225；H412尚在讨论。", ["H225"]),
        ("H225；1%以下溶液：H319。", ["H225"]),
        ("H225; H314 for concentrations of 90% and above; H315 and H319 for 10% to 25%.", ["H225"]),
        ("H225, H319, H336", ["H225", "H319", "H336"]),
        ("Classification: Flam. Liq. 2; Muta. 1B was not adopted.", ["Flam. Liq. 2"]),
        ("Acetic anhydride (UN 1715) has a flash point of 49 °C.", []),
        ("Acetone (UN 1090) has a flash point of -18 °C.", ["flash_point -18", "UN1090"]),
    ],
)
def test_codes_that_are_proposed_withdrawn_or_graded(body: str, expected: list[str]) -> None:
    assert sorted(shown(facts(body))) == sorted(expected)


def test_former_entries_of_transport() -> None:
    (entry,) = facts(
        "## 14. Transport information\n\nUN number: UN 1090 (until 1991: UN 2550)\n\nPacking group: none (formerly II)"
    )
    assert entry.properties["un"] == "1090"
    assert entry.properties["packing_group"] == ""
    assert entry.conditions == {}
    (now,) = facts("## 14. Transport information\n\nUN number: UN 1090\n\nPacking group: II")
    assert now.properties["packing_group"] == "II"


def _table(*rows: str) -> str:
    head, *body = (f"| {row} |" for row in rows)
    return "\n".join([head, "|" + " --- |" * rows[0].count("|") + " --- |", *body])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            (
                "项目|数值|备注",
                "闪点|-18℃|闭杯",
                "沸点|140℃|数据有误",
                "密度|1.05 g/cm³|已作废",
                "熔点|16.6℃|乙酸",
                "引燃温度|465℃|此为乙酸的数值",
            ),
            ["flash_point -18"],
        ),
        (
            (
                "Property|Value|Remark",
                "Flash point|-18 °C|closed cup",
                "Boiling point|251 °C|wrong, corrected to 56 °C",
                "Density|1.22 g/cm3|withdrawn",
                "Melting point|20 °C|for the 2,6-isomer",
                "Vapour pressure|1.3 kPa|this is the value of MDI",
            ),
            ["flash_point -18"],
        ),
    ],
)
def test_remarks_that_take_a_row_back_or_give_it_away(rows: tuple[str, ...], expected: list[str]) -> None:
    assert shown(facts(_table(*rows))) == expected


@pytest.mark.parametrize(
    ("head", "named", "others"),
    [
        (
            "Substance|Flash point|Boiling point",
            "Methanol",
            ["Difference", "Mean", "Average", "Target value", "Limit", "Std. dev.", "dto.", '"', "not ethanol",
             "compared with ethanol", "Methanol/water 50:50"],
        ),
        (
            "名称|闪点|沸点",
            "甲醇",
            ["平均值", "差值", "目标值", "限值", "合计", "同上", "非乙醇", "标准偏差", "与乙醇相比"],
        ),
    ],
)  # fmt: skip
def test_rows_that_are_no_substance(head: str, named: str, others: list[str]) -> None:
    rows = [f"{name}|11 °C|65 °C" for name in (named, *others)]
    assert {draft.subject for draft in facts(_table(head, *rows))} == {named}


@pytest.mark.parametrize(
    ("body", "item", "conditions"),
    [
        ("丙酮与铜、锌反应，与铁不反应。", "铁", {}),
        ("丙酮不能溶解金，也不与铜反应。", "铜", {}),
        ("常温下，丙酮与铁不反应。", "铁", {"when": "常温下"}),
    ],
)
def test_a_statement_before_a_denied_reaction_is_no_condition(
    body: str, item: str, conditions: dict[str, str]
) -> None:
    found = [draft for draft in facts(body) if draft.object == item]
    assert [dict(draft.conditions) for draft in found] == [conditions]


def test_what_is_said_of_something_else_denies_nothing() -> None:
    assert facts("金不溶解于丙酮，也不与铜反应。") == []


def test_three_joined_numbers_are_no_range() -> None:
    assert parse_quantities("12℃~14℃~16℃", dimension="degC") == []
    (one,) = parse_quantities("12℃~14℃", dimension="degC")
    assert (one.minimum, one.maximum) == (12, 14)


def test_a_basis_is_no_number() -> None:
    assert parse_quantities("air = 1", bare=True) == []
    (one,) = parse_quantities("2.0 (air = 1)", bare=True)
    assert one.minimum == 2.0
    (other,) = parse_quantities("pH = 7", bare=True)
    assert other.minimum == 7

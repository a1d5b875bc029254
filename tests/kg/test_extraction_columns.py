"""Tables with a substance a column and a property a row: each value goes to the substance of its own column."""

from __future__ import annotations

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n\n"


def kept(table: str, head: str | None = None) -> list[Draft]:
    chinese = any("一" <= char <= "鿿" for char in table)
    page = (ZH if chinese else EN) if head is None else head
    made = document(
        page + "## 比较\n\n" + table if chinese else page + "## Comparison\n\n" + table,
        title=("丙酮" if chinese else "Acetone") if head is None else "",
        language="zh" if chinese else "en",
    )
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def values(found: list[Draft]) -> set[tuple[str, str, float, str]]:
    return {
        (d.subject, d.properties["property"], d.value["min"], d.value.get("unit", ""))
        for d in found
        if d.relation is Relation.HAS_MEASUREMENT and "min" in d.value
    }


def table(*lines: str) -> str:
    columns = lines[0].count("|") + 1
    return (
        "\n".join([f"| {lines[0]} |", "|" + " --- |" * columns, *(f"| {line} |" for line in lines[1:])])
        + "\n"
    )


ZH_TABLE = table(
    "性质 | 丙酮 | 乙醇 | 甲苯", "CAS号 | 67-64-1 | 64-17-5 | 108-88-3",
    "闪点（℃） | -18 | 13 | 4", "沸点 | 56.1 ℃ | 78.3 ℃ | 无资料", "熔点（℃） | — | -114 | -95",
)  # fmt: skip
EN_TABLE = table(
    "Property | Acetone | Ethanol | Toluene", "CAS No. | 67-64-1 | 64-17-5 | 108-88-3",
    "Flash point (°C) | -18 | 13 | 4", "Boiling point | 56.1 °C | 78.3 °C | no data", "Melting point (°C) | — | -114 | -95",
)  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "ethanol", "toluene"), [(ZH_TABLE, "乙醇", "甲苯"), (EN_TABLE, "Ethanol", "Toluene")]
)
def test_each_column_is_its_substance_s(shown: str, ethanol: str, toluene: str) -> None:
    found = kept(shown)
    plain = {(subject, prop, number) for subject, prop, number, _ in values(found)}
    assert plain == {
        ("", "flash_point", -18), ("", "boiling_point", 56.1),
        (ethanol, "flash_point", 13), (ethanol, "boiling_point", 78.3), (ethanol, "melting_point", -114),
        (toluene, "flash_point", 4), (toluene, "melting_point", -95),
    }  # fmt: skip
    assert {unit for *_, unit in values(found)} == {"°C"}
    numbers = {(d.subject, d.object) for d in found if d.relation is Relation.HAS_ALIAS and d.subject}
    assert numbers == {(ethanol, "64-17-5"), (toluene, "108-88-3")}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        # without a subject of the page, under a corner that is a label, with a unit column, with names in a row
        (table("名称 | 乙醇 | 甲苯", "闪点（℃） | 13 | 4", "沸点（℃） | 78 | 111"),
         {("乙醇", "flash_point", 13.0), ("乙醇", "boiling_point", 78.0), ("甲苯", "flash_point", 4.0), ("甲苯", "boiling_point", 111.0)}),
        (table("Property | Unit | Ethanol | Toluene", "Flash point | °C | 13 | 4", "Boiling point | °C | 78 | 111"),
         {("Ethanol", "flash_point", 13.0), ("Ethanol", "boiling_point", 78.0), ("Toluene", "flash_point", 4.0), ("Toluene", "boiling_point", 111.0)}),
        (table("性质 | 64-17-5 | 7732-18-5", "名称 | 乙醇 | 水", "闪点（℃） | 13 | 无", "沸点（℃） | 78 | 100"),
         {("乙醇", "flash_point", 13.0), ("乙醇", "boiling_point", 78.0)}),
        # a CAS number makes a substance of a word that does not look like one
        (table("Property | Water | Ethanol", "CAS No. | 7732-18-5 | 64-17-5", "Boiling point (°C) | 100 | 78", "Melting point (°C) | 0 | -114"),
         {("Water", "boiling_point", 100.0), ("Water", "melting_point", 0.0), ("Ethanol", "boiling_point", 78.0), ("Ethanol", "melting_point", -114.0)}),
    ],
)  # fmt: skip
def test_other_shapes_of_the_same_table(shown: str, expected: set[tuple[str, str, float]]) -> None:
    found = values(kept(shown, head=""))
    assert {entry[:3] for entry in found} >= expected
    assert {entry[0] for entry in found} <= {"乙醇", "甲苯", "水", "Ethanol", "Toluene", "Water"}
    assert not {entry for entry in found if entry[:2] == ("水", "flash_point")}


@pytest.mark.parametrize(
    "header",
    [
        "性质 | 样品A | 样品B", "性质 | 优等品 | 合格品", "性质 | 闭杯 | 开杯", "性质 | 平均值 | 标准值", "性质 | 乙醇和甲苯 | 丁酮、丙酮",
        "性质 | 乙醇70% | 甲苯溶液", "性质 | 乙醇 | 乙醇", "性质 | 非乙醇 | 除甲苯",
        "Property | Sample A | Sample B", "Property | Grade A | Grade B", "Property | Typical | Limit", "Property | Ethanol and toluene | Ethanol or toluene",
        "Property | Ethanol 70% | Toluene solution", "Property | Ethanol | Ethanol", "Property | without ethanol | not toluene",
    ],
)  # fmt: skip
def test_a_header_that_names_no_one_substance_gives_nothing(header: str) -> None:
    chinese = header.startswith("性质")
    rows = (
        ("闪点（℃） | 13 | 4", "沸点（℃） | 78 | 111")
        if chinese
        else ("Flash point (°C) | 13 | 4", "Boiling point (°C) | 78 | 111")
    )
    assert values(kept(table(header, *rows))) == set()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # no unit anywhere, two values in a cell, no data, a unit that is none of the property's
        (("闪点 | 13 | 4", "沸点（℃） | 78 | 111"), {("乙醇", "boiling_point", 78.0), ("甲苯", "boiling_point", 111.0)}),
        (("闪点（℃） | 13，开杯16 | 无资料", "沸点（℃） | 未测定 | -"), set()),
        (("闪点（kPa） | 13 | 4", "沸点（℃） | 78 | 111"), {("乙醇", "boiling_point", 78.0), ("甲苯", "boiling_point", 111.0)}),
    ],
)  # fmt: skip
def test_a_cell_is_read_as_carefully_as_any_other(
    rows: tuple[str, ...], expected: set[tuple[str, str, float]]
) -> None:
    assert {entry[:3] for entry in values(kept(table("性质 | 乙醇 | 甲苯", *rows)))} == expected

"""Values that a page tore apart, gave to somebody else, or bound to a circumstance.

All pages are made up. Each kind has a neighbour that must still be read.
"""

from __future__ import annotations

from typing import Any

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Polarity, Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n\n"


def facts(words: str, section: str = "") -> list[Draft]:
    chinese = any("一" <= char <= "鿿" for char in words)
    head = f"## {section}\n\n" if section else ""
    made = document(
        (ZH if chinese else EN) + head + words + "\n",
        title="丙酮" if chinese else "Acetone",
        language="zh" if chinese else "en",
    )
    return [d for d in extract(made)[1] if judge(d, made)[0] is None and not d.rejected]


def measured(words: str) -> list[tuple[str, Any, dict[str, Any]]]:
    return [
        (d.properties["property"], d.value.get("min"), dict(d.value.get("conditions", {})))
        for d in facts(words, "第九部分 理化特性" if "：" in words else "SECTION 9: Physical properties")
        if d.relation is Relation.HAS_MEASUREMENT
    ]


def limits(words: str) -> list[tuple[str, str, float]]:
    return [
        (d.properties["kind"], d.properties.get("jurisdiction", ""), d.value["min"])
        for d in facts(words, "第八部分 接触控制" if "：" in words else "SECTION 8: Exposure controls")
        if d.relation is Relation.HAS_LIMIT
    ]


def met(words: str) -> list[tuple[str, bool, dict[str, str]]]:
    return [
        (d.object, d.polarity is Polarity.POSITIVE, dict(d.conditions))
        for d in facts(words)
        if d.relation is Relation.INCOMPATIBLE_WITH
    ]


@pytest.mark.parametrize(
    ("words", "item", "when"),
    [
        ("与水不反应，除非有酸存在。", "水", {"when": "除非有酸存在"}),
        ("与铝不反应（常温）。", "铝", {"when": "常温"}),
        ("与水不反应（但高温下缓慢分解）。", "水", {"when": "但高温下缓慢分解"}),
        ("与水不反应，加热时缓慢水解。", "水", {"when": "加热时缓慢水解"}),
        ("与水不反应。", "水", {}),
        ("常温下丙酮不与水反应，但在150 ℃以上可水解。", "水", {"when": "常温下丙酮"}),
        ("Acetone does not react with water, but decomposes slowly above 200 °C.", "water",
         {"when": "but decomposes slowly above 200 °C"}),
        ("Acetone does not react with water until heated.", "water", {"when": "until heated"}),
        ("Acetone does not react with water, but it reacts with hot water.", "water",
         {"when": "but it reacts with hot water"}),
        ("Acetone does not react with water, but reacts violently with nitric acid.", "water", {}),
    ],
)  # fmt: skip
def test_a_denied_reaction_keeps_what_limits_it(words: str, item: str, when: dict[str, str]) -> None:
    assert [(name, said) for name, positive, said in met(words) if not positive] == [(item, when)]


@pytest.mark.parametrize(
    "words",
    [
        "沸点：5 6.5 ℃", "闪点：1 8 ℃", "熔点：- 9 4 ℃", "熔点：– 94 ℃", "凝固点：-1 17 ℃", "燃点：4 65 ℃", "蒸气压：1 3.3 kPa",
        "Flash point: -1 8 °C", "Boiling point: 1 00.5 °C", "Autoignition: 8 69 °F", "Vapor pressure: 1 80 mmHg",
        "Specific gravity: 0.7 91", "Solubility in water: 1 5 g/L", "| Density | 7 90 kg/m3 |\n| --- | --- |",
        "The boiling point of acetone is 5 6 °C.", "Melting point: –94·7 °C", "Vapour pressure: 24.000 Pa",
        "Flash point: -20°C (c.c.) to 4°C", "Boiling point: 56 °C for the azeotrope with water",
        "沸点：56 ℃（与水的共沸物）", "闪点：-18 ℃（含水10%）", "临界密度：278 kg/m³", "沸点下液体密度：750 kg/m³",
        "Flash point: -9 °C (technical grade, 10% water)",
    ],
)  # fmt: skip
def test_what_was_torn_or_is_another_s_is_no_value(words: str) -> None:
    assert measured(words) == []


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("熔点：- 94 ℃", -94), ("沸点：56.5 ℃", 56.5), ("闪点：-18 ℃（闭杯）", -18), ("密度：790 kg/m³（20 ℃）", 790),
        ("Melting point: –94.7 °C", -94.7), ("Boiling point: 56 °C (1 atm)", 56), ("Vapour pressure: 24,000 Pa", 24000),
    ],
)  # fmt: skip
def test_a_whole_number_beside_them_is_read(words: str, value: float) -> None:
    assert [low for _, low, _ in measured(words)] == [value]


def test_a_temperature_behind_a_comma_of_the_label_is_kept() -> None:
    assert measured("Density (liquid, 56 °C): 750 kg/m3") == [("density", 750, {"temperature": "56 °C"})]


TLV = ("TLV-TWA", "ACGIH", 250)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ACGIH TLV-TWA：250 ppm；德国：500 ppm；英国：500 ppm", [TLV]),
        ("ACGIH TLV-TWA：250 ppm；韩国TWA：200 ppm；日本：200 ppm", [TLV]),
        ("OSHA PEL：1000 ppm；加拿大安大略：500 ppm；欧盟：500 ppm", [("PEL", "US-OSHA", 1000)]),
        ("台湾 PEL-TWA：200 ppm", [("PEL-TWA", "TW", 200)]),
        ("水体中MAC：2 mg/L", []),
        ("PC-STEL：1, 000 mg/m³", []),
        ("PC-TWA：300 mg/m³（乙醇：1 000 mg/m³）", [("PC-TWA", "CN", 300)]),
        ("ACGIH TLV-TWA: 250 ppm; EU: 500 ppm; UK: 500 ppm; Japan 200 ppm", [TLV]),
        ("ACGIH TLV-TWA: 250 ppm; Korea: TWA 200 ppm", [TLV]),
        ("Cal/OSHA PEL: 500 ppm TWA", []),
        ("Cal/OSHA: PEL 500 ppm, STEL 750 ppm; Washington State PEL: 750 ppm", []),
        ("Cal/OSHA PEL: 500 ppm; OSHA PEL: 1000 ppm", [("PEL", "US-OSHA", 1000)]),
        ("NIC-2025 TLV-TWA: 100 ppm; TLV-TWA (adopted): 250 ppm", [TLV]),
        ("TLV-TWA: 250 ppm for acetone; 100 ppm for its dimer", [TLV]),
    ],
)
def test_a_limit_goes_to_nobody_but_its_setter(words: str, expected: list[tuple[str, str, float]]) -> None:
    assert limits(words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("丙酮与硝酸仅在加热时剧烈反应。", [("硝酸", True, {"when": "仅在加热时"})]),
        ("丙酮与氯仿剧烈反应。", [("氯仿", True, {})]),
        ("Acetone reacts violently with chloroform only in the presence of a base.",
         [("chloroform", True, {"when": "only in the presence of a base"})]),
        ("禁配物：强氧化剂、强酸及其他活泼物质。", [("强氧化剂", True, {}), ("强酸", True, {})]),
    ],
)  # fmt: skip
def test_a_circumstance_is_no_part_of_a_name(
    words: str, expected: list[tuple[str, bool, dict[str, str]]]
) -> None:
    assert met(words) == expected

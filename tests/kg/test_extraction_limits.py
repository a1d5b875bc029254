"""Exposure limits: kinds, whose they are, fractions, times, and limits of the past.

All pages are made up. Each kind has a neighbour that must still be read.
"""

from __future__ import annotations

from typing import Any

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n"

Limit = tuple[str, str, float]


def limits(words: str, section: str = "") -> list[Draft]:
    chinese = any("一" <= char <= "鿿" for char in words + section)
    body = f"| {words} |\n" if "|" in words and not section else f"\n{words}\n"
    text = (ZH if chinese else EN) + (f"\n## {section}\n" if section else "") + body
    made = document(text, title="丙酮" if chinese else "Acetone", language="zh" if chinese else "en")
    return [d for d in extract(made)[1] if d.relation is Relation.HAS_LIMIT and judge(d, made)[0] is None]


def shown(drafts: list[Draft]) -> list[Limit]:
    return [(d.properties["kind"], d.properties.get("jurisdiction", ""), d.value["min"]) for d in drafts]


def conditions(drafts: list[Draft]) -> list[dict[str, Any]]:
    return [dict(d.value.get("conditions", {})) for d in drafts]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("OSHA PEL | 1000 ppm (2400 mg/m³) TWA", [("PEL-TWA", "US-OSHA", 1000)]),
        ("NIOSH REL | TWA 250 ppm (590 mg/m³)", [("REL-TWA", "US-NIOSH", 250)]),
        ("ACGIH TLV | 250 ppm TWA; 500 ppm STEL", [("TLV-TWA", "ACGIH", 250), ("TLV-STEL", "ACGIH", 500)]),
        ("ACGIH | TWA 250 ppm; STEL 500 ppm", [("TLV-TWA", "ACGIH", 250), ("TLV-STEL", "ACGIH", 500)]),
        ("OSHA PEL-TWA (mg/m³) | 2400", [("PEL-TWA", "US-OSHA", 2400)]),
        ("REL (Recommended) | TWA 1 mg/m3 ST 3 mg/m³", [("REL-TWA", "US-NIOSH", 1), ("REL-STEL", "US-NIOSH", 3)]),
        ("PEL (Permissible) | C 5 ppm (7 mg/m3)", [("PEL-C", "US-OSHA", 5)]),
        ("TLV | 0.1 ppm, as Ceiling value", [("TLV-C", "ACGIH", 0.1)]),
        ("TLV | 250 ppm as TWA, 500 ppm as STEL; A4", [("TLV-TWA", "ACGIH", 250), ("TLV-STEL", "ACGIH", 500)]),
        ("TLV | 20 ppm", [("TLV", "ACGIH", 20)]),
        ("PEL | none", []),
        ("Exposure limits | OSHA PEL: TWA 5 ppm (20 mg/m3); NIOSH REL: C 7 ppm; ST 3 ppm",
         [("PEL-TWA", "US-OSHA", 5), ("REL-C", "US-NIOSH", 7), ("REL-STEL", "US-NIOSH", 3)]),
        ("Exposure limits | Russia MAC 0.1 mg/m3", [("MAC", "RU", 0.1)]),
        ("Exposure limits | MAC 0.1 mg/m3", [("MAC", "", 0.1)]),
        ("PC-TWA（mg/m³） | 300", [("PC-TWA", "CN", 300)]),
        ("短时间接触容许浓度 | 450 mg/m³", [("PC-STEL", "CN", 450)]),
        ("时间加权平均容许浓度（PC-TWA） | 300 mg/m³", [("PC-TWA", "CN", 300)]),
        ("中国MAC（mg/m³） | 2", [("MAC", "CN", 2)]),
        ("前苏联MAC（mg/m³） | 0.1", [("MAC", "SU", 0.1)]),
        ("职业接触限值 | OSHA PEL：1000 ppm；NIOSH REL：250 ppm；ACGIH TLV：200 ppm",
         [("PEL", "US-OSHA", 1000), ("REL", "US-NIOSH", 250), ("TLV", "ACGIH", 200)]),
        # in force once
        ("接触限值 | MAC（1999年前）：10 mg/m3；PC-TWA：5 mg/m3", [("PC-TWA", "CN", 5)]),
        ("Exposure limits | OSHA has no PEL; from 1989 to 1993 a ceiling of 0.3 mg/m3 was in force", []),
        ("TLV-TWA | 0.5 ppm until 2003, now 0.2 ppm", []),
        ("Exposure limits | OSHA PEL (until 1993): 0.3 mg/m3; TLV-TWA 0.2 mg/m3", [("TLV-TWA", "ACGIH", 0.2)]),
    ],
)  # fmt: skip
def test_rows_by_body_and_kind(row: str, expected: list[Limit]) -> None:
    assert sorted(shown(limits(row))) == sorted(expected)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("PC-TWA：300 mg/m³（总尘），150 mg/m³（呼尘）", [{"note": "总尘"}, {"note": "呼尘"}]),
        ("PC-TWA（总尘）：4 mg/m³；PC-TWA（呼尘）：1.5 mg/m³", [{"note": "总尘"}, {"note": "呼尘"}]),
        ("中国MAC(mg/m3)：5[皮]", [{"note": "皮"}]),
        ("OSHA PEL 15 mg/m3 (total), 5 mg/m3 (respirable)", [{"note": "total"}, {"note": "respirable"}]),
        ("REL | C 0.1 ppm [15-minute]", [{"duration": "15-minute"}]),
        ("REL | 0.1 ppm as hydrazoic acid vapor", [{"note": "hydrazoic acid vapor"}]),
        ("PC-TWA 2 mg/m³，以F计", [{"note": "以F计"}]),
        (
            "PEL | 50 ppm for 8 h; 100 ppm peak for 5 min",
            [{"duration": "8 h"}, {"duration": "5 min", "note": "peak"}],
        ),
        ("OSHA PEL 15 mg/m3 (5 ppm)", [{}]),
    ],
)
def test_a_limit_carries_what_it_is_for(row: str, expected: list[dict[str, str]]) -> None:
    assert sorted(map(str, conditions(limits(row)))) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("| 标准 | 类型 | 数值 |\n| --- | --- | --- |\n| OSHA PEL | TWA | 1000 ppm |\n| ACGIH TLV | STEL | 500 ppm |",
         [("PEL-TWA", "US-OSHA", 1000), ("TLV-STEL", "ACGIH", 500)]),
        ("| Source | Limit type | Value | Note |\n| --- | --- | --- | --- |\n| OSHA | PEL-TWA | 1000 ppm | - |",
         [("PEL-TWA", "US-OSHA", 1000)]),
        ("| Agency | Limit |\n| --- | --- |\n| OSHA PEL | 1000 ppm TWA |\n| NIOSH REL | 250 ppm TWA |",
         [("PEL-TWA", "US-OSHA", 1000), ("REL-TWA", "US-NIOSH", 250)]),
        ("| 组分 | OSHA PEL | NIOSH REL | ACGIH TLV |\n| --- | --- | --- | --- |\n| 丙酮 | 1000 ppm | 250 ppm | - |",
         [("PEL", "US-OSHA", 1000), ("REL", "US-NIOSH", 250)]),
        ("| 化学品 | MAC | PC-TWA | PC-STEL |\n| --- | --- | --- | --- |\n| 丙酮 | - | 300 mg/m³ | 450 mg/m³ |",
         [("PC-TWA", "CN", 300), ("PC-STEL", "CN", 450)]),
        # a bare figure has no unit, whatever other pages mean by it
        ("| 化学品 | MAC | PC-TWA | PC-STEL |\n| --- | --- | --- | --- |\n| 丙酮 | - | 300 | 450 |", []),
    ],
)  # fmt: skip
def test_tables_of_limits(table: str, expected: list[Limit]) -> None:
    chinese = any("一" <= char <= "鿿" for char in table)
    section = "第8部分 接触控制/个体防护" if chinese else "SECTION 8: Exposure controls"
    assert shown(limits(table, section)) == expected

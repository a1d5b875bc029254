"""Whose a fact is and under what it holds: components, impurities, suppositions, other solvents, circumstances of labels.

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


def kept(text: str) -> list[Draft]:
    chinese = text.startswith(("# 丙酮", "# 表", "# 氢氟酸", "# 苯胺"))
    title = text.split("\n", 1)[0].strip("# ")
    made = document(text, title=title, language="zh" if chinese else "en")
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def rows(row: str, section: str = "") -> list[Draft]:
    chinese = any("一" <= char <= "鿿" for char in row + section)
    head = (ZH if chinese else EN) + (f"\n## {section}\n" if section else "")
    return kept(head + (f"| {row} |\n" if "|" in row and not section else f"\n{row}\n"))


def objects(drafts: list[Draft], relation: Relation) -> list[str]:
    return sorted(d.object for d in drafts if d.relation is relation and d.polarity is Polarity.POSITIVE)


def values(drafts: list[Draft], prop: str) -> list[tuple[str, Any, dict[str, str]]]:
    return [
        (d.subject, d.value["min"], dict(d.value.get("conditions", {})))
        for d in drafts
        if d.relation is Relation.HAS_MEASUREMENT and d.properties["property"] == prop and "min" in d.value
    ]


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("组分乙醇：严重眼损伤/眼刺激 类别2A（H319）", []),
        ("杂质苯：致癌性 类别1A，H350", []),
        ("若含苯超过0.1%，则为致癌性 类别1A（H350）。", []),
        ("部分企业分类为生殖毒性 类别2（H361）。", []),
        ("可能为致癌性 类别2。", []),
        ("旧分类：急性毒性-经口 类别4（H302）", []),
        ("危险性类别不包括特异性靶器官毒性-一次接触 类别3（H336）。", []),
        ("健康危害：严重眼损伤/眼刺激 类别2A，H319", ["H319", "严重眼损伤/眼刺激 类别2A"]),
        ("H302 吞咽有害，H340 可能导致遗传性缺陷", ["H302", "H340"]),
        ("The component ethanol: Eye Irrit. 2 (H319)", []),
        ("Impurity benzene: Carc. 1A, H350", []),
        ("Silica: STOT RE 1, H372", []),
        ("Acetylene formed on contact with water: H220, H280", []),
        ("Classified by some notifiers as Repr. 2 (H361).", []),
        ("May be Carc. 2 (H351) if it contains benzene.", []),
        ("Specific concentration limits: Skin Corr. 1B, H314: 2 % <= C < 5 %; Eye Irrit. 2, H319: C < 2 %", []),
        ("For concentrations of 50 % and above: Ox. Liq. 2, H272", []),
        ("The harmonised classification does not include STOT SE 3, H336.", []),
        ("Health hazards: Eye Irrit. 2, H319", ["Eye Irrit. 2", "H319"]),
        ("H302 Harmful if swallowed, H304 May be fatal if swallowed and enters airways", ["H302", "H304"]),
    ],
)  # fmt: skip
def test_classes_and_codes_of_something_else_or_under_a_supposition(line: str, codes: list[str]) -> None:
    chinese = any("一" <= char <= "鿿" for char in line)
    found = rows(line, "第2部分 危险性概述" if chinese else "SECTION 2: Hazards identification")
    assert objects(found, Relation.CLASSIFIED_AS) + objects(found, Relation.HAS_H) == sorted(
        codes, key=lambda code: (code[:2] in {"H2", "H3"}, code)
    )


def test_a_code_in_brackets_takes_no_text_from_what_follows() -> None:
    (draft,) = (
        d
        for d in rows("Acute Tox. 2 (H330), Carc. 2", "SECTION 2: Hazards identification")
        if d.relation is Relation.HAS_H
    )
    assert dict(draft.properties) == {"code": "H330"}


def test_the_route_behind_a_category_is_read() -> None:
    found = rows("Acute Tox. 4 (oral), H302", "SECTION 2: Hazards identification")
    assert [d.properties.get("route") for d in found if d.relation is Relation.CLASSIFIED_AS] == ["oral"]


@pytest.mark.parametrize(
    ("row", "prop", "expected"),
    [
        ("相对密度 | 0.79（水=1）；蒸气 2.0", "relative_density", [("", 0.79, {})]),
        ("Relative density | 0.79 (water = 1) at 20 °C; vapour 2.0", "relative_density", [("", 0.79, {"temperature": "20 °C"})]),
        ("沸点（2.7 kPa） | 30℃；56℃", "boiling_point", [("", 30, {"pressure": "2.7 kPa"})]),
        ("Boiling point (20 mmHg) | -20 °C; 56 °C", "boiling_point", [("", -20, {"pressure": "20 mmHg"})]),
        ("Vapour pressure | 233 hPa at 20 °C (butanone)", "vapour_pressure", []),
        ("Vapour pressure | 233 hPa at 20 °C (calculated)", "vapour_pressure", [("", 233, {"temperature": "20 °C"})]),
        ("Flash point | N/A; 1M solution in THF: -17 °C", "flash_point", []),
        ("Explosive limits | lower 2.5 vol%; upper 12.8 vol%", "upper_explosive_limit", [("", 12.8, {"basis": "volume"})]),
        ("爆炸极限 | 上限：12.8%；下限：2.5%", "lower_explosive_limit", [("", 2.5, {})]),
        ("爆炸极限 | 2.5%~12.8% 自燃点 465 ℃", "lower_explosive_limit", [("", 2.5, {})]),
        # a lost sign is another value
        ("n-辛醇/水分配系数 | lg P=-0.82/-0.66", "log_kow", []),
        ("log Kow | -0.24", "log_kow", [("", -0.24, {})]),
    ],
)  # fmt: skip
def test_values_of_the_vapour_under_a_label_or_of_another(row: str, prop: str, expected: list[Any]) -> None:
    assert values(rows(row), prop) == expected


@pytest.mark.parametrize(
    ("sentence", "prop", "expected"),
    [
        ("苯胺在2 kPa下的沸点为77℃。", "boiling_point", [("", 77, {"pressure": "2 kPa"})]),
        ("苯胺的沸点（1.3 kPa）为71℃。", "boiling_point", [("", 71, {"pressure": "1.3 kPa"})]),
        ("苯胺的开杯闪点为79℃。", "flash_point", [("", 79, {"method": "open cup"})]),
        ("苯胺的闪点（闭杯）为70℃。", "flash_point", [("", 70, {"method": "closed cup"})]),
        ("苯胺的闪点为70℃。", "flash_point", [("", 70, {})]),
        ("减压下苯胺的沸点为68℃。", "boiling_point", []),
        ("Aniline is oily. At 2 kPa the boiling point is 77 °C.", "boiling_point", [("", 77, {"pressure": "2 kPa"})]),
        ("Aniline is oily. Its flash point (open cup) is 79 °C.", "flash_point", [("", 79, {"method": "open cup"})]),
        ("Aniline is oily. Its closed-cup flash point is 70 °C.", "flash_point", [("", 70, {"method": "closed cup"})]),
        ("Aniline has a melting point of -6 °C and a density of 1.02 g/cm3.", "density", [("", 1.02, {})]),
    ],
)  # fmt: skip
def test_circumstances_in_prose(sentence: str, prop: str, expected: list[Any]) -> None:
    head = (
        "# 苯胺\n\nCAS号：62-53-3\n\n## 性质\n\n"
        if sentence[0] > "z"
        else "# Aniline\n\nCAS No.: 62-53-3\n\n## Properties\n\n"
    )
    assert values(kept(head + sentence + "\n"), prop) == expected


def test_circumstances_in_the_header_of_a_column() -> None:
    text = (
        "# 表1 溶剂\n\n| 溶剂 | CAS号 | 沸点（2.7 kPa）（℃） | 闪点（开杯）（℃） | pH（1%溶液） |\n"
        "| --- | --- | --- | --- | --- |\n| 乙酸 | 64-19-7 | 25 | 43 | 2.8 |\n| 丙酸 | 79-09-4 | 50 | 58 | 2.9 |\n"
    )
    found = kept(text)
    assert values(found, "boiling_point")[0] == ("乙酸", 25, {"pressure": "2.7 kPa"})
    assert values(found, "flash_point")[0] == ("乙酸", 43, {"method": "open cup"})
    assert values(found, "ph")[0] == ("乙酸", 2.8, {"concentration": "1%"})


@pytest.mark.parametrize(
    ("line", "doses"),
    [
        ("类似物硝酸钾 LD50：3750 mg/kg（大鼠经口）", []),
        ("其同系物丁酮的LD50为2737 mg/kg（大鼠经口）。", []),
        ("LC50（甲苯，虹鳟）：5.8 mg/L，96h", []),
        ("TDLo：52 mg/kg（大鼠经口），无影响", []),
        ("LD50：5800 mg/kg（大鼠经口）", [5800]),
        ("10%溶液 LD50：325 mg/kg（大鼠经口）", []),
        ("LD50 oral rat: 5800 mg/kg (by analogy with butanone)", []),
        ("LC50 inhalation rat: 3124 ppm/1h (hydrogen chloride gas)", []),
        ("LC50 (toluene, trout): 5.8 mg/L, 96 h", []),
        ("LD50 oral rat: 5800 mg/kg", [5800]),
    ],
)
def test_doses_of_analogues_and_of_what_brackets_name(line: str, doses: list[float]) -> None:
    chinese = any("一" <= char <= "鿿" for char in line)
    found = rows(line, "第11部分 毒理学信息" if chinese else "SECTION 11: Toxicological information")
    assert [d.value["min"] for d in found if d.relation is Relation.HAS_TOXICITY] == doses


def test_a_dose_in_several_species_is_of_none_alone() -> None:
    found = [
        d for d in rows("LD50 | 2085–5300 mg/kg (oral in rats, mice)") if d.relation is Relation.HAS_TOXICITY
    ]
    assert [d.properties.get("species") for d in found] == [None]


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("苯：PC-TWA 3 mg/m³", []),
        ("PC-TWA 300 mg/m³；丁酮PC-TWA 400 mg/m³", [300]),
        ("工作场所PC-TWA 300 mg/m³", [300]),
        ("铀（可溶性化合物）TLV-TWA 0.2 mg/m³；TLV-TWA 1187 mg/m³", [1187]),
        ("Butanone TLV-TWA 200 ppm", []),
        ("Butanone: TLV-TWA 200 ppm", []),
        ("TLV-TWA 250 ppm", [250]),
    ],
)
def test_limits_of_something_else(line: str, limits: list[float]) -> None:
    chinese = any("一" <= char <= "鿿" for char in line)
    found = rows(line, "第8部分 接触控制" if chinese else "SECTION 8: Exposure controls")
    assert [d.value["min"] for d in found if d.relation is Relation.HAS_LIMIT] == limits


@pytest.mark.parametrize(
    ("line", "media"),
    [
        ("禁止用水、泡沫和酸碱灭火剂灭火。", [("水", {}), ("泡沫", {})]),
        ("不能用干粉（磷酸铵盐）、二氧化碳。", [("二氧化碳", {})]),
        ("Do not use water or foam.", [("foam", {}), ("water", {})]),
        ("Do not use water on small fires or foam.", [("water", {"when": "on small fires or foam"})]),
    ],
)
def test_a_prohibition_of_several_media(line: str, media: list[tuple[str, dict[str, str]]]) -> None:
    found = rows(line, "第5部分 消防措施" if line[0] > "z" else "SECTION 5: Fire-fighting measures")
    made = [(d.object, dict(d.conditions)) for d in found if d.relation is Relation.NOT_EXTINGUISHED_BY]
    assert sorted(made, key=str) == sorted(media, key=str)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("禁配物 | 水、醇类；与铜、银无反应", ["水", "醇类"]),
        ("禁配物 | 碱类、铝；对铁、铜无腐蚀", ["碱类", "铝"]),
        ("Incompatible materials | metals, bases; stainless steel 316 is suitable", ["bases", "metals"]),
        ("Incompatible materials | water, acids, unaffected by dry air", ["acids", "water"]),
    ],
)
def test_what_a_list_says_is_harmless(row: str, expected: list[str]) -> None:
    made = [
        d for d in rows(row) if d.relation is Relation.INCOMPATIBLE_WITH and d.polarity is Polarity.POSITIVE
    ]
    assert sorted(d.object for d in made) == sorted(expected)
    assert not any("listing" in d.properties for d in made)


def test_a_list_with_an_exception_or_a_refused_member_is_not_complete() -> None:
    for line, section in (
        ("Store apart from water, acids (except boric acid), halogenated solvents.", "SECTION 7: Storage"),
        ("不可与酸类、强氧化剂混存；硝酸盐除外。", "第7部分 操作处置与储存"),
    ):
        made = [d for d in rows(line, section) if d.relation is Relation.STORE_APART_FROM]
        assert made
        assert not any("listing" in d.properties for d in made), line
    whole = rows("Keep apart from acids, bases.", "SECTION 7: Storage")
    assert all(d.properties.get("listing") for d in whole if d.relation is Relation.STORE_APART_FROM)


@pytest.mark.parametrize(
    ("section", "line", "relation", "expected"),
    [
        ("第8部分 接触控制", "戴橡胶手套，但不宜戴布手套。", Relation.REQUIRES_PPE, ["橡胶手套"]),
        ("SECTION 8: Exposure controls", "Never wear cotton gloves.", Relation.REQUIRES_PPE, []),
        ("第4部分 急救措施", "眼睛接触：同皮肤接触。", Relation.FIRST_AID, []),
        ("SECTION 4: First aid measures", "Eye contact: As for skin contact.", Relation.FIRST_AID, []),
        ("SECTION 4: First aid measures", "Eye contact: Rinse with water.", Relation.FIRST_AID, ["Rinse with water."]),
    ],
)  # fmt: skip
def test_gear_that_is_advised_against_and_references(
    section: str, line: str, relation: Relation, expected: list[str]
) -> None:
    assert objects(rows(line, section), relation) == expected


@pytest.mark.parametrize(
    ("row", "uses"),
    [
        ("用途 | 有机合成原料。以前用作麻醉剂。", ["有机合成原料"]),
        ("用途 | 用作杀虫剂；在茶树、蔬菜上禁用", ["用作杀虫剂"]),
        ("Uses | Solvent; not for food", ["Solvent"]),
        ("Uses | Solvent", ["Solvent"]),
    ],
)
def test_uses_of_a_field_end_where_one_is_prohibited_or_past(row: str, uses: list[str]) -> None:
    assert objects(rows(row), Relation.USED_FOR) == uses


@pytest.mark.parametrize(
    ("group", "expected"),
    [("Ⅱ或Ⅲ", ""), ("II (III for concentrations < 25 %)", ""), ("Ⅱ类", "II"), ("II", "II"), ("II (medium danger)", "II")],
)  # fmt: skip
def test_several_packing_groups_are_none(group: str, expected: str) -> None:
    text = f"{EN}\n## SECTION 14: Transport information\n\nUN number: 1090\n\nPacking group: {group}\n"
    assert [d.properties["packing_group"] for d in kept(text) if d.relation is Relation.SHIPPED_AS] == [
        expected
    ]


def test_names_of_a_solution_and_of_what_is_different_are_no_aliases() -> None:
    zh = [d for d in rows("别名 | 二甲酮；丙酮水（溶液）") if d.relation is Relation.HAS_ALIAS]
    assert sorted(d.object for d in zh if d.properties["kind"] == "name") == ["二甲酮"]
    en = [d for d in rows("Synonyms | propanone (butanone is different)") if d.relation is Relation.HAS_ALIAS]
    assert [d.object for d in en if d.properties["kind"] == "name"] == ["propanone"]


def test_the_number_of_what_is_dissolved_is_not_a_solution_s() -> None:
    text = (
        "# Table 1 Solvents\n\n| Solvent | CAS No. | Flash point (°F) | Boiling point (°C) |\n| --- | --- | --- | --- |\n"
        "| Acetone | 67-64-1 | 0 | 56 |\n| Ethanol 70% | 64-17-5 | 62 | 80 |\n"
    )
    found = [(d.subject, d.object) for d in kept(text) if d.relation is Relation.HAS_ALIAS]
    assert found == [("Acetone", "67-64-1")]


def test_a_share_in_the_name_makes_a_solution() -> None:
    zh = kept(
        "# 氢氟酸（40%）\n\n| 中文名 | 氢氟酸（40%） |\n| --- | --- |\n| CAS号 | 7664-39-3 |\n| 沸点 | 112℃ |\n"
    )
    assert not [d for d in zh if d.relation is Relation.HAS_ALIAS and d.properties["kind"] == "cas"]
    pure = kept(EN.replace("| Name | Acetone |", "| Name | Acetone 99.5% |"))
    assert [d.object for d in pure if d.relation is Relation.HAS_ALIAS and d.properties["kind"] == "cas"] == [
        "67-64-1"
    ]


def test_a_sheet_with_several_components_is_a_mixture_s() -> None:
    text = (
        "# Cleaner X\n\n## SECTION 1: Identification\n\nProduct name: Cleaner X\n\n## SECTION 2: Hazards identification\n\n"
        "Flam. Liq. 2\n\n## SECTION 3: Composition\n\n| Component | CAS No. | Concentration % |\n| --- | --- | --- |\n"
        "| Acetone | 67-64-1 | 30 - 60 |\n| Methanol | 67-56-1 | < 3 |\n\n## SECTION 9: Properties\n\n"
        "Vapour pressure: 233 hPa at 20 °C (acetone)\n\n## SECTION 11: Toxicological information\n\nAcetone: LD50 oral rat 5800 mg/kg\n"
    )
    found = kept(text)
    assert objects(found, Relation.HAS_COMPONENT) == ["Acetone", "Methanol"]
    assert [(d.subject, d.value["min"]) for d in found if d.relation is Relation.HAS_TOXICITY] == [
        ("Acetone", 5800)
    ]
    assert values(found, "vapour_pressure") == []


def test_a_transport_list_with_chinese_headers() -> None:
    text = (
        "# 表2 危险货物品名表\n\n| 联合国编号 | 名称和说明 | 类别或项别 | 包装类别 |\n| --- | --- | --- | --- |\n"
        "| 1090 | 丙酮 | 3 | Ⅱ |\n| 1987 | 醇类，未另作规定的 | 3 | Ⅱ |\n| 1230 | 甲醇 | 3 | Ⅱ |\n"
    )
    found = [
        (d.subject, d.object, d.properties["packing_group"])
        for d in kept(text)
        if d.relation is Relation.SHIPPED_AS
    ]
    assert ("丙酮", "UN1090", "II") in found
    assert not any("醇类" in subject for subject, _, _ in found)


def test_limits_with_a_column_for_each_kind() -> None:
    zh = (
        "# 表1 职业接触限值\n\n| 序号 | 中文名 | CAS号 | MAC（mg/m³） | PC-TWA（mg/m³） | 备注 |\n| --- | --- | --- | --- | --- | --- |\n"
        "| 1 | 氨 | 7664-41-7 | — | 20 | — |\n| 2 | 氯 | 7782-50-5 | 1 | — | — |\n| 3 | 苯 | 71-43-2 | — | 3 | 皮 |\n"
        "| 4 | 氟化物（不含氟化氢） | — | — | 2 | — |\n| 5 | 铅尘和铅烟 | — | — | 0.05 | — |\n"
    )
    found = [d for d in kept(zh) if d.relation is Relation.HAS_LIMIT]
    assert [(d.subject, d.properties["kind"], d.value["min"], d.value["unit"]) for d in found][:3] == [
        ("氨", "PC-TWA", 20, "mg/m³"), ("氯", "MAC", 1, "mg/m³"), ("苯", "PC-TWA", 3, "mg/m³"),
    ]  # fmt: skip
    assert [d.value.get("conditions") for d in found][2:] == [{"note": "皮"}, {"note": "不含氟化氢"}]
    en = (
        "# Table 1 Limits\n\n| Substance | CAS No. | TLV-TWA (ppm) | TLV-STEL (ppm) |\n| --- | --- | --- | --- |\n"
        "| Ammonia | 7664-41-7 | 25 | 35 |\n| Chlorine | 7782-50-5 | 0.1 | not established |\n"
    )
    found = [d for d in kept(en) if d.relation is Relation.HAS_LIMIT]
    assert [(d.subject, d.properties["kind"], d.value["min"]) for d in found] == [
        ("Ammonia", "TLV-TWA", 25), ("Ammonia", "TLV-STEL", 35), ("Chlorine", "TLV-TWA", 0.1),
    ]  # fmt: skip


def test_a_body_s_own_kind_of_limit_takes_no_other_s_prefix() -> None:
    found = [
        d
        for d in rows("OSHA PEL: 0.1 ppm TWA; NIOSH REL 0.2 ppm; IDLH 5 ppm. The vapour pressure is 6.8 bar.")
        if d.relation is Relation.HAS_LIMIT
    ]
    assert [(d.properties["kind"], d.value["min"]) for d in found] == [
        ("PEL-TWA", 0.1),
        ("REL", 0.2),
        ("IDLH", 5),
    ]
    assert not any("pressure" in d.value.get("conditions", {}) for d in found)


def test_the_number_of_another_form_is_no_entry_of_its_own() -> None:
    for row in ("UN号 | 1090；丙酮水：1993", "UN number | 1090; ethereal solution: 1993"):
        assert objects(rows(row), Relation.SHIPPED_AS) == ["UN1090"]


def test_a_denied_reaction_names_the_matter_alone() -> None:
    found = rows("Acetone does not react with nickel or with polyethylene below 60 °C.")
    assert sorted(d.object for d in found if d.polarity is Polarity.NEGATIVE) == ["nickel", "polyethylene"]

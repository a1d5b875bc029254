"""Lists of H statements, pictograms and classes that a sheet gives whole, and those in doubt.

All pages are made up. A list called whole proves what is not in it, so every trap
is one in which something would be denied that the page says.
"""

from __future__ import annotations

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n\n## 第2部分 危险性概述\n\n{}\n\n## 第4部分 急救措施\n\n吸入：移至新鲜空气处。\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n\n## SECTION 2: Hazards identification\n\n{}\n\n## SECTION 4: First aid measures\n\nInhalation: Move to fresh air.\n"


def kept(body: str, page: str = "") -> list[Draft]:
    page = page or (ZH if any("一" <= char <= "鿿" for char in body) else EN)
    title = page.split("\n", 1)[0].strip("# ")
    made = document(page.format(body), title=title, language="zh" if page == ZH else "en")
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def lists(drafts: list[Draft], relation: Relation) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for draft in drafts:
        if draft.relation is relation and "listing" in draft.properties:
            found.setdefault(draft.properties["listing"], []).append(draft.object_key)
    return [sorted(keys) for keys in found.values()]


@pytest.mark.parametrize(
    "body",
    [
        "危险性说明：H225 高度易燃液体和蒸气；H319 造成严重眼刺激；H336 可能造成昏昏欲睡或眩晕",
        "危险性说明：H225、H319、H336\n防范说明：P210 远离热源。",
        "| 象形图 | 火焰 |\n| --- | --- |\n| 危险性说明 | H225 高度易燃液体和蒸气；H319 造成严重眼刺激；H336 可能造成昏昏欲睡或眩晕 |\n| 防范说明 | P210 |",
        "危险性说明：高度易燃液体和蒸气（H225）；造成严重眼刺激（H319）；可能造成昏昏欲睡或眩晕（H336）",
        "Hazard statements: H225, H319, H336",
        "Hazard statements: H225 Highly flammable liquid and vapour. H319 Causes serious eye irritation. H336 May cause drowsiness or dizziness.\nPrecautionary statements: P210",
        "| Hazard statements | H225 - Highly flammable liquid and vapour; H319 - Causes serious eye irritation; H336 - May cause drowsiness or dizziness |\n| --- | --- |\n| Signal word | Danger |",
    ],
)  # fmt: skip
def test_statements_of_a_list_read_whole(body: str) -> None:
    assert lists(kept(body), Relation.HAS_H) == [["H225", "H319", "H336"]]


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("危险性说明：H280 内装加压气体；遇热可能爆炸；H220 极易燃气体", ["H280", "H220"]),
        ("Hazard statements: H280 Contains gas under pressure; may explode if heated; H220 Extremely flammable gas", ["H280", "H220"]),
        ("危险性说明：H301+H311+H331 吞咽、皮肤接触或吸入会中毒", []),
        ("危险性说明：H301+H311+H331 吞咽或皮肤接触或吸入会中毒；H370 会损害器官（眼睛、皮肤）", ["H301+H311+H331", "H370"]),
        ("Hazard statements: H301+H311 Toxic if swallowed or in contact with skin; H370 Causes damage to organs (eyes)", ["H301+H311", "H370"]),
    ],
)  # fmt: skip
def test_statements_of_two_halves_and_joined_ones(body: str, codes: list[str]) -> None:
    assert lists(kept(body), Relation.HAS_H) == ([sorted(codes)] if codes else [])


@pytest.mark.parametrize(
    "body",
    [
        "危险性说明：H225 高度易燃液体和蒸气；H319 造成严重眼刺激等",
        "危险性说明：H225 高度易燃液体和蒸气；造成严重眼刺激",
        "危险性说明：H225 高度易燃液体和蒸气，造成严重眼刺激；H336 可能造成昏昏欲睡或眩晕",
        "危险性说明：H225 吞咽会中毒",
        "危险性说明：H225、319、336",
        "危险性说明：H225至H336",
        "危险性说明：H225或H226",
        "危险性说明：H225 高度易燃液体和蒸气；H 319 造成严重眼刺激",
        "危险性说明：H225 高度易燃液体和蒸气；P210 远离热源",
        "危险性说明：H225 高度易燃液体和蒸气；若含苯则H350",
        "危险性说明：H225 高度易燃液体和蒸气\n造成严重眼刺激",
        "危险性说明：H225 高度易燃液体和蒸气\n\nH319 造成严重眼刺激",
        "危险性说明：H225、H319\n\n防范说明：P210\n\n危险性说明：H225、H336",
        "危险性说明：H225、H319，",
        "组分信息\n\n危险性说明：H225、H319",
        "组分乙醇危险性说明：H225、H319",
        "| 乙醇 | 危险性说明 | H225、H319 |\n| --- | --- | --- |",
        "| 危险性说明 | H225、H319 |\n| --- | --- |\n| | 可能造成昏昏欲睡 |",
        "危险性说明：主要有H225、H319",
        "危险性说明：H225、H319（详见第16部分）",
        "Hazard statements: H225 Highly flammable liquid and vapour; H319 Causes serious eye irritation; etc.",
        "Hazard statements: H225, H319, among others",
        "Hazard statements: include H225, H319",
        "Hazard statements: H225 Highly flammable liquid and vapour; Causes serious eye irritation",
        "Hazard statements: H225 Highly flammable liquid and vapour and causes skin irritation",
        "Hazard statements: H302 Toxic if swallowed",
        "Hazard statements: H225 to H336",
        "Hazard statements: H225 or H226",
        "Hazard statements: H225/319/336",
        "Hazard statements: H225, R36",
        "Hazard statements: H225, H319, EUH066",
        "Hazard statements: H225, H319, P210",
        "Hazard statements: H225; H350 if it contains benzene above 0.1 %",
        "Hazard statements: H225, H319\nMay cause drowsiness",
        "Hazard statements: H225, H319,",
        "Hazard statements: H225, H319\n\nHazard statements: H225, H336",
        "Ingredients: see below\n\nHazard statements: H225, H319",
        "| Ethanol | Hazard statements | H225, H319 |\n| --- | --- | --- |",
    ],
)  # fmt: skip
def test_a_list_of_statements_in_doubt_is_no_list(body: str) -> None:
    assert not lists(kept(body), Relation.HAS_H)


def test_a_code_elsewhere_speaks_against_the_list() -> None:
    page = ZH + "\n## 第11部分 毒理学信息\n\n皮肤：H315 造成皮肤刺激\n"
    assert not lists(kept("危险性说明：H225、H319", page), Relation.HAS_H)
    cut = ZH.split("\n\n## 第4部分", 1)[0]
    assert not lists(kept("危险性说明：H225 高度易燃液体和蒸气；H319 造成严重眼", cut), Relation.HAS_H)


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("GHS危险性类别：易燃液体，类别2；严重眼损伤/眼刺激，类别2A", ["flammable_liquids/2", "eye_damage/2A"]),
        ("| GHS危险性类别 | 易燃液体 类别2；严重眼损伤/眼刺激 类别2A |\n| --- | --- |\n| 象形图 | 火焰 |", ["flammable_liquids/2", "eye_damage/2A"]),
        ("GHS classification: Flammable liquids (Category 2), H225; Eye irritation (Category 2), H319", ["flammable_liquids/2", "eye_damage/2"]),
        ("Classification: Flam. Liq. 2; Eye Irrit. 2", ["flammable_liquids/2", "eye_damage/2"]),
        ("GHS危险性类别：易燃液体，类别2；生殖毒性", []),
        ("GHS危险性类别：易燃液体，类别2；严重眼损伤/眼刺激，类别2A等", []),
        ("GHS危险性类别：易燃液体，类别2；杂质苯：致癌性，类别1A", []),
        ("GHS危险性类别：易燃液体，类别2（若含苯：致癌性，类别1A）", []),
        ("GHS危险性类别：易燃液体，类别2\n\nGHS危险性类别：易燃液体，类别3", []),
        ("Classification: Flam. Liq. 2; Eye Irrit.", []),
        ("Classification: Flam. Liq. 2; not classified as Carc. 2", []),
        ("Classification: Flam. Liq. 2; Carc. 1A if it contains benzene", []),
        ("Classification: Flam. Liq. 2; and others", []),
    ],
)  # fmt: skip
def test_classes_of_a_classification(body: str, keys: list[str]) -> None:
    assert lists(kept(body), Relation.CLASSIFIED_AS) == ([sorted(keys)] if keys else [])


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("象形图：火焰、感叹号", ["GHS02", "GHS07"]),
        ("象形图：GHS02、GHS07", ["GHS02", "GHS07"]),
        ("Pictograms: flame; exclamation mark", ["GHS02", "GHS07"]),
        ("Pictograms: GHS02 flame, GHS07 exclamation mark", ["GHS02", "GHS07"]),
        ("象形图：火焰、菱形", []),
        ("象形图：火焰等", []),
        ("象形图：火焰、感叹号\n\n象形图：火焰", []),
        ("Pictograms: GHS02 GHS07", []),
        ("Pictograms: flame; fish and tree", []),
        ("Pictograms: GHS02 corrosion", []),
    ],
)
def test_pictograms_of_a_label(body: str, keys: list[str]) -> None:
    assert lists(kept(body), Relation.SHOWS_PICTOGRAM) == ([sorted(keys)] if keys else [])


@pytest.mark.parametrize(
    ("label", "value", "shipped"),
    [
        ("运输类别", "8（6.1）", "8"),
        ("运输类别", "6.1", "6.1"),
        ("运输类别", "3", ""),  # the road rules have a transport category of this name
        ("运输类别", "2（D/E）", ""),
        ("运输危险性类别", "3", "3"),
        ("ADR class", "8", "8"),
        ("IMDG class", "6.1", "6.1"),
        ("DOT hazard class", "3", "3"),
    ],
)
def test_transport_class_by_its_labels(label: str, value: str, shipped: str) -> None:
    chinese = not label.isascii()
    section = "第14部分 运输信息" if chinese else "SECTION 14: Transport information"
    number = "UN编号：1090" if chinese else "UN number: 1090"
    page = (ZH if chinese else EN) + f"\n## {section}\n\n{number}\n{label}: {value}\n"
    (draft,) = [d for d in kept("", page) if d.relation is Relation.SHIPPED_AS]
    assert draft.properties["hazard_class"] == shipped

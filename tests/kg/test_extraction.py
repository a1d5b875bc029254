"""Rules on data sheets and articles in both languages: what they find and what they must leave out."""

from __future__ import annotations

from typing import Any

import pytest

from kg.extraction import Draft, extract
from kg.extraction.evidence import judge
from kg.schema import DropReason, Modality, Polarity, Relation
from tests.kg.documents import SDS_EN, SDS_ZH, document


def kept(text: str, **options: Any) -> list[Draft]:
    """Proved drafts of a text."""
    made = document(text, **options)
    return [draft for draft in extract(made)[1] if judge(draft, made)[0] is None]


def of(drafts: list[Draft], relation: Relation, **properties: str) -> list[Draft]:
    """Drafts of a relation with these properties."""
    return [
        d
        for d in drafts
        if d.relation is relation and all(d.properties.get(k) == v for k, v in properties.items())
    ]


@pytest.fixture(scope="module")
def zh() -> list[Draft]:
    return kept(SDS_ZH, title="甲醇安全技术说明书")


@pytest.fixture(scope="module")
def en() -> list[Draft]:
    return kept(SDS_EN, title="Safety Data Sheet: Ammonia, anhydrous", language="en")


def test_subject_of_a_sheet() -> None:
    subject, _ = extract(document(SDS_ZH, title="甲醇安全技术说明书"))
    assert subject is not None
    assert (subject.name, subject.cas, subject.mixture) == ("甲醇", "67-56-1", False)


def test_identity(zh: list[Draft]) -> None:
    found = {
        d.properties["kind"]: d.object for d in of(zh, Relation.HAS_ALIAS) if d.properties["kind"] != "name"
    }
    assert found == {"cas": "67-56-1", "ec": "200-659-6", "formula": "CH4O"}
    assert {d.object for d in of(zh, Relation.HAS_ALIAS, kind="name")} == {"Methanol", "木醇", "木精"}


@pytest.mark.parametrize(
    ("prop", "low", "high", "unit", "conditions"),
    [
        ("melting_point", -97.8, -97.8, "°C", {}),
        ("boiling_point", 64.7, 64.7, "°C", {"pressure": "101.3 kPa"}),
        ("flash_point", 11, 11, "°C", {"method": "closed cup"}),
        ("lower_explosive_limit", 6.0, 6.0, "%", {"basis": "volume"}),
        ("upper_explosive_limit", 36.5, 36.5, "%", {"basis": "volume"}),
        ("vapour_pressure", 12.3, 12.3, "kPa", {"temperature": "20 °C"}),
        ("molar_mass", 32.04, 32.04, "g/mol", {}),
    ],
)
def test_measurements(
    zh: list[Draft], prop: str, low: float, high: float, unit: str, conditions: dict[str, str]
) -> None:
    (draft,) = of(zh, Relation.HAS_MEASUREMENT, property=prop)
    assert (draft.value["min"], draft.value["max"], draft.value["unit"]) == (low, high, unit)
    assert draft.value.get("conditions", {}) == conditions


def test_no_data_is_recorded_and_never_kept(zh: list[Draft]) -> None:
    assert not of(zh, Relation.HAS_MEASUREMENT, property="ph")
    made = document(SDS_ZH)
    reasons = {d.properties.get("property"): judge(d, made)[0] for d in extract(made)[1]}
    assert reasons["ph"] is DropReason.NO_DATA


def test_hazards(zh: list[Draft], en: list[Draft]) -> None:
    assert {d.object_key for d in of(zh, Relation.CLASSIFIED_AS)} == {
        "flammable_liquids/2",
        "acute_toxicity/3/oral",
    }
    assert {d.object_key for d in of(en, Relation.CLASSIFIED_AS)} == {
        "flammable_gases/2", "gases_under_pressure/liquefied", "acute_toxicity/3/inhalation",
    }  # fmt: skip
    assert {d.object_key for d in of(zh, Relation.HAS_H)} == {"H225", "H301"}
    assert {d.object_key for d in of(zh, Relation.HAS_P)} == {"P210", "P301+P310"}
    assert {d.object_key for d in of(zh, Relation.SHOWS_PICTOGRAM)} == {"GHS02", "GHS06"}


def test_first_aid_by_route(zh: list[Draft], en: list[Draft]) -> None:
    assert {d.properties["route"]: d.object for d in of(zh, Relation.FIRST_AID)} == {
        "skin": "脱去污染的衣着，用肥皂水和清水彻底冲洗皮肤。", "ingestion": "饮足量温水，禁止催吐。就医。",
    }  # fmt: skip
    assert {d.properties["route"] for d in of(en, Relation.FIRST_AID)} == {
        "inhalation"
    }  # ingestion: not applicable


def test_media_meet_across_languages(zh: list[Draft], en: list[Draft]) -> None:
    assert {d.object_key for d in of(zh, Relation.EXTINGUISHED_BY)} == {
        "agent:alcohol_resistant_foam", "agent:dry_powder", "agent:co2", "agent:sand",
    }  # fmt: skip
    assert {d.object_key for d in of(en, Relation.EXTINGUISHED_BY)} == {
        "agent:water_spray",
        "agent:dry_powder",
        "agent:co2",
    }
    assert [d.object_key for d in of(zh, Relation.NOT_EXTINGUISHED_BY)] == ["agent:water_jet"]
    assert not of(en, Relation.NOT_EXTINGUISHED_BY)  # "on the leak" is not said of a fire


def test_incompatible_lists_and_listing(zh: list[Draft], en: list[Draft]) -> None:
    for drafts, keys in ((zh, {"group:strong_oxidizer", "group:strong_acid", "group:acid_anhydride", "group:alkali_metal"}),
                         (en, {"group:strong_oxidizer", "group:acid", "group:halogen"})):  # fmt: skip
        found = [d for d in of(drafts, Relation.INCOMPATIBLE_WITH) if d.polarity is Polarity.POSITIVE]
        assert {d.object_key for d in found} == keys
        assert len({d.properties["listing"] for d in found}) == 1


def test_negative_statements_are_negative(zh: list[Draft], en: list[Draft]) -> None:
    (water,) = [d for d in of(zh, Relation.INCOMPATIBLE_WITH) if d.polarity is Polarity.NEGATIVE]
    assert water.object == "水"
    found = [d for d in of(en, Relation.INCOMPATIBLE_WITH) if d.polarity is Polarity.NEGATIVE]
    assert {d.object for d in found} == {"iron", "steel"}
    assert {d.conditions["when"] for d in found} == {"Dry ammonia"}  # dry only: never a plain "no"


def test_storage_protection_limits_toxicity_transport(zh: list[Draft], en: list[Draft]) -> None:
    apart = of(zh, Relation.STORE_APART_FROM)
    assert {d.object for d in apart} == {"氧化剂", "酸类", "碱金属"}
    assert {d.modality for d in apart} == {Modality.MUST}
    respirator, gloves = of(zh, Relation.REQUIRES_PPE)
    assert respirator.object == "过滤式防毒面具（半面罩）"
    assert respirator.conditions == {"when": "空气中浓度超标时"}
    assert gloves.object == "橡胶耐油手套"
    assert [d.object for d in of(en, Relation.REQUIRES_PPE)] == ["cold-insulating butyl rubber gloves"]
    (limit,) = of(zh, Relation.HAS_LIMIT)
    assert (limit.properties, limit.value["min"]) == ({"kind": "PC-TWA", "jurisdiction": "CN"}, 25)
    assert {(d.properties["kind"], d.value["min"]) for d in of(en, Relation.HAS_LIMIT)} == {
        ("PEL-TWA", 50),
        ("IDLH", 300),
    }
    doses = {d.properties["endpoint"]: d for d in of(zh, Relation.HAS_TOXICITY)}
    assert doses["LD50"].value["min"] == 5628
    assert doses["LC50"].value["conditions"] == {"species": "rat", "route": "inhalation", "duration": "4 h"}
    (shipped,) = of(zh, Relation.SHIPPED_AS)
    assert shipped.object_key == "UN1230/3/II"


def test_quotes_are_exact(zh: list[Draft]) -> None:
    text = document(SDS_ZH).text
    for draft in zh:
        assert 0 <= draft.start < draft.end <= len(text)


def test_traditional_chinese_reads_like_simplified() -> None:
    text = "# 鹽酸\n\n| 化學品中文名稱 | 鹽酸 |\n| --- | --- |\n| CAS號 | 7647-01-0 |\n| 禁配物 | 鹼類、強氧化劑 |\n| 熔點 | -35 ℃ |"
    drafts = kept(text, title="鹽酸", language="zh-Hant")
    assert {d.object for d in of(drafts, Relation.INCOMPATIBLE_WITH)} == {"鹼類", "強氧化劑"}
    assert {d.object_key for d in of(drafts, Relation.INCOMPATIBLE_WITH)} == {
        "group:base",
        "group:strong_oxidizer",
    }


@pytest.mark.parametrize("value", ["强氧化剂、强酸等", "强氧化剂，例如硝酸、强酸"])
def test_an_open_list_is_not_complete(value: str) -> None:
    drafts = kept(f"# 甲醇\n\nCAS号：67-56-1\n\n禁配物：{value}。\n", title="甲醇")
    assert not [d for d in of(drafts, Relation.INCOMPATIBLE_WITH) if "listing" in d.properties]


def test_mixture_has_components_and_no_number_of_its_own() -> None:
    text = """# 甲醛溶液

| 中文名称 | 甲醛溶液 |
| --- | --- |
| 物质类别 | 混合物 |
| CAS号 | 50-00-0（甲醛） |

| 组分 | CAS号 | 含量 |
| --- | --- | --- |
| 甲醛 | 50-00-0 | 37% |
| 甲醇（阻聚剂） | 67-56-1 | 15% |
"""
    subject, _ = extract(document(text, title="甲醛溶液"))
    assert subject is not None
    assert subject.mixture
    assert not subject.cas
    drafts = kept(text, title="甲醛溶液")
    assert not of(drafts, Relation.HAS_ALIAS, kind="cas")
    parts = {d.object: (d.properties["cas"], d.value["min"]) for d in of(drafts, Relation.HAS_COMPONENT)}
    assert parts == {"甲醛": ("50-00-0", 37), "甲醇": ("67-56-1", 15)}


def test_rows_of_a_list_are_their_own_subjects() -> None:
    text = """# GB 18218 危险化学品一览表

| 序号 | 危险化学品名称和说明 | 临界量（T） |
| --- | --- | --- |
| 1 | 苯 | 50 |
| 2 | 甲烷，天然气 | 50 |
| 3 | 甲醛（含量>90%） | 5 |
| 4 | 砷化三氢 | 12 |
"""
    drafts = kept(text, title="危险化学品一览表")
    assert [(d.subject, d.value["min"], d.value["unit"]) for d in drafts] == [
        ("苯", 50, "t"),
        ("甲醛", 5, "t"),
        ("砷化三氢", 12, "t"),
    ]
    assert drafts[1].conditions == {"note": "含量>90%"}  # the threshold is not that of any formaldehyde


@pytest.mark.parametrize(
    "text",
    [
        "# 毒性\n\n闪点：11 ℃\n\n毒性是物质的性质。",  # no substance: no subject
        "# 甲醇\n\nCAS号：67-56-2\n",  # wrong check digit, and no other evidence of a substance
        "# Search results\n\n- Methanol\n- Ethanol\n",
    ],
)
def test_a_page_without_subject_yields_nothing(text: str) -> None:
    assert kept(text) == []


def test_values_of_other_substances_in_prose_are_left_out() -> None:
    text = "# 甲醇\n\nCAS号：67-56-1\n\n## 理化性质\n\n甲醇的沸点为64.7 ℃，苯的闪点为-11 ℃。乙醇的沸点为78.3 ℃。\n"
    drafts = of(kept(text, title="甲醇"), Relation.HAS_MEASUREMENT)
    assert [(d.properties["property"], d.value["min"]) for d in drafts] == [("boiling_point", 64.7)]


def test_impossible_values_are_rejected() -> None:
    made = document("# 甲醇\n\nCAS号：67-56-1\n\n沸点：-400 ℃\n折射率：13.3\n闪点：11 kPa\n", title="甲醇")
    reasons = {
        d.properties["property"]: judge(d, made)[0]
        for d in extract(made)[1]
        if d.relation is Relation.HAS_MEASUREMENT
    }
    assert reasons == {
        "boiling_point": DropReason.OUT_OF_RANGE, "refractive_index": DropReason.OUT_OF_RANGE,
        "flash_point": DropReason.WRONG_DIMENSION,
    }  # fmt: skip


def test_hazard_class_needs_its_category() -> None:
    drafts = kept(
        "# Acetone\n\nCAS No.: 67-64-1\n\n## Safety\n\nAcetone is a flammable liquid and may cause eye damage. It is a flammable liquid 2 litres of which were used.\n",
        title="Acetone",
        language="en",
    )
    assert not of(drafts, Relation.CLASSIFIED_AS)


def conditions_of(draft: Draft) -> dict[str, str]:
    return dict(draft.value.get("conditions", {}))


@pytest.mark.parametrize(
    ("clause", "value"),
    [
        ("自燃温度为651 ℃，4.7 ℃时的饱和蒸气压为506.62 kPa", 651),
        ("自燃温度498 ℃，20 ℃时饱和蒸气压为10.0 kPa", 498),
    ],
)
def test_a_neighbouring_quantity_is_no_condition(clause: str, value: float) -> None:
    drafts = kept(f"# 氨\n\nCAS号：7664-41-7\n\n## 理化性质\n\n{clause}。\n", title="氨")
    (ignition,) = of(drafts, Relation.HAS_MEASUREMENT, property="autoignition_temperature")
    assert (ignition.value["min"], conditions_of(ignition)) == (value, {})
    (pressure,) = of(drafts, Relation.HAS_MEASUREMENT, property="vapour_pressure")
    assert set(conditions_of(pressure)) == {"temperature"}


def test_a_temperature_repeated_in_other_units_is_no_condition_of_itself() -> None:
    text = (
        "# Cobalt\n\n| CAS No. | 7440-48-4 |\n| --- | --- |\n| Melting point | 1768 K (1495 °C, 2723 °F) |\n"
    )
    (draft,) = of(kept(text, title="Cobalt", language="en"), Relation.HAS_MEASUREMENT)
    assert (draft.value["min"], conditions_of(draft)) == (1768, {})


def test_doses_in_one_cell_keep_their_own_conditions() -> None:
    cell = "LD₅₀：5000 mg/kg（大鼠经口） LD₅₀：12124 mg/kg（兔经皮） LC₅₀：20003 mg/m³（小鼠吸入，8 h）"
    text = f"# 甲苯\n\n| CAS号 | 108-88-3 |\n| --- | --- |\n| 急性毒性 | {cell} |\n"
    found = {d.value["min"]: conditions_of(d) for d in of(kept(text, title="甲苯"), Relation.HAS_TOXICITY)}
    assert found == {
        5000: {"species": "rat", "route": "oral"},
        12124: {"species": "rabbit", "route": "dermal"},
        20003: {"species": "mouse", "route": "inhalation", "duration": "8 h"},
    }


def test_organism_in_the_label_is_kept() -> None:
    text = "# Acetone\n\nCAS No.: 67-64-1\n\n## Ecological information\n\nLC₅₀ (rainbow trout, 96 h): 5540 mg/L.\n"
    (draft,) = of(kept(text, title="Acetone", language="en"), Relation.HAS_TOXICITY)
    assert conditions_of(draft) == {"species": "rainbow trout", "duration": "96 h"}


@pytest.mark.parametrize(
    "sentence",
    [
        "The LD₅₀ value for soluble cobalt salts has been estimated to be 150 mg/kg.",
        "The LD₅₀ has been estimated to be between 150 and 500 mg/kg.",
    ],
)
def test_doses_of_other_matter_and_half_ranges_are_left_out(sentence: str) -> None:
    text = f"# Cobalt\n\nCAS No.: 7440-48-4\n\n## Toxicity\n\n{sentence}\n"
    assert not of(kept(text, title="Cobalt", language="en"), Relation.HAS_TOXICITY)


def test_limits_keep_the_time_they_are_for() -> None:
    text = (
        "# Ethylene oxide\n\nCAS No.: 75-21-8\n\n## SECTION 8: Exposure controls\n\n"
        "NIOSH Ceiling (10 min/day): 5 ppm\n\nOSHA PEL-TWA: 1 ppm\n"
    )
    drafts = of(kept(text, title="Ethylene oxide", language="en"), Relation.HAS_LIMIT)
    assert {d.value["min"]: conditions_of(d) for d in drafts} == {5: {"duration": "10 min/day"}, 1: {}}


@pytest.mark.parametrize(
    ("field", "forms"),
    [
        (
            "1198（溶液，易燃） 2209（溶液，含甲醛不低于25%）",
            {"1198": "溶液，易燃", "2209": "溶液，含甲醛不低于25%"},
        ),
        ("UN 1198、UN2209", {"1198": "", "2209": ""}),
        ("1090", {"1090": ""}),
        ("UN1230", {"1230": ""}),
    ],
)
def test_all_un_numbers_of_a_field_with_their_forms(field: str, forms: dict[str, str]) -> None:
    text = f"# 甲醛\n\n| CAS登录号 | 50-00-0 |\n| --- | --- |\n| UN编号 | {field} |\n"
    drafts = of(kept(text, title="甲醛"), Relation.SHIPPED_AS)
    assert {d.properties["un"]: d.conditions.get("form", "") for d in drafts} == forms


def test_a_conditional_member_keeps_its_condition_and_its_list_is_not_complete() -> None:
    text = (
        "# Acetone\n\nCAS No.: 67-64-1\n\n## SECTION 10: Stability and reactivity\n\n"
        "Incompatible materials: strong acids, chloroform in the presence of bases, aluminium chloride with nitrobenzene.\n"
    )
    drafts = of(kept(text, title="Acetone", language="en"), Relation.INCOMPATIBLE_WITH)
    assert {d.object: d.conditions.get("when") for d in drafts} == {
        "strong acids": None,
        "chloroform": "in the presence of bases",
        "aluminium chloride": "with nitrobenzene",
    }
    assert not any("listing" in d.properties for d in drafts)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("不可用直流水扑救，水可使燃烧的液体流散。", {"直流水": None}),
        ("不可用水灭火。", {"水": None}),
        ("不可将水直接喷向泄漏的液氯。", {}),
        ("不可用高压水直射泄漏的酸液。", {}),
        ("不宜用直流水喷射熔融物料，防止飞溅。", {"直流水": "喷射熔融物料"}),
    ],
)
def test_water_on_a_leak_is_no_unsuitable_medium(sentence: str, expected: dict[str, str | None]) -> None:
    text = f"# 氯\n\nCAS号：7782-50-5\n\n## 消防措施\n\n{sentence}\n"
    drafts = of(kept(text, title="氯"), Relation.NOT_EXTINGUISHED_BY)
    assert {d.object: d.conditions.get("when") for d in drafts} == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Do not direct water at the source of a liquid ammonia leak.", {}),
        ("Do not use a solid water jet on molten phenol.", {"solid water jet": "on molten phenol"}),
        ("Do not use a solid water jet, which scatters the fire.", {"solid water jet": None}),
    ],
)
def test_water_on_a_leak_is_no_unsuitable_medium_in_english(
    sentence: str, expected: dict[str, str | None]
) -> None:
    text = f"# Phenol\n\nCAS No.: 108-95-2\n\n## SECTION 5: Fire-fighting measures\n\n{sentence}\n"
    drafts = of(kept(text, title="Phenol", language="en"), Relation.NOT_EXTINGUISHED_BY)
    assert {d.object: d.conditions.get("when") for d in drafts} == expected


def test_separation_in_a_process_is_no_storage_advice() -> None:
    text = (
        "# Urea\n\nCAS No.: 57-13-6\n\n## Production\n\nThe product must be separated from unchanged ammonium carbamate.\n\n"
        "## Storage\n\nKeep apart from oxidizing agents, food and feedstuffs.\n"
    )
    drafts = of(kept(text, title="Urea", language="en"), Relation.STORE_APART_FROM)
    assert {d.object for d in drafts} == {"oxidizing agents", "food and feedstuffs"}


def test_a_statement_before_the_comma_is_no_circumstance() -> None:
    text = "# 苯\n\nCAS号：71-43-2\n\n## 性质\n\n苯不溶于水，易溶于有机溶剂，与水不发生反应。\n"
    (draft,) = of(kept(text, title="苯"), Relation.INCOMPATIBLE_WITH)
    assert (draft.object, draft.polarity, dict(draft.conditions)) == ("水", Polarity.NEGATIVE, {})


def test_a_group_of_the_mist_is_not_that_of_the_acid() -> None:
    text = "# 硫酸\n\nCAS号：7664-93-9\n\n## 毒理学\n\n致癌性：IARC：1类（含硫酸的强无机酸雾）\n"
    (draft,) = of(kept(text, title="硫酸"), Relation.HAS_TOXICITY)
    assert draft.value == {"text": "IARC 1", "conditions": {"note": "含硫酸的强无机酸雾"}}

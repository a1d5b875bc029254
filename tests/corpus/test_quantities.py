"""Quantities as pages write them, their conditions, and what must not be read."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.quantities import (
    NO_DATA,
    is_no_data,
    mg_m3_to_ppm,
    numbers_in,
    parse_number,
    parse_quantities,
    parse_quantity,
    plain_width,
    ppm_to_mg_m3,
)
from corpus.units import convert, parse_unit, same_dimension

TEMP, PRESSURE, DENSITY, SHARE = "degC", "pascal", "kg/m**3", "percent"

# text, options, operator, minimum, maximum, unit, conditions
CASES = [
    ("≤-20 ℃（闭杯）", {}, "<=", None, -20, "°C", {"method": "closed cup"}),
    ("＜－20℃", {}, "<", None, -20, "°C", {}),
    ("1.5%~15%(V/V)", {}, "=", 1.5, 15, "%", {"basis": "volume"}),
    ("7060 mg/kg（大鼠经口）", {}, "=", 7060, 7060, "mg/kg", {"species": "rat", "route": "oral"}),
    ("12–13 °C (54–55 °F)", {}, "=", 12, 13, "°C", {}),
    ("-78 °C (-108 °F)", {}, "=", -78, -78, "°C", {}),
    ("78.24 °C (172.83 °F; 351.39 K)", {"dimension": TEMP}, "=", 78.24, 78.24, "°C", {}),
    ("−41.6 °C; −42.9 °F; 231.6 K", {"dimension": TEMP}, "=", -41.6, -41.6, "°C", {}),
    ("１２．５ ℃", {}, "=", 12.5, 12.5, "°C", {}),
    ("1,234 mg/kg", {}, "=", 1234, 1234, "mg/kg", {}),
    ("20,000 ppm", {}, "=", 20000, 20000, "ppm", {}),
    ("1\u202f234 kPa", {}, "=", 1234, 1234, "kPa", {}),
    ("0,789 g/cm³", {}, "=", 0.789, 0.789, "g/cm³", {}),
    ("1.5×10-3 Pa·s", {}, "=", 0.0015, 0.0015, "Pa·s", {}),
    ("1.5×10⁻³ Pa·s", {}, "=", 0.0015, 0.0015, "Pa·s", {}),
    ("5.1×10<sup>-4</sup> mmHg", {}, "=", 5.1e-4, 5.1e-4, "mmHg", {}),
    ("1.5×103 kPa", {}, "=", 1500, 1500, "kPa", {}),
    ("6.5×10^-4 Pa·s", {}, "=", 6.5e-4, 6.5e-4, "Pa·s", {}),
    ("2.3e-5 Pa·s", {}, "=", 2.3e-5, 2.3e-5, "Pa·s", {}),
    ("10-3 mol/L", {}, "=", 0.001, 0.001, "mol/L", {}),
    ("10⁻³ mol/L", {}, "=", 0.001, 0.001, "mol/L", {}),
    ("−114.1 °C", {}, "=", -114.1, -114.1, "°C", {}),
    ("0 ℃", {}, "=", 0, 0, "°C", {}),
    ("5.95 kPa (at 20 °C)", {"dimension": PRESSURE}, "=", 5.95, 5.95, "kPa", {"temperature": "20 °C"}),
    ("44.6 mmHg at 20 °C", {"dimension": PRESSURE}, "=", 44.6, 44.6, "mmHg", {"temperature": "20 °C"}),
    ("20 °C时 1.2 kPa", {"dimension": PRESSURE}, "=", 1.2, 1.2, "kPa", {"temperature": "20 °C"}),
    ("5.33kPa/20℃", {"dimension": PRESSURE}, "=", 5.33, 5.33, "kPa", {"temperature": "20℃"}),
    ("13.33(20℃)", {"dimension": PRESSURE, "default_unit": "kPa"}, "=", 13.33, 13.33, "kPa", {"temperature": "20℃"}),
    ("64.7 ℃（101.3 kPa）", {"dimension": TEMP}, "=", 64.7, 64.7, "°C", {"pressure": "101.3 kPa"}),
    ("101.3 kPa下64.7℃", {"dimension": TEMP}, "=", 64.7, 64.7, "°C", {"pressure": "101.3 kPa"}),
    ("0.7893 g/cm3 at 20 °C", {"dimension": DENSITY}, "=", 0.7893, 0.7893, "g/cm³", {"temperature": "20 °C"}),
    ("8.00 g·cm-3", {"dimension": DENSITY}, "=", 8, 8, "g/cm³", {}),
    ("1.08 g cm−3", {"dimension": DENSITY}, "=", 1.08, 1.08, "g/cm³", {}),
    ("107 g/100 mL", {"dimension": DENSITY}, "=", 107, 107, "g/100 mL", {}),
    ("8.3 g/100 mL（20 ℃）", {"dimension": DENSITY}, "=", 8.3, 8.3, "g/100 mL", {"temperature": "20 ℃"}),
    ("less than 0.1 g/100mL", {"dimension": DENSITY}, "<", None, 0.1, "g/100 mL", {}),
    ("46.069 g·mol−1", {"dimension": "kg/mol"}, "=", 46.069, 46.069, "g/mol", {}),
    ("46.07", {"dimension": "kg/mol", "default_unit": "g/mol"}, "=", 46.07, 46.07, "g/mol", {}),
    ("1.2 kJ/(mol·K)", {}, "=", 1.2, 1.2, "kJ/(mol·K)", {}),
    ("-95~-97 ℃", {}, "=", -97, -95, "°C", {}),
    ("-20--10 ℃", {}, "=", -20, -10, "°C", {}),
    ("-20 to -10 °C", {}, "=", -20, -10, "°C", {}),
    ("35至40℃", {}, "=", 35, 40, "°C", {}),
    ("2.8～4.0", {"bare": True}, "=", 2.8, 4.0, "", {}),
    ("3.3 – 19 vol%", {"dimension": SHARE}, "=", 3.3, 19, "%", {"basis": "volume"}),
    ("15 % to 28 % by volume in air", {"dimension": SHARE}, "=", 15, 28, "%", {"basis": "volume"}),
    ("1.8–12.4%", {"dimension": SHARE}, "=", 1.8, 12.4, "%", {}),
    ("5~10%", {"dimension": SHARE}, "=", 5, 10, "%", {}),
    ("≥ 99.5 %", {}, ">=", 99.5, None, "%", {}),
    ("> 5000 mg/kg", {}, ">", 5000, None, "mg/kg", {}),
    ("23℃以下", {}, "<=", None, 23, "°C", {}),
    ("100 ℃以上", {}, ">=", 100, None, "°C", {}),
    ("不超过30 ℃", {}, "<=", None, 30, "°C", {}),
    ("不低于10 ℃", {}, ">=", 10, None, "°C", {}),
    ("大于100 kPa", {}, ">", 100, None, "kPa", {}),
    ("at least 15 min", {}, ">=", 15, None, "min", {}),
    ("up to 50 ppm", {}, "<=", None, 50, "ppm", {}),
    ("~ 20 °C", {}, "~", 20, 20, "°C", {}),
    ("约 7", {"bare": True}, "~", 7, 7, "", {}),
    ("约5（水溶液）", {"bare": True}, "~", 5, 5, "", {}),
    ("<1", {"bare": True}, "<", None, 1, "", {}),
    ("100±2 ℃", {}, "=", 98, 102, "°C", {}),
    ("72.0(1) °C", {}, "=", 72, 72, "°C", {}),
    ("7.0 (10 g/L, 20 °C)", {"bare": True}, "=", 7, 7, "", {"concentration": "10 g/L", "temperature": "20 °C"}),
    ("0.79（20 ℃）", {"bare": True}, "=", 0.79, 0.79, "", {"temperature": "20 ℃"}),
    ("1.20（50%）", {"bare": True}, "=", 1.2, 1.2, "", {"concentration": "50%"}),
    ("0.79 (水=1)", {"bare": True}, "=", 0.79, 0.79, "", {}),
    ("-0.77", {"bare": True}, "=", -0.77, -0.77, "", {}),
    ("50 mg/m³（15 ppm）", {"dimension": DENSITY}, "=", 50, 50, "mg/m³", {}),
    ("LC50：37620 mg/m³，10小时（大鼠吸入）", {"dimension": DENSITY}, "=", 37620, 37620, "mg/m³",
     {"duration": "10 h", "species": "rat", "route": "inhalation"}),
    ("-0.4 ℃（无水）", {}, "=", -0.4, -0.4, "°C", {"form": "anhydrous"}),
    ("300 °C (decomposes)", {}, "=", 300, 300, "°C", {"note": "decomposes"}),
    ("0.88 cP", {}, "=", 0.88, 0.88, "cP", {}),
    ("2.2 D", {}, "=", 2.2, 2.2, "D", {}),
    ("0.17 mJ", {}, "=", 0.17, 0.17, "mJ", {}),
    ("7.95 MPa", {}, "=", 7.95, 7.95, "MPa", {}),
    ("25 毫克/千克", {}, "=", 25, 25, "mg/kg", {}),
    ("12 ℉", {}, "=", 12, 12, "°F", {}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_reads(
    case: tuple[str, dict[str, object], str, float | None, float | None, str, dict[str, str]],
) -> None:
    text, options, operator, low, high, unit, conditions = case
    found = parse_quantities(text, **options)  # type: ignore[arg-type]
    assert len(found) == 1, found
    quantity = found[0]
    assert (quantity.operator, quantity.unit) == (operator, unit)
    assert quantity.minimum == (None if low is None else pytest.approx(low))
    assert quantity.maximum == (None if high is None else pytest.approx(high))
    assert dict(quantity.conditions) == conditions
    assert text[quantity.start : quantity.end].strip()


# Read off pages of samples/ by hand; "page" is where the text stands, "" for forms that no sample has.
PAGE_CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "quantity_cases.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", PAGE_CASES, ids=lambda case: case["text"])
def test_reads_what_pages_say(case: dict[str, Any]) -> None:
    found = parse_quantities(case["text"], **case["options"])
    got = [[q.operator, q.minimum, q.maximum, q.unit, dict(q.conditions)] for q in found]
    assert got == case["expected"]


def test_there_are_enough_cases_of_pages_in_both_languages() -> None:
    on_pages = [case["text"] for case in PAGE_CASES if case["page"]]
    assert len(on_pages) >= 130
    assert len(PAGE_CASES) + len(CASES) >= 230
    chinese = sum(any("一" <= char <= "鿿" for char in text) for text in on_pages)
    assert chinese >= 30
    assert len(on_pages) - chinese >= 60


@pytest.mark.parametrize(
    "text",
    [
        "无资料",
        "无可用数据",
        "不适用",
        "暂无数据",
        "未知",
        "未测定",
        "Not available",
        "not applicable",
        "No data available.",
        "N/A",
        "n.d.",
        "—",
        "-",
        "不详",
        "无数据",
        "無資料",
        "无意义",
        "尚无资料",
        "data not available",
        "no information available",
        "not determined",
        "not established",
        "none established",
        "无相关数据",
        "未确定",
        "NA",
        "n/a",
    ],
)
def test_no_data_is_not_zero(text: str) -> None:
    assert is_no_data(text)
    assert parse_quantity(text) is NO_DATA
    assert not parse_quantities(text, bare=True)


@pytest.mark.parametrize("text", ["0", "0 ℃", "", "无色液体", "不燃", "10 ℃", "none of these"])
def test_what_is_not_no_data(text: str) -> None:
    assert not is_no_data(text)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("67-56-1", {"bare": True}),  # a CAS number
        ("1,5 °C", {}),  # decimal comma or a list?
        ("H225", {"bare": True}),
        ("2,4-二硝基苯酚", {"bare": True}),
        ("15~3 %", {"dimension": SHARE}),  # falls: misread or swapped
        ("12 kPa", {"dimension": TEMP}),
        ("0.88 mPa/s", {"dimension": "Pa*s"}),  # wrong unit of the source
        ("32.04", {"dimension": "kg/mol"}),  # no unit anywhere
        ("10 mg/m3", {"dimension": "mg/kg"}),
        ("50 %", {"dimension": "mg/kg"}),
        ("1.2.3 ℃", {}),
        ("20/4 ℃", {}),
        ("1'200'50 ℃", {}),
        ("1,5-2,5", {"bare": True}),
        ("62.4 nΩ·m (at 20 °C)", {}),  # the 20 °C is not the value
    ],
)
def test_reads_nothing_rather_than_something_wrong(text: str, options: dict[str, object]) -> None:
    found = parse_quantities(text, **options)  # type: ignore[arg-type]
    assert not found, found


def test_several_values_stay_apart() -> None:
    text = "LD50：800 mg/kg（大鼠经口）；LD50：270 mg/kg（兔经皮）"
    first, second = parse_quantities(text, dimension="mg/kg")
    assert (first.minimum, first.conditions) == (800, {"species": "rat", "route": "oral"})
    assert (second.minimum, second.conditions) == (270, {"species": "rabbit", "route": "dermal"})


def test_conditions_of_another_value_are_not_borrowed() -> None:
    text = "891 mg/kg (rat, oral) 1500 mg/kg (mouse, oral)"
    first, second = parse_quantities(text, dimension="mg/kg")
    assert first.conditions["species"] == "rat"
    assert second.conditions["species"] == "mouse"


@pytest.mark.parametrize(
    ("text", "si", "unit"),
    [
        ("20 °C", 293.15, "K"), ("70 °F", 294.2611, "K"), ("1 atm", 101325, "kg/m/s**2"), ("760 mmHg", 101325, "kg/m/s**2"),
        ("0.789 g/cm3", 789, "kg/m**3"), ("1 ppm", 1e-6, "1"), ("1.5 %", 0.015, "1"), ("18 g/mol", 0.018, "kg/mol"),
        ("1 cSt", 1e-6, "m**2/s"), ("100 g/100 mL", 1000, "kg/m**3"),
    ],
)  # fmt: skip
def test_si_values(text: str, si: float, unit: str) -> None:
    quantity = parse_quantities(text)[0]
    assert quantity.si_minimum == pytest.approx(si, rel=1e-4)
    assert quantity.si_unit == unit


def test_value_form_is_plain_data() -> None:
    value = parse_quantities("≤-20 ℃（闭杯）")[0].as_value()
    assert value == {
        "operator": "<=",
        "min": None,
        "max": -20.0,
        "unit": "°C",
        "si": {"min": None, "max": 253.15, "unit": "K"},
        "conditions": {"method": "closed cup"},
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,234.5", 1234.5), ("1.5×10-3", 1.5e-3), ("-2", -2), ("2×100", None), ("1,5", None), ("1.2.3", None), ("", None), (".5", 0.5)],
)  # fmt: skip
def test_single_numbers(text: str, number: float | None) -> None:
    assert parse_number(text) == number


def test_concentrations_need_a_molar_mass() -> None:
    assert ppm_to_mg_m3(1, 30.03) == pytest.approx(1.23, abs=0.01)  # formaldehyde, 25 °C
    assert mg_m3_to_ppm(ppm_to_mg_m3(50, 92.14), 92.14) == pytest.approx(50)
    with pytest.raises(ValueError, match="molar mass"):
        ppm_to_mg_m3(1, 0)


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_never_fails_and_keeps_lengths(text: str) -> None:
    assert len(plain_width(text)) == len(text)
    for quantity in parse_quantities(text, bare=True):
        assert 0 <= quantity.start < quantity.end <= len(text)


@given(
    st.decimals(min_value=-200, max_value=2000, places=2, allow_nan=False),
    st.sampled_from(["℃", " °C", " kPa", " mg/m³", "%", " g/mol", " ppm"]),
)
@settings(max_examples=150, deadline=None)
def test_a_written_value_comes_back(value: object, unit: str) -> None:
    found = parse_quantities(f"{value}{unit}")
    assert len(found) == 1
    assert found[0].minimum == found[0].maximum == float(str(value))


_UNITS = ("°C", "°F", "K", "kPa", "MPa", "Pa", "mmHg", "atm", "bar", "torr", "psi", "g/cm³", "g/mL", "kg/m³", "g/L", "mg/L", "mg/m³", "μg/m³", "mg/kg", "g/kg", "μg/kg", "g/mol", "kg/mol", "kJ/mol", "J/(mol·K)", "kJ/kg", "W/(m·K)", "cP", "mPa·s", "Pa·s", "cSt", "mm²/s", "D", "mN/m", "N/m", "mJ", "%", "‰", "ppm", "ppb", "mol/L", "mmol/L", "g/100 mL", "h", "min", "d", "t", "kg", "g", "mg")  # fmt: skip


@given(
    st.floats(min_value=0.001, max_value=9999).map(lambda x: float(f"{x:.4g}")),
    st.sampled_from(_UNITS),
    st.sampled_from(
        ["{value} {unit}", "{value}{unit}", "≤{value} {unit}", "约{value} {unit}", "{value} {unit}以上"]
    ),
)
@settings(max_examples=300, deadline=None)
def test_unit_and_value_survive_the_round_trip(value: float, unit: str, form: str) -> None:
    """Written out, read, written from what was read, read again: the same quantity; and SI keeps the value's order."""
    (read,) = parse_quantities(form.format(value=value, unit=unit))
    known = parse_unit(unit)
    assert known is not None
    assert parse_unit(read.unit) == known
    ends = [end for end in (read.minimum, read.maximum) if end is not None]
    assert set(ends) == {value}
    (again,) = parse_quantities(f"{value} {read.unit}")
    assert (again.unit, again.minimum) == (read.unit, value)
    one, more = convert(value, known), convert(value * 2, known)
    assert one is not None
    assert more is not None
    assert more[0] > one[0]
    assert again.si_minimum == one[0]


@given(st.floats(min_value=0.01, max_value=1e5), st.floats(min_value=2, max_value=500))
@settings(max_examples=100, deadline=None)
def test_ppm_and_mg_m3_come_back_with_the_molar_mass_alone(ppm: float, mass: float) -> None:
    assert mg_m3_to_ppm(ppm_to_mg_m3(ppm, mass), mass) == pytest.approx(ppm, rel=1e-8)
    (one,), (two,) = parse_quantities("50 ppm"), parse_quantities("50 mg/m³")
    assert one.si_unit != two.si_unit  # never compared without a molar mass
    assert not parse_quantities("50 ppm", dimension=DENSITY)


@given(
    st.floats(min_value=-100, max_value=1e6),
    st.sampled_from(["°C", "kPa", "mg/kg", "g/cm3", "ppm", "J/(mol·K)"]),
)
@settings(max_examples=100, deadline=None)
def test_units_convert_and_come_back(value: float, label: str) -> None:
    unit = parse_unit(label)
    assert unit is not None
    assert parse_unit(unit.label) == unit
    one, two = convert(value, unit), convert(value + 1, unit)
    assert one is not None
    assert two is not None
    assert two[0] >= one[0]
    assert math.isfinite(one[0])


@pytest.mark.parametrize(
    ("one", "two"),
    [("g·cm-3", "g/cm³"), ("mg/m3", "mg/m³"), ("mL", "毫升"), ("vol%", "%(V/V)"), ("µg/L", "μg/L")],
)
def test_spellings_of_one_unit_are_equal(one: str, two: str) -> None:
    assert parse_unit(one) == parse_unit(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("J/mol·K", "J/(mol·K)"),
        ("J·mol⁻¹·K⁻¹", "J/(mol·K)"),
        ("W/m·K", "W·m-1·K-1"),
        ("mol/L·s", "mol/(L·s)"),
    ],
)
def test_what_follows_a_slash_stays_below_it(one: str, two: str) -> None:
    assert parse_unit(one) == parse_unit(two)


def test_dose_and_share_are_different_kinds() -> None:
    dose, share = parse_unit("mg/kg"), parse_unit("ppm")
    assert dose is not None
    assert share is not None
    assert same_dimension(share, "percent")
    assert not same_dimension(dose, "percent")
    assert same_dimension(dose, "mg/kg")


def test_numbers_of_a_text() -> None:
    assert numbers_in("１．５×10⁻³ 至 1,234") == ("1.5", "10", "3", "1,234")


@pytest.mark.parametrize("text", ["13℃（开杯：16℃）", "13 °C (open cup: 16 °C)"])
def test_a_bracket_with_its_own_value_lends_no_words(text: str) -> None:
    (found,) = parse_quantities(plain_width(text), dimension="kelvin")
    assert (found.minimum, dict(found.conditions)) == (13, {})


@pytest.mark.parametrize("text", ["13℃（开杯，55°F）", "13 °C (open cup, 55 °F)"])
def test_a_bracket_that_repeats_the_value_keeps_its_words(text: str) -> None:
    (found,) = parse_quantities(plain_width(text), dimension="kelvin")
    assert (found.minimum, dict(found.conditions)) == (13, {"method": "open cup"})


@pytest.mark.parametrize(
    "text",
    [
        "3. 6 ℃", "-93. 7 ℃", "189. 3 kPa", "48 . 1 kPa", "48 ． 1 kPa", "3 .6 ℃", "1 ,5 %", "10 0 ℃",
        "5 6.5 ℃", "1 8 ℃", "- 9 4 ℃", "– 94 ℃", "-1 17 ℃", "1 00.5 ℃", "7 90 kg/m³", "0.7 91 g/cm³", "1, 000 mg/m³", "–94·7 ℃",
        "1 780 mg/kg", "10 000 ppm", "12 500 mg/m³", "1 030.8 kJ/mol", "4 200-5 000 mg/kg", "5-10 000 mg/kg",
    ],
)  # fmt: skip
def test_a_number_that_a_blank_tore_apart_is_not_read(text: str) -> None:
    assert parse_quantities(text) == []
    bare = re.match(r"[-–\d., ．·]+", text)
    assert bare
    assert parse_quantities(bare[0], default_unit="mg/kg") == []


@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("LD50 7060 mg/kg", 7060), ("LC50 500 ppm", 500), ("沸点 100 ℃", 100), ("12\u2009500 mg/kg", 12500),
        ("pH 7 10 g/L", 10), ("GBZ 2.1 300 mg/m³", 300), ("Table Z-1 5 ppm", 5), ("- 10 ℃", -10),
        ("1,780 mg/kg", 1780), ("GB 18218 10 t", 10), ("LD<sub>50</sub> 500 mg/kg", 500), ("H2O 300 g", 300),
    ],
)  # fmt: skip
def test_a_number_behind_a_name_s_digits_is_whole(text: str, low: float) -> None:
    (found,) = (q for q in parse_quantities(text) if q.unit)
    assert (found.operator, found.minimum) == ("=", low)


def test_a_line_break_s_mark_is_no_bound() -> None:
    found = parse_quantities("30 ℃<br>56 ℃ (2 kPa)<br/>78 ℃", dimension="degC")
    assert [(q.operator, q.minimum, dict(q.conditions)) for q in found] == [
        ("=", 30, {}),
        ("=", 56, {"pressure": "2 kPa"}),
        ("=", 78, {}),
    ]


def test_another_property_s_value_and_another_share_are_no_conditions() -> None:
    (found,) = parse_quantities("279 ℃，临界压力 7.9 MPa", dimension="degC")
    assert dict(found.conditions) == {}
    found = parse_quantities("（水中 8.7%，20 ℃；水在环己酮中 5.6%）", dimension="percent")[0]
    assert dict(found.conditions) == {"temperature": "20 ℃"}
    (found,) = parse_quantities("900 mg/kg（兔，吞食）", dimension="mg/kg")
    assert dict(found.conditions) == {"species": "rabbit", "route": "oral"}


@pytest.mark.parametrize(
    "text", ["300，450 mg/m³", "TWA：300，450 mg/m³", "−95，200 ℃", "３００，４５０ mg/m³"]
)
def test_a_full_width_comma_that_may_part_two_values_is_not_read(text: str) -> None:
    assert parse_quantities(text, bare=True) == []
    assert parse_number(text.split("：")[-1].split()[0]) is None


@pytest.mark.parametrize(
    ("text", "value"), [("1，000 mg/m³", 1000), ("12，050 mg/m³", 12050), ("1，050，450 mg/m³", 1050450)]
)
def test_groups_behind_a_full_width_comma_that_begin_with_zero_belong_to_one_number(
    text: str, value: float
) -> None:
    (found,) = parse_quantities(text)
    assert found.minimum == value
    assert parse_number(text.split()[0]) == value

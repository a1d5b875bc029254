"""Reference rows as proved one-line documents, and the comparison with extracted values."""

from __future__ import annotations

import pytest

from corpus.names import valid_cas
from corpus.quantities import parse_quantities
from kg.reference import (
    compare,
    compared,
    conditions_of,
    reference_assertions,
    reference_document,
    reference_rows,
    tolerance,
)
from kg.schema import Property
from kg.settings import ExtractionSettings

SETTINGS = ExtractionSettings()


def test_rows_carry_published_values() -> None:
    rows = reference_rows()
    assert {source for source, _ in rows} == {"NFPA 497", "IEC 60079-20-1", "Ontario", "IARC", "NTP"}
    assert len(rows) > 1000
    acetone = rows["NFPA 497", "67-64-1"]
    assert acetone.text == (
        "NFPA 497 (2008): Acetone, CAS 67-64-1: flash point 253.15 K; autoignition temperature 738.15 K; "
        "lower flammability limit 2.5 %; upper flammability limit 12.8 %."
    )
    assert rows["IARC", "71-43-2"].facts[0].value == {"text": "IARC 1"}


def test_rows_that_speak_of_other_matter_are_left_out() -> None:
    rows = reference_rows()
    assert all(valid_cas(cas) for _, cas in rows)
    assert ("IARC", "7664-93-9") not in rows  # "Strong-inorganic-acid mists containing sulfuric acid"


@pytest.mark.parametrize("source", ["NFPA 497", "IEC 60079-20-1", "Ontario", "IARC", "NTP"])
def test_every_value_is_proved_by_its_line(source: str) -> None:
    rows = [row for (name, _), row in sorted(reference_rows().items()) if name == source][:60]
    for row in rows:
        document = reference_document(row)
        assertions = reference_assertions(row)
        assert len(assertions) == len(row.facts) + 1
        for assertion in assertions:
            assert (assertion.state, assertion.reason) == ("kept", ""), (row.text, assertion.quote)
            assert document.text[assertion.start : assertion.end] == assertion.quote == assertion.page_quote
            assert assertion.extractor == "reference"


@pytest.mark.parametrize(
    ("text", "reference", "wanted"),
    [
        ("-20 °C", "253.15 K", "agree"),
        ("-18 °C", "253.15 K", "differ"),
        ("465 °C", "738.15 K", "agree"),
        ("538 °C", "738.15 K", "conflict"),
        ("2.5 %", "2.5 %", "agree"),
        ("2.6 %", "2.5 %", "differ"),
        ("4 %", "2.5 %", "conflict"),
        ("<-20 °C", "253.15 K", None),
        ("-25~-20 °C", "253.15 K", None),
        ("-20 °C (open cup)", "253.15 K", None),
        ("2.5 %", "253.15 K", None),
    ],
)
def test_comparison(text: str, reference: str, wanted: str | None) -> None:
    one, two = (parse_quantities(t)[0].as_value() for t in (text, reference))
    assert compare(one, two, SETTINGS) == wanted


@pytest.mark.parametrize(
    ("prop", "one", "two", "wanted"),
    [
        # tolerances are the property's own
        ("melting_point", "10 °C", "14 °C", "conflict"),
        ("flash_point", "10 °C", "14 °C", "differ"),
        ("autoignition_temperature", "450 °C", "468 °C", "differ"),
        ("autoignition_temperature", "450 °C", "475 °C", "conflict"),
        ("density", "0.790 g/cm3", "795 kg/m3", "differ"),
        ("density", "0.790 g/cm3", "820 kg/m3", "conflict"),
        ("vapour_pressure", "10 kPa", "11 kPa", "differ"),
        # SI units: one value in several units is one value
        ("flash_point", "54 °F", "12.2 °C", "agree"),
        ("vapour_pressure", "101.3 kPa", "760 mmHg", "agree"),
        ("lower_explosive_limit", "6 %", "60000 ppm", "agree"),
        # other kinds of unit cannot be compared
        ("limit TWA", "10 ppm", "10 mg/m3", None),
        # the same conditions only
        ("flash_point", "11 °C (closed cup)", "20 °C", "conflict"),
        ("flash_point", "11 °C (open cup)", "20 °C", None),
        ("flash_point", "11 °C (open cup)", "20 °C (open cup)", "conflict"),
        ("vapour_pressure", "12.3 kPa (20 °C)", "30 kPa (40 °C)", None),
        ("vapour_pressure", "12.3 kPa (20 °C)", "30 kPa (68 °F)", "conflict"),
        ("vapour_pressure", "12.3 kPa (20 ℃)", "12.4 kPa", None),
        ("boiling_point", "64.7 °C (101.3 kPa)", "64.6 °C", "agree"),
        ("boiling_point", "64.7 °C (2 kPa)", "64.6 °C", None),
        # bounds and ranges conflict by the gap alone
        ("flash_point", "<-20 °C", "10 °C", "conflict"),
        ("flash_point", "<-20 °C", "-17 °C", None),
        ("flash_point", ">60 °C", "<23 °C", "conflict"),
        ("flash_point", ">60 °C", "93 °C", None),
        ("boiling_point", "137~143 °C", "140 °C", None),
        ("boiling_point", "137~143 °C", "160 °C", "conflict"),
        ("boiling_point", "137~143 °C", "137~143 °C", "agree"),
        ("boiling_point", "137~143 °C", "135~145 °C", "differ"),
    ],
)
def test_comparison_by_property_and_conditions(prop: str, one: str, two: str, wanted: str | None) -> None:
    left, right = (parse_quantities(text)[0].as_value() for text in (one, two))
    assert compare(left, right, SETTINGS, prop) == compare(right, left, SETTINGS, prop) == wanted


def test_numbers_without_unit_are_compared_absolutely() -> None:
    left, right, far = (parse_quantities(text, bare=True)[0].as_value() for text in ("7.0", "7.3", "9.1"))
    assert compare(left, right, SETTINGS, "ph") == "differ"
    assert compare(left, far, SETTINGS, "ph") == "conflict"


def test_classes_of_one_scheme() -> None:
    assert compare({"text": "IARC 1"}, {"text": "IARC 2B"}, SETTINGS, "toxicity") == "conflict"
    assert compare({"text": "IARC 1"}, {"text": "IARC 1"}, SETTINGS, "toxicity") == "agree"
    assert (
        compare({"text": "IARC 1"}, {"text": "known to be a human carcinogen"}, SETTINGS, "toxicity") is None
    )


def test_no_data_is_never_compared() -> None:
    value = parse_quantities("0 °C")[0].as_value()
    empty: dict[str, object] = {"operator": "=", "min": None, "max": None, "unit": "°C", "si": {}}
    for nothing in ({}, {"text": "无资料"}, empty):
        assert compared(value, nothing, SETTINGS, "melting_point") is None


def test_conditions_in_one_form() -> None:
    assert conditions_of("boiling_point", {"pressure": "760 mmHg"}) == {}
    assert conditions_of("flash_point", {"method": "Closed cup"}) == {}
    assert conditions_of("density", {"temperature": "20 ℃"}) == conditions_of(
        "density", {"temperature": "68 °F"}
    )
    assert conditions_of("density", {"temperature": "20 ℃"}) != conditions_of("density", {})
    assert conditions_of("flash_point", {"note": "水溶液"}, {"form": "liquid"}) == {
        "form": "liquid",
        "note": "水溶液",
    }


def test_every_property_has_a_stated_tolerance() -> None:
    for prop in Property:
        found = tolerance(prop, "K" if "temperature" in prop or "point" in prop else "1", SETTINGS)
        assert 0 < found.agree <= found.differ

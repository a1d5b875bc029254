"""Reference rows as proved one-line documents, and the comparison with extracted values."""

from __future__ import annotations

import pytest

from corpus.names import valid_cas
from corpus.quantities import parse_quantities
from kg.reference import compare, reference_assertions, reference_document, reference_rows
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

"""Evidence: a quote whose digit, unit or negation was changed is refused, to the last one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg.extraction import Draft, extract
from kg.extraction.evidence import folded, judge, locate, negations, page_words, stated_numbers
from kg.schema import DropReason, NodeLabel, Polarity, Relation
from tests.kg.documents import SDS_EN, SDS_ZH, document

SHEETS = [(SDS_ZH, "zh"), (SDS_EN, "en")]


def proved(text: str, language: str) -> list[Draft]:
    made = document(text, language=language)
    return [d for d in extract(made)[1] if judge(d, made)[0] is None]


def with_number(draft: Draft, change: float) -> Draft:
    """The same draft with another figure than its quote states."""
    value = {**draft.value}
    for end in ("min", "max"):
        if value.get(end) is not None:
            value[end] = float(value[end]) + change
    return replace(draft, value=value)


@pytest.mark.parametrize(("text", "language"), SHEETS)
@pytest.mark.parametrize("change", [1.0, 0.1, -1.0, 1000.0])
def test_changed_figures_are_refused(text: str, language: str, change: float) -> None:
    made = document(text, language=language)
    drafts = [
        d for d in proved(text, language) if d.value.get("min") is not None or d.value.get("max") is not None
    ]
    assert len(drafts) >= 4
    for draft in drafts:
        altered = with_number(draft, change)
        stated = stated_numbers(made.text[draft.start : draft.end])
        if any(
            abs(float(altered.value[e]) - n) < 1e-9
            for e in ("min", "max")
            if altered.value.get(e) is not None
            for n in stated
        ):
            continue  # the changed figure happens to stand in the quote too
        assert judge(altered, made)[0] is DropReason.NUMBER_NOT_IN_QUOTE, draft


@pytest.mark.parametrize(("text", "language"), SHEETS)
def test_changed_units_are_refused(text: str, language: str) -> None:
    made = document(text, language=language)
    drafts = [
        d
        for d in proved(text, language)
        if d.value.get("unit") and d.properties.get("property") != "molar_mass"
    ]
    assert len(drafts) >= 4
    for draft in drafts:
        for unit in ("mmHg", "g/kg", "°F"):
            if unit == "°F" and "°F" in made.text[draft.start : draft.end]:
                continue
            altered = replace(draft, value={**draft.value, "unit": unit})
            assert judge(altered, made)[0] is DropReason.UNIT_NOT_IN_QUOTE, draft


@pytest.mark.parametrize(("text", "language"), SHEETS)
def test_changed_digits_on_the_page_are_refused(text: str, language: str) -> None:
    """The refined text says 11 ℃, the page behind it says something else."""
    drafts = [d for d in proved(text, language) if d.value.get("min") is not None]
    refused = 0
    for draft in drafts:
        made = document(text, language=language)
        quote = made.text[draft.start : draft.end]
        page = made.text.replace(quote, re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), quote))
        wrong = document(text, language=language, cleaned=page)
        refused += judge(draft, wrong)[0] is DropReason.NOT_ON_PAGE
    assert refused == len(drafts) >= 4


def test_a_negation_lost_on_the_way_is_refused() -> None:
    text = "# 甲醇\n\nCAS号：67-56-1\n\n与水的反应：与水不发生反应。\n"
    made = document(text)
    (draft,) = [d for d in proved(text, "zh") if d.polarity is Polarity.NEGATIVE]
    assert judge(draft, document(text, cleaned=text.replace("不发生", "发生")))[0] is DropReason.NOT_ON_PAGE
    assert judge(replace(draft, polarity=Polarity.POSITIVE), made)[0] is DropReason.POLARITY_UNCLEAR


def test_negative_without_negation_is_refused() -> None:
    text = "# 甲醇\n\nCAS号：67-56-1\n\n禁配物：强氧化剂、强酸。\n"
    made = document(text)
    draft = next(d for d in proved(text, "zh") if d.relation is Relation.INCOMPATIBLE_WITH)
    assert judge(replace(draft, polarity=Polarity.NEGATIVE), made)[0] is DropReason.POLARITY_MISMATCH


def test_negated_value_is_refused() -> None:
    made = document("# 甲醇\n\nCAS号：67-56-1\n\n闪点不是 11 ℃，需要测定。\n")
    start = made.text.index("闪点")
    draft = Draft(
        Relation.HAS_MEASUREMENT, "11 ℃", NodeLabel.MEASUREMENT, start, start + 10, properties={"property": "flash_point"},
        value={"operator": "=", "min": 11.0, "max": 11.0, "unit": "°C"},
    )  # fmt: skip
    assert judge(draft, made)[0] is DropReason.POLARITY_MISMATCH


def test_wrong_ends_and_foreign_objects_are_refused() -> None:
    text = "# 甲醇\n\nCAS号：67-56-1\n\n禁配物：强氧化剂、强酸。\n"
    made = document(text)
    draft = next(d for d in proved(text, "zh") if d.relation is Relation.INCOMPATIBLE_WITH)
    assert judge(replace(draft, object_label=NodeLabel.MEASURE), made)[0] is DropReason.BAD_ENDPOINT
    assert judge(replace(draft, object="碱类"), made)[0] is DropReason.OBJECT_NOT_IN_QUOTE
    assert judge(replace(draft, relation=Relation.STATED_IN), made)[0] is DropReason.NOT_IN_SCHEMA
    assert judge(replace(draft, start=draft.end), made)[0] is DropReason.QUOTE_NOT_FOUND


def test_changed_codes_are_refused() -> None:
    made = document(SDS_ZH)
    drafts = [d for d in proved(SDS_ZH, "zh") if d.relation in {Relation.HAS_H, Relation.HAS_P}]
    for draft in drafts:
        altered = replace(draft, properties={**draft.properties, "code": "H999"})
        assert judge(altered, made)[0] is DropReason.NUMBER_NOT_IN_QUOTE


def test_evidence_shows_the_page_s_own_words() -> None:
    text = "# 甲醇\n\nCAS号：67-56-1\n\n闪点：11 ℃（闭杯）\n"
    page = "甲醇 | CAS号：67-56-1 | 闪点：１１  ℃ (闭杯)"
    made = document(text, cleaned=page)
    start = text.index("闪点")
    assert page_words(made, start, len(text) - 1) == "闪点：１１  ℃ (闭杯)"


def test_no_page_behind_means_no_assertion() -> None:
    made = document(SDS_ZH, cleaned="")
    assert all(judge(d, made)[0] is not None for d in extract(made)[1])


def test_negating_words_are_counted_by_meaning() -> None:
    assert negations("不可用水，禁止催吐") == {"不": 1, "禁止": 1}
    assert not negations("不燃气体，不锈钢，不超过30 ℃")
    assert negations("Do not use water; never vent") == {"not": 1, "never": 1}


@given(
    st.text(alphabet="甲醇 11℃(),.-|*\n测ab", max_size=30),
    st.text(alphabet="甲醇 11℃(),.-|*\n测ab", max_size=60),
)
@settings(max_examples=150, deadline=None)
def test_locate_finds_only_equal_words(quote: str, text: str) -> None:
    found = locate(quote, text)
    if found is not None and quote:
        assert folded(text[found[0] : found[1]]) == folded(quote)
    if folded(quote) and found is None:
        assert folded(quote) not in folded(text)

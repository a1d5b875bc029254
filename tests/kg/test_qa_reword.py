"""Rewording is checked: names, numbers, units, polarity, plural, direction, language; the answer stays hidden."""

from __future__ import annotations

import pytest

from kg.qa import wording
from kg.qa.reword import RewordIn, RewordQuestion, problems_of
from models import Models

ZH = RewordIn(
    "根据《丙酮说明书》，丙酮的闪点（闭杯）低于 23 ℃吗？", "zh", ("丙酮", "丙酮说明书"), ("-20 ℃",), False
)
EN = RewordIn(
    "Which materials must not be stored with Methanol according to “SDS 1”?",
    "en",
    ("Methanol", "SDS 1"),
    ("acids",),
    True,
)


def test_offline_answer_is_the_template() -> None:
    models = Models.offline()
    answer = models.run(RewordQuestion(), ZH)
    assert answer.value.question == ZH.question
    assert answer.source == "offline"


@pytest.mark.parametrize(
    "question",
    [
        "《丙酮说明书》里，丙酮的闭杯闪点是否低于 23 ℃？",
        "按《丙酮说明书》所述，丙酮闪点（闭杯）低于 23 ℃吗？",
    ],
)
def test_sound_rewordings(question: str) -> None:
    allowed = problems_of(ZH, question)
    assert allowed in ([], ["the polarity differs"])  # 是否 holds 否, not one of the negations
    assert (
        problems_of(EN, "According to “SDS 1”, which materials must not be stored together with Methanol?")
        == []
    )


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ("根据《丙酮说明书》，乙酮的闪点（闭杯）低于 23 ℃吗？", "missing"),
        ("根据《丙酮说明书》，丙酮的闪点（闭杯）低于 32 ℃吗？", "numbers"),
        ("根据《丙酮说明书》，丙酮的闪点（闭杯）低于 23 ℉吗？", "units"),
        ("根据《丙酮说明书》，丙酮的闪点（闭杯）不低于 23 ℃吗？", "polarity"),
        ("根据《丙酮说明书》，丙酮的闪点（闭杯）高于 23 ℃吗？", "direction"),
        ("According to 丙酮说明书, is the flash point of 丙酮 below 23 ℃, 低于?", "language"),
        ("根据《丙酮说明书》，丙酮的闪点（闭杯）-20 ℃低于 23 ℃吗？", "given away"),
        ("根据《丙酮说明书》，\n丙酮的闪点（闭杯）低于 23 ℃吗？", "one line"),
    ],
)
def test_unsound_rewordings(question: str, problem: str) -> None:
    assert any(problem in found for found in problems_of(ZH, question))
    assert RewordQuestion().check(ZH, RewordQuestion().output(question=question)).kind == "ask_again"  # type: ignore[arg-type]


def test_polarity_and_plural_in_english() -> None:
    assert problems_of(EN, "Which materials may be stored with Methanol according to “SDS 1”?") == [
        "the polarity differs"
    ]
    assert "the plural is lost" in problems_of(EN, "Name one thing that must not be near Methanol (“SDS 1”).")


@pytest.mark.parametrize(
    ("value", "zh", "en"),
    [
        ({"operator": "=", "min": -20.0, "max": -20.0, "unit": "°C"}, "-20 °C", "-20 °C"),
        ({"operator": "=", "min": 1.5, "max": 15.0, "unit": "%"}, "1.5～15 %", "1.5 to 15 %"),
        ({"operator": "<=", "min": None, "max": 5.0, "unit": "mg/L"}, "不高于 5 mg/L", "at most 5 mg/L"),
        ({"operator": ">", "min": 100.0, "max": None, "unit": ""}, "大于 100", "above 100"),
        (
            {"operator": "~", "min": 0.791, "max": 0.791, "unit": "g/cm³"},
            "约 0.791 g/cm³",
            "about 0.791 g/cm³",
        ),
    ],
)
def test_values_in_words(value: dict[str, object], zh: str, en: str) -> None:
    assert wording.value_words(value, "zh") == zh
    assert wording.value_words(value, "en") == en


def test_no_words_for_what_is_not_safe() -> None:
    assert wording.value_words({"operator": "?", "min": 1.0, "max": 1.0, "unit": "K"}, "en") is None
    assert wording.property_words("autoignition_temperature", {"pressure": "506 kPa"}, "zh") is None
    assert wording.property_words("flash_point", {"method": "closed cup"}, "zh") == "闪点（闭杯）"
    assert wording.property_words("boiling_point", {"note": "decomposes"}, "en") is None


def test_every_template_can_be_filled_in_both_languages() -> None:
    class AnySlot(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return f"<{key}>"

    for template, languages in wording.TEMPLATES.items():
        assert set(languages) == {"zh", "en"}, template
        for variants in languages.values():
            for variant in variants:
                assert "<" in variant.format_map(AnySlot())

"""What a rewriting must not change."""

from __future__ import annotations

import pytest

from corpus.dashes import DASHES
from corpus.fidelity import differences, facts, holds_facts, reordered
from corpus.near_duplicates import Candidate


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("闪点：－20 ℃", "闪点：-20℃"),
        ("７０６０ ｍｇ／ｋｇ", "7060 mg/kg"),
        ("LD<sub>50</sub> 5 mg/m<sup>3</sup>", "LD₅₀ 5 mg/m³"),
        ("12–13 °C", "12-13 °C"),
        ("| 闪点 | 11 ℃ |", "闪点 11 ℃"),
        ("a line\nbroken at 15\nminutes", "a line broken at 15 minutes"),
        ("**UN 1230** H225", "UN1230 H225"),
        ("应\n当双人收发", "应当双人收发"),
        ("每层不\n得超过 15 分 \n 钟", "每层不得超过 15 分钟"),
        ("避<br>免受热，温度低\n于 5 ℃", "避免受热，温度低于 5 ℃"),
        ("It must\nnot be heated", "It must not be heated"),
        ("Smoking is pro-\nhibited; use with-\nout water", "Smoking is prohibited; use without water"),
        ("non-\nflammable, not be-\nlow 5 °C", "non-flammable, not below 5 °C"),
    ],
)
def test_dress_is_no_change(before: str, after: str) -> None:
    assert differences(before, after) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("闪点 -20 ℃", "闪点 20 ℃"),
        ("10⁻³ mg/m³", "10-3 mg/m³"),
        ("≤5 ppm", "5 ppm"),
        ("5 mg/kg", "5 g/kg"),
        ("1.5%", "15%"),
        ("不得用水灭火", "用水灭火"),
        ("Do not use water", "Do use water"),
        ("H301", "H311"),
        ("CAS 67-56-1", "CAS 64-17-5"),
        ("H₂O", "H₂O₂"),
        ("P301+P310", "P301"),
        ("15 分钟", "15 小时"),
        ("不超过30 ℃", "超过30 ℃"),
        ("must be kept away", "may be kept away"),
        ("NaOH", "KOH"),
        ("5 mg and 5 mg", "5 mg"),
    ],
)
def test_every_change_of_a_fact_is_seen(before: str, after: str) -> None:
    assert differences(before, after)
    assert differences(after, before)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("应\n当", "than:应当"),
        ("避\n免", "not:避免"),
        ("不\n得", "not:不"),
        ("must\nnot", "not:not"),
        ("can-\nnot", "not:cannot"),
        ("超<br/>过", "than:超过"),
    ],
)
def test_a_line_break_hides_no_order_and_no_denial(text: str, seen: str) -> None:
    assert facts(text)[seen] == 1


def test_words_of_two_paragraphs_are_no_word() -> None:
    assert facts("使用时应\n\n当地规定")["than:应当"] == 0
    assert differences("第一层最\n\n大小不一", "第一层最大小不一")


def test_facts_are_named_by_kind() -> None:
    found = facts("闪点 ≤-20 ℃，不溶于水，CAS 67-56-1，UN1230，H225")
    assert found["number:≤-20°C"] == 1
    assert found["code:67-56-1"] == found["code:UN1230"] == found["code:H225"] == 1
    assert found["not:不"] == 1


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("闪点 11 ℃", True),
        ("CAS 67-56-1", True),
        ("P210", True),
        ("上一篇：甲醇", False),
        ("Copyright 2019", False),
    ],
)
def test_holds_facts(text: str, holds: bool) -> None:
    assert holds_facts(text) is holds


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("Boiling point: 75 °C / Flash point: 29 °C (closed cup)", "Boiling point: 29 °C\nFlash point: 75 °C (closed cup)", False),
        ("Boiling point: 75 °C / Flash point: 29 °C (closed cup)", "Flash point: 75 °C\nBoiling point: 29 °C (closed cup)", False),
        ("沸点 75 ℃，闪点 29 ℃（闭杯）", "沸点 29 ℃，闪点 75 ℃（闭杯）", False),
        ("沸点 75 ℃，闪点 29 ℃（闭杯）", "闪点 29 ℃（闭杯），沸点 75 ℃", False),
        ("| 沸点 | 75 ℃ |\n| 闪点 | 29 ℃ |", "- 沸点：75 ℃\n- 闪点：29 ℃", True),
        ("flam-\nmable liquid [edit]", "flammable liquid", True),
        ("**H₂O** 与 10<sup>3</sup>", "H₂O 与 10³", True),
        ("", "", True),
        ("text", "", True),
    ],
)  # fmt: skip
def test_a_rewriting_keeps_the_order_of_what_is_said(before: str, after: str, kept: bool) -> None:
    assert (reordered(before, after) == "") is kept


@pytest.mark.parametrize("dash", [*DASHES])
def test_every_dash_is_one_for_facts_and_for_copies_alike(dash: str) -> None:
    """A minus sign is one wherever texts are compared: no fact changes, and the texts are copies."""
    written, plain = f"闪点：{dash}20 ℃，沸点 12{dash}13 ℃", "闪点：-20 ℃，沸点 12-13 ℃"
    assert differences(written, plain) == []
    assert differences(written, plain.replace("-20", "20"))
    one, other = (Candidate(name, text, "", "zh", 4.0) for name, text in (("a", written), ("b", plain)))
    assert one.exact == other.exact
    assert one.exact != Candidate("c", plain.replace("-20", "20"), "", "zh", 4.0).exact

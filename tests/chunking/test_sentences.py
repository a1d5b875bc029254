from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking.sentences import split_sentences

# Sentences joined by "¦" must be cut there and nowhere else.
ZH = [
    "苯有毒。¦易燃。",
    "沸点64.7℃。¦闪点11℃。",
    "密度为0.79。¦相对蒸气密度1.1。",
    "温度不超过3.5 ℃。¦湿度不超过85%。",
    "2,4-二氯苯酚有毒。¦CAS号为120-83-2。",
    "CAS号：67-56-1，UN编号：1230。¦甲醇易燃。",
    "他说：“甲醇有毒。”¦然后离开了。",
    "“危险！”他喊道。",
    "“你好吗？”¦“我很好。”",
    "“怎么处理？”安全员问，“用水吗？”¦没有人应声。",
    "不得接触（见第4节）。¦立即就医。",
    "（见第4节。）¦不得接触。",
    "甲醇（又名木醇。）有毒。",
    "注意（不得混合！有危险）后停止。",
    "这是真的吗？！¦是的。",
    "等等……然后继续。",
    "他停了下来……\n¦然后继续。",
    "甲醇有毒.¦易燃.",
    "有毒吗?¦有毒!¦小心。",
    "见图2.3。¦下图为装置。",
    "pH值6.5～7.0。¦浓度≤0.5 mg/m3。",
    "第一条 为了安全，制定本条例。\n¦第二条 本条例适用于生产。\n",
    "闪点(℃)：12\n¦爆炸上限%(V/V)：44.0\n¦",
    "一、概述\n¦（一）范围\n¦1. 本标准适用于甲醇。\n",
    "1.立即脱离现场。¦2.就医。",
    "| 项目 | 数值 |\n¦|---|---|\n¦| 闪点 | 11.1 ℃ |\n¦",
    "# 甲醇\n\n¦甲醇是一种液体。\n",
    "危险货物：\r\n¦甲醇。\r\n¦乙醇。\r\n",
    "采用GB/T 16483-2008编写。¦第3.2条适用。",
    "俗称“木精”。¦又称《木醇》。",
    "使用了A/B两种方法，见表1.2，结果一致。",
    "He said 甲醇有毒。¦It burns.",
    "甲醇的IDLH为6000 ppm。¦Methanol is toxic.¦可燃。",
    "请拨打电话010-12345678.¦谢谢。",
    "３．５℃时结晶。¦其余不变。",
    "高锰酸钾(KMnO4)为氧化剂。¦Fe2(SO4)3·9H2O为水合物。",
]
EN = [
    "It is toxic. ¦It burns.",
    "The flash point is 11.5 °C. ¦It is flammable.",
    "See Fig. 2 for details. ¦Next one.",
    "See Figs. 2 and 3. ¦Then stop.",
    "Use gloves, e.g. nitrile ones. ¦Wash hands.",
    "Use gloves, i.e. Nitrile ones. ¦Wash hands.",
    "1. Wash hands. ¦2. Call a doctor.",
    "Do this: 1. Wash hands.",
    "Toxic (see section 4.) and flammable.",
    "It melts (see Table 2). ¦It boils.",
    "It is toxic.[12] ¦It burns.[13][14] ¦It smells.",
    "J. Smith et al. found it. ¦Then he left.",
    "H. C. Brown won it. ¦Good.",
    "Vitamin C. ¦It is an acid.",
    "Heat to 20 °C. ¦The liquid boils.",
    "Keep below 20 C. ¦The rest is ice.",
    "Made in the U.S. ¦The law applies.",
    "The U.S. Department of Labor agreed. ¦Yes.",
    "Under 42 U.S.C. 7412 it is listed. ¦So it is.",
    "Is it toxic? ¦Yes! ¦Very.",
    "CAS No. 67-56-1 is methanol. ¦UN No. 1230 too.",
    "The answer is no. ¦It is not.",
    "Acids, bases, etc. ¦The salt forms.",
    "Acids, bases, etc. are hazardous.",
    "SECTION 4. First aid measures",
    "Section 7412. Hazardous air pollutants",
    "It is n-hexane. ¦n-Hexane is toxic.",
    "It is base. ¦pH is 12.",
    'He said "It is toxic." ¦Then he left.',
    "He said “It is toxic.” ¦Then he left.",
    "Step 1. Remove clothing. ¦Step 2. Rinse.",
    "The ratio is 1:2. ¦The rest is 5.",
    "Approx. 5 mL were used by Dr. Wu. ¦Good.",
    "Add 5 mL vs. 6 mL. ¦Stir.",
    "The vapour density is 1.11 (air = 1). ¦It sinks.",
    "| a | b. c |\n¦| d | e |\n",
    "Inhalation: Move to fresh air. ¦Skin: Wash.",
    "Flash point: 12 °C\n¦Boiling point: 64.7 °C\n",
    "Visit https://example.org/a.b?c=1. ¦Then read.",
    "Version 2.0.1 is out. ¦Use it.",
    "Wait... ¦Then go.",
    "Wait... and go.",
    "This line was wrapped by an editor at seventy-two columns, which is\nwhy it goes on here. ¦Next.",
    "Short heading\n¦The text begins here.",
    "It contains NaOH, HCl, and H2SO4. ¦All corrode.",
    "Dose: 3.5 mg/kg. ¦LD50: 5628 mg/kg.",
    "Sold by Merck Co. Ltd. in 1990. ¦Then closed.",
    "Store at 2-8 °C! ¦Do not freeze.",
    "Emergency? ¦Call (1) poison control; (2) fire dept.",
    "Ph.D. students wrote it. ¦It shows.",
]


@pytest.mark.parametrize("case", ZH + EN)
def test_cuts_where_a_reader_would(case: str) -> None:
    expected = [part for part in case.split("¦") if part]
    text = case.replace("¦", "")
    assert [text[start:end] for start, end in split_sentences(text)] == expected


PIECES = st.sampled_from(
    [
        "。",
        ".",
        "! ",
        "？”",
        "\n",
        "\r\n",
        " ",
        "（",
        "）",
        '"',
        "甲醇",
        "toxic",
        "3.5",
        "e.g. ",
        "😀",
        "1. ",
        "…",
        "\u2028",
        "[1]",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("".join)))
def test_pieces_tile_any_text(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(text[start:end] for start, end in pieces) == text
    assert all(start < end for start, end in pieces)
    if text.strip():
        assert all(text[start:end].strip() for start, end in pieces)


def test_no_stops_and_no_text() -> None:
    assert split_sentences("") == []
    assert split_sentences("字" * 5000) == [(0, 5000)]
    assert split_sentences(" \n \n") == [(0, 4)]

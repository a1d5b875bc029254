"""What logical independence reads of Markdown tables: their words, never their frames."""

from __future__ import annotations

import math

import pytest

from chunking.chunkscore import boundary_losses, chunk_score, logical_independence, read_words
from chunking.vectors import SentenceVectors
from models.perplexity import NgramPerplexity
from models.tokens import count_words
from tests.chunking.embedder import HashedEmbedder

FRAME = "|  |  |\n| --- | --- |\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FRAME + "| 沸点 | 64.7 ℃ |\n| 闪点 | - |\n", "沸点 64.7 ℃\n闪点 -\n"),
        (
            "| Property | Value |\n|:--|--:|\n| Flash point | 11 °C |\n\nStore cool.",
            "Property Value\nFlash point 11 °C\n\nStore cool.",
        ),
        ("甲醇|乙醇的蒸气压 |x| 不变。\n", "甲醇|乙醇的蒸气压 |x| 不变。\n"),
        ("no table - and no bar\n", "no table - and no bar\n"),
        (FRAME, ""),
        ("", ""),
    ],
)
def test_words_of_tables_stay_and_frames_go(text: str, words: str) -> None:
    assert read_words(text) == words


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("| 皮肤接触 | 用清水冲洗，就医。 |\n", "| 外观与性状 | 无色透明液体，有刺激性气味 |\n"),
        ("| First aid | Wash with plenty of water. |\n", "| Appearance | Colourless, volatile liquid |\n"),
    ],
)
def test_equal_frames_do_not_make_sections_foretell_each_other(first: str, second: str) -> None:
    perplexity = NgramPerplexity(["安全技术说明书 用清水冲洗 液体 气味 water liquid safety data sheet"])
    framed = logical_independence([FRAME + first, FRAME + second], perplexity)
    bare = logical_independence([read_words(first), read_words(second)], perplexity)
    assert framed == pytest.approx(bare)


def test_a_chunk_that_is_only_a_frame_has_no_independence() -> None:
    values = logical_independence(["甲醇有毒。\n", FRAME, "乙醇易燃。\n"], NgramPerplexity(["甲醇乙醇"]))
    assert math.isnan(values[0])
    assert values[1] == pytest.approx(1.0)  # nothing with words before it


TEXT = "甲醇易燃，其蒸气与空气可形成爆炸性混合物。\n" + FRAME + "| 沸点 | 64.7 ℃ |\n| 闪点 | 11 ℃ |\n"


def test_borders_around_a_frame_are_one_border_of_words() -> None:
    table = SentenceVectors(TEXT, HashedEmbedder(), count_words)
    assert [TEXT[s:e] for s, e in table.sentences[1:3]] == ["|  |  |\n", "| --- | --- |\n"]
    li = boundary_losses(table, NgramPerplexity(["甲醇易燃 沸点 闪点 爆炸性混合物"]))
    assert li(1) == li(2) == li(3)  # before the frame, within it, behind it
    assert li(4) != li(3)


def test_borders_without_words_on_one_side_are_undefined() -> None:
    table = SentenceVectors(FRAME + "甲醇有毒。\n" + FRAME, HashedEmbedder(), count_words)
    li = boundary_losses(table, NgramPerplexity(["甲醇"]))
    assert all(math.isnan(li(i)) for i in range(1, len(table)))


def test_a_text_of_frames_alone_still_has_a_score() -> None:
    text = FRAME * 2
    table = SentenceVectors(text, HashedEmbedder(), count_words)
    score = chunk_score(text, [(0, len(FRAME)), (len(FRAME), len(text))], NgramPerplexity(["x"]), table)
    assert score.li is None
    assert score.cs is None
    assert score.sd is not None

"""Metrics against values worked out by hand."""

from __future__ import annotations

import pytest

from chunking.evaluation import metrics as m
from chunking.evaluation.statistics import Bootstrap


def test_evidence_recall_by_offsets() -> None:
    evidence = [("d", 10, 20), ("d", 15, 30), ("e", 0, 10)]  # 30 distinct characters
    assert m.evidence_recall(evidence, [("d", 0, 25)]) == pytest.approx(15 / 30)
    assert m.evidence_recall(evidence, [("d", 0, 100), ("e", 0, 5), ("e", 5, 10)]) == 1.0
    assert m.evidence_recall(evidence, []) == 0.0
    assert m.evidence_recall(evidence, [("other", 0, 100)]) == 0.0
    assert m.evidence_recall([], [("d", 0, 5)]) is None


def test_span_precision_and_iou() -> None:
    found = m.span_precision([("d", 0, 10)], [("d", 5, 25)])
    assert found == pytest.approx((5 / 20, 5 / 25))
    assert m.span_precision([("d", 0, 10)], []) is None


def test_substring_recall_ignores_width_and_punctuation_of_both_scripts() -> None:
    assert m.substring_recall(["闪点（℃）：11"], "……闪点(℃): 11。") == 1.0
    assert m.substring_recall(["The flash point is 11 °C."], "flash point is 11 °C") == 1.0
    assert m.substring_recall(["ＡＢＣ"], "abc") == 1.0
    assert m.substring_recall(["甲乙丙丁", "戊"], "甲乙丙丁") == pytest.approx(4 / 5)
    assert m.substring_recall([], "x") is None


def test_substring_recall_fails_across_pieces_where_spans_do_not() -> None:
    evidence, first, second = "甲醇易燃。蒸气有毒。", "甲醇易燃。", "蒸气有毒。"
    context = first + "\n\n其他。\n\n" + second
    assert m.substring_recall([evidence], context) == 0.0
    assert m.evidence_recall([("d", 0, 10)], [("d", 0, 5), ("d", 5, 10)]) == 1.0


@pytest.mark.parametrize(
    ("left", "right"), [("11.5", "115"), ("67-64-1", "67641"), ("-95 ℃", "95 ℃"), ("<5", "5")]
)
def test_normalisation_keeps_numbers_apart(left: str, right: str) -> None:
    assert m.normalised(left) != m.normalised(right)


def test_token_f1_uses_words_in_both_languages() -> None:
    assert m.token_f1("flash point 11", "Flash point: 11") == 1.0
    assert m.token_f1("闪点是11", "闪点是11") == 1.0
    assert m.token_f1("a b c d", "a b x y") == pytest.approx(0.5)
    assert m.token_f1("", "x") == 0.0
    assert "易燃" in m.words("甲醇易燃")


def test_rouge_l_is_the_longest_common_subsequence() -> None:
    assert m.rouge_l("the cat sat", "the cat sat") == 1.0
    assert m.rouge_l("police kill the gunman", "police killed the gunman") == pytest.approx(0.75)
    assert m.rouge_l("佩戴防毒面具", "佩戴防毒面具") == 1.0
    assert m.rouge_l("", "x") == 0.0


def test_bleu_reports_its_brevity_penalty() -> None:
    same = "keep away from heat and open flames"
    assert m.bleu_4(same, same) == pytest.approx((1.0, 1.0))
    score, brevity = m.bleu_4("keep away from heat", same)
    assert brevity == pytest.approx(2.718281828 ** (1 - 7 / 4))
    assert 0 < score <= brevity + 1e-9
    assert m.bleu_4("", same) == (0.0, 0.0)


def test_meteor_says_which_stages_ran() -> None:
    assert m.meteor_stages() in ("exact+stem", "exact+stem+wordnet")
    assert m.meteor("store in a cool place", "store in a cool place") > 0.99
    assert m.meteor("flames", "flame") > 0.4  # the stem stage
    assert m.meteor("x", "flame") == 0.0


def test_segmentation_errors() -> None:
    same = m.segmentation([3, 6], [3, 6], 12)
    assert same == {"pk": 0.0, "window_diff": 0.0, "boundary_similarity": 1.0}
    none = m.segmentation([3, 6], [], 12)
    assert none["boundary_similarity"] == 0.0
    assert none["pk"] is not None
    assert none["pk"] > 0
    assert m.segmentation([], [], 1)["pk"] is None


def test_bootstrap_is_seeded_and_paired() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0, None]
    one = Bootstrap(500, 0.95, 7).mean(values)
    assert one == Bootstrap(500, 0.95, 7).mean(values)
    assert one.n == 5
    assert one.value == pytest.approx(0.6)
    assert one.low is not None
    assert one.high is not None
    assert one.low < 0.6 < one.high
    assert Bootstrap(500, 0.95, 7).mean([None]).value is None
    # a constant shift has no spread when it is paired
    shifted = Bootstrap(500, 0.95, 7).difference([0.5, 1.5, 2.5], [0.0, 1.0, 2.0])
    assert (shifted.low, shifted.value, shifted.high) == (0.5, 0.5, 0.5)
    assert Bootstrap(500, 0.95, 7).difference([1.0, None], [0.0, 1.0]).n == 1

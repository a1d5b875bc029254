"""What the report says of gates and scores, in both languages: gates and stages by name, bars on their side of the line."""

from __future__ import annotations

import re

import pytest

from corpus.catalogue.tables import Check
from flows.operation_settings import GATES
from flows.parameters import STAGES
from flows.report import figures, gates
from flows.report.page import _term
from flows.report.words import LANGUAGES, WORDS

ZH, EN = WORDS["zh"], WORDS["en"]
_BAR = re.compile(r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) [\d.]+ \nL [\d.]+ ([\d.]+) [^"]*" clip-path')


def _found(check: Check, language: str = "zh") -> str:
    words = ZH if language == "zh" else EN
    return str(gates.found(check, words, lambda code: _term(words, code)))


@pytest.mark.parametrize("words", [WORDS[language] for language in LANGUAGES])
def test_every_gate_and_stage_has_a_name(words: object) -> None:
    assert isinstance(words, type(ZH))
    for name in GATES:
        assert bool(re.search(r"[\u3400-\u9fff]", gates.judged(name, words))) == (words.language == "zh")
    for stage in STAGES:
        assert bool(re.search(r"[\u3400-\u9fff]", words.term(stage))) == (words.language == "zh")
    assert gates.judged("gate_of_an_old_catalogue", words) == ""


def test_a_sentence_is_said_with_its_figures() -> None:
    drop = Check(
        name="documents_drop",
        scope="a (b): c",
        message="documents_drop (a (b): c): 100 → 72, −28 % (limit −20 %)",
    )
    assert _found(drop) == "100 → 72，−28 %（限值 −20 %）"
    assert _found(drop, "en") == "100 → 72, −28 % (limit −20 %)"
    refused = "crawl_refused (x): 75 % (of 12 pages: http_403 4, robots 5) (limit at most 50 %)"
    assert _found(Check(name="crawl_refused", scope="x", message=refused)) == (
        '75 %（共 12 页：<span translate="no">http_403</span> 4、robots 禁止 5）（限值至多 50 %）'
    )


def test_a_sentence_that_is_not_known_stays_and_is_no_markup() -> None:
    check = Check(name="proofs_failed", scope="", message="proofs_failed: 3 of <b>them</b>")
    assert _found(check, "en") == "3 of &lt;b&gt;them&lt;/b&gt;"
    assert _found(check) == f'<span translate="no" lang="en">{_found(check, "en")}</span>'


def _bars(scores: list[float]) -> list[tuple[float, float]]:
    """(left, right) of the bars that are drawn, as scores."""
    svg = figures.histogram(scores, 3.0)
    marks = [float(x) for x in re.findall(r'<use xlink:href="#\w+" x="([\d.]+)" y="\d[\d.]*" ', svg)][:6]
    per_score = (marks[5] - marks[0]) / 5
    bars = [(float(a), float(b)) for a, y, b, top in _BAR.findall(svg) if y != top]
    return [((a - marks[0]) / per_score, (b - marks[0]) / per_score) for a, b in bars]


@pytest.mark.parametrize("score", [0.0, 0.5, 1.5, 2.5, 3.0, 3.1, 3.5, 5.0])
def test_a_score_lies_inside_its_bar(score: float) -> None:
    (bar,) = _bars([score])
    assert bar[0] + 0.04 < score < bar[1] - 0.04


def test_a_score_at_the_threshold_and_one_above_it_are_two_bars() -> None:
    assert len(_bars([3.0, 3.0, 3.1])) == 2

"""The quality score: what is a document, what is not, and what an answer must satisfy."""

from __future__ import annotations

from itertools import pairwise

import pytest

from corpus.quality import Score, ScoreDocument, ScoreGiven, formula, measure, sample_windows
from models.tokens import count_words

SHEET = "\n\n".join(
    [
        "# 甲醇安全技术说明书",
        "## 第一部分 化学品及企业标识\n\n甲醇，methanol，CAS 67-56-1，分子式CH₄O，UN1230。",
        "## 第二部分 危险性概述\n\nH225 高度易燃液体和蒸气。H301 吞咽会中毒。H370 会损害器官。",
        "## 第四部分 急救措施\n\n皮肤接触：脱去污染的衣着，用肥皂水和清水彻底冲洗皮肤。食入：不要催吐，立即就医。",
        "## 第五部分 消防措施\n\n用抗溶性泡沫、干粉、二氧化碳、砂土灭火。不得使用普通蛋白泡沫。",
        "## 第七部分 操作处置与储存\n\n储存于阴凉、通风的库房。远离火种、热源。库温不宜超过37 ℃。应与氧化剂、酸类分开存放。",
        "## 第九部分 理化特性\n\n熔点 -98 ℃，沸点 64.8 ℃，闪点 11 ℃（闭杯），密度 0.79 g/cm³，爆炸极限 6.0%~36.5%。",
        "## 第十部分 稳定性和反应性\n\n禁配物：强氧化剂、强酸、酸酐、碱金属。燃烧产物：一氧化碳、二氧化碳。",
    ]
)
SHEET_EN = "\n\n".join(
    [
        "# Safety Data Sheet: Acetone",
        "## SECTION 1: Identification\n\nAcetone, CAS 67-64-1, UN 1090, C₃H₆O, used as a solvent.",
        "## SECTION 2: Hazard(s) identification\n\nHighly flammable liquid and vapour (H225). Causes serious eye irritation (H319).",
        "## SECTION 4: First-aid measures\n\nInhalation: move to fresh air. Eyes: rinse with water for 15 minutes. Seek medical advice.",
        "## SECTION 5: Fire-fighting measures\n\nUse alcohol-resistant foam, dry powder or carbon dioxide. Do not use a water jet.",
        "## SECTION 7: Handling and storage\n\nStore in a cool, well-ventilated place below 30 °C, away from oxidizing agents and acids.",
        "## SECTION 9: Physical and chemical properties\n\nBoiling point 56 °C, flash point -18 °C, density 0.79 g/cm³, limits 2.5 % to 13 %.",
    ]
)
SEARCH = "# 搜索结果\n\n为您找到相关结果约 1,280 条\n\n" + "\n".join(
    f"- 甲醇，CAS：67-56-1，甲醇的危险性、储存{i}…" for i in range(20)
)
CONTENTS = "# General Chemistry\n\nWelcome.\n\n" + "\n\n".join(
    f"## Chemical reactions {i}" for i in range(12)
)
PORTAL = "# 化学品大全\n\n" + "\n".join(f"- 有机溶剂{i}" for i in range(40))
COOKING = "# Bread\n\n" + " ".join(
    ["The baker kneads the dough and lets it rest for the night before it is baked."] * 1
    + [f"Loaf number {i} is given to a guest who likes it very much." for i in range(80)]
)


def score(text: str, title: str = "", language: str = "zh", links: float = 0.0) -> Score:
    return formula(measure(text, title=title, count=count_words, link_share=links), language)


@pytest.mark.parametrize(("text", "language"), [(SHEET, "zh"), (SHEET_EN, "en")])
def test_data_sheets_are_kept(text: str, language: str) -> None:
    found = score(text, language=language)
    assert found.score > 3
    assert {1, 2, 4, 5, 7, 9} <= set(found.sds_sections)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (SEARCH, "“酸”的搜索结果"),
        (CONTENTS, "General Chemistry"),
        (PORTAL, "首页"),
        ("页面不存在\n\n抱歉，您访问的页面不存在或已被删除。", "404"),
        ("请先登录后查看甲醇的安全技术说明书。忘记密码？立即注册。", "用户登录"),
        ("This domain may be for sale. Buy this domain.", "methanol.example"),
        ("Please enable JavaScript to view the chemical data sheet.", "Acetone"),
        ("", ""),
    ],
)
def test_pages_that_are_no_documents_stay_below(text: str, title: str) -> None:
    assert score(text, title).score <= 2


def test_a_text_about_something_else_stays_below() -> None:
    assert score(COOKING, "Bread", "en").score <= 3


def test_links_and_repeats_cost() -> None:
    assert score(SHEET, links=0.9).score < score(SHEET).score
    line = "\n\n本品为无色透明液体，易燃，其蒸气与空气可形成爆炸性混合物，遇明火燃烧。"
    assert score(SHEET + line * 30).readability < score(SHEET).readability


def test_traditional_characters_count_the_same() -> None:
    from opencc import OpenCC

    traditional = OpenCC("s2t").convert(SHEET)
    assert abs(score(traditional).score - score(SHEET).score) <= 0.2


def given(text: str = SHEET, language: str = "zh") -> ScoreGiven:
    return ScoreGiven("甲醇", language, (text,), measure(text, title="甲醇", count=count_words))


def test_the_offline_answer_passes_its_own_check() -> None:
    skill = ScoreDocument()
    for text, language in ((SHEET, "zh"), (SHEET_EN, "en"), (SEARCH, "zh"), ("x", "en")):
        asked = given(text, language)
        assert skill.check(asked, skill.offline(asked)).kind == "accept"


GOOD = {
    "score": 4.0, "density": 4.5, "safety": 4.5, "completeness": 4.0, "readability": 4.0, "authority": 3.0,
    "reason": "完整", "language": "zh", "sds_sections": [1, 2],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": 4.25}, "one decimal"),
        ({"score": 4.9}, "above all sub-scores"),
        (
            {"score": 4.4, "density": 4.5, "safety": 1.0, "completeness": 1.0, "readability": 1.0},
            "not borne out",
        ),
        ({"reason": " "}, "reason is missing"),
        ({"language": "en"}, "language of the text"),
        ({"sds_sections": [17]}, "1 to 16"),
    ],
)
def test_check_refuses(change: dict[str, object], said: str) -> None:
    assert ScoreDocument().check(given(), Score.model_validate(GOOD)).kind == "accept"
    verdict = ScoreDocument().check(given(), Score.model_validate(GOOD | change))
    assert verdict.kind == "ask_again"
    assert any(said in reason for reason in verdict.reasons)


def test_a_model_cannot_keep_a_search_page() -> None:
    verdict = ScoreDocument().check(given(SEARCH), Score.model_validate(GOOD))
    assert any("not a document" in reason for reason in verdict.reasons)


def test_samples_are_fixed_ordered_and_hold_both_ends() -> None:
    text = "\n".join(f"第{i}行，说明化学品的性质。" for i in range(800))
    spans = sample_windows(text, 4, 100, count_words)
    assert spans == sample_windows(text, 4, 100, count_words)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(a < b for a, b in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    assert all(count_words(text[a:b]) <= 110 for a, b in spans)
    assert sample_windows("短文", 4, 100, count_words) == [(0, 2)]

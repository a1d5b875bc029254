"""Where divisions begin without headings: layout, gaps, and what can never open one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking import baselines
from chunking.borders import FEATURES, NOWHERE, cut_worth, opening_evidence, opening_odds
from chunking.evaluation.published.comparison import border_counts, points_of_result
from chunking.evaluation.published.data import from_markdown
from chunking.hichunk import AssignLevels
from chunking.hichunk.levels import LevelsIn
from chunking.segment import segment
from chunking.vectors import PARAGRAPH, SentenceVectors
from corpus.cleaning import clean_page
from models.tokens import count_words
from tests.chunking.embedder import HashedEmbedder
from tests.conftest import SAMPLES

ROW = "| 闪点 | 11 ℃ |"
HEADER, RULE = "|  |  |", "| --- | --- |"
ZH = "甲醇应储存于阴凉、通风良好的专用库房内，远离火种、热源。"
EN = "Keep the container tightly closed in a cool and well ventilated place."


def _odds(*lines: str, gaps: dict[int, float] | None = None) -> list[float]:
    found = [0.0, *[0.4] * (len(lines) - 1)]
    for index, gap in (gaps or {}).items():
        found[index] = gap
    return list(opening_odds(lines, found))


def test_nothing_opens_inside_a_table_or_at_its_rule() -> None:
    odds = _odds(HEADER, RULE, ROW, ROW, HEADER, RULE, ROW)
    assert [math.isinf(value) for value in odds] == [True, True, True, True, False, True, True]
    assert odds[4] > 0  # one table behind another: the second is of something else


@pytest.mark.parametrize("line", [ZH, EN])
def test_nothing_opens_inside_a_paragraph(line: str) -> None:
    odds = _odds(line, line, line, gaps={1: 0.0})
    assert math.isinf(odds[1])
    assert not math.isinf(odds[2])


@pytest.mark.parametrize("line", [ZH, EN])
def test_a_wide_gap_speaks_for_a_division(line: str) -> None:
    odds = _odds(*[line] * 9, gaps={5: 0.9})
    assert int(np.argmax(odds)) == 5


@pytest.mark.parametrize(
    ("lead", "items"),
    [
        ("灭火剂如下：", ["（一）抗溶性泡沫", "（二）干粉", "（三）二氧化碳"]),
        ("Use one of these:", ["- foam", "- dry powder", "- carbon dioxide"]),
    ],
)
def test_a_list_stays_together_and_with_its_lead_in(lead: str, items: list[str]) -> None:
    odds = _odds(ZH, lead, *items, ZH)
    assert max(odds[2:5]) < min(odds[1], odds[5])


def test_among_articles_only_an_article_opens_a_division() -> None:
    articles = [f"第{number}条 {ZH}" for number in "一二三四五六"]
    odds = _odds(*articles[:4], ZH, *articles[4:], gaps={4: 0.8, 5: 0.8})
    assert odds[5] > odds[4] + 2
    # three numbered articles quoted in a page make no statute of it
    quoted = _odds(*articles[:3], ZH, ZH, ZH)
    assert quoted[4] > _odds(*articles[:5], ZH, ZH, ZH)[6] + 2


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.text(max_size=30), st.sampled_from([ROW, HEADER, RULE, ZH, EN, "- a", "第一条 甲", ""])),
        max_size=30,
    ),
    st.data(),
)
def test_any_lines_have_odds(lines: list[str], data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.floats(0, 2), min_size=len(lines), max_size=len(lines)))
    odds = opening_odds(lines, gaps)
    assert odds.shape == (len(lines),)
    assert not np.isnan(odds).any()
    assert not lines or math.isinf(odds[0])
    places, evidence = opening_evidence(lines, gaps)
    assert evidence.shape == (len(places), len(FEATURES))
    assert np.isfinite(evidence).all()


# --- gaps of a text ----------------------------------------------------------------------------------------------


def _gaps(text: str) -> list[float]:
    return list(SentenceVectors(text, HashedEmbedder(), count_words).gaps())


def test_gaps_count_where_a_paragraph_begins() -> None:
    gaps = _gaps(f"{EN} {EN}\n{ZH}{ZH}\n\n{EN}\n")
    assert [gap > 0 for gap in gaps] == [False, True, False, True]


def test_a_text_without_line_ends_may_be_divided_anywhere() -> None:
    text = " ".join(f"{number} {EN}" for number in range(PARAGRAPH // len(EN) + 2))
    assert all(gap > 0 for gap in _gaps(text))


# --- worth of a cut --------------------------------------------------------------------------------------------


def _table(text: str) -> SentenceVectors:
    return SentenceVectors(text, HashedEmbedder(), count_words)


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("## 第四部分 急救措施", ZH),
        ("第四部分 急救措施", ZH),
        ("## First aid", EN),
        ("SECTION 4 First aid", EN),
    ],
)
def test_a_cut_stands_before_a_heading_and_never_behind_it(title: str, line: str) -> None:
    text = f"{line}\n{line}\n{title}\n{line} {line}\n{line}\n"
    table = _table(text)
    worth = cut_worth(table)
    at = [text[start:end].strip() for start, end in table.sentences].index(title)
    assert int(np.argmax(worth)) == at - 1
    assert worth[at - 1] > 0
    assert int(np.argmin(worth)) == at
    assert worth[at] < NOWHERE


def test_inside_tables_and_paragraphs_a_cut_is_worth_least_but_behind_a_header() -> None:
    text = f"{ZH}{ZH}\n{HEADER}\n{RULE}\n{ROW}\n{ROW}\n\n{EN} {EN}\n"
    worth = cut_worth(_table(text))
    assert [value > NOWHERE for value in worth] == [False, True, False, False, False, True, False]
    assert max(worth[2:4]) < NOWHERE == worth[4] == worth[0]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([ROW, HEADER, RULE, ZH, EN, "# 甲", "## B", "- a", "第一条 甲", "", "\r"]),
        max_size=30,
    )
)
def test_every_boundary_has_a_worth(lines: list[str]) -> None:
    table = _table("\n".join(lines))
    worth = cut_worth(table)
    assert worth.shape == (max(len(table) - 1, 0),)
    assert np.isfinite(worth).all()


@pytest.mark.parametrize("line", [ZH, EN])
def test_semantic_breakpoints_are_never_inside_paragraphs_or_tables(line: str) -> None:
    blocks = [f"{number} {line} {line[::-1]} {line}\n" for number in range(6)]
    text = "".join([*blocks, f"{HEADER}\n{RULE}\n", *[f"{ROW}\n"] * 4, *blocks])
    starts = [start for start, _ in baselines.semantic(_table(text), 500, percentile=30)][1:]
    assert starts
    lines = [0, *[index + 1 for index, char in enumerate(text) if char == "\n"]]
    assert set(starts) <= set(lines)
    assert not any(text.startswith((ROW, RULE), start) for start in starts)


# --- the levels skill ----------------------------------------------------------------------------------------------


def test_divisions_of_a_text_without_headings() -> None:
    """Made-up sheet whose section headings were taken away: each section is a table of its own."""
    lines = (HEADER, RULE, ROW, ROW, HEADER, RULE, ROW, HEADER, RULE, ROW, ROW)
    gaps = (0.0, *[0.3] * (len(lines) - 1))
    points = AssignLevels().offline(LevelsIn(lines, 0, "zh", gaps)).points
    assert [(point["index"], point["level"]) for point in points] == [(0, 1), (4, 2), (7, 2)]


def test_where_headings_stand_a_gap_alone_adds_no_division() -> None:
    body = (ZH, ZH, ZH, ZH)
    headed = ("甲醇", "第一章 总则", *body, "第二章 储存", *body, "第三章 附则", *body)
    bare = tuple(line for line in headed if not line.startswith("第"))
    for lines, more in ((headed, False), (bare, True)):
        wide = lines.index(ZH) + 6
        gaps = tuple(0.75 if i == wide else 0.3 for i in range(len(lines)))
        points = AssignLevels().offline(LevelsIn(lines, 0, "zh", gaps)).points
        assert (wide in {point["index"] for point in points}) is more


@pytest.mark.parametrize(
    ("file", "least"),
    [("hxpaq.example/msds/67-56-1.html", 0.8), ("en.wikipedia.org-2019/explosion.html", 0.6)],
)
def test_sections_of_sample_pages_are_found_without_their_headings(file: str, least: float) -> None:
    """A made-up Chinese data sheet and an English encyclopaedia page (``benchmarks/segmentation.py`` has the rest)."""
    page = clean_page((SAMPLES / "pages" / file).read_bytes(), url="https://s.example/")
    document = from_markdown(file, page.text, "removed")
    result = segment(document.text, "hichunk")
    points = dict(points_of_result(result, document.text))
    hits, made, wanted = border_counts(
        {at: level for at, level in points.items() if at}, document.borders, document.text
    )["any"]
    assert 2 * hits / (made + wanted) >= least

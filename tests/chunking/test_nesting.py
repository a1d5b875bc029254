"""Order of levels: by how numbers run, whatever the style; made-up texts, zh and en, marks hidden, lines removed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking.headings import Heading, heading_shape
from chunking.hichunk import AssignLevels
from chunking.hichunk.levels import LevelsIn
from chunking.nesting import number_of, ranks
from chunking.partition import check_tiling
from chunking.segment import Segmenter
from chunking.settings import ChunkSettings
from tests.chunking.test_partition import HashedModels

ZH = "虚构剂应储存于阴凉、通风良好的专用库房内，远离火种、热源，并与氧化剂分开存放。"
EN = "Keep madeupine tightly closed in a cool and well ventilated place, away from heat and sources of ignition."

# A heading with its level a line; text stands below each one that has no deeper one right below it.
TEXTS = {
    "节 under 章, called like a sheet's section": """
        1 虚构剂管理办法
        2 第一章 总则
        3 第一节 目的
        3 第二节 范围
        2 第二章 应急处置
        3 第一节 一般规定
        3 第二节 消防措施
        3 第三节 急救措施
        2 第三章 附则""",
    "（一） under 一、, called like a sheet's section": """
        1 虚构剂手册
        2 一、概述
        2 二、应急处置
        3 （一）急救措施
        3 （二）消防措施
        3 （三）泄漏应急处理
        2 三、储存
        2 四、其他
        3 （一）废弃处置
        3 （二）运输信息""",
    "第3部分 with 3.1": """
        1 化学品安全技术说明书
        2 第1部分 化学品及企业标识
        2 第2部分 危险性概述
        3 2.1 紧急情况概述
        3 2.2 危险性类别
        2 第3部分 成分/组成信息
        2 第4部分 急救措施
        3 4.1 急救措施描述
        3 4.2 主要症状
        2 第5部分 消防措施""",
    "一、（一）1.（1）": """
        1 苯
        2 一、理化性质
        3 （一）外观
        4 1. 颜色
        5 （1）常温
        5 （2）低温
        4 2. 气味
        3 （二）沸点
        4 1. 常压
        2 二、危险性概述
        3 （一）健康危害
        3 （二）燃爆危险
        2 三、急救措施""",
    "1. above 一、": """
        1 虚构剂手册
        2 1. 概述
        3 一、目的
        3 二、范围
        2 2. 应急处置
        3 一、急救措施
        3 二、消防措施
        2 3. 储存
        3 一、库房""",
    "names of sections below running numbers": """
        1 苯
        2 一、概述
        2 二、应急处置
        3 急救措施
        3 消防措施
        2 三、法规""",
    "一、 of an old sheet, with lists": """
        1 安全技术说明书
        2 一、化学品及企业标识
        2 二、成分/组成信息
        2 三、危险性概述
        2 四、急救措施
        3 1. 吸入
        3 2. 食入
        2 五、消防措施
        2 六、泄漏应急处理""",
    "SECTION 4 with 4.1": """
        1 Madeupine
        2 SECTION 1: Identification
        3 1.1 Product identifier
        3 1.2 Relevant uses
        2 SECTION 4: First aid measures
        3 4.1 Description of first aid measures
        3 4.2 Most important symptoms
        2 SECTION 5: Firefighting measures
        3 5.1 Extinguishing media""",
    "4. with 4.1": """
        1 Madeupine
        2 1. Identification
        2 2. Hazards identification
        2 4. First aid measures
        3 4.1 Inhalation
        3 4.2 Skin
        2 5. Fire-fighting measures""",
    "Part, Chapter, Section": """
        1 Handbook
        2 Part I General
        3 Chapter 1 Scope
        3 Chapter 2 First aid measures
        2 Part II Storage
        3 Chapter 3 Handling and storage
        4 Section 3.1 Rooms
        4 Section 3.2 Doors""",
    "I. A.": """
        1 Manual
        2 I. Scope
        3 A. General
        3 B. Details
        2 II. First aid measures
        3 A. Eyes
        3 B. Skin""",
    "A. above 1.": """
        1 Manual
        2 A. Scope
        3 1. General
        3 2. Details
        2 B. First aid measures
        3 1. Eyes
        3 2. Skin""",
}


def _rows(name: str) -> list[tuple[int, str]]:
    parts = (line.strip().split(" ", 1) for line in TEXTS[name].strip().splitlines())
    return [(int(level), title) for level, title in parts]


def _text(name: str, *, removed: bool = False) -> tuple[tuple[str, ...], dict[int, int]]:
    rows = _rows(name)
    body = ZH if any("\u4e00" <= char <= "\u9fff" for _, title in rows for char in title) else EN
    lines: list[str] = []
    levels: dict[int, int] = {}
    for at, (level, title) in enumerate(rows):
        levels[len(lines)] = level
        lines += [] if removed else [title]
        if at and not (at + 1 < len(rows) and rows[at + 1][0] > level):
            lines.append(body)
    return tuple(lines), levels


@pytest.mark.parametrize("name", TEXTS)
def test_levels_in_their_order(name: str) -> None:
    lines, levels = _text(name)
    found = AssignLevels().offline(LevelsIn(lines, 0, "zh")).points
    assert {point["index"]: point["level"] for point in found} == levels


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("removed", [False, True], ids=["hidden", "removed"])
def test_whole_runs_tile_with_marks_hidden_and_lines_removed(name: str, removed: bool) -> None:
    lines, levels = _text(name, removed=removed)
    marked = [
        f"{'#' * levels[i]} {line}" if not removed and i in levels else line for i, line in enumerate(lines)
    ]
    for shown in (lines, marked):
        text = "\n\n".join(shown) + "\n"
        result = Segmenter(HashedModels(), ChunkSettings(size=30)).run(text, "hichunk")
        check_tiling(result.spans, len(text))
        points = dict(result.record["levels"]["points"])
        assert points[0] == 1
        if removed:
            assert len(points) >= 1  # without headings only layout and gaps tell
        else:  # the marks are hidden from the rules: both forms are one text to them
            assert sorted(points.values()) == sorted(levels.values())


@pytest.mark.parametrize(
    "line,number",
    [
        ("第十二章 附则", 12), ("第3部分 成分", 3), ("二十一、其他", 21), ("（十）运输", 10), ("4.12 Skin", 12), ("IV. Scope", 4),
        ("③ 库房", 3), ("C. Doors", 3), ("(b) Doors", 2), ("第一百零二条 罚则", 102), ("SECTION 16 Other", 16), ("附录 B", 2),
    ],
)  # fmt: skip
def test_numbers_of_headings(line: str, number: int) -> None:
    shape = heading_shape(line)
    assert shape is not None
    assert number_of(shape) == number


_LINES = st.sampled_from([title for name in TEXTS for _, title in _rows(name)])


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES, max_size=25))
def test_any_headings_have_ranks_and_equal_shapes_equal_ones(lines: list[str]) -> None:
    heads: dict[int, Heading] = {i: shape for i, line in enumerate(lines) if (shape := heading_shape(line))}
    found = ranks(heads)
    assert found.keys() == heads.keys()
    for one, other in itertools.combinations(heads, 2):
        if (heads[one].style, heads[one].depth) == (heads[other].style, heads[other].depth) and not (
            heads[one].sds or heads[other].sds
        ):
            assert found[one] == found[other]
    assert sorted(set(found.values())) == list(range(len(set(found.values()))))

"""Recognition of the 16 SDS sections."""

from __future__ import annotations

from itertools import pairwise

import pytest

from corpus.headings import rebuild_levels, sections_of
from corpus.sections import SdsSection, sds_section, sds_sections


@pytest.mark.parametrize("section", list(SdsSection))
def test_official_names_in_many_dresses(section: SdsSection) -> None:
    n = int(section)
    zh, en = section.name_zh, section.name_en
    chinese = ("十" if n > 9 else "") + "零一二三四五六七八九"[n % 10] if n != 10 else "十"
    for heading in (
        zh,
        f"第{chinese}部分 {zh}",
        f"第{n}部分：{zh}",
        f"{chinese}、{zh}",
        f"{n} {zh}",
        f"{n}．{zh}",
    ):
        assert sds_section(heading) == n, heading
    for heading in (en, f"SECTION {n}: {en}", f"{n}. {en}", f"Section {n} - {en.upper()}", f"## {n}) {en}"):
        assert sds_section(heading) == n, heading


@pytest.mark.parametrize(
    ("heading", "number"),
    [
        ("4 急救", 4),
        ("第四部分", 4),
        ("SECTION 9", 9),
        ("SECTION 1: Identification of the substance/mixture and of the company/undertaking", 1),
        ("急救措施 First-aid measures", 4),
        ("七、安全處置與儲存方法", 7),
        ("XI. TOXICOLOGICAL INFORMATION", 11),
        ("**5. Firefighting measures**", 5),
    ],
)
def test_other_spellings(heading: str, number: int) -> None:
    assert sds_section(heading) == number


@pytest.mark.parametrize(
    "heading",
    [
        "4.1 急救措施的描述", "第五章 法律责任", "第十五条", "Section 1. Short title", "2,4-Dinitrophenol",
        "4 mg/kg oral", "2019年", "其他", "History", "", "1,2-二氯乙烷", "Hazards of the work\nplace",
    ],
)  # fmt: skip
def test_not_a_section(heading: str) -> None:
    assert sds_section(heading) is None


def test_a_sheet_lends_its_numbers_to_unknown_words() -> None:
    headings = [f"{n}. {SdsSection(n).name_en}" for n in (1, 2, 3, 4)] + [
        "5. What to do when it burns",
        "Hazards",
    ]
    assert sds_sections(headings) == [1, 2, 3, 4, 5, None]
    assert sds_sections(["5. What to do when it burns"]) == [None]


def test_sections_tile_and_sub_headings_inherit() -> None:
    text = "intro\n\n# 4. 急救措施\n\n## 4.1 吸入\n\n移至空气新鲜处。\n\n# 5. 消防措施\n\n泡沫。"
    sections = sections_of(text)
    assert [s["sds"] for s in sections] == [None, 4, 4, 5]
    assert sections[0]["start"] == 0
    assert sections[-1]["end"] == len(text)
    assert all(a["end"] == b["start"] for a, b in pairwise(sections))


def test_a_table_row_can_open_a_section() -> None:
    text = "| 第四部分 急救措施 | |\n| --- | --- |\n| 吸入 | 就医 |\n| 5. 消防措施; 5.1 灭火剂: 泡沫 | |"
    assert [(s["heading"], s["sds"]) for s in sections_of(text)] == [
        ("第四部分 急救措施", 4),
        ("5. 消防措施", 5),
    ]


def test_levels_are_rebuilt_without_gaps_and_stay() -> None:
    blocks = ["## A", "text", "##### B", "### C", "# D"]
    rebuilt = rebuild_levels(blocks)
    assert rebuilt == ["# A", "text", "## B", "## C", "# D"]
    assert rebuild_levels(rebuilt) == rebuilt

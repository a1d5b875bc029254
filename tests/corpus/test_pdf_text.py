"""PDF: columns one after the other, tables as tables, raised and lowered characters however they are placed."""

from __future__ import annotations

import pytest

from corpus.cleaning import clean_page
from tests.corpus.pdf_pages import at, pdf

LEFT_EN = (
    "Methanol is a colourless liquid that is",
    "miscible with water. It must not be put",
    "near open flames, since its vapour burns",
    "at 11 degrees already. The vapour is not",
    "much heavier than air and does not stay",
    "on the ground for long.",
    "Swallowing 30 mL may kill an adult; half",
    "of it may blind. There is an antidote that",
)
RIGHT_EN = (
    "only a physician gives. Do not wait until",
    "symptoms appear: they begin after 12 to 24",
    "hours, when formic acid has been formed.",
    "Ethanol competes for the same enzyme and",
    "is not to be given by laymen.",
    "Store it in closed vessels below 30 degrees",
    "and away from oxidizers. Spills are taken",
    "up with sand and never washed into drains.",
)
LEFT_ZH = (
    "甲醇是无色透明的液体，能与水任意混溶，其",
    "蒸气与空气可形成爆炸性混合物，遇明火或高",
    "热能引起燃烧爆炸，不得与氧化剂混存混运。",
    "误服三十毫升即可致死，十毫升可致失明，应",
    "立即送医，不可等待症状出现以后再行处置，",
    "潜伏期可达二十四小时，其间患者并无不适。",
)
RIGHT_ZH = (
    "储存时库温不宜超过三十摄氏度，容器须保持",
    "密封，并与酸类及碱金属分开存放，切忌混储",
    "。采用防爆型照明与通风设施，禁止使用容易",
    "产生火花的机械设备和工具，储区应备有泄漏",
    "应急处理设备和合适的收容材料，不得排入下",
    "水道，废弃物交由有资质的单位集中进行焚烧",
)


def columns(left: tuple[str, ...], right: tuple[str, ...], *, shift: float = 0.0, top: float = 700) -> str:
    lines = [at(40, top - 14 * n, text) for n, text in enumerate(left)]
    lines += [at(320, top - shift - 14 * n, text) for n, text in enumerate(right)]
    return "".join(sorted(lines, key=lambda line: -float(line.split(" Tm")[0].split()[-1])))  # row by row


def read(page: str) -> list[str]:
    text = clean_page(pdf(page)).text
    return [line for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(("left", "right"), [(LEFT_EN, RIGHT_EN), (LEFT_ZH, RIGHT_ZH)])
@pytest.mark.parametrize("shift", [0.0, 6.0])
def test_columns_are_read_one_after_the_other(
    left: tuple[str, ...], right: tuple[str, ...], shift: float
) -> None:
    """Also where their lines are not level, and between a heading and a foot that go across."""
    title = at(40, 740, "Card of the substance methanol, made up for the tests of column reading", 10)
    foot = at(40, 520, "This sheet is made up and says nothing about the real substance at all.", 10)
    found = read(title + columns(left, right, shift=shift) + foot)
    said = [line for line in found if line in (*left, *right)]
    assert said == [*left, *right]
    assert found[0].endswith("column reading")
    assert found[-1].startswith("This sheet")


def test_three_columns() -> None:
    texts = [
        [f"{word} column line {n} of text here" for n in range(8)] for word in ("first", "second", "third")
    ]
    page = "".join(
        at(20 + 195 * column, 700 - 12 * n, text, 9) for n in range(8) for column, text in enumerate(row[n] for row in texts)
    )  # fmt: skip
    assert read(page) == [line for column in texts for line in column]


KEYS = (
    ("Appearance and physical state at 20", "clear colourless liquid that smells faint"),
    ("Boiling point at normal air pressure", "64.7 degrees, by the method of Siwoloboff"),
    ("Flash point, measured in closed cup", "11 degrees; in open cup it is 16 degrees"),
    ("Explosive limits in air, by volume", "lower 6.0 and upper 36.5 per cent of it"),
    ("Solubility in water at 20 degrees", "miscible with water in each proportion"),
    ("Vapour pressure measured at 20", "128 hPa, which is 96 mm of mercury then"),
)


def test_labels_stay_with_their_values() -> None:
    """What only looks like columns is a table without lines: label and value stay on one line."""
    short = [("Boiling point:", "64.7 degrees"), ("闪点：", "11 摄氏度"), ("Flash point:", "11 degrees"), ("沸点：", "64.7 摄氏度")] * 2  # fmt: skip
    page = "".join(
        at(x, 700 - 14 * n, text)
        for n, row in enumerate(short)
        for x, text in zip((40, 320), row, strict=True)
    )
    assert read(page) == [f"{label} {value}" for label, value in short]
    colon = [(f"{label}:", value) for label, value in KEYS]
    page = "".join(
        at(x, 700 - 14 * n, text)
        for n, row in enumerate(colon)
        for x, text in zip((40, 320), row, strict=True)
    )
    assert read(page) == [f"{label} {value}" for label, value in colon]


def test_cells_that_begin_together_are_rows() -> None:
    """Two columns of sentences in rows that stand apart: the rows of a table, not columns of a text."""
    page, expected, y = "", [], 700.0
    for start in range(0, 6, 2):
        for n in (start, start + 1):
            page += at(40, y, LEFT_EN[n]) + at(320, y, RIGHT_EN[n])
            expected.append(f"{LEFT_EN[n]} {RIGHT_EN[n]}")
            y -= 12
        y -= 12
    assert read(page) == expected


def test_tables_with_lines_stay_tables_within_columns() -> None:
    rules = "".join(f"40 {y} m 280 {y} l S\n" for y in (690, 670, 650, 630)) + "".join(
        f"{x} 630 m {x} 690 l S\n" for x in (40, 160, 280)
    )
    cells = [("property", "value"), ("Flash point", "11 C"), ("Boiling point", "64.7 C")]
    table = "".join(
        at(45 + 120 * c, 676 - 20 * r, text) for r, row in enumerate(cells) for c, text in enumerate(row)
    )
    page = rules + table + columns(LEFT_EN, RIGHT_EN, top=610) + "".join(
        at(320, 682 - 14 * n, f"{text}") for n, text in enumerate(RIGHT_EN[:4])
    )  # fmt: skip
    found = read(page)
    assert "| Flash point | 11 C |" in found
    assert "| Boiling point | 64.7 C |" in found
    said = [line for line in found if line in LEFT_EN]
    assert said == list(LEFT_EN)


@pytest.mark.parametrize("how", ["rise", "matrix", "small", "later"])
def test_raised_and_lowered_characters_of_any_size(how: str) -> None:
    """10⁻³, m³ and H₂O by text rise, by a matrix of their own, smaller, and written after the line."""
    size, up, down = (6.0, 4.0, -2.0) if how == "small" else (10.0, 4.0, -3.0)
    rise = how == "rise"

    def script(x: float, text: str, offset: float) -> str:
        return at(x, 700 + (0 if rise else offset), text, size, rise=offset if rise else 0)

    wide = 6.0  # of a character in Courier 10
    base = [at(40, 700, "Limit 5 x 10"), at(40 + 12 * wide + 2 * size * 0.6, 700, " mg/m")]
    after = 40 + 17 * wide + 2 * size * 0.6
    marks = [script(40 + 12 * wide, "-3", up), script(after, "3", up)]
    x = 40.0
    water = [at(x, 680, "Reacts with H"), at(x + 13 * wide + size * 0.6, 680, "O and not with 2 CO")]
    water_marks = [at(x + 13 * wide, 680 + (0 if rise else down), "2", size, rise=down if rise else 0)]
    filler = at(
        40, 640, "Text that is plain and stands below, so that the page is no picture of text. 103 and 2."
    )
    pieces = [base[0], marks[0], base[1], marks[1], water[0], water_marks[0], water[1]]
    if how == "later":
        pieces = [*base, *water, *marks, *water_marks]
    text = clean_page(pdf("".join(pieces) + filler)).text
    assert "Limit 5 x 10⁻³ mg/m³" in text
    assert "Reacts with H₂O and not with 2 CO" in text
    assert "103 and 2." in text


def test_digits_of_close_lines_and_of_jumping_baselines_stay_digits() -> None:
    """Tight lines, cells at other heights, and a scan's uneven baseline raise and lower nothing."""
    tight = "".join(
        at(40, 700 - 10 * n, f"value {n} is 1{n}5 of 2{n} and must not be {n}0") for n in range(8)
    )
    cells = "".join(at(40 + 60 * n, 600 - 4 * (n % 2), f"CAS {n}7") for n in range(6))
    uneven = "".join(
        at(40 + 6 * n, 560 + (1.2 if n % 2 else 0), digit) for n, digit in enumerate("67-56-1 1230")
    )
    text = clean_page(pdf(tight + cells + uneven)).text
    assert "67-56-1 1230" in text
    assert not set(text) & set("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉₋")

"""Lines within table cells: values stay apart, phrases stay whole, and no denial loses what it denies."""

from __future__ import annotations

import pytest

from corpus.cleaning import clean_page
from corpus.cleaning.page import CleanedPage

BODY = "<h1>Benzene 苯</h1><p>Benzene is a flammable liquid and must be kept away from open flames.</p>"


def cleaned(rows: str) -> CleanedPage:
    page = clean_page(
        f"<main>{BODY}<table>{rows}</table></main>".encode(), content_type="text/html; charset=utf-8"
    )
    again = clean_page(page.html.encode(), content_type="text/html; charset=utf-8")
    assert (again.html, again.text) == (page.html, page.text)
    return page


def row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        # values on lines of their own
        ("Benzol<br>Phenyl hydride", "Benzol; Phenyl hydride"),
        ("安息油<br>苯查儿", "安息油; 苯查儿"),
        ("无水乙醇<br>酒精", "无水乙醇; 酒精"),
        ("H225<br>H301", "H225; H301"),
        ("易燃液体，类别2<br/> 急性毒性-经口，类别3", "易燃液体，类别2; 急性毒性-经口，类别3"),
        ("891 mg/kg (rat, oral)<br>1500 mg/kg (mouse, oral)", "891 mg/kg (rat, oral); 1500 mg/kg (mouse, oral)"),
        ("LD<sub>50</sub>：5628 mg/kg（大鼠经口）<br>LC<sub>50</sub>：64000 ppm", "LD₅₀：5628 mg/kg（大鼠经口）; LC₅₀：64000 ppm"),
        ("H372 长时间或反复接触可能对器官造成伤害，见该章<br>H373 可能造成伤害", "H372 长时间或反复接触可能对器官造成伤害，见该章; H373 可能造成伤害"),
        # the lines of one cell are lists as well: one mark for both
        ("<ul><li>Benzol</li><li>安息油</li></ul>", "Benzol; 安息油"),
        # a phrase or a quantity that the layout broke
        ("80.1<br>°C", "80.1 °C"),
        ("12<br>mg/m<sup>3</sup>", "12 mg/m³"),
        ("16.2<br>(21.0 in DMSO)", "16.2 (21.0 in DMSO)"),
        ("ketole,<br>1-benzazole", "ketole, 1-benzazole"),
        ("80.1 °C<br>at 101 kPa", "80.1 °C at 101 kPa"),
        ("not more than<br>5 ppm", "not more than 5 ppm"),
        ("低于<br>5 ppm", "低于 5 ppm"),
        ("一氧化碳<br>和二氧化碳", "一氧化碳 和二氧化碳"),
        # what is ordered or denied is not cut off
        ("It must<br>not be heated", "It must not be heated"),
        ("Do not use water<br>jets on burning liquid", "Do not use water jets on burning liquid"),
        ("Keep away<br>from heat", "Keep away from heat"),
        ("不<br>得用水灭火", "不得用水灭火"),
        ("禁止<br>用水灭火", "禁止 用水灭火"),
        ("切忌与强氧化剂<br>混储", "切忌与强氧化剂 混储"),
        ("应<br>当双人收发", "应当双人收发"),
        # ended sentences need no other mark
        ("禁止吸烟。<br>保持容器密闭。", "禁止吸烟。 保持容器密闭。"),
        # a line as wide as a column was broken for its width
        ("本品在贮存时采用专用库房并且由专人负责管理<br>定期检查", "本品在贮存时采用专用库房并且由专人负责管理 定期检查"),
    ],
)  # fmt: skip
def test_lines_of_a_value(cell: str, shown: str) -> None:
    page = cleaned(row("label 标签", cell) + row("x", "y"))
    assert f"| label 标签 | {shown} |\n" in page.text
    assert f"label 标签\t{shown}\n" in page.plain


def test_no_mark_is_read_as_a_sign_of_the_number_after_it() -> None:
    """``<br>1670 g/L`` would be: more than 1670 g/L."""
    text = cleaned(row("Solubility 溶解度", "1079 g/L (20 °C)<br>1670 g/L (40 °C)") + row("x", "y")).text
    assert "<br>" not in text
    assert "; 1670 g/L (40 °C) |" in text


def test_names_of_rows_and_columns_stay_on_one_line() -> None:
    text = cleaned(
        "<tr><th>Name<br>of it</th><th>含<br>量</th></tr>"
        + row("Sodium<br>hydroxide", "5 %<br>6 %")
        + row("Flash<br>point", "-11 °C")
    ).text
    assert "| Name of it | 含 量 |" in text
    assert "| Sodium hydroxide | 5 %; 6 % |" in text
    assert "| Flash point | -11 °C |" in text


def test_rows_within_a_row_keep_their_substances_apart() -> None:
    """A composition in one row: a name for each number."""
    head = "<tr><th>Name</th><th>CAS</th><th>含量</th></tr>"
    text = cleaned(head + row("Benzene<br>甲苯", "71-43-2<br>108-88-3", "60 %<br>40 %")).text
    assert "| Benzene; 甲苯 | 71-43-2; 108-88-3 | 60 %; 40 % |" in text


def test_lines_of_a_single_column_and_of_tables_inside() -> None:
    text = cleaned(row("Benzol<br>安息油") + row("# 71-43-2<br># 一级")).text
    assert "Benzol\n安息油" in text
    assert "\\# 71-43-2\n\\# 一级" in text  # no headings
    inner = f"<table>{row('Name', 'Benzol<br>安息油')}{row('UN', '1114')}</table>"
    text = cleaned(row("Part", inner) + row("x", "y") + row("k", "v")).text
    assert "Name: Benzol, 安息油; UN: 1114" in text

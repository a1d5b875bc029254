"""Torn tables and lists: settled once, nothing of them lost, and a second cleaning changes nothing."""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.cleaning import clean_page
from corpus.cleaning.page import CleanedPage
from corpus.cleaning.parsing import parse_html
from corpus.cleaning.tracing import Trace
from corpus.refinement import refine_document
from models import Models
from tests.corpus.hostile import BACKEND

BODY = "<h1>Benzene 苯</h1><p>Benzene is a flammable liquid and must be kept away from open flames.</p>"
KINDS = (  # noqa: SIM905
    "table table table tr td th thead tbody tfoot caption colgroup col ul ol li dl dt dd span div p form b h2 a"
).split()
SAID = ("w{}w flash point -11 °C", "苯{}号 不得用水灭火", "v{}v 7.5 mg/m3", "n{}n")
TOKEN = re.compile(r"w\d+w|苯\d+号|v\d+v|n\d+n")


def cleaned(html: str) -> CleanedPage:
    return clean_page(html.encode(), content_type="text/html; charset=utf-8")


def row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


FACTS = (
    row("Boiling point", "80.1 °C")
    + row("闪点", "-11 °C")
    + row("Melting point", "5.5 °C")
    + row("CAS", "71-43-2")
)


def _element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def built(name: str, inside: list[str], end: str) -> str:
        return f"<{name}>{''.join(inside)}{end.format(name)}"

    ends = st.sampled_from(("</{}>", "</{}>", "</{}>", "", "</table>"))
    return st.builds(built, st.sampled_from(KINDS), st.lists(inner, max_size=4), ends)


_said = st.sampled_from(SAID)
_row = st.lists(_said, min_size=1, max_size=3).map(lambda cells: row(*cells))
_torn = st.recursive(st.one_of(_said, _row), _element, max_leaves=30)


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    backend=BACKEND,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(_torn, min_size=1, max_size=4))
def test_torn_tables_and_lists_lose_nothing_and_settle_at_once(parts: list[str]) -> None:
    """Each text has a number of its own, so that each is looked for by itself."""
    numbers = count(101)
    torn = re.sub(
        r"\{\}", lambda _: str(next(numbers)), " ".join(parts).replace("<", " <").replace(">", "> ")
    )
    page = cleaned(f"<main>{BODY}{torn}</main>")
    again = cleaned(page.html)
    assert again.html == page.html
    assert again.text == page.text
    there = TOKEN.findall(torn)
    assert [token for token in TOKEN.findall(page.html) if page.html.count(token) > torn.count(token)] == []
    if not set(page.removed["structural"]) - {"empty"}:  # else it is said that something went
        assert [token for token in there if token not in page.text] == []


@pytest.mark.parametrize(
    ("torn", "inside"),
    [
        # what a table nested without a row holds goes out of all tables at once, not one further each time
        ("<table><thead>" * 6 + "闪点 -11 °C" + "</thead></table>" * 6, "<p>闪点 -11 °C</p>"),
        ("<thead>" * 5 + '"281</td></tr><tr><td wi', '</p><p>"281</p>'),
        ("<table>" * 9 + "<p>5.5 °C</p><tr><td>x</td></tr>", "</p><p>5.5 °C</p><table><tr>"),
        ("<ul><span>法规</span><table><thead><span>H225</span><table><thead><span>P210</span>", "<ul><span>法规</span><p><span>H225</span></p><p><span>P210</span></p></ul>"),
        # a table that stands in a row without a cell: its loose text has a cell in the row
        ("<table><tr><table><h2></h2><tr></tr><tbody>闪点 -11 °C", "<p>闪点 -11 °C</p></td>"),
        # what tables kept apart stays apart: 10 and 20 are not 1020
        ("<table><b>10</b><table><b>20</b></table></table>", "<p><b>10</b></p><p><b>20</b></p></main>"),
        ("<table>10<form>20<tr><td>x</td></tr>40</form>30</table>", "<p>10</p><p> 20</p><table><tr><td>x</td></tr></table><p>40 30</p>"),
        # one stretch is one cell or one paragraph: a value keeps its sign and its unit
        ("<table><tr>闪点 <b>-11</b> °C<td>x</td></tr></table>", "<td>闪点 <b>-11</b> °C</td><td>x</td>"),
        ("<table>闪点 <b>-11</b> °C<tr><td>x</td><td>y</td></tr></table>", "<p>闪点 <b>-11</b> °C</p><table><tr><td>x</td>"),
    ],
)  # fmt: skip
def test_loose_parts_of_tables_are_settled_in_one_go(torn: str, inside: str) -> None:
    page = cleaned(f"<main>{BODY}{torn}</main>")
    assert inside in page.html
    assert cleaned(page.html).html == page.html


@pytest.mark.parametrize(
    ("torn", "lines"),
    [
        # a form between rows is read as if it ended where it begins: its rows are the table's
        (f"<table>{FACTS}<form action=x>{row('UN', '1114')}</form></table>", ["| CAS | 71-43-2 |\n| UN | 1114 |"]),
        # cells in a table without a row
        (f"<table>{FACTS}<td>UN</td><td>1114</td></table>", ["| CAS | 71-43-2 |\n| UN | 1114 |"]),
        # a table in a table, after rows and between rows
        (f"<table>{FACTS}<table>{row('UN', '1114')}{row('危规号', '32050')}</table></table>", ["| CAS | 71-43-2 |\n\n", "| UN | 1114 |\n| 危规号 | 32050 |"]),
        (f"<table>{FACTS}<table>{row('UN', '1114')}</table>{row('蒸气压', '10 kPa')}</table>", ["| UN | 1114 |", "| CAS | 71-43-2 |\n| 蒸气压 | 10 kPa |"]),
        (f"<table>{FACTS}<div>注意{row('UN', '1114')}end</div></table>", ["71-43-2 |\n\n注意\n\n", "| UN | 1114 |", "\n\nend"]),
        # what is in a row, but in no cell
        (f"<table>{FACTS}<tr><td>k</td><td>v</td><div>extra<table>{row('UN 1114', '7')}</table></div></tr></table>", ["| k | v | extra UN 1114: 7 |"]),
        (f"<table>{FACTS}<tr><td>图</td><td>v</td><img src=a.png alt='GHS02 flammable'></tr></table>", ["| 图 | v | GHS02 flammable |"]),
        # text between columns, a second caption
        (f"<table><colgroup>words<col>更多</colgroup>{FACTS}</table>", ["words", "更多", "| CAS |"]),
        (f"<table><caption>表一</caption>{FACTS}<caption>Table two</caption></table>", ["表一", "Table two"]),
        # a table that was not closed: the next heading does not come to stand over its rows
        (f"<table>{FACTS}<h2>Fire 消防</h2><p>Use foam, 不得用水。</p>", ["| CAS | 71-43-2 |\n\n## Fire 消防\n\nUse foam"]),
    ],
)  # fmt: skip
def test_no_part_of_a_torn_table_is_lost(torn: str, lines: list[str]) -> None:
    page = cleaned(f"<main>{BODY}{torn}</main>")
    assert [line for line in lines if line not in page.text] == []
    assert [fact for fact in ("80.1 °C", "| 闪点 | -11 °C |") if fact not in page.text] == []
    assert cleaned(page.html).html == page.html


def test_a_form_around_rows_is_still_counted() -> None:
    assert cleaned(f"<main>{BODY}<table><form>{FACTS}</form></table></main>").features.n_forms == 1
    root, _ = parse_html(f"<table><form>{FACTS}</form></table>")
    assert root.find(".//form/tr") is not None  # the parser leaves them in it


def _composition(number: int) -> str:
    return (
        f"<table><tr><th>Name {number}</th><th>含量</th></tr>{row(f'CAS {number}', f'{number}1.5 %')}</table>"
    )


@pytest.mark.parametrize(
    "rows",
    [
        # labels that are section titles, rows that say nothing else, a table of one column
        "<tr><th>Section</th><th>Content</th></tr>" + "".join(row(f"{n}. 部分 part", _composition(n)) for n in (1, 2, 3)),
        row("Label", "Value") + "".join(row("", _composition(n)) for n in (1, 2, 3)) + row("Name of it", "苯"),
        "<caption>表</caption>" + "".join(row("Composition and its long label 成分" + _composition(n), "") for n in (1, 2, 3)),
    ],
    ids=("titles", "nothing else", "one column"),
)  # fmt: skip
def test_tables_with_a_header_inside_a_table_are_shown_whatever_their_row(rows: str) -> None:
    text = cleaned(f"<main>{BODY}<table>{rows}</table></main>").text
    for number in (1, 2, 3):
        assert f"{number}1.5 %" in text
        assert f"CAS {number}" in text
    assert text.index("11.5 %") < text.index("21.5 %") < text.index("31.5 %")


def test_the_offline_refinement_joins_a_word_that_a_line_break_parts() -> None:
    """A word is the same fact before and after its lines are joined."""
    text = "仓库储存数量构成重大危险源的其他危险化学品，应\n当双人收发。\n\n其他危险化学品，每个库房储存的总量和每个堆垛的总量，\n不得多于二十吨，闪点－11℃。"
    end = text.index("\n\n")
    blocks = [
        {"start": 0, "end": end, "path": "line 1", "kind": "paragraph"},
        {"start": end + 2, "end": len(text), "path": "line 4", "kind": "paragraph"},
    ]
    refined = refine_document(text, blocks, language="zh", title="", models=Models.offline())
    assert refined.record["refused"] == []
    assert not refined.unrefined
    assert "危险化学品，应当双人收发。" in refined.text
    assert "每个堆垛的总量，不得多于二十吨" in refined.text


@pytest.mark.parametrize("frame", ["form", "fieldset", "marquee"])
@pytest.mark.parametrize("inside", ["20", "<b>20</b>", "<span>20</span> °C"])
def test_text_in_a_frame_is_not_joined_with_what_stands_before_it(frame: str, inside: str) -> None:
    for around in ("{}", "<table><tr><td>{}</td><td>x</td></tr></table>"):
        page = cleaned(BODY + around.format(f"<div>flash point 10<{frame}>{inside}</{frame}>30</div>"))
        assert re.findall(r"\d+", page.text)[-3:] == ["10", "20", "30"], page.text
        assert frame not in page.html
        assert cleaned(page.html).html == page.html


SEVERAL = "<p>Benzene is a flammable liquid; 苯为易燃液体，应远离火种、热源。</p>" * 6


@pytest.mark.parametrize(
    "page",
    [
        # narrowing to the content leaves what stands between its surroundings
        f"<h1>Benzene 苯</h1>{{}}<div>{SEVERAL}</div>",
        f"<h1>Benzene 苯</h1>{{}}<article>{SEVERAL}</article>",
        f"<main><h1>Benzene 苯</h1>{SEVERAL}</main>{{}}",
        f"<div>{SEVERAL}</div>{{}}",
        f"<div>{{}}<div><div>{SEVERAL}</div>{{}}</div></div>",
    ],
)
@pytest.mark.parametrize("loose", ["<tr> n101x </tr> 苯102号", "苯102号", "n101x<br>苯102号"])
def test_no_loose_text_goes_without_a_record(page: str, loose: str) -> None:
    trace = Trace()
    found = clean_page(
        page.format(loose, loose).encode(), content_type="text/html; charset=utf-8", trace=trace
    )
    said = found.text + "\n".join(removal.text for removal in trace.removals)
    times = page.count("{}")
    for token in re.findall(r"n\d+x|苯\d+号", loose):
        assert said.count(token) == times
    gone = [removal for removal in trace.removals if "苯102号" in removal.text]
    assert found.text.count("苯102号") + len(gone) == times
    assert found.removed["structural"].get("outside_container", 0) >= len(gone)


@pytest.mark.parametrize("loose", ["CAS 71-43-2", "UN 1114, H225", "闪点 -11 ℃，沸点 80 ℃，限值 6 mg/m3"])
@pytest.mark.parametrize("frame", ["<h1>苯</h1>{0}<article>{1}</article>", "<main>{1}</main> {0}"])
def test_loose_facts_stay(loose: str, frame: str) -> None:
    page = cleaned(frame.format(loose, SEVERAL))
    assert loose in page.text
    assert cleaned(page.html).text == page.text


@pytest.mark.parametrize("frame", ["{}", "<main>{}</main>", "<div>{}</div>"])
def test_a_page_of_little_more_than_loose_text_keeps_it(frame: str) -> None:
    page = cleaned(frame.format("<tr> n101x </tr> 苯102号"))
    assert "n101x" in page.text
    assert "苯102号" in page.text

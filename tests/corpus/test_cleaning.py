from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from corpus.cleaning import clean_page, page_words
from corpus.cleaning.page import CleanedPage
from corpus.errors import TerminalError
from tests.corpus.pages import PAGES, PORTAL

SAMPLES = Path(__file__).parents[2] / "samples" / "pages"
HTML_SAMPLES = sorted(path for path in SAMPLES.rglob("*") if path.suffix in {".html", ".htm"})


def _sample_id(path: Path) -> str:
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("name", sorted(PAGES))
def test_content_stays_and_furniture_goes(name: str) -> None:
    html, kept, dropped = PAGES[name]
    text = clean_page(html.encode()).text
    assert [snippet for snippet in kept if snippet not in text] == []
    assert [snippet for snippet in dropped if snippet in text] == []


def _check_leftovers(page: CleanedPage) -> None:
    root = etree.fromstring(page.html.encode(), etree.HTMLParser(huge_tree=True))
    forbidden = {
        *[
            "script",
            "style",
            "iframe",
            "object",
            "embed",
            "form",
            "input",
            "select",
            "textarea",
            "button",
            "noscript",
            "nav",
            "footer",
            "aside",
        ]
    }
    for element in root.iter("*"):
        assert element.tag not in forbidden
        for attribute, value in element.attrib.items():
            assert attribute != "id"
            assert attribute != "style"
            assert not attribute.startswith(("on", "data-"))
            assert not re.match(r"\s*(javascript|data):", str(value))


def _check_blocks(page: CleanedPage) -> None:
    position = 0
    for block in page.blocks:
        assert position <= block["start"] < block["end"] <= len(page.text)
        assert page.text[position : block["start"]].strip("\n") == ""
        assert page.text[block["start"] : block["end"]].strip()
        position = block["end"]
    assert position == len(page.text)


@pytest.mark.parametrize("path", HTML_SAMPLES, ids=_sample_id)
def test_samples(path: Path) -> None:
    page = clean_page(path.read_bytes())
    assert clean_page(page.html.encode()).html == page.html
    # also without the mark by which cleaning knows its own output
    unmarked = page.html.replace('<meta name="generator" content="hchem clean">\n', "")
    assert unmarked != page.html
    assert clean_page(unmarked.encode()).html == page.html
    _check_leftovers(page)
    _check_blocks(page)
    assert "review" not in page.verdict


@pytest.mark.parametrize("name", sorted(PAGES))
def test_made_up_pages_are_idempotent_clean_and_mapped(name: str) -> None:
    page = clean_page(PAGES[name][0].encode())
    assert clean_page(page.html.encode()).html == page.html
    assert clean_page(page.html.encode()).text == page.text
    _check_leftovers(page)
    _check_blocks(page)
    assert CleanedPage.from_json(page.to_json()) == page


def test_all_cells_of_content_tables_are_kept() -> None:
    for name in ("encyclopedia", "sheet_zh"):
        html = PAGES[name][0]
        cleaned = clean_page(html.encode()).html
        for tag in ("td", "th", "tr"):
            assert len(re.findall(rf"<{tag}[ >]", cleaned)) == len(re.findall(rf"<{tag}[ >]", html))


def test_spans_are_expanded() -> None:
    text = clean_page(PAGES["encyclopedia"][0].encode()).text
    assert "| Route | Dose | Dose |" in text
    assert "| oral | 930 | 1800 |\n| oral |  | 4700 |" in text


def test_blocks_lead_to_the_pages_own_words() -> None:
    data = PAGES["encyclopedia"][0].encode()
    page = clean_page(data)
    row = next(b for b in page.blocks if "Flash point" in page.text[b["start"] : b["end"]])
    assert row["kind"] == "row"
    assert page_words(data, row["path"]) == "Flash point −11.63 °C"


def test_title_language_canonical_and_counts() -> None:
    html = PORTAL.replace("<title>", '<link rel="canonical" href="/acetone"><title>')
    page = clean_page(html.encode(), url="http://x.org/acetone?utm_source=a")
    assert (page.title, page.language, page.canonical_url) == ("Acetone", "en", "http://x.org/acetone")
    assert page.removed["structural"]["landmark:aside"] == 1
    assert page.removed["functional"]["control"] >= 3
    assert page.features.n_forms == 1
    assert clean_page(PAGES["news_zh"][0].encode()).language == "zh"


def test_class_words_are_whole_words() -> None:
    html = """<html><body><div class="adsorption-data navy sharepoint"><p>Adsorption of benzene on charcoal is strong and
    does not depend on pH.</p></div></body></html>"""
    assert "does not depend" in clean_page(html.encode()).text


def test_repeated_phrases_of_a_data_sheet_stay() -> None:
    html = "<body><h1>Sheet</h1>" + "<h2>Section</h2><p>No data available for this product.</p>" * 5
    assert clean_page(html.encode()).text.count("No data available") == 5


def test_nothing_but_navigation_is_no_content() -> None:
    html = (
        "<body><ul>"
        + "".join(f'<li><a href="{n}">Substance number {n}</a></li>' for n in range(50))
        + "</ul>"
    )
    assert clean_page(html.encode()).verdict == "no_main_content"


@pytest.mark.parametrize(
    "html",
    [
        '<body><div id="root"></div><script src="a.js"></script></body>',
        "<body><div>加载中</div><noscript>请启用 JavaScript 后访问。</noscript><script>var a=1</script></body>",
    ],
)
def test_script_shells_need_a_browser(html: str) -> None:
    assert clean_page(html.encode()).verdict == "needs_browser"


def test_cas_number_lost_goes_to_review() -> None:
    html = f"""<body><div style="display:none">x</div><p>{"A sentence of prose about the substance. " * 20}</p>
    <div class="share">CAS 71-43-2</div></body>"""
    page = clean_page(html.encode())
    assert "71-43-2" in page.text or page.verdict == "review"


def test_invisible_characters_do_not_hide_a_number() -> None:
    html = "<p>The CAS number of benzene is 71\u00ad-43\u200b-2, and it is not the one of toluene at all.</p>"
    assert "71-43-2" in clean_page(html.encode()).text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("10<sup>-3</sup>", "10⁻³"),
        ("H<sub>2</sub>O", "H₂O"),
        ("x<sup>ab-Q</sup>", "x<sup>ab-Q</sup>"),
        ("4<sup>th</sup>", "4th"),
        ("CaSO<sub>4</sub>·2H<sub>2</sub>O", "CaSO₄·2H₂O"),
    ],
)
def test_scripts(html: str, expected: str) -> None:
    page = clean_page(
        f"<p>Some prose that is long enough to be the content of a page. {html} and more.</p>".encode()
    )
    assert expected in page.text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"  \n ", "empty"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "unsupported_type"),
        (b"%PDF-1.4 broken", "malformed_pdf"),
        (b"x" * 20_000_001, "too_large"),
    ],
)
def test_refusals_have_reasons(data: bytes, reason: str) -> None:
    with pytest.raises(TerminalError) as caught:
        clean_page(data)
    assert caught.value.reason == reason


def test_pdf_sample_has_headings_and_pages() -> None:
    page = clean_page((SAMPLES / "sekom.com" / "msds-apr.pdf").read_bytes())
    assert page.kind == "pdf"
    assert "## Section 4 - First Aid Measures" in page.text
    assert "13598-65-7" in page.text
    assert {block["path"].split()[0] for block in page.blocks} == {"page"}
    _check_blocks(page)


def test_ecfr_table_and_markdown_sample() -> None:
    page = clean_page((SAMPLES / "ecfr" / "49cfr172_101_hmt_excerpt.xml").read_bytes())
    assert page.kind == "xml"
    row = next(line for line in page.text.split("\n") if "UN1090" in line)
    assert row.count("|") == next(line for line in page.text.split("\n") if "Symbols" in line).count("|")
    source = (SAMPLES / "prc-law" / "nongyao_2022.md").read_text(encoding="utf-8")
    law = clean_page(source.encode("gb18030"), url="http://x/nongyao.md", content_type="text/markdown")
    assert law.kind == "text"
    assert "".join(law.text.split()) == "".join(source.replace("<!-- INFO END -->", "").split())
    _check_blocks(law)


def test_xml_entities_are_not_expanded() -> None:
    xml = (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname"><!ENTITY y "boom">]>'
        f"<a><p>{'Some text of a regulation. ' * 5}&x;&y;</p></a>"
    )
    text = clean_page(xml.encode()).text
    assert "boom" not in text
    assert "Some text of a regulation." in text


FACT = "Benzene CAS 71-43-2 is flammable and its flash point is -11 °C, so it is not to be heated."
HOSTILE = {
    "600 divs": "<div>" * 600 + f"<p>{FACT}</p>",
    "50,000 divs": "<div>" * 50_000 + f"<p>{FACT}</p>",
    "3,000 lists": "<ul><li>" * 3000 + FACT,
    "1,000 tables": "<table><tr><td>" * 1000 + FACT,
    "3,000 superscripts": "<p>" + "<sup>" * 3000 + FACT,
    "megabyte attribute": f'<p title="{"a" * 2_000_000}">{FACT}</p>',
    "NUL bytes": f"<p>\0\0{FACT}\0</p>",
    "entities": f"<p>{'&amp;&bogus;&#0;' * 20_000}{FACT}</p>",
    "spans": "<table>" + "<tr><td colspan=1000 rowspan=65534>x<td>y" * 300 + f"</table><p>{FACT}",
    "unclosed": f"<table><tr><td><ul><li><p>{FACT}" + "<td><p>q" * 3000,
    "many rows": "<table>" + f"<tr><td>71-43-2</td><td>{FACT}</td></tr>" * 2000 + "</table>",
    "many paragraphs": f"<p>{FACT}</p>" * 2000,
    "many links": "".join(f'<a href="{n}">link {n}</a> ' for n in range(5000)) + f"<p>{FACT}</p>",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_pages_keep_their_fact(name: str) -> None:
    text = clean_page(HOSTILE[name].encode()).text
    assert "71-43-2" in text


SOUP = (
    "<div>|</div>|<p>|</p>|<table>|<tr>|<td>|<th>|</table>|<ul>|<li>|</ul>|<nav>|<aside>|<sup>|<sub>|</sup>|<br>|<h1>|<h2>|</h2>"
    "|<a href=x>|</a>|<script>|</script>|<div class=nav>|<dl>|<dt>|<dd>|<pre>|<form>|<b>|<!--|-->|<img alt='GHS02'>|&amp;|&#0;"
    '|71-43-2|苯的闪点是|text,not|<main>|<article>|<p a<b=1 x"=2 onclick=3>|<footer>|<![CDATA[|<span class=label>|<td colspan=9 rowspan=9>|related|参考资料'
    "|A sentence that is long enough to count as prose on any page. |<noscript>|\x00|\ud800|<table><caption>"
)
FRAGMENTS = st.sampled_from(SOUP.split("|"))


@settings(max_examples=200, deadline=None)
@given(st.lists(FRAGMENTS, min_size=1, max_size=40))
def test_any_soup_is_cleaned_and_mapped(parts: list[str]) -> None:
    data = "".join(parts).encode("utf-8", "replace")
    try:
        page = clean_page(data, content_type="text/html")
    except TerminalError as error:
        if error.reason != "empty":
            raise
        return
    _check_leftovers(page)
    _check_blocks(page)


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        page = clean_page(data)
    except TerminalError as error:
        if error.reason == "error":  # the default: a refusal that nobody named
            raise
        return
    _check_blocks(page)


def test_an_unclosed_drawing_does_not_take_the_page_along() -> None:
    body = '<p>Intro</p><svg onload=x()><path d="M0"><p>Benzene is flammable and toxic indeed.</p><p>苯易燃。</p>'
    page = clean_page(f"<html><body><main>{body}</main></body></html>".encode())
    assert "Benzene is flammable" in page.text
    assert "苯易燃" in page.text
    assert "onload" not in page.html
    closed = clean_page(b"<html><body><p>Text of the page.</p><svg><text>drawn</text></svg></body></html>")
    assert "drawn" not in closed.text


@pytest.mark.parametrize("shown", ["", "Loading…", "加载中…"])
def test_content_that_stands_only_for_readers_without_scripts_is_kept(shown: str) -> None:
    inner = (
        "<h1>甲醇 Methanol</h1><p>甲醇（CAS 67-56-1）是无色易燃液体，闪点 11 ℃，不得排入下水道，也不得与强氧化剂同存。</p>"
        "<p>Methanol is toxic if swallowed; keep away from heat, sparks and open flames at all times.</p>"
        "<table><tr><th>沸点</th><td>64.7 ℃</td></tr><tr><th>UN</th><td>1230</td></tr></table>"
    )
    raw = f"<html><body><div id='app'>{shown}</div><noscript>{inner}</noscript><script src='a.js'></script></body></html>"
    page = clean_page(raw.encode())
    assert page.verdict == "ok"
    for fact in ("67-56-1", "闪点 11 ℃", "不得排入下水道", "64.7 ℃", "1230"):
        assert fact in page.text
    assert page.removed["structural"]["noscript_unwrapped"] == 1
    again = clean_page(page.html.encode())
    assert again.html == page.html


def test_what_repeats_a_shown_text_or_asks_for_scripts_stays_out() -> None:
    article = "<p>" + "Methanol is a colourless liquid with a flash point of 11 °C. " * 5 + "</p>"
    twice = clean_page(f"<body><main>{article}</main><noscript>{article}</noscript></body>".encode())
    assert twice.text.count("colourless") == 5
    notice = "You need to enable JavaScript to run this app. Please switch it on in your browser's settings and reload."
    asking = clean_page(
        f"<body><div id='root'></div><noscript>{notice}</noscript><script src='a.js'></script></body>".encode()
    )
    assert asking.verdict == "needs_browser"


def test_a_wide_table_keeps_its_columns_or_says_that_it_lacks_some() -> None:
    def table(columns: int) -> bytes:
        head = "".join(f"<th>物质{n}</th>" for n in range(columns))
        values = "".join(f"<td>{n} ppm</td>" for n in range(columns))
        return f"<body><main><h1>Limits</h1><table><tr>{head}</tr><tr>{values}</tr></table></main></body>".encode()

    page = clean_page(table(250))
    assert page.verdict == "ok"
    header, values = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in page.text.split("\n")
        if "物质249" in line or "249 ppm" in line
    )
    assert len(header) == len(values) == 250
    assert values[header.index("物质249")] == "249 ppm"
    cut = clean_page(table(1003))
    assert cut.verdict == "review"
    assert "table_columns_cut" in cut.reasons


@pytest.mark.parametrize("name", ["title", "alt", "href", "src", "lang"])
@pytest.mark.parametrize("unit", ["a", "é", "危", '"', "<", "&", " "])
def test_an_endless_value_is_dropped_at_once_not_by_the_next_reader(name: str, unit: str) -> None:
    value = (unit * 21_000).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    raw = f'<article><h1>Ammonia</h1><p>Wear a face shield. <a {name}="{value}">氨 7664-41-7</a> is toxic if inhaled, keep away from acids.</p></article>'
    page = clean_page(raw.encode())
    assert "7664-41-7" in page.text
    assert len(page.html) < 20_000
    again = clean_page(page.html.encode())
    assert (again.html, again.text) == (page.html, page.text)

"""Single rules of the cleaner, each on the smallest page that shows it."""

from __future__ import annotations

import pytest

from corpus.cleaning import Trace, clean_page

_BODY = (
    "<p>Acetone is a colourless liquid that mixes with water and evaporates quickly in the open air.</p>"
    "<p>Its vapour is heavier than air, spreads along the ground and may be ignited at a distance.</p>"
    "<p>Keep containers tightly closed, store them in a cool place and keep sparks and flames away.</p>"
)


def text_of(inner: str, *, title: str = "Acetone", **options: str) -> str:
    page = f"<html><head><title>{title}</title></head><body>{inner}</body></html>"
    return clean_page(page.encode(), content_type="text/html", **options).text


@pytest.mark.parametrize(
    ("reference", "read"),
    [
        ("&#x03B1;-pinene", "α-pinene"),  # leading zeros are no NUL
        ("&#0065;cetone", "Acetone"),
        ("11 &#x00B0;C", "11 °C"),
        ("&#128; 5", "€ 5"),  # windows-1252, as browsers read it
        ("a&#0;b", "ab"),
        ("a&#x10;b", "ab"),
        ("a&#xFFFF;b", "ab"),
        ("a&#xD800;b", "ab"),
        ("a&#x110000;b", "ab"),
        ("苯&#x82EF;", "苯苯"),
    ],
)
def test_numeric_references(reference: str, read: str) -> None:
    assert read in text_of(f"<h1>Acetone</h1>{_BODY}<p>Name: {reference}, a liquid.</p>")


def test_what_stands_after_the_end_of_the_document_is_read() -> None:
    page = f"<html><body><h1>Acetone</h1>{_BODY}</body></html><p>CAS number 67-64-1 of the liquid.</p>"
    assert "67-64-1" in clean_page(page.encode()).text


def test_long_attribute_values_go_and_long_texts_stay() -> None:
    filler = "x" * 30_000
    text = text_of(
        f'<h1>Acetone</h1>{_BODY}<p title="{filler}">before</p><p>note ="{filler[:25000]}" after</p>'
    )
    assert "before" in text
    assert "x" * 25_000 in text


def test_a_page_about_pdf_files_is_a_page() -> None:
    assert "flames" in text_of(
        f"<h1>How to read %PDF- headers</h1>{_BODY}", title="How to read %PDF- headers"
    )


@pytest.mark.parametrize(
    ("classes", "kept"),
    [
        ("report__section report__section--ads", True),  # a variant of a block, not an ad
        ("post-content has-sidebar", True),
        ("anchorWithStickyNavbar_x1", True),
        ("elementor-widget", True),
        ("article__ads", False),
        ("related-posts", False),
    ],
)
def test_states_and_variants_of_class_names_are_no_evidence(classes: str, kept: bool) -> None:
    block = f'<div class="{classes}"><p>Wear gloves of butyl rubber when you handle it.</p></div>'
    assert ("butyl" in text_of(f"<main><h1>Acetone</h1>{_BODY}{block}</main>")) is kept


def test_long_text_never_goes_by_one_word() -> None:
    long = "".join(
        f"<p>Paragraph {n} tells what to do after a spill of the liquid on a floor.</p>" for n in range(30)
    )
    assert "Paragraph 29" in text_of(f'<h1>Acetone</h1>{_BODY * 6}<div class="share">{long}</div>')


def test_an_id_made_from_a_heading_is_a_link_target() -> None:
    section = (
        '<section id="ad-hoc-measures"><h2>Ad hoc measures</h2><p>Open the windows at once.</p></section>'
    )
    assert "windows" in text_of(f"<main><h1>Acetone</h1>{_BODY}{section}</main>")
    headings = '<h2 id="comments-on-storage">Comments on storage</h2><p>Keep it in the shade.</p>'
    assert "## Comments on storage" in text_of(f"<main><h1>Acetone</h1>{_BODY}{headings}</main>")


def test_leads_between_heading_and_body_stay() -> None:
    for lead in (
        '<div class="q1x">A short summary of what a fire brigade has to know about it.</div>',
        '<p class="standfirst">A short summary of what a fire brigade has to know about it.</p>',
    ):
        text = text_of(f"<div><h1>Acetone</h1>{lead}<div>{_BODY * 3}</div></div><div>3 May</div>")
        assert text.index("# Acetone") < text.index("fire brigade") < text.index("colourless")
    text = text_of(
        f"<div><h1>丙酮</h1><div>（2019年2月20日市人民政府第31次常务会议通过）</div><div>{'<p>丙酮为易燃液体，蒸气比空气重，应远离火种、热源储存。</p>' * 5}</div></div>",
        title="丙酮",
    )
    assert "第31次常务会议通过" in text


def test_captions_galleries_and_lists_under_their_own_heading_stay() -> None:
    caption = '<div class="thumb"><img src="a.png"><div class="thumbcaption"><a href="/p">Patch test</a></div></div>'
    cards = "".join(
        f'<li class="gallerybox"><a href="/f{n}"><img src="{n}.png"></a><div class="gallerytext"><a href="/{n}">Flask {n}</a></div></li>'
        for n in range(4)
    )
    events = "".join(f'<li><a href="/e{n}">Blast of {1900 + n}</a></li>' for n in range(8))
    others = "".join(f"<h3>Kind {n}</h3><p>{_BODY[3:90]}</p>" for n in range(3))
    text = text_of(
        f"<main><h1>Acetone</h1>{_BODY}{caption}<ul class='gallery'>{cards}</ul>{others}<h3>Accidents</h3><div><ul>{events}</ul></div></main>"
    )
    for said in ("Patch test", "Flask 3", "Blast of 1907", "### Accidents"):
        assert said in text


def test_furniture_headings_go_with_what_stands_under_them() -> None:
    text = text_of(
        f'<main><h1>Acetone</h1>{_BODY}<div class="mw-heading"><h2 id="See_also">See also</h2></div>'
        '<ul><li><a href="/b">Butanone</a> (a related solvent with a higher boiling point)</li></ul>'
        "<h2>Share the load</h2><p>Two people carry a full drum.</p></main>"
    )
    assert "See also" not in text
    assert "Butanone" not in text
    assert "Two people" in text  # "share" in a heading of the text's own


def test_a_folding_frame_in_a_cell_and_the_notes_of_a_table_stay() -> None:
    table = (
        '<table class="infobox"><tr><th>Formula</th><td>C3H6O</td></tr><tr><td colspan="2"><div class="NavFrame">'
        '<div class="NavHead"><a href="/smiles">SMILES</a></div><ul class="NavContent"><li>CC(=O)C</li></ul></div></td></tr>'
        '<tr><td colspan="2"><a href="#r">Infobox references</a></td></tr></table>'
        '<div class="reflist"><ol><li>Values are at 25 °C and zero ionic strength.</li></ol></div>'
    )
    text = text_of(f"<main><h1>Acetone</h1>{table}{_BODY}</main>")
    assert "CC(=O)C" in text
    assert "25 °C and zero" in text
    assert "Infobox references" not in text


def test_formulas_keep_their_shape() -> None:
    text = text_of(
        f"<main><h1>Acids</h1>{_BODY}<p>H<sub>3</sub><a href='/P'>P</a><a href='/O'>O</a><sub>4</sub> and "
        "NH<span><span>+</span><span>4</span></span>, not 5<span><span>+</span><span>4</span></span>.</p></main>",
        title="Acids",
    )
    assert "H₃PO₄" in text
    assert "NH₄⁺" in text
    assert "5+4" in text


def test_a_table_in_a_cell_reads_as_labels_with_their_values() -> None:
    inner = "<table><tr><th>P (Pa)</th><th>1</th><th>10</th></tr><tr><th>T (K)</th><td>1790</td><td>1960</td></tr></table>"
    text = text_of(
        f"<main><h1>Cobalt</h1><table><tr><th>Melting point</th><td>1768 K</td></tr><tr><td colspan=2>{inner}</td></tr>"
        f"<tr><th>Density</th><td>8.90 g/cm3</td></tr><tr><th>Heat</th><td>24.8 J</td></tr></table>{_BODY}</main>",
        title="Cobalt",
    )
    assert "P (Pa): 1, 10; T (K): 1790, 1960" in text


def test_orphaned_rows_keep_their_cells_together() -> None:
    page = f"<h1>Acetone</h1>{_BODY}<div><tr><td>CAS</td><td>67-64-1</td></tr><tr><td>UN</td><td>1090</td></tr></div>"
    assert "| CAS | 67-64-1 |" in text_of(page)


def test_a_forged_mark_does_not_spare_a_page_its_cleaning() -> None:
    page = (
        '<html><head><meta name="generator" content="hchem clean"><title>Acetone</title></head><body><main>'
        f'<h1>Acetone</h1>{_BODY}<p style="display:none">Rate this page with five points.</p>'
        '<div class="related-posts"><a href="/x">Buy it cheap</a></div></main></body></html>'
    )
    text = clean_page(page.encode()).text
    assert "five points" not in text
    assert "Buy it" not in text
    assert "flames" in text


def test_a_trace_tells_what_went_and_by_which_rule() -> None:
    trace = Trace()
    page = f'<html><body><nav><a href="/">首页</a></nav><main><h1>丙酮</h1>{_BODY}<div class="share">分享到微信</div></main></body></html>'
    cleaned = clean_page(page.encode(), trace=trace)
    assert list(trace.stages) == ["raw", "structural", "functional", "attribute"]
    assert ("landmark:nav", "首页") in [(removal.rule, removal.text) for removal in trace.removals]
    assert cleaned.html == clean_page(page.encode()).html  # looking changes nothing


def test_comments_in_markdown_are_no_text_and_lines_keep_their_numbers() -> None:
    source = "# 农药管理条例\n\n<!-- INFO\nEND -->\n\n第一条 为了加强农药管理，保证农药质量，制定本条例。\n\nsee <!-- here --> a < b\n<!-- open"
    page = clean_page(source.encode(), content_type="text/markdown")
    assert "INFO" not in page.text
    assert "see <!-- here --> a < b" in page.text
    assert "<!-- open" in page.text
    assert page.removed == {"structural": {"comment": 1}}
    assert [block["path"] for block in page.blocks][1] == "line 6"


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        ("<p>(c) no person shall enter without breathing apparatus;</p>", "(c) no person"),
        ('<p>Melting point <img src="minus.gif" alt="-">94.7 °C; <img alt="≥">5 %</p>', "-94.7 °C; ≥5 %"),
        ('<p>1.2×10<span style="vertical-align:super">-3</span> Pa</p>', "10⁻³ Pa"),
        (
            "<ul><li>Skip to step 4 if the victim is not breathing.</li><li>Share this data sheet with the doctor.</li><li>Pin with safety wire; do not remove.</li></ul>",
            "Skip to step 4",
        ),
        (
            "<ul><li>Skip to step 4 if the victim is not breathing.</li><li>Share this data sheet with the doctor.</li><li>Pin with safety wire; do not remove.</li></ul>",
            "Share this data",
        ),
        (
            "<ul><li>Skip to step 4 if the victim is not breathing.</li><li>Share this data sheet with the doctor.</li><li>Pin with safety wire; do not remove.</li></ul>",
            "Pin with",
        ),
        ("<h2>Loading</h2><p>Load slowly.</p>", "Loading"),
        ("<h3>Comments</h3><p>Not corrosive to steel. Do not store in PVC.</p>", "Do not store"),
        ("<h2>Tags</h2><p>Do not remove the lock-out tag from the valve.</p>", "lock-out"),
        ('<aside class="warning"><p>Never store together with oxidisers.</p></aside>', "oxidisers"),
        ('<div class="warning-banner"><p>Never mix with chloroform and alkali.</p></div>', "chloroform"),
        ('<div class="nfpa-rating">Health 1 Flammability 3 Instability 0</div>', "Flammability 3"),
        ('<div class="footer-note">Not approved for use as a refrigerant.</div>', "refrigerant"),
        ('<div class="legal-limits">Ceiling limit not set for this substance</div>', "not set"),
        ('<div class="related-risks">Forms explosive peroxides; not stable in light.</div>', "peroxides"),
        ('<span class="rank">Packing group II</span>', "Packing group II"),
        (
            '<h3>First aid</h3><div class="tab-pane" style="display:none"><p>Do not induce vomiting. Never give anything by mouth.</p></div>',
            "vomiting",
        ),
        ('<div class="panel" hidden><p>Do not use a solid water stream.</p></div>', "water stream"),
        (
            '<div class="ghs-codes"><a href="/h/225">H225</a> <a href="/h/319">H319</a> <a href="/h/336">H336</a></div>',
            "H319",
        ),
        ("<button>4. First aid</button><div><p>Rinse with water.</p></div>", "4. First aid"),
        ('<p>CAS: <input readonly value="67-64-1"></p>', "67-64-1"),
        (
            "<p>values 10<span> </span>20 and 5<b>&nbsp;</b>10 ppm; is<i> </i>not<span>&#160;</span>safe</p>",
            "10 20 and 5 10 ppm; is not safe",
        ),
        ("<p>UN<a name=x> </a>1090 and 2<font> </font>000</p>", "UN 1090 and 2 000"),
        (
            "<p>1.2×<math><msup><mn>10</mn><mrow><mo>−</mo><mn>3</mn></mrow></msup></math> and <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math></p>",
            "1.2×10⁻³ and 1/2",
        ),
        (
            "<dl><dt>Contents</dt><dd>500 mL</dd><dt>CAS</dt><dd>67-64-1</dd><dt>Notes</dt><dd>Not soluble</dd><dt>Categories</dt><dd>Flam. Liq. 2</dd></dl>",
            "Not soluble",
        ),
        (
            "<dl><dt>Contents</dt><dd>500 mL</dd><dt>CAS</dt><dd>67-64-1</dd><dt>Notes</dt><dd>Not soluble</dd><dt>Categories</dt><dd>Flam. Liq. 2</dd></dl>",
            "Flam. Liq. 2",
        ),
        (
            '<div class="card-header">Notes</div><div class="card-body">Not a carcinogen</div>',
            "Not a carcinogen",
        ),
        ("<h2>Sources</h2><p>Sparks, hot work, static.</p>", "hot work"),
        ("<h2>Notes</h2><p>IDLH 2500 ppm; CAS 67-64-1</p>", "IDLH"),
        (
            '<table><tr><th>Name</th><th>comments</th></tr><tr><td>Sodium</td><td class="comments">Not with water</td></tr><tr><td>Lithium</td><td class="rating">3</td></tr></table>',
            "Not with water",
        ),
        (
            '<table><tr><th>Name</th><th>comments</th></tr><tr><td>Sodium</td><td class="comments">Not with water</td></tr><tr><td>Lithium</td><td class="rating">3</td></tr></table>',
            "| Lithium | 3",
        ),
        (
            "<table><tr><td>a</td><td>b</td></tr>Never heat<tr>Danger<td>c</td></tr><p>Do not touch</p></table>",
            "Never heat",
        ),
        (
            "<table><tr><td>a</td><td>b</td></tr>Never heat<tr>Danger<td>c</td></tr><p>Do not touch</p></table>",
            "Danger",
        ),
        (
            "<table><tr><td>a</td><td>b</td></tr>Never heat<tr>Danger<td>c</td></tr><p>Do not touch</p></table>",
            "Do not touch",
        ),
        ("<p>（三）不得与酸类混存；</p>", "不得与酸类"),
        ("<aside><p>禁止用水灭火。</p></aside>", "禁止用水"),
        ('<div class="panel" style="display:none">误服时不得催吐。</div>', "不得催吐"),
    ],
)
def test_no_instruction_sign_value_or_label_is_lost(fragment: str, said: str) -> None:
    assert said in text_of(f'<div class="content"><h1>Acetone</h1>{_BODY}{fragment}{_BODY}</div>')


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        (
            '<div class="cookie-banner">We never sell data and do not store water marks. Accept cookies</div>',
            "cookies",
        ),
        ('<div class="comments"><p>Never buy here, the acid was weak.</p></div>', "buy here"),
        ("<p>Share this page</p>", "Share this page"),
        ("<p>[Print this article] [Send to a friend]</p>", "Print this"),
        ("<p>Copyright 2020 Acme. Do not copy.</p>", "Acme"),
        ("<h3>Comments (3)</h3><p>Nice page, thanks a lot.</p>", "thanks a lot"),
        ("<p>您需要登录后才可以回帖</p>", "回帖"),
    ],
)
def test_furniture_that_sounds_like_it_still_goes(fragment: str, said: str) -> None:
    assert said not in text_of(f'<div class="content"><h1>Acetone</h1>{_BODY}{fragment}{_BODY}</div>')


@pytest.mark.parametrize(
    "tag", ['<u {}">', '<p {a}b=1 {c}="2" x"=3 class=infobox>', "<td {>", '<div {font:1}.mw"=x>']
)
def test_attributes_whose_names_begin_with_a_brace_go_like_others(tag: str) -> None:
    """A parser takes such a name for one with a namespace, which it does not know."""
    body = "<p>苯的闪点为 -11 ℃，沸点为 80 ℃，与氧化剂接触会发生强烈反应。</p>" * 3
    page = clean_page(
        f"<html><body><main><h1>苯</h1>{tag}苯 71-43-2{body}</main></body></html>".encode(),
        url="https://x.example/a",
    )
    assert "71-43-2" in page.text
    assert "{" not in page.html

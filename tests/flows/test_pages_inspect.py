"""``hchem pages inspect`` and ``hchem pages patterns``: what they show is what cleaning did."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.cleaning import clean_page
from corpus.errors import SettingsError, TerminalError
from corpus.settings import CorpusSettings
from corpus.stage import curate_stage
from flows.commands import pages
from flows.inspection import Inspection, inspect_bytes, inspect_in_child, render
from flows.inspection.source import MAX_LINES
from models import Models
from tests.conftest import SAMPLES
from tests.corpus.archived_pages import Sent, archive, run_stage

run = CliRunner().invoke
SAMPLED = [
    "en.wikipedia.org-2019/urea.html",
    "hxpaq.example/msds/67-56-1.html",
    "twsds.example/sheet/7647-01-0.html",
    "sekom.com/w.html",
    "made-up-noise/search-results.html",
]


def sample(name: str) -> bytes:
    return (SAMPLES / "pages" / name).read_bytes()


def shown(found: Inspection, name: str = "page") -> str:
    return render(json.loads(json.dumps(found.to_json())), name=name, facts={})


@pytest.mark.parametrize("name", SAMPLED)
def test_every_count_is_that_of_the_cleaning(name: str) -> None:
    data = sample(name)
    found = inspect_bytes(data, url=name)
    assert {rule.key: rule.count for rule in found.rules} == clean_page(data, url=name).counts()
    for rule in found.rules:
        if rule.entries:
            assert len(rule.entries) + rule.more + rule.elsewhere == rule.count, rule.key
        if rule.cleaning == "structural":
            assert rule.elsewhere == 0, f"{rule.key} is not traced"
    went = {values.kind: values.total for values in found.values}
    counts = {rule.rule: rule.count for rule in found.rules if rule.cleaning == "attribute"}
    for kind, total in went.items():  # the document head and its html element have attributes too
        assert 0 < total <= counts[kind], kind
    assert went.get("class", 0) >= counts.get("class", 0) - 5


@pytest.mark.parametrize("name", SAMPLED)
def test_every_link_has_its_place(name: str) -> None:
    found = inspect_bytes(sample(name), url=name)
    assert found.blocks
    assert all(block.number >= 0 for block in found.blocks)
    html = shown(found)
    ids = re.findall(r' id="([^"]+)"', re.sub(r'srcdoc="[^"]*"', "", html))
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
    assert len(re.findall(r'href="#r\d+"', html)) >= len(found.blocks)


def test_what_goes_is_marked_with_its_rule_and_what_stays_is_not() -> None:
    page = """<html><body onload="go()"><nav><a href="/">首页</a><a href="/x">Products</a></nav>
    <main id="m"><h1 class="t1">苯 Benzene</h1><script>track()</script><p>苯是无色液体，闪点 -11 ℃，CAS 71-43-2。It must not
    be released to the environment and is a known carcinogen.</p><iframe src="http://ads.example/a"></iframe></main></body></html>"""
    found = inspect_bytes(page.encode())
    raw = {line.number: line for line in found.panes[0].lines if line.number >= 0}
    keys = {line.parts[0][1][1:]: line.key for line in raw.values()}
    assert keys["nav"] == "structural/landmark:nav"
    assert keys["script"] == "functional/script"
    assert keys["iframe"] == "functional/frame"
    assert keys["h1"] == keys["p"] == ""
    faded = [text.strip() for line in raw.values() for kind, text in line.parts if kind == "g"]
    assert faded == ['onload="go()"', 'id="m"', 'class="t1"']
    rules = {rule.key: rule for rule in found.rules}
    assert rules["functional/handler"].entries[0].text == "go()"
    assert rules["functional/frame"].entries[0].text == 'src="http://ads.example/a"'
    assert rules["functional/frame"].entries[0].path == "/html/body/main[1]/iframe[1]"
    assert rules["structural/landmark:nav"].entries[0].text.replace(" ", "") == "首页Products"
    assert {v.kind: v.items for v in found.values} == {"class": [("t1", 1)]}
    later = "".join(text for pane in found.panes[1:] for line in pane.lines for _, text in line.parts)
    assert "首页" not in later


def test_panes_that_a_cleaning_did_not_change_are_folded() -> None:
    text = "<h1>苯 Benzene</h1><p>苯是无色液体，闪点 -11 ℃，CAS 71-43-2。It must not be released to the environment.</p>"
    untouched = inspect_bytes(f"<html><body>{text}</body></html>".encode())
    assert [pane.same_as for pane in untouched.panes] == ["", "raw", "raw", "raw"]
    assert shown(untouched).count("<small>no change<br>as raw</small>") == 3
    # functional cleaning finds nothing to take; what attribute cleaning takes is still faded
    classes = inspect_bytes(f'<html><body><nav><a href="/">首页</a></nav><main>{text}<p class="m1">甲苯。</p></main></body></html>'.encode())  # fmt: skip
    assert [pane.same_as for pane in classes.panes] == ["", "", "structural", ""]
    faded = [part for line in classes.panes[1].lines for kind, part in line.parts if kind == "g"]
    assert [part.strip() for part in faded] == ['class="m1"']
    assert classes.panes[2].lines == []
    everything = inspect_bytes(f'<html><body><nav><a href="/">首页</a></nav><main>{text}<p class="m1">甲苯。</p><script>a()</script></main></body></html>'.encode())  # fmt: skip
    assert [pane.same_as for pane in everything.panes] == [""] * 4


@pytest.mark.parametrize(
    "name", ["prc-law/yizhidu_tiaoli.md", "ecfr/49cfr172_102_special_provisions_excerpt.xml"]
)
def test_text_and_xml_show_their_source_and_places(name: str) -> None:
    data = sample(name)
    found = inspect_bytes(data, url=name)
    assert [pane.unit for pane in found.panes] == ["lines"]
    lines = data.decode().splitlines()
    placed = [block for block in found.blocks if block.number > 0]
    assert len(placed) == len(found.blocks)
    for block in placed[:20]:
        first = re.sub(r"\W", "", block.text)[:8]
        around = "".join(lines[block.number - 1 : block.number + 3])
        if name.endswith(".xml"):
            around = re.sub(r"<[^>]+>", "", around)
        assert first in re.sub(r"\W", "", around)


def test_a_pdf_has_its_text_by_page() -> None:
    found = inspect_bytes(sample("sekom.com/msds-apr.pdf"))
    assert (found.panes, found.page["kind"]) == ([], "pdf")
    assert found.blocks[0].path == "page 1"
    assert ">page 1<" in shown(found)


def test_encodings_and_refused_pages() -> None:
    found = inspect_bytes(
        "<html><body><p>甲醇有毒，不得口服。沸点 64.7 ℃，闪点 11 ℃。</p></body></html>".encode("gb18030")
    )
    assert found.page["encoding"]["encoding"] == "gb18030"
    assert "甲醇有毒" in shown(found)
    refused = inspect_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert refused.error.startswith("unsupported_type")
    assert "refused: unsupported_type" in shown(refused)


def test_a_large_page_gives_a_small_file_that_says_what_is_left_out() -> None:
    links = "".join(f"<li class=x{n}><a href='/p{n}'>link number {n}</a></li>" for n in range(3000))
    rows = "".join(f"<tr><td>substance {n}</td><td>{n} mg/m3</td></tr>" for n in range(1300))
    page = f"<html><body><nav><ul>{links}</ul></nav><h1>Limits</h1><p>Exposure limits of substances, by name.</p><table>{rows}</table></body></html>"
    found = inspect_bytes(page.encode())
    raw = found.panes[0]
    assert len(raw.lines) <= MAX_LINES + 1
    assert raw.cut
    texts = [text for line in raw.lines for _, text in line.parts]
    assert "substance 3" in texts  # the menu has not used up the pane
    assert any("more lines of this removed part" in line.note for line in raw.lines)
    assert raw.elements - raw.left < MAX_LINES + 100
    html = shown(found)
    assert len(html) < 4_000_000
    assert f"{raw.left:,} of {raw.elements:,} elements are not shown" in html
    assert f"{found.blocks_left:,} more blocks are not shown" in html or not found.blocks_left


def test_a_page_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TerminalError, match="took longer than"):
        inspect_in_child(b"<p>x</p>" * 200_000, timeout_s=0.05)


HOSTILE = """<html><head><title></title></style><script>window.pwned=1</script></title>
<meta http-equiv="refresh" content="0;url=http://evil.example/"></head><body onload="window.pwned=2">
<h1>Toluene </iframe><script>window.pwned=3</script></h1><p title='"><img src=x onerror=window.pwned=4>'>甲苯是无色液体，CAS 108-88-3，
闪点 4 ℃。Toluene must not be released. &lt;script&gt;window.pwned=5&lt;/script&gt; {{ 7*7 }} {% raw %} \u202egnp.exe</p>
<img src="http://evil.example/pixel.png" alt="GHS02"><a href="javascript:window.pwned=6" class='x"><script>window.pwned=7</script>'>go</a>
<iframe srcdoc="<script>parent.pwned=8</script>"></iframe><svg onload="window.pwned=9"></svg>
<form action="http://evil.example/"><input autofocus onfocus="window.pwned=10"></form>
<table><tr><th>闪点</th><td><img src="https://evil.example/b.png"> 4 ℃</td></tr></table></body></html>"""
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


@pytest.mark.browser
@pytest.mark.slow
def test_hostile_content_neither_runs_nor_loads(chromium: str, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    path = tmp_path / "hostile.html"
    path.write_text(
        shown(inspect_bytes(HOSTILE.encode()), name='"><script>window.pwned=11</script>'), encoding="utf-8"
    )
    requests: list[str] = []
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        page.frame_locator("iframe").locator("td", has_text="4 ℃").wait_for()
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.scripts.length") == 0
        assert page.evaluate(
            "[...document.querySelectorAll('*')].every(e => ![...e.attributes].some(a => a.name.startsWith('on')))"
        )
        assert page.locator(".pane.raw").inner_text().count("window.pwned=2") == 1
        assert "{{ 7*7 }}" in page.locator(".pane.text").inner_text()
        assert "⟨U+202E⟩" in page.locator(".pane.raw").inner_text()
        # keyboard: a pane's switch hides it, a block's number leads to its place in the raw page
        page.locator("#show-functional").press("Space")
        assert not page.locator(".pane.functional").is_visible()
        link = page.locator(".pane.text a").first
        link.press("Enter")
        target = link.get_attribute("href") or ""
        assert page.evaluate("document.querySelector(':target').id") == target[1:]
        browser.close()
    assert requests == [path.as_uri()] or [url.split("#")[0] for url in requests] == [path.as_uri()]
    assert complaints == []


# --- pages of the catalogue ---


def _sheet(name: str, cas: str, number: int) -> Sent:
    body = f"""<html><body><div class="x9"><p>欢迎访问示例化学品网 登录 注册</p></div><div class="y1"><h1>{name}</h1>
    <p>{name}是易燃液体，CAS {cas}，闪点 {number} ℃，储存于阴凉通风处，不得与氧化剂混放，操作人员须经过专门培训。</p>
    <p>{name}蒸气与空气可形成爆炸性混合物，遇明火会引起燃烧爆炸，编号 {number} 的泄漏应当用砂土吸收。</p></div>
    <div class="z3"><p>示例化学品网 版权所有 联系我们</p></div></body></html>"""
    return Sent(f"https://x.example/sds/{number}.html", body.encode())


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    monkeypatch.setenv("HCHEM_DATA_DIR", str(data_dir))
    monkeypatch.chdir(tmp_path)
    opened = Catalogue.open(f"sqlite:///{data_dir}/catalogue.db")
    sheets = [("甲醇", "67-56-1"), ("乙醇", "64-17-5"), ("甲苯", "108-88-3"), ("丙酮", "67-64-1")]
    sent = [_sheet(name, cas, 11 + n) for n, (name, cas) in enumerate(sheets)]
    archive(
        opened,
        data_dir,
        [
            *sent,
            Sent(
                "https://y.example/a.md",
                b"# Rules\n\nStore it away from heat, 5 kg at most.\n",
                "text/markdown",
                "other",
            ),
        ],
    )
    stage = curate_stage(CorpusSettings(), Models(), data_dir)
    try:
        run_stage(stage, opened)
    finally:
        stage.close()
    yield opened
    opened.close()


def test_a_page_of_the_catalogue_is_shown_as_curation_cleans_it(catalogue: Catalogue, tmp_path: Path) -> None:
    result = run(pages.app, ["inspect", "https://x.example/sds/12.html"])
    assert result.exit_code == 0, result.output
    path = Path(result.output.strip())
    assert path.parent == tmp_path / "data" / "reports"
    html = path.read_text(encoding="utf-8")
    assert "x.example/sds/{number}.html (4 pages" in html
    assert re.search(r'class="badge k\d+">template</b>', html)
    assert "乙醇蒸气与空气" in html
    with catalogue.reading() as session:
        from corpus.catalogue.tables import Document

        (removed,) = [d.removed for d in session.query(Document) if d.url.endswith("/12.html")]
    listed = dict(re.findall(r'class="badge k\d+">([^<]+)</b><span class="count">(\d+)', html))
    assert listed == {key.split("/")[1]: str(count) for key, count in removed.items()}


def test_patterns_list_size_languages_and_what_was_removed(catalogue: Catalogue) -> None:
    result = run(pages.app, ["patterns", "--json"])
    assert result.exit_code == 0, result.output
    sheets, rest = [json.loads(line) for line in result.output.splitlines()]
    assert (sheets["pattern"], sheets["size"], sheets["languages"]) == (
        "x.example/sds/{number}.html",
        4,
        {"zh": 4},
    )
    assert sheets["examples"][0] == "https://x.example/sds/11.html"
    assert {block["text"] for block in sheets["removed"]} == {
        "欢迎访问示例化学品网 登录 注册",
        "示例化学品网 版权所有 联系我们",
    }
    assert sheets["removed_elements"] == 8
    assert 0.05 < sheets["removed_share"] < 0.4
    assert (rest["pattern"], rest["removed"], rest["removed_share"]) == ("y.example/*", [], None)
    one = run(pages.app, ["patterns", "--cluster", sheets["cluster_id"][:8]]).output
    assert "示例化学品网 版权所有 联系我们" in one
    assert "4 sampled pages" in one
    only = run(pages.app, ["patterns", "--source", "other"]).output
    assert "1 of 1 clusters" in only
    assert "x.example/sds" not in only
    assert isinstance(run(pages.app, ["patterns", "--cluster", "zz"]).exception, SettingsError)
    unknown = run(pages.app, ["patterns", "--source", "nowhere"]).exception
    assert isinstance(unknown, SettingsError)
    assert "unknown source 'nowhere'; known: " in str(unknown)
    assert "wikipedia-en" in str(unknown)
    assert "0 of 0 clusters" in run(pages.app, ["patterns", "--source", "wikipedia-en"]).output


def test_files_and_wrong_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "none"))
    page = tmp_path / "页.html"
    page.write_bytes(
        "<html><body><h1>苯</h1><p>苯是无色液体，闪点 -11 ℃，不溶于水。</p></body></html>".encode("gb18030")
    )
    result = run(pages.app, ["inspect", str(page)])
    assert result.exit_code == 0, result.output
    written = Path(result.output.strip())
    assert written.parent == tmp_path / "none" / "reports"
    assert written.name.startswith("inspect-页.html-")
    assert "苯是无色液体" in written.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [
        "页.html"
    ]  # nothing beside the file
    assert not (tmp_path / "none" / "catalogue.db").exists()  # a file needs no catalogue
    other = tmp_path / "elsewhere" / "页.html"  # a file of the same name has a report of its own
    other.parent.mkdir()
    other.write_bytes(page.read_bytes())
    assert Path(run(pages.app, ["inspect", str(other)]).output.strip()) != written
    assert run(pages.app, ["inspect", str(page), "--out", str(tmp_path / "a" / "b.html")]).exit_code == 0
    assert (tmp_path / "a" / "b.html").is_file()
    unknown: Any = run(pages.app, ["inspect", "https://nowhere.example/"]).exception
    assert isinstance(unknown, SettingsError)


def test_a_list_of_an_unknown_source_or_chemical_is_an_error(catalogue: Catalogue) -> None:
    from corpus.catalogue.tables import Page
    from corpus.chemicals import add_chemical

    add_chemical(catalogue, "benzene", cas="71-43-2", name_zh="苯")
    with catalogue.writing() as session:
        session.query(Page).filter(Page.url.endswith("/13.html")).one().chemicals = ["71-43-2"]
    for name in ("苯", "Benzene", "71-43-2"):
        result = run(pages.app, ["list", "--chemical", name, "--json"])
        assert [json.loads(line)["url"][-8:] for line in result.output.splitlines()] == ["/13.html"]
    for arguments in (["--source", "nowhere"], ["--chemical", "没有这种东西"]):
        assert isinstance(run(pages.app, ["list", *arguments]).exception, SettingsError)
    assert run(pages.app, ["list", "--source", "other", "--json"]).output.count("\n") == 1

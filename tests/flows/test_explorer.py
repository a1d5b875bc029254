"""The graph explorer: sources side by side, conflicts, hostile names, growth; in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Question
from corpus.errors import TerminalError
from flows.report.explorer import page_name, raised, write_explorer
from flows.report.figures import network
from flows.report.neighbours import Neighbour, picture
from kg.schema import Relation, value_key
from kg.settings import ExtractionSettings
from tests.kg.graph_builders import MADE, L, R, Sheet, data_sheet, entity, fill, quantity

SETTINGS = ExtractionSettings(temperature_tolerance_k=5.0, relative_tolerance=0.1)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "`}) DETACH DELETE n //",
    "{{ 7*7 }}{% raw %}",
    "\u202eevil\u202c\u2066",
    "👩‍🔬" * 3,
    "../../etc/passwd",
    "长" * 10_000,
    "a\u0007b\u2028c",
    "]]></style><script>alert(3)</script>",
)


def hostile(catalogue: Catalogue) -> list[str]:
    """Substances, titles, addresses and statements with hostile text; their keys."""
    keys = []
    with catalogue.writing() as session:
        for n, name in enumerate(HOSTILE):
            key = f"name:{name[:60]}{n}"
            keys.append(key)
            entity(session, key, zh=name, en=name, aliases=(name + "别名",))
            sheet = Sheet(f"{name[:300]} {n}", "zh", url=f"javascript:alert({n})//{name[:40]}")
            line = sheet.line(10, f"禁配物：{name[:200]}。")
            sheet.fact(key, R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, f"group:{name[:50]}", line,
                       object=name, properties={"zh": name, "en": name}, conditions={name[:20]: name})  # fmt: skip
            sheet.store(session)
            session.add(Question(
                question_id=f"q{n}", kind="boolean", language="zh", question=name, answer=name, substances=[key], state="kept",
            ))  # fmt: skip
        for row in session.query(Document):
            row.licence = row.source = HOSTILE[0]
    return keys


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    yield opened
    opened.close()


class Elements(HTMLParser):
    """Tags, attributes and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def test_a_page_for_each_substance_and_only_of_kept_documents(catalogue: Catalogue, tmp_path: Path) -> None:
    fill(catalogue, MADE[:4])
    with catalogue.writing() as session:
        gone = session.query(Document).filter(Document.identity.contains(MADE[3].cas))
        for row in gone:
            row.state = "rejected"
        row = session.query(Document).filter(Document.identity.contains(f"zh/{MADE[0].cas}")).one()
        row.url = "https://www.example.org/acetone?a=1&b=2"
    made = write_explorer(catalogue, tmp_path / "report.html", SETTINGS)
    files = {path.name for path in made.folder.iterdir() if path.suffix == ".html"}
    assert files == {"index.html", *(f"{m.cas}.html" for m in MADE[:3])}
    assert (made.pages, made.substances) == (3, 3)
    assert made.bytes == sum((made.folder / name).stat().st_size for name in files)
    assert made.largest == max((made.folder / name).stat().st_size for name in files)
    page = (made.folder / f"{MADE[0].cas}.html").read_text(encoding="utf-8")
    for said in (
        "丙酮",
        "Acetone",
        "H225",
        "闪点（闭杯）",
        "flash point (closed cup)",
        "UN 1090",
        "UN1090"[:2],
        "made up",
    ):
        assert said in page, said
    assert ("href", "https://www.example.org/acetone?a=1&b=2") in Elements(page).attributes
    assert page.count("<mark>") >= 30
    # a statement shown once for each source: both sheets' boiling points stand side by side
    part = page[page.index('id="m-HAS_MEASUREMENT"') :]
    part = part[: part.index("</section>")]
    assert part.count('class="matter"') == 2
    assert part.count('class="stated"') == 4
    assert "conflict" not in part


def test_conflicts_are_marked(catalogue: Catalogue, tmp_path: Path) -> None:
    made = MADE[1]
    fill(catalogue, (made,))
    other = Sheet("另一份资料", "zh", url="http://sample.test/other")
    line = other.line(9, "沸点：90 ℃")
    value = quantity(90.0, "degC", 363.15, "kelvin")
    other.fact(made.cas, R.HAS_MEASUREMENT, L.MEASUREMENT, value_key(L.MEASUREMENT, made.cas, {"property": "boiling_point"}, value),
               line, properties={"property": "boiling_point"}, value=value)  # fmt: skip
    line = other.line(9, "闪点（闭杯）：12 ℃")  # within the tolerance
    value = quantity(12.0, "degC", 285.15, "kelvin", method="closed cup")
    other.fact(made.cas, R.HAS_MEASUREMENT, L.MEASUREMENT, value_key(L.MEASUREMENT, made.cas, {"property": "flash_point"}, value),
               line, properties={"property": "flash_point"}, value=value)  # fmt: skip
    line = other.line(5, "可用直流水灭火。")
    agent = {"kind": "extinguishing_agent", "zh": "直流水", "en": "water jet"}
    other.fact(made.cas, R.EXTINGUISHED_BY, L.MEASURE, "agent:water_jet", line, properties=agent)
    line = other.line(10, "与酸类不反应。")
    other.fact(made.cas, R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:acids", line, polarity="negative",
               properties={"zh": "酸类", "en": "acids"})  # fmt: skip
    line = other.line(1, "CAS：67-56-9")
    other.fact(
        made.cas, R.HAS_ALIAS, L.ALIAS, "cas:67-56-9", line, properties={"kind": "cas", "text": "67-56-9"}
    )
    with catalogue.writing() as session:
        other.store(session)
    made_pages = write_explorer(catalogue, tmp_path / "r.html", SETTINGS)
    page = (made_pages.folder / f"{made.cas}.html").read_text(encoding="utf-8")
    listed = re.findall(r"<li>(.*?)</li>", page[page.index('id="conflicts"') :], re.DOTALL)
    assert len([row for row in listed if "直流水" in row]) == 2  # under both headings
    assert len([row for row in listed if "沸点" in row]) == 1
    assert len([row for row in listed if "酸类" in row]) == 1
    assert len([row for row in listed if "CAS" in row]) == 1
    assert not [row for row in listed if "闪点" in row]
    assert "否定 · denied" in page
    index = (made_pages.folder / "index.html").read_text(encoding="utf-8")
    assert 'data-conflicts="5"' in index


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("H<sub>2</sub>SO<sub>4</sub>，10<sup>-3</sup>", "H<sub>2</sub>SO<sub>4</sub>，10<sup>-3</sup>"),
        ("2</sub>O、CO<sub>2", "2O、CO2"),
        ("<sub><script>x</script></sub>", "<sub>&lt;script&gt;x&lt;/script&gt;</sub>"),
        ("<sub onclick=x>2</sub>", "&lt;sub onclick=x&gt;2"),
        ("pH<7 & <b>x</b>", "pH&lt;7 &amp; &lt;b&gt;x&lt;/b&gt;"),
    ],
)
def test_only_raised_and_lowered_characters_are_marked_up(text: str, shown: str) -> None:
    assert raised(text) == shown


def test_counts_and_quotes_on_a_page(catalogue: Catalogue, tmp_path: Path) -> None:
    made = MADE[1]
    sheet = Sheet("一份资料", "zh", url="http://sample.test/one")
    line = sheet.line(1, "分子式：CH<sub>4</sub>O")
    sheet.fact(
        made.cas, R.HAS_ALIAS, L.ALIAS, "formula:CH4O", line, properties={"kind": "formula", "text": "CH4O"}
    )
    other = Sheet("另一份资料", "zh", url="http://sample.test/two")
    line = other.line(1, "分子式：C<sub>2</sub>H<sub>6</sub>O")
    other.fact(
        made.cas, R.HAS_ALIAS, L.ALIAS, "formula:C2H6O", line, properties={"kind": "formula", "text": "C2H6O"}
    )
    with catalogue.writing() as session:
        sheet.store(session)
        other.store(session)
    made_pages = write_explorer(catalogue, tmp_path / "r.html", SETTINGS)
    page = (made_pages.folder / f"{made.cas}.html").read_text(encoding="utf-8")
    assert "1 conflict 处矛盾" in page
    assert "2 statements 条陈述 · 2 sources 个来源 · 0 questions" in page
    assert "<mark>分子式：CH<sub>4</sub>O</mark>" in page
    assert "&lt;sub&gt;" not in page


def test_hostile_text_stays_text(catalogue: Catalogue, tmp_path: Path) -> None:
    keys = hostile(catalogue)
    made = write_explorer(catalogue, tmp_path / "report.html", SETTINGS)
    assert made.pages == len(keys)
    assert {page_name(key) for key in keys} | {"index.html"} == {
        path.name for path in made.folder.iterdir() if path.suffix == ".html"
    }
    for path in made.folder.glob("*.html"):
        found = Elements(path.read_text(encoding="utf-8"))
        assert found.tags.count("script") == (1 if path.name == "index.html" else 0)
        assert "img" not in found.tags
        assert not [name for name, _ in found.attributes if name.startswith("on")]
        addresses = [value for name, value in found.attributes if name in {"href", "src"}]
        assert not [value for value in addresses if not re.fullmatch(r"[\w.%/-]*(#[\w.%-]+)?", value)], path
        assert path.stat().st_size < 200_000
    assert not list(tmp_path.rglob("passwd*"))


def test_the_folder_is_replaced_whole_and_never_somebody_else_s(catalogue: Catalogue, tmp_path: Path) -> None:
    fill(catalogue, MADE[:2])
    report = tmp_path / "out" / "report.html"
    first = write_explorer(catalogue, report, SETTINGS)
    before = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    stamp = first.folder.stat().st_mtime_ns
    again = write_explorer(catalogue, report, SETTINGS)
    assert (again.pages, again.bytes, again.largest) == (first.pages, first.bytes, first.largest)
    assert first.folder.stat().st_mtime_ns == stamp  # nothing had changed
    fill(catalogue, MADE[2:3])
    third = write_explorer(catalogue, report, SETTINGS)
    assert third.pages == 3
    assert {path.name for path in report.parent.iterdir()} == {third.folder.name}
    other = write_explorer(catalogue, tmp_path / "two" / "report.html", SETTINGS)
    assert {p.name: p.read_bytes() for p in third.folder.iterdir()} == {
        p.name: p.read_bytes() for p in other.folder.iterdir()
    }
    assert before.keys() < {path.name for path in third.folder.iterdir()}
    mine = tmp_path / "mine-substances"
    mine.mkdir()
    (mine / "precious").write_text("x")
    with pytest.raises(TerminalError, match="was not written by a report"):
        write_explorer(catalogue, tmp_path / "mine.html", SETTINGS)
    assert (mine / "precious").read_text() == "x"


def test_time_grows_with_the_substances(catalogue: Catalogue, tmp_path: Path) -> None:
    def added(at: int, n: int) -> float:
        with catalogue.writing() as session:
            for k in range(at, at + n):
                made = MADE[k % 8]
                key = f"{200000 + k}-{k % 90 + 10}-1"
                sheet = data_sheet(type(made)(**{**made.__dict__, "cas": key}), "en")
                entity(session, key, en=f"Substance {k}", zh=f"物质{k}")
                sheet.store(session)
        began = time.process_time()
        found = write_explorer(catalogue, tmp_path / "report.html", SETTINGS)
        assert found.pages == at + n
        return time.process_time() - began

    added(0, 10)  # warm
    small, large = added(10, 30), added(40, 120)  # 40 pages, then 160
    assert large < 12 * small  # linear is 4


def _node(label: str, name: str, **more: Any) -> Neighbour:
    given = {
        "key": name,
        "relation": "r",
        "conditions": "",
        "denied": False,
        "unsuitable": False,
        "address": "",
    }
    return Neighbour(label=label, name=name, **{**given, **more})


def test_the_picture_is_bounded() -> None:
    many = [_node("HazardStatement", f"H{n}") for n in range(200)]
    many += [_node("Substance", f"s{n}", address="x.html") for n in range(3)]
    drawn = picture("x", many)
    assert len(drawn["nodes"]) == 28
    assert drawn["left_out"] == len(many) - 28
    assert {n["label"] for n in drawn["nodes"]} == {"HazardStatement", "Substance"}
    assert len({(n["x"], n["y"]) for n in drawn["nodes"]}) == 28
    for side in ("start", "end"):
        ys = sorted(t["y"] for n in drawn["nodes"] if n["anchor"] == side for t in n["texts"])
        assert all(b - a >= 15 for a, b in pairwise(ys))  # no line over another one
        assert ys[0] > 0
        assert ys[-1] < drawn["height"]
    assert picture("x", [])["nodes"] == []


def test_a_prohibition_is_drawn_first_and_what_it_belongs_to_only_with_it() -> None:
    fitting = [_node("Measure", f"m{n:03}") for n in range(60)]
    forbidden = _node("Measure", "z", key="agent:z", unsuitable=True)
    allowed = _node("Measure", "z", key="agent:z", conditions="小火")
    names = {t["text"] for n in picture("x", [*fitting, forbidden, allowed])["nodes"] for t in n["texts"]}
    assert {"z", "小火"} <= names
    # its condition has no room: neither the prohibition without it nor the permission alone
    endless = _node("Measure", "z", key="agent:z", unsuitable=True, conditions="仅在" + "很" * 200 + "时")
    drawn = picture("x", [_node("Measure", "foam"), endless, allowed])
    assert [t["text"] for n in drawn["nodes"] for t in n["texts"]] == ["foam", "r"]
    assert drawn["left_out"] == 2


def test_texts_of_the_picture_are_whole_or_left_out() -> None:
    long = "用作溶剂及合成苯的衍生物、香料、染料、塑料、医药、炸药、橡胶等"
    (node,) = picture("x", [_node("Use", long)])["nodes"]
    assert "".join(t["text"] for t in node["texts"] if t["style"] == "name") == long
    words = "in " + "very " * 12 + "dry air"
    (node,) = picture("x", [_node("Measure", "sand", conditions=words)])["nodes"]
    assert " ".join(t["text"] for t in node["texts"] if t["style"] == "conditions") == words
    assert picture("x", [_node("Use", long * 4)])["nodes"] == []


def _picture_of(catalogue: Catalogue, tmp_path: Path, key: str) -> list[str]:
    """The figure's nodes as markup."""
    made = write_explorer(catalogue, tmp_path / "r.html", SETTINGS)
    page = (made.folder / page_name(key)).read_text(encoding="utf-8")
    figure = page[page.index('id="neighbours"') : page.index("</figure>")]
    return re.findall(r'<g class="node.*?</g>', figure, re.DOTALL)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_picture_tells_what_must_not_be_done_and_under_which_conditions(
    catalogue: Catalogue, tmp_path: Path, language: str
) -> None:
    zh = language == "zh"
    cas, other = MADE[0].cas, MADE[1].cas
    sheet = Sheet("资料" if zh else "sheet", language, url="http://sample.test/one")

    def agent(relation: Relation, name: tuple[str, str], line: str, **more: Any) -> None:
        properties = {"kind": "extinguishing_agent", "zh": name[0], "en": name[1]}
        sheet.fact(
            cas, relation, L.MEASURE, f"agent:{name[1]}", sheet.line(5, line), properties=properties, **more
        )

    agent(R.EXTINGUISHED_BY, ("干粉", "dry powder"), "灭火剂：干粉。" if zh else "Use dry powder.")
    when = "直接冲击灭火" if zh else "as a straight jet"
    agent(R.NOT_EXTINGUISHED_BY, ("水", "water"), f"不可用水{when}。" if zh else f"Do not use water {when}.",
          conditions={"when": when})  # fmt: skip
    line = sheet.line(10, "与酸类不反应。" if zh else "Does not react with acids.")
    sheet.fact(cas, R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:acids", line, polarity="negative",
               properties={"zh": "酸类", "en": "acids"})  # fmt: skip
    line = sheet.line(10, "可能与铜反应。" if zh else "May react with copper.")
    sheet.fact(cas, R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:copper", line, modality="may",
               properties={"zh": "铜", "en": "copper"})  # fmt: skip
    line = sheet.line(10, "分解产物：甲醇" if zh else "Decomposes to methanol")
    sheet.fact(cas, R.DECOMPOSES_TO, L.SUBSTANCE, other, line)
    line = sheet.line(9, "蒸气压 0.13 kPa（739 ℃）" if zh else "Vapour pressure 0.13 kPa at 739 °C")
    degrees = "739 ℃" if zh else "739 °C"
    value = quantity(0.13, "kPa", 130.0, "pascal", temperature=degrees)
    sheet.fact(
        cas,
        R.HAS_MEASUREMENT,
        L.MEASUREMENT,
        "m:vp",
        line,
        properties={"property": "vapour_pressure"},
        value=value,
    )
    with catalogue.writing() as session:
        entity(session, cas, zh="丙酮", en="Acetone")
        entity(session, other, zh="甲醇", en="Methanol")
        sheet.store(session)
        own = Sheet("other", language, url="http://sample.test/two")
        own.fact(other, R.HAS_H, L.HAZARD_STATEMENT, "H225", own.line(2, "H225"), properties={"code": "H225"})
        own.store(session)
    nodes = _picture_of(catalogue, tmp_path, cas)

    def of(name: str) -> str:
        (node,) = (node for node in nodes if f">{name}<" in node)
        return node

    water = of("水 · water")
    assert "不适用的灭火剂 · unsuitable extinguishing media" in water
    assert f"条件：{when} · when: {when}" in water
    assert 'class="node adverse"' in water
    assert 'class="cross"' in water
    powder = of("干粉 · dry powder")
    assert ">灭火剂 · suitable extinguishing media<" in powder
    assert "adverse" not in powder
    acids = of("酸类 · acids")
    assert ">否定 · not: 禁配物 · incompatible materials<" in acids
    assert 'class="cross"' in acids
    assert ">可能 · may<" in of("铜 · copper")
    product = of("甲醇 · Methanol")
    assert ">分解产物 · decomposition products<" in product
    assert "禁配物" not in product
    pressure = of("0.13 kPa")
    assert ">饱和蒸气压 · vapour pressure<" in pressure
    assert f">{degrees}<" in pressure
    # seen from the other end, the relation says which of the two is the product
    (node,) = (node for node in _picture_of(catalogue, tmp_path, other) if ">丙酮 · Acetone<" in node)
    told = " ".join(re.findall(r'<text class="relation"[^>]*>(.*?)</text>', node))
    assert told == "本物质是其分解产物 · its decomposition products: this"


def test_relations_of_the_report_s_picture_can_be_told_apart() -> None:
    edges = [("a", relation.value, "b") for relation in (R.DECOMPOSES_TO, R.INCOMPATIBLE_WITH, R.BURNS_TO)]
    drawn = network(edges, {"a": ("苯", "Substance"), "b": ("water", "Substance")})
    styles = {(row["colour"], row["dash"]): row["relation"] for row in drawn["relations"]}
    assert sorted(styles.values()) == sorted(relation for _, relation, _ in edges)
    assert len({row["dash"] for row in drawn["relations"]}) == 3  # not by colour alone
    assert [styles[edge["colour"], edge["dash"]] for edge in drawn["edges"]] == [
        relation for _, relation, _ in edges
    ]


@pytest.mark.browser
def test_in_a_browser(catalogue: Catalogue, tmp_path: Path, chromium: str) -> None:
    from playwright.sync_api import sync_playwright

    fill(catalogue, MADE[:4])
    keys = hostile(catalogue)
    made = write_explorer(catalogue, tmp_path / "report.html", SETTINGS)
    complaints: list[str] = []
    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page: Any = browser.new_page(viewport={"width": 1200, "height": 900})
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("dialog", lambda d: complaints.append(d.message))
        page.on("request", lambda r: requests.append(r.url))
        page.goto((made.folder / "index.html").as_uri())
        rows = page.locator("#substances tbody tr:visible")
        assert rows.count() == len(keys) + 4
        for words, cas in (
            ("甲醇", MADE[1].cas),
            ("ACETONE", MADE[0].cas),
            ("６４－１７－５", MADE[2].cas),
            ("71-43-2", MADE[3].cas),
        ):
            page.fill("#search", words)
            assert rows.count() == 1, words
            assert cas in rows.first.inner_text()
        page.fill("#search", "no such substance")
        assert rows.count() == 0
        page.fill("#search", "甲醇")
        page.locator("#substances tbody tr:visible a").click()
        assert page.locator("h1").inner_text().split() == ["甲醇", "Methanol"]
        box = page.locator("#neighbours svg").first.bounding_box()
        assert box["width"] > 400
        assert box["height"] > 100
        assert page.locator("#neighbours circle").count() >= 8
        assert page.locator("mark:visible").count() >= 20
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for key in keys:
            page.goto((made.folder / page_name(key)).as_uri())
            assert page.locator("h1").is_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), key
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("file:")] == []

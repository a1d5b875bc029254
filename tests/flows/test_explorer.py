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
from flows.report.explorer import narrowed, page_name, raised, write_explorer
from flows.report.figures import neighbours_picture
from kg.schema import value_key
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


def test_names_beside_the_picture_are_cut_by_their_width() -> None:
    assert narrowed("autoignition temperature 480 °C") == "autoignition temperature 480 °C"
    assert narrowed("甲" * 18) == "甲" * 18
    assert narrowed("甲" * 19) == "甲" * 17 + "…"
    assert narrowed("a" * 37) == "a" * 35 + "…"


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


def test_the_picture_is_bounded() -> None:
    many = [("HAS_H", "HazardStatement", f"H{n}", "") for n in range(200)]
    many += [("INCOMPATIBLE_WITH", "Substance", f"s{n}", "x.html") for n in range(3)]
    picture = neighbours_picture("x", many)
    assert len(picture["nodes"]) == 28
    assert picture["left_out"] == len(many) - 28
    assert {n["label"] for n in picture["nodes"]} == {"HazardStatement", "Substance"}
    places = {(n["x"], n["y"]) for n in picture["nodes"]}
    assert len(places) == 28
    for side in ("start", "end"):
        ys = sorted(n["y"] for n in picture["nodes"] if n["anchor"] == side)
        assert all(b - a >= 20 for a, b in pairwise(ys))
    assert neighbours_picture("x", [])["nodes"] == []


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

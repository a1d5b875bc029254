"""The lineage pages: every item linked both ways, hostile text as text, what is not shown counted; ``hchem trace``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Assertion,
    Check,
    Chunk,
    Document,
    Evaluation,
    Failure,
    LedgerRow,
    ModelCall,
    Page,
    Question,
    Run,
    now,
)
from corpus.errors import SettingsError
from flows import report
from flows.cli import build
from flows.report import trails
from flows.report.places import document_page, lineage_folder, source_page
from flows.report.trails import write_trails
from flows.report.words import WORDS
from flows.runtime import open_runtime
from kg import versions
from kg.schema import DropReason, NodeLabel, Relation
from tests.flows.report_text import left_in_chinese, left_in_english
from tests.kg.graph_builders import MADE, L, R, Sheet, entity, fill

HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} "\u2028\u202e'


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """Two substances in both languages, one hostile document, questions over one and two documents, chunks, runs."""
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = Catalogue.open(f"sqlite:///{tmp_path}/catalogue.db")
    fill(made, MADE[:2])
    with made.writing() as db:
        entity(db, "name:evil", zh=HOSTILE, en=HOSTILE, aliases=(HOSTILE,))
        sheet = Sheet(HOSTILE, "zh", url=f"javascript:alert(3)//{HOSTILE}")
        line = sheet.line(10, f"禁配物：{HOSTILE}")
        sheet.fact("name:evil", R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:evil", line, object=HOSTILE,
                   properties={"zh": HOSTILE, "en": HOSTILE}, conditions={"when": HOSTILE}, polarity="negative")  # fmt: skip
        sheet.store(db)
    with made.writing() as db:
        db.add_all(
            Run(
                run_id=name,
                flow="refresh",
                state="completed",
                code_version="0.9.1",
                parameters={},
                settings={},
                stages={},
            )
            for name in ("r1", "r2")
        )
        for n, document in enumerate(db.query(Document).order_by(Document.document_id)):
            document.page_id = f"page{n}"
            db.add(Page(page_id=f"page{n}", document_id=document.document_id, source=document.source, url=document.url,
                        identity=document.identity, state="kept"))  # fmt: skip
            for step in ("curate.refine", "graph.extract"):
                db.add(
                    LedgerRow(
                        step=step, item_id=document.document_id, fingerprint="x", state="kept", run_id="r1"
                    )
                )
            for at in range(0, len(document.text), 60):
                part = document.text[at : at + 60]
                db.add(Chunk(chunk_id=f"{n:02}{at:06}c", partition_id=f"p{n}", document_id=document.document_id,
                             version_id=document.version_id, method="fixed", position=at // 60, start=at,
                             end=at + len(part), text=part, leaf=True))  # fmt: skip
        for n, url in enumerate(("https://x.example/robots", "https://x.example/lost")):
            db.add(
                Page(
                    page_id=f"left{n}",
                    document_id="",
                    source="sample",
                    url=url,
                    identity=url,
                    state="excluded",
                    reason="robots",
                )
            )
        _question(db, "aa11", MADE[0].cas, ("zh",))
        _question(db, "aa22", MADE[0].cas, ("zh", "en"))
        db.add(
            LedgerRow(
                step="questions.generate",
                item_id="questions",
                fingerprint="x",
                state="kept",
                run_id="r2",
                updated_at=now(),
            )
        )
    yield made
    made.close()


def _question(db: Any, key: str, cas: str, languages: tuple[str, ...]) -> None:
    """A question about the flash point, with a fact of each language's sheet as its evidence."""
    references, triples = [], []
    for language in languages:
        row = (
            db.query(Assertion)
            .filter_by(subject_key=cas, relation="HAS_MEASUREMENT", language=language)
            .order_by(Assertion.start)
            .first()
        )
        references.append({"document_id": row.document_id, "version_id": row.version_id, "start": row.start, "end": row.end,
                           "quote": row.quote, "url": ""})  # fmt: skip
        triples.append([row.subject_key, row.relation, row.object_key])
    db.add(Question(question_id=key, kind="single_hop", language=languages[-1], question="闪点是多少？", answer="−20 ℃",
                    references=references, triples=triples, split="eval", state="kept", wording="template"))  # fmt: skip


class Links(HTMLParser):
    """Anchors, local addresses and tags of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.anchors.add(given.get("id") or "")
        if tag == "a":
            self.links.append(given.get("href") or "")


def _pages(folder: Path) -> dict[str, Links]:
    return {path.name: Links(path) for path in sorted(folder.glob("*.html"))}


def _write(catalogue: Catalogue, tmp_path: Path) -> Path:
    return write_trails(catalogue, tmp_path / "report.html", tmp_path).folder


def _document_of(catalogue: Catalogue, cas: str, language: str) -> str:
    with catalogue.reading() as db:
        return str(
            db.query(Document.document_id).filter(Document.identity.contains(f"{language}/{cas}")).scalar()
        )


def test_every_link_between_the_pages_leads_somewhere(catalogue: Catalogue, tmp_path: Path) -> None:
    pages = _pages(_write(catalogue, tmp_path))
    assert len([name for name in pages if name.startswith("d-")]) == 5
    followed = 0
    for name, page in pages.items():
        for link in page.links:
            if link.startswith(("../", "https://")):
                continue
            file, _, place = link.partition("#")
            target = pages[unquote(file) or name]
            assert not place or place in target.anchors, (name, link)
            followed += 1
    assert followed > 200


def test_a_fact_its_questions_and_its_chunks_are_linked_both_ways(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    folder = _write(catalogue, tmp_path)
    zh, en = (_document_of(catalogue, MADE[0].cas, language) for language in ("zh", "en"))
    html = (folder / document_page(zh)).read_text(encoding="utf-8")
    with catalogue.reading() as db:
        question = db.get_one(Question, "aa11")
        reference = question.references[0]
        fact = (
            db.query(Assertion)
            .filter_by(document_id=zh, start=reference["start"], object_key=question.triples[0][2])
            .one()
        )
        chunk = (
            db.query(Chunk)
            .filter(Chunk.document_id == zh, Chunk.start <= fact.start, Chunk.end > fact.start)
            .one()
        )
    rows = dict(re.findall(r'<tr id="([^"]+)">(.*?)</tr>', html, re.DOTALL))
    assert 'href="#q-aa11"' in rows[f"f-{fact.assertion_id}"]
    assert f'href="#c-{chunk.chunk_id}"' in rows[f"f-{fact.assertion_id}"]
    assert fact.quote in rows[f"f-{fact.assertion_id}"].replace("&lt;", "<").replace("&gt;", ">")
    assert f'href="#f-{fact.assertion_id}"' in rows["q-aa11"]
    assert f'href="#f-{fact.assertion_id}"' in rows[f"c-{chunk.chunk_id}"]
    assert 'href="#q-aa11"' in rows[f"c-{chunk.chunk_id}"]
    # a question over two documents leads from each to the other; a fact to its substance's page
    assert f'href="{document_page(en)}#q-aa22"' in rows["q-aa22"]
    assert f"../report-substances/{MADE[0].cas}.html#a-{fact.assertion_id}" in rows[f"f-{fact.assertion_id}"]
    assert "0.9.1" in html
    assert "graph.extract" in html


def test_hostile_text_comes_out_as_text(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = _write(catalogue, tmp_path)
    for name, page in _pages(folder).items():
        assert "img" not in page.tags, name
        assert page.tags.count("script") == (2 if name == "index.html" else 0)
        assert not [link for link in page.links if link.startswith("javascript:")]
    whole = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.html"))
    assert "\u202e" not in whole
    index = (folder / "index.html").read_text(encoding="utf-8")
    items = json.loads(index.partition('id="items">')[2].partition("</script>")[0])
    assert any("<img src=x" in said for _, _, _, said in items["rows"])  # found by its words, as words


def test_what_is_not_shown_is_counted(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_PAGE_ROWS", 3), ("_MOST_FACTS", 4), ("_MOST_CHUNKS", 2), ("_MOST_SEARCHED", 30)):
        monkeypatch.setattr(trails, name, value)
    folder = _write(catalogue, tmp_path)
    pages = _pages(folder)
    assert {name for name in pages if name.startswith("s-")} == {source_page("sample", n) for n in (1, 2, 3)}
    listed = [
        a for name, page in pages.items() if name.startswith("s-") for a in page.anchors if a.startswith("p-")
    ]
    assert sorted(listed) == ["p-left0", "p-left1", *(f"p-page{n}" for n in range(5))]
    second = (folder / source_page("sample", 2)).read_text(encoding="utf-8")
    assert "rows 4–6 of 7" in second
    key = _document_of(catalogue, MADE[0].cas, "zh")
    with catalogue.reading() as db:
        facts = db.query(Assertion).filter_by(document_id=key, state="kept").count()
        chunks = db.query(Chunk).filter_by(document_id=key).count()
    html = (folder / document_page(key)).read_text(encoding="utf-8")
    assert f"{facts - 4} more are not shown" in html
    assert f"{chunks - 2} more are not shown" in html
    index = (folder / "index.html").read_text(encoding="utf-8")
    items = json.loads(index.partition('id="items">')[2].partition("</script>")[0])
    left = re.search(r"(\d+) more are not in the search", index)
    assert len(items["rows"]) == 30
    assert left is not None
    assert int(left[1]) > 0


def test_a_folder_that_would_be_the_same_is_left_alone(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = _write(catalogue, tmp_path)
    before = (folder / "index.html").stat().st_mtime_ns
    assert (_write(catalogue, tmp_path) / "index.html").stat().st_mtime_ns == before
    with catalogue.writing() as db:
        db.query(Question).filter_by(question_id="aa11").one().answer = "−19 ℃"
    assert (_write(catalogue, tmp_path) / "index.html").stat().st_mtime_ns != before


@pytest.mark.browser
def test_the_search_finds_by_name_number_and_id_in_both_languages(
    catalogue: Catalogue, tmp_path: Path, chromium: str
) -> None:
    from playwright.sync_api import sync_playwright

    from tests.flows.test_report import _FLAGS

    folder = _write(catalogue, tmp_path)
    complaints: list[str] = []
    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page()
        page.on("console", lambda m: complaints.append(m.text))
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("dialog", lambda d: complaints.append(d.message))
        page.on("request", lambda r: requests.append(r.url))
        page.goto((folder / "index.html").as_uri())
        found = page.locator("#found a")
        assert found.count() == 0
        for wanted in ("丙酮", "Acetone", "ＡＣＥＴＯＮＥ", MADE[0].cas, "aa11", "闪点 20", "<img src=x"):
            page.fill("#search", wanted)
            assert found.count() > 0, wanted
        page.fill("#search", "−20 ℃")
        page.select_option("#kind", "q")
        assert found.count() == 2
        page.fill("#search", "闪点 2")  # the number 2 is not in 20
        assert found.count() == 0
        page.fill("#search", "aa11")
        found.first.click()
        page.wait_for_load_state("load")
        assert page.url.endswith("#q-aa11")
        assert page.locator("#q-aa11").is_visible()
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("file:")] == []


# --- the command ------------------------------------------------------------------


def _trace(*arguments: str) -> Any:
    result = CliRunner().invoke(build(["trace"]), ["trace", *arguments, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_a_question_is_traced_to_runs_versions_entities_and_figures(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    folder = versions.folder_of(tmp_path)
    first, _ = versions.take(catalogue, folder, run_id="r1", tag="eins")
    with catalogue.writing() as db:
        document = db.get_one(Document, db.get_one(Question, "aa11").references[0]["document_id"])
        old = document.version_id
        document.version_id = "v-new"
        question = db.get_one(Question, "aa11")
        question.references = [{**question.references[0], "version_id": "v-new"}]
        for fact in db.query(Assertion).filter_by(document_id=document.document_id):
            fact.version_id = "v-new"
        for row in ("main", "kinds", "chunks"):
            setting = {"kind": "boolean"} if row == "kinds" else {}
            db.add(
                Evaluation(
                    evaluation_id=row,
                    table=row,
                    method="qchunker",
                    metric="evidence_recall",
                    value=0.5,
                    n=1,
                    setting=setting,
                )
            )
        db.add(
            LedgerRow(
                step="evaluate.score",
                item_id="all",
                fingerprint="x",
                state="kept",
                run_id="r2",
                updated_at=now(),
            )
        )
    second, new = versions.take(catalogue, folder, run_id="r2")
    assert new
    (found,) = _trace("aa11")
    assert [held["version"] for held in found["data sets"]] == [first.id, second.id]
    assert found["superseded"] == [old]
    assert found["version"] == "v-new"
    assert found["evaluation"]["asked"] is True
    assert [figure["table"] for figure in found["evaluation"]["figures"]] == ["main"]
    assert [(run["step"], run["run"], run["code"]) for run in found["runs"]] == [
        ("questions.generate", "r2", "0.9.1")
    ]
    assert found["wording"] == "template"
    assert MADE[0].cas in {node["key"] for node in found["entities"]}
    # the lineage page tells the text that was superseded
    html = (_write(catalogue, tmp_path) / document_page(found["document"])).read_text(encoding="utf-8")
    assert old in html
    assert first.id in html
    # what only an old version holds is said to be there
    with catalogue.writing() as db:
        db.query(Question).filter_by(question_id="aa11").delete()
    error = CliRunner().invoke(build(["trace"]), ["trace", "aa11"]).exception
    assert isinstance(error, SettingsError)
    assert first.id in str(error)


def test_figures_older_than_the_questions_name_none(catalogue: Catalogue) -> None:
    (found,) = _trace("aa11")
    assert found["evaluation"] == {"asked": False, "why": "no evaluation yet", "figures": []}
    with catalogue.writing() as db:
        made = db.get_one(LedgerRow, ("questions.generate", "questions")).updated_at
        db.add(LedgerRow(step="evaluate.score", item_id="all", fingerprint="x", state="kept", run_id="r1",
                         updated_at=made.replace(year=made.year - 1)))  # fmt: skip
    (found,) = _trace("aa11")
    assert found["evaluation"]["asked"] is None


def test_a_fact_names_its_model_and_a_substance_its_relationships(catalogue: Catalogue) -> None:
    with catalogue.writing() as db:
        fact = (
            db.query(Assertion)
            .filter_by(subject_key=MADE[0].cas)
            .order_by(Assertion.assertion_id)
            .limit(1)
            .one()
        )
        fact.extractor = "model-x"
        key = fact.assertion_id
        db.add(
            ModelCall(
                key="k", skill="extract_assertions", skill_version="7", model="model-x", raw="", run_id="r1"
            )
        )
        kept = db.query(Assertion).filter_by(subject_key=MADE[0].cas, state="kept", relation="HAS_H").count()
    (found,) = _trace(key)
    assert found["extractor"] == "model-x"
    assert found["skills"] == [{"skill": "extract_assertions", "version": "7", "model": "model-x"}]
    assert {run["run"] for run in found["runs"]} == {"r1"}
    (node,) = _trace(MADE[0].cas)
    assert node["names"] == [MADE[0].zh, MADE[0].en]
    (stated,) = [
        row for row in node["relationships"] if (row["relation"], row["direction"]) == ("HAS_H", "out")
    ]
    assert (stated["facts"], stated["documents"]) == (kept, 2)


def test_open_leads_to_the_item_on_its_page(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    app = build(["trace"])
    error = CliRunner().invoke(app, ["trace", "aa11", "--open"]).exception
    assert isinstance(error, SettingsError)
    assert "hchem report" in str(error)
    write_trails(catalogue, tmp_path / "reports" / "report.html", tmp_path)
    assert CliRunner().invoke(app, ["trace", "aa11", "--open"]).exit_code == 0
    (address,) = opened
    file, _, place = address.removeprefix("file://").partition("#")
    assert Path(file).parent == lineage_folder(tmp_path / "reports" / "report.html")
    assert place in Links(Path(file)).anchors


# --- the report in two languages ----------------------------------------------------


def test_the_report_speaks_each_language_alone(catalogue: Catalogue, tmp_path: Path) -> None:
    stages = {
        "curate": {"seconds": 3.0, "models": {}, "steps": {"curate.score": {
            "states": {"kept": 4, "rejected": 2, "failed": 1}, "reasons": {"rejected: low_score": 2, "failed: timeout": 1},
            "counts": {"scored": 6}, "pending": 7, "wall_seconds": 2.0, "seconds": 2.0}}},
    }  # fmt: skip
    with catalogue.writing() as db:
        first, second = db.get_one(Run, "r1"), db.get_one(Run, "r2")
        first.stages = {"curate": {**stages["curate"], "seconds": 9.0}}
        second.started_at = now()
        second.stages = stages
        db.add(
            Failure(
                failure_id="f",
                step="curate.score",
                item_id="d",
                kind="transient",
                reason="timeout",
                message="read timed out",
                run_id="r2",
            )
        )
        db.add(Check(check_id="c", run_id="r2", stage="curate", name="kept_share", severity="block", state="failed", value=0.5,
                     limit=0.8, message="too few kept", decision="continue"))  # fmt: skip
        db.add(Evaluation(evaluation_id="e", table="main", method="qchunker", metric="evidence_recall", value=0.5, low=0.4,
                          high=0.6, n=2, unit="share of evidence characters", setting={"language": "all"}))  # fmt: skip
        for n, why in enumerate(("low_score", "needs_browser", "search_page")):
            db.add(Document(document_id=f"out{n}", page_id=f"pout{n}", source="sample", url=f"https://x/{n}", identity=f"x/{n}",
                            title="标题 title\u202e\u2066", state="rejected", reason=why, score=1.0))  # fmt: skip
    with open_runtime() as runtime:
        english = report.write(runtime, "r2", stages)
    chinese = english.with_name("report.zh.html")
    en, zh = english.read_text(encoding="utf-8"), chinese.read_text(encoding="utf-8")
    assert left_in_english(zh) == []
    assert left_in_chinese(en) == []
    assert 'href="report.zh.html"' in en
    assert 'href="report.html"' in zh
    assert not {"\u202e", "\u2066"} & {*zh, *en}
    assert "‹U+202E›" in zh
    assert "质量分过低" in zh
    assert "low score" in en
    # the same figures in both, and the comparison with the run before
    for html in (en, zh):
        assert re.search(r"<code>r1</code>", html)
        assert "−6" in html
    assert "kept_share" in zh
    assert "阻断" in zh
    for lineage_link in (f"report-lineage/{document_page('out0')}", "report-lineage/index.html"):
        assert lineage_link in en
        assert (english.parent / lineage_link).is_file()


def test_codes_of_the_schema_are_named_in_both_languages() -> None:
    codes = [*DropReason, *NodeLabel, *(r for r in Relation if r.value not in _INNER)]
    unnamed = [code.value for code in codes if not WORDS["zh"].known(code.value)]
    assert unnamed == []
    assert WORDS["zh"].term("rejected: low_score") == "拒绝：质量分过低"
    assert WORDS["en"].term("rejected: low_score") == "rejected: low score"
    assert WORDS["zh"].term("never_heard_of") == "never_heard_of"


_INNER = frozenset({"SUBJECT", "OBJECT", "STATED_IN", "LISTS"})  # between statements, never counted

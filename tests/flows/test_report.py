"""The report and the Prefect run page in a real browser, without any network."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flows.conftest import Command
from tests.flows.report_text import left_in_chinese, left_in_english

pytestmark = [pytest.mark.browser, pytest.mark.prefect, pytest.mark.slow, pytest.mark.timeout(2400)]

Whole = tuple[Command, "subprocess.CompletedProcess[str]"]
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


class Watched:
    """A page with everything it complained about and every address it asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda e: self.complaints.append(str(e)))
        page.on("request", lambda r: self.requests.append(r.url))


@pytest.fixture
def watched(chromium: str) -> Iterator[Watched]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield Watched(browser.new_page(viewport={"width": 1300, "height": 1000}))
        browser.close()


@pytest.fixture
def report(watched: Watched, whole: Whole) -> Watched:
    path = whole[0].data_dir / "reports" / "report.html"
    watched.page.goto(path.as_uri())
    return watched


def test_the_report_loads_without_network_or_complaints(report: Watched) -> None:
    assert report.complaints == []
    assert [url for url in report.requests if not url.startswith("file:")] == []
    assert report.page.title().startswith("HChemSafety report")


def test_the_report_is_whole_in_both_languages(report: Watched, whole: Whole) -> None:
    folder = whole[0].data_dir / "reports"
    assert left_in_english((folder / "report.zh.html").read_text(encoding="utf-8")) == []
    assert left_in_chinese((folder / "report.html").read_text(encoding="utf-8")) == []
    report.page.locator("#other").click()
    report.page.wait_for_url("**/report.zh.html")
    report.page.wait_for_load_state("load")
    assert report.page.locator("#funnel .unit").count() == 4
    widths = report.page.locator("#funnel .bar div").evaluate_all("xs => xs.map(x => x.clientWidth)")
    assert min(widths) >= 20  # each on the scale of its unit
    report.page.locator("#lineage").click()
    report.page.wait_for_load_state("load")
    report.page.fill("#search", "67-64-1 沸点")
    report.page.locator("#found a").first.click()
    report.page.wait_for_load_state("load")
    assert report.page.locator(":target").count() == 1
    assert report.complaints == []
    assert [url for url in report.requests if not url.startswith("file:")] == []


def test_figures_are_drawn(report: Watched) -> None:
    for selector in ("#documents figure svg", "#network svg", "#evaluation figure svg"):
        box = report.page.locator(selector).first.bounding_box()
        assert box is not None, selector
        assert box["width"] > 200, selector
        assert box["height"] > 80, selector
    assert report.page.locator("#network circle").count() >= 10
    assert report.page.locator("#documents figure svg path").count() > 10


def test_links_lead_to_their_sections(report: Watched) -> None:
    links = report.page.locator("nav a")
    assert links.count() >= 8
    for target in links.evaluate_all("xs => xs.map(x => x.getAttribute('href'))"):
        assert report.page.locator(target).count() == 1, target


def test_filters_narrow_the_questions(report: Watched) -> None:
    bar = report.page.locator('.filters[data-for="question-rows"]')
    rows = report.page.locator("#question-rows .question:visible")
    everything = rows.count()
    for kind in ("single_hop", "multi_hop", "aggregative", "boolean"):
        bar.locator('[data-key="kind"]').select_option(kind)
        shown = rows.evaluate_all("xs => xs.map(x => x.dataset.kind)")
        assert shown, kind
        assert set(shown) == {kind}
    bar.locator('[data-key="kind"]').select_option("")
    bar.locator('[data-key="language"]').select_option("zh")
    assert 0 < rows.count() < everything
    bar.locator('[data-key="text"]').fill("no such text anywhere")
    assert rows.count() == 0
    assert "0 of" in bar.inner_text()


def test_evidence_is_marked_in_both_languages(report: Watched) -> None:
    for language in ("zh", "en"):
        question = report.page.locator(f'.question[data-language="{language}"]').first
        question.locator("summary").first.click()
        mark = question.locator("mark").first
        assert mark.is_visible()
        assert mark.inner_text().strip()


def test_chunk_tabs_show_each_method_and_hierarchy(report: Watched) -> None:
    views = report.page.locator("#chunks .view")
    assert views.count() == 2
    for i in range(views.count()):
        tabs = views.nth(i).locator(".tabs button")
        names = tabs.evaluate_all("xs => xs.map(x => x.firstChild.textContent.trim())")
        assert {"fixed", "sentence", "semantic", "qchunker", "hichunk"} <= set(names)
        for k in range(tabs.count()):
            tabs.nth(k).click()
            assert views.nth(i).locator(".piece:visible").count() >= 2, names[k]
    levels = report.page.locator("#chunks .level").evaluate_all("xs => xs.map(x => x.textContent)")
    assert len(set(levels)) >= 2


def test_chinese_text_is_drawn_with_glyphs(report: Watched) -> None:
    """Two different characters without glyphs would both be drawn as the same box."""
    widths = report.page.evaluate(
        """() => ["苯", "酚"].map(c => {
            const canvas = document.createElement("canvas"); canvas.width = canvas.height = 40;
            const pen = canvas.getContext("2d"); pen.font = "30px " + getComputedStyle(document.body).fontFamily;
            pen.fillText(c, 2, 32); return Array.from(pen.getImageData(0, 0, 40, 40).data).join();
        })"""
    )
    assert widths[0] != widths[1]


def test_the_explorer_of_the_run(report: Watched) -> None:
    report.page.locator("#explorer").click()
    rows = report.page.locator("#substances tbody tr:visible")
    assert rows.count() >= 40
    report.page.fill("#search", "丙酮")
    assert rows.count() >= 1
    report.page.fill("#search", "67-64-1")
    rows.first.locator("a").click()
    report.page.wait_for_url("**/67-64-1.html")
    report.page.wait_for_load_state("load")  # counting does not wait for the end of the page
    assert report.page.locator("h1").inner_text().startswith("丙酮")
    assert report.page.locator("#neighbours circle").count() >= 10
    assert report.page.locator(".stated mark").count() >= 50
    assert report.page.locator("#questions details").count() >= 10
    # several sources say the same thing side by side
    beside = report.page.locator(".matter").evaluate_all(
        "xs => xs.map(x => x.querySelectorAll('.stated').length)"
    )
    assert max(beside) >= 3
    assert report.complaints == []
    assert [url for url in report.requests if not url.startswith("file:")] == []


def test_the_questions_of_the_run_hold_and_are_balanced(whole: Whole) -> None:
    command = whole[0]
    found = json.loads(command.run("questions", "verify", "--json").stdout)
    assert found["failed"] == 0
    assert found["checked"] > 1000
    answers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    listed = command.run("questions", "list", "--kind", "boolean", "--limit", "1000000", "--json").stdout
    for line in listed.splitlines():
        row = json.loads(line)
        relation = re.findall(r"-([A-Z_]+)-", row["metapath"])[-1]
        for language in (row["language"], "both"):
            answers[relation, language][row["answer_set"][0]["key"]] += 1
    judged = {matter: counts for matter, counts in answers.items() if counts.total() >= 10}
    assert judged
    for matter, counts in judged.items():
        assert 0.4 <= counts["yes"] / counts.total() <= 0.6, matter
        assert set(counts) == {"yes", "no"}


def test_the_prefect_page_shows_the_run(watched: Watched, whole: Whole) -> None:
    base = whole[0].status()["prefect"]
    watched.page.goto(f"{base}/runs", wait_until="load")
    watched.page.get_by_text("refresh").first.wait_for(timeout=60_000)
    watched.page.get_by_text("Completed").first.wait_for(timeout=60_000)
    outside = [u for u in watched.requests if not u.startswith(("http://127.0.0.1", "data:", "blob:"))]
    assert outside == []

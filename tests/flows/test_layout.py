"""How pages are laid out: figures use the column, kinds have colours of their own, nothing covers anything. Made-up data."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from chunking.evaluation.published.comparison import Comparison
from chunking.evaluation.rows import figure_row
from chunking.evaluation.statistics import Estimate
from flows.benchmarks import tables_of, write_page
from flows.commands import pages
from flows.report.figures import LABEL_COLOURS, budget_curve, completion_bars, lambda_curve, level_curve
from kg.schema import NodeLabel
from tests.conftest import SAMPLES

_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
_COLUMN = 800  # points: 1,066 px of a column of 1,180


def _figure(value: float) -> dict[str, Any]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 12}


def _comparison() -> Comparison:
    rows = [
        {
            "method": method, "chunks": 7, "rouge_l": _figure(at), "bleu_4": _figure(at), "answered": _figure(at),
            "evidence_recall@356": _figure(at), "evidence_recall@712": _figure(at + 0.2),
            "levels": {"1": _figure(at), "all": _figure(at)}, "subsets": {"第一类 <b>": {"rouge_l": _figure(at)}},
        }
        for method, at in (("sentence", 0.3), ("hichunk+am", 0.5))
    ]  # fmt: skip
    estimate = Estimate(0.5, 0.3, 0.7, 5)
    studies = [
        figure_row("lambda", "all methods", "pearson_r", estimate, "r", {"lambda": lam / 10})
        for lam in range(11)
    ]
    for language in ("zh", "en"):
        for metric in ("loss_before", "loss_after"):
            setting = {"language": language}
            studies.append(figure_row("completion", "qchunker", metric, estimate, "nats per token", setting))
    return Comparison(rows, studies)


HEAD = {
    "benchmark": "sections", "documents": 2, "questions": 12, "size": 200, "tokens": "words", "retrieval": "hybrid",
    "answers_by": "offline/4", "questions_by": "offline/2", "confidence": 0.95, "left_out": {"empty texts": 1},
    "headings": "hidden",
}  # fmt: skip


def test_every_kind_that_is_pictured_has_a_colour_of_its_own() -> None:
    pictured = set(NodeLabel) - {"Assertion", "Listing", "Document", "Section"}
    assert pictured <= set(LABEL_COLOURS)
    for one, other in combinations(LABEL_COLOURS.values(), 2):
        parts = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (one, other)]
        assert sum(abs(a - b) for a, b in zip(*parts, strict=True)) > 30, (one, other)


def test_figures_are_as_wide_as_the_column() -> None:
    found = _comparison()
    by_table = {
        name: [row for row in found.studies if row.table == name] for name in ("lambda", "completion")
    }
    budget = [
        figure_row("budget", "a", "evidence_recall", Estimate(0.5, 0.4, 0.6, 3), "", {"budget": b})
        for b in (1, 2)
    ]
    levels = [
        figure_row("levels", "a", "evidence_recall", Estimate(0.5, 0.4, 0.6, 3), "", {"max_level": "1"})
    ]
    for svg in (
        budget_curve(budget, "evidence_recall"),
        level_curve(levels),
        lambda_curve(by_table["lambda"]),
        completion_bars(by_table["completion"]),
    ):
        width = re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)
        assert width is not None
        assert float(width[1]) > _COLUMN


def test_the_page_of_a_benchmark_in_a_browser(chromium: str, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    found = _comparison()
    tables = tables_of(HEAD, found, 712)
    write_page(tmp_path / "zh 页.html", HEAD, found, tables)
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport={"width": 1250, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.goto((tmp_path / "zh 页.html").as_uri())
        sizes = page.evaluate(
            "[...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width])"
        )
        assert len(sizes) == 4  # recall by budget, by level, λ, completion
        assert all(natural > 1000 and width > 1000 for natural, width in sizes)
        text = page.locator("main").inner_text()
        browser.close()
    assert complaints == []
    for words in (
        "第一类 <b>",
        "Answers from a context of at most 712 tokens, by offline/4",
        "0.500 [0.400, 0.600] n=12",
    ):
        assert words in text


@pytest.mark.parametrize("width", [900, 1250, 1500, 1900])
def test_panes_of_an_inspection_cover_nothing(
    width: int, chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import sync_playwright
    from typer.testing import CliRunner

    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "none"))
    sample = sorted((SAMPLES / "pages" / "msdsku.example").rglob("*.html"))[0]
    done = CliRunner().invoke(pages.app, ["inspect", str(sample), "--out", str(tmp_path / "i.html")])
    assert done.exit_code == 0, done.output
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "i.html").as_uri())
        boxes = page.evaluate(
            "[...document.querySelectorAll('.pane')].map(e => {const b = e.getBoundingClientRect();"
            " return [b.left, b.top, b.right, b.bottom]})"
        )
        browser.close()
    assert len(boxes) == 5
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)

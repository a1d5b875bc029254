"""The pages of ``samples/`` end above or below the threshold as its manifest expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.cleaning import clean_page
from corpus.quality import formula, measure
from corpus.refinement import refine_document
from models import Models
from models.tokens import count_words

SAMPLES = Path(__file__).parents[2] / "samples"
PAGES: list[dict[str, Any]] = [
    json.loads(line) for line in (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p["expected"] in ("kept", "not-kept")], ids=lambda page: page["file"]
)
def test_expected(page: dict[str, Any]) -> None:
    content_type = page["content_type"]
    cleaned = clean_page(
        (SAMPLES / "pages" / page["file"]).read_bytes(),
        url=f"https://samples.example{page['url_path']}",
        content_type=content_type,
        header_charset=content_type.partition("charset=")[2],
    )
    if cleaned.verdict != "ok":
        assert page["expected"] == "not-kept", cleaned.reasons
        return
    share = cleaned.features.kept_link_density
    features = measure(cleaned.text, title=cleaned.title, count=count_words, link_share=share)
    score = formula(features, cleaned.language)
    assert (score.score > 3) is (page["expected"] == "kept"), score


@pytest.mark.parametrize(
    "name",
    ["hxpaq.example/msds/67-56-1.html", "ghs-info.example/sds/sds_1001.htm", "twsds.example/sheet/7647-01-0.html", "chemsheets.example/datasheets/acetone-67-64-1.html"],
)  # fmt: skip
def test_refined_sheets_have_their_sections(name: str) -> None:
    page = next(p for p in PAGES if p["file"] == name)
    cleaned = clean_page((SAMPLES / "pages" / name).read_bytes(), url=f"https://s.example{page['url_path']}")
    refined = refine_document(
        cleaned.text, cleaned.blocks, language=cleaned.language, title=cleaned.title, models=Models.offline()
    )
    assert not refined.unrefined
    assert refined.record["fidelity"] == 1.0
    assert {s["sds"] for s in refined.sections} - {None} == set(range(1, 17))

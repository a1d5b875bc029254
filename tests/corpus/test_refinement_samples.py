"""Refinement of every sample document, counted by other means than refinement's own; fusion of random windows."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.cleaning import CleanedPage, clean_page
from corpus.fidelity import differences
from corpus.headings import level_of
from corpus.refinement import DROP_REASONS, Piece, Refined, fuse, refine_document
from corpus.settings import RefinementSettings
from corpus.windows import Unit, split_units, windows
from models import Models
from models.tokens import count_words
from tests.conftest import SAMPLES

PAGES: list[dict[str, Any]] = [
    page
    for page in map(json.loads, (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines())
    if page["expected"] != "not-kept"
]


@cache
def cleaned(name: str) -> CleanedPage:
    page = next(page for page in PAGES if page["file"] == name)
    kind = page["content_type"]
    data = (SAMPLES / "pages" / name).read_bytes()
    url = f"https://samples.example{page['url_path']}"
    return clean_page(data, url=url, content_type=kind, header_charset=kind.partition("charset=")[2])


def refined(page: CleanedPage, window: RefinementSettings | None = None) -> Refined:
    return refine_document(
        page.text,
        page.blocks,
        language=page.language,
        title=page.title,
        models=Models.offline(),
        settings=window or RefinementSettings(),
    )


COUNTED = {
    "number": r"\d+(?:[.,]\d+)*",
    "number with unit": r"\d ?(?:°C|°F|℃|%|‰|mg|kg|g/|mL|ppm|kPa|MPa|mol|毫克|千克|吨|克|米|摄氏度|分钟|小时|日|年|条)",
    "sign before a number": r"[-−<>≤≥±~]\s?\d",
    "CAS": r"(?<!\d)[1-9]\d{1,6}-\d\d-\d(?!\d)",
    "UN": r"UN ?\d{4}",
    "H or P statement": r"\b(?:EUH|H|P)\d{3}",
    "negation": r"[不无非禁勿否未没莫]|\b(?:no|not|non|none|never|nor|without|cannot|avoid|except|unless|prohibited|forbidden)\b",
    "modal": r"应当|必须|可以|不得|\b(?:must|shall|should|may)\b",
}  # fmt: skip


def counts(text: str) -> dict[str, Counter[str]]:
    """Occurrences by kind in NFKC, blanks as one."""
    plain = " ".join(unicodedata.normalize("NFKC", re.sub(r"[\u200b-\u200f\u00ad\ufeff]", "", text)).split())
    return {
        kind: Counter(re.sub(r"\s", "", found.lower()) for found in re.findall(pattern, plain, re.IGNORECASE))
        for kind, pattern in COUNTED.items()
    }


def letters(text: str) -> Counter[str]:
    return Counter(char for char in unicodedata.normalize("NFKC", text).lower() if char.isalnum())


@pytest.mark.parametrize("name", [page["file"] for page in PAGES])
def test_a_sample_document_keeps_what_it_says(name: str) -> None:
    page = cleaned(name)
    found = refined(page)
    assert not found.unrefined
    assert found.record["fidelity"] == 1.0
    kept = page.text
    for drop in reversed(found.record["dropped"]):
        assert drop["reason"] in DROP_REASONS
        assert page.text[drop["start"] : drop["end"]].startswith(drop["text"][:40])
        kept = kept[: drop["start"]] + kept[drop["end"] :]
    assert counts(kept) == counts(found.text)
    before, after = letters(kept), letters(found.text)
    assert (before & after).total() >= 0.99 * before.total()
    assert after.total() <= 1.001 * before.total()
    assert before.total() >= 0.95 * letters(page.text).total()  # boilerplate that cleaning left is little
    places = [(b["cleaned_start"], b["cleaned_end"]) for b in found.blocks]
    places += [(drop["start"], drop["end"]) for drop in found.record["dropped"]]
    position = 0
    for start, end in [*sorted(places), (len(page.text), len(page.text))]:
        assert not page.text[position:start].strip()
        position = max(position, end)
    for block in found.blocks:
        source = page.text[block["cleaned_start"] : block["cleaned_end"]]
        assert differences(source, found.text[block["start"] : block["end"]]) == []


@pytest.mark.parametrize(
    "name",
    ["hxpaq.example/msds/67-56-1.html", "en.wikipedia.org-2019/pyridine.html", "prc-law/nongyao_2022.md", "us-code/42usc7412r.md", "weihua.example/chem/lv-2063.html"],
)  # fmt: skip
@pytest.mark.parametrize(("window", "overlap"), [(60, 30), (333, 77)])
def test_small_windows_fuse_to_the_same_document(name: str, window: int, overlap: int) -> None:
    page = cleaned(name)
    small = refined(page, RefinementSettings(window=window, overlap=overlap))
    assert small.record["windows"] > 3
    # a paragraph that is cut into sentences keeps its line ends; nothing else differs
    assert small.text.split() == refined(page).text.split()


def test_headings_keep_their_order() -> None:
    for name in ("en.wikipedia.org-2019/toxicity.html", "chemsheets.example/datasheets/phenol-108-95-2.html"):
        page = cleaned(name)
        before = [line.strip("# ").strip() for line in page.text.split("\n") if level_of(line)]
        after = [line.strip("# ").strip() for line in refined(page).text.split("\n") if level_of(line)]
        assert [heading for heading in after if heading in before] == [h for h in before if h in after]
        assert set(before) <= set(after)


# --- fusion ------------------------------------------------------------------------

SENTENCES = {
    "zh": "第{}句：闪点不得低于 {}.5 ℃，CAS 67-56-1。",
    "en": "Sentence {}: do not heat above {}.5 °C, CAS 67-56-1.",
}


def some_units(count: int, language: str) -> list[Unit]:
    texts = [SENTENCES[language].format(i, i) for i in range(count)]
    joined = "\n\n".join(texts)
    blocks, position = [], 0
    for text in texts:
        blocks.append({"start": position, "end": position + len(text), "path": "/p", "kind": "paragraph"})
        position += len(text) + 2
    return split_units(joined, blocks, 10_000, count_words)


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[Unit], list[list[Piece]]]:
    """Random windows over random units; each window joins its units to pieces in its own way, or drops some."""
    language = draw(st.sampled_from(("zh", "en")))
    found = some_units(draw(st.integers(1, 40)), language)
    size = draw(st.integers(20, 200))
    ranges = windows(found, size, draw(st.integers(0, size // 2)))
    parts = []
    for number, (start, end) in enumerate(ranges):
        part, first = [], start
        while first < end:
            last = min(end - 1, first + draw(st.integers(0, 3)))
            dropped = draw(st.integers(0, 9)) == 0
            text = "" if dropped else " ".join(f"⟨{i}⟩{found[i].text}" for i in range(first, last + 1)) + f" /{number}"  # fmt: skip
            part.append(Piece(first, last, text, "navigation" if dropped else ""))
            first = last + 1
        parts.append(part)
    return found, parts


@given(answers())
@settings(max_examples=150, deadline=None)
def test_fusion_keeps_one_copy_of_each_unit_in_order(case: tuple[list[Unit], list[list[Piece]]]) -> None:
    found, parts = case
    fused = fuse(parts, found)
    assert [i for piece in fused for i in range(piece.first, piece.last + 1)] == list(range(len(found)))
    assert all(a.last + 1 == b.first for a, b in pairwise(fused))
    given_pieces = {(p.first, p.last, p.text, p.reason) for part in parts for p in part}
    for piece in fused:
        own = (piece.first, piece.last, piece.text, piece.reason)
        assert own in given_pieces or piece.text == found[piece.first].text  # an answer's, or the source
    joined = "\n".join(piece.text for piece in fused)
    kept = [i for piece in fused if not piece.reason for i in range(piece.first, piece.last + 1)]
    for i in kept:
        assert joined.count(found[i].text) == 1

"""The quality score tells documents from junk: search results, shells, price lists, adverts, empty templates …"""

from __future__ import annotations

import pytest

from tests.corpus.junk import JUNK, held_out, more
from tests.corpus.junk.parts import SUBSTANCES
from tests.corpus.junk.scoring import Scored, area_under_curve, made_up, samples

THRESHOLD = 3.0


@pytest.fixture(scope="module")
def sample_pages() -> list[tuple[Scored, bool]]:
    return list(samples())


@pytest.fixture(scope="module")
def junk(sample_pages: list[tuple[Scored, bool]]) -> list[Scored]:
    excluded = [page for page, document in sample_pages if not document]
    return [*made_up(JUNK), *made_up(more.JUNK), *excluded]


def test_the_threshold_rejects_all_junk(junk: list[Scored]) -> None:
    assert [page for page in junk if page.score > THRESHOLD] == []
    assert min(sum(page.language == language for page in junk) for language in ("en", "zh")) >= 30


def test_documents_score_above_junk(junk: list[Scored], sample_pages: list[tuple[Scored, bool]]) -> None:
    documents = [page for page, document in sample_pages if document]
    for language in ("en", "zh"):
        bad = [page.score for page in junk if page.language == language]
        good = [page.score for page in documents if page.language == language]
        assert area_under_curve(bad, good) >= 0.97
    rejected = [page for page in documents if page.score <= THRESHOLD]
    assert len(rejected) <= 10, rejected  # each is judged in benchmarks/quality.py


def test_short_documents_are_not_taken_for_junk() -> None:
    documents = [*made_up(more.DOCUMENTS), *made_up(held_out.DOCUMENTS)]
    assert [page for page in documents if not page.why.startswith("document")] == []
    assert sum(page.score > THRESHOLD for page in documents) >= 0.8 * len(documents)


def test_held_out_junk() -> None:
    """One staff page full of the field's words passes; it stays as it is, since the set is held out."""
    passed = [page.name for page in made_up(held_out.JUNK) if page.score > THRESHOLD]
    assert passed in ([], ["team"])


def test_the_area_under_the_curve() -> None:
    assert area_under_curve([1, 2], [3, 4]) == 1.0
    assert area_under_curve([3, 4], [1, 2]) == 0.0
    assert area_under_curve([1, 3], [2, 3]) == 0.625


def test_the_made_up_cas_numbers_are_right() -> None:
    for substance in SUBSTANCES:
        digits = substance.cas.replace("-", "")
        weighted = sum(place * int(digit) for place, digit in enumerate(reversed(digits[:-1]), 1))
        assert weighted % 10 == int(digits[-1]), substance

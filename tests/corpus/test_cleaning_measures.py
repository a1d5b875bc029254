"""Measures stay what a fresh measurement says; the short ways of asking say what the long ones do."""

from __future__ import annotations

import random
import re
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.cleaning import clean_page, decode
from corpus.cleaning import vocabulary as words
from corpus.cleaning.measure import Measures, Outline, characters, size, visible_text
from corpus.cleaning.parsing import LIMITS, drop, parse_html, reread
from corpus.cleaning.tags import Element, squashed
from corpus.cleaning.webpage import _reads_back, _settled, _written
from corpus.errors import TerminalError
from tests.corpus.hostile import markup, mutated

SAMPLES = Path(__file__).parents[2] / "samples"
PAGES = sorted(chain(*(SAMPLES.joinpath(part).rglob("*.htm*") for part in ("pages", "general"))))


def _agree(kept: Measures, fresh: Measures, root: Element) -> None:
    for element in root.iter("*"):
        for name in ("text", "link", "links", "simple", "visible"):
            assert getattr(kept, name)(element) == getattr(fresh, name)(element), (name, element.tag)
        assert kept.visible(element) == visible_text(element)


@pytest.mark.parametrize("number", range(0, len(PAGES), 9))
def test_measures_stay_right_while_elements_are_removed(number: int) -> None:
    """Shared with the numbers, with texts remembered: after each few removals equal to a new measurement."""
    chance = random.Random(number)
    root, numbers = parse_html(decode(PAGES[number].read_bytes()).text[:30_000])
    measures = _settled(root, numbers)
    body = root.find("body")
    assert body is not None
    for _ in range(4):
        for element in chance.sample(list(body.iter("*")), k=min(6, len(list(body.iter("*"))))):
            if element is not body and body in element.iterancestors():
                measures.visible(body)
                measures.forget(element)
                drop(element)
        _agree(measures, Measures(root), root)


@given(markup())
@settings(max_examples=60, deadline=None, database=None)
def test_an_outline_says_what_measures_say(case: tuple[bytes, dict[str, str]]) -> None:
    """Sizes and links of a tree from its outline, made-up markup with hidden parts included."""
    try:
        root, _ = parse_html(decode(case[0]).text, LIMITS)
    except TerminalError:
        return
    body = root.find("body")
    assert body is not None
    measures, outline = Measures(body), Outline(body)
    assert outline.links() == (measures.links(body), measures.link(body))
    for element in body.iter("*"):
        assert outline.text(element) == measures.text(element)
        assert outline.visible(element) == visible_text(element)
        assert element is body or outline.simple(element) == measures.simple(element)


@pytest.mark.parametrize("number", range(0, 120, 3))
def test_what_surely_reads_back_does(number: int) -> None:
    """Where the parser is not asked whether it reads a tree as it was written, it would say yes."""
    root, numbers = parse_html(decode(mutated(number)[0]).text)
    body = root.find("body")
    assert body is not None
    for element in body:
        if element.tag in {"div", "main", "table", "article", "section"} and _reads_back(element, numbers):
            content = _written(element)
            inner = reread(content).find("body")
            assert inner is not None
            assert len(inner) == 1
            assert _written(inner[0]) == content


def test_torn_markup_is_read_again() -> None:
    """A paragraph around a table, a link in a link: the parser would read both in another way."""
    for torn in ("<main><p>x</p></main>", "<main><a>x</a></main>"):
        root, numbers = parse_html(f"<body>{torn}</body>")
        main = root.find("body/main")
        assert main is not None
        assert _reads_back(main, numbers)
        inner = "table" if main[0].tag == "p" else "a"
        main[0].append(reread(f"<{inner}></{inner}>").find("body")[0])  # type: ignore[index]
        assert not _reads_back(main, numbers)


@given(st.text(alphabet="0123456789-‑–a \n", max_size=40))
@settings(max_examples=300, deadline=None, database=None)
def test_cas_numbers_are_found_as_they_are_defined(text: str) -> None:
    """The search that starts with the digit finds what the definition that looks back first finds."""
    defined = re.compile(r"(?<![\d-])\d{2,7}[-‐‑–]\d{2}[-‐‑–]\d(?![\d-])")
    assert words.CAS.findall(text) == defined.findall(text)


def test_blocks_have_the_paths_of_the_raw_page() -> None:
    """Letting go of the raw tree before rendering leaves every block its path."""
    page = clean_page(
        "<body><main><p>苯的闪点为 -11 °C，易燃。</p><ul><li>CAS 71-43-2</li></ul></main></body>".encode()
    )
    assert [block["path"] for block in page.blocks] == [
        "/html/body/main[1]/p[1]",
        "/html/body/main[1]/ul[1]/li[1]",
    ]


@given(
    st.text(alphabet="ab苯 \n\u3000", max_size=9), st.integers(-4, 4), st.text(alphabet="a苯 \n", max_size=9)
)
@settings(max_examples=40, deadline=None, database=None)
def test_long_texts_are_squashed_and_counted_as_short_ones(start: str, by: int, end: str) -> None:
    """A long text is taken in stretches; words and blanks across their borders stay what they were."""
    text = start + "x" * (100_000 - len(start) + by) + end + " 苯" * 60_000
    assert squashed(text) == " ".join(text.split())
    assert size(text) == characters(text) + text.count("苯")

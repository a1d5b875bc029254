"""The sentence splitter on hand-made cases, on any text, and against its own slow form."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking.sentences import split_sentences

CASES = Path(__file__).parent / "sentence_cases"
_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\u2028": "\u2028"}


def cases(name: str) -> list[str]:
    """Lines of a file of cases: "¦" stands where a reader would cut, and nowhere else. All are made up."""
    lines = (CASES / f"{name}.txt").read_text(encoding="utf-8").split("\n")
    found = [line for line in lines if line and not line.startswith("== ")]
    for escape, char in _ESCAPES.items():
        found = [line.replace(escape, char) for line in found]
    return found


ZH, EN, MIXED = cases("zh"), cases("en"), cases("mixed")


def test_there_are_cases_enough() -> None:
    assert len(set(ZH + EN + MIXED)) >= 300
    assert min(len(ZH), len(EN)) >= 120


@pytest.mark.parametrize("case", ZH + EN + MIXED)
def test_cuts_where_a_reader_would(case: str) -> None:
    expected = [part for part in case.split("¦") if part]
    text = case.replace("¦", "")
    assert [text[start:end] for start, end in split_sentences(text)] == expected


@pytest.mark.parametrize("name", ["zh", "en", "mixed"])
def test_cases_that_follow_each_other_are_cut_alike(name: str) -> None:
    """A case keeps its cuts behind another text: what stands before a line decides nothing in it."""
    found = [case for case in cases(name) if not case[0].isspace()]
    for before, case in itertools.pairwise(found):
        lead = before.replace("¦", "").rstrip() + "\n\n"
        text = lead + case.replace("¦", "")
        wanted = [part for part in case.split("¦") if part]
        starts = [start for start, _ in split_sentences(text) if start >= len(lead)]
        assert [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)] == wanted, case


PIECES = st.sampled_from(
    [
        "。",
        ".",
        "! ",
        "？”",
        "\n",
        "\r\n",
        " ",
        "（",
        "）",
        '"',
        "甲醇",
        "toxic",
        "3.5",
        "e.g. ",
        "😀",
        "1. ",
        "…",
        "\u2028",
        "[1]",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("".join)))
def test_pieces_tile_any_text(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(text[start:end] for start, end in pieces) == text
    assert all(start < end for start, end in pieces)
    if text.strip():
        assert all(text[start:end].strip() for start, end in pieces)


@pytest.mark.parametrize(
    "text",
    [
        "（" * 20_000,
        "(" * 20_000 + ".",
        "." * 20_000,
        "。”" * 10_000,
        "a. " * 10_000,
        "[1" * 10_000,
        "\r" * 20_000,
    ],
)
def test_hostile_runs_take_no_square_of_time(text: str) -> None:
    began = time.process_time()
    pieces = split_sentences(text)
    assert "".join(text[start:end] for start, end in pieces) == text
    assert time.process_time() - began < 5  # some hundredths of a second; a square would be minutes


def test_no_stops_and_no_text() -> None:
    assert split_sentences("") == []
    assert split_sentences("字" * 5000) == [(0, 5000)]
    assert split_sentences(" \n \n") == [(0, 4)]

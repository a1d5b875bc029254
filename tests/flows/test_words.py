"""Counts with their noun, one record by the beginning of its id, text that steers no terminal."""

from __future__ import annotations

import pytest

from corpus.errors import SettingsError
from corpus.lookup import one_by_beginning
from flows.words import counted, visible


def test_counts_agree_with_their_noun() -> None:
    assert [counted(n, "conflict") for n in (0, 1, 2)] == ["0 conflicts", "1 conflict", "2 conflicts"]
    assert counted(2, "entry", "entries") == "2 entries"


def test_one_record_by_its_beginning() -> None:
    def find(given: str, ids: list[str]) -> str:
        fitting = [key for key in ids if key.startswith(given)]
        return one_by_beginning(fitting, given, lambda key: key, "thing", "hchem things list")

    assert find("ab", ["abc", "b"]) == "abc"
    assert find("ab", ["ab", "abc"]) == "ab"  # a whole id is no beginning of another
    for given, said in (
        ("", "give the id of a thing"),
        ("x", "no thing has an id that begins with 'x'; see: hchem things list"),
        ("a", r"more than one thing has an id that begins with 'a' \(abc, abd\); give more of the id"),
    ):
        with pytest.raises(SettingsError, match=said):
            find(given, ["abd", "abc"])


def test_text_of_pages_steers_no_terminal() -> None:
    assert visible("甲醇\x1b[2J\u202eabc\n") == "甲醇\\x1b[2J\\u202eabc\\n"
    assert visible("H₂O 4–5 ℃") == "H₂O 4–5 ℃"

"""Identifiers and fingerprints: stable, and different for different content."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from corpus.ids import canonical_json, digest, fingerprint, json_line, normalise_text, version_id

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=8,
)


@given(st.lists(st.text()), st.lists(st.text()))
def test_part_boundaries_matter(left: list[str], right: list[str]) -> None:
    assert (digest(*left) == digest(*right)) == (left == right)


@given(st.dictionaries(st.text(), json_values))
def test_key_order_does_not_matter(value: dict[str, object]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_text(text)
    assert normalise_text(once) == once
    assert "\r" not in once


def test_known_values_never_change() -> None:
    assert digest("document", "https://example.org/a") == "1f6131f029c3969a0048e62d90c6a4ee"
    assert version_id("d", "苯\n") == "c91c3675fabe36aa69374ff25576bd6f"
    assert fingerprint("s", "1", ["a"], {"k": 1}, "m") == "d5d340d7cf682fa04367fd8ae309f2dc"


@given(st.text())
def test_a_row_is_one_line_for_every_reader(text: str) -> None:
    line = json_line({"text": text})
    assert line.splitlines() == [line]
    assert json.loads(line) == {"text": text}

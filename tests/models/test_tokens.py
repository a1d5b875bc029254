from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ModelRefused
from models.tokens import count_words, token_counter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("苯", 1),
        ("苯的闪点", 4),
        ("𠀀𠮷", 2),
        ("benzene", 1),
        ("a" * 16, 1),
        ("a" * 17, 2),
        ("flash point", 2),
        ("苯benzene苯", 3),
        ("71-43-2", 3),
        ("。，！", 0),
        (" " * 15, 0),
        (" " * 16, 1),
        ("=" * 40, 2),
        ("あいう", 3),
        ("한국", 2),
        ("闪点：-11 ℃", 3),
        ("2,4-二氯苯酚", 6),
    ],
)
def test_words(text: str, expected: int) -> None:
    assert count_words(text) == expected


@given(st.text(max_size=200), st.text(max_size=200))
def test_bounds_and_near_additivity(left: str, right: str) -> None:
    joined = count_words(left + right)
    assert 0 <= joined <= len(left + right)
    assert abs(joined - count_words(left) - count_words(right)) <= 1


def test_counter_by_name() -> None:
    counter = token_counter("words")
    assert (counter.name, counter.count("苯 ring")) == ("words", 2)


def test_tokenizer_file_missing_or_unusable(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="does not exist"):
        token_counter(str(tmp_path / "none.json"))
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(ModelRefused, match=r"not installed|is not a tokenizer file"):
        token_counter(str(broken))


@given(
    st.lists(st.tuples(st.sampled_from("a中 .é_1、\n々\ud800\U00020000"), st.integers(1, 40)), max_size=60)
)
def test_long_texts_are_counted_run_by_run(runs: list[tuple[str, int]]) -> None:
    """The array form for long texts against the definition."""
    text = "".join(char * times for char, times in runs)
    kinds = {
        "中": "cjk",
        "々": "cjk",
        "\U00020000": "cjk",
        "a": "word",
        "é": "word",
        "1": "word",
        "_": "word",
    }
    expected = 0
    for kind, found in groupby(text, key=lambda char: kinds.get(char, "other")):
        length = len(list(found))
        expected += {"cjk": length, "word": -(-length // 16), "other": length // 16}[kind]
    assert count_words(text) == expected

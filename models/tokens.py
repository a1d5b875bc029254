"""Counting tokens: ``words`` by default, or a tokenizer file given by path.

Sizes, windows and budgets of the platform are in the counter in force; its name
stands beside every figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from models.errors import ModelRefused

# Han ideographs with their extensions and compatibility forms, kana, bopomofo, Hangul
# syllables, the ideographic iteration marks and zero: each character is one token.
_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9d\U00016fe3\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_RUNS = re.compile(rf"(?P<cjk>[{_CJK}]+)|(?P<word>[^\W{_CJK}]+)|(?P<other>(?:[^\w{_CJK}])+)")
_RUN = 16


def count_words(text: str) -> int:
    """Size of a text in ``words`` (architecture, "Tokens and sizes").

    One CJK character is 1; a run of other word characters is ⌈length/16⌉; a run
    of other characters (blanks, punctuation, signs) is ⌊length/16⌋.
    """
    total = 0
    for match in _RUNS.finditer(text):
        length = match.end() - match.start()
        if match.lastgroup == "cjk":
            total += length
        elif match.lastgroup == "word":
            total += -(-length // _RUN)
        else:
            total += length // _RUN
    return total


@dataclass(frozen=True)
class TokenCounter:
    """A way of counting and its name."""

    name: str
    count: Callable[[str], int]


def token_counter(setting: str = "words") -> TokenCounter:
    """The counter for a setting: ``words`` or the path of a ``tokenizer.json``.

    Raises ModelRefused (reason ``tokenizer``) where the file is missing or not a
    tokenizer, or the package ``tokenizers`` is not installed.
    """
    if setting == "words":
        return TokenCounter("words", count_words)
    path = Path(setting)
    if not path.is_file():
        raise ModelRefused(f"tokenizer file {setting!r} (models.tokens) does not exist", reason="tokenizer")
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelRefused(
            "models.tokens names a tokenizer file, but the package 'tokenizers' is not installed: "
            "pip install tokenizers",
            reason="tokenizer",
        ) from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exception for any malformed file
        raise ModelRefused(f"{setting!r} is not a tokenizer file: {error}", reason="tokenizer") from error
    return TokenCounter(path.stem, lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))

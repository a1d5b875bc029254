"""Counting tokens: ``words`` by default, or a tokenizer file given by path.

Sizes, windows and budgets of the platform are in the counter in force; its name
stands beside every figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.errors import ModelRefused

# Han ideographs with their extensions and compatibility forms, kana, bopomofo, Hangul
# syllables, the ideographic iteration marks and zero: each character is one token.
_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9d\U00016fe3\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_RUN = 16
_UNITS = re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{1,{_RUN}}}|[^\w{_CJK}]{{{_RUN}}}")
_KINDS = re.compile(rf"(?P<cjk>[{_CJK}]+)|(?P<word>[^\W{_CJK}]+)")
_LONG = 300  # characters from which arrays are faster than the expression


def count_words(text: str) -> int:
    """Size of a text in ``words`` (architecture, "Tokens and sizes").

    One CJK character is 1; a run of other word characters is ⌈length/16⌉; a run
    of other characters (blanks, punctuation, signs) is ⌊length/16⌋.
    """
    if len(text) < _LONG:
        return len(_UNITS.findall(text))
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    if int(codes.max()) >= _PLANE:
        return len(_UNITS.findall(text))
    kinds = _kinds()[codes]
    edges = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1
    bounds = np.concatenate(([0], edges, [len(kinds)]))
    kind = kinds[bounds[:-1]]
    return int(((np.diff(bounds) + _ROUNDING[kind]) >> _SHIFT[kind]).sum())


_PLANE = 0x10000  # the basic multilingual plane; texts with characters beyond it take the slower way
_WORD_KIND, _CJK_KIND = 1, 2
_ROUNDING = np.array([0, _RUN - 1, 0])  # of kinds other, word, CJK: (length + rounding) >> shift
_SHIFT = np.array([4, 4, 0])  # 2**4 is _RUN


@lru_cache(maxsize=1)
def _kinds() -> NDArray[np.int8]:
    """Kind of each character of the basic plane: 0 other, 1 word, 2 CJK."""
    kinds = np.zeros(_PLANE, dtype=np.int8)
    for match in _KINDS.finditer("".join(map(chr, range(_PLANE)))):
        kinds[slice(*match.span())] = _CJK_KIND if match.lastgroup == "cjk" else _WORD_KIND
    return kinds


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

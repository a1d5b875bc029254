"""Hashed character n-grams as a dense vector: a lexical embedder that needs no model.

Han characters count singly and in pairs and triples; other words count whole and
by their 3- to 5-grams, so that inflections and compound names still meet.
Term frequencies are damped (1 + log), signs are hashed as well, so that
collisions cancel on average (Weinberger et al. 2009, "feature hashing").
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from models.protocols import Vectors

_PIECES = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_STOP_ZH = frozenset("的了是在和与及或有为什么哪些何多少如吗呢吧之其该此被把对于由以应等个中上下")
_STOP_EN = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can do does for from has have how if in is it its may must not of on or "
        "shall should that the their there these this those to under was what when where which who why will with",
    )
)
_WEIGHT = {"han1": 0.35, "han2": 1.0, "han3": 1.0, "word": 1.0, "gram": 0.4}


def hashed_ngrams(text: str, dimension: int) -> Vectors:
    """Unit vector of the text's n-grams, shape (dimension,); zero where it has none."""
    counts = Counter(_features(unicodedata.normalize("NFKC", text).casefold()))
    vector = np.zeros(dimension, dtype=np.float64)
    for (kind, gram), count in counts.items():
        place, sign = _slot(kind, gram, dimension)
        vector[place] += sign * _WEIGHT[kind] * (1.0 + math.log(count))
    norm = math.sqrt(float(vector @ vector))
    return (vector / norm if norm > 0 else vector).astype(np.float32)


def _features(text: str) -> Iterator[tuple[str, str]]:
    for match in _PIECES.finditer(text):
        piece = match.group()
        if "\u3400" <= piece[0] <= "\u9fff" or "\uf900" <= piece[0] <= "\ufaff":
            yield from _han(piece)
        elif piece not in _STOP_EN:
            yield from _word(piece)


def _han(run: str) -> Iterator[tuple[str, str]]:
    for start, char in enumerate(run):
        if char in _STOP_ZH:
            continue
        yield "han1", char
        for size, kind in ((2, "han2"), (3, "han3")):
            gram = run[start : start + size]
            if len(gram) == size and gram[-1] not in _STOP_ZH:
                yield kind, gram


def _word(word: str) -> Iterator[tuple[str, str]]:
    yield "word", word
    if len(word) > 3 and not word.isdigit():
        marked = f"<{word[:40]}>"
        for size in (3, 4, 5):
            for start in range(len(marked) - size + 1):
                yield "gram", marked[start : start + size]


@lru_cache(maxsize=200_000)
def _slot(kind: str, gram: str, dimension: int) -> tuple[int, int]:
    value = zlib.crc32(f"{kind[0]}:{gram}".encode("utf-8", "surrogatepass"))
    return (value >> 1) % dimension, 1 if value & 1 else -1

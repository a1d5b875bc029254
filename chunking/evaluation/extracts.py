"""Questions and answers over whole sections without a model: key terms asked, central sentences as the answer.

An expert's question cannot be written by rules, but its two ends can be taken
from the section itself: what it is about (its key terms) and a digest of it (the
sentences that are closest to the others, LexRank: Erkan and Radev 2004). Headings
take no part: their lines are no sentences here and their words no terms. Nothing
is drawn from an embedding either, so that no dense retrieval is favoured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chunking.evaluation.metrics import words
from chunking.headings import heading_shape, marked_level, visible
from chunking.partition import Span
from chunking.sentences import split_sentences
from chunking.terms import STOP_CHARACTERS, STOP_WORDS
from corpus.ids import digest

SHARE = 1 / 3
"""Share of a section's characters that a digest takes: HiCBench's evidence is dense (20 sentences, 561 words)."""
_LEAST = 3  # sentences of a digest
_DISTINCT = 4  # different terms of a sentence that says something
_ASKED = {
    "T0": 3,
    "T1": 6,
    "T2": 4,
}  # key terms in a question, per chunk (HiCBench's questions have 31 words)
_DAMPING = 0.85
_STEPS = 50
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3400-\u9fff]{2,}")


def content_terms(text: str) -> list[str]:
    """Words that carry content: Chinese ones of two characters, others of three letters."""
    return [
        word
        for word in words(text)
        if _WORD.fullmatch(word) and word not in STOP_WORDS and not set(word) <= STOP_CHARACTERS
    ]


def telling_sentences(text: str) -> list[tuple[Span, list[str]]]:
    """Sentences that say something, with their terms: no heading lines, at least four different terms."""
    found = []
    for start, end in split_sentences(text):
        line = text[start:end]
        if marked_level(line) is not None or _numbered_title(line):
            continue
        terms = content_terms(line)
        if len(set(terms)) >= _DISTINCT:
            low, high = start + len(line) - len(line.lstrip()), start + len(line.rstrip())
            found.append(((low, high), terms))
    return found


def _numbered_title(line: str) -> bool:
    """A line that numbers a division and is not marked as a heading."""
    shape = heading_shape(visible(line))
    return shape is not None and shape.style not in ("plain", "article") and shape.strength > 0.9


def centrality(sentences: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Continuous LexRank of sentences given as terms: stationary weights over tf-idf cosine similarity, sum 1."""
    count = len(sentences)
    if count == 0:
        return np.zeros(0)
    frequency = Counter(term for terms in sentences for term in set(terms))
    column = {term: at for at, term in enumerate(sorted(frequency))}
    matrix = np.zeros((count, len(column)))
    for row, terms in enumerate(sentences):
        for term, times in Counter(terms).items():
            matrix[row, column[term]] = times * np.log(1 + count / frequency[term])
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    links = matrix @ matrix.T
    np.fill_diagonal(links, 0.0)
    sums = links.sum(axis=1, keepdims=True)
    chances = np.divide(links, sums, out=np.full_like(links, 1 / count), where=sums > 0)
    rank = np.full(count, 1 / count)
    for _ in range(_STEPS):
        rank = (1 - _DAMPING) / count + _DAMPING * (rank @ chances)
    return np.asarray(rank)


def digest_of(text: str, share: float = SHARE) -> list[Span]:
    """Spans of the most central sentences, together ``share`` of the text's sentences, in their order.

    A sentence that stands in the text twice counts once. [] where there are too few.
    """
    sentences = telling_sentences(text)
    if len(sentences) < _LEAST:
        return []
    ranks = centrality([terms for _, terms in sentences])
    total = sum(end - start for (start, end), _ in sentences)
    chosen: dict[str, Span] = {}
    taken = 0
    for at in sorted(range(len(sentences)), key=lambda i: (-ranks[i], i)):
        start, end = sentences[at][0]
        if len(chosen) >= _LEAST and taken >= share * total:
            break
        if text[start:end] not in chosen:
            chosen[text[start:end]] = (start, end)
            taken += end - start
    return sorted(chosen.values())


def one_sentence(text: str, key: str) -> list[Span]:
    """The one sentence that a hash of ``key`` draws; [] where no sentence says anything."""
    spans = [span for span, _ in telling_sentences(text)]
    return [min(spans, key=lambda span: digest(key, text[span[0] : span[1]]))] if spans else []


def key_terms(pieces: Sequence[str], background: Mapping[str, int], total: int, limit: int) -> list[str]:
    """Terms that most pieces share and few other documents have, best first; ``background`` counts documents.

    No term lies within another one.
    """
    shared = Counter(term for piece in pieces for term in set(content_terms(piece)))
    weight = {term: n * np.log(1 + total / background.get(term, 1)) for term, n in shared.items()}
    chosen: list[str] = []
    for term in sorted(weight, key=lambda t: (-weight[t], t)):
        if len(chosen) == limit:
            break
        if not any(term in other or other in term for other in chosen):
            chosen.append(term)
    return chosen


def asked(title: str, kind: str, groups: Sequence[Sequence[str]], language: str) -> str:
    """The question: what is said about the key terms of each chunk, with the document's title."""
    if language == "zh":
        parts = ["、".join(group) for group in groups]
        ending = "的内容是什么？" if kind == "T0" else "分别有哪些内容？"
        return f"{title}：关于{'，以及'.join(parts)}，{ending}"
    parts = [", ".join(group) for group in groups]
    return f"{title}: what is said about {'; and about '.join(parts)}?"


def question_terms(kind: str) -> int:
    """How many key terms a question of a kind has for each of its chunks."""
    return _ASKED[kind]

"""Figures of retrieval and answers: plain functions on texts and spans.

Sources: hichunk design, "Metrics"; qchunker design, "Study flows". Every value
is in [0, 1] unless said otherwise; a metric that is not defined is None.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from chunking.partition import Span

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_DASHES = str.maketrans("−–", "--")
_KEPT = re.compile(r"[^\W_]+|[<>=%°≤≥±]|(?<=\d)[.,](?=\d)|[-~/](?=\d)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_WORDNET = Path("/usr/share/wordnet")  # Debian's wordnet-base

Region = tuple[str, int, int]  # document, start, end in code points


# --- retrieval --------------------------------------------------------------


def evidence_recall(evidence: Iterable[Region], retrieved: Iterable[Region]) -> float | None:
    """Share of evidence characters that retrieved spans cover. None without evidence."""
    wanted = _merged(evidence)
    total = sum(_length(spans) for spans in wanted.values())
    if total == 0:
        return None
    given = _merged(retrieved)
    covered = sum(_common(spans, given.get(document, [])) for document, spans in wanted.items())
    return covered / total


def span_precision(evidence: Iterable[Region], retrieved: Iterable[Region]) -> tuple[float, float] | None:
    """Precision and intersection over union of retrieved characters. None where one side is empty."""
    wanted, given = _merged(evidence), _merged(retrieved)
    need = sum(_length(spans) for spans in wanted.values())
    have = sum(_length(spans) for spans in given.values())
    if need == 0 or have == 0:
        return None
    both = sum(_common(spans, given.get(document, [])) for document, spans in wanted.items())
    return both / have, both / (need + have - both)


def substring_recall(evidence: Sequence[str], context: str) -> float | None:
    """Share of evidence, weighted by length, whose normalised text is a substring of the context.

    Fails by design where evidence lies across two retrieved pieces. None without evidence.
    """
    wanted = [text for text in (normalised(item) for item in dict.fromkeys(evidence)) if text]
    total = sum(len(text) for text in wanted)
    if total == 0:
        return None
    squeezed = normalised(context)
    return sum(len(text) for text in wanted if text in squeezed) / total


def normalised(text: str) -> str:
    """NFKC, case folded, without articles, punctuation (CJK included), signs and blanks.

    Decimal points, minus signs and dashes between digits stay: 11.5 is not 115,
    67-64-1 is not 67641.
    """
    folded = _ARTICLES.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    return "".join(_KEPT.findall(folded.translate(_DASHES)))


def _merged(regions: Iterable[Region]) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for document, start, end in sorted(regions):
        spans = found.setdefault(document, [])
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        elif end > start:
            spans.append((start, end))
    return found


def _length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def _common(left: Sequence[Span], right: Sequence[Span]) -> int:
    return sum(max(0, min(a_end, b_end) - max(a, b)) for a, a_end in left for b, b_end in right)


# --- answers ----------------------------------------------------------------


@lru_cache(maxsize=65_536)
def words(text: str) -> tuple[str, ...]:
    """Tokens for answer metrics: jieba for Chinese runs, words and numbers otherwise; punctuation dropped."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    pieces = _jieba(plain) if _CJK.search(plain) else re.findall(r"\w+(?:[.\-]\w+)*", plain)
    return tuple(piece for piece in pieces if any(char.isalnum() for char in piece))


def _jieba(text: str) -> list[str]:
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)
    return list(jieba.cut(text))


def token_f1(answer: str, reference: str) -> float:
    """Harmonic mean of token precision and recall (bags of words)."""
    given, wanted = Counter(words(answer)), Counter(words(reference))
    common = sum((given & wanted).values())
    if common == 0:
        return 0.0
    precision, recall = common / sum(given.values()), common / sum(wanted.values())
    return 2 * precision * recall / (precision + recall)


class _Words:
    """The tokenizer that ``rouge-score`` asks for."""

    def tokenize(self, text: str) -> list[str]:
        return list(words(text))


@lru_cache(maxsize=1)
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=False, tokenizer=_Words())


def rouge_l(answer: str, reference: str) -> float:
    """ROUGE-L F (package ``rouge-score``, our tokens)."""
    return float(_rouge().score(reference, answer)["rougeL"].fmeasure)


@lru_cache(maxsize=1)
def _bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize="none", smooth_method="exp", effective_order=True, force=True)


def bleu_4(answer: str, reference: str) -> tuple[float, float]:
    """Sentence BLEU-4 (``sacrebleu``: exponential smoothing, effective order) and its brevity penalty."""
    given, wanted = words(answer), words(reference)
    if not given or not wanted:
        return 0.0, 0.0
    score = _bleu().sentence_score(" ".join(given), [" ".join(wanted)])
    return float(score.score) / 100, float(score.bp)


def meteor(answer: str, reference: str) -> float:
    """METEOR (``nltk``): exact and stem matches, and WordNet synonyms where Debian's WordNet is installed."""
    from nltk.translate.meteor_score import single_meteor_score

    given, wanted = list(words(answer)), list(words(reference))
    if not given or not wanted:
        return 0.0
    return float(single_meteor_score(wanted, given, wordnet=_wordnet() or _NoSynonyms()))


ANSWER_METRICS = ("rouge_l", "bleu_4", "brevity_penalty", "meteor", "token_f1")


def answer_figures(answer: str, references: Sequence[str]) -> dict[str, float | None]:
    """All of :data:`ANSWER_METRICS`; of several references the best for each (as SQuAD, Qasper, LongBench do).

    The brevity penalty is that of the best BLEU. None without a reference.
    """
    if not references:
        return dict.fromkeys(ANSWER_METRICS)
    bleu, brevity = max(bleu_4(answer, reference) for reference in references)
    return {
        "rouge_l": max(rouge_l(answer, reference) for reference in references),
        "bleu_4": bleu,
        "brevity_penalty": brevity,
        "meteor": max(meteor(answer, reference) for reference in references),
        "token_f1": max(token_f1(answer, reference) for reference in references),
    }


def meteor_stages() -> str:
    """Which matching stages METEOR ran; stands in the metric's setting."""
    return "exact+stem+wordnet" if _wordnet() is not None else "exact+stem"


class _NoSynonyms:
    """WordNet's place when it is not installed."""

    def synsets(self, word: str) -> list[Any]:
        return []


@lru_cache(maxsize=1)
def _wordnet() -> Any:
    if not (_WORDNET / "data.noun").is_file():
        return None
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    try:
        reader = WordNetCorpusReader(str(_WORDNET), omw_reader=None)
        reader.synsets("fire")
    except (OSError, LookupError, ValueError):  # an incomplete or foreign data base: the stage is left out
        return None
    return reader


# --- segmentation -------------------------------------------------------------


def segmentation(reference: Sequence[int], hypothesis: Sequence[int], length: int) -> dict[str, float | None]:
    """Pk, WindowDiff (errors: 0 is best) and boundary similarity of inner boundaries in 0…length.

    ``length`` in the units of the boundaries (sentences). None where the text
    is too short for the window. Package ``segeval``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # its source compares numbers by identity
        import segeval

    if length < 2:
        return {"pk": None, "window_diff": None, "boundary_similarity": None}
    gold, found = _masses(reference, length), _masses(hypothesis, length)
    window = max(2, round(length / len(gold) / 2))
    if length <= window + 1:
        pk = diff = None
    else:
        pk = float(segeval.pk(found, gold, window_size=window))
        diff = float(segeval.window_diff(found, gold, window_size=window))
    return {
        "pk": pk,
        "window_diff": diff,
        "boundary_similarity": float(segeval.boundary_similarity(gold, found)),
    }


def _masses(boundaries: Sequence[int], length: int) -> tuple[int, ...]:
    points = [0, *sorted({cut for cut in boundaries if 0 < cut < length}), length]
    return tuple(right - left for left, right in pairwise(points))

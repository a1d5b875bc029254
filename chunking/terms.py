"""Terms for lexical retrieval and answer scoring, Chinese and English alike.

Identifiers that a question about chemicals turns on are kept whole: CAS
numbers, hazard and precautionary codes, UN numbers, decimal numbers. Chinese
runs become overlapping pairs of characters and the single characters (苯, 氯 are
whole names); other words are themselves with a light English stem. Chosen by
measurement against jieba words (``benchmarks/retrieval.py``).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TERM = re.compile(
    r"(?P<cas>(?<![\d-])\d{2,7}-\d{2}-\d(?![\d-]))"
    r"|(?P<code>(?<![^\W_])(?:euh|[hp])\d{3}[a-z]{0,2}(?![^\W_]))"
    r"|(?P<un>(?<![^\W_])un[\s:-]?(?:no\.?\s?)?\d{4}(?!\d))"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    rf"|(?P<cjk>[{_CJK}]+)"
    rf"|(?P<word>[^\W\d_{_CJK}](?:[^\W_{_CJK}]|(?<=\w)['’](?=\w))*)"
)
_NOT_DIGIT = re.compile(r"\D+")
STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "must",
        "no",
        "not",
        "of",
        "on",
        "or",
        "shall",
        "should",
        "so",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "'s",
    ]
)
# Question words of Chinese; they cut a run like punctuation does.
_QUESTION_WORDS = re.compile(
    "多少|多大|多高|如何|怎样|怎么|哪些|哪种|什么|是否|应该|应当|可以|需要|请问|为何"
)
# Characters that mean nothing where they stand alone between question words.
_LONE = frozenset("用时后前会能要属可")
# Characters of Chinese questions that carry no content; a pair with one of them is no term.
STOP_CHARACTERS = frozenset("的了是在和与及或有为吗呢吧之其该此被把对于由以应等个么哪些什几谁请问")


def terms(text: str, *, singles: bool = True) -> list[str]:
    """Terms in order of appearance, with repeats; [] where there are none.

    ``singles``: single Chinese characters beside the pairs (for retrieval).
    """
    found: list[str] = []
    for match in _TERM.finditer(unicodedata.normalize("NFKC", text).casefold()):
        kind, piece = match.lastgroup, match.group()
        if kind == "cjk":
            found.extend(_chinese(piece, singles))
        elif kind == "un":
            found.append("un" + _NOT_DIGIT.sub("", piece))
        elif kind != "word":
            found.append(piece)
        elif piece not in STOP_WORDS:
            found.append(_stem(piece))
    return found


@lru_cache(maxsize=65536)
def _chinese(piece: str, singles: bool) -> tuple[str, ...]:
    """Terms of an unbroken run of Chinese characters; data sheets repeat theirs."""
    return tuple(term for run in _QUESTION_WORDS.split(piece) for term in _pairs(run, singles))


def _pairs(run: str, singles: bool) -> list[str]:
    if len(run) == 1 and run in _LONE:
        return []
    single = [char for char in run if char not in STOP_CHARACTERS] if singles or len(run) == 1 else []
    pairs = (run[i : i + 2] for i in range(len(run) - 1))
    return [*(pair for pair in pairs if not STOP_CHARACTERS & set(pair)), *single]


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    """Harman's S-stemmer: plural endings only, so that no two substances fall together."""
    if len(word) > 4 and word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    if len(word) > 3 and word.endswith("s") and word[-2] not in "us":
        return word[:-1]
    return word

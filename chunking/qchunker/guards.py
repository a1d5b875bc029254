"""What a completed chunk must satisfy: nothing lost, nothing that D does not state, not much longer.

The completer may only insert. Every inserted run must be made of stretches of
the supporting spans (or of the chunk itself) and of function words; numbers come
with their units; a negation may only arrive inside a longer stated stretch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

LENGTH_RATIO = 1.6

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*(?:-\d+)*|[A-Za-zα-ωΑ-Ω]+|[\u3400-\u9fff\uf900-\ufaff]|[^\s\w]|\w")
# No sign at the front: "-5" and the range "3-5" cannot be told apart; punctuation is compared below.
_QUANTITY = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*(?:-\d+)*)\s?(?P<unit>%|‰|ppm|ppb|°\s?[CFK]?|[μµu]?[A-Za-zΩ]{1,6}(?:/[A-Za-zμµ0-9]{1,4}){0,2}\d?|[摄华]氏度|[毫微千]?[克升米]|度|倍|天|小时|分钟)?"
)
_FUNCTION = frozenset("的是即指为在于及与和其该也称：，。；、（）()[]【】“”\"',.;:-—|/") | frozenset(
    "the a an of in on at by to for and or is are was be this that it its which as with from see i.e called also known".split()  # noqa: SIM905
)
_SIGNS = frozenset("<>≤≥=±-%℃°")
_DROPPABLE = frozenset("它其该本品此这那") | frozenset("it its this that these those they their such".split())  # noqa: SIM905
_NEGATIONS = frozenset("不无非未勿禁没毋免") | frozenset(
    ["no", "not", "non", "never", "without", "none", "neither", "nor", "cannot", "except", "free"]
)


def guard(chunk: str, completed: str, supports: Sequence[str], *, ratio: float = LENGTH_RATIO) -> list[str]:
    """Reasons why the completed text must not replace the chunk; an empty list means it may."""
    if not completed.strip():
        return ["the text is empty"]
    reasons = []
    if len(completed) > ratio * len(chunk):
        reasons.append(
            f"the text is {len(completed) / len(chunk):.2f} times as long, at most {ratio} is allowed"
        )
        if len(completed) > 4 * ratio * len(chunk):
            return reasons  # not worth comparing, and expensive
    reasons += _quantities(chunk, completed, supports)
    reasons += _changes(chunk, completed, supports)
    return reasons


def tokens_of(text: str) -> list[str]:
    """Compatibility-folded tokens: numbers with their hyphens (CAS), words, CJK characters, signs."""
    folded = unicodedata.normalize("NFKC", text).replace("–", "-").replace("−", "-")
    return [token.lower() for token in _TOKEN.findall(folded)]


def _quantities(chunk: str, completed: str, supports: Sequence[str]) -> list[str]:
    known = set().union(*(_pairs(text) for text in (chunk, *supports)))
    new = sorted(_pairs(completed) - known)
    return [f"the document parts given do not state {number}{unit}" for number, unit in new[:5]]


def _pairs(text: str) -> set[tuple[str, str]]:
    folded = unicodedata.normalize("NFKC", text).replace("–", "-").replace("−", "-")
    return {(m["number"], (m["unit"] or "").replace(" ", "")) for m in _QUANTITY.finditer(folded)}


def _changes(chunk: str, completed: str, supports: Sequence[str]) -> list[str]:
    from rapidfuzz.distance import Indel

    before, after = tokens_of(chunk), tokens_of(completed)
    stated = [tokens_of(text) for text in (*supports, chunk)]
    reasons: list[str] = []
    for step in Indel.opcodes(before, after):
        if step.tag == "delete":
            lost = [word for word in before[step.src_start : step.src_end] if _matters(word)]
            if lost:
                reasons.append(f"words of the chunk are missing: {' '.join(lost[:12])}")
        elif step.tag == "insert":
            unstated = _unstated(after[step.dest_start : step.dest_end], stated)
            if unstated:
                reasons.append(f"the document parts given do not state: {' '.join(unstated[:12])}")
    return reasons[:5]


def _matters(word: str) -> bool:
    """Whether a word of the chunk may not be lost: all but pronouns and plain punctuation."""
    return word not in _DROPPABLE and (word.isalnum() or word in _SIGNS)


def _unstated(run: list[str], stated: Sequence[list[str]]) -> list[str]:
    """Tokens of an inserted run that no stated stretch of at least two tokens (or a function word) covers."""
    left: list[str] = []
    position = 0
    while position < len(run):
        length = _longest_stretch(run, position, stated)
        stretch = run[position : position + max(length, 1)]
        negated = any(token in _NEGATIONS for token in stretch)
        single_word = length == 1 and len(stretch[0]) > 1 and stretch[0].isalpha()
        if (negated and length < 4) or (length < 2 and not single_word and stretch[0] not in _FUNCTION):
            left += stretch
        position += max(length, 1)
    return left


def _longest_stretch(run: list[str], position: int, stated: Sequence[list[str]]) -> int:
    best = 0
    first = run[position]
    for tokens in stated:
        for at, token in enumerate(tokens):
            if token != first:
                continue
            length = 0
            while (
                position + length < len(run)
                and at + length < len(tokens)
                and tokens[at + length] == run[position + length]
            ):
                length += 1
            best = max(best, length)
    return best

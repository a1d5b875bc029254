"""Clauses of a sentence: how far a "not" reaches, and where the next statement begins.

"Does not react with water, ethanol or iron, but reacts violently with nitric acid"
denies three things and states one. A cut in the wrong place turns a denial into a
statement, so a sentence is cut only where a new statement certainly begins.
"""

from __future__ import annotations

import re

_HARD = re.compile(r"[。;；\n!！?？|]|\.(?=\s|$)")
# a word of contrast, and what follows a comma or "and" with a verb of its own; an infinitive ("or attack metals")
# may still belong to the "does not" before it
_CUT_EN = re.compile(
    r"\s*[,;]?\s*\b(?:but|however|whereas|while|though|although|yet)\b[,\s]*(?!also\b)"
    r"|\s*,\s*(?:and\s+)?(?=(?:it|this|which|reacts|does|do|is|are|may|can|could|will)\b|(?:also|then|\w+ly)\s+(?:reacts|may|can|does)\b|(?:never)\s+reacts\b)"
    r"|\s+and\s+(?=(?:it\s+)?(?:also\s+)?(?:reacts|does|may|can|could|will)\b)"
    r"|\s+and\s+(?=not with\b)",
    re.IGNORECASE,
)
_CUT_ZH = re.compile(r"[,，]?(?:但是?|然而|不过|可是|却(?!除)|(?<![因从进反])而(?![且言]))[,，]?|[,，]")
_CONTRAST_ZH = re.compile(r"但|然而|不过|可是|却|而")
_PREDICATE_ZH = re.compile(
    r"反应|作用|溶(?![剂液])|分解(?!产?物)|爆炸(?![物品极])|腐蚀(?!性?[物品])|稳定(?!剂)|燃(?![料气]|烧?物)|聚合(?!物)|接触|生成|放出"
)
# "不与水反应" may go on ("不会与水反应，与酸反应"): where the negation stands before its object, a bare "与" is in doubt
_NOT_FIRST = re.compile(r"(?:不|未|没有|避免|防止|禁止|严禁|切勿|勿|难)[^,，]{0,4}[与和跟遇]")
_BARE = re.compile(r"^(?:或)?[与和跟遇]")
_STRONG = re.compile(r"剧烈|激烈|猛烈|强烈|爆炸")


def clauses(words: str) -> list[tuple[int, int]]:
    """Spans of the clauses of plain, simplified words, in order; parts without a verb stay with their verb."""
    # what stands in brackets is a remark, no clause
    words = re.sub(r"\([^()]*\)", lambda found: "~" * len(found[0]), words)
    cuts = [(m.start(), m.end()) for m in _HARD.finditer(words)]
    spans: list[tuple[int, int]] = []
    begin = 0
    for start, end in [*cuts, (len(words), len(words))]:
        part = words[begin:start]
        cut = _chinese if re.search(r"[一-鿿]", part) else _english
        spans += [(begin + a, begin + b) for a, b in cut(part) if part[a:b].strip()]
        begin = end
    return spans


def _english(part: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    begin = 0
    for match in _CUT_EN.finditer(part):
        if match.start() >= begin and part[begin : match.start()].strip():
            if match[0].strip(" ,;").lower() == "but" and not re.match(
                r"(?:it|this|which|they|with|not|never|does|do|is|are|was|may|can|could|will|must|should|\w+ly|reacts?|attacks?|dissolves?|decomposes?|the)\b|\S+ (?:reacts|does|is|may|can|will)\b",
                part[match.end() :],
                re.IGNORECASE,
            ):
                continue  # "any material but nitric acid" excepts
            spans.append((begin, match.start()))
            begin = match.end()
    return [*spans, (begin, len(part))]


def _chinese(part: str) -> list[tuple[int, int]]:
    """Cuts at words of contrast and at commas between two predicates."""
    pieces: list[tuple[int, int, bool]] = []  # begin, end, whether a contrast stands before it
    begin, contrast = 0, False
    for match in _CUT_ZH.finditer(part):
        pieces.append((begin, match.start(), contrast))
        begin, contrast = match.end(), bool(_CONTRAST_ZH.search(match[0]))
    pieces.append((begin, len(part), contrast))
    joined: list[tuple[int, int]] = []
    open_piece = False  # the last span still waits for its verb
    for a, b, contrast in pieces:
        words = part[a:b]
        verb = bool(_PREDICATE_ZH.search(words))
        before = part[slice(*joined[-1])] if joined else ""
        goes_on = (
            not contrast
            and bool(_NOT_FIRST.search(before))
            and bool(_BARE.match(words))
            and (bool(_STRONG.search(before)) or not _STRONG.search(words))
        )
        if joined and not contrast and (open_piece or not verb or goes_on):
            joined[-1] = (joined[-1][0], b)
            open_piece = open_piece and not verb
        else:
            joined.append((a, b))
            open_piece = not verb
    return joined

"""Sentences of Chinese, English and mixed text, as spans that tile the text.

A piece ends after a stop with its closing quotes and brackets, or at the end of
a line (headings, list items, table rows and data-sheet lines are lines). The
blanks that follow belong to the piece before them. Nothing is cut inside
numbers, units, formulae, CAS numbers, abbreviations, list marks or a bracketed
aside (HiChunk design, "Sentences").
"""

from __future__ import annotations

import re
from bisect import bisect_right

Piece = tuple[int, int]

_CLOSERS = "”’」』）】》〉〕］)\\]}\"'＂"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# A stop (or a run of stops) with what closes behind it, reference marks included, or a line break.
_CANDIDATE = re.compile(
    rf"(?P<stop>[。！？｡．!?.…]+)(?P<close>[{_CLOSERS}]*(?:\[\d[\d,–\-\s]{{0,10}}\])*)(?P<blank>[^\S\n\r]*)"
    r"|(?P<line>\r\n|[\n\r\u2028\u2029\x0b\x0c\x85])",
)
_BLANKS = re.compile(r"\s*")
_ASIDE = re.compile(r"（[^（）\n]{0,300}）|\([^()\n]{0,300}\)")

# Abbreviations after which a sentence never ends.
_NEVER = frozenset(
    [
        "e.g",
        "i.e",
        "viz",
        "cf",
        "dr",
        "mr",
        "mrs",
        "ms",
        "prof",
        "st",
        "mt",
        "messrs",
        "hon",
        "rev",
        "gen",
        "col",
        "capt",
        "sgt",
        "resp",
        "vs",
        "v",
        "approx",
        "ca",
        "fig",
        "figs",
        "eq",
        "eqs",
        "ref",
        "refs",
        "tab",
        "sec",
        "sect",
        "ch",
        "chap",
        "vol",
        "vols",
        "pp",
        "p",
        "para",
        "paras",
        "art",
        "arts",
        "nos",
        "reg",
        "regs",
        "ed",
        "eds",
        "equiv",
        "conc",
        "sol",
        "soln",
        "temp",
        "min",
        "max",
        "avg",
        "calc",
        "est",
        "mol",
        "wt",
        "crit",
        "b.p",
        "m.p",
        "f.p",
        "sp",
        "spp",
        "var",
        "syn",
        "abbr",
        "incl",
        "excl",
        "op",
        "cit",
        "tel",
        "al",
    ]
)
# Those that end one when the next word begins a sentence.
_PERHAPS = frozenset(
    [
        "etc",
        "inc",
        "ltd",
        "co",
        "corp",
        "jr",
        "sr",
        "u.s",
        "u.k",
        "u.n",
        "e.u",
        "u.s.c",
        "c.f.r",
        "u.s.a",
        "a.m",
        "p.m",
        "ph.d",
        "m.d",
        "b.c",
        "a.d",
        "d.c",
        "no",
        "dept",
        "div",
        "assn",
        "bros",
        "llc",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
    ]
)
_BEFORE_NUMBERS = frozenset(
    [
        "u.s.c",
        "c.f.r",
        "u.s",
        "u.n",
        "e.u",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "dept",
    ]
)
_NEEDS_DIGIT = frozenset(
    [
        "no",
        "nos",
        "p",
        "pp",
        "fig",
        "figs",
        "eq",
        "eqs",
        "sec",
        "sect",
        "ch",
        "chap",
        "vol",
        "art",
        "tab",
        "ref",
        "min",
        "max",
        "est",
        "mol",
    ]
)
# A capital letter with a dot is an initial, unless one of these words stands before it.
_LETTERED = re.compile(
    r"(?:vitamins?|types?|class|classes|category|categories|groups?|grades?|appendix|annex|hepatitis|section|"
    r"factor|levels?|parts?|table|schedule|plan|zones?|division|point|compounds?|products?|reagents?|drugs?|"
    r"and|or|and/or|than|is|=|isomers?|option|step|phase)\s+$",
    re.IGNORECASE,
)
_STARTERS = frozenset(
    [
        "the",
        "this",
        "that",
        "these",
        "those",
        "it",
        "its",
        "in",
        "if",
        "a",
        "an",
        "there",
        "when",
        "where",
        "for",
        "however",
        "but",
        "and",
        "he",
        "she",
        "they",
        "we",
        "you",
        "no",
        "not",
        "do",
        "keep",
        "wash",
        "avoid",
        "on",
        "at",
        "as",
        "by",
        "to",
        "with",
        "after",
        "before",
        "during",
        "while",
        "all",
        "any",
        "each",
        "both",
        "such",
        "from",
        "since",
        "although",
        "under",
        "some",
        "most",
        "many",
        "other",
        "use",
        "see",
        "store",
        "remove",
        "call",
        "get",
        "seek",
        "rinse",
        "wear",
        "never",
        "always",
        "i",
        "our",
        "their",
        "his",
        "her",
    ]
)
_SMALL_INITIALS = frozenset("cpvnt")  # "c. 1900", "p. 12", "v. 2"
_WORD_BEFORE = re.compile(r"[A-Za-z](?:[A-Za-z]|\.(?=[A-Za-z]))*$")
# A sentence may begin in small letters where a chemical name or pH does.
_SMALL_START = re.compile(
    r"(?:[nomp]|sec|tert|cis|trans|iso|alpha|beta|gamma|meta|para|ortho|syn|anti|endo|exo|[dl])-[A-Za-z(]|pH\b|[NO],|mRNA\b|[α-ω]-"
)
_LIST_MARK = re.compile(
    r"\W*(?:\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[A-Za-z]|[ivxIVX]{1,5}|[一二三四五六七八九十]{1,3})|"
    r"(?:sections?|sec|part|chapter|article|art|step|tables?|figures?|figs?|appendix|annex|§+|notes?|rule|item|class|"
    r"phase|example|case|question|q|exhibit|schedule|title|subpart|paragraph)\W{0,3}[\dA-Z][\d.\-A-Za-z]{0,8})",
    re.IGNORECASE,
)
_INLINE_MARK = re.compile(
    r"(?:[：；]\s*|[:;]\s+)[(（]?\d{1,2}$"
)  # a list number inside a line: "Do this: 1. Wash"
_SPOKEN = re.compile(r"[，、,；]|(?:[^\s。！？，“”\n]{0,5})(?:说|问|道|喊|叫|答|表示|指出|认为)")
_SOFT_WRAP = 50  # a line at least this long, broken before a small letter, was wrapped by its editor


def split_sentences(text: str) -> list[Piece]:
    """Cut a text into sentences: ordered spans in code points that tile it; [] for an empty text."""
    if not text:
        return []
    cutter = _Cutter(text)
    pieces: list[Piece] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        if match.start() < start:
            continue
        cut = cutter.cut_after(match, start)
        if cut is None:
            continue
        cut = _BLANKS.match(text, cut).end()  # type: ignore[union-attr]
        if not text[start:cut].strip():
            continue  # leading blanks belong to the first sentence
        pieces.append((start, cut))
        start = cut
    if start < len(text):
        if pieces and not text[start:].strip():
            pieces[-1] = (pieces[-1][0], len(text))
        else:
            pieces.append((start, len(text)))
    return pieces


class _Cutter:
    """Decides for each candidate whether a sentence ends there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._asides = [match.span() for match in _ASIDE.finditer(text)]
        self._aside_starts = [start for start, _ in self._asides]

    def cut_after(self, match: re.Match[str], start: int) -> int | None:
        """Where the piece that began at ``start`` ends, or None when it goes on."""
        if match["line"] is not None:
            return None if self._soft_wrap(match, start) else match.end()
        stop = match["stop"]
        end = self._closed_end(match, start)
        if stop[0] in "。！？｡":
            return self._after_cjk(match, start, end)
        if stop.strip(".．…") == "" and stop not in (".", "．"):
            return self._after_ellipsis(match, end)
        if stop[0] in ".．" and len(stop) == 1:
            return self._after_dot(match, start, end)
        return self._after_mark(match, start, end)

    def _closed_end(self, match: re.Match[str], start: int) -> int:
        """End of the stop with its closers; a straight quote closes only when one is open."""
        end = match.end("stop")
        for char in match["close"]:
            if char in "\"'＂" and self.text.count(char, start, end) % 2 == 0:
                break
            end += 1
        return end

    def _inside(self, position: int) -> Piece | None:
        index = bisect_right(self._aside_starts, position) - 1
        if index >= 0:
            span = self._asides[index]
            if span[0] < position < span[1]:
                return span
        return None

    def _in_aside(self, match: re.Match[str], end: int) -> bool:
        """Whether the stop is inside a bracketed aside that the sentence goes on after."""
        aside = self._inside(match.start())
        if aside is None:
            return False
        if end < aside[1]:
            return True
        before = (
            self.text[: aside[0]].rstrip()[-1:]
            if aside[0] < 200
            else self.text[aside[0] - 200 : aside[0]].rstrip()[-1:]
        )
        if not before or before in "。！？.!?：:":
            return False
        following = self.text[_BLANKS.match(self.text, end).end() :][:1] if end < len(self.text) else ""  # type: ignore[union-attr]
        return bool(following) and not following.isupper() and "\n" not in self.text[end : end + 2]

    def _soft_wrap(self, match: re.Match[str], start: int) -> bool:
        line = match.start()
        if line - start < _SOFT_WRAP or line - self.text.rfind("\n", 0, line) <= _SOFT_WRAP:
            return False
        before, after = self.text[line - 1], self.text[match.end() : match.end() + 1]
        return "a" <= after <= "z" and (before.isascii() and (before.isalnum() or before in ",-;"))

    def _after_cjk(self, match: re.Match[str], start: int, end: int) -> int | None:
        if self._in_aside(match, end):
            return None
        closed = self.text[match.end("stop") : end]
        quoted = any(char in '”’」』"' for char in closed)
        if quoted and match["stop"][-1] in "！？" and _SPOKEN.match(self.text, end):
            return None
        if not closed and self.text[end : end + 1] in ("，", "、", "；", "：", ",", ";"):
            return None
        return end

    def _after_ellipsis(self, match: re.Match[str], end: int) -> int | None:
        """Three dots end a sentence before a capital, at a line's end, or behind a closing quote."""
        if self._in_aside(match, end):
            return None
        following = self.text[match.end() : match.end() + 1]
        if not following or following in "\r\n":
            return end
        if any(char in "”」』" for char in self.text[match.end("stop") : end]):
            return None if _SPOKEN.match(self.text, end) else end
        return end if match["blank"] and following.isupper() else None

    def _after_mark(self, match: re.Match[str], start: int, end: int) -> int | None:
        """ASCII ! and ?: an end before a blank, a line's end or a Chinese character."""
        if self._in_aside(match, end):
            return None
        following = self.text[end : end + 1]
        if (
            following
            and not following.isspace()
            and not _is_cjk(following)
            and following not in '“「『《（【"'
        ):
            return None
        after = self.text[match.end() : match.end() + 1]
        return None if following.isspace() and after.isascii() and after.islower() else end

    def _after_dot(self, match: re.Match[str], start: int, end: int) -> int | None:
        text, dot = self.text, match.start("stop")
        following = text[end : end + 1]
        before = text[dot - 1 : dot] if dot > start else ""
        if self._in_aside(match, end):
            return None
        if following and not following.isspace():
            return end if self._dot_as_cjk_stop(dot, start, before, following) else None
        if _LIST_MARK.fullmatch(text, start, dot):
            # a mark alone on its line is cut by the line break, not by its dot
            return None
        after_at = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
        after = text[after_at : after_at + 24]
        if not after or "\n" in text[end:after_at] or "\r" in text[end:after_at]:
            return end
        if self._abbreviated(dot, start, after, closed=end > dot + 1):
            return None
        if before.isdigit() and _INLINE_MARK.search(text, max(start, dot - 8), dot):
            return None
        if after[0].isascii() and after[0].islower() and not _SMALL_START.match(after):
            return None
        if after[0] in ",;:，；：、)）]=<>±×":
            return None
        return end

    def _dot_as_cjk_stop(self, dot: int, start: int, before: str, following: str) -> bool:
        """A dot without a blank after it ends a sentence only between Chinese words or after a word."""
        if following in "“「『《【":
            return True
        if not _is_cjk(following):
            return False
        if _is_cjk(before) or (before and before in "”」』）)%℃"):
            return not _LIST_MARK.fullmatch(self.text, start, dot)
        if re.search(r"\d{4}$", self.text[max(start, dot - 4) : dot]):
            return True
        word = _WORD_BEFORE.search(self.text, max(start, dot - 24), dot)
        return (
            word is not None
            and len(word[0]) > 3
            and word[0].lower() not in _NEVER | _PERHAPS
            and "." not in word[0]
        )

    def _abbreviated(self, dot: int, start: int, after: str, *, closed: bool) -> bool:
        word = _WORD_BEFORE.search(self.text, max(start, dot - 24), dot)
        if word is None:
            return False
        token = word[0]
        key = token.lower()
        if len(token) == 1 and token.isalpha():
            return self._initial(token, word.start(), start, after)
        if closed and key not in {"al"}:
            return False
        if key in _NEEDS_DIGIT:
            return after[0].isdigit() or (
                key not in {"no", "min", "max", "est", "mol"}
                and bool(re.match(r"[A-Z]?\d|[A-Z]\b|[IVX]+\b", after))
            )
        if key in _NEVER:
            return True
        if key in _PERHAPS or re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", token):
            if after[0].isdigit():
                return key in _BEFORE_NUMBERS
            first = re.match(r"[A-Za-z]+", after)
            return first is not None and not (first[0][0].isupper() and first[0].lower() in _STARTERS)
        return False

    def _initial(self, token: str, at: int, start: int, after: str) -> bool:
        if not token.isupper():
            return (
                token in _SMALL_INITIALS and after[0].isascii() and (after[0].isdigit() or after[0].islower())
            )
        if self.text[at - 1 : at].isalnum() or self.text[at - 1 : at] in ("-", "°", "/", "º"):
            return False  # "20°C.", "pH 7-B."
        if self.text[at - 1 : at].isspace() and self.text[at - 2 : at - 1] in ("°", "º"):
            return False
        if _LETTERED.search(self.text, max(start, at - 24), at) or re.search(
            r"\d\s?$", self.text[max(start, at - 3) : at]
        ):
            return False  # "vitamin C.", "at 20 C."
        first = re.match(r"[A-Za-z]+", after)
        return (first is not None and first[0][0].isupper() and first[0].lower() not in _STARTERS) or after[
            :2
        ].endswith(".")


def _is_cjk(char: str) -> bool:
    return bool(char) and (
        "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff"
    )

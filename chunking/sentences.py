"""Sentences of Chinese, English and mixed text, as spans that tile the text.

A piece ends after a stop with its closing quotes and brackets, or at the end of
a line (headings, list items, table rows and data-sheet lines are lines). The
blanks that follow belong to the piece before them. Nothing is cut inside
numbers, units, formulae, CAS numbers, abbreviations, list marks or a bracketed
aside (HiChunk design, "Sentences").

One expression runs over the text. Ends that are plain are matched whole by it;
only doubtful ones are looked at one by one, which makes the difference between
one and ten megabytes a second.
"""

from __future__ import annotations

import re

Piece = tuple[int, int]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations after which a sentence never ends.
_NEVER = _words(
    "e.g i.e viz cf dr mr mrs ms prof st mt messrs hon rev gen col capt sgt resp vs v approx ca fig figs eq eqs "
    "ref refs tab sec sect ch chap vol vols pp p para paras art arts nos reg regs ed eds sol min max avg est mol "
    "b.p m.p f.p op cit tel app apps"
)
# Those that end one when the next word begins a sentence.
_PERHAPS = _words(
    "al etc inc ltd co corp jr sr u.s u.k u.n e.u u.s.c c.f.r u.s.a a.m p.m ph.d m.d b.c a.d d.c no dept div assn "
    "bros llc jan feb mar apr jun jul aug sep sept oct nov dec gov sen rep pres lt maj temp conc soln equiv wt calc "
    "crit syn abbr incl excl insol abs std dev diff rel sp spp var gr"
)
# Of those, the ones that a number follows within a sentence.
_BEFORE_NUMBERS = _words(
    "al u.s.c c.f.r u.s u.n e.u jan feb mar apr jun jul aug sep sept oct nov dec dept temp conc wt calc crit incl "
    "excl abs std dev diff rel gr"
)
# Words of their own that abbreviate before a number, or (but for the last) before a letter or a Roman one.
_COUNTED = _words("nos p pp fig figs eq eqs sec sect ch chap vol art tab ref app apps")
_ONLY_NUMBERS = _words("no min max est mol")
# A capital letter with a dot is an initial, unless one of these words stands before it.
_LETTERED = re.compile(
    r"(?:vitamins?|types?|class|classes|category|categories|groups?|grades?|appendix|annex|hepatitis|section|"
    r"factor|levels?|parts?|table|schedule|plan|zones?|division|point|compounds?|products?|reagents?|drugs?|"
    r"and|or|and/or|than|is|=|isomers?|option|step|phase)\s+$",
    re.IGNORECASE,
)
_STARTERS = _words(
    "the this that these those it its in if a an there when where for however but and he she they we you no not do "
    "keep wash avoid on at as by to with after before during while all any each both such from since although "
    "under some most many other use see store remove call get seek rinse wear never always i our their his "
    "her"
)
_SMALL_INITIALS = frozenset("cpvnt")  # "c. 1900", "p. 12", "v. 2"
_WORD_BEFORE = re.compile(r"[A-Za-z](?:[A-Za-z]|\.(?=[A-Za-z]))*$")
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
# A sentence may begin in small letters where a chemical name or pH does.
_SMALL_START = re.compile(
    r"(?:[nomp]|sec|tert|cis|trans|iso|alpha|beta|gamma|meta|para|ortho|syn|anti|endo|exo|[dl])-[A-Za-z(]|pH\b|[NO],|mRNA\b|[α-ω]-"
)
_LIST_MARK = re.compile(
    r"\W*(?:\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[A-Za-z]|[ivxIVX]{1,5}|[一二三四五六七八九十]{1,3})|"
    r"(?i:sections?|sec|part|chapter|article|art|step|tables?|figures?|figs?|appendix|annex|§+|notes?|rule|item|class|"
    r"phase|example|case|question|q|exhibit|schedule|title|subpart|paragraph)"
    r"(?:\W{0,3}\d[\d.\-A-Za-z]{0,8}|\W{1,3}[A-Z](?:[\d.\-][\d.\-A-Za-z]{0,6})?|\W{1,3}[IVXL]{1,6}))"
)
_INLINE_MARK = re.compile(
    r"(?:[：；]\s*|[:;]\s+)[(（]?\d{1,2}$"
)  # a list number inside a line: "Do this: 1. Wash"
# What follows a quotation that the sentence goes on after: who said it. A colon announces the next quotation.
_SPOKEN = re.compile(
    r"[，、,；]|\s?[^\s。！？，“”\n]{0,5}(?:说|问|道|喊|叫|答|表示|指出|认为)[道着]?(?:[，。！？,；…\n]|$)"
)
_SOFT_WRAP = 50  # a line at least this long, broken before a small letter, was wrapped by its editor
# Before a Chinese word without a blank between, a dot ends a sentence behind a quantity, a figure's number, a code.
_QUANTITY = re.compile(
    r"\d\s?(?:[kmµμn]?g|[mµμ]?[Ll]|[ckmnµμ]?m|[mk]?Pa|[km]?J|[mk]?[VAW]|m?mol|[kM]?Hz|bar|atm|pp[mb]|rpm|min|[shdtKMN])"
    r"(?:/(?:[kmµμ]?g|[mµμ]?L|[mk]?mol|[cdkm]?m[23]?|min|[shdK]))*$"
)
_NUMBERED = re.compile(r"[图表式附录例节版款第]\s{0,2}\d{1,3}$|\d{4}$")
_CODE = re.compile(r"(?:[A-Za-z][.\-]?\d|\d[.\-/]\d)[\dA-Za-z]*$")

_STOPS = "。！？｡．!?.…"
_CLOSERS = "”’」』）】》〉〕］)\\]}\"'＂"
_BREAKS = "\n\r\u2028\u2029\x0b\x0c\x85"
_CLOSED = rf"[{_CLOSERS}]*+(?:\[\d[\d,–\-\s]{{0,10}}\])*+"
_STOP = re.compile(rf"(?P<stop>[{_STOPS}]++)(?P<close>{_CLOSED})(?P<blank>[^\S\n\r]*+)")
_BLANKS = re.compile(r"\s*")
_ENDS_ASIDE = re.compile(rf"[{_STOPS}]+[{_CLOSERS}]+$")


def _plain_dot() -> str:
    """Behind a dot: what says that a word in small letters that abbreviates nothing, or a bracket, stood before it.

    A capital or a line's end must follow, reference marks between.
    """
    known = {word.rpartition(".")[2] for word in _NEVER | _PERHAPS | _COUNTED | _ONLY_NUMBERS}
    endings = [r"(?<=[)%\]]\.)"]
    for length in (2, 3, 4):
        same = "|".join(sorted(word for word in known if len(word) == length))
        endings.append(rf"(?<=[\s,][a-z]{{{length}}}\.)(?<!(?:{same})\.)(?<![ivx]{{{length}}}\.)")
    long = "|".join(sorted({word[-5:] for word in known if len(word) >= 5}))
    endings.append(rf"(?<=[a-z]{{5}}\.)(?<!(?:{long})\.)(?<![ivx]{{5}}\.)")
    return rf"(?:{'|'.join(endings)})(?:\[\d{{1,3}}\])*+(?:[^\S\n\r]++(?=[A-Z])|[^\S\n\r]*+[\n\r]\s*+)"


# The first set tells the engine what to look for; which of its characters it was, the look-behinds tell.
_SCAN = re.compile(
    rf"[{_STOPS}{_BREAKS}（(](?:"
    rf"(?P<plain>(?<=[{_BREAKS}])(?:(?<=\r)\n)?+(?![a-z])\s*+"
    rf"|(?<=[。！？｡])(?![{_STOPS}{_CLOSERS}，、；：,;\[])\s*+"
    rf"|(?<=\.){_plain_dot()})"
    rf"|(?P<line>(?<=[{_BREAKS}])(?:(?<=\r)\n)?+)"
    r"|(?P<aside>(?<=（)[^（）\n]{0,300}）|(?<=\()[^()\n]{0,300}\))"
    rf"|(?<=[{_STOPS}])(?:(?<!\.)|(?![A-Za-z0-9]))[{_STOPS}]*+{_CLOSED}[^\S\n\r]*+)"
)
_PLAIN, _LINE, _ASIDE = (_SCAN.groupindex[name] for name in ("plain", "line", "aside"))


def split_sentences(text: str) -> list[Piece]:
    """Cut a text into sentences: ordered spans in code points that tile it; [] for an empty text."""
    if not text:
        return []
    cutter = _Cutter(text)
    blanks = _BLANKS.match
    pieces: list[Piece] = []
    start = 0
    first: int = blanks(text).end()  # type: ignore[union-attr]  # leading blanks belong to the first sentence
    for match in _SCAN.finditer(text, first):
        if match.start() < start:
            continue  # it stands among the blanks behind the last piece
        kind = match.lastindex
        if kind == _PLAIN:
            end = match.end()
        else:
            if kind == _LINE:
                cut = None if cutter.soft_wrap(match.start(), start) else match.end()
            elif kind == _ASIDE:
                cut = cutter.after_aside(match, start)
            else:
                cut = cutter.after_stop(match.start(), start)
            if cut is None:
                continue
            end = blanks(text, cut).end()  # type: ignore[union-attr]
        pieces.append((start, end))
        start = end
    if start < len(text):
        pieces.append((start, len(text)))
    return pieces


class _Cutter:
    """Decides for each doubtful candidate whether a sentence ends there: the offset behind it, or None."""

    def __init__(self, text: str) -> None:
        self.text = text

    def soft_wrap(self, line: int, start: int) -> bool:
        """Whether a line end before a small letter was put in by an editor, the sentence going on."""
        if line - start < _SOFT_WRAP or line - self.text.rfind("\n", 0, line) <= _SOFT_WRAP:
            return False
        before = self.text[line - 1]
        return before.isascii() and (before.isalnum() or before in ",-;")

    def after_aside(self, match: re.Match[str], start: int) -> int | None:
        """A stop inside a bracketed aside counts only at its end, where the sentence does not go on behind it."""
        text, low, high = self.text, *match.span()
        if text[high - 2] not in _STOPS + _CLOSERS:
            return None
        found = _ENDS_ASIDE.search(text, low, high)
        if found is None or found.start() < start:
            return None
        stop: re.Match[str] = _STOP.match(text, found.start())  # type: ignore[assignment]
        end = self._closed_end(stop, start)
        if end < high:
            return None
        before = text[max(start, low - 200) : low].rstrip()[-1:]
        if before and before not in "。！？.!?：:":
            after = text[_BLANKS.match(text, end).end() :][:1] if end < len(text) else ""  # type: ignore[union-attr]
            if after and not after.isupper() and "\n" not in text[end : end + 2]:
                return None
        return self._after(stop, start, end)

    def after_stop(self, at: int, start: int) -> int | None:
        """A stop, or a run of them, with what closes behind it."""
        match: re.Match[str] = _STOP.match(self.text, at)  # type: ignore[assignment]
        return self._after(match, start, self._closed_end(match, start))

    def _after(self, match: re.Match[str], start: int, end: int) -> int | None:
        stop = match["stop"]
        if stop[0] in "。！？｡":
            return self._after_cjk(match, end)
        if stop.strip(".．…") == "" and stop not in (".", "．"):
            return self._after_ellipsis(match, end)
        if stop[0] in ".．" and len(stop) == 1:
            return self._after_dot(match, start, end)
        return self._after_mark(match, end)

    def _closed_end(self, match: re.Match[str], start: int) -> int:
        """End of the stop with its closers; a straight quote closes only when one is open."""
        end = match.end("stop")
        for char in match["close"]:
            if char in "\"'＂" and self.text.count(char, start, end) % 2 == 0:
                break
            end += 1
        return end

    def _after_cjk(self, match: re.Match[str], end: int) -> int | None:
        closed = self.text[match.end("stop") : end]
        quoted = any(char in '”’」』"' for char in closed)
        if quoted and match["stop"][-1] in "！？" and _SPOKEN.match(self.text, end):
            return None
        if not closed and self.text[end : end + 1] in ("，", "、", "；", "：", ",", ";"):
            return None
        return end

    def _after_ellipsis(self, match: re.Match[str], end: int) -> int | None:
        """Three dots end a sentence before a capital, at a line's end, or behind a closing quote."""
        following = self.text[match.end() : match.end() + 1]
        if not following or following in "\r\n":
            return end
        if any(char in "”」』" for char in self.text[match.end("stop") : end]):
            return None if _SPOKEN.match(self.text, end) else end
        return end if match["blank"] and following.isupper() else None

    def _after_mark(self, match: re.Match[str], end: int) -> int | None:
        """ASCII ! and ?: an end before a blank, a line's end or a Chinese character."""
        following = self.text[end : end + 1]
        if (
            following
            and not following.isspace()
            and not _is_cjk(following)
            and following not in '“「『《（【"'
        ):
            return None
        if end > match.end("stop") and _SPOKEN.match(self.text, end):
            return None
        after = self.text[match.end() : match.end() + 1]
        return None if following.isspace() and after.isascii() and after.islower() else end

    def _after_dot(self, match: re.Match[str], start: int, end: int) -> int | None:
        text, dot = self.text, match.start("stop")
        following = text[end : end + 1]
        before = text[dot - 1 : dot] if dot > start else ""
        if following and not following.isspace():
            bracketed = end > dot + 1 and text[end - 1] in "）)" and _is_cjk(following)
            return end if bracketed or self._dot_as_cjk_stop(dot, start, before, following) else None
        if _LIST_MARK.fullmatch(text, start, dot):
            # a mark alone on its line is cut by the line break, not by its dot
            return None
        after_at: int = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
        after = text[after_at : after_at + 24]
        if not after or "\n" in text[end:after_at] or "\r" in text[end:after_at]:
            return end
        if self._abbreviated(dot, start, after, closed=end > dot + 1):
            return None
        if before.isdigit() and _INLINE_MARK.search(text, max(start, dot - 8), dot):
            return None
        if after[0].isascii() and after[0].islower() and not _SMALL_START.match(after):
            return None
        if after[0] in ".,;:，；：、)）]=<>±×":
            return None
        return end

    def _dot_as_cjk_stop(self, dot: int, start: int, before: str, following: str) -> bool:
        """A dot without a blank after it ends a sentence only between Chinese words or after a word."""
        if following in "“「『《【":
            return True
        if not _is_cjk(following):
            return False
        if _LIST_MARK.fullmatch(self.text, start, dot):
            return False
        if _is_cjk(before) or (before and before in "”」』）)%℃"):
            return True
        low = max(start, dot - 24)
        if any(form.search(self.text, low, dot) for form in (_NUMBERED, _QUANTITY, _CODE)):
            return True
        word = _WORD_BEFORE.search(self.text, low, dot)
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
        if len(token) == 1:
            return self._initial(token, word.start(), start, after)
        if closed and key != "al":
            return False
        if key in _ONLY_NUMBERS:
            return after[0].isdigit()
        if key in _COUNTED:
            return after[0].isdigit() or bool(re.match(r"[A-Z]?\d|[A-Z]\b|[IVX]+\b", after))
        if key in _NEVER:
            return True
        dotted = _DOTTED.fullmatch(token) is not None
        if key not in _PERHAPS and not dotted:
            return False
        if after[0].isdigit():
            return key in _BEFORE_NUMBERS or key not in _PERHAPS
        if key == "al" and after[0] in "([":
            return True
        if _is_cjk(after[0]):
            return True
        first = re.match(r"[A-Za-z]+", after)
        return first is not None and not (first[0][0].isupper() and first[0].lower() in _STARTERS)

    def _initial(self, token: str, at: int, start: int, after: str) -> bool:
        text = self.text
        if not token.isupper():
            return (
                token in _SMALL_INITIALS and after[0].isascii() and (after[0].isdigit() or after[0].islower())
            )
        if text[at - 1 : at].isalnum() or text[at - 1 : at] in ("-", "°", "/", "º"):
            return False  # "20°C.", "pH 7-B."
        if text[at - 1 : at].isspace() and text[at - 2 : at - 1] in ("°", "º"):
            return False
        if _LETTERED.search(text, max(start, at - 24), at) or re.search(
            r"\d\s?$", text[max(start, at - 3) : at]
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

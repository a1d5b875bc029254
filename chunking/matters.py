"""What a question asks for in the terms of data sheets, and where a text gives that under its label.

A data sheet says "灭火剂：泡沫" or "9.3 Flash point" where people ask how to put out a fire or, in
the other language, 闪点. The labels come from outside (one lexicon serves extraction and
questions); ``data/asked.toml`` adds the ways in which people ask. What is recognised is
exact: a label with a modifier the lexicon does not know (慢性毒性 for 毒性) is no match.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from chunking.sentences import split_sentences
from chunking.terms import terms
from corpus.names import simplified

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_DIGIT = re.compile(r"\d")
_MEASURED = "measurement."
# Measurements that are stated in words.
_WORDED = frozenset({"measurement.appearance", "measurement.odour", "measurement.solubility_in_water"})
_TAKEN_OUT = "；"  # stands where a substance was named
# What may stand before a label in a question; any other word may change what is asked ("chronic toxicity").
_BEFORE_EN = re.compile(
    r"an?|the|of|its|it|their|and|or|what|whats|which|is|are|give|me|tell|show|find|list|s|has|have|under|per|for|how"
    r"|high|low|about|normal|typical|exact|stated|usual|approximate"
)
_BEFORE_ZH = "的之其和与及或是有；，。、？：,?;:"
_QUERIES = ("多少", "什么", "哪些", "查", "查询", "请问", "具体", "大概", "大约", "准确", "一般", "正常")
_NOTHING = re.compile(
    r"\W*(?:无(?:资料|数据|可用数据|信息)|暂?无|不适用|未(?:确定|知|提供)|no (?:data|information)(?: (?:is )?available)?"
    r"|not (?:available|applicable|determined|known)|n[./]?a\.?|none|unknown)\W*",
    re.IGNORECASE,
)
_STATED = re.compile(
    r"\s*(?:the |its |其|该品|本品|它的|该物质的)?(?P<label>[^,;:，；：。\d]{2,40}?)\s*(?:[(（][^()（）]*[)）])?\s*"
    r"(?:is|was|are|约?为|是)\s*(?=[^,;，；。]{0,20}\d)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s*#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)、）])\s*\S")
_RULE = re.compile(r"[|\s:-]*-{3}[|\s:-]*")
_MOST = 1200  # characters of what stands under one label


@dataclass(frozen=True)
class _Way:
    """How a matter is asked for."""

    asked: tuple[re.Pattern[str], ...] = ()
    not_with: tuple[re.Pattern[str], ...] = ()
    also: tuple[str, ...] = ()
    by_label: bool = False


@dataclass(frozen=True)
class Lexicon:
    """Labels of data sheets. ``labels``: label in normal form → matter ("measurement.flash_point").

    ``matter_of``: the matter of a label as a text writes it ("9.3 Flash point:"), None for other words.
    """

    labels: Mapping[str, str]
    matter_of: Callable[[str], str | None]

    def asked(self, question: str, names: Iterable[str] = ()) -> Asked:
        """What a question asks for; no matters where none is recognised.

        ``names``: folded names of the substances, which are no part of what is asked. Where the
        question has none of them, the value of whatever it names is wanted, and of nothing else.
        """
        plain = _plain(question)
        for name in sorted(names, key=len, reverse=True):
            bounded = rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])" if name.isascii() else re.escape(name)
            plain = re.sub(bounded, _TAKEN_OUT, plain)
        matters = [
            matter
            for matter, way in _ways().items()
            if any(p.search(plain) for p in way.asked) and not any(p.search(plain) for p in way.not_with)
        ]
        if matters:  # what is asked in whole phrases is not asked again by a label in it
            return Asked(self, tuple(matters))
        found = [(matter, _modifier(plain[:start])) for matter, start, _ in self._by_label(plain)]
        modifiers = [modifier for _, modifier in found if modifier]
        if found and _TAKEN_OUT not in plain:  # whatever else the question names has to be in the answer
            rest = plain
            for _, start, end in reversed(self._by_label(plain)):
                rest = f"{rest[:start]} {rest[end:]}"
            modifiers += terms(rest, singles=False) or [_TAKEN_OUT]
        return Asked(
            self,
            tuple(dict.fromkeys(matter for matter, modifier in found if not modifier)),
            tuple(dict.fromkeys(modifiers)),
        )

    def words(self, matters: Iterable[str], language: str) -> tuple[str, ...]:
        """Labels of matters in a language (zh: Chinese, else those without Chinese), for a search."""
        wanted = _with_others(matters)
        return tuple(
            label for label, matter in self.labels.items()
            if matter in wanted and bool(_CJK.search(label)) == language.startswith("zh")
        )  # fmt: skip

    def spans(self, text: str, matters: Iterable[str]) -> list[tuple[str, int, int, int]]:
        """(matter, start of its label, start of its value, end) in a text; labels without a value are left out."""
        wanted = _with_others(matters)
        return [
            (matter, start, middle, end)
            for matter, start, middle, end in self._labelled(text)
            if matter in wanted and _says(text[middle:end], matter)
        ]

    @cached_property
    def _searched(self) -> list[tuple[re.Pattern[str], str]]:
        found = []
        for label, matter in sorted(self.labels.items(), key=lambda pair: (-len(pair[0]), pair[0])):
            if not (matter.startswith(_MEASURED) or _ways().get(matter, _Way()).by_label):
                continue
            if label == "form":
                continue
            bounded = (
                re.escape(label)
                if _CJK.search(label)
                else rf"(?<![a-z0-9]){re.escape(label.removesuffix('s'))}s?(?![a-z0-9])"
            )
            found.append((re.compile(bounded), matter))
        return found

    def _by_label(self, plain: str) -> list[tuple[str, int, int]]:
        """Matters whose labels stand in a question, with the place; the longest label counts."""
        taken: list[tuple[int, int, str]] = []
        for pattern, matter in self._searched:
            for match in pattern.finditer(plain):
                if any(match.start() < end and match.end() > start for start, end, _ in taken):
                    continue
                taken.append((*match.span(), matter))
        return [(matter, start, end) for start, end, matter in sorted(taken)]

    # --- labels in a text ---------------------------------------------------------------------------

    def _labelled(self, text: str) -> Iterator[tuple[str, int, int, int]]:
        """(matter, start of the label, start of its value, end)."""
        lines = _lines(text)
        for at, (start, end) in enumerate(lines):
            line = text[start:end]
            if line.lstrip().startswith("|"):
                yield from self._in_row(text, lines, at)
                continue
            colon = re.search(r"[:：]", line)
            if colon and line[colon.end() :].strip() and (matter := self.matter_of(line[: colon.start()])):
                yield matter, start, start + colon.end(), end
            elif matter := self.matter_of(line):
                below = _below(text, lines, at)
                if below is not None:
                    yield matter, start, below[0], below[1]
            else:
                yield from self._in_prose(text, start, end)

    def _in_prose(self, text: str, start: int, end: int) -> Iterator[tuple[str, int, int, int]]:
        """Sentences that begin with a measurement's name and give its value: "The flash point is …", 其闪点为…."""
        for first, last in split_sentences(text[start:end]):
            match = _STATED.match(text, start + first, start + last)
            matter = self.matter_of(match["label"]) if match else None
            if match and matter and matter.startswith(_MEASURED):
                sentence = text[start + first : start + last]
                begin = start + first + len(sentence) - len(sentence.lstrip())
                yield matter, begin, match.end(), begin + len(sentence.strip())

    def _in_row(
        self, text: str, lines: list[tuple[int, int]], at: int
    ) -> Iterator[tuple[str, int, int, int]]:
        cells = list(_cells(text, *lines[at]))
        for number, (start, end) in enumerate(cells):
            matter = self.matter_of(text[start:end])
            if matter is None:
                continue
            if number + 1 < len(cells):
                value = cells[number + 1]
                if self.matter_of(text[slice(*value)]) is None:
                    yield matter, start, value[0], value[1]
            elif (below := _below(text, lines, at)) is not None:
                yield matter, start, below[0], below[1]


@dataclass(frozen=True)
class Asked:
    """What a question asks for, and the lexicon that finds it in a text.

    ``modifiers``: words before a label that the lexicon does not know with it.
    """

    lexicon: Lexicon
    matters: tuple[str, ...] = ()
    modifiers: tuple[str, ...] = ()

    def speaks(self, text: str) -> bool:
        """Whether a text may answer: it has the words without which it speaks of something else (慢性毒性)."""
        plain = _plain(text)
        return all(modifier in plain for modifier in self.modifiers)

    @property
    def measured(self) -> bool:
        """Whether only values are asked for."""
        return all(matter.startswith(_MEASURED) for matter in self.matters)

    def words(self, language: str) -> tuple[str, ...]:
        """As ``Lexicon.words``."""
        return self.lexicon.words(self.matters, language)

    def spans(self, text: str) -> list[tuple[str, int, int, int]]:
        """As ``Lexicon.spans``."""
        return self.lexicon.spans(text, self.matters)


def _with_others(matters: Iterable[str]) -> set[str]:
    return {m for matter in matters for m in (matter, *_ways().get(matter, _Way()).also)}


def _says(value: str, matter: str) -> bool:
    """Whether a value is stated: not "no data", and a number where a number is asked for."""
    if not value.strip() or _NOTHING.fullmatch(value.strip().rstrip("。.")):
        return False
    return not matter.startswith(_MEASURED) or matter in _WORDED or bool(_DIGIT.search(value))


def _modifier(before: str) -> str:
    """The word directly before a label where it may change what the label means (慢性, "chronic"), else ""."""
    word = re.search(r"([a-z0-9'’-]+)\s+$", before)
    if word is not None:
        plain = word[1].strip("'’")
        return "" if _BEFORE_EN.fullmatch(plain) else plain
    before = before.rstrip()
    if not before or before[-1] in _BEFORE_ZH or before.endswith(_QUERIES):
        return ""
    return re.split(r"[的之；，。、\s]", before)[-1][-2:]


def _lines(text: str) -> list[tuple[int, int]]:
    found, start = [], 0
    for line in text.split("\n"):
        found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def _cells(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Filled cells of a table row, without the blanks around them."""
    for match in re.finditer(r"[^|]+", text[start:end]):
        cell = match.group()
        if cell.strip():
            begin = start + match.start() + len(cell) - len(cell.lstrip())
            yield begin, begin + len(cell.strip())


def _below(text: str, lines: list[tuple[int, int]], at: int) -> tuple[int, int] | None:
    """What stands under a label line: a paragraph, a whole list or a whole table; None before a heading."""
    row = text[slice(*lines[at])].lstrip().startswith("|")
    first = at + 1
    while first < len(lines) and not text[slice(*lines[first])].strip():
        first += 1
    if first == len(lines):
        return None
    line = text[slice(*lines[first])]
    if _HEADING.match(line) or (row and first == at + 1):  # the next row of the same table is another matter
        return None
    last = first
    kind = "|" if line.lstrip().startswith("|") else "item" if _ITEM.match(line) else ""
    while kind and last + 1 < len(lines):
        following = text[slice(*lines[last + 1])]
        same = following.lstrip().startswith("|") if kind == "|" else bool(_ITEM.match(following))
        if not same or lines[last + 1][1] - lines[first][0] > _MOST:
            break
        last += 1
    return lines[first][0], lines[last][1]


def _plain(text: str) -> str:
    return " ".join(simplified(unicodedata.normalize("NFKC", text)).casefold().split())


_known: dict[str, _Way] = {}


def _ways() -> Mapping[str, _Way]:
    if not _known:
        data: dict[str, Any] = tomllib.loads((files("chunking") / "data" / "asked.toml").read_text("utf-8"))
        for family, names in data.items():
            for name, way in names.items():
                _known[f"{family}.{name}"] = _Way(
                    tuple(re.compile(p) for p in way.get("asked", ())),
                    tuple(re.compile(p) for p in way.get("not_with", ())),
                    tuple(way.get("also", ())),
                    bool(way.get("by_label")),
                )
    return _known

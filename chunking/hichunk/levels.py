"""The levels skill: which lines begin a division of the document, and how deep (HiChunk, section 4).

A model sees ``index @ sentence`` lines without heading marks, residual lines of
earlier text first. One bad point loses only that point, never the window.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel

from chunking.borders import headings_in, opening_limit, opening_odds
from chunking.headings import Heading, heading_shape
from chunking.nesting import ranks
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

Point = tuple[int, int]  # (line or sentence index, level 1…10)

MAX_LEVEL = 10
_NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class LevelPoints(BaseModel):
    """Chunk points as the model wrote them; read with :func:`salvage`.

    Each entry may be {"index", "level"}, a pair, or a line "index, Level Two, True".
    """

    points: list[Any]


@dataclass(frozen=True)
class LevelsIn:
    """Lines as the model sees them; the first ``residual`` ones are known text that gets no points.

    ``gaps``: for the rules, the embedding distance before each line (0 inside a paragraph).
    """

    lines: tuple[str, ...]
    residual: int
    language: str
    gaps: tuple[float, ...] = field(default=(), repr=False)


RULES_PROMPT = {"zh": 99, "en": 68}
"""Tokens that the rules leave free in a window. Fixed, so that no change of a prompt file moves an offline result."""


class AssignLevels(Skill[LevelsIn, LevelPoints]):
    """Numbered lines to chunk points with levels. Offline: heading shape and embedding gaps."""

    name: ClassVar[str] = "assign_levels"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = LevelPoints
    prompts: ClassVar[Prompts] = Prompts(__package__, "assign_levels")

    def values(self, given: LevelsIn) -> dict[str, Quoted]:
        """The numbered lines; one sentence is one line, whatever blanks it holds."""
        lines = "\n".join(f"{i} @ {' '.join(line.split())}" for i, line in enumerate(given.lines))
        return {"lines": Quoted(lines, "lines")}

    def check(self, given: LevelsIn, answer: LevelPoints) -> Verdict:
        """Ask again only when no point can be used."""
        kept, bad = salvage(answer.points, len(given.lines))
        if not kept:
            return Verdict.ask_again("no usable point: " + ("; ".join(bad[:5]) or "the list is empty"))
        return ACCEPT

    def offline(self, given: LevelsIn) -> LevelPoints:
        """Levels from numbering styles in order of depth, then lines where layout and gaps make a division likely."""
        return LevelPoints(points=[{"index": i, "level": level} for i, level in _rule_points(given)])


def prompt_around(language: str) -> str:
    """All of a prompt but its lines, whose size counts in the window.

    A line without words stands in it, so that what the counter rounds off where
    the last line meets the fence is covered.
    """
    messages = AssignLevels().messages(LevelsIn(("",), 0, language))
    return "\n".join(message.content for message in messages)


def salvage(points: Sequence[Any], lines: int) -> tuple[list[Point], list[str]]:
    """Usable points with strictly increasing indices, and what is wrong with the others.

    The longest increasing run is kept, so that one stray index costs one point.
    """
    read: list[Point] = []
    bad: list[str] = []
    for entry in points:
        point = _read(entry)
        if point is None:
            bad.append(f"not a point: {str(entry)[:80]}")
        elif not 0 <= point[0] < lines:
            bad.append(f"index {point[0]} is out of range")
        elif not 1 <= point[1] <= MAX_LEVEL:
            bad.append(f"level {point[1]} is not in 1…{MAX_LEVEL}")
        else:
            read.append(point)
    kept = _longest_increasing(read)
    left = list(read)
    for point in kept:
        left.remove(point)
    return kept, bad + [f"index {index} is out of order" for index, _ in left]


def _read(entry: Any) -> Point | None:
    if isinstance(entry, dict):
        return _pair(entry.get("index"), entry.get("level"))
    if isinstance(entry, (list, tuple)) and len(entry) >= 2:
        return _pair(entry[0], entry[1])
    if isinstance(entry, str):
        parts = [part.strip() for part in re.split(r"[,，@\t]", entry)]
        return _pair(parts[0], parts[1]) if len(parts) >= 2 else None
    return None


def _pair(index: Any, level: Any) -> Point | None:
    numbers = [_whole(index), _whole(level)]
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value == int(value) else None
    if not isinstance(value, str):
        return None
    word = value.strip().lower().removeprefix("level").strip()
    if word in _NAMES:
        return _NAMES.index(word) + 1
    return int(word) if re.fullmatch(r"\d{1,9}", word) else None


def _longest_increasing(points: Sequence[Point]) -> list[Point]:
    """Longest subsequence with strictly increasing indices; of equals the one that ends earliest."""
    tails: list[int] = []
    tail_at: list[int] = []
    before = [-1] * len(points)
    for i, (index, _) in enumerate(points):
        place = bisect_left(tails, index)
        if place:
            before[i] = tail_at[place - 1]
        if place == len(tails):
            tails.append(index)
            tail_at.append(i)
        elif index < tails[place]:
            tails[place], tail_at[place] = index, i
    chain: list[Point] = []
    at = tail_at[-1] if tail_at else -1
    while at >= 0:
        chain.append(points[at])
        at = before[at]
    return chain[::-1]


# --- the offline answer --------------------------------------------------------------------------------------


def _rule_points(given: LevelsIn) -> list[Point]:
    heads = headings_in(given.lines)
    points = _nested(heads, given.lines)
    return _with_openings(points, given, heads)


def _nested(heads: dict[int, Heading], lines: Sequence[str]) -> list[Point]:
    """Levels by nesting: a kind seen above closes what is finer, a new kind goes one deeper."""
    points: list[Point] = []
    titled = bool(lines) and _is_title(lines[0], any(heads))
    floor = 1 if titled else 0
    rank = ranks({i: head for i, head in heads.items() if i or not titled})
    stack: list[int] = []
    for i in sorted(heads):
        if i == 0 and titled:
            points.append((0, 1))
            continue
        while stack and stack[-1] >= rank[i]:
            stack.pop()
        stack.append(rank[i])
        points.append((i, min(floor + len(stack), MAX_LEVEL)))
    if lines and (not points or points[0][0] != 0):
        points.insert(0, (0, 1))
    return points


def _is_title(line: str, headed: bool) -> bool:
    """Whether the first line is the document's title: short, without number or stop, with headings below."""
    shape = heading_shape(line)
    return headed and (shape.style == "plain" if shape else len(line.strip()) == 1 and line.strip().isalpha())


def _with_openings(points: Sequence[Point], given: LevelsIn, heads: dict[int, Heading]) -> list[Point]:
    """Points where layout and gaps make a division likely, one level below the heading they are under.

    A text that has headings says with them where its divisions are: there only
    what is clear counts besides.
    """
    if not given.gaps:
        return list(points)
    odds = opening_odds(given.lines, given.gaps)
    limit = opening_limit(heads, given.lines)
    ends = [*[index for index, _ in points[1:]], len(given.lines)]
    added = [
        (i, min(level + 1, MAX_LEVEL))
        for (start, level), end in zip(points, ends, strict=True)
        for i in range(start + 2, end)  # a heading keeps the line below it
        if odds[i] > limit
    ]
    return sorted([*points, *added])

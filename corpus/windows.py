"""Sliding windows over a document's blocks, cut where neither a row nor a sentence is split."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SENTENCE_END = re.compile(r"(?<=[。！？!?；])(?=[^\s”’」』）)\]])|(?<=[.!?;；。])\s+(?=\S)")
_ROWS = re.compile(r"\n+")
_BY_LINE = ("table", "list", "code", "definition")


@dataclass(frozen=True)
class Unit:
    """The smallest piece that a window holds: a block, or a row or sentence of a block that is too long.

    ``start``/``end``: code points of the cleaned text; ``gap``: what separates it
    from the unit before ("", " ", one line feed, two line feeds).
    """

    index: int
    start: int
    end: int
    text: str
    kind: str
    path: str
    gap: str
    tokens: int


_KINDS = {"row": "table", "item": "list", "preformatted": "code", "caption": "paragraph"}


def block_kind(text: str, kind: str = "") -> str:
    """heading, table, list, code, definition, quote or paragraph: as the cleaner says, else by form."""
    if kind and kind != "paragraph":
        return _KINDS.get(kind, kind)
    if re.match(r"#{1,6} ", text) and "\n" not in text:
        return "heading"
    if text.startswith("|"):
        return "table"
    if text.startswith("```"):
        return "code"
    if re.match(r" {2,}\S| *(?:[-*+]|\d{1,3}[.)]) ", text):
        return "list"  # an indented line goes on with the entry above it
    return "paragraph"


def split_units(
    text: str, blocks: Sequence[Mapping[str, Any]], limit: int, count: Callable[[str], int]
) -> list[Unit]:
    """Units of a cleaned text in order; together with their gaps they hold every visible character.

    ``blocks``: {"start", "end", "path", "kind"} in order; text outside them that
    is not blank becomes units of its own, so that nothing can be lost.
    """
    units: list[Unit] = []
    end_before = 0
    for start, end, kind, path in _whole_cover(text, blocks):
        for piece_start, piece_end in _pieces(text, start, end, kind, limit, count):
            gap = _gap(text[end_before:piece_start]) if units else ""
            piece = text[piece_start:piece_end]
            units.append(
                Unit(len(units), piece_start, piece_end, piece, kind, path, gap, max(1, count(piece)))
            )
            end_before = piece_end
    return units


def _whole_cover(text: str, blocks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, str, str]]:
    position = 0
    for block in [*blocks, {"start": len(text), "end": len(text)}]:
        start, end = max(int(block["start"]), position), int(block["end"])
        yield from _trimmed(text, position, start, "", "")
        yield from _trimmed(text, start, end, str(block.get("kind", "")), str(block.get("path", "")))
        position = max(position, end)


def _trimmed(text: str, start: int, end: int, kind: str, path: str) -> Iterator[tuple[int, int, str, str]]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        # an indent belongs to a list or code block: only line feeds are cut off before it
        lead = len(piece) - len(piece.lstrip("\r\n"))
        tail = len(piece) - len(piece.rstrip())
        yield start + lead, end - tail, block_kind(piece[lead:], kind), path


def _pieces(
    text: str, start: int, end: int, kind: str, limit: int, count: Callable[[str], int]
) -> Iterator[tuple[int, int]]:
    if count(text[start:end]) <= limit:
        yield start, end
        return
    pattern = _ROWS if kind in _BY_LINE else _SENTENCE_END
    position = start
    for match in pattern.finditer(text, start, end):
        if text[position : match.start()].strip():
            yield position, match.start()
            position = match.end()
    if text[position:end].strip():
        yield position, end


def _gap(between: str) -> str:
    feeds = between.count("\n")
    if feeds:
        return "\n\n" if feeds > 1 else "\n"
    return " " if between else ""


def windows(units: Sequence[Unit], size: int, overlap: int) -> list[tuple[int, int]]:
    """Ranges of units, each at most ``size`` tokens (one unit at least), sharing up to ``overlap`` tokens."""
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(units):
        end, tokens = start, 0
        while end < len(units) and (end == start or tokens + units[end].tokens <= size):
            tokens += units[end].tokens
            end += 1
        ranges.append((start, end))
        if end == len(units):
            break
        following, shared = end, 0
        while following - 1 > start and shared + units[following - 1].tokens <= overlap:
            following -= 1
            shared += units[following].tokens
        start = following
    return ranges

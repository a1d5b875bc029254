"""Headings of refined Markdown: levels rebuilt, sections with their place in the 16 SDS sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from corpus.sections import sds_section, sds_sections, split_heading

_HEADING = re.compile(r"^(#{1,6}) +(\S.*)$")
_TABLE_ROW = re.compile(r"^\|.*\|\s*$")


def level_of(line: str) -> int:
    """Level 1-6 of a Markdown heading, 0 for anything else (several lines included)."""
    line = line.strip()
    if not line.startswith("#") or "\n" in line:
        return 0
    match = _HEADING.match(line)
    return len(match[1]) if match else 0


def heading_text(line: str) -> str:
    """Words of a heading without its marks and emphasis."""
    return re.sub(r"[*_`]+", "", line.strip().lstrip("#")).strip()


def rebuild_levels(blocks: Sequence[str]) -> list[str]:
    """Blocks with heading levels that start at 1 and never skip one; the words stay.

    The numbered headings of a data sheet get one common level, whatever marks
    the page gave them. Idempotent.
    """
    where = [i for i, block in enumerate(blocks) if level_of(block)]
    levels = [level_of(blocks[i]) for i in where]
    headings = [heading_text(blocks[i]) for i in where]
    numbered = [
        section is not None and split_heading(heading)[0] is not None
        for heading, section in zip(headings, sds_sections(headings), strict=True)
    ]
    for _ in range(8):
        rebuilt = _stacked(_aligned(levels, numbered))
        if rebuilt == levels:
            break
        levels = rebuilt
    result = list(blocks)
    for i, level in zip(where, levels, strict=True):
        result[i] = f"{'#' * level} {blocks[i].strip().lstrip('#').strip()}"
    return result


def _aligned(levels: Sequence[int], numbered: Sequence[bool]) -> list[int]:
    least = min((level for level, n in zip(levels, numbered, strict=True) if n), default=1)
    return [least if n else level for level, n in zip(levels, numbered, strict=True)]


def _stacked(levels: Sequence[int]) -> list[int]:
    stack: list[int] = []
    rebuilt: list[int] = []
    for level in levels:
        while stack and stack[-1] >= level:
            stack.pop()
        stack.append(level)
        rebuilt.append(len(stack))
    return rebuilt


def _row_heading(line: str) -> str:
    """The heading that a table row opens with, else "".

    Its words are the only ones of the row (one cell, or the same in each), or its
    first cell goes on after a semicolon with what stands under the heading.
    """
    if not _TABLE_ROW.match(line):
        return ""
    cells = [heading_text(cell) for cell in line.strip().strip("|").split("|")]
    filled = {cell for cell in cells if cell}
    if len(filled) != 1:
        return ""
    return re.split(r"[;；]", filled.pop(), maxsplit=1)[0].strip()


def sections_of(text: str) -> list[dict[str, Any]]:
    """Sections that tile a refined text: {"start", "end", "heading", "level", "sds"}.

    A section runs from its heading to the next one; text before the first has
    level 0. Sub-headings inherit the SDS section above them. A table row that
    consists of a numbered SDS heading starts a section too: many sheets are one table.
    """
    marks: list[tuple[int, int, str]] = []
    position = 0
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        level = 0 if fenced else level_of(line)
        heading = heading_text(line) if level else _row_heading(line)
        if level or (heading and split_heading(heading)[0] is not None and sds_section(heading) is not None):
            marks.append((position, level or 2, heading))
        position += len(line) + 1
    return _tiled(text, marks)


def _tiled(text: str, marks: Sequence[tuple[int, int, str]]) -> list[dict[str, Any]]:
    sections: list[dict[str, Any]] = []
    if text and (not marks or marks[0][0] > 0):
        end = marks[0][0] if marks else len(text)
        sections.append({"start": 0, "end": end, "heading": "", "level": 0, "sds": None})
    found = sds_sections([heading for _, _, heading in marks])
    above: list[tuple[int, int | None]] = []
    for i, ((start, level, heading), own) in enumerate(zip(marks, found, strict=True)):
        above = [(n, sds) for n, sds in above if n < level]
        sds = own if own is not None else next((s for _, s in reversed(above) if s is not None), None)
        above.append((level, sds))
        end = marks[i + 1][0] if i + 1 < len(marks) else len(text)
        sections.append({"start": start, "end": end, "heading": heading, "level": level, "sds": sds})
    return sections

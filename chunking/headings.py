"""The shape of heading lines: numbering, data-sheet sections, short lines without a stop.

Marks (``#``, ``**``, ``==``) are read by :func:`marked_level` only; everything
else works on the line with its marks hidden, as the levels skill must.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from corpus.sections import sds_section

_MARK = re.compile(r"^\s{0,3}(#{1,6})(?:\s+|$)")
_EMPHASIS = re.compile(r"^\s*(\*\*|__|\*{4,}|={2,6})\s*(.+?)\s*\1\s*$")
_HAN = "一二三四五六七八九十百零〇两\\d"
_ROMAN = r"(?:[IVX]{1,6})"

# Numbering styles from coarse to fine; the group is what stands before the title.
_STYLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "book",
        re.compile(
            rf"(?:第[{_HAN}]{{1,5}}[编篇卷]|(?:PART|Part|BOOK|TITLE|Title|SUBTITLE)\s+(?:{_ROMAN}|\d{{1,3}}|[A-Z])\b)"
        ),
    ),
    (
        "chapter",
        re.compile(
            rf"(?:第\s*[{_HAN}]{{1,5}}\s*章|(?:CHAPTER|Chapter|SUBCHAPTER|Subchapter)\s+(?:{_ROMAN}|\d{{1,3}}|[A-Z])\b)"
        ),
    ),
    (
        "section",
        re.compile(
            rf"(?:第\s*[{_HAN}]{{1,5}}\s*(?:节|部分|部份)|(?:SECTION|Section|Sec\.|SEC\.|§+)\s*\d{{1,5}}[a-z]?\b)"
        ),
    ),
    (
        "appendix",
        re.compile(
            r"(?:附录|附件|附表|附则|(?:APPENDIX|Appendix|ANNEX|Annex)\b)\s*[A-Z一二三四五六七八九十\d]{0,3}"
        ),
    ),
    ("article", re.compile(rf"第\s*[{_HAN}]{{1,6}}\s*条(?:之[{_HAN}])?")),
    ("han", re.compile(rf"[{_HAN[:-2]}]{{1,3}}\s*[、．.]")),
    ("roman", re.compile(rf"{_ROMAN}\s*[.、)]")),
    ("decimal", re.compile(r"\d{1,2}(?:[.．]\d{1,2}){0,4}(?:\s*[.．、:：]|(?=\s)|(?=[\u3400-\u9fff])|$)")),
    ("han_paren", re.compile(rf"[（(]\s*[{_HAN[:-2]}]{{1,3}}\s*[)）]")),
    ("number_paren", re.compile(r"(?:[（(]\s*\d{1,3}\s*[)）]|\d{1,2}\s*[)）])")),
    ("circled", re.compile(r"[①-⑳]")),
    ("letter_paren", re.compile(r"[（(]\s*[A-Za-z]{1,4}\s*[)）]")),
    ("letter", re.compile(r"[A-Z]\s*[.、](?=\s)")),
)
STYLE_ORDER = tuple(name for name, _ in _STYLES)
_CITED = re.compile(r"\s*(?:规定|的|所|至|和|、|第|款|项|or\b|and\b|of\b|to\b)")
_STOPS = "。！？；;.!?：:，,"
_TITLE_WIDTH = 60  # display columns of a title; a CJK character takes two


@dataclass(frozen=True)
class Heading:
    """What makes a line look like a heading.

    ``style`` is a numbering style, "sds", "marked" or "plain"; ``depth`` counts the
    parts of a decimal number (1 elsewhere); ``title`` is the rest; ``strength``
    0…1 says how sure the shape is; ``sds`` the data-sheet section named.
    """

    style: str
    depth: int
    number: str
    title: str
    strength: float
    sds: int | None = None


def visible(line: str) -> str:
    """A line as the levels model sees it: heading and emphasis marks hidden, blanks squeezed."""
    shown = _MARK.sub("", " ".join(line.split()) if "\t" in line or "  " in line else line.strip())
    shown = re.sub(r"\s*#+\s*$", "", shown)
    emphasised = _EMPHASIS.match(shown)
    if emphasised:
        shown = emphasised[2]
    return shown.replace("**", "").strip()


def marked_level(line: str) -> int | None:
    """Level of an explicit Markdown heading line, None for any other line."""
    mark = _MARK.match(line)
    return len(mark[1]) if mark and len(line.strip()) > len(mark[1]) else None


@lru_cache(maxsize=1 << 14)  # the methods of the chunks stage ask for the same lines again
def heading_shape(line: str) -> Heading | None:
    """The heading that a visible line looks like, None where it looks like running text."""
    shown = line.strip()
    if not shown or "\n" in shown:
        return None
    section = sds_section(shown) if len(shown) <= 80 else None
    for style, pattern in _STYLES:
        match = pattern.match(shown)
        if not match:
            continue
        title = shown[match.end() :].strip(" \t　.．、:：-–—")
        if style in ("article", "section", "chapter", "appendix") and _CITED.match(shown, match.end()):
            continue  # "第十条规定的…": a reference, not a heading
        number = match[0].strip(" .．、:：")
        depth = len(re.split(r"[.．]", number)) if style == "decimal" else 1
        return Heading(style, depth, number, title, _numbered_strength(style, title, depth), section)
    if section is not None:
        return Heading("sds", 1, "", shown, 0.9, section)
    if _is_title(shown):
        return Heading("plain", 1, "", shown, 0.5)
    return None


def _numbered_strength(style: str, title: str, depth: int) -> float:
    if style in ("book", "chapter", "section", "appendix"):
        return 0.95 if _is_title(title) or not title else 0.5
    if style == "article":
        return 0.6
    if _is_title(title):
        return {"decimal": 0.8 if depth > 1 else 0.7, "han": 0.8, "roman": 0.7}.get(style, 0.5)
    return 0.3 if title else 0.2


def _is_title(text: str) -> bool:
    """Short, no stop at its end, no table or list marks, begins like a title."""
    if not text or text[-1] in _STOPS or text[0] in "|-*•·+>[<":
        return False
    if display_width(text) > _TITLE_WIDTH or "|" in text or "。" in text:
        return False
    if re.search(r"[:：]\s*\S", text) or text.count("，") + text.count(",") > 1:
        return False
    letters = sum(char.isalpha() for char in text)
    if letters < 2 or letters < 0.5 * len(text.replace(" ", "")):
        return False
    return not text[0].isascii() or not text[0].islower()


def display_width(text: str) -> int:
    """Columns a text takes; a CJK character takes two."""
    return sum(2 if "\u2e80" <= char <= "\uffef" else 1 for char in text)

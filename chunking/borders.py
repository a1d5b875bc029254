"""Where divisions begin: headings as a text shows them, and without one what layout and embedding gaps tell.

A line's features are few and of any text: is it a row inside a table, the first of a
new table, an item of a list, what a lead-in announces, one of the numbered articles
that a statute counts its divisions in; how long is its paragraph; how far apart in
meaning are the sentences before and after it, beside the rest of the document and
beside its neighbours. Their weights are those of a logistic regression on half of the
documents of ``benchmarks/segmentation.py``, rounded; the other half was not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from chunking.headings import STYLE_ORDER, Heading, display_width, heading_shape, marked_level, visible
from chunking.vectors import Floats, SentenceVectors

_ITEM = re.compile(r"(?:[-*•·+]\s|\d{1,3}[.)、．]\s|[(（]\s*\w{1,4}\s*[)）]|[①-⑳])")
_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+")
_ARTICLES = 4  # numbered articles that make a text one of articles
_NEAR = 3  # lines on either side that a gap is compared with

FEATURES = (
    "bias",
    "table after table",
    "table after prose",
    "prose after table",
    "item after item",
    "item after prose",
    "prose after item",
    "after a lead-in",
    "not an article among articles",
    "article",
    "sentences of the paragraph",
    "gap in the document",
    "gap beside its neighbours",
)
_WEIGHTS = np.array([-1.0, 2.25, -1.5, -0.85, -1.0, 0.6, 0.3, -1.5, -3.5, -1.1, 0.4, 0.4, 1.8])

_FINEST = 999
_SURE = 0.55  # strength from which a shape alone makes a heading
_SHORT = 0.5  # strength of a short line, which is a heading where more text than its own follows
_HEADED = 3  # headings that make a text one with headings
_SECTION = 2000  # display columns a heading; where short lines are rarer, they are captions
# Log-odds from which a line without a heading begins a division (benchmarks/segmentation.py, tuning half).
_LIKELY = -1.25  # in a text without headings
_CLEAR = 0.5  # in a text that has some: it says with them where its divisions are

# Worth of a cut, on the scale of log-odds
_HEADING = 3.0  # before a heading, beside what its gap says
_UNDER = -2.0  # between a heading and the one right below it
NOWHERE = -4.0  # inside a paragraph or a table
_HELD = -6.0  # behind a heading or a table's header, which stay with what they announce


def cut_worth(vectors: SentenceVectors) -> Floats:
    """What a cut at each inner sentence boundary is worth, shape (n - 1,): above 0 a division likely begins there.

    Log-odds of a division less those that are asked of a text of this kind, at least
    :data:`NOWHERE`; headings, marked or by their shape, stand out. Finite everywhere, so
    that a chunk over the size has a best place to be cut at.
    """
    raw = [vectors.text[start:end] for start, end in vectors.sentences]
    lines = [visible(line) for line in raw]
    heads = headings_in(lines)
    headed = [i in heads or marked_level(line) is not None for i, line in enumerate(raw)]
    kinds = [_kind(line) for line in lines]
    odds = opening_odds(lines, [0.0, *map(float, vectors.gaps())])
    worth = np.maximum(odds - opening_limit(heads, lines), NOWHERE)
    for i in range(1, len(lines)):
        held = headed[i - 1] or "rule" in kinds[i - 1 : i + 1]
        if headed[i]:
            worth[i] = _UNDER if held else max(worth[i], 0.0) + _HEADING
        elif held:
            worth[i] = _HELD
    return worth[1:]


def headings_in(lines: Sequence[str]) -> dict[int, Heading]:
    """Lines that are headings by their shape and their neighbours; articles of a statute are none."""
    shapes = [heading_shape(line) for line in lines]
    return {i: shape for i, shape in enumerate(shapes) if shape and _is_heading(i, shapes, lines)}


def opening_limit(heads: dict[int, Heading], lines: Sequence[str]) -> float:
    """Log-odds from which a line that is no heading begins a division of this text."""
    return _CLEAR if _has_headings(heads, lines) else _LIKELY


def heading_rank(shape: Heading) -> int:
    """Place of a heading's kind between coarse and fine; equal kinds have equal levels.

    Sections of a data sheet are of one kind however they are numbered, but a chapter of a
    book that happens to be named like one stays with the other chapters.
    """
    if shape.sds is not None and shape.style not in ("book", "chapter"):
        return STYLE_ORDER.index("section") * 10
    if shape.style == "plain":
        return _FINEST
    return STYLE_ORDER.index(shape.style) * 10 + shape.depth


def opening_odds(lines: Sequence[str], gaps: Sequence[float]) -> Floats:
    """Log-odds that a division begins at each line, shape (n,); minus infinity where none can.

    ``lines`` as they are seen (``headings.visible``); ``gaps`` as of ``SentenceVectors.gaps``
    with a 0 in front: embedding distance before each line, 0 where it stands inside a paragraph.
    """
    places, evidence = opening_evidence(lines, gaps)
    odds = np.full(len(lines), -np.inf)
    odds[places] = evidence @ _WEIGHTS
    return odds


def opening_evidence(lines: Sequence[str], gaps: Sequence[float]) -> tuple[list[int], Floats]:
    """The lines at which a division can begin, and their features, shape (places, features)."""
    kinds = [_kind(line) for line in lines]
    opens = [i for i in range(len(lines)) if i == 0 or gaps[i] > 0]
    articles = {i for i in opens if _is_article(lines[i])}
    counted = len(articles) >= _ARTICLES
    inner = np.array([gaps[i] for i in opens[1:]])
    centre, spread = (float(inner.mean()), float(inner.std()) + 1e-6) if len(inner) else (0.0, 1.0)
    places: list[int] = []
    rows: list[list[float]] = []
    for at in range(1, len(opens)):
        i, before = opens[at], kinds[opens[at - 1]]
        kind = kinds[i]
        titled = i + 1 < len(lines) and kinds[i + 1] == "rule"
        if kind == "rule" or (kind == "row" and before in ("row", "rule") and not titled):
            continue
        tabled = before in ("row", "rule")
        around = inner[max(at - 1 - _NEAR, 0) : at + _NEAR]
        end = opens[at + 1] if at + 1 < len(opens) else len(lines)
        flags = (
            True,
            kind == "row" and tabled,
            kind == "row" and not tabled,
            kind != "row" and tabled,
            kind == "item" and before == "item",
            kind == "item" and before != "item",
            kind == "prose" and before == "item",
            lines[i - 1].rstrip().endswith((":", "：")),
            counted and i not in articles,
            counted and i in articles,
        )
        places.append(i)
        rows.append(
            [
                *map(float, flags),
                float(np.log(end - i)),
                float(np.clip((gaps[i] - centre) / spread, -2.0, 2.0)),
                float(gaps[i] - around.mean()),
            ]
        )
    return places, np.array(rows).reshape(len(places), len(FEATURES))


def _kind(line: str) -> str:
    shown = line.strip()
    if shown.startswith("|"):
        return "rule" if _RULE.match(shown) else "row"
    return "item" if _ITEM.match(shown) else "prose"


def _is_article(line: str) -> bool:
    shape = heading_shape(line)
    return shape is not None and shape.style == "article"


def _is_heading(i: int, shapes: Sequence[Heading | None], lines: Sequence[str]) -> bool:
    shape = shapes[i]
    if shape is None or shape.style == "article":
        return False
    if shape.sds is not None or (
        shape.style in ("book", "chapter", "section", "appendix") and shape.strength > _SURE
    ):
        return True
    neighbours = [shapes[j] for j in (i - 1, i + 1) if 0 <= j < len(shapes)]
    if any(other and heading_rank(other) == heading_rank(shape) for other in neighbours):
        return False  # neighbouring lines of one shape are a list, an infobox or a table of contents
    if shape.strength == _SHORT:  # a short line, or one numbered as items of a list are too
        following = lines[i + 1] if i + 1 < len(lines) else ""
        headed = display_width(following) > max(40, display_width(lines[i])) or _numbered(shapes, i + 1)
        return headed and not (i and lines[i - 1].rstrip().endswith((":", "：", "，", ",")))
    return shape.strength > _SURE


def _numbered(shapes: Sequence[Heading | None], i: int) -> bool:
    shape = shapes[i] if i < len(shapes) else None
    return shape is not None and shape.style != "plain" and shape.strength > _SURE


def _has_headings(heads: dict[int, Heading], lines: Sequence[str]) -> bool:
    """Whether headings divide the text: some numbered ones, or short lines that come as often as titles do."""
    found = [heading for i, heading in heads.items() if i]
    if sum(heading.style != "plain" for heading in found) >= _HEADED:
        return True
    columns = sum(map(display_width, lines))
    return len(found) >= _HEADED and columns <= _SECTION * len(found)

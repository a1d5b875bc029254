"""Where a division begins when no heading says so: what layout and embedding gaps tell of each line.

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

from chunking.headings import heading_shape
from chunking.vectors import Floats

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

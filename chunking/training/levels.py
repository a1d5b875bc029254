"""Examples for HiChunk's levels model out of documents with explicit headings (HiChunk, sections 4 and 5).

Headings are gold, their marks are hidden. Windows and the lines that remind of
earlier text (residual lines) come from the inference itself, answered by the gold
levels; variants arrange a document otherwise, so that a model learns structure
and not one order of chapters.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from chunking.headings import marked_level
from chunking.hichunk.inference import infer
from chunking.hichunk.levels import MAX_LEVEL, LevelsIn, Point, prompt_around
from chunking.sentences import split_sentences
from chunking.training.examples import Example, Made, visible_sentences
from corpus.ids import digest
from models.prompts import neutral

HEADINGS = "headings of the document"


@dataclass(frozen=True)
class LevelsDocument:
    """A document with gold levels: ``starts`` maps offsets of headings to their levels (1 is coarsest).

    ``starts`` None: its Markdown headings are the gold.
    """

    document: str
    version: str
    language: str
    text: str = field(repr=False)
    starts: Mapping[int, int] | None = None


@dataclass(frozen=True)
class LevelsOptions:
    """How examples are cut. Tokens are those of the counter in force.

    ``window``: tokens of prompt and lines (the paper trains with 8,192);
    ``shuffles``: arrangements with the level-1 segments in another order, and as
    many again that are also truncated (the released code has 3); ``residuals``:
    windows that begin inside a level-1 segment, behind drawn residual lines;
    ``shortest``: tokens below which a level-1 segment is left out of a new arrangement.
    """

    window: int = 8192
    view: int = 100
    shuffles: int = 3
    residuals: int = 1
    shortest: int = 50
    headings: int = 3
    characters: int = 0


@dataclass(frozen=True)
class _Lines:
    """Visible sentences with their costs and gold levels (by sentence)."""

    source: LevelsDocument
    options: LevelsOptions
    views: Sequence[str]
    costs: Sequence[int]
    prompt: int
    levels: Mapping[int, int]


def examples_of(
    source: LevelsDocument, options: LevelsOptions, count: Callable[[str], int], seed: int
) -> Made:
    """All examples of a document: as it stands, shuffled, truncated, and behind drawn residual lines."""
    made = Made()
    lines = _lines(source, options, count, made)
    if lines is None:
        return made
    whole = list(range(len(lines.views)))
    seen: set[str] = set()
    _windows(lines, whole, "original", made, seen)
    parts = _segments(lines, whole)
    tokens = [sum(lines.costs[i] for i in part) for part in parts]
    movable = [part for part, size in zip(parts[1:], tokens[1:], strict=True) if size >= options.shortest]
    if options.shuffles and len(movable) < 2:
        made.drop("levels", "fewer than two level-1 segments to shuffle")
    for draw in range(options.shuffles if len(movable) >= 2 else 0):
        rng = random.Random(digest("shuffle", str(seed), source.version, str(draw)))
        moved = rng.sample(movable, len(movable))
        _windows(lines, [*parts[0], *(i for part in moved for i in part)], "shuffled", made, seen)
        shorter = [i for part in moved for i in _truncated(part, lines.levels, rng)]
        _windows(lines, [*parts[0], *shorter], "shuffled and truncated", made, seen)
    for draw in range(options.residuals):
        rng = random.Random(digest("residual", str(seed), source.version, str(draw)))
        _behind_residuals(lines, parts, rng, made, seen)
    return made


def _lines(
    source: LevelsDocument, options: LevelsOptions, count: Callable[[str], int], made: Made
) -> _Lines | None:
    """The document as lines with gold levels; None, and a reason counted, where it has none to learn from."""
    if len(source.text) < options.characters:
        made.drop("headings", f"shorter than {options.characters} characters")
        return None
    spans = split_sentences(source.text)
    levels = _gold(source, spans)
    if levels is None:
        made.drop("headings", "a gold heading is not the beginning of a sentence")
        return None
    if len(levels) < options.headings:
        made.drop("headings", f"fewer than {options.headings} headings")
        return None
    if 2 * len(levels) > len(spans):
        made.drop("headings", "more than half of the lines are headings")
        return None
    views = visible_sentences(source.text, options.view)
    if any(not views[i] for i in levels):
        made.drop("headings", "a heading without words")
        return None
    # as in hierarchy.hichunk: the longest index that a line can carry is counted
    costs = [count(f"{len(views)} @ {neutral(view)}\n") for view in views]
    prompt = count(prompt_around(source.language))
    return _Lines(source, options, views, costs, prompt, ranked(levels))


def _gold(source: LevelsDocument, spans: Sequence[tuple[int, int]]) -> dict[int, int] | None:
    """Levels of the sentences that are headings; None where a given one is no sentence of its own."""
    if source.starts is None:
        marks = [marked_level(source.text[start:end]) for start, end in spans]
        return {i: mark for i, mark in enumerate(marks) if mark is not None}
    sentence_of = {start: i for i, (start, _) in enumerate(spans)}
    if not source.starts.keys() <= sentence_of.keys():
        return None
    return {sentence_of[start]: level for start, level in source.starts.items()}


def ranked(levels: Mapping[int, int]) -> dict[int, int]:
    """Levels from 1 without gaps, the first sentence at 1.

    A document whose only heading of the coarsest kind is its title, at the
    beginning, has its divisions one level up: they are what level 1 means.
    """
    order = sorted(set(levels.values()))
    rank = {level: number for number, level in enumerate(order, start=1)}
    found = {i: min(rank[level], MAX_LEVEL) for i, level in levels.items()}
    coarsest = [i for i, level in found.items() if level == 1]
    if coarsest == [min(found, default=-1)] and len(found) > 1:
        found = {i: max(level - 1, 1) for i, level in found.items()}
    return {**found, 0: 1}


# --- windows ---------------------------------------------------------------------------------------------------


def _windows(lines: _Lines, order: Sequence[int], variant: str, made: Made, seen: set[str]) -> None:
    """The windows that inference reads of an arrangement of sentences, answered by the gold levels."""

    def levels(start: int, size: int, residual: list[int]) -> list[Point]:
        shown = [*residual, *range(start, start + size)]
        points = _points(lines, [order[i] for i in shown], len(residual), first=start == 0)
        name = "residual lines" if residual and variant == "original" else variant
        _add(lines, [order[i] for i in shown], len(residual), points, name, made, seen)
        return points

    infer([lines.costs[i] for i in order], lines.prompt, lines.options.window, levels)


def _points(lines: _Lines, shown: Sequence[int], residual: int, *, first: bool) -> list[Point]:
    """Gold points of the lines behind the residual ones, by line."""
    found = [(at, lines.levels[i]) for at, i in enumerate(shown) if at >= residual and i in lines.levels]
    if first and (not found or found[0][0] != 0):
        found.insert(0, (0, 1))
    return found


def _add(
    lines: _Lines,
    shown: Sequence[int],
    residual: int,
    points: Sequence[Point],
    variant: str,
    made: Made,
    seen: set[str],
) -> None:
    source, options = lines.source, lines.options
    if not points:
        made.drop("levels", "a window in which nothing begins")
        return
    if len(shown) == residual + 1 and lines.costs[shown[-1]] + lines.prompt > options.window:
        made.drop("levels", "a sentence longer than the window")
        return
    place = {"lines": list(shown), "residual": residual, "view": options.view}
    example = Example(
        "levels",
        source.document,
        source.version,
        source.language,
        place,
        {"points": [{"index": index, "level": level} for index, level in points]},
        "document",
        {"levels": HEADINGS},
        variant,
    )
    if example.id in seen:
        made.drop("levels", f"the same as before ({variant})")
        return
    seen.add(example.id)
    made.add(example, LevelsIn(tuple(lines.views[i] for i in shown), residual, source.language))


# --- arrangements ----------------------------------------------------------------------------------------------


def _segments(lines: _Lines, order: Sequence[int], level: int = 1) -> list[list[int]]:
    """Runs of sentences between points of a level or coarser ones.

    At level 1 the first run stays where it is: the title, or what stands before the first division.
    """
    parts: list[list[int]] = [[]]
    for i in order:
        if parts[-1] and lines.levels.get(i, MAX_LEVEL + 1) <= level:
            parts.append([])
        parts[-1].append(i)
    return parts


def _truncated(part: Sequence[int], levels: Mapping[int, int], rng: random.Random) -> list[int]:
    """5 to 15 of a segment's level-2 pieces, the first 15 to 25 sentences of each."""
    pieces: list[list[int]] = [[]]
    for i in part:
        if pieces[-1] and levels.get(i, MAX_LEVEL + 1) <= 2:
            pieces.append([])
        pieces[-1].append(i)
    number = rng.randint(5, 15)
    kept = sorted(rng.sample(range(1, len(pieces)), min(number, len(pieces)) - 1))
    return [i for at in [0, *kept] for i in pieces[at][: rng.randint(15, 25)]]


def _behind_residuals(
    lines: _Lines, parts: Sequence[Sequence[int]], rng: random.Random, made: Made, seen: set[str]
) -> None:
    """One window that begins at a level-2 point inside a level-1 segment, behind drawn lines of what precedes.

    Shown are the first level-2 piece and one to four others of the segment, and
    at random the same of the segment before; 1 to 20 sentences of each.
    """
    places = [
        (number, at)
        for number, part in enumerate(parts)
        for at, i in enumerate(part)
        if at > 0 and lines.levels.get(i) == 2
    ]
    if not places:
        made.drop("levels", "no place inside a level-1 segment to begin at")
        return
    number, at = places[rng.randrange(len(places))]
    earlier = [parts[number - 1]] if number and rng.random() < 0.5 else []
    shown: list[int] = []
    for part in [*earlier, parts[number][:at]]:
        pieces = _segments(lines, part, level=2)
        others = rng.sample(pieces[1:], min(rng.randint(1, 4), len(pieces) - 1))
        for piece in [pieces[0], *sorted(others)]:
            shown += piece[: rng.randint(1, 20)]
    following = [*parts[number][at:], *(i for part in parts[number + 1 :] for i in part)]
    used = lines.prompt + sum(lines.costs[i] for i in shown)
    if used - lines.prompt > lines.options.window / 2:
        made.drop("levels", "residual lines over half of the window")
        return
    residual = len(shown)
    for i in following:
        used += lines.costs[i]
        if used > lines.options.window:
            break
        shown.append(i)
    points = _points(lines, shown, residual, first=False)
    _add(lines, shown, residual, points, "residual lines", made, seen)

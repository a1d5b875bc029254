"""Refinement: sliding windows, a rewriting that is proved against its source, fusion.

A document is cut into windows of units (blocks, or rows and sentences of long
ones). The skill ``refine_window`` rewrites a window unit by unit and says which
units each piece of its answer stands for, so that fusion aligns windows by
their units, keeps one copy, and can show that no unit was lost. What fails its
check twice, or what the endpoint refuses to read, stays as it was, with the reason
(corpus design, section 7). Text that gives orders to a language model
(``corpus.orders``) is refined like any other and recorded for a person to look at.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from corpus.fidelity import changes, differences, facts, holds_facts, reordered, words
from corpus.headings import level_of, rebuild_levels, sections_of
from corpus.ids import normalise_text
from corpus.orders import find_orders
from corpus.settings import RefinementSettings
from corpus.tidying import furniture_reason, tidy_block, without_edit_mark
from corpus.windows import Unit, split_units, windows
from models import Models
from models.errors import AnswerRejected
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

DROP_REASONS = (
    "navigation",
    "advertisement",
    "legal_notice",
    "page_furniture",
    "user_comment",
    "empty",
)
_MAX_DROPPED_SHARE = 0.3  # of a window's tokens; more means that content was taken for furniture
_MIN_KEPT_WORDS = 0.85  # of a unit's content words
_ENDPOINT_REFUSED = ("bad_request", "context_length")  # reasons that say nothing of an answer: there was none


class RefinedPiece(BaseModel):
    """A stretch of refined Markdown and the units it stands for (consecutive, in order)."""

    sources: list[int] = Field(min_length=1)
    text: str


class DroppedUnit(BaseModel):
    """A unit that is page furniture, not content."""

    source: int
    reason: str


class RefinedWindow(BaseModel):
    """Answer of ``refine_window``: every unit is in one piece or dropped with a reason."""

    pieces: list[RefinedPiece] = Field(default_factory=list)
    dropped: list[DroppedUnit] = Field(default_factory=list)


@dataclass(frozen=True)
class WindowGiven:
    """A window: its units by index, and the headings that stand above it."""

    language: str
    title: str
    context: tuple[str, ...]
    units: tuple[Unit, ...]


class RefineWindow(Skill[WindowGiven, RefinedWindow]):
    """Rewrite a window of a page into clean, structured text without changing what it says."""

    name: ClassVar[str] = "refine_window"
    version: ClassVar[str] = "3"
    output: ClassVar[type[BaseModel]] = RefinedWindow
    prompts: ClassVar[Prompts] = Prompts(__package__, "refine_window")

    def values(self, given: WindowGiven) -> Mapping[str, Quoted]:
        """Title and headings above; the blocks, one JSON object a line."""
        blocks = [{"id": unit.index, "kind": unit.kind, "text": unit.text} for unit in given.units]
        return {
            "title": Quoted(given.title, "title"),
            "headings": Quoted("\n".join(given.context), "headings"),
            "blocks": Quoted("\n".join(json.dumps(block, ensure_ascii=False) for block in blocks), "blocks"),
        }

    def check(self, given: WindowGiven, answer: RefinedWindow) -> Verdict:
        """Each unit once, facts equal, nothing new, headings in order; else ask again with the list."""
        found = violations(given, answer)
        return Verdict.ask_again(*found) if found else ACCEPT

    def offline(self, given: WindowGiven) -> RefinedWindow:
        """Tidy each unit by rules (``corpus.tidying``) and drop what is furniture.

        A unit of which tidying changes a fact as it is read ("应" and "当" on two lines are
        one word when they are joined) stays as it is: this answer always holds.
        """
        answer = RefinedWindow()
        for unit in given.units:
            text = tidy_block(unit.text, unit.kind)
            if text.strip() and _piece_faults([unit], text, words(unit.text)):
                text = unit.text
            reason = furniture_reason(text)
            if reason:
                answer.dropped.append(DroppedUnit(source=unit.index, reason=reason))
            else:
                answer.pieces.append(RefinedPiece(sources=[unit.index], text=text))
        return answer


def violations(given: WindowGiven, answer: RefinedWindow) -> list[str]:
    """Everything that an answer got wrong, in words that help to mend it; empty for a right one."""
    by_index = {unit.index: unit for unit in given.units}
    placed = [source for piece in answer.pieces for source in piece.sources]
    dropped = [drop.source for drop in answer.dropped]
    found = _misplaced(by_index, placed, dropped)
    if found:
        return found
    known = words(" ".join(unit.text for unit in given.units))
    for piece in answer.pieces:
        found += _piece_faults([by_index[source] for source in piece.sources], piece.text, known)
    found += _drop_faults(by_index, answer.dropped)
    headings = [_heading(_proper(by_index[i])) for i in placed if level_of(by_index[i].text)]
    kept = [_heading(line) for piece in answer.pieces for line in piece.text.split("\n") if level_of(line)]
    missing = _missing_in_order(headings, kept)
    return found + [f"heading {heading!r} is missing or out of order" for heading in missing]


def _misplaced(by_index: Mapping[int, Unit], placed: Sequence[int], dropped: Sequence[int]) -> list[str]:
    found = [f"block {i} is not in the window" for i in sorted({*placed, *dropped} - set(by_index))]
    seen = Counter([*placed, *dropped])
    found += [f"block {i} occurs more than once" for i in sorted(i for i, n in seen.items() if n > 1)]
    found += [f"block {i} is neither kept nor dropped" for i in sorted(set(by_index) - set(seen))]
    if list(placed) != sorted(placed):
        found.append("the blocks are not in order")
    return found


def _piece_faults(units: Sequence[Unit], text: str, known: Mapping[str, int]) -> list[str]:
    where = f"blocks {units[0].index}-{units[-1].index}" if len(units) > 1 else f"block {units[0].index}"
    if units[-1].index - units[0].index != len(units) - 1:
        return [f"{where}: the blocks of one piece must follow one another"]
    source = "".join(unit.gap * (k > 0) + _proper(unit) for k, unit in enumerate(units))
    if source == text:
        return []
    found = [f"{where}: {change}" for change in differences(source, text)]
    if place := reordered(source, text):
        found.append(f"{where}: not in the order of the source, or not from it, near {place!r}")
    before, after = words(source), words(text)
    new = sorted(word for word in after if word not in known)
    if new:
        found.append(f"{where}: words that are not in the source: {', '.join(new[:8])}")
    total = before.total()
    if total and (before & after).total() < _MIN_KEPT_WORDS * total:
        lost = sorted((before - after).elements())
        found.append(f"{where}: text was left out: {' '.join(lost[:12])}")
    return found


def _proper(unit: Unit) -> str:
    return without_edit_mark(unit.text) if unit.kind == "heading" else unit.text


def _drop_faults(by_index: Mapping[int, Unit], dropped: Sequence[DroppedUnit]) -> list[str]:
    found = [
        f"block {drop.source}: reason {drop.reason!r} is not one of {', '.join(DROP_REASONS)}"
        for drop in dropped
        if drop.reason not in DROP_REASONS
    ]
    found += [
        f"block {drop.source} holds facts and cannot be dropped"
        for drop in dropped
        if holds_facts(by_index[drop.source].text)
    ]
    # rules and bullets without a letter may go, however many they are
    tokens = sum(by_index[drop.source].tokens for drop in dropped if _says(by_index[drop.source]))
    everything = sum(unit.tokens for unit in by_index.values() if _says(unit))
    if tokens > max(_MAX_DROPPED_SHARE * everything, 60):
        found.append(f"too much was dropped: {tokens} of {everything} tokens")
    return found


def _says(unit: Unit) -> bool:
    return any(char.isalnum() for char in unit.text)


def _heading(text: str) -> str:
    return " ".join(sorted(words(text).elements()))


def _missing_in_order(wanted: Sequence[str], present: Sequence[str]) -> list[str]:
    """Each wanted heading that is not found behind the one before it."""
    places: dict[str, list[int]] = {}
    for place, heading in enumerate(present):
        places.setdefault(heading, []).append(place)
    position = 0
    missing: list[str] = []
    for heading in wanted:
        known = places.get(heading, [])
        at = bisect_left(known, position)
        if at < len(known):
            position = known[at] + 1
        elif heading:
            missing.append(heading)
    return missing


# --- fusion ------------------------------------------------------------------


@dataclass
class Piece:
    """A fused stretch: the units [first, last] and their refined text; dropped where ``reason`` is set."""

    first: int
    last: int
    text: str
    reason: str = ""


def window_pieces(answer: RefinedWindow) -> list[Piece]:
    """Pieces and drops of one window in unit order."""
    pieces = [Piece(piece.sources[0], piece.sources[-1], piece.text) for piece in answer.pieces]
    pieces += [Piece(drop.source, drop.source, "", drop.reason) for drop in answer.dropped]
    return sorted(pieces, key=lambda piece: piece.first)


def fuse(parts: Sequence[Sequence[Piece]], units: Sequence[Unit]) -> list[Piece]:
    """Join the pieces of overlapping windows into one sequence that covers every unit once, in order.

    The cut is put where both windows have a boundary, as near the middle of the
    overlap as can be, since a window knows least at its edges. Where they have
    none in common, the units that a piece of the later window shares with the
    earlier one's end keep their source text.
    """
    fused: list[Piece] = []
    for part in parts:
        if not fused:
            fused = list(part)
            continue
        start, stop = part[0].first, fused[-1].last + 1
        common = {stop}
        for piece in reversed(fused):  # back to where the part begins; no piece before that can be cut at
            if piece.last < start:
                break
            common.add(piece.first)
        common &= {p.first for p in part} | {part[-1].last + 1}
        inside = [cut for cut in common if start <= cut <= stop]
        cut = min(inside, key=lambda c: (abs(2 * c - start - stop), c)) if inside else stop
        while fused and fused[-1].last >= cut:
            fused.pop()
        later = [piece for piece in part if piece.first >= cut]
        resumed = later[0].first if later else part[-1].last + 1
        fused += [Piece(i, i, units[i].text) for i in range(cut, resumed)]
        fused += later
    return fused


# --- a document --------------------------------------------------------------


@dataclass
class Refined:
    """A refined document: text, block map, sections, and the record of how it came about.

    ``record``: coverage (share of tokens kept), fidelity (share of windows whose
    answer held), the dropped blocks with reasons, the windows that kept their source,
    ``orders``: what in title and cleaned text addresses a language model, with its place.
    """

    text: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    sections: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    unrefined: bool = False


def refine_document(
    text: str,
    blocks: Sequence[Mapping[str, Any]],
    *,
    language: str,
    title: str,
    models: Models,
    settings: RefinementSettings | None = None,
    count: Callable[[str], int] | None = None,
) -> Refined:
    """Refine a cleaned text. ``blocks``: the cleaner's, {"start", "end", "path", "kind"}.

    The windows are asked at once, as they do not depend on each other. A window
    whose answer was rejected, or that the endpoint would not read, keeps its source
    text. Raises the model layer's errors; AnswerRejected only where the endpoint
    refused every window, since that points to a setting and not to the text.
    """
    settings = settings or RefinementSettings()
    units = split_units(text, blocks, settings.window, count or models.count_tokens)
    ranges = windows(units, settings.window, settings.overlap)
    contexts = _contexts(units, [start for start, _ in ranges])
    inputs = [
        WindowGiven(language, title, context, tuple(units[start:end]))
        for (start, end), context in zip(ranges, contexts, strict=True)
    ]
    answers = models.run_many(RefineWindow(), inputs)
    unread = [answer for answer in answers if isinstance(answer, AnswerRejected)]
    if unread and len(unread) == len(answers) and all(e.reason in _ENDPOINT_REFUSED for e in unread):
        raise unread[0]
    parts: list[list[Piece]] = []
    refused: list[dict[str, Any]] = []
    source = ""
    for number, ((start, end), answer) in enumerate(zip(ranges, answers, strict=True)):
        if isinstance(answer, AnswerRejected):
            place = {"window": number, "first": start, "last": end - 1}
            refused.append(place | {"kind": answer.reason, "reason": str(answer)[:500]})
            parts.append([Piece(unit.index, unit.index, unit.text) for unit in units[start:end]])
        else:
            source = answer.source
            parts.append(window_pieces(answer.value))
    pieces = _with_levels(fuse(parts, units))
    refined = assemble(pieces, units)
    refined.record |= {
        "windows": len(parts),
        "window": settings.window,
        "overlap": settings.overlap,
        "fidelity": 1.0 - len(refused) / len(parts) if parts else 1.0,
        "refused": refused,
        "source": source or "source text",
        "orders": _orders(title, "title") + _orders(text, "text"),
    }
    return _proved(refined, pieces, units, bool(refused))


def _orders(text: str, where: str) -> list[dict[str, Any]]:
    """What addresses a language model, with offsets into the title or the cleaned text."""
    return [
        {"in": where, "start": order.start, "end": order.end, "kind": order.kind}
        | {"text": text[order.start : order.end][:200]}
        for order in find_orders(text)
    ]


def _proved(refined: Refined, pieces: Sequence[Piece], units: Sequence[Unit], refused: bool) -> Refined:
    """The last line of defence: the whole text against all kept units, whatever the windows said."""
    kept = [i for piece in pieces if not piece.reason for i in range(piece.first, piece.last + 1)]
    covered = [i for piece in pieces for i in range(piece.first, piece.last + 1)]
    before = "\n\n".join(units[i].text for i in kept)
    after = facts(refined.text)
    wrong = [] if before == refined.text else changes(facts(before), after)
    if covered != list(range(len(units))):
        wrong.append("fusion lost or repeated a block")
    if not wrong:
        refined.unrefined = refused
        refined.record["facts"] = after.total()
        return refined
    plain = assemble([Piece(unit.index, unit.index, unit.text) for unit in units], units)
    plain.record = refined.record | plain.record | {"violations": wrong[:50], "fidelity": 0.0}
    plain.unrefined = True
    return plain


def _contexts(units: Sequence[Unit], starts: Sequence[int]) -> list[tuple[str, ...]]:
    """Headings above each window: the last of each level. ``starts`` rise."""
    path: list[tuple[int, str]] = []
    found: list[tuple[str, ...]] = []
    position = 0
    for start in starts:
        for unit in units[position:start]:
            if level := level_of(unit.text):
                path = [(n, heading) for n, heading in path if n < level]
                path.append((level, unit.text.strip("# ").strip()))
        position = start
        found.append(tuple(heading for _, heading in path))
    return found


def _with_levels(pieces: Sequence[Piece]) -> list[Piece]:
    kept = [piece.text for piece in pieces if not piece.reason]
    rebuilt = iter(rebuild_levels(kept))
    return [
        piece if piece.reason else Piece(piece.first, piece.last, next(rebuilt), piece.reason)
        for piece in pieces
    ]


def assemble(pieces: Sequence[Piece], units: Sequence[Unit]) -> Refined:
    """Text, block map and sections of fused pieces, with coverage and what was dropped."""
    parts: list[str] = []
    blocks: list[dict[str, Any]] = []
    dropped: list[dict[str, Any]] = []
    length = lost = 0
    gap = ""
    for piece in pieces:
        first, last = units[piece.first], units[piece.last]
        gap = max(gap, first.gap, key=len) if not piece.text.startswith("#") else "\n\n"
        if piece.reason or not piece.text.strip():
            shown = {"start": first.start, "end": last.end, "reason": piece.reason or "empty"}
            dropped.append(shown | {"text": first.text[:120]})
            lost += sum(unit.tokens for unit in units[piece.first : piece.last + 1])
            continue
        piece_text = normalise_text(piece.text)
        lead = gap if parts else ""
        parts += [lead, piece_text]
        start = length + len(lead)
        length = start + len(piece_text)
        blocks.append(
            {
                "start": start,
                "end": length,
                "cleaned_start": first.start,
                "cleaned_end": last.end,
                "path": first.path,
            }
        )
        gap = "\n\n" if piece_text.startswith("#") else ""
    text = "".join(parts)
    total = sum(unit.tokens for unit in units)
    record = {"coverage": round(1 - lost / total, 4) if total else 1.0, "dropped": dropped}
    return Refined(text, blocks, sections_of(text), record)

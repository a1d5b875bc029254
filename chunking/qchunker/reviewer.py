"""Agent 3, the integrity reviewer: what a chunk lacks, and where the document states it (section 3.2.3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from chunking.headings import heading_shape, marked_level, visible
from chunking.partition import Span
from chunking.sentences import split_sentences
from models.errors import AnswerDeferred, AnswerRejected
from models.prompts import Prompts, Quoted
from models.skills import Answer, Out, Skill

if TYPE_CHECKING:
    from models import Models

ItemKind = Literal["term", "abbreviation", "symbol", "subject", "premise", "reference", "table_header"]


class MissingItem(BaseModel):
    """Something a reader of the chunk alone would need; ``quote`` is where the document states it, verbatim."""

    kind: ItemKind
    need: str
    quote: str


class Review(BaseModel):
    """Missing items and the verdict: does the chunk need completion?"""

    items: list[MissingItem] = Field(default_factory=list)
    incomplete: bool = False


@dataclass(frozen=True)
class ReviewIn:
    """A chunk (span) of a document; ``view`` is the part of the document a model is shown."""

    document: str
    start: int
    end: int
    language: str
    view: str = field(default="", repr=False)
    structure: DocumentStructure | None = field(default=None, repr=False)

    @property
    def chunk(self) -> str:
        """The chunk's text."""
        return self.document[self.start : self.end]


class ReviewChunk(Skill[ReviewIn, Review]):
    """Chunk and document to missing items and verdict."""

    name: ClassVar[str] = "review_chunk"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Review
    prompts: ClassVar[Prompts] = Prompts(__package__, "review_chunk")
    shares_prefix: ClassVar[bool] = True

    def values(self, given: ReviewIn) -> dict[str, Quoted]:
        """The document is the shared beginning of all its chunks' reviews."""
        return {"document": Quoted(given.view or given.document), "chunk": Quoted(given.chunk, "chunk")}

    def offline(self, given: ReviewIn) -> Review:
        """Headings above, table headers, definitions of abbreviations, referenced sections."""
        structure = given.structure or DocumentStructure.of(given.document)
        items = _offline_items(given, structure)
        return Review(items=items, incomplete=bool(items))


def ask_by_view(
    models: Models, skill: Skill[ReviewIn, Out], asked: Sequence[ReviewIn]
) -> list[Answer[Out] | AnswerRejected]:
    """Answers in order, view by view, so that a view is paid for once.

    A view whose answers wait for a batch job does not keep the others out of it.
    """
    found: list[Answer[Out] | AnswerRejected] = []
    deferred: AnswerDeferred | None = None
    for _, group in groupby(asked, key=lambda given: given.view):
        try:
            found += models.run_many(skill, list(group))
        except AnswerDeferred as error:
            deferred = error
    if deferred is not None:
        raise deferred
    return found


@dataclass(frozen=True)
class LocatedItem:
    """A missing item with the span in the document that states it."""

    kind: str
    need: str
    start: int
    end: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def locate_items(given: ReviewIn, review: Review) -> tuple[list[LocatedItem], list[dict[str, str]]]:
    """Items whose quote is found in the document outside the chunk, and the discarded ones with reasons."""
    located: list[LocatedItem] = []
    discarded: list[dict[str, str]] = []
    for item in review.items:
        span = _outside(given, item.quote)
        if span is None:
            inside = item.quote.strip() and item.quote.strip() in given.chunk
            reason = "stated in the chunk itself" if inside else "not stated in the document"
            discarded.append(
                {"kind": item.kind, "need": item.need[:200], "quote": item.quote[:200], "reason": reason}
            )
        elif not any(other.start <= span[0] and span[1] <= other.end for other in located):
            located.append(LocatedItem(item.kind, item.need[:200], *span))
    return located, discarded


def _outside(given: ReviewIn, quote: str) -> Span | None:
    """First place of a quote outside the chunk; blanks may differ."""
    words = quote.split()
    if not words or len(quote) > 2000:
        return None
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words))
    for match in pattern.finditer(given.document):
        if match.end() <= given.start or match.start() >= given.end:
            return match.span()
    return None


# --- the offline answer --------------------------------------------------------------------------------------

_SHORT_FORM = re.compile(
    r"(?P<full>[A-Za-z][A-Za-z\-]*(?: [A-Za-z\-]+){1,6})\s?[(（](?P<short>[A-Z][A-Za-z]?[A-Z\d][A-Z\d\-]{0,6})[)）]"
    r"|(?P<short2>[A-Z][A-Z\d\-]{1,7})\s?[(（](?P<full2>[A-Za-z\u3400-\u9fff][^()（）\n]{3,60})[)）]"
    r"|(?P<full3>[\u3400-\u9fff]{2,20})\s?[（(](?:以下)?(?:简称|统称)?[“\"：:]?\s?(?P<short3>[A-Z][A-Z\d\-]{1,7}|(?<=简称)[\u3400-\u9fff]{2,10}|(?<=简称“)[\u3400-\u9fff]{2,10})[”\"]?[)）]"
)
_REFERENCE = re.compile(
    r"(?:见|参见|参照|参考|按照?|依照|详见|符合)\s*(?:本[^\s，。]{0,4})?(?P<zh>第\s*[一二三四五六七八九十百\d]{1,4}\s*(?:部分|章|节|条)|表\s*\d+(?:[.-]\d+)?|附录\s*[A-Z\d])"
    r"|(?:[Ss]ee|[Rr]efer to|according to|under|in) (?P<en>(?:[Ss]ection|SECTION|[Tt]able|[Cc]hapter|[Aa]ppendix) [\dA-Z]{1,3}(?:\.\d+)?)\b"
)
_MAX_ITEMS = 6


@dataclass(frozen=True)
class DocumentStructure:
    """What the offline reviewer needs of a document, computed once: headings and short forms."""

    heading_starts: tuple[int, ...]
    headings: tuple[tuple[int, int, int], ...]  # start, end, level
    short_forms: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, document: str) -> DocumentStructure:
        """Read headings (explicit or strongly shaped lines) and definitions of short forms."""
        headings: list[tuple[int, int, int]] = []
        for start, end in split_sentences(document):
            line = document[start:end].rstrip()
            level = marked_level(line)
            if level is None:
                shape = heading_shape(visible(line))
                if shape is None or shape.strength < 0.8 or shape.style in ("article", "plain"):
                    continue
                level = 7 + shape.depth if shape.style == "decimal" else 7
            headings.append((start, start + len(line), level))
        forms: dict[str, tuple[int, int]] = {}
        for match in _SHORT_FORM.finditer(document):
            short = match["short"] or match["short2"] or match["short3"]
            if match["short"] and not _initials(match["full"], short):
                continue
            forms.setdefault(short, match.span())
        return cls(tuple(h[0] for h in headings), tuple(headings), forms)

    def above(self, offset: int) -> list[tuple[int, int, int]]:
        """The headings that a place stands under, outermost first."""
        path: list[tuple[int, int, int]] = []
        for heading in reversed(self.headings[: bisect_right(self.heading_starts, offset)]):
            if not path or heading[2] < path[-1][2]:
                path.append(heading)
        return path[::-1]


def _initials(full: str, short: str) -> bool:
    """Whether the capital letters of the short form are initials of the words, in order."""
    words = iter(full.lower().split())
    return all(
        any(word.startswith(letter) for word in words) for letter in re.sub(r"[^a-z]", "", short.lower())[:4]
    )


def _offline_items(given: ReviewIn, structure: DocumentStructure) -> list[MissingItem]:
    items = _subject(given, structure) + _table_header(given) + _abbreviations(given, structure)
    return (items + _references(given, structure))[:_MAX_ITEMS]


def _subject(given: ReviewIn, structure: DocumentStructure) -> list[MissingItem]:
    """Headings above a chunk that does not begin with one: they say what it is about."""
    path = [h for h in structure.above(given.start) if h[1] <= given.start]
    if any(h[0] == given.start for h in structure.headings):
        own = next(h for h in structure.headings if h[0] == given.start)
        path = [h for h in path if h[2] < own[2]]
    chunk = given.chunk
    items = []
    for start, end, _ in path[:1] + path[1:][-1:]:
        quote = visible(given.document[start:end])
        if quote and quote not in chunk and quote in given.document[start:end]:
            items.append(MissingItem(kind="subject", need="heading above the chunk", quote=quote))
    return items


def _table_header(given: ReviewIn) -> list[MissingItem]:
    """The header row of a table that the chunk begins in the middle of."""
    if not given.chunk.lstrip().startswith("|"):
        return []
    before = given.document[: given.start].rstrip("\n")
    rows = []
    for line in reversed(before.split("\n")):
        if not line.lstrip().startswith("|"):
            break
        rows.append(line.strip())
    if len(rows) < 2 or not re.fullmatch(r"[|\s:\-]+", rows[-2]):
        return []
    return [MissingItem(kind="table_header", need="column names", quote=rows[-1])]


def _abbreviations(given: ReviewIn, structure: DocumentStructure) -> list[MissingItem]:
    items = []
    for short in sorted(structure.short_forms):
        start, end = structure.short_forms[short]
        if end > given.start and start < given.end:
            continue
        bounded = (
            rf"(?<![A-Za-z\d\-]){re.escape(short)}(?![A-Za-z\d\-])" if short.isascii() else re.escape(short)
        )
        if re.search(bounded, given.chunk):
            quote = given.document[start:end]
            items.append(MissingItem(kind="abbreviation", need=short, quote=quote))
    return items


def _references(given: ReviewIn, structure: DocumentStructure) -> list[MissingItem]:
    """Headings of sections that the chunk refers to."""
    items = []
    for match in _REFERENCE.finditer(given.chunk):
        wanted = re.sub(r"\s+", "", match["zh"] or match["en"]).lower()
        for start, end, _ in structure.headings:
            quote = visible(given.document[start:end])
            folded = re.sub(r"\s+", "", quote).lower()
            named = folded.startswith(wanted) and not folded[len(wanted) : len(wanted) + 1].isdigit()
            if named and len(folded) > len(wanted) and not given.start <= start < given.end:
                items.append(MissingItem(kind="reference", need=match[0], quote=quote))
                break
    return items


def needed(items: Sequence[LocatedItem], document: str) -> list[str]:
    """The stated texts of located items."""
    return [document[item.start : item.end] for item in items]

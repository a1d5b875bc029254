"""The debate: outline, segmenter, reviewer and completer over one document, with its record (section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chunking.chunkscore import Selector, Variant, boundary_losses
from chunking.partition import Node, SegmentResult, Span, flat
from chunking.qchunker.completer import CompleteChunk, CompleteIn, Completion, Support
from chunking.qchunker.guards import guard
from chunking.qchunker.outline import Outline, OutlineIn, OutlineQuestion, QuestionOutline, anchors
from chunking.qchunker.reviewer import (
    DocumentStructure,
    LocatedItem,
    Review,
    ReviewChunk,
    ReviewIn,
    ask_by_view,
    locate_items,
)
from chunking.qchunker.sampling import Candidate, offline_candidates
from chunking.qchunker.segmenter import SegmentText, model_candidates, segment, sentence_windows, spans_of
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected
from models.protocols import Perplexity
from models.skills import Answer

if TYPE_CHECKING:
    from models import Models

SKILLS = (QuestionOutline(), SegmentText(), ReviewChunk(), CompleteChunk())


@dataclass(frozen=True)
class QChunkerOptions:
    """Options of one run; sizes and windows in tokens.

    ``completion`` False stops after the segmenter (the paper's "w/o M_Ref").
    """

    size: int = 200
    window: int = 12_000
    lam: float = 0.3
    alpha: float = 1e-3
    samples: int = 64
    seed: int = 0
    variant: Variant = "ppl_ratio"
    completion: bool = True


@dataclass
class _Debate:
    """State of one document's debate."""

    text: str
    language: str
    models: Models
    options: QChunkerOptions
    vectors: SentenceVectors
    record: dict[str, Any] = field(default_factory=dict)


def qchunk(
    text: str,
    vectors: SentenceVectors,
    models: Models,
    perplexity: Perplexity,
    language: str,
    options: QChunkerOptions,
) -> SegmentResult:
    """Partition a text by the four agents.

    Answers that fail their checks never break the partition: an outline that is
    refused is empty, a refused draw does not compete, a refused review leaves the
    chunk alone, a refused completion keeps it. Raises the transient and final
    errors of the model layer.
    """
    debate = _Debate(text, language, models, options, vectors)
    if not text:
        return SegmentResult(text, "qchunker", (), record={"outline": [], "segmenter": {"candidates": []}})
    questions = _outline(debate)
    spans = _segment(debate, questions, perplexity)
    asked = _question_of(spans, vectors, questions, debate)
    nodes = flat(spans)
    completed = _complete(debate, nodes) if options.completion else {}
    return SegmentResult(text, "qchunker", nodes, record=debate.record, completed=completed, questions=asked)


# --- agent 1 -------------------------------------------------------------------------------------------------


def _outline(debate: _Debate) -> list[OutlineQuestion]:
    """Questions over windows of the document, merged in order; equal questions once."""
    skill = QuestionOutline()
    merged: dict[tuple[str, str], OutlineQuestion] = {}
    source, refused = "", []
    windows = [
        OutlineIn(debate.text[begin:end], debate.language, _units(debate, begin, end))
        for begin, end in _windows(debate, skill.name)
    ]
    for answer in debate.models.run_many(skill, windows):
        if isinstance(answer, AnswerRejected):
            refused.append(str(answer))
            continue
        source = answer.source
        _merge(merged, answer.value)
    questions = list(merged.values())
    debate.record["outline"] = {
        "source": source,
        "refused": refused,
        "questions": [question.model_dump() for question in questions],
    }
    return questions


def _merge(merged: dict[tuple[str, str], OutlineQuestion], outline: Outline) -> None:
    """Add a window's questions; dependencies are renumbered, those on unknown questions are left out."""
    offset = len(merged)
    for question in outline.questions:
        wanted = [offset + number for number in question.depends_on if 0 <= number < len(outline.questions)]
        merged.setdefault(
            (question.about, question.question), question.model_copy(update={"depends_on": wanted})
        )


def _windows(debate: _Debate, skill: str) -> list[Span]:
    """Stretches of whole sentences within the window; the rules read the document in one."""
    if debate.models.is_offline(skill):
        return [(0, len(debate.text))]
    return sentence_windows(debate.vectors, debate.options.window)


def _units(debate: _Debate, begin: int, end: int) -> int:
    """Chunks to be expected of a stretch of the text."""
    tokens = debate.models.count_tokens(debate.text[begin:end])
    return max(1, round(tokens / max(debate.options.size, 1)))


# --- agent 2 -------------------------------------------------------------------------------------------------


def _segment(debate: _Debate, questions: Sequence[OutlineQuestion], perplexity: Perplexity) -> list[Span]:
    vectors, options, models = debate.vectors, debate.options, debate.models
    places = anchors(debate.text, vectors.sentences, questions)
    offline = offline_candidates(vectors, options.size, places, seed=options.seed)
    skill = SegmentText()
    drawn: list[Candidate] = []
    refused: list[str] = []
    if not models.is_offline(skill.name):
        drawn, refused = model_candidates(
            vectors, models, questions, places, debate.language, options.size, options.window
        )
    selector = Selector(
        vectors,
        _cached(boundary_losses(vectors, perplexity, options.variant)),
        lam=options.lam,
        alpha=options.alpha,
        samples=options.samples,
        seed=options.seed,
    )
    chosen = segment(vectors, selector, offline, drawn)
    record = chosen.record()
    for entry, candidate in zip(record["candidates"], chosen.candidates, strict=True):
        entry["cuts"] = [vectors.sentences[cut][0] for cut in candidate.cuts]
    debate.record["segmenter"] = {
        **record,
        "refused": refused,
        "lambda": options.lam,
        "samples": options.samples,
    }
    return spans_of(vectors, chosen.cuts)


def _cached(function: Callable[[int], float]) -> Callable[[int], float]:
    known: dict[int, float] = {}

    def value(i: int) -> float:
        if i not in known:
            known[i] = function(i)
        return known[i]

    return value


def _question_of(
    spans: Sequence[Span], vectors: SentenceVectors, questions: Sequence[OutlineQuestion], debate: _Debate
) -> dict[int, str]:
    """The outline question of each chunk: the first that begins in it, else the last one before it."""
    places = anchors(debate.text, vectors.sentences, questions)
    located = sorted(
        (vectors.sentences[place][0], number) for number, place in enumerate(places) if place is not None
    )
    asked: dict[int, str] = {}
    current = ""
    for index, (start, end) in enumerate(spans):
        inside = [number for at, number in located if start <= at < end]
        shown = questions[inside[0]].question if inside else current
        if shown:
            asked[index] = shown
        if inside:
            current = questions[inside[-1]].question
    return asked


# --- agents 3 and 4 ------------------------------------------------------------------------------------------


def _complete(debate: _Debate, nodes: Sequence[Node]) -> dict[int, str]:
    """Review every chunk, complete those that need it; everything found and discarded is recorded."""
    givens = _review_inputs(debate, nodes)
    entries: list[dict[str, Any]] = []
    lacking: dict[int, CompleteIn] = {}
    reviews = ask_by_view(debate.models, ReviewChunk(), givens)
    for index, (given, review) in enumerate(zip(givens, reviews, strict=True)):
        entry, items = _reviewed(given, review)
        entries.append({"chunk": index, "incomplete": bool(items), **entry})
        if items:
            lacking[index] = CompleteIn(given.chunk, _supports(items, debate.text), debate.language)
    completed: dict[int, str] = {}
    for index, answer in zip(
        lacking, debate.models.run_many(CompleteChunk(), list(lacking.values())), strict=True
    ):
        added, text = _completed(lacking[index], answer)
        entries[index] |= added
        if text:
            completed[index] = text
    counts = {
        "reviewed": len(nodes),
        "incomplete": len(lacking),
        "completed": len(completed),
        "kept": len(lacking) - len(completed),
    }
    told = [entry for entry in entries if len(entry) > 2]
    sources = sorted({answer.source for answer in reviews if not isinstance(answer, AnswerRejected)})
    debate.record["reviewer"] = {"source": ", ".join(sources), "chunks": told, "counts": counts}
    return completed


def _review_inputs(debate: _Debate, nodes: Sequence[Node]) -> list[ReviewIn]:
    """What is asked of each chunk; its view is the window that holds its beginning."""
    structure = DocumentStructure.of(debate.text)
    views = [(begin, end, debate.text[begin:end]) for begin, end in _windows(debate, ReviewChunk.name)]
    return [
        ReviewIn(
            debate.text,
            node.start,
            node.end,
            debate.language,
            view=next((view for begin, end, view in views if begin <= node.start < end), debate.text),
            structure=structure,
        )
        for node in nodes
    ]


def _reviewed(
    given: ReviewIn, answer: Answer[Review] | AnswerRejected
) -> tuple[dict[str, Any], list[LocatedItem]]:
    """What is recorded of a review, and the items to be woven in."""
    if isinstance(answer, AnswerRejected):
        return {"review_refused": str(answer)}, []
    items, discarded = locate_items(given, answer.value)
    entry: dict[str, Any] = {"discarded": discarded} if discarded else {}
    if not items:
        return entry, []
    entry |= {"source": answer.source, "items": [item.as_dict() for item in items]}
    if not answer.value.incomplete:
        return {**entry, "kept": "the reviewer finds the chunk complete enough"}, []
    return entry, items


def _supports(items: Sequence[LocatedItem], text: str) -> tuple[Support, ...]:
    return tuple(Support(item.kind, item.need, text[item.start : item.end]) for item in items)


def _completed(given: CompleteIn, answer: Answer[Completion] | AnswerRejected) -> tuple[dict[str, Any], str]:
    """What is recorded of a completion, and the new text (empty where the chunk is kept)."""
    if isinstance(answer, AnswerRejected):
        return {"kept": str(answer)}, ""
    accepted = sorted(
        {item.index for item in answer.value.items if item.accepted and 0 <= item.index < len(given.items)}
    )
    entry: dict[str, Any] = {"accepted": accepted, "completer": answer.source}
    if answer.value.text == given.chunk or not accepted:
        return {**entry, "kept": "no item passed verification within the length limit"}, ""
    # The skill's check has proved this; it is proved again because facts are at stake and it costs little.
    reasons = guard(given.chunk, answer.value.text, [given.items[i].quote for i in accepted])
    return ({**entry, "kept": "; ".join(reasons)}, "") if reasons else (entry, answer.value.text)

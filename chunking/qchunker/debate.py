"""The debate: outline, segmenter, reviewer and completer over one document, with its record (section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chunking.chunkscore import Selector, Variant, boundary_losses
from chunking.partition import Node, SegmentResult, Span, flat
from chunking.qchunker.completer import CompleteChunk, CompleteIn, Support
from chunking.qchunker.guards import guard
from chunking.qchunker.outline import Outline, OutlineIn, OutlineQuestion, QuestionOutline, anchors
from chunking.qchunker.reviewer import DocumentStructure, ReviewChunk, ReviewIn, locate_items
from chunking.qchunker.sampling import Candidate, offline_candidates
from chunking.qchunker.segmenter import SegmentText, model_candidates, segment, spans_of, window_end
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected
from models.protocols import Perplexity

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
    for begin, end in _windows(debate, skill.name):
        units = max(1, round(_tokens(debate, begin, end) / max(debate.options.size, 1)))
        given = OutlineIn(debate.text[begin:end], debate.language, units)
        try:
            answer = debate.models.run(skill, given)
        except AnswerRejected as error:
            refused.append(str(error))
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
    spans: list[Span] = []
    low = 0
    sentences = debate.vectors.sentences
    while low < len(sentences):
        high = window_end(debate.vectors, low, debate.options.window)
        spans.append((sentences[low][0], sentences[high - 1][1]))
        low = high
    return spans


def _tokens(debate: _Debate, begin: int, end: int) -> int:
    return debate.models.count_tokens(debate.text[begin:end])


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
    debate.record["segmenter"] = {
        **chosen.record(),
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
    structure = DocumentStructure.of(debate.text)
    views = _views(debate)
    completed: dict[int, str] = {}
    reviews: list[dict[str, Any]] = []
    counts = {"reviewed": 0, "incomplete": 0, "completed": 0, "kept": 0}
    for index, node in enumerate(nodes):
        given = ReviewIn(
            debate.text,
            node.start,
            node.end,
            debate.language,
            view=_view(views, node, debate.text),
            structure=structure,
        )
        entry = _review_one(debate, given, index)
        counts["reviewed"] += 1
        if entry.get("incomplete"):
            counts["incomplete"] += 1
            text = entry.pop("text", None)
            counts["completed" if text else "kept"] += 1
            if text:
                completed[index] = text
        if len(entry) > 2:
            reviews.append(entry)
    debate.record["reviewer"] = {"chunks": reviews, "counts": counts}
    return completed


def _views(debate: _Debate) -> list[Span]:
    return _windows(debate, ReviewChunk.name)


def _view(views: Sequence[Span], node: Node, text: str) -> str:
    """The window that holds the chunk's beginning: the shared prefix of its reviews."""
    begin, end = next((span for span in views if span[0] <= node.start < span[1]), (0, len(text)))
    return text[begin:end]


def _review_one(debate: _Debate, given: ReviewIn, index: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"chunk": index, "incomplete": False}
    try:
        answer = debate.models.run(ReviewChunk(), given)
    except AnswerRejected as error:
        return {**entry, "review_refused": str(error)}
    items, discarded = locate_items(given, answer.value)
    if discarded:
        entry["discarded"] = discarded
    if not items:
        return entry
    entry |= {"source": answer.source, "items": [item.as_dict() for item in items]}
    if not answer.value.incomplete:
        return {**entry, "kept": "the reviewer finds the chunk complete enough"}
    entry["incomplete"] = True
    supports = tuple(Support(item.kind, item.need, debate.text[item.start : item.end]) for item in items)
    return _complete_one(debate, CompleteIn(given.chunk, supports, debate.language), entry)


def _complete_one(debate: _Debate, given: CompleteIn, entry: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = debate.models.run(CompleteChunk(), given)
    except AnswerRejected as error:
        return {**entry, "kept": str(error)}
    accepted = [
        item.index for item in answer.value.items if item.accepted and 0 <= item.index < len(given.items)
    ]
    entry["accepted"] = sorted(set(accepted))
    if answer.value.text == given.chunk or not accepted:
        return {**entry, "kept": "no item passed verification within the length limit"}
    # The skill's check has proved this; it is proved again because facts are at stake and it costs little.
    reasons = guard(given.chunk, answer.value.text, [given.items[i].quote for i in entry["accepted"]])
    if reasons:
        return {**entry, "kept": "; ".join(reasons)}
    return {**entry, "text": answer.value.text}

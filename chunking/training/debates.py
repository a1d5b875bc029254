"""Examples for M_Gen, M_Disc and M_Ref out of stored debates (QChunker, section 3.4).

Only what passed every check of the debate becomes an example, and it must also
pass the checks of the small model's skill: where it may be read again, where its
facts are stated in what the model is shown. Everything left out is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chunking.errors import PartitionError
from chunking.partition import Span, check_tiling
from chunking.prompted.windows import Tally, WindowIn, read_windows
from chunking.qchunker.completer import CompleteChunk, CompleteIn, Support
from chunking.qchunker.heads import locate_heads
from chunking.qchunker.outline import OutlineQuestion, anchors
from chunking.qchunker.reviewer import DocumentStructure, ReviewChunk, ReviewIn, locate_items
from chunking.qchunker.slm import Refinement, Supplement, located_supplements, views_of
from chunking.training.examples import Example, Made, MadeBy, Task
from chunking.vectors import SentenceVectors

_OFFLINE = "offline"
_UNNAMED = "a model, its name is not recorded"
_WORDS, _CHARACTERS = 4, 8  # a head has at least so many words, or CJK characters (as the prompt asks for)
_LONGEST = 200  # characters of a head; what needs more is no head


@dataclass(frozen=True)
class StoredDebate:
    """A document's present version with its partition by ``qchunker``, as the catalogue holds them."""

    document: str
    version: str
    language: str
    text: str
    chunks: tuple[Span, ...]
    questions: tuple[str, ...]
    completed: tuple[str | None, ...]
    settings: Mapping[str, Any]
    record: Mapping[str, Any]


def examples_of(debate: StoredDebate, table: Callable[[str], SentenceVectors], counter: str) -> Made:
    """All examples of a debate. ``table`` gives a text's sentences with tokens; ``counter`` is its counter's name."""
    made = Made()
    problem = _unusable(debate, counter)
    if problem:
        made.drop("debate", problem)
        return made
    vectors = table(debate.text)
    starts = {start: sentence for sentence, (start, _) in enumerate(vectors.sentences)}
    if any(start not in starts for start, _ in debate.chunks):
        made.drop("debate", "a chunk begins inside a sentence")
        return made
    _generate(debate, vectors, made)
    _review(debate, vectors, made)
    return made


def _unusable(debate: StoredDebate, counter: str) -> str:
    """Why nothing of a debate can be used; empty where it can."""
    try:
        check_tiling(debate.chunks, len(debate.text))
    except PartitionError:
        return "the chunks do not tile the text"
    if not {"size", "window", "tokens"} <= debate.settings.keys():
        return "its settings are not recorded"
    if debate.settings["tokens"] != counter:
        return f"cut with another token counter than {counter}"
    if not {"outline", "segmenter"} <= debate.record.keys():
        return "its record is not whole"
    return ""


# --- M_Gen -----------------------------------------------------------------------------------------------------


def _generate(debate: StoredDebate, vectors: SentenceVectors, made: Made) -> None:
    """One example a window: the windows that inference would read, were its answers these."""
    problem, origin, made_by = _partition_fault(debate)
    if problem:
        made.drop("generate", problem)
        return
    text, size, window = debate.text, int(debate.settings["size"]), int(debate.settings["window"])
    sentence_of = {start: sentence for sentence, (start, _) in enumerate(vectors.sentences)}
    begins = {sentence_of[start]: index for index, (start, _) in enumerate(debate.chunks)}
    anchored = _anchored(debate, vectors)

    def fits(chunk: int) -> bool:
        """Within the size, or a sentence that stands alone: a model's draw is not held to the size."""
        start, end = debate.chunks[chunk]
        low, high = sentence_of[start], sentence_of.get(end, len(vectors))
        return high - low == 1 or vectors.fits(low, high, size)

    def read(low: int, high: int) -> list[int]:
        inside = [sentence for sentence in sorted(begins) if low <= sentence < high]
        begin, end = vectors.sentences[low][0], vectors.sentences[high - 1][1]
        place = {"start": begin, "end": end, "size": size}
        given = WindowIn(text[begin:end], debate.language, size)
        chunks = [begins[sentence] for sentence in inside]
        if not inside or inside[0] != low:
            made.drop("generate", "a window begins inside a chunk")
        elif not all(fits(chunk) for chunk in chunks):
            made.drop("generate", "a chunk over the size that is asked for")
        elif any(not debate.questions[chunk] for chunk in chunks):
            made.drop("generate", "a chunk without a question of the outline")
        else:
            answer = _outline_and_heads(debate, given.text, begin, chunks, anchored)
            if isinstance(answer, str):
                made.drop("generate", answer)
            else:
                made.add(_example(debate, "generate", place, answer, made_by, origin), given)
        return inside

    read_windows(vectors, window, read, Tally())


def _partition_fault(debate: StoredDebate) -> tuple[str, dict[str, str], MadeBy]:
    """Why the partition must not be learnt (empty: it may), and who made outline and cuts."""
    outline, segmenter = debate.record["outline"], debate.record["segmenter"]
    if outline.get("refused"):
        return "a part of the outline was refused", {}, "unknown"
    if not outline.get("questions"):
        return "the outline has no question", {}, "unknown"
    candidates, selected = segmenter.get("candidates", []), segmenter.get("selected")
    if not isinstance(selected, int) or not 0 <= selected < len(candidates):
        return "the chosen candidate is not recorded", {}, "unknown"
    chosen = candidates[selected]
    if chosen.get("z") is None:
        return "not chosen by ChunkScore", {}, "unknown"
    if chosen.get("heads_not_found"):
        return "the chosen candidate has heads that are not in the document", {}, "unknown"
    if "cuts" in chosen and list(chosen["cuts"]) != [start for start, _ in debate.chunks[1:]]:
        return "the chunks are not those of the chosen candidate", {}, "unknown"
    origin = {"outline": str(outline.get("source", "")), "chunks": str(chosen.get("origin", ""))}
    by_rules = [origin["outline"] == _OFFLINE, origin["chunks"].startswith(f"{_OFFLINE}:")]
    made_by: MadeBy = "offline" if all(by_rules) else "mixed" if any(by_rules) else "model"
    return "", origin, made_by if origin["outline"] and origin["chunks"] else "unknown"


def _anchored(debate: StoredDebate, vectors: SentenceVectors) -> list[tuple[int, str]]:
    """(offset, question) of the outline's questions that are found in the text, in document order."""
    questions = [OutlineQuestion.model_validate(row) for row in debate.record["outline"]["questions"]]
    places = anchors(debate.text, vectors.sentences, questions)
    found = [
        (vectors.sentences[place][0], " ".join(question.question.split()))
        for place, question in zip(places, questions, strict=True)
        if place is not None
    ]
    return sorted(found, key=lambda pair: pair[0])


def _outline_and_heads(
    debate: StoredDebate, window: str, begin: int, chunks: Sequence[int], anchored: Sequence[tuple[int, str]]
) -> dict[str, Any] | str:
    """M_Gen's answer for a window, or why there is none.

    The outline holds the chunks' questions and the others that begin in the window.
    """
    starts = [debate.chunks[chunk][0] - begin for chunk in chunks]
    heads: list[str] = []
    cursor = 0
    for start, end in zip(starts, [*starts[1:], len(window)], strict=True):
        head = _head(window, start, end, cursor)
        if not head:
            return "a chunk that no head leads back to"
        heads.append(head)
        cursor = start + 1
    if locate_heads(window, heads).starts != tuple(starts):
        return "a chunk that no head leads back to"
    outline: list[str] = []
    numbers: list[int] = []
    for start, end, chunk in zip(starts, [*starts[1:], len(window)], chunks, strict=True):
        own = " ".join(debate.questions[chunk].split())
        inside = [question for at, question in anchored if start <= at - begin < end]
        outline += [question for question in dict.fromkeys([own, *inside]) if question not in outline]
        numbers.append(outline.index(own) + 1)
    rows = [{"question": number, "head": head} for number, head in zip(numbers, heads, strict=True)]
    return {"outline": outline, "chunks": rows}


_UNIT = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\s\u3400-\u9fff\uf900-\ufaff]+")


def _head(window: str, start: int, end: int, cursor: int) -> str:
    """First words of a chunk, as many as a reader asks for and as lead back to it; empty where none do.

    ``cursor``: the place from which heads are looked for, behind the beginning of the chunk before.
    """
    size = 0.0
    for unit in _UNIT.finditer(window, start, min(start + _LONGEST, len(window))):
        size += 1 / _CHARACTERS if "\u3400" <= unit[0] <= "\ufaff" else 1 / _WORDS
        head = window[start : unit.end()]
        if (size >= 1 or unit.end() >= end) and window.find(head, cursor) == start:
            return head
    return ""


# --- M_Disc and M_Ref ------------------------------------------------------------------------------------------


def _review(debate: StoredDebate, vectors: SentenceVectors, made: Made) -> None:
    """A verdict for each chunk, and the rewriting of those that were completed."""
    reviewer = debate.record.get("reviewer")
    if reviewer is None:
        for task in ("discriminate", "refine"):
            made.drop(task, "the debate ended without review (completion off)", len(debate.chunks))
        return
    told = {int(entry["chunk"]): entry for entry in reviewer.get("chunks", [])}
    window = int(debate.settings["window"])
    structure = DocumentStructure.of(debate.text)
    views = views_of(debate.chunks, vectors, window)
    reviewed_by = _reviewer(debate, reviewer, told, structure)
    for index, ((start, end), view) in enumerate(zip(debate.chunks, views, strict=True)):
        given = ReviewIn(
            debate.text, start, end, debate.language, debate.text[slice(*view)], structure=structure
        )
        entry = told.get(index, {})
        place = {"start": start, "end": end, "view": list(view)}
        problem, incomplete = _verdict(entry, debate.completed[index])
        if incomplete and not problem:
            problem = _unseen(entry, view, (start, end))
        if problem:
            made.drop("discriminate", problem)
        else:
            origin = {"review": reviewed_by[0]}
            answer: dict[str, Any] = {"incomplete": incomplete}
            made.add(_example(debate, "discriminate", place, answer, reviewed_by[1], origin), given)
        if not incomplete:
            continue
        if problem:
            made.drop("refine", problem)
            continue
        _refine(debate, made, given, place, entry, debate.completed[index] or "", reviewed_by)


def _verdict(entry: Mapping[str, Any], completed: str | None) -> tuple[str, bool]:
    """Why a review must not be learnt (empty: it may), and its verdict.

    What reviewer and completer do not agree on is nobody's example.
    """
    if "review_refused" in entry:
        return "the review was refused", False
    if entry.get("incomplete"):
        if completed is None:
            return "the completer, or the guard of facts, refused what the reviewer asked for", True
        return ("" if _accepted(entry) else "no item was accepted"), True
    if entry.get("items"):
        return "the reviewer found items and called the chunk complete", False
    if entry.get("discarded"):
        return "the reviewer named only what the document does not state", False
    return "", False


def _accepted(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = entry.get("items", [])
    return [items[number] for number in entry.get("accepted", []) if 0 <= number < len(items)]


def _unseen(entry: Mapping[str, Any], view: Span, chunk: Span) -> str:
    """Why an accepted item cannot be known from what the model is shown; empty where all can."""
    for item in _accepted(entry):
        if not view[0] <= item["start"] < item["end"] <= view[1]:
            return "an item is stated outside the window that the model is shown"
        if item["start"] < chunk[1] and chunk[0] < item["end"]:
            return "an item is stated in the chunk itself"
    return ""


def _refine(
    debate: StoredDebate,
    made: Made,
    given: ReviewIn,
    place: Mapping[str, Any],
    entry: Mapping[str, Any],
    text: str,
    reviewed_by: tuple[str, MadeBy],
) -> None:
    """The rewriting of a chunk with the places that were unclear; it passes the guard of facts again."""
    items = [
        # what is needed stands in the chunk (a short form, a reference), or is absent altogether
        {"unclear": item["need"] if item["need"] in given.chunk else "", "supplement": quote}
        for item in _accepted(entry)
        for quote in [debate.text[item["start"] : item["end"]]]
    ]
    answer: dict[str, Any] = {"items": items, "text": text}
    refinement = Refinement(items=[Supplement(**item) for item in items], text=text)
    if located_supplements(given, refinement)[1]:
        made.drop("refine", "a supplement is not in the document outside the chunk")
        return
    name, made_by = _completer(debate, given, entry, text)
    by_rules = [by == "offline" for by in (reviewed_by[1], made_by)]
    both: MadeBy = (
        "unknown"
        if "unknown" in (reviewed_by[1], made_by)
        else "offline"
        if all(by_rules)
        else "mixed"
        if any(by_rules)
        else "model"
    )
    origin = {"review": reviewed_by[0], "completion": name}
    made.add(_example(debate, "refine", place, answer, both, origin), given)


# --- who answered ----------------------------------------------------------------------------------------------


def _reviewer(
    debate: StoredDebate,
    reviewer: Mapping[str, Any],
    told: Mapping[int, Mapping[str, Any]],
    structure: DocumentStructure,
) -> tuple[str, MadeBy]:
    """Who reviewed the chunks.

    Records name the reviewer where something was found. Where nothing was found
    in a whole document the rules are asked again: if they find something, the answer was not theirs.
    """
    named = {str(entry["source"]) for entry in told.values() if entry.get("source")}
    named |= {str(reviewer["source"])} if reviewer.get("source") else set()
    if len(named) == 1:
        name = named.pop()
        return name, "offline" if name == _OFFLINE else "model"
    if named:
        return ", ".join(sorted(named)), "mixed" if _OFFLINE in named else "model"
    skill = ReviewChunk()
    for start, end in debate.chunks:
        given = ReviewIn(debate.text, start, end, debate.language, structure=structure)
        if locate_items(given, skill.offline(given))[0]:
            return _UNNAMED, "model"
    return "not recorded", "unknown"


def _completer(
    debate: StoredDebate, given: ReviewIn, entry: Mapping[str, Any], text: str
) -> tuple[str, MadeBy]:
    """Who rewrote a chunk: as recorded, else by asking the rules again, whose answer is always the same."""
    name = str(entry.get("completer", ""))
    if name:
        return name, "offline" if name == _OFFLINE else "model"
    quotes = tuple(
        Support(item["kind"], item["need"], debate.text[item["start"] : item["end"]])
        for item in entry["items"]
    )
    by_rules = CompleteChunk().offline(CompleteIn(given.chunk, quotes, debate.language)).text
    return (_OFFLINE, "offline") if by_rules == text else (_UNNAMED, "model")


def _example(
    debate: StoredDebate,
    task: Task,
    place: Mapping[str, Any],
    answer: Mapping[str, Any],
    made_by: MadeBy,
    origin: Mapping[str, str],
) -> Example:
    return Example(
        task, debate.document, debate.version, debate.language, place, answer, made_by, origin, "debate"
    )

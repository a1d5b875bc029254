"""QChunker-3B, the distilled form of the debate: three small models instead of four agents (section 3.4).

M_Gen writes outline and chunk heads in one call, M_Disc says whether a chunk
needs completion, M_Ref names what is unclear, finds its supplement in the
document and rewrites the chunk. Location, guards and tiling are QChunker's. No
rule stands for a fine-tuned model, so nothing of this exists offline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, Field

from chunking.errors import no_rule
from chunking.partition import Node, SegmentResult, Span
from chunking.prompted.windows import Tally, WindowIn, partition, read_windows
from chunking.qchunker.guards import LENGTH_RATIO, guard
from chunking.qchunker.heads import Located, locate_heads
from chunking.qchunker.reviewer import LocatedItem, MissingItem, Review, ReviewIn, ask_by_view, locate_items
from chunking.qchunker.segmenter import sentence_at, sentence_windows
from chunking.vectors import SentenceVectors
from models.errors import AnswerRejected
from models.languages import wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

if TYPE_CHECKING:
    from models import Models

METHOD = "qchunker-slm"


# --- M_Gen ---------------------------------------------------------------------------------------------------


class GeneratedChunk(BaseModel):
    """A chunk in mask form: its first words, and the outline question it answers."""

    question: int = Field(description="number of its question in the outline, from 1")
    head: str = Field(description="the first words of the chunk, copied exactly")


class Generated(BaseModel):
    """The outline first, so that the model has read the document before it cuts it; then the chunks."""

    outline: list[str] = Field(description="questions in document order")
    chunks: list[GeneratedChunk] = Field(description="chunks in document order")


class SlmGenerate(Skill[WindowIn, Generated]):
    """M_Gen: document to question outline and chunk heads in one call."""

    name: ClassVar[str] = "slm_generate"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Generated
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "slm_generate")

    def values(self, given: WindowIn) -> dict[str, int | Quoted]:
        """The document, then the size."""
        return {"document": Quoted(given.text), "size": given.size}

    def check(self, given: WindowIn, answer: Generated) -> Verdict:
        """At least half of the heads are found in order; the outline is in the document's language."""
        problems = []
        heads = [chunk.head for chunk in answer.chunks]
        located = locate_heads(given.text, heads)
        if not heads:
            problems.append("there is no chunk")
        elif 2 * len(located.unresolved) > len(heads):
            problems.append(
                f"these heads are not in the document in this order: {list(located.unresolved[:5])}"
            )
        if not any(question.strip() for question in answer.outline):
            problems.append("the outline has no question")
        elif wrong := wrong_language(" ".join(answer.outline), given.language):
            problems.append(f"outline: {wrong}")
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: WindowIn) -> Generated:
        """Absent: it would be another method under this one's name."""
        no_rule(METHOD, self.name)


# --- M_Disc and M_Ref ----------------------------------------------------------------------------------------


class Discrimination(BaseModel):
    """Whether the chunk is inaccurate or ambiguous for want of information that the document has elsewhere."""

    incomplete: bool


class SlmDiscriminate(Skill[ReviewIn, Discrimination]):
    """M_Disc: document and chunk to the verdict whether the chunk needs completion."""

    name: ClassVar[str] = "slm_discriminate"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Discrimination
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "slm_discriminate")
    shares_prefix: ClassVar[bool] = True

    def values(self, given: ReviewIn) -> dict[str, Quoted]:
        """The document is the shared prefix of all its chunks."""
        return _document_and_chunk(given)

    def offline(self, given: ReviewIn) -> Discrimination:
        """Absent, as M_Gen is."""
        no_rule(METHOD, self.name)


class Supplement(BaseModel):
    """An unclear place of the chunk, and the words of the document that clear it up."""

    unclear: str = Field(
        description="the words of the chunk that are unclear; empty where something is absent"
    )
    supplement: str = Field(
        description="the words of the document, outside the chunk, that say it; copied exactly"
    )


class Refinement(BaseModel):
    """What was unclear with its supplements, and the rewritten chunk."""

    items: list[Supplement] = Field(default_factory=list)
    text: str = Field(description="the whole chunk, rewritten")


class SlmRefine(Skill[ReviewIn, Refinement]):
    """M_Ref: document and chunk to ambiguities, their supplements, and the rewritten chunk."""

    name: ClassVar[str] = "slm_refine"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Refinement
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "slm_refine")
    shares_prefix: ClassVar[bool] = True

    def values(self, given: ReviewIn) -> dict[str, float | Quoted]:
        """As M_Disc, so that only the chunk varies; the length ratio stands in the rules."""
        return {**_document_and_chunk(given), "ratio": LENGTH_RATIO}

    def check(self, given: ReviewIn, answer: Refinement) -> Verdict:
        """The guard of the completer against the supplements that the document states outside the chunk."""
        located, discarded = located_supplements(given, answer)
        supports = [given.document[item.start : item.end] for item in located]
        reasons = guard(given.chunk, answer.text, supports)
        if reasons:
            reasons += [f"supplement {entry['quote'][:80]!r}: {entry['reason']}" for entry in discarded[:3]]
        return Verdict.ask_again(*reasons) if reasons else ACCEPT

    def offline(self, given: ReviewIn) -> Refinement:
        """Absent, as M_Gen is."""
        no_rule(METHOD, self.name)


def _document_and_chunk(given: ReviewIn) -> dict[str, Quoted]:
    return {"document": Quoted(given.view or given.document), "chunk": Quoted(given.chunk, "chunk")}


def located_supplements(
    given: ReviewIn, answer: Refinement
) -> tuple[list[LocatedItem], list[dict[str, str]]]:
    """Supplements found in the document outside the chunk, and the discarded ones with reasons."""
    items = [MissingItem(kind="premise", need=item.unclear, quote=item.supplement) for item in answer.items]
    return locate_items(given, Review(items=items))


# --- one document --------------------------------------------------------------------------------------------


@dataclass
class _Generation:
    """What M_Gen said of the whole document: the question of each beginning (sentence), and how it was found."""

    questions: dict[int, str] = field(default_factory=dict)
    outline: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    fuzzy: int = 0
    tally: Tally = field(default_factory=Tally)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the record."""
        return {
            **self.tally.as_dict(),
            "outline": self.outline,
            "heads_not_found": self.unresolved,
            "heads_found_fuzzily": self.fuzzy,
        }


def require_models(models: Models, *, completion: bool) -> None:
    """Raise OfflineUnavailable, naming the setting, unless every skill of the method has a model."""
    for skill in (SlmGenerate.name, *((SlmDiscriminate.name, SlmRefine.name) if completion else ())):
        if models.is_offline(skill):
            no_rule(METHOD, skill)


def qchunk_slm(
    text: str,
    vectors: SentenceVectors,
    models: Models,
    language: str,
    size: int,
    window: int,
    *,
    completion: bool,
) -> SegmentResult:
    """Partition a text by the three models; sizes and windows in tokens.

    ``completion`` False stops after M_Gen (the paper's "w/o M_Ref"). A window whose
    answer of M_Gen is refused is cut for its size only and recorded. A judgement of
    M_Disc that is refused leaves the chunk alone, a rewriting of M_Ref that is
    refused keeps it. Raises OfflineUnavailable without a model, AnswerRejected where
    every answer of M_Gen was refused, and the other errors of the model layer.
    """
    if not text:
        return SegmentResult(text, METHOD, ())
    require_models(models, completion=completion)
    wanted, made = _generate(text, vectors, models, language, size, window)
    result = partition(text, METHOD, vectors, wanted, size, made.as_dict())
    record: dict[str, Any] = dict(result.record)
    completed: dict[int, str] = {}
    if completion:
        asked = [
            ReviewIn(text, node.start, node.end, language, view=text[slice(*view)])
            for node, view in zip(result.nodes, views_of(result.spans, vectors, window), strict=True)
        ]
        flagged = _discriminate(models, asked, record)
        completed = _refine(models, asked, flagged, record)
    questions = _questions(result.nodes, vectors, made)
    return SegmentResult(text, METHOD, result.nodes, record=record, completed=completed, questions=questions)


def _generate(
    text: str, vectors: SentenceVectors, models: Models, language: str, size: int, window: int
) -> tuple[list[int], _Generation]:
    """M_Gen over windows: the sentences that chunks begin at, the first excepted, and what was said of them."""
    made = _Generation()
    skill = SlmGenerate()
    starts = [start for start, _ in vectors.sentences]

    def read(low: int, high: int) -> list[int]:
        begin, end = starts[low], vectors.sentences[high - 1][1]
        answer = models.run(skill, WindowIn(text[begin:end], language, size))
        heads = [chunk.head for chunk in answer.value.chunks]
        located = locate_heads(text[begin:end], heads, [start - begin for start in starts[low:high]])
        made.tally.source = answer.source
        made.outline += [question for question in answer.value.outline if question not in made.outline]
        made.unresolved += located.unresolved
        made.fuzzy += located.fuzzy
        begins = _begins(answer.value, located, begin, starts, low)
        made.questions |= begins  # a chunk that is read again is named again, by who saw its end
        return sorted(begins)

    return read_windows(vectors, window, read, made.tally), made


def _begins(
    answer: Generated, located: Located, begin: int, starts: Sequence[int], low: int
) -> dict[int, str]:
    """The sentences that chunks of a window begin at, each with its question; the window's first is one."""
    found = {low: _question(answer, 0)}
    for at, number in zip(located.starts, located.heads, strict=True):
        sentence = max(sentence_at(starts, begin + at), low)
        if sentence > low:
            found.setdefault(sentence, _question(answer, number))
        elif at == 0:
            found[low] = _question(answer, number)
    return found


def _question(answer: Generated, number: int) -> str:
    """The outline question that a chunk names; empty where the number leads nowhere."""
    asked = answer.chunks[number].question if number < len(answer.chunks) else 0
    return answer.outline[asked - 1].strip() if 1 <= asked <= len(answer.outline) else ""


def _questions(nodes: Sequence[Node], vectors: SentenceVectors, made: _Generation) -> dict[int, str]:
    """The question of each chunk; the pieces of one that was cut for its size share it."""
    by_start = {vectors.sentences[sentence][0]: question for sentence, question in made.questions.items()}
    current = ""
    asked: dict[int, str] = {}
    for index, node in enumerate(nodes):
        current = by_start.get(node.start, current)
        if current:
            asked[index] = current
    return asked


def views_of(chunks: Sequence[Span], vectors: SentenceVectors, window: int) -> list[Span]:
    """For each chunk the stretch of the document that holds its beginning: the shared prefix of its calls."""
    spans = sentence_windows(vectors, window)
    firsts = [start for start, _ in spans]
    return [spans[bisect_right(firsts, start) - 1] for start, _ in chunks]


def _discriminate(models: Models, asked: Sequence[ReviewIn], record: dict[str, Any]) -> list[int]:
    """Numbers of the chunks that M_Disc finds incomplete."""
    flagged: list[int] = []
    refused: list[dict[str, Any]] = []
    source = ""
    for index, answer in enumerate(ask_by_view(models, SlmDiscriminate(), asked)):
        if isinstance(answer, AnswerRejected):
            refused.append({"chunk": index, "reason": str(answer)})
            continue
        source = answer.source
        if answer.value.incomplete:
            flagged.append(index)
    record["discriminator"] = {
        "source": source,
        "refused": refused,
        "counts": {"judged": len(asked) - len(refused), "incomplete": len(flagged), "refused": len(refused)},
    }
    return flagged


def _refine(
    models: Models, asked: Sequence[ReviewIn], flagged: Sequence[int], record: dict[str, Any]
) -> dict[int, str]:
    """The rewritten texts by chunk; what was found, discarded and kept is recorded."""
    completed: dict[int, str] = {}
    entries: list[dict[str, Any]] = []
    answers = ask_by_view(models, SlmRefine(), [asked[index] for index in flagged])
    for index, answer in zip(flagged, answers, strict=True):
        if isinstance(answer, AnswerRejected):
            entries.append({"chunk": index, "kept": str(answer)})
            continue
        entry, text = _refined(asked[index], answer.value)
        entries.append({"chunk": index, "source": answer.source, **entry})
        if text:
            completed[index] = text
    counts = {"asked": len(flagged), "completed": len(completed), "kept": len(flagged) - len(completed)}
    record["refiner"] = {"chunks": entries, "counts": counts}
    return completed


def _refined(given: ReviewIn, answer: Refinement) -> tuple[dict[str, Any], str]:
    """What is recorded of a rewriting that the guard let pass, and its text; empty where the chunk is unchanged."""
    located, discarded = located_supplements(given, answer)
    entry: dict[str, Any] = {
        "items": [{"unclear": item.need, "start": item.start, "end": item.end} for item in located]
    }
    if discarded:
        entry["discarded"] = [
            {"unclear": item["need"], "supplement": item["quote"], "reason": item["reason"]}
            for item in discarded
        ]
    if answer.text == given.chunk:
        return {**entry, "kept": "the model finds nothing to supplement"}, ""
    return entry, answer.text


SLM_SKILLS = (SlmGenerate(), SlmDiscriminate(), SlmRefine())

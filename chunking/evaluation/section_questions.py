"""Questions whose evidence is spread over whole sections: three skills of the HiCBench procedure.

``summarise_section`` gives the overview, ``write_question`` makes a question from
one or two chunks, ``extract_evidence`` finds the sentences that the answer rests
on; ``evidence_vote`` keeps what most draws agree on (hichunk design, "HiCBench
procedure"; HiChunk, section 3).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from chunking.evaluation.metrics import normalised
from chunking.grounding import (
    clauses,
    figures,
    names,
    polarity_changed,
    states,
    unproved,
    unstated,
)
from chunking.headings import marked_level
from chunking.partition import Span
from chunking.sentences import split_sentences
from chunking.terms import terms
from models.errors import OfflineUnavailable
from models.languages import wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

# --- summaries -----------------------------------------------------------------------------------------------

_SUMMARY = 240  # characters that a summary may have in any case
_SUMMARY_SHARE = 0.5  # of a longer section
_LEAD = 160  # characters of lead sentences that the rules take
_CUT_WORD = re.compile(r"[A-Za-z\d.,-]+$")  # what a cut may have left of a word or number


@dataclass(frozen=True)
class SectionIn:
    """A section: its title (with those above it), its text, its language."""

    title: str
    text: str
    language: str


class SectionSummary(BaseModel):
    """What the section is about and says, in one to three sentences."""

    summary: str


class SummariseSection(Skill[SectionIn, SectionSummary]):
    """Section to summary. Offline: its first sentences, verbatim."""

    name: ClassVar[str] = "summarise_section"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = SectionSummary
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "summarise_section")

    def values(self, given: SectionIn) -> dict[str, Quoted]:
        """The section, then its title."""
        return {"section": Quoted(given.text, "section"), "title": Quoted(given.title, "title")}

    def check(self, given: SectionIn, answer: SectionSummary) -> Verdict:
        """No figure, name, property, class or denial that the section does not have; its language; clearly shorter."""
        summary = answer.summary.strip()
        if not summary:
            return Verdict.ask_again("the summary is empty")
        problems = []
        if stray := unstated(summary, [given.text, given.title]):
            problems.append(
                f"the section does not state {', '.join(stray[:8])} (write it as the section does)"
            )
        if changed := polarity_changed(summary, given.text):
            problems.append(f"a negation was lost or added: {changed[0][:80]!r}")
        problems += unproved(summary, given.text, context=given.title)
        if wrong := wrong_language(summary, given.language):
            problems.append(wrong)
        limit = max(_SUMMARY, round(_SUMMARY_SHARE * len(given.text)))
        if len(summary) > limit:
            problems.append(f"the summary has {len(summary)} characters, at most {limit} are allowed")
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: SectionIn) -> SectionSummary:
        """Whole sentences from the beginning, up to a few lines; a first sentence that is longer is cut at a clause."""
        chosen: list[str] = []
        for start, end in _sentences(given.text):
            sentence = given.text[start:end]
            if sentence.startswith("|") or marked_level(sentence) is not None:
                continue  # a cell says nothing without its column, a heading no more than the title
            if chosen and sum(map(len, chosen)) + len(sentence) > _LEAD:
                break
            chosen.append(sentence)
        summary = " ".join(chosen)
        if len(summary) > _SUMMARY:
            summary = _CUT_WORD.sub("", next(iter(clauses(summary)), summary)[:_SUMMARY])
        return SectionSummary(summary=summary or given.title)


# --- questions -----------------------------------------------------------------------------------------------

QuestionKind = Literal["T0", "T1", "T2"]
"""HiCBench: T0 evidence in one or two sentences, T1 spread over one chunk, T2 spread over two chunks."""

_VAGUE = re.compile(
    r"本文|上文|下文|文中|文本中|该段|本段|这段|上述|该文档|本文档|该片段|该章节|本章节|本节|该节|该块|资料中"
    r"|\b(?:the|this|these|that) (?:above )?(?:text|passages?|documents?|sections?|chunks?|excerpts?|context)\b"
    r"|\b(?:mentioned|described|listed|given) above\b|\baccording to the (?:text|passage|document|author)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QuestionIn:
    """The kind of question, its chunks (two for T2, else one), and summaries of the document's sections."""

    kind: QuestionKind
    chunks: tuple[str, ...]
    summaries: tuple[str, ...]
    language: str

    def __post_init__(self) -> None:
        wanted = 2 if self.kind == "T2" else 1
        if len(self.chunks) != wanted:
            raise ValueError(
                f"a question of kind {self.kind} is made from {wanted} chunks, not {len(self.chunks)}"
            )


class WrittenQuestion(BaseModel):
    """A question that stands by itself, and its full answer."""

    question: str
    answer: str


class WriteQuestion(Skill[QuestionIn, WrittenQuestion]):
    """Chunks and summaries to a question and its answer. Nothing honest can be written by rules."""

    name: ClassVar[str] = "write_question"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = WrittenQuestion
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "write_question")
    shares_prefix: ClassVar[bool] = True

    def values(self, given: QuestionIn) -> dict[str, str | Quoted]:
        """Summaries, shared by all questions of a document, then the chunks, then the kind."""
        summaries = "\n".join(" ".join(summary.split()) for summary in given.summaries)
        # each in a fence of its own, so that no chunk can pass for the other
        chunks = "\n".join(str(Quoted(chunk, "chunk")) for chunk in given.chunks)
        return {
            "summaries": Quoted(summaries, "summaries"),
            "chunks": Quoted(chunks, "chunks"),
            "kind": given.kind,
        }

    def check(self, given: QuestionIn, answer: WrittenQuestion) -> Verdict:
        """Answer proved against the chunks, question against chunks and summaries; nothing vague, nothing given away."""
        question, written = answer.question.strip(), answer.answer.strip()
        if not question or not written:
            return Verdict.ask_again("question and answer must not be empty")
        problems = []
        if stray := unstated(written, [*given.chunks, question]):
            problems.append(f"the chunks do not state {', '.join(stray[:8])} (write it as the chunks do)")
        if stray := unstated(question, [*given.chunks, *given.summaries]):
            problems.append(f"the question names what the document does not state: {', '.join(stray[:8])}")
        if changed := polarity_changed(written, "\n".join(given.chunks)):
            problems.append(f"a negation was lost or added: {changed[0][:80]!r}")
        problems += unproved(written, "\n".join(given.chunks), asked=question)
        if vague := _VAGUE.search(question):
            problems.append(f"the question must stand by itself, without {vague[0]!r}")
        if "\n" in question:
            problems.append("the question is not one line")
        if normalised(written) in normalised(question):
            problems.append("the question gives its answer away")
        for text in (question, written):
            if wrong := wrong_language(text, given.language):
                problems.append(wrong)
        if given.kind == "T2" and (number := _unused(given.chunks, written)):
            problems.append(f"the answer takes nothing from chunk {number}; it must need both chunks")
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: QuestionIn) -> WrittenQuestion:
        """Absent: a template over whole sections would not ask what an expert asks."""
        raise OfflineUnavailable(
            "write_question needs a model, and no rule stands for it: set model (and base_url) under "
            "[models.skills.write_question], or models.model (HCHEM_MODELS__MODEL) for all skills",
            reason="offline",
        )


def _unused(chunks: Sequence[str], answer: str) -> int:
    """The number of a chunk of which the answer has no word that is its own; 0 where it draws on all."""
    said = set(terms(answer, singles=False))
    for index, chunk in enumerate(chunks):
        others = {
            term for i, other in enumerate(chunks) if i != index for term in terms(other, singles=False)
        }
        if not said & (set(terms(chunk, singles=False)) - others):
            return index + 1
    return 0


# --- evidence ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvidenceIn:
    """A question with its answer, and the context that it was made from."""

    question: str
    answer: str
    context: str
    language: str


class Evidence(BaseModel):
    """Sentences of the context that the answer rests on, in their order."""

    sentences: list[str] = Field(default_factory=list, description="whole sentences, copied exactly")


class ExtractEvidence(Skill[EvidenceIn, Evidence]):
    """Question, answer and context to the evidence sentences. Offline: those that hold the answer's values."""

    name: ClassVar[str] = "extract_evidence"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Evidence
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "extract_evidence")

    def values(self, given: EvidenceIn) -> dict[str, Quoted]:
        """The context, shared by the draws and by all questions on it, then question and answer."""
        return {
            "context": Quoted(given.context, "context"),
            "question": Quoted(given.question, "question"),
            "answer": Quoted(given.answer, "answer"),
        }

    def check(self, given: EvidenceIn, answer: Evidence) -> Verdict:
        """Every sentence stands in the context; the figures that answer and context share are in them."""
        spans, lost = evidence_spans(given.context, answer.sentences)
        problems = [f"this is not in the context: {sentence[:80]!r}" for sentence in lost[:5]]
        shown = frozenset[str]().union(*(figures(given.context[start:end]) for start, end in spans))
        if missing := _answer_figures(given) - shown:
            problems.append(f"sentences that state {', '.join(sorted(missing))} are missing")
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: EvidenceIn) -> Evidence:
        """Sentences with a figure or name that the answer adds to the question, or that state a clause of it."""
        wanted = _answer_figures(given) | (names(given.answer) - names(given.question))
        parts = clauses(given.answer)
        chosen = []
        for start, end in _sentences(given.context):
            sentence = given.context[start:end]
            held = wanted & (figures(sentence) | names(sentence))
            if held or any(_resembles(sentence, part) and states(sentence, part) for part in parts):
                chosen.append(sentence)
        return Evidence(sentences=chosen)


_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")


@lru_cache(maxsize=8192)
def _tokens(text: str) -> frozenset[str]:
    """Latin words and single Chinese characters."""
    return frozenset(_TOKEN.findall(unicodedata.normalize("NFKC", text).casefold()))


def _resembles(sentence: str, clause: str) -> bool:
    """Whether a sentence has half of a clause's words; without them it does not state it. Cheap where that is not."""
    wanted = _tokens(clause)
    return 2 * len(wanted & _tokens(sentence)) >= len(wanted)


def _answer_figures(given: EvidenceIn) -> frozenset[str]:
    """Figures that the answer adds to the question and that a sentence of the context has; no bare digits."""
    added = {value for value in figures(given.answer) - figures(given.question) if len(value) > 1}
    stated = frozenset[str]().union(*(figures(given.context[a:b]) for a, b in _sentences(given.context)))
    return frozenset(added) & stated


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[Span, ...]:
    """Spans of the sentences without the blanks around them."""
    found = []
    for start, end in split_sentences(text):
        piece = text[start:end]
        begin, stop = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        if begin < stop:
            found.append((begin, stop))
    return tuple(found)


_LEAST = 4  # characters of a copied piece; less could stand anywhere


def evidence_spans(context: str, sentences: Sequence[str]) -> tuple[list[Span], list[str]]:
    """The context's own sentences that copied ones stand for, in order, and the copies that are not in it.

    Blanks may differ. A copy stands for each sentence that it shares at least half
    of the shorter of the two with.
    """
    found: set[Span] = set()
    lost: list[str] = []
    spans = _sentences(context)
    for sentence in sentences:
        pieces = sentence.split()
        if len("".join(pieces)) < _LEAST and not any(context[a:b] == sentence for a, b in spans):
            lost.append(sentence)
            continue
        match = re.search(r"\s+".join(map(re.escape, pieces)), context)
        if match is None:
            lost.append(sentence)
            continue
        start, end = match.span()
        found |= {(a, b) for a, b in spans if 2 * (min(b, end) - max(a, start)) >= min(b - a, end - start)}
    return sorted(found), lost


@dataclass(frozen=True)
class EvidenceVote:
    """Sentences of the context that enough draws named, and how often each one was named."""

    kept: tuple[Span, ...]
    seen: dict[Span, int]
    least: int
    share: float
    """Characters of the kept sentences over those of all sentences of the context (HiCBench wants 0.1)."""


def votes_needed(draws: int) -> int:
    """How many of the draws must name a sentence: 4 of 5, and in proportion for other numbers (1 of 1)."""
    return max(1, math.ceil(0.8 * draws))


def evidence_vote(context: str, answers: Sequence[Evidence], least: int = 4) -> EvidenceVote:
    """Keep the sentences that at least ``least`` answers name (HiChunk: 5 draws, 4 votes).

    ``least`` counts draws that were asked for (:func:`votes_needed`): an answer
    that was rejected casts no vote and does not lower it.
    """
    seen = Counter(span for answer in answers for span in evidence_spans(context, answer.sentences)[0])
    kept = tuple(sorted(span for span, votes in seen.items() if votes >= least))
    total = sum(end - start for start, end in _sentences(context))
    share = sum(end - start for start, end in kept) / total if total else 0.0
    return EvidenceVote(kept, dict(sorted(seen.items())), least, share)

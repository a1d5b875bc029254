"""Questions over whole sections of one's own documents by HiCBench's procedure (HiChunk, section 3).

Sections (by their headings) → question and answer from one chunk (T1) or two
(T2), or from a sentence (T0) → evidence sentences extracted in several draws and
voted on → what does not hold is dropped with its reason (with a model also what is
not answered from its own chunks). Headings choose the chunk; they take no part in
which of its sentences are evidence.

With a model all three steps are its skills. Without one the question asks for the
key terms of a digest and the digest is the answer (:mod:`chunking.evaluation.extracts`);
``extract_evidence`` then finds the digest's sentences in the chunk. The sets made
here are not HiCBench and must not be called so.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chunking.answering import AnswerIn, AnswerQuestion, Passage
from chunking.evaluation import extracts
from chunking.evaluation.fact_coverage import FactsIn, JudgeFacts, JudgeIn, ListFacts, covered
from chunking.evaluation.metrics import Region
from chunking.evaluation.protocol import EvaluationQuestion
from chunking.evaluation.section_questions import (
    EvidenceIn,
    ExtractEvidence,
    QuestionIn,
    QuestionKind,
    SectionIn,
    SummariseSection,
    WriteQuestion,
    evidence_vote,
    votes_needed,
)
from chunking.partition import Span
from corpus.headings import sections_of
from corpus.ids import digest
from models.errors import AnswerRejected
from models.tokens import count_words

if TYPE_CHECKING:
    from models import Models

KINDS: tuple[QuestionKind, ...] = ("T0", "T1", "T2")
LENGTHS: Mapping[QuestionKind, tuple[int, int]] = {"T0": (64, 4096), "T1": (512, 4096), "T2": (256, 2048)}
"""Words of a chunk by kind (a Chinese character is a word). T1 and T2 are HiCBench's."""
LEAST_SHARE = 0.1
"""Evidence below this share of its chunks drops the question (HiCBench); T0 is about sparse evidence."""
_COVERED = 0.8  # Fact-Cov of answers from the chunks that a question must exceed (HiCBench)
_FEW = 2  # sentences of evidence that T0 may have


@dataclass(frozen=True)
class SourceDocument:
    """A document to ask about: its refined text, Markdown headings in place."""

    document_id: str
    title: str
    language: str
    text: str


@dataclass(frozen=True)
class SectionQuestions:
    """Questions by the procedure, and why others were dropped."""

    questions: tuple[EvaluationQuestion, ...]
    dropped: Mapping[str, int]
    draws: int
    source: str
    """Who wrote questions and evidence: model or ``offline``."""


@dataclass
class _Draft:
    kind: QuestionKind
    document: SourceDocument
    chunks: tuple[Span, ...]
    question: str = ""
    answer: str = ""
    evidence: list[Span] = field(default_factory=list)

    def texts(self) -> tuple[str, ...]:
        return tuple(self.document.text[start:end] for start, end in self.chunks)


def section_spans(text: str) -> list[Span]:
    """Each headed section with all that is below it, the document itself left out."""
    sections = sections_of(text)
    spans = []
    for at, section in enumerate(sections):
        if section["level"] == 0:
            continue
        after = (other["start"] for other in sections[at + 1 :] if other["level"] <= section["level"])
        span = (int(section["start"]), int(next(after, len(text))))
        if text[: span[0]].strip() or text[span[1] :].strip():
            spans.append(span)
    return spans


def chosen_chunks(
    document: SourceDocument, kind: QuestionKind, limit: int, seed: int
) -> list[tuple[Span, ...]]:
    """Sections of a kind's length, or pairs of them that do not overlap: at most ``limit``, in a seeded order."""
    low, high = LENGTHS[kind]
    text = document.text
    fit = [span for span in section_spans(text) if low <= count_words(text[span[0] : span[1]]) <= high]
    fit.sort(key=lambda span: digest(kind, str(seed), document.document_id, str(span)))
    if kind != "T2":
        return [(span,) for span in fit[:limit]]
    pairs: list[tuple[Span, ...]] = []
    for step in range(1, len(fit)):  # neighbours in the order first, so that sections come round evenly
        for one, other in zip(fit, fit[step:], strict=False):
            if one[1] <= other[0] or other[1] <= one[0]:
                pairs.append(tuple(sorted((one, other))))
    return list(dict.fromkeys(pairs))[:limit]


def section_questions(
    documents: Sequence[SourceDocument], models: Models, *, per_document: int = 6, seed: int = 0
) -> SectionQuestions:
    """Questions of all kinds, at most ``per_document`` of each kind from a document.

    Raises the errors of the model layer other than a rejected answer.
    """
    drafts = [
        _Draft(kind, document, chunks)
        for document in sorted(documents, key=lambda document: document.document_id)
        for kind in KINDS
        for chunks in chosen_chunks(document, kind, per_document, seed)
    ]
    dropped: Counter[str] = Counter()
    offline = models.is_offline(WriteQuestion.name)
    written = _extracted(drafts, documents, dropped) if offline else _asked(drafts, models, dropped)
    kept = _with_evidence(written, models, dropped)
    kept = _apart(_once(kept, dropped), documents, dropped)
    if not offline and not models.is_offline(AnswerQuestion.name):
        kept = _answerable(kept, models, dropped)
    return SectionQuestions(
        tuple(_question(draft) for draft in kept),
        dict(sorted(dropped.items())),
        models.draws(ExtractEvidence.name),
        models.identity(WriteQuestion()),
    )


def _extracted(
    drafts: Sequence[_Draft], documents: Sequence[SourceDocument], dropped: Counter[str]
) -> list[_Draft]:
    """Question and answer by the rules of :mod:`extracts`."""
    background = Counter(term for d in documents for term in set(extracts.content_terms(d.text)))
    written = []
    for draft in drafts:
        named = set(extracts.content_terms(draft.document.title))
        parts = [_answer_spans(draft.kind, chunk) for chunk in draft.texts()]
        if not all(parts):
            dropped[f"{draft.kind}: too few sentences"] += 1
            continue
        groups = []
        for chunk, spans in zip(draft.texts(), parts, strict=True):
            pieces = [chunk[start:end] for start, end in spans]
            seen = {term: len(documents) for term in named} | dict(background)
            limit = extracts.question_terms(draft.kind)
            found = extracts.key_terms(pieces, seen, len(documents), limit + len(named))
            groups.append([term for term in found if term not in named][:limit])
        if not all(groups):
            dropped[f"{draft.kind}: no key terms"] += 1
            continue
        draft.question = extracts.asked(draft.document.title, draft.kind, groups, draft.document.language)
        draft.answer = "\n".join(
            chunk[start:end]
            for chunk, spans in zip(draft.texts(), parts, strict=True)
            for start, end in spans
        )
        written.append(draft)
    return written


def _answer_spans(kind: QuestionKind, chunk: str) -> list[Span]:
    return extracts.one_sentence(chunk, kind) if kind == "T0" else extracts.digest_of(chunk)


def _asked(drafts: Sequence[_Draft], models: Models, dropped: Counter[str]) -> list[_Draft]:
    """Question and answer by the model, from the chunks and summaries of the document's sections."""
    summaries: dict[str, tuple[str, ...]] = {}
    for document in {draft.document.document_id: draft.document for draft in drafts}.values():
        given = [
            SectionIn(
                f"{document.title}: {s['heading']}", document.text[s["start"] : s["end"]], document.language
            )
            for s in sections_of(document.text)
        ]
        answers = models.run_many(SummariseSection(), given)
        found = [
            f"{section.title}: {answer.value.summary}"
            for section, answer in zip(given, answers, strict=True)
            if not isinstance(answer, AnswerRejected)
        ]
        summaries[document.document_id] = tuple(found)
    asked = [
        QuestionIn(d.kind, d.texts(), summaries[d.document.document_id], d.document.language) for d in drafts
    ]
    written = []
    for draft, reply in zip(drafts, models.run_many(WriteQuestion(), asked), strict=True):
        if isinstance(reply, AnswerRejected):
            dropped[f"{draft.kind}: question refused"] += 1
            continue
        draft.question, draft.answer = reply.value.question, reply.value.answer
        written.append(draft)
    return written


def _with_evidence(drafts: Sequence[_Draft], models: Models, dropped: Counter[str]) -> list[_Draft]:
    """The sentences that enough draws name, chunk by chunk; drafts with too few or too many of them are dropped."""
    draws = range(models.draws(ExtractEvidence.name))
    given = [
        EvidenceIn(draft.question, draft.answer, chunk, draft.document.language)
        for draft in drafts
        for chunk in draft.texts()
    ]
    found = iter(models.run_many(ExtractEvidence(), given, draws=draws))
    kept = []
    for draft in drafts:
        enough = True
        for (start, _), chunk in zip(draft.chunks, draft.texts(), strict=True):
            answers = [next(found) for _ in draws]
            accepted = [answer.value for answer in answers if not isinstance(answer, AnswerRejected)]
            vote = evidence_vote(chunk, accepted, votes_needed(len(draws)))
            draft.evidence += [(start + low, start + high) for low, high in vote.kept]
            enough &= vote.share >= LEAST_SHARE
        if not draft.evidence:
            dropped[f"{draft.kind}: no evidence"] += 1
        elif draft.kind == "T0" and len(draft.evidence) > _FEW:
            dropped["T0: evidence in more than two sentences"] += 1
        elif draft.kind != "T0" and not enough:
            dropped[f"{draft.kind}: evidence below a tenth of a chunk"] += 1
        else:
            kept.append(draft)
    return kept


def _once(drafts: Sequence[_Draft], dropped: Counter[str]) -> list[_Draft]:
    """Sections lie within sections, so that the same may be asked, or rest on the same sentences, again."""
    kept: list[_Draft] = []
    seen: set[tuple[str, ...]] = set()
    for draft in drafts:
        name = draft.document.document_id
        keys = {(name, draft.question), (name, draft.kind, str(sorted(draft.evidence)))}
        if keys & seen:
            dropped[f"{draft.kind}: asked already"] += 1
            continue
        seen |= keys
        kept.append(draft)
    return kept


def _apart(
    drafts: Sequence[_Draft], documents: Sequence[SourceDocument], dropped: Counter[str]
) -> list[_Draft]:
    """Without those whose evidence stands word for word in another document: a right find would count as a miss."""
    kept = []
    for draft in drafts:
        text = draft.document.text
        quotes = [text[start:end] for start, end in draft.evidence]
        others = [d.text for d in documents if d.document_id != draft.document.document_id]
        twice = max((sum(len(q) for q in quotes if q in other) for other in others), default=0)
        if 2 * twice > sum(map(len, quotes)):
            dropped[f"{draft.kind}: evidence stands in another document"] += 1
        else:
            kept.append(draft)
    return kept


def _answerable(drafts: Sequence[_Draft], models: Models, dropped: Counter[str]) -> list[_Draft]:
    """Those whose facts are covered, to more than four fifths in the mean, by answers from their own chunks.

    As many answers as the judge has draws, each judged once. An answer that was refused covers nothing.
    """
    draws = range(models.draws(JudgeFacts.name))
    given = [FactsIn(draft.question, draft.answer, draft.document.language) for draft in drafts]
    lists = [
        () if isinstance(found, AnswerRejected) else tuple(found.value.facts)
        for found in models.run_many(ListFacts(), given)
    ]
    asked = [
        AnswerIn(
            draft.question,
            draft.document.language,
            tuple(Passage(chunk, draft.document.title) for chunk in draft.texts()),
        )
        for draft in drafts
    ]
    replies = iter(models.run_many(AnswerQuestion(), asked, draws=draws))
    answers = [[next(replies) for _ in draws] for _ in drafts]
    judged: list[JudgeIn] = []
    owners: list[int] = []
    for at, (draft, facts) in enumerate(zip(drafts, lists, strict=True)):
        for reply in answers[at]:
            if facts and not isinstance(reply, AnswerRejected) and reply.value.found:
                judged.append(JudgeIn(facts, reply.value.answer, draft.document.language))
                owners.append(at)
    shares = [0.0] * len(drafts)
    for at, verdict in zip(owners, models.run_many(JudgeFacts(), judged), strict=True):
        if not isinstance(verdict, AnswerRejected):
            shares[at] += sum(covered(len(lists[at]), verdict.value)) / len(lists[at]) / len(draws)
    for draft, share in zip(drafts, shares, strict=True):
        if share <= _COVERED:
            dropped[f"{draft.kind}: not answered from its chunks"] += 1
    return [draft for draft, share in zip(drafts, shares, strict=True) if share > _COVERED]


def _question(draft: _Draft) -> EvaluationQuestion:
    document = draft.document
    spans = sorted(draft.evidence)
    regions: tuple[Region, ...] = tuple((document.document_id, start, end) for start, end in spans)
    return EvaluationQuestion(
        question_id=digest(
            draft.kind, document.document_id, *itertools.chain(map(str, draft.chunks), [draft.question])
        ),
        kind=draft.kind,
        language=document.language,
        question=draft.question,
        answer=draft.answer,
        evidence=regions,
        quotes=tuple(document.text[start:end] for start, end in spans),
    )

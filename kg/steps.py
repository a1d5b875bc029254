"""The steps before the graph: extraction per document, reference data, identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from corpus import restriction
from corpus.asking import ask_many
from corpus.catalogue.tables import Assertion, Document, LedgerRow
from corpus.documents import RefinedDocument, kept_documents
from corpus.errors import TerminalError
from corpus.ids import canonical_json, digest, fingerprint
from corpus.stages import BaseStep, Item, Outcome, StageContext, Step
from kg.extension import extension_digest
from kg.extraction.evidence import judge
from kg.extraction.model import Draft, Subject
from kg.extraction.skill import (
    ExtractAssertions,
    ExtractionGiven,
    assertion_id,
    coded,
    drafts_of,
    subject_of,
    unique,
    windows,
)
from kg.schema import DropReason, mixture_key
from kg.settings import ExtractionSettings
from models.errors import AnswerRejected

if TYPE_CHECKING:
    from models import Models

TURNED = "ends turned round"  # counted, not rejected
EXTRACT, REFERENCE, RESOLVE = "graph.extract", "graph.reference", "graph.resolve"
REFERENCE_KIND = "reference"
_ENDPOINT_REFUSED = ("bad_request", "context_length")  # reasons that say nothing of an answer: there was none


def extraction_steps(settings: ExtractionSettings, models: Models) -> list[Step]:
    """The steps in order: extract (per document), reference and resolve (barriers)."""
    from kg.reference import ReferenceStep
    from kg.resolution import ResolveStep

    return [ExtractStep(settings, models), ReferenceStep(settings), ResolveStep(settings, models)]


class ExtractStep(BaseStep):
    """Assertions of each kept document, proved against its text; the rejected ones keep their reason."""

    def __init__(self, settings: ExtractionSettings, models: Models) -> None:
        super().__init__(name=EXTRACT, version="2", batch_size=25)
        self.settings = settings
        self.models = models
        self.skill = ExtractAssertions()

    @property
    def concurrency(self) -> int:
        """Documents at once: a model is waited for, rules compute."""
        return self.models.concurrency(self.skill.name)

    def plan(self, ctx: StageContext) -> list[Item]:
        """Kept documents but reference rows, keyed on refined text, cleaned text, block map and model."""
        identity = self.models.identity(self.skill)
        settings = (
            {}
            if self.models.is_offline(self.skill.name)
            else self.settings.model_dump(include={"window", "rejected_share"})
        )
        if extension_digest():
            settings |= {"schema": extension_digest()}
        query = (
            select(
                Document.document_id,
                Document.version_id,
                Document.cleaned_hash,
                Document.blocks,
                Document.title,
            )
            .where(Document.state == "kept", Document.text != "", Document.kind != REFERENCE_KIND)
            .order_by(Document.document_id)
        )
        with ctx.catalogue.reading() as session:
            return [
                Item(row.document_id, fingerprint(self.name, self.version, _inputs(row), settings, identity))
                for row in session.execute(restriction.documents(session, ctx, query))
            ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Extract, prove, and replace the document's assertions."""
        with ctx.catalogue.reading() as session:
            found = kept_documents(session, [item.id])
        if not found:
            raise TerminalError("the document is no longer kept", reason="document_gone", item_id=item.id)
        document = found[0]
        rows, reasons = self.assertions(document)
        counts = Counter(TURNED if reason == TURNED else f"rejected: {reason}" for reason in reasons)
        counts.update(row.state for row in rows)
        for row in rows:
            if row.state == "rejected":
                counts[f"rejected: {row.reason}"] += 1

        def write(session: Session) -> None:
            remove_assertions(session, [document.document_id])
            session.add_all(rows)

        return Outcome(write=write, counts=dict(counts), detail=_detail(rows))

    def questions(self, document: RefinedDocument) -> list[ExtractionGiven]:
        """What is asked about a document: its windows, or for the rules the whole of it."""
        subject = subject_of(document)
        spans = (
            [(0, len(document.text))]
            if self.models.is_offline(self.skill.name)
            else windows(document, self.settings.window, self.models.count_tokens)
        )
        share = self.settings.rejected_share
        return [ExtractionGiven(document, start, end, subject, share) for start, end in spans]

    def assertions(self, document: RefinedDocument) -> tuple[list[Assertion], list[str]]:
        """Rows for a document, and the reasons of answers that could not become one.

        A window without a usable answer leaves the others alone; where the endpoint
        refuses to read any of them, that is the document's failure (TerminalError).
        """
        questions = self.questions(document)
        drafts: list[Draft] = []
        dropped: list[str] = []
        refused: list[AnswerRejected] = []
        source = "offline"
        for given, answer in zip(questions, ask_many(self.models, self.skill, questions), strict=True):
            if isinstance(answer, AnswerRejected):
                unread = answer.reason in _ENDPOINT_REFUSED
                refused += [answer] if unread else []
                dropped.append(
                    f"model_refused: {answer.reason}" if unread else DropReason.MODEL_REJECTED.value
                )
                continue
            source = answer.source
            made, reasons = drafts_of(given, answer.value, trusted=source == "offline")
            dropped += [TURNED] * sum(draft.turned for draft in made)
            drafts += made
            dropped += [reason.value for reason in reasons]
        if refused and len(refused) == len(questions):
            raise TerminalError(str(refused[0]), reason=refused[0].reason, item_id=document.document_id)
        sources = [(draft, source) for draft in unique(drafts)]
        if not self.models.is_offline(self.skill.name):
            sources += [(draft, "offline") for draft in unique(coded(document))]
        subject = questions[0].subject if questions else None
        rows = [assertion_row(document, subject, draft, maker) for draft, maker in sources]
        by_id = {row.assertion_id: row for row in rows}
        return [by_id[key] for key in sorted(by_id)], dropped

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """A document that is no longer kept takes its assertions with it."""
        remove_assertions(session, item_ids)


def _inputs(row: Any) -> list[str]:
    return [row.version_id, row.cleaned_hash, digest("blocks", canonical_json(row.blocks)), row.title]


def _detail(rows: Sequence[Assertion]) -> str:
    return "" if any(row.state == "kept" for row in rows) else "no assertion"


def remove_assertions(session: Session, documents: Sequence[str]) -> None:
    """Delete documents' assertions. Their identities must be resolved again, so that step is marked as unsettled."""
    for at in range(0, len(documents), 500):
        session.execute(delete(Assertion).where(Assertion.document_id.in_(list(documents[at : at + 500]))))
    session.execute(update(LedgerRow).where(LedgerRow.step == RESOLVE).values(fingerprint=""))


def assertion_row(document: RefinedDocument, subject: Subject | None, draft: Draft, source: str) -> Assertion:
    """A draft as a catalogue row, kept or rejected. Keys of substances are left to the resolve step."""
    name = draft.subject or (subject.name if subject else "")
    reason, page = judge(draft, document)
    if not name:
        reason = reason or DropReason.MISSING_SUBJECT
    own_mixture = subject is not None and subject.mixture and not draft.subject
    return Assertion(
        assertion_id=assertion_id(document, name, draft),
        document_id=document.document_id,
        version_id=document.version_id,
        state="rejected" if reason else "kept",
        reason=reason.value if reason else "",
        subject=name,
        subject_key=mixture_key(name) if own_mixture else "",
        relation=draft.relation.value,
        object=draft.object,
        object_label=draft.object_label.value,
        object_key=draft.object_key,
        properties=dict(draft.properties),
        value=dict(draft.value),
        polarity=draft.polarity.value,
        modality=draft.modality.value,
        conditions=dict(draft.conditions),
        start=draft.start,
        end=draft.end,
        quote=document.text[draft.start : draft.end],
        page_quote=page,
        section=draft.section,
        language=document.language[:8],
        extractor=source,
        confidence=draft.confidence,
    )

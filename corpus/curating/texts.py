"""Steps from cleaned documents to the corpus: score, refine, deduplicate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import String, cast, or_, select, update
from sqlalchemy.orm import Session

from corpus import restriction
from corpus.asking import ask, translated
from corpus.catalogue.tables import Document
from corpus.curating.records import (
    ACCEPTED,
    DEDUPLICATE,
    REFINE,
    SCORE,
    WHOLE,
    clear_refinements,
    failed,
    reopen,
)
from corpus.errors import TerminalError
from corpus.ids import canonical_json, fingerprint, version_id
from corpus.near_duplicates import Candidate, Decision, find_duplicates
from corpus.quality import ScoreDocument, parts_of, scoring_input
from corpus.refinement import RefineWindow, refine_document
from corpus.settings import CorpusSettings
from corpus.stages import BaseStep, Item, Outcome, StageContext
from models import Models
from models.errors import ModelError

LOW_SCORE = "low_score"
_READ_AT_ONCE = 50  # texts in memory while all documents are read


def cleaned_documents(session: Session, ctx: StageContext) -> list[Any]:
    """(id, cleaned hash, title, language, score, score parts, flags) of documents that cleaning passed on."""
    query = select(
        Document.document_id,
        Document.cleaned_hash,
        Document.title,
        Document.language,
        Document.score,
        Document.score_parts,
        Document.flags,
    ).where(Document.cleaned_hash != "", Document.kind != "reference")
    return list(session.execute(restriction.documents(session, ctx, query).order_by(Document.document_id)))


@dataclass
class ScoreStep(BaseStep):
    """Per document: the quality score; above the threshold it goes on."""

    name: str = SCORE
    version: str = "2"
    batch_size: int | None = 50
    settings: CorpusSettings = field(default_factory=CorpusSettings)
    models: Models = field(default_factory=Models.offline)
    skill: ScoreDocument = field(default_factory=ScoreDocument)

    @property
    def concurrency(self) -> int:
        """Documents at once while a model is waited for."""
        return self.models.concurrency(self.skill.name)

    def plan(self, ctx: StageContext) -> list[Item]:
        """Cleaned documents, keyed on text, rubric, model, sampling and threshold."""
        settings = self.settings.quality.model_dump() | {"counter": self.models.token_counter_name}
        model = self.models.identity(self.skill)
        with ctx.catalogue.reading() as session:
            rows = cleaned_documents(session, ctx)
        return [
            Item(row.document_id, fingerprint(self.name, self.version, _score_inputs(row), settings, model))
            for row in rows
        ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Score a sample of the document's text."""
        with ctx.catalogue.reading() as session:
            row = session.get_one(Document, item.id)
        given, spans = scoring_input(
            row.cleaned_text,
            title=row.title,
            language=row.language,
            settings=self.settings.quality,
            count=self.models.count_tokens,
            link_share=float(row.score_parts.get("page", {}).get("link_share", 0.0)),
        )
        try:
            answer = ask(self.models, self.skill, given)
        except TerminalError as error:
            return failed(self.name, item.id, error, ctx)
        score = answer.value.score
        parts = parts_of(answer.value, given.features, spans)
        good = score > self.settings.quality.threshold or ACCEPTED in row.flags
        reason = "" if good else _reason(given.features.page_type)

        def write(db: Session) -> None:
            document = db.get_one(Document, item.id)
            document.score, document.score_source = score, answer.source
            document.score_parts = {"page": document.score_parts.get("page", {}), **parts}
            if not good or document.state not in ("kept", "duplicate"):
                document.state = "kept" if good else "rejected"
                document.reason, document.detail = reason, "" if good else answer.value.reason
                reopen(db, (DEDUPLICATE,), item.id)

        if good:
            return Outcome(write=write, counts={"scored": 1})
        return Outcome(state="rejected", reason=reason, detail=answer.value.reason, write=write)


def _score_inputs(row: Any) -> list[str]:
    page = row.score_parts.get("page", {})
    accepted = [ACCEPTED] if ACCEPTED in row.flags else []
    return [row.cleaned_hash, row.title, row.language, canonical_json(page.get("link_share", 0.0)), *accepted]


def _reason(page_type: str) -> str:
    return LOW_SCORE if page_type == "document" else f"{page_type}_page"


@dataclass
class RefineStep(BaseStep):
    """Per kept document: refined text, version, block map, sections, the record of refinement."""

    name: str = REFINE
    version: str = "3"
    batch_size: int | None = 20
    settings: CorpusSettings = field(default_factory=CorpusSettings)
    models: Models = field(default_factory=Models.offline)
    skill: RefineWindow = field(default_factory=RefineWindow)

    @property
    def concurrency(self) -> int:
        """Documents at once while a model is waited for."""
        return self.models.concurrency(self.skill.name)

    def plan(self, ctx: StageContext) -> list[Item]:
        """Documents above the threshold or let pass by a person, keyed on their cleaned text and blocks, model and windows."""
        settings = self.settings.refinement.model_dump() | {"counter": self.models.token_counter_name}
        model = self.models.identity(self.skill)
        with ctx.catalogue.reading() as session:
            rows = cleaned_documents(session, ctx)
        return [
            Item(row.document_id, fingerprint(self.name, self.version, _refine_inputs(row), settings, model))
            for row in rows
            if row.score is not None
            and (row.score > self.settings.quality.threshold or ACCEPTED in row.flags)
        ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Refine a document window by window."""
        with ctx.catalogue.reading() as session:
            row = session.get_one(Document, item.id)
        try:
            refined = refine_document(
                row.cleaned_text,
                row.cleaned_blocks,
                language=row.language,
                title=row.title,
                models=self.models,
                settings=self.settings.refinement,
            )
        except ModelError as error:
            fault = translated(error)
            if fault.transient:
                raise fault from error
            return failed(self.name, item.id, fault, ctx)
        version = version_id(item.id, refined.text)

        def write(db: Session) -> None:
            document = db.get_one(Document, item.id)
            if document.version_id != version or document.state == "failed":
                document.duplicate_of, document.group = None, {}
                reopen(db, (DEDUPLICATE,), item.id)
                document.state = "kept"
            document.text, document.version_id = refined.text, version
            document.blocks, document.sections = refined.blocks, refined.sections
            document.refinement = refined.record
            document.flags = sorted((set(document.flags) - set(marks)) | {m for m in marks if marks[m]})

        marks = {"unrefined": refined.unrefined, "orders": bool(refined.record["orders"])}
        counts = {"refined": 1, "blocks_dropped": len(refined.record.get("dropped", []))}
        return Outcome(write=write, counts=counts | {mark: int(marks[mark]) for mark in marks})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Documents that fell below the threshold lose their refined text."""
        clear_refinements(session, item_ids)


def _refine_inputs(row: Any) -> list[str]:
    return [row.cleaned_hash, row.title, row.language, str(row.score_parts.get("page", {}).get("blocks", ""))]


@dataclass
class DeduplicateStep(BaseStep):
    """Barrier: exact, near and contained duplicates; editions of one regulation stay and are linked."""

    name: str = DEDUPLICATE
    version: str = "4"
    batch_size: int | None = None
    settings: CorpusSettings = field(default_factory=CorpusSettings)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item for the whole corpus, keyed on all refined texts and scores."""
        query = _refined(
            select(
                Document.document_id, Document.version_id, Document.score, Document.title, Document.language
            ),
            self.settings.quality.threshold,
        )
        with ctx.catalogue.reading() as session:
            inputs = [str(part) for row in session.execute(query) for part in row]
        if not inputs:
            return []
        settings = self.settings.duplicates.model_dump()
        return [Item(WHOLE, fingerprint(self.name, self.version, inputs, settings))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Compare all refined documents, read one after another; only rows whose decision changed are written."""
        columns = (Document.document_id, Document.text, Document.title, Document.language, Document.score)
        query = _refined(select(*columns), self.settings.quality.threshold)

        def documents() -> Iterator[Candidate]:
            with ctx.catalogue.reading() as session:
                for row in session.execute(query.execution_options(yield_per=_READ_AT_ONCE)):
                    yield _candidate(row)

        def fetch(document_id: str) -> Candidate:
            with ctx.catalogue.reading() as session:
                row = session.execute(select(*columns).where(Document.document_id == document_id)).one()
            return _candidate(row)

        decisions = find_duplicates(documents(), self.settings.duplicates, fetch)

        def write(db: Session) -> None:
            for document_id, decision in sorted(decisions.items()):
                _decide(db, document_id, decision)

        duplicates = sum(bool(decision.duplicate_of) for decision in decisions.values())
        editions = sum("editions" in decision.group for decision in decisions.values())
        return Outcome(write=write, counts={"duplicates": duplicates, "editions": editions})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """No document is left: nothing to undo."""


def _candidate(row: Any) -> Candidate:
    return Candidate(row.document_id, row.text, row.title, row.language, row.score)


def _refined(query: Any, threshold: float) -> Any:
    """Restrict a query to refined documents that are kept or duplicates, ordered by id."""
    return query.where(
        Document.version_id != "",
        Document.cleaned_hash != "",
        Document.kind != "reference",
        or_(Document.score > threshold, cast(Document.flags, String).contains(f'"{ACCEPTED}"')),
        Document.state.in_(("kept", "duplicate")),
    ).order_by(Document.document_id)


def _decide(session: Session, document_id: str, decision: Decision) -> None:
    duplicate = bool(decision.duplicate_of)
    session.execute(
        update(Document)
        .where(Document.document_id == document_id)
        .values(
            state="duplicate" if duplicate else "kept",
            reason=str(decision.group.get("kind", "")) if duplicate else "",
            detail="",
            duplicate_of=decision.duplicate_of or None,
            group=decision.group,
        )
    )

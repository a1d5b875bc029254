"""The stage ``chunks``: every kept document cut by every chosen method, scored and stored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from chunking.partition import SegmentResult, node_id
from chunking.segment import SKILLS_OF, Segmenter, require_models
from chunking.settings import ChunkSettings
from corpus import restriction
from corpus.asking import translated
from corpus.catalogue.tables import Chunk, Document, Partition
from corpus.errors import SettingsError, TerminalError
from corpus.ids import canonical_json, digest, fingerprint
from corpus.stages import BaseStep, Item, Outcome, Stage, StageContext
from models.errors import ModelError, OfflineUnavailable

if TYPE_CHECKING:
    from models import Models

_VERSIONS = {
    "fixed": "1",
    "sentence": "2",
    "recursive": "2",
    "semantic": "4",
    "lumberchunker": "3",
    "meta-chunker": "3",
    "direct-llm": "3",
    "qchunker": "4",
    "qchunker-slm": "4",
    "hichunk": "3",
}
_SLICE = 500


def chunks_stage(settings: ChunkSettings, models: Models) -> Stage:
    """One step per method, named ``chunks.<method>``; an item is a document.

    Raises SettingsError where a method is named that only a model can answer, and none is set.
    """
    for method in settings.methods:
        try:
            require_models(method, models, completion=settings.completion)
        except OfflineUnavailable as error:
            raise SettingsError(f"chunks.methods names {method}: {error}") from error
    segmenter = Segmenter(models, settings)
    return Stage("chunks", [ChunkStep(method, segmenter) for method in settings.methods])


@dataclass
class ChunkStep(BaseStep):
    """Cuts documents with one method and stores partition and chunks of the present version."""

    method: str = ""
    segmenter: Segmenter = field(default=None, repr=False)  # type: ignore[assignment]

    def __init__(self, method: str, segmenter: Segmenter) -> None:
        super().__init__(name=f"chunks.{method}", version=_VERSIONS[method], batch_size=10)
        self.method = method
        self.segmenter = segmenter

    @property
    def concurrency(self) -> int:
        """Documents at once: several where a model is waited for."""
        return self.segmenter.models.concurrency(*(skill.name for skill in SKILLS_OF.get(self.method, ())))

    def plan(self, ctx: StageContext) -> list[Item]:
        """Kept documents of the chosen kinds; keyed on version, settings and who answers."""
        query = select(Document.document_id, Document.version_id, Document.language).where(
            Document.state == "kept", Document.text != "", Document.kind.in_(self.segmenter.settings.kinds)
        )
        basis = self._basis()
        with ctx.catalogue.reading() as session:
            query = restriction.documents(session, ctx, query)
            rows = session.execute(query.order_by(Document.document_id)).all()
        return [
            Item(document, fingerprint(self.name, self.version, [version, language], basis))
            for document, version, language in rows
        ]

    def prepare(self, ctx: StageContext, items: Sequence[Item]) -> None:
        """Embed the sentences of all documents of the batch in one call; what is known costs a look-up."""
        if not self._embeds():
            return
        query = select(Document.text).where(Document.document_id.in_([item.id for item in items]))
        with ctx.catalogue.reading() as session:
            texts = session.scalars(query).all()
        with suppress(ModelError):  # fails again, and is recorded, for the document that it belongs to
            self.segmenter.warm(texts)

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Cut and score one document."""
        with ctx.catalogue.reading() as session:
            row = session.get(Document, item.id)
            if row is None:
                raise TerminalError(f"document {item.id} is gone", reason="gone")
            version, text, language = row.version_id, row.text, row.language
        began = time.monotonic()
        try:
            result, scores = self._cut(text, language)
        except ModelError as error:
            raise translated(error) from error
        partition = Partition(
            partition_id=digest("partition", version, self.method, canonical_json(self._basis())),
            document_id=item.id,
            version_id=version,
            method=self.method,
            settings=dict(result.settings),
            scores=scores,
            record=dict(result.record),
            seconds=round(time.monotonic() - began, 3),
        )
        chunks = _chunks(partition, result)

        def write(session: Session) -> None:
            self.retire(session, [item.id])
            session.add(partition)
            session.add_all(chunks)

        leaves = sum(chunk.leaf for chunk in chunks)
        return Outcome(write=write, counts={"chunks": leaves, "completed": len(result.completed)})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Remove this method's partitions and chunks of documents."""
        for start in range(0, len(item_ids), _SLICE):
            ids = list(item_ids[start : start + _SLICE])
            for table in (Chunk, Partition):
                session.execute(delete(table).where(table.document_id.in_(ids), table.method == self.method))

    def _cut(self, text: str, language: str) -> tuple[SegmentResult, dict[str, Any]]:
        table = self.segmenter.table(text)
        result = self.segmenter.run(text, self.method, language or None, table)
        settings = self.segmenter.settings
        if not settings.score:
            return result, {}
        score = self.segmenter.score(text, result.spans, table, reach=settings.chunkscore_reach)
        return result, score.as_dict()

    def _embeds(self) -> bool:
        """Whether this method, or its score, reads sentence vectors."""
        return self.segmenter.settings.score or self.method in ("semantic", "qchunker", "hichunk")

    def _basis(self) -> dict[str, Any]:
        """Everything beside the text that decides the records."""
        models, settings = self.segmenter.models, self.segmenter.settings
        basis: dict[str, Any] = dict(self.segmenter.relevant(self.method))
        basis["version"] = self.version
        basis["skills"] = {
            skill.name: [models.identity(skill), models.draws(skill.name)]
            for skill in SKILLS_OF.get(self.method, ())
        }
        if self._embeds():
            basis["embedding"] = models.embedder("cohesion").name
        if settings.score or self.method == "qchunker":
            basis["perplexity"] = self.segmenter.backgrounds.perplexity("").name
        if settings.score:
            basis["score"] = [
                settings.chunkscore_lambda,
                settings.chunkscore_alpha,
                settings.chunkscore_variant,
                settings.chunkscore_reach,
            ]
        return basis


def _chunks(partition: Partition, result: SegmentResult) -> list[Chunk]:
    ids = [node_id(partition.partition_id, index, node) for index, node in enumerate(result.nodes)]
    return [
        Chunk(
            chunk_id=ids[index],
            partition_id=partition.partition_id,
            document_id=partition.document_id,
            version_id=partition.version_id,
            method=partition.method,
            position=index,
            start=node.start,
            end=node.end,
            level=node.level,
            parent_id=None if node.parent is None else ids[node.parent],
            leaf=node.leaf,
            text=result.text[node.start : node.end],
            completed=result.completed.get(index),
            outline_question=result.questions.get(index, ""),
        )
        for index, node in enumerate(result.nodes)
    ]

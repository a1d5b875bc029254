"""Chunks as retrieval sees them: plain records of one method, read from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVarTuple

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from chunking.evaluation.settings import ContextText, IndexText
from corpus.catalogue.tables import Chunk, Document
from corpus.ids import digest

Row = TypeVarTuple("Row")

UNCOMPLETED = "-no-completion"
"""Of a method's label: its chunks without their completed texts (the paper's "w/o M_Ref")."""


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A node of a partition with its text; offsets are code points of the document's refined text."""

    chunk_id: str
    document_id: str
    version_id: str
    method: str
    start: int
    end: int
    text: str
    level: int = 1
    parent_id: str | None = None
    leaf: bool = True
    completed: str | None = None
    outline_question: str = ""

    def index_text(self, form: IndexText) -> str:
        """What the indexes read."""
        if form == "completed":
            return self.completed or self.text
        if form == "question+chunk" and self.outline_question:
            return f"{self.outline_question}\n{self.text}"
        return self.text

    def context_text(self, form: ContextText) -> str:
        """What the answerer reads."""
        return (self.completed or self.text) if form == "completed" else self.text


@dataclass(frozen=True)
class ChunkSet:
    """All nodes of one method over the kept documents, in document order, with the documents' titles."""

    method: str
    nodes: tuple[ChunkRecord, ...]
    titles: Mapping[str, str]

    @property
    def leaves(self) -> list[ChunkRecord]:
        """The chunks that are ranked."""
        return [node for node in self.nodes if node.leaf]


def chunk_methods(session: Session) -> list[str]:
    """Methods that have chunks, by name."""
    return sorted(session.scalars(select(Chunk.method).distinct()))


def completing_methods(session: Session, methods: Iterable[str]) -> list[str]:
    """Those of the methods that completed a chunk of a kept document's present version."""
    return [
        method
        for method in methods
        if session.execute(
            _present(select(Chunk.chunk_id), method).where(Chunk.completed.is_not(None)).limit(1)
        ).first()
    ]


def without_completion(chunks: ChunkSet) -> ChunkSet:
    """The same partition with nothing completed, under a label and ids of its own (an index may hold both)."""
    nodes = tuple(
        replace(
            node,
            chunk_id=_apart(node.chunk_id),
            parent_id=None if node.parent_id is None else _apart(node.parent_id),
            method=chunks.method + UNCOMPLETED,
            completed=None,
        )
        for node in chunks.nodes
    )
    return ChunkSet(chunks.method + UNCOMPLETED, nodes, chunks.titles)


def _apart(chunk_id: str) -> str:
    return digest(UNCOMPLETED, chunk_id)


def chunk_fingerprint(session: Session, method: str) -> str:
    """Content hash of a method's chunks without reading their texts: ids are derived from them."""
    whole = method.removesuffix(UNCOMPLETED)
    rows = session.execute(
        _present(select(Chunk.chunk_id, Chunk.completed, Chunk.outline_question, Document.title), whole)
    )
    return digest(
        method,
        *(
            digest(key, (done or "") if whole == method else "", asked, title)
            for key, done, asked, title in rows
        ),
    )


def _present(query: Select[*Row], method: str) -> Select[*Row]:
    """Chunks of the present versions of kept documents, ordered by document and position."""
    join = (Document.document_id == Chunk.document_id) & (Document.version_id == Chunk.version_id)
    return (
        query.join_from(Chunk, Document, join)
        .where(Chunk.method == method, Document.state == "kept")
        .order_by(Chunk.document_id, Chunk.position)
    )


def load_chunks(session: Session, method: str) -> ChunkSet:
    """The method's chunks of the present versions of kept documents, ordered by document and position."""
    if method.endswith(UNCOMPLETED):
        return without_completion(load_chunks(session, method.removesuffix(UNCOMPLETED)))
    nodes: list[ChunkRecord] = []
    titles: dict[str, str] = {}
    for row, title in session.execute(_present(select(Chunk, Document.title), method)):
        nodes.append(_record(row))
        titles[row.document_id] = title
    return ChunkSet(method, tuple(nodes), titles)


def _record(row: Chunk) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        version_id=row.version_id,
        method=row.method,
        start=row.start,
        end=row.end,
        text=row.text,
        level=row.level,
        parent_id=row.parent_id,
        leaf=row.leaf,
        completed=row.completed,
        outline_question=row.outline_question,
    )

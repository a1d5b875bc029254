"""Refined documents as the later stages see them, and spans into their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document


@dataclass(frozen=True)
class Span:
    """A stretch of a document's refined text, in code points, end exclusive."""

    version_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Section:
    """A stretch of the refined text under one heading. ``sds``: section 1-16 of a data sheet."""

    start: int
    end: int
    heading: str
    level: int
    sds: int | None = None


@dataclass(frozen=True)
class Block:
    """A block of the refined text and where it came from in the cleaned text and the page."""

    start: int
    end: int
    cleaned_start: int
    cleaned_end: int
    path: str = ""


@dataclass(frozen=True)
class RefinedDocument:
    """A kept document: one version of its text with sections and block map."""

    document_id: str
    version_id: str
    url: str
    title: str
    language: str
    source: str
    kind: str
    text: str
    cleaned_text: str
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()
    licence: str = ""
    flags: tuple[str, ...] = field(default=())


def refined(row: Document) -> RefinedDocument:
    """Plain data of a document row."""
    return RefinedDocument(
        document_id=row.document_id,
        version_id=row.version_id,
        url=row.url,
        title=row.title,
        language=row.language,
        source=row.source,
        kind=row.kind,
        text=row.text,
        cleaned_text=row.cleaned_text,
        sections=tuple(Section(**section) for section in row.sections),
        blocks=tuple(Block(**block) for block in row.blocks),
        licence=row.licence,
        flags=tuple(row.flags),
    )


def kept_documents(
    session: Session, ids: Sequence[str] | None = None, *, kinds: Sequence[str] = ()
) -> list[RefinedDocument]:
    """Kept documents with text, ordered by id; ``ids`` and ``kinds`` restrict them."""
    query = select(Document).where(Document.state == "kept", Document.text != "")
    if ids is not None:
        query = query.where(Document.document_id.in_(list(ids)))
    if kinds:
        query = query.where(Document.kind.in_(list(kinds)))
    return [refined(row) for row in session.scalars(query.order_by(Document.document_id))]

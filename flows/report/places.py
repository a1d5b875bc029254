"""Where the pages of a report are, by what they show; no text of a page becomes a path."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document
from corpus.ids import digest

MOST_DOCUMENTS = 5000  # that have a lineage page


def in_chinese(report: Path) -> Path:
    """The Chinese file beside an English report: ``report.zh.html`` beside ``report.html``."""
    return report.with_name(f"{report.stem}.zh{report.suffix}")


def substances_folder(report: Path) -> Path:
    """The pages of the substances."""
    return report.with_name(f"{report.stem}-substances")


def lineage_folder(report: Path) -> Path:
    """The lineage pages."""
    return report.with_name(f"{report.stem}-lineage")


def document_page(document: str) -> str:
    """File of a document's lineage page."""
    return f"d-{digest('lineage page', document)[:20]}.html"


def source_page(source: str, number: int = 1) -> str:
    """File of a source's list of pages."""
    return f"s-{digest('lineage source', source)[:20]}-{number}.html"


def listed_documents(session: Session) -> list[tuple[str, str]]:
    """(id, title) of the documents that have a lineage page: all, up to a bound that the index names."""
    query = select(Document.document_id, Document.title, Document.identity).order_by(
        Document.source, Document.identity, Document.document_id
    )
    return [(key, title or identity) for key, title, identity in session.execute(query.limit(MOST_DOCUMENTS))]

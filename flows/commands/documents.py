"""``hchem documents``: refined documents with scores and reasons."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.table import Table
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document
from corpus.errors import SettingsError
from corpus.lookup import by_beginning
from flows.console import out, whole
from flows.runtime import open_runtime

app = typer.Typer()
_STATES = ("kept", "rejected", "duplicate", "review", "failed", "pending")
_REFERENCE = "reference"  # an entry of a published list: evidence of the graph, no page that was curated


@app.command("list")
def list_documents(
    state: Annotated[str, typer.Option(help=f"One of {', '.join(_STATES)}.")] = "",
    references: Annotated[
        bool, typer.Option("--references", help="The reference entries instead, which no page stands behind.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
) -> None:
    """List documents with score, state and reason. Example: hchem documents list --state rejected"""
    if state and state not in _STATES:
        raise SettingsError(f"unknown state {state!r}; one of {', '.join(_STATES)}")
    query = select(
        Document.document_id, Document.title, Document.language, Document.score, Document.state,
        Document.reason, Document.url,
    )  # fmt: skip
    if state:
        query = query.where(Document.state == state)
    shown_kind = Document.kind == _REFERENCE if references else Document.kind != _REFERENCE
    every, query = query, query.where(shown_kind)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("document", "title", "language", "score", "state", "url"):
        table.add_column(column, overflow="fold")
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        total = db.scalar(select(func.count()).select_from(query.subquery())) or 0
        others = (db.scalar(select(func.count()).select_from(every.subquery())) or 0) - total
        for row in db.execute(query.order_by(Document.document_id).limit(limit)):
            score = "" if row.score is None else f"{row.score:.1f}"
            shown = f"{row.state} {row.reason}".strip()
            table.add_row(row.document_id, row.title[:60], row.language, score, shown, row.url)
    out.print(whole(table, "document", "language", "score"))
    if references:
        out.print(f"{min(limit, total)} of {total} reference entries")
        return
    beside = f", beside {others} reference entries (--references lists them)" if others else ""
    out.print(f"{min(limit, total)} of {total} documents{beside}")


@app.command("show")
def show(
    document: Annotated[
        str, typer.Argument(metavar="ID", help="Document id (or its beginning), version id or URL.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Print the refined text only.")] = False,
    cleaned: Annotated[bool, typer.Option("--cleaned", help="Print the cleaned text only.")] = False,
) -> None:
    """Show a document: score, reasons, sections, what was removed. Example: hchem documents show 0d5f --text"""
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        row = _found(db, document)
        if text or cleaned:
            typer.echo(row.text if text else row.cleaned_text)
            return
        shown = _shown(row)
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for label, value in shown.items():
        plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        out.print(f"{label}: {plain}", markup=False, soft_wrap=True)


def _found(db: Session, given: str) -> Document:
    """A document by its version, its address, its id or the beginning of that."""
    place = (Document.version_id == given) | (Document.url == given)
    whole = (
        db.scalars(select(Document).where(place).order_by(Document.document_id)).first() if given else None
    )
    row: Document = whole or by_beginning(db, Document.document_id, given, "document", "hchem documents list")
    return row


def _shown(row: Document) -> dict[str, Any]:
    parts = {name: value for name, value in row.score_parts.items() if name != "page"}
    return {
        "document": row.document_id,
        "version": row.version_id,
        "url": row.url,
        "title": row.title,
        "kind": row.kind,
        "language": row.language,
        "source": row.source,
        "licence": row.licence,
        "state": f"{row.state} {row.reason}".strip(),
        "detail": row.detail,
        "flags": row.flags,
        "score": row.score,
        "score by": row.score_source,
        "score parts": parts,
        "duplicate of": row.duplicate_of or "",
        "group": row.group,
        "characters": {"cleaned": len(row.cleaned_text), "refined": len(row.text)},
        "removed": row.removed,
        "refinement": row.refinement,
        "sections": [
            {"heading": s["heading"], "level": s["level"], "sds": s["sds"], "start": s["start"]}
            for s in row.sections
        ],
    }

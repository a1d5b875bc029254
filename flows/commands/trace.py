"""``hchem trace ID``: from a page to its facts, questions and chunks, and back."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Chunk, Document, Page, Question
from corpus.errors import SettingsError
from flows.console import out
from flows.runtime import open_runtime

app = typer.Typer()
_SHOWN = 10


@app.command()
def trace(
    item: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a page, document, assertion, question or chunk.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Trace a fact, question or chunk to its page, or a page to what came of it.

    Example: hchem trace 0d5f…
    """
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        documents = _documents(db, item)
        if not documents:
            raise SettingsError(f"nothing has the id {item!r}")
        traces = [_trace(db, document) for document in documents]
    if as_json:
        typer.echo(json.dumps(traces, ensure_ascii=False, indent=2))
        return
    for entry in traces:
        for name, value in entry.items():
            if isinstance(value, list):
                out.print(f"{name}: {len(value)}")
                for line in value[:_SHOWN]:
                    out.print("  " + json.dumps(line, ensure_ascii=False), markup=False, soft_wrap=True)
            else:
                out.print(f"{name}: {value}", markup=False, soft_wrap=True)


def _documents(db: Session, item: str) -> list[Document]:
    question = db.get(Question, item)
    if question is not None:
        ids = sorted({reference["document_id"] for reference in question.references})
    else:
        found = db.get(Document, item) or db.get(Page, item) or db.get(Assertion, item) or db.get(Chunk, item)
        ids = [found.document_id] if found is not None else []
    return [row for row in (db.get(Document, i) for i in ids) if row is not None]


def _trace(db: Session, document: Document) -> dict[str, Any]:
    page = db.get(Page, document.page_id)
    key = document.document_id
    assertions = db.scalars(
        select(Assertion)
        .where(Assertion.document_id == key, Assertion.state == "kept")
        .order_by(Assertion.start)
    )
    chunks = db.scalars(
        select(Chunk).where(Chunk.document_id == key, Chunk.leaf).order_by(Chunk.method, Chunk.start)
    )
    questions = [
        row
        for row in db.scalars(select(Question).where(Question.state == "kept").order_by(Question.question_id))
        if any(reference["document_id"] == key for reference in row.references)
    ]
    return {
        "page": page.page_id if page else "",
        "url": document.url,
        "archive": f"{page.warc_file}@{page.warc_offset}" if page else "",
        "fetched": page.fetched_at.isoformat() if page and page.fetched_at else "",
        "document": key,
        "version": document.version_id,
        "state": f"{document.state} {document.reason}".strip(),
        "score": document.score,
        "assertions": [
            {"id": a.assertion_id, "fact": f"{a.subject} {a.relation} {a.object}", "quote": a.quote}
            for a in assertions
        ],
        "questions": [{"id": q.question_id, "kind": q.kind, "question": q.question} for q in questions],
        "chunks": [{"id": c.chunk_id, "method": c.method, "start": c.start, "end": c.end} for c in chunks],
    }

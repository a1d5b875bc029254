"""``hchem trace ID``: from a page to its facts, questions and chunks, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Chunk, Document, Page, Question
from corpus.errors import SettingsError
from corpus.lookup import encodable, one_by_beginning
from flows.console import out
from flows.runtime import open_runtime
from flows.words import visible

app = typer.Typer()
_SHOWN = 10
_COLUMNS = (
    Document.document_id, Page.page_id, Assertion.assertion_id, Question.question_id, Chunk.chunk_id,
)  # fmt: skip
_CANDIDATES = 6

Touches = Callable[[str, int, int], bool]
"""Whether a span of a document is part of what is traced."""


@app.command()
def trace(
    item: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of a page, document, assertion, question or chunk, or its beginning."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Trace a fact, question or chunk to the words of its page, or a page to all that came of it.

    Example: hchem trace 0d5f…
    """
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        found = _item(db, item)
        traces = [_trace(db, found, document, touches) for document, touches in _documents(db, found)]
        head = _head(found)
        if not traces:
            raise SettingsError(f"{item!r} has no document any more: what it came from is gone")
    if as_json:
        typer.echo(json.dumps([{**head, **entry} for entry in traces], ensure_ascii=False, indent=2))
        return
    _show(head)
    for entry in traces:
        _show(entry)


def _show(entry: dict[str, Any]) -> None:
    for name, value in entry.items():
        if not isinstance(value, list):
            out.print(visible(f"{name}: {value}"), markup=False, soft_wrap=True)
            continue
        out.print(f"{name}: {len(value)}")
        for line in value[:_SHOWN]:
            out.print("  " + visible(json.dumps(line, ensure_ascii=False)), markup=False, soft_wrap=True)
        if len(value) > _SHOWN:
            out.print(f"  … and {len(value) - _SHOWN} more (--json shows all)", markup=False)


Traced = Page | Document | Assertion | Question | Chunk


def _item(db: Session, given: str) -> Traced:
    """What has the id; a page and its document may share one, then the document stands for both."""
    encodable(given, "an id")
    found: dict[str, Traced] = {}
    for column in _COLUMNS if given else ():
        query = select(column.class_).where(column.startswith(given, autoescape=True))
        for row in db.scalars(query.order_by(column).limit(_CANDIDATES)):
            found.setdefault(str(getattr(row, column.key)), row)
    key = one_by_beginning(
        sorted(found), given, str, "page, document, fact, question or chunk", "hchem documents list"
    )
    return found[key]


def _documents(db: Session, found: Traced) -> list[tuple[Document, Touches]]:
    """The documents that something rests on, each with the spans of it that count."""
    if isinstance(found, Question):
        spans: dict[str, list[tuple[int, int]]] = {}
        for reference in found.references:
            spans.setdefault(reference["document_id"], []).append((reference["start"], reference["end"]))
        rows = [(db.get(Document, key), _overlapping(places)) for key, places in sorted(spans.items())]
    elif isinstance(found, Assertion | Chunk):
        rows = [(db.get(Document, found.document_id), _overlapping([(found.start, found.end)]))]
    else:
        # pages that became no document of their own (duplicates by address) lead to the one that has them
        key = found.document_id if isinstance(found, Document | Page) else ""
        rows = [(db.get(Document, key), lambda document, start, end: True)]
    return [(row, touches) for row, touches in rows if row is not None]


def _overlapping(places: Iterable[tuple[int, int]]) -> Touches:
    kept = list(places)
    return lambda _, start, end: any(start < last and end > first for first, last in kept)


def _head(found: Traced) -> dict[str, Any]:
    """What is traced: of a question its answer and the words of pages that its proof rests on."""
    if isinstance(found, Question):
        shown = ("document_id", "start", "end", "quote", "url")
        return {
            "question": found.question_id,
            "asks": found.question,
            "answer": found.answer,
            "evidence": [{name: reference.get(name) for name in shown} for reference in found.references],
        }
    if isinstance(found, Assertion):
        return {"fact": found.assertion_id, "says": f"{found.subject} {found.relation} {found.object}",
                "polarity": found.polarity, "quote": found.quote, "at": f"{found.start}-{found.end}"}  # fmt: skip
    if isinstance(found, Chunk):
        return {"chunk": found.chunk_id, "method": found.method, "at": f"{found.start}-{found.end}"}
    return {}


def _fact(row: Assertion) -> dict[str, Any]:
    return {"id": row.assertion_id, "fact": f"{row.subject} {row.relation} {row.object}", "quote": row.quote}


def _proving(question: Question, rows: list[Assertion]) -> list[Assertion]:
    """Those facts at the place of the evidence that are hops of the proof; all of them where none is told apart."""
    hops = {tuple(triple) for triple in question.triples}
    return [a for a in rows if (a.subject_key, a.relation, a.object_key) in hops] or rows


def _trace(db: Session, found: Traced, document: Document, touches: Touches) -> dict[str, Any]:
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
    stated = [a for a in assertions if touches(key, a.start, a.end)]
    if isinstance(found, Question):
        stated = _proving(found, stated)
    return {
        "page": page.page_id if page else "",
        "url": document.url,
        "archive": f"{page.warc_file}@{page.warc_offset}" if page else "",
        "fetched": page.fetched_at.isoformat() if page and page.fetched_at else "",
        "document": key,
        "version": document.version_id,
        "state": f"{document.state} {document.reason}".strip(),
        "score": document.score,
        "assertions": [_fact(a) for a in stated],
        **({} if isinstance(found, Question) else {"questions": _questions(db, key, touches)}),
        "chunks": [
            {"id": c.chunk_id, "method": c.method, "start": c.start, "end": c.end}
            for c in chunks
            if touches(key, c.start, c.end)
        ],
    }


def _questions(db: Session, document: str, touches: Touches) -> list[dict[str, Any]]:
    """Kept questions whose evidence is traced."""
    rows = db.scalars(select(Question).where(Question.state == "kept").order_by(Question.question_id))
    return [
        {"id": row.question_id, "kind": row.kind, "question": row.question}
        for row in rows
        if any(
            reference["document_id"] == document and touches(document, reference["start"], reference["end"])
            for reference in row.references
        )
    ]

"""``hchem trace ID``: from a page to its facts, questions and chunks, and back."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from rich.text import Text
from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Chunk, Document, Entity, LedgerRow, Page, Partition, Question
from corpus.errors import SettingsError
from corpus.lookup import encodable, one_by_beginning
from flows import lineage
from flows.console import out
from flows.report.said import sentence
from flows.runtime import Runtime, open_runtime
from flows.words import visible

app = typer.Typer()
_SHOWN = 10
_SET_IN = 2  # blanks before the further lines of what wraps
_COLUMNS = (
    Document.document_id, Page.page_id, Assertion.assertion_id, Question.question_id, Chunk.chunk_id,
)  # fmt: skip
_CANDIDATES = 6
_FIRST_LOOK = "curate.profile"  # what every page passes that may become a document
_FOR_LINKS = {"search": "a search or listing page", "sitemap": "a sitemap"}  # by a page's role
_PLAIN = {  # fields whose value says what it is
    "id", "key", "step", "fact", "question", "kind", "method", "label", "state", "skill", "url", "relation",
}  # fmt: skip
_CALLED = {"document_id": "document", "start": "at"}

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
    open_page: Annotated[
        bool, typer.Option("--open", help="Open its page beside the report in the browser.")
    ] = False,
) -> None:
    """Trace a fact, question or chunk to the words of its page, or a page to all that came of it.

    A substance is traced by its key (its CAS number) to the relationships of its node. Example: hchem trace 0d5f…
    """
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        found = _item(db, item, runtime)
        if isinstance(found, Entity):
            head, traces = lineage.entity(db, found), []
        else:
            traces = [
                _trace(db, found, document, touches, runtime) for document, touches in _documents(db, found)
            ]
            head = _head(found) | _of_question(db, found, runtime)
            if not traces:
                raise SettingsError(_without_document(db, item, found))
        page = _page_of(runtime, found, traces) if open_page else None
    if as_json:
        told = {**head, "traces": []} if not traces else None
        typer.echo(
            json.dumps(
                [told] if told else [{**head, **entry} for entry in traces], ensure_ascii=False, indent=2
            )
        )
    else:
        for entry in (head, *traces):
            _show(entry)
    if page is not None:
        webbrowser.open(page)


def _without_document(db: Session, given: str, found: Traced) -> str:
    """Why nothing came of what was found: it was never a document, or its document is gone."""
    gone = f"{given!r} has no document any more: what it came from is gone"
    if not isinstance(found, Page):
        return gone
    what = f"{given!r} is {_FOR_LINKS.get(found.role, 'a page')} of {found.source} ({found.url})"
    if found.state == "kept" and found.role in _FOR_LINKS:
        return f"{what}, read for its links only: it never becomes a document"
    if found.state == "gone" or db.get(LedgerRow, (_FIRST_LOOK, found.page_id)) is not None:
        return gone
    state = f"{found.state} {found.reason}".strip()
    if found.state == "kept":
        return f"{what} that is not curated yet: hchem run curate"
    return f"{what} that is no document ({state})"


def _page_of(runtime: Runtime, found: Traced, traces: list[dict[str, Any]]) -> str:
    """Address of the item's page beside the report. Raises SettingsError where none has been written."""
    from flows.report import explorer, places, trails

    report = runtime.data_dir / "reports" / "report.html"
    if isinstance(found, Entity):
        path, anchor = places.substances_folder(report) / explorer.page_name(found.key), ""
    else:
        path = places.lineage_folder(report) / places.document_page(traces[0]["document"])
        anchor = trails.anchor(found)
    if not path.is_file():
        raise SettingsError(f"{path} is not there; write the report first: hchem report")
    return path.as_uri() + (f"#{anchor}" if anchor else "")


def _show(entry: dict[str, Any]) -> None:
    for name, value in entry.items():
        heading = name.replace("_", " ")
        if isinstance(value, list):
            _show_rows(heading, value)
            continue
        # rows inside of it are no field of one line
        within = [n for n, held in value.items() if isinstance(held, list)] if isinstance(value, dict) else []
        rest = {n: held for n, held in value.items() if n not in within} if within else value
        _print(f"{heading}: {_words(rest)}")
        for inner in within:
            if value[inner]:
                _show_rows(f"{heading}, {inner}", value[inner])


def _show_rows(heading: str, rows: list[Any]) -> None:
    out.print(f"{heading}: {len(rows)}")
    for row in rows[:_SHOWN]:
        _print(_words(row), indent=2)
    if len(rows) > _SHOWN:
        out.print(f"  … and {len(rows) - _SHOWN} more (--json shows all)", markup=False)


def _print(line: str, indent: int = 0) -> None:
    """A line that wraps in a terminal, its further lines set in; where a program reads, it stays one line."""
    if not out.is_terminal:
        out.print(" " * indent + visible(line), markup=False)
        return
    wrapped = Text(visible(line)).wrap(out, max(out.width - indent - _SET_IN, 20), overflow="fold")
    for number, part in enumerate(wrapped):
        part.rstrip()
        out.print(Text(" " * (indent + (_SET_IN if number else 0))) + part, soft_wrap=True)


def _words(value: Any) -> str:
    """A value for people: fields by name, less those that speak for themselves and those that are empty."""
    if isinstance(value, dict):
        fields = dict(value)
        if isinstance(fields.get("start"), int) and isinstance(fields.get("end"), int):
            fields["start"] = f"{fields['start']}–{fields.pop('end')}"
        shown = [
            (name, held) for name, held in fields.items() if held is not None and held not in ("", [], {})
        ]
        return "; ".join(_field(name, held) for name, held in shown) or "–"
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None or value == "" else str(value)


def _field(name: str, value: Any) -> str:
    if name == "quote":
        return f"“{value}”"
    words = f"({_words(value)})" if isinstance(value, dict) else _words(value)
    return words if name in _PLAIN else f"{_CALLED.get(name, name.replace('_', ' '))} {words}"


Traced = Page | Document | Assertion | Question | Chunk | Entity


def _item(db: Session, given: str, runtime: Runtime) -> Traced:
    """What has the id; a page and its document may share one, then the document stands for both.

    A key of a substance counts whole only: the beginning of a CAS number is the beginning of many ids.
    """
    encodable(given, "an id")
    named = db.get(Entity, given) if given else None
    if named is not None:
        return named
    found: dict[str, Traced] = {}
    for column in _COLUMNS if given else ():
        query = select(column.class_).where(column.startswith(given, autoescape=True))
        for row in db.scalars(query.order_by(column).limit(_CANDIDATES)):
            found.setdefault(str(getattr(row, column.key)), row)
    if not found and (holding := lineage.gone(runtime.data_dir, given) if given else []):
        raise SettingsError(
            f"{given!r} is superseded: the catalogue no longer has it, these versions of the data set do: "
            f"{', '.join(holding)} (hchem dataset diff {holding[-1]} current)"
        )
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
            "kind": found.kind,
            "asks": found.question,
            "answer": found.answer,
            "evidence": [{name: reference.get(name) for name in shown} for reference in found.references],
        }
    if isinstance(found, Assertion):
        return {"fact": found.assertion_id, "says": sentence(found), "relation": found.relation,
                "polarity": found.polarity, "quote": found.quote, "at": f"{found.start}-{found.end}"}  # fmt: skip
    if isinstance(found, Chunk):
        return {"chunk": found.chunk_id, "method": found.method, "at": f"{found.start}-{found.end}"}
    return {}


def _fact(row: Assertion) -> dict[str, Any]:
    return {"id": row.assertion_id, "fact": sentence(row), "quote": row.quote}


def _proving(question: Question, rows: list[Assertion]) -> list[Assertion]:
    """Those facts at the place of the evidence that are hops of the proof; all of them where none is told apart."""
    hops = {tuple(triple) for triple in question.triples}
    return [a for a in rows if (a.subject_key, a.relation, a.object_key) in hops] or rows


def _of_question(db: Session, found: Traced, runtime: Runtime) -> dict[str, Any]:
    """What of a question is not of one document: the versions that hold it, and the figures that rest on it."""
    if not isinstance(found, Question):
        return {}
    settings = runtime.settings.evaluation
    return {
        "data sets": lineage.held_by(runtime.data_dir, "question", found.question_id),
        "evaluation": lineage.evaluations(db, found, settings.max_questions, settings.seed),
    }


def _trace(
    db: Session, found: Traced, document: Document, touches: Touches, runtime: Runtime
) -> dict[str, Any]:
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
    held = lineage.held_by(runtime.data_dir, "document", key)
    return {
        "page": page.page_id if page else "",
        "url": document.url,
        "archive": f"{page.warc_file}@{page.warc_offset}" if page else "",
        "fetched": page.fetched_at.isoformat() if page and page.fetched_at else "",
        "document": key,
        "version": document.version_id,
        "state": f"{document.state} {document.reason}".strip(),
        "score": document.score,
        "duplicates": lineage.duplicates(db, document),
        **_makers(db, found, document),
        **_holding(runtime, found, held),
        "superseded": sorted({h["text_version"] for h in held} - {document.version_id}),
        "entities": lineage.entities(db, stated),
        "assertions": [_fact(a) for a in stated],
        **({} if isinstance(found, Question) else {"questions": _questions(db, key, touches)}),
        "chunks": [
            {"id": c.chunk_id, "method": c.method, "start": c.start, "end": c.end}
            for c in chunks
            if touches(key, c.start, c.end)
        ],
    }


def _makers(db: Session, found: Traced, document: Document) -> dict[str, Any]:
    """Who made it; a chunk is its partition's, whose settings name the method's."""
    if isinstance(found, Chunk):
        step = f"chunks.{found.method}"
        partition = db.get(Partition, found.partition_id)
        runs = lineage.made_by(db, [step], [document.document_id])
        return {"settings": partition.settings if partition else {}, "runs": runs}
    return {} if isinstance(found, Entity) else lineage.makers(db, found, document)


def _holding(runtime: Runtime, found: Traced, held: list[dict[str, Any]]) -> dict[str, Any]:
    """The versions of the data set that hold a fact, or a document's text; those of a question stand above."""
    if isinstance(found, Question):
        return {}
    if isinstance(found, Assertion):
        held = lineage.held_by(runtime.data_dir, "fact", found.assertion_id)
    return {"data sets": held}


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

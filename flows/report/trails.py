"""Lineage pages beside the report: source → page → document → facts → questions → chunks, linked both ways.

An index lists the sources and holds a search over everything by id, name and number;
a source has pages of its pages; a document has one page with all that came of it.
Read and written a bounded number of documents at a time. What a page says is data
and comes out as text; only the index runs a script, its own, allowed by hash, over
data that stands in the page.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Chunk, Document, Entity, LedgerRow, Page, Question, Run
from corpus.errors import TerminalError
from flows import lineage
from flows.report import explorer, folders
from flows.report.explorer import environment, page_frame, shortened
from flows.report.places import (
    document_page,
    in_chinese,
    lineage_folder,
    listed_documents,
    source_page,
    substances_folder,
)
from flows.report.statements import conditions_beside, what_is_said
from flows.report.words import WORDS

TRAILS_VERSION = "2"
_PAGE_ROWS = 200  # pages of a source on one page
_BATCH = 50
_MOST_FACTS = 1000  # of a document
_MOST_QUESTIONS = 1000
_MOST_CHUNKS = 400  # of a method
_MOST_SEARCHED = 60_000
_SAID = 800  # characters of a text that the search looks at
_STEPS = (*lineage.DOCUMENT_STEPS, "graph.extract", "graph.reference")


@dataclass(frozen=True)
class Trails:
    """What was written: the folder, its pages of documents, the documents there are, bytes."""

    folder: Path
    pages: int
    documents: int
    bytes: int

    @property
    def link(self) -> str:
        """Address of the index from the report's folder."""
        return f"{self.folder.name}/index.html"


def anchor(found: object) -> str:
    """Where on its document's page an item stands; empty for the whole."""
    if isinstance(found, Assertion):
        return f"f-{found.assertion_id}"
    if isinstance(found, Question):
        return f"q-{found.question_id}"
    return f"c-{found.chunk_id}" if isinstance(found, Chunk) else ""


def _documents(*columns: Any) -> Select[Any]:
    return select(*columns).order_by(Document.identity, Document.document_id)


def write_trails(catalogue: Catalogue, report: Path, data_dir: Path) -> Trails:
    """Write ``<report>-lineage/`` beside a report file, whole or not at all.

    A folder whose content would be the same is left alone. Raises TerminalError
    where it cannot be written or holds files that no report wrote.
    """
    folder = lineage_folder(report)
    held = lineage.texts_held(data_dir)
    with catalogue.reading() as session:
        mark = _fingerprint(session, report.name, held)
        figures = folders.known(folder, mark)
        if figures is None:
            try:
                figures = folders.write(
                    folder, mark, lambda fresh: _Writer(session, fresh, report, held).write()
                )
            except OSError as error:
                raise TerminalError(
                    f"lineage pages {folder} cannot be written: {error.strerror or error}", reason="disk"
                ) from error
    return Trails(folder.resolve(), figures["pages"], figures["documents"], figures["bytes"])


def _fingerprint(session: Session, report: str, held: Mapping[str, Any]) -> str:
    """Hash of all that the pages show, read as streams."""
    state = hashlib.sha256(f"{TRAILS_VERSION} {report} {sorted(held.items())!r}".encode())
    steps = select(LedgerRow.step, LedgerRow.item_id, LedgerRow.run_id, LedgerRow.state, LedgerRow.reason)
    queries = (
        select(Page.page_id, Page.state, Page.reason, Page.role, Page.url, Page.payload_sha256, Page.document_id,
               Page.fetched_at, Page.warc_file, Page.warc_offset).order_by(Page.page_id),
        select(Document.document_id, Document.version_id, Document.title, Document.state, Document.reason, Document.score,
               Document.duplicate_of, Document.url, Document.licence).order_by(Document.document_id),
        select(Assertion.assertion_id, Assertion.state).order_by(Assertion.assertion_id),
        select(Question.question_id, Question.question, Question.answer, Question.state).order_by(Question.question_id),
        select(Chunk.chunk_id).where(Chunk.leaf).order_by(Chunk.chunk_id),
        select(Entity.key, Entity.names).order_by(Entity.key),
        steps.where(LedgerRow.step.in_(_STEPS)).order_by(LedgerRow.step, LedgerRow.item_id),
    )  # fmt: skip
    for query in queries:
        for row in session.execute(query.execution_options(yield_per=5000)):
            state.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
    return state.hexdigest()


@dataclass
class _Fact:
    """A fact as its page shows it, with where it leads."""

    row: Assertion
    subject: tuple[str, str]
    subject_file: str
    object: str
    object_file: str
    relation: tuple[str, str]
    conditions: dict[str, str]
    questions: list[int] = field(default_factory=list)
    chunks: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class _Asked:
    """A question as a document's page shows it: the facts it rests on here, and the other documents."""

    number: int
    row: Any
    facts: list[int]
    elsewhere: list[tuple[str, str]]


@dataclass
class _Piece:
    """A chunk as its page shows it, with the facts and questions whose words it holds."""

    id: str
    method: str
    position: int
    start: int
    end: int
    text: str
    facts: list[int]
    questions: list[int]


class _Writer:
    """Writes the pages of one report."""

    def __init__(self, session: Session, folder: Path, report: Path, held: Mapping[str, Any]) -> None:
        self.session, self.folder, self.report, self.held = session, folder, report, held
        self.templates = environment()
        self.templates.filters["both"] = _both
        self.templates.filters["place"] = document_page
        self.titles = dict(listed_documents(session))
        self.order = list(self.titles)
        self.total = int(session.scalar(select(func.count()).select_from(Document)) or 0)
        self.names = {
            row.key: (str(row.names.get("zh") or ""), str(row.names.get("en") or ""))
            for row in session.scalars(select(Entity))
        }
        self.asked = self._questions()
        self.substances = explorer.with_pages(session)
        self.search = _Search()
        self.size = 0
        self.shared: dict[str, Any] = {
            "report": report.name,
            "report_zh": in_chinese(report).name,
            "substances": substances_folder(report).name,
        }

    def write(self) -> dict[str, int]:
        """All pages; their figures."""
        frame = page_frame(self.templates, "explorer.css", "trails.css")
        for at in range(0, len(self.order), _BATCH):
            self._write_batch(self.order[at : at + _BATCH], frame)
        sources = [self._write_source(name, counts, frame) for name, counts in self._sources()]
        for key, names in sorted(self.names.items()):
            if key in self.substances:
                self.search.add("s", key, explorer.page_name(key), " · ".join(name for name in names if name))
        html = self.templates.get_template("trails.html.j2").render(
            sources=sources,
            pages=len(self.order),
            total=self.total,
            search=self.search,
            data=self.search.script(),
            **self.shared,
            **page_frame(self.templates, "explorer.css", "trails.css", script="trails.js"),
        )
        self._put("index.html", html)
        return {"pages": len(self.order), "documents": self.total, "bytes": self.size}

    def _put(self, name: str, html: str) -> None:
        self.size += folders.put(self.folder / name, html)

    # --- sources ----------------------------------------------------------------

    def _sources(self) -> list[tuple[str, Counter[str]]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for source, state, n in self.session.execute(
            select(Page.source, Page.state, func.count()).group_by(Page.source, Page.state)
        ):
            found[source][state] += int(n)
        for (source,) in self.session.execute(select(Document.source).distinct()):
            found[source]["document"] += 0
        documents = select(Document.source, func.count()).group_by(Document.source)
        for source, n in self.session.execute(documents):
            found[source]["document"] += int(n)
        return sorted(found.items())

    def _write_source(self, source: str, counts: Counter[str], frame: Mapping[str, Any]) -> dict[str, Any]:
        """The pages of a source, a number to a page; documents that have no page of their own stand last."""
        query = (
            select(Page).where(Page.source == source).order_by(Page.state != "kept", Page.url, Page.page_id)
        )
        pages = sum(n for state, n in counts.items() if state != "document")
        without = self._without_page(source)
        last = max(1, -(-(pages + len(without)) // _PAGE_ROWS))
        for number in range(1, last + 1):
            first = (number - 1) * _PAGE_ROWS
            rows = [
                self._page_row(row) for row in self.session.scalars(query.offset(first).limit(_PAGE_ROWS))
            ]
            room = _PAGE_ROWS - len(rows)
            begin = max(0, first - pages)
            rows += without[begin : begin + room]
            html = self.templates.get_template("trail_source.html.j2").render(
                source=source, counts=counts, rows=rows, number=number, last=last, total=pages + len(without),
                first=first, file=source_page, **self.shared, **frame,
            )  # fmt: skip
            self._put(source_page(source, number), html)
            self.session.expunge_all()
        return {"name": source, "file": source_page(source), "counts": counts, "pages": pages}

    def _without_page(self, source: str) -> list[dict[str, Any]]:
        query = _documents(Document.document_id, Document.url, Document.state, Document.reason).where(
            Document.source == source,
            ~select(Page.page_id).where(Page.page_id == Document.page_id).exists(),
        )
        return [
            {"url": url, "state": "", "reason": "", "role": "reference", "fetched": None, "document": key,
             "document_state": state, "document_reason": reason, "id": ""}
            for key, url, state, reason in self.session.execute(query)
        ]  # fmt: skip

    def _page_row(self, page: Page) -> dict[str, Any]:
        document = self.session.get(Document, page.document_id) if page.document_id else None
        if document is None:
            self.search.add("p", page.page_id, source_page(page.source), page.url)
        return {
            "id": page.page_id,
            "url": page.url,
            "state": page.state,
            "reason": page.reason,
            "role": page.role,
            "fetched": page.fetched_at,
            "document": document.document_id if document else "",
            "document_state": document.state if document else "",
            "document_reason": document.reason if document else "",
        }

    # --- documents --------------------------------------------------------------

    def _questions(self) -> dict[str, list[str]]:
        """Document → ids of the kept questions with evidence in it."""
        found: dict[str, list[str]] = defaultdict(list)
        query = (
            select(Question.question_id, Question.references)
            .where(Question.state == "kept")
            .order_by(Question.kind, Question.language, Question.question_id)
        )
        for key, references in self.session.execute(query.execution_options(yield_per=2000)):
            for document in dict.fromkeys(reference["document_id"] for reference in references):
                found[document].append(key)
        return found

    def _write_batch(self, keys: Sequence[str], frame: Mapping[str, Any]) -> None:
        session = self.session
        documents = {
            row.document_id: row
            for row in session.scalars(select(Document).where(Document.document_id.in_(keys)))
        }
        pages = {
            row.page_id: row
            for row in session.scalars(
                select(Page).where(Page.page_id.in_([d.page_id for d in documents.values()]))
            )
        }
        facts: dict[str, list[Assertion]] = defaultdict(list)
        for row in session.scalars(
            select(Assertion)
            .where(Assertion.document_id.in_(keys), Assertion.state == "kept")
            .order_by(Assertion.start, Assertion.assertion_id)
        ):
            facts[row.document_id].append(row)
        made: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for key, entry in self._made(keys):
            made[key].append(entry)
        for key in keys:
            html = self._document(
                documents[key], pages.get(documents[key].page_id), facts[key], made[key], frame
            )
            self._put(document_page(key), html)
        session.expunge_all()

    def _made(self, keys: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        query = (
            select(LedgerRow, Run)
            .join(Run, Run.run_id == LedgerRow.run_id, isouter=True)
            .where(LedgerRow.step.in_(_STEPS), LedgerRow.item_id.in_(keys))
        )
        for row, run in sorted(self.session.execute(query).all(), key=lambda r: _STEPS.index(r[0].step)):
            yield row.item_id, {"step": row.step, "run": row.run_id, "code": run.code_version if run else "",
                                "state": row.state, "reason": row.reason, "at": row.updated_at}  # fmt: skip

    def _document(
        self,
        document: Document,
        page: Page | None,
        rows: list[Assertion],
        made: list[dict[str, Any]],
        frame: Mapping[str, Any],
    ) -> str:
        facts = [self._fact(row) for row in rows[:_MOST_FACTS]]
        asked_ids = self.asked.get(document.document_id, [])
        asked = self._asked(document, asked_ids[:_MOST_QUESTIONS], facts)
        chunks, left_chunks = self._chunks(document, facts, asked)
        self._into_search(document, facts, asked, chunks)
        superseded = {
            version: sets
            for version, sets in self.held.get(document.document_id, {}).items()
            if version != document.version_id
        }
        return self.templates.get_template("trail.html.j2").render(
            document=document,
            page=page,
            made=made,
            sources_page=source_page(document.source),
            duplicates=[
                (key, self.titles.get(key, key)) for key in lineage.duplicates(self.session, document)
            ],
            held=self.held.get(document.document_id, {}).get(document.version_id, []),
            superseded=superseded,
            facts=facts,
            asked=asked,
            chunks=chunks,
            left={
                "facts": len(rows) - len(facts),
                "questions": len(asked_ids) - len(asked),
                "chunks": left_chunks,
            },
            **self.shared,
            **frame,
        )

    def _fact(self, row: Assertion) -> _Fact:
        return _Fact(
            row=row,
            subject=self.names.get(row.subject_key, ("", "")),
            subject_file=explorer.page_name(row.subject_key) if row.subject_key in self.substances else "",
            object=row.object,
            object_file=explorer.page_name(row.object_key) if row.object_key in self.substances else "",
            relation=what_is_said(row),
            conditions=conditions_beside(row),
        )

    def _asked(self, document: Document, ids: Sequence[str], facts: list[_Fact]) -> list[_Asked]:
        """Questions with evidence here; a fact is theirs where it is a hop of the proof at the evidence's place."""
        rows = {
            row.question_id: row
            for at in range(0, len(ids), 500)
            for row in self.session.scalars(
                select(Question).where(Question.question_id.in_(ids[at : at + 500]))
            )
        }
        starts = [fact.row.start for fact in facts]
        longest = max((fact.row.end - fact.row.start for fact in facts), default=0)
        found = []
        for number, key in enumerate(ids):
            row = rows[key]
            hops = {tuple(triple) for triple in row.triples}
            own: list[int] = []
            for reference in row.references:
                if reference["document_id"] != document.document_id:
                    continue
                first = bisect_left(starts, reference["start"] - longest)
                last = bisect_left(starts, reference["end"])
                near = [at for at in range(first, last) if facts[at].row.end > reference["start"]]
                proving = [at for at in near if _triple(facts[at].row) in hops]
                own += proving or near
            own = list(dict.fromkeys(own))
            for at in own:
                facts[at].questions.append(number)
            others = dict.fromkeys(r["document_id"] for r in row.references)
            found.append(
                _Asked(
                    number,
                    row,
                    own,
                    [(o, self.titles.get(o, o)) for o in others if o != document.document_id],
                )
            )
        return found

    def _chunks(
        self, document: Document, facts: list[_Fact], asked: list[_Asked]
    ) -> tuple[dict[str, list[_Piece]], int]:
        columns = (Chunk.chunk_id, Chunk.method, Chunk.position, Chunk.start, Chunk.end, Chunk.text)
        query = (
            select(*columns)
            .where(
                Chunk.document_id == document.document_id, Chunk.leaf, Chunk.version_id == document.version_id
            )
            .order_by(Chunk.method, Chunk.start, Chunk.position)
        )
        starts = [fact.row.start for fact in facts]
        longest = max((fact.row.end - fact.row.start for fact in facts), default=0)
        found: dict[str, list[_Piece]] = defaultdict(list)
        left = 0
        for key, method, position, start, end, text in self.session.execute(query):
            pieces = found[method]
            if len(pieces) >= _MOST_CHUNKS:
                left += 1
                continue
            first, last = bisect_left(starts, start - longest), bisect_left(starts, end)
            own = [at for at in range(first, last) if facts[at].row.end > start]
            questions = sorted({number for at in own for number in facts[at].questions})
            for at in own:
                facts[at].chunks.append((method, len(pieces)))
            pieces.append(_Piece(key, method, position, start, end, shortened(text, 90), own, questions))
        return dict(found), left

    def _into_search(
        self,
        document: Document,
        facts: list[_Fact],
        asked: list[_Asked],
        chunks: Mapping[str, list[_Piece]],
    ) -> None:
        place = document_page(document.document_id)
        self.search.add("d", document.document_id, place, f"{document.title} {document.identity}")
        if document.page_id != document.document_id:
            self.search.add("p", document.page_id, place, document.url)
        for fact in facts:
            row = fact.row
            names = " ".join(name for name in (*fact.subject, row.subject_key) if name)
            said = f"{names} {fact.relation[0]} {fact.relation[1]} {row.object}"
            self.search.add("f", row.assertion_id, place, f"{said} {row.quote}")
        for entry in asked:
            self.search.add("q", entry.row.question_id, place, f"{entry.row.question} → {entry.row.answer}")
        for pieces in chunks.values():
            for piece in pieces:
                self.search.add("c", piece.id, place, piece.method)


def _triple(row: Assertion) -> tuple[str, str, str]:
    return row.subject_key, row.relation, row.object_key


def _both(code: object) -> str:
    """A code's names in both languages, once where they are the same."""
    zh, en = WORDS["zh"].term(code), WORDS["en"].term(code)
    return zh if zh == en else f"{zh} · {en}"


class _Search:
    """What the index can be searched for: kind, id, file and words; up to a bound, the rest is counted."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.rows: list[tuple[str, str, int, str]] = []
        self.left = 0
        self._seen: set[tuple[str, str]] = set()

    def add(self, kind: str, key: str, file: str, said: str) -> None:
        """One thing that can be found; a question of several documents is found in the first."""
        if (kind, key) in self._seen:
            return
        if len(self.rows) >= _MOST_SEARCHED:
            self.left += 1
            return
        self._seen.add((kind, key))
        at = self.files.setdefault(file, len(self.files))
        self.rows.append((kind, key, at, shortened(" ".join(said.split()), _SAID)))

    def script(self) -> Markup:
        """The rows as JSON inside the page: no character of it can end the element it stands in."""
        text = json.dumps(
            {"files": list(self.files), "rows": self.rows}, ensure_ascii=False, separators=(",", ":")
        )
        for mark in "<>&\u2028\u2029":
            text = text.replace(mark, f"\\u{ord(mark):04x}")
        return Markup(text.encode("utf-8", "replace").decode())  # noqa: S704  escaped above

"""The debates of QChunker: beside the report a page per document, with who said what and why one partition won.

Shown is the record that the chunker stored with the partition, joined with the
document's text: the outline (agent 1), the candidates with their borders and
scores (agent 2), what the reviewer found and what was discarded (agent 3), what the
completer accepted and wrote (agent 4).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Indel
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Document, Partition
from corpus.errors import TerminalError
from corpus.ids import canonical_json, digest
from flows.report import folders
from flows.report.explorer import environment, page_frame
from flows.report.figures import borders_picture

DEBATES_VERSION = "1"
METHOD = "qchunker"
_MOST_PAGES = 5000
_BATCH = 50
_PARTS: dict[str, dict[str, Any]] = {
    "outline": {"source": "", "questions": [], "refused": []},
    "segmenter": {"candidates": [], "selected": None, "why": "", "refused": []},
    "reviewer": {"chunks": [], "counts": {}},
}
_ENTRY: dict[str, Any] = {"source": "", "discarded": [], "review_refused": "", "kept": ""}
_CANDIDATE: dict[str, Any] = {"origin": "", "k": None, "li": None, "sd": None, "z_li": None, "z_sd": None, "z": None,
                              "why_not": "", "heads_not_found": [], "heads_found_fuzzily": 0}  # fmt: skip
_WORDS = re.compile(r"[㐀-鿿]|\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class Debates:
    """What was written: the folder, its pages, and the documents that were debated."""

    folder: Path
    pages: int
    documents: int
    bytes: int

    @property
    def link(self) -> str:
        """Address of the index from the report's folder."""
        return f"{self.folder.name}/index.html"


@dataclass(frozen=True)
class Listed:
    """A row of the index."""

    file: str
    title: str
    address: str
    language: str
    sources: tuple[str, ...]
    candidates: int
    chunks: int
    found: int
    discarded: int
    completed: int


def write_debates(catalogue: Catalogue, report: Path) -> Debates:
    """Write ``<report>-debates/`` beside a report file, whole or not at all.

    A folder whose content would be the same is left alone. Raises TerminalError
    where it cannot be written or holds files that no report wrote.
    """
    folder = report.with_name(f"{report.stem}-debates")
    with catalogue.reading() as session:
        mark = _fingerprint(session, report.name)
        figures = folders.known(folder, mark)
        if figures is None:
            try:
                figures = folders.write(folder, mark, lambda fresh: _fill(session, fresh, report.name))
            except OSError as error:
                raise TerminalError(
                    f"debates {folder} cannot be written: {error.strerror or error}", reason="disk"
                ) from error
    return Debates(folder.resolve(), figures["pages"], figures["documents"], figures["bytes"])


def _debated(*columns: Any) -> Select[Any]:
    return (
        select(*columns)
        .join(Document, Document.document_id == Partition.document_id)
        .where(
            Partition.method == METHOD,
            Document.state == "kept",
            Document.version_id == Partition.version_id,
        )
    )


def _fingerprint(session: Session, report: str) -> str:
    state = hashlib.sha256(f"{DEBATES_VERSION} {report}".encode())
    query = _debated(Partition.partition_id, Document.title, Document.url, Partition.record)
    rows = session.execute(query.order_by(Partition.partition_id).execution_options(yield_per=200))
    for partition, title, url, record in rows:
        state.update(canonical_json([partition, title, url, record]).encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def _fill(session: Session, folder: Path, report: str) -> dict[str, int]:
    templates = environment()
    shared = {"report": report, **page_frame(templates, "explorer.css", "debate.css")}
    ids = list(
        session.scalars(_debated(Partition.partition_id).order_by(Document.title, Partition.partition_id))
    )
    rows: list[Listed] = []
    size = 0
    for at in range(0, min(len(ids), _MOST_PAGES), _BATCH):
        for partition in _ordered(session, ids[at : min(at + _BATCH, _MOST_PAGES)]):
            document = session.get_one(Document, partition.document_id)
            chunks = list(
                session.scalars(
                    select(Chunk)
                    .where(Chunk.partition_id == partition.partition_id, Chunk.leaf)
                    .order_by(Chunk.position)
                )
            )
            page = _page(document, partition, chunks)
            rows.append(page["row"])
            html = templates.get_template("debate.html.j2").render(**page, **shared)
            size += folders.put(folder / page["row"].file, html)
        session.expunge_all()
    index = templates.get_template("debates.html.j2").render(rows=rows, total=len(ids), **shared)
    size += folders.put(folder / "index.html", index)
    return {"pages": len(rows), "documents": len(ids), "bytes": size}


def _ordered(session: Session, ids: Sequence[str]) -> Iterator[Partition]:
    found = {
        row.partition_id: row
        for row in session.scalars(select(Partition).where(Partition.partition_id.in_(ids)))
    }
    return (found[key] for key in ids)


def _page(document: Document, partition: Partition, chunks: Sequence[Chunk]) -> dict[str, Any]:
    record = partition.record or {}
    outline, segmenter, reviewer = (_part(record, name) for name in _PARTS)
    entries = {entry["chunk"]: entry for entry in reviewer["chunks"] if "chunk" in entry}
    told = [
        _told(document.text, chunk, number, entries.get(number, {})) for number, chunk in enumerate(chunks)
    ]
    candidates = [{**_CANDIDATE, **candidate} for candidate in segmenter["candidates"]]
    segmenter["candidates"] = candidates
    sources = {outline.get("source", "")} | {entry.get("source", "") for entry in entries.values()}
    sources |= {candidate["origin"].partition(":")[0].partition(",")[0] for candidate in candidates}
    row = Listed(
        file=f"d-{digest('debate page', document.document_id)[:20]}.html",
        title=document.title or document.identity,
        address=document.url or document.identity,
        language=document.language,
        sources=tuple(sorted(sources - {""})),
        candidates=len(candidates),
        chunks=len(chunks),
        found=sum(len(entry.get("items", ())) for entry in entries.values()),
        discarded=sum(len(entry.get("discarded", ())) for entry in entries.values()),
        completed=sum(chunk.completed is not None for chunk in chunks),
    )
    drawn = [
        (candidate["origin"], candidate["cuts"], number == segmenter.get("selected"))
        for number, candidate in enumerate(candidates)
        if "cuts" in candidate
    ]
    return {
        "row": row,
        "document": document,
        "outline": outline,
        "segmenter": segmenter,
        "reviewer": reviewer,
        "chunks": told,
        "scores": partition.scores or {},
        "picture": borders_picture(drawn, len(document.text)) if drawn else None,
    }


def _part(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of the record, whole; a run without completion has no reviewer, a document without text nothing."""
    part = record.get(name)
    return {**_PARTS[name], **(part if isinstance(part, Mapping) else {})}


def _told(text: str, chunk: Chunk, number: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk with what was said of it; items carry the document's words that state them."""
    accepted = set(entry.get("accepted", ()))
    return {
        "number": number,
        "text": chunk.text,
        "start": chunk.start,
        "end": chunk.end,
        "question": chunk.outline_question,
        "entry": {**_ENTRY, **entry},
        "items": [
            {**item, "quote": text[item["start"] : item["end"]], "accepted": place in accepted}
            for place, item in enumerate(entry.get("items", ()))
        ],
        "completed": None if chunk.completed is None else list(added_parts(chunk.text, chunk.completed)),
    }


def added_parts(before: str, after: str) -> Iterator[tuple[str, str]]:
    """``after`` in pieces of ("same" | "added", text), and ("gone", text) for what ``before`` alone has.

    Words of letters, and characters of Chinese, are compared.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    for step in Indel.opcodes(old, new):
        if step.tag == "equal":
            yield "same", "".join(new[step.dest_start : step.dest_end])
        elif step.tag == "delete":
            yield "gone", "".join(old[step.src_start : step.src_end])
        else:
            yield "added", "".join(new[step.dest_start : step.dest_end])

"""Export of the data set: documents, questions, triples, and a card. Same snapshot, same bytes.

No run ids, clock times or absolute paths; everything ordered by id. Addresses
are document identities, which do not change with a port.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Entity, LedgerRow, Question
from corpus.errors import SettingsError
from corpus.sections import SdsSection
from kg.projection import graph_documents, kept_assertions

_KINDS = ("single_hop", "multi_hop", "aggregative", "boolean")


@dataclass
class Export:
    """What was written: rows per file and their SHA-256."""

    rows: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)


_SUMS = "checksums.txt"
_SETS = ("corpus", "qa", "eval", "triples")
_FILES = {
    *(f"{name}.{kind}" for name in _SETS for kind in ("jsonl", "parquet")),
    "alpaca.jsonl",
    "sharegpt.jsonl",
    "README.md",
}


def export(catalogue: Catalogue, out_dir: Path) -> Export:
    """Write the data set into a directory (created where missing; an earlier export there is replaced).

    Files: corpus, qa, eval, triples as JSON lines and Parquet; alpaca.jsonl and
    sharegpt.jsonl (training side only); README.md (card); checksums.txt.
    Raises SettingsError where the directory cannot be written, or holds files
    of these names that no export wrote.
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        _claim(out_dir)
        with catalogue.reading() as session:
            return _export(session, out_dir)
    except OSError as error:
        raise SettingsError(
            f"data set directory {out_dir} cannot be written: {error.strerror or error}"
        ) from error


def _claim(out_dir: Path) -> None:
    """Mark the directory as an export's (also one that is killed half-way) or refuse somebody else's files."""
    marker = out_dir / _SUMS
    if marker.is_file():
        return
    foreign = sorted(path.name for path in out_dir.iterdir() if path.name in _FILES)
    if foreign:
        raise SettingsError(
            f"{out_dir} holds {', '.join(foreign)}, which no export wrote; choose another directory"
        )
    marker.write_bytes(b"")


def _export(session: Session, out_dir: Path) -> Export:
    done = Export()
    questions = list(questions_of(session))
    sets: dict[str, list[dict[str, Any]]] = {
        "corpus": list(documents_of(session)),
        "qa": questions,
        "eval": [row for row in questions if row["curated"]],
        "triples": list(triples_of(session)),
    }
    for name, rows in sets.items():
        _write(out_dir / f"{name}.jsonl", _lines(rows), done, len(rows))
        _write_parquet(out_dir / f"{name}.parquet", rows, done)
    training = [row for row in questions if row["split"] == "train"]
    _write(out_dir / "alpaca.jsonl", _lines(map(_alpaca, training)), done, len(training))
    _write(out_dir / "sharegpt.jsonl", _lines(map(_sharegpt, training)), done, len(training))
    card = _card(session, sets, len(training), done)
    _write(out_dir / "README.md", card.encode(), done, 1)
    sums = "".join(f"{checksum}  {name}\n" for name, checksum in sorted(done.checksums.items()))
    _write(out_dir / _SUMS, sums.encode(), done, len(done.checksums))
    return done


# --- rows -----------------------------------------------------------------------


def documents_of(session: Session) -> Iterator[dict[str, Any]]:
    """Kept documents with text, ordered by id."""
    for row in session.scalars(
        select(Document).where(Document.state == "kept", Document.text != "").order_by(Document.document_id)
    ):
        yield {
            "document_id": row.document_id,
            "version_id": row.version_id,
            "title": row.title,
            "url": row.identity,
            "source": row.source,
            "kind": row.kind,
            "language": row.language,
            "licence": row.licence,
            "score": row.score,
            "sections": row.sections,
            "text": row.text,
        }


def questions_of(session: Session) -> Iterator[dict[str, Any]]:
    """Kept questions in the paper's form (question, answer, reference), the rest beside; ordered by id."""
    for row in session.scalars(
        select(Question).where(Question.state == "kept").order_by(Question.question_id)
    ):
        yield {
            "id": row.question_id,
            "question": row.question,
            "answer": row.answer,
            "reference": [reference["quote"] for reference in row.references],
            "kind": row.kind,
            "language": row.language,
            "section": row.section,
            "split": row.split,
            "curated": row.curated,
            "answer_set": row.answer_set,
            "references": row.references,
            "triples": row.triples,
            "proof": row.proof,
            "metapath": row.metapath,
            "hops": row.hops,
            "difficulty": row.difficulty,
            "template": row.template,
            "wording": row.wording,
            "substances": row.substances,
            "snapshot_id": row.snapshot_id,
        }


def triples_of(session: Session) -> Iterator[dict[str, Any]]:
    """Kept assertions with evidence, negative ones included, ordered by id."""
    names = {row.key: row.names for row in session.scalars(select(Entity))}
    for row in kept_assertions(session, graph_documents(session)):
        yield {
            "id": row.assertion_id,
            "subject": row.subject,
            "subject_key": row.subject_key,
            "subject_names": names.get(row.subject_key, {}),
            "relation": row.relation,
            "object": row.object,
            "object_label": row.object_label,
            "object_key": row.object_key,
            "properties": row.properties,
            "value": row.value,
            "polarity": row.polarity,
            "modality": row.modality,
            "conditions": row.conditions,
            "document_id": row.document_id,
            "version_id": row.version_id,
            "section": row.section,
            "start": row.start,
            "end": row.end,
            "quote": row.quote,
            "page_quote": row.page_quote,
            "language": row.language,
            "extractor": row.extractor,
            "confidence": row.confidence,
        }


def _alpaca(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"instruction": row["question"], "input": "", "output": row["answer"], "id": row["id"]}


def _sharegpt(row: Mapping[str, Any]) -> dict[str, Any]:
    turns = [{"from": "human", "value": row["question"]}, {"from": "gpt", "value": row["answer"]}]
    return {"id": row["id"], "conversations": turns}


# --- files ----------------------------------------------------------------------


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(", ", ": ")) + "\n" for row in rows)
    return text.encode("utf-8", "surrogatepass")


def _write(path: Path, data: bytes, done: Export, rows: int) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)
    done.rows[path.name] = rows
    done.checksums[path.name] = hashlib.sha256(data).hexdigest()


def _write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], done: Export) -> None:
    """Scalars as columns, nested values as JSON text, so that the columns do not depend on the data."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(rows[0]) if rows else []
    columns = {name: pa.array([_cell(row[name]) for row in rows], _type(rows, name, pa)) for name in names}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    _write(path, sink.getvalue().to_pybytes(), done, len(rows))


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value


def _type(rows: Sequence[Mapping[str, Any]], name: str, pa: Any) -> Any:
    kinds = {type(row[name]) for row in rows if row[name] is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


# --- card -----------------------------------------------------------------------


def _card(
    session: Session, sets: Mapping[str, Sequence[Mapping[str, Any]]], training: int, done: Export
) -> str:
    questions = sets["qa"]
    snapshots = sorted({row["snapshot_id"] for row in questions})
    parts = [
        "# HChemSafety data set",
        "Questions on chemical safety with proofs and evidence, the documents they rest on, and the statements "
        "taken from them. Every answer is what a graph query returned; every reference is a span of a document.",
        f"Graph snapshot: `{', '.join(snapshots) or 'none'}`",
        "## Files\n\n" + _table(("file", "rows", "sha256"), [
            (name, str(done.rows[name]), f"`{done.checksums[name]}`") for name in sorted(done.rows)
        ]),
        "`qa.jsonl` holds all questions with their `split`; groups of substances (aliases, hydrates, salts, solutions) "
        "are on one side only. `eval.jsonl` is the curated part of the evaluation side. `alpaca.jsonl` and "
        f"`sharegpt.jsonl` hold the {training} questions of the training side.",
        "## Questions\n\n" + _question_tables(questions),
        "## Boolean balance\n\n" + _balance(questions),
        "## Not exported\n\n" + _dropped(session),
        "## Documents and licences\n\n" + _sources(sets["corpus"]),
        "## Fields\n\nAs the paper asks: `question`, `answer`, `reference` (the quoted evidence). Beside them: `proof` "
        "(Cypher and parameters that return exactly `answer_set`), `references` (document, version, span in code "
        "points of the refined text), `triples`, `metapath`, `hops`, `difficulty` (measured features), `section` "
        "(1-16 of a safety data sheet), `substances`.\n\n"
        "Absence is never evidence here: a \"no\" rests on another value of a one-valued identifier, an explicit "
        "statement, a list its source gives as complete, or a comparison with a clear margin.",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _question_tables(questions: Sequence[Mapping[str, Any]]) -> str:
    def count(**wanted: Any) -> int:
        return sum(all(row[name] == value for name, value in wanted.items()) for row in questions)

    kinds = [
        (
            kind,
            *(str(count(kind=kind, language=language)) for language in ("zh", "en")),
            *(str(count(kind=kind, split=split)) for split in ("train", "eval")),
            str(count(kind=kind, curated=True)),
        )
        for kind in _KINDS
    ]
    sections = Counter(row["section"] for row in questions)
    hops = Counter(row["hops"] for row in questions)
    return "\n\n".join(
        [
            _table(("kind", "zh", "en", "train", "eval", "curated"), kinds),
            _table(
                ("section", "questions"),
                [
                    (f"{n} {SdsSection(n).title('en')}" if n else "not in a section", str(sections[n]))
                    for n in sorted(sections, key=lambda n: n or 0)
                ],
            ),
            _table(("hops", "questions"), [(str(n), str(hops[n])) for n in sorted(hops)]),
        ]
    )


def _balance(questions: Sequence[Mapping[str, Any]]) -> str:
    counts: Counter[tuple[str, str]] = Counter()
    for row in questions:
        if row["kind"] == "boolean":
            matter = f"{row['template'].split('/')[0]} {row['metapath']}"
            counts[matter, row["answer_set"][0]["key"]] += 1
    matters = sorted({matter for matter, _ in counts})
    rows = [(f"`{matter}`", str(counts[matter, "yes"]), str(counts[matter, "no"])) for matter in matters]
    return _table(("asked", "yes", "no"), rows)


def _dropped(session: Session) -> str:
    rows: Counter[str] = Counter()
    for (reason,) in session.execute(select(Question.reason).where(Question.state == "rejected")):
        rows[f"rejected: {reason}"] += 1
    ledger = session.scalar(select(LedgerRow).where(LedgerRow.step == "questions.generate"))
    for name, n in (ledger.counts if ledger is not None else {}).items():
        if name.startswith("not made: "):
            rows[name] += n
    return _table(("reason", "candidates"), [(name, str(n)) for name, n in sorted(rows.items())])


def _sources(documents: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter((row["source"], row["language"], row["licence"] or "not stated") for row in documents)
    return _table(
        ("source", "language", "licence", "documents"),
        [(source, language, licence, str(n)) for (source, language, licence), n in sorted(counts.items())],
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
        for line in lines
    )

"""Export of the data set: documents, questions, triples, and a card. Same snapshot, same bytes.

No run ids, clock times or absolute paths; everything ordered by id and written
as a stream. Addresses are document identities, which do not change with a port.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, Entity, LedgerRow, Question
from corpus.errors import SettingsError
from corpus.ids import json_line
from corpus.sections import SdsSection
from kg.qa.difficulty import LEVELS
from kg.qa.records import KINDS

_STREAMED = 500  # rows fetched from the catalogue at a time
_ROWS = 2000  # rows of a Parquet row group


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
        marker.write_bytes(b"")  # until the new files are whole
        return
    foreign = sorted(path.name for path in out_dir.iterdir() if path.name in _FILES)
    if foreign:
        raise SettingsError(
            f"{out_dir} holds {', '.join(foreign)}, which no export wrote; choose another directory"
        )
    marker.write_bytes(b"")


def differences(out_dir: Path) -> list[str]:
    """What of an export is not as it was written. Raises SettingsError where there is no whole export."""
    try:
        sums = (out_dir / _SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"{out_dir} holds no export ({_SUMS} is missing)") from error
    if not sums:
        raise SettingsError(f"the export in {out_dir} was not finished; run `hchem dataset export` again")
    found = []
    for line in sums:
        checksum, _, name = line.partition("  ")
        path = out_dir / name
        if name not in _FILES or not path.is_file():
            found.append(f"{name}: missing")
            continue
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                found.append(f"{name}: not as it was written")
    return found


def _export(session: Session, out_dir: Path) -> Export:
    done = Export()
    tally = _Tally()
    _write_set(out_dir, "corpus", documents_of(session), done, tally.document)
    _write_set(out_dir, "qa", questions_of(session), done, tally.question)
    _write_set(out_dir, "eval", questions_of(session, curated=True), done)
    _write_set(out_dir, "triples", triples_of(session), done, tally.triple)
    for name, form in (("alpaca", _alpaca), ("sharegpt", _sharegpt)):
        with _Lines(out_dir / f"{name}.jsonl", done) as lines:
            for row in questions_of(session, split="train"):
                lines.add(form(row))
    card = _card(session, tally, done)
    _write(out_dir / "README.md", card.encode("utf-8", "replace"), done, 1)
    sums = "".join(f"{checksum}  {name}\n" for name, checksum in sorted(done.checksums.items()))
    _write(out_dir / _SUMS, sums.encode(), done, len(done.checksums))
    return done


# --- rows -----------------------------------------------------------------------


def documents_of(session: Session) -> Iterator[dict[str, Any]]:
    """Kept documents with text, ordered by id."""
    query = select(Document).where(Document.state == "kept", Document.text != "")
    for row in session.scalars(query.order_by(Document.document_id).execution_options(yield_per=_STREAMED)):
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


def questions_of(session: Session, *, curated: bool = False, split: str = "") -> Iterator[dict[str, Any]]:
    """Kept questions in the paper's form (question, answer, reference), the rest beside; ordered by id."""
    query = select(Question).where(Question.state == "kept")
    if curated:
        query = query.where(Question.curated.is_(True))
    if split:
        query = query.where(Question.split == split)
    for row in session.scalars(query.order_by(Question.question_id).execution_options(yield_per=_STREAMED)):
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
    names = {row.key: row.names for row in session.execute(select(Entity.key, Entity.names))}
    query = (
        select(Assertion)
        .join(Document, Document.document_id == Assertion.document_id)
        .where(
            Assertion.state == "kept",
            Document.state == "kept",
            Document.version_id == Assertion.version_id,
        )
        .order_by(Assertion.assertion_id)
    )
    for row in session.scalars(query.execution_options(yield_per=_STREAMED)):
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


_INTEGERS = frozenset({"section", "hops", "start", "end"})
_NUMBERS = frozenset({"score", "confidence"})
_FLAGS = frozenset({"curated"})
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "corpus": (
        "document_id", "version_id", "title", "url", "source", "kind", "language", "licence", "score", "sections", "text",
    ),
    "qa": (
        "id", "question", "answer", "reference", "kind", "language", "section", "split", "curated", "answer_set",
        "references", "triples", "proof", "metapath", "hops", "difficulty", "template", "wording", "substances",
        "snapshot_id",
    ),
    "triples": (
        "id", "subject", "subject_key", "subject_names", "relation", "object", "object_label", "object_key",
        "properties", "value", "polarity", "modality", "conditions", "document_id", "version_id", "section", "start",
        "end", "quote", "page_quote", "language", "extractor", "confidence",
    ),
}  # fmt: skip


class _Lines:
    """A file of JSON lines, written as a stream; in place when it is whole."""

    def __init__(self, path: Path, done: Export) -> None:
        self.path, self.done = path, done
        self.temporary = path.with_name(f".{path.name}.tmp")
        self.rows, self.state = 0, hashlib.sha256()

    def __enter__(self) -> _Lines:
        self.file = self.temporary.open("wb")
        return self

    def add(self, row: Mapping[str, Any]) -> None:
        """One row as one line."""
        data = json_line(row).encode("utf-8", "replace") + b"\n"
        self.file.write(data)
        self.state.update(data)
        self.rows += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.file.close()
        if kind is not None:
            self.temporary.unlink(missing_ok=True)
            return
        os.replace(self.temporary, self.path)
        self.done.rows[self.path.name] = self.rows
        self.done.checksums[self.path.name] = self.state.hexdigest()


def _write(path: Path, data: bytes, done: Export, rows: int) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)
    done.rows[path.name] = rows
    done.checksums[path.name] = hashlib.sha256(data).hexdigest()


def _write_set(
    out_dir: Path,
    name: str,
    rows: Iterable[dict[str, Any]],
    done: Export,
    seen: Callable[[Mapping[str, Any]], None] = lambda row: None,
) -> None:
    """One set as JSON lines and Parquet, a bounded number of rows in memory at a time.

    In Parquet scalars are columns and nested values JSON text; the columns are
    those of the set, whatever the data.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _COLUMNS["qa" if name == "eval" else name]
    schema = pa.schema([(column, _type(column, pa)) for column in columns])
    target = out_dir / f"{name}.parquet"
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        with (
            _Lines(out_dir / f"{name}.jsonl", done) as lines,
            pq.ParquetWriter(temporary, schema, compression="zstd") as table,
        ):
            iterator = iter(rows)
            while part := list(islice(iterator, _ROWS)):
                for row in part:
                    lines.add(row)
                    seen(row)
                cells = {column: [_cell(row[column]) for row in part] for column in columns}
                table.write_table(pa.table(cells, schema=schema))
    except BaseException:  # an interrupt too must leave no half file
        temporary.unlink(missing_ok=True)
        raise
    os.replace(temporary, target)
    with target.open("rb") as file:
        done.checksums[target.name] = hashlib.file_digest(file, "sha256").hexdigest()
    done.rows[target.name] = lines.rows


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _type(column: str, pa: Any) -> Any:
    if column in _FLAGS:
        return pa.bool_()
    if column in _INTEGERS:
        return pa.int64()
    return pa.float64() if column in _NUMBERS else pa.string()


# --- card -----------------------------------------------------------------------


@dataclass
class _Tally:
    """What the card counts, gathered while the sets are written."""

    questions: Counter[tuple[str, ...]] = field(default_factory=Counter)
    sections: Counter[tuple[int, str]] = field(default_factory=Counter)
    hops: Counter[int] = field(default_factory=Counter)
    levels: Counter[tuple[str, str]] = field(default_factory=Counter)
    booleans: Counter[tuple[str, str]] = field(default_factory=Counter)
    substances: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    snapshots: set[str] = field(default_factory=set)
    sources: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    relations: Counter[tuple[str, str]] = field(default_factory=Counter)

    def question(self, row: Mapping[str, Any]) -> None:
        """Count one question."""
        part = "curated" if row["curated"] else ""
        self.questions.update(
            {(row["kind"], row["language"]), (row["kind"], row["split"]), (row["kind"], part)}
        )
        self.sections[row["section"] or 0, row["kind"]] += 1
        self.hops[row["hops"]] += 1
        self.levels[row["difficulty"].get("level", ""), row["kind"]] += 1
        self.substances[row["split"]].update(row["substances"])
        self.snapshots.add(row["snapshot_id"])
        if row["kind"] == "boolean":
            matter = f"{row['template'].split('/')[0]} {row['metapath']}"
            self.booleans[matter, row["answer_set"][0]["key"]] += 1

    def document(self, row: Mapping[str, Any]) -> None:
        """Count one document."""
        self.sources[row["source"], row["language"], row["licence"] or "not stated"] += 1

    def triple(self, row: Mapping[str, Any]) -> None:
        """Count one statement."""
        self.relations[row["relation"], row["polarity"]] += 1


def _card(session: Session, tally: _Tally, done: Export) -> str:
    parts = [
        _HEAD.format(size=_size(done.rows["qa.jsonl"])),
        "# HChemSafety data set",
        "Questions on chemical safety with proofs and evidence, the documents they rest on, and the statements "
        "taken from them. Every answer is what a graph query returned; every reference is a span of a document.",
        f"Graph snapshot: `{', '.join(sorted(tally.snapshots)) or 'none'}`",
        "## Files\n\n" + _table(("file", "rows", "sha256"), [
            (name, str(done.rows[name]), f"`{done.checksums[name]}`") for name in sorted(done.rows)
        ]),
        "`qa.jsonl` holds all questions with their `split`; groups of substances (aliases, hydrates, salts, solutions) "
        "are on one side only. `eval.jsonl` is the curated part of the evaluation side: a bounded number per kind, "
        "section, language and difficulty, with yes and no equally often. `alpaca.jsonl` and "
        f"`sharegpt.jsonl` hold the {done.rows['alpaca.jsonl']} questions of the training side.",
        "## Questions\n\n" + _question_tables(tally),
        "## Boolean balance\n\n" + _balance(tally),
        "## Not exported\n\n" + _dropped(session),
        "## Statements\n\n" + _table(("relation", "positive", "negative"), [
            (name, str(tally.relations[name, "positive"]), str(tally.relations[name, "negative"]))
            for name in sorted({name for name, _ in tally.relations})
        ]),
        "## Documents and licences\n\n" + _table(("source", "language", "licence", "documents"), [
            (*key, str(n)) for key, n in sorted(tally.sources.items())
        ]),
        "## Fields\n\nAs the paper asks: `question`, `answer`, `reference` (the quoted evidence). Beside them: `proof` "
        "(Cypher and parameters that return exactly `answer_set`), `references` (document, version, span in code "
        "points of the refined text), `triples`, `metapath`, `hops`, `difficulty` (measured features and the level made "
        "of them), `section` (1-16 of a safety data sheet), `substances`.\n\n"
        "Absence is never evidence here: a \"no\" rests on another value of a one-valued identifier, an explicit "
        "statement, a list its source gives as complete, or a comparison with a clear margin.",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


_HEAD = """---
language:
- zh
- en
task_categories:
- question-answering
size_categories:
- {size}
configs:
- config_name: qa
  data_files: qa.parquet
- config_name: eval
  data_files: eval.parquet
- config_name: corpus
  data_files: corpus.parquet
- config_name: triples
  data_files: triples.parquet
---"""


def _size(rows: int) -> str:
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
    return next((name for bound, name in bounds if rows < bound), "100K<n<1M")


def _question_tables(tally: _Tally) -> str:
    kinds = [
        (kind, *(str(tally.questions[kind, part]) for part in ("zh", "en", "train", "eval", "curated")))
        for kind in KINDS
    ]
    sections = [
        (
            f"{n} {SdsSection(n).title('en')}" if n else "not in a section",
            *(str(tally.sections[n, kind]) for kind in KINDS),
        )
        for n in sorted({n for n, _ in tally.sections})
    ]
    levels = [(name, *(str(tally.levels[name, kind]) for kind in KINDS)) for name in LEVELS]
    sides = [(side, str(len(found))) for side, found in sorted(tally.substances.items())]
    return "\n\n".join(
        [
            _table(("kind", "zh", "en", "train", "eval", "curated"), kinds),
            _table(("section", *KINDS), sections),
            _table(("difficulty", *KINDS), levels),
            _table(("hops", "questions"), [(str(n), str(tally.hops[n])) for n in sorted(tally.hops)]),
            _table(("side", "substances"), sides),
        ]
    )


def _balance(tally: _Tally) -> str:
    matters = sorted({matter for matter, _ in tally.booleans})
    rows = [(m, str(tally.booleans[m, "yes"]), str(tally.booleans[m, "no"])) for m in matters]
    return _table(("asked", "yes", "no"), rows)


def _dropped(session: Session) -> str:
    rows: Counter[str] = Counter()
    query = (
        select(Question.reason, func.count()).where(Question.state == "rejected").group_by(Question.reason)
    )
    for reason, n in session.execute(query):
        rows[f"rejected: {reason}"] += n
    ledger = session.scalar(select(LedgerRow).where(LedgerRow.step == "questions.generate"))
    for name, n in (ledger.counts if ledger is not None else {}).items():
        if name.startswith("not made: "):
            rows[name] += n
    return _table(("reason", "candidates"), [(name, str(n)) for name, n in sorted(rows.items())])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_text(cell) for cell in line) + " |" for line in lines)


def _text(cell: str) -> str:
    """A cell of a table: what a page calls itself is text there, no markup and no further cell."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in cell).split())
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")

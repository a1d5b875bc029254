"""The training set: examples of all documents, chosen, split by document and written with a data card.

Examples are made document by document and kept in a file beside the output, so
that a run that was stopped goes on where it was. The same catalogue, options and
seed give the same bytes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from chunking.segment import Segmenter, language_of
from chunking.settings import ChunkSettings
from chunking.training import debates, levels
from chunking.training.card import card
from chunking.training.debates import StoredDebate
from chunking.training.examples import SKILLS, TASKS, Example, Made, Task, record_of
from chunking.training.levels import LevelsDocument, LevelsOptions
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Document, Partition
from corpus.errors import SettingsError, TerminalError
from corpus.ids import canonical_json, digest

if TYPE_CHECKING:
    from models import Models

SPLITS = ("train", "validation")
_VERSION = "1"  # raised when examples are made otherwise
_PROGRESS = ".progress.jsonl"
CHECKSUMS = "checksums.txt"
_FILES = {*(f"{task}.{split}.jsonl" for task in TASKS for split in SPLITS), "README.md", "card.json"}
# characters that some readers take for the end of a line
_LINE_ENDS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\u0085\u2028\u2029"})


@dataclass(frozen=True)
class TrainingOptions:
    """What is built. ``target``: records a task, over both splits; ``held_out``: share of documents for validation."""

    tasks: tuple[Task, ...] = TASKS
    target: int = 45_000
    seed: int = 0
    held_out: float = 0.05
    allow_offline: bool = False
    levels: LevelsOptions = field(default_factory=LevelsOptions)


@dataclass
class TrainingReport:
    """What was written: records by (task, split), and everything that the card counts."""

    options: TrainingOptions
    counter: str
    records: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_language: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    by_origin: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_variant: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_answer: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    longest: dict[str, int] = field(default_factory=dict)
    documents: dict[str, set[str]] = field(default_factory=dict)
    sources: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    drops: Counter[tuple[str, str]] = field(default_factory=Counter)
    checksums: dict[str, str] = field(default_factory=dict)

    def count(self, record: Mapping[str, Any], split: str) -> None:
        """Count a record that is written."""
        task = str(record["task"])
        self.records[task, split] += 1
        self.by_language[task, split, record["language"]] += 1
        self.by_origin[task, record["made_by"]] += 1
        self.by_variant[task, record["variant"]] += 1
        if task == "discriminate":
            self.by_answer[split, record["messages"][-1]["content"]] += 1
        self.tokens[task] += record["tokens"]
        self.longest[task] = max(self.longest.get(task, 0), record["tokens"])
        self.documents.setdefault(split, set()).add(record["document_id"])

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for ``--json`` and ``card.json``."""
        return {
            "options": asdict(self.options),
            "token_counter": self.counter,
            "skills": {task: _skill(task) for task in self.options.tasks},
            "records": [[*key, n] for key, n in sorted(self.records.items())],
            "languages": [[*key, n] for key, n in sorted(self.by_language.items())],
            "made_by": [[*key, n] for key, n in sorted(self.by_origin.items())],
            "variants": [[*key, n] for key, n in sorted(self.by_variant.items())],
            "verdicts": [[*key, n] for key, n in sorted(self.by_answer.items())],
            "tokens": dict(sorted(self.tokens.items())),
            "longest": dict(sorted(self.longest.items())),
            "documents": {split: len(found) for split, found in sorted(self.documents.items())},
            "sources": [[*key, n] for key, n in sorted(self.sources.items())],
            "left_out": [[*key, n] for key, n in sorted(self.drops.items())],
        }


@dataclass(frozen=True)
class _Source:
    """A document to make examples of: where it is, and a key that changes with everything that decides them."""

    name: str
    key: str
    document: str
    published: LevelsDocument | None = None


class TrainingBuilder:
    """Builds a training set into a directory.

    ``published``: further documents with gold levels, by the name of their data
    set. Raises SettingsError where the directory cannot be written, holds files
    of these names that no build wrote, or another build is writing it: it is a
    builder's own until :meth:`finish` or :meth:`close`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        models: Models,
        settings: ChunkSettings,
        options: TrainingOptions,
        out: Path,
        published: Mapping[str, Sequence[LevelsDocument]] | None = None,
        *,
        afresh: bool = False,
    ) -> None:
        self.catalogue, self.models, self.options, self.out = catalogue, models, options, out
        self._segmenter = Segmenter(models, settings)
        self._published = published or {}
        self._lock = threading.Lock()
        try:
            out.mkdir(parents=True, exist_ok=True)
            self._release = weakref.finalize(self, os.close, _locked(out))
            try:
                _claim(out, None if afresh else options.tasks)
                self._progress = _Progress(out / _PROGRESS, afresh=afresh)
            except BaseException:  # an interrupt too must let go of the lock
                self.close()
                raise
        except FileExistsError as error:
            raise SettingsError(f"{out} is a file; name a directory") from error
        except OSError as error:
            raise SettingsError(f"{out} cannot be written: {error.strerror or error}") from error
        self._sources = {source.name: source for source in self._plan()}
        self.taken = sum(source.key in self._progress for source in self._sources.values())

    def close(self) -> None:
        """Leave the directory to other builds. Safe to call twice; the end of the process does it too."""
        self._release()

    def pending(self) -> list[str]:
        """Names of the documents whose examples are still to be made, in order."""
        return [name for name, source in self._sources.items() if source.key not in self._progress]

    @property
    def total(self) -> int:
        """Documents in all."""
        return len(self._sources)

    def describe(self) -> dict[str, Any]:
        """What is asked for, as plain data."""
        return {
            "out": self.out.name,
            "documents": self.total,
            **json.loads(canonical_json(asdict(self.options))),
        }

    def work(self, name: str) -> int:
        """Make and keep the examples of a document; returns how many. May be called by several threads."""
        source = self._sources[name]
        made = Made()
        if source.published is not None:
            made = self._levels(source.published)
        else:
            with self.catalogue.reading() as session:
                document = session.get(Document, source.document)
                debate = _debate(session, document) if document is not None else None
            if document is None:
                raise TerminalError(f"document {source.document} is gone", reason="gone")
            if "levels" in self.options.tasks:
                made = self._levels(_with_headings(document))
            if set(self.options.tasks) - {"levels"}:
                _join(made, self._of_debate(debate))
        with self._lock:
            self._progress.put(source.key, made)
        return len(made.examples)

    def _levels(self, document: LevelsDocument) -> Made:
        return levels.examples_of(document, self.options.levels, self.models.count_tokens, self.options.seed)

    def _of_debate(self, debate: StoredDebate | None) -> Made:
        if debate is None:
            made = Made()
            made.drop("debate", "not cut by qchunker")
            return made
        made = debates.examples_of(debate, self._segmenter.table, self.models.token_counter_name)
        made.examples = [example for example in made.examples if example.task in self.options.tasks]
        wanted = {*self.options.tasks, "debate"}
        made.drops = Counter({key: n for key, n in made.drops.items() if key[0] in wanted})
        return made

    def finish(self) -> TrainingReport:
        """Choose, write, and describe; the working file is removed.

        Raises SettingsError where nothing is left to write, and where all answers
        of the wanted tasks were made by rules and that is not allowed.
        """
        try:
            return self._finish()
        finally:
            self.close()

    def _finish(self) -> TrainingReport:
        report = TrainingReport(self.options, self.models.token_counter_name)
        chosen = self._choose(report)
        if not any(chosen.values()):
            raise SettingsError(_nothing(report))
        try:
            self._write(report, chosen)
        except OSError as error:
            raise SettingsError(f"{self.out} cannot be written: {error.strerror or error}") from error
        self._progress.path.unlink(missing_ok=True)
        return report

    # --- what there is ---------------------------------------------------------------------------------------

    def _plan(self) -> Iterator[_Source]:
        """Documents in the order of their ids, then the published ones."""
        basis = digest(
            _VERSION,
            canonical_json([self.options.tasks, self.options.seed, asdict(self.options.levels)]),
            self.models.token_counter_name,
            *(_skill(task) for task in self.options.tasks),
        )
        present = (
            select(Document.document_id, Document.version_id, Partition.partition_id)
            .outerjoin(
                Partition,
                (Partition.document_id == Document.document_id)
                & (Partition.version_id == Document.version_id)
                & (Partition.method == "qchunker"),
            )
            .where(
                Document.state == "kept",
                Document.text != "",
                Document.kind.in_(self._segmenter.settings.kinds),
            )
            .order_by(Document.document_id)
        )
        with self.catalogue.reading() as session:
            for document, version, partition in session.execute(present).all():
                key = digest(basis, document, version, partition or "")
                yield _Source(document, key, document)
        if "levels" not in self.options.tasks:
            return
        for name, documents in sorted(self._published.items()):
            for published in documents:
                key = digest(basis, name, published.document, published.version)
                yield _Source(f"{name}:{published.document}", key, published.document, published)

    # --- choice ----------------------------------------------------------------------------------------------

    def _choose(self, report: TrainingReport) -> dict[str, set[str]]:
        """Ids of the records to write, by source: at most ``target`` a task, by a seeded rank over all documents."""
        ranked: dict[Task, list[tuple[str, str, str]]] = {task: [] for task in self.options.tasks}
        for name, source in self._sources.items():
            examples, drops = self._progress.get(source.key)
            report.drops.update(drops)
            for example in examples:
                reason = self._unwanted(example)
                if reason:
                    report.drops[example.task, reason] += 1
                else:
                    rank = digest("rank", str(self.options.seed), example.id)
                    ranked[example.task].append((rank, name, example.id))
        chosen: dict[str, set[str]] = {}
        for task, rows in ranked.items():
            rows.sort()
            over = len(rows) - self.options.target
            if over > 0:
                report.drops[task, "over the target"] += over
            for _, name, identity in rows[: self.options.target]:
                chosen.setdefault(name, set()).add(identity)
        return chosen

    def _unwanted(self, example: Example) -> str:
        if self.options.allow_offline or example.made_by in ("model", "document"):
            return ""
        if example.made_by == "unknown":
            return "who answered is not recorded (--allow-offline takes it)"
        how = "by rules" if example.made_by == "offline" else "partly by rules"
        return f"made {how} (--allow-offline takes it)"

    def _split(self, document: str) -> str:
        share = int(digest("split", str(self.options.seed), document)[:12], 16) / 16**12
        return "validation" if share < self.options.held_out else "train"

    # --- files -----------------------------------------------------------------------------------------------

    def _write(self, report: TrainingReport, chosen: Mapping[str, set[str]]) -> None:
        files = {
            (task, split): _Lines(self.out / f"{task}.{split}.jsonl")
            for task in self.options.tasks
            for split in SPLITS
        }
        try:
            for name, source in self._sources.items():
                if name in chosen:
                    self._write_document(source, chosen[name], files, report)
            for lines in files.values():
                report.checksums[lines.path.name] = lines.keep()
        finally:
            for lines in files.values():
                lines.discard()
        for name in sorted(_FILES - {"README.md", "card.json"} - report.checksums.keys()):
            (self.out / name).unlink(missing_ok=True)  # a task that an earlier build had
        figures = json.dumps(report.as_dict(), ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        for name, text in (("card.json", figures), ("README.md", card(report.as_dict()))):
            lines = _Lines(self.out / name)
            lines.write(text)
            report.checksums[name] = lines.keep()
        sums = _Lines(self.out / CHECKSUMS)
        sums.write("".join(f"{sums}  {name}\n" for name, sums in sorted(report.checksums.items())))
        sums.keep()

    def _write_document(
        self,
        source: _Source,
        wanted: set[str],
        files: Mapping[tuple[Task, str], _Lines],
        report: TrainingReport,
    ) -> None:
        text, origin = self._text(source)
        split = self._split(source.document)
        examples, _ = self._progress.get(source.key)
        for example in sorted(examples, key=lambda example: (example.task, example.id)):
            if example.id in wanted:
                record = record_of(example, text, self.models.count_tokens)
                record["split"] = split
                files[example.task, split].add(record)
                report.count(record, split)
        report.sources[origin] += 1

    def _text(self, source: _Source) -> tuple[str, tuple[str, str, str]]:
        """A document's text, and its source, language and licence for the card."""
        if source.published is not None:
            name = source.name.partition(":")[0]
            return source.published.text, (name, source.published.language, "see the data set")
        with self.catalogue.reading() as session:
            row = session.get(Document, source.document)
            if row is None:
                raise TerminalError(f"document {source.document} went while the set was built", reason="gone")
            examples, _ = self._progress.get(source.key)
            if any(example.version != row.version_id for example in examples):
                raise TerminalError(
                    f"document {source.document} changed while the set was built; build it again",
                    reason="changed",
                )
            return row.text, (row.source, row.language, row.licence or "not stated")


def _join(made: Made, more: Made) -> None:
    made.examples += more.examples
    made.drops.update(more.drops)


def _skill(task: Task) -> str:
    skill = SKILLS[task]
    return f"{skill.name}/{skill.version}/{skill.prompts.digest if skill.prompts else ''}"


def _nothing(report: TrainingReport) -> str:
    rules = sum(n for (_, reason), n in report.drops.items() if "--allow-offline" in reason)
    if rules:
        return (
            f"all {rules} answers were made by the platform's rules (or it is not recorded who made them): a model "
            "trained on them learns the rules, not the debate. Cut the documents with a model (hchem run chunks, "
            "docs/models.md), or take them with --allow-offline"
        )
    reasons = "; ".join(f"{reason}: {n}" for (_, reason), n in report.drops.most_common(5))
    return f"there is nothing to learn from: {reasons or 'no documents; run hchem refresh'}"


# --- the catalogue's records -----------------------------------------------------------------------------------


def _with_headings(document: Document) -> LevelsDocument:
    language = document.language or language_of(document.text)
    return LevelsDocument(document.document_id, document.version_id, language, document.text)


def _debate(session: Session, document: Document) -> StoredDebate | None:
    """The debate of a document's present version; None where there is none."""
    partition = session.scalars(
        select(Partition).where(
            Partition.document_id == document.document_id,
            Partition.version_id == document.version_id,
            Partition.method == "qchunker",
        )
    ).first()
    if partition is None:
        return None
    rows = session.scalars(
        select(Chunk)
        .where(Chunk.partition_id == partition.partition_id, Chunk.leaf.is_(True))
        .order_by(Chunk.position)
    ).all()
    return StoredDebate(
        document.document_id,
        document.version_id,
        document.language or language_of(document.text),
        document.text,
        tuple((row.start, row.end) for row in rows),
        tuple(row.outline_question for row in rows),
        tuple(row.completed for row in rows),
        partition.settings,
        partition.record,
    )


# --- files -----------------------------------------------------------------------------------------------------


class _Progress:
    """Examples by document in a file of JSON lines; a line that a stopped run left half written is dropped."""

    def __init__(self, path: Path, *, afresh: bool) -> None:
        self.path = path
        self._at: dict[str, int] = {}
        if afresh:
            path.unlink(missing_ok=True)
        if not path.exists():
            return
        at = 0
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                with suppress(ValueError, KeyError, TypeError):
                    self._at[json.loads(line)["key"]] = at
                at += len(line)
        os.truncate(path, at)

    def __contains__(self, key: str) -> bool:
        return key in self._at

    def put(self, key: str, made: Made) -> None:
        """Keep the examples of a document, written at once."""
        row = {
            "key": key,
            "examples": [example.as_dict() for example in made.examples],
            "drops": [[*what, n] for what, n in sorted(made.drops.items())],
        }
        with self.path.open("ab") as file:
            self._at[key] = file.tell()
            file.write((json.dumps(row) + "\n").encode("ascii"))

    def get(self, key: str) -> tuple[list[Example], Counter[tuple[str, str]]]:
        """The examples of a document and what was left out of it; nothing for one that was not made."""
        if key not in self._at:
            return [], Counter()
        with self.path.open("rb") as file:
            file.seek(self._at[key])
            row = json.loads(file.readline())
        return [Example(**values) for values in row["examples"]], Counter(
            {(task, reason): n for task, reason, n in row["drops"]}
        )


class _Lines:
    """A file that is in its place when it is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary = path.with_name(f".{path.name}.tmp")
        self._file = self._temporary.open("wb")
        self._state = hashlib.sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        """One row as one line of JSON."""
        self.write(json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS) + "\n")

    def write(self, text: str) -> None:
        """Text as it is."""
        data = text.encode("utf-8", "replace")
        self._file.write(data)
        self._state.update(data)

    def keep(self) -> str:
        """Put the file in its place; returns its SHA-256."""
        self._file.close()
        os.replace(self._temporary, self.path)
        return self._state.hexdigest()

    def discard(self) -> None:
        """Remove what was not kept."""
        self._file.close()
        self._temporary.unlink(missing_ok=True)


def _locked(out: Path) -> int:
    """A descriptor of the directory that keeps other builds out while it is open. Raises SettingsError.

    The directory itself is locked, so that no lock file is left among the records.
    """
    held = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(held)
        raise SettingsError(
            f"another build is writing {out}; wait until it ends, or choose another directory"
        ) from error
    except OSError:
        pass  # a file system without locks: as good as it gets
    return held


def _claim(out: Path, tasks: Sequence[Task] | None) -> None:
    """Mark the directory as a build's, or refuse somebody else's files.

    Records of other tasks than ``tasks`` would be lost, and are refused too (None: they may be).
    """
    marker = out / CHECKSUMS
    foreign = sorted(path.name for path in out.iterdir() if path.name in _FILES)
    if foreign and not marker.is_file():
        raise SettingsError(
            f"{out} holds {', '.join(foreign)}, which no build wrote; choose another directory"
        )
    others = sorted(
        {name.partition(".")[0] for name in foreign if name.endswith(".jsonl")} - {*(tasks or TASKS)}
    )
    if others:
        raise SettingsError(
            f"{out} holds records of {', '.join(others)} that this build would not make again; name these tasks too, "
            "choose another directory, or replace all with --afresh"
        )
    marker.write_bytes(b"")  # until the new files are whole


Progress = Callable[[str, int, int], None]


def build(builder: TrainingBuilder, progress: Progress = lambda step, done, total: None) -> TrainingReport:
    """Make what is pending in this process and write the set."""
    done = builder.taken
    for name in builder.pending():
        builder.work(name)
        done += 1
        progress("training examples", done, builder.total)
    return builder.finish()

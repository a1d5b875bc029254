"""What every reader makes of its files: documents with gold borders, questions with located evidence."""

from __future__ import annotations

import csv
import itertools
import json
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from chunking.evaluation.metrics import Region
from corpus.errors import TerminalError

Headings = Literal["hidden", "removed"]


@dataclass(frozen=True)
class BenchmarkDocument:
    """A text to cut. ``borders``: offsets where gold segments begin (0 excepted) with level 1, 2, …; empty: none known."""

    id: str
    title: str
    text: str
    borders: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchmarkQuestion:
    """A question. ``document``: the one text it is asked of; None: all texts.

    ``evidence`` are the quotes as published, ``regions`` where they were found.
    """

    id: str
    question: str
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    regions: tuple[Region, ...] = ()
    document: str | None = None
    subset: str = ""


@dataclass
class Benchmark:
    """A data set as read; ``notes`` counts what was left out, by reason."""

    name: str
    documents: list[BenchmarkDocument] = field(default_factory=list)
    questions: list[BenchmarkQuestion] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def limited(self, limit: int | None) -> Benchmark:
        """The first ``limit`` documents and the questions that are asked of them, or whose evidence is in them."""
        if limit is None or limit >= len(self.documents):
            return self
        documents = self.documents[:limit]
        kept = {document.id for document in documents}
        questions = [question for question in self.questions if _asked_of(question, kept)]
        return Benchmark(self.name, documents, questions, self.notes)

    def named(self, name: str) -> Benchmark:
        """The same under another name."""
        return Benchmark(name, self.documents, self.questions, self.notes)

    def of_subsets(self, subsets: Sequence[str]) -> Benchmark:
        """With the questions of these subsets only (none given: all)."""
        kept = [question for question in self.questions if not subsets or question.subset in subsets]
        return Benchmark(self.name, self.documents, kept, self.notes)

    def corpus_wide(self) -> Benchmark:
        """Every question asked of all texts; its evidence stays where it is."""
        questions = [replace(question, document=None) for question in self.questions]
        return Benchmark(self.name, self.documents, questions, self.notes)


def _asked_of(question: BenchmarkQuestion, kept: set[str]) -> bool:
    if question.document is not None:
        return question.document in kept
    return bool(question.regions) and all(document in kept for document, _, _ in question.regions)


# --- files ----------------------------------------------------------------------------------------------------


class BenchmarkError(TerminalError):
    """A folder or file that is not in the published shape."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="benchmark")


def read_text(path: Path) -> str:
    """A text file in UTF-8, line ends as they are. Raises BenchmarkError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path} is not UTF-8 (byte {error.start})") from error


def read_json(path: Path) -> Any:
    """A JSON file. Raises BenchmarkError with the line."""
    return _parsed(read_text(path), str(path))


def _parsed(text: str, where: str) -> Any:
    """JSON; endless numbers and depths, which the parser has errors of its own for, are none."""
    try:
        return json.loads(text, parse_constant=_nothing)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if "\n" in text else ""
        raise BenchmarkError(f"{where}{line}: not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(f"{where}: no JSON that can be read ({error})") from error


def _nothing(name: str) -> None:
    """NaN and infinities, which some libraries write for a missing value and JSON does not know."""


def counted_rows(path: Path, notes: Counter[str]) -> list[dict[str, Any]]:
    """As :func:`read_rows`; a file without a row is counted."""
    rows = read_rows(path)
    notes["files without a row"] += not rows
    return rows


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Objects of a file: JSON lines, a JSON list, a JSON object of objects (their key as ``_key``), CSV or Parquet."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        csv.field_size_limit(2**31 - 1)
        return list(csv.DictReader(read_text(path).splitlines(keepends=True)))
    if suffix == ".parquet":
        import pyarrow.parquet

        try:
            rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        except (OSError, ValueError) as error:
            raise BenchmarkError(f"{path} is no Parquet file: {error}") from error
        return rows
    text = read_text(path)
    if suffix == ".jsonl" or (text.lstrip()[:1] == "{" and _by_lines(text)):
        return [
            _object(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()
        ]
    value = read_json(path)
    if isinstance(value, dict):
        if all(isinstance(item, dict) for item in value.values()):
            return [{"_key": key, **item} for key, item in value.items()]
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BenchmarkError(f"{path}: expected a list of objects")
    return value


def _by_lines(text: str) -> bool:
    """Whether a JSON file holds an object a line."""
    first = text.lstrip().split("\n", 1)
    try:
        _parsed(first[0], "")
    except BenchmarkError:
        return False
    return len(first) > 1 and bool(first[1].strip())


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    value = _parsed(line, f"{path}, line {number}")
    if not isinstance(value, dict):
        raise BenchmarkError(f"{path}, line {number}: expected an object")
    return value


def files(folder: Path, *patterns: str) -> list[Path]:
    """Files below a folder (or the one file itself) by pattern, sorted; the first pattern that matches counts."""
    for pattern in patterns:
        if folder.is_file():
            found = [folder] if folder.match(pattern.rsplit("/", 1)[-1]) else []
        else:
            found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if found:
            return found
    return []


def required(folder: Path, what: str, *patterns: str) -> list[Path]:
    """As :func:`files`. Raises BenchmarkError that names the patterns and what is there instead."""
    found = files(folder, *patterns)
    if found:
        return found
    there = "the file itself" if folder.is_file() else _listing(folder)
    raise BenchmarkError(f"{folder}: no {what} ({' or '.join(patterns)}); there: {there}")


def _listing(folder: Path) -> str:
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    return (
        ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        if names
        else "nothing"
    )


def field_of(row: Mapping[str, Any], path: Path, *names: str) -> Any:
    """The first of some fields that a row has. Raises BenchmarkError that names them."""
    for name in names:
        if row.get(name) is not None:
            return row[name]
    have = ", ".join(map(str, list(row)[:12]))
    raise BenchmarkError(f"{path}: a row has no {' or '.join(map(repr, names))}; its fields: {have}")


def texts_of(value: Any) -> tuple[str, ...]:
    """A text or a list of texts as a tuple; empty ones dropped."""
    if value is None:
        return ()
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(text for item in items if (text := str(item).strip()))


def text_in(value: Any, where: str) -> str:
    """A text, "" for none. Raises BenchmarkError with the place for a value of another type."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BenchmarkError(f"{where}: expected a text, not {_shown(value)}")
    return value


def whole_in(value: Any, where: str) -> int:
    """A whole number, also one written as text. Raises BenchmarkError with the place for anything else."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:  # the last: an endless one
        raise BenchmarkError(f"{where}: expected a whole number, not {_shown(value)}") from error


def _shown(value: Any) -> str:
    return ascii(value)[:60] if isinstance(value, str | bool | int | float) else type(value).__name__


# --- documents with sections ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A heading with its level (1 = coarsest) and the paragraphs below it."""

    level: int
    title: str
    paragraphs: tuple[str, ...]


def composed(
    identifier: str, title: str, sections: Iterable[Section], headings: Headings
) -> BenchmarkDocument:
    """A text of sections, a paragraph a line, with a gold border where each begins.

    ``hidden``: headings stand as plain lines; ``removed``: they do not stand at all,
    and sections without a text of their own leave their border to what follows.
    """
    parts: list[str] = []
    length = 0
    borders: dict[int, int] = {}
    for section in sections:
        paragraphs = [text for text in (p.strip() for p in section.paragraphs) if text]
        lines = [
            *([section.title.strip()] if headings == "hidden" and section.title.strip() else []),
            *paragraphs,
        ]
        if length and (lines or headings == "removed"):
            borders[length] = min(section.level, borders.get(length, section.level))
        for line in lines:
            parts.append(line + "\n")
            length += len(line) + 1
    text = "".join(parts)
    return BenchmarkDocument(
        identifier, title, text, {at: lv for at, lv in borders.items() if at < len(text)}
    )


_HEADING = re.compile(r"^\s{0,3}(#{1,10})(?:\s+|$)(.*)$")


def from_markdown(identifier: str, text: str, headings: Headings) -> BenchmarkDocument:
    """A text whose ``#`` lines are its gold hierarchy (HiChunk's documents)."""
    sections: list[Section] = []
    title, level, name = "", 1, ""
    paragraphs: list[str] = []
    for line in text.splitlines():
        match = _HEADING.match(line)
        if match is None:
            paragraphs.append(line)
            continue
        if name or any(map(str.strip, paragraphs)):
            sections.append(Section(level, name, tuple(paragraphs)))
        level, name, paragraphs = len(match[1]), match[2].strip().rstrip("#").strip(), []
        title = title or name
    sections.append(Section(level, name, tuple(paragraphs)))
    return composed(identifier, title or identifier, sections, headings)


# --- evidence -------------------------------------------------------------------------------------------------


class Places:
    """Where quotes stand in some texts: verbatim, else with blanks, heading marks and character widths apart.

    The texts are searched as one, so that a question over tens of thousands of
    them costs one search.
    """

    def __init__(self, documents: Sequence[BenchmarkDocument]) -> None:
        self._ids = [document.id for document in documents]
        self._text = _BETWEEN.join(document.text for document in documents)
        lengths = [len(document.text) + 1 for document in documents]
        self._starts = [0, *itertools.accumulate(lengths)]
        self._plain: str | None = None
        self._offsets = array("I")

    def find(self, quote: str) -> Region | None:
        """The first place of a quote, None where it is in none of the texts."""
        wanted = quote.strip()
        if not wanted:
            return None
        at = self._text.find(wanted)
        if at >= 0:
            return self._region(at, at + len(wanted))
        if self._plain is None:
            self._plain, self._offsets = _squeezed(self._text)
        needle, _ = _squeezed(_MARKS.sub("", wanted))
        at = self._plain.find(needle) if needle else -1
        if at < 0:
            return None
        return self._region(self._offsets[at], self._offsets[at + len(needle) - 1] + 1)

    def _region(self, start: int, end: int) -> Region:
        index = bisect_right(self._starts, start) - 1
        first = self._starts[index]
        return self._ids[index], start - first, end - first


_BETWEEN = "\x00"  # stands in no quote, so that none reaches from one text into the next
_MARKS = re.compile(r"(?m)^\s*#{1,10}\s+|\x00")


def _squeezed(text: str) -> tuple[str, array[int]]:
    kept: list[str] = []
    offsets = array("I")
    for offset, char in enumerate(text):
        if char.isspace():
            continue
        for part in char if char.isascii() else unicodedata.normalize("NFKC", char):
            if not part.isspace():
                kept.append(part)
                offsets.append(offset)
    return "".join(kept), offsets


def located(quotes: Sequence[str], places: Places, notes: Counter[str]) -> tuple[Region, ...]:
    """Regions of the quotes that are in the texts; the lost ones are counted."""
    found: list[Region] = []
    for quote in quotes:
        region = places.find(quote)
        if region is None:
            notes["evidence not found in the text"] += 1
        else:
            found.append(region)
    return tuple(found)

"""A user's list of chemicals as rows: CSV or JSON, in the encodings and separators of spreadsheet programs.

Each row is checked by itself here; what rows mean together, and beside what the
catalogue knows, is decided in ``corpus.chemicals``.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.errors import SettingsError, TerminalError
from corpus.names import as_cas

_COLUMNS = {
    "name": (
        *("name", "name_en", "english name", "substance", "substance name", "chemical", "chemical name"),
        *("英文名", "英文名称", "en"),
    ),
    "cas": (
        *("cas", "cas_no", "cas no", "cas no.", "cas number", "cas_number", "cas-no", "cas rn", "casrn"),
        *("cas号", "cas编号", "cas登记号", "cas 号"),
    ),
    "aliases": (
        "aliases",
        "alias",
        "synonyms",
        "synonym",
        "别名",
        "俗名",
        "aliases_zh",
        "aliases_en",
        "英文别名",
    ),
    "name_zh": (
        *("name_zh", "zh", "zh name", "chinese name", "中文名", "中文名称", "名称", "品名", "化学品名称"),
    ),
    "formula": ("formula", "molecular formula", "分子式", "化学式"),
    "un": ("un", "un number", "un_number", "un no", "un no.", "un号", "un编号", "联合国编号"),
}
_GENERAL = (
    "名称",
    "品名",
    "化学品名称",
)  # say "name" in Chinese: beside a column of Chinese names, the main one
_DELIMITERS = ",\t;，"
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_FORMULA_TEXT = re.compile(r"[A-Za-z0-9()\[\].·•*+\-]{1,128}")
_UN = re.compile(r"(?<!\d)\d{4}(?!\d)")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}


_LONGEST_NAME = 500


@dataclass
class ListRow:
    """A row of a user's list, read: where it stands, CAS number, main names, other names, attributes."""

    place: str
    cas: str | None
    mains: list[str]
    aliases: list[str]
    formula: str | None
    un_numbers: tuple[str, ...]


@dataclass
class ReadList:
    """Rows of a list; ``errors``: one line per bad row, ``reviews``: one per value left out of a good one.

    ``unused``: headings of columns (JSON: names of members) that hold something and are not read.
    """

    rows: list[ListRow] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def read_rows(path: Path) -> ReadList:
    """Read a list. Raises SettingsError for a file that cannot be read at all, or with two columns of one field."""
    found = ReadList()
    for place, row in _user_rows(path, _read_text(path), found.unused):
        where = f"{path.name}, {place}: "
        try:
            found.rows.append(check_row(row, where, found.reviews))
        except TerminalError as error:
            found.errors.append(f"{where}{error}")
    return found


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"chemical list {path} cannot be read: {error.strerror or error}") from error
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ("utf-16",) if utf16 else ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise SettingsError(f"chemical list {path} is neither UTF-8 (or UTF-16 with a BOM) nor GB18030 text")


def _user_rows(path: Path, text: str, unused: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, field → value) of each row; ``{"bad": message}`` for one that cannot be read."""
    suffix = path.suffix.lower()
    if suffix in (".json", ".jsonl"):
        yield from (_json_lines(text, unused) if suffix == ".jsonl" else _json_entries(path, text, unused))
        return
    lines = text.splitlines(keepends=True)
    start = next((n for n, line in enumerate(lines) if line.strip(" \t\r\n,;")), 0)
    declared = re.fullmatch(r"sep=(.)\s*", lines[start], re.IGNORECASE) if lines else None
    if declared:  # a line that spreadsheet programs write
        start += 1
    first = lines[start] if start < len(lines) else ""
    delimiter = declared[1] if declared else max(_DELIMITERS, key=first.count)
    reader = csv.reader(lines[start:], delimiter=delimiter, strict=True)
    try:
        yield from _csv_rows(path, first, reader, start, unused)
    except csv.Error as error:  # an open quotation mark would take the following rows into one name
        raise SettingsError(
            f"chemical list {path}, line {start + reader.line_num}: {error} (a quotation mark?)"
        ) from error


def _csv_rows(
    path: Path, first: str, reader: Any, skipped: int, unused: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    header: list[str] = next(reader, [])
    try:
        fields = _columns(header)
    except TerminalError as error:
        raise SettingsError(f"chemical list {path}: {error}") from error
    unread = [_heading(cell) for cell, name in zip(header, fields, strict=True) if not name]
    unused.extend(heading for heading in unread if heading)
    if not {"name", "cas", "name_zh"} & set(fields):
        raise SettingsError(
            f"chemical list {path}: the first line must name the columns (name, cas, aliases, name_zh), "
            f"got {first.strip()[:80]!r}"
        )
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        place = f"line {skipped + reader.line_num}"
        if any(cell.strip() for cell in cells[len(fields) :]):
            yield (
                place,
                {
                    "bad": f"{len(cells)} cells for {len(fields)} columns (a name with a separator needs quotation marks)"
                },
            )
            continue
        row: dict[str, Any] = {}
        for number, (name, cell) in enumerate(zip(fields, cells, strict=False), start=1):
            nameless = f"column {number} (no heading)"
            if name == "aliases" and row.get(name):
                row[name] += f"|{cell}"
            elif name:
                row[name] = cell
            elif cell.strip() and not _heading(header[number - 1]) and nameless not in unused:
                unused.append(nameless)
        yield place, row


def _json_lines(text: str, unused: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield f"line {number}", _fields(json.loads(line), unused)
            except (ValueError, RecursionError) as error:
                yield f"line {number}", {"bad": f"not JSON: {error}"}


def _json_entries(path: Path, text: str, unused: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"chemical list {path} is not valid JSON (a list of objects): {error}") from error
    if not isinstance(entries, list):
        raise SettingsError(f"chemical list {path} is not valid JSON (a list of objects): it holds one value")
    for number, entry in enumerate(entries, start=1):
        yield f"entry {number}", _fields(entry, unused)


def _fields(entry: Any, unused: list[str]) -> dict[str, Any]:
    if not isinstance(entry, dict):
        return {"bad": f"an object with name or cas is expected, got {entry!r}"[:200]}
    given = {str(key): value for key, value in entry.items() if value is not None and value != ""}
    try:
        fields = _columns(list(given))
    except TerminalError as error:
        return {"bad": str(error)}
    row: dict[str, Any] = {}
    for name, (heading, value) in zip(fields, given.items(), strict=True):
        if name == "aliases" and name in row:
            row[name] = [*_alias_list(row[name]), *_alias_list(value)]
        elif name:
            row[name] = value
        elif heading not in unused:
            unused.append(heading)
    return row


def _columns(headings: Sequence[str]) -> list[str]:
    """Field of each heading, "" for one that is not known.

    Raises TerminalError for two columns of one field (other than aliases), since one would be lost.
    """
    fields = [_column(heading) for heading in headings]
    general = [n for n, heading in enumerate(headings) if _plain_heading(heading) in _GENERAL]
    if len(general) == 1 and fields.count("name_zh") == 2 and "name" not in fields:
        fields[general[0]] = "name"
    for name in _COLUMNS:
        same = [_heading(heading) for heading, at in zip(headings, fields, strict=True) if at == name]
        if len(same) > 1 and name != "aliases":
            raise TerminalError(
                f"the columns {' and '.join(map(repr, same))} both mean {name}; keep one, or call the other aliases",
                reason="columns",
            )
    return fields


def _heading(text: str) -> str:
    return text.strip("\ufeff \t\r\n\"'")


def _plain_heading(text: str) -> str:
    return re.sub(r"\s+", " ", _heading(unicodedata.normalize("NFKC", text)).lower())


def _column(heading: str) -> str:
    plain = _plain_heading(heading)
    return next((name for name, spellings in _COLUMNS.items() if plain in spellings), "")


def right_check_digit(text: str) -> str | None:
    """The CAS number that was meant where a text has the form of one and only its check digit is wrong."""
    plain = text.strip()
    if as_cas(plain) or not plain[-1:].isdecimal():
        return None
    return next(filter(None, (as_cas(f"{plain[:-1]}{digit}") for digit in range(10))), None)


def check_row(row: Mapping[str, Any], place: str, reviews: list[str]) -> ListRow:
    """Check a row (field → value). Values that are left out of it go to ``reviews``.

    Raises TerminalError for a row that cannot be loaded.
    """
    if "bad" in row:
        raise TerminalError(str(row["bad"]), reason="row")
    for name in ("name", "name_zh", "cas", "formula", "un"):
        if isinstance(row.get(name), dict | list | bool):
            raise TerminalError(f"{name} is no text: {row[name]!r}"[:200], reason="row")
    name, name_zh, cas_text = (_cell(row.get(key)) for key in ("name", "name_zh", "cas"))
    for text in (name, name_zh):
        if fault := _unfit(text):
            raise TerminalError(f"{text[:60]!r} is no name: {fault}", reason="row")
    cas = as_cas(cas_text) if cas_text else None
    if cas_text and cas is None:
        raise TerminalError(f"{cas_text!r} is not a CAS number (form or check digit)", reason="cas")
    mains = []
    for text in (name, name_zh):
        number = as_cas(text)
        if number and cas and number != cas:
            raise TerminalError(f"two CAS numbers: {cas} and {number}", reason="cas")
        cas = cas or number
        if text and not number:
            mains.append(text)
    if not (cas or mains):
        raise TerminalError("neither a name nor a CAS number", reason="row")
    formula, un_text = (unicodedata.normalize("NFKC", _cell(row.get(key))) for key in ("formula", "un"))
    formula = formula.replace(" ", "")
    if formula and not _FORMULA_TEXT.fullmatch(formula):
        reviews.append(f"{place}{formula!r} is not a formula: left out")
        formula = ""
    un_numbers = tuple(sorted(set(_UN.findall(un_text))))
    if un_text and not un_numbers and un_text not in ("-", "–", "—", "/", "无"):
        reviews.append(f"{place}{un_text!r} is not a UN number (four digits): left out")
    aliases = []
    for text in _aliases(row.get("aliases")):
        if fault := _unfit(text):
            reviews.append(f"{place}alias {text[:60]!r}: {fault}: left out")
        else:
            aliases.append(text)
    return ListRow(place, cas, mains, aliases, formula or None, un_numbers)


def _unfit(text: str) -> str:
    """Why a text can be no name of a substance; empty where it can."""
    if len(text) > _LONGEST_NAME:
        return f"{len(text)} characters"
    if any(unicodedata.category(character) in {"Cc", "Cs", "Cn"} for character in text):
        return "control characters"
    if text and (
        text.casefold() in {"nan", "inf", "infinity", "none", "null", "-inf"}
        or not (as_cas(text) or any(map(str.isalpha, text)))
    ):
        return "no word"
    return ""


def _aliases(given: Any) -> list[str]:
    return [text for text in map(_cell, _alias_list(given)) if text and not as_cas(text)]


def _alias_list(given: Any) -> list[Any]:
    if isinstance(given, str):
        return re.split(r"[|;；、]", given)
    if isinstance(given, list | tuple):
        return list(given)
    return [] if given is None else [given]


def _cell(value: Any) -> str:
    """A cell's text; Latin text in full-width letters is made usual, Chinese text is left as written."""
    text = "" if value is None else str(value).strip()
    return text if _CHINESE.search(text) else text.translate(_FULL_WIDTH).strip()


@dataclass
class LoadReport:
    """What an import did.

    ``errors`` holds one line per row that was not loaded, ``reviews`` one per name or
    value that was left out of a row that was, ``warnings`` one per row without a CAS
    number whose own name is new to the substance that its other name led to, each with
    its line number; ``unused`` the columns that were not read.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    total: int = 0
    names: int = 0
    errors: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


@dataclass
class RemovalReport:
    """What was removed: names, and substances of which nothing was left.

    ``removed``: key → names that went; ``gone``: keys of the substances that went;
    ``kept``: key → (name, who holds it) of names that stay.
    """

    removed: dict[str, list[str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    kept: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def names(self) -> int:
        """How many names were removed."""
        return sum(map(len, self.removed.values()))

    @property
    def substances(self) -> int:
        """How many substances were removed."""
        return len(self.gone)

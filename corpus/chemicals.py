"""The name repository: substances with CAS numbers, names, hazard flags.

Three sources, merged by CAS: the hazard lists and identifiers of the
``chemicals`` package (MIT), the platform's own zh/en table of common hazardous
substances, and lists of the user. The package's data files are read directly,
since its own loaders import pandas and index 70,000 substances that are not needed.

A name says how a substance is called, not that two substances are one:
names that claim too much (polymers, solutions, hydrates, whole classes, names
of another substance) are left out or marked ``solution``.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, ChemicalName
from corpus.errors import SettingsError, TerminalError
from corpus.ids import digest
from corpus.names import as_cas, find_cas, normalise_name, simplified, valid_cas
from corpus.settings import ChemicalSettings

__all__ = [
    "ChemicalRecord",
    "LoadReport",
    "Name",
    "add_chemical",
    "as_cas",
    "build_repository",
    "chemical_key",
    "find_cas",
    "find_chemicals",
    "import_list",
    "load_chemicals",
    "normalise_name",
    "read_user_list",
    "simplified",
    "store_records",
    "valid_cas",
]

PACKAGE = "chemicals"
TABLE = "hazardous_zh"
ALIAS = ", alias"  # ends the source of every name but a substance's main ones
_BUILT_IN = (PACKAGE, PACKAGE + ALIAS, TABLE, TABLE + ALIAS)
_DATA = Path(__file__).parent / "data"
_IARC = {"1": "1", "11": "2A", "12": "2B", "3": "3"}
_NTP = {"1": "known", "2": "reasonably anticipated"}
_IDENTIFIERS = ("pubchem small", "example user db", "pubchem large")

# What a synonym must not contain: other forms, mixtures, grades, registry numbers, foreign labels.
_UNFIT = re.compile(
    r"\\x|solution|aqueous|\baq\b|spent|hydrate|\bhydrous|anhydrous|stabili[sz]ed|inhibited|molten|technical"
    r"|grade|fuming|glacial|\bpoly|paraform|mixture|mixt\b|blend|standard|reagent|\d ?%|\(\d+[ch]\)"
    r"|\[|\bsee\b|spray|cleaner|\b(?:un|nsc|ec|ccris|hsdb|caswell|chebi|einecs|unii|epa|bdbm|dtxs?id|rcra|wln)"
    r"[ :#-]?\s?[\d-]|^\d[\d-]*$|^[a-z]{0,6}[ -]?\d{3,}$|\b[a-z]+\d{4,}",
    re.IGNORECASE,
)
_CLASS_NAME = re.compile(
    r"\\x|\bcompounds?\b|\band\b|\bmixtures?\b|\bisomers?\b|\ball\b|containing|exposures?|production|technical"
    r"|\bsalts?\b|\bwith(?:out)?\b|inhibited|\bn\.?o\.?s\b|\bas [A-Z]|;|industr|\bsee\b|\bits\b|\bother\b|soluble|dust|fume|listings?",
    re.IGNORECASE,
)
_GENERIC = {
    "diethyl",
    "dimethyl",
    "alcohol",
    "ether",
    "acid",
    "spirit",
    "gas",
    "oil",
    "salt",
    "base",
    "water",
    "air",
    "carbinol",
    "methylol",
}
_SOLUTION = re.compile(
    r"^(?:hydrochloric|muriatic|hydrobromic|hydriodic|hydrofluoric|hydrocyanic|prussic|hydrosulfuric) acid$"
    r"|^formalin$|^formol$|^aqua ammonia$|^javelle? water$|bleach$|溶液$|^(?:福尔马林|盐酸|双氧水|氨水)$",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Name:
    """A name: text, language (zh or en), kind (common, systematic, trade, solution), where it is from.

    The source of every name but the main one of its language ends in ", alias".
    """

    text: str
    language: str
    kind: str
    source: str


@dataclass
class ChemicalRecord:
    """A substance before it is stored. ``hazards``: list name → what that list says."""

    key: str
    cas: str | None = None
    names: list[Name] = field(default_factory=list)
    formula: str | None = None
    inchikey: str | None = None
    ec: str | None = None
    un_numbers: tuple[str, ...] = ()
    hazards: dict[str, str] = field(default_factory=dict)
    provenance: str = ""

    def add(self, text: str, kind: str, source: str, language: str = "") -> None:
        """Add a name unless its normal form is there already for that language."""
        text = re.sub(r"\s+", " ", text).strip()
        if not text:
            return
        language = language or ("zh" if _CHINESE.search(text) else "en")
        kind = "solution" if _SOLUTION.search(text) else kind
        wanted = normalise_name(text)
        if any(normalise_name(name.text) == wanted and name.language == language for name in self.names):
            return
        main = kind != "solution" and all(name.language != language for name in self.names)
        self.names.append(Name(text, language, kind, source.removesuffix(ALIAS) + ("" if main else ALIAS)))


@dataclass
class LoadReport:
    """What an import did. ``errors`` holds one line per bad row, with its line number."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    total: int = 0
    names: int = 0
    errors: list[str] = field(default_factory=list)


def chemical_key(cas: str | None, name: str) -> str:
    """Canonical key: the CAS number, else a key minted from the name's normal form."""
    return cas if cas else "name-" + digest("chemical", normalise_name(name))[:24]


# --- the `chemicals` package -------------------------------------------------


def package_data() -> Path:
    """Directory of the `chemicals` package's data. Raises SettingsError where it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError("the Python package 'chemicals' (the default name repository) is not installed")
    return Path(spec.submodule_search_locations[0])


def _table(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(reader, None)
        yield from (row for row in reader if row and row[0].strip())


def _list_rows(root: Path, wanted: Sequence[str]) -> Iterator[tuple[str, str, str, list[str]]]:
    """(CAS, list, what the list says, names of that row) of every row of the wanted hazard lists."""
    safety = root / "Safety"
    if "IARC" in wanted:
        for cas, name, group, *_ in _table(safety / "IARC Carcinogen Database.tsv"):
            yield cas, "IARC", f"group {_IARC.get(group, group)}", [name]
    if "NTP" in wanted:
        for cas, name, listing, *_ in _table(safety / "National Toxicology Program Carcinogens.tsv"):
            yield cas, "NTP", _NTP.get(listing, listing), [name]
    if "NFPA 497" in wanted:
        for cas, name, *_ in _table(safety / "NFPA 497 2008.tsv"):
            yield cas, "NFPA 497", "flammable", [name]
    if "IEC 60079-20-1" in wanted:
        for cas, names, *_ in _table(safety / "IS IEC 60079-20-1 2010.tsv"):
            # only bracketed names are whole: the first one is broken at semicolons in places
            yield (
                cas,
                "IEC 60079-20-1",
                "flammable",
                re.findall(r"\(([^();]+(?:\([^()]*\)[^();]*)*)\)(?=;|$)", names),
            )
    if "Ontario" in wanted:
        yield from _ontario(json.loads((safety / "Ontario Exposure Limits.json").read_text(encoding="utf-8")))


def _ontario(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str, list[str]]]:
    for cas, row in rows.items():
        name = str(row.get("Name") or "")
        single = name.count("[") == 1 and ";" not in name
        yield cas, "Ontario", "exposure limit", [name.split("[", maxsplit=1)[0]] if single else []


def _identifiers(root: Path, wanted: set[str]) -> Iterator[list[str]]:
    """Rows of the identifier files: pubchem id, CAS, formula, MW, SMILES, InChI, key, IUPAC, names …"""
    files = [root / "Identifiers" / f"chemical identifiers {name}.tsv" for name in _IDENTIFIERS]
    for path in [*files, root / "Identifiers" / "Inorganic db.tsv"]:
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                if line.split("\t", 2)[1] in wanted:
                    yield line.rstrip("\n").split("\t")


def _package_records(settings: ChemicalSettings, extra: Iterable[str]) -> dict[str, ChemicalRecord]:
    root = package_data()
    records: dict[str, ChemicalRecord] = {}
    listed: dict[str, list[str]] = {}
    for raw, list_name, value, names in _list_rows(root, settings.lists):
        cas = as_cas(raw)
        if cas is None:
            continue
        record = records.setdefault(cas, ChemicalRecord(cas, cas, provenance=PACKAGE))
        record.hazards.setdefault(list_name, value)
        listed.setdefault(cas, []).extend(names)
    synonyms: dict[str, list[str]] = {}
    for row in _identifiers(root, set(records) | set(extra)):
        record = records.setdefault(row[1], ChemicalRecord(row[1], row[1], provenance=PACKAGE))
        record.formula = record.formula or row[2] or None
        record.inchikey = record.inchikey or row[6] or None
        synonyms.setdefault(row[1], []).extend([*row[8:9], *row[7:8], *row[9:]])
    for cas, record in records.items():
        _name_record(record, synonyms.get(cas, []), listed.get(cas, []), settings.synonyms)
    return records


def _name_record(record: ChemicalRecord, synonyms: list[str], listed: list[str], limit: int) -> None:
    for position, text in enumerate(synonyms[:2]):
        if not valid_cas(text) and not _UNFIT.search(text):
            record.add(text, "common" if position == 0 else "systematic", PACKAGE)
    for text in listed:
        plain = re.sub(r"\s*\((?:see|gas\b|vapou?r\b|liquid\b).*$", "", text, flags=re.IGNORECASE).strip()
        if plain.lower() not in _GENERIC and not _CLASS_NAME.search(plain) and len(plain) > 3:
            record.add(plain, "common", PACKAGE)
    wanted = len(record.names) + limit
    for text in synonyms[2:]:
        if len(record.names) >= wanted:
            break
        if len(text) > 3 and text.lower() not in _GENERIC and not _UNFIT.search(text) and not valid_cas(text):
            record.add(text, "common", PACKAGE)


# --- the platform's own table -----------------------------------------------


def table_rows() -> list[dict[str, str]]:
    """Rows of ``data/hazardous_zh.csv``: cas, name_zh, name_en, aliases_zh, aliases_en, solutions, formula, un."""
    with (_DATA / "hazardous_zh.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _merge_table(records: dict[str, ChemicalRecord], rows: Iterable[Mapping[str, str]]) -> None:
    for row in rows:
        cas = row["cas"]
        record = records.setdefault(cas, ChemicalRecord(cas, cas, provenance=TABLE))
        package_names = record.names
        record.names = []
        record.add(row["name_en"], "common", TABLE, "en")
        record.add(row["name_zh"], "common", TABLE, "zh")
        for alias in filter(None, row["aliases_zh"].split("|")):
            record.add(alias, "common", TABLE, "zh")
        for alias in filter(None, row["aliases_en"].split("|")):
            record.add(alias, "common", TABLE, "en")
        for alias in filter(None, row["solutions"].split("|")):
            record.add(alias, "solution", TABLE)
        for name in package_names:
            record.add(name.text, name.kind, name.source, name.language)
        record.formula = row["formula"] or record.formula
        record.un_numbers = tuple(filter(None, row["un"].split("|")))


def _drop_borrowed_names(records: Mapping[str, ChemicalRecord]) -> None:
    """Synonyms of the package that are the main name of another substance are not this one's."""
    mains: dict[str, set[str]] = {}
    for record in records.values():
        for language in ("en", "zh"):
            first = next((name for name in record.names if name.language == language), None)
            if first is not None:
                mains.setdefault(normalise_name(first.text), set()).add(record.key)
    for record in records.values():
        first = record.names[0] if record.names else None
        record.names = [
            name
            for name in record.names
            if name is first
            or not name.source.startswith(PACKAGE)
            or not mains.get(normalise_name(name.text), set()) - {record.key}
        ]


def build_repository(settings: ChemicalSettings | None = None) -> list[ChemicalRecord]:
    """The built-in repository, ordered by key; substances without any name are left out.

    Every substance of the chosen hazard lists and of the platform's own table.
    """
    settings = settings or ChemicalSettings()
    rows = table_rows()
    records = _package_records(settings, {row["cas"] for row in rows})
    _merge_table(records, rows)
    _drop_borrowed_names(records)
    return [records[key] for key in sorted(records) if records[key].names]


# --- storing -----------------------------------------------------------------


def load_chemicals(catalogue: Catalogue, settings: ChemicalSettings | None = None) -> LoadReport:
    """Bring the built-in repository into the catalogue; names and substances of the user stay.

    A second call with the same settings changes nothing.
    """
    records = build_repository(settings)
    with catalogue.writing() as session:
        return store_records(session, records, replace=_BUILT_IN)


def store_records(
    session: Session, records: Sequence[ChemicalRecord], *, replace: Sequence[str] = ()
) -> LoadReport:
    """Merge records into the catalogue by key. Names whose source is in ``replace`` are replaced.

    Scalars that are there already are kept; hazard flags and UN numbers are united.
    """
    report = LoadReport(total=len(records))
    present = {row.key: row for row in session.scalars(select(Chemical))}
    names: dict[str, dict[str, ChemicalName]] = {}
    for row in session.scalars(select(ChemicalName)):
        names.setdefault(row.key, {})[row.name_id] = row
    for record in records:
        chemical = present.get(record.key)
        is_new = chemical is None
        if chemical is None:
            chemical = Chemical(key=record.key, un_numbers=[], hazards=[], provenance=record.provenance)
            session.add(chemical)
            present[record.key] = chemical
        changed = _update(chemical, record)
        changed |= _update_names(session, record, names.setdefault(record.key, {}), replace)
        report.names += len(names[record.key])
        if is_new:
            report.added += 1
        elif changed:
            report.updated += 1
        else:
            report.unchanged += 1
    if replace:
        _drop_stale(session, {record.key for record in records}, names, replace)
    return report


def _update(chemical: Chemical, record: ChemicalRecord) -> bool:
    changed = False
    for attribute in ("cas", "formula", "inchikey", "ec"):
        value = getattr(record, attribute)
        if value and not getattr(chemical, attribute):
            setattr(chemical, attribute, value)
            changed = True
    un_numbers = sorted({*chemical.un_numbers, *record.un_numbers})
    hazards = {entry["list"]: entry["value"] for entry in chemical.hazards} | record.hazards
    listed = [{"list": name, "value": hazards[name]} for name in sorted(hazards)]
    if un_numbers != chemical.un_numbers:
        chemical.un_numbers, changed = un_numbers, True
    if listed != chemical.hazards:
        chemical.hazards, changed = listed, True
    return changed


def _update_names(
    session: Session, record: ChemicalRecord, present: dict[str, ChemicalName], replace: Sequence[str]
) -> bool:
    changed = False
    wanted: set[str] = set()
    for name in record.names:
        normalised = normalise_name(name.text)[:512]
        name_id = digest("name", record.key, name.language, normalised)
        wanted.add(name_id)
        if name_id not in present:
            present[name_id] = ChemicalName(
                name_id=name_id, key=record.key, name=name.text, normalised=normalised,
                language=name.language, kind=name.kind, source=name.source,
            )  # fmt: skip
            session.add(present[name_id])
            changed = True
    for name_id in [i for i, row in present.items() if row.source in replace and i not in wanted]:
        session.delete(present.pop(name_id))
        changed = True
    return changed


def _drop_stale(
    session: Session, kept: set[str], names: Mapping[str, Mapping[str, ChemicalName]], replace: Sequence[str]
) -> None:
    """Substances that only the replaced sources knew and that they no longer contain."""
    for key in sorted(set(names) - kept):
        rows = names[key].values()
        if rows and all(row.source in replace for row in rows):
            session.execute(delete(ChemicalName).where(ChemicalName.key == key))
            session.execute(delete(Chemical).where(Chemical.key == key))


# --- lists of the user ---------------------------------------------------------

_COLUMNS = {
    "name": ("name", "name_en", "english name", "substance", "chemical", "英文名", "英文名称"),
    "cas": ("cas", "cas_no", "cas no", "cas no.", "cas number", "casrn", "cas号", "cas编号"),
    "aliases": ("aliases", "alias", "synonyms", "别名", "aliases_zh"),
    "name_zh": ("name_zh", "zh", "zh name", "chinese name", "中文名", "中文名称", "名称", "品名"),
    "formula": ("formula", "分子式"),
    "un": ("un", "un number", "un_number", "un号", "联合国编号"),
}


def read_user_list(path: Path) -> tuple[list[ChemicalRecord], list[str]]:
    """Read a user's CSV or JSON list: records merged by CAS, and one message per bad row.

    Columns: name, cas, aliases, name_zh, formula, un (zh headings understood);
    UTF-8 or GB18030. Raises SettingsError for a file that cannot be read at all.
    """
    text = _read_text(path)
    source = f"user list {path.name}"[: 64 - len(ALIAS)]
    records: dict[str, ChemicalRecord] = {}
    errors: list[str] = []
    for line, row in _user_rows(path, text):
        try:
            _add_row(records, row, source)
        except TerminalError as error:
            errors.append(f"{path.name}, line {line}: {error}")
    return [records[key] for key in sorted(records)], errors


def import_list(catalogue: Catalogue, path: Path) -> LoadReport:
    """Merge a user's list into the catalogue; bad rows are reported by line, the rest loads."""
    records, errors = read_user_list(path)
    with catalogue.writing() as session:
        report = store_records(session, records)
    report.errors = errors
    return report


def add_chemical(
    catalogue: Catalogue, name: str, *, cas: str = "", name_zh: str = "", aliases: Sequence[str] = ()
) -> tuple[str, LoadReport]:
    """Add one substance, or names to a known one; returns its key.

    Raises SettingsError for a wrong CAS number or no name at all.
    """
    records: dict[str, ChemicalRecord] = {}
    try:
        row = {"name": name, "cas": cas, "name_zh": name_zh, "aliases": list(aliases)}
        _add_row(records, row, "user")
    except TerminalError as error:
        raise SettingsError(str(error)) from error
    with catalogue.writing() as session:
        report = store_records(session, list(records.values()))
    return next(iter(records)), report


def find_chemicals(session: Session, text: str) -> list[str]:
    """Keys of the substances that a CAS number, key or exact name leads to, ordered."""
    cas = as_cas(text)
    found = session.get(Chemical, cas or text)
    if found is not None:
        return [found.key]
    query = select(ChemicalName.key).where(ChemicalName.normalised == normalise_name(text)[:512])
    return sorted(set(session.scalars(query)))


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"chemical list {path} cannot be read: {error.strerror or error}") from error
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise SettingsError(f"chemical list {path} is neither UTF-8 nor GB18030 text")


def _user_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.suffix.lower() in (".json", ".jsonl"):
        yield from _json_rows(path, text)
        return
    first = text.split("\n", 1)[0]
    delimiter = max(",\t;", key=first.count)
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        yield from _csv_rows(path, first, reader)
    except csv.Error as error:  # an open quotation mark would take the following rows into one name
        raise SettingsError(
            f"chemical list {path}, line {reader.line_num}: {error} (a quotation mark?)"
        ) from error


def _csv_rows(path: Path, first: str, reader: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    header = next(reader, None)
    fields = [_column(cell) for cell in header or []]
    if not {"name", "cas", "name_zh"} & set(fields):
        raise SettingsError(
            f"chemical list {path}: the first line must name the columns (name, cas, aliases, name_zh), got {first[:80]!r}"
        )
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, {f: cell for f, cell in zip(fields, row, strict=False) if f}


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        if path.suffix.lower() == ".jsonl":
            rows = [
                (n, json.loads(line)) for n, line in enumerate(text.splitlines(), start=1) if line.strip()
            ]
        else:
            rows = list(enumerate(json.loads(text), start=1))
    except (json.JSONDecodeError, TypeError) as error:
        raise SettingsError(f"chemical list {path} is not valid JSON (a list of objects): {error}") from error
    for number, row in rows:
        fields = {_column(str(k)): v for k, v in row.items()} if isinstance(row, dict) else {"bad": row}
        yield number, {k: v for k, v in fields.items() if k}


def _column(heading: str) -> str:
    plain = heading.strip().lower()
    return next((name for name, spellings in _COLUMNS.items() if plain in spellings), "")


def _add_row(records: dict[str, ChemicalRecord], row: Mapping[str, Any], source: str) -> None:
    if "bad" in row:
        raise TerminalError(f"an object with name or cas is expected, got {row['bad']!r}"[:200], reason="row")
    name, name_zh, cas_text = (str(row.get(k) or "").strip() for k in ("name", "name_zh", "cas"))
    cas = as_cas(cas_text) if cas_text else None
    if cas_text and cas is None:
        raise TerminalError(f"{cas_text!r} is not a CAS number (form or check digit)", reason="cas")
    if not (cas or name or name_zh):
        raise TerminalError("neither a name nor a CAS number", reason="row")
    key = chemical_key(cas, name or name_zh)
    record = records.setdefault(key, ChemicalRecord(key, cas, provenance=source))
    aliases = row.get("aliases") or []
    if isinstance(aliases, str):
        aliases = re.split(r"[|;；、]", aliases)
    for text in [name, name_zh, *map(str, aliases)]:
        record.add(text, "common", source)
    un_text = str(row.get("un") or "")
    record.un_numbers = tuple(sorted({*record.un_numbers, *re.findall(r"(?<!\d)\d{4}(?!\d)", un_text)}))
    record.formula = record.formula or str(row.get("formula") or "").strip() or None

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
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, ChemicalClaim, ChemicalName
from corpus.chemical_claims import FORMULA, NAME, UN, Claims, imported_source
from corpus.chemical_lists import ListRow, LoadReport, RemovalReport, check_row, read_rows, right_check_digit
from corpus.errors import SettingsError, TerminalError
from corpus.ids import digest
from corpus.name_sources import (
    ALIAS,
    LIST_ID,
    USER,
    holder_of,
    is_users,
    owner,
    source_of,
)
from corpus.names import as_cas, find_cas, normalise_name, simplified, valid_cas
from corpus.settings import ChemicalSettings

__all__ = [
    "ChemicalRecord",
    "LoadReport",
    "Name",
    "RemovalReport",
    "add_chemical",
    "as_cas",
    "build_repository",
    "chemical_key",
    "find_cas",
    "find_chemicals",
    "holder_of",
    "import_list",
    "load_chemicals",
    "normalise_name",
    "not_found",
    "read_user_list",
    "remove_chemical",
    "remove_list",
    "right_check_digit",
    "simplified",
    "store_records",
    "valid_cas",
]

PACKAGE = "chemicals"
TABLE = "hazardous_zh"
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
_SLICE = 500  # keys per statement: databases limit the number of parameters


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
    _drop_misplaced_names(records, listed)
    return records


def _drop_misplaced_names(records: Mapping[str, ChemicalRecord], listed: Mapping[str, Sequence[str]]) -> None:
    """A substance that the hazard lists name otherwise loses a name that is another's by those lists.

    (The identifiers give stereoisomers one name: endrin is called dieldrin there.)
    """
    mains: dict[str, set[str]] = {}  # main names that a hazard list confirms
    for cas, texts in listed.items():
        names = records[cas].names
        if names and normalise_name(names[0].text) in map(normalise_name, texts):
            mains.setdefault(normalise_name(names[0].text), set()).add(cas)
    for cas, record in records.items():
        own = {normalise_name(text) for text in listed.get(cas, ())}
        forms = [normalise_name(name.text) for name in record.names]
        if not own.intersection(forms):
            continue
        names, record.names = record.names, []
        for name, form in zip(names, forms, strict=True):
            if form in own or not mains.get(form, set()) - {cas}:
                record.add(name.text, name.kind, name.source, name.language)


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

    Scalars that are there already are kept; hazard flags and UN numbers are united. What a
    user's record says is claimed, so that it can be taken back.
    """
    report = LoadReport(total=len(records))
    claims = Claims(session)
    for source in replace:
        claims.drop_source(source)
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
        _claim(claims, record, names.setdefault(record.key, {}))
        changed |= _update_names(session, record, names[record.key], replace, claims)
        report.names += len(names[record.key])
        if is_new:
            report.added += 1
        elif changed:
            report.updated += 1
        else:
            report.unchanged += 1
    if replace:
        _drop_stale(session, {record.key for record in records}, names, replace, claims)
    return report


def _claim(claims: Claims, record: ChemicalRecord, present: Mapping[str, ChemicalName]) -> None:
    """Note what a user's record says; of a built-in one only the names that a user's source brought first."""
    for name in record.names:
        name_id = _name_id(record.key, name)
        row = present.get(name_id)
        if is_users(record.provenance) or (row is not None and is_users(row.source)):
            claims.add(record.key, owner(name.source), NAME, name_id)
    if is_users(record.provenance):
        for kind, values in ((UN, record.un_numbers), (FORMULA, filter(None, [record.formula]))):
            for value in values:
                claims.add(record.key, record.provenance, kind, value)


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
    session: Session,
    record: ChemicalRecord,
    present: dict[str, ChemicalName],
    replace: Sequence[str],
    claims: Claims,
) -> bool:
    changed = False
    wanted: set[str] = set()
    for name in record.names:
        normalised = normalise_name(name.text)[:512]
        name_id = _name_id(record.key, name)
        wanted.add(name_id)
        if name_id not in present:
            source = name.source
            if is_users(source) and any(_is_main(row, name.language) for row in present.values()):
                source = source.removesuffix(ALIAS) + ALIAS  # a known substance keeps its main name
            present[name_id] = ChemicalName(
                name_id=name_id, key=record.key, name=name.text, normalised=normalised,
                language=name.language, kind=name.kind, source=source,
            )  # fmt: skip
            session.add(present[name_id])
            changed = True
    for name_id in [i for i, row in present.items() if row.source in replace and i not in wanted]:
        if not claims.hand_over(present[name_id]):
            session.delete(present.pop(name_id))
        changed = True
    return changed


def _is_main(row: ChemicalName, language: str) -> bool:
    return row.language == language and not row.source.endswith(ALIAS)


def _drop_stale(
    session: Session,
    kept: set[str],
    names: Mapping[str, Mapping[str, ChemicalName]],
    replace: Sequence[str],
    claims: Claims,
) -> None:
    """Substances that only the replaced sources knew and that they no longer contain."""
    gone: list[str] = []
    for key in sorted(set(names) - kept):
        rows = names[key].values()
        if not rows or not all(row.source in replace for row in rows):
            continue
        stay = [row for row in rows if claims.hand_over(row)]
        if not stay:
            gone.append(key)
            continue
        for row in rows:
            if row not in stay:
                session.delete(row)
        session.get_one(Chemical, key).provenance = owner(stay[0].source)
    for start in range(0, len(gone), _SLICE):
        keys = gone[start : start + _SLICE]
        for table in (ChemicalName, Chemical, ChemicalClaim):
            session.execute(delete(table).where(table.key.in_(keys)))


# --- entries of the user ------------------------------------------------------

_Owners = Mapping[str, set[str]]
"""Normal form of a name → keys of the substances that have it."""


def read_user_list(path: Path) -> tuple[list[ChemicalRecord], list[str]]:
    """Read a user's CSV or JSON list: records merged by CAS, and one message per bad row.

    Columns: name, cas, aliases, name_zh, formula, un (zh headings understood), separated
    by comma, semicolon or tab; UTF-8, UTF-16 with BOM or GB18030. Names that the list
    itself gives to two CAS numbers are left out. Raises SettingsError for a file that
    cannot be read at all, or where two columns mean one field (aliases are joined).
    """
    found = read_rows(path)
    report = LoadReport(errors=found.errors, reviews=found.reviews)
    return _records(found.rows, source_of(path), {}, report), report.errors


def import_list(
    catalogue: Catalogue, path: Path, *, shared: bool = False, dry_run: bool = False
) -> LoadReport:
    """Merge a user's list into the catalogue; bad rows are reported by line, the rest loads.

    A row without a CAS number extends the substance that its names lead to. A name that
    is another substance's already (or stands with two CAS numbers in the list) is left
    out and reported for review, unless ``shared``. ``dry_run`` reports and changes nothing.
    """
    found = read_rows(path)
    report = LoadReport(errors=found.errors, reviews=found.reviews, unused=found.unused)
    return _store_rows(catalogue, found.rows, source_of(path), report, shared=shared, dry_run=dry_run)[1]


def add_chemical(
    catalogue: Catalogue,
    name: str,
    *,
    cas: str = "",
    name_zh: str = "",
    aliases: Sequence[str] = (),
    formula: str = "",
    un: str = "",
    shared: bool = False,
    dry_run: bool = False,
) -> tuple[str, LoadReport]:
    """Add one substance, or names to a known one; returns its key. ``shared`` as in ``import_list``.

    Without ``cas`` the names decide: a new name beside a known one becomes a name of that
    known substance, which ``warnings`` of the report says. A name of another substance than
    that of ``cas`` is not given; ``reviews`` says so.
    Raises SettingsError for a wrong CAS number, no name at all, or names of several substances.
    """
    report = LoadReport()
    given = {
        "name": name,
        "cas": cas,
        "name_zh": name_zh,
        "aliases": list(aliases),
        "formula": formula,
        "un": un,
    }
    try:
        row = check_row(given, "", report.reviews)
    except TerminalError as error:
        raise SettingsError(str(error)) from error
    records, report = _store_rows(catalogue, [row], USER, report, shared=shared, dry_run=dry_run)
    if not records:
        raise SettingsError(report.errors[0])
    return records[0].key, report


def _store_rows(
    catalogue: Catalogue,
    rows: Sequence[ListRow],
    source: str,
    report: LoadReport,
    *,
    shared: bool,
    dry_run: bool,
) -> tuple[list[ChemicalRecord], LoadReport]:
    with catalogue.writing() as session:
        owners: dict[str, set[str]] = {}
        wanted = {normalise_name(text)[:512] for row in rows for text in (*row.mains, *row.aliases)}
        for normalised, key in session.execute(select(ChemicalName.normalised, ChemicalName.key)):
            if normalised in wanted:
                owners.setdefault(normalised, set()).add(key)
        records = _records(rows, source, owners, report, shared=shared)
        stored = store_records(session, records)
        if dry_run:
            session.rollback()
    stored.errors, stored.reviews = report.errors, report.reviews
    stored.warnings, stored.unused = report.warnings, report.unused
    return records, stored


def _records(
    rows: Sequence[ListRow], source: str, owners: _Owners, report: LoadReport, *, shared: bool = False
) -> list[ChemicalRecord]:
    """Rows merged by substance, ordered by key; what cannot be decided goes to the report."""
    claims: dict[str, set[str]] = {}
    for row in rows:
        if row.cas:
            for text in (*row.mains, *row.aliases):
                claims.setdefault(normalise_name(text)[:512], set()).add(row.cas)
    records: dict[str, ChemicalRecord] = {}
    for row in rows:
        key = row.cas or _key_by_name(row, owners, claims, report)
        if key is None:
            continue
        record = records.setdefault(key, ChemicalRecord(key, as_cas(key), provenance=source))
        for text in (*row.mains, *row.aliases):
            others = set() if shared else _others(text, key, owners, claims)
            if others:
                report.reviews.append(
                    f"{row.place}{text!r} is also a name of {', '.join(sorted(others))}: not given to {key}"
                )
            else:
                record.add(text, "common", source)
        record.un_numbers = tuple(sorted({*record.un_numbers, *row.un_numbers}))
        record.formula = record.formula or row.formula
    return [records[key] for key in sorted(records)]


def _key_by_name(row: ListRow, owners: _Owners, claims: _Owners, report: LoadReport) -> str | None:
    """The substance of a row without a CAS number: the one its main names lead to, else a minted key."""
    found: set[str] = set()
    for text in row.mains:
        found |= _holders(text, owners, claims)
    if len(found) > 1:
        report.errors.append(f"{row.place}the names lead to {', '.join(sorted(found))}; give the CAS number")
        return None
    if not found:
        return chemical_key(None, row.mains[0])
    key = found.pop()
    leading = [text for text in row.mains if key in _holders(text, owners, claims)]
    if row.mains[0] not in leading:
        wanted = "the CAS number" if row.place else "--cas"
        report.warnings.append(
            f"{row.place}{row.mains[0]!r} extends {leading[0]} ({key}) since {leading[0]!r} is a name of it; "
            f"give {wanted} for another substance"
        )
    return key


def _holders(text: str, owners: _Owners, claims: _Owners) -> set[str]:
    normalised = normalise_name(text)[:512]
    return owners.get(normalised, set()) or claims.get(normalised, set())


def _others(text: str, key: str, owners: _Owners, claims: _Owners) -> set[str]:
    """Other substances that have or claim the name; none where it is this one's in the catalogue already."""
    normalised = normalise_name(text)[:512]
    known = owners.get(normalised, set())
    return set() if key in known else (known | claims.get(normalised, set())) - {key}


def remove_chemical(
    catalogue: Catalogue, which: str, *, name: str = "", dry_run: bool = False
) -> RemovalReport:
    """Take back what ``add_chemical`` gave a substance: all names, or one; the substance too if nothing is left.

    Names of lists and of the built-in repository stay, and are in the report's ``kept``.
    Raises SettingsError for an unknown or ambiguous substance and where nothing was added.
    """
    with catalogue.writing() as session:
        keys = find_chemicals(session, which)
        if len(keys) != 1:
            raise SettingsError(
                f"{which!r} may be any of {', '.join(keys)}; give the key" if keys else not_found(which)
            )
        (key,) = keys
        rows = session.scalars(select(ChemicalName).where(ChemicalName.key == key)).all()
        chosen = [row for row in rows if not name or row.normalised == normalise_name(name)[:512]]
        if name and not chosen:
            raise SettingsError(f"{key} has no name {name!r}")
        claims = Claims(session, {key})
        own = [row for row in chosen if claims.claims(USER, row)]
        provenance = session.get_one(Chemical, key).provenance
        if not own and (rows or provenance != USER):
            holders = sorted({holder_of(row.source) for row in chosen} or {holder_of(provenance)})
            raise SettingsError(
                f"{name or which!r} is of {' and '.join(holders)}, not of what was added; nothing to remove "
                "(--list takes back what a list brought, the built-in repository stays)"
            )
        return _remove(session, own, {key}, USER, claims, dry_run=dry_run)


def not_found(which: str) -> str:
    """Why no substance is called so, as a message: a CAS number with a wrong check digit is said to be one."""
    meant = right_check_digit(which)
    if meant:
        return f"{which!r} is not a CAS number: its check digit is wrong (it would be {meant})"
    return f"no chemical is called {which!r}"


def remove_list(
    catalogue: Catalogue,
    which: str | Path,
    *,
    protected: Sequence[Path] = (),
    dry_run: bool = False,
) -> RemovalReport:
    """Take back an import: the names that a list brought, and the substances of those alone.

    ``which``: the list's path; or its bare file name (where no such file is in the working
    directory) or the #id that its names show as source. ``protected``: lists that are not
    taken back. Raises SettingsError where no such list was imported, several are meant, or
    it is protected.
    """
    with catalogue.writing() as session:
        source = imported_source(session, str(which), protected)
        claims = Claims(session)
        keys = claims.keys(source)
        keys |= set(session.scalars(select(Chemical.key).where(Chemical.provenance == source)))
        query = select(ChemicalName)
        rows = [row for row in session.scalars(query) if claims.claims(source, row)]
        return _remove(session, rows, {row.key for row in rows} | keys, source, claims, dry_run=dry_run)


def _remove(
    session: Session,
    names: Sequence[ChemicalName],
    keys: Iterable[str],
    source: str,
    claims: Claims,
    *,
    dry_run: bool,
) -> RemovalReport:
    """Take back what one source says: names and values that nobody else claims go, built-in ones come back."""
    report = RemovalReport()
    given: dict[str, dict[str, str]] = {key: {} for key in sorted(keys)}
    for row in sorted(names, key=lambda row: (row.language, row.normalised)):
        own = claims.owns(source, row)
        claims.drop(row.key, source, NAME, row.name_id)
        if own and not claims.hand_over(row):
            given[row.key][row.name_id] = row.name
            session.delete(row)
    for key in given:
        claims.take_back_values(session.get_one(Chemical, key), source)
    session.flush()
    built_in: dict[str, ChemicalRecord] = {}
    restored: list[ChemicalRecord] = []
    for key, taken in given.items():
        sources = sorted(session.scalars(select(ChemicalName.source).where(ChemicalName.key == key)))
        chemical = session.get_one(Chemical, key)
        came_with_it = chemical.provenance in (source, LIST_ID.sub("", source))
        if not sources and came_with_it:
            session.delete(chemical)
            claims.forget(key)
            report.gone.append(key)
            continue
        chemical.formula = chemical.formula or claims.first(key, FORMULA)
        if chemical.provenance not in (PACKAGE, TABLE) and not set(sources) & set(_BUILT_IN):
            if came_with_it:
                chemical.provenance = owner(sources[0])
            continue
        built_in = built_in or {record.key: record for record in build_repository()}
        if key not in built_in:
            continue
        record = replace(built_in[key], hazards={})  # lists do not touch hazard flags
        users = any(map(is_users, sources)) or bool(claims.users(key))
        if users:
            record.names = [name for name in record.names if _name_id(key, name) in taken]
        else:  # what the list said beside names must not stay; what both named must not go
            chemical.formula, chemical.un_numbers = None, []
        if came_with_it or not users:
            chemical.provenance = record.provenance
        restored.append(record)
    session.flush()
    store_records(session, restored)
    session.flush()
    for key, taken in given.items():
        rows = session.scalars(
            select(ChemicalName)
            .where(ChemicalName.key == key)
            .order_by(ChemicalName.language, ChemicalName.normalised)
        ).all()
        stay = {row.name_id for row in rows}
        report.removed[key] = [text for name_id, text in taken.items() if name_id not in stay]
        report.kept[key] = [(row.name, holder_of(row.source)) for row in rows]
    if dry_run:
        session.rollback()
    return report


def _name_id(key: str, name: Name) -> str:
    return digest("name", key, name.language, normalise_name(name.text)[:512])


def find_chemicals(session: Session, text: str) -> list[str]:
    """Keys of the substances that a CAS number, key or exact name leads to, ordered."""
    cas = as_cas(text)
    found = session.get(Chemical, cas or text)
    if found is not None:
        return [found.key]
    query = select(ChemicalName.key).where(ChemicalName.normalised == normalise_name(text)[:512])
    return sorted(set(session.scalars(query)))

"""Hazard tables of the ``chemicals`` package as assertions with their own source, and the comparison.

Each table row of a substance that the corpus speaks of becomes a one-line
document of kind ``reference``, so that its values have a quote and a span like
any other. Estimates by formula (Suzuki, Crowl-Louvar, Serat) are not data and
are never loaded. Values of different sources are kept side by side, never
averaged or overwritten.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Document
from corpus.chemicals import package_data
from corpus.documents import RefinedDocument
from corpus.ids import digest, document_id, fingerprint, normalise_text, version_id
from corpus.names import valid_cas
from corpus.quantities import Quantity, parse_quantities
from corpus.stages import BaseStep, Item, Outcome, StageContext
from corpus.units import convert, parse_unit
from kg.extraction.model import Draft, Subject
from kg.schema import AliasKind, NodeLabel, Property, Relation, alias_key
from kg.settings import ExtractionSettings
from kg.steps import REFERENCE, REFERENCE_KIND, assertion_row, remove_assertions

_LICENCE = "data table of the Python package `chemicals` (MIT)"
_IARC = {"1": "1", "11": "2A", "12": "2B", "3": "3"}
_NTP = {"1": "known to be a human carcinogen", "2": "reasonably anticipated to be a human carcinogen"}
# rows that carry a substance's number but speak of something else ("Cobalt metal with tungsten carbide")
_OTHER_MATTER = re.compile(
    r"\b(?:mists?|containing|with|without|compounds?|and|or|mixtures?|exposures?|production|dusts?|fumes?|salts?|see|isomers?|powders?"
    r"|particles|fib(?:er|re)s?|crystalline|respirable|soluble|insoluble|as [A-Z][a-z]?)\b|;",
    re.IGNORECASE,
)
_TITLES = {
    "NFPA 497": "NFPA 497 (2008)",
    "IEC 60079-20-1": "IEC 60079-20-1 (2010)",
    "Ontario": "Ontario occupational exposure limits",
    "IARC": "IARC Monographs classification",
    "NTP": "NTP 13th Report on Carcinogens",
}


@dataclass(frozen=True)
class Fact:
    """One value of a table row. ``words`` state it; ``value`` is its form in an assertion."""

    relation: Relation
    label: NodeLabel
    words: str
    shown: str
    properties: Mapping[str, str]
    value: Mapping[str, Any]


@dataclass(frozen=True)
class ReferenceRow:
    """A row of a hazard table."""

    source: str
    cas: str
    name: str
    facts: tuple[Fact, ...]

    @property
    def identity(self) -> str:
        """Stable identity of its document."""
        return f"reference:{self.source}:{self.cas}"

    @property
    def text(self) -> str:
        """The one line: source, substance, values."""
        values = "; ".join(fact.words for fact in self.facts)
        return normalise_text(f"{_TITLES[self.source]}: {self.name}, CAS {self.cas}: {values}.")


def _number(value: float) -> str:
    return f"{value:.10g}"


def _plain(value: float, unit: str) -> dict[str, Any]:
    parsed = parse_unit(unit)
    si = convert(value, parsed) if parsed else None
    number, name = si or (None, "")
    return Quantity("=", value, value, parsed.label if parsed else unit, number, number, name).as_value()


def _measured(prop: Property, words: str, value: float, unit: str) -> Fact:
    shown = f"{_number(value)} {unit}"
    return Fact(
        Relation.HAS_MEASUREMENT, NodeLabel.MEASUREMENT, f"{words} {shown}", shown,
        {"property": prop.value}, _plain(value, unit),
    )  # fmt: skip


def _flammability(path: str, source: str) -> Iterator[ReferenceRow]:
    with (package_data() / "Safety" / path).open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            facts = []
            for column, prop, words in (
                ("T_flash", Property.FLASH_POINT, "flash point"),
                ("T_autoignition", Property.AUTOIGNITION_TEMPERATURE, "autoignition temperature"),
            ):
                if (value := _float(row.get(column))) is not None:
                    facts.append(_measured(prop, words, value, "K"))
            for column, prop, words in (
                ("LFL", Property.LOWER_EXPLOSIVE_LIMIT, "lower flammability limit"),
                ("UFL", Property.UPPER_EXPLOSIVE_LIMIT, "upper flammability limit"),
            ):
                if (value := _float(row.get(column))) is not None:
                    facts.append(_measured(prop, words, float(_number(value * 100)), "%"))
            name = (row.get("Name") or row.get("Names") or "").split(";")[0].strip()
            yield ReferenceRow(source, row["CAS"].strip(), name, tuple(facts))


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text and text.strip() else None
    except ValueError:
        return None


def _ontario() -> Iterator[ReferenceRow]:
    path = package_data() / "Safety" / "Ontario Exposure Limits.json"
    for cas, row in json.loads(path.read_text(encoding="utf-8")).items():
        facts = []
        for column, kind in (("TWA", "TWA"), ("STEL", "STEL"), ("Ceiling", "CEILING")):
            limit = _limit(row.get(f"{column} (ppm)"), row.get(f"{column} (mg/m^3)"))
            if limit is not None:
                value, unit = limit
                shown = f"{_number(value)} {unit}"
                facts.append(
                    Fact(Relation.HAS_LIMIT, NodeLabel.EXPOSURE_LIMIT, f"{kind} {shown}", shown,
                         {"kind": kind, "jurisdiction": "CA-ON"}, _plain(value, unit))
                )  # fmt: skip
        yield ReferenceRow("Ontario", cas, str(row.get("Name") or "").split("[")[0].strip(), tuple(facts))


def _limit(ppm: float | None, mass: float | None) -> tuple[float, str] | None:
    """The figure as published: the package computes the other one, which shows in its many digits."""
    given = [(value, unit) for value, unit in ((ppm, "ppm"), (mass, "mg/m³")) if value is not None]
    return min(given, key=lambda pair: len(repr(pair[0])), default=None)


def _carcinogens(path: str, source: str, column: str, words: Mapping[str, str]) -> Iterator[ReferenceRow]:
    with (package_data() / "Safety" / path).open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            listed = words.get((row.get(column) or "").strip())
            name = (row.get("description") or row.get("Chemical") or "").split(" (see")[0].strip()
            facts: tuple[Fact, ...] = ()
            if listed:
                text = f"{source} {listed}" if source == "IARC" else listed
                shown = f"group {listed}" if source == "IARC" else listed
                facts = (
                    Fact(Relation.HAS_TOXICITY, NodeLabel.TOXICITY, shown, shown,
                         {"endpoint": "carcinogenicity"}, {"text": text}),
                )  # fmt: skip
            yield ReferenceRow(source, (row.get("CAS") or "").strip(), name, facts)


@cache
def reference_rows() -> Mapping[tuple[str, str], ReferenceRow]:
    """All usable rows by (source, CAS). Rows without value or with a wrong CAS number are left out."""
    rows: dict[tuple[str, str], ReferenceRow] = {}
    tables: Iterable[Iterator[ReferenceRow]] = (
        _flammability("NFPA 497 2008.tsv", "NFPA 497"),
        _flammability("IS IEC 60079-20-1 2010.tsv", "IEC 60079-20-1"),
        _ontario(),
        _carcinogens("IARC Carcinogen Database.tsv", "IARC", "group", _IARC),
        _carcinogens("National Toxicology Program Carcinogens.tsv", "NTP", "Listing", _NTP),
    )
    for table in tables:
        for row in table:
            if row.facts and row.name and valid_cas(row.cas) and not _OTHER_MATTER.search(row.name):
                rows.setdefault((row.source, row.cas), row)
    return rows


def reference_document(row: ReferenceRow) -> RefinedDocument:
    """The one-line document of a row; it is its own page."""
    identity = document_id(row.identity)
    return RefinedDocument(
        document_id=identity,
        version_id=version_id(identity, row.text),
        url=row.identity,
        title=f"{_TITLES[row.source]}: {row.name}",
        language="en",
        source="reference",
        kind=REFERENCE_KIND,
        text=row.text,
        cleaned_text=row.text,
        licence=_LICENCE,
    )


def reference_assertions(row: ReferenceRow) -> list[Assertion]:
    """The row's values, its name and its CAS number as assertions, proved like any other."""
    document = reference_document(row)
    lead = row.text.index(": ") + 2
    cas_end = row.text.index(row.cas) + len(row.cas)
    subject = Subject(row.name, (row.name,), row.cas)
    drafts = [
        Draft(Relation.HAS_ALIAS, row.cas, NodeLabel.ALIAS, lead, cas_end,
              object_key=alias_key(row.cas, AliasKind.CAS), properties={"kind": AliasKind.CAS.value})
    ]  # fmt: skip
    position = cas_end
    for fact in row.facts:
        start = row.text.index(fact.words, position)
        position = start + len(fact.words)
        drafts.append(
            Draft(
                fact.relation,
                fact.shown,
                fact.label,
                start,
                position,
                properties=fact.properties,
                value=fact.value,
            )
        )
    return [assertion_row(document, subject, draft, REFERENCE_KIND) for draft in drafts]


class ReferenceStep(BaseStep):
    """Reference rows of the substances that documents give a CAS number for. One item per row."""

    def __init__(self, settings: ExtractionSettings) -> None:
        super().__init__(name=REFERENCE, version="1", batch_size=None)
        self.settings = settings

    def plan(self, ctx: StageContext) -> list[Item]:
        """Rows of the present CAS numbers, keyed on their text."""
        if not self.settings.reference:
            return []
        with ctx.catalogue.reading() as session:
            present = present_numbers(session)
        rows = [
            row
            for (source, cas), row in reference_rows().items()
            if cas in present and source in self.settings.reference_sources
        ]
        items = [
            Item(document_id(row.identity), fingerprint(self.name, self.version, [row.text])) for row in rows
        ]
        return sorted(items, key=lambda item: item.id)

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Store the row's document and assertions."""
        row = _by_id()[item.id]
        assertions = reference_assertions(row)
        document = reference_document(row)

        def write(session: Session) -> None:
            remove_assertions(session, [item.id])
            session.merge(_document_row(row, document))
            session.add_all(assertions)

        kept = sum(a.state == "kept" for a in assertions)
        return Outcome(write=write, counts={"reference rows": 1, "kept": kept})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Rows of substances that no document speaks of any more."""
        remove_assertions(session, item_ids)
        for at in range(0, len(item_ids), 500):
            session.execute(delete(Document).where(Document.document_id.in_(list(item_ids[at : at + 500]))))


@cache
def _by_id() -> Mapping[str, ReferenceRow]:
    return {document_id(row.identity): row for row in reference_rows().values()}


def present_numbers(session: Session) -> set[str]:
    """CAS numbers that kept assertions of documents give for their subject."""
    query = select(Assertion.object).where(
        Assertion.state == "kept",
        Assertion.relation == Relation.HAS_ALIAS.value,
        Assertion.polarity == "positive",
        Assertion.extractor != REFERENCE_KIND,
        Assertion.object_key.like(f"{AliasKind.CAS.value}:%"),
    )
    return set(session.scalars(query))


def _document_row(row: ReferenceRow, document: RefinedDocument) -> Document:
    length = len(document.text)
    return Document(
        document_id=document.document_id,
        page_id="",
        source=document.source,
        url=document.url,
        identity=row.identity,
        kind=document.kind,
        title=document.title,
        language=document.language,
        licence=document.licence,
        state="kept",
        cleaned_text=document.text,
        cleaned_hash=digest("text", document.text),
        version_id=document.version_id,
        text=document.text,
        blocks=[{"start": 0, "end": length, "cleaned_start": 0, "cleaned_end": length, "path": ""}],
        sections=[{"start": 0, "end": length, "heading": "", "level": 0, "sds": None}],
    )


# --- comparison ---------------------------------------------------------------------

Comparison = Literal["agree", "differ", "conflict"]


@dataclass(frozen=True)
class Tolerance:
    """Largest difference that is still agreement, and that is still tolerated; in SI units, or as shares."""

    agree: float
    differ: float
    relative: bool


# How far apart two sources may be, in multiples of the settings' temperature and relative tolerance:
# a self-ignition temperature hangs on the vessel, a molar mass on nothing.
_WIDTHS: Mapping[str, float] = {
    Property.MELTING_POINT: 0.6, Property.BOILING_POINT: 0.6, Property.CRITICAL_TEMPERATURE: 0.4,
    Property.AUTOIGNITION_TEMPERATURE: 4.0, Property.DECOMPOSITION_TEMPERATURE: 4.0,
    Property.DENSITY: 0.1, Property.RELATIVE_DENSITY: 0.2, Property.VAPOUR_DENSITY: 0.5,
    Property.MOLAR_MASS: 0.005, Property.CRITICAL_PRESSURE: 0.2, Property.VAPOUR_PRESSURE: 1.5,
    Property.VISCOSITY: 1.5, Property.SOLUBILITY_IN_WATER: 2.0, Property.HEAT_OF_COMBUSTION: 0.2,
    Property.MINIMUM_IGNITION_ENERGY: 2.0, Property.ODOUR_THRESHOLD: 9.0,
    "limit": 0.1, "toxicity": 5.0,
}  # fmt: skip
_ABSOLUTE: Mapping[str, tuple[float, float]] = {
    Property.PH: (0.05, 0.5), Property.PKA: (0.05, 0.3), Property.LOG_KOW: (0.05, 0.3),
    Property.REFRACTIVE_INDEX: (0.0005, 0.003),
}  # fmt: skip


def tolerance(what: str, unit: str, settings: ExtractionSettings) -> Tolerance:
    """The tolerance of a property ("limit" and "toxicity" for those), ``unit`` being its SI unit."""
    if what in _ABSOLUTE:
        return Tolerance(*_ABSOLUTE[what], relative=False)
    width = _WIDTHS.get(what, 1.0)
    if unit == "K":
        return Tolerance(0.5, max(0.5, settings.temperature_tolerance_k * width), relative=False)
    most = settings.relative_tolerance * width
    return Tolerance(min(0.001, most), most, relative=True)


# What a condition is where a source does not state it.
_USUAL: Mapping[str, Mapping[str, str]] = {
    Property.FLASH_POINT: {"method": "closed cup"},
    Property.BOILING_POINT: {"pressure": "101.3 kPa"},
    Property.MELTING_POINT: {"pressure": "101.3 kPa"},
    Property.AUTOIGNITION_TEMPERATURE: {"pressure": "101.3 kPa"},
    Property.LOWER_EXPLOSIVE_LIMIT: {"basis": "volume"},
    Property.UPPER_EXPLOSIVE_LIMIT: {"basis": "volume"},
}


def conditions_of(what: str, *stated: Mapping[str, Any]) -> dict[str, str]:
    """Conditions in one form: figures in SI units, the usual ones left out; "" values too."""
    usual = {name: _canonical(text) for name, text in _USUAL.get(what, {}).items()}
    found = {name: _canonical(str(text)) for part in stated for name, text in part.items() if text}
    return {name: text for name, text in sorted(found.items()) if usual.get(name) != text}


@cache
def _canonical(text: str) -> str:
    read = parse_quantities(text)
    if len(read) == 1 and read[0].si_minimum is not None and read[0].si_minimum == read[0].si_maximum:
        return f"{read[0].si_minimum:.3g} {read[0].si_unit}"
    return " ".join(text.casefold().split())


@dataclass(frozen=True)
class Compared:
    """How two values stand to each other; ``difference`` in SI units, or as a share where the tolerance is one."""

    verdict: Comparison
    difference: float | None = None
    tolerance: Tolerance | None = None
    unit: str = ""


def compare(
    value: Mapping[str, Any],
    reference: Mapping[str, Any],
    settings: ExtractionSettings,
    what: str = "",
) -> Comparison | None:
    """The verdict of ``compared`` alone, of values with the same statement conditions."""
    found = compared(value, reference, settings, what)
    return found.verdict if found else None


def compared(
    one: Mapping[str, Any], two: Mapping[str, Any], settings: ExtractionSettings, what: str = ""
) -> Compared | None:
    """Two values of one property of one substance, in SI units.

    ``agree``: within half a kelvin or a thousandth; ``differ``: within the property's
    tolerance; ``conflict``: beyond it. A bound or a range only conflicts, by the gap
    between it and the other value. None where nothing can be said: other conditions,
    a free remark on one of them, other kinds of unit, a bound that the other value meets.
    """
    conditions = [conditions_of(what, value.get("conditions") or {}) for value in (one, two)]
    if conditions[0] != conditions[1] or any("note" in found for found in conditions):
        return None
    a, b = _interval(one), _interval(two)
    if a is None or b is None or a[2] != b[2]:
        return _classes(str(one.get("text") or ""), str(two.get("text") or ""))
    limits = tolerance(what, a[2], settings)
    if math.isinf(a[0]) or math.isinf(a[1]) or math.isinf(b[0]) or math.isinf(b[1]):
        ends = [(max(a[0], b[0]), min(a[1], b[1]))]
        if ends[0][0] <= ends[0][1]:
            return None
    elif (a[0] == a[1]) == (b[0] == b[1]):
        ends = [(a[0], b[0]), (a[1], b[1])]
    else:  # a value and a range
        ends = [(max(a[0], b[0]), min(a[1], b[1]))]
        if ends[0][0] <= ends[0][1]:
            return None
    bounded = len(ends) == 1
    difference = max(_difference(*pair, limits) for pair in ends)
    if difference > limits.differ:
        overlap = max(a[0], b[0]) <= min(a[1], b[1])
        return None if overlap and not bounded else Compared("conflict", difference, limits, a[2])
    if bounded:
        return None
    return Compared("agree" if difference <= limits.agree else "differ", difference, limits, a[2])


def _difference(one: float, two: float, limits: Tolerance) -> float:
    size = abs(one - two)
    scale = max(abs(one), abs(two))
    return size / scale if limits.relative and scale else size


def _interval(value: Mapping[str, Any]) -> tuple[float, float, str] | None:
    """Least and greatest value in SI units; open ends are infinite. Numbers without unit are their own."""
    si = value.get("si") or {}
    low, high, unit = si.get("min"), si.get("max"), str(si.get("unit") or "")
    if low is None and high is None and not value.get("unit"):
        low, high = value.get("min"), value.get("max")
    if low is None and high is None:
        return None
    operator = value.get("operator")
    if operator in {"=", "~"} and (low is None or high is None):
        return None
    return (-math.inf if low is None else float(low), math.inf if high is None else float(high), unit)


_SCHEMES = ("IARC",)


def _classes(one: str, two: str) -> Compared | None:
    """Two classes of one scheme ("IARC 2A", "IARC 1")."""
    for scheme in _SCHEMES:
        if one.startswith(f"{scheme} ") and two.startswith(f"{scheme} "):
            return Compared("agree" if one == two else "conflict")
    return None

"""Where sources disagree: values of one substance and property, compared pairwise, both kept.

Only like is compared with like: one property (or limit kind and jurisdiction, or
endpoint, species and route), the same conditions, SI units. Nothing is averaged,
overwritten or preferred; a report names both values with their sources and words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Document
from corpus.ids import canonical_json, digest
from kg.reference import Compared, compared, conditions_of
from kg.schema import NodeLabel, Polarity
from kg.settings import ExtractionSettings

_LABELS = (NodeLabel.MEASUREMENT, NodeLabel.EXPOSURE_LIMIT, NodeLabel.TOXICITY)
_TITLE = 40  # characters of a title in a list
_VALUE = ("operator", "min", "max", "unit", "text", "si")


@dataclass(frozen=True)
class Stated:
    """A value as one document states it. ``others``: further documents that state the same."""

    assertion: str
    shown: str
    value: Mapping[str, Any]
    conditions: Mapping[str, Any]
    document: str
    title: str
    url: str
    kind: str
    quote: str
    page_quote: str
    start: int
    end: int
    others: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The value as written, with the unit that its place gave it (the label, the head of a column)."""
        bare = not any(c.isalpha() or c in "%°℃℉‰" for c in self.shown)
        return f"{self.shown}{unit_words(self.value.get('unit'))}" if bare else self.shown

    @property
    def in_si(self) -> str:
        """The value in SI units, "" where it has none."""
        si = self.value.get("si") or {}
        ends = [f"{si[end]:g}" for end in ("min", "max") if si.get(end) is not None]
        return f"{'–'.join(dict.fromkeys(ends))}{unit_words(si.get('unit'))}" if ends else ""

    def sourced(self, *, in_si: bool = False) -> str:
        """The value with the title of the page or table that states it."""
        title = " ".join((self.title or self.url).split())
        shown = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
        same = f" = {self.in_si}" if in_si and self.in_si and self.in_si != self.words else ""
        return f"{self.words}{same} ({shown})"

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the value as written, its unit and its SI form, the source and its words."""
        si = self.value.get("si") or {}
        return {
            "value": self.shown, "operator": self.value.get("operator", ""), "min": self.value.get("min"),
            "max": self.value.get("max"), "unit": self.value.get("unit") or "", "si": dict(si),
            "text": self.value.get("text", ""), "conditions": dict(self.conditions),
            "source": {"document": self.document, "title": self.title, "url": self.url, "kind": self.kind},
            "quote": self.quote, "page_quote": self.page_quote, "start": self.start, "end": self.end,
            "assertion": self.assertion, "also_in": list(self.others),
        }  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """Two values that were compared."""

    subject: str
    what: str
    detail: Mapping[str, str]
    conditions: Mapping[str, str]
    result: Compared
    left: Stated
    right: Stated

    @property
    def id(self) -> str:
        """Hangs on the two statements only."""
        return digest("conflict", *sorted((self.left.assertion, self.right.assertion)))

    @property
    def said(self) -> str:
        """Difference and tolerance, for people."""
        limits, difference = self.result.tolerance, self.result.difference
        if limits is None or difference is None:
            return "the classes differ" if self.result.verdict == "conflict" else "the same class"
        if limits.relative:
            return f"{100 * difference:.3g} % apart, tolerance {100 * limits.differ:.3g} %"
        unit = unit_words(self.result.unit)
        return f"{difference:.4g}{unit} apart, tolerance {limits.differ:g}{unit}"

    @property
    def sides(self) -> str:
        """Both values with their sources, in SI too where their units differ."""
        units = {str(side.value.get("unit") or "") for side in (self.left, self.right)}
        return " | ".join(side.sourced(in_si=len(units) > 1) for side in (self.left, self.right))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        limits = self.result.tolerance
        return {
            "id": self.id, "verdict": self.result.verdict, "substance": self.subject, "what": self.what,
            "detail": dict(self.detail), "conditions": dict(self.conditions),
            "difference": self.result.difference, "tolerance": limits.differ if limits else None,
            "relative": limits.relative if limits else None, "si_unit": self.result.unit,
            "values": [self.left.as_dict(), self.right.as_dict()],
        }  # fmt: skip


def unit_words(unit: Any) -> str:
    """A unit behind its number, with the blank between them; "" for a number without one (written "1")."""
    return f" {unit}" if unit and str(unit) not in {"1", "dimensionless"} else ""


def find(
    session: Session,
    settings: ExtractionSettings,
    *,
    subjects: Collection[str] = (),
    verdicts: Collection[str] = ("conflict",),
) -> Iterator[Finding]:
    """Comparisons between different documents with one of the verdicts, by substance, property and id.

    ``subjects``: only these keys. Mixtures are left out: two pages seldom mean one composition.
    """
    group: list[tuple[Assertion, Document]] = []
    for pair in _rows(session, subjects):
        if group and group[0][0].subject_key != pair[0].subject_key:
            yield from _of_subject(group, settings, verdicts)
            group = []
        group.append(pair)
    yield from _of_subject(group, settings, verdicts)


def _rows(session: Session, subjects: Collection[str]) -> Iterator[tuple[Assertion, Document]]:
    query = (
        select(Assertion, Document)
        .join(Document, Document.document_id == Assertion.document_id)
        .where(
            Assertion.state == "kept",
            Assertion.polarity == Polarity.POSITIVE.value,
            Assertion.object_label.in_([label.value for label in _LABELS]),
            Assertion.subject_key != "",
            Assertion.subject_key.not_like("mixture:%"),
            Document.state == "kept",
            Document.version_id == Assertion.version_id,
        )
        .order_by(Assertion.subject_key, Assertion.assertion_id)
    )
    if subjects:
        query = query.where(Assertion.subject_key.in_(sorted(subjects)))
    for row in session.execute(query).yield_per(1000):
        yield row[0], row[1]


def _of_subject(
    rows: Sequence[tuple[Assertion, Document]], settings: ExtractionSettings, verdicts: Collection[str]
) -> Iterator[Finding]:
    groups: dict[str, dict[str, list[tuple[Assertion, Document]]]] = defaultdict(lambda: defaultdict(list))
    heads: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {}
    for row, document in rows:
        what, detail = _topic(row)
        value_conditions = row.value.get("conditions") or {}
        conditions = conditions_of(what, value_conditions, row.conditions)
        if not what or "note" in conditions:  # a free remark cannot be compared
            continue
        topic = canonical_json([what, detail, conditions])
        heads[topic] = (what, detail, conditions)
        value = canonical_json({name: row.value[name] for name in _VALUE if name in row.value})
        groups[topic][value].append((row, document))
    for topic in sorted(groups):
        what, detail, conditions = heads[topic]
        found = [
            Finding(rows[0][0].subject_key, what, detail, conditions, result, *sides)
            for one, two in combinations([groups[topic][value] for value in sorted(groups[topic])], 2)
            if (sides := _sides(one, two))
            and (result := compared(_bare(one), _bare(two), settings, _kind(what)))
            and result.verdict in verdicts
        ]
        yield from sorted(found, key=lambda finding: finding.id)


def _bare(same: Sequence[tuple[Assertion, Document]]) -> dict[str, Any]:
    """The value alone: conditions are those of the group."""
    return {name: part for name, part in same[0][0].value.items() if name != "conditions"}


def _kind(what: str) -> str:
    return what.split(" ", maxsplit=1)[0] if what.startswith(("limit ", "toxicity ")) else what


def _topic(row: Assertion) -> tuple[str, dict[str, str]]:
    """What is measured, with what tells one such value from another."""
    properties = row.properties
    match row.object_label:
        case NodeLabel.MEASUREMENT:
            return str(properties.get("property", "")), {}
        case NodeLabel.EXPOSURE_LIMIT:
            kind, names = f"limit {properties.get('kind', '')}", ("jurisdiction", "year")
        case _:
            kind, names = f"toxicity {properties.get('endpoint', '')}", ("species", "route")
    return kind, {name: str(properties[name]) for name in names if properties.get(name)}


def _sides(
    one: Sequence[tuple[Assertion, Document]], two: Sequence[tuple[Assertion, Document]]
) -> tuple[Stated, Stated] | None:
    """The two values by two different documents, None where a single one states both."""
    for first in one:
        for second in two:
            if first[0].document_id != second[0].document_id:
                return _stated(first, one), _stated(second, two)
    return None


def _stated(pair: tuple[Assertion, Document], same: Sequence[tuple[Assertion, Document]]) -> Stated:
    row, document = pair
    others = {other.document_id for other, _ in same} - {row.document_id}
    return Stated(
        row.assertion_id, row.object, row.value, {**row.conditions, **(row.value.get("conditions") or {})},
        row.document_id, document.title, document.url, document.kind, row.quote, row.page_quote, row.start, row.end,
        tuple(sorted(others)),
    )  # fmt: skip

"""Plain data that extraction passes around: drafts of assertions and the subject of a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kg.schema import DropReason, Modality, NodeLabel, Polarity, Relation


@dataclass(frozen=True)
class Subject:
    """What a document is about. ``names`` are those it gives; ``cas`` only where it gives one.

    ``names`` starts with the preferred name, as written. A mixture or solution
    carries no CAS number of its own: those that its page names belong to components.
    """

    name: str
    names: tuple[str, ...] = ()
    cas: str = ""
    mixture: bool = False

    @property
    def label(self) -> NodeLabel:
        """Substance or Mixture."""
        return NodeLabel.MIXTURE if self.mixture else NodeLabel.SUBSTANCE


@dataclass(frozen=True)
class Draft:
    """A candidate assertion over ``text[start:end]``; ``subject`` "" means the document's own.

    ``rejected`` is set where the reader already knows that it must not be kept
    (an explicit "no data", an identifier with a wrong check digit). ``header_span``:
    where a column's header gives the unit or the condition that its cells leave out.
    ``turned``: a model gave the ends the wrong way round.
    """

    relation: Relation
    object: str
    object_label: NodeLabel
    start: int
    end: int
    subject: str = ""
    object_key: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    value: Mapping[str, Any] = field(default_factory=dict)
    polarity: Polarity = Polarity.POSITIVE
    modality: Modality = Modality.IS
    conditions: Mapping[str, str] = field(default_factory=dict)
    section: int | None = None
    confidence: float = 1.0
    rejected: DropReason | None = None
    header_span: tuple[int, int] | None = None
    turned: bool = False


@dataclass(frozen=True)
class Entry:
    """A label with its value, wherever it stood: table row, definition list, sub-heading, "label: value".

    ``label`` is in its normal form; ``label_text`` as written without numbering
    (its brackets may hold a unit); ``start``/``end`` are the value's span and
    ``label_start`` where the label begins.
    """

    label: str
    label_text: str
    label_start: int
    start: int
    end: int
    sds: int | None = None
    heading: str = ""


@dataclass(frozen=True)
class Cell:
    """A table cell without its padding."""

    start: int
    end: int


@dataclass(frozen=True)
class Grid:
    """A table with a header row and rows of cells below it.

    ``kind``: "rows" (each row a record), "properties" (a property a row, a
    circumstance a column), "substances" (a substance a row, a property a column) or
    "exposures" (a safety card: a route of exposure or a hazard a row, advice in columns).
    """

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sds: int | None = None
    heading: str = ""
    caption: str = ""
    kind: str = "rows"


@dataclass(frozen=True)
class Sentence:
    """A sentence of running text; ``label`` is that of the entry it belongs to, if any."""

    start: int
    end: int
    sds: int | None = None
    heading: str = ""
    label: str = ""


@dataclass(frozen=True)
class Reading:
    """A document taken apart. ``shadow`` has the length of ``text``: plain width, simplified, LD50 for LD₅₀."""

    text: str
    shadow: str
    language: str
    document_id: str = ""
    title: str = ""
    entries: tuple[Entry, ...] = ()
    grids: tuple[Grid, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    headings: tuple[str, ...] = ()

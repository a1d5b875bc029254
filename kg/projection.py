"""From the catalogue to graph rows: what the graph should hold for given documents.

Pure functions on catalogue rows; nothing here talks to a server. Model
(knowledge-graph design, section 1): every kept assertion is a node linked
SUBJECT, OBJECT and STATED_IN; typed relations are derived from the positive
ones, unique per (type, ends), with a support count and assertion ids. Negative
statements are nodes and never edges.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeVarTuple, cast

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, load_only

from corpus.catalogue.tables import Assertion, Document, Entity, EntityAlias
from corpus.ids import canonical_json, digest
from corpus.sections import SdsSection
from kg.schema import RELATIONS, SCHEMA_VERSION, NodeLabel, Polarity, Relation, RelationSpec

Ts = TypeVarTuple("Ts")
Row = dict[str, Any]
Link = tuple[Relation, NodeLabel, NodeLabel]
Edge = tuple[Relation, NodeLabel, str, NodeLabel, str]
PROJECTION_VERSION = "2"
_BESIDE = frozenset({"hash", "run"})
_OFTEN = 8  # an object that so many assertions speak of is remembered
_PARAMETERS = 500  # bound parameters of one IN (…), below every database's limit


@dataclass
class GraphRows:
    """Rows by label and by (type, start label, end label), each keyed so that a repeat is the same row."""

    nodes: dict[NodeLabel, dict[str, Row]] = field(default_factory=lambda: defaultdict(dict))
    links: dict[Link, dict[tuple[str, str], Row]] = field(default_factory=lambda: defaultdict(dict))
    skipped: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def node(self, label: NodeLabel, key: str, props: Mapping[str, Any]) -> None:
        """Add a node; empty properties are left out (a server stores no nulls)."""
        key = storable(key)
        self.nodes[label][key] = _row({"key": key, **props}) | {"key": key}

    def link(self, link: Link, start: str, end: str, props: Mapping[str, Any] | None = None) -> None:
        """Add a relationship between nodes given by key."""
        start, end = storable(start), storable(end)
        row = _row(props) if props else _PLAIN
        self.links[link][start, end] = {**row, "start": start, "end": end}


def _row(props: Mapping[str, Any]) -> Row:
    kept = {name: storable(value) for name, value in sorted(props.items()) if value not in (None, "", [], {})}
    row_hash = content_hash(kept)
    return {"hash": row_hash, "props": {**kept, "hash": row_hash}}


def content_hash(props: Mapping[str, Any]) -> str:
    """Hash of a row's properties, as rows carry it: whoever reads them back can tell whether they are the same.

    The hash itself and the id of the run are left out.
    """
    return digest("row", canonical_json({n: v for n, v in props.items() if n not in _BESIDE}))


def storable(value: Any) -> Any:
    """The value as a server can hold it: half of a surrogate pair is no character and becomes U+FFFD."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    return value


_PLAIN = _row({})  # most relationships have no properties


@dataclass(frozen=True)
class Statement:
    """A kept assertion with resolved labels: what the graph is built from."""

    row: Assertion
    subject_label: NodeLabel
    object_label: NodeLabel

    @property
    def relation(self) -> Relation:
        """Relation of the closed vocabulary."""
        return Relation(self.row.relation)

    @property
    def edge(self) -> Edge:
        """The derived relationship it supports; a symmetric one is stored once, ends ordered by key."""
        relation = self.relation
        start = (self.subject_label, self.row.subject_key)
        end = (self.object_label, self.row.object_key)
        if RELATIONS[relation].symmetric and start[0] == end[0] and start[1] > end[1]:
            start, end = end, start
        return (relation, *start, *end)


def statements(
    rows: Iterable[Assertion], entities: Mapping[str, Entity]
) -> tuple[list[Statement], dict[str, int]]:
    """Assertions that fit the vocabulary, and counts of those left out by reason."""
    found: list[Statement] = []
    skipped: dict[str, int] = defaultdict(int)
    for row in rows:
        reason = misfit(row.relation, row.subject_key, row.object_key, row.object_label)
        if reason:
            skipped[reason] += 1
            continue
        found.append(Statement(row, resolved_label(row.subject_key, entities), NodeLabel(row.object_label)))
    return found, skipped


def resolved_label(key: str, entities: Mapping[str, Entity]) -> NodeLabel:
    """Label of a subject: a mixture where its entity or its key says so, a substance otherwise."""
    entity = entities.get(key)
    if entity is not None and entity.label == NodeLabel.MIXTURE:
        return NodeLabel.MIXTURE
    return NodeLabel.MIXTURE if entity is None and key.startswith("mixture:") else NodeLabel.SUBSTANCE


def misfit(relation: str, subject_key: str, object_key: str, object_label: str) -> str:
    """Why a statement has no place in the graph, or ""."""
    spec = cast(Mapping[str, RelationSpec], RELATIONS).get(relation)  # a relation is its name
    if spec is None:
        return "unknown_relation"
    if not subject_key or not object_key:
        return "unresolved_end"
    if object_label not in spec.objects:
        return "bad_object_label"
    if subject_key == object_key:
        return "self_loop"
    return ""


# --- reading the catalogue ------------------------------------------------------


def graph_documents(session: Session) -> list[str]:
    """Ids of the kept documents that have kept assertions, in order."""
    query = kept(select(Assertion.document_id)).distinct().order_by(Assertion.document_id)
    return list(session.scalars(query))


def _chunks(values: Iterable[str]) -> Iterable[list[str]]:
    ordered = sorted(set(values))
    for at in range(0, len(ordered), _PARAMETERS):
        yield ordered[at : at + _PARAMETERS]


def kept_assertions(session: Session, documents: Iterable[str]) -> list[Assertion]:
    """Kept assertions on the present version of kept documents, ordered by id."""
    rows: list[Assertion] = []
    for ids in _chunks(documents):
        rows += session.scalars(kept(select(Assertion)).where(Assertion.document_id.in_(ids)))
    return sorted(rows, key=lambda row: row.assertion_id)


def entities_by_key(session: Session, keys: Iterable[str]) -> dict[str, Entity]:
    """Entity rows of the keys, where there are any."""
    found: dict[str, Entity] = {}
    for part in _chunks(keys):
        found |= {row.key: row for row in session.scalars(select(Entity).where(Entity.key.in_(part)))}
    return found


def aliases_by_key(session: Session, keys: Iterable[str]) -> dict[str, list[str]]:
    """Unambiguous names of entities, sorted."""
    found: dict[str, set[str]] = defaultdict(set)
    for part in _chunks(keys):
        for row in session.scalars(
            select(EntityAlias).where(EntityAlias.key.in_(part), EntityAlias.ambiguous.is_(False))
        ):
            found[row.key].add(row.text)
    return {key: sorted(texts) for key, texts in found.items()}


# what a derived relationship is made of
_BACKING = (
    Assertion.document_id, Assertion.subject_key, Assertion.relation, Assertion.object_label,
    Assertion.object_key, Assertion.polarity, Assertion.modality, Assertion.conditions,
)  # fmt: skip


def backing(session: Session, edges: Iterable[Edge]) -> list[Assertion]:
    """Kept assertions of *all* documents that speak of both ends of one of the edges, ordered by id.

    Found by subject, of which there are far fewer statements than of a shared object such as a hazard
    code. A symmetric relationship is stored once whichever end was the subject, so both are looked for.
    """
    pairs: set[tuple[str, str]] = set()
    for relation, _, start, _, end in edges:
        pairs.add((start, end))
        if RELATIONS[relation].symmetric:
            pairs.add((end, start))
    rows: list[Assertion] = []
    query = kept(select(Assertion)).options(load_only(*_BACKING, raiseload=True))
    for part in _chunks(subject for subject, _ in pairs):
        rows += (
            row
            for row in session.scalars(query.where(Assertion.subject_key.in_(part)))
            if (row.subject_key, row.object_key) in pairs
        )
    return sorted(rows, key=lambda row: row.assertion_id)


class Described:
    """What all kept assertions together say of an object node (its properties).

    Reading them is linear in their number, and some objects (a hazard code, an extinguishing agent) have
    a share of all assertions: what was found of those is remembered, so that loading many documents
    group by group stays linear. The memory is bounded. Use one object as long as the catalogue does not
    change, and no longer.
    """

    def __init__(self, remembered: int = 20_000) -> None:
        self.remembered = remembered
        self.read = 0
        """Assertions read so far."""
        self._known: OrderedDict[tuple[NodeLabel, str], Row] = OrderedDict()

    def of(self, session: Session, ends: Iterable[tuple[NodeLabel, str]]) -> dict[tuple[NodeLabel, str], Row]:
        """Properties by (label, key); an end that nothing speaks of is left out."""
        wanted = set(ends)
        found = {end: self._known[end] for end in wanted if end in self._known}
        for end in found:
            self._known.move_to_end(end)
        labels: dict[str, list[NodeLabel]] = defaultdict(list)
        for label, key in sorted(wanted - set(found)):
            labels[key].append(label)
        columns = select(
            Assertion.object_key,
            Assertion.properties,
            Assertion.value,
            Assertion.subject_key,
            Assertion.relation,
            Assertion.object_label,
        )
        for part in _chunks(labels):
            query = kept(columns).where(Assertion.object_key.in_(part))
            ordered = query.order_by(Assertion.object_key, Assertion.assertion_id)
            for key, rows in groupby(session.execute(ordered).yield_per(1000), lambda row: str(row[0])):
                props: dict[NodeLabel, Row] = {}
                n = 0
                for row in rows:
                    n += 1
                    if misfit(row.relation, row.subject_key, row.object_key, row.object_label):
                        continue
                    for label in labels[key]:
                        known = props.setdefault(label, {})
                        add_stated(known, label, row.properties, row.value, row.subject_key)
                self.read += n
                found |= {(label, key): known for label, known in props.items()}
                if n >= _OFTEN:
                    self._known |= {(label, key): known for label, known in props.items()}
            while len(self._known) > self.remembered:
                self._known.popitem(last=False)
        return found


def kept(query: Select[*Ts]) -> Select[*Ts]:
    """Only kept assertions on the present version of kept documents."""
    return query.join(Document, Document.document_id == Assertion.document_id).where(
        Assertion.state == "kept", Document.state == "kept", Document.version_id == Assertion.version_id
    )


def contribution_hash(session: Session, documents: Sequence[str]) -> dict[str, str]:
    """Content hash of what each document puts into the graph (assertions, ends, names, its own data)."""
    found: dict[str, str] = {}
    for ids in _chunks(documents):  # a group at a time: assertions need not fit into memory together
        found |= _contribution_hash(session, ids)
    return found


def _contribution_hash(session: Session, documents: Sequence[str]) -> dict[str, str]:
    rows = kept_assertions(session, documents)
    keys = {row.subject_key for row in rows} | {row.object_key for row in rows}
    entities, aliases = entities_by_key(session, keys), aliases_by_key(session, keys)
    ends = {key: digest(canonical_json(_entity_props(key, entities, aliases))) for key in keys}
    by_document: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_document[row.document_id].append(
            digest(canonical_json(_columns(row)), ends[row.subject_key], ends[row.object_key])
        )
    found: dict[str, str] = {}
    for document in session.execute(
        select(
            Document.document_id, Document.version_id, Document.title, Document.identity,
            Document.language, Document.source, Document.kind, Document.licence,
        ).where(Document.document_id.in_(documents))
    ):  # fmt: skip
        parts = sorted(by_document.get(document.document_id, []))
        found[document.document_id] = digest(SCHEMA_VERSION, PROJECTION_VERSION, *map(str, document), *parts)
    return found


def _columns(row: Assertion) -> Row:
    return {column.key: getattr(row, column.key) for column in Assertion.__table__.columns}


# --- building rows ---------------------------------------------------------------


def _entity_props(key: str, entities: Mapping[str, Entity], aliases: Mapping[str, Sequence[str]]) -> Row:
    entity = entities.get(key)
    if entity is None:
        return {}
    names = {
        f"name_{language}": text
        for language, text in sorted(entity.names.items())
        if language in {"zh", "en"}
    }
    return {**flat(entity.properties), **names, "aliases": list(aliases.get(key, []))}


def flat(properties: Mapping[str, Any]) -> Row:
    """Properties a graph server can hold: scalars and lists of scalars; the rest as JSON text."""
    return {str(name): _scalar(value) for name, value in properties.items() if str(name).isidentifier()}


def _scalar(value: Any) -> Any:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, list) and len({type(item) for item in value}) == 1 and isinstance(value[0], str):
        return value
    return canonical_json(value)


def value_props(value: Mapping[str, Any]) -> Row:
    """A quantity or textual value as node properties (SI numbers under ``si_…``)."""
    si = value.get("si") or {}
    return {
        "operator": value.get("operator"),
        "min": value.get("min"),
        "max": value.get("max"),
        "unit": value.get("unit"),
        "text": value.get("text"),
        "si_min": si.get("min"),
        "si_max": si.get("max"),
        "si_unit": si.get("unit"),
        "value_conditions": canonical_json(value["conditions"]) if value.get("conditions") else None,
    }


NAMED = frozenset({NodeLabel.SUBSTANCE, NodeLabel.MIXTURE})
"""Labels whose nodes are resolved entities: what they are is not taken from single assertions."""
_VALUE_LABELS = frozenset({NodeLabel.MEASUREMENT, NodeLabel.EXPOSURE_LIMIT, NodeLabel.TOXICITY})
_OWN = ("listing", "comparison")  # belong to one assertion, not to the object node


def document_rows(
    rows: GraphRows,
    document: Document,
    found: Sequence[Statement],
) -> None:
    """Add the document's node, sections, assertions, listings and their links."""
    rows.node(
        NodeLabel.DOCUMENT,
        document.document_id,
        {
            "title": document.title,
            "url": document.identity,
            "language": document.language,
            "source": document.source,
            "kind": document.kind,
            "licence": document.licence,
            "version": document.version_id,
        },
    )
    for statement in found:
        _assertion_rows(rows, document, statement)
    for key, members in sorted(_listings(found).items()):
        _listing_rows(rows, document, key, members)


def _assertion_rows(rows: GraphRows, document: Document, statement: Statement) -> None:
    row, label = statement.row, NodeLabel.ASSERTION
    rows.node(label, row.assertion_id, assertion_props(document, statement))
    rows.link((Relation.SUBJECT, label, statement.subject_label), row.assertion_id, row.subject_key)
    rows.link((Relation.OBJECT, label, statement.object_label), row.assertion_id, row.object_key)
    rows.link((Relation.STATED_IN, label, NodeLabel.DOCUMENT), row.assertion_id, document.document_id)
    if row.section:
        section = section_key(document.document_id, row.section)
        number = SdsSection(row.section)
        rows.node(
            NodeLabel.SECTION,
            section,
            {
                "number": row.section,
                "zh": number.name_zh,
                "en": number.name_en,
                "document": document.document_id,
            },
        )
        rows.link((Relation.STATED_IN, label, NodeLabel.SECTION), row.assertion_id, section)
        rows.link((Relation.STATED_IN, NodeLabel.SECTION, NodeLabel.DOCUMENT), section, document.document_id)


def section_key(document_id: str, section: int) -> str:
    """Key of a Section node: one per SDS section of a document."""
    return f"{document_id}#{section}"


def assertion_props(document: Document, statement: Statement) -> Row:
    """Properties of an Assertion node."""
    row = statement.row
    return {
        "relation": row.relation,
        "polarity": row.polarity,
        "modality": row.modality,
        "conditions": canonical_json(row.conditions) if row.conditions else None,
        "quote": row.quote,
        "start": row.start,
        "end": row.end,
        "source": document.source,
        "document": row.document_id,
        "version": row.version_id,
        "section": row.section,
        "language": row.language,
        "extractor": row.extractor,
        "confidence": row.confidence,
        "subject": row.subject_key,
        "subject_label": statement.subject_label.value,
        "object": row.object_key,
        "object_label": statement.object_label.value,
        "listing": row.properties.get("listing"),
        # on the statement, not on the instruction: one text may serve several routes
        "route": stated_route(row),
    }


def stated_route(row: Assertion) -> str | None:
    """Route of exposure that a statement is about."""
    route = row.properties.get("route") or row.conditions.get("route")
    return str(route) if route else None


def _listings(found: Sequence[Statement]) -> dict[str, list[Statement]]:
    groups: dict[str, list[Statement]] = defaultdict(list)
    for statement in found:
        key = statement.row.properties.get("listing")
        if isinstance(key, str) and key and statement.row.polarity == Polarity.POSITIVE:
            groups[key].append(statement)
    return groups


def _listing_rows(rows: GraphRows, document: Document, key: str, members: Sequence[Statement]) -> None:
    first = members[0]
    keys = sorted({member.row.object_key for member in members})
    rows.node(
        NodeLabel.LISTING,
        key,
        {
            "relation": first.row.relation,
            "complete": True,
            "document": document.document_id,
            "subject": first.row.subject_key,
            "section": first.row.section,
            "members": keys,
        },
    )
    rows.link((Relation.STATED_IN, NodeLabel.LISTING, NodeLabel.DOCUMENT), key, document.document_id)
    rows.link((Relation.SUBJECT, NodeLabel.LISTING, first.subject_label), key, first.row.subject_key)
    for member in members:
        rows.link((Relation.LISTS, NodeLabel.LISTING, member.object_label), key, member.row.object_key)


def node_rows(
    rows: GraphRows,
    ends: Iterable[tuple[NodeLabel, str]],
    entities: Mapping[str, Entity],
    aliases: Mapping[str, Sequence[str]],
    described: Mapping[tuple[NodeLabel, str], Row],
) -> None:
    """Add the nodes that assertions speak of.

    What no resolved entity describes takes its properties from its assertions,
    each property from the first assertion id that has it, so that the order of
    documents does not matter.
    """
    for label, key in sorted(set(ends)):
        props = _entity_props(key, entities, aliases)
        if label not in NAMED:
            props = {
                **described.get((label, key), {}),
                **{name: value for name, value in props.items() if value not in (None, "", [])},
            }
        rows.node(label, key, props)


def add_stated(
    known: Row, label: NodeLabel, properties: Mapping[str, Any], value: Mapping[str, Any], subject: str
) -> None:
    """Add what one more assertion says of its object; what an earlier one said stays."""
    own = flat({name: item for name, item in properties.items() if name not in _OWN})
    if label in _VALUE_LABELS:
        own |= {**value_props(value), "subject": subject}
    for name, item in own.items():
        if known.get(name) in (None, "", []):
            known[name] = item


def derived_rows(rows: GraphRows, wanted: Iterable[Edge], support: Iterable[Statement]) -> list[Edge]:
    """Add the derived relationships among ``wanted`` that are supported; returns those that are not."""
    groups: dict[Edge, list[Statement]] = defaultdict(list)
    for statement in support:
        if statement.row.polarity == Polarity.POSITIVE:
            groups[statement.edge].append(statement)
    bare: list[Edge] = []
    for edge in sorted(set(wanted)):
        backing = groups.get(edge)
        if not backing:
            bare.append(edge)
            continue
        relation, start_label, start, end_label, end = edge
        rows.link(
            (relation, start_label, end_label),
            start,
            end,
            {
                "support": len(backing),
                "assertions": sorted(statement.row.assertion_id for statement in backing),
                "documents": sorted({statement.row.document_id for statement in backing}),
                # under which conditions the others state it
                "conditions": sorted({canonical_json(s.row.conditions) for s in backing if s.row.conditions}),
                "unconditional": sum(not statement.row.conditions for statement in backing),
                "modalities": sorted({statement.row.modality for statement in backing}),
            },
        )
    return bare

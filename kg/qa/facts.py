"""The statements of the graph with their evidence, as question making needs them."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Document, EntityDecision
from corpus.ids import canonical_json
from kg.projection import (
    GraphRows,
    Statement,
    aliases_by_key,
    entities_by_key,
    entity_rows,
    graph_documents,
    kept_assertions,
    statements,
)
from kg.qa.records import Language, Reference
from kg.schema import NodeLabel, Relation

Node = tuple[NodeLabel, str]


@dataclass(frozen=True)
class Source:
    """A document as questions name and quote it."""

    document_id: str
    version_id: str
    title: str
    url: str
    language: str
    source: str
    kind: str
    text: str


@dataclass(frozen=True)
class Fact:
    """A kept assertion with its document."""

    id: str
    source: Source
    subject: str
    subject_label: NodeLabel
    relation: Relation
    object: str
    object_label: NodeLabel
    words: str
    properties: Mapping[str, Any]
    value: Mapping[str, Any]
    polarity: str
    modality: str
    conditions: Mapping[str, Any]
    start: int
    end: int
    quote: str
    section: int | None
    language: str

    @property
    def listing(self) -> str:
        """Key of the complete list it is a member of, or ""."""
        return str(self.properties.get("listing") or "")

    @property
    def value_conditions(self) -> str:
        """Conditions of the value as the graph stores them."""
        return canonical_json(self.value["conditions"]) if self.value.get("conditions") else ""

    @property
    def statement_conditions(self) -> str:
        """Conditions of the statement as the graph stores them."""
        return canonical_json(dict(self.conditions)) if self.conditions else ""

    @property
    def route(self) -> str:
        """Route of exposure the statement is about, or ""."""
        return str(self.properties.get("route") or self.conditions.get("route") or "")

    @property
    def positive(self) -> bool:
        """Whether the source says that it is so."""
        return self.polarity == "positive"

    def reference(self) -> Reference:
        """Its evidence."""
        source = self.source
        return Reference(
            source.document_id,
            source.version_id,
            self.start,
            self.end,
            self.quote,
            source.url,
            source.language,
        )

    def triple(self) -> tuple[str, str, str]:
        """(subject, relation, object) keys."""
        return (self.subject, self.relation.value, self.object)


@dataclass
class Facts:
    """All facts in id order, with the nodes they speak of and what may be said about them."""

    facts: list[Fact]
    nodes: Mapping[Node, Mapping[str, Any]]
    links: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.by_subject: dict[Node, list[Fact]] = defaultdict(list)
        self.by_listing: dict[str, list[Fact]] = defaultdict(list)
        self.by_triple: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
        for fact in self.facts:
            self.by_subject[fact.subject_label, fact.subject].append(fact)
            self.by_triple[fact.triple()].append(fact)
            if fact.listing and fact.positive:
                self.by_listing[fact.listing].append(fact)
        self.sources = {fact.source.document_id: fact.source for fact in self.facts}
        self._titles = self._unique_titles()
        self._bearers: dict[str, set[str]] = defaultdict(set)
        for label, key in self.nodes:
            if label in (NodeLabel.SUBSTANCE, NodeLabel.MIXTURE):
                for name in self.names(label, key):
                    self._bearers[name].add(key)

    @property
    def substances(self) -> list[Node]:
        """Subjects in key order."""
        return sorted(self.by_subject)

    def stated(self, subject: Node, relation: Relation) -> list[Fact]:
        """Positive facts of one relation about one subject."""
        return [f for f in self.by_subject[subject] if f.relation == relation and f.positive]

    def support(self, start: str, relation: Relation, end: str) -> list[Fact]:
        """Positive facts behind a derived relationship, whichever way a symmetric one was said."""
        both = [
            *self.by_triple.get((start, relation, end), ()),
            *self.by_triple.get((end, relation, start), ()),
        ]
        return sorted({f.id: f for f in both if f.positive}.values(), key=lambda f: f.id)

    def denied(self, start: str, relation: Relation, end: str) -> bool:
        """Whether any source says that it is not so."""
        both = [
            *self.by_triple.get((start, relation, end), ()),
            *self.by_triple.get((end, relation, start), ()),
        ]
        return any(not fact.positive for fact in both)

    def props(self, label: NodeLabel, key: str) -> Mapping[str, Any]:
        """Properties of a node as the graph has them."""
        return self.nodes.get((label, key), {})

    def name(self, label: NodeLabel, key: str, language: Language) -> str | None:
        """How a node is called in a language, or None where the language has no word for it."""
        props = self.props(label, key)
        match label:
            case NodeLabel.SUBSTANCE | NodeLabel.MIXTURE:
                return _text(props.get(f"name_{language}"))
            case NodeLabel.REACTIVE_GROUP:
                return _text(props.get(language) or props.get(f"name_{language}"))
            case NodeLabel.MEASURE:
                return _text(props.get(language) or props.get(f"name_{language}"))
            case NodeLabel.HAZARD_STATEMENT | NodeLabel.PRECAUTIONARY_STATEMENT | NodeLabel.PICTOGRAM:
                return _text(props.get("code"))
            case NodeLabel.HAZARD_CLASS:
                return _hazard_name(props, language)
            case NodeLabel.TRANSPORT_ENTRY:
                return _transport_name(props, language)
            case NodeLabel.NFPA_RATING:
                return _nfpa_name(props, language)
            case NodeLabel.ALIAS:
                kind, _, rest = key.partition(":")
                return _text(props.get("text")) or (rest if kind != "alias" else None)
        return None

    def title(self, source: Source) -> str | None:
        """A document's title, only where it names one document."""
        return self._titles.get(source.document_id)

    def names(self, label: NodeLabel, key: str) -> set[str]:
        """All names of a node, normalised, for telling aliases of one thing apart from two things."""
        props = self.props(label, key)
        words = [props.get(n) for n in ("name_zh", "name_en", "zh", "en", "text")] + list(
            props.get("aliases", [])
        )
        return {plain(str(word)) for word in words if word}

    def ambiguous(self, name: str) -> bool:
        """Whether more than one substance or mixture goes by this name."""
        return len(self._bearers.get(plain(name), ())) > 1

    def _unique_titles(self) -> dict[str, str]:
        groups: dict[str, set[str]] = defaultdict(set)
        for fact in self.facts:
            title = " ".join(fact.source.title.split())
            if title and len(title) <= 80:
                groups[title].add(fact.source.document_id)
        return {next(iter(ids)): title for title, ids in groups.items() if len(ids) == 1}


def plain(text: str) -> str:
    """Form in which names are compared: width, case, blanks and marks aside."""
    return re.sub(r"[\s·•・]+", "", unicodedata.normalize("NFKC", text).casefold())


def _text(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def _hazard_name(props: Mapping[str, Any], language: Language) -> str | None:
    hazard, category = _text(props.get(language)), _text(props.get("category"))
    if hazard is None or category is None or props.get("route"):
        return None
    state = _GAS_STATES.get(category)
    if state:
        return f"{hazard}（{state[0]}）" if language == "zh" else f"{hazard} ({state[1]})"
    return f"{hazard} 类别{category}" if language == "zh" else f"{hazard}, category {category}"


# what stands in the place of a category for gases under pressure
_GAS_STATES: Mapping[str, tuple[str, str]] = {
    "compressed": ("压缩气体", "compressed gas"),
    "liquefied": ("液化气体", "liquefied gas"),
    "refrigerated": ("冷冻液化气体", "refrigerated liquefied gas"),
    "dissolved": ("溶解气体", "dissolved gas"),
}


def _nfpa_name(props: Mapping[str, Any], language: Language) -> str | None:
    values = [_text(props.get(field)) for field in ("health", "fire", "instability")]
    if None in values:
        return None
    words = (
        ("健康危害", "易燃性", "反应性") if language == "zh" else ("health", "flammability", "instability")
    )
    said = [f"{word} {value}" for word, value in zip(words, values, strict=True)]
    special = _text(props.get("special"))
    if special:
        said.append(("特殊危害 " if language == "zh" else "special ") + special)
    return ("，" if language == "zh" else ", ").join(said)


def _transport_name(props: Mapping[str, Any], language: Language) -> str | None:
    un = _text(props.get("un"))
    if un is None:
        return None
    parts = []
    if props.get("hazard_class"):
        parts.append(("类别 " if language == "zh" else "class ") + str(props["hazard_class"]))
    if props.get("packing_group"):
        parts.append(("包装类别 " if language == "zh" else "packing group ") + str(props["packing_group"]))
    if not parts:
        return f"UN {un}"
    return f"UN {un}（{'，'.join(parts)}）" if language == "zh" else f"UN {un} ({', '.join(parts)})"


# --- loading ------------------------------------------------------------------


def load_facts(session: Session) -> Facts:
    """All facts the graph is built from, read from the catalogue."""
    documents = graph_documents(session)
    rows = kept_assertions(session, documents)
    keys = {row.subject_key for row in rows} | {row.object_key for row in rows}
    entities = entities_by_key(session, keys)
    found, _ = statements(rows, entities)
    sources = _sources(session, {row.document_id for row in rows})
    graph = GraphRows()
    ends = {(s.subject_label, s.row.subject_key) for s in found} | {
        (s.object_label, s.row.object_key) for s in found
    }
    by_object: dict[str, list[Assertion]] = defaultdict(list)
    for statement in found:
        by_object[statement.row.object_key].append(statement.row)
    entity_rows(graph, ends, entities, aliases_by_key(session, keys), by_object)
    nodes = {(label, key): row["props"] for label, group in graph.nodes.items() for key, row in group.items()}
    facts = [_fact(statement, sources[statement.row.document_id]) for statement in found]
    return Facts(facts, nodes, _decided_links(session))


def _decided_links(session: Session) -> list[tuple[str, str]]:
    """Substances that belong together without being one (a solution and what is dissolved)."""
    query = select(EntityDecision).where(EntityDecision.kind == "link", EntityDecision.undone.is_(False))
    return sorted((row.left_key, row.right_key) for row in session.scalars(query))


def _sources(session: Session, ids: Iterable[str]) -> dict[str, Source]:
    ordered: Sequence[str] = sorted(ids)
    found = {}
    for at in range(0, len(ordered), 500):
        for row in session.scalars(select(Document).where(Document.document_id.in_(ordered[at : at + 500]))):
            found[row.document_id] = Source(
                row.document_id,
                row.version_id,
                row.title,
                row.identity,
                row.language,
                row.source,
                row.kind,
                row.text,
            )
    return found


def _fact(statement: Statement, source: Source) -> Fact:
    row = statement.row
    return Fact(
        id=row.assertion_id,
        source=source,
        subject=row.subject_key,
        subject_label=statement.subject_label,
        relation=statement.relation,
        object=row.object_key,
        object_label=statement.object_label,
        words=row.object,
        properties=row.properties,
        value=row.value,
        polarity=row.polarity,
        modality=row.modality,
        conditions=row.conditions,
        start=row.start,
        end=row.end,
        quote=row.quote,
        section=row.section,
        language=row.language or source.language,
    )

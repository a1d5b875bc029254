"""The statements of the graph with their evidence, as question making needs them."""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, overload

from sqlalchemy import ColumnElement, Text, cast, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Document, EntityDecision
from corpus.ids import canonical_json
from kg.projection import (
    NAMED,
    GraphRows,
    add_stated,
    aliases_by_key,
    entities_by_key,
    kept,
    misfit,
    node_rows,
    resolved_label,
)
from kg.qa.records import Language, Reference
from kg.schema import NodeLabel, Relation

Node = tuple[NodeLabel, str]
_READ_AT_ONCE = 2000


class _Packed:
    """A text attribute that is held compressed: the texts of all documents are many times what is read of them."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> _Packed: ...
    @overload
    def __get__(self, instance: object, owner: type) -> str: ...
    def __get__(self, instance: object | None, owner: type) -> _Packed | str:
        if instance is None:
            raise AttributeError(self.slot)  # so that the dataclass sees no default
        return _unpacked(instance.__dict__[self.slot])

    def __set__(self, instance: object, text: str) -> None:
        instance.__dict__[self.slot] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


@lru_cache(maxsize=256)
def _unpacked(data: bytes) -> str:
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


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
    text: _Packed = _Packed()


@dataclass(frozen=True, slots=True)
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
    """All facts the graph is built from, read from the catalogue.

    They are read as a stream of columns; what many of them share (keys, words, quotes, equal properties
    and values) is held once, so that a million of them fit into about a gigabyte.
    """
    ends = kept(select(Assertion.subject_key)).union(kept(select(Assertion.object_key)))
    keys = set(session.scalars(ends))
    entities = entities_by_key(session, keys)
    sources = _sources(session)
    share = _Shared()
    labels: dict[str, NodeLabel] = {}
    facts: list[Fact] = []
    for row in session.execute(kept(select(*_COLUMNS)).execution_options(yield_per=_READ_AT_ONCE)):
        if misfit(row.relation, row.subject_key, row.object_key, row.object_label):
            continue
        subject, source = share.text(row.subject_key), sources[row.document_id]
        if subject not in labels:
            labels[subject] = resolved_label(subject, entities)
        facts.append(
            Fact(
                id=row.assertion_id,
                source=source,
                subject=subject,
                subject_label=labels[subject],
                relation=Relation(row.relation),
                object=share.text(row.object_key),
                object_label=NodeLabel(row.object_label),
                words=share.text(row.object),
                properties=share.data(row.properties),
                value=share.data(row.value),
                polarity=share.text(row.polarity),
                modality=share.text(row.modality),
                conditions=share.data(row.conditions),
                start=row.start,
                end=row.end,
                quote=share.text(row.quote),
                section=row.section,
                language=share.text(row.language) or source.language,
            )
        )
    facts.sort(key=lambda fact: fact.id)
    graph = GraphRows()
    described = _described(facts)
    node_rows(graph, described, entities, aliases_by_key(session, keys), described)
    nodes = {(label, key): row["props"] for label, group in graph.nodes.items() for key, row in group.items()}
    return Facts(facts, nodes, _decided_links(session))


# JSON as text: what is written alike is parsed once
_JSON = ("properties", "value", "conditions")
_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(
        getattr(Assertion, name)
        for name in (
            "assertion_id", "document_id", "subject_key", "relation", "object", "object_label", "object_key",
            "polarity", "modality", "start", "end", "quote", "section", "language",
        )
    ),
    *(cast(getattr(Assertion, name), Text).label(name) for name in _JSON),
)  # fmt: skip


class _Shared:
    """One object for what is equal."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._data: dict[str, Mapping[str, Any]] = {}

    def text(self, text: str) -> str:
        """The first string that was equal to this one."""
        return self._texts.setdefault(text, text)

    def data(self, written: str) -> Mapping[str, Any]:
        """The object of a JSON text; nobody changes it."""
        found = self._data.get(written)
        if found is None:
            found = self._data[written] = json.loads(written, object_pairs_hook=self._object)
        return found

    def _object(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        return {self.text(name): self.text(item) if isinstance(item, str) else item for name, item in pairs}


def _described(facts: Sequence[Fact]) -> dict[Node, dict[str, Any]]:
    """What the facts, in id order, together say of every node that one of them speaks of."""
    found: dict[Node, dict[str, Any]] = {(fact.subject_label, fact.subject): {} for fact in facts}
    found |= {(fact.object_label, fact.object): {} for fact in facts}
    labels: dict[str, list[NodeLabel]] = defaultdict(list)
    for label, key in found:
        if label not in NAMED:  # a resolved entity is not described by single statements
            labels[key].append(label)
    for fact in facts:
        for label in labels.get(fact.object, ()):
            add_stated(found[label, fact.object], label, fact.properties, fact.value, fact.subject)
    return found


def _decided_links(session: Session) -> list[tuple[str, str]]:
    """Substances that belong together without being one (a solution and what is dissolved)."""
    query = select(EntityDecision).where(EntityDecision.kind == "link", EntityDecision.undone.is_(False))
    return sorted((row.left_key, row.right_key) for row in session.scalars(query))


def _sources(session: Session) -> dict[str, Source]:
    """The documents that have kept assertions."""
    speaking = kept(select(Assertion.document_id))
    columns = (
        Document.document_id, Document.version_id, Document.title, Document.identity, Document.language,
        Document.source, Document.kind, Document.text,
    )  # fmt: skip
    query = select(*columns).where(Document.document_id.in_(speaking))
    rows = session.execute(query.execution_options(yield_per=_READ_AT_ONCE))
    return {row.document_id: Source(*row) for row in rows}

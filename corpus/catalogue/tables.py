"""The catalogue's tables: the state of the platform, everything else is a projection.

All primary keys are content-derived (``corpus.ids``), except run ids. Times are
UTC. JSON columns hold plain lists and objects. Exports never contain run ids
or times.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Float, Index, Integer, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC on every database (SQLite keeps no time zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Store as UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Read as UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """Declarative base; the type map keeps column definitions short."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        dict[str, Any]: JSON,
        list[Any]: JSON,
        datetime: UtcDateTime,
        bytes: LargeBinary,
        str: Text,
    }


def _id() -> Any:
    return mapped_column(String(64), primary_key=True)


def _ref(nullable: bool = False) -> Any:
    return mapped_column(String(64), index=True, nullable=nullable)


# --- runs -----------------------------------------------------------------


class Run(Base):
    """One execution of a flow. ``state``: running, completed, stopped (a step halted), suspended (a
    quality gate waits for a decision), failed, cancelled, crashed.
    """

    __tablename__ = "runs"
    run_id: Mapped[str] = _id()
    flow: Mapped[str]
    state: Mapped[str] = mapped_column(String(16), default="running")
    started_at: Mapped[datetime] = mapped_column(default=now)
    finished_at: Mapped[datetime | None]
    parameters: Mapped[dict[str, Any]] = mapped_column(default=dict)
    settings: Mapped[dict[str, Any]] = mapped_column(default=dict)
    stages: Mapped[dict[str, Any]] = mapped_column(default=dict)
    message: Mapped[str] = mapped_column(default="")
    flow_run_id: Mapped[str] = mapped_column(String(64), index=True, default="")  # Prefect's; "" for --direct
    code_version: Mapped[str] = mapped_column(String(64), default="")  # of the package that ran it


class Check(Base):
    """The outcome of a quality gate in a run. ``state``: passed, failed, skipped (nothing to judge).

    ``severity``: warn or block. ``decision`` of a failed blocking gate: continue, accept (continue, and
    the value is the new baseline) or stop ("": none yet), with who and why. ``baseline``: the value of
    the last completed run with the same restriction, or the one last accepted where a limit alone judges.
    """

    __tablename__ = "checks"
    check_id: Mapped[str] = _id()
    run_id: Mapped[str] = _ref()
    stage: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(64), index=True)
    scope: Mapped[str] = mapped_column(String(64), default="")  # a source, a relation; "": the whole
    severity: Mapped[str] = mapped_column(String(8))
    state: Mapped[str] = mapped_column(String(8), index=True)
    value: Mapped[float | None] = mapped_column(Float)
    limit: Mapped[float | None] = mapped_column(Float)
    baseline: Mapped[float | None] = mapped_column(Float)
    message: Mapped[str] = mapped_column(default="")
    at: Mapped[datetime] = mapped_column(default=now)
    decision: Mapped[str] = mapped_column(String(16), default="")
    decided_by: Mapped[str] = mapped_column(String(64), default="")
    decided_at: Mapped[datetime | None]
    why: Mapped[str] = mapped_column(default="")


class WorkBatch(Base):
    """A batch of a step that processes share: who works on it, until when unless renewed, what came of it.

    ``state``: open, claimed, done. Rows live as long as their step runs.
    """

    __tablename__ = "work_batches"
    batch_id: Mapped[str] = _id()
    run_id: Mapped[str] = _ref()
    step: Mapped[str] = mapped_column(String(64))
    number: Mapped[int] = mapped_column(Integer)
    items: Mapped[list[Any]] = mapped_column(default=list)  # [[item id, fingerprint]]
    state: Mapped[str] = mapped_column(String(8), index=True)
    holder: Mapped[str] = mapped_column(String(128), default="")
    expires_at: Mapped[datetime | None]
    report: Mapped[dict[str, Any]] = mapped_column(default=dict)


class SourcePeriod(Base):
    """How a source's content of a period stood after a backfill last worked on it.

    ``period``: the month in which the present content was transferred, "2026-11". ``state``: pending,
    running, ok, failed, stale. What is to be done now is computed from the ledger; this is the history.
    """

    __tablename__ = "source_periods"
    source: Mapped[str] = mapped_column(String(64), primary_key=True)
    period: Mapped[str] = mapped_column(String(16), primary_key=True)
    state: Mapped[str] = mapped_column(String(16), index=True)
    run_id: Mapped[str] = mapped_column(String(64), default="")
    counts: Mapped[dict[str, Any]] = mapped_column(default=dict)
    message: Mapped[str] = mapped_column(default="")
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class Lease(Base):
    """Who may write: one row per resource, taken over when it has expired."""

    __tablename__ = "leases"
    resource: Mapped[str] = _id()
    holder: Mapped[str]
    expires_at: Mapped[datetime]


class LedgerRow(Base):
    """What a step made of an item: same fingerprint and settled state means skip."""

    __tablename__ = "ledger"
    step: Mapped[str] = mapped_column(String(64), primary_key=True)
    item_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str] = mapped_column(String(64), default="")
    detail: Mapped[str] = mapped_column(default="")
    counts: Mapped[dict[str, Any]] = mapped_column(default=dict)
    run_id: Mapped[str] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(default=now)


class Failure(Base):
    """A failed item with its reason; resolved when a later run gets through."""

    __tablename__ = "failures"
    failure_id: Mapped[str] = _id()
    step: Mapped[str] = mapped_column(String(64), index=True)
    item_id: Mapped[str] = _ref()
    kind: Mapped[str] = mapped_column(String(16))  # transient | terminal
    reason: Mapped[str] = mapped_column(String(64))
    message: Mapped[str]
    run_id: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(default=now)
    resolved_run: Mapped[str | None] = mapped_column(String(64))


# --- acquire ---------------------------------------------------------------


class Chemical(Base):
    """A substance of the name repository. ``key`` is the CAS number or a minted key."""

    __tablename__ = "chemicals"
    key: Mapped[str] = _id()
    cas: Mapped[str | None] = mapped_column(String(16), index=True)
    formula: Mapped[str | None]
    inchikey: Mapped[str | None] = mapped_column(String(32))
    ec: Mapped[str | None] = mapped_column(String(16))
    un_numbers: Mapped[list[Any]] = mapped_column(default=list)
    hazards: Mapped[list[Any]] = mapped_column(default=list)  # [{"list", "value"}]
    provenance: Mapped[str] = mapped_column(default="")


class ChemicalName(Base):
    """A name of a chemical. ``kind``: common, systematic, trade, solution."""

    __tablename__ = "chemical_names"
    name_id: Mapped[str] = _id()
    key: Mapped[str] = _ref()
    name: Mapped[str]
    normalised: Mapped[str] = mapped_column(String(512), index=True)
    language: Mapped[str] = mapped_column(String(8))
    kind: Mapped[str] = mapped_column(String(16))
    source: Mapped[str] = mapped_column(String(64))


class ChemicalClaim(Base):
    """What a user's list or entry says of a chemical, so that it can be taken back alone.

    ``kind``: name (``value`` is the name's id), formula, un. Built-in sources have claims
    only on names whose row says that a user's source brought them first.
    """

    __tablename__ = "chemical_claims"
    claim_id: Mapped[str] = _id()
    key: Mapped[str] = _ref()
    source: Mapped[str] = mapped_column(String(64), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    value: Mapped[str]


class QueryLink(Base):
    """A URL generated from a chemical's name and a source's template."""

    __tablename__ = "query_links"
    link_id: Mapped[str] = _id()
    url: Mapped[str]
    source: Mapped[str] = mapped_column(String(64), index=True)
    chemical: Mapped[str] = _ref()
    template: Mapped[str]


class Page(Base):
    """One row per URL, changed in the transaction that stores its result.

    ``state``: queued, claimed, kept, failed, excluded (robots, guard, budget,
    type), gone (404/410 or no longer linked). ``identity`` is what the document
    id hangs on (the canonical URL, or what the source maps it to).
    """

    __tablename__ = "pages"
    page_id: Mapped[str] = _id()
    document_id: Mapped[str] = _ref()
    source: Mapped[str] = mapped_column(String(64), index=True)
    url: Mapped[str]
    identity: Mapped[str]
    final_url: Mapped[str] = mapped_column(default="")
    canonical_url: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str] = mapped_column(String(64), default="")
    detail: Mapped[str] = mapped_column(default="")
    depth: Mapped[int] = mapped_column(Integer, default=0)
    parent_url: Mapped[str] = mapped_column(default="")
    chemicals: Mapped[list[Any]] = mapped_column(default=list)
    role: Mapped[str] = mapped_column(String(16), default="content")  # content | search | sitemap
    status: Mapped[int | None] = mapped_column(Integer)
    content_type: Mapped[str] = mapped_column(default="")
    charset: Mapped[str] = mapped_column(String(32), default="")  # from the HTTP header
    etag: Mapped[str] = mapped_column(default="")
    last_modified: Mapped[str] = mapped_column(default="")
    payload_sha256: Mapped[str] = mapped_column(String(64), default="")
    payload_bytes: Mapped[int] = mapped_column(Integer, default=0)
    warc_file: Mapped[str] = mapped_column(default="")  # relative to the data directory
    warc_offset: Mapped[int] = mapped_column(Integer, default=0)
    licence: Mapped[str] = mapped_column(default="")
    first_seen: Mapped[datetime | None]
    fetched_at: Mapped[datetime | None]  # last time the content was transferred
    visited_at: Mapped[datetime | None]  # last time it was asked for (304 included)
    sitemap_lastmod: Mapped[datetime | None]  # a trusted sitemap's word in the open round
    missed: Mapped[int] = mapped_column(Integer, default=0)  # refreshes in a row without it
    lease_holder: Mapped[str] = mapped_column(String(64), default="")
    lease_until: Mapped[datetime | None]
    run_id: Mapped[str] = mapped_column(String(64), default="")


class CrawlRound(Base):
    """A visit of a source that has not ended, with what it has spent: a killed crawl goes on with it."""

    __tablename__ = "crawl_rounds"
    source: Mapped[str] = mapped_column(String(64), primary_key=True)
    round_id: Mapped[str] = mapped_column(String(64))
    began_at: Mapped[datetime] = mapped_column(default=now)
    bytes_received: Mapped[int] = mapped_column(BigInteger, default=0)  # as sent


class HostPause(Base):
    """Until when a host (with its port) has asked to be left alone; holds over runs and sources."""

    __tablename__ = "host_pauses"
    host: Mapped[str] = mapped_column(String(255), primary_key=True)
    until: Mapped[datetime]


# --- curate ----------------------------------------------------------------


class PageProfile(Base):
    """What clustering needs of a page: pattern, DOM skeleton, block hashes, encoding decision."""

    __tablename__ = "page_profiles"
    page_id: Mapped[str] = _id()
    payload_sha256: Mapped[str] = mapped_column(String(64))
    pattern: Mapped[str]
    cluster_id: Mapped[str] = mapped_column(String(64), index=True, default="")
    skeleton: Mapped[str] = mapped_column(default="")
    blocks: Mapped[list[Any]] = mapped_column(default=list)
    encoding: Mapped[dict[str, Any]] = mapped_column(default=dict)


class Cluster(Base):
    """A group of pages of one URL pattern and its template (what repeats on most of them)."""

    __tablename__ = "clusters"
    cluster_id: Mapped[str] = _id()
    pattern: Mapped[str]
    size: Mapped[int] = mapped_column(Integer)
    examples: Mapped[list[Any]] = mapped_column(default=list)
    template: Mapped[dict[str, Any]] = mapped_column(default=dict)
    template_hash: Mapped[str] = mapped_column(String(64), default="")


class Document(Base):
    """A page turned into text. Written by ``clean``, then scored, refined, grouped.

    ``state``: kept, rejected, duplicate, review, failed; ``flags`` may hold
    "unrefined" and "orders" (lines that address a language model; where they stand
    is in ``refinement``). ``text`` is the refined text (``normalise_text``), the one that
    spans refer to. ``blocks``: [{"start","end","cleaned_start","cleaned_end",
    "path"}] leads refined → cleaned → page; ``sections``: [{"start","end",
    "heading","level","sds"}] with ``sds`` 1–16 or null.
    """

    __tablename__ = "documents"
    document_id: Mapped[str] = _id()
    page_id: Mapped[str] = _ref()
    source: Mapped[str] = mapped_column(String(64), index=True)
    url: Mapped[str]
    identity: Mapped[str]
    kind: Mapped[str] = mapped_column(String(32), default="page")  # page | pdf | text | xml | reference
    title: Mapped[str] = mapped_column(default="")
    language: Mapped[str] = mapped_column(String(8), default="")
    licence: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str] = mapped_column(String(64), default="")
    detail: Mapped[str] = mapped_column(default="")
    flags: Mapped[list[Any]] = mapped_column(default=list)
    cleaned_html: Mapped[str] = mapped_column(default="")
    cleaned_text: Mapped[str] = mapped_column(default="")
    cleaned_hash: Mapped[str] = mapped_column(String(64), default="")
    cleaned_blocks: Mapped[list[Any]] = mapped_column(default=list)  # [{"start","end","path","kind"}]
    removed: Mapped[dict[str, Any]] = mapped_column(default=dict)  # rule -> count
    score: Mapped[float | None] = mapped_column(Float)
    score_parts: Mapped[dict[str, Any]] = mapped_column(default=dict)
    score_source: Mapped[str] = mapped_column(default="")  # offline | model name
    version_id: Mapped[str] = mapped_column(String(64), index=True, default="")
    text: Mapped[str] = mapped_column(default="")
    blocks: Mapped[list[Any]] = mapped_column(default=list)
    sections: Mapped[list[Any]] = mapped_column(default=list)
    refinement: Mapped[dict[str, Any]] = mapped_column(default=dict)  # coverage, dropped, fidelity
    duplicate_of: Mapped[str | None] = mapped_column(String(64), index=True)
    group: Mapped[dict[str, Any]] = mapped_column(default=dict)  # near-duplicate evidence, editions


# --- graph -----------------------------------------------------------------


class Assertion(Base):
    """One statement with its evidence (knowledge-graph design, section 2).

    ``object_key`` names a graph node (label in ``object_label``); ``value`` holds
    the literal or quantity {"operator","min","max","unit","si","conditions"}.
    ``state``: kept or rejected (with reason).
    """

    __tablename__ = "assertions"
    assertion_id: Mapped[str] = _id()
    document_id: Mapped[str] = _ref()
    version_id: Mapped[str] = _ref()
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str] = mapped_column(String(64), default="")
    subject: Mapped[str]  # as written
    subject_key: Mapped[str] = mapped_column(String(128), index=True, default="")
    relation: Mapped[str] = mapped_column(String(32), index=True)
    object: Mapped[str] = mapped_column(default="")  # as written
    object_label: Mapped[str] = mapped_column(String(32), default="")
    object_key: Mapped[str] = mapped_column(String(128), index=True, default="")
    properties: Mapped[dict[str, Any]] = mapped_column(default=dict)  # of the object node
    value: Mapped[dict[str, Any]] = mapped_column(default=dict)
    polarity: Mapped[str] = mapped_column(String(8), default="positive")
    modality: Mapped[str] = mapped_column(String(8), default="is")
    conditions: Mapped[dict[str, Any]] = mapped_column(default=dict)
    start: Mapped[int] = mapped_column(Integer)
    end: Mapped[int] = mapped_column(Integer)
    quote: Mapped[str]
    page_quote: Mapped[str] = mapped_column(default="")  # the page's own words
    section: Mapped[int | None] = mapped_column(Integer)  # SDS section 1-16
    language: Mapped[str] = mapped_column(String(8), default="")
    extractor: Mapped[str] = mapped_column(default="")  # offline | model name | reference
    confidence: Mapped[float] = mapped_column(Float, default=1.0)


class Entity(Base):
    """A resolved node of the graph: identity by CAS first."""

    __tablename__ = "entities"
    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    label: Mapped[str] = mapped_column(String(32), index=True)
    names: Mapped[dict[str, Any]] = mapped_column(default=dict)  # language -> preferred name
    properties: Mapped[dict[str, Any]] = mapped_column(default=dict)


class EntityAlias(Base):
    """A name that leads to an entity; ambiguous aliases lead nowhere."""

    __tablename__ = "entity_aliases"
    alias_id: Mapped[str] = _id()
    key: Mapped[str] = mapped_column(String(128), index=True)
    text: Mapped[str]
    normalised: Mapped[str] = mapped_column(String(512), index=True)
    language: Mapped[str] = mapped_column(String(8))
    kind: Mapped[str] = mapped_column(String(16))
    source: Mapped[str]
    ambiguous: Mapped[bool] = mapped_column(default=False)


class EntityDecision(Base):
    """A merge, a separation or a review item: who decided, when and why; can be undone.

    What the rules decide is made anew by every resolve and has no ``at``; what people
    decide stays. ``undoes``: the decision that one of kind undo takes back. ``detail``:
    {"left", "right": {"key", "name", "document"}} and, for a review item, a model's verdict.
    """

    __tablename__ = "entity_decisions"
    decision_id: Mapped[str] = _id()
    kind: Mapped[str] = mapped_column(String(16))  # merge | link | keep-apart | review | undo
    left_key: Mapped[str] = mapped_column(String(128))
    right_key: Mapped[str] = mapped_column(String(128))
    rule: Mapped[str] = mapped_column(String(64))
    why: Mapped[str]
    decided_by: Mapped[str] = mapped_column(String(64))
    undone: Mapped[bool] = mapped_column(default=False)
    at: Mapped[datetime | None]
    undoes: Mapped[str] = mapped_column(String(64), default="")
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)


class GraphSnapshot(Base):
    """State of the graph after a sync: a content hash and its counts."""

    __tablename__ = "graph_snapshots"
    snapshot_id: Mapped[str] = _id()
    nodes: Mapped[int] = mapped_column(Integer)
    relationships: Mapped[int] = mapped_column(Integer)
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)
    run_id: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(default=now)


# --- questions -------------------------------------------------------------


class Question(Base):
    """A question that a graph query proves (knowledge-graph design, section 5).

    ``proof``: {"cypher","parameters"} returning exactly the answer set;
    ``references``: [{"document_id","version_id","start","end","quote","url"}].
    """

    __tablename__ = "questions"
    question_id: Mapped[str] = _id()
    kind: Mapped[str] = mapped_column(String(16), index=True)  # single_hop|multi_hop|aggregative|boolean
    language: Mapped[str] = mapped_column(String(8), index=True)
    question: Mapped[str]
    answer: Mapped[str]
    answer_set: Mapped[list[Any]] = mapped_column(default=list)
    triples: Mapped[list[Any]] = mapped_column(default=list)
    proof: Mapped[dict[str, Any]] = mapped_column(default=dict)
    references: Mapped[list[Any]] = mapped_column(default=list)
    section: Mapped[int | None] = mapped_column(Integer)
    metapath: Mapped[str] = mapped_column(default="")
    hops: Mapped[int] = mapped_column(Integer, default=1)
    difficulty: Mapped[dict[str, Any]] = mapped_column(default=dict)
    template: Mapped[str] = mapped_column(default="")
    wording: Mapped[str] = mapped_column(default="template")  # template | model name
    snapshot_id: Mapped[str] = mapped_column(String(64), default="")
    substances: Mapped[list[Any]] = mapped_column(default=list)
    split: Mapped[str] = mapped_column(String(8), default="train")
    curated: Mapped[bool] = mapped_column(default=False)
    state: Mapped[str] = mapped_column(String(16), index=True, default="kept")
    reason: Mapped[str] = mapped_column(String(64), default="")


# --- chunks and evaluation -------------------------------------------------


class Partition(Base):
    """How one method cut one version of a document, with the record of how it came about."""

    __tablename__ = "partitions"
    partition_id: Mapped[str] = _id()  # digest(version_id, method, settings)
    document_id: Mapped[str] = _ref()
    version_id: Mapped[str] = _ref()
    method: Mapped[str] = mapped_column(String(24), index=True)
    settings: Mapped[dict[str, Any]] = mapped_column(default=dict)
    scores: Mapped[dict[str, Any]] = mapped_column(default=dict)  # li, sd, cs, k, computed by
    record: Mapped[dict[str, Any]] = mapped_column(default=dict)  # debate record, candidates
    seconds: Mapped[float] = mapped_column(Float, default=0.0)


class Chunk(Base):
    """A node of a partition: leaves tile the document, inner nodes carry level and parent."""

    __tablename__ = "chunks"
    chunk_id: Mapped[str] = _id()
    partition_id: Mapped[str] = _ref()
    document_id: Mapped[str] = _ref()
    version_id: Mapped[str] = _ref()
    method: Mapped[str] = mapped_column(String(24), index=True)
    position: Mapped[int] = mapped_column(Integer)
    start: Mapped[int] = mapped_column(Integer)
    end: Mapped[int] = mapped_column(Integer)
    level: Mapped[int] = mapped_column(Integer, default=1)
    parent_id: Mapped[str | None] = mapped_column(String(64), index=True)
    leaf: Mapped[bool] = mapped_column(default=True)
    text: Mapped[str]  # the slice of the document
    completed: Mapped[str | None]  # the completer's text, where it rewrote
    outline_question: Mapped[str] = mapped_column(default="")


class Evaluation(Base):
    """One figure of an evaluation: method × metric under stated settings, with n and interval."""

    __tablename__ = "evaluations"
    evaluation_id: Mapped[str] = _id()  # digest(table, method, metric, setting)
    table: Mapped[str] = mapped_column("table_name", String(48), index=True)
    method: Mapped[str] = mapped_column(String(48))
    metric: Mapped[str] = mapped_column(String(48))
    value: Mapped[float | None] = mapped_column(Float)
    low: Mapped[float | None] = mapped_column(Float)
    high: Mapped[float | None] = mapped_column(Float)
    n: Mapped[int] = mapped_column(Integer)
    unit: Mapped[str] = mapped_column(String(64), default="")
    setting: Mapped[dict[str, Any]] = mapped_column(default=dict)


# --- review ----------------------------------------------------------------


class ReviewDecision(Base):
    """What a person decided of a document, of values that disagree, of a question, or of a solution.

    Rows are appended and never deleted; what people decide of identity is ``EntityDecision``.
    ``queue``: documents, conflicts, questions, identity, work. ``item_id``: what is decided, in the
    terms of its queue; ``choice``: the answer, or undo. ``state``: standing, done (a request that
    was carried out, an undo), replaced (by a later decision), undone, lapsed (the text that was
    looked at is another one now). ``mark``: hash of what was looked at. ``detail``: what the
    steps that honour it need, and what the history shows.
    """

    __tablename__ = "review_decisions"
    decision_id: Mapped[str] = _id()
    queue: Mapped[str] = mapped_column(String(16), index=True)
    item_id: Mapped[str] = _ref()
    choice: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16), index=True, default="standing")
    why: Mapped[str]
    decided_by: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(default=now)
    undoes: Mapped[str] = mapped_column(String(64), default="")
    mark: Mapped[str] = mapped_column(String(64), default="")
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)


# --- models ----------------------------------------------------------------


class ModelCall(Base):
    """A paid answer, stored raw before it is parsed; refused answers are never served again."""

    __tablename__ = "model_calls"
    key: Mapped[str] = _id()
    skill: Mapped[str] = mapped_column(String(48), index=True)
    skill_version: Mapped[str] = mapped_column(String(16))
    model: Mapped[str]
    draw: Mapped[int] = mapped_column(Integer, default=0)
    parameters: Mapped[dict[str, Any]] = mapped_column(default=dict)
    raw: Mapped[str]
    state: Mapped[str] = mapped_column(String(16), default="stored")  # stored | accepted | refused
    reason: Mapped[str] = mapped_column(default="")
    finish_reason: Mapped[str] = mapped_column(String(32), default="")
    tokens_in: Mapped[int] = mapped_column(Integer, default=0)
    tokens_cached: Mapped[int] = mapped_column(Integer, default=0)
    tokens_out: Mapped[int] = mapped_column(Integer, default=0)
    cost: Mapped[float] = mapped_column(Float, default=0.0)
    seconds: Mapped[float] = mapped_column(Float, default=0.0)
    served: Mapped[int] = mapped_column(Integer, default=0)  # times answered from the store
    run_id: Mapped[str] = mapped_column(String(64), default="")
    at: Mapped[datetime] = mapped_column(default=now)


class ModelBatch(Base):
    """A job at an endpoint's batch API (``models.protocols.BatchJob``), recorded before it is sent."""

    __tablename__ = "model_batches"
    job_id: Mapped[str] = _id()
    base_url: Mapped[str]
    model: Mapped[str]
    skills: Mapped[list[Any]] = mapped_column(default=list)
    total: Mapped[int] = mapped_column(Integer)
    # submitting | open | cancelling | collected | given_up
    state: Mapped[str] = mapped_column(String(16), index=True, default="submitting")
    file_id: Mapped[str] = mapped_column(default="")  # the endpoint's names for the file and the job
    batch_id: Mapped[str] = mapped_column(default="")
    status: Mapped[str] = mapped_column(String(32), default="")  # the endpoint's word
    answered: Mapped[int] = mapped_column(Integer, default=0)
    failed: Mapped[int] = mapped_column(Integer, default=0)
    detail: Mapped[str] = mapped_column(default="")
    run_id: Mapped[str] = mapped_column(String(64), default="")
    holder: Mapped[str] = mapped_column(default="")  # the process that recorded it
    created_at: Mapped[datetime] = mapped_column(default=now)


class ModelBatchLine(Base):
    """A question of a batch job that is not settled. The key is unique: no question is in two jobs."""

    __tablename__ = "model_batch_lines"
    key: Mapped[str] = _id()
    job_id: Mapped[str] = _ref()
    skill: Mapped[str] = mapped_column(String(48))
    skill_version: Mapped[str] = mapped_column(String(16))
    draw: Mapped[int] = mapped_column(Integer, default=0)
    parameters: Mapped[dict[str, Any]] = mapped_column(default=dict)
    form: Mapped[dict[str, Any]] = mapped_column(default=dict)
    price: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    position: Mapped[int] = mapped_column(Integer, default=0)


class Embedding(Base):
    """A vector by model and text hash (float32, little endian)."""

    __tablename__ = "embeddings"
    model: Mapped[str] = mapped_column(String(96), primary_key=True)
    text_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    vector: Mapped[bytes]


Index("ix_ledger_step_state", LedgerRow.step, LedgerRow.state)
Index("ix_chunks_version_method", Chunk.version_id, Chunk.method)

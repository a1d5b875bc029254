"""All Cypher of the platform, built from the closed vocabulary of ``kg.schema``.

Labels and relationship types come from enums only (and are back-ticked), values
are always parameters. Only constructs that both ArcadeDB and Neo4j 5.26 accept
are used: no APOC, no dynamic labels, no variable-length paths.
"""

from __future__ import annotations

from kg.schema import RELATIONS, NodeLabel, Relation

MARKER = "Marker"
MARKER_KEY = "epoch"
"""Label of the one node that names the present life of a server's database (not part of the graph)."""


def name(label: NodeLabel | Relation) -> str:
    """A label or type as Cypher text: from an enum, back-ticked."""
    if not isinstance(label, NodeLabel | Relation):
        raise TypeError(f"{label!r} is not of the closed vocabulary")
    return f"`{label.value}`"


# --- set-up ------------------------------------------------------------------


def constraint(label: NodeLabel) -> str:
    """One ``key`` per label."""
    return (
        f"CREATE CONSTRAINT {label.value.lower()}_key IF NOT EXISTS "
        f"FOR (n:{name(label)}) REQUIRE n.key IS UNIQUE"
    )


MARKER_CONSTRAINT = f"CREATE CONSTRAINT marker_key IF NOT EXISTS FOR (n:`{MARKER}`) REQUIRE n.key IS UNIQUE"
READ_MARKER = f"MATCH (n:`{MARKER}` {{key: '{MARKER_KEY}'}}) RETURN n.value AS value"
WRITE_MARKER = f"MERGE (n:`{MARKER}` {{key: '{MARKER_KEY}'}}) SET n.value = $value"

# --- writing -----------------------------------------------------------------


def merge_nodes(label: NodeLabel) -> str:
    """Rows {key, hash, props}: only identity in MERGE, the rest only where the row's hash differs."""
    return (
        f"UNWIND $rows AS row MERGE (n:{name(label)} {{key: row.key}}) "
        "WITH n, row WHERE n.hash IS NULL OR n.hash <> row.hash "
        "SET n = row.props RETURN count(n) AS changed"
    )


def merge_links(kind: Relation, start: NodeLabel, end: NodeLabel) -> str:
    """Rows {start, end, hash, props}: both ends matched by key before the relationship is merged."""
    return (
        f"UNWIND $rows AS row MATCH (a:{name(start)} {{key: row.start}}) "
        f"MATCH (b:{name(end)} {{key: row.end}}) MERGE (a)-[r:{name(kind)}]->(b) "
        "WITH r, row WHERE r.hash IS NULL OR r.hash <> row.hash "
        "SET r = row.props RETURN count(r) AS changed"
    )


def delete_nodes(label: NodeLabel) -> str:
    """Nodes by key, with their relationships."""
    return f"UNWIND $keys AS key MATCH (n:{name(label)} {{key: key}}) DETACH DELETE n"


def delete_orphans(label: NodeLabel) -> str:
    """A bounded bite of the nodes that nothing is linked to; repeat until nothing is deleted."""
    return f"MATCH (n:{name(label)}) WHERE NOT (n)--() WITH n LIMIT $limit DELETE n"


def delete_links(kind: Relation, start: NodeLabel, end: NodeLabel) -> str:
    """Relationships by the keys of their ends."""
    return (
        f"UNWIND $rows AS row MATCH (a:{name(start)} {{key: row.start}})-[r:{name(kind)}]->"
        f"(b:{name(end)} {{key: row.end}}) DELETE r"
    )


def clear(label: NodeLabel) -> str:
    """A bounded bite of all nodes of a label; repeat until nothing is deleted."""
    return f"MATCH (n:{name(label)}) WITH n LIMIT $limit DETACH DELETE n"


# --- reading -----------------------------------------------------------------

DOCUMENT_KEYS = f"MATCH (d:{name(NodeLabel.DOCUMENT)}) RETURN d.key AS key"

CONTRIBUTION = (
    f"UNWIND $documents AS document MATCH (d:{name(NodeLabel.DOCUMENT)} {{key: document}})"
    f"<-[:{name(Relation.STATED_IN)}]-(a:{name(NodeLabel.ASSERTION)}) "
    "RETURN a.key AS key, a.relation AS relation, a.subject AS subject, a.subject_label AS subject_label, "
    "a.object AS object, a.object_label AS object_label, a.document AS document, a.section AS section, "
    "a.polarity AS polarity, a.listing AS listing"
)
"""Assertions that documents have put into the graph, with what they are linked to."""

LISTINGS = (
    f"UNWIND $documents AS document MATCH (d:{name(NodeLabel.DOCUMENT)} {{key: document}})"
    f"<-[:{name(Relation.STATED_IN)}]-(l:{name(NodeLabel.LISTING)}) RETURN l.key AS key, l.members AS members, l.subject AS subject"
)


# Hashes are read in parts: a record of some hundred rows costs the driver far less than a record for each.


def node_hashes(label: NodeLabel) -> str:
    """Records ``rows``: lists of [key, row hash], of all nodes of a label."""
    return (
        f"MATCH (n:{name(label)}) WITH substring(coalesce(n.hash, ''), 0, 2) AS part, "
        "collect([n.key, n.hash]) AS rows RETURN rows"
    )


def link_hashes(kind: Relation) -> str:
    """Records ``start_label``, ``end_label``, ``rows``: lists of [start key, end key, row hash], of a type."""
    return (
        f"MATCH (a)-[r:{name(kind)}]->(b) WITH labels(a)[0] AS start_label, labels(b)[0] AS end_label, "
        "substring(coalesce(r.hash, ''), 0, 2) AS part, collect([a.key, b.key, r.hash]) AS rows "
        "RETURN start_label, end_label, rows"
    )


def node_rows(label: NodeLabel) -> str:
    """Records ``key``, ``labels``, ``props`` of all nodes of a label."""
    return f"MATCH (n:{name(label)}) RETURN n.key AS key, labels(n) AS labels, properties(n) AS props"


def link_rows(kind: Relation) -> str:
    """Records of all relationships of a type: ``props``, ``start`` and ``end`` (keys), the first label and all
    labels of each end (``start_label``, ``start_labels``, ``end_label``, ``end_labels``)."""
    return (
        f"MATCH (a)-[r:{name(kind)}]->(b) RETURN labels(a)[0] AS start_label, labels(a) AS start_labels, "
        "a.key AS start, labels(b)[0] AS end_label, labels(b) AS end_labels, b.key AS end, properties(r) AS props"
    )


def foreign_nodes() -> str:
    """Records ``labels``, ``props`` of the nodes that have no label of the vocabulary."""
    known = " OR ".join(f"n:{name(label)}" for label in NodeLabel)
    return f"MATCH (n) WHERE NOT ({known}) RETURN labels(n) AS labels, properties(n) AS props"


FOREIGN_LINKS = (
    "MATCH (a)-[r]->(b) WHERE NOT type(r) IN $known RETURN type(r) AS type, labels(a) AS start_labels, "
    "properties(a) AS start, labels(b) AS end_labels, properties(b) AS end"
)
"""Relationships of a type that is not one of ``$known``, with labels and properties of their ends."""
COUNT_ALL_NODES = "MATCH (n) RETURN count(n) AS n"
COUNT_ALL_LINKS = "MATCH ()-[r]->() RETURN count(r) AS n"


def count_nodes(label: NodeLabel) -> str:
    """Number of nodes of a label."""
    return f"MATCH (n:{name(label)}) RETURN count(n) AS n"


def count_links(kind: Relation) -> str:
    """Number of relationships of a type."""
    return f"MATCH ()-[r:{name(kind)}]->() RETURN count(r) AS n"


# --- proofs of questions ------------------------------------------------------
#
# A proof is a body in which ``q`` is a map of parameters and which ends with a
# row ``answer`` per answer. It runs alone (as stored with the question) or for
# many parameter maps at once (as verified).


def single(body: str) -> str:
    """The proof as stored with a question: parameter ``$q``, one column ``answer``."""
    return f"WITH $q AS q {body} RETURN DISTINCT answer ORDER BY answer"


def batched(body: str) -> str:
    """The same proof for rows ``$qs`` of {id, …}: one row {id, answers} each."""
    return (
        f"UNWIND $qs AS q CALL {{ WITH q {body} RETURN collect(DISTINCT answer) AS answers }} "
        "RETURN q.id AS id, answers"
    )


_FILTERS = {
    "document": "a.document = q.document",
    "conditions": "coalesce(a.conditions, '') = q.conditions",
    "property": "o.property = q.property",
    "value_conditions": "coalesce(o.value_conditions, '') = q.value_conditions",
    "kind": "o.kind = q.kind",
    "jurisdiction": "coalesce(o.jurisdiction, '') = q.jurisdiction",
    "endpoint": "o.endpoint = q.endpoint",
    "species": "coalesce(o.species, '') = q.species",
    "route": "coalesce(o.route, '') = q.route",
    "stated_route": "coalesce(a.route, '') = q.stated_route",
}


def stated_objects(subject: NodeLabel, item: NodeLabel, filters: tuple[str, ...]) -> str:
    """Keys of the objects that positive assertions of ``q.relation`` give ``q.subject``."""
    where = " AND ".join(
        ["a.relation = q.relation", "a.polarity = 'positive'", *(_FILTERS[f] for f in filters)]
    )
    return (
        f"MATCH (s:{name(subject)} {{key: q.subject}})<-[:{name(Relation.SUBJECT)}]-(a:{name(NodeLabel.ASSERTION)})"
        f"-[:{name(Relation.OBJECT)}]->(o:{name(item)}) WHERE {where} WITH DISTINCT o.key AS answer"
    )


_LISTING = f"(l:{name(NodeLabel.LISTING)} {{key: q.listing}})"
_LISTS = f"[:{name(Relation.LISTS)}]"

LISTED = f"MATCH {_LISTING}-{_LISTS}->(o) WHERE l.complete = true WITH DISTINCT o.key AS answer"
"""Members of a list that its source gives as complete."""

LISTED_COUNT = (
    f"MATCH {_LISTING}-{_LISTS}->(o) WHERE l.complete = true WITH q, count(DISTINCT o) AS n WITH n AS answer"
)
"""Number of members of a complete list."""

LISTED_BOTH = (
    f"MATCH {_LISTING}-{_LISTS}->(o)<-{_LISTS}-(m:{name(NodeLabel.LISTING)} {{key: q.other}}) "
    "WHERE l.complete = true AND m.complete = true WITH DISTINCT o.key AS answer"
)
"""Common members of two complete lists."""


def is_listed(subject: NodeLabel, relation: Relation, item: NodeLabel) -> str:
    """'yes' for a member; 'no' only for a complete list and where nothing else states it; else 'unknown'."""
    return (
        f"MATCH {_LISTING} OPTIONAL MATCH (l)-{_LISTS}->(o:{name(item)} {{key: q.object}}) "
        f"OPTIONAL MATCH (s:{name(subject)} {{key: q.subject}})-[r:{name(relation)}]->(x:{name(item)} {{key: q.object}}) "
        "WITH l, count(o) AS listed, count(r) AS stated "
        "WITH CASE WHEN listed > 0 THEN 'yes' WHEN l.complete = true AND stated = 0 THEN 'no' ELSE 'unknown' END AS answer"
    )


def is_classified(subject: NodeLabel) -> str:
    """Whether the document ``q.document`` puts the subject into ``q.object``, a category of the class ``q.hazard``.

    'yes' and 'no' only where the document gives one category of the class (``q.stated``) and a list it gives as
    complete bears it out: the list holds one of ``q.own`` (that category and its H codes). 'no' further needs that
    neither the list nor any source holds one of ``q.other`` (the class's other categories and their codes); else 'unknown'.
    """
    return (
        f"MATCH {_LISTING} WHERE l.complete = true AND l.document = q.document AND l.subject = q.subject "
        f"OPTIONAL MATCH (l)-{_LISTS}->(m) WITH q, collect(DISTINCT m.key) AS listed "
        f"OPTIONAL MATCH (s:{name(subject)} {{key: q.subject}})<-[:{name(Relation.SUBJECT)}]-(a:{name(NodeLabel.ASSERTION)})"
        f"-[:{name(Relation.OBJECT)}]->(o:{name(NodeLabel.HAZARD_CLASS)}) "
        f"WHERE a.relation = '{Relation.CLASSIFIED_AS.value}' AND a.document = q.document AND o.hazard = q.hazard "
        "WITH q, listed, collect(DISTINCT o.key) AS stated, "
        "sum(CASE WHEN a.polarity = 'negative' THEN 1 ELSE 0 END) AS denied "
        f"OPTIONAL MATCH (x:{name(subject)} {{key: q.subject}})-[:{name(Relation.CLASSIFIED_AS)}|{name(Relation.HAS_H)}]->(y) "
        "WITH q, listed, stated, denied, collect(DISTINCT y.key) AS anywhere "
        "WITH q, stated, denied, "
        "size([k IN listed WHERE size([c IN q.own WHERE k CONTAINS c]) > 0]) AS borne_out, "
        "size([k IN listed + anywhere WHERE size([c IN q.other WHERE k CONTAINS c]) > 0]) AS against "
        "WITH CASE WHEN denied > 0 OR stated <> [q.stated] OR borne_out = 0 THEN 'unknown' "
        "WHEN q.object = q.stated THEN 'yes' WHEN against = 0 THEN 'no' ELSE 'unknown' END AS answer"
    )


def is_functional(subject: NodeLabel) -> str:
    """'yes' for the value of a one-valued identifier; 'no' where exactly one other value is known."""
    return (
        f"MATCH (s:{name(subject)} {{key: q.subject}})<-[:{name(Relation.SUBJECT)}]-(a:{name(NodeLabel.ASSERTION)})"
        f"-[:{name(Relation.OBJECT)}]->(o:{name(NodeLabel.ALIAS)}) "
        f"WHERE a.relation = '{Relation.HAS_ALIAS.value}' AND a.polarity = 'positive' AND o.kind = q.kind "
        "WITH q, collect(DISTINCT o.key) AS known "
        "WITH CASE WHEN q.object IN known THEN 'yes' WHEN size(known) = 1 THEN 'no' ELSE 'unknown' END AS answer"
    )


def is_stated(subject: NodeLabel, item: NodeLabel) -> str:
    """'yes' and 'no' only where all statements of ``q.relations`` agree.

    ``q.for`` and ``q.against`` name relations whose positive statements speak for
    and against; a negative statement speaks for the other side.
    """
    return (
        f"MATCH (s:{name(subject)} {{key: q.subject}})<-[:{name(Relation.SUBJECT)}]-(a:{name(NodeLabel.ASSERTION)})"
        f"-[:{name(Relation.OBJECT)}]->(o:{name(item)} {{key: q.object}}) "
        "WITH sum(CASE WHEN (a.relation = q.for AND a.polarity = 'positive') "
        "OR (a.relation = q.against AND a.polarity = 'negative') THEN 1 ELSE 0 END) AS yes, "
        "sum(CASE WHEN (a.relation = q.for AND a.polarity = 'negative') "
        "OR (a.relation = q.against AND a.polarity = 'positive') THEN 1 ELSE 0 END) AS no "
        "WITH CASE WHEN yes > 0 AND no = 0 THEN 'yes' WHEN no > 0 AND yes = 0 THEN 'no' ELSE 'unknown' END AS answer"
    )


def _intervals(subject: str, low: str, high: str) -> str:
    # over the derived relationship, which stands for all positive statements of all sources
    return (
        f"MATCH (s:{name(NodeLabel.SUBSTANCE)} {{key: {subject}}})-[:{name(Relation.HAS_MEASUREMENT)}]->"
        f"(m:{name(NodeLabel.MEASUREMENT)}) "
        "WHERE m.property = q.property AND coalesce(m.value_conditions, '') = q.value_conditions "
        "AND m.si_min IS NOT NULL AND m.si_max IS NOT NULL "
        f"WITH q, SCOPE min(m.si_min) AS {low}, max(m.si_max) AS {high} "
    )


IS_HIGHER = (
    _intervals("q.subject", "low", "high").replace("SCOPE", "")
    + _intervals("q.other", "other_low", "other_high").replace("SCOPE", "low, high,")
    + "WITH CASE WHEN low >= other_high + q.margin THEN 'yes' WHEN other_low >= high + q.margin THEN 'no' "
    "ELSE 'unknown' END AS answer"
)
"""Whether the subject's value lies above the other's by a margin, over all sources."""


def extreme(highest: bool) -> str:
    """The one of ``q.subjects`` whose value lies above (below) all others' by a margin, over all sources."""
    beyond = "row.low >= other.high + q.margin" if highest else "row.high + q.margin <= other.low"
    return (
        "UNWIND q.subjects AS subject "
        + _intervals("subject", "low", "high").replace("SCOPE", "subject,")
        + "WITH q, collect({subject: subject, low: low, high: high}) AS rows WHERE size(rows) = size(q.subjects) "
        "UNWIND rows AS row "
        f"WITH q, rows, row WHERE size([other IN rows WHERE other.subject <> row.subject AND {beyond}]) = size(rows) - 1 "
        "WITH row.subject AS answer"
    )


# --- paths ----------------------------------------------------------------------


def _hop(at: int, relation: Relation, direction: str, label: NodeLabel, key: str = "") -> str:
    left, right = ("<-", "-") if direction == "in" else ("-", "->" if direction == "out" else "-")
    node = f"(n{at}:{name(label)}{f' {{key: {key}}}' if key else ''})"
    return f"{left}[r{at}:{name(relation)}]{right}{node}"


def path_pattern(
    labels: tuple[NodeLabel, ...], hops: tuple[tuple[Relation, str], ...], fixed: tuple[tuple[int, str], ...]
) -> str:
    """A fixed-length typed path (n0)-…-(nk); ``fixed`` gives nodes whose key is a parameter."""
    keys = dict(fixed)
    first = f"(n0:{name(labels[0])}{f' {{key: {keys[0]}}}' if 0 in keys else ''})"
    rest = "".join(
        _hop(at, relation, direction, labels[at], keys.get(at, ""))
        for at, (relation, direction) in enumerate(hops, start=1)
    )
    return "MATCH " + first + rest


def distinct(labels: tuple[NodeLabel, ...]) -> str:
    """All nodes of a path are different (Cypher forbids repeated relationships only)."""
    pairs = [
        f"n{i}.key <> n{j}.key"
        for i in range(len(labels))
        for j in range(i + 1, len(labels))
        if labels[i] == labels[j]
    ]
    return " AND ".join(pairs) or "true"


def path_answers(
    labels: tuple[NodeLabel, ...],
    hops: tuple[tuple[Relation, str], ...],
    fixed: tuple[tuple[int, str], ...],
    answer: int,
    filters: tuple[tuple[int, str], ...] = (),
    apart: str = "",
) -> str:
    """The question's own query: keys of node ``answer`` on paths with the fixed nodes; filters are properties.

    ``apart``: a parameter ("q.n0") that no answer may be.
    """
    where = [distinct(labels)] + [
        f"coalesce(n{at}.{field}, '') = q.{field}" for at, field in filters if field.isidentifier()
    ]
    if apart:
        where.append(f"n{answer}.key <> {apart}")
    return f"{path_pattern(labels, hops, fixed)} WHERE {' AND '.join(where)} WITH DISTINCT n{answer}.key AS answer"


def path_samples(
    labels: tuple[NodeLabel, ...], hops: tuple[tuple[Relation, str], ...], fields: tuple[tuple[int, str], ...]
) -> str:
    """Paths from each of ``$seeds``: a bounded number per seed, none by way of ``$hubs``, ordered by keys.

    ``$hubs`` has a list of keys for each node between the ends. Hop by hop, each with what it may not lead to:
    a pattern as a whole would be walked through all that hangs on a hub before the hub is left out.
    """
    keys = ", ".join(f"n{i}.key AS k{i}" for i in range(len(labels)))
    extra = "".join(
        f", coalesce(n{at}.{field}, '') AS {field}" for at, field in fields if field.isidentifier()
    )
    names = ", ".join(f"k{i}" for i in range(len(labels))) + "".join(f", {field}" for _, field in fields)
    walked = f"MATCH (n0:{name(labels[0])} {{key: seed}})"
    for at, (relation, direction) in enumerate(hops, start=1):
        walked += f" MATCH (n{at - 1}){_hop(at, relation, direction, labels[at])}"
        if at < len(hops):
            nodes = ", ".join(f"n{i}" for i in range(at + 1))
            walked += f" WHERE NOT n{at}.key IN $hubs[{at - 1}] WITH {nodes}"
    return (
        f"UNWIND $seeds AS seed CALL {{ WITH seed {walked} WHERE {distinct(labels)} "
        f"RETURN DISTINCT {keys}{extra} ORDER BY {names} LIMIT $limit }} RETURN {names}"
    )


def hubs(label: NodeLabel, relation: Relation, direction: str) -> str:
    """Keys of the nodes of a label with more than ``$hub`` such relationships."""
    left, right = ("<-", "-") if direction == "in" else ("-", "->" if direction == "out" else "-")
    return (
        f"MATCH (n:{name(label)}){left}[:{name(relation)}]{right}() WITH n, count(*) AS degree "
        "WHERE degree > $hub RETURN n.key AS key"
    )


def connected(left: NodeLabel, right: NodeLabel) -> str | None:
    """Types of derived relationships between ``q.left`` and ``q.right`` (the shortcut test); None where
    the vocabulary has none between such nodes."""
    kinds = sorted(
        relation
        for relation, spec in RELATIONS.items()
        if (left in spec.subjects and right in spec.objects)
        or (right in spec.subjects and left in spec.objects)
    )
    if not kinds:
        return None
    return (
        f"MATCH (a:{name(left)} {{key: q.left}})-[r:{'|'.join(name(kind) for kind in kinds)}]-"
        f"(b:{name(right)} {{key: q.right}}) WITH DISTINCT type(r) AS answer"
    )


def keys_with(label: NodeLabel, relation: Relation, direction: str) -> str:
    """Keys of the nodes of a label that have such a relationship."""
    left, right = ("<-", "-") if direction == "in" else ("-", "->" if direction == "out" else "-")
    return (
        f"MATCH (n:{name(label)}){left}[:{name(relation)}]{right}() RETURN DISTINCT n.key AS key ORDER BY key"
    )

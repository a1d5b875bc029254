"""Compare the graph with the catalogue in both directions, row by row and property by property.

Both sides are spilled to a temporary file and compared there, so that memory
stays flat however large they are. What the vocabulary does not know (labels,
types, properties that somebody else put into the database) is named too.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.catalogue import Catalogue
from corpus.ids import canonical_json
from kg import queries
from kg.projection import Described, content_hash, graph_documents
from kg.schema import NodeLabel, Relation
from kg.store import GraphStore
from kg.sync import expected_rows

_END = "\x1f"
_SAID = {
    "missing": "missing in the graph",
    "extra": "not in the catalogue",
    "altered": "differs from the catalogue",
    "doubled": "more than once in the graph",
    "foreign": "not of the platform's vocabulary",
}
_KINDS = {
    "missing": "SELECT what, key FROM wanted EXCEPT SELECT what, key FROM there",
    "extra": "SELECT what, key FROM there EXCEPT SELECT what, key FROM wanted",
    "altered": "SELECT DISTINCT what, key FROM wanted JOIN there USING (what, key) WHERE wanted.hash <> there.hash",
    "doubled": "SELECT what, key FROM there GROUP BY what, key HAVING count(*) > 1",
    "foreign": "SELECT what, key FROM strange",
}
_TICK = 1000  # rows between two reports of progress
_SHOWN = 120  # characters of what a foreign node holds
Line = tuple[str, str, str]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Difference:
    """``kind``: missing, extra, altered, doubled or foreign; ``what``: a label or type; ``key``: whose.

    The key of a relationship names both its ends with their labels. A foreign
    node, which need not have a key, is named by its properties.
    """

    kind: str
    what: str
    key: str

    def __str__(self) -> str:
        return f"{self.what} {self.key}: {_SAID[self.kind]}"


def verify_graph(catalogue: Catalogue, store: GraphStore) -> list[Difference]:
    """What catalogue and graph disagree about; empty when the graph is what it should be."""
    return list(differences(catalogue, store))


def differences(
    catalogue: Catalogue,
    store: GraphStore,
    bite: int = 200,
    progress: Progress = lambda step, done, total: None,
) -> Iterator[Difference]:
    """The same one by one, ordered by kind, label or type, and key.

    A row counts as altered when its properties (one too many is enough), the hash it was written with or its
    labels are not the catalogue's; the id of the run that wrote it does not matter. ``progress`` is called with
    the name of a step, rows or documents done and how many there are.
    """
    with tempfile.TemporaryDirectory(prefix="hchem-verify-") as folder:
        spill = sqlite3.connect(Path(folder) / "rows.db", isolation_level=None)
        try:
            spill.executescript(
                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                "CREATE TABLE wanted (what TEXT, key TEXT, hash TEXT, PRIMARY KEY (what, key)) WITHOUT ROWID;"
                "CREATE TABLE there (what TEXT, key TEXT, hash TEXT);"
                "CREATE TABLE strange (what TEXT, key TEXT);"
            )
            _fill(spill, "INSERT OR REPLACE INTO wanted VALUES (?, ?, ?)", _wanted(catalogue, bite, progress))
            _fill(spill, "INSERT INTO there VALUES (?, ?, ?)", _there(store, progress))
            _fill(spill, "INSERT INTO strange VALUES (?, ?)", _strange(store))
            spill.execute("CREATE INDEX there_key ON there (what, key)")
            for kind, query in _KINDS.items():
                for what, key in spill.execute(f"{query} ORDER BY what, key"):
                    start, *rest = key.split(_END)
                    shown = f"{start} {rest[0]} -> {rest[1]} {rest[2]}" if len(rest) == 3 else key
                    yield Difference(kind, what, shown)
        finally:
            spill.close()


def _fill(spill: sqlite3.Connection, statement: str, lines: Iterable[Sequence[str]]) -> None:
    spill.execute("BEGIN")
    spill.executemany(statement, lines)
    spill.execute("COMMIT")


def _wanted(catalogue: Catalogue, bite: int, progress: Progress) -> Iterator[Line]:
    described = Described()
    with catalogue.reading() as session:
        documents = graph_documents(session)
        for at in range(0, len(documents), bite):
            progress("documents read", at, len(documents))
            rows, _ = expected_rows(session, documents[at : at + bite], described)
            for label, group in rows.nodes.items():
                for key, row in group.items():
                    yield label.value, key, row["hash"]
            for (kind, start, end), found in rows.links.items():
                for (a, b), row in found.items():
                    yield kind.value, _END.join((start, a, end, b)), row["hash"]
        progress("documents read", len(documents), len(documents))


def _there(store: GraphStore, progress: Progress) -> Iterator[Line]:
    counts = [store.read(query)[0]["n"] for query in (queries.COUNT_ALL_NODES, queries.COUNT_ALL_LINKS)]
    total = sum(counts)
    done = 0
    for done, line in enumerate(_rows(store), start=1):
        if done % _TICK == 0:
            # another writer may add rows while they are read
            progress("graph rows read", min(done, total), total)
        yield line
    progress("graph rows read", max(done, total), max(done, total))


def _rows(store: GraphStore) -> Iterator[Line]:
    for label in NodeLabel:
        for row in store.stream(queries.node_rows(label)):
            added = sorted(set(row["labels"]) - {label.value})
            yield (
                label.value,
                str(row["key"]),
                _hash(row["props"]) + "".join(f" also {name}" for name in added),
            )
    for kind in Relation:
        for row in store.stream(queries.link_rows(kind)):
            ends = (
                _own(row["start_labels"]), str(row["start"]), _own(row["end_labels"]), str(row["end"])
            )  # fmt: skip
            yield kind.value, _END.join(ends), _hash(row["props"])


def _strange(store: GraphStore) -> Iterator[tuple[str, str]]:
    """Nodes without a label of the vocabulary and relationships of another type, whoever put them there."""
    for row in store.stream(queries.foreign_nodes()):
        props, ours = row["props"], row["labels"] == [queries.MARKER]
        if (
            ours and set(props) == {"key", "value"} and props["key"] == queries.MARKER_KEY
        ):  # its key is unique
            continue
        yield ":".join(sorted(row["labels"])) or "(no label)", _content(row["props"])
    for row in store.stream(queries.FOREIGN_LINKS, known=[kind.value for kind in Relation]):
        ends = (_own(row["start_labels"]), _name(row["start"]), _own(row["end_labels"]), _name(row["end"]))
        yield row["type"], _END.join(ends)


def _own(labels: Sequence[str]) -> str:
    """The label a node was written with, without those that somebody added."""
    if len(labels) == 1:
        return labels[0]
    known = sorted({label.value for label in NodeLabel}.intersection(labels))
    return known[0] if known else ":".join(sorted(labels)) or "(no label)"


def _name(props: Mapping[str, Any]) -> str:
    return str(props["key"]) if "key" in props else _content(props)


def _content(props: Mapping[str, Any]) -> str:
    text = canonical_json(props).replace(_END, " ")
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _hash(props: dict[str, Any]) -> str:
    content = content_hash(props)
    return content if props.get("hash") == content else f"{content} stored as {props.get('hash')}"

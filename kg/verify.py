"""Compare the graph with the catalogue in both directions, row by row and property by property.

Both sides are spilled to a temporary file and compared there, so that memory
stays flat however large they are.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.catalogue import Catalogue
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
}
_KINDS = {
    "missing": "SELECT what, key FROM wanted EXCEPT SELECT what, key FROM there",
    "extra": "SELECT what, key FROM there EXCEPT SELECT what, key FROM wanted",
    "altered": "SELECT DISTINCT what, key FROM wanted JOIN there USING (what, key) WHERE wanted.hash <> there.hash",
    "doubled": "SELECT what, key FROM there GROUP BY what, key HAVING count(*) > 1",
}
Line = tuple[str, str, str]


@dataclass(frozen=True)
class Difference:
    """``kind``: missing, extra, altered or doubled; ``what``: a label or relationship type; ``key``: whose.

    The key of a relationship names both its ends with their labels.
    """

    kind: str
    what: str
    key: str

    def __str__(self) -> str:
        return f"{self.what} {self.key}: {_SAID[self.kind]}"


def verify_graph(catalogue: Catalogue, store: GraphStore) -> list[Difference]:
    """What catalogue and graph disagree about; empty when the graph is what it should be."""
    return list(differences(catalogue, store))


def differences(catalogue: Catalogue, store: GraphStore, bite: int = 200) -> Iterator[Difference]:
    """The same one by one, ordered by kind, label or type, and key.

    A row counts as altered when its properties, or the hash it was written with, are not the catalogue's;
    the id of the run that wrote it does not matter.
    """
    with tempfile.TemporaryDirectory(prefix="hchem-verify-") as folder:
        spill = sqlite3.connect(Path(folder) / "rows.db", isolation_level=None)
        try:
            spill.executescript(
                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                "CREATE TABLE wanted (what TEXT, key TEXT, hash TEXT, PRIMARY KEY (what, key)) WITHOUT ROWID;"
                "CREATE TABLE there (what TEXT, key TEXT, hash TEXT);"
            )
            _fill(spill, "INSERT OR REPLACE INTO wanted VALUES (?, ?, ?)", _wanted(catalogue, bite))
            _fill(spill, "INSERT INTO there VALUES (?, ?, ?)", _there(store))
            spill.execute("CREATE INDEX there_key ON there (what, key)")
            for kind, query in _KINDS.items():
                for what, key in spill.execute(f"{query} ORDER BY what, key"):
                    start, *rest = key.split(_END)
                    shown = f"{start} {rest[0]} -> {rest[1]} {rest[2]}" if rest else start
                    yield Difference(kind, what, shown)
        finally:
            spill.close()


def _fill(spill: sqlite3.Connection, statement: str, lines: Iterable[Line]) -> None:
    spill.execute("BEGIN")
    spill.executemany(statement, lines)
    spill.execute("COMMIT")


def _wanted(catalogue: Catalogue, bite: int) -> Iterator[Line]:
    described = Described()
    with catalogue.reading() as session:
        documents = graph_documents(session)
        for at in range(0, len(documents), bite):
            rows, _ = expected_rows(session, documents[at : at + bite], described)
            for label, group in rows.nodes.items():
                for key, row in group.items():
                    yield label.value, key, row["hash"]
            for (kind, start, end), found in rows.links.items():
                for (a, b), row in found.items():
                    yield kind.value, _END.join((start, a, end, b)), row["hash"]


def _there(store: GraphStore) -> Iterator[Line]:
    for label in NodeLabel:
        for key, props in store.nodes(label):
            yield label.value, key, _hash(props)
    for kind in Relation:
        for *ends, props in store.links(kind):
            yield kind.value, _END.join(map(str, ends)), _hash(props)


def _hash(props: dict[str, object]) -> str:
    content = content_hash(props)
    return content if props.get("hash") == content else f"{content} stored as {props.get('hash')}"

"""``hchem graph verify``: catalogue and graph compared in both directions, by content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from flows.commands.graph import app
from kg.embedded import EmbeddedGraph
from kg.projection import GraphRows, graph_documents
from kg.schema import NodeLabel, Relation
from kg.store import GraphStore
from kg.sync import rebuild, sync_documents
from kg.verify import differences, verify_graph
from tests.kg.graph_builders import MADE, fill
from tests.servers.neo4j_server import Neo4jServer

pytestmark = pytest.mark.graph
FEW = MADE[:2]
EDGE = "(:Substance {key: '67-64-1'})-[r:INCOMPATIBLE_WITH]->(:ReactiveGroup {key: 'group:bases'})"


@pytest.fixture
def loaded(tmp_path: Path, graph_store: GraphStore) -> Catalogue:
    """A catalogue in a data directory of its own, and the graph that belongs to it."""
    (tmp_path / "data").mkdir()
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/data/catalogue.db")
    fill(catalogue, FEW)
    with catalogue.reading() as session:
        documents = graph_documents(session)
    sync_documents(catalogue, graph_store, documents, "run-1")
    return catalogue


def changed_by_hand(store: GraphStore) -> None:
    """What a person at the server's console, a bug or a broken disk may do; the stored hashes stay as they were."""
    store.delete_nodes(NodeLabel.HAZARD_STATEMENT, ["H225"])
    extra = GraphRows()
    extra.node(NodeLabel.USE, "use:x", {"text": "x"})
    extra.link((Relation.USED_FOR, NodeLabel.SUBSTANCE, NodeLabel.USE), "67-64-1", "use:x")
    store.write(extra)
    for query in (
        "MATCH (s:Substance {key: '67-64-1'}) SET s.name_zh = '甲醇'",
        "MATCH (a:Assertion {relation: 'INCOMPATIBLE_WITH', subject: '67-56-1', object: 'group:acids', language: 'zh'}) "
        "SET a.polarity = 'negative'",
        f"MATCH {EDGE} SET r.support = 9",
        "MATCH (:Substance {key: '67-64-1'})-[r:SHIPPED_AS]->() DELETE r",
        "MATCH (s:Substance {key: '67-56-1'}) MATCH (t:TransportEntry {key: 'UN1230/3/II'}) "
        "CREATE (s)-[:SHIPPED_AS]->(t)",
    ):
        store._write(query)


def test_every_kind_of_difference_is_found_and_mended(loaded: Catalogue, graph_store: GraphStore) -> None:
    assert verify_graph(loaded, graph_store) == []
    changed_by_hand(graph_store)
    found = [str(difference) for difference in verify_graph(loaded, graph_store)]
    altered = [line for line in found if line.endswith("differs from the catalogue")]
    for line in (
        "HazardStatement H225: missing in the graph",
        "HAS_H Substance 67-64-1 -> HazardStatement H225: missing in the graph",
        "SHIPPED_AS Substance 67-64-1 -> TransportEntry UN1090/3/II: missing in the graph",
        "Use use:x: not in the catalogue",
        "USED_FOR Substance 67-64-1 -> Use use:x: not in the catalogue",
        "Substance 67-64-1: differs from the catalogue",
        "INCOMPATIBLE_WITH Substance 67-64-1 -> ReactiveGroup group:bases: differs from the catalogue",
        "SHIPPED_AS Substance 67-56-1 -> TransportEntry UN1230/3/II: more than once in the graph",
    ):
        assert line in found
    assert len([line for line in altered if line.startswith("Assertion ")]) == 1
    assert not [line for line in altered if line.startswith("Substance 67-56-1")]
    rebuild(loaded, graph_store)
    assert verify_graph(loaded, graph_store) == []


FOREIGN = (
    "CREATE (:Foreign {name: 'z', n: 1})-[:ODD]->(:Foreign)",
    "CREATE ()",
    "MATCH (s:Substance {key: '67-64-1'}) SET s:Solvent",
    "MATCH (s:Substance {key: '67-64-1'}) MATCH (t:HazardStatement {key: 'H319'}) CREATE (t)-[:BELONGS_TO {why: 'x'}]->(s)",
    "MATCH (s:Substance {key: '67-56-1'}) SET s.price = 3",
    f"MATCH {EDGE} SET r.checked = true",
    "CREATE (:Marker {key: 'mine', value: 'x'})",
)


def test_what_others_put_into_the_database_is_found(loaded: Catalogue, graph_store: GraphStore) -> None:
    try:
        _foreign(loaded, graph_store)
    finally:
        graph_store._write("MATCH (n) DETACH DELETE n")


def _foreign(loaded: Catalogue, graph_store: GraphStore) -> None:
    graph_store.write_marker("this life")
    assert verify_graph(loaded, graph_store) == []
    for query in FOREIGN:
        graph_store._write(query)
    assert sorted(str(difference) for difference in verify_graph(loaded, graph_store)) == sorted(
        [
            "(no label) {}: not of the platform's vocabulary",
            'Foreign {"n":1,"name":"z"}: not of the platform\'s vocabulary',
            "Foreign {}: not of the platform's vocabulary",
            'ODD Foreign {"n":1,"name":"z"} -> Foreign {}: not of the platform\'s vocabulary',
            'Marker {"key":"mine","value":"x"}: not of the platform\'s vocabulary',
            "Substance 67-64-1: differs from the catalogue",
            "BELONGS_TO HazardStatement H319 -> Substance 67-64-1: not of the platform's vocabulary",
            "Substance 67-56-1: differs from the catalogue",
            "INCOMPATIBLE_WITH Substance 67-64-1 -> ReactiveGroup group:bases: differs from the catalogue",
        ]
    )
    rebuild(loaded, graph_store)
    left = verify_graph(loaded, graph_store)
    assert {difference.kind for difference in left} == {"foreign"}
    assert {difference.what for difference in left} == {"(no label)", "Foreign", "ODD", "Marker"}
    graph_store._write("MATCH (n) WHERE n:Foreign OR n.key = 'mine' OR size(labels(n)) = 0 DETACH DELETE n")
    assert verify_graph(loaded, graph_store) == []


def test_progress_counts_up_to_what_there_is(loaded: Catalogue, graph_store: GraphStore) -> None:
    seen: dict[str, list[tuple[int, int]]] = {}
    for _ in differences(
        loaded, graph_store, 1, lambda step, *counts: seen.setdefault(step, []).append(counts)
    ):
        pass
    assert [done for done, _ in seen["documents read"]] == [0, 1, 2, 3, 4]
    for counts in seen.values():
        assert counts == sorted(counts)
        assert counts[-1][0] == counts[-1][1] > 0


def test_command(
    loaded: Catalogue,
    graph_store: GraphStore,
    graph_server: EmbeddedGraph | Neo4jServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded.close()
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "DATA_DIR": str(tmp_path / "data"),
        "GRAPH__URI": graph_server.uri,
        "GRAPH__USER": graph_server.user,
        "GRAPH__PASSWORD": graph_server.password,
        "GRAPH__DATABASE": graph_server.database,
    }.items():
        monkeypatch.setenv(f"HCHEM_{name}", value)
    runner = CliRunner()
    result = runner.invoke(app, ["verify"])
    assert result.exit_code == 0, result.output
    assert "agree" in result.stdout
    assert "graph rows read" in result.stderr
    graph_store.delete_nodes(NodeLabel.HAZARD_STATEMENT, ["H225", "H319"])
    result = runner.invoke(app, ["verify", "--json", "--limit", "0"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["agree"]
    assert found["counts"] == {"missing": len(found["differences"])}
    assert {"kind": "missing", "what": "HazardStatement", "key": "H225"} in found["differences"]
    result = runner.invoke(app, ["verify", "--limit", "1"])
    assert result.exit_code == 1
    assert f"and {found['counts']['missing'] - 1} more" in result.output
    assert runner.invoke(app, ["rebuild"]).exit_code == 0
    assert runner.invoke(app, ["verify"]).exit_code == 0
    graph_store._write(FOREIGN[1])
    result = runner.invoke(app, ["verify"])
    assert result.exit_code == 1
    assert "1 difference (1 foreign)" in result.stdout
    assert "rebuild leaves it" in result.stdout
    graph_store._write("MATCH (n) WHERE size(labels(n)) = 0 DELETE n")

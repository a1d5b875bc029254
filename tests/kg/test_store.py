"""The graph follows the catalogue: idempotent, incremental, removable, rebuilt to the same content."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, GraphSnapshot
from corpus.errors import TransientError
from corpus.stages import StageContext, pending, run_step
from kg import queries
from kg.graph_settings import GraphSettings
from kg.projection import GraphRows, graph_documents
from kg.schema import NodeLabel, Relation
from kg.stage import GraphSnapshotStep, GraphSync, current_snapshot
from kg.store import GraphHandle, GraphStore
from kg.sync import rebuild, remove_vanished, sync_documents
from kg.verify import verify_graph
from tests.kg.graph_builders import AGENTS, MADE, L, R, Sheet, data_sheet, entity, fill

pytestmark = pytest.mark.graph
FEW = MADE[:3]


@pytest.fixture
def store(graph_store: GraphStore) -> GraphStore:
    """Every test of this module runs on both kinds of server."""
    return graph_store


def load(catalogue: Catalogue, store: GraphStore) -> list[str]:
    with catalogue.reading() as session:
        documents = graph_documents(session)
    sync_documents(catalogue, store, documents, "run-1")
    return documents


def test_import_twice_changes_nothing(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    fill(sqlite_catalogue, FEW)
    documents = load(sqlite_catalogue, store)
    content, counts = store.content_hash()
    again = sync_documents(sqlite_catalogue, store, documents, "run-2")
    assert again.changed == 0
    assert again.nodes_unchanged == sum(counts["nodes"].values())
    assert again.relationships_unchanged == sum(counts["relationships"].values())
    assert store.content_hash()[0] == content
    assert verify_graph(sqlite_catalogue, store) == []


def test_order_and_batches_do_not_matter(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    fill(sqlite_catalogue, FEW)
    documents = load(sqlite_catalogue, store)
    content = store.content_hash()[0]
    store.clear()
    for document in reversed(documents):
        sync_documents(sqlite_catalogue, store, [document], "other")
    assert store.content_hash()[0] == content
    rebuild(sqlite_catalogue, store, bite=2)
    assert store.content_hash()[0] == content


def test_removing_a_document_recomputes_what_it_supported(
    sqlite_catalogue: Catalogue, store: GraphStore
) -> None:
    fill(sqlite_catalogue, FEW)
    documents = load(sqlite_catalogue, store)
    edge = (
        "MATCH (s:Substance {key: '67-64-1'})-[r:INCOMPATIBLE_WITH]->(g) RETURN r.support AS n ORDER BY g.key"
    )
    assert {row["n"] for row in store.read(edge)} == {2}
    with sqlite_catalogue.writing() as session:
        for document in documents:
            row = session.get(Document, document)
            assert row is not None
            if "67-64-1" in row.identity and row.language == "zh":
                row.state = "rejected"
    removed = remove_vanished(sqlite_catalogue, store)
    assert removed.nodes_deleted > 0
    assert {row["n"] for row in store.read(edge)} == {1}
    assert verify_graph(sqlite_catalogue, store) == []
    content = store.content_hash()[0]
    rebuild(sqlite_catalogue, store)
    assert store.content_hash()[0] == content


def test_changed_document_replaces_its_own_part_only(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    fill(sqlite_catalogue, FEW)
    load(sqlite_catalogue, store)
    changed = data_sheet(MADE[0], "zh")
    changed.facts = [f for f in changed.facts if f["object_key"] != "H336"]
    with sqlite_catalogue.writing() as session:
        changed.store(session)
    done = sync_documents(sqlite_catalogue, store, [changed.id], "run-2")
    assert done.nodes_deleted >= 1
    assert done.nodes_created == 1, "the list it was on is written anew"
    assert verify_graph(sqlite_catalogue, store) == []


def test_shared_node_follows_whoever_still_speaks_of_it(
    sqlite_catalogue: Catalogue, store: GraphStore
) -> None:
    sheets = [Sheet("一", "zh"), Sheet("二", "zh")]
    for sheet, name in zip(sheets, ("强氧化剂", "氧化性物质"), strict=True):
        line = sheet.line(10, f"禁配物：{name}")
        sheet.fact("71-43-2", R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:x", line, properties={"zh": name})
    with sqlite_catalogue.writing() as session:
        entity(session, "71-43-2", zh="苯")
        for sheet in sheets:
            sheet.store(session)
    load(sqlite_catalogue, store)
    shown = store.read("MATCH (g:ReactiveGroup) RETURN g.zh AS zh")[0]["zh"]
    winner = next(sheet for sheet in sheets if shown in sheet.facts[0]["quote"])
    other = winner.line(10, "避免接触水。")
    winner.facts.clear()
    winner.fact(
        "71-43-2", R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:water", other, properties={"zh": "水"}
    )
    with sqlite_catalogue.writing() as session:
        winner.store(session)
    sync_documents(sqlite_catalogue, store, [winner.id])
    names = {row["zh"] for row in store.read("MATCH (g:ReactiveGroup) RETURN g.zh AS zh")}
    assert shown not in names
    assert verify_graph(sqlite_catalogue, store) == []


def test_merged_substance_moves_its_assertions(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    fill(sqlite_catalogue, FEW)
    documents = load(sqlite_catalogue, store)
    with sqlite_catalogue.writing() as session:
        for row in session.query(Assertion).filter(Assertion.subject_key == MADE[0].cas):
            row.subject_key = MADE[1].cas
    sync_documents(sqlite_catalogue, store, documents, "run-2")
    remove_vanished(sqlite_catalogue, store)
    assert verify_graph(sqlite_catalogue, store) == []
    assert not store.read("MATCH (s:Substance {key: $key}) RETURN s.key AS key", key=MADE[0].cas)


def test_killed_between_writes_is_repaired(
    sqlite_catalogue: Catalogue, store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_catalogue, FEW)
    documents = load(sqlite_catalogue, store)
    changed = data_sheet(MADE[0], "en")
    changed.facts = changed.facts[:4]
    with sqlite_catalogue.writing() as session:
        changed.store(session)
    calls, limit = 0, 0
    original = GraphStore._once

    def failing(self: GraphStore, query: str, parameters: dict[str, object]) -> tuple[int, int, int]:
        nonlocal calls
        calls += 1
        if calls == limit:
            raise TransientError("killed")
        return original(self, query, parameters)

    for place in (3, 6, 9):
        calls, limit = 0, place
        monkeypatch.setattr(GraphStore, "_once", failing)
        with pytest.raises(TransientError):
            sync_documents(sqlite_catalogue, store, documents, "run-2")
        monkeypatch.setattr(GraphStore, "_once", original)
    sync_documents(sqlite_catalogue, store, documents, "run-3")
    remove_vanished(sqlite_catalogue, store)
    assert verify_graph(sqlite_catalogue, store) == []


def test_negative_statements_are_nodes_and_never_edges(
    sqlite_catalogue: Catalogue, store: GraphStore
) -> None:
    sheet = Sheet("苯说明", "zh")
    line = sheet.line(10, "苯与水不发生反应，可以与水接触。")
    sheet.fact("71-43-2", R.INCOMPATIBLE_WITH, L.REACTIVE_GROUP, "group:water", line, polarity="negative")
    with sqlite_catalogue.writing() as session:
        entity(session, "71-43-2", zh="苯", en="Benzene")
        sheet.store(session)
    load(sqlite_catalogue, store)
    stats = store.stats()
    assert stats["nodes"]["Assertion"] == 1
    assert "INCOMPATIBLE_WITH" not in stats["relationships"]
    assert verify_graph(sqlite_catalogue, store) == []


HOSTILE = [
    "`) DETACH DELETE n //",
    "a\"b'c\\d",
    "}) DETACH DELETE (n {",
    "}) MATCH (n) DETACH DELETE n //",
    "$rows {row.key} \\u0027 \\",
    "x" * 10_000,
    "长" * 10_000,
    "nul\x00byte",
    "\u202eright to left\u202c",
    "حمض الكبريتيك",
    "😀🧪",
    "a\u0301 \u200b\ufeff",
]


def test_hostile_text_comes_back_as_data(store: GraphStore) -> None:
    rows = GraphRows()
    for at, text in enumerate(HOSTILE):
        rows.node(NodeLabel.USE, f"use:{at}:{text[:100]}", {"text": text, "list": [text, text]})
        rows.node(NodeLabel.SUBSTANCE, f"{text[:100]}{at}", {"name_zh": text})
        rows.link(
            (Relation.USED_FOR, NodeLabel.SUBSTANCE, NodeLabel.USE),
            f"{text[:100]}{at}",
            f"use:{at}:{text[:100]}",
            {"conditions": [text]},
        )
    store.write(rows)
    again = store.write(rows)
    assert again.changed == 0
    found = {props["text"] for _, props in store.nodes(NodeLabel.USE)}
    assert found == set(HOSTILE)
    assert all(props["list"] == [props["text"]] * 2 for _, props in store.nodes(NodeLabel.USE))
    links = list(store.links(Relation.USED_FOR))
    assert {props["conditions"][0] for *_, props in links} == set(HOSTILE)
    for _, start, _, end, props in links:
        one = store.read(
            "MATCH (s:Substance {key: $start})-[:USED_FOR]->(u:Use {key: $end}) RETURN u.text AS text",
            start=start,
            end=end,
        )
        assert one == [{"text": props["conditions"][0]}]


def test_hostile_names_go_through_catalogue_and_graph(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    sheets = []
    for at, text in enumerate(HOSTILE):
        sheet = Sheet(f"{at} {text}", "zh")
        line = sheet.line(10, f"禁配物：{text}")
        sheet.fact(
            f"name:{at}",
            R.INCOMPATIBLE_WITH,
            L.REACTIVE_GROUP,
            f"group:{text[:90]}",
            line,
            properties={"zh": text},
        )
        sheets.append(sheet)
    with sqlite_catalogue.writing() as session:
        for at, text in enumerate(HOSTILE):
            entity(session, f"name:{at}", zh=text, en=text)
        for sheet in sheets:
            sheet.store(session)
    load(sqlite_catalogue, store)
    assert verify_graph(sqlite_catalogue, store) == []
    named = {props["name_zh"] for _, props in store.nodes(NodeLabel.SUBSTANCE)}
    assert named == set(HOSTILE)
    quoted = {props["quote"] for _, props in store.nodes(NodeLabel.ASSERTION)}
    assert quoted == {f"禁配物：{text}" for text in HOSTILE}


def test_half_a_surrogate_pair_is_written_as_the_replacement_character(store: GraphStore) -> None:
    """No server can hold one, and no catalogue: it must not stop the rest of a batch."""
    rows = GraphRows()
    rows.node(NodeLabel.USE, "use:\ud800", {"text": "half \udc00", "list": ["\ud83e\uddea", "\ud83e"]})
    rows.node(NodeLabel.USE, "use:whole", {"text": "whole"})
    rows.node(NodeLabel.SUBSTANCE, "s", {})
    rows.link((Relation.USED_FOR, NodeLabel.SUBSTANCE, NodeLabel.USE), "s", "use:\ud800")
    store.write(rows)
    found = dict(store.nodes(NodeLabel.USE))
    assert found["use:\ufffd"]["text"] == "half \ufffd"
    assert found["use:\ufffd"]["list"] == ["🧪", "\ufffd"]
    assert found["use:whole"]["text"] == "whole"
    assert len(list(store.links(Relation.USED_FOR))) == 1
    assert store.read("RETURN $text AS text", text="\ud800") == [{"text": "\ufffd"}]


def test_only_the_vocabulary_becomes_cypher() -> None:
    with pytest.raises(TypeError):
        queries.name("Substance`) DETACH DELETE n //")  # type: ignore[arg-type]
    assert queries.name(Relation.HAS_H) == "`HAS_H`"


def test_threads_make_no_duplicates_and_lose_nothing(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    fill(sqlite_catalogue, FEW)
    with sqlite_catalogue.reading() as session:
        documents = graph_documents(session)
    store.ensure_constraints()
    errors: list[Exception] = []

    def work(order: list[str]) -> None:
        for _ in range(10):  # a lost race is transient: the runner tries such items again
            try:
                sync_documents(sqlite_catalogue, store, order)
                return
            except TransientError as error:
                last = error
        errors.append(last)

    threads = [
        threading.Thread(target=work, args=(documents[i % 3 :] + documents[: i % 3],)) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert verify_graph(sqlite_catalogue, store) == []
    for label in NodeLabel:
        twice = store.read(
            f"MATCH (n:{queries.name(label)}) WITH n.key AS key, count(*) AS n WHERE n > 1 RETURN key"
        )
        assert twice == []


def test_stage_skips_what_is_loaded_and_reloads_a_dropped_graph(
    sqlite_catalogue: Catalogue, tmp_path: Path, store: GraphStore
) -> None:
    import shutil

    fill(sqlite_catalogue, FEW[:1])
    settings = GraphSettings(heap="256m")
    ctx = StageContext(sqlite_catalogue, "run-1")

    def steps() -> tuple[GraphHandle, GraphSync, GraphSnapshotStep]:
        handle = GraphHandle(settings, tmp_path)
        sync = GraphSync(handle, settings)
        return handle, sync, GraphSnapshotStep(handle, sync)

    handle, sync, snapshot = steps()
    first = run_step(sync, ctx)
    assert first.states["kept"] == 2
    assert first.counts["nodes_created"] > 0
    run_step(snapshot, ctx)
    handle.close()
    with sqlite_catalogue.reading() as session:
        named = current_snapshot(session)
        assert named is not None
    handle, sync, snapshot = steps()
    assert pending(sync, ctx) == []
    assert pending(snapshot, ctx) == []
    assert handle._store is None, "the server was started although nothing is to be done"
    shutil.rmtree(tmp_path / "graph")
    handle, sync, snapshot = steps()
    assert run_step(sync, ctx).counts["nodes_created"] == first.counts["nodes_created"]
    run_step(snapshot, ctx)
    handle.close()
    with sqlite_catalogue.reading() as session:
        again = current_snapshot(session)
        assert again is not None
        assert again.snapshot_id == named.snapshot_id
        assert session.query(GraphSnapshot).count() == 1


def test_removed_document_is_pending_in_the_snapshot_step(
    sqlite_catalogue: Catalogue, tmp_path: Path, store: GraphStore
) -> None:
    sheets = fill(sqlite_catalogue, FEW[:1])
    settings = GraphSettings(heap="256m")
    handle = GraphHandle(settings, tmp_path)
    sync = GraphSync(handle, settings)
    snapshot = GraphSnapshotStep(handle, sync)
    ctx = StageContext(sqlite_catalogue, "run-1")
    run_step(sync, ctx)
    run_step(snapshot, ctx)
    with sqlite_catalogue.writing() as session:
        row = session.get(Document, sheets[0].id)
        assert row is not None
        row.state = "rejected"
    assert pending(sync, ctx) == []
    report = run_step(snapshot, ctx)
    assert report.counts["nodes_deleted"] > 0
    assert verify_graph(sqlite_catalogue, handle.store) == []
    handle.close()


def test_a_rebuild_that_was_cut_off_is_not_trusted(
    sqlite_catalogue: Catalogue, tmp_path: Path, store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_catalogue, FEW)
    settings = GraphSettings(heap="256m")
    handle = GraphHandle(settings, tmp_path)
    sync = GraphSync(handle, settings)
    snapshot = GraphSnapshotStep(handle, sync)
    ctx = StageContext(sqlite_catalogue, "run-1")
    run_step(sync, ctx)
    run_step(snapshot, ctx)
    rebuild(sqlite_catalogue, handle.store, bite=1)
    assert pending(sync, ctx) == pending(snapshot, ctx) == []

    def cut_off(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("kg.sync.sync_documents", cut_off)
        with pytest.raises(KeyboardInterrupt):
            rebuild(sqlite_catalogue, handle.store, bite=1)
    assert verify_graph(sqlite_catalogue, handle.store) != []
    assert pending(sync, ctx)
    assert pending(snapshot, ctx)
    run_step(sync, ctx)
    run_step(snapshot, ctx)
    assert verify_graph(sqlite_catalogue, handle.store) == []
    handle.close()


def test_agents_meet_across_languages(sqlite_catalogue: Catalogue, store: GraphStore) -> None:
    fill(sqlite_catalogue, FEW[:1])
    load(sqlite_catalogue, store)
    rows = store.read("MATCH (m:Measure {key: 'agent:foam'}) RETURN m.zh AS zh, m.en AS en")
    assert rows == [{"zh": AGENTS["foam"][0], "en": AGENTS["foam"][1]}]

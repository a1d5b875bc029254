"""Terms, BM25 and the Milvus Lite index."""

from __future__ import annotations

import logging
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

from chunking.evaluation.settings import VectorSettings
from chunking.index import ChunkVectors, VectorIndex, check_vectors, lost_methods
from chunking.lexical import LexicalIndex
from chunking.records import ChunkSet, chunk_fingerprint, chunk_methods, load_chunks
from chunking.terms import terms
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Document
from corpus.errors import SettingsError
from models import Models
from models.settings import EmbeddingSettings, ModelSettings
from tests.chunking.rows import PAGES, add_chunks, add_documents, identity
from tests.servers.model_server import ModelServer

SETTINGS = VectorSettings()


@pytest.fixture(scope="module")
def models() -> Models:
    """Hashed n-grams: the fastest real embedder."""
    return Models(ModelSettings(api_key=None, embeddings=EmbeddingSettings(cohesion="ngram")))


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with catalogue.writing() as session:
        add_documents(session)
        add_chunks(session, "sentence", 20)
        add_chunks(
            session, "fixed", lambda text: [(i, min(i + 17, len(text))) for i in range(0, len(text), 17)]
        )
    return catalogue


def chunks_of(catalogue: Catalogue, method: str) -> ChunkSet:
    with catalogue.reading() as session:
        return load_chunks(session, method)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAS号67-64-1，H225", ["cas", "号", "67-64-1", "h225"]),
        ("UN No. 1230 and UN1230", ["un1230", "un1230"]),
        ("甲醇的闪点是多少？", ["甲醇", "甲", "醇", "闪点", "闪", "点"]),
        ("The flash points of gases: 11.5 ℃", ["flash", "point", "gase", "11.5", "c"]),
        ("1,2-二氯乙烷", ["1,2", "二氯", "氯乙", "乙烷", "二", "氯", "乙", "烷"]),
        ("", []),
        ("的是？", []),
    ],
)
def test_terms_keep_identifiers_whole(text: str, expected: list[str]) -> None:
    assert sorted(terms(text)) == sorted(expected)


def test_bm25_finds_the_chunk_through_title_and_words(catalogue: Catalogue) -> None:
    chunks = chunks_of(catalogue, "sentence")
    index = LexicalIndex(chunks)
    by_id = {leaf.chunk_id: leaf for leaf in chunks.leaves}
    for question, name, words in (
        ("甲苯的引燃温度是多少？", "toluene-zh", "535"),
        ("甲醇的引燃温度是多少？", "methanol-zh", "464"),
        ("What is the flash point of acetone?", "acetone-en", "-20"),
    ):
        first = by_id[index.search([question], 5)[0][0]]
        assert first.document_id == identity(name)[0]
        assert words in first.text
    assert index.search(["zzz"], 5) == [[]]
    assert LexicalIndex(ChunkSet("x", (), {})).search(["甲醇"], 3) == [[]]


def test_only_present_versions_of_kept_documents_count(catalogue: Catalogue) -> None:
    assert chunk_methods(catalogue.reading().__enter__()) == ["fixed", "sentence"]
    before = chunks_of(catalogue, "sentence")
    with catalogue.writing() as session:
        print_before = chunk_fingerprint(session, "sentence")
        row = session.get(Document, identity("toluene-zh")[0])
        assert row is not None
        row.version_id = "newer"
    after = chunks_of(catalogue, "sentence")
    assert {n.document_id for n in before.nodes} - {n.document_id for n in after.nodes} == {
        identity("toluene-zh")[0]
    }
    with catalogue.reading() as session:
        assert chunk_fingerprint(session, "sentence") != print_before


def test_pooled_vectors_are_unit_and_need_no_text_beside_the_sentences(
    catalogue: Catalogue, models: Models
) -> None:
    vectors = ChunkVectors(models, SETTINGS)
    fixed = chunks_of(catalogue, "fixed")
    found = vectors.chunks(fixed.leaves, fixed)
    assert found.dtype == np.float32
    norms = np.linalg.norm(found, axis=1)
    assert np.allclose(norms, 1, atol=1e-5)
    known = set(vectors._known)
    sentence = chunks_of(catalogue, "sentence")
    vectors.chunks(sentence.leaves, sentence)
    assert set(vectors._known) - known == set()  # cut sentences cost nothing new
    assert vectors.name == models.embedder("cohesion").name + "/sentence"


def test_an_index_embedder_that_was_chosen_embeds_whole_chunks(models: Models) -> None:
    chosen = Models(ModelSettings(api_key=None, embeddings=EmbeddingSettings(index="ngram")))
    assert ChunkVectors(chosen, SETTINGS).unit == "chunk"
    assert ChunkVectors(chosen, VectorSettings(unit="sentence")).unit == "sentence"


def test_sync_sends_differences_and_search_finds_them(
    catalogue: Catalogue, models: Models, tmp_path: Path
) -> None:
    vectors = ChunkVectors(models, SETTINGS)
    chunks, fixed = chunks_of(catalogue, "sentence"), chunks_of(catalogue, "fixed")
    total = len(chunks.leaves)
    with VectorIndex(SETTINGS, tmp_path) as index:
        assert index.sync(chunks, vectors) == {"indexed": total, "removed": 0, "unchanged": 0}
        index.sync(fixed, vectors)
        assert index.sync(chunks, vectors) == {"indexed": 0, "removed": 0, "unchanged": total}
        asked = vectors.questions(["甲苯的闪点", "acetone flash point"])
        ranked = index.search("sentence", asked, 3, vectors.name)
        by_id = {leaf.chunk_id: leaf for leaf in chunks.leaves}
        assert by_id[ranked[0][0]].document_id == identity("toluene-zh")[0]
        assert "flash point" in by_id[ranked[1][0]].text
        assert all(key in by_id for row in ranked for key in row)  # nothing of the other method
        # against brute force
        scores = vectors.chunks(chunks.leaves, chunks) @ asked.T
        best = chunks.leaves[int(np.argmax(scores[:, 0]))]
        assert ranked[0][0] == best.chunk_id
    gone = identity("toluene-zh")[0]
    fewer = ChunkSet("sentence", tuple(n for n in chunks.nodes if n.document_id != gone), chunks.titles)
    with VectorIndex(SETTINGS, tmp_path) as index:  # reopened
        report = index.sync(fewer, vectors)
        assert report == {"indexed": 0, "removed": total - len(fewer.leaves), "unchanged": len(fewer.leaves)}
        ranked = index.search("sentence", asked, 50, vectors.name)
        assert set(ranked[0]) == {leaf.chunk_id for leaf in fewer.leaves}


def test_another_model_behind_the_same_name_makes_the_index_anew(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    chunks = chunks_of(catalogue, "sentence")
    for dimension in (16, 24):
        with ModelServer(dimension=dimension) as server, VectorIndex(SETTINGS, tmp_path) as index:
            endpoint = EmbeddingSettings(base_url=server.base_url, model="letters")
            vectors = ChunkVectors(Models(ModelSettings(api_key=None, embeddings=endpoint)), SETTINGS)
            assert index.sync(chunks, vectors)["indexed"] == len(chunks.leaves)
            asked = vectors.questions(["甲苯的闪点"])
            assert asked.shape == (1, dimension)
            assert len(index.search("sentence", asked, 3, vectors.name)[0]) == 3


def test_the_embedded_server_logs_no_traceback_for_what_it_has_not(
    catalogue: Catalogue, models: Models, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with VectorIndex(SETTINGS, tmp_path) as index:
        index.sync(chunks_of(catalogue, "sentence"), ChunkVectors(models, SETTINGS))
    assert [record for record in caplog.records if record.name == "grpc._server"] == []
    try:
        raise NotImplementedError("Method not implemented!")
    except NotImplementedError:
        logging.getLogger("grpc._server").exception("another method")
    assert "another method" in caplog.text


def test_top_ranks_are_those_of_the_whole_ranking(catalogue: Catalogue) -> None:
    index = LexicalIndex(chunks_of(catalogue, "fixed"))
    for question in ("甲醇的闪点是多少？", "flash point", "的"):
        whole = list(index.scores(question))
        for top_k in (1, 2, 5, 1000):
            assert index.search([question], top_k) == [whole[:top_k]]


def test_a_lost_index_is_noticed(catalogue: Catalogue, models: Models, tmp_path: Path) -> None:
    vectors = ChunkVectors(models, SETTINGS)
    assert lost_methods(SETTINGS, tmp_path, vectors.name, ["sentence"]) == {"sentence"}
    with VectorIndex(SETTINGS, tmp_path) as index:
        index.sync(chunks_of(catalogue, "sentence"), vectors)
    assert lost_methods(SETTINGS, tmp_path, vectors.name, ["sentence", "fixed"]) == {"fixed"}
    assert lost_methods(SETTINGS, tmp_path, "other/sentence", ["sentence"]) == {"sentence"}
    shutil.rmtree(tmp_path / "vectors" / "chunks.db")
    assert lost_methods(SETTINGS, tmp_path, vectors.name, ["sentence"]) == {"sentence"}


def test_check_vectors_tells_what_is_there(tmp_path: Path) -> None:
    assert "Milvus Lite" in check_vectors(SETTINGS, tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(SettingsError, match="HCHEM_VECTORS__URI"):
        check_vectors(VectorSettings(uri=f"http://127.0.0.1:{port}", timeout_s=2), tmp_path)


def test_wrong_uri_is_refused() -> None:
    with pytest.raises(ValueError, match="server address"):
        VectorSettings(uri="milvus")


def test_completed_text_is_indexed_instead_of_the_chunk(catalogue: Catalogue, models: Models) -> None:
    with catalogue.writing() as session:
        row = session.query(Chunk).filter(Chunk.method == "sentence", Chunk.text.contains("464")).one()
        row.completed = row.text + "（木醇）"
        chunk_id = row.chunk_id
    chunks = chunks_of(catalogue, "sentence")
    assert LexicalIndex(chunks, form="completed").search(["木醇"], 1)[0] == [chunk_id]
    assert chunk_id not in LexicalIndex(chunks, form="chunk").scores("木精")
    assert PAGES["methanol-zh"][2].count("木") == 0

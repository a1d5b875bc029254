"""The studies beside the main table: λ sweep, perplexity of completion, depth of the tree."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking.evaluation.settings import EvaluationSettings
from chunking.evaluation.studies import (
    LAMBDAS,
    completion_rows,
    lambda_rows,
    limited,
    stored_scores,
    time_rows,
)
from chunking.records import ChunkRecord
from chunking.retrieval import Forest, auto_merge
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Document, Partition
from models import Models
from models.settings import ModelSettings

SETTINGS = EvaluationSettings(bootstrap=200)


def scores(*pairs: tuple[float | None, float | None], backend: str = "a") -> list[dict[str, Any]]:
    return [{"li": li, "sd": sd, "perplexity": backend} for li, sd in pairs]


def test_r_is_one_where_the_score_orders_the_methods_and_is_told_with_n() -> None:
    by_method = {"a": scores((0.1, 0.3), (0.1, 0.3)), "b": scores((0.2, 0.2)), "c": scores((0.3, 0.1))}
    rows = lambda_rows(by_method, {"a": [0.1], "b": [0.2, None], "c": [0.3]}, SETTINGS)
    by_lambda = {row.setting["lambda"]: row for row in rows}
    assert list(by_lambda) == list(LAMBDAS)
    assert by_lambda[1.0].value == pytest.approx(1.0)  # LI alone rises with ROUGE-L
    assert by_lambda[0.0].value == pytest.approx(-1.0)  # SD alone falls
    assert by_lambda[0.5].value is None  # all scores are alike: r is not defined
    assert {row.n for row in rows} == {3}
    low, high = by_lambda[1.0].low, by_lambda[1.0].high
    assert low is not None
    assert high is not None
    assert low <= 1.0 <= high + 1e-9


def test_r_by_hand() -> None:
    by_method = {
        "a": scores((0.1, -0.2)),
        "b": scores((0.4, -0.3)),
        "c": scores((0.2, -0.9)),
        "d": scores((0.9, -0.1)),
    }
    answers = {"a": [0.10, 0.30], "b": [0.40], "c": [0.15], "d": [0.2]}
    row = next(r for r in lambda_rows(by_method, answers, SETTINGS) if r.setting["lambda"] == 0.3)
    wanted = np.corrcoef([0.3 * 0.1 - 0.14, 0.12 - 0.21, 0.06 - 0.63, 0.27 - 0.07], [0.2, 0.4, 0.15, 0.2])[
        0, 1
    ]
    assert row.value == pytest.approx(wanted, abs=1e-6)


def test_scores_of_different_backends_are_never_mixed() -> None:
    by_method = {
        "a": [*scores((0.1, 0.3), (0.1, 0.3)), *scores((9.0, 9.0), backend="b")],
        "b": scores((0.2, 0.2)),
        "c": [*scores((0.3, 0.1)), *scores((None, 0.5))],
    }
    rows = lambda_rows(by_method, {"a": [0.1], "b": [0.2], "c": [0.3]}, SETTINGS)
    assert next(row for row in rows if row.setting["lambda"] == 1.0).value == pytest.approx(1.0)


def test_two_methods_make_no_correlation() -> None:
    by_method = {"a": scores((0.1, 0.3)), "b": scores((0.2, 0.2)), "c": scores((0.3, 0.1))}
    assert lambda_rows(by_method, {"a": [0.1], "b": [0.2], "c": [None]}, SETTINGS) == []
    assert lambda_rows({}, {}, SETTINGS) == []


def record(key: str, start: int, end: int, level: int, parent: str | None, *, leaf: bool) -> ChunkRecord:
    return ChunkRecord(key, "d", "v", "hichunk", start, end, "x " * (end - start), level, parent, leaf)


TREE = [
    record("root", 0, 8, 0, None, leaf=False),
    record("1", 0, 4, 1, "root", leaf=False),
    record("1.1", 0, 2, 2, "1", leaf=False),
    record("a", 0, 1, 3, "1.1", leaf=True),
    record("b", 1, 2, 3, "1.1", leaf=True),
    record("c", 2, 4, 2, "1", leaf=True),
    record("d", 4, 8, 1, "root", leaf=True),
]


def test_a_shallow_tree_keeps_its_leaves_and_merges_higher_up() -> None:
    flat = {node.chunk_id: node for node in limited(TREE, 1)}
    assert set(flat) == {"root", "1", "a", "b", "c", "d"}
    assert [flat[key].parent_id for key in "abcd"] == ["1", "1", "1", "root"]
    assert limited(TREE, 9) == TREE
    budget = 6  # room for the section 1 (4 words), not for the document (8)
    for most, wanted in ((1, ["1"]), (9, ["1.1", "c"])):
        forest = Forest(limited(TREE, most), lambda text: len(text.split()))
        context = auto_merge(["a", "b"] if most == 9 else ["a", "c"], forest, budget)
        ids = [node.chunk_id for node in context.nodes]
        assert ids == (wanted if most == 1 else ["1.1"])


@given(st.integers(0, 4))
def test_limited_trees_tile_as_before(most: int) -> None:
    nodes = limited(TREE, most)
    known = {node.chunk_id for node in nodes}
    assert [(n.start, n.end) for n in nodes if n.leaf] == [(n.start, n.end) for n in TREE if n.leaf]
    for node in nodes:
        assert node.parent_id is None or node.parent_id in known
        children = [child for child in nodes if child.parent_id == node.chunk_id]
        if not node.leaf:
            assert children[0].start == node.start
            assert children[-1].end == node.end
            assert all(left.end == right.start for left, right in pairwise(children))


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    yield opened
    opened.close()


def stored(catalogue: Catalogue, key: str, language: str, text: str, completed: str | None) -> None:
    with catalogue.writing() as session:
        session.add(Document(
            document_id=key, page_id=key, version_id=f"{key}-1", identity=key, title=key, text=text, language=language,
            state="kept", kind="page", url="", source="s",
        ))  # fmt: skip
        session.add(Partition(
            partition_id=f"p{key}", document_id=key, version_id=f"{key}-1", method="qchunker", settings={},
            scores={"li": 0.5, "sd": -0.1, "perplexity": "a"}, record={}, seconds=2.0,
        ))  # fmt: skip
        session.add(Chunk(
            chunk_id=f"c{key}", partition_id=f"p{key}", document_id=key, version_id=f"{key}-1", method="qchunker", position=0,
            start=0, end=len(text), level=1, leaf=True, text=text, completed=completed,
        ))  # fmt: skip


def test_completion_is_measured_by_language_and_paired(catalogue: Catalogue) -> None:
    stored(catalogue, "zh", "zh", "它的沸点为 64.7 ℃。", "甲醇：它的沸点为 64.7 ℃。")
    stored(catalogue, "en", "en", "It boils at 64.7 °C.", "Methanol: It boils at 64.7 °C.")
    stored(catalogue, "whole", "en", "Acetone boils at 56 °C.", None)
    models = Models(ModelSettings(api_key=None))
    with catalogue.reading() as session:
        rows = completion_rows(session, models, SETTINGS)
        assert completion_rows(session, models, EvaluationSettings(completion_sample=0)) == []
        assert stored_scores(session, ["qchunker", "none"]) == {
            "qchunker": [{"li": 0.5, "sd": -0.1, "perplexity": "a"}] * 3
        }
        (seconds,) = time_rows(session, ["qchunker"], SETTINGS)
    assert (seconds.value, seconds.n) == (2.0, 3)
    found = {(row.setting["language"], row.metric): row for row in rows}
    assert {language for language, _ in found} == {"zh", "en"}
    for language in ("zh", "en"):
        before, after = found[language, "loss_before"], found[language, "loss_after"]
        assert before.n == 1
        assert before.value is not None
        assert after.value is not None
        assert before.value > 0
        assert found[language, "loss_difference"].value == pytest.approx(after.value - before.value, abs=1e-5)
        assert found[language, "perplexity_after"].value == pytest.approx(np.exp(after.value), rel=1e-4)
        assert "ngram" in before.setting["perplexity"]

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking import baselines
from chunking.errors import MethodError, PartitionError
from chunking.partition import check_tiling, pack
from chunking.segment import ASKING, METHODS, Segmenter, language_of, segment
from chunking.sentences import split_sentences
from chunking.settings import ChunkSettings
from chunking.vectors import SentenceVectors
from models import Models
from models.tokens import count_words
from tests.chunking.embedder import HashedEmbedder

RULED = [
    method for method in METHODS if method not in ASKING
]  # those need a model: test_slm.py, test_prompted.py

ZH = "# 甲醇\n\n甲醇又名木醇，是一种无色液体。沸点64.7 ℃。\n\n## 第四部分 急救措施\n吸入：迅速脱离现场。食入：饮足量温水。\n\n## 第五部分 消防措施\n用泡沫灭火。切断火源。\n"
EN = "# Methanol\n\nMethanol is a liquid. It boils at 64.7 °C.\n\n## First aid\nInhalation: move to fresh air. Seek help.\n\n## Fire\nUse foam. Keep away.\n"
TEXTS = [
    "",
    " \n",
    "a",
    ZH,
    EN,
    ZH + EN,
    ZH.replace("\n", "\r\n"),
    "无标点" * 400,
    "x" * 3000,
    "😀👩‍🔬 有毒！" * 50,
    "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 60,
    "\n\n\n# \n##\n\n甲",
    "甲醇methanol，乙醇ethanol；" * 300,  # one giant line, mixed, without a stop
    "甲醇有毒。Methanol is toxic. 远离火种！" * 120,  # one giant line of sentences
    ZH.replace("\n", "\r") + EN.replace("\n", "\u2028"),
    "\ufeff甲醇\u200b有毒\u0301。\ud83d👍🏽\U0010ffff\x00\x0b\x0c",
]
PIECES = st.sampled_from(
    [
        "。",
        ". ",
        "\n",
        "\r\n",
        "\n\n## ",
        "1. ",
        "甲醇有毒",
        "toxic vapour",
        "3.5 ℃",
        "😀",
        "|",
        "    ",
        "第一章 ",
        "…",
        "\x00",
        "字" * 30,
    ]
)
ANY_TEXT = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=40).map("".join))


class HashedModels(Models):
    """Offline models with the tiny embedder: what is tested is tiling, not meaning."""

    def embedder(self, purpose: str) -> HashedEmbedder:  # type: ignore[override]
        return HashedEmbedder()


MODELS = HashedModels()


@pytest.mark.parametrize("method", RULED)
@pytest.mark.parametrize("size", [1, 7, 200])
@pytest.mark.parametrize("text", TEXTS)
def test_every_method_tiles(method: str, size: int, text: str) -> None:
    _check(text, method, size)


@pytest.mark.parametrize("method", RULED)
@settings(max_examples=15, deadline=None)
@given(text=ANY_TEXT, size=st.integers(1, 60))
def test_every_method_tiles_any_text(method: str, text: str, size: int) -> None:
    _check(text, method, size)


def _check(text: str, method: str, size: int) -> None:
    result = segment(text, method, size=size, models=MODELS, selection_samples=4)
    assert "".join(text[node.start : node.end] for node in result.leaves) == text
    assert len(set(result.ids())) == len(result.nodes)
    _check_tree(result.nodes)
    sentences = set(split_sentences(text))
    for start, end in result.spans:
        over = count_words(text[start:end]) > size
        assert not over or (start, end) in sentences or (method == "fixed" and end == start + 1)
    if method != "fixed":
        starts = {start for start, _ in sentences}
        assert all(node.start in starts for node in result.leaves)


def _check_tree(nodes: tuple) -> None:  # type: ignore[type-arg]
    for index, node in enumerate(nodes):
        children = [child for child in nodes if child.parent == index]
        assert node.leaf == (not children)
        if children:
            assert len(children) > 1
            check_tiling(
                [(c.start - node.start, c.end - node.start) for c in children], node.end - node.start
            )
            assert all(child.level > node.level for child in children)
        if node.parent is not None:
            assert node.parent < index


def test_fixed_cuts_at_the_size_wherever_it_falls() -> None:
    assert baselines.fixed("一二三四五六七", 3, count_words) == [(0, 3), (3, 6), (6, 7)]
    long_word = "a" * 40
    assert [end - start for start, end in baselines.fixed(long_word, 1, count_words)] == [16, 16, 8]


def test_sentence_packs_whole_sentences() -> None:
    text = "一二三。四五六。七八九十。一二三四五六七八九十。二。"
    assert [text[s:e] for s, e in baselines.sentence(text, 6, count_words)] == [
        "一二三。四五六。",
        "七八九十。",
        "一二三四五六七八九十。",
        "二。",
    ]


def test_recursive_prefers_paragraphs_then_lines() -> None:
    text = "甲乙丙。\n丁戊己。\n\n庚辛壬。癸子丑。寅卯辰。\n\n巳。"
    assert [text[s:e] for s, e in baselines.recursive(text, 6, count_words)] == [
        "甲乙丙。\n丁戊己。\n\n",
        "庚辛壬。癸子丑。",
        "寅卯辰。\n\n",
        "巳。",
    ]


@pytest.mark.parametrize(
    "text,border",
    [
        (
            "甲醇是一种有毒的易燃液体，对人体有害。甲醇蒸气有毒，须远离火种和热源保存。吸入甲醇蒸气会使人中毒，应立即就医。"
            "我家的小猫非常喜欢在阳台上晒太阳睡觉。小猫最喜欢吃的食物是新鲜的鱼和牛奶。每天早上小猫都会叫我起床玩耍。",
            "我家的小猫",
        ),
        (
            "Methanol is a toxic and flammable liquid that is harmful to man. Methanol vapour is toxic and burns well in air. "
            "Breathing methanol vapour is toxic, call a doctor at once. Our little cat likes to sleep in the warm sun. "
            "The cat likes to eat fresh fish and to drink milk. Every morning the cat wakes me up to play.",
            "Our little cat",
        ),
    ],
)
def test_semantic_cuts_at_the_change_of_subject(text: str, border: str) -> None:
    table = SentenceVectors(text, Models.offline().embedder("cohesion"), count_words)
    spans = baselines.semantic(table, 200, percentile=80, buffer=0)
    assert [start for start, _ in spans] == [0, text.index(border)]


def test_pack_counts_the_joined_text_where_counters_are_not_additive() -> None:
    text = "甲" + "-" * 10 + "-" * 10 + "乙"
    pieces = [(0, 11), (11, 22)]
    assert count_words(text) == 3  # each half counts 1: together the run of signs counts too
    assert pack(text, pieces, 2, count_words) == pieces
    assert pack(text, pieces, 3, count_words) == [(0, 22)]


@pytest.mark.parametrize(
    "spans", [[(0, 2)], [(0, 2), (3, 4)], [(0, 3), (2, 4)], [(1, 4)], [(0, 2), (2, 2), (2, 4)], []]
)
def test_partitions_that_do_not_tile_are_refused(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(PartitionError, match="tile"):
        check_tiling(spans, 4)


def test_unknown_methods_and_options_are_refused() -> None:
    with pytest.raises(MethodError, match="unknown chunking method 'magic'"):
        segment("a", "magic")
    with pytest.raises(MethodError, match="colour"):
        segment("a", "fixed", colour="red")
    with pytest.raises(MethodError, match="size"):
        segment("a", "fixed", size=0)


def test_same_input_same_ids_and_record() -> None:
    first, second = (Segmenter(HashedModels(), ChunkSettings(size=20)).run(ZH, "qchunker") for _ in range(2))
    assert first.ids() == second.ids()
    assert first.record == second.record


def test_language_by_characters() -> None:
    assert language_of("甲醇 methanol CH3OH") == "zh"
    assert language_of("Methanol (甲醇) is the simplest of the alcohols, a light and volatile liquid") == "en"
    assert language_of("") == "en"

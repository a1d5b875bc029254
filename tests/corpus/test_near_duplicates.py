"""Near-duplicates: exact, near, contained; vetoes; editions; order has no influence."""

from __future__ import annotations

import random

import numpy as np
import pytest

from corpus.near_duplicates import Candidate, Hashes, containment, find_duplicates, jaccard, shingles, vetoed

LINES = [
    "甲醇为无色透明液体，有刺激性气味，易挥发，其蒸气与空气可形成爆炸性混合物。",
    "遇明火、高热能引起燃烧爆炸，与氧化剂接触发生化学反应或引起燃烧。",
    "在火场中，受热的容器有爆炸危险，能在较低处扩散到相当远的地方，遇明火会引着回燃。",
    "储存于阴凉、通风良好的专用库房内，远离火种、热源，库温不宜超过三十七摄氏度。",
    "应与氧化剂、酸类、碱金属等分开存放，切忌混储，采用防爆型照明、通风设施。",
    "皮肤接触时脱去污染的衣着，用肥皂水和清水彻底冲洗皮肤，如有不适感立即就医。",
]


def candidate(name: str, text: str, score: float = 4.0, language: str = "zh", title: str = "") -> Candidate:
    return Candidate(name, text, title, language, score)


def sheet(cas: str, *changes: str) -> str:
    return "\n\n".join([f"CAS号：{cas}", *LINES, *changes])


def test_shingles_by_language() -> None:
    assert len(shingles("甲醇 是液体。", "zh", 5)) == 1
    assert shingles("甲醇 是液体。", "zh", 5).tolist() == shingles("甲醇是液体", "zh", 5).tolist()
    assert len(shingles("one two three four five six", "en", 5)) == 2
    shared = set(shingles("one two three four five six", "en", 5)) & set(
        shingles("two three four five six", "en", 5)
    )
    assert len(shared) == 1
    assert (
        shingles("one two three four five", "en", 5).tolist()
        != shingles("two one three four five", "en", 5).tolist()
    )
    assert len(shingles("短", "zh", 5)) == 1
    assert len(shingles("", "zh", 5)) == 0


def test_measures() -> None:
    one, two = np.arange(4, dtype=np.uint64), np.arange(8, dtype=np.uint64)
    assert jaccard(one, two) == 0.5
    assert containment(one, two) == 1.0
    assert jaccard(one[:0], two[:0]) == 0.0


def test_exact_and_near_point_to_the_best_scored() -> None:
    documents = [
        candidate("a", sheet("67-56-1"), 4.0),
        candidate("b", sheet("67-56-1").replace("\n\n", "\n"), 4.2),
        candidate("c", sheet("67-56-1", "本页由镜像网站转载。"), 4.5),
        candidate("d", "完全不同的一篇文章，讲的是硝酸的制备方法，以及它在工业上的用途和历史发展。", 4.9),
    ]
    found = find_duplicates(documents)
    assert {name: decision.duplicate_of for name, decision in found.items()} == {
        "a": "c",
        "b": "c",
        "c": "",
        "d": "",
    }
    assert found["a"].group["kind"] in ("exact", "near")
    assert found["a"].group["similarity"] >= 0.8


def test_the_order_given_has_no_influence() -> None:
    documents = [candidate(f"d{i}", sheet("67-56-1", *(["附注。"] * (i % 3))), 4 + i % 2) for i in range(8)]
    expected = find_duplicates(documents)
    for seed in range(3):
        shuffled = documents[:]
        random.Random(seed).shuffle(shuffled)
        assert find_duplicates(shuffled) == expected


def test_one_template_with_two_substances_is_two_documents() -> None:
    found = find_duplicates([candidate("methanol", sheet("67-56-1")), candidate("ethanol", sheet("64-17-5"))])
    assert all(not decision.duplicate_of for decision in found.values())


def test_a_page_without_cas_does_not_join_two_substances() -> None:
    documents = [
        candidate("methanol", sheet("67-56-1"), 4.1),
        candidate("nameless", "\n\n".join(LINES), 4.0),
        candidate("ethanol", sheet("64-17-5"), 4.2),
    ]
    found = find_duplicates(documents)
    assert not found["methanol"].duplicate_of
    assert not found["ethanol"].duplicate_of


def test_veto_is_about_the_subject() -> None:
    one = candidate("a", "CAS 67-56-1，67-56-1，与 64-17-5 混溶")
    assert not vetoed(one, candidate("b", "CAS 67-56-1"))
    assert vetoed(one, candidate("c", "CAS 64-17-5，64-17-5，与 67-56-1、71-43-2 混溶"))
    assert not vetoed(one, candidate("d", "没有编号"))


def test_a_page_inside_another_points_to_the_whole_even_if_scored_better() -> None:
    part = sheet("67-56-1")
    whole = (
        part
        + "\n\n"
        + "\n\n".join(
            f"第{i}条补充说明：操作人员必须经过专门培训，严格遵守操作规程{i * 7}。" for i in range(60)
        )
    )
    found = find_duplicates([candidate("part", part, 4.9), candidate("whole", whole, 3.5)])
    assert found["part"].duplicate_of == "whole"
    assert found["part"].group["kind"] == "contained"
    assert not found["whole"].duplicate_of


def law(year: int, *changes: str) -> str:
    articles = [
        f"**第{n}条** {LINES[i % 6]}{LINES[(i + 1) % 6]}其序号为{n}。"
        for i, n in enumerate("一二三四五六七八九")
    ]
    head = f"# 农药管理条例\n\n（1997年5月8日国务院发布 {year}年3月29日修订）"
    return "\n\n".join([head, *articles, *changes])


def test_editions_are_kept_and_linked() -> None:
    found = find_duplicates(
        [candidate("old", law(2017)), candidate("new", law(2022, "**第十条** 本条例自公布之日起施行。"))]
    )
    assert not found["old"].duplicate_of
    assert not found["new"].duplicate_of
    assert found["old"].group["editions"][0]["document_id"] == "new"
    assert found["new"].group["editions"][0]["document_id"] == "old"


def test_the_same_edition_twice_is_a_duplicate() -> None:
    found = find_duplicates([candidate("one", law(2022)), candidate("two", law(2022) + "\n\n转载。", 4.5)])
    assert found["one"].duplicate_of == "two"


def test_english_pages() -> None:
    text = " ".join(f"step {i} keep acetone away from sources of ignition number {i * i}" for i in range(40))
    found = find_duplicates(
        [candidate("a", text, 4.0, "en"), candidate("b", text + " Reprinted.", 3.9, "en")]
    )
    assert found["b"].duplicate_of == "a"


def test_nothing() -> None:
    assert find_duplicates([]) == {}
    assert not find_duplicates([candidate("a", "")])["a"].duplicate_of


def test_texts_are_read_again_and_not_kept() -> None:
    documents = {
        f"d{i}": candidate(f"d{i}", sheet(f"{50 + i % 3}-00-0", f"附注{i // 3}。" * 5)) for i in range(9)
    }
    read: list[str] = []

    def fetch(name: str) -> Candidate:
        read.append(name)
        return documents[name]

    found = find_duplicates((d for d in documents.values()), fetch=fetch)
    assert found == find_duplicates(list(documents.values()))
    assert read  # pairs were compared on the texts


def test_pages_of_one_template_are_not_compared_where_cas_numbers_veto(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def counted(one: Hashes, other: Hashes) -> float:
        nonlocal compared
        compared += 1
        return jaccard(one, other)

    monkeypatch.setattr("corpus.near_duplicates.jaccard", counted)
    documents = [candidate(f"d{i}", sheet(f"{1000 + i}-00-{check(1000 + i)}")) for i in range(120)]
    assert all(len(d.cas) == 1 for d in documents)
    assert not any(d.duplicate_of for d in find_duplicates(documents).values())
    assert compared == 0


def check(number: int) -> int:
    """The check digit of the CAS number ``number``-00-x."""
    return sum(place * int(digit) for place, digit in enumerate(reversed(f"{number}00"), 1)) % 10


def test_equal_cas_numbers_with_another_main_one_are_two_documents() -> None:
    one = candidate("a", sheet("67-56-1", "67-56-1", "64-17-5"), 4.0)
    other = candidate("b", sheet("67-56-1", "64-17-5", "64-17-5"), 4.1)
    assert one.main_cas != other.main_cas
    assert not find_duplicates([one, other])["a"].duplicate_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("闪点 12 ℃，沸点 77 ℃。", "闪点 -9 ℃，沸点 101 ℃。"),
        ("联合国编号 UN1039。", "联合国编号 UN1193。"),
        ("闪点为 20 ℃。", "闪点为 -20 ℃。"),
        ("闪点为 20 ℃。", "闪点为 −20 ℃。"),
        ("本品易燃。", "本品不易燃。"),
        ("浓度 37 %，H314。", "浓度 1 %，H290。"),
        ("丙酮 90 %，苯 10 %。", "丙酮 10 %，苯 90 %；"),
        ("剂量 1-2 mg。", "剂量 12 mg。"),
    ],
)
def test_texts_that_state_different_things_are_two_documents(one: str, other: str) -> None:
    shared = "\n\n".join(LINES * 3)
    found = find_duplicates([candidate("a", f"{shared}\n\n{one}"), candidate("b", f"{shared}\n\n{other}")])
    assert [decision.duplicate_of for decision in found.values()] == ["", ""]


def test_english_texts_that_state_different_things_are_two_documents() -> None:
    shared = " ".join(
        f"Sentence {n} of the template says what every sheet of this site says." for n in range(60)
    )
    for one, other in (
        ("Flash point 12 °C.", "Flash point -9 °C."),
        ("It is flammable.", "It is not flammable."),
        ("UN 1111", "UN 2222"),
    ):
        found = find_duplicates(
            [
                candidate("a", f"{shared} {one}", language="en"),
                candidate("b", f"{shared} {other}", language="en"),
            ]
        )
        assert [decision.duplicate_of for decision in found.values()] == ["", ""], one


def test_a_copy_that_says_more_or_is_marked_up_otherwise_is_a_duplicate() -> None:
    shared = "\n\n".join([*LINES * 3, "闪点 -20 ℃，UN1230。"])
    found = find_duplicates(
        [candidate("a", shared, 4.0), candidate("b", shared.replace("-20", "−20") + "\n\n沸点 64 ℃。", 4.5)]
    )
    assert found["a"].duplicate_of == "b"
    found = find_duplicates(
        [candidate("a", shared, 4.0), candidate("b", f"**{shared}**".replace("\n\n", "\n"), 4.5)]
    )
    assert found["a"].duplicate_of == "b"
    assert found["a"].group["kind"] == "exact"

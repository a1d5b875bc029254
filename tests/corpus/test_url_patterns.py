from __future__ import annotations

import random
import uuid
from datetime import date
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.chemicals import table_rows
from corpus.url_patterns import PageForm, UrlCluster, cluster, cluster_id, url_pattern


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://x.cn/item/%E8%8B%AF/123", "https://www.x.cn/item/%E7%94%B2%E8%8B%AF/9"),
        ("http://x.cn/msds/67-56-1.html", "http://x.cn/msds/1310-73-2.html"),
        ("http://x.cn/view?id=1&cas=71-43-2", "http://x.cn/view?cas=64-17-5&id=22"),
        ("http://x.cn/wiki/Sulfuric_acid", "http://x.cn/wiki/Benzene"),
        ("http://x.cn/2024/05/12/leak-at-plant", "http://x.cn/2023/11/02/new-rules-for-storage"),
        ("http://x.cn/d/3f2a9c77e1b04d55.htm", "http://x.cn/d/00ff12ab34cd56ef.htm"),
        ("http://x.cn/cid/201912", "http://x.cn/cid/201913"),  # no date among the ids
        ("http://x.cn/a/20240512_7/b", "http://x.cn/a/20231101_8/b"),
        ("http://x.cn/item-9/sds", "http://x.cn/item-10/sds"),
        ("http://x.cn/q/%B1%BD/sds", "http://x.cn/q/%E7%94%B2%E8%8B%AF/sds"),  # GB18030 and UTF-8
        ("http://x.cn/view.asp?12", "http://x.cn/view.asp?4711"),
        ("http://x.cn/benzene/properties", "http://x.cn/nitric-acid/properties"),
        ("http://x.cn/n/2010-12-1", "http://x.cn/n/2010-12-5"),
    ],
)
def test_pages_of_one_form_share_a_pattern(one: str, other: str) -> None:
    assert url_pattern(one) == url_pattern(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://x.cn/item/1", "http://y.cn/item/1"),
        ("http://x.cn/item/1", "http://x.cn/list/1"),
        ("http://x.cn/item/1.html", "http://x.cn/item/1.pdf"),
        ("http://x.cn/item?id=1", "http://x.cn/item?q=1"),
        ("http://x.cn:8001/item/1", "http://x.cn:8002/item/1"),
    ],
)
def test_other_forms_do_not(one: str, other: str) -> None:
    assert url_pattern(one) != url_pattern(other)


def _pages() -> list[PageForm]:
    pages = [PageForm(f"a{n}", f"http://x.cn/item/{n}", "s1 s2 s3", "skin1") for n in range(5)]
    pages += [PageForm(f"b{n}", f"http://x.cn/item/{100 + n}", "t1 t2 t3", "skin2") for n in range(4)]
    return [
        *pages,
        PageForm("c", "http://x.cn/special/7", "s1 s2 s3 s4", "skin9"),
        PageForm("d", "http://x.cn/about", "z", "q"),
    ]


def test_skins_split_rare_pages_join_and_order_does_not_matter() -> None:
    pages = _pages()
    found = cluster(pages)
    by_page = {page: entry.cluster_id for entry in found for page in entry.pages}
    assert by_page["a0"] == by_page["a4"] != by_page["b0"] == by_page["b3"]
    assert by_page["c"] == by_page["a0"]  # the rare form with the same skeleton
    assert by_page["d"] not in {by_page["a0"], by_page["b0"]}
    assert sorted(by_page) == sorted(page.page_id for page in pages)
    random.Random(3).shuffle(pages)
    assert cluster(pages) == found


def test_ids_stay_when_urls_are_added() -> None:
    before = {entry.cluster_id for entry in cluster(_pages())}
    more = [PageForm(f"n{n}", f"http://x.cn/new/{n}", "u", "skin3") for n in range(3)]
    assert before <= {entry.cluster_id for entry in cluster([*_pages(), *more])}
    assert cluster_id("x.cn/item/{number}", "skin1") in before


_NAMES = [row["name_zh"] for row in table_rows()]
_WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9)


def _cas(number: int) -> str:
    digits = f"{number:04d}"
    check = sum(i * int(d) for i, d in enumerate(reversed(digits), start=1)) % 10
    return f"{digits[:-2]}-{digits[-2:]}-{check}"


_SLOT_VALUES = {
    "number": st.integers(0, 10**9).map(str),
    "cas": st.integers(1000, 999_999_999).map(_cas),
    "hash": st.binary(min_size=16, max_size=16).map(bytes.hex),
    "uuid": st.uuids().map(str),
    "date": st.dates(date(1990, 1, 1), date(2039, 12, 31)).map(date.isoformat),
    "cjk": st.sampled_from(_NAMES).map(lambda name: quote(name)),
    "name": st.lists(_WORDS, min_size=3, max_size=5).map("-".join),
}


@given(st.data(), st.sampled_from(sorted(_SLOT_VALUES)), st.booleans())
def test_values_of_one_type_are_one_slot(data: st.DataObject, kind: str, last: bool) -> None:
    value = data.draw(_SLOT_VALUES[kind])
    url = f"https://x.cn/item/{value}" if last else f"https://x.cn/item/{value}/view.html"
    assert url_pattern(url) == f"x.cn/item/{{{_expected(kind, value)}}}" + ("" if last else "/{name}.html")


def _expected(kind: str, value: str) -> str:
    """The rare values that have the form of another type too."""
    if kind == "hash" and value.isdecimal():
        return "number"
    if kind == "hash" and not any(c.isdecimal() for c in value):
        return "name"
    if kind == "cjk" and value.isascii() and "%" not in value:
        return "name"
    return kind


@given(st.sampled_from(_NAMES), st.sampled_from(_NAMES), st.sampled_from(["utf-8", "gb18030"]))
def test_chinese_names_are_one_slot_in_every_encoding(one: str, other: str, encoding: str) -> None:
    first, second = (f"http://x.cn/w/{quote(name, encoding=encoding)}/a" for name in (one, other))
    assert url_pattern(first) == url_pattern(second) == url_pattern(f"http://x.cn/w/{one}/a")


@given(st.dictionaries(_WORDS, st.text(max_size=8), max_size=5), st.randoms())
def test_query_keys_count_in_no_order_and_without_values(
    query: dict[str, str], shuffled: random.Random
) -> None:
    keys = list(query)
    shuffled.shuffle(keys)
    one = url_pattern("http://x.cn/v?" + "&".join(f"{key}={quote(query[key])}" for key in query))
    other = url_pattern("https://www.x.cn:443/v?" + "&".join(f"{key}=1" for key in keys) + "#part")
    assert one == other
    assert one.partition("?")[2].split("&") == (sorted(query) or [""])


@given(st.text(max_size=60))
def test_any_text_has_a_pattern_and_the_same_one_again(text: str) -> None:
    pattern = url_pattern(f"http://x.cn/{text}")
    assert pattern.startswith("x.cn/")
    assert pattern == url_pattern(f"http://x.cn/{text}")


_FORMS = st.builds(
    lambda path, number, skin: (f"http://x.cn/{path}/{number}", skin),
    st.sampled_from(["item", "list", "sds", "about-us"]),
    st.integers(0, 999),
    st.sampled_from(["red", "blue"]),
)


@given(st.lists(_FORMS, max_size=30), st.lists(_FORMS, max_size=15))
def test_names_and_members_stay_when_urls_are_added(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    def forms(rows: list[tuple[str, str]]) -> list[PageForm]:
        skeletons = {"red": "a b c d", "blue": "w x y z"}
        return [
            PageForm(uuid.uuid5(uuid.NAMESPACE_URL, f"{n}").hex, url, skeletons[skin], skin)
            for n, (url, skin) in enumerate(rows)
        ]

    def large(found: list[UrlCluster], pages: list[PageForm]) -> dict[str, str]:
        """page → cluster, of the pages whose form has a cluster of its own."""
        own = {page.page_id: cluster_id(url_pattern(page.url), page.skin) for page in pages}
        at = {page: entry.cluster_id for entry in found for page in entry.pages}
        return {page: at[page] for page in at if at[page] == own[page]}

    before, after = forms(old), forms(old + new)
    first, second = cluster(before), cluster(after)
    for found, pages in ((first, before), (second, after)):
        assert sorted(page for entry in found for page in entry.pages) == sorted(p.page_id for p in pages)
        assert len({entry.cluster_id for entry in found}) == len(found)
    assert large(first, before).items() <= large(second, after).items()

from __future__ import annotations

import random

import pytest

from corpus.url_patterns import PageForm, cluster, cluster_id, url_pattern


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://x.cn/item/%E8%8B%AF/123", "https://www.x.cn/item/%E7%94%B2%E8%8B%AF/9"),
        ("http://x.cn/msds/67-56-1.html", "http://x.cn/msds/1310-73-2.html"),
        ("http://x.cn/view?id=1&cas=71-43-2", "http://x.cn/view?cas=64-17-5&id=22"),
        ("http://x.cn/wiki/Sulfuric_acid", "http://x.cn/wiki/Benzene"),
        ("http://x.cn/2024/05/12/leak-at-plant", "http://x.cn/2023/11/02/new-rules-for-storage"),
        ("http://x.cn/d/3f2a9c77e1b04d55.htm", "http://x.cn/d/00ff12ab34cd56ef.htm"),
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

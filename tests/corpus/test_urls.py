from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.urls import canonical_url, same_site


@pytest.mark.parametrize(
    "given_url, expected",
    [
        ("HTTP://Example.COM:80/a/../b/./c", "http://example.com/b/c"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:8443/x", "https://example.com:8443/x"),
        ("http://example.com./x", "http://example.com/x"),
        ("http://example.com/a%c3%a9#part", "http://example.com/a%C3%A9"),
        ("http://example.com/苯", "http://example.com/%E8%8B%AF"),
        ("http://例子.cn/a", "http://xn--fsqu00a.cn/a"),
        ("http://example.com/s?b=2&a=1&utm_source=x&spm=a2.b", "http://example.com/s?a=1&b=2"),
        ("http://example.com/s;jsessionid=0AF9?q=1", "http://example.com/s?q=1"),
        ("http://example.com/dir/", "http://example.com/dir/"),
        ("http://example.com/dir", "http://example.com/dir"),
        ("http://example.com/?cas=71-43-2&PHPSESSID=abc", "http://example.com/?cas=71-43-2"),
        ("http://[::0:1]:80/a", "http://[::1]/a"),
        (" http://user:pw@example.com/ ", "http://example.com/"),
        # keys that only resemble tracking keys are content
        ("http://example.com/s?species=1&reference=2", "http://example.com/s?reference=2&species=1"),
    ],
)
def test_one_spelling(given_url: str, expected: str) -> None:
    assert canonical_url(given_url) == expected


@pytest.mark.parametrize(
    "bad", ["", "file:///etc/passwd", "javascript:1", "http://", "http://.", "//x/y", "http://a:99999/"]
)
def test_refuses_what_is_no_web_address(bad: str) -> None:
    with pytest.raises(ValueError):
        canonical_url(bad)


def test_page_canonical_is_a_claim() -> None:
    page = "http://www.example.com/item/7?from=list"
    assert canonical_url(page, "/item/7") == "http://www.example.com/item/7"
    assert canonical_url(page, "https://m.example.com/item/7") == "https://m.example.com/item/7"
    assert canonical_url(page, "http://evil.example.org/item/7") == "http://www.example.com/item/7?from=list"
    assert canonical_url(page, "http://www.example.com/") == "http://www.example.com/item/7?from=list"
    assert canonical_url(page, "javascript:0") == "http://www.example.com/item/7?from=list"
    assert canonical_url(page, "  ") == "http://www.example.com/item/7?from=list"


def test_same_site() -> None:
    assert same_site("http://www.example.com/a", "https://example.com/b")
    assert not same_site("http://example.com:8001/a", "http://example.com:8002/a")
    assert not same_site("http://a.example.com/", "http://b.example.com/")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_idempotent(path: str, query: str) -> None:
    try:
        once = canonical_url(f"http://example.com/{path}?{query}")
    except ValueError:
        return
    assert canonical_url(once) == once

from __future__ import annotations

import threading
from collections.abc import Iterator

import psutil
import pytest

from corpus.cleaning import Limits, clean_page, profile_page
from corpus.cleaning.sandbox import SandboxedCleaner
from corpus.errors import TerminalError
from tests.corpus.pages import PAGES

PAGE = PAGES["encyclopedia"][0].encode()
HEAVY = ("<table>" + "<tr><td>71-43-2</td><td>x</td></tr>" * 60_000 + "</table>").encode()


@pytest.fixture(scope="module")
def cleaner() -> Iterator[SandboxedCleaner]:
    with SandboxedCleaner(timeout_s=60) as shared:
        yield shared


def test_same_result_as_the_pure_functions(cleaner: SandboxedCleaner) -> None:
    assert cleaner.clean(PAGE, url="http://x.org/a") == clean_page(PAGE, url="http://x.org/a")
    assert cleaner.profile(PAGE, url="http://x.org/a") == profile_page(PAGE, url="http://x.org/a")


def test_refusals_keep_their_reason(cleaner: SandboxedCleaner) -> None:
    with pytest.raises(TerminalError) as caught:
        cleaner.clean(b"%PDF-1.7 nothing")
    assert caught.value.reason == "malformed_pdf"
    assert cleaner.restarts == 0


def test_threads_share_one_worker(cleaner: SandboxedCleaner) -> None:
    titles: list[str] = []
    names = sorted(PAGES)
    threads = [
        threading.Thread(target=lambda n=name: titles.append(n + cleaner.clean(PAGES[n][0].encode()).title))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(titles) == [name + clean_page(PAGES[name][0].encode()).title for name in names]


def test_a_page_that_takes_too_long_is_stopped_and_the_next_one_works() -> None:
    with SandboxedCleaner(timeout_s=30) as cleaner:
        cleaner.clean(PAGE)
        cleaner.timeout_s = 0.3
        with pytest.raises(TerminalError) as caught:
            cleaner.clean(HEAVY)
        assert caught.value.reason == "timeout"
        cleaner.timeout_s = 30
        assert "71-43-2" in cleaner.clean(PAGE).text


def test_element_limit() -> None:
    with (
        SandboxedCleaner(limits=Limits(max_elements=1000)) as cleaner,
        pytest.raises(TerminalError) as caught,
    ):
        cleaner.clean(HEAVY)
    assert caught.value.reason == "too_many_elements"


def test_no_process_is_left() -> None:
    cleaner = SandboxedCleaner()
    cleaner.clean(PAGE)
    before = [
        child.pid for child in psutil.Process().children() if "corpus.cleaning.worker" in child.cmdline()
    ]
    cleaner.close()
    after = [child.pid for child in psutil.Process().children()]
    assert len(set(before) - set(after)) == 1
    with pytest.raises(ValueError):
        cleaner.clean(PAGE)

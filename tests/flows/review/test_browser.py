"""The review page in a real browser: both languages, hostile words, the keyboard, two people at once."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from sqlalchemy import select

from corpus import reviews
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, EntityDecision, ReviewDecision
from corpus.ids import digest
from flows.review.guard import host_names
from flows.review.pages import Options, Review
from flows.review.server import listen
from kg.settings import ExtractionSettings
from tests.flows.conftest import Command
from tests.flows.review.world import HOSTILE, fill

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1200)]
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
]
QUEUES = ("documents", "identity", "conflicts", "questions", "work")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[Catalogue]:
    path = tmp_path_factory.mktemp("review") / "catalogue.db"
    shutil.copy(template, path)
    made = Catalogue.open(f"sqlite:///{path}")
    fill(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def address(catalogue: Catalogue) -> Iterator[str]:
    """The page, served as ``hchem review`` serves it."""
    with listen("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        options = Options(by="Zhang", hosts=frozenset(host_names(["127.0.0.1"], port)))
        app = Review(catalogue, ExtractionSettings(), options).app()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join()


class Person:
    """A browser of one person; everything it asks for and complains of is kept."""

    def __init__(self, browser: Any, locale: str) -> None:
        self.context = browser.new_context(locale=locale, viewport={"width": 1200, "height": 900})
        self.context.set_default_timeout(120_000)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield made
        made.close()


@pytest.fixture
def person(browser: Any, request: pytest.FixtureRequest) -> Iterator[Person]:
    made = Person(browser, getattr(request, "param", "en-GB"))
    yield made
    made.context.close()


@pytest.mark.parametrize(
    ("person", "headings"),
    [
        ("zh-CN", ["隔离文档", "是否同一物质", "数值冲突", "失效问题", "失败步骤"]),
        ("en-GB", ["Quarantined documents", "One substance or two", "Values that disagree", "Stale questions", "Failed steps"]),
    ],
    indirect=["person"],
)  # fmt: skip
def test_every_queue_and_item_is_shown_and_nothing_of_it_runs(
    person: Person, address: str, headings: list[str]
) -> None:
    page = person.page
    page.goto(address)
    assert page.locator(".cards span").all_inner_texts() == headings
    assert page.evaluate("document.documentElement.lang")[:2] == ("zh" if headings[0] == "隔离文档" else "en")
    counts = [int(text) for text in page.locator(".cards b").all_inner_texts()]
    assert all(counts)
    for queue, heading, count in zip(QUEUES, headings, counts, strict=True):
        page.goto(f"{address}/{queue}")
        assert page.locator("h1").inner_text().startswith(heading)
        links = page.locator("tbody td:first-child a")
        assert links.count() == count
        items = [links.nth(n).get_attribute("href") for n in range(count)]
        for item in (
            items
            if page.evaluate("document.documentElement.lang") == "en" and queue != "questions"
            else items[:3]
        ):
            page.goto(address + item)
            assert page.locator("h1").is_visible(), item
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), item
            assert page.locator("mark").count() or queue in ("documents", "identity", "work"), item
            assert page.locator("script, img, iframe, object").count() == 0
            assert page.locator("form button[name=choice]").count() >= 1, item
            for link in page.locator("a").all():
                assert not (link.get_attribute("href") or "").lower().startswith(("javascript", "data"))
        page.goto(f"{address}/{queue}")
    page.goto(f"{address}/documents?q={HOSTILE[0]}")
    shown = page.locator("tbody tr").all_inner_texts()
    assert len(shown) == 1
    assert HOSTILE[0] in shown[0]
    page.goto(f"{address}/documents?q=evil")
    assert "‹U+202E›evil" in page.locator("tbody").inner_text()
    page.goto(f"{address}/history")
    assert HOSTILE[0] in page.locator("tbody").inner_text()
    assert person.complaints == []
    assert [url for url in person.asked if not url.startswith((f"{address}/", "data:"))] == []


def test_by_the_keyboard_alone_and_the_second_person_is_told(
    person: Person, browser: Any, address: str, catalogue: Catalogue
) -> None:
    other = Person(browser, "zh-CN")
    path = f"{address}/documents/{digest('held back', '8')}?at=0"
    for one in (person, other):
        one.page.goto(path)
    page = person.page
    page.locator("h1").wait_for()
    for _ in range(60):
        if page.evaluate("document.activeElement.id") == "why":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("the sheet is right 资料无误")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # in a field: decides nothing
    assert page.url == path
    page.keyboard.press("Tab")
    assert (
        page.evaluate("document.activeElement.value") == "reject"
    )  # failed: there is no text that could be accepted
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "Recorded: Reject" in page.locator("[role=status]").inner_text()
    with catalogue.reading() as session:
        (row,) = reviews.standing(session, "documents")
        assert (row.choice, row.why, row.decided_by) == ("reject", "the sheet is right 资料无误", "Zhang")

    other.page.fill("#why", "再试一次")
    other.page.fill("#by", "李")
    other.page.click("button[value=retry]")
    said = other.page.locator("[role=alert]").inner_text()
    assert "Zhang" in said
    assert "the sheet is right 资料无误" in said
    assert "没有记录" in said
    other.page.locator("main a").first.click()
    assert "the sheet is right" in other.page.locator(".earlier").inner_text()

    # taken back in the history, in the other language
    other.page.goto(f"{address}/history?q=资料无误")
    other.page.locator("tbody a").first.click()
    other.page.fill("#why", "看错了")
    other.page.fill("#by", "李")
    other.page.click(".decide button[accesskey=u]")
    other.page.locator("[role=status]").wait_for()
    with catalogue.reading() as session:
        assert reviews.standing(session, "documents") == []
        states = {(r.choice, r.state, r.decided_by) for r in session.scalars(select(ReviewDecision))}
    assert states == {("reject", "undone", "Zhang"), ("undo", "done", "李")}
    assert [c for c in person.complaints + other.complaints if "409" not in c] == []
    other.context.close()


def test_values_and_pairs_are_decided_and_the_overview_says_what_to_run(
    person: Person, address: str, catalogue: Catalogue
) -> None:
    page = person.page
    page.goto(f"{address}/conflicts")
    before = page.locator("tbody tr").count()
    page.locator("tbody a").first.click()
    assert page.locator(".side mark").count() == 2
    shown = page.locator(".side h2").all_inner_texts()
    page.fill("#why", "表值有来源")
    page.click("button[value=left]")
    page.locator("[role=status]").wait_for()
    page.goto(f"{address}/conflicts")
    assert page.locator("tbody tr").count() == before - 1
    with catalogue.reading() as session:
        (row,) = reviews.standing(session, "conflicts")
    assert f"A {row.detail['left']['shown']}" == shown[0].strip()

    page.goto(f"{address}/identity?q=二氯乙烷")
    page.locator("tbody a").first.click()
    page.fill("#why", "另一种")
    page.click("button[value=different]")
    page.locator("[role=status]").wait_for()
    with catalogue.reading() as session:
        query = select(EntityDecision).where(
            EntityDecision.kind == "keep-apart", EntityDecision.decided_by == "Zhang"
        )
        assert [r.why for r in session.scalars(query)] == ["另一种"]
    page.goto(f"{address}/documents/{digest('held back', '9')}")
    page.fill("#why", "fine")
    page.click("button[value=accept]")
    page.locator("[role=status]").wait_for()
    page.goto(address)
    assert "hchem refresh --from-stage curate" in page.locator(".note").first.inner_text()


def test_the_command_serves_until_ctrl_c(tmp_path: Path, template: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(template, data / "catalogue.db")
    with Catalogue.open(f"sqlite:///{data}/catalogue.db").writing() as session:
        session.add(
            Document(
                document_id="d",
                page_id="p",
                source="s",
                url="https://x.test",
                identity="x",
                state="review",
                title="甲",
            )
        )
    started = Command(data).start("review", "--port", "0", "--by", "Zhang")
    try:
        said = started.stdout.readline()
        address = said.split()[2]
        import httpx

        assert "甲" in httpx.get(f"{address}documents", timeout=60, trust_env=False).text
        assert httpx.get(address, headers={"Host": "evil.test"}, trust_env=False).status_code == 421
    finally:
        started.send_signal(signal.SIGINT)
        _, complaints = started.communicate(timeout=120)
    assert started.returncode == 0
    assert "Traceback" not in complaints

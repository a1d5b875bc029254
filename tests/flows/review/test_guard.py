"""Whom the review page serves: names, origins, tokens, passwords; and what its lists do over plain HTTP."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from sqlalchemy import func, insert, select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, EntityDecision, ReviewDecision
from corpus.errors import SettingsError
from corpus.ids import digest
from flows.review.guard import host_names
from flows.review.pages import Options, Review, safe_link
from flows.review.server import is_loopback, listen, read_auth, serve
from flows.review.words import WORDS, preferred
from kg.settings import ExtractionSettings

HOST = "127.0.0.1:4280"
ORIGIN = f"http://{HOST}"
PASSWORD = "zhang:a long pass word"


@pytest.fixture
def catalogue(tmp_path: Path, template: Path) -> Iterator[Catalogue]:
    path = tmp_path / "c.db"
    path.write_bytes(template.read_bytes())
    made = Catalogue.open(f"sqlite:///{path}")
    with made.writing() as session:
        session.add(document(0))
    yield made
    made.close()


def document(n: int, **values: Any) -> Document:
    given = {
        "document_id": digest("d", str(n)), "page_id": f"p{n}", "source": "s", "url": f"https://x.test/{n}", "identity": str(n),
        "title": f"第{n}页 <b>", "state": "review", "reason": "cleaning_guard", "cleaned_text": f"text {n}", "flags": [],
    }  # fmt: skip
    return Document(**{**given, **values})


class Visitor:
    """A browser's requests to the application, cookies kept."""

    def __init__(self, catalogue: Catalogue, **options: Any) -> None:
        given = {"by": "Zhang", "hosts": frozenset({HOST}), **options}
        self.app = Review(catalogue, ExtractionSettings(), Options(**given)).app()
        self.jar = httpx.Cookies()
        self.headers: dict[str, str] = {}

    def send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, content: bytes | None = None
    ) -> httpx.Response:
        async def once() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, cookies=self.jar) as client:
                found = await client.request(
                    method, path, headers={**self.headers, **(headers or {})}, content=content
                )
                self.jar = client.cookies
                return found

        return asyncio.run(once())

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, form: dict[str, str], **headers: str) -> httpx.Response:
        given = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded", **headers}
        return self.send(
            "POST",
            path,
            headers={k: v for k, v in given.items() if v or k != "Origin"},
            content=urlencode(form).encode(),
        )

    def form(self, path: str, **values: str) -> dict[str, str]:
        """The form of an item's page, filled in."""
        page = self.get(path).text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        return {**hidden, "why": "看过", "by": "Zhang", "choice": "reject", **values}


ITEM = f"/documents/{digest('d', '0')}"


def recorded(catalogue: Catalogue) -> int:
    with catalogue.reading() as session:
        return session.scalar(select(func.count()).select_from(ReviewDecision)) or 0


@pytest.mark.parametrize(
    "host", ["evil.test", "127.0.0.1", "127.0.0.1:4281", "localhost.evil.test:4280", "", "evil.test:4280"]
)
def test_a_name_that_is_not_ours_is_refused_whatever_it_leads_to(catalogue: Catalogue, host: str) -> None:
    visitor = Visitor(catalogue)
    found = visitor.get("/documents", Host=host)
    assert found.status_code == 421
    assert "第0页" not in found.text
    form = visitor.form(ITEM)
    assert visitor.post(ITEM, form, Host=host, Origin=f"http://{host}").status_code == 421
    assert recorded(catalogue) == 0


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.test",
        "http://127.0.0.1:4281",
        "http://127.0.0.1",
        f"{ORIGIN}.evil.test",
        HOST,
    ],
)
def test_a_form_from_elsewhere_is_refused(catalogue: Catalogue, origin: str) -> None:
    visitor = Visitor(catalogue)
    assert visitor.post(ITEM, visitor.form(ITEM), Origin=origin).status_code == 403
    assert recorded(catalogue) == 0


def test_a_form_needs_the_token_of_its_own_visitor(catalogue: Catalogue) -> None:
    visitor, other = Visitor(catalogue), Visitor(catalogue)
    form = visitor.form(ITEM)
    for token in ("", "0" * 64, other.form(ITEM)["token"], "é"):
        found = visitor.post(ITEM, {**form, "token": token})
        assert found.status_code == 403
        assert "out of date" in found.text
    visitor.jar = httpx.Cookies()
    assert visitor.post(ITEM, form).status_code == 403
    form = visitor.form(ITEM)
    assert visitor.post(ITEM, form, **{"Content-Type": "text/plain"}).status_code == 403
    assert visitor.post(ITEM, {**form, "why": "x" * 70_000}).status_code == 403
    assert visitor.send("PUT", ITEM, headers={"Origin": ORIGIN}).status_code == 405
    assert recorded(catalogue) == 0
    found = visitor.post(ITEM, form)
    assert (found.status_code, recorded(catalogue)) == (303, 1)
    assert found.headers["location"].startswith("/documents?done=")


def test_every_answer_forbids_scripts_frames_and_other_hosts(catalogue: Catalogue) -> None:
    visitor = Visitor(catalogue)
    for path in ("/", "/documents", ITEM, "/review.css", "/nothing", "/history"):
        found = visitor.get(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script" not in policy
        assert found.headers["x-frame-options"] == "DENY"
        assert found.headers["cache-control"] == "no-store"
        assert "<script" not in found.text
        assert not re.search(r"\s(on\w+|style)=", found.text)
    cookie = Visitor(catalogue).get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_a_password_is_asked_for_where_there_is_one(catalogue: Catalogue) -> None:
    visitor = Visitor(catalogue, auth=PASSWORD)
    for given in (
        "",
        "Basic",
        "Basic !!",
        "Bearer x",
        _basic("zhang:wrong"),
        _basic(""),
        _basic(PASSWORD + "x"),
    ):
        found = visitor.get("/documents", Authorization=given)
        assert found.status_code == 401
        assert "第0页" not in found.text
    visitor.headers = {"Authorization": _basic(PASSWORD)}
    assert visitor.get("/documents").status_code == 200
    assert visitor.post(ITEM, visitor.form(ITEM, by="somebody else")).status_code == 303
    with catalogue.reading() as session:
        assert session.scalars(select(ReviewDecision.decided_by)).all() == ["zhang"]  # not what the form says


def _basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_read_only_shows_everything_and_records_nothing(catalogue: Catalogue) -> None:
    visitor = Visitor(catalogue, read_only=True)
    page = visitor.get(ITEM).text
    assert "text 0" in page
    assert '<form method="post"' not in page
    token = Visitor(catalogue).form(ITEM)
    assert visitor.post(ITEM, token).status_code == 403
    assert recorded(catalogue) == 0


def test_only_loopback_without_a_password(catalogue: Catalogue, tmp_path: Path) -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.0.1", "::1", "localhost")))
    assert not any(
        map(is_loopback, ("0.0.0.0", "::", "192.168.1.1", "example.org", "localhost.example.org", ""))
    )
    with pytest.raises(SettingsError, match="--auth-file"):
        serve(catalogue, ExtractionSettings(), host="0.0.0.0", port=0, by="Zhang")
    with listen("127.0.0.1", 0) as taken, pytest.raises(SettingsError, match="cannot be listened on"):
        listen("127.0.0.1", taken.getsockname()[1])
    file = tmp_path / "auth"
    for text, mode, said in (
        (PASSWORD, 0o644, "chmod 600"), ("nobody", 0o600, "user:password"), ("a:short", 0o600, "12 characters"), (":" + "x" * 20, 0o600, "user:password"),
    ):  # fmt: skip
        file.write_text(text)
        file.chmod(mode)
        with pytest.raises(SettingsError, match=said):
            read_auth(file)
    file.write_text(PASSWORD + "\n")
    assert read_auth(file) == PASSWORD
    assert host_names(["::1", "a.test"], 80) == {"[::1]:80", "[::1]", "a.test:80", "a.test"}


def test_a_refusal_keeps_what_was_written(catalogue: Catalogue) -> None:
    visitor = Visitor(catalogue)
    for change, said in (
        ({"why": " "}, "say why"),
        ({"by": ""}, "say who"),
        ({"choice": "burn"}, "cannot be decided so"),
        ({"mark": "0"}, "has changed"),
    ):
        found = visitor.post(ITEM, visitor.form(ITEM, **{"why": "words <of> mine", **change}))
        assert found.status_code == 422
        assert said in found.text
        assert "why" in change or "words &lt;of&gt; mine" in found.text
    assert recorded(catalogue) == 0


def test_the_second_of_two_is_told_who_was_first_in_every_queue(catalogue: Catalogue) -> None:
    one, two = Visitor(catalogue), Visitor(catalogue)
    forms = one.form(ITEM, why="wrong page"), two.form(ITEM, choice="accept", by="Li", why="fine")
    assert one.post(ITEM, forms[0]).status_code == 303
    found = two.post(ITEM, forms[1])
    assert found.status_code == 409
    assert "Zhang decided it at" in found.text
    assert "wrong page" in found.text
    assert recorded(catalogue) == 1
    # a pair of names
    with catalogue.writing() as session:
        sides = {
            "left": {"key": "a", "name": "甲", "document": ""},
            "right": {"key": "b", "name": "乙", "document": ""},
        }
        session.add(EntityDecision(decision_id="case", kind="review", left_key="甲", right_key="乙", rule="alias", why="w",
                                   decided_by="rules", detail=sides))  # fmt: skip
    forms = (
        one.form("/identity/case", choice="different"),
        two.form("/identity/case", choice="different", by="Li"),
    )
    assert one.post("/identity/case", forms[0]).status_code == 303
    found = two.post("/identity/case", forms[1])
    assert found.status_code == 409
    assert "Zhang decided it at" in found.text


def test_lists_are_searched_narrowed_and_turned(catalogue: Catalogue) -> None:
    with catalogue.writing() as session:
        session.execute(
            insert(Document),
            [
                {
                    "document_id": digest("d", str(n)), "page_id": f"p{n}", "source": "s", "url": f"https://x.test/{n}",
                    "identity": str(n), "state": "rejected", "reason": "low_score", "cleaned_text": "text",
                    "title": f"第{n}页 100%_" if n % 2 else f"page {n}",
                }
                for n in range(1, 10_001)
            ],
        )  # fmt: skip
    visitor = Visitor(catalogue)
    page = visitor.get("/documents?page=200").text
    assert "Page 200 of 201, 10001 in all" in page
    assert page.count("<tr>") == 51
    assert visitor.get("/documents?page=99999").text.count("<tr>") == 0
    assert "10001" in visitor.get("/").text
    assert (
        "Page 1 of 100, 5000 in all" in visitor.get("/documents?q=100%25_").text
    )  # % and _ are letters here
    assert "1 in all" in visitor.get("/documents?kind=review:cleaning_guard").text
    assert "Nothing matches." in visitor.get("/documents?q=nowhere").text
    for query in (
        "page=x",
        "page=-1",
        "page=%E0%B2%A0",
        "kind=%00",
        "q=" + "长" * 3000,
        "at=99999999999",
        "lang=xx",
        "done=zzz",
    ):
        assert visitor.get(f"/documents?{query}").status_code == 200, query
    # deciding leads on to the next of the same list
    listed = re.findall(r'href="(/documents/[^"]+)"', visitor.get("/documents?q=100%25_").text)
    path, _, query = listed[0].replace("&amp;", "&").partition("?")
    found = visitor.post(path, visitor.form(f"{path}?{query}"))
    assert found.headers["location"].startswith(listed[1].partition("?")[0])
    assert "at=0" in found.headers["location"]


def test_both_languages_say_everything_and_are_chosen_by_the_browser_or_a_link(catalogue: Catalogue) -> None:
    assert set(WORDS["zh"]) == set(WORDS["en"])
    for key, text in WORDS["en"].items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", WORDS["zh"][key])), key
    for header, language in (
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"), ("en-GB", "en"), ("de, zh;q=0.5, en;q=0.4", "zh"), ("", "en"), ("q=,;;", "en"), ("zh;q=x", "en"),
    ):  # fmt: skip
        assert preferred(header) == language
    visitor = Visitor(catalogue)
    assert "隔离文档" in visitor.get("/", **{"Accept-Language": "zh-CN"}).text
    assert "隔离文档" in visitor.get("/?lang=zh").text
    assert "隔离文档" in visitor.get("/documents").text  # stays chosen
    assert "待复核" in visitor.get("/documents").text
    assert "Quarantined" in visitor.get("/?lang=en").text


def test_only_addresses_of_web_pages_become_links() -> None:
    assert safe_link("https://x.test/a?b=1&c=甲#d") == "https://x.test/a?b=1&c=%E7%94%B2#d"
    for address in (
        "javascript:alert(1)",
        "data:text/html,x",
        "//x.test",
        "file:///etc/passwd",
        "",
        "https://",
        "http://[",
        "jAvAsCrIpT://x.test/%0aalert(1)",
    ):
        assert safe_link(address) == ""


def test_an_empty_catalogue_has_nothing_to_decide(catalogue: Catalogue) -> None:
    with catalogue.writing() as session:
        session.delete(session.get_one(Document, digest("d", "0")))
    visitor = Visitor(catalogue)
    for queue in ("documents", "identity", "conflicts", "questions", "work"):
        assert "Nothing waits here." in visitor.get(f"/{queue}").text
        assert visitor.get(f"/{queue}/none").status_code == 404
    assert "Nobody has decided anything." in visitor.get("/history").text
    assert visitor.get("/history/none").status_code == 404


def test_a_catalogue_that_is_being_written_neither_waits_for_readers_nor_loses_a_decision(
    catalogue: Catalogue,
) -> None:
    visitor = Visitor(catalogue)
    form = visitor.form(ITEM)
    with catalogue.writing() as session:  # a run's transaction
        session.add(document(7))
        session.flush()
        assert "text 0" in visitor.get(ITEM).text
        assert "第7页" not in visitor.get("/documents").text
    assert visitor.post(ITEM, form).status_code == 303
    assert recorded(catalogue) == 1

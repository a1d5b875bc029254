"""Every type from the socket to the document: HTML, text, Markdown, XML, PDF, and what only claims to be one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from corpus.catalogue.tables import Document
from corpus.settings import CorpusSettings
from corpus.stage import curate_stage
from corpus.stages import StageContext, run_step
from models import Models
from tests.corpus.test_quality import SHEET, SHEET_EN
from tests.crawlers.documents import LINES, scanned_pdf, text_pdf
from tests.crawlers.helpers import Ground, source
from tests.servers.site import Site, serve

PDF = "application/pdf"


def sheet_html(sheet: str, lang: str) -> bytes:
    blocks = []
    for block in sheet.split("\n\n"):
        level = len(block) - len(block.lstrip("#"))
        blocks.append(f"<h{level}>{block.lstrip('# ')}</h{level}>" if level else f"<p>{block}</p>")
    return f"<html lang={lang}><head><title>{sheet[2:20]}</title></head><body><main>{''.join(blocks)}</main></body></html>".encode()


def sheet_xml(sheet: str) -> bytes:
    sections = "".join(f"<section>{block.lstrip('# ')}</section>" for block in sheet.split("\n\n"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<datasheet>{sections}</datasheet>'.encode()


def build(site: Site) -> None:
    site.page("/zh.html", sheet_html(SHEET, "zh"), content_type="text/html")
    site.page("/en.xhtml", sheet_html(SHEET_EN, "en"), content_type="application/xhtml+xml")
    site.page("/zh.txt", SHEET.encode("gb18030"), content_type="text/plain; charset=gb2312")
    site.page("/en.md", SHEET_EN, content_type="text/markdown; charset=utf-8")
    site.page("/zh.xml", sheet_xml(SHEET), content_type="application/xml")
    site.page("/en.text.xml", sheet_xml(SHEET_EN), content_type="text/xml")
    text = text_pdf()
    site.page("/text.pdf", text, content_type=PDF)
    site.page("/unnamed.pdf", text + b"\n", content_type="application/octet-stream")
    site.page("/as-html.pdf", text + b"\n\n", content_type="text/html")
    site.page("/locked.pdf", text_pdf(encrypted=True), content_type=PDF)
    site.page("/scanned.pdf", scanned_pdf(), content_type=PDF)
    site.page("/cut.pdf", text[: len(text) // 3], content_type=PDF)
    site.page("/picture-as-html", b"\x89PNG\r\n\x1a\n" + b"\x00\x01" * 900, content_type="text/html")
    site.page(
        "/html-as-text", sheet_html(SHEET_EN.replace("Acetone", "Acetone "), "en"), content_type="text/plain"
    )
    site.page(
        "/error-zh",
        "<html><head><title>页面不存在</title></head><body><h1>404</h1><p>抱歉,您访问的页面不存在或已被删除,请返回首页。</p></body></html>",
    )
    site.page("/error-en", "<html><head><title>Page not found</title></head><body><h1>Oops!</h1><p>Sorry, the page you requested could not be found. It may have been removed.</p></body></html>")  # fmt: skip
    site.page("/login", "<html><head><title>Login 登录</title></head><body><form><input name=user><input type=password></form><p>请登录后查看 Please sign in to continue</p></body></html>")  # fmt: skip


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Document]]:
    folder: Path = tmp_path_factory.mktemp("types")
    ground = Ground.at(folder)
    with serve() as site:
        build(site)
        site.index(*site.routes)
        ground.crawl(source(site, follow_content=[]))
    fates = ground.fates()
    assert set(fates.values()) == {("kept", "")}, fates
    stage = curate_stage(CorpusSettings(), Models.offline(), folder)
    try:
        for step in stage.steps:
            run_step(step, StageContext(ground.catalogue, "run-1"))
    finally:
        stage.close()
    with ground.catalogue.reading() as session:
        yield {"/" + row.url.split("/", 3)[-1]: row for row in session.scalars(select(Document))}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/zh.html", "page"), ("/en.xhtml", "page"), ("/zh.txt", "text"), ("/en.md", "text"),
        ("/zh.xml", "xml"), ("/en.text.xml", "xml"), ("/text.pdf", "pdf"), ("/unnamed.pdf", "pdf"), ("/as-html.pdf", "pdf"),
        ("/html-as-text", "page"),
    ],
)  # fmt: skip
def test_every_type_becomes_text(documents: dict[str, Document], path: str, kind: str) -> None:
    row = documents[path]
    assert row.kind == kind
    assert row.state in ("kept", "duplicate"), (row.state, row.reason, row.detail)
    facts = ("67-56-1", "H370", "64.8") if "zh" in path else ("67-64-1", "H225", "-18")
    assert all(fact in row.cleaned_text for fact in facts)


@pytest.mark.parametrize(
    ("path", "state", "reason"),
    [
        ("/locked.pdf", "rejected", "encrypted_pdf"), ("/scanned.pdf", "rejected", "scanned_pdf"),
        ("/cut.pdf", "failed", "malformed_pdf"), ("/picture-as-html", "rejected", "unsupported_type"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_its_reason(
    documents: dict[str, Document], path: str, state: str, reason: str
) -> None:
    row = documents[path]
    assert (row.state, row.reason) == (state, reason)
    assert row.detail


@pytest.mark.parametrize("path", ["/error-zh", "/error-en", "/login"])
def test_error_pages_sent_as_200_are_rejected(documents: dict[str, Document], path: str) -> None:
    assert documents[path].state == "rejected"
    assert documents[path].reason


def test_lines_of_the_made_up_pdf_are_its_text(documents: dict[str, Document]) -> None:
    assert all(line.split(",")[0] in documents["/text.pdf"].cleaned_text.replace("\n", " ") for line in LINES)

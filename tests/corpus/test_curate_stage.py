"""The curate stage on archived pages: states, second run, one edited page, vanished pages, failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Cluster, Document, Failure, LedgerRow, Page
from corpus.documents import kept_documents, refined
from corpus.ids import document_id, normalise_text, version_id
from corpus.settings import CorpusSettings, QualitySettings
from corpus.stage import curate_stage
from corpus.stages import Stage, StageContext, pending, run_batch
from models import Models
from tests.corpus.archived_pages import Sent, archive, pending_counts, run_stage
from tests.corpus.test_quality import SHEET, SHEET_EN

SITE = "https://x.example/sds/"
QUIET = {"profile": 0, "templates": 0, "clean": 0, "decided": 0, "score": 0, "refine": 0, "deduplicate": 0}
SUBSTANCES = [
    ("methanol", "甲醇", "67-56-1", 11),
    ("ethanol", "乙醇", "64-17-5", 13),
    ("benzene", "苯", "71-43-2", 10),
]


def html(body: str, title: str) -> bytes:
    nav = '<nav><a href="/">首页</a><a href="/a">化学品</a><a href="/b">关于我们</a></nav>'
    return f"<html><head><meta charset='utf-8'><title>{title}</title></head><body>{nav}<main>{body}</main><footer>版权所有 示例网站</footer></body></html>".encode()


def sheet_page(name: str, cas: str, flash: int, note: str = "") -> bytes:
    parts = []
    for block in SHEET.split("\n\n"):
        text = block.replace("甲醇", name).replace("67-56-1", cas).replace("闪点 11", f"闪点 {flash}")
        level = len(text) - len(text.lstrip("#"))
        parts.append(f"<h{level}>{text.lstrip('# ')}</h{level}>" if level else f"<p>{text}</p>")
    return html(
        "".join(parts) + f"<p>{name}的其他性质见化学手册，{note}其用途为溶剂。</p>", f"{name}安全技术说明书"
    )


def site() -> list[Sent]:
    pages = [
        Sent(f"{SITE}{slug}.html", sheet_page(name, cas, flash)) for slug, name, cas, flash in SUBSTANCES
    ]
    pages += [
        Sent("https://x.example/404.html", html("<p>抱歉，您访问的页面不存在或已被删除，请返回首页查找其他化学品资料，或者联系网站的管理员，谢谢。</p>", "页面不存在")),
        Sent("https://x.example/app.html", b"<html><body><div id=app></div><script>boot()</script></body></html>"),
        Sent("https://x.example/acetone.md", SHEET_EN.encode(), "text/markdown; charset=utf-8"),
        Sent("https://x.example/broken.pdf", b"%PDF-1.4 this is no pdf at all", "application/pdf"),
    ]  # fmt: skip
    return pages


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    found = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    archive(found, tmp_path, site())
    return found


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = curate_stage(CorpusSettings(), Models.offline(), tmp_path)
    yield made
    made.close()


def rows(catalogue: Catalogue) -> dict[str, Document]:
    with catalogue.reading() as session:
        return {row.url.rsplit("/", 1)[1]: row for row in session.scalars(select(Document))}


def dump(catalogue: Catalogue) -> list[dict[str, Any]]:
    with catalogue.reading() as session:
        found = session.scalars(select(Document).order_by(Document.document_id)).all()
        return [{c.key: getattr(row, c.key) for c in Document.__mapper__.column_attrs} for row in found]


def test_each_page_ends_somewhere_with_a_reason(catalogue: Catalogue, stage: Stage) -> None:
    run_stage(stage, catalogue)
    found = rows(catalogue)
    assert {name: row.state for name, row in found.items()} == {
        "methanol.html": "kept", "ethanol.html": "kept", "benzene.html": "kept", "acetone.md": "kept",
        "404.html": "rejected", "app.html": "rejected", "broken.pdf": "failed",
    }  # fmt: skip
    assert all(row.reason for row in found.values() if row.state != "kept")
    methanol = found["methanol.html"]
    assert methanol.score is not None
    assert methanol.score > 3
    assert methanol.score_source == "offline"
    assert methanol.text == normalise_text(methanol.text)
    assert methanol.version_id == version_id(methanol.document_id, methanol.text)
    assert "闪点 11 ℃" in methanol.text
    assert "版权所有" not in methanol.text
    assert {1, 2, 4, 5, 7, 9, 10} <= {section["sds"] for section in methanol.sections}
    with catalogue.reading() as session:
        assert session.scalars(select(Failure.item_id)).all() == [found["broken.pdf"].document_id]
        assert {document.url for document in kept_documents(session)} == {
            row.url for row in found.values() if row.state == "kept"
        }


def test_the_block_map_leads_back(catalogue: Catalogue, stage: Stage) -> None:
    run_stage(stage, catalogue)
    document = refined(rows(catalogue)["methanol.html"])
    block = next(b for b in document.blocks if "闪点" in document.text[b.start : b.end])
    assert "闪点" in document.cleaned_text[block.cleaned_start : block.cleaned_end]
    assert block.path.startswith("/html")
    assert document.sections[0].start == 0
    assert document.sections[-1].end == len(document.text)


def test_a_second_run_has_nothing_to_do_and_batches_do_not_matter(
    catalogue: Catalogue, stage: Stage, tmp_path: Path
) -> None:
    run_stage(stage, catalogue)
    assert pending_counts(stage, catalogue) == QUIET
    other = Catalogue.open(f"sqlite:///{tmp_path}/other.db")
    archive(other, tmp_path, reversed(site()), name="other")
    for step in stage.steps:
        step.batch_size = 1 if step.batch_size else None
        while items := pending(step, StageContext(other, "r", limit=2)):
            run_batch(step, StageContext(other, "r"), items)
    assert dump(other) == dump(catalogue)


def test_an_edited_page_redoes_only_its_own(catalogue: Catalogue, stage: Stage, tmp_path: Path) -> None:
    run_stage(stage, catalogue)
    before = rows(catalogue)
    archive(
        catalogue, tmp_path, [Sent(f"{SITE}methanol.html", sheet_page("甲醇", "67-56-1", 12))], name="second"
    )
    worked = run_stage(stage, catalogue)
    once = {"profile": 1, "templates": 1, "clean": 1, "decided": 0, "score": 1, "refine": 1, "deduplicate": 1}
    assert worked == once
    after = rows(catalogue)
    assert "闪点 12 ℃" in after["methanol.html"].text
    assert after["methanol.html"].version_id != before["methanol.html"].version_id
    assert after["ethanol.html"].version_id == before["ethanol.html"].version_id
    assert pending_counts(stage, catalogue) == QUIET


def test_a_page_that_changes_in_its_furniture_only_is_cleaned_and_no_more(
    catalogue: Catalogue, stage: Stage, tmp_path: Path
) -> None:
    run_stage(stage, catalogue)
    before = rows(catalogue)["methanol.html"]
    body = sheet_page("甲醇", "67-56-1", 11).replace("示例网站".encode(), "示例网站 2026".encode())
    archive(catalogue, tmp_path, [Sent(f"{SITE}methanol.html", body)], name="second")
    worked = run_stage(stage, catalogue)
    assert (worked["clean"], worked["score"], worked["refine"], worked["deduplicate"]) == (1, 0, 0, 0)
    assert rows(catalogue)["methanol.html"].text == before.text


def test_a_change_and_back_again_restores_the_document(
    catalogue: Catalogue, stage: Stage, tmp_path: Path
) -> None:
    run_stage(stage, catalogue)
    first = dump(catalogue)
    archive(
        catalogue, tmp_path, [Sent(f"{SITE}methanol.html", sheet_page("甲醇", "67-56-1", 12))], name="second"
    )
    ctx = StageContext(catalogue, "r")
    for step in stage.steps[:3]:  # interrupted after cleaning
        run_batch(step, ctx, pending(step, ctx))
    assert rows(catalogue)["methanol.html"].text == ""
    archive(catalogue, tmp_path, site()[:1], name="third")
    run_stage(stage, catalogue)
    assert dump(catalogue) == first


def test_a_vanished_page_takes_its_document_along(catalogue: Catalogue, stage: Stage) -> None:
    run_stage(stage, catalogue)
    with catalogue.writing() as session:
        session.execute(update(Page).where(Page.url == f"{SITE}ethanol.html").values(state="gone"))
    run_stage(stage, catalogue)
    assert "ethanol.html" not in rows(catalogue)
    assert pending_counts(stage, catalogue) == QUIET


def test_a_page_that_waits_for_its_next_visit_keeps_its_document(catalogue: Catalogue, stage: Stage) -> None:
    run_stage(stage, catalogue)
    with catalogue.writing() as session:
        session.execute(update(Page).where(Page.url == f"{SITE}ethanol.html").values(state="queued"))
    assert pending_counts(stage, catalogue) == QUIET
    assert rows(catalogue)["ethanol.html"].state == "kept"


def test_duplicates_point_and_come_back(catalogue: Catalogue, stage: Stage, tmp_path: Path) -> None:
    mirror = Sent("https://mirror.example/1.html", sheet_page("甲醇", "67-56-1", 11, "转载自网络，"))
    archive(catalogue, tmp_path, [mirror], name="mirror")
    run_stage(stage, catalogue)
    pair = {row.state for name, row in rows(catalogue).items() if name in ("methanol.html", "1.html")}
    assert pair == {"kept", "duplicate"}
    gone = next(
        row
        for row in rows(catalogue).values()
        if row.document_id in {r.duplicate_of for r in rows(catalogue).values()}
    )
    with catalogue.writing() as session:
        session.execute(update(Page).where(Page.document_id == gone.document_id).values(state="gone"))
    run_stage(stage, catalogue)
    left = [row for name, row in rows(catalogue).items() if name in ("methanol.html", "1.html")]
    assert [row.state for row in left] == ["kept"]
    assert left[0].duplicate_of is None


def test_the_threshold_moves_documents_out_and_in(catalogue: Catalogue, stage: Stage, tmp_path: Path) -> None:
    run_stage(stage, catalogue)
    first = dump(catalogue)
    strict = curate_stage(CorpusSettings(quality=QualitySettings(threshold=4.9)), Models.offline(), tmp_path)
    run_stage(strict, catalogue)
    assert {row.state for row in rows(catalogue).values()} == {"rejected", "failed"}
    assert all(row.text == "" for row in rows(catalogue).values())
    strict.close()
    run_stage(stage, catalogue)
    assert dump(catalogue) == first


def test_restricted_runs_touch_only_their_source(catalogue: Catalogue, stage: Stage, tmp_path: Path) -> None:
    archive(
        catalogue,
        tmp_path,
        [Sent("https://y.example/1.html", sheet_page("吡啶", "110-86-1", 17), source="y")],
        name="y",
    )
    run_stage(stage, catalogue, sources=("y",))
    assert set(rows(catalogue)) == {"1.html"}
    assert rows(catalogue)["1.html"].state == "kept"


def test_a_lost_archive_fails_the_item_and_not_the_rest(catalogue: Catalogue, stage: Stage) -> None:
    with catalogue.writing() as session:
        session.execute(
            update(Page).where(Page.url == f"{SITE}benzene.html").values(warc_file="warc/none.warc.gz")
        )
    run_stage(stage, catalogue)
    found = rows(catalogue)
    assert found["methanol.html"].state == "kept"
    assert found["benzene.html"].state == "failed"
    assert pending_counts(stage, catalogue) == QUIET


def test_templates_are_kept_by_cluster(catalogue: Catalogue, stage: Stage) -> None:
    run_stage(stage, catalogue)
    with catalogue.reading() as session:
        sizes = {row.pattern: row.size for row in session.scalars(select(Cluster))}
        ledger = session.scalars(select(LedgerRow.item_id).where(LedgerRow.step == "curate.clean")).all()
    assert sizes["x.example/sds/{name}.html"] >= 3
    assert document_id(f"{SITE}methanol.html") in ledger

"""Archived pages for tests of the curate stage: real WARC records and page rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from corpus.archive import ArchiveWriter, Exchange
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Page
from corpus.ids import digest, document_id
from corpus.stages import Stage, StageContext, pending, run_step


@dataclass(frozen=True)
class Sent:
    """A page as a site would send it."""

    url: str
    body: bytes
    content_type: str = "text/html; charset=utf-8"
    source: str = "test"


def archive(catalogue: Catalogue, data_dir: Path, pages: Iterable[Sent], name: str = "test") -> None:
    """Write the pages to a WARC file and upsert their rows."""
    writer = ArchiveWriter(data_dir, name)
    rows = []
    for page in pages:
        exchange = Exchange(
            url=page.url,
            request_headers=(("Host", "x.example"),),
            status=200,
            reason="OK",
            response_headers=(("Content-Type", page.content_type),),
            body=page.body,
            decoded=page.body,
            date="2026-01-01T00:00:00Z",
        )
        place = writer.write_response(exchange)
        charset = page.content_type.partition("charset=")[2]
        rows.append(
            Page(
                page_id=digest("page", page.url),
                document_id=document_id(page.url),
                source=page.source,
                url=page.url,
                identity=page.url,
                state="kept",
                role="content",
                content_type=page.content_type,
                charset=charset,
                payload_sha256=hashlib.sha256(page.body).hexdigest(),
                payload_bytes=len(page.body),
                warc_file=place.warc_file,
                warc_offset=place.offset,
            )
        )
    writer.close()
    with catalogue.writing() as session:
        for row in rows:
            session.merge(row)


def run_stage(stage: Stage, catalogue: Catalogue, **restrictions: object) -> dict[str, int]:
    """Run all steps; returns how many items each step worked on."""
    worked = {}
    for step in stage.steps:
        ctx = StageContext(catalogue, "run", **restrictions)  # type: ignore[arg-type]
        worked[step.name.split(".")[1]] = len(pending(step, ctx))
        run_step(step, ctx)
    return worked


def pending_counts(stage: Stage, catalogue: Catalogue) -> dict[str, int]:
    """How many items each step would work on now."""
    ctx = StageContext(catalogue, "again")
    return {step.name.split(".")[1]: len(pending(step, ctx)) for step in stage.steps}

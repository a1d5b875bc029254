"""Made-up catalogues for gates, freshness and announcements: a run is a session with rows put in by hand."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import delete

from corpus.catalogue.tables import Check, Document, LedgerRow, Page
from flows import execution
from flows.gates import judging
from flows.parameters import RefreshParameters
from flows.report import gates
from flows.report.page import _term
from flows.report.words import WORDS
from flows.runtime import open_runtime
from flows.settings import Settings
from tests.flows.report_text import left_in_english

Fill = Callable[[Any], None]


def documents(**by_source: int) -> Fill:
    """That many documents kept of each source; all others go."""

    def fill(db: Any) -> None:
        db.execute(delete(Document))
        for source, n in by_source.items():
            for i in range(n):
                name = f"{source} {i}"
                db.add(
                    Document(
                        document_id=name, page_id=name, source=source, url="", identity=name, state="kept"
                    )
                )

    return fill


def crawl(
    source: str, run_id: str, counts: dict[str, int] | None = None, state: str = "kept", reason: str = ""
) -> Fill:
    """The ledger's row of a crawl in a run, with the counts that the crawl reports."""

    def fill(db: Any) -> None:
        db.merge(
            LedgerRow(
                step="acquire.crawl", item_id=source, fingerprint=run_id, state=state, reason=reason, counts=counts or {},
                run_id=run_id,
            )
        )  # fmt: skip

    return fill


def pages(source: str, n: int) -> Fill:
    """That many pages kept of a source."""

    def fill(db: Any) -> None:
        db.execute(delete(Page).where(Page.source == source))
        for i in range(n):
            name = f"{source} {i}"
            db.add(Page(page_id=name, document_id=name, source=source, url="", identity=name, state="kept"))

    return fill


@dataclass
class Ran:
    """What came of a run: its checks by gate and scope, and its error."""

    checks: dict[tuple[str, str], Check]
    error: Exception | None = None
    lines: list[str] = field(default_factory=list)

    def __getitem__(self, key: str | tuple[str, str]) -> Check:
        return self.checks[(key, "") if isinstance(key, str) else key]


def run(
    settings: Settings, run_id: str, stage: str, *fills: Fill, worked: bool = True, **parameters: Any
) -> Ran:
    """A run in which a stage left what ``fills`` put into the catalogue; its gates are judged as in any other."""
    with open_runtime(settings=settings, run_id=run_id) as runtime:
        found: list[Check] = []
        try:
            with execution.session(runtime, "refresh", RefreshParameters(**parameters)) as current:
                with runtime.catalogue.writing() as db:
                    for fill in fills:
                        fill(db)
                current.stages[stage] = {
                    "seconds": 0.0,
                    "steps": {f"{stage}.made_up": {"pending": int(worked)}},
                }
                try:
                    judging.after_stage(current, stage)
                finally:
                    found = current.gates.found[stage]
        except Exception as error:
            return _ran(found, error)
        return _ran(found)


def _ran(found: list[Check], error: Exception | None = None) -> Ran:
    for row in found:
        same_in_chinese(row)
    return Ran({(row.name, row.scope): row for row in found}, error)


def same_in_chinese(row: Check) -> None:
    """Prove that the Chinese report says of a check what the catalogue does: no English, every figure."""
    chinese = str(gates.found(row, WORDS["zh"], lambda code: _term(WORDS["zh"], code)))
    english = str(gates.found(row, WORDS["en"], lambda code: _term(WORDS["en"], code)))
    assert left_in_english(f"<p>{chinese}</p>") == [], row.message
    assert re.search("[\u3400-\u9fff]", chinese), chinese
    assert not english.startswith(row.name)
    figures = [sorted(re.findall(r"[−+]?\d[\d.]*", html.unescape(said))) for said in (chinese, english)]
    assert figures[0] == figures[1], (chinese, english)


def settings(folder: Path, **sections: Any) -> Settings:
    """Settings on a data directory of its own."""
    return Settings(data_dir=folder / "data", **sections)

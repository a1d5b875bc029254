"""Decisions on both databases: two at once leave one, and every list is a query that both understand."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlalchemy import select

from corpus import reviews
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, LedgerRow, ReviewDecision
from corpus.curating import decided as documents
from corpus.settings import CorpusSettings
from corpus.stage import curate_stage
from flows.review import history, queues
from kg.settings import ExtractionSettings
from models import Models
from tests.corpus.archived_pages import pending_counts


def test_of_decisions_at_the_same_moment_one_is_stored_and_the_others_are_told(catalogue: Catalogue) -> None:
    with catalogue.writing() as session:
        session.add(
            Document(
                document_id="d",
                page_id="p",
                source="s",
                url="https://x.test",
                identity="x",
                state="review",
                cleaned_text="甲醇",
                flags=[],
            )
        )
    people = 4
    begin = threading.Barrier(people)

    def decide(number: int) -> str:
        begin.wait()
        try:
            with catalogue.writing() as session:
                documents.decide(session, "d", "accept", why=f"why {number}", by=f"person {number}")
        except reviews.DecidedError as error:
            return error.row.why
        return "recorded"

    with ThreadPoolExecutor(people) as pool:
        said = list(pool.map(decide, range(people)))
    assert said.count("recorded") == 1
    with catalogue.reading() as session:
        (row,) = session.scalars(select(ReviewDecision))
    assert set(said) == {"recorded", row.why}


def test_every_list_on_both_databases(catalogue: Catalogue, tmp_path: Path) -> None:
    with catalogue.writing() as session:
        for name, state, flags in (("a", "review", []), ("b", "kept", ["accepted"]), ("c", "rejected", [])):
            session.add(
                Document(document_id=name, page_id=name, source="s", url=f"https://x.test/{name}", identity=name, state=state,
                         reason="low_score" if state == "rejected" else "", cleaned_text="甲醇", cleaned_hash="h", version_id="v",
                         text="甲醇", flags=flags, score=1.0, title=f"{name}_%")
            )  # fmt: skip
        session.add(
            LedgerRow(
                step="graph.extract", item_id="b", fingerprint="f", state="failed", reason="r", run_id="r"
            )
        )
        documents.decide(session, "a", "accept", why="看过", by="Zhang")
        made = documents.decide(session, "c", "reject", why="看过", by="Zhang").decision_id
    computed = queues.Computed(ExtractionSettings())
    with catalogue.reading() as session:
        assert queues.counts(session, computed) == {
            "documents": 0,
            "identity": 0,
            "conflicts": 0,
            "questions": 0,
            "work": 1,
        }
        assert [entry.title for entry in queues.work(session, queues.Wanted(words="EXTRACT")).rows] == ["b_%"]
        assert queues.documents(session, queues.Wanted(words="_%")).total == 0
    assert queues.to_apply(catalogue) == ["curate"]
    with catalogue.writing() as session:
        history.undo(session, made, "anders 不同", "Li")
    with catalogue.reading() as session:
        assert [entry.id for entry in queues.documents(session, queues.Wanted(words="_%")).rows] == ["c"]
        assert {line.choice for line in history.lines(session, queues.Wanted())[0]} == {
            "accept",
            "reject",
            "undo",
        }
    stage = curate_stage(CorpusSettings(), Models.offline(), tmp_path)
    waiting = pending_counts(stage, catalogue)
    assert (waiting["decided"], waiting["refine"], waiting["deduplicate"]) == (
        2,
        1,
        1,
    )  # by the flag, below the threshold
    stage.close()

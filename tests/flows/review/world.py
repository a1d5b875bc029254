"""A made-up catalogue with something in every queue, names that would break a page among it."""

from __future__ import annotations

from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Assertion,
    Document,
    EntityDecision,
    LedgerRow,
    Question,
)
from corpus.ids import digest
from kg import decisions
from kg.conflicts import find
from kg.settings import ExtractionSettings
from tests.kg import sheets

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>' onmouseover='alert(3)",
    "{{ 7*7 }}{% raw %}",
    "\u202eevil\u202c\u2066 ‫שלום‬",
    "../../etc/passwd?a=1&b=2#c",
    "长" * 4_000,
    "a\u0007b\u2028c\u200b",
    "]]></style><style>body{display:none}</style>",
)


def fill(catalogue: Catalogue) -> None:
    """Sheets that disagree, documents held back, stale questions, a failed step; half of the words hostile."""
    sheets.fill(catalogue)
    sheets.run(catalogue, reference=True)
    with catalogue.writing() as session:  # so that two flash points of one substance stand against each other
        decisions.merge(session, "甲号油", "67-56-1", HOSTILE[0], HOSTILE[1][:60])
    sheets.run(catalogue, reference=True)
    with catalogue.writing() as session:
        for n, words in enumerate((*HOSTILE, "回流焊说明", "boiler plate")):
            session.add(
                Document(
                    document_id=digest("held back", str(n)), page_id=f"p{n}", source=words[:40], kind="page",
                    url=f"https://pages.test/{n}" if n % 2 else f"javascript:alert({n})//{words[:40]}",
                    identity=str(n), title=words, language="zh", licence=words[:80], state=("review", "rejected", "failed")[n % 3],
                    reason=("cleaning_guard", "low_score", "timeout")[n % 3], detail=f"CAS 67-56-1 lost: {words}",
                    cleaned_text=f"{words}\n甲醇 67-56-1 闪点 11 ℃\n{words}", removed={words[:60]: 3}, flags=[], score=2.5,
                )
            )  # fmt: skip
        for n, words in enumerate(HOSTILE):
            side = {"key": f"name:{words[:60]}", "name": words, "document": ""}
            session.add(
                EntityDecision(
                    decision_id=digest("case", str(n)), kind="review", left_key=words[:128], right_key="甲醇", rule="alias",
                    why=words, decided_by="rules",
                    detail={"left": side, "right": {"key": "67-56-1", "name": "甲醇", "document": ""}, "proposal": words[:20]},
                )
            )  # fmt: skip
        stated = session.scalars(
            select(Assertion).where(Assertion.state == "kept", Assertion.extractor == "offline").order_by(Assertion.assertion_id)
        ).first()  # fmt: skip
        assert stated is not None
        reference = {
            "document_id": stated.document_id, "version_id": stated.version_id, "start": stated.start,
            "end": stated.end, "quote": stated.quote, "url": "javascript:alert(9)",
        }  # fmt: skip
        for n, words in enumerate((*HOSTILE, "甲醇的沸点是多少？")):
            session.add(
                Question(
                    question_id=digest("question", str(n)), kind="single_hop", language="zh", question=words, answer=words,
                    triples=[[words[:60], "HAS_MEASUREMENT", "gone"]], references=[reference, {**reference, "document_id": "gone"}],
                    state="kept",
                )
            )  # fmt: skip
        failed = session.get_one(LedgerRow, ("graph.extract", stated.document_id))
        failed.state, failed.reason, failed.detail = "failed", "unexpected", f"terminal: {HOSTILE[0]}"
        for row in session.scalars(select(Document).where(Document.state == "kept", Document.kind == "page")):
            row.title = f"{row.title} {HOSTILE[0]}"
    with catalogue.reading() as session:
        assert next(find(session, ExtractionSettings()), None) is not None

"""Extraction, reference and identity on a catalogue: settled runs, changes, removals, same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, ChemicalName, Document, Entity, EntityAlias, EntityDecision
from corpus.chemicals import normalise_name
from corpus.documents import RefinedDocument
from corpus.ids import canonical_json, digest
from corpus.stages import StageContext, pending, run_step
from kg.settings import ExtractionSettings
from kg.steps import extraction_steps
from models import Models
from tests.kg.documents import SDS_EN, SDS_ZH, document

MIXTURE = """# 甲醛溶液

| 中文名称 | 甲醛溶液 |
| --- | --- |
| 物质类别 | 混合物 |
| CAS号 | 50-00-0（甲醛） |
| 沸点 | 97 ℃ |

| 组分 | CAS号 | 含量 |
| --- | --- | --- |
| 甲醛 | 50-00-0 | 37% |
"""


def row(made: RefinedDocument) -> Document:
    return Document(
        document_id=made.document_id, page_id="p", source="test", url=made.url, identity=made.document_id, kind="page",
        title=made.title, language=made.language, state="kept", cleaned_text=made.cleaned_text,
        cleaned_hash=digest(made.cleaned_text), version_id=made.version_id, text=made.text,
        blocks=[asdict(b) for b in made.blocks], sections=[asdict(s) for s in made.sections],
    )  # fmt: skip


def fill(catalogue: Catalogue) -> None:
    with catalogue.writing() as session:
        for made in (
            document(SDS_ZH, title="甲醇安全技术说明书"),
            document(SDS_EN, title="Safety Data Sheet: Ammonia, anhydrous", language="en"),
            document("# 氨\n\nCAS号：7664-41-7\n\n沸点：-33.5 ℃\n", title="氨"),
            document(MIXTURE, title="甲醛溶液"),
        ):
            session.add(row(made))
        for key, name in (("67-56-1", "甲醇"), ("7664-41-7", "氨"), ("7732-18-5", "水")):
            session.add(
                ChemicalName(name_id=digest(key, name), key=key, name=name, normalised=normalise_name(name),
                             language="zh", kind="common", source="test")
            )  # fmt: skip


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    made = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    fill(made)
    yield made
    made.close()


def run(catalogue: Catalogue, run_id: str = "r1", **settings: Any) -> dict[str, dict[str, int]]:
    ctx = StageContext(catalogue, run_id)
    steps = extraction_steps(ExtractionSettings(**settings), Models.offline())
    return {step.name: dict(run_step(step, ctx).states) for step in steps}


def dump(catalogue: Catalogue) -> list[str]:
    lines = []
    with catalogue.reading() as session:
        for table in (Assertion, Entity, EntityAlias, EntityDecision):
            rows = [
                {c.name: getattr(r, c.key) for c in table.__table__.columns}
                for r in session.scalars(select(table))
            ]
            lines += sorted(canonical_json(r) for r in rows)
    return lines


def test_all_ends_are_resolved_and_documents_meet(catalogue: Catalogue) -> None:
    run(catalogue)
    with catalogue.reading() as session:
        kept = list(session.scalars(select(Assertion).where(Assertion.state == "kept")))
        assert kept
        assert all(a.subject_key and a.object_key for a in kept)
        assert all(a.quote and a.page_quote for a in kept)
        ammonia = {a.document_id for a in kept if a.subject_key == "7664-41-7" and a.extractor == "offline"}
        assert len(ammonia) == 2  # "Ammonia, anhydrous" and 氨 by their CAS number
        solution = next(a for a in kept if a.subject == "甲醛溶液")
        assert solution.subject_key.startswith("mixture:")
        assert session.get(Entity, solution.subject_key).label == "Mixture"  # type: ignore[union-attr]
        links = [d for d in session.scalars(select(EntityDecision)) if d.kind == "link"]
        assert {solution.subject_key, "50-00-0"} in [{d.left_key, d.right_key} for d in links]


def test_reference_rows_join_their_substance_and_are_compared(catalogue: Catalogue) -> None:
    run(catalogue)
    with catalogue.reading() as session:
        reference = list(session.scalars(select(Document).where(Document.kind == "reference")))
        assert {d.identity for d in reference} >= {
            "reference:NFPA 497:67-56-1",
            "reference:IEC 60079-20-1:67-56-1",
        }
        flash = session.scalars(
            select(Assertion).where(Assertion.subject_key == "67-56-1", Assertion.extractor == "offline")
        ).all()
        compared = [
            a.properties["comparison"] for a in flash if a.properties.get("property") == "flash_point"
        ]
        assert compared
        assert set(compared[0].values()) <= {"agree", "differ", "conflict"}
    run(catalogue, "r2", reference=False)
    with catalogue.reading() as session:
        assert not session.scalars(select(Document).where(Document.kind == "reference")).all()
        assert not session.scalars(select(Assertion).where(Assertion.extractor == "reference")).all()
        assert not [a for a in session.scalars(select(Assertion)) if "comparison" in a.properties]


def test_second_run_has_nothing_to_do(catalogue: Catalogue) -> None:
    run(catalogue)
    before = dump(catalogue)
    assert run(catalogue, "r2") == {"graph.extract": {}, "graph.reference": {}, "graph.resolve": {}}
    assert dump(catalogue) == before


def test_forced_run_gives_the_same_bytes(catalogue: Catalogue) -> None:
    run(catalogue)
    before = dump(catalogue)
    ctx = StageContext(catalogue, "r2", force=True)
    for step in extraction_steps(ExtractionSettings(), Models.offline()):
        run_step(step, ctx)
    run(catalogue, "r3")
    assert dump(catalogue) == before


def test_interrupted_between_steps_resumes_to_the_same_bytes(catalogue: Catalogue, tmp_path: Path) -> None:
    run(catalogue)
    wanted = dump(catalogue)
    other = Catalogue.open(f"sqlite:///{tmp_path}/other.db")
    fill(other)
    extract, *_ = extraction_steps(ExtractionSettings(), Models.offline())
    ctx = StageContext(other, "killed")
    for item in reversed(pending(extract, ctx)[1:]):  # another order, one missing, nothing resolved
        run_step(_Only(extract, item.id), ctx)  # type: ignore[arg-type]
    run(other, "r1")
    assert dump(other) == wanted
    other.close()


class _Only:
    """A step that plans a single item, to stop in the middle."""

    def __init__(self, step: Any, item: str) -> None:
        self.step, self.item, self.batch_size = step, item, 1
        self.name, self.version = step.name, step.version

    def plan(self, ctx: StageContext) -> Any:
        return [item for item in self.step.plan(ctx) if item.id == self.item]

    def retire(self, session: Any, items: Any) -> None:
        """Nothing vanished, the rest is only not planned here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)


def test_a_document_that_goes_takes_its_assertions_along(catalogue: Catalogue) -> None:
    run(catalogue)
    gone = document(MIXTURE, title="甲醛溶液").document_id
    with catalogue.writing() as session:
        session.execute(update(Document).where(Document.document_id == gone).values(state="rejected"))
    run(catalogue, "r2")
    with catalogue.reading() as session:
        assert not session.scalars(select(Assertion).where(Assertion.document_id == gone)).all()
        assert not [e for e in session.scalars(select(Entity)) if e.label == "Mixture"]


def test_only_the_changed_document_is_extracted_again(catalogue: Catalogue) -> None:
    run(catalogue)
    old = document("# 氨\n\nCAS号：7664-41-7\n\n沸点：-33.5 ℃\n", title="氨")
    new = document("# 氨\n\nCAS号：7664-41-7\n\n沸点：-33.4 ℃\n", title="氨")
    with catalogue.writing() as session:
        session.execute(
            update(Document).where(Document.document_id == old.document_id)
            .values(text=new.text, cleaned_text=new.text, cleaned_hash=digest(new.text), version_id="v2",
                    blocks=[asdict(b) for b in new.blocks])
        )  # fmt: skip
    assert run(catalogue, "r2")["graph.extract"] == {"kept": 1}
    with catalogue.reading() as session:
        values = [
            a.value["min"]
            for a in session.scalars(
                select(Assertion).where(
                    Assertion.document_id == old.document_id, Assertion.relation == "HAS_MEASUREMENT"
                )
            )
        ]
    assert values == [-33.4]


def test_undone_merge_stays_undone(catalogue: Catalogue) -> None:
    run(catalogue)
    with catalogue.writing() as session:
        merges = list(session.scalars(select(EntityDecision).where(EntityDecision.kind == "merge")))
        pair = next(d for d in merges if {d.left_key, d.right_key} == {"Ammonia, anhydrous", "氨"})
        pair.undone = True
    run(catalogue, "r2")
    with catalogue.reading() as session:
        keys = {
            a.subject: a.subject_key
            for a in session.scalars(select(Assertion).where(Assertion.extractor == "offline"))
        }
        assert keys["Ammonia, anhydrous"] != keys["氨"]
        assert [
            d.undone
            for d in session.scalars(
                select(EntityDecision).where(EntityDecision.decision_id == pair.decision_id)
            )
        ] == [True]


def test_nothing_left_is_no_identity(catalogue: Catalogue) -> None:
    run(catalogue)
    with catalogue.writing() as session:
        session.execute(delete(Document))
    run(catalogue, "r2")
    assert dump(catalogue) == []

"""A user's vocabulary: checked, used by the rules and the model's skill, and a part of the graph from then on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion
from corpus.errors import SettingsError
from corpus.stages import StageContext, run_step
from kg import extension, queries
from kg.extraction import extract
from kg.extraction.evidence import judge
from kg.extraction.model import Draft, Subject
from kg.extraction.skill import (
    ExtractAssertions,
    ExtractedAssertion,
    ExtractedAssertions,
    ExtractionGiven,
    to_draft,
)
from kg.graph_settings import GraphSettings
from kg.projection import entities_by_key, statements
from kg.schema import RELATIONS, DropReason, NodeLabel, Property, Relation
from kg.settings import ExtractionSettings
from kg.steps import extraction_steps
from models import Models
from models.client.call import schema_of
from tests.kg.documents import document
from tests.kg.test_extraction_steps import row

GOOD = """
[nodes.Catalyst]
zh = "催化剂"
en = "catalyst"

[relations.MADE_WITH]
objects = ["Catalyst"]
zh = "所用催化剂"
en = "catalysts used"
labels = ["所用催化剂", "catalysts used"]

[properties.cubic_expansion]
zh = "体膨胀系数"
en = "cubic expansion"
dimension = "1/kelvin"
textual = false
labels = ["体膨胀系数", "cubic expansion"]

[labels.measurement]
flash_point = ["闪燃点", "flashing point"]
"""
ZH = "# 甲醇\n\nCAS号：67-56-1\n\n所用催化剂：氧化铜、氧化锌\n\n闪燃点：11 ℃\n"
EN = "# Methanol\n\nCAS No.: 67-56-1\n\nCatalysts used: copper oxide, zinc oxide\n\nFlashing point: 11 °C\n"


@pytest.fixture
def added(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "own.toml"
    path.write_text(GOOD, encoding="utf-8")
    with extension.extended(path):
        yield path
    assert not extension.extension_digest()


def stated(text: str, relation: str) -> list[str]:
    made = document(text, title="甲醇" if "甲醇" in text else "Methanol")
    return [d.object for d in extract(made)[1] if d.relation.value == relation and judge(d, made)[0] is None]


@pytest.mark.parametrize(
    ("text", "objects"), [(ZH, ["氧化铜", "氧化锌"]), (EN, ["copper oxide", "zinc oxide"])]
)
def test_rules_read_the_added_labels(added: Path, text: str, objects: list[str]) -> None:
    assert stated(text, "MADE_WITH") == objects
    assert stated(text, "HAS_MEASUREMENT") == ["11 ℃" if "甲醇" in text else "11 °C"]


@pytest.mark.parametrize("value", ["无", "无资料", "不含催化剂", "none", "not applicable"])
def test_a_denied_value_gives_nothing(added: Path, value: str) -> None:
    assert stated(f"# 甲醇\n\nCAS号：67-56-1\n\n所用催化剂：{value}\n", "MADE_WITH") == []


def test_without_the_file_nothing_of_it_is_known(added: Path) -> None:
    extension.use(None)
    assert "MADE_WITH" not in {relation.value for relation in Relation}
    assert "Catalyst" not in {label.value for label in NodeLabel}
    assert stated(ZH, "MADE_WITH") == stated(ZH, "HAS_MEASUREMENT") == []


def test_the_model_may_state_what_was_added_and_nothing_else(added: Path) -> None:
    made = document(ZH, title="甲醇")
    given = ExtractionGiven(made, 0, len(made.text), Subject("甲醇", ("甲醇",), "67-56-1"))
    right = to_draft(
        given, ExtractedAssertion(relation="MADE_WITH", object="氧化铜", quote="所用催化剂：氧化铜")
    )
    assert isinstance(right, Draft)
    assert right.object_label == NodeLabel("Catalyst")
    assert judge(right, made)[0] is None
    absent = to_draft(
        given, ExtractedAssertion(relation="MADE_WITH", object="铂", quote="所用催化剂：氧化铜")
    )
    assert isinstance(absent, Draft)
    assert judge(absent, made)[0] is DropReason.OBJECT_NOT_IN_QUOTE
    for name in ("HAS_CATALYST", "MADE_WITH` {x:1}) DETACH DELETE n //", ""):
        item = ExtractedAssertion(relation=name, object="氧化铜", quote="所用催化剂：氧化铜")
        assert to_draft(given, item) is DropReason.NOT_IN_SCHEMA
    system = ExtractAssertions().messages(given)[0].content
    assert "MADE_WITH (所用催化剂)" in system
    assert "cubic_expansion" in system
    assert "MADE_WITH" in str(schema_of(ExtractedAssertions))


def test_from_the_page_into_the_graph_s_rows(added: Path, tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with catalogue.writing() as session:
        session.add(row(document(ZH, title="甲醇")))
    ctx = StageContext(catalogue, "r")
    for step in extraction_steps(ExtractionSettings(reference=False), Models.offline()):
        run_step(step, ctx)
    with catalogue.reading() as session:
        rows = list(
            session.scalars(
                select(Assertion).where(Assertion.state == "kept", Assertion.relation == "MADE_WITH")
            )
        )
        assert [r.object_label for r in rows] == ["Catalyst", "Catalyst"]
        found, skipped = statements(rows, entities_by_key(session, [r.subject_key for r in rows]))
    assert not skipped
    assert {statement.edge[0] for statement in found} == {Relation("MADE_WITH")}
    assert queries.merge_nodes(NodeLabel("Catalyst")).count("`Catalyst`") == 1
    assert "`MADE_WITH`" in queries.merge_links(
        Relation("MADE_WITH"), NodeLabel.SUBSTANCE, NodeLabel("Catalyst")
    )
    catalogue.close()


def test_the_file_is_part_of_the_step_s_fingerprint(added: Path, tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with catalogue.writing() as session:
        session.add(row(document(ZH, title="甲醇")))
    extract_step = extraction_steps(ExtractionSettings(), Models.offline())[0]
    ctx = StageContext(catalogue, "r")
    before = [item.fingerprint for item in extract_step.plan(ctx)]
    extension.use(None)
    assert [item.fingerprint for item in extract_step.plan(ctx)] != before
    catalogue.close()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[nodes.catalyst]\nzh='x'\nen='x'\n", "is no name"),
        ("[nodes.Substance]\nzh='x'\nen='x'\n", "part of the vocabulary already"),
        ("[nodes.Catalyst]\nzh='x'\nen='x'\n", "no relation leads to it"),
        ("[nodes.\"A`) DETACH\"]\nzh='x'\nen='x'\n", "is no name"),
        ("[relations.MADE_OF]\nobjects=['Nothing']\nzh='x'\nen='x'\n", "object 'Nothing' is none of"),
        ("[relations.MADE_OF]\nobjects=['Substance']\nsubjects=['Document']\nzh='x'\nen='x'\n", "subject 'Document' is none of"),
        ("[relations.MADE_OF]\nobjects=['Substance']\nzh='x'\n", "[relations.MADE_OF.en] Field required"),
        ("[relations.MADE_OF]\nobjects=['Substance']\nzh='x'\nen='x'\nlabels=['闪点']\n", "means flash_point already"),
        ("[relations.HAS_H]\nobjects=['Substance']\nzh='x'\nen='x'\n", "part of the vocabulary already"),
        ("[relations.made_of]\nobjects=['Substance']\nzh='x'\nen='x'\n", "is no name"),
        ("[properties.x_y]\nzh='x'\nen='x'\ndimension='bananas'\n", "is no unit"),
        ("[properties.x_y]\nzh='x'\nen='x'\nlow=2\nhigh=1\n", "low is above high"),
        ("[labels.nonsense]\nx=['y']\n", "[labels.nonsense] is none of"),
        ("[labels.measurement]\nx=['y']\n", "'x' is none of"),
        ("[surprise]\n", "[surprise] Extra inputs are not permitted"),
        ("[nodes", "no valid TOML"),
    ],
)  # fmt: skip
def test_faults_are_told_with_their_place_and_change_nothing(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    labels, relations = list(NodeLabel), dict(RELATIONS)
    with pytest.raises(SettingsError, match=r"bad\.toml") as failed:
        extension.use(path)
    assert told in str(failed.value)
    assert list(NodeLabel) == labels
    assert dict(RELATIONS) == relations
    with pytest.raises(ValueError, match=r"bad\.toml"):
        GraphSettings(schema_file=path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        extension.use(tmp_path / "absent.toml")


def test_the_setting_puts_it_in_force(added: Path) -> None:
    extension.use(None)
    GraphSettings(schema_file=added)
    assert Relation("MADE_WITH") in RELATIONS
    assert Property("cubic_expansion").value == "cubic_expansion"

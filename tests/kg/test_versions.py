"""Versions of the data set: one content, one version; tags, rollback, retention; what differs and why."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, Question
from corpus.errors import SettingsError
from kg import versions
from kg.dataset import differences
from tests.kg.test_dataset import filled


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return filled(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "datasets"


def answer_of(catalogue: Catalogue, question_id: str, answer: str, key: str) -> None:
    with catalogue.writing() as session:
        row = session.get_one(Question, question_id)
        row.answer, row.answer_set = answer, [{"key": key, "text": ""}]


def test_the_same_content_is_one_version(catalogue: Catalogue, folder: Path) -> None:
    first, new = versions.take(catalogue, folder, run_id="r1", tag="release-1")
    again, fresh = versions.take(catalogue, folder, run_id="r2")
    assert (new, fresh) == (True, False)
    assert again == first
    assert first.tags == ("current", "release-1")
    assert first.run_id == "r1"
    assert first.rows["qa.jsonl"] == 3
    assert differences(folder / first.id) == []
    assert {path.name for path in folder.iterdir()} == {first.id, "tags.json", ".lock"}
    assert all(path.stat().st_mode & 0o222 == 0 for path in (folder / first.id).iterdir())


def test_current_previous_and_rollback(catalogue: Catalogue, folder: Path) -> None:
    first, _ = versions.take(catalogue, folder)
    answer_of(catalogue, "q001", "否", "no")
    second, _ = versions.take(catalogue, folder)
    assert first.id != second.id
    assert [v.id for v in (versions.find(folder, "current"), versions.find(folder, "previous"))] == [
        second.id,
        first.id,
    ]
    back = versions.point(folder, "previous")
    assert back.id == first.id
    assert back.tags == ("current",)
    assert versions.find(folder, "previous").id == second.id
    assert versions.find(folder, second.id[:6]).id == second.id
    out = folder.parent / "copy"
    versions.copy(folder, "current", out)
    assert differences(out) == []
    assert (out / "qa.jsonl").read_bytes() == (folder / first.id / "qa.jsonl").read_bytes()
    assert os.access(out / "qa.jsonl", os.W_OK)
    with pytest.raises(SettingsError, match="not empty"):
        versions.copy(folder, "current", out)


def test_a_damaged_version_does_not_become_current(catalogue: Catalogue, folder: Path) -> None:
    first, _ = versions.take(catalogue, folder)
    answer_of(catalogue, "q001", "否", "no")
    second, _ = versions.take(catalogue, folder)
    path = folder / first.id / "qa.jsonl"
    path.chmod(0o644)
    path.write_text(path.read_text(encoding="utf-8").replace("是", "否"), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"damaged: qa\.jsonl"):
        versions.point(folder, first.id)
    assert versions.find(folder, "current").id == second.id


def damage(path: Path, keep: int) -> None:
    """Cut a file of a version at the end of a line, so that what is left still reads."""
    path.chmod(0o644)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:keep]), encoding="utf-8")


def test_damage_is_no_difference_gets_no_name_and_is_made_anew(catalogue: Catalogue, folder: Path) -> None:
    first, _ = versions.take(catalogue, folder)
    answer_of(catalogue, "q001", "否", "no")
    second, _ = versions.take(catalogue, folder)
    damage(folder / second.id / "triples.jsonl", 5)
    with pytest.raises(SettingsError, match=r"damaged: triples\.jsonl"):
        versions.diff(folder, first.id, second.id)
    with pytest.raises(SettingsError, match="damaged"):
        versions.tag(folder, "release", second.id)
    again, new = versions.take(catalogue, folder)
    assert (again.id, new) == (second.id, True)
    assert differences(folder / second.id) == []
    assert versions.diff(folder, first.id, second.id).counts() == {"question stale": 1}


@pytest.mark.parametrize("text", ["{", "[]", "{}", "null", '{"id": "", "rows": 1}', None])
def test_one_unreadable_folder_blocks_no_other(catalogue: Catalogue, folder: Path, text: str | None) -> None:
    first, _ = versions.take(catalogue, folder)
    bad = folder / "0123456789abcdef"
    bad.mkdir()
    if text is not None:
        (bad / "version.json").write_text(text)
    assert [version.id for version in versions.versions(folder)] == [first.id]
    assert versions.unreadable(folder) == [bad]
    assert versions.collect(folder, 0) == []
    # what a removal that was killed left of this very version does not stop it from being taken
    (folder / first.id / "version.json").unlink()
    assert versions.take(catalogue, folder) == (versions.find(folder, "current"), True)


@pytest.mark.parametrize("text", ["[]", "null", "{"])
def test_tags_that_cannot_be_read_are_an_error_of_their_file(
    catalogue: Catalogue, folder: Path, text: str
) -> None:
    versions.take(catalogue, folder)
    (folder / "tags.json").write_text(text)
    with pytest.raises(SettingsError, match=r"tags\.json"):
        versions.versions(folder)


def test_tags_given_at_once_are_all_kept(catalogue: Catalogue, folder: Path) -> None:
    versions.take(catalogue, folder)
    names = [f"release-{n}" for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: versions.tag(folder, name, "current"), names))
    assert set(versions.find(folder, "current").tags) == {"current", *names}


def test_a_copy_that_was_stopped_is_no_export(
    catalogue: Catalogue, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions.take(catalogue, folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="file"):
        versions.copy(folder, "current", tmp_path / "file")
    real, copied = versions.shutil.copyfile, []

    def full(source: Path, target: Path) -> object:
        copied.append(source)
        if len(copied) == 4:
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr(versions.shutil, "copyfile", full)
    with pytest.raises(SettingsError, match="No space left"):
        versions.copy(folder, "current", tmp_path / "out")
    with pytest.raises(SettingsError, match="not finished"):
        differences(tmp_path / "out")


def test_names_that_lead_nowhere(catalogue: Catalogue, folder: Path) -> None:
    with pytest.raises(SettingsError, match="none yet"):
        versions.find(folder, "current")
    first, _ = versions.take(catalogue, folder)
    for name in ("nothing", "", first.id[:3], "../x"):
        with pytest.raises(SettingsError, match=first.id):
            versions.find(folder, name)
    for bad in ("current", "previous", "a/b", "..", "", "x" * 65, "deadbeef", "带 空格"):
        with pytest.raises(SettingsError):
            versions.tag(folder, bad, "current")
    assert versions.tag(folder, "发布-1", "current").tags == ("current", "发布-1")
    versions.untag(folder, "发布-1")
    with pytest.raises(SettingsError, match="发布-1"):
        versions.untag(folder, "发布-1")


def test_retention_keeps_what_has_a_name(catalogue: Catalogue, folder: Path) -> None:
    taken = []
    for n in range(5):
        answer_of(catalogue, "q001", str(n), str(n))
        taken.append(versions.take(catalogue, folder, tag="first" if n == 0 else "")[0].id)
    (folder / ".partial-0123").mkdir()  # of a run that was killed
    os.utime(folder / ".partial-0123", (0, 0))
    would = versions.collect(folder, 1, dry_run=True)
    assert [v.id for v in would] == taken[1:2]
    assert len(versions.versions(folder)) == 5
    assert versions.collect(folder, 1) == would
    assert {v.id for v in versions.versions(folder)} == {taken[0], *taken[2:]}
    assert not (folder / ".partial-0123").exists()
    assert {v.id for v in versions.versions(folder) if v.tags} == {taken[0], taken[3], taken[4]}


def test_nothing_differs_from_itself(catalogue: Catalogue, folder: Path) -> None:
    versions.take(catalogue, folder)
    assert versions.diff(folder, "current", "current").changes == []


def test_what_differs_and_why(catalogue: Catalogue, folder: Path) -> None:
    with catalogue.writing() as session:
        facts = session.scalars(
            select(Assertion).where(Assertion.state == "kept").order_by(Assertion.assertion_id)
        ).all()
        documents = sorted({fact.document_id for fact in facts})
        changed = next(
            fact for fact in facts if fact.relation == "HAS_MEASUREMENT" and fact.document_id == documents[0]
        )
        lost = next(fact for fact in facts if fact.document_id == documents[1] and fact.relation == "HAS_H")
        for at, fact in ((1, changed), (2, lost)):
            row = session.get_one(Question, f"q{at:03}")
            row.references = [{**row.references[0], "document_id": fact.document_id}]
            row.triples = [[fact.subject_key, fact.relation, fact.object_key]]
        changed_id, lost_id, said = changed.assertion_id, lost.assertion_id, changed.object
    first, _ = versions.take(catalogue, folder)
    with catalogue.writing() as session:
        fact = session.get_one(Assertion, changed_id)
        fact.object, fact.object_key, fact.value = "999 °C", "measurement:new", {"min": 999}
        session.get_one(Assertion, lost_id).state = "rejected"
        last = session.get_one(Document, documents[-1])
        last.state = "rejected"
        for at in (1, 2):
            session.get_one(Question, f"q{at:03}").state = "rejected"
        session.get_one(Question, "q004").answer_set = [{"key": "no", "text": ""}]
    second, _ = versions.take(catalogue, folder)

    found = versions.diff(folder, "previous", "current")
    assert (found.old, found.new) == (first.id, second.id)
    by = {(change.what, change.how, change.id): change for change in found.changes}
    value = by["fact", "changed", changed_id]
    assert (value.before, value.after) == (said, "999 °C")
    assert ("fact", "retired", lost_id) in by
    assert ("document", "retired", documents[-1]) in by
    counts = found.counts()
    assert counts["fact changed"] == 1
    assert counts["document retired"] == 1
    whole = {fact.assertion_id for fact in facts if fact.document_id == documents[-1]}
    gone = {key for what, how, key in by if (what, how) == ("fact", "retired")}
    assert gone >= {lost_id}
    assert gone - {lost_id} <= whole, "facts of the other documents stay"
    assert by["question", "stale", "q001"].why == "fact retired"
    assert by["question", "stale", "q002"].why == "fact retired"
    assert by["question", "stale", "q004"].why == "answer"
    # and the other way round what was retired is added
    back = versions.diff(folder, "current", "previous").counts()
    assert back["fact added"] == counts["fact retired"]
    assert back["document added"] == 1
    json.dumps(found.as_dict(), ensure_ascii=False)
    assert len(found.changes) == len(by)


def test_text_that_moves_changes_no_fact(catalogue: Catalogue, folder: Path) -> None:
    """A page with a new line at its head: other version, other spans, the same facts."""
    versions.take(catalogue, folder)
    with catalogue.writing() as session:
        document = session.scalars(select(Document).order_by(Document.document_id)).first()
        assert document is not None
        document.text, document.version_id = "更新\n" + document.text, "moved"
        for fact in session.scalars(select(Assertion).where(Assertion.document_id == document.document_id)):
            fact.version_id, fact.start, fact.end = "moved", fact.start + 3, fact.end + 3
    versions.take(catalogue, folder)
    assert versions.diff(folder, "previous", "current").counts() == {"document changed": 1}


def test_a_folder_that_cannot_be_written(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError):
        versions.take(catalogue, tmp_path / "file" / "datasets")

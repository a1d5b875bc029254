"""What people decide on the review page is honoured by the next run, and by every later one, until it is undone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from corpus import reviews
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Assertion,
    Chemical,
    ChemicalName,
    Document,
    Entity,
    EntityDecision,
    LedgerRow,
    Question,
    ReviewDecision,
    now,
)
from corpus.curating import decided as documents
from corpus.errors import SettingsError
from corpus.ids import digest
from corpus.names import normalise_name
from corpus.settings import CorpusSettings, QualitySettings
from corpus.stage import curate_stage
from corpus.stages import Stage, StageContext, pending, run_step
from flows.review import history, naming, queues
from kg import decided
from kg.conflicts import Finding, find
from kg.decided import DroppedQuestionsStep, OverruleStep, conflict_key, settled, sides_of, stale_questions
from kg.decisions import review_rows
from kg.settings import ExtractionSettings
from kg.steps import extraction_steps
from models import Models
from tests.corpus.archived_pages import Sent, archive, pending_counts, run_stage
from tests.corpus.test_curate_stage import SITE, html, sheet_page, site
from tests.kg import sheets

WHO = {"why": "看过原文 seen the page", "by": "Zhang"}
LOST = html(
    "<h1>异丙醇</h1><p>CAS 67-63-0 的说明见下。</p>"
    + "<p>异丙醇闪点 12 ℃，易燃，远离热源，储存于阴凉处。</p>" * 12,
    "异丙醇",
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """Two data folders made once: ``curated`` by a threshold that good pages miss, ``resolved`` with made-up sheets."""
    folder = tmp_path_factory.mktemp("prepared")
    for name in ("curated", "resolved"):
        (folder / name).mkdir()
        shutil.copy(template, folder / name / "c.db")
        made = Catalogue.open(f"sqlite:///{folder / name}/c.db")
        if name == "curated":
            archive(made, folder / name, [Sent(f"{SITE}lost.html", LOST), *site()])
            stage = strict(folder / name)
            run_stage(stage, made)
            stage.close()
        else:
            sheets.fill(made)
            run_graph(made)
        with made.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        made.close()
    return folder


def strict(folder: Path) -> Stage:
    return curate_stage(CorpusSettings(quality=QualitySettings(threshold=4.9)), Models.offline(), folder)


def opened(prepared: Path, name: str, folder: Path) -> Catalogue:
    shutil.copytree(prepared / name, folder, dirs_exist_ok=True)
    return Catalogue.open(f"sqlite:///{folder}/c.db")


@pytest.fixture
def catalogue(tmp_path: Path, prepared: Path) -> Iterator[Catalogue]:
    made = opened(prepared, "curated", tmp_path)
    yield made
    made.close()


# --- documents ------------------------------------------------------------------------------


@pytest.fixture
def curated(catalogue: Catalogue, tmp_path: Path) -> Iterator[Stage]:
    made = strict(tmp_path)
    yield made
    made.close()


def row(catalogue: Catalogue, name: str) -> Document:
    with catalogue.reading() as session:
        return session.scalars(select(Document).where(Document.url.endswith(f"/{name}"))).one()


def decide(catalogue: Catalogue, name: str, choice: str) -> str:
    with catalogue.writing() as session:
        last = reviews.latest(session, "documents", row(catalogue, name).document_id)
        seen = last.decision_id if last else ""
        return documents.decide(
            session, row(catalogue, name).document_id, choice, **WHO, seen=seen
        ).decision_id


def undo(catalogue: Catalogue, decision: str) -> str:
    with catalogue.writing() as session:
        return history.undo(session, decision, **WHO)


def quarantined(catalogue: Catalogue) -> set[str]:
    with catalogue.reading() as session:
        listed = queues.documents(session, queues.Wanted()).rows
        return {session.get_one(Document, entry.id).url.rsplit("/", 1)[1] for entry in listed}


def quiet(stage: Stage, catalogue: Catalogue) -> bool:
    return not any(pending_counts(stage, catalogue).values())


def test_an_accepted_document_passes_the_threshold_with_its_score_until_that_is_undone(
    catalogue: Catalogue, curated: Stage
) -> None:
    before = row(catalogue, "methanol.html")
    assert (before.state, before.reason) == ("rejected", "low_score")
    assert "methanol.html" in quarantined(catalogue)
    made = decide(catalogue, "methanol.html", "accept")
    assert "methanol.html" not in quarantined(catalogue)
    assert row(catalogue, "methanol.html").state == "rejected"  # nothing but the record so far
    assert queues.to_apply(catalogue) == ["curate"]

    run_stage(curated, catalogue)
    after = row(catalogue, "methanol.html")
    assert after.state in ("kept", "duplicate")
    assert "闪点 11 ℃" in after.text
    assert (after.score, after.flags) == (before.score, ["accepted"])
    assert row(catalogue, "ethanol.html").state == "rejected"  # another one's decision is not its own
    assert quiet(curated, catalogue)
    assert queues.to_apply(catalogue) == []
    run_stage(curated, catalogue, force=True)  # kept by a run that does all anew
    assert row(catalogue, "methanol.html").text == after.text
    assert quiet(curated, catalogue)

    undo(catalogue, made)
    assert queues.to_apply(catalogue) == ["curate"]
    run_stage(curated, catalogue)
    back = row(catalogue, "methanol.html")
    assert (back.state, back.reason, back.text, back.flags) == ("rejected", "low_score", "", [])
    assert "methanol.html" in quarantined(catalogue)
    assert quiet(curated, catalogue)


def test_a_document_that_the_cleaner_stopped_goes_on_when_it_is_accepted(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    stage = curate_stage(CorpusSettings(quality=QualitySettings(threshold=1.0)), Models.offline(), tmp_path)
    run_stage(stage, catalogue)
    with catalogue.writing() as session:  # as the cleaner's guard leaves a page
        found = session.scalars(select(Document).where(Document.url.endswith("/lost.html"))).one()
        found.state, found.reason, found.detail, found.cleaned_hash = (
            "review",
            "cleaning_guard",
            "CAS lost",
            "",
        )
        session.delete(session.get_one(LedgerRow, ("curate.score", found.document_id)))
    decide(catalogue, "lost.html", "accept")
    run_stage(stage, catalogue)
    after = row(catalogue, "lost.html")
    assert (after.state, after.reason) == ("kept", "")
    assert "67-63-0" in after.text
    stage.close()


def test_a_rejected_document_stays_out_whatever_the_rules_say_until_its_text_changes(
    catalogue: Catalogue, curated: Stage, tmp_path: Path
) -> None:
    decide(catalogue, "benzene.html", "reject")
    run_stage(curated, catalogue)
    assert (row(catalogue, "benzene.html").state, row(catalogue, "benzene.html").reason) == (
        "rejected",
        "person",
    )
    assert row(catalogue, "benzene.html").detail == WHO["why"]
    lax = curate_stage(CorpusSettings(quality=QualitySettings(threshold=1.0)), Models.offline(), tmp_path)
    for force in (False, True):
        run_stage(lax, catalogue, force=force)
        assert row(catalogue, "methanol.html").state == "kept"
        assert row(catalogue, "benzene.html").reason == "person"
    assert quiet(lax, catalogue)

    archive(catalogue, tmp_path, [Sent(f"{SITE}benzene.html", sheet_page("苯", "71-43-2", 12))], name="new")
    run_stage(lax, catalogue)
    assert row(catalogue, "benzene.html").state == "kept"
    with catalogue.reading() as session:
        assert session.scalars(select(ReviewDecision.state)).all() == ["lapsed"]
    assert quiet(lax, catalogue)
    lax.close()


def test_an_accepted_document_whose_text_changes_is_reviewed_anew(
    catalogue: Catalogue, curated: Stage, tmp_path: Path
) -> None:
    decide(catalogue, "methanol.html", "accept")
    run_stage(curated, catalogue)
    archive(
        catalogue, tmp_path, [Sent(f"{SITE}methanol.html", sheet_page("甲醇", "67-56-1", 99))], name="new"
    )
    run_stage(curated, catalogue)
    after = row(catalogue, "methanol.html")
    assert (after.state, after.reason, after.flags, after.text) == ("rejected", "low_score", [], "")
    assert "methanol.html" in quarantined(catalogue)


def test_a_failed_document_is_tried_again_once(catalogue: Catalogue, curated: Stage) -> None:
    assert row(catalogue, "broken.pdf").state == "failed"
    assert quiet(curated, catalogue)
    with pytest.raises(SettingsError, match="cannot be decided"):
        decide(catalogue, "broken.pdf", "accept")
    decide(catalogue, "broken.pdf", "retry")
    assert "broken.pdf" not in quarantined(catalogue)
    assert pending_counts(curated, catalogue)["clean"] == 1
    run_stage(curated, catalogue)
    assert row(catalogue, "broken.pdf").state == "failed"  # it is broken still
    assert "broken.pdf" in quarantined(catalogue)
    assert quiet(curated, catalogue)
    decide(catalogue, "broken.pdf", "reject")
    run_stage(curated, catalogue)
    assert row(catalogue, "broken.pdf").reason == "person"
    assert quiet(curated, catalogue)


def test_of_two_people_the_second_is_told_who_was_first(catalogue: Catalogue, curated: Stage) -> None:
    document = row(catalogue, "methanol.html").document_id
    with catalogue.writing() as session:
        documents.decide(session, document, "accept", **WHO)
    with (
        pytest.raises(reviews.DecidedError, match=r"Zhang decided this meanwhile \(accept\)"),
        catalogue.writing() as session,
    ):
        documents.decide(session, document, "reject", why="no", by="Li")
    with catalogue.writing() as session:  # who has seen the first may replace it
        seen = reviews.standing(session, "documents")[0].decision_id
        documents.decide(session, document, "reject", why="no", by="Li", seen=seen)
    with catalogue.reading() as session:
        found = {(r.choice, r.state) for r in session.scalars(select(ReviewDecision))}
    assert found == {("accept", "replaced"), ("reject", "standing")}
    run_stage(curated, catalogue)
    assert row(catalogue, "methanol.html").reason == "person"


def test_a_decision_needs_a_reason_and_a_name(catalogue: Catalogue) -> None:
    document = row(catalogue, "methanol.html").document_id
    for why, by in (("", "Zhang"), ("  \n", "Zhang"), ("ok", ""), ("ok", "rules"), ("\ud800", "Zhang")):
        with pytest.raises(SettingsError), catalogue.writing() as session:
            documents.decide(session, document, "accept", why=why, by=by)
    with catalogue.reading() as session:
        assert session.scalars(select(ReviewDecision)).all() == []


# --- values that disagree --------------------------------------------------------------------


@pytest.fixture
def resolved(tmp_path: Path, prepared: Path) -> Iterator[Catalogue]:
    made = opened(prepared, "resolved", tmp_path)
    yield made
    made.close()


def run_graph(catalogue: Catalogue, *, force: bool = False) -> dict[str, dict[str, int]]:
    """The stage ``graph`` before the graph itself, in the order of ``kg.stage``."""
    ctx = StageContext(catalogue, "r", force=force)
    *reading, resolve = extraction_steps(ExtractionSettings(reference=True), Models.offline())
    return {step.name: dict(run_step(step, ctx).counts) for step in (*reading, OverruleStep(), resolve)}


def findings(catalogue: Catalogue) -> dict[str, Finding]:
    with catalogue.reading() as session:
        return {conflict_key(found): found for found in find(session, ExtractionSettings())}


def values(catalogue: Catalogue, subject: str, prop: str) -> set[str]:
    with catalogue.reading() as session:
        rows = session.scalars(
            select(Assertion).where(Assertion.subject_key == subject, Assertion.state == "kept")
        )
        return {f"{r.object}" for r in rows if r.properties.get("property") == prop}


def a_conflict(catalogue: Catalogue) -> tuple[str, Finding]:
    """甲号油 made one with methanol: its flash point of 31 °C stands against 11 and 12 °C."""
    from kg import decisions

    with catalogue.writing() as session:
        decisions.merge(session, "甲号油", "67-56-1", "made up", "Zhang")
    run_graph(catalogue)
    found = {
        k: f for k, f in findings(catalogue).items() if f.what == "flash_point" and f.subject == "67-56-1"
    }
    assert found
    key = sorted(found)[0]
    return key, found[key]


def test_a_value_that_a_person_overruled_leaves_the_graph_and_comes_back_with_the_undo(
    resolved: Catalogue,
) -> None:
    key, finding = a_conflict(resolved)
    sides = sides_of(finding)
    before = values(resolved, "67-56-1", "flash_point")
    assert {sides["left"].shown, sides["right"].shown} <= before
    with resolved.writing() as session:
        made = decided.decide_conflict(session, finding, "left", **WHO).decision_id
    assert values(resolved, "67-56-1", "flash_point") == before
    assert run_graph(resolved)["graph.overrule"]["overruled"] >= 1
    after = values(resolved, "67-56-1", "flash_point")
    assert sides["left"].shown in after
    assert sides["right"].shown not in after
    assert key not in findings(resolved)
    with resolved.reading() as session:
        reasons = set(session.scalars(select(Assertion.reason).where(Assertion.state == "rejected")))
        assert "overruled" in reasons
    assert run_graph(resolved)["graph.overrule"] == {}  # settled
    run_graph(resolved, force=True)  # read anew, and overruled anew
    assert values(resolved, "67-56-1", "flash_point") == after

    undo(resolved, made)
    run_graph(resolved)
    assert values(resolved, "67-56-1", "flash_point") == before
    assert key in findings(resolved)
    assert run_graph(resolved)["graph.overrule"] == {}


def test_a_decision_that_overrules_what_another_lets_stand_is_told_before_it_is_recorded(
    resolved: Catalogue,
) -> None:
    from tests.flows.review.test_guard import Visitor

    a_conflict(resolved)
    pairs = [f for f in findings(resolved).values() if f.what == "flash_point" and f.subject == "67-56-1"]
    assert len(pairs) > 1
    first, second, shared = next(
        (a, b, x.shown)
        for a in pairs for b in pairs if a is not b
        for x in sides_of(a).values() if x.shown in {y.shown for y in sides_of(b).values()}
    )  # fmt: skip

    def choice(finding: Finding, *, stands: bool) -> str:
        side = next(name for name, one in sides_of(finding).items() if one.shown == shared)
        return side if stands else {"left": "right", "right": "left"}[side]

    with resolved.writing() as session:
        made = decided.decide_conflict(session, first, choice(first, stands=True), **WHO).decision_id
    against = choice(second, stands=False)
    with resolved.reading() as session:
        assert [row.decision_id for row in decided.contradicted(session, second, against)] == [made]
        assert decided.contradicted(session, second, choice(second, stands=True)) == []
        assert decided.contradicted(session, second, "both") == []
        assert [row.decision_id for row in decided.contradicted(session, second, "none")] == [made]
    with resolved.writing() as session, pytest.raises(decided.ContradictionError, match="contradicts"):
        decided.decide_conflict(session, second, against, **WHO)

    visitor, page = Visitor(resolved), f"/conflicts/{conflict_key(second)}"
    answer = visitor.post(page, visitor.form(page, choice=against))
    assert answer.status_code == 409
    assert f"/history/{made}" in answer.text
    with resolved.reading() as session:
        assert len(reviews.standing(session, "conflicts")) == 1  # nothing recorded
    answer = visitor.post(page, visitor.form(page, choice=against, although=made))
    assert answer.status_code == 303
    with resolved.reading() as session:
        rows = {row.item_id: row for row in reviews.standing(session, "conflicts")}
    assert rows[conflict_key(second)].detail["although"] == [made]


def test_a_disagreement_is_told_in_the_language_of_the_visitor(resolved: Catalogue) -> None:
    from tests.flows.review.test_guard import Visitor

    key, finding = a_conflict(resolved)
    visitor = Visitor(resolved)
    for path in ("/conflicts", f"/conflicts/{key}"):
        chinese, english = visitor.get(f"{path}?lang=zh").text, visitor.get(f"{path}?lang=en").text
        assert "闪点" in chinese
        assert naming.difference(finding, "zh") in chinese
        own = re.sub(r"(?s)<blockquote.*?</blockquote>", "", chinese)  # quotes are in their page's language
        assert not re.search(r" apart|>[^<]*flash point|HAS_MEASUREMENT", own)
        assert "flash point" in english
        assert finding.said in english
    assert f"/conflicts/{key}" not in visitor.get("/conflicts?q=%E6%B2%B8%E7%82%B9x&lang=zh").text
    for words in ("闪点", "flash+point"):
        assert f"/conflicts/{key}" in visitor.get(f"/conflicts?q={words}&lang=zh").text


def test_neither_and_both(resolved: Catalogue) -> None:
    key, finding = a_conflict(resolved)
    sides = sides_of(finding)
    with resolved.writing() as session:
        first = decided.decide_conflict(session, finding, "both", **WHO)
        assert settled(session, finding, first)
        seen = first.decision_id
    before = values(resolved, "67-56-1", "flash_point")
    run_graph(resolved)
    assert values(resolved, "67-56-1", "flash_point") == before
    with pytest.raises(reviews.DecidedError), resolved.writing() as session:
        decided.decide_conflict(session, finding, "none", **WHO)
    with resolved.writing() as session:
        decided.decide_conflict(session, finding, "none", **WHO, seen=seen)
    run_graph(resolved)
    left = values(resolved, "67-56-1", "flash_point")
    assert not {sides["left"].shown, sides["right"].shown} & left
    assert key not in findings(resolved)


def test_a_further_document_with_the_overruled_value_opens_the_disagreement_again(
    resolved: Catalogue,
) -> None:
    key, finding = a_conflict(resolved)
    with resolved.writing() as session:
        row = decided.decide_conflict(session, finding, "left", **WHO)
        assert settled(session, finding, row)
    losing = sides_of(finding)["right"]
    with resolved.writing() as session:
        first = session.get_one(Assertion, losing.assertion)
        copied = {c.key: getattr(first, c.key) for c in Assertion.__mapper__.column_attrs}
        place = session.get_one(Document, first.document_id)
        document = {c.key: getattr(place, c.key) for c in Document.__mapper__.column_attrs}
        session.add(Document(**{**document, "document_id": "other"}))
        session.add(Assertion(**{**copied, "assertion_id": "other", "document_id": "other"}))
    again = findings(resolved)[key]  # by the values, whoever states them
    with resolved.reading() as session:
        assert not settled(session, again, reviews.standing(session, "conflicts")[0])


# --- questions ------------------------------------------------------------------------------------


def asked(catalogue: Catalogue) -> list[str]:
    """Three questions on what the documents state."""
    with catalogue.writing() as session:
        rows = session.scalars(
            select(Assertion)
            .where(
                Assertion.state == "kept",
                Assertion.object_label == "Measurement",
                Assertion.extractor == "offline",
            )
            .order_by(Assertion.document_id, Assertion.assertion_id)
        ).all()
        chosen = {r.document_id: r for r in rows}
        for r in list(chosen.values())[:3]:
            session.add(Question(
                question_id=digest("q", r.assertion_id), kind="single_hop", language="zh", question=f"{r.subject}？", answer=r.object,
                triples=[[r.subject_key, r.relation, r.object_key]], state="kept",
                references=[{"document_id": r.document_id, "version_id": r.version_id, "start": r.start, "end": r.end, "quote": r.quote, "url": ""}],
            ))  # fmt: skip
        return [digest("q", r.assertion_id) for r in list(chosen.values())[:3]]


def test_questions_are_stale_when_document_version_or_fact_went(resolved: Catalogue) -> None:
    gone, changed, unstated = asked(resolved)
    with resolved.reading() as session:
        assert list(stale_questions(session)) == []
    with resolved.writing() as session:
        places = {q.question_id: q for q in session.scalars(select(Question))}
        session.get_one(Document, places[gone].references[0]["document_id"]).state = "rejected"
        document = session.get_one(Document, places[changed].references[0]["document_id"])
        document.version_id = "another"
        for r in session.scalars(select(Assertion).where(Assertion.document_id == document.document_id)):
            r.version_id = "another"
        subject, _, thing = places[unstated].triples[0]
        for r in session.scalars(
            select(Assertion).where(Assertion.subject_key == subject, Assertion.object_key == thing)
        ):
            r.state = "rejected"
    with resolved.reading() as session:
        found = {one.question_id: {reason for reason, _ in one.problems} for one in stale_questions(session)}
    assert found == {
        gone: {"document_gone", "fact_gone"},
        changed: {"document_changed"},
        unstated: {"fact_gone"},
    }


def test_a_dropped_question_is_not_kept_by_any_later_run(resolved: Catalogue) -> None:
    first, second, _ = asked(resolved)
    with resolved.writing() as session:
        session.add(
            LedgerRow(
                step="questions.generate", item_id="questions", fingerprint="f", state="kept", run_id="r"
            )
        )
        made = decided.decide_question(session, first, "drop", **WHO).decision_id
    run_questions(resolved)
    assert states(resolved)[first] == ("rejected", "person")
    assert states(resolved)[second] == ("kept", "")
    with resolved.writing() as session:  # a run makes all of them anew
        session.merge(
            LedgerRow(
                step="questions.generate",
                item_id="questions",
                fingerprint="g",
                state="kept",
                run_id="r",
                updated_at=now(),
            )
        )
        session.get_one(Question, first).state = "kept"
        session.get_one(Question, first).reason = ""
    run_questions(resolved)
    assert states(resolved)[first] == ("rejected", "person")
    undo(resolved, made)
    run_questions(resolved)
    assert states(resolved)[first] == ("kept", "")
    assert pending(DroppedQuestionsStep(), StageContext(resolved, "r")) == []


def run_questions(catalogue: Catalogue) -> None:
    run_step(DroppedQuestionsStep(), StageContext(catalogue, "r"))


def states(catalogue: Catalogue) -> dict[str, tuple[str, str]]:
    with catalogue.reading() as session:
        return {q.question_id: (q.state, q.reason) for q in session.scalars(select(Question))}


def test_making_anew_leaves_the_questions_to_be_done(resolved: Catalogue) -> None:
    first, *_ = asked(resolved)
    with resolved.writing() as session:
        session.add(
            LedgerRow(
                step="questions.generate", item_id="questions", fingerprint="f", state="kept", run_id="r"
            )
        )
        decided.decide_question(session, first, "remake", **WHO)
    with resolved.reading() as session:
        assert session.get_one(LedgerRow, ("questions.generate", "questions")).fingerprint == ""
    assert queues.to_apply(resolved) == ["questions"]


# --- solutions ---------------------------------------------------------------------------------------


def test_a_solution_is_kept_apart_linked_by_the_next_run_and_undone(resolved: Catalogue) -> None:
    with resolved.writing() as session:
        session.add(Chemical(key="67-56-1", cas="67-56-1", un_numbers=[], hazards=[]))
        left = {"key": "67-56-1", "name": "甲醇", "document": ""}
        oil = session.scalars(select(Entity).where(Entity.names["zh"].as_string() == "甲号油")).one()
        right = {"key": oil.key, "name": "甲号油", "document": ""}
        session.add(EntityDecision(decision_id="case", kind="review", left_key="甲醇", right_key="甲号油", rule="alias",
                                   why="made up", decided_by="rules", detail={"left": left, "right": right}))  # fmt: skip
    with resolved.writing() as session:
        made = decided.decide_solution(session, "case", **WHO).decision_id
        assert [r.decision_id for r in review_rows(session)].count("case") == 0
        assert session.scalars(
            select(ChemicalName.kind).where(ChemicalName.normalised == normalise_name("甲号油"))
        ).all() == ["solution"]
    assert queues.to_apply(resolved) == ["graph"]
    run_graph(resolved)
    assert links(resolved) == {("67-56-1", "solution_of")}
    undo(resolved, made)
    with resolved.reading() as session:
        assert (
            session.scalars(
                select(ChemicalName).where(ChemicalName.normalised == normalise_name("甲号油"))
            ).all()
            == []
        )
        assert {line.state for line in history.lines(session, queues.Wanted())[0]} == {"undone", "done"}
    run_graph(resolved)
    assert links(resolved) == set()


def links(catalogue: Catalogue) -> set[tuple[str, str]]:
    with catalogue.reading() as session:
        rows = session.scalars(select(EntityDecision).where(EntityDecision.kind == "link"))
        return {(key, r.rule) for r in rows for key in (r.left_key, r.right_key) if key == "67-56-1"}


def test_a_solution_of_what_the_repository_does_not_know_is_refused(resolved: Catalogue) -> None:
    with resolved.reading() as session:
        case = review_rows(session)[0]  # 二氯乙烷 of two pages
    with pytest.raises(SettingsError, match="name repository"), resolved.writing() as session:
        decided.decide_solution(session, case.decision_id, **WHO)
    with resolved.reading() as session:
        assert session.scalars(select(EntityDecision).where(EntityDecision.decided_by != "rules")).all() == []

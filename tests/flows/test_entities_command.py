"""``hchem entities`` and ``hchem conflicts``: decisions on record, in effect with the next run, and taken back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner, Result

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, Entity
from corpus.errors import SettingsError
from flows.commands import conflicts, entities
from kg.conflicts import find
from kg.decided import decide_conflict
from kg.settings import ExtractionSettings
from tests.kg import sheets

WHY = ["--why", "made-up reason 试验", "--by", "Zhang"]


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue whose pages are read and resolved."""
    path = tmp_path_factory.mktemp("resolved") / "catalogue.db"
    made = Catalogue.open(f"sqlite:///{path}")
    sheets.fill(made)
    sheets.run(made, reference=True)
    made.close()
    return path


@pytest.fixture
def catalogue(tmp_path: Path, resolved: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    path = tmp_path / "data" / "catalogue.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(resolved)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(path.parent))
    monkeypatch.chdir(tmp_path)
    made = Catalogue.open(f"sqlite:///{path}")
    yield made
    made.close()


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(entities.app, list(arguments), input=text)


def ok(*arguments: str, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def data(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def refused(*arguments: str) -> str:
    error = run(*arguments).exception
    assert isinstance(error, SettingsError), error
    return str(error)


def keys(catalogue: Catalogue) -> dict[str, str]:
    """Title of a page → key of its substance."""
    with catalogue.reading() as session:
        rows = session.execute(
            select(Document.title, Assertion.subject_key)
            .join(Assertion, Assertion.document_id == Document.document_id)
            .where(Assertion.state == "kept", Document.kind != "reference")
        )
        return {row.title: row.subject_key for row in rows}


def again(catalogue: Catalogue, **options: Any) -> dict[str, str]:
    sheets.run(catalogue, reference=True, **options)
    return keys(catalogue)


def test_a_merge_takes_effect_with_the_next_run_survives_it_and_can_be_undone_and_redone(
    catalogue: Catalogue,
) -> None:
    before = keys(catalogue)
    assert before["甲号油"] != before["甲醇"] == before["木醇"] == "67-56-1"
    said = ok("merge", "甲号油", "甲醇", *WHY, "--dry-run")
    assert said == "dry run, nothing recorded: 甲号油 and 甲醇 (67-56-1) are one substance\n"
    assert "nobody has decided anything" in ok("history")
    said = ok("merge", "甲号油", "67-56-1", *WHY)
    assert "takes effect with the next `hchem run graph`" in said
    assert keys(catalogue) == before  # nothing but the record so far
    assert "decisions are waiting" in ok("list")
    assert again(catalogue) == {**before, "甲号油": "67-56-1"}
    assert "decisions are waiting" not in ok("list")
    assert sheets.run(catalogue, reference=True)["graph.resolve"] == {}  # settled
    assert again(catalogue, force=True)["甲号油"] == "67-56-1"  # and kept by a run that does all anew
    assert {alias["text"] for alias in data("show", "甲号油")["aliases"]} >= {"甲号油", "甲醇", "木醇"}

    assert "is taken back" in ok("split", "67-56-1", "甲号油", *WHY)
    assert again(catalogue) == before
    first, second = data("history")["decisions"]
    assert (first["kind"], first["stands"], first["taken_back_by"]) == ("merge", False, second["id"])
    assert (second["kind"], second["undoes"], second["by"]) == ("undo", first["id"], "Zhang")
    assert second["why"] == "made-up reason 试验"
    assert first["at"] < second["at"]

    ok("undo", second["id"][:8], *WHY)  # an undo is undone: the merge is back
    assert again(catalogue)["甲号油"] == "67-56-1"
    third = data("history", "甲号油")["decisions"][-1]
    assert [row["stands"] for row in data("history")["decisions"]] == [True, False, True]
    ok("undo", third["id"], *WHY)
    assert again(catalogue) == before
    assert "taken back by" in ok("history")
    assert "nobody has decided anything on 乙醇" in ok("history", "乙醇")


def test_decisions_survive_a_catalogue_whose_entities_are_rebuilt(catalogue: Catalogue) -> None:
    ok("merge", "甲号油", "甲醇", *WHY)
    again(catalogue)
    with catalogue.writing() as session:
        gone = select(Document.document_id).where(Document.title == "甲号油")
        session.execute(update(Document).where(Document.document_id.in_(gone)).values(state="rejected"))
    again(catalogue)  # the page goes …
    (row,) = data("history")["decisions"]
    assert "no document speaks of 甲号油" in row["problem"]
    (case,) = [c for c in data("review") if c["about"]]
    assert case["about"] == row["id"]
    assert f"decision {row['id'][:12]} speaks of it, but no document does" in refused("show", "甲号油")
    with catalogue.writing() as session:
        session.execute(update(Document).where(Document.title == "甲号油").values(state="kept"))
    assert again(catalogue)["甲号油"] == "67-56-1"  # … and comes back
    assert data("history")["decisions"][0]["problem"] == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("merge", "甲醇", "甲醇"), "cannot be merged with itself"),
        (("merge", "甲醇", "木醇"), "one entity already (67-56-1)"),
        (("merge", "甲醇", "乙醇"), "their CAS numbers differ (67-56-1 and 64-17-5)"),
        (("merge", "1,1-假想烷", "1,2-假想烷"), "locants of the names '1,1-假想烷' and '1,2-假想烷' differs"),
        (("merge", "无此物", "甲醇"), "no entity is known as '无此物'"),
        (("merge", "二氯乙烷", "甲醇"), "'二氯乙烷' may be any of 2 entities; give the key of one: name:"),
        (("split", "甲醇", "乙醇"), "'乙醇' is not a name under which documents speak of"),
        (("split", "甲号油", "甲号油"), "'甲号油' is the only name of name:"),
        (("undo", "abcdef"), "no decision has an id that begins with 'abcdef'"),
        (("undo", ""), "give the id of a decision or its beginning"),
    ],
)
def test_what_cannot_be_decided_is_refused_with_the_reason(
    catalogue: Catalogue, arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused(*arguments, *WHY)
    assert data("history")["decisions"] == []


def test_a_reason_is_needed(catalogue: Catalogue) -> None:
    assert "say why" in refused("merge", "甲号油", "甲醇", "--why", "  ", "--by", "x")
    assert run("merge", "甲号油", "甲醇").exit_code == 2
    assert "say who" in refused("merge", "甲号油", "甲醇", "--why", "x", "--by", "rules")


def test_decisions_that_contradict_each_other_are_refused(catalogue: Catalogue) -> None:
    oil = keys(catalogue)["甲号油"]
    ok("merge", "甲号油", "甲醇", *WHY)
    assert "makes them one already" in refused("merge", "甲号油", "甲醇", *WHY)
    # through the merge that waits, 乙醇 would become one with 甲醇
    assert "their CAS numbers differ" in refused("merge", oil, "乙醇", *WHY)
    made = data("history")["decisions"][0]["id"]
    undone = data("undo", made, *WHY)["decisions"][0]["id"]
    assert "is taken back already by" in refused("undo", made, *WHY)
    ok("merge", "甲号油", "乙醇", *WHY)
    assert "cannot come back: their CAS numbers differ" in refused("undo", undone, *WHY)


def test_a_pair_is_rejected_then_a_merge_of_it_is_refused(catalogue: Catalogue) -> None:
    (case,) = data("review")
    assert case["rule"] == "ambiguous_name"
    assert case["can_be_decided"]
    assert ["沸点：57.3 ℃" in side["quotes"] for side in case["evidence"]].count(True) == 1
    assert ["沸点：83.5 ℃" in side["quotes"] for side in case["evidence"]].count(True) == 1
    assert all(side["url"].startswith("http://sheets.test/") for side in case["evidence"])
    plain = ok("review")
    assert "二氯乙烷 | 二氯乙烷" in plain
    assert "沸点：57.3 ℃" in plain
    said = ok("review", "--reject", case["id"][:10], *WHY)
    assert "are two substances" in said
    assert "nothing to review" in ok("review")
    one, two = (side["key"] for side in case["sides"])
    made = data("history")["decisions"][0]["id"]
    assert f"take it back first: hchem entities undo {made[:12]}" in refused("merge", one, two, *WHY)
    before = keys(catalogue)
    assert again(catalogue) == before
    assert "nothing to review" in ok("review")
    ok("undo", made, *WHY)
    again(catalogue)
    assert [c["id"] for c in data("review")] == [case["id"]]


def test_a_pair_is_accepted(catalogue: Catalogue) -> None:
    (case,) = data("review")
    assert "dry run" in ok("review", "--accept", case["id"], *WHY, "--dry-run")
    assert [c["id"] for c in data("review")] == [case["id"]]
    ok("review", "--accept", case["id"], *WHY)
    after = again(catalogue)
    assert after["二氯乙烷甲"] == after["二氯乙烷乙"]
    assert "no open case has an id that begins with" in refused("review", "--accept", case["id"], *WHY)
    assert "accepted and rejected" in refused("review", "--accept", "a", "--reject", "a", *WHY)


def test_the_review_list_can_be_gone_through(catalogue: Catalogue) -> None:
    assert "0 decided" in ok("review", "-i", text="s\n")
    assert "0 decided" in ok("review", "-i", text="q\n")
    shown = ok("review", "-i", "--dry-run", text="r\n另一种\n")
    assert "1 decided (dry run, nothing recorded)" in shown
    assert data("history")["decisions"] == []
    shown = ok("review", "-i", "--by", "Li", text="r\n另一种\n")
    assert "1 of 1" in shown
    (row,) = data("history")["decisions"]
    assert (row["kind"], row["why"], row["by"]) == ("keep-apart", "另一种", "Li")
    assert row["review"]


def test_a_merge_of_the_rules_is_split_by_name_and_by_document(catalogue: Catalogue) -> None:
    assert "木醇" in ok("split", "67-56-1", "木醇", *WHY)
    after = again(catalogue)
    assert after["甲醇"] == "67-56-1"
    assert after["木醇"].startswith("name:")
    made = data("history")["decisions"][0]["id"]
    ok("undo", made, *WHY)
    assert again(catalogue)["木醇"] == "67-56-1"
    with catalogue.reading() as session:
        place = session.scalars(select(Document.document_id).where(Document.title == "木醇")).one()
    ok("split", "67-56-1", "木醇", "--document", place[:10], *WHY)
    assert again(catalogue)["木醇"].startswith("name:")


def test_a_split_that_no_run_has_applied_can_be_taken_back_and_restored(catalogue: Catalogue) -> None:
    first = data("split", "67-56-1", "木醇", *WHY)["decisions"][0]["id"]
    second = data("undo", first, *WHY)["decisions"][0]["id"]
    assert again(catalogue)["木醇"] == "67-56-1"
    third = data("undo", second, *WHY)["decisions"][0]["id"]
    assert [row["stands"] for row in data("history")["decisions"]] == [True, False, True]
    assert again(catalogue)["木醇"].startswith("name:")
    ok("undo", third, *WHY)
    # what a person merged meanwhile stands against it, and is named
    merged = data("merge", "木醇", "67-56-1", *WHY)["decisions"][0]["id"]
    again(catalogue)
    fourth = data("history")["decisions"][-2]["id"]
    said = refused("undo", fourth, *WHY)
    assert f"cannot come back: decision {merged[:12]} makes them one already" in said
    assert said.endswith(f"hchem entities undo {merged[:12]}")


@pytest.mark.parametrize("option", ["--why", "--by"])
def test_what_is_no_text_is_refused_and_controls_are_never_printed(catalogue: Catalogue, option: str) -> None:
    given = {"--why": "试验", "--by": "Zhang"}
    bad = [part for pair in (given | {option: "bad \udcff"}).items() for part in pair]
    assert f"{option} is not UTF-8 (character 5)" in refused("split", "67-56-1", "木醇", *bad)
    assert data("history")["decisions"] == []
    assert "is not UTF-8" in refused("merge", "bad \udcff", "67-56-1", *WHY)
    loud = [part for pair in (given | {option: "红 \x1b[31mred\x07"}).items() for part in pair]
    ok("split", "67-56-1", "木醇", *loud)
    for shown in (ok("history"), ok("show", "67-56-1")):
        assert "\x1b" not in shown
        assert "\x07" not in shown
    assert "红 \\x1b[31mred\\x07" in ok("history")


def test_names_and_keys_of_entities(catalogue: Catalogue) -> None:
    listed = data("list", "--name", "二氯乙烷")
    assert len(listed) == 2
    assert {row["shown"] for row in listed} == {"二氯乙烷 in '二氯乙烷甲'", "二氯乙烷 in '二氯乙烷乙'"}
    assert data("show", listed[0]["key"])["key"] == listed[0]["key"]
    assert data("show", "甲 醇")["key"] == "67-56-1"
    with catalogue.reading() as session:
        assert all(not e.names for e in session.scalars(select(Entity)) if "written" in e.properties)


@pytest.mark.parametrize("command", ["list", "show", "review", "merge", "split", "undo", "history"])
def test_help_has_examples(command: str) -> None:
    assert f"hchem entities {command}" in " ".join(ok(command, "--help").split())


# --- conflicts ---------------------------------------------------------------------------


def conflict(*arguments: str) -> Any:
    result = CliRunner().invoke(conflicts.app, [*arguments, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_conflicts_show_both_values_with_sources_and_words(catalogue: Catalogue) -> None:
    ok("merge", "甲号油", "甲醇", *WHY)
    again(catalogue)
    found = conflict("list", "--substance", "甲醇", "--property", "flash_point")
    values = {tuple(sorted(side["value"] for side in row["values"])) for row in found}
    assert values == {("11 ℃", "31 ℃"), ("12 ℃", "31 ℃"), ("282.15 K", "31 ℃"), ("285.15 K", "31 ℃")}
    row = next(row for row in found if "282.15 K" in {side["value"] for side in row["values"]})
    assert (row["verdict"], row["substance"], row["tolerance"], row["si_unit"]) == (
        "conflict",
        "67-56-1",
        5.0,
        "K",
    )
    assert row["difference"] == pytest.approx(22.0)
    page, reference = sorted(row["values"], key=lambda side: side["source"]["kind"])
    assert page["quote"] == "闪点（闭杯）：31 ℃"
    assert page["source"]["url"] == "http://sheets.test/甲号油"
    assert page["si"] == {"min": 304.15, "max": 304.15, "unit": "K"}
    assert reference["source"]["kind"] == "reference"
    assert "282.15 K" in reference["quote"]
    shown = CliRunner().invoke(conflicts.app, ["show", row["id"][:12]])
    assert all(
        words in shown.output for words in ("闪点（闭杯）：31 ℃", "282.15 K", "22 K apart, tolerance 5 K")
    )
    assert conflict("show", row["id"])["id"] == row["id"]
    listed = CliRunner().invoke(conflicts.app, ["list", "--substance", "甲醇", "--property", "flash_point"])
    line = next(line for line in listed.output.splitlines() if "282.15 K" in line)
    assert "31 ℃ = 304.15 K (甲号油)" in line
    agreeing = conflict("list", "--substance", "甲醇", "--property", "boiling_point", "--verdict", "all")
    assert {entry["verdict"] for entry in agreeing} == {"agree"}
    with catalogue.reading() as session:  # all values are there as their sources have them
        stated = session.scalars(
            select(Assertion.object).where(
                Assertion.subject_key == "67-56-1",
                Assertion.relation == "HAS_MEASUREMENT",
                Assertion.state == "kept",
            )
        )
        assert {"31 ℃", "11 ℃", "12 ℃", "282.15 K", "285.15 K"} <= set(stated)


def test_what_a_decision_settled_is_listed_on_demand(catalogue: Catalogue) -> None:
    ok("merge", "甲号油", "甲醇", *WHY)
    again(catalogue)
    wanted = ["list", "--substance", "甲醇", "--property", "flash_point"]
    before = conflict(*wanted)
    with catalogue.reading() as session:
        found = next(one for one in find(session, ExtractionSettings()) if one.id == before[0]["id"])
    with catalogue.writing() as session:
        decide_conflict(session, found, "both", why="两种方法", by="Zhang")
    assert [row["id"] for row in conflict(*wanted)] == [row["id"] for row in before[1:]]
    assert conflict(*wanted, "--settled") == before
    shown = CliRunner().invoke(conflicts.app, [*wanted, "--settled"])
    assert "[settled: both, Zhang]" in shown.output


def test_conflicts_of_nothing_and_wrong_ids(catalogue: Catalogue) -> None:
    assert conflict("list", "--substance", "1,1-假想烷") == []
    for wrong, said in (
        ("", "give the id of a comparison"),
        ("zzz", "no comparison has an id that begins with"),
    ):
        error = CliRunner().invoke(conflicts.app, ["show", wrong]).exception
        assert isinstance(error, SettingsError)
        assert said in str(error)
    assert "hchem conflicts list" in " ".join(
        CliRunner().invoke(conflicts.app, ["list", "--help"]).output.split()
    )


def test_names_of_pages_steer_no_terminal_in_lists_either(catalogue: Catalogue) -> None:
    with catalogue.writing() as session:
        row = session.scalars(select(Entity).where(Entity.key == "67-56-1")).one()
        row.names = {"zh": "甲醇\x1b[2J\u202e", "en": "methanol"}
    for shown in (ok("list", "--name", "甲醇"), ok("show", "67-56-1")):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert r"甲醇\x1b[2J\u202e" in shown

"""Seeded faults: each kind is put into a real graph, and every check says what it makes of what follows.

``run_all`` returns, for each kind, the wrong questions that come of the fault and
the share of them that each check rejects on its own. ``benchmarks/questions.py
--faults`` prints the table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, Question
from corpus.ids import version_id
from kg.graph_settings import QuestionSettings
from kg.qa.dedup import duplicates
from kg.qa.records import Candidate, Judged
from kg.qa.sampling import side_of
from kg.qa.step import question_row
from kg.qa.stored import verify_stored
from kg.qa.verification import each_check
from kg.schema import value_key
from kg.store import GraphStore
from kg.sync import remove_vanished
from tests.kg.graph_builders import MADE, L, R, Sheet, data_sheet, entity, fill, quantity
from tests.kg.qa_world import SETTINGS, World

FEW = (*MADE[:3], *MADE[5:8])
CHECKS = (
    "maker", "reference", "nodes", "evidence", "list", "wording", "split", "proof", "shortcut", "hub", "duplicates",
    "stored",
)  # fmt: skip


@dataclass
class Outcome:
    """Wrong questions of one kind of fault, and which of them each check rejects."""

    kind: str
    wrong: int
    caught: dict[str, int]
    missed: list[str] = field(default_factory=list)

    def share(self, check: str) -> float:
        """Share of the wrong questions that a check rejects on its own."""
        return self.caught[check] / self.wrong if self.wrong else 0.0


@dataclass
class Bench:
    """The sound world, the questions that hold in it, and a copy of its catalogue to put faults into."""

    sound: World
    asked: list[Candidate]
    folder: Path
    settings: QuestionSettings = field(default_factory=lambda: SETTINGS)

    def faulty(self, change: Callable[[Session], None]) -> World:
        """The world after a change of the catalogue, also in the graph."""
        path = self.folder / "faulty.db"
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with self.sound.catalogue.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(self.folder / "sound.db", path)
        catalogue = Catalogue.open(f"sqlite:///{path}")
        with catalogue.writing() as session:
            change(session)
        remove_vanished(catalogue, self.sound.store, "")
        return World(catalogue, self.sound.store, self.settings)

    def restore(self) -> None:
        """The graph as it was."""
        self.sound.load()
        remove_vanished(self.sound.catalogue, self.sound.store, "")


# what a fault gives: the faulty world, sound questions that are wrong now, and wrong ones that are made from it
Wrong = tuple[World, list[Candidate], list[Candidate]]


def _facts_of(session: Session, *where: object) -> list[Assertion]:
    rows = session.scalars(select(Assertion).where(*where)).all()  # type: ignore[arg-type]
    return sorted(rows, key=lambda row: row.assertion_id)


def hub(bench: Bench) -> Wrong:
    """So many substances carry one H code that its neighbours mean nothing."""

    def change(session: Session) -> None:
        sheet = Sheet("大表", "zh", url="http://sample.test/table")
        for n in range(SETTINGS.hub_degree + 1):
            line = sheet.line(2, f"物质{n}号：H225")
            sheet.fact(f"name:hub{n}", R.HAS_H, L.HAZARD_STATEMENT, "H225", line, properties={"code": "H225"})
            entity(session, f"name:hub{n}", zh=f"物质{n}号", en=f"Substance no. {n}")
        sheet.store(session)

    world = bench.faulty(change)
    return world, [c for c in bench.asked if c.kind == "multi_hop" and "H225" in c.nodes[1:-1]], []


def self_loop(bench: Bench) -> Wrong:
    """A substance is linked to itself, and a path runs through the loop."""
    store, key = bench.sound.store, FEW[1].cas
    world = bench.faulty(lambda session: None)
    store._write("MATCH (a:Substance {key: $key}) MERGE (a)-[:INCOMPATIBLE_WITH]->(a)", key=key)
    shared = [c for c in bench.asked if c.template == "shared" and c.nodes[0] == key]
    looped = [
        replace(
            c, nodes=(key, c.nodes[1], key, *c.nodes[3:]), expected=(key,), surfaces=("甲醇",), answer="甲醇"
        )
        for c in shared
    ]
    return world, [], looped


def alias_pair(bench: Bench) -> Wrong:
    """One substance is in the graph twice, under two keys and one name."""
    made = FEW[1]

    def change(session: Session) -> None:
        for language in ("zh", "en"):
            sheet = data_sheet(replace(made, cas="name:twin"), language)
            sheet.title += " 2"
            sheet.store(session)
        entity(session, "name:twin", zh=made.zh, en=made.en)

    world = bench.faulty(change)
    pair = {made.cas, "name:twin"}
    fresh = [
        c for c in world.everything()
        if c.kind == "multi_hop" and len(pair & {c.nodes[0], *map(str, c.expected)}) == 2
    ]  # fmt: skip
    return world, [], fresh


def _open(candidate: Candidate, low: float, high: float) -> bool:
    """Whether a comparison of two is open now: the other's boiling point lies between the two values."""
    if candidate.template not in {"compare", "is_higher"}:
        return False
    other = next(made.boiling for made in FEW if made.cas in candidate.substances and made.boiling != low)
    return low < other < high


def _second_value(conflict: float) -> Callable[[Bench], Wrong]:
    def build(bench: Bench) -> Wrong:
        made = FEW[0]

        def change(session: Session) -> None:
            sheet = Sheet("另一份丙酮资料", "zh", url="http://sample.test/other")
            line = sheet.line(9, f"沸点：{conflict:g} ℃")
            value = quantity(conflict, "degC", round(conflict + 273.15, 2), "kelvin")
            key = value_key(L.MEASUREMENT, made.cas, {"property": "boiling_point"}, value)
            sheet.fact(made.cas, R.HAS_MEASUREMENT, L.MEASUREMENT, key, line,
                       properties={"property": "boiling_point"}, value=value)  # fmt: skip
            sheet.store(session)

        world = bench.faulty(change)
        rests = [
            c
            for c in bench.asked
            if made.cas in c.substances
            and "boiling_point" in c.proof.parameters.values()
            and not c.proof.parameters.get("document")
            and (c.kind in {"single_hop", "multi_hop"} or _open(c, made.boiling, conflict))
        ]
        return world, rests, []

    return build


def _lose_a_member(session: Session, keys: list[str]) -> None:
    """Of each list of incompatible materials the first member is lost, with its relationship."""
    lists: dict[str, list[Assertion]] = {}
    for row in _facts_of(session, Assertion.relation == R.INCOMPATIBLE_WITH.value):
        lists.setdefault(str(row.properties.get("listing")), []).append(row)
    for listing, rows in sorted(lists.items()):
        if len(rows) > 2:
            keys.append(listing)
            session.delete(rows[0])


def missing_list_member(bench: Bench) -> Wrong:
    """A list of three is read as one of two: it is counted wrong."""
    lists: list[str] = []
    world = bench.faulty(lambda session: _lose_a_member(session, lists))
    counted = {"count", "list"}
    now = [c for c in world.everything() if c.template in counted and set(c.listings) & set(lists)]
    before = [c for c in bench.asked if c.template in counted and set(c.listings) & set(lists)]
    return world, before, now


def false_negative(bench: Bench) -> Wrong:
    """The lost member is denied: the worst that can happen."""
    lists: list[str] = []
    world = bench.faulty(lambda session: _lose_a_member(session, lists))
    denied = [
        replace(c, expected=("no",), answer="否" if c.language == "zh" else "No", listings=(str(listing),))
        for c in bench.asked
        if c.template == "is_listed" and c.expected == ("yes",)
        and (listing := c.proof.parameters["listing"]) in lists
        and not any(f.object == c.proof.parameters["object"] for f in world.facts.by_listing[str(listing)])
    ]  # fmt: skip
    return world, [], denied


def conflicting_sources(bench: Bench) -> Wrong:
    """A second source names as suitable what the first forbids."""

    def change(session: Session) -> None:
        for row in _facts_of(session, Assertion.relation == R.NOT_EXTINGUISHED_BY.value):
            sheet = Sheet(
                f"消防手册 {row.assertion_id[:6]}", "zh", url=f"http://sample.test/{row.assertion_id}"
            )
            line = sheet.line(5, f"可用{row.object}灭火。")
            sheet.fact(row.subject_key, R.EXTINGUISHED_BY, L.MEASURE, row.object_key, line,
                       properties={k: v for k, v in row.properties.items() if k != "listing"})  # fmt: skip
            sheet.store(session)

    world = bench.faulty(change)
    return world, [c for c in bench.asked if c.template == "can_extinguish" and c.expected == ("no",)], []


def _new_text(session: Session, document: Document, old: str, new: str) -> None:
    """The page says something else, and the statements read from it moved along (as a bad reading would)."""
    document.text = document.text.replace(old, new)
    document.version_id = version_id(document.document_id, document.text)
    for row in _facts_of(session, Assertion.document_id == document.document_id):
        quote = row.quote.replace(old, new)
        row.quote, row.version_id = quote, document.version_id
        row.start = document.text.index(quote)
        row.end = row.start + len(quote)


def negated_sentence(bench: Bench) -> Wrong:
    """The sentence denies it, and was read as if it did not."""

    def change(session: Session) -> None:
        for document in session.scalars(select(Document)).all():
            _new_text(session, document, "Incompatible materials: ", "It is not incompatible with ")
            _new_text(session, document, "禁配物：", "并非禁配物：")

    world = bench.faulty(change)
    wrong = [
        c for c in world.everything()
        if c.relation == R.INCOMPATIBLE_WITH.value and c.kind in {"aggregative", "boolean"} and c.expected != ("no",)
    ]  # fmt: skip
    return world, [], wrong


def altered_quote(bench: Bench) -> Wrong:
    """A value is not the one of its sentence: one digit more."""

    def change(session: Session) -> None:
        for row in _facts_of(session, Assertion.relation == R.HAS_MEASUREMENT.value):
            value = {**row.value, "min": row.value["min"] + 1, "max": row.value["max"] + 1}
            row.value = {
                **value,
                "si": {**value["si"], "min": value["si"]["min"] + 1, "max": value["si"]["max"] + 1},
            }
            row.object_key = value_key(L.MEASUREMENT, row.subject_key, row.properties, row.value)

    world = bench.faulty(change)
    return world, [], [c for c in world.everything() if c.relation == R.HAS_MEASUREMENT.value]


def moved_span(bench: Bench) -> Wrong:
    """Every span starts one character late."""

    def change(session: Session) -> None:
        for row in _facts_of(session):
            row.start += 1

    world = bench.faulty(change)
    return world, [], world.everything()


def stale_proof(bench: Bench) -> Wrong:
    """A page has another value now; the stored questions are of before."""
    made = FEW[1]

    def change(session: Session) -> None:
        row = session.scalars(select(Document).where(Document.identity.endswith(f"zh/{made.cas}"))).one()
        _new_text(session, row, "沸点：64.7 ℃", "沸点：46.7 ℃")
        for fact in _facts_of(session, Assertion.document_id == row.document_id):
            if fact.relation == R.HAS_MEASUREMENT.value and fact.properties["property"] == "boiling_point":
                fact.value = quantity(46.7, "degC", 319.85, "kelvin")
                fact.object_key = value_key(L.MEASUREMENT, fact.subject_key, fact.properties, fact.value)

    world = bench.faulty(change)
    document = next(s for s in world.facts.sources.values() if s.url.endswith(f"zh/{made.cas}"))
    old = [c for c in bench.asked if any(r.document_id == document.document_id for r in c.references)]
    return world, old, []


def second_un_number(bench: Bench) -> Wrong:
    """The sentence of a transport entry names another UN number for another form."""

    def change(session: Session) -> None:
        for document in session.scalars(select(Document)).all():
            _new_text(session, document, "，类别 ", "（溶液为 UN 2209），类别 ")
            _new_text(session, document, ", class ", " (as a solution UN 2209), class ")

    world = bench.faulty(change)
    return world, [], [c for c in world.everything() if c.relation == R.SHIPPED_AS.value]


def homonyms(bench: Bench) -> Wrong:
    """Two substances are called the same: one question, two answers."""

    def change(session: Session) -> None:
        twin = replace(FEW[0], cas="name:homonym", boiling=150.0, flash=60.0)
        sheet = data_sheet(twin, "zh")
        sheet.title += "（另一种）"
        sheet.store(session)
        entity(session, "name:homonym", zh=twin.zh, en=twin.en)

    world = bench.faulty(change)
    ends = {FEW[0].cas, "name:homonym"}
    wrong = [
        c for c in world.everything()
        if c.template == "value" and c.language == "zh" and set(c.substances) <= ends
        and not c.proof.parameters.get("document")
    ]  # fmt: skip
    return world, [], wrong


def name_that_gives_the_answer(bench: Bench) -> Wrong:
    """A substance is called by its own CAS number."""

    def change(session: Session) -> None:
        for made in FEW:
            entity(session, made.cas, zh=f"{made.zh}（{made.cas}）", en=f"{made.en} ({made.cas})")

    world = bench.faulty(change)
    return world, [], [c for c in world.everything() if c.template == "identifier"]


def both_sides(bench: Bench) -> Wrong:
    """Questions over two substances, of which one is for training and one for evaluation."""
    world = bench.faulty(lambda session: None)
    world.sides = {key: ("eval" if at % 2 else "train") for at, key in enumerate(sorted(world.sides))}
    return world, [c for c in bench.asked if side_of(c.substances, world.sides) is None], []


def answer_cut_short(bench: Bench) -> Wrong:
    """One of several answers is left out of what is stated."""
    world = bench.faulty(lambda session: None)
    some = [c for c in bench.asked if len(c.expected) > 1]
    return world, [], [replace(c, expected=c.expected[:-1], surfaces=c.surfaces[:-1]) for c in some]


def shortcut(bench: Bench) -> Wrong:
    """The second condition of a path is dropped from the graph's point of view: all share it."""
    world = bench.faulty(lambda session: None)
    shared = [c for c in bench.asked if c.template == "shared" and len(c.checks) >= 2]
    # a path whose second condition everything fulfils that fulfils the first
    forged = [replace(c, checks=(replace(c.checks[0], proof=c.proof), *c.checks[1:])) for c in shared]
    return world, [], forged


FAULTS: dict[str, Callable[[Bench], Wrong]] = {
    "hub": hub,
    "self-loop": self_loop,
    "alias pair": alias_pair,
    "ambiguous answer": _second_value(60.0),
    "values in conflict": _second_value(160.0),
    "answer cut short": answer_cut_short,
    "missing list member": missing_list_member,
    "false negative": false_negative,
    "conflicting sources": conflicting_sources,
    "negated sentence": negated_sentence,
    "altered quote": altered_quote,
    "moved span": moved_span,
    "stale proof": stale_proof,
    "second UN number": second_un_number,
    "homonyms": homonyms,
    "name gives the answer": name_that_gives_the_answer,
    "both sides of the split": both_sides,
    "shortcut": shortcut,
}


def bench(folder: Path, store: GraphStore) -> Bench:
    """The sound world and its questions."""
    store.clear()
    catalogue = Catalogue.open(f"sqlite:///{folder}/sound.db")
    fill(catalogue, FEW)
    world = World(catalogue, store)
    return Bench(world, world.held(world.everything()), folder)


def judge(bench: Bench, kind: str) -> Outcome:
    """Put one fault in, let every check judge what follows, and take it out again."""
    try:
        world, before, fresh = FAULTS[kind](bench)
        outcome = Outcome(kind, len(before) + len(fresh), dict.fromkeys(CHECKS, 0))
        caught: dict[str, set[int]] = {name: set() for name in CHECKS}
        again = {c.id: c for c in world.everything()} if before else {}
        # a question that was sound: is it made again as it was, and does it hold?
        caught["maker"] = {
            at for at, c in enumerate(before) if c.id not in again or again[c.id].expected != c.expected
        }
        if before:
            caught["stored"] = set(_stored(world, before))
        for at, candidate in enumerate([*before, *fresh]):
            found = each_check([candidate], world.facts, world.store, bench.settings, world.sides)
            for name, reasons in found.items():
                if reasons:
                    caught[name].add(at)
        repeated = duplicates(fresh)
        caught["duplicates"] = {len(before) + at for at, c in enumerate(fresh) if c.id in repeated}
        every = set().union(*(found for name, found in caught.items() if name not in {"maker", "stored"}))
        outcome.caught = {name: len(found) for name, found in caught.items()}
        outcome.missed = [c.question for at, c in enumerate([*before, *fresh]) if at not in every]
        return outcome
    finally:
        bench.sound.store._write("MATCH (a:Substance)-[r:INCOMPATIBLE_WITH]->(a) DELETE r")
        bench.restore()


def _stored(world: World, before: Sequence[Candidate]) -> Iterator[int]:
    """Which of the questions, stored as they were, the command's verification finds out."""
    with world.catalogue.writing() as session:
        session.query(Question).delete()
        session.add_all(Question(**question_row(Judged(c), "s")) for c in before)
    failed = {problem.question_id for problem in verify_stored(world.catalogue, world.store).problems}
    return (at for at, c in enumerate(before) if c.id in failed)


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table of shares in per cent."""
    lines = ["| fault | wrong questions | " + " | ".join(CHECKS) + " | missed |"]
    lines.append("|---" * (len(CHECKS) + 3) + "|")
    for outcome in outcomes:
        shares = " | ".join(
            f"{100 * outcome.share(name):.0f}" if outcome.caught[name] else "" for name in CHECKS
        )
        lines.append(f"| {outcome.kind} | {outcome.wrong} | {shares} | {len(outcome.missed)} |")
    return "\n".join(lines)

"""What people decided, of every queue, as one list; and taking it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus import reviews
from corpus.catalogue.tables import EntityDecision, ReviewDecision
from corpus.curating import decided as documents
from flows.review import naming
from flows.review.queues import PAGE_SIZE, Wanted
from flows.review.words import LANGUAGES
from kg import decided, decisions


@dataclass(frozen=True)
class Line:
    """A decision. ``words``: parts of what was decided, for the wording of the choice; ``link``: its item."""

    id: str
    queue: str
    choice: str
    about: str
    why: str
    by: str
    at: datetime | None
    state: str
    undoes: str
    words: dict[str, str]
    problem: str
    link: str
    can_be_undone: bool


def lines(session: Session, wanted: Wanted) -> tuple[list[Line], int]:
    """A page of all decisions, the newest first, and how many there are."""
    words = wanted.words.casefold()
    found = [
        one
        for one in sorted(_all(session), key=lambda one: (one.at is not None, one.at, one.id), reverse=True)
        if words in f"{one.about} {one.why} {one.by} {one.choice} {one.id}".casefold()
    ]
    start = (wanted.page - 1) * PAGE_SIZE
    return found[start : start + PAGE_SIZE], len(found)


def line(session: Session, decision: str) -> Line | None:
    """A decision by its id."""
    return next((one for one in _all(session) if one.id == decision), None)


def of_item(session: Session, queue: str, item: str) -> list[Line]:
    """Decisions on one item, the newest first; answers to an entry of identity's review list among them."""
    query = select(ReviewDecision).where(ReviewDecision.queue == queue, ReviewDecision.item_id == item)
    found = [_of_review(row) for row in session.scalars(query)]
    if queue == "identity":
        answers = [row for row in decisions.history(session) if row["review"] == item]
        found += [_of_identity(row) for row in answers]
    return sorted(found, key=lambda one: (one.at is not None, one.at, one.id), reverse=True)


def undo(session: Session, decision: str, why: str, by: str) -> str:
    """Take a decision back; returns the id of that record. Raises SettingsError where it cannot be."""
    why, by = reviews.cleaned_reason(why, by)
    row = session.get(ReviewDecision, decision)
    if row is None:
        return decisions.undo(session, decision, why, by).id
    if row.queue == "identity":
        return decided.undo_solution(session, decision, why=why, by=by).decision_id
    made = reviews.undo(session, decision, why=why, by=by)
    if row.queue == "documents":
        documents.taken_back(session, made)
    return made.decision_id


def _all(session: Session) -> Iterator[Line]:
    halves: set[str] = set()  # separations that are half of another decision
    for row in session.scalars(select(ReviewDecision)):
        halves.add(str(row.detail.get("decision", "")))
        yield _of_review(row)
    taken = {
        row.undoes: row.decision_id
        for row in session.scalars(select(EntityDecision).where(EntityDecision.kind == "undo"))
    }
    halves |= {taken[half] for half in halves & set(taken)}
    for entry in decisions.history(session):
        if entry["id"] not in halves:
            yield _of_identity(entry)


def _of_review(row: ReviewDecision) -> Line:
    detail = row.detail
    link = {"work": ""}.get(row.queue, f"/{row.queue}/{row.item_id}")
    stands = row.state == reviews.STANDING
    return Line(
        row.decision_id, row.queue, row.choice, _about(row.queue, detail), row.why, row.decided_by, row.at, row.state,
        row.undoes, {name: str(detail.get(name, "")) for name in ("solution", "of")}, "", link, stands,
    )  # fmt: skip


def _about(queue: str, detail: dict[str, Any]) -> str:
    match queue:
        case "documents":
            return str(detail.get("title") or detail.get("url", ""))
        case "conflicts":
            what = str(detail.get("what", ""))
            measured = " / ".join(dict.fromkeys(naming.topic(what, language) for language in LANGUAGES))
            sides = " | ".join(str(detail[side]["shown"]) for side in ("left", "right") if side in detail)
            return f"{detail.get('name') or detail.get('substance', '')}, {measured}: {sides}"
        case "questions":
            return str(detail.get("question", ""))
        case "identity":
            return f"{detail.get('solution', '')} | {detail.get('of', '')}"
        case _:
            return f"{detail.get('step', '')}: {detail.get('item', '')}"


def _of_identity(row: dict[str, Any]) -> Line:
    sides = [row[side]["name"] or row[side]["key"] for side in ("left", "right")]
    state = reviews.STANDING if row["stands"] else reviews.UNDONE
    if row["kind"] == reviews.UNDO and row["stands"]:
        state = reviews.DONE
    return Line(
        row["id"], "identity", row["kind"], " | ".join(sides), row["why"], row["by"],
        datetime.fromisoformat(row["at"]) if row["at"] else None, state, row["undoes"], {}, row["problem"],
        f"/identity/{row['review']}" if row["review"] else "", bool(row["stands"]),
    )  # fmt: skip

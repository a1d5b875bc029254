"""Decisions of people on record: who, when and why; one that was made meanwhile is never overwritten.

What a decision means is the affair of the steps that honour it (``corpus.curating.decided``,
``kg.decided``); what people decide of identity has a record of its own (``kg.decisions``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from corpus.catalogue.tables import ReviewDecision
from corpus.errors import SettingsError
from corpus.ids import digest
from corpus.lookup import encodable

Queue = Literal["documents", "conflicts", "questions", "identity", "work"]
STANDING, DONE, REPLACED, UNDONE, LAPSED = "standing", "done", "replaced", "undone", "lapsed"
UNDO = "undo"
PERSON = "person"  # the reason of what a person rejected
REQUESTS = frozenset({"retry", "remake"})  # carried out at once: nothing of them stands or can be taken back
_LOCK = 0x68636865  # any number, the same in every process that decides


class DecidedError(SettingsError):
    """Somebody decided the item since the person looked at it. ``row``: that decision."""

    def __init__(self, row: ReviewDecision) -> None:
        super().__init__(f"{row.decided_by} decided this meanwhile ({row.choice}): {row.why}")
        self.row = row


def one_at_a_time(session: Session) -> None:
    """Let no other process decide until this transaction ends (SQLite's write transactions do so anyway)."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def cleaned_reason(why: str, by: str) -> tuple[str, str]:
    """Reason and name on one line each. Raises SettingsError where one is missing or no Unicode text."""
    encodable(why, "the reason")
    encodable(by, "the name")
    why, by = " ".join(why.replace("\0", " ").split()), " ".join(by.replace("\0", " ").split())[:64]
    if not why:
        raise SettingsError("say why: a decision without a reason cannot be judged later")
    if by in ("", "rules"):
        raise SettingsError("say who decides")
    return why, by


def latest(session: Session, queue: Queue, item_id: str) -> ReviewDecision | None:
    """The newest decision on an item, whatever became of it."""
    rows = list(
        session.scalars(
            select(ReviewDecision).where(ReviewDecision.queue == queue, ReviewDecision.item_id == item_id)
        )
    )
    followed = {str(row.detail.get("after", "")) for row in rows}
    return next((row for row in rows if row.decision_id not in followed), None)


def record(
    session: Session,
    queue: Queue,
    item_id: str,
    choice: str,
    *,
    why: str,
    by: str,
    seen: str = "",
    mark: str = "",
    detail: Mapping[str, Any] | None = None,
    undoes: str = "",
) -> ReviewDecision:
    """Append a decision. ``seen``: the newest decision on the item that the person knew of, "" for none.

    A standing decision that the person knew of is replaced. Raises DecidedError where there is
    one that the person did not know of, SettingsError without a reason or a name.
    """
    why, by = cleaned_reason(why, by)
    one_at_a_time(session)
    last = latest(session, queue, item_id)
    if last is not None and last.decision_id != seen:
        raise DecidedError(last)
    if last is not None and last.state == STANDING:
        last.state = UNDONE if undoes == last.decision_id else REPLACED
    row = ReviewDecision(
        # of two that follow the same decision only one can be stored
        decision_id=digest("review", queue, item_id, seen),
        queue=queue, item_id=item_id, choice=choice, why=why, decided_by=by, undoes=undoes, mark=mark,
        state=DONE if choice in REQUESTS | {UNDO} else STANDING,
        detail={**(detail or {}), "after": seen},
    )  # fmt: skip
    session.add(row)
    try:
        session.flush()
    except IntegrityError as error:
        session.rollback()
        other = latest(session, queue, item_id)
        if other is None:
            raise
        raise DecidedError(other) from error
    return row


def undo(session: Session, decision_id: str, *, why: str, by: str) -> ReviewDecision:
    """Take a standing decision back; returns the record of that. Raises SettingsError where it does not stand."""
    one_at_a_time(session)
    row = session.get(ReviewDecision, decision_id)
    if row is None:
        raise SettingsError(f"no decision has the id {decision_id[:12]!r}")
    if row.state != STANDING:
        last = latest(session, _queue(row), row.item_id)
        if last is not None and last.decision_id != row.decision_id:
            raise DecidedError(last)
        raise SettingsError(
            f"decision {decision_id[:12]} does not stand ({row.state}); nothing can be undone"
        )
    detail = {name: value for name, value in row.detail.items() if name != "after"}
    return record(
        session, _queue(row), row.item_id, UNDO, why=why, by=by, seen=row.decision_id, mark=row.mark,
        detail=detail, undoes=row.decision_id,
    )  # fmt: skip


def _queue(row: ReviewDecision) -> Queue:
    return row.queue  # type: ignore[return-value]  # a column holds what record() was given


def standing(session: Session, queue: Queue, choices: Iterable[str] = ()) -> list[ReviewDecision]:
    """Decisions of a queue that stand, by id."""
    query = select(ReviewDecision).where(ReviewDecision.queue == queue, ReviewDecision.state == STANDING)
    if wanted := sorted(choices):
        query = query.where(ReviewDecision.choice.in_(wanted))
    return list(session.scalars(query.order_by(ReviewDecision.decision_id)))

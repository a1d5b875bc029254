"""Batches of a step that several processes share: who works on which, and what came of it.

One run leads: it puts the batches of a step on the board, and takes them from the
front. Assistants (other processes, other hosts) take from the back. A *claim* is a
row that was changed to claimed, with holder and expiry, in one write transaction;
a thread renews it. A claim whose holder is dead (a process of this host that is
gone, at once; any other when it has expired) goes to whoever comes next.

That nobody writes for a claim that was lost does not rest on clocks: ``fenced``
gives a catalogue whose write transactions begin by proving the claim and keep its
row locked until they end. So the records of an item and the proof that they may be
written are one transaction, and a process that was away for too long writes nothing.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from corpus.catalogue import leases
from corpus.catalogue.database import Catalogue
from corpus.catalogue.tables import WorkBatch
from corpus.errors import DeferredError, PlatformError
from corpus.ids import digest

OPEN, CLAIMED, DONE = "open", "claimed", "done"
HALT = "halt"
"""Key of a batch's report under which the error stands that ended its step for everybody."""

BEAT_S = 1.0
"""How often a process looks after its claims: so soon it learns of a halt, or that one is lost."""

_SLICE = 500  # rows per statement


class ClaimLostError(DeferredError):
    """The batch is somebody else's now, or its step is over; what was computed for it is dropped."""

    def __init__(self) -> None:
        super().__init__("the batch is no longer this process's", reason="claim_lost")


@dataclass(frozen=True)
class Claim:
    """A batch that this process works on. ``items``: ids and fingerprints. ``holder`` names this one claim."""

    batch_id: str
    holder: str
    run_id: str
    step: str
    number: int
    items: tuple[tuple[str, str], ...]


class WorkBoard:
    """The shared batches of a catalogue, as one process sees them. Safe to share between threads.

    ``seconds``: age after which an unrenewed claim is free. ``on_halt`` is called once
    per claim with what another process recorded by ``halt`` (message, reason).
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        seconds: float = 120.0,
        holder: str = "",
        on_halt: Callable[[str, str], None] = lambda message, reason: None,
    ) -> None:
        self.catalogue = catalogue
        self.seconds = seconds
        self.holder = holder or leases.holder_name()
        self.on_halt = on_halt
        self._held: dict[str, Claim] = {}
        self._lost: set[str] = set()
        self._renewed: dict[str, float] = {}
        self._lock = threading.Lock()
        self._claiming = threading.Lock()  # a claim that is committed and not yet known here looks abandoned

    # --- the leader -------------------------------------------------------------------

    def post(self, run_id: str, step: str, work: Sequence[Sequence[tuple[str, str]]]) -> None:
        """Put a step's batches on the board, numbered from 1, open to everybody."""
        posting = uuid.uuid4().hex  # a claim of an earlier posting is none of this one
        with self.catalogue.writing() as session:
            session.add_all(
                WorkBatch(
                    batch_id=digest("work", run_id, step, str(number), posting),
                    run_id=run_id,
                    step=step,
                    number=number,
                    items=[list(item) for item in items],
                    state=OPEN,
                )
                for number, items in enumerate(work, start=1)
            )

    def clear(self, run_id: str | None = None, step: str | None = None) -> int:
        """Take batches off the board, all without ``run_id``; who still works on one writes nothing more."""
        where = [] if run_id is None else [WorkBatch.run_id == run_id]
        where += [] if step is None else [WorkBatch.step == step]
        with self.catalogue.reading() as session:
            if session.scalars(select(WorkBatch.batch_id).where(*where).limit(1)).first() is None:
                return 0
        with self.catalogue.writing() as session:
            ids = _locked(session, *where)
            _delete(session, ids)
        return len(ids)

    def collect(self, run_id: str, step: str) -> list[dict[str, Any]]:
        """Take the batches that are done off the board; returns their reports, in the order of the batches."""
        query = select(WorkBatch.batch_id).where(
            WorkBatch.run_id == run_id, WorkBatch.step == step, WorkBatch.state == DONE
        )
        with self.catalogue.reading() as session:
            ids = sorted(session.scalars(query))
        if not ids:
            return []
        reports: list[tuple[int, dict[str, Any]]] = []
        with self.catalogue.writing() as session:
            for start in range(0, len(ids), _SLICE):
                given = select(WorkBatch.number, WorkBatch.report).where(
                    WorkBatch.batch_id.in_(ids[start : start + _SLICE])
                )
                reports += [(row.number, row.report) for row in session.execute(given)]
            _delete(session, ids)
        return [report for _, report in sorted(reports, key=lambda pair: pair[0])]

    def left(self, run_id: str, step: str) -> int:
        """How many batches of a step are not done, whoever works on them."""
        query = select(func.count(WorkBatch.batch_id)).where(
            WorkBatch.run_id == run_id, WorkBatch.step == step, WorkBatch.state != DONE
        )
        with self.catalogue.reading() as session:
            return session.scalars(query).one()

    # --- everybody --------------------------------------------------------------------

    def free(self, run_id: str, *, but: Collection[str] = ()) -> tuple[str, int]:
        """The step of the run that has batches to be claimed now, and how many; ("", 0) where none has.

        ``but``: steps that this process leaves to others. Reads only.
        """
        with self.catalogue.reading() as session:
            is_free = self._freedom(session)
            rows = [row for row in session.execute(_rows(run_id)) if row.step not in but and is_free(row)]
        first = rows[0].step if rows else ""
        return first, sum(row.step == first for row in rows)

    def claim(self, run_id: str, step: str, *, last: bool = False) -> Claim | None:
        """Take the first (``last``: the last) free batch of a step; None where none is free.

        A batch that was begun before is given with all its items: the ledger tells
        which of them the run has done.
        """
        order = WorkBatch.number.desc() if last else WorkBatch.number
        with self._claiming:
            with self.catalogue.writing() as session:
                row = session.scalars(
                    select(WorkBatch)
                    .where(WorkBatch.run_id == run_id, WorkBatch.step == step, WorkBatch.state == OPEN)
                    .order_by(order)
                    .limit(1)
                    .with_for_update(skip_locked=True)
                ).first() or self._abandoned(session, run_id, step, order)
                if row is None:
                    return None
                holder = f"{self.holder}|{uuid.uuid4().hex[:8]}"
                row.state, row.holder = CLAIMED, holder
                row.expires_at = leases.moment(session) + timedelta(seconds=self.seconds)
                items = tuple((item, fingerprint) for item, fingerprint in row.items)
                claim = Claim(row.batch_id, holder, run_id, step, row.number, items)
            with self._lock:
                self._held[claim.holder] = claim
                self._renewed[claim.holder] = time.monotonic()
        return claim

    def finish(self, claim: Claim, report: dict[str, Any]) -> bool:
        """Hand in a batch's report; False where the claim was lost, and the report with it."""
        try:
            with self.catalogue.writing() as session:
                row = session.get(WorkBatch, claim.batch_id, with_for_update=True)
                held = row is not None and (row.state, row.holder) == (CLAIMED, claim.holder)
                if row is not None and held:
                    row.state, row.report, row.expires_at = DONE, report, None
        finally:  # where the write failed the batch is free again, and the ledger has its items
            self._let_go(claim)
        return held

    def give_back(self, claim: Claim | None = None) -> int:
        """Open a claim (without one: all of this process) to others; returns how many were still held."""
        for one in [claim] if claim is not None else self.held():
            with self._lock:  # first of all, so that no thread of ours renews or works on
                self._lost.add(one.holder)
            self._let_go(one)
        ours = WorkBatch.holder.startswith(self.holder, autoescape=True)
        where = [WorkBatch.state == CLAIMED, ours if claim is None else WorkBatch.holder == claim.holder]
        with self.catalogue.writing() as session:
            ids = _locked(session, *where)
            for batch_id in ids:
                row = session.get_one(WorkBatch, batch_id)
                if HALT in row.report:
                    session.delete(row)
                else:
                    row.state, row.holder, row.expires_at = OPEN, "", None
        return len(ids)

    def halt(self, run_id: str, step: str, message: str, reason: str) -> None:
        """End a step for everybody: no batch is open any more, who holds one is told with its next beat."""
        with self.catalogue.writing() as session:
            ids = _locked(
                session, WorkBatch.run_id == run_id, WorkBatch.step == step, WorkBatch.state != DONE
            )
            for batch_id in ids:
                row = session.get_one(WorkBatch, batch_id)
                if row.state == OPEN:
                    session.delete(row)
                elif HALT not in row.report:
                    row.report = {HALT: [message, reason]}

    def held(self) -> list[Claim]:
        """The claims of this process."""
        with self._lock:
            return list(self._held.values())

    def is_lost(self, claim: Claim) -> bool:
        """Whether the claim is known to be lost or given back."""
        return claim.holder in self._lost

    def fenced(self, claim: Claim) -> Catalogue:
        """The catalogue for work on a claim: each write transaction raises ClaimLostError where it is lost."""
        return _Fenced(self, claim)

    def beat(self, *, renew: bool = False) -> None:
        """Look after the claims: learn which are lost and of a halt, renew those that are a quarter old."""
        claims = self.held()
        if not claims:
            return
        query = select(WorkBatch).where(WorkBatch.batch_id.in_([claim.batch_id for claim in claims]))
        with self.catalogue.reading() as session:
            rows = {row.holder: row for row in session.scalars(query) if row.state == CLAIMED}
        for claim in claims:
            row = rows.get(claim.holder)
            if row is None:
                with self._lock:
                    if claim.holder in self._held:  # not handed in meanwhile
                        self._lost.add(claim.holder)
                continue
            if HALT in row.report:
                self.on_halt(*row.report[HALT])
            if renew or time.monotonic() - self._renewed.get(claim.holder, 0.0) > self.seconds / 4:
                self._renew(claim)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Have a thread look after the claims for a block; at its end those that are left are given back."""
        stop = threading.Event()

        def beats() -> None:
            while not stop.wait(min(BEAT_S, self.seconds / 4)):
                try:
                    self.beat()
                except (PlatformError, DBAPIError):
                    continue  # a busy or absent database: the next beat tries again, long before expiry

        thread = threading.Thread(target=beats, name="work-board", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(timeout=5)
            if self.held():
                self.give_back()

    def _renew(self, claim: Claim) -> None:
        with self.catalogue.writing() as session:
            row = session.get(WorkBatch, claim.batch_id, with_for_update=True)
            if row is not None and (row.state, row.holder) == (CLAIMED, claim.holder):
                row.expires_at = leases.moment(session) + timedelta(seconds=self.seconds)
        with self._lock:
            self._renewed[claim.holder] = time.monotonic()

    def _let_go(self, claim: Claim) -> None:
        with self._lock:
            self._held.pop(claim.holder, None)
            self._renewed.pop(claim.holder, None)

    def _freedom(self, session: Session) -> Callable[[Any], bool]:
        """Whether a batch can be claimed: it is open, or nobody works on it any more."""
        present = leases.moment(session)
        held = {claim.holder for claim in self.held()}

        def is_free(row: Any) -> bool:
            if row.state == OPEN:
                return True
            if row.holder.startswith(self.holder):  # of a thread of ours whose last write failed
                return row.holder not in held
            return leases.is_dead(row.holder) or (row.expires_at is not None and row.expires_at <= present)

        return is_free

    def _abandoned(self, session: Session, run_id: str, step: str, order: Any) -> WorkBatch | None:
        """A claimed batch that nobody works on; those of a step that was halted are taken off the board."""
        is_free = self._freedom(session)
        seen = session.execute(
            _rows(run_id).where(WorkBatch.step == step).order_by(None).order_by(order)
        ).all()
        for found in filter(is_free, seen):
            row = session.scalars(
                select(WorkBatch)
                .where(
                    WorkBatch.batch_id == found.batch_id,
                    WorkBatch.holder == found.holder,
                    WorkBatch.state != DONE,
                )
                .with_for_update(skip_locked=True)
            ).first()
            if row is None or not is_free(row):
                continue
            if HALT not in row.report:
                return row
            session.delete(row)
        return None


class _Fenced(Catalogue):
    """A catalogue that writes as long as a claim holds."""

    def __init__(self, board: WorkBoard, claim: Claim) -> None:
        super().__init__(board.catalogue.engine)
        self._board, self._claim = board, claim

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """``Catalogue.writing`` that begins by proving the claim. Raises ClaimLostError."""
        if self._board.is_lost(self._claim):
            raise ClaimLostError
        with super().writing() as session:
            # shared, so that the items of a batch do not wait for one another; the claim stays until the commit
            row = session.execute(
                select(WorkBatch.state, WorkBatch.holder)
                .where(WorkBatch.batch_id == self._claim.batch_id)
                .with_for_update(read=True)
            ).first()
            if row is None or (row.state, row.holder) != (CLAIMED, self._claim.holder):
                raise ClaimLostError
            yield session


def _rows(run_id: str) -> Any:
    return (
        select(WorkBatch.batch_id, WorkBatch.step, WorkBatch.state, WorkBatch.holder, WorkBatch.expires_at)
        .where(WorkBatch.run_id == run_id, WorkBatch.state.in_((OPEN, CLAIMED)))
        .order_by(WorkBatch.number)
    )


def _locked(session: Session, *where: Any) -> list[str]:
    """Ids of batches, locked in one order, so that two who lock several do not wait for each other crosswise."""
    query = select(WorkBatch.batch_id).where(*where).order_by(WorkBatch.batch_id).with_for_update()
    return list(session.scalars(query))


def _delete(session: Session, ids: Sequence[str]) -> None:
    for start in range(0, len(ids), _SLICE):
        session.execute(delete(WorkBatch).where(WorkBatch.batch_id.in_(ids[start : start + _SLICE])))

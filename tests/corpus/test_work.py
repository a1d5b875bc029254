"""The board of shared batches: who may claim, who may write, whatever the order of events."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import LedgerRow, WorkBatch, now
from corpus.catalogue.work import CLAIMED, DONE, OPEN, Claim, ClaimLostError, WorkBoard

_HERE = leases.holder_name()
_GONE = "|".join([_HERE.split("|")[0], "4194304", "0", "gone"])  # no process has this id
_WORK = [[(f"item{batch}{n}", f"mark{batch}{n}") for n in range(3)] for batch in range(5)]


def _board(catalogue: Catalogue, holder: str = "", seconds: float = 60.0) -> WorkBoard:
    return WorkBoard(catalogue, holder=holder, seconds=seconds)


def _states(catalogue: Catalogue) -> list[str]:
    with catalogue.reading() as db:
        return [row.state for row in db.query(WorkBatch).order_by(WorkBatch.number)]


def _record(board: WorkBoard, claim: Claim, item: str) -> None:
    with board.fenced(claim).writing() as db:
        db.add(LedgerRow(step=claim.step, item_id=item, fingerprint="", state="kept", run_id=claim.run_id))


def test_the_leader_takes_from_the_front_and_assistants_from_the_back(catalogue: Catalogue) -> None:
    leader, assistant = _board(catalogue), _board(catalogue, "elsewhere|1|1|a")
    leader.post("r", "s.一", _WORK)
    assert leader.free("r") == ("s.一", 5)
    taken = [leader.claim("r", "s.一"), assistant.claim("r", "s.一", last=True), leader.claim("r", "s.一")]
    assert [claim.number for claim in taken if claim] == [1, 5, 2]
    assert taken[0] is not None
    assert [list(item) for item in taken[0].items] == [list(item) for item in _WORK[0]]
    assert leader.free("r") == ("s.一", 2)
    assert leader.free("r", but=["s.一"]) == ("", 0)
    assert leader.claim("other", "s.一") is None


def test_reports_are_collected_once_and_the_board_is_empty_then(catalogue: Catalogue) -> None:
    board = _board(catalogue)
    board.post("r", "s", _WORK)
    while claim := board.claim("r", "s", last=True):
        assert board.finish(claim, {"n": claim.number})
        assert not board.finish(claim, {"n": 99})
    assert board.left("r", "s") == 0
    assert board.collect("r", "s") == [{"n": n} for n in range(1, 6)]
    assert board.collect("r", "s") == []
    assert _states(catalogue) == []


def test_the_claim_of_a_process_that_is_gone_is_free_at_once_and_one_elsewhere_when_it_has_expired(
    catalogue: Catalogue,
) -> None:
    leader = _board(catalogue)
    leader.post("r", "s", _WORK[:2])
    gone, elsewhere = _board(catalogue, _GONE), _board(catalogue, "elsewhere|1|1|a")
    assert gone.claim("r", "s")
    lost = elsewhere.claim("r", "s")
    assert lost
    assert leader.free("r") == ("s", 1)
    again = leader.claim("r", "s")
    assert again
    assert again.number == 1
    assert leader.claim("r", "s") is None
    _expire(catalogue, lost)
    second = leader.claim("r", "s")
    assert second
    assert second.batch_id == lost.batch_id
    _record(leader, second, "a")
    with pytest.raises(ClaimLostError):
        _record(elsewhere, lost, "b")
    assert not elsewhere.finish(lost, {"seconds": 0})
    elsewhere.beat()
    assert leader.finish(second, {})


def _expire(catalogue: Catalogue, claim: Claim) -> None:
    with catalogue.writing() as db:
        db.get_one(WorkBatch, claim.batch_id).expires_at = now() - timedelta(seconds=1)


def test_a_beat_renews_and_a_lost_claim_is_known_after_it(catalogue: Catalogue) -> None:
    board = _board(catalogue, "elsewhere|1|1|a")
    board.post("r", "s", _WORK[:1])
    claim = board.claim("r", "s")
    assert claim
    _expire(catalogue, claim)
    board.beat(renew=True)
    other = _board(catalogue)
    assert other.claim("r", "s") is None
    _expire(catalogue, claim)
    assert other.claim("r", "s")
    assert not board.is_lost(claim)
    board.beat()
    assert board.is_lost(claim)


def test_a_batch_that_is_given_back_is_open_and_its_items_cannot_be_written_any_more(
    catalogue: Catalogue,
) -> None:
    board = _board(catalogue)
    board.post("r", "s", _WORK[:3])
    first, second = board.claim("r", "s"), board.claim("r", "s")
    assert first
    assert second
    assert board.give_back(first) == 1
    assert _states(catalogue) == [OPEN, CLAIMED, OPEN]
    again = board.claim("r", "s")  # the same process, another claim
    assert again
    assert again.batch_id == first.batch_id
    with pytest.raises(ClaimLostError):
        _record(board, first, "a")
    _record(board, again, "a")
    assert board.give_back() == 2
    assert _states(catalogue) == [OPEN, OPEN, OPEN]
    assert board.held() == []


def test_a_claim_whose_report_could_not_be_written_is_free_again(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = _board(catalogue)
    board.post("r", "s", _WORK[:1])
    claim = board.claim("r", "s")
    assert claim
    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "writing", lambda: (_ for _ in ()).throw(OSError("away")))
        with pytest.raises(OSError, match="away"):
            board.finish(claim, {})
    again = board.claim("r", "s")
    assert again
    assert again.batch_id == claim.batch_id


def test_a_halt_takes_what_is_open_away_and_tells_who_works(catalogue: Catalogue) -> None:
    told: list[tuple[str, str]] = []
    leader = _board(catalogue)
    assistant = WorkBoard(
        catalogue, holder="elsewhere|1|1|a", on_halt=lambda why, reason: told.append((why, reason))
    )
    leader.post("r", "s", _WORK)
    mine, theirs = leader.claim("r", "s"), assistant.claim("r", "s")
    assert mine
    assert theirs
    leader.halt("r", "s", "预算用完", "budget")
    assert leader.finish(mine, {"n": 1})
    assistant.beat()
    assert told == [("预算用完", "budget")]
    assert _states(catalogue) == [DONE, CLAIMED]
    assert leader.free("r") == ("", 0)
    assert assistant.give_back(theirs) == 1  # nobody is to take it any more
    assert leader.left("r", "s") == 0


def test_the_claim_of_a_dead_process_in_a_halted_step_is_dropped(catalogue: Catalogue) -> None:
    leader = _board(catalogue)
    leader.post("r", "s", _WORK[:1])
    assert _board(catalogue, _GONE).claim("r", "s")
    leader.halt("r", "s", "down", "endpoint")
    assert leader.claim("r", "s") is None
    assert leader.left("r", "s") == 0


def test_clearing_the_board_ends_every_claim(catalogue: Catalogue) -> None:
    leader, assistant = _board(catalogue), _board(catalogue, "elsewhere|1|1|a")
    leader.post("r", "s", _WORK[:2])
    leader.post("q", "s", _WORK[:2])
    claim = assistant.claim("r", "s")
    assert claim
    assert leader.clear("r", "s") == 2
    with pytest.raises(ClaimLostError):
        _record(assistant, claim, "a")
    assert assistant.give_back(claim) == 0
    assert leader.clear() == 2
    assert leader.clear() == 0


def test_threads_that_claim_at_once_get_every_batch_once(catalogue: Catalogue) -> None:
    leader = _board(catalogue)
    boards = [_board(catalogue), _board(catalogue, "elsewhere|1|1|a")]
    leader.post("r", "s", [[(f"i{n}", "f")] for n in range(40)])
    found: list[int] = []
    lock = threading.Lock()

    def take(n: int) -> None:
        board = boards[n % 2]
        while claim := board.claim("r", "s", last=bool(n % 2)):
            _record(board, claim, claim.items[0][0])
            assert board.finish(claim, {})
            with lock:
                found.append(claim.number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take, range(4)))
    assert sorted(found) == list(range(1, 41))


def test_claims_are_looked_after_for_a_block_and_given_back_at_its_end(catalogue: Catalogue) -> None:
    board = _board(catalogue, "elsewhere|1|1|a", seconds=0.4)
    board.post("r", "s", _WORK[:1])
    with board.beating():
        claim = board.claim("r", "s")
        assert claim
        first = _expiry(catalogue)
        for _ in range(200):
            if _expiry(catalogue) > first:
                break
            threading.Event().wait(0.05)
        assert _expiry(catalogue) > first
    assert _states(catalogue) == [OPEN]


def _expiry(catalogue: Catalogue) -> datetime:
    with catalogue.reading() as db:
        found = db.query(WorkBatch).one().expires_at
    assert found is not None
    return found


def test_a_process_that_is_a_zombie_is_dead(catalogue: Catalogue) -> None:
    import subprocess
    import sys

    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    holder = f"{_HERE.split('|')[0]}|{child.pid}|{leases.started(child.pid)[0]}|x"
    assert not leases.is_dead(holder)
    child.kill()
    for _ in range(200):  # killed, and not waited for
        if leases.is_dead(holder):
            break
        threading.Event().wait(0.05)
    assert leases.is_dead(holder)
    child.wait()


def test_living_leases_are_told_and_dead_ones_forgotten(catalogue: Catalogue) -> None:
    leases.take(catalogue, "assist a", leases.holder_name(), 60)
    leases.take(catalogue, "assist b", _GONE, 60)
    leases.take(catalogue, "assist c", "elsewhere|1|1|a", -1)
    leases.take(catalogue, "run", leases.holder_name(), 60)
    assert list(leases.living(catalogue, "assist ")) == ["assist a"]
    leases.forget_dead(catalogue, "assist ")
    with catalogue.reading() as db:
        assert sorted(row.resource for row in db.query(leases.Lease)) == ["assist a", "run"]


# --- any order of events ----------------------------------------------------------------------------------------

_HOLDERS = ("elsewhere|1|1|a", "anywhere|2|2|b", "本机外|3|3|c")


class Orderings(RuleBasedStateMachine):
    """Three processes claim, write, renew, expire, give back, finish, die and halt in any order.

    What is proved: an item is written at most once per batch claim in force, a batch
    is finished once, and at the end every batch can be brought to its end.
    """

    template: Path
    folder: Path
    made = 0
    claims: Bundle[tuple[int, Claim]] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        Orderings.made += 1
        path = self.folder / f"{Orderings.made}.db"
        shutil.copyfile(self.template, path)
        self.catalogue = Catalogue.open(f"sqlite:///{path}", migrate=False)
        self.clock = datetime(2026, 1, 1, tzinfo=UTC)
        leases.now = lambda: self.clock
        self.boards = [_board(self.catalogue, holder) for holder in _HOLDERS]
        self.boards[0].post("r", "s", _WORK)
        self.current: dict[str, tuple[int, Claim]] = {}  # batch → who may write: the model
        self.expiry: dict[str, datetime] = {}
        self.finished: set[str] = set()
        self.halted = False

    def teardown(self) -> None:
        """Whatever happened: what is left can be done, and the board is empty then."""
        self.clock += timedelta(hours=1)
        for board in self.boards[1:]:
            board.give_back()
        while claim := self.boards[0].claim("r", "s"):
            assert not self.halted
            assert claim.batch_id not in self.finished
            self.boards[0].finish(claim, {"id": claim.batch_id})
            self.finished.add(claim.batch_id)
        for told in self.boards[0].held():
            self.boards[0].give_back(told)
        if not self.halted:
            while claim := self.boards[0].claim("r", "s"):
                self.boards[0].finish(claim, {"id": claim.batch_id})
                self.finished.add(claim.batch_id)
        assert self.boards[0].left("r", "s") == 0
        reports = [report["id"] for report in self.boards[0].collect("r", "s")]
        assert sorted(reports) == sorted(self.finished)
        assert self.halted or len(reports) == len(_WORK)
        assert _states(self.catalogue) == []
        self.catalogue.close()

    def _holds(self, held: tuple[int, Claim]) -> bool:
        return self.current.get(held[1].batch_id) == held

    @rule(target=claims, who=st.integers(0, 2), last=st.booleans())
    def claim(self, who: int, last: bool) -> object:
        """Claim what is free; what is given was open, or its claim had expired."""
        claim = self.boards[who].claim("r", "s", last=last)
        if claim is None:
            return multiple()
        assert not self.halted
        assert claim.batch_id not in self.finished
        if claim.batch_id in self.current:
            assert self.expiry[claim.batch_id] <= self.clock
        self.current[claim.batch_id] = (who, claim)
        self.expiry[claim.batch_id] = self.clock + timedelta(seconds=60)
        return who, claim

    @rule(held=claims, item=st.integers(0, 2))
    def write(self, held: tuple[int, Claim], item: int) -> None:
        """Who holds a batch can write, nobody else can."""
        who, claim = held
        holds = self._holds(held)
        try:
            with self.boards[who].fenced(claim).writing() as db:
                row = LedgerRow(
                    step="s", item_id=claim.items[item][0], fingerprint="", state="kept", run_id="r"
                )
                db.merge(row)
            wrote = True
        except ClaimLostError:
            wrote = False
        assert wrote == holds

    @rule(who=st.integers(0, 2))
    def renew(self, who: int) -> None:
        """Renewing lengthens what is held, and nothing else."""
        self.boards[who].beat(renew=True)
        for batch, (owner, _) in self.current.items():
            if owner == who:
                self.expiry[batch] = self.clock + timedelta(seconds=60)

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.clock += timedelta(seconds=seconds)

    @rule(held=consumes(claims))
    def finish(self, held: tuple[int, Claim]) -> None:
        """A report counts if, and only if, the batch is held."""
        who, claim = held
        assert self.boards[who].finish(claim, {"id": claim.batch_id}) == self._holds(held)
        if self._holds(held):
            del self.current[claim.batch_id]
            self.finished.add(claim.batch_id)

    @rule(held=consumes(claims))
    def give_back(self, held: tuple[int, Claim]) -> None:
        """What is given back is somebody's again only by a claim."""
        who, claim = held
        assert self.boards[who].give_back(claim) == int(self._holds(held))
        if self._holds(held):
            del self.current[claim.batch_id]

    @precondition(lambda self: not self.halted and len(self.finished) > 1)
    @rule(who=st.integers(0, 2))
    def halt(self, who: int) -> None:
        """After a halt nothing can be claimed."""
        self.boards[who].halt("r", "s", "over", "budget")
        self.halted = True

    @invariant()
    def each_batch_has_one_holder(self) -> None:
        """The table agrees with the model."""
        with self.catalogue.reading() as db:
            rows = {row.batch_id: row for row in db.query(WorkBatch)}
        claimed = {batch: row.holder for batch, row in rows.items() if row.state == CLAIMED}
        assert claimed == {batch: claim.holder for batch, (_, claim) in self.current.items()}
        assert {batch for batch, row in rows.items() if row.state == DONE} == self.finished


def test_any_order_of_claims_renewals_expiries_and_reports(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "now", leases.now)  # put back afterwards
    Orderings.template, Orderings.folder = template, tmp_path
    run_state_machine_as_test(
        Orderings,
        settings=settings(
            max_examples=12, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )

"""The stage runner: what is skipped, repeated, retired, and what a failing item leaves behind."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, Failure, LedgerRow
from corpus.errors import DeferredError, TerminalError, TransientError
from corpus.ids import fingerprint
from corpus.stages import BaseStep, Item, Outcome, StageContext, pending, run_batch, run_step


@dataclass
class Doubling(BaseStep):
    """Writes a chemical per item; inputs are {id: content}."""

    name: str = "test.double"
    inputs: dict[str, str] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    processed: list[str] = field(default_factory=list)

    def plan(self, ctx: StageContext) -> list[Item]:
        return [
            Item(key, fingerprint(self.name, self.version, [value]))
            for key, value in sorted(self.inputs.items())
        ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        self.processed.append(item.id)
        if item.id in self.errors:
            raise self.errors[item.id]
        value = self.inputs[item.id] * 2

        def write(db: Session) -> None:
            db.merge(Chemical(key=item.id, provenance=value))

        return Outcome(write=write, counts={"made": 1})

    def retire(self, session: Session, item_ids: list[str]) -> None:  # type: ignore[override]
        for item_id in item_ids:
            row = session.get(Chemical, item_id)
            if row is not None:
                session.delete(row)


@pytest.fixture
def ctx(catalogue: Catalogue) -> StageContext:
    return StageContext(catalogue=catalogue, run_id="r1")


def _kept(catalogue: Catalogue) -> dict[str, str]:
    with catalogue.reading() as db:
        return {row.key: row.provenance for row in db.scalars(select(Chemical))}


def test_a_second_run_has_nothing_to_do_and_an_edit_redoes_one(ctx: StageContext) -> None:
    step = Doubling(inputs={"a": "x", "b": "y"})
    assert run_step(step, ctx).counts["made"] == 2
    assert pending(step, ctx) == []
    step.inputs["b"] = "z"
    assert [item.id for item in pending(step, ctx)] == ["b"]
    run_step(step, ctx)
    assert _kept(ctx.catalogue) == {"a": "xx", "b": "zz"}


def test_a_new_version_or_force_redoes_all(ctx: StageContext) -> None:
    step = Doubling(inputs={"a": "x"})
    run_step(step, ctx)
    step.version = "2"
    assert len(pending(step, ctx)) == 1
    step.version = "1"
    ctx.force = True
    assert len(pending(step, ctx)) == 1


def test_vanished_items_are_retired_but_not_in_a_restricted_run(ctx: StageContext) -> None:
    step = Doubling(inputs={"a": "x", "b": "y"})
    run_step(step, ctx)
    del step.inputs["a"]
    ctx.sources = ("somewhere",)
    run_step(step, ctx)
    assert set(_kept(ctx.catalogue)) == {"a", "b"}
    ctx.sources = ()
    run_step(step, ctx)
    assert set(_kept(ctx.catalogue)) == {"b"}
    with ctx.catalogue.reading() as db:
        assert [row.item_id for row in db.scalars(select(LedgerRow))] == ["b"]


@pytest.mark.parametrize(
    ("error", "kind", "again"),
    [
        (TransientError("busy", reason="429"), "transient", True),
        (TerminalError("broken", reason="malformed"), "terminal", False),
        (ZeroDivisionError("a bug"), "terminal", False),
    ],
)
def test_a_failing_item_is_recorded_and_the_rest_goes_on(
    ctx: StageContext, error: Exception, kind: str, again: bool
) -> None:
    step = Doubling(inputs={"a": "x", "b": "y", "c": "z"}, errors={"b": error})
    report = run_step(step, ctx)
    assert report.states == {"kept": 2, "failed": 1}
    with ctx.catalogue.reading() as db:
        failure = db.scalars(select(Failure)).one()
    assert (failure.item_id, failure.kind, failure.resolved_run) == ("b", kind, None)
    assert str(error) in failure.message
    assert bool(pending(step, ctx)) is again

    step.errors.clear()
    ctx.only_failed, ctx.run_id = True, "r2"
    run_step(step, ctx)
    with ctx.catalogue.reading() as db:
        assert db.scalars(select(Failure)).one().resolved_run == "r2"
    assert set(_kept(ctx.catalogue)) == {"a", "b", "c"}


def test_records_and_ledger_are_one_transaction(ctx: StageContext) -> None:
    class Exploding(Doubling):
        def process(self, ctx: StageContext, item: Item) -> Outcome:
            outcome = super().process(ctx, item)
            inner = outcome.write
            assert inner is not None

            def write(db: Session) -> None:
                inner(db)
                db.flush()
                raise TerminalError("power cut", reason="cut")

            outcome.write = write
            return outcome

    step = Exploding(inputs={"a": "x"})
    run_batch(step, ctx, step.plan(ctx))
    assert _kept(ctx.catalogue) == {}


def test_cancelling_stops_between_items(ctx: StageContext) -> None:
    step = Doubling(inputs={str(i): "x" for i in range(10)})
    ctx.cancelled = lambda: len(step.processed) >= 3
    run_step(step, ctx)
    assert len(step.processed) == 3
    assert len(pending(step, ctx)) == 7


def test_progress_counts_up_to_the_total(ctx: StageContext) -> None:
    seen: list[tuple[str, int, int]] = []
    ctx.progress = lambda *call: seen.append(call)
    run_step(Doubling(inputs={str(i): "x" for i in range(5)}, batch_size=2), ctx)
    assert seen == [("test.double", n, 5) for n in (0, 2, 4, 5)]


def test_a_failure_stays_open_until_a_run_gets_through(ctx: StageContext) -> None:
    step = Doubling(inputs={"a": "x"}, errors={"a": TransientError("busy", reason="429")})
    run_step(step, ctx)
    run_step(step, ctx)  # a second pass of the same run
    ctx.run_id = "r2"
    run_step(step, ctx)
    with ctx.catalogue.reading() as db:
        assert [row.resolved_run for row in db.scalars(select(Failure))] == [None, None]


def test_an_outcome_that_says_failed_resolves_nothing(ctx: StageContext) -> None:
    class Failing(Doubling):
        def process(self, ctx: StageContext, item: Item) -> Outcome:
            def write(db: Session) -> None:
                db.merge(
                    Failure(
                        failure_id="f",
                        step=self.name,
                        item_id=item.id,
                        kind="terminal",
                        reason="r",
                        message="m",
                        run_id=ctx.run_id,
                    )
                )

            return Outcome(state="failed", reason="r", detail="terminal: m", write=write)

    run_step(Failing(inputs={"a": "x"}), ctx)
    with ctx.catalogue.reading() as db:
        assert db.scalars(select(Failure)).one().resolved_run is None


# --- items at once, steps that halt, items that wait -------------------------------


@dataclass
class Waiting(Doubling):
    """Works on several items at once; remembers how many. The first ones wait until ``width`` are at work."""

    width: int = 4
    now: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        self.together = threading.Barrier(self.width, timeout=60)
        self.first = threading.Semaphore(self.width)

    @property
    def concurrency(self) -> int:
        return self.width

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        with _LOCK:
            self.now += 1
            self.most = max(self.most, self.now)
        if self.first.acquire(blocking=False):
            self.together.wait()
        with _LOCK:
            self.now -= 1
        return super().process(ctx, item)


_LOCK = threading.Lock()


def test_items_at_once_give_the_same_as_one_after_another(ctx: StageContext, catalogue: Catalogue) -> None:
    inputs = {f"{i:02}": f"值{i}" for i in range(24)}
    errors: dict[str, Exception] = {"03": TerminalError("no", reason="bad"), "05": ValueError("bug")}
    step = Waiting(inputs=inputs, errors=errors)
    report = run_step(step, ctx)
    assert step.most == 4
    assert report.states == {"kept": 22, "failed": 2}
    assert report.counts["made"] == 22
    assert _kept(catalogue) == {key: value * 2 for key, value in inputs.items() if key not in errors}


@pytest.mark.parametrize("width", [1, 4])
def test_an_error_that_halts_leaves_the_rest_to_the_next_run(
    ctx: StageContext, catalogue: Catalogue, width: int
) -> None:
    stop = TransientError("no money left", reason="budget")
    stop.halts = True
    step = Waiting(
        inputs={f"{i:02}": "x" for i in range(40)}, errors={"10": stop}, width=width, batch_size=20
    )
    report = run_step(step, ctx)
    assert ctx.halt.error is stop
    assert report.states["failed"] == 1
    assert report.states["kept"] < 10 + width
    assert all(key < "20" for key in step.processed)
    step.errors.clear()
    after = StageContext(catalogue=catalogue, run_id="r2")
    assert run_step(step, after).states["kept"] == 40 - report.states["kept"]
    assert len(_kept(catalogue)) == 40
    with catalogue.reading() as db:
        assert [row.resolved_run for row in db.scalars(select(Failure))] == ["r2"]


def test_an_item_that_waits_is_neither_done_nor_failed(ctx: StageContext, catalogue: Catalogue) -> None:
    step = Doubling(
        inputs={"a": "x", "b": "y"}, errors={"a": DeferredError("in a batch job", reason="deferred")}
    )
    assert run_step(step, ctx).states == {"waiting": 1, "kept": 1}
    assert [item.id for item in pending(step, ctx)] == ["a"]
    with catalogue.reading() as db:
        assert db.scalars(select(Failure)).all() == []

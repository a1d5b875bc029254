"""Cache, budget, rate limit and retry, each alone around a following layer that is a plain function."""

import contextlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, event, select
from sqlalchemy import text as sql

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers
from corpus.catalogue.tables import ModelCall
from corpus.errors import DiskError, TransientError
from models import Message
from models.client.budget import BudgetLayer, Budgets, worst_case
from models.client.cache import AnswerCache
from models.client.call import Call, Reply, Transient
from models.client.http import Dialect, request_body
from models.client.limits import LimitLayer, TokenBucket
from models.client.retry import RetryLayer
from models.errors import BudgetExhausted, ModelRefused
from models.protocols import StoredAnswer
from models.settings import Budget, Limits, Price, ResolvedModel
from tests.models.skills import MemoryAnswers, Score

MODEL = ResolvedModel("http://127.0.0.1:9/v1", "m", None, 0.0, None, 100, 5.0, 1, Price(input=1, output=2))


def call(text: str = "hello", **changes: object) -> Call:
    values = {
        "skill": "score_document",
        "skill_version": "1",
        "messages": (Message("user", text),),
        "model": MODEL,
        "output": Score,
        **changes,
    }
    return Call(**values)  # type: ignore[arg-type]


# --- cache -------------------------------------------------------------------


def test_key_depends_on_everything_that_shapes_the_answer() -> None:
    warm = ResolvedModel("http://127.0.0.1:9/v1", "m", None, 0.7, None, 100, 5.0, 1, None)
    variants = [
        call(),
        call("hello "),
        call(draw=1),
        call(skill="judge_facts"),
        call(skill_version="2"),
        call(model=warm),
        call(messages=(Message("system", "hello"),)),
        call(messages=(Message("user", "hel"), Message("user", "lo"))),
    ]
    assert len({variant.key() for variant in variants}) == len(variants)
    other_address = ResolvedModel("http://127.0.0.1:10/v1", "m", None, 0.0, None, 100, 9.0, 3, None)
    assert call(model=other_address).key() == call().key()


texts = st.lists(st.text(max_size=5), min_size=1, max_size=4)


@given(texts, texts)
def test_message_boundaries_cannot_collide(one: list[str], other: list[str]) -> None:
    keys = [call(messages=tuple(Message("user", text) for text in parts)).key() for parts in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_stored_before_anybody_reads_and_served_after() -> None:
    store, asked = MemoryAnswers(), []

    def following(sent: Call) -> Reply:
        asked.append(sent)
        return Reply("not json at all", tokens_in=3, tokens_out=4, cost=0.5)

    cache = AnswerCache(following, store)
    first, second = cache(call()), cache(call())
    assert (first.from_store, second.from_store, len(asked), store.hits) == (False, True, 1, 1)
    row = store.rows[call().key()]
    assert (row.raw, row.state, row.tokens_in, row.cost) == ("not json at all", "stored", 3, 0.5)
    assert (second.raw, second.tokens_out) == ("not json at all", 4)


def test_refused_answers_are_never_served() -> None:
    store = MemoryAnswers()
    replies = iter([Reply("bad"), Reply("good")])
    cache = AnswerCache(lambda sent: next(replies), store)
    first = cache(call())
    cache.mark(first.key, "refused", "wrong")
    assert cache(call()).raw == "good"
    assert store.rows[first.key].state == "stored"


def test_equal_calls_at_the_same_moment_wait_for_each_other() -> None:
    store, asked = MemoryAnswers(), []

    def following(sent: Call) -> Reply:
        asked.append(sent)
        time.sleep(0.05)
        return Reply("x")

    cache = AnswerCache(following, store)

    def ask() -> None:
        with cache.locks.hold(call().key()):
            cache(call())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    assert cache.locks._locks == {}


# --- the catalogue behind the cache ---------------------------------------------


def answer(key: str, raw: str = "{}", **changes: object) -> StoredAnswer:
    return StoredAnswer(
        **{"key": key, "skill": "s", "skill_version": "1", "model": "m", "draw": 0, "raw": raw, **changes}
    )  # type: ignore[arg-type]


def counted(catalogue: Catalogue) -> dict[str, int]:
    """How often each answer was served, as the database has it."""
    with catalogue.reading() as session:
        return dict(session.execute(select(ModelCall.key, ModelCall.served)).tuples().all())


def test_an_answer_is_there_for_all_at_once_and_its_verdict_after_a_flush(catalogue: Catalogue) -> None:
    mine, other = CatalogueAnswers(catalogue, "r"), CatalogueAnswers(catalogue)
    assert other.get("k") is None
    mine.put(answer("k", "原文 {", parameters={"top_p": 0.9}, cost=0.25))
    seen = other.get("k")
    assert seen == mine.get("k") == answer("k", "原文 {", parameters={"top_p": 0.9}, cost=0.25)
    mine.mark("k", "refused", "not JSON")
    states = [(found.state, found.reason) for store in (mine, other) if (found := store.get("k"))]
    assert states == [("refused", "not JSON"), ("stored", "")]  # judged again by whoever comes after a kill
    mine.flush()
    found = other.get("k")
    assert found is not None
    assert (found.state, found.reason) == ("refused", "not JSON")


def test_a_verdict_belongs_to_its_answer_and_not_to_the_one_that_replaces_it(catalogue: Catalogue) -> None:
    store = CatalogueAnswers(catalogue)
    store.put(answer("k", "first"))
    store.mark("k", "refused", "wrong")
    store.put(answer("k", "second"))
    store.flush()
    found = CatalogueAnswers(catalogue).get("k")
    assert found is not None
    assert (found.raw, found.state, found.reason) == ("second", "stored", "")


def test_verdicts_go_along_with_the_next_answer(catalogue: Catalogue) -> None:
    store = CatalogueAnswers(catalogue)
    for number in range(5):
        store.put(answer(f"k{number}"))
        store.mark(f"k{number}", "accepted")
    found = [CatalogueAnswers(catalogue).get(f"k{number}") for number in range(5)]
    assert [row.state for row in found if row] == ["accepted"] * 4 + ["stored"]


def test_servings_of_many_threads_are_counted_exactly(catalogue: Catalogue) -> None:
    store = CatalogueAnswers(catalogue)
    for number in range(3):
        store.put(answer(f"k{number}"))

    def serve() -> None:
        for number in range(50):
            store.get(f"k{number % 3}")
            store.served(f"k{number % 3}")

    threads = [threading.Thread(target=serve) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.flush()
    assert counted(catalogue) == {"k0": 102, "k1": 102, "k2": 96}
    store.flush()
    assert sum(counted(catalogue).values()) == 300


def test_what_could_not_be_written_is_written_later(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CatalogueAnswers(catalogue)
    store.put(answer("k"))
    store.mark("k", "accepted")
    store.served("k")

    def locked() -> object:
        raise TransientError("locked", reason="database")

    with monkeypatch.context() as patched:
        patched.setattr(store, "_transaction", locked)
        with pytest.raises(TransientError):
            store.flush()
    store.flush()
    found = CatalogueAnswers(catalogue).get("k")
    assert found is not None
    assert (found.state, counted(catalogue)) == ("accepted", {"k": 1})


def test_a_connection_that_dies_is_made_anew(catalogue: Catalogue) -> None:
    store = CatalogueAnswers(catalogue)
    store.put(answer("k", parameters={"top_p": 0.5}))
    assert store.get("k") is not None
    _cut_connections(catalogue, store)
    assert store.get("k") == answer("k", parameters={"top_p": 0.5})
    with contextlib.suppress(TransientError):  # PostgreSQL says so at the first use of a dead connection
        store.put(answer("other"))
    store.put(answer("other"))
    assert CatalogueAnswers(catalogue).get("other") == answer("other")


def _cut_connections(catalogue: Catalogue, store: CatalogueAnswers) -> None:
    if catalogue.engine.dialect.name == "sqlite":
        assert store._reader is not None
        store._reader.driver_connection.close()  # type: ignore[union-attr]
        return
    with catalogue.engine.connect() as connection:
        others = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute(sql(f"SELECT pg_terminate_backend(pid) FROM ({others}) AS others")).all()


def test_a_database_that_cannot_be_written_is_an_error_of_the_right_family(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    store = CatalogueAnswers(catalogue)
    store.put(answer("k"))
    store.flush()
    readonly = Catalogue.open(f"sqlite:///file:{tmp_path}/c.db?mode=ro&uri=true", migrate=False)
    with pytest.raises(DiskError, match="cannot be written") as caught:
        CatalogueAnswers(readonly).put(answer("other"))
    assert caught.value.reason == "disk"
    busy = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
    busy.execute("BEGIN IMMEDIATE")
    impatient = create_engine(f"sqlite:///{tmp_path}/c.db", connect_args={"timeout": 0.05})
    event.listen(impatient, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    waiting = CatalogueAnswers(Catalogue(impatient))
    with pytest.raises(TransientError, match="locked"):
        waiting.put(answer("other"))
    busy.execute("ROLLBACK")
    waiting.put(answer("other"))
    assert store.get("other") == answer("other")


def test_a_call_takes_one_commit_and_a_served_one_next_to_none(catalogue: Catalogue) -> None:
    commits: list[object] = []
    event.listen(catalogue.engine, "commit", commits.append)
    store = CatalogueAnswers(catalogue)
    cache = AnswerCache(lambda sent: Reply('{"score": 1}'), store)
    calls = [call(f"text {number}") for number in range(60)]
    for sent in calls:
        cache.mark(cache(sent).key, "accepted")
    assert len(commits) == 60
    commits.clear()
    for sent in calls * 3:
        assert cache(sent).from_store
    cache.flush()
    assert len(commits) <= 180 / 64 + 2
    assert set(counted(catalogue).values()) == {3}


def test_a_schema_is_made_once_per_type(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fresh(Score):
        made: ClassVar[int] = 0

        @classmethod
        def model_json_schema(cls, *args: object, **kwargs: object) -> dict[str, object]:
            cls.made += 1
            return super().model_json_schema()

    sent = call(output=Fresh)
    for _ in range(3):
        sent.worst_tokens_in()
        request_body(sent, Dialect())
        request_body(sent, Dialect("text"))
    assert Fresh.made == 1


# --- budget -------------------------------------------------------------------


def test_nothing_is_sent_when_the_worst_case_does_not_fit() -> None:
    sent = []
    worst = worst_case(call())
    for limits in (
        Budget(max_calls=0),
        Budget(max_tokens=worst.tokens - 1),
        Budget(max_cost=worst.cost * 0.999),
    ):
        layer = BudgetLayer(lambda c: sent.append(c) or Reply("x"), Budgets(limits, {}))  # type: ignore[func-returns-value]
        with pytest.raises(BudgetExhausted, match="could pass max_"):
            layer(call())
    assert sent == []


def test_settled_figures_free_the_reservation() -> None:
    worst = worst_case(call())
    keeper = Budgets(Budget(max_tokens=worst.tokens + 20), {})
    layer = BudgetLayer(lambda c: Reply("x", tokens_in=6, tokens_out=4, cost=0.1), keeper)
    layer(call())
    layer(call())
    layer(call())
    assert (keeper.run.spent.calls, keeper.run.spent.tokens) == (3, 30)
    with pytest.raises(BudgetExhausted):
        layer(call())


def test_a_call_waits_for_those_in_flight_before_it_gives_up() -> None:
    worst = worst_case(call())
    keeper = Budgets(Budget(max_tokens=worst.tokens + 10), {})

    def following(sent: Call) -> Reply:
        time.sleep(0.05)
        return Reply("x", tokens_in=1, tokens_out=1)

    layer = BudgetLayer(following, keeper)
    failures: list[Exception] = []

    def ask() -> None:
        try:
            layer(call())
        except BudgetExhausted as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert keeper.run.spent.tokens == 10


@pytest.mark.parametrize(("billed", "share"), [(True, 1.0), (False, 0.0)])
def test_a_failed_call_counts_only_if_it_may_have_been_billed(billed: bool, share: float) -> None:
    keeper = Budgets(Budget(), {})

    def following(sent: Call) -> Reply:
        raise Transient("x", reason="timeout", billed=billed)

    with pytest.raises(Transient):
        BudgetLayer(following, keeper)(call())
    assert keeper.run.spent.tokens == share * worst_case(call()).tokens


@given(
    st.lists(st.tuples(st.text(max_size=40), st.integers(0, 80), st.booleans()), max_size=30),
    st.integers(0, 2000),
)
def test_spending_never_passes_the_limit(calls: list[tuple[str, int, bool]], limit: int) -> None:
    keeper = Budgets(Budget(max_tokens=limit), {})
    for text, used, fails in calls:

        def following(sent: Call, used: int = used, fails: bool = fails) -> Reply:
            if fails:
                raise Transient("x", reason="timeout", billed=True)
            return Reply("x", tokens_in=min(used, sent.worst_tokens_in()), tokens_out=min(used, 100))

        with contextlib.suppress(BudgetExhausted, Transient):
            BudgetLayer(following, keeper)(call(text))
        assert keeper.run.spent.tokens <= limit


# --- limits -------------------------------------------------------------------


class FakeTime:
    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(st.lists(st.floats(0, 30), min_size=1, max_size=40), st.integers(1, 60))
def test_the_bucket_never_lets_more_than_its_rate_through(gaps: list[float], per_minute: int) -> None:
    time_ = FakeTime()
    bucket = TokenBucket(per_minute, clock=time_.clock, sleep=time_.sleep)
    at = []
    for gap in gaps:
        time_.now += gap
        bucket.take()
        at.append(time_.now)
    for start in range(len(at)):
        for end in range(start, len(at)):
            allowed = per_minute * (1 + (at[end] - at[start]) / 60)
            assert end - start + 1 <= allowed + 1e-6


def test_a_demand_above_the_capacity_is_slow_and_not_stuck() -> None:
    time_ = FakeTime()
    bucket = TokenBucket(100, clock=time_.clock, sleep=time_.sleep)
    assert bucket.take(1000) == 0
    assert bucket.take(10) == pytest.approx((900 + 10) * 60 / 100)


def test_concurrency_is_bounded() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def following(sent: Call) -> Reply:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return Reply("x")

    layer = LimitLayer(following, Limits(concurrency=3))
    threads = [threading.Thread(target=layer, args=(call(),)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 3


# --- retry --------------------------------------------------------------------


def failing(times: int, error: Exception) -> tuple[list[int], RetryLayer, list[float]]:
    attempts: list[int] = [0]
    pauses: list[float] = []

    def following(sent: Call) -> Reply:
        attempts[0] += 1
        if attempts[0] <= times:
            raise error
        return Reply("x")

    limits = Limits(retries=3, pause_s=0.5, max_wait_s=10)
    return attempts, RetryLayer(following, limits, sleep=pauses.append), pauses


def test_transient_failures_are_repeated_with_growing_pauses() -> None:
    attempts, layer, pauses = failing(3, Transient("x", reason="http_500"))
    assert layer(call()).raw == "x"
    assert attempts == [4]
    assert all(pause <= bound for pause, bound in zip(pauses, (0.5, 1, 2), strict=True))


def test_retry_after_is_obeyed() -> None:
    _, layer, pauses = failing(2, Transient("x", reason="rate_limit", retry_after=7))
    layer(call())
    assert pauses == [7, 7]


def test_a_retry_after_beyond_the_limit_ends_the_call() -> None:
    attempts, layer, pauses = failing(1, Transient("x", reason="rate_limit", retry_after=11))
    with pytest.raises(Transient):
        layer(call())
    assert (attempts, pauses) == ([1], [])


def test_terminal_errors_end_at_once() -> None:
    attempts, layer, pauses = failing(1, ModelRefused("x", reason="authentication"))
    with pytest.raises(ModelRefused):
        layer(call())
    assert (attempts, pauses) == ([1], [])


def test_after_all_attempts_the_failure_is_raised() -> None:
    attempts, layer, pauses = failing(99, Transient("x", reason="timeout"))
    with pytest.raises(Transient):
        layer(call())
    assert (attempts[0], len(pauses)) == (4, 3)

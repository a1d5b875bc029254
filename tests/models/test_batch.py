"""The batch API as transport: over the real loopback server, with what jobs and their files can do wrong."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers, CatalogueBatches
from corpus.catalogue.tables import ModelBatch, ModelBatchLine, ModelCall
from models import Models, ModelSettings
from models.client.batch import BatchQueue
from models.client.budget import Budgets
from models.client.call import Call
from models.client.http import Clients, HttpLayer
from models.errors import (
    AnswerDeferred,
    AnswerRejected,
    BudgetExhausted,
    EndpointDown,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from models.protocols import BatchJob, BatchLine, BatchStore
from models.settings import Budget, Limits, Price, SkillModel
from models.skills import Answer, Message
from models.usage import Usage
from tests.models.skills import MemoryAnswers, Score, ScoreDocument
from tests.servers.batch_api import Plan
from tests.servers.model_server import Fault, ModelServer, Request

pytestmark = pytest.mark.usefixtures("no_certificates")

QUICK = {"retries": 2, "pause_s": 0.001, "poll_s": 0.01, "give_up_after": 3, "concurrency": 4}
MARK = "<document>"


class ScoreChinese(ScoreDocument):
    """The same job with Chinese messages."""

    name: ClassVar[str] = "judge_facts"

    def messages(self, given: str) -> list[Message]:
        return [
            Message("user", f"<document>{given}</document>"),
            Message("user", "请给这份文件打分，从 0 到 5。"),
        ]


@dataclass
class Desk:
    """A catalogue, and models that use it; every ``models()`` is like another process."""

    catalogue: Catalogue
    server: ModelServer
    told: list[str] = field(default_factory=list)

    def models(self, **changes: Any) -> Models:
        values = {"base_url": self.server.base_url, "model": "m", "api_key": None, "transport": "batch"}
        changes["limits"] = QUICK | changes.get("limits", {})
        return Models(
            ModelSettings.model_validate(values | changes),
            answers=CatalogueAnswers(self.catalogue),
            batches=CatalogueBatches(self.catalogue),
        )

    def jobs(self) -> list[BatchJob]:
        return CatalogueBatches(self.catalogue).jobs(ended=True)

    def lines(self) -> list[str]:
        with self.catalogue.reading() as db:
            return list(db.scalars(select(ModelBatchLine.key)))

    def states(self) -> list[str]:
        with self.catalogue.reading() as db:
            return sorted(db.scalars(select(ModelCall.state)))

    def run(
        self, models: Models, texts: Sequence[str], skill: ScoreDocument | None = None, rounds: int = 20
    ) -> dict[str, Answer[Score] | ModelError]:
        """What a step does: ask all, work the queue off, ask those again that waited."""
        queue = models.batches
        assert queue is not None
        found: dict[str, Answer[Score] | ModelError] = {}
        with queue.taking(self.told.append):
            for _ in range(rounds):
                for text in texts:
                    if text in found:
                        continue
                    try:
                        found[text] = models.run(skill or ScoreDocument(), text)
                    except AnswerDeferred:
                        continue
                    except ModelError as error:
                        found[text] = error
                if len(found) == len(texts):
                    return found
                queue.work_off(self.told.append, pause)
        raise AssertionError(f"{rounds} rounds and still waiting: {set(texts) - set(found)}")


def pause(seconds: float) -> bool:
    threading.Event().wait(min(seconds, 0.02))
    return False


def scores(found: dict[str, Answer[Score] | ModelError]) -> dict[str, Any]:
    return {k: v.value.score if isinstance(v, Answer) else type(v).__name__ for k, v in found.items()}


def text_of(request: Request) -> str:
    return request.text.split(MARK)[1].split("</document>")[0]


def by_length(request: Request) -> dict[str, int]:
    return {"score": len(text_of(request)) % 6}


def expected(texts: Sequence[str]) -> dict[str, int]:
    return {text: len(text) % 6 for text in texts}


TEXTS = ["a", "bb", "ccc", "dddd", "苯", "甲醇的闪点", "eeeeeee", "ffffffff"]


Open = Callable[..., Desk]


@pytest.fixture
def desk(template: Path, tmp_path: Path) -> Iterator[Open]:
    opened: list[Desk] = []

    def open_desk(script: Any = by_length, **server: Any) -> Desk:
        path = tmp_path / f"c{len(opened)}.db"
        path.write_bytes(template.read_bytes())
        made = Desk(
            Catalogue.open(f"sqlite:///{path}", migrate=False), ModelServer(script, **server).__enter__()
        )
        opened.append(made)
        return made

    yield open_desk
    for made in opened:
        made.server.__exit__()
        made.catalogue.close()


# --- a round trip ------------------------------------------------------------------


@pytest.mark.parametrize("skill", [ScoreDocument(), ScoreChinese()], ids=["en", "zh"])
@pytest.mark.parametrize("formats", [("json_schema",), ("json_object",), ()], ids=["schema", "json", "words"])
def test_a_line_is_the_body_of_the_online_call(
    desk: Open, skill: ScoreDocument, formats: tuple[str, ...]
) -> None:
    more: dict[str, Any] = {"extra": {"top_k": 3}, "temperature": 0.2, "top_p": 0.9}
    one, other = desk(formats=formats), desk(formats=formats)
    batch = one.run(one.models(**more), TEXTS, skill)
    online = other.models(transport="online", limits={"concurrency": 1}, **more)
    assert scores(batch) == {text: online.run(skill, text).value.score for text in TEXTS} == expected(TEXTS)
    steps = 3 - len({"json_schema", "json_object"} & set(formats)) - (formats == ("json_schema",))
    last = one.server.batch_api.lines(len(one.server.batch_api.jobs))
    assert [line["body"] for line in last] == [call.body for call in other.server.calls()][-len(TEXTS) :]
    assert {(line["method"], line["url"]) for line in last} == {("POST", "/v1/chat/completions")}
    with one.catalogue.reading() as db, other.catalogue.reading() as their:
        keys = set(db.scalars(select(ModelCall.key)))
        assert keys == {line["custom_id"] for line in last} == set(their.scalars(select(ModelCall.key)))
    assert len(one.server.batch_api.jobs) == steps  # a refused form is learnt by one job, not by each line


def test_answers_are_counted_stored_and_served_as_if_asked_online(desk: Open) -> None:
    here = desk()
    models = here.models(price=Price(input=1e6, output=1e6, batch=0.25))
    found = here.run(models, TEXTS)
    answers = [answer for answer in found.values() if isinstance(answer, Answer)]
    assert {(answer.source, answer.from_store) for answer in answers} == {("m", False)}
    usage = models.usage()
    assert (usage["calls"], usage["cached"]) == (8, 0)
    assert usage["cost"] == pytest.approx(0.25 * (usage["tokens_in"] + usage["tokens_out"]))
    assert models.budget.run.spent.calls == 8
    assert models.budget.run.spent.cost == pytest.approx(usage["cost"])
    models.close()
    CatalogueAnswers(here.catalogue).flush()
    job = here.jobs()[0]
    assert (job.state, job.status, job.total, job.answered, job.failed) == ("collected", "completed", 8, 8, 0)
    assert here.lines() == []
    assert any("8 of 8 answered" in line for line in here.told)
    again = here.models()
    assert scores(here.run(again, TEXTS)) == expected(TEXTS)
    assert (again.usage()["calls"], again.usage()["cached"], len(here.server.calls())) == (0, 8, 8)


def test_a_failed_check_is_repeated_by_the_next_job_and_no_question_is_paid_twice(desk: Open) -> None:
    def script(request: Request) -> dict[str, int]:
        text = text_of(request)
        first = len(request.messages) == 2
        return {"score": 9 if text.startswith("never") or (first and text.startswith("later")) else 3}

    here = desk(script)
    texts = ["good", "later 1", "later 2", "never 1", "never 苯"]
    found = scores(here.run(here.models(), texts))
    assert found == {
        "good": 3,
        "later 1": 3,
        "later 2": 3,
        "never 1": "AnswerRejected",
        "never 苯": "AnswerRejected",
    }
    assert [job.total for job in here.jobs()] == [5, 4]
    assert set(here.server.batch_api.paid.values()) == {1}
    assert scores(here.run(here.models(), ["later 1", "good"])) == {"later 1": 3, "good": 3}
    assert len(here.server.calls()) == 9


@pytest.mark.parametrize("again", ["same run", "next run"])
def test_a_repeat_that_is_not_answered_at_once_is_repeated_and_not_its_first_question(
    desk: Open, again: str
) -> None:
    late = [True]

    def script(request: Request) -> Any:
        if len(request.messages) == 2:
            return {"score": 9}
        if late[0]:
            late[0] = False
            return Fault(status=429)
        return {"score": 3}

    here = desk(script)
    models = here.models(limits={"retries": 2 if again == "same run" else 0})
    if again == "next run":
        assert scores(here.run(models, ["a"])) == {"a": "ModelUnavailable"}
        models.close()
        CatalogueAnswers(here.catalogue).flush()
        models = here.models()
    assert scores(here.run(models, ["a"])) == {"a": 3}
    assert [len(call.messages) for call in here.server.calls()] == [2, 4, 4]


def test_a_cut_answer_is_asked_again_with_more_room(desk: Open) -> None:
    from tests.servers.model_server import Reply

    def script(request: Request) -> Any:
        room = request.body["max_tokens"]
        if "refuses" in request.text and room > 64:
            return Fault(status=400, message="max_tokens is above the model's limit")
        return Reply('{"score": 4}', finish_reason="length" if room == 64 else "stop")

    here = desk(script)
    found = here.run(here.models(max_output_tokens=64), ["cut", "refuses"])
    assert scores(found) == {"cut": 4, "refuses": "AnswerRejected"}
    assert isinstance(found["refuses"], AnswerRejected)
    assert found["refuses"].reason == "truncated"


def test_draws_and_many_inputs_go_in_one_job(desk: Open) -> None:
    here = desk()
    models = here.models(skills={"score_document": SkillModel(draws=3, temperature=0.7)})
    assert models.batches is not None
    texts = [f"text {n % 20}" for n in range(40)]
    with models.batches.taking(here.told.append):
        with pytest.raises(AnswerDeferred):
            models.run_many(ScoreDocument(), texts, draws=range(3))
        models.batches.work_off(here.told.append, pause)
        answers = models.run_many(ScoreDocument(), texts, draws=range(3))
    assert len(answers) == 120
    assert [job.total for job in here.jobs()] == [60]  # equal questions are asked once
    assert set(here.server.batch_api.paid.values()) == {1}


def test_outside_a_run_nobody_would_wait_and_the_question_goes_online(desk: Open) -> None:
    here = desk()
    assert here.models().run(ScoreDocument(), "abc").value.score == 3
    assert (here.jobs(), here.server.batch_api.seen) == ([], [])


def test_skills_may_travel_differently_and_to_different_places(desk: Open) -> None:
    here, there = desk(), desk()
    models = here.models(
        transport="online",
        skills={
            "score_document": SkillModel(transport="batch"),
            "judge_facts": SkillModel(base_url=there.server.base_url, model="judge", transport="batch"),
            "list_facts": SkillModel(),
        },
    )

    class Listed(ScoreDocument):
        name: ClassVar[str] = "list_facts"

    assert models.batches is not None
    with models.batches.taking(here.told.append):
        assert models.run(Listed(), "online").value.score == 0
        for skill in (ScoreDocument(), ScoreChinese()):
            with pytest.raises(AnswerDeferred):
                models.run(skill, "both")
        models.batches.work_off(here.told.append, pause)
        assert models.run(ScoreDocument(), "both").source == "m"
        assert models.run(ScoreChinese(), "both").source == "judge"
    assert len(here.server.batch_api.jobs) == len(there.server.batch_api.jobs) == 1


# --- the size of jobs -----------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.tuples(st.sampled_from(["m", "n"]), st.integers(1, 400)), max_size=40),
    most=st.integers(1, 9),
    kilobytes=st.integers(1, 8),
)
def test_parts_tile_the_queue_within_the_limits(
    lines: list[tuple[str, int]], most: int, kilobytes: int
) -> None:
    limits = Limits(batch_lines=most, batch_mb=kilobytes / 1000)
    chosen = ModelSettings(base_url="http://127.0.0.1:9/v1", model="m", api_key=None, limits=limits)
    clients = Clients()
    store = cast(BatchStore, None)  # nothing is sent
    budgets = Budgets(Budget(), {})
    queue = BatchQueue(chosen, clients, HttpLayer(clients), MemoryAnswers(), store, budgets, Usage())
    resolved = chosen.resolve("score_document")
    assert resolved is not None
    for number, (model, size) in enumerate(lines):
        messages = (Message("user", f"{number}" + "苯" * size),)
        call = Call("score_document", "1", messages, replace(resolved, model=model), Score)
        with pytest.raises(AnswerDeferred):
            queue.ask(call)
    queued = list(queue._queue.values())
    parts = list(queue._parts(queued))
    assert sorted(line.own_key for part in parts for line in part) == sorted(line.own_key for line in queued)
    for part in parts:
        assert len({line.model.model for line in part}) == 1
        assert len(part) <= most
        assert len(part) == 1 or sum(line.length for line in part) <= kilobytes * 1000


def test_jobs_are_cut_by_lines_and_every_line_comes_back(desk: Open) -> None:
    here = desk()
    assert scores(here.run(here.models(limits={"batch_lines": 3}), TEXTS)) == expected(TEXTS)
    assert [job.total for job in here.jobs()] == [3, 3, 2]


# --- what jobs and their files do wrong --------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "jobs", "detail"),
    [
        (Plan(looks=3), 1, ""),
        (Plan(duplicates=3), 1, "3 duplicated"),
        (Plan(unknown=2), 1, "2 of unknown id"),
        (Plan(cut_once=True), 1, ""),
        (Plan(silent_looks=2), 1, ""),
        (Plan(create_fails=True), 1, ""),
        (Plan(missing=3), 2, ""),
        (Plan(malformed=2), 2, "2 malformed"),
        (Plan(broken_body=2), 2, "2 malformed"),
        (Plan(cut=True), 2, "1 malformed"),
        (Plan(expire_after=5), 2, ""),
        (Plan(expire_after=0), 2, ""),
        (Plan(duplicates=2, missing=1, unknown=1, malformed=1, expire_after=6), 2, "2 duplicated, 1 of unknown id"),
        (Plan(fail={"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}), 2, "token_limit"),
    ],
    ids=lambda value: "-".join(k for k, v in vars(value).items() if v) if isinstance(value, Plan) else None,
)  # fmt: skip
def test_every_question_is_answered_by_its_own_answer(desk: Open, plan: Plan, jobs: int, detail: str) -> None:
    here = desk()
    here.server.batch_api.plans = [plan]
    models = here.models()
    assert scores(here.run(models, TEXTS)) == expected(TEXTS)
    assert len(here.server.batch_api.jobs) == jobs
    assert detail in here.jobs()[0].detail
    assert here.lines() == []
    assert models.usage()["calls"] == len(TEXTS)
    assert models.budget.run.spent.calls >= len(TEXTS)
    if plan.expire_after is not None and not plan.missing:
        assert [job.status for job in here.jobs()] == ["expired", "completed"]
        assert set(here.server.batch_api.paid.values()) == {1}


@pytest.mark.parametrize("status", [429, 500, 503, 408])
def test_lines_that_may_succeed_later_are_sent_again(desk: Open, status: int) -> None:
    asked: set[str] = set()

    def script(request: Request) -> Any:
        text = text_of(request)
        fails = len(text) > 3 and text not in asked
        asked.add(text)
        return Fault(status=status) if fails else by_length(request)

    here = desk(script)
    assert scores(here.run(here.models(), TEXTS)) == expected(TEXTS)
    assert [job.total for job in here.jobs()] == [8, 4]
    assert set(here.server.batch_api.paid.values()) == {1}


def test_a_question_is_given_up_after_the_allowed_rounds_and_asked_by_the_next_run(desk: Open) -> None:
    broken = [True]

    def script(request: Request) -> Any:
        return Fault(status=500) if broken[0] and "bad" in request.text else by_length(request)

    here = desk(script)
    models = here.models()
    found = here.run(models, ["a", "bad", "bb"])
    assert scores(found) == {"a": 1, "bad": "ModelUnavailable", "bb": 2}
    assert isinstance(found["bad"], ModelUnavailable)
    assert (found["bad"].reason, found["bad"].transient, found["bad"].halts) == ("http_500", True, False)
    assert "asked in 3 batch jobs" in str(found["bad"])
    assert [job.total for job in here.jobs()] == [3, 1, 1]  # once, and limits.retries = 2 times again
    broken[0] = False
    assert scores(here.run(here.models(), ["bad"])) == {"bad": 3}


def test_a_refused_line_is_refused_for_its_item_only(desk: Open) -> None:
    def script(request: Request) -> Any:
        if "long" in request.text:
            return Fault(status=400, message="This model's maximum context length is 8192 tokens")
        return Fault(status=400, message="bad text") if "bad" in request.text else by_length(request)

    here = desk(script)
    found = here.run(here.models(), ["a", "bad", "long", "bb"])
    assert scores(found) == {"a": 1, "bad": "ModelRefused", "long": "ModelRefused", "bb": 2}
    assert [found[k].reason for k in ("bad", "long")] == ["bad_request", "context_length"]  # type: ignore[union-attr]
    assert len(here.jobs()) == 1  # a 400 that says nothing of the form is not tried in other forms


def test_the_name_of_the_output_limit_is_learnt(desk: Open) -> None:
    here = desk(limit_name="max_completion_tokens")
    assert scores(here.run(here.models(), TEXTS)) == expected(TEXTS)
    assert [job.total for job in here.jobs()] == [8, 8]


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ({"code": "model_not_found", "message": "no such model", "line": 1}, "not_found"),
        ({"code": "insufficient_quota", "message": "pay first"}, "quota"),
    ],
)
def test_a_job_that_fails_for_a_setting_halts(desk: Open, problem: dict[str, Any], reason: str) -> None:
    here = desk()
    here.server.batch_api.plans = [Plan(fail=problem)]
    found = here.run(here.models(), ["a", "bb"])
    assert {(type(e), e.reason, e.halts) for e in found.values() if isinstance(e, ModelError)} == {
        (ModelRefused, reason, True)
    }


def test_a_line_that_fails_the_validation_of_its_file_is_named_and_the_rest_goes_again(desk: Open) -> None:
    here = desk()
    here.server.batch_api.plans = [Plan(fail={"code": "invalid_request", "message": "bad body", "line": 2})]
    found = scores(here.run(here.models(), ["a", "bb", "ccc"]))
    assert found == {"a": 1, "bb": "ModelRefused", "ccc": 3}


def test_an_endpoint_without_a_batch_api_is_named_and_nothing_stays_claimed(desk: Open) -> None:
    here = desk()
    here.server.batch_api.supported = False
    with pytest.raises(ModelRefused, match=r"models\.transport") as caught:
        here.run(here.models(), TEXTS)
    assert caught.value.halts
    assert here.lines() == []
    assert [job.state for job in here.jobs()] == ["given_up"]
    assert scores(here.run(here.models(transport="online"), TEXTS)) == expected(TEXTS)


def test_an_endpoint_that_stays_away_halts_and_the_job_stays_open(desk: Open) -> None:
    here = desk()
    here.server.batch_api.plans = [Plan(silent_looks=1000)]
    with pytest.raises(EndpointDown, match="stays open"):
        here.run(here.models(), TEXTS)
    assert [job.state for job in here.jobs()] == ["open"]
    here.server.batch_api.jobs["batch_1"].plan.silent_looks = 0
    assert scores(here.run(here.models(), TEXTS)) == expected(TEXTS)
    assert len(here.server.batch_api.jobs) == 1


def test_a_wrong_key_halts(desk: Open) -> None:
    here = desk()
    here.server.api_key = "right"
    with pytest.raises(ModelRefused) as caught:
        here.run(here.models(api_key="wrong-key-1234"), ["a"])
    assert (caught.value.reason, caught.value.halts) == ("authentication", True)


# --- budget ------------------------------------------------------------------------------


def test_what_the_budget_does_not_allow_is_not_sent_and_the_rest_is_collected_first(desk: Open) -> None:
    here = desk()
    models = here.models(budget=Budget(max_calls=5))
    with pytest.raises(BudgetExhausted, match="max_calls = 5"):
        here.run(models, TEXTS)
    assert [job.total for job in here.jobs()] == [5]
    assert (len(here.server.calls()), models.budget.run.spent.calls) == (5, 5)
    assert here.lines() == []
    rest = here.models(budget=Budget(max_calls=5))
    assert scores(here.run(rest, TEXTS)) == expected(TEXTS)  # the next run has its own budget
    assert (len(here.server.calls()), rest.usage()["calls"]) == (8, 3)


def test_money_left_by_cheap_answers_sends_the_next_questions(desk: Open) -> None:
    here = desk()
    price = Price(input=0, output=1e6, batch=0.5)
    models = here.models(price=price, budget=Budget(max_cost=130), max_output_tokens=100)
    texts = [f"text {n}" for n in range(12)]
    assert scores(here.run(models, texts)) == expected(texts)  # 50 a line are reserved, about 2 are used
    assert here.jobs()[0].total == 2
    assert models.budget.run.spent.cost == pytest.approx(models.usage()["cost"])
    assert models.budget.run.spent.cost <= 130


def test_a_skills_own_budget_holds_its_lines_back_and_no_others(desk: Open) -> None:
    here = desk()
    models = here.models(skills={"judge_facts": SkillModel(budget=Budget(max_calls=1))})
    assert models.batches is not None
    with models.batches.taking(here.told.append):
        for text in ("a", "bb"):
            for skill in (ScoreDocument(), ScoreChinese()):
                with pytest.raises(AnswerDeferred):
                    models.run(skill, text)
        models.batches.work_off(here.told.append, pause)
        assert models.run(ScoreDocument(), "a").value.score == 1
        assert models.run(ScoreDocument(), "bb").value.score == 2
        assert models.run(ScoreChinese(), "a").value.score == 1
        with pytest.raises(AnswerDeferred):
            models.run(ScoreChinese(), "bb")
        with pytest.raises(BudgetExhausted, match="max_calls = 1"):
            models.batches.work_off(here.told.append, pause)


def test_an_answer_that_was_lost_counts_its_worst_case(desk: Open) -> None:
    here = desk()
    here.server.batch_api.plans = [Plan(missing=1)]
    models = here.models(max_output_tokens=1000)
    here.run(models, ["a", "bb"])
    spent, used = models.budget.run.spent, models.usage()
    assert spent.calls == 3
    assert spent.tokens > used["tokens_in"] + used["tokens_out"] + 1000


# --- other processes, kills, people ---------------------------------------------------------


def leave_open(here: Desk, texts: Sequence[str], looks: int = 1000) -> Models:
    """A process that sends its questions and goes away while the job works."""
    here.server.batch_api.plans = [Plan(looks=looks)]
    models = here.models()
    assert models.batches is not None
    with models.batches.taking(here.told.append):
        for text in texts:
            with pytest.raises(AnswerDeferred):
                models.run(ScoreDocument(), text)
        models.batches.work_off(here.told.append, lambda seconds: True)
    return models


def test_a_question_in_an_open_job_is_waited_for_not_sent_again(desk: Open) -> None:
    here = desk()
    leave_open(here, TEXTS[:4], looks=4)
    assert sorted(scores(here.run(here.models(), TEXTS)).items()) == sorted(expected(TEXTS).items())
    assert [job.total for job in here.jobs()] == [4, 4]
    assert set(here.server.batch_api.paid.values()) == {1}


def test_two_processes_at_once_send_each_question_once(desk: Open) -> None:
    here = desk()
    here.server.batch_api.plans = [Plan(looks=2), Plan(looks=2)]
    one, other = here.models(), here.models()
    results: list[dict[str, Any]] = []
    meet = threading.Barrier(2, timeout=120)

    def work(models: Models) -> None:
        queue = models.batches
        assert queue is not None
        with queue.taking(here.told.append):
            for text in TEXTS:
                with pytest.raises(AnswerDeferred):
                    models.run(ScoreDocument(), text)
            meet.wait()
            queue.work_off(here.told.append, pause)
            results.append({text: models.run(ScoreDocument(), text).value.score for text in TEXTS})

    threads = [threading.Thread(target=work, args=(models,)) for models in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [expected(TEXTS)] * 2
    assert dict(here.server.batch_api.paid) == dict.fromkeys(here.server.batch_api.paid, 1)
    assert len(here.server.batch_api.paid) == len(TEXTS)


def test_a_claim_is_exclusive(catalogue: Catalogue) -> None:
    def lines(numbers: Sequence[int]) -> list[BatchLine]:
        return [
            BatchLine(f"key{n}", "s", "1", 0, {}, {"format": "text", "limit": "max_tokens"}, None, n)
            for n in numbers
        ]

    stores = [CatalogueBatches(catalogue), CatalogueBatches(catalogue)]
    wanted = [range(300), range(600, 150, -1)]
    jobs = [BatchJob(f"job{n}", "http://127.0.0.1:9/v1", "m", ["s"], 0) for n in range(2)]
    meet = threading.Barrier(2, timeout=120)
    claimed: dict[int, set[str]] = {}

    def claim(n: int) -> None:
        meet.wait()
        claimed[n] = stores[n].claim(jobs[n], lines(wanted[n]))

    threads = [threading.Thread(target=claim, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not claimed[0] & claimed[1]
    assert claimed[0] | claimed[1] == {f"key{n}" for n in range(601)}
    assert [job.total for job in jobs] == [len(claimed[0]), len(claimed[1])]
    holders = stores[0].holders([f"key{n}" for n in range(700)])
    assert holders == {key: f"job{n}" for n in range(2) for key in claimed[n]}
    assert [line.key for line in stores[1].lines("job1")] == sorted(claimed[1], key=lambda key: int(key[3:]))
    stores[0].settle("job0", sorted(claimed[1]))  # not its own
    assert len(stores[0].lines("job1")) == len(claimed[1])
    stores[1].settle("job1", sorted(claimed[1]))
    assert stores[1].lines("job1") == []
    assert stores[0].claim(BatchJob("none", "u", "m", [], 0), lines(range(5))) == set()
    assert {job.job_id for job in stores[0].jobs()} == {"job0", "job1"}


def test_a_persons_wish_to_cancel_is_not_overwritten(catalogue: Catalogue) -> None:
    store = CatalogueBatches(catalogue)
    line = BatchLine("k", "s", "1", 0, {}, {}, {"input": 1.0}, 1)
    job = BatchJob("j", "http://127.0.0.1:9/v1", "m", ["s"], 1)
    assert store.claim(job, [line]) == {"k"}
    mine, theirs = store.job("j"), store.job("j")
    assert mine is not None
    assert theirs is not None
    mine.state, theirs.state = "open", "cancelling"
    store.save(theirs)
    store.save(mine)
    assert mine.state == "cancelling"
    mine.state = "collected"
    store.save(mine)
    assert [job.state for job in store.jobs(ended=True)] == ["collected"]
    assert store.jobs() == []
    assert store.lines("j") == [line]


@pytest.mark.parametrize("metadata", [True, False], ids=["by name", "by file"])
def test_a_job_of_unknown_fate_is_found_at_the_endpoint(desk: Open, metadata: bool) -> None:
    here = desk()
    here.server.batch_api.keeps_metadata = metadata
    here.server.batch_api.page = 1  # and it stands on a further page of the list
    leave_open(here, TEXTS, looks=0)
    store = CatalogueBatches(here.catalogue)
    job = store.jobs(ended=True)[0]
    with here.catalogue.writing() as db:  # as a kill between the creation and the note of it leaves it
        row = db.get_one(ModelBatch, job.job_id)
        row.state, row.batch_id = "submitting", ""
    here.server.batch_api.plans = [Plan(), Plan()]
    leave_open(desk(), ["x"])
    assert scores(here.run(here.models(), TEXTS)) == expected(TEXTS)
    assert len(here.server.batch_api.jobs) == 1


def test_a_job_that_was_never_created_is_sent_again_once_that_is_sure(desk: Open) -> None:
    here = desk()
    here.server.batch_api.listed = False
    store = CatalogueBatches(here.catalogue)
    models = here.models()
    resolved = models.settings.resolve("score_document")
    assert resolved is not None
    key = Call("score_document", "1", tuple(ScoreDocument().messages("a")), resolved, Score).key()
    line = BatchLine(key, "score_document", "1", 0, {}, {"format": "text", "limit": "max_tokens"})
    store.claim(BatchJob("dead", here.server.base_url, "m", ["score_document"], 1), [line])
    died(here, "dead")
    patient = here.models(limits={"poll_s": 600}).batches
    assert patient is not None
    assert [job.state for job in patient.collect(here.told.append)] == ["submitting"]  # it may show up yet
    assert scores(here.run(models, ["a"])) == {"a": 1}
    assert [job.state for job in here.jobs()] == ["given_up", "collected"]
    with here.catalogue.writing() as db:
        assert db.get_one(ModelBatch, "dead").detail == "never created"


def test_an_old_claim_without_a_job_is_given_up_at_the_first_look(desk: Open) -> None:
    here = desk()
    store = CatalogueBatches(here.catalogue)
    line = BatchLine("k", "score_document", "1", 0, {}, {"format": "text", "limit": "max_tokens"})
    old = BatchJob("old", here.server.base_url, "m", ["score_document"], 1)
    old.created_at = datetime.now(UTC) - timedelta(minutes=50)
    store.claim(old, [line])
    queue = here.models().batches
    assert queue is not None
    assert [job.state for job in queue.collect(here.told.append)] == ["submitting"]  # its process lives: ours
    died(here, "old")
    assert [job.state for job in queue.collect(here.told.append)] == ["given_up"]
    assert here.lines() == []


def died(here: Desk, job_id: str) -> None:
    """Let a job be one of a process that runs no more."""
    with here.catalogue.writing() as db:
        db.get_one(ModelBatch, job_id).holder = f"{socket.gethostname()}|999999999|1|x"


def test_a_cancelled_job_keeps_its_answers_and_the_run_does_not_ask_the_rest_again(desk: Open) -> None:
    here = desk()
    here.server.batch_api.plans = [Plan(looks=1000, expire_after=3)]
    models = here.models()
    queue = models.batches
    other = here.models().batches  # hchem models batches cancel, in another process
    assert queue is not None
    assert other is not None

    def cancel_and_go_on(seconds: float) -> bool:
        if here.jobs()[0].state == "open":
            other.cancel(here.jobs()[0].job_id, here.told.append)
        return pause(seconds)

    with queue.taking(here.told.append):
        for text in TEXTS:
            with pytest.raises(AnswerDeferred):
                models.run(ScoreDocument(), text)
        queue.work_off(here.told.append, cancel_and_go_on)
        found: dict[str, Any] = {}
        for text in TEXTS:
            try:
                found[text] = models.run(ScoreDocument(), text).value.score
            except ModelUnavailable as error:
                found[text] = error.reason
    assert list(found.values()) == [1, 2, 3] + ["cancelled"] * 5
    assert [(job.state, job.status, job.answered) for job in here.jobs()] == [("collected", "cancelled", 3)]
    with pytest.raises(ModelRefused, match="finished"):
        other.cancel(here.jobs()[0].job_id, here.told.append)


def test_a_job_at_an_endpoint_that_no_skill_uses_now_halts_and_can_be_given_up(desk: Open) -> None:
    here, there = desk(), desk()
    leave_open(here, ["a"])
    moved = here.models(base_url=there.server.base_url)
    with pytest.raises(ModelRefused, match="--forget") as caught:
        here.run(moved, ["a"])
    assert caught.value.halts
    assert there.server.batch_api.seen == []
    queue = moved.batches
    assert queue is not None
    queue.give_up(here.jobs()[0].job_id)
    assert scores(here.run(here.models(base_url=there.server.base_url), ["a"])) == {"a": 1}


def test_a_lost_file_says_what_to_do_and_asks_nothing_again(desk: Open) -> None:
    here = desk()
    leave_open(here, ["a"], looks=1)
    here.server.batch_api.finish()
    del here.server.batch_api.files["out-1"]
    with pytest.raises(ModelRefused, match=r"stays open.*--forget"):
        here.run(here.models(), ["a"])
    assert [job.state for job in here.jobs()] == ["open"]


def test_nothing_secret_is_recorded_or_told(desk: Open) -> None:
    here = desk()
    secret = "sk-planted-0123456789"
    here.server.api_key = secret
    here.run(here.models(api_key=secret), TEXTS)
    here.server.batch_api.plans = [Plan(), Plan(fail={"code": "x", "message": f"key {secret} is odd"})]
    here.run(here.models(api_key=secret), ["another"])
    with here.catalogue.engine.connect() as connection:
        rows = [
            str(row)
            for table in ("model_batches", "model_batch_lines", "model_calls")
            for row in connection.exec_driver_sql(f"SELECT * FROM {table}")
        ]
    assert secret not in json.dumps(rows + here.told)

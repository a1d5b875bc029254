"""Many questions at once: order, warm prefix, what a rejected, a deferred and a failed answer do to the rest."""

from __future__ import annotations

import threading

import pytest

from models import Models, ModelSettings
from models.errors import AnswerRejected, BudgetExhausted, EndpointDown, ModelRefused, ModelUnavailable
from models.settings import Budget, Limits, SkillModel
from models.skills import Answer
from tests.models.skills import MemoryAnswers, ScoreDocument
from tests.servers.model_server import Fault, ModelServer, Reply, Request

QUICK = Limits(retries=0, pause_s=0.01, concurrency=4, give_up_after=3)
TEXTS = [f"文本 text {i}" for i in range(12)]


class Reviewing(ScoreDocument):
    shares_prefix = True


def models_for(server: ModelServer, store: MemoryAnswers | None = None, **changes: object) -> Models:
    values = {"base_url": server.base_url, "model": "m", "api_key": None, "limits": QUICK, **changes}
    return Models(ModelSettings.model_validate(values), answers=store)


def length(request: Request) -> Reply:
    return Reply(f'{{"score": {len(request.text) % 6}}}', delay_s=0.03)


def scores(found: list[object]) -> list[object]:
    return [answer.value.score if isinstance(answer, Answer) else "rejected" for answer in found]


def test_answers_come_in_the_order_of_the_questions_and_calls_run_at_once() -> None:
    with ModelServer(length) as server:
        models = models_for(server)
        found = models.run_many(ScoreDocument(), TEXTS)
        assert scores(list(found)) == [models.run(ScoreDocument(), text).value.score for text in TEXTS]
        assert server.most_in_flight == 4


def test_where_a_prefix_is_shared_the_first_call_goes_alone() -> None:
    running: list[int] = []

    with ModelServer() as server:

        def script(request: Request) -> Reply:
            running.append(server.in_flight)
            return Reply('{"score": 1}', delay_s=0.05)

        server._script = script
        models_for(server).run_many(Reviewing(), TEXTS[:8])
        assert running[0] == 1
        assert server.calls()[1].number == 2
        assert max(running[1:]) > 1


def test_draws_of_one_question_warm_the_prefix_too() -> None:
    with ModelServer(length) as server:
        store = MemoryAnswers()
        models = models_for(server, store, skills={"score_document": SkillModel(draws=3)})
        found = models.run_many(ScoreDocument(), ["甲醇"], draws=range(models.draws("score_document")))
        assert [answer.draw for answer in found if isinstance(answer, Answer)] == [0, 1, 2]
        again = models.run_many(ScoreDocument(), ["甲醇"], draws=range(3))
        assert all(isinstance(answer, Answer) and answer.from_store for answer in again)
        assert len(server.calls()) == 3


def test_a_rejected_answer_stands_in_its_place() -> None:
    def script(request: Request) -> Reply:
        return Reply('{"score": 9}' if "text 3" in request.text else '{"score": 2}')

    with ModelServer(script) as server:
        found = models_for(server, MemoryAnswers()).run_many(ScoreDocument(), TEXTS)
    assert [isinstance(answer, AnswerRejected) for answer in found] == [i == 3 for i in range(12)]


def test_a_question_that_the_endpoint_refuses_stands_in_its_place_too() -> None:
    def script(request: Request) -> Reply | Fault:
        if "text 3" in request.text:
            return Fault(status=400, message="This model's maximum context length is 10 tokens")
        return Reply('{"score": 2}')

    with ModelServer(script) as server:
        found = models_for(server, MemoryAnswers()).run_many(ScoreDocument(), TEXTS)
    refused = found[3]
    assert isinstance(refused, AnswerRejected)
    assert refused.reason == "context_length"
    assert sum(isinstance(answer, Answer) for answer in found) == 11


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault(status=500), ModelUnavailable), (Fault(status=401), ModelRefused)]
)
def test_any_other_error_ends_it_and_what_was_answered_is_kept(fault: Fault, error: type[Exception]) -> None:
    store = MemoryAnswers()

    def script(request: Request) -> Reply | Fault:
        return fault if "text 5" in request.text else Reply('{"score": 2}', delay_s=0.02)

    with ModelServer(script) as server:
        models = models_for(server, store)
        with pytest.raises(error):
            models.run_many(ScoreDocument(), TEXTS)
        kept = len(store.rows)
        assert 0 < kept < len(TEXTS)
        server._script = Reply('{"score": 2}')
        before = len(server.calls())
        assert len(models.run_many(ScoreDocument(), TEXTS)) == len(TEXTS)
        assert len(server.calls()) - before == len(TEXTS) - kept


def test_a_budget_ends_it_before_the_next_call() -> None:
    with ModelServer(Reply('{"score": 2}')) as server:
        models = models_for(server, MemoryAnswers(), budget=Budget(max_calls=5))
        with pytest.raises(BudgetExhausted):
            models.run_many(ScoreDocument(), TEXTS)
        assert len(server.calls()) == 5


def test_a_skill_has_its_own_budget_beside_the_run_s() -> None:
    with ModelServer(Reply('{"score": 2}')) as server:
        models = models_for(
            server,
            skills={"score_document": SkillModel(budget=Budget(max_calls=2))},
            budget=Budget(max_calls=3),
        )

        class Other(ScoreDocument):
            name = "list_facts"

        for text in TEXTS[:2]:
            models.run(ScoreDocument(), text)
        with pytest.raises(BudgetExhausted, match="score_document"):
            models.run(ScoreDocument(), TEXTS[2])
        models.run(Other(), TEXTS[2])
        with pytest.raises(BudgetExhausted, match="list_facts"):
            models.run(Other(), TEXTS[3])
        assert models.budget.run.spent.calls == 3
        assert models.budget.skills["score_document"].spent.calls == 2


def test_offline_answers_need_no_threads() -> None:
    seen: set[int] = set()

    class Watched(ScoreDocument):
        def offline(self, given: str) -> object:  # type: ignore[override]
            seen.add(threading.get_ident())
            return super().offline(given)

    found = Models.offline().run_many(Watched(), ["a", "bb"])
    assert scores(list(found)) == [1, 2]
    assert seen == {threading.get_ident()}
    assert Models.offline().concurrency("score_document") == 1


# --- an endpoint that is down -----------------------------------------------------


def test_an_endpoint_that_is_down_is_left_alone() -> None:
    with ModelServer(Fault(status=503)) as server:
        models = models_for(server)
        for text in TEXTS[:3]:
            with pytest.raises(ModelUnavailable) as caught:
                models.run(ScoreDocument(), text)
            assert not caught.value.halts
        with pytest.raises(EndpointDown, match=r"3 calls in a row failed, the last one: .*503") as down:
            models.run(ScoreDocument(), TEXTS[3])
        assert down.value.halts
        assert down.value.transient
        assert len(server.calls()) == 3
        assert models.budget.run.spent.calls == 3


def test_an_endpoint_gets_another_chance_after_a_while() -> None:
    limits = QUICK.model_copy(update={"max_wait_s": 0.05})
    answers = [Fault(status=503)] * 4 + [Reply('{"score": 2}')]
    with ModelServer(answers) as server:
        models = models_for(server, limits=limits)
        failures = 0
        for _ in range(200):
            try:
                models.run(ScoreDocument(), "x")
                break
            except ModelUnavailable:
                failures += 1
                threading.Event().wait(0.005)
        assert len(server.calls()) == 5
        assert failures >= 4
        assert models.run(ScoreDocument(), "y").value.score == 2


def test_failures_between_answers_are_no_outage() -> None:
    def script(request: Request) -> Reply | Fault:
        return Fault(status=500) if request.number % 3 else Reply('{"score": 2}')

    with ModelServer(script) as server:
        models = models_for(server)
        failures = []
        for number in range(30):
            try:
                models.run(ScoreDocument(), str(number))
            except ModelUnavailable as error:
                failures.append(error)
        assert len(failures) == 20
        assert not any(isinstance(error, EndpointDown) for error in failures)


# --- answers that were cut, formats that are ignored ---------------------------------


def test_a_cut_answer_is_asked_again_with_room_for_a_longer_one() -> None:
    def script(request: Request) -> Reply:
        long_enough = request.body["max_tokens"] > 100
        return Reply('{"score": 2}') if long_enough else Reply('{"score"', finish_reason="length")

    with ModelServer(script) as server:
        store = MemoryAnswers()
        models = models_for(server, store, max_output_tokens=100)
        assert models.run(ScoreDocument(), "长文").value.score == 2
        assert [call.body["max_tokens"] for call in server.calls()] == [100, 200]
        assert server.calls()[0].messages == server.calls()[1].messages
        models_for(server, store, max_output_tokens=100).run(ScoreDocument(), "长文")
        assert len(server.calls()) == 2


def test_where_no_longer_answer_is_allowed_a_cut_one_is_rejected() -> None:
    def script(request: Request) -> Reply | Fault:
        if request.body["max_tokens"] > 100:
            return Fault(status=400, message="max_tokens is too large")
        return Reply('{"score"', finish_reason="length")

    with ModelServer(script) as server:
        with pytest.raises(AnswerRejected, match="cut at the output limit") as caught:
            models_for(server, MemoryAnswers(), max_output_tokens=100).run(ScoreDocument(), "x")
        assert caught.value.reason == "truncated"


def test_a_format_that_is_ignored_is_given_up_after_three_answers() -> None:
    """The server takes the schema and does not show it to the model, which answers only where it reads it."""

    def script(request: Request) -> Reply:
        return Reply('{"score": 2}' if "JSON schema" in request.text else "It is a fine page.")

    with ModelServer(script) as server:
        models = models_for(server, MemoryAnswers())
        for text in TEXTS:
            assert models.run(ScoreDocument(), text).value.score == 2
        # three questions twice each, then once: the next format puts the schema into words
        assert len(server.calls()) == 3 * 2 + len(TEXTS) - 3

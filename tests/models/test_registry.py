"""Skills end to end: offline, and over a real loopback server with scripted answers and faults."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers
from models import Models, ModelSettings
from models.errors import (
    AnswerRejected,
    BudgetExhausted,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OfflineUnavailable,
)
from models.protocols import AnswerStore
from models.settings import Budget, Limits, Price, SkillModel
from tests.models.skills import JudgeFacts, MemoryAnswers, ScoreDocument
from tests.servers.model_server import Fault, ModelServer, Reply, Request, fenced, thinking

QUICK = Limits(retries=2, pause_s=0.01, concurrency=8)


def models_for(server: ModelServer, store: AnswerStore | None = None, **changes: object) -> Models:
    values = {"base_url": server.base_url, "model": "m", "api_key": None, "limits": QUICK, **changes}
    return Models(ModelSettings.model_validate(values), answers=store)


# --- offline ------------------------------------------------------------------


def test_offline_answers_by_rule() -> None:
    models = Models.offline()
    answer = models.run(ScoreDocument(), "abc")
    assert (answer.value.score, answer.source, answer.from_store) == (3, "offline", False)
    assert models.is_offline("score_document")
    assert models.identity(ScoreDocument()) == "offline/1"
    assert models.draws("score_document") == 1
    assert models.usage()["calls"] == 0
    assert models.usage()["skills"]["score_document"]["offline"] == 1


def test_what_is_not_honest_offline_is_absent() -> None:
    with pytest.raises(OfflineUnavailable):
        Models.offline().run(JudgeFacts(), "abc")
    with pytest.raises(OfflineUnavailable, match="several draws"):
        Models.offline().run(ScoreDocument(), "abc", draw=1)


def test_the_check_holds_offline_too() -> None:
    class Wrong(ScoreDocument):
        def offline(self, given: str) -> object:  # type: ignore[override]
            return self.output(score=9)

    with pytest.raises(AnswerRejected, match="score 9"):
        Models.offline().run(Wrong(), "abc")


def test_a_configured_skill_never_falls_back_to_its_rule() -> None:
    with ModelServer(Fault(status=500)) as server:
        models = models_for(server)
        with pytest.raises(ModelUnavailable):
            models.run(ScoreDocument(), "abc")
    assert not models.is_offline("score_document")
    assert models.usage()["skills"] == {}


# --- with a model ---------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [{"score": 4}, fenced({"score": 4}), thinking({"score": 4}), '{"score": 4,}']
)
def test_an_answer_is_read_checked_counted_and_stored(answer: object) -> None:
    store = MemoryAnswers()
    with ModelServer(answer) as server:  # type: ignore[arg-type]
        models = models_for(server, store, price=Price(input=1e6, output=1e6))
        found = models.run(ScoreDocument(), "abc")
        again = models.run(ScoreDocument(), "abc")
        assert len(server.requests) == 1
    assert (found.value.score, found.source, found.from_store, again.from_store) == (4, "m", False, True)
    assert [row.state for row in store.rows.values()] == ["accepted"]
    usage = models.usage()
    assert (usage["calls"], usage["cached"]) == (1, 1)
    assert usage["cost"] == usage["tokens_in"] + usage["tokens_out"]
    assert models.budget.run.spent.tokens == usage["tokens_in"] + usage["tokens_out"]


def test_a_failed_check_asks_once_again_with_the_reasons() -> None:
    store = MemoryAnswers()
    with ModelServer([{"score": 9}, {"score": 5}]) as server:
        found = models_for(server, store).run(ScoreDocument(), "abc")
        assert found.value.score == 5
        second = server.requests[1].messages
        assert second[:2] == server.requests[0].messages
        assert second[2] == {"role": "assistant", "content": '{"score": 9}'}
        assert "score 9 is not within 0 to 5" in second[3]["content"]
        assert sorted(row.state for row in store.rows.values()) == ["accepted", "refused"]
        # another process: what was paid for is used, no call
        again = models_for(server, store).run(ScoreDocument(), "abc")
        assert (again.value.score, again.from_store) == (5, True)
        assert len(server.requests) == 2


def test_a_second_failure_rejects_and_is_never_served() -> None:
    store = MemoryAnswers()
    with ModelServer([{"score": 9}, {"score": 8}, {"score": 2}]) as server:
        models = models_for(server, store)
        with pytest.raises(AnswerRejected, match="score 8") as caught:
            models.run(ScoreDocument(), "abc")
        assert caught.value.reason == "check"
        assert {row.state for row in store.rows.values()} == {"refused"}
        assert models.run(ScoreDocument(), "abc").value.score == 2
        assert models.usage()["skills"]["score_document"]["rejected"] == 1


def test_reject_is_final_at_once() -> None:
    with ModelServer({"score": 1, "note": "forbidden"}) as server:
        with pytest.raises(AnswerRejected, match="forbidden"):
            models_for(server, MemoryAnswers()).run(ScoreDocument(), "abc")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "reason", "requests"),
    [
        ("", "empty", 2),
        ("I would rather not.", "no_json", 2),
        ('{"score": 3', "no_json", 2),
        (Reply('{"score": 3}', finish_reason="length"), "truncated", 2),
        ({"points": 3}, "schema", 2),
        (Reply(None, refusal="I cannot help with that"), "refusal", 1),
    ],
)
def test_unreadable_answers_are_rejected_with_their_reason(
    answer: object, reason: str, requests: int
) -> None:
    store = MemoryAnswers()
    with ModelServer(answer) as server:  # type: ignore[arg-type]
        models = models_for(server, store)
        with pytest.raises(AnswerRejected) as caught:
            models.run(ScoreDocument(), "abc")
        assert (caught.value.reason, len(server.requests)) == (reason, requests)
        assert {row.state for row in store.rows.values()} == {"refused"}


def test_transient_faults_are_repeated_then_reported() -> None:
    with ModelServer([Fault(status=429, retry_after="0"), Fault("reset"), {"score": 1}]) as server:
        assert models_for(server).run(ScoreDocument(), "abc").value.score == 1
    with ModelServer(Fault("cut")) as server:
        with pytest.raises(ModelUnavailable) as caught:
            models_for(server).run(ScoreDocument(), "abc")
        assert caught.value.transient
        assert len(server.requests) == 3


def test_terminal_errors_are_not_repeated() -> None:
    with ModelServer({"score": 1}, api_key="right") as server:
        with pytest.raises(ModelRefused) as caught:
            models_for(server, api_key="wrong").run(ScoreDocument(), "abc")
        assert (caught.value.reason, len(server.requests)) == ("authentication", 1)
        assert models_for(server, api_key="right").run(ScoreDocument(), "abc").value.score == 1


def test_the_budget_stops_before_the_call() -> None:
    with ModelServer({"score": 1}) as server:
        models = models_for(server, MemoryAnswers(), budget=Budget(max_calls=1))
        models.run(ScoreDocument(), "abc")
        models.run(ScoreDocument(), "abc")  # from the store: free
        with pytest.raises(BudgetExhausted):
            models.run(ScoreDocument(), "other")
        assert len(server.requests) == 1


def test_repeats_of_calls_that_may_be_billed_stay_within_the_budget() -> None:
    with ModelServer(Fault("cut")) as server:
        models = models_for(server, budget=Budget(max_calls=2))
        with pytest.raises(BudgetExhausted):
            models.run(ScoreDocument(), "abc")
        assert len(server.requests) == 2


def test_draws_are_separate_answers() -> None:
    scores = iter(range(1, 4))
    with ModelServer(lambda request: {"score": next(scores)}) as server:
        models = models_for(
            server, MemoryAnswers(), skills={"score_document": SkillModel(draws=3, temperature=0.7)}
        )
        assert models.draws("score_document") == 3
        first = [models.run(ScoreDocument(), "abc", draw=draw).value.score for draw in range(3)]
        again = [models.run(ScoreDocument(), "abc", draw=draw).value.score for draw in range(3)]
    assert first == again == [1, 2, 3]


def test_skills_on_different_endpoints() -> None:
    with ModelServer({"score": 1}) as one, ModelServer({"score": 2}) as other:
        models = models_for(one, skills={"judge_facts": SkillModel(base_url=other.base_url, model="judge")})
        assert models.run(ScoreDocument(), "a").value.score == 1
        found = models.run(JudgeFacts(), "a")
        assert (found.value.score, found.source) == (2, "judge")
        assert models.identity(JudgeFacts()).startswith("judge/")


def test_threads_share_equal_questions_and_lose_nothing() -> None:
    store = MemoryAnswers()
    chance = random.Random(7)

    def script(request: Request) -> object:
        return Fault(status=500) if chance.random() < 0.2 else {"score": len(request.text) % 6}

    with ModelServer(script) as server:  # type: ignore[arg-type]
        models = models_for(server, store, limits=Limits(retries=8, pause_s=0.01, concurrency=4))
        texts = [f"text {number % 40}" for number in range(200)]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda text: models.run(ScoreDocument(), text).value.score, texts))
        assert server.most_in_flight <= 4
    assert len(answers) == 200
    assert len(store.rows) == 40
    assert models.usage()["calls"] == 40
    assert models.usage()["cached"] == 160
    assert len(server.requests) <= 40 * 1.5


def test_the_catalogue_as_store(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with ModelServer([{"score": 9}, {"score": 5}]) as server:
        first = models_for(server, CatalogueAnswers(catalogue)).run(ScoreDocument(), "苯")
        again = models_for(server, CatalogueAnswers(catalogue)).run(ScoreDocument(), "苯")
        assert (first.value, first.from_store) == (again.value, False)
        assert again.from_store
        assert len(server.requests) == 2


def test_a_crash_between_storing_and_reading_loses_nothing() -> None:
    store = MemoryAnswers()
    with ModelServer({"score": 4}) as server:
        models_for(server, store).run(ScoreDocument(), "abc")
        for row in store.rows.values():
            row.state = "stored"  # as left by a process that died before the verdict
        assert models_for(server, store).run(ScoreDocument(), "abc").from_store
        assert len(server.requests) == 1


def test_not_pickled_and_nothing_secret_shown() -> None:
    settings = ModelSettings.model_validate(
        {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key": "sk-secret-1"}
    )
    models = Models(settings)
    assert repr(models) == "Models(m)"
    with pytest.raises(TypeError, match="settings"):
        pickle.dumps(models)


def test_check_says_what_works_and_what_does_not() -> None:
    light: dict[str, object] = {"embeddings": {"cohesion": "ngram", "index": "ngram"}}
    with ModelServer({"ok": True}, formats=("json_object",)) as server:
        line = models_for(server, None, **light).check()
        assert "answers by json_object (all skills)" in line
        assert "ngram512, 512 dimensions" in line
    with pytest.raises(ModelError, match=r"m at http://127\.0\.0\.1"):
        models_for(server, None, **light).check()
    assert "offline" in Models(ModelSettings.model_validate({"api_key": None, **light})).check()

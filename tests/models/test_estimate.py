"""Estimates: the rehearsal asks nobody, its prompts are the real ones, its prefixes those of a server."""

from __future__ import annotations

from os.path import commonprefix
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from models import Models, ModelSettings, Verdict
from models.errors import AnswerRejected
from models.estimate import (
    SHAPES,
    Enough,
    Estimate,
    History,
    Prefixes,
    Rehearsal,
    by_rules,
    estimate,
    shared_beginning,
    summed,
)
from models.settings import SKILL_NAMES, Price, SkillModel
from models.tokens import count_words
from tests.models.skills import JudgeFacts, MemoryAnswers, MemoryVectors, Score, ScoreDocument
from tests.servers.model_server import ModelServer, Reply

NOWHERE = "http://127.0.0.1:9/v1"
PRICE = Price(input=1e6, cached=1e5, output=2e6)  # money is tokens: 1 in, 0.1 cached, 2 out


def settings(base_url: str = NOWHERE, **values: Any) -> ModelSettings:
    return ModelSettings(base_url=base_url, model="m", api_key=None, **values)


def words(skill: ScoreDocument, given: str) -> int:
    return sum(count_words(message.content) for message in skill.messages(given))


def test_offline_costs_nothing() -> None:
    found = estimate(Models.offline(), ScoreDocument(), ["a", "b"])
    assert (found.calls, found.tokens_in, found.cost, found.counter) == (0, 0, 0.0, "words")


def test_calls_tokens_prefix_and_money() -> None:
    models = Models(
        settings(max_output_tokens=50, price=PRICE, skills={"score_document": SkillModel(draws=2)})
    )
    prompt = words(ScoreDocument(), "苯" * 30)
    found = estimate(models, ScoreDocument(), ["苯" * 30])
    assert (found.calls, found.certain, found.stored, found.basis) == (2, 2, 0, "exact")
    assert (found.tokens_in, found.tokens_cached) == (2 * prompt, prompt)
    assert found.tokens_out == 2 * 50  # the rule of thumb, but never more than the limit
    assert found.cost == pytest.approx(prompt + 0.1 * prompt + 2 * 100)
    assert estimate(Models(settings()), ScoreDocument(), ["x"]).cost is None


def test_a_batch_is_priced_as_a_batch() -> None:
    online = estimate(Models(settings(price=PRICE)), ScoreDocument(), ["x"])
    batch = estimate(Models(settings(price=PRICE, transport="batch")), ScoreDocument(), ["x"])
    assert online.cost is not None
    assert batch.cost == pytest.approx(online.cost * PRICE.batch)


def test_at_most_is_more_than_the_worst_answers_cost() -> None:
    """Every answer fails its check once, as long as allowed: still within what was stated."""
    bad, good = Reply('{"score": 9}', tokens_out=50), Reply('{"score": 3}', tokens_out=50)
    with ModelServer([bad, good, bad, good]) as server:
        models = Models(settings(server.base_url, max_output_tokens=50, price=PRICE), answers=MemoryAnswers())
        found = estimate(models, ScoreDocument(), ["a", "b"])
        for text in ("a", "b"):
            models.run(ScoreDocument(), text)
        used = models.usage()
    assert used["calls"] == 4
    assert found.cost_limit is not None
    assert found.tokens_out_limit >= used["tokens_out"] == 200
    prompts = sum(count_words(request.text) for request in server.calls())  # the server has another counter
    assert found.cost_limit >= prompts + 2 * used["tokens_out"]
    assert found.cost_limit > (found.cost or 0)


def test_what_is_stored_is_not_estimated_again() -> None:
    store = MemoryAnswers()
    with ModelServer([{"score": 9}, {"score": 5}]) as server:
        models = Models(settings(server.base_url), answers=store)
        models.run(ScoreDocument(), "a")  # accepted at the second attempt
        found = estimate(models, ScoreDocument(), ["a", "b"], answers=store)
        assert len(server.calls()) == 2
    assert (found.calls, found.stored) == (1, 1)


def test_a_refused_answer_without_its_repeat_costs_what_is_then_asked() -> None:
    store = MemoryAnswers()
    with ModelServer([{"score": 9}, {"score": 5}]) as server:
        models = Models(settings(server.base_url), answers=store)
        models.run(ScoreDocument(), "a")
        second = next(key for key, row in store.rows.items() if row.state == "accepted")
        del store.rows[second]
        before = {key: (row.state, row.reason) for key, row in store.rows.items()}
        found = estimate(models, ScoreDocument(), ["a"], answers=store)
        assert {key: (row.state, row.reason) for key, row in store.rows.items()} == before
        models.run(ScoreDocument(), "a")
        asked = [request.text for request in server.calls()[2:]]
    assert found.calls == len(asked) == 1
    assert found.tokens_in == pytest.approx(count_words(asked[0]), abs=1)


def test_equal_questions_are_paid_once() -> None:
    found = estimate(Models(settings()), ScoreDocument(), ["a", "b", "a"])
    assert (found.calls, found.stored) == (2, 1)


def test_history_sizes_answers_and_repeats() -> None:
    models = Models(settings(price=PRICE, max_output_tokens=1000))
    short = estimate(models, ScoreDocument(), ["a", "b"], history=History(19, 7.0, 0.5))
    assert (short.sized_by, short.repeats) == ("rule of thumb", 0)
    assert short.tokens_out == 2 * SHAPES["score_document"].fixed
    found = estimate(models, ScoreDocument(), ["a", "b"], history=History(20, 7.0, 0.5))
    assert (found.calls, found.repeats, found.tokens_out) == (2, 1, 21)
    prompt = words(ScoreDocument(), "a")
    assert found.tokens_in == 3 * prompt + 7  # the repeat carries the first answer
    assert found.tokens_cached >= prompt
    assert found.sized_by == "20 stored answers"


def test_every_skill_has_a_shape() -> None:
    assert set(SHAPES) == set(SKILL_NAMES)


# --- the rehearsal ---------------------------------------------------------------------------------------------


class Second(ScoreDocument):
    """A skill whose questions follow the first one's answers."""

    name: ClassVar[str] = "judge_facts"
    output: ClassVar[type[BaseModel]] = Score

    def check(self, given: str, answer: Score) -> Verdict:
        return Verdict()


def test_what_follows_a_stand_in_is_projected() -> None:
    rehearsal = Rehearsal(settings(), stand_ins={"score_document": by_rules})
    answer = rehearsal.run(ScoreDocument(), "a")
    assert answer.value == Score(score=1)
    with pytest.raises(AnswerRejected):
        rehearsal.run(Second(), "a")
    rehearsal.begin()
    with pytest.raises(AnswerRejected):
        rehearsal.run(Second(), "b")
    tallies = rehearsal.take()
    assert tallies["score_document"].estimate("words", None, "exact").basis == "exact"
    found = tallies["judge_facts"].estimate("words", None, "exact")
    assert (found.calls, found.certain, found.basis) == (2, 1, "projected")
    assert rehearsal.take() == {}


@pytest.mark.parametrize(("independent", "certain"), [((), 1), (("score_document",), 2)])
def test_questions_of_one_skill_depend_on_each_other_unless_told(
    independent: tuple[str, ...], certain: int
) -> None:
    rehearsal = Rehearsal(settings(), stand_ins={"score_document": by_rules}, independent=independent)
    for text in ("a", "b"):
        rehearsal.run(ScoreDocument(), text)
    rehearsal.run(ScoreDocument(), "a", draw=1)  # another draw of a certain prompt is certain
    assert rehearsal.take()["score_document"].certain == certain + 1


def test_first_only_ends_an_item_at_the_second_skill_and_at_vectors() -> None:
    rehearsal = Rehearsal(settings(), stand_ins={"score_document": by_rules})
    rehearsal.first_only = True
    rehearsal.run(ScoreDocument(), "a")
    with pytest.raises(Enough):
        rehearsal.run(Second(), "a")
    with pytest.raises(Enough):
        rehearsal.embedder("cohesion").passages(["a"])
    with pytest.raises(Enough):
        rehearsal.perplexity().loss("a")
    assert set(rehearsal.take()) == {"score_document"}


def test_endpoints_for_vectors_and_losses_are_not_asked() -> None:
    with ModelServer() as server:
        chosen = settings(
            embeddings={"base_url": server.base_url, "model": "e"},
            perplexity={"backend": "completions", "base_url": server.base_url, "model": "p"},
        )
        vectors = MemoryVectors()
        rehearsal = Rehearsal(chosen, MemoryAnswers(), vectors, stand_ins={"score_document": by_rules})
        assert rehearsal.embedder("index").queries(["苯", "acetone"]).shape[0] == 2
        assert rehearsal.perplexity().loss("苯", "甲") > 0
        assert server.requests == []
        assert vectors.puts == 0
    rehearsal.run(ScoreDocument(), "a")
    assert rehearsal.take()["score_document"].certain == 0


def test_a_question_in_an_open_batch_job_is_paid_for() -> None:
    rehearsal = Rehearsal(settings(), stand_ins={"score_document": by_rules}, waits=lambda key: True)
    rehearsal.run(ScoreDocument(), "a")
    tally = rehearsal.take()["score_document"]
    assert (tally.calls, tally.stored) == (0, 1)


def test_skills_without_a_model_are_answered_by_rules_and_not_counted() -> None:
    chosen = ModelSettings(skills={"judge_facts": SkillModel(base_url=NOWHERE, model="m")}, api_key=None)
    rehearsal = Rehearsal(chosen)
    assert rehearsal.run(ScoreDocument(), "abc").source == "offline"
    with pytest.raises(AnswerRejected):
        rehearsal.run(JudgeFacts(), "abc")
    assert set(rehearsal.take()) == {"judge_facts"}


# --- prefixes --------------------------------------------------------------------------------------------------

texts = st.text(alphabet="ab苯\n", max_size=12)


@given(texts, texts)
def test_shared_beginning_is_the_common_prefix(one: str, other: str) -> None:
    assert shared_beginning(one, other) == len(commonprefix([one, other]))  # noqa: RUF071 - characters


@given(st.lists(texts, max_size=12))
def test_prefixes_find_the_longest_of_all_before(prompts: list[str]) -> None:
    known = Prefixes()
    for at, prompt in enumerate(prompts):
        expected = max((shared_beginning(prompt, other) for other in prompts[:at]), default=0)
        assert known.shared(prompt) == expected


@given(st.lists(texts, max_size=20), st.integers(1, 30))
def test_prefixes_forget_the_oldest(prompts: list[str], size: int) -> None:
    """Never more than with everything remembered, and the newest prompt is always known."""
    small, large = Prefixes(size), Prefixes()
    for prompt in prompts:
        assert small.shared(prompt) <= large.shared(prompt)
        assert small.shared(prompt) == len(prompt)


def test_prefixes_agree_with_a_server_that_reports_them() -> None:
    """Chinese prompts, of which a share of the characters is the same share of the tokens."""
    documents = ["苯" * 4000 + tail for tail in ("甲", "乙", "丙")] + ["氨" * 3000]
    with ModelServer({"score": 3}) as server:
        models = Models(settings(server.base_url), answers=MemoryAnswers())
        found = estimate(models, ScoreDocument(), documents)
        for document in documents:
            models.run(ScoreDocument(), document)
        used = models.usage()
    assert found.calls == used["calls"] == 4
    share = found.tokens_cached / found.tokens_in
    assert share == pytest.approx(used["tokens_cached"] / used["tokens_in"], abs=0.03)
    assert share > 0.5


def test_sums_keep_the_weakest_basis_and_unknown_money() -> None:
    one = Estimate("a", "m", "words", calls=1, cost=1.0, cost_limit=2.0)
    two = Estimate("b", "m", "words", basis="sampled", calls=2, cost=None, cost_limit=1.0)
    total = summed([one, two])
    assert total is not None
    assert (total.calls, total.basis, total.cost, total.cost_limit) == (3, "sampled", None, 3.0)
    assert summed([]) is None

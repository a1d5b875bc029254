import pytest

from models import Models, ModelSettings
from models.estimate import estimate
from models.settings import Price, SkillModel
from models.tokens import count_words
from tests.models.skills import MemoryAnswers, ScoreDocument
from tests.servers.model_server import ModelServer


def test_offline_costs_nothing() -> None:
    found = estimate(Models.offline(), ScoreDocument(), ["a", "b"])
    assert (found.calls, found.tokens_in, found.cost, found.counter) == (0, 0, 0.0, "words")


def test_calls_tokens_prefix_and_money() -> None:
    settings = ModelSettings(
        base_url="http://127.0.0.1:9/v1",
        model="m",
        api_key=None,
        max_output_tokens=50,
        price=Price(input=1e6, cached=0, output=1e6),
        skills={"score_document": SkillModel(draws=2)},
    )
    models = Models(settings)
    document = "苯" * 30
    found = estimate(models, ScoreDocument(), [document])
    prompt = count_words("\n".join(m.content for m in ScoreDocument().messages(document)))
    assert (found.calls, found.stored, found.tokens_in, found.tokens_cached) == (2, 0, 2 * prompt, prompt)
    assert found.tokens_out_limit == 100
    assert found.cost == pytest.approx(prompt + 100)
    assert (
        estimate(
            Models(ModelSettings(base_url="http://127.0.0.1:9/v1", model="m")), ScoreDocument(), ["x"]
        ).cost
        is None
    )


def test_what_is_stored_is_not_estimated_again() -> None:
    store = MemoryAnswers()
    with ModelServer([{"score": 9}, {"score": 5}, {"score": 1}]) as server:
        settings = ModelSettings(base_url=server.base_url, model="m", api_key=None)
        Models(settings, answers=store).run(ScoreDocument(), "a")  # accepted at the second attempt
        found = estimate(Models(settings, answers=store), ScoreDocument(), ["a", "b"])
    assert (found.calls, found.stored) == (1, 1)

import math
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import Models, ModelSettings
from models.char_lm import CharModel
from models.errors import ModelRefused, ModelUnavailable
from models.perplexity import Memoised, NgramPerplexity
from tests.models.skills import MemoryAnswers
from tests.servers.model_server import Fault, ModelServer, adaptive_logprobs

BACKGROUND = ["苯是易燃液体，遇明火、高热极易燃烧爆炸。", "Ammonia is a colourless gas with a pungent smell."]


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("苯的闪点为 -11 ℃，属于易燃液体。", "苯是一种易燃液体，闪点很低。", "氨是有刺激性气味的气体。"),
        (
            "Ammonia gas irritates the eyes.",
            "Ammonia is a pungent gas.",
            "Quartz resists most mineral acids.",
        ),
    ],
)
def test_a_related_context_explains_more(text: str, near: str, far: str) -> None:
    model = NgramPerplexity(BACKGROUND)
    assert model.loss(text, near) < model.loss(text, far)
    assert model.loss(text, near) < model.loss(text)


def test_empty_text_is_undefined_and_empty_context_is_none() -> None:
    model = NgramPerplexity(BACKGROUND)
    assert math.isnan(model.loss(""))
    assert math.isnan(model.loss("", "context"))
    assert model.loss("x", "") == model.loss("x")


def test_without_background_it_is_uniform() -> None:
    model = NgramPerplexity([])
    assert model.name == "ngram/uniform"
    assert model.loss("苯 abc") == pytest.approx(math.log(0x110000))


def test_the_name_follows_the_background() -> None:
    assert NgramPerplexity(["ab", "c"]).name != NgramPerplexity(["a", "bc"]).name
    assert NgramPerplexity(BACKGROUND).name == NgramPerplexity(list(BACKGROUND)).name


short = st.text("ab苯 。", max_size=12)


@given(short, st.lists(short, max_size=3), short)
def test_it_is_a_distribution(context: str, background: list[str], history: str) -> None:
    """The probabilities of the next character, given context and the text so far, add up to one."""
    model = CharModel(background)
    seen = set("".join(background) + context + history)

    def probability(char: str) -> float:
        if not history and not context:
            return math.exp(-model.loss(char))
        whole = model.loss(history + char, context) * (len(history) + 1)
        before = model.loss(history, context) * len(history) if history else 0.0
        return math.exp(before - whole)

    unseen = "\U0010fffd"
    total = sum(map(probability, sorted(seen))) + (0x110000 - len(seen)) * probability(unseen)
    assert total == pytest.approx(1.0, rel=1e-6)


@given(st.text(min_size=1, max_size=60), st.text(max_size=60))
def test_losses_are_finite_positive_and_repeatable(text: str, context: str) -> None:
    model = NgramPerplexity(BACKGROUND)
    value = model.loss(text, context)
    assert 0 < value < 30
    assert value == NgramPerplexity(BACKGROUND).loss(text, context)


def test_truncation_cuts_the_end_of_the_text_and_the_start_of_the_context() -> None:
    model = NgramPerplexity(BACKGROUND, max_characters=4)
    assert model.loss("苯的闪点很低", "随便什么易燃液体") == model.loss("苯的闪点", "易燃液体")


def test_results_are_memoised_and_the_memo_is_bounded() -> None:
    class Counting:
        name = "counting"
        calls = 0

        def loss(self, text: str, context: str = "") -> float:
            self.calls += 1
            return float(len(text))

    inner = Counting()
    memo = Memoised(inner, size=2)
    assert [memo.loss("a", "b"), memo.loss("a", "b"), memo.loss("ab"), memo.loss("a", "b")] == [1, 1, 2, 1]
    assert inner.calls == 2
    memo.loss("c")
    memo.loss("d")
    memo.loss("a", "b")
    assert inner.calls == 5


# --- completions endpoint --------------------------------------------------------


def completions(server: ModelServer, store: MemoryAnswers | None = None, cut: int = 4000) -> Models:
    return Models(
        ModelSettings.model_validate(
            {
                "api_key": None,
                "limits": {"retries": 1, "pause_s": 0.01},
                "perplexity": {
                    "backend": "completions",
                    "base_url": server.base_url,
                    "model": "lm",
                    "max_characters": cut,
                },
            }
        ),
        answers=store,
    )


def test_the_loss_is_over_the_text_and_only_the_text() -> None:
    with ModelServer() as server:
        perplexity = completions(server).perplexity()
        value = perplexity.loss("苯易燃", "苯是")
        body = server.requests[0].body
    assert (body["prompt"], body["echo"], body["max_tokens"]) == ("苯是苯易燃", True, 1)
    expected = [v for v in adaptive_logprobs(list("苯是苯易燃"))[2:] if v is not None]
    assert value == pytest.approx(-sum(expected) / 3)
    assert perplexity.name == "completions/lm"


def test_a_text_alone_stands_after_a_newline() -> None:
    with ModelServer() as server:
        value = completions(server).perplexity().loss("苯易燃")
        assert server.requests[0].body["prompt"] == "\n苯易燃"
    expected = [v for v in adaptive_logprobs(list("\n苯易燃"))[1:] if v is not None]
    assert len(expected) == 3
    assert value == pytest.approx(-sum(expected) / 3)


def test_straddling_tokens_belong_to_the_context() -> None:
    with ModelServer() as server:
        value = completions(server).perplexity().loss("mine 苯", "benzene and for")
    tokens = ["benzene", " and", " formine", " ", "苯"]
    expected = [v for v in adaptive_logprobs(tokens)[3:] if v is not None]
    assert value == pytest.approx(-sum(expected) / 2)


def test_losses_are_paid_for_once() -> None:
    store = MemoryAnswers()
    with ModelServer() as server:
        first = completions(server, store).perplexity()
        values = [
            first.loss("苯", "a"),
            first.loss("苯", "a"),
            completions(server, store).perplexity().loss("苯", "a"),
        ]
        assert len(server.requests) == 1
    assert len(set(values)) == 1
    assert [row.skill for row in store.rows.values()] == ["perplexity"]


def test_calls_are_counted_apart_from_skills() -> None:
    with ModelServer() as server:
        models = completions(server, MemoryAnswers())
        models.perplexity().loss("苯", "a \ud800")
        row = models.usage()["skills"]["perplexity"]
    assert (row["calls"], row["tokens_in"]) == (1, 4)


def test_an_endpoint_that_does_not_echo_is_refused() -> None:
    with ModelServer(echoes=False) as server, pytest.raises(ModelRefused) as caught:
        completions(server).perplexity().loss("苯", "a")
    assert caught.value.reason == "no_echo"


def test_endpoint_faults() -> None:
    with ModelServer([Fault("reset"), {}]) as server:
        assert completions(server).perplexity().loss("苯", "a") > 0
    with ModelServer(Fault(status=502)) as server, pytest.raises(ModelUnavailable):
        completions(server).perplexity().loss("苯", "a")


@pytest.mark.skipif(find_spec("transformers") is not None, reason="the extra local-lm is installed")
def test_the_local_model_says_which_extra_is_missing() -> None:
    models = Models(
        ModelSettings.model_validate({"perplexity": {"backend": "transformers", "model": "folder"}})
    )
    with pytest.raises(ModelRefused, match=r"hchemsafety\[local-lm\]"):
        models.perplexity()

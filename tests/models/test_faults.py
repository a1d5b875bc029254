"""The model layer on a server that fails: every fault kind alone, all of them mixed, and the faults themselves."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from models import Message, Models, ModelSettings, Skill, Verdict
from models.errors import AnswerRejected, ModelError, ModelUnavailable
from models.languages import wrong_language
from models.protocols import AnswerStore, VectorStore
from models.settings import Limits
from tests.models.skills import JudgeFacts, MemoryAnswers, MemoryVectors, ScoreDocument
from tests.servers.faults import ANSWERS, KINDS, TRANSPORT, Faults, wrong
from tests.servers.model_server import Fault, ModelServer, Reply, Request, as_reply


@dataclass(frozen=True)
class Page:
    text: str
    language: str


class Statement(BaseModel):
    quote: str
    value: str
    reason: str


class FindFlashPoint(Skill[Page, Statement]):
    """Wants the sentence with the flash point; the check proves quote, value and language."""

    name: ClassVar[str] = "extract_assertions"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Statement

    def messages(self, given: Page) -> list[Message]:
        ask = "找出闪点所在的句子。" if given.language == "zh" else "Find the sentence with the flash point."
        return [Message("system", ask), Message("user", given.text)]

    def check(self, given: Page, answer: Statement) -> Verdict:
        problems = []
        if answer.quote not in given.text:
            problems.append("the quote does not stand on the page")
        if answer.value not in answer.quote:
            problems.append("the value does not stand in the quote")
        if other := wrong_language(answer.reason, given.language):
            problems.append(other)
        return Verdict.ask_again(*problems) if problems else Verdict()

    def offline(self, given: Page) -> Statement:
        raise NotImplementedError


def page(number: int) -> Page:
    """A made-up page, even numbers in Chinese."""
    if number % 2 == 0:
        return Page(f"第{number}号试剂为无色液体。其闪点为{10 + number} ℃（闭杯）。应远离火源。", "zh")
    return Page(
        f"Reagent {number} is a liquid. Its flash point is {10 + number} °C. Keep it away from fire.", "en"
    )


def right(request: Request) -> dict[str, Any]:
    """The right answer, read from the page in the request."""
    text = request.messages[1]["content"]
    found = re.search(r"其闪点为(\d+ ℃)|flash point is (\d+ °C)", text)
    assert found is not None
    reason = (
        "这一句写明了闪点的数值与测定方法。"
        if found[1]
        else "This sentence states the flash point of the reagent."
    )
    return {"quote": found[0], "value": found[1] or found[2], "reason": reason}


def models_for(
    server: ModelServer,
    store: AnswerStore | None = None,
    vectors: VectorStore | None = None,
    **changes: object,
) -> Models:
    limits = Limits(retries=2, pause_s=0.01, concurrency=8, give_up_after=100)
    values = {"base_url": server.base_url, "model": "m", "api_key": None, "limits": limits, "timeout_s": 60.0}
    return Models(ModelSettings.model_validate({**values, **changes}), answers=store, vectors=vectors)


# --- one kind alone --------------------------------------------------------------

REASONS = {
    "429": "rate_limit",
    "500": "http_500",
    "502": "http_502",
    "503": "http_503",
    "reset": "reset",
    "cut": "reset",
    "not_json": "malformed",
}


@pytest.mark.parametrize("number", [0, 1], ids=["zh", "en"])
@pytest.mark.parametrize("kind", REASONS)
def test_a_reply_that_never_arrives_is_asked_for_again_then_left_for_the_next_run(
    kind: str, number: int
) -> None:
    store = MemoryAnswers()
    with ModelServer(right, faults=Faults(1.0, kinds=(kind,))) as server:
        with pytest.raises(ModelUnavailable) as caught:
            models_for(server, store).run(FindFlashPoint(), page(number))
        assert (caught.value.reason, server.counts.faults) == (REASONS[kind], {kind: 3})
        assert store.rows == {}
        server.faults = None
        answer = models_for(server, store).run(FindFlashPoint(), page(number))
    assert answer.value.value in page(number).text
    assert server.counts.answers == {"extract_assertions": 1}


def test_a_slow_reply_in_time_is_an_answer() -> None:
    with ModelServer(right, faults=Faults(1.0, kinds=("slow",))) as server:
        assert models_for(server).run(FindFlashPoint(), page(1)).value.value == "11 °C"
        assert (server.counts.faults, server.counts.answers.total()) == ({"slow": 1}, 1)
        server.faults = Faults(1.0, kinds=("slow",), delay_s=0.5)
        with pytest.raises(ModelUnavailable, match="no answer in time"):
            models_for(server, timeout_s=0.1).run(FindFlashPoint(), page(3))


@pytest.mark.parametrize("number", [0, 1], ids=["zh", "en"])
@pytest.mark.parametrize(
    ("kind", "reason", "calls"),
    [
        ("malformed", "no_json", 2),
        ("schema", "schema", 2),
        ("empty", "empty", 2),
        ("truncated", "truncated", 2),
        ("refusal", "refusal", 1),
        ("number", "check", 2),
        ("language", "check", 2),
    ],
)
def test_a_wrong_answer_is_asked_again_once_then_rejected_and_never_served(
    kind: str, reason: str, calls: int, number: int
) -> None:
    store = MemoryAnswers()
    with ModelServer(right, faults=Faults(1.0, kinds=(kind,))) as server:
        with pytest.raises(AnswerRejected) as caught:
            models_for(server, store).run(FindFlashPoint(), page(number))
        assert (caught.value.reason, server.counts.calls.total()) == (reason, calls)
        assert server.counts.faults == {kind: calls}
        assert {row.state for row in store.rows.values()} == {"refused"}
        server.faults = None
        models_for(server, store).run(FindFlashPoint(), page(number))
        assert server.counts.answers.total() == 1


def test_doubled_rows_of_embeddings_are_never_taken() -> None:
    vectors = MemoryVectors()
    texts = [f"第{number}句 about acetone" for number in range(10)]
    endpoint = {"embeddings": {"index": "endpoint", "model": "e", "batch_size": 4}}
    with ModelServer(faults=Faults(1.0, kinds=("duplicated_rows",))) as server:
        endpoint["embeddings"]["base_url"] = server.base_url
        with pytest.raises(ModelError, match="8 vectors for 4 texts"):
            models_for(server, None, vectors, **endpoint).embedder("index").passages(texts)
        assert vectors.rows == {}
        server.faults = Faults(0.4, seed=3, kinds=TRANSPORT)
        limits = Limits(retries=8, pause_s=0.01)
        found = (
            models_for(server, None, vectors, **{**endpoint, "limits": limits})
            .embedder("index")
            .passages(texts)
        )
        assert server.counts.faults.total() > server.counts.faults["duplicated_rows"]
        server.faults = None
        assert np.array_equal(found, models_for(server, **endpoint).embedder("index").passages(texts))


# --- all of them, mixed -----------------------------------------------------------


def test_a_fifth_of_all_calls_fails_and_nothing_is_lost_or_paid_twice() -> None:
    count = 240
    store = MemoryAnswers()
    with ModelServer(right, faults=Faults(0.2, seed=5)) as server:
        models = models_for(server, store)

        def ask(number: int) -> Statement | ModelError:
            try:
                return models.run(FindFlashPoint(), page(number)).value
            except ModelError as error:
                return error

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(count)))
        faults = Counter(server.counts.faults)
        assert server.counts.calls.total() <= 1.3 * count
        assert set(faults) >= {"429", "500", "reset", "cut", "not_json", "malformed", "number", "language"}
        for number, answer in enumerate(found):
            if isinstance(answer, Statement):
                assert f"{10 + number} " in answer.value
            else:
                assert isinstance(answer, AnswerRejected | ModelUnavailable)
                assert answer.reason
        answered = sum(isinstance(answer, Statement) for answer in found)
        assert answered >= 0.9 * count
        assert server.counts.answers.total() == answered  # each right answer was given, paid and used once

        failed = [number for number, answer in enumerate(found) if isinstance(answer, ModelUnavailable)]
        server.faults = None
        before = server.counts.calls.total()
        again = models_for(server, store)
        for number, answer in enumerate(found):
            if not isinstance(answer, AnswerRejected):
                assert again.run(FindFlashPoint(), page(number)).value.value in page(number).text
        assert server.counts.calls.total() - before == len(failed)


def test_the_same_seed_fails_the_same_calls_whatever_their_order() -> None:
    def spoilt(order: list[int], threads: int) -> tuple[Counter[str], list[bool]]:
        with ModelServer(right, faults=Faults(0.3, seed=11, kinds=(*ANSWERS, "500"))) as server:
            models = models_for(server, limits=Limits(retries=0, give_up_after=1000))
            done = {}

            def ask(number: int) -> None:
                try:
                    models.run(FindFlashPoint(), page(number))
                    done[number] = True
                except ModelError:
                    done[number] = False

            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(ask, order))
            return server.counts.faults, [done[number] for number in sorted(done)]

    shuffled = list(range(60))
    random.Random(1).shuffle(shuffled)
    assert spoilt(list(range(60)), 1) == spoilt(shuffled, 6)


# --- per skill ------------------------------------------------------------------


@pytest.mark.parametrize("formats", [("json_schema", "json_object"), ("json_object",), ()])
def test_scripts_faults_and_counts_by_skill_in_every_response_format(formats: tuple[str, ...]) -> None:
    with ModelServer(
        {"score": 1},
        formats=formats,
        skills={"extract_assertions": right, "score_document": [{"score": 9}, {"score": 4}]},
        faults={"judge_facts": Faults(1.0, kinds=("503",))},
    ) as server:
        models = models_for(server)
        found = models.run(FindFlashPoint(), page(1))
        assert found.value.value == "11 °C"
        assert server.counts.calls["extract_assertions"] == 3 - len(formats)
    with ModelServer(
        {"score": 1},
        skills={"score_document": [{"score": 9}, {"score": 4}]},
        faults={"judge_facts": Faults(1.0, kinds=("503",))},
    ) as server:
        models = models_for(server)
        assert models.run(ScoreDocument(), "abc").value.score == 4
        with pytest.raises(ModelUnavailable):
            models.run(JudgeFacts(), "abc")
        assert server.counts.calls == {"score_document": 2, "judge_facts": 3}
        assert (server.counts.answers, server.counts.faults) == ({"score_document": 2}, {"503": 3})


def test_a_scripts_own_fault_is_counted_and_not_spoilt() -> None:
    script = [Fault(status=500), {"score": 2}]
    with ModelServer(script, faults=Faults(0.0)) as server:  # type: ignore[arg-type]
        assert models_for(server).run(ScoreDocument(), "abc").value.score == 2
        assert (server.counts.faults, server.counts.answers) == ({"500": 1}, {"score_document": 1})


# --- the faults themselves --------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=30)
leaves = st.one_of(texts, st.integers(-999, 999), st.booleans(), st.none())
values = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.one_of(
        leaves, st.lists(leaves, max_size=3), st.dictionaries(st.sampled_from("xyz"), leaves, max_size=2)
    ),
    min_size=1,
    max_size=4,
)


@given(values, st.sampled_from(ANSWERS), st.integers(0, 99))
@settings(max_examples=300, deadline=None)
def test_no_spoilt_answer_is_the_right_one(value: dict[str, Any], kind: str, seed: int) -> None:
    given_ = as_reply(value)
    spoilt = wrong(kind, given_, random.Random(seed))
    assert (spoilt.content, spoilt.finish_reason, spoilt.refusal) != (given_.content, "stop", None)
    if kind in ("number", "language") and _reads(spoilt.content):
        changed = json.loads(spoilt.content or "")
        assert changed != value
        assert _shape(changed) == _shape(value)


@given(st.integers(0, 10**6).map(str), st.integers(0, 99))
def test_a_hallucinated_number_differs_in_one_digit(number: str, seed: int) -> None:
    given_ = Reply(json.dumps({"quote": f"boils at {number} °C", "score": 3}))
    spoilt = json.loads(wrong("number", given_, random.Random(seed)).content or "")
    assert spoilt["score"] == 3
    found = spoilt["quote"].removeprefix("boils at ").removesuffix(" °C")
    assert len(found) == len(number)
    assert sum(one != other for one, other in zip(found, number, strict=True)) == 1


@given(st.integers(0, 10**9), st.floats(0, 1), st.integers(0, 5))
def test_a_draw_depends_on_seed_question_and_repeat_alone(seed: int, share: float, times: int) -> None:
    body = {"messages": [{"role": "user", "content": "苯"}], "model": "m"}
    faults = Faults(share, seed)
    drawn = faults.draw("/v1/chat/completions", body, times)
    assert drawn == Faults(share, seed).draw("/v1/chat/completions", dict(reversed(body.items())), times)
    assert drawn is None or drawn in KINDS
    assert share > 0 or drawn is None


def test_the_share_and_all_kinds_are_met() -> None:
    faults = Faults(0.2, seed=1)
    drawn = [faults.draw("/v1/chat/completions", {"n": number}, 0) for number in range(5000)]
    given_ = Counter(kind for kind in drawn if kind)
    assert 0.18 < given_.total() / 5000 < 0.22
    assert set(given_) == {*TRANSPORT, *ANSWERS}
    assert min(given_.values()) > 0.5 * given_.total() / len(given_)
    with pytest.raises(ValueError, match="unknown fault kinds"):
        Faults(0.2, kinds=("typo",))


def _reads(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return type(value)

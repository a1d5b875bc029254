"""The model layer against a real server: llama.cpp with a model that answers in form and not in sense.

    make test-local-llm

Deselected in the ordinary run (``addopts`` in pyproject.toml).
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar, Literal

import openai
import pytest
from openai.types.shared_params import ResponseFormatJSONSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers
from models import Answer, Message, Models, ModelSettings, Skill
from models.errors import AnswerRejected, ModelRefused
from models.protocols import AnswerStore
from models.settings import Price
from tests.conftest import missing
from tests.models.skills import MemoryAnswers
from tests.servers.llama import LlamaServer, model_file

pytestmark = pytest.mark.local_llm


class Hazard(BaseModel):
    """What no model would write unless the schema makes it: the prompts name none of these words."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["易燃", "corrosive", "无危险"]
    level: int = Field(ge=0, le=5)
    certain: bool


@dataclass(frozen=True)
class Sheet:
    """A text and a question about it."""

    text: str
    question: str = "Is it dangerous?"
    language: str = "en"


class JudgeSheet(Skill[Sheet, Hazard]):
    """Asks for prose, so that JSON comes from the schema alone."""

    name: ClassVar[str] = "score_document"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Hazard
    shares_prefix: ClassVar[bool] = True

    def messages(self, given: Sheet) -> list[Message]:
        zh = given.language == "zh"
        wish = "请用一句话回答，不要列表。" if zh else "Answer in one sentence of prose."
        return [
            Message("user", f"<document>\n{given.text}\n</document>"),
            Message("user", f"{given.question}{wish}"),
        ]

    def offline(self, given: Sheet) -> Hazard:
        raise NotImplementedError  # never asked without a model here


ACETONE = Sheet("Acetone is a clear liquid with a flash point of -20 °C. " * 6)
BENZENE = Sheet("苯是无色透明液体，闪点为零下十一摄氏度，不溶于水。" * 4, "它危险吗？", "zh")


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    if model_file() is None:
        missing("llama.cpp with its model (make test-local-llm)")
    with LlamaServer() as started:
        yield started


def settings_for(base_url: str, **changes: object) -> ModelSettings:
    values = {
        "base_url": base_url,
        "model": "smollm2-135m",
        "api_key": None,
        "max_output_tokens": 120,
        "embeddings": {"cohesion": "ngram", "index": "ngram"},
        **changes,
    }
    return ModelSettings.model_validate(values)


def models_for(server: LlamaServer, store: AnswerStore | None = None, **changes: object) -> Models:
    return Models(settings_for(server.base_url, **changes), answers=store)


@pytest.mark.parametrize("sheet", [ACETONE, BENZENE], ids=["en", "zh"])
def test_the_schema_alone_makes_the_answer_valid(server: LlamaServer, sheet: Sheet) -> None:
    store = MemoryAnswers()
    models = models_for(server, store)
    found = models.run(JudgeSheet(), sheet)
    [row] = store.rows.values()  # one call: nothing had to be asked again
    assert Hazard.model_validate_json(row.raw) == found.value  # as it came, nothing mended
    assert (row.state, row.finish_reason) == ("accepted", "stop")
    free = openai.OpenAI(base_url=server.base_url, api_key="EMPTY").chat.completions.create(
        model=server.model,
        messages=[{"role": "user", "content": m.content} for m in JudgeSheet().messages(sheet)],
        max_tokens=24,
        temperature=0,
    )
    with pytest.raises(ValidationError):  # without the schema the same question gets prose
        Hazard.model_validate_json(free.choices[0].message.content or "")


def test_check_finds_the_best_format(server: LlamaServer) -> None:
    line = models_for(server).check()
    assert f"{server.model} at {server.base_url}: answers by json_schema (all skills)" in line


@pytest.mark.parametrize("language", ["en", "zh"])
def test_usage_is_counted_with_what_the_prefix_cache_saved(server: LlamaServer, language: str) -> None:
    text = (
        ACETONE.text.replace("Acetone", "Toluene") if language == "en" else BENZENE.text.replace("苯", "萘")
    )
    sheets = [Sheet(text, question, language) for question in ("Is it dangerous?", "能燃烧吗？")]
    price = Price(input=2.0, cached=0.5, output=4.0)
    models = models_for(server, price=price)
    first, second = (models.run(JudgeSheet(), sheet).usage for sheet in sheets)
    for sheet, usage in zip(sheets, (first, second), strict=True):
        content = server.tokens("".join(message.content for message in JudgeSheet().messages(sheet)))
        assert content < usage["tokens_in"] < content + 60  # the chat template comes on top
        assert 10 <= usage["tokens_out"] <= 120
        expected = price.cost(usage["tokens_in"], usage["tokens_cached"], usage["tokens_out"])
        assert usage["cost"] == pytest.approx(expected)
    document = server.tokens(text)
    assert first["tokens_cached"] < document / 2
    assert document <= second["tokens_cached"] < second["tokens_in"]
    total = models.usage()
    for name in ("tokens_in", "tokens_cached", "tokens_out"):
        assert total[name] == first[name] + second[name]
    assert total["calls"] == 2


def test_cached_tokens_in_usage_are_the_server_s_own_count(server: LlamaServer) -> None:
    client = openai.OpenAI(base_url=server.base_url, api_key="EMPTY")
    for repeat in range(2):
        reply = client.chat.completions.create(
            model=server.model,
            messages=[{"role": "user", "content": "Name three alkanes. " * 10}],
            max_tokens=4,
            temperature=0,
        )
        assert reply.usage is not None
        assert reply.usage.prompt_tokens_details is not None
        timings = (reply.model_extra or {})["timings"]
        assert reply.usage.prompt_tokens_details.cached_tokens == timings["cache_n"]
        assert reply.usage.prompt_tokens == timings["cache_n"] + timings["prompt_n"]
        assert (timings["cache_n"] > 50) == (repeat == 1)


def test_a_truncated_answer_is_asked_again_and_then_rejected(server: LlamaServer) -> None:
    store = MemoryAnswers()
    models = models_for(server, store, max_output_tokens=4)
    with pytest.raises(AnswerRejected) as caught:
        models.run(JudgeSheet(), ACETONE)
    assert caught.value.reason == "truncated"
    assert models.usage()["calls"] == 2
    assert [(row.state, row.finish_reason) for row in store.rows.values()] == [("refused", "length")] * 2
    assert next(iter(store.rows.values())).tokens_out == 4


def test_a_prompt_above_the_context_is_refused_for_good(server: LlamaServer) -> None:
    models = models_for(server)
    with pytest.raises(ModelRefused) as caught:
        models.run(JudgeSheet(), Sheet("flash point " * 8000))
    assert caught.value.reason == "context_length"
    assert models.usage()["calls"] == 0


def test_perplexity_is_refused_where_nothing_is_echoed(server: LlamaServer) -> None:
    perplexity = {"backend": "completions", "base_url": server.base_url, "model": server.model}
    with pytest.raises(ModelRefused) as caught:
        models_for(server, perplexity=perplexity).perplexity().loss("flammable", "acetone is")
    assert caught.value.reason == "no_echo"


def test_many_questions_about_one_text_cost_it_once(server: LlamaServer) -> None:
    sheets = [Sheet(ACETONE.text.replace("Acetone", "Aniline"), f"Question {n}?") for n in range(6)]
    models = models_for(server, limits={"concurrency": 4})
    found = models.run_many(JudgeSheet(), sheets)
    assert len(found) == 6
    assert all(isinstance(answer, Answer) for answer in found)
    usage = models.usage()
    document = server.tokens(sheets[0].text)
    assert usage["tokens_in"] > 6 * document
    assert usage["tokens_in"] - usage["tokens_cached"] < 2 * document + 7 * 40


def test_streamed_pieces_are_the_whole_answer_with_usage_at_the_end(server: LlamaServer) -> None:
    """The layer does not stream; servers behind gateways may, and their usage comes last."""
    client = openai.OpenAI(base_url=server.base_url, api_key="EMPTY")
    pieces = list(
        client.chat.completions.create(
            model=server.model,
            messages=[{"role": "user", "content": ACETONE.text}],
            max_tokens=120,
            temperature=0,
            response_format=ResponseFormatJSONSchema(
                type="json_schema", json_schema={"name": "hazard", "schema": Hazard.model_json_schema()}
            ),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    parts = [piece.choices[0].delta.content or "" for piece in pieces if piece.choices]
    assert sum(map(bool, parts)) > 3
    Hazard.model_validate_json("".join(parts))
    usage = pieces[-1].usage
    assert usage is not None
    assert usage.completion_tokens > 3


def _ask_elsewhere(base_url: str, catalogue_url: str, sheet: Sheet) -> tuple[str, bool, int]:
    """What a process of its own gets: the answer, whether it came from the store, calls made."""
    catalogue = Catalogue.open(catalogue_url)
    models = Models(settings_for(base_url), answers=CatalogueAnswers(catalogue))
    answer = models.run(JudgeSheet(), sheet)
    catalogue.close()
    return answer.value.model_dump_json(), answer.from_store, models.usage()["calls"]


def test_another_process_is_served_from_the_store(server: LlamaServer, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    nobody = "http://127.0.0.1:9/v1"  # the address is no part of the key, so a second run needs no server
    found = []
    for base_url in (server.base_url, nobody):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found.append(pool.submit(_ask_elsewhere, base_url, url, BENZENE).result(120))
    assert found[0][1:] == (False, 1)
    assert found[1] == (found[0][0], True, 0)

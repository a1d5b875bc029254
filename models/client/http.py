"""The innermost layer: one chat completion over OpenAI-compatible HTTP.

Structured output is asked for by JSON schema, by JSON mode, or in words only,
whichever the endpoint takes; what worked is remembered per endpoint and model.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, SecretStr

from models.client.call import Call, Reply, Transient, encodable, schema_of, schema_text
from models.errors import ModelRefused
from models.languages import is_chinese
from models.settings import ResolvedModel
from models.skills import Message

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion

logger = logging.getLogger(__name__)

Format = Literal["json_schema", "json_object", "text"]
_STEPS: tuple[Format, ...] = ("json_schema", "json_object", "text")
_SHORTEST_KEY = 12  # a shorter word may be any word
_UNREADABLE = 3  # first answers in a row that tell that a response format is ignored
_NO_KEY = "EMPTY"  # what servers without keys are given by convention; the package wants some word


@dataclass(frozen=True)
class Dialect:
    """What an endpoint understands: the output format and the name of the output limit."""

    format: Format = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


class Clients:
    """``openai`` clients by endpoint and key, made once (they hold connection pools)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], OpenAI] = {}

    def get(self, base_url: str, api_key: SecretStr | None) -> OpenAI:
        """The client for an endpoint. Retries and limits are our own layers', so it has none."""
        from openai import OpenAI

        key = api_key.get_secret_value() if api_key is not None else _NO_KEY
        with self._lock:
            if (base_url, key) not in self._clients:
                self._clients[(base_url, key)] = OpenAI(base_url=base_url, api_key=key, max_retries=0)
            return self._clients[(base_url, key)]

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


class HttpLayer:
    """Sends a call. Raises Transient or ModelRefused."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._dialects: dict[tuple[str, str], Dialect] = {}
        self._readable: dict[tuple[str, str], int] = {}

    def __call__(self, call: Call) -> Reply:
        """One completion; steps down to a simpler format where the endpoint refuses the better one."""
        dialect = self.dialect(call.model)
        while True:
            try:
                reply = self._send(call, dialect)
            except ModelRefused as error:
                following = simpler(dialect, error)
                if following is None:
                    raise
                logger.debug("endpoint refused %s, trying %s", dialect, following)
                dialect = following
            else:
                self.learn(call.model, dialect)
                return reply

    def dialect(self, model: ResolvedModel) -> Dialect:
        """What is in use at an endpoint (the best one until something else was learnt)."""
        return self._dialects.get((model.base_url, model.model), Dialect())

    def learn(self, model: ResolvedModel, dialect: Dialect) -> None:
        """Remember what an endpoint understands."""
        self._dialects[model.base_url, model.model] = dialect

    def format(self, model: ResolvedModel) -> Format:
        """The output format in use at an endpoint."""
        return self.dialect(model).format

    def seen(self, model: ResolvedModel, readable: bool) -> None:
        """Learn whether answers at an endpoint can be read.

        Some servers take a response format and ignore it; the model then never
        sees the schema. Where the first answers are all unreadable the next simpler
        format, which puts the schema into words, is used from then on.
        """
        place = (model.base_url, model.model)
        known = self._readable.get(place, 0)
        if readable or known > 0:
            self._readable[place] = 1
            return
        self._readable[place] = known - 1
        dialect = self.dialect(model)
        following = _next_format(dialect)
        if known - 1 <= -_UNREADABLE and following is not None:
            self.learn(model, following)
            self._readable[place] = 0
            logger.info("%s ignores %s: asking in words as well", model.base_url, dialect.format)

    def _send(self, call: Call, dialect: Dialect) -> Reply:
        import openai

        from models.client.errors import translated

        model = call.model
        client = self._clients.get(model.base_url, model.api_key)
        secret = model.api_key.get_secret_value() if model.api_key is not None else ""
        started = time.perf_counter()
        try:
            completion = client.chat.completions.create(
                model=model.model,
                messages=[],
                extra_body=request_body(call, dialect),  # as it is: the package walks through any other field
                timeout=model.timeout_s,
            )
        except (openai.OpenAIError, ValueError) as error:  # ValueError: a body that is not JSON
            raise translated(error, url=model.base_url, secret=secret) from None
        return read_completion(completion, model, time.perf_counter() - started)


def simpler(dialect: Dialect, error: ModelRefused) -> Dialect | None:
    """What to try after a refusal; None where another form of the request would not help."""
    if error.reason != "bad_request":
        return None
    message = str(error)
    if "max_completion_tokens" in message and dialect.limit == "max_tokens":
        return Dialect(dialect.format, "max_completion_tokens")
    return _next_format(dialect)


def _next_format(dialect: Dialect) -> Dialect | None:
    step = _STEPS.index(dialect.format) + 1
    return Dialect(_STEPS[step], dialect.limit) if step < len(_STEPS) else None


def request_body(call: Call, dialect: Dialect) -> dict[str, Any]:
    """The whole JSON body of a call, as it also stands in a line of a batch file."""
    model = call.model
    body: dict[str, Any] = {
        "model": model.model,
        "messages": [
            {"role": m.role, "content": encodable(m.content)} for m in _messages(call, dialect.format)
        ],
        dialect.limit: model.max_output_tokens,
    }
    if model.temperature is not None:
        body["temperature"] = model.temperature
    if model.top_p is not None:
        body["top_p"] = model.top_p
    if dialect.format == "json_schema":
        body["response_format"] = _response_format(call)
    elif dialect.format == "json_object":
        body["response_format"] = {"type": "json_object"}
    return {**body, **model.extra}


def _response_format(call: Call) -> dict[str, Any]:
    named = {"name": call.skill[:64], "schema": schema_of(call.output)}
    return {"type": "json_schema", "json_schema": named}


def _messages(call: Call, form: Format) -> list[Message]:
    messages = list(call.messages)
    if form != "json_schema":
        messages.append(schema_request(call.output, messages))
    return messages


def schema_request(output: type[BaseModel], messages: list[Message]) -> Message:
    """The wish for JSON in words, in the language of the prompt, after everything else."""
    schema = schema_text(output)
    if is_chinese(messages[0].content):
        return Message("user", f"只用一个 JSON 对象回答，它须符合此 JSON Schema，不加任何其他文字：{schema}")
    return Message(
        "user", f"Answer with one JSON object that fits this JSON schema and nothing else: {schema}"
    )


def without_key(text: str, api_key: SecretStr | None) -> str:
    """An answer in which the endpoint's own key, should it echo it, is stars: answers are stored and shown."""
    key = api_key.get_secret_value() if api_key is not None else ""
    return text.replace(key, "***") if len(key) >= _SHORTEST_KEY else text


def read_completion(completion: ChatCompletion, model: ResolvedModel, seconds: float) -> Reply:
    """The reply in a completion. Raises Transient where it holds none."""
    choices = getattr(completion, "choices", None)
    if not choices:  # a proxy's HTML page, or an error object under status 200
        raise Transient(f"{model.base_url}: reply without choices", reason="malformed", billed=True)
    message, usage = choices[0].message, completion.usage
    tokens_in = usage.prompt_tokens if usage else 0
    tokens_out = usage.completion_tokens if usage else 0
    details = usage.prompt_tokens_details if usage else None
    cached = (details.cached_tokens or 0) if details else 0
    finish = choices[0].finish_reason or "stop"
    refusal = message.refusal or ("content filter" if finish == "content_filter" else "")
    return Reply(
        raw=without_key(message.content or "", model.api_key),
        finish_reason=finish,
        refusal=refusal,
        tokens_in=tokens_in,
        tokens_cached=cached,
        tokens_out=tokens_out,
        cost=model.price.cost(tokens_in, cached, tokens_out) if model.price else 0.0,
        seconds=seconds,
    )

"""A real OpenAI-compatible server on loopback with scripted answers and faults.

    with ModelServer(lambda request: {"score": 4}) as server:
        settings = ModelSettings(base_url=server.base_url, model="scripted")

A script gets a ``Request`` and returns what to answer: a ``dict``, list or
pydantic model (as JSON), a ``str`` (as it is), a ``Reply``, or a ``Fault``. It
may also be a list of such answers, given in order, the last one for ever.
Embeddings and completions with echoed log-probabilities are computed, not
scripted; a script that returns a ``Fault`` for them is obeyed.

``skills`` gives single skills scripts of their own, ``faults`` spoils a seeded
share of the answers (``tests.servers.faults``), ``counts`` says what was given.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast

from pydantic import BaseModel

from tests.servers.batch_api import BatchApi
from tests.servers.faults import Counts, Faults


@dataclass(frozen=True)
class Request:
    """A request as it came: ``number`` counts from 1 over all paths."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages."""
        messages: list[dict[str, str]] = self.body.get("messages", [])
        return messages

    @property
    def text(self) -> str:
        """All message texts joined."""
        return "\n".join(message["content"] for message in self.messages)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema that the answer is to fit, from the response format or from the messages."""
        given: dict[str, Any] = (
            (self.body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
        )
        if given:
            return given
        for message in reversed(self.messages):
            found = re.search(r"JSON [Ss]chema[^{]*(\{.*\})\s*$", message["content"], re.S)
            if found:
                return cast("dict[str, Any]", json.loads(found[1]))
        return {}


@dataclass(frozen=True)
class Reply:
    """A chat answer with all that can be said about it."""

    content: str | None
    finish_reason: str = "stop"
    refusal: str | None = None
    tokens_in: int | None = None
    tokens_cached: int = 0
    tokens_out: int | None = None
    delay_s: float = 0.0


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    ``status`` answers with that HTTP status, ``reset`` cuts the connection before
    any byte, ``cut`` in the middle of the body, ``not_json`` sends a proxy's HTML
    page under status 200, ``slow`` waits ``delay_s`` and then answers ``then``,
    ``duplicated_rows`` gives each vector twice (embeddings only).
    """

    kind: Literal["status", "reset", "cut", "not_json", "slow", "duplicated_rows"] = "status"
    status: int = 500
    message: str = "scripted fault"
    code: str | None = None
    retry_after: str | None = None
    delay_s: float = 0.0
    then: Any = None


Answer = str | dict[str, Any] | list[Any] | BaseModel | Reply | Fault
Script = Callable[[Request], Answer]


def fenced(value: Any) -> str:
    """JSON in a Markdown fence with prose around it, as many models answer."""
    return f"Here is the answer:\n```json\n{json.dumps(value, ensure_ascii=False)}\n```\nHope this helps!"


def thinking(value: Any) -> str:
    """An answer (a text as it is, else JSON) after a ``<think>`` block that holds other JSON."""
    answer = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f'<think>Perhaps {{"draft": 1}}? No.</think>\n{answer}'


class ModelServer:
    """The server; a context manager. ``requests`` keeps everything that came in.

    ``formats`` are the response formats it accepts; others are answered with 400.
    ``limit_name`` is the only name of the output limit it accepts, if given.
    ``skills`` are scripts by the skill's name, or by its schema's title, which is
    all that is known where the first request of a skill has no JSON schema mode.
    ``faults`` are for all requests, or by the same names.
    """

    def __init__(
        self,
        script: Script | Sequence[Answer] | Answer | None = None,
        *,
        formats: Sequence[str] = ("json_schema", "json_object"),
        limit_name: str | None = None,
        api_key: str | None = None,
        dimension: int = 16,
        echoes: bool = True,
        skills: Mapping[str, Script | Sequence[Answer] | Answer] | None = None,
        faults: Faults | Mapping[str, Faults] | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.formats = tuple(formats)
        self.limit_name = limit_name
        self.api_key = api_key
        self.dimension = dimension
        self.echoes = echoes
        self.batch_api = BatchApi(self)
        self.in_flight = 0
        self.most_in_flight = 0
        self.counts = Counts()
        self.faults = faults
        self._script = script
        self._skills = dict(skills or {})
        self._titles: dict[str, str] = {}
        self._asked: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self._prompts: list[str] = []
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def base_url(self) -> str:
        """Address for ``ModelSettings.base_url``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def calls(self, path: str = "/v1/chat/completions") -> list[Request]:
        """Requests of one path."""
        return [request for request in self.requests if request.path == path]

    def record(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Request:
        """Keep a request."""
        with self._lock:
            request = Request(len(self.requests) + 1, path, headers, body)
            self.requests.append(request)
            return request

    def entered(self, by: int) -> None:
        """Count requests that are being answered."""
        with self._lock:
            self.in_flight += by
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def scripted(self, request: Request) -> Answer | None:
        """What the script of its skill, or the one for all, says to a request."""
        names = self._names(request)
        script = next((self._skills[name] for name in names if name in self._skills), self._script)
        if callable(script):
            return script(request)
        if isinstance(script, list | tuple):
            same = [known for known in self.requests if known.path == request.path]
            if script is not self._script:
                same = [known for known in same if self._names(known) == names]
            return cast(Answer, script[min(same.index(request), len(script) - 1)])
        return cast("Answer | None", script)

    def _names(self, request: Request) -> tuple[str, ...]:
        """The skill's name and its schema's title; the path's last word for other requests."""
        if not request.path.endswith("/chat/completions"):
            return (request.path.rpartition("/")[2],)
        title = str(request.schema.get("title", ""))
        name = str((request.body.get("response_format") or {}).get("json_schema", {}).get("name", ""))
        if name:
            self._titles[title] = name
        return tuple(dict.fromkeys((name or self._titles.get(title, title), title)))

    def answered(self, request: Request) -> Answer | None:
        """What the script says, spoilt where a fault is drawn; counted."""
        names = self._names(request)
        faults = self.faults
        if isinstance(faults, Mapping):
            faults = next((faults[name] for name in names if name in faults), None)
        with self._lock:
            self.counts.calls[names[0]] += 1
            asked = hashlib.sha256(json.dumps([request.path, request.body], sort_keys=True).encode()).digest()
            times = self._asked[asked]
            self._asked[asked] += 1
        kind = faults.draw(request.path, request.body, times) if faults is not None else None
        if faults is None or kind is None:
            answer = self.scripted(request)
            own = isinstance(answer, Fault)
        else:
            answer = faults.spoilt(kind, lambda: self.scripted(request), request, times)
            own = False
        with self._lock:
            if kind is not None:
                self.counts.faults[kind] += 1
            elif isinstance(answer, Fault):
                self.counts.faults[str(answer.status) if answer.kind == "status" else answer.kind] += 1
            if (kind is None and not own) or kind == "slow":
                self.counts.answers[names[0]] += 1
        return answer

    def cached_tokens(self, prompt: str) -> int:
        """Tokens of the longest beginning shared with an earlier prompt, as servers with prefix caches report."""
        with self._lock:  # in sorted order the longest shared beginning is a neighbour's
            place = bisect.bisect_left(self._prompts, prompt)
            shared = max(
                (_shared(prompt, known) for known in self._prompts[max(place - 1, 0) : place + 1]), default=0
            )
            self._prompts.insert(place, prompt)
        return shared // 4


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests and no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: the second would wait 40 ms for an ACK
    owner: ModelServer

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self.owner.batch_api.handles(self.path):
            self.owner.batch_api.get(self)
            return
        self._json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.owner.batch_api.handles(self.path):
            self.owner.batch_api.post(self, raw)
            return
        body = json.loads(raw or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = self.owner.record(self.path, headers, body)
        self.owner.entered(1)
        try:
            self._answer(request)
        finally:
            self.owner.entered(-1)

    def _answer(self, request: Request) -> None:
        owner = self.owner
        if owner.api_key and request.headers.get("authorization") != f"Bearer {owner.api_key}":
            self._error(401, "Incorrect API key provided", "invalid_api_key")
            return
        answer = owner.answered(request)
        while isinstance(answer, Fault) and answer.kind != "duplicated_rows":
            if answer.kind != "slow":
                self._fault(answer)
                return
            time.sleep(answer.delay_s)
            answer = answer.then
        match request.path:
            case "/v1/chat/completions":
                self._chat(request, None if isinstance(answer, Fault) else answer)
            case "/v1/embeddings":
                self._embeddings(request, answer)
            case "/v1/completions":
                self._completions(request)
            case _:
                self._error(404, f"no such path: {request.path}", "not_found")

    def _fault(self, fault: Fault) -> None:
        match fault.kind:
            case "status":
                headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
                self._error(fault.status, fault.message, fault.code, headers)
            case "reset":
                # SO_LINGER 0: the peer sees a reset, not an orderly end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
            case "cut":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "500")
                self.end_headers()
                self.wfile.write(b'{"id": "x", "choices": [{"mess')
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            case "not_json":
                self._send(200, b"<html><body>Bad gateway</body></html>", "text/html")

    def _chat(self, request: Request, answer: Answer | None) -> None:
        form = request.body.get("response_format", {}).get("type")
        if form and form not in self.owner.formats:
            self._error(400, f"response_format type {form!r} is not supported", "unsupported_value")
            return
        names = {"max_tokens", "max_completion_tokens"} & set(request.body)
        if self.owner.limit_name and names - {self.owner.limit_name}:
            wrong = names - {self.owner.limit_name}
            self._error(
                400, f"Unsupported parameter: {wrong.pop()}; use {self.owner.limit_name} instead.", None
            )
            return
        reply = as_reply(answer)
        time.sleep(reply.delay_s)
        tokens_in = len(request.text) // 4 + 1 if reply.tokens_in is None else reply.tokens_in
        tokens_out = len(reply.content or "") // 4 + 1 if reply.tokens_out is None else reply.tokens_out
        cached = reply.tokens_cached or self.owner.cached_tokens(request.text)
        message = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
        self._json(
            200,
            {
                "id": f"chatcmpl-{request.number}",
                "object": "chat.completion",
                "created": 0,
                "model": request.body.get("model", ""),
                "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
                "usage": {
                    "prompt_tokens": tokens_in,
                    "completion_tokens": tokens_out,
                    "total_tokens": tokens_in + tokens_out,
                    "prompt_tokens_details": {"cached_tokens": min(cached, tokens_in)},
                },
            },
        )

    def _embeddings(self, request: Request, answer: Answer | None) -> None:
        texts = request.body["input"]
        texts = [texts] if isinstance(texts, str) else texts
        if any(not text for text in texts):
            self._error(400, "input must not be an empty string", None)
            return
        data = [
            {"object": "embedding", "index": index, "embedding": letters_vector(text, self.owner.dimension)}
            for index, text in enumerate(texts)
        ]
        if isinstance(answer, Fault):  # duplicated_rows: no other comes here
            data = [row for row in data for _ in range(2)]
        usage = {"prompt_tokens": sum(map(len, texts)), "total_tokens": sum(map(len, texts))}
        self._json(200, {"object": "list", "model": request.body["model"], "data": data, "usage": usage})

    def _completions(self, request: Request) -> None:
        prompt = request.body["prompt"]
        tokens = (
            re.findall(r"\s?[A-Za-z]+|.", prompt, re.S)
            if request.body.get("echo") and self.owner.echoes
            else []
        )
        tokens.append(" end")
        offsets = [sum(map(len, tokens[:index])) for index in range(len(tokens))]
        logprobs = {
            "tokens": tokens,
            "token_logprobs": adaptive_logprobs(tokens),
            "text_offset": offsets,
            "top_logprobs": None,
        }
        choice = {"index": 0, "text": "".join(tokens), "finish_reason": "length", "logprobs": logprobs}
        usage = {"prompt_tokens": len(tokens) - 1, "completion_tokens": 1, "total_tokens": len(tokens)}
        self._json(
            200,
            {
                "id": f"cmpl-{request.number}",
                "object": "text_completion",
                "created": 0,
                "model": request.body["model"],
                "choices": [choice],
                "usage": usage,
            },
        )

    def _error(
        self, status: int, message: str, code: str | None, headers: dict[str, str] | None = None
    ) -> None:
        self._json(status, {"error": {"message": message, "type": code or "error", "code": code}}, headers)

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", headers)

    def _send(self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def letters_vector(text: str, dimension: int) -> list[float]:
    """A vector of hashed letters: similar texts are similar. Not normalised, as real servers may not."""
    vector = [0.0] * dimension
    for char, count in Counter(text).items():
        vector[int(hashlib.sha256(char.encode()).hexdigest(), 16) % dimension] += count
    return vector


def adaptive_logprobs(tokens: list[str]) -> list[float | None]:
    """A real, if simple, language model: add-one counts of the tokens before; none for the first token."""
    seen: Counter[str] = Counter()
    found: list[float | None] = []
    for index, token in enumerate(tokens):
        found.append(math.log((seen[token] + 0.1) / (index + 100)) if index else None)
        seen[token] += 1
    return found


def as_reply(answer: Answer | None) -> Reply:
    """A script's answer as a reply."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, BaseModel):
        return Reply(answer.model_dump_json())
    if isinstance(answer, str):
        return Reply(answer)
    return Reply(json.dumps({} if answer is None else answer, ensure_ascii=False))


def _shared(one: str, other: str) -> int:
    """Length of the common beginning, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low

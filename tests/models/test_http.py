"""The client against a real server on loopback, faults included."""

import logging

import pytest
from pydantic import SecretStr

from models import Message
from models.client.call import Call, Transient
from models.client.errors import retry_after, shown
from models.client.http import Clients, Dialect, Format, HttpLayer, request_body
from models.errors import ModelError, ModelRefused
from models.settings import Price, ResolvedModel
from tests.models.skills import Score
from tests.servers.model_server import Fault, ModelServer, Reply


def ask(server: ModelServer, layer: HttpLayer | None = None, **changes: object) -> tuple[object, HttpLayer]:
    values = {
        "base_url": server.base_url,
        "model": "m",
        "api_key": None,
        "temperature": 0.3,
        "top_p": 0.9,
        "max_output_tokens": 77,
        "timeout_s": 60.0,
        "draws": 1,
        "price": Price(input=1_000_000, cached=0, output=2_000_000),
        "extra": {"top_k": 20},
        **changes,
    }
    layer = layer or HttpLayer(Clients())
    call = Call("score_document", "1", (Message("user", "文"),), ResolvedModel(**values), Score)  # type: ignore[arg-type]
    return layer(call), layer


def test_request_and_reply() -> None:
    with ModelServer(Reply('{"score": 3}', tokens_in=10, tokens_cached=4, tokens_out=5)) as server:
        reply, _ = ask(server, api_key=SecretStr("key-1"))
        body = server.requests[0].body
    assert server.requests[0].headers["authorization"] == "Bearer key-1"
    assert (body["model"], body["temperature"], body["top_p"], body["max_tokens"], body["top_k"]) == (
        "m",
        0.3,
        0.9,
        77,
        20,
    )
    assert body["response_format"]["json_schema"]["schema"]["properties"]["score"] == {
        "title": "Score",
        "type": "integer",
    }
    assert body["messages"] == [{"role": "user", "content": "文"}]
    assert reply.raw == '{"score": 3}'  # type: ignore[attr-defined]
    assert (reply.tokens_in, reply.tokens_cached, reply.tokens_out) == (10, 4, 5)  # type: ignore[attr-defined]
    assert reply.cost == pytest.approx(6 + 10)  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ["json_schema", "json_object", "text"])
def test_what_is_sent_is_the_body_as_it_also_stands_in_a_batch_file(form: Format) -> None:
    own = {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}, "temperature": 0.9}
    with ModelServer({"score": 3}) as server:
        model = ResolvedModel(server.base_url, "m", None, 0.3, None, 77, 5.0, 1, None, extra=own)
        sent = Call(
            "score_document", "1", (Message("system", "规则"), Message("user", "文 \ud800")), model, Score
        )
        layer = HttpLayer(Clients())
        layer.learn(model, Dialect(form))
        layer(sent)
        body = server.requests[0].body
    assert body == request_body(sent, Dialect(form))
    assert (body["model"], body["temperature"], body["messages"][1]["content"]) == ("m", 0.9, "文 ?")


@pytest.mark.parametrize(
    ("formats", "expected"),
    [(("json_schema",), "json_schema"), (("json_object",), "json_object"), ((), None)],
)
def test_formats_step_down_and_are_remembered(formats: tuple[str, ...], expected: str | None) -> None:
    with ModelServer({"score": 3}, formats=formats) as server:
        _, layer = ask(server)
        tries = len(server.requests)
        ask(server, layer)
        last = server.requests[-1].body
    assert len(server.requests) == tries + 1
    assert (last.get("response_format") or {}).get("type") == expected
    in_words = [m["content"] for m in last["messages"] if "JSON Schema" in m["content"]]
    assert len(in_words) == (0 if expected == "json_schema" else 1)


def test_the_name_of_the_output_limit_is_learnt() -> None:
    with ModelServer({"score": 3}, limit_name="max_completion_tokens") as server:
        _, layer = ask(server)
        ask(server, layer)
        assert [("max_tokens" in r.body) for r in server.requests] == [True, False, False]
        assert server.requests[-1].body["max_completion_tokens"] == 77
        assert "response_format" in server.requests[-1].body


@pytest.mark.parametrize(
    ("fault", "reason", "billed"),
    [
        (Fault(status=429, retry_after="3"), "rate_limit", False),
        (Fault(status=500), "http_500", False),
        (Fault(status=503), "http_503", False),
        (Fault(status=408), "http_408", False),
        (Fault("reset"), "reset", True),
        (Fault("cut"), "reset", True),
        (Fault("not_json"), "malformed", True),
        (Fault("slow", delay_s=1.5), "timeout", True),
    ],
)
def test_transient_faults(fault: Fault, reason: str, billed: bool) -> None:
    with ModelServer(fault) as server, pytest.raises(Transient) as caught:
        ask(
            server, timeout_s=0.3 if reason == "timeout" else 60.0
        )  # any answer may be late on a busy machine
    assert (caught.value.reason, caught.value.billed) == (reason, billed)
    assert caught.value.retry_after == (3.0 if fault.retry_after else None)
    assert len(server.requests) == 1  # the package's own retries are off


@pytest.mark.parametrize(
    ("fault", "reason", "requests"),
    [
        (Fault(status=401), "authentication", 1),
        (Fault(status=403), "authentication", 1),
        (Fault(status=404, message="model m does not exist"), "not_found", 1),
        (Fault(status=400, message="This model's maximum context length is 10 tokens"), "context_length", 1),
        (Fault(status=400, message="bad temperature"), "bad_request", 3),
        (Fault(status=429, code="insufficient_quota"), "quota", 1),
    ],
)
def test_terminal_faults(fault: Fault, reason: str, requests: int) -> None:
    with ModelServer(fault) as server, pytest.raises(ModelRefused) as caught:
        ask(server)
    assert (caught.value.reason, len(server.requests)) == (reason, requests)


def test_nobody_listens() -> None:
    with ModelServer() as server:
        gone = server
    with pytest.raises(Transient) as caught:
        ask(gone)
    assert (caught.value.reason, caught.value.billed) == ("unreachable", False)
    assert gone.base_url in str(caught.value)


def test_secrets_stay_out_of_messages_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret-0123456789"
    faults = [
        Fault(status=401, message=f"Incorrect API key provided: {secret}"),
        Fault(status=500),
        Fault("reset"),
    ]
    for fault in faults:
        with ModelServer(fault) as server, pytest.raises(ModelError) as caught:
            ask(server, api_key=SecretStr(secret))
        assert secret not in str(caught.value)
        assert caught.value.__cause__ is None
    assert secret not in caplog.text


def test_refusal_and_content_filter() -> None:
    with ModelServer([Reply(None, refusal="I cannot"), Reply("", finish_reason="content_filter")]) as server:
        first, layer = ask(server)
        second, _ = ask(server, layer)
    assert first.refusal == "I cannot"  # type: ignore[attr-defined]
    assert second.refusal == "content filter"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected


def test_shown_is_short_and_clean() -> None:
    assert shown("a\n  b  sk-abc123 Bearer xyz") == "a b sk-*** Bearer ***"
    assert len(shown("x" * 5000)) == 300


def test_an_echoed_key_is_not_kept() -> None:
    key = "planted-key-0123456789"
    with ModelServer(Reply(f'{{"score": 3, "note": "您的密钥 {key}"}}')) as server:
        reply, _ = ask(server, api_key=SecretStr(key))
    assert key not in str(reply)
    assert "***" in str(reply)


def test_what_a_server_can_never_do_is_not_repeated() -> None:
    fault = Fault(status=501, message="This server does not support it")
    with ModelServer(fault) as server, pytest.raises(ModelRefused) as caught:
        ask(server)
    assert (caught.value.reason, caught.value.halts) == ("not_supported", True)

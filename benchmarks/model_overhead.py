"""How much time does the model layer add to a call, and how much does its store save?

    python benchmarks/model_overhead.py [--calls 20] [--rounds 20]

The skill ``score_document`` with its real prompt (about 2,000 characters of a sample
page) is asked of a loopback server that answers at once, in a process of its own:

- bare: the ``openai`` client alone, prompt and schema made beforehand, answer not parsed;
- uncached: ``Models.run`` with a catalogue on SQLite, each question for the first time;
- cached: the questions of the round before once more.

The three take turns within each round, so that other load falls on all alike. Prints
medians of clock time per call, the mean processor time per call of this process, the
ratios (median of the rounds, with quartiles) and where the time of a call goes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any, cast
from unittest.mock import patch

import openai
from openai.types.chat import ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers
from corpus.quality import Score, ScoreDocument, ScoreGiven, measure
from models import Models, ModelSettings, registry
from models.client.call import Call
from models.client.http import HttpLayer
from models.settings import ResolvedModel
from models.tokens import count_words

PAGE = Path(__file__).parent.parent / "samples" / "pages" / "us-code" / "15usc2605_4921.md"
CHARACTERS = 2000
ANSWER = Score(
    score=3.0,
    density=3.0,
    safety=3.0,
    completeness=3.0,
    readability=3.0,
    authority=3.0,
    reason="A law on the regulation of chemicals.",
    language="en",
)


# --- the server, in its own process -------------------------------------------------


class Endpoint(asyncio.Protocol):
    """Answers every POST with the same completion; keeps the connection."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(self._received) < end + 4 + size:
                return
            self._received = self._received[end + 4 + size :]
            self._transport.write(REPLY)


def _reply() -> bytes:
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "instant",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": ANSWER.model_dump_json()},
                }
            ],
            "usage": {
                "prompt_tokens": 700,
                "completion_tokens": 60,
                "total_tokens": 760,
                "prompt_tokens_details": {"cached_tokens": 0},
            },
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


REPLY = _reply()


def serve(ready: Connection) -> None:
    """Listen on a free port, tell it, and serve until the process is ended."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Endpoint, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def instant_server() -> Iterator[str]:
    """The base address of a server in a child process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


# --- the three kinds of calls -------------------------------------------------------


@dataclass
class Timing:
    """Clock seconds of each call, by rounds, and processor seconds of all."""

    rounds: list[list[float]] = field(default_factory=list)
    processor: float = 0.0

    def run(self, ask: Callable[[ScoreGiven], object], givens: Sequence[ScoreGiven]) -> None:
        """Ask one after another."""
        clock = []
        processor = time.process_time()
        for given in givens:
            started = time.perf_counter()
            ask(given)
            clock.append(time.perf_counter() - started)
        self.processor += time.process_time() - processor
        self.rounds.append(clock)

    @property
    def all(self) -> list[float]:
        """Clock seconds of all calls."""
        return [seconds for clock in self.rounds for seconds in clock]


class Bare:
    """The ``openai`` client with prompts and schema made beforehand."""

    def __init__(self, base_url: str, model: ResolvedModel) -> None:
        self._client = openai.OpenAI(base_url=base_url, api_key="EMPTY", max_retries=0)
        self._model = model
        self._skill = ScoreDocument()
        self._format = ResponseFormatJSONSchema(
            type="json_schema",
            json_schema={"name": self._skill.name, "schema": self._skill.output.model_json_schema()},
        )
        self._prompts: dict[str, list[ChatCompletionMessageParam]] = {}

    def prepare(self, givens: Sequence[ScoreGiven]) -> None:
        """Make the prompts."""
        for given in givens:
            messages = [{"role": m.role, "content": m.content} for m in self._skill.messages(given)]
            self._prompts[given.title] = cast("list[ChatCompletionMessageParam]", messages)

    def ask(self, given: ScoreGiven) -> str | None:
        """One call; the answer is text."""
        completion = self._client.chat.completions.create(
            model=self._model.model,
            messages=self._prompts[given.title],
            max_tokens=self._model.max_output_tokens,
            temperature=self._model.temperature,
            response_format=self._format,
            timeout=self._model.timeout_s,
        )
        return completion.choices[0].message.content


def givens_of(number: int, calls: int) -> list[ScoreGiven]:
    """Questions of one round; the title makes each differ from all others."""
    text = PAGE.read_text("utf-8")[:CHARACTERS]
    features = measure(text, title="Act", count=count_words)
    return [ScoreGiven(f"Act {number}.{call}", "en", (text,), features) for call in range(calls)]


# --- where the time goes ------------------------------------------------------------

PARTS: tuple[tuple[str, Any, str], ...] = (
    ("prompt", ScoreDocument, "messages"),
    ("key", Call, "key"),
    ("store: get", CatalogueAnswers, "get"),
    ("http", HttpLayer, "__call__"),
    ("store: put", CatalogueAnswers, "put"),
    ("parse", registry, "parse"),
    ("check", ScoreDocument, "check"),
    ("store: mark", CatalogueAnswers, "mark"),
    ("store: served", CatalogueAnswers, "served"),
)


def parts_of(ask: Callable[[ScoreGiven], object], givens: Sequence[ScoreGiven]) -> dict[str, float]:
    """Mean processor seconds a call by part. No part contains another; the timers are in ``rest``."""
    spent: dict[str, float] = defaultdict(float)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return function(*args, **named)
            finally:
                spent[name] += time.thread_time() - started

        return call

    with ExitStack() as patches:
        for name, owner, attribute in PARTS:
            patches.enter_context(patch.object(owner, attribute, timed(name, getattr(owner, attribute))))
        started = time.thread_time()
        for given in givens:
            ask(given)
        total = time.thread_time() - started
    spent["rest"] = total - sum(spent.values())
    spent["sum"] = total
    return {name: seconds / len(givens) for name, seconds in spent.items()}


def main() -> None:
    """Print the three rows, the ratios and the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20, help="calls of each kind in a round")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with instant_server() as base_url, tempfile.TemporaryDirectory() as folder:
        catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db")
        settings = ModelSettings(base_url=base_url, model="instant", api_key=None)
        models = Models(settings, answers=CatalogueAnswers(catalogue))
        skill = ScoreDocument()

        def ask(given: ScoreGiven) -> object:
            return models.run(skill, given)

        model = settings.resolve(skill.name)
        assert model is not None
        bare = Bare(base_url, model)
        before = givens_of(0, options.calls)
        bare.prepare(before)
        for given in before:  # connections, code and schema caches are warm afterwards
            bare.ask(given)
            ask(given)
            ask(given)
        timings = {"bare": Timing(), "uncached": Timing(), "cached": Timing()}
        for number in range(1, options.rounds + 1):
            givens = givens_of(number, options.calls)
            bare.prepare(givens)
            turns: list[tuple[str, Callable[[ScoreGiven], object], list[ScoreGiven]]]
            turns = [("bare", bare.ask, givens), ("uncached", ask, givens), ("cached", ask, before)]
            for name, function, asked in turns[number % 3 :] + turns[: number % 3]:
                timings[name].run(function, asked)
            before = givens
        assert models.usage()["calls"] == options.calls * (options.rounds + 1)
        show(timings)
        fresh = givens_of(options.rounds + 1, 5 * options.calls)
        show_parts(parts_of(ask, fresh), parts_of(ask, fresh))
        models.close()
        catalogue.close()


def show(timings: dict[str, Timing]) -> None:
    """Medians and ratios."""
    for name, timing in timings.items():
        print(
            f"{name:9} {1000 * median(timing.all):7.2f} ms median, {1000 * fmean(timing.all):7.2f} ms mean, "
            f"{1000 * timing.processor / len(timing.all):7.2f} ms of this process's processor time "
            f"({len(timing.all)} calls)"
        )
    processor = {name: timing.processor for name, timing in timings.items()}
    for over, under, goal in (("uncached", "bare", "at most 1.5"), ("bare", "cached", "at least 10")):
        ratios = [
            median(above) / median(below)
            for above, below in zip(timings[over].rounds, timings[under].rounds, strict=True)
        ]
        low, middle, high = quantiles(ratios, n=4)
        print(
            f"{over} / {under}: {middle:.2f} [{low:.2f}, {high:.2f}] by clock, "
            f"{processor[over] / processor[under]:.2f} by processor time (goal {goal})"
        )


def show_parts(uncached: dict[str, float], cached: dict[str, float]) -> None:
    """Mean processor time a call by part (other load on the cores does not enter, nor does waiting)."""
    print(f"{'part':14} {'uncached µs':>12} {'cached µs':>10}")
    for name in [*(part[0] for part in PARTS), "rest", "sum"]:
        print(f"{name:14} {1e6 * uncached.get(name, 0):12.0f} {1e6 * cached.get(name, 0):10.0f}")


if __name__ == "__main__":
    main()

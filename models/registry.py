"""``Models``: runs skills offline or on their models, and hands out embedders and perplexity."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel

from models.client.batch import BatchQueue
from models.client.breaker import BreakerLayer
from models.client.budget import BudgetLayer, Budgets
from models.client.cache import AnswerCache
from models.client.call import Call, Layer, Reply, Transient
from models.client.http import Clients, HttpLayer, schema_request
from models.client.limits import LimitLayer
from models.client.parse import Unreadable, parse
from models.client.record import RecordLayer
from models.client.retry import RetryLayer
from models.errors import AnswerDeferred, AnswerRejected, ModelError, ModelRefused, OfflineUnavailable
from models.languages import is_chinese
from models.prompts import fence, neutral
from models.protocols import AnswerStore, BatchStore, Embedder, Perplexity, StoredAnswer, VectorStore
from models.settings import ModelSettings, ResolvedModel, is_loopback
from models.skills import Answer, Message, Skill, Verdict
from models.tokens import TokenCounter, token_counter
from models.usage import Usage

logger = logging.getLogger(__name__)
_WARNED: set[str] = set()  # addresses that this process has warned of

In = TypeVar("In")
_Ask = TypeVar("_Ask")
_Found = TypeVar("_Found")
Out = TypeVar("Out", bound=BaseModel)
Purpose = Literal["cohesion", "index"]


class Models:
    """The one door to language and embedding models. Safe to share between threads.

    ``answers`` and ``vectors`` keep what was paid for; without them nothing is
    remembered between runs. ``batches`` (with ``answers``) allows the batch API:
    ``models.batches`` is the queue that a run works off. It is built from settings
    and never pickled: each process makes its own.
    """

    def __init__(
        self,
        settings: ModelSettings | None = None,
        answers: AnswerStore | None = None,
        vectors: VectorStore | None = None,
        batches: BatchStore | None = None,
    ) -> None:
        self.settings = settings or ModelSettings()
        self._answers = answers
        self._vectors = vectors
        self._usage = Usage()
        self.clients = Clients()
        self._lock = threading.Lock()
        self._embedders: dict[str, Embedder] = {}
        self._perplexity: Perplexity | None = None
        self.budget = Budgets(self.settings.budget, self.settings.skill_budgets())
        self._endpoints: dict[str, Layer] = {}
        for address in self.settings.addresses():
            if address.startswith("http://") and not is_loopback(address) and address not in _WARNED:
                _WARNED.add(address)
                logger.warning("%s is not encrypted: prompts and keys can be read on the way", address)
        self._http = HttpLayer(self.clients)
        self._online: Layer = BudgetLayer(self._limited, self.budget)
        self._cache = AnswerCache(
            self._routed, answers, lambda key: self.batches is not None and self.batches.collected(key)
        )
        self._record = RecordLayer(self._cache, self.settings)
        self.batches: BatchQueue | None = None
        if answers is not None and batches is not None:
            self.batches = BatchQueue(
                self.settings, self.clients, self._http, answers, batches, self.budget, self._usage
            )

    @classmethod
    def offline(cls) -> Models:
        """No model, no storage: for tests and file tools."""
        return cls(ModelSettings(api_key=None))

    def __reduce__(self) -> Any:
        raise TypeError("Models is not pickled: send its settings and build it in the other process")

    def __repr__(self) -> str:
        named = {resolved.model for resolved in self.settings.configured().values()}
        return f"Models({', '.join(sorted(named)) or 'offline'})"

    # --- skills ---------------------------------------------------------------

    def is_offline(self, skill_name: str) -> bool:
        """Whether a skill is answered by its rules."""
        return self.settings.resolve(skill_name) is None

    def draws(self, skill_name: str) -> int:
        """Independent answers to ask for; one where the skill is offline (its answer never varies)."""
        resolved = self.settings.resolve(skill_name)
        return 1 if resolved is None else resolved.draws

    def identity(self, skill: Skill[Any, Any]) -> str:
        """Who answers, for fingerprints: model, parameters and skill version, or ``offline/<version>``."""
        resolved = self.settings.resolve(skill.name)
        if resolved is None:
            return f"offline/{skill.version}"
        prompts = f"+{skill.prompts.digest}" if skill.prompts is not None else ""
        return f"{resolved.identity()}/{skill.version}{prompts}"

    def concurrency(self, *skill_names: str) -> int:
        """Items of a step that may be worked on at once: calls wait, rules compute."""
        return 1 if all(map(self.is_offline, skill_names)) else self.settings.limits.concurrency

    def run(self, skill: Skill[In, Out], given: In, *, draw: int = 0) -> Answer[Out]:
        """A checked answer.

        Raises OfflineUnavailable (no model and no honest rule), AnswerRejected
        (failed its check after one repeat), ModelUnavailable and BudgetExhausted
        (try again later), ModelRefused (the endpoint says no for good).
        """
        resolved = self.settings.resolve(skill.name)
        if resolved is None:
            return self._offline(skill, given, draw)
        return self._ask(skill, given, draw, resolved)

    def run_many(
        self, skill: Skill[In, Out], inputs: Sequence[In], *, draws: Sequence[int] = (0,)
    ) -> list[Answer[Out] | AnswerRejected]:
        """Answers to many inputs, each for every draw, in the order inputs × draws.

        Calls run at once up to ``limits.concurrency``. Where they share a long
        beginning (``skill.shares_prefix``, several draws) the first one is sent
        alone, so that the server's prefix cache is warm for the rest and a document
        is paid for once. An answer that was rejected, or a question that the endpoint
        refuses (too long, filtered), stands as AnswerRejected in its place. Any other
        error is raised when the calls in flight have ended; what
        was answered by then is stored and not asked again.
        """
        asks = [(given, draw) for given in inputs for draw in draws]

        def one(ask: tuple[In, int]) -> Answer[Out] | AnswerRejected | ModelError:
            try:
                return self.run(skill, ask[0], draw=ask[1])
            except ModelRefused as error:
                return error if error.halts else AnswerRejected(str(error), reason=error.reason)
            except ModelError as error:
                return error

        width = min(len(asks), self.concurrency(skill.name))
        found: list[Answer[Out] | AnswerRejected | ModelError] = []
        if width <= 1:
            for ask in asks:
                found.append(one(ask))
                if _ends(found[-1]):
                    break
        else:
            alone = 1 if skill.shares_prefix or len(draws) > 1 else 0
            found += [one(ask) for ask in asks[:alone]]
            if not (found and _ends(found[-1])):
                with ThreadPoolExecutor(max_workers=width) as pool:
                    found += self._fan_out(pool, one, asks[alone:])
        for answer in found:
            if isinstance(answer, ModelError) and not isinstance(answer, AnswerRejected):
                raise answer
        return cast("list[Answer[Out] | AnswerRejected]", found)

    def _fan_out(
        self, pool: ThreadPoolExecutor, one: Callable[[_Ask], _Found], asks: Sequence[_Ask]
    ) -> list[_Found]:
        stop = threading.Event()

        def unless_stopped(ask: _Ask) -> _Found | None:
            if stop.is_set():
                return None
            answer = one(ask)
            if _ends(answer):
                stop.set()
            return answer

        return [answer for answer in pool.map(unless_stopped, asks) if answer is not None]

    def _offline(self, skill: Skill[In, Out], given: In, draw: int) -> Answer[Out]:
        if draw > 0:
            raise OfflineUnavailable(
                f"{skill.name}: several draws of one rule-based answer say nothing", reason="offline_draws"
            )
        value = skill.offline(given)
        verdict = skill.check(given, value)
        if verdict.kind != "accept":
            self._usage.rejected(skill.name)
            raise AnswerRejected(f"{skill.name} (offline): {'; '.join(verdict.reasons)}", reason="check")
        self._usage.offline(skill.name)
        return Answer(value, "offline")

    def _ask(self, skill: Skill[In, Out], given: In, draw: int, resolved: ResolvedModel) -> Answer[Out]:
        call = _call_of(skill, given, draw, resolved)
        with self._cache.hold(call.key()):
            known = self._repeated_before(skill, given, call)
            if known is not None:
                return known
            reply = self._call(call)
            value, verdict = _judge(skill, given, reply)
            if not reply.from_store and not reply.refusal and reply.finish_reason != "length":
                self._http.seen(call.model, value is not None)
            if value is not None and verdict.kind == "accept":
                return self._accept(call, reply, value)
            self._cache.mark(reply.key, "refused", "; ".join(verdict.reasons))
            if verdict.kind == "reject":
                raise self._rejected(skill, verdict)
            return self._ask_again(skill, given, call, reply, verdict)

    def _ask_again(
        self, skill: Skill[In, Out], given: In, call: Call, first: Reply, verdict: Verdict
    ) -> Answer[Out]:
        second = _repeat(call, first.raw, first.finish_reason, verdict)
        try:
            reply = self._call(second)
        except ModelRefused as error:
            if first.finish_reason == "length" and not error.halts:  # the endpoint allows no longer answers
                raise self._rejected(skill, verdict) from error
            raise
        value, verdict = _judge(skill, given, reply)
        if value is not None and verdict.kind == "accept":
            return self._accept(second, reply, value)
        self._cache.mark(reply.key, "refused", "; ".join(verdict.reasons))
        raise self._rejected(skill, verdict)

    def _repeated_before(self, skill: Skill[In, Out], given: In, call: Call) -> Answer[Out] | None:
        """The repeat of an answer that was refused before: it is paid for, or waits for a batch job; go on with it."""
        first = self._cache.stored(call.key())
        if first is None or first.state != "refused":
            return None
        second = _repeat_of(skill, given, call, first)
        if second is None:
            return None
        known = self._cache.stored(second.key())
        if self._waits(second) or (known is not None and known.state == "stored"):
            reply = Reply(first.raw, first.finish_reason)
            return self._ask_again(skill, given, call, reply, _judge(skill, given, reply)[1])
        if known is None or known.state == "refused":
            return None
        reply = self._call(second)
        value, verdict = _judge(skill, given, reply)
        if value is None or verdict.kind != "accept":
            return None
        return self._accept(second, reply, value)

    def _waits(self, call: Call) -> bool:
        """Whether a repeat is on its way by the batch API, or goes that way now that its first answer is refused."""
        if self.batches is None or not self.batches.takes(call):
            return False
        return self._cache.stored(call.key()) is None or self.batches.waits(call.key())

    def _call(self, call: Call) -> Reply:
        reply = self._record(call)
        if not reply.counted:
            self._usage.reply(call.skill, reply)
        return reply

    def _routed(self, call: Call) -> Reply:
        """Where a call goes that the store cannot answer."""
        if self.batches is not None and self.batches.takes(call):
            self.batches.ask(call)
        return self._online(call)

    def _accept(self, call: Call, reply: Reply, value: Out) -> Answer[Out]:
        if not reply.from_store:
            self._cache.mark(reply.key, "accepted")
        usage = {
            "tokens_in": reply.tokens_in,
            "tokens_cached": reply.tokens_cached,
            "tokens_out": reply.tokens_out,
            "cost": reply.cost,
            "seconds": reply.seconds,
        }
        return Answer(value, call.model.model, call.draw, reply.from_store, usage)

    def _rejected(self, skill: Skill[Any, Any], verdict: Verdict) -> AnswerRejected:
        self._usage.rejected(skill.name)
        word, _, _ = verdict.reasons[0].partition(":") if verdict.reasons else ("check", "", "")
        reason = word if word in _READING_REASONS else "check"
        return AnswerRejected(f"{skill.name}: {'; '.join(verdict.reasons)}", reason=reason)

    def _limited(self, call: Call) -> Reply:
        """Limits, breaker and retry of the call's endpoint: what one endpoint refuses does not slow another."""
        url = call.model.base_url
        with self._lock:
            layer = self._endpoints.get(url) or self._endpoints.setdefault(url, self._layers())
        return layer(call)

    def _layers(self) -> Layer:
        limits = self.settings.limits

        def before_again(call: Call, failure: Transient) -> None:
            self._record.repeated(call, failure)
            if failure.billed:
                self.budget.charge(call)
            limited.request()

        retry: Layer = RetryLayer(self._http, limits, before_again=before_again)
        limited = LimitLayer(retry, limits)
        return BreakerLayer(limited, limits)

    def usage(self) -> dict[str, Any]:
        """Counters of this process: ``calls``, ``cached``, ``tokens_in``, ``tokens_out``, ``cost``, ``skills``."""
        return self._usage.summary()

    # --- tokens, embeddings, perplexity -----------------------------------------

    @cached_property
    def _counter(self) -> TokenCounter:
        return token_counter(self.settings.tokens)

    def count_tokens(self, text: str) -> int:
        """Size of a text in the counter in force."""
        return self._counter.count(text)

    @property
    def token_counter_name(self) -> str:
        """Name of the counter, to stand beside every figure."""
        return self._counter.name

    def embedder(self, purpose: Purpose) -> Embedder:
        """The embedder of a purpose, with vectors cached by text hash."""
        from models.embeddings import make_embedder

        backend = self.settings.embeddings.backend(purpose)
        with self._lock:
            if backend not in self._embedders:
                self._embedders[backend] = make_embedder(
                    backend,
                    self.settings.embeddings,
                    self._vectors,
                    self.clients,
                    self.settings.limits,
                    self._usage,
                )
            return self._embedders[backend]

    def perplexity(self, background: Sequence[str] | None = None) -> Perplexity:
        """Token losses. ``background`` trains the embedded model's background; other backends ignore it."""
        from models.perplexity import EndpointAccess, make_perplexity

        chosen = self.settings.perplexity
        if chosen.backend == "ngram":
            return make_perplexity(chosen, background=background or ())
        with self._lock:  # one instance: its memo serves all documents
            if self._perplexity is None:
                client = EndpointAccess(self.clients, self.settings.limits, self._answers, self._usage)
                self._perplexity = make_perplexity(chosen, access=client)
            return self._perplexity

    def check(self) -> str:
        """Ask every configured endpoint once; one line for people. Raises ModelRefused for the first that fails."""
        from models.check import check_endpoints

        findings = check_endpoints(self)
        for finding in findings:
            if not finding.fine:
                raise ModelRefused(f"{finding.name}: {finding.seen}", reason="check")
        chat = "" if self.settings.configured() else "offline, rules answer where there are rules; "
        return chat + "; ".join(f"{finding.name}: {finding.seen}" for finding in findings)

    def flush(self) -> None:
        """Have the store write what it gathers in memory (verdicts, counts; answers are stored at once)."""
        self._cache.flush()

    def close(self) -> None:
        """Write what is gathered and close connections. The object can be used again."""
        self.flush()
        self._record.close()
        self.clients.close()


_READING_REASONS = {"truncated", "empty", "no_json", "ambiguous", "schema", "refusal"}


def _call_of(skill: Skill[In, Any], given: In, draw: int, resolved: ResolvedModel) -> Call:
    return Call(skill.name, skill.version, tuple(skill.messages(given)), resolved, skill.output, draw)


def _ends(answer: object) -> bool:
    """Whether an error makes it useless to ask the rest: all but a rejected or a deferred answer."""
    return isinstance(answer, ModelError) and not isinstance(answer, AnswerRejected | AnswerDeferred)


def _repeat_of(skill: Skill[In, Any], given: In, call: Call, first: StoredAnswer) -> Call | None:
    """The repeat that followed a refused answer; None where it was refused for good."""
    if first.reason.startswith("refusal: "):
        return None
    _, verdict = _judge(skill, given, Reply(first.raw, first.finish_reason))
    return _repeat(call, first.raw, first.finish_reason, verdict) if verdict.kind == "ask_again" else None


def _judge(skill: Skill[In, Out], given: In, reply: Reply) -> tuple[Out | None, Verdict]:
    """Read the raw answer and prove it against the input."""
    if reply.refusal:
        return None, Verdict.reject(f"refusal: {reply.refusal}")
    try:
        value = cast(Out, parse(reply.raw, skill.output, reply.finish_reason))
    except Unreadable as error:
        return None, Verdict.ask_again(f"{error.reason}: {error}")
    return value, skill.check(given, value)


def _repeat(call: Call, raw: str, finish_reason: str, verdict: Verdict) -> Call:
    """The same question with the answer and what is wrong with it; after a cut answer, with room for a longer one."""
    if finish_reason == "length":
        return replace(call, model=replace(call.model, max_output_tokens=2 * call.model.max_output_tokens))
    opening = (
        "上面的回答未通过检查，请改正后重新完整回答。问题："
        if is_chinese(call.messages[0].content)
        else "That answer failed the check. Correct it and answer again in full. Problems:"
    )
    reasons = "\n".join(f"- {reason}" for reason in verdict.reasons)  # may quote the page
    lines = [opening, fence(reasons, "problems")]
    if verdict.reasons and verdict.reasons[0].partition(":")[0] in _READING_REASONS:
        lines.append(schema_request(call.output, list(call.messages)).content)
    return call.again(Message("assistant", neutral(raw) or "{}"), Message("user", "\n".join(lines)))

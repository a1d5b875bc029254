"""What skills would cost, found by a rehearsal: the real code runs, nobody is asked, nothing is stored.

:class:`Rehearsal` is a ``Models`` whose calls end before they are sent. What the
store can answer is answered from it; every other question is counted with its
real prompt, and a stand-in answer lets the caller go on where a later question
depends on it. So an estimate cannot drift from what a stage really asks.

Sizes are in the counter in force (its name is part of every estimate): a
tokenizer file makes them the model's own, ``words`` makes them a guide. What a
server adds to a prompt (chat template, JSON schema) is not in them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from models.client.call import Call, Reply
from models.errors import AnswerRejected
from models.languages import language_of
from models.perplexity import make_perplexity
from models.protocols import AnswerStore, Embedder, Perplexity, StoredAnswer, Vectors, VectorStore
from models.registry import Models, Purpose
from models.settings import EmbeddingSettings, ModelSettings, PerplexitySettings, Price, ResolvedModel
from models.skills import Answer, Message, Skill

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)

Basis = Literal["exact", "sampled", "projected"]
"""exact: the prompts of all items; sampled: of a seeded sample, scaled; projected: they rest on stand-ins."""

RANK: dict[Basis, int] = {"exact": 0, "sampled": 1, "projected": 2}

ENOUGH = 20
"""Answers from which the store's own history is believed more than the rules of thumb."""


@dataclass(frozen=True)
class History:
    """What the store knows of one skill on one model.

    ``repeats``: share of questions that were asked a second time, because the first
    answer failed its check.
    """

    answers: int
    tokens_out: float
    repeats: float = 0.0


@dataclass(frozen=True)
class Shape:
    """Rule of thumb for an answer's size: ``fixed`` tokens and ``share`` of what varies in the prompt."""

    fixed: float
    share: float = 0.0


SHAPES: dict[str, Shape] = {
    "score_document": Shape(120),  # six figures, a sentence, two lists
    "refine_window": Shape(40, 0.9),  # the window again
    "extract_assertions": Shape(40, 1.2),  # about one assertion of 50 tokens for 40 of text
    "propose_identity": Shape(120),  # a verdict, a reason, quotes
    "reword_question": Shape(12, 0.6),  # the question again; names stand in the prompt twice
    "question_outline": Shape(20, 0.33),  # 60 tokens a question, one question for a chunk of 200
    "segment_text": Shape(20, 0.08),  # 14 tokens a head, one head for a chunk of 200
    "review_chunk": Shape(90),  # a verdict and an item or two with their quotes
    "complete_chunk": Shape(40, 1.0),  # the chunk with what was missing
    "slm_generate": Shape(40, 0.4),  # outline and heads in one
    "slm_discriminate": Shape(10),
    "slm_refine": Shape(330),  # ambiguities, supplements, the chunk of about 200 again
    "find_shift": Shape(10),
    "meta_chunk": Shape(20, 0.16),  # first and last words of a chunk of 200
    "direct_chunk": Shape(20, 1.1),  # the document again
    "assign_levels": Shape(20, 0.12),  # 8 tokens a point, a point for three lines or so
    "summarise_section": Shape(150),
    "write_question": Shape(150),
    "extract_evidence": Shape(200),
    "list_facts": Shape(20, 1.2),
    "judge_facts": Shape(20, 0.2),
    "answer_question": Shape(90),  # an answer of a sentence or two with its quotes
}
"""Answers' sizes where the store has no history: from the shape of the output type, held against the rules'
answers to the sample pages (their JSON at three characters a token). A model that thinks aloud needs more, as
its history will say."""

_OTHER = Shape(200)


@dataclass(frozen=True)
class Estimate:
    """Calls of one skill that are not in the store yet, their tokens and money.

    ``calls`` are first questions, ``certain`` those of them whose prompt rests on no
    stand-in, ``repeats`` the second ones that history lets
    expect; tokens and money hold both. ``tokens_cached`` is the part of
    ``tokens_in`` that repeats the beginning of an earlier prompt, which providers
    with prefix caches charge less for. ``tokens_out_limit`` and ``cost_limit`` are
    the most that the calls can use: nothing cached, each question asked twice,
    each answer as long as allowed (retries after a cut connection come on top).
    Money is None without a price table.
    """

    skill: str
    model: str
    counter: str
    basis: Basis = "exact"
    calls: int = 0
    certain: int = 0
    repeats: int = 0
    stored: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    tokens_out_limit: int = 0
    cost: float | None = None
    cost_limit: float | None = None
    sized_by: str = ""


@dataclass
class Tally:
    """First questions of one skill, counted one by one. ``seen`` of ``of`` items were looked at."""

    skill: str
    model: ResolvedModel
    calls: float = 0
    certain: float = 0  # calls whose prompt rests on no stand-in
    stored: float = 0
    tokens_in: float = 0
    tokens_cached: float = 0
    tokens_out: float = 0  # by the rule of thumb

    def add(self, other: Tally, factor: float = 1.0) -> None:
        """Add another tally, scaled."""
        for name in ("calls", "certain", "stored", "tokens_in", "tokens_cached", "tokens_out"):
            setattr(self, name, getattr(self, name) + factor * getattr(other, name))

    def estimate(self, counter: str, history: History | None, basis: Basis) -> Estimate:
        """The estimate: answers sized by history where there is enough of it, repeats added."""
        known = history if history is not None and history.answers >= ENOUGH else None
        calls = self.calls
        limit = self.model.max_output_tokens
        out = calls * min(known.tokens_out, 2 * limit) if known else self.tokens_out
        repeats = calls * known.repeats if known else 0.0
        # a repeat has the first prompt (which is cached by then) with the answer behind it
        mean_in, mean_out = (self.tokens_in / calls, out / calls) if calls else (0.0, 0.0)
        tokens_in = self.tokens_in + repeats * (mean_in + mean_out)
        cached = self.tokens_cached + repeats * mean_in
        tokens_out = out + repeats * mean_out
        price = self.model.price
        if price is not None and self.model.transport == "batch":
            price = price.for_batch()
        return Estimate(
            skill=self.skill,
            model=self.model.model,
            counter=counter,
            basis=basis if self.certain >= calls else "projected",
            calls=round(calls),
            certain=round(self.certain),
            repeats=round(repeats),
            stored=round(self.stored),
            tokens_in=round(tokens_in),
            tokens_cached=round(cached),
            tokens_out=round(tokens_out),
            tokens_out_limit=round(calls * 3 * limit),
            cost=self._money(price, tokens_in, cached, tokens_out) if price else None,
            cost_limit=self._most(price) if price else None,
            sized_by=f"{known.answers} stored answers" if known else "rule of thumb",
        )

    def _most(self, price: Price) -> float:
        """Every question asked twice: after a cut answer with twice the room, else with the answer behind it."""
        limit = self.calls * self.model.max_output_tokens
        first = self._money(price, self.tokens_in, 0, limit)
        cut = self._money(price, self.tokens_in, 0, 2 * limit)
        wrong = self._money(price, self.tokens_in + 2 * limit, 0, limit)
        return first + max(cut, wrong)

    def _money(self, price: Price, tokens_in: float, cached: float, tokens_out: float) -> float:
        return price.cost(round(tokens_in), round(cached), round(tokens_out))


class Prefixes:
    """Prompts so far, and how much of a new one's beginning repeats any of them.

    This is what a server's prefix cache sees when prompts come one after another.
    The oldest are forgotten above ``size`` characters, as servers do.
    """

    def __init__(self, size: int = 20_000_000) -> None:
        self._size = size
        self._held = 0
        self._sorted: list[str] = []
        self._order: deque[str] = deque()

    def shared(self, prompt: str) -> int:
        """Characters that the prompt shares with an earlier one from its beginning; it is remembered."""
        at = bisect_left(self._sorted, prompt)
        neighbours = self._sorted[max(at - 1, 0) : at + 1]  # the longest common beginning is next to it
        found = max((shared_beginning(prompt, other) for other in neighbours), default=0)
        if found < len(prompt):
            insort(self._sorted, prompt)
            self._order.append(prompt)
            self._held += len(prompt)
        while self._held > self._size and len(self._order) > 1:
            oldest = self._order.popleft()
            self._held -= len(oldest)
            del self._sorted[bisect_left(self._sorted, oldest)]
        return found


def shared_beginning(one: str, other: str) -> int:
    """Length of the longest common beginning, by halving (slices compare much faster than characters)."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Enough(Exception):
    """What follows the first skill is not wanted (``Rehearsal.first_only``)."""


class _Unasked(Exception):
    def __init__(self, call: Call) -> None:
        super().__init__(call.skill)
        self.call = call


StandIn = Callable[[Skill[Any, Any], Any], BaseModel]


def by_rules(skill: Skill[Any, Any], given: Any) -> BaseModel:
    """The rules' answer stands in."""
    answer: BaseModel = skill.offline(given)
    return answer


@dataclass
class _Item:
    """What happened in the item at hand: which skills had stand-ins, which prompts were certain."""

    stood_in: set[str] = field(default_factory=set)
    certain: set[tuple[Message, ...]] = field(default_factory=set)
    first: str = ""


class Rehearsal(Models):
    """Models that ask nobody, change nothing, and count what would be asked.

    ``stand_ins`` answers for a model where the caller needs an answer to go on; a
    skill that is not among them is rejected (callers know that). A question is
    *exact* as long as nothing before it in the same item was a stand-in, or only
    stand-ins of its own skill that are named ``independent``. ``waits`` tells whether a
    question (by its key) is in an open batch job and paid for. ``first_only`` ends an
    item (:class:`Enough`) when the first skill has been asked.

    An embedding or perplexity endpoint is replaced by the embedded model, since it
    would have to be asked; what rests on it is no longer exact.
    """

    def __init__(
        self,
        settings: ModelSettings,
        answers: AnswerStore | None = None,
        vectors: VectorStore | None = None,
        *,
        stand_ins: Mapping[str, StandIn] | None = None,
        independent: Collection[str] = (),
        waits: Callable[[str], bool] = lambda key: False,
    ) -> None:
        kept = None if answers is None else _ReadOnlyAnswers(answers)
        super().__init__(settings, kept, None if vectors is None else _ReadOnlyVectors(vectors))
        self._stand_ins = dict(stand_ins or {})
        self._independent = frozenset(independent)
        self._waits_for = waits
        self._count = lru_cache(maxsize=4096)(self.count_tokens)
        self._tally_lock = threading.Lock()
        self._prefixes: dict[tuple[str, str], Prefixes] = {}
        self._asked: set[str] = set()
        self._item = _Item()
        self.first_only = False
        self.tallies: dict[str, Tally] = {}

    def begin(self) -> None:
        """A new item: nothing was stood in for yet."""
        self._item = _Item()

    def take(self) -> dict[str, Tally]:
        """The tallies so far; counting starts anew, with cold prefix caches."""
        taken, self.tallies, self._prefixes = self.tallies, {}, {}
        self._asked.clear()
        return taken

    def concurrency(self, *skill_names: str) -> int:
        """One after another: the order is the calls' own, and nothing is waited for."""
        return 1

    def run(self, skill: Skill[In, Out], given: In, *, draw: int = 0) -> Answer[Out]:
        """The stored answer, or a stand-in after the question was counted.

        Raises AnswerRejected where nothing stands in, and Enough (see the class).
        """
        resolved = self.settings.resolve(skill.name)
        if resolved is None:
            return super().run(skill, given, draw=draw)
        if self.first_only and self._item.first not in ("", skill.name):
            raise Enough
        self._item.first = self._item.first or skill.name
        try:
            answer = super().run(skill, given, draw=draw)
        except _Unasked as unasked:
            self._count_call(skill, given, unasked.call)
            return self._standing_in(skill, given, draw, resolved)
        with self._tally_lock:
            self._tally(skill.name, resolved).stored += 1
        return answer

    def embedder(self, purpose: Purpose) -> Embedder:
        """The embedder of a purpose where it is embedded, else character n-grams."""
        if self.settings.embeddings.backend(purpose) != "endpoint":
            return _Embedder(self, super().embedder(purpose))
        from models.embeddings import make_embedder

        plain = EmbeddingSettings()
        made = make_embedder("ngram", plain, None, self.clients, self.settings.limits, self._usage)
        return _Embedder(self, made, stands_in="embeddings")

    def perplexity(self, background: Sequence[str] | None = None) -> Perplexity:
        """The embedded n-gram model, whatever is set."""
        made = make_perplexity(PerplexitySettings(), background=background or ())
        own = self.settings.perplexity.backend == "ngram"
        return _Perplexity(self, made, stands_in="" if own else "perplexity")

    def used(self, stands_in: str) -> None:
        """Vectors or losses are wanted: the item ends (``first_only``), or goes on with what stands in."""
        if self.first_only:
            raise Enough
        if stands_in:
            self._item.stood_in.add(stands_in)

    def _routed(self, call: Call) -> Reply:
        raise _Unasked(call)

    def _call(self, call: Call) -> Reply:
        """From the store, neither logged nor counted as use, or where calls end (``_routed``)."""
        return self._cache(call)

    def _standing_in(
        self, skill: Skill[In, Out], given: In, draw: int, resolved: ResolvedModel
    ) -> Answer[Out]:
        self._item.stood_in.add(skill.name)
        make = self._stand_ins.get(skill.name)
        if make is None:
            raise AnswerRejected(f"{skill.name}: not asked, this is an estimate", reason="estimate")
        return Answer(make(skill, given), resolved.model, draw)  # type: ignore[arg-type]

    def _count_call(self, skill: Skill[Any, Any], given: Any, call: Call) -> None:
        prompt = "\n".join(message.content for message in call.messages)
        size = sum(self._count(message.content) for message in call.messages)
        key = call.key()
        with self._tally_lock:
            if key in self._asked or self._waits_for(key):  # by then its answer is in the store
                self._tally(skill.name, call.model).stored += 1
                return
            self._asked.add(key)
            place = (call.model.base_url, call.model.model)
            shared = self._prefixes.setdefault(place, Prefixes()).shared(prompt)
            tally = self._tally(skill.name, call.model)
            tally.calls += 1
            tally.tokens_in += size
            tally.tokens_cached += min(size, self._count_beginning(call.messages, shared))
            tally.tokens_out += self._thumb(skill, given, call, size)
            tally.certain += self._is_certain(skill.name, call.messages)

    def _is_certain(self, skill: str, messages: tuple[Message, ...]) -> bool:
        item = self._item
        own = item.stood_in <= {skill}
        certain = not item.stood_in or (own and (skill in self._independent or messages in item.certain))
        if certain:
            item.certain.add(messages)
        return certain

    def _count_beginning(self, messages: Sequence[Message], characters: int) -> int:
        """Tokens of the first characters of a prompt; whole messages are counted once and remembered."""
        total = 0
        for message in messages:
            if characters <= 0:
                break
            text = message.content
            total += self._count(text if characters >= len(text) else text[:characters])
            characters -= len(text) + 1
        return total

    def _thumb(self, skill: Skill[Any, Any], given: Any, call: Call, size: int) -> float:
        """An answer's size by the rule of thumb: what varies is the prompt without the prompt file's words."""
        shape = SHAPES.get(skill.name, _OTHER)
        fixed = 0
        if skill.prompts is not None:
            fixed = self._count(skill.prompts.text(language_of(skill.language(given))))
        return min(shape.fixed + shape.share * max(size - fixed, 0), call.model.max_output_tokens)

    def _tally(self, skill: str, model: ResolvedModel) -> Tally:
        return self.tallies.setdefault(skill, Tally(skill, model))


def estimate(
    models: Models,
    skill: Skill[Any, Any],
    inputs: Iterable[Any],
    *,
    answers: AnswerStore | None = None,
    history: History | None = None,
) -> Estimate:
    """Estimate a skill over its inputs, each with all its draws, in the order they would be asked.

    ``answers``: the store, whose answers cost nothing. Offline: no calls, no cost.
    """
    resolved = models.settings.resolve(skill.name)
    counter = models.token_counter_name
    if resolved is None:
        return Estimate(skill.name, "offline", counter, cost=0.0, cost_limit=0.0)
    rehearsal = Rehearsal(models.settings, answers, independent=(skill.name,))
    for given in inputs:
        rehearsal.begin()
        rehearsal.run_many(skill, [given], draws=range(resolved.draws))
    tally = rehearsal.tallies.get(skill.name, Tally(skill.name, resolved))
    return tally.estimate(counter, history, "exact")


def summed(rows: Iterable[Estimate]) -> Estimate | None:
    """Rows of one skill and model as one; the weakest basis counts."""
    total: Estimate | None = None
    for row in rows:
        total = row if total is None else _plus(total, row)
    return total


def _plus(one: Estimate, other: Estimate) -> Estimate:
    return replace(
        one,
        basis=max(one.basis, other.basis, key=RANK.__getitem__),
        calls=one.calls + other.calls,
        certain=one.certain + other.certain,
        repeats=one.repeats + other.repeats,
        stored=one.stored + other.stored,
        tokens_in=one.tokens_in + other.tokens_in,
        tokens_cached=one.tokens_cached + other.tokens_cached,
        tokens_out=one.tokens_out + other.tokens_out,
        tokens_out_limit=one.tokens_out_limit + other.tokens_out_limit,
        cost=_sum(one.cost, other.cost),
        cost_limit=_sum(one.cost_limit, other.cost_limit),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    """Unknown money stays unknown."""
    return None if one is None or other is None else one + other


class _ReadOnlyAnswers:
    """A store that can be read and stays as it is."""

    def __init__(self, store: AnswerStore) -> None:
        self._store = store

    def get(self, key: str) -> StoredAnswer | None:
        return self._store.get(key)

    def put(self, answer: StoredAnswer) -> None:
        """Nothing is stored by an estimate."""

    def mark(self, key: str, state: str, reason: str = "") -> None:
        """A verdict of an estimate is not recorded."""

    def served(self, key: str) -> None:
        """Reading for an estimate is no use of an answer."""

    def flush(self) -> None:
        """Nothing was gathered; the store gives its connection back."""
        self._store.flush()


class _ReadOnlyVectors:
    def __init__(self, store: VectorStore) -> None:
        self._store = store

    def get(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        return self._store.get(model, hashes)

    def put(self, model: str, vectors: dict[str, Vectors]) -> None:
        """Nothing is stored by an estimate."""


class _Embedder:
    """An embedder that tells the rehearsal when it is used."""

    def __init__(self, rehearsal: Rehearsal, inner: Embedder, stands_in: str = "") -> None:
        self._rehearsal = rehearsal
        self._inner = inner
        self._stands_in = stands_in
        self.name = inner.name

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    def passages(self, texts: Sequence[str]) -> Vectors:
        self._rehearsal.used(self._stands_in)
        return self._inner.passages(texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        self._rehearsal.used(self._stands_in)
        return self._inner.queries(texts)


class _Perplexity:
    """A perplexity that tells the rehearsal when it is used."""

    def __init__(self, rehearsal: Rehearsal, inner: Perplexity, stands_in: str) -> None:
        self._rehearsal = rehearsal
        self._inner = inner
        self._stands_in = stands_in
        self.name = inner.name

    def loss(self, text: str, context: str = "") -> float:
        self._rehearsal.used(self._stands_in)
        return self._inner.loss(text, context)

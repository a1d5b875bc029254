"""Mean token losses of a text, alone or after a context (qchunker.md, "Perplexity backends").

Backends differ in their tokens and must never be mixed in one table; ``name``
says which computed a figure.

First-token rule: *ngram* scores every character, the first one like the others. *completions* and *transformers* have no loss for the very first
token of a prompt; a text alone is therefore put after a single newline, so that
its first token has one. Tokens that straddle context and text belong to the
context.

Truncation: a text is cut at its end and a context at its start to
``perplexity.max_characters``.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from models.char_lm import CharModel
from models.client.call import Reply
from models.client.http import Clients
from models.client.retry import with_retries
from models.protocols import AnswerStore, Perplexity, StoredAnswer
from models.settings import Limits, PerplexitySettings
from models.usage import Usage

_NEUTRAL = "\n"


@dataclass(frozen=True)
class EndpointAccess:
    """What calls to an endpoint share: connections, limits, store, counters."""

    clients: Clients
    limits: Limits
    answers: AnswerStore | None
    usage: Usage


class Memoised:
    """Keeps losses per (text, context), so that candidates share work. Bounded, thread-safe."""

    def __init__(self, inner: Perplexity, size: int = 500_000) -> None:
        self._inner = inner
        self._size = size
        self._known: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()
        self.name = inner.name

    def loss(self, text: str, context: str = "") -> float:
        """Mean negative log-likelihood per token in nats (NaN for an empty text)."""
        key = _pair_key(text, context)
        with self._lock:
            if key in self._known:
                return self._known[key]
        value = self._inner.loss(text, context)
        with self._lock:
            self._known[key] = value
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        return value


class NgramPerplexity:
    """The embedded default: an interpolated character n-gram model (``models.char_lm``).

    ``background`` are the texts of the corpus at hand; results depend on them,
    so their hash stands in the name. Without any the background is uniform.
    """

    def __init__(self, background: Sequence[str], max_characters: int = 4000) -> None:
        self._model = CharModel(background)
        self._cut = max_characters
        state = hashlib.sha256()
        for text in background:
            data = text.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "big") + data)
        self.name = f"ngram/{state.hexdigest()[:8]}" if background else "ngram/uniform"

    def loss(self, text: str, context: str = "") -> float:
        """Mean loss per character in nats (NaN for an empty text)."""
        return self._model.loss(text[: self._cut], context[-self._cut :])


class CompletionsPerplexity:
    """A completions endpoint that echoes the prompt with log-probabilities (vLLM, llama-cpp-python).

    One token is generated and thrown away: asking for none means "without limit"
    to some servers. Raises ModelRefused where the endpoint does not echo.
    """

    def __init__(self, settings: PerplexitySettings, access: EndpointAccess) -> None:
        self._settings = settings
        self._access = access
        self._url = str(settings.base_url)
        self._model = str(settings.model)
        self.name = f"completions/{self._model}"

    def loss(self, text: str, context: str = "") -> float:
        """Mean loss per token of the endpoint's tokenizer in nats (NaN for an empty text)."""
        cut = self._settings.max_characters
        text, context = text[:cut], context[-cut:] or _NEUTRAL
        if not text:
            return math.nan
        key = hashlib.sha256(
            f"perplexity\0{self._model}\0{cut}\0".encode() + _pair_key(text, context)
        ).hexdigest()[:32]
        store = self._access.answers
        known = store.get(key) if store is not None else None
        if known is not None and store is not None:
            store.served(key)
            self._access.usage.reply("perplexity", Reply(known.raw, from_store=True))
            return float(known.raw)
        return self._ask(text, context, key)

    def _ask(self, text: str, context: str, key: str) -> float:
        from models.client.echo import echoed_loss

        settings, access = self._settings, self._access
        client = access.clients.get(self._url, settings.api_key)
        scored = with_retries(lambda: echoed_loss(client, settings, context, text), access.limits)
        raw = repr(scored.loss)
        access.usage.reply("perplexity", Reply(raw, tokens_in=scored.tokens))
        if access.answers is not None:
            answer = StoredAnswer(
                key, "perplexity", "1", self._model, 0, raw, state="accepted", tokens_in=scored.tokens
            )
            access.answers.put(answer)
        return scored.loss


class TransformersPerplexity:
    """A local causal language model through ``transformers`` (extra ``local-lm``)."""

    def __init__(self, settings: PerplexitySettings) -> None:
        from models.errors import ModelRefused

        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise ModelRefused(
                "perplexity: 'transformers' and 'torch' are not installed: pip install 'hchemsafety[local-lm]'",
                reason="settings",
            ) from error
        self._torch = torch
        self._cut = settings.max_characters
        self._tokenizer = AutoTokenizer.from_pretrained(settings.model)
        self._model = AutoModelForCausalLM.from_pretrained(settings.model).eval()
        self._limit = int(getattr(self._model.config, "max_position_embeddings", 4096))
        self._lock = threading.Lock()
        self.name = f"transformers/{str(settings.model).rstrip('/').rpartition('/')[2]}"

    def loss(self, text: str, context: str = "") -> float:
        """Mean loss per token in nats (NaN for an empty text).

        Context and text are tokenised apart and joined, so that the scored tokens
        are the same with and without a context; over the model's length the
        context loses its start, then the text its end.
        """
        text, context = text[: self._cut], context[-self._cut :] or _NEUTRAL
        target = self._tokenizer(text, add_special_tokens=False)["input_ids"][: self._limit - 1]
        if not target:
            return math.nan
        before = self._tokenizer(context, add_special_tokens=False)["input_ids"]
        before = before[-(self._limit - len(target)) :]
        torch = self._torch
        ids = torch.tensor([before + target])
        with self._lock, torch.no_grad():
            logits = self._model(ids).logits[0, len(before) - 1 : -1].float()
        losses = torch.nn.functional.cross_entropy(logits, ids[0, len(before) :])
        return float(losses)


def make_perplexity(
    settings: PerplexitySettings, *, background: Sequence[str] = (), access: EndpointAccess | None = None
) -> Perplexity:
    """The memoised backend that the settings name; ``access`` is needed for an endpoint."""
    match settings.backend:
        case "ngram":
            return Memoised(NgramPerplexity(background, settings.max_characters))
        case "completions":
            if access is None:
                raise ValueError("a completions endpoint needs access")
            return Memoised(CompletionsPerplexity(settings, access))
        case "transformers":
            return Memoised(TransformersPerplexity(settings))


def _pair_key(text: str, context: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    state = hashlib.blake2b(len(data).to_bytes(8, "big") + data, digest_size=16)
    state.update(context.encode("utf-8", "surrogatepass"))
    return state.digest()

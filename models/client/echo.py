"""Echoed log-probabilities of a completions endpoint, cut to the tokens of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.client.call import encodable
from models.errors import ModelRefused
from models.settings import PerplexitySettings

if TYPE_CHECKING:
    from openai import OpenAI


@dataclass(frozen=True)
class Echoed:
    """Mean loss of the text's tokens in nats, and the tokens of the whole prompt."""

    loss: float
    tokens: int


def echoed_loss(client: OpenAI, settings: PerplexitySettings, context: str, text: str) -> Echoed:
    """Ask once. Raises Transient or ModelRefused (reason ``no_echo`` where nothing is echoed)."""
    import openai

    from models.client.errors import translated

    prompt = encodable(context + text)
    url, model = str(settings.base_url), str(settings.model)
    key = settings.api_key
    try:
        reply = client.completions.create(
            model=model,
            prompt=prompt,
            max_tokens=1,
            temperature=0,
            echo=True,
            logprobs=1,
            timeout=settings.timeout_s,
        )
        found = reply.choices[0].logprobs
    except (openai.OpenAIError, ValueError, AttributeError, IndexError) as error:  # a body of another kind
        raise translated(error, url=url, secret=key.get_secret_value() if key else "") from None
    if found is None or not found.token_logprobs or not found.text_offset:
        raise ModelRefused(f"{url}: no echoed log-probabilities; perplexity needs them", reason="no_echo")
    return _cut(url, found.token_logprobs, found.text_offset, len(context), len(prompt))


def _cut(url: str, values: Sequence[float | None], offsets: list[int], start: int, end: int) -> Echoed:
    if len(values) != len(offsets) or offsets != sorted(offsets) or offsets[0] != 0:
        raise ModelRefused(f"{url}: token offsets are not ordered", reason="no_echo")
    echoed = [offset for offset in offsets if offset < end]
    if not echoed or (len(echoed) == len(offsets) and offsets[-1] < start):
        raise ModelRefused(f"{url}: the prompt is not echoed", reason="no_echo")
    scored = [
        value
        for value, offset in zip(values, offsets, strict=True)
        if start <= offset < end and value is not None
    ]
    loss = -math.fsum(scored) / len(scored) if scored else math.nan
    return Echoed(loss, len(echoed))

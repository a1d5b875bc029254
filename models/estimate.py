"""What a skill would cost over given inputs, without asking anybody.

Figures are in the counter in force (its name is part of the estimate); a real
tokenizer file makes them exact, ``words`` makes them a guide. Output is the
limit of each answer: an upper bound, like the cost made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from models.skills import Skill

if TYPE_CHECKING:
    from models.registry import Models


@dataclass(frozen=True)
class Estimate:
    """Calls that are not in the store yet, their tokens, and money at most.

    ``tokens_cached`` is the part of ``tokens_in`` that repeats the beginning of
    the prompt before it, which providers with prefix caches charge less for.
    ``cost`` is None without a price table.
    """

    skill: str
    counter: str
    calls: int = 0
    stored: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out_limit: int = 0
    cost: float | None = None


def estimate(models: Models, skill: Skill[Any, Any], inputs: Iterable[Any]) -> Estimate:
    """Estimate a skill over its inputs in the order they would be asked. Offline: no calls, no cost."""
    resolved = models.settings.resolve(skill.name)
    counter = models.token_counter_name
    if resolved is None:
        return Estimate(skill.name, counter, cost=0.0)
    calls = stored = tokens_in = tokens_cached = 0
    before = ""
    for given in inputs:
        prompt = "\n".join(message.content for message in skill.messages(given))
        known = sum(models.has_answer(skill, given, draw) for draw in range(resolved.draws))
        stored += known
        for _ in range(resolved.draws - known):
            calls += 1
            tokens_in += models.count_tokens(prompt)
            shared = commonprefix([before, prompt])  # noqa: RUF071 - characters are what is wanted
            tokens_cached += models.count_tokens(shared)
            before = prompt
    tokens_out = calls * resolved.max_output_tokens
    cost = resolved.price.cost(tokens_in, tokens_cached, tokens_out) if resolved.price else None
    return Estimate(skill.name, counter, calls, stored, tokens_in, tokens_cached, tokens_out, cost)

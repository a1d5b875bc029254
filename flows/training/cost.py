"""What a training costs before it is begun: tokens, steps, memory, floating-point operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from flows.training.recipes import Recipe

_STATE_BYTES = 16  # a parameter: weights, gradients and two moments of AdamW, each in float32
_LAYER_BYTES = (
    34  # a token and hidden unit: what one layer keeps for its gradient in 16 bits, attention fused
)
_LOGIT_BYTES = 12  # an answer's token and word: logits, their softmax and its gradient in float32


@dataclass(frozen=True)
class Shape:
    """Of a model: parameters, and where its files are known layers, hidden units and words (else 0)."""

    parameters: float
    layers: int = 0
    hidden: int = 0
    vocabulary: int = 0


@dataclass(frozen=True)
class Cost:
    """An estimate. Bytes are of one device; ``counted`` says what the tokens are."""

    records: int
    too_long: int
    tokens: int
    longest: int
    counted: str
    epochs: float
    steps: int
    warmup_steps: int
    records_a_step: int
    state_bytes: float
    activation_bytes: float | None
    operations: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        left = f", {self.too_long:,} longer ones left out" if self.too_long else ""
        memory = f"{self.state_bytes / 1e9:,.1f} GB for weights, gradients and optimizer"
        if self.activation_bytes is not None:
            memory += f" + about {self.activation_bytes / 1e9:,.1f} GB for the longest records"
        return [
            f"records: {self.records:,}{left}; {self.tokens:,} {self.counted} an epoch, longest {self.longest:,}",
            f"steps: {self.steps:,} of {self.records_a_step} records ({self.epochs:g} epochs), "
            f"{self.warmup_steps:,} of them warm-up",
            f"memory of a device: {memory}, without sharding",
            f"work: {self.operations:.2e} floating-point operations",
        ]


def steps_of(records: int, recipe: Recipe, devices: int) -> int:
    """Optimizer steps of a training, as the trainer counts them."""
    if recipe.max_steps > 0:
        return recipe.max_steps
    micro = math.ceil(records / (recipe.batch * devices))
    return math.ceil(max(math.ceil(micro / recipe.accumulate(devices)), 1) * recipe.epochs)


def estimate(
    tokens: Sequence[int], answers: Sequence[int], recipe: Recipe, shape: Shape, devices: int, counted: str
) -> Cost:
    """Cost of a recipe on records of so many tokens (``answers``: of the answer alone), on so many devices."""
    kept = [(all_, own) for all_, own in zip(tokens, answers, strict=True) if all_ <= recipe.max_length]
    total = sum(size for size, _ in kept)
    steps = steps_of(len(kept), recipe, devices)
    a_step = recipe.batch * devices * recipe.accumulate(devices)
    longest = max((size for size, _ in kept), default=0)
    activation = None
    if shape.layers:
        saved = shape.layers * 2 if recipe.checkpointing else shape.layers * _LAYER_BYTES
        one_layer = _LAYER_BYTES if recipe.checkpointing else 0
        answer = max((own for _, own in kept), default=0)
        activation = recipe.batch * (
            longest * shape.hidden * (saved + one_layer) + answer * shape.vocabulary * _LOGIT_BYTES
        )
    passes = total / len(kept) * steps * a_step if kept else 0.0
    return Cost(
        records=len(kept),
        too_long=len(tokens) - len(kept),
        tokens=total,
        longest=longest,
        counted=counted,
        epochs=recipe.epochs,
        steps=steps,
        warmup_steps=math.ceil(recipe.warmup * steps),
        records_a_step=a_step,
        state_bytes=_STATE_BYTES * shape.parameters,
        activation_bytes=activation,
        operations=(8 if recipe.checkpointing else 6) * shape.parameters * passes,
    )

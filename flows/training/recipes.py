"""The papers' training recipes by name. Each value says where it is from: paper, released code, or ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_type_hints

from chunking.training.examples import Task
from corpus.errors import SettingsError


@dataclass(frozen=True)
class Recipe:
    """Full fine-tuning of one model on the records of one task.

    ``batch`` is records a device and ``accumulation`` micro-batches a step;
    ``sequences`` a step's records over all devices, where the paper says that instead (then
    the accumulation follows from it). ``warmup`` is a share of the steps. The loss is
    the mean over the tokens of each answer, then over the answers.
    """

    name: str
    tasks: tuple[Task, ...]
    base: str
    parameters: float
    """Parameters of the base model, for an estimate without its files."""
    learning_rate: float = 1e-5
    scheduler: str = "cosine"
    warmup: float = 0.1
    batch: int = 2
    accumulation: int = 16
    sequences: int | None = None
    epochs: float = 1.0
    max_length: int = 16_384
    bf16: bool = True
    checkpointing: bool = True
    optimizer: str = "adamw_torch"
    max_grad_norm: float = 1.0
    seed: int = 0
    max_steps: int = -1
    save_steps: int = 200
    sources: Mapping[str, str] | None = None

    def accumulate(self, devices: int) -> int:
        """Micro-batches a step. Raises SettingsError where the records of a step cannot be shared evenly."""
        if self.sequences is None:
            return self.accumulation
        share, rest = divmod(self.sequences, self.batch * devices)
        if rest or not share:
            raise SettingsError(
                f"{self.sequences} records a step cannot be shared by {devices} devices with {self.batch} each; "
                "--set batch=… or --set sequences=…"
            )
        return share

    def values(self) -> dict[str, Any]:
        """Everything that decides the trained weights, beside data, base model and devices."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ("sources", "save_steps", "parameters")
        }


RECIPES: Mapping[str, Recipe] = {
    "qchunker-paper": Recipe(
        "qchunker-paper",
        ("generate", "discriminate", "refine"),
        "Qwen/Qwen2.5-3B-Instruct",
        3.09e9,
        sources={
            "base": "paper: Qwen2.5-3B",
            "learning_rate": "paper",
            "scheduler": "paper",
            "warmup": "paper",
            "batch": "paper: 2 a device",
            "accumulation": "paper",
            "bf16": "paper",
            "loss": "paper: mean over the tokens of each answer",
            "epochs": "ours: not stated",
            "max_length": "ours: not stated",
            "checkpointing": "ours: memory only",
            "optimizer": "ours: not stated",
            "max_grad_norm": "ours: not stated",
            "seed": "ours: not stated",
            "max_steps": "ours: whole epochs",
        },
    ),
    "hichunk-paper": Recipe(
        "hichunk-paper",
        ("levels",),
        "Qwen/Qwen3-4B",
        4.02e9,
        warmup=0.05,
        sequences=64,
        epochs=2.0,
        max_length=32_768,
        sources={
            "base": "paper: Qwen3-4B",
            "learning_rate": "paper",
            "sequences": "paper: batch 64",
            "accumulation": "follows from sequences, batch and devices",
            "batch": "code",
            "scheduler": "code",
            "warmup": "code",
            "epochs": "code (its run is called 3)",
            "max_length": "code; records have windows of 8,192 tokens (paper)",
            "loss": "ours: not stated; as for QChunker",
            "bf16": "ours: not stated",
            "checkpointing": "ours: memory only",
            "optimizer": "ours: not stated",
            "max_grad_norm": "ours: not stated",
            "seed": "ours: not stated",
            "max_steps": "ours: whole epochs",
        },
    ),
}

_SCHEDULERS = (
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "inverse_sqrt",
    "warmup_stable_decay",
)  # fmt: skip


def _count(value: int) -> bool:
    return value >= 1


_RIGHT: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "learning_rate": (lambda value: 0 < value < 1, "a number between 0 and 1"),
    "scheduler": (lambda value: value in _SCHEDULERS, f"one of {', '.join(_SCHEDULERS)}"),
    "warmup": (lambda value: 0 <= value < 1, "a share below 1"),
    "batch": (_count, "at least 1"),
    "accumulation": (_count, "at least 1"),
    "sequences": (_count, "at least 1"),
    "epochs": (lambda value: 0 < value <= 1000, "more than 0 and at most 1,000"),
    "max_length": (lambda value: value >= 16, "at least 16 tokens"),
    "max_grad_norm": (lambda value: 0 <= value < math.inf, "0 (none) or more"),
    "parameters": (lambda value: 0 < value < math.inf, "a positive number"),
    "seed": (lambda value: 0 <= value < 2**32, "0 to 4294967295"),
    "max_steps": (lambda value: value == -1 or value >= 1, "at least 1, or -1 for whole epochs"),
    "save_steps": (_count, "at least 1"),
}

_FIXED = {"name", "tasks", "base", "sources"}


def recipe_of(name: str, changes: Mapping[str, str]) -> Recipe:
    """A recipe with changed values. Raises SettingsError for an unknown recipe or value."""
    if name not in RECIPES:
        raise SettingsError(f"unknown recipe {name!r}; recipes: {', '.join(RECIPES)}")
    recipe, types = RECIPES[name], get_type_hints(Recipe)
    known = [field.name for field in fields(Recipe) if field.name not in _FIXED]
    values: dict[str, Any] = {}
    for key, text in changes.items():
        if key not in known:
            raise SettingsError(f"unknown value {key!r} of a recipe; values: {', '.join(known)}")
        values[key] = _read(key, text, types[key])
    changed = replace(recipe, **values)
    for key, (right, said) in _RIGHT.items():
        value = getattr(changed, key)
        if value is not None and not right(value):
            raise SettingsError(f"{key}={value!r} of a recipe: {said}")
    return changed


def _read(key: str, text: str, kind: Any) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is str:
            return text
        return float(text) if kind is float else int(text)
    except (KeyError, ValueError) as error:
        raise SettingsError(f"{key}={text!r} is not {getattr(kind, '__name__', 'a whole number')}") from error

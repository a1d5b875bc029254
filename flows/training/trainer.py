"""The trainer: TRL's, with the loss of the paper, going on from its last checkpoint.

Everything here needs the extra ``train``; without it each entrance says so.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import structlog

from corpus.errors import SettingsError, TerminalError
from corpus.ids import canonical_json, digest
from flows.training.cost import Cost, Shape, estimate, steps_of
from flows.training.data import Messages, Records
from flows.training.recipes import Recipe

log = structlog.get_logger("hchem.training")

_NEEDED = ("torch", "transformers", "trl", "datasets", "accelerate")
_STATE = "training.json"

Progress = Callable[[str, int, int], None]


def missing() -> list[str]:
    """Packages of the extra that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def require() -> None:
    """Raise SettingsError, which says how to install it, where the extra is missing."""
    absent = missing()
    if absent:
        raise SettingsError(
            f"training needs the extra 'train' ({', '.join(absent)} missing): pip install 'hchemsafety[train]'"
        )


@dataclass(frozen=True)
class Job:
    """One training: a recipe, its base model (folder or name), records, and where the result goes."""

    recipe: Recipe
    task: str
    base: str
    out: Path
    records: Records
    validation: Records | None = None
    cpu: bool = False

    @property
    def devices(self) -> int:
        """Processes that train together (``torchrun`` and ``accelerate launch`` say so), else 1."""
        return max(int(os.environ.get("WORLD_SIZE", "1")), 1)

    def fingerprint(self) -> str:
        """Changes with everything that decides the weights: recipe, base model, records, devices."""
        values = canonical_json(self.recipe.values())
        return digest(values, self.task, self.base, self.records.checksum, str(self.devices))


# --- before ----------------------------------------------------------------------------------------------------


def cost_of(job: Job) -> Cost:
    """Cost with the tokens of the base model where it can be read, else with those that the records state."""
    recipe, records = job.recipe, job.records
    if not missing() and Path(job.base).is_dir():
        tokenizer = _tokenizer(job.base)
        sizes = [_sizes(tokenizer, *pair) for pair in zip(records.prompts, records.answers, strict=True)]
        whole, own = [size for size, _ in sizes], [answer for _, answer in sizes]
        return estimate(whole, own, recipe, _shape(job.base), job.devices, "tokens of the base model")
    shares = [
        len(answer[0]["content"]) / max(sum(len(m["content"]) for m in [*prompt, *answer]), 1)
        for prompt, answer in zip(records.prompts, records.answers, strict=True)
    ]
    own = [round(size * share) for size, share in zip(records.tokens, shares, strict=True)]
    counted = "tokens as the records state them (the base model's are counted where its folder is given)"
    return estimate(records.tokens, own, recipe, Shape(recipe.parameters), job.devices, counted)


def _tokenizer(base: str) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(base)
    except (OSError, ValueError) as error:
        raise SettingsError(f"base model {base!r} has no tokenizer that can be read: {error}") from error
    if not tokenizer.chat_template:
        raise SettingsError(
            f"the tokenizer of {base!r} has no chat template; take the instruct or chat form of the model"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _sizes(tokenizer: Any, prompt: Messages, answer: Messages) -> tuple[int, int]:
    """Tokens of a record and of its answer, with what the chat template adds."""
    before = tokenizer.apply_chat_template(
        prompt, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    whole = tokenizer.apply_chat_template([*prompt, *answer], tokenize=True, return_dict=False)
    return len(whole), len(whole) - len(before)


def _shape(base: str) -> Shape:
    """Sizes of a model from its configuration, without its weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(base)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    text = config.get_text_config()
    return Shape(
        sum(part.numel() for part in model.parameters()),
        text.num_hidden_layers,
        text.hidden_size,
        text.vocab_size,
    )


# --- the loss --------------------------------------------------------------------------------------------------


def mean_of_means(logits: Any, labels: Any) -> Any:
    """The paper's loss: of each sequence the mean over its answer's tokens, of these the mean.

    ``logits`` (sequences, tokens, words) predict ``labels`` (sequences, tokens) at the
    same place; −100 is no token. A long answer weighs as much as a short one.
    """
    import torch

    losses = torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), labels, ignore_index=-100, reduction="none"
    )
    told = labels != -100
    means = losses.sum(dim=1) / told.sum(dim=1).clamp(min=1)
    return means.sum() / told.any(dim=1).sum().clamp(min=1)


def trainer_class() -> type[Any]:
    """TRL's ``SFTTrainer`` with :func:`mean_of_means`.

    The usual loss is the mean over all answer tokens of a step, in which an answer
    of a thousand tokens counts a hundred times as much as one of ten.
    """
    require()
    from trl import SFTTrainer

    class SequenceMeanTrainer(SFTTrainer):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            # a mean of means is not scaled by the tokens of a step: the trainer divides by the micro-batches
            self.model_accepts_loss_kwargs = False
            self.loss_is_scaled_for_ga = False
            forward = inspect.signature(type(self.accelerator.unwrap_model(self.model)).forward)
            self._keeps = "logits_to_keep" in forward.parameters

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            given = {name: value for name, value in inputs.items() if name != "labels"}
            following = inputs["labels"][:, 1:]
            kept = (following != -100).any(dim=0).nonzero().flatten()  # the logits of prompts are not needed
            if self._keeps:
                outputs = model(**given, use_cache=False, logits_to_keep=kept)
                logits = outputs.logits
            else:
                outputs = model(**given, use_cache=False)
                logits = outputs.logits[:, kept]
            loss = mean_of_means(logits, following[:, kept])
            return (loss, outputs) if return_outputs else loss

    return SequenceMeanTrainer


# --- a training ------------------------------------------------------------------------------------------------


def fit(
    job: Job, progress: Progress = lambda step, done, total: None, *, afresh: bool = False
) -> dict[str, Any]:
    """Train, going on from the last checkpoint; the weights are in ``out/model``. Returns the figures.

    Raises SettingsError where the extra or the model is missing, no record fits,
    or ``out`` holds a training of something else (``afresh`` replaces it).
    """
    require()
    from transformers import AutoModelForCausalLM, PrinterCallback, set_seed

    recipe = job.recipe
    checkpoint = _prepare(job, afresh=afresh)
    tokenizer = _tokenizer(job.base)
    train, too_long = _dataset(job.records, tokenizer, recipe.max_length)
    if not len(train):
        raise SettingsError(
            f"no record of {job.task} has at most {recipe.max_length} tokens (--set max_length=…)"
        )
    held_out = _dataset(job.validation, tokenizer, recipe.max_length)[0] if job.validation else None
    set_seed(recipe.seed)
    try:
        # float32 weights, bf16 arithmetic: at this learning rate steps would be lost in bf16 weights
        model = AutoModelForCausalLM.from_pretrained(job.base, dtype="float32")
    except (OSError, ValueError) as error:
        raise SettingsError(f"base model {job.base!r} cannot be loaded: {error}") from error
    steps = steps_of(len(train), recipe, job.devices)
    trainer = trainer_class()(
        model=model,
        args=_arguments(job, steps, evaluated=held_out is not None and len(held_out) > 0),
        train_dataset=train,
        eval_dataset=held_out if held_out is not None and len(held_out) else None,
        processing_class=tokenizer,
        callbacks=[_reporter(progress)],
    )
    trainer.remove_callback(PrinterCallback)  # it prints to stdout, which is the command's own
    done = trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model(str(job.out / "model"))
    figures: dict[str, Any] = {
        "task": job.task,
        "records": len(train),
        "too_long": too_long,
        "steps": int(trainer.state.global_step),
        "resumed_from": Path(checkpoint).name if checkpoint else None,
        "loss": float(done.training_loss),
        "model": str(job.out / "model"),
    }
    if held_out is not None and len(held_out):
        figures["validation_loss"] = float(trainer.evaluate()["eval_loss"])
    if trainer.is_world_process_zero():
        (job.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def _prepare(job: Job, *, afresh: bool) -> str | None:
    """See that ``out`` is this training's; returns its last checkpoint."""
    from transformers.trainer_utils import get_last_checkpoint

    state = job.out / _STATE
    try:
        begun = state.is_file()
        if begun and afresh:
            for folder in [*job.out.glob("checkpoint-*"), job.out / "model"]:
                shutil.rmtree(folder, ignore_errors=True)
        elif begun:
            known = json.loads(state.read_text(encoding="utf-8"))
            if known.get("fingerprint") != job.fingerprint():
                raise SettingsError(
                    f"{job.out} holds another training (recipe, base model, records or devices differ); "
                    "choose another --out, or --afresh replaces it"
                )
        elif job.out.is_dir() and any(job.out.iterdir()):
            raise SettingsError(f"{job.out} is not empty and holds no training; choose another --out")
        job.out.mkdir(parents=True, exist_ok=True)
        said = {"fingerprint": job.fingerprint(), "task": job.task, "base": job.base, **job.recipe.values()}
        state.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SettingsError(f"{job.out} cannot be used: {error}") from error
    found: str | None = get_last_checkpoint(str(job.out))
    return found


def _dataset(records: Records, tokenizer: Any, max_length: int) -> tuple[Any, int]:
    """Prompts and answers for the trainer; records that are too long are left out, never cut."""
    from datasets import Dataset

    rows: list[Mapping[str, Messages]] = []
    for prompt, answer in zip(records.prompts, records.answers, strict=True):
        if _sizes(tokenizer, prompt, answer)[0] <= max_length:
            rows.append({"prompt": prompt, "completion": answer})
    return Dataset.from_list(rows), len(records) - len(rows)


def _arguments(job: Job, steps: int, *, evaluated: bool) -> Any:
    from trl import SFTConfig

    recipe = job.recipe
    try:
        return SFTConfig(
            output_dir=str(job.out),
            per_device_train_batch_size=recipe.batch,
            per_device_eval_batch_size=recipe.batch,
            gradient_accumulation_steps=recipe.accumulate(job.devices),
            learning_rate=recipe.learning_rate,
            lr_scheduler_type=recipe.scheduler,
            warmup_steps=-int(-recipe.warmup * steps // 1),
            num_train_epochs=recipe.epochs,
            max_steps=recipe.max_steps,
            max_grad_norm=recipe.max_grad_norm,
            optim=recipe.optimizer,
            bf16=recipe.bf16,
            use_cpu=job.cpu,
            **{_checkpointing(SFTConfig): recipe.checkpointing},
            max_length=recipe.max_length,
            completion_only_loss=True,
            packing=False,
            seed=recipe.seed,
            data_seed=recipe.seed,
            logging_steps=1 if steps < 100 else 10,
            save_strategy="steps",
            save_steps=recipe.save_steps,
            save_total_limit=2,
            eval_strategy="steps" if evaluated else "no",
            eval_steps=recipe.save_steps,
            report_to="none",
            disable_tqdm=True,
            dataloader_num_workers=0,
        )
    except (ValueError, ImportError) as error:  # bf16 on a device without it, an unknown scheduler
        raise SettingsError(f"the recipe does not fit this machine: {error}") from error


def _checkpointing(config: Any) -> str:
    """The name of the argument that trades activations for time; it changed in transformers 5."""
    named = {field.name for field in fields(config)}
    return next(name for name in ("activation_checkpointing", "gradient_checkpointing") if name in named)


def _reporter(progress: Progress) -> Any:
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            progress("training steps", int(state.global_step), int(state.max_steps))

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            loss = (logs or {}).get("loss")
            log.info("training", step=int(state.global_step), figures=dict(logs or {}))
            if loss is not None and math.isnan(loss):  # nothing that follows can be of use
                raise TerminalError(
                    f"the loss is not a number at step {state.global_step}", reason="diverged"
                )

    return Reporter()


def names(values: Sequence[str]) -> dict[str, str]:
    """``key=value`` words as a mapping. Raises SettingsError for another form."""
    found: dict[str, str] = {}
    for word in values:
        key, mark, value = word.partition("=")
        if not mark or not key.strip():
            raise SettingsError(f"--set {word!r}: expected name=value")
        found[key.strip()] = value.strip()
    return found

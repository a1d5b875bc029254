"""The trainer on a tiny model with random weights. Left out where the extra ``train`` is not installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.errors import SettingsError
from flows.training.data import Records, read_records
from flows.training.recipes import recipe_of
from flows.training.trainer import Job, cost_of, fit, mean_of_means, trainer_class
from tests.flows.conftest import Command

for _package in ("torch", "transformers", "trl", "datasets", "accelerate"):
    pytest.importorskip(_package, reason="the extra 'train' is not installed")

_LONG = "储存于阴凉、通风的库房，远离火种、热源，不得与氧化剂混存。Keep cool. " * 3
_ROWS = [
    ("乙醇易燃吗？", "是。"),
    ("Is ethanol flammable?", "Yes."),
    ("如何储存？", _LONG),
    ("Storage?", _LONG[:60]),
] * 4
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of a few thousand weights and a tokenizer of this file's words, in a folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("base")
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([text for row in _ROWS for text in row], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|pad|>")
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=1024, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


def _records(tmp_path: Path, made_by: str = "model") -> Records:
    rows = [
        {
            "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}],
            "made_by": made_by,
            "tokens": len(asked) + len(answer),
        }
        for asked, answer in _ROWS
    ]
    (tmp_path / "levels.train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_records(tmp_path, "levels", "train", allow_offline=False)


def _job(tmp_path: Path, base: str, **changes: str) -> Job:
    values = {
        "bf16": "false", "checkpointing": "false", "batch": "2", "sequences": "8", "max_length": "1024",
        "save_steps": "2",
    }  # fmt: skip
    recipe = recipe_of("hichunk-paper", {**values, **changes})
    records = _records(tmp_path)
    return Job(recipe, "levels", base, tmp_path / "out", records, records, cpu=True)


def test_the_loss_is_the_mean_of_each_answers_mean() -> None:
    import torch

    torch.manual_seed(0)
    logits, labels = torch.randn(3, 6, 5), torch.randint(0, 5, (3, 6))
    labels[0, 2:] = labels[1, :5] = labels[2, :] = -100
    logged = torch.log_softmax(logits, dim=-1)
    first = -(logged[0, 0, labels[0, 0]] + logged[0, 1, labels[0, 1]]) / 2
    second = -logged[1, 5, labels[1, 5]]
    assert float(mean_of_means(logits, labels)) == pytest.approx(float((first + second) / 2), rel=1e-6)
    assert float(mean_of_means(logits[2:], labels[2:])) == 0.0


def test_a_step_of_the_trainer_follows_that_loss(tmp_path: Path, base: str) -> None:
    """One step of plain gradient descent over four micro-batches against the gradient worked out by hand."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    job = _job(
        tmp_path, base, optimizer="sgd", learning_rate="0.5", max_steps="1", warmup="0", scheduler="constant",
        max_grad_norm="0", sequences="16",
    )  # fmt: skip
    fit(job)
    trained = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "model", dtype="float32")
    by_hand = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(base)
    total: Any = 0.0
    pooled: Any = 0.0
    words = 0
    for prompt, answer in zip(job.records.prompts, job.records.answers, strict=True):
        before = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False)
        whole = tokenizer.apply_chat_template([*prompt, *answer], return_dict=False)
        logits = by_hand(torch.tensor([whole])).logits[0]
        told = torch.log_softmax(logits, -1)[range(len(before) - 1, len(whole) - 1), whole[len(before) :]]
        total = total - told.mean() / len(_ROWS)
        pooled = pooled - told.sum()
        words += len(told)
    weights = list(by_hand.parameters())
    wanted = torch.autograd.grad(total, weights, retain_graph=True)
    usual = torch.autograd.grad(pooled / words, weights)  # the mean over all answer tokens of the step
    steps = [before_ - after for before_, after in zip(weights, trained.parameters(), strict=True)]
    scale = max(float(part.abs().max()) for part in wanted) * 0.5

    def distance(gradients: Any) -> float:
        return max(
            float((step - 0.5 * part).abs().max()) for step, part in zip(steps, gradients, strict=True)
        )

    assert distance(wanted) < scale / 1000
    assert distance(usual) > scale / 20


def test_a_training_goes_on_from_its_checkpoint_and_learns(tmp_path: Path, base: str) -> None:
    job = _job(tmp_path, base, learning_rate="0.01", max_steps="6", warmup="0.1")
    seen: list[tuple[int, int]] = []

    class Killed(Exception):
        pass

    def stop_after_three(step: str, done: int, total: int) -> None:
        seen.append((done, total))
        if done == 3:
            raise Killed

    with pytest.raises(Killed):
        fit(job, stop_after_three)
    done = fit(job, lambda step, at, total: seen.append((at, total)))
    assert seen == [(1, 6), (2, 6), (3, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
    assert (done["resumed_from"], done["steps"], done["records"]) == ("checkpoint-2", 6, len(_ROWS))
    assert done["validation_loss"] < 5.8  # a uniform guess over 400 words costs 5.99
    other = _job(tmp_path, base, learning_rate="0.02", max_steps="6")
    with pytest.raises(SettingsError, match="holds another training"):
        fit(other)
    whole = tmp_path / "whole"
    again = fit(Job(job.recipe, job.task, base, whole, job.records, job.records, cpu=True))
    assert again["validation_loss"] == pytest.approx(done["validation_loss"], rel=1e-3)
    fit(other, afresh=True)


def test_records_are_left_out_and_never_cut(tmp_path: Path, base: str) -> None:
    job = _job(tmp_path, base, max_length="60", max_steps="1", epochs="1")
    cost = cost_of(job)
    assert (cost.records + cost.too_long, cost.longest <= 60) == (len(_ROWS), True)
    assert 0 < cost.too_long < len(_ROWS)
    assert cost.counted == "tokens of the base model"
    assert cost.activation_bytes is not None
    assert fit(job)["too_long"] == cost.too_long
    with pytest.raises(SettingsError, match="at most 16 tokens"):
        fit(_job(tmp_path, base, max_length="16"), afresh=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_command_trains_as_a_prefect_flow(tmp_path: Path, base: str) -> None:
    """As a user calls it: a server of its own, checkpoints, weights that can be loaded, a second call that is done."""
    from transformers import AutoModelForCausalLM

    _records(tmp_path)
    (tmp_path / "levels.validation.jsonl").write_bytes((tmp_path / "levels.train.jsonl").read_bytes())
    command = Command(tmp_path / "data")
    words = [
        "train",
        "hichunk-paper",
        "--data",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
        "--base",
        base,
        "--cpu",
    ]
    changes = (
        "bf16=false",
        "checkpointing=false",
        "batch=2",
        "sequences=8",
        "max_length=1024",
        "max_steps=2",
    )
    words += [word for change in changes for word in ("--set", change)]
    try:
        plan = json.loads(command.run(*words, "--dry-run", "--json").stdout)
        assert (plan["cost"]["steps"], plan["cost"]["counted"]) == (2, "tokens of the base model")
        assert not (tmp_path / "out").exists()
        figures = json.loads(command.run(*words, "--json").stdout)
        assert (figures["steps"], figures["records"], figures["resumed_from"]) == (2, len(_ROWS), None)
        assert AutoModelForCausalLM.from_pretrained(figures["model"]).num_parameters() > 1000
        again = json.loads(command.run(*words, "--json").stdout)
        assert (again["steps"], again["resumed_from"]) == (2, "checkpoint-2")
    finally:
        command.run("down", code=None)


def test_a_base_model_that_cannot_serve_is_named(tmp_path: Path, base: str) -> None:
    empty = tmp_path / "nothing"
    empty.mkdir()
    with pytest.raises(SettingsError, match="no tokenizer that can be read"):
        fit(_job(tmp_path, str(empty), max_steps="1"))
    assert trainer_class().__name__ == "SequenceMeanTrainer"

"""``python -m flows.train`` and ``hchem dataset training`` as far as they go without the extra ``train``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from corpus.errors import PlatformError, SettingsError
from flows import train as command
from flows.commands.training import training
from flows.presets import load
from flows.training import trainer
from flows.training.cost import Shape, estimate, steps_of
from flows.training.recipes import RECIPES, recipe_of
from tests.chunking.published_sets import put
from tests.conftest import REPOSITORY


def _write(folder: Path, task: str = "levels", made_by: str = "model", rows: int = 10) -> None:
    row = {
        "messages": [{"role": "user", "content": "如何储存？" * 20}, {"role": "assistant", "content": "{}"}],
        "made_by": made_by,
        "tokens": 102,
    }
    for split, number in (("train", rows), ("validation", 1)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n") * number
        (folder / f"{task}.{split}.jsonl").write_text(lines, encoding="utf-8")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(command.app, list(arguments))


def test_the_recipes_are_those_of_the_presets() -> None:
    for name in RECIPES:
        (stated,) = [row.paper for row in load(name).not_applied if row.what.startswith("training")]
        recipe = RECIPES[name]
        assert "lr 1e-5" in stated
        assert recipe.learning_rate == 1e-5
        if name == "qchunker-paper":
            assert "cosine, 10 % warm-up, 2 × 16 accumulation, bf16" in stated
            assert (recipe.scheduler, recipe.warmup, recipe.batch, recipe.accumulation, recipe.bf16) == (
                "cosine", 0.1, 2, 16, True,
            )  # fmt: skip
        else:
            assert "batch 64" in stated
            assert [recipe.batch * n * recipe.accumulate(n) for n in (1, 2, 8, 32)] == [64] * 4
        assert recipe.sources is not None
        assert set(recipe.sources) - {"loss"} <= recipe.values().keys()


def test_steps_and_cost_are_those_of_the_arithmetic() -> None:
    recipe = recipe_of("qchunker-paper", {})
    assert steps_of(45_000, recipe, 1) == 1407  # 22,500 micro-batches by 16
    cost = estimate(
        [1000] * 44_999 + [20_000], [100] * 45_000, recipe, Shape(3e9, 36, 2048, 151_936), 1, "tokens"
    )
    assert (cost.records, cost.too_long, cost.tokens, cost.longest) == (44_999, 1, 44_999_000, 1000)
    assert (cost.steps, cost.warmup_steps, cost.records_a_step) == (1407, 141, 32)
    assert cost.state_bytes == 48e9
    assert cost.activation_bytes == 2 * (1000 * 2048 * (72 + 34) + 100 * 151_936 * 12)
    assert cost.operations == pytest.approx(8 * 3e9 * 1000 * 1407 * 32)
    with pytest.raises(SettingsError, match="cannot be shared by 3 devices"):
        recipe_of("hichunk-paper", {}).accumulate(3)


@pytest.mark.parametrize("changes,reason", [
    ({"lr": "1"}, "unknown value 'lr'"), ({"batch": "two"}, "batch='two'"), ({"bf16": "1"}, "bf16='1'"),
    ({"warmup": "2"}, "a share below 1"), ({"batch": "0"}, "batch=0.*at least 1"), ({"scheduler": "foo"}, "one of linear"),
    ({"learning_rate": "inf"}, "between 0 and 1"), ({"learning_rate": "nan"}, "between 0 and 1"), ({"epochs": "1e9"}, "at most"),
    ({"max_steps": "0"}, "or -1"), ({"max_steps": "-7"}, "or -1"), ({"seed": "-1"}, "seed=-1"),
])  # fmt: skip
def test_wrong_values_of_a_recipe_are_named(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        recipe_of("qchunker-paper", changes)


def test_a_dry_run_tells_recipe_sources_and_cost(tmp_path: Path) -> None:
    _write(tmp_path, rows=100)
    arguments = ["hichunk-paper", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--dry-run"]
    shown = _run(*arguments, "--set", "epochs=3").stdout
    assert "learning_rate: 1e-05  (paper)" in shown
    assert "epochs: 3.0  (changed; the recipe has 2.0)" in shown
    assert "loss: mean over each answer's tokens" in shown
    assert "steps: 6 of 64 records (3 epochs), 1 of them warm-up" in shown
    assert "64.3 GB for weights, gradients and optimizer" in shown
    plan = json.loads(_run(*arguments, "--json").stdout)
    assert (plan["cost"]["steps"], plan["cost"]["tokens"], plan["made_by"]) == (4, 10_200, {"model": 100})
    assert not (tmp_path / "out").exists()


def _refused(*arguments: str) -> str:
    result = _run(*arguments)
    assert isinstance(result.exception, PlatformError), result.output
    return str(result.exception)


def test_records_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    given = ["hichunk-paper", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--dry-run"]
    assert "hchem dataset training --out" in _refused(*given)
    _write(tmp_path, made_by="offline")
    assert "10 offline" in _refused(*given)
    assert _run(*given, "--allow-offline").exit_code == 0
    file = tmp_path / "levels.train.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "?"}]}\n')
    assert "line 1: not a chat record (messages: " in _refused(*given)
    asked, said = '{"role": "user", "content": "?"}', '{"role": "assistant", "content": "!"}'
    file.write_text(f'{{"messages": [{said}, {said}]}}\n')
    assert "line 1: a chat record ends with a question and the assistant's answer" in _refused(*given)
    for broken in (f'{{"messages": [{asked}, {said}], "tokens": "many"}}', "[]", "[" * 100_000, "{"):
        file.write_text(broken + "\n")
        assert "line 1: not a chat record" in _refused(*given)
    for base in ("", " ", str(tmp_path / "nowhere")):
        assert "--base" in _refused(*given, "--base", base)
    sums = file.with_name("checksums.txt")
    sums.write_text("")
    assert "was not finished" in _refused(*given)
    sums.write_text(f"{'0' * 64}  levels.train.jsonl\n")
    assert "is not as it was built" in _refused(*given)
    sums.unlink()
    file.write_text("")
    file.with_name("levels.validation.jsonl").write_text("")
    assert "no records of levels" in _refused(*given)
    assert "trains generate, discriminate, refine" in _refused("qchunker-paper", *given[1:])
    assert "unknown recipe 'x'" in _refused("x", *given[1:])


@pytest.mark.parametrize("words,reason", [(["--set", "batch"], "expected name=value")])
def test_wrong_words_are_one_line(tmp_path: Path, words: list[str], reason: str) -> None:
    _write(tmp_path)
    assert reason in _refused("hichunk-paper", "--data", str(tmp_path), "--out", str(tmp_path / "o"), *words)


def test_without_the_extra_one_line_says_how_to_install_it(tmp_path: Path) -> None:
    if not trainer.missing():
        pytest.skip("the extra 'train' is installed")
    _write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "flows.train", "hichunk-paper", "--data", str(tmp_path), "--out", str(tmp_path / "o")],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("flows.train: training needs the extra 'train' (")
    assert "pip install 'hchemsafety[train]'" in done.stderr
    assert done.stderr.count("\n") == 1


# --- hchem dataset training ------------------------------------------------------------------------------------


def _training(monkeypatch: pytest.MonkeyPatch, data: Path, *arguments: str) -> Result:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(data))
    app = typer.Typer()
    app.command()(training)
    return CliRunner().invoke(app, list(arguments))


def test_levels_records_of_published_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(tmp_path / "sets" / "qas" / "Made.jsonl", "")
    for name, line, head in (
        ("zh", "不得与氧化剂混存，远离火种。", "储存"),
        ("en", "Keep away from sources of fire. ", "Storage"),
    ):
        parts = "".join(f"## {head} {n}\n{line * 8}\n\n" for n in range(4))
        put(tmp_path / "sets" / "docs" / "Made" / f"{name}.txt", f"# {head}\n\n{parts}")
    out = tmp_path / "out"
    options = ["--out", str(out), "--direct", "--task", "levels", "--json", "--held-out", "0"]
    result = _training(
        monkeypatch, tmp_path / "data", *options, "--levels-from", f"hichunk={tmp_path / 'sets'}"
    )
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    rows = [json.loads(line) for line in (out / "levels.train.jsonl").read_text("utf-8").splitlines()]
    assert figures["records"] == [["levels", "train", len(rows)]]
    assert rows
    assert all(row["made_by"] == "document" for row in rows)
    assert os.listdir(out).count("README.md") == 1


@pytest.mark.parametrize("words,reason", [
    (["--task", "x"], "tasks: generate, discriminate, refine, levels"),
    (["--levels-from", "choi=x"], "expected NAME=PATH"),
    ([], "no documents"),
])  # fmt: skip
def test_wrong_use_of_the_records_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], reason: str
) -> None:
    result = _training(monkeypatch, tmp_path / "data", "--out", str(tmp_path / "out"), "--direct", *words)
    assert isinstance(result.exception, PlatformError)
    assert reason in str(result.exception)

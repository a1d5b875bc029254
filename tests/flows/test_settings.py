"""Settings: precedence, errors that name the places, the reference page, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.errors import SettingsError
from flows.reference import markdown
from flows.settings import Settings, load_settings
from tests.conftest import REPOSITORY


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_environment_over_file_over_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hchem.toml").write_text("[flows]\nworkers = 3\npasses = 4\n", encoding="utf-8")
    monkeypatch.setenv("HCHEM_FLOWS__WORKERS", "5")
    settings = load_settings()
    assert (settings.flows.workers, settings.flows.passes, settings.flows.lease_s) == (5, 4, 120.0)
    assert load_settings({"flows": {"workers": 7}}).flows.workers == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[flows]\nworkers = 0\n", ["flows.workers", "HCHEM_FLOWS__WORKERS", "hchem.toml"]),
        ("[flows\n", ["TOML"]),
        ("[nope]\nx = 1\n", ["nope"]),
    ],
)
def test_a_wrong_file_names_setting_and_places(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "hchem.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert all(word in str(caught.value) for word in words)


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("HCHEM_GRAPH__PASSWORD", "graph-secret")
    monkeypatch.setenv("HCHEM_CATALOGUE__URL", "postgresql://u:db-secret@h/x")
    settings = load_settings()
    shown = f"{settings!r}{settings.model_dump(mode='json')}{settings.model_dump_json()}"
    for secret in ("sk-very-secret", "graph-secret", "db-secret"):
        assert secret not in shown
    assert settings.catalogue_url() == "postgresql://u:db-secret@h/x"
    assert settings.models.api_key is not None
    assert settings.models.api_key.get_secret_value() == "sk-very-secret"


def test_names_that_scripts_rely_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "HCHEM_DATA_DIR": "/d",
        "HCHEM_GRAPH__URI": "bolt://h:1",
        "HCHEM_GRAPH__USER": "u",
        "HCHEM_GRAPH__PASSWORD": "p",
        "OPENAI_API_KEY": "k",
        "HCHEM_GRAPH__DATABASE": "g",
        "HCHEM_VECTORS__URI": "http://v:1",
        "HCHEM_MODELS__BASE_URL": "http://m/v1",
        "HCHEM_MODELS__MODEL": "mm",
        "HCHEM_EMBEDDINGS__BASE_URL": "http://e/v1",
        "HCHEM_EMBEDDINGS__MODEL": "em",
        "HCHEM_EMBEDDINGS__API_KEY": "e",
    }.items():
        monkeypatch.setenv(name, value)
    s = load_settings()
    assert (str(s.data_dir), s.graph.uri, s.graph.user, s.graph.database) == ("/d", "bolt://h:1", "u", "g")
    assert (s.vectors.uri, s.models.model) == ("http://v:1", "mm")
    assert str(s.models.base_url) == "http://m/v1"
    assert s.models.embeddings.model == "em"


def test_every_setting_is_described_and_the_reference_is_current() -> None:
    def undescribed(model: type, prefix: str = "") -> list[str]:
        found = []
        for name, field in model.model_fields.items():  # type: ignore[attr-defined]
            inner = field.annotation
            if isinstance(inner, type) and hasattr(inner, "model_fields"):
                found += undescribed(inner, f"{prefix}{name}.")
            elif not field.description:
                found.append(f"{prefix}{name}")
        return found

    assert undescribed(Settings) == []
    assert (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8") == markdown()

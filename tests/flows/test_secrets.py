"""API keys: refused in files, read from Prefect Secret blocks on a real server, found nowhere afterwards."""

from __future__ import annotations

import json
import os
import sqlite3
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document
from corpus.errors import SettingsError
from corpus.ids import digest
from flows import secrets
from flows.settings import PrefectSettings, load_settings
from models import Models
from models.errors import ModelRefused
from models.settings import StoredKey
from tests.flows.conftest import Command
from tests.models.skills import ScoreDocument
from tests.servers.model_server import Fault, ModelServer, Request
from tests.servers.prefect_api import prefect_api

KEY = "planted-key-0a1b2c3d4e5f"  # of no provider's form: nothing but knowing it can hide it
REMOTE = 'base_url = "https://models.example/v1"\nmodel = "m"\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    kept = dict(os.environ)
    for name in kept:
        if name.startswith("PREFECT_"):
            monkeypatch.delenv(name)
    yield
    for name in set(os.environ) - set(kept):
        if name.startswith("PREFECT_"):  # what reading a block has set
            del os.environ[name]


def write(text: str) -> None:
    Path("hchem.toml").write_text(text, encoding="utf-8")


# --- files ------------------------------------------------------------------------

SECTIONS = {
    "models": "OPENAI_API_KEY or HCHEM_MODELS__API_KEY",
    "models.skills.judge_facts": "HCHEM_MODELS__SKILLS__JUDGE_FACTS__API_KEY",
    "models.perplexity": "HCHEM_MODELS__PERPLEXITY__API_KEY",
    "models.embeddings": "HCHEM_MODELS__EMBEDDINGS__API_KEY",
    "embeddings": "HCHEM_EMBEDDINGS__API_KEY",
    "models.extra": "HCHEM_MODELS__EXTRA__API_KEY",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_a_key_in_the_file_is_refused_and_both_ways_are_named(section: str) -> None:
    write(f'[{section}]\napi_key = "{KEY}"\n')
    with pytest.raises(SettingsError) as caught:
        load_settings()
    message = str(caught.value)
    assert message.startswith(f"hchem.toml sets {section}.api_key: API keys are not kept in files")
    assert f"({SECTIONS[section]})" in message
    assert message.endswith(f"{section}.api_key_block")
    assert KEY not in message


@pytest.mark.parametrize("spelt", ["API_KEY", "api-key", "Api_Key"])
def test_other_spellings_are_refused_too(spelt: str) -> None:
    write(f'[models.skills.judge_facts.extra]\n{spelt} = "{KEY}"\n')
    with pytest.raises(SettingsError, match="API keys are not kept in files") as caught:
        load_settings()
    assert KEY not in str(caught.value)


def test_the_environment_gives_keys_to_single_skills(monkeypatch: pytest.MonkeyPatch) -> None:
    write('[models.skills.judge_facts]\nbase_url = "https://judge.example/v1"\nmodel = "j"\n')
    with pytest.raises(SettingsError, match="HCHEM_MODELS__SKILLS__JUDGE_FACTS__API_KEY"):
        load_settings()
    monkeypatch.setenv("HCHEM_MODELS__SKILLS__JUDGE_FACTS__API_KEY", KEY)
    resolved = load_settings().models.resolve("judge_facts")
    assert resolved is not None
    assert resolved.api_key is not None
    assert resolved.api_key.get_secret_value() == KEY


def test_remote_embeddings_without_a_key_name_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    write('[embeddings]\nbase_url = "https://vectors.example/v1"\nmodel = "e"\n')
    with pytest.raises(SettingsError, match=r"HCHEM_EMBEDDINGS__API_KEY or embeddings\.api_key_block"):
        load_settings()
    monkeypatch.setenv("HCHEM_EMBEDDINGS__API_KEY", KEY)
    assert load_settings().models.embeddings.api_key is not None


# --- blocks, without a server --------------------------------------------------------


def test_settings_with_a_block_load_without_a_server_and_say_what_is_wrong_when_the_key_is_needed() -> None:
    write(f'[models]\n{REMOTE}api_key_block = "openai"\n')
    settings = load_settings()
    shown = f"{settings!r} {settings.model_dump_json()} {settings.model_dump(mode='json')}"
    assert "openai" in shown  # the name is no secret
    models = Models(settings.models)
    with pytest.raises(ModelRefused, match="hchem up") as caught:
        models.run(ScoreDocument(), "abc")
    assert str(caught.value).startswith("models.api_key_block names the Prefect Secret block 'openai'")
    assert caught.value.halts  # the run stops, its items stay to be done
    with pytest.raises(SettingsError, match=r"models\.api_key_block names .* 'openai'"):
        secrets.prove(settings)


def test_every_setting_that_can_name_a_block_is_named_in_its_error() -> None:
    write(
        f"""
        [models]
        {REMOTE}
        api_key_block = "one"
        [models.skills.judge_facts]
        base_url = "https://judge.example/v1"
        api_key_block = "two"
        [models.perplexity]
        backend = "completions"
        base_url = "https://losses.example/v1"
        model = "p"
        api_key_block = "three"
        [embeddings]
        base_url = "https://vectors.example/v1"
        model = "e"
        api_key_block = "four"
        """.replace("\n        ", "\n")
    )
    found = {key.setting: key.block for key in secrets.stored_keys(load_settings())}
    assert found == {
        "models.api_key_block": "one",
        "models.skills.judge_facts.api_key_block": "two",
        "models.perplexity.api_key_block": "three",
        "embeddings.api_key_block": "four",
    }
    for key in secrets.stored_keys(load_settings()):
        with pytest.raises(ModelRefused) as caught:
            key.get_secret_value()
        assert str(caught.value).startswith(f"{key.setting} names the Prefect Secret block {key.block!r}")


# --- blocks, on a real server ---------------------------------------------------------


def save_block(api: str, value: Any) -> str:
    """Store a Secret block over the REST API, as the page of the server does; returns its name."""
    kind = call(api, "GET", "/block_types/slug/secret")
    schemas = call(
        api, "POST", "/block_schemas/filter", {"block_schemas": {"block_type_id": {"any_": [kind["id"]]}}}
    )
    name = f"key-{uuid.uuid4().hex[:8]}"
    document = {
        "name": name,
        "data": {"value": value},
        "block_type_id": kind["id"],
        "block_schema_id": schemas[0]["id"],
    }
    call(api, "POST", "/block_documents/", document)
    return name


def call(api: str, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        api + path, data=data, method=method, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read() or b"null")


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_block_is_read_once_when_the_key_is_first_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    api = prefect_api()
    block = save_block(api, KEY)
    monkeypatch.setenv("PREFECT_API_URL", api)
    with ModelServer({"score": 4}, api_key=KEY) as server:
        write(f'[models]\nbase_url = "{server.base_url}"\nmodel = "m"\napi_key_block = "{block}"\n')
        settings = load_settings()
        key = settings.models.api_key
        assert isinstance(key, StoredKey)
        assert key.known == ""
        models = Models(settings.models)
        assert models.run(ScoreDocument(), "abc").value.score == 4
        assert key.known == KEY
        monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
        assert models.run(ScoreDocument(), "abcd").value.score == 4  # kept in memory
        secrets.prove(settings)
        models.close()
    shown = f"{settings!r} {settings.model_dump_json()} {settings.model_dump(mode='json')} {settings.model_dump()}"
    assert KEY not in shown
    log = settings.models.log_file
    assert log is not None
    assert len(log.read_text().splitlines()) == 2
    assert KEY not in log.read_text()


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_missing_block_an_odd_one_and_a_dead_server_are_clear_errors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    api = prefect_api()
    monkeypatch.setenv("PREFECT_API_URL", api)
    setting = "models.skills.judge_facts.api_key_block"
    for block, words in (
        ("no-such-block", "does not have"),
        (save_block(api, {"user": KEY}), "does not hold a text"),
        (save_block(api, "   "), "does not hold a text"),
    ):
        with pytest.raises(ModelRefused, match=words) as caught:
            secrets.read_block(block, setting, tmp_path, PrefectSettings())
        assert str(caught.value).startswith(f"{setting} names the Prefect Secret block {block!r}")
        assert KEY not in str(caught.value)
    assert (
        secrets.read_block(save_block(api, "12345678"), setting, tmp_path, PrefectSettings()) == "12345678"
    )  # not a number
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    with pytest.raises(ModelRefused, match="does not answer: ConnectError"):
        secrets.read_block("any", setting, tmp_path, PrefectSettings())


# --- a whole stage, and then the search for the key --------------------------------------

_TEXTS = {
    "zh": "# 丙酮（测试页，内容为编写）\n\n丙酮为无色液体，闪点 -20 ℃，沸点 56 ℃。应储存于阴凉、通风的库房，远离火种、热源。",
    "en": "# Acetone (a made-up page)\n\nAcetone is a colourless liquid, flash point -20 °C, boiling point 56 °C. "
    "Store it in a cool and well-ventilated place, away from sparks and open flames.",
}


def fill(url: str) -> None:
    """Two cleaned documents, made up, as the cleaning step leaves them."""
    catalogue = Catalogue.open(url)
    with catalogue.writing() as session:
        for language, text in _TEXTS.items():
            session.add(
                Document(
                    document_id=f"doc-{language}",
                    page_id=f"page-{language}",
                    source="made-up",
                    url=f"https://made-up.example/{language}",
                    identity=language,
                    title=text.split("\n")[0].strip("# "),
                    language=language,
                    state="kept",
                    cleaned_text=text,
                    cleaned_hash=digest("text", text),
                    cleaned_blocks=[
                        {"start": 0, "end": len(text), "path": "/html/body", "kind": "paragraph"}
                    ],
                )
            )
    catalogue.close()


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_after_a_run_the_key_is_nowhere(tmp_path: Path) -> None:
    """The server of models is hostile: it says the key in answers and in errors."""
    api = prefect_api()
    block = save_block(api, KEY)

    def script(request: Request) -> Any:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        if "Acetone" in request.text:
            return Fault(
                status=400, message=f"the request with key {KEY} was refused (Authorization: Bearer {KEY})"
            )
        return {"reason": "made up", "score": "wrong type"}

    with ModelServer(script) as server:
        command = Command(
            tmp_path / "data",
            {
                "PREFECT_API_URL": api,
                "HCHEM_MODELS__BASE_URL": server.base_url,
                "HCHEM_MODELS__MODEL": "m",
                "HCHEM_MODELS__API_KEY_BLOCK": block,
                "HCHEM_MODELS__LOG": "full",
                "HCHEM_FLOWS__MAX_FAILED_SHARE": "1",
            },
        )
        command.data_dir.mkdir()
        fill(f"sqlite:///{command.data_dir}/catalogue.db")
        finished = command.run("-vv", "run", "curate", code=None)
        assert len(server.calls()) >= 2, finished.stderr
        shown = command.run("models", "show")
        checked = command.run("models", "check", code=None)
        last = command.run("runs", "show", "last", "--json", code=None)
    for output in (finished, shown, checked, last):
        assert KEY not in output.stdout + output.stderr
    assert json.loads(last.stdout)["stages"]["curate"]

    with sqlite3.connect(command.data_dir / "catalogue.db") as database:
        dump = "\n".join(database.iterdump())
    assert "was refused" in dump  # the failure, with stars for the key
    assert block in dump  # the name of the block stands in the run's settings
    assert KEY not in dump
    log = command.data_dir / "logs" / "models.jsonl"
    assert "was refused" in log.read_text(encoding="utf-8")
    files = [path for path in command.data_dir.rglob("*") if path.is_file()]
    assert log in files
    assert [str(path) for path in files if KEY.encode() in path.read_bytes()] == []

    flows = call(api, "POST", "/flow_runs/filter", {"limit": 100})
    assert any(flow["parameters"] for flow in flows)
    everything = [
        flows,
        call(api, "POST", "/task_runs/filter", {"limit": 200}),
        call(api, "POST", "/artifacts/filter", {"limit": 200}),
        call(api, "POST", "/logs/filter", {"limit": 200}),
        call(api, "POST", "/variables/filter", {"limit": 200}),
    ]
    assert all(everything[:2])
    assert everything[3]
    assert KEY not in json.dumps(everything)

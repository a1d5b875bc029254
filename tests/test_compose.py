"""``compose.yaml``: written as the Compose specification asks, and saying what the platform's settings say."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from flows import prefect_server
from flows.cli import TOP_LEVEL
from flows.settings import PrefectSettings, load_settings
from tests.conftest import REPOSITORY

SECRETS = {
    "POSTGRES_PASSWORD": "geheim-pg1",
    "NEO4J_PASSWORD": "geheim-neo4j",
    "PREFECT_AUTH": "admin:geheim-prefect",
}
_VARIABLE = re.compile(r"\$\{(\w+)(?::\?[^}]*)?\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file with its anchors resolved."""
    return yaml.safe_load((REPOSITORY / "compose.yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def expanded(values: dict[str, str]) -> dict[str, str]:
    return {
        name: _VARIABLE.sub(lambda found: SECRETS[found[1]], str(value)) for name, value in values.items()
    }


def env_example(folder: Path) -> dict[str, str]:
    """What a shell makes of ``.env.example`` once the passwords are filled in."""
    lines = (REPOSITORY / ".env.example").read_text(encoding="utf-8").splitlines()
    filled = [
        f"{name}={SECRETS[name]}" if (name := line.partition("=")[0]) in SECRETS else line for line in lines
    ]
    file = folder / ".env"
    file.write_text("\n".join(filled) + "\n", encoding="utf-8")
    done = subprocess.run(
        ["sh", "-euc", f"set -a; . {file}; env -0"], env={}, capture_output=True, text=True, check=True
    )
    found = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)
    return {name: value for name, value in found.items() if name in _named(lines)}


def _named(lines: list[str]) -> set[str]:
    return {line.partition("=")[0] for line in lines if line and not line.startswith("#")}


def test_it_is_valid_by_the_schema_of_the_specification(compose: dict[str, Any]) -> None:
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(folder.read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(compose)] == []
    wrong = {**compose, "services": {"a": {"image": "a:1", "port": ["1"]}}}
    assert list(validator.iter_errors(wrong))  # the schema does see a word that is none


def test_variables_are_those_of_the_example_and_have_to_be_set(compose: dict[str, Any]) -> None:
    text = (REPOSITORY / "compose.yaml").read_text(encoding="utf-8")
    assert {found[1] for found in _VARIABLE.finditer(text)} == set(SECRETS)
    assert all(":?" in found[0] for found in _VARIABLE.finditer(text))
    lines = (REPOSITORY / ".env.example").read_text(encoding="utf-8").splitlines()
    assert set(SECRETS) <= _named(lines)
    for line in lines:  # no password that works as it stands
        name, _, value = line.partition("=")
        if name in SECRETS:
            assert value in ("", "admin:")
    assert compose["name"]


def test_images_are_pinned_and_ports_are_loopback(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+[\w.-]*", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
    assert compose["services"]["prefect"]["image"].split(":")[1].startswith(f"{version('prefect')}-")
    images = {name: service["image"] for name, service in compose["services"].items()}
    assert images["worker"] == images["assist"] == images["install"]  # they share one folder of packages


@pytest.mark.parametrize("where", ["worker", "assist", "install", "example"])
def test_the_settings_of_each_side_are_accepted(
    where: str, compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (
        env_example(tmp_path) if where == "example" else expanded(compose["services"][where]["environment"])
    )
    monkeypatch.chdir(tmp_path)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.catalogue_url().endswith("/hchem")
    assert "geheim-pg1" in settings.catalogue_url()
    assert settings.graph.password is not None
    assert settings.graph.password.get_secret_value() == "geheim-neo4j"
    assert settings.prefect.auth is not None
    assert given["PREFECT_API_AUTH_STRING"] == settings.prefect.auth.get_secret_value()
    hosts = {
        "postgres": settings.catalogue_url().rpartition("@")[2].split("/")[0],
        "neo4j": str(settings.graph.uri).partition("://")[2],
        "milvus": str(settings.vectors.uri).partition("://")[2],
        "prefect": given["PREFECT_API_URL"].partition("://")[2].split("/")[0],
    }
    for service, address in hosts.items():
        host, _, port = address.partition(":")
        assert host == ("127.0.0.1" if where == "example" else service)
        outside = [entry.split(":") for entry in compose["services"][service]["ports"]]
        assert port in {entry[1] if where == "example" else entry[2] for entry in outside}


def test_services_agree_with_each_other(compose: dict[str, Any]) -> None:
    services = compose["services"]
    postgres = services["postgres"]["environment"]
    assert postgres["POSTGRES_USER"] == postgres["POSTGRES_DB"] == "hchem"
    database = services["prefect"]["environment"]["PREFECT_SERVER_DATABASE_CONNECTION_URL"]
    created = (REPOSITORY / "docs/compose/create-prefect.sql").read_text(encoding="utf-8")
    assert f"CREATE DATABASE {database.rpartition('/')[2]}" in created
    for name, service in services.items():
        for other, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in services[other], f"{name} waits for {other}"
    named = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert {name for name in named if not name.startswith(".")} == set(compose["volumes"])


def test_the_prefect_server_has_the_defaults_of_our_own(compose: dict[str, Any], tmp_path: Path) -> None:
    own = prefect_server.environment(tmp_path, 4200, PrefectSettings())
    given = compose["services"]["prefect"]["environment"]
    differs = {"PREFECT_SERVER_API_HOST", "PREFECT_SERVER_API_PORT", "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"}
    for name, value in own.items():
        if name.startswith("PREFECT_SERVER_") and "EPHEMERAL" not in name and name not in differs:
            assert given.get(name) == value, name


def test_workers_are_optional_and_run_what_there_is(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert all(services[name]["profiles"] == ["worker"] for name in ("install", "worker", "assist"))
    assert all("profiles" not in services[name] for name in ("postgres", "neo4j", "milvus", "prefect"))
    pool = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text(encoding="utf-8"))["definitions"]["pool"][
        "name"
    ]
    worker = services["worker"]["command"]
    assert worker[:4] == ["/packages/bin/prefect", "worker", "start", "--pool"]
    assert worker[4] == pool
    script = services["install"]["command"][-1]
    assert f"work-pool create {pool}" in script
    lock = re.search(r"-r (\S+\.lock)", script)
    assert lock is not None
    assert "psycopg==" in (REPOSITORY / lock[1]).read_text(encoding="utf-8")
    for part in re.findall(r"for part in ([^;]+);", script)[0].split():
        assert (REPOSITORY / part).exists(), part
    program, command = services["assist"]["command"]
    assert program.endswith("/hchem")
    assert command in TOP_LEVEL
    assert subprocess.run(["sh", "-n", "-c", script.replace("$$", "$")], check=False).returncode == 0

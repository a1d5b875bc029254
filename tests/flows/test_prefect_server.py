"""The Prefect server that the platform starts: who may reach it, and with what."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from corpus.errors import SettingsError
from flows.settings import is_loopback, load_settings
from tests.flows.conftest import Command

WHO = "admin:a-long-password"


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.4", False),
        ("localhost.example", False),
        ("2130706433", False),
        ("", False),
    ],
)
def test_what_is_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "prefect.example"])
def test_no_door_beyond_this_machine_without_a_password(
    host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HCHEM_PREFECT__HOST", host)
    with pytest.raises(SettingsError, match="HCHEM_PREFECT__AUTH"):
        load_settings()
    for weak in ("admin", "admin:short", ":a-long-password"):
        monkeypatch.setenv("HCHEM_PREFECT__AUTH", weak)
        with pytest.raises(SettingsError) as refused:
            load_settings()
        assert "user:password" in str(refused.value)
        assert weak not in str(refused.value)
    monkeypatch.setenv("HCHEM_PREFECT__AUTH", WHO)
    assert "a-long-password" not in repr(load_settings())


def test_a_password_is_not_kept_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hchem.toml").write_text(f'[prefect]\nauth = "{WHO}"\n', encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert "HCHEM_PREFECT__AUTH" in str(refused.value)
    assert WHO not in str(refused.value)


def test_a_closed_server_asks_for_its_password_and_serves_no_foreign_page(tmp_path: Path) -> None:
    """Started as users start it; Prefect alone would answer everyone and every origin."""
    command = Command(
        tmp_path / "data", {"HCHEM_PREFECT__AUTH": WHO, "HCHEM_PREFECT__START_TIMEOUT_S": "240"}
    )
    command.run("up", timeout=300)
    try:
        api = json.loads((tmp_path / "data/prefect/server.json").read_text(encoding="utf-8"))["url"]
        name, _, password = WHO.partition(":")
        asked = {"json": {}, "timeout": 60}
        assert httpx.post(f"{api}/flows/filter", **asked).status_code == 401
        assert httpx.post(f"{api}/flows/filter", auth=(name, password + "x"), **asked).status_code == 401
        assert httpx.post(f"{api}/flows/filter", auth=(name, password), **asked).status_code == 200
        foreign = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        preflight = httpx.options(f"{api}/flows/filter", headers=foreign, timeout=60)
        assert "access-control-allow-origin" not in preflight.headers
        simple = httpx.post(  # what a foreign page may send without being asked about it
            f"{api}/flows/", auth=(name, password), content=b'{"name": "x"}', headers={"Content-Type": "text/plain"}
        )  # fmt: skip
        assert simple.status_code == 422
        open_now = Command(tmp_path / "data").run("up", code=2, timeout=120)
        assert "hchem down" in open_now.stderr
        for path in (tmp_path / "data").rglob("*"):
            if path.is_file() and path.stat().st_size < 10_000_000:
                assert password.encode() not in path.read_bytes(), path
    finally:
        command.run("down", timeout=120)

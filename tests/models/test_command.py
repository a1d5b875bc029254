"""``hchem models show|check`` as a user calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.skills import ABSENT
from tests.servers.model_server import ModelServer

LIGHT = {"HCHEM_EMBEDDINGS__COHESION": "ngram", "HCHEM_EMBEDDINGS__INDEX": "ngram"}


def hchem(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HCHEM_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        cwd=tmp_path,
        env={**clean, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_show_without_secrets(tmp_path: Path) -> None:
    done = hchem(
        tmp_path,
        "models",
        "show",
        "--json",
        HCHEM_MODELS__BASE_URL="http://127.0.0.1:9/v1",
        HCHEM_MODELS__MODEL="qwen",
        OPENAI_API_KEY="sk-secret-1",
        HCHEM_MODELS__SKILLS='{"judge_facts": {"model": "judge", "draws": 5}}',
    )
    assert done.returncode == 0, done.stderr
    rows = {row["skill"]: row for row in json.loads(done.stdout)["skills"]}
    assert (rows["score_document"]["model"], rows["score_document"]["key"]) == ("qwen", True)
    assert (rows["judge_facts"]["model"], rows["judge_facts"]["draws"]) == ("judge", 5)
    assert "sk-secret" not in done.stdout + done.stderr
    table = hchem(tmp_path, "models", "show")
    assert "score_document" in table.stdout
    assert "offline" in table.stdout


def test_what_no_rule_answers_is_absent_without_a_model(tmp_path: Path) -> None:
    """Which skills these are is proved in tests/flows/test_try_skill.py, by asking each of them."""
    own = '{"find_shift": {"model": "m", "base_url": "http://127.0.0.1:9/v1"}}'
    done = hchem(tmp_path, "models", "show", "--json", HCHEM_MODELS__SKILLS=own)
    assert done.returncode == 0, done.stderr
    shown = {row["skill"]: row["model"] for row in json.loads(done.stdout)["skills"]}
    assert (shown["score_document"], shown["find_shift"]) == ("offline", "m")
    assert {name for name, model in shown.items() if model == "absent"} == ABSENT - {"find_shift"}
    checked = hchem(tmp_path, "models", "check", **LIGHT)
    assert checked.returncode == 0, checked.stderr
    (line,) = [line for line in checked.stdout.splitlines() if line.startswith("absent")]
    assert all(name in line for name in ABSENT)


def test_check_with_a_server(tmp_path: Path) -> None:
    with ModelServer({"ok": True}, api_key="right") as server:
        settings = {"HCHEM_MODELS__BASE_URL": server.base_url, "HCHEM_MODELS__MODEL": "qwen", **LIGHT}
        done = hchem(tmp_path, "models", "check", OPENAI_API_KEY="right", **settings)
        assert done.returncode == 0, done.stderr
        assert "qwen at" in done.stdout
        wrong = hchem(tmp_path, "models", "check", OPENAI_API_KEY="wrong-key-1", **settings)
    assert wrong.returncode == 2
    assert "HTTP 401" in wrong.stdout
    assert "wrong-key-1" not in wrong.stdout + wrong.stderr
    gone = hchem(tmp_path, "models", "check", OPENAI_API_KEY="right", **settings)
    assert gone.returncode == 2
    assert "Traceback" not in gone.stdout + gone.stderr


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("HCHEM_MODELS__BASE_URL", "not-an-address", "is not an http(s) address"),
        ("HCHEM_MODELS__SKILLS", '{"judge": {"model": "m"}}', "unknown skill 'judge'"),
        ("HCHEM_MODELS__MODEL", "gpt", "no API key"),
    ],
)
def test_wrong_settings_are_one_line(tmp_path: Path, setting: str, value: str, said: str) -> None:
    done = hchem(tmp_path, "models", "show", **{setting: value})
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1

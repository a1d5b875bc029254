"""Wrong input: one clear line on stderr, exit code 2, no traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import Command

CASES: dict[str, tuple[dict[str, str], list[str], str]] = {
    "unknown section": ({"HCHEM_NONSENSE": "1"}, ["status"], "HCHEM_NONSENSE"),
    "wrong type": ({"HCHEM_FLOWS__WORKERS": "many"}, ["status"], "flows.workers"),
    "out of range": ({"HCHEM_FLOWS__WORKERS": "0"}, ["status"], "flows.workers"),
    "unknown field": ({"HCHEM_FLOWS__WORKRES": "2"}, ["status"], "workres"),
    "missing file": ({"HCHEM_CONFIG": "no-such.toml"}, ["status"], "no-such.toml"),
    "catalogue": ({"HCHEM_CATALOGUE__URL": "postgresql://a:s3cret@127.0.0.1:1/x"}, ["status"], "catalogue"),
    "catalogue url": ({"HCHEM_CATALOGUE__URL": "nonsense"}, ["status"], "nonsense"),
    "prefect": ({"PREFECT_API_URL": "http://127.0.0.1:1/api"}, ["refresh"], "PREFECT_API_URL"),
    "graph": (
        {"HCHEM_GRAPH__URI": "bolt://127.0.0.1:1", "HCHEM_GRAPH__PASSWORD": "x"},
        ["graph", "stats"],
        "127.0.0.1:1",
    ),
    "sources": ({"HCHEM_CRAWL__ENABLED": '["nowhere"]'}, ["refresh", "--direct"], "nowhere"),
    "source": ({}, ["refresh", "--direct", "--source", "nowhere"], "nowhere"),
    "chemical": ({}, ["refresh", "--direct", "--chemical", "nosuchchemical"], "nosuchchemical"),
    "chemical, dry run": ({}, ["refresh", "--dry-run", "--chemical", "nosuchchemical"], "nosuchchemical"),
    "order": ({}, ["refresh", "--from-stage", "chunks", "--to-stage", "curate"], "comes after"),
    "archive": ({}, ["run", "acquire", "--from-archive", "no.warc.gz"], "no.warc.gz"),
    "trace": ({}, ["trace", "no-such-id"], "no-such-id"),
    "run": ({}, ["runs", "show", "no-such-run"], "no-such-run"),
    "clean": ({}, ["clean", "no-such-file.html"], "no-such-file.html"),
    "chunk": ({}, ["chunk", "no-such-file.txt", "--method", "fixed"], "no-such-file.txt"),
    "chunkscore": ({}, ["chunkscore", "no-such-file.txt", "p.jsonl"], "no-such-file.txt"),
    "ask": ({}, ["ask", "什么？"], "refresh"),
    "model url": (
        {"HCHEM_MODELS__BASE_URL": "ftp://x", "HCHEM_MODELS__MODEL": "m"},
        ["models", "show"],
        "base_url",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_input_is_one_line_and_exit_code_2(name: str, tmp_path: Path) -> None:
    settings, arguments, word = CASES[name]
    finished = Command(tmp_path / "data", settings).run(*arguments, code=2, timeout=120)
    lines = [line for line in finished.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, finished.stderr
    assert word in lines[0]
    assert "Traceback" not in finished.stdout + finished.stderr
    assert "s3cret" not in finished.stderr


def test_an_endpoint_that_does_not_answer_is_named(tmp_path: Path) -> None:
    settings = {"HCHEM_MODELS__BASE_URL": "http://127.0.0.1:1/v1", "HCHEM_MODELS__MODEL": "m"}
    finished = Command(tmp_path / "data", settings).run("models", "check", code=2, timeout=120)
    assert "http://127.0.0.1:1/v1" in finished.stdout
    assert "Traceback" not in finished.stdout + finished.stderr


def test_an_occupied_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = Command(tmp_path / "data", {"HCHEM_PREFECT__PORT": port})
        finished = command.run("refresh", code=2, timeout=120)
    assert f"port {port} is already in use" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_data_directory_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    finished = Command(blocked / "data").run("status", code=2, timeout=120)
    assert "cannot be written" in finished.stderr


def test_a_read_only_data_directory(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o555)
    command = Command(folder)
    arguments = [sys.executable, "-m", "flows.cli", "status"]
    if os.geteuid() == 0:  # root may write anywhere but on a read-only mount
        mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        arguments = ["unshare", "-m", "sh", "-c", mount, str(folder), *arguments]
    finished = subprocess.run(
        arguments, env=command.environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 2, finished.stderr
    assert "cannot be written" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_usage_errors_exit_with_2(tmp_path: Path) -> None:
    Command(tmp_path / "data").run("refresh", "--no-such-option", code=2, timeout=120)
    Command(tmp_path / "data").run("run", "no-such-stage", code=2, timeout=120)

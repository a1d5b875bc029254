"""The house rules that no other tool checks: imports, engines, addresses, paths, layout."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.conftest import REPOSITORY

PACKAGES = ("models", "corpus", "crawlers", "kg", "chunking", "flows")


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.splitlines() if not name.startswith("samples/pages/")]


def test_import_contracts_hold() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-2000:]


def test_only_the_corpus_creates_database_engines() -> None:
    found = [
        str(path.relative_to(REPOSITORY))
        for package in PACKAGES
        if package != "corpus"
        for path in (REPOSITORY / package).rglob("*.py")
        if re.search(r"\bcreate_(async_)?engine\b", path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_registry_address_in_the_repository() -> None:
    hosts = re.compile(
        "|".join(
            (
                "pypi" + r"\.org",
                "pythonhosted" + r"\.org",
                "repo1" + r"\.maven",
                "registry" + r"\.npmjs",
                "deb" + r"\.debian",
            )
        )
    )
    found = []
    for name in _tracked():
        path = REPOSITORY / name
        if path.is_file() and path.stat().st_size < 3_000_000:
            text = path.read_bytes().decode("utf-8", "replace")
            if hosts.search(text):
                found.append(name)
    assert found == []


def test_modules_can_be_read_in_one_sitting() -> None:
    long = {
        str(path.relative_to(REPOSITORY)): n
        for package in PACKAGES
        for path in (REPOSITORY / package).rglob("*.py")
        if (n := len(path.read_text(encoding="utf-8").splitlines())) > 800
    }
    assert long == {}


def test_prefect_yaml_names_flows_that_exist() -> None:
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    named = [entry["entrypoint"].split(":") for entry in deployments]
    assert {name for _, name in named} == {
        "refresh", "acquire", "curate", "graph", "questions", "chunks", "evaluate", "backfill", "assist",
    }  # fmt: skip
    for file, name in named:
        assert re.search(rf"\b{name}\b", (REPOSITORY / file).read_text(encoding="utf-8"))


def test_extras_and_command_are_declared() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"local-lm", "train", "dask", "ray", "postgres", "dev"} <= set(project["optional-dependencies"])
    assert project["scripts"]["hchem"] == "flows.cli:main"


def test_the_locks_hold_every_direct_dependency() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").lower()
    for line in project["dependencies"]:
        name = re.split(r"[<>=\[; ]", line)[0].lower()
        assert re.search(rf"^{re.escape(name)}==", locked, re.MULTILINE), name

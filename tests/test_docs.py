"""The developer page on skills is true: its files are written out, type-checked and run."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from models import Models, ModelSettings
from models.errors import AnswerRejected
from tests.conftest import REPOSITORY
from tests.models.skills import MemoryAnswers
from tests.servers.model_server import ModelServer, Request

_PAGE = REPOSITORY / "docs" / "add-a-skill.md"
_BLOCK = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.S | re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page") / "storage_skill"
    files = dict(_BLOCK.findall(_PAGE.read_text("utf-8")))
    assert {"storage.py", "use.py", "prompts/storage_words.en.md", "prompts/storage_words.zh.md"} == set(
        files
    )
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (root / "__init__.py").write_text("")
    return root


@pytest.fixture(scope="module")
def page(folder: Path) -> ModuleType:
    sys.path.insert(0, str(folder.parent))
    try:
        importlib.import_module("storage_skill.storage")
        return importlib.import_module("storage_skill.use")
    finally:
        sys.path.remove(str(folder.parent))


def test_a_skill_takes_less_than_sixty_lines(folder: Path) -> None:
    lines = [
        line
        for path in [folder / "storage.py", *(folder / "prompts").iterdir()]
        for line in path.read_text("utf-8").splitlines()
        if line.strip()
    ]
    assert len(lines) < 60


def test_its_types_hold(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(REPOSITORY / "pyproject.toml"),
        "--cache-dir",
        str(REPOSITORY / ".mypy_cache"),  # where `make check` has left what it found
        "-p",
    ]
    done = subprocess.run(
        [*command, "storage_skill"],
        cwd=folder.parent,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": f"{folder.parent}:{REPOSITORY}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


ZH, EN = "乙醇应储存在阴凉、通风的库房。", "Store in a cool, dry place."


def test_it_answers_by_rules(page: ModuleType) -> None:
    assert [found.words for found in page.storage_of(Models.offline(), [ZH], "zh")] == [["阴凉", "通风"]]
    assert [found.words for found in page.storage_of(Models.offline(), [EN], "en")] == [["cool", "dry"]]


def _model(request: Request) -> dict[str, object]:
    """Answers right, but for texts with "wrong" in them; in the other language at the first try."""
    if "wrong" in request.text:
        return {"words": ["frozen"], "summary": "Keep it frozen at all times."}
    if "用一行概括" in request.text:
        first = len(request.messages) == 2
        return {
            "words": ["阴凉"],
            "summary": "Keep it cool and ventilated." if first else "储存在阴凉通风处，远离热源。",
        }
    return {"words": ["cool"], "summary": "Keep it cool and dry."}


def test_it_asks_a_model_in_the_language_of_the_text_and_proves_the_answer(page: ModuleType) -> None:
    with ModelServer(_model) as server:
        settings = ModelSettings(base_url=server.base_url, model="scripted", api_key=None)
        models = Models(settings, answers=MemoryAnswers())
        zh = page.storage_of(models, [ZH], "zh")[0]
        assert (zh.words, zh.summary[:4]) == (["阴凉"], "储存在阴")
        assert len(server.calls()) == 2  # asked again: the first summary was in English
        en = page.storage_of(models, [EN, f"{EN} wrong"], "en")
        assert en[0].words == ["cool"]
        assert en[1] is None
        skill = importlib.import_module("storage_skill.storage")
        with pytest.raises(AnswerRejected, match="'frozen' is not in the text"):
            models.run(skill.StorageWords(), skill.StorageGiven(f"{EN} wrong", "en"))

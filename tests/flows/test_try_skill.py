"""The registry of skills, their examples, and ``hchem models try``."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from corpus.errors import TerminalError
from flows.commands.try_skill import app
from flows.skills import ABSENT, PLACES, example, input_type, read_input, skill_of
from models import Models
from models.errors import OfflineUnavailable
from models.languages import Language, is_chinese
from models.settings import SKILL_NAMES
from tests.conftest import REPOSITORY
from tests.servers.model_server import ModelServer

LANGUAGES: tuple[Language, ...] = ("zh", "en")
FENCE = re.compile(r"<([a-z_]+) k=(\w+)>\n.*?\n</\1 k=\2>", re.S)


def given(name: str, language: Language) -> Any:
    return read_input(skill_of(name), json.dumps(example(name, language), ensure_ascii=False))


# --- the registry --------------------------------------------------------------------------------------------------


def test_every_skill_has_a_place() -> None:
    assert tuple(PLACES) == SKILL_NAMES
    assert len({type(skill_of(name)) for name in SKILL_NAMES}) == len(SKILL_NAMES)


@pytest.mark.parametrize("name", SKILL_NAMES)
def test_a_skill_says_what_it_takes_and_has_prompt_files(name: str) -> None:
    skill = skill_of(name)
    assert skill.name == name
    assert dataclasses.is_dataclass(input_type(skill))
    assert skill.output.model_json_schema()["type"] == "object"
    assert skill.prompts is not None
    for language in LANGUAGES:
        text = skill.prompts.text(language)
        assert is_chinese(text) == (language == "zh")
    roles = [re.findall(r"^=== (\w+)", skill.prompts.text(language), re.M) for language in LANGUAGES]
    assert roles[0] == roles[1]
    places = [set(re.findall(r"\$(\w+)", skill.prompts.text(language))) for language in LANGUAGES]
    assert places[0] == places[1]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SKILL_NAMES)
def test_an_example_is_rendered_with_its_data_inside_fences(name: str, language: Language) -> None:
    skill = skill_of(name)
    value = given(name, language)
    assert skill.language(value) == language
    messages = skill.messages(value)
    assert messages[0].role == "system"
    assert is_chinese(messages[0].content) == (language == "zh")
    assert "$" not in messages[0].content
    outside = "\n".join(FENCE.sub("", message.content) for message in messages)
    assert not re.search("虚构剂|Example Agent", outside)
    assert any(re.search("虚构剂|Example Agent|75", message.content) for message in messages)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SKILL_NAMES)
def test_rules_answer_the_example_where_there_are_rules(name: str, language: Language) -> None:
    models = Models.offline()
    if name in ABSENT:
        with pytest.raises(OfflineUnavailable, match=rf"\[models\.skills\.{name}\]"):
            models.run(skill_of(name), given(name, language))
    else:
        assert models.run(skill_of(name), given(name, language)).source == "offline"


def test_the_page_on_models_lists_every_skill_with_its_answer() -> None:
    text = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
    rows = {
        cells[0].strip("`"): cells
        for line in text.splitlines()
        if line.startswith("| `") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 5
    }
    assert tuple(rows) == SKILL_NAMES
    for name, (_, _, answer, _, offline) in rows.items():
        assert f"`{skill_of(name).output.__name__}`" in answer
        assert (offline == "absent") == (name in ABSENT)


@pytest.mark.parametrize(
    "data,message",
    [
        ("{", "not JSON \\(line 1, column 2\\)"),
        ("[]", "input"),
        ('{"question": "?", "answer": "!"}', "language: .*required"),
        ('{"question": "?", "answer": 3, "language": "en"}', "answer: .*string"),
        (
            '{"question": "?", "answer": "!", "language": "en", "anser": ""}',
            "unknown 'anser'; fields: question, answer",
        ),
    ],
)
def test_a_wrong_input_is_told_with_its_place(data: str, message: str) -> None:
    with pytest.raises(TerminalError, match=message):
        read_input(skill_of("list_facts"), data)


def test_what_an_input_forbids_is_told() -> None:
    wrong = example("write_question", "zh") | {"kind": "T1"}
    with pytest.raises(TerminalError, match="T1 is made from 1 chunks, not 2"):
        read_input(skill_of("write_question"), json.dumps(wrong))


# --- the command ---------------------------------------------------------------------------------------------------


def tried(*arguments: str, data: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=data)


def test_an_example_is_an_input() -> None:
    for language in LANGUAGES:
        shown = tried("judge_facts", "--example", "--language", language)
        assert json.loads(shown.output) == example("judge_facts", language)
        done = tried("judge_facts", "--input", "-", data=shown.output)
        assert done.exit_code == 0, done.output
        found = json.loads(done.output)
        assert (found["source"], found["verdict"]["kind"]) == ("offline", "accept")
        assert found["usage"]["offline"] == 1
        assert [label["covered"] for label in found["answer"]["labels"]] == [True, False, True]


def test_prompt_shows_the_messages_and_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "given.json"
    file.write_text(json.dumps(example("slm_refine", "zh")), encoding="utf-8")
    with ModelServer({}) as server:
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "slm-3b")
        shown = tried("slm_refine", "--input", str(file), "--prompt")
        assert server.requests == []
    assert shown.exit_code == 0
    wanted = skill_of("slm_refine").messages(given("slm_refine", "zh"))
    assert shown.output == "".join(f"=== {m.role}\n{m.content}\n" for m in wanted)


def test_a_model_is_asked_once_and_its_answer_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = {"facts": ["沸点为75 ℃", "闪点为29 ℃（闭杯）", "不得与强氧化剂混存"]}
    data = json.dumps(example("list_facts", "zh"))
    with ModelServer(facts) as server:
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "judge")
        first = json.loads(tried("list_facts", "--input", "-", data=data).output)
        again = json.loads(tried("list_facts", "--input", "-", data=data).output)
        other = json.loads(tried("list_facts", "--input", "-", "--draw", "1", data=data).output)
        assert len(server.calls()) == 2
    assert first["source"] == "judge"
    assert first["answer"] == again["answer"] == facts
    assert (first["usage"]["calls"], first["usage"]["cached"]) == (1, 0)
    assert (again["usage"]["calls"], again["usage"]["cached"]) == (0, 1)
    assert (other["draw"], other["usage"]["calls"]) == (1, 1)


def test_a_rejected_answer_is_shown_with_its_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.dumps(example("list_facts", "en"))
    with ModelServer({"facts": ["It boils at 57 °C"]}) as server:
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "judge")
        done = tried("list_facts", "--input", "-", data=data)
    found = json.loads(done.output)
    assert done.exit_code == 1
    assert (found["answer"], found["verdict"]["kind"], found["source"]) == (None, "rejected", "judge")
    assert "57°C" in found["verdict"]["reasons"][0]
    assert (found["usage"]["calls"], found["usage"]["rejected"]) == (2, 1)


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["no_such_skill", "--example"], "unknown skill 'no_such_skill'; skills: score_document"),
        (["list_facts"], "--example prints an input"),
        (["list_facts", "--example", "--language", "fr"], "unknown language 'fr'"),
        (["list_facts", "--input", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_wrong_calls_are_told(arguments: list[str], message: str) -> None:
    done = tried(*arguments)
    assert isinstance(done.exception, TerminalError)
    assert message in str(done.exception)
    assert done.output == ""


def test_an_input_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'{"question": "\xff"}')
    done = tried("list_facts", "--input", str(tmp_path / "x.json"))
    assert "not UTF-8 (byte 14)" in str(done.exception)


@pytest.mark.parametrize("data", ["[" * 100_000 + "]" * 100_000, " " * 4_000_001])
def test_monstrous_input_is_an_error(data: str, tmp_path: Path) -> None:
    path = tmp_path / "given.json"
    path.write_text(data)
    result = CliRunner().invoke(app, ["list_facts", "--input", str(path)])
    assert isinstance(result.exception, TerminalError)
    assert "nested" in str(result.exception) or "larger than" in str(result.exception)


def test_a_draw_has_a_bound() -> None:
    assert CliRunner().invoke(app, ["list_facts", "--input", "-", "--draw", "9" * 20]).exit_code == 2

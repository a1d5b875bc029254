"""``hchem models try``: any skill on one input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from corpus.errors import TerminalError
from flows.skills import example, read_input, skill_of
from models.errors import AnswerRejected
from models.registry import Models
from models.skills import Skill

app = typer.Typer()
_LARGEST = 4_000_000  # bytes of an input; no model reads as much


@app.command("try")
def try_skill(
    skill: Annotated[str, typer.Argument(help="Name of a skill, as hchem models show lists them.")],
    given: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE|-", help="The input as JSON; - reads standard input."),
    ] = None,
    draw: Annotated[
        int, typer.Option(min=0, max=99, help="Number of the draw; each draw is another answer.")
    ] = 0,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the messages; nothing is asked.")] = False,
    show_example: Annotated[
        bool, typer.Option("--example", help="Print a small made-up input; nothing is asked.")
    ] = False,
    language: Annotated[str, typer.Option(help="Language of the example: zh or en.")] = "en",
) -> None:
    """Run one skill on one JSON input: by its model, or by its rules where it has none.

    Prints answer, source, usage and verdict as JSON; exit code 1 when the answer is rejected. A model's answer
    is stored as in a run, so that the same question is paid for once.

    Example: hchem models try list_facts --example | hchem models try list_facts --input -
    """
    job = skill_of(skill)
    if show_example:
        if language not in ("zh", "en"):
            raise TerminalError(f"unknown language {language!r}; languages: zh, en", reason="usage")
        shown = example(skill, "zh" if language == "zh" else "en")
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    if given is None:
        raise TerminalError(
            f"--input is missing: hchem models try {skill} --example prints an input to begin with",
            reason="usage",
        )
    value = read_input(job, _read(given))
    if prompt:
        for message in job.messages(value):
            typer.echo(f"=== {message.role}\n{message.content}")
        return
    found = _run(job, value, draw)
    typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
    if found["answer"] is None:
        raise typer.Exit(1)


def _run(skill: Skill[Any, Any], given: Any, draw: int) -> dict[str, Any]:
    with _models(skill.name) as models:
        resolved = models.settings.resolve(skill.name)
        source = resolved.model if resolved else "offline"
        head = {"skill": skill.name, "language": skill.language(given), "draw": draw}
        try:
            answer = models.run(skill, given, draw=draw)
        except AnswerRejected as error:
            verdict = {"kind": "rejected", "reason": error.reason, "reasons": [str(error)]}
            return {
                **head,
                "source": source,
                "usage": _usage(models, skill.name),
                "verdict": verdict,
                "answer": None,
            }
        verdict = {"kind": skill.check(given, answer.value).kind, "reasons": []}
        return {
            **head,
            "source": answer.source,
            "usage": _usage(models, skill.name),
            "verdict": verdict,
            "answer": answer.value.model_dump(mode="json"),
        }


def _usage(models: Models, skill: str) -> dict[str, Any]:
    """What the process spent on the skill: calls (the repeat after a failed check included), tokens, money."""
    return dict(models.usage()["skills"].get(skill, {}))


@contextmanager
def _models(skill: str) -> Iterator[Models]:
    """With the catalogue's store where the skill has a model; rules need no storage."""
    from flows.runtime import open_runtime
    from flows.settings import load_settings

    settings = load_settings()
    if settings.models.resolve(skill) is not None:
        with open_runtime(settings=settings) as runtime:
            yield runtime.models
        return
    models = Models(settings.models)
    try:
        yield models
    finally:
        models.close()


def _read(place: str) -> str:
    try:
        with sys.stdin.buffer if place == "-" else Path(place).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise TerminalError(f"{place} cannot be read: {error.strerror or error}", reason="file") from error
    if len(data) > _LARGEST:
        raise TerminalError(
            f"{place} is larger than {_LARGEST:,} bytes: more than one question", reason="size"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TerminalError(f"{place} is not UTF-8 (byte {error.start})", reason="encoding") from error

"""Errors of the model layer as the platform's families, for every stage that asks a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from corpus.errors import DeferredError, PlatformError, TerminalError, TransientError
from models import Answer, Models, Skill
from models.errors import AnswerDeferred, AnswerRejected, ModelError

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


def ask(models: Models, skill: Skill[In, Out], given: In) -> Answer[Out]:
    """``Models.run`` with the platform's errors."""
    try:
        return models.run(skill, given)
    except ModelError as error:
        raise translated(error) from error


def ask_many(
    models: Models, skill: Skill[In, Out], inputs: Sequence[In]
) -> list[Answer[Out] | AnswerRejected]:
    """``Models.run_many`` with the platform's errors; a rejected answer stands in its place."""
    try:
        return models.run_many(skill, inputs)
    except ModelError as error:
        raise translated(error) from error


def translated(error: ModelError, item_id: str = "") -> PlatformError:
    """A model error as a platform error: same reason, same family, and whether going on is useless."""
    if isinstance(error, AnswerDeferred):
        return DeferredError(str(error), reason=error.reason, item_id=item_id)
    family = TransientError if error.transient else TerminalError
    result: PlatformError = family(str(error), reason=error.reason, item_id=item_id)
    result.halts = error.halts
    return result

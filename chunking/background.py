"""Background text of the embedded perplexity: a fixed public text, so that figures do not move with the corpus.

A character n-gram model needs to have seen the language, not the document: a
line that the document itself contains is left out, since a model that has read
the answer finds nothing in a context any more.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from models.protocols import Perplexity

if TYPE_CHECKING:
    from models import Models


@lru_cache(maxsize=1)
def _lines() -> tuple[str, ...]:
    text = files("chunking").joinpath("data", "background.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


class Backgrounds:
    """Perplexity for documents; one model is trained for all that share no line with the background."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._whole: Perplexity | None = None

    def perplexity(self, document: str) -> Perplexity:
        """The backend in force with the background minus the lines that the document contains."""
        kept = [line for line in _lines() if line not in document]
        if len(kept) < len(_lines()):
            return self._models.perplexity(["\n".join(kept)])
        if self._whole is None:
            self._whole = self._models.perplexity(["\n".join(kept)])
        return self._whole

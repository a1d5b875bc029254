"""Chunkers that ask a language model directly: LumberChunker, MoC's meta-chunker, the plain request.

They are baselines of both papers. A model only ever says *where* to cut; the
chunks are spans of the text, so that no answer can add, change or lose a word.
No rule stands for a model here: offline the methods are absent.
"""

from __future__ import annotations

from typing import Any

from chunking.prompted.direct import DirectChunk, direct
from chunking.prompted.lumber import FindShift, lumber
from chunking.prompted.mask import MetaChunk, meta
from models.skills import Skill

PROMPTED: dict[str, Skill[Any, Any]] = {
    "lumberchunker": FindShift(),
    "meta-chunker": MetaChunk(),
    "direct-llm": DirectChunk(),
}
"""Method to the skill that it asks."""

__all__ = ["PROMPTED", "DirectChunk", "FindShift", "MetaChunk", "direct", "lumber", "meta"]

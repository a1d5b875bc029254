"""HiChunk: levels, iterative inference, level tree with HC-n leaves."""

from chunking.hichunk.hierarchy import HiChunkOptions, hichunk
from chunking.hichunk.levels import AssignLevels

__all__ = ["AssignLevels", "HiChunkOptions", "hichunk"]

"""QChunker: outline, segmenter, reviewer and completer around ChunkScore."""

from chunking.qchunker.debate import SKILLS, QChunkerOptions, qchunk

__all__ = ["SKILLS", "QChunkerOptions", "qchunk"]

"""Training data of the distilled chunkers: M_Gen, M_Disc, M_Ref (QChunker-3B) and the levels model (HiChunk)."""

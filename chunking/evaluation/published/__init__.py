"""Readers for published data sets, and the comparison of chunk methods on them (``hchem benchmark``).

Nothing is downloaded: a reader takes the folder that a user has, in the shape in
which its authors publish it, and says what is missing.
"""

from __future__ import annotations

from chunking.evaluation.published.data import Benchmark, BenchmarkDocument, BenchmarkQuestion
from chunking.evaluation.published.readers import READERS, read_benchmark

__all__ = ["READERS", "Benchmark", "BenchmarkDocument", "BenchmarkQuestion", "read_benchmark"]

"""The HTML report: one self-contained file, computed from the catalogue."""

from flows.report.page import write

__all__ = ["write"]

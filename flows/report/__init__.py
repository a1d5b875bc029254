"""The HTML report and, beside it, the graph explorer, computed from the catalogue."""

from flows.report.page import write

__all__ = ["write"]

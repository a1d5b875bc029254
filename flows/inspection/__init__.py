"""Looking into a page: what each cleaning removed from it, by which rule, as one HTML file."""

from flows.inspection.gather import Inspection, inspect_bytes
from flows.inspection.page import render, report_of_file, write_page
from flows.inspection.sandbox import inspect_in_child

__all__ = ["Inspection", "inspect_bytes", "inspect_in_child", "render", "report_of_file", "write_page"]

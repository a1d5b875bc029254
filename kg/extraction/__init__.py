"""Extraction of assertions with evidence (knowledge-graph design, section 2)."""

from kg.extraction.model import Draft, Subject
from kg.extraction.rules import extract

__all__ = ["Draft", "Subject", "extract"]

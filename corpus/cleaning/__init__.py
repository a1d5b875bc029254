"""Bytes of a page to cleaned HTML and faithful text: decoding and the three cleanings."""

from corpus.cleaning.decoding import Decoded, decode
from corpus.cleaning.page import CleanedPage, Features
from corpus.cleaning.parsing import Limits
from corpus.cleaning.pipeline import RULES_VERSION, clean_page, page_words, profile_page
from corpus.cleaning.template import PageProfile, Template, build_template
from corpus.cleaning.tracing import Removal, Trace

__all__ = [
    "RULES_VERSION",
    "CleanedPage",
    "Decoded",
    "Features",
    "Limits",
    "PageProfile",
    "Removal",
    "Template",
    "Trace",
    "build_template",
    "clean_page",
    "decode",
    "page_words",
    "profile_page",
]

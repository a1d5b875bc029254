"""The HTML document around cleaned content: one form for pages, PDF, XML and text."""

from __future__ import annotations

import re
from html import escape

GENERATOR = "hchem clean"
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


def document(content: str, title: str, *, language: str = "", canonical: str = "") -> str:
    """A whole document of serialised ``content`` (a ``main`` element). Cleaned again it stays as it is."""
    lang = f' lang="{language}"' if _LANGUAGE.fullmatch(language) else ""
    link = f'<link rel="canonical" href="{escape(canonical)}">\n' if canonical else ""
    return (
        f'<!DOCTYPE html>\n<html{lang}>\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="{GENERATOR}">\n'
        f"<title>{escape(' '.join(title.split()), quote=False)}</title>\n{link}</head>\n<body>{content}</body>\n</html>\n"
    )

"""Plain text and Markdown as input: kept as they are, cut into blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from corpus.cleaning.document import document
from corpus.cleaning.markdown import Piece, assemble
from corpus.cleaning.measure import characters, size
from corpus.cleaning.page import CleanedPage, Features, language_of
from corpus.ids import normalise_text

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:[^\n]*\n){0,60}?(?:---|\.\.\.)[ \t]*\n")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+\S")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE = re.compile(r"^\s*\|?\s*:?-{3,}:?\s*(?:\|\s*:?-{3,}:?\s*)*\|?\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_META_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE | re.IGNORECASE)


def clean_text(text: str) -> CleanedPage:
    """A text or Markdown file: front matter, comments and control characters out, the rest unchanged."""
    text = normalise_text(_CONTROLS.sub("", text.replace("\f", "\n")))
    front = _FRONT_MATTER.match(text)
    meta_title, skipped = "", 0
    if front and ":" in front[0]:
        found = _META_TITLE.search(front[0])
        meta_title = found[1] if found else ""
        skipped = front[0].count("\n")
        text = text[front.end() :]
    text, comments = _without_comments(text)
    pieces = list(_pieces(text, skipped))
    rendered = assemble(pieces)
    first = next((piece for piece in pieces if piece.kind == "heading"), None)
    title = meta_title or (first.plain if first else next((p.plain for p in pieces), "").split("\n")[0][:120])
    for block, source in zip(rendered.blocks, rendered.sources, strict=True):
        block["path"] = source
    kept = size(rendered.plain)
    page = CleanedPage(
        kind="text",
        html=_as_html(pieces, title),
        text=rendered.markdown,
        plain=rendered.plain,
        blocks=rendered.blocks,
        title=title,
        language=language_of(rendered.plain),
        removed={"structural": {"comment": comments}} if comments else {},
        features=Features(
            raw_text_chars=size(text),
            kept_text_chars=kept,
            n_headings=sum(piece.kind == "heading" for piece in pieces),
            n_tables=sum(piece.kind == "row" and not piece.tight for piece in pieces),
            n_list_items=sum(piece.kind == "item" for piece in pieces),
            n_paragraphs=sum(piece.kind == "paragraph" for piece in pieces),
        ),
    )
    if kept < 20:
        page.verdict, page.reasons = "no_main_content", (f"{characters(page.plain)} characters of content",)
    return page


def _without_comments(text: str) -> tuple[str, int]:
    """Take out HTML comments that stand on lines of their own; the lines stay, so that numbers of lines hold."""
    parts, position, count = [], 0, 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start)) >= 0:
        end += len("-->")
        line = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        alone = not text[line:start].strip() and not text[end : after if after >= 0 else len(text)].strip()
        if alone:
            parts += [text[position:start], "\n" * text.count("\n", start, end)]
            count += 1
        else:
            parts.append(text[position:end])
        position = end
    return "".join([*parts, text[position:]]), count


def _pieces(text: str, offset: int) -> Iterator[Piece]:
    """Blocks of a text: headings, items, table rows, fenced text, paragraphs between blank lines."""
    lines = text.split("\n")
    number = 0
    adjoining = False  # whether no blank line stands before the block
    while number < len(lines):
        line = lines[number]
        if not line.strip():
            number += 1
            adjoining = False
            continue
        end, kind = _extent(lines, number)
        block = "\n".join(part.rstrip() for part in lines[number:end])
        yield Piece(block, _plain(block, kind), kind, f"line {offset + number + 1}", adjoining)
        adjoining = True
        number = end


def _extent(lines: list[str], start: int) -> tuple[int, str]:
    line = lines[start]
    if _FENCE.match(line):
        end = next((n for n in range(start + 1, len(lines)) if _FENCE.match(lines[n])), len(lines) - 1)
        return end + 1, "preformatted"
    if _HEADING.match(line):
        return start + 1, "heading"
    if _ROW.match(line):
        ruled = start + 1 < len(lines) and _RULE.match(lines[start + 1])
        return start + (2 if ruled else 1), "row"
    kind = "item" if _ITEM.match(line) else "quote" if line.lstrip().startswith(">") else "paragraph"
    end = start + 1
    while end < len(lines) and lines[end].strip() and not _starts_block(lines[end]):
        end += 1
    return end, kind


def _starts_block(line: str) -> bool:
    return bool(_FENCE.match(line) or _HEADING.match(line) or _ROW.match(line) or _ITEM.match(line))


def _plain(block: str, kind: str) -> str:
    if kind == "heading":
        found = _HEADING.match(block)
        return found[1] if found else block
    if kind == "row":
        cells = re.split(r"(?<!\\)\|", block.split("\n", maxsplit=1)[0].strip().strip("|"))
        return "\t".join(cell.strip().replace("\\|", "|") for cell in cells)
    if kind == "preformatted":
        return "\n".join(block.split("\n")[1:-1])
    return block


def _as_html(pieces: list[Piece], title: str) -> str:
    """A plain rendering for the output format ``html``."""
    parts = []
    for piece in pieces:
        if piece.kind == "heading":
            level = min(6, len(piece.markdown) - len(piece.markdown.lstrip("#")))
            parts.append(f"<h{level}>{escape(piece.plain, quote=False)}</h{level}>")
        elif piece.kind == "row":
            cells = "".join(f"<td>{escape(cell, quote=False)}</td>" for cell in piece.plain.split("\t"))
            parts.append(f"<table><tr>{cells}</tr></table>")
        elif piece.kind == "preformatted":
            parts.append(f"<pre>{escape(piece.plain, quote=False)}</pre>")
        else:
            parts.append(f"<p>{escape(piece.plain, quote=False)}</p>")
    body = "\n".join(parts).replace("</table>\n<table>", "\n")
    return document(f"<main>{body}</main>", title)

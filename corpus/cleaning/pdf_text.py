"""PDF to text: lines by page, headings by font size, tables as rows (``pdfplumber``)."""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from corpus.cleaning.markdown import Piece, assemble
from corpus.cleaning.measure import size
from corpus.cleaning.page import CleanedPage, Features, language_of
from corpus.cleaning.scripts import SCRIPTED, collapse, lowered, raised
from corpus.cleaning.tables import pipe, rule
from corpus.errors import TerminalError

_MAX_PAGES = 400
_CHARS_PER_PAGE = 25  # fewer on average: pictures of text
_HEADING_RATIO = 1.12
_NUMBERED = re.compile(
    r"^\s*(?:(?:section|第)\s*)?\d{1,2}(?:\.\d{1,2})*\s*(?:部分|[.:：、)])?\s*\S", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?。！？;；:：]$")
_SAID_NUMBER = re.compile(
    r"^\s*(?:page\s*\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?|\d{1,4}\s+of\s+\d{1,4}|第\s*\d{1,4}\s*[页頁].{0,12})\s*$",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"^\s*[-–—]?\s*(\d{1,4})\s*(?:/\s*\d{1,4})?\s*[-–—]?\s*$")
_RAISED_LEAST, _RAISED_MOST = 0.15, 0.8  # of the size of the character before
_SMALL = 0.85


def clean_pdf(data: bytes) -> CleanedPage:
    """Text of a PDF by page. Blocks have the path ``page N``.

    Raises TerminalError: ``scanned_pdf`` (pictures of text), ``encrypted_pdf``,
    ``malformed_pdf``, ``too_many_pages``.
    """
    import pdfplumber
    from pdfminer.pdfdocument import PDFPasswordIncorrect

    logging.getLogger("pdfminer").setLevel(logging.ERROR)
    try:
        with pdfplumber.open(io.BytesIO(data)) as document:
            if len(document.pages) > _MAX_PAGES:
                raise TerminalError(
                    f"{len(document.pages)} pages, limit {_MAX_PAGES}", reason="too_many_pages"
                )
            metadata = dict(document.metadata or {})
            contents = [_page_content(page) for page in document.pages]
    except TerminalError:
        raise
    except Exception as error:  # pdfminer raises whatever a broken file makes it raise
        if isinstance(error, PDFPasswordIncorrect) or "PasswordIncorrect" in repr(error):
            raise TerminalError("the PDF is encrypted", reason="encrypted_pdf") from error
        raise TerminalError(
            f"not readable as PDF: {type(error).__name__}: {error}", reason="malformed_pdf"
        ) from error
    return _assembled(contents, metadata)


def _page_content(page: Any) -> dict[str, Any]:
    """Lines (text, size, bold, top) outside tables, tables as grids, whether there are pictures."""
    _write_scripts(page.chars)
    tables = []
    boxes = []
    for table in page.find_tables() if len(page.lines) + len(page.rects) >= 4 else []:
        rows = [[collapse(cell or "") for cell in row] for row in table.extract()]
        if len(rows) >= 2 and max(len(row) for row in rows) >= 2:
            tables.append((float(table.bbox[1]), rows))
            boxes.append(table.bbox)
    lines = []
    for line in page.extract_text_lines(return_chars=True):
        middle = ((line["x0"] + line["x1"]) / 2, (line["top"] + line["bottom"]) / 2)
        if any(b[0] <= middle[0] <= b[2] and b[1] <= middle[1] <= b[3] for b in boxes):
            continue
        sizes = Counter(round(float(char["size"]), 1) for char in line["chars"])
        bold = sum("bold" in char.get("fontname", "").lower() for char in line["chars"])
        lines.append(
            {
                "text": collapse(line["text"]),
                "size": max(sizes, key=lambda value: (sizes[value], value)) if sizes else 0.0,
                "bold": bold > 0.8 * len(line["chars"]),
                "top": float(line["top"]),
                "bottom": float(line["bottom"]),
            }
        )
    page_images = len(page.images)
    page.close()
    return {"lines": [line for line in lines if line["text"]], "tables": tables, "images": page_images}


def _assembled(contents: Sequence[dict[str, Any]], metadata: dict[str, Any]) -> CleanedPage:
    characters = sum(size(line["text"]) for content in contents for line in content["lines"]) + sum(
        size(cell) for content in contents for _, rows in content["tables"] for row in rows for cell in row
    )
    if characters < _CHARS_PER_PAGE * max(1, len(contents)):
        images = sum(content["images"] for content in contents)
        raise TerminalError(
            f"{characters} characters and {images} pictures on {len(contents)} pages", reason="scanned_pdf"
        )
    removed = Counter[str]()
    running = _running_lines(contents)
    offset = _numbering(contents)
    body = _body_size(contents)
    levels = _heading_levels(contents, body)
    pieces: list[Piece] = []
    for number, content in enumerate(contents, 1):
        pages = None if offset is None else number + offset
        pieces.extend(_page_pieces(content, f"page {number}", body, levels, running, pages, removed))
    rendered = assemble(pieces)
    for block, source in zip(rendered.blocks, rendered.sources, strict=True):
        block["path"] = source
    heading = next((piece.plain for piece in pieces if piece.kind == "heading"), "")
    title = collapse(str(metadata.get("Title") or "")) or heading or (pieces[0].plain[:120] if pieces else "")
    return CleanedPage(
        kind="pdf",
        text=rendered.markdown,
        plain=rendered.plain,
        blocks=rendered.blocks,
        title=heading if not title or title.lower().endswith((".doc", ".docx", ".pdf")) else title,
        language=language_of(rendered.plain),
        removed={"structural": dict(sorted(removed.items())), "functional": {}, "attribute": {}},
        features=Features(
            raw_text_chars=characters,
            kept_text_chars=size(rendered.plain),
            n_headings=sum(piece.kind == "heading" for piece in pieces),
            n_tables=sum(len(content["tables"]) for content in contents),
            n_table_cells=sum(
                len(row) for content in contents for _, rows in content["tables"] for row in rows
            ),
            n_paragraphs=sum(piece.kind == "paragraph" for piece in pieces),
            n_images=sum(content["images"] for content in contents),
            pages=len(contents),
        ),
    )


def _running_lines(contents: Sequence[dict[str, Any]]) -> set[str]:
    """First and last lines that repeat on most pages: running heads and feet (digits aside)."""
    if len(contents) < 3:
        return set()
    counts: Counter[str] = Counter()
    for content in contents:
        edges = [*content["lines"][:3], *content["lines"][-3:]]
        counts.update({re.sub(r"\d+", "#", line["text"]) for line in edges})
    return {text for text, count in counts.items() if count >= max(3, 0.6 * len(contents))}


def _numbering(contents: Sequence[dict[str, Any]]) -> int | None:
    """What bare numbers at the edges of most pages exceed the page's count by; ``None`` where they do not count pages.

    A number that stands alone may be a value: it is a page number only where it
    goes on from page to page.
    """
    offsets: Counter[int] = Counter()
    for number, content in enumerate(contents, 1):
        edges = [*content["lines"][:3], *content["lines"][-3:]]
        found = {int(match[1]) - number for line in edges if (match := _BARE_NUMBER.match(line["text"]))}
        offsets.update(found)
    if not offsets:
        return None
    offset, count = max(offsets.items(), key=lambda item: (item[1], -item[0]))
    return offset if count >= max(3, 0.6 * len(contents)) else None


def _is_running(text: str, running: set[str], shown_number: int | None) -> bool:
    bare = _BARE_NUMBER.match(text)
    if bare:
        return shown_number is not None and int(bare[1]) == shown_number
    return bool(_SAID_NUMBER.match(text)) or re.sub(r"\d+", "#", text) in running


def _write_scripts(characters: list[dict[str, Any]]) -> None:
    """Write raised and lowered digits and signs as such, in place: a PDF knows only where they stand.

    Compared with the last character on the line: smaller, or set off by a part of
    its size, and right behind it. Their box becomes the line's, so that they stay on it.
    """
    base: dict[str, Any] | None = None
    edge = 0.0
    for character in characters:
        text, height = str(character["text"]), float(character["size"])
        if base is not None and text in SCRIPTED and character["x0"] - edge < 0.5 * base["size"] + 1:
            rise = (base["bottom"] - character["bottom"]) / base["size"]
            fall = (character["top"] - base["top"]) / base["size"]
            after = character["x0"] >= edge - 0.3 * base["size"]
            small = height <= _SMALL * base["size"]
            if after and _RAISED_LEAST <= rise <= _RAISED_MOST and (small or rise >= 0.25):
                character["text"] = raised(text)
            elif (
                after
                and small
                and fall >= _RAISED_LEAST
                and rise < _RAISED_LEAST
                and character["top"] < base["bottom"]
            ):
                character["text"] = lowered(text)
            if character["text"] != text:
                for name in ("top", "bottom", "doctop", "size"):
                    character[name] = base[name]
                edge = float(character["x1"])
                continue
        if text.strip():
            base, edge = character, float(character["x1"])


def _body_size(contents: Sequence[dict[str, Any]]) -> float:
    sizes: Counter[float] = Counter()
    for content in contents:
        for line in content["lines"]:
            sizes[line["size"]] += len(line["text"])
    return max(sizes, key=lambda value: (sizes[value], -value)) if sizes else 0.0


def _heading_levels(contents: Sequence[dict[str, Any]], body: float) -> dict[float, int]:
    larger = sorted(
        {
            line["size"]
            for content in contents
            for line in content["lines"]
            if line["size"] >= body * _HEADING_RATIO
        },
        reverse=True,
    )
    return {value: min(level, 4) for level, value in enumerate(larger, 1)}


def _page_pieces(
    content: dict[str, Any],
    path: str,
    body: float,
    levels: dict[float, int],
    running: set[str],
    shown_number: int | None,
    removed: Counter[str],
) -> list[Piece]:
    pieces: list[Piece] = []
    pending = sorted(content["tables"], key=lambda table: table[0])
    lines = content["lines"]
    edge = {id(line) for line in (*lines[:3], *lines[-3:])}
    gathered: list[dict[str, Any]] = []

    def close() -> None:
        if gathered:
            text = _joined([line["text"] for line in gathered])
            pieces.append(Piece(text, text, "paragraph", path))
            gathered.clear()

    for line in lines:
        while pending and pending[0][0] <= line["top"]:
            close()
            pieces.extend(_table_pieces(pending.pop(0)[1], path))
        text = line["text"]
        if id(line) in edge and _is_running(text, running, shown_number):
            removed["running_line"] += 1
            continue
        level = _level(line, levels, body)
        if level:
            close()
            pieces.append(Piece("#" * level + " " + text, text, "heading", path))
            continue
        if gathered and line["top"] - gathered[-1]["bottom"] > 0.8 * max(line["size"], 6):
            close()
        gathered.append(line)
    close()
    for _, rows in pending:
        pieces.extend(_table_pieces(rows, path))
    return pieces


def _level(line: dict[str, Any], levels: dict[float, int], body: float) -> int:
    text = line["text"]
    if len(text) > 120 or size(text) < 2:
        return 0
    if line["size"] in levels and not _SENTENCE_END.search(text[-1:].replace(":", "")):
        return levels[line["size"]]
    if line["bold"] and line["size"] >= body and _NUMBERED.match(text) and not text.endswith((".", "。")):
        return min(4, max(levels.values(), default=1) + 1)
    return 0


def _joined(lines: Sequence[str]) -> str:
    """Lines of a paragraph, one per line: data sheets put one statement on a line."""
    return "\n".join(lines)


def _table_pieces(rows: list[list[str]], path: str) -> list[Piece]:
    width = max(len(row) for row in rows)
    padded = [tuple(row + [""] * (width - len(row))) for row in rows]
    used = [column for column in range(width) if any(row[column] for row in padded)]
    cells = [tuple(row[column] for column in used) for row in padded if any(row)]
    if not used or not cells:
        return []
    if len(used) == 1:
        return [Piece(row[0], row[0], "paragraph", path) for row in cells]
    head = pipe(("",) * len(used)) + "\n" + rule(len(used)) + "\n"
    return [
        Piece((head if number == 0 else "") + pipe(row), "\t".join(row).strip("\t"), "row", path, number > 0)
        for number, row in enumerate(cells)
    ]

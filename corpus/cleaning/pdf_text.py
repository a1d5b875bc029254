"""PDF to text: lines by page and column, headings by font size, tables as rows (``pdfplumber``).

A PDF knows where characters stand and nothing else. Columns are read one after the other only
where both look like running text: what is doubtful is read across, since the label and the
value of a table without lines must not be parted.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
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
_SET_OFF = 0.25  # of the size: a character of full size is raised or lowered from here on
_LEAST_LINES = 5  # of each column
_GUTTER = 1.0  # least width between columns, in sizes of the text
_COLUMN_WIDTH = 13.0  # least mean width of a column's lines, likewise: labels of tables are shorter
_FILLED, _FILLED_SHARE = 0.8, 0.5  # running text fills its column: so much of the width, on so many lines
_MOST_ITEMS = 1000  # of a page; more are a drawing or a list
_FAR = 2.5  # sizes between lines that are not of one block
_LABEL_END = re.compile(r"[:：]$")
_VALUE_START = re.compile(r"[:：]")


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
    """Lines (text, size, bold, box) outside tables and tables as grids, both in the order of reading; pictures."""
    _write_scripts(page.chars)
    items: list[dict[str, Any]] = []
    boxes = []
    for table in page.find_tables() if len(page.lines) + len(page.rects) >= 4 else []:
        rows = [[collapse(cell or "") for cell in row] for row in table.extract()]
        if len(rows) >= 2 and max(len(row) for row in rows) >= 2:
            x0, top, x1, bottom = map(float, table.bbox)
            items.append({"table": rows, "x0": x0, "x1": x1, "top": top, "bottom": bottom, "parts": []})
            boxes.append(table.bbox)
    # What stands in a table goes first: beside it may be text of another column.
    outside = page.filter(lambda thing: not _within(thing, boxes)) if boxes else page
    for line in outside.extract_text_lines(return_chars=True):
        if collapse(line["text"]):
            items.append(_line(line["text"], line["chars"]))
    ordered = list(_in_reading_order(sorted(items, key=lambda item: (item["top"], item["x0"]))))
    page_images = len(page.images)
    page.close()
    return {
        "items": ordered,
        "lines": [item for item in ordered if "text" in item],
        "tables": [item["table"] for item in ordered if "table" in item],
        "images": page_images,
    }


def _within(thing: dict[str, Any], boxes: Sequence[tuple[float, float, float, float]]) -> bool:
    x, y = (thing["x0"] + thing["x1"]) / 2, (thing["top"] + thing["bottom"]) / 2
    return any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in boxes)


def _line(text: str, characters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sizes = Counter(round(float(char["size"]), 1) for char in characters)
    bold = sum("bold" in char.get("fontname", "").lower() for char in characters)
    return {
        "text": collapse(text),
        "size": max(sizes, key=lambda value: (sizes[value], value)) if sizes else 0.0,
        "bold": bold > 0.8 * len(characters),
        "x0": min(float(char["x0"]) for char in characters),
        "x1": max(float(char["x1"]) for char in characters),
        "top": min(float(char["top"]) for char in characters),
        "bottom": max(float(char["bottom"]) for char in characters),
        "chars": list(characters),
        "parts": _stretches(characters),
    }


def _stretches(characters: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """Where a line has text: from x to x, parted by gaps that are wider than blanks between words."""
    stretches: list[tuple[float, float]] = []
    for char in sorted(characters, key=lambda char: char["x0"]):
        if not str(char["text"]).strip():
            continue
        x0, x1 = float(char["x0"]), float(char["x1"])
        if stretches and x0 - stretches[-1][1] < _GUTTER * float(char["size"]):
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], x1))
        else:
            stretches.append((x0, x1))
    return stretches


# --- columns ------------------------------------------------------------------------


def _in_reading_order(items: list[dict[str, Any]], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Lines and tables of a page, columns of running text one after the other."""
    gutter = _gutter(items) if depth < 3 and len(items) <= _MOST_ITEMS else None
    if gutter is None:
        yield from items
        return
    x, first, last = gutter
    yield from _in_reading_order(items[:first], depth)
    sides = _sides(items[first:last], x)
    for number, side in enumerate(sides):
        column = list(_in_reading_order(side, depth + 1))
        if column and number:
            column[0]["new_column"] = True
        yield from column
    yield from _in_reading_order(items[last:], depth)


def _gutter(items: Sequence[dict[str, Any]]) -> tuple[float, int, int] | None:
    """The x between two columns and the items that stand beside it, the most of them; None where there is none."""
    lines = [item for item in items if "text" in item]
    if (
        len(lines) < 2 * _LEAST_LINES
        and len([part for line in lines for part in line["parts"]]) < 2 * _LEAST_LINES
    ):
        return None
    starts = sorted({round(part[0]) for line in lines for part in line["parts"]})
    best: tuple[int, float, int, int] | None = None
    for start in starts:
        for first, last in _bands(items, start - 1.0):
            if best is not None and last - first <= best[0]:
                continue
            if _are_columns(items[first:last], start - 1.0):
                best = (last - first, start - 1.0, first, last)
    return None if best is None else best[1:]


def _bands(items: Sequence[dict[str, Any]], x: float) -> Iterator[tuple[int, int]]:
    """Runs of items that follow each other closely and none of which stands across x."""
    first = 0
    bottom = None
    for index, item in enumerate(items):
        parts = item["parts"] or [(item["x0"], item["x1"])]
        across = any(a < x < b for a, b in parts)
        far = bottom is not None and item["top"] - bottom > _FAR * float(item.get("size", 10.0))
        if across or far:
            if index > first:
                yield first, index
            first = index + 1 if across else index
            bottom = None
        if not across:
            bottom = max(bottom or 0.0, item["bottom"])
    if len(items) > first:
        yield first, len(items)


def _are_columns(items: Sequence[dict[str, Any]], x: float) -> bool:
    """Whether both sides of x are running text, so that each is read by itself."""
    lines = [item for item in items if "text" in item]
    left, right = ([part for part in _parts(lines) if (part[1] <= x) is side] for side in (True, False))
    if min(len(left), len(right)) < _LEAST_LINES:
        return False
    size = median(line["size"] for line in lines) or 10.0
    if min(part[0] for part in right) - max(part[1] for part in left) < _GUTTER * size:
        return False
    height = min(left[-1][3], right[-1][3]) - max(left[0][2], right[0][2])
    if height < 0.5 * min(left[-1][3] - left[0][2], right[-1][3] - right[0][2]):
        return False
    return all(_is_running_text(side, size) for side in (left, right)) and not _are_rows(
        lines, left, right, x
    )


_Part = tuple[float, float, float, float]  # x0, x1, top, bottom


def _parts(lines: Sequence[dict[str, Any]]) -> list[_Part]:
    return [(a, b, line["top"], line["bottom"]) for line in lines for a, b in line["parts"]]


def _is_running_text(parts: Sequence[_Part], size: float) -> bool:
    """Lines that fill their column, one part each. (A further column within is told apart before.)"""
    by_line: dict[float, list[_Part]] = defaultdict(list)
    for part in parts:
        by_line[part[2]].append(part)
    widths = [max(p[1] for p in row) - min(p[0] for p in row) for row in by_line.values()]
    widest = sorted(widths)[-2] if len(widths) > 2 else max(widths)
    filled = sum(width >= _FILLED * widest for width in widths)
    return sum(widths) / len(widths) >= _COLUMN_WIDTH * size and filled >= _FILLED_SHARE * len(widths)


def _are_rows(
    lines: Sequence[dict[str, Any]], left: Sequence[_Part], right: Sequence[_Part], x: float
) -> bool:
    """Whether the sides belong together line by line: labels with their values, or cells that begin together."""
    labels = values = 0
    for line in lines:
        before = "".join(str(char["text"]) for char in line["chars"] if char["x1"] <= x).strip()
        behind = "".join(str(char["text"]) for char in line["chars"] if char["x0"] >= x).strip()
        labels += bool(before and _LABEL_END.search(before))
        values += bool(behind and _VALUE_START.match(behind))
    if max(labels, values) >= 0.3 * min(len(left), len(right)):
        return True
    one, other = _breaks(left), _breaks(right)
    together = sum(any(abs(a - b) <= 3 for b in other) for a in one)
    return together >= max(1.0, 0.6 * max(len(one), len(other)))


def _breaks(parts: Sequence[_Part]) -> list[float]:
    """Tops of lines that stand further below the line before than most do."""
    tops = sorted({part[2] for part in parts})
    steps = [b - a for a, b in pairwise(tops)]
    usual = median(steps) if steps else 0.0
    return [b for a, b in pairwise(tops) if b - a > 1.25 * usual]


def _sides(items: Sequence[dict[str, Any]], x: float) -> list[list[dict[str, Any]]]:
    """Items left and right of x; a line that has text on both sides becomes two."""
    sides: list[list[dict[str, Any]]] = [[], []]
    for item in items:
        if "table" in item:
            sides[item["x0"] >= x].append(item)
            continue
        for number in (0, 1):
            own = [char for char in item["chars"] if (float(char["x0"]) >= x) == bool(number)]
            text = _text_of(own) if any(str(char["text"]).strip() for char in own) else ""
            if text:
                sides[number].append(_line(text, own))
    return sides


def _text_of(characters: Sequence[dict[str, Any]]) -> str:
    """A part of a line as ``pdfplumber`` writes lines, blanks between words included."""
    from pdfplumber.utils.text import extract_text

    return collapse(extract_text(list(characters)))


def _assembled(contents: Sequence[dict[str, Any]], metadata: dict[str, Any]) -> CleanedPage:
    characters = sum(size(line["text"]) for content in contents for line in content["lines"]) + sum(
        size(cell) for content in contents for rows in content["tables"] for row in rows for cell in row
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
            n_table_cells=sum(len(row) for content in contents for rows in content["tables"] for row in rows),
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
        counts.update({re.sub(r"\d+", "#", line["text"]) for line in _edges(content["lines"])})
    return {text for text, count in counts.items() if count >= max(3, 0.6 * len(contents))}


def _edges(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first and the last lines of a page by their height, in whatever order they are read."""
    by_height = sorted(lines, key=lambda line: line["top"])
    return [*by_height[:3], *by_height[-3:]]


def _numbering(contents: Sequence[dict[str, Any]]) -> int | None:
    """What bare numbers at the edges of most pages exceed the page's count by; ``None`` where they do not count pages.

    A number that stands alone may be a value: it is a page number only where it
    goes on from page to page.
    """
    offsets: Counter[int] = Counter()
    for number, content in enumerate(contents, 1):
        edges = _edges(content["lines"])
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

    Compared with the character that they stand right behind, the last one written or (where
    they are written after the line) the one that is there: smaller, or set off by a part of its
    size (text rise, or a text matrix of their own). Their box becomes that character's, so that
    they stay on its line.
    """
    base: dict[str, Any] | None = None
    edge = 0.0
    places: dict[int, list[tuple[float, dict[str, Any]]]] | None = None
    for character in characters:
        text = str(character["text"])
        if text in SCRIPTED and character.get("upright", True):
            before, end = base, edge
            if before is None or not _touches(character, before, end):
                places = _ends(characters) if places is None else places
                before, end = _before(character, places)
            written = text if before is None else _as_script(character, before, end)
            if before is not None and written != text:
                character["text"] = written
                for name in ("top", "bottom", "doctop", "size"):
                    character[name] = before[name]
                base, edge = before, float(character["x1"])
                if places is not None:
                    places.setdefault(int(edge), []).append((edge, before))
                continue
        if text.strip():
            base, edge = character, float(character["x1"])


def _touches(character: dict[str, Any], before: dict[str, Any], end: float) -> bool:
    """Whether a character stands right behind another, on its line or a little above or below it."""
    reach = float(before["size"])
    level = abs(character["bottom"] - before["bottom"]) <= _RAISED_MOST * reach
    return bool(level and end - 0.3 * reach <= character["x0"] < end + 0.5 * reach + 1)


def _ends(characters: Sequence[dict[str, Any]]) -> dict[int, list[tuple[float, dict[str, Any]]]]:
    """Characters by where they end, in whole points."""
    places: dict[int, list[tuple[float, dict[str, Any]]]] = defaultdict(list)
    for character in characters:
        if str(character["text"]).strip():
            places[int(character["x1"])].append((float(character["x1"]), character))
    return places


def _before(
    character: dict[str, Any], places: dict[int, list[tuple[float, dict[str, Any]]]]
) -> tuple[dict[str, Any] | None, float]:
    """The character that stands right before another, the one on its own line before all others."""
    x0, reach = float(character["x0"]), 0.5 * float(character["size"]) + 3
    found = [
        (end, other)
        for place in range(int(x0 - reach), int(x0 + reach) + 1)
        for end, other in places.get(place, ())
        if other is not character and _touches(character, other, end)
    ]
    if not found:
        return None, 0.0
    end, best = min(
        found,
        key=lambda one: (
            abs(one[1]["bottom"] - character["bottom"]) > 0.1 * one[1]["size"],
            abs(one[0] - x0),
        ),
    )
    return best, end


def _as_script(character: dict[str, Any], base: dict[str, Any], edge: float) -> str:
    """A digit or sign as it is to be read behind ``base``, which ends (with what is raised there) at ``edge``."""
    text, size_ = str(character["text"]), float(base["size"])
    rise = (base["bottom"] - character["bottom"]) / size_
    fall = (character["top"] - base["top"]) / size_
    if not _touches(character, base, edge):
        return text
    small = float(character["size"]) <= _SMALL * size_
    if _RAISED_LEAST <= rise <= _RAISED_MOST and (small or rise >= _SET_OFF):
        return raised(text)
    least = _RAISED_LEAST if small else _SET_OFF
    if fall >= least and rise < _RAISED_LEAST and character["top"] < base["bottom"]:
        return lowered(text)
    return text


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
    edge = {id(line) for line in _edges(content["lines"])}
    gathered: list[dict[str, Any]] = []

    def close() -> None:
        if gathered:
            text = _joined([line["text"] for line in gathered])
            pieces.append(Piece(text, text, "paragraph", path))
            gathered.clear()

    for line in content["items"]:
        if "table" in line:
            close()
            pieces.extend(_table_pieces(line["table"], path))
            continue
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
        if line.get("new_column") and gathered and _SENTENCE_END.search(gathered[-1]["text"]):
            close()
        gathered.append(line)
    close()
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

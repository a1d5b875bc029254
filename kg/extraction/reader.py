"""Takes a refined document apart: labels with values, tables, sentences, each with its span.

Layouts that one rule set has to read: two- and four-column property tables,
infobox rows, sub-headings as labels, definition lists, "label: value" lines,
capital label lines of PDF sheets, and section rows inside a table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from corpus.documents import RefinedDocument
from corpus.names import find_cas
from corpus.orders import blanked, title_without_orders
from corpus.sections import sds_section, sds_sections
from kg.extraction.model import Cell, Entry, Grid, Reading, Sentence
from kg.extraction.owner import name_like
from kg.extraction.vocabulary import bare_label, field_of, shadow

_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_RULE = re.compile(r"^\|?[\s:|-]+\|[\s:|-]*$")
_CELL = re.compile(r"(?<!\\)\|")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?=\S)")
_COLON = re.compile(r"\s*(?:\*\*)?\s*[:：](?:\*\*)?\s*")
# Where a label may begin: a line, a sentence, the row number of a flattened table ("2: 2.1 紧急情况概述:"),
# and in Chinese a blank ("CAS号：67-56-1 英文名称：Methanol"). The point of a number begins none.
_OPENING = re.compile(
    r"(?:[。;；\n]|\.(?![\d.])|(?<!\d)\d{1,2}\s*[:：](?=\s*\d{1,2}\.\d)|(?P<blank>\s))\s*(?:\*\*)?"
)
_NEXT_ROW = re.compile(r"[;；]\s*\d{1,2}\s*[:：]\s*\d{1,2}\.\d")
_CAPITALS = re.compile(r"^[A-Z][A-Z /().&-]{2,60}$")
_SENTENCE_ZH = re.compile(r"[^。！？\n]+[。！？]?")
_SENTENCE_EN = re.compile(r"[^\n]+?(?:[.!?](?=\s+[A-Z(]|\s*$)|(?=\n|$))")

# header words of tables whose rows are about several things
_COLUMN = re.compile(
    r"^(?:组分|组成|成分|成份|化学名|名称.*|.*名称.*|cas.{0,12}|含量.*|浓度.*|质量分数.*|来源|类型|数值|备注|标准|序号|类别|临界量.*|限值|国家.*"
    r"|component|substance.*|ingredient.*|name|chemical name|cas.{0,14}|concentration.*|%.*|wt.*|source|type|value|note.*|remark.*"
    r"|项目|内容|property|item|单位|unit|sara.*|.*description.*|(?:.* )?class|(?:.* )?id|(?:.* )?pg|un.{0,10}|ec.{0,10}|(?:.* )?symbols?|(?:.* )?labels?|special provisions"
    r"|\(?\d{1,2}[ab]?\)?|uel.*|threshold.*)$",
    re.IGNORECASE,
)


# columns of lists of dangerous goods and of exposure limits; in a narrow table these are labels
_OF_A_LIST = re.compile(
    r"^(?:联合国(?:危险货物)?编号|类别或项别|次要危险性|包装类别|特殊规定|有限数量|例外数量|中文名|英文名|notation"
    r"|(?:(?:OSHA|NIOSH|ACGIH|中国|GBZ ?2\.1)\s*)?(?:MAC|(?:PC|TLV|PEL|REL)-(?:TWA|STEL|C)|TLV|PEL|REL|IDLH)(?:\s*[(/,，].*)?)$",
    re.IGNORECASE,
)

# the column that names what a row is about
_NAMED = re.compile(
    r"^(?:物质|化合物|化学品|试剂|溶剂|产品|品名|名称|.*名称|组分|substances?|compounds?|chemicals?|solvents?|.*\bname|component)$",
    re.IGNORECASE,
)


# the column of a safety card that says what to do ("急救/消防", "FIRST AID / FIRE FIGHTING")
_AID = re.compile(r"急救|first aid", re.IGNORECASE)


@dataclass(frozen=True)
class _Mark:
    """A label before a colon: where it may be cut off, where its words and its value begin."""

    start: int
    label_start: int
    value: int
    words: str
    label: str


@lru_cache(maxsize=4)
def read(document: RefinedDocument) -> Reading:
    """Take a document apart. Nothing is interpreted beyond which words are labels."""
    return _Reader(document).read()


class _Reader:
    def __init__(self, document: RefinedDocument) -> None:
        self.document = document
        self.text = blanked(document.text)  # what addresses a language model states nothing
        self.shadow = shadow(self.text)
        self.entries: list[Entry] = []
        self.grids: list[Grid] = []
        self.sentences: list[Sentence] = []
        self.headings: list[str] = []
        self.sds: int | None = None
        self.stack: list[tuple[int, str, int | None]] = []
        self.pending: tuple[str, str, int, int, int | None] | None = (
            None  # label, text, start, value start, sds
        )
        self.given = {s.start: s.sds for s in document.sections}
        self.own: dict[int, int | None] = {}

    def read(self) -> Reading:
        lines = self._lines()
        numbers = self._heading_numbers(lines)
        index = 0
        while index < len(lines):
            start, end = lines[index]
            line = self.shadow[start:end]
            heading = _HEADING.match(line)
            if heading:
                self._heading(start + heading.start(2), end, len(heading[1]), numbers[start], self.own[start])
                index += 1
            elif "|" in line and line.lstrip().startswith("|"):
                last = index
                while last < len(lines) and self._same_table(lines, index, last):
                    last += 1
                self._table(lines[index:last])
                index = last
            elif self._definition(lines, index):
                index += 1
            else:
                self._line(start, end)
                index += 1
        self._flush(len(self.text))
        return Reading(
            self.text,
            self.shadow,
            self.document.language,
            self.document.document_id,
            title_without_orders(self.document.title),
            tuple(self.entries),
            tuple(self.grids),
            tuple(self.sentences),
            tuple(self.headings),
        )

    def _same_table(self, lines: Sequence[tuple[int, int]], first: int, index: int) -> bool:
        """A row that follows the one before without a blank line."""
        row = self.shadow[lines[index][0] : lines[index][1]].lstrip().startswith("|")
        return row and (index == first or self.text.count("\n", lines[index - 1][1], lines[index][0]) == 1)

    def _lines(self) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        position = 0
        for line in self.text.split("\n"):
            if line.strip():
                spans.append((position, position + len(line.rstrip())))
            position += len(line) + 1
        return spans

    def _heading_numbers(self, lines: Sequence[tuple[int, int]]) -> dict[int, int | None]:
        starts = [start for start, end in lines if _HEADING.match(self.shadow[start:end])]
        words = [
            match[2] for start, end in lines if (match := _HEADING.match(self.shadow[start:end])) is not None
        ]
        found = sds_sections(words)
        self.own = dict(zip(starts, found, strict=True))
        return {start: self.given.get(start) or number for start, number in zip(starts, found, strict=True)}

    # --- headings -------------------------------------------------------------

    def _heading(self, start: int, end: int, level: int, number: int | None, own: int | None) -> None:
        words = self.shadow[start:end].strip()
        self._flush(start)
        self.headings.append(self.text[start:end].strip())
        while self.stack and self.stack[-1][0] >= level:
            self.stack.pop()
        inherited = next((sds for _, _, sds in reversed(self.stack) if sds), None)
        self.sds = number or inherited
        self.stack.append((level, words, self.sds))
        known = field_of(words)
        if known and (own is None or self._also_label(known[1].name, own)):
            self.pending = (known[0], bare_label(words), start, end, self.sds)

    @staticmethod
    def _also_label(field: str, number: int) -> bool:
        """A section's own title is a label only where the whole section is the answer (spill, disposal)."""
        return (field, number) in {("spill", 6), ("disposal", 13)}

    @property
    def _title(self) -> str:
        return self.stack[-1][1] if self.stack else ""

    def _flush(self, end: int) -> None:
        """Close an open label: its value ends here."""
        if self.pending is None:
            return
        label, words, label_start, start, sds = self.pending
        self.pending = None
        while end > start and self.text[end - 1] in " \n\t#*_-|":
            end -= 1
        while start < end and self.text[start] in " \n\t:：*":
            start += 1
        if start < end:
            self.entries.append(Entry(label, words, label_start, start, end, sds, self._title))

    # --- lines -------------------------------------------------------------------

    def _definition(self, lines: Sequence[tuple[int, int]], index: int) -> bool:
        """A term line of a definition list (the next line begins with a colon)."""
        start, end = lines[index]
        if index + 1 >= len(lines):
            return False
        following = self.shadow[lines[index + 1][0] : lines[index + 1][1]].lstrip()
        if not following.startswith(":") or self.shadow[start:end].lstrip().startswith(":"):
            return False
        self._flush(start)
        known = field_of(self.shadow[start:end])
        if known:
            self.pending = (known[0], bare_label(self.shadow[start:end]), start, end, self.sds)
        return True

    def _line(self, start: int, end: int) -> None:
        line = self.shadow[start:end]
        bullet = _BULLET.match(line)
        at = start + (bullet.end() if bullet else 0)
        if re.fullmatch(r"[一二三四五六七八九十]{1,3}[、.]?|[IVX]+\.?|\d{1,2}\.?", line.strip()):
            self._flush(start)  # the number of the heading below
            return
        whole = field_of(self.shadow[at:end]) if not bullet else None
        if whole and (_CAPITALS.match(line.strip()) or line.strip().startswith("**")):
            self._flush(start)
            self.pending = (whole[0], bare_label(line), start, end, self.sds)
            return
        section = None if bullet else self._section_line(line)
        if section:
            self._flush(start)
            self.sds = section
            return
        if self._inline(at, end):
            return
        if not self.pending:
            self._prefix(at, end)
        label = self.pending[0] if self.pending else ""
        self._sentences(at, end, label)

    def _section_line(self, line: str) -> int | None:
        """A section title that is not marked as a heading ("Section 4 - First Aid Measures")."""
        shown = line.strip().strip("*_")
        if len(shown) > 70 or not re.match(
            r"^(?:第.{1,4}部分|section\s+\d|\d{1,2}\s*[.、])", shown, re.IGNORECASE
        ):
            return None
        return sds_section(shown)

    def _marks(self, start: int, end: int) -> list[_Mark]:
        """The "label:" of a line, each the longest run of words before its colon that is a label."""
        found: list[_Mark] = []
        floor = start
        for colon in _COLON.finditer(self.shadow, start, end):
            mark = self._mark(floor, start, colon)
            if mark:
                found.append(mark)
                floor = mark.value
        return found

    def _mark(self, floor: int, line: int, colon: re.Match[str]) -> _Mark | None:
        openings: list[tuple[int, int, bool | None]] = [(floor, floor, False if floor == line else None)]
        openings += [
            (match.start(), match.end(), match["blank"] is not None)
            for match in _OPENING.finditer(self.shadow, floor, colon.start())
        ]
        for begin, at, blank in openings:
            words = self.shadow[at : colon.start()]
            if len(words) > 40 or (blank and not re.search(r"[一-鿿]", words)):
                continue
            known = field_of(words)
            if known and not (blank is None and words[:1].isdigit()):
                lead = len(words) - len(words.lstrip(" *"))
                return _Mark(begin, at + lead, colon.end(), words, known[0])
        return None

    def _inline(self, start: int, end: int) -> bool:
        """Entries of a line that carries one or more "label: value" pairs."""
        marks = self._marks(start, end)
        if not marks:
            return False
        first = marks[0].label_start
        opens_line = not self.shadow[start:first].strip(" *0123456789:;.")
        if opens_line:
            self._flush(start)
        elif self.pending is None:
            self._sentences(start, first, "")
        for index, mark in enumerate(marks):
            last = index + 1 == len(marks)
            stop = end if last else marks[index + 1].start
            words = bare_label(mark.words)
            if last and opens_line and len(marks) == 1:
                self.pending = (mark.label, words, mark.label_start, mark.value, self.sds)
                self._sentences(mark.value, stop, mark.label)
                if not self._next_continues(end):
                    self._flush(end)
            else:
                row = _NEXT_ROW.search(self.shadow, mark.value, stop)
                stop = row.start() if row else self._stop_in_prose(mark.value, stop, opens_line)
                self._entry(mark.label, words, mark.label_start, mark.value, stop)
                self._sentences(mark.value, end if last else stop, mark.label)
        return True

    def _next_continues(self, end: int) -> bool:
        """Whether the value goes on: a list below it, or a PDF's broken line."""
        rest = self.text[end : end + 2]
        following = self.shadow[end:].lstrip("\n").split("\n", 1)[0]
        bullet = _BULLET.match(following)
        if bullet:
            return not re.match(r"[^。;；\n|:：]{1,40}[:：]", following[bullet.end() :])
        return (
            rest.startswith("\n")
            and not rest.startswith("\n\n")
            and bool(re.search(r"[a-z,]$", self.text[:end][-1:]))
            and self.text[end + 1 : end + 2].islower()
        )

    def _stop_in_prose(self, start: int, stop: int, opens_line: bool) -> int:
        """In running text a labelled value ends with its sentence."""
        if opens_line:
            return stop
        match = re.compile(r"[。\n]").search(self.shadow, start, stop)
        return match.end() if match else stop

    def _prefix(self, start: int, end: int) -> None:
        """ "Molecular Weight 268.24 AMU": a label and a value with only a blank between (PDF text)."""
        line = self.shadow[start:end]
        match = re.match(r"^([A-Za-z][A-Za-z/. #]{1,40}?)\s+(?=[-–<>≤≥~]?\d|N/A\b|UN\s?\d)", line)
        if match and (known := field_of(match[1])) is not None:
            self._entry(known[0], bare_label(match[1]), start, start + match.end(), end)
            return
        capitals = re.match(r"^([A-Z][A-Z /()-]{6,80}?)\s+(?=[A-Z][a-z])", line)
        if capitals and (known := field_of(capitals[1])) is not None:
            self._entry(known[0], bare_label(capitals[1]), start, start + capitals.end(), end)
            return
        named = re.match(
            r"^((?:product|chemical|substance) name|formula)\s+(?=[A-Z])(?!.*\bCAS\b)", line, re.IGNORECASE
        )
        if named and self.sds in {1, 2, 3} and (known := field_of(named[1])) is not None:
            self._entry(known[0], bare_label(named[1]), start, start + named.end(), end)

    def _entry(self, label: str, words: str, label_start: int, start: int, end: int) -> None:
        while end > start and self.text[end - 1] in " \n\t*|;；":
            end -= 1
        while start < end and self.text[start] in " \n\t*":
            start += 1
        if start < end:
            self.entries.append(Entry(label, words, label_start, start, end, self.sds, self._title))

    def _sentences(self, start: int, end: int, label: str) -> None:
        pattern = _SENTENCE_ZH if re.search(r"[一-鿿]", self.shadow[start:end]) else _SENTENCE_EN
        for match in pattern.finditer(self.shadow, start, end):
            left, right = match.span()
            while left < right and self.text[left] in " \t*:":
                left += 1
            if right > left:
                self.sentences.append(Sentence(left, right, self.sds, self._title, label))

    # --- tables ---------------------------------------------------------------------

    def _table(self, lines: Sequence[tuple[int, int]]) -> None:
        self._flush(lines[0][0])
        rows = [self._cells(start, end) for start, end in lines if not _RULE.match(self.shadow[start:end])]
        index = 0
        while index < len(rows):
            row = rows[index]
            full = [cell for cell in row if cell.end > cell.start]
            stop, kind = self._matrix(rows, index)
            if kind:
                self._grid(row, rows[index + 1 : stop], kind)
                index = stop
                continue
            if len(full) >= 2 and self._is_header(full):
                stop = self._grid_end(rows, index + 1)
                if stop > index + 1:
                    self._grid(row, rows[index + 1 : stop])
                    index = stop
                    continue
            self._row(full)
            index += 1

    def _cells(self, start: int, end: int) -> list[Cell]:
        line = self.text[start:end]
        bars = [start + match.start() for match in _CELL.finditer(line)]
        if not bars or bars[-1] < start + len(line.rstrip()) - 1:
            bars.append(end)
        cells = []
        for left, right in pairwise(bars):
            a, b = left + 1, right
            while a < b and self.text[a] in " \t":
                a += 1
            while b > a and self.text[b - 1] in " \t":
                b -= 1
            cells.append(Cell(a, b))
        return cells

    def _words(self, cell: Cell) -> str:
        return self.shadow[cell.start : cell.end]

    def _matrix(self, rows: Sequence[Sequence[Cell]], index: int) -> tuple[int, str]:
        """End and kind of a table whose header names properties or circumstances; kind "" for any other."""
        header = [self._words(cell).strip() for cell in rows[index]]
        stop = index + 1
        while stop < len(rows) and len(rows[stop]) == len(header) and not self._section_row(rows[stop]):
            stop += 1
        body = rows[index + 1 : stop]
        if len(header) < 3 or not body or not header[1] or len(set(header)) < len(header) - 1:
            return index, ""
        routes = sum(self._route(self._words(row[0])) for row in body)
        if routes >= 2 and any(_AID.search(word) for word in header[1:]):
            return stop, "exposures"
        known = [self._measured(word) for word in header]
        if sum(known) >= 2 and any(_NAMED.match(bare_label(word)) for word in header):
            return stop, "substances"
        labelled = sum(self._measured(self._words(row[0])) for row in body)
        if not self._labels_columns(header) and labelled >= 2 and 2 * labelled >= len(body):
            return stop, "properties"
        return index, ""

    @staticmethod
    def _labels_columns(header: Sequence[str]) -> bool:
        """Whether a header holds labels; the one over the column of properties ("名称") may, beside two substances."""
        known = field_of(header[0])
        substances = sum(name_like(word) or bool(find_cas(word)) for word in header[1:])
        corner = known is not None and not (known[1].family == "identity" and substances >= 2)
        return corner or any(field_of(word) for word in header[1:])

    @staticmethod
    def _route(words: str) -> bool:
        known = field_of(words)
        return known is not None and known[1].family == "first_aid"

    @staticmethod
    def _measured(words: str) -> bool:
        known = field_of(words)
        return known is not None and known[1].family == "measurement"

    def _is_header(self, cells: Sequence[Cell]) -> bool:
        raw = [self._words(cell).strip() for cell in cells]
        words = [bare_label(word) for word in raw]
        if len(set(words)) < len(words) and len(set(words)) < 2:
            return False
        columns = sum(bool(_COLUMN.match(a) or _COLUMN.match(b)) for a, b in zip(words, raw, strict=True))
        if len(words) >= 4:
            columns += sum(bool(_OF_A_LIST.match(word)) for word in words)
        return columns == len(words) or (len(words) >= 4 and columns >= 0.6 * len(words))

    def _grid_end(self, rows: Sequence[Sequence[Cell]], index: int) -> int:
        """Rows belong to a grid until a section title or a known label opens one."""
        stop = index
        while stop < len(rows):
            full = [cell for cell in rows[stop] if cell.end > cell.start]
            if len(full) < 2 or self._section_row(full) or self._is_header(full):
                break
            first = self._words(full[0])
            labels = [field_of(self._words(c)) for c in full]
            if re.match(r"^\d{1,2}\.\d", first) or (labels[0] and len(full) <= 2):
                break
            if len(full) == 4 and labels[0] and labels[2]:
                break
            stop += 1
        return stop

    def _section_row(self, cells: Sequence[Cell]) -> int | None:
        texts = {self._words(cell) for cell in cells}
        if len(texts) == 1:
            return sds_section(next(iter(texts)))
        return None

    def _grid(self, header: Sequence[Cell], rows: Sequence[Sequence[Cell]], kind: str = "rows") -> None:
        heads = tuple(header)
        kept = tuple(tuple(row) for row in rows)
        caption = self.headings[-1] if self.headings else ""
        self.grids.append(Grid(heads, kept, self.sds, self._title, caption, kind))

    def _row(self, cells: Sequence[Cell]) -> None:
        section = self._section_row(cells)
        if section:
            self.sds = section
            return
        cells = [c for i, c in enumerate(cells) if i == 0 or self._words(c) != self._words(cells[i - 1])]
        if (
            len(cells) > 1
            and re.fullmatch(r"\d{1,2}", self._words(cells[0]))
            and field_of(self._words(cells[1]))
        ):
            cells = cells[1:]
        if len(cells) == 1:
            self._single(cells[0])
            return
        step = 0
        while step + 1 < len(cells):
            label, value = cells[step], cells[step + 1]
            known = field_of(self._words(label))
            if known and self._several(known[1].family, cells[step + 1 :]):
                known = None  # values under columns that nobody named: which of them holds when?
            if known:
                self._entry(known[0], bare_label(self._words(label)), label.start, value.start, value.end)
            self._sentences(value.start, value.end, known[0] if known else "")
            step += 2
        if len(cells) % 2:
            self._sentences(cells[-1].start, cells[-1].end, "")

    def _several(self, family: str, cells: Sequence[Cell]) -> bool:
        """Whether a property's value is followed by further figures and not by the next label."""
        if family != "measurement" or len(cells) < 2 or field_of(self._words(cells[1])):
            return False
        return bool(re.match(r"\W{0,2}\d", self._words(cells[1])))

    def _single(self, cell: Cell) -> None:
        """A row of one cell: "Other names Azine; Azabenzene", a caption, or prose."""
        words = self._words(cell)
        head = re.match(r"^[^;]{2,30}?(?=;|\s\d{1,2}\s+\d{1,2}\.\d)", words)
        opening = head[0] if head else ""
        if head and (section := sds_section(opening)):
            self.sds = section  # a section's own table, flattened into one cell
            self._inline(cell.start + len(opening) + 1, cell.end)
            return
        for length in range(min(len(words), 40), 3, -1):
            if words[length - 1 : length] in " :;" or words[length : length + 1] in " :;":
                known = field_of(words[:length])
                if known and words[length:].strip(" :;"):
                    start = cell.start + length
                    while self.shadow[start] in " :;":
                        start += 1
                    self._entry(known[0], bare_label(words[:length]), cell.start, start, cell.end)
                    return
        if not self._inline(cell.start, cell.end):
            self._sentences(cell.start, cell.end, "")

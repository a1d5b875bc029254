"""Tables of data, tables of layout, and grids that are tables in all but name."""

from __future__ import annotations

import re

from corpus.cleaning import vocabulary as words
from corpus.cleaning.measure import BLOCKS, HEADINGS, size
from corpus.cleaning.parsing import Numbers
from corpus.cleaning.tags import Element, all_text, name_set

_RAISED = re.compile(r"vertical-align\s*:\s*(super|sub|text-top|text-bottom)\b", re.IGNORECASE)
_SECTION = re.compile(
    r"^\s*(?:section\s*)?\d{1,2}\s*[.、:：）)]?\s*[^\W\d]|^\s*第\s*[一二三四五六七八九十\d]{1,3}\s*(?:部分|章|节|節)|^\s*[一二三四五六七八九十]{1,3}、",
    re.IGNORECASE,
)
_ROLE_TAGS = {
    "table": "table",
    "grid": "table",
    "row": "tr",
    "cell": "td",
    "gridcell": "td",
    "columnheader": "th",
    "rowheader": "th",
}
_SPACED = re.compile(r"(?:margin|padding)-left\s*:\s*(?!0|-)", re.IGNORECASE)
_SYMBOL = re.compile(r"^[A-Z][a-z]?$")
_DEAD = re.compile(r"^\s*(?:#|javascript|vbscript|data)", re.IGNORECASE)  # a link that cleaning takes away
_CHARGE = re.compile(r"^\d*[+\-−–]$")
_LONG_CELL = 600
_LABEL = 80
_ROW_MAKERS = name_set("div li p section")


def is_data_table(table: Element) -> bool:
    """Whether a table relates rows and columns, rather than arranging the page.

    Header cells, a caption or short cells speak for data; headings, nested tables
    that hold most of the text, one column or long prose in few cells for layout.
    """
    rows = [own_cells(row) for row in own_rows(table)]
    if max(map(len, rows), default=0) < 2:
        return False
    marked = table.find("caption") is not None or any(cell.tag == "th" for row in rows for cell in row)
    nested = [inner for inner in table.iter("table") if _outer_table(inner) is table]
    held = sum(_text_size(inner) for inner in nested)
    arranging = held > 0 and (held > 0.4 * _text_size(table) or (not marked and len(rows) < 4))
    if arranging and not _labels_tables(rows, nested):
        return False
    if marked:
        return True
    if (
        table.get("role") in {"presentation", "none"}
        or next(table.iter("h1", "h2", "h3", "form"), None) is not None
    ):
        return False
    sizes = [_text_size(cell) for row in rows[:200] for cell in row]
    long_text = sum(amount for amount in sizes if amount > _LONG_CELL)
    return long_text == 0 or (len(rows) >= 4 and long_text <= 0.5 * sum(sizes))


def _labels_tables(rows: list[list[Element]], nested: list[Element]) -> bool:
    """Rows of a short label and a value, of which some values are small tables (compositions in data sheets)."""
    if len(rows) < 2 or len(nested) > len(rows):
        return False
    for cells in rows:
        if not cells or not 0 < _text_size(cells[0]) <= _LABEL or cells[0].find(".//table") is not None:
            return False
    return all(len(own_rows(inner)) > 1 and inner.find(".//table") is None for inner in nested)


def _outer_table(table: Element) -> Element | None:
    return next(table.iterancestors("table"), None)


class TableKinds:
    """``is_data_table`` asked once per table (cells ask again and again)."""

    def __init__(self) -> None:
        self._known: dict[Element, bool] = {}

    def is_data(self, table: Element) -> bool:
        """Whether the table holds data."""
        if table not in self._known:
            self._known[table] = is_data_table(table)
        return self._known[table]

    def holds(self, element: Element) -> bool:
        """Whether the element stands in a data table."""
        table = next(element.iterancestors("table"), None)
        return table is not None and self.is_data(table)


def own_rows(table: Element) -> list[Element]:
    """Rows of the table itself, not of tables inside it, in document order."""
    rows: list[Element] = []
    for child in table:
        if child.tag == "tr":
            rows.append(child)
        elif child.tag in {"thead", "tbody", "tfoot"}:
            rows.extend(row for row in child if row.tag == "tr")
    return rows


def own_cells(row: Element) -> list[Element]:
    """Cells of a row."""
    return [cell for cell in row if cell.tag in {"td", "th"}]


def normalise_grids(body: Element, numbers: Numbers) -> bool:
    """Write label/value rows and ARIA grids as what they are, so that they stay together.

    ``role=table/row/cell`` become table tags; two short siblings named label and
    value (or many alike in a row) become ``dl/dt/dd``; neighbouring labelled spans
    get the blank that a style sheet would show. True where an element was moved.
    """
    for element in numbers.with_role:
        role = element.get("role")
        if role in _ROLE_TAGS and element.tag in {"div", "span", "ul", "li", "section"}:
            element.tag = _ROLE_TAGS[role]
            del element.attrib["role"]
    for parent in list(body.iter("div", "ul", "section", "article", "main")):
        pairs = [
            child for child in parent if len(child) == 2 and child.tag in _ROW_MAKERS and _is_pair(child)
        ]
        if pairs and (len(pairs) >= 3 or any(_named_pair(row) for row in pairs)):
            for row in pairs:
                if len(pairs) >= 3 or _named_pair(row):
                    _to_definition(row)
    for element in numbers.named:
        if element.tag in {"div", "p"} and _is_caption(element):
            element.tag = "figcaption"
    moved = _unstack_scripts(body)
    for element in numbers.styled:
        style = element.get("style") or ""
        if (
            element.tag in {"span", "font"}
            and (raised := _RAISED.search(style))
            and len(all_text(element)) <= 20
        ):
            element.tag = "sup" if raised[1].lower() in {"super", "text-top"} else "sub"
        elif element.tag == "span" and _SPACED.search(style):
            _space_before(element)
    moved = _show_controls(body) or moved
    moved = _write_formulas(body) or moved
    for element in list(body.iter("span", "a", "label")):
        if element.tail:
            continue
        following = element.getnext()
        if following is not None and _separate(element, following):
            element.tail = " "
    return moved


def _write_formulas(body: Element) -> bool:
    """MathML scripts and fractions as what they mean in a line: ``<msup>`` as ``sup``, ``<mfrac>`` with its bar."""
    found = False
    for formula in list(body.iter("msup", "msub", "msubsup")):
        for script, tag in zip(
            list(formula)[1:3], ("sup",) if formula.tag == "msup" else ("sub", "sup"), strict=False
        ):
            if next(script.iter("msup", "msub", "msubsup", "mfrac"), None) is not None:
                continue
            flat = "".join(all_text(script).split())
            for child in list(script):
                script.remove(child)
            script.tag, script.text, found = tag, flat, True
    for fraction in list(body.iter("mfrac")):
        if len(fraction) == 2:
            for part in fraction:
                if len("".join(all_text(part).split())) > 1:  # (a + b)/2 is not a + b/2
                    part.text = "(" + (part.text or "").lstrip()
                    part.tail = ")" + (part.tail or "").lstrip()
            fraction[0].tail = (fraction[0].tail or "").strip() + "/"
            fraction.tag, found = "mrow", True  # its bar is written out now
    return found


def _show_controls(body: Element) -> bool:
    """Write out what stands in controls and is content: folding section titles, fields that only show a value."""
    shown = False
    for button in list(body.iter("button")):
        following = button.getnext()
        text = all_text(button).strip()
        folds = button.get("aria-controls") or button.get("aria-expanded")
        if following is None or following.tag not in BLOCKS or not 2 <= len(text) <= 80:
            continue
        if _SECTION.match(text) or (
            folds and not any(node.tag in HEADINGS for node in button.iterancestors())
        ):
            button.tag = "h3" if button.getparent() is not None and _text_size(following) else "button"
            shown = shown or button.tag == "h3"
    for field in list(body.iter("input")):
        value = (field.get("value") or "").strip()
        fixed = field.get("readonly") is not None or field.get("disabled") is not None
        if fixed and value and len(value) <= 200 and (field.get("type") or "text").lower() == "text":
            field.tag, field.text, shown = "span", value, True
    return shown


def _unstack_scripts(body: Element) -> bool:
    """``PO<span><sup>3−</sup><br><sub>4</sub></span>`` as PO₄³⁻: the break only stacks the two."""
    moved = False
    for element in list(body.iter("span")):
        if _is_stack(element):
            element[0].tag, element[1].tag = "sup", "sub"
            element.insert(0, element[1])
            moved = True
    for element in list(body.iter("br")):
        parent = element.getparent()
        if parent is None or parent.tag != "span" or not 2 <= len(parent) <= 3 or all_text(parent).isspace():
            continue
        if {child.tag for child in parent} - {"sup", "sub", "br"} or any(child.tail for child in parent):
            continue
        if parent.text and parent.text.strip():
            continue
        parent.remove(element)
        moved = True
        lower, upper = parent.find("sub"), parent.find("sup")
        if lower is not None and upper is not None:
            parent.insert(0, lower)
    return moved


def _is_stack(element: Element) -> bool:
    """A charge over a number behind a symbol, marked by style alone: ``NH<span><span>+</span><span>4</span></span>``."""
    if (
        len(element) != 2
        or element.text
        or any(len(child) or child.tail or child.tag != "span" for child in element)
    ):
        return False
    upper, lower = element[0].text or "", element[1].text or ""
    if not (_CHARGE.match(upper) and lower.isascii() and lower.isdigit()):
        return False
    previous, parent = element.getprevious(), element.getparent()
    before = (previous.tail if previous is not None else parent.text if parent is not None else "") or ""
    return before[-1:].isalpha() or before.endswith((")", "]"))


def _space_before(element: Element) -> None:
    """The gap that a margin shows: ``2.030<span style="margin-left:.25em">g</span>``."""
    previous = element.getprevious()
    parent = element.getparent()
    if previous is not None:
        if not (previous.tail or " ")[-1:].isspace() or (not previous.tail and all_text(previous)):
            previous.tail = (previous.tail or "") + " "
    elif parent is not None and parent.text and not parent.text[-1].isspace():
        parent.text += " "


def _is_pair(row: Element) -> bool:
    """Two short block children (or labelled spans) and nothing else: a label and its value."""
    if len(row) != 2 or size(row.text) or size(row[0].tail) or size(row[1].tail):
        return False
    label, value = row
    both_blocks = label.tag in {"div", "p"} and value.tag in {"div", "p"}
    if not (both_blocks or _named_pair(row)):
        return False
    if (
        any(not _DEAD.match(link.get("href") or "#") for link in label.iter("a"))
        or next(row.iter("table", "img", "ul", "ol", "dl", *HEADINGS), None) is not None
    ):
        return _named_pair(row) and next(label.iter("table", "ul", *HEADINGS), None) is None
    return 0 < _text_size(label) <= _LABEL and _text_size(value) > 0 and not _has_blocks(label)


def _named_pair(row: Element) -> bool:
    if len(row) != 2:
        return False
    label, value = (words.words(child.get("class") or "") for child in row)
    return (
        any(name in words.LABEL_WORDS for name in label)
        and any(name in words.VALUE_WORDS for name in value)
        and 0 < _text_size(row[0]) <= _LABEL
        and row[0].tag not in HEADINGS
        and row[0].tag in {"div", "span", "p", "label", "strong", "b", "dt"}
    )


def _to_definition(row: Element) -> None:
    if row.tag == "li":  # a list item keeps its place in the list
        row.tag = "div"
    if row.tag == "p":
        row.tag = "div"
    row[0].tag, row[1].tag = "dt", "dd"
    row.tag = "dl"


def _is_caption(element: Element) -> bool:
    """What a picture shows, said by class alone: written as what it is, so that it is known later."""
    if words.CAPTIONS.isdisjoint(words.words(element.get("class", ""))):
        return False
    return next(element.iter("img", "table", *HEADINGS), None) is None


def _separate(one: Element, other: Element) -> bool:
    if one.tag == "a" and other.tag == "a":
        return not (_SYMBOL.match(all_text(one)) and _SYMBOL.match(all_text(other)))  # H₃PO₄, each linked
    if one.tag not in {"span", "label"} or other.tag not in {"span", "label"}:
        return False
    return bool(one.get("class") and other.get("class") and one.get("class") != other.get("class"))


def _has_blocks(element: Element) -> bool:
    return any(node.tag in BLOCKS for node in element.iter("*") if node is not element)


def _text_size(element: Element) -> int:
    return size(all_text(element))

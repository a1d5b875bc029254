"""Lines within a table cell: which breaks of a page's layout part what is said, and which only wrap it.

"苯<br>安息油" are two names, "Flash<br>point" and "must<br>not be heated" one phrase. A
break parts where both sides can stand alone; it wraps where it splits a quantity, a
bracket or a sentence, and where it is open which of the two it does: "不得用水<br>灭火" cut
in two would say the contrary. What names a row or a column stays on one line.
"""

from __future__ import annotations

import re

from corpus.cleaning import vocabulary as words
from corpus.cleaning.scripts import collapse
from corpus.cleaning.tables import GridRow
from corpus.fidelity import negations

_GOES_ON = re.compile(r"[,，、;；:：(（\[［/=<>≤≥~～±×·+\-−–]$")
_CONTINUES = re.compile(
    r"[)）\]］,，、;；:：.。°%‰℃℉/]|[(（](?!\s?(?:\d{1,2}|[a-zA-Z]|[一二三四五六七八九十]{1,3})\s?[)）])"
)
_UNFINISHED = re.compile(
    r"(?:\w\W+(?:may|might|can|do|does|is|are|be|been|of|the|an?|and|or|nor|with|to|in|on|for|from|by|at|if|when"
    r"|as|that|which|very|slightly|up)|\b(?:than|about|approximately|below|above|under|over|least|most|exceeds?"
    r"|minimum|maximum))$",
    re.IGNORECASE,
)
_UNFINISHED_ZH = re.compile(
    r"(?:[不未勿应應须須将將被和与與或及的在于於对對为為至约約达達]|超过|超過|至少|至多|最[大小高低]|以?及)$"
)
_FURTHER = re.compile(
    r"(?:and|or|nor|of|with|without|but|not|than|at|in|on|to|for|by|from|as|is|are|be)\s|[和与與或及的且]"
)
_ORDERS = re.compile(
    r"\b(?:must|shall|should|keep|avoid|only|away|store|prevent)\b|应|應|须|須|必|仅|僅|只|防|忌|避|远离|遠離",
    re.IGNORECASE,
)
_NO_DENIAL = re.compile(r"[无無](?:水|色|味|机|機|臭)")  # "无水乙醇" denies nothing of what follows
_CLAUSE = re.compile(r"[。．.;；,，!?！？:：|]")
_SENTENCE = re.compile(r"[。.!！?？…][”’」]?$")  # parts what it ends by itself
_CLOSED = re.compile(r"[)）\]］]$")
_OPENS = re.compile(
    r"[-*+•·●○■◆▪]|[(（]?\w{1,3}[.)、．）]|[A-Z]{1,4}[\s-]?\d|[A-Z][a-z]|[^\s:：]{1,24}(?:\s[^\s:：]{1,16}){0,2}\s?[:：]"
)
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WIDE = 40  # columns (a Han character has two) from which on a line may be broken for its length
_NEAR = 24  # characters on either side of a break in which a quantity may stand
_STACK = 3  # columns that are broken alike: rows within the row


def on_a_line(text: str) -> str:
    """The lines of a text as one."""
    return collapse(text.replace("\n", " ")) if "\n" in text else text


def unwrapped(text: str) -> str:
    """Lines of a cell, each with its blanks collapsed; those that may be one phrase are joined."""
    lines: list[str] = []
    for line in map(collapse, text.split("\n")):
        if not line:
            continue
        glue = _glue(lines[-1], line) if lines else None
        if glue is None:
            lines.append(line)
        else:
            lines[-1] += glue + line
    return "\n".join(lines)


def _glue(before: str, after: str) -> str | None:
    """What joins two lines that may be one phrase, ``None`` where they are two."""
    if _UNFINISHED_ZH.search(before):
        return "" if _HAN.match(after) else " "
    if _GOES_ON.search(before) or _CONTINUES.match(after) or _is_quantity(before, after):
        return " "
    if _FURTHER.match(after) or (_UNFINISHED.search(before) and not after[0].isupper()):
        return " "
    if _SENTENCE.search(before):
        return " "
    if _CLOSED.search(before):
        return None
    clause = _NO_DENIAL.sub("", _CLAUSE.split(before)[-1])
    if negations(clause) or _ORDERS.search(clause):
        return " "
    wide = len(before) + len(_HAN.findall(before)) >= _WIDE
    return " " if wide and not _OPENS.match(after) else None


def _is_quantity(before: str, after: str) -> bool:
    """Whether a number and its unit stand on either side of a break."""
    if not before[-1].isdigit():
        return False
    left = before[-_NEAR:]
    joined = f"{left} {after[:_NEAR]}"
    return any(match.start() < len(left) < match.end() - 1 for match in words.QUANTITY.finditer(joined))


def settled_lines(row: GridRow, mark: str) -> tuple[str, ...]:
    """Cells of a row on a line each: lines that part values by ``mark``, names of columns and of the row by blanks.

    Where all columns are broken alike, the row holds rows: then its first cell has lines as well.
    """
    cells = row.cells
    if not any("\n" in cell for cell in cells):
        return cells
    if row.header:
        return tuple(map(on_a_line, cells))
    alike = len({cell.count("\n") for cell in cells if cell}) == 1 and sum(map(bool, cells)) >= _STACK
    first = cells[0] if alike or not any(cells[1:]) else on_a_line(cells[0])
    return tuple(cell.replace("\n", mark) for cell in (first, *cells[1:]))

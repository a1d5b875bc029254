"""Tables with more than one value a row: a property under several circumstances, several substances compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from corpus.names import find_cas, normalise_name
from corpus.quantities import Quantity, is_no_data, parse_quantities
from kg.extraction.context import Context
from kg.extraction.model import Cell, Draft, Grid
from kg.extraction.owner import foreign, name_like
from kg.extraction.remarks import remarks_of_other
from kg.extraction.tables import row_cas, row_name
from kg.extraction.values import (
    default_unit,
    label_circumstances,
    limits_of,
    measurement_draft,
    quantities_of,
    refined_property,
)
from kg.extraction.vocabulary import field_of
from kg.schema import PROPERTIES, AliasKind, NodeLabel, Property, Relation, alias_key

_PLAIN = re.compile(
    r"^(?:纯品|纯物质|pure(?: substance)?|数值|数据|值|内容|结果|指标值?|参数值?|典型值|实测值|测定值|特性值|values?|results?|data|typical values?|information)$",
    re.IGNORECASE,
)
_UNIT = re.compile(r"^(?:单位|计量单位|units?)$", re.IGNORECASE)
_NOTE = re.compile(
    r"^(?:备注|条件|测试条件|试验条件|说明|remarks?|notes?|(?:test )?conditions?)$", re.IGNORECASE
)
# circumstances in words; any other header may name another substance or grade, whose values are not the subject's
_FORM = re.compile(
    r"溶液|水溶液|无水|液[态体相]|固[态体相]|气[态体相]|\b(?:solutions?|anhydrous|liquid|solid|gas|vapou?r|aqueous)\b",
    re.IGNORECASE,
)


def property_tables(ctx: Context) -> list[Draft]:
    """HAS_MEASUREMENT from tables with a property a row: each value with the circumstance its column names.

    A column whose header is neither a circumstance, nor a plain word for "value",
    nor the subject's own name is left out: it may be about something else.
    """
    drafts: list[Draft] = []
    for grid in ctx.reading.grids:
        if grid.kind != "properties":
            continue
        for at, header in enumerate(grid.header):
            conditions = _circumstance(ctx, header)
            if at and conditions is not None:
                drafts += _column(ctx, grid, at, conditions)
    return drafts


def _column(ctx: Context, grid: Grid, at: int, conditions: Mapping[str, str]) -> list[Draft]:
    """The values of one column of a table with a property a row, with the row's unit and remark."""
    unit_at, note_at = _index(ctx, grid, _UNIT), _index(ctx, grid, _NOTE)
    drafts: list[Draft] = []
    for row in grid.rows:
        said = _note(ctx, row, note_at)
        if at not in {unit_at, note_at} and not remarks_of_other(ctx, said.get("note", "")):
            drafts += _values(
                ctx, grid, row, at, {**conditions, **said}, None if unit_at is None else row[unit_at]
            )
    return drafts


def _index(ctx: Context, grid: Grid, pattern: re.Pattern[str]) -> int | None:
    words = [ctx.shadow(cell.start, cell.end).strip() for cell in grid.header]
    return next((at for at, word in enumerate(words) if pattern.match(word)), None)


def _note(ctx: Context, row: tuple[Cell, ...], at: int | None) -> dict[str, str]:
    words = "" if at is None else ctx.text(row[at].start, row[at].end).strip()
    return {} if not words or is_no_data(words) else {"note": words}


def _circumstance(ctx: Context, header: Cell) -> dict[str, str] | None:
    """What a column's header says its values hold for: {} for any, None where nobody knows."""
    words = ctx.shadow(header.start, header.end).strip()
    shown = ctx.text(header.start, header.end).strip()
    if _PLAIN.match(words) or (words and not ctx.about_other(words)):
        return {}
    for kind, dimension in (("temperature", "kelvin"), ("pressure", "pascal"), ("concentration", "percent")):
        found = parse_quantities(words, dimension=dimension)
        if (
            len(found) == 1
            and found[0].minimum == found[0].maximum
            and not words[: found[0].start].strip(" (")
        ):
            rest = words[found[0].end :].strip(" )")
            if not rest:
                whole = kind == "concentration" and ctx.subject.mixture and found[0].minimum == 100
                return None if whole else {kind: shown}
    if not _FORM.search(words) or len(words) > 40:
        return None
    pure = re.search(r"无水|\banhydrous\b", words, re.IGNORECASE)
    rest = re.sub(r"\d+(?:\.\d+)?\s?%|\s+", " ", _FORM.sub(" ", words)).strip(" ()的")
    other = bool(rest) and name_like(rest) and ctx.about_other(rest)
    # "无水氟化氢" on the sheet of its solution is another thing, and so is "liquid nitrogen" on anything else's
    return None if other or (pure and ctx.subject.mixture) else {"form": shown}


def _values(
    ctx: Context, grid: Grid, row: tuple[Cell, ...], at: int, conditions: Mapping[str, str], unit: Cell | None
) -> list[Draft]:
    label, cell = row[0], row[at]
    known = field_of(ctx.shadow(label.start, label.end))
    if known is None or known[1].family != "measurement" or cell.end <= cell.start:
        return []
    beside = [row[-1].end] if "note" in conditions else [unit.end] if unit else []
    span = (label.start, max(cell.end, *beside, 0))
    words = ctx.shadow(cell.start, cell.end)
    if is_no_data(words):
        return []
    named = ctx.shadow(label.start, label.end)
    told = label_circumstances(ctx, _property_of(known[1].name), named)
    if told is None or any(
        _bare(told[name]) != _bare(conditions[name]) for name in told.keys() & conditions.keys()
    ):
        return []  # not understood, or "密度（20 ℃）" in a column "25 ℃"
    given = ctx.shadow(unit.start, unit.end).strip() if unit else ""
    made = _cell(ctx, known[1].name, named, cell, span, grid.sds, given or default_unit(named))
    header = grid.header[at]
    return [
        replace(
            draft,
            value=_with(draft.value, {**told, **conditions}),
            header_span=(header.start, header.end),
        )
        for draft in made
        if not (
            {"temperature"} & conditions.keys()
            and PROPERTIES[Property(draft.properties["property"])].dimension == "kelvin"
        )
    ]


def _bare(words: str) -> str:
    return re.sub(r"\s+", "", words).replace("℃", "°C")


def _property_of(name: str) -> Property:
    return Property.LOWER_EXPLOSIVE_LIMIT if name == "explosive_limits" else Property(name)


def _with(value: Mapping[str, object], conditions: Mapping[str, str]) -> dict[str, object]:
    known = value.get("conditions")
    both = {**conditions, **(known if isinstance(known, Mapping) else {})}
    return {**value, "conditions": both} if both else dict(value)


def _cell(
    ctx: Context, name: str, label: str, cell: Cell, span: tuple[int, int], sds: int | None, unit: str
) -> list[Draft]:
    """The measurements of one cell; nothing where it holds more than one value."""
    words = ctx.shadow(cell.start, cell.end)
    if name == "explosive_limits":
        found = parse_quantities(words, dimension="percent", default_unit=unit)
        both = len(found) == 1 and found[0].minimum != found[0].maximum
        both = both and None not in {found[0].minimum, found[0].maximum}
        return limits_of(ctx, found[0], cell.start, span, sds) if both else []
    prop = refined_property(label + " " + words, Property(name))
    if PROPERTIES[prop].textual:
        return [
            ctx.draft(
                Relation.HAS_MEASUREMENT, ctx.text(cell.start, cell.end), NodeLabel.MEASUREMENT, span,
                properties={"property": prop.value}, value={"text": ctx.text(cell.start, cell.end).strip(" 。.")}, section=sds,
            )
        ]  # fmt: skip
    if prop is Property.SOLUBILITY_IN_WATER and not re.search(r"水|water", label, re.IGNORECASE):
        return []
    quantities: list[Quantity] = quantities_of(words, prop, unit)
    if len(quantities) != 1:
        return []
    one = quantities[0]
    if foreign(ctx, words, one.start, one.end, solvent=prop is Property.SOLUBILITY_IN_WATER):
        return []
    return [measurement_draft(ctx, prop, one, cell.start + one.start, cell.start + one.end, span, sds)]


def compared_substances(ctx: Context) -> list[Draft]:
    """HAS_MEASUREMENT from tables that compare substances: a substance a row, or a substance a column."""
    drafts: list[Draft] = []
    for grid in ctx.reading.grids:
        if grid.kind == "substances":
            drafts += _rows_of_substances(ctx, grid)
        elif grid.kind == "properties":
            drafts += _columns_of_substances(ctx, grid)
    return drafts


def _rows_of_substances(ctx: Context, grid: Grid) -> list[Draft]:
    drafts: list[Draft] = []
    labels = [field_of(ctx.shadow(cell.start, cell.end)) for cell in grid.header]
    measured = {at for at, known in enumerate(labels) if known and known[1].family == "measurement"}
    cas_at = next((at for at, known in enumerate(labels) if known and known[1].name == "cas"), None)
    name_at = next((at for at in range(len(labels)) if at not in measured and at != cas_at), None)
    names = [row_name(ctx, row[name_at]) if name_at is not None else None for row in grid.rows]
    for row, name in zip(grid.rows, _own_names(names), strict=True):
        if name is None:
            continue
        if cas_at is not None:
            drafts += row_cas(ctx, grid, {"cas": cas_at}, row, name)
        for at in sorted(measured):
            drafts += _compared(ctx, grid, row, at, name if ctx.about_other(name) else "")
    return drafts


def _own_names(names: Sequence[tuple[str, str] | None]) -> list[str | None]:
    """The names of rows or columns; None for several things, one named twice, or a form that a remark names."""
    shown = [normalise_name(name[0]) for name in names if name]
    return [
        None if name is None or name[1] or shown.count(normalise_name(name[0])) > 1 else name[0]
        for name in names
    ]


def _columns_of_substances(ctx: Context, grid: Grid) -> list[Draft]:
    """The columns that name other substances; the subject's own is read by ``property_tables``.

    A header counts as a substance by its form, or where a row gives the column its own CAS number:
    "样品A" and "Grade B" are none.
    """
    rows = {
        known[1].name: row for row in grid.rows if (known := field_of(ctx.shadow(row[0].start, row[0].end)))
    }
    heads = [*grid.header]
    if "name" in rows and any(find_cas(ctx.shadow(cell.start, cell.end)) for cell in heads[1:]):
        heads = [*rows["name"]]
    cas_row = rows.get("cas")
    numbers = [find_cas(ctx.shadow(cell.start, cell.end)) for cell in cas_row or ()]
    names = _own_names([row_name(ctx, cell) for cell in heads])
    drafts: list[Draft] = []
    for at, name in enumerate(names):
        numbered = at < len(numbers) and len(numbers[at]) == 1 and numbers.count(numbers[at]) == 1
        if not at or name is None or _circumstance(ctx, heads[at]) is not None or not ctx.about_other(name):
            continue
        if not (name_like(name) or numbered) or _SHARED.search(name):
            continue
        head = (heads[at].start, heads[at].end)
        made = [replace(draft, subject=name, header_span=head) for draft in _column(ctx, grid, at, {})]
        if made and numbered and cas_row is not None:
            span = (cas_row[0].start, cas_row[at].end)
            made += [
                ctx.draft(
                    Relation.HAS_ALIAS, numbers[at][0], NodeLabel.ALIAS, span, key=alias_key(numbers[at][0], AliasKind.CAS),
                    properties={"kind": AliasKind.CAS.value}, section=grid.sds, subject=name,
                )
            ]  # fmt: skip
        drafts += made
    return drafts


# of several substances, or of one in another: no value of the one that is named
_SHARED = re.compile(
    r"\d\s?%|溶液|混合|[+＋/&]|\b(?:solutions?|aqueous|mixtures?|azeotrope|in water)\b", re.IGNORECASE
)


def _compared(ctx: Context, grid: Grid, row: tuple[Cell, ...], at: int, subject: str) -> list[Draft]:
    header, cell = grid.header[at], row[at]
    label = ctx.shadow(header.start, header.end)
    known = field_of(label)
    if known is None or cell.end <= cell.start or is_no_data(ctx.shadow(cell.start, cell.end)):
        return []
    span = (row[0].start if row[0].end > row[0].start else row[1].start, cell.end)
    told = label_circumstances(ctx, _property_of(known[1].name), label)
    if told is None:
        return []
    made = _cell(ctx, known[1].name, label, cell, span, grid.sds, default_unit(label))
    return [
        replace(
            draft,
            subject=subject,
            value=_with(draft.value, told),
            header_span=(header.start, header.end),
        )
        for draft in made
    ]

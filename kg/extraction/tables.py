"""Tables with columns: components of a mixture, exposure limits, and lists of many substances."""

from __future__ import annotations

import re
from dataclasses import replace

from corpus.names import find_cas
from corpus.quantities import Quantity, is_no_data, parse_quantities
from kg.extraction.context import Context
from kg.extraction.limits import body_named, concentration, limit_draft, limit_kind, whole_kind
from kg.extraction.model import Cell, Draft, Grid
from kg.extraction.owner import name_like
from kg.schema import (
    AliasKind,
    DropReason,
    NodeLabel,
    Relation,
    alias_key,
    regulation_key,
    transport_key,
)

_COLUMNS: tuple[tuple[str, str], ...] = (
    ("cas", r"cas"),
    ("share", r"含量|浓度|质量分数|concentration|wt|^%|content"),
    ("threshold", r"临界量|threshold"),
    ("kind", r"^类型$|^type$|限值(?:的)?(?:类型|种类)|^(?:limit|exposure limit) type$|^type of limit$"),
    ("value", r"^数值$|^value$|限值"),
    ("note", r"备注|note|remark"),
    ("source", r"来源|国家|^source$|标准"),
    ("un", r"\(4\)\s*id|un\s?(?:no|number|号|编号)|identification number|联合国编号"),
    ("class", r"\(3\)\s*class|hazard class|^类别$|类别或项别|class or division"),
    ("group", r"\(5\)\s*pg|packing group|包装|^pg$"),
    (
        "name",
        r"组分|组成|成分|名称|化学名|中文名|^化学品$|component|substance|ingredient|^name$|chemical name|description|proper shipping",
    ),
)
_NUMERIC = re.compile(r"^[\d.,]+$")


def _columns(ctx: Context, grid: Grid) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, cell in enumerate(grid.header):
        words = ctx.shadow(cell.start, cell.end).lower().strip()
        for name, pattern in _COLUMNS:
            if name not in found and words and re.search(pattern, words):
                found[name] = index
                break
    return found


def _at(row: tuple[Cell, ...], index: int | None) -> Cell | None:
    if index is None or index >= len(row):
        return None
    cell = row[index]
    return cell if cell.end > cell.start else None


def _span(row: tuple[Cell, ...]) -> tuple[int, int]:
    full = [cell for cell in row if cell.end > cell.start]
    return full[0].start, full[-1].end


def components(ctx: Context) -> list[Draft]:
    """HAS_COMPONENT of a mixture: name, CAS number and share of each row."""
    drafts: list[Draft] = []
    if not ctx.subject.mixture:
        return drafts
    for grid in ctx.reading.grids:
        columns = _columns(ctx, grid)
        if "name" not in columns or not ({"cas", "share"} & columns.keys()) or "threshold" in columns:
            continue
        for row in grid.rows:
            draft = _component(ctx, grid, columns, row)
            if draft:
                drafts.append(draft)
    return drafts


_FLAT_ROW = re.compile(
    r"(?P<name>[^;；:：|\n]{1,30})\s*[:：|]\s*(?P<cas>\d{2,7}-\d{2}-\d)\s*[:：|]\s*(?P<share>[^;；|\n]{0,20}%)"
)


def flat_components(ctx: Context) -> list[Draft]:
    """HAS_COMPONENT of a table that was flattened into a line ("甲醛: 50-00-0: 37%")."""
    if not ctx.subject.mixture:
        return []
    drafts: list[Draft] = []
    grids = [
        _span(row) for grid in ctx.reading.grids for row in grid.rows if any(c.end > c.start for c in row)
    ]
    for match in _FLAT_ROW.finditer(ctx.reading.shadow):
        if any(a <= match.start("cas") < b for a, b in grids):
            continue
        cells = {name: ctx.trim(match.start(name), match.end(name)) for name in ("name", "cas", "share")}
        name, cas, share = cells["name"], cells["cas"], cells["share"]
        if name and cas and share:
            row = (Cell(*name), Cell(*cas), Cell(*share))
            draft = _component(ctx, Grid((), (row,), 3), {"name": 0, "cas": 1, "share": 2}, row)
            drafts += [draft] if draft else []
    return drafts


def _component(ctx: Context, grid: Grid, columns: dict[str, int], row: tuple[Cell, ...]) -> Draft | None:
    name = _at(row, columns["name"])
    if name is None:
        return None
    words = ctx.text(name.start, name.end)
    remark = re.search(r"\s*[(（]([^()（）]+)[)）]$", words)
    number = _at(row, columns.get("cas"))
    cas = find_cas(ctx.shadow(number.start, number.end)) if number else []
    share = _at(row, columns.get("share"))
    head = grid.header[columns["share"]] if grid.header and "share" in columns else None
    value = _share(ctx, share, ctx.shadow(head.start, head.end) if head else "")
    properties = {"cas": cas[0]} if len(cas) == 1 else {}
    missing = DropReason.MISSING_VALUE if not cas and value is None else None
    draft = ctx.draft(
        Relation.HAS_COMPONENT, words[: remark.start()] if remark else words, NodeLabel.SUBSTANCE, _span(row),
        properties=properties, value=value.as_value() if value else {}, section=grid.sds,
        conditions={"note": remark[1]} if remark else {}, rejected=missing,
    )  # fmt: skip
    return replace(draft, header_span=(head.start, head.end)) if head and value else draft


def _share(ctx: Context, cell: Cell | None, header: str) -> Quantity | None:
    if cell is None:
        return None
    unit = re.search(r"%|ppm", header)
    found = parse_quantities(
        ctx.shadow(cell.start, cell.end), dimension="percent", default_unit=unit[0] if unit else ""
    )
    return found[0] if len(found) == 1 else None


def limit_tables(ctx: Context) -> list[Draft]:
    """HAS_LIMIT from tables with a column for the kind of limit."""
    drafts: list[Draft] = []
    for grid in ctx.reading.grids:
        columns = _columns(ctx, grid)
        if not {"kind", "value"} <= columns.keys():
            continue
        for row in grid.rows:
            drafts += _limit_row(ctx, grid, columns, row)
    return drafts


def _limit_row(ctx: Context, grid: Grid, columns: dict[str, int], row: tuple[Cell, ...]) -> list[Draft]:
    """Cells are found by what they hold: spans that were not expanded shift a row."""
    kind = value = None
    head = grid.header[columns["value"]]
    unit = re.search(r"mg/m(?:3|³)|ppm", ctx.shadow(head.start, head.end))
    for cell in row:
        words = ctx.shadow(cell.start, cell.end).strip()
        if _LIMIT_KIND.fullmatch(words):
            kind = words
        elif kind and value is None and not is_no_data(words):
            alone = unit[0] if unit and re.fullmatch(r"[<≤]?\s?\d+(?:\.\d+)?", words) else ""
            value = concentration(words, alone) and cell
    if kind is None or value is None:
        return []
    shown_value = ctx.shadow(value.start, value.end)
    quantity = concentration(shown_value) or concentration(shown_value, unit[0] if unit else "")
    if quantity is None:
        return []
    beside = " ".join(ctx.shadow(c.start, c.end) for c in row if c.end <= value.start and c.end > c.start)
    kind = whole_kind(kind, beside.replace(kind, " "))
    source = body_named(beside)
    if not kind:
        return []
    named = _at(row, _columns(ctx, grid).get("name"))
    of = row_name(ctx, named) if named else None
    if named and of is None:
        return []  # of several things at once
    name, jurisdiction = limit_kind(kind, source, chinese=ctx.reading.language == "zh")
    shown = quantity.as_value()
    note = next((c for c in row if c.start > value.end and c.end > c.start), None)
    if note and not is_no_data(ctx.shadow(note.start, note.end)):
        shown["conditions"] = {**shown.get("conditions", {}), "note": ctx.text(note.start, note.end)}
    draft = limit_draft(
        ctx, name, jurisdiction, shown, _span(row), grid.sds, ctx.text(value.start, value.end)
    )
    if unit:
        draft = replace(draft, header_span=(head.start, head.end))
    other = of is not None and ctx.about_other(of[0])  # a component's limit is not the mixture's
    return [replace(draft, subject=of[0]) if of and other else draft]


_LIMIT_KIND = re.compile(
    r"PC-TWA|PC-STEL|MAC|(?:TLV|PEL|REL)-(?:TWA|STEL|C)|TWA|STEL|ST|C|CEILING|Ceiling|IDLH|PEL|REL|TLV"
)


# --- lists of many substances ----------------------------------------------------------------

_NAME_SPLIT = re.compile(r"[，,]")


def many_substances(ctx: Context) -> list[Draft]:
    """Each row its own substance: thresholds of major-hazard lists, transport tables.

    A row that names several things, a family or "n.o.s." is left out: its value
    belongs to none of them alone.
    """
    drafts: list[Draft] = []
    for grid in ctx.reading.grids:
        columns = _columns(ctx, grid)
        if "name" in columns:
            drafts += _limits_by_column(ctx, grid, columns)
        if "name" in columns and "threshold" in columns:
            drafts += _thresholds(ctx, grid, columns)
        elif {"name", "un", "class"} <= columns.keys():
            drafts += _hazmat(ctx, grid, columns)
    return drafts


_KIND_HEAD = re.compile(
    r"^(?:(?P<body>OSHA|NIOSH|ACGIH|中国|GBZ ?2\.1)\s*)?(?P<kind>MAC|PC-TWA|PC-STEL|(?:TLV|PEL|REL)(?:-(?:TWA|STEL|C))?|IDLH)"
    r"(?:\s*[(/,，]\s*(?P<unit>mg/m(?:3|³)|ppm)\s*\)?)?$"
)
_ALONE = re.compile(r"[<≤]?\s?\d+(?:\.\d+)?(?P<unit>\s?(?:ppm|mg/m(?:3|³)))?")


def _limits_by_column(ctx: Context, grid: Grid, columns: dict[str, int]) -> list[Draft]:
    """HAS_LIMIT from tables with a substance a row and a kind of limit a column ("PC-TWA (mg/m³)")."""
    heads = [_KIND_HEAD.match(ctx.shadow(cell.start, cell.end).strip()) for cell in grid.header]
    drafts: list[Draft] = []
    for row in grid.rows if any(heads) else ():
        named = row_name(ctx, _at(row, columns["name"]))
        if named is None:
            continue
        note = _at(row, columns.get("note"))
        remarks = [named[1], ctx.text(note.start, note.end).strip() if note else ""]
        said = "; ".join(text for text in remarks if text and not is_no_data(text))
        made = [
            draft
            for at, head in enumerate(heads)
            if head and (draft := _column_limit(ctx, grid, row, at, head, named[0], said))
        ]
        drafts += made + (row_cas(ctx, grid, columns, row, named[0]) if made else [])
    return drafts


def _column_limit(
    ctx: Context, grid: Grid, row: tuple[Cell, ...], at: int, head: re.Match[str], name: str, note: str
) -> Draft | None:
    cell, header = _at(row, at), grid.header[at]
    words = ctx.shadow(cell.start, cell.end).strip() if cell else ""
    alone = _ALONE.fullmatch(words)
    if cell is None or alone is None or bool(head["unit"]) == bool(alone["unit"]):
        return None
    found = parse_quantities(words, default_unit=head["unit"] or "")
    kind, whose = limit_kind(head["kind"], head["body"] or "")
    if len(found) != 1 or (kind == "MAC" and ctx.reading.language != "zh"):
        return None  # MAC is China's on Chinese pages alone
    value = found[0].as_value() | ({"conditions": {"note": note}} if note else {})
    draft = limit_draft(ctx, kind, whose, value, _span(row), grid.sds, ctx.text(cell.start, cell.end))
    own = not ctx.about_other(name)
    return replace(draft, subject="" if own else name, header_span=(header.start, header.end))


def row_name(ctx: Context, cell: Cell | None) -> tuple[str, str] | None:
    """Name and remark of a row, None where it names several things or a family."""
    if cell is None:
        return None
    words = ctx.text(cell.start, cell.end)
    plain = ctx.shadow(cell.start, cell.end)
    remark = re.search(r"\s*\(([^()]+)\)\s*$", plain)
    name = words[: remark.start()] if remark else words
    shown = plain[: remark.start()] if remark else plain
    if (
        not shown
        or len(shown) > 40
        or re.search(
            r"n\.o\.s|和|及|或|类$|、|(?<=[一-鿿])[,，]|\bor\b|\band\b|mixture|see |,\s*(?:n\.|solution)",
            shown,
        )
    ):
        return None
    if re.search(r"[;；]", shown) or _NUMERIC.match(shown) or names_nothing(shown):
        return None
    return name.strip(), words[remark.start(1) : remark.end(1)] if remark else ""


# first cells of rows that reckon with the rows above, repeat them or set an aim
_NO_SUBSTANCE = re.compile(
    r"(?:算术|加权|总)?(?:平均(?:值|数)?|均值)|中[位间](?:数|值)|差(?:值|异|额|别)?|偏差|(?:相对)?标准(?:偏)?差|标准偏差|误差|方差|合计|总计|小计|总和|总数|目标(?:值)?|限值|限量|限度|上限|下限|极限|范围|最[大小高低](?:值)?|指标|要求|标准|标准值|规定值|设定值|参考值|参考|对照(?:组|品)?|空白|同上|同前|上同|备注|注|说明|单位|检验方法|方法|结果|数值|数据|样品|比值|比例|其[他它]|未知|无"
    r"|(?:(?:arithmetic |weighted |overall )?(?:averages?|means?)|medians?|differences?|deltas?|[δΔ]\w*|deviations?|std\.?(?:\s*dev\w*\.?)?|standard (?:deviations?|errors?)|r?sd|s\.d\.|cv|variance|errors?|uncertainty|ranges?|totals?|sub-?totals?|sums?|targets?|limits?|upper limit|lower limit|minim(?:um|a)|maxim(?:um|a)|min\.?|max\.?"
    r"|goals?|aims?|references?|ref\.?|controls?|blanks?|specifications?|specs?\.?|requirements?|criteri(?:on|a)|ratios?|ditto|dto\.?|do\.?|same(?: as above)?|as above|see above|idem|id\.|notes?|remarks?|units?|(?:test )?methods?|results?|values?|data|samples?|others?|unknown|none|n/?a)(?:\s+(?:values?|data|levels?|figures?|points?|row|line))?",
    re.IGNORECASE,
)
_NOT_IT = re.compile(
    r"^(?:not|non|no|without|except|excluding|other than|unlike|compared (?:with|to)|versus|vs\.?|relative to|instead of|than)\b(?!-)|^(?:不是|并非|除|不含|与|比|相比|对比|相对于|参照)",
    re.IGNORECASE,
)


def names_nothing(words: str) -> bool:
    """Whether a row's first cell names no substance: a mean, a limit, a "ditto", a comparison, a blend by shares."""
    plain = words.strip(" .:：*")
    if not re.search(r"[A-Za-z一-鿿]", plain) or _NO_SUBSTANCE.fullmatch(plain):
        return True
    if _NOT_IT.match(plain) or re.search(r"\d\s*[:：/]\s*\d+\s*%?$", plain):
        return True
    return plain.startswith("非") and name_like(plain[1:])


def _regulation(ctx: Context) -> str:
    """The standard that a table belongs to, where the page names exactly one ("GB 18218")."""
    found = {
        re.sub(r"\s+", " ", m[0].upper()).replace("GB18218", "GB 18218")
        for m in re.finditer(r"GB\s?(?:/T)?\s?\d{4,5}(?:[-—–]\d{4})?", ctx.reading.shadow)
    }
    return found.pop() if len(found) == 1 else ""


def _thresholds(ctx: Context, grid: Grid, columns: dict[str, int]) -> list[Draft]:
    header = grid.header[columns["threshold"]]
    unit = re.search(r"[(/]\s*([^()/]+?)\s*\)?$", ctx.shadow(header.start, header.end).strip())
    written = {"t": "t", "T": "t", "吨": "t", "kg": "kg"}.get(unit[1].strip() if unit else "", "")
    title = _regulation(ctx) or grid.heading or ctx.reading.title
    drafts: list[Draft] = []
    if not written or not title:
        return drafts
    for row in grid.rows:
        named = row_name(ctx, _at(row, columns["name"]))
        cell = _at(row, columns["threshold"])
        if named is None or cell is None:
            continue
        found = parse_quantities(ctx.shadow(cell.start, cell.end).replace("。", "."), default_unit=written)
        if len(found) != 1:
            continue
        remark = _at(row, columns.get("note"))
        remarks = [named[1], ctx.text(remark.start, remark.end).strip() if remark else ""]
        said = "; ".join(text for text in remarks if text and not is_no_data(text))
        conditions = {"note": said} if said else {}
        value = found[0].as_value() | {"header_quote": ctx.text(header.start, header.end)}
        draft = ctx.draft(
            Relation.REGULATED_BY, title, NodeLabel.REGULATION, _span(row), key=regulation_key(title),
            properties={"name": title}, value=value, conditions=conditions, section=grid.sds, subject=named[0],
        )  # fmt: skip
        drafts.append(replace(draft, header_span=(header.start, header.end)))
        drafts += row_cas(ctx, grid, columns, row, named[0])
    return drafts


_SOLUTION = re.compile(r"\d\s?%|溶液|混合|\b(?:solutions?|aqueous|mixtures?)\b", re.IGNORECASE)


def row_cas(
    ctx: Context, grid: Grid, columns: dict[str, int], row: tuple[Cell, ...], name: str
) -> list[Draft]:
    """The one CAS number of a row, as an alias of the substance that the row names."""
    cell = _at(row, columns.get("cas"))
    numbers = find_cas(ctx.shadow(cell.start, cell.end)) if cell else []
    if len(numbers) != 1 or _SOLUTION.search(name):
        return []  # the number of "Ethanol 70%" is that of what is dissolved
    return [
        ctx.draft(
            Relation.HAS_ALIAS, numbers[0], NodeLabel.ALIAS, _span(row), key=alias_key(numbers[0], AliasKind.CAS),
            properties={"kind": AliasKind.CAS.value}, section=grid.sds, subject=name,
        )
    ]  # fmt: skip


_UN_HEAD = re.compile(r"联合国|\bUN\b|UN编?号", re.IGNORECASE)
_ROMAN = {"Ⅰ": "I", "Ⅱ": "II", "Ⅲ": "III"}


def _hazmat(ctx: Context, grid: Grid, columns: dict[str, int]) -> list[Draft]:
    drafts = []
    for row in grid.rows:
        named = row_name(ctx, _at(row, columns["name"]))
        cells = {name: _at(row, columns.get(name)) for name in ("un", "class", "group")}
        words = {name: ctx.shadow(c.start, c.end).strip() if c else "" for name, c in cells.items()}
        header = grid.header[columns["un"]]
        un = re.fullmatch(
            r"(?:UN\s?)?(\d{4})"
            if _UN_HEAD.search(ctx.shadow(header.start, header.end))
            else r"UN\s?(\d{4})",
            words["un"],
        )
        hazard = re.fullmatch(r"[1-9](?:\.[1-6][A-S]?)?", words["class"])
        if named is None or un is None or hazard is None:
            continue
        group = _ROMAN.get(words["group"], words["group"])
        group = group if group in {"I", "II", "III"} else ""
        last = max(c.end for c in cells.values() if c)
        drafts.append(
            ctx.draft(
                Relation.SHIPPED_AS, f"UN{un[1]}", NodeLabel.TRANSPORT_ENTRY, (_span(row)[0], last),
                key=transport_key(un[1], hazard[0], group), subject=named[0], section=grid.sds,
                properties={"un": un[1], "hazard_class": hazard[0], "packing_group": group},
                conditions={"note": named[1]} if named[1] else {},
            )
        )  # fmt: skip
    return drafts

"""Values with units: properties of matter, exposure limits, toxicity, shares of components."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from corpus.quantities import Quantity, parse_quantities, plain_width
from corpus.units import parse_unit
from kg.extraction.context import Context
from kg.extraction.model import Draft, Entry
from kg.schema import PROPERTIES, DropReason, NodeLabel, Property, Relation

# other units in which a property is given besides its own kind
_OTHER_UNITS: dict[Property, tuple[str, ...]] = {
    Property.VISCOSITY: ("m**2/s",),
    Property.HEAT_OF_COMBUSTION: ("J/kg",),
    Property.SOLUBILITY_IN_WATER: ("percent", "g/kg", "mol/L"),
    Property.ODOUR_THRESHOLD: ("kg/m**3",),
}
_RELATIVE_MASS = re.compile(r"分子量|分子质量|molecular (?:weight|mass)|formula weight", re.IGNORECASE)
_AIR = re.compile(r"空气|\bair\b", re.IGNORECASE)
_WATER = re.compile(r"水|water", re.IGNORECASE)
_TEXT_LIMIT = 200


def measurements(ctx: Context) -> list[Draft]:
    """HAS_MEASUREMENT from labelled values."""
    drafts: list[Draft] = []
    for entry, found in ctx.entries("measurement"):
        if ctx.no_data(entry):
            name = "lower_explosive_limit" if found.name == "explosive_limits" else found.name
            drafts.append(
                ctx.no_data_draft(Relation.HAS_MEASUREMENT, NodeLabel.MEASUREMENT, entry, property=name)
            )
        elif found.name == "explosive_limits":
            drafts += _explosive_limits(ctx, entry)
        else:
            drafts += _property(ctx, entry, _refined(ctx, entry, Property(found.name)))
    return drafts


def _refined(ctx: Context, entry: Entry, prop: Property) -> Property:
    """Densities are told apart by what they are relative to, not by their label alone."""
    around = entry.label_text + " " + ctx.shadow(entry.start, entry.end)
    if prop in {Property.RELATIVE_DENSITY, Property.DENSITY} and _AIR.search(around):
        return Property.VAPOUR_DENSITY
    if prop is Property.DENSITY and re.search(r"水\s*=\s*1|water\s*=\s*1", around, re.IGNORECASE):
        return Property.RELATIVE_DENSITY
    return prop


def default_unit(label: str) -> str:
    """The unit that a label's brackets or end give ("熔点（℃）", "爆炸下限 %(V/V)"), "" where none."""
    bracketed: list[str] = re.findall(r"[(\[【]([^()\[\]]+)[)\]】]", label)
    last: list[str] = re.findall(r"[\s,/]([^\s,]+)$", label)
    for text in (*bracketed, *last):
        if text.strip() and parse_unit(text.strip()):
            return text.strip()
    tail = re.search(r"[%‰℃]\s*(?:\([^()]*\))?\s*$", label)
    return tail[0].strip() if tail and parse_unit(tail[0].strip()) else ""


def _property(ctx: Context, entry: Entry, prop: Property) -> list[Draft]:
    spec = PROPERTIES[prop]
    words = ctx.shadow(entry.start, entry.end)
    if spec.textual:
        return _textual(ctx, entry, prop)
    if prop is Property.SOLUBILITY_IN_WATER and not _WATER.search(entry.label_text + words):
        return []
    unit = default_unit(entry.label_text)
    relative = prop is Property.MOLAR_MASS and _RELATIVE_MASS.search(entry.label_text)
    quantities = _quantities(words, prop, unit or ("g/mol" if relative else ""))
    if not quantities and prop is Property.DENSITY:
        return []  # without unit nobody knows what it is relative to
    if not quantities:
        if prop is Property.SOLUBILITY_IN_WATER and re.search(r"water|水", entry.label_text, re.IGNORECASE):
            return _textual(ctx, entry, prop)
        return _unread(ctx, entry, prop)
    return [_measured(ctx, entry, prop, quantity) for quantity in quantities[:6]]


def _quantities(words: str, prop: Property, unit: str) -> list[Quantity]:
    spec = PROPERTIES[prop]
    found: list[Quantity] = []
    for dimension in (spec.dimension, *_OTHER_UNITS.get(prop, ())):
        found += parse_quantities(words, dimension=dimension, default_unit=unit, bare=not spec.dimension)
        unit = ""  # numbers without unit are read once
    return sorted(found, key=lambda quantity: quantity.start)


def _unread(ctx: Context, entry: Entry, prop: Property) -> list[Draft]:
    if not re.search(r"\d", ctx.shadow(entry.start, entry.end)):
        return []
    reason = DropReason.BAD_QUANTITY
    unit = default_unit(entry.label_text)
    if unit or parse_quantities(ctx.shadow(entry.start, entry.end)):
        reason = DropReason.WRONG_DIMENSION
    return [
        ctx.draft(
            Relation.HAS_MEASUREMENT, ctx.text(entry.start, entry.end)[:_TEXT_LIMIT], NodeLabel.MEASUREMENT,
            (entry.label_start, entry.end), properties={"property": prop.value}, section=entry.sds, rejected=reason,
        )
    ]  # fmt: skip


def _textual(ctx: Context, entry: Entry, prop: Property) -> list[Draft]:
    words = ctx.text(entry.start, entry.end)
    if len(words) > _TEXT_LIMIT or "\n" in words.strip():
        return []
    return [
        ctx.draft(
            Relation.HAS_MEASUREMENT, words, NodeLabel.MEASUREMENT, (entry.label_start, entry.end),
            properties={"property": prop.value}, value={"text": words.strip(" 。.")}, section=entry.sds,
        )
    ]  # fmt: skip


def _measured(ctx: Context, entry: Entry, prop: Property, quantity: Quantity) -> Draft:
    start, end = entry.start + quantity.start, entry.start + quantity.end
    span = _evidence(ctx, entry, start, end)
    return measurement_draft(ctx, prop, quantity, start, end, span, entry.sds)


def measurement_draft(
    ctx: Context,
    prop: Property,
    quantity: Quantity,
    start: int,
    end: int,
    span: tuple[int, int],
    sds: int | None,
) -> Draft:
    """A measurement with its conditions; out of range values are marked rejected."""
    value = quantity.as_value()
    conditions = _meant(prop, quantity.conditions)
    value.pop("conditions", None)
    if conditions:
        value["conditions"] = conditions
    note = _note(ctx, end, span[1], quantity)
    if note:
        value["conditions"] = {**value.get("conditions", {}), "note": note}
    return ctx.draft(
        Relation.HAS_MEASUREMENT,
        ctx.text(start, end),
        NodeLabel.MEASUREMENT,
        span,
        properties={"property": prop.value},
        value=value,
        section=sds,
        rejected=_plausible(prop, quantity),
    )


def _meant(prop: Property, conditions: Mapping[str, str]) -> dict[str, str]:
    """Conditions in one spelling ("20℃" is "20 °C"). A temperature does not hold at a temperature:
    beside one stands the same value in other units, or another property."""
    found = dict(conditions)
    if PROPERTIES[prop].dimension == "kelvin":
        found.pop("temperature", None)
    elif "temperature" in found:
        found["temperature"] = re.sub(r"\s*(?:℃|°\s?C)", " °C", plain_width(found["temperature"]))
    return found


def _plausible(prop: Property, quantity: Quantity) -> DropReason | None:
    spec = PROPERTIES[prop]
    for value in (quantity.si_minimum, quantity.si_maximum):
        low = spec.low is not None and value is not None and value < spec.low
        if low or (spec.high is not None and value is not None and value > spec.high):
            return DropReason.OUT_OF_RANGE
    return None


def _evidence(ctx: Context, entry: Entry, start: int, end: int) -> tuple[int, int]:
    """From the label to the end of the segment for the first segment, else the segment alone."""
    segments = ctx.segments(entry.start, entry.end)
    for index, (left, right) in enumerate(segments):
        if left <= start < right:
            return (entry.label_start if index == 0 or right - entry.label_start <= 200 else left), max(
                right, end
            )
    return entry.label_start, end


_KNOWN_NOTE = re.compile(
    r"^[\s\d.,;%℃°CFKa-z/=~–—-]*$|闭|开|杯|cup|空气\s*=|水\s*=|air\s*=|water\s*=|大鼠|小鼠|兔|rat|mouse|rabbit|体积|v/v|^\s*at ",
    re.IGNORECASE,
)


def _note(ctx: Context, end: int, stop: int, quantity: Quantity) -> str:
    """A remark in brackets after the value that no condition covers ("水溶液", "含甲醇15%")."""
    match = re.match(r"\s*\(([^()]{1,60})\)", ctx.shadow(end, stop))
    if not match:
        return ""
    words = match[1].strip()
    parts = [p.strip() for p in re.split(r"[,，;、]", words)]
    left = [p for p in parts if p and not _covered(p, quantity)]
    return ctx.text(end + match.start(1), end + match.end(1)) if left else ""


def _covered(part: str, quantity: Quantity) -> bool:
    if any(part == shown or shown in part for shown in quantity.conditions.values()):
        return True
    if _KNOWN_NOTE.search(part):
        return not re.search(r"[一-鿿]{3,}", part) or bool(re.search(r"杯|[=]", part))
    return part.lower() in {"无水", "anhydrous", "分解", "decomposes", "升华", "sublimes", "v/v"}


def _explosive_limits(ctx: Context, entry: Entry) -> list[Draft]:
    words = ctx.shadow(entry.start, entry.end)
    quantities = parse_quantities(words, dimension="percent", default_unit=default_unit(entry.label_text))
    ranges = [
        q for q in quantities if q.minimum is not None and q.maximum is not None and q.minimum < q.maximum
    ]
    if len(ranges) != 1 or len(quantities) != 1:
        return _unread(ctx, entry, Property.LOWER_EXPLOSIVE_LIMIT)
    return limits_of(
        ctx,
        ranges[0],
        entry.start,
        _evidence(ctx, entry, entry.start + ranges[0].start, entry.end),
        entry.sds,
    )


def limits_of(
    ctx: Context, both: Quantity, offset: int, span: tuple[int, int], sds: int | None
) -> list[Draft]:
    """Lower and upper explosive limit of a range."""
    drafts = []
    ends: tuple[tuple[Property, float | None, float | None], ...] = (
        (Property.LOWER_EXPLOSIVE_LIMIT, both.minimum, both.si_minimum),
        (Property.UPPER_EXPLOSIVE_LIMIT, both.maximum, both.si_maximum),
    )
    for prop, value, si in ends:
        one = Quantity(
            both.operator,
            value,
            value,
            both.unit,
            si,
            si,
            both.si_unit,
            both.conditions,
            both.start,
            both.end,
        )
        drafts.append(measurement_draft(ctx, prop, one, offset + both.start, offset + both.end, span, sds))
    return drafts


# --- properties in running text -------------------------------------------------------

_PROSE: tuple[tuple[str, str], ...] = (
    ("melting_point", r"熔点|凝固点|melting point|freezing point"),
    ("boiling_point", r"沸点|boiling point"),
    ("flash_point", r"闪点|flash point"),
    ("autoignition_temperature", r"自燃温度|自燃点|引燃温度|auto-?ignition temperature|ignition temperature"),
    ("critical_temperature", r"临界温度|critical temperature"),
    ("critical_pressure", r"临界压力|critical pressure"),
    ("explosive_limits", r"爆炸极限|燃烧极限|explosive limits|flammable limits|explosive range"),
    ("lower_explosive_limit", r"爆炸下限|lower explosive limit"),
    ("upper_explosive_limit", r"爆炸上限|upper explosive limit"),
    ("vapour_pressure", r"饱和蒸[气汽]压|蒸[气汽]压|vapou?r pressure"),
    ("density", r"(?<!相对)(?<!蒸气)(?<!蒸汽)密度|(?<!relative )(?<!vapour )(?<!vapor )density"),
    ("relative_density", r"相对密度"),
    ("vapour_density", r"相对蒸[气汽]密度"),
    ("molar_mass", r"相对分子质量|摩尔质量|molar mass"),
    ("viscosity", r"[黏粘]度|viscosity"),
    ("heat_of_combustion", r"燃烧热|heat of combustion"),
    ("log_kow", r"(?:正?辛醇/水)分配系数(?:\s*\(?log\s?Kow\)?)?"),
    ("minimum_ignition_energy", r"最小点火能|minimum ignition energy"),
)
_LINK = (
    r"(?:\s*\([^()]{0,24}\))?\s*(?:约为|为|是|约|:|=|达|is about|is approximately|is|was|of(?: about)?)?\s*"
)
_PROSE_RE = re.compile(
    r"(?P<head>(?:[^,，;；。.、()\n]|(?<=\d)\.(?=\d)){0,24}?)(?P<prop>"
    + "|".join(f"(?P<{n}>{w})" for n, w in _PROSE)
    + ")"
    + _LINK
    + r"(?=[-–≤≥<>~约]?\s?\d)",
    re.IGNORECASE,
)
_PROSE_WORD = re.compile("|".join(words for _, words in _PROSE), re.IGNORECASE)


def prose_measurements(ctx: Context) -> list[Draft]:
    """ "氨的爆炸极限为15%~28%(V/V)，自燃温度为651 ℃": property, link word, value in one clause.

    The clause must be about the subject: where another name owns the property
    ("苯的闪点"), nothing is taken.
    """
    drafts: list[Draft] = []
    for sentence in ctx.reading.sentences:
        if sentence.label:
            continue
        words = ctx.shadow(sentence.start, sentence.end)
        if ctx.subject.mixture or not _PROSE_WORD.search(words):
            continue
        for match in _PROSE_RE.finditer(words):
            if not _about_subject(ctx, words, match):
                continue
            drafts += _prose_value(ctx, sentence.start, sentence.sds, words, match)
    return drafts


def _about_subject(ctx: Context, words: str, match: re.Match[str]) -> bool:
    head = match["head"].strip()
    owner = re.search(r"(?:^|时|下|℃|kPa|[其该])\s*([一-鿿A-Za-z0-9,-]*?)的?$", head) if head else None
    name = (owner[1] if owner else head).strip()
    name = re.sub(
        r"(?:时|下|在|其|该物质|本品|该品|纯品|的|时的|和|及|与|且|,)+$|^(?:其|该物质|本品|该品|且|而|在)",
        "",
        name,
    ).strip()
    name = re.sub(
        r"^(?:the|its|has an?|it has an?|a|an|and(?: an?)?|with an?)\b\s*", "", name, flags=re.IGNORECASE
    ).strip()
    if not name:
        return not re.search(r"[A-Za-z一-鿿]的$", head) or head.endswith(("其的", "时的", "下的"))
    return not ctx.about_other(name)


def _prose_value(ctx: Context, offset: int, sds: int | None, words: str, match: re.Match[str]) -> list[Draft]:
    name = next(n for n, _ in _PROSE if match[n])
    # a comma ends the clause also before a number ("651 ℃，4.7 ℃时…"), unless it groups digits ("1,200")
    stop = re.compile(r"[;；。]|(?<!\d)[,，]|[,，](?!\d{3}(?!\d))|\.\s").search(words, match.end())
    end = stop.start() if stop else len(words)
    part = words[match.end() : end]
    clause = (offset + match.start() + (len(match["head"]) - len(match["head"].lstrip())), offset + end)
    if name == "explosive_limits":
        found = parse_quantities(part, dimension="percent")
        if len(found) == 1 and found[0].minimum is not None and found[0].minimum != found[0].maximum:
            return limits_of(ctx, found[0], offset + match.end(), clause, sds)
        return []
    prop = Property(name)
    if prop in {Property.RELATIVE_DENSITY} and "空气" in part:
        prop = Property.VAPOUR_DENSITY
    spec = PROPERTIES[prop]
    found = parse_quantities(part, dimension=spec.dimension, bare=not spec.dimension)
    if not found or found[0].start > 2:
        return []
    quantity = found[0]
    condition = re.search(r"([-–]?\d+(?:\.\d+)?\s?(?:℃|°C|K))\s*(?:时|下)的?$", _before(words, match))
    if condition and "temperature" not in quantity.conditions:
        conditions = {**quantity.conditions, "temperature": condition[1]}
        quantity = Quantity(**{**quantity.__dict__, "conditions": conditions})
    at = offset + match.end()
    return [measurement_draft(ctx, prop, quantity, at + quantity.start, at + quantity.end, clause, sds)]


def _before(words: str, match: re.Match[str]) -> str:
    return re.split(r"[,，;；。]", words[: match.start("prop")])[-1]


# --- exposure limits ---------------------------------------------------------------------

_KIND = r"(?P<kind>PC-TWA|PC-STEL|MAC|TLV-TWA|TLV-STEL|TLV-C|TLV|PEL-TWA|PEL-STEL|PEL|REL-TWA|REL-STEL|REL|WEEL|MAK|IDLH|STEL|TWA|Excursion limit|CEILING|Ceiling|ceiling)"
_LIMIT = re.compile(
    rf"(?:(?P<body>OSHA|NIOSH|ACGIH|中国|美国|GBZ ?2(?:\.1)?)[\s(:]*)?(?<![A-Za-z-]){_KIND}(?![A-Za-z-])(?P<note>\s*\([^()]{{1,20}}\))?[\s):]*(?:为|是|=|of|is)?\s*"
    r"(?=[<≤]?\s?\d)"
)
_JURISDICTION = {"OSHA": "US-OSHA", "NIOSH": "US-NIOSH", "ACGIH": "ACGIH", "中国": "CN", "美国": "US"}


def limit_kind(kind: str, body: str = "") -> tuple[str, str]:
    """Kind of an exposure limit and whose it is ("PEL" is OSHA's, "PC-TWA" China's)."""
    plain = kind.upper() if kind.lower() in {"ceiling", "excursion limit"} else kind
    if plain.startswith("PC-") or plain == "MAC" or body.startswith("GBZ"):
        return plain, "CN"
    if plain.startswith("PEL"):
        return plain, "US-OSHA"
    if plain.startswith("REL") or plain == "IDLH":
        return plain, "US-NIOSH"
    if plain.startswith("TLV"):
        return plain, "ACGIH"
    return plain, _JURISDICTION.get(body, "")


def exposure_limits(ctx: Context) -> list[Draft]:
    """HAS_LIMIT wherever a kind of limit stands before a concentration, and from infobox labels."""
    drafts: list[Draft] = []
    seen: set[tuple[int, str]] = set()
    spans = [(e.start, e.end, e.sds, f.name) for e, f in ctx.entries("exposure")]
    inside = [(a, b) for a, b, _, _ in spans]
    spans += [
        (s.start, s.end, s.sds, "")
        for s in ctx.reading.sentences
        if not any(a <= s.start < b for a, b in inside)
    ]
    for start, end, sds, field in spans:
        for left, right in ctx.segments(start, end):
            for draft in _limits(ctx, left, right, sds, field):
                mark = (draft.start, str(draft.properties["kind"]))
                if mark not in seen:
                    seen.add(mark)
                    drafts.append(draft)
    return drafts


_FIELD_PREFIX = {"pel": "PEL", "rel": "REL", "threshold_limit_value": "TLV"}


def _limits(ctx: Context, start: int, end: int, sds: int | None, field: str) -> list[Draft]:
    words = ctx.shadow(start, end)
    matches = list(_LIMIT.finditer(words))
    drafts = []
    for index, match in enumerate(matches):
        stop = matches[index + 1].start() if index + 1 < len(matches) else len(words)
        prefix = _FIELD_PREFIX.get(field, "")
        kind = (
            match["kind"] if not prefix or match["kind"].startswith(prefix) else f"{prefix}-{match['kind']}"
        )
        over = re.search(r"\(\s*(\d[^()]*(?:min|h|小时|分钟)[^()]*?)\s*\)", match["note"] or "")
        draft = _limit(
            ctx,
            start,
            words,
            match.start(),
            match.end(),
            stop,
            kind,
            match["body"] or "",
            sds,
            over[1] if over else "",
        )
        if draft:
            drafts.append(draft)
    if not matches and field in {"idlh", "pel", "rel", "threshold_limit_value"}:
        kind = "IDLH" if field == "idlh" else _FIELD_PREFIX[field]
        twa = re.search(r"\((TWA|STEL|C)\)", words)
        drafts += [
            d
            for d in [
                _limit(ctx, start, words, 0, 0, len(words), f"{kind}-{twa[1]}" if twa else kind, "", sds)
            ]
            if d
        ]
    return drafts


def _limit(
    ctx: Context,
    offset: int,
    words: str,
    start: int,
    at: int,
    stop: int,
    kind: str,
    body: str,
    sds: int | None,
    duration: str = "",
) -> Draft | None:
    part = re.split(r"[;；。]", words[at:stop])[0]
    part = re.sub(r"[,，、]\s*$", "", part)
    quantity = concentration(part)
    if quantity is None or quantity.start > 3:
        return None
    name, jurisdiction = limit_kind(kind, body)
    value = quantity.as_value()
    if duration:  # "Ceiling (15 min): 5 ppm" is no ceiling over 10 min
        value["conditions"] = {**value.get("conditions", {}), "duration": duration}
    note = re.search(r"\(([^()]*)\)\s*$", part[quantity.end :])
    if note and not parse_quantities(note[1]):
        shown = ctx.text(offset + at + quantity.end + note.start(1), offset + at + quantity.end + note.end(1))
        value["conditions"] = {**value.get("conditions", {}), "note": shown}
        if "GBZ" in note[1]:
            jurisdiction = "CN"
    begin = offset + start + (len(words[start:]) - len(words[start:].lstrip()))
    return limit_draft(ctx, name, jurisdiction, value, (begin, offset + at + len(part.rstrip())), sds,
                       ctx.text(offset + at + quantity.start, offset + at + quantity.end))  # fmt: skip


def limit_draft(
    ctx: Context,
    kind: str,
    jurisdiction: str,
    value: dict[str, Any],
    span: tuple[int, int],
    sds: int | None,
    shown: str,
) -> Draft:
    """An exposure limit."""
    properties = {"kind": kind} | ({"jurisdiction": jurisdiction} if jurisdiction else {})
    return ctx.draft(
        Relation.HAS_LIMIT,
        shown,
        NodeLabel.EXPOSURE_LIMIT,
        span,
        properties=properties,
        value=value,
        section=sds,
    )


def concentration(words: str) -> Quantity | None:
    """The first concentration in air (mg/m³ or ppm) of a text."""
    found = [
        q
        for dimension in ("kg/m**3", "percent")
        for q in parse_quantities(words, dimension=dimension)
        if dimension != "percent" or q.unit in {"ppm", "ppb"}
    ]
    return min(found, key=lambda q: q.start) if found else None


# --- toxicity ------------------------------------------------------------------------------

_ENDPOINT = re.compile(r"(?<![A-Za-z])(LD50|LC50|LDLo|LCLo|TDLo|TCLo|EC50|IC50|ErC50|NOAEL|LD100)(?!\d)")
_IARC = re.compile(
    r"IARC[^;；。\n]{0,12}?[:：]?\s*(?:Group\s*|第?)?(1|2A|2B|3|4)\s*(?:类|组)?(?![\d.])", re.IGNORECASE
)
_DOSES = ("mg/kg", "kg/m**3", "percent")


_TESTED = re.compile(r"50\s*\((?!median|mean|半数)[^()]+\)", re.IGNORECASE)
# "for soluble cobalt salts": what the dose is one of, where it is not the species
_DOSE_OF = re.compile(
    r"(?:\bfor|\bof|对)\s+(?P<name>[^,;()]{3,60}?)\s+(?:has|have|is|was|were|in)\b", re.IGNORECASE
)
_BETWEEN = re.compile(r"\bbetween\s+[\d.,]+\s*(?:and|to)\s|介于", re.IGNORECASE)


def toxicity(ctx: Context) -> list[Draft]:
    """HAS_TOXICITY from LD50, LC50 … with species, route and duration, and IARC groups."""
    drafts: list[Draft] = []
    taken: list[tuple[int, int]] = []
    for entry, found in ctx.entries("toxicity"):
        taken.append((entry.start, entry.end))
        if ctx.no_data(entry):
            endpoint = "carcinogenicity" if found.name == "carcinogenicity" else "acute"
            drafts.append(
                ctx.no_data_draft(Relation.HAS_TOXICITY, NodeLabel.TOXICITY, entry, endpoint=endpoint)
            )
            continue
        fallback = _ENDPOINT.search(entry.label_text.upper())
        for at, (start, end) in enumerate(ctx.segments(entry.start, entry.end)):
            # the label may say of whom: "LC50 (rainbow trout, 96 h): 5540 mg/L"
            begin = entry.label_start if at == 0 and _TESTED.search(entry.label_text) else start
            drafts += _doses(ctx, begin, end, entry.sds, fallback[1] if fallback else "", entry.label_start)
            drafts += _iarc(ctx, start, end, entry.sds)
    for sentence in ctx.reading.sentences:
        if any(a <= sentence.start < b for a, b in taken):
            continue
        for start, end in ctx.segments(sentence.start, sentence.end):
            drafts += _doses(ctx, start, end, sentence.sds, "", start)
    return drafts


def _doses(
    ctx: Context, start: int, end: int, sds: int | None, fallback: str, label_start: int
) -> list[Draft]:
    words = ctx.shadow(start, end)
    marks = list(_ENDPOINT.finditer(words))
    if not marks and not fallback:
        return []
    drafts = []
    scopes = [(m.start(), m.end(), m[1]) for m in marks] or [(0, 0, fallback)]
    for index, (at, after, endpoint) in enumerate(scopes):
        begin = _clause_start(words, at, scopes[index - 1][1] if index else 0)
        stop = _scope_end(words, scopes[index + 1][0], after) if index + 1 < len(scopes) else len(words)
        scope = re.split(r"[。]", words[begin:stop])[0].rstrip(" ,，、;；")
        found = sorted(
            (q for d in _DOSES for q in parse_quantities(scope, dimension=d) if q.unit not in {"%", "‰"}),
            key=lambda q: q.start,
        )
        found = [q for q in found if begin + q.start >= after or not marks]
        if _BETWEEN.search(scope) or _of_another(ctx, scope):
            continue
        lead = label_start if not marks and label_start < start and end - label_start < 200 else start + begin
        for quantity in found[:1] if len(found) == 1 or not _each_bracketed(scope, found) else found:
            drafts.append(_dose(ctx, endpoint, quantity, scope, len(found) == 1, start + begin, lead, sds))
    return drafts


def _of_another(ctx: Context, scope: str) -> bool:
    """Whether the dose is said of something else than the subject."""
    named = _DOSE_OF.search(scope)
    if not named or parse_quantities("1 mg/kg (" + named["name"] + ")", dimension="mg/kg")[0].conditions:
        return False
    return ctx.about_other(re.sub(r"^(?:the|pure)\s+", "", named["name"], flags=re.IGNORECASE))


def _clause_start(words: str, position: int, floor: int) -> int:
    # a closed bracket ends what was said of the value before it ("12124 mg/kg（兔经皮） LC50：…")
    cut = max(words.rfind(mark, floor, position) for mark in (*",，;；。、", ") "))
    begin = cut + 1 if cut >= floor else floor
    return begin + len(words[begin:position]) - len(words[begin:position].lstrip())


def _scope_end(words: str, position: int, floor: int) -> int:
    """Where an endpoint's words end: at the separator before the next one, else at that one."""
    begin = _clause_start(words, position, floor)
    return position if begin <= floor + 1 else begin


def _each_bracketed(scope: str, found: list[Quantity]) -> bool:
    return all(re.match(r"\s*\(", scope[q.end :]) for q in found)


def _dose(
    ctx: Context,
    endpoint: str,
    quantity: Quantity,
    scope: str,
    alone: bool,
    offset: int,
    lead: int,
    sds: int | None,
) -> Draft:
    value = quantity.as_value()
    conditions = dict(value.get("conditions", {}))
    if alone:  # species, route and duration may stand before the value
        whole = parse_quantities(scope, dimension="mg/kg") or parse_quantities(scope)
        for found in whole:
            conditions = {**found.conditions, **conditions}
    for neighbour in ("temperature", "pressure", "concentration"):  # other values, never a dose's condition
        conditions.pop(neighbour, None)
    value.pop("conditions", None)
    properties: dict[str, Any] = {"endpoint": endpoint}
    for name in ("species", "route"):
        if name in conditions:
            properties[name] = conditions[name]
    if "species" not in conditions and (organism := _organism(ctx, scope, offset)):
        properties["species"] = conditions["species"] = organism
    if conditions:
        value["conditions"] = conditions
    return ctx.draft(
        Relation.HAS_TOXICITY,
        ctx.text(offset + quantity.start, offset + quantity.end),
        NodeLabel.TOXICITY,
        (lead, offset + len(scope)),
        properties=properties,
        value=value,
        section=sds,
    )


def _organism(ctx: Context, scope: str, offset: int) -> str:
    """The test organism as written in brackets ("96 h，蓝鳃太阳鱼")."""
    for match in re.finditer(r"\(([^()]+)\)", scope):
        position = match.start(1)
        for part in re.split(r"[,，]", match[1]):
            words = part.strip()
            if words and not re.search(r"\d|静态|半静态|流水|static", words):
                start = offset + scope.find(words, position)
                return ctx.text(start, start + len(words))
    return ""


def _iarc(ctx: Context, start: int, end: int, sds: int | None) -> list[Draft]:
    match = _IARC.search(ctx.shadow(start, end))
    if not match or re.search(r"未|不在|not listed", ctx.shadow(start, start + match.end()), re.IGNORECASE):
        return []
    group = match[1].upper()
    value: dict[str, Any] = {"text": f"IARC {group}"}
    remark = re.match(r"\s*\(([^()]+)\)", ctx.shadow(start + match.end(), end))
    if remark and not re.search(r"致癌|carcinogen", remark[1], re.IGNORECASE):
        # "1类（含硫酸的强无机酸雾）" is said of the mist alone
        at = start + match.end()
        value["conditions"] = {"note": ctx.text(at + remark.start(1), at + remark.end(1))}
    return [
        ctx.draft(
            Relation.HAS_TOXICITY, f"IARC {group}", NodeLabel.TOXICITY, (start, end),
            properties={"endpoint": "carcinogenicity"}, value=value, section=sds,
        )
    ]  # fmt: skip

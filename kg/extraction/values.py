"""Values with units: properties of matter, from labelled values and running text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from corpus.quantities import Quantity, parse_quantities, plain_width
from corpus.units import parse_unit
from kg.extraction.context import Context
from kg.extraction.focus import Focus, focuses
from kg.extraction.model import Draft, Entry
from kg.extraction.owner import foreign, name_like, named_before
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
            words = ctx.shadow(entry.start, entry.end)
            drafts += _property(ctx, entry, _labelled_density(entry, words, Property(found.name)))
    return drafts


def refined_property(around: str, prop: Property) -> Property:
    """Densities are told apart by what they are relative to, not by their label alone."""
    if prop in {Property.RELATIVE_DENSITY, Property.DENSITY} and _AIR.search(around):
        return Property.VAPOUR_DENSITY
    if prop is Property.DENSITY and re.search(r"水\s*=\s*1|water\s*=\s*1", around, re.IGNORECASE):
        return Property.RELATIVE_DENSITY
    return prop


_RELATIVE = frozenset({Property.RELATIVE_DENSITY, Property.VAPOUR_DENSITY})
_TO_AIR = re.compile(r"(?:空气|\bair)\s*=\s*1", re.IGNORECASE)
_TO_WATER = re.compile(r"(?:水|\bwater|\bH2O)\s*=\s*1", re.IGNORECASE)
_LIQUID = re.compile(r"液[体态]?|\bliquid\b", re.IGNORECASE)
_DENSITY_SAID = re.compile(r"密度|\bdensity\b", re.IGNORECASE)


def _labelled_density(entry: Entry, words: str, prop: Property) -> Property:
    """What a label of a density means for values that do not say themselves what they are relative to."""
    if prop not in {*_RELATIVE, Property.DENSITY}:
        return prop
    label = entry.label_text
    if prop is not Property.VAPOUR_DENSITY and _AIR.search(label) and not _TO_WATER.search(label):
        return Property.VAPOUR_DENSITY
    if prop is Property.DENSITY and (_TO_WATER.search(label + words) or _TO_AIR.search(words)):
        return Property.RELATIVE_DENSITY
    return prop


def _own_density(words: str, quantity: Quantity, prop: Property) -> Property | None:
    """Which relative density one of a field's values is, by the words beside it; None where they say too little."""
    lead = re.search(r"[^;；。\n,，()>]*(?:\([^()]*\))?[\s:：]*$", words[: quantity.start])
    near = lead[0] if lead else ""
    if re.search(r"\d[^()]*\(", near):  # the bracket is the value's before
        near = near[near.rindex(")") + 1 :] if ")" in near else ""
    behind = re.match(r"\s*\(([^()]*)\)", words[quantity.end :])
    said = near + " " + (behind[1] if behind else "")
    if _TO_AIR.search(said):
        return Property.VAPOUR_DENSITY
    if _TO_WATER.search(said):
        return Property.RELATIVE_DENSITY
    if _VAPOUR.search(near) and prop is Property.RELATIVE_DENSITY:
        return Property.VAPOUR_DENSITY if _DENSITY_SAID.search(near) else None
    return None if _LIQUID.search(near) and prop is Property.VAPOUR_DENSITY else prop


def default_unit(label: str) -> str:
    """The unit that a label's brackets or end give ("熔点（℃）", "爆炸下限 %(V/V)"), "" where none."""
    bracketed: list[str] = re.findall(r"[(\[【]([^()\[\]]+)[)\]】]", label)
    last: list[str] = (
        [] if label.rstrip().endswith((")", "]", "】")) else re.findall(r"[\s,/]([^\s,]+)$", label)
    )
    parts = [part for text in bracketed for part in re.split(r"[,，;；、]", text)]
    for text in (*bracketed, *parts, *last):
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
    quantities = quantities_of(words, prop, unit or ("g/mol" if relative else ""))
    if not quantities and prop is Property.DENSITY:
        return []  # without unit nobody knows what it is relative to
    if not quantities:
        torn = re.search(r"\d\s+\d", words)
        named = re.search(r"water|水", entry.label_text, re.IGNORECASE)
        if prop is Property.SOLUBILITY_IN_WATER and named and not torn:
            return _textual(ctx, entry, prop)
        return _unread(ctx, entry, prop)
    dissolved = prop is Property.SOLUBILITY_IN_WATER
    own = [q for q in quantities if not foreign(ctx, words, q.start, q.end, solvent=dissolved)]
    drafts = []
    for quantity in own[:6]:
        meant = _own_density(words, quantity, prop) if prop in _RELATIVE else prop
        made = _measured(ctx, entry, meant, quantity) if meant else None
        drafts += [made] if made else []
    return drafts


def quantities_of(words: str, prop: Property, unit: str) -> list[Quantity]:
    """Quantities that can be this property's, in text order; ``unit`` is that of numbers without one."""
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


def _measured(ctx: Context, entry: Entry, prop: Property, quantity: Quantity) -> Draft | None:
    start, end = entry.start + quantity.start, entry.start + quantity.end
    span = _evidence(ctx, entry, start, end)
    said = label_circumstances(ctx, prop, entry.label_text)
    if said is None or _of_the_vapour(ctx, entry, prop, start):
        return None
    near = re.split(r"[;；。\n,，)>]", ctx.shadow(entry.start, start))[-1]
    if prop in {*_RELATIVE, Property.DENSITY} and _OTHER_DENSITY.search(near):
        return None
    if _AZEOTROPE.search(re.split(r"[;；。\n,，]", ctx.shadow(entry.start, start))[-1]):
        return None
    if ctx.subject.mixture and re.search(r"纯(?!水)|无水|\b(?:pure|anhydrous|neat)\b", near, re.IGNORECASE):
        return None  # on a solution's sheet that is another thing
    if not ctx.subject.mixture and "concentration" not in quantity.conditions and _SOLUTION.search(near):
        return None  # "1M solution in THF: -17 °C"
    first = not _PART_END.search(ctx.shadow(entry.start, start)) and span[0] <= entry.label_start
    if not first and said.keys() - quantity.conditions.keys():
        return None  # "沸点（2.7 kPa）：30℃；56℃": under whose pressure is the second?
    if span[0] <= entry.label_start:
        quantity = replace(quantity, conditions={**said, **quantity.conditions})
    return measurement_draft(ctx, prop, quantity, start, end, span, entry.sds)


# the density of something else, or at a temperature that is only named ("临界密度", "沸点下液体密度750")
_OTHER_DENSITY = re.compile(
    r"(?:临界|堆积?|松装|振实|表观|体积)密度|[沸熔]点(?:下|时|温度)|\b(?:critical|bulk|tapped|apparent|packed) density|\bat (?:the |its )?(?:normal )?(?:boiling|melting|critical) point",
    re.IGNORECASE,
)
_AZEOTROPE = re.compile(r"共沸|恒沸|混合物|\b(?:azeotrop\w*|mixtures?)\b", re.IGNORECASE)
_SOLUTION = re.compile(r"溶液|\bsolutions?\b", re.IGNORECASE)
_PART_END = re.compile(r"[;；。\n]|<br\s*/?>")
_VAPOUR = re.compile(r"蒸[气汽]|vapou?r|\bgas\b|气[体态]", re.IGNORECASE)


def _of_the_vapour(ctx: Context, entry: Entry, prop: Property, start: int) -> bool:
    """ "0.79 (water = 1); vapour 2.0": the words before a density's number say that it is the vapour's."""
    if prop not in {Property.RELATIVE_DENSITY, Property.DENSITY} or _VAPOUR.search(entry.label_text):
        return False
    return bool(_VAPOUR.search(re.split(r"[;；。\n,，)>]", ctx.shadow(entry.start, start))[-1]))


def cup_of(words: str) -> str:
    """The method of a flash point that words name, "" where none."""
    probe = parse_quantities(f"1 mPa·s ({words})", dimension="Pa*s")
    return probe[0].conditions.get("method", "") if probe else ""


_CIRCUMSTANCES = ("method", "form", "pressure", "concentration")


def _parted(label: str) -> str:
    """A label in which no comma joins a unit's exponent to a figure ("密度（g/cm³,20℃）" is at 20 ℃)."""
    return re.sub(
        r"(?<=[cdk]m[23³²])[,，、]\s*(?=\d)|(?<=/m[23³²])[,，、]\s*(?=\d)", " ; ", plain_width(label)
    )


def label_circumstances(ctx: Context, prop: Property, label: str) -> dict[str, str] | None:
    """What a label says of the value ("沸点（2.7 kPa）", "pH (1% solution)"); None for what is not understood."""
    found: dict[str, str] = {}
    label = _parted(label)
    outside = re.sub(r"[(\[【][^()\[\]【】]*[)\]】]", " ", label)
    for text in (outside, *re.findall(r"[(\[【]([^()\[\]【】]+)[)\]】]", label)):
        if text is outside:
            found |= {"method": cup} if (cup := cup_of(text)) else {}
            continue
        if parse_unit(text.strip()):
            continue
        if _REDUCED.search(text) and not re.search(r"\d", text):
            return None
        # read beside a quantity whose unit is none of the circumstances'
        (probe,) = parse_quantities(f"1 mPa·s ({text})", dimension="Pa*s")[:1] or (None,)
        said = dict(probe.conditions) if probe else {}
        if (
            not said
            and re.search(r"\d", text)
            and not re.search(r"=\s*1|1\s*=|v\s?/\s?v", text, re.IGNORECASE)
        ):
            said = label_conditions(prop.value, text)
            if not said:
                return None
        if not said and named_before(ctx, text):
            return None
        found |= {name: plain_width(said[name]) for name in _CIRCUMSTANCES if name in said}
    if PROPERTIES[prop].dimension == "pascal":
        found.pop("pressure", None)
    if PROPERTIES[prop].dimension == "percent":
        found.pop("concentration", None)
    return {**found, **label_conditions(prop.value, label)}


_REDUCED = re.compile(r"减压|真空|负压|\b(?:reduced pressure|vacuum|in vacuo)\b", re.IGNORECASE)


def _pressure_left_out(ctx: Context, span: tuple[int, int], start: int, end: int, quantity: Quantity) -> bool:
    """ "减压沸点50℃": a value under a pressure that nobody states is no value."""
    if "pressure" in quantity.conditions:
        return False
    before = re.split(r"[,，;；。]", ctx.shadow(min(span[0], start), start))[-1]
    behind = re.sub(r"\([^()]*\d\s?(?:℃|°)[^()]*\)", " ", ctx.shadow(end, max(span[1], end)))
    return bool(_REDUCED.search(before + " " + re.split(r"[,，;；。]", behind)[0]))


def label_conditions(prop: str, label: str) -> dict[str, str]:
    """The temperature that a label names ("密度（20 ℃）", "Vapour pressure at 20 °C"), for what depends on one."""
    if PROPERTIES[Property(prop)].dimension == "kelvin":
        return {}
    label = re.sub(r"(?<!\d)[,，]\s?(?=[-–]?\d)", "; ", _parted(label))  # "(liquid, 56 °C)"
    found = parse_quantities(label, dimension="kelvin")
    if len(found) != 1:
        return {}
    return {
        "temperature": re.sub(
            r"\s*(?:℃|°\s?C)", " °C", plain_width(label[found[0].start : found[0].end]).strip()
        )
    }


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
        rejected=DropReason.BAD_QUANTITY
        if _pressure_left_out(ctx, span, start, end, quantity)
        else _plausible(prop, quantity),
    )


def _meant(prop: Property, conditions: Mapping[str, str]) -> dict[str, str]:
    """Conditions in one spelling ("20℃" is "20 °C"). A temperature does not hold at a temperature:
    beside one stands the same value in other units, or another property."""
    found = dict(conditions)
    if PROPERTIES[prop].dimension == "pascal":
        found.pop("pressure", None)
    if prop is Property.SOLUBILITY_IN_WATER:
        found.pop("concentration", None)
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
    r"^(?:[\s\d.,;%/=~<>≤≥+–—-]|℃|°\s?[CFK]?|K\b|[kMhm]?Pa|atm|bar|mm\s?Hg|torr|psi|vol|wt|v|w|m|g|kg|mg|cm|ml|l|mol|h|min|ppm|cP|[³3])*$"
    r"|闭|开|杯|cup|空气\s*=|水\s*=|air\s*=|water\s*=|大鼠|小鼠|兔|rat|mouse|rabbit|体积|v/v|^\s*at [-–\d]",
    re.IGNORECASE,
)


# "280 °C on glass", "225 ℃ in oxygen": where or under what a value holds, without brackets
_WHERE = re.compile(
    r"\s*((?:on|over|under|in|against|in contact with|in the presence of) [A-Za-z][A-Za-z -]{2,30}?)\s*(?=[;,.|(\n]|$)",
    re.IGNORECASE,
)


def _note(ctx: Context, end: int, stop: int, quantity: Quantity) -> str:
    """A remark in brackets after the value that no condition covers ("水溶液", "含甲醇15%")."""
    match = re.match(r"\s*\(([^()]{1,60})\)", ctx.shadow(end, stop))
    if not match:
        where = _WHERE.match(ctx.shadow(end, stop))
        plain = where is None or _PLAIN_STATE.search(where[1]) or where[1] in quantity.conditions.values()
        return "" if plain or where is None else ctx.text(end + where.start(1), end + where.end(1))
    words = match[1].strip()
    parts = [p.strip() for p in re.split(r"[,，;、]", words)]
    left = [p for p in parts if p and not _covered(p, quantity)]
    return ctx.text(end + match.start(1), end + match.end(1)) if left else ""


_COVERED_NOTES = frozenset(
    [
        "无水",
        "anhydrous",
        "分解",
        "decomposes",
        "decomp.",
        "decomp",
        "dec.",
        "dec",
        "升华",
        "sublimes",
        "subl.",
        "v/v",
        "vol%",
        "c.c.",
        "c.c",
        "o.c",
        "o.c.",
        "cc",
        "oc",
        "lit.",
        "lit",
        "calc.",
        "calculated",
    ]
)


def _covered(part: str, quantity: Quantity) -> bool:
    if any(part == shown or shown in part for shown in quantity.conditions.values()):
        return True
    if _KNOWN_NOTE.search(part):
        return not re.search(r"[一-鿿]{3,}", part) or bool(re.search(r"杯|[=]", part))
    return part.lower() in _COVERED_NOTES


def _explosive_limits(ctx: Context, entry: Entry) -> list[Draft]:
    words = ctx.shadow(entry.start, entry.end)
    quantities = parse_quantities(words, dimension="percent", default_unit=default_unit(entry.label_text))
    ranges = [
        q for q in quantities if q.minimum is not None and q.maximum is not None and q.minimum < q.maximum
    ]
    ends = _LIMIT_ENDS.search(words)
    if ends and len(quantities) == 2:
        return _two_limits(ctx, entry, words, quantities, ends["first"].lower() in {"上", "upper"})
    if len(ranges) != 1 or len(quantities) != 1:
        return _unread(ctx, entry, Property.LOWER_EXPLOSIVE_LIMIT)
    said = label_circumstances(ctx, Property.LOWER_EXPLOSIVE_LIMIT, entry.label_text)
    if said is None or foreign(ctx, words, ranges[0].start, ranges[0].end):
        return []
    return limits_of(
        ctx,
        replace(ranges[0], conditions={**said, **ranges[0].conditions}),
        entry.start,
        _evidence(ctx, entry, entry.start + ranges[0].start, entry.end),
        entry.sds,
    )


_LIMIT_ENDS = re.compile(
    r"^\W*(?:爆炸|燃烧)?(?P<first>上|下|upper|lower)(?:限|\s+(?:explosi\w+ |flammab\w+ )?limit)?[^上下]*?[;；,，]\s*(?:爆炸|燃烧)?(?:上|下|upper|lower)",
    re.IGNORECASE,
)


def _two_limits(ctx: Context, entry: Entry, words: str, both: list[Quantity], falling: bool) -> list[Draft]:
    """ "上限：36.5；下限：6": both explosive limits, each behind its own word."""
    upper, lower = both if falling else both[::-1]
    if lower.minimum is None or upper.minimum is None or lower.minimum >= upper.minimum:
        return []
    said = label_circumstances(ctx, Property.LOWER_EXPLOSIVE_LIMIT, entry.label_text)
    if said is None or any(foreign(ctx, words, q.start, q.end) for q in both):
        return []
    upper, lower = (replace(q, conditions={**said, **q.conditions}) for q in (upper, lower))
    span = (entry.label_start, entry.start + max(q.end for q in both))
    return [
        measurement_draft(ctx, prop, one, entry.start + one.start, entry.start + one.end, span, entry.sds)
        for prop, one in ((Property.LOWER_EXPLOSIVE_LIMIT, lower), (Property.UPPER_EXPLOSIVE_LIMIT, upper))
    ]


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
    ("flash_point", r"(?:[闭开]口?杯?)?闪点|(?:(?:closed|open)[- ]cup )?flash point"),
    ("autoignition_temperature", r"自燃温度|自燃点|引燃温度|auto-?ignition temperature|ignition temperature"),
    ("critical_temperature", r"临界温度|critical temperature"),
    ("critical_pressure", r"临界压力|critical pressure"),
    ("explosive_limits", r"爆炸极限|燃烧极限|explosive limits|flammable limits|explosive range"),
    ("lower_explosive_limit", r"爆炸下限|lower explosive limit"),
    ("upper_explosive_limit", r"爆炸上限|upper explosive limit"),
    ("vapour_pressure", r"饱和蒸[气汽]压|蒸[气汽]压|vapou?r pressure"),
    (
        "density",
        r"(?<!相对)(?<!蒸气)(?<!蒸汽)(?<!临界)(?<!堆积)(?<!松装)(?<!振实)(?<!表观)密度"
        r"|(?<!relative )(?<!vapour )(?<!vapor )(?<!critical )(?<!bulk )(?<!tapped )(?<!apparent )density",
    ),
    ("relative_density", r"相对密度|比重|specific gravity|relative density"),
    ("vapour_density", r"相对蒸[气汽]密度"),
    ("molar_mass", r"相对分子质量|摩尔质量|分子量|molar mass|molecular (?:weight|mass)"),
    ("refractive_index", r"折射率|折光率|refractive index"),
    ("dipole_moment", r"偶极矩|dipole moment"),
    ("surface_tension", r"表面张力|surface tension"),
    ("thermal_conductivity", r"热导率|导热系数|thermal conductivity"),
    ("decomposition_temperature", r"(?<!热)分解温度|decomposition temperature"),
    ("viscosity", r"[黏粘]度|viscosity"),
    ("heat_of_combustion", r"燃烧热|heat of combustion"),
    ("log_kow", r"(?:正?辛醇/水)分配系数(?:\s*\(?log\s?Kow\)?)?"),
    ("minimum_ignition_energy", r"最小点火能|minimum ignition energy"),
)
_LINK = r"(?:\s+of (?P<of>(?!about|approx)[A-Za-z][\w ,'()-]{1,40}?)(?=\s+(?:is|was|=)))?(?P<bracket>\s*\([^()]{0,24}\))?\s*(?:约为|为|是|约|:|=|达|is about|is approximately|is|was|of(?: about)?)?\s*"
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
    about = focuses(ctx)
    for sentence in ctx.reading.sentences:
        if sentence.label:
            continue
        words = ctx.shadow(sentence.start, sentence.end)
        if ctx.subject.mixture or not _PROSE_WORD.search(words):
            continue
        for match in _PROSE_RE.finditer(words):
            if not _about_subject(ctx, words, match, about[sentence.start]):
                continue
            drafts += _prose_value(ctx, sentence.start, sentence.sds, words, match)
    return drafts


_SAID = re.compile(r"^(?:(?P<it>it)|(?P<name>[A-Za-z][\w -]{1,40}?)) (?:is|are) an? [\w -]+$", re.IGNORECASE)
_HAS = re.compile(
    r"\s*\b(?:has|have|having|with|shows?|exhibits?|possess(?:es)?)(?: (?:an?|the|its?))?(?: (?:normal|low|high|standard|typical))?\s*$",
    re.IGNORECASE,
)
_AT = re.compile(r"^(?:at|in)\b[^,]*?(?:°\s?C|℃|K|temperature|pressure|atm)\b,?\s*", re.IGNORECASE)


def _about_subject(ctx: Context, words: str, match: re.Match[str], focus: Focus) -> bool:
    """Whether a property in running text is the subject's: by the name that owns it, else by the sentence's focus."""
    if match["of"]:
        return not ctx.about_other(re.sub(r"^(?:the|pure)\s+", "", match["of"], flags=re.IGNORECASE))
    inside = _bracket_owner(words, match.start("prop"))
    if inside is not None:
        return bool(inside) and not ctx.about_other(inside)
    head = match["head"].strip()
    apposed = re.search(r"(?:^|[,;，；])\s*([^,;，；]+?)\s*[,，]\s*$", words[: match.start("prop")])
    if not head and apposed and name_like(apposed[1]) and ctx.about_other(apposed[1]):
        return False  # "nitroethane, boiling point 114 °C"
    head = _HAS.sub("", _AT.sub("", head))
    said = _SAID.match(_HAS.sub("", re.split(r"[,;，；]", words[: match.start("prop")])[-1].strip()))
    if said:  # "Cobalt is a ferromagnetic metal with a specific gravity of 8.9"
        return focus is Focus.OWN if said["it"] else not ctx.about_other(said["name"])
    if re.search(r"(?:^| )and(?: the| an?)?$", head):
        head = ""
    owner = re.search(r"(?:^|时|下|℃|kPa|[其该])\s*([一-鿿A-Za-z0-9,-]*?)的?$", head) if head else None
    name = (owner[1] if owner else head).strip()
    name = re.sub(
        r"(?:时|下|在|其|该物质|本品|该品|纯品|的|时的|和|及|与|且|,)+$|^(?:其|该物质|本品|该品|且|而|在)",
        "",
        name,
    ).strip()
    name = re.sub(
        r"^(?:the|its|has an?|it has an?|it|a|an|and(?: an?)?|with an?)\b\s*", "", name, flags=re.IGNORECASE
    ).strip()
    if not name:
        loose = re.search(r"[A-Za-z一-鿿]的$", head) and not head.endswith(("其的", "时的", "下的"))
        return focus is not Focus.OTHER and not loose
    return not ctx.about_other(name)


def _bracket_owner(words: str, position: int) -> str | None:
    """The words that an open bracket belongs to ("sulfur trioxide pyridine complex (melting point …"), None outside."""
    depth = 0
    for index in range(position - 1, -1, -1):
        depth += (words[index] == ")") - (words[index] == "(")
        if depth < 0:
            owner = re.split(
                r"[,，。;；:：(]|\b(?:is|are|was|of|the|an?|with|and)\b\s", words[:index].rstrip()
            )[-1]
            return owner.strip()
    return None


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
    basis = match["bracket"] or re.match(r"[^,，;；]*", part)[0]  # type: ignore[index]
    if prop is Property.RELATIVE_DENSITY and _AIR.search(basis):
        prop = Property.VAPOUR_DENSITY
    if prop is Property.VAPOUR_DENSITY and _TO_WATER.search(basis):
        return []
    spec = PROPERTIES[prop]
    relative = "g/mol" if prop is Property.MOLAR_MASS and _RELATIVE_MASS.search(match["prop"]) else ""
    found = parse_quantities(part, dimension=spec.dimension, default_unit=relative, bare=not spec.dimension)
    if not found or found[0].start > 2:
        return []
    quantity = found[0]
    if quantity.operator == "=" and re.search(
        r"约|\babout\b|\bapprox", match[0][match.end("prop") - match.start() :]
    ):
        quantity = replace(quantity, operator="~")
    said = label_circumstances(ctx, prop, match["prop"] + (match["bracket"] or ""))
    told = _told_before(ctx, prop, words, match)
    if said is None or told is None:
        return []
    lead = re.split(r"[,，;；。]", words[: match.end("prop")])[-1]
    if prop in {*_RELATIVE, Property.DENSITY} and _OTHER_DENSITY.search(lead):
        return []
    stated = re.sub(r"\s*(?:℃|°\s?C)", " °C", plain_width(words[match.start() :]))
    if any(shown not in stated for shown in told.values()):
        clause = (offset, clause[1])
    quantity = replace(quantity, conditions={**told, **said, **quantity.conditions})
    at = offset + match.end()
    return [measurement_draft(ctx, prop, quantity, at + quantity.start, at + quantity.end, clause, sds)]


# "在氧气中，…的自燃温度为…", "Under oxygen, the …", "粉尘云的引燃温度": what holds for all that the clause says
_UNDER = re.compile(
    r"(?:^|[,，;；:：])\s*(?P<zh>(?:在|于|当)[^,，;；。\d]{1,16}?(?:中|下|时|里|存在|作用)|(?:粉尘云|粉尘层|粉末|气态|液态|固态|固体|液体|气体)(?:状态)?(?:下|的|时)?)[,，的]?[^,，;；。]{0,24}$"
    r"|^\s*(?P<en>(?:in|under|with|on|over)(?: the presence of| an atmosphere of)? [A-Za-z][A-Za-z -]{2,40}?),[^,;]{0,60}$",
    re.IGNORECASE,
)
_PLAIN_STATE = re.compile(
    r"常压|标准(?:大气压|状[态况]|条件)|大气压|空气中|水中|\b(?:air|water|general|contrast|addition|fact|particular|normal|standard|comparison|pure form)\b",
    re.IGNORECASE,
)


def _told_before(ctx: Context, prop: Property, words: str, match: re.Match[str]) -> dict[str, str] | None:
    """Circumstances that stand before a property ("在2 kPa下…的沸点", "At 25 °C pyridine has a viscosity of …").

    None where figures stand there of which nobody knows what they are ("95%乙醇的闪点").
    """
    opening = words[: match.start("prop")] if re.match(r"At\b|Under\b|在", words, re.IGNORECASE) else ""
    clause = re.split(r"[,，;；。]", words[: match.start("prop")])[-1]
    if opening.count(",") + opening.count("，") > 1 or len(opening) > 60:
        opening = ""
    told: dict[str, str] = {}
    under = _UNDER.search(words[: match.start("prop")])
    if under and not _PLAIN_STATE.search(under[0]) and not re.search(r"\d", under[0]):
        told["note"] = (under["zh"] or under["en"]).strip()
    for text in dict.fromkeys((opening, clause)):
        figures = _own_names_out(ctx, text)
        for kind, dimension in (("temperature", "kelvin"), ("pressure", "pascal")):
            found = parse_quantities(figures, dimension=dimension)
            for one in found if PROPERTIES[prop].dimension != dimension else []:
                at = re.search(r"(?:\bat|\bunder|在)\s*$", figures[: one.start], re.IGNORECASE)
                if at or re.match(r"\s*[时下]", figures[one.end :]):  # else it is another property's value
                    shown = plain_width(figures[one.start : one.end]).strip()
                    told[kind] = re.sub(r"\s*(?:℃|°\s?C)", " °C", shown) if kind == "temperature" else shown
        if _REDUCED.search(figures) or re.search(r"\d\s?%[^,，\d]{0,16}$", figures):
            return None
    return told


def _own_names_out(ctx: Context, words: str) -> str:
    for name in sorted((n for n in ctx.spellings if n), key=len, reverse=True):
        words = re.sub(re.escape(name), lambda m: " " * len(m[0]), words, flags=re.IGNORECASE)
    return words

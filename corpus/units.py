"""Units as pages write them, read into ``pint``: "g·cm-3", "mg/m³", "％", "℃", "毫克/千克".

The registry is built once and only when a unit is first converted, since that
takes half a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pint import UnitRegistry

# spelling → (label shown, pint name). Case matters: "mg" and "Mg", "m" and "M".
_ATOMS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("℃", "°C", "° C", "oC", "摄氏度", "deg C", "degC", "degrees Celsius"), ("°C", "degC")),
    **dict.fromkeys(("℉", "°F", "° F", "华氏度", "deg F", "degF", "degrees Fahrenheit"), ("°F", "degF")),
    **dict.fromkeys(("K", "kelvin", "开尔文"), ("K", "kelvin")),
    **dict.fromkeys(
        ("%(V/V)", "% (V/V)", "%(v/v)", "% (v/v)", "%v/v", "%V/V", "vol%", "vol %", "vol.%"), ("%", "percent")
    ),
    **dict.fromkeys(
        ("%(体积)", "%(体积分数)", "% by volume", "% vol", "%vol", "% by weight", "wt%", "wt %", "wt.%"),
        ("%", "percent"),
    ),
    **dict.fromkeys(
        ("%(质量分数)", "%(w/w)", "% (w/w)", "%(m/m)", "% w/w", "%", "percent", "mol%"), ("%", "percent")
    ),
    **dict.fromkeys(("ppm", "ppmv"), ("ppm", "ppm")),
    "ppb": ("ppb", "ppb"),
    "‰": ("‰", "permille"),
    **dict.fromkeys(("mmHg", "mm Hg", "毫米汞柱"), ("mmHg", "mmHg")),
    **{s: (s, s) for s in ("kPa", "MPa", "hPa", "Pa", "mbar", "bar", "atm", "psi", "torr")},
    "Torr": ("torr", "torr"),
    "GPa": ("GPa", "GPa"),
    **dict.fromkeys(("μg", "ug", "mcg", "微克"), ("μg", "ug")),
    **dict.fromkeys(("mg", "毫克"), ("mg", "mg")),
    **dict.fromkeys(("kg", "千克", "公斤"), ("kg", "kg")),
    **dict.fromkeys(("g", "克"), ("g", "g")),
    **dict.fromkeys(("t", "吨", "tonnes"), ("t", "tonne")),
    **dict.fromkeys(("L", "l", "升"), ("L", "L")),
    **dict.fromkeys(("mL", "ml", "毫升", "cc"), ("mL", "mL")),
    **dict.fromkeys(("m", "米"), ("m", "m")),
    "dm": ("dm", "dm"),
    "cm": ("cm", "cm"),
    "mm": ("mm", "mm"),
    "nm": ("nm", "nm"),
    "pm": ("pm", "pm"),
    "μm": ("μm", "um"),
    "kmol": ("kmol", "kmol"),
    "mmol": ("mmol", "mmol"),
    "mol": ("mol", "mol"),
    "Da": ("Da", "dalton"),
    **{s: (s, s) for s in ("kJ", "MJ", "mJ", "J", "kcal", "cal")},
    "cP": ("cP", "cP"),
    "cSt": ("cSt", "cSt"),
    "mPa": ("mPa", "mPa"),
    "μPa": ("μPa", "uPa"),
    **dict.fromkeys(("D", "debye"), ("D", "debye")),
    **{s: (s, s) for s in ("mN", "N", "W")},
    "dyn": ("dyn", "dyne"),
    **dict.fromkeys(("h", "hr", "小时"), ("h", "hour")),
    **dict.fromkeys(("min", "分钟"), ("min", "minute")),
    **dict.fromkeys(("天", "d"), ("d", "day")),
    **dict.fromkeys(("s",), ("s", "second")),
    "bw": ("", ""),  # "mg/kg bw": per body weight, the same ratio
}
_EXP = r"(?:\^\{?-?\d\}?|<sup>[-−]?\d</sup>|[⁻]?[¹²³⁴]|-[1-4](?!\d)|[23](?!\d))"
_NAMES = "|".join(re.escape(s) for s in sorted(_ATOMS, key=len, reverse=True))
_FACTOR = rf"(?:100\s?(?=g|mL|ml|克|毫升))?(?:{_NAMES}){_EXP}?"
_JOIN = r"\s?[/·∙⋅*]\s?"
_GROUP = rf"(?:{_FACTOR}|\({_FACTOR}(?:{_JOIN}{_FACTOR})*\))"
# the unit is case-sensitive inside patterns that are not
UNIT_PATTERN = (
    rf"(?-i:{_FACTOR}(?:(?:{_JOIN}|\s(?=(?:{_NAMES})(?:\^?-|⁻|<sup>[-−])))(?:{_GROUP}))*(?![A-Za-z²³]))"
)
_TOKEN = re.compile(rf"(?P<op>[/·∙⋅*()])|(?P<hundred>100\s?)?(?P<name>{_NAMES})(?P<exp>{_EXP})?|\s")
_SUPER = str.maketrans("⁻¹²³⁴−", "-1234-")


@dataclass(frozen=True)
class Unit:
    """A unit: ``label`` as shown ("g/cm³"), ``pint`` its expression in the registry."""

    label: str
    pint: str


@lru_cache(maxsize=2048)
def parse_unit(text: str) -> Unit | None:
    """Read a unit; None where it is unknown. Equal units of different spelling are equal."""
    shown = text.strip().replace("µ", "μ")
    top: list[tuple[str, str, int, bool]] = []
    sign, inside, position = 1, 0, 0
    group = 1
    while position < len(shown):
        match = _TOKEN.match(shown, position)
        if not match:
            return None
        position = match.end()
        if match["op"] == "/":
            sign = -1
        elif match["op"] == "(":
            inside, group = 1, sign
        elif match["op"] == ")":
            inside, sign = 0, 1
        elif match["op"] and not inside:
            pass  # "J/mol·K": what follows a slash stays below it, as tables of properties mean it
        elif match["op"]:
            sign = group
        elif match["name"]:
            exponent = int(re.sub(r"[^\d-]", "", (match["exp"] or "1").translate(_SUPER)) or "1")
            label, name = _ATOMS[match["name"]]
            if name:  # an explicit negative exponent says itself where the factor stands
                power = exponent if exponent < 0 else sign * exponent
                top.append((label, name, power, bool(match["hundred"])))
    return _unit(top) if top else None


def _unit(factors: list[tuple[str, str, int, bool]]) -> Unit:
    above = [_shown(label, exponent) for label, _, exponent, _ in factors if exponent > 0]
    below = [
        ("100 " if hundred else "") + _shown(label, -exponent)
        for label, _, exponent, hundred in factors
        if exponent < 0
    ]
    label = "·".join(above) or "1"
    if below:
        label += "/" + (below[0] if len(below) == 1 else "(" + "·".join(below) + ")")
    expression = " * ".join(
        f"{'(100 * ' if hundred else ''}{name}{')' if hundred else ''} ** {exponent}"
        for _, name, exponent, hundred in factors
    )
    if len(factors) == 1 and factors[0][2] == 1 and not factors[0][3]:
        expression = factors[0][1]
    return Unit(label, expression)


def _shown(label: str, exponent: int) -> str:
    return label + ("" if exponent == 1 else str(exponent).translate(str.maketrans("1234", "¹²³⁴")))


@cache
def registry() -> UnitRegistry[Any]:
    """The one registry; ``pint`` is imported on first use."""
    from pint import UnitRegistry

    units: UnitRegistry[Any] = UnitRegistry(autoconvert_offset_to_baseunit=True)
    units.define("ppb = 1e-9")
    return units


@lru_cache(maxsize=2048)
def _quantity(expression: str) -> Any:
    units = registry()
    if expression in {"degC", "degF"}:
        return units.Quantity(1.0, expression)
    return units.Quantity(1.0, "dimensionless") * units.parse_expression(expression)


@lru_cache(maxsize=4096)
def _dimension(expression: str) -> str:
    from pint.errors import PintError

    try:
        kind = str(_quantity(expression).dimensionality)
    except (PintError, AttributeError, ValueError):
        return f"unknown {expression}"
    return kind


def same_dimension(unit: Unit, expression: str) -> bool:
    """Whether a unit measures what ``expression`` (a pint unit) measures.

    Shares of air (%, ppm) and doses (mg/kg) are both dimensionless for pint and
    are told apart here: a dose is mass per mass.
    """
    return _dimension(unit.pint) == _dimension(expression) and _is_share(unit.pint) == _is_share(expression)


def _is_share(expression: str) -> bool:
    return expression in {"percent", "ppm", "ppb", "permille"}


def convert(value: float, unit: Unit) -> tuple[float, str] | None:
    """Value in SI base units, rounded to 10 significant digits, with the name of the SI unit."""
    scale, offset, name = _si(unit.pint)
    return float(f"{value * scale + offset:.10g}"), name


@lru_cache(maxsize=2048)
def _si(expression: str) -> tuple[float, float, str]:
    """Scale, offset and name of the SI unit (temperatures have an offset); ``pint`` is asked once per unit."""
    units = registry()
    if expression in {"degC", "degF"}:
        zero, one = (units.Quantity(number, expression).to("kelvin") for number in (0.0, 1.0))
        return float(one.magnitude) - float(zero.magnitude), float(zero.magnitude), "K"
    result = _quantity(expression).to_base_units()
    return float(result.magnitude), 0.0, f"{result.units:~}".replace(" ", "") or "1"

"""The closed vocabulary of the graph: labels, relations, properties, keys (design, section 1).

Everything that ends up as a label, a relationship type or a key is built here.
Text of a page or a model is only ever a value. A user's file may add members
(``kg/extension.py``); they are members of the same enums from then on.

What an ``Assertion`` row holds by relation (``object_label``; ``properties`` of the object node):

- HAS_ALIAS → Alias: ``kind`` (AliasKind). Identifiers (CAS, EC, formula …) are aliases of that kind.
- HAS_MEASUREMENT → Measurement: ``property`` (Property). ``value`` = {"operator": "=|<|<=|>|>=|~",
  "min", "max", "unit", "si": {"min", "max", "unit"}, "conditions"}; a plain value has min == max,
  "<" has only max, ">" only min. A textual property has ``value`` = {"text"}.
- HAS_LIMIT → ExposureLimit: ``kind`` (PC-TWA, PC-STEL, MAC, IDLH, TLV-, PEL- or REL-TWA, -STEL, -C; without a
  body TWA, STEL, C), ``jurisdiction``.
- HAS_TOXICITY → Toxicity: ``endpoint`` (LD50 …), ``species``, ``route``; or endpoint "carcinogenicity"
  with ``value`` = {"text"}.
- CLASSIFIED_AS → HazardClass: ``hazard`` (class slug), ``category``, ``route``, ``scheme``, ``zh``, ``en``.
- HAS_H, HAS_P, SHOWS_PICTOGRAM: ``code``. SHIPPED_AS → TransportEntry: ``un``, ``hazard_class``,
  ``packing_group``. RATED → NfpaRating: ``health``, ``fire``, ``instability``, ``special``.
- FIRST_AID, SPILL_ACTION, STORE_UNDER, REQUIRES_PPE, DISPOSED_BY → Measure: ``kind`` (MeasureKind),
  ``text`` (the instruction; equal to the quoted words), for first aid ``route`` (Route).
- EXTINGUISHED_BY, NOT_EXTINGUISHED_BY → Measure of kind extinguishing_agent: ``zh``, ``en`` names.
- INCOMPATIBLE_WITH, STORE_APART_FROM, DECOMPOSES_TO, BURNS_TO, MEMBER_OF → Substance or ReactiveGroup
  (``zh``, ``en`` names of the group). HAS_COMPONENT → Substance, ``value`` is its share.
- REGULATED_BY → Regulation: ``name``; ``value`` is a threshold where given. USED_FOR → Use: ``text``.
- Any of them may carry ``properties["listing"]`` = id of the complete list that it is a member of,
  and ``properties["comparison"]`` = {"source": "agree|differ|conflict"} against reference data.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from corpus.ids import canonical_json, digest

SCHEMA_VERSION = "1"


class NodeLabel(StrEnum):
    """Labels of graph nodes."""

    ASSERTION = "Assertion"
    LISTING = "Listing"
    SUBSTANCE = "Substance"
    ALIAS = "Alias"
    MIXTURE = "Mixture"
    HAZARD_CLASS = "HazardClass"
    HAZARD_STATEMENT = "HazardStatement"
    PRECAUTIONARY_STATEMENT = "PrecautionaryStatement"
    PICTOGRAM = "Pictogram"
    TRANSPORT_ENTRY = "TransportEntry"
    NFPA_RATING = "NfpaRating"
    MEASUREMENT = "Measurement"
    EXPOSURE_LIMIT = "ExposureLimit"
    TOXICITY = "Toxicity"
    MEASURE = "Measure"
    REACTIVE_GROUP = "ReactiveGroup"
    REGULATION = "Regulation"
    USE = "Use"
    DOCUMENT = "Document"
    SECTION = "Section"


class Relation(StrEnum):
    """Directed relations. The last four link assertions and listings and are never asserted by text."""

    HAS_ALIAS = "HAS_ALIAS"
    HAS_COMPONENT = "HAS_COMPONENT"
    MEMBER_OF = "MEMBER_OF"
    CLASSIFIED_AS = "CLASSIFIED_AS"
    HAS_H = "HAS_H"
    HAS_P = "HAS_P"
    SHOWS_PICTOGRAM = "SHOWS_PICTOGRAM"
    SHIPPED_AS = "SHIPPED_AS"
    RATED = "RATED"
    HAS_MEASUREMENT = "HAS_MEASUREMENT"
    HAS_LIMIT = "HAS_LIMIT"
    HAS_TOXICITY = "HAS_TOXICITY"
    INCOMPATIBLE_WITH = "INCOMPATIBLE_WITH"
    DECOMPOSES_TO = "DECOMPOSES_TO"
    BURNS_TO = "BURNS_TO"
    EXTINGUISHED_BY = "EXTINGUISHED_BY"
    NOT_EXTINGUISHED_BY = "NOT_EXTINGUISHED_BY"
    FIRST_AID = "FIRST_AID"
    SPILL_ACTION = "SPILL_ACTION"
    STORE_UNDER = "STORE_UNDER"
    STORE_APART_FROM = "STORE_APART_FROM"
    REQUIRES_PPE = "REQUIRES_PPE"
    DISPOSED_BY = "DISPOSED_BY"
    REGULATED_BY = "REGULATED_BY"
    USED_FOR = "USED_FOR"
    STATED_IN = "STATED_IN"
    SUBJECT = "SUBJECT"
    OBJECT = "OBJECT"
    LISTS = "LISTS"


class Polarity(StrEnum):
    """Whether the source says that it is so, or that it is not so."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Modality(StrEnum):
    """How the source puts it: a fact, a possibility or a duty."""

    IS = "is"
    MAY = "may"
    MUST = "must"


class AliasKind(StrEnum):
    """What an Alias node's text is (``properties["kind"]``): a name or an identifier."""

    NAME = "name"
    TRADE = "trade"
    CAS = "cas"
    EC = "ec"
    FORMULA = "formula"
    INCHIKEY = "inchikey"
    CID = "cid"
    RTECS = "rtecs"
    CATALOGUE = "catalogue"  # number in the Chinese catalogue of hazardous chemicals


NAME_KINDS = frozenset({AliasKind.NAME, AliasKind.TRADE})
# one pure substance has exactly one of these, so another value proves a "no" (design, section 5)
FUNCTIONAL_ALIASES = frozenset({AliasKind.CAS, AliasKind.FORMULA})


class DropReason(StrEnum):
    """Why a candidate assertion was not kept."""

    NOT_IN_SCHEMA = "not_in_schema"
    BAD_ENDPOINT = "bad_endpoint"
    REVERSED = "reversed"
    MISSING_SUBJECT = "missing_subject"
    AMBIGUOUS_SUBJECT = "ambiguous_subject"
    MISSING_VALUE = "missing_value"
    NO_DATA = "no_data"
    BAD_QUANTITY = "bad_quantity"
    WRONG_DIMENSION = "wrong_dimension"
    OUT_OF_RANGE = "out_of_range"
    BAD_IDENTIFIER = "bad_identifier"
    QUOTE_NOT_FOUND = "quote_not_found"
    NUMBER_NOT_IN_QUOTE = "number_not_in_quote"
    UNIT_NOT_IN_QUOTE = "unit_not_in_quote"
    OBJECT_NOT_IN_QUOTE = "object_not_in_quote"
    POLARITY_MISMATCH = "polarity_mismatch"
    POLARITY_UNCLEAR = "polarity_unclear"
    NOT_ON_PAGE = "not_on_page"
    SELF_LOOP = "self_loop"
    MODEL_REJECTED = "model_rejected"
    GIVES_ORDERS = "gives_orders"  # its quote is page text that addresses a language model


@dataclass(frozen=True)
class RelationSpec:
    """What a relation may join and how it is called.

    ``functional``: a subject has at most one object for the same conditions and
    source. ``symmetric``: stored once, ends ordered by key. ``zh``/``en`` are
    noun phrases for templates ("禁配物", "incompatible materials"). ``listed`` (of
    added relations): a labelled value is a list with an object an item.
    """

    subjects: frozenset[NodeLabel]
    objects: frozenset[NodeLabel]
    zh: str
    en: str
    functional: bool = False
    symmetric: bool = False
    listed: bool = True


_MATTER = frozenset({NodeLabel.SUBSTANCE, NodeLabel.MIXTURE})
_OTHERS = frozenset({NodeLabel.SUBSTANCE, NodeLabel.REACTIVE_GROUP})
_L = NodeLabel


def _spec(
    objects: NodeLabel | frozenset[NodeLabel], zh: str, en: str, *, functional: bool = False
) -> RelationSpec:
    ends = frozenset({objects}) if isinstance(objects, NodeLabel) else objects
    return RelationSpec(_MATTER, ends, zh, en, functional)


_RELATIONS: dict[Relation, RelationSpec] = {
    Relation.HAS_ALIAS: _spec(_L.ALIAS, "别名", "alias"),
    Relation.HAS_COMPONENT: _spec(_L.SUBSTANCE, "组分", "component"),
    Relation.MEMBER_OF: _spec(_L.REACTIVE_GROUP, "所属类别", "chemical class"),
    Relation.CLASSIFIED_AS: _spec(_L.HAZARD_CLASS, "危险性类别", "hazard classification"),
    Relation.HAS_H: _spec(_L.HAZARD_STATEMENT, "危险性说明", "hazard statement"),
    Relation.HAS_P: _spec(_L.PRECAUTIONARY_STATEMENT, "防范说明", "precautionary statement"),
    Relation.SHOWS_PICTOGRAM: _spec(_L.PICTOGRAM, "象形图", "GHS pictogram"),
    Relation.SHIPPED_AS: _spec(_L.TRANSPORT_ENTRY, "运输条目", "transport entry"),
    Relation.RATED: _spec(_L.NFPA_RATING, "NFPA 704 等级", "NFPA 704 rating"),
    Relation.HAS_MEASUREMENT: _spec(_L.MEASUREMENT, "理化特性", "property value"),
    Relation.HAS_LIMIT: _spec(_L.EXPOSURE_LIMIT, "接触限值", "exposure limit"),
    Relation.HAS_TOXICITY: _spec(_L.TOXICITY, "毒性数据", "toxicity value"),
    Relation.INCOMPATIBLE_WITH: RelationSpec(
        _MATTER, _OTHERS, "禁配物", "incompatible materials", symmetric=True
    ),
    Relation.DECOMPOSES_TO: _spec(_OTHERS, "分解产物", "decomposition products"),
    Relation.BURNS_TO: _spec(_OTHERS, "燃烧产物", "combustion products"),
    Relation.EXTINGUISHED_BY: _spec(_L.MEASURE, "灭火剂", "suitable extinguishing media"),
    Relation.NOT_EXTINGUISHED_BY: _spec(_L.MEASURE, "不适用的灭火剂", "unsuitable extinguishing media"),
    Relation.FIRST_AID: _spec(_L.MEASURE, "急救措施", "first aid"),
    Relation.SPILL_ACTION: _spec(_L.MEASURE, "泄漏应急处理", "spill response"),
    Relation.STORE_UNDER: _spec(_L.MEASURE, "储存条件", "storage conditions"),
    Relation.STORE_APART_FROM: _spec(_OTHERS, "应分开存放的物质", "materials to be stored separately"),
    Relation.REQUIRES_PPE: _spec(_L.MEASURE, "个体防护", "personal protection"),
    Relation.DISPOSED_BY: _spec(_L.MEASURE, "废弃处置", "disposal"),
    Relation.REGULATED_BY: _spec(_L.REGULATION, "适用法规", "regulation"),
    Relation.USED_FOR: _spec(_L.USE, "用途", "use"),
}
RELATIONS: Mapping[Relation, RelationSpec] = MappingProxyType(_RELATIONS)
"""Relations that text can assert. STATED_IN, SUBJECT, OBJECT and LISTS belong to the graph model."""


class Property(StrEnum):
    """What a Measurement measures (``properties["property"]``)."""

    MELTING_POINT = "melting_point"
    BOILING_POINT = "boiling_point"
    FLASH_POINT = "flash_point"
    AUTOIGNITION_TEMPERATURE = "autoignition_temperature"
    DECOMPOSITION_TEMPERATURE = "decomposition_temperature"
    CRITICAL_TEMPERATURE = "critical_temperature"
    CRITICAL_PRESSURE = "critical_pressure"
    LOWER_EXPLOSIVE_LIMIT = "lower_explosive_limit"
    UPPER_EXPLOSIVE_LIMIT = "upper_explosive_limit"
    DENSITY = "density"
    RELATIVE_DENSITY = "relative_density"
    VAPOUR_DENSITY = "vapour_density"
    VAPOUR_PRESSURE = "vapour_pressure"
    MOLAR_MASS = "molar_mass"
    SOLUBILITY_IN_WATER = "solubility_in_water"
    PH = "ph"
    PKA = "pka"
    LOG_KOW = "log_kow"
    VISCOSITY = "viscosity"
    REFRACTIVE_INDEX = "refractive_index"
    HEAT_OF_COMBUSTION = "heat_of_combustion"
    MINIMUM_IGNITION_ENERGY = "minimum_ignition_energy"
    ODOUR_THRESHOLD = "odour_threshold"
    DIPOLE_MOMENT = "dipole_moment"
    SURFACE_TENSION = "surface_tension"
    THERMAL_CONDUCTIVITY = "thermal_conductivity"
    APPEARANCE = "appearance"
    ODOUR = "odour"


@dataclass(frozen=True)
class PropertySpec:
    """Names and unit of a property. ``dimension`` is a unit of the right kind ("degC"), "" none.

    ``textual``: the value is words (appearance). ``low``/``high``: a value
    outside, in SI units, is a misreading rather than a property of matter.
    """

    zh: str
    en: str
    dimension: str = ""
    textual: bool = False
    low: float | None = None
    high: float | None = None


_T: dict[str, Any] = {"dimension": "kelvin", "low": 0.0, "high": 6500.0}
_SHARE: dict[str, Any] = {"dimension": "percent", "low": 0.0, "high": 1.0}

_PROPERTIES: dict[Property, PropertySpec] = {
    Property.MELTING_POINT: PropertySpec("熔点", "melting point", **_T),
    Property.BOILING_POINT: PropertySpec("沸点", "boiling point", **_T),
    Property.FLASH_POINT: PropertySpec("闪点", "flash point", **_T),
    Property.AUTOIGNITION_TEMPERATURE: PropertySpec("自燃温度", "autoignition temperature", **_T),
    Property.DECOMPOSITION_TEMPERATURE: PropertySpec("分解温度", "decomposition temperature", **_T),
    Property.CRITICAL_TEMPERATURE: PropertySpec("临界温度", "critical temperature", **_T),
    Property.CRITICAL_PRESSURE: PropertySpec("临界压力", "critical pressure", "pascal"),
    Property.LOWER_EXPLOSIVE_LIMIT: PropertySpec("爆炸下限", "lower explosive limit", **_SHARE),
    Property.UPPER_EXPLOSIVE_LIMIT: PropertySpec("爆炸上限", "upper explosive limit", **_SHARE),
    Property.DENSITY: PropertySpec("密度", "density", "kg/m**3", low=0.0, high=25000.0),
    Property.RELATIVE_DENSITY: PropertySpec("相对密度（水=1）", "relative density (water = 1)", high=25.0),
    Property.VAPOUR_DENSITY: PropertySpec("相对蒸气密度（空气=1）", "vapour density (air = 1)", high=30.0),
    Property.VAPOUR_PRESSURE: PropertySpec("饱和蒸气压", "vapour pressure", "pascal"),
    Property.MOLAR_MASS: PropertySpec("摩尔质量", "molar mass", "kg/mol", low=0.001, high=1000.0),
    Property.SOLUBILITY_IN_WATER: PropertySpec("水中溶解度", "solubility in water", "kg/m**3"),
    Property.PH: PropertySpec("pH 值", "pH", low=-2.0, high=16.0),
    Property.PKA: PropertySpec("酸度系数 pKa", "acidity (pKa)", low=-30.0, high=60.0),
    Property.LOG_KOW: PropertySpec(
        "正辛醇/水分配系数", "octanol/water partition (log Kow)", low=-10, high=20
    ),
    Property.VISCOSITY: PropertySpec("黏度", "viscosity", "Pa*s"),
    Property.REFRACTIVE_INDEX: PropertySpec("折射率", "refractive index", low=1.0, high=5.0),
    Property.HEAT_OF_COMBUSTION: PropertySpec("燃烧热", "heat of combustion", "J/mol"),
    Property.MINIMUM_IGNITION_ENERGY: PropertySpec("最小点火能", "minimum ignition energy", "joule"),
    Property.ODOUR_THRESHOLD: PropertySpec("嗅阈", "odour threshold", "percent"),
    Property.DIPOLE_MOMENT: PropertySpec("偶极矩", "dipole moment", "debye"),
    Property.SURFACE_TENSION: PropertySpec("表面张力", "surface tension", "N/m"),
    Property.THERMAL_CONDUCTIVITY: PropertySpec("热导率", "thermal conductivity", "W/m/K"),
    Property.APPEARANCE: PropertySpec("外观与性状", "appearance", textual=True),
    Property.ODOUR: PropertySpec("气味", "odour", textual=True),
}
PROPERTIES: Mapping[Property, PropertySpec] = MappingProxyType(_PROPERTIES)


def property_spec(code: object) -> PropertySpec | None:
    """The property that a fact's ``properties["property"]`` names; None for what is none."""
    return next((spec for member, spec in PROPERTIES.items() if member == code), None)


class MeasureKind(StrEnum):
    """What a Measure node instructs (``properties["kind"]``)."""

    FIRST_AID = "first_aid"
    AGENT = "extinguishing_agent"
    FIRE_FIGHTING = "fire_fighting"
    SPILL = "spill"
    STORAGE = "storage"
    PPE = "ppe"
    DISPOSAL = "disposal"


class Route(StrEnum):
    """Routes of exposure for first aid and toxicity (``conditions["route"]``)."""

    INHALATION = "inhalation"
    SKIN = "skin"
    EYES = "eyes"
    INGESTION = "ingestion"


ROUTE_WORDING: Mapping[Route, tuple[str, str]] = {
    Route.INHALATION: ("吸入", "inhalation"),
    Route.SKIN: ("皮肤接触", "skin contact"),
    Route.EYES: ("眼睛接触", "eye contact"),
    Route.INGESTION: ("食入", "ingestion"),
}

# The nine GHS pictograms (UN GHS Rev. 9, annex 1): code → (zh, en)
PICTOGRAMS: Mapping[str, tuple[str, str]] = {
    "GHS01": ("爆炸弹", "exploding bomb"),
    "GHS02": ("火焰", "flame"),
    "GHS03": ("圆圈上方火焰", "flame over circle"),
    "GHS04": ("高压气瓶", "gas cylinder"),
    "GHS05": ("腐蚀", "corrosion"),
    "GHS06": ("骷髅和交叉骨", "skull and crossbones"),
    "GHS07": ("感叹号", "exclamation mark"),
    "GHS08": ("健康危害", "health hazard"),
    "GHS09": ("环境", "environment"),
}


# --- members that a user's file adds (kg/extension.py) ------------------------

_Member = TypeVar("_Member", bound=StrEnum)
ADDED_LABELS: dict[NodeLabel, tuple[str, str]] = {}
"""Labels added by a file, with their zh and en names. Their nodes hold ``text``."""


def _grown(vocabulary: type[_Member], value: str) -> _Member:
    """A further member of an enum. Iteration, look-up by value and isinstance then know it like any other."""
    member = str.__new__(vocabulary, value)
    member._name_ = member._value_ = value
    vocabulary._member_map_[value] = member
    vocabulary._member_names_.append(value)
    vocabulary._value2member_map_[value] = member
    return member


def _shrink(vocabulary: type[StrEnum], member: StrEnum) -> None:
    vocabulary._member_map_.pop(member.name, None)
    vocabulary._member_names_.remove(member.name)
    vocabulary._value2member_map_.pop(member.value, None)


def add_label(value: str, zh: str, en: str) -> NodeLabel:
    """A further node label. The caller has checked the name (``kg/extension.py``)."""
    label = _grown(NodeLabel, value)
    ADDED_LABELS[label] = (zh, en)
    return label


def add_relation(value: str, spec: RelationSpec) -> Relation:
    """A further relation that text can assert."""
    relation = _grown(Relation, value)
    _RELATIONS[relation] = spec
    return relation


def add_property(value: str, spec: PropertySpec) -> Property:
    """A further property of matter."""
    added = _grown(Property, value)
    _PROPERTIES[added] = spec
    return added


def remove_added(members: Iterable[StrEnum]) -> None:
    """Take added members out again."""
    for member in members:
        if isinstance(member, NodeLabel):
            ADDED_LABELS.pop(member, None)
        elif isinstance(member, Relation):
            _RELATIONS.pop(member, None)
        elif isinstance(member, Property):
            _PROPERTIES.pop(member, None)
        _shrink(type(member), member)


def added_key(label: NodeLabel, text: str) -> str:
    """Key of a node under an added label: its normalised text."""
    return f"{label.value.lower()}:{digest('added', label.value, _plain(text))[:24]}"


# --- keys: one per label, built from identity -------------------------------


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def substance_key(cas: str | None = None, *, inchikey: str = "", ec: str = "", name: str = "") -> str:
    """CAS number, else InChIKey, else EC number, else a key minted from the normalised name."""
    if cas:
        return cas
    if inchikey:
        return inchikey
    if ec:
        return f"EC:{ec}"
    return f"name:{digest('substance', _plain(name))[:24]}"


def mixture_key(name: str) -> str:
    """Key of a mixture or solution: by its normalised name."""
    return f"mixture:{digest('mixture', _plain(name))[:24]}"


def alias_key(text: str, kind: AliasKind | str) -> str:
    """Identifiers are their own key ("cas:67-64-1"); names are hashed without their language."""
    value = str(kind)
    if value in {str(k) for k in NAME_KINDS}:
        return f"alias:{digest('alias', _plain(text))[:24]}"
    return f"{value}:{' '.join(unicodedata.normalize('NFKC', text).split())}"[:120]


def hazard_class_key(hazard: str, category: str, *, route: str = "", scheme: str = "ghs") -> str:
    """ "flammable_liquids/2", with route or organ and another scheme where stated."""
    return "/".join(part for part in (hazard, category, route, "" if scheme == "ghs" else scheme) if part)


def transport_key(un: str, hazard_class: str = "", packing_group: str = "") -> str:
    """ "UN1090/3/II": one UN number can have several entries."""
    return f"UN{un}/{hazard_class or '-'}/{packing_group or '-'}"


def nfpa_key(health: str, fire: str, instability: str, special: str = "") -> str:
    """ "NFPA:1-3-0-": the four fields of the diamond ("" where not stated)."""
    return f"NFPA:{health}-{fire}-{instability}-{special}"


def value_key(label: NodeLabel, subject: str, properties: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """Key of a Measurement, ExposureLimit or Toxicity: it belongs to its subject's key."""
    core = {
        name: value[name]
        for name in ("operator", "min", "max", "unit", "conditions", "text")
        if name in value
    }
    kind = {name: properties[name] for name in sorted(properties) if name in _VALUE_IDENTITY}
    return f"{label.value.lower()}:{digest(subject, canonical_json(kind), canonical_json(core))[:24]}"


_VALUE_IDENTITY = frozenset({"property", "kind", "jurisdiction", "year", "endpoint", "species", "route"})


def measure_key(kind: MeasureKind | str, text: str, code: str = "") -> str:
    """A coded measure ("agent:co2") meets across languages; any other is its normalised text."""
    return code or f"{kind}:{digest('measure', _plain(text))[:24]}"


def use_key(text: str) -> str:
    """Key of a use: its normalised text."""
    return f"use:{digest('use', _plain(text))[:24]}"


def regulation_key(name: str) -> str:
    """Key of a regulation or list: its number where it has one ("GB 18218"), else its name."""
    return f"reg:{_plain(name).replace(' ', '-')}"[:120]


def listing_key(document_id: str, subject: str, relation: Relation | str, start: int) -> str:
    """Key of a list that a source gives as complete."""
    return f"listing:{digest('listing', document_id, subject, str(relation), str(start))[:24]}"

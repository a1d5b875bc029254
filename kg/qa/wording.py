"""Templates that word questions and answers in Chinese and English, and values as words.

The graph decides what is asked and what the answer is; a template only says it.
Raise ``TEMPLATE_VERSION`` with every change of a wording.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from corpus.ids import digest
from corpus.sections import SdsSection
from kg.qa.facts import Fact
from kg.qa.records import Language
from kg.schema import PROPERTIES, RELATIONS, ROUTE_WORDING, Property, Relation, Route

TEMPLATE_VERSION = "3"

TEMPLATES: Mapping[str, Mapping[Language, tuple[str, ...]]] = {
    # single-hop: {source} is "" or "根据《…》，" / " according to “…”"
    "value": {
        "zh": ("{source}{name}的{what}是多少？", "{source}请问{name}的{what}是多少？"),
        "en": ("What is the {what} of {name}{source}?", "What {what} does {name} have{source}?"),
    },
    "identifier": {
        "zh": ("{source}{name}的{what}是什么？",),
        "en": ("What is the {what} of {name}{source}?",),
    },
    "text_value": {
        "zh": ("{source}{name}的{what}是怎样的？",),
        "en": ("How is the {what} of {name} described{source}?",),
    },
    "shipped": {
        "zh": ("{source}{name}按哪个联合国编号（UN）运输？", "{source}{name}的联合国编号（UN）是什么？"),
        "en": ("Under which UN number is {name} shipped{source}?",),
    },
    "first_aid": {
        "zh": ("{source}{name}{route}后应如何急救？", "{source}发生{name}{route}时，应采取哪些急救措施？"),
        "en": ("What first aid should be given after {route} of {name}{source}?",),
    },
    "first_aid_contact": {
        "zh": ("{source}{route}{name}后应如何急救？",),
        "en": ("What first aid should be given after {route} with {name}{source}?",),
    },
    "storage": {
        "zh": ("{source}{name}应如何储存？", "{source}储存{name}有哪些要求？"),
        "en": ("How should {name} be stored{source}?",),
    },
    "spill": {
        "zh": ("{source}{name}泄漏时应如何处理？",),
        "en": ("What should be done when {name} is spilled or released{source}?",),
    },
    "ppe": {
        "zh": ("{source}操作{name}时应采取哪些个体防护？",),
        "en": ("What personal protection is required when handling {name}{source}?",),
    },
    "disposal": {
        "zh": ("{source}{name}的废弃物应如何处置？",),
        "en": ("How should waste of {name} be disposed of{source}?",),
    },
    # aggregative: the scope is one list of one document
    "list": {
        "zh": ("{source}{where}列出的{name}的{what}有哪些？",),
        "en": ("Which {what} does {title} list for {name}{where}?",),
    },
    "count": {
        "zh": ("{source}{where}共列出{name}的多少项{what}？",),
        "en": ("How many {what} does {title} list for {name}{where}?",),
    },
    "both": {
        "zh": (
            "《{title}》中{name}的{what}与《{other_title}》中{other}的{what}，哪些是两份文件共同列出的？",
        ),
        "en": ("Which {what} are listed both for {name} in {title} and for {other} in {other_title}?",),
    },
    "highest": {
        "zh": ("在{names}之中，哪一种物质的{what}最高？",),
        "en": ("Which of {names} has the highest {what}?",),
    },
    "lowest": {
        "zh": ("在{names}之中，哪一种物质的{what}最低？",),
        "en": ("Which of {names} has the lowest {what}?",),
    },
    "compare": {
        "zh": ("{name}和{other}相比，哪一种的{what}更高？",),
        "en": ("Which has the higher {what}, {name} or {other}?",),
    },
    # boolean
    "is_listed": {
        "zh": ("《{title}》{where}是否将{item}列为{name}的{what}？",),
        "en": ("Does {title} list {item} among the {what} of {name}{where}?",),
    },
    "is_classified": {
        "zh": ("《{title}》{where}是否将{name}分类为“{item}”？",),
        "en": ("Does {title} classify {name} as {item}{where}?",),
    },
    "is_functional": {
        "zh": ("{name}的{what}是 {item} 吗？",),
        "en": ("Is {item} the {what} of {name}?",),
    },
    "can_extinguish": {
        "zh": ("{source}{name}着火时可以使用{item}灭火吗？",),
        "en": ("Can {item} be used to extinguish a fire of {name}{source}?",),
    },
    "is_stated": {
        "zh": ("{source}{item}是{name}的{what}吗？",),
        "en": ("Do the {what} of {name} include {item}{source}?",),
    },
    "is_higher": {
        "zh": ("{name}的{what}高于{other}吗？",),
        "en": ("Is the {what} of {name} higher than that of {other}?",),
    },
    # multi-hop
    "entry_value": {
        "zh": ("本知识库中按 {entry} 运输的物质，其{what}是多少？",),
        "en": ("What is the {what} of the substance that this knowledge base ships as {entry}?",),
    },
    "entry_text": {
        "zh": ("本知识库中按 {entry} 运输的物质，{ask}？",),
        "en": ("For the substance that this knowledge base ships as {entry}: {ask}?",),
    },
    "product_value": {
        "zh": ("本知识库所载{name}的{link}（一种物质），其{what}是多少？",),
        "en": ("What is the {what} of the substance given in this knowledge base as {link} of {name}?",),
    },
    "product_entry": {
        "zh": ("本知识库所载{name}的{link}（一种物质），按哪个联合国编号（UN）运输？",),
        "en": (
            "Under which UN number is the substance shipped that this knowledge base gives as {link} of {name}?",
        ),
    },
    "class_member": {
        "zh": (
            "本知识库中，哪种物质属于{name}的禁配物类别？",
            "本知识库中，哪些物质属于{name}的禁配物类别？",
        ),
        "en": (
            "Which substance in this knowledge base belongs to a class that {name} is incompatible with?",
            "Which substances in this knowledge base belong to classes that {name} is incompatible with?",
        ),
    },
    "shared": {
        "zh": (
            "本知识库中，哪种物质与{name}一样{first}，并且{second}？",
            "本知识库中，哪些物质与{name}一样{first}，并且{second}？",
        ),
        "en": (
            "Which other substance in this knowledge base, like {name}, {first} and also {second}?",
            "Which other substances in this knowledge base, like {name}, {first} and also {second}?",
        ),
    },
}
PLURAL = frozenset({"class_member", "shared"})
"""Templates whose two variants are singular and plural, not alternatives."""

# what a shared neighbour says of a substance: relation → (zh, en singular, en plural)
HAVING: Mapping[Relation, tuple[str, str, str]] = {
    Relation.HAS_H: (
        "带有危险性说明 {item}",
        "carries hazard statement {item}",
        "carry hazard statement {item}",
    ),
    Relation.CLASSIFIED_AS: ("被分类为{item}", "is classified as {item}", "are classified as {item}"),
    Relation.SHOWS_PICTOGRAM: ("带有象形图 {item}", "shows pictogram {item}", "show pictogram {item}"),
    Relation.INCOMPATIBLE_WITH: (
        "以{item}为禁配物",
        "is incompatible with {item}",
        "are incompatible with {item}",
    ),
    Relation.NOT_EXTINGUISHED_BY: (
        "着火时不宜用{item}灭火",
        "should not be extinguished with {item}",
        "should not be extinguished with {item}",
    ),
    Relation.EXTINGUISHED_BY: (
        "着火时可用{item}灭火",
        "can be extinguished with {item}",
        "can be extinguished with {item}",
    ),
    Relation.STORE_APART_FROM: (
        "应与{item}分开存放",
        "is to be stored apart from {item}",
        "are to be stored apart from {item}",
    ),
}

KIND_WORDING: Mapping[str, tuple[str, str]] = {
    "cas": ("CAS 号", "CAS number"),
    "ec": ("EC 号", "EC number"),
    "formula": ("分子式", "molecular formula"),
    "inchikey": ("InChIKey", "InChIKey"),
    "cid": ("PubChem CID", "PubChem CID"),
    "rtecs": ("RTECS 号", "RTECS number"),
    "catalogue": ("危险化学品目录序号", "number in the Chinese catalogue of hazardous chemicals"),
}
_CONDITION_ZH: Mapping[str, str] = {
    "closed cup": "闭杯", "open cup": "开杯", "volume": "体积分数", "mass": "质量分数", "anhydrous": "无水",
    "rat": "大鼠", "mouse": "小鼠", "rabbit": "兔", "guinea pig": "豚鼠", "dog": "狗", "human": "人", "cat": "猫",
    "fish": "鱼", "oral": "经口", "dermal": "经皮", "inhalation": "吸入", "intraperitoneal": "腹腔注射",
    "intravenous": "静脉注射",
}  # fmt: skip
_CONDITION_EN: Mapping[str, str] = {"volume": "by volume", "mass": "by mass"}
_OPERATORS: Mapping[str, tuple[str, str]] = {
    "=": ("", ""),
    "~": ("约 ", "about "),
    "<": ("小于 ", "below "),
    "<=": ("不高于 ", "at most "),
    ">": ("大于 ", "above "),
    ">=": ("不低于 ", "at least "),
}
# conditions under which a property is stated
_T, _P = frozenset({"temperature"}), frozenset({"pressure"})
_CONDITIONS: Mapping[Property, frozenset[str]] = {
    Property.FLASH_POINT: frozenset({"method"}),
    Property.BOILING_POINT: _P,
    Property.MELTING_POINT: frozenset({"form"}),
    Property.LOWER_EXPLOSIVE_LIMIT: frozenset({"basis"}),
    Property.UPPER_EXPLOSIVE_LIMIT: frozenset({"basis"}),
    Property.DENSITY: _T | _P,
    Property.RELATIVE_DENSITY: _T,
    Property.VAPOUR_DENSITY: _T,
    Property.VAPOUR_PRESSURE: _T,
    Property.SOLUBILITY_IN_WATER: _T,
    Property.PH: frozenset({"concentration", "temperature"}),
    Property.VISCOSITY: _T,
    Property.REFRACTIVE_INDEX: _T,
    Property.SURFACE_TENSION: _T,
    Property.THERMAL_CONDUCTIVITY: _T,
}
_UNWORDABLE = frozenset({"note"})


def word(template: str, language: Language, variant: str | int, **slots: str) -> str:
    """Fill a template. ``variant``: an index, or any text that picks one (the same for the same text)."""
    variants = TEMPLATES[template][language]
    index = variant if isinstance(variant, int) else int(digest("variant", variant)[:8], 16)
    text = variants[index % len(variants)].format(**slots)
    return text if language == "zh" else text[0].upper() + text[1:]


def list_words(words: Sequence[str], language: Language) -> str:
    """ "甲、乙和丙" / "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    if language == "zh":
        return "、".join(words[:-1]) + "和" + words[-1]
    return ", ".join(words[:-1]) + " and " + words[-1]


def joined(words: Sequence[str], language: Language) -> str:
    """The members of an answer list."""
    return ("、" if language == "zh" else "; ").join(words)


def source_words(title: str, language: Language) -> str:
    """ "根据《…》，" (put first) or " according to “…”" (put last); "" for no title."""
    if not title:
        return ""
    return f"根据《{title}》，" if language == "zh" else f" according to “{title}”"


def quoted(title: str, language: Language) -> str:
    """A title inside a sentence."""
    return title if language == "zh" else f"“{title}”"


def where_words(section: int | None, language: Language) -> str:
    """ "“稳定性和反应性”部分" / " in its part on stability and reactivity"; "" where unknown.

    Without the number, since articles have the matter and no numbered section.
    """
    if section is None:
        return ""
    name = SdsSection(section).title(language)
    return f"“{name}”部分" if language == "zh" else f" in its part on {name[0].lower()}{name[1:]}"


def relation_words(relation: Relation, language: Language) -> str:
    """Noun phrase of a relation; plural in English, since lists are asked for."""
    spec = RELATIONS[relation]
    if language == "zh":
        return spec.zh
    if relation == Relation.HAS_ALIAS:
        return "aliases"
    return spec.en if spec.en.split()[0].endswith("s") or spec.en.endswith(("s", "media")) else spec.en + "s"


def property_words(name: str, conditions: Mapping[str, Any], language: Language) -> str | None:
    """ "闪点（闭杯）" / "flash point (closed cup)"; None where a condition cannot be worded.

    A condition that has no meaning for the property (the pressure of a
    neighbouring value read as that of an autoignition temperature) has none.
    """
    spec = PROPERTIES[Property(name)]
    said = condition_words(conditions, language)
    if said is None or not set(conditions) <= _CONDITIONS.get(Property(name), frozenset()):
        return None
    if language == "zh":
        return spec.zh + (f"（{'，'.join(said)}）" if said else "")
    return spec.en + (f" ({', '.join(said)})" if said else "")


def condition_words(conditions: Mapping[str, Any], language: Language) -> list[str] | None:
    """Conditions in words, ordered by name; None where one has no safe wording."""
    said = []
    for name, value in sorted(conditions.items()):
        text = str(value)
        if name in _UNWORDABLE or (
            language == "en" and not text.isascii() and "°" not in text and "℃" not in text
        ):
            return None
        if language == "zh":
            text = _CONDITION_ZH.get(text, text)
            if (
                text.isascii()
                and any(c.isalpha() for c in text)
                and name not in {"temperature", "pressure", "duration", "concentration"}
            ):
                return None
        else:
            text = _CONDITION_EN.get(text, text)
        said.append(text)
    return said


def condition_as_said(name: str, value: Any, language: Language) -> str:
    """A condition in words; as the source has it where there is no safe wording."""
    return (condition_words({name: value}, language) or [str(value)])[0]


def value_words(value: Mapping[str, Any], language: Language) -> str | None:
    """A quantity in words: "-20 °C", "1.5–15 %", "小于 5 mg/L"; None for what cannot be said safely."""
    if "text" in value:
        return None
    low, high, unit = value.get("min"), value.get("max"), str(value.get("unit") or "")
    operator = str(value.get("operator") or "=")
    if operator not in _OPERATORS:
        return None
    prefix = _OPERATORS[operator][0 if language == "zh" else 1]
    numbers = [number for number in (low, high) if number is not None]
    if not numbers:
        return None
    if len(numbers) == 2 and low != high:
        text = (
            f"{number_words(numbers[0])}～{number_words(numbers[1])}"
            if language == "zh"
            else f"{number_words(numbers[0])} to {number_words(numbers[1])}"
        )
    else:
        text = number_words(numbers[0])
    return prefix + text + (f" {unit}" if unit not in {"", "1"} else "")


def number_words(number: float) -> str:
    """A number without loss: "56", "-20", "0.791", "1e-05"."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def route_words(route: str, language: Language) -> str | None:
    """A route of exposure in words."""
    if route not in {r.value for r in Route}:
        return None
    return ROUTE_WORDING[Route(route)][0 if language == "zh" else 1]


def yes_no(yes: bool, language: Language) -> str:
    """The Boolean answers."""
    if language == "zh":
        return "是" if yes else "否"
    return "Yes" if yes else "No"


def conditions_of(fact: Fact) -> Mapping[str, Any]:
    """Conditions of a fact's value."""
    found = fact.value.get("conditions") or {}
    return found if isinstance(found, dict) else dict(json.loads(str(found)))

"""Documents with assertions in their real shape, for tests of the graph and of questions.

Every fact's quote is looked up in the document's text, so spans are true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, Entity, EntityAlias
from corpus.ids import digest, document_id, version_id
from corpus.sections import SdsSection
from kg.schema import (
    AliasKind,
    MeasureKind,
    NodeLabel,
    Relation,
    alias_key,
    hazard_class_key,
    listing_key,
    measure_key,
    substance_key,
    transport_key,
    value_key,
)

L, R = NodeLabel, Relation


@dataclass
class Sheet:
    """A document under construction: sections of lines, and facts quoted from them."""

    title: str
    language: str
    source: str = "sample"
    url: str = ""
    sections: list[tuple[int | None, str, list[str]]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return document_id(self.url or self.title)

    def line(self, section: int | None, text: str) -> str:
        if not self.sections or self.sections[-1][0] != section:
            heading = SdsSection(section).title(self.language) if section else "Summary"
            self.sections.append((section, heading, []))
        self.sections[-1][2].append(text)
        return text

    def fact(
        self, subject_key: str, relation: Relation, label: NodeLabel, key: str, quote: str, **more: Any
    ) -> None:
        section = self.sections[-1][0]
        self.facts.append(
            {
                "subject_key": subject_key,
                "relation": relation,
                "object_label": label,
                "object_key": key,
                "quote": quote,
                "section": section,
                **more,
            }
        )

    def text(self) -> tuple[str, list[dict[str, Any]]]:
        parts, spans, at = [], [], 0
        for section, heading, lines in self.sections:
            block = f"## {heading}\n\n" + "\n".join(lines) + "\n\n"
            spans.append(
                {"start": at, "end": at + len(block), "heading": heading, "level": 2, "sds": section}
            )
            parts.append(block)
            at += len(block)
        return "".join(parts), spans

    def rows(self) -> tuple[Document, list[Assertion]]:
        text, sections = self.text()
        version = version_id(self.id, text)
        url = self.url or f"http://sample.test/{self.id[:8]}"
        document = Document(
            document_id=self.id,
            page_id=self.id,
            source=self.source,
            url=url,
            identity=url,
            kind="page",
            title=self.title,
            language=self.language,
            licence="made up",
            state="kept",
            version_id=version,
            text=text,
            cleaned_text=text,
            sections=sections,
            blocks=[],
            flags=[],
            score=4.0,
        )
        return document, [self._assertion(text, version, fact) for fact in self.facts]

    def _assertion(self, text: str, version: str, fact: dict[str, Any]) -> Assertion:
        start = text.index(fact["quote"])
        properties = dict(fact.get("properties", {}))
        if (line := fact.get("listing_line")) is not None:
            properties["listing"] = listing_key(
                self.id, fact["subject_key"], fact["relation"], text.index(line)
            )
        given = {
            name: value
            for name, value in fact.items()
            if name not in {"properties", "listing_line", "subject", "object"}
        }
        return Assertion(
            assertion_id=digest(
                "assertion",
                version,
                fact["relation"],
                fact["object_key"],
                fact["subject_key"],
                str(start),
                fact.get("polarity", "positive"),
            ),
            document_id=self.id,
            version_id=version,
            state="kept",
            subject=fact.get("subject", fact["subject_key"]),
            object=fact.get("object", fact["quote"]),
            start=start,
            end=start + len(fact["quote"]),
            language=self.language,
            extractor="offline",
            page_quote=fact["quote"],
            properties=properties,
            **given,
        )

    def store(self, session: Session) -> None:
        document, assertions = self.rows()
        session.merge(document)
        session.query(Assertion).filter(Assertion.document_id == self.id).delete()
        session.add_all(assertions)


def entity(
    session: Session, key: str, label: NodeLabel = L.SUBSTANCE, aliases: tuple[str, ...] = (), **names: str
) -> None:
    """A resolved entity with its names as aliases."""
    session.merge(Entity(key=key, label=label, names=names, properties={}))
    for language, text in [*names.items(), *(("zh", a) for a in aliases)]:
        session.merge(
            EntityAlias(
                alias_id=digest("alias", key, text),
                key=key,
                text=text,
                normalised=text.casefold(),
                language=language,
                kind="name",
                source="test",
                ambiguous=False,
            )
        )


def quantity(minimum: float, unit: str, si: float, si_unit: str, **conditions: str) -> dict[str, Any]:
    """A plain value in the shape of the quantity parser."""
    return {
        "operator": "=",
        "min": minimum,
        "max": minimum,
        "unit": unit,
        "si": {"min": si, "max": si, "unit": si_unit},
        "conditions": conditions,
    }


@dataclass(frozen=True)
class Made:
    """What the made-up data sheets say of a substance."""

    cas: str
    zh: str
    en: str
    un: str
    cls: str
    pg: str
    flash: float | None
    boiling: float
    h: tuple[str, ...]
    incompatible: tuple[str, ...]
    fire: tuple[str, ...] = ("foam", "co2")
    not_fire: tuple[str, ...] = ("water_jet",)


GROUPS = {
    "oxidisers": ("强氧化剂", "strong oxidizing agents"),
    "acids": ("酸类", "acids"),
    "bases": ("碱类", "bases"),
    "halogens": ("卤素", "halogens"),
    "metals": ("活泼金属", "reactive metals"),
    "reducers": ("强还原剂", "strong reducing agents"),
    "water": ("水", "water"),
}
AGENTS = {
    "foam": ("抗溶性泡沫", "alcohol-resistant foam"),
    "co2": ("二氧化碳", "carbon dioxide"),
    "powder": ("干粉", "dry powder"),
    "water_jet": ("直流水", "water jet"),
}
MADE = (
    Made(
        "67-64-1",
        "丙酮",
        "Acetone",
        "1090",
        "3",
        "II",
        -20.0,
        56.0,
        ("H225", "H319", "H336"),
        ("oxidisers", "bases", "halogens"),
    ),
    Made(
        "67-56-1",
        "甲醇",
        "Methanol",
        "1230",
        "3",
        "II",
        11.0,
        64.7,
        ("H225", "H301", "H311", "H331", "H370"),
        ("oxidisers", "acids", "metals"),
    ),
    Made(
        "64-17-5",
        "乙醇",
        "Ethanol",
        "1170",
        "3",
        "II",
        13.0,
        78.3,
        ("H225", "H319"),
        ("oxidisers", "acids", "metals"),
    ),
    Made(
        "71-43-2",
        "苯",
        "Benzene",
        "1114",
        "3",
        "II",
        -11.0,
        80.1,
        ("H225", "H304", "H350"),
        ("oxidisers", "halogens"),
    ),
    Made(
        "108-88-3", "甲苯", "Toluene", "1294", "3", "II", 4.0, 110.6, ("H225", "H304", "H315"), ("oxidisers",)
    ),
    Made(
        "7664-93-9",
        "硫酸",
        "Sulfuric acid",
        "1830",
        "8",
        "II",
        None,
        337.0,
        ("H314",),
        ("bases", "metals", "reducers", "water"),
        ("powder", "co2"),
        ("water_jet",),
    ),
    Made(
        "1310-73-2",
        "氢氧化钠",
        "Sodium hydroxide",
        "1823",
        "8",
        "II",
        None,
        1388.0,
        ("H290", "H314"),
        ("acids", "metals", "water"),
        ("powder",),
        ("water_jet",),
    ),
    Made(
        "7697-37-2",
        "硝酸",
        "Nitric acid",
        "2031",
        "8",
        "II",
        None,
        83.0,
        ("H272", "H290", "H314"),
        ("bases", "metals", "reducers"),
        ("powder", "co2"),
        ("water_jet",),
    ),
    Made(
        "141-78-6",
        "乙酸乙酯",
        "Ethyl acetate",
        "1173",
        "3",
        "II",
        -4.0,
        77.1,
        ("H225", "H319", "H336"),
        ("oxidisers", "acids", "bases"),
    ),
    Made(
        "75-07-0",
        "乙醛",
        "Acetaldehyde",
        "1089",
        "3",
        "I",
        -39.0,
        20.8,
        ("H224", "H319", "H335"),
        ("oxidisers", "acids", "bases", "halogens"),
    ),
)


def data_sheet(made: Made, language: str) -> Sheet:
    """A made-up data sheet with facts of every common kind."""
    zh = language == "zh"
    i = 0 if zh else 1
    name = made.zh if zh else made.en
    sheet = Sheet(
        title=f"{name}安全技术说明书" if zh else f"Safety data sheet {name}",
        language=language,
        url=f"http://sample.test/{language}/{made.cas}",
    )
    sub = substance_key(made.cas)

    def listed(
        section: int,
        relation: Relation,
        label: str,
        members: list[tuple[NodeLabel, str, str, dict[str, Any]]],
    ) -> None:
        separator = "、" if zh else ", "
        line = sheet.line(
            section, label + separator.join(text for _, _, text, _ in members) + ("。" if zh else ".")
        )
        for node, key, text, properties in members:
            sheet.fact(
                sub,
                relation,
                node,
                key,
                line,
                object=text,
                subject=name,
                properties=properties,
                listing_line=line,
            )

    line = sheet.line(1, f"CAS 号：{made.cas}" if zh else f"CAS number: {made.cas}")
    sheet.fact(
        sub,
        R.HAS_ALIAS,
        L.ALIAS,
        alias_key(made.cas, AliasKind.CAS),
        line,
        object=made.cas,
        properties={"kind": "cas", "text": made.cas},
    )
    listed(
        2,
        R.HAS_H,
        "危险性说明：" if zh else "Hazard statements: ",
        [(L.HAZARD_STATEMENT, h, h, {"code": h}) for h in made.h],
    )
    category = {"I": "1", "II": "2"}[made.pg]
    if made.cls == "3":
        line = sheet.line(2, f"易燃液体 类别{category}" if zh else f"Flammable liquids, category {category}")
        sheet.fact(
            sub,
            R.CLASSIFIED_AS,
            L.HAZARD_CLASS,
            hazard_class_key("flammable_liquids", category),
            line,
            properties={
                "hazard": "flammable_liquids",
                "category": category,
                "route": "",
                "scheme": "ghs",
                "zh": "易燃液体",
                "en": "Flammable liquids",
            },
        )
    text = (
        f"将患者移至空气新鲜处，保持呼吸畅通，就医（{name}中毒）。"
        if zh
        else f"Move the person to fresh air and keep at rest; get medical help ({name})."
    )
    sheet.line(4, "吸入：" + text if zh else "Inhalation: " + text)
    sheet.fact(
        sub,
        R.FIRST_AID,
        L.MEASURE,
        measure_key(MeasureKind.FIRST_AID, text),
        text,
        properties={"kind": "first_aid", "text": text, "route": "inhalation"},
        conditions={"route": "inhalation"},
    )
    listed(
        5,
        R.EXTINGUISHED_BY,
        "灭火剂：" if zh else "Suitable extinguishing media: ",
        [
            (
                L.MEASURE,
                f"agent:{a}",
                AGENTS[a][i],
                {"kind": "extinguishing_agent", "zh": AGENTS[a][0], "en": AGENTS[a][1]},
            )
            for a in made.fire
        ],
    )
    listed(
        5,
        R.NOT_EXTINGUISHED_BY,
        "禁用灭火剂：" if zh else "Unsuitable extinguishing media: ",
        [
            (
                L.MEASURE,
                f"agent:{a}",
                AGENTS[a][i],
                {"kind": "extinguishing_agent", "zh": AGENTS[a][0], "en": AGENTS[a][1]},
            )
            for a in made.not_fire
        ],
    )
    text = (
        f"储存于阴凉、通风的库房，远离火种、热源（{name}）。"
        if zh
        else f"Store {name} in a cool, well-ventilated place away from sources of ignition."
    )
    sheet.line(7, text)
    sheet.fact(
        sub,
        R.STORE_UNDER,
        L.MEASURE,
        measure_key(MeasureKind.STORAGE, text),
        text,
        properties={"kind": "storage", "text": text},
    )
    for prop, label, celsius, conditions in (
        ("flash_point", ("闪点（闭杯）", "Flash point (closed cup)"), made.flash, {"method": "closed cup"}),
        ("boiling_point", ("沸点", "Boiling point"), made.boiling, {}),
    ):
        if celsius is None:
            continue
        line = sheet.line(9, f"{label[i]}：{celsius:g} ℃" if zh else f"{label[i]}: {celsius:g} °C")
        value = quantity(celsius, "degC", round(celsius + 273.15, 2), "kelvin", **conditions)
        sheet.fact(
            sub,
            R.HAS_MEASUREMENT,
            L.MEASUREMENT,
            value_key(L.MEASUREMENT, sub, {"property": prop}, value),
            line,
            properties={"property": prop},
            value=value,
        )
    listed(
        10,
        R.INCOMPATIBLE_WITH,
        "禁配物：" if zh else "Incompatible materials: ",
        [
            (L.REACTIVE_GROUP, f"group:{g}", GROUPS[g][i], {"zh": GROUPS[g][0], "en": GROUPS[g][1]})
            for g in made.incompatible
        ],
    )
    line = sheet.line(
        14,
        f"UN {made.un}，类别 {made.cls}，包装类别 {made.pg}"
        if zh
        else f"UN {made.un}, class {made.cls}, packing group {made.pg}",
    )
    sheet.fact(
        sub,
        R.SHIPPED_AS,
        L.TRANSPORT_ENTRY,
        transport_key(made.un, made.cls, made.pg),
        line,
        properties={"un": made.un, "hazard_class": made.cls, "packing_group": made.pg},
    )
    return sheet


def fill(
    catalogue: Catalogue, made: tuple[Made, ...] = MADE, languages: tuple[str, ...] = ("zh", "en")
) -> list[Sheet]:
    """Store the data sheets of the substances; returns them in order."""
    sheets = [data_sheet(m, language) for m in made for language in languages]
    with catalogue.writing() as session:
        for m in made:
            entity(session, substance_key(m.cas), zh=m.zh, en=m.en)
        for sheet in sheets:
            sheet.store(session)
    return sheets


_CODES = tuple(
    f"H{n}"
    for n in (*range(220, 230), *range(240, 243), *range(300, 306), *range(310, 320), *range(330, 337))
)


def synthetic(number: int) -> Made:
    """The made-up substance of a number: as many statements of each kind as a full data sheet has (28)."""
    draw = Random(number)
    return Made(
        cas=f"{number + 10_000}-{number % 90 + 10}-{number % 10}",
        zh=f"合成物质{number}",
        en=f"Synthetic substance {number}",
        un=f"{1001 + number % 2500}",
        cls="3",
        pg=draw.choice(("I", "II")),
        flash=draw.randrange(-400, 600) / 10,
        boiling=draw.randrange(600, 4000) / 10,
        h=tuple(sorted(draw.sample(_CODES, 8))),
        incompatible=tuple(sorted(GROUPS)),
        fire=tuple(sorted(AGENTS)),
        not_fire=("powder", "water_jet"),
    )


def synthetic_corpus(catalogue: Catalogue, documents: int, first: int = 0, per_substance: int = 4) -> None:
    """Add made-up documents ``first`` to ``first + documents``: several sheets of each substance, zh and en."""
    for at in range(first, first + documents, 500):
        numbers = range(at, min(at + 500, first + documents))
        with catalogue.writing() as session:
            for number in sorted({n // per_substance for n in numbers}):
                made = synthetic(number)
                if session.get(Entity, substance_key(made.cas)) is None:
                    entity(session, substance_key(made.cas), zh=made.zh, en=made.en)
            for number in numbers:
                sheet = data_sheet(synthetic(number // per_substance), "zh" if number % 2 else "en")
                sheet.url += f"/{number % per_substance}"
                document, assertions = sheet.rows()
                session.add(document)
                session.add_all(assertions)

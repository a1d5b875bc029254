"""Traps: pages on which a careless reader would answer "no". None of them may.

Every trap stands in a graph, in Chinese and in English. Where the trap lies in
one detail there is a control, the same page without that detail, which does
give a "no": so the trap is what holds it back. Everything here is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from corpus.catalogue import Catalogue
from kg import queries
from kg.qa import boolean
from kg.qa.multi_hop import run
from kg.qa.records import Proof
from kg.schema import (
    AliasKind,
    NodeLabel,
    alias_key,
    hazard_class_key,
    listing_key,
    transport_key,
    value_key,
)
from kg.store import GraphStore
from kg.sync import sync_documents
from tests.kg.graph_builders import L, R, Sheet, entity, quantity
from tests.kg.qa_world import World
from tests.servers.neo4j_server import Neo4jServer

pytestmark = pytest.mark.graph

# (label, key, zh, en)
Item = tuple[NodeLabel, str, str, str]


def group(name: str, zh: str, en: str) -> Item:
    return (L.REACTIVE_GROUP, f"group:{name}", zh, en)


STRONG_ACID = group("strong_acid", "强酸", "strong acids")
ACID = group("acid", "酸类", "acids")
BASE = group("strong_base", "强碱", "strong bases")
OXIDISER = group("strong_oxidizer", "强氧化剂", "strong oxidizing agents")
PEROXIDE = group("peroxide", "过氧化物", "peroxides")
HALOGEN = group("halogen", "卤素", "halogens")
METAL = group("metal", "金属", "metals")
ALKALI_METAL = group("alkali_metal", "碱金属", "alkali metals")
ALCOHOL = group("alcohol", "醇类", "alcohols")
PHENOLS = group("phenols", "酚类", "phenols")
CYANIDE = group("cyanide", "氰化物", "cyanides")
REDUCER = group("reducer", "还原剂", "reducing agents")
UNKNOWN = group("odd_stuff", "某类物质", "odd stuff")
WATER = group("water", "水", "water")
SULFURIC = (L.SUBSTANCE, "7664-93-9", "硫酸", "Sulfuric acid")
SPRAY = (L.MEASURE, "agent:water_spray", "雾状水", "water spray")
JET = (L.MEASURE, "agent:water_jet", "直流水", "water jet")
FOAM = (L.MEASURE, "agent:foam", "泡沫", "foam")


@dataclass
class Case:
    """One trap (or its control) in one language: sheets, and who must not be denied what."""

    name: str
    language: str
    sound: bool
    sheets: list[Sheet] = field(default_factory=list)
    names: dict[str, tuple[str, str, NodeLabel]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    probes: list[Proof] = field(default_factory=list)
    about: str = ""  # only questions on this relation, where a "no" to another one is right

    @property
    def tag(self) -> str:
        return f"{self.name} {self.language}{' sound' if self.sound else ''}"

    def matter(self, which: str = "a", label: NodeLabel = L.SUBSTANCE) -> str:
        """Key of a substance (or mixture) of this case."""
        key = f"{'mixture' if label == L.MIXTURE else 'name'}:{self.tag.replace(' ', '-')}-{which}"
        self.names[key] = (f"样品{self.tag}{which}", f"Sample {self.tag} {which}", label)
        return key

    def sheet(self, which: str = "a", **more: Any) -> Sheet:
        title = f"{self.tag}说明书{which}" if self.language == "zh" else f"Data sheet {self.tag} {which}"
        made = Sheet(
            title, self.language, url=f"http://trap.test/{self.tag.replace(' ', '-')}/{which}", **more
        )
        self.sheets.append(made)
        return made

    def say(self, zh: str, en: str) -> str:
        return zh if self.language == "zh" else en

    def listed(
        self, sheet: Sheet, subject: str, *items: Item, more: str = "", complete: bool = True, section: int = 10,
        relation: Any = R.INCOMPATIBLE_WITH, label: tuple[str, str] = ("禁配物：", "Incompatible materials: "),
        polarity: str = "positive", conditions: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        words = [self.say(zh, en) for _, _, zh, en in items] + ([more] if more else [])
        line = sheet.line(
            section, self.say(label[0] + "、".join(words) + "。", label[1] + ", ".join(words) + ".")
        )
        for node, key, zh, en in items:
            properties = {"code": key} if node == L.HAZARD_STATEMENT else {"zh": zh, "en": en}
            sheet.fact(
                subject, relation, node, key, line, object=self.say(zh, en), polarity=polarity,
                properties=properties if node != L.SUBSTANCE else {}, conditions=conditions or {},
                **({"listing_line": line} if complete else {}),
            )  # fmt: skip
            if node == L.SUBSTANCE:
                self.names[key] = (zh, en, L.SUBSTANCE)
        listing = listing_key(sheet.id, subject, relation, sheet.text()[0].index(line))
        for item in (ACID, PEROXIDE, HALOGEN, BASE):
            body = queries.is_listed(L.SUBSTANCE, relation, L.REACTIVE_GROUP)
            probe = Proof(body, {"listing": listing, "object": item[1], "subject": subject})
            if not complete:
                self.probes.append(probe)

    def pool(self, *items: Item) -> None:
        """Another page, on another substance, so that the items are known to be asked about."""
        self.listed(self.sheet("pool"), self.matter("pool"), *items)

    def measured(
        self, sheet: Sheet, subject: str, celsius: float, *, to: float | None = None, operator: str = "=",
        prop: str = "boiling_point", **conditions: str,
    ) -> None:  # fmt: skip
        high = celsius if to is None else to
        said = f"{celsius:g}" if to is None else f"{celsius:g}-{to:g}"
        cup = f"（{conditions['method']}）" if conditions else ""
        line = sheet.line(9, self.say(f"沸点{cup}：{said} ℃", f"Boiling point {cup}: {said} °C"))
        value = quantity(celsius, "degC", round(celsius + 273.15, 2), "kelvin", **conditions)
        value |= {"max": high, "operator": operator, "si": {**value["si"], "max": round(high + 273.15, 2)}}
        if operator == "<":
            value |= {"min": None, "si": {**value["si"], "min": None}}
        key = value_key(L.MEASUREMENT, subject, {"property": prop}, value)
        sheet.fact(
            subject, R.HAS_MEASUREMENT, L.MEASUREMENT, key, line, properties={"property": prop}, value=value
        )

    def identifier(self, sheet: Sheet, subject: str, kind: AliasKind, text: str) -> None:
        line = sheet.line(1, f"{kind.value}: {text}")
        sheet.fact(subject, R.HAS_ALIAS, L.ALIAS, alias_key(text, kind), line, object=text,
                   properties={"kind": kind.value, "text": text})  # fmt: skip

    def stated(self, subject: str, relation: str, item: Item, against: str = "") -> None:
        """Ask the graph directly."""
        parameters = {"subject": subject, "object": item[1], "for": relation, "against": against}
        self.probes.append(Proof(queries.is_stated(L.SUBSTANCE, item[0]), parameters))


Build = Callable[[Case], None]


def overlapping(listed: Item, asked: Item) -> Build:
    def build(case: Case) -> None:
        subject = case.matter()
        case.listed(case.sheet(), subject, listed)
        case.pool(BASE if case.sound else asked)
        case.denied.add(subject)

    return build


def class_and_member(case: Case) -> None:
    subject = case.matter()
    case.listed(case.sheet(), subject, ACID)
    case.pool(BASE if case.sound else SULFURIC)
    case.denied.add(subject)


def list_with_a_substance(case: Case) -> None:
    subject = case.matter()
    case.listed(case.sheet(), subject, OXIDISER if case.sound else SULFURIC)
    case.pool(BASE)
    case.denied.add(subject)


def missing_edge(case: Case) -> None:
    subject = case.matter()
    if case.sound:
        case.listed(case.sheet(), subject, OXIDISER)
    else:
        case.identifier(case.sheet(), subject, AliasKind.EC, "200-000-0")
        case.stated(subject, "INCOMPATIBLE_WITH", BASE)
    case.pool(BASE)
    case.denied.add(subject)


def list_and_sentence(zh: str, en: str, *, above: bool = False) -> Build:
    """A list whose section says more of the kind in another sentence, on an item that nobody knows."""

    def build(case: Case) -> None:
        subject, sheet = case.matter(), case.sheet()
        more = case.say("稳定。", "Stable.") if case.sound else case.say(zh, en)
        if above:
            sheet.line(10, more)
        case.listed(sheet, subject, OXIDISER)
        if not above:
            sheet.line(10, more)
        case.pool(BASE)
        case.denied.add(subject)

    return build


def incomplete_list(case: Case) -> None:
    subject = case.matter()
    case.listed(case.sheet(), subject, OXIDISER, complete=case.sound)
    case.pool(BASE)
    case.denied.add(subject)


def unread_member(case: Case) -> None:
    subject = case.matter()
    case.listed(case.sheet(), subject, OXIDISER, more="" if case.sound else case.say("烧碱", "caustic soda"))
    case.pool(BASE)
    case.denied.add(subject)


def list_that_goes_on(case: Case) -> None:
    subject = case.matter()
    more = "" if case.sound else case.say("某些其他物质", "certain other materials")
    case.listed(case.sheet(), subject, OXIDISER, more=more)
    case.pool(BASE)
    case.denied.add(subject)


def another_source_states_it(case: Case) -> None:
    subject = case.matter()
    case.listed(case.sheet(), subject, OXIDISER)
    if not case.sound:
        case.listed(case.sheet("b"), subject, BASE, complete=False)
    case.pool(BASE)
    case.denied.add(subject)


def conditional_list(case: Case) -> None:
    subject = case.matter()
    case.listed(case.sheet(), subject, OXIDISER, conditions={} if case.sound else {"state": "heated"})
    case.pool(BASE)
    case.denied.add(subject)


def second_list_in_the_source(case: Case) -> None:
    subject, sheet = case.matter(), case.sheet()
    case.listed(sheet, subject, OXIDISER)
    if not case.sound:
        case.listed(sheet, subject, HALOGEN, section=7)
    case.pool(BASE)
    case.denied.add(subject)


def two_documents_with_one_title(case: Case) -> None:
    subject, sheet = case.matter(), case.sheet()
    case.listed(sheet, subject, OXIDISER)
    case.pool(BASE)
    if not case.sound:
        case.sheets[1].title = sheet.title
    case.denied.add(subject)


def combined_code(listed: str, asked: str) -> Build:
    def build(case: Case) -> None:
        subject = case.matter()
        label = ("危险性说明：", "Hazard statements: ")
        shown = "H225" if case.sound else listed
        case.listed(case.sheet(), subject, (L.HAZARD_STATEMENT, shown, shown, shown), section=2, relation=R.HAS_H,
                    label=label)  # fmt: skip
        case.listed(case.sheet("pool"), case.matter("pool"), (L.HAZARD_STATEMENT, asked, asked, asked), section=2,
                    relation=R.HAS_H, label=label)  # fmt: skip
        case.denied.add(subject)

    return build


def categories_by_route(case: Case) -> None:
    """Hydrogen fluoride: acute toxicity 1 on the skin, 2 inhaled, 2 swallowed."""
    subject, sheet = case.matter(), case.sheet()
    for category, route, zh, en in (("1", "dermal", "经皮", "dermal"), ("2", "inhalation", "吸入", "inhalation"),
                                    ("2", "oral", "经口", "oral")):  # fmt: skip
        line = sheet.line(
            2, case.say(f"急性毒性-{zh}，类别{category}", f"Acute toxicity, {en}, category {category}")
        )
        sheet.fact(
            subject, R.CLASSIFIED_AS, L.HAZARD_CLASS, hazard_class_key("acute_toxicity", category, route=route), line,
            properties={"hazard": "acute_toxicity", "category": category, "route": route, "scheme": "ghs",
                        "zh": "急性毒性", "en": "Acute toxicity"},
        )  # fmt: skip
    other = (L.HAZARD_CLASS, hazard_class_key("acute_toxicity", "1", route="oral"), "", "")
    case.stated(subject, "CLASSIFIED_AS", other)
    case.denied.add(subject)


def three_packing_groups(case: Case) -> None:
    """UN 1987: packing group I, II or III by the mixture's flash point."""
    subject, sheet = case.matter(), case.sheet()
    for pg in ("I", "II", "III"):
        line = sheet.line(
            14, case.say(f"UN 1987，类别 3，包装类别 {pg}", f"UN 1987, class 3, packing group {pg}")
        )
        sheet.fact(subject, R.SHIPPED_AS, L.TRANSPORT_ENTRY, transport_key("1987", "3", pg), line,
                   properties={"un": "1987", "hazard_class": "3", "packing_group": pg})  # fmt: skip
    case.stated(subject, "SHIPPED_AS", (L.TRANSPORT_ENTRY, transport_key("1987", "3", ""), "", ""))
    case.denied.add(subject)


def agent(case: Case, sheet: Sheet, subject: str, item: Item, *, suitable: bool) -> None:
    relation = R.EXTINGUISHED_BY if suitable else R.NOT_EXTINGUISHED_BY
    label = ("灭火剂：", "Suitable media: ") if suitable else ("禁用灭火剂：", "Unsuitable media: ")
    case.listed(sheet, subject, item, relation=relation, label=label, section=5, complete=False)


def sources_differ_on_an_agent(case: Case) -> None:
    subject = case.matter()
    agent(case, case.sheet(), subject, FOAM, suitable=False)
    if not case.sound:
        agent(case, case.sheet("b"), subject, FOAM, suitable=True)
        case.stated(subject, "EXTINGUISHED_BY", FOAM, "NOT_EXTINGUISHED_BY")
    case.probes = case.probes[-1:] if not case.sound else []
    case.denied.add(subject)


def water_as_spray_but_not_as_jet(case: Case) -> None:
    subject, sheet = case.matter(), case.sheet()
    agent(case, sheet, subject, JET, suitable=False)
    if not case.sound:
        agent(case, sheet, subject, SPRAY, suitable=True)
    case.probes = []
    case.denied.add(subject)


def agent_only_for_large_fires(case: Case) -> None:
    subject, sheet = case.matter(), case.sheet()
    line = sheet.line(5, case.say("大火时不可用泡沫。", "Do not use foam on a large fire."))
    conditions = {} if case.sound else {"fire": "large"}
    sheet.fact(subject, R.NOT_EXTINGUISHED_BY, FOAM[0], FOAM[1], line, conditions=conditions,
               properties={"zh": FOAM[2], "en": FOAM[3], "kind": "extinguishing_agent"})  # fmt: skip
    case.denied.add(subject)


def compared(*values: Callable[[Case, str, str], None]) -> Build:
    """Two substances with boiling points; the control has them 100 K apart."""

    def build(case: Case) -> None:
        a, b = case.matter("a"), case.matter("b")
        if case.sound:
            case.measured(case.sheet("a"), a, 50)
            case.measured(case.sheet("b"), b, 150)
        else:
            for value in values:
                value(case, a, b)
            body = {"property": "boiling_point", "value_conditions": "", "margin": 10.0}
            case.probes += [
                Proof(queries.IS_HIGHER, {"subject": a, "other": b, **body}),
                Proof(queries.IS_HIGHER, {"subject": b, "other": a, **body}),
            ]
        case.denied |= {a, b}

    return build


within_spread = compared(
    lambda c, a, b: c.measured(c.sheet("a"), a, 80.1), lambda c, a, b: c.measured(c.sheet("b"), b, 82.0)
)
overlapping_ranges = compared(
    lambda c, a, b: c.measured(c.sheet("a"), a, 60, to=90), lambda c, a, b: c.measured(c.sheet("b"), b, 80)
)
sources_around_the_other = compared(
    lambda c, a, b: c.measured(c.sheet("a"), a, 50),
    lambda c, a, b: c.measured(c.sheet("c"), a, 120),
    lambda c, a, b: c.measured(c.sheet("b"), b, 85),
)
only_a_bound = compared(
    lambda c, a, b: c.measured(c.sheet("a"), a, 90, operator="<"),
    lambda c, a, b: c.measured(c.sheet("b"), b, 150),
)
other_method = compared(
    lambda c, a, b: c.measured(c.sheet("a"), a, 20, method="closed cup"),
    lambda c, a, b: c.measured(c.sheet("b"), b, 120, method="open cup"),
)


def one_has_no_value(case: Case) -> None:
    a, b = case.matter("a"), case.matter("b")
    case.measured(case.sheet("a"), a, 50)
    if case.sound:
        case.measured(case.sheet("b"), b, 150)
    else:
        case.identifier(case.sheet("b"), b, AliasKind.EC, "200-000-1")
        asked = {"property": "boiling_point", "value_conditions": "", "margin": 10.0}
        parameters = {"subject": a, "other": b, **asked}
        case.probes.append(Proof(queries.IS_HIGHER, parameters))
    case.denied |= {a, b}


def same_composition(left: str, right: str) -> Build:
    def build(case: Case) -> None:
        for which, formula in (("a", left), ("b", "C7H8" if case.sound else right)):
            case.identifier(case.sheet(which), case.matter(which), AliasKind.FORMULA, formula)
        case.denied |= {case.matter("a"), case.matter("b")}

    return build


def two_cas_numbers(case: Case) -> None:
    """Xylene: the mixture of isomers and one isomer under one name."""
    a, b, c = (case.matter(which) for which in "abc")
    case.identifier(case.sheet("a"), a, AliasKind.CAS, "1330-20-7")
    if not case.sound:
        case.identifier(case.sheet("a2"), a, AliasKind.CAS, "95-47-6")
        case.identifier(case.sheet("b"), b, AliasKind.CAS, "108-38-3")
        case.identifier(case.sheet("b2"), b, AliasKind.CAS, "106-42-3")
        parameters = {"subject": a, "kind": "cas", "object": "cas:108-38-3"}
        case.probes.append(Proof(queries.is_functional(L.SUBSTANCE), parameters))
    else:
        case.identifier(case.sheet("b"), b, AliasKind.CAS, "108-38-3")
        case.identifier(case.sheet("c"), c, AliasKind.CAS, "106-42-3")
    case.denied |= {a, b}
    if case.sound:
        case.denied.add(c)


def formula_of_a_solution(case: Case) -> None:
    label = L.SUBSTANCE if case.sound else L.MIXTURE
    for which, formula in (("a", "HCl"), ("b", "CH2O")):
        case.identifier(case.sheet(which), case.matter(which, label), AliasKind.FORMULA, formula)
    case.denied |= set(case.names)


def denial(
    conditions: dict[str, str] | None = None, modality: str = "is", *, contradicted: bool = False
) -> Build:
    """A page that says that there is no reaction with water: under a condition, perhaps, or against another page."""

    def build(case: Case) -> None:
        subject, sheet = case.matter(), case.sheet()
        line = sheet.line(10, case.say("与水不发生反应。", "It does not react with water."))
        sheet.fact(
            subject, R.INCOMPATIBLE_WITH, WATER[0], WATER[1], line, polarity="negative",
            properties={"zh": WATER[2], "en": WATER[3]}, conditions={} if case.sound else conditions or {},
            modality="is" if case.sound else modality,
        )  # fmt: skip
        if contradicted and not case.sound:
            case.listed(case.sheet("b"), subject, WATER, complete=False)
            case.probes = []
            case.stated(subject, "INCOMPATIBLE_WITH", WATER)
        case.denied.add(subject)

    return build


def list_of_a_reference_table(case: Case) -> None:
    subject = case.matter()
    sheet = case.sheet(**({} if case.sound else {"source": "reference"}))
    case.listed(sheet, subject, OXIDISER)
    case.pool(BASE)
    case.denied.add(subject)


# --- GHS categories: one document gives one category, its closed list of H statements bears it out ------------


@dataclass(frozen=True)
class Category:
    """A category of a hazard class with its H code."""

    hazard: str
    category: str
    code: str
    zh: str
    en: str

    @property
    def key(self) -> str:
        return hazard_class_key(self.hazard, self.category)


def _categories(hazard: str, zh: str, en: str, **codes: str) -> dict[str, Category]:
    return {name[1:]: Category(hazard, name[1:], code, zh, en) for name, code in codes.items()}


LIQUID = _categories("flammable_liquids", "易燃液体", "Flammable liquids", c1="H224", c2="H225", c3="H226")
REPRO = _categories(
    "reproductive_toxicity", "生殖毒性", "Reproductive toxicity", c1="H360", c1A="H360", c1B="H360"
)
SOLID = _categories("oxidizing_solids", "氧化性固体", "Oxidizing solids", c2="H272", c3="H272")
ACUTE = _categories(
    "aquatic_acute",
    "危害水生环境-急性危害",
    "Hazardous to the aquatic environment, acute",
    c1="H400",
    c2="H401",
)
TOXIC = _categories("acute_toxicity", "急性毒性", "Acute toxicity", c1="H310", c2="H300")


def classified(
    case: Case, sheet: Sheet, subject: str, given: Category, *, section: int = 2, **more: Any
) -> None:
    case.about = R.CLASSIFIED_AS.value
    line = sheet.line(
        section, case.say(f"{given.zh}，类别{given.category}", f"{given.en}, category {given.category}")
    )
    route, scheme = more.pop("route", ""), more.pop("scheme", "ghs")
    sheet.fact(
        subject, R.CLASSIFIED_AS, L.HAZARD_CLASS, hazard_class_key(given.hazard, given.category, route=route, scheme=scheme),
        line, properties={"hazard": given.hazard, "category": given.category, "route": route, "scheme": scheme,
                          "zh": given.zh, "en": given.en}, **more,
    )  # fmt: skip


def h_list(
    case: Case, sheet: Sheet, subject: str, *codes: str, complete: bool = True, section: int = 2
) -> None:
    items = [(L.HAZARD_STATEMENT, code, code, code) for code in codes]
    case.listed(sheet, subject, *items, relation=R.HAS_H, label=("危险性说明：", "Hazard statements: "),
                section=section, complete=complete)  # fmt: skip
    case.probes = []


def category(
    given: Category = LIQUID["2"], asked: Category = LIQUID["1"], codes: tuple[str, ...] = (),
    change: Callable[[Case, Sheet, str], None] = lambda case, sheet, subject: None,
    *, complete: bool = True, code_section: int = 2, **more: Any,
) -> Build:  # fmt: skip
    """A page with a category and a list of H statements; another page is on a substance of the category asked about.

    The control is the plain page: flammable liquids, category 2, H225.
    """

    def build(case: Case) -> None:
        subject = case.matter("a", L.SUBSTANCE if case.sound else more.get("label", L.SUBSTANCE))
        sheet = case.sheet()
        if case.sound:
            classified(case, sheet, subject, LIQUID["2"])
            h_list(case, sheet, subject, "H225", "H319")
        else:
            extra = {name: value for name, value in more.items() if name != "label"}
            classified(case, sheet, subject, given, **extra)
            h_list(
                case,
                sheet,
                subject,
                *(codes or (given.code, "H319")),
                complete=complete,
                section=code_section,
            )
            change(case, sheet, subject)
        other = LIQUID["1"] if case.sound else asked
        pool, matter = case.sheet("pool"), case.matter("pool")
        classified(case, pool, matter, other)
        h_list(case, pool, matter, other.code)
        case.denied.add(subject)
        parameters = {"subject": subject, "object": other.key, "for": R.CLASSIFIED_AS.value, "against": ""}
        case.probes.append(Proof(queries.is_stated(L.SUBSTANCE, L.HAZARD_CLASS), parameters))

    return build


def _said(zh: str, en: str, section: int = 2) -> Callable[[Case, Sheet, str], None]:
    """A sentence that nobody read."""

    def change(case: Case, sheet: Sheet, subject: str) -> None:
        sheet.line(section, case.say(zh, en))

    return change


def _second_category(case: Case, sheet: Sheet, subject: str) -> None:
    classified(case, sheet, subject, LIQUID["3"])


def _other_document(case: Case, sheet: Sheet, subject: str) -> None:
    classified(case, case.sheet("b"), subject, LIQUID["1"])


def _other_codes(case: Case, sheet: Sheet, subject: str) -> None:
    h_list(case, case.sheet("b"), subject, "H224", complete=False)


def _denied(case: Case, sheet: Sheet, subject: str) -> None:
    line = sheet.line(
        2, case.say("气体未分类为易燃液体类别2。", "The gas is not classified as flammable liquids 2.")
    )
    sheet.fact(subject, R.CLASSIFIED_AS, L.HAZARD_CLASS, LIQUID["2"].key, line, polarity="negative",
               properties={"hazard": "flammable_liquids", "category": "2", "scheme": "ghs"})  # fmt: skip


def hydrogen_fluoride_by_route(case: Case) -> None:
    """Acute toxicity 1 on the skin, 2 inhaled and swallowed, with the closed list of all its H statements."""
    subject, sheet = case.matter(), case.sheet()
    for number, route in (("1", "dermal"), ("2", "inhalation"), ("2", "oral")):
        classified(case, sheet, subject, TOXIC[number], route=route)
    h_list(case, sheet, subject, "H300", "H310", "H330", "H314")
    listing = next(f for f in sheet.facts if f["relation"] == R.HAS_H)
    key = listing_key(sheet.id, subject, R.HAS_H, sheet.text()[0].index(listing["quote"]))
    for number in ("1", "2"):
        for route in ("", "oral", "dermal", "inhalation"):
            asked = hazard_class_key("acute_toxicity", number, route=route)
            stated = hazard_class_key("acute_toxicity", "2" if number == "1" else "1", route="oral")
            parameters = {
                "listing": key, "document": sheet.id, "subject": subject, "hazard": "acute_toxicity", "stated": stated,
                "object": asked, "own": [stated], "other": [asked],
            }  # fmt: skip
            case.probes.append(Proof(queries.is_classified(L.SUBSTANCE), parameters))
    pool, matter = case.sheet("pool"), case.matter("pool")
    classified(case, pool, matter, TOXIC["1"])
    case.denied.add(subject)


def class_never_mentioned(case: Case) -> None:
    """A closed list of H statements and not a word on flammable liquids: a missing edge."""
    subject, sheet = case.matter(), case.sheet()
    if case.sound:
        classified(case, sheet, subject, LIQUID["2"])
    h_list(case, sheet, subject, "H225", "H319")
    pool, matter = case.sheet("pool"), case.matter("pool")
    classified(case, pool, matter, LIQUID["1"])
    case.denied.add(subject)


# name → (builder, whether the control without the trap gives a "no")
TRAPS: dict[str, tuple[Build, bool]] = {
    "strong-and-plain-acid": (overlapping(STRONG_ACID, ACID), True),
    "acid-and-strong-acid": (overlapping(ACID, STRONG_ACID), True),
    "oxidiser-and-peroxide": (overlapping(OXIDISER, PEROXIDE), True),
    "oxidiser-and-halogen": (overlapping(OXIDISER, HALOGEN), True),
    "alkali-metal-and-metal": (overlapping(ALKALI_METAL, METAL), True),
    "metal-and-reducer": (overlapping(METAL, REDUCER), True),
    "alcohol-and-phenols": (overlapping(ALCOHOL, PHENOLS), False),
    "cyanide-and-oxidiser-salt": (overlapping(CYANIDE, OXIDISER), True),
    "class-nobody-knows": (overlapping(UNKNOWN, BASE), False),
    "asked-class-nobody-knows": (overlapping(OXIDISER, UNKNOWN), True),
    "class-and-member": (class_and_member, True),
    "list-with-a-substance": (list_with_a_substance, True),
    "missing-edge": (missing_edge, True),
    "incomplete-list": (incomplete_list, True),
    "unread-member": (unread_member, True),
    "list-that-goes-on": (list_that_goes_on, True),
    "another-source-states-it": (another_source_states_it, True),
    "conditional-list": (conditional_list, True),
    "second-list": (second_list_in_the_source, True),
    "one-title-twice": (two_documents_with_one_title, True),
    "reference-table": (list_of_a_reference_table, True),
    "combined-code": (combined_code("H300+H310", "H310"), True),
    "code-within-combination": (combined_code("H310", "H300+H310"), False),
    "code-with-letters": (combined_code("H360FD", "H360"), True),
    "categories-by-route": (categories_by_route, False),
    "three-packing-groups": (three_packing_groups, False),
    "sources-differ-on-an-agent": (sources_differ_on_an_agent, True),
    "spray-but-not-jet": (water_as_spray_but_not_as_jet, True),
    "agent-under-a-condition": (agent_only_for_large_fires, True),
    "within-spread": (within_spread, True),
    "overlapping-ranges": (overlapping_ranges, True),
    "sources-around-the-other": (sources_around_the_other, True),
    "only-a-bound": (only_a_bound, True),
    "other-method": (other_method, True),
    "one-has-no-value": (one_has_no_value, True),
    "isomers": (same_composition("C2H6O", "CH3OCH3"), True),
    "formula-written-otherwise": (same_composition("HCHO", "CH2O"), True),
    "two-cas-numbers": (two_cas_numbers, True),
    "formula-of-a-solution": (formula_of_a_solution, True),
    "denial-under-a-condition": (denial({"temperature": "20 °C"}), True),
    "denial-as-a-possibility": (denial(modality="may"), True),
    "denial-and-claim": (denial(contradicted=True), True),
    "list-goes-on-above": (list_and_sentence("另外应避免碱。", "Also avoid alkalis.", above=True), True),
    "list-goes-on-in-section": (
        list_and_sentence("与烧碱接触发生剧烈反应。", "Reacts violently with caustic soda."),
        True,
    ),
    "category-list-open": (category(complete=False), True),
    "category-within-category": (category(REPRO["1A"], REPRO["1"]), True),
    "category-beside-its-part": (category(REPRO["1A"], REPRO["1B"]), True),
    "category-of-the-same-code": (category(SOLID["2"], SOLID["3"]), True),
    "category-implied-by-another-code": (category(ACUTE["2"], ACUTE["1"], ("H401", "H410")), True),
    "category-by-form": (category(change=_second_category), True),
    "category-under-a-condition": (category(conditions={"form": "aerosol"}), True),
    "category-perhaps": (category(modality="may"), True),
    "category-of-another-scheme": (category(scheme="clp-old"), True),
    "category-of-a-mixture": (category(label=L.MIXTURE), True),
    "category-and-code-elsewhere": (category(change=_said("加热后：H224。", "When heated: H224.", 9)), True),
    "category-and-words-elsewhere": (
        category(
            change=_said("浓溶液：易燃液体（类别 1）。", "Concentrated: flammable liquid, category 1.", 3)
        ),
        True,
    ),
    "category-in-another-source": (category(change=_other_document), True),
    "code-in-another-source": (category(change=_other_codes), True),
    "category-denied-as-well": (category(change=_denied), True),
    "category-and-foreign-list": (category(codes=("H319",)), True),
    "category-list-of-another-section": (category(code_section=16), True),
    "category-by-route-closed-list": (hydrogen_fluoride_by_route, False),
    "class-never-mentioned": (class_never_mentioned, True),
}


def cases() -> Iterator[Case]:
    for name, (build, control) in TRAPS.items():
        for language in ("zh", "en"):
            for sound in (False, True) if control else (False,):
                case = Case(name, language, sound)
                build(case)
                yield case


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, session_store: GraphStore
) -> Iterator[tuple[World, dict[str, Case]]]:
    """All traps and controls in one graph."""
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('traps')}/c.db")
    session_store.clear()
    found = {case.tag: case for case in cases()}
    with catalogue.writing() as session:
        for case in found.values():
            for key, (zh, en, label) in case.names.items():
                entity(session, key, label, zh=zh, en=en)
            for sheet in case.sheets:
                sheet.store(session)
    with catalogue.writing() as session:
        from corpus.catalogue.tables import Document

        for row in session.query(Document).filter(Document.source == "reference"):
            row.kind = "reference"
    yield World(catalogue, session_store), found
    catalogue.close()


Both = tuple[World, dict[str, Case]]


def decided(world: World, case: Case, answers: tuple[str, ...]) -> list[str]:
    """Questions about the case's substances that hold with one of these answers."""
    part = world.part({sheet.id for sheet in case.sheets})
    made = [c for c in part.made(boolean.candidates) if c.expected[0] in answers]
    made = [c for c in made if not case.about or c.relation == case.about]
    return [c.question for c in part.held(made) if c.proof.parameters["subject"] in case.denied]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_is_never_a_no(world: Both, name: str, language: str) -> None:
    case = world[1][f"{name} {language}"]
    assert decided(world[0], case, ("no",)) == []
    assert [answer for answer in run(world[0].store, case.probes) if answer == ("no",)] == []


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", [name for name, (_, control) in TRAPS.items() if control])
def test_without_the_trap_it_is_a_no(world: Both, name: str, language: str) -> None:
    case = world[1][f"{name} {language} sound"]
    # which way round a pair is compared is drawn: "is b higher than a" is the other side of the same no
    compared = all(sheet.facts[0]["relation"] == R.HAS_MEASUREMENT for sheet in case.sheets)
    assert decided(world[0], case, ("yes", "no") if compared else ("no",)) != []


def test_all_traps_together(world: Both) -> None:
    """Beside all other pages no trap is denied by a statement either, and some relations are never denied at all."""
    whole, found = world
    trapped = {key for case in found.values() if not case.sound for key in case.denied}
    held = whole.held([c for c in whole.made(boolean.candidates) if c.expected == ("no",)])
    assert len(held) > 50  # the controls
    stated = [c for c in held if c.template in {"can_extinguish", "is_stated"}]
    assert stated
    wrong = [c for c in stated if c.proof.parameters["subject"] in trapped]
    assert [c.question for c in wrong] == []
    assert not {c.relation for c in held} & {"SHIPPED_AS", "MEMBER_OF"}
    assert {c.template for c in held if c.relation == "CLASSIFIED_AS"} == {"is_classified"}
    wrong = [c for c in held if c.template == "is_classified" and c.proof.parameters["subject"] in trapped]
    assert [c.question for c in wrong] == []
    assert len(TRAPS) >= 30


@pytest.mark.timeout(1800)
def test_both_servers_prove_the_same(world: Both, neo4j_server: Neo4jServer) -> None:
    """The categories; all other queries run on both servers in ``test_qa.py``."""
    whole, found = world
    chosen = [case for case in found.values() if case.about and case.language == "zh"]
    documents = {sheet.id for case in chosen for sheet in case.sheets}
    asked = [c for c in whole.part(documents).made(boolean.candidates) if c.template == "is_classified"]
    proofs = [c.proof for c in asked] + [proof for case in chosen for proof in case.probes]
    server = neo4j_server
    with GraphStore(server.uri, server.user, server.password, server.database) as store:
        store.clear()
        sync_documents(whole.catalogue, store, sorted(documents))
        answers = run(store, proofs)
        assert answers == run(whole.store, proofs)
        assert answers[: len(asked)] == [c.expected for c in asked]
        assert {("yes",), ("no",), ("unknown",)} <= set(answers)
        store.clear()

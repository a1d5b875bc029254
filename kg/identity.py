"""Whether two names can mean one substance: normal forms, hard blocks, pairwise verdicts.

Source: knowledge-graph design, section 3. Names are never compared by
similarity: methanol and ethanol score 93 of 100, 苯酚 and 石炭酸 score 0.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from corpus.names import ELEMENT_SYMBOL, normalise_name, valid_cas
from corpus.quantities import plain_width

Kind = Literal["merge", "link", "apart", "review"]


@dataclass(frozen=True)
class Record:
    """What is known of one mention of a substance. ``name`` as written."""

    name: str
    cas: str = ""
    inchikey: str = ""
    ec: str = ""
    mixture: bool = False
    formula: str = ""

    @property
    def form(self) -> str:
        """Normal form of the name."""
        return normalise_name(self.name)


@dataclass(frozen=True)
class Verdict:
    """Decision on a pair: ``rule`` is a short stable word, ``why`` is for people."""

    kind: Kind
    rule: str
    why: str


@dataclass(frozen=True)
class AliasTable:
    """Curated and crawled names: normal form → keys. A name with several keys is ambiguous and leads nowhere.

    ``inchikeys`` and ``ecs`` lead from an identifier to a key, ``formulae`` from a key to its formula.
    """

    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    inchikeys: Mapping[str, str] = field(default_factory=dict)
    ecs: Mapping[str, str] = field(default_factory=dict)
    solutions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    formulae: Mapping[str, str] = field(default_factory=dict)

    def lookup(self, name: str) -> str:
        """The one key that a name leads to, "" for an unknown or ambiguous name."""
        found = self.keys.get(normalise_name(name), frozenset())
        return next(iter(found)) if len(found) == 1 else ""

    def ambiguous(self, name: str) -> bool:
        """Whether a name leads to several substances."""
        return len(self.keys.get(normalise_name(name), ())) > 1

    def dissolved(self, name: str) -> str:
        """The substance whose solution a name is known to be ("福尔马林" → 50-00-0)."""
        found = self.solutions.get(normalise_name(name), frozenset())
        return next(iter(found)) if len(found) == 1 else ""


# --- hard blocks -------------------------------------------------------------------

_POSITIONS = {"邻": "ortho", "间": "meta", "对": "para", "均": "sym", "连": "vic", "sym": "sym", "vic": "vic", "o": "ortho", "m": "meta", "p": "para",
              "ortho": "ortho", "meta": "meta", "para": "para"}  # fmt: skip
_BRANCHES = {"正": "n", "异": "iso", "仲": "sec", "叔": "tert", "新": "neo", "n": "n", "iso": "iso", "sec": "sec",
             "tert": "tert", "neo": "neo", "s": "sec", "t": "tert"}  # fmt: skip
_STEREO = {"顺": "cis", "反": "trans", "左旋": "l", "右旋": "d"}
_DEGREES = "亚次高过偏焦"
_COUNTS_ZH = {"一": "mono", "二": "di", "三": "tri", "四": "tetra", "五": "penta", "六": "hexa", "七": "hepta", "八": "octa",
              "九": "nona", "十": "deca", "半": "hemi", "单": "mono"}  # fmt: skip
_FORM_WORDS: tuple[tuple[str, str], ...] = (
    (
        "solution",
        r"溶液|水剂|溶于|福尔马林|氨水|盐酸$|氢[氟溴碘硫]酸$|双氧水|石灰水|母液|酊$|\bsolutions?\b|\baqueous\b|\baqua\b|\bformalin\b|\bin water\b"
        r"|\bammonia water\b|\b(?:hydrochloric|muriatic|hydrofluoric|hydrobromic|hydriodic) acid\b"
        r"|\blimewater\b|\btincture\b|(?<![\w-])\d+(?:\.\d+)? ?(?:mol/l|[mn])$",
    ),
    (
        "dispersed",
        r"乳液|乳油|悬浮|浆料?$|糊$|(?<!石)膏$|分散体|\bemulsions?\b|\bsuspensions?\b|\bslurry\b|\bpaste\b|\bdispersions?\b",
    ),
    ("powder", r"(?<!漂白)粉$|粉末|粉尘|\bpowder(?:ed)?$|\bdust$"),
    ("inhibited", r"抑制了的|抑制的|已抑制|加阻聚剂|含阻聚剂|\binhibited\b"),
    ("stabilised", r"稳定的|稳定化的?|加稳定剂|含稳定剂|(?<!un)\bstabili[sz]ed\b"),
    ("fuming", r"发烟|\bfuming\b|\boleum\b"),
    ("concentrated", r"^浓|\bconcentrated\b"),
    ("dilute", r"^稀|\bdilute\b"),
    ("share", r"(?:含量|浓度|含)?[<>≤≥]?=?\d+(?:\.\d+)? ?%"),
)
_COMPILED_FORMS = tuple((name, re.compile(words, re.IGNORECASE)) for name, words in _FORM_WORDS)
_CLASS_NAME = re.compile(
    r"(?:类|化合物|衍生物|的盐)$|\b(?:compounds|derivatives|salts|isomers|alcohols|acids|xylenes|cresols)$",
    re.IGNORECASE,
)
_ANHYDROUS = re.compile(r"无水|\banhydrous\b", re.IGNORECASE)


def features(name: str) -> dict[str, Counter[str]]:
    """What tells near-identical names apart, by kind: locants, positions, branches, degrees, form …"""
    form = normalise_name(name)
    low = form.lower()
    found: dict[str, Counter[str]] = {
        "locants": Counter(_locants(form)),
        "position": Counter(
            _POSITIONS[m]
            for m in re.findall(
                r"^[邻间对均连]|(?<=-)[邻间对均连]|(?<![a-z])(?:o|m|p|ortho|meta|para|sym|vic)(?=-)", low
            )
        ),
        "branch": Counter(_branches(low)),
        "stereo": Counter(_stereo(form, low)),
        "degree": Counter(_degrees(form, low)),
        "number": Counter(re.findall(r"(?<![\d.,(])(\d{2,4}[a-z]{0,2})(?![\d.,%-]| ?%)", low)),
        "oxidation": Counter(_oxidation(low)),
        "hydrate": Counter(_hydrates(form, low)),
        "salt": Counter(_salt(form, low)),
        "group": Counter(["class"] if _CLASS_NAME.search(form) else []),
        "form": Counter(name for name, pattern in _COMPILED_FORMS if pattern.search(form)),
        "anhydrous": Counter(["anhydrous"] if _ANHYDROUS.search(form) else []),
    }
    if found["anhydrous"]:  # "hydrofluoric acid, anhydrous" is the gas
        del found["form"]["solution"]
    return found


def _degrees(form: str, low: str) -> list[str]:
    words = [_WORDS[m] for m in _DEGREE_WORDS.findall(low)]
    return [c for c in form if c in _DEGREES] + words


_WORDS = {"重": "di", "硫代": "thio", "酸氢": "hydrogen", "聚": "poly", "bicarbonate": "hydrogen", "bisulfate": "hydrogen", "bisulfite": "hydrogen",
          "dichromate": "di", "bichromate": "di", "hydrogen": "hydrogen", "thio": "thio", "poly": "poly", "para": "poly"}  # fmt: skip
_DEGREE_WORDS = re.compile(
    r"重(?=铬)|硫代(?=硫)|酸氢|聚|bicarbonate|bisulfate|bisulfite|dichromate|bichromate"
    r"|hydrogen(?= ?(?:carbonate|sulfate|sulfite|phosphate))|thio(?=sulf)|poly(?=[a-z])|para(?=formal)"
)


def _oxidation(low: str) -> list[str]:
    roman = [m.upper() for m in re.findall(r"\(([ivx]+)\)", low)]
    return roman + [_VALENCES[m] for m in re.findall(r"([一二三四五六七])价", low)]


_VALENCES = dict(zip("一二三四五六七", ("I", "II", "III", "IV", "V", "VI", "VII"), strict=True))


def _locants(form: str) -> list[str]:
    return [match[0] for match in re.finditer(r"(?<![\d.,])\d+(?:,\d+)*(?=-)", form)]


def _branches(low: str) -> list[str]:
    zh = re.findall(r"^(正|异|仲|叔|新)|(?<=[-,])(正|异|仲|叔|新)", low)
    en = re.findall(r"(?<![a-z])(n|iso|sec|tert|neo|s|t)(?=-)|(?<![a-z])(iso|neo)(?=[a-z]{3})", low)
    return [_BRANCHES[a or b] for a, b in zh + en]


def _stereo(form: str, low: str) -> list[str]:
    zh = [_STEREO[m] for m in re.findall(r"左旋|右旋|^顺|^反|(?<=-)顺|(?<=-)反", low)]
    en = re.findall(r"(?<![a-z])(cis|trans|dl|meso|rac)(?=-)", low)
    en += re.findall(r"(?<![a-z])([ezrsdl])(?=\)?-)", low) + re.findall(r"\(([-+±]|\+/-)\)-?", low)
    return zh + [m for m in en if m not in {"s"} or "(s)" in low] if form else []


def _hydrates(form: str, low: str) -> list[str]:
    zh = re.finditer(r"([一二三四五六七八九十半单])水(?:合物?)?|水合物", form)
    en = re.finditer(r"(mono|hemi|di|tri|tetra|penta|hexa|hepta|octa|nona|deca)?hydrate\b", low)
    return [_COUNTS_ZH.get(m[1] or "", "hydrate") for m in zh] + [m[1] or "hydrate" for m in en]


_SALT_ZH = re.compile(
    r"酸(?:[氢二三四]{0,2}[一-鿿]{0,2})?(锂|钠|钾|钙|镁|钡|铵|铜|铁|锌|铝|银|铅|汞|锰|钴|镍|铬|锶|镉)$"
)


def _salt(form: str, low: str) -> list[str]:
    """Acid, salt (with its metal) or ester: 硫酸/硫酸钠, nitric acid/sodium nitrate."""
    salt = _SALT_ZH.search(form)
    if salt:
        return [f"salt {salt[1]}"]
    if form.endswith("酸") or low.endswith(" acid"):
        return ["acid"]
    if form.endswith("酯") or re.search(r"酯$", form):
        return ["ester"]
    metal = re.match(r"([a-z]+(?:\([ivx]+\))?) [a-z]+(?:ate|ite|ide)$", low)
    return [f"salt {metal[1]}"] if metal else []


def blocked(one: str, two: str, *, same_id: bool = False) -> str:
    """Which hard block keeps two names apart, "" for none.

    ``same_id``: a trusted identifier says that the structure is the same; then
    only the *form* counts (solution, hydrate, inhibited, class), since one CAS
    number is used for 1-propanol and n-propyl alcohol, but also for a pure
    substance and its stabilised form.
    """
    left, right = features(one), features(two)
    kinds = ("hydrate", "group", "form") if same_id else tuple(left)
    if normalise_name(one) == normalise_name(two):
        return ""
    for kind in kinds:
        if left[kind] != right[kind]:
            return kind
    return ""


def structural_block(one: str, two: str) -> str:
    """Block between two names written in one language; across languages only forms can be compared."""
    forms = [normalise_name(name) for name in (one, two)]
    if forms[0] != forms[1] and forms[0].casefold() == forms[1].casefold():
        return "case"
    return blocked(one, two, same_id=_chinese(one) != _chinese(two)) or contradiction(one, two)


_MARKS = re.compile(
    r"(?<![\d.,])\d+[a-z]?'*(?:,\d+[a-z]?'*)*(?=-)|^[邻间对均连正异仲叔新顺反](?!丁烯)|(?<=[-,])[邻间对均连正异仲叔新顺反]|左旋|右旋"
    r"|(?<![a-z])(?:o|m|p|ortho|meta|para|sym|vic|n|iso|sec|tert|neo|s|t|cis|trans|dl|rac|meso|[ezrdl])(?=\)?-)"
    r"|(?<![a-z])(?:iso|neo)(?=[a-z]{3})|\(\W\)-?|\([ivx]+\)|[一二三四五六七]价|[亚次高过偏焦]"
    r"|[一二三四五六七八九十半单](?:水(?:合物?)?)?|(?:mono|hemi|di|tri|tetra|penta|hexa|hepta|octa|nona|deca)(?=[a-z]{3})"
)
_COUNTS_EN = re.compile(r"(mono|di|tri|tetra|penta|hexa|hepta|octa|nona|deca)(?=[a-z]{3})")


@lru_cache(maxsize=65_536)
def skeleton(name: str) -> str:
    """The name without what tells near-identical names apart: 1,1- and 1,2-二氯乙烷 both leave 氯乙烷."""
    bare = _DEGREE_WORDS.sub(_bare_word, normalise_name(name).lower())
    return re.sub(r"[-\s()',]+", "", _MARKS.sub("", bare))


def _bare_word(match: re.Match[str]) -> str:
    return {"酸氢": "酸"}.get(
        match[0], re.sub(r"^(?:重|硫代|聚|bi|di(?=chrom)|hydrogen|thio|poly|para)", "", match[0])
    )


def _chinese(name: str) -> bool:
    return bool(re.search(r"[一-鿿]", name))


def contradiction(one: str, two: str) -> str:
    """The mark in which two names of one language and skeleton speak against each other, "" for none.

    Unlike a block it holds even against a shared identifier: o-xylene and m-xylene
    under one CAS number mean that one page copied it. A mark that only one of the
    names has (2-丁醇, 丁醇) is no contradiction, but 亚 alone (硫酸, 亚硫酸) is.
    """
    if _other_halogen(one, two):
        return "halogen"
    if _chinese(one) != _chinese(two) or normalise_name(one) == normalise_name(two):
        return ""
    left, right = features(one), features(two)
    kinds = [_kind_of_salt(marks["salt"]) for marks in (left, right)]
    if all(kinds) and kinds[0] != kinds[1]:
        return "salt"
    if _endings(one) and _endings(one) == _endings(two):
        return "degree"
    bare = skeleton(one)
    if len(bare) < 2 or bare != skeleton(two):
        return ""
    for marks, name in ((left, one), (right, two)):
        marks["count"] = _multiples(name)
    differing = [kind for kind in left if left[kind] != right[kind]]
    for kind in differing:
        if left[kind] and right[kind]:
            return kind
    return "degree" if differing == ["degree"] else ""


@lru_cache(maxsize=65_536)
def rivals(name: str) -> tuple[str, ...]:
    """Groups of names within which contradictions are possible: one skeleton; acids, salts and esters of a language."""
    groups = [f"skeleton {skeleton(name)}"]
    if _kind_of_salt(features(name)["salt"]):
        groups.append(f"salt {_chinese(name)}")
    if ends := _endings(name):
        groups.append(f"endings {ends}")
    if halogens(name):
        groups.append("halogen")
    return tuple(groups)


_HALOGENS = {
    "氟": "F",
    "氯": "Cl",
    "溴": "Br",
    "碘": "I",
    "fluor": "F",
    "chlor": "Cl",
    "brom": "Br",
    "iod": "I",
}
# parts of trade names (R 20 is chloroform, without fluorine), and words that only look like a halogen's
_NO_HALOGEN = re.compile(
    r"氟[利里立]昂|氟[隆碳]|氯仿|chloroform|bromoform|iodoform|fluoroform|freon|fluorocarbon"
    r"|fluor(?:ene|enyl|enone|anth|esc|ones?\b)|chlor(?:ophyll|ogenic|ella|ins?\b)|bromel|biod|thiodi"
)
_HALOGEN = re.compile(r"[氟氯溴碘]|盐酸盐|fluor|chlor|brom|iod")


@lru_cache(maxsize=65_536)
def halogens(name: str) -> frozenset[str]:
    """The halogens that a name speaks of: 环氧溴丙烷 and epibromohydrin speak of Br; trade names of none."""
    low = _NO_HALOGEN.sub(_form_of, normalise_name(name).lower())
    return frozenset("Cl" if m == "盐酸盐" else _HALOGENS[m] for m in _HALOGEN.findall(low))


def _form_of(match: re.Match[str]) -> str:
    """氯仿 and its kin are chlorinated, what else is no word of a halogen's is nothing."""
    kept = {
        "氯仿": "氯",
        "chloroform": "chlor",
        "bromoform": "brom",
        "iodoform": "iod",
        "fluoroform": "fluor",
    }
    return kept.get(match[0], "")


_HALIDE = re.compile(r"^[^-\d,]*[氟氯溴碘]化[^-\d,]*$|^[a-z ()]*(?:fluor|chlor|brom|iod)ide$")


def _other_halogen(one: str, two: str) -> bool:
    """Whether two names speak of different halogens.

    Names of one language do where they share none (溴甲烷, 甲基氯), or where they are alike but for them
    (溴氯甲烷, 溴甲烷). One that names more of them may be the fuller name (氟烷, 2-溴-2-氯-1,1,1-三氟乙烷). Across
    languages trivial names speak of different parts (溴虫腈 is chlorfenapyr), so only halides are compared.
    """
    left, right = halogens(one), halogens(two)
    if not left or not right or left == right:
        return False
    if _chinese(one) != _chinese(two):
        halides = all(_HALIDE.match(normalise_name(name).lower()) for name in (one, two))
        return halides and not left & right
    return not left & right or _without_halogens(one) == _without_halogens(two)


def _without_halogens(name: str) -> str:
    return re.sub(r"[氟氯溴碘代]|(?:fluor|chlor|brom|iod)(?:o|in)?", "", skeleton(name))


# Names that differ in nothing else say another degree of oxidation: sulfurous/sulfuric, nitrite/nitrate,
# chlorate/perchlorate, cuprous/cupric.
_ENDING = re.compile(r"^(?:hypo|per|pyro|meta)?([a-z]{2,}?)(?:ous|ic|ide|ite|ate)$")


def _endings(name: str) -> str:
    """An English name without the endings of its words, "" where none has one."""
    words = re.split(r"[\s-]+", normalise_name(name).lower())
    bare = [_ENDING.sub(r"\1", word) for word in words]
    return "" if bare == words or _chinese(name) else " ".join(bare)


def _multiples(name: str) -> Counter[str]:
    low = normalise_name(name).lower()
    zh = re.findall(r"([一二三四五六七八九十])(?!水|价)", low)
    return Counter([*(_COUNTS_ZH[m] for m in zh), *_COUNTS_EN.findall(low)])


def _kind_of_salt(marks: Counter[str]) -> str:
    """acid, salt or ester; "hydrogen cyanide" is an acid's other name and tells nothing."""
    (mark,) = marks or ("",)
    return "" if re.match(r"salt (?:di|tri)?hydrogen", mark) else mark.split(" ")[0]


def configuration(name: str) -> str:
    """Capital D- and L- of a name: D-lactic acid and d-lactic acid, which fold to one form, are two substances."""
    plain = unicodedata.normalize("NFKC", name)
    return "" if plain == plain.upper() else "".join(re.findall(r"(?<![A-Za-z])([DL])(?=-[a-z])", plain))


# --- formulae ----------------------------------------------------------------------

_FORMULA = re.compile(rf"(?:(?:{ELEMENT_SYMBOL})\d*|\((?:(?:{ELEMENT_SYMBOL})\d*)+\)\d*)+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def as_formula(name: str) -> str:
    """A name that is a formula itself ("CuCl2"), else ""."""
    form = plain_width(name).translate(_SUBSCRIPTS).strip()
    return form if _FORMULA.fullmatch(form) and sum(map(str.isupper, form)) > 1 else ""


def one_composition(one: str, two: str) -> bool | None:
    """Whether two formulae count the same atoms (CH3OH, CH₄O); None where one of them cannot be read."""
    from chemicals.elements import nested_formula_parser

    forms = [re.sub(r"\s", "", plain_width(formula).translate(_SUBSCRIPTS)) for formula in (one, two)]
    if forms[0] == forms[1]:
        return True
    if ("·" in forms[0]) != ("·" in forms[1]):  # a hydrate or another addition compound
        return False
    if not all(re.fullmatch(r"[A-Za-z0-9()]+", form) for form in forms):  # hydrates and ions are not parsed
        return None
    try:
        return bool(nested_formula_parser(forms[0]) == nested_formula_parser(forms[1]))
    except ValueError:
        return None


# --- pairs -------------------------------------------------------------------------


_IDS = ("cas", "inchikey", "ec")


def disputed(record: Record, table: AliasTable) -> str:
    """Why a mention's own identifiers speak against its name, "" where they do not.

    The name leads to one substance of the repository and the number to another:
    one of the two is misprinted, and nobody can tell which.
    """
    known = table.lookup(record.name)
    number = _number(record)
    if number and valid_cas(known) and known != number:
        return f"{record.name} is known as {known}, its page gives the CAS number {number}"
    own = number or known
    for name, value, keys in (
        ("InChIKey", record.inchikey, table.inchikeys),
        ("EC number", record.ec, table.ecs),
    ):
        other = keys.get(value, "") if value else ""
        if own and other and own != other:
            return f"{record.name} is {own}, the {name} {value} of its page belongs to {other}"
    return ""


def decide(one: Record, two: Record, table: AliasTable) -> Verdict:
    """Rules in order: trusted ids that differ, equal CAS, InChIKey, EC, alias table; else apart or review.

    Whatever would merge is held back where an identifier speaks against a name
    (``disputed``), two names against each other (``contradiction``) or formulae differ.
    """
    found = _decide(one, two, table)
    if found.kind != "merge":
        return found
    for record in (one, two):
        if why := disputed(record, table):
            return Verdict("review", "id_against_name", why)
    if kind := contradiction(one.name, two.name):
        return Verdict("review", f"{found.rule}_other_{kind}", f"{found.why}, but {kind} differs")
    if configuration(one.name) != configuration(two.name) and found.rule == "same_name":
        return Verdict("review", "same_name_other_stereo", f"{one.name} and {two.name}")
    formulae = [record.formula for record in (one, two)]
    if all(formulae) and one_composition(*formulae) is False:
        return Verdict("review", f"{found.rule}_other_formula", " and ".join(sorted(formulae)))
    return found


def _decide(one: Record, two: Record, table: AliasTable) -> Verdict:
    for name in _IDS:
        a, b = getattr(one, name), getattr(two, name)
        if a and b and a != b:
            return Verdict("apart", f"different_{name}", f"{a} and {b}")
    link = _solution(one, two, table)
    if link:
        return link
    for name in _IDS:
        a, b = getattr(one, name), getattr(two, name)
        if a and a == b and (name != "cas" or valid_cas(a)):
            block = blocked(one.name, two.name, same_id=True)
            if block:
                return Verdict("link", f"same_{name}_other_{block}", f"{a}, but {block} differs")
            left, right = (_number(record) or table.lookup(record.name) for record in (one, two))
            if left and right and left != right:  # an EC number of a group is no proof against two names
                return Verdict("apart", "different_alias", f"{left} and {right}")
            return Verdict("merge", f"same_{name}", a)
    return _by_alias(one, two, table)


def _solution(one: Record, two: Record, table: AliasTable) -> Verdict | None:
    for mixed, pure in ((one, two), (two, one)):
        known = table.dissolved(mixed.name)
        base = pure.cas or table.lookup(pure.name)
        if known and known == base and not table.dissolved(pure.name):
            return Verdict("link", "solution_of", f"{mixed.name} is a solution of {known}")
        if mixed.mixture != pure.mixture and mixed.mixture:
            return Verdict(
                "link" if mixed.cas and mixed.cas == base else "apart",
                "mixture",
                f"{mixed.name} is a mixture",
            )
    return None


def _number(record: Record) -> str:
    return record.cas if valid_cas(record.cas) else ""


def _by_alias(one: Record, two: Record, table: AliasTable) -> Verdict:
    if one.form == two.form:
        if table.ambiguous(one.name) and not (_number(one) and _number(two)):
            return Verdict("review", "ambiguous_name", f"{one.name} leads to several substances")
        return Verdict("merge", "same_name", one.form)
    left, right = _number(one) or table.lookup(one.name), _number(two) or table.lookup(two.name)
    if any(table.ambiguous(record.name) and not _number(record) for record in (one, two)):
        return Verdict("review", "ambiguous_name", f"{one.name} or {two.name} leads to several substances")
    if left and right and left != right:
        return Verdict("apart", "different_alias", f"{left} and {right}")
    if left and left == right:
        block = blocked(one.name, two.name, same_id=True)
        if block:
            return Verdict("link", f"alias_other_{block}", f"{left}, but {block} differs")
        return Verdict("merge", "alias", left)
    block = structural_block(one.name, two.name)
    return Verdict("apart", f"block_{block}" if block else "no_evidence", "names alone prove nothing")

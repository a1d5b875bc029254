"""Whether two names can mean one substance: normal forms, hard blocks, pairwise verdicts.

Source: knowledge-graph design, section 3. Names are never compared by
similarity: methanol and ethanol score 93 of 100, 苯酚 and 石炭酸 score 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from corpus.names import normalise_name, valid_cas

Kind = Literal["merge", "link", "apart", "review"]


@dataclass(frozen=True)
class Record:
    """What is known of one mention of a substance. ``name`` as written."""

    name: str
    cas: str = ""
    inchikey: str = ""
    ec: str = ""
    mixture: bool = False

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
    """Curated and crawled names: normal form → keys. A name with several keys is ambiguous and leads nowhere."""

    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    inchikeys: Mapping[str, str] = field(default_factory=dict)
    ecs: Mapping[str, str] = field(default_factory=dict)
    solutions: Mapping[str, frozenset[str]] = field(default_factory=dict)

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

_POSITIONS = {"邻": "ortho", "间": "meta", "对": "para", "o": "ortho", "m": "meta", "p": "para",
              "ortho": "ortho", "meta": "meta", "para": "para"}  # fmt: skip
_BRANCHES = {"正": "n", "异": "iso", "仲": "sec", "叔": "tert", "新": "neo", "n": "n", "iso": "iso", "sec": "sec",
             "tert": "tert", "neo": "neo", "s": "sec", "t": "tert"}  # fmt: skip
_STEREO = {"顺": "cis", "反": "trans", "左旋": "l", "右旋": "d"}
_DEGREES = "亚次高过偏焦"
_COUNTS_ZH = {"一": "mono", "二": "di", "三": "tri", "四": "tetra", "五": "penta", "六": "hexa", "七": "hepta", "八": "octa",
              "九": "nona", "十": "deca", "半": "hemi", "单": "mono"}  # fmt: skip
_FORM_WORDS: tuple[tuple[str, str], ...] = (
    ("solution", r"溶液|水溶液|福尔马林|氨水|\bsolutions?\b|\baqueous\b|formalin|\d+ ?% in water"),
    ("inhibited", r"抑制了的|抑制的|加阻聚剂|含阻聚剂|\binhibited\b"),
    ("stabilised", r"稳定的|稳定化的|加稳定剂|\bstabili[sz]ed\b"),
    ("fuming", r"发烟|\bfuming\b"),
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
            for m in re.findall(r"^[邻间对]|(?<=-)[邻间对]|(?<![a-z])(?:o|m|p|ortho|meta|para)(?=-)", low)
        ),
        "branch": Counter(_branches(low)),
        "stereo": Counter(_stereo(form, low)),
        "degree": Counter(c for c in form if c in _DEGREES),
        "oxidation": Counter(m.upper() for m in re.findall(r"\(([ivx]+)\)", low)),
        "hydrate": Counter(_hydrates(form, low)),
        "salt": Counter(_salt(form, low)),
        "group": Counter(["class"] if _CLASS_NAME.search(form) else []),
        "form": Counter(name for name, pattern in _COMPILED_FORMS if pattern.search(form)),
        "anhydrous": Counter(["anhydrous"] if _ANHYDROUS.search(form) else []),
    }
    return found


def _locants(form: str) -> list[str]:
    return [match[0] for match in re.finditer(r"(?<![\d.,])\d+(?:,\d+)*(?=-)", form)]


def _branches(low: str) -> list[str]:
    zh = re.findall(r"^(正|异|仲|叔|新)|(?<=[-,])(正|异|仲|叔|新)", low)
    en = re.findall(r"(?<![a-z])(n|iso|sec|tert|neo|s|t)(?=-)|(?<![a-z])(iso|neo)(?=[a-z]{3})", low)
    return [_BRANCHES[a or b] for a, b in zh + en]


def _stereo(form: str, low: str) -> list[str]:
    zh = [_STEREO[m] for m in re.findall(r"左旋|右旋|^顺|^反|(?<=-)顺|(?<=-)反", low)]
    en = re.findall(r"(?<![a-z])(cis|trans)(?=-)", low) + re.findall(r"(?<![a-z])([ezrsdl])(?=\)?-)", low)
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
    chinese = [bool(re.search(r"[一-鿿]", name)) for name in (one, two)]
    return blocked(one, two, same_id=chinese[0] != chinese[1])


# --- pairs -------------------------------------------------------------------------


def decide(one: Record, two: Record, table: AliasTable) -> Verdict:
    """Rules in order: trusted ids that differ, equal CAS, InChIKey, EC, alias table; else apart or review."""
    for name, a, b in (
        ("cas", one.cas, two.cas),
        ("inchikey", one.inchikey, two.inchikey),
        ("ec", one.ec, two.ec),
    ):
        if a and b and a != b:
            return Verdict("apart", f"different_{name}", f"{a} and {b}")
    link = _solution(one, two, table)
    if link:
        return link
    for name, a, b in (
        ("cas", one.cas, two.cas),
        ("inchikey", one.inchikey, two.inchikey),
        ("ec", one.ec, two.ec),
    ):
        if a and a == b and (name != "cas" or valid_cas(a)):
            block = blocked(one.name, two.name, same_id=True)
            if block:
                return Verdict("link", f"same_{name}_other_{block}", f"{a}, but {block} differs")
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
        if table.ambiguous(one.name):
            return Verdict("review", "ambiguous_name", f"{one.name} leads to several substances")
        return Verdict("merge", "same_name", one.form)
    left, right = _number(one) or table.lookup(one.name), _number(two) or table.lookup(two.name)
    if table.ambiguous(one.name) or table.ambiguous(two.name):
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

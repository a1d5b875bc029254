"""Names and CAS numbers: one normal form used for look-ups everywhere.

Two names with the same normal form are written the same way; whether they mean
the same substance is decided by identity rules, never here (knowledge-graph
design, section 3). Where folding could join two substances (N-butyl and
n-butyl, CO and Co), the forms stay apart.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

from corpus.dashes import DASHES

_CAS = re.compile(r"[1-9]\d{1,6}-\d{2}-\d")
_ALPHABETS = r"A-Za-z_\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff"  # Chinese has no blanks: 号 may touch a number
_CAS_LOOSE = re.compile(
    rf"(?<![{_ALPHABETS}\d.-])([1-9]\d{{1,6}}) ?- ?(\d{{2}}) ?- ?(\d)(?![{_ALPHABETS}\d-]|\.\d)"
)
_DASHES = re.compile(f"[{DASHES}\u30fc\u00ad]")  # and what stands for them in names: ー, soft hyphen
_BRACKETS = str.maketrans("[]{}【】〔〕〖〗〈〉⟨⟩", "()()()()()()()")
_QUOTES = str.maketrans(dict.fromkeys("‘’‛′´`ʹ＇", "'") | dict.fromkeys('″“”"＂', "''"))
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta",
    "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu", "ξ": "xi", "π": "pi", "σ": "sigma",
    "τ": "tau", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
_GREEK_TABLE = str.maketrans(_GREEK | {k.upper(): v for k, v in _GREEK.items()})
_DOTTED_GREEK = re.compile(rf"\.({'|'.join(_GREEK.values())})\.", re.IGNORECASE)
_CJK = "\u3400-\u9fff\uf900-\ufaff"
_ELEMENTS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb "
    "Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am"
)
ELEMENT_SYMBOL = "|".join(sorted(_ELEMENTS.split(), key=lambda symbol: (-len(symbol), symbol)))
_FORMULA = re.compile(rf"(?:(?:{ELEMENT_SYMBOL})\d*|\((?:(?:{ELEMENT_SYMBOL})\d*)+\)\d*)+")
# Groups with one skeleton only: "n-" before them can only be a nitrogen locant.
_ON_NITROGEN = (
    "methyl|ethyl|phenyl|benzyl|nitroso|nitro|acetyl|vinyl|ethenyl|hydroxy|methoxy|cyano|chloro|bromo|"
    "formyl|amino|allyl|cyclo|iso|sec|tert|naphthyl|tosyl|oxide|n-"
)
_LOCANT_N = re.compile(
    rf"(?<![a-z])n'*(?=-(?:{_ON_NITROGEN}))|(?<![a-z])n'*(?=,(?:n|o|s)\b)|(?<=n,)n|(?<=n',)n", re.IGNORECASE
)


# Two spellings of one word, the usual one second.
_SPELLINGS = (("sulph", "sulf"), ("aluminum", "aluminium"), ("cesium", "caesium"))


def valid_cas(text: str) -> bool:
    """True for a CAS Registry Number in its usual form whose check digit is right."""
    if not _CAS.fullmatch(text):
        return False
    digits = text.replace("-", "")
    return sum(i * int(d) for i, d in enumerate(reversed(digits[:-1]), start=1)) % 10 == int(digits[-1])


def as_cas(text: str) -> str | None:
    """The CAS number that a text consists of, or None where there is none or its check digit is wrong.

    Full-width digits, odd dashes, leading zeros and a "CAS" label are allowed.
    """
    plain = _plain(text).strip()
    plain = re.sub(r"^cas(?: ?(?:no|rn|number|号|编号|登记号))?[.:# ]*", "", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\s+", "", plain).lstrip("0").strip("()")
    return plain if valid_cas(plain) else None


def find_cas(text: str) -> list[str]:
    """Valid CAS numbers in a text, in order of appearance, repeats included."""
    found = ("-".join(match.groups()) for match in _CAS_LOOSE.finditer(_plain(text)))
    return [cas for cas in found if valid_cas(cas)]


def _plain(text: str) -> str:
    return _DASHES.sub("-", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=1)
def _converter() -> Any:
    from opencc import OpenCC  # loads its dictionaries

    return OpenCC("t2s")


# characters of Taiwan's chemistry for which the mainland has others, as the converter leaves them:
# acyl, silicon, technetium, astatine, lutetium, plutonium, americium, californium, einsteinium
_TAIWAN = str.maketrans("醯矽𨱏砈镏钸𰾄鉲𰾭", "酰硅锝砹镥钚镅锎锿")


def simplified(text: str) -> str:
    """Traditional Chinese characters as simplified ones, of chemistry too (醯 is 酰, 矽 is 硅); other text is unchanged."""
    if not re.search(rf"[{_CJK}]", text):
        return text
    return str(_converter().convert(text)).translate(_TAIWAN)


@lru_cache(maxsize=65_536)
def normalise_name(text: str) -> str:
    """Normal form of a chemical's name, for look-ups.

    NFKC (width, super- and subscripts), one kind of bracket, dash and prime, no
    blanks inside locants or between Chinese characters, Greek letters by name,
    case folded, British and American spelling joined, traditional Chinese simplified. Case is kept where it carries
    meaning: element formulae (CO, Co) and nitrogen locants (N-butyl, n-butyl).
    """
    for _ in range(4):  # one rule can make room for another; two rounds are the rule
        once = _normal(text)
        if once == text:
            break
        text = once
    return text


def _normal(text: str) -> str:
    text = unicodedata.normalize("NFKC", _DASHES.sub("-", text).translate(_QUOTES))
    text = _DASHES.sub("-", text).translate(_QUOTES).translate(_BRACKETS)
    text = simplified(re.sub(r"\s+", " ", text).strip(" .,;:、，；：。*"))
    if _FORMULA.fullmatch(text) and (len(text) <= 3 or re.search(r"\d", text)):
        return text
    text = re.sub(r"([\u0391-\u03c9])(?=[A-Za-z])", r"\1-", _DOTTED_GREEK.sub(r"\1", text)).translate(
        _GREEK_TABLE
    )
    text = re.sub(r" ?([-,()'/]) ?", _tighten, text)
    text = re.sub(r" (?=\([IVX]+\))", "", text)  # "iron (III) oxide" is "iron(III) oxide"
    text = re.sub(rf"(?<=[{_CJK}]) | (?=[{_CJK}])", "", text)
    return _fold(text)


def _tighten(match: re.Match[str]) -> str:
    """Blanks around a joint are dropped, except outside brackets ("iron (III) oxide")."""
    joint = match[1]
    if joint == "(":
        return " (" if match[0].startswith(" ") else "("
    if joint == ")":
        return ") " if match[0].endswith(" ") else ")"
    return joint


def _fold(text: str) -> str:
    mixed = text != text.upper()
    marked = {m.start() for m in re.finditer(r"(?<![A-Za-z])[NOS](?=-[a-z])", text)} if mixed else set()
    folded = "".join(c if i in marked else c.casefold() for i, c in enumerate(text))
    for variant, usual in _SPELLINGS:
        folded = folded.replace(variant, usual)
    return _LOCANT_N.sub(lambda match: match[0].upper(), folded)

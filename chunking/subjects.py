"""Which substances a text names: so that an answer about one is never given for another.

Longest match against the names of the catalogue. A name inside a longer one is no
mention of it: 苯 in 苯胺, 钠 in 碳酸氢钠, benzene in chlorobenzene, sodium in "sodium
bicarbonate", copper sulfate in its hydrate. The longer name counts as a substance of its
own, by its words, where the catalogue does not know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import ChemicalName, EntityAlias
from corpus.ids import digest
from corpus.names import normalise_name, simplified

_LONGEST = 60
_MIXTURE, _NAMED = "mixture:", "name:"  # keys of mixtures, and of substances that only have a name
_OTHER = "other:"  # of a longer name that the catalogue does not know: keyed by its words
_CAS = re.compile(r":\d+-\d\d-\d$")  # of a solution that only the repository knows
# Morphemes that make a longer chemical word of the one they touch.
_MORPHEMES = frozenset(
    "酚胺酸醛酮醇烯烷炔醚酯腈肼脲胍脂苯萘蒽菲啶唑吡喃呋噻吩甲乙丙丁戊己庚辛壬癸异正仲叔环聚多二三四五六七八九十"
    "基氯溴碘氟氧硫磷硅硼氮氢氰硝磺羟羧氨亚过次偏焦连化钠钾钙镁铵锂钡铝锌铁铜铅汞银盐酐酰"
    "碳锰铬镍钴钛钒钨钼锡锶铍镉铋锑砷硒碲铊铈镧锆铷铯钯铂苄砜肟烃苷巯"
)
_LATIN = re.compile(r"[a-z0-9]")
# Chinese that follows a name without being part of one, though it begins with a morpheme (苯多少钱, 钠连续).
_NO_PART = re.compile(
    r"多[少大高长久么种次]|连[续接同]|过[程滤敏量期]|次[数要]|化[学工]|环[境保]|基[本于]|氧化性|二级|三级"
)
_HYDRATE_BEFORE = re.compile(r"(?:[一二三四五六七八九十半]|\d+)(?:分子)?(?:结晶)?(?:水合?|合)$")
_HYDRATE_AFTER = re.compile(
    r"[·・•.∙]\s*[\dn]*\s*h2o(?![a-z0-9])|[（(]?[一二三四五六七八九十半]?(?:水合物|结晶水|水合)"
)
_ALLOY = re.compile(r"合金|汞齐|盐")
_WATERY = frozenset("氯溴碘氨")  # whose solutions are called 氯水, 溴水
# The words of English names that make another substance of the name that they touch.
_STEM = (
    r"chlor|brom|iod|fluor|ox|sulph|sulf|selen|tellur|nitr|phosph|arsen|carb|carbon|sil|silic|bor|hydr|cyan|az|am|im"
    r"|acet|form|oxal|citr|tartr|benzo|stear|ole|palmit|laur|lact|glucon|glutam|phthal|salicyl|acryl|methacryl|propion"
    r"|butyr|valer|malon|succin|malen?|maleate|fumar|adip|chrom|mangan|permangan|molybd|tungst|vanad|alumin|titan|zinc"
    r"|stann|plumb|antimon|german|bismuth|ferr|ferri?cyan|ferrocyan|fulmin|picr|dithion|sulfon|sulphon|sulfam|xanth"
    r"|naphthen|carbam|uran|zircon|isocyan|thiocyan|gluc|bicarbon|persulf|acetyl|methox|ethox|propox|butox|alkox"
    r"|stearo|hydrox|octo|hexano|nitrit|peroxydisulf|undecylen|edet|ascorb|sorb|niob|tantal|rhen|perrhen"
)
_COUNT = r"hemi|mono|di|tri|tetra|penta|hexa|hepta|octa|nona|deca|sesqui|per|hypo|bi|poly|meta|ortho|pyro|thio|sub|super|hydro|hydrogen|iso|oxy|mon|tetr|pent|hex"
_RADICAL = (
    r"(?:(?:mono|di|tri|tetra|penta|hexa|per)?(?:chloro|bromo|fluoro|iodo|nitro|amino|hydroxy|methoxy|ethoxy|cyano|mercapto"
    r"|peroxy|oxo|thio|aceto|azo)+|[a-z0-9,'()\[\]-]*[a-z]{2}yl)"
)
_SALT = rf"(?:{_COUNT})*(?:{_STEM})(?:ide|ate|ite)s?"
_FOLLOWS = re.compile(
    r"(?:\s*\((?:i{1,3}|iv|vi{0,3}|\d[+-]?)\))?[\s-]+"
    rf"(?:(?:(?:mono|di)?hydrogen\s+)?{_SALT}|(?:{_COUNT})?hydrate|[a-z]*hydrated|acids?|[a-z]{{2,}}(?:ic|ous|oic) (?:acids?|anhydride)|{_RADICAL}"
    r"|anhydride|salts?|esters?|ethers?|oximes?|imines?|alcoholates?|amalgams?|alloys?|alum|soaps?|nitriles?"
    r"|amines?|amides?|thiols?|mercaptans?|hydrazines?|sulfones?|sulphones?|silicofluorides?)(?![a-z0-9])"
)
_SALT_OF = re.compile(r"(?:ide|ate|ite)s?$")
_BEFORE = re.compile(rf"(?<![a-z0-9]){_RADICAL}[\s-]+$")
_CATION = re.compile(
    r"(?<![a-z0-9])(?:[a-z]+ium|zinc|copper|iron|lead|silver|mercury|nickel|cobalt|manganese|tin|gold|antimony|bismuth"
    r"|[a-z]{3,}ous|cupric|ferric|mercuric|stannic|plumbic|hydrogen)(?:\s*\((?:i{1,3}|iv|vi{0,3}|\d[+-]?)\))?\s+$"
)
_SHORTEST_PART = 5  # letters of a known name that make a longer word with it a name (no "tin" in testing)


class Subjects:
    """Names of substances and the keys they lead to; names that lead to several count for all of them.

    A name of a mixture (盐酸, 甲醛溶液) is none of the pure substance, though repositories list it there.
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._keys: dict[str, set[str]] = {}
        self._names: dict[str, set[str]] = {}
        for key, name in names:
            folded = fold_names(name)
            if not _usable(folded):
                continue
            self._keys.setdefault(folded, set()).add(key)
        for folded, keys in self._keys.items():
            if any(key.startswith(_MIXTURE) for key in keys):
                described = {
                    key for key in keys if key.startswith((_MIXTURE, _NAMED)) and not _CAS.search(key)
                }
                self._keys[folded] = described or {key for key in keys if key.startswith(_MIXTURE)}
            for key in self._keys[folded]:
                self._names.setdefault(key, set()).add(folded)

    @classmethod
    def load(cls, session: Session) -> Subjects:
        """Names of the repository and aliases of the graph, ambiguous ones left out."""
        known = session.execute(select(ChemicalName.key, ChemicalName.name, ChemicalName.kind))
        # the repository's "formalin" stands under formaldehyde as its solution, which no page may describe
        rows = [(f"{_MIXTURE}{key}" if kind == "solution" else key, name) for key, name, kind in known]
        aliases = select(EntityAlias.key, EntityAlias.text).where(EntityAlias.ambiguous.is_(False))
        rows += [(key, text) for key, text in session.execute(aliases)]
        return cls(rows)

    @cached_property
    def _lengths(self) -> Mapping[str, tuple[int, ...]]:
        found: dict[str, set[int]] = {}
        for name in self._keys:
            found.setdefault(name[0], set()).add(len(name))
        return {first: tuple(sorted(lengths, reverse=True)) for first, lengths in found.items()}

    def named(self, text: str) -> frozenset[str]:
        """Keys of the substances that a text names."""
        return frozenset().union(*self.mentioned(text))

    def mentioned(self, text: str) -> list[frozenset[str]]:
        """For every name in a text the keys that it leads to, in order.

        A longer name that has a known one in it, and is not known itself, leads to a key of its own.
        """
        folded = fold_names(text)
        found: list[frozenset[str]] = []
        at = 0
        while at < len(folded):
            name = self._at(folded, at)
            if name is None:
                at += 1
                continue
            start, end = _whole(folded, at, at + len(name))
            if (start, end) == (at, at + len(name)):
                found.append(frozenset(self._keys[name]))
            elif start < end:
                words = " ".join(folded[start:end].split())
                found.append(frozenset(self._keys.get(words, {f"{_OTHER}{words}"})))
            at = max(at + len(name), end)
        return found

    def names(self, keys: Iterable[str]) -> tuple[str, ...]:
        """All names of substances, folded, ordered."""
        return tuple(
            sorted({name for key in keys for name in self._names.get(key, ())}
                   | {key.removeprefix(_OTHER) for key in keys if key.startswith(_OTHER)})
        )  # fmt: skip

    def fingerprint(self) -> str:
        """Content hash of all names and keys."""
        return digest(*(f"{name}\t{','.join(sorted(keys))}" for name, keys in sorted(self._keys.items())))

    def _at(self, text: str, at: int) -> str | None:
        for length in self._lengths.get(text[at], ()):
            name = text[at : at + length]
            if name in self._keys:
                return name
        return None


def mentions(text: str, names: Iterable[str]) -> bool:
    """Whether a text has one of the (folded) names standing alone."""
    folded = fold_names(text)
    return any(True for _ in places(folded, names))


def places(folded: str, names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where the (folded) names stand alone in a folded text."""
    for name in names:
        at = folded.find(name)
        while at >= 0:
            if _whole(folded, at, at + len(name)) == (at, at + len(name)):
                yield at, at + len(name)
            at = folded.find(name, at + 1)


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """The longest name that a name at a place is part of; (end, end) where it is part of some other word."""
    first, last = start, end
    if _LATIN.match(text[start]):
        before = text[max(0, start - 60) : start]
        salt = _SALT_OF.search(text[start:end])
        if match := _BEFORE.search(before) or (_CATION.search(before) if salt else None):
            first = start - len(before) + match.start()
        elif _LATIN.match(before[-1:]) or before.endswith(("-", ") ")):
            return _word(text, start, end)
    else:
        while first and text[first - 1] in _MORPHEMES:
            first -= 1
        if match := _HYDRATE_BEFORE.search(text[max(0, first - 8) : first]):
            first -= len(match.group())
    if _LATIN.match(text[end - 1]):
        after = text[end : end + 2]
        if _LATIN.match(after[:1]) or (after[:1] == "-" and _LATIN.match(after[1:])):
            return _word(text, start, end)
        while match := _FOLLOWS.match(text, last):
            last = match.end()
    else:
        while last < len(text) and text[last] in _MORPHEMES and not _NO_PART.match(text, last):
            last += 1
        if match := _ALLOY.match(text, last):
            last = match.end()
        elif text[start:last] in _WATERY and text[last : last + 1] == "水":
            last += 1
    if match := _HYDRATE_AFTER.match(text, last):
        last = match.end()
    return first, last


def _word(text: str, start: int, end: int) -> tuple[int, int]:
    """The Latin word around a name in it, where that can be a longer name (chlorobenzene, not "testing")."""
    first, last = start, end
    while first and (_LATIN.match(text[first - 1]) or text[first - 1] in "-,'"):
        first -= 1
    while last < len(text) and (_LATIN.match(text[last]) or text[last] in "-'"):
        last += 1
    while match := _FOLLOWS.match(text, last):
        last = match.end()
    longer = re.sub(r"^m?sds-", "", text[first:last].strip("-,'"))
    known = text[start:end]
    if len(known) < _SHORTEST_PART or known == "water" or longer in (f"{known}s", f"{known}'s") or not longer:
        return end, end
    first = text.index(longer, first)
    return (first, first + len(longer)) if longer != known else (end, end)


def _usable(name: str) -> bool:
    if not name or len(name) > _LONGEST:
        return False
    return len(name) > 2 or not name.isascii()


def fold_names(text: str) -> str:
    """The form in which names and texts are compared."""
    return simplified(normalise_name(text) if len(text) <= _LONGEST else text.casefold())

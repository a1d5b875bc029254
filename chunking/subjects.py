"""Which substances a text names: so that an answer about one is never given for another.

Longest match against the names of the catalogue. A Chinese name inside a longer
chemical word (苯 in 苯胺, 甲苯) and a Latin name inside a longer one (benzene in
chlorobenzene, methyl-benzene) are no mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import ChemicalName, EntityAlias
from corpus.ids import digest
from corpus.names import normalise_name, simplified

_LONGEST = 60
_MIXTURE, _NAMED = "mixture:", "name:"  # keys of mixtures, and of substances that only have a name
_CAS = re.compile(r":\d+-\d\d-\d$")  # of a solution that only the repository knows
# Morphemes that make a longer chemical word of the one they touch.
_MORPHEMES = frozenset(
    "酚胺酸醛酮醇烯烷炔醚酯腈肼脲胍脂苯萘蒽菲啶唑吡喃呋噻吩甲乙丙丁戊己庚辛壬癸异正仲叔环聚多二三四五六七八九十"
    "基氯溴碘氟氧硫磷硅硼氮氢氰硝磺羟羧氨亚过次偏焦连化钠钾钙镁铵锂钡铝锌铁铜铅汞银盐酐酰"
)
_LATIN = re.compile(r"[a-z0-9]")


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
        """For every name in a text the keys that it leads to, in order."""
        folded = fold_names(text)
        found: list[frozenset[str]] = []
        at = 0
        while at < len(folded):
            name = self._at(folded, at)
            if name is None:
                at += 1
                continue
            if _alone(folded, at, at + len(name)):
                found.append(frozenset(self._keys[name]))
            at += len(name)
        return found

    def names(self, keys: Iterable[str]) -> tuple[str, ...]:
        """All names of substances, folded, ordered."""
        return tuple(sorted({name for key in keys for name in self._names.get(key, ())}))

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
    for name in names:
        at = folded.find(name)
        while at >= 0:
            if _alone(folded, at, at + len(name)):
                return True
            at = folded.find(name, at + 1)
    return False


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if _LATIN.match(text[start]) and (
        _LATIN.match(before) or before == "-" or text[start - 2 : start] == ") "
    ):
        return False
    if _LATIN.match(text[end - 1]) and (
        _LATIN.match(after) or (after == "-" and _LATIN.match(text[end + 1 : end + 2]))
    ):
        return False
    return not ({before, after} & _MORPHEMES)


def _usable(name: str) -> bool:
    if not name or len(name) > _LONGEST:
        return False
    return len(name) > 2 or not name.isascii()


def fold_names(text: str) -> str:
    """The form in which names and texts are compared."""
    return simplified(normalise_name(text) if len(text) <= _LONGEST else text.casefold())

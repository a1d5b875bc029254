"""Near-duplicate documents: exact, near (MinHash LSH), contained, and editions of one regulation.

Shingles are 5-grams of characters (zh) or words (other languages). LSH only
proposes; similarity is then computed exactly on the shingle sets. Pages that
share a template but speak of different substances are never merged: a CAS
number of one that contradicts the other's vetoes (corpus design, section 8).
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from corpus import lexicon
from corpus.ids import digest
from corpus.names import find_cas, simplified
from corpus.settings import DuplicateSettings

Kind = Literal["exact", "near", "contained"]

_EDITION_SIMILARITY = 0.3  # two editions keep their title; this much text must be shared as well
_MIN_CONTAINED = 60  # shingles; a shorter page is "contained" by chance
_PARTITIONS = 16
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
_EDITION_TITLE = re.compile(
    r"[（(【\[]?\s*(?:(?:19|20)\d{2}\s*(?:年|edition|ed\.|version|版)?\s*(?:修订|修正|修改|版|公布|revised|amended)?"
    r"|修订(?:版|本)?|修正(?:版|本)?|第[一二三四五六七八九十\d]+版|rev(?:ision|\.)?\s*\d*|\d+(?:st|nd|rd|th) edition)\s*[)）】\]]?",
    re.IGNORECASE,
)
_DATED = re.compile(
    r"((?:19|20)\d{2})\s*年\s*\d{1,2}\s*月\s*\d{1,2}\s*日[^。；\n]{0,40}(?:修订|修正|公布|通过|发布|施行|实施)"
    r"|(?:amended|revised|effective|edition|as of)\D{0,30}((?:19|20)\d{2})",
    re.IGNORECASE,
)
_STANDARD = re.compile(r"\b(GBZ?(?:/T)?\s?\d+(?:\.\d+)?|ISO\s?\d+)\s?[-—–]\s?((?:19|20)\d{2})\b")


@dataclass(frozen=True)
class Candidate:
    """A refined document as deduplication sees it."""

    document_id: str
    text: str
    title: str
    language: str
    score: float

    @cached_property
    def plain(self) -> str:
        """Text without case, width, blanks' number and Markdown marks."""
        text = unicodedata.normalize("NFKC", self.text).lower()
        return re.sub(r"[\s|*_#`-]+", " ", text).strip()

    @cached_property
    def exact(self) -> str:
        """Equal for texts that differ in blanks, width, case and marks only."""
        return digest("exact", re.sub(r"\s", "", self.plain))

    @cached_property
    def cas(self) -> Counter[str]:
        """CAS numbers and how often they occur."""
        return Counter(find_cas(f"{self.title}\n{self.text}"))

    @cached_property
    def main_cas(self) -> str:
        """The CAS number of the page's subject: the most frequent, the first among equals; "" for none."""
        return self.cas.most_common(1)[0][0] if self.cas else ""

    @cached_property
    def is_regulation(self) -> bool:
        """Whether the text has the articles of a law or the number of a standard in its head."""
        return len(lexicon.ARTICLE.findall(self.text)) >= 8 or bool(_STANDARD.search(self.text[:600]))

    @cached_property
    def core_title(self) -> str:
        """Title without edition marks: the same for two editions of one regulation."""
        first = next((line for line in self.text.split("\n") if line.strip()), "").strip("# *")
        title = simplified(unicodedata.normalize("NFKC", first if first else self.title)).lower()
        title = _EDITION_TITLE.sub("", _STANDARD.sub(r"\1", title))
        return re.sub(r"[\W_]+", "", title)

    @cached_property
    def edition(self) -> tuple[str, ...]:
        """Years that tell editions apart: in the title, in a standard's number, of enactment in the text."""
        years = {*_YEAR.findall(self.title), *_YEAR.findall(self.text[:200])}
        years |= {year for _, year in _STANDARD.findall(f"{self.title}\n{self.text[:600]}")}
        years |= {one or two for one, two in _DATED.findall(self.text)}
        return tuple(sorted(years))


@dataclass
class Decision:
    """What became of a document: the one it repeats ("" for a representative) and the evidence."""

    duplicate_of: str = ""
    group: dict[str, Any] = field(default_factory=dict)


def shingles(text: str, language: str, size: int) -> frozenset[str]:
    """The set of 5-grams: of characters for Chinese (and Japanese), of words for the rest.

    A text shorter than one shingle is its own single shingle.
    """
    if language[:2] in ("zh", "ja"):
        units: Sequence[str] = re.sub(r"[\W_]+", "", text)
        grams = {units[i : i + size] for i in range(max(1, len(units) - size + 1))}
    else:
        words = re.findall(r"\w+", text)
        grams = {" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1))}
    return frozenset(str(gram) for gram in grams if gram)


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the shingles of both that they have in common; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def containment(part: frozenset[str], whole: frozenset[str]) -> float:
    """Share of a part's shingles that the whole holds."""
    return len(part & whole) / len(part) if part else 0.0


def vetoed(one: Candidate, other: Candidate) -> bool:
    """Whether CAS numbers say that two pages are about different substances."""
    if not one.cas or not other.cas or one.main_cas == other.main_cas:
        return False
    return not (other.main_cas in one.cas and one.main_cas in other.cas and set(one.cas) == set(other.cas))


def are_editions(one: Candidate, other: Candidate, similarity: float) -> bool:
    """Two regulations of one title, alike, that are dated differently."""
    return (
        one.is_regulation
        and other.is_regulation
        and one.core_title == other.core_title
        and one.core_title != ""
        and similarity >= _EDITION_SIMILARITY
        and one.edition != other.edition
    )


def find_duplicates(
    documents: Sequence[Candidate], settings: DuplicateSettings | None = None
) -> dict[str, Decision]:
    """A decision for every document; the order they are given in has no influence.

    The best-scored member of a group represents it (longer, then smaller id among
    equals); a page inside another one is represented by the whole.
    """
    settings = settings or DuplicateSettings()
    search = _Search(sorted(documents, key=lambda d: d.document_id), settings)
    decisions = {document.document_id: Decision() for document in search.documents}
    search.link_editions(decisions)
    search.merge_near(decisions)
    search.merge_contained(decisions)
    return decisions


class _Search:
    """The shingle sets and MinHashes of one run over the corpus."""

    def __init__(self, documents: list[Candidate], settings: DuplicateSettings) -> None:
        self.documents = documents
        self.settings = settings
        self.by_id = {document.document_id: document for document in documents}
        self.sets = {
            document.document_id: shingles(document.plain, document.language, settings.shingle)
            for document in documents
        }
        self._hashes: dict[str, Any] = {}
        self.editions: set[tuple[str, str]] = set()

    def _minhash(self, document_id: str) -> Any:
        from datasketch import MinHash

        if document_id not in self._hashes:
            sketch = MinHash(num_perm=self.settings.permutations, seed=1, hashfunc=zlib.crc32)
            sketch.update_batch([gram.encode() for gram in sorted(self.sets[document_id])])
            self._hashes[document_id] = sketch
        return self._hashes[document_id]

    def link_editions(self, decisions: dict[str, Decision]) -> None:
        """Find editions among regulations of one title; both stay and name each other."""
        by_title: dict[str, list[Candidate]] = {}
        for document in self.documents:
            if document.is_regulation and document.core_title:
                by_title.setdefault(document.core_title, []).append(document)
        for group in by_title.values():
            for i, one in enumerate(group):
                for other in group[i + 1 :]:
                    similarity = jaccard(self.sets[one.document_id], self.sets[other.document_id])
                    if are_editions(one, other, similarity):
                        self._link(decisions, one, other, similarity)

    def _link(
        self, decisions: dict[str, Decision], one: Candidate, other: Candidate, similarity: float
    ) -> None:
        self.editions.add(_pair(one.document_id, other.document_id))
        for this, that in ((one, other), (other, one)):
            entry = {
                "document_id": that.document_id,
                "similarity": round(similarity, 4),
                "dated": list(that.edition),
            }
            decisions[this.document_id].group.setdefault("editions", []).append(entry)

    def merge_near(self, decisions: dict[str, Decision]) -> None:
        """Exact and near duplicates: pairs by falling similarity, never against a veto inside a group."""
        groups: dict[str, list[str]] = {d.document_id: [d.document_id] for d in self.documents}
        evidence: dict[str, tuple[Kind, float]] = {}
        for kind, similarity, one, other in self._pairs():
            first, second = groups[one], groups[other]
            if first is second or any(self._apart(a, b, kind) for a in first for b in second):
                continue
            for member in second:
                groups[member] = first
            first.extend(second)
            for member in (one, other):
                evidence.setdefault(member, (kind, similarity))
        for members in {id(group): group for group in groups.values()}.values():
            best = min(members, key=self._rank)
            for member in sorted(set(members) - {best}):
                kind, similarity = evidence.get(member, ("near", self.settings.threshold))
                decisions[member].duplicate_of = best
                decisions[member].group |= {"kind": kind, "similarity": round(similarity, 4)}

    def _pairs(self) -> list[tuple[Kind, float, str, str]]:
        found: dict[tuple[str, str], tuple[Kind, float]] = {}
        for one, other in self._equal_pairs():
            found[_pair(one, other)] = ("exact", 1.0)
        for one, other in self._similar_pairs():
            if _pair(one, other) not in found:
                similarity = jaccard(self.sets[one], self.sets[other])
                if similarity >= self.settings.threshold:
                    found[_pair(one, other)] = ("near", similarity)
        ordered = sorted(found.items(), key=lambda item: (item[1][0], -item[1][1], item[0]))
        return [(kind, similarity, one, other) for (one, other), (kind, similarity) in ordered]

    def _equal_pairs(self) -> Iterable[tuple[str, str]]:
        by_hash: dict[str, list[str]] = {}
        for document in self.documents:
            by_hash.setdefault(document.exact, []).append(document.document_id)
        return ((group[0], other) for group in by_hash.values() for other in group[1:])

    def _similar_pairs(self) -> Iterable[tuple[str, str]]:
        from datasketch import MinHashLSH

        # a lower threshold than the wanted one: what LSH misses is lost, what it adds is only computed
        low = max(0.1, self.settings.threshold - 0.15)
        index = MinHashLSH(threshold=low, num_perm=self.settings.permutations)
        for document in self.documents:
            if self.sets[document.document_id]:
                hits = index.query(self._minhash(document.document_id))
                yield from ((hit, document.document_id) for hit in sorted(hits))
                index.insert(document.document_id, self._minhash(document.document_id))

    def _apart(self, one: str, other: str, kind: Kind) -> bool:
        if kind == "exact":
            return False
        left, right = self.by_id[one], self.by_id[other]
        return _pair(one, other) in self.editions or left.language != right.language or vetoed(left, right)

    def _rank(self, document_id: str) -> tuple[float, int, str]:
        document = self.by_id[document_id]
        return (-document.score, -len(document.text), document_id)

    def merge_contained(self, decisions: dict[str, Decision]) -> None:
        """A representative that lies inside a larger one becomes its duplicate, with all that pointed to it."""
        standing = [d.document_id for d in self.documents if not decisions[d.document_id].duplicate_of]
        standing.sort(key=lambda i: (-len(self.sets[i]), i))
        hits = self._containers(standing)
        kept: list[str] = []
        for part in standing:
            whole = self._whole(part, [i for i in kept if i in hits.get(part, set())])
            if whole is None:
                kept.append(part)
                continue
            share = containment(self.sets[part], self.sets[whole])
            decisions[part].duplicate_of = whole
            decisions[part].group |= {"kind": "contained", "similarity": round(share, 4)}
            for decision in decisions.values():
                if decision.duplicate_of == part:
                    decision.duplicate_of = whole

    def _containers(self, standing: Sequence[str]) -> dict[str, set[str]]:
        """Documents that may contain each of the given ones, by an LSH ensemble over set sizes."""
        from datasketch import MinHashLSHEnsemble

        usable = [i for i in standing if len(self.sets[i]) >= _MIN_CONTAINED]
        if len(usable) < 2:
            return {}
        index = MinHashLSHEnsemble(
            threshold=max(0.5, self.settings.containment - 0.2),
            num_perm=self.settings.permutations,
            num_part=min(_PARTITIONS, len(usable)),
        )
        index.index([(i, self._minhash(i), len(self.sets[i])) for i in usable])
        return {i: set(index.query(self._minhash(i), len(self.sets[i]))) - {i} for i in usable}

    def _whole(self, part: str, candidates: Sequence[str]) -> str | None:
        """The candidate that holds most of a part, above the threshold; the CAS of the part must be there."""
        best: tuple[float, str] | None = None
        for whole in candidates:
            share = containment(self.sets[part], self.sets[whole])
            if share < self.settings.containment or self._differ(part, whole):
                continue
            if best is None or (-share, whole) < (-best[0], best[1]):
                best = (share, whole)
        return best[1] if best else None

    def _differ(self, part: str, whole: str) -> bool:
        small, large = self.by_id[part], self.by_id[whole]
        if _pair(part, whole) in self.editions or small.language != large.language:
            return True
        return bool(set(small.cas) - set(large.cas)) or vetoed(small, large)


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)

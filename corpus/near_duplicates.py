"""Near-duplicate documents: exact, near (MinHash LSH), contained, and editions of one regulation.

Shingles are 5-grams of characters (zh) or words (other languages), as 64-bit hashes.
LSH only proposes near pairs, and samples of shingles propose containers; what is
proposed is then computed on the full sets. Pages that share a template but speak of
different substances are never merged: a CAS number of one that contradicts the
other's vetoes (corpus design, section 8).

A site may give thousands of pages of one template, so the veto comes before the
search: signatures are salted with what two pages must agree in, and pages that a veto
would keep apart are never compared. Per document only its signature and a sample of
its shingles stay in memory; texts are read again for the few that are compared.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from corpus import lexicon
from corpus.dashes import with_hyphens
from corpus.fidelity import facts, negations, numbers_in_order
from corpus.ids import digest
from corpus.names import find_cas, simplified
from corpus.settings import DuplicateSettings

Kind = Literal["exact", "near", "contained"]

_EDITION_SIMILARITY = 0.3  # two editions keep their title; this much text must be shared as well
_MIN_CONTAINED = 60  # shingles; a shorter page is "contained" by chance
# One shingle in 32 is sampled for the search of containers (Irber et al. 2022, FracMinHash). Those that stand in
# more than 300 documents are a template's and say nothing; of the rest a container must hold half.
_SAMPLED, _COMMON, _SHARED = 32, 300, 0.5
_BARE = re.compile(r"\d+|[-+]\d{6,}")
_SENTENCE_END = re.compile(r"[。；;！？!?\n]|\.(?=\s|$)")
_SAME_SENTENCE = 75  # of 100: two sentences that differ in a word or two
_TEXTS = 64  # texts of documents whose facts are being compared
_ALIKE = 0.8  # of the whole's shingles: a part so large is a copy, and is compared as one
_LOADED = 256  # shingle sets of documents that are being compared, kept in memory
Hashes = NDArray[np.uint64]
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
        """Equal for texts that differ in blanks, width, case and marks only; signs and parted digits count."""
        text = with_hyphens(unicodedata.normalize("NFKC", self.text).lower())
        text = re.sub(r"[\s|*_#`]+|-{3,}", " ", text)
        return digest("exact", re.sub(r"(?<!\d) | (?!\d)", "", text))

    @cached_property
    def facts(self) -> Counter[str]:
        """What two copies of one text have in common: codes, formulae, numbers with a unit."""
        found = facts(f"{self.title}\n{self.text}")
        return Counter({fact: count for fact, count in found.items() if _tells(fact)})

    @cached_property
    def sentences(self) -> frozenset[str]:
        """Sentences without blanks at their ends, the numbers in them as they are."""
        return frozenset(part.strip() for part in _SENTENCE_END.split(self.plain_lines) if part.strip())

    @cached_property
    def plain_lines(self) -> str:
        """Text without case, width and Markdown marks, line by line."""
        text = unicodedata.normalize("NFKC", self.text).lower()
        return re.sub(r"[^\S\n]+", " ", re.sub(r"[|*_#`]+", " ", text))

    @cached_property
    def measured(self) -> list[str]:
        """Numbers that carry a unit or a sign, in order."""
        return [number for number in numbers_in_order(self.text) if not _BARE.fullmatch(number)]

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


def shingles(text: str, language: str, size: int) -> Hashes:
    """Sorted hashes of the 5-grams: of characters for Chinese (and Japanese), of words for the rest.

    A text shorter than one shingle is its own single shingle.
    """
    if language[:2] in ("zh", "ja"):
        joined = re.sub(r"[\W_]+", "", text)
        units = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    else:
        words = re.findall(r"\w+", text)
        known = {word: _hashed(word) for word in set(words)}
        units = np.fromiter((known[word] for word in words), dtype=np.uint64, count=len(words))
    if not len(units):
        return units
    size = min(size, len(units))
    grams = np.zeros(len(units) - size + 1, dtype=np.uint64)
    for offset in range(size):
        grams = _mixed(grams + units[offset : offset + len(grams)])
    return np.unique(grams)


def _hashed(word: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64 (Steele et al. 2014): a bijection that spreads every bit."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _common(one: Hashes, other: Hashes) -> int:
    return len(np.intersect1d(one, other, assume_unique=True))


def jaccard(one: Hashes, other: Hashes) -> float:
    """Share of the shingles of both that they have in common; 0 for two empty sets."""
    shared = _common(one, other)
    union = len(one) + len(other) - shared
    return shared / union if union else 0.0


def containment(part: Hashes, whole: Hashes) -> float:
    """Share of a part's shingles that the whole holds."""
    return _common(part, whole) / len(part) if len(part) else 0.0


@dataclass(frozen=True)
class Sketch:
    """What the search keeps of a document once its text is gone."""

    document_id: str
    title: str
    language: str
    score: float
    length: int
    exact: str
    cas: frozenset[str]
    main_cas: str
    is_regulation: bool
    core_title: str
    edition: tuple[str, ...]
    signature: NDArray[np.uint32]
    sampled: Hashes
    shingles: int


def _tells(fact: str) -> bool:
    """Codes, formulae, and numbers that carry a unit or a sign (dates, counts and telephone numbers do not)."""
    kind, _, shown = fact.partition(":")
    return kind in {"code", "formula"} or (kind == "number" and not _BARE.fullmatch(shown))


def contradict(one: Candidate, other: Candidate) -> bool:
    """Whether two alike texts state different things: each has a fact that the other lacks, or one denies the other.

    Where only one of them says more, it may be the longer copy; where both state the
    same, they do so in the same order.
    """
    more, less = one.facts - other.facts, other.facts - one.facts
    if denies(one.sentences - other.sentences, other.sentences - one.sentences):
        return True
    if not more and not less:
        return one.measured != other.measured
    return bool(more) and bool(less)


def denies(ones: Iterable[str], others: Iterable[str]) -> bool:
    """Whether of the sentences that only one text has, one says of the other nearly the same but for a negation."""
    counted = [(other, negations(other)) for other in others]
    for sentence in ones:
        own = negations(sentence)
        for other, count in counted:
            if own != count and fuzz.ratio(sentence, other, score_cutoff=_SAME_SENTENCE):
                return True
    return False


def vetoed(one: Candidate | Sketch, other: Candidate | Sketch) -> bool:
    """Whether CAS numbers say that two pages are about different substances."""
    if not one.cas or not other.cas or one.main_cas == other.main_cas:
        return False
    return set(one.cas) != set(other.cas)


def are_editions(one: Candidate | Sketch, other: Candidate | Sketch, similarity: float) -> bool:
    """Two regulations of one title, alike, that are dated differently."""
    return _may_be_editions(one, other) and similarity >= _EDITION_SIMILARITY


def _may_be_editions(one: Candidate | Sketch, other: Candidate | Sketch) -> bool:
    return (
        one.is_regulation
        and other.is_regulation
        and one.core_title == other.core_title
        and one.core_title != ""
        and one.edition != other.edition
    )


def find_duplicates(
    documents: Iterable[Candidate],
    settings: DuplicateSettings | None = None,
    fetch: Callable[[str], Candidate] | None = None,
) -> dict[str, Decision]:
    """A decision for every document; the order they are given in has no influence.

    The best-scored member of a group represents it (longer, then smaller id among
    equals); a page inside another one is represented by the whole. With ``fetch``,
    which reads a document again by its id, ``documents`` may be a generator and no
    text is kept.
    """
    settings = settings or DuplicateSettings()
    if fetch is None:
        given = {document.document_id: document for document in documents}
        documents, fetch = given.values(), given.__getitem__
    search = _Search(documents, settings, fetch)
    decisions = {document.document_id: Decision() for document in search.documents}
    search.link_editions(decisions)
    search.merge_near(decisions)
    search.merge_contained(decisions)
    return decisions


class _Search:
    """The sketches of one run over the corpus."""

    def __init__(
        self, documents: Iterable[Candidate], settings: DuplicateSettings, fetch: Callable[[str], Candidate]
    ) -> None:
        from datasketch import MinHash

        self.settings = settings
        self._fetch = fetch
        self._empty = MinHash(num_perm=settings.permutations, seed=1, hashfunc=int)
        self._loaded: OrderedDict[str, Hashes] = OrderedDict()
        self._texts: dict[str, Candidate] = {}
        self.documents = sorted(map(self._sketch, documents), key=lambda d: d.document_id)
        self.by_id = {document.document_id: document for document in self.documents}
        self.editions: set[tuple[str, str]] = set()

    def _sketch(self, document: Candidate) -> Sketch:
        grams = shingles(document.plain, document.language, self.settings.shingle)
        return Sketch(
            document.document_id,
            document.title,
            document.language,
            document.score,
            len(document.text),
            document.exact,
            frozenset(document.cas),
            document.main_cas,
            document.is_regulation,
            document.core_title,
            document.edition,
            self._signature(grams),
            grams[grams % np.uint64(_SAMPLED) == 0],
            len(grams),
        )

    def _signature(self, grams: Hashes) -> NDArray[np.uint32]:
        sketch = self._empty.copy()
        short = (grams >> np.uint64(32)).tolist()
        for start in range(0, len(short), 4096):
            sketch.update_batch(short[start : start + 4096])
        values: NDArray[np.uint32] = sketch.hashvalues
        return values

    def _minhash(self, document: Sketch, agreed: str) -> Any:
        """The signature, salted: only documents that agree in ``agreed`` can have a band in common."""
        from datasketch import MinHash

        salt = np.uint32(zlib.crc32(f"{document.language}\0{agreed}".encode()))
        return MinHash(
            seed=1,
            hashvalues=document.signature ^ salt,
            permutations=self._empty.permutations,
            scheme=self._empty.scheme,
        )

    def _set(self, document_id: str) -> Hashes:
        """The shingles of a document, from the last few that were compared or from its text."""
        if document_id in self._loaded:
            self._loaded.move_to_end(document_id)
            return self._loaded[document_id]
        document = self._fetch(document_id)
        found = shingles(document.plain, document.language, self.settings.shingle)
        self._loaded[document_id] = found
        if len(self._loaded) > _LOADED:
            self._loaded.popitem(last=False)
        return found

    def link_editions(self, decisions: dict[str, Decision]) -> None:
        """Find editions among regulations of one title; both stay and name each other."""
        by_title: dict[str, list[Sketch]] = {}
        for document in self.documents:
            if document.is_regulation and document.core_title:
                by_title.setdefault(document.core_title, []).append(document)
        for group in by_title.values():
            for i, one in enumerate(group):
                for other in group[i + 1 :]:
                    if not _may_be_editions(one, other):
                        continue
                    similarity = jaccard(self._set(one.document_id), self._set(other.document_id))
                    if are_editions(one, other, similarity):
                        self._link(decisions, one, other, similarity)

    def _link(self, decisions: dict[str, Decision], one: Sketch, other: Sketch, similarity: float) -> None:
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
            if first is second or any(
                self._apart(a, b, kind) or (kind != "exact" and self._contradict(a, b))
                for a in first
                for b in second
            ):
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
            pair = _pair(one, other)
            if pair not in found and not self._apart(one, other, "near"):
                similarity = jaccard(self._set(one), self._set(other))
                if similarity >= self.settings.threshold and not self._contradict(one, other):
                    found[pair] = ("near", similarity)
        ordered = sorted(found.items(), key=lambda item: (item[1][0], -item[1][1], item[0]))
        return [(kind, similarity, one, other) for (one, other), (kind, similarity) in ordered]

    def _equal_pairs(self) -> Iterable[tuple[str, str]]:
        by_hash: dict[str, list[str]] = {}
        for document in self.documents:
            by_hash.setdefault(document.exact, []).append(document.document_id)
        return ((group[0], other) for group in by_hash.values() for other in group[1:])

    def _similar_pairs(self) -> Iterator[tuple[str, str]]:
        """Proposals of the LSH among documents that no CAS number keeps apart; one of each exact group.

        Two pages with CAS numbers are merged only where the main one or all of them
        agree; a page without any is compared with every other one.
        """
        from datasketch import MinHashLSH

        # a lower threshold than the wanted one: what LSH misses is lost, what it adds is only computed
        low = max(0.1, self.settings.threshold - 0.15)
        index = MinHashLSH(threshold=low, num_perm=self.settings.permutations)
        seen: set[tuple[str, str]] = set()
        for document in sorted(self.documents, key=lambda d: (bool(d.cas), d.document_id)):
            if not document.shingles or (document.exact, document.language) in seen:
                continue
            seen.add((document.exact, document.language))
            own = [f"main {document.main_cas}", f"all {sorted(document.cas)}"] if document.cas else ["none"]
            hits: set[str] = set()
            for agreed in {"none", *own}:
                hits.update(name for name, _ in index.query(self._minhash(document, agreed)))
            yield from ((hit, document.document_id) for hit in sorted(hits))
            for agreed in own:
                index.insert((document.document_id, agreed), self._minhash(document, agreed))

    def _apart(self, one: str, other: str, kind: Kind) -> bool:
        if kind == "exact":
            return False
        left, right = self.by_id[one], self.by_id[other]
        return _pair(one, other) in self.editions or left.language != right.language or vetoed(left, right)

    def _contradict(self, one: str, other: str) -> bool:
        return contradict(self._read(one), self._read(other))

    def _read(self, document_id: str) -> Candidate:
        if document_id not in self._texts:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            self._texts[document_id] = self._fetch(document_id)
        return self._texts[document_id]

    def _rank(self, document_id: str) -> tuple[float, int, str]:
        document = self.by_id[document_id]
        return (-document.score, -document.length, document_id)

    def merge_contained(self, decisions: dict[str, Decision]) -> None:
        """A representative that lies inside a larger one becomes its duplicate, with all that pointed to it."""
        standing = [d for d in self.documents if not decisions[d.document_id].duplicate_of]
        standing.sort(key=lambda d: (-d.shingles, d.document_id))
        pointing: dict[str, list[Decision]] = {}
        for decision in decisions.values():
            if decision.duplicate_of:
                pointing.setdefault(decision.duplicate_of, []).append(decision)
        kept: set[str] = set()
        for part, candidates in self._containers(standing):
            whole = self._whole(part.document_id, [i for i in candidates if i in kept])
            if whole is None:
                kept.add(part.document_id)
                continue
            share = containment(self._set(part.document_id), self._set(whole))
            decision = decisions[part.document_id]
            decision.duplicate_of = whole
            decision.group |= {"kind": "contained", "similarity": round(share, 4)}
            moved = [decision, *pointing.pop(part.document_id, [])]
            for other in moved:
                other.duplicate_of = whole
            pointing.setdefault(whole, []).extend(moved)

    def _containers(self, standing: Sequence[Sketch]) -> Iterator[tuple[Sketch, list[str]]]:
        """Each document with those that may contain it: they share half of its sampled shingles, and no veto."""
        owners = np.repeat(np.arange(len(standing)), [len(d.sampled) for d in standing])
        hashes = np.concatenate([d.sampled for d in standing]) if standing else np.empty(0, dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        hashes, owners = hashes[order], owners[order]
        for number, part in enumerate(standing):
            if part.shingles < _MIN_CONTAINED:
                yield part, []
                continue
            first = np.searchsorted(hashes, part.sampled, side="left")
            last = np.searchsorted(hashes, part.sampled, side="right")
            telling = (last - first) <= _COMMON
            places = [owners[a:b] for a, b in zip(first[telling], last[telling], strict=True)]
            if not places:
                yield part, []
                continue
            found, counts = np.unique(np.concatenate(places), return_counts=True)
            enough = found[(counts >= max(1.0, _SHARED * len(places))) & (found != number)]
            names = [standing[int(i)].document_id for i in enough]
            yield part, [name for name in names if not self._differ(part.document_id, name)]

    def _whole(self, part: str, candidates: Sequence[str]) -> str | None:
        """The candidate that holds most of a part, above the threshold."""
        best: tuple[float, str] | None = None
        for whole in candidates:
            share = containment(self._set(part), self._set(whole))
            if share < self.settings.containment or self._read(part).facts - self._read(whole).facts:
                continue
            copied = self.by_id[part].shingles >= _ALIKE * self.by_id[whole].shingles
            if copied and self._contradict(part, whole):
                continue
            if best is None or (-share, whole) < (-best[0], best[1]):
                best = (share, whole)
        return best[1] if best else None

    def _differ(self, part: str, whole: str) -> bool:
        small, large = self.by_id[part], self.by_id[whole]
        if _pair(part, whole) in self.editions or small.language != large.language:
            return True
        return not small.cas <= large.cas or vetoed(
            small, large
        )  # what the part is about must be in the whole


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)

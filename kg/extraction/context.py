"""What every rule receives: the document taken apart, its subject, and helpers over spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpus.names import normalise_name
from corpus.quantities import is_no_data
from kg.extraction.model import Draft, Entry, Reading, Subject
from kg.extraction.vocabulary import Field, field_of, group_term, shadow
from kg.schema import DropReason, Modality, NodeLabel, Polarity, Relation

_BREAK = re.compile(
    r"\s*(?:\n\s*(?:[-*+•]\s+|\d+[.)]\s+|:\s*)?|<br\s*/?>|[;；](?:\s|(?=\S)))\s*", re.IGNORECASE
)
_BULLET = re.compile(r"^(?:[-*+•]\s+|:\s+)")
_CJK = re.compile(r"[一-鿿]")


def language_of(text: str) -> str:
    """zh where there is a Chinese character, en for other words with letters."""
    return "zh" if _CJK.search(text) else "en"


@dataclass
class Context:
    """Reading and subject of one document, with span helpers used by all rules."""

    reading: Reading
    subject: Subject
    names: frozenset[str] = field(default_factory=frozenset)
    spellings: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, reading: Reading, subject: Subject) -> Context:
        """Context with the subject's names in normal form."""
        names = frozenset(normalise_name(name) for name in (subject.name, *subject.names) if name)
        spellings = frozenset(
            shadow(name).lower()
            for name in (subject.name, *subject.names)
            if len(name) > 1 or "一" <= name <= "鿿"
        )
        return cls(reading, subject, names, spellings)

    def text(self, start: int, end: int) -> str:
        """Words as written."""
        return self.reading.text[start:end]

    def shadow(self, start: int, end: int) -> str:
        """Words in plain width, simplified."""
        return self.reading.shadow[start:end]

    def field(self, entry: Entry) -> Field:
        """Field of an entry's label."""
        found = field_of(entry.label)
        if found is None:  # entries are only made from known labels
            raise ValueError(f"{entry.label!r} is not a label")
        return found[1]

    def no_data(self, entry: Entry) -> bool:
        """Whether the value says that there is none ("无资料", "不适用（气体）")."""
        words = self.shadow(entry.start, entry.end).strip()
        return is_no_data(words) or is_no_data(re.sub(r"\([^()]*\)\s*[.。]?$", "", words))

    def segments(self, start: int, end: int) -> list[tuple[int, int]]:
        """Parts of a value: lines, list items, and what semicolons separate (outside brackets)."""
        cuts = [start]
        for match in _BREAK.finditer(self.reading.shadow, start, end):
            if self._depth(start, match.start()) == 0:
                cuts += [match.start(), match.end()]
        cuts.append(end)
        spans = zip(cuts[::2], cuts[1::2], strict=True)
        return [span for a, b in spans if (span := self.trim(a, b)) is not None]

    def trim(self, start: int, end: int, marks: str = " \t\n*") -> tuple[int, int] | None:
        """The span without blanks and bullets at its ends; None where nothing is left."""
        bullet = _BULLET.match(self.reading.shadow[start:end])
        if bullet:
            start += bullet.end()
        while start < end and self.reading.text[start] in marks:
            start += 1
        while end > start and self.reading.text[end - 1] in marks:
            end -= 1
        return (start, end) if start < end else None

    def _depth(self, start: int, position: int) -> int:
        part = self.reading.shadow[start:position]
        return max(0, part.count("(") - part.count(")"))

    def draft(
        self,
        relation: Relation,
        obj: str,
        label: NodeLabel,
        span: tuple[int, int],
        *,
        key: str = "",
        properties: Mapping[str, Any] | None = None,
        value: Mapping[str, Any] | None = None,
        polarity: Polarity = Polarity.POSITIVE,
        modality: Modality = Modality.IS,
        conditions: Mapping[str, str] | None = None,
        section: int | None = None,
        subject: str = "",
        rejected: DropReason | None = None,
    ) -> Draft:
        """A draft over a span of the text."""
        return Draft(
            relation, obj.strip(), label, span[0], span[1], subject, key, properties or {}, value or {},
            polarity, modality, conditions or {}, section, rejected=rejected,
        )  # fmt: skip

    def no_data_draft(self, relation: Relation, label: NodeLabel, entry: Entry, **properties: str) -> Draft:
        """The explicit statement that there is no value: recorded, never kept as a value."""
        return self.draft(
            relation,
            self.text(entry.start, entry.end)[:200],
            label,
            (entry.label_start, entry.end),
            properties=properties,
            section=entry.sds,
            rejected=DropReason.NO_DATA,
        )

    def matter(self, start: int, end: int) -> tuple[str, NodeLabel, str, dict[str, Any]]:
        """What a list item names: words, label, key ("" for a substance) and properties."""
        words = self.text(start, end)
        term = group_term(words)
        if term is None:
            return words, NodeLabel.SUBSTANCE, "", {}
        names = {name: shown for name, shown in (("zh", term.zh), ("en", term.en)) if shown}
        return words, NodeLabel.REACTIVE_GROUP, term.key, names

    def about_other(self, words: str) -> bool:
        """Whether words of a noun phrase ("苯的", "of benzene") name another substance than the subject."""
        name = normalise_name(words)
        return bool(name) and name not in self.names

    def entries(self, *families: str) -> Iterator[tuple[Entry, Field]]:
        """Entries of the families, in text order."""
        for entry in self.reading.entries:
            found = self.field(entry)
            if found.family in families:
                yield entry, found


def context_matches(words: Sequence[str], pattern: re.Pattern[str]) -> bool:
    """Whether any heading or label speaks of a topic."""
    return any(pattern.search(word) for word in words if word)

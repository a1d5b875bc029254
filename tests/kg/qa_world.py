"""Catalogue, graph and facts of some sheets, with what the makers of questions make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corpus.catalogue import Catalogue
from kg.graph_settings import QuestionSettings
from kg.projection import graph_documents
from kg.qa import aggregative, boolean, multi_hop, single_hop
from kg.qa.context import Context
from kg.qa.facts import Facts, load_facts
from kg.qa.records import Candidate
from kg.qa.sampling import Side, components, sides
from kg.qa.verification import verify
from kg.store import GraphStore
from kg.sync import sync_documents

SETTINGS = QuestionSettings(evaluation_share=0)


class World:
    """What is in a catalogue, also in the graph, and as facts."""

    def __init__(
        self, catalogue: Catalogue, store: GraphStore, settings: QuestionSettings = SETTINGS
    ) -> None:
        self.catalogue, self.store, self.settings = catalogue, store, settings
        self.load()

    def load(self) -> None:
        """Bring graph and facts up to the catalogue."""
        with self.catalogue.reading() as session:
            documents = graph_documents(session)
        sync_documents(self.catalogue, self.store, documents)
        with self.catalogue.reading() as session:
            self.facts = load_facts(session)
        self.sides: dict[str, Side] = sides(components(self.facts), self.settings)
        self.ctx = Context(self.facts, self.settings, self.sides)

    def part(self, documents: set[str]) -> World:
        """The same graph, with the facts of some documents only."""
        part = object.__new__(World)
        part.catalogue, part.store, part.settings = self.catalogue, self.store, self.settings
        chosen = [f for f in self.facts.facts if f.source.document_id in documents]
        part.facts = Facts(chosen, self.facts.nodes)
        part.sides = self.sides
        part.ctx = Context(part.facts, self.settings, self.sides)
        return part

    def made(self, make: Callable[..., Any]) -> list[Candidate]:
        """All candidates of one maker."""
        if make is multi_hop.candidates:
            return multi_hop.candidates(self.ctx, self.store)[0]
        return list(make(self.ctx))

    def everything(self) -> list[Candidate]:
        """All candidates of all makers."""
        makers = (single_hop.candidates, aggregative.candidates, boolean.candidates, multi_hop.candidates)
        return list({c.id: c for make in makers for c in self.made(make)}.values())

    def held(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those that verification lets through."""
        verdicts = verify(candidates, self.facts, self.store, self.settings, self.sides)
        return [c for c in candidates if not verdicts[c.id]]

    def one(self, make: Callable[..., Any], **wanted: Any) -> Candidate:
        """The first candidate with these fields that holds as it is."""
        fitting = (
            c for c in self.made(make) if all(getattr(c, name) == value for name, value in wanted.items())
        )
        return self.held(list(fitting))[0]

    def verdict(
        self, candidate: Candidate, facts: Facts | None = None, settings: QuestionSettings | None = None
    ) -> str:
        """Reason for which a candidate is rejected, or ""."""
        found = verify([candidate], facts or self.facts, self.store, settings or self.settings, self.sides)
        return str(found[candidate.id])

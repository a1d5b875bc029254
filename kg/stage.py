"""The stages ``graph`` (extraction, identity, graph) and ``questions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from corpus.catalogue.tables import GraphSnapshot, LedgerRow, now
from corpus.ids import fingerprint
from corpus.stages import BaseStep, Item, Outcome, Stage, StageContext
from kg.graph_settings import GraphSettings, QuestionSettings
from kg.projection import Described, contribution_hash, graph_documents
from kg.store import Counters, GraphHandle
from kg.sync import remove_vanished, sync_documents

if TYPE_CHECKING:
    from kg.settings import ExtractionSettings
    from models import Models

SNAPSHOT_ITEM = "graph"


class GraphSync(BaseStep):
    """Write changed documents' contributions. A barrier: relationships are written by one writer."""

    def __init__(self, handle: GraphHandle, settings: GraphSettings) -> None:
        super().__init__(name="graph.sync", version="1", batch_size=None)
        self.handle = handle
        self.settings = settings
        self._done: Counters = Counters()

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item per document with kept assertions; its fingerprint is its contribution's content."""
        epoch = self.handle.epoch()
        with ctx.catalogue.reading() as session:
            documents = graph_documents(session)
            hashes = contribution_hash(session, documents)
        return [
            Item(document, fingerprint(self.name, self.version, [hashes[document], epoch]))
            for document in documents
        ]

    def prepare(self, ctx: StageContext, items: Sequence[Item]) -> None:
        """Write all items' contributions, a bounded group of documents at a time."""
        self._done = Counters()
        ids = [item.id for item in items]
        size, described = self.settings.documents_per_batch, Described()
        for at in range(0, len(ids), size):
            if ctx.cancelled():
                break
            self._done.add(
                sync_documents(ctx.catalogue, self.handle.store, ids[at : at + size], ctx.run_id, described)
            )
            ctx.progress(self.name, min(at + size, len(ids)), len(ids))

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """The writing is done; the first item carries the counters of all of them."""
        counts, self._done = self._done, Counters()
        return Outcome(counts={name: n for name, n in counts.as_dict().items() if n})


class GraphSnapshotStep(BaseStep):
    """Remove what vanished and name the graph's content. A barrier over all documents."""

    def __init__(self, handle: GraphHandle, sync: GraphSync) -> None:
        super().__init__(name="graph.snapshot", version="1", batch_size=None)
        self.handle = handle
        self.sync = sync

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item, keyed on every document's contribution."""
        parts = [part for item in self.sync.plan(ctx) for part in (item.id, item.fingerprint)]
        return [Item(SNAPSHOT_ITEM, fingerprint(self.name, self.version, [self.handle.epoch(), *parts]))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Remove vanished documents, then hash the graph as the server has it."""
        store = self.handle.store
        removed = remove_vanished(ctx.catalogue, store, ctx.run_id)
        snapshot, stats = store.content_hash()
        nodes, links = sum(stats["nodes"].values()), sum(stats["relationships"].values())

        def write(session: Session) -> None:
            row = session.get(GraphSnapshot, snapshot)
            if row is None:
                session.add(
                    GraphSnapshot(
                        snapshot_id=snapshot,
                        nodes=nodes,
                        relationships=links,
                        detail=stats,
                        run_id=ctx.run_id,
                    )
                )
            else:  # content that was there before is the present one again
                row.at = now()

        counts = {name: n for name, n in removed.as_dict().items() if n}
        return Outcome(detail=snapshot, write=write, counts=counts)


def current_snapshot(session: Session) -> GraphSnapshot | None:
    """The snapshot of the last sync, or None before the first."""
    row = session.get(LedgerRow, ("graph.snapshot", SNAPSHOT_ITEM))
    return session.get(GraphSnapshot, row.detail) if row is not None and row.state == "kept" else None


def graph_stage(
    extraction: ExtractionSettings, graph: GraphSettings, models: Models, handle: GraphHandle
) -> Stage:
    """Assertions, identity, and the graph they make."""
    from kg.decided import OverruleStep
    from kg.steps import extraction_steps

    sync = GraphSync(handle, graph)
    *reading, resolve = extraction_steps(extraction, models)
    steps = [*reading, OverruleStep(), resolve, sync, GraphSnapshotStep(handle, sync)]
    return Stage("graph", steps, close=handle.close)


def questions_stage(questions: QuestionSettings, models: Models, handle: GraphHandle) -> Stage:
    """Questions that graph queries prove. Shares the handle: an embedded server serves one process once."""
    from kg.decided import DroppedQuestionsStep
    from kg.qa.step import QuestionsStep

    return Stage(
        "questions", [QuestionsStep(handle, questions, models), DroppedQuestionsStep()], close=handle.close
    )

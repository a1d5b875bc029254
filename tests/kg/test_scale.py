"""Scale: one corpus of 100,000 assertions, loaded part by part; the last must not cost more than the first.

``python -m benchmarks.graph scale`` and ``python -m benchmarks.questions`` measure 10,000, 30,000 and
100,000 assertions, each from nothing. Here the same is seen in one load: what the documents from 10,000 to
30,000 and from 30,000 to 100,000 assertions cost, beside those up to 10,000. Costs are processor seconds and
counts, which other programs on the machine change little; the bounds are wide.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import event

from corpus.catalogue import Catalogue
from kg.embedded import EmbeddedGraph
from kg.projection import Described, graph_documents
from kg.qa.facts import load_facts
from kg.store import GraphStore
from kg.sync import sync_documents
from tests.kg.graph_builders import synthetic_corpus

STATEMENTS = 28  # of one made-up data sheet
PARTS = (360, 1080, 3600)  # documents: 10,000, 30,000 and 100,000 assertions
BITE, TRACED = 180, 18  # documents written together; the last ones of a part, whose memory is traced
FEW, MANY = 36, 360  # documents whose facts are held in memory


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    """A catalogue of 100,800 made-up assertions."""
    opened = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('scale')}/c.db")
    synthetic_corpus(opened, PARTS[-1])
    yield opened
    opened.close()


def processor_seconds(server: EmbeddedGraph) -> float:
    """Of this process and of the server so far."""
    times = psutil.Process(server.server_pid or 0).cpu_times()
    return time.process_time() + float(times.user + times.system)


class Selects:
    """Statements sent to the catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.n = 0
        event.listen(catalogue.engine, "after_cursor_execute", self._count)

    def _count(self, *_: object) -> None:
        self.n += 1


@pytest.mark.slow
@pytest.mark.graph
@pytest.mark.timeout(3000)
def test_loading_costs_the_same_however_much_is_there(
    corpus: Catalogue, bolt_server: EmbeddedGraph, store: GraphStore
) -> None:
    with corpus.reading() as session:
        documents = graph_documents(session)
    assert len(documents) == PARTS[-1]
    store.ensure_constraints()
    described = Described()
    selects = Selects(corpus)
    costs, statements, reads, memory = [], [], [], []
    first = 0
    for last in PARTS:
        before, sent, selects.n = processor_seconds(bolt_server), store.sent.total(), 0
        written = 0
        for at in range(first, last - TRACED, BITE):
            part = documents[at : min(at + BITE, last - TRACED)]
            written += sync_documents(corpus, store, part, described=described).nodes_created
        bites = (last - first - TRACED) / BITE
        costs.append((processor_seconds(bolt_server) - before) / bites)
        statements.append((store.sent.total() - sent) / bites)
        reads.append(selects.n / bites)
        tracemalloc.start()  # the last ones of a part: tracing makes them slow
        part = documents[last - TRACED : last]
        written += sync_documents(corpus, store, part, described=described).nodes_created
        memory.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert written >= (last - first) * STATEMENTS
        first = last
    counts = store.stats()["nodes"]
    assert counts["Assertion"] == PARTS[-1] * STATEMENTS
    assert counts["Document"] == PARTS[-1]
    # the server compiles its code in the first part, so that a later one is cheaper rather than dearer
    assert costs[-1] < 2 * costs[0], f"processor seconds of {BITE} documents grow: {costs}"
    assert statements[-1] < 1.2 * statements[0], f"statements for {BITE} documents grow: {statements}"
    assert reads[-1] < 1.2 * reads[0], f"statements to the catalogue for {BITE} documents grow: {reads}"
    assert memory[-1] < 1.3 * memory[0], f"memory of {TRACED} documents grows: {memory}"
    # nothing is left to do: the same again changes nothing
    again = sync_documents(corpus, store, documents[:BITE], described=described)
    assert again.changed == 0


def test_a_million_facts_fit_into_memory(tmp_path: Path) -> None:
    """What question making holds for each assertion, evidence and document texts included."""
    small, large = (Catalogue.open(f"sqlite:///{tmp_path}/{name}.db") for name in ("small", "large"))
    synthetic_corpus(small, FEW)
    synthetic_corpus(large, MANY)
    held = []
    for catalogue in (small, small, large):  # the first time loads code too
        gc.collect()
        tracemalloc.start()
        with catalogue.reading() as session:
            facts = load_facts(session)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0] / len(facts.facts))
        tracemalloc.stop()
        del facts
    small.close()
    large.close()
    assert held[2] < 1_500, f"{held[2]:.0f} bytes for each assertion"
    assert held[2] < 1.1 * held[1], f"bytes for each assertion grow: {held}"

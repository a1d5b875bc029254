"""Writes of a step's results: SQLite beside PostgreSQL.

    python benchmarks/catalogues.py
    python benchmarks/catalogues.py --items 2000 --rounds 5
    python benchmarks/catalogues.py --url postgresql://hchem@127.0.0.1/bench

A step that computes nothing records made-up data sheets through the code that every step
goes through: a document and its ledger row in one transaction, proved on disk before the next
one (SQLite with its write-ahead log as the platform opens it, PostgreSQL as it is
installed). Batches of 50 go to one thread and to four. Rounds alternate the two
databases, each round with an empty one. Items a second and the ratio of the medians are
printed. Without ``--url`` a PostgreSQL is started in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sqlalchemy.orm import Session

from benchmarks.workers import new_database, server, sheet
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document
from corpus.ids import digest, version_id
from corpus.stages import BaseStep, Item, Outcome, StageContext, run_batch

THREADS = (1, 4)
BATCH = 50


@dataclass
class Recording(BaseStep):
    """Records a made-up document an item."""

    name: str = "benchmark.record"
    batch_size: int | None = BATCH

    def plan(self, ctx: StageContext) -> list[Item]:
        """Not asked: the benchmark makes its own items."""
        return []

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """The document of item ``number``."""
        body, language = sheet(int(item.id), 20)

        def write(session: Session) -> None:
            name = digest("benchmark", item.id)
            session.merge(
                Document(
                    document_id=name, page_id="", source="made-up", url=f"https://made-up.example/{item.id}", identity=item.id,
                    title=body.split("\n")[0].strip("# "), language=language, kind="page", state="kept", text=body,
                    version_id=version_id(name, body), blocks=[], cleaned_text=body, cleaned_blocks=[],
                    cleaned_hash=digest("cleaned", body),
                )
            )  # fmt: skip

        return Outcome("kept", write=write)


def one_round(url: str, items: int, threads: int) -> float:
    """Items a second on an empty catalogue."""
    catalogue = Catalogue.open(url)
    try:
        step, context = Recording(), StageContext(catalogue, "benchmark")
        work = [Item(str(n), "1") for n in range(items)]
        batches = [work[at : at + BATCH] for at in range(0, items, BATCH)]
        began = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            reports = list(pool.map(lambda batch: run_batch(step, context, batch), batches))
        seconds = time.perf_counter() - began
    finally:
        catalogue.close()
    kept = sum(report.states["kept"] for report in reports)
    if kept != items:
        raise SystemExit(f"{items - kept} of {items} items were not recorded on {url.split(':')[0]}")
    return items / seconds


def compare(url: str, items: int, rounds: int) -> None:
    """Alternate the databases; print each round and the medians."""
    print(f"{items} items, {rounds} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
    found: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="catalogues-") as folder:
        for number in range(rounds):
            for threads in THREADS:
                sqlite = f"sqlite:///{folder}/{number}-{threads}.db"
                places = [("SQLite", sqlite), ("PostgreSQL", new_database(url, f"writes_{number}_{threads}"))]
                for name, place in places if number % 2 == 0 else reversed(places):
                    rate = one_round(place, items, threads)
                    found.setdefault((name, threads), []).append(rate)
                    print(f"{name:12}{threads} threads {rate:8.0f} items/s", flush=True)
    for threads in THREADS:
        one, other = (statistics.median(found[name, threads]) for name in ("SQLite", "PostgreSQL"))
        print(f"{threads} threads, medians: SQLite {one:.0f}, PostgreSQL {other:.0f} items/s: ×{other / one:.2f}")  # fmt: skip


def main() -> int:
    """Read the arguments and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--url", help="a PostgreSQL that may be used: databases writes_… are made on it")
    options = parser.parse_args()
    if options.url:
        compare(options.url, options.items, options.rounds)
        return 0
    with tempfile.TemporaryDirectory(prefix="catalogues-pg-") as folder:
        Path(folder).chmod(0o755)
        with server(Path(folder) / "postgres") as url:
            compare(url, options.items, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The writer of the graph beside what the server can do at all, and its scale.

    python -m benchmarks.graph writer              # ratios on the embedded server and on Neo4j (make neo4j)
    python -m benchmarks.graph scale               # 10k, 30k and 100k assertions, one process for each size
    python -m benchmarks.graph scale --full --folder DIR   # 35,000 documents, 1,000,000 assertions, kept in DIR

``writer`` writes the same relationships three ways, in turns, in one run on one server: ours (bounded
batches, MERGE, hash and counters), a bare UNWIND of the same rows in batches of the same size, and one
statement for each triple. ``scale`` loads made-up data sheets of 28 statements each from the catalogue.
With ``--folder`` catalogue and graph stay there: a run that was stopped goes on where it was, and
``python -m benchmarks.questions --full --folder DIR`` makes questions of them.
Figures are printed as JSON lines; the documents are made up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from neo4j import GraphDatabase
from sqlalchemy import func, select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document
from kg import queries
from kg.embedded import EmbeddedGraph
from kg.projection import Described, GraphRows, Link, Row, graph_documents
from kg.schema import NodeLabel
from kg.store import Counters, GraphStore
from kg.sync import expected_rows, sync_documents
from kg.verify import verify_graph
from tests.kg.graph_builders import synthetic_corpus
from tests.servers.neo4j_server import Neo4jServer, why_missing

STATEMENTS = 28  # of one made-up data sheet
Server = EmbeddedGraph | Neo4jServer


@contextmanager
def running(kind: str, folder: Path, heap: str) -> Iterator[Server]:
    """A server of the kind, in a folder of its own."""
    if kind == "neo4j" and (lacking := why_missing()):
        raise SystemExit(f"{lacking} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    # both servers with optimised code, as in a long run
    server: Server = (
        EmbeddedGraph(folder, heap=heap, full_jit=True, start_timeout_s=300)
        if kind == "arcadedb"
        else Neo4jServer(folder, heap=heap, full_jit=True)
    )
    with server:
        yield server


def opened(server: Server) -> GraphStore:
    """Our store on a server."""
    return GraphStore(server.uri, server.user, server.password, server.database)


# --- writer -------------------------------------------------------------------------


def bare_query(link: Link) -> str:
    """The shortest statement that writes rows of relationships between nodes that are there."""
    kind, start, end = link
    return (
        f"UNWIND $rows AS row MATCH (a:{queries.name(start)} {{key: row.start}}) "
        f"MATCH (b:{queries.name(end)} {{key: row.end}}) MERGE (a)-[r:{queries.name(kind)}]->(b) SET r = row.props"
    )


def single_query(link: Link) -> str:
    """One triple by a statement of its own."""
    kind, start, end = link
    return (
        f"MATCH (a:{queries.name(start)} {{key: $start}}) MATCH (b:{queries.name(end)} {{key: $end}}) "
        f"MERGE (a)-[r:{queries.name(kind)}]->(b) SET r = $props"
    )


def clear_links(store: GraphStore, rows: GraphRows) -> None:
    """Delete the relationships and keep the nodes."""
    for link, found in rows.links.items():
        store.delete_links(link, list(found))


def writer(kind: str, documents: int, rounds: int, folder: Path) -> None:
    """Relationships a second, three ways in turns."""
    catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
    synthetic_corpus(catalogue, documents)
    with catalogue.reading() as session:
        rows, _ = expected_rows(session, graph_documents(session), Described())
    links: dict[Link, list[Row]] = {link: list(found.values()) for link, found in sorted(rows.links.items())}
    total = sum(len(found) for found in links.values())
    # a statement for each triple is a transaction for each: a few of every type are enough
    few: dict[Link, list[Row]] = {link: found[:20] for link, found in links.items()}
    with (
        running(kind, folder / kind, "1g") as server,
        opened(server) as store,
        GraphDatabase.driver(server.uri, auth=(server.user, server.password)) as driver,
    ):
        store.ensure_constraints()
        for label in sorted(rows.nodes):
            store.write_nodes(label, list(rows.nodes[label].values()))

        def ours() -> int:
            for link, found in links.items():
                store.write_links(link, found)
            return total

        def bare() -> int:
            with driver.session(database=server.database) as session:
                for link, found in links.items():
                    query = bare_query(link)
                    for at in range(0, len(found), store.batch_size):
                        session.run(query, rows=found[at : at + store.batch_size]).consume()
            return total

        def single() -> int:
            n = 0
            with driver.session(database=server.database) as session:
                for link, found in few.items():
                    query = single_query(link)
                    for row in found:
                        session.run(query, start=row["start"], end=row["end"], props=row["props"]).consume()
                        n += 1
            return n

        ways: dict[str, Callable[[], int]] = {"ours": ours, "bare": bare, "single": single}
        speeds: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 1):
            for name in sorted(ways, key=lambda name: (hash_of(name, turn), name)):
                clear_links(store, rows)
                started = time.perf_counter()
                n = ways[name]()
                if turn:  # the first round warms the server up
                    speeds[name].append(n / (time.perf_counter() - started))
        clear_links(store, rows)
        ours()
        started = time.perf_counter()
        ours()
        again = total / (time.perf_counter() - started)
    show(
        bench="writer",
        server=kind,
        relationships=total,
        rounds=rounds,
        **{f"{name}_per_s": round(statistics.median(found)) for name, found in speeds.items()},
        unchanged_per_s=round(again),
        to_bare=ratio(speeds["ours"], speeds["bare"]),
        to_single=ratio(speeds["ours"], speeds["single"]),
        rounds_to_bare=[round(a / b, 2) for a, b in zip(speeds["ours"], speeds["bare"], strict=True)],
    )
    catalogue.close()


def hash_of(name: str, turn: int) -> int:
    """Another order of the ways in each round."""
    return (sum(map(ord, name)) * (turn + 7)) % 11


def ratio(left: list[float], right: list[float]) -> float:
    """Median of the ratios within a round: both halves of each met the same load of the machine."""
    return round(statistics.median(a / b for a, b in zip(left, right, strict=True)), 2)


# --- scale --------------------------------------------------------------------------


def scale(kind: str, documents: int, heap: str, folder: Path, verify: bool) -> None:
    """Load one size from nothing, or what is left of it; CPU and peak memory of this process and of the server."""
    catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
    fill(catalogue, documents)
    with running(kind, folder / kind, heap) as server, opened(server) as store:
        java = psutil.Process(server.server_pid or 0)
        store.ensure_constraints()
        started, before, java_before = time.perf_counter(), cpu(psutil.Process()), cpu(java)
        base = psutil.Process().memory_info().rss
        loaded = 0
        for loaded, there, done in load(catalogue, store, folder / f"loaded-{kind}.txt"):
            seconds = time.perf_counter() - started
            found: dict[str, Any] = {
                "bench": "scale",
                "server": kind,
                "documents": there,
                "assertions": there * STATEMENTS,
                "loaded_now": loaded * STATEMENTS,
                "nodes": done.nodes_created,
                "relationships": done.relationships_created,
                "seconds": round(seconds, 1),
                "cpu_s": round(cpu(psutil.Process()) - before, 1),
                "server_cpu_s": round(cpu(java) - java_before, 1),
                "assertions_per_s": round(loaded * STATEMENTS / seconds),
                "statements": store.sent.total(),
                "grown_mb": round((peak_rss() - base) / 2**20),
                "peak_mb": round(peak_rss() / 2**20),
                "server_mb": round(java.memory_info().rss / 2**20),
            }
            if there % _REPORTED == 0 and there < documents:
                show(**found, part=True)
        if not loaded:
            found = {"bench": "scale", "server": kind, "documents": documents, "loaded_now": 0}
        started = time.perf_counter()
        counts = store.content_hash()[1]
        found["snapshot_s"] = round(time.perf_counter() - started, 1)
        if (there := counts["nodes"][NodeLabel.ASSERTION.value]) != documents * STATEMENTS:
            raise SystemExit(f"{there} assertions in the graph instead of {documents * STATEMENTS}")
        if verify:
            started = time.perf_counter()
            found["differences"] = len(verify_graph(catalogue, store))
            found["verify_s"] = round(time.perf_counter() - started, 1)
            found["peak_mb_verify"] = round(peak_rss() / 2**20)
    show(**found)
    catalogue.close()


_BITE = 200  # documents written together
_REPORTED = 10 * _BITE  # documents between two lines of a long run


def fill(catalogue: Catalogue, documents: int) -> None:
    """Add the made-up sheets that are not there yet."""
    with catalogue.reading() as session:
        there = session.scalar(select(func.count()).select_from(Document)) or 0
    for at in range(there, documents, 2000):
        synthetic_corpus(catalogue, min(2000, documents - at), at)


def load(catalogue: Catalogue, store: GraphStore, record: Path) -> Iterator[tuple[int, int, Counters]]:
    """Load the documents in order: those loaded now, those there now, and what was done so far.

    ``record`` lists the documents of whole groups: the group that an earlier run stopped in is loaded again.
    """
    there = set(record.read_text(encoding="ascii").split()) if record.exists() else set()
    with catalogue.reading() as session:
        missing = [document for document in graph_documents(session) if document not in there]
    described, done, loaded = Described(), Counters(), 0
    for at in range(0, len(missing), _BITE):
        part = missing[at : at + _BITE]
        done.add(sync_documents(catalogue, store, part, described=described))
        with record.open("a", encoding="ascii") as file:
            file.write("\n".join(part) + "\n")
        loaded += len(part)
        yield loaded, len(there) + loaded, done


def cpu(process: psutil.Process) -> float:
    """CPU seconds of a process so far: on a busy machine they say more than the clock."""
    times = process.cpu_times()
    return float(times.user + times.system)


def peak_rss() -> int:
    """Highest resident memory of this process, bytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return int(psutil.Process().memory_info().rss)


def show(**found: Any) -> None:
    """One line of figures."""
    print(json.dumps(found), flush=True)


def main() -> None:
    """Read the command line; each measurement runs in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", choices=["writer", "scale"])
    parser.add_argument("--server", choices=["arcadedb", "neo4j", "both"], default="both")
    parser.add_argument("--documents", type=int, nargs="+", help="sizes, instead of the default ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heap", default="1g")
    parser.add_argument("--full", action="store_true", help="35,000 documents, 1,000,000 assertions")
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument(
        "--folder", type=Path, help="scale: keep catalogue and graph there, and go on with them"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    default = [200] if given.bench == "writer" else [360, 1080, 3600]
    sizes = given.documents or ([35_720] if given.full else default)
    kinds = ["arcadedb", "neo4j"] if given.server == "both" else [given.server]
    if given.folder and (given.bench != "scale" or len(sizes) * len(kinds) > 1):
        parser.error("--folder is for one size of scale on one server")
    if given.child:
        with tempfile.TemporaryDirectory(prefix="hchem-bench-") as folder:
            if given.folder:
                given.folder.mkdir(parents=True, exist_ok=True)
                scale(kinds[0], sizes[0], given.heap, given.folder, not given.no_verify)
            elif given.bench == "writer":
                writer(kinds[0], sizes[0], given.rounds, Path(folder))
            else:
                scale(kinds[0], sizes[0], given.heap, Path(folder), not given.no_verify)
        return
    for kind in kinds:
        for size in sizes:
            child = [sys.executable, "-m", "benchmarks.graph", given.bench, "--child", "--server", kind]
            child += ["--documents", str(size), "--rounds", str(given.rounds), "--heap", given.heap]
            child += ["--no-verify"] if given.no_verify else []
            child += ["--folder", str(given.folder)] if given.folder else []
            subprocess.run(child, check=True)


if __name__ == "__main__":
    main()

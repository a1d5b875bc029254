"""Questions per second with their proofs, in batches and one by one; growth; which check catches which fault.

    python -m benchmarks.questions [--sizes 10000 30000 100000] [--sample 400] [--rounds 3]
    python -m benchmarks.questions --faults
    python -m benchmarks.questions --full --folder DIR [--rounds 0] [--at-most 135000]

For each size a made-up catalogue of about that many assertions is put into an empty
embedded graph; then, in the same run:

- generation: all questions from the facts, proofs verified in UNWIND batches
  (questions per second counts the kept ones);
- verification of stored questions, as ``hchem questions verify`` does it: in batches,
  and for a sample of the same questions one query each. The two take turns, round by
  round; the ratio is the median over the rounds.

``cpu_s`` and ``server_cpu_s`` are processor seconds of making and verifying, of this process and of the server:
on a busy machine they say more than the clock. Memory is the peak of this process (the server's heap is fixed
by its setting), each size in a process of its own. ``--full`` takes the million assertions that
``python -m benchmarks.graph scale --full --folder DIR`` has loaded; what it does is told on the way.
``--faults`` prints the share of seeded faults that each check catches.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Question
from kg.embedded import EmbeddedGraph
from kg.graph_settings import QuestionSettings
from kg.projection import graph_documents
from kg.qa.facts import load_facts
from kg.qa.generate import generate
from kg.qa.records import Judged
from kg.qa.step import write_questions
from kg.qa.stored import stored_answers, verify_stored
from kg.store import GraphStore
from kg.sync import sync_documents
from models import Models
from tests.kg import qa_faults
from tests.kg.graph_builders import AGENTS, GROUPS, Made, data_sheet, entity

_PER_SUBSTANCE = 31  # assertions of a made-up substance: two sheets of about 15
_H = tuple(f"H{n}" for n in (*range(200, 300, 5), *range(300, 374), *range(400, 421)))
_SYLLABLES_ZH = "甲乙丙丁戊己庚辛壬癸氯溴碘氟硝氨羟醛酮酸"
_SYLLABLES_EN = ("ba", "ke", "lo", "mi", "nu", "pra", "sti", "ter", "vol", "xen")


def substances(count: int) -> Iterator[Made]:
    """Made-up substances: each with its own names and numbers, hazards and neighbours in turn."""
    groups, agents = list(GROUPS), list(AGENTS)
    for n in range(count):
        zh = "".join(_SYLLABLES_ZH[(n // 20**i) % 20] for i in range(5))
        en = "".join(_SYLLABLES_EN[(n // 10**i) % 10] for i in range(6)).title()
        yield Made(
            cas=f"{100000 + n}-{n % 90 + 10}-{n % 10}",
            zh=f"样品{zh}",
            en=f"Sample {en}",
            un=f"{1000 + n % 2500}",
            cls="3" if n % 3 else "8",
            pg="I" if n % 2 else "II",
            flash=float(n % 400 - 60),
            boiling=float(n % 900 + 20),
            h=tuple(dict.fromkeys(_H[(n * step + step) % len(_H)] for step in (1, 7, 13, 31))),
            incompatible=tuple(dict.fromkeys(groups[(n + step) % len(groups)] for step in (0, 2, 3))),
            fire=(agents[n % 3],),
            not_fire=(agents[3],),
        )


def fill(catalogue: Catalogue, assertions: int) -> int:
    """Store data sheets until there are about so many assertions; returns how many there are."""
    made = list(substances(max(1, assertions // _PER_SUBSTANCE)))
    for at in range(0, len(made), 100):
        with catalogue.writing() as session:
            for one in made[at : at + 100]:
                entity(session, one.cas, zh=one.zh, en=one.en)
                for language in ("zh", "en"):
                    data_sheet(one, language).store(session)
    with catalogue.reading() as session:
        return session.scalar(select(func.count()).select_from(Assertion)) or 0


@contextmanager
def timed(name: str, found: dict[str, float]) -> Iterator[None]:
    """Clock seconds of a block."""
    began = time.perf_counter()
    yield
    found[name] = time.perf_counter() - began


def peak_mb() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def store_questions(catalogue: Catalogue, questions: Sequence[Judged]) -> int:
    """Write judged questions as the step does; returns how many are kept."""
    with catalogue.writing() as session:
        write_questions(session, questions, "benchmark")
    return sum(not judged.reason for judged in questions)


def one_by_one(session: Session, store: GraphStore, sample: Sequence[str]) -> None:
    """One query per question, as written in its proof."""
    for row in session.scalars(select(Question).where(Question.question_id.in_(sample))):
        stored_answers(store, row.proof)


def measure(size: int, given: argparse.Namespace) -> dict[str, float]:
    """Figures of one size, on a server and a catalogue of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedGraph(
            Path(folder) / "graph", heap="1g", full_jit=size > 20_000, start_timeout_s=300
        ) as server,
        GraphStore(server.uri, server.user, server.password, server.database) as store,
    ):
        catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
        fill(catalogue, size)
        with catalogue.reading() as session:
            documents = graph_documents(session)
        seconds: dict[str, float] = {}
        with timed("sync", seconds):
            for at in range(0, len(documents), 200):
                sync_documents(catalogue, store, documents[at : at + 200])
        progress("sync", seconds["sync"])
        found = asked(catalogue, store, given, server.server_pid)
        catalogue.close()
    return found


def full(folder: Path, given: argparse.Namespace) -> dict[str, float]:
    """Figures of what ``python -m benchmarks.graph scale --folder`` has loaded into an embedded server."""
    catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
    with catalogue.writing() as session:
        session.execute(delete(Question))  # of an earlier run
    with (
        EmbeddedGraph(
            folder / "arcadedb", heap=given.heap, full_jit=True, start_timeout_s=given.start_timeout
        ) as server,
        GraphStore(server.uri, server.user, server.password, server.database) as store,
    ):
        found = asked(catalogue, store, given, server.server_pid)
    catalogue.close()
    return found


def asked(
    catalogue: Catalogue, store: GraphStore, given: argparse.Namespace, server_pid: int | None
) -> dict[str, float]:
    """Generate, store and verify the questions of what is in catalogue and graph."""
    seconds: dict[str, float] = {}
    before = peak_mb()
    with timed("facts", seconds), catalogue.reading() as session:
        facts = load_facts(session)
    assertions, facts_mb = len(facts.facts), peak_mb() - before
    progress("facts", seconds["facts"])
    java = psutil.Process(server_pid or 0)
    own, its = time.process_time(), cpu(java)
    settings = QuestionSettings(at_most=given.at_most)
    with timed("generate", seconds):
        made = generate(facts, store, settings, Models.offline(), say=told)
    del facts
    with timed("store", seconds):
        kept = store_questions(catalogue, made.questions)
    candidates, proved = made.possible, len(made.questions)
    del made
    progress("generate", seconds["generate"])
    generated_cpu, generated_server_cpu = time.process_time() - own, cpu(java) - its
    own, its = time.process_time(), cpu(java)
    with timed("verify", seconds):
        found = verify_stored(catalogue, store)
    if found.problems or found.checked != kept:
        raise SystemExit(f"{found.failed} of {found.checked} stored questions fail: {found.problems[:3]}")
    progress("verify", seconds["verify"])
    verify_cpu = time.process_time() - own + cpu(java) - its
    ratios = []
    with catalogue.reading() as session:
        ids = select(Question.question_id).where(Question.state == "kept").order_by(Question.question_id)
        chosen = list(session.scalars(ids))[:: max(1, kept // given.sample)][: given.sample]
        for _ in range(given.rounds):
            with timed("single", seconds):
                one_by_one(session, store, chosen)
            with timed("again", seconds):
                verify_stored(catalogue, store)
            ratios.append((seconds["single"] / len(chosen)) / (seconds["again"] / kept))
    return {
        "assertions": assertions,
        "candidates": candidates,
        "judged": proved,
        "kept": kept,
        "facts_s": seconds["facts"],
        "facts_mb": facts_mb,
        "generate_s": seconds["generate"],
        "generate_cpu_s": generated_cpu,
        "generate_server_cpu_s": generated_server_cpu,
        "kept_per_cpu_s": kept / (generated_cpu + generated_server_cpu),
        "generated_per_s": kept / (seconds["generate"] + seconds["store"]),
        "verified_per_s": kept / seconds["verify"],
        "verified_per_cpu_s": kept / verify_cpu,
        **({"single_per_s": len(chosen) / seconds["single"], "ratio": median(ratios)} if ratios else {}),
        "cpu_s": time.process_time(),
        "server_cpu_s": cpu(java),
        "peak_mb": peak_mb(),
    }


def cpu(process: psutil.Process) -> float:
    """Processor seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


_BEGAN = time.perf_counter()


def told(what: str) -> None:
    """A line for those who wait for hours."""
    spent = f"{time.perf_counter() - _BEGAN:.0f} s, {time.process_time():.0f} s of processor"
    print(f"[{spent}, peak {peak_mb():.0f} MB] {what}", file=sys.stderr, flush=True)


def progress(name: str, seconds: float) -> None:
    """What is done."""
    told(f"{name}: {seconds:.1f} s")


def table(rows: Iterable[dict[str, float]]) -> None:
    """Print figures as they come, names first."""
    for at, figures in enumerate(rows):
        if not at:
            print("| " + " | ".join(figures) + " |\n" + "|---" * len(figures) + "|")
        shown = (f"{v:.0f}" if v >= 100 or float(v).is_integer() else f"{v:.2f}" for v in figures.values())
        print("| " + " | ".join(shown) + " |", flush=True)


def faults() -> int:
    """Print the table of seeded faults; returns how many wrong questions no check catches."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedGraph(Path(folder) / "graph", heap="512m") as server,
    ):
        store = GraphStore(server.uri, server.user, server.password, server.database)
        bench = qa_faults.bench(Path(folder), store)
        outcomes = [qa_faults.judge(bench, kind) for kind in qa_faults.FAULTS]
        store.close()
    print(f"{len(bench.asked)} sound questions; share of the wrong questions that each check rejects, in %\n")
    print(qa_faults.table(outcomes))
    return sum(len(outcome.missed) for outcome in outcomes)


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000], help="assertions")
    parser.add_argument("--sample", type=int, default=400, help="questions verified one by one")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the comparison")
    parser.add_argument("--full", action="store_true", help="questions of all that --folder holds")
    parser.add_argument("--folder", type=Path, help="of python -m benchmarks.graph scale --folder")
    parser.add_argument("--heap", default="4g", help="of the server, with --full")
    parser.add_argument("--start-timeout", type=float, default=900.0, help="of the server, with --full")
    parser.add_argument("--at-most", type=int, default=135_000, help="questions; 0: all that are possible")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--faults", action="store_true", help="only the table of seeded faults")
    given = parser.parse_args()
    if given.faults:
        return 1 if faults() else 0
    if given.full:
        if given.folder is None:
            parser.error("--full needs --folder, as python -m benchmarks.graph scale --folder left it")
        table([full(given.folder, given)])
    elif given.child or len(given.sizes) == 1:
        table(measure(size, given) for size in given.sizes)
    else:  # peak memory is that of a process
        for size in given.sizes:
            subprocess.run([*_CHILD, *sys.argv[1:], "--child", "--sizes", str(size)], check=True)
    return 0


_CHILD = (sys.executable, "-m", "benchmarks.questions")


if __name__ == "__main__":
    raise SystemExit(main())

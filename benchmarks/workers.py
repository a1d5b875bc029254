"""One worker against a leading run with an assistant, on a real PostgreSQL.

    python benchmarks/workers.py
    python benchmarks/workers.py --documents 200 --rounds 1
    python benchmarks/workers.py --documents 5000 --rounds 3 --folder /tmp/workers --url postgresql://hchem@127.0.0.1/bench

Made-up data sheets in Chinese and English (refined documents with some thousand
characters each) go through the steps that compute: extraction of assertions by
rules, whole sentences and semantic chunks. Rounds alternate: one worker alone
(``flows.share_batches = false``), then a leading run and one assistant, each in a
process of its own with one thread, each on a database of its own. Triggers of the
database count every write of the ledger, so that work done twice shows whoever did
it. Times are of the steps, without the start of the processes. Without ``--url`` a
PostgreSQL is started in the folder (``initdb`` must be installed; as root by the
user postgres) and stopped at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sqlalchemy import text
from sqlalchemy.engine import make_url

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import Document, LedgerRow, WorkBatch
from corpus.ids import digest, version_id
from flows.sharing import ASSISTANT

ROOT = Path(__file__).resolve().parent.parent
STEPS = {"graph": ("graph.extract",), "chunks": ("chunks.sentence", "chunks.semantic")}
GOAL = 1.6

_ZH = (
    "试剂{n}为无色液体，批号{k}，沸点 {b} ℃，闪点 {f} ℃（闭杯）。",
    "储存于阴凉、通风的库房，库温不宜超过 {t} ℃，远离火种、热源。",
    "应与氧化剂、酸类分开存放，切忌混储；第{k}号货架。",
    "着火时用干粉、二氧化碳灭火，勿用直流水。",
    "皮肤接触后立即用大量清水冲洗至少 {m} 分钟，并就医。",
)
_EN = (
    "Reagent {n} is a colourless liquid of lot {k} with a boiling point of {b} °C and a flash point of {f} °C.",
    "Store in a cool, well-ventilated place below {t} °C, away from heat and open flames.",
    "Keep away from oxidizing agents and acids; see shelf {k}.",
    "In case of fire use dry powder or carbon dioxide; do not use a water jet.",
    "After contact with skin rinse with plenty of water for at least {m} minutes and call a doctor.",
)


def sheet(n: int, sentences: int = 40) -> tuple[str, str]:
    """Text and language of made-up sheet ``n``; even ones are Chinese."""
    zh = n % 2 == 0
    head = (f"# 试剂{n}安全技术说明书\n\n本页为测量而编写，不是真实资料。" if zh else f"# Safety Data Sheet: Reagent {n}\n\nThis page was written for a measurement; it is no real data.")  # fmt: skip
    name = (
        f"试剂{n}，CAS 67-56-1，UN1230。" if zh else f"Reagent {n}, CAS 67-64-1, UN 1090, used as a solvent."
    )
    lines = []
    for k in range(sentences):
        form = (_ZH if zh else _EN)[(n + k) % 5]
        lines.append(form.format(n=n, k=n * 97 + k, b=50 + (n + k) % 97, f=(n + k) % 61 - 20, t=20 + (n + k) % 17, m=10 + k % 11))  # fmt: skip
    paragraphs = ["\n".join(lines[at : at + 5]) if zh else " ".join(lines[at : at + 5]) for at in range(0, len(lines), 5)]  # fmt: skip
    return "\n\n".join([head, name, *paragraphs]), "zh" if zh else "en"


def fill(url: str, count: int) -> None:
    """A catalogue with refined documents, and triggers that note every write of the ledger."""
    catalogue = Catalogue.open(url)
    for start in range(0, count, 500):
        with catalogue.writing() as session:
            for n in range(start, min(start + 500, count)):
                body, language = sheet(n)
                blocks, cleaned, at = [], [], 0
                for part in body.split("\n\n"):
                    place = {"start": at, "end": at + len(part), "path": "/html/body"}
                    blocks.append({**place, "cleaned_start": at, "cleaned_end": at + len(part)})
                    cleaned.append({**place, "kind": "heading" if part.startswith("#") else "paragraph"})
                    at += len(part) + 2
                name = digest("benchmark", str(n))
                session.add(
                    Document(
                        document_id=name, page_id="", source="made-up", url=f"https://made-up.example/{n}", identity=str(n),
                        title=body.split("\n")[0].strip("# "), language=language, kind="page", state="kept", text=body,
                        version_id=version_id(name, body), blocks=blocks, cleaned_text=body, cleaned_blocks=cleaned,
                        cleaned_hash=digest("cleaned", body),
                    )
                )  # fmt: skip
    with catalogue.engine.begin() as connection:
        connection.execute(text("CREATE TABLE written (step TEXT, item_id TEXT, run_id TEXT)"))
        connection.execute(text("CREATE FUNCTION note() RETURNS trigger AS $$ BEGIN INSERT INTO written VALUES (NEW.step, NEW.item_id, NEW.run_id); RETURN NEW; END $$ LANGUAGE plpgsql"))  # fmt: skip
        connection.execute(text("CREATE TRIGGER note AFTER INSERT OR UPDATE ON ledger FOR EACH ROW EXECUTE FUNCTION note()"))  # fmt: skip
        connection.execute(text("ANALYZE"))
    catalogue.close()


def lead() -> None:
    """The leading run of a child process; prints seconds and counts of each step."""
    from corpus.catalogue import Catalogue as Opened
    from flows import accounting, execution
    from flows.parameters import RefreshParameters
    from flows.runtime import open_runtime
    from flows.settings import load_settings

    settings = load_settings()
    parameters = RefreshParameters(from_stage="graph", to_stage="chunks")
    wanted = int(os.environ["_WORKERS_ASSISTANTS"])
    waiting = Opened.open(settings.catalogue_url())
    while len(leases.living(waiting, ASSISTANT)) < wanted:  # they have started: what is measured is the work
        time.sleep(0.2)
    waiting.close()
    with open_runtime(settings=settings, run_id=execution.new_run_id()) as runtime, execution.session(runtime, "refresh", parameters) as current:  # fmt: skip
        stages: Any = STEPS
        for stage, names in stages.items():
            current.accounts[stage] = accounting.begin(runtime, current.context, stage)
            execution.run_steps(current, stage, [runtime.step(name) for name in names], execution.direct)
    steps = {name: counts for stage in current.stages.values() for name, counts in stage["steps"].items()}
    print(json.dumps(steps))


def one_round(url: str, folder: Path, assistants: int) -> dict[str, Any]:
    """Run the steps with so many assistants; seconds, items by process, what was doubled and lost."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HCHEM_", "OPENAI_"))}
    environment = {
        **kept,
        "HCHEM_DATA_DIR": str(folder),
        "HCHEM_CATALOGUE__URL": url,
        "HCHEM_FLOWS__SHARE_BATCHES": "true" if assistants else "false",
        "HCHEM_FLOWS__WORKERS": "1",
        "HCHEM_CHUNKS__METHODS": json.dumps([name.removeprefix("chunks.") for name in STEPS["chunks"]]),
        "HCHEM_CHUNKS__SCORE": "false",
        "_WORKERS_ASSISTANTS": str(assistants),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    helping = [
        subprocess.Popen([sys.executable, "-m", "flows.cli", "assist", "--until-idle", "--json"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(assistants)
    ]  # fmt: skip
    try:
        told = subprocess.run([sys.executable, __file__, "--lead"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # fmt: skip
        if told.returncode:
            raise SystemExit(f"the leading run ended with {told.returncode}:\n{told.stderr[-3000:]}")
        steps = json.loads(told.stdout.splitlines()[-1])
        by = []
        for process in helping:
            out, err = process.communicate(timeout=120)
            if process.returncode:
                raise SystemExit(f"an assistant ended with {process.returncode}:\n{err[-3000:]}")
            by.append(json.loads(out)["items"])
    finally:
        for process in helping:
            if process.poll() is None:
                process.kill()
    total = sum(sum(counts["states"].values()) for counts in steps.values())
    return {"seconds": {name: counts["wall_seconds"] for name, counts in steps.items()}, "by": [total - sum(by), *by], **proof(url)}  # fmt: skip


def proof(url: str) -> dict[str, int]:
    """What the database says: items done twice, items without a result, batches left."""
    catalogue = Catalogue.open(url)
    with catalogue.engine.connect() as connection:
        doubled = connection.execute(text("SELECT count(*) FROM (SELECT 1 FROM written GROUP BY step, item_id HAVING count(*) > 1) AS twice")).scalar_one()  # fmt: skip
    names = [name for steps in STEPS.values() for name in steps]
    with catalogue.reading() as session:
        documents = session.query(Document).filter(Document.source == "made-up").count()
        done = session.query(LedgerRow).filter(LedgerRow.step.in_(names), LedgerRow.state == "kept").count()
        left = session.query(WorkBatch).count()
    catalogue.close()
    return {"doubled": doubled, "lost": documents * len(names) - done, "left": left}


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own on loopback, in the folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    home = found[-1].parent
    if not (home / "initdb").is_file():
        raise SystemExit("initdb was not found: install PostgreSQL, or give --url")
    folder.mkdir(parents=True, exist_ok=True)
    prefix: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": folder}
    subprocess.run([*prefix, str(home / "initdb"), "-D", str(data), "-A", "trust", "-U", "hchem", "-E", "UTF8", "--locale=C.UTF-8"], check=True, **quiet)  # fmt: skip
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    subprocess.run([*prefix, str(home / "pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "start"], check=True, **quiet)  # fmt: skip
    try:
        yield f"postgresql://hchem@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*prefix, str(home / "pg_ctl"), "-D", str(data), "-m", "fast", "stop"], check=False, **quiet)  # fmt: skip


def new_database(url: str, name: str) -> str:
    """An empty database on the server of ``url``."""
    import psycopg

    made = make_url(url)
    with psycopg.connect(made.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return made.set(database=name).render_as_string(hide_password=False)


def compare(url: str, folder: Path, documents: int, rounds: int) -> int:
    """Alternate the two forms and print both, with the ratio of the medians."""
    found: dict[int, list[dict[str, Any]]] = {0: [], 1: []}
    print(f"{documents} documents, {rounds} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
    for number in range(rounds):
        for assistants in (0, 1) if number % 2 == 0 else (1, 0):
            data = folder / f"data{number}{assistants}"
            data.mkdir(parents=True)
            database = new_database(url, f"workers_{number}_{assistants}")
            fill(database, documents)
            result = one_round(database, data, assistants)
            found[assistants].append(result)
            shown = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result["seconds"].items())
            print(f"{'leader + assistant' if assistants else 'one worker':20}{sum(result['seconds'].values()):8.1f} s  ({shown})  items by process {result['by']}, doubled {result['doubled']}, lost {result['lost']}, batches left {result['left']}", flush=True)  # fmt: skip
    alone, shared = ({name: statistics.median(r["seconds"][name] for r in found[kind]) for name in found[kind][0]["seconds"]} for kind in (0, 1))  # fmt: skip
    for name in alone:
        print(f"{name:20}{alone[name]:8.1f} s → {shared[name]:.1f} s: ×{alone[name] / max(shared[name], 0.01):.2f}")  # fmt: skip
    ratio = sum(alone.values()) / sum(shared.values())
    print(
        f"{'all':20}{sum(alone.values()):8.1f} s → {sum(shared.values()):.1f} s: ×{ratio:.2f} (goal ≥ {GOAL})"
    )
    wrong = sum(r["doubled"] + r["lost"] + r["left"] for kind in found.values() for r in kind)
    return int(bool(wrong))


def main() -> int:
    """Read the arguments and compare. Exit code 1 where an item was done twice or lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3, help="of each form")
    parser.add_argument(
        "--folder", type=Path, help="where data and the server live; default: a temporary one"
    )
    parser.add_argument("--url", help="a PostgreSQL that may be used: databases workers_… are made on it")
    parser.add_argument("--lead", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.lead:
        lead()
        return 0
    folder = Path(tempfile.mkdtemp(prefix="workers-")) if options.folder is None else options.folder
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    try:
        if options.url:
            return compare(options.url, folder, options.documents, options.rounds)
        with server(folder / "postgres") as url:
            return compare(url, folder, options.documents, options.rounds)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

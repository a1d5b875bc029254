"""kill -9 at many random moments over all stages and processes, each followed by a run that goes on.

    python -m benchmarks.kills --points 100 --seed 1 --folder /tmp/kills [--postgres postgresql://user@host:port]

Victims, at random: the run (``--direct`` or through Prefect), the crawl's child, the
graph server's Java process, the process that serves the deployments, the Prefect
server; with ``--postgres`` (a server that may be used up: databases are made and
dropped) a session process of PostgreSQL, which makes the whole server recover.

After each kill the children must end by themselves; a second run must then give the
bytes of an uninterrupted one and the same ledger, and leave no lease, no claimed row
and no running run. Results stand in ``results.jsonl`` of the folder, and the same
command goes on after the last of them. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.flows import killing
from tests.flows.conftest import Command
from tests.flows.killing import BEFORE, STAGES, Point, Staged

_VICTIMS = ("run", "crawl", "graph", "flow", "serve", "server")
_HARNESS_S = 600.0
_EARLIER = 3  # tries of a point


def main() -> None:
    """Run the points that have no result yet, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--victims", nargs="*", default=[*_VICTIMS])
    parser.add_argument("--postgres", default="", help="URL of a PostgreSQL server without a database name")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    state = options.folder / "results.jsonl"
    done = {row["number"] for row in _read(state)}
    victims = [*options.victims, *(["postgres"] if options.postgres else [])]
    staged = _staged(options.folder)
    for point in killing.points(options.points, options.seed, victims):
        if point.number in done:
            continue
        began = time.monotonic()
        row = {"number": point.number, "stage": point.stage, "victim": point.victim, "moment": point.moment}
        try:
            row["hit"] = _one(staged, point, options.folder / "at", options.postgres)
            row["fault"] = ""
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - pytest.fail too; every point gets its row
            line = traceback.extract_tb(error.__traceback__)[-1].line
            row["fault"] = f"{type(error).__name__}: {str(error) or line}"[:600]
        row["seconds"] = round(time.monotonic() - began, 1)
        with state.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(json.dumps(row, ensure_ascii=False), file=sys.stderr, flush=True)
    print(table(_read(state)))


def _read(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def table(rows: list[dict[str, Any]]) -> str:
    """Stages down, victims across: points that went on to the same bytes, of all."""
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        counts[row["stage"], row["victim"]].append(not row["fault"])
    victims = sorted({row["victim"] for row in rows})
    lines = ["| stage | " + " | ".join(victims) + " |", "| --- |" + " --- |" * len(victims)]
    for stage in STAGES:
        cells = [counts.get((stage, victim), []) for victim in victims]
        shown = [f"{sum(cell)} of {len(cell)}" if cell else "" for cell in cells]
        lines.append(f"| {stage} | " + " | ".join(shown) + " |")
    good = sum(not row["fault"] for row in rows)
    struck = sum(not row.get("hit", "nothing").startswith("nothing") for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    lines.append(
        f"\n{good} of {len(rows)} points went on to the same bytes; {struck} struck a process that was at work"
    )
    lines.append(f"({seconds / 60:.0f} minutes in all).")
    lines += [
        f"- {row['number']} {row['stage']}/{row['victim']}: {row['fault']}" for row in rows if row["fault"]
    ]
    return "\n".join(lines)


def _staged(folder: Path) -> Staged:
    """The uninterrupted run, made once per folder."""
    kept, record = folder / "staged", folder / "staged.json"
    if record.exists():
        made = Staged(kept, {}, {}, json.loads(record.read_text(encoding="utf-8")))
        for stage in STAGES:
            export = kept / f"export-{stage}"
            made.exports[stage] = {
                str(p.relative_to(export)): p.read_bytes() for p in sorted(export.rglob("*")) if p.is_file()
            }
            made.ledgers[stage] = killing.ledger(f"sqlite:///{kept / stage}/catalogue.db")
        return made
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    made = killing.make_staged(kept)
    record.write_text(json.dumps(made.seconds), encoding="utf-8")
    return made


def _one(staged: Staged, point: Point, folder: Path, postgres: str) -> str:
    """Kill at the point and go on; earlier where the run was over before, so that a slow first run spoils no moment."""
    for _ in range(_EARLIER):
        hit = _once(staged, point, folder, postgres)
        if not hit.startswith("nothing"):
            break
        staged.seconds[point.stage] *= 0.5
    return hit


def _once(staged: Staged, point: Point, folder: Path, postgres: str) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    seconds = 0.7 * staged.seconds[point.stage]
    if point.victim == "postgres":
        return _postgres(staged, point, folder, postgres)
    command = staged.copy(BEFORE[point.stage], folder)
    if point.victim in ("run", "crawl", "graph"):
        hit = killing.kill(command, point, seconds)
    else:
        hit = _through_prefect(command, point, seconds)
    command.run("refresh", "--direct", "--to-stage", point.stage)
    killing.check(command, staged, point.stage)
    return hit


def _through_prefect(command: Command, point: Point, seconds: float) -> str:
    """A run through Prefect's server, by the command or by ``hchem serve``; kills it, what serves it, or the server."""
    command.settings["HCHEM_PREFECT__START_TIMEOUT_S"] = "600"
    command.run("up", timeout=_HARNESS_S)
    serving: subprocess.Popen[str] | None = None
    server = json.loads((command.data_dir / "prefect/server.json").read_text(encoding="utf-8"))
    try:
        if point.victim == "serve":
            serving = command.start("serve")
            run_id = _submit(server["url"], point.stage)
        else:
            serving = command.start("refresh", "--from-stage", point.stage, "--to-stage", point.stage)
            run_id = ""
        process = serving
        _wait(lambda: _at_work(command) or process.poll() is not None)
        below = killing.children(serving.pid)
        time.sleep(point.moment * seconds)
        below += killing.children(serving.pid)
        if serving.poll() is not None:
            return "nothing: it was over"
        victim = server["pid"] if point.victim == "server" else serving.pid
        psutil.Process(victim).kill()
        if point.victim == "server":
            with contextlib.suppress(subprocess.TimeoutExpired):
                serving.communicate(timeout=120)
            if serving.poll() is None:  # Prefect's client waits for its server
                serving.send_signal(signal.SIGTERM)
        serving.communicate(timeout=120)
        killing.no_orphans(below)
        return point.victim if not run_id else f"serve of {run_id[:8]}"
    finally:
        if serving is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(serving.pid, signal.SIGKILL)
        command.run("down", code=None, timeout=120)


def _submit(api: str, stage: str) -> str:
    def found() -> list[dict[str, Any]]:
        asked = {"deployments": {"name": {"any_": ["weekly"]}}}
        answer: list[dict[str, Any]] = _post(f"{api}/deployments/filter", asked)
        return answer

    _wait(lambda: bool(found()))
    body = {
        "parameters": {"parameters": {"from_stage": stage, "to_stage": stage}},
        "state": {"type": "SCHEDULED"},
    }
    return str(_post(f"{api}/deployments/{found()[0]['id']}/create_flow_run", body)["id"])


def _post(url: str, body: dict[str, Any]) -> Any:
    """The server's answer; while its database is locked it says 503, and Prefect's clients ask again too."""
    for _ in range(20):
        answer = httpx.post(url, json=body, timeout=60)
        if answer.status_code != 503:
            break
        time.sleep(1)
    return answer.raise_for_status().json()


def _at_work(command: Command) -> bool:
    return any(line.startswith("lease run") for line in killing.held(killing.url(command)))


def _wait(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + _HARNESS_S
    while not true():
        if time.monotonic() > ends:
            raise AssertionError("the run did not begin")
        time.sleep(0.3)


def _postgres(staged: Staged, point: Point, folder: Path, server: str) -> str:
    """The stages up to the point's on an empty PostgreSQL database; one of the server's sessions is killed in the last."""
    import psycopg

    name = f"kills_{point.number}_{int(time.time())}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    command = staged.copy("", folder)
    command.settings["HCHEM_CATALOGUE__URL"] = (
        f"{server.replace('postgresql:', 'postgresql+psycopg:')}/{name}"
    )
    if BEFORE[point.stage]:
        command.run("refresh", "--direct", "--to-stage", BEFORE[point.stage])
    process = command.start(
        "refresh", "--direct", "-v", "--from-stage", point.stage, "--to-stage", point.stage
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{point.stage}."):
            break
    time.sleep(point.moment * 0.5 * staged.seconds[point.stage])
    hit = "nothing: it was over"
    if process.poll() is None:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            pids = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = %s", [name]
            ).fetchall()
        if pids:
            psutil.Process(random.Random(point.number).choice(pids)[0]).kill()
            hit = "postgres"
    process.communicate(timeout=_HARNESS_S)
    _wait(lambda: _answers(server))
    command.run("refresh", "--direct", "--to-stage", point.stage)
    killing.check(command, staged, point.stage)
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    return hit


def _answers(server: str) -> bool:
    import psycopg

    try:
        psycopg.connect(f"{server}/postgres", connect_timeout=5).close()
    except psycopg.Error:
        return False
    return True


if __name__ == "__main__":
    main()

"""What Prefect costs: the stage ``curate`` on a task runner against ``--direct``, same data, alternating rounds.

    python -m benchmarks.orchestration --documents 400 --rounds 6
    python -m benchmarks.orchestration --documents 100 --rounds 2 --folder /tmp/orchestration
    python -m benchmarks.orchestration --runner dask --address tcp://127.0.0.1:8786

Documents are made of the sample pages (numbers and a third of the words changed) and scored and refined; scoring
has 50 documents a batch. Start-up is named apart and not in the ratio: the import of Prefect, the start of its
server, and a flow that finds nothing to do. Workers of Dask or Ray must see the same folder (give ``--folder``,
and start them with HCHEM_DATA_DIR=FOLDER/data).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.throughput import _blocks, _row, made, normalise_text

BATCH = 50


def filled(path: Path, documents: int, characters: int) -> None:
    """A catalogue with cleaned documents that wait for scoring."""
    from corpus.catalogue import Catalogue
    from corpus.curating.pages import _document
    from corpus.ids import digest

    catalogue = Catalogue.open(f"sqlite:///{path}")
    with catalogue.writing() as session:
        for n, source in enumerate(made(documents, characters)):
            row = _document(session, _row(n, source))
            row.kind, row.title, row.language = "page", source.title, source.language
            row.cleaned_text, row.cleaned_html, row.removed = normalise_text(source.text), "", {}
            row.cleaned_blocks, row.cleaned_hash = (
                _blocks(row.cleaned_text),
                digest("cleaned", row.cleaned_text),
            )
            row.score, row.score_source, row.reason, row.detail = None, "", "", ""
    with catalogue.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    catalogue.close()


def direct(parameters: Any) -> dict[str, Any]:
    """The stage without Prefect."""
    from flows import execution
    from flows.runtime import open_runtime

    with (
        open_runtime(run_id=execution.new_run_id()) as runtime,
        execution.session(runtime, "curate", parameters) as current,
    ):
        execution.run_stage(current, "curate", execution.direct)
        return current.stages


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the wall clock, and what came of it."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def interval(values: list[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean (2,000 resamples, seeded)."""
    draw = random.Random(1)
    means = sorted(statistics.mean(draw.choices(values, k=len(values))) for _ in range(2000))
    return means[49], means[1949]


def main() -> int:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--characters", type=int, default=2000, help="cut each document to so many")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runner", choices=("thread", "dask", "ray"), default="thread")
    parser.add_argument("--address", help="of the Dask or Ray scheduler")
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hchem-orchestration-") as temporary:
        return measure(options, (options.folder or Path(temporary)).resolve())


def measure(options: argparse.Namespace, folder: Path) -> int:
    """Fill a catalogue, then run it alternately both ways."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    template = folder / "template.db"
    template.unlink(missing_ok=True)
    filled(template, options.documents, options.characters)
    os.environ |= {"HCHEM_DATA_DIR": str(data), "HCHEM_PREFECT__PORT": "0"}
    os.environ |= {
        "HCHEM_FLOWS__TASK_RUNNER": options.runner,
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    }
    if options.address:
        os.environ["HCHEM_FLOWS__TASK_RUNNER_ADDRESS"] = options.address

    def fresh() -> None:
        for left in data.glob("catalogue.db*"):
            left.unlink()
        shutil.copyfile(template, data / "catalogue.db")

    from flows import prefect_server
    from flows.parameters import StageParameters
    from flows.settings import load_settings

    server_s, _ = timed(lambda: prefect_server.ensure(folder, load_settings().prefect))
    try:
        import_s, pipeline = timed(lambda: __import__("flows.pipeline", fromlist=["pipeline"]))
        parameters = StageParameters()
        forms = {"direct": lambda: direct(parameters), options.runner: lambda: pipeline.curate(parameters)}
        return rounds(options, forms, fresh, {"server": server_s, "import": import_s})
    finally:
        prefect_server.stop(folder)


def rounds(
    options: argparse.Namespace,
    forms: dict[str, Callable[[], Any]],
    fresh: Callable[[], None],
    start: dict[str, float],
) -> int:
    """Alternate the forms; print seconds, start-up, ratio."""
    spent: dict[str, list[float]] = {name: [] for name in forms}
    empty: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(-1, options.rounds):  # round -1 warms up and is not counted
        for name in sorted(forms, reverse=bool(number % 2)):
            fresh()
            whole, _ = timed(forms[name])
            nothing, _ = timed(forms[name])  # the same again: all is done
            if number >= 0:
                spent[name].append(whole)
                empty[name].append(nothing)
                print(
                    f"round {number + 1} {name:7} {whole:7.2f} s, with nothing to do {nothing:5.2f} s",
                    flush=True,
                )
    own = options.runner
    work = {name: [a - b for a, b in zip(spent[name], empty[name], strict=True)] for name in forms}
    ratios = [a / b for a, b in zip(work[own], work["direct"], strict=True)]
    low, high = interval(ratios)
    batches = 2 * -(-options.documents // BATCH)  # scoring; refining has smaller ones
    extra = statistics.mean(a - b for a, b in zip(work[own], work["direct"], strict=True))
    print(
        f"\n{options.documents} documents, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}\n"
        f"start-up: Prefect server {start['server']:.1f} s, import {start['import']:.1f} s, a flow with nothing to do "
        f"{statistics.mean(empty[own]):.2f} s (direct {statistics.mean(empty['direct']):.2f} s)\n"
        f"work: direct {statistics.mean(work['direct']):.2f} s, {own} {statistics.mean(work[own]):.2f} s; "
        f"ratio {statistics.mean(ratios):.3f} [{low:.3f}, {high:.3f}]; about {1000 * extra / batches:.0f} ms a batch"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

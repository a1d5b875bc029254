"""Pages and documents per second, and whether time and memory grow in step with the corpus.

    python benchmarks/throughput.py speed [--rounds 3] [--profile]
    python benchmarks/throughput.py growth [--steps 1000,3500,10000,35000] [--catalogue] [--characters 0] [--seconds 2400]

``speed``: decode + clean + text in one process; score, refine and near-duplicates without a model;
the curate stage as it runs (archive, sandbox, catalogue). ``growth``: documents made of the sample
pages' texts, with every number, CAS number and a third of the words changed, so that none repeats
another; near-duplicates (with ``--catalogue`` the scoring, refining and deduplicating steps on
SQLite too). Times are of the processor, memory is resident, both of this process.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus.cleaning import CleanedPage, clean_page
from corpus.ids import normalise_text
from corpus.near_duplicates import Candidate, find_duplicates
from corpus.quality import formula, scoring_input
from corpus.refinement import refine_document
from corpus.settings import CorpusSettings, QualitySettings
from models import Models
from models.tokens import count_words

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
STAGES = 2  # copies of the sample pages that the stage is run on


def pages() -> list[tuple[dict[str, Any], bytes]]:
    """Manifest entry and bytes of each sample page."""
    lines = (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [(entry, (SAMPLES / "pages" / entry["file"]).read_bytes()) for entry in map(json.loads, lines)]


def cleaned(entry: dict[str, Any], data: bytes) -> CleanedPage:
    """Clean one sample page."""
    kind = entry["content_type"]
    return clean_page(data, url=f"https://s.example{entry['url_path']}", content_type=kind, header_charset=kind.partition("charset=")[2])  # fmt: skip


@cache
def texts() -> list[CleanedPage]:
    """The sample pages that cleaning passes on."""
    return [page for entry, data in pages() if (page := cleaned(entry, data)).verdict == "ok"]


def _score(page: CleanedPage) -> float:
    given, _ = scoring_input(normalise_text(page.text), title=page.title, language=page.language, settings=QualitySettings(), count=count_words, link_share=page.features.kept_link_density)  # fmt: skip
    return formula(given.features, page.language).score


def _refine(page: CleanedPage) -> str:
    return refine_document(page.text, page.blocks, language=page.language, title=page.title, models=Models.offline()).text  # fmt: skip


def timed(name: str, count: int, size: int, work: Callable[[], object], profile: bool) -> None:
    """Print the rate of a piece of work, by processor time, and its profile where asked for."""
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    began, wall = time.process_time(), time.perf_counter()
    work()
    spent, passed = time.process_time() - began, time.perf_counter() - wall
    profiler.disable()
    print(f"{name:44}{count / spent:10.1f} /s {size / 1e6 / spent:9.2f} MB/s   ({spent:.1f} s of processor time, {passed:.1f} s passed)", flush=True)  # fmt: skip
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(15)


def speed(options: argparse.Namespace) -> int:
    """Rates in one process and through the stage."""
    given = [(entry, data) for entry, data in pages() if not entry["file"].endswith(".pdf")]
    rounds, size = options.rounds, sum(len(data) for _, data in given)
    print(f"{len(given)} sample pages without the PDF, {size / 1e6:.1f} MB, {rounds} rounds")
    for entry, data in given:  # imports, tables and caches are not what is measured
        cleaned(entry, data)
    timed("decode + clean + text", len(given) * rounds, size * rounds, lambda: [cleaned(e, d) for _ in range(rounds) for e, d in given], options.profile)  # fmt: skip
    found = texts()
    characters = sum(len(page.text) for page in found)
    print(f"{len(found)} documents, {characters / 1e6:.2f} million characters")
    timed("score", len(found) * rounds, characters * rounds, lambda: [_score(p) for _ in range(rounds) for p in found], options.profile)  # fmt: skip
    timed("refine", len(found) * rounds, characters * rounds, lambda: [_refine(p) for _ in range(rounds) for p in found], options.profile)  # fmt: skip
    documents = list(made(len(found) * rounds))
    timed("near-duplicates", len(documents), sum(len(d.text) for d in documents), lambda: find_duplicates(documents), options.profile)  # fmt: skip
    stage(options.profile)
    return 0


def stage(profile: bool) -> None:
    """The curate stage on copies of the sample pages, each under addresses of its own."""
    from corpus.catalogue import Catalogue
    from corpus.stage import curate_stage
    from corpus.stages import StageContext, run_step
    from tests.corpus.archived_pages import Sent, archive

    with tempfile.TemporaryDirectory() as folder:
        catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
        sent = [Sent(f"https://s{n}.example{e['url_path']}", d, e["content_type"]) for n in range(STAGES) for e, d in pages()]  # fmt: skip
        archive(catalogue, Path(folder), sent)
        made = curate_stage(CorpusSettings(), Models.offline(), Path(folder))
        for step in made.steps:
            began = time.perf_counter()
            report = run_step(step, StageContext(catalogue, "benchmark"))
            passed = time.perf_counter() - began
            count = report.states.total()
            print(f"stage: {step.name:37}{count / passed:10.1f} /s   ({count} items, {passed:.1f} s passed)", flush=True)  # fmt: skip
        made.close()
        catalogue.close()


# --- growth ----------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.-])\d{1,5}(?![\w-])")
_CAS = re.compile(r"(?<![\d-])[1-9]\d{1,6}-\d{2}-\d(?![\d-])")
_WORD = re.compile(r"[A-Za-z]{5,}|[\u4e00-\u9fff]{2}")


def _cas(chance: random.Random) -> str:
    digits = f"{chance.randrange(1000, 9_999_999)}{chance.randrange(100):02}"
    check = sum(place * int(digit) for place, digit in enumerate(reversed(digits), 1)) % 10
    return f"{digits[:-2]}-{digits[-2:]}-{check}"


def varied(text: str, seed: int) -> str:
    """A text with other CAS numbers, other numbers, and a third of its words made into others."""
    chance = random.Random(seed)
    numbers: dict[str, str] = {}
    names: dict[str, str] = {}

    def word(match: re.Match[str]) -> str:
        known = match[0]
        if known not in names:
            changed = chance.random() < 0.34
            pool = (
                "abcdefghijklmnoprstuvy"
                if known.isascii()
                else "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
            )
            names[known] = "".join(chance.choices(pool, k=len(known))) if changed else known
        return names[known]

    text = _CAS.sub(lambda match: numbers.setdefault(match[0], _cas(chance)), text)
    text = _NUMBER.sub(lambda match: str(chance.randrange(10 ** len(match[0]))), text)
    return "\n".join(line if line.startswith("|--") else _WORD.sub(word, line) for line in text.split("\n"))


def made(count: int, characters: int = 0) -> Iterator[Candidate]:
    """Documents that differ from one another, from the sample pages in turn, each cut to its first characters."""
    found = texts()
    for n in range(count):
        page = found[n % len(found)]
        text = (page.text if n < len(found) else varied(page.text, n))[: characters or None]
        title = page.title if n < len(found) else varied(page.title, n)
        yield Candidate(f"{n:08}", text, title, page.language, 3.1 + n % 20 / 10)


def growth(options: argparse.Namespace) -> int:
    """Print time a document and resident memory at each step."""
    process = psutil.Process()
    began = time.monotonic()
    print(
        f"{'documents':>10}{'million chars':>15}{'ms a document':>15}{'RSS MB before':>15}{'RSS MB after':>14}  found"
    )
    for step in map(int, options.steps.split(",")):
        if time.monotonic() - began > options.seconds:
            print(f"{step:>10}  left out: {options.seconds} s are over")
            continue
        if options.catalogue:
            _grown_catalogue(step, options.characters, process)
            continue
        characters = 0
        spent_making = 0.0

        def documents(count: int = step) -> Iterator[Candidate]:
            nonlocal characters, spent_making
            source = made(count, options.characters)
            while True:
                start = time.process_time()
                document = next(source, None)
                spent_making += time.process_time() - start
                if document is None:
                    return
                characters += len(document.text)
                yield document

        def fetch(name: str) -> Candidate:
            nonlocal spent_making
            start = time.process_time()
            n = int(name)
            page = texts()[n % len(texts())]
            text = (page.text if n < len(texts()) else varied(page.text, n))[: options.characters or None]
            spent_making += time.process_time() - start
            return Candidate(name, text, page.title, page.language, 3.5)

        before = process.memory_info().rss / 1e6
        start = time.process_time()
        decisions = find_duplicates(documents(), fetch=fetch)
        spent = time.process_time() - start - spent_making
        duplicates = sum(bool(d.duplicate_of) for d in decisions.values())
        print(f"{step:10}{characters / 1e6:15.1f}{1000 * spent / step:15.2f}{before:15.0f}{process.memory_info().rss / 1e6:14.0f}  {duplicates} duplicates", flush=True)  # fmt: skip
        del decisions
    return 0


def _grown_catalogue(count: int, characters: int, process: psutil.Process) -> None:
    """Score, refine and deduplicate documents of a catalogue of that size, step by step."""
    from corpus.catalogue import Catalogue
    from corpus.catalogue.tables import Document
    from corpus.curating.pages import _document  # the columns of a fresh document, as cleaning writes them
    from corpus.curating.texts import DeduplicateStep, RefineStep, ScoreStep
    from corpus.ids import digest
    from corpus.stages import StageContext, pending, run_step

    with tempfile.TemporaryDirectory() as folder:
        catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
        rows = []
        for n, document in enumerate(made(count, characters)):
            page = _row(n, document)
            rows.append((page, document))
            if len(rows) == 200 or n == count - 1:
                with catalogue.writing() as session:
                    for page, source in rows:
                        row = _document(session, page)
                        row.kind, row.title, row.language = "page", source.title, source.language
                        row.cleaned_text, row.cleaned_html, row.removed = normalise_text(source.text), "", {}
                        row.cleaned_blocks, row.cleaned_hash = _blocks(row.cleaned_text), digest("cleaned", row.cleaned_text)  # fmt: skip
                        row.score, row.score_source, row.reason, row.detail = None, "", "", ""
                rows = []
        shown = []
        for step in (ScoreStep(), RefineStep(), DeduplicateStep()):
            before, start = process.memory_info().rss / 1e6, time.process_time()
            report = run_step(step, StageContext(catalogue, "benchmark"))
            spent = time.process_time() - start
            shown.append(f"{step.name.split('.')[1]} {1000 * spent / count:.1f} ms, RSS {before:.0f} to {process.memory_info().rss / 1e6:.0f} MB ({dict(report.counts)})")  # fmt: skip
        start = time.process_time()
        left = sum(len(pending(step, StageContext(catalogue, "again"))) for step in (ScoreStep(), RefineStep(), DeduplicateStep()))  # fmt: skip
        shown.append(f"planning again {1000 * (time.process_time() - start) / count:.2f} ms, {left} left")
        size = Path(folder, "c.db").stat().st_size / 1e6
        catalogue.close()
        print(f"{count:10} documents, catalogue {size:.0f} MB; {Document.__tablename__}: " + "; ".join(shown), flush=True)  # fmt: skip


def _row(n: int, document: Candidate) -> Any:
    from corpus.catalogue.tables import Page

    url = f"https://s{n % 97}.example/{n}.html"
    return Page(page_id=f"p{n:08}", document_id=f"d{n:08}", source="made", url=url, identity=url, licence="", state="kept", role="content")  # fmt: skip


def _blocks(text: str) -> list[dict[str, Any]]:
    position, blocks = 0, []
    for part in text.split("\n\n"):
        blocks.append({"start": position, "end": position + len(part), "path": f"/html/body/p[{len(blocks) + 1}]", "kind": ""})  # fmt: skip
        position += len(part) + 2
    return blocks


def main() -> int:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fast = commands.add_parser("speed")
    fast.add_argument("--rounds", type=int, default=3)
    fast.add_argument("--profile", action="store_true")
    grow = commands.add_parser("growth")
    grow.add_argument("--steps", default="1000,3500,10000,35000")
    grow.add_argument("--catalogue", action="store_true")
    grow.add_argument("--characters", type=int, default=0, help="cut each document to so many; 0: whole")
    grow.add_argument("--seconds", type=float, default=2400)
    options = parser.parse_args()
    return speed(options) if options.command == "speed" else growth(options)


if __name__ == "__main__":
    sys.exit(main())

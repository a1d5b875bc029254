"""Hostile inputs by the thousand, and inputs that are merely enormous.

    python benchmarks/hostile.py inputs [--blocks 100] [--start 0] [--out FOLDER]
    python benchmarks/hostile.py large [--only NAME] [--trafilatura PYTHON]

``inputs``: blocks of 100 (50 mutated sample pages, 50 generated ones), each through cleaning,
quality and refinement twice (``tests/corpus/hostile.py`` says what must hold). The inputs of a block
depend on its number alone, so a run goes on where it stopped with ``--start``. Failures are
shortened and written to FOLDER as ``<block>-<n>.html`` with the arguments and the fault beside them.

``large``: seconds and peak memory of each input in a child process, whole and half as large;
with the Python of an environment that has trafilatura, its figures stand beside ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZE = 100
_SECONDS = 240


def run_block(
    block: int, found: list[tuple[bytes, dict[str, str], str, list[str]]]
) -> tuple[int, float, str]:
    """Run one block; returns how many inputs were run, and the slowest with its seconds."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests.corpus.hostile import BACKEND, faults, markup, mutated

    run, slowest, slow_name = 0, 0.0, ""

    def examine(data: bytes, arguments: dict[str, str], name: str) -> None:
        nonlocal run, slowest, slow_name
        began = time.process_time()  # other work on the machine does not count
        wrong = faults(data, arguments)
        spent = time.process_time() - began
        run += 1
        if spent > slowest:
            slowest, slow_name = spent, f"{name} ({len(data)} bytes)"
        if wrong:
            found.append((data, arguments, name, wrong))

    for number in range(SIZE // 2):
        examine(*mutated(block * SIZE + number))

    @seed(block)
    @settings(max_examples=SIZE - SIZE // 2, database=None, deadline=None, backend=BACKEND, phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(markup())
    def generated(case: tuple[bytes, dict[str, str]]) -> None:
        examine(*case, "generated")

    generated()
    return run, slowest, slow_name


def shortened(data: bytes, arguments: dict[str, str], fault: str, seconds: float = 15.0) -> bytes:
    """The input with all taken out that the fault does not need: halves, then ever smaller stretches."""
    from tests.corpus.hostile import faults

    wanted = _kind(fault)
    until = time.monotonic() + seconds
    size = max(1, len(data) // 2)
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            if any(_kind(other) == wanted for other in faults(shorter, arguments)):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def _kind(fault: str) -> str:
    """The fault without its particulars."""
    return fault[: fault.find(": ", fault.find(": ") + 2)] if fault.count(": ") > 1 else fault


def inputs(options: argparse.Namespace) -> int:
    """Run the blocks; exit code 1 where anything did not hold."""
    options.out.mkdir(parents=True, exist_ok=True)
    kinds: Counter[str] = Counter()
    total = 0
    began = time.monotonic()
    for block in range(options.start, options.start + options.blocks):
        found: list[tuple[bytes, dict[str, str], str, list[str]]] = []
        run, slowest, name = run_block(block, found)
        total += run
        for number, (data, arguments, how, wrong) in enumerate(found):
            kind = _kind(wrong[0])
            kinds[kind] += 1
            if kinds[kind] <= options.shorten:
                data = shortened(data, arguments, wrong[0])
            place = options.out / f"{block}-{number}.html"
            place.write_bytes(data)
            note = {"arguments": arguments, "faults": wrong, "from": how}
            place.with_suffix(".json").write_text(
                json.dumps(note, ensure_ascii=False, indent=1), encoding="utf-8"
            )
        print(
            f"block {block}: {run} inputs, {len(found)} with faults; slowest {slowest:.1f} s: {name}",
            flush=True,
        )
    print(f"{total} inputs, {sum(kinds.values())} with faults, {time.monotonic() - began:.0f} s")
    for kind, count in kinds.most_common():
        print(f"  {count:5}  {kind}")
    return 1 if kinds else 0


# --- large inputs --------------------------------------------------------------------

FACT = "Benzene CAS 71-43-2 is flammable; its flash point is -11 °C and it must not be heated. 苯易燃。"


def _links(n: int) -> str:
    return (
        "<ul>"
        + "".join(f'<li><a href="/chemical/{i}.html">Substance {i}</a></li>' for i in range(n))
        + f"</ul><p>{FACT}</p>"
    )


def _rows(n: int) -> str:
    return "<table>" + "".join(f"<tr><td>{i}</td><td>Substance {i}</td><td>{i % 900}.5 °C</td><td>UN{1000 + i % 2000}</td></tr>" for i in range(n)) + "</table>"  # fmt: skip


def _nested_tables(n: int) -> str:
    return "<table><tr><td>" * n + FACT + "</td></tr></table>" * n


LARGE: dict[str, tuple[Callable[[int], str], int]] = {
    "100,000 links": (_links, 100_000),
    "table of 20,000 rows": (_rows, 20_000),
    "20,000 equal paragraphs": (lambda n: f"<p>{FACT}</p>" * n, 20_000),
    "600 nested divs": (lambda n: "<div>" * n + f"<p>{FACT * 20}</p>" + "</div>" * n, 600),
    "5,000 nested divs": (lambda n: "<div>" * n + f"<p>{FACT * 20}</p>" + "</div>" * n, 5_000),
    "one paragraph of 5 MB": (lambda n: "<p>" + f"{FACT} " * n + "</p>", 50_000),
    "attribute of 1 MB": (lambda n: f'<p title="{"a" * n}">{FACT * 20}</p>', 1_000_000),
    "50,000 list items": (lambda n: "<ul>" + "".join(f"<li>Item {i}: {i % 90} mg/kg, H225</li>" for i in range(n)) + "</ul>", 50_000),
    "10,000 definitions": (lambda n: "<dl>" + "".join(f"<dt>Property {i}<dd>{i} kPa, not above {i + 1} °C" for i in range(n)) + "</dl>", 10_000),
    "3,000 nested tables": (_nested_tables, 3_000),
    "spans of 1000x1000": (lambda n: f"<table><tr><td colspan={n} rowspan={n}>x</td><td>y</td></tr>" + "<tr><td>71-43-2</td></tr>" * n + f"</table><p>{FACT * 20}</p>", 1_000),
    "200 spans of 1000x1000": (lambda n: "<table>" + f"<tr><td colspan=1000 rowspan=1000>x</td><td>{FACT}</td></tr>" * n + "</table>", 200),
}  # fmt: skip

_OURS = """
import resource, sys, time, json
data = open(sys.argv[1], "rb").read()
from corpus.cleaning import clean_page
from corpus.quality import formula, measure
from corpus.refinement import refine_document
from corpus.errors import TerminalError
from models import Models
from models.tokens import count_words
clean_page(b"<p>warm up, so that the imports are not measured</p>" * 3)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
base, began = peak(), time.perf_counter()
try:
    page = clean_page(data, content_type="text/html; charset=utf-8")
except TerminalError as error:
    print(json.dumps({"clean": time.perf_counter() - began, "memory": peak() - base, "said": error.reason}))
    sys.exit()
cleaned, memory = time.perf_counter() - began, peak() - base
began = time.perf_counter()
formula(measure(page.text, title=page.title, count=count_words), page.language)
scored = time.perf_counter() - began
began = time.perf_counter()
refined = refine_document(page.text, page.blocks, language=page.language, title=page.title, models=Models.offline())
said = f"{page.verdict}, {len(page.text)} characters" + (", UNREFINED" if refined.unrefined else "")
print(json.dumps({"clean": cleaned, "memory": memory, "score": scored, "refine": time.perf_counter() - began, "all_memory": peak() - base, "said": said}))
"""
_THEIRS = """
import resource, sys, time, json
data = open(sys.argv[1], "rb").read()
import trafilatura
trafilatura.extract("<html><body><p>warm up, so that the imports are not measured</p></body></html>")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
base, began = peak(), time.perf_counter()
text = trafilatura.extract(data, include_tables=True, include_links=False)
print(json.dumps({"clean": time.perf_counter() - began, "memory": peak() - base, "said": f"{len(text or '')} characters"}))
"""


def _child(python: str, program: str, data: bytes) -> dict[str, float | str]:
    """Figures of a program on one input, in a process of its own; its limit is part of the answer."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".html") as file:
        file.write(data)
        file.flush()
        try:
            finished = subprocess.run([python, "-c", program, file.name], cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"said": f"over {_SECONDS} s"}
    if finished.returncode:
        return {"said": f"ended with {finished.returncode}: {finished.stderr.strip().splitlines()[-1:]}"}
    return dict(json.loads(finished.stdout.splitlines()[-1]))


def large(options: argparse.Namespace) -> int:
    """Print one row per input; memory is the growth of the peak, as a multiple of the page's size."""
    head = ("input", "MB", "clean s", "x half", "mem x", "score s", "refine s", "x half", "all mem x", "said")
    print("{:26}{:>6}{:>9}{:>8}{:>7}{:>9}{:>10}{:>8}{:>10}  {}".format(*head))
    for name, (build, n) in LARGE.items():
        if options.only and options.only not in name:
            continue
        data = _page(build(n))
        half = _child(sys.executable, _OURS, _page(build(n // 2)))
        whole = _child(sys.executable, _OURS, data)

        def shown(key: str, by: float = 1.0, figures: dict[str, float | str] = whole) -> str:
            return f"{float(figures[key]) / by:.2f}" if key in figures else "-"

        def grown(key: str, one: dict[str, float | str] = half, two: dict[str, float | str] = whole) -> str:
            return f"{float(two[key]) / max(float(one[key]), 1e-3):.1f}" if key in one and key in two else "-"

        print(f"{name:26}{len(data) / 1e6:6.2f}{shown('clean'):>9}{grown('clean'):>8}{shown('memory', len(data)):>7}{shown('score'):>9}{shown('refine'):>10}{grown('refine'):>8}{shown('all_memory', len(data)):>10}  {whole['said']}", flush=True)  # fmt: skip
        if options.trafilatura:
            theirs = _child(options.trafilatura, _THEIRS, data)
            print(f"{'  trafilatura':32}{shown('clean', figures=theirs):>9}{'':8}{shown('memory', len(data), theirs):>7}{'':37}  {theirs['said']}", flush=True)  # fmt: skip
    return 0


def _page(body: str) -> bytes:
    return (
        f"<html><head><title>x</title></head><body><main><h1>Large</h1>{body}</main></body></html>".encode()
    )


def main() -> int:
    """Parse the command line."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    many = commands.add_parser("inputs")
    many.add_argument("--blocks", type=int, default=100)
    many.add_argument("--start", type=int, default=0)
    many.add_argument("--shorten", type=int, default=2, help="failures of each kind that are shortened")
    many.add_argument("--out", type=Path, default=Path("hostile-failures"))
    big = commands.add_parser("large")
    big.add_argument("--only", default="")
    big.add_argument("--trafilatura", default="", help="Python of an environment with trafilatura")
    options = parser.parse_args()
    return inputs(options) if options.command == "inputs" else large(options)


if __name__ == "__main__":
    sys.exit(main())

"""What cleaning keeps, drops and leaves, and how fast it is, beside the cleaners people use today.

    python -m benchmarks.cleaning                     # all tables; peers: pip install hchemsafety[bench]
    python -m benchmarks.cleaning --only ours --misses
    python -m benchmarks.cleaning --rounds 5 --json figures.json
    python -m benchmarks.cleaning --path FOLDER --only ours    # one's own pages: no snippets, all the rest

1. Ours, page by page: verdict, kept of raw text, content cells, milliseconds. "Content cells" are the
   filled cells of tables that are content (navigation tables that went as a whole do not count),
   counted by the text that is found again in the cleaned page.
2. The snippets of ``samples/annotations`` (what a reader decided to keep and to drop of each page), the
   share of them each cleaner got right, by group of pages; pages a second of processor time for the
   whole way from bytes to text. Ours includes decoding, three cleanings, Markdown, plain text and blocks.
   Rounds are interleaved, one of every cleaner after the other, and the median of them is given; the
   first round of all warms up and is not counted.
3. What is left in the HTML of those that return HTML. "Cells of facts" are the cells of the tables in which
   snippets to keep stand.

Exit code 1: a goal missed by ours (kept 0.98, dropped 0.97), a leftover, or a page that a second
cleaning changes.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # python benchmarks/cleaning.py works too

from benchmarks.peers import HINT, NAMES, OURS, Cleaner, attempt, load, text_of, tree_of
from benchmarks.snippets import (
    SAMPLES,
    Annotated,
    Outcome,
    annotated_pages,
    judge,
    languages,
    listing,
    shares,
    squeeze,
)
from corpus.cleaning import CleanedPage, clean_page, decode
from corpus.errors import TerminalError

GOAL_KEPT, GOAL_DROPPED = 0.98, 0.97
FRAMES = ("iframe", "object", "embed", "frame")
CONTROLS = ("form", "input", "select", "textarea", "button")
LANDMARKS = ("nav", "aside", "footer")
LEFTOVERS = ("scripts", "handlers", "frames", "controls", "landmarks", "ids", "styles", "odd classes")
_CITATION = re.compile(r"\[(?:note)?[\d,–-]{1,6}\]|\[[a-z]\]")
MEANINGFUL = re.compile(
    r"infobox|chembox|drugbox|wikitable|language-|lang-|ghs|statement|pictogram|signal|math|tex", re.I
)


def leftovers(html: str) -> Counter[str]:
    """Counts of what the functional and attribute cleanings are to leave nothing of."""
    root = tree_of(html)
    counts: Counter[str] = Counter()
    if root is None:
        return counts
    for element in root.iter("*"):
        tag = str(element.tag)
        for group, tags in (
            ("scripts", ("script",)),
            ("frames", FRAMES),
            ("controls", CONTROLS),
            ("landmarks", LANDMARKS),
        ):
            counts[group] += tag in tags
        counts["cells"] += tag in {"td", "th"}
        for name, value in element.attrib.items():
            counts["handlers"] += str(name).startswith("on")
            counts["ids"] += name == "id"
            counts["styles"] += name == "style"
            if name == "class":
                counts["classes"] += len(str(value).split())
                counts["odd classes"] += sum(not MEANINGFUL.search(word) for word in str(value).split())
    return counts


def inner_tables(html: str) -> list[list[str]]:
    """Texts of the filled cells of every table that holds no table, squeezed, without citation marks."""
    root = tree_of(html)
    tables = []
    for table in root.iter("table") if root is not None else ():
        if table.find(".//table") is None:
            texts = [squeeze("".join(map(str, cell.itertext()))) for cell in table.iter("td", "th")]
            tables.append([text for text in (_CITATION.sub("", text) for text in texts) if text])
    return tables


def content_cells(raw: str, page: CleanedPage) -> tuple[int, int]:
    """Filled cells of the raw page's innermost tables that are content, and how many of them the text keeps.

    A table is content where more than half of its cells' texts are found in the cleaned text.
    """
    kept = squeeze(page.plain).replace(";", "")
    total = found = 0
    for texts in inner_tables(raw):
        hits = sum(text.replace(";", "") in kept for text in texts)
        if 2 * hits > len(texts):
            total += len(texts)
            found += hits
    return total, found


def fact_cells(raw: str, page: Annotated) -> list[str]:
    """Cells of the raw page's innermost tables that hold a snippet to keep and none to drop."""
    kept, dropped = [squeeze(s) for s in page.kept], [squeeze(s) for s in page.dropped]
    cells = []
    for texts in inner_tables(raw):
        has_kept = any(snippet in text for text in texts for snippet in kept)
        if has_kept and not any(snippet in text for text in texts for snippet in dropped):
            cells += texts
    return cells


def own_pages(files: Sequence[Path]) -> dict[str, Any]:
    """Print the page table of ours and its sums; returned as plain data."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    seconds, size, unstable = 0.0, 0, []
    print(f"{'page':64} {'verdict':16} {'kept/raw':>13} {'cells':>5} {'of':>5} {'ms':>6}")
    for path in files:
        data = path.read_bytes()
        began = time.process_time()
        try:
            page = clean_page(data)
        except TerminalError as error:
            verdicts[f"refused: {error.reason}"] += 1
            continue
        spent = time.process_time() - began
        seconds += spent
        size += len(data)
        raw = decode(data).text
        before.update(leftovers(raw))
        after.update(leftovers(page.html))
        verdicts[page.verdict] += 1
        content, found = content_cells(raw, page)
        before["content cells"] += content
        after["content cells"] += found
        if clean_page(page.html.encode()).html != page.html:
            unstable.append(str(path))
        share = f"{page.features.kept_text_chars}/{page.features.raw_text_chars}"
        name = "/".join(path.parts[-3:])[-64:]
        print(f"{name:64} {page.verdict:16} {share:>13} {found:5} {content:5} {spent * 1000:6.0f}")
    print(f"\n{'':14}{'raw':>8}{'cleaned':>9}")
    for group in (*LEFTOVERS[:7], "classes", "odd classes", "cells", "content cells"):
        print(f"{group:14}{before[group]:8}{after[group]:9}")
    print(f"verdicts: {dict(sorted(verdicts.items()))}; changed by a second cleaning: {len(unstable)}")
    print(f"{len(files)} pages, {size / 1e6:.1f} MB, {seconds:.2f} s of processor time (first touch)")
    return {
        "pages": len(files),
        "raw": dict(before),
        "cleaned": dict(after),
        "verdicts": dict(verdicts),
        "unstable": unstable,
        "forbidden": sum(after[group] for group in LEFTOVERS),
    }


def outcomes_of(
    cleaners: Sequence[Cleaner], annotated: Sequence[Annotated]
) -> tuple[dict[str, list[Outcome]], Counter[str]]:
    """Cleaner → what it does with the snippets of each page; and the pages on which it raised."""
    outcomes: dict[str, list[Outcome]] = {}
    failed: Counter[str] = Counter()
    for cleaner in cleaners:
        if cleaner.text is None:
            continue
        outcomes[cleaner.name] = []
        for page in annotated:
            text = attempt(cleaner.text, page.path.read_bytes(), page.group[-2:])
            failed[cleaner.name] += text is None
            outcomes[cleaner.name].append(judge(page, text or ""))
    return outcomes, failed


def timed(cleaners: Sequence[Cleaner], files: Sequence[Path], rounds: int) -> dict[str, float]:
    """Cleaner → pages a second of processor time, by the median of interleaved rounds."""
    tongues = languages()
    pages = [
        (path.read_bytes(), "zh" if tongues.get(path, "en").startswith("zh") else "en") for path in files
    ]
    spent: dict[str, list[float]] = {cleaner.name: [] for cleaner in cleaners if cleaner.text}
    for number in range(rounds + 1):
        for cleaner in cleaners:
            if cleaner.text is None:
                continue
            began = time.process_time()
            for data, language in pages:
                attempt(cleaner.text, data, language)
            if number:
                spent[cleaner.name].append(time.process_time() - began)
    return {name: len(pages) / max(statistics.median(times), 1e-9) for name, times in spent.items()}


def print_quality(
    outcomes: dict[str, list[Outcome]], failed: Counter[str], speeds: dict[str, float]
) -> dict[str, Any]:
    """Print the table of snippets and speed; returned as plain data."""
    groups = sorted({outcome.page.group for own in outcomes.values() for outcome in own})
    data: dict[str, Any] = {}
    snippets = next(iter(outcomes.values()))
    kept, dropped = sum(len(o.page.kept) for o in snippets), sum(len(o.page.dropped) for o in snippets)
    print(
        f"\nsnippets of {len(snippets)} annotated pages: {kept} to keep, {dropped} to drop (kept / dropped)"
    )
    print(f"{'':13}{'all':>15}" + "".join(f"{group:>15}" for group in groups) + f"{'pages/s':>9}{'ratio':>7}")
    slow = speeds.get("trafilatura", 0.0)
    for name, own in outcomes.items():
        parts = {"all": shares(own)} | {
            group: shares(o for o in own if o.page.group == group) for group in groups
        }
        cells = "".join(f"{f'{k:.3f} / {d:.3f}':>15}" for k, d in parts.values())
        ratio = f"{speeds[name] / slow:6.1f}×" if slow else f"{'-':>7}"
        note = f"  raised on {failed[name]} pages" if failed[name] else ""
        print(f"{name:13}{cells}{speeds[name]:9.1f}{ratio}{note}")
        data[name] = {
            "groups": {group: {"kept": k, "dropped": d} for group, (k, d) in parts.items()},
            "pages_per_second": speeds[name],
            "raised": failed[name],
        }
    return data


def print_leftovers(
    cleaners: Sequence[Cleaner], files: Sequence[Path], annotated: Sequence[Annotated]
) -> dict[str, Any]:
    """Print what each cleaner leaves in its HTML; returned as plain data."""
    by_path = {page.path: page for page in annotated}
    columns: dict[str, Counter[str]] = {"raw": Counter()}
    calls = {cleaner.name: cleaner.html for cleaner in cleaners if cleaner.html}
    columns |= {name: Counter() for name in calls}
    for path in files:
        data = path.read_bytes()
        raw = decode(data).text
        facts = fact_cells(raw, by_path[path]) if path in by_path else []
        for name, counts in columns.items():
            html = attempt(calls[name], data) if name in calls else raw
            if html is None:
                counts["raised"] += 1
                continue
            counts.update(leftovers(html))
            text = squeeze(text_of(html)) if facts else ""
            counts["cells of facts"] += sum(
                _CITATION.sub("", cell) in _CITATION.sub("", text) for cell in facts
            )
    print("\nleft in the HTML of all pages")
    print(f"{'':14}" + "".join(f"{name:>14}" for name in columns))
    for group in (*LEFTOVERS[:7], "classes", "odd classes", "cells", "cells of facts", "raised"):
        print(f"{group:14}" + "".join(f"{counts[group]:14}" for counts in columns.values()))
    return {name: dict(counts) for name, counts in columns.items()}


def parse_arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cleaning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--path",
        type=Path,
        action="append",
        help="folder of pages; may be given again (samples/pages and samples/general)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of each cleaner (3)")
    parser.add_argument("--only", choices=NAMES, default="", help="this cleaner alone")
    parser.add_argument(
        "--misses", action="store_true", help="list every snippet that was lost or survives, with its page"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main() -> int:
    """Print the tables; the exit code is described at the top."""
    options = parse_arguments()
    folders = [
        path.resolve()
        for path in options.path or (SAMPLES / "pages", SAMPLES / "general")
        if options.path or path.is_dir()
    ]
    for folder in folders:
        if not folder.is_dir():
            print(f"no folder {folder}", file=sys.stderr)
            return 2
    files = sorted(
        path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in {".html", ".htm"}
    )
    if not files or options.rounds < 1:
        print("nothing to measure: no .html files, or fewer than one round", file=sys.stderr)
        return 2
    annotated = [page for page in annotated_pages() if page.path in set(files)]
    cleaners, missing = load(options.only)
    print("cleaners: " + ", ".join(f"{cleaner.name} {cleaner.version}" for cleaner in cleaners))
    if missing:
        print(f"not installed, left out: {', '.join(missing)} ({HINT})")
    if not cleaners:
        return 2
    figures: dict[str, Any] = {"versions": {cleaner.name: cleaner.version for cleaner in cleaners}}
    wrong = []
    if any(cleaner.name == OURS for cleaner in cleaners):
        figures["pages"] = own = own_pages(files)
        if own["forbidden"]:
            wrong.append(f"{own['forbidden']} leftovers")
        if own["unstable"]:
            wrong.append(f"a second cleaning changes {', '.join(own['unstable'])}")
    speeds = timed(cleaners, files, options.rounds)
    if annotated and speeds:
        outcomes, failed = outcomes_of(cleaners, annotated)
        figures["snippets"] = print_quality(outcomes, failed, speeds)
        if OURS in outcomes:
            kept, dropped = shares(outcomes[OURS])
            if kept < GOAL_KEPT:
                wrong.append(f"kept {kept:.4f}, goal {GOAL_KEPT}")
            if dropped < GOAL_DROPPED:
                wrong.append(f"dropped {dropped:.4f}, goal {GOAL_DROPPED}")
        if options.misses:
            for name, own_outcomes in outcomes.items():
                print(f"\nmisses of {name}", *listing(own_outcomes), sep="\n")
        figures["misses"] = {name: listing(own_outcomes) for name, own_outcomes in outcomes.items()}
    elif speeds:
        print("pages/s: " + ", ".join(f"{name} {speed:.1f}" for name, speed in speeds.items()))
        figures["pages_per_second"] = speeds
    figures["leftovers"] = print_leftovers(cleaners, files, annotated)
    figures["wrong"] = wrong
    if options.json:
        options.json.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print("\n" + (f"NOT AS IT SHOULD BE: {'; '.join(wrong)}" if wrong else "as it should be"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What cleaning leaves: leftovers, table cells, idempotence, guards and time, page by page and in sum.

    python benchmarks/cleaning.py [--path samples/pages] [--rounds 1]

"content cells" are the filled cells of tables that are content (navigation tables that went as a
whole do not count), counted by the text that is found again in the cleaned page.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

from lxml import etree

from corpus.cleaning import CleanedPage, clean_page, decode
from corpus.errors import TerminalError

FRAMES = ("iframe", "object", "embed", "frame")
CONTROLS = ("form", "input", "select", "textarea", "button")
LANDMARKS = ("nav", "aside", "footer")
_CITATION = re.compile(r"\[(?:note)?[\d,–-]{1,6}\]|\[[a-z]\]")
MEANINGFUL = re.compile(
    r"infobox|chembox|drugbox|wikitable|language-|lang-|ghs|statement|pictogram|signal|math|tex", re.I
)


def leftovers(html: str) -> Counter[str]:
    """Counts of what the functional and attribute cleanings are to leave nothing of."""
    root = etree.fromstring(
        html.encode("utf-8", "replace"), etree.HTMLParser(huge_tree=True, encoding="utf-8")
    )
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


def content_cells(raw: str, page: CleanedPage) -> tuple[int, int]:
    """Filled cells of the raw page's innermost tables that are content, and how many of them the text keeps.

    A table is content where more than half of its cells' texts are found in the cleaned text.
    """
    root = etree.fromstring(
        raw.encode("utf-8", "replace"), etree.HTMLParser(huge_tree=True, encoding="utf-8")
    )
    kept = _squeezed(page.plain)
    total = found = 0
    for table in root.iter("table") if root is not None else ():
        if table.find(".//table") is not None:
            continue
        texts = [_squeezed("".join(str(part) for part in cell.itertext())) for cell in table.iter("td", "th")]
        texts = [_CITATION.sub("", text) for text in texts if text]
        hits = sum(text in kept for text in texts)
        if 2 * hits > len(texts):
            total += len(texts)
            found += hits
    return total, found


def _squeezed(text: str) -> str:
    """Text without blanks, scripts as plain characters."""
    plain = unicodedata.normalize("NFKC", re.sub(r"</?su[bp]>", "", text)).replace("−", "-")
    return re.sub(r"[\s\u00ad\u200b;]+", "", plain)


def main() -> int:
    """Print the table; exit code 1 where a leftover, a lost cell table or a changed second cleaning shows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--path", type=Path, default=Path("samples/pages"))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    files = sorted(p for p in options.path.rglob("*") if p.is_file() and p.suffix in {".html", ".htm"})
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    seconds, size, unstable = 0.0, 0, []
    print(f"{'page':64} {'verdict':16} {'kept/raw':>13} {'cells':>5} {'of':>5} {'ms':>6}")
    for path in files:
        data = path.read_bytes()
        began = time.process_time()
        try:
            for _ in range(options.rounds):
                page = clean_page(data)
        except TerminalError as error:
            verdicts[f"refused: {error.reason}"] += 1
            continue
        spent = (time.process_time() - began) / options.rounds
        seconds += spent
        size += len(data)
        raw = decode(data).text
        before.update(leftovers(raw))
        left = leftovers(page.html)
        after.update(left)
        verdicts[page.verdict] += 1
        content, found = content_cells(raw, page)
        before["content cells"] += content
        after["content cells"] += found
        if clean_page(page.html.encode()).html != page.html:
            unstable.append(path)
        features = page.features
        share = f"{features.kept_text_chars}/{features.raw_text_chars}"
        name = str(path.relative_to(options.path))[-64:]
        print(f"{name:64} {page.verdict:16} {share:>13} {found:5} {content:5} {spent * 1000:6.0f}")
    groups = (
        "scripts",
        "handlers",
        "frames",
        "controls",
        "landmarks",
        "ids",
        "styles",
        "classes",
        "odd classes",
        "cells",
    )
    print(f"\n{'':14}{'raw':>8}{'cleaned':>9}")
    for group in groups:
        print(f"{group:14}{before[group]:8}{after[group]:9}")
    print(f"{'content cells':14}{before['content cells']:8}{after['content cells']:9}")
    print(f"verdicts: {dict(sorted(verdicts.items()))}; changed by a second cleaning: {len(unstable)}")
    print(
        f"{len(files)} pages, {size / 1e6:.1f} MB, {seconds:.2f} s of processor time, {len(files) / max(seconds, 1e-9):.1f} pages/s"
    )
    forbidden = sum(after[group] for group in groups[:7]) + after["odd classes"]
    return 1 if forbidden or unstable else 0


if __name__ == "__main__":
    sys.exit(main())

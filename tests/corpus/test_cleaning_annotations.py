"""The annotated pages of ``samples/``: annotations agree with the pages, and cleaning with the annotations."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from lxml import etree

from benchmarks.snippets import SAMPLES, Annotated, annotated_pages, judge, listing, shares, squeeze
from corpus.cleaning import clean_page, decode

PAGES = annotated_pages()
ENCODINGS = {
    SAMPLES / "pages" / entry["file"]: entry["encoding"]
    for entry in map(json.loads, (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines())
}

# Fewer than ten: whether the results of a search or the contents of a book are to stay is nobody's to say ...
FEW_TO_KEEP = {
    "en.wikipedia.org-2019/search_health_hazards_petroleum.html",
    "en.wikipedia.org-2019/search_sulfuric_acid.html",
    "en.wikipedia.org-2025/wikibooks_general_chemistry.html",
    "zh-hazard-encyclopedia/identification_notes.html",
}
# ... and these sites have no furniture at all (saved fragments, pages of the nineties), or six pieces of it.
LITTLE_TO_DROP = ("sekom.com/", "zh-hazard-encyclopedia/", "msdsku.example/", "twsds.example/")


def raw_text(path: Path) -> str:
    """Every text node of the page but scripts and styles, as a parser that knows nothing of cleaning sees it."""
    data = path.read_bytes()
    encoding = ENCODINGS.get(path)
    text = data.decode(encoding, "replace") if encoding else decode(data).text
    parser = etree.HTMLParser(huge_tree=True, encoding="utf-8", remove_comments=True, remove_pis=True)
    root = etree.fromstring(text.lstrip("\ufeff").encode(), parser)
    etree.strip_elements(root, "script", "style", "head", with_tail=False)
    return "".join(map(str, root.itertext()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.page)
def test_snippets_stand_on_the_page(page: Annotated) -> None:
    visible = squeeze(raw_text(page.path))
    for snippet in (*page.kept, *page.dropped):
        assert squeeze(snippet) in visible, snippet
        assert 2 <= len(snippet) <= 80, snippet
    kept, dropped = set(map(squeeze, page.kept)), set(map(squeeze, page.dropped))
    assert len(kept) == len(page.kept)
    assert len(dropped) == len(page.dropped)
    # What is to go cannot be part of what is to stay: keeping the one would keep the other.
    assert not [(d, k) for d in dropped for k in kept if d in k]
    assert len(kept) >= 10 or page.page in FEW_TO_KEEP
    assert len(dropped) >= 10 or page.page.startswith(LITTLE_TO_DROP)


def test_every_real_page_is_annotated() -> None:
    lines = (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    real = {
        entry["file"]
        for entry in map(json.loads, lines)
        if not entry["made_up"] and entry["file"].endswith((".html", ".htm"))
    }
    assert real <= {page.page for page in PAGES}
    assert len(PAGES) == len({page.path for page in PAGES}), "a page annotated twice"


def test_cleaning_keeps_and_drops_as_annotated() -> None:
    outcomes = [judge(page, clean_page(page.path.read_bytes()).text) for page in PAGES]
    kept, dropped = shares(outcomes)
    assert kept >= 0.98, (kept, listing(outcomes))
    assert dropped >= 0.97, (dropped, listing(outcomes))


@pytest.mark.parametrize(
    "snippet, text",
    [
        ("79.102 g·mol−1", "| Molar mass | 79.102 g·mol⁻¹ |"),
        ("−41.6 °C", "-41.6 °C"),
        ("C5H5N + RCO3H → C5H5NO", "C₅H₅N + RCO₃H → C₅H₅NO"),
        ("Pna21", "P*na*2<sub>1</sub>"),
        ("闪点（℃）：-11", "| 闪点(°C):−11 |"),
        ("Abundance", "Abun\u00addance"),
    ],
)
def test_matching_sees_through_notation(snippet: str, text: str) -> None:
    assert squeeze(snippet) in squeeze(text)


@pytest.mark.parametrize("snippet, text", [("Login", "login"), ("10-3", "103"), ("5 ppm", "5 ppb")])
def test_matching_tells_differences(snippet: str, text: str) -> None:
    assert squeeze(snippet) not in squeeze(text)


def test_judging() -> None:
    page = Annotated("p.html", Path("p.html"), ("闪点 12℃", "H225"), ("上一篇", "Share this"), "real zh")
    outcome = judge(page, "| 闪点 | 12 ℃ |\n\nH225\n\nShare this")
    assert outcome.lost == ("闪点 12℃",)
    assert outcome.surviving == ("Share this",)
    assert shares([outcome]) == (0.5, 0.5)
    assert shares([]) == (1.0, 1.0)
    assert listing([outcome]) == ["lost       p.html  闪点 12℃", "surviving  p.html  Share this"]


def test_groups_and_bad_lines(tmp_path: Path) -> None:
    entries = {
        "manifest.jsonl": {"file": "a.example/1.html", "language": "zh-Hant", "made_up": True},
        "general/manifest.jsonl": {"file": "news/2.html", "language": "en", "made_up": True},
    }
    for name in ("pages/a.example/1.html", "general/news/2.html", "annotations/x.jsonl", *entries):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(entries.get(name, "")), encoding="utf-8")
    annotations = tmp_path / "annotations" / "x.jsonl"
    lines = [
        {"page": "a.example/1.html", "kept": ["閃火點"], "dropped": []},
        {"page": "news/2.html", "root": "general", "kept": [], "dropped": ["Share this"]},
    ]
    annotations.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    pages = annotated_pages(tmp_path)
    assert [(page.page, page.group) for page in pages] == [
        ("a.example/1.html", "made-up zh"),
        ("general/news/2.html", "general en"),
    ]
    for bad in ('{"page": "a.example/1.html"}', '{"page": "gone.html", "kept": [], "dropped": []}', "{"):
        annotations.write_text(json.dumps(lines[0]) + "\n" + bad, encoding="utf-8")
        with pytest.raises(ValueError, match=r"x\.jsonl, line 2: "):
            annotated_pages(tmp_path)


def benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.cleaning", "--rounds", "1", *arguments]
    return subprocess.run(command, cwd=SAMPLES.parent, capture_output=True, text=True, encoding="utf-8")


def test_benchmark_measures_ours(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    folder = SAMPLES / "pages" / "zh-hazard-encyclopedia"
    done = benchmark("--only", "ours", "--misses", "--path", str(folder), "--json", str(figures))
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(figures.read_text(encoding="utf-8"))
    assert data["pages"]["pages"] == len(list(folder.glob("*.html")))
    assert data["snippets"]["ours"]["groups"]["real zh"] == {"kept": 1.0, "dropped": 1.0}
    assert data["snippets"]["ours"]["pages_per_second"] > 0
    assert data["leftovers"]["ours"]["cells"] == data["leftovers"]["raw"]["cells"]
    assert data["misses"]["ours"] == data["wrong"] == []


@pytest.mark.skipif(find_spec("justext") is not None, reason="the peers are installed")
def test_benchmark_names_what_is_missing() -> None:
    done = benchmark("--only", "justext")
    assert done.returncode == 2
    assert "justext (pip install hchemsafety[bench])" in done.stdout

"""Precision and recall of the offline extraction against the gold assertions of ``samples/``.

Usage: python -m benchmarks.extraction [--misses] [--file PART] [--split NAME]

Pages are cleaned and refined by the platform's own code, extracted by rules and
proved by the evidence checks; what is kept is compared with the gold of the same
page, by document, language, form (infobox, table, sheet line, prose) and relation.

Three sets: ``held-out`` and ``development`` (``samples/gold/*.jsonl``, annotated by
reading the text; whatever is kept and not annotated counts as wrong) and ``made-up``
(``samples/gold.jsonl``, which lists what the writer put there, so that kinds it does
not annotate are left out of precision). Rows marked optional are right when they
are found and no loss when they are not. The exit code is 1 where a set misses
precision 0.95 or recall 0.75.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.cleaning import clean_page
from corpus.documents import Block, RefinedDocument, Section
from corpus.errors import TerminalError
from corpus.ids import document_id, version_id
from corpus.quantities import parse_quantities
from corpus.refinement import refine_document
from corpus.units import parse_unit
from kg.extraction import Draft, extract
from kg.extraction.evidence import folded, judge, locate
from kg.extraction.vocabulary import shadow
from kg.schema import Relation
from models import Models

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SPLITS = ("held-out", "development", "made-up")
PRECISION, RECALL = 0.95, 0.75
_PROPERTY = {"relative_vapour_density": "vapour_density", "solubility": "solubility_in_water"}
_UNJUDGED_PROPERTIES = {"appearance", "odour"}
_NAMES = {"name", "trade"}

Row = dict[str, Any]


# --- the pages -----------------------------------------------------------------------


def documents(*, only: set[str] | None = None, part: str = "") -> Iterator[tuple[str, RefinedDocument]]:
    """Sample pages as refined documents, by file."""
    for file, path, row in _pages():
        if part not in file or (only is not None and file not in only):
            continue
        made = refined(file, path.read_bytes(), row.get("content_type", ""), row.get("site", "gold"))
        if made is not None:
            yield file, made


def _pages() -> Iterator[tuple[str, Path, Row]]:
    for line in (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["file"], SAMPLES / "pages" / row["file"], row
    for path in sorted((SAMPLES / "gold" / "pages").glob("*.html")):
        yield f"gold/{path.name}", path, {"content_type": "text/html"}


def refined(file: str, data: bytes, content_type: str, source: str) -> RefinedDocument | None:
    """One page as a refined document; None where cleaning leaves nothing."""
    try:
        page = clean_page(data, url="http://sample/" + file, content_type=content_type)
    except TerminalError:
        return None
    if not page.text:
        return None
    made = refine_document(
        page.text, page.blocks, language=page.language, title=page.title, models=Models.offline()
    )
    identity = document_id(file)
    return RefinedDocument(
        document_id=identity,
        version_id=version_id(identity, made.text),
        url=file,
        title=page.title,
        language=page.language,
        source=source,
        kind=page.kind,
        text=made.text,
        cleaned_text=page.text,
        sections=tuple(Section(**section) for section in made.sections),
        blocks=tuple(Block(**block) for block in made.blocks),
    )


def gold(split: str) -> dict[str, list[Row]]:
    """Gold assertions of a set by file."""
    path = SAMPLES / "gold.jsonl" if split == "made-up" else SAMPLES / "gold" / f"{split}.jsonl"
    rows: dict[str, list[Row]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows[row["file"]].append(row)
    return rows


def form_of(document: RefinedDocument, start: int) -> str:
    """What a place in the text is: "infobox" (label and value), "table" (columns), "sheet" (label: value) or "prose"."""
    text = document.text
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop]
    if line.lstrip().startswith("|"):
        cells = [cell for cell in line.strip().strip("|").split("|") if cell.strip()]
        return "table" if len(cells) > 2 and not re.search(r"[:：]\s*$", cells[0].strip()) else "infobox"
    if re.match(r"^\s*(?:[-*•]\s+)?[^。.;；:：\n]{1,40}[:：]\s*\S", line) or len(line) < 60:
        return "sheet"
    return "prose"


# --- what is the same assertion ----------------------------------------------------------


def _plain(text: str) -> str:
    words = re.sub(r"[(（][^()（）]*[)）]", "", shadow(text).lower())
    return folded(words).strip("。.,;；，《》")


def _name(text: str) -> str:
    return folded(shadow(text)).lower().strip("。.,;；，")


def matches(row: Row, draft: Draft) -> bool:
    """Whether a kept draft states what a row of the annotated sets states."""
    if row["relation"] != draft.relation.value or row["polarity"] != draft.polarity.value:
        return False
    of = row.get("of", "")
    if _name(draft.subject) not in {_name(of), _name(of or row["subject"])}:
        return False
    return (
        _same_kind(row, draft)
        and ("value" not in row or _same_number(row, draft))
        and _conditions_kept(row.get("conditions", {}), draft)
        and (row.get("modality") != "may" or draft.modality.value == "may")
    )


def _same_kind(row: Row, draft: Draft) -> bool:
    given = draft.properties
    match draft.relation:
        case Relation.HAS_ALIAS:
            same = _name(str(row["object"])) == _name(draft.object)
            return same and (row["kind"] == given["kind"] or {row["kind"], given["kind"]} <= _NAMES)
        case Relation.HAS_MEASUREMENT:
            if row["property"] != given["property"]:
                return False
            return "text" not in row or _name(row["text"]) == _name(str(draft.value.get("text", "")))
        case Relation.HAS_LIMIT:
            return bool(given["kind"] in row["kind"].split("|"))
        case Relation.HAS_TOXICITY:
            return bool(
                row["endpoint"] == given.get("endpoint") and row.get("text") == draft.value.get("text")
            )
        case Relation.HAS_H | Relation.HAS_P | Relation.SHOWS_PICTOGRAM:
            return bool(row["object"] == given.get("code"))
        case Relation.SHIPPED_AS:
            return bool(row["object"] == f"UN{given['un']}")
        case Relation.RATED:
            return all(str(row[k]) == str(given.get(k)) for k in ("health", "fire", "instability"))
        case Relation.CLASSIFIED_AS:
            return bool(row["hazard"] == given.get("hazard") and row["category"] == given.get("category"))
        case Relation.FIRST_AID if row["route"] != given.get("route"):
            return False
    if "object" not in row:
        return True
    one, two = _plain(row["object"]), _plain(draft.object)
    short = 3 if draft.relation is Relation.USED_FOR else 8
    return one == two or (len(two) > short and two in one) or (len(one) > short and one in two)


def _same_number(row: Row, draft: Draft) -> bool:
    unit, have = row.get("unit", ""), str(draft.value.get("unit") or "")
    if unit != have and parse_unit(unit) != parse_unit(have):
        return False
    for end in ("min", "max"):
        one, two = row["value"].get(end), draft.value.get(end)
        if (one is None) != (two is None) or (
            one is not None and abs(one - float(two or 0)) > 1e-9 * abs(one)
        ):
            return False
    return True


def _conditions_kept(wanted: Mapping[str, str], draft: Draft) -> bool:
    """Every condition of the gold stands in the draft, whatever the draft calls it."""
    have = [
        *draft.value.get("conditions", {}).values(),
        *draft.conditions.values(),
        *draft.properties.values(),
    ]
    said = folded(shadow(" ; ".join(str(v) for v in have))).lower()
    return all(
        folded(shadow(text)).lower().replace("℃", "°c") in said.replace("℃", "°c") for text in wanted.values()
    )


# --- the older set of what writers of made-up pages put there -------------------------------


def judged(draft: Draft, rows: list[Row]) -> bool:
    """Whether the older gold of this page annotates this kind of assertion.

    Of incompatibilities it has those of labelled lists, so what sentences say beside them is left out.
    """
    if draft.relation is Relation.INCOMPATIBLE_WITH and draft.polarity.value == "positive":
        return bool(draft.properties.get("listing")) or any(matches_older(row, draft) for row in rows)
    if draft.relation is Relation.HAS_MEASUREMENT:
        name = draft.properties["property"]
        if not any(_PROPERTY.get(p := row.get("property", ""), p) == name for row in rows):
            return False
    elif not any(row["relation"] == draft.relation.value for row in rows):
        return False
    if draft.relation is Relation.HAS_ALIAS:
        return draft.properties.get("kind") in _NAMES
    if draft.relation is Relation.HAS_MEASUREMENT:
        return draft.properties.get("property") not in _UNJUDGED_PROPERTIES and "text" not in draft.value
    if draft.relation is Relation.HAS_TOXICITY:
        return draft.properties.get("endpoint") != "carcinogenicity" and draft.section != 12
    return draft.subject == ""


def _numbers(text: str) -> set[float]:
    found: set[float] = set()
    for bare in (True, False):
        for quantity in parse_quantities(text, default_unit="" if bare else "g", bare=bare):
            found |= {v for v in (quantity.minimum, quantity.maximum) if v is not None}
    return found


def _same_value(row: Row, draft: Draft) -> bool:
    wanted = _numbers(str(row["value"]))
    have = {float(draft.value[end]) for end in ("min", "max") if draft.value.get(end) is not None}
    return bool(wanted) and wanted == have


def matches_older(row: Row, draft: Draft) -> bool:
    """Whether a kept draft states what a row of the older set states."""
    if row["relation"] != draft.relation.value or row["polarity"] != draft.polarity.value:
        return False
    relation = draft.relation
    if relation in {Relation.HAS_H, Relation.HAS_P}:
        return bool(row["object"] == draft.properties.get("code"))
    if relation is Relation.SHIPPED_AS:
        return bool(row["object"] == f"UN{draft.properties['un']}")
    if relation is Relation.HAS_MEASUREMENT:
        name = _PROPERTY.get(row["property"], row["property"])
        return name == draft.properties.get("property") and _same_value(row, draft)
    if relation is Relation.HAS_LIMIT:
        kind = str(draft.properties["kind"]).lower()
        said = row["object"].lower().replace("niosh stel", "rel-stel stel")
        return kind in said.replace("niosh ceiling", "rel-c ceiling") and _same_value(row, draft)
    if relation is Relation.HAS_TOXICITY:
        return row["object"] == draft.properties.get("endpoint") and _same_value(row, draft)
    if relation is Relation.FIRST_AID and _plain(row["object"]) != _plain(draft.object):
        return False
    one, two = _plain(row["object"]), _plain(draft.object)
    return one == two or (len(two) > 3 and two in one) or (len(one) > 3 and one in two)


# --- counting ------------------------------------------------------------------------------


@dataclass
class Tally:
    """Gold rows found and missed, kept drafts right and wrong, by some name."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def lines(self, title: str) -> Iterator[str]:
        """A table, one name a line."""
        width = max(
            [
                len(title),
                *(len(name) for part in (self.found, self.missed, self.right, self.wrong) for name in part),
            ]
        )
        yield f"{title:{width}} {'gold':>6} {'recall':>7} {'kept':>6} {'precision':>10}"
        for name in sorted({*self.found, *self.missed, *self.right, *self.wrong}):
            yield _line(name, width, self.found[name], self.missed[name], self.right[name], self.wrong[name])

    def count(self, name: str, hits: Iterable[bool], good: Iterable[bool]) -> None:
        """Add gold rows (found or not) and drafts (right or not) of one name."""
        for hit in hits:
            (self.found if hit else self.missed)[name] += 1
        for ok in good:
            (self.right if ok else self.wrong)[name] += 1

    @property
    def precision(self) -> float:
        """Right among kept."""
        return self.right.total() / max(1, self.right.total() + self.wrong.total())

    @property
    def recall(self) -> float:
        """Found among gold."""
        return self.found.total() / max(1, self.found.total() + self.missed.total())


def _line(name: str, width: int, found: int, missed: int, right: int, wrong: int) -> str:
    recall = f"{found / (found + missed):.3f}" if found + missed else "-"
    precision = f"{right / (right + wrong):.3f}" if right + wrong else "-"
    return f"{name:{width}} {found + missed:>6} {recall:>7} {right + wrong:>6} {precision:>10}"


@dataclass
class Report:
    """The figures of one set."""

    split: str
    tallies: dict[str, Tally] = field(
        default_factory=lambda: {
            name: Tally() for name in ("document", "language", "form", "relation", "all")
        }
    )
    misses: list[str] = field(default_factory=list)
    unjudged: int = 0

    def add(self, where: Mapping[str, str], *, hit: bool | None = None, good: bool | None = None) -> None:
        """Count a gold row (``hit``) or a kept draft (``good``)."""
        for kind, tally in self.tallies.items():
            tally.count(where.get(kind, kind), [] if hit is None else [hit], [] if good is None else [good])

    @property
    def all(self) -> Tally:
        """Over everything."""
        return self.tallies["all"]


def measure(split: str, part: str = "") -> Report:
    """Extract the documents of a set and compare them with its gold."""
    report = Report(split)
    annotated = gold(split)
    same = matches_older if split == "made-up" else matches
    for file, document in documents(only=set(annotated), part=part):
        rows = annotated[file]
        kept = [draft for draft in extract(document)[1] if judge(draft, document)[0] is None]
        if split == "made-up":
            report.unjudged += sum(not judged(draft, rows) for draft in kept)
            kept = [draft for draft in kept if judged(draft, rows)]
        where = {"document": file, "language": document.language}
        for row in rows:
            hit = any(same(row, draft) for draft in kept)
            if row.get("optional"):
                continue
            span = locate(row["quote"], document.text)
            place = {"form": form_of(document, span[0]) if span else "?", "relation": row["relation"]}
            report.add(where | place, hit=hit)
            if not hit:
                report.misses.append(_missed(file, row))
        for draft in kept:
            good = any(same(row, draft) for row in rows)
            place = {"form": form_of(document, draft.start), "relation": draft.relation.value}
            report.add(where | place, good=good)
            if not good:
                report.misses.append(_wrong(file, document, draft))
    return report


def _missed(file: str, row: Row) -> str:
    told = [row.get(name, "") for name in ("of", "property", "kind", "endpoint", "object", "text", "value")]
    said = " ".join(str(part) for part in told if part != "")
    return f"MISSED {file} {row['relation']} {said} {row.get('conditions', '')} {row['polarity']} | {row['quote'][:90]}"


def _wrong(file: str, document: RefinedDocument, draft: Draft) -> str:
    quote = document.text[draft.start : draft.end].replace("\n", " ")
    value = {k: v for k, v in draft.value.items() if k != "si"}
    return (
        f"WRONG  {file} {draft.subject} {draft.relation.value} {dict(draft.properties)} {draft.object[:60]!r} {value} "
        f"{dict(draft.conditions)} {draft.polarity.value} | {quote[:120]}"
    )


def main() -> int:
    """Print the tables; exit code 1 where a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="list what is missed and what is wrong")
    parser.add_argument("--file", default="", help="only files whose name contains this")
    parser.add_argument("--split", choices=SPLITS, action="append", help="only this set (may be repeated)")
    given = parser.parse_args()
    good = True
    for split in given.split or SPLITS:
        report = measure(split, given.file)
        if not report.all.found.total() + report.all.missed.total():
            continue
        print(f"== {split} ==")
        for kind, tally in report.tallies.items():
            print(*tally.lines(kind), sep="\n")
            print()
        if report.unjudged:
            print(f"kinds that this set does not annotate: {report.unjudged}\n")
        if given.misses:
            print(*report.misses, sep="\n")
            print()
        good &= report.all.precision >= PRECISION and report.all.recall >= RECALL
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

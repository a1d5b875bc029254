"""Precision and recall of the offline extraction against ``samples/gold.jsonl``.

Usage: python benchmarks/extraction.py [--errors] [--file PART]

Pages are cleaned and refined by the platform's own code, extracted by rules and
proved by the evidence checks; what is kept is compared with the gold assertions
of the same page. Kinds that the gold does not annotate (identifiers, appearance,
ecotoxicity, IARC groups) are counted as unjudged and in neither figure.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpus.cleaning import clean_page
from corpus.documents import Block, RefinedDocument, Section
from corpus.errors import TerminalError
from corpus.ids import document_id, version_id
from corpus.quantities import parse_quantities
from corpus.refinement import refine_document
from kg.extraction import Draft, extract
from kg.extraction.evidence import folded, judge
from kg.extraction.vocabulary import shadow
from kg.schema import Relation
from models import Models

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
_PROPERTY = {"relative_vapour_density": "vapour_density", "solubility": "solubility_in_water"}
_UNJUDGED_PROPERTIES = {"appearance", "odour"}
_NAMES = {"name", "trade"}


def documents(part: str = "", *, only: set[str] | None = None) -> Iterator[tuple[str, RefinedDocument]]:
    """Sample pages as refined documents, by file."""
    models = Models.offline()
    for line in (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if part not in row["file"] or (only is not None and row["file"] not in only):
            continue
        data = (SAMPLES / "pages" / row["file"]).read_bytes()
        try:
            page = clean_page(
                data, url="http://sample/" + row["file"], content_type=row.get("content_type", "")
            )
        except TerminalError:
            continue
        if not page.text:
            continue
        refined = refine_document(
            page.text, page.blocks, language=page.language, title=page.title, models=models
        )
        identity = document_id(row["file"])
        yield (
            row["file"],
            RefinedDocument(
                document_id=identity,
                version_id=version_id(identity, refined.text),
                url=row["file"],
                title=page.title,
                language=page.language,
                source=row["site"],
                kind=page.kind,
                text=refined.text,
                cleaned_text=page.text,
                sections=tuple(Section(**section) for section in refined.sections),
                blocks=tuple(Block(**block) for block in refined.blocks),
            ),
        )


def gold() -> dict[str, list[dict[str, Any]]]:
    """Gold assertions by file."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in (SAMPLES / "gold.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows[row["file"]].append(row)
    return rows


def judged(draft: Draft, rows: list[dict[str, Any]]) -> bool:
    """Whether the gold of this page annotates this kind of assertion."""
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


def _plain(text: str) -> str:
    words = re.sub(r"[(（][^()（）]*[)）]", "", shadow(text).lower())
    return folded(words).strip("。.,;；，《》")


def _numbers(text: str) -> set[float]:
    found: set[float] = set()
    for bare in (True, False):
        for quantity in parse_quantities(text, default_unit="" if bare else "g", bare=bare):
            found |= {v for v in (quantity.minimum, quantity.maximum) if v is not None}
    return found


def _same_value(row: dict[str, Any], draft: Draft) -> bool:
    wanted = _numbers(str(row["value"]))
    have = {float(draft.value[end]) for end in ("min", "max") if draft.value.get(end) is not None}
    return bool(wanted) and wanted == have


def matches(row: dict[str, Any], draft: Draft) -> bool:
    """Whether a kept draft states what a gold row states."""
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
        return kind in row["object"].lower().replace("niosh stel", "rel-stel stel") and _same_value(
            row, draft
        )
    if relation is Relation.HAS_TOXICITY:
        return row["object"] == draft.properties.get("endpoint") and _same_value(row, draft)
    if relation is Relation.FIRST_AID and _plain(row["object"]) != _plain(draft.object):
        return False
    one, two = _plain(row["object"]), _plain(draft.object)
    return one == two or (len(two) > 3 and two in one) or (len(one) > 3 and one in two)


def main() -> int:
    """Print the table; exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--errors", action="store_true", help="list what is missed and what is wrong")
    parser.add_argument("--file", default="", help="only files whose name contains this")
    given = parser.parse_args()
    annotated = gold()
    found, missed, wrong, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    unjudged = 0
    for file, document in documents(given.file, only=set(annotated)):
        rows = annotated[file]
        kept = [draft for draft in extract(document)[1] if judge(draft, document)[0] is None]
        unjudged += sum(not judged(draft, rows) for draft in kept)
        kept = [draft for draft in kept if judged(draft, rows)]
        for row in rows:
            hit = any(matches(row, draft) for draft in kept)
            (found if hit else missed)[row["relation"]] += 1
            if not hit and given.errors:
                print(
                    "MISSED",
                    file,
                    row["relation"],
                    row.get("property", ""),
                    row.get("object", ""),
                    row.get("value", ""),
                    row["polarity"],
                    "|",
                    row["quote"][:80],
                )
        for draft in kept:
            hit = any(matches(row, draft) for row in rows)
            (right if hit else wrong)[draft.relation.value] += 1
            if not hit and given.errors:
                quote = document.text[draft.start : draft.end].replace("\n", " ")
                print(
                    "WRONG ",
                    file,
                    draft.relation.value,
                    dict(draft.properties),
                    draft.object[:40],
                    draft.value.get("min"),
                    draft.polarity.value,
                    "|",
                    quote[:100],
                )
    print(f"{'relation':22}{'gold':>6}{'recall':>8}{'kept':>6}{'precision':>11}")
    for relation in sorted(set(found) | set(missed) | set(right) | set(wrong)):
        _line(relation, found[relation], missed[relation], right[relation], wrong[relation])
    _line("all", found.total(), missed.total(), right.total(), wrong.total())
    print(f"unjudged kinds: {unjudged}")
    precision = right.total() / max(1, right.total() + wrong.total())
    recall = found.total() / max(1, found.total() + missed.total())
    return 0 if precision >= 0.95 and recall >= 0.75 else 1


def _line(name: str, found: int, missed: int, right: int, wrong: int) -> None:
    recall = f"{found / (found + missed):.3f}" if found + missed else "-"
    precision = f"{right / (right + wrong):.3f}" if right + wrong else "-"
    print(f"{name:22}{found + missed:>6}{recall:>8}{right + wrong:>6}{precision:>11}")


if __name__ == "__main__":
    sys.exit(main())

"""Relations that a user's file adds: what stands behind their labels."""

from __future__ import annotations

import re

from kg.extraction.context import Context
from kg.extraction.matters import item_of, matter_draft, split_items
from kg.extraction.model import Draft, Entry
from kg.extraction.vocabulary import group_term
from kg.schema import ADDED_LABELS, RELATIONS, NodeLabel, Relation, added_key

FAMILY = "added"
"""Family of labels that lead to an added relation; the field's name is the relation's."""
_TEXT_LIMIT = 300
_DENIED = re.compile(
    r"^(?:无|没有|不含|不需要?|未|并非|否)|^(?:none|no|not|without|never)\b|(?:不|勿|not)\s*$", re.IGNORECASE
)


def labelled(ctx: Context) -> list[Draft]:
    """Drafts of added relations from labelled values; a value that denies or has no data gives none."""
    drafts: list[Draft] = []
    for entry, found in ctx.entries(FAMILY):
        relation = Relation(found.name)
        if ctx.no_data(entry):
            label = sorted(RELATIONS[relation].objects)[0]
            drafts.append(ctx.no_data_draft(relation, label, entry))
            continue
        drafts += _items(ctx, relation, entry)
    return drafts


def _items(ctx: Context, relation: Relation, entry: Entry) -> list[Draft]:
    spec = RELATIONS[relation]
    added = [label for label in spec.objects if label in ADDED_LABELS]
    if ctx.subject.label not in spec.subjects:
        return []
    drafts: list[Draft] = []
    evidence = (entry.label_start, entry.end)
    for start, end in ctx.segments(entry.start, entry.end):
        for span in split_items(ctx, start, end) if spec.listed else [(start, end)]:
            words = ctx.text(*span).strip(" 。.")
            if not words or len(words) > _TEXT_LIMIT or _DENIED.search(ctx.shadow(*span).strip()):
                continue
            if added:
                drafts.append(added_draft(ctx, relation, added[0], words, evidence, entry.sds))
                continue
            item = item_of(ctx, span)
            named = NodeLabel.REACTIVE_GROUP if group_term(words) else NodeLabel.SUBSTANCE
            if item and named in spec.objects:
                drafts.append(matter_draft(ctx, relation, item[0], item[1], evidence, entry.sds))
    return drafts


def added_draft(
    ctx: Context, relation: Relation, label: NodeLabel, words: str, span: tuple[int, int], sds: int | None
) -> Draft:
    """A draft whose object is a node under an added label."""
    return ctx.draft(
        relation, words, label, span, key=added_key(label, words), properties={"text": words}, section=sds
    )

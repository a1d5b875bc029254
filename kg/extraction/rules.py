"""The offline answer: all rules over one document."""

from __future__ import annotations

from dataclasses import replace

from corpus.documents import RefinedDocument
from kg.extraction import (
    codes,
    extended,
    instructions,
    limits,
    matrix,
    matters,
    nfpa,
    prose,
    reactions,
    tables,
    toxicity,
    values,
)
from kg.extraction.context import Context
from kg.extraction.evidence import judge
from kg.extraction.model import Draft, Subject
from kg.extraction.reader import read
from kg.extraction.remarks import remarked_away
from kg.extraction.subject import find_subject
from kg.extraction.whole import with_listings
from kg.schema import DropReason, Relation

_SUBJECT_RULES = (
    codes.identifiers,
    codes.names,
    codes.uses,
    codes.classifications,
    codes.hazard_codes,
    codes.pictograms,
    nfpa.nfpa,
    tables.components,
    tables.flat_components,
    instructions.measures,
    matters.extinguishing,
    matters.reactivity,
    matters.stated,
    reactions.reactions,
    prose.statements,
    instructions.protection,
    tables.limit_tables,
    limits.exposure_limits,
    values.measurements,
    matrix.property_tables,
    values.prose_measurements,
    toxicity.toxicity,
    codes.transport,
    codes.regulations,
    extended.labelled,
)


def extract(document: RefinedDocument) -> tuple[Subject | None, list[Draft]]:
    """All drafts of a document in text order, and its subject.

    Without a subject only tables that name their own substances are read.
    """
    reading = read(document)
    subject = find_subject(document, reading)
    ctx = Context.of(reading, subject or Subject(""))
    drafts = [*tables.many_substances(ctx), *matrix.compared_substances(ctx)]
    if subject is not None:
        for rule in _SUBJECT_RULES:
            drafts += rule(ctx)
        drafts = with_listings(ctx, drafts)
        drafts = [_left_out(draft) if remarked_away(ctx, draft) else draft for draft in drafts]
    drafts = _without_broken_lists([_without_self(draft, ctx) for draft in drafts], document)
    drafts.sort(key=lambda d: (d.start, d.end, d.relation.value, d.object, d.polarity.value))
    return subject, drafts


def _without_broken_lists(drafts: list[Draft], document: RefinedDocument) -> list[Draft]:
    """A list of which the proof refuses a member is complete no more: its absence would prove a false "no"."""
    broken = {
        draft.properties["listing"]
        for draft in drafts
        if "listing" in draft.properties and judge(draft, document)[0] is not None
    }
    return [
        replace(draft, properties={k: v for k, v in draft.properties.items() if k != "listing"})
        if draft.properties.get("listing") in broken
        else draft
        for draft in drafts
    ]


def _left_out(draft: Draft) -> Draft:
    """The draft of a row whose remark gives its value to another substance."""
    return replace(draft, rejected=draft.rejected or DropReason.AMBIGUOUS_SUBJECT)


def _without_self(draft: Draft, ctx: Context) -> Draft:
    """A substance does not stand in a relation to itself."""
    named = draft.object_label.value == "Substance" and not ctx.about_other(draft.object)
    if named and not draft.subject and draft.relation is not Relation.HAS_COMPONENT:
        return replace(draft, rejected=DropReason.SELF_LOOP)
    return draft

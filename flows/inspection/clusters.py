"""Clusters of URLs with what was removed as their template, from what the catalogue holds.

The catalogue keeps a template as hashes. What they stand for is read from a few
pages of the cluster, which are cleaned again as curation cleans them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from corpus.archive import read_payload
from corpus.catalogue.tables import Cluster, Document, Page, PageProfile
from corpus.cleaning import Limits, Template
from corpus.errors import PlatformError, SettingsError

if TYPE_CHECKING:
    from flows.runtime import Runtime

SAMPLES_OF_ALL = 2  # pages that are read for each cluster of a list
SAMPLES_OF_ONE = 20
_TEXTS = 100
_TEXT_CHARS = 300
_RULE = "template"
_SECONDS = 30.0


def template_of(session: Session, page_id: str) -> tuple[Cluster | None, Template | None]:
    """The page's cluster and the template with which curation cleans the page."""
    profile = session.get(PageProfile, page_id)
    row = session.get(Cluster, profile.cluster_id) if profile is not None and profile.cluster_id else None
    return row, Template.from_json(row.template) if row is not None and row.template_hash else None


def list_clusters(session: Session, source: str = "") -> list[Cluster]:
    """Clusters, the largest first; with ``source`` those that hold pages of it."""
    query = select(Cluster).order_by(Cluster.size.desc(), Cluster.pattern, Cluster.cluster_id)
    if source:
        of_source = (
            select(PageProfile.cluster_id)
            .join(Page, Page.page_id == PageProfile.page_id)
            .where(Page.source == source)
        )
        query = query.where(Cluster.cluster_id.in_(of_source))
    return list(session.scalars(query))


def find_cluster(session: Session, wanted: str) -> Cluster:
    """The cluster whose id begins so, or whose pattern it is. Raises SettingsError for none or several."""
    same = (func.substr(Cluster.cluster_id, 1, len(wanted)) == wanted) | (Cluster.pattern == wanted)
    rows = list(session.scalars(select(Cluster).where(same).order_by(Cluster.cluster_id).limit(3)))
    if len(rows) == 1:
        return rows[0]
    raise SettingsError(
        f"{'no cluster' if not rows else 'more than one cluster'} is {wanted!r}; see `hchem pages patterns`"
    )


def describe(runtime: Runtime, rows: list[Cluster], *, pages: int) -> list[dict[str, Any]]:
    """Each cluster as plain data. What its template removes is sampled from ``pages`` of its pages.

    ``removed_elements`` and ``languages`` are exact over its documents; the texts
    in ``removed`` and ``removed_share`` (of the text) are those of ``sampled`` pages.
    """
    from flows.inspection.sandbox import Inspector

    limits = Limits(max_bytes=runtime.settings.corpus.cleaning.max_bytes)
    found = []
    with Inspector(timeout_s=_SECONDS) as inspector:
        for row in rows:
            with runtime.catalogue.reading() as session:
                entry = _facts(session, row)
                members = _members(session, row.cluster_id) if row.template_hash else []
            samples = []
            for page in _spread(members, pages):
                try:
                    data = read_payload(runtime.data_dir, page.warc_file, page.warc_offset)
                    samples.append(
                        inspector.removals(
                            data,
                            url=page.url,
                            content_type=page.content_type,
                            header_charset=page.charset,
                            template=Template.from_json(row.template),
                            limits=limits,
                        )
                    )
                except PlatformError:  # what cannot be cleaned has nothing to show
                    continue
            found.append(entry | _sampled(samples))
    return found


def _facts(session: Session, row: Cluster) -> dict[str, Any]:
    documents = (
        select(Document.language, Document.removed)
        .join(PageProfile, PageProfile.page_id == Document.page_id)
        .where(PageProfile.cluster_id == row.cluster_id)
    )
    languages: Counter[str] = Counter()
    elements = 0
    for language, removed in session.execute(documents):
        languages[language] += 1
        elements += int((removed or {}).get(f"structural/{_RULE}", 0))
    sources = session.scalars(
        select(Page.source)
        .join(PageProfile, PageProfile.page_id == Page.page_id)
        .where(PageProfile.cluster_id == row.cluster_id)
        .distinct()
        .order_by(Page.source)
    )
    return {
        "cluster_id": row.cluster_id,
        "pattern": row.pattern,
        "size": row.size,
        "sources": list(sources),
        "documents": languages.total(),
        "languages": dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        "examples": list(row.examples),
        "template_blocks": len(row.template.get("blocks", ())),
        "removed_elements": elements,
    }


def _members(session: Session, cluster_id: str) -> list[Page]:
    query = (
        select(Page)
        .join(PageProfile, PageProfile.page_id == Page.page_id)
        .where(PageProfile.cluster_id == cluster_id, Page.warc_file != "")
        .order_by(Page.page_id)
    )
    return list(session.scalars(query))


def _spread(members: list[Page], count: int) -> list[Page]:
    """Pages from all over the cluster, the same ones each time."""
    step = max(1, -(-len(members) // count))
    return members[::step]


def _sampled(samples: list[dict[str, Any]]) -> dict[str, Any]:
    on_pages: Counter[tuple[str, str]] = Counter()
    before = gone = 0
    for sample in samples:
        before += sample["size"]
        removals = [removal for removal in sample["removals"] if removal["rule"] == _RULE]
        gone += sum(removal["size"] for removal in removals)
        on_pages.update({(removal["tag"], removal["text"]) for removal in removals})
    ranked = sorted(on_pages, key=lambda key: (-on_pages[key], -len(key[1]), key))
    return {
        "sampled": len(samples),
        "removed_share": round(gone / before, 4) if before else None,
        "removed": [
            {
                "tag": tag,
                "text": text
                if len(text) <= _TEXT_CHARS
                else f"{text[:_TEXT_CHARS]}… (+{len(text) - _TEXT_CHARS})",
                "pages": on_pages[tag, text],
                "characters": len(text),
            }
            for tag, text in ranked[:_TEXTS]
        ],
        "removed_left": max(0, len(ranked) - _TEXTS),
    }

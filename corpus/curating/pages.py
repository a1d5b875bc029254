"""Steps from pages to cleaned documents: profile, templates, clean."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from corpus import restriction
from corpus.archive import read_payload
from corpus.catalogue.tables import Cluster, Document, Page, PageProfile
from corpus.cleaning import RULES_VERSION, Limits, Template, build_template
from corpus.cleaning import PageProfile as Profile
from corpus.cleaning.page import CleanedPage
from corpus.cleaning.sandbox import SandboxedCleaner
from corpus.curating.records import (
    CLEAN,
    PROFILE,
    TEMPLATES,
    WHOLE,
    clear_refinement,
    close_document,
    portions,
    record_failure,
)
from corpus.errors import TerminalError
from corpus.ids import canonical_json, digest, fingerprint, normalise_text
from corpus.settings import CleaningSettings
from corpus.stages import BaseStep, Item, Outcome, StageContext
from corpus.url_patterns import PageForm, cluster

# A page that waits for its next visit, or whose last visit failed, still has its last content.
_WITH_CONTENT = ("kept", "queued", "claimed", "failed")
_CONTENT = select(Page).where(
    Page.role == "content", Page.payload_sha256 != "", Page.state.in_(_WITH_CONTENT)
)
# What a page is, not a fault of the cleaner.
_REJECTED = frozenset({"scanned_pdf", "encrypted_pdf", "empty", "unsupported_type"})


class PageReader:
    """Reads archived pages and cleans them in the sandbox, which starts when it is first needed."""

    def __init__(self, settings: CleaningSettings, data_dir: Path) -> None:
        self.settings = settings
        self.data_dir = data_dir
        self._cleaner: SandboxedCleaner | None = None
        self._lock = threading.Lock()

    @property
    def cleaner(self) -> SandboxedCleaner:
        """The one sandboxed cleaner of the stage."""
        with self._lock:
            if self._cleaner is None:
                self._cleaner = SandboxedCleaner(
                    self.settings.seconds, limits=Limits(max_bytes=self.settings.max_bytes)
                )
            return self._cleaner

    def payload(self, page: Page) -> bytes:
        """The page's bytes from the archive."""
        return read_payload(self.data_dir, page.warc_file, page.warc_offset)

    def close(self) -> None:
        """End the sandbox; it starts again if it is needed again."""
        with self._lock:
            if self._cleaner is not None:
                self._cleaner.close()
                self._cleaner = None


def content_pages(session: Session, ctx: StageContext | None = None) -> list[Page]:
    """Pages with archived content that may become documents, ordered by id; with ``ctx`` those that its run works on."""
    conditions = [] if ctx is None else restriction.pages(session, ctx)
    return list(session.scalars(_CONTENT.where(*conditions).order_by(Page.page_id)))


def chosen_pages(session: Session) -> dict[str, Page]:
    """The page that each document is made of, by document id."""
    return _chosen(content_pages(session))


def _inputs(page: Page) -> list[str]:
    """What profile and cleaning depend on."""
    return [page.payload_sha256, page.url, page.content_type, page.charset]


@dataclass
class ProfileStep(BaseStep):
    """Per page: encoding decision, URL pattern, DOM skeleton and block hashes."""

    name: str = PROFILE
    batch_size: int | None = 50
    reader: PageReader = field(default_factory=lambda: PageReader(CleaningSettings(), Path("data")))

    def plan(self, ctx: StageContext) -> list[Item]:
        """Pages with content, keyed on their bytes."""
        with ctx.catalogue.reading() as session:
            pages = content_pages(session, ctx)
        rules = {"rules": RULES_VERSION}
        return [
            Item(page.page_id, fingerprint(self.name, self.version, _inputs(page), rules)) for page in pages
        ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Profile a page in the sandbox."""
        with ctx.catalogue.reading() as session:
            page = session.get_one(Page, item.id)
        profile = self.reader.cleaner.profile(
            self.reader.payload(page),
            url=page.url,
            content_type=page.content_type,
            header_charset=page.charset,
        )

        def write(session: Session) -> None:
            row = session.get(PageProfile, item.id) or PageProfile(page_id=item.id, cluster_id="")
            row.payload_sha256 = page.payload_sha256
            row.pattern = profile.pattern
            row.skeleton = f"{profile.skin}|{profile.skeleton}"
            row.blocks = list(profile.blocks)
            row.encoding = profile.encoding
            session.add(row)

        return Outcome(write=write, counts={"profiles": 1})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Drop the profiles of pages that are gone."""
        for ids in portions(item_ids):
            session.execute(delete(PageProfile).where(PageProfile.page_id.in_(ids)))


@dataclass
class TemplatesStep(BaseStep):
    """Barrier: clusters of pages by URL pattern and skin, and what repeats on most pages of each."""

    name: str = TEMPLATES
    batch_size: int | None = None

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item for the whole corpus, keyed on all profiles."""
        query = (
            select(PageProfile.page_id, PageProfile.payload_sha256, Page.url)
            .join(Page, Page.page_id == PageProfile.page_id)
            .order_by(PageProfile.page_id)
        )
        with ctx.catalogue.reading() as session:
            inputs = [part for row in session.execute(query) for part in row]
        if not inputs:
            return []
        return [Item(WHOLE, fingerprint(self.name, self.version, inputs, {"rules": RULES_VERSION}))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Cluster all pages and build the templates."""
        with ctx.catalogue.reading() as session:
            forms = _forms(session)
            clusters = cluster(forms)
            rows = [_cluster_row(session, found) for found in clusters]

        def write(session: Session) -> None:
            session.execute(delete(Cluster))
            session.add_all(rows)
            for found in clusters:
                for ids in portions(found.pages):
                    session.execute(
                        update(PageProfile)
                        .where(PageProfile.page_id.in_(ids))
                        .values(cluster_id=found.cluster_id)
                    )

        templates = sum(bool(row.template.get("blocks")) for row in rows)
        return Outcome(write=write, counts={"clusters": len(rows), "templates": templates})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """No page is left: no cluster is."""
        session.execute(delete(Cluster))


def _forms(session: Session) -> list[PageForm]:
    query = select(PageProfile.page_id, Page.url, PageProfile.skeleton).join(
        Page, Page.page_id == PageProfile.page_id
    )
    forms = []
    for page_id, url, stored in session.execute(query.order_by(PageProfile.page_id)):
        skin, _, skeleton = stored.partition("|")
        forms.append(PageForm(page_id, url, skeleton, skin))
    return forms


def _cluster_row(session: Session, found: Any) -> Cluster:
    profiles = [
        Profile(row.pattern, row.skeleton, "", tuple(row.blocks))
        for ids in portions(found.pages)
        for row in session.scalars(select(PageProfile).where(PageProfile.page_id.in_(ids)))
    ]
    template = build_template(profiles)
    return Cluster(
        cluster_id=found.cluster_id,
        pattern=found.pattern,
        size=len(found.pages),
        examples=list(found.examples),
        template=template.to_json(),
        template_hash=template.hash() if template else "",
    )


@dataclass
class CleanStep(BaseStep):
    """Per document: the three cleanings in the sandbox, with the template of the page's cluster."""

    name: str = CLEAN
    batch_size: int | None = 20
    reader: PageReader = field(default_factory=lambda: PageReader(CleaningSettings(), Path("data")))

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item per document, keyed on its page's bytes and its cluster's template."""
        with ctx.catalogue.reading() as session:
            pages = chosen_pages(
                session
            )  # of all pages: a restriction does not make another one the document's
            taken = set(session.scalars(select(Page.page_id).where(*restriction.pages(session, ctx))))
            hashes = _template_hashes(session)
        rules = {"rules": RULES_VERSION, "seconds": self.reader.settings.seconds}
        items = []
        for document_id, page in pages.items():
            if page.page_id not in taken:
                continue
            facts = [page.page_id, page.source, page.identity, page.licence, hashes.get(page.page_id, "")]
            inputs = _inputs(page) + facts
            items.append(Item(document_id, fingerprint(self.name, self.version, inputs, rules)))
        return items

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Clean a page; what it turned out to be decides its document's state."""
        with ctx.catalogue.reading() as session:
            pages = session.scalars(
                select(Page).where(Page.document_id == item.id).order_by(Page.page_id)
            ).all()
            page = _chosen([p for p in pages if p.payload_sha256 and p.state in _WITH_CONTENT])[item.id]
            template = _template(session, page.page_id)
        try:
            cleaned = self.reader.cleaner.clean(
                self.reader.payload(page),
                url=page.url,
                content_type=page.content_type,
                header_charset=page.charset,
                template=template,
            )
        except TerminalError as error:
            return _unclean(page, error, ctx)
        return _cleaned(page, cleaned)

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """A page that vanished takes its document with it."""
        for ids in portions(item_ids):
            session.execute(delete(Document).where(Document.document_id.in_(ids)))


def _chosen(pages: Sequence[Page]) -> dict[str, Page]:
    """The page of each document, by document id: kept ones first, then the shortest address."""
    ordered = sorted(pages, key=lambda p: (p.document_id, p.state != "kept", len(p.url), p.url, p.page_id))
    chosen: dict[str, Page] = {}
    for page in ordered:
        chosen.setdefault(page.document_id, page)
    return chosen


def _pages_of(session: Session, document_id: str) -> list[Page]:
    return list(session.scalars(_CONTENT.where(Page.document_id == document_id)))


def _template_hashes(session: Session) -> dict[str, str]:
    query = select(PageProfile.page_id, Cluster.template_hash).join(
        Cluster, Cluster.cluster_id == PageProfile.cluster_id
    )
    return {row.page_id: row.template_hash for row in session.execute(query)}


def _template(session: Session, page_id: str) -> Template | None:
    profile = session.get(PageProfile, page_id)
    row = session.get(Cluster, profile.cluster_id) if profile is not None and profile.cluster_id else None
    return Template.from_json(row.template) if row is not None and row.template_hash else None


def _document(session: Session, page: Page) -> Document:
    row = session.get(Document, page.document_id)
    if row is None:
        row = Document(document_id=page.document_id, state="kept", cleaned_hash="", flags=[], score_parts={})
        clear_refinement(row)
        session.add(row)
    row.page_id, row.source, row.url = page.page_id, page.source, page.url
    row.identity, row.licence = page.identity, page.licence
    return row


def _unclean(page: Page, error: TerminalError, ctx: StageContext) -> Outcome:
    state = "rejected" if error.reason in _REJECTED else "failed"
    message = str(error)[:4000]

    def write(session: Session) -> None:
        row = _document(session, page)
        close_document(session, row, state, error.reason, message)
        row.cleaned_text, row.cleaned_html, row.cleaned_blocks, row.removed = "", "", [], {}
        if state == "failed":
            record_failure(session, CLEAN, page.document_id, error.reason, message, ctx)

    if state == "rejected":
        return Outcome(state="rejected", reason=error.reason, detail=message, write=write)
    return Outcome(state="failed", reason=error.reason, detail=f"terminal: {message}", write=write)


def _cleaned(page: Page, cleaned: CleanedPage) -> Outcome:
    text = normalise_text(cleaned.text)
    new_hash = digest("cleaned", text)
    facts = {
        "link_share": round(cleaned.features.kept_link_density, 4),
        "blocks": digest("blocks", canonical_json(cleaned.blocks)),
        "features": cleaned.to_json()["features"],
    }
    verdict, detail = cleaned.verdict, "; ".join(cleaned.reasons)

    def write(session: Session) -> None:
        row = _document(session, page)
        row.kind, row.title, row.language = cleaned.kind, cleaned.title, cleaned.language
        row.cleaned_html, row.cleaned_text, row.cleaned_blocks = cleaned.html, text, cleaned.blocks
        row.removed = cleaned.counts()
        if verdict == "ok" and row.cleaned_hash == new_hash:
            row.score_parts = {**row.score_parts, "page": facts}
            return
        close_document(session, row, "kept", "", "")
        row.score_parts = {"page": facts}
        if verdict == "ok":
            row.cleaned_hash = new_hash
        elif verdict == "review":
            row.state, row.reason, row.detail = "review", "cleaning_guard", detail
        else:
            row.state, row.reason, row.detail = "rejected", verdict, detail

    if verdict == "ok":
        return Outcome(write=write, counts={"cleaned": 1})
    if verdict == "review":
        return Outcome(state="review", reason="cleaning_guard", detail=detail, write=write)
    return Outcome(state="rejected", reason=verdict, detail=detail, write=write)

"""What people decide of documents, and the step that holds every run to it.

A decision holds for the text that was looked at. When a page comes to say something
else the decision lapses, and the document is as the rules have it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from corpus import restriction, reviews
from corpus.catalogue.tables import Document, LedgerRow, Page, ReviewDecision
from corpus.curating.records import ACCEPTED, CLEAN, DECIDED, REFINE, SCORE, close_document
from corpus.errors import SettingsError
from corpus.ids import digest, fingerprint
from corpus.stages import BaseStep, Item, Outcome, StageContext

ACCEPT, REJECT, RETRY = "accept", "reject", "retry"
_OPEN = ("review", "rejected", "failed")


def choices(document: Document) -> tuple[str, ...]:
    """What can be decided of a document in its present state."""
    if document.state not in _OPEN or document.kind == "reference":
        return ()
    if document.state != "failed" and document.cleaned_text.strip():
        return (ACCEPT, REJECT, RETRY)
    return (REJECT, RETRY)


def mark_of(session: Session, document: Document) -> str:
    """Hash of what a person looks at: the cleaned text, or where there is none the page's bytes."""
    if document.cleaned_text:
        return digest("reviewed", document.cleaned_text)
    page = session.get(Page, document.page_id)
    return digest("reviewed", "page", page.payload_sha256 if page is not None else "")


def decide(
    session: Session, document_id: str, choice: str, *, why: str, by: str, seen: str = "", mark: str = ""
) -> ReviewDecision:
    """Record a decision; it takes effect with the next ``hchem run curate``.

    ``mark``: of the text that the person looked at. Raises SettingsError for a document that is
    gone, changed meanwhile, or cannot be decided so, DecidedError where somebody else was first.
    """
    document = session.get(Document, document_id)
    if document is None:
        raise SettingsError(f"document {document_id[:12]} is gone from the catalogue")
    if mark and mark != mark_of(session, document):
        raise SettingsError("the document has changed since it was shown; look at it again")
    last = reviews.latest(session, "documents", document_id)
    if choice not in choices(document) and (last is None or last.decision_id == seen):
        raise SettingsError(f"a document in the state {document.state} cannot be decided so: {choice!r}")
    row = reviews.record(
        session, "documents", document_id, choice, why=why, by=by, seen=seen, mark=mark_of(session, document),
        detail={"title": document.title, "url": document.url, "was": document.state, "reason": document.reason},
    )  # fmt: skip
    if choice == RETRY:
        reopen_ledger(session, document_id, (CLEAN, SCORE, REFINE))
    elif last is not None and last.state == reviews.REPLACED:
        reopen_ledger(session, document_id, (CLEAN,))
    return row


def taken_back(session: Session, row: ReviewDecision) -> None:
    """After an undo: the rules decide the document anew with the next run."""
    reopen_ledger(session, row.item_id, (CLEAN,))


def reopen_ledger(session: Session, item_id: str, steps: tuple[str, ...]) -> int:
    """Leave an item to be done by the next run; returns how many steps will. Its records stay until then."""
    rows = session.scalars(
        select(LedgerRow.step).where(LedgerRow.item_id == item_id, LedgerRow.step.in_(steps))
    )
    found = list(rows)
    session.execute(
        update(LedgerRow)
        .where(LedgerRow.item_id == item_id, LedgerRow.step.in_(found))
        .values(fingerprint="")
    )
    return len(found)


@dataclass
class DecidedStep(BaseStep):
    """Per document that people decided: what they decided, on the text that cleaning left."""

    name: str = DECIDED
    batch_size: int | None = 50

    def plan(self, ctx: StageContext) -> list[Item]:
        """Documents with a decision, keyed on it and on when cleaning last wrote them.

        Whatever cleaning writes it writes as the rules have it, also the same once more.
        """
        decided = select(ReviewDecision.item_id).where(
            ReviewDecision.queue == "documents", ReviewDecision.choice.in_((ACCEPT, REJECT))
        )
        query = select(Document.document_id).where(Document.document_id.in_(decided))
        items = []
        with ctx.catalogue.reading() as session:
            query = restriction.documents(session, ctx, query)
            for document_id in session.scalars(query.order_by(Document.document_id)).all():
                last = reviews.latest(session, "documents", document_id)
                cleaned = session.get(LedgerRow, (CLEAN, document_id))
                moment = cleaned.updated_at.isoformat() if cleaned is not None else ""
                inputs = [last.decision_id if last is not None else "", moment]
                items.append(Item(document_id, fingerprint(self.name, self.version, inputs)))
        return items

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Let the document go on, close it, or leave it to the rules."""
        with ctx.catalogue.reading() as session:
            row = _standing(session, item.id)
            lapsed = row is not None and row.mark != mark_of(session, session.get_one(Document, item.id))
        known = row.decision_id if row is not None else ""
        choice = row.choice if row is not None and not lapsed else ""

        def write(db: Session) -> None:
            document = db.get_one(Document, item.id)
            present = _standing(db, item.id)
            if (present.decision_id if present is not None else "") != known:
                return  # decided anew since: the next run sees another fingerprint
            if lapsed and present is not None:
                present.state = reviews.LAPSED
            if choice != ACCEPT and ACCEPTED in document.flags:
                document.flags = [flag for flag in document.flags if flag != ACCEPTED]
            if choice == ACCEPT:
                _accept(document)
            elif choice == REJECT and (document.state, document.reason) != ("rejected", reviews.PERSON):
                close_document(db, document, "rejected", reviews.PERSON, row.why if row is not None else "")

        outcome = "lapsed" if lapsed else choice or "taken_back"
        return Outcome(write=write, counts={f"decided: {outcome}": 1})


def _standing(session: Session, document_id: str) -> ReviewDecision | None:
    row = reviews.latest(session, "documents", document_id)
    return row if row is not None and row.state == reviews.STANDING else None


def _accept(document: Document) -> None:
    """Past cleaning and, by the flag, past the quality threshold; the score stays what it is."""
    document.flags = sorted({*document.flags, ACCEPTED})
    if not document.cleaned_hash:  # closed by the cleaner: it goes on from here
        document.cleaned_hash = digest("cleaned", document.cleaned_text)
        document.state, document.reason, document.detail = "kept", "", ""

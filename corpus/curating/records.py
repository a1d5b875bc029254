"""What the steps of the curate stage share: document records and their states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document, Failure, LedgerRow, now
from corpus.errors import PlatformError
from corpus.ids import digest
from corpus.stages import Outcome, StageContext

PROFILE = "curate.profile"
TEMPLATES = "curate.templates"
CLEAN = "curate.clean"
DECIDED = "curate.decided"
SCORE = "curate.score"
REFINE = "curate.refine"
DEDUPLICATE = "curate.deduplicate"
WHOLE = "corpus"  # the one item of a barrier step
ACCEPTED = "accepted"  # flag of a document that a person let pass
_MANY = 400  # ids per statement, below every database's limit of parameters


def portions(ids: Sequence[str]) -> Iterable[list[str]]:
    """Ids in portions that fit into one statement."""
    for start in range(0, len(ids), _MANY):
        yield list(ids[start : start + _MANY])


def reopen(session: Session, steps: Iterable[str], document_id: str) -> None:
    """Forget what later steps made of a document, so that they do it again whatever they did before.

    A text that changes and changes back has its old fingerprint again, while its
    results are gone. The grouping of all documents is forgotten with it.
    """
    for step in steps:
        item = WHOLE if step == DEDUPLICATE else document_id
        session.execute(delete(LedgerRow).where(LedgerRow.step == step, LedgerRow.item_id == item))


def clear_refinement(row: Document) -> None:
    """Take the refined text and all that hangs on it off a document."""
    row.text, row.version_id = "", ""
    row.blocks, row.sections, row.refinement = [], [], {}
    row.flags = [flag for flag in row.flags if flag not in ("unrefined", "orders")]
    row.duplicate_of, row.group = None, {}


def close_document(session: Session, row: Document, state: str, reason: str, detail: str) -> None:
    """A document that goes no further: its hash is empty, so that no later step takes it."""
    reopen(session, (SCORE, REFINE, DEDUPLICATE), row.document_id)
    clear_refinement(row)
    row.state, row.reason, row.detail = state, reason[:64], detail
    row.cleaned_hash, row.score, row.score_parts, row.score_source = "", None, {}, ""


def clear_refinements(session: Session, document_ids: Sequence[str]) -> None:
    """``clear_refinement`` for documents that left the step."""
    for ids in portions(document_ids):
        session.execute(
            update(Document)
            .where(Document.document_id.in_(ids))
            .values(
                text="", version_id="", blocks=[], sections=[], refinement={}, duplicate_of=None, group={}
            )
        )


def failed(step: str, document_id: str, error: PlatformError, ctx: StageContext) -> Outcome:
    """A terminal failure of a document: recorded on the document, in the ledger and in the failures."""
    message = str(error)[:4000]

    def write(session: Session) -> None:
        session.execute(
            update(Document)
            .where(Document.document_id == document_id)
            .values(state="failed", reason=error.reason[:64], detail=message)
        )
        record_failure(session, step, document_id, error.reason, message, ctx)

    return Outcome(state="failed", reason=error.reason, detail=f"terminal: {message}", write=write)


def record_failure(
    session: Session, step: str, item_id: str, reason: str, message: str, ctx: StageContext
) -> None:
    """A row in the failures table for an item whose outcome the step writes itself."""
    session.merge(
        Failure(
            failure_id=digest("failure", step, item_id, ctx.run_id, reason),
            step=step,
            item_id=item_id,
            kind="terminal",
            reason=reason[:64],
            message=message,
            run_id=ctx.run_id,
            at=now(),
        )
    )

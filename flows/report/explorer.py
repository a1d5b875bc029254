"""The graph explorer: a page per substance beside the report, and an index with a search.

What a page shows is what the graph is built from: the kept assertions on the
present versions of kept documents. Read and written a bounded number of
substances at a time, so that memory does not grow with the catalogue. Pages ask
for nothing from outside; only the index runs a script, its own, allowed by hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document, Entity, EntityAlias, EntityDecision, Question
from corpus.errors import TerminalError
from corpus.ids import digest
from flows.report import folders, neighbours
from flows.report.places import document_page, in_chinese, lineage_folder, listed_documents, substances_folder
from flows.report.statements import Matter, grouped, relation_title
from flows.visible import visible
from flows.words import counted
from kg import conflicts
from kg.schema import NodeLabel, Relation
from kg.settings import ExtractionSettings

EXPLORER_VERSION = "5"
_MOST_PAGES = 5000
_BATCH = 100
_MOST_STATEMENTS = 600  # of one substance
_MOST_INCOMING = 60
_MOST_QUESTIONS = 40
_CONTEXT = 60  # characters shown on either side of the evidence
_CAS = re.compile(r"\d{2,7}-\d{2}-\d")
_MATTER = (NodeLabel.SUBSTANCE.value, NodeLabel.MIXTURE.value)


@dataclass(frozen=True)
class Explorer:
    """What was written: pages, substances there are, bytes in all and of the largest page."""

    folder: Path
    pages: int
    substances: int
    bytes: int
    largest: int

    @property
    def link(self) -> str:
        """Address of the index from the report's folder."""
        return f"{self.folder.name}/index.html"


@dataclass
class Listed:
    """A row of the index."""

    key: str
    file: str
    zh: str
    en: str
    names: list[str]
    statements: int
    sources: int
    conflicts: int
    questions: int


def page_name(key: str) -> str:
    """File of a substance: its CAS number, or a hash of any other key; no text of a page becomes a path."""
    return f"{key}.html" if _CAS.fullmatch(key) else f"s-{digest('substance page', key)[:20]}.html"


def write_explorer(catalogue: Catalogue, report: Path, settings: ExtractionSettings) -> Explorer:
    """Write ``<report>-substances/`` beside a report file, whole or not at all.

    A folder whose content would be the same is left alone. Raises TerminalError
    where it cannot be written or holds files that no report wrote.
    """
    folder = substances_folder(report)
    with catalogue.reading() as session:
        mark = _fingerprint(session, report.name, settings)
        figures = folders.known(folder, mark)
        if figures is None:
            try:
                figures = folders.write(folder, mark, lambda fresh: _fill(session, fresh, report, settings))
            except OSError as error:
                raise TerminalError(
                    f"explorer {folder} cannot be written: {error.strerror or error}", reason="disk"
                ) from error
    return Explorer(
        folder.resolve(), *(figures[name] for name in ("pages", "substances", "bytes", "largest"))
    )


def _fill(session: Session, folder: Path, report: Path, settings: ExtractionSettings) -> dict[str, int]:
    keys = [key for key, _ in ranked(session)]
    pages = _Pages(session, folder, report, settings, keys[:_MOST_PAGES])
    listed = pages.write_all()
    index = pages.environment.get_template("substances.html.j2").render(
        rows=listed,
        total=len(keys),
        **pages.beside,
        **page_frame(pages.environment, "explorer.css", script="explorer.js"),
    )
    sizes = [*pages.sizes, folders.put(folder / "index.html", index)]
    return {"pages": len(listed), "substances": len(keys), "bytes": sum(sizes), "largest": max(sizes)}


# --- what there is ----------------------------------------------------------------


def _kept(*columns: Any) -> Select[Any]:
    return (
        select(*columns)
        .join(Document, Document.document_id == Assertion.document_id)
        .where(
            Assertion.state == "kept",
            Assertion.subject_key != "",
            Document.state == "kept",
            Document.version_id == Assertion.version_id,
        )
    )


def with_pages(session: Session) -> frozenset[str]:
    """The keys of the substances that have a page."""
    return frozenset(key for key, _ in ranked(session)[:_MOST_PAGES])


def ranked(session: Session) -> list[tuple[str, int]]:
    """Substances that kept pages speak of, those with most statements first."""
    query = _kept(Assertion.subject_key, func.count().label("n")).where(Document.kind != "reference")
    rows = session.execute(query.group_by(Assertion.subject_key)).all()
    return sorted(((str(key), int(n)) for key, n in rows), key=lambda row: (-row[1], row[0]))


def _fingerprint(session: Session, report: str, settings: ExtractionSettings) -> str:
    """Hash of all that the pages show, read as streams of ids (they are hashes of content)."""
    state = hashlib.sha256(f"{EXPLORER_VERSION} {report} {settings.model_dump_json()}".encode())
    columns = (
        _kept(Assertion.assertion_id, Assertion.subject_key, Assertion.object_key).order_by(
            Assertion.assertion_id
        ),
        select(Document.document_id, Document.version_id, Document.title, Document.url, Document.licence)
        .where(Document.state == "kept")
        .order_by(Document.document_id),
        select(EntityAlias.alias_id, EntityAlias.key, EntityAlias.ambiguous).order_by(EntityAlias.alias_id),
        select(Entity.key, Entity.names).order_by(Entity.key),
        select(EntityDecision.decision_id, EntityDecision.undone).order_by(EntityDecision.decision_id),
        select(Question.question_id, Question.question, Question.answer)
        .where(Question.state == "kept")
        .order_by(Question.question_id),
    )
    for query in columns:
        for row in session.execute(query.execution_options(yield_per=5000)):
            state.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
    return state.hexdigest()


# --- pages -----------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question of a substance as its page lists it."""

    id: str
    kind: str
    language: str
    question: str
    answer: str


class _Pages:
    """Writes the pages of some substances, a batch at a time."""

    def __init__(
        self, session: Session, folder: Path, report: Path, settings: ExtractionSettings, keys: Sequence[str]
    ) -> None:
        self.session, self.folder, self.settings = session, folder, settings
        self.beside = {
            "report": report.name,
            "report_zh": in_chinese(report).name,
            "lineage": lineage_folder(report).name,
        }
        self.traced = frozenset(key for key, _ in listed_documents(session))
        self.keys = list(keys)
        self.paged = frozenset(keys)
        self.files = {key: page_name(key) for key in keys}
        self.sizes: list[int] = []
        self.environment = environment()
        self.questions, self.asked = _questions(session, self.paged)

    def write_all(self) -> list[Listed]:
        """All pages; the rows of the index in the order of the substances."""
        return [
            row
            for at in range(0, len(self.keys), _BATCH)
            for row in self._write_batch(self.keys[at : at + _BATCH])
        ]

    def _write_batch(self, keys: Sequence[str]) -> Iterator[Listed]:
        session = self.session
        rows: dict[str, list[Assertion]] = defaultdict(list)
        incoming: dict[str, list[Assertion]] = defaultdict(list)
        for row in session.scalars(_kept(Assertion).where(Assertion.subject_key.in_(keys))):
            rows[row.subject_key].append(row)
        mentioned = _kept(Assertion).where(
            Assertion.object_key.in_(keys), Assertion.object_label.in_(_MATTER)
        )
        for row in session.scalars(mentioned):
            incoming[row.object_key].append(row)
        every = [row for group in (*rows.values(), *incoming.values()) for row in group]
        documents = _documents(session, {row.document_id for row in every})
        names = _names(session, {key for row in every for key in (row.subject_key, row.object_key)} | {*keys})
        aliases = _aliases(session, keys)
        differing = {
            side.assertion: finding.said
            for finding in conflicts.find(session, self.settings, subjects=keys)
            for side in (finding.left, finding.right)
        }
        for key in keys:
            known = aliases.get(key, [])
            yield self._write_page(key, rows[key], incoming[key], documents, names, known, differing)
        session.expunge_all()

    def _write_page(
        self,
        key: str,
        rows: list[Assertion],
        incoming: list[Assertion],
        documents: Mapping[str, Document],
        names: Mapping[str, tuple[str, str]],
        aliases: list[str],
        differing: Mapping[str, str],
    ) -> Listed:
        rows.sort(key=lambda row: (row.relation, row.document_id, row.start, row.assertion_id))
        shown = rows[:_MOST_STATEMENTS]
        matters = grouped(shown, documents, names, differing)
        sections: dict[Relation, list[Matter]] = defaultdict(list)
        for matter in matters:
            sections[matter.relation].append(matter)
        incoming.sort(key=lambda row: (row.subject_key, row.relation, row.assertion_id))
        sources = sorted({row.document_id for row in rows})
        zh, en = names.get(key, ("", ""))
        asked = self.asked.get(key, [])
        page = Listed(
            key, page_name(key), zh, en, aliases, len(rows), len(sources),
            sum(matter.conflict for matter in matters), self.questions.get(key, 0),
        )  # fmt: skip
        html = self.environment.get_template("substance.html.j2").render(
            page=page,
            **self.beside,
            trail=lambda document: document_page(document) if document in self.traced else "",
            left_out=len(rows) - len(shown),
            sources=[documents[i] for i in sources],
            sections=[(relation, *relation_title(relation), group) for relation, group in sections.items()],
            conflicts=[matter for matter in matters if matter.conflict],
            evidence=lambda row: _evidence(row, documents[row.document_id]),
            documents=documents,
            incoming=[(row, names.get(row.subject_key, ("", ""))) for row in incoming[:_MOST_INCOMING]],
            incoming_total=len(incoming),
            # of all rows: where the list is cut, a prohibition must not be lost beside what it forbids
            picture=neighbours.picture(
                zh or en or key, neighbours.gathered(rows, incoming, names, key, self.files)
            ),
            questions=asked,
            file=lambda other: self.files.get(other, ""),
            relation_title=relation_title,
            **page_frame(self.environment, "explorer.css"),
        )
        self.sizes.append(folders.put(self.folder / page.file, html))
        return page


def page_frame(made: Environment, *styles: str, script: str = "") -> dict[str, Any]:
    """What every page needs: style and script, by their files, with the policy that allows exactly them."""
    style, code = _own(made, *styles), _own(made, script) if script else ""
    allowed = f"; script-src '{_hash(code)}'" if code else ""
    policy = f"default-src 'none'; style-src '{_hash(style)}'{allowed}; base-uri 'none'; form-action 'none'"
    return {"style": Markup(style), "script": Markup(code), "policy": policy}  # noqa: S704  our own files


def _own(made: Environment, *names: str) -> str:
    loader = made.loader
    return "\n" + "".join(f"{loader.get_source(made, name)[0].strip()}\n" for name in names) if loader else ""


def environment() -> Environment:
    """Templates of the explorer: everything is escaped, what is missing is an error."""
    made = Environment(
        loader=PackageLoader("flows.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["public"] = lambda url: (
        str(url).startswith(("http://", "https://")) and ".test/" not in str(url)
    )
    made.filters["words"] = lambda text: str(text).replace("_", " ")
    made.filters["short"] = shortened
    made.filters["counted"] = counted
    made.filters["raised"] = raised
    return made


def shortened(text: Any, most: int = 160) -> str:
    """Text for display: without control characters, cut where it is longer than a name can be."""
    plain = str(text)
    if not plain.replace("\n", "").replace("\t", "").isprintable():
        plain = "".join(c for c in plain if c.isprintable() or c in " \n\t")
    return plain if len(plain) <= most else plain[: most - 1] + "…"


_RAISED = re.compile(r"&lt;(sub|sup)&gt;((?:(?!&lt;/?su[bp]&gt;).){1,40})&lt;/\1&gt;")
_LEFT_OVER = re.compile(r"&lt;/?su[bp]&gt;")


def raised(text: Any) -> Markup:
    """Text with the only marks that refined text keeps, ``<sub>`` and ``<sup>``, shown as such.

    Everything is escaped first and only whole pairs around a few characters come back; half a pair,
    where a quote was cut, is left out.
    """
    escaped = _RAISED.sub(r"<\1>\2</\1>", str(escape(text)))
    return Markup(_LEFT_OVER.sub("", escaped))  # noqa: S704  escaped above


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _evidence(row: Assertion, document: Document) -> tuple[str, str, str]:
    """The quote with the text around it, from the document's own text."""
    text, start, end = document.text, row.start, row.end
    before = ("…" if start > _CONTEXT else "") + text[max(0, start - _CONTEXT) : start]
    after = text[end : end + _CONTEXT] + ("…" if end + _CONTEXT < len(text) else "")
    # what lies beyond the paragraph would only confuse
    return before.rpartition("\n")[2], text[start:end], after.partition("\n")[0]


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(keys)
    for at in range(0, len(ordered), 500):
        yield ordered[at : at + 500]


def _documents(session: Session, ids: Iterable[str]) -> dict[str, Document]:
    return {
        row.document_id: row
        for part in _chunks(ids)
        for row in session.scalars(select(Document).where(Document.document_id.in_(part)))
    }


def _names(session: Session, keys: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Key of a substance or mixture → its name in Chinese and in English ("" where there is none)."""
    found = {}
    for part in _chunks(keys):
        for row in session.scalars(select(Entity).where(Entity.key.in_(part))):
            found[row.key] = (str(row.names.get("zh") or ""), str(row.names.get("en") or ""))
    return found


def _aliases(session: Session, keys: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for part in _chunks(keys):
        query = select(EntityAlias.key, EntityAlias.text).where(
            EntityAlias.key.in_(part), EntityAlias.ambiguous.is_(False)
        )
        for key, text in session.execute(query.distinct().order_by(EntityAlias.key, EntityAlias.text)):
            found[key].append(text)
    return found


def _questions(session: Session, keys: frozenset[str]) -> tuple[dict[str, int], dict[str, list[Asked]]]:
    """Questions per substance, counted and the first of them, in one pass."""
    counts: dict[str, int] = defaultdict(int)
    first: dict[str, list[Asked]] = defaultdict(list)
    query = (
        select(
            Question.question_id, Question.kind, Question.language, Question.question, Question.answer,
            Question.substances,
        )
        .where(Question.state == "kept")
        .order_by(Question.question_id)
    )  # fmt: skip
    for row in session.execute(query.execution_options(yield_per=2000)):
        for key in keys.intersection(row.substances):
            counts[key] += 1
            if len(first[key]) < _MOST_QUESTIONS:
                first[key].append(Asked(row.question_id, row.kind, row.language, row.question, row.answer))
    return counts, first

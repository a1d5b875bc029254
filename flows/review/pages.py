"""The pages themselves: overview, queues, items, history; and what a form that is sent does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import structlog
from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from corpus import reviews
from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import Document, EntityDecision, Question, ReviewDecision, Run
from corpus.curating import decided as documents
from corpus.errors import PlatformError, SettingsError, TransientError
from corpus.ids import digest
from flows.review import evidence, history, naming, queues
from flows.review.guard import Guard, Tokens, cookies, user_of
from flows.review.words import LANGUAGES, WORDS, Language, preferred
from flows.visible import visible
from kg import decided, decisions
from kg.settings import ExtractionSettings

log = structlog.get_logger("hchem.review")
_LARGEST_FORM = 64_000  # bytes
_LARGEST_PAGE = 1_000_000
_LONGEST_WORDS = 200
_COOKIE_AGE = 365 * 24 * 3600


@dataclass(frozen=True)
class Options:
    """How the page is served. ``by``: who decides where the visitor gives no name."""

    by: str = ""
    read_only: bool = False
    auth: str = ""
    hosts: frozenset[str] = frozenset()
    cookie: str = "hchem_review"


@dataclass
class Given:
    """A request, read: language, form or query, the visitor's name."""

    request: Request
    language: Language
    values: Mapping[str, str]
    by: str
    refusal: str = ""

    @property
    def wanted(self) -> queues.Wanted:
        """What of a queue is asked for."""
        return queues.Wanted(
            self.text("q")[:_LONGEST_WORDS].strip(),
            self.text("kind")[:128],
            max(1, self.number("page", 1)),
            self.language,
        )

    def text(self, name: str) -> str:
        """A value as text; "" where it is missing."""
        return self.values.get(name, "")

    def number(self, name: str, default: int) -> int:
        """A value as a number; the default where it is none."""
        given = self.text(name)
        return (
            min(int(given), _LARGEST_PAGE)
            if given.isascii() and given.isdigit() and len(given) < 9
            else default
        )


class NotFoundError(Exception):
    """There is no such item."""


@dataclass
class Review:
    """The application over one catalogue."""

    catalogue: Catalogue
    extraction: ExtractionSettings
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        self.computed = queues.Computed(self.extraction)
        self.tokens = Tokens()
        self.style = (files("flows.review") / "templates" / "review.css").read_text(encoding="utf-8")
        self.environment = Environment(
            loader=PackageLoader("flows.review"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True, finalize=visible,
            auto_reload=False,  # a page and its words are of one version
        )  # fmt: skip
        self.environment.filters["link"] = safe_link
        self.environment.filters["path"] = lambda text: quote(str(text), safe="/")

    def app(self) -> ASGIApp:
        """The ASGI application, guarded."""
        routes = [
            Route("/", self._page(self.overview)),
            Route("/review.css", self._stylesheet),
            Route("/history", self._page(self.show_history)),
            Route("/history/{decision}", self._page(self.show_decision)),
            Route("/history/{decision}", self._page(self.undo), methods=["POST"]),
            Route("/{queue}", self._page(self.listing)),
            Route("/{queue}/{item:path}", self._page(self.item)),
            Route("/{queue}/{item:path}", self._page(self.decide), methods=["POST"]),
        ]
        app = Starlette(routes=routes)
        return Guard(app, self.options.hosts, auth=self.options.auth, cookie=self.options.cookie)

    # --- requests ------------------------------------------------------------------------

    async def _stylesheet(self, request: Request) -> Response:
        return Response(self.style, media_type="text/css")

    def _page(self, make: Callable[[Given], Response]) -> Callable[[Request], Any]:
        """An endpoint that reads the request, makes the page on a thread, and words what goes wrong."""

        async def endpoint(request: Request) -> Response:
            jar = cookies(request.headers.get("cookie", ""))
            chosen = request.query_params.get("lang", "") or jar.get(f"{self.options.cookie}_lang", "")
            language = next(
                (one for one in LANGUAGES if one == chosen),
                preferred(request.headers.get("accept-language", "")),
            )
            by = user_of(request) if self.options.auth else ""
            usual = unquote(jar.get(f"{self.options.cookie}_by", "")) or self.options.by
            given = Given(request, language, dict(request.query_params), by or usual)
            if request.method == "POST":
                form = await _form(request)
                if form is None or not self.tokens.fits(request, form.get("token", "")):
                    return self._message(given, "forged", 403)
                if self.options.read_only:
                    return self._message(given, "read_only", 403)
                given.values = form
                given.by = by or form.get("by", "")
            response = await run_in_threadpool(self._answer, make, given)
            if request.query_params.get("lang", "") in LANGUAGES:
                self._remember(response, "lang", language)
            return response

        return endpoint

    def _remember(self, response: Response, what: str, value: str) -> None:
        name = f"{self.options.cookie}_{what}"
        response.set_cookie(name, value, max_age=_COOKIE_AGE, httponly=True, samesite="strict")

    def _answer(self, make: Callable[[Given], Response], given: Given) -> Response:
        try:
            return make(given)
        except NotFoundError:
            return self._message(given, "not_found", 404)
        except TransientError as error:
            log.warning("busy", message=str(error))
            return self._message(given, "busy", 503)
        except PlatformError as error:
            return self._render(
                given, "message.html.j2", 422, key="refused", words={"why": str(error)}, again=""
            )

    def _message(self, given: Given, key: str, status: int) -> Response:
        return self._render(given, "message.html.j2", status, key=key, words={}, again="")

    def _render(self, given: Given, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        words = WORDS[given.language]

        def t(key: str, **parts: Any) -> str:
            return words[key].format(**parts) if parts else words[key]

        def code(key: object, condition: str = "") -> str:
            if condition:
                return naming.condition(condition, str(key), given.language)
            return naming.code(str(key), given.language)

        query = [(name, value) for name, value in given.request.query_params.multi_items() if name != "lang"]
        other: Language = "en" if given.language == "zh" else "zh"
        page = self.environment.get_template(template).render(
            t=t, code=code, difference=lambda finding: naming.difference(finding, given.language), lang=given.language,
            other=f"?{urlencode([*query, ('lang', other)])}", other_language=other,
            token=self.tokens.of(given.request), by=given.by, by_fixed=bool(self.options.auth),
            read_only=self.options.read_only, queues=queues.QUEUES,
            here=given.request.path_params.get("queue") or given.request.url.path.split("/")[1], running=self._running(), **values,
        )  # fmt: skip
        return HTMLResponse(
            page,
            status_code=status,
            headers={"Content-Language": given.language, "Vary": "Accept-Language, Cookie"},
        )

    def _running(self) -> str:
        """The flow of the run that is at work; "" where there is none."""
        if not leases.living(self.catalogue, "run"):
            return ""
        with self.catalogue.reading() as session:
            run = session.scalar(select(Run).order_by(Run.started_at.desc()).limit(1))
            return run.flow if run is not None else "run"

    # --- overview, lists, history ------------------------------------------------------------

    def overview(self, given: Given) -> Response:
        """How much waits in each queue, and what has to run before decisions are in effect."""
        with self.catalogue.reading() as session:
            counts = queues.counts(session, self.computed)
        late = queues.to_apply(self.catalogue)
        if counts["questions"] and not late:  # a run of the graph alone took evidence from them
            late = ["questions"]
        command = f"hchem refresh --from-stage {late[0]}" if late else ""
        return self._render(given, "overview.html.j2", counts=counts, command=command)

    def listing(self, given: Given) -> Response:
        """A page of a queue."""
        queue = self._queue(given)
        with self.catalogue.reading() as session:
            found = self._listing(session, queue, given.wanted)
            done = self._done(session, given)
        return self._render(
            given,
            "list.html.j2",
            queue=queue,
            found=found,
            wanted=given.wanted,
            done=done,
            turn=_turn(given.wanted),
            size=queues.PAGE_SIZE,
        )

    def _queue(self, given: Given) -> str:
        queue = str(given.request.path_params["queue"])
        if queue not in queues.QUEUES:
            raise NotFoundError
        return queue

    def _listing(self, session: Session, queue: str, wanted: queues.Wanted) -> queues.Listing:
        lists: dict[str, Callable[[Session, queues.Wanted], queues.Listing]] = {
            "documents": queues.documents, "identity": queues.identity, "conflicts": self.computed.conflicts,
            "questions": self.computed.questions, "work": queues.work,
        }  # fmt: skip
        return lists[queue](session, wanted)

    def _done(self, session: Session, given: Given) -> history.Line | None:
        """The decision that brought the visitor here; only an id of ours is shown."""
        wanted = given.request.query_params.get("done", "")
        return history.line(session, wanted) if wanted else None

    def show_history(self, given: Given) -> Response:
        """All decisions, the newest first."""
        with self.catalogue.reading() as session:
            lines, total = history.lines(session, given.wanted)
            done = self._done(session, given)
        found = queues.Listing([], total, given.wanted.page)
        return self._render(
            given,
            "history.html.j2",
            lines=lines,
            found=found,
            wanted=given.wanted,
            done=done,
            turn=_turn(given.wanted),
        )

    def show_decision(self, given: Given, status: int = 200, refusal: str = "") -> Response:
        """One decision, with the form that takes it back."""
        with self.catalogue.reading() as session:
            line = history.line(session, str(given.request.path_params["decision"]))
        if line is None:
            raise NotFoundError
        return self._render(
            given, "decision.html.j2", status, line=line, refusal=refusal, why=given.text("why")
        )

    def undo(self, given: Given) -> Response:
        """Take a decision back."""
        wanted = str(given.request.path_params["decision"])
        try:
            with self.catalogue.writing() as session:
                reviews.one_at_a_time(session)
                made = history.undo(session, wanted, given.text("why"), given.by)
        except reviews.DecidedError as error:
            return self._first(given, error.row.decided_by, error.row.at, error.row.choice, error.row.why)
        except SettingsError as error:
            return self.show_decision(given, 422, str(error))
        return self._gone_to(given, "/history", made)

    def _gone_to(self, given: Given, path: str, decision: str, **query: str) -> Response:
        asked = {name: value for name, value in {**query, "done": decision}.items() if value}
        response = RedirectResponse(f"{quote(path)}?{urlencode(asked)}", status_code=303)
        self._remember(response, "by", quote(given.by[:64], safe=""))
        return response

    def _first(self, given: Given, by: str, at: Any, choice: str, why: str) -> Response:
        """Tell that somebody else was first."""
        words = WORDS[given.language]
        shown = f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "–"
        said = words.get(choice, choice) if choice != decided.SOLUTION else words["is_solution"]
        return self._render(
            given, "message.html.j2", 409, key="conflict_about",
            words={"by": by, "at": shown, "choice": said, "why": why}, again=given.request.url.path,
        )  # fmt: skip

    # --- items ---------------------------------------------------------------------------------

    def item(
        self, given: Given, status: int = 200, refusal: str = "", against: Sequence[ReviewDecision] = ()
    ) -> Response:
        """An item with its evidence, earlier decisions on it, and the form that decides.

        ``against``: the decisions that the one that was sent would contradict; sent again, it is recorded.
        """
        queue = self._queue(given)
        item = str(given.request.path_params["item"])
        with self.catalogue.reading() as session:
            values = getattr(self, f"_{queue}_item")(session, item)
            earlier = history.of_item(session, queue, values["key"])
            last = reviews.latest(session, queue, values["key"])  # type: ignore[arg-type]
            done = self._done(session, given)
            return self._render(
                given, f"{queue}.html.j2", status, queue=queue, item=item, earlier=earlier, done=done,
                seen=last.decision_id if last is not None else "",
                stands=last is not None and last.state == reviews.STANDING,
                refusal=refusal, why=given.text("why"),
                against=[one for row in against if (one := history.line(session, row.decision_id))],
                tried=given.text("choice") if against else "",
                place={name: given.text(name) for name in ("q", "kind", "at") if given.text(name)}, **values,
            )  # fmt: skip

    def _documents_item(self, session: Session, item: str) -> dict[str, Any]:
        document = session.get(Document, item)
        if document is None:
            raise NotFoundError
        return {
            "key": item, "view": evidence.document_view(session, document), "mark": documents.mark_of(session, document),
            "choices": documents.choices(document),
        }  # fmt: skip

    def _identity_item(self, session: Session, item: str) -> dict[str, Any]:
        row = session.get(EntityDecision, item)
        if row is None or row.decided_by != "rules" or row.kind not in ("review", "keep-apart"):
            raise NotFoundError
        view = evidence.case_view(session, row)
        is_open = bool(decisions.review_rows(session, item))
        answers = ["same", "different", *(["solution_of"] if view.solution else [])]
        return {
            "key": item,
            "view": view,
            "mark": "",
            "choices": answers if view.can_be_decided and is_open else [],
        }

    def _conflicts_item(self, session: Session, item: str) -> dict[str, Any]:
        found = self.computed.disagreement(session, item)
        if found is None:
            raise NotFoundError
        name, finding = found
        return {
            "key": item, "name": name, "finding": finding, "views": evidence.conflict_views(session, finding),
            "mark": finding.id, "choices": decided.VERDICTS,
        }  # fmt: skip

    def _questions_item(self, session: Session, item: str) -> dict[str, Any]:
        question = session.get(Question, item)
        if question is None:
            raise NotFoundError
        view = evidence.question_view(session, question)
        return {
            "key": item,
            "view": view,
            "mark": "",
            "choices": [decided.DROP, decided.REMAKE] if view.problems else [],
        }

    def _work_item(self, session: Session, item: str) -> dict[str, Any]:
        step, _, item_id = item.partition("/")
        row = queues.failed_step(session, step, item_id)
        if row is None:
            raise NotFoundError
        document = session.get(Document, item_id)
        return {
            "key": _work_key(step, item_id),
            "row": row,
            "document": document,
            "mark": "",
            "choices": [documents.RETRY],
        }

    def decide(self, given: Given) -> Response:
        """Record what a form says of an item, and go on to the next one."""
        queue = self._queue(given)
        item = str(given.request.path_params["item"])
        try:
            with self.catalogue.writing() as session:
                reviews.one_at_a_time(session)
                made = getattr(self, f"_decide_{queue}")(session, item, given)
        except reviews.DecidedError as error:
            return self._first(given, error.row.decided_by, error.row.at, error.row.choice, error.row.why)
        except decided.ContradictionError as error:
            return self.item(given, 409, against=error.rows)
        except SettingsError as error:
            if queue == "identity" and (other := self._answered(item)):
                return self._first(given, other.decided_by, other.at, other.kind, other.why)
            return self.item(given, 422, str(error))
        log.info("decided", queue=queue, item=item, decision=made)
        return self._next(given, queue, item, made)

    def _next(self, given: Given, queue: str, item: str, made: str) -> Response:
        at = given.number("at", -1)
        kept = {"q": given.text("q"), "kind": given.text("kind")}
        if at < 0:
            return self._gone_to(given, f"/{queue}", made, **kept)
        with self.catalogue.reading() as session:
            for place in (at, at + 1):
                wanted = queues.Wanted(kept["q"], kept["kind"], place // queues.PAGE_SIZE + 1)
                rows = self._listing(session, queue, wanted).rows[place % queues.PAGE_SIZE :][:1]
                if rows and rows[0].id != item:
                    return self._gone_to(given, f"/{queue}/{rows[0].id}", made, **kept, at=str(place))
        return self._gone_to(given, f"/{queue}", made, **kept)

    def _answered(self, case: str) -> EntityDecision | None:
        """The standing decision of a person that answers an entry of the review list."""
        with self.catalogue.reading() as session:
            query = select(EntityDecision).where(
                EntityDecision.decided_by != "rules", EntityDecision.undone.is_(False)
            )
            return next((row for row in session.scalars(query) if row.detail.get("review") == case), None)

    def _decide_documents(self, session: Session, item: str, given: Given) -> str:
        return documents.decide(
            session, item, given.text("choice"), why=given.text("why"), by=given.by, seen=given.text("seen"),
            mark=given.text("mark"),
        ).decision_id  # fmt: skip

    def _decide_identity(self, session: Session, item: str, given: Given) -> str:
        why, by = reviews.cleaned_reason(given.text("why"), given.by)
        choice = given.text("choice")
        if choice == "solution_of":
            return decided.decide_solution(session, item, why=why, by=by, seen=given.text("seen")).decision_id
        if choice not in ("same", "different"):
            raise SettingsError(f"{choice!r} is no answer")
        return decisions.settle(session, item, why, by, accept=choice == "same").id

    def _decide_conflicts(self, session: Session, item: str, given: Given) -> str:
        found = self.computed.disagreement(session, item)
        if found is None:
            raise NotFoundError
        name, finding = found
        return decided.decide_conflict(
            session, finding, given.text("choice"), why=given.text("why"), by=given.by, seen=given.text("seen"),
            name=name, although=given.text("although").split(","),
        ).decision_id  # fmt: skip

    def _decide_questions(self, session: Session, item: str, given: Given) -> str:
        return decided.decide_question(
            session, item, given.text("choice"), why=given.text("why"), by=given.by, seen=given.text("seen")
        ).decision_id

    def _decide_work(self, session: Session, item: str, given: Given) -> str:
        step, _, item_id = item.partition("/")
        row = queues.failed_step(session, step, item_id)
        last = reviews.latest(session, "work", _work_key(step, item_id))
        if row is None and last is not None and last.decision_id != given.text("seen"):
            raise reviews.DecidedError(last)
        if row is None or given.text("choice") != documents.RETRY:
            raise SettingsError(f"{step} did not fail on this item, or is to try it again already")
        made = reviews.record(
            session, "work", _work_key(step, item_id), documents.RETRY, why=given.text("why"), by=given.by,
            seen=given.text("seen"), detail={"step": step, "item": item_id, "reason": row.reason},
        )  # fmt: skip
        documents.reopen_ledger(session, item_id, (step,))
        return made.decision_id


def _work_key(step: str, item_id: str) -> str:
    return digest("work", step, item_id)


def _turn(wanted: queues.Wanted) -> str:
    """The query of a list without its page."""
    return urlencode({name: value for name, value in (("q", wanted.words), ("kind", wanted.kind)) if value})


async def _form(request: Request) -> dict[str, str] | None:
    """Values of a sent form; None for a body that is too large or no form."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/x-www-form-urlencoded":
        return None
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_FORM:
                return None
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=50, strict_parsing=False
        )
    except (ClientDisconnect, ValueError):
        return None
    return dict(pairs)


def safe_link(url: str) -> str:
    """An address for a link, only ASCII; "" for any scheme but that of web pages."""
    try:
        parsed = urlsplit(url)
        if parsed.scheme not in ("http", "https") or not parsed.hostname:
            return ""
    except ValueError:
        return ""
    return quote(url, safe="%/:=&?~#+!$,;'@()*[]")

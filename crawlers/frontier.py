"""The frontier of a crawl: which URL is asked for next. Its record is the catalogue.

A *round* is one visit of a source. Its row in the catalogue (``CrawlRound``)
goes when it ends; an interrupted round is resumed by the next run, with what
it has spent of its budgets: pages are counted by their rows, bytes in the
round's. A page is finished in a round when its ``run_id`` is the round's.
``lease_holder`` says what is open: ``due``, ``probe`` (known, but nothing leads
to it any more), or the process that has claimed it. Pages are taken level by
level and within a level by id, so that budgets cut at the same place whatever
the timing.
"""

from __future__ import annotations

import heapq
import os
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from corpus.archive import Location
from corpus.catalogue import Catalogue
from corpus.catalogue.leases import started
from corpus.catalogue.tables import CrawlRound, Page, now
from corpus.ids import digest, document_id
from crawlers.fates import Fate
from crawlers.sources import Source

DUE, PROBE = "due", "probe"
_ROUND_MAX_AGE = timedelta(days=7)
_LONGEST_CHAIN = 50
_SLICE = 500  # identifiers per query: databases limit the number of parameters
_RECORD_BYTES = 1 << 20  # bytes that a kill may leave out of the round's count, beside the pages' own
_STALE = "stale"  # kept from an earlier visit, this one did not get through


@dataclass(frozen=True)
class Found:
    """A URL that something leads to; ``lastmod`` is a sitemap's word for its last change."""

    url: str
    depth: int
    parent: str = ""
    chemicals: tuple[str, ...] = ()
    role: str = "content"
    lastmod: datetime | None = None


@dataclass(frozen=True)
class Task:
    """A claimed page with what is known from its last visit.

    ``unmoved``: a sitemap that is believed says that it has not changed since.
    """

    page_id: str
    url: str
    identity: str
    depth: int
    role: str
    chemicals: tuple[str, ...]
    etag: str
    last_modified: str
    payload: Location | None
    payload_sha256: str
    probe: bool
    redirects: int
    unmoved: bool = False


@dataclass
class Visit:
    """The result of a visit, stored together with the links it brought.

    ``asked`` False: the host was not asked, so the time of the last visit stays.
    """

    fate: Fate
    status: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # columns of Page that the answer changes
    links: Sequence[Found] = ()
    transferred: bool = False
    asked: bool = True


def page_key(source: str, identity: str) -> str:
    """Id of a page row: one per source and identity."""
    return digest("page", source, identity)


def holder_name() -> str:
    """This process, recognisable after its death: host, pid, start."""
    return f"{socket.gethostname()[:30]}/{os.getpid()}/{started(os.getpid())[0]}"


class Frontier:
    """Open pages of one source. One instance per crawl; not for several threads."""

    def __init__(
        self,
        catalogue: Catalogue,
        source: Source,
        run_id: str,
        *,
        lease_s: float = 300.0,
        licences: dict[str, str] | None = None,
        restricted: bool = False,
        since: datetime | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._source = source
        self.round_id = run_id
        self._run_id = run_id
        self._lease = timedelta(seconds=lease_s)
        self._licences = licences or {}
        self._restricted = restricted
        self._since = since
        self._holder = holder_name()
        self._heap: list[tuple[int, str]] = []
        self._probes: list[str] = []
        self._probing = False
        self._claimed: dict[str, int] = {}
        self._asked = 0
        self._asked_for: Counter[str] = Counter()
        self._over_budget = False
        self._blind = False  # a listing did not get through: "not linked" cannot be told
        self._spent = ""
        self._unrecorded = 0
        self.bytes_received = 0
        """Bytes that the round has received, as sent, in all its parts."""
        self.resumed = False
        self.began = now()
        self.done = 0
        self.known = 0

    # --- the round -----------------------------------------------------------

    def open(self, seeds: Sequence[Found]) -> None:
        """Begin a round with its seeds, or resume the one that was interrupted."""
        with self._catalogue.writing() as session:
            current = session.get(CrawlRound, self._source.name)
            self.resumed = current is not None and current.began_at + _ROUND_MAX_AGE > now()
            rows = list(session.scalars(select(Page).where(Page.source == self._source.name)))
            if current is not None and self.resumed:
                self.round_id, self.began = current.round_id, current.began_at
                self.bytes_received = current.bytes_received
                self._take_back(rows)
            else:
                for row in rows:
                    row.lease_holder, row.lease_until, row.sitemap_lastmod = "", None, None
                session.merge(
                    CrawlRound(
                        source=self._source.name,
                        round_id=self.round_id,
                        began_at=self.began,
                        bytes_received=0,
                    )
                )
            self._discover(session, seeds)
            session.flush()
        self._load()

    def add(self, links: Sequence[Found]) -> None:
        """Put URLs on the list that were learnt outside a page."""
        with self._catalogue.writing() as session:
            self._discover(session, links)

    def finish(self) -> Counter[str]:
        """End the round; returns its pages by "state: reason"."""
        with self._catalogue.writing() as session:
            current = session.get(CrawlRound, self._source.name)
            if current is not None and current.round_id == self.round_id:
                session.delete(current)
        return self.outcomes()

    def outcomes(self) -> Counter[str]:
        """Content, listing and sitemap pages of the round by "state: reason (role)"."""
        counts: Counter[str] = Counter()
        with self._catalogue.reading() as session:
            query = select(Page.state, Page.reason, Page.role).where(
                Page.source == self._source.name, Page.run_id == self.round_id, Page.lease_holder == ""
            )
            for state, reason, role in session.execute(query):
                counts[":".join((state, reason, "" if role == "content" else role)).rstrip(":")] += 1
        return counts

    def _take_back(self, rows: Iterable[Page]) -> None:
        """Claims of dead processes and transient failures of the interrupted round are open again."""
        for row in rows:
            if row.lease_holder not in ("", DUE, PROBE) and not self._alive(row):
                row.lease_holder, row.lease_until = DUE, None
            elif row.run_id == self.round_id and _may_pass(row):
                row.lease_holder, row.run_id = DUE, ""

    def _alive(self, row: Page) -> bool:
        if row.lease_until is None or row.lease_until < now():
            return False
        place, _, start = row.lease_holder.rpartition("/")
        host, _, pid = place.rpartition("/")
        if host != socket.gethostname()[:30]:
            return True  # another machine: only the lease's end can tell
        return pid.isdigit() and start in started(int(pid))

    def _load(self) -> None:
        self._heap.clear()
        with self._catalogue.reading() as session:
            columns = (
                Page.page_id,
                Page.depth,
                Page.lease_holder,
                Page.run_id,
                Page.state,
                Page.reason,
                Page.role,
                Page.visited_at,
            )
            query = select(*columns, Page.chemicals).where(Page.source == self._source.name)
            for page_id, depth, lease, run_id, state, reason, role, visited, chemicals in session.execute(
                query
            ):
                if lease == DUE:
                    self._heap.append((depth, page_id))
                elif lease == PROBE:
                    self._probes.append(page_id)
                elif run_id == self.round_id and lease == "":
                    self.done += 1
                    self._over_budget = self._over_budget or reason == "budget"
                    self._blind = self._blind or (role != "content" and (state != "kept" or reason == _STALE))
                    if reason != "budget":
                        # a page that a trusted sitemap spared was not asked for, before the break as behind it
                        self._count(role, chemicals, asked=visited is not None and visited >= self.began)
        heapq.heapify(self._heap)
        self._probes.sort(reverse=True)
        self.known = self.done + len(self._heap) + len(self._probes)

    # --- taking and storing -----------------------------------------------------

    def claim(self) -> Task | None:
        """The next page, claimed for this process; None where none may begin now.

        A level begins only when the one above it is done.
        """
        while self._heap:
            depth, page_id = self._heap[0]
            if any(other < depth for other in self._claimed.values()):
                return None
            if self._spent or self._asked >= self._source.max_pages:
                self._cut()
                return None
            heapq.heappop(self._heap)
            task = self._claim(page_id)
            if task is not None:
                return task
        while self._probing and self._probes:
            task = self._claim(self._probes.pop(), probe=True)
            if task is not None:
                return task
        return None

    def spend(self, detail: str) -> None:
        """The run's budget is used up: what is not asked for yet is left out with that detail."""
        self._spent = self._spent or detail

    def received(self, size: int) -> None:
        """Count bytes that came, of whatever answer; they are recorded with the next result at the latest."""
        self.bytes_received += size
        self._unrecorded += size
        if self._unrecorded >= _RECORD_BYTES:
            with self._recording():
                pass

    @contextmanager
    def _recording(self) -> Iterator[Session]:
        """A write transaction that takes the bytes that came since the last one into the round's row."""
        with self._catalogue.writing() as session:
            size = self._unrecorded
            if size:
                mine = (CrawlRound.source == self._source.name) & (CrawlRound.round_id == self.round_id)
                total = CrawlRound.bytes_received + size
                session.execute(update(CrawlRound).where(mine).values(bytes_received=total))
            yield session
        self._unrecorded -= size

    def pending(self) -> bool:
        """Whether something waits to be claimed."""
        return bool(self._heap or (self._probing and self._probes))

    def begin_probes(self) -> bool:
        """Turn to pages that nothing leads to any more; False where there are none (left).

        Not in a restricted crawl: it sees only a part of the links.
        """
        if self._probing or self._restricted:
            return False
        self._probing = True
        with self._catalogue.writing() as session:
            query = select(Page).where(
                Page.source == self._source.name,
                Page.run_id != self.round_id,
                Page.lease_holder == "",
                Page.state.in_(("kept", "failed", "queued", "claimed")),
            )
            for row in session.scalars(query):
                row.lease_holder = PROBE
                self._probes.append(row.page_id)
        self._probes.sort(reverse=True)
        self.known += len(self._probes)
        return bool(self._probes)

    def release(self) -> None:
        """Give back what is claimed and not stored (a clean stop)."""
        with self._recording() as session:
            for page_id in sorted(self._claimed):
                row = session.get(Page, page_id)
                if row is not None and row.lease_holder == self._holder:
                    row.lease_holder, row.lease_until = DUE, None
        self._claimed.clear()

    def store(self, task: Task, visit: Visit) -> None:
        """Record the result and what it leads to, in one transaction."""
        with self._recording() as session:
            row = session.get(Page, task.page_id)
            assert row is not None
            self._apply(session, row, task, visit)
            self._discover(session, visit.links)
        self._claimed.pop(task.page_id, None)
        self.done += 1

    def _claim(self, page_id: str, *, probe: bool = False) -> Task | None:
        with self._catalogue.writing() as session:
            row = session.get(Page, page_id)
            if row is None or row.lease_holder != (PROBE if probe else DUE):
                return None
            if not self._within_budget(row):
                self._over_budget = True
                self._settle(row, Fate("excluded", "budget", "over the pages of its chemicals or of the run"))
                self.done += 1
                return None
            row.lease_holder, row.lease_until = self._holder, now() + self._lease
            if row.state == "queued":
                row.state = "claimed"
            redirects = self._redirects(session, row)
            unmoved = self._unmoved(row) and not probe
            self._count(row.role, row.chemicals, asked=not unmoved)
            self._claimed[page_id] = row.depth
            return _task(row, probe, redirects, unmoved)

    def _cut(self) -> None:
        """The run's budget is used up: what still waits is recorded as such."""
        with self._catalogue.writing() as session:
            for row in self._rows(session, [page_id for _, page_id in self._heap]).values():
                if row.lease_holder == DUE:
                    detail = self._spent or f"over {self._source.max_pages} pages"
                    self._settle(row, Fate("excluded", "budget", detail))
        self.done += len(self._heap)
        self._heap.clear()
        self._over_budget = True

    def _within_budget(self, row: Page) -> bool:
        if self._spent or self._asked >= self._source.max_pages:
            return False
        if row.role != "content" or not row.chemicals:
            return True
        limit = self._source.max_pages_per_chemical
        return any(self._asked_for[key] < limit for key in row.chemicals)

    def _count(self, role: str, chemicals: Iterable[str], *, asked: bool = True) -> None:
        self._asked += asked
        if role == "content":
            self._asked_for.update(chemicals)

    def _redirects(self, session: Session, row: Page) -> int:
        """Length of the chain of redirects that led to the page in this round."""
        count, current, seen = 0, row, {row.url}
        while current.parent_url and count <= _LONGEST_CHAIN:
            parent = session.get(Page, self._key(current.parent_url))
            if parent is None or parent.reason != "redirect" or parent.final_url != current.url:
                break
            if parent.url in seen:
                break
            seen.add(parent.url)
            count, current = count + 1, parent
        return count

    # --- rows ---------------------------------------------------------------------

    def _key(self, url: str) -> str:
        return page_key(self._source.name, self._source.page_identity(url))

    def _rows(self, session: Session, page_ids: Sequence[str]) -> dict[str, Page]:
        found: dict[str, Page] = {}
        for start in range(0, len(page_ids), _SLICE):
            query = select(Page).where(Page.page_id.in_(list(page_ids[start : start + _SLICE])))
            found.update((row.page_id, row) for row in session.scalars(query))
        return found

    def _discover(self, session: Session, links: Sequence[Found]) -> None:
        ordered = sorted(set(links), key=lambda one: (one.depth, one.url, one.parent, one.role))
        identities = [self._source.page_identity(link.url) for link in ordered]
        rows = self._rows(session, [page_key(self._source.name, identity) for identity in identities])
        for link, identity in zip(ordered, identities, strict=True):
            key = page_key(self._source.name, identity)
            row = rows.get(key)
            if row is None:
                row = rows[key] = self._new(link, identity)
                session.add(row)
            elif row.run_id == self.round_id or row.lease_holder not in ("", PROBE):
                self._join(row, link)
                self._note_lastmod(row, link)
                continue
            else:
                self._note_lastmod(row, link)
                known = row.chemicals if self._restricted else ()  # by links that this crawl does not see
                row.chemicals = sorted({*known, *link.chemicals})
                row.depth, row.parent_url, row.role = link.depth, link.parent, link.role
                row.lease_holder = DUE
            heapq.heappush(self._heap, (row.depth, row.page_id))
            self.known += 1

    def _note_lastmod(self, row: Page, link: Found) -> None:
        """Keep a sitemap's lastmod, where it will be asked about: the latest, if several name the page.

        It is in the page's row, so that a resumed round knows it too.
        """
        if (self._source.trust_lastmod or self._since) and link.lastmod:
            row.sitemap_lastmod = max(row.sitemap_lastmod or link.lastmod, link.lastmod)

    def _unmoved(self, row: Page) -> bool:
        """Whether a sitemap says that a page which we hold has not changed since our last visit.

        Its word counts where the source's is trusted, and where only changes since a moment are
        asked for and it names an earlier one.
        """
        seen = row.state == "kept" and row.reason == "" and row.payload_sha256 and row.role == "content"
        if not (seen and row.visited_at and row.sitemap_lastmod):
            return False
        old = self._since is not None and row.sitemap_lastmod < self._since
        return (self._source.trust_lastmod or old) and row.sitemap_lastmod < row.visited_at

    def _join(self, row: Page, link: Found) -> None:
        """Another way to a page of this round: names add up, the shortest way counts."""
        row.chemicals = sorted({*row.chemicals, *link.chemicals})
        row.depth, row.parent_url = min((row.depth, row.parent_url), (link.depth, link.parent))

    def _new(self, link: Found, identity: str) -> Page:
        return Page(
            page_id=page_key(self._source.name, identity),
            document_id=document_id(identity),
            source=self._source.name,
            url=link.url,
            identity=identity,
            state="queued",
            depth=link.depth,
            parent_url=link.parent,
            chemicals=sorted(link.chemicals),
            role=link.role,
            licence=self._licences.get(identity, self._source.licence),
            first_seen=now(),
            lease_holder=DUE,
        )

    def _apply(self, session: Session, row: Page, task: Task, visit: Visit) -> None:
        if visit.asked:
            row.visited_at = now()
            row.status = visit.status
        row.licence = self._licences.get(row.identity, self._source.licence)
        for name, value in visit.facts.items():
            setattr(row, name, value)
        if visit.transferred:
            row.fetched_at = row.visited_at
        fate = visit.fate
        if fate.reason == "redirect" and self._leads_back(session, row):
            fate = Fate("failed", "redirect_loop", f"to {row.final_url}")
        sees_all = self._source.complete and not self._over_budget and not self._blind
        if task.probe and fate.state == "kept" and sees_all:
            fate = Fate("gone", "unlinked", "answered, but nothing leads to it any more")
        if row.role != "content" and fate.state != "kept" and fate.reason != "redirect":
            self._blind = True
        self._settle(row, fate)

    def _leads_back(self, session: Session, row: Page) -> bool:
        """Whether the redirects of this round lead from the page to itself."""
        target = row.final_url
        for _ in range(_LONGEST_CHAIN):
            if self._key(target) == row.page_id:
                return True
            other = session.get(Page, self._key(target))
            if (
                other is None
                or other.reason not in ("redirect", "redirect_loop")
                or other.run_id != self.round_id
            ):
                return False
            target = other.final_url
        return True

    def _settle(self, row: Page, fate: Fate) -> None:
        """Give the row its state; what was kept before survives what may pass (an error, a budget)."""
        had = row.state == "kept" and bool(row.payload_sha256)
        detail = f"transient: {fate.detail}" if fate.transient else fate.detail
        if fate.state in ("gone", "kept"):
            row.missed = row.missed + 1 if fate.state == "gone" else 0
        if fate.state == "kept":
            row.state, row.reason, row.detail = "kept", fate.reason, detail
        elif had and fate.state == "gone" and row.missed < self._source.tombstone_after:
            row.state, row.reason, row.detail = "kept", _STALE, f"missed {row.missed} times: {fate.reason}"
        elif had and (fate.transient or fate.reason == "budget"):
            row.state, row.reason, row.detail = "kept", _STALE, f"{fate.reason}: {fate.detail}"
        else:
            row.state, row.reason, row.detail = fate.state, fate.reason, detail
        row.lease_holder, row.lease_until, row.run_id = "", None, self.round_id
        row.sitemap_lastmod = None


def _may_pass(row: Page) -> bool:
    """Whether the last visit failed for a reason that the next one need not meet."""
    if row.state == "failed":
        return row.detail.startswith("transient")
    return row.reason == _STALE and not row.detail.startswith("missed")


def _task(row: Page, probe: bool, redirects: int, unmoved: bool) -> Task:
    payload = Location(row.warc_file, row.warc_offset) if row.warc_file and row.payload_sha256 else None
    return Task(
        page_id=row.page_id,
        url=row.url,
        identity=row.identity,
        depth=row.depth,
        role=row.role,
        chemicals=tuple(row.chemicals),
        etag=row.etag,
        last_modified=row.last_modified,
        payload=payload,
        payload_sha256=row.payload_sha256,
        probe=probe,
        redirects=redirects,
        unmoved=unmoved,
    )

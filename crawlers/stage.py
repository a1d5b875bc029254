"""The stage ``acquire``: name repository, query links, crawls (or a replayed archive)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import structlog
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, ChemicalName, QueryLink
from corpus.chemical_claims import unclaimed
from corpus.chemicals import LoadReport, import_list, load_chemicals, normalise_name, read_user_list
from corpus.errors import SettingsError
from corpus.ids import digest, fingerprint
from corpus.settings import ChemicalSettings
from corpus.stages import BaseStep, Item, Outcome, Stage, StageContext, Step
from crawlers.job import Job, split_password
from crawlers.replay import import_archive
from crawlers.runner import check_result, run_crawl
from crawlers.sample_site import SampleSite, read_manifest
from crawlers.settings import CrawlSettings
from crawlers.sources import Link, Named, Source, enabled_sources, query_links, sample_folder

log = structlog.get_logger("hchem.crawl")
_REPOSITORY = "repository"


@dataclass
class ChemicalsStep(BaseStep):
    """Brings the name repository and the user's lists into the catalogue."""

    name: str = "acquire.chemicals"
    batch_size: int | None = None
    settings: CrawlSettings = field(default_factory=CrawlSettings)
    chemicals: ChemicalSettings = field(default_factory=ChemicalSettings)

    def plan(self, ctx: StageContext) -> list[Item]:
        """The built-in repository and one item per list, keyed on contents."""
        built_in = fingerprint(
            self.name,
            self.version,
            [version("chemicals"), version("hchemsafety")],
            self.chemicals.model_dump(),
        )
        with (
            ctx.catalogue.reading() as session
        ):  # lists of an earlier version are read again for what they say
            again = ["claims"] if unclaimed(session) else []
        lists = [
            Item(_list_id(path), fingerprint(self.name, self.version, [_sha256(path), *again]))
            for path in self._lists(ctx)
        ]
        return sorted([Item(_REPOSITORY, built_in), *lists], key=lambda item: item.id)

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Load the repository or a list; bad rows are counted, the rest loads."""
        if item.id == _REPOSITORY:
            report = load_chemicals(ctx.catalogue, self.chemicals)
        else:
            paths = {_list_id(path): path for path in self._lists(ctx)}
            report = import_list(ctx.catalogue, paths[item.id])
        return Outcome(
            detail="\n".join([*report.errors, *report.reviews])[:4000], counts=_load_counts(report)
        )

    def _lists(self, ctx: StageContext) -> list[Path]:
        lists = list(self.settings.chemical_lists)
        if any(source.chemicals == "sample" for source in enabled_sources(self.settings, ctx.sources)):
            lists.append(_sample_list(self.settings))
        missing = [str(path) for path in lists if not path.is_file()]
        if missing:
            raise SettingsError(f"list of chemicals not found: {', '.join(missing)} (crawl.chemical_lists)")
        return lists


@dataclass
class LinksStep(BaseStep):
    """Records the query links of every enabled source: chemicals x names x templates."""

    name: str = "acquire.links"
    batch_size: int | None = None
    settings: CrawlSettings = field(default_factory=CrawlSettings)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item per source, keyed on the links themselves."""
        return [
            Item(source.name, fingerprint(self.name, self.version, [link.link_id for link in links]))
            for source, links in self._links(ctx)
        ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Replace the source's links."""
        links = {source.name: links for source, links in self._links(ctx)}[item.id]

        def write(session: Session) -> None:
            store_links(session, item.id, links)

        return Outcome(write=write, counts={"links": len(links)})

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """Links of sources that are not enabled any more."""
        session.execute(delete(QueryLink).where(QueryLink.source.in_(list(item_ids))))

    def _links(self, ctx: StageContext) -> list[tuple[Source, list[Link]]]:
        sources = enabled_sources(self.settings, ctx.sources)
        return [
            (source, query_links(source, named_chemicals(ctx.catalogue, source, self.settings)))
            for source in sources
            if source.query_links
        ]


@dataclass
class CrawlStep(BaseStep):
    """Crawls each enabled source in a process of its own; planned in every run, since a refresh revisits."""

    name: str = "acquire.crawl"
    batch_size: int | None = 1
    settings: CrawlSettings = field(default_factory=CrawlSettings)
    data_dir: Path = Path("data")
    catalogue_url: str = ""

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item per source."""
        return [
            Item(source.name, fingerprint(self.name, self.version, [source.name, ctx.run_id]))
            for source in enabled_sources(self.settings, ctx.sources)
        ]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Crawl one source; the pages are recorded by the crawl itself."""
        source = next(one for one in enabled_sources(self.settings, ctx.sources) if one.name == item.id)
        if source.tls_exceptions:
            log.warning(
                "certificate errors are tolerated", source=source.name, hosts=", ".join(source.tls_exceptions)
            )
        with _serving(source, self.settings) as dial:
            url, password = split_password(self.catalogue_url)
            stats = run_crawl(
                self._job(ctx, source, url, dial),
                password,
                progress=lambda done, known: ctx.progress(self.name, done, known),
                cancelled=ctx.cancelled,
            )
        for host, until in sorted(stats.paused.items()):
            log.warning(
                "a host asked to be left alone (Retry-After): its pages wait for a run after that",
                source=source.name,
                host=host,
                until=until,
            )
        check_result(source.name, stats)
        counts = {**stats.outcomes, "unchanged": stats.unchanged, "transferred": stats.fetched}
        notes = ["resumed"] if stats.resumed else []
        notes += [f"{host} is not to be asked before {until}" for host, until in sorted(stats.paused.items())]
        notes += (
            [f"certificates not checked: {', '.join(source.tls_exceptions)}"] if source.tls_exceptions else []
        )
        if stats.links_too_slow:
            counts["links_too_slow"] = stats.links_too_slow
            log.warning(
                "a pattern took too long on links, which are not followed",
                source=source.name,
                links=stats.links_too_slow,
            )
        return Outcome(counts=counts, detail="; ".join(notes))

    def _job(self, ctx: StageContext, source: Source, url: str, dial: dict[str, str]) -> Job:
        restricted = bool(ctx.chemicals)
        return Job(
            source=source,
            settings=self.settings,
            run_id=ctx.run_id,
            catalogue_url=url,
            data_dir=self.data_dir,
            stats_path=Path("stats.json"),
            parent_pid=os.getpid(),
            seeds=self._seeds(ctx, source),
            dial=dial,
            licences=_licences(source, self.settings),
            restricted=restricted,
            since=ctx.since,
        )

    def _seeds(self, ctx: StageContext, source: Source) -> list[tuple[str, str, list[str]]]:
        chosen = named_chemicals(ctx.catalogue, source, self.settings, only=ctx.chemicals)
        by_url: dict[str, set[str]] = {}
        for link in query_links(source, chosen):
            by_url.setdefault(link.url, set()).add(link.chemical)
        seeds = [(url, str(source.query_role), sorted(keys)) for url, keys in sorted(by_url.items())]
        if not ctx.chemicals:
            seeds += [(url, str(source.role(url)), []) for url in map(source.absolute, source.start)]
            seeds += [(source.absolute(address), "sitemap", []) for address in source.sitemaps]
        return seeds


@dataclass
class ArchiveStep(BaseStep):
    """Takes pages from a WARC file instead of the network."""

    name: str = "acquire.from_archive"
    batch_size: int | None = None
    settings: CrawlSettings = field(default_factory=CrawlSettings)
    data_dir: Path = Path("data")
    archive: Path = Path()

    def plan(self, ctx: StageContext) -> list[Item]:
        """The file, keyed on its content."""
        if not self.archive.is_file():
            raise SettingsError(f"archive {self.archive} not found (--from-archive)")
        digest = _sha256(self.archive)
        return [Item(digest[:32], fingerprint(self.name, self.version, [digest]))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Import the file's pages."""
        report = import_archive(
            ctx.catalogue, self.data_dir, self.archive, settings=self.settings, run_id=ctx.run_id
        )
        return Outcome(counts=report.as_dict())


def acquire_stage(
    settings: CrawlSettings,
    data_dir: Path,
    catalogue_url: str,
    *,
    chemicals: ChemicalSettings | None = None,
    from_archive: Path | None = None,
) -> Stage:
    """The stage that brings pages in: from the network, or from ``from_archive``.

    ``catalogue_url`` may hold a password; the crawl's process gets it by the environment.
    """
    if from_archive is not None:
        return Stage("acquire", [ArchiveStep(settings=settings, data_dir=data_dir, archive=from_archive)])
    steps: list[Step] = [
        ChemicalsStep(settings=settings, chemicals=chemicals or ChemicalSettings()),
        LinksStep(settings=settings),
        CrawlStep(settings=settings, data_dir=data_dir, catalogue_url=catalogue_url),
    ]
    return Stage("acquire", steps)


def named_chemicals(
    catalogue: Catalogue, source: Source, settings: CrawlSettings, *, only: Sequence[str] = ()
) -> list[Named]:
    """The chemicals a source is asked about, by key. ``only``: keys, CAS numbers or names.

    Raises SettingsError where one of ``only`` is not known.
    """
    if source.chemicals == "sample":
        records, _ = read_user_list(_sample_list(settings))
        known = [
            Named(record.key, record.cas, tuple((name.text, name.language) for name in record.names))
            for record in records
        ]
    else:
        known = _all_chemicals(catalogue)
    return _chosen(known, only) if only else known


def _chosen(known: list[Named], only: Sequence[str]) -> list[Named]:
    by_word: dict[str, list[Named]] = {}
    for named in known:
        for word in {named.key, named.cas or "", *(name for name, _ in named.names)}:
            by_word.setdefault(normalise_name(word), []).append(named)
    missing = [word for word in only if normalise_name(word) not in by_word]
    if missing:
        raise SettingsError(f"unknown chemical {', '.join(missing)}; see `hchem chemicals`")
    return [named for word in only for named in by_word[normalise_name(word)]]


def _all_chemicals(catalogue: Catalogue) -> list[Named]:
    names: dict[str, list[tuple[str, str]]] = {}
    with catalogue.reading() as session:
        ordered = select(ChemicalName).order_by(ChemicalName.key, ChemicalName.kind, ChemicalName.name_id)
        for row in session.scalars(ordered):
            names.setdefault(row.key, []).append((row.name, row.language))
        chemicals = session.execute(select(Chemical.key, Chemical.cas).order_by(Chemical.key)).all()
    return [Named(key, cas, tuple(names.get(key, ()))) for key, cas in chemicals]


def store_links(session: Session, source: str, links: Sequence[Link]) -> None:
    """Make the source's recorded query links exactly these."""
    present = set(session.scalars(select(QueryLink.link_id).where(QueryLink.source == source)))
    wanted = {link.link_id: link for link in links}
    for link_id in sorted(present - set(wanted)):
        session.execute(delete(QueryLink).where(QueryLink.link_id == link_id))
    for link_id in sorted(set(wanted) - present):
        link = wanted[link_id]
        session.add(
            QueryLink(
                link_id=link_id, url=link.url, source=source, chemical=link.chemical, template=link.template
            )
        )


@contextmanager
def _serving(source: Source, settings: CrawlSettings) -> Iterator[dict[str, str]]:
    """Serve the source while it is crawled, where the platform does so; gives the address to dial."""
    if not source.served:
        yield {}
        return
    with SampleSite(sample_folder(settings), source.base) as site:
        yield {source.base.rstrip("/"): site.base}


def _licences(source: Source, settings: CrawlSettings) -> dict[str, str]:
    if not source.served:
        return {}
    pages = read_manifest(sample_folder(settings))
    return {source.page_identity(source.absolute(page.path)): page.licence for page in pages}


def _list_id(path: Path) -> str:
    """Two lists of one file name are two lists."""
    return f"list:{path.name[:48]}:{digest(str(path.resolve()))[:8]}"


def _sample_list(settings: CrawlSettings) -> Path:
    return sample_folder(settings) / "chemicals.csv"


def _sha256(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _load_counts(report: LoadReport) -> dict[str, int]:
    return {
        "chemicals": report.total,
        "added": report.added,
        "updated": report.updated,
        "bad_rows": len(report.errors),
    }


__all__ = ["acquire_stage", "import_archive", "named_chemicals", "store_links"]

"""Restrictions of a run: what is taken, what is left, and that nothing falls between two parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from corpus import restriction
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, ChemicalName, Document, Page
from corpus.chemicals import normalise_name
from corpus.errors import SettingsError
from corpus.stages import StageContext
from flows import partitions
from flows.partition_settings import Unit

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SOURCES = ("cameo", "危化品", "sample")
moments = st.none() | st.datetimes(
    datetime(1999, 12, 30), datetime(2027, 1, 3), timezones=st.just(UTC)
)  # years, ISO weeks and months end on different days


def page(n: int, source: str, fetched: datetime | None, chemicals: list[str] | None = None) -> Page:
    return Page(
        page_id=f"p{n}", document_id=f"d{n}", source=source, url=f"https://x.example/{n}", identity=str(n), state="kept",
        role="content", payload_sha256=str(n), fetched_at=fetched, chemicals=chemicals or [],
    )  # fmt: skip


def document(n: int, source: str, page_id: str | None = None) -> Document:
    return Document(
        document_id=f"d{n}", page_id=f"p{n}" if page_id is None else page_id, source=source, url="", identity=str(n),
        state="kept",
    )  # fmt: skip


def fill(catalogue: Catalogue, rows: list[Page | Document]) -> None:
    with catalogue.writing() as db:
        for table in (Page, Document):
            db.execute(delete(table))
        db.add_all(rows)


def taken(catalogue: Catalogue, **what: object) -> tuple[set[str], set[str]]:
    ctx = StageContext(catalogue, "r", **what)  # type: ignore[arg-type]
    with catalogue.reading() as db:
        pages = set(db.scalars(select(Page.page_id).where(*restriction.pages(db, ctx))))
        documents = set(db.scalars(restriction.documents(db, ctx, select(Document.document_id))))
    return pages, documents


@pytest.mark.parametrize("unit", ["month", "week", "day"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=st.lists(st.tuples(st.sampled_from(SOURCES), moments), min_size=1, max_size=12))
def test_partitions_tile_the_pages_and_the_documents(
    unit: Unit, pages: list[tuple[str, datetime | None]], catalogue: Catalogue
) -> None:
    """Each page and each document is in exactly one partition, and that one the queries take it with."""
    rows: list[Page | Document] = [page(n, *one) for n, one in enumerate(pages)]
    rows += [document(n, source) for n, (source, _) in enumerate(pages)]
    rows.append(document(900, "reference", page_id=""))
    fill(catalogue, rows)
    with catalogue.reading() as db:
        places = partitions.pages_by_partition(db, unit)
        expected = partitions.Places(db, unit)
    assert set(places) == {f"p{n}" for n in range(len(pages))}
    seen: list[str] = []
    for place in {*places.values(), expected.of("curate.score", "d900")}:
        ctx = place.narrow(StageContext(catalogue, "r"))
        found, documents = taken(catalogue, sources=ctx.sources, since=ctx.since, until=ctx.until)
        assert found == {key for key, value in places.items() if value == place}
        assert all(expected.of("curate.score", key) == place for key in documents)
        seen += [*found, *documents]
    assert sorted(seen) == sorted([*places, *(f"d{n}" for n in range(len(pages))), "d900"])


@given(moment=st.datetimes(datetime(1971, 1, 1), datetime(2999, 12, 31), timezones=st.just(UTC)))
def test_a_moment_is_in_the_span_of_its_period(moment: datetime) -> None:
    for unit in ("month", "week", "day"):
        begin, end = partitions.span_of(partitions.period_of(moment, unit))  # type: ignore[arg-type]
        assert begin <= moment < end
        assert partitions.period_of(begin, unit) == partitions.period_of(
            end - timedelta(microseconds=1), unit
        )  # type: ignore[arg-type]
        assert partitions.period_of(end, unit) != partitions.period_of(moment, unit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        "2026-13",
        "2026-00",
        "2026-02-30",
        "2026-W54",
        "26-01",
        "2026-1",
        "",
        "January",
        "二〇二六年一月",
        "2026-01-",
    ],
)
def test_a_period_that_does_not_exist_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match="is no period"):
        partitions.span_of(given)


def test_a_window_holds_both_its_ends_and_is_not_turned_round() -> None:
    begin, end = partitions.window("2026-01", "2026-06")
    assert (begin, end) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
    assert partitions.window("2026", "2026")[1] == datetime(2027, 1, 1, tzinfo=UTC)
    with pytest.raises(SettingsError, match="--from 2026-06 comes after --to 2026-01"):
        partitions.window("2026-06", "2026-01")


def test_since_and_until_are_about_the_transfer(catalogue: Catalogue) -> None:
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 3)]
    rows: list[Page | Document] = [page(n, "a", moment) for n, moment in enumerate(days)]
    rows += [document(n, "a") for n in range(3)] + [document(9, "reference", page_id="")]
    fill(catalogue, rows)
    assert taken(catalogue, since=days[1]) == ({"p1", "p2"}, {"d1", "d2"})
    assert taken(catalogue, until=days[1]) == ({"p0"}, {"d0", "d9"})  # records without a page are of old
    assert taken(catalogue, since=days[1], until=days[2]) == ({"p1"}, {"d1"})
    assert taken(catalogue) == ({"p0", "p1", "p2"}, {"d0", "d1", "d2", "d9"})


@pytest.mark.parametrize("word", ["67-64-1", "acetone", "丙酮", "Acetone", "２-丙酮"])
def test_names_of_both_languages_and_numbers_lead_to_the_same_pages(catalogue: Catalogue, word: str) -> None:
    with catalogue.writing() as db:
        db.add(Chemical(key="67-64-1", cas="67-64-1"))
        for n, (name, language) in enumerate([("acetone", "en"), ("丙酮", "zh"), ("2-丙酮", "zh")]):
            db.add(
                ChemicalName(
                    name_id=f"n{n}", key="67-64-1", name=name, normalised=normalise_name(name), language=language, kind="name", source="test"
                )
            )  # fmt: skip
    rows: list[Page | Document] = [page(0, "a", NOW, ["67-64-1", "64-17-5"]), page(1, "a", NOW, ["64-17-5"]), page(2, "a", NOW)]  # fmt: skip
    fill(catalogue, rows + [document(n, "a") for n in range(3)] + [document(9, "reference", page_id="")])
    assert taken(catalogue, chemicals=(word,)) == ({"p0"}, {"d0"})
    assert taken(catalogue, chemicals=("7-64-1",)) == (set(), set())  # no part of another's number
    with catalogue.reading() as db:
        assert restriction.unknown_chemicals(db, [word, "无此物质", "nosuch"]) == ["无此物质", "nosuch"]


@pytest.mark.parametrize(
    "given, moment",
    [
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        (" 2026-11-01T08:00+08:00 ", datetime(2026, 11, 1, tzinfo=UTC)),
        ("7d", NOW - timedelta(days=7)),
        ("12h", NOW - timedelta(hours=12)),
        ("2w", NOW - timedelta(weeks=2)),
    ],
)
def test_since_is_a_date_or_how_long_ago(given: str, moment: datetime) -> None:
    assert restriction.moment_of(given, NOW) == moment


@pytest.mark.parametrize(
    "given", ["2026-13-01", "7", "7 days", "-7d", "99999w", "昨天", "2026-12-01", "1969-12-31", ""]
)
def test_what_is_no_moment_of_the_past_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match="--since"):
        restriction.moment_of(given, NOW)

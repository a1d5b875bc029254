"""The catalogue on both databases: schema, transactions, leases, stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.stores import CatalogueAnswers, CatalogueVectors
from corpus.catalogue.tables import Base, Lease, Run, now
from corpus.errors import CatalogueBusyError, SettingsError
from models.protocols import StoredAnswer


def test_migrations_give_the_tables_that_the_code_declares(catalogue: Catalogue) -> None:
    with catalogue.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, Base.metadata) == []


def test_an_error_rolls_back_everything(catalogue: Catalogue) -> None:
    def half_done() -> None:
        with catalogue.writing() as db:
            db.add(Run(run_id="a", flow="refresh"))
            db.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half_done()
    with catalogue.reading() as db:
        assert db.get(Run, "a") is None


def test_times_come_back_in_utc(catalogue: Catalogue) -> None:
    moment = now()
    with catalogue.writing() as db:
        db.add(Run(run_id="a", flow="refresh", started_at=moment))
    with catalogue.reading() as db:
        row = db.get(Run, "a")
        assert row is not None
        assert row.started_at == moment
        assert row.started_at.tzinfo is not None


def test_opening_twice_migrates_once(catalogue_url: str) -> None:
    Catalogue.open(catalogue_url).close()
    Catalogue.open(catalogue_url).close()


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "sqlite:////nonexistent-folder/x.db",
        "postgresql://nobody:secret-word@127.0.0.1:1/none",
        "mysql://x/y",
    ],
)
def test_a_wrong_url_is_one_clear_error_without_the_password(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Catalogue.open(url)
    assert "secret-word" not in str(caught.value)


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(SettingsError, match="cannot be opened"):
        Catalogue.open(f"sqlite:///{path}")


def test_a_lease_is_exclusive_and_comes_back(catalogue: Catalogue) -> None:
    with leases.held(catalogue, "run"):
        with pytest.raises(CatalogueBusyError, match="another run"):
            leases.take(catalogue, "run", leases.holder_name(), 60)
        leases.take(catalogue, "other", "x|1|1|a", 60)
    leases.take(catalogue, "run", leases.holder_name(), 60)


def test_a_dead_holder_does_not_block(catalogue: Catalogue) -> None:
    mine = leases.holder_name().split("|")
    with catalogue.writing() as db:
        gone = "|".join([mine[0], mine[1], "12345", "old"])  # this pid, but another start time
        db.add(Lease(resource="run", holder=gone, expires_at=now() + timedelta(hours=1)))
    leases.take(catalogue, "run", leases.holder_name(), 60)


def test_an_expired_lease_of_another_host_is_taken_over(catalogue: Catalogue) -> None:
    with catalogue.writing() as db:
        db.add(Lease(resource="run", holder="elsewhere|1|1|a", expires_at=now() - timedelta(seconds=1)))
    leases.take(catalogue, "run", leases.holder_name(), 60)


def test_a_living_lease_of_another_host_blocks(catalogue: Catalogue) -> None:
    with catalogue.writing() as db:
        db.add(Lease(resource="run", holder="elsewhere|1|1|a", expires_at=now() + timedelta(hours=1)))
    with pytest.raises(CatalogueBusyError, match="process 1 on elsewhere"):
        leases.take(catalogue, "run", leases.holder_name(), 60)


def test_answers_are_stored_marked_and_counted(catalogue: Catalogue) -> None:
    store = CatalogueAnswers(catalogue, run_id="r")
    assert store.get("k") is None
    store.put(StoredAnswer("k", "score_document", "1", "m", 0, raw="原文 {", tokens_in=5))
    store.mark("k", "refused", "not JSON")
    found = store.get("k")
    assert found is not None
    assert (found.raw, found.state, found.reason, found.tokens_in) == ("原文 {", "refused", "not JSON", 5)
    store.served("k")


def test_vectors_come_back_bit_for_bit(catalogue: Catalogue) -> None:
    store = CatalogueVectors(catalogue)
    vectors = {f"h{i}": np.random.default_rng(i).random(8, dtype=np.float32) for i in range(1200)}
    store.put("m", vectors)
    store.put("m", {"h0": np.zeros(8, dtype=np.float32)})  # known: left as it is
    found = store.get("m", [*vectors, "unknown"])
    assert set(found) == set(vectors)
    assert all(np.array_equal(found[key], vectors[key]) for key in vectors)
    assert store.get("other", ["h0"]) == {}


def test_threads_that_store_the_same_vectors_leave_the_first_of_each(catalogue: Catalogue) -> None:
    store = CatalogueVectors(catalogue)
    keys = [f"h{i}" for i in range(300)]
    given = [{key: np.full(4, thread, dtype=np.float32) for key in keys} for thread in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda vectors: store.put("m", vectors), given))
    found = store.get("m", keys)
    assert set(found) == set(keys)
    assert (
        len({vector.tobytes() for vector in found.values()}) == 1
    )  # one writer came first, with all of them

"""The graph over Bolt: the embedded server or a Neo4j server, through the official driver.

The catalogue is the state, the graph a projection of it: everything here can
be repeated without changing anything, and rebuilt from nothing.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog

from corpus.errors import SettingsError, TerminalError, TransientError
from kg import queries
from kg.graph_settings import GraphSettings
from kg.projection import GraphRows, Link, Row, storable
from kg.schema import NodeLabel, Relation

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Session

    from kg.embedded import EmbeddedGraph

log = structlog.get_logger("hchem.graph")
_CLEAR_BITE = 5000


@cache
def _one_writer(uri: str, database: str) -> threading.Lock:
    """One writer of relationships at a time: no constraint keeps two threads from merging the same one twice.

    Between processes the stage's lease does the same.
    """
    return threading.Lock()


@dataclass
class Counters:
    """What a write did. ``unchanged``: rows that were there already with the same content."""

    nodes_created: int = 0
    nodes_updated: int = 0
    nodes_unchanged: int = 0
    nodes_deleted: int = 0
    relationships_created: int = 0
    relationships_updated: int = 0
    relationships_unchanged: int = 0
    relationships_deleted: int = 0

    def add(self, other: Counters) -> None:
        """Add another write's counts."""
        for field, value in asdict(other).items():
            setattr(self, field, getattr(self, field) + value)

    @property
    def changed(self) -> int:
        """Everything that was created, updated or deleted."""
        return sum(value for field, value in asdict(self).items() if not field.endswith("unchanged"))

    def as_dict(self) -> dict[str, int]:
        """Plain data for reports."""
        return asdict(self)


class GraphStore:
    """Reads and writes of the graph; thread-safe (the driver is; every call has its own session).

    Raises TransientError where the server is away or busy, TerminalError where
    it refuses a statement, SettingsError for a wrong address or password. Without
    ``password`` no login is sent (a server with authentication switched off).
    """

    def __init__(
        self,
        uri: str,
        user: str,
        password: str | None,
        database: str,
        *,
        batch_size: int = 1000,
        retry_s: float = 30.0,
        server: EmbeddedGraph | None = None,
    ) -> None:
        from neo4j import Auth, GraphDatabase, NotificationMinimumSeverity
        from neo4j.exceptions import ConfigurationError

        self.uri = uri
        self.database = database
        self.batch_size = batch_size
        self.server = server
        self.sent: Counter[str] = Counter()
        """Statements sent to the server, by their text (a retry by the driver is not counted)."""
        self._counting = threading.Lock()
        self._linking = _one_writer(uri, database)
        self._constrained = False
        try:
            self._driver = GraphDatabase.driver(
                uri,
                auth=(user, password) if password is not None else Auth("none", None, None),
                connection_acquisition_timeout=60,
                max_transaction_retry_time=retry_s,
                connection_timeout=15,
                user_agent="hchemsafety",
                notifications_min_severity=NotificationMinimumSeverity.OFF,
            )
        except (ConfigurationError, ValueError) as error:
            raise SettingsError(
                f"graph address {uri!r} (HCHEM_GRAPH__URI) cannot be used: {error}"
            ) from error

    @classmethod
    def connect(cls, settings: GraphSettings, data_dir: Path) -> GraphStore:
        """The server of the settings, or the embedded one, started for this store and stopped by ``close``."""
        if settings.uri is not None:
            password = settings.password.get_secret_value() if settings.password is not None else None
            store = cls(
                settings.uri, settings.user, password, settings.database, batch_size=settings.batch_size
            )
        else:
            from kg.embedded import EmbeddedGraph

            server = EmbeddedGraph(
                data_dir,
                heap=settings.heap,
                start_timeout_s=settings.start_timeout_s,
                full_jit=settings.full_jit,
            )
            server.start()
            store = cls(
                server.uri,
                server.user,
                server.password,
                server.database,
                batch_size=settings.batch_size,
                server=server,
            )
        try:
            store.verify_connection()
        except BaseException:  # an interrupt too must end the connection and its server
            store.close()
            raise
        return store

    def __enter__(self) -> GraphStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and stop an embedded server."""
        self._driver.close()
        if self.server is not None:
            self.server.stop()

    def verify_connection(self) -> None:
        """Prove address, login and database in one round trip, without waiting for a server to come back."""
        with self._session() as session:
            session.run("RETURN 1 AS one").consume()

    @contextmanager
    def _session(self, query: str = "", passing: tuple[type[Exception], ...] = ()) -> Iterator[Session]:
        """A session on the named database, with the driver's errors turned into the platform's."""
        if query:
            with self._counting:
                self.sent[query] += 1
        with (
            _errors(self.uri, self.database, passing),
            self._driver.session(database=self.database) as session,
        ):
            yield session

    # --- reading ---------------------------------------------------------------

    def read(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """All records of a query as dictionaries."""
        given = storable(parameters)

        def work(transaction: ManagedTransaction) -> list[dict[str, Any]]:
            return [dict(record) for record in transaction.run(cast(Any, query), given)]

        with self._session(query) as session:
            return session.execute_read(work)

    def stream(self, query: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Records one by one, for answers that do not fit into memory. Not retried."""
        with self._session(query) as session:
            for record in session.run(cast(Any, query), storable(parameters)):
                yield dict(record)

    def stats(self) -> dict[str, dict[str, int]]:
        """Counts {"nodes": {label: n}, "relationships": {type: n}} of what there is."""
        nodes = {label.value: self.read(queries.count_nodes(label))[0]["n"] for label in NodeLabel}
        links = {kind.value: self.read(queries.count_links(kind))[0]["n"] for kind in Relation}
        return {
            "nodes": {name: n for name, n in nodes.items() if n},
            "relationships": {name: n for name, n in links.items() if n},
        }

    def node_hashes(self, label: NodeLabel) -> Iterator[tuple[str, str | None]]:
        """(key, row hash) of all nodes of a label."""
        for record in self.stream(queries.node_hashes(label)):
            yield from record["rows"]

    def link_hashes(self, kind: Relation) -> Iterator[tuple[str, str, str, str, str | None]]:
        """(start label, start key, end label, end key, row hash) of all relationships of a type."""
        for record in self.stream(queries.link_hashes(kind)):
            for start, end, row_hash in record["rows"]:
                yield record["start_label"], start, record["end_label"], end, row_hash

    def nodes(self, label: NodeLabel) -> Iterator[tuple[str, dict[str, Any]]]:
        """(key, properties) of all nodes of a label, one by one."""
        for record in self.stream(queries.node_rows(label)):
            yield str(record["key"]), record["props"]

    def links(self, kind: Relation) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
        """(start label, start key, end label, end key, properties) of all relationships of a type."""
        for record in self.stream(queries.link_rows(kind)):
            yield (
                record["start_label"],
                str(record["start"]),
                record["end_label"],
                str(record["end"]),
                record["props"],
            )

    def content_hash(self) -> tuple[str, dict[str, dict[str, int]]]:
        """Hash of everything in the graph and its counts, whatever the order of writing.

        The sum of the row hashes modulo 2**256, so that rows can be read as a stream.
        """
        total, nodes, links = 0, {}, {}
        for label in NodeLabel:
            n = 0
            for key, row_hash in self.node_hashes(label):
                total += _number(label.value, key, row_hash)
                n += 1
            nodes[label.value] = n
        for kind in Relation:
            n = 0
            for *ends, row_hash in self.link_hashes(kind):
                total += _number(kind.value, *ends, row_hash)
                n += 1
            links[kind.value] = n
        counts = {
            "nodes": {name: n for name, n in nodes.items() if n},
            "relationships": {name: n for name, n in links.items() if n},
        }
        return f"{total % 2**256:064x}"[:32], counts

    # --- writing ---------------------------------------------------------------

    def ensure_constraints(self) -> None:
        """Uniqueness of ``key`` per label, before anything is merged."""
        if self._constrained:
            return
        for label in NodeLabel:
            self._write(queries.constraint(label))
        self._write(queries.MARKER_CONSTRAINT)
        self._constrained = True

    def write(self, rows: GraphRows, run_id: str = "") -> Counters:
        """Write nodes, then relationships; what is there with the same content is left alone."""
        self.ensure_constraints()
        done = Counters()
        for label in sorted(rows.nodes):
            done.add(self.write_nodes(label, list(rows.nodes[label].values()), run_id))
        for link in sorted(rows.links):
            done.add(self.write_links(link, list(rows.links[link].values()), run_id))
        return done

    def write_nodes(self, label: NodeLabel, rows: Sequence[Row], run_id: str = "") -> Counters:
        """Nodes of one label, in batches ordered by key."""
        done = Counters()
        for batch in self._batches(sorted(rows, key=lambda row: str(row["key"]))):
            created, _, changed = self._write(queries.merge_nodes(label), rows=_stamped(batch, run_id))
            done.nodes_created += created
            done.nodes_updated += changed - created
            done.nodes_unchanged += len(batch) - changed
        return done

    def write_links(self, link: Link, rows: Sequence[Row], run_id: str = "") -> Counters:
        """Relationships of one (type, start, end), one batch after another, ordered by their ends."""
        done = Counters()
        query = queries.merge_links(*link)
        for batch in self._batches(sorted(rows, key=lambda row: (str(row["start"]), str(row["end"])))):
            with self._linking:
                _, created, changed = self._write(query, rows=_stamped(batch, run_id))
            done.relationships_created += created
            done.relationships_updated += changed - created
            done.relationships_unchanged += len(batch) - changed
        return done

    def delete_nodes(self, label: NodeLabel, keys: Iterable[str]) -> Counters:
        """Delete nodes by key, with their relationships."""
        query = queries.delete_nodes(label)
        done = Counters()
        for batch in self._batches(sorted(set(keys))):
            deleted, unlinked = self._delete(query, keys=batch)
            done.nodes_deleted += deleted
            done.relationships_deleted += unlinked
        return done

    def delete_links(self, link: Link, ends: Iterable[tuple[str, str]]) -> Counters:
        """Delete relationships by the keys of their ends."""
        done = Counters()
        rows = [{"start": start, "end": end} for start, end in sorted(set(ends))]
        for batch in self._batches(rows):
            with self._linking:
                done.relationships_deleted += self._delete(queries.delete_links(*link), rows=batch)[1]
        return done

    def delete_orphans(self) -> int:
        """Delete nodes that nothing is linked to any more. Returns their number."""
        total = 0
        for label in NodeLabel:
            while deleted := self._delete(queries.delete_orphans(label), limit=_CLEAR_BITE)[0]:
                total += deleted
        return total

    def clear(self) -> int:
        """Delete everything, in bites. Returns the number of nodes deleted."""
        total = 0
        for label in NodeLabel:
            while deleted := self._delete(queries.clear(label), limit=_CLEAR_BITE)[0]:
                total += deleted
        return total

    def read_marker(self) -> str | None:
        """Name of this database's present life, where one was written."""
        found = self.read(queries.READ_MARKER)
        return str(found[0]["value"]) if found else None

    def write_marker(self, value: str) -> None:
        """Name this database's present life."""
        self.ensure_constraints()
        self._write(queries.WRITE_MARKER, value=value)

    def _batches(self, rows: Sequence[Any]) -> Iterator[list[Any]]:
        for at in range(0, len(rows), self.batch_size):
            yield list(rows[at : at + self.batch_size])

    def _write(self, query: str, **parameters: Any) -> tuple[int, int, int]:
        """(nodes created, relationships created, rows changed) of one managed transaction.

        Where two writers race for a new key one of them meets the constraint: the batch is repeated once.
        """
        from neo4j.exceptions import ConstraintError

        try:
            return self._once(query, parameters)
        except ConstraintError:
            log.info("constraint race, repeating the batch")
        with _errors(self.uri, self.database):
            return self._once(query, parameters)

    def _once(self, query: str, parameters: Mapping[str, Any]) -> tuple[int, int, int]:
        from neo4j.exceptions import ConstraintError

        def work(transaction: ManagedTransaction) -> tuple[int, int, int]:
            result = transaction.run(cast(Any, query), dict(parameters))
            records = list(result)
            counters = result.consume().counters
            changed = records[0].get("changed", 0) if records else 0
            return counters.nodes_created, counters.relationships_created, changed

        with self._session(query, passing=(ConstraintError,)) as session:
            return session.execute_write(work)

    def _delete(self, query: str, **parameters: Any) -> tuple[int, int]:
        def work(transaction: ManagedTransaction) -> tuple[int, int]:
            counters = transaction.run(cast(Any, query), storable(parameters)).consume().counters
            return counters.nodes_deleted, counters.relationships_deleted

        with self._session(query) as session:
            return session.execute_write(work)


class GraphHandle:
    """A store that is opened when it is first asked for and closed with its stage."""

    def __init__(self, settings: GraphSettings, data_dir: Path) -> None:
        self.settings = settings
        self.data_dir = data_dir
        self._store: GraphStore | None = None
        self._fresh = uuid.uuid4().hex
        self._lock = threading.Lock()

    @property
    def store(self) -> GraphStore:
        """The open store; starts the embedded server where needed, also one that died meanwhile."""
        with self._lock:
            if self._store is not None and self._store.server is not None and self._store.server.has_ended:
                log.warning("the embedded graph server has ended, it is started again")
                self._store.close()
                self._store = None
            if self._store is None:
                self._store = GraphStore.connect(self.settings, self.data_dir)
                if self.settings.uri is None and not self._epoch_file.is_file():
                    self._epoch_file.write_text(self._fresh, encoding="utf-8")
            return self._store

    @property
    def _epoch_file(self) -> Path:
        from kg.embedded import epoch_file

        return epoch_file(self.data_dir.resolve() / "graph")

    def epoch(self) -> str:
        """Names the present life of the database: another one when it was dropped or replaced.

        For the embedded server a file beside the database, so that nothing is
        started to find out; for another server a marker node.
        """
        if self.settings.uri is not None:
            found = self.store.read_marker()
            if found is None:
                self.store.write_marker(found := self._fresh)
            return f"{self.settings.uri}/{self.settings.database}/{found}"
        from kg.embedded import database_exists

        known = database_exists(self.data_dir.resolve() / "graph") and self._epoch_file.is_file()
        return self._epoch_file.read_text(encoding="utf-8") if known else self._fresh

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


def _stamped(rows: Sequence[Row], run_id: str) -> list[Row]:
    """Rows with the id of the run in their properties (it is not part of the row hash)."""
    if not run_id:
        return list(rows)
    return [{**row, "props": {**row["props"], "run": run_id}} for row in rows]


def _number(*parts: str | None) -> int:
    state = hashlib.sha256()
    for part in parts:
        data = (part or "").encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return int.from_bytes(state.digest(), "big")


@contextmanager
def _errors(uri: str, database: str, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn the driver's errors into the platform's two families; a setting that is wrong is named."""
    from neo4j.exceptions import (
        AuthError,
        ConfigurationError,
        DriverError,
        Neo4jError,
        ServiceUnavailable,
        UnsupportedServerProduct,
    )

    try:
        yield
    except passing:
        raise
    except AuthError as error:
        raise SettingsError(
            f"graph server {uri} refuses the login (HCHEM_GRAPH__USER, HCHEM_GRAPH__PASSWORD): {error.message}"
        ) from error
    except UnsupportedServerProduct as error:
        raise SettingsError(
            f"what answers at {uri} (HCHEM_GRAPH__URI) is no Neo4j server of version 4.4 or later, nor one that "
            f"speaks its Bolt protocol: {error}"
        ) from error
    except ConfigurationError as error:
        raise SettingsError(f"graph address {uri!r} (HCHEM_GRAPH__URI) cannot be used: {error}") from error
    except ServiceUnavailable as error:
        said = _chain(error)
        if "looks like HTTP" in said:
            raise SettingsError(
                f"what answers at {uri} (HCHEM_GRAPH__URI) is a web server; Bolt has a port of its own, "
                f"usually 7687: {said}"
            ) from error
        raise TransientError(
            f"graph server {uri} (HCHEM_GRAPH__URI) is not reachable: {said}", reason="graph_away"
        ) from error
    except (DriverError, Neo4jError) as error:
        if getattr(error, "code", None) == "Neo.ClientError.Database.DatabaseNotFound":
            raise SettingsError(
                f"graph server {uri} has no database {database!r} (HCHEM_GRAPH__DATABASE): {error}"
            ) from error
        if error.is_retryable():
            raise TransientError(f"graph server {uri}: {error}", reason="graph_busy") from error
        raise TerminalError(f"graph server {uri}: {error}", reason="graph_query") from error


def _chain(error: BaseException) -> str:
    """What an error and the errors behind it say, those of a group too (routing reports one for each server)."""
    parts = [str(error)]
    cause = error.__cause__
    for behind in cause.exceptions if isinstance(cause, BaseExceptionGroup) else [cause]:
        if behind is not None and (said := _chain(behind)) not in parts[0]:
            parts.append(said)
    return "; ".join(parts)

"""A user's own server (HCHEM_GRAPH__URI): what is wrong is said, with the name of the setting."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from corpus.errors import SettingsError, TransientError
from kg.embedded import EmbeddedGraph
from kg.graph_settings import GraphSettings
from kg.store import GraphStore
from tests.servers.neo4j_server import Neo4jServer

pytestmark = pytest.mark.graph
Server = EmbeddedGraph | Neo4jServer


def settings(server: Server, **changed: object) -> GraphSettings:
    given = {
        "uri": server.uri,
        "user": server.user,
        "password": SecretStr(server.password),
        "database": server.database,
    }
    return GraphSettings.model_validate({**given, **changed})


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_right_settings_connect(graph_server: Server, tmp_path: Path, scheme: str) -> None:
    uri = graph_server.uri.replace("bolt:", f"{scheme}:")
    with GraphStore.connect(settings(graph_server, uri=uri), tmp_path) as store:
        assert store.read("RETURN 1 AS one") == [{"one": 1}]
    assert not (tmp_path / "graph").exists(), "the embedded server was prepared although an address is given"


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_wrong_login_names_the_settings(graph_server: Server, tmp_path: Path, scheme: str) -> None:
    uri = graph_server.uri.replace("bolt:", f"{scheme}:")
    wrong = settings(graph_server, uri=uri, password="wrong-password")
    with pytest.raises(SettingsError, match=r"HCHEM_GRAPH__USER, HCHEM_GRAPH__PASSWORD") as caught:
        GraphStore.connect(wrong, tmp_path)
    assert "wrong-password" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_wrong_database_names_the_setting(graph_server: Server, tmp_path: Path, scheme: str) -> None:
    uri = graph_server.uri.replace("bolt:", f"{scheme}:")
    with pytest.raises(SettingsError, match=r"'nosuch' \(HCHEM_GRAPH__DATABASE\)"):
        GraphStore.connect(settings(graph_server, uri=uri, database="nosuch"), tmp_path)


def test_encryption_that_the_server_does_not_offer(graph_server: Server, tmp_path: Path) -> None:
    uri = graph_server.uri.replace("bolt:", "bolt+ssc:")
    with pytest.raises(TransientError, match=r"(?s)HCHEM_GRAPH__URI.*encryption"):
        GraphStore.connect(settings(graph_server, uri=uri), tmp_path)


def test_nobody_listens(tmp_path: Path) -> None:
    for uri in ("bolt://127.0.0.1:9", "neo4j://127.0.0.1:9", "bolt://no-such-host.invalid:7687"):
        with pytest.raises(TransientError, match=r"\(HCHEM_GRAPH__URI\) is not reachable"):
            GraphStore.connect(GraphSettings(uri=uri, password=SecretStr("x")), tmp_path)


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """A server of another kind: whatever it is asked, it says its own piece and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(100)
                    if reply:
                        client.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", SettingsError, "is a web server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", SettingsError, "is no Neo4j server"),
        (b"\x15\x03\x01\x00\x02\x02\x46", SettingsError, "is no Neo4j server"),  # TLS alert
        (b"\x00\x00\x00\x00", SettingsError, "is no Neo4j server"),  # Bolt, but no version we speak
        (b"", TransientError, "is not reachable"),  # a server that is starting or stopping does this as well
    ],
)
@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_another_kind_of_server(
    tmp_path: Path, reply: bytes, kind: type[Exception], said: str, scheme: str
) -> None:
    with answering(reply) as address:
        wrong = GraphSettings(uri=f"{scheme}://{address}", password=SecretStr("x"))
        with pytest.raises(kind, match=said) as caught:
            GraphStore.connect(wrong, tmp_path)
        assert "HCHEM_GRAPH__URI" in str(caught.value)


def test_an_address_that_is_none() -> None:
    with pytest.raises(SettingsError, match="HCHEM_GRAPH__URI"):
        GraphStore("nonsense://x", "u", "p", "d")
    with pytest.raises(ValueError, match="scheme"):
        GraphSettings(uri="localhost:7687")
    with pytest.raises(ValueError, match=r"begins with http://, but it must be one of bolt, .* usually 7687"):
        GraphSettings(uri="http://localhost:7474")
    with pytest.raises(ValueError, match=r"one of bolt, bolt\+s, bolt\+ssc, neo4j"):
        GraphSettings(uri="nonsense://x")


def test_a_server_without_authentication_needs_no_password(tmp_path: Path) -> None:
    """No password: no login is sent. The other end is a socket that keeps the driver's first bytes."""

    def first_message(password: str | None) -> bytes:
        seen = bytearray()
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve() -> None:
                client, _ = server.accept()
                with client:
                    client.recv(20)
                    client.sendall(b"\x00\x00\x02\x05")  # Bolt 5.2: HELLO, then LOGON with the login
                    client.settimeout(1.0)
                    try:
                        while data := client.recv(4096):
                            seen.extend(data)
                    except TimeoutError:
                        pass

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            uri = f"bolt://127.0.0.1:{server.getsockname()[1]}"
            settings = GraphSettings(uri=uri, user="ann", password=password)  # type: ignore[arg-type]
            with pytest.raises(TransientError):
                GraphStore.connect(settings, tmp_path)
            thread.join(5)
        return bytes(seen)

    with_login, without = first_message("secret"), first_message(None)
    assert b"secret" in with_login
    assert b"ann" in with_login
    assert b"none" in without
    assert b"ann" not in without

"""Put on the path of processes under test: writes every non-loopback address they turn to."""

import os
import sys

_LOG = os.environ.get("HCHEM_TEST_AUDIT_LOG")
_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")


def _note(kind, host):
    text = str(host)
    if not text.startswith(_LOOPBACK) and text not in ("", "None", "::", "b''"):
        descriptor = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{kind} {text} {sys.argv[:3]}\n".encode())
        os.close(descriptor)


def _hook(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        _note(event, arguments[1][0])
    elif event == "socket.getaddrinfo":
        host = arguments[0]
        _note(event, host.decode() if isinstance(host, bytes) else host)


if _LOG:
    sys.addaudithook(_hook)

"""The child process of ``sandbox``: reads framed requests, answers with framed JSON.

A frame is a 4-byte length and a JSON header, then a 4-byte length and raw bytes.
Run as ``python -m corpus.cleaning.worker``; ends at the end of its input.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

_LENGTH = struct.Struct(">I")


def write_frame(stream: IO[bytes], header: dict[str, Any], payload: bytes = b"") -> None:
    """Write a header and a payload."""
    head = json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
    stream.write(_LENGTH.pack(len(head)) + head + _LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read a header and a payload; ``None`` at the end of the stream."""
    head = _read(stream)
    payload = _read(stream) if head is not None else None
    if head is None or payload is None:
        return None
    header: dict[str, Any] = json.loads(head.decode("utf-8", "surrogatepass"))
    return header, payload


def _read(stream: IO[bytes]) -> bytes | None:
    size = stream.read(4)
    if len(size) < 4:
        return None
    wanted = _LENGTH.unpack(size)[0]
    data = stream.read(wanted)
    return data if len(data) == wanted else None


def _answer(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    from dataclasses import asdict

    from corpus.cleaning.parsing import Limits
    from corpus.cleaning.pipeline import clean_page, profile_page
    from corpus.cleaning.template import Template
    from corpus.errors import PlatformError

    common = {name: header[name] for name in ("url", "content_type", "header_charset")}
    limits = Limits(**header["limits"])
    try:
        if header["action"] == "profile":
            return {"result": asdict(profile_page(data, **common, limits=limits))}
        template = Template.from_json(header["template"]) if header.get("template") else None
        classes = frozenset(header.get("kept_classes", ()))
        page = clean_page(data, **common, template=template, kept_classes=classes, limits=limits)
        return {"result": page.to_json()}
    except PlatformError as error:
        return {"error": str(error), "reason": error.reason}
    except MemoryError:
        return {"error": "out of memory", "reason": "memory"}
    except Exception as error:  # noqa: BLE001  a fault on one page must reach the parent as that page's fault
        return {"error": f"{type(error).__name__}: {error}", "reason": "cleaning_fault"}


def main() -> None:
    """Serve until the input ends; the parent's death ends the input, at the latest ``at_most_s`` into a page."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the frames
    first = read_frame(incoming)
    if first is None:
        return
    _limit_memory(int(first[0].get("max_memory", 0)))
    import corpus.cleaning.pipeline  # noqa: F401  pay for the imports before the first page's clock runs

    write_frame(outgoing, {"ready": True})
    seconds = int(first[0].get("at_most_s", 0))
    while (frame := read_frame(incoming)) is not None:
        with killed_after(seconds):
            answer = _answer(*frame)
        write_frame(outgoing, answer)


@contextmanager
def killed_after(seconds: int) -> Iterator[None]:
    """The system ends this process where a page takes longer (0: never) and nobody is left who would.

    A parser written in C is not interrupted by anything milder.
    """
    if not seconds or not hasattr(signal, "alarm"):
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _limit_memory(limit: int) -> None:
    if not limit:
        return
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, ValueError, OSError):  # not on this platform, or already lower
        return


if __name__ == "__main__":
    main()

"""Inspection in a child process that can be killed, as all work on pages from outside.

Frames are those of the cleaning worker. The child is started as
``python -m flows.inspection.sandbox`` and serves until its input ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any

from corpus.cleaning import Limits, Template
from corpus.cleaning.parsing import LIMITS
from corpus.cleaning.worker import killed_after, read_frame, write_frame
from corpus.errors import PlatformError, TerminalError

_MEMORY = 4_000_000_000
_WITHOUT_PARENT_S = 10  # beyond the time that the parent allows


class Inspector:
    """A child process that inspects pages one after the other; use as a context manager.

    A page that takes longer than ``timeout_s`` (the child's start included) costs the child its life; the
    next page gets another one.
    """

    def __init__(self, timeout_s: float = 120.0) -> None:
        self.timeout_s = timeout_s
        self._child: subprocess.Popen[bytes] | None = None

    def inspect(self, data: bytes, **known: Any) -> dict[str, Any]:
        """``inspect_bytes`` in the child; its plain data. ``known``: its arguments.

        Raises TerminalError, also with the reasons ``timeout``, ``crashed`` and ``memory``.
        """
        return self._ask("inspect", data, known)

    def removals(self, data: bytes, **known: Any) -> dict[str, Any]:
        """``size`` of the visible text before cleaning, and the traced ``removals`` (rule, tag, text, size).

        Sizes are visible characters as cleaning weighs them: Han counted twice.
        """
        return self._ask("removals", data, known)

    def _ask(self, action: str, data: bytes, known: dict[str, Any]) -> dict[str, Any]:
        limits: Limits = known.get("limits", LIMITS)
        template: Template | None = known.get("template")
        header = {
            "action": action,
            "at_most_s": int(self.timeout_s) + _WITHOUT_PARENT_S,
            **{name: known.get(name, "") for name in ("url", "content_type", "header_charset")},
            "template": template.to_json() if template is not None else None,
            "limits": {"max_bytes": limits.max_bytes, "max_elements": limits.max_elements},
        }
        late = threading.Event()
        child = (
            self._child
            or subprocess.Popen(
                [sys.executable, "-m", "flows.inspection.sandbox"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent: a child that it ends would look like a bad page
            )
        )
        self._child = child
        timer = threading.Timer(self.timeout_s, _kill, (child, late))
        timer.daemon = True
        timer.start()
        frame = None
        try:
            if child.stdin is not None and child.stdout is not None:
                write_frame(child.stdin, header, data)
                frame = read_frame(child.stdout)
        except OSError:  # the pipe broke: the child is gone
            frame = None
        finally:
            timer.cancel()
        if frame is None:
            self.close()
            if late.is_set():
                raise TerminalError(f"inspection took longer than {self.timeout_s:g} s", reason="timeout")
            raise TerminalError("the inspection process died on this page", reason="crashed")
        if "fault" in frame[0]:
            raise TerminalError(str(frame[0]["fault"]), reason=str(frame[0]["reason"]))
        return frame[0]

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()  # it holds nothing that must be put away
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # a broken pipe cannot be flushed
                    stream.close()
        child.wait()

    def __enter__(self) -> Inspector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def inspect_in_child(data: bytes, *, timeout_s: float = 120.0, **known: Any) -> dict[str, Any]:
    """One page through a child process of its own. Arguments and errors as ``Inspector.inspect``."""
    with Inspector(timeout_s) as inspector:
        return inspector.inspect(data, **known)


def _kill(child: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    child.kill()


def main() -> None:
    """Serve until the input ends; the parent's death ends the input, at the latest ``at_most_s`` into a page."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the frames
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on this platform, or already lower
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    while (frame := read_frame(incoming)) is not None:
        with killed_after(frame[0]["at_most_s"]):
            answer = _answer(*frame)
        write_frame(outgoing, answer)


def _answer(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    from corpus.cleaning import Trace, clean_page
    from corpus.cleaning.measure import size
    from flows.inspection.gather import inspect_bytes

    known: dict[str, Any] = {name: header[name] for name in ("url", "content_type", "header_charset")}
    known["template"] = Template.from_json(header["template"]) if header["template"] else None
    known["limits"] = Limits(**header["limits"])
    try:
        if header["action"] == "inspect":
            return inspect_bytes(data, **known).to_json()
        trace = Trace()
        page = clean_page(data, **known, trace=trace)
        removals = [
            {"rule": r.rule, "tag": r.tag, "text": r.text, "size": size(r.text)} for r in trace.removals
        ]
        return {"size": page.features.raw_text_chars, "removals": removals}
    except PlatformError as error:
        return {"fault": str(error), "reason": error.reason}
    except MemoryError:
        return {"fault": "out of memory", "reason": "memory"}
    except Exception as error:  # noqa: BLE001  a fault on one page must reach the parent as that page's fault
        return {"fault": f"{type(error).__name__}: {error}", "reason": "inspection_fault"}


if __name__ == "__main__":
    main()

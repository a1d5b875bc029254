"""Response cache: the raw answer is stored before anything is parsed; refused ones are never served."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from models.client.call import Call, Layer, Reply
from models.protocols import AnswerStore, BatchLine, StoredAnswer


class KeyLocks:
    """One lock per key, so that equal calls at the same moment are paid once."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.RLock, int]] = {}

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Hold the key's lock for a block; locks nobody waits for are forgotten."""
        with self._guard:
            lock, users = self._locks.get(key, (threading.RLock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = (lock, users - 1)


class AnswerCache:
    """Without a store every call goes through.

    ``collected`` tells, once for each, of the answers that a batch job of this run
    has put into the store: they are handed out as what they are, new.
    """

    def __init__(
        self,
        following: Layer,
        store: AnswerStore | None,
        collected: Callable[[str], bool] = lambda key: False,
    ) -> None:
        self._following = following
        self._store = store
        self._collected = collected
        self.locks = KeyLocks()
        self._held = threading.local()  # what the holder of a key has read: one question asks for it twice

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Hold a key's lock for a block, in which this thread reads each stored answer once."""
        with self.locks.hold(key):
            self._held.read = {}
            try:
                yield
            finally:
                self._held.read = None

    def __call__(self, call: Call) -> Reply:
        """Serve a stored answer, or ask and store before anybody parses it."""
        key = call.key()
        known = self.stored(key)
        if known is not None and known.state != "refused":
            if self._collected(key):
                return replace(_reply(known), from_store=False, counted=True)
            if self._store is not None:
                self._store.served(key)
            return _reply(known)
        reply = self._following(call)
        if self._store is not None:
            self._forget(key)
            self._store.put(answer_of(key, call, call.model.model, call.model.parameters(), reply))
        return replace(reply, key=key)

    def stored(self, key: str) -> StoredAnswer | None:
        """What the store knows of a key, refused answers included."""
        if self._store is None:
            return None
        read: dict[str, StoredAnswer | None] | None = getattr(self._held, "read", None)
        if read is None:
            return self._store.get(key)
        if key not in read:
            read[key] = self._store.get(key)
        return read[key]

    def _forget(self, key: str) -> None:
        if read := getattr(self._held, "read", None):
            read.pop(key, None)

    def flush(self) -> None:
        """Have the store write what it gathers in memory."""
        if self._store is not None:
            self._store.flush()

    def mark(self, key: str, state: str, reason: str = "") -> None:
        """Record the verdict on a stored answer."""
        if self._store is not None:
            self._forget(key)
            self._store.mark(key, state, reason)


def answer_of(
    key: str, asked: Call | BatchLine, model: str, parameters: dict[str, Any], reply: Reply
) -> StoredAnswer:
    """A reply as it is stored, whichever way the question went."""
    return StoredAnswer(
        key=key,
        skill=asked.skill,
        skill_version=asked.skill_version,
        model=model,
        draw=asked.draw,
        raw=reply.raw,
        reason=f"refusal: {reply.refusal}" if reply.refusal else "",
        finish_reason=reply.finish_reason,
        tokens_in=reply.tokens_in,
        tokens_cached=reply.tokens_cached,
        tokens_out=reply.tokens_out,
        cost=reply.cost,
        seconds=round(reply.seconds, 3),
        parameters=parameters,
    )


def _reply(known: StoredAnswer) -> Reply:
    refusal = known.reason.removeprefix("refusal: ") if known.reason.startswith("refusal: ") else ""
    return Reply(
        raw=known.raw,
        finish_reason=known.finish_reason,
        refusal=refusal,
        tokens_in=known.tokens_in,
        tokens_cached=known.tokens_cached,
        tokens_out=known.tokens_out,
        cost=known.cost,
        seconds=known.seconds,
        key=known.key,
        from_store=True,
    )

"""Rate limit (requests and tokens a minute) and bounded concurrency, inside this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from models.client.call import Call, Layer, Reply
from models.settings import Limits


class TokenBucket:
    """``capacity`` units a minute, refilled steadily; starts full.

    A demand above the capacity is let through when the bucket is full and then
    paid off, so that one large call is slow and not stuck.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._capacity = float(per_minute)
        self._rate = per_minute / 60.0
        self._clock = clock
        self._sleep = sleep
        self._level = self._capacity
        self._at = clock()
        self._lock = threading.Lock()

    def take(self, amount: float = 1.0) -> float:
        """Wait until the amount is there and take it; returns the seconds waited."""
        with self._lock:
            now = self._clock()
            self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
            self._at = now
            needed = min(amount, self._capacity)
            wait = max(0.0, (needed - self._level) / self._rate)
            self._level -= amount
        if wait > 0:
            self._sleep(wait)
        return wait

    def give_back(self, amount: float) -> None:
        """Return what was taken too much (the settled figure is known only after a call)."""
        with self._lock:
            self._level = min(self._capacity, self._level + amount)


class LimitLayer:
    """Waits for a slot, a request and the tokens of a call."""

    def __init__(
        self, following: Layer, limits: Limits, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._following = following
        self._slots = threading.BoundedSemaphore(limits.concurrency)
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        self._requests = TokenBucket(requests, sleep=sleep) if requests else None
        self._tokens = TokenBucket(tokens, sleep=sleep) if tokens else None

    def request(self) -> None:
        """Wait for one request (also before a repeated attempt)."""
        if self._requests is not None:
            self._requests.take()

    def __call__(self, call: Call) -> Reply:
        """The reply of the next layer, when the limits allow it."""
        expected = call.worst_tokens_in() / 3 + call.model.max_output_tokens / 4
        with self._slots:
            self.request()
            if self._tokens is None:
                return self._following(call)
            self._tokens.take(expected)
            reply = self._following(call)
            self._tokens.give_back(expected - reply.tokens_in - reply.tokens_out)
            return reply

"""Circuit breaker: an endpoint that fails again and again is left alone for a while.

Without it an unreachable endpoint costs the whole retry time for every item of
a corpus. It sits around retry, so what it counts are calls that failed for good.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from models.client.call import Call, Layer, Reply
from models.errors import EndpointDown, ModelUnavailable
from models.settings import Limits


class BreakerLayer:
    """Opens after ``limits.give_up_after`` failed calls in a row; after ``limits.max_wait_s`` one call may try."""

    def __init__(
        self, following: Layer, limits: Limits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._following = following
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._open_until = 0.0
        self._last = ""

    def __call__(self, call: Call) -> Reply:
        """The reply of the next layer. Raises EndpointDown, with the last failure, while open."""
        self._pass(call)
        try:
            reply = self._following(call)
        except EndpointDown:
            raise
        except ModelUnavailable as error:
            self._failed(str(error))
            raise
        with self._lock:
            self._failures = 0
        return reply

    def _pass(self, call: Call) -> None:
        with self._lock:
            if self._failures < self._limits.give_up_after:
                return
            if self._clock() >= self._open_until:
                self._open_until = self._clock() + self._limits.max_wait_s  # one call tries, others wait
                return
            raise EndpointDown(
                f"{call.model.base_url}: {self._failures} calls in a row failed, the last one: {self._last}",
                reason="endpoint_down",
            )

    def _failed(self, message: str) -> None:
        with self._lock:
            self._failures += 1
            self._last = message
            if self._failures >= self._limits.give_up_after:
                self._open_until = self._clock() + self._limits.max_wait_s

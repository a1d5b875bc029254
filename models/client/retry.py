"""Retry: transient failures again with growing pauses, terminal ones at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from models.client.call import Call, Layer, Reply, Transient
from models.settings import Limits

logger = logging.getLogger(__name__)

T = TypeVar("T")


def with_retries(
    work: Callable[[], T],
    limits: Limits,
    *,
    before_again: Callable[[Transient], None] = lambda failure: None,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Do the work, again after ``Transient`` failures; the endpoint's Retry-After goes before our pause.

    ``before_again`` is called before each further attempt and may raise to end
    it (budget, rate limit). Raises the last failure.
    """
    pause = wait_random_exponential(multiplier=limits.pause_s, max=min(30.0, limits.max_wait_s))

    def worth_repeating(error: BaseException) -> bool:
        if not isinstance(error, Transient):
            return False
        return error.retry_after is None or error.retry_after <= limits.max_wait_s

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        wish = error.retry_after if isinstance(error, Transient) else None
        return float(pause(state)) if wish is None else wish

    failures: list[Transient] = []

    def once() -> T:
        if failures:
            before_again(failures[-1])
        try:
            return work()
        except Transient as error:
            failures.append(error)
            logger.debug("attempt %d failed: %s", len(failures), error.reason)
            raise

    attempts = Retrying(
        stop=stop_after_attempt(limits.retries + 1),
        wait=wait,
        retry=retry_if_exception(worth_repeating),
        sleep=sleep,
        reraise=True,
    )
    return attempts(once)


class RetryLayer:
    """``with_retries`` as a layer; ``before_again`` gets the call as well."""

    def __init__(
        self,
        following: Layer,
        limits: Limits,
        *,
        before_again: Callable[[Call, Transient], None] = lambda call, failure: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._following = following
        self._limits = limits
        self._before_again = before_again
        self._sleep = sleep

    def __call__(self, call: Call) -> Reply:
        """The reply of the first attempt that succeeds. Raises the last failure."""
        return with_retries(
            lambda: self._following(call),
            self._limits,
            before_again=lambda failure: self._before_again(call, failure),
            sleep=self._sleep,
        )

"""Slots over processes: a Prefect global concurrency limit, one slot per batch that waits for a model.

Limits inside a process are in ``models.client.limits``. Where several runs, or
Dask and Ray workers, share one endpoint, each batch holds a slot of the limit
that ``models.limits.processes_slot`` names (a slot costs about 0.2 s, a batch
takes minutes).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from corpus.errors import SettingsError, TransientError
from models.protocols import Slots
from models.settings import Limits

LOST = "slot_lost"
"""Reason of the error where the server went away while a slot was held: the batch itself is done."""

_LEASE_S = 90.0  # a killed process's slot comes back after it; renewed at three quarters
_LOCKED = 423  # HTTP status of "all slots are taken"
_PAUSE_S = 1.0  # between attempts to get a slot


def _not_an_attempt(record: logging.LogRecord) -> bool:
    """Prefect prints an error for every attempt that finds no slot; what matters of it is raised here."""
    return "failed to process item" not in record.msg or "SlotAcquisition" not in record.getMessage()


logging.getLogger("prefect._internal.concurrency").addFilter(_not_an_attempt)


def slots_for(limits: Limits) -> Slots:
    """The slots that the settings name, or none."""
    return PrefectSlots(limits.processes_slot) if limits.processes_slot else NoSlots()


class NoSlots:
    """No limit over processes."""

    @contextmanager
    def hold(self, needless: Callable[[], bool]) -> Iterator[None]:
        """Nothing is held."""
        yield


@dataclass(frozen=True)
class PrefectSlots:
    """The slots of one Prefect global concurrency limit."""

    name: str

    @contextmanager
    def hold(self, needless: Callable[[], bool]) -> Iterator[None]:
        """Hold a slot for a block; wait for one until ``needless`` says that the block has nothing to do.

        Raises TransientError where the server does not answer, with the reason
        ``LOST`` where it went away while the slot was held, and SettingsError
        where the limit does not exist.
        """
        slot = self._get(needless)
        try:
            yield
        finally:
            if slot is not None:
                self._give_back(slot)

    def _get(self, needless: Callable[[], bool]) -> AbstractContextManager[None] | None:
        """A slot that is held, None where the wait became needless."""
        while not needless():
            slot = concurrency(
                self.name,
                max_retries=0,  # we wait ourselves: Prefect's waiting cannot be ended
                lease_duration=_LEASE_S,
                strict=True,
                # True would throw an exception into the batch at any instruction
                raise_on_lease_renewal_failure=False,
            )
            try:
                slot.__enter__()
                return slot
            except ConcurrencySlotAcquisitionError as error:
                if not _taken(error):
                    raise self._refused(error) from error
            time.sleep(random.uniform(0.5, 1.5) * _PAUSE_S)
        return None

    def _give_back(self, slot: AbstractContextManager[None]) -> None:
        try:
            slot.__exit__(None, None, None)
        except httpx.HTTPError as error:
            raise TransientError(
                f"the Prefect server went away while a slot of {self.name!r} (models.limits.processes_slot) was "
                "held; what was done meanwhile is stored, the same command goes on with the rest",
                reason=LOST,
            ) from error

    def _refused(self, error: ConcurrencySlotAcquisitionError) -> Exception:
        setting = f"models.limits.processes_slot = {self.name!r}"
        if error.__cause__ is None:
            return SettingsError(
                f"{setting}: the Prefect server has no such concurrency limit; `hchem serve` and every flow make it "
                f"when they begin, or: prefect gcl create {self.name} --limit N"
            )
        return TransientError(
            f"{setting}: no slot, the Prefect server does not answer: {type(error.__cause__).__name__}",
            reason="slots",
        )


def _taken(error: ConcurrencySlotAcquisitionError) -> bool:
    cause = error.__cause__
    return isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code == _LOCKED


def ensure_limit(limits: Limits, *, tell: Callable[[str], None] = lambda line: None) -> None:
    """Create the named limit where the server has none; an existing one keeps its size.

    Raises TransientError where the server does not answer.
    """
    name, size = limits.processes_slot, limits.batches_at_once
    if name is None:
        return
    try:
        with get_client(sync_client=True) as client:
            try:
                known = client.read_global_concurrency_limit_by_name(name)
            except ObjectNotFound:
                try:
                    client.create_global_concurrency_limit(
                        GlobalConcurrencyLimitCreate(name=name, limit=size)
                    )
                except ObjectAlreadyExists:  # another process was faster
                    return
                tell(f"Prefect concurrency limit {name!r}: {size} batches at once over all processes")
                return
    except httpx.HTTPError as error:
        raise TransientError(
            f"models.limits.processes_slot = {name!r}: the Prefect server does not answer: {type(error).__name__}",
            reason="slots",
        ) from error
    if known.limit != size:
        tell(
            f"Prefect concurrency limit {name!r} has {known.limit} slots, models.limits.batches_at_once is {size}: "
            f"the server's figure holds (change it with: prefect gcl update {name} --limit {size})"
        )

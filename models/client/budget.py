"""Budget: the worst case of a call is reserved before it is sent and settled after."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from models.client.call import Call, Layer, Reply, Transient
from models.errors import BudgetExhausted, EndpointDown
from models.settings import Budget


@dataclass
class Spending:
    """Calls, tokens and money."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, other: Spending, sign: int = 1) -> Spending:
        """The sum (or difference) of two."""
        return Spending(
            self.calls + sign * other.calls,
            self.tokens + sign * other.tokens,
            self.cost + sign * other.cost,
        )


def worst_case(call: Call) -> Spending:
    """The most that one attempt of a call can use: prompt bytes plus the output limit."""
    tokens_in, tokens_out = call.worst_tokens_in(), call.model.max_output_tokens
    price = call.model.price
    return Spending(1, tokens_in + tokens_out, price.cost(tokens_in, 0, tokens_out) if price else 0.0)


class BudgetKeeper:
    """Spent and reserved together never pass the limits.

    A call that does not fit while others are in flight waits for them: their
    worst case is usually far above what they use.
    """

    def __init__(self, limits: Budget) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._spent = Spending()
        self._reserved = Spending()
        self._in_flight = 0

    def reserve(self, call: Call, *, wait: bool = True) -> Spending:
        """Set the worst case aside. Raises BudgetExhausted; nothing was sent then.

        ``wait`` False does not wait for calls in flight to give back what they do not use.
        """
        wanted = worst_case(call)
        with self._changed:
            while (short := self._short(wanted)) is not None:
                if self._in_flight == 0 or not wait:
                    raise BudgetExhausted(
                        f"budget: the next call ({call.skill}) could pass {short}: it may take "
                        f"{wanted.tokens:,} tokens{f' or {wanted.cost:.4g} of money' if wanted.cost else ''}, "
                        f"{call.model.max_output_tokens:,} of them for the answer (max_output_tokens); "
                        "raise the budget and run again",
                        reason="budget",
                    )
                self._changed.wait()
            self._reserved = self._reserved.plus(wanted)
            self._in_flight += 1
        return wanted

    def settle(self, reserved: Spending, used: Spending) -> None:
        """Give the reservation back and count what was used."""
        with self._changed:
            self._reserved = self._reserved.plus(reserved, -1)
            self._spent = self._spent.plus(used)
            self._in_flight -= 1
            self._changed.notify_all()

    def charge(self, call: Call) -> None:
        """Before a repeat of an attempt whose cost is unknown: count its worst case as spent."""
        wanted = worst_case(call)
        with self._changed:
            short = self._short(wanted)
            if short is not None:
                raise BudgetExhausted(f"budget: a repeat of {call.skill} could pass {short}", reason="budget")
            self._spent = self._spent.plus(wanted)

    @property
    def spent(self) -> Spending:
        """What was used so far."""
        with self._changed:
            return self._spent

    def _short(self, wanted: Spending) -> str | None:
        total = self._spent.plus(self._reserved).plus(wanted)
        limits = self._limits
        if limits.max_calls is not None and total.calls > limits.max_calls:
            return f"max_calls = {limits.max_calls}"
        if limits.max_tokens is not None and total.tokens > limits.max_tokens:
            return f"max_tokens = {limits.max_tokens}"
        if limits.max_cost is not None and total.cost > limits.max_cost + 1e-12:
            return f"max_cost = {limits.max_cost}"
        return None


class Budgets:
    """The run's budget and those of single skills; a call must fit both."""

    def __init__(self, run: Budget, skills: Mapping[str, Budget]) -> None:
        self.run = BudgetKeeper(run)
        self.skills = {name: BudgetKeeper(skills[name]) for name in sorted(skills)}

    def reserve(self, call: Call, *, wait: bool = True) -> Spending:
        """Set the worst case aside in both, the skill's first. Raises BudgetExhausted."""
        own = self.skills.get(call.skill)
        if own is None:
            return self.run.reserve(call, wait=wait)
        reserved = own.reserve(call, wait=wait)
        try:
            return self.run.reserve(call, wait=wait)
        except BudgetExhausted:
            own.settle(reserved, Spending())
            raise

    def settle(self, call: Call, reserved: Spending, used: Spending) -> None:
        """Give the reservation back and count what was used."""
        for keeper in self._of(call):
            keeper.settle(reserved, used)

    def charge(self, call: Call) -> None:
        """Count an attempt of unknown cost as its worst case, before it is repeated."""
        for keeper in self._of(call):
            keeper.charge(call)

    def _of(self, call: Call) -> list[BudgetKeeper]:
        own = self.skills.get(call.skill)
        return [self.run] if own is None else [own, self.run]


class BudgetLayer:
    """Reserve, call, settle."""

    def __init__(self, following: Layer, budgets: Budgets) -> None:
        self._following = following
        self._budgets = budgets

    def __call__(self, call: Call) -> Reply:
        """The reply of the next layer; a failed call counts its worst case only if it may have been billed."""
        reserved = self._budgets.reserve(call)
        used = Spending()
        try:
            reply = self._following(call)
            used = Spending(1, reply.tokens_in + reply.tokens_out, reply.cost)
            return reply
        except EndpointDown:  # nothing was sent
            raise
        except Transient as error:
            used = reserved if error.billed else Spending(calls=1)
            raise
        except BudgetExhausted:  # raised before a repeat: the attempts before it may have been billed
            used = reserved
            raise
        finally:
            self._budgets.settle(call, reserved, used)

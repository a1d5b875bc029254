"""A leading run or an assistant as a process of its own, on a catalogue that a test has filled: it can be killed.

``python -m tests.flows.sharing_process lead|assist [PAUSE]``. Settings come from the
environment. The leading run does the per-item steps that need nothing but the
catalogue; ``PAUSE``: seconds before each item, so that a kill finds it in the middle.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from corpus.stages import Item, Outcome, StageContext, Step
from flows import accounting, execution
from flows.assist import assisting
from flows.parameters import RefreshParameters
from flows.runtime import Runtime, open_runtime
from flows.settings import load_settings

STEPS = {
    "curate": ("curate.score", "curate.refine"),
    "graph": ("graph.extract",),
    "chunks": ("chunks.sentence",),
}


def slowed(find: Callable[[Runtime, str], Step], pause: float) -> Callable[[Runtime, str], Step]:
    """``Runtime.step`` whose steps wait before each item."""
    known: dict[int, Step] = {}

    def step(runtime: Runtime, name: str) -> Step:
        found: Any = find(runtime, name)
        if id(found) not in known:
            known[id(found)] = found
            process = found.process

            def later(ctx: StageContext, item: Item) -> Outcome:
                time.sleep(pause)
                return process(ctx, item)  # type: ignore[no-any-return]

            found.process = later
        return found  # type: ignore[no-any-return]

    return step


def lead() -> None:
    """Run the steps; the counts are printed."""
    run_id = execution.new_run_id()
    parameters = RefreshParameters()
    with (
        open_runtime(settings=load_settings(), run_id=run_id) as runtime,
        execution.session(runtime, "refresh", parameters) as current,
    ):
        for stage, names in STEPS.items():
            current.accounts[stage] = accounting.begin(runtime, current.context, stage)  # type: ignore[index]
            execution.run_steps(current, stage, [runtime.step(name) for name in names], execution.direct)  # type: ignore[arg-type]
    print(json.dumps(current.stages))


def assist() -> None:
    """Help whoever leads until the process is ended."""
    with assisting(tell=lambda line: print(line, file=sys.stderr, flush=True)) as assistant:
        done = assistant.work(load_settings())
    print(json.dumps(done.as_dict()))


def main(arguments: Sequence[str]) -> None:
    """Be what the arguments say."""
    what, *rest = arguments
    if rest and float(rest[0]):
        Runtime.step = slowed(Runtime.step, float(rest[0]))  # type: ignore[method-assign]
    {"lead": lead, "assist": assist}[what]()


if __name__ == "__main__":
    main(sys.argv[1:])

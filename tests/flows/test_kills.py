"""kill -9 at random moments of every stage, of the run itself and of its children, then a run that goes on.

Twelve points on the small site, ``--direct``. ``benchmarks/kills.py`` has a hundred,
with Prefect, its server, a worker and PostgreSQL among the victims.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.killing import BEFORE, Point, Staged, check, kill, points

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
_LONGEST_S = 20.0  # on a machine that does other things the stages seem long


@pytest.mark.parametrize(
    "point", points(12, seed=7), ids=lambda p: f"{p.number}-{p.stage}-{p.victim}-{p.moment}"
)
def test_a_kill_at_a_random_moment_resumes_to_the_same_bytes(
    point: Point, staged: Staged, tmp_path: Path
) -> None:
    command = staged.copy(BEFORE[point.stage], tmp_path)
    # the process starts within what the stage took; in the middle of the rest every moment is as likely
    kill(command, point, min(0.6 * staged.seconds[point.stage], _LONGEST_S))
    # once to the very end: what else was left behind would show
    end = "evaluate" if point.number == 2 else point.stage
    command.run("refresh", "--direct", "--to-stage", end)
    check(command, staged, end)

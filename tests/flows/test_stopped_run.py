"""A run that halts: a spent budget, an endpoint that is down, a refused key. What is done stays, the rest goes on later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Run
from corpus.errors import TransientError
from flows import execution
from flows.parameters import RefreshParameters
from flows.runtime import open_runtime
from flows.settings import Settings
from tests.flows import faulty_corpus as made_up
from tests.servers.model_server import Fault, ModelServer, Reply, Request

_COUNT = 30


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('right')}/c.db")
    made_up.fill(catalogue, _COUNT)
    models = made_up.Recording()
    made_up.run(catalogue, models, "right")
    return models.right


def _settings(folder: Path, server: ModelServer, **models: Any) -> Settings:
    limits = {"retries": 0, "pause_s": 0.01, "give_up_after": 3, "concurrency": 2}
    values = {"base_url": server.base_url, "model": "scripted", "api_key": None, "limits": limits, **models}
    return Settings(data_dir=folder, models=values, flows={"retry_delay_s": 0})  # type: ignore[arg-type]


def _curate(settings: Settings, run_id: str) -> None:
    parameters = RefreshParameters(from_stage="curate", to_stage="curate")
    with (
        open_runtime(settings=settings, run_id=run_id) as runtime,
        execution.session(runtime, "curate", parameters) as current,
    ):
        execution.run_stage(current, "curate", execution.direct)


@pytest.mark.parametrize(
    ("why", "budget", "fault"),
    [
        ("budget: the next call .* could pass max_calls = 7", {"max_calls": 7}, None),
        # two calls are in flight at once: the second may fail after the limit of three was reached
        ("[34] calls in a row failed, the last one: .*503", {}, Fault(status=503)),
        ("HTTP 401", {}, Fault(status=401, message="Incorrect API key")),
    ],
)
def test_a_run_stops_and_the_next_goes_on(
    right: dict[tuple[str, str], dict[str, Any]],
    tmp_path: Path,
    why: str,
    budget: dict[str, int],
    fault: Fault | None,
) -> None:
    broken = [True]

    def script(request: Request) -> Reply | Fault:
        if fault is not None and broken[0] and request.number > 10:
            return fault
        return Reply(json.dumps(right[made_up.skill_of(request), made_up.document_of(request)]))

    with ModelServer(script) as server:
        settings = _settings(tmp_path, server, budget=budget)
        catalogue = Catalogue.open(settings.catalogue_url())
        made_up.fill(catalogue, _COUNT)
        with pytest.raises(
            TransientError, match=rf"curate.score stopped: .*{why}.* goes on with the other \d+"
        ):
            _curate(settings, "first")
        stopped = len(server.calls())
        assert stopped <= 16
        with catalogue.reading() as session:
            run = session.get_one(Run, "first")
            scored = session.scalars(select(Document).where(Document.score.is_not(None))).all()
        assert (run.state, "stopped" in run.message) == ("stopped", True)
        assert 5 <= len(scored) <= 10

        broken[0] = False
        _curate(_settings(tmp_path, server), "second")
        with catalogue.reading() as session:
            assert session.get_one(Run, "second").state == "completed"
            assert all(row.text for row in session.scalars(select(Document)))
        # what was answered before the stop is not asked again
        assert len(server.calls()) - stopped == 2 * _COUNT - len(scored)

"""``hchem up`` and ``hchem down``: the loopback Prefect server."""

from __future__ import annotations

import typer

from flows import prefect_server, watchdog
from flows.console import err, out
from flows.runtime import open_runtime, prepare_data_dir
from flows.settings import load_settings

app = typer.Typer()


@app.command()
def up() -> None:
    """Start the Prefect server of this data directory, or find it running.

    Example: hchem up
    """
    settings = load_settings()
    server = prefect_server.ensure(prepare_data_dir(settings.data_dir), settings.prefect, tell=err.print)
    with open_runtime(settings=settings) as runtime:
        watchdog.attend(
            runtime.catalogue, settings.prefect.heartbeat_s, own_server=bool(server.pid), tell=err.print
        )
    if settings.models.limits.processes_slot is not None:
        from flows import slots  # imports Prefect, which takes seconds

        slots.ensure_limit(settings.models.limits, tell=err.print)
    out.print(f"Prefect UI: {server.ui_url}  (stop it with: hchem down)")


@app.command()
def down() -> None:
    """Stop the Prefect server of this data directory.

    Example: hchem down
    """
    settings = load_settings()
    stopped = prefect_server.stop(prepare_data_dir(settings.data_dir))
    out.print("Prefect server stopped." if stopped else "No Prefect server was running here.")

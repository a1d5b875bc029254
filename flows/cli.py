"""The ``hchem`` command: modules are imported only for the command that was called."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated

import typer

from corpus.errors import PlatformError, disk_error
from flows import logging as hchem_logging
from models.errors import ModelError

GROUPS = {
    "chemicals": "The name repository.",
    "sources": "Where pages come from.",
    "pages": "What was fetched.",
    "documents": "Refined documents with scores and reasons.",
    "entities": "Substances, aliases, merges.",
    "conflicts": "Where sources disagree.",
    "graph": "The graph over Bolt.",
    "questions": "Questions that a query proves.",
    "dataset": "The data set: exports, versions and what differs, training records.",
    "models": "Models, prices, checks.",
    "runs": "What was run, and how it went.",
    "gates": "Quality gates: what they found, and decisions.",
}
TOP_LEVEL = {  # command -> module of flows.commands
    "refresh": "pipeline",
    "run": "pipeline",
    "serve": "pipeline",
    "backfill": "backfill",
    "partitions": "backfill",
    "assist": "assist",
    "up": "server",
    "down": "server",
    "status": "status",
    "doctor": "doctor",
    "report": "status",
    "trace": "trace",
    "review": "review",
    "ask": "ask",
    "clean": "clean",
    "chunk": "chunk",
    "chunkscore": "chunk",
    "benchmark": "benchmark",
    "train": "train",
    "backup": "backup",
    "restore": "backup",
    "gc": "backup",
}
USAGE_ERROR = 2


def build(arguments: list[str]) -> typer.Typer:
    """The command line for these arguments: everything for help, else only what was called."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="From chemical names to an evaluated knowledge base. Start with: hchem refresh",
    )
    app.callback()(_options)
    called = next((word for word in arguments if not word.startswith("-")), "")
    names = [called] if called in GROUPS or called in TOP_LEVEL else [*TOP_LEVEL, *GROUPS]
    loaded: set[str] = set()
    for name in names:
        module_name = TOP_LEVEL.get(name, name)
        if module_name in loaded:
            continue
        loaded.add(module_name)
        module = importlib.import_module(f"flows.commands.{module_name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name, help=GROUPS[name], no_args_is_help=True)
        else:
            app.registered_commands.extend(module.app.registered_commands)
    return app


def _options(
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Say more (-v steps, -vv everything).")
    ] = 0,
    log_json: Annotated[bool, typer.Option("--log-json", help="Write log lines as JSON.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"hchem {installed('hchemsafety')}")
        raise typer.Exit
    hchem_logging.set_up(verbose, as_json=log_json)


def main() -> None:
    """Run the command; errors raised on purpose are one line on stderr and exit code 2."""
    arguments = _verbosity_first(sys.argv[1:])
    try:
        build(arguments)(args=arguments, prog_name="hchem")
    except (PlatformError, ModelError) as error:
        message = " ".join(hchem_logging.without_secrets(str(error)).split())
        gone = getattr(error, "reason", "") == "prefect_gone"
        # Prefect writes of what it could not log, without an end of line
        sys.stderr.write(f"{chr(10) if gone else ''}hchem: {message}\n")
        if gone:
            # Prefect's threads would wait at exit for the server that is gone, for minutes; all of ours is closed
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(USAGE_ERROR)
        sys.exit(USAGE_ERROR)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        if (told := disk_error(error)) is None:
            raise
        sys.stderr.write(f"hchem: {told}\n")
        sys.exit(USAGE_ERROR)


def _verbosity_first(arguments: list[str]) -> list[str]:
    """Let ``-v`` stand anywhere: ``hchem refresh -v`` means ``hchem -v refresh``."""
    moved = [word for word in arguments if word in ("-v", "-vv", "--verbose", "--log-json")]
    return moved + [word for word in arguments if word not in moved]


if __name__ == "__main__":
    main()

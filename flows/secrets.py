"""API keys: from the environment or from Prefect Secret blocks, never from a file.

A block is named by a setting (``models.api_key_block = "openai"``) and read from
the Prefect server when its key is first used, or before a flow begins. The key
stays in this process's memory: settings that are dumped, stored or shown hold
stars in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.errors import SettingsError
from models.errors import ModelRefused
from models.settings import StoredKey

if TYPE_CHECKING:
    from flows.settings import PrefectSettings, Settings


def refuse_keys(values: Mapping[str, Any], place: Path) -> None:
    """Raise SettingsError where a settings file holds an API key or the server's password; it is not shown."""
    if "auth" in (values.get("prefect") or {}):
        raise SettingsError(
            f"{place} sets prefect.auth: passwords are not kept in files; use HCHEM_PREFECT__AUTH"
        )
    for name in ("webhook", "webhook_secret"):
        if name in (values.get("flows") or {}):
            raise SettingsError(
                f"{place} sets flows.{name}: secrets are not kept in files; use HCHEM_FLOWS__{name.upper()}"
            )
    for path in _keys_in(values):
        setting = ".".join(path)
        ways = [f"HCHEM_{'__'.join(path).upper()}"]
        if setting == "models.api_key":
            ways.insert(0, "OPENAI_API_KEY")
        raise SettingsError(
            f"{place} sets {setting}: API keys are not kept in files. Either put it into the environment "
            f"({' or '.join(ways)}), or store it as a Prefect Secret block and name that: {setting}_block"
        )


def _keys_in(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        if name.lower().replace("-", "_") == "api_key":
            yield (*above, name)
        elif isinstance(value, Mapping):
            yield from _keys_in(value, (*above, name))


def attach(settings: Settings) -> None:
    """Tell each key that stands in a block what names it and how it is read; nothing is read yet."""

    def read(block: str, setting: str) -> str:
        return read_block(block, setting, settings.data_dir, settings.prefect)

    for key in stored_keys(settings):
        key.read = read


def stored_keys(settings: Settings) -> list[StoredKey]:
    """The keys that stand in blocks, each knowing the setting that names it."""
    found = []
    for path, key in settings.models.keys().items():
        if isinstance(key, StoredKey):
            if key.read is None:  # one key may serve two endpoints: the first setting names it
                key.setting = f"{path}_block"
            found.append(key)
    return found


def prove(settings: Settings) -> None:
    """Read every key that stands in a block, so that a missing one shows before a run begins.

    Raises SettingsError naming the setting.
    """
    try:
        for key in stored_keys(settings):
            key.get_secret_value()
    except ModelRefused as error:
        raise SettingsError(str(error)) from None


def read_block(block: str, setting: str, data_dir: Path, prefect: PrefectSettings) -> str:
    """The text in a Prefect Secret block.

    Raises ModelRefused (reason ``settings``: a run halts, its items stay to be
    done) where no server answers, the block is missing or holds no text.
    """
    from flows import prefect_server

    what = f"{setting} names the Prefect Secret block {block!r}"
    url = os.environ.get("PREFECT_API_URL", "")
    if not url:
        server = prefect_server.running(data_dir)
        if server is None:
            raise ModelRefused(
                f"{what}, but no Prefect server is running: start it with `hchem up` or set PREFECT_API_URL, "
                "or give the key in the environment",
                reason="settings",
            )
        url = server.url
        os.environ.update(prefect_server.client_environment(data_dir, url, prefect))
    return _load(block, what, url)


def _load(block: str, what: str, url: str) -> str:
    import httpx
    from prefect.blocks.system import Secret
    from prefect.settings import PREFECT_API_URL, temporary_settings

    try:
        with temporary_settings(
            {PREFECT_API_URL: url}
        ):  # Prefect may have been imported before the server was
            loaded: Any = Secret.load(block)
    except ValueError as error:  # what Prefect raises for an unknown name, or for a block of another kind
        raise ModelRefused(
            f"{what}, which the server {url} does not have: store it there (Blocks, Secret) or give the key in the "
            "environment",
            reason="settings",
        ) from error
    except httpx.HTTPError as error:
        raise ModelRefused(
            f"{what}, but the Prefect server {url} does not answer: {type(error).__name__}", reason="settings"
        ) from error
    value = loaded.value.get_secret_value()
    if not isinstance(value, str) or not value.strip():
        raise ModelRefused(f"{what}, which does not hold a text", reason="settings")
    return value.strip()

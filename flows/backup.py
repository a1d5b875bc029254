"""Backup and restore of the platform: catalogue, archive, versions of the data set, reports, settings.

A backup may be taken beside a run: the catalogue is copied as it is at one moment, and
pages point only at records that had reached the disk before. What can be made again
from the catalogue (the graph, the vector index) is not in it. A restore verifies
everything before it writes, unpacks beside the target and moves into place; as long as
that is not done a mark in the data directory keeps runs away.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from sqlalchemy.engine import make_url

from corpus.archive import FOLDER as ARCHIVE
from corpus.archive import whole_size
from corpus.catalogue import Catalogue, leases, portable
from corpus.catalogue.database import is_known_schema, newest_schema
from corpus.errors import CatalogueBusyError, SettingsError, TerminalError
from flows import backup_format as form
from flows.logging import without_secrets
from flows.runtime import UNFINISHED_RESTORE, prepare_data_dir
from flows.settings import Settings, config_path, value_at

Progress = Callable[[str, int, int], None]
_VERSIONS, _REPORTS = "datasets", "reports"
_TAGS = "tags.json"
_PROJECTIONS = ("graph", "vectors")
_STAGING, _REPLACED = ".restoring-", ".replaced-"
_SETTINGS_COPY = "restored-hchem.toml"
_OLD_S = 86_400.0  # longer than any backup takes
_STARS = "********"
_UNIT = 1_000_000  # progress is in MB
_ARCHIVE_LEASE = "archive"
_ALWAYS_OUT = (
    "graph and vector index (made again from the catalogue by the next refresh, or `hchem graph rebuild`)",
    "keys and passwords",
)


@dataclass
class Planned:
    """What a backup holds: files by group with their bytes, and what stays out."""

    files: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, group: str, paths: list[Path]) -> None:
        """Count a group's files."""
        self.files[group] = len(paths)
        self.bytes[group] = sum(_size(path) for path in paths)


def plan(settings: Settings, *, archive: bool, reports: bool, prefect: bool) -> Planned:
    """What ``backup`` would write, by the sizes of now (before compression)."""
    data_dir = settings.data_dir
    found = Planned(left_out=list(_ALWAYS_OUT))
    database = make_url(settings.catalogue_url())
    if database.get_backend_name() == "sqlite":
        found.add("catalogue", [Path(str(database.database))])
    else:
        found.files["catalogue"], found.bytes["catalogue"] = 1, 0
    for group, wanted, paths in (
        ("archive", archive, _archive(data_dir)),
        ("versions of the data set", True, [p for v in _versions(data_dir) for p in _files(v)]),
        ("reports", reports, _files(data_dir / _REPORTS)),
        ("settings file", True, [config_path()] if config_path().is_file() else []),
        ("Prefect's history", prefect, [p for p in [data_dir / form.PREFECT] if p.is_file()]),
    ):
        if wanted:
            found.add(group, paths)
        elif paths:
            found.left_out.append(group)
    return found


def backup(
    settings: Settings, path: Path, *, archive: bool, reports: bool, prefect: bool, progress: Progress
) -> form.Manifest:
    """Write a backup; returns its list. Runs may go on meanwhile.

    Raises SettingsError for a file that is there already or inside what is backed up, TerminalError
    where it cannot be written, CatalogueBusyError while another backup or a collection is at work.
    """
    _check_target(path, settings.data_dir)
    postgresql = make_url(settings.catalogue_url()).get_backend_name() != "sqlite"
    planned = plan(settings, archive=archive, reports=reports, prefect=prefect)
    total = sum(planned.bytes.values())
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        progress("backup (MB)", min(done, total) // _UNIT, max(total // _UNIT, 1))

    # a SQLite file is taken as it is, also of an older schema: a backup comes before an upgrade
    catalogue = Catalogue.open(settings.catalogue_url(), migrate=postgresql)
    try:
        if not catalogue.check_schema():
            raise SettingsError("there is no catalogue here yet, so nothing to back up")
        with (
            _archive_held(catalogue),
            tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.snapshot-") as folder,
        ):
            _clear_leftovers(path, Path(folder))
            copy = Path(folder) / form.CATALOGUE
            rows = portable.snapshot(catalogue, copy)
            with form.writing(path, count) as out:
                _add_file(out, form.CATALOGUE, copy)
                copy.unlink()
                if archive:
                    _add_archive(out, settings.data_dir)
                _add_versions(out, settings.data_dir)
                if reports:
                    _add_tree(out, settings.data_dir, _REPORTS)
                _add_settings(out, settings, planned)
                if prefect:
                    _add_prefect(out, settings.data_dir, Path(folder))
                out.finish(
                    made_at=datetime.now(UTC).isoformat(timespec="seconds"),
                    code_version=metadata.version("hchemsafety"),
                    schema_revision=catalogue.check_schema(),
                    database=catalogue.engine.dialect.name,
                    rows=rows,
                    left_out=planned.left_out,
                )
        progress("backup (MB)", max(total // _UNIT, 1), max(total // _UNIT, 1))
        return form.verify(path)
    except OSError as error:
        raise TerminalError(
            f"backup {path} cannot be written: {error.strerror or error}", reason="disk"
        ) from error
    finally:
        catalogue.close()


def _check_target(path: Path, data_dir: Path) -> None:
    if path.exists():
        raise SettingsError(f"{path} is there already; choose another name")
    if not path.parent.is_dir():
        raise SettingsError(f"folder {path.parent} does not exist")
    for name in (ARCHIVE, _VERSIONS, _REPORTS, *_PROJECTIONS, "prefect"):
        if path.resolve().is_relative_to((data_dir / name).resolve()):
            raise SettingsError(f"{path} is inside what is backed up; choose another place")


def _clear_leftovers(path: Path, mine: Path) -> None:
    """Remove what killed backups left in the folder: to the same file, since the lease says that none is at work, and to
    others once it is old, since those may be of another data directory and at work."""
    old = time.time() - _OLD_S
    for left in (*path.parent.glob(".*.snapshot-*"), *path.parent.glob(".*.partial-*")):
        if not left.name.startswith(f".{path.name}.") and (_modified(left) or old) >= old:
            continue
        if left.is_dir() and left != mine:
            shutil.rmtree(left, ignore_errors=True)
        elif left.is_file():
            left.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    """Seconds of the epoch; 0 for what is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@contextmanager
def _archive_held(catalogue: Catalogue) -> Iterator[None]:
    """Keep collections and restores away from files that are being read."""
    try:
        with leases.held(catalogue, _ARCHIVE_LEASE):
            yield
    except CatalogueBusyError as error:
        raise CatalogueBusyError(
            f"a backup, a collection or a restore is at work ({str(error).partition('(')[2].partition(')')[0]})",
            reason="busy",
        ) from error


def _add_file(out: form.Writer, name: str, path: Path, size: int | None = None) -> None:
    with path.open("rb") as stream:
        status = os.fstat(stream.fileno())
        out.add(name, stream, status.st_size if size is None else size, status.st_mtime)


def _add_archive(out: form.Writer, data_dir: Path) -> None:
    for path in _archive(data_dir):
        _add_file(out, f"{ARCHIVE}/{path.name}", path, whole_size(path))


def _add_versions(out: form.Writer, data_dir: Path) -> None:
    for version in _versions(data_dir):
        try:
            streams = [(path, path.open("rb")) for path in _files(version)]
        except FileNotFoundError:
            continue  # a run that ended has just let this one go
        for path, stream in streams:
            with stream:
                status = os.fstat(stream.fileno())
                name = f"{_VERSIONS}/{version.name}/{path.name}"
                out.add(name, stream, status.st_size, status.st_mtime)
    tags = data_dir / _VERSIONS / _TAGS
    if tags.is_file():
        _add_file(out, f"{_VERSIONS}/{_TAGS}", tags)


def _add_tree(out: form.Writer, data_dir: Path, name: str) -> None:
    for path in _files(data_dir / name):
        try:
            data = path.read_bytes()  # whole: it may be replaced meanwhile
        except FileNotFoundError:
            continue
        out.add(path.relative_to(data_dir).as_posix(), BytesIO(data), len(data))


def _add_settings(out: form.Writer, settings: Settings, planned: Planned) -> None:
    if not config_path().is_file():
        return
    text = _harmless(config_path().read_text(encoding="utf-8"), settings)
    if text is None:
        planned.left_out.append("settings file (its secrets could not be told apart)")
        return
    out.add(form.SETTINGS, BytesIO(text.encode()), len(text.encode()))


def _harmless(text: str, settings: Settings) -> str | None:
    """The settings file with stars for secrets; None where one would stay in it."""
    values = tomllib.loads(text)
    secrets = [
        value
        for place in _secret_places(settings.model_dump())
        if isinstance(value := value_at(values, place), str)
    ]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, _STARS)
    text = re.sub(r"(?<=://)[^/@\s:\"']*:[^/@\s\"']+(?=@)", _STARS, without_secrets(text))
    try:
        left = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    places = _secret_places(settings.model_dump())
    return (
        None if any(value_at(left, place) in secrets for place in places if value_at(values, place)) else text
    )


def _secret_places(values: Any, above: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, SecretStr):
            yield f"{above}{name}"
        elif isinstance(value, dict):
            yield from _secret_places(value, f"{above}{name}.")


def _add_prefect(out: form.Writer, data_dir: Path, folder: Path) -> None:
    """Prefect's history without its blocks: they hold keys, and the one that opens them lies beside them."""
    source = data_dir / form.PREFECT
    if not source.is_file():
        return
    copy = folder / "prefect.db"
    try:
        portable.copy_sqlite(source.resolve(), copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as made:
            made.execute("PRAGMA journal_mode=DELETE")
            made.execute("PRAGMA foreign_keys=OFF")
            for table in ("block_document", "block_document_reference"):
                made.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
            made.execute("DELETE FROM configuration WHERE key = 'ENCRYPTION_KEY'")
            made.execute("VACUUM")  # what was deleted is gone from the file, too
    except sqlite3.Error as error:
        raise TerminalError(f"Prefect's history {source} cannot be copied: {error}", reason="disk") from error
    _add_file(out, form.PREFECT, copy)


def _archive(data_dir: Path) -> list[Path]:
    return sorted((data_dir / ARCHIVE).glob("*.warc.gz"))


def _versions(data_dir: Path) -> list[Path]:
    folder = data_dir / _VERSIONS
    return sorted(p for p in folder.glob("[!.]*") if p.is_dir()) if folder.is_dir() else []


def _files(folder: Path) -> list[Path]:
    """Files below a folder, without hidden ones and what is no plain file."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- restore ----------------------------------------------------------------------


def restore(settings: Settings, path: Path, *, force: bool, progress: Progress) -> form.Manifest:
    """Verify a backup and put it into the data directory and the catalogue of the settings.

    Raises TerminalError for a backup that is not whole or a disk that has no room (nothing is
    changed), SettingsError for a target that is not empty (without ``force``) or a backup of a
    newer version, CatalogueBusyError while a run is on in the target.
    """
    manifest = check(path, progress)
    data_dir = prepare_data_dir(settings.data_dir, unfinished=True)
    with _only_restore(data_dir), closing(Catalogue.open(settings.catalogue_url())) as catalogue:
        again = (data_dir / UNFINISHED_RESTORE).exists()
        if not force and not again and (used := _in_use(data_dir, catalogue)):
            raise SettingsError(
                f"{data_dir} is not empty ({used}); restore into another directory (--into) or replace "
                "what is there (--force)"
            )
        if form.PREFECT in manifest.members:
            _refuse_live_prefect(data_dir)
        _clear(data_dir)
        _check_room(data_dir, manifest)
        staging = Path(tempfile.mkdtemp(dir=data_dir, prefix=_STAGING))
        try:
            with leases.held(catalogue, "run"), _archive_held(catalogue):
                form.unpack(path, manifest, staging, _counter(progress, "unpacking (MB)", manifest.bytes))
                _prove(path, staging / form.CATALOGUE, manifest)
                _put_in_place(catalogue, staging, data_dir)
        except OSError as error:
            half = (data_dir / UNFINISHED_RESTORE).exists()
            what = "run the command again" if half else "nothing was restored"
            raise TerminalError(
                f"{data_dir} cannot be written: {error.strerror or error}; {what}", reason="disk"
            ) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        _clear(data_dir)
        (data_dir / UNFINISHED_RESTORE).unlink(missing_ok=True)
    return manifest


def check(path: Path, progress: Progress) -> form.Manifest:
    """Verify a backup from end to end, writing nothing. Raises as ``restore`` does."""
    try:
        manifest = form.verify(path, _counter(progress, "verifying (MB)", _size(path)))
    except OSError as error:
        raise TerminalError(
            f"backup {path} cannot be read: {error.strerror or error}", reason="disk"
        ) from error
    if not is_known_schema(manifest.schema_revision):
        raise SettingsError(
            f"{path} was made by a newer version (schema {manifest.schema_revision}, this code knows "
            f"{newest_schema()}): upgrade this installation"
        )
    return manifest


def _counter(progress: Progress, step: str, total: int) -> Callable[[int], None]:
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        progress(step, min(done, total) // _UNIT, max(total // _UNIT, 1))

    return count


@contextmanager
def _only_restore(data_dir: Path) -> Iterator[None]:
    with (data_dir / ".restore.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CatalogueBusyError(f"another restore into {data_dir} is at work", reason="busy") from None
        yield


def _in_use(data_dir: Path, catalogue: Catalogue) -> str:
    """What keeps a target from being empty; "" where nothing does."""
    if not portable.is_empty(catalogue):
        return "its catalogue holds rows"
    return next((f"{name}/" for name in form.FOLDERS if _files(data_dir / name)), "")


def _refuse_live_prefect(data_dir: Path) -> None:
    from flows import prefect_server

    if prefect_server.running(data_dir) is not None:
        raise SettingsError("the Prefect server of the target is running; stop it first: hchem down")


def _check_room(data_dir: Path, manifest: form.Manifest) -> None:
    needed = manifest.bytes + manifest.members[form.CATALOGUE].size  # once more while it is put in place
    free = shutil.disk_usage(data_dir).free
    if needed > free:
        raise TerminalError(
            f"{data_dir} has {free / 1e9:.2f} GB free, the backup needs {needed / 1e9:.2f} GB; nothing was restored",
            reason="disk",
        )


def _prove(path: Path, copy: Path, manifest: form.Manifest) -> None:
    """The catalogue of a backup is what its list says, before it takes the place of another one. Raises SettingsError."""
    try:
        rows, revision = portable.content(copy)
    except TerminalError as error:
        raise SettingsError(f"{path} is not a whole backup: its catalogue is damaged ({error})") from error
    if (rows, revision) != (manifest.rows, manifest.schema_revision):
        raise SettingsError(
            f"{path} is not a whole backup: its catalogue is not the one that its list describes "
            f"(schema {revision or 'none'} instead of {manifest.schema_revision}, "
            f"{sum(rows.values())} instead of {sum(manifest.rows.values())} rows)"
        )


def _put_in_place(catalogue: Catalogue, staging: Path, data_dir: Path) -> None:
    """The catalogue first, since that may fail and changes nothing then; renaming hardly can."""
    mark = data_dir / UNFINISHED_RESTORE
    again = mark.exists()
    mark.write_text("a restore into this directory has not ended\n", encoding="utf-8")
    try:
        portable.load(staging / form.CATALOGUE, catalogue)
    except BaseException:
        if not again:
            mark.unlink()
        raise
    replaced = Path(tempfile.mkdtemp(dir=data_dir, prefix=_REPLACED))
    for name in (*form.FOLDERS, *_PROJECTIONS):
        if (data_dir / name).exists():
            (data_dir / name).rename(replaced / name)
        if (staging / name).exists():
            (staging / name).rename(data_dir / name)
    for file, place in ((form.SETTINGS, _SETTINGS_COPY), (form.PREFECT, form.PREFECT)):
        if (staging / file).exists():
            (data_dir / place).parent.mkdir(exist_ok=True)
            for log in ("-wal", "-shm"):
                (data_dir / f"{place}{log}").unlink(missing_ok=True)
            (staging / file).replace(data_dir / place)
    for path in (data_dir / _VERSIONS).glob("*/*"):
        path.chmod(0o444)  # versions are immutable


def _clear(data_dir: Path) -> None:
    """Remove what killed restores left, and what was replaced."""
    for prefix in (_STAGING, _REPLACED):
        for path in data_dir.glob(f"{prefix}*"):
            shutil.rmtree(path, ignore_errors=True)

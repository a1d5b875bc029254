"""Versions of the data set: immutable exports with tags, a pointer to the current one, and what differs between two.

A version is a folder named by its content, so that taking the same state twice
makes one version. Beside the files of the export it holds ``version.json`` (when
it was taken, by which run); tags and the pointer ``current`` stand in ``tags.json``.
Moving the pointer back is the rollback of those who read the data set; the
catalogue goes on from what it knows.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from corpus.catalogue import Catalogue
from corpus.errors import SettingsError
from corpus.ids import canonical_json, digest
from kg.dataset import differences, export

CURRENT, PREVIOUS = "current", "previous"
_MANIFEST, _TAGS, _SUMS = "version.json", "tags.json", "checksums.txt"
_LOCK = ".lock"
_PARTIAL = ".partial-"
_ABANDONED = timedelta(days=1)  # a half-written version of this age has no writer any more
_ID = 16  # hex digits of a version's name


@dataclass(frozen=True)
class Version:
    """One version: its id, when it was taken and by which run, rows per file, tags that name it."""

    id: str
    taken_at: str
    run_id: str
    rows: dict[str, int]
    tags: tuple[str, ...] = ()
    bytes: int = 0


def folder_of(data_dir: Path) -> Path:
    """Where the versions of a data directory are."""
    return data_dir / "datasets"


def take(catalogue: Catalogue, folder: Path, *, run_id: str = "", tag: str = "") -> tuple[Version, bool]:
    """Export the catalogue as a version and point ``current`` at it.

    Returns the version and whether it is new (the same content is one version).
    Raises SettingsError where the folder cannot be written or the tag is no name.
    """
    if tag:
        _check_tag(tag)
    partial = folder / f"{_PARTIAL}{uuid.uuid4().hex}"
    try:
        done = export(catalogue, partial)
        version = digest(*(f"{name} {sum_}" for name, sum_ in sorted(done.checksums.items())))[:_ID]
        manifest = {
            "id": version,
            "taken_at": _moment(folder),
            "run_id": run_id,
            "rows": done.rows,
        }
        (partial / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for path in partial.iterdir():
            path.chmod(0o444)
        with _alone(folder):
            new = not _is_whole(folder / version)
            if new:
                _put_aside(folder / version)  # damaged: made again here
                os.replace(partial, folder / version)
            _write_tags(folder, _pointed(_tags(folder), version) | ({tag: version} if tag else {}))
    except OSError as error:
        raise SettingsError(f"data set versions in {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return find(folder, version), new


def _moment(folder: Path) -> str:
    """Now, but after every version that there is: their order stays when the clock is set back."""
    last = max((datetime.fromisoformat(version.taken_at) for version in versions(folder)), default=None)
    present = datetime.now(UTC)
    return (present if last is None else max(present, last + timedelta(seconds=1))).isoformat(
        timespec="seconds"
    )


def _is_whole(version: Path) -> bool:
    """Whether a version's files are all there, as they were written."""
    try:
        return _manifest(version) is not None and not differences(version)
    except SettingsError:
        return False


def _put_aside(version: Path) -> None:
    """Remove a version at once: renamed first, so that a kill leaves no half of it under its name."""
    if version.exists():
        aside = version.with_name(f"{_PARTIAL}{uuid.uuid4().hex}")
        os.replace(version, aside)
        shutil.rmtree(aside)


def _pointed(tags: dict[str, str], version: str) -> dict[str, str]:
    """Tags with ``current`` moved to a version, and ``previous`` to the one it named."""
    last = tags.get(CURRENT)
    moved = {PREVIOUS: last} if last is not None and last != version else {}
    return {**tags, **moved, CURRENT: version}


def versions(folder: Path) -> list[Version]:
    """All versions, the oldest first; folders whose ``version.json`` cannot be read are none (``unreadable``)."""
    named: dict[str, list[str]] = {}
    for name, version in sorted(_tags(folder).items()):
        named.setdefault(version, []).append(name)
    found = []
    for path in _folders(folder):
        if (data := _manifest(path)) is not None:
            size = sum(file.stat().st_size for file in path.iterdir())
            found.append(Version(**data, tags=tuple(named.get(path.name, ())), bytes=size))
    return sorted(found, key=lambda version: (version.taken_at, version.id))


def unreadable(folder: Path) -> list[Path]:
    """Folders that bear a version's name and are none; the next ``take`` of that content makes them anew."""
    return [path for path in _folders(folder) if _manifest(path) is None]


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[0-9a-f]" * _ID) if path.is_dir())


def _manifest(version: Path) -> dict[str, Any] | None:
    """What ``version.json`` says, or None where it is not ours or says something else than its folder."""
    try:
        data = json.loads((version / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    kinds = {"id": str, "taken_at": str, "run_id": str, "rows": dict}
    if not isinstance(data, dict) or data.get("id") != version.name:
        return None
    if any(not isinstance(data.get(name), kind) for name, kind in kinds.items()):
        return None
    return {name: data[name] for name in kinds}


def find(folder: Path, name: str) -> Version:
    """The version of a tag, an id or the beginning of one. Raises SettingsError naming what there is."""
    known = versions(folder)
    wanted = _tags(folder).get(name, name)
    exact = [version for version in known if version.id == wanted]
    found = exact or [version for version in known if len(wanted) >= 4 and version.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise SettingsError(
            f"{name!r} is the beginning of {', '.join(v.id for v in found)}: write more of it"
        )
    there = ", ".join(f"{v.id} ({', '.join(v.tags)})" if v.tags else v.id for v in known) or "none yet"
    raise SettingsError(f"no version of the data set is called {name!r}; there are: {there}")


def tag(folder: Path, name: str, version: str) -> Version:
    """Name a version. A tag that names another one is moved."""
    _check_tag(name)
    with _alone(folder):
        found = _whole(folder, version)
        _write_tags(folder, {**_tags(folder), name: found.id})
    return find(folder, found.id)


def untag(folder: Path, name: str) -> None:
    """Take a tag away. Raises SettingsError where there is none of this name."""
    _check_tag(name)
    with _alone(folder):
        tags = _tags(folder)
        if tags.pop(name, None) is None:
            raise SettingsError(f"no tag is called {name!r}")
        _write_tags(folder, tags)


def point(folder: Path, version: str) -> Version:
    """Make a version the current one, for example an earlier one after a bad run.

    Raises SettingsError where its files are no longer as they were written.
    """
    with _alone(folder):
        found = _whole(folder, version)
        _write_tags(folder, _pointed(_tags(folder), found.id))
    return find(folder, found.id)


def _whole(folder: Path, name: str) -> Version:
    """The version of this name. Raises SettingsError where its files are not as they were written."""
    found = find(folder, name)
    if broken := differences(folder / found.id):
        raise SettingsError(f"version {found.id} is damaged: {'; '.join(broken)}")
    return found


def copy(folder: Path, version: str, out_dir: Path) -> Version:
    """Copy a version's files to a new directory. Raises SettingsError for a damaged version or a directory in use."""
    found = _whole(folder, version)
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        if any(out_dir.iterdir()):
            raise SettingsError(f"{out_dir} is not empty; choose another directory")
        (out_dir / _SUMS).write_bytes(b"")  # an export that is not finished, until it is
        for path in sorted((folder / found.id).iterdir(), key=lambda path: (path.name == _SUMS, path.name)):
            shutil.copyfile(path, out_dir / path.name)  # without the read-only mode
    except OSError as error:
        raise SettingsError(f"{out_dir} cannot be written: {error.strerror or error}") from error
    return found


def collect(folder: Path, keep: int, *, dry_run: bool = False) -> list[Version]:
    """Remove the oldest versions beyond ``keep`` that no tag names, and what killed runs left; returns them."""
    with _alone(folder):
        free = [version for version in versions(folder) if not version.tags]
        gone = free[: max(0, len(free) - keep)]
        if dry_run:
            return gone
        for version in gone:
            _put_aside(folder / version.id)
        for left in folder.glob(f"{_PARTIAL}*"):
            age = datetime.now(UTC) - datetime.fromtimestamp(left.stat().st_mtime, UTC)
            if age > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
    return gone


# --- differences ------------------------------------------------------------------


@dataclass
class Change:
    """One thing that differs. ``what``: document, fact or question; ``how``: added, changed, retired, stale."""

    what: str
    how: str
    id: str
    text: str
    before: str = ""
    after: str = ""
    why: str = ""


@dataclass
class Diff:
    """What differs between two versions, by kind and in order."""

    old: str
    new: str
    changes: list[Change] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Number of changes by kind, for example ``{"fact added": 3}``."""
        found: dict[str, int] = {}
        for change in self.changes:
            key = f"{change.what} {change.how}"
            found[key] = found.get(key, 0) + 1
        return dict(sorted(found.items()))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "old": self.old,
            "new": self.new,
            "counts": self.counts(),
            "changes": [asdict(c) for c in self.changes],
        }


def diff(folder: Path, old: str, new: str) -> Diff:
    """What was added, changed and retired from one version to the other.

    A document changed when its text did. A fact is what it says of what in which document, wherever
    it stands there: text that moved changes none. A value that took the place of one other under the
    same document, substance, relation and conditions is a change, anything else goes or comes. A question
    of the old version is stale where the new one no longer has it, or answers it otherwise, with the
    reason. Memory holds one key a row of the two versions.
    """
    before, after = _whole(folder, old), _whole(folder, new)
    first, second = folder / before.id, folder / after.id
    found = Diff(before.id, after.id)
    texts = _documents(found, first, second)
    retired = _facts(found, first, second)
    _questions(found, first, second, texts, retired)
    return found


def _documents(found: Diff, first: Path, second: Path) -> dict[str, str]:
    """Adds what became of the documents; returns those that went or changed, with how."""
    old = {
        row["document_id"]: (row["version_id"], row["title"] or row["url"]) for row in rows(first, "corpus")
    }
    new = {
        row["document_id"]: (row["version_id"], row["title"] or row["url"]) for row in rows(second, "corpus")
    }
    gone: dict[str, str] = {}
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            found.changes.append(Change("document", "added", key, new[key][1]))
        elif key not in new:
            gone[key] = "retired"
            found.changes.append(Change("document", "retired", key, old[key][1]))
        elif old[key][0] != new[key][0]:
            gone[key] = "changed"
            found.changes.append(Change("document", "changed", key, new[key][1], old[key][0], new[key][0]))
    return gone


_Triple = tuple[str, str, str, str]  # document and the three keys


@dataclass(frozen=True, slots=True)
class _Fact:
    id: str
    place: str  # document, subject, relation, conditions: what the value answers
    said: str
    subject: str
    triple: _Triple


def _facts(found: Diff, first: Path, second: Path) -> set[_Triple]:
    """Adds what became of the facts; returns what documents no longer say."""
    old = _said(first)
    new = _said(second)
    gone: dict[str, list[_Fact]] = {}
    come: dict[str, list[_Fact]] = {}
    for key in sorted(old.keys() - new.keys()):
        gone.setdefault(old[key][0].place, []).append(old[key][0])
    for key in sorted(new.keys() - old.keys()):
        come.setdefault(new[key][0].place, []).append(new[key][0])
    for place in sorted(gone.keys() | come.keys()):
        left, right = gone.get(place, []), come.get(place, [])
        if len(left) == len(right) == 1:
            fact, now = left[0], right[0]
            found.changes.append(Change("fact", "changed", now.id, _of(now), fact.said, now.said))
            continue
        for fact in left:
            found.changes.append(Change("fact", "retired", fact.id, _of(fact), before=fact.said))
        for fact in right:
            found.changes.append(Change("fact", "added", fact.id, _of(fact), after=fact.said))
    return _triples(old) - _triples(new)


def _triples(said: dict[str, list[_Fact]]) -> set[_Triple]:
    return {fact.triple for facts in said.values() for fact in facts}


def _of(fact: _Fact) -> str:
    return f"{fact.subject} {fact.triple[2]}"


def _said(version: Path) -> dict[str, list[_Fact]]:
    """The facts of a version by what they say; the same said twice in a document is one."""
    found: dict[str, list[_Fact]] = {}
    for row in rows(version, "triples"):
        place = digest(
            row["document_id"], row["subject_key"] or row["subject"], row["relation"],
            canonical_json(row["conditions"]), row["polarity"], row["modality"],
        )  # fmt: skip
        value = canonical_json([row["object_label"], row["object_key"] or row["object"], row["value"]])
        names = row["subject_names"]
        subject = names.get(row["language"]) or row["subject"]
        negative = "not " if row["polarity"] == "negative" else ""
        triple = (row["document_id"], row["subject_key"], row["relation"], row["object_key"])
        fact = _Fact(row["id"], place, negative + row["object"], subject, triple)
        found.setdefault(digest(place, value), []).append(fact)
    return found


def _questions(found: Diff, first: Path, second: Path, texts: dict[str, str], retired: set[_Triple]) -> None:
    old = {row["id"]: row for row in map(_question, rows(first, "qa"))}
    new = {row["id"]: row for row in map(_question, rows(second, "qa"))}
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            found.changes.append(
                Change("question", "added", key, new[key]["question"], after=new[key]["answer"])
            )
            continue
        row = old[key]
        if key in new and new[key]["answers"] == row["answers"]:
            continue
        after = new[key]["answer"] if key in new else ""
        why = "answer" if key in new else _why(row, texts, retired)
        found.changes.append(Change("question", "stale", key, row["question"], row["answer"], after, why))


def _question(row: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a question, a few hundred bytes of a row of some kilobytes."""
    return {
        "id": row["id"],
        "question": row["question"],
        "answer": row["answer"],
        "answers": digest(canonical_json(row["answer_set"])),
        "documents": {reference["document_id"] for reference in row["references"]},
        "facts": {(subject, relation, thing) for subject, relation, thing in row["triples"]},
    }


def _why(row: dict[str, Any], texts: dict[str, str], retired: set[_Triple]) -> str:
    """Why a question is no longer asked: the nearest reason that the two versions show."""
    ways = {texts[document] for document in row["documents"] if document in texts}
    if "retired" in ways:
        return "document retired"
    if any((document, *fact) in retired for document in row["documents"] for fact in row["facts"]):
        return "fact retired"
    if ways:
        return "document changed"
    return "no longer asked"  # another question took its place, or a check refuses it now


def rows(version: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file of a version's folder. Raises SettingsError where it cannot be read."""
    path = version / f"{name}.jsonl"
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"version {version.name} is damaged: {path.name} cannot be read ({error})"
        ) from error


# --- tags -------------------------------------------------------------------------


def _check_tag(name: str) -> None:
    """A tag is a name that no version id and no pointer can be taken for."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not plain.isalnum() or len(name) > 64 or name.startswith("-") or name in (CURRENT, PREVIOUS):
        shown = name if len(name) <= 64 else f"{name[:64]}…"
        raise SettingsError(
            f"{shown!r} is no tag: letters, digits, '-' (not the first), '_' and '.', at most 64, not {CURRENT} or {PREVIOUS}"
        )
    if len(name) >= 4 and set(name) <= set("0123456789abcdef"):
        raise SettingsError(f"{name!r} looks like the id of a version; choose another tag")


def _tags(folder: Path) -> dict[str, str]:
    try:
        data = json.loads((folder / _TAGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{folder / _TAGS} cannot be read ({error}); mend or remove it") from error
    if not isinstance(data, dict):
        raise SettingsError(f"{folder / _TAGS} holds no tags; mend or remove it")
    return {str(name): str(version) for name, version in data.items()}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time changes tags and folders; the others wait."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a")
    except OSError as error:
        raise SettingsError(f"{folder} cannot be written: {error.strerror or error}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write_tags(folder: Path, tags: dict[str, str]) -> None:
    temporary = folder / f".{_TAGS}.tmp"
    try:
        temporary.write_text(json.dumps(tags, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, folder / _TAGS)
    except OSError as error:
        raise SettingsError(f"{folder / _TAGS} cannot be written: {error.strerror or error}") from error

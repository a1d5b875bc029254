"""The export: the paper's form, same bytes from any order, card and checksums right."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Question
from corpus.errors import SettingsError
from kg.dataset import differences, export
from kg.schema import substance_key
from tests.kg.graph_builders import MADE, data_sheet, entity

FILES = ("corpus.jsonl", "qa.jsonl", "eval.jsonl", "triples.jsonl", "corpus.parquet", "qa.parquet", "eval.parquet",
         "triples.parquet", "alpaca.jsonl", "sharegpt.jsonl", "README.md", "checksums.txt")  # fmt: skip


def question(at: int, **more: Any) -> Question:
    fields: dict[str, Any] = {
        "question_id": f"q{at:03}", "kind": "boolean", "language": "zh", "question": f"问{at}｜?", "answer": "是",
        "answer_set": [{"key": "yes", "text": ""}], "proof": {"cypher": "RETURN 'yes' AS answer", "parameters": {}},
        "references": [{"document_id": "d", "version_id": "v", "start": 0, "end": 2, "quote": "闪点", "url": "u"}],
        "section": 9, "metapath": "Substance-HAS_H->HazardStatement", "template": "is_listed/1", "snapshot_id": "snap",
        "substances": ["x"], "split": "train", "curated": False, "state": "kept",
    }  # fmt: skip
    return Question(**{**fields, **more})


def filled(path: Path, *, reverse: bool = False, port: int = 1) -> Catalogue:
    catalogue = Catalogue.open(f"sqlite:///{path}/c.db")
    rows = [
        question(1), question(2, split="eval", curated=True, kind="multi_hop", hops=2),
        question(3, state="rejected", reason="shortcut"), question(4, kind="single_hop", language="en", section=None),
    ]  # fmt: skip
    sheets = [data_sheet(made, language) for made in MADE[:2] for language in ("zh", "en")]
    with catalogue.writing() as session:
        for made in MADE[:2]:
            entity(session, substance_key(made.cas), zh=made.zh, en=made.en)
        for sheet in reversed(sheets) if reverse else sheets:
            sheet.store(session)
        session.add_all(reversed(rows) if reverse else rows)
    with catalogue.writing() as session:
        for row in session.scalars(select(Document)):
            row.url = f"http://127.0.0.1:{port}/x"  # where it was fetched from is not what it is
    return catalogue


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_form(tmp_path: Path) -> None:
    done = export(filled(tmp_path), tmp_path / "out")
    assert sorted(done.rows) == sorted(FILES)
    qa = lines(tmp_path / "out" / "qa.jsonl")
    assert [row["id"] for row in qa] == ["q001", "q002", "q004"]
    assert {"question", "answer", "reference"} <= set(qa[0])
    assert qa[0]["reference"] == ["闪点"]
    assert [row["id"] for row in lines(tmp_path / "out" / "eval.jsonl")] == ["q002"]
    training = [row["id"] for row in lines(tmp_path / "out" / "alpaca.jsonl")]
    assert training == ["q001", "q004"] == [row["id"] for row in lines(tmp_path / "out" / "sharegpt.jsonl")]
    texts = {row["document_id"]: row["text"] for row in lines(tmp_path / "out" / "corpus.jsonl")}
    triples = lines(tmp_path / "out" / "triples.jsonl")
    assert len(triples) > 50
    for triple in triples:
        assert texts[triple["document_id"]][triple["start"] : triple["end"]] == triple["quote"]
    table = pq.read_table(tmp_path / "out" / "qa.parquet")
    assert table.num_rows == 3
    assert table.column("section").to_pylist() == [9, 9, None]
    assert json.loads(table.column("proof")[0].as_py())["cypher"].startswith("RETURN")


def test_card_and_checksums(tmp_path: Path) -> None:
    export(filled(tmp_path), tmp_path / "out")
    written = (tmp_path / "out" / "checksums.txt").read_text().splitlines()
    sums = {name: checksum for checksum, name in (line.split("  ") for line in written)}
    assert set(sums) == set(FILES) - {"checksums.txt"}
    for name, checksum in sums.items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == checksum
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "Graph snapshot: `snap`" in card
    assert "| rejected: shortcut | 1 |" in card
    assert "| multi_hop | 1 | 0 | 0 | 1 | 1 |" in card
    assert "| made up | 2 |" in card


def test_same_bytes_whatever_the_order_the_port_and_the_repetition(tmp_path: Path) -> None:
    for name, options in (("a", {}), ("b", {"reverse": True, "port": 2})):
        (tmp_path / name).mkdir()
        export(filled(tmp_path / name, **options), tmp_path / name / "out")  # type: ignore[arg-type]
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/a/c.db")
    export(catalogue, tmp_path / "a" / "out")
    for file in FILES:
        assert (tmp_path / "a" / "out" / file).read_bytes() == (tmp_path / "b" / "out" / file).read_bytes(), (
            file
        )
    assert not [p for p in (tmp_path / "a" / "out").iterdir() if p.name.startswith(".")]


HOSTILE = (
    "a|b\\|c", "`}) DETACH DELETE n //", "<script>alert(1)</script>", "two\nlines\r\u2028\u0085end", "\u202eright-to-left\u202c",
    "\"quote\" and 'quote'", "👩‍🔬", "长" * 10_000, "nul\u0001 bell\u0007",
)  # fmt: skip


def test_hostile_text_comes_back_as_it_is(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with catalogue.writing() as session:
        for n, name in enumerate(HOSTILE):
            key = f"name:{n}"
            entity(session, key, zh=name, en=name)
            sheet = data_sheet(MADE[0], "zh")
            sheet.url, sheet.title, sheet.source = f"http://hostile.test/{n}", name, name[:60]
            for fact in sheet.facts:
                fact["subject_key"], fact["subject"] = key, name
            sheet.store(session)
            session.add(question(n, question=name, answer=name, substances=[key]))
    out = tmp_path / "out"
    export(catalogue, out)
    for file, field in (("qa", "question"), ("corpus", "title"), ("triples", "subject")):
        rows = lines(out / f"{file}.jsonl")
        assert {row[field] for row in rows} == set(HOSTILE)
        assert len((out / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()) == len(rows)
        table = pq.read_table(out / f"{file}.parquet")
        assert table.column(field).to_pylist() == [row[field] for row in rows]
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "<script>" not in card
    part = card[card.index("## Documents and licences") : card.index("## Fields")]
    rows_shown = [line for line in part.splitlines() if line.startswith("|")]
    assert len(rows_shown) == len(HOSTILE) + 2
    assert all(
        len(list(line.replace("\\\\", "").replace("\\|", "")[1:-1].split("|"))) == 4 for line in rows_shown
    )
    assert differences(out) == []


def test_columns_do_not_depend_on_the_data(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    export(Catalogue.open(f"sqlite:///{empty}/c.db"), empty / "out")
    export(filled(tmp_path), tmp_path / "out")
    for name in ("corpus", "qa", "eval", "triples"):
        full = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        assert pq.read_schema(empty / "out" / f"{name}.parquet").equals(full.schema)
        rows = lines(tmp_path / "out" / f"{name}.jsonl")
        assert full.column_names == list(rows[0])
        for column in full.column_names:
            values = [row[column] for row in rows]
            nested = any(isinstance(value, dict | list) for value in values)
            read = full.column(column).to_pylist()
            assert ([json.loads(value) for value in read] if nested else read) == values


def test_an_export_that_did_not_finish_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="holds no export"):
        differences(tmp_path)
    (tmp_path / "checksums.txt").write_bytes(b"")
    with pytest.raises(SettingsError, match="was not finished"):
        differences(tmp_path)


def test_empty_catalogue_exports_empty_files(tmp_path: Path) -> None:
    done = export(Catalogue.open(f"sqlite:///{tmp_path}/c.db"), tmp_path / "out")
    assert done.rows["qa.jsonl"] == 0
    assert pq.read_table(tmp_path / "out" / "qa.parquet").num_rows == 0


def test_unwritable_directory_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be written"):
        export(Catalogue.open(f"sqlite:///{tmp_path}/c.db"), tmp_path / "file" / "out")


def test_files_that_no_export_wrote_are_left_alone(tmp_path: Path) -> None:
    catalogue = filled(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("precious")
    with pytest.raises(SettingsError, match=r"corpus\.jsonl"):
        export(catalogue, folder)
    assert (folder / "corpus.jsonl").read_text() == "precious"
    again = tmp_path / "again"
    export(catalogue, again)
    (again / "checksums.txt").write_bytes(b"")  # as a kill half-way leaves it
    assert export(catalogue, again).checksums == export(catalogue, tmp_path / "fresh").checksums

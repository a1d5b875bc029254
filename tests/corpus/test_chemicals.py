"""The name repository: built-in sources, the user's lists, what a name may claim."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, ChemicalName
from corpus.chemicals import (
    ChemicalRecord,
    add_chemical,
    build_repository,
    find_chemicals,
    import_list,
    load_chemicals,
    normalise_name,
    package_data,
    read_user_list,
    table_rows,
    valid_cas,
)
from corpus.errors import SettingsError
from corpus.settings import ChemicalSettings


@pytest.fixture(scope="module")
def repository() -> dict[str, ChemicalRecord]:
    return {record.key: record for record in build_repository()}


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue.open(f"sqlite:///{tmp_path}/c.db")


def _atoms(formula: str) -> Counter[str]:
    atoms: Counter[str] = Counter()
    for symbol, number in re.findall(r"([A-Z][a-z]?)(\d*)", formula):
        atoms[symbol] += int(number or 1)
    return atoms


def test_the_table_is_right_against_the_package() -> None:
    rows = table_rows()
    assert len(rows) >= 150
    assert all(valid_cas(row["cas"]) for row in rows)
    assert len({row["cas"] for row in rows}) == len(rows)
    assert all(row["name_zh"] and row["name_en"] for row in rows)
    assert all(re.fullmatch(r"(\d{4}(\|\d{4})*)?", row["un"]) for row in rows)
    known: dict[str, list[str]] = {}
    for path in sorted((package_data() / "Identifiers").glob("*.tsv")):
        if path.name.startswith(("chemical", "Inorganic")):
            for line in path.open(encoding="utf-8"):
                fields = line.split("\t", 3)
                known.setdefault(fields[1], []).append(fields[2])
    compared = 0
    for row in rows:
        if row["formula"] and row["cas"] in known:
            compared += 1
            assert any(_atoms(row["formula"]) == _atoms(f) for f in known[row["cas"]]), row
    assert compared > 300


def test_no_name_of_the_table_means_two_substances() -> None:
    owners: dict[str, set[str]] = {}
    for row in table_rows():
        for column in ("name_zh", "name_en", "aliases_zh", "aliases_en", "solutions"):
            for name in filter(None, row[column].split("|")):
                owners.setdefault(normalise_name(name), set()).add(row["cas"])
    assert {name: keys for name, keys in owners.items() if len(keys) > 1} == {}


def test_the_default_selection_is_large_and_flagged(repository: dict[str, ChemicalRecord]) -> None:
    flagged = [record for record in repository.values() if record.hazards]
    assert len(flagged) >= 1000
    assert all(valid_cas(record.key) for record in flagged)
    formaldehyde = repository["50-00-0"]
    assert formaldehyde.hazards["IARC"] == "group 1"
    assert formaldehyde.hazards["NTP"] == "known"
    kinds = {name.text: name.kind for name in formaldehyde.names}
    assert kinds["甲醛"] == "common"
    assert kinds["福尔马林"] == kinds["formalin"] == "solution"


def test_names_of_another_substance_are_left_out(repository: dict[str, ChemicalRecord]) -> None:
    # the NFPA list of the package calls mesityl oxide "Methyl Isobutyl Ketone"
    assert "methyl isobutyl ketone" not in {normalise_name(n.text) for n in repository["141-79-7"].names}
    # its PubChem synonyms call arsenic "arsenic hydride" and formaldehyde "paraformaldehyde"
    for key, wrong in (("7440-38-2", "arsenic hydride"), ("50-00-0", "paraformaldehyde")):
        assert wrong not in {n.text.lower() for n in repository[key].names}


def test_few_names_are_shared(repository: dict[str, ChemicalRecord]) -> None:
    owners: dict[str, set[str]] = {}
    for record in repository.values():
        for name in record.names:
            owners.setdefault(normalise_name(name.text), set()).add(record.key)
    assert sum(len(keys) > 1 for keys in owners.values()) < 20


def test_loading_twice_changes_nothing_and_keeps_the_users_names(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    settings = ChemicalSettings(lists=("NFPA 497",))
    first = load_chemicals(catalogue, settings)
    assert first.added > 400
    listed = tmp_path / "mine.csv"
    listed.write_text("name,cas,aliases,name_zh\nmethanol,67-56-1,木酒精,甲醇\n", encoding="utf-8")
    assert import_list(catalogue, listed).updated == 1
    again = load_chemicals(catalogue, settings)
    assert (again.added, again.updated) == (0, 0)
    with catalogue.reading() as session:
        assert find_chemicals(session, "木酒精") == ["67-56-1"]
        assert session.get_one(Chemical, "67-56-1").un_numbers == ["1230"]


def test_bad_rows_are_reported_by_line_and_the_rest_loads(catalogue: Catalogue, tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    rows = "名称,CAS号,别名,UN号\n甲苯,108-88-3,甲基苯|苯甲烷,UN1294\n乙醇,64-17-6,,\n,,,\n某混合物,,别称,\n苯,71-43-2,,1114\n甲苯,108-88-3,妥路,\n"
    listed.write_bytes(rows.encode("gb18030"))
    report = import_list(catalogue, listed)
    assert report.errors == ["list.csv, line 3: '64-17-6' is not a CAS number (form or check digit)"]
    assert report.added == 3
    with catalogue.reading() as session:
        names = set(session.scalars(select(ChemicalName.name).where(ChemicalName.key == "108-88-3")))
        assert names == {"甲苯", "甲基苯", "苯甲烷", "妥路"}
        assert session.get_one(Chemical, "108-88-3").un_numbers == ["1294"]
        (minted,) = find_chemicals(session, "某混合物")
        assert minted.startswith("name-")
    assert import_list(catalogue, listed).unchanged == 3


def test_json_lists(tmp_path: Path) -> None:
    listed = tmp_path / "list.json"
    listed.write_text(
        json.dumps(
            [{"name": "acetone", "cas": "67-64-1", "aliases": ["2-propanone", "阿西通"]}, 7, {"name": ""}]
        ),
        encoding="utf-8",
    )
    records, errors = read_user_list(listed)
    assert [record.key for record in records] == ["67-64-1"]
    assert {(n.text, n.language) for n in records[0].names} == {
        ("acetone", "en"), ("2-propanone", "en"), ("阿西通", "zh"),
    }  # fmt: skip
    assert len(errors) == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "foo,bar\n1,2\n", "first line must name the columns"),
        ("a.json", "{", "not valid JSON"),
        ("a.csv", None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_list_is_a_clear_error(
    tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        read_user_list(path)


def test_adding_one(catalogue: Catalogue) -> None:
    key, report = add_chemical(catalogue, "methanol", cas="67-56-1", name_zh="甲醇")
    assert (key, report.added) == ("67-56-1", 1)
    assert add_chemical(catalogue, "Methanol", cas="67-56-1")[1].unchanged == 1
    with pytest.raises(SettingsError, match="check digit"):
        add_chemical(catalogue, "x", cas="67-56-2")


def test_an_open_quotation_mark_does_not_swallow_the_rows_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text('name,cas\n"unclosed,71-43-2\n甲苯,108-88-3\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="quotation mark"):
        read_user_list(path)

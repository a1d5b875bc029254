"""The name repository: built-in sources, the user's lists, what a name may claim."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chemical, ChemicalClaim, ChemicalName
from corpus.chemical_claims import sources_of
from corpus.chemicals import (
    PACKAGE,
    ChemicalRecord,
    add_chemical,
    build_repository,
    find_chemicals,
    import_list,
    load_chemicals,
    normalise_name,
    package_data,
    read_user_list,
    remove_chemical,
    remove_list,
    store_records,
    table_rows,
    valid_cas,
)
from corpus.errors import SettingsError
from corpus.settings import ChemicalSettings
from tests.conftest import SAMPLES


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


def test_the_size_of_the_default_selection(repository: dict[str, ChemicalRecord]) -> None:
    flagged = [record for record in repository.values() if record.hazards]
    chinese = [record for record in flagged if any(name.language == "zh" for name in record.names)]
    assert (len(repository), len(flagged), len(chinese)) == (1655, 1572, 265)
    assert all(record.cas == record.key and valid_cas(record.key) for record in repository.values())


def test_few_names_are_shared_and_no_chinese_one(repository: dict[str, ChemicalRecord]) -> None:
    owners: dict[tuple[str, str], set[str]] = {}
    for record in repository.values():
        for name in record.names:
            owners.setdefault((name.language, normalise_name(name.text)), set()).add(record.key)
    shared = {key: keys for key, keys in owners.items() if len(keys) > 1}
    assert [key for key in shared if key[0] == "zh"] == []
    assert len(shared) < 10
    assert [name.text for name in repository["72-20-8"].names] == ["Endrin"]  # the package says dieldrin
    assert [name.text for name in repository["60-57-1"].names] == ["Dieldrin"]


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


ROWS = [
    ["name", "CAS No.", "aliases", "中文名", "formula", "UN number"],
    ["methanol", "６７－５６－１", "wood spirit|carbinol A", "甲醇", "ＣＨ₄Ｏ", "ＵＮ１２３０"],
    ["benzene", "71-43-2", "", "苯", "C6H6", "1114"],
    ["benzene", "71-43-2", "benzol", "苯", "", ""],
    ["bad one", "71-43-3", "", "", "", ""],
    ["toluene", "108-88-3", "", "甲苯", "C7H8?", "12"],
    ["Ｘｙｌｅｎｅ", "1330-20-7", "", "二甲苯", "", ""],
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_lists_as_spreadsheet_programs_write_them(tmp_path: Path, encoding: str, separator: str) -> None:
    text = "\r\n".join(separator.join(row) for row in ROWS) + "\r\n"
    if encoding == "gb18030":
        text = text.replace("₄", "4")
    path = tmp_path / "list.csv"
    path.write_bytes(text.encode(encoding))
    records, errors = read_user_list(path)
    by_key = {record.key: record for record in records}
    assert sorted(by_key) == ["108-88-3", "1330-20-7", "67-56-1", "71-43-2"]
    methanol = by_key["67-56-1"]
    assert [name.text for name in methanol.names] == ["methanol", "甲醇", "wood spirit", "carbinol A"]
    assert (methanol.formula, methanol.un_numbers) == ("CH4O", ("1230",))
    assert [name.text for name in by_key["71-43-2"].names] == ["benzene", "苯", "benzol"]
    assert by_key["1330-20-7"].names[0].text == "Xylene"
    assert (by_key["108-88-3"].formula, by_key["108-88-3"].un_numbers) == (None, ())
    assert errors == ["list.csv, line 5: '71-43-3' is not a CAS number (form or check digit)"]


def _import(catalogue: Catalogue, tmp_path: Path, text: str, name: str = "mine.csv", **how: bool) -> Any:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return import_list(catalogue, path, **how)


def test_what_cannot_be_read_is_said_by_line(catalogue: Catalogue, tmp_path: Path) -> None:
    text = (
        "sep=;\nname;cas\nacetone;67-64-1\n1;2-dichloroethane;107-06-2\n67-56-1;\n64-17-5;71-43-2\nethanol\n"
    )
    report = _import(catalogue, tmp_path, text)
    assert report.errors == [
        "mine.csv, line 4: 3 cells for 2 columns (a name with a separator needs quotation marks)",
        "mine.csv, line 6: two CAS numbers: 71-43-2 and 64-17-5",
    ]
    assert report.added == 3  # a CAS number in the wrong column is one; a missing cell is no fault
    lines = [
        '{"name": "苯", "cas": "71-43-2"}',
        "{",
        "[1]",
        '{"name": ["a"]}',
        '{"cas": 7}',
        '{"中文名": "甲苯", "CAS号": "108-88-3"}',
    ]
    report = _import(catalogue, tmp_path, "\n".join(lines), "mine.jsonl")
    assert [error.split(":")[0] for error in report.errors] == [f"mine.jsonl, line {n}" for n in (2, 3, 4, 5)]
    assert report.added == 2


def test_a_name_of_two_substances_is_a_case_for_review(catalogue: Catalogue, tmp_path: Path) -> None:
    _import(catalogue, tmp_path, "name,cas,name_zh\nbenzene,71-43-2,苯\n", "first.csv")
    text = "name,cas,name_zh\ntoluene,108-88-3,苯\nxylene A,1330-20-7,混苯\nxylene B,106-42-3,混苯\n"
    report = _import(catalogue, tmp_path, text)
    assert report.reviews == [
        "mine.csv, line 2: '苯' is also a name of 71-43-2: not given to 108-88-3",
        "mine.csv, line 3: '混苯' is also a name of 106-42-3: not given to 1330-20-7",
        "mine.csv, line 4: '混苯' is also a name of 1330-20-7: not given to 106-42-3",
    ]
    assert (report.added, report.errors) == (3, [])
    with catalogue.reading() as session:
        assert find_chemicals(session, "苯") == ["71-43-2"]
        assert find_chemicals(session, "toluene") == ["108-88-3"]
        assert find_chemicals(session, "混苯") == []
    again = _import(catalogue, tmp_path, text)
    assert (again.unchanged, len(again.reviews)) == (3, 3)
    assert _import(catalogue, tmp_path, text, shared=True).reviews == []
    with catalogue.reading() as session:
        assert find_chemicals(session, "苯") == ["108-88-3", "71-43-2"]
    assert len(_import(catalogue, tmp_path, text).reviews) == 0  # what was accepted is not asked again


def test_a_row_without_cas_extends_the_substance_it_names(catalogue: Catalogue, tmp_path: Path) -> None:
    text = "name,cas,name_zh,aliases\n,,丙酮,阿西通\nacetone,67-64-1,丙酮,\nbenzene,71-43-2,苯,\nacetone,,苯,\nnew thing,,,other word\n"
    report = _import(catalogue, tmp_path, text)
    assert report.errors == ["mine.csv, line 5: the names lead to 67-64-1, 71-43-2; give the CAS number"]
    with catalogue.reading() as session:
        assert find_chemicals(session, "阿西通") == ["67-64-1"]
        (minted,) = find_chemicals(session, "other word")
        assert minted.startswith("name-")
    later = _import(catalogue, tmp_path, "name_zh,aliases\n丙酮,木酮\n", "later.csv")
    assert (later.updated, later.added) == (1, 0)
    with pytest.raises(SettingsError, match="lead to"):
        add_chemical(catalogue, "acetone", name_zh="苯")


def test_dry_run_and_taking_back(catalogue: Catalogue, tmp_path: Path) -> None:
    load_chemicals(catalogue, ChemicalSettings(lists=("NFPA 497",)))
    before = _state(catalogue)
    text = "name,cas,name_zh,aliases,un\nmethanol,67-56-1,甲醇,木酒精,9999\nnew thing,50-32-8,新物,,\n"
    assert _import(catalogue, tmp_path, text, dry_run=True).added == 1
    assert _state(catalogue) == before
    assert _import(catalogue, tmp_path, text).updated == 1
    assert (
        add_chemical(catalogue, "methanol", cas="67-56-1", aliases=["另一个名"], dry_run=True)[1].updated == 1
    )
    add_chemical(catalogue, "own thing", cas="1310-73-2", name_zh="自有名")
    changed = _state(catalogue)
    assert (remove_list(catalogue, "mine.csv", dry_run=True).names, _state(catalogue)) == (3, changed)
    report = remove_list(catalogue, "mine.csv")
    assert (report.names, report.substances) == (3, 1)
    own = remove_chemical(catalogue, "own thing", name="自有名")
    assert (own.names, own.substances) == (1, 0)
    assert remove_chemical(catalogue, "own thing").names == 1
    assert _state(catalogue) == before
    for wrong in ("67-56-1", "no such thing"):
        with pytest.raises(SettingsError):
            remove_chemical(catalogue, wrong)
    with pytest.raises(SettingsError, match="built-in"):
        remove_chemical(catalogue, "67-56-1", name="甲醇")
    with pytest.raises(SettingsError, match=r"mine\.csv"):
        remove_list(catalogue, "mine.csv")


def test_a_built_in_name_that_a_list_had_first_is_not_lost(catalogue: Catalogue, tmp_path: Path) -> None:
    _import(catalogue, tmp_path, "name,cas,name_zh,un\nmethanol,67-56-1,甲醇,9999\n")
    load_chemicals(catalogue, ChemicalSettings(lists=("NFPA 497",)))
    remove_list(catalogue, "mine.csv")
    with catalogue.reading() as session:
        assert find_chemicals(session, "甲醇") == ["67-56-1"]
        assert session.get_one(Chemical, "67-56-1").un_numbers == ["1230"]


def test_what_two_lists_say_stays_while_one_of_them_says_it(catalogue: Catalogue, tmp_path: Path) -> None:
    """Names, formula and UN numbers: removing one list takes back exactly what only that list brought."""
    text = "name,cas,name_zh,aliases,formula,un\nmethanol,67-56-1,甲醇,{alias},{formula},{un}\n"
    _import(catalogue, tmp_path, text.format(alias="word a|木醇", formula="CH4O", un="1230"), "a.csv")
    _import(catalogue, tmp_path, text.format(alias="word b|木醇", formula="CH3OH", un="1230;1992"), "b.csv")
    with catalogue.reading() as session:
        rows = {row.name: row for row in session.scalars(select(ChemicalName))}
        shared = {name: [s.split(" #")[0] for s in sources_of(session, rows[name])] for name in rows}
    assert shared["甲醇"] == shared["methanol"] == ["user list a.csv", "user list b.csv"]
    assert [source.removesuffix(", alias") for source in (shared["word a"][0], shared["word b"][0])] == [
        "user list a.csv", "user list b.csv",
    ]  # fmt: skip
    assert remove_list(catalogue, "a.csv").removed == {"67-56-1": ["word a"]}
    with catalogue.reading() as session:
        chemical = session.get_one(Chemical, "67-56-1")
        assert (chemical.formula, chemical.un_numbers) == ("CH3OH", ["1230", "1992"])
        rows = {row.name: row for row in session.scalars(select(ChemicalName))}
        assert set(rows) == {"methanol", "甲醇", "木醇", "word b"}
        assert all("b.csv" in source for row in rows.values() for source in sources_of(session, row))
        assert {name for name, row in rows.items() if not row.source.endswith(", alias")} == {
            "methanol",
            "甲醇",
        }
    report = remove_list(catalogue, "b.csv")
    assert (report.names, report.gone) == (4, ["67-56-1"])
    assert _state(catalogue) == set()
    with catalogue.reading() as session:
        assert list(session.scalars(select(ChemicalClaim))) == []


def test_a_list_beside_the_repository_gives_back_only_its_own(catalogue: Catalogue, tmp_path: Path) -> None:
    load_chemicals(catalogue, ChemicalSettings(lists=("NFPA 497",)))
    before = _state(catalogue)
    _import(
        catalogue, tmp_path, "name,cas,un,formula\nmethanol,67-56-1,9999;1230,XX2\n", "known.csv"
    )  # no new name
    add_chemical(catalogue, "甲醇", cas="67-56-1", un="8888", aliases=["另一个名"])
    with catalogue.reading() as session:
        assert session.get_one(Chemical, "67-56-1").un_numbers == ["1230", "8888", "9999"]
    report = remove_list(catalogue, "known.csv")
    assert (report.names, report.gone) == (0, [])
    with catalogue.reading() as session:
        chemical = session.get_one(Chemical, "67-56-1")
        assert (chemical.un_numbers, chemical.formula) == (["1230", "8888"], "CH4O")
    assert remove_chemical(catalogue, "67-56-1").removed == {"67-56-1": ["另一个名"]}
    assert _state(catalogue) == before
    with pytest.raises(SettingsError, match="no name came"):
        remove_list(catalogue, "known.csv")


def test_a_name_of_a_list_outlives_the_repositorys_selection(catalogue: Catalogue, tmp_path: Path) -> None:
    """A list says a name that was built-in; another selection leaves the substance out; the list still says it."""
    sources = (PACKAGE, f"{PACKAGE}, alias")

    def built_in(*substances: tuple[str, str]) -> None:
        records = [ChemicalRecord(cas, cas, provenance=PACKAGE) for cas, _ in substances]
        for record, (_, names) in zip(records, substances, strict=True):
            for name in names.split("|"):
                record.add(name, "common", PACKAGE)
        with catalogue.writing() as session:
            store_records(session, records, replace=sources)

    built_in(("71-43-2", "benzene|made word"), ("108-88-3", "toluene|other word"), ("67-64-1", "acetone"))
    _import(catalogue, tmp_path, "name,cas\nmade word,71-43-2\nother word,108-88-3\n")
    built_in(("71-43-2", "benzene"))
    with catalogue.reading() as session:
        rows = {row.name: row.source.split(" #")[0] for row in session.scalars(select(ChemicalName))}
        assert rows == {
            "benzene": PACKAGE,
            "made word": "user list mine.csv",
            "other word": "user list mine.csv",
        }
        assert set(session.scalars(select(Chemical.key))) == {"71-43-2", "108-88-3"}
    report = remove_list(catalogue, "mine.csv")
    assert (report.removed["71-43-2"], report.gone) == (["made word"], ["108-88-3"])
    with catalogue.reading() as session:
        assert list(session.scalars(select(ChemicalClaim))) == []


def _state(catalogue: Catalogue) -> set[tuple[Any, ...]]:
    with catalogue.reading() as session:
        names = {(n.key, n.language, n.normalised, n.source) for n in session.scalars(select(ChemicalName))}
        rows = {
            (c.key, c.cas, c.formula, tuple(c.un_numbers), len(c.hazards))
            for c in session.scalars(select(Chemical))
        }
    return names | rows


def test_the_list_of_the_sample_site_has_nothing_to_review(catalogue: Catalogue) -> None:
    load_chemicals(catalogue, ChemicalSettings(lists=("NFPA 497",)))
    report = import_list(catalogue, SAMPLES / "chemicals.csv")
    assert (report.errors, report.reviews) == ([], [])


def test_no_column_is_lost_in_silence(catalogue: Catalogue, tmp_path: Path) -> None:
    report = _import(catalogue, tmp_path, "名称,CAS号,别名,中文名,备注,\nbenzene,71-43-2,安息油,苯,x,y\n")
    assert report.unused == ["备注", "column 6 (no heading)"]
    with catalogue.reading() as session:
        names = set(session.scalars(select(ChemicalName.name)))
    assert names == {"benzene", "安息油", "苯"}
    report = _import(catalogue, tmp_path, "CAS号,名称,别名,英文别名\n108-88-3,甲苯,甲基苯,toluol\n", "b.csv")
    with catalogue.reading() as session:
        names = set(session.scalars(select(ChemicalName.name).where(ChemicalName.key == "108-88-3")))
    assert (names, report.unused) == ({"甲苯", "甲基苯", "toluol"}, [])
    for header in ("CAS号,品名,名称,中文名", "cas,CAS No.,name"):
        with pytest.raises(SettingsError, match="both mean"):
            _import(catalogue, tmp_path, f"{header}\n,,,\n", "c.csv")
    rows = [
        {"名称": "acetone", "中文名": "丙酮", "cas": "67-64-1", "别名": ["阿西通"], "synonyms": "2-propanone", "note": 1},
        {"cas": "64-17-5", "CAS号": "67-56-1", "name": "x"},
    ]  # fmt: skip
    report = _import(catalogue, tmp_path, json.dumps(rows), "d.json")
    assert report.unused == ["note"]
    assert report.errors == [
        "d.json, entry 2: the columns 'cas' and 'CAS号' both mean cas; keep one, or call the other aliases"
    ]
    with catalogue.reading() as session:
        names = set(session.scalars(select(ChemicalName.name).where(ChemicalName.key == "67-64-1")))
    assert names == {"acetone", "丙酮", "阿西通", "2-propanone"}


def test_lists_of_one_file_name_are_told_apart(catalogue: Catalogue, tmp_path: Path) -> None:
    for folder, alias in (("a", "word a"), ("b", "word b")):
        (tmp_path / folder).mkdir()
        text = f"name,cas,aliases\nbenzene,71-43-2,{alias}\n"
        _import(catalogue, tmp_path / folder, text)
        assert import_list(catalogue, tmp_path / folder / "mine.csv").unchanged == 1
    with pytest.raises(SettingsError, match="several lists"):
        remove_list(catalogue, "mine.csv")
    with pytest.raises(SettingsError, match="no name came"):
        remove_list(catalogue, tmp_path / "c" / "mine.csv")
    with pytest.raises(SettingsError, match="sample"):
        remove_list(catalogue, tmp_path / "a" / "mine.csv", protected=[tmp_path / "a" / "mine.csv"])
    assert remove_list(catalogue, tmp_path / "b" / "mine.csv").removed == {"71-43-2": ["word b"]}
    report = remove_list(catalogue, "mine.csv")
    assert (report.names, report.gone) == (2, ["71-43-2"])


def test_names_of_catalogues_stored_before_lists_had_ids(catalogue: Catalogue, tmp_path: Path) -> None:
    text = "name,cas,aliases\nbenzene,71-43-2,word a\n"
    _import(catalogue, tmp_path, text)
    with catalogue.writing() as session:
        for row in session.scalars(select(ChemicalName)):
            row.source = re.sub(" #[0-9a-f]{8}", "", row.source)
        session.get_one(Chemical, "71-43-2").provenance = "user list mine.csv"
    before = _state(catalogue)
    assert _import(catalogue, tmp_path, text).unchanged == 1
    assert _state(catalogue) == before
    assert remove_list(catalogue, tmp_path / "mine.csv").names == 2
    assert _state(catalogue) == set()


def test_what_is_no_name_is_left_out_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(
        '[{"name": NaN, "cas": "67-64-1"}, {"name": "acetone\\u0000", "cas": "67-64-1"},'
        ' {"name": "丙酮试剂", "cas": "67-64-1", "aliases": ["5", "好名字"]}, {"name": "' + "x" * 600 + '"}]',
        encoding="utf-8",
    )
    records, errors = read_user_list(path)
    assert len(errors) == 3
    assert [name.text for record in records for name in record.names] == ["丙酮试剂", "好名字"]

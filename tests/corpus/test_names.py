"""Normal forms of names, CAS numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.names import as_cas, find_cas, normalise_name, valid_cas


@pytest.mark.parametrize("cas", ["7664-93-9", "67-56-1", "50-00-0", "10043-35-3"])
def test_valid_cas(cas: str) -> None:
    assert valid_cas(cas)
    last = (int(cas[-1]) + 1) % 10
    assert not valid_cas(cas[:-1] + str(last))


@pytest.mark.parametrize("text", ["", "67-56", "067-56-1", "67–56–1", "7664-93-9 ", "abc"])
def test_valid_cas_wants_the_usual_form(text: str) -> None:
    assert not valid_cas(text)


@pytest.mark.parametrize(
    "text", ["67-56-1", "CAS号：６７－５６－１", "CAS No. 67-56-1", "67–56–1", "0000067-56-1", "(67-56-1)"]
)
def test_as_cas_reads_what_people_write(text: str) -> None:
    assert as_cas(text) == "67-56-1"


@given(st.integers(10, 9_999_999), st.integers(0, 99))
@settings(max_examples=60)
def test_one_check_digit_fits(body: int, middle: int) -> None:
    fitting = [d for d in range(10) if valid_cas(f"{body}-{middle:02d}-{d}")]
    assert len(fitting) == 1


@pytest.mark.parametrize(
    "text", ["CAS号为141-78-6的溶剂", "乙酸乙酯141-78-6，", "号：１４１－７８－６", "(141-78-6)"]
)
def test_find_cas_where_chinese_touches_the_number(text: str) -> None:
    assert find_cas(text) == ["141-78-6"]


@pytest.mark.parametrize(
    "text", ["A141-78-6", "141-78-6x", "x-141-78-6", "β141-78-6", "141-78-6-2", "2.141-78-6"]
)
def test_find_cas_leaves_what_belongs_to_a_word(text: str) -> None:
    assert find_cas(text) == []


def test_find_cas_leaves_dates_phones_and_wrong_digits() -> None:
    text = "CAS 67-56-1 和 64－17－5；日期 2019-10-1，电话 010-12-3，EC 200-659-6，错 67-56-2"
    assert find_cas(text) == ["67-56-1", "64-17-5"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("１，２－二氯乙烷", "1, 2-二氯乙烷"),
        ("環氧乙烷", "环氧乙烷"),
        ("乙 醇", "乙醇"),
        ("Benzo[a]pyrene", "benzo(a)pyrene"),
        ("α-Pinene", "alpha-pinene"),
        ("Iron (III) oxide", "iron(III) oxide"),
        ("Sulphuric Acid", "sulfuric acid"),
        ("Aluminum chloride", "aluminium chloride"),
        ("4,4’-DDT", "4,4'-ddt"),
        ("N,N-Dimethylformamide", "n,n-dimethylformamide"),
        ("H₂SO₄", "H2SO4"),
        ("n‑Hexane", "N-Hexane"),
    ],
)
def test_the_same_name_written_differently(one: str, other: str) -> None:
    assert normalise_name(one) == normalise_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("methanol", "ethanol"),
        ("CO", "Co"),
        ("N-butylaniline", "n-butylaniline"),
        ("1,2-二氯乙烷", "1,1-二氯乙烷"),
        ("亚硝酸钠", "硝酸钠"),
        ("o-xylene", "p-xylene"),
        ("水合肼", "肼"),
        ("α-萘胺", "β-萘胺"),
        ("iron(II) chloride", "iron(III) chloride"),
        ("CS2", "Cs2"),
    ],
)
def test_different_names_stay_apart(one: str, other: str) -> None:
    assert normalise_name(one) != normalise_name(other)


@given(st.text(alphabet="abNnoOα,-()[] '１2甲乙環Co.－", max_size=24))
@settings(max_examples=150)
def test_normal_form_is_stable(text: str) -> None:
    once = normalise_name(text)
    assert normalise_name(once) == once

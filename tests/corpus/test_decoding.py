from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.cleaning import decode

ZH = "<html><body><p>苯是无色透明液体，易燃，有毒。闪点为-11℃，不得与氧化剂混放。</p></body></html>"
ZH_T = "<html><body><p>苯是無色透明液體，易燃，有毒。閃點為攝氏零下十一度，不得與氧化劑一起存放。</p></body></html>"
JA = "<p>この製品は引火性の液体です。火気に近づけないでください。</p>"
KO = "<p>이 제품은 인화성 액체입니다. 화기에 가까이 하지 마십시오.</p>"
FR = "<p>Le benzène est très inflammable ; température d’ébullition 80 °C, toxicité élevée, à éviter.</p>"


@pytest.mark.parametrize("declared", ["", "gb2312", "gbk", "utf-8", "big5", "iso-8859-1", "nonsense"])
@pytest.mark.parametrize(
    ("text", "encoding"), [(ZH, "utf-8"), (ZH, "gb18030"), (ZH_T, "big5"), (ZH_T, "utf-8"), (ZH_T, "gb18030")]
)
def test_chinese_under_true_missing_and_lying_declarations(text: str, encoding: str, declared: str) -> None:
    decoded = decode(text.encode(encoding), header_charset=declared)
    assert decoded.text == text
    assert decoded.replaced == 0


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(JA, "cp932"), (JA, "euc_jp"), (JA, "iso2022_jp"), (KO, "cp949"), (FR, "cp1252")],
)
@pytest.mark.parametrize("told", [True, False])
def test_other_languages(text: str, encoding: str, told: bool) -> None:
    assert decode(text.encode(encoding), header_charset=encoding if told else "").text == text


def test_declarations_in_the_page_and_in_the_header() -> None:
    page = '<meta charset="gb2312">' + ZH
    assert decode(page.encode("gb18030")).how == "meta"
    assert decode(ZH.encode("gb18030"), content_type='text/html; charset="GBK"').how == "header"
    assert decode(b"\xef\xbb\xbf" + ZH.encode()).how == "bom"
    assert decode(ZH.encode("utf-16")).text == ZH
    assert decode(ZH.encode("utf-16-le")).text.startswith("<html>")


def test_rare_gb18030_characters_survive_a_gb2312_label() -> None:
    text = ZH.replace("苯", "䶮镕")  # not in GB 2312
    assert decode(text.encode("gb18030"), header_charset="gb2312").text == text


def test_utf8_cut_at_a_size_limit_is_still_utf8() -> None:
    data = ("苯的危险性。" * 50).encode()[:-1]
    decoded = decode(data)
    assert decoded.encoding == "utf-8"
    assert "\ufffd" not in decoded.text


def test_damage_is_counted() -> None:
    data = ("苯的危险性。" * 50).encode() + b"\xff" + "闪点".encode()
    decoded = decode(data)
    assert (decoded.encoding, decoded.how, decoded.replaced) == ("utf-8", "damaged", 1)


def test_empty() -> None:
    assert decode(b"").how == "empty"


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "gbk", "big5", "latin-1", "x", "utf-16"]))
def test_never_raises(data: bytes, charset: str) -> None:
    decoded = decode(data, header_charset=charset)
    assert decoded.text.count("\ufffd") == decoded.replaced


@pytest.mark.parametrize("broken", [b"\xff", b"\xb1"])
@pytest.mark.parametrize(
    ("text", "encoding", "declared"),
    [
        ("丙酮是无色易燃液体，不得与氯仿混合。", "gb18030", "gb2312"),
        ("丙酮是无色易燃液体，不得与氯仿混合。", "gb18030", ""),
        ("丙酮是無色易燃液體，不得與氯仿混合。", "big5", "big5"),
        ("丙酮是無色易燃液體，不得與氯仿混合。", "big5", ""),
        ("丙酮是无色易燃液体，不得与氯仿混合。", "utf-8", "gb2312"),
        ("アセトンは無色の引火性液体である。火気を避けて保管する。", "shift_jis", "shift_jis"),
        ("아세톤은 무색의 인화성 액체이다. 불꽃을 피하고 환기를 한다.", "euc_kr", "euc-kr"),
    ],
)
def test_one_broken_byte_on_a_short_page_is_one_broken_character(
    text: str, encoding: str, declared: str, broken: bytes
) -> None:
    head = f"<html><head><meta charset={declared}></head>" if declared else "<html>"
    page = head.encode() + b"<p>" + (text * 15).encode(encoding) + broken + b"</p>"
    decoded = decode(page)
    assert text * 14 in decoded.text
    assert decoded.replaced <= 1

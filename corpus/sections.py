"""The 16 sections of a safety data sheet: one enumeration used end to end.

Source: GB/T 16483 (contents and order of sections of a safety data sheet for
chemical products) and UN GHS, annex 4. Headings of real sheets vary, so a
heading is recognised by its words first and by its number only where the words
do not contradict it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import IntEnum

from corpus.names import simplified


class SdsSection(IntEnum):
    """Section of a safety data sheet, numbered as in GB/T 16483 and GHS."""

    IDENTIFICATION = 1
    HAZARDS = 2
    COMPOSITION = 3
    FIRST_AID = 4
    FIRE_FIGHTING = 5
    ACCIDENTAL_RELEASE = 6
    HANDLING_STORAGE = 7
    EXPOSURE_PROTECTION = 8
    PROPERTIES = 9
    STABILITY_REACTIVITY = 10
    TOXICOLOGY = 11
    ECOLOGY = 12
    DISPOSAL = 13
    TRANSPORT = 14
    REGULATORY = 15
    OTHER = 16

    @property
    def name_zh(self) -> str:
        """Name after GB/T 16483."""
        return _NAMES[self][0]

    @property
    def name_en(self) -> str:
        """Name after GHS."""
        return _NAMES[self][1]

    def title(self, language: str) -> str:
        """Name in the language: Chinese for ``zh``, English for the rest."""
        return self.name_zh if language.startswith("zh") else self.name_en


_NAMES: dict[SdsSection, tuple[str, str]] = {
    SdsSection.IDENTIFICATION: ("化学品及企业标识", "Identification"),
    SdsSection.HAZARDS: ("危险性概述", "Hazard identification"),
    SdsSection.COMPOSITION: ("成分/组成信息", "Composition/information on ingredients"),
    SdsSection.FIRST_AID: ("急救措施", "First-aid measures"),
    SdsSection.FIRE_FIGHTING: ("消防措施", "Fire-fighting measures"),
    SdsSection.ACCIDENTAL_RELEASE: ("泄漏应急处理", "Accidental release measures"),
    SdsSection.HANDLING_STORAGE: ("操作处置与储存", "Handling and storage"),
    SdsSection.EXPOSURE_PROTECTION: ("接触控制和个体防护", "Exposure controls/personal protection"),
    SdsSection.PROPERTIES: ("理化特性", "Physical and chemical properties"),
    SdsSection.STABILITY_REACTIVITY: ("稳定性和反应性", "Stability and reactivity"),
    SdsSection.TOXICOLOGY: ("毒理学信息", "Toxicological information"),
    SdsSection.ECOLOGY: ("生态学信息", "Ecological information"),
    SdsSection.DISPOSAL: ("废弃处置", "Disposal considerations"),
    SdsSection.TRANSPORT: ("运输信息", "Transport information"),
    SdsSection.REGULATORY: ("法规信息", "Regulatory information"),
    SdsSection.OTHER: ("其他信息", "Other information"),
}

# Words of a whole heading (its number taken away), Chinese without blanks.
_WORDS_ZH: dict[int, str] = {
    1: r"(化学品(名称)?|产品|物质|物料)?(及|和|与|/)?((供应商|制造商|生产商|企业|公司|供货商|厂商)的?)(标识|信息|资料|标志|概况)?"
    r"|(化学品|物质|产品|物料|化学物质)(/混合物)?(的)?(和(企业|公司))?(标识|鉴别|名称及标识|标志)(信息)?"
    r"|(化学品|产品)(标识)?(及|和|与)(公司|企业|供应商|制造商|厂商).{0,8}",
    2: r"危险(性|害)?(概述|识别|辨识|标识|信息|性识别|说明|性类别|资料|性类别与标识|性摘要)|危害(性)?(概述|辨识(资料)?|识别|信息|说明|鉴定)"
    r"|主要危害|GHS(危险性)?分类(与标签|及标签)?|危险特性(概述)?",
    3: r"(主要)?(成分|组成|组分)(/|、|及|与|和)?(组成|成分|组分)?(的)?(信息|资料|辨识资料)?|化学品组成信息",
    4: r"急救(措施|方法|处理|处置|信息|须知|措施说明)?|应急急救(措施)?|现场急救(措施)?",
    5: r"(消防|灭火)(措施|方法|信息|处理|应急|要求)?|(消防|灭火)(措施)?(及|与|和)(灭火|消防|爆炸).{0,4}|燃爆(特性与消防|危险与消防)",
    6: r"(意外)?(泄漏|泄露|释放|溢漏|外泄|洩漏)的?(事故)?(应急)?(处理|处置|措施|释放措施|应急处理|应急处置|处理方法|处理措施|应急措施|排除措施)?",
    7: r"(安全)?(操作|搬运|使用|处置|处理)(处置|注意事项)?(、|与|和|及|/)?(安全)?(储存|贮存|储藏|存放|存储|储存方法|贮存方法)(注意事项|要求|条件|措施|方法)?"
    r"|(安全)?(储存|贮存)(与|和|及)(操作|使用|搬运|运输)?(处置|注意事项)?|储运(注意事项|要求|信息)?"
    r"|操作(与|和|及)?(处置)?注意事项(与|和|及)储存",
    8: r"(接触|暴露|曝露|职业接触)(的)?(控制|限值)?(、|/|与|和|及)?(个体|个人|人身)?(的)?(防护|保护)(措施|装备|设备)?"
    r"|(个体|个人)防护(措施|装备)?|(职业接触|暴露)控制(措施)?|接触控制|(暴露|接触|曝露)(预防|防护)(措施)?",
    9: r"(物理|理化|物化)(和|与|及|、)?(化学)?(的)?(特性|性质|性能|特征|数据|参数)?(及(危险|理化)特性)?|物理化学(特性|性质|参数)|理化(特)?性(质|能)?(数据|参数)?",
    10: r"(化学)?(稳定性?)(与|和|及|、)?(化学)?反应(活性|性|性能)?|(稳定性|反应性)(信息|资料|数据)?|安定性及反应性",
    11: r"(毒理|毒理学|毒性|毒物学)(学)?(的)?(信息|资料|数据|特性|作用|性质)?",
    12: r"(生态|生态学|环境(影响)?|生态毒理)(学)?(的)?(信息|资料|数据|影响)",
    13: r"(废弃|废弃物|废物|弃置|废料)(物)?(的)?(处置|处理|处置方法|处理方法|处置措施|处置信息|处置注意事项|处置建议)|废弃(处置)?(注意事项|信息)|弃置(注意事项|考虑)?",
    14: r"(运输|运送|储运|包装与运输|包装和运输|转运)(的)?(信息|资料|规定|要求|注意事项)",
    15: r"(法规|法律|监管|管理|法律法规)(的)?(信息|资料|规定|要求)|(适用)?法规|法律法规",
    16: r"其(他|它)(信息|资料|说明|注意事项)|其(他|它)",
}
_WORDS_EN: dict[int, str] = {
    1: r"(product|chemical|substance|material)?( and company| & company|/company)? ?identification( of (the )?(product|substance|chemical|material|preparation|mixture).*)?"
    r"|identification:? (of )?(the )?(product|substance|material|chemical|hazardous chemical).*|(chemical )?product (and|&) company.*|identity of (the )?material.*|product (information|identity)",
    2: r"hazards?\(?s?\)? identification|hazards?( information| summary| overview)?|hazardous? identification|ghs classification|identification of hazards?|emergency overview",
    3: r"composition ?(/|and|,|&)? ?(information|data)?( on| of)? ?(the )?(hazardous )?(ingredients?|components?)?|(hazardous )?ingredients?( information)?|information on ingredients",
    4: r"(emergency (and|&) )?first[- ]?aid( measures?| procedures?| treatment| information)?|emergency first aid.*",
    5: r"fire[- ]?fighting( measures?| procedures?| information)?|fire (and|&) explosion( hazards?| data| hazard data| information)*|fire hazards? data",
    6: r"accidental[- ]release( measures?)?|spills?( (and|or|&|/) ?leaks?)?( (response|procedures?|measures?|disposal))*|measures in case of (accidental release|spill).*",
    7: r"(safe )?handling ?(and|&|/|,)? ?storage( information| requirements| conditions)?|storage (and|&) handling|precautions for (safe )?handling and use",
    8: r"exposure[- ]controls? ?(/|and|&|,|-)? ?(personal[- ]protection|ppe)?( equipment| information)?|personal[- ]protection( equipment)?|control measures"
    r"|exposure limits ?(/|and|&) ?personal protection.*|special protection information",
    9: r"physical ?(and|&|/) ?chemical (properties|characteristics|data)|(physical|physico-?chemical|chemical and physical) (properties|characteristics|data|description)",
    10: r"(chemical )?stability ?(and|&|/) ?(chemical )?reactivity( data| information| profile)?|reactivity( data| profile)?",
    11: r"toxicolog(y|ical)( information| data| properties)?|toxic(ity|ological) (information|data)|health hazard data",
    12: r"ecolog(y|ical)( information| data)?|environmental (information|data|impact)|ecotoxicological information",
    13: r"(waste )?disposal( considerations?| information| methods?| instructions?)?|waste (treatment|disposal).*",
    14: r"transport(ation)?( of dangerous goods)?( information| data| considerations?)?|shipping information",
    15: r"regulat(ory|ions?)( information| data| status)?|legal information",
    16: r"other( information| data)?|additional information|further information",
}
_ZH = {n: re.compile(rf"^(?:{words})$") for n, words in _WORDS_ZH.items()}
_EN = {n: re.compile(rf"^(?:{words})$") for n, words in _WORDS_EN.items()}

_ZH_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")}
_ROMAN = {
    r: i + 1
    for i, r in enumerate("I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI".split())  # noqa: SIM905
}
_NUMBER = r"(?P<n>\d{1,2}|[零一二三四五六七八九十]{1,3}|[IVX]{1,5}(?![A-Za-z]))"
# A marked number ("第四部分", "SECTION 4:") and a bare one ("4. ", "四、", "4 ").
_MARKED = re.compile(
    rf"^(?:第\s*{_NUMBER.replace('?P<n>', '?P<a>')}\s*(?:部分|部份|章节|章|节|節|项|項|条)"
    rf"|(?:section|part|第|章节|部分|部份)\s*{_NUMBER.replace('?P<n>', '?P<b>')})\s*[:：.．、)）\-–—|]*\s*",
    re.IGNORECASE,
)
# Only these marks make a section number of a data sheet: 章 and 条 number statutes too.
_PART = re.compile(r"^(?:第.{1,4}?(?:部分|部份)|section|部分|部份)", re.IGNORECASE)
_BARE = re.compile(
    rf"^[(（\[【]?\s*{_NUMBER}\s*(?:[)）\]】]\s*[.．、:：]?|[.．、:：\-–—|]|(?=[\s一-鿿]))\s*(?!\d)"
)
_SHEET_EVIDENCE = 4  # headings that must agree with their number before bare numbers count
_TRAILING = re.compile(r"[\s:：。.;；_\-–—=*#]+$")


def _as_number(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    if text.upper() in _ROMAN:
        return _ROMAN[text.upper()]
    if "十" in text:
        tens, _, units = text.partition("十")
        if len(tens) > 1 or len(units) > 1:
            return None
        return _ZH_DIGITS.get(tens, 1) * 10 + _ZH_DIGITS.get(units, 0)
    return _ZH_DIGITS.get(text) if len(text) == 1 else None


def split_heading(heading: str) -> tuple[int | None, bool, str]:
    """Number of a heading, whether it is marked as a section number, and the words left.

    "第四部分 急救措施" → (4, True, "急救措施"); "4. First aid" → (4, False, "First aid").
    Numbers outside 1-16 and sub-numbers ("4.1 …") give None with the words as they are.
    """
    text = unicodedata.normalize("NFKC", heading).strip().strip("#*_ \t")
    marked = _MARKED.match(text)
    if marked:
        number = _as_number(marked["a"] or marked["b"])
        named = _PART.match(text) is not None
        rest = text[marked.end() :]
    else:
        bare = _BARE.match(text)
        if not bare:
            return None, False, _TRAILING.sub("", text)
        number = _as_number(bare["n"])
        named = False
        rest = text[bare.end() :]
    if number is None or not 1 <= number <= 16:
        return None, False, _TRAILING.sub("", text)
    return number, named, _TRAILING.sub("", rest)


def _by_words(words: str) -> int | None:
    joined = simplified(re.sub(r"\s+", "", words))
    if re.search(r"[一-鿿]", joined):
        # bilingual headings ("急救措施 First-aid measures") are read by their Chinese part
        chinese = re.sub(r"[A-Za-z][A-Za-z\-&,.()]*$|\([A-Za-z\-&,/.]*\)$", "", joined).rstrip("/()-|")
        for candidate in (joined, chinese, re.sub(r"\([^)]*\)$", "", joined)):
            for number, pattern in _ZH.items():
                if pattern.match(candidate):
                    return number
        return None
    plain = re.sub(r"\s+", " ", words).strip().lower()
    plain = re.sub(r"\s*\([^)]*\)$", "", plain) or plain
    for number, pattern in _EN.items():
        if pattern.match(plain):
            return number
    return None


def sds_section(heading: str) -> int | None:
    """Section 1-16 that one heading names, or None where it is not one of them.

    Words decide ("First aid measures" is 4 whatever its number: some sheets number
    otherwise); a bare "SECTION 4" or "第四部分" without words is read by its number.
    Sub-headings ("4.1 …"), statute articles ("第四章 法律责任") and a lone "其他" are None.
    """
    if not heading or len(heading) > 120 or "\n" in heading.strip():
        return None
    number, marked, words = split_heading(heading)
    if not words:
        return number if marked else None
    by_words = _by_words(words)
    if (
        by_words == SdsSection.OTHER
        and number != SdsSection.OTHER
        and words.lower() in ("其他", "其它", "other")
    ):
        return None
    return by_words


def sds_sections(headings: Sequence[str]) -> list[int | None]:
    """Sections of all headings of one document, in order.

    Where the document is a data sheet (at least four headings agree with their own
    number), a numbered heading whose words are unknown is read by its number, and an
    unnumbered one that only repeats the words of a numbered section is a sub-heading.
    """
    found = [sds_section(heading) for heading in headings]
    numbers = [split_heading(heading)[0] for heading in headings]
    agreeing = {n for n, section in zip(numbers, found, strict=True) if n is not None and n == section}
    if len(agreeing) < _SHEET_EVIDENCE:
        return found
    for index, number in enumerate(numbers):
        if number is None and found[index] in agreeing:
            found[index] = None  # a sub-heading that only repeats another section's words
    taken = {section for section in found if section is not None}
    for index, number in enumerate(numbers):
        if found[index] is None and number is not None and number not in taken:
            found[index] = number
            taken.add(number)
    return found

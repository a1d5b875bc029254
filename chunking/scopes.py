"""What a question is limited to: a country or body, a year, a strength; an answer has to carry it too.

The limit of one country, the edition of one year or the flash point of one solution is no
answer for another.
"""

from __future__ import annotations

import re
import unicodedata

# Word of a country or body as people ask -> what shows that a text speaks of it: its names, and the
# short names of what only it publishes (PC-TWA is China's, PEL is OSHA's, MAK is Germany's).
_PLACES: tuple[tuple[str, str, str], ...] = (
    ("Japan", r"(?i:\bjapan(?:ese)?\b)|日本", r"(?i:\bjapan(?:ese)?\b|\bJSOH\b|\bJIS\b)|日本|日本产业卫生"),
    ("EU", r"\bEU\b|(?i:\beurope(?:an)?\b)|欧盟|欧洲", r"\bEU\b|\bEC\b|(?i:\beurope(?:an)?\b|\bREACH\b|\bCLP\b|\bIOELV\b)|欧盟|欧洲"),
    ("US", r"\bUSA?\b|\bU\.S\.|(?i:\bunited states\b|\bamerica\b|\bamerican (?!society|petroleum))|美国",
     r"\bUSA?\b|\bU\.S\.|(?i:\bunited states\b|\bamerican?\b)|OSHA|NIOSH|ACGIH|\bEPA\b|\bCFR\b|美国"),
    ("China", r"(?i:\bchina\b|\bchinese (?:limits?|standards?|regulations?|rules?|law|occupational|exposure|oels?))|中国|我国|国标",
     r"(?i:\bchin(?:a|ese)\b)|中国|我国|\bGBZ?\b|GBZ|PC-TWA|PC-STEL|国家标准"),
    ("Germany", r"(?i:\bgerman(?:y)?\b)|德国", r"(?i:\bgerman(?:y)?\b)|德国|\bDFG\b|\bMAK\b|\bTRGS\b|\bAGW\b"),
    ("UK", r"\bUK\b|(?i:\bunited kingdom\b|\bbritain\b|\bbritish\b|\bengland\b)|英国",
     r"\bUK\b|(?i:\bunited kingdom\b|\bbritain\b|\bbritish\b)|英国|\bWEL\b|EH40|\bHSE\b"),
    ("France", r"(?i:\bfrance\b|\bfrench\b)|法国", r"(?i:\bfrance\b|\bfrench\b)|法国|\bVLEP\b|\bVME\b|\bINRS\b"),
    ("Russia", r"(?i:\brussian?\b)|俄罗斯|俄国|苏联", r"(?i:\brussian?\b|\bGOST\b|\bUSSR\b)|俄罗斯|俄国|苏联"),
    ("Korea", r"(?i:\bkorean?\b)|韩国", r"(?i:\bkorean?\b)|韩国"),
    ("Taiwan", r"(?i:\btaiwan(?:ese)?\b)|台湾|臺灣", r"(?i:\btaiwan(?:ese)?\b)|台湾|臺灣"),
    ("Hong Kong", r"(?i:\bhong kong\b)|香港", r"(?i:\bhong kong\b)|香港"),
    *((name, rf"(?i:\b{name}n?\b)|{chinese}", rf"(?i:\b{name}n?\b)|{chinese}") for name, chinese in (
        ("Canada", "(?i:\\bcanadian\\b)|加拿大"), ("Australia", "澳大利亚|澳洲"), ("New Zealand", "新西兰"), ("India", "印度(?!尼)"),
        ("Italy", "(?i:\\bitalian\\b)|意大利"), ("Spain", "(?i:\\bspanish\\b)|西班牙"), ("Poland", "(?i:\\bpolish limit)|波兰"),
        ("Sweden", "(?i:\\bswedish\\b)|瑞典"), ("Switzerland", "(?i:\\bswiss\\b)|瑞士"), ("Netherlands", "(?i:\\bdutch\\b)|荷兰"),
        ("Brazil", "巴西"), ("Mexico", "墨西哥"), ("Singapore", "新加坡"), ("Norway", "挪威"), ("Finland", "芬兰"), ("Denmark", "丹麦"),
        ("Austria", "奥地利"), ("Belgium", "比利时"), ("South Africa", "南非"), ("Israel", "以色列"), ("Thailand", "泰国"),
        ("Vietnam", "越南"), ("Malaysia", "马来西亚"), ("Indonesia", "印度尼西亚|印尼"), ("Turkey", "土耳其"), ("Iran", "伊朗"),
    )),
    *((body, rf"(?<![A-Za-z]){body}(?![A-Za-z])", rf"(?<![A-Za-z]){body}(?![A-Za-z])") for body in (
        "OSHA", "NIOSH", "ACGIH", "IARC", "NTP", "NFPA", "HSE", "SCOEL", "MAK", "EPA", "REACH", "ECHA",
    )),
)  # fmt: skip
_SCOPES = tuple((name, re.compile(asked), re.compile(shown)) for name, asked, shown in _PLACES)
_YEAR = re.compile(
    r"(?<![\d.-])((?:19|20)\d\d)(?:\s*年|\s*版|(?= (?:edition|version|standard)))|\b(?:in|of|since) ((?:19|20)\d\d)\b(?!\s*[°%a-z])"
)
_SHARE = re.compile(
    r"(?<![\d.])(\d+(?:\.\d+)?)\s*%(?=\s*(?:[(（]?[wv]/[wv][)）]?\s*)?(?:的|aq|solution|溶液|水溶液|(?!is\b|or\b|and\b|the\b|in\b|of\b|to\b|by\b|at\b)[a-z]{4,}"
    r"|(?!吗|对|是|还|或|以|到|至|左|之|呢|么|吧|时|，)[\u4e00-\u9fff]))",
    re.IGNORECASE,
)


def missing_scopes(question: str, cited: str) -> list[str]:
    """What a question is limited to and a text does not carry; [] where it carries all.

    >>> missing_scopes("exposure limit of ammonia in Japan?", "OSHA PEL: 50 ppm")
    ['Japan']
    """
    question, cited = unicodedata.normalize("NFKC", question), unicodedata.normalize("NFKC", cited)
    missing = [name for name, asked, shown in _SCOPES if asked.search(question) and not shown.search(cited)]
    years = dict.fromkeys(match[1] or match[2] for match in _YEAR.finditer(question))
    missing += [year for year in years if not re.search(rf"(?<!\d){year}(?!\d)", cited)]
    for share in dict.fromkeys(match[1] for match in _SHARE.finditer(question)):
        if not re.search(rf"(?<![\d.]){re.escape(share)}\s*%", cited):
            missing.append(f"{share}%")
    return missing


def scopes(question: str) -> list[str]:
    """All that a question is limited to."""
    return missing_scopes(question, "")

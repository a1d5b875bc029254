"""Sentence frames: what a page reports, doubts, proposes or compares is not what it states.

"It is a myth that …", "H334 was proposed but rejected", "31 °C lower than that of
toluene", "(see water: 0 °C)": number and object stand there word for word, and still
nothing is said of the substance. ``denial`` looks for words that deny; this module looks
at the sentence, the label, the bracket or the table row around a draft. It knows no
names, so it judges drafts of rules and of models alike. In doubt a draft is refused.
"""

from __future__ import annotations

import re

from corpus.quantities import is_no_data
from kg.extraction.denial import BUT, CODED, HARD, VALUED, after_codes, anchors, segment_after
from kg.extraction.model import Draft
from kg.extraction.vocabulary import field_of, shadow
from kg.schema import Property, Relation

_REACH = 400
# advice is given whole, with its own words of doubt
_ADVICE = frozenset(
    {
        Relation.FIRST_AID, Relation.SPILL_ACTION, Relation.STORE_UNDER, Relation.DISPOSED_BY,
        Relation.REQUIRES_PPE, Relation.HAS_P,
    }
)  # fmt: skip
_NAMED = frozenset(
    {Relation.CLASSIFIED_AS, Relation.SHIPPED_AS, Relation.SHOWS_PICTOGRAM, Relation.REGULATED_BY}
)
_Span = tuple[int, int]


def framed(draft: Draft, text: str) -> bool:
    """Whether the words around a draft make its statement a report, a supposition, a comparison or a reference."""
    if draft.relation in _ADVICE:
        return False
    left, right = max(0, draft.start - _REACH), min(len(text), draft.end + _REACH)
    plain = shadow(text[left:right])
    quote = (draft.start - left, draft.end - left)
    return any(_framed_at(draft, plain, quote, anchor) for anchor in anchors(draft, plain, quote))


def _framed_at(draft: Draft, plain: str, quote: _Span, anchor: _Span) -> bool:
    begin = max((m.end() for m in HARD.finditer(plain, 0, anchor[0])), default=0)
    stop = next((m.start() for m in HARD.finditer(plain, anchor[1])), len(plain))
    before, after = plain[begin : anchor[0]], plain[anchor[1] : stop]
    if _reported(draft, before, after) or _annulled_in_row(draft, plain, anchor):
        return True
    if draft.relation in CODED or draft.relation is Relation.CLASSIFIED_AS:
        return not draft.conditions and _graded(before, after)
    if draft.object_label in VALUED and _has_number(draft):
        cell = plain[max(plain.rfind("\n", 0, anchor[0]), plain.rfind("|", 0, anchor[0])) + 1 : anchor[0]]
        return (
            _compared(before, after)
            or _outdated(before, after)
            or _reference(draft, before, after)
            or _of_an_additive(before)
            or bool(_AKIN.search(re.split(r"[,，;；:：(\[]", before)[-1]))
            or bool(_AKIN_BEHIND.match(after))
            or (draft.relation is Relation.HAS_MEASUREMENT and _watered(before, after))
            or _behind_no_data(draft, cell)
            or _behind_other_label(draft, cell)
            or _other_basis(draft, after)
            or _of_a_solution(draft, before)
        )
    return False


def _has_number(draft: Draft) -> bool:
    return draft.value.get("min") is not None or draft.value.get("max") is not None


# --- reports, rumours, suppositions, proposals --------------------------------------------

# what makes the rest of its sentence a report
_TOLD = re.compile(
    r"误(?:以为|认为|解|传|报|信|当作)|谣(?:传|言)|传(?:言|闻)|讹传|据(?:传|说)|迷信|谬(?:误|论|传)|误区|错误地?(?:认为|观点|说法|印象|报道)|不实|臆测|猜测|有人(?:以为|认为|声?称|说)|传统说法|民间(?:说法|流传)|网传"
    r"|(?:没有|无|缺乏|尚无|未有|未见|不存在|没)[^,，。;；]{0,8}(?:证据|依据|根据)|没有人|从未有人|否认|反驳|驳斥|质疑|未经(?:证实|核实)|假设|假如|假定|倘若|设想|试想"
    r"|\b(?:myths?|misconceptions?|fallac(?:y|ies)|rumou?rs?|rumou?red|misunderstandings?|misbeliefs?|hoax(?:es)?|legends?|folklore|hearsay|gossip|allegedly|purportedly|supposedly|unverified|unconfirmed|unsubstantiated|contrary to|popular belief"
    r"|mistakenly|falsely|wrongly|erroneously|incorrectly|guess(?:ed|es)?|suppos(?:e|ing)|imagin(?:e|ing)|hypothetical(?:ly)?|hypothesi[sz]ed?|pretend(?:ed)?|what if"
    r"|den(?:y|ies|ied)|refut(?:es?|ed)|disput(?:es?|ed)|debunk(?:s|ed)?|disprov(?:es?|ed|en)|rebut(?:s|ted)?|contradict(?:s|ed))\b"
    r"|\b(?:no|without(?: any)?|lacks?|lacking|little|insufficient|not enough)\s+(?:[a-z]+ ){0,2}(?:evidence|proof|basis|support|grounds|reason|indication|study|studies)\b|\b(?:nobody|no one|no-one)\b"
    r"|\b(?:wrong|false|incorrect|untrue|not true|not correct|misleading|erroneous|mistaken|doubtful|questionable|debatable|unlikely|unclear|unproven|uncertain|disputed)\s+(?:to (?:say|claim|assume|think|believe|state|suppose)|that|whether|if)\b"
    r"|\b(?:was|were|been|is|are) (?:once |long |widely |commonly |often |sometimes )?(?:assumed|believed|thought|alleged|rumou?red|said|guessed)\b",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    r"征求意见|草案|提案|提议|建议稿|报批稿|(?<!模)(?<!比)拟(?:将|改|定|议|列|归|修|分)|计划(?:将|改|列|归)|讨论中|正在讨论|审议|待定"
    r"|\b(?:proposed|proposals?|draft(?: version)?|pending|under (?:discussion|review|consideration|evaluation|debate)|intended change|to be (?:decided|determined|confirmed)|rejected|considered for)\b",
    re.IGNORECASE,
)
# said behind a statement
_SAID_AFTER = re.compile(
    r"(?:说法|观点|看法|传言|结论|论断|认识|印象|报道|主张)[^,，。;；]{0,6}(?:是|为|属|纯属|并)?(?:错误|不对|不正确|误|不成立|有误|谣|不实|假|荒谬)|是(?:谣言|误解|误传|误区|错误的|假的|谣传)|(?:已|被)(?:经)?(?:否定|否认|推翻|证伪|驳斥|否决|驳回)|不足为信|纯属"
    r"|仍?(?:在|有待|尚待)(?:讨论|审议|商榷|评估|证实)|讨论中|待定|(?:仅|只)?是?(?:提议|提案|建议稿)|未(?:获)?(?:通过|采纳|批准)|有争议"
    r"|\b(?:is|are|was|were|be|been|being|remains?|remained|but) (?:a |an |only |also |then |later |since |still |now |currently |merely |just |first |never |initially )*"
    r"(?:myth|misconception|fallacy|rumou?r|hoax|mistake|error|untrue|false|under (?:discussion|review|consideration|evaluation|debate|revision)|proposed|proposal|suggested|rejected|refused|disputed|refuted|debunked|disproved|disproven|contested|doubtful|questionable|unconfirmed|unverified|unsubstantiated|unproven|pending|dropped|abandoned|debated|in (?:dispute|doubt|question|error|preparation)|not adopted|not accepted)\b"
    r"|\b(?:which|that|this|the)\b[^.;]{0,40}\b(?:is|was|are|were|has been|have been) (?:a |an )?(?:myth|wrong|false|untrue|outdated|mistake|mistaken|incorrect|nonsense|rumou?r|disputed|refuted|rejected)\b"
    r"|\b(?:proposed|proposal|rejected|under (?:discussion|review|consideration))\s*(?:[,)\]]|$)",
    re.IGNORECASE,
)
# "如果环氧丙烷含氯，则LD50为…": a supposition about a value, a code or a class
_SUPPOSED = re.compile(
    r"(?:如果?|若(?!干)|假使|要是|倘使|万一)[^。;；]*(?:则|那么|就|会|将|便)|^\s*(?:if|were|had|suppose|assuming|provided|in case)\b|\bif\b[^.;]*\b(?:then|would|were|could|might)\b|\bwould (?:be|have)\b",
    re.IGNORECASE,
)
_TAKEN_UP = re.compile(
    r"[,，、]\s*(?:(?:an?|but|which|though|although|this|that)\b|后|但|此|该|这|却|系|实)", re.IGNORECASE
)
_GONE_BEFORE = re.compile(
    r"(?:不再|停止|取消|撤销|删除|已删|改掉|不用|弃用|取代|代替|而非|而不是)(?:使用|标注|标示|标签|适用|采用|分配|列为|列入|的|为|了|原)*\s*$"
    r"|\b(?:no longer|instead of|rather than|replac(?:es|ed|ing)|supersed(?:es|ing)|remov(?:es|ed|ing)|delet(?:es|ed|ing)|withdraw(?:s|n|ing)?|dropp(?:ed|ing))\s+(?:[a-z]+ ){0,3}$",
    re.IGNORECASE,
)


def _reported(draft: Draft, before: str, after: str) -> bool:
    near = BUT.split(before)[-1]
    if _TOLD.search(near):
        return True
    fixed = draft.relation in CODED or draft.relation in _NAMED or draft.object_label in VALUED
    if fixed and (_PROPOSED.search(near) or _GONE_BEFORE.search(near) or _SUPPOSED.search(near)):
        return True
    if draft.relation in CODED:
        return after_codes(after, _SAID_AFTER)
    reach = after
    if draft.object_label in VALUED:  # what comes behind a comma is of the value where it takes it up
        reach = segment_after(after)
        reach += after[len(reach) :] if _TAKEN_UP.match(after[len(reach) :]) else ""
    return bool(_SAID_AFTER.search(reach))


# --- rows of tables that take their value back ------------------------------------------------

_ANNULLED = re.compile(
    r"有误|错误|不正确|不可靠|不可信|存疑|可疑|作废|已废|废止|撤销|撤回|更正|修正为|未经(?:证实|核实)|待(?:核实|证实|确认)|请勿(?:使用|采用|引用)|勿用"
    r"|\b(?:withdrawn|wrong|incorrect|erroneous|corrected to|retracted|obsolete|superseded|outdated|unreliable|unverified|unconfirmed|doubtful|dubious|disputed|rejected|invalid|deleted|not (?:valid|correct|reliable|confirmed)|do not use|in error|misprint|typo)\b",
    re.IGNORECASE,
)
_REMARK_LIMIT = 80


def _row_of(plain: str, anchor: _Span) -> tuple[list[str], int] | None:
    """Cells of the table row that a place stands in, and which of them holds it."""
    begin = plain.rfind("\n", 0, anchor[0]) + 1
    stop = plain.find("\n", anchor[1])
    line = plain[begin : len(plain) if stop < 0 else stop]
    if not line.lstrip().startswith("|"):
        return None
    lead = line.index("|") + 1
    at = line.count("|", lead, anchor[0] - begin)
    return [cell.strip() for cell in line[lead:].rstrip().removesuffix("|").split("|")], at


def _annulled_in_row(draft: Draft, plain: str, anchor: _Span) -> bool:
    if draft.object_label not in VALUED and draft.relation not in CODED | _NAMED:
        return False
    row = _row_of(plain, anchor)
    if row is None:
        return False
    cells, at = row
    return any(len(cell) <= _REMARK_LIMIT and _ANNULLED.search(cell) for cell in cells[at + 1 :])


# --- codes that hold for a content -------------------------------------------------------------

_CHAIN = r"(?:[\s,，、/]|和|及|与|或|and\b|or\b|(?:EUH|[HP])\d{3}[A-Za-z]{0,2}(?:\s*\+\s*[HP]?\d{3}[A-Za-z]{0,2})*)*"
_GRADED_AFTER = re.compile(
    rf"^{_CHAIN}[(\[]?\s*(?:(?:only |applies |apply )?(?:for|at|in|with|when|if|above|below|from|over|under|up to)\b[^.;；。()]{{0,40}}?(?:\d\s?(?:%|wt|vol|percent)|\bconcentrations?\b|\bsolutions?\b|\bdilut)"
    r"|(?:适用于|用于|对于?|当|在|仅限?|限于?)?[^,，。;；()]{0,10}?(?:浓度|含量|质量分数|[≥≤<>]\s?\d|\d\s?%))",
    re.IGNORECASE,
)
_GRADED_BEFORE = re.compile(
    r"(?:\d\s?%|浓度|含量|\bconcentrations?\b|\d\s?(?:wt|vol)\b|\bpercent\b|溶液|\bsolutions?\b|\bdilut\w+)[^:：。;；|\n]{0,40}[:：][^:：。;；|\n]*$"
    r"|\b(?:for|at|in|above|below|over|under)\b[^.;:]{0,24}\d\s?%[^.;:]{0,24}[,:]?\s*$",
    re.IGNORECASE,
)


def _graded(before: str, after: str) -> bool:
    return bool(_GRADED_AFTER.match(after) or _GRADED_BEFORE.search(before))


# --- values that are no values of the subject ---------------------------------------------------

_ADJECTIVE = r"(?:higher|lower|less|more|greater|smaller|warmer|colder|cooler|hotter|denser|heavier|lighter|shorter|longer|larger|bigger|lesser|further|slower|faster)"
_COMPARED_AFTER = re.compile(
    rf"^\s*(?:\([^()]*\)\s*)?(?:{_ADJECTIVE}\s+than\b|(?:above|below|under|beyond|short of|away from|apart from)\s+(?:the|that|those|its|their|zero|freezing|ambient|water|room|its|pure)\b|(?:apart|difference)\b|times\b|倍|的差)",
    re.IGNORECASE,
)
_COMPARED_BEFORE = re.compile(
    r"(?:比|较|相比|相较于?|与)[^,，。;；:：]{1,24}?(?:高|低|大|小|重|轻|多|少|相差|差)(?:约|出|了|近|不到)*\s*$"
    r"|(?:升高|上升|下降|降低|提高|增加|增大|减少|减小|相差|相距|之差|差值|变化|高出|低出)(?:了|约|达|为|是|近)*\s*$"
    r"|\b(?:ris(?:es?|ing)|rose|falls?|fell|drops?|dropped|increas(?:es?|ed|ing)|decreas(?:es?|ed|ing)|differs?|differed|rais(?:es?|ed)|lower(?:s|ed)|depress\w*|elevat\w*|chang(?:es?|ed)|exceeds? (?:that|those)[^,;.]*|vari(?:es|ed)|shift(?:s|ed)) by(?: about| approximately| some| ca\.?| only| as much as)*\s*$"
    r"|\bdifference (?:is|was|of)(?: about)?\s*$",
    re.IGNORECASE,
)


# "据1950年的手册，…595 ℃，新的测定值为715 ℃"
_OLD_SOURCE = re.compile(
    r"据?(?:1[89]|20)\d\d年(?:代|的|版|出版)?的?[^,，。;；]{0,6}(?:手册|资料|文献|数据|报道|测定|版本|标准)|(?:早期|旧)的?(?:手册|资料|文献|数据|报道|测定)"
    r"|\b(?:old(?:er)?|early|earlier|previous|outdated) (?:handbooks?|literature|sources?|data|values?|reports?|measurements?|editions?)\b|\baccording to (?:an? )?(?:1[89]|20)\d\d\b",
    re.IGNORECASE,
)
_NEWER_BEHIND = re.compile(
    r"(?:新的?|最新|现行|修订后?|更正后?)[^,，。;；]{0,4}(?:测定值|数值|数据|值|测定)|\b(?:newer|revised|corrected|more recent|recent) (?:value|data|measurement|figure|determination)s?\b",
    re.IGNORECASE,
)


def _outdated(before: str, after: str) -> bool:
    return bool(_OLD_SOURCE.search(before) or _NEWER_BEHIND.search(after))


def _compared(before: str, after: str) -> bool:
    return bool(_COMPARED_AFTER.match(after) or _COMPARED_BEFORE.search(before))


_REFERRED = re.compile(
    r"(?:参见|参照|参阅|对比|对照|比照|相比|相较|(?<![可常罕少多偶未意])见)[^。;；()]{0,24}$"
    r"|\b(?:see|cf\.?|compare|compared (?:to|with)|in comparison (?:to|with)|versus|vs\.?|relative to|as against|unlike|instead of|rather than|analogous to|read-across from)\b[^.;()]{0,40}$",
    re.IGNORECASE,
)
_BASIS = re.compile(r"(?:\bair|\bwater|\bH2O|\bhydrogen|空气|水|氢气?)\s*=\s*$", re.IGNORECASE)
_OF_A_DEVICE = re.compile(
    r"(?:limit|range|capacity|maximum|minimum|end) of (?:the )?(?:apparatus|instruments?|devices?|methods?|tests?|detection|equipment|measurement)|(?:apparatus|instrument|device|detection|quantification|quantitation|measuring|method) (?:limit|range)"
    r"|仪器(?:的)?(?:上限|下限|量程|极限|范围)|量程|检[出测](?:下|上)?限|方法(?:检出)?限|测[量定](?:上限|下限|范围)",
    re.IGNORECASE,
)


def _reference(draft: Draft, before: str, after: str) -> bool:
    opened = before[before.rfind("(") + 1 :] if before.count("(") > before.count(")") else before
    if _BASIS.search(opened) or _REFERRED.search(opened):
        return True
    near = re.split(r"[,，;；:：]", before)[-1]
    return bool(_OF_A_DEVICE.search(near) or _OF_A_DEVICE.search(segment_after(after)))


# "本品阻聚剂（…）闪点 151 ℃", "The inhibitor has a melting point of …": opened by what is added to the subject
_ADDITIVE = re.compile(
    r"(?:^|[,，:：])\s*(?:本品|其|所用|所含|所加|产品|该|加入的|添加的|中的|内的|的)*(?:阻聚剂|抗氧化?剂|稳定剂|抑制剂|缓蚀剂|增塑剂|乳化剂|助剂|添加剂|填料|载体|杂质|阻燃剂|防腐剂|溶剂|副产物|分解产物|原料|代谢(?:产)?物)"
    r"(?!(?:时|后|的(?:本品|产品|苯|丙|乙|甲|丁)))(?=[^,，;；。]{0,40}?(?:点|密度|LD|LC|压|温度|量|性|\d))"
    r"|(?:^|[,:])\s*(?:the|its|their|an|added|any)\s+(?:added |usual |polymerization |phenolic )*(?:inhibitor|stabili[sz]er|antioxidant|plastici[sz]er|additive|impurity|carrier|preservative|by-?product|metabolite|raw material|precursor)\b",
    re.IGNORECASE,
)


def _of_an_additive(before: str) -> bool:
    return bool(_ADDITIVE.search(BUT.split(before)[-1]))


# "380 mg/kg; dimer 5000 mg/kg"
_AKIN = re.compile(
    r"共沸|恒沸|\bazeotrop|异构体|二聚体|三聚体|单体|聚合物|衍生物|类似物|同系物|水合物|代谢(?:产)?物|(?:钠|钾|钙|铵|盐酸|硫酸)盐|\b(?:dimer|trimer|oligomer|polymer|monomer|isomer|homolog(?:ue)?|hydrate|derivative|analog(?:ue)?|metabolite|hydrochloride|(?:sodium|potassium|calcium|ammonium) salt)s?\b",
    re.IGNORECASE,
)
# "56 °C for the azeotrope with water", "100 ppm for its dimer", "56℃的是其与甲醇的共沸物"
_AKIN_BEHIND = re.compile(
    rf"^\s*(?:[(\[][^()\[\]]*?(?:{_AKIN.pattern})|[,，]?\s*(?:for|of|as|in)\s+(?:[a-z]+ ){{0,4}}?(?:{_AKIN.pattern})"
    rf"|[,，]?\s*(?:的?(?:是|为|系|属)|的)[^,，。;；]{{0,16}}?(?:{_AKIN.pattern}))",
    re.IGNORECASE,
)
# water in the substance: a share that is not the substance's own ("-18 ℃（含水10%）")
_WATERED = re.compile(
    r"(?:含水|水分|含湿|水的?含量|加水)(?:量|率|约|为|至|[:：])*\s?[~≈<>≤≥]?\s?\d[\d.]*\s?%|\d\s?%\s?(?:的)?(?:水(?!溶)|水分)"
    r"|\d\s?(?:%|percent|wt ?%|vol ?%)\s?(?:of )?(?:water|moisture)\b|\b(?:water|moisture)(?: content)?(?: of|:| =)?\s?[~≈<>≤≥]?\s?\d[\d.]*\s?%",
    re.IGNORECASE,
)


def _watered(before: str, after: str) -> bool:
    near = re.split(r"[,，;；:：]", before)[-1]
    bracket = re.match(r"\s*[(\[][^()\[\]]*", after)
    return bool(_WATERED.search(near) or _WATERED.search(bracket[0] if bracket else segment_after(after)))


_FIRST_PART = re.compile(r"^(?:[^:：;；]{1,60}[:：])?\s*(?P<first>[^;；(（,，。]+?)\s*[;；(（,，。]")
_NOT_GIVEN = re.compile(
    r"^(?:不(?:可)?燃(?:烧|液体|气体)?|非易燃|无闪点|(?:not|non)[- ]?(?:flammable|combustible)|(?:does|do) not apply|not (?:given|required|measured|applicable|available|determined|known)|none|无|不适用|未测定?|不存在)$",
    re.IGNORECASE,
)


def _behind_no_data(draft: Draft, cell: str) -> bool:
    """ "pH: does not apply; H2O2 pH 3.5": what follows a "none" without a circumstance is something else's."""
    found = _FIRST_PART.match(cell.strip())
    first = found["first"].strip() if found else ""
    given = draft.value.get("conditions") or draft.conditions
    return bool(first) and not given and (is_no_data(first) or bool(_NOT_GIVEN.match(first)))


_DENSITIES = "density"
_LIMITS = "limits"
_KINDS: dict[str, str] = {
    Property.DENSITY.value: _DENSITIES,
    Property.RELATIVE_DENSITY.value: _DENSITIES,
    Property.VAPOUR_DENSITY.value: _DENSITIES,
    Property.LOWER_EXPLOSIVE_LIMIT.value: _LIMITS,
    Property.UPPER_EXPLOSIVE_LIMIT.value: _LIMITS,
    "relative_vapour_density": _DENSITIES,
    "explosive_limits": _LIMITS,
}
_SPOKEN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (Property.MELTING_POINT.value, r"熔点|凝固点|冰点|\b(?:melting|freezing) (?:point|range)|\bmp\b"),
        (Property.BOILING_POINT.value, r"沸点|沸程|\bboiling (?:point|range)|\bbp\b"),
        (Property.FLASH_POINT.value, r"闪点|\bflash ?point"),
        (
            Property.AUTOIGNITION_TEMPERATURE.value,
            r"自燃(?:温度|点)|引燃温度|着火(?:温度|点)|\bignition temperature|\bauto-?ignition",
        ),
        (Property.DECOMPOSITION_TEMPERATURE.value, r"分解温度|\bdecomposition temperature"),
        (Property.CRITICAL_TEMPERATURE.value, r"临界温度|\bcritical temperature"),
        (Property.CRITICAL_PRESSURE.value, r"临界压力|\bcritical pressure"),
        (Property.VAPOUR_PRESSURE.value, r"蒸[气汽]压|\bvapou?r pressure"),
        (_DENSITIES, r"密度|比重|\bdensity\b|\bspecific gravity"),
        (
            _LIMITS,
            r"爆炸(?:极|上|下)限|燃烧(?:极|上|下)限|\b(?:explosi(?:on|ve)|flammab(?:le|ility)) limits?\b|\b[LU][EF]L\b",
        ),
        (Property.VISCOSITY.value, r"[粘黏]度|\bviscosity"),
        (Property.REFRACTIVE_INDEX.value, r"折射率|折光率|\brefractive index"),
        (Property.SURFACE_TENSION.value, r"表面张力|\bsurface tension"),
        (Property.MOLAR_MASS.value, r"分子量|摩尔质量|\bmol(?:ar|ecular) (?:mass|weight)"),
        (Property.THERMAL_CONDUCTIVITY.value, r"热导率|导热系数|\bthermal conductivity"),
        (Property.DIPOLE_MOMENT.value, r"偶极矩|\bdipole moment"),
        (Property.HEAT_OF_COMBUSTION.value, r"燃烧热|热值|\bheat of combustion|\bcombustion heat"),
        (Property.MINIMUM_IGNITION_ENERGY.value, r"最小点火能|最小引燃能|\bminimum ignition energy"),
        (Property.SOLUBILITY_IN_WATER.value, r"溶解[度性]|溶于水|\b(?:solubility|miscibility)\b"),
        (Property.LOG_KOW.value, r"分配系数|\blog\s?(?:k_?ow|p(?:ow)?)\b|\bpartition coefficient"),
        ("爆炸温度", r"爆炸温度|\bexplosion temperature|升华(?:点|温度)|\bsublimation (?:point|temperature)"),
    )
)
_PART = re.compile(r"[;；。,，]|(?<=[A-Za-z℃)\d])\.\s+(?=[A-Z一-鿿])")
_PROPERTY_TAIL = re.compile(
    r"(?:温度|压力?|密度|点|率|系数|粘度|黏度|[上下极]限|热|能|temperature|pressure|density|point|limits?|energy|index|viscosity|gravity|solubility)\s*(?:\([^()]*\))*\s*$",
    re.IGNORECASE,
)


def _kind_of(name: str) -> str:
    return _KINDS.get(name, name)


def _behind_other_label(draft: Draft, cell: str) -> bool:
    """ "Flash point: 12 K. Boiling point 351 K": a property named behind a stop, and not the draft's own."""
    prop = str(draft.properties.get("property", ""))
    parts = _PART.split(cell)
    if not prop or len(parts) < 2:
        return False
    own, part = _kind_of(prop), parts[-1]
    spoken = [(m.start(), kind) for kind, words in _SPOKEN for m in words.finditer(part)]
    if spoken:  # the last named before the value is whose value it is
        return own not in {kind for at, kind in spoken if at == max(spoken)[0]}
    label = re.match(r"\s*([^:：]{1,40})[:：]", part)
    if label is None:
        return False
    known = field_of(label[1])
    if known and known[1].family == "measurement":
        return _kind_of(known[1].name) != own
    if own == _LIMITS and re.search(r"限|limit", label[1], re.IGNORECASE):
        return False  # "上限：12.8%；下限：2.5%"
    tail = _PROPERTY_TAIL.search(label[1])
    return bool(tail) and own in {kind for kind, _ in _SPOKEN} and not re.search(r"\d", label[1])


_BEHIND_WATER = re.compile(r"^\s*[(\[]?\s*(?:水|water|H2O)\s*=\s*1\b", re.IGNORECASE)
_BEHIND_AIR = re.compile(r"^\s*[(\[]?\s*(?:空气|air)\s*=\s*1\b", re.IGNORECASE)


def _other_basis(draft: Draft, after: str) -> bool:
    """ "0.81 (water=1), 1.83 (air=1)": which density a value is stands right behind it."""
    prop = draft.properties.get("property")
    if prop == Property.VAPOUR_DENSITY.value:
        return bool(_BEHIND_WATER.match(after))
    return prop in {Property.RELATIVE_DENSITY.value, Property.DENSITY.value} and bool(
        _BEHIND_AIR.match(after)
    )


_DILUTED = re.compile(
    r"^[^:：]*?[一-鿿A-Za-z]\s*\(\s*[~≈约]?\d+(?:\.\d+)?\s?%[^()]{0,12}\)"
    r"|^\s*(?:An?\s+)?[A-Za-z][a-z-]+(?: [a-z]+)?,? \d+(?:\.\d+)?\s?%(?=\s*(?:\(|\w))",
)


def _of_a_solution(draft: Draft, before: str) -> bool:
    """ "浓盐酸（37%）密度1.19 g/cm³，沸点48 ℃": a share beside the name holds for every value of the sentence."""
    if draft.relation is not Relation.HAS_MEASUREMENT or ":" in before:
        return False
    given = {**draft.conditions, **draft.value.get("conditions", {})}
    said = re.split(r"\.\s+(?=[A-Z])", before)[-1]
    return not given.keys() & {"concentration", "form", "note"} and bool(_DILUTED.match(said))

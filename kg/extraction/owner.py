"""Whose value a labelled value is, where it names several things: "-18 ℃（闭杯），丁酮为-9 ℃".

A label speaks of the page's subject, its value need not: what stands before or
behind a number may name another substance, a hydrate or a solvent. Words before
a number that are neither the subject nor known to go with a value (methods,
species, circumstances) name something else, and the value is left out.
"""

from __future__ import annotations

import re
from itertools import pairwise

from kg.extraction.context import Context
from kg.extraction.vocabulary import COMMA, field_of

# what may stand before or behind a value and names no substance
_PLAIN_ZH = re.compile(
    "闭口杯?|闭杯|开口杯?|开杯|杯法?|大约|近似|约|标准|正常|常压|常温|室温|大气压|状态|条件|环境|情况|存在|最高|最低|最大|最小|最佳|平均|典型|高于|低于|大于|小于|少于|多于|超过|不足"
    "|大鼠|小鼠|家兔|兔子?|豚鼠|仓鼠|动物|狗|犬|猫|猴|鱼类?|水蚤|藻类?|成人|人体|人|雌|雄|性|经口|经皮|吸入|口服|皮肤|腹腔|静脉|皮下|注射|灌胃|染毒|接触|途径|急性|毒性|慢性|半数|致死|致命|有效|抑制"
    "|剂量|浓度|含量|小时|分钟|秒|天|周|水溶性|水溶|水中|冷水|热水|水|空气|相对|密度|比重|饱和|蒸[气汽]压?|液体|固体|气体|液态|固态|气态|粉末|粉尘|蒸气|溶解度|溶解性|溶解|易溶|微溶|略溶|可溶|不溶|难溶|极易|混溶|互溶"
    "|分解|升华|初沸|沸点|沸程|熔点|凝固|冰点|闪点|燃点|着火|沸|熔|闪|点|温度|压力|压强|爆炸|上限|下限|极限|界限|引燃|自燃|燃烧|热值|体积|质量|分数|百分比?|计算|实测|测定|文献|报道|资料|数据|来源|参考|估[计算]|方法|试验|测试|实验|法"
    "|纯品|纯度|纯|干燥|无水|工业|试剂|级|临界|范围|分子量?|摩尔|动力|运动|[粘黏]度|折射率|折光率|表面张力|系数|酸碱|溶液|水溶液|其|该|本品|产品|物质|化合物|晶体|结晶|单位|数值|值|限值|接触限|职业|允许|容许|加权|时间|短时间|瞬时|规定|不得|可达|可|能|会|有|已|被|呈|具|类|为|是|达|到|至|和|与|及|或|在|于|的|下|时|内|后|前|中|不|宜|应|得|要|对|从|由|即|以|每|一|个|第|者|均|都|多|少|高|低|左右|以上|以下|之间|介于|氏度|摄氏|华氏"
)
_PLAIN_WORDS = """closed open cup tag pensky martens cleveland setaflash abel at about approx approximately approximate circa around in of the an is are was were to from and or by for with on as
    per between water air soluble solubility slightly very sparingly insoluble miscible moderately freely completely readily highly practically rat rats mouse mice rabbit rabbits guinea pig pigs
    hamster dog dogs cat cats monkey fish trout minnow rainbow daphnia algae human humans man oral orally dermal dermally inhalation skin intraperitoneal intravenous subcutaneous acute chronic toxicity
    median lethal dose concentration male female males females adult temperature temp temps pressure vapor vapour density bulk boiling melting freezing flash point points range values value lower upper
    explosive explosion flammable flammability limit limits lel uel lfl ufl vol volume weight mass percent pure purity anhydrous dry moist liquid solid gas gaseous crystal crystals powder dust decomposes decompose
    decomposed decomposition dec sublimes sublimation lit literature calc calculated calculation experimental measured estimated estimate est exp reported report typical typically normal normally standard
    atmospheric ambient room less more than greater below above under over not exceed exceeding maximum minimum max min average relative specific gravity log kow pow pka viscosity dynamic kinematic refractive
    index molar molecular twa stel ceiling tlv pel rel idlh osha niosh acgih weel mak ppm mmhg hours hour hrs days day minutes minute exposure species route routes method test tests oecd astm din iso epa data
    source initial final onset critical auto ignition autoignition self spontaneous saturated hot cold aqueous solution solutions result results remark note notes has have the its it this product substance compound
    material chemical when if heated heating single double up least most equal ca no free base reference ref see estimated by using guideline equivalent conc cool case any mol kpa mpa hpa mbar mpas cst vol degc degf degrees celsius fahrenheit kelvin torr bar atm psi"""
_PLAIN_EN = frozenset(_PLAIN_WORDS.split())
_NAME_ZH = re.compile(
    r"(?:[烷烯炔醇醛酮酯醚苯酚胺腈酐肼脲胍萘蒽呋喃啶啉]|[^无脱]水合物|合物|衍生物|溶剂|盐|酸|[化酸](?:锂|铜|亚铜|铁|亚铁|锰|铬|镍|钴|铅|汞|亚汞|银|钡|锡|钛|砷|磷|硼|铵|铍|镉|锶|铊)|钠|钾|钙|镁|铝|锌|氯|氟|溴|碘|氨|氢|石油|汽油|煤油)$"
)
_NAME_EN = re.compile(
    r"^(?:[\w,()'-]*?(?:ane|ene|yne|anol|enol|ol|one|anal|ate|ite|ide|ine|ether|ester|benzene|toluene|xylenes?|[a-z]*aldehyde|phenol|amine|nitrile|anhydride|hydrate|alcohols?|acids?|salts?|chloroform|oils?|solvents?|ammonia|hexanes?|furan|urea|mek|thf|dmf|dmso))$",
    re.IGNORECASE,
)
# end like a name and are none
_NO_NAME_WORDS = """one none alone line determine fine mine machine combine state rate estimate approximate saturate accurate separate indicate climate plate date late wide side inside outside aside guide provide
    site white quite ignite opposite despite finite definite examine medicine routine baseline online zone done gone control protocol total oral normal dermal table ambient appropriate immediate intermediate moderate
    aggregate certificate female scale since hygiene plane cone tone stone membrane scene gene intravenous chlorine-free vaccine urine marine engine decline outline combined"""
_NO_NAME_EN = frozenset(_NO_NAME_WORDS.split())
_CJK = "一-鿿"


def _own(ctx: Context, words: str) -> str:
    """Words without the subject's own names."""
    for name in sorted((n for n in ctx.spellings if n), key=len, reverse=True):
        if name.isascii():
            words = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", " ", words, flags=re.IGNORECASE)
        else:
            words = re.sub(
                rf"(?<![仲叔邻重过亚次偏焦异二三四]){re.escape(name)}(?![{_CJK}]{{1,3}}(?:为|是|[:：]))",
                " ",
                words,
                flags=re.IGNORECASE,
            )
    return words


def named_before(ctx: Context, words: str) -> str:
    """What words before a value name that is neither the subject nor goes with a value; "" where nothing."""
    left = re.sub(r"\([^()]*\)|\[[^\[\]]*\]|<[^<>]*>", " ", words)
    left = _own(ctx, left)
    if field_of(left.strip(" :：")):
        return ""
    chinese = [run for run in re.findall(rf"[{_CJK}]+", _PLAIN_ZH.sub(" ", left)) if len(run) >= 2]
    if chinese:
        return str(chinese[-1])
    latin = [w for w in re.findall(r"[A-Za-z][A-Za-z'-]{2,}", left) if not _plain(w)]
    return latin[-1] if latin else ""


def _plain(word: str) -> bool:
    parts = [part for part in re.split(r"[-']", word.lower()) if part]
    return all(len(part) < 3 or part in _PLAIN_EN for part in parts) or word.isupper()


_AT = r"\s*(?:\bat|@|/|在)\s*[-–]?\d[\d.]*\s?(?:°\s?[CF]|℃|K|[khM]?Pa|mm\s?Hg|bar|atm)(?:时|下)?"


def named_behind(ctx: Context, words: str, *, solvent: bool = False) -> str:
    """A substance that stands right behind a value ("(丁酮)", "for 2-propanol"); "" where none.

    ``solvent``: what it is dissolved in ("20 g/L in ethanol") counts; of another property it is a circumstance.
    """
    rest = words
    parts: list[str] = []
    while bracket := re.match(rf"(?:{_AT})*\s*[(\[]([^()\[\]]*)[)\]]", rest, re.IGNORECASE):
        parts += re.split(r"[,，;；、/]", bracket[1])  # "(20 °C) (ethanol)"
        rest = rest[bracket.end() :]
    rest = re.split(r"[,，;；。\n|]", rest)[0]
    link = "for|of|in" if solvent else "for|of"
    said = re.match(
        rf"\s*(?:(?:{link})\s+(?:the\s+|pure\s+)?([A-Za-z0-9][\w,'-]*)|在?([一-鿿]{{1,12}}?)(?:中|$))", rest
    )
    parts += [said[1] or said[2]] if said else []
    quoted = re.match(
        r"\s*[,，]?(?:系|为|是|取自|引自|源自|来自)([一-鿿]{1,10}?)的?(?:数据|数值|资料|值)", words
    )
    parts += [quoted[1]] if quoted else []
    for part in parts:
        shown = _own(ctx, part).strip()
        shown = re.sub(r"^(?:for|of|in|with|the|pure|在|对)\s*", "", shown, flags=re.IGNORECASE)
        shown = re.sub(r"中$", "", shown).strip()
        if name_like(shown):
            return shown
    return ""


def name_like(words: str) -> bool:
    """Whether words look like the name of a substance by their ending."""
    if re.search(rf"[{_CJK}]", words):
        left = _PLAIN_ZH.sub("", words)
        return (
            len(words) <= 14
            and len(left) >= 1
            and bool(_NAME_ZH.search(words))
            and not re.search(r"[=%]", words)
        )
    last = words.rsplit(maxsplit=1)[-1] if words.strip() else ""
    return (
        len(words.split()) <= 3
        and len(last) >= 3
        and last.lower() not in _NO_NAME_EN
        and not _plain(last)
        and bool(_NAME_EN.match(last))
    )


# what a line is about that is a part of the subject, or akin to it, and not the subject
PART_OF = re.compile(
    r"组[分份]|成分(?!的?(?:混合物|产品))|杂质|添加剂|稳定剂|副产物|代谢(?:产)?物|类似物|同系物|衍生物|同分异构|交叉参照"
    r"|\b(?:components?|ingredients?|constituents?|impurit(?:y|ies)|additives?|stabili[sz]ers?|by-?products?|metabolites?|analog(?:ue|y|ous)?s?|homolog(?:ue)?s?|derivatives?)\b",
    re.IGNORECASE,
)
# labels within a sheet that no list of labels knows and that name no substance
_HEAD = re.compile(
    r"危险|危害|分类|类别|标签|标志|象形|信号|警示|说明|标准|法规|目录|毒性|刺激|腐蚀|致癌|信息|要素|GHS|CLP|欧盟|中国|物理|健康|环境|反应|预防|储存|处置|事故|响应|其[他它]|接触|限值|职业|急性|慢性|数据|补充|场所|车间|空气|大气|居民|国家|要求|规定|检测|监测|方法|措施"
    r"|hazard|class|label|signal|pictogram|statement|regulat|directive|\bghs\b|\bclp\b|\bosha\b|\beu\b|\bec\b|physical|health|environment|acute|chronic|toxic|irritat|corros|cancer|carcino|information|element|standard|warning|danger|prevention|response|storage|disposal|exposure|limit|other|further|additional|supplement|code|phrase|category",
    re.IGNORECASE,
)
# the points of "Flam. Liq. 2" end nothing
CLAUSE_END = re.compile(r"[;；。\n|]|<br\s*/?>|(?<=[a-z]{4})\.\s+(?=[A-Z(])|(?<=[)%\d])\.\s+(?=[A-Z])")


def spoken_of_other(ctx: Context, before: str) -> str:
    """What the words of a line before a class, code or limit say it is of, where that is not the subject.

    "组分乙醇：", "Silica: …", "The pure substance methanol: …"; "" where nothing else is named. A name
    before a colon counts for what follows up to the next label, a component or an impurity up to the clause's end.
    """
    clause = CLAUSE_END.split(before)[-1]
    found = PART_OF.search(clause)
    if found:
        return found[0]
    colon = max(before.rfind(":"), before.rfind("："))
    if colon < 0:
        return ""
    head = CLAUSE_END.split(before[:colon])[-1]
    head = re.split(r"[:：]", head)[-1].strip(" *-•·")
    found = PART_OF.search(head)
    if found:
        return found[0]
    plain = re.sub(r"\([^()]*\)|\d{2,7}-\d\d-\d", " ", head).strip()
    if not plain or field_of(plain) or not ctx.about_other(plain):
        return ""
    left = _own(ctx, plain)
    words = re.findall(r"[A-Za-z][A-Za-z'-]+", left)
    if any(name_like(word) for word in words) or name_like(re.sub(r"^(?:纯|无水|对|在)", "", left).strip()):
        return plain
    short = len(words) <= 3 if words else len(left) <= 8
    return plain if short and left.strip() and not _HEAD.search(left) and named_before(ctx, left) else ""


_PART = re.compile(r"[;；。\n|]|<br\s*/?>")


def foreign(ctx: Context, words: str, start: int, end: int, *, solvent: bool = False) -> bool:
    """Whether the value ``words[start:end]`` is another substance's than the page's subject.

    The nearest name before it in the same part decides, then one right behind it.
    """
    if named_behind(ctx, words[end:], solvent=solvent):
        return True
    begin = max((m.end() for m in _PART.finditer(words, 0, start)), default=0)
    cuts = [
        begin,
        *(m.end() for m in COMMA.finditer(words, begin, start) if _level(words, begin, m.start()) == 0),
        start,
    ]
    state = False
    for left, right in pairwise(cuts):
        piece = words[left:right]
        last = right == start
        if named_before(ctx, re.sub(r"[\d.]+\s?\S{0,8}$", " ", piece) if not last else piece):
            if last or re.search(r"\d", piece):
                state = True
        elif _own(ctx, piece) != piece:
            state = False
    return state


def _level(words: str, start: int, position: int) -> int:
    part = words[start:position]
    return max(0, part.count("(") + part.count("[") - part.count(")") - part.count("]"))

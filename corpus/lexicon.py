"""Words and signs by which a page about chemistry and safety is recognised, zh and en alike."""

from __future__ import annotations

import re

CHEMISTRY = re.compile(
    r"化学|化合物|元素|分子|原子|离子|反应|氧化|还原|溶液|溶解|溶于|溶剂|催化|合成|酸|碱|盐类|醇|醛|酮|酯|醚|苯|烷|烯|炔|胺|氨|氯|溴|氟|硫|磷|硝|氢"
    r"|毒物|有毒物品|有毒物质|高毒|剧毒|危险品|粉尘|金属|气体|液体|蒸气|沸点|熔点|密度|闪点|蒸气压|分子式|分子量|纯度|聚合|水解|分解|农药|试剂|原料|危险物质|危险货物|危险废物|废酸|废碱|废液"
    r"|\b(?:chemi\w+|compound\w*|molecul\w+|atom\w*|ion(?:s|ic|iz\w+)?|react\w+|oxid\w+|reduc(?:tion|ing|ed)|solution|solub\w+"
    r"|solvent\w*|cataly\w+|synthes\w+|acid\w*|bases?|alkal\w+|alcohol\w*|aldehyde\w*|ketone\w*|ester\w*|ether\w*|benzene|amine\w*"
    r"|ammonia\w*|chlor\w+|brom\w+|fluor\w+|sul(?:f|ph)\w+|phosph\w+|nitr\w+|hydro\w+|metal\w*|gas(?:es|eous)?|liquid\w*|vapou?r\w*"
    r"|boiling|melting|density|flash point|polymer\w*|hydrolys\w+|decompos\w+|pesticide\w*|reagent\w*|substance\w*|toluene|pyridine"
    r"|carbon\w*|oxygen|hydrogen|methyl\w*|ethyl\w*|phenyl\w*|phenol\w*|\w+oxide|alkane\w*|alkene\w*|arene\w*|nitrile\w*|toxicant\w*|hazardous (?:waste|material)s?)\b",
    re.IGNORECASE,
)
SAFETY = re.compile(
    r"危险|危害|有害|毒|易燃|可燃|自燃|燃烧|爆炸|腐蚀|刺激|致癌|致突变|灼伤|中毒|泄漏|泄露|防护|急救|灭火|消防|储存|贮存|存放|运输|安全|事故|应急|隔离|通风"
    r"|火源|禁忌|禁配|接触限值|容许浓度|废弃|职业病|健康|就医|隐患|重大危险源|临界量|许可证|监管|管制|处罚|违法"
    r"|冲洗|催吐|送医|解毒|抢救|窒息|昏迷|过敏|呼吸器|手套|护目|疏散|撤离|警戒|炸药|撞击|摩擦|静电|接地|明火|火种|热源|烟火|防爆|致死|致命|急性|慢性|污染|超标|混放|分开存放"
    r"|\b(?:hazard\w*|danger\w*|harm\w*|toxic\w*|poison\w*|flammab\w+|inflammable|combusti\w+|ignit\w+|explo\w+|corros\w+|irritat\w+"
    r"|carcinogen\w*|mutagen\w*|burns?|spill\w*|leak\w*|protect\w+|first[- ]aid|extinguish\w*|fire\w*|stor(?:age|ed?|ing)|transport\w*"
    r"|safe\w*|accident\w*|emergenc\w+|ventilat\w+|exposures?|exposed|limits?|dispos\w+|inhal\w+|ingest\w+|skin|eyes?|ppe|respirator\w*"
    r"|gloves?|lethal|ld50|lc50|ghs|msds|sds|osha|niosh|acute|chronic|risk\w*|injur\w+|health|occupational|regulat\w+|release\w*"
    r"|violation\w*|permit\w*|restrict\w+|prohibit\w+|pollut\w+|emission\w*|evacuat\w+|antidote\w*|vomit\w*|rins(?:e|ed|ing)|fatal\w*|asphyxia\w*"
    r"|suffocat\w+|alarm\w*|detonat\w+|friction|smoking|contaminat\w+|decontaminat\w+|goggles|incompatib\w+|symptoms?|nausea|unstable|peroxide-forming|water-reactive)\b",
    re.IGNORECASE,
)
QUANTITY = re.compile(
    r"\d\s?(?:°\s?[CF]|℃|℉|%|％|‰|(?:mg|g|kg|μg|µg|ng|t|mL|ml|L|m|cm|mm|nm|pm|Å|K|kPa|MPa|Pa|atm|bar|mmHg|ppm|ppb|mol|mmol|kJ|kcal|eV|MHz|D"
    r"|min|h|wt)\b|[毫微千]?克|公斤|[毫]?升|吨|[厘毫]?米|立方米|分钟|小时|摄氏度)"
)
IDENTIFIER = re.compile(
    r"(?<![\d-])[1-9]\d{1,6}-\d{2}-\d(?![\d-])|\bUN\s?\d{4}\b|\b[HP][2-4]\d{2}\b|\b(?:LD|LC)(?:50|₅₀)|\b(?:[A-Z][a-z]?[₀-₉\d]+){1,}[A-Z]?\b"
    r"|InChI|SMILES|EINECS"
)
# Codes that state a hazard: UN numbers, H and P statements. Each counts as two words of safety.
HAZARD_CODE = re.compile(r"\b(?:UN|NA) ?\d{4}\b|\b(?:EUH|[HP])[02-4]\d{2}\b")
AUTHORITY = re.compile(
    r"\bGBZ?(?:/T)?\s?\d+|\bISO\s?\d+|\bASTM\b|\bIEC\s?\d+|\bCFR\b|\bU\.?S\.?C\.?\b|\bOSHA\b|\bNIOSH\b|\bEPA\b|\bACGIH\b|\bIARC\b|\bIUPAC\b|\bREACH\b|\bECHA\b"
    r"|\bdoi\b|\bISBN\b|\bet al\b|国务院|中华人民共和国|主席令|国家标准|参考文献|参考资料|References|Further reading|Pub\. ?L\.|最高人民法院|GHS",
)
ARTICLE = re.compile(
    r"^[#*\s　]*(?:第[一二三四五六七八九十百零〇\d]+条|§+\s?\d|\(\w{1,4}\)\s|Sec\. \d)", re.MULTILINE
)

# What a page says of itself when it is not a document.
SEARCH_PAGE = re.compile(
    r"search results|results? for\b|results? \d+\s?[-–]\s?\d+ of|约有?\s?[\d,]+\s?[条项]|的搜索结果|搜索结果|检索结果|为您找到|相关结果|没有找到|未找到相关"
    r"|no results? (?:found|for)|did you mean|showing \d+",
    re.IGNORECASE,
)
ERROR_PAGE = re.compile(
    r"\b404\b|page (?:not found|cannot be found|does not exist)|not be found on this server|access denied|\b(?:403|500|502|503)\b.{0,30}(?:error|forbidden|unavailable)"
    r"|页面不存在|找不到(?:该|您)?.{0,8}页面|页面(?:丢失|已删除|走丢)|访问的页面|已被删除|服务器错误|系统繁忙|禁止访问",
    re.IGNORECASE,
)
LOGIN_PAGE = re.compile(
    r"(?:please )?(?:log|sign) ?in (?:to|with|or)|forgot (?:your )?password|create an account|登录后(?:查看|可见|继续)|请先?登录|忘记密码|用户登录|立即注册|验证码",
    re.IGNORECASE,
)
PARKED_PAGE = re.compile(
    r"domain (?:is |may be )?(?:for sale|parked)|buy this domain|this domain|域名(?:出售|转让|可转让|停放)|该域名",
    re.IGNORECASE,
)
SCRIPT_PAGE = re.compile(
    r"enable javascript|javascript (?:is )?(?:required|disabled)|requires javascript|checking your browser|请(?:启用|开启|打开)\s?javascript|正在加载|loading\.{2,}",
    re.IGNORECASE,
)

# What an entry says that has no value, beside the forms of ``corpus.quantities.is_no_data``.
NO_VALUE = re.compile(
    r"^\W*(?:暂无|暂缺|待补充|待完善|未填写?|to be (?:added|completed|determined)|tbd|tba|coming soon|no data)?\W*$",
    re.IGNORECASE,
)

# Words of trade, of job adverts and of tenders: they say what is on offer, not what a substance is.
OFFER = re.compile(
    r"报价|询价|价格|售价|单价|面议|起订|批发|直销|厂家|现货|包邮|优惠|含税|元/吨|购物车|立即购买|销量|已售|好评|发货|送货|来电咨询|免费试用|立即咨询|运费|去?结算|合计|小计|分期|退换货"
    r"|招聘|急聘|诚聘|岗位职责|任职要求|任职资格|简历|月薪|薪资|年终奖|五险一金|福利待遇|投标|招标|采购|中标|开标|报名费|学费"
    r"|\b(?:prices?|pricing|wholesale|(?:in|out of) stock|add to (?:cart|basket)|buy|min(?:imum|\.)? order|free (?:shipping|samples?|delivery)|fast (?:shipping|delivery)"
    r"|discounts?|vat|freight|checkout|quot(?:e|ation)s?|inquir(?:y|ies)|suppliers?|manufacturers?|payment|bestsellers?|special offer|lead time|pack size|sort by"
    r"|apply (?:now|online)|salary|applicants?|vacanc(?:y|ies)|your (?:profile|tasks)|we offer|hiring|full[- ]time|pension|canteen|tuition|enrol(?:l|ment)?|early bird|subtotal|shipping)\b"
    r"|[¥￥€£$]\s?\d|\d\s?(?:€|£|EUR\b|USD\b|RMB\b)",
    re.IGNORECASE,
)

# Words that bid or forbid: what a text on safety says beside the names of hazards, and what a text about one does not.
ADVICE = re.compile(
    r"不得|不准|不许|严禁|禁止|切勿|请勿|不要|必须|务必|避免|防止|(?<![反供相响适效感对顺])应(?![用急聘对变力答激邀])"
    r"|\b(?:do not|don't|never|must|should|shall|avoid(?:ed)?|prevent(?:ed)?|keep (?:away|out|off|clear|cool|dry|from|at least)|immediately|at once)\b",
    re.IGNORECASE,
)
# What pages about people and courses are made of: posts, careers, degrees, examinations.
PROFILE = re.compile(
    r"教授|讲师|导师|研究员|会长|理事|编委|高级工程师|总工程师|董事|总经理|主任医师|现任|历任|毕业于|研究方向|发表论文|荣获|曾获"
    r"|学分|学时|先修|必修|选修|授课|任课|考核方式|期末|期中|教材|课程"
    r"|\b(?:professors?|lecturers?|emerit(?:us|a)|chair(?:man|woman|person)|directors?|chief \w+ officer|chief executive|head of|joined|graduated|ph\.?d|careers?"
    r"|trainees?|expert in|degree in|credits|prerequisites?|instructors?|office hours|mid-?terms?|final exam|semesters?|syllabus|textbooks?|lectures?|homework|coursework)\b",
    re.IGNORECASE,
)

# Marks of lists that lead elsewhere: teasers that break off, page numbers behind leaders, dates and counts of posts.
TEASER = re.compile(
    r"(?:…|\.{3})[\s\])）」”\"'*_]{0,4}$|(?:…|\.{3})[\s\])）]{0,3}(?:\[?(?:read more|more|continue reading|阅读全文|查看详情|更多|详情|全文|快照|cached).{0,12})$"
    r"|(?:read more|continue reading|阅读全文|查看详情|阅读更多)\W{0,4}$",
    re.IGNORECASE,
)
LEADER = re.compile(r"(?:[.…·‥]{3,}|(?:[.·] ){4,})\s*[\divxlc]{1,5}\W{0,3}$", re.IGNORECASE)
STAMP = re.compile(
    r"(?<!\d)\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}(?!\d)|\b\d{1,2}:\d{2}\b|\b(?:today|yesterday)\b|\b\d[\d,.]*[kKmM]? (?:views?|replies|answers?|votes?|comments?|downloads?|hits|likes|followers|(?:minutes?|hours?|days?|weeks?|months?|years?) ago)\b|今天|昨天|前天"
    r"|(?:阅读|浏览|点击|评论|回复|下载|播放|收藏)(?:次数|量|数)?\s*[(（:：]?\s*\d|\d万?\s?(?:个回答|条回复|次播放|人关注|条评论|次下载)|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2},? \d{4}\b|\d(?:分钟|小时|天|个月|年)前",
    re.IGNORECASE,
)

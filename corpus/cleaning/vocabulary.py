"""Words that give page furniture away, in class names, ids and short texts, en and zh.

Class words match whole words only: ``ad`` is not ``adsorption``, ``nav`` is not
``navy``. camelCase, hyphens, underscores and digits separate words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from corpus.cleaning.tags import name_set

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[\u4e00-\u9fff]+")

#: Single class or id words of page furniture.
FURNITURE = name_set(
    """
    nav navbar navbars navigation navigational navi topnav subnav sidenav navbox navigator menu menus submenu
    megamenu menubar sitemap sidebar sidebars sidebox siderail rightrail leftrail footer footers foot bottombar
    pagefooter masthead topbar breadcrumb breadcrumbs crumb crumbs cookie cookies consent gdpr ccpa onetrust
    optanon advert adverts advertisement advertisements advertising ads ad adsense adsbygoogle adbox adslot
    banner banners sponsor sponsored sponsors promo promos promotion promotions promoted share shares sharing
    sharebar sharethis addthis addtoany social socials bdsharebuttonbox bshare jiathis related relateds
    relatedposts recommend recommended recommendation recommendations recommends tuijian xiangguan comment
    comments commentlist disqus pinglun respond replybox subscribe subscription newsletter signup signin login
    logon register popup popups modal lightbox overlay toolbar toolbox pagination pager paginator paging pagenav
    fenye tagcloud taglist skip skiplink skiplinks skipnav toc tocbox editsection noprint
    printfooter catlinks jump interwiki langlist languages references reflist citations hatnote ambox mbox
    dablink sistersitebox sistersites authority portalbox printonly screenreader clickstream trending popular
    mostread hotnews hotlist rank ranking paihang guanggao daohang fenxiang dibu banquan youlian friendlink
    friendlinks flink copyright copyrights colophon legal prevnext previousnext postnav shop cart minicart
    checkout wishlist searchform searchbox searchbar feedback rating ratings vote votes likes dianzan qrcode
    erweima weixin backtotop totop gotop returntop kefu livechat chatbox outbrain taboola byline authorbox
    authorbio signature postprofile userprofile onlinelist whoisonline guess quickreply fastpost fastreply
    """
)
PAIRS = name_set(
    """
    page-header site-header global-header main-header top-header page-foot site-info top-bar side-bar right-bar
    left-bar left-side right-side right-column left-column side-column top-menu action-bar skip-link skip-links
    sr-only visually-hidden screen-reader related-posts related-links related-articles see-also read-more
    read-next more-news hot-news latest-news entry-meta post-meta article-meta entry-tags post-tags article-tags
    article-tools page-tools post-nav prev-next back-top back-to top-link author-box author-bio about-author
    widget-area widget-title footer-widgets sidebar-widget most-read hot-list author-info trust-badge marketplace-box
    online-list quick-reply post-form reply-form newsletter-box aside-goods fast-post user-bar friend-link
    friend-links share-bar share-box search-form search-box search-bar mw-indicators
    mw-jump mw-navigation site-sub content-sub language-list lang-list lang-switch language-switcher
    table-contents vector-toc page-tabs vector-column last-modified edit-section external-links print-footer
    """
)
#: Class or id words of the place where the content stands.
CONTENT = name_set(
    """
    article articles articlebody articlecontent articletext post postbody postcontent entry entrycontent content
    contents contenttext maincontent bodycontent main mainbody story storybody text body detail details
    detailcontent zhengwen neirong wenzhang xiangqing trs editor trseditor rich richtext lemma document
    documentation markdown wiki parser prose blog news page
    """
)
LABEL_WORDS = name_set(
    """
    label key name title term field property attribute prop th dt caption item
    """
)
VALUE_WORDS = name_set(
    """
    value val data desc description definition content text dd td info detail
    """
)
COLLAPSED = name_set(
    """
    tab tabs tabpanel tabcontent pane panel panels accordion collapse collapsed collapsible expand expandable
    toggle details fold slide section content body more
    """
)
#: Places where a text says what a picture shows.
CAPTIONS = name_set("caption captions thumbcaption figcaption gallerytext gallerycaption")
INFOBOX = name_set(
    """
    infobox chembox drugbox taxobox databox factbox basicinfo propertytable properties property specs spec
    specification specifications ghs hazard hazards sds msds
    """
)

#: Short blocks (at most ``SHORT_TEXT`` characters) that are furniture by what they say.
SHORT_TEXT = 160
FURNITURE_TEXT = re.compile(
    r"""^[\s\W]*(?:
      (?:share|tweet|pin|e-?mail|print)(?:\s+(?:this|the))?(?:\s+(?:page|article|story|post|link))?(?:\s+(?:(?:on|to|via|with)\s+(?:facebook|twitter|x|linkedin|pinterest|whatsapp|reddit|e-?mail|friends?|a\s+friend)\b.{0,40}))?
    | (?:\[[A-Za-z][a-z]{2,}[A-Za-z\x20]{1,24}\]\s*){2,6}
    | share\s+(?:on|via)\b.{0,80} | follow\s+us\b.{0,60} | like\s+us\s+on\b.{0,40}
    | (?:skip|jump)\s+to\s+(?:the\s+)?(?:main|page|primary)?\s*(?:content|navigation|nav|search|footer|header|menu|sidebar|top|bottom|comments|results)\b.{0,20} | (?:go\s+)?back\s+to\s+(?:the\s+)?(?:top|home|list|index|search).{0,30}
    | (?:to\s+the\s+)?top\s+of\s+(?:the\s+)?page | advertisements?|sponsored(?:\s+content)? | loading\s*(?:\.{2,}|…)\W*
    | (?:log|sign)\s*(?:in|out|up)(?:\s*[/|]\s*(?:register|sign\s*up|join))? | subscribe(?:\s+(?:now|to|for)\b.{0,80})?
    | (?:read|view|show|see)\s+(?:more|all|less)(?:\s*[»>…]+)? | (?:leave|post|add)\s+a\s+(?:comment|reply)
    | (?:no|\d+)\s+comments? | (?:click\s+here\s+to\s+)?print\s+(?:this\s+)?(?:page|article)
    | (?:please\s+)?enable\s+javascript.{0,80} | .{0,40}\buses?\s+cookies\b.{0,100}
    | (?:©|\(c\)\s*(?:copyright\b|\d{4})|copyright\b|版权所有|著作权).{0,150} | .{0,120}\ball\s+rights\s+reserved\W*.{0,30}
    | .{0,60}(?:ICP备|ICP证|公网安备).{0,80} | (?:privacy\s+policy|terms\s+of\s+(?:use|service)|site\s*map|contact\s+us)
    | (?:previous|next)\s+(?:article|post|page|story)\b.{0,120} | you\s+(?:are|were)\s+here\b.{0,120}
    | 分享(?:到|至|本文|给)?.{0,40} | (?:上|下)一(?:篇|页|条|章)\s*[:：]?.{0,100} | (?:返回|回到)(?:顶部|首页|列表|上页|目录).{0,10}
    | (?:当前|您的?|你的?)(?:所在)?位置(?:是)?\s*[:：]?.{0,120} | (?:您|你)(?:现在)?(?:所在的?|的当前)位置.{0,120}
    | (?:责任)?编辑\s*[:：].{0,24} | \(?（?责任?编辑\s*[:：]?.{0,20}[)）]? | 扫一扫.{0,40} | (?:长按|扫描).{0,10}二维码.{0,30}
    | (?:(?:更新|发布|發布|发表)(?:时间|時間|日期)\s*[:：]?\s*[\d\-/.年月日:\s]{6,24})?\s*(?:浏览|瀏覽|阅读|閱讀|点击|點擊|访问|查看|下载|下載)(?:次数|次數|量|数|數|率)?\s*[:：]\s*\d[\d,.万萬]*\s*(?:次|人)?(?:\s*(?:打印|关闭|收藏|分享|列印)(?:本页|本頁|窗口|此页)?)*
    | (?:打印|关闭|列印|關閉)(?:本页|本頁|窗口|視窗|此页)?(?:\s*[|｜]?\s*(?:打印|关闭|列印|關閉)(?:本页|本頁|窗口|視窗)?)*
    | (?:发表|發表|发布)(?:新)?(?:帖子?|主题|回复|回覆) | (?:您|你|請|请).{0,4}(?:登录|登入|登錄).{0,10}(?:才|后|後)(?:可以|能|可).{0,30} | 只看(?:该作者|楼主|樓主)
    | 请自觉遵守互联网.{0,80} | 点击(?:上方|下方)?蓝字.{0,30} | (?:订阅|訂閱).{0,20}(?:电子报|電子報|邮件|周刊|日报|快讯|早报).{0,40}
    | (?:编辑|編輯)(?:此|本|该)?(?:页面?|頁面?|段)(?:源码|源碼)? | edit\s+(?:this|the)\s+page(?:\s+on\s+\w+)? | view\s+(?:page\s+)?source
    | by\s+(?:clicking|posting)\b.{0,120}\bagree\b.{0,120} | (?:post\s+)?your\s+(?:answer|reply|comment)\b.{0,30} | users?\s+(?:browsing|viewing)\s+this\s+(?:forum|topic|thread|page).{0,120}
    | 下[载載].{0,24}(?:积分|積分|金币|金幣).{0,24} | (?:看[过過]|[浏瀏][览覽][过過]|[购購][买買][过過])(?:本|[该該]|此|[这這]).{0,10}(?:人|用[户戶]|[读讀]者|[访訪]客)[还還]?(?:看|[浏瀏][览覽]|[购購][买買]).{0,120} | 【?(?:字号|字体)\s*[:：]?.{0,20}
    | (?:加入|设为)?(?:收藏|首页)(?:本[站页])? | (?:登录|注册)(?:\s*[|/｜]\s*(?:登录|注册))? | 友情链接.{0,100} | 主办(?:单位)?[:：].{0,100}
    | (?:点击|查看|展开|阅读)(?:更多|全文|加载更多).{0,10} | (?:我要|发表|查看|全部|网友)评论.{0,20} | 广告
    | (?:本网站?|网站)(?:标识码|地图).{0,60} | 技术支持\s*[:：].{0,60}
    )[\s\W]*$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
#: Headings whose section of links (or whole list) is furniture.
FURNITURE_HEADING = re.compile(
    r"""^[\s\W\d.]*(?:
      related(?:\s+(?:articles?|posts?|stories|news|links?|pages?|topics?|content|products?|items?|reading|searches))?
    | (?:see|read)\s+also | read\s+(?:more|next) | more\s+(?:from|on|news|stories|articles|in)\b.{0,40}
    | you\s+(?:may|might)\s+(?:also\s+)?(?:like|be\s+interested).{0,30} | recommended(?:\s+(?:for\s+you|reading|articles?|stories))?
    | (?:most\s+)?(?:popular|read|viewed|recent|latest)\s*(?:articles?|posts?|news|stories)? | trending(?:\s+now)? | what\s+links\s+here
    | external\s+links? | references? | (?:foot)?notes(?:\s+and\s+references)? | citations | bibliography | further\s+reading
    | (?:cited\s+)?sources | comments? | \d+\s+comments? | leave\s+a\s+(?:reply|comment) | share(?:\s+this)? | tags | categories
    | navigation(?:\s+menu)? | contents | table\s+of\s+contents | in\s+other\s+(?:languages|projects) | quick\s+links
    | newsletter | subscribe.{0,40} | advertisement
    | 相关(?:推荐|阅读|文章|新闻|链接|词条|资讯|内容|产品|搜索|专题|信息|附件)? | (?:热门|热点|最新|精彩|为您|为你|猜你|延伸|更多|编辑|小编)(?:推荐|阅读|文章|新闻|资讯|喜欢|内容)
    | (?:根据浏览)?猜你喜欢 | 看了又看 | 买了又买 | 购物指南 | who\s+is\s+online | 友情链接 | 外部(?:链接|连结|連結) | 参考(?:资料|文献|来源) | 參考(?:資料|文獻|來源) | 注释|註釋|脚注|参见|參見|参看|延伸阅读|延伸閱讀
    | (?:网友|最新|全部|热门)?评论(?:\s*[（(]?\d*[)）]?)? | 词条标签 | 目录|目錄 | 导航(?:菜单)? | 排行榜? | (?:点击|阅读)排行 | 分享(?:到)?
    )[\s\W]*$""",
    re.IGNORECASE | re.VERBOSE,
)
#: Of them, those whose section goes whatever plain text it holds (short, and without facts).
APPEAL_HEADING = re.compile(
    r"^[\s\W\d.]*(?:"
    r"(?:newsletter|subscribe|sign\s+up|follow\s+us|share|advertisement|分享(?:到)?)"
    r"(?:\s+(?:this|on|via|with|us|to|for|our|now|here)\b.{0,40})?"
    r"|tags|(?:\d+\s+)?comments?(?:\s*\(\d+\))?|leave\s+a\s+(?:reply|comment)\b.{0,40}"
    r"|(?:网友|最新|全部|热门)?评论(?:\s*[（(]?\d*[)）]?)?)[\s\W\d]*$",
    re.IGNORECASE,
)
#: Lines that lead to other pages: a label, then links.
LINK_LEAD = re.compile(
    r"^[\s\W]*(?:(?:read|see|watch)\s+(?:also|more|next)|related|more\s+(?:on|from)|tags?|filed\s+under|categor(?:y|ies)|topics?"
    r"|keywords|相关(?:链接|阅读|新闻|文章)|延伸阅读|标签|关键词|上一篇|下一篇|推荐阅读)\s*[:：]",
    re.IGNORECASE,
)
NOTES_HEADING = re.compile(
    r"^[\s\W\d.]*(?:references?|(?:foot)?notes(?:\s+and\s+references)?|citations|参考(?:资料|文献|来源)|參考(?:資料|文獻)|注释|註釋|脚注)[\s\W]*$",
    re.IGNORECASE,
)
#: Sections whose items lead away, each with a word about where to.
LEADS_HEADING = re.compile(
    r"^[\s\W\d.]*(?:external\s+links?|(?:see|read)\s+also|further\s+reading|外部(?:链接|連結|连结)|参见|參見|参看|延伸阅读|延伸閱讀)[\s\W]*$",
    re.IGNORECASE,
)
SCRIPT_NOTICE = re.compile(
    r"(?:enable|requires?|need|turn\s+on|without)\s+.{0,30}javascript|javascript\s+.{0,40}(?:disabled|required|enable)"
    r"|(?:启用|开启|打开|支持|允许)\s*javascript|javascript.{0,20}(?:启用|开启|禁用|不支持)",
    re.IGNORECASE,
)

# the first digit leads, so that a search skips what is none in one go; what stands before it comes second
CAS = re.compile(r"\d(?<![\d-]\d)\d{1,6}[-‐‑–]\d{2}[-‐‑–]\d(?![\d-])")
QUANTITY = re.compile(
    r"\d\s*(?:°\s*[CF]|℃|℉|[mkc]?g\b|mg/|[mμµ]?[lL]\b|ppm|ppb|%|k?Pa\b|mmHg|bar\b|psi\b|g/|K\b|kJ|mol|mm\b|cm\b|m3|m³|吨|毫克|千克|公斤|升)"
)
IDENTIFIER = re.compile(
    r"\b(?:UN|NA)[\s-]?\d{4}\b|\b[HP]\d{3}[A-Za-z]*\b|\bGHS0\d\b|\bInChI=|\bE[CU]\s?\d{3}-\d{3}-\d\b",
    re.ASCII,
)


_PROHIBITION = re.compile(
    r"\b(?:do\s+not|don['’]t|never|avoid|not|no|must|keep\s+away|only)\b|不得|禁止|严禁|嚴禁|切勿|勿|禁忌|不可|不能|避免|远离|遠離|必须|必須|立即|未|无",
    re.IGNORECASE,
)
_SAFETY = re.compile(
    r"\b(?:oxidi[sz]|acids?\b|alkali|chlor|vomit|by\s+mouth|inhal|corros|flamm|combust|explos|toxic|poison|breath|vapou?r|spark"
    r"|flames?\b|ignit|extinguish|fires?\b|water\b|skin\b|eyes?\b|refrigerant|lock-?out|peroxid|spill|leak|drain|sewer|gloves?\b|respirat"
    r"|ceiling\b|exposure|reactiv|unstable|stable\b|hazard|steel\b|pvc\b|rubber\b|victim|oxygen|hydrogen|cyanide|carcino|irritat)"
    r"|氧化|酸|碱|鹼|呕吐|嘔吐|催吐|误服|誤服|吸入|皮肤|皮膚|眼睛|接触|接觸|腐蚀|腐蝕|燃|爆炸|毒|蒸气|蒸汽|蒸氣|火|泄漏|洩漏|下水道|手套|防护|防護|限值|稳定|穩定|危害|用水",
    re.IGNORECASE,
)
_CLASSED = re.compile(
    r"\b(?:packing\s+group\s+I{1,3}\b|(?:health|flammability|instability|reactivity)\s*[:：]?\s*[0-4]\b|hazard\s+class\s+\d|signal\s+word)"
    r"|包装(?:类别|组)\s*[:：]?\s*[IⅠⅡⅢ]|信号词|警示词",
    re.IGNORECASE,
)
_OF_THE_SITE = re.compile(
    r"cookie|privacy|newsletter|subscri|log\s*in|sign\s*(?:in|up)|password|advert|rights\s+reserved|©|隐私|隱私|订阅|訂閱|登录|登錄|注册|註冊|广告|廣告|版权|版權|转载|轉載",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")


def denies(text: str) -> bool:
    """Whether a text holds a negation or an order."""
    return bool(_PROHIBITION.search(text))


def is_statement(text: str) -> bool:
    """Whether a text says what must or must not be done, or how something is classed: no furniture.

    A lost prohibition is as bad as a lost number. Texts about the site itself (cookies,
    accounts, rights) are none, whatever they forbid.
    """
    if _OF_THE_SITE.search(text):
        return False
    return bool(_CLASSED.search(text) or (_SAFETY.search(text) and _PROHIBITION.search(text)))


def has_facts(text: str) -> bool:
    """Whether a text carries an identifier or a quantity: never furniture on a word's evidence alone."""
    if not _DIGIT.search(text):
        return "InChI=" in text
    return bool(CAS.search(text) or QUANTITY.search(text) or IDENTIFIER.search(text))


#: Furniture however long its text: what readers say, sources, law and consent.
TALKATIVE = name_set(
    """
    comment comments commentlist disqus pinglun respond replybox references reflist citations cookie cookies
    consent gdpr ccpa onetrust optanon legal copyright copyrights banquan popup popups modal lightbox overlay
    footer footers toc interwiki langlist languages catlinks printfooter
    """
)
#: Of them, those whose text is readers' talk or about the site, whatever it says.
CHATTER = name_set(
    """
    comment comments commentlist disqus pinglun respond replybox cookie cookies consent gdpr ccpa onetrust
    optanon references reflist citations signature
    """
)
#: Class or id words of a lead: the first sentences, set apart from the body.
LEAD = name_set(
    "lead lede intro introduction standfirst vorspann chapo summary abstract daoyu zhaiyao teaserlead dek"
)
#: Class or id words of what stands under a title and is no lead.
BYLINE = name_set(
    "byline author authors date time info meta source zuozhe laiyuan shijian crumbs tags share tools views"
)
_INNER_STATE = re.compile(r"(?<=[a-z])(?:With|Has|No|Is)[A-Z]\w*")
_STATES = ("has-", "with-", "no-", "is-", "without-", "hide-", "show-", "js-")


@lru_cache(maxsize=8192)
def evidence(classes: str) -> str:
    """Class names without what says no more than a state or a variant.

    ``has-sidebar`` and the modifier of ``section--ads`` (block--modifier) tell what a
    block may hold, not what it is; so does ``anchorWithStickyNavbar``.
    """
    kept = (
        _INNER_STATE.sub("", name.partition("--")[0])
        for name in classes.split()
        if not name.startswith(_STATES) and "RichText" not in name
    )
    return " ".join(name for name in kept if name)


def says_content(classes: str) -> bool:
    """Whether a class name's last word, its head, is a place of content: ``post-body``, not ``ArticleSidebar``."""
    return any((named := words(name)) and named[-1] in CONTENT for name in classes.split())


@lru_cache(maxsize=8192)  # a page says the same few class names again and again
def words(given: str) -> tuple[str, ...]:
    """Whole words of class names or an id, lower case, in order."""
    return tuple(word.lower() for word in _WORD.findall(given))


@lru_cache(maxsize=8192)
def may_be_furniture(classes: str, own_id: str) -> bool:
    """Whether the words of class names and an id, taken together, name page furniture."""
    return is_furniture(words(f"{evidence(classes)} {own_id}"))


@lru_cache(maxsize=8192)
def is_furniture(given: tuple[str, ...]) -> bool:
    """Whether class words (of ``words``) name page furniture."""
    if any(name in FURNITURE for name in given):
        return True
    return any(f"{one}-{two}" in PAIRS for one, two in pairwise(given))

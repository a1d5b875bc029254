"""Chinese pages that are no documents (made up)."""

from __future__ import annotations

import json

from tests.corpus.junk.parts import SUBSTANCES, bare, divs, links, modern, page, tables

_S = SUBSTANCES


def _page(title: str, body: str) -> str:
    return page(title, body, "zh-CN")


def _site_search() -> str:
    hits = "".join(
        f'<div class="result"><h3><a href="/msds/{s.cas}.html"><em>{s.zh}</em>安全技术说明书MSDS_{s.cas}</a></h3><div class="abs">{s.zh}（{s.formula}），CAS号{s.cas}，易燃液体，其蒸气与空气可形成爆炸性混合物，'
        f'遇明火、高热能引起燃烧爆炸。闪点{n - 20}℃，储存于阴凉、通风的库房，远离火种…</div><div class="url">www.hxp.example/msds/{s.cas}.html  2023-{n % 12 + 1}-{n % 28 + 1}  快照</div></div>'
        for n, s in enumerate(_S[:30])
    )
    return _page("“易燃液体”的搜索结果 - 化学品查询网", modern(f"<h1>易燃液体</h1><p>为您找到相关结果约 1,280 条，用时 0.03 秒</p>{hits}<p>上一页 1 2 3 4 5 下一页</p>", zh=True))  # fmt: skip


def _web_search() -> str:
    hits = "".join(
        f'<div class="c-container"><h3><a href="http://l.example/{n}">{s.zh}的性质、用途及危险性_百度文库</a></h3><p>{n % 12 + 1}个月前 - {s.zh}为无色液体，有毒，对眼睛、皮肤和呼吸道有刺激作用。与强氧化剂接触可发生反应，沸点{40 + n * 3}℃…</p><span>lab{n}.example - 广告</span></div>'
        for n, s in enumerate(_S[5:25])
    )
    related = links([f"{s.zh}的毒性" for s in _S[:10]])
    return _page("有毒气体有哪些_查一下", divs(f"<div>大家还在搜</div><ul>{related}</ul>{hits}<div>其他人还搜了</div><ul>{links([f'{s.zh}泄漏怎么办' for s in _S[8:20]])}</ul>", zh=True))  # fmt: skip


def _contents() -> str:
    chapters = ["化学品危险性概论", "易燃液体", "压缩气体和液化气体", "氧化剂和有机过氧化物", "毒害品", "腐蚀品", "储存与运输", "火灾与爆炸的预防", "职业病防治", "事故应急救援"]  # fmt: skip
    rows = "".join(
        f"<p><b>第{n}章　{name}</b>………………{n * 27}</p>" + "".join(f"<p>　　{n}.{k}　{s.zh}的{('性质', '储存', '毒性', '急救')[k % 4]}……………{n * 27 + k * 3}</p>" for k, s in enumerate(_S[n : n + 8], 1))
        for n, name in enumerate(chapters, 1)
    )  # fmt: skip
    return _page("危险化学品安全手册 目录", tables(f"<h1>危险化学品安全手册</h1><h2>目　录</h2>{rows}<p>附录一　重大危险源临界量表　附录二　CAS号索引</p>", zh=True))  # fmt: skip


def _index() -> str:
    groups = "".join(f"<h2>{c}</h2><ul>{links([f'{s.zh} {s.cas}' for s in _S[k::12]], '/msds/')}</ul>" for k, c in enumerate("ABCDFGHJLMQS"))  # fmt: skip
    return _page("MSDS大全 按拼音索引", divs(f"<h1>化学品安全技术说明书大全</h1><p>点击名称查看安全技术说明书，共收录 21,345 种化学品。</p>{groups}", zh=True))  # fmt: skip


def _category() -> str:
    cards = "".join(
        f'<div class="goods"><a href="/g/{s.cas}"><img alt="{s.zh}" src="/i/{n}.jpg"></a><p class="name"><a href="/g/{s.cas}">{s.zh} 分析纯AR 500ml</a></p><p>CAS：{s.cas}　分子式：{s.formula}</p><p class="price">¥{n * 4 + 18}.00　已售 {n * 37} 件　好评率 9{n % 10}%</p></div>'
        for n, s in enumerate(_S[:40])
    )
    return _page("化学试剂_有机溶剂_批发价格 - 示例试剂商城", modern(f"<h1>化学试剂 &gt; 有机溶剂</h1><p>共 412 件商品　综合排序　销量　价格　评论数</p>{cards}<p>1 2 3 4 下一页 共12页 到第 页 确定</p>", zh=True))  # fmt: skip


def _shell() -> str:
    state = json.dumps({"list": [s._asdict() | {"flash": n, "hazard": "易燃、有毒"} for n, s in enumerate(_S)]}, ensure_ascii=False)  # fmt: skip
    return _page("危险化学品登记信息查询", f'<noscript><strong>本系统需要启用JavaScript才能正常使用，请打开JavaScript后刷新页面查看危险化学品信息。</strong></noscript><div id="app"><div class="loading">正在加载...</div></div><script>window.__DATA__={state}</script><script src="/js/chunk-vendors.js"></script>')  # fmt: skip


def _login() -> str:
    rules = "".join(f"<p>{n}、用户应妥善保管账号和密码，不得转让。因账号泄露造成的损失由用户承担。本平台有权限制违规账号查看危险化学品安全信息。</p>" for n in range(1, 10))  # fmt: skip
    return _page("用户登录 - 化学品安全信息平台", modern(f"<h1>用户登录</h1><p>请先登录后查看苯（CAS 71-43-2）的安全技术说明书全文。还没有账号？立即注册</p><form><input name=u><input type=password name=p><input name=code>验证码<button>登录</button></form><p><a href=/f>忘记密码</a></p><h3>用户注册协议</h3>{rules}", zh=True))  # fmt: skip


def _parked() -> str:
    words = ["化学品安全培训", "危险品运输公司", "防爆柜厂家", "实验室通风橱", "有毒气体检测仪", "消防器材", "危废处理", "劳保用品", "MSDS报告办理"]  # fmt: skip
    return _page("weihuapin.example", bare(f"<h1>weihuapin.example</h1><p>该域名可转让，有意者请联系。一口价 88,000 元。</p><h3>相关搜索</h3><ul>{links(words * 2)}</ul><p>以上链接由第三方提供，与域名持有人无关。</p>"))  # fmt: skip


def _not_found() -> str:
    hot = links([f"{s.zh}MSDS安全技术说明书" for s in _S[:24]])
    return _page("页面不存在", modern(f"<h1>抱歉，您访问的页面不存在或已被删除</h1><p>可能是地址输入有误，或者该化学品的资料已经下架。您可以返回首页，或在搜索框中输入化学品名称、CAS号重新查找。</p><h2>热门化学品</h2><ul>{hot}</ul>", zh=True))  # fmt: skip


def _error() -> str:
    return _page("系统提示", bare("<h2>服务器错误</h2><p>系统繁忙，请稍后再试。危险化学品安全信息数据库正在升级维护，预计于今日18时恢复。如遇化学品泄漏、中毒等紧急事故，请立即拨打当地应急电话。</p><p>错误代码：500 Internal Server Error</p><p><a href=/>返回首页</a></p>"))  # fmt: skip


def _captcha() -> str:
    return _page("安全验证", bare("<h1>安全验证</h1><p>您的访问过于频繁，系统检测到您所在的网络存在异常访问行为。为保护网站安全，请完成下方拼图验证后继续查看化学品资料。</p><div>拖动滑块完成拼图</div><p>验证码看不清？换一张</p><p>问题反馈</p>"))  # fmt: skip


def _forbidden() -> str:
    return _page("访问受限", bare("<h1>禁止访问</h1><p>根据网站安全策略，您没有权限访问该目录下的危险化学品资料。如需帮助，请联系网站管理员，并提供事件编号。</p><p>HTTP 403</p>"))  # fmt: skip


def _tag() -> str:
    posts = "".join(
        f"<div class='item'><h3><a href='/a/{n}'>{t.format(s.zh)}</a></h3><p>{s.zh}是一种常见的危险化学品，对人体健康有一定的危害，储存和运输时要注意防火防爆。那么{s.zh}泄漏后应该怎么办呢？下面小编就为大家介绍一下……</p><span>阅读({n * 91})　评论({n})　2023-{n % 12 + 1}-{n % 28 + 1}</span> <a href='/a/{n}'>阅读全文</a></div>"
        for n, (t, s) in enumerate(zip(["{}有毒吗？", "{}的危害有哪些", "{}如何储存", "关于{}的几点知识", "{}泄漏怎么处理"] * 5, _S[10:35], strict=True))
    )  # fmt: skip
    return _page("危险化学品相关文章_标签_安全管理网", divs(f"<h1>标签：危险化学品</h1>{posts}<p>首页 上一页 1 2 3 下一页 末页</p>", zh=True))  # fmt: skip


def _cookie_wall() -> str:
    partners = "".join(f"<li>合作伙伴{n}：存储和访问设备上的信息，用于个性化广告、内容衡量和受众研究，保存期限{n * 30}天。</li>" for n in range(1, 50))  # fmt: skip
    return _page("隐私设置", bare(f"<h1>我们重视您的隐私</h1><p>为了向您展示化学品安全资讯并衡量其效果，我们和合作伙伴会使用Cookie处理您的个人信息。您可以接受全部、拒绝全部或管理您的选择。拒绝后部分安全资料可能无法查看。</p><button>全部接受</button><ul>{partners}</ul>"))  # fmt: skip


def _empty_product() -> str:
    names = "熔点|沸点|闪点|密度|蒸气压|爆炸上限|爆炸下限|水溶性|引燃温度|急性毒性LD50|急性毒性LC50|皮肤刺激|致癌性|接触限值|储存条件|灭火方法|急救措施|UN编号|危险性类别|包装类别|废弃处置".split("|")  # fmt: skip  # noqa: SIM905
    rows = "".join(f"<tr><th>{name}</th><td>{('暂无数据', '无资料', '—', '暂无')[n % 4]}</td></tr>" for n, name in enumerate(names))  # fmt: skip
    parts = "".join(f"<h2>第{c}部分　{name}</h2><p>无资料</p>" for c, name in zip("二三四五六七八九十", ["危险性概述", "成分/组成信息", "急救措施", "消防措施", "泄漏应急处理", "操作处置与储存", "接触控制和个体防护", "理化特性", "稳定性和反应性"], strict=True))  # fmt: skip
    return _page("4-丁基-2-甲基噁唑_CAS_化工词典", modern(f"<h1>4-丁基-2-甲基噁唑</h1><p>CAS：000000-00-0</p><table>{rows}</table>{parts}<p>该化合物暂无更多信息，欢迎补充完善。</p>", zh=True))  # fmt: skip


def _price_list() -> str:
    rows = "".join(f"<tr><td>{n + 1}</td><td>{s.zh}</td><td>{s.cas}</td><td>≥99.{n % 10}%</td><td>{(500, 25, 160, 200)[n % 4]}{('ml', 'kg', 'kg', 'L')[n % 4]}</td><td>{n * 130 + 900}元</td><td>{('↑', '↓', '—')[n % 3]}{n * 10 % 70}</td><td>华东</td></tr>" for n, s in enumerate(_S))  # fmt: skip
    return _page("今日化工原料价格行情", tables(f"<h1>今日化工原料市场报价</h1><p>以下价格仅供参考，单位：元/吨，含税。</p><table><tr><th>序号</th><th>品名</th><th>CAS号</th><th>含量</th><th>包装</th><th>报价</th><th>涨跌</th><th>产地</th></tr>{rows}</table><p>危险品运输费用另计，一律凭许可证购买。</p>", zh=True))  # fmt: skip


def _shop() -> str:
    offers = "".join(f"<div class='offer'><b>供应{s.zh}</b>　CAS：{s.cas}<br>示例化工有限公司（第{n % 12 + 1}年会员）　主营：{s.zh}、{_S[(n + 3) % 48].zh}、{_S[(n + 9) % 48].zh}<br>起订量：{n + 1}吨　价格：面议　发货地：示例市　<a href='/x/{n}'>立即询价</a>　<a href='/c/{n}'>在线沟通</a></div>" for n, s in enumerate(_S))  # fmt: skip
    return _page("化工原料供应信息_批发_厂家直销", divs(f"<h1>化工原料供应信息</h1><p>共 2,184 条供应信息，311 家供应商，危险化学品凭证购买，安全包装，送货上门。</p>{offers}", zh=True))  # fmt: skip


def _link_farm() -> str:
    groups = "".join(f"<h3>{name}</h3><p>{links([f'{s.zh}{word}' for s in _S[k : k + 20]], '/go/', ' ', '{}')}</p>" for k, (name, word) in enumerate([("安全知识", "安全知识"), ("生产厂家", "厂家"), ("价格行情", "价格"), ("危害", "的危害"), ("用途", "的用途"), ("MSDS", "MSDS下载")]))  # fmt: skip
    return _page("化工网址导航", bare(f"<h1>化工网址大全</h1><p>收录化学、化工、安全、环保类优秀网站，免费提交网站。</p>{groups}"))  # fmt: skip


def _jobs() -> str:
    tasks = ["负责公司危险化学品安全管理，编制安全技术说明书和安全标签", "组织安全检查，排查火灾、爆炸、中毒隐患", "监测车间有毒气体浓度和通风设施", "组织消防、泄漏、急救等应急演练", "办理危险化学品经营、运输许可证"]  # fmt: skip
    asks = ["化学、化工、安全工程专业本科及以上学历", "三年以上化工企业安全管理经验，持注册安全工程师证优先", "熟悉危险化学品安全管理条例、GB 18218等标准", "责任心强，能适应出差"]  # fmt: skip
    lists = "".join(f"<h3>{h}</h3><ul>{''.join(f'<li>{x}；</li>' for x in xs)}</ul>" for h, xs in (("岗位职责", tasks), ("任职要求", asks), ("福利待遇", ["五险一金，带薪年假，免费工作餐", "月薪8000-12000元，年终奖金", "每年一次健康体检，提供宿舍"])))  # fmt: skip
    return _page("急聘安全主管_示例化工有限公司", modern(f"<h1>安全主管（化工）</h1><p>示例市 | 经验3-5年 | 本科 | 招2人 | 2024-03-08发布</p><p>示例化工有限公司成立于2001年，主要生产有机溶剂和涂料，现有员工600人。</p>{lists}<p>工作地点：示例市化工园区　有意者请投递简历，或电话联系人事部。</p><h3>相似职位</h3><ul>{links(['安全员', '化验员', '工艺工程师', '环保专员', '设备主管', '仓库管理员'])}</ul>", zh=True))  # fmt: skip


def _spam() -> str:
    lines = "".join(f"<p>{s.zh}厂家直销{s.zh}价格优惠，{s.zh}哪里有卖，本公司{s.zh}质量可靠{s.zh}含量高，{s.zh}广泛用于化工医药农药溶剂合成，欢迎新老客户来电咨询{s.zh}。{s.cas}的{s.zh}安全包装快速发货，买{s.zh}就找我们，{s.zh}供应商{s.zh}批发。</p>" for s in _S[:30])  # fmt: skip
    return _page("丙酮厂家_甲醇价格_硫酸批发_化工原料", divs(f"<h1>化工原料厂家直销 价格优惠</h1>{lines}<p>热门标签：{'、'.join(s.zh + '厂家' for s in _S)}</p>", zh=True))  # fmt: skip


def _forum() -> str:
    rows = "".join(f"<tr><td><a href='/t/{n}'>{q.format(s.zh)}</a></td><td>网友{n * 7}<br>2023-{n % 12 + 1}-{n % 28 + 1}</td><td>{n * 3 % 40}/{n * 211}</td><td>user{n} 昨天 {n % 24:02}:15</td></tr>" for n, (q, s) in enumerate(zip(["求助：{}怎么处理？", "{}的闪点是多少", "{}和盐酸能混放吗", "[讨论]{}泄漏事故", "{}中毒症状", "分享{}的MSDS"] * 6, _S[:36], strict=True)))  # fmt: skip
    return _page("安全技术讨论区 - 化工论坛", tables(f"<h1>安全技术讨论区</h1><p>今日：21　主题：8,344　版主：admin</p><table><tr><th>主题</th><th>作者</th><th>回复/查看</th><th>最后发表</th></tr>{rows}</table><p>您需要登录后才可以发帖</p>", zh=True))  # fmt: skip


def _sitemap() -> str:
    parts = "".join(f"<h2>{name}</h2><ul>{links([word + s.zh for s in _S[k::5]], f'/{k}/')}</ul>" for k, (name, word) in enumerate([("产品", "供应"), ("安全", "安全说明书："), ("应用", "应用："), ("法规", "限值："), ("新闻", "快讯：")]))  # fmt: skip
    return _page("网站地图", modern(f"<h1>网站地图</h1>{parts}", zh=True))


def _terms() -> str:
    clauses = ["本网站提供的化学品安全信息来源于网络，仅供参考，不构成任何保证。用户因使用本网站信息造成的事故、伤害和损失，本网站不承担责任。", "安全技术说明书由第三方提供，用户在操作危险化学品前应当以生产企业提供的文件为准。", "未经书面许可，任何单位和个人不得转载、复制本网站内容，违者将依法追究法律责任。", "用户不得利用本网站从事违法活动，不得危害网络安全，不得发布有害信息。", "因不可抗力、网络攻击、系统维护造成服务中断的，本网站不承担责任。", "本网站有权随时修改本条款，修改后的条款一经公布即生效。用户继续使用即视为接受。", "因本条款产生的争议，由本网站所在地人民法院管辖。"]  # fmt: skip
    body = "".join(f"<h2>{c}、{t}</h2><p>{x}</p><p>{clauses[(n + 3) % 7]}</p>" for n, (c, t, x) in enumerate(zip("一二三四五六七", ["免责声明", "安全信息", "知识产权", "用户行为", "服务中断", "条款修改", "法律适用"], clauses, strict=True)))  # fmt: skip
    return _page(
        "免责声明及使用条款",
        modern(f"<h1>使用条款和免责声明</h1><p>更新日期：2024年3月1日</p>{body}", zh=True),
    )


def _changelog() -> str:
    entries = "".join(f"<h2>V{9 - n // 4}.{n % 4}　2023-{n % 12 + 1:02}-10</h2><ul><li>修复导出{s.zh}密度时程序崩溃的问题</li><li>新增{s.cas}等受限物质</li><li>更新职业接触限值数据</li><li>优化反应式编辑器，速度提升{n + 5}%</li></ul>" for n, s in enumerate(_S[:22]))  # fmt: skip
    return _page(
        "更新日志 - MSDS编写软件",
        divs(f"<h1>更新日志</h1><p>化学品安全技术说明书编写软件的更新记录。</p>{entries}", zh=True),
    )


def _directory() -> str:
    firms = "".join(f"<li><b>示例第{n}化工厂</b>　地址：示例市化工路{n}号　电话：000-{1000 + n}　主要产品：{s.zh}（{s.cas}）、{_S[(n + 3) % 48].zh}、{_S[(n + 7) % 48].zh}　安全生产许可证：有　<a href='/f/{n}'>查看详情</a></li>" for n, s in enumerate(_S[:36]))  # fmt: skip
    return _page(
        "危险化学品生产企业名录",
        modern(f"<h1>危险化学品生产企业名录（第1页，共88页）</h1><ul>{firms}</ul>", zh=True),
    )


def _news_list() -> str:
    items = "".join(f"<li><a href='/n/{n}'>{t.format(s.zh)}</a><span>[2024-02-{n % 28 + 1:02}]</span></li>" for n, (t, s) in enumerate(zip(["某地一企业{}泄漏致3人中毒", "{}槽罐车侧翻已得到处置", "关于开展{}专项检查的通知", "{}价格走势分析", "{}生产装置爆炸事故调查报告公布", "{}安全培训班开班"] * 8, _S, strict=True)))  # fmt: skip
    return _page("事故快报_安全新闻", divs(f"<h1>事故快报</h1><ul class='newslist'>{items}</ul><p>共 1,760 条　1 2 3 4 5 尾页</p>", zh=True))  # fmt: skip


def _tender() -> str:
    rows = "".join(f"<tr><td>{n + 1}</td><td>{s.zh}</td><td>分析纯，含量不低于99.{n % 10}%</td><td>{n * 5 + 10}</td><td>瓶（500ml）</td></tr>" for n, s in enumerate(_S[:30]))  # fmt: skip
    return _page("化学试剂采购项目招标公告", tables(f"<h1>示例学院化学试剂采购项目招标公告</h1><p>项目编号：SL2024-031　预算金额：38万元　投标截止时间：2024年4月2日9时30分</p><p>投标人须具有危险化学品经营许可证，近三年内无重大安全事故和违法记录，运输车辆须具备危险货物运输资质。投标保证金5000元，逾期送达的投标文件不予受理。</p><table><tr><th>序号</th><th>名称</th><th>规格</th><th>数量</th><th>单位</th></tr>{rows}</table><p>联系人：采购办　开标地点：行政楼205室</p>", zh=True))  # fmt: skip


PAGES: dict[str, str] = {
    "site search": _site_search(), "web search": _web_search(), "contents": _contents(), "index": _index(), "category": _category(), "shell": _shell(),
    "login": _login(), "parked": _parked(), "not found": _not_found(), "error": _error(), "captcha": _captcha(), "forbidden": _forbidden(), "tag": _tag(),
    "cookie wall": _cookie_wall(), "empty product": _empty_product(), "price list": _price_list(), "shop": _shop(), "link farm": _link_farm(),
    "job": _jobs(), "spam": _spam(), "forum": _forum(), "sitemap": _sitemap(), "terms": _terms(), "changelog": _changelog(),
    "directory": _directory(), "news list": _news_list(), "tender": _tender(),
}  # fmt: skip

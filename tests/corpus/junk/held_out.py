"""Pages written after the formula was settled for good, to see what it makes of the unknown (made up).

Nothing in ``corpus.quality`` and its words was changed after they were first scored;
``benchmarks/quality.py`` reports them on their own. No safety data sheets.
"""

from __future__ import annotations

from tests.corpus.junk.parts import SUBSTANCES, bare, divs, links, modern, page, tables

_S = SUBSTANCES


def _zh(title: str, body: str) -> str:
    return page(title, body, "zh-CN")


def _text(*texts: str) -> str:
    return "".join(f"<p>{text}</p>" for text in texts)


def _rows(*rows: str) -> str:
    return "<table>" + "".join("<tr><td>" + "</td><td>".join(row.split("|")) + "</td></tr>" for row in rows) + "</table>"  # fmt: skip


JUNK: dict[str, dict[str, str]] = {
    "en": {
        "glossary list": page("Glossary index", divs("<h1>Glossary of safety terms</h1><ul>" + links([f"{t} of {s.en.lower()}" for t in ("Toxicity", "Flash point") for s in _S[:24]]) + "</ul>")),
        "imprint": page("Imprint", modern("<h1>Imprint</h1><p>Example Chemicals Ltd, 1 Harbour Road, Rivertown. Managing director: A. Person. Commercial register 0000, VAT No. 000000000. Responsible for content: B. Person.</p><p>Emergency information for transport accidents with our products: 000 000 000, day and night. Questions on safety data sheets: sds at example.</p>")),
        "survey": page("Survey on laboratory safety", modern("<h1>Survey: safety in your laboratory</h1><form>" + "".join(f"<p>{n}. How often do you {t}?</p><label><input type=radio>Always</label><label><input type=radio>Often</label><label><input type=radio>Never</label>" for n, t in enumerate(["wear goggles", "read the safety data sheet before you handle a chemical", "work alone with toxic gases", "check the eye wash", "store solvents in the fume hood", "see others pipette by mouth", "test peroxides in ether", "train for a fire"], 1)) + "</form><p>Thank you for taking part. The answers are anonymous.</p>")),
        "team": page("Our team", modern("<h1>Our team</h1>" + "".join(f"<div><h3>Dr. Person {n}</h3><p>{r}. Joined in {2000 + n}. Expert in {s.en.lower()} chemistry, process safety and emission control. Likes cycling.</p></div>" for n, (r, s) in enumerate(zip(["Head of production", "Toxicologist", "Safety engineer", "Head of sales"] * 4, _S[:16], strict=True))))),
        "slides": page("Chemical hazards by user17 on SlideBox", divs("<h1>Chemical hazards</h1><p>Uploaded on Mar 3, 2019 · 14,201 views</p><p>Slide 1 of 48</p><p>Download to read offline. Sign up for free to save this presentation.</p><h3>More related content</h3><ul>" + links([f"{s.en} hazards ppt" for s in _S[:22]]) + "</ul>")),
        "reviews": page("Nitrile gloves - customer reviews", modern("<h1>Nitrile gloves, box of 100: customer reviews</h1><p>4.4 out of 5 stars, 1,322 ratings</p>" + "".join(f"<p>★★★★{'★' if n % 2 else '☆'} {t} Reviewed on June {n + 1}, 2023. {n * 4} people found this helpful.</p>" for n, t in enumerate(["Good protection against acids, tear at the cuff.", "Bought them for acetone, they dissolve!", "Skin irritation after an hour.", "Great price, fast shipping.", "Resist bleach and most solvents."] * 3)))),
        "calendar": page("Training calendar", tables("<h1>Training calendar 2024</h1><table>" + "".join(f"<tr><td>{n % 28 + 1:02}/0{n % 9 + 1}/2024</td><td>{t}</td><td>Rivertown</td><td>{n % 6} places left</td><td>Book</td></tr>" for n, t in enumerate(["Fire extinguisher training", "Chemical spill response", "First aid refresher", "Transport of dangerous goods", "Confined space entry"] * 6)) + "</table>")),
        "repository": page("issues - sds-parser", modern("<h1>sds-parser: open issues</h1>" + "".join(f"<div><a href='/i/{n}'>{t}</a> <span>#{300 - n} opened on Feb {n + 1} by dev{n} · bug · {n % 4} comments</span></div>" for n, t in enumerate(["Flash point is read as boiling point", "UN number lost for gases", "CAS 71-43-2 not found", "LD50 unit mg/kg not parsed", "Section 9 missing", "H-statements duplicated"] * 4)))),
    },
    "zh": {
        "glossary list": _zh("安全术语索引", divs("<h1>安全术语索引</h1><ul>" + links([f"{s.zh}{t}" for t in ("中毒", "闪点") for s in _S[:24]]) + "</ul>", zh=True)),
        "about": _zh("公司简介", modern("<h1>公司简介</h1><p>示例化工有限公司位于示例市化工园区，占地面积120亩，注册资金5000万元，是一家集研发、生产、销售为一体的现代化企业，主要产品有丙酮、苯酚、醋酸等。公司始终坚持“质量第一、客户至上、安全环保”的经营理念，产品远销海内外，深受广大用户好评。公司先后获得高新技术企业、安全生产标准化二级企业等荣誉称号。热忱欢迎新老客户莅临指导，共创辉煌！</p><p>联系电话：000-00000000　传真：000-00000000</p>", zh=True)),
        "survey": _zh("实验室安全问卷", modern("<h1>实验室安全调查问卷</h1><form>" + "".join(f"<p>{n}、您是否经常{t}？</p><label><input type=radio>总是</label><label><input type=radio>有时</label><label><input type=radio>从不</label>" for n, t in enumerate(["佩戴护目镜", "查阅安全技术说明书", "独自操作有毒气体", "检查洗眼器", "把溶剂存放在通风橱", "检测乙醚中的过氧化物", "参加消防演练"], 1)) + "</form><p>感谢您的参与，问卷匿名填写。</p>", zh=True)),
        "library": _zh("化学品危害_豆丁", divs("<h1>化学品危害.ppt</h1><p>文档格式：ppt　页数：48页　浏览次数：14201　上传于2019-3-3</p><p>下载文档需要20积分，登录后可免费阅读全文。内容提供方对文档真实性负责。</p><h3>相关文档</h3><ul>" + links([f"{s.zh}的危害.doc" for s in _S[:22]]) + "</ul>", zh=True)),
        "reviews": _zh("丁腈手套_商品评价", modern("<h1>丁腈手套100只装 商品评价</h1><p>好评度96%　累计评价1322</p>" + "".join(f"<p>{t} 颜色：蓝色 2023-06-{n + 1:02}</p>" for n, t in enumerate(["防酸碱效果不错，就是袖口容易破。", "用来接触丙酮，结果溶了！", "戴久了皮肤过敏。", "物美价廉，发货快。", "防腐蚀，耐多数溶剂。"] * 3)), zh=True)),
        "notice": _zh("关于放假的通知", tables("<h1>关于2024年春节放假及安全工作的通知</h1><p>各部门、车间：</p><p>根据国家规定，现将春节放假事项通知如下：2月9日至2月17日放假，共9天，2月18日上班。放假前请各部门做好安全检查，关闭水、电、气，锁好门窗，值班人员不得离岗。请各位员工注意出行安全，祝大家新春快乐！</p><p>示例化工有限公司　办公室</p>", zh=True)),
        "calendar": _zh("考试安排", tables("<h1>危化品从业人员考试安排</h1><table>" + "".join(f"<tr><td>2024-0{n % 9 + 1}-{n % 28 + 1:02}</td><td>{t}</td><td>第{n % 4 + 1}考场</td><td>剩余{n % 30}人</td></tr>" for n, t in enumerate(["危险化学品经营单位负责人", "氯化工艺作业", "加氢工艺作业", "危险货物运输押运员"] * 7)) + "</table>", zh=True)),
        "product ad": _zh("防爆柜 安全柜 生产厂家", modern("<h1>化学品防爆柜 厂家直销</h1><p>本公司生产的防爆柜适用于储存易燃液体、腐蚀性化学品、有毒化学品，双层防火钢板，耐火时间长，符合消防要求。规格齐全，支持定制，量大从优，全国包邮。</p><ul><li>容量：4加仑、12加仑、30加仑、45加仑、90加仑</li><li>颜色：黄、红、蓝</li><li>价格：980元起</li></ul><p>在线客服为您报价，下单立减50元，签约分期付款。</p>", zh=True)),
    },
}  # fmt: skip

DOCUMENTS: dict[str, dict[str, str]] = {
    "en": {
        "gas guide": page("Hydrogen sulfide in the field", modern("<h1>Hydrogen sulfide in oil and gas work</h1>" + _text("Hydrogen sulfide (CAS 7783-06-4) is a colourless, flammable and very toxic gas that is heavier than air and gathers in pits, tanks and low ground. Its smell of rotten eggs is no warning: above 100 ppm the sense of smell is lost within minutes.") + _rows("Concentration|Effect", "0.01-1.5 ppm|smell", "20-50 ppm|irritation of the eyes", "100-150 ppm|loss of smell", "500-700 ppm|collapse in 5 minutes, death in 30-60 minutes", "over 1000 ppm|immediate collapse, death") + _text("Wear a personal monitor with alarms at 5 and 10 ppm. On an alarm leave across the wind, not down the wind. Nobody enters a tank to rescue a colleague without breathing apparatus: most deaths are would-be rescuers. The gas burns between 4.3 and 46 % in air and gives sulfur dioxide."))),
        "pesticide": page("Chlorpyrifos: technical fact sheet", divs("<h1>Chlorpyrifos</h1>" + _text("Chlorpyrifos is an organophosphate insecticide (CAS 2921-88-2). It inhibits acetylcholinesterase and so overstimulates the nervous system.") + "<h2>Toxicity</h2>" + _text("The oral LD50 in rats is 95 to 270 mg/kg, the dermal LD50 in rabbits above 2000 mg/kg. Signs of poisoning are headache, nausea, sweating, blurred vision and, in severe cases, respiratory failure. Atropine and pralidoxime are given as antidotes.") + "<h2>Fate in the environment</h2>" + _text("Its half-life in soil is 10 to 120 days. It is very toxic to fish and bees and must not be applied near water. Solubility in water is 1.4 mg/L at 25 °C."))),
        "peroxides": page("Peroxide formers", bare("<h1>Solvents that form peroxides</h1>" + _text("Ethers such as diethyl ether, diisopropyl ether, tetrahydrofuran and dioxane react with oxygen from air to peroxides that explode when they are concentrated by distillation. Light and heat speed the reaction up; inhibitors such as BHT slow it down.", "Write the date of receipt and of opening on the bottle. Discard diisopropyl ether three months after opening, diethyl ether and tetrahydrofuran after six to twelve months. Test before every distillation with test strips; more than 100 mg/L means disposal, 25 mg/L and more means that the solvent must not be distilled.", "Never open a bottle with crystals at its cap. Peroxides can be removed by passing the solvent over activated alumina or by shaking with a solution of iron(II) sulfate. Do not distil to dryness: leave at least 20 % in the flask."))),
        "signage": page("GHS hazard classes for metals corrosion", modern("<h1>Corrosive to metals and to skin: how GHS classifies</h1>" + _text("A substance is corrosive to metals (H290) when it corrodes steel or aluminium by more than 6.25 mm a year at 55 °C. It is corrosive to skin, category 1 (H314), when it destroys tissue within four hours of exposure; sub-category 1A within three minutes. Category 2 irritates the skin (H315).") + _rows("pH|Assumed class", "≤ 2|skin corrosion 1, unless the acid reserve says otherwise", "≥ 11.5|skin corrosion 1, unless the alkali reserve says otherwise") + _text("Labels carry the pictogram GHS05 and the signal word Danger. Precautionary statements are P260, P280, P303+P361+P353 and P305+P351+P338."))),
        "regulation": page("Storage of ammonium nitrate", tables("<h1>Ordinance on the storage of ammonium nitrate (extract)</h1>" + "".join(f"<p>§ {n} {t}</p>" for n, t in enumerate(["This ordinance applies to the storage of ammonium nitrate and of mixtures with more than 28 % nitrogen in quantities above 100 kg.", "Ammonium nitrate shall be stored in piles of not more than 25 tonnes. The distance between piles shall be at least 2 m.", "Combustible substances, acids, chlorates, metal powders and fuels shall not be stored in the same fire compartment.", "Smoking and open fire are prohibited. Electrical equipment shall be outside the storage area.", "Contaminated material shall be removed without delay and disposed of as explosive waste.", "Whoever violates §§ 2 to 5 commits an offence."], 1)))),
        "mercury": page("Cleaning up mercury", modern("<h1>Mercury from a broken thermometer</h1>" + _text("Mercury is a liquid metal that evaporates at room temperature; its vapour is toxic to the brain and the kidneys. The exposure limit is 0.02 mg/m³. A thermometer holds about 1 g, enough to exceed the limit in a small, closed room.") + "<ol><li>Open the window, lower the heating, keep children out.</li><li>Put on nitrile gloves. Do not use a vacuum cleaner or a broom.</li><li>Push the droplets together with cardboard and take them up with adhesive tape or a pipette.</li><li>Cover the rest with sulfur or zinc powder.</li><li>Put everything into a tight jar and take it to the hazardous waste collection.</li></ol>")),
    },
    "zh": {
        "gas guide": _zh("油气作业中的硫化氢", modern("<h1>油气作业中的硫化氢</h1>" + _text("硫化氢（CAS 7783-06-4）是无色、易燃、剧毒的气体，比空气重，易积聚在坑、罐和低洼处。臭鸡蛋味不能作为警报：浓度超过150 mg/m³时，几分钟内嗅觉就会麻痹。") + _rows("浓度 mg/m³|反应", "0.035|嗅到气味", "30~75|刺激眼睛", "150~225|嗅觉丧失", "760以上|15~60分钟可引起肺水肿、昏迷", "1000以上|立即昏迷，呼吸麻痹而死亡") + _text("作业人员应佩戴报警值为10 mg/m³的便携式检测仪。报警后沿侧风方向撤离。没有佩戴空气呼吸器不得进入罐内救人，死者多为盲目施救者。爆炸极限为4.3%~46%，燃烧生成二氧化硫。"), zh=True)),
        "pesticide": _zh("毒死蜱", divs("<h1>毒死蜱</h1>" + _text("毒死蜱是有机磷杀虫剂（CAS 2921-88-2），抑制乙酰胆碱酯酶，使神经系统过度兴奋。") + "<h2>毒性</h2>" + _text("大鼠急性经口LD50为95~270 mg/kg，兔急性经皮LD50大于2000 mg/kg。中毒表现为头痛、恶心、多汗、视物模糊，严重者呼吸衰竭。解毒剂为阿托品和氯解磷定。") + "<h2>环境行为</h2>" + _text("土壤中半衰期为10~120天。对鱼类和蜜蜂高毒，不得在水源附近使用。25℃时在水中的溶解度为1.4 mg/L。"), zh=True)),
        "peroxides": _zh("易生成过氧化物的溶剂", bare("<h1>易生成过氧化物的溶剂</h1>" + _text("乙醚、异丙醚、四氢呋喃、二氧六环等醚类能与空气中的氧反应生成过氧化物，蒸馏浓缩时会发生爆炸。光照和受热会加速反应，BHT等阻聚剂可减慢反应。", "应在瓶上写明到货和开封日期。异丙醚开封后三个月、乙醚和四氢呋喃开封后六至十二个月应废弃。每次蒸馏前用试纸检测，过氧化物超过25 mg/L不得蒸馏，超过100 mg/L应作废弃处理。", "瓶口有结晶时不得打开。可通过活性氧化铝柱或用硫酸亚铁溶液振摇除去过氧化物。不得蒸干，烧瓶内至少留20%。"))),
        "limits": _zh("GHS金属腐蚀物与皮肤腐蚀", modern("<h1>金属腐蚀物与皮肤腐蚀的分类</h1>" + _text("在55℃下对钢或铝的腐蚀速率超过每年6.25毫米的物质为金属腐蚀物（H290）。接触四小时以内造成皮肤组织破坏的为皮肤腐蚀类别1（H314），三分钟以内的为1A。类别2引起皮肤刺激（H315）。") + _rows("pH|推定类别", "≤2|皮肤腐蚀类别1，酸储备另有说明的除外", "≥11.5|皮肤腐蚀类别1，碱储备另有说明的除外") + _text("标签使用GHS05象形图和信号词“危险”，防范说明为P260、P280、P303+P361+P353、P305+P351+P338。"), zh=True)),
        "regulation": _zh("硝酸铵储存管理规定", tables("<h1>硝酸铵储存管理规定（节选）</h1>" + "".join(f"<p>第{c}条　{t}</p>" for c, t in zip("一二三四五六", ["本规定适用于储存硝酸铵及含氮量高于28%的混合物，数量在100千克以上的单位。", "硝酸铵应分垛储存，每垛不得超过25吨，垛间距不得小于2米。", "可燃物、酸类、氯酸盐、金属粉末和燃料不得与硝酸铵储存于同一防火分区。", "库区严禁吸烟和使用明火，电气设备应设在库房外。", "受污染的硝酸铵应立即清除，按爆炸性废物处置。", "违反本规定第二条至第五条的，由主管部门责令改正，处以罚款。"], strict=True)), zh=True)),
        "mercury": _zh("体温计打碎后如何处理汞", modern("<h1>体温计打碎后如何处理汞</h1>" + _text("汞是液态金属，常温下即可蒸发，蒸气对脑和肾有毒。工作场所容许浓度为0.02 mg/m³。一支体温计约含1克汞，足以使密闭的小房间超标。") + "<ol><li>开窗通风，关闭暖气，儿童离开房间。</li><li>戴上手套，不得使用吸尘器和扫帚。</li><li>用硬纸片把汞珠推到一起，用胶带或吸管收集。</li><li>残留处撒上硫磺粉或锌粉。</li><li>全部装入密封瓶中，送交危险废物收集点。</li></ol>", zh=True)),
    },
}  # fmt: skip

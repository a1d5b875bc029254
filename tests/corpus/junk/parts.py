"""What the made-up pages share: substances, and the frames of five kinds of sites."""

from __future__ import annotations

from typing import NamedTuple

MARK = "<!-- Made-up page, written for tests. Not a page of any real site, not safety information. -->"


class Substance(NamedTuple):
    """A name in both languages, the CAS number and the formula."""

    en: str
    zh: str
    cas: str
    formula: str


SUBSTANCES = [
    Substance(*line.split("|"))
    for line in """Acetone|丙酮|67-64-1|C3H6O
Methanol|甲醇|67-56-1|CH4O
Ethanol|乙醇|64-17-5|C2H6O
Benzene|苯|71-43-2|C6H6
Toluene|甲苯|108-88-3|C7H8
Phenol|苯酚|108-95-2|C6H6O
Aniline|苯胺|62-53-3|C6H7N
Pyridine|吡啶|110-86-1|C5H5N
Formaldehyde|甲醛|50-00-0|CH2O
Acetaldehyde|乙醛|75-07-0|C2H4O
Acetic acid|乙酸|64-19-7|C2H4O2
Formic acid|甲酸|64-18-6|CH2O2
Sulfuric acid|硫酸|7664-93-9|H2SO4
Nitric acid|硝酸|7697-37-2|HNO3
Hydrochloric acid|盐酸|7647-01-0|HCl
Phosphoric acid|磷酸|7664-38-2|H3PO4
Sodium hydroxide|氢氧化钠|1310-73-2|NaOH
Potassium hydroxide|氢氧化钾|1310-58-3|KOH
Ammonia|氨|7664-41-7|NH3
Chlorine|氯|7782-50-5|Cl2
Hydrogen peroxide|过氧化氢|7722-84-1|H2O2
Carbon disulfide|二硫化碳|75-15-0|CS2
Chloroform|三氯甲烷|67-66-3|CHCl3
Dichloromethane|二氯甲烷|75-09-2|CH2Cl2
Carbon tetrachloride|四氯化碳|56-23-5|CCl4
Ethylene oxide|环氧乙烷|75-21-8|C2H4O
Styrene|苯乙烯|100-42-5|C8H8
Acrylonitrile|丙烯腈|107-13-1|C3H3N
Ethyl acetate|乙酸乙酯|141-78-6|C4H8O2
Diethyl ether|乙醚|60-29-7|C4H10O
Tetrahydrofuran|四氢呋喃|109-99-9|C4H8O
n-Hexane|正己烷|110-54-3|C6H14
Cyclohexane|环己烷|110-82-7|C6H12
Acetonitrile|乙腈|75-05-8|C2H3N
Hydrazine|肼|302-01-2|N2H4
Nitrobenzene|硝基苯|98-95-3|C6H5NO2
Naphthalene|萘|91-20-3|C10H8
Isopropyl alcohol|异丙醇|67-63-0|C3H8O
Ethylene glycol|乙二醇|107-21-1|C2H6O2
Glycerol|甘油|56-81-5|C3H8O3
Potassium permanganate|高锰酸钾|7722-64-7|KMnO4
Sodium hypochlorite|次氯酸钠|7681-52-9|NaClO
Calcium carbide|电石|75-20-7|CaC2
Sodium cyanide|氰化钠|143-33-9|NaCN
Mercury|汞|7439-97-6|Hg
Phosgene|光气|75-44-5|COCl2
Vinyl chloride|氯乙烯|75-01-4|C2H3Cl
Hydrogen sulfide|硫化氢|7783-06-4|H2S""".splitlines()
]


def page(title: str, body: str, language: str = "en", head: str = "", attributes: str = "") -> str:
    """A whole HTML page with the mark that says it is made up."""
    return (
        f'<!DOCTYPE html>\n{MARK}\n<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width">{head}</head>\n<body{attributes}>\n{body}\n</body></html>\n'
    )


def links(names: list[str], path: str = "/", sep: str = "\n", item: str = "<li>{}</li>") -> str:
    """List items with links to made-up addresses."""
    return sep.join(item.format(f'<a href="{path}{i}.html">{name}</a>') for i, name in enumerate(names))


MENU_EN = "Home|Products|Solvents|Acids|Reagents|Safety|Documents|Services|News|Company|Careers|Contact|Basket (0)|My account".split("|")  # fmt: skip  # noqa: SIM905
MENU_ZH = "首页|产品中心|有机溶剂|无机酸碱|化学试剂|安全技术|资料下载|技术服务|新闻动态|关于我们|人才招聘|联系我们|购物车(0)|会员中心".split("|")  # fmt: skip  # noqa: SIM905
FOOT_EN = "Terms of use|Privacy policy|Cookies|Imprint|Accessibility|Sitemap|Newsletter|Press".split("|")  # noqa: SIM905
FOOT_ZH = "使用条款|隐私政策|免责声明|网站地图|友情链接|广告服务|意见反馈|手机版".split("|")  # noqa: SIM905


def modern(body: str, zh: bool = False) -> str:
    """Header, navigation, main, aside and footer by their own tags."""
    menu, foot = (MENU_ZH, FOOT_ZH) if zh else (MENU_EN, FOOT_EN)
    rights = (
        "版权所有 © 示例化工网 京ICP备00000000号" if zh else "© Example Chemicals Ltd. All rights reserved."
    )
    return (
        f'<header class="site-header"><div class="logo">Example</div><nav class="main-nav"><ul>{links(menu, "/m/")}</ul></nav></header>\n'
        f'<main id="content" class="container">{body}</main>\n<footer class="site-footer"><ul>{links(foot, "/f/")}</ul><p>{rights}</p></footer>'
    )


def divs(body: str, zh: bool = False) -> str:
    """A page of ``div`` elements with class names."""
    menu, foot = (MENU_ZH, FOOT_ZH) if zh else (MENU_EN, FOOT_EN)
    return (
        f'<div id="wrap"><div class="top-bar">{links(menu, "/n/", " | ", "{}")}</div><div class="row"><div class="col-md-9 content">{body}</div>'
        f'<div class="col-md-3 sidebar"><h4>{"热门" if zh else "Popular"}</h4><ul>{links(menu[2:9], "/p/")}</ul></div></div>'
        f'<div class="bottom">{links(foot, "/b/", " - ", "{}")}</div></div>'
    )


def tables(body: str, zh: bool = False) -> str:
    """A layout of tables as in the nineties."""
    menu = MENU_ZH if zh else MENU_EN
    return (
        f'<table width="960" border="0"><tr><td colspan="2"><img src="logo.gif" alt="logo"></td></tr><tr><td width="160" valign="top">'
        f'{links(menu, "/t/", "<br>", "{}")}</td><td valign="top">{body}</td></tr></table>'
    )


def bare(body: str, zh: bool = False) -> str:
    """Nothing around it."""
    return body

"""Small made-up pages for the cleaning tests: what must stay, what must go."""

from __future__ import annotations

NEWS_EN = """<!DOCTYPE html><html lang="en"><head><title>Chlorine leak injures twelve - Daily Herald</title></head>
<body class="single has-sidebar"><div class="site-header"><a href="/">Daily Herald</a><ul class="main-menu">
<li><a href="/n">News</a></li><li><a href="/s">Sport</a></li><li><a href="/w">Weather</a></li></ul></div>
<div class="wrap"><div class="col-8"><h1>Chlorine leak injures twelve</h1>
<div class="share-buttons"><a href="#">Facebook</a><a href="#">Twitter</a></div><div class="entry-content">
<p>Twelve workers were taken to hospital after a chlorine leak at a water treatment plant, officials said.</p>
<p>The leak began when a hose failed. Concentrations of 10 ppm were measured at the fence line.</p>
<div class="ad-slot"><p>Advertisement</p><a href="http://ads">Buy now our great product</a></div>
<p>"We do not believe the public is at risk," said the fire chief.</p>
<ul><li>Two workers remain in intensive care.</li></ul></div>
<div class="related"><h3>Related stories</h3><div class="card"><a href="/1"><h4>Storm closes schools</h4></a>
<p>Schools were closed on Monday.</p></div></div>
<div id="comments"><h3>3 Comments</h3><p>Bob: this was bound to happen.</p></div></div>
<div class="col-4"><div class="box"><h3>Most read</h3><ul><li><a href="/a">Mayor resigns</a></li>
<li><a href="/b">Ten best bakeries</a></li></ul></div></div></div>
<div class="bottom"><p>Copyright 2024 Herald Media. All rights reserved.</p><a href="/p">Privacy</a></div></body></html>"""

NEWS_ZH = """<html><head><meta charset="utf-8"><title>化工厂发生氯气泄漏_示例新闻网</title></head><body>
<div class="top"><a href="/">首页</a> | <a href="/gn">国内</a> | <a href="/cj">财经</a></div>
<div class="path">当前位置：<a href="/">首页</a> &gt; <a href="/gn">国内</a> &gt; 正文</div>
<div class="left_con"><h1>化工厂发生氯气泄漏</h1><div id="zoom">
<p>12日清晨，某市一家化工厂发生氯气泄漏事故，造成12人受伤送医，目前伤者生命体征平稳。</p>
<p>厂界处测得氯气浓度为30mg/m³，现场处置人员未发现周边居民中毒情况。</p></div>
<div class="bianji">（责任编辑：李四）</div><div class="fx">分享到：<a>微信</a><a>微博</a></div>
<div class="xgyd"><h2>相关阅读</h2><ul><li><a href="1">某地开展危化品整治</a></li><li><a href="2">发布预警提示</a></li></ul></div></div>
<div class="right_con"><div class="hd">热点新闻</div><ul><li><a href="3">全国多地迎来降雨</a></li><li><a href="4">高考报名</a></li>
<li><a href="5">汽车销量增长</a></li></ul></div>
<div class="btm"><p>京ICP备00000000号 版权所有 示例新闻网</p></div></body></html>"""

ENCYCLOPEDIA = """<html lang="en"><head><title>Benzene - Encyclopedia</title></head><body>
<div id="mw-navigation"><ul><li><a href="/m">Main page</a></li><li><a href="/r">Random article</a></li></ul></div>
<div id="content"><h1 id="firstHeading">Benzene</h1><div class="mw-parser-output">
<table class="infobox" id="x1"><caption>Benzene</caption><tr><th colspan="2">Identifiers</th></tr>
<tr><td><a href="/cas">CAS Number</a></td><td><div class="plainlist"><ul><li><span title="x"><a href="http://c">71-43-2</a></span></li></ul></div></td></tr>
<tr><td>Flash point</td><td>−11.63&nbsp;°C</td></tr><tr><td>Solubility</td><td>1.8 × 10<sup>-3</sup> g/cm<sup>3</sup></td></tr>
<tr><td>GHS pictograms</td><td><img src="f.png" alt="GHS02: Flammable"></td></tr></table>
<p>Benzene is an organic compound with the formula C<sub>6</sub>H<sub>6</sub>.<sup class="reference" id="c1"><a href="#n1">[1]</a></sup>
It does not mix with water. The phosphate ion is PO<span class="s"><sup>3-</sup><br><sub>4</sub></span>.</p>
<h2><span id="Safety">Safety</span><span class="mw-editsection">[<a href="/e">edit</a>]</span></h2>
<p>Benzene is carcinogenic. A TWA of 0.5&nbsp;ppm is recommended, with a short-term limit of 2.5&nbsp;ppm.</p>
<table class="wikitable"><tr><th rowspan="2">Route</th><th colspan="2">Dose</th></tr><tr><th>low</th><th>high</th></tr>
<tr><td rowspan="2">oral</td><td>930</td><td>1800</td></tr><tr><td></td><td>4700</td></tr></table>
<h2><span id="See_also">See also</span></h2><ul><li><a href="/t">Toluene</a></li><li><a href="/x">Xylene</a></li></ul>
<h2><span id="References">References</span></h2><ol class="references"><li id="n1"><a href="#c1">^</a> <a href="http://d">Doe 2001</a></li></ol>
</div></div><div id="footer"><a href="/p">Privacy policy</a></div></body></html>"""

NINETIES = """<HTML><HEAD><TITLE>Acme MSDS - TOLUENE</TITLE></HEAD><BODY BGCOLOR=white ONLOAD="x()">
<TABLE BORDER=0 WIDTH=100%><TR><TD COLSPAN=2><IMG SRC=logo.gif ALT="Acme"></TD></TR><TR><TD WIDTH=150><FONT SIZE=2>
<A HREF=a.htm>Home</A><BR><A HREF=b.htm>Products</A><BR><A HREF=c.htm>MSDS index</A><BR><A HREF=d.htm>Contact</A></FONT></TD>
<TD VALIGN=TOP><CENTER><FONT SIZE=+2><B>TOLUENE</B></FONT></CENTER>
<P>Toluene is a clear, colorless liquid. It is used as a solvent for paints and in the manufacture of benzene.
<P><TABLE BORDER=1><TR><TD><B>CAS No.</B><TD>108-88-3<TR><TD><B>Flash point</B><TD>4 C (40 F)</TABLE>
<P>Do NOT induce vomiting.</TD></TR></TABLE></BODY></HTML>"""

PORTAL = """<html lang="en"><head><title>Acetone | Substance portal</title></head><body><header><nav><a href=1>Home</a></nav></header>
<main><h1>Acetone</h1><div class="props"><div class="prop-row"><div class="prop-name">CAS number</div>
<div class="prop-value"><a href="/cas/67-64-1">67-64-1</a></div></div><div class="prop-row"><div class="prop-name">Boiling point</div>
<div class="prop-value">56.05 &deg;C</div></div><div class="prop-row"><div class="prop-name">Synonyms</div>
<div class="prop-value"><ul><li>Propanone</li><li>Dimethyl ketone</li></ul></div></div></div>
<section class="accordion"><h2><button aria-expanded="false" onclick="t()">First aid</button></h2><div class="accordion-panel" hidden>
<p>Remove the person to fresh air and keep comfortable for breathing. If in eyes, rinse cautiously with water for several minutes.
Get medical attention if irritation persists. Do not induce vomiting, and never give anything by mouth to an unconscious person.</p>
</div></section><aside class="sidebar"><h3>Related substances</h3><ul><li><a href=a>Butanone</a></li><li><a href=b>MIBK</a></li></ul>
</aside><form action="/s"><input name=q><select><option>all</option></select></form></main><footer>© Portal</footer></body></html>"""

SHEET_ZH = """<html><head><title>甲醇安全技术说明书</title></head><body><div class="nav"><a href=1>首页</a><a href=2>目录</a></div>
<table class="sds" border="1"><tr><td colspan="4"><b>第一部分 化学品及企业标识</b></td></tr>
<tr><td>中文名称：</td><td>甲醇</td><td>CAS号：</td><td>67-56-1</td></tr>
<tr><td colspan="4"><b>第二部分 危险性概述</b></td></tr><tr><td>危险性说明：</td><td colspan="3">H225 高度易燃液体和蒸气<br>H301 吞咽会中毒</td></tr>
<tr><td colspan="4"><b>第三部分 成分/组成信息</b></td></tr><tr><td>成分：</td><td colspan="3"><table><tr><th>组分</th><th>CAS号</th><th>含量</th></tr>
<tr><td>甲醇</td><td>67-56-1</td><td>≥99.5%</td></tr></table></td></tr></table></body></html>"""

#: name → (page, snippets that must stay, snippets that must go)
PAGES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "news_en": (
        NEWS_EN,
        ("Chlorine leak injures twelve", "10 ppm", "do not believe", "Two workers remain"),
        (
            "Weather",
            "Facebook",
            "Buy now",
            "Storm closes",
            "bound to happen",
            "Mayor resigns",
            "All rights",
            "Privacy",
        ),
    ),
    "news_zh": (
        NEWS_ZH,
        ("化工厂发生氯气泄漏", "造成12人受伤送医", "30mg/m³", "未发现"),
        (
            "财经",
            "当前位置",
            "责任编辑",
            "分享到",
            "微博",
            "相关阅读",
            "预警提示",
            "热点新闻",
            "高考报名",
            "ICP备",
        ),
    ),
    "encyclopedia": (
        ENCYCLOPEDIA,
        (
            "71-43-2",
            "−11.63 °C",
            "10⁻³ g/cm³",
            "GHS02: Flammable",
            "C₆H₆",
            "does not mix",
            "PO₄³⁻",
            "## Safety",
            "2.5 ppm",
            "4700",
        ),
        ("Random article", "[1]", "edit", "See also", "Xylene", "Doe 2001", "Privacy"),
    ),
    "nineties": (
        NINETIES,
        ("TOLUENE", "108-88-3", "4 C (40 F)", "Do NOT induce vomiting"),
        ("MSDS index", "Contact"),
    ),
    "portal": (
        PORTAL,
        (
            "# Acetone",
            "CAS number: 67-64-1",
            "Boiling point: 56.05 °C",
            "Propanone",
            "## First aid",
            "never give anything",
        ),
        ("Home", "Butanone", "© Portal"),
    ),
    "sheet_zh": (
        SHEET_ZH,
        (
            "## 第一部分 化学品及企业标识",
            "| 中文名称： | 甲醇 | CAS号： | 67-56-1 |",
            "H301 吞咽会中毒",
            "| 甲醇 | 67-56-1 | ≥99.5% |",
        ),
        ("首页", "目录"),
    ),
}

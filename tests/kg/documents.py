"""Refined documents for the extraction tests, made from Markdown alone."""

from __future__ import annotations

from corpus.documents import Block, RefinedDocument, Section
from corpus.headings import sections_of
from corpus.ids import document_id, normalise_text, version_id


def document(
    text: str, *, title: str = "", language: str = "zh", cleaned: str | None = None
) -> RefinedDocument:
    """A document whose cleaned text is the same as its refined text, unless given."""
    text = normalise_text(text)
    identity = document_id(title + text)
    page = text if cleaned is None else normalise_text(cleaned)
    return RefinedDocument(
        document_id=identity,
        version_id=version_id(identity, text),
        url="http://example.test/",
        title=title,
        language=language,
        source="test",
        kind="page",
        text=text,
        cleaned_text=page,
        sections=tuple(Section(**section) for section in sections_of(text)),
        blocks=(Block(0, len(text), 0, len(page)),),
    )


SDS_ZH = """# 甲醇安全技术说明书

## 第一部分 化学品及企业标识

| | | | |
| --- | --- | --- | --- |
| 化学品中文名称： | 甲醇 | 化学品英文名称： | Methanol |
| 别名： | 木醇、木精 | CAS号： | 67-56-1 |
| EC号： | 200-659-6 | 分子式： | CH₄O |
| 相对分子质量： | 32.04 | 推荐用途： | 主要用于制甲醛 |

## 第二部分 危险性概述

GHS危险性类别：易燃液体，类别2；急性毒性-经口，类别3
象形图：火焰、骷髅和交叉骨
危险性说明：H225 高度易燃液体和蒸气；H301 吞咽会中毒
防范说明：P210 远离热源；P301+P310 如误吞咽：立即呼叫中毒急救中心

## 第四部分 急救措施

皮肤接触：脱去污染的衣着，用肥皂水和清水彻底冲洗皮肤。
食入：饮足量温水，禁止催吐。就医。

## 第五部分 消防措施

灭火剂：抗溶性泡沫、干粉、二氧化碳、砂土。
有害燃烧产物：一氧化碳、二氧化碳
灭火注意事项：不可用直流水扑救，以免液体飞溅。

## 第七部分 操作处置与储存

储存条件：储存于阴凉、通风良好的库房。库温不宜超过37 ℃。
储存禁忌：应与氧化剂、酸类、碱金属分开存放，切忌混储。

## 第八部分 接触控制/个体防护

| 来源 | 类型 | 数值 | 备注 |
| --- | --- | --- | --- |
| 中国 | PC-TWA | 25 mg/m³ | GBZ 2.1—2019，皮 |

呼吸系统防护：空气中浓度超标时，佩戴过滤式防毒面具（半面罩）。
手防护：戴橡胶耐油手套。

## 第九部分 理化特性

pH值：无资料
熔点（℃）：-97.8
沸点：64.7 ℃（101.3 kPa）
闪点：11 ℃（闭杯）
爆炸极限：6.0%~36.5%(V/V)
饱和蒸气压：12.3 kPa（20 ℃）

## 第十部分 稳定性和反应性

禁配物：强氧化剂、强酸、酸酐、碱金属。
与水的反应：与水不发生反应，可任意混溶。

## 第十一部分 毒理学信息

急性毒性：LD₅₀：5628 mg/kg（大鼠经口）；LC₅₀：64000 ppm（大鼠吸入，4 h）

## 第十四部分 运输信息

UN号：UN1230
联合国危险性分类：3
包装类别：Ⅱ
"""

SDS_EN = """# Safety Data Sheet: Ammonia, anhydrous

## SECTION 1: Identification

### 1.1 Product name

Ammonia, anhydrous

### 1.2 Synonyms

Ammonia gas; R-717

### 1.3 CAS No.

7664-41-7

## SECTION 2: Hazard(s) identification

### 2.1 GHS classification

- Flammable gases, Category 2
- Gases under pressure, Liquefied gas
- Acute toxicity, inhalation, Category 3

### 2.3 Hazard statements

- H221 Flammable gas
- H331 Toxic if inhaled

## SECTION 4: First-aid measures

### 4.1 Inhalation

Remove the person to fresh air. Give oxygen if breathing is difficult.

### 4.4 Ingestion

Not applicable (gas).

## SECTION 5: Fire-fighting measures

### 5.1 Extinguishing media

Suitable: water spray, dry chemical, carbon dioxide.

### 5.2 Unsuitable media

Do not use a solid water jet on the leak.

## SECTION 8: Exposure controls/personal protection

### 8.1 Occupational exposure limits

- OSHA PEL-TWA: 50 ppm
- IDLH: 300 ppm

### 8.3 Hand protection

Wear cold-insulating butyl rubber gloves.

## SECTION 9: Physical and chemical properties

### 9.1 Melting point

-78 °C (-108 °F)

### 9.7 Explosive limits

15 % to 28 % by volume in air

## SECTION 10: Stability and reactivity

### 10.2 Incompatible materials

Incompatible materials: strong oxidizing agents, acids, halogens.

### 10.3 Other reactions

Dry ammonia does not react with iron or steel.

## SECTION 11: Toxicological information

### 11.1 Acute toxicity

- LD₅₀: 350 mg/kg (rat, oral)
"""

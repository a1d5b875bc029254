"""The report's own words in Chinese and English: its labels, and what the catalogue's codes are called.

``LABELS`` are the page's own words by key. ``term`` names a code of the catalogue (a state, a reason, a
kind, a metric, what a step counted) in a language; one that is not known is shown as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kg.schema import RELATIONS, Relation

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

# key -> (Chinese, English)
_LABELS: dict[str, tuple[str, str]] = {
    "title": ("HChemSafety 报告", "HChemSafety report"),
    "other_language": ("English", "中文"),
    "subtitle": ("从化学品名称到经过评测的知识库。", "From chemical names to an evaluated knowledge base."),
    "run": ("运行", "Run"),
    "started": ("开始于", "started"),
    "unchanged": (
        "自上次运行以来没有任何变化；仍重新访问了各来源。",
        "Nothing had changed since the run before; the sources were asked again.",
    ),
    "sections": ("章节", "Sections"),
    "funnel": ("漏斗", "Funnel"),
    "documents": ("文档", "Documents"),
    "graph": ("图谱", "Graph"),
    "questions": ("问题", "Questions"),
    "chunks": ("分块", "Chunks"),
    "evaluation": ("评测", "Evaluation"),
    "models": ("模型", "Models"),
    "settings": ("设置", "Settings"),
    "changes": ("变化", "Changes"),
    "figures": ("数字", "Figures"),
    "from_pages": ("从页面到问题", "From pages to questions"),
    "funnel_scale": (
        "每种单位各有标尺：条长是该单位第一行的百分比。一个页面至多成为一篇文档，一篇文档却含许多陈述，因此不同单位的条长不可比较。",
        "Each unit has a scale of its own: a bar is the share of the unit's first line. A page becomes one document "
        "at most, a document holds many statements, so bars of different units cannot be compared.",
    ),
    "unresolved": ("项未解决的失败", "unresolved failures"),
    "no_unresolved": ("没有未解决的失败。", "No unresolved failures."),
    "step": ("步骤", "step"),
    "item": ("条目", "item"),
    "kind": ("类别", "kind"),
    "reason": ("理由", "reason"),
    "message": ("信息", "message"),
    "scores_caption": (
        "每篇已评分文档的质量分（0–5）。高于虚线的文档被保留。",
        "Quality score of every scored document (0–5). A document is kept above the dashed line.",
    ),
    "not_kept": ("未保留", "not kept"),
    "above": ("高于阈值", "above the threshold"),
    "quality_score": ("质量分", "quality score"),
    "State": ("状态", "State"),
    "Language": ("语言", "Language"),
    "Text": ("文本", "Text"),
    "Kind": ("类别", "Kind"),
    "all": ("全部", "all"),
    "search_documents": ("标题、网址、理由", "title, address, reason"),
    "search_questions": ("问题或答案", "question or answer"),
    "shown": ("显示 {n} / {all}", "{n} of {all} shown"),
    "document": ("文档", "document"),
    "language": ("语言", "language"),
    "state": ("状态", "state"),
    "score": ("质量分", "score"),
    "licence": ("许可", "licence"),
    "nodes": ("个节点", "nodes"),
    "relationships": ("条关系", "relationships"),
    "and": ("、", " and "),
    "snapshot": ("快照", "snapshot"),
    "none": ("无", "none"),
    "substances": ("物质", "Substances"),
    "explorer_about": (
        "每种物质一页（{pages} 页），列出全部陈述及其依据、各来源并列、矛盾与相邻节点；{size} MB。",
        "a page for each of {pages}, with all statements and their evidence, sources side by side, conflicts and "
        "neighbours; {size} MB.",
    ),
    "explorer_cut": ("共 {all} 种物质，只列出陈述最多的。", "Of {all} substances those with most statements."),
    "lineage": ("溯源", "Lineage"),
    "lineage_about": (
        "从来源到页面、文档、事实、问题和分块，双向链接，可搜索；{pages} 篇文档，{size} MB。",
        "from a source to its pages, documents, facts, questions and chunks and back, with a search; {pages} "
        "documents, {size} MB.",
    ),
    "lineage_cut": ("共 {all} 篇文档，其余没有页面。", "Of {all} documents the rest have no page."),
    "by_label": ("节点（按标签）", "Nodes by label"),
    "by_relation": ("陈述（按关系）", "Statements by relation"),
    "by_extractor": ("陈述（按抽取者）", "Statements by extractor"),
    "network_caption": (
        "若干物质及其共有的节点（图谱的一部分；指向节点或连线可见名称）。",
        "Substances and what several of them share (a part of the graph; point at a node or line for its name).",
    ),
    "network_label": ("图谱的一部分", "Part of the graph"),
    "questions_about": (
        "每类至多显示 60 个。每个问题都由一条图查询证明；其依据已标出。",
        "Shown: at most 60 of each kind. Each is proved by a graph query; its evidence is marked.",
    ),
    "answer": ("答案：", "Answer:"),
    "proof": ("证明", "proof"),
    "boundaries": ("分块边界", "Chunk boundaries"),
    "debates": ("辩论记录", "Debates"),
    "debates_about": (
        "QChunker 如何切分每篇文档（{pages} 篇）：问题、候选切分及其分数与取舍、评审的发现与舍弃、补全；{size} MB。",
        "how QChunker cut each of {pages} documents: questions, candidate partitions with their scores and why one "
        "won, what the reviewer found and what was discarded, and what was completed; {size} MB.",
    ),
    "debates_cut": ("共 {all} 篇。", "There are {all}."),
    "first_characters": ("前 {shown} 个字符，共 {length} 个", "first {shown} of {length} characters"),
    "level": ("层级", "level"),
    "completed_text": ("补全后的文本", "completed text"),
    "how": ("形成过程", "how it came about"),
    "no_chunks": ("还没有分块。", "No chunks yet."),
    "bars_caption": (
        "相同词元预算下的证据召回率，附置信区间。",
        "Evidence recall at equal token budget, with confidence interval.",
    ),
    "curve_caption": ("证据召回率随词元预算的变化。", "Evidence recall over the token budget."),
    "lambda_caption": (
        "ChunkScore 与答案：各分块方法的平均 ChunkScore 与平均 ROUGE-L 之间的皮尔逊 r，随 λ 变化。"
        "阴影（百分位）重新抽取文档和问题，而非方法；均值中的噪声使所画的 r 偏向 0，"
        "因此方法少且彼此接近时曲线可能离开阴影：此时它不说明任何问题。",
        "ChunkScore and answers: Pearson's r over the chunk methods between mean ChunkScore and mean ROUGE-L, "
        "by λ. The band (percentiles) draws documents and questions anew, not methods; noise in the means pulls "
        "the drawn r towards 0, so that with few methods that lie close together the curve can leave its band: "
        "then it says nothing.",
    ),
    "levels_caption": (
        "按树的深度进行自动合并：只允许合并到所示层级为止时的证据召回率；叶子不变。",
        "Auto-Merge by depth of the tree: evidence recall when only levels down to the one named may be "
        "merged into; the leaves stay the same.",
    ),
    "completion_caption": (
        "补全：QChunker 补全过的分块在补全前后的平均词元损失，每段文本单独计算；困惑度是其指数。"
        "不同语言词元不同，不作比较。",
        "Completion: mean token loss of the chunks that QChunker completed, before and after, each text alone; "
        "perplexity is its exponential. Languages have tokens of their own and are not compared.",
    ),
    "budget_axis": ("词元预算（词）", "token budget (words)"),
    "lambda_axis": ("λ（逻辑独立性的权重）", "λ (weight of logical independence)"),
    "pearson_axis": ("皮尔逊 r，n = {n} 种方法", "Pearson's r, n = {n} methods"),
    "deepest": ("最深层级", "deepest level"),
    "loss_axis": ("平均损失（纳特每词元）", "mean loss (nats per token)"),
    "before": ("补全前", "before"),
    "after": ("补全后", "after"),
    "method": ("方法", "method"),
    "no_evaluation": ("还没有评测。", "No evaluation yet."),
    "calls_and_cost": ("模型调用与费用", "Model calls and cost"),
    "all_runs": ("迄今所有运行。", "All runs so far."),
    "skill": ("技能", "skill"),
    "model": ("模型", "model"),
    "calls": ("调用", "calls"),
    "served": ("取自存储", "served from store"),
    "tokens_in": ("输入词元", "tokens in"),
    "tokens_out": ("输出词元", "tokens out"),
    "cached": ("其中缓存", "of these cached"),
    "cost": ("费用", "cost"),
    "no_model": (
        "没有调用模型：所有结果都由规则得出，标为“规则”。",
        "No model was called: every answer is rule-based and labelled “offline”.",
    ),
    "estimate": ("本次运行：预计与实际", "This run: estimate and actual"),
    "estimate_about": (
        "两个数中前者为预计，后者（粗体）为实际。预计在阶段开始时作出。比值：设有价格时为实际与预计费用之比，否则为词元之比。"
        "预计词元按所用计数器，实际词元按接口计数。",
        "Of two figures the first is expected, the second (bold) actual. The estimate was made when the stage started. "
        "Ratio: actual by expected money where a price is set, else tokens. Tokens expected in the counter in force, "
        "actual as the endpoint counts.",
    ),
    "stage": ("阶段", "stage"),
    "basis": ("依据", "basis"),
    "at_most": ("至多", "at most"),
    "ratio": ("比值", "ratio"),
    "call_seconds": ("调用秒数", "seconds of calls"),
    "todo": ("待办", "to do"),
    "states": ("状态", "states"),
    "reasons": ("理由", "reasons"),
    "made": ("产出", "made"),
    "seconds": ("秒", "seconds"),
    "settings_versions": ("设置与版本", "Settings and versions"),
    "preset": ("预设", "Preset"),
    "in_force": ("生效的设置", "settings in force"),
    # changes
    "against": ("与上一次运行比较", "Against the run before"),
    "no_previous": (
        "此前没有同一流程、同一限制且完成的运行。",
        "There is no earlier completed run of the same flow with the same restriction.",
    ),
    "compare_about": (
        "运行只计算它处理过的条目；没有变化的不在其中。每组中变化最大的在前。",
        "A run counts what it worked on; what had not changed is not in it. In each group the largest changes first.",
    ),
    "before_run": ("上次", "before"),
    "this_run": ("本次", "this run"),
    "code": ("代码版本", "code"),
    "where": ("位置", "where"),
    "what": ("内容", "what"),
    "old": ("原先", "old"),
    "new": ("现在", "new"),
    "change": ("变化", "change"),
    "same_figures": ("{n} 个数字相同。", "{n} figures are the same."),
    "more_rows": ("另有 {n} 行未显示（hchem runs diff --json 全部列出）。", "{n} more (hchem runs diff --json lists all)."),
    "checks": ("检查", "Checks"),
    "no_checks": ("没有检查记录。", "No checks were recorded."),
    "check": ("检查", "check"),
    "severity": ("级别", "severity"),
    "value": ("数值", "value"),
    "limit": ("限值", "limit"),
    "decided": ("决定", "decided"),
    "nothing_differs": ("没有差异。", "Nothing differs."),
}  # fmt: skip

# code -> Chinese, or (Chinese, English) where the code is no English
_TERMS: dict[str, str | tuple[str, str]] = {
    # units and steps of the funnel
    "pages": "页面", "documents": "文档", "assertions": "陈述", "questions": "问题", "chunks": "分块",
    "pages known": "已知页面", "pages fetched": "已抓取页面", "documents kept": "保留的文档",
    "assertions found": "抽取的陈述", "assertions kept": "保留的陈述", "questions made": "生成的问题",
    "questions kept": "保留的问题", "nodes": "节点", "relationships": "关系", "model calls": "模型调用",
    "search or listing page, read for its links": "搜索页或列表页，仅读取链接",
    "sitemap, read for its links": "站点地图，仅读取链接",
    "same as another page, or not curated yet": "与另一页相同，或尚未整理",
    # states
    "kept": "保留", "rejected": "拒绝", "duplicate": "重复", "review": "待复核", "failed": "失败", "pending": "待处理",
    "waiting": "等待中", "queued": "排队", "claimed": "处理中", "excluded": "排除", "gone": "已消失", "retired": "已退出",
    "completed": "完成", "running": "运行中", "stopped": "停止", "suspended": "暂停", "cancelled": "取消", "crashed": "崩溃",
    "passed": "通过", "skipped": "跳过", "warn": "警告", "block": "阻断", "continue": "继续", "stop": "停止",
    "transient": "暂时", "terminal": "永久", "in": "处理", "search": "搜索", "sitemap": "站点地图", "content": "内容",
    "page": "网页", "pdf": "PDF", "text": "文本", "xml": "XML", "reference": "参考数据",
    # reasons: pages and documents
    "exact": "完全相同", "near": "近似重复", "edition": "同一文献的另一版本", "low_score": "质量分过低",
    "error_page": "错误页", "index_page": "索引页", "search_page": "搜索页", "parked_page": "停放域名页",
    "needs_browser": "需要浏览器才能显示", "no_main_content": "没有正文", "not_a_page": "不是页面", "too_large": "过大",
    "cleaning_guard": "清洗可能丢失内容", "cleaning_fault": "清洗出错", "memory": "内存不足", "scanned_pdf": "扫描版 PDF",
    "encrypted_pdf": "加密 PDF", "malformed_pdf": "损坏的 PDF", "malformed_xml": "损坏的 XML", "too_many_pages": "页数过多",
    "too_many_elements": "元素过多", "unsupported_type": "不支持的类型", "unparseable": "无法解析", "empty": "空",
    "robots": "robots 禁止", "robots_unavailable": "robots 不可得", "offsite": "站外", "redirect": "重定向",
    "redirect_loop": "循环重定向", "budget": "超出预算", "unreachable": "无法访问", "timeout": "超时",
    "certificate": "证书无效", "orphaned": "不再被链接", "missed": "多次未见", "slow_pattern": "规则过慢",
    "unexpected": "意外错误", "table_headings_lost": "表头丢失", "table_columns_cut": "表列被截断", "cas_lost": "CAS 号丢失",
    "replacement_characters": "含无法解码的字符", "document_gone": "文档已不在语料中",
    "document_changed": "文档已改变", "context_length": "超出上下文长度", "bad_request": "请求无效",
    # reasons: statements
    "not_in_schema": "不在模式中", "bad_endpoint": "端点类型不符", "reversed": "方向相反", "missing_subject": "缺少主体",
    "ambiguous_subject": "主体不明确", "missing_value": "缺少数值", "no_data": "无数据", "bad_quantity": "数量无法读取",
    "wrong_dimension": "量纲不符", "out_of_range": "超出合理范围", "bad_identifier": "标识无效",
    "quote_not_found": "引文不在原文中", "number_not_in_quote": "数字不在引文中", "unit_not_in_quote": "单位不在引文中",
    "object_not_in_quote": "客体不在引文中", "polarity_mismatch": "肯定否定不符", "polarity_unclear": "肯定否定不明",
    "not_on_page": "不在页面上", "self_loop": "指向自身", "model_rejected": "模型否决", "gives_orders": "引文是对模型的指令",
    "overruled": "被人工决定推翻",
    # reasons: questions
    "shortcut": "有捷径", "unbalanced": "是否不平衡", "mixture_too": "混合物也符合",
    "name_of_several_substances": "名称属于多种物质", "both_sides_of_split": "横跨训练与评测两侧",
    "denied_item_in_text": "文中否认该项", "list_not_complete_in_text": "文中列表不完整", "bridge_not_unique": "桥接不唯一",
    "cap_answer": "同一答案已达上限", "cap_seed": "同一物质已达上限", "cap_document": "同一文档已达上限",
    "conditional_statement": "有条件的陈述", "conditional_list": "有条件的列表", "conflict_in_source": "来源内部矛盾",
    "hop_without_plain_evidence": "某一跳缺少直白依据", "no_wording": "没有措辞", "related_agent_differs": "相关灭火剂不同",
    "second_list_in_source": "来源中有第二个列表", "seed_names_bridge": "起点名称泄露桥接",
    "source_without_own_title": "来源没有自己的标题", "sources_contradict": "来源相互矛盾", "values_too_close": "数值过于接近",
    "not_drawn": "未抽中", "alias_of_seed": "是起点的别名", "answer_in_question": "答案在问题中",
    "answer_too_long": "答案过长", "answers_are_one_thing": "答案是同一事物", "class_member": "是类别成员",
    "direct_edge": "有直接关系", "fewer_than_two_references": "依据少于两处", "first_aid_without_route": "急救未说明途径",
    "instruction_without_text": "指示没有文本", "is_classified": "已分类", "is_listed": "已列出", "is_stated": "已陈述",
    "lexical_overlap": "用词重叠", "negated_evidence": "依据是否定句", "negative_instruction": "否定的指示",
    "no_reference": "没有依据", "number_not_in_evidence": "数字不在依据中", "own_query_empty": "自身查询为空",
    "proof_cannot_be_run": "证明无法执行", "proof_gives_other_answers": "证明给出其他答案",
    "reference_not_in_document": "依据不在文档中", "reference_of_other_version": "依据属于另一版本",
    "same_text_other_answer": "同一问句另有答案", "subject_not_named": "未提及主体", "too_many_answers": "答案过多",
    "value_conditions": "数值条件不明", "wrong_language": "语言不符", "no_questions": "没有问题",
    # what steps count
    "added": "新增", "updated": "更新", "removed": "移除", "unchanged": "未变", "changed": "改变", "transferred": "已传输",
    "aliases": "别名", "bad_rows": "无效行", "blocks_dropped": "删去的段落", "chemicals": "化学品", "cleaned": "已清洗",
    "clusters": "聚类", "duplicates": "重复", "editions": "版本", "entities": "实体", "figures": "数字", "indexed": "已索引",
    "links": "链接", "located": "已定位", "methods": "方法", "nodes_created": "新建节点", "nodes_updated": "更新节点",
    "nodes_deleted": "删除节点", "nodes_unchanged": "未变节点", "relationships_created": "新建关系",
    "relationships_updated": "更新关系", "relationships_deleted": "删除关系", "relationships_unchanged": "未变关系",
    "not made": "未生成", "orders": "指令行", "profiles": "页面概况", "reference rows": "参考行", "agree": "一致",
    "conflict": "冲突", "differ": "不同", "merge": "合并", "link": "关联", "keep-apart": "保持分开", "undo": "撤销",
    "refined": "已精炼", "unrefined": "未精炼", "scored": "已评分", "templates": "模板", "decision": "裁定",
    "names": "名称", "others": "其他", "accept": "接受", "reject": "拒绝",
    # questions, methods and figures
    "single_hop": "单跳", "multi_hop": "多跳", "aggregative": "汇总", "boolean": "是否",
    "main": "主表", "differences": "差异", "kinds": "按问题类别", "languages": "按语言", "lambda": "λ", "levels": "按层级",
    "completion": "补全", "retrieval": "检索", "evidence_recall": "证据召回率", "substring_recall": "子串召回率",
    "precision": "精确率", "iou": ("交并比", "IoU"), "context_tokens": "上下文词元", "context_chunks": "上下文分块",
    "rouge_l": "ROUGE-L", "bleu_4": "BLEU-4", "brevity_penalty": "简短惩罚", "meteor": "METEOR", "token_f1": "词元 F1",
    "answered": "已作答", "hit@1": "命中率@1", "hit@5": "命中率@5", "pearson_r": "皮尔逊 r", "count": "数量",
    "per_document": "每文档", "mean_size": "平均大小", "median_size": "中位大小", "max_size": "最大大小", "li": "LI",
    "sd": "SD", "cs": "ChunkScore", "seconds": "秒", "perplexity_before": "补全前困惑度",
    "perplexity_after": "补全后困惑度", "difference": "差值", "loss_before": "补全前损失", "loss_after": "补全后损失",
    "chunks per document": "块每文档", "tokens": "词元", "mean over documents": "文档平均",
    "seconds of wall time per document": "每文档秒数", "perplexity per token": "每词元困惑度",
    "share of evidence characters": "占依据字符的比例", "share of context characters": "占上下文字符的比例",
    "share of characters": "占字符的比例", "tokens per question": "词元每问题", "chunks per question": "块每问题",
    "score 0-1": "0–1 分", "factor": "因子", "share of questions": "占问题的比例",
    "Pearson's r over methods": "各方法的皮尔逊 r", "nats per token": "纳特每词元", "dense": "稠密", "sparse": "稀疏",
    "hybrid": "混合", "language": "语言", "kind": "类别", "method": "方法", "counter": "计数器", "embedder": "嵌入模型",
    "answerer": "作答者", "index_text": "索引文本", "index_title": "索引标题", "context_text": "上下文文本", "chunk": "分块",
    "top_k": "前 k 项", "confidence": "置信度", "not_located": "未定位", "baseline": "基线", "max_level": "最深层级",
    "sample": "样本", "perplexity": "困惑度", "variant": "变体", "alpha": "α", "reach": "范围", "embedding": "嵌入",
    "vectors": "向量", "boundaries": "边界数", "k": "k", "words": "词", "True": "是", "False": "否", "pooled": "池化",
    "offline": "规则", "rejected_share": "拒绝比例", "document": "文档", "all": "全部", "ppl_ratio": "困惑度比",
    # stages and groups of figures
    "acquire": "采集", "curate": "整理", "graph": "图谱", "evaluate": "评测", "refresh": "刷新", "checks": "检查",
    "failures": "失败", "items": "条目", "dropped": "未保留", "made": "产出", "models": "模型", "calls": "调用",
    "cached": "取自存储", "tokens_in": "输入词元", "tokens_cached": "缓存词元", "tokens_out": "输出词元", "cost": "费用",
    # conditions of statements
    "when": ("条件", "when"), "note": "说明", "route": "途径", "alternative": ("或以…代替", "or instead"), "organ": "靶器官",
    "form": "形态", "temperature": "温度", "pressure": "压力", "duration": "时间", "species": "物种", "basis": "基准",
    "concentration": "浓度",
    # labels of nodes
    "Assertion": "陈述", "Listing": "列表", "Substance": "物质", "Alias": "别名", "Mixture": "混合物",
    "HazardClass": ("危险类别", "Hazard class"), "HazardStatement": ("危险说明", "Hazard statement"),
    "PrecautionaryStatement": ("防范说明", "Precautionary statement"), "Pictogram": "象形图",
    "TransportEntry": ("运输条目", "Transport entry"), "NfpaRating": ("NFPA 等级", "NFPA rating"), "Measurement": "测量值",
    "ExposureLimit": ("接触限值", "Exposure limit"), "Toxicity": "毒性", "Measure": "措施",
    "ReactiveGroup": ("反应性类别", "Reactive group"), "Regulation": "法规", "Use": "用途", "Document": "文档", "Section": "章节",
}  # fmt: skip

LABELS: dict[Language, dict[str, str]] = {
    "zh": {key: pair[0] for key, pair in _LABELS.items()},
    "en": {key: pair[1] for key, pair in _LABELS.items()},
}
_RELATIONS: Mapping[str, tuple[str, str]] = {
    relation.value: (spec.zh, spec.en)
    for relation, spec in RELATIONS.items()
    if isinstance(relation, Relation)
}


@dataclass(frozen=True)
class Words:
    """The words of one language."""

    language: Language

    def __getitem__(self, key: str) -> str:
        """A label by its key. Raises KeyError for one that there is not."""
        return LABELS[self.language][key]

    def __call__(self, key: str, **figures: object) -> str:
        """A label with figures put in."""
        return self[key].format(**figures)

    def term(self, code: object) -> str:
        """What a code is called; of ``rejected: low_score`` or ``kept::search`` each part."""
        text = str(code)
        known = _TERMS.get(text) or _RELATIONS.get(text)
        if known is None and ":" in text:
            parts = [part.strip() for part in text.split(":") if part.strip()]
            if all(part in _TERMS for part in parts):
                return ("：" if self.language == "zh" else ": ").join(map(self.term, parts))
        if known is None:
            return text.replace("_", " ") if self.language == "en" else text
        if isinstance(known, tuple):
            return known[0 if self.language == "zh" else 1]
        return known if self.language == "zh" else text.replace("_", " ")

    def known(self, code: object) -> bool:
        """Whether a code has a name in both languages."""
        text = str(code)
        parts = [part.strip() for part in text.split(":") if part.strip()]
        return text in _TERMS or text in _RELATIONS or (bool(parts) and all(part in _TERMS for part in parts))


WORDS: dict[Language, Words] = {language: Words(language) for language in LANGUAGES}
EN = WORDS["en"]

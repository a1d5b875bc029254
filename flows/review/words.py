"""The page's own words in Chinese and English, and which of the two a visitor reads."""

from __future__ import annotations

from typing import Literal

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")

# key -> (Chinese, English)
_WORDS: dict[str, tuple[str, str]] = {
    "title": ("人工复核", "Review"),
    "overview": ("概览", "Overview"),
    "history": ("决定记录", "History"),
    "documents": ("隔离文档", "Quarantined documents"),
    "identity": ("是否同一物质", "One substance or two"),
    "conflicts": ("数值冲突", "Values that disagree"),
    "questions": ("失效问题", "Stale questions"),
    "work": ("失败步骤", "Failed steps"),
    "documents_about": (
        "规则拦下的页面：待复核、失败或被拒绝，附理由。",
        "Pages that the rules stopped: for review, failed or rejected, with the reason.",
    ),
    "identity_about": (
        "规则或模型认为可能是同一物质、但无人裁定的名称对。",
        "Pairs of names that rules or a model found possible and nobody has decided.",
    ),
    "conflicts_about": (
        "不同来源在相同条件下对同一性质给出的、超出容差的不同数值。",
        "Values of one property under the same conditions that sources state differently, beyond its tolerance.",
    ),
    "questions_about": (
        "已保留、但其文档已消失或改变、或其事实已无来源支持的问题。下次 hchem run questions 会重做全部问题。",
        "Kept questions whose documents went or changed, or whose facts no source states any more. "
        "The next hchem run questions makes all of them anew.",
    ),
    "work_about": (
        "某一步骤处理失败的条目；可要求下次运行重试。",
        "Items that a step failed on; the next run can be asked to try them again.",
    ),
    "skip": ("跳到内容", "Skip to the content"),
    "other_language": ("English", "中文"),
    "queue": ("队列", "Queue"),
    "open": ("待决", "Open"),
    "nothing": ("没有待决条目。", "Nothing waits here."),
    "nothing_found": ("没有符合条件的条目。", "Nothing matches."),
    "search": ("搜索", "Search"),
    "all_kinds": ("全部", "all"),
    "kind": ("类别", "Kind"),
    "reason": ("理由", "Reason"),
    "state": ("状态", "State"),
    "item": ("条目", "Item"),
    "said": ("说明", "What is said of it"),
    "source": ("来源", "Source"),
    "page_of": ("第 {page} / {pages} 页，共 {total} 条", "Page {page} of {pages}, {total} in all"),
    "previous": ("上一页", "Previous"),
    "next": ("下一页", "Next"),
    "as_of": ("{seconds} 秒前计算", "computed {seconds} s ago"),
    "back": ("返回队列", "Back to the queue"),
    "next_item": ("下一条", "Next item"),
    "address": ("网址", "Address"),
    "address_unsafe": ("（不是网页地址，不可点击）", "(no address of a web page: not a link)"),
    "read_only": ("只读：不能记录决定。", "Read only: no decision can be recorded."),
    "running": (
        "正在运行（{flow}）；决定照常记录，下次运行生效。",
        "A run is at work ({flow}); decisions are recorded all the same and take effect with the next run.",
    ),
    "to_apply": ("有决定尚未生效。使其生效：", "Decisions are not in effect yet. To apply them:"),
    "to_apply_running": (
        "有决定尚未生效；当前运行结束后再运行一次。",
        "Decisions are not in effect yet; run once more after this run.",
    ),
    "recorded": ("已记录：", "Recorded:"),
    "decide": ("决定", "Decide"),
    "why": ("理由（必填）", "Why (required)"),
    "because": ("理由", "Why"),
    "by": ("决定人", "Who decides"),
    "decided_before": ("此条目以前的决定", "Earlier decisions on this item"),
    "last_decision": (
        "此条目已有有效决定；再作决定将取代它。",
        "A decision on this item stands; a new one replaces it.",
    ),
    "choice": ("决定", "Decision"),
    "when": ("时间（UTC）", "When (UTC)"),
    "stands": ("有效", "stands"),
    "done": ("已执行", "done"),
    "replaced": ("已被取代", "replaced"),
    "undone": ("已撤销", "taken back"),
    "lapsed": ("已失效：内容已改变", "lapsed: the text has changed"),
    "not_applied": ("无法执行：{why}", "not applied: {why}"),
    "undo": ("撤销", "Undo"),
    "undo_about": (
        "撤销本身也会记录；下次运行后恢复为规则的结果。",
        "The undo is recorded as well; after the next run the item is as the rules have it.",
    ),
    "no_history": ("还没有人作过决定。", "Nobody has decided anything."),
    # decisions
    "accept": ("接受", "Accept"),
    "reject": ("拒绝", "Reject"),
    "retry": ("重试", "Retry"),
    "same": ("同一物质", "The same"),
    "different": ("不同物质", "Different"),
    "merge": ("同一物质", "the same"),
    "keep-apart": ("不同物质", "different"),
    "solution_of": ("“{solution}”是 {of} 的溶液", "“{solution}” is a solution of {of}"),
    "is_solution": ("溶液", "solution of"),
    "left": ("A 成立", "A stands"),
    "right": ("B 成立", "B stands"),
    "both": ("两者都成立", "Both stand"),
    "none": ("都不成立", "Neither stands"),
    "drop": ("弃用", "Drop"),
    "remake": ("重新生成", "Make anew"),
    "accept_about": (
        "接受：文档按现有文本继续处理，不受质量阈值限制；文本改变后须重新复核。",
        "Accept: the document goes on with this text, whatever its score; a changed text is reviewed anew.",
    ),
    "reject_about": (
        "拒绝：文档不进入语料，直到其文本改变。",
        "Reject: the document stays out until its text changes.",
    ),
    "retry_about": ("重试：下次运行重新清洗和评分。", "Retry: the next run cleans and scores it again."),
    "retry_step_about": ("重试：下次运行再试一次。", "Retry: the next run tries it again."),
    "identity_help": (
        "“同一物质”会合并两者（硬性规则仍可拒绝）；“不同物质”使其不再出现；“溶液”保持两者分开，并把该名称登记为溶液名。",
        "The same: they are merged (the hard blocks may refuse it). Different: the pair does not come back. "
        "Solution of: they stay apart, and the name repository learns the name as a solution's.",
    ),
    "conflicts_help": (
        "不成立的数值不再进入图谱、问题和导出；页面文本不变。两者都成立：分歧只是不再列出。",
        "A value that does not stand leaves graph, questions and exports; the page's text stays. "
        "Both stand: the disagreement is no longer listed, nothing else changes.",
    ),
    "questions_help": (
        "弃用：以后的运行也不再保留此问题。重新生成：下次运行重做全部问题。",
        "Drop: no later run keeps this question. Make anew: the next run makes all questions again.",
    ),
    "no_pair": (
        "这不是两个实体的配对，无法在此决定。",
        "This is no pair of two entities; it cannot be decided here.",
    ),
    "about_decision": (
        "决定 {id} 无法执行。请在决定记录中撤销它。",
        "Decision {id} cannot be applied. Take it back in the history.",
    ),
    # labels of facts
    "cas": ("CAS 号", "CAS number"),
    "key": ("键", "Key"),
    "called": ("现用名", "Called"),
    "names": ("名称", "Names"),
    "si": ("SI", "SI"),
    "page_quote": ("页面原文", "The page's own words"),
    "score": ("质量分", "Score"),
    "flags": ("标记", "Flags"),
    "language": ("语言", "Language"),
    "detail": ("详情", "Detail"),
    "licence": ("许可", "Licence"),
    "removed": ("清洗删除的内容（规则与次数）", "What cleaning removed (rule and count)"),
    "text": ("清洗后的文本", "Cleaned text"),
    "no_text": ("没有文本。", "There is no text."),
    "text_cut": ("此处省略 {n} 个字符。", "{n} characters more are not shown."),
    "steps": ("各步骤结果", "What the steps made of it"),
    "step": ("步骤", "Step"),
    "failures": ("未解决的失败", "Unresolved failures"),
    "evidence": ("依据", "Evidence"),
    "no_evidence": ("没有可显示的原文。", "There is no passage to show."),
    "others": ("同样数值还见于", "The same value also stands in"),
    "question": ("问题", "Question"),
    "answer": ("答案", "Answer"),
    "problems": ("问题所在", "What is wrong"),
    "document_gone": ("文档已不在语料中", "the document is no longer kept"),
    "document_changed": ("文档已改变", "the document has changed"),
    "fact_gone": ("已无来源陈述此事实", "no source states this fact any more"),
    "difference": ("差异", "Difference"),
    "substance": ("物质", "Substance"),
    "property": ("性质", "Property"),
    "proposal": ("模型意见", "A model's view"),
    # states and reasons
    "review": ("待复核", "for review"),
    "failed": ("失败", "failed"),
    "rejected": ("被拒绝", "rejected"),
    "kept": ("已保留", "kept"),
    "duplicate": ("重复", "duplicate"),
    "cleaning_guard": ("清洗可能丢失内容", "cleaning may have lost something"),
    "low_score": ("质量分过低", "low score"),
    "no_main_content": ("没有正文", "no main content"),
    "needs_browser": ("需要浏览器才能显示", "needs a browser"),
    "scanned_pdf": ("扫描版 PDF", "scanned PDF"),
    "encrypted_pdf": ("加密 PDF", "encrypted PDF"),
    "too_large": ("过大", "too large"),
    # errors
    "conflict_title": ("已有人决定", "Somebody was first"),
    "conflict_about": (
        "你查看此条目期间，{by} 已于 {at} 作出决定：{choice}。理由：{why}。你的决定没有记录。",
        "While you looked at this item, {by} decided it at {at}: {choice}. Why: {why}. "
        "Your decision was not recorded.",
    ),
    "contradicts": (
        "尚未记录。“{choice}”与对相同数值的下列有效决定相矛盾：一个决定推翻了另一个决定认可的数值；被任一有效决定推翻的数值都不再使用。"
        "请先查看或撤销它们；再次发送则照样记录。",
        "Not recorded yet. “{choice}” contradicts the following standing decisions on the same values: one overrules a "
        "value that another lets stand, and what any standing decision overrules is not used. "
        "Look at them or take them back first; sent once more, it is recorded all the same.",
    ),
    "look_again": ("重新查看此条目", "Look at the item again"),
    "refused": ("没有记录：{why}", "Not recorded: {why}"),
    "busy": (
        "目录库正忙，没有记录任何内容；请再次发送。",
        "The catalogue is busy and nothing was recorded; send it once more.",
    ),
    "not_found": ("没有这个条目（可能已被处理）。", "There is no such item (any more)."),
    "forged": (
        "表单已过期或不是来自本页面；没有记录任何内容。请重新打开条目。",
        "The form is out of date or not from this page; nothing was recorded. Open the item again.",
    ),
    "error": ("出错", "Error"),
    "keys": (
        "键盘：Tab 移动，Enter 打开；Alt+Shift（或 Alt）加按钮上框出的字母选择决定，+s 搜索，+n 下一页，+p 上一页。",
        "Keys: Tab moves, Enter opens; Alt (or Alt+Shift) with the letter in the box chooses a decision, "
        "with s searches, with n and p turns the page.",
    ),
}

WORDS: dict[Language, dict[str, str]] = {
    "zh": {key: pair[0] for key, pair in _WORDS.items()},
    "en": {key: pair[1] for key, pair in _WORDS.items()},
}


def preferred(header: str) -> Language:
    """The language of an Accept-Language header; English where it names neither."""
    best: tuple[float, Language] = (0.0, "en")
    for part in header.split(","):
        name, _, quality = part.partition(";")
        code = name.strip().lower().split("-")[0]
        try:
            weight = float(quality.strip().removeprefix("q=")) if quality else 1.0
        except ValueError:
            continue
        for language in LANGUAGES:
            if code == language and weight > best[0]:
                best = (weight, language)
    return best[1]

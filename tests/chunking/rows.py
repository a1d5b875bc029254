"""Hand-made catalogue rows for the tests of index, answers and evaluation."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from chunking.partition import Node, Span, node_id, pack
from chunking.sentences import split_sentences
from corpus.catalogue.tables import ChemicalName, Chunk, Document, Partition, Question
from corpus.ids import digest, document_id, version_id
from models.tokens import count_words

PAGES = {
    "methanol-zh": (
        "甲醇 安全技术说明书",
        "zh",
        "甲醇是无色液体。\n闪点：11 ℃（闭杯）。\n引燃温度：464 ℃。\n第五部分 消防措施\n灭火剂：抗溶性泡沫、干粉、二氧化碳。"
        "不得用水柱直接喷射。\n急救措施：皮肤接触后立即脱去污染的衣着，用大量流动清水冲洗。\n甲醇不得与强氧化剂混存。",
    ),
    "toluene-zh": (
        "甲苯 安全技术说明书",
        "zh",
        "甲苯是无色透明液体。\n闪点：4 ℃。\n引燃温度：535 ℃。\n灭火剂：泡沫、干粉、二氧化碳、砂土。用水灭火无效。\n"
        "急救措施：吸入后迅速脱离现场至空气新鲜处。",
    ),
    "acetone-en": (
        "Acetone safety data sheet",
        "en",
        "Acetone is a colourless liquid. The flash point is -20 °C (closed cup). The autoignition temperature is 465 °C. "
        "Extinguishing media: alcohol-resistant foam, dry powder, carbon dioxide. Do not use a solid water stream. "
        "Wear safety goggles and butyl rubber gloves. Keep away from heat, sparks and open flames.",
    ),
}
NAMES = (
    ("67-56-1", "甲醇", "zh"),
    ("67-56-1", "methanol", "en"),
    ("108-88-3", "甲苯", "zh"),
    ("67-64-1", "acetone", "en"),
    ("67-64-1", "丙酮", "zh"),
    ("71-43-2", "苯", "zh"),
    ("71-43-2", "benzene", "en"),
)


def identity(name: str) -> tuple[str, str]:
    document = document_id(f"http://x/{name}")
    return document, version_id(document, PAGES[name][2])


def add_documents(session: Session, names: tuple[str, ...] = tuple(PAGES)) -> None:
    for name in names:
        title, language, text = PAGES[name]
        document, version = identity(name)
        session.add(
            Document(
                document_id=document,
                page_id=document,
                source="test",
                url=f"http://x/{name}",
                identity=name,
                title=title,
                language=language,
                state="kept",
                version_id=version,
                text=text,
            )
        )
    for key, text, language in NAMES:
        session.add(
            ChemicalName(
                name_id=digest(key, text),
                key=key,
                name=text,
                normalised=text,
                language=language,
                kind="common",
                source="t",
            )
        )


def add_chunks(
    session: Session,
    method: str,
    cut: Callable[[str], list[Span]] | int,
    names: tuple[str, ...] = tuple(PAGES),
) -> None:
    """Leaves by ``cut`` or whole sentences up to a size; ``hichunk`` gets a root above them."""
    for name in names:
        text = PAGES[name][2]
        document, version = identity(name)
        partition = digest("partition", version, method)
        spans = cut(text) if callable(cut) else pack(text, split_sentences(text), cut, count_words)
        scores = {"li": 0.5, "sd": -0.4, "cs": -0.13, "k": len(spans), "boundaries": 1, "perplexity": "ngram"}
        session.add(
            Partition(
                partition_id=partition, document_id=document, version_id=version, method=method, scores=scores
            )
        )
        nodes = [Node(start, end) for start, end in spans]
        if method == "hichunk":
            nodes = [Node(0, len(text), 0, None, False), *(Node(s, e, 1, 0) for s, e in spans)]
        ids = [node_id(partition, index, node) for index, node in enumerate(nodes)]
        for index, node in enumerate(nodes):
            session.add(
                Chunk(
                    chunk_id=ids[index],
                    partition_id=partition,
                    document_id=document,
                    version_id=version,
                    method=method,
                    position=index,
                    start=node.start,
                    end=node.end,
                    level=node.level,
                    parent_id=None if node.parent is None else ids[node.parent],
                    leaf=node.leaf,
                    text=text[node.start : node.end],
                )
            )


def add_question(
    session: Session, name: str, question: str, answer: str, quote: str, **values: object
) -> None:
    document, version = identity(name)
    start = PAGES[name][2].index(quote)
    reference = {
        "document_id": document,
        "version_id": version,
        "start": start,
        "end": start + len(quote),
        "quote": quote,
        "url": f"http://x/{name}",
    }
    session.add(
        Question(
            **{
                "question_id": digest(question),
                "kind": "single_hop",
                "language": PAGES[name][1],
                "question": question,
                "answer": answer,
                "references": [reference],
                "split": "eval",
                **values,
            }
        )
    )

"""Duplicates and the curated part: by proof, by text, and near-equal wordings of one answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kg.graph_settings import QuestionSettings
from kg.qa.facts import plain
from kg.qa.records import Candidate
from kg.qa.sampling import Side, seeded, side_of
from kg.qa.verification import Reason

_NEAR = 0.85
_PERMUTATIONS = 64


def duplicates(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Candidate id → reason, for those that repeat another one or say the same with another answer."""
    found: dict[str, str] = {}
    by_text: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda c: c.id):
        by_text[candidate.language, plain(candidate.question)].append(candidate)
    for same in by_text.values():
        if len({c.expected for c in same}) > 1:
            found |= {c.id: Reason.AMBIGUOUS_TEXT.value for c in same}
        else:
            found |= {c.id: Reason.DUPLICATE.value for c in same[1:]}
    left = [c for c in candidates if c.id not in found]
    return found | dict.fromkeys(_near(left), Reason.DUPLICATE.value)


def _near(candidates: Iterable[Candidate]) -> list[str]:
    """Near-equal texts among questions of one kind on the same statements of the same documents.

    Near-equal words about another listing, property or document are another question.
    """
    groups: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda c: c.id):
        groups[_matter(candidate)].append(candidate)
    return [key for group in groups.values() if len(group) > 1 for key in _near_in(group)]


def _near_in(group: Sequence[Candidate]) -> list[str]:
    from datasketch import MinHash

    kept: list[MinHash] = []
    dropped = []
    for candidate in group:
        signature = MinHash(num_perm=_PERMUTATIONS, seed=1)
        text = plain(candidate.question)
        signature.update_batch([text[at : at + 3].encode() for at in range(max(1, len(text) - 2))])
        if any(signature.jaccard(other) >= _NEAR for other in kept):
            dropped.append(candidate.id)
        else:
            kept.append(signature)
    return dropped


def _matter(candidate: Candidate) -> tuple[object, ...]:
    documents = tuple(sorted({r.document_id for r in candidate.references}))
    return (
        candidate.kind, candidate.language, candidate.answer, candidate.proof.body, candidate.triples, documents,
    )  # fmt: skip


def curated(
    kept: Sequence[Candidate],
    levels: Mapping[str, str],
    sides: Mapping[str, Side],
    settings: QuestionSettings,
) -> set[str]:
    """Ids of the evaluation part: a bounded number per kind, section, language and difficulty, in seeded order.

    Of Boolean questions as many with yes as with no.
    """
    cells: dict[tuple[object, ...], dict[object, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in kept:
        if side_of(candidate.substances, sides) == "eval":
            answer = candidate.expected[0] if candidate.kind == "boolean" else ""
            cell = (candidate.kind, candidate.section or 0, candidate.language, levels[candidate.id])
            cells[cell][answer].append(candidate)
    chosen: set[str] = set()
    for matter in sorted(cells, key=str):
        most = settings.curated_per_cell
        if matter[0] == "boolean":
            most = min(most // 2, *(len(cells[matter][answer]) for answer in ("yes", "no")))
        for answer in sorted(cells[matter], key=str):
            ordered = seeded(cells[matter][answer], settings.seed, lambda c: "curated" + c.id)
            chosen |= {c.id for c in ordered[:most]}
    return chosen

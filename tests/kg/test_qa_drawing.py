"""Which questions are drawn where more are possible than are wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kg.graph_settings import QuestionSettings
from kg.qa.drawing import Cell, Pool, cell_of, drawn, evenly, shares
from kg.qa.records import Candidate, Proof, Reference

SETTINGS = QuestionSettings(at_most=60)


def candidate(number: int, **given: Any) -> Candidate:
    """A made-up candidate about one of ten substances."""
    values: dict[str, Any] = {
        "kind": "single_hop",
        "language": "zh" if number % 2 else "en",
        "template": "value",
        "question": f"question {number}?",
        "answer": "1",
        "expected": ("1",),
        "surfaces": (),
        "proof": Proof("MATCH (n) RETURN n", {"n": number}),
        "references": (Reference(f"document {number % 40}", "v", 0, 1, "q", "", "zh"),),
        "triples": (),
        "substances": (f"substance {number % 10}",),
        "relation": "HAS_MEASUREMENT",
    }
    return Candidate(**{**values, **given})


def many(count: int = 400) -> list[Candidate]:
    """Values in plenty, few lists, and Booleans of which four of five are answered with no."""
    made = [candidate(n) for n in range(count)]
    made += [
        candidate(n, kind="aggregative", template="count", relation="HAS_H") for n in range(count, count + 10)
    ]
    return made + [
        candidate(n, kind="boolean", template="is_listed", relation="HAS_H", expected=("yes" if n % 5 == 0 else "no",))
        for n in range(1000, 1000 + count)
    ]  # fmt: skip


class Prover:
    """Says which of the candidates hold, and remembers what it was asked."""

    def __init__(self, made: list[Candidate], holds: Callable[[Candidate], bool] = lambda _: True) -> None:
        self.by_id = {c.id: c for c in reversed(made)}
        self.holds = holds
        self.waves: list[list[str]] = []
        self.held: dict[str, Cell] = {}

    def __call__(self, ids: list[str]) -> Mapping[str, Cell]:
        self.waves.append(ids)
        self.held |= {key: cell_of(self.by_id[key]) for key in ids if self.holds(self.by_id[key])}
        return self.held


def drawn_from(
    made: list[Candidate], settings: QuestionSettings, holds: Callable[[Candidate], bool] = lambda _: True
) -> tuple[set[str] | None, Counter[str], Prover]:
    """Outcome of a draw, and what was proved for it."""
    pool = Pool(settings)
    for one in made:
        pool.add(one)
    prover = Prover(made, holds)
    found = drawn(pool, prover)
    return found.chosen, found.left_out, prover


def counted(made: list[Candidate], chosen: set[str] | None) -> Counter[tuple[str, str, str]]:
    assert chosen is not None
    return Counter(
        (c.kind, c.language, str(c.expected[0]) if c.kind == "boolean" else "")
        for c in {c.id: c for c in made}.values()
        if c.id in chosen
    )


def test_all_are_proved_where_no_more_are_possible_than_wanted() -> None:
    made = many(20)
    for settings in (QuestionSettings(), QuestionSettings(at_most=0), QuestionSettings(at_most=len(made))):
        chosen, left_out, prover = drawn_from(made, settings)
        assert chosen is None
        assert left_out.total() == 0
        assert [sorted(wave) for wave in prover.waves] == [sorted(c.id for c in made)]


def test_a_draw_is_even_and_little_more_than_it_is_proved() -> None:
    made = many()
    chosen, left_out, prover = drawn_from(made, SETTINGS)
    found = counted(made, chosen)
    # ten lists are all there are; the others share what is left
    assert found["aggregative", "zh", ""] == found["aggregative", "en", ""] == 5
    assert abs(found["single_hop", "zh", ""] - found["single_hop", "en", ""]) <= 1
    for language in ("zh", "en"):
        assert found["boolean", language, "yes"] == found["boolean", language, "no"] == 6
    assert 56 <= found.total() <= SETTINGS.at_most
    assert len(prover.waves) == 1
    assert len(prover.waves[0]) <= 75
    assert left_out["not_drawn"] == len(made) - found.total()


def test_no_substance_has_two_before_each_has_one() -> None:
    made = [candidate(n, substances=("common",) if n > 20 else (f"rare {n}",)) for n in range(1, 400)]
    chosen, _, _ = drawn_from(made, SETTINGS)
    assert chosen is not None
    substances = Counter(c.substances[0] for c in made if c.id in chosen)
    assert all(substances[f"rare {n}"] == 1 for n in range(1, 21))


def test_what_fails_is_replaced() -> None:
    made = many()
    chosen, left_out, prover = drawn_from(made, SETTINGS, lambda c: int(c.id[0], 16) % 4 != 0)
    assert 54 <= counted(made, chosen).total() <= SETTINGS.at_most
    assert len(prover.waves) > 1
    assert chosen is not None
    assert chosen <= set(prover.held)
    asked = [key for wave in prover.waves for key in wave]
    assert len(asked) == len(set(asked)) < 200
    failed = len(asked) - len(prover.held)
    assert left_out["not_drawn"] == len(made) - len(chosen) - failed


def test_what_a_failing_kind_cannot_give_the_others_give() -> None:
    made = many()
    chosen, _, prover = drawn_from(made, SETTINGS, lambda c: c.kind == "single_hop")
    found = counted(made, chosen)
    assert {kind for kind, _, _ in found} == {"single_hop"}
    assert found.total() >= 58
    assert len(prover.waves) <= 6


def test_the_draw_does_not_depend_on_the_order_and_mostly_stays_when_the_corpus_grows() -> None:
    made = many()
    chosen, _, _ = drawn_from(made, SETTINGS)
    assert drawn_from(made[::-1], SETTINGS)[0] == chosen
    assert drawn_from(made, SETTINGS.model_copy(update={"seed": 1}))[0] != chosen
    more = [replace(c, proof=Proof(c.proof.body, {"n": f"more {at}"}), question=f"more {at}") for at, c in enumerate(made[:100])]  # fmt: skip
    grown, _, _ = drawn_from([*made, *more], SETTINGS)
    assert chosen is not None
    assert grown is not None
    assert len(chosen & grown) >= 0.7 * len(chosen)


def test_texts_with_two_answers_are_proved_together() -> None:
    made = [
        candidate(n, question=f"question {n % 200}?", language="zh", expected=(str(n),)) for n in range(400)
    ]
    _, _, prover = drawn_from(made, SETTINGS)
    texts = Counter(prover.by_id[key].question for wave in prover.waves for key in wave)
    assert set(texts.values()) == {2}


def test_limits_of_a_kind_and_of_a_language() -> None:
    made = many()
    given = QuestionSettings(at_most=0, at_most_of={"boolean": 20, "zh": 30})
    found = counted(made, drawn_from(made, given)[0])
    assert sum(n for (kind, _, _), n in found.items() if kind == "boolean") == 20
    assert 26 <= sum(n for (_, language, _), n in found.items() if language == "zh") <= 30
    assert found["single_hop", "en", ""] == 200
    with pytest.raises(ValueError, match="bolean"):
        QuestionSettings(at_most_of={"bolean": 20})


def test_the_cap_of_a_document_and_repeated_ids() -> None:
    made = [candidate(n) for n in range(400)]
    again = [replace(c, answer="other") for c in made]
    chosen, left_out, prover = drawn_from([*made, *again], QuestionSettings(per_document=4))
    assert chosen is None
    assert left_out == {"cap_document": 400 - 40 * 4}
    documents = Counter(prover.by_id[key].references[0].document_id for key in prover.waves[0])
    assert set(documents.values()) == {4}


def test_shares() -> None:
    assert evenly({"a": 3, "b": 100, "c": 100}, 63) == {"a": 3, "b": 30, "c": 30}
    assert evenly({"a": 3, "b": 4}, 63) == {"a": 3, "b": 4}
    yes, no = (Cell("boolean", "zh", "HAS_H", "is_listed", answer) for answer in ("yes", "no"))
    assert shares({yes: 3, no: 100}, QuestionSettings()) == {yes: 3, no: 3}
    assert shares({no: 100}, QuestionSettings()) == {no: 0}

"""A share of the hostile inputs of ``benchmarks/hostile.py``: cleaning, quality and refinement hold on each."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.corpus.hostile import BACKEND, MUTATIONS, faults, markup, mutated

SEEDS = range(60)


@pytest.mark.parametrize("start", range(SEEDS.start, SEEDS.stop, 10))
def test_mutated_sample_pages(start: int) -> None:
    for seed in range(start, start + 10):
        data, arguments, how = mutated(seed)
        assert faults(data, arguments) == [], how


@settings(
    backend=BACKEND,
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shortening a failure takes minutes here; the benchmark does it
    suppress_health_check=list(HealthCheck),
)
@given(markup())
def test_generated_markup(case: tuple[bytes, dict[str, str]]) -> None:
    data, arguments = case
    assert faults(data, arguments) == []


def test_mutations_depend_on_their_seed_alone() -> None:
    assert mutated(7) == mutated(7)
    assert mutated(7)[0] != mutated(8)[0]
    done = {name for seed in range(200) for name in mutated(seed)[2].split()[1:]}
    assert done >= {mutation.__name__.strip("_") for mutation in MUTATIONS}


def test_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: an exception, a second cleaning that changes, a lost block."""
    import tests.corpus.hostile as hostile

    page = "<main><h1>苯</h1><p>苯为易燃液体，闪点－11℃，不得用水灭火，应当使用泡沫、干粉或者二氧化碳灭火。</p></main>".encode()
    arguments = {"content_type": "text/html; charset=utf-8"}
    assert faults(page, arguments) == []
    cleaned = hostile.clean_page

    def unstable(data: bytes, **given: str) -> hostile.CleanedPage:
        found = cleaned(data, **given)
        if b"generator" in data:
            found.html += "x"
        return found

    monkeypatch.setattr(hostile, "clean_page", unstable)
    assert any("second cleaning" in fault for fault in faults(page, arguments))

    def broken(data: bytes, **given: str) -> hostile.CleanedPage:
        raise KeyError("x")

    monkeypatch.setattr(hostile, "clean_page", broken)
    assert any("KeyError" in fault for fault in faults(page, arguments))
    monkeypatch.undo()
    refine = hostile.refine_document

    def losing(*given: object, **named: object) -> hostile.Refined:
        refined = refine(*given, **named)  # type: ignore[arg-type]
        refined.text, refined.blocks = refined.text.replace("不得", ""), refined.blocks[:1]
        return refined

    monkeypatch.setattr(hostile, "refine_document", losing)
    found = faults(page, arguments)
    assert any("facts differ" in fault for fault in found)
    assert any("neither kept nor listed" in fault for fault in found)

"""Settings of questions that would silently make none, or call any two values the same, are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from kg.graph_settings import QuestionSettings


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("languages", ["fr"], "'fr'"),
        ("languages", [], "no language"),
        ("languages", ["zh", "zh"], "twice"),
        *((name, float(value), "finite") for name in ("tolerance", "margin", "temperature_tolerance_k", "temperature_margin_k")
          for value in ("inf", "nan")),
        ("evaluation_share", float("nan"), "finite"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_by_name(name: str, value: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as told:
        QuestionSettings.model_validate({name: value})
    assert told.value.errors()[0]["loc"] == (name,)


def test_one_language_is_enough() -> None:
    assert QuestionSettings(languages=("en",)).languages == ("en",)

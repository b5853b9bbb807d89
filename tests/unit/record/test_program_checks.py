"""What a user's program does against what the study says of it."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.record.program_checks import program_doubts
from records import make_record


def codes(workers: int = 2, **facts: Any) -> list[str]:
    record = make_record(framework="script", strategy="own", workers=workers, batch=32, facts=facts)
    return [doubt.code for doubt in program_doubts(record)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"samples_per_step": 32}, []),
        ({"samples_per_step": 31.8}, []),
        ({"samples_per_step": None}, []),
        ({"samples_per_step": 64, "samples_from": "mark"}, ["batch-samples"]),
        ({"samples_per_step": None, "unmatched_inputs": ["64 × 3"]}, ["batch-samples"]),
        ({"samples_per_step": 32, "unmatched_inputs": None}, []),
    ],
)
def test_samples_are_doubted_only_where_they_contradict_the_study(facts: dict[str, Any], expected: list[str]) -> None:
    assert codes(**facts) == expected


@pytest.mark.parametrize(
    ("workers", "facts", "expected"),
    [
        (2, {"exchange": "none"}, ["no-exchange"]),
        (2, {"exchange": "gloo", "exchanges_per_step": 0.0}, ["no-exchange"]),
        (2, {"exchange": "gloo", "exchanges_per_step": 1.5}, []),
        (2, {"exchange": "gloo"}, []),
        (2, {"exchange": None}, []),
        (1, {"exchange": "none"}, []),
    ],
)
def test_several_workers_without_any_exchange_are_a_doubt(
    workers: int, facts: dict[str, Any], expected: list[str]
) -> None:
    assert codes(workers, **facts) == expected


def test_approximate_exchange_may_be_rarer_than_the_run_is_long() -> None:
    record = make_record(
        framework="script",
        strategy="own-approximate",
        strategy_class="approximate",
        facts={"exchange": "gloo", "exchanges_per_step": 0.0},
    )

    assert list(program_doubts(record)) == []

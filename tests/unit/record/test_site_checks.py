"""Doubts about what a site emulated."""

from __future__ import annotations

from typing import Any

import numpy as np

from paceline.record import check
from records import STATE, make_record

LINK = {
    "host": "lab1",
    "asked_bytes_per_s": 12.5e6,
    "sent_bytes_per_s": 11.9e6,
    "received_bytes_per_s": 11.9e6,
    "asked_round_trip_s": 2e-3,
    "round_trip_s": 2.1e-3,
}


def codes(**site: Any) -> list[str]:
    return [doubt.code for doubt in check(make_record(state={**STATE, "site": site}))]


def test_links_as_asked_and_a_cheap_emulation_raise_no_doubt() -> None:
    assert codes(links=[LINK], own_cpu={"fraction": 0.04}) == []


def test_link_that_was_not_asked_for_anything_is_not_doubted() -> None:
    free = {**LINK, "asked_bytes_per_s": None, "asked_round_trip_s": None, "round_trip_s": 1.0}

    assert codes(links=[free]) == []


def test_link_off_by_more_than_a_tenth_is_told_with_both_numbers() -> None:
    slow = {**LINK, "received_bytes_per_s": 10e6}
    (doubt,) = check(make_record(state={**STATE, "site": {"links": [LINK, slow]}}))

    assert doubt.code == "lab-links"
    assert "receives 80 Mbit/s instead of 100" in doubt.message
    assert codes(links=[{**LINK, "round_trip_s": 2.5e-3}]) == ["lab-links"]


def test_emulation_that_takes_cpu_from_the_ranks_is_told() -> None:
    assert codes(own_cpu={"fraction": 0.06}) == ["lab-busy"]


def test_rank_held_to_its_share_is_not_starved() -> None:
    record = make_record()
    assert record.samples is not None
    cpu = np.array(record.samples["cpu_s"]) * 0.5
    samples = record.samples.set_column(record.samples.schema.get_field_index("cpu_s"), "cpu_s", [cpu])

    def found(**site: Any) -> list[str]:
        return [doubt.code for doubt in check(make_record(samples=samples, state={**STATE, "site": site}))]

    assert found() == ["starved"]
    assert found(core_share=0.5, dilation=1.0) == []
    assert found(core_share=1.0, dilation=2.0) == []

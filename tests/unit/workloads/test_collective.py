"""A collective by itself as a workload: sizes, identity, and what cannot be asked."""

from __future__ import annotations

import pytest

from paceline.errors import SpecError
from paceline.workloads.collective import BUS_FACTORS, load_collective, parse_sizes

KIB = 1024


def test_range_goes_by_factors_of_four_and_list_is_taken_as_it_is() -> None:
    assert parse_sizes("1KiB..64KiB") == (KIB, 4 * KIB, 16 * KIB, 64 * KIB)
    assert parse_sizes("1MiB, 4KiB") == (4 * KIB, KIB * KIB)
    assert len(load_collective({}).sizes) == 9


@pytest.mark.parametrize("text", ["", "4", "2B", "5B", "1MiB..1KiB", "1KiB..", "1KiB,x", "4B..1e30TB"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_sizes(text)

    assert caught.value.hint


def test_unknown_operation_and_option_name_the_nearest_known() -> None:
    with pytest.raises(SpecError, match="unknown operation 'allreduce'") as caught:
        load_collective({"operation": "allreduce"})
    assert "all_reduce" in (caught.value.hint or "")
    with pytest.raises(SpecError, match="no option 'size'"):
        load_collective({"size": "1KiB"})


def test_identity_is_operation_and_sizes() -> None:
    one = load_collective({"sizes": "4KiB,16KiB"})

    assert one.hash == load_collective({"sizes": "4KiB..16KiB", "operation": "all_reduce"}).hash
    assert one.hash != load_collective({"sizes": "4KiB"}).hash
    assert one.hash != load_collective({"sizes": "4KiB,16KiB", "operation": "broadcast"}).hash


def test_what_is_dealt_out_has_equal_shares() -> None:
    gather = load_collective({"operation": "all_gather", "sizes": "1KiB"})

    assert gather.sizes_among(3) == (1020,)
    assert gather.sizes_among(2) == (1024,)
    assert load_collective({"operation": "all_reduce", "sizes": "1KiB"}).sizes_among(3) == (1024,)


@pytest.mark.parametrize(
    ("operation", "sizes", "workers", "reason"),
    [
        ("all_reduce", "1KiB", 1, "at least 2 workers"),
        ("send_recv", "1KiB", 3, "between 2 workers"),
        ("all_gather", "4B", 2, "too few to deal out"),
    ],
)
def test_impossible_groups_are_refused(operation: str, sizes: str, workers: int, reason: str) -> None:
    assert reason in (load_collective({"operation": operation, "sizes": sizes}).refusal(workers) or "")


def test_bus_factors_are_those_of_nccl_tests() -> None:
    factors = {operation: factor(4) for operation, factor in BUS_FACTORS.items()}

    assert factors == {
        "all_reduce": 1.5,
        "all_gather": 0.75,
        "reduce_scatter": 0.75,
        "broadcast": 1.0,
        "push_pull": 1.0,
        "send_recv": 1.0,
    }

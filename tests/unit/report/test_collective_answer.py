"""The answer of a study of collectives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.compare import Collectives, CollectiveTable
from paceline.compare.collectives import SizeRow
from paceline.report.answer import MOST_LETTERS
from paceline.report.collective_answer import collectives_sentences
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import MEASURED


def estimate(value, unit, runs=3):
    ends = (value * 0.9, value * 1.1) if runs >= 3 else (None, None)
    return Estimate(value=value, low=ends[0], high=ends[1], level=0.95, unit=unit, by=MEASURED, n_runs=runs)


def table(label="1GbE", *, slower=1.0, runs=3, outcome="ok", reason=None):
    """4 KiB in 2 ms, 4 MiB at 0.1 GB/s; `slower` times as long."""
    times = {4096: 2e-3 * slower, 4 * 2**20: 4 * 2**20 / 0.1e9 * slower}
    sizes = tuple(
        SizeRow(
            size=size,
            time=estimate(seconds, "s", runs),
            algbw=estimate(size / seconds, "B/s", runs),
            busbw=estimate(size / seconds, "B/s", runs),
            rounds=10,
        )
        for size, seconds in times.items()
    )
    return CollectiveTable(
        key=label,
        trial=label,
        label=label,
        framework="torch",
        library="gloo",
        operation="all_reduce",
        ranks=2,
        hosts=2,
        network=label,
        simulated=False,
        verified=True,
        outcome=outcome,
        reason=reason,
        n_runs=runs,
        sizes=sizes,
        warnings=(),
    )


def answer(*tables):
    return " ".join(collectives_sentences(Collectives(tables=tables, shared="", notes=())))


def test_one_collective_has_its_small_message_and_its_bandwidth():
    assert answer(table()) == (
        "With torch (gloo) all_reduce, 2 ranks on 2 hosts, 1GbE, 4.00 KiB take 2.00 ms; bus bandwidth reaches 0.100 GB/s "
        "at 4.00 MiB (95 % interval 0.090–0.110 GB/s)."
    )
    assert "(1 run: no interval)" in answer(table(runs=1))


def test_of_several_the_best_and_the_worst_are_named():
    assert answer(table(), table("100Mbit", slower=8)) == (
        "Bus bandwidth is highest with 1GbE: 0.100 GB/s at 4.00 MiB (95 % interval 0.090–0.110 GB/s); it is lowest with "
        "100Mbit: 0.0125 GB/s. A message of 4.00 KiB takes 2.00 ms (1GbE) to 16.0 ms (100Mbit)."
    )


@pytest.mark.parametrize("name", ["all_reduce · 1GbE", "a long name of a collective " * 4])
def test_many_collectives_are_two_short_sentences(name):
    tables = [replace(table(slower=1 + place), label=f"{name}{place}") for place in range(20)]
    sentences = collectives_sentences(Collectives(tables=tuple(tables), shared="", notes=()))

    assert len(sentences) == 2
    assert len(" ".join(sentences)) <= MOST_LETTERS


def test_it_is_said_why_nothing_was_measured():
    failed = replace(table(outcome="failed", reason="it broke"), sizes=())

    assert answer(failed) == "No answer yet: no collective was measured (failed: it broke)."
    assert answer() == "No answer yet: no collective was measured."

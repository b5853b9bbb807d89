"""Tables of collectives: the slowest rank, the median of rounds, the mean of runs, bandwidths as nccl-tests has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from paceline.compare import Collectives, compare, gather, tables_of
from paceline.record import Record, check
from paceline.report.collectives import collectives_text
from paceline.workloads import load_collective
from records import make_record, make_trial

SIZES = (4096, 1048576)


def record(operation: str, *, repeat: int = 0, ranks: int = 4, seconds: float = 0.001, **changed: Any) -> Record:
    """A run in which an operation takes `seconds` a KiB on its slowest rank, and the first of three rounds ten times."""
    options = {"operation": operation, "sizes": "4KiB,1MiB"}
    trial = make_trial(
        model="collective",
        options=options,
        graph=load_collective(options).hash,
        batch=1,
        workers=ranks,
        warmup_steps=0,
        steps=3,
        **changed,
    )
    rows = []
    for rank in range(ranks):
        for step in range(3 * len(SIZES)):
            size = SIZES[step % len(SIZES)]
            slowest = seconds * size / 1024 * (10 if step < len(SIZES) else 1)
            wall = slowest if rank == 1 else slowest / 2
            rows.append(
                {
                    "rank": rank,
                    "step": step,
                    "kind": "measured",
                    "start_s": 100.0 * step,
                    "wall_s": wall,
                    "cpu_s": 0.0,
                    "loss": None,
                    "bytes": size,
                    "phase.communication": wall,
                }
            )
    made = make_record(trial=trial, repeat=repeat)
    made_ranks = tuple(
        replace(rank, parameters=None, facts={"library": "gloo", "verified": True}) for rank in made.ranks
    )
    schema = pa.schema([("loss", pa.float64())])
    table = pa.Table.from_pylist(rows)
    table = table.set_column(table.column_names.index("loss"), "loss", pa.nulls(len(rows), schema.field("loss").type))
    return replace(made, samples=table, ranks=made_ranks, doubts=())


def tables(*records: Record) -> Collectives:
    return tables_of(gather(records), compare(records))


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("all_reduce", 1.5), ("all_gather", 0.75), ("reduce_scatter", 0.75), ("broadcast", 1.0), ("push_pull", 1.0)],
)
def test_bandwidths_follow_from_the_slowest_rank(operation: str, factor: float) -> None:
    (table,) = tables(record(operation)).tables

    assert (table.operation, table.library, table.ranks, table.verified) == (operation, "gloo", 4, True)
    assert [row.size for row in table.sizes] == list(SIZES)
    for row in table.sizes:
        assert row.rounds == 3
        assert row.time.value == pytest.approx(0.001 * row.size / 1024)
        assert row.algbw.value == pytest.approx(1024 / 0.001)
        assert row.busbw.value == pytest.approx(factor * 1024 / 0.001)


def test_interval_is_over_runs_and_bandwidth_turns_it_round() -> None:
    runs = [
        record("all_reduce", repeat=repeat, seconds=seconds) for repeat, seconds in enumerate((1e-3, 1.1e-3, 0.9e-3))
    ]
    row = tables(*runs).tables[0].sizes[0]

    assert row.time.n_runs == 3
    assert row.time.low is not None
    assert row.time.low < row.time.value < (row.time.high or 0)
    assert row.algbw.high == pytest.approx(row.size / row.time.low)


def test_text_has_the_columns_of_nccl_tests_within_80_columns() -> None:
    runs = [record("all_reduce", repeat=repeat, seconds=1e-3 + repeat * 1e-5) for repeat in range(3)]
    text = collectives_text(tables(*runs))

    assert "size(B)" in text
    assert "algbw(GB/s)  busbw(GB/s)" in text
    assert "logarithmic" in text
    assert max(map(len, text.splitlines())) <= 80


def test_checks_of_training_are_not_made() -> None:
    codes = {doubt.code for doubt in check(record("broadcast"))}

    assert codes <= {"few-steps"}

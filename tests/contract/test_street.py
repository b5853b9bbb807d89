"""S5: the street on the null framework in law time. What the law promises is what is recorded and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paceline.compare import compare
from paceline.frameworks.null import law_step_s
from paceline.record import OutcomeKind, Record, summarize
from paceline.spec import read_study
from paceline.workbench import Workbench, adaptive_repeats
from street import run_study, study_of


def law_of(record: Record) -> dict[str, float]:
    return law_step_s(
        record.trial.framework.knobs,
        record.trial.workers,
        record.trial.workload.batch_per_worker,
        record.inputs["gradient_bytes"],
    )


def measured(record: Record, column: str) -> np.ndarray:
    assert record.samples is not None
    table = record.samples.to_pandas()
    return table.loc[table.kind == "measured", column].to_numpy()


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"overlap": 0.5},
        {"bucket_bytes": "10kB", "alpha_s": "1ms"},
        {"slow_rank": 1, "slow_factor": 1.5},
        {"input_s": "80ms", "input_overlap": True},
        {"overhead_s": "20ms"},
    ],
    ids=lambda knobs: "-".join(knobs) or "default",
)
def test_recorded_step_and_exchange_times_are_the_laws(tmp_path: Path, knobs: dict[str, object]) -> None:
    records = run_study(study_of(knobs, cluster={"workers_per_host": [1, 2, 4]}, measure={"repeats": 1}), tmp_path)

    assert [record.trial.workers for record in records] == [1, 2, 4]
    for record in records:
        law = law_of(record)
        assert record.ok
        np.testing.assert_allclose(measured(record, "wall_s"), law["step_s"], rtol=1e-9)
        ordinary = {rank.rank for rank in record.ranks} - {record.trial.framework.knobs["slow_rank"]}
        table = record.samples.to_pandas()
        waiting = table[(table.kind == "measured") & table["rank"].isin(ordinary)]["phase.communication"]
        np.testing.assert_allclose(waiting, law["communication_s"], rtol=1e-9, atol=1e-12)


def test_default_law_takes_fifty_milliseconds(tmp_path: Path) -> None:
    (record,) = run_study(study_of(measure={"repeats": 1}), tmp_path)
    summary = summarize(record)

    assert summary is not None
    assert summary.step_s == pytest.approx(0.050, rel=1e-9)
    assert summary.throughput == pytest.approx(8 / 0.050, rel=1e-9)


def test_efficiency_agrees_with_the_law_within_its_interval(tmp_path: Path) -> None:
    study = study_of(
        {"jitter": 0.05, "jitter_correlation": 0.5, "run_jitter": 0.005},
        cluster={"workers_per_host": [1, 2]},
        measure={"repeats": 5, "steps": 40},
        workload={"model": "resnet20"},
    )
    records = run_study(study, tmp_path)
    rows = {row.workers: row for row in compare(records).rows}
    law = law_of(next(record for record in records if record.trial.workers == 2))
    found = rows[2].efficiency

    assert found is not None
    assert found.low is not None
    assert found.high is not None
    # Two ranks with jitter wait for the slower one: the law without jitter is an upper bound, near by.
    assert found.low < law["efficiency"]
    assert found.value == pytest.approx(law["efficiency"], abs=0.04)


def test_simulated_times_are_marked_in_record_and_comparison(tmp_path: Path) -> None:
    (record,) = run_study(study_of(measure={"repeats": 1}), tmp_path)

    assert "simulated" in {doubt.code for doubt in record.doubts}
    assert compare([record]).rows[0].simulated


def test_every_rank_reports_every_step_of_every_kind(tmp_path: Path) -> None:
    (record,) = run_study(study_of(cluster={"workers_per_host": 2}, measure={"repeats": 1}), tmp_path)
    table = record.samples.to_pandas()

    assert table.groupby(["rank", "kind"]).size().to_dict() == {
        (rank, kind): count for rank in (0, 1) for kind, count in (("first", 1), ("warmup", 1), ("measured", 10))
    }


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("crash", OutcomeKind.FAILED, "RuntimeError"),
        ("exit", OutcomeKind.FAILED, "reported no error"),
        ("hang", OutcomeKind.TIMED_OUT, "time limit"),
        ("hang-hard", OutcomeKind.TIMED_OUT, "time limit"),
        ("memory", OutcomeKind.OUT_OF_MEMORY, "above its limit"),
    ],
)
def test_each_fault_is_a_record_with_its_outcome_and_the_other_trial_finishes(
    tmp_path: Path, fault: str, kind: OutcomeKind, words: str
) -> None:
    limits = {
        "hang": {"time_limit": "40s"},
        "hang-hard": {"time_limit": "40s"},
        "memory": {"memory_limit": "200MiB"},
    }
    study = study_of(
        {"fault": [fault, "none"], "fault_rank": 1, "fault_step": 5, "fault_bytes": "400MiB"},
        cluster={"workers_per_host": 2},
        measure={"repeats": 1, **limits.get(fault, {})},
    )
    records = {record.trial.framework.knobs["fault"]: record for record in run_study(study, tmp_path)}

    assert records["none"].ok
    outcome = records[fault].outcome
    assert outcome.kind is kind
    assert words in (outcome.reason or "")
    if kind is not OutcomeKind.TIMED_OUT:
        # All ranks stand still when one hangs; which one does, the host cannot tell from their last words.
        assert outcome.rank == 1


def test_first_to_fail_is_blamed_not_the_peer_that_lost_its_connection(tmp_path: Path) -> None:
    study = study_of(
        {"fault": "crash", "fault_rank": 2, "fault_step": 4},
        cluster={"workers_per_host": 4},
        measure={"repeats": 1},
    )
    (record,) = run_study(study, tmp_path)

    assert record.outcome.rank == 2
    assert "asked for by the study on rank 2 at step 4" in (record.outcome.reason or "")


def test_second_run_of_a_study_does_nothing(tmp_path: Path) -> None:
    first = run_study(study_of(), tmp_path)
    again = run_study(study_of(), tmp_path)

    assert [record.run_id for record in again] == [record.run_id for record in first]


def adaptive(knobs: dict[str, object], until: str, folder: Path) -> int:
    """How many runs an adaptive study took."""
    study = read_study(study_of(knobs, measure={"repeats": {"min": 2, "max": 6, "until": until}}))
    bench = Workbench(study, folder)
    bench.run(propose=adaptive_repeats(bench))
    return len(bench.snapshot().records)


def test_adaptive_repeats_go_on_to_the_maximum_while_the_interval_is_too_wide(tmp_path: Path) -> None:
    assert adaptive({"run_jitter": 0.05}, "0.01%", tmp_path) == 6


def test_adaptive_repeats_stop_at_the_minimum_when_the_interval_is_narrow_enough(tmp_path: Path) -> None:
    assert adaptive({}, "1%", tmp_path) == 2

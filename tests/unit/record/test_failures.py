"""Which failures come again for sure, and what is said of a study that has nothing else."""

from __future__ import annotations

import pytest

from paceline.record import Outcome, OutcomeKind
from paceline.record.failures import none_ended_well, would_fail_again
from records import make_record

IMPORT = "worker0: ModuleNotFoundError: No module named 'timm'"


def failed(reason: str, stage: str = "during setup", kind: OutcomeKind = OutcomeKind.FAILED, tail: str = ""):
    return make_record(outcome=Outcome(kind=kind, stage=stage, reason=reason, log_tail=(tail,) if tail else ()))


@pytest.mark.parametrize("stage", ["at the start", "during setup"])
def test_what_fails_by_itself_before_the_first_step_fails_again(stage: str) -> None:
    record = failed(IMPORT, stage)

    assert IMPORT in (would_fail_again(record.outcome, record.repeat) or "")


@pytest.mark.parametrize(
    "record",
    [
        failed(IMPORT, "after step 3"),
        failed(IMPORT, "in the first step"),
        failed(IMPORT, kind=OutcomeKind.TIMED_OUT),
        failed(IMPORT, kind=OutcomeKind.OUT_OF_MEMORY),
        failed("worker0: OSError: [Errno 98] Address already in use"),
        failed("worker1: ConnectionError: peer closed"),
        failed("worker0: RuntimeError: rendezvous", tail="TCPStore: timeout after 60 s"),
        failed("worker0 was killed by signal 9"),
        failed("host b is gone"),
        failed("worker0: OSError: No space left on device"),
        make_record(),
    ],
    ids=lambda record: f"{record.outcome.kind.value} {record.outcome.stage}: {record.outcome.reason}",
)
def test_what_another_moment_may_not_see_is_tried_again(record) -> None:
    assert would_fail_again(record.outcome, record.repeat) is None


def test_runs_that_all_failed_are_counted_with_the_first_reason_and_the_next_command() -> None:
    error = none_ended_well("s.toml", [failed(IMPORT), failed("later")])

    assert error is not None
    assert "all 2 recorded runs failed" in error.message
    assert IMPORT in error.message
    assert "paceline run s.toml --retry-failed" in (error.hint or "")


@pytest.mark.parametrize("records", [[], [failed(IMPORT), make_record()]], ids=["none", "one is good"])
def test_nothing_is_said_where_a_run_ended_well_or_there_is_none(records) -> None:
    assert none_ended_well("s.toml", records) is None

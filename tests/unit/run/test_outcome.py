from __future__ import annotations

from paceline.record import OutcomeKind
from paceline.run.events import HelloEvent, LastWord, RankEvents, ReadyEvent, StepBlock
from paceline.run.outcome import EXIT_MEMORY, judge
from paceline.run.supervise import Ending
from records import make_trial

LOGS = {"worker0": ("log of 0",), "worker1": ("log of 1",), "scheduler0": ("log of the scheduler",)}


def taken(rank: int, steps: int) -> RankEvents:
    block = StepBlock(kind="measured", first=0, columns={"wall_s": [0.1] * steps})
    return RankEvents(rank, hello=HelloEvent(), ready=ReadyEvent(), blocks=[block])


def crashed(rank: int, at: float) -> RankEvents:
    last_word = LastWord(kind="crashed", unix_s=at, error="Oops", message=f"by {rank}")
    return RankEvents(rank, hello=HelloEvent(), last_word=last_word)


def all_steps() -> int:
    measure = make_trial().measure
    return measure.warmup_steps + measure.steps


def test_all_steps_on_all_ranks_is_ok() -> None:
    outcome = judge(make_trial(), Ending(exit_codes={0: 0, 1: 0}), [taken(0, all_steps()), taken(1, all_steps())], LOGS)

    assert outcome.kind is OutcomeKind.OK


def test_rank_that_ended_well_with_steps_missing_is_a_failure() -> None:
    outcome = judge(make_trial(), Ending(exit_codes={0: 0, 1: 0}), [taken(0, all_steps()), taken(1, 3)], LOGS)

    assert (outcome.kind, outcome.rank, outcome.stage) == (OutcomeKind.FAILED, 1, "after step 2")


def test_earliest_last_word_is_blamed() -> None:
    ending = Ending(cause="failed", process="worker0", exit_codes={0: 81, 1: 81})
    outcome = judge(make_trial(), ending, [crashed(0, 20.0), crashed(1, 10.0)], LOGS)

    assert (outcome.rank, outcome.reason) == (1, "worker1: Oops: by 1")


def test_silent_death_is_blamed_before_those_who_lost_it() -> None:
    ending = Ending(cause="failed", process="worker0", exit_codes={0: 81, 1: -9}, exit_times={0: 20.01, 1: 20.02})
    outcome = judge(make_trial(), ending, [crashed(0, 20.0), RankEvents(1, hello=HelloEvent())], LOGS)

    assert (outcome.rank, outcome.reason) == (1, "worker1 was killed by signal 9")
    assert outcome.log_tail == ("log of 1",)


def test_memory_error_of_a_rank_is_out_of_memory() -> None:
    ending = Ending(cause="failed", process="worker0", exit_codes={0: EXIT_MEMORY})
    outcome = judge(make_trial(), ending, [crashed(0, 1.0)], LOGS)

    assert outcome.kind is OutcomeKind.OUT_OF_MEMORY


def test_process_that_never_spoke_is_told_by_its_exit_code() -> None:
    ending = Ending(cause="failed", process="scheduler0", reason="scheduler0 ended with exit code 3")
    outcome = judge(make_trial(), ending, [RankEvents(0)], LOGS)

    assert (outcome.kind, outcome.stage) == (OutcomeKind.FAILED, "at the start")
    assert outcome.reason == "scheduler0 ended with exit code 3"
    assert outcome.log_tail == ("log of the scheduler",)


def test_peer_that_aborts_long_after_the_first_last_word_is_not_blamed() -> None:
    ending = Ending(cause="failed", process="worker1", exit_codes={0: 81, 1: -6}, exit_times={0: 12.0, 1: 15.0})
    outcome = judge(make_trial(), ending, [crashed(0, 10.0), RankEvents(1, hello=HelloEvent())], LOGS)

    assert outcome.rank == 0


def test_kill_by_the_kernel_for_want_of_memory_is_out_of_memory() -> None:
    ending = Ending(cause="failed", process="worker0", exit_codes={0: -9}, exit_times={0: 1.0})
    outcome = judge(make_trial(), ending, [RankEvents(0, hello=HelloEvent())], LOGS, oom_kills=1)

    assert outcome.kind is OutcomeKind.OUT_OF_MEMORY

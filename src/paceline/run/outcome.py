"""From how the processes ended and what they said to one outcome, with the rank that failed first and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from paceline.plan.trial import Trial
from paceline.record import Outcome, OutcomeKind, Rank
from paceline.run.events import RankEvents
from paceline.run.supervise import Ending
from paceline.workloads import Program, Workload

EXIT_MEMORY = 82
"""paceline_worker.protocol.EXIT_MEMORY; a contract test holds the two together."""
SIGKILL = 9
NOTICE_S = 0.5
"""The end of a rank that died without a word is noticed a moment after its peers lost their connections to it."""

Logs = Mapping[str, tuple[str, ...]]
"""Name of a process → the last lines that it wrote."""


def judge(
    trial: Trial,
    ending: Ending,
    events: Sequence[RankEvents],
    logs: Logs,
    *,
    oom_kills: int = 0,
    lost: Mapping[int, str] | None = None,
) -> Outcome:
    """The outcome of a run.

    Args:
        oom_kills: processes that the kernel killed meanwhile because memory ran out.
        lost: rank → its host, where that is gone.
    """
    if lost:
        rank = min(lost)
        stage = next(e.stage for e in events if e.rank == rank)
        return Outcome(
            kind=OutcomeKind.FAILED,
            stage=stage,
            rank=rank,
            reason=f"host {lost[rank]} is gone",
            log_tail=logs.get(f"worker{rank}", ()),
        )
    if ending.cause == "time":
        slowest = min(events, key=lambda e: e.steps)
        return Outcome(
            kind=OutcomeKind.TIMED_OUT,
            stage=slowest.stage,
            rank=slowest.rank,
            reason=ending.reason,
            log_tail=logs.get(f"worker{slowest.rank}", ()),
        )
    if ending.cause == "memory":
        return _of_process(OutcomeKind.OUT_OF_MEMORY, ending, events, logs)
    if ending.cause == "failed":
        return _failure(ending, events, logs, oom_kills)
    wanted = (trial.measure.warmup_steps + trial.measure.steps) * trial.steps_a_round
    for e in events:
        if e.steps != wanted:
            return Outcome(
                kind=OutcomeKind.FAILED,
                stage=e.stage,
                rank=e.rank,
                log_tail=logs.get(f"worker{e.rank}", ()),
                reason=f"worker{e.rank} succeeded but reported {e.steps} of {wanted} steps",
            )
    return Outcome(kind=OutcomeKind.OK)


def naming_missing_file(outcome: Outcome, trial: Trial, workload: Workload, ranks: Sequence[Rank]) -> Outcome:
    """The outcome, with the line to add to the study where a user's program did not find a file that lies beside it."""
    failed = next((rank for rank in ranks if rank.rank == outcome.rank), None)
    missing = failed.reported.missing_file if failed else None
    if not isinstance(workload, Program) or missing is None or outcome.kind is OutcomeKind.OK:
        return outcome
    line = workload.to_add(missing, trial.workload.model)
    if line is None:
        return outcome
    advice = f"{missing} lies beside the script and does not go with it: add {line} under [workload]"
    return replace(outcome, reason=f"{outcome.reason}; {advice}")


def _of_process(kind: OutcomeKind, ending: Ending, events: Sequence[RankEvents], logs: Logs) -> Outcome:
    """Of the process that the ending names, rank or not."""
    name = ending.process or ""
    mine = next((e for e in events if f"worker{e.rank}" == name), None)
    return Outcome(
        kind=kind,
        stage=mine.stage if mine else "at the start",
        rank=mine.rank if mine else None,
        reason=ending.reason,
        log_tail=logs.get(name, ()),
    )


def _failure(ending: Ending, events: Sequence[RankEvents], logs: Logs, oom_kills: int) -> Outcome:
    """Blame the first to fail. Its peers fail too, over the broken connection, and often exit earlier than it does."""

    def failed_at(e: RankEvents) -> float:
        spoke: float = e.last_word.get("t", ending.exit_times.get(e.rank, 0.0) - NOTICE_S)
        return spoke

    suspects = [
        e
        for e in events
        if e.last_word.get("event") == "crashed" or (ending.exit_codes.get(e.rank, 0) != 0 and not e.last_word)
    ]
    if not suspects:
        return _of_process(OutcomeKind.FAILED, ending, events, logs)
    guilty = min(suspects, key=failed_at)
    word, code = guilty.last_word, ending.exit_codes.get(guilty.rank)
    kind = OutcomeKind.FAILED
    if word:
        reason = f"worker{guilty.rank}: {word.get('error', 'error')}: {word.get('message', '')}"
    elif code is not None and code < 0:
        reason = f"worker{guilty.rank} was killed by signal {-code}"
    else:
        reason = f"worker{guilty.rank} ended with exit code {code} and reported no error"
    if code == EXIT_MEMORY:
        kind = OutcomeKind.OUT_OF_MEMORY
    elif code == -SIGKILL and oom_kills:
        kind, reason = OutcomeKind.OUT_OF_MEMORY, f"worker{guilty.rank} was killed by the kernel: memory ran out"
    tail = logs.get(f"worker{guilty.rank}", ()) or tuple(word.get("traceback", ()))
    return Outcome(kind=kind, stage=guilty.stage, rank=guilty.rank, reason=reason, log_tail=tail)

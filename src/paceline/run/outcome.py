"""The outcome of a run, from how its processes ended and what its ranks reported. Pure."""

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
"""How long after its peers lost their connections the end of a rank is noticed that died without a last word."""

Logs = Mapping[str, tuple[str, ...]]
"""Name of a process → the last lines of its log."""


def judge(
    trial: Trial,
    ending: Ending,
    events: Sequence[RankEvents],
    logs: Logs,
    *,
    oom_kills: int = 0,
    lost: Mapping[int, str] | None = None,
) -> Outcome:
    """The outcome of a run; where it failed, with the rank that failed first and why.

    Args:
        trial: what was run.
        ending: how the processes ended.
        events: of each rank.
        logs: of each process.
        oom_kills: processes that the kernel killed during the run because memory ran out.
        lost: rank → its host, for hosts that are gone.
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
    """The outcome, with the line to add to the study if a user's program did not find a file beside it."""
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
    """The outcome that blames the process which the ending names, whether it is a rank or not."""
    name = ending.process or ""
    blamed = next((e for e in events if f"worker{e.rank}" == name), None)
    return Outcome(
        kind=kind,
        stage=blamed.stage if blamed else "at the start",
        rank=blamed.rank if blamed else None,
        reason=ending.reason,
        log_tail=logs.get(name, ()),
    )


def _failure(ending: Ending, events: Sequence[RankEvents], logs: Logs, oom_kills: int) -> Outcome:
    """Blame the rank that failed first. Its peers lose their connections and fail too, and often exit before it."""

    def failed_at(e: RankEvents) -> float:
        if e.last_word and e.last_word.unix_s is not None:
            return e.last_word.unix_s
        return ending.exit_times.get(e.rank, 0.0) - NOTICE_S

    suspects = [
        e for e in events if (e.last_word.kind == "crashed" if e.last_word else ending.exit_codes.get(e.rank, 0) != 0)
    ]
    if not suspects:
        return _of_process(OutcomeKind.FAILED, ending, events, logs)
    guilty = min(suspects, key=failed_at)
    word, code = guilty.last_word, ending.exit_codes.get(guilty.rank)
    kind = OutcomeKind.FAILED
    if word:
        reason = f"worker{guilty.rank}: {word.error}: {word.message}"
    elif code is not None and code < 0:
        reason = f"worker{guilty.rank} was killed by signal {-code}"
    else:
        reason = f"worker{guilty.rank} ended with exit code {code} and reported no error"
    if code == EXIT_MEMORY:
        kind = OutcomeKind.OUT_OF_MEMORY
    elif code == -SIGKILL and oom_kills:
        kind, reason = OutcomeKind.OUT_OF_MEMORY, f"worker{guilty.rank} was killed by the kernel: memory ran out"
    tail = logs.get(f"worker{guilty.rank}", ()) or (word.traceback if word else ())
    return Outcome(kind=kind, stage=guilty.stage, rank=guilty.rank, reason=reason, log_tail=tail)

"""From how the processes ended and what they said to one outcome, with the rank that failed first and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.plan.trial import Trial
from paceline.record import Outcome, OutcomeKind
from paceline.run.events import RankEvents
from paceline.run.supervise import Ending

EXIT_MEMORY = 82
"""paceline_worker.protocol.EXIT_MEMORY; a contract test holds the two together."""


def judge(trial: Trial, ending: Ending, events: Sequence[RankEvents], logs: Mapping[int, tuple[str, ...]]) -> Outcome:
    """The outcome of a run."""
    if ending.cause == "time":
        slowest = min(events, key=lambda e: e.steps)
        return Outcome(
            kind=OutcomeKind.TIMED_OUT, stage=slowest.stage, rank=slowest.rank, reason=ending.reason,
            log_tail=logs[slowest.rank],
        )  # fmt: skip
    if ending.cause == "memory":
        assert ending.rank is not None
        return Outcome(
            kind=OutcomeKind.OUT_OF_MEMORY, stage=events[ending.rank].stage, rank=ending.rank, reason=ending.reason,
            log_tail=logs[ending.rank],
        )  # fmt: skip
    if ending.cause == "failed":
        return _failure(ending, events, logs)
    wanted = trial.measure.warmup_steps + trial.measure.steps
    for e in events:
        if e.steps != wanted:
            return Outcome(
                kind=OutcomeKind.FAILED, stage=e.stage, rank=e.rank, log_tail=logs[e.rank],
                reason=f"worker{e.rank} ended well but reported {e.steps} of {wanted} steps",
            )  # fmt: skip
    return Outcome(kind=OutcomeKind.OK)


def _failure(ending: Ending, events: Sequence[RankEvents], logs: Mapping[int, tuple[str, ...]]) -> Outcome:
    """Blame the first to fail. Its peers fail too, over the broken connection, and often exit earlier than it does:
    a rank killed without a last word comes first, then the earliest last word.
    """
    silent = [
        e for e in events
        if ending.exit_codes.get(e.rank, 0) != 0 and not e.last_word and not e.done
    ]  # fmt: skip
    spoke = sorted((e for e in events if e.last_word.get("event") == "crashed"), key=lambda e: e.last_word["t"])
    suspects = silent or spoke
    if not suspects:
        rank = ending.rank
        return Outcome(
            kind=OutcomeKind.FAILED, stage="at the start", rank=rank, reason=ending.reason,
            log_tail=logs.get(rank, ()) if rank is not None else (),
        )  # fmt: skip
    guilty = suspects[0]
    word, code = guilty.last_word, ending.exit_codes.get(guilty.rank)
    if word:
        reason = f"worker{guilty.rank}: {word.get('error', 'error')}: {word.get('message', '')}"
    elif code is not None and code < 0:
        reason = f"worker{guilty.rank} was killed by signal {-code}"
    else:
        reason = f"worker{guilty.rank} ended with exit code {code} and no last word"
    kind = OutcomeKind.OUT_OF_MEMORY if code == EXIT_MEMORY else OutcomeKind.FAILED
    tail = logs[guilty.rank] or tuple(word.get("traceback", ()))
    return Outcome(kind=kind, stage=guilty.stage, rank=guilty.rank, reason=reason, log_tail=tail)

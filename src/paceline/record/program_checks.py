"""Checks of a user's program: what it does, compared with what the study says about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.plan.vocabulary import EXACT
from paceline.record.record import Doubt, Record

NO_PEERS = "none"
"""Value of the fact `exchange` for a rank that exchanges with nobody."""
SAMPLES_TOLERANCE = 0.01
"""One per cent, because a smaller last batch of a long epoch moves the mean by about that much."""


def program_doubts(record: Record) -> Iterator[Doubt]:
    """Yields the warnings about a run of a user's program."""
    yield from _samples(record)
    if never_exchanged(record):
        yield Doubt(
            code="no-exchange",
            message="workers never exchanged gradients: this is not distributed training, each trained by itself",
            hint="let the script call torch.distributed.init_process_group and wrap its model in"
            " DistributedDataParallel, or run one worker",
        )


def never_exchanged(record: Record) -> bool:
    """Whether the ranks of a user's program are known to have trained without any exchange."""
    if record.trial.workers < 2:
        return False
    # An approximate exchange may be rarer than the steps that were run.
    exact = record.trial.framework.strategy_class == EXACT
    reported = [rank.reported for rank in record.ranks]
    return any(facts.exchange == NO_PEERS or (exact and facts.exchanges_per_step == 0) for facts in reported)


def _samples(record: Record) -> Iterator[Doubt]:
    """Checks the batch of the study, from which the throughput follows, against what the program trains."""
    batch = record.trial.workload.batch_per_worker
    for rank in record.ranks:
        facts = rank.reported
        seen = facts.samples_per_step
        if seen is not None and abs(seen - batch) > SAMPLES_TOLERANCE * batch:
            who = "said that it trained" if facts.samples_from == "mark" else "gave its model"
            yield Doubt(
                code="batch-samples",
                message=f"rank {rank.rank} {who} {seen:g} samples per step, the study says {batch}: samples/s is wrong"
                " by that factor",
                hint=f"write batch_per_worker = {seen:.0f} under [workload], or hand it over: arguments = "
                "'--batch {batch_per_worker}'",
            )
            return
        if seen is None and facts.unmatched_inputs:
            yield Doubt(
                code="batch-samples",
                message=f"rank {rank.rank} gave its model inputs of {', '.join(facts.unmatched_inputs)}: none of these"
                f" sizes is the {batch} samples per step that the study says, which samples/s is computed from",
                hint="write the samples that a worker trains in a step as batch_per_worker under [workload], or hand"
                " it over: arguments = '--batch {batch_per_worker}'",
            )
            return

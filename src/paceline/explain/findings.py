"""Turns shares into findings: one sentence with its numbers per bottleneck, largest first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paceline.explain.changes import Case, change_for
from paceline.explain.explanation import Share
from paceline.explain.finding import COPY, Finding, Number, promised
from paceline.explain.spent import Spent
from paceline.explain.without import REMOVABLE
from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, INPUT, LATENCY, OVERHEAD, STRAGGLER
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import DERIVED, MEASURED, MODELLED, SIMULATED, KnownBy, weakest
from paceline.units import format_bytes, format_seconds

WORTH_SAYING = 0.05
"""The smallest share of the step that is reported as a bottleneck."""
DISAGREE = 0.10
"""A larger difference between the measured and the modelled share is reported as a disagreement."""
SPLIT_BY_MODEL = frozenset({LATENCY, BANDWIDTH})
"""Causes that timers measure together and the model separates."""

SOURCES = {MEASURED: "measured", SIMULATED: "simulated", DERIVED: "derived from separate programs"}
"""How the parts of a step are known → the words for it."""

Text = Callable[[str, Mapping[str, object]], str]
"""(question, changed axes) → a study file; "" if there is none."""


def findings_of(
    shares: Sequence[Share], spent: Spent | None, case: Case, experiment: Text, runs: Sequence[str]
) -> tuple[Finding, ...]:
    """Returns the bottlenecks of the trial. Computation comes last, because it is the purpose of the step."""
    losses = [share for share in shares if share.cause != COMPUTE and share.best >= WORTH_SAYING]
    losses = sorted(losses, key=lambda share: -share.best)
    computing = next(share for share in shares if share.cause == COMPUTE)
    reported = [*losses, computing] if computing.best >= WORTH_SAYING else losses
    step = spent.step_s if spent is not None else case.setting.step_s()
    return tuple(_finding(share, step, spent, case, experiment, runs, alone=not losses) for share in reported)


def _finding(
    share: Share, step_s: float, spent: Spent | None, case: Case, experiment: Text, runs: Sequence[str], *, alone: bool
) -> Finding:
    cause = share.cause
    change = change_for(cause, case)
    gain: Estimate | None = None
    if cause != COMPUTE:
        if cause in REMOVABLE:
            gain = case.setting.gain([cause])
        else:
            left = 1 / max(1 - share.best, 1e-3)
            gain = promised(left, 1.0, left)
    question = f"Is it {cause}? {change.words}" if change else ""
    return Finding(
        cause=cause,
        sentence=_sentence(cause, share.best, step_s, case, alone=alone),
        share=share.best,
        gain=gain,
        by=_by(share, spent),
        sure=_sure(share, spent),
        numbers=_numbers(share, step_s, case),
        records=tuple(spent.runs if spent else runs),
        change=change,
        experiment=experiment(question, dict(change.axes)) if change and change.axes else "",
    )


def _by(share: Share, spent: Spent | None) -> KnownBy:
    if share.measured is None or spent is None:
        return MODELLED
    return weakest(spent.by, DERIVED) if share.cause in SPLIT_BY_MODEL else spent.by


def _sure(share: Share, spent: Spent | None) -> str:
    """Says how certain a share is."""
    if share.measured is None or spent is None:
        return "by the model alone: these runs do not time it"
    runs = len(spent.runs)
    has_spread = runs > 1 and share.cause in spent.spread
    spread = f" (spread: {spent.spread[share.cause] * 100:.0f} percentage points)" if has_spread else ""
    parts = [f"{SOURCES[spent.by]} in {runs} run{'s' if runs > 1 else ''}{spread}"]
    if share.cause in SPLIT_BY_MODEL:
        parts.append("split into latency and bandwidth by the model")
    if abs(share.measured - share.modelled) > DISAGREE:
        parts.append(f"but the model says {share.modelled:.0%}: treat this share with caution")
    else:
        parts.append(f"and the model says {share.modelled:.0%}")
    return ", ".join(parts)


def _numbers(share: Share, step_s: float, case: Case) -> tuple[Number, ...]:
    source: KnownBy = SIMULATED if case.trial.framework.simulated else MEASURED
    numbers = [Number(name="step", value=step_s, unit="s", by=source)]
    if share.measured is not None:
        numbers.append(Number(name=f"{share.cause}, of the step", value=share.measured, unit="1", by=source))
    numbers.append(Number(name=f"{share.cause}, by the model", value=share.modelled, unit="1", by=MODELLED))
    conditions = case.setting.conditions
    if share.cause in SPLIT_BY_MODEL and conditions.messages:
        numbers.append(Number(name="bytes exchanged", value=conditions.exchanged, unit="B", by=source))
        numbers.append(
            Number(name="messages per step", value=float(len(conditions.messages)), unit="messages", by=source)
        )
        if conditions.bandwidth:
            numbers.append(Number(name="link bandwidth", value=conditions.bandwidth, unit="B/s", by=MEASURED))
    if share.cause == STRAGGLER:
        slowest = case.setting.calibration.straggling.slowest
        numbers.append(Number(name="slowest worker ÷ the others", value=slowest, unit="1", by=DERIVED))
    if share.cause == CONTENTION and case.cores:
        cluster = case.trial.cluster
        threads = float(cluster.threads_per_worker * cluster.workers_per_host)
        numbers.append(Number(name="threads per host", value=threads, unit="threads", by=MEASURED))
        numbers.append(Number(name="cores per host", value=float(case.cores), unit="cores", by=MEASURED))
    return tuple(numbers)


def _sentence(cause: str, share: float, step_s: float, case: Case, *, alone: bool) -> str:
    part = f"{share:.0%} of the step ({format_seconds(share * step_s)} of {format_seconds(step_s)})"
    conditions = case.setting.conditions
    if cause == COMPUTE:
        return f"Compute-bound: computation is {part}" if alone else f"The rest is computation: {part}"
    if cause == INPUT:
        return f"Input-bound: workers wait for input during {part}"
    if cause == COPY:
        return f"Copying input to the device takes {part}"
    if cause == BANDWIDTH:
        carried = f"{format_bytes(conditions.exchanged)} of gradients" if conditions.messages else "gradients"
        link = f" over {case.trial.cluster.network.label}" if case.trial.cluster.network else ""
        return f"The network is too slow: exchanging {carried}{link} adds {part}"
    if cause == LATENCY:
        if (count := len(conditions.messages)) > 1:
            return f"Buckets are too small: the latency of {count} messages per step adds {part}"
        return f"Network latency adds {part}"
    if cause == CONTENTION:
        cluster = case.trial.cluster
        threads = cluster.threads_per_worker * cluster.workers_per_host
        if case.cores and threads > case.cores:
            cores = f"{case.cores} core{'s' if case.cores > 1 else ''}"
            return f"Too many threads: {threads} of them compete for {cores} per host, and waiting takes {part}"
        return f"Compute was starved of CPU for {part}: other processes or threads held the cores"
    if cause == OVERHEAD:
        return f"Framework overhead between the phases takes {part}"
    if cause == STRAGGLER:
        if case.slow_host:
            return f"Host {case.slow_host} is slower than the others, and all wait for it during {part}"
        return f"Workers wait for the slowest one during {part}"
    raise ValueError(f"no sentence for {cause}")

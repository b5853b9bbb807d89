"""A PyTorch profile (Kineto) as a run: its marked steps, divided into phases by operator names. Pure.

    data            fetching batches: the spans of a DataLoader
    copy            host to device
    update          optimizer step
    backward        operators run by the autograd engine
    forward         all other operators
    communication   exposed collectives: none of the above runs at the same time
    overhead        the rest, when nothing runs

Time in which two phases overlap belongs to the first in this list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from paceline._version import __version__
from paceline.errors import PacelineError
from paceline.model.foreign.readers import COMMUNICATES, STEP
from paceline.model.foreign.traces import Span, spans_of_kineto
from paceline.plan.trial import Trial
from paceline.record.record import Doubt, Outcome, OutcomeKind, Rank, Record

Intervals = list[tuple[float, float]]

PHASES: dict[str, Callable[[str], object]] = {
    "data": re.compile(r"DataLoader").search,
    "copy": re.compile(r"memcpy.*htod", re.IGNORECASE).search,
    "update": re.compile(r"^Optimizer\.step").search,
    "backward": re.compile(r"^autograd::engine|Backward\d*$").search,
}
"""Maps a phase to a test of operator names; other operators are forward or communication."""
ORDER = ("data", "copy", "update", "backward", "forward", "communication")


@dataclass(frozen=True, kw_only=True, slots=True)
class Profiled:
    """The steps of one rank."""

    rank: int
    samples: pa.Table
    """Samples in the format of a record."""


def profiled(text: str) -> Profiled:
    """Read the steps of a profile.

    Raises:
        PacelineError: The profile marks no steps.
    """
    spans = spans_of_kineto(text)
    steps = sorted((span for span in spans if STEP.fullmatch(span.name)), key=lambda span: span.start_s)
    if not steps:
        raise PacelineError(
            "this trace marks no steps", hint="call profiler.step() after each step, and export_chrome_trace at the end"
        )
    sorted_out = _by_phase([span for span in spans if not STEP.fullmatch(span.name)])
    origin = steps[0].start_s
    columns: dict[str, list[float]] = {
        "start_s": [],
        "wall_s": [],
        **{f"phase.{name}": [] for name in (*ORDER, "overhead")},
    }
    for step in steps:
        columns["start_s"].append(step.start_s - origin)
        columns["wall_s"].append(step.duration_s)
        left: Intervals = [(step.start_s, step.start_s + step.duration_s)]
        for name in ORDER:
            before = _length(left)
            left = _without(left, sorted_out[name])
            columns[f"phase.{name}"].append(before - _length(left))
        columns["phase.overhead"].append(_length(left))
    count, rank = len(steps), steps[0].rank
    fixed = {
        "rank": pa.array([rank] * count, pa.int32()),
        "step": pa.array(range(count), pa.int32()),
        "kind": pa.array(["measured"] * count),
        "cpu_s": pa.array([None] * count, pa.float64()),
        "loss": pa.array([None] * count, pa.float64()),
    }
    return Profiled(rank=rank, samples=pa.table({**fixed, **{name: pa.array(v) for name, v in columns.items()}}))


def run_of(texts: Sequence[str], trial: Trial, *, study: str, started: float, gradient_bytes: int | None) -> Record:
    """The record of a run from the profiles of all its ranks, on an unnamed machine of its own.

    Raises:
        PacelineError: A rank is missing or given twice, or a file marks no steps.
    """
    ranks = sorted((profiled(text) for text in texts), key=lambda profile: profile.rank)
    numbers = [profile.rank for profile in ranks]
    if numbers != list(range(trial.ranks)):
        raise PacelineError(
            f"the profiles are of rank {', '.join(map(str, numbers))}, but the run has {trial.ranks} rank(s)",
            hint="give one file per rank, all from the same run",
        )
    digest = hashlib.sha256("".join(texts).encode()).hexdigest()[:8]
    samples = pa.concat_tables([profile.samples for profile in ranks])
    return Record(
        run_id=f"{trial.id}.r0.a0@{digest}",
        trial=trial,
        study=study,
        repeat=0,
        attempt=0,
        started=started,
        elapsed_s=float(sum(ranks[0].samples["wall_s"].to_pylist())),
        outcome=Outcome(kind=OutcomeKind.OK),
        ranks=tuple(Rank(rank=profile.rank, host="profile", cores=()) for profile in ranks),
        machine={"id": f"profile-{digest}"},
        state={},
        environment={"name": "imported profile", "fingerprint": digest},
        resources={},
        inputs={"gradient_bytes": gradient_bytes} if gradient_bytes else {},
        doubts=(
            Doubt(
                code="profiled",
                message="imported from a profile: profiling makes steps a few per cent longer",
                hint="compare it only with other profiles",
            ),
        ),
        paceline=__version__,
        phases_by="operators",
        samples=samples,
    )


def _by_phase(spans: Sequence[Span]) -> dict[str, Intervals]:
    intervals_of: dict[str, list[tuple[float, float]]] = {name: [] for name in ORDER}
    for span in spans:
        own = next((name for name, matches in PHASES.items() if matches(span.name)), None)
        name = own or ("communication" if COMMUNICATES.search(span.name) else "forward")
        intervals_of[name].append((span.start_s, span.start_s + span.duration_s))
    return {name: sorted(intervals) for name, intervals in intervals_of.items()}


def _length(intervals: Intervals) -> float:
    return sum(end - start for start, end in intervals)


def _without(whole: Intervals, taken: Intervals) -> Intervals:
    """The parts of `whole` that `taken` does not cover. Both are sorted; intervals of `taken` may overlap."""
    left: Intervals = []
    for start, end in whole:
        at = start
        for begin, stop in taken:
            if stop <= at:
                continue
            if begin >= end:
                break
            if begin > at:
                left.append((at, begin))
            at = max(at, stop)
        if at < end:
            left.append((at, end))
    return left

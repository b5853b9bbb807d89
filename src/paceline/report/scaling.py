"""How well a study's configurations scale, in one or two sentences, however many curves there are.

Wordings say the same facts at different length, the fullest first: an answer takes the first that it has room for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.compare import Comparison, Row, families
from paceline.model.forecast.predict import KNEE
from paceline.report import numbers
from paceline.report.names import capital, listed, parts_of, phrase, where
from paceline.stats.estimate import Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """What the largest size of a family brings."""

    about: str
    """What all sizes of the family have in common, where families differ in it; its network is in `large`."""
    name: str
    """What sets its curve apart from the others, its network included."""
    small: str
    """The base, in a phrase."""
    large: str
    """The largest size, in a phrase."""
    row: Row
    """The largest size."""
    knee: str
    """Where efficiency becomes low, in words; "" where it never does, or no size between the first and the last was
    run."""

    @property
    def efficiency(self) -> Estimate:
        return numbers.known(self.row.efficiency)

    @property
    def speedup(self) -> Estimate:
        return numbers.known(self.row.speedup)


def scaling_wordings(comparison: Comparison, *, at_length: bool) -> list[tuple[str, ...]]:
    """How fast the largest size is, and how that ranges over all curves; [] without two sizes of anything.

    Args:
        at_length: whether the answer has no other sentence, so that the best curve gets one of its own.
    """
    curves = _curves(comparison)
    if not curves:
        return []
    first = f"{_one(curves[0])}."
    if len(curves) == 1:
        # Without its name, which may be long.
        return [(first,), (f"{_one(replace(curves[0], about=''))}.",)]
    ranges: list[tuple[str, ...]] = [(f"{wording}.",) for wording in _range(curves)]
    if len(curves) == 2 and (curves[0].large, curves[0].small) == (curves[1].large, curves[1].small):
        second = f"{_whose(curves[1])}{_gain(curves[1])} ({_share(curves[1])})"
        return [(f"{_one(curves[0])}; {second}.",), *ranges]
    if not at_length:
        return ranges
    return [*((first, f"{wording}.") for wording in _depth(curves)), *ranges]


def _curves(comparison: Comparison) -> list[Reach]:
    """Every family, the best first: the fastest, or of several models, whose samples differ, the most efficient."""
    curves = []
    for family in families(comparison):
        row = family.rows[-1]
        few, many = (parts_of(member, comparison) for member in (family.base, row))
        shared = [part for part in many if part in few]
        curves.append(
            Reach(
                about=phrase(shared, row),
                name=phrase([part for part in many if part in shared or part == row.network], row),
                small=phrase([part for part in few if part not in many], family.base),
                large=phrase([part for part in many if part not in few], row),
                row=row,
                knee=_knee(family.rows),
            )
        )
    if len({curve.row.workload for curve in curves}) > 1:
        return sorted(curves, key=lambda curve: -curve.efficiency.value)
    return sorted(curves, key=lambda curve: -numbers.known(curve.row.throughput).value)


def _one(curve: Reach) -> str:
    """What the largest size of one curve brings, how sure that is, and how far workers are used well."""
    train = "train" if curve.row.workers > 1 else "trains"
    sure = numbers.sureness(curve.efficiency, 100, " %")
    knee = f"; {curve.knee}" if curve.knee else ""
    gained = f"{train} {_gain(curve)} as fast as {curve.small} ({_share(curve)}, {sure}{knee})"
    return capital(f"{_whose(curve)}{curve.large} {gained}")


def _whose(curve: Reach) -> str:
    """Whose curve it is: "PyTorch: ", "with batch 8 per worker, "; "" where there is no other."""
    if curve.about[:1].isupper():
        return f"{curve.about}: "
    return f"{where(curve.about)}, " if curve.about else ""


def _knee(rows: Sequence[Row]) -> str:
    low = [row.workers for row in rows if numbers.known(row.efficiency).value < KNEE]
    if not low or len(rows) < 3:
        return ""
    well = [row.workers for row in rows if row.workers < low[0]]
    if len(well) == 1:
        return f"below {KNEE * 100:g} % from {low[0]} workers on"
    return f"above {KNEE * 100:g} % up to {well[-1]} workers"


def _gain(curve: Reach) -> str:
    only = "only " if curve.speedup.high is not None and curve.speedup.high < 1 else ""
    return f"{only}{numbers.value(curve.speedup)} ×"


def _share(curve: Reach) -> str:
    return f"efficiency {_percent(curve)}"


def _depth(curves: Sequence[Reach]) -> Iterator[str]:
    """How much worse the others scale than the first, which has a sentence of its own."""
    worst = min(curves, key=lambda curve: curve.efficiency.value)
    if worst is curves[0]:
        yield from _range(curves)
        return
    low = f"{_span(curves)} the efficiency of {_largest(curves)} is as low as {_percent(worst)}"
    yield f"{low} ({worst.name})"
    yield low


def _range(curves: Sequence[Reach]) -> Iterator[str]:
    """From the curve that scales worst to the one that scales best; then without their names, which may be long."""
    worst, *_, best = sorted(curves, key=lambda curve: curve.efficiency.value)
    efficiency = f"{_span(curves)} the efficiency of {_largest(curves)}"
    if _percent(worst) == _percent(best):
        yield f"{efficiency} is {_percent(best)}"
        return
    if len(curves) == 2:
        both = f"{_percent(best)} ({best.name}) and {_percent(worst)} ({worst.name})"
        yield f"The efficiency of {_largest(curves)} is {both}"
    else:
        yield f"{efficiency} ranges from {_percent(worst)} ({worst.name}) to {_percent(best)} ({best.name})"
    yield f"{efficiency} ranges from {_percent(worst)} to {_percent(best)}"


def _span(curves: Sequence[Reach]) -> str:
    """What the curves range over: "Across 3 batches and 3 networks", where these are all that they differ in."""
    rows = [curve.row for curve in curves]
    batches = {(row.workload, row.batch_global if row.scaling == "strong" else row.batch_per_worker) for row in rows}
    models = {row.workload for row in rows}
    counts = {
        "framework": len({row.framework for row in rows}),
        "model": len(models),
        # A model of its own batch each is no range of batches.
        "batch": len({batch for _, batch in batches}) if len(batches) > len(models) else 1,
        "network": len({row.network for row in rows}),
    }
    several = {what: count for what, count in counts.items() if count > 1}
    if math.prod(several.values()) < len(rows):
        return f"Across {len(rows)} scaling curves"
    names = [f"{count} {'batches' if what == 'batch' else f'{what}s'}" for what, count in several.items()]
    return f"Across {listed(names)}"


def _largest(curves: Sequence[Reach]) -> str:
    """The largest size that was run, where it is the same in all curves."""
    sizes = {(curve.row.workers, curve.row.hosts) for curve in curves}
    if len(sizes) > 1:
        return "the largest size of each"
    ((workers, hosts),) = sizes
    return f"{numbers.counted(workers, 'worker')}{f' on {hosts} hosts' if hosts > 1 else ''}"


def _percent(curve: Reach) -> str:
    return f"{numbers.value(curve.efficiency, 100)} %"

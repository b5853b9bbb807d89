"""Claims on studies/interconnect.toml: no faster link is slower, and the cost of a slow link follows from its rate.

Runs what is missing of it, of studies/interconnect-keras.toml and of studies/exposed.toml (three hours), or reads the
records. A pair of links with one run each (AlexNet) is judged by the spread of all pairs that have more runs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from scipy.stats import t as student

from claims import Claim, parser, publish, say, with_ends
from paceline.compare import gather
from paceline.compare.runs import Runs
from paceline.plan.trial import Trial
from paceline.record import Record
from paceline.record.fact import number
from paceline.record.site_checks import links_of
from paceline.spec import load_study
from paceline.stats import RatioTest, Spread, holm, ratio_interval, shared_spread
from paceline.workbench import Workbench

STUDIES = Path(__file__).parent.parent / "studies"
SURE = 0.05
EXPOSED_WITHIN = 0.15


def recorded(name: str, *, run: bool) -> list[Runs]:
    bench = Workbench(load_study(STUDIES / f"{name}.toml"), Path(".paceline"))
    if run:
        say(f"running what is missing of {name}")
        bench.run()
    return gather(bench.snapshot().records, bench.prepared.trials)


def monotone(groups: Sequence[Runs]) -> list[Claim]:
    """Claims on pairs of links with the same training: the slower link is not significantly faster."""
    measured = [group for group in groups if group.measured and group.trial.cluster.network is not None]
    pairs = [
        (slow, fast)
        for group, other_group in combinations(measured, 2)
        if _training(group.trial) == _training(other_group.trial)
        for slow, fast in [sorted((group, other_group), key=lambda group: _rate(group.trial))]
    ]
    sides = [(fast.by_round("throughput"), slow.by_round("throughput")) for slow, fast in pairs]
    spread = shared_spread(sides)
    tests = [ratio_interval(*both, spread=spread) for both in sides]
    # Two-sided, and only a faster link that looks slower contradicts the claim.
    adjusted = holm([_p(test, spread) if test.ratio.value < 1 else 1.0 for test in tests])
    return [
        Claim(
            name=f"{fast.trial.framework.name} {fast.trial.workload.name} {fast.trial.cluster.hosts} hosts: "
            f"{_label(fast.trial)} ÷ {_label(slow.trial)}",
            ratio=with_ends(test.ratio),
            claim="not below 1 (Holm)",
            holds=p >= SURE,
            n=test.n_pairs,
            facts={"p_adjusted": p},
        )
        for (slow, fast), test, p in zip(pairs, tests, adjusted, strict=True)
    ]


def _p(test: RatioTest, spread: Spread | None) -> float:
    """p value of "no difference"; for a pair with one run each, by the spread of the other pairs."""
    if test.spread_known or spread is None:
        return test.p
    return float(2 * student.sf(abs(math.log(test.ratio.value)) / math.sqrt(spread.variance), spread.df))


def exposed(groups: Sequence[Runs]) -> list[Claim]:
    """Claims on exposed communication ÷ (2(P − 1)/P · bytes ÷ achieved bandwidth)."""
    claims = []
    for group in groups:
        if not group.measured:
            continue
        ranks = group.trial.workers
        exposed_over_link = {
            record.repeat: (summary.communication_transfer_s or 0.0)
            / (2 * (ranks - 1) / ranks * (record.input_facts.gradient_bytes or 0.0) / _achieved(record))
            for record, summary in group.measured
        }
        ratio = ratio_interval(exposed_over_link, dict.fromkeys(exposed_over_link, 1.0)).ratio
        claims.append(
            Claim(
                name=f"exposed ÷ what the link says, {ranks} hosts",
                ratio=with_ends(ratio),
                claim=f"within {EXPOSED_WITHIN:.0%} of 1",
                holds=abs(ratio.value - 1) <= EXPOSED_WITHIN,
                n=len(exposed_over_link),
            )
        )
    return claims


def _achieved(record: Record) -> float:
    """Bytes per second of the slowest link."""
    achieved = [number(link[way]) for link in links_of(record) for way in ("sent_bytes_per_s", "received_bytes_per_s")]
    return min(speed for speed in achieved if speed is not None)


def _training(trial: Trial) -> tuple[object, ...]:
    return trial.framework, trial.workload, trial.cluster.hosts, trial.measure


def _rate(trial: Trial) -> float:
    network = trial.cluster.network
    rate = network.bandwidth_bytes_per_s if network else None
    return float("inf") if rate is None else rate


def _label(trial: Trial) -> str:
    return trial.cluster.network.label if trial.cluster.network else "as it is"


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--no-run", action="store_true", help="only look at what is recorded")
    args = options.parse_args()
    studies = ("interconnect", "interconnect-keras")
    claims = monotone([group for name in studies for group in recorded(name, run=not args.no_run)])
    claims += exposed(recorded("exposed", run=not args.no_run))
    return publish(claims, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
